/* SPDX-License-Identifier: BSD-2-Clause */
/* Inbound Sends and Writes that are right. */
#include "rdmap_fixture.h"

static struct side s;

static void setup(void)
{
	open_rdmap_side(&s);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_recv, .init = setup, .fini = teardown);

Test(rdmap_recv, the_dumps_of_every_send,
     .description = "5040-5.3-3 5040-5.3-5 5040-5.3-7 5040-5.3-8 5040-5.3-13 5040-5.3-17 "
		    "5040-3.2-2 5041-4.3-3 5041-5.4-3 5041-5.4-4 5041-4.1-2 5040-3.1-5 "
		    "5040-5.5-9 5040-5.5-17 5040-8.1.1-7")
{
	struct ddps_mr *a = side_reg(&s, s.mem, 1, RIGHTS), *b = side_reg(&s, s.mem, 1, RIGHTS);

	for (uint64_t i = 0; i < 5; i++)
		cr_expect_eq(post_rdmap_recv(&s, i, i * 100, 10), 0);
	cr_expect_eq(feed_hex(&s, "41 43 00000000 00000000 00000001 00000000 41424344 45464748"),
		     0);
	cr_expect_eq(feed_untagged(&s, 4, a->stag, 0, 2, 0, true, "ABCDEFGHIJ", 10), 0);
	cr_expect_eq(feed_hex(&s, "41 45 00000000 00000000 00000003 00000000 41424344 45464748"),
		     0);
	cr_expect_eq(feed_untagged(&s, 6, b->stag, 0, 4, 0, true, "ABCDEFGH", 8), 0);
	cr_expect_eq(feed_hex(&s, "41 43 00000000 00000000 00000005 00000000"), 0);
	cr_assert_eq(s.nrq, 5);
	for (uint64_t i = 0; i < 5; i++) {
		expect_wc(s.rq[i], i, DDPS_OP_RECV, DDPS_WC_SUCCESS);
		cr_expect_eq(s.rq[i].len, i == 4 ? 0 : i == 1 ? 10 : 8);
		cr_expect_eq(s.rq[i].solicited, i == 2 || i == 3);
		cr_expect_eq(s.rq[i].invalidated, i == 1 || i == 3);
		if (i < 4)
			cr_expect_arr_eq(s.mem + i * 100, "ABCDEFGH", 8);
	}
	cr_expect_eq(s.rq[1].inv_stag, a->stag);
	cr_expect_eq(s.rq[3].inv_stag, b->stag);
	cr_expect_not(a->valid);
	cr_expect_not(b->valid);
}

Test(rdmap_recv, invalidates_at_delivery_only, .description = "5040-5.3-16")
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 1, RIGHTS);

	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_untagged(&s, 4, mr->stag, 0, 1, 0, false, "abc", 3), 0);
	cr_expect(mr->valid);
	cr_expect_eq(feed_untagged(&s, 4, mr->stag, 0, 1, 3, true, "def", 3), 0);
	cr_expect_not(mr->valid);
	cr_expect_eq(s.rq[0].len, 6);
}

Test(rdmap_recv, scatters_over_pieces, .description = "5041-5.2-5")
{
	struct ddps_sge sge[4] = { get_rdmap_piece(&s, 0, 3),
				   { NULL, 0, 77 },
				   get_rdmap_piece(&s, 100, 5),
				   get_rdmap_piece(&s, 50, 100) };

	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, sge, 4), 0);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abcd"), 0);
	cr_expect_eq(feed_send(&s, 1, 4, false, "e"), 0);
	cr_expect_eq(feed_send(&s, 1, 5, true, "fghij"), 0);
	cr_expect_arr_eq(s.mem, "abc\3", 4);
	cr_expect_arr_eq(s.mem + 100, "defgh", 5);
	cr_expect_arr_eq(s.mem + 50, "ij\x34", 3);
	cr_expect_eq(s.rq[0].len, 10);
}

Test(rdmap_recv, buffer_filled_exactly)
{
	for (uint32_t len = 9; len <= 10; len++) {
		post_rdmap_recv(&s, len, 0, 10);
		cr_expect_eq(feed_untagged(&s, 3, 0, 0, len - 8, 0, true, s.mem + 100, len), 0);
		cr_expect_eq(s.rq[len - 9].len, len);
	}
	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, NULL, 0), 0);
	cr_expect_eq(feed_send(&s, 3, 0, true, ""), 0);
	cr_expect_eq(s.rq[2].len, 0);
}

Test(rdmap_recv, msn_wraps_through_zero, .description = "5041-4.3-12")
{
	s.r->rxq[0].msn = UINT32_MAX;
	for (int i = 0; i < 3; i++)
		post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, UINT32_MAX, 0, true, "a"), 0);
	cr_expect_eq(feed_send(&s, 0, 0, true, "b"), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "c"), 0);
	cr_expect_eq(s.nrq, 3);
}

Test(rdmap_recv, a_write_is_placed_and_not_delivered,
     .description = "5040-5.1-3 5040-3.2-6 5041-4.1-1 5040-5.1-5 5040-5.1-6 5041-4.2-4 "
		    "5041-4.2-9")
{
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_write(&s, s.mr->stag, 10, false, "abc"), 0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 13, true, "def"), 0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 4095, true, "z"), 0);
	cr_expect_arr_eq(s.mem + 10, "abcdef", 6);
	cr_expect_eq(s.mem[4095], 'z');
	cr_expect_eq(s.nrq + s.nsq + s.want, 0);
}

Test(rdmap_recv, write_segments_in_any_order, .description = "5041-5.3-4 5041-5.3-5")
{
	cr_expect_eq(feed_write(&s, s.mr->stag, 3, false, "def"), 0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 3, false, "DEF"), 0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 0, true, "abc"), 0);
	cr_expect_arr_eq(s.mem, "abcDEF", 6);
}

/* ---- interleaved models: Delivery in the order of first segments ---- */

Test(rdmap_recv, a_send_waits_for_the_write_before_it,
     .description = "5041-4.1-7 5041-4.1-8 5041-5.3-6 5041-5.3-7 5041-5.4-2 5041-5.3-1")
{
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_write(&s, s.mr->stag, 100, false, "abc"), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "send"), 0);
	cr_expect_eq(s.nrq, 0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 103, true, "def"), 0);
	cr_expect_eq(s.nrq, 1);
	cr_expect_eq(s.rq[0].len, 4);
}

Test(rdmap_recv, a_write_inside_a_send_delays_nothing)
{
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "se"), 0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 100, true, "abc"), 0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 103, false, "def"), 0);
	cr_expect_eq(feed_send(&s, 1, 2, true, "nd"), 0);
	cr_expect_eq(s.nrq, 1);
}

Test(rdmap_recv, a_read_request_waits_for_the_send_before_it, .description = "5040-5.5-11")
{
	uint8_t out[128];

	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "se"), 0);
	cr_expect_eq(feed_rreq(&s, 1, 4, s.mr->stag, 0), 0);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(feed_send(&s, 1, 2, true, "nd"), 0);
	cr_expect_eq(s.nrq, 1);
	cr_expect_eq(pull(&s, 128, out), 18);
	cr_expect_arr_eq(out + 14, "send", 4);
}

Test(rdmap_recv, a_read_response_waits_for_the_send_before_it, .description = "5040-5.5-10")
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 5, 0, 100, 3);
	pull(&s, 128, out);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "se"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, true, "abc"), 0);
	cr_expect_eq(s.nsq, 0);
	cr_expect_eq(feed_send(&s, 1, 2, true, "nd"), 0);
	cr_expect_eq(s.nrq, 1);
	cr_expect_eq(s.nsq, 1);
}

Test(rdmap_recv, a_second_message_while_the_first_waits_is_an_error)
{
	post_rdmap_recv(&s, 1, 0, 10);
	post_rdmap_recv(&s, 2, 0, 10);
	cr_expect_eq(feed_write(&s, s.mr->stag, 100, false, "abc"), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "send"), 0);
	cr_expect_lt(feed_send(&s, 2, 0, true, "more"), 0);
	expect_term(&s, "12 03 c0 00 0016 41 43 00000000 00000000 00000002 00000000");
	cr_expect_eq(s.rq[0].status, DDPS_WC_FLUSHED);
	cr_expect_eq(s.nrq, 2);
}

Test(rdmap_recv, a_second_copy_of_a_waiting_send_is_an_error, .description = "5041-5.3-6")
{
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_write(&s, s.mr->stag, 100, false, "abc"), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, ""), 0);
	cr_expect_lt(feed_send(&s, 1, 0, true, ""), 0);
	expect_term(&s, "12 03 c0 00 0012 41 43 00000000 00000000 00000001 00000000");
}

Test(rdmap_recv, a_tagged_message_while_a_response_waits_is_an_error)
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 5, 0, 100, 3);
	pull(&s, 128, out);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "se"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, true, "abc"), 0);
	cr_expect_lt(feed_hex(&s, "c1 40 00000000 0000000000000000"), 0);
	expect_term(&s, "02 06 c0 00 000e c1 40 00000000 0000000000000000");
}

Test(rdmap_recv, a_second_response_while_one_waits_is_an_error)
{
	char want[200];
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 5, 0, 100, 3);
	post_rdmap(&s, DDPS_OP_READ, 6, 0, 200, 3);
	pull(&s, 128, out);
	pull(&s, 128, out);
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "se"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, true, "abc"), 0);
	cr_expect_lt(feed_rresp(&s, s.mr->stag, 200, true, "def"), 0);
	snprintf(want, sizeof want, TERM_HDR "02 06 c0 00 0011 c1 42 %08x 00000000000000c8",
		 s.mr->stag);
	expect_pull(&s, want);
}

Test(rdmap_recv, only_pieces_still_to_fill_matter)
{
	struct ddps_mr *a = side_reg(&s, s.mem, 3, DDPS_LOCAL_WRITE);
	struct ddps_sge sge[2] = { { s.mem, 3, a->stag }, get_rdmap_piece(&s, 100, 3) };

	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, sge, 2), 0);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	ddps_stag_remove(a);
	cr_expect_eq(feed_send(&s, 1, 3, true, "def"), 0);
	cr_expect_eq(s.nrq, 1);
	cr_expect_arr_eq(s.mem + 100, "def", 3);
}

/* ---- a Send that finds no receive and waits for one ---- */

static void setup_stall(void)
{
	open_rdmap_side(&s);
	s.r->no_recv = DDPS_NO_RECV_STALL;
}

TestSuite(rdmap_stall, .init = setup_stall, .fini = teardown);

Test(rdmap_stall, waits_for_a_receive, .description = "5041-7.1-3 5041-7.1-5 5041-7.1-7")
{
	static const unsigned op[] = { 3, 4, 5, 6 };
	uint32_t stag = 0;

	for (uint32_t i = 0; i < 4; i++) {
		struct ddps_mr *mr = side_reg(&s, s.mem, 1, DDPS_REMOTE_READ);

		stag = mr->stag;
		cr_expect_eq(feed_untagged(&s, op[i], stag, 0, i + 1, 0, true, "abc", 3),
			     DDPS_LLP_HOLD);
		cr_expect_eq(feed_untagged(&s, op[i], stag, 0, i + 1, 0, true, "abc", 3),
			     DDPS_LLP_HOLD, "as often as it is asked");
		cr_expect_eq(s.nrq, i);
		cr_expect_eq(s.ready, i);
		cr_expect_eq(post_rdmap_recv(&s, 7 + i, 100, 8), 0);
		cr_expect_eq(s.ready, i + 1);
		cr_expect_eq(feed_untagged(&s, op[i], stag, 0, i + 1, 0, true, "abc", 3), 0);
		cr_assert_eq(s.nrq, i + 1);
		expect_wc(s.rq[i], 7 + i, DDPS_OP_RECV, DDPS_WC_SUCCESS);
		cr_expect_eq(s.rq[i].invalidated, (op[i] & 1) == 0);
		ddps_stag_remove(mr);
	}
	cr_expect_eq(post_rdmap_recv(&s, 9, 100, 8), 0);
	cr_expect_eq(s.ready, 4, "nobody waits");
	cr_expect_eq(s.terms, 0);
}

Test(rdmap_stall, own_sending_goes_on)
{
	uint8_t out[200];

	cr_expect_eq(feed_rreq(&s, 1, 8, s.mr->stag, 0), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_LLP_HOLD);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 2, 0, 0, 4), 0);
	cr_expect_eq(pull(&s, 128, out), 14 + 8, "Read Response");
	cr_expect_eq(pull(&s, 128, out), 18 + 4);
	cr_expect_eq(pull(&s, 128, out), 14 + 4);
	cr_expect_eq(s.nsq, 2);
}

Test(rdmap_stall, the_direct_way_in_waits_too)
{
	uint8_t seg[64];
	size_t n = make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "abcdefgh", 8);

	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, n), 0);
	cr_expect_eq(s.ready, 0);
	cr_expect_eq(feed_rdmap(&s, seg, n), DDPS_LLP_HOLD);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 8), 0);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, n), 18);
}

Test(rdmap_stall, other_faults_are_faults_immediately)
{
	cr_expect_lt(feed_send(&s, 2, 0, true, "abc"), 0);
	cr_expect_eq(s.term.triple.code, 0x03);
	expect_term(&s, "12 03 c0 00 0015 41 43 00000000 00000000 00000002 00000000");
}

Test(rdmap_stall, once_drained_the_rule_is_terminate)
{
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_LLP_HOLD);
	ddps_rdmap_drain(s.r);
	cr_expect_eq(s.ready, 1);
	cr_expect_eq(s.drained, 1);
	cr_expect_lt(feed_send(&s, 1, 0, true, "abc"), 0);
	expect_term(&s, "12 02 c0 00 0015 41 43 00000000 00000000 00000001 00000000");
}

Test(rdmap_stall, waits_on_while_work_is_under_way)
{
	uint8_t out[200];

	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), 0);
	cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_LLP_HOLD);
	ddps_rdmap_drain(s.r);
	cr_expect_eq(s.ready, 0);
	cr_expect_eq(post_rdmap_recv(&s, 1, 100, 8), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "wxyz"), 0);
	cr_expect_eq(s.drained, 1);
}

Test(rdmap_stall, an_error_lets_go)
{
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_LLP_HOLD);
	ddps_rdmap_terminate(s.r, DDPS_E_LIMIT, (struct ddps_triple){ 0, 0, 0 }, "enough");
	cr_expect_eq(s.ready, 1);
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_E_STATE);
	ddps_rdmap_flush(s.r);
	cr_expect_eq(s.ready, 1);
}

Test(rdmap_stall, an_rtr_send_needs_no_receive)
{
	struct ddps_rdmap_start st = { .ird = 1, .ord = 1, .expect_rtr = DDPS_RTR_ALL };

	close_rdmap_side(&s);
	side_init(&s, 8, 8, 4);
	s.r->no_recv = DDPS_NO_RECV_STALL;
	cr_assert_eq(ddps_rdmap_start(s.r, &st), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, ""), 0);
	cr_expect_eq(s.first, 1);
	cr_expect_eq(s.rtr, DDPS_RTR_SEND);
	cr_expect_eq(feed_send(&s, 2, 0, true, ""), DDPS_LLP_HOLD);
}

Test(rdmap_stall, a_first_message_that_waits_is_reported_when_it_is_taken)
{
	struct ddps_rdmap_start st = { .expect_rtr = DDPS_RTR_ALL };

	close_rdmap_side(&s);
	side_init(&s, 8, 8, 4);
	s.r->no_recv = DDPS_NO_RECV_STALL;
	cr_assert_eq(ddps_rdmap_start(s.r, &st), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_LLP_HOLD);
	cr_expect_eq(s.first, 0);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 8), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), 0);
	cr_expect_eq(s.first, 1);
	cr_expect_eq(s.rtr, 0);
}
