/* SPDX-License-Identifier: BSD-2-Clause */
/* A Send that finds no receive and waits for one. */
#include "rdmap_fixture.h"

static struct side s;

static void setup(void)
{
	open_rdmap_side(&s);
	s.r->no_recv = DDPS_NO_RECV_STALL;
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_stall, .init = setup, .fini = teardown);

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
