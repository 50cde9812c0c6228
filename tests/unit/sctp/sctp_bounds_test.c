/* SPDX-License-Identifier: BSD-2-Clause */
/* What one peer, or all of them, may have of the engine. */
#include "sctp_raw_fixture.h"
#include <arpa/inet.h>

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

/* docs/security.md and sctp.h give these to whoever wants to know what a peer may have. */
Test(sctp_bounds, defaults_are_those_that_are_documented)
{
	struct ddps_sctp_config c;

	ddps_sctp_defaults(&c);
	cr_expect_eq(c.max_assocs, 65536);
	cr_expect_eq(c.max_assocs_per_addr, 16384);
	cr_expect_eq(c.rwnd, 4194304);
	cr_expect_eq(c.max_held, 268435456);
	cr_expect_eq(c.send_buffer, 4194304);
	cr_expect_eq(c.unsent, 262144);
	cr_expect_eq(c.max_message, 1048576);
	cr_expect_eq(c.max_chunks, 64);
	cr_expect_eq(c.icmp_grace, 1);
	cr_expect_eq(c.rto_min_ms, 400);
	cr_expect_eq(c.sack_delay_ms, 20);
	cr_expect_eq(c.answers_per_s, 1000);
	cr_expect_eq(c.starts_per_s, 50000);
	cr_expect(!c.sack_grace_us && !c.shutdown_guard_ms);
}

/* An association from another port of ours; whether it was taken. */
static bool take_sctp_bounds(uint16_t port)
{
	unsigned before = r.accepted;

	r.from = port;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	return r.accepted > before;
}

static unsigned longest_chain(void)
{
	unsigned most = 0;

	for (unsigned i = 0; i < r.e->chains; i++) {
		unsigned n = 0;

		for (const struct ddps_sc_path *p = r.e->paths[i]; p; p = p->chain)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

Test(sctp_bounds, ten_thousand_associations_of_one_address, .fini = fini, .timeout = 60,
     .description = "9260-5.1-15")
{
	struct ddps_sctp_stats st;

	raw_init(&r);
	for (unsigned i = 0; i < 10000; i++)
		cr_assert(take_sctp_bounds((uint16_t)(1 + i)), "%u", i);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.assocs, 10000);
	cr_expect_eq(st.refused_full, 0);
	cr_expect_eq(r.e->chains, 16384); /* a power of two: they spread over all */
	cr_expect_lt(longest_chain(), 12);
}

Test(sctp_bounds, a_listener_sets_the_share_of_an_address, .fini = fini,
     .description = "9260-5.1-15")
{
	struct ddps_sctp_stats st;

	raw_init(&r);
	r.port->param.max_per_addr = 3;
	for (uint16_t i = 0; i < 3; i++)
		cr_expect(take_sctp_bounds((uint16_t)(1 + i)));
	cr_expect_not(take_sctp_bounds(4));
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.assocs, 3);
	cr_expect_eq(st.refused_full, 1);
	r.from = 3; /* one goes, another one comes */
	raw_chunk(&r, r.a->own_tag, SC_ABORT, 0, NULL, 0);
	cr_expect(take_sctp_bounds(5));
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
	cr_expect(take_sctp_bounds(7));
}

/* Some of every kind of packet that no association takes, @n a kind; how many are answered. */
static unsigned flood_of_strangers(unsigned n, uint32_t stale_tag)
{
	static const uint8_t types[] = { SC_DATA,     SC_SACK,	       SC_HEARTBEAT, SC_SHUTDOWN,
					 SC_INIT_ACK, SC_SHUTDOWN_ACK, SC_ERROR,     0xfe };
	unsigned got = 0;

	for (unsigned i = 0; i < n; i++) {
		r.from = 9; /* nobody's */
		for (unsigned k = 0; k < sizeof types; k++) {
			raw_chunk(&r, 0xabcdef01, types[k], 0, "0123456789abcdef", 16);
			got += r.n;
		}
		r.from = 0; /* an association that is being set up */
		raw_chunk(&r, 0x5555 + i, SC_SHUTDOWN_ACK, 0, NULL, 0);
		got += r.n;
		r.from = 7; /* a cookie of long ago */
		raw_chunk(&r, stale_tag, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
		got += r.n;
	}
	return got;
}

Test(sctp_bounds, attack_3_all_answers_to_strangers_share_one_bound, .fini = fini)
{
	struct ddps_sctp_stats st;
	uint32_t stale_tag;

	raw_init(&r);
	r.from = 7;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	stale_tag = r.tag;
	r.from = 0;
	raw_wait(&r, r.e->c.cookie_life_ms + 1000);
	raw_connect(&r);
	r.e->c.answers_per_s = 100;
	cr_expect_eq(flood_of_strangers(1, stale_tag), 10, "each kind is answered");
	raw_wait(&r, 100);
	for (unsigned k = 0; k < 4; k++) { /* and no kind has a bound of its own */
		unsigned most = k ? 0 : 100;

		cr_expect_leq(flood_of_strangers(100, stale_tag), most, "%u", k);
	}
	ddps_sctp_stats(r.e, &st);
	cr_expect_geq(st.answers_limited, 3900);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
}
