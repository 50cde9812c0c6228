/* SPDX-License-Identifier: BSD-2-Clause */
/* What one peer, or all of them, may have of the engine. */
#include "sctp_raw_fixture.h"
#include <arpa/inet.h>

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

/* An association from another port of ours; whether it was taken. */
static bool take(uint16_t port)
{
	unsigned before = r.accepted;

	r.from = port;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	return r.accepted > before;
}

Test(sctp_bounds, ten_thousand_associations_of_one_address, .fini = fini, .timeout = 60,
     .description = "9260-5.1-15")
{
	struct ddps_sctp_stats st;

	raw_init(&r);
	for (unsigned i = 0; i < 10000; i++)
		cr_assert(take((uint16_t)(1 + i)), "%u", i);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.assocs, 10000);
	cr_expect_eq(st.refused_full, 0);
}

Test(sctp_bounds, a_listener_sets_the_share_of_an_address, .fini = fini,
     .description = "9260-5.1-15")
{
	struct ddps_sctp_stats st;

	raw_init(&r);
	r.port->param.max_per_addr = 3;
	for (uint16_t i = 0; i < 3; i++)
		cr_expect(take((uint16_t)(1 + i)));
	cr_expect_not(take(4));
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.assocs, 3);
	cr_expect_eq(st.refused_full, 1);
	r.from = 3; /* one goes, another one comes */
	raw_chunk(&r, r.a->own_tag, SC_ABORT, 0, NULL, 0);
	cr_expect(take(5));
}

/* The 64 bits behind a network's are the host's own choice. */
Test(sctp_bounds, attack_3_addresses_of_one_network_share, .fini = fini)
{
	struct ddps_sctp_addr a = { .family = 6 }, b = { .family = 6 }, c = { .family = 6 };

	raw_init(&r);
	inet_pton(AF_INET6, "2001:db8:0:1::1", a.ip);
	inet_pton(AF_INET6, "2001:db8:0:1:9::2", b.ip);
	inet_pton(AF_INET6, "2001:db8:0:2::1", c.ip);
	cr_expect(ddps_sc_peer_get(r.e, &a, 2));
	cr_expect(ddps_sc_peer_get(r.e, &b, 2));
	cr_expect_not(ddps_sc_peer_get(r.e, &a, 2));
	cr_expect_not(ddps_sc_peer_get(r.e, &b, 2));
	cr_expect(ddps_sc_peer_get(r.e, &c, 2));
	ddps_sc_peer_put(r.e, &b);
	cr_expect(ddps_sc_peer_get(r.e, &a, 2));
	ddps_sc_peer_put(r.e, &a);
	ddps_sc_peer_put(r.e, &b);
	ddps_sc_peer_put(r.e, &c);
}

Test(sctp_bounds, attack_3_a_flood_of_inits_has_a_bounded_answer, .fini = fini, .timeout = 60)
{
	struct ddps_sctp_stats st;
	unsigned n = 0, most;

	raw_init(&r);
	r.e->c.starts_per_s = most = 500;
	for (unsigned i = 0; i < 2000; i++) {
		r.from = (uint16_t)(1 + i);
		raw_init_chunk(&r, RAW_TAG + i, RAW_TSN);
		n += r.n;
	}
	cr_expect_eq(n, most);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.inits_limited, 2000 - most);
	cr_expect_eq(st.assocs, 0);
	raw_wait(&r, 1000); /* whoever comes later finds room again */
	cr_expect(take(7));
}
