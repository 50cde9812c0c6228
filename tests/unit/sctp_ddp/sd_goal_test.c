/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a session wants to go: one association serves those that want the same, and no others. */
#include "support/sd_world.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>

static struct sd_world w;
static struct sd_ulp u[40];
static unsigned n;

static void init(void)
{
	sd_world_init(&w);
	n = 0;
}

static void fini(void)
{
	for (unsigned i = 0; i < n; i++)
		sd_free(&u[i]);
	sd_world_fini(&w);
}

TestSuite(sd_goal, .init = init, .fini = fini, .timeout = 30);

struct goal {
	struct ddps_uri uri;
	struct sockaddr_storage to;
};

static struct sockaddr_storage ip(const char *text, uint16_t port)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *a4 = (void *)&ss;
	struct sockaddr_in6 *a6 = (void *)&ss;

	if (inet_pton(AF_INET, text, &a4->sin_addr) == 1) {
		a4->sin_family = AF_INET;
		a4->sin_port = htons(port);
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, &a6->sin6_addr), 1);
		a6->sin6_family = AF_INET6;
		a6->sin6_port = htons(port);
	}
	return ss;
}

/* Whether that made an association. */
static bool does_goal_make_assoc(const struct goal *g)
{
	const struct ddps_setup s = { 0 };
	unsigned before = fake_sctp_net.connects;

	cr_assert_lt(n, sizeof u / sizeof *u);
	u[n] = (struct sd_ulp){ .w = &w };
	cr_assert_eq(ddps_sctp_provider.connect(&w.env, &g->uri, (const struct sockaddr *)&g->to,
						sizeof g->to, &s, &w.param, NULL, NULL, &u[n].llp),
		     0);
	n++;
	return fake_sctp_net.connects > before;
}

/* Another goal, and one that can be distinguished from no other twice. */
static void differs(const struct goal *g, const char *what)
{
	cr_expect(does_goal_make_assoc(g), "%s is another goal", what);
	cr_expect_not(does_goal_make_assoc(g), "%s again is the same", what);
}

Test(sd_goal, ipv4)
{
	struct goal g = { .uri = w.uri, .to = ip("127.0.0.1", 9) };

	differs(&g, "the first");
	g.to = ip("127.0.0.1", 10);
	differs(&g, "a port");
	g.to = ip("127.0.0.2", 10);
	differs(&g, "an address");
	g.uri.encap = 9900;
	differs(&g, "a UDP port");
	g.to = ip("::ffff:127.0.0.2", 10);
	differs(&g, "a family");
}

Test(sd_goal, ipv6)
{
	struct goal g = { .uri = w.uri, .to = ip("fe80::1", 9) };

	differs(&g, "the first");
	g.to = ip("fe80::1", 10);
	differs(&g, "a port");
	g.to = ip("fe80::2", 10);
	differs(&g, "an address");
	((struct sockaddr_in6 *)&g.to)->sin6_scope_id = 7;
	differs(&g, "an interface");
}

Test(sd_goal, lists)
{
	struct goal g = { .uri = w.uri, .to = ip("127.0.0.1", 9) };

	differs(&g, "the first");
	g.uri.from.n = 1;
	g.uri.from.at[0] = ip("127.0.0.3", 0);
	differs(&g, "an address of ours");
	g.uri.from.at[0] = ip("127.0.0.4", 0);
	differs(&g, "another of ours");
	g.uri.from.n = 2;
	g.uri.from.at[1] = ip("127.0.0.5", 0);
	differs(&g, "two of ours");
	g.uri.from.at[1] = ip("127.0.0.6", 0);
	differs(&g, "the second of ours");
	g.uri.hosts.n = 2;
	g.uri.hosts.at[0] = ip("127.0.0.1", 9);
	g.uri.hosts.at[1] = ip("127.0.0.7", 9);
	differs(&g, "two of the peer");
	g.uri.hosts.at[1] = ip("127.0.0.8", 9);
	differs(&g, "the second of the peer");
}

/* Only an address of ours differs, so they meet in one place of the table. */
Test(sd_goal, addresses_of_ours)
{
	struct goal g = { .uri = w.uri, .to = ip("127.0.0.1", 9) };

	g.uri.from.n = 1;
	g.uri.from.at[0] = ip("127.0.0.3", 1);
	differs(&g, "the first");
	g.uri.from.at[0] = ip("127.0.0.3", 2);
	differs(&g, "a port");
	g.uri.from.at[0] = ip("::1", 2);
	differs(&g, "a family");
	g.uri.from.at[0] = ip("::1", 3);
	differs(&g, "a port of IPv6");
	g.uri.from.at[0] = ip("::2", 3);
	differs(&g, "an address of IPv6");
	((struct sockaddr_in6 *)&g.uri.from.at[0])->sin6_scope_id = 7;
	differs(&g, "an interface");
}

/* A goal of two addresses that falls into the same place as one of one: the number decides. */
Test(sd_goal, shorter_list_in_the_same_place)
{
	struct goal one = { .uri = w.uri, .to = ip("127.0.0.1", 9) }, two = one;
	struct ddps_sd_carrier *first, *c = NULL;

	cr_assert(does_goal_make_assoc(&one));
	first = sd_carrier_of(&w, 0);
	two.uri.hosts.n = 2;
	two.uri.hosts.at[0] = one.to;
	for (unsigned port = 1; port < 10000; port++) {
		two.uri.hosts.at[1] = ip("127.0.0.2", (uint16_t)port);
		cr_assert(does_goal_make_assoc(&two), "port %u", port);
		c = sd_carrier_of(&w, 1);
		if (c->goal->place == first->goal->place)
			break;
		sd_free(&u[--n]);
		ddps_sd_carrier_free(c);
	}
	cr_assert_eq(c->goal->place, first->goal->place);
	cr_expect_not(does_goal_make_assoc(&one));
	cr_expect_not(does_goal_make_assoc(&two));
}

Test(sd_goal, of_another_backend)
{
	struct goal g = { .uri = w.uri, .to = ip("127.0.0.1", 9) };
	struct ddps_sd_backend other = fake_sctp;

	differs(&g, "the first");
	cr_assert_eq(ddps_sd_use_backend(&w.env, &other, true, true), 0);
	cr_expect(does_goal_make_assoc(&g));
	cr_expect_eq(sd_carrier_of(&w, 1)->b, &other);
	cr_assert_eq(ddps_sd_use_backend(&w.env, &fake_sctp, true, true), 0);
	cr_expect_not(does_goal_make_assoc(&g));
	for (unsigned i = 0; i < n; i++)
		sd_free(&u[i]);
	n = 0;
	ddps_sd_carrier_free(sd_carrier_of(&w, 1)); /* @other is of this function */
}

Test(sd_goal, no_address_is_that_long)
{
	const struct goal g = { .uri = w.uri, .to = ip("127.0.0.1", 9) };
	const struct ddps_setup s = { 0 };
	struct ddps_llp *llp;

	cr_expect_eq(ddps_sctp_provider.connect(&w.env, &g.uri, (const struct sockaddr *)&g.to,
						sizeof g.to + 1, &s, &w.param, NULL, NULL, &llp),
		     DDPS_E_INVAL);
	cr_expect_eq(fake_sctp_net.connects, 0);
}
