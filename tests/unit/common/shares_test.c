/* SPDX-License-Identifier: BSD-2-Clause */
/* Places by the network that took them. */
#include "common/shares.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static uint64_t find_test_net(const char *ip, uint32_t zone)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_scope_id = zone };
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, ip, &in.sin_addr) == 1)
		return ddps_share_net_sa((struct sockaddr *)&in);
	cr_assert_eq(inet_pton(AF_INET6, ip, &six.sin6_addr), 1);
	return ddps_share_net_sa((struct sockaddr *)&six);
}

Test(shares, networks)
{
	const struct sockaddr other = { .sa_family = AF_UNIX };

	cr_expect_eq(find_test_net("::ffff:192.0.2.1", 0), find_test_net("192.0.2.1", 0));
	cr_expect_neq(find_test_net("192.0.2.2", 0), find_test_net("192.0.2.1", 0));
	cr_expect_eq(find_test_net("2001:db8:0:1::5", 0), find_test_net("2001:db8:0:1:ffff::", 0));
	cr_expect_neq(find_test_net("2001:db8:0:1::5", 0), find_test_net("2001:db8:0:2::5", 0));
	cr_expect_neq(find_test_net("0.0.0.0", 0), find_test_net("::", 0));
	cr_expect_eq(ddps_share_net_sa(&other), 0);
}

/* Who fills the places of one link takes none of another's. */
Test(shares, contact_26_each_link_has_its_own)
{
	cr_expect_eq(find_test_net("fe80::1", 1), find_test_net("fe80::9", 1));
	cr_expect_neq(find_test_net("fe80::1", 1), find_test_net("fe80::1", 2));
	cr_expect_neq(find_test_net("fe80::1", 1), find_test_net("fe80::1", 0));
	cr_expect_eq(find_test_net("2001:db8::1", 1), find_test_net("2001:db8::1", 2),
		     "of other addresses it says nothing");
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
