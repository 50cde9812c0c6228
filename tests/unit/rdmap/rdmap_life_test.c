/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of a stream: drain, the peer's close, flush. */
#include "rdmap_fixture.h"
#include "unit/spoil.h"

static struct side s;

static void setup(void)
{
	open_rdmap_side(&s);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_life, .init = setup, .fini = teardown);

Test(rdmap_life, sizes_are_checked)
{
	struct ddps_rdmap_cfg cfg = {
		.pd = &s.pd, .sq_depth = 1, .rq_depth = 1, .max_sge = 16, .up = &side_up, .user = &s
	};
	struct ddps_rdmap *r;

	cr_expect_eq(ddps_rdmap_new(&r, &cfg), 0);
	cr_expect_eq(s.pd.streams, 2);
	ddps_rdmap_free(r);
	cr_expect_eq(s.pd.streams, 1);
	cfg.max_sge = 17;
	cr_expect_eq(ddps_rdmap_new(&r, &cfg), DDPS_E_INVAL);
	cfg.max_sge = 0;
	cr_expect_eq(ddps_rdmap_new(&r, &cfg), DDPS_E_INVAL);
	cfg.max_sge = 1;
	cfg.sq_depth = 0;
	cr_expect_eq(ddps_rdmap_new(&r, &cfg), DDPS_E_INVAL);
	cfg.sq_depth = 1;
	cfg.rq_depth = 0;
	cr_expect_eq(ddps_rdmap_new(&r, &cfg), DDPS_E_INVAL);
	ddps_rdmap_free(NULL);
}

Test(rdmap_life, drain_of_an_idle_stream_is_done_immediately, .description = "5041-6.2.1-3")
{
	ddps_rdmap_drain(s.r);
	cr_expect_eq(s.drained, 1);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), DDPS_E_STATE);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 1), 0, "receives may still be posted");
	ddps_rdmap_drain(s.r);
	cr_expect_eq(s.drained, 1);
}

Test(rdmap_life, drain_waits_for_posted_work, .description = "5041-6.2.1-2")
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 200);
	post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 4);
	ddps_rdmap_drain(s.r);
	while (pull(&s, 128, out))
		;
	cr_expect_eq(s.drained, 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(s.drained, 1);
	cr_expect_eq(s.nsq, 2);
}

Test(rdmap_life, drain_waits_for_responses, .description = "5040-5.2.1-14")
{
	uint8_t out[128];

	feed_rreq(&s, 1, 200, s.mr->stag, 0);
	ddps_rdmap_drain(s.r);
	cr_expect_eq(pull_only(&s, 128, out), 128);
	cr_expect_eq(pull_only(&s, 128, out), 100);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(s.drained, 0);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(s.drained, 1);
	/* A Read that comes before the peer has closed is answered nevertheless. */
	cr_expect_eq(feed_rreq(&s, 2, 4, s.mr->stag, 0), 0);
	cr_expect_eq(pull(&s, 128, out), 18);
	cr_expect_eq(s.drained, 1);
}

Test(rdmap_life, drain_waits_for_the_rtr)
{
	struct side t;

	side_init(&t, 1, 1, 1);
	ddps_rdmap_start(t.r, &(struct ddps_rdmap_start){ .send_rtr = DDPS_RTR_WRITE });
	ddps_rdmap_drain(t.r);
	cr_expect_eq(t.drained, 0);
	expect_pull(&t, "c1 40 00000000 0000000000000000");
	cr_expect_eq(t.drained, 1);
	close_rdmap_side(&t);
}

Test(rdmap_life, an_error_ends_the_drain)
{
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	ddps_rdmap_drain(s.r);
	cr_expect_lt(feed_hex(&s, TERM_HDR "00 00 00 00"), 0);
	cr_expect_eq(s.terms, 1);
	ddps_rdmap_flush(s.r);
	cr_expect_eq(s.drained, 0);
}

Test(rdmap_life, peers_close_ends_reads_and_nothing_else,
     .description = "5041-6.2.1-5 5041-6.2.1-6 5041-6.2.1-9")
{
	uint8_t out[128];

	feed_rreq(&s, 1, 4, s.mr->stag, 0);
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 2, DDPS_WR_FENCE, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 3, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_WRITE, 4, 0, 0, 4);
	post_rdmap_recv(&s, 9, 0, 4);
	for (int i = 0; i < 2; i++)
		pull(&s, 128, out); /* response and first Read */
	cr_expect_eq(s.r->reads_out, 1);
	s.want = 0;
	ddps_rdmap_peer_closed(s.r);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_READ, DDPS_WC_FLUSHED);
	cr_expect_eq(s.want, 1);
	cr_expect_eq(pull(&s, 128, out), 22);
	cr_expect_eq(out[1], 0x43);
	cr_expect_eq(pull(&s, 128, out), 18);
	cr_expect_eq(out[1], 0x40);
	cr_assert_eq(s.nsq, 4);
	expect_wc(s.sq[1], 2, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	expect_wc(s.sq[2], 3, DDPS_OP_READ, DDPS_WC_FLUSHED);
	expect_wc(s.sq[3], 4, DDPS_OP_WRITE, DDPS_WC_SUCCESS);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 5, 0, 0, 4), DDPS_E_STATE);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 6, 0, 0, 4), 0);
	cr_expect_eq(s.nrq, 0);
	ddps_rdmap_flush(s.r);
	expect_wc(s.rq[0], 9, DDPS_OP_RECV, DDPS_WC_FLUSHED);
}

/* It means something to a stream that runs, once. */
Test(rdmap_life, peers_close_has_its_time)
{
	unsigned want;

	ddps_rdmap_peer_closed(s.r);
	want = s.want;
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 4), DDPS_E_STATE);
	ddps_rdmap_peer_closed(s.r);
	cr_expect_eq(s.want, want, "nothing has changed");
	close_rdmap_side(&s);
	side_init(&s, 8, 8, 4);
	ddps_rdmap_peer_closed(s.r);
	side_start(&s, 4, 4);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 4), 0, "it has just begun");
	feed_send(&s, 5, 0, true, "no such MSN");
	cr_assert_eq(s.terms, 1);
	want = s.want;
	ddps_rdmap_peer_closed(s.r);
	cr_expect_eq(s.want, want);
}

Test(rdmap_life, peers_close_answers_reads_accepted_before)
{
	uint8_t out[128];

	feed_rreq(&s, 1, 200, s.mr->stag, 0);
	ddps_rdmap_peer_closed(s.r);
	ddps_rdmap_drain(s.r);
	cr_expect_eq(s.drained, 0);
	cr_expect_eq(pull(&s, 128, out), 128);
	cr_expect_eq(pull(&s, 128, out), 100);
	cr_expect_eq(s.drained, 1);
}

Test(rdmap_life, peers_close_may_finish_a_drain)
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	pull(&s, 128, out);
	ddps_rdmap_drain(s.r);
	cr_expect_eq(s.drained, 0);
	ddps_rdmap_peer_closed(s.r);
	ddps_rdmap_peer_closed(s.r);
	cr_expect_eq(s.drained, 1);
	cr_expect_eq(s.nsq, 1);
}

Test(rdmap_life, a_response_after_the_flush_of_reads_is_an_error)
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	pull(&s, 128, out);
	ddps_rdmap_peer_closed(s.r);
	cr_expect_lt(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
}

Test(rdmap_life, flush_ends_everything_in_order,
     .description = "5041-6.2.2-1 5041-6.2.2-2 5040-6.2-2 5040-5.4-9")
{
	uint8_t out[128];

	for (uint64_t i = 0; i < 4; i++) {
		post_rdmap(&s, i & 1 ? DDPS_OP_READ : DDPS_OP_SEND, i, 0, 0, 4);
		post_rdmap_recv(&s, i, 0, 4);
	}
	pull_only(&s, 128, out);
	pull_only(&s, 128, out);
	ddps_rdmap_flush(s.r);
	cr_assert_eq(s.nsq, 4);
	cr_assert_eq(s.nrq, 4);
	for (unsigned i = 0; i < 4; i++) {
		cr_expect_eq(s.sq[i].wr_id, i);
		cr_expect_eq(s.sq[i].status, DDPS_WC_FLUSHED);
		cr_expect_eq(s.rq[i].wr_id, i);
	}
	cr_expect_eq(s.terms, 0);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4), DDPS_E_STATE);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 4), DDPS_E_STATE);
	cr_expect_lt(feed_send(&s, 1, 0, true, "x"), 0);
	ddps_rdmap_terminate(s.r, DDPS_E_CRC, (struct ddps_triple){ 2, 0, 2 }, "late");
	ddps_rdmap_peer_closed(s.r);
	ddps_rdmap_flush(s.r);
	cr_expect_eq(s.terms + s.drained, 0);
	cr_expect_eq(s.nsq, 4);
	cr_expect_eq(pull(&s, 128, out), 0);
}

Test(rdmap_life, flush_kills_a_terminate_not_sent)
{
	uint8_t out[128];

	ddps_rdmap_terminate(s.r, DDPS_E_CRC, (struct ddps_triple){ 2, 0, 2 }, "too late");
	ddps_rdmap_flush(s.r);
	cr_expect_eq(pull(&s, 128, out), 0);
}

Test(rdmap_life, a_read_ended_unsent_leaves_its_place)
{
	struct side t;
	uint8_t out[128];

	side_init(&t, 1, 1, 1);
	side_start(&t, 1, 1);
	post_rdmap(&t, DDPS_OP_READ, 1, 0, 0, 4);
	ddps_rdmap_peer_closed(t.r);
	cr_expect_eq(t.nsq, 1);
	cr_expect_eq(post_rdmap(&t, DDPS_OP_SEND, 2, 0, 0, 4), 0);
	cr_expect_eq(pull(&t, 128, out), 22);
	cr_expect_eq(pull(&t, 128, out), 0);
	cr_expect_eq(t.nsq, 2);
	close_rdmap_side(&t);
}

Test(rdmap_life, an_own_error_ends_the_drain_too)
{
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	ddps_rdmap_drain(s.r);
	cr_expect_lt(feed_send(&s, 1, 0, true, "no buffer"), 0);
	expect_pull(&s, TERM_HDR "12 02 c0 00 001b 41 43 00000000 00000000 00000001 00000000");
	cr_expect_eq(s.drained, 0);
}

/* ---- calls from inside upcalls ---- */

static enum reaction { POST, TERMINATE, FLUSH, DRAIN } reaction;

static void reacting(void *user, bool recv, struct ddps_wc *wc)
{
	struct side *t = user;

	take_rdmap_complete(user, recv, wc);
	switch (reaction) {
	case POST:
		cr_expect_eq(recv ? post_rdmap_recv(t, 7, 0, 4)
				  : post_rdmap(t, DDPS_OP_SEND, 7, 0, 0, 1),
			     t->r->state > DDPS_RS_RUN ? DDPS_E_STATE : 0);
		break;
	case TERMINATE:
		ddps_rdmap_terminate(t->r, DDPS_E_LIMIT, (struct ddps_triple){ 0, 0, 0 }, "full");
		break;
	case FLUSH:
		ddps_rdmap_flush(t->r);
		break;
	case DRAIN:
		ddps_rdmap_drain(t->r);
		break;
	}
}

/* Three sends pulled, three receives posted, a Send arrives: the reaction falls into tx_done
 * or into rx_segment. */
static void react(enum reaction what, bool in_rx)
{
	static struct ddps_rdmap_up up;
	uint8_t out[128];

	up = *s.r->up;
	up.complete = reacting;
	s.r->up = &up;
	reaction = what;
	for (uint64_t i = 0; i < 3; i++) {
		post_rdmap(&s, DDPS_OP_SEND, i, 0, 0, 1);
		post_rdmap_recv(&s, i, 0, 4);
		pull_only(&s, 128, out);
	}
	if (in_rx)
		feed_send(&s, 1, 0, true, "x");
	else
		ddps_rdmap_tx_done(s.r, 3);
}

Test(rdmap_life, completions_may_post)
{
	react(POST, true);
	cr_expect_eq(s.r->rq.tail - s.r->rq.head, 3);
	close_rdmap_side(&s);
	open_rdmap_side(&s);
	react(POST, false);
	cr_expect_eq(s.nsq, 3);
	cr_expect_eq(s.r->sq.tail - s.r->sq.head, 3);
	ddps_rdmap_flush(s.r);
}

Test(rdmap_life, the_completion_of_an_unsent_read_may_post)
{
	static struct ddps_rdmap_up up;
	struct side t;
	uint8_t out[128];

	up = side_up;
	up.complete = reacting;
	reaction = POST;
	side_init(&t, 1, 1, 1);
	t.r->up = &up;
	side_start(&t, 1, 1);
	post_rdmap(&t, DDPS_OP_READ, 1, 0, 0, 4);
	ddps_rdmap_peer_closed(t.r);
	cr_expect_eq(t.nsq, 1);
	t.r->up = &side_up;
	cr_expect_eq(pull(&t, 128, out), 19);
	cr_expect_eq(pull(&t, 128, out), 0, "once");
	close_rdmap_side(&t);
}

Test(rdmap_life, completions_may_terminate)
{
	for (int rx = 0; rx < 2; rx++) {
		react(TERMINATE, rx);
		cr_expect_eq(s.terms, 1);
		if (rx)
			ddps_rdmap_tx_done(s.r, 3);
		cr_expect_eq(s.nsq, 3);
		cr_expect_eq(s.nrq, 3);
		expect_term(&s, "00 00 00 00");
		close_rdmap_side(&s);
		open_rdmap_side(&s);
	}
}

Test(rdmap_life, completions_may_flush)
{
	for (int rx = 0; rx < 2; rx++) {
		react(FLUSH, rx);
		cr_expect_eq(s.nsq, 3);
		cr_expect_eq(s.nrq, 3);
		for (unsigned i = 0; i < 3; i++) {
			cr_expect_eq(s.sq[i].wr_id, i);
			cr_expect_eq(s.rq[i].wr_id, i);
		}
		cr_expect_eq(s.terms, 0);
		close_rdmap_side(&s);
		open_rdmap_side(&s);
	}
}

Test(rdmap_life, completions_may_drain)
{
	react(DRAIN, false);
	cr_expect_eq(s.nsq, 3);
	cr_expect_eq(s.drained, 1);
}

static void first_terminates(void *user, unsigned rtr)
{
	struct side *t = user;

	take_rdmap_first(user, rtr);
	ddps_rdmap_terminate(t->r, DDPS_E_LIMIT, (struct ddps_triple){ 0, 0, 0 }, "no");
}

Test(rdmap_life, first_message_may_terminate)
{
	static struct ddps_rdmap_up up;
	struct side t;

	up = side_up;
	up.first_message = first_terminates;
	side_init(&t, 2, 2, 1);
	t.r->up = &up;
	ddps_rdmap_start(t.r, &(struct ddps_rdmap_start){ .expect_rtr = DDPS_RTR_ALL });
	post_rdmap_recv(&t, 1, 0, 4);
	cr_expect_lt(feed_send(&t, 1, 0, true, "abc"), 0);
	expect_wc(t.rq[0], 1, DDPS_OP_RECV, DDPS_WC_FLUSHED);
	cr_expect_eq(t.nrq, 1);
	expect_term(&t, "00 00 00 00");
	close_rdmap_side(&t);
}

/* ---- invariants ---- */

/* What a stream checks of itself in builds with assertions: each of these faults stops the program. */

#ifdef DDPS_ASSERTS

static void check_stream(void *on)
{
	ddps_rdmap_check(((struct side *)on)->r);
}

static void ask_uncounted(void *on)
{
	((struct side *)on)->r->reads_out++;
}

static void pass_the_tail(void *on)
{
	struct ddps_rdmap *r = ((struct side *)on)->r;

	r->sq.next = r->sq.tail + 1;
}

static void post_too_many(void *on)
{
	struct ddps_rdmap *r = ((struct side *)on)->r;

	r->rq.tail += r->rq.depth + 1;
}

static void ack_what_did_not_leave(void *on)
{
	((struct side *)on)->r->tx_acked++;
}

Test(rdmap_invariants, of_a_stream)
{
	static struct side spoilt;
	void (*const spoils[])(void *) = { ask_uncounted, pass_the_tail, post_too_many,
					   ack_what_did_not_leave };

	open_rdmap_side(&spoilt);
	EXPECT_EACH_STOPS(spoils, check_stream, &spoilt);
	close_rdmap_side(&spoilt);
}

#endif
