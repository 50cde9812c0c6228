/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever was received, held, sent or asked for: no memory of it is left. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"

static struct raw r;

static void expect_nothing_left(long n)
{
	raw_fini(&r);
	cr_expect_eq(mem_live(), n, "%ld more", mem_live() - n);
}

/* What an engine without association has. */
static long measure_engine_memory(void)
{
	raw_init(&r);
	raw_fini(&r);
	return mem_live();
}

/* ---- received ---- */

static void pieces_in_order(void)
{
	raw_data(&r, r.next, 0, 0, 2, "one ");
	raw_data(&r, r.next + 1, 0, 0, 0, "message ");
	raw_data(&r, r.next + 2, 0, 0, 1, "only");
	cr_assert_eq(r.messages, 1);
	r.next += 3;
}

static void pieces_out_of_order(void)
{
	raw_data(&r, r.next + 2, 0, 1, 1, "only");
	raw_data(&r, r.next, 0, 1, 2, "one ");
	raw_data(&r, r.next + 1, 0, 1, 0, "message ");
	cr_assert_eq(r.messages, 2);
	r.next += 3;
}

static void pieces_that_stay(void)
{
	raw_data(&r, r.next, 0, 2, 2, "one ");
	raw_data(&r, r.next + 1, 0, 2, 0, "message ");
	raw_data(&r, r.next + 5, 1, 0, 1, "of another");
	cr_assert_eq(r.messages, 2);
}

static void messages_that_wait(void)
{
	raw_data(&r, r.next + 7, 2, 1, 3, "second");
	raw_data(&r, r.next + 8, 2, 2, 3, "third");
	raw_data(&r, r.next + 8, 2, 2, 3, "third");
	cr_assert_eq(r.messages, 2);
}

static void hold_leaves_stream(uint16_t sid, bool on)
{
	cr_assert_eq(ddps_sctp_hold_stream(r.a, sid, on, r.net.now), 0);
	raw_wait(&r, 1);
}

static void streams_that_are_held(void)
{
	hold_leaves_stream(3, true);
	hold_leaves_stream(4, true);
	raw_data(&r, r.next + 10, 3, 0, 3, "let go");
	raw_data(&r, r.next + 11, 4, 0, 3, "kept");
	cr_assert_eq(r.messages, 2);
	hold_leaves_stream(3, false);
	cr_assert_eq(r.messages, 3);
	ddps_sctp_pause(r.a, true, r.net.now);
	raw_data(&r, r.next + 12, 5, 0, 3, "ready");
	cr_assert_eq(r.messages, 3);
}

static void receive_everything(void)
{
	pieces_in_order();
	pieces_out_of_order();
	pieces_that_stay();
	messages_that_wait();
	streams_that_are_held();
}

Test(sctp_leaves, what_was_received)
{
	long n = measure_engine_memory();

	raw_up(&r);
	receive_everything();
	expect_nothing_left(n);
}

Test(sctp_leaves, what_was_received_when_the_peer_begins_anew)
{
	long n = measure_engine_memory();
	struct ddps_sctp_info i;

	raw_up(&r);
	receive_everything();
	raw_init_chunk(&r, RAW_TAG + 1, 5000);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.restarted, 1);
	ddps_sctp_info(r.a, &i);
	cr_expect_eq(i.out_of_order, 0);
	expect_nothing_left(n);
}

Test(sctp_leaves, what_was_received_when_it_is_aborted)
{
	long n = measure_engine_memory();
	struct ddps_sctp_stats st;

	raw_up(&r);
	receive_everything();
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	cr_assert_eq(r.gone, 1);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.held, 0);
	cr_expect_eq(st.assocs, 0);
	expect_nothing_left(n);
}

/* All of it is delivered, and each octet given back before the association ends. */
Test(sctp_leaves, what_was_delivered)
{
	long n = measure_engine_memory();
	struct ddps_sctp_info i;

	raw_up(&r);
	pieces_in_order();
	pieces_out_of_order();
	raw_data(&r, r.next + 1, 2, 1, 3, "second");
	raw_data(&r, r.next, 2, 0, 3, "first");
	cr_assert_eq(r.messages, 4);
	r.next += 2;
	hold_leaves_stream(3, true);
	raw_data(&r, r.next++, 3, 0, 3, "held");
	hold_leaves_stream(3, false);
	ddps_sctp_pause(r.a, true, r.net.now);
	raw_data(&r, r.next++, 3, 1, 3, "ready");
	ddps_sctp_pause(r.a, false, r.net.now);
	raw_wait(&r, 1);
	cr_assert_eq(r.messages, 6);
	ddps_sctp_info(r.a, &i);
	cr_expect_eq(i.out_of_order, 0);
	cr_expect_eq(r.e->st.held, 0);
	cr_expect_eq(i.rwnd, r.e->c.rwnd);
	expect_nothing_left(n);
}

/* ---- sent ---- */

static char large[5000];

static void send_everything(void)
{
	memset(large, 'x', sizeof large - 1);
	cr_assert_eq(raw_user_send(&r, 0, 0, large), 0);
	cr_assert_eq(raw_user_send(&r, 1, DDPS_SCTP_UNORDERED, "short"), 0);
	cr_assert_eq(raw_user_send(&r, 2, 0, large), 0);
	cr_assert_eq(raw_user_send(&r, 0, 0, "another"), 0);
}

Test(sctp_leaves, what_was_sent)
{
	long n = measure_engine_memory();

	raw_up(&r);
	send_everything();
	expect_nothing_left(n);
	raw_up(&r);
	send_everything();
	raw_sack(&r, r.tsn + 1, 100000); /* part of a message */
	expect_nothing_left(n);
	raw_up(&r);
	send_everything();
	raw_wait(&r, 3000); /* and sent again */
	expect_nothing_left(n);
	raw_up(&r);
	send_everything();
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	expect_nothing_left(n);
}

/* What is acknowledged is not kept: as much is sent as would not fit otherwise. */
Test(sctp_leaves, what_was_acknowledged)
{
	long n = measure_engine_memory();
	struct ddps_sctp_info i;

	raw_up(&r);
	for (unsigned k = 0; k < 50; k++) {
		send_everything();
		for (unsigned t = 0; t < 10 && ddps_sctp_acked(r.a) < ddps_sctp_sent(r.a); t++)
			raw_sack(&r, r.a->tx.next - 1, 100000);
		cr_assert_eq(ddps_sctp_acked(r.a), 4 * k + 4);
		ddps_sctp_info(r.a, &i);
		cr_expect_eq(i.unsent + i.unacked, 0);
	}
	expect_nothing_left(n);
}

/* ---- asked for ---- */

Test(sctp_leaves, what_set_up_a_connection)
{
	static const uint8_t params[] = { 0, 7, 0, 8, 'c', 'o', 'o', 'k', 0xc1, 1, 0, 4 };
	long n = measure_engine_memory();

	for (unsigned k = 0; k < 3; k++) {
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;
		uint8_t *at;

		raw_init(&r);
		raw_connect(&r);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		r.tag = i.tag;
		raw_begin(&r, r.tag);
		at = ddps_sc_begin_chunk(&r.w, SC_INIT_ACK, 0);
		ddps_wbuf_u32(&r.w, RAW_TAG);
		ddps_wbuf_u32(&r.w, 100000);
		ddps_wbuf_u32(&r.w, 5 << 16 | 5);
		ddps_wbuf_u32(&r.w, RAW_TSN);
		ddps_wbuf_bytes(&r.w, params, sizeof params);
		ddps_sc_end_chunk(&r.w, at, 0);
		raw_send(&r);
		cr_assert(raw_any(&r, SC_COOKIE_ECHO, NULL));
		cr_assert(raw_any(&r, SC_ERROR, NULL));
		if (k == 1) /* a second one, after the cookie was called stale */
			raw_chunk(&r, r.tag, SC_ERROR, 0, "\0\3\0\10\0\0\0\1", 8);
		if (k == 2)
			raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
		cr_expect_eq(r.ups, k == 2);
		expect_nothing_left(n);
	}
}
