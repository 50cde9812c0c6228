/* SPDX-License-Identifier: BSD-2-Clause */
/* Places by the network that took them. */
#include "common/shares.h"
#include <criterion/criterion.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

Test(shares, networks)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(0xC0000201) } };
	struct sockaddr other = { .sa_family = AF_UNIX };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	uint64_t v4 = ddps_share_net((struct sockaddr *)&in);

	cr_expect_eq(ddps_share_net_text("192.0.2.1:7"), v4);
	cr_expect_eq(ddps_share_net_text("[::ffff:192.0.2.1]:7"), v4);
	cr_expect_neq(ddps_share_net_text("192.0.2.2:7"), v4);
	cr_expect_eq(ddps_share_net_text("[2001:db8:0:1::5]:7"),
		     ddps_share_net_text("[2001:db8:0:1:ffff::]:8"));
	cr_expect_neq(ddps_share_net_text("[2001:db8:0:1::5]:7"),
		      ddps_share_net_text("[2001:db8:0:2::5]:7"));
	six.sin6_addr = (struct in6_addr){ { { 0xfe, 0x80, [15] = 1 } } };
	cr_expect_eq(ddps_share_net((struct sockaddr *)&six), ddps_share_net_text("[fe80::9]:1"));
	cr_expect_eq(ddps_share_net(&other), 0);
	cr_expect_eq(ddps_share_net_text(""), 0);
	cr_expect_eq(ddps_share_net_text("[x]:1"), 0);
	cr_expect_eq(ddps_share_net_text("a.host.whose.name.is.longer.than.any.address.is:1"), 0);
}

/* Who fills the places of one link takes none of another's. */
Test(shares, contact_26_each_link_has_its_own)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	const uint32_t lo = if_nametoindex("lo");

	six.sin6_addr = (struct in6_addr){ { { 0xfe, 0x80, [15] = 1 } } };
	six.sin6_scope_id = lo;
	cr_expect_eq(ddps_share_net((struct sockaddr *)&six),
		     ddps_share_net_text("[fe80::9%lo]:1"));
	cr_expect_neq(ddps_share_net_text("[fe80::9%lo]:1"), ddps_share_net_text("[fe80::9]:1"));
	six.sin6_scope_id = lo + 1;
	cr_expect_neq(ddps_share_net((struct sockaddr *)&six),
		      ddps_share_net_text("[fe80::1%lo]:1"));
	/* Of other addresses it says nothing. */
	cr_expect_eq(ddps_share_net_text("[2001:db8::1%lo]:1"),
		     ddps_share_net_text("[2001:db8::1]:1"));
}

Test(shares, the_oldest_of_whoever_has_most)
{
	struct ddps_shares s = { 0 };
	struct ddps_share m[6] = { 0 };
	const uint64_t net[6] = { 7, 8, 8, 9, 9, 9 };

	cr_expect_null(ddps_shares_first_to_go(&s));
	for (int i = 0; i < 6; i++)
		cr_assert_eq(ddps_shares_add(&s, &m[i], net[i]), 0);
	for (unsigned i = 0; i < 6; i++) {
		static const int order[6] = { 3, 1, 4, 0, 2, 5 }; /* the older, among equals */
		struct ddps_share *go = ddps_shares_first_to_go(&s);

		cr_expect_eq(go, &m[order[i]], "%u: %td", i, go - m);
		ddps_shares_del(&s, go);
		ddps_shares_del(&s, go);
		cr_expect_eq(s.places, 5 - i);
	}
	cr_expect_null(ddps_shares_first_to_go(&s));
	ddps_shares_fini(&s);
}

/* Against a plain model: who came when from where. */
Test(shares, as_a_plain_model_has_it)
{
	enum { N = 40, NETS = 9 };
	struct ddps_shares s = { 0 };
	struct ddps_share m[N] = { 0 };
	unsigned net[N], age[N], now = 0;
	bool in[N] = { false };

	srand(17);
	for (unsigned turn = 0; turn < 20000; turn++) {
		unsigned i = (unsigned)rand() % N, count[NETS] = { 0 }, best = N;

		if (in[i]) {
			ddps_shares_del(&s, &m[i]);
		} else {
			net[i] = (unsigned)rand() % NETS;
			age[i] = now++;
			cr_assert_eq(ddps_shares_add(&s, &m[i], net[i]), 0);
		}
		in[i] = !in[i];
		for (i = 0; i < N; i++)
			count[in[i] ? net[i] : 0] += in[i];
		for (i = 0; i < N; i++)
			if (in[i] && (best == N || count[net[i]] > count[net[best]] ||
				      (count[net[i]] == count[net[best]] && age[i] < age[best])))
				best = i;
		cr_assert_eq(ddps_shares_first_to_go(&s), best == N ? NULL : &m[best], "turn %u",
			     turn);
		if (best != N) {
			struct ddps_share *oldest;

			cr_assert_eq(ddps_shares_of(&s, &m[best], &oldest), count[net[best]]);
			cr_assert_eq(oldest, &m[best]);
		}
	}
	ddps_shares_fini(&s);
}
