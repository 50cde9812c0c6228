/* SPDX-License-Identifier: BSD-2-Clause */
/* SACKs at their bounds: what they name, how long they get, and when they leave. */
#include "sctp_raw_fixture.h"

#define N(a)  (sizeof(a) / sizeof *(a))
#define WHOLE (SC_DATA_B | SC_DATA_E)

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_named, .fini = fini);

static void bring_named_data(uint32_t tsn, uint16_t ssn, const char *text)
{
	raw_begin(&r, r.tag);
	raw_put_data(&r, tsn, 0, ssn, WHOLE, text);
	raw_hand(&r);
}

/* ---- ours ---- */

Test(sctp_named, as_many_duplicates_are_reported_as_are_kept, .description = "9260-3.3.4-d3")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_begin(&r, r.tag);
	for (unsigned i = 0; i < DDPS_SC_DUPS + 2; i++)
		raw_put_data(&r, RAW_TSN, 0, 0, WHOLE, "x");
	raw_send(&r);
	cr_assert(raw_any(&r, SC_SACK, &c));
	cr_expect_eq(c.val[11], DDPS_SC_DUPS, "%u", c.val[11]);
	cr_expect_eq(c.vlen, 12 + 4 * DDPS_SC_DUPS);
}

/* First the blocks, then the duplicates; what there is no room for is left out. */
Test(sctp_named, a_sack_takes_no_more_than_its_room)
{
	static const struct {
		uint8_t words, gaps, dups;
	} row[] = { { 0, 0, 0 }, { 1, 1, 0 }, { 2, 2, 0 }, { 3, 2, 1 }, { 5, 2, 3 }, { 9, 2, 3 } };

	for (size_t i = 0; i < N(row); i++) {
		uint8_t buf[128];
		struct ddps_wbuf w = ddps_wbuf_init(buf, sizeof buf);

		raw_up(&r);
		bring_named_data(RAW_TSN + 2, 2, "a");
		bring_named_data(RAW_TSN + 4, 4, "b");
		for (unsigned k = 0; k < 3; k++)
			bring_named_data(RAW_TSN + 4, 4, "b");
		cr_expect_eq(ddps_sc_put_sack(r.a, &w, 16 + 4u * row[i].words),
			     16 + 4u * (row[i].gaps + row[i].dups));
		cr_expect_eq(buf[13], row[i].gaps);
		cr_expect_eq(buf[15], row[i].dups);
		fini();
	}
	raw_init(&r);
}

/* Until all that waited at the last SACK without a window is acknowledged, it fills what the peer opens. */
Test(sctp_named, behind_what_waited_for_a_window)
{
	struct ddps_sctp_info i;
	uint32_t tsn;

	raw_up(&r);
	tsn = r.a->tx.next;
	for (unsigned n = 0; n < 3; n++)
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	sn_flush(&r.net);
	raw_sack(&r, tsn, 1000);
	ddps_sctp_info(r.a, &i);
	cr_expect_not(i.behind, "there was room");
	raw_sack(&r, tsn, 0);
	ddps_sctp_info(r.a, &i);
	cr_expect(i.behind);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	raw_sack(&r, tsn + 1, 1000000);
	ddps_sctp_info(r.a, &i);
	cr_expect(i.behind, "of one that waited");
	raw_sack(&r, tsn + 2, 1000000);
	ddps_sctp_info(r.a, &i);
	cr_expect_not(i.behind, "what came later did not wait");
}

/* A window that was too small for a packet, or has grown by a quarter. */
Test(sctp_named, when_a_window_is_announced_anew, .description = "9260-6.2-11")
{
	uint32_t all, least;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, WHOLE, "x");
	raw_wait(&r, 100);
	all = (uint32_t)r.e->c.rwnd;
	least = ddps_sent_smss(&r.a->data_path->tx);
	for (unsigned i = 0; i < 7; i++) {
		static const struct {
			bool saw;
			uint8_t state;
			int32_t grown, more;
			bool want;
		} row[] = {
			{ true, SC_ESTABLISHED, 1, -1, true }, /* from less than a packet */
			{ true, SC_ESTABLISHED, 1, 0, false }, /* from a packet */
			{ true, SC_SENT, 1, -1, true },
			{ true, SC_RECEIVED, 1, -1, false },
			{ true, SC_ACK_SENT, 1, -1, false },
			{ false, SC_ESTABLISHED, 1, -1, false },
			{ true, SC_ESTABLISHED, 0, 100, false },
		};

		r.a->due = 0;
		r.a->saw_data = row[i].saw;
		r.a->state = row[i].state;
		r.a->told_rwnd = least + (uint32_t)row[i].more;
		r.a->kept = all - DDPS_SC_ITEM - (row[i].grown ? 1500 : r.a->told_rwnd);
		ddps_sc_window_update(r.a);
		cr_expect_eq(r.a->due, row[i].want ? DUE_SACK : 0, "%u", i);
	}
	r.a->state = SC_ESTABLISHED;
	r.a->saw_data = true;
	r.a->kept = 0;
	for (unsigned less = 0; less < 2; less++) {
		r.a->due = 0;
		r.a->told_rwnd = all - all / 4 + less;
		ddps_sc_window_update(r.a);
		cr_expect_eq(r.a->due, less ? 0 : DUE_SACK);
	}
}

/* Two chunks that seemed lost and were sent again, and both of which came twice. */
Test(sctp_named, each_duplicate_that_a_sack_names_is_seen)
{
	uint32_t val[5];
	struct ddps_sc_path *p;

	raw_up(&r);
	p = r.a->path[0];
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	raw_wait(&r, 20);
	val[0] = htobe32(r.tsn - 1);
	val[1] = htobe32(100000);
	val[2] = htobe32(1 << 16);
	val[3] = htobe32(3 << 16 | 5);
	raw_chunk(&r, r.tag, SC_SACK, 0, val, 16);
	for (unsigned i = 0; i < 20 && p->tx.resent < 2; i++)
		raw_wait(&r, 10);
	cr_assert_eq(p->tx.resent, 2);
	val[0] = htobe32(r.tsn + 4);
	val[2] = htobe32(2);
	val[3] = htobe32(r.tsn);
	val[4] = htobe32(r.tsn + 1);
	raw_chunk(&r, r.tag, SC_SACK, 0, val, sizeof val);
	cr_expect_eq(p->tx.spurious, 2);
}

/* Of blocks and of duplicates 1,024 are looked at: there is room for no more. */
Test(sctp_named, a_sack_that_names_more_than_is_looked_at)
{
	static uint8_t pkt[12 + 16 + 4 * 2 * 1026];

	for (uint16_t gaps = 1; gaps <= 1026; gaps += 1025) {
		struct ddps_wbuf w = ddps_wbuf_init(pkt, sizeof pkt);
		uint8_t *at;

		raw_up(&r);
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
		ddps_sc_put_header(&w, RAW_PEER, RAW_PORT, r.tag);
		at = ddps_sc_begin_chunk(&w, SC_SACK, 0);
		ddps_wbuf_u32(&w, r.tsn - 1);
		ddps_wbuf_u32(&w, 100000);
		ddps_wbuf_u16(&w, gaps);
		ddps_wbuf_u16(&w, 1026);
		for (uint16_t i = 0; i < gaps; i++)
			ddps_wbuf_u32(&w, 2 << 16 | 2);
		for (unsigned i = 0; i < 1026; i++)
			ddps_wbuf_u32(&w, 3 << 16 | 3);
		ddps_sc_end_chunk(&w, at, 0);
		ddps_sc_crc_put(pkt, (size_t)(w.p - pkt));
		raw_send_as_is(&r, pkt, (size_t)(w.p - pkt));
		cr_assert_str_eq(raw_state(&r), "ESTABLISHED");
		cr_expect_eq(r.e->st.malformed, 0);
		cr_expect_eq(r.a->n_gaps, gaps);
		cr_expect_eq(r.a->path[0]->tx.nsacked, gaps == 1, "%u", gaps);
		cr_expect_eq(r.a->tx.bad_blocks, gaps != 1, "the same one again");
		fini();
	}
	raw_init(&r);
}

/* ---- when ---- */

Test(sctp_named, how_long_a_sack_may_wait, .description = "9260-6.2-7 9260-6.2-12")
{
	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, WHOLE, "x");
	raw_wait(&r, 100);
	r.a->path[0]->tx.late = 255;
	raw_data(&r, RAW_TSN + 1, 0, 1, WHOLE, "x");
	cr_expect_eq(r.a->sack_at, r.net.now + 20 * MS - 20 * MS / 4096 * 255);
}

/* One that asks for its SACK: what is as long as bulk data is has it immediately. */
Test(sctp_named, a_short_request_may_wait_for_its_answer, .description = "9260-6.2-7")
{
	static uint8_t pkt[4104], text[2048];

	for (unsigned more = 0; more < 2; more++) {
		struct ddps_wbuf w = ddps_wbuf_init(pkt, sizeof pkt);

		raw_up(&r);
		raw_data(&r, RAW_TSN, 0, 0, WHOLE, "x");
		raw_wait(&r, 100);
		r.e->c.sack_grace_us = 1000;
		ddps_sc_put_header(&w, RAW_PEER, RAW_PORT, r.tag);
		for (unsigned k = 0; k < 2; k++) {
			uint8_t *at = ddps_sc_begin_chunk(&w, SC_DATA, WHOLE | SC_DATA_I);

			ddps_wbuf_u32(&w, RAW_TSN + 1 + k);
			ddps_wbuf_u32(&w, k + 1);
			ddps_wbuf_u32(&w, 17);
			ddps_wbuf_bytes(&w, text, 2024 + k * (4 + 4 * more));
			ddps_sc_end_chunk(&w, at, 0);
		}
		cr_assert_not(w.failed);
		cr_assert_eq((size_t)(w.p - pkt), 4096 + 4 * more);
		ddps_sc_crc_put(pkt, 4096 + 4 * more);
		raw_send_as_is(&r, pkt, 4096 + 4 * more);
		cr_expect_eq(r.messages, 3);
		cr_expect_eq(raw_any(&r, SC_SACK, NULL), more, "%u", more);
		cr_expect_eq(r.a->sack_at, more ? UINT64_MAX : r.net.now + MS);
		fini();
	}
	raw_init(&r);
}
