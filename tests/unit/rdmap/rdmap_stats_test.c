/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stream counts. */
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

TestSuite(rdmap_stats, .init = setup, .fini = teardown);

static void expect_rdmap_stats(const struct ddps_msg_stats *m, uint64_t messages, uint64_t segments,
			       uint64_t octets)
{
	cr_expect_eq(m->messages, messages);
	cr_expect_eq(m->segments, segments);
	cr_expect_eq(m->octets, octets);
}

static const struct ddps_ep_stats *get_rdmap_stats_now(void)
{
	static struct ddps_ep_stats st;

	st = ddps_rdmap_stats(s.r);
	return &st;
}

Test(rdmap_stats, what_was_sent)
{
	uint8_t out[200];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 150);
	post_rdmap(&s, DDPS_OP_SEND, 1, DDPS_WR_SOLICITED, 0, 0);
	post_rdmap(&s, DDPS_OP_WRITE, 2, 0, 0, 120);
	post_rdmap(&s, DDPS_OP_READ, 3, 0, 0, 10);
	cr_expect_eq(get_rdmap_stats_now()->sends_posted, 4);
	for (int i = 0; i < 2; i++)
		pull(&s, 118, out);
	expect_rdmap_stats(&get_rdmap_stats_now()->sent[DDPS_STAT_SEND], 1, 2, 150);
	expect_rdmap_stats(&get_rdmap_stats_now()->sent[DDPS_STAT_SEND_SE], 0, 0, 0);
	cr_expect_eq(get_rdmap_stats_now()->sends_posted, 3);
	while (pull(&s, 118, out))
		;
	expect_rdmap_stats(&get_rdmap_stats_now()->sent[DDPS_STAT_SEND_SE], 1, 1, 0);
	expect_rdmap_stats(&get_rdmap_stats_now()->sent[DDPS_STAT_WRITE], 1, 2, 120);
	expect_rdmap_stats(&get_rdmap_stats_now()->sent[DDPS_STAT_READ_REQUEST], 1, 1, 28);
	cr_expect_eq(get_rdmap_stats_now()->reads_out, 1);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, false, "abc"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 3, true, "defghij"), 0);
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_READ_RESPONSE], 1, 2, 10);
	cr_expect_eq(get_rdmap_stats_now()->reads_out, 0);
	cr_expect_eq(get_rdmap_stats_now()->sends_posted, 0);
}

Test(rdmap_stats, what_was_received)
{
	uint8_t out[200], seg[64];
	size_t n = make_untagged_rdmap(seg, 5, 0, 0, 2, 0, true, "xyz", 3);
	struct iovec iov[4];

	post_rdmap_recv(&s, 1, 0, 100);
	post_rdmap_recv(&s, 2, 0, 100);
	post_rdmap_recv(&s, 3, 0, 100);
	cr_expect_eq(get_rdmap_stats_now()->recvs_posted, 3);
	feed_send(&s, 1, 0, false, "ab");
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_SEND], 0, 1, 2);
	feed_send(&s, 1, 2, true, "cde");
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_SEND], 1, 2, 5);
	cr_expect_eq(get_rdmap_stats_now()->recvs_posted, 2);
	cr_assert_eq(ddps_rdmap_rx_direct(s.r, seg, 18, n), 18);
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_SEND_SE], 0, 0, 0);
	cr_assert_eq(ddps_rdmap_rx_direct_iov(s.r, 0, iov, 4), 1);
	ddps_rdmap_rx_direct_end(s.r);
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_SEND_SE], 1, 1, 3);
	feed_write(&s, s.mr->stag, 0, true, "abc");
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_WRITE], 1, 1, 3);
	feed_rreq(&s, 1, 8, s.mr->stag, 0);
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_READ_REQUEST], 1, 1, 28);
	cr_expect_eq(get_rdmap_stats_now()->reads_in, 1);
	pull(&s, 118, out);
	expect_rdmap_stats(&get_rdmap_stats_now()->sent[DDPS_STAT_READ_RESPONSE], 1, 1, 8);
	cr_expect_eq(get_rdmap_stats_now()->reads_in, 0);
	feed_untagged(&s, 7, 0, 2, 1, 0, true, "\x20\2\0\0", 4);
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_TERMINATE], 1, 1, 4);
	cr_expect_eq(get_rdmap_stats_now()->recvs_posted, 0);
	cr_expect_eq(get_rdmap_stats_now()->sent[DDPS_STAT_TERMINATE].messages, 0);
}

Test(rdmap_stats, limits_of_the_queues)
{
	for (int i = 0; i < 8; i++) {
		cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), 0);
		cr_expect_eq(post_rdmap_recv(&s, 1, 0, 1), 0);
	}
	cr_expect_eq(get_rdmap_stats_now()->sq_full, 0);
	cr_expect_eq(get_rdmap_stats_now()->rq_full, 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), DDPS_E_LIMIT);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 1), DDPS_E_LIMIT);
	cr_expect_eq(get_rdmap_stats_now()->sq_full, 1);
	cr_expect_eq(get_rdmap_stats_now()->rq_full, 1);
	cr_expect_eq(get_rdmap_stats_now()->sends_posted, 8);
	cr_expect_eq(get_rdmap_stats_now()->recvs_posted, 8);
}

Test(rdmap_stats, a_read_beyond_ird, .description = "5040-8.1.1-12 5042-6.4.3.3-2")
{
	uint8_t out[200];

	for (uint32_t i = 1; i <= 4; i++)
		cr_expect_eq(feed_rreq(&s, i, 8, s.mr->stag, 0), 0);
	cr_expect_eq(get_rdmap_stats_now()->reads_in, 4);
	cr_expect_eq(get_rdmap_stats_now()->ird_overrun, 0);
	cr_expect_lt(feed_rreq(&s, 5, 8, s.mr->stag, 0), 0);
	cr_expect_eq(get_rdmap_stats_now()->ird_overrun, 1);
	cr_expect_eq(get_rdmap_stats_now()->no_buffer, 0);
	pull(&s, 118, out);
	expect_rdmap_stats(&get_rdmap_stats_now()->sent[DDPS_STAT_TERMINATE], 1, 1, 24);
	cr_expect_eq(get_rdmap_stats_now()->reads_in, 0);
}

Test(rdmap_stats, a_send_without_a_buffer)
{
	cr_expect_lt(feed_send(&s, 1, 0, true, "abc"), 0);
	cr_expect_eq(get_rdmap_stats_now()->no_buffer, 1);
	cr_expect_eq(get_rdmap_stats_now()->ird_overrun, 0);
	cr_expect_eq(get_rdmap_stats_now()->stalls, 0);
	expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_SEND], 0, 0, 0);
}

Test(rdmap_stats, one_that_waits_is_counted_once)
{
	s.r->no_recv = DDPS_NO_RECV_STALL;
	for (uint32_t msn = 1; msn < 4; msn++) {
		for (int i = 0; i < 3; i++)
			cr_expect_eq(feed_send(&s, msn, 0, true, "abc"), DDPS_LLP_HOLD);
		cr_expect_eq(get_rdmap_stats_now()->stalls, msn);
		post_rdmap_recv(&s, 1, 0, 10);
		cr_expect_eq(feed_send(&s, msn, 0, true, "abc"), 0);
		cr_expect_eq(get_rdmap_stats_now()->stalls, msn);
		expect_rdmap_stats(&get_rdmap_stats_now()->received[DDPS_STAT_SEND], msn, msn,
				   3 * msn);
	}
	cr_expect_eq(get_rdmap_stats_now()->over_share, 0);
}

/* ---- what the watch over sessions that stand still looks at ---- */

static uint64_t note_rdmap_stats_moved(void)
{
	static uint64_t last;
	uint64_t before = last;

	last = ddps_rdmap_own_progress(s.r);
	return last - before;
}

Test(rdmap_stats, own_progress_is_what_this_side_asked_for)
{
	uint8_t out[200], resp[DDPS_ARESP_LEN] = { 0 };

	s.r->rfc7306 = true;
	cr_expect_eq(note_rdmap_stats_moved(), 0);
	post_rdmap(&s, DDPS_OP_WRITE, 1, 0, 0, 150);
	cr_expect_eq(note_rdmap_stats_moved(), 0, "posted only");
	pull_only(&s, 118, out);
	cr_expect_eq(note_rdmap_stats_moved(), 1);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(note_rdmap_stats_moved(), 1, "a part of it has left");
	pull_only(&s, 118, out);
	cr_expect_eq(note_rdmap_stats_moved(), 1);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(note_rdmap_stats_moved(), 0ull - 1, "completed, which the application sees");

	feed_rreq(&s, 1, 8, s.mr->stag, 0);
	feed_write(&s, s.mr->stag, 0, true, "abc");
	cr_expect_eq(pull(&s, 118, out), 22);
	cr_expect_eq(note_rdmap_stats_moved(), 0, "the peer's requests, and the answers to them");

	post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 10);
	post_rdmap(&s, DDPS_OP_FETCH_ADD, 3, 0, 0, 8);
	cr_expect_eq(pull(&s, 118, out), 46);
	cr_expect_eq(note_rdmap_stats_moved(), 1);
	feed_rresp(&s, s.mr->stag, 0, false, "abc");
	cr_expect_eq(note_rdmap_stats_moved(), 3);
	feed_rresp(&s, s.mr->stag, 3, true, "defghij");
	cr_expect_eq(note_rdmap_stats_moved(), 7);
	cr_expect_gt(pull(&s, 118, out), 0);
	cr_expect_eq(note_rdmap_stats_moved(), 1);
	resp[3] = (uint8_t)(s.r->sq.head & 0xff);
	cr_expect_eq(feed_untagged(&s, 11, 0, 3, 1, 0, true, resp, sizeof resp), 0);
	cr_expect_eq(note_rdmap_stats_moved(), 1);
	cr_expect_eq(s.nsq, 3);
}

Test(rdmap_stats, each_segment_of_the_peer_is_taken_and_heard)
{
	cr_expect_not(ddps_rdmap_heard(s.r));
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1);
	pull(&s, 118, (uint8_t[200]){ 0 });
	cr_expect_not(ddps_rdmap_heard(s.r), "what this side says");
	cr_expect_eq(ddps_rdmap_taken(s.r), 0);
	post_rdmap_recv(&s, 1, 0, 10);
	feed_send(&s, 1, 0, false, "ab");
	cr_expect(ddps_rdmap_heard(s.r));
	cr_expect_eq(ddps_rdmap_taken(s.r), 1);
	feed_send(&s, 1, 2, true, "cd");
	feed_write(&s, s.mr->stag, 0, true, "abc");
	feed_rreq(&s, 1, 8, s.mr->stag, 0);
	cr_expect_eq(ddps_rdmap_taken(s.r), 4);
}

Test(rdmap_stats, a_segment_held_back_is_heard)
{
	s.r->no_recv = DDPS_NO_RECV_STALL;
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_LLP_HOLD);
	cr_expect(ddps_rdmap_heard(s.r));
	cr_expect_eq(ddps_rdmap_taken(s.r), 0);
}

Test(rdmap_stats, completions_that_found_no_place)
{
	cr_expect_eq(get_rdmap_stats_now()->cq_overflow, 0);
	ddps_rdmap_overflowed(s.r);
	ddps_rdmap_overflowed(s.r);
	cr_expect_eq(get_rdmap_stats_now()->cq_overflow, 2);
}
