/* SPDX-License-Identifier: BSD-2-Clause */
/* Ready-to-receive messages of the peer-to-peer model (RFC 6581 9.2). */
#include "rdmap_fixture.h"

static struct side s;

static void open_as(const struct ddps_rdmap_start *st)
{
	side_init(&s, 8, 8, 4);
	cr_assert_eq(ddps_rdmap_start(s.r, st), 0);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_rtr, .fini = teardown);

static void initiator(unsigned rtr, uint16_t ord, bool lend)
{
	open_as(&(struct ddps_rdmap_start){
		.ird = 4, .ord = ord, .send_rtr = rtr, .rtr_needs_ord = lend });
	cr_expect_eq(s.want, 1);
}

static void run_rdmap_rtr_responder(unsigned rtr, bool strict, uint16_t ird)
{
	open_as(&(struct ddps_rdmap_start){ .ird = ird,
					    .ord = 4,
					    .expect_rtr = rtr,
					    .rtr_strict = strict,
					    .llp_mpa_codes = true });
}

static const char read_rtr[] = "41 41 00000000 00000001 00000001 00000000 00000000 "
			       "0000000000000000 00000000 00000000 0000000000000000";

/* ---- initiator ---- */

Test(rdmap_rtr, write_goes_first)
{
	initiator(DDPS_RTR_WRITE, 0, false);
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 0);
	expect_pull(&s, "c1 40 00000000 0000000000000000");
	cr_expect_eq(s.nsq, 0);
	expect_pull(&s, "41 43 00000000 00000000 00000001 00000000");
	cr_expect_eq(s.nsq, 1);
}

Test(rdmap_rtr, send_takes_msn_1)
{
	initiator(DDPS_RTR_SEND, 0, false);
	expect_pull(&s, "41 43 00000000 00000000 00000001 00000000");
	cr_expect_eq(s.nsq, 0);
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 0);
	expect_pull(&s, "41 43 00000000 00000000 00000002 00000000");
	cr_expect_eq(s.nsq, 1);
}

Test(rdmap_rtr, read_takes_a_slot_until_its_response)
{
	uint8_t out[128];

	initiator(DDPS_RTR_READ, 1, false);
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	expect_pull(&s, read_rtr);
	cr_expect_eq(pull(&s, 128, out), 0);
	s.want = 0;
	cr_expect_eq(feed_hex(&s, "c1 42 00000000 0000000000000000"), 0);
	cr_expect_eq(s.want, 1);
	cr_expect_eq(s.nsq, 0, "swallowed");
	cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_arr_eq(out + 10, "\0\0\0\2", 4);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(s.nsq, 1);
}

Test(rdmap_rtr, read_before_the_rtrs_response)
{
	uint8_t out[128];

	initiator(DDPS_RTR_READ, 3, false);
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 2, 0, 4, 4);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(feed_hex(&s, "c1 42 00000000 0000000000000000"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 4, true, "efgh"), 0);
	cr_expect_eq(s.nsq, 2);
	cr_expect_arr_eq(s.mem, "abcdefgh", 8);
}

Test(rdmap_rtr, read_with_a_lent_slot)
{
	initiator(DDPS_RTR_READ, 0, true);
	expect_pull(&s, read_rtr);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), DDPS_E_LIMIT);
	cr_expect_eq(feed_hex(&s, "c1 42 00000000 0000000000000000"), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), DDPS_E_LIMIT);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 0), 0);
}

Test(rdmap_rtr, response_with_octets_is_an_error)
{
	initiator(DDPS_RTR_READ, 1, false);
	expect_pull(&s, read_rtr);
	cr_expect_lt(feed_rresp(&s, 0, 0, true, "x"), 0);
	expect_term(&s, "11 01 c0 00 000f c1 42 00000000 0000000000000000");
}

Test(rdmap_rtr, start_checks_what_it_is_given)
{
	struct ddps_rdmap_start st = { .send_rtr = DDPS_RTR_READ };

	side_init(&s, 1, 1, 1);
	cr_expect_eq(ddps_rdmap_start(s.r, &st), DDPS_E_INVAL);
	st.send_rtr = DDPS_RTR_SEND | DDPS_RTR_WRITE;
	cr_expect_eq(ddps_rdmap_start(s.r, &st), DDPS_E_INVAL);
	st.send_rtr = 8;
	cr_expect_eq(ddps_rdmap_start(s.r, &st), DDPS_E_INVAL);
	st.send_rtr = 0;
	cr_expect_eq(ddps_rdmap_start(s.r, &st), 0);
	cr_expect_eq(ddps_rdmap_start(s.r, &st), DDPS_E_STATE);
}

/* ---- responder ---- */

Test(rdmap_rtr, responder_swallows_a_write)
{
	run_rdmap_rtr_responder(DDPS_RTR_ALL, true, 4);
	cr_expect_eq(feed_hex(&s, "c1 40 00000001 0000000000000000"), 0); /* as siw sends it */
	cr_expect_eq(s.first, 1);
	cr_expect_eq(s.rtr, DDPS_RTR_WRITE);
	cr_expect_eq(feed_hex(&s, "c1 40 00000001 0000000000000000"), 0);
	cr_expect_eq(s.first, 1);
	cr_expect_eq(s.nrq, 0);
}

Test(rdmap_rtr, responder_swallows_a_send)
{
	run_rdmap_rtr_responder(DDPS_RTR_SEND, true, 4);
	cr_expect_eq(feed_send(&s, 1, 0, true, ""), 0); /* without a receive posted */
	cr_expect_eq(s.rtr, DDPS_RTR_SEND);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 2, 0, true, "abc"), 0);
	cr_assert_eq(s.nrq, 1);
	cr_expect_eq(s.rq[0].len, 3);
}

Test(rdmap_rtr, responder_swallows_a_send_and_keeps_the_receive)
{
	run_rdmap_rtr_responder(DDPS_RTR_SEND, true, 4);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, true, ""), 0);
	cr_expect_eq(s.nrq, 0);
	cr_expect_eq(feed_send(&s, 2, 0, true, "abc"), 0);
	cr_expect_eq(s.nrq, 1);
}

Test(rdmap_rtr, responder_answers_a_read)
{
	run_rdmap_rtr_responder(DDPS_RTR_READ, true, 1);
	cr_expect_eq(feed_hex(&s, read_rtr), 0);
	cr_expect_eq(s.rtr, DDPS_RTR_READ);
	expect_pull(&s, "c1 42 00000000 0000000000000000");
	cr_expect_eq(feed_rreq(&s, 2, 4, s.mr->stag, 0), 0);
}

Test(rdmap_rtr, providers_slot_serves_the_rtr_alone)
{
	open_as(&(struct ddps_rdmap_start){ .expect_rtr = DDPS_RTR_READ,
					    .provider_read_slot = true });
	cr_expect_eq(feed_hex(&s, read_rtr), 0);
	expect_pull(&s, "c1 42 00000000 0000000000000000");
	cr_expect_lt(feed_rreq(&s, 2, 0, 0, 0), 0);
	expect_term(&s, "12 02 c0 00 002e 41 41 00000000 00000001 00000002 00000000");
}

Test(rdmap_rtr, without_that_slot_ird_0_refuses_it)
{
	run_rdmap_rtr_responder(DDPS_RTR_READ, true, 0);
	cr_expect_lt(feed_hex(&s, read_rtr), 0);
	expect_term(&s, "12 02 c0 00 002e 41 41 00000000 00000001 00000001 00000000");
	cr_expect_eq(s.first, 0);
}

Test(rdmap_rtr, lenient_responder_takes_anything)
{
	run_rdmap_rtr_responder(DDPS_RTR_WRITE, false, 4);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "a"), 0);
	cr_expect_eq(s.first, 1);
	cr_expect_eq(s.rtr, 0);
	cr_expect_eq(feed_send(&s, 1, 1, true, "b"), 0);
	cr_expect_eq(s.nrq, 1);
	cr_expect_eq(s.first, 1);
}

Test(rdmap_rtr, types_not_flagged_are_ordinary_messages)
{
	run_rdmap_rtr_responder(DDPS_RTR_READ, false, 4);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, true, ""), 0);
	cr_expect_eq(s.rtr, 0);
	cr_expect_eq(s.nrq, 1);
}

Test(rdmap_rtr, forms_that_are_no_rtr)
{
	struct ddps_mr *mr;

	run_rdmap_rtr_responder(DDPS_RTR_ALL, false, 4);
	mr = side_reg(&s, s.mem, 1, RIGHTS);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_untagged(&s, 6, mr->stag, 0, 1, 0, true, "", 0), 0);
	cr_expect_eq(s.first, 1);
	cr_expect_eq(s.rtr, 0, "with SE and Invalidate");
	cr_expect_eq(s.nrq, 1);
	close_rdmap_side(&s);
	run_rdmap_rtr_responder(DDPS_RTR_ALL, false, 4);
	cr_expect_eq(feed_rreq(&s, 1, 1, s.mr->stag, 0), 0);
	cr_expect_eq(s.rtr, 0, "a Read of one octet");
	close_rdmap_side(&s);
	run_rdmap_rtr_responder(DDPS_RTR_ALL, false, 4);
	cr_expect_eq(feed_write(&s, s.mr->stag, 0, true, "x"), 0);
	cr_expect_eq(s.rtr, 0, "a Write of one octet");
	close_rdmap_side(&s);
	run_rdmap_rtr_responder(DDPS_RTR_ALL, false, 4);
	cr_expect_eq(feed_write(&s, s.mr->stag, 0, false, ""), 0);
	cr_expect_eq(s.rtr, 0, "not the whole message");
}

Test(rdmap_rtr, strict_responder_refuses_all_else, .description = "6581-9.2-10")
{
	uint8_t seg[64];
	size_t len;

	run_rdmap_rtr_responder(DDPS_RTR_WRITE, true, 4);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_lt(feed_send(&s, 1, 0, true, ""), 0);
	expect_term(&s, "20 07 00 00");
	cr_expect_eq(s.term.code, DDPS_E_RTR);
	cr_expect_eq(s.first, 0);
	close_rdmap_side(&s);

	run_rdmap_rtr_responder(DDPS_RTR_WRITE, true, 4);
	len = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, "abcd");
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 0);
	cr_expect_eq(s.terms, 0);
	cr_expect_lt(feed_rdmap(&s, seg, len), 0);
	expect_term(&s, "20 07 00 00");
}

Test(rdmap_rtr, a_terminate_instead_of_the_rtr)
{
	run_rdmap_rtr_responder(DDPS_RTR_WRITE, true, 4);
	cr_expect_lt(feed_hex(&s, TERM_HDR "20 07 00 00"), 0);
	cr_expect_eq(s.first, 0);
	cr_expect_eq(s.terms, 1);
	cr_expect(s.by_peer);
	cr_expect_eq(s.term.triple.layer, 2);
	cr_expect_eq(s.term.triple.code, 7);
}

Test(rdmap_rtr, without_expectation_nothing_is_reported)
{
	run_rdmap_rtr_responder(0, true, 4);
	cr_expect_eq(feed_hex(&s, "c1 40 00000000 0000000000000000"), 0);
	cr_expect_eq(s.first, 0);
}

/* ---- nudge ---- */

Test(rdmap_rtr, a_nudge_is_a_zero_length_write_outside_the_send_queue)
{
	open_as(&(struct ddps_rdmap_start){ .ird = 4, .ord = 4 });
	for (int i = 0; i < 8; i++) /* the queue is full */
		post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 0);
	ddps_rdmap_nudge(s.r);
	expect_pull(&s, "c1 40 00000000 0000000000000000");
	cr_expect_eq(s.nsq, 0);
	expect_pull(&s, "41 43 00000000 00000000 00000001 00000000");
}

Test(rdmap_rtr, a_nudge_does_not_cut_into_a_message)
{
	struct ddps_seg seg;

	open_as(&(struct ddps_rdmap_start){ .ird = 4, .ord = 4 });
	post_rdmap(&s, DDPS_OP_WRITE, 1, 0, 0, 1000);
	cr_assert_eq(ddps_rdmap_tx_next(s.r, &seg, 200), 1);
	ddps_rdmap_nudge(s.r);
	do {
		cr_assert_eq(ddps_rdmap_tx_next(s.r, &seg, 200), 1);
		cr_assert_gt(seg.pay_len, 0);
	} while (!(seg.hdr[0] & 0x40));
	cr_expect_eq(ddps_rdmap_tx_next(s.r, &seg, 200), 0);
}

Test(rdmap_rtr, no_nudge_once_the_stream_is_over)
{
	struct ddps_seg seg;

	open_as(&(struct ddps_rdmap_start){ .ird = 4, .ord = 4 });
	ddps_rdmap_flush(s.r);
	ddps_rdmap_nudge(s.r);
	cr_expect_eq(ddps_rdmap_tx_next(s.r, &seg, 200), 0);
}
