/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of SCTP for an association that is up, each with few packets. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

/* ---- ICMP and encapsulation ---- */

Test(sctp_rules, icmp_that_changes_nothing, .fini = fini,
     .description = "9260-10-1 9260-10-2 9260-10-3 9260-12.4-1 8899-4.6-2 8899-4.6-5 6951-5.5-1 "
		    "6951-5.5-3")
{
	struct ddps_sctp_route to = { .peer = sn_v4(10, 0, 0, 2), .encap = 9899 };
	uint64_t believed, ignored;
	uint8_t quote[40];
	uint32_t mtu;

	raw_up(&r);
	raw_user_send(&r, 0, 0, "quoted");
	memcpy(quote, r.log[0].data, sizeof quote);
	mtu = r.a->path[0]->tx.pmtu.size;
	believed = r.e->st.icmp_believed;
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH, 0, quote, 40, r.net.now); /* of a host */
	quote[4] ^= 1;								   /* another tag */
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_TOO_BIG, 600, quote, 40, r.net.now);
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PROTO, 0, quote, 40, r.net.now);
	quote[4] ^= 1;
	quote[1] ^= 1; /* another port */
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_TOO_BIG, 600, quote, 40, r.net.now);
	quote[1] ^= 1;
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_TOO_BIG, 600, quote, 7, r.net.now); /* too short */
	to.peer = sn_v4(10, 9, 9, 9);
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_TOO_BIG, 600, quote, 40, r.net.now);
	to.peer = sn_v4(10, 0, 0, 2);
	to.encap = 0; /* not where we send it */
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PORT, 0, quote, 40, r.net.now);
	cr_expect_eq(r.e->st.icmp_believed, believed);
	/* straight on IP a port means nothing: SCTP has its own */
	r.net.node[1].udp = 0;
	raw_data(&r, RAW_TSN, 0, 0, 7, "raw");
	cr_assert_eq(r.a->path[0]->encap, 0);
	ignored = r.e->st.icmp_ignored;
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PORT, 0, quote, 40, r.net.now);
	cr_expect_eq(r.e->st.icmp_ignored, ignored + 1);
	cr_expect_eq(r.e->st.icmp_believed, believed);
	cr_expect_eq(r.a->path[0]->tx.pmtu.size, mtu);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	r.e->c.icmp_grace = 0; /* but a protocol that nobody speaks is the end */
	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH_PROTO, 0, quote, 40, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.e->st.icmp_believed, believed + 1);
	cr_expect_eq(r.gone, 1);
}

Test(sctp_rules, udp_ports_are_of_each_address, .fini = fini,
     .description = "6951-5.1-1 6951-5.1-d1 6951-5.3-1 6951-5.4-1 6951-5.4-2")
{
	raw_up(&r);
	cr_expect_eq(r.log[0].to.encap, 9899);
	r.net.node[1].udp = 12345;
	raw_data(&r, RAW_TSN, 0, 0, 7, "moved");
	cr_expect_eq(r.log[0].to.encap, 12345);
	r.net.node[1].udp = 0; /* a raw packet, and the right tag */
	raw_data(&r, RAW_TSN + 1, 0, 0, 7 | SC_DATA_I, "raw");
	raw_user_send(&r, 0, 0, "back");
	cr_expect_eq(r.log[0].to.encap, 0);
	r.net.node[1].udp = 9899;
	raw_chunk(&r, r.tag ^ 1, SC_HEARTBEAT, 0, "\0\1\0\4", 4);
	raw_user_send(&r, 0, 0, "again");
	cr_expect_eq(r.a->path[0]->encap, 0);
}

/* ---- probes for a larger MTU ---- */

Test(sctp_rules, probes_are_heartbeat_and_pad, .fini = fini,
     .description = "8899-6.2-1 8899-6.2-d1 8899-8-1 9260-7.3-1 9260-6.3.1-1")
{
	struct ddps_sc_chunk hb, pad;
	size_t len;

	raw_init(&r);
	r.port->param.fixed_mtu = 0;
	r.port->param.mtu = 1500;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.n, 2);
	cr_assert_eq(raw_got(&r, 1, 0, &hb), SC_HEARTBEAT);
	cr_expect_eq(raw_got(&r, 1, 1, &pad), SC_PAD);
	cr_expect_eq(raw_got(&r, 1, 2, NULL), -1);
	len = r.log[1].len;
	cr_expect_gt(len, hb.len + 16 + 600);
	raw_wait(&r, 100);
	cr_expect_eq(r.n, 0); /* one at a time */
	raw_wait(&r, 20000);  /* lost: no harm */
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	cr_expect_eq(r.a->errors, 0);
	cr_expect_eq(r.a->path[0]->errors, 0);
	cr_expect_geq(ddps_sctp_max_chunk(r.a), 500);
}

/* ---- ends ---- */

Test(sctp_rules, a_user_that_forgets_it_aborts_it, .fini = fini, .description = "9260-9-1")
{
	struct ddps_sctp_assoc *a;

	raw_up(&r);
	a = r.a;
	r.a = NULL;
	ddps_sctp_assoc_free(a, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_eq(r.e->st.assocs, 0);
}

/* Times of the packets with @type while nobody answers; how many. */
static unsigned repeats(uint8_t type, uint64_t *at, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 40000 && !r.gone; i++) {
		raw_wait(&r, 20);
		if (raw_any(&r, type, NULL) && n < max)
			at[n++] = r.net.now;
	}
	return n;
}

Test(sctp_rules, t2_backs_off, .description = "9260-9.2-3 9260-9.2-4 9260-9.2-14 9260-9.2-13")
{
	for (unsigned k = 0; k < 2; k++) {
		uint64_t at[20];
		unsigned n;
		uint32_t cum;

		raw_up(&r);
		cum = htobe32(r.tsn - 1);
		if (k)
			raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, 4);
		else
			ddps_sctp_shutdown(r.a, r.net.now);
		n = repeats(k ? SC_SHUTDOWN_ACK : SC_SHUTDOWN, at, 20);
		cr_expect_eq(r.gone, 1);
		cr_expect(n >= 4 && n <= 12, "%u", n);
		for (unsigned i = 2; i < 5 && i < n; i++)
			cr_expect_gt(at[i] - at[i - 1], (at[i - 1] - at[i - 2]) * 3 / 2);
		raw_fini(&r);
	}
}

Test(sctp_rules, a_sign_of_life_renews_t2, .fini = fini, .description = "9260-9.2-5 9260-8.3-d1")
{
	raw_up(&r);
	ddps_sctp_shutdown(r.a, r.net.now);
	for (unsigned i = 0; i < 50; i++) { /* longer than all repeats would take */
		raw_wait(&r, 5000);
		cr_expect(!raw_any(&r, SC_HEARTBEAT, NULL));
		raw_chunk(&r, r.tag, SC_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
		cr_expect(raw_any(&r, SC_HEARTBEAT_ACK, NULL));
	}
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-SENT");
	cr_expect_eq(r.gone, 0);
}

Test(sctp_rules, a_shutdown_after_the_peers_is_moot, .fini = fini, .description = "9260-9.2-6")
{
	uint32_t cum;

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "owed"), 0);
	cum = htobe32(r.tsn - 1);
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, 4);
	ddps_sctp_shutdown(r.a, r.net.now);
	raw_wait(&r, 1);
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-RECEIVED");
	cr_expect(!raw_any(&r, SC_SHUTDOWN, NULL));
}

/* ---- counts ---- */

Test(sctp_rules, answers_clear_the_counts, .fini = fini,
     .description = "9260-8.1-5 9260-8.1-6 9260-8.2-1 9260-8.2-3 9260-8.2-d1 9260-8.3-3 9260-8.3-6 "
		    "etsi-fh-5-1-2")
{
	struct ddps_sc_chunk c;
	uint8_t info[40];

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	for (unsigned i = 0; i < 100 && r.a->errors < 2; i++)
		raw_wait(&r, 100);
	cr_assert_eq(r.a->errors, 2); /* two T3s */
	cr_expect_eq(r.a->path[0]->errors, 2);
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(r.a->errors, 0);
	cr_expect_eq(r.a->path[0]->errors, 0);
	for (unsigned i = 0; i < 1000 && !r.a->errors; i++) {
		raw_wait(&r, 100);
		if (raw_any(&r, SC_HEARTBEAT, &c))
			memcpy(info, c.val, c.vlen);
	}
	cr_assert_eq(r.a->errors, 1); /* a HEARTBEAT that nobody answered */
	for (unsigned i = 0; i < 1000; i++) {
		raw_wait(&r, 100);
		if (raw_any(&r, SC_HEARTBEAT, &c))
			break;
	}
	memcpy(info, c.val, c.vlen);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, info, c.vlen);
	cr_expect_eq(r.a->errors, 0);
	cr_expect_eq(r.a->path[0]->errors, 0);
	cr_expect_gt(r.a->path[0]->tx.srtt, 0);
}

/* ---- the window that we tell ---- */

Test(sctp_rules, small_openings_are_not_told, .fini = fini,
     .description = "9260-6.2-6 9260-6.2-11 9260-6.2-20 9260-6.2-21")
{
	struct ddps_sc_chunk c;
	unsigned sacks = 0;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, 7, "first");
	ddps_sctp_keep(r.a, (int64_t)r.e->c.rwnd - 1000, r.net.now); /* the user keeps it */
	raw_data(&r, RAW_TSN + 1, 0, 0, 7 | SC_DATA_I, "second");
	raw_wait(&r, 1);
	raw_data(&r, RAW_TSN + 2, 0, 0, 7 | SC_DATA_I, "third: there is no room");
	cr_assert(raw_any(&r, SC_SACK, &c));
	cr_expect(!memcmp(c.val + 4, "\0\0\0\0", 4), "1000 octets are none");
	for (unsigned i = 0; i < 1000; i++) { /* it takes little by little */
		ddps_sctp_keep(r.a, -1000, r.net.now);
		raw_wait(&r, 1);
		sacks += raw_any(&r, SC_SACK, NULL);
	}
	cr_expect(sacks >= 1 && sacks <= 6, "%u", sacks);
}
