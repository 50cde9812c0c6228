/* SPDX-License-Identifier: BSD-2-Clause */
/* What both ends agree on, and what can be seen of an association. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_agreed, .fini = fini);

/* What the peer says of itself. */
static const struct said {
	uint32_t rwnd;
	uint16_t os, mis;
	uint8_t params[12];
	size_t len;
	bool has;
	uint32_t adaptation;
	uint16_t in, out; /* we ask for 10 each way */
} said[] = {
	{ 1500, 1, 1, { 0 }, 0, false, 0, 1, 1 },
	{ 99999, 3, 7, { 0xc0, 6, 0, 8, 0, 0, 0, 1 }, 8, true, 1, 3, 7 },
	{ 5000, 10, 10, { 0xc0, 6, 0, 8, 0xfe, 0xdc, 0xba, 0x98 }, 8, true, 0xfedcba98, 10, 10 },
	{ UINT32_MAX, 11, 9, { 0xc0, 6, 0, 8, 0, 0, 0, 0 }, 8, true, 0, 10, 9 },
	{ 4000, 65535, 65535, { 0 }, 0, false, 0, 10, 10 },
};

#define SAID (sizeof said / sizeof *said)

static void check_sctp_agreed(const struct said *s, bool by_us)
{
	struct ddps_sctp_info i;

	ddps_sctp_info(r.a, &i);
	cr_expect_str_eq(i.state, "ESTABLISHED");
	cr_expect_eq(i.port, RAW_PORT);
	cr_expect_eq(i.peer_port, RAW_PEER);
	cr_expect_eq(i.via, 0);
	cr_expect_eq(i.in_streams, s->in, "%u", i.in_streams);
	cr_expect_eq(i.out_streams, s->out, "%u", i.out_streams);
	cr_expect_eq(i.has_adaptation, s->has);
	cr_expect_eq(i.adaptation, s->adaptation);
	cr_expect_eq(i.by_us, by_us);
	cr_expect_eq(i.tag, r.tag);
	cr_expect_eq(i.peer_tag, RAW_TAG);
	cr_expect_eq(i.npaths, 1);
	cr_expect_eq(i.peer_rwnd, s->rwnd);
	cr_expect_eq(i.rwnd, r.e->c.rwnd);
	cr_expect_eq(r.a->tx.next, r.tsn);
	cr_expect_eq(r.a->tx.cum, r.tsn - 1);
	cr_expect_eq(r.a->map.cum, RAW_TSN - 1);
	cr_expect_eq(r.a->path[0]->encap, r.net.node[1].udp);
	cr_expect(r.a->path[0]->confirmed);
	cr_expect_eq(r.a->path[0]->state, DDPS_SCTP_ACTIVE);
}

/* A message on the last stream is taken, on the next one it is not; each way. */
static void check_streams(const struct said *s)
{
	struct ddps_sc_chunk c;

	raw_data(&r, RAW_TSN, (uint16_t)(s->in - 1), 0, 3, "x");
	cr_expect_eq(r.messages, 1);
	raw_data(&r, RAW_TSN + 1, s->in, 0, 3, "x");
	cr_expect_eq(r.messages, 1);
	cr_expect(raw_any(&r, SC_ERROR, &c));
	cr_expect(raw_any(&r, SC_SACK, NULL), "at once [9260-6.5-2]");
	cr_expect_eq(raw_user_send(&r, s->out, 0, "x"), DDPS_E_INVAL);
	cr_expect_eq(raw_user_send(&r, (uint16_t)(s->out - 1), 0, "x"), 0);
	cr_expect(raw_any(&r, SC_DATA, &c));
}

Test(sctp_agreed, when_the_peer_opens, .description = "9260-5.1.1-1 9260-3.3.3-8")
{
	for (unsigned k = 0; k < SAID; k++) {
		struct ddps_sc_init i;
		struct ddps_sc_chunk c;

		if (k)
			fini();
		raw_init(&r);
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, said[k].rwnd, said[k].os, said[k].mis, RAW_TSN,
			     said[k].params, said[k].len);
		raw_send(&r);
		cr_assert(raw_take_init_ack(&r));
		cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
		raw_got(&r, 0, 0, &c);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		cr_expect_eq(i.rwnd, r.e->c.rwnd);
		cr_expect_eq(i.os, said[k].out, "no more than the peer takes");
		cr_expect_eq(i.mis, 10);
		cr_expect(i.has_adaptation && i.adaptation == 1);
		cr_expect_eq(i.naddr, 0, "with one address there is none to tell");
		cr_expect(i.tag && i.tag != RAW_TAG);
		raw_echo(&r);
		cr_assert_eq(r.accepted, 1);
		check_sctp_agreed(&said[k], false);
		check_streams(&said[k]);
	}
}

static void send_sctp_agreed_init_ack(const struct said *s)
{
	uint8_t *at = ddps_sc_begin_chunk(raw_begin(&r, r.tag), SC_INIT_ACK, 0);

	ddps_wbuf_u32(&r.w, RAW_TAG);
	ddps_wbuf_u32(&r.w, s->rwnd);
	ddps_wbuf_u16(&r.w, s->os);
	ddps_wbuf_u16(&r.w, s->mis);
	ddps_wbuf_u32(&r.w, RAW_TSN);
	ddps_wbuf_bytes(&r.w, s->params, s->len);
	ddps_wbuf_bytes(&r.w, "\0\7\0\10cook", 8);
	ddps_sc_end_chunk(&r.w, at, 0);
	raw_send(&r);
}

Test(sctp_agreed, when_we_open, .description = "9260-5.1.1-1 9260-3.3.2-12")
{
	for (unsigned k = 0; k < SAID; k++) {
		struct ddps_sc_init i;
		struct ddps_sc_chunk c;

		if (k)
			fini();
		raw_init(&r);
		raw_connect(&r);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
		cr_expect_eq(raw_got_tag(&r, 0), 0);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		cr_expect_eq(i.rwnd, r.e->c.rwnd);
		cr_expect_eq(i.os, 10);
		cr_expect_eq(i.mis, 10);
		cr_expect(!i.has_adaptation);
		cr_expect_eq(i.naddr, 0);
		r.tag = i.tag;
		r.tsn = i.tsn;
		send_sctp_agreed_init_ack(&said[k]);
		cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_COOKIE_ECHO);
		cr_expect_eq(c.vlen, 4);
		cr_expect_eq(memcmp(c.val, "cook", 4), 0);
		raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
		cr_assert_eq(r.ups, 1);
		check_sctp_agreed(&said[k], true);
		check_streams(&said[k]);
	}
}

/* What INIT ACK has and nobody knows goes back whole, behind the cookie. */
Test(sctp_agreed, what_is_not_understood_is_shown, .description = "9260-3.2.2-2")
{
	struct said s = said[1];

	for (uint8_t n = 4; n <= 9; n++) {
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;

		if (n > 4)
			fini();
		raw_init(&r);
		raw_connect(&r);
		raw_got(&r, 0, 0, &c);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		r.tag = i.tag;
		memcpy(s.params, "\xc1\1\0\0what?\0\0", 12);
		s.params[3] = n;
		memset(s.params + n, 0, 12u - n);
		s.len = ddps_sc_pad(n);
		send_sctp_agreed_init_ack(&s);
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
		cr_assert_eq(raw_got(&r, 0, 1, &c), SC_ERROR);
		cr_expect_eq(c.flags, 0);
		cr_expect_eq(c.val[0] << 8 | c.val[1], SC_CAUSE_PARAMS);
		cr_expect_eq(c.val[2] << 8 | c.val[3], 4 + (int)s.len);
		cr_expect_eq(c.vlen, 4 + s.len);
		cr_expect_eq(memcmp(c.val + 4, s.params, s.len), 0);
	}
}

Test(sctp_agreed, an_init_ack_that_is_too_short_is_none)
{
	static const uint8_t zero[16];

	for (size_t n = 0; n < 16; n++) {
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;

		if (n)
			fini();
		raw_init(&r);
		raw_connect(&r);
		raw_got(&r, 0, 0, &c);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		raw_chunk(&r, i.tag, SC_INIT_ACK, 0, zero, n);
		cr_expect_eq(r.n, 0);
		cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
		cr_expect_eq(r.e->st.malformed, 1);
	}
}

/* ---- counted for the user ---- */

static struct ddps_sctp_info see_in_sctp_agreed(void)
{
	struct ddps_sctp_info i;

	ddps_sctp_info(r.a, &i);
	return i;
}

Test(sctp_agreed, what_is_counted_of_an_association)
{
	struct ddps_sctp_info was, i;

	raw_up(&r);
	was = see_in_sctp_agreed();
	cr_expect_eq(was.received_packets, 1, "COOKIE ECHO");
	cr_expect_eq(was.sent_packets, 1, "COOKIE ACK");
	raw_data(&r, RAW_TSN, 0, 0, 3, "one");
	i = see_in_sctp_agreed();
	cr_expect_eq(i.received_packets, 2);
	cr_expect_eq(i.received_chunks, 1);
	cr_expect_eq(i.sent_packets, 2);
	cr_expect_eq(i.sent_chunks, 0);
	raw_data(&r, RAW_TSN, 0, 0, 3, "one");
	i = see_in_sctp_agreed();
	cr_expect_eq(i.received_chunks, 1);
	cr_expect_eq(i.duplicates, 1);
	raw_data(&r, RAW_TSN + 2, 0, 2, 3, "ahead");
	i = see_in_sctp_agreed();
	cr_expect_eq(i.received_chunks, 2);
	cr_expect_eq(i.out_of_order, 5 + DDPS_SC_ITEM);
	cr_expect_eq(i.rwnd, r.e->c.rwnd - 5 - 2 * DDPS_SC_ITEM);
	cr_assert_eq(raw_user_send(&r, 0, 0, "four"), 0);
	cr_assert_eq(raw_user_send(&r, 0, 0, "four"), 0);
	i = see_in_sctp_agreed();
	cr_expect_eq(i.sent_chunks, 2);
	cr_expect_eq(i.unsent, 0);
	cr_expect_eq(i.unacked, 2 * 4);
	cr_expect_eq(i.retransmitted + i.timeouts + i.gaps, 0);
	{
		uint32_t val[4] = { htobe32(r.tsn - 1), htobe32(100000), htobe32(1 << 16),
				    htobe32(2 << 16 | 2) };

		raw_chunk(&r, r.tag, SC_SACK, 0, val, sizeof val);
	}
	i = see_in_sctp_agreed();
	cr_expect_eq(i.gaps, 1);
	cr_expect_eq(ddps_sctp_acked(r.a), 0);
	raw_wait(&r, 5000);
	i = see_in_sctp_agreed();
	cr_expect_geq(i.retransmitted, 1);
	raw_sack(&r, r.tsn + 1, 77777);
	i = see_in_sctp_agreed();
	cr_expect_eq(i.unacked, 0);
	cr_expect_eq(i.peer_rwnd, 77777);
	cr_expect_eq(ddps_sctp_acked(r.a), 2);
	cr_expect_eq(ddps_sctp_sent(r.a), 2);
}

Test(sctp_agreed, what_can_be_seen_of_a_path)
{
	struct ddps_sctp_path_info p;
	struct ddps_sent_path *tx;

	raw_up(&r);
	tx = &r.a->path[0]->tx;
	tx->srtt = 40 * MS;
	tx->rttvar = 300 * MS;
	tx->min_rtt = 30 * MS;
	tx->cc.cwnd = 12345;
	tx->cc.ssthresh = 23456;
	tx->flight = 3456;
	tx->resent = 7;
	tx->t3s = 3;
	r.a->path[0]->errors = 2;
	cr_assert_eq(ddps_sctp_path_info(r.a, 0, &p), 0);
	cr_expect_eq(ddps_sctp_path_info(r.a, 1, &p), DDPS_E_INVAL);
	cr_expect(ddps_sc_addr_eq(&p.peer, &r.net.node[1].addr[0]));
	cr_expect(ddps_sc_addr_eq(&p.local, &r.net.node[0].addr[0]));
	cr_expect_eq(p.encap, 9899);
	cr_expect_eq(p.state, DDPS_SCTP_ACTIVE);
	cr_expect(p.primary && p.in_use);
	cr_expect_eq(p.srtt_ns, 40 * MS);
	cr_expect_eq(p.rttvar_ns, 300 * MS);
	cr_expect_eq(p.rto_ns, 1240 * MS);
	cr_expect_eq(p.min_rtt_ns, 30 * MS);
	cr_expect_eq(p.cwnd, 12345);
	cr_expect_eq(p.ssthresh, 23456);
	cr_expect_eq(p.flight, 3456);
	cr_expect_eq(p.retransmitted, 7);
	cr_expect_eq(p.timeouts, 3);
	cr_expect_eq(p.mtu, 1500);
	cr_expect_eq(p.errors, 2);
	cr_expect_eq(see_in_sctp_agreed().retransmitted, 7);
	cr_expect_eq(see_in_sctp_agreed().timeouts, 3);
	tx->flight = 0;
}

/* ---- a SACK that rides ---- */

/* It rides where the message fits next to it, whole with its pad. */
Test(sctp_agreed, what_a_sack_rides_with, .description = "9260-6.1-16")
{
	static const struct {
		int more;
		bool rides;
	} is[] = { { -1000, true }, { -1, true }, { 0, true }, { 1, false }, { 100, false } };

	for (unsigned k = 0; k < sizeof is / sizeof *is; k++) {
		static char text[2000];
		struct iovec iov = { text, 0 };
		size_t most;

		if (k)
			fini();
		raw_up(&r);
		raw_data(&r, RAW_TSN, 0, 0, 3, "a");
		raw_data(&r, RAW_TSN + 1, 0, 1, 3, "b");
		cr_assert(!raw_any(&r, SC_SACK, NULL), "it may wait");
		most = ddps_sent_smss(&r.a->path[0]->tx) - 16 - DDPS_SC_DATA_HDR - 3;
		iov.iov_len = (size_t)((int)most + is[k].more);
		cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
		r.n = 0;
		sn_flush(&r.net);
		cr_assert_eq(raw_got(&r, 0, is[k].rides, NULL), SC_DATA, "%u", k);
		if (is[k].rides)
			cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SACK, "%u", k);
	}
}

/* What waits to be acknowledged needs no SACK behind SHUTDOWN ACK: the peer has sent all. */
Test(sctp_agreed, no_sack_behind_shutdown_ack, .description = "9260-9.2-13")
{
	uint32_t cum;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, 3, "a");
	raw_data(&r, RAW_TSN + 1, 0, 1, 3, "b");
	cr_assert(!raw_any(&r, SC_SACK, NULL), "it may wait");
	cum = htobe32(r.tsn - 1);
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_expect(raw_any(&r, SC_SHUTDOWN_ACK, NULL));
	cr_expect(!raw_any(&r, SC_SACK, NULL));
	raw_wait(&r, 300);
	cr_expect(!raw_any(&r, SC_SACK, NULL));
}

/* ---- more than fits into eight bits ---- */

Test(sctp_agreed, three_hundred_gaps)
{
	struct ddps_sc_chunk c;
	struct ddps_sc_sack k;

	raw_up(&r);
	for (uint32_t i = 1; i <= 300; i++)
		raw_data(&r, RAW_TSN + 2 * i, 0, 0, SC_DATA_U | 3, "x");
	cr_assert(raw_any(&r, SC_SACK, &c));
	cr_assert_eq(ddps_sc_decode_sack(&k, &c), 0);
	cr_expect_eq(k.cum, RAW_TSN - 1);
	cr_expect_eq(k.ngaps, 300);
	cr_expect_eq(k.ndups, 0);
	for (unsigned i = 0; i < 300; i++) {
		cr_assert_eq(k.gaps[4 * i] << 8 | k.gaps[4 * i + 1], (int)(2 * i + 3));
		cr_assert_eq(k.gaps[4 * i + 2] << 8 | k.gaps[4 * i + 3], (int)(2 * i + 3));
	}
}

/* ---- packets that did not leave ---- */

static struct iovec iov[64];
static uint8_t head[DDPS_SCTP_HEAD_MIN];
static struct ddps_sctp_out out;

static bool take_sctp_agreed(unsigned segs)
{
	out = (struct ddps_sctp_out){ .iov = iov,
				      .iov_max = 64,
				      .head = head,
				      .head_max = sizeof head,
				      .max_segs = segs,
				      .max_len = 65507 };
	return ddps_sctp_output(r.e, &out, r.net.now);
}

/* Before any DATA came nothing but the answer itself is of use, and nothing of a large one. */
Test(sctp_agreed, an_answer_that_did_not_leave)
{
	static char text[DDPS_SC_BLOB_BIG + 1];

	raw_up(&r);
	ddps_sc_put_chunk(raw_begin(&r, r.tag), SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
	raw_hand(&r);
	cr_assert(take_sctp_agreed(1));
	ddps_sctp_unsent(r.e, &out, r.net.now);
	cr_expect_eq(r.a->due, 0);
	cr_assert(take_sctp_agreed(1));
	cr_expect_eq(out.head[DDPS_SC_HDR], SC_HEARTBEAT_ACK);
	cr_expect_not(take_sctp_agreed(1));
	ddps_sc_put_chunk(raw_begin(&r, r.tag), SC_HEARTBEAT, 0, text, sizeof text);
	raw_hand(&r);
	cr_assert(take_sctp_agreed(1));
	cr_expect_eq(out.niov, 2);
	ddps_sctp_unsent(r.e, &out, r.net.now);
	cr_expect_not(take_sctp_agreed(1));
}

/* A run has as many packets as were asked for, and a SACK that is due is one of them. */
Test(sctp_agreed, a_run_with_a_sack)
{
	static char text[20000];
	const struct iovec all = { text, sizeof text };

	for (unsigned segs = 1; segs <= 5; segs++) {
		if (segs > 1)
			fini();
		raw_up(&r);
		cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &all, 1, r.net.now), 0);
		raw_begin(&r, r.tag);
		raw_put_data(&r, RAW_TSN, 0, 0, 3, "x");
		raw_hand(&r);
		cr_assert(take_sctp_agreed(segs));
		cr_expect_eq(out.nsegs, segs, "%u: %u", segs, out.nsegs);
		cr_expect_eq(out.sack, segs > 1, "%u", segs);
	}
}

/* ---- what waits ---- */

/* No more than leaves in half a millisecond, but two packets. */
Test(sctp_agreed, how_much_may_wait)
{
	static const struct {
		uint64_t srtt, cwnd;
		size_t most;
	} is[] = { { 0, 100000, 2920 }, /* nothing is known of the path */
		   { 1, 25000, 25000 }, /* 50 MB/s */
		   { 1, 100000, 100000 },
		   { 100, 25000, 2920 } };

	for (unsigned k = 0; k < sizeof is / sizeof *is; k++)
		for (unsigned more = 0; more < 2; more++) {
			static char text[100001];
			struct iovec one = { text, is[k].most - 1 + more };
			struct iovec then = { text, 1 };
			struct ddps_cc *cc;

			if (k || more)
				fini();
			raw_up(&r);
			cc = &r.a->data_path->tx.cc;
			cr_assert_eq(cc->smss, 1460);
			cc->srtt = is[k].srtt * MS;
			cc->cwnd = is[k].cwnd;
			cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &one, 1, r.net.now), 0);
			cr_expect_eq(ddps_sctp_send(r.a, 0, 17, 0, &then, 1, r.net.now),
				     more ? DDPS_E_AGAIN : 0, "%u", k);
		}
}
