/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP's HEARTBEAT, and packets of many chunks. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

/* ---- heartbeats ---- */

Test(sctp_data, heartbeats_are_answered_in_kind, .fini = fini,
     .description = "9260-3.3.6-1 9260-3.3.6-2 9260-8.3-5 9260-12.4-2")
{
	static const uint8_t info[] = { 0, 1, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0, 0xff, 0xff, 0, 4 };
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, sizeof info);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, sizeof info);
	raw_send(&r);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_HEARTBEAT_ACK);
	cr_expect(c.vlen == sizeof info && !memcmp(c.val, info, sizeof info));
	cr_expect_eq(raw_got(&r, 0, 1, NULL), -1);
}

/* However large it is, it comes back as it was; of many, a few wait at a time. */
Test(sctp_data, large_heartbeats_are_answered_in_kind, .fini = fini,
     .description = "9260-3.3.6-1 9260-3.3.6-2 9260-8.3-5")
{
	static const size_t sizes[] = { 2996, 2997, 3000, 4000, 9001, 60000 };
	static uint8_t pkt[65536], info[65536];
	struct ddps_sctp_route from;

	raw_up(&r);
	from = r.log[0].to;
	for (size_t i = 0; i < sizeof info; i++)
		info[i] = (uint8_t)(i * 7 >> 3);
	info[0] = 0;
	info[1] = 1;
	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		size_t n = sizes[k];

		info[2] = (uint8_t)(n >> 8);
		info[3] = (uint8_t)n;
		r.w = ddps_wbuf_init(pkt, sizeof pkt);
		ddps_sc_put_header(&r.w, RAW_PEER, RAW_PORT, r.tag);
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, n);
		n = (size_t)(r.w.p - pkt);
		ddps_sc_crc_put(pkt, n);
		raw_send_as_is(&r, pkt, n);
		cr_assert_eq(r.n, 1, "%zu octets", sizes[k]);
		cr_expect_eq(r.log[0].len, n);
		pkt[12] = SC_HEARTBEAT_ACK;
		cr_expect(!memcmp(r.log[0].data + 12, pkt + 12, n < 2000 ? n - 12 : 2000));
		cr_expect(!memcmp(&r.log[0].to, &from, sizeof from));
	}
	for (unsigned i = 0; i < 9; i++) { /* a batch of them: the peer asks again */
		uint8_t copy[65536];
		size_t n = (size_t)(r.w.p - pkt);
		struct ddps_sctp_in in = { .from = from, .data = copy, .len = n };

		pkt[12] = SC_HEARTBEAT;
		ddps_sc_crc_put(pkt, n);
		memcpy(copy, pkt, n);
		ddps_sctp_input(r.e, &in, 1, r.net.now);
	}
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.n, 4);
	cr_expect_eq(r.a->nbig, 0);
}

Test(sctp_data, an_idle_path_is_asked, .fini = fini,
     .description = "9260-8.3-1 9260-8.3-7 9260-8.3-8 9260-5.4-d2 pkdr-hb")
{
	struct ddps_sc_chunk c;
	uint8_t info[40], wrong[40];

	raw_up(&r);
	raw_wait(&r, 29000);
	cr_expect_eq(r.n, 0);
	for (unsigned i = 0; i < 40 && !r.n; i++)
		raw_wait(&r, 100);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_HEARTBEAT);
	cr_assert_leq(c.vlen, sizeof info);
	memcpy(info, c.val, c.vlen);
	memcpy(wrong, c.val, c.vlen);
	wrong[5] ^= 1;
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, wrong, c.vlen);
	cr_expect(r.a->path[0]->hb_out);
	raw_chunk(&r, r.tag, SC_HEARTBEAT_ACK, 0, info, c.vlen);
	cr_expect(!r.a->path[0]->hb_out);
}

/* The interval begins with what was sent last, not with the next one that the timer counts. */
Test(sctp_data, contact_05_a_path_is_asked_an_interval_after_its_data, .fini = fini,
     .description = "9260-8.3-1 9260-8.3-7")
{
	for (unsigned ms = 1000; ms < 30000; ms += 7000) {
		uint64_t rto, at;

		raw_up(&r);
		raw_wait(&r, ms);
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
		at = r.net.now;
		raw_sack(&r, r.tsn++, 100000);
		rto = ddps_sent_rto(&r.a->tx, &r.a->path[0]->tx);
		do
			raw_wait(&r, 10);
		while (!raw_any(&r, SC_HEARTBEAT, NULL) && r.net.now - at < 100000 * MS);
		cr_expect_geq(r.net.now - at, 30000 * MS + rto / 2, "%u", ms);
		cr_expect_leq(r.net.now - at, 30010 * MS + rto / 2 * 3, "%u", ms);
		if (ms + 7000 < 30000)
			fini();
	}
}

/* ---- many chunks ---- */

#define SKIPPED 0xbf /* unknown: go on, and say nothing */

static void make_sctp_heartbeat_packet_of(unsigned chunks, uint32_t tsn)
{
	struct ddps_wbuf *w = raw_begin(&r, r.tag);

	for (unsigned i = 0; i < chunks; i++)
		ddps_sc_put_chunk(w, SKIPPED, 0, NULL, 0);
	raw_put_data(&r, tsn, 0, (uint16_t)(tsn - RAW_TSN), 7, "data");
	raw_send(&r);
}

/* What is not DATA costs the sender four octets a chunk. */
Test(sctp_data, chunks_of_a_packet_have_a_bound, .fini = fini)
{
	raw_up(&r);
	make_sctp_heartbeat_packet_of(64, RAW_TSN);
	cr_expect_eq(r.e->st.unknown_chunks, 64);
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(r.e->st.malformed, 0);
	make_sctp_heartbeat_packet_of(65, RAW_TSN + 1);
	cr_expect_eq(r.e->st.unknown_chunks, 128);
	cr_expect_eq(r.messages, 1, "nobody has looked at what is behind");
	cr_expect_eq(r.e->st.malformed, 1);
	make_sctp_heartbeat_packet_of(0, RAW_TSN + 1);
	cr_expect_eq(r.messages, 2, "the association stays");
}
