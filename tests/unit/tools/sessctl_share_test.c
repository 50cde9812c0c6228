/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl listen: what one peer can have of sessions and memory. */
#include "xfer/serve/serve.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct server sv;

static struct serve_net find_share_net(const char *ip, uint32_t scope, uint16_t port)
{
	struct ddps_conn_info info = { .peer_addr = { .scope = scope, .port = port } };

	if (inet_pton(AF_INET, ip, info.peer_addr.ip) == 1)
		info.peer_addr.family = 4;
	else if (inet_pton(AF_INET6, ip, info.peer_addr.ip) == 1)
		info.peer_addr.family = 6;
	return share_net(&info);
}

static struct session *add_to_sessctl_share(const char *peer, size_t window)
{
	struct session *s = calloc(1, sizeof *s);

	cr_assert(s);
	*s = (struct session){ .sv = &sv, .net = find_share_net(peer, 0, 7) };
	s->win.len = window;
	LIST_INSERT_HEAD(&sv.sessions, s, of_all);
	sv.live++;
	sv.windows += window;
	return s;
}

static void fini(void)
{
	struct session *s;

	while ((s = LIST_FIRST(&sv.sessions))) {
		LIST_REMOVE(s, of_all);
		free(s);
	}
}

TestSuite(sessctl_share, .fini = fini);

Test(sessctl_share, contact_16_whose_shares)
{
	static const struct {
		const char *one, *other;
		uint32_t one_link, other_link;
		bool same;
	} pair[] = {
		{ "192.0.2.1", "192.0.2.1", 0, 0, true },
		{ "192.0.2.1", "192.0.2.2", 0, 0, false },
		{ "2001:db8::1", "2001:db8::ffff:2", 0, 0, true },
		{ "2001:db8::1", "2001:db8:0:1::1", 0, 0, false },
		{ "fe80::1", "fe80::1", 1, 1, true },
		{ "fe80::1", "fe80::1", 1, 2, false },
		{ "fe80::1", "fe80::2", 1, 1, true },
		{ "0.0.0.0", "::", 0, 0, false },
	};
	struct ddps_conn_info one = { .transport = DDPS_TRANSPORT_SHM, .shm.uid = 1 },
			      two = { .transport = DDPS_TRANSPORT_SHM, .shm.uid = 2 };
	struct serve_net a, b;

	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		a = find_share_net(pair[i].one, pair[i].one_link, 7);
		b = find_share_net(pair[i].other, pair[i].other_link, 8);
		cr_expect_eq(!memcmp(&a, &b, sizeof a), pair[i].same, "%s, %s", pair[i].one,
			     pair[i].other);
	}
	a = share_net(&one);
	b = share_net(&two);
	cr_expect_neq(memcmp(&a, &b, sizeof a), 0, "two users of this host");
}

/* How many of @want sessions @peer gets. */
static unsigned let_in(const char *peer, unsigned want)
{
	const struct serve_net net = find_share_net(peer, 0, 1);
	unsigned n = 0;

	while (n < want && !share_of_sessions(&sv, &net)) {
		add_to_sessctl_share(peer, 0);
		n++;
	}
	return n;
}

Test(sessctl_share, contact_16_sessions_leave_as_many_for_others)
{
	const struct serve_net third = find_share_net("192.0.2.3", 0, 1);

	sv.room = 16;
	cr_expect_eq(let_in("192.0.2.1", 100), 8);
	cr_expect_eq(let_in("192.0.2.2", 100), 4);
	cr_expect_null(share_of_sessions(&sv, &third));
	cr_expect_eq(let_in("192.0.2.1", 100), 0);
	cr_expect(strstr(share_of_sessions(&sv, &LIST_FIRST(&sv.sessions)->net), "share"));
	cr_expect_eq(let_in("192.0.2.4", 100), 2);
	cr_expect_eq(let_in("192.0.2.5", 100), 1);
	cr_expect_eq(let_in("192.0.2.6", 100), 1, "the last one");
	sv.live = sv.room;
	cr_expect(strstr(share_of_sessions(&sv, &third), "full"));
}

Test(sessctl_share, contact_16_memory_leaves_as_much_for_others)
{
	struct session *s = add_to_sessctl_share("192.0.2.1", SERVE_WINDOWS_MAX / 2 - 1), *other;

	cr_expect_null(share_of_windows(s, 2));
	cr_expect(strstr(share_of_windows(s, 3), "share"));
	other = add_to_sessctl_share("192.0.2.2", 0);
	cr_expect_null(share_of_windows(other, SERVE_WINDOWS_MAX / 4));
	cr_expect_null(share_of_windows(other, 0));
	cr_expect(strstr(share_of_windows(other, SERVE_WINDOWS_MAX / 2 + 2), "busy"));
}

Test(sessctl_share, contact_16_sessions_have_files_to_open)
{
	static const struct {
		rlim_t files;
		unsigned sessions, half_open;
	} rows[] = {
		{ 27, 1, 1 }, { 28, 1, 1 }, { 64, 15, 10 }, { 1024, 375, 250 }, { 8000, 3476, 1024 }
	};

	for (size_t i = sizeof rows / sizeof *rows; i--;) {
		struct rlimit l = { rows[i].files, rows[i].files };
		unsigned n = 0, half = 1024;

		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
		cr_expect(share_files(&n, &half));
		cr_expect(n == rows[i].sessions && half == rows[i].half_open, "%u: %u, %u",
			  (unsigned)rows[i].files, n, half);
		cr_expect_leq(2 * n + half + 24, rows[i].files);
	}
}

Test(sessctl_share, contact_16_too_few_files_for_a_session)
{
	struct rlimit l = { 26, 26 };
	unsigned n, half = 1024;

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
	cr_expect_not(share_files(&n, &half));
}
