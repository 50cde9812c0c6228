/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP while the layer above holds a segment of one session back. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdio.h>

static struct sd_world w;
static struct ddps_sd_assoc *raw;

/* Session 0 stalled at its segment with DDP-SSN 1, session 1 open. */
static void init(void)
{
	sd_world_init(&w);
	raw = sd_raw_open(&w, 0);
	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	w.req[0].rx_result = DDPS_LLP_HOLD;
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_assert_eq(w.req[0].holds, 1);
}

static void fini(void)
{
	sd_world_fini(&w);
}

TestSuite(sd_stall, .init = init, .fini = fini, .timeout = 60);

static void resume(struct sd_ulp *u)
{
	u->rx_result = 0;
	u->llp->ops->resume(u->llp);
	sd_run(&w);
}

Test(sd_stall, only_that_session_stands_still, .description = "5043-6.1-d2")
{
	struct sd_ulp *u = &w.req[0], *other = &w.req[1];

	for (uint16_t i = 1; i < 300; i++) {
		sd_send_segment(&w, raw, 0, (uint16_t)(i + 1), i);
		sd_send_segment(&w, raw, 1, i, i - 1u);
	}
	cr_expect_eq(u->segments, 0);
	cr_expect_eq(u->holds, 1, "not shown again unasked");
	cr_expect_eq(other->segments, 299);
	cr_expect_not(raw->peer->hold);
	cr_expect_eq(u->llp->ops->held(u->llp), 300 * ddps_sd_order_cost(SD_SEG_HDR + 2));
	u->llp->ops->resume(u->llp);
	sd_run(&w);
	cr_expect_eq(u->holds, 2);
	cr_expect_eq(u->llp->ops->held(u->llp), 300 * ddps_sd_order_cost(SD_SEG_HDR + 2));
	resume(u);
	cr_expect_eq(u->segments, 300);
	cr_expect_not(u->out_of_order);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, 0);
	sd_send(&w, raw, 0, "012d 0004");
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, 0);
}

Test(sd_stall, what_waits_may_stall_again)
{
	struct sd_ulp *u = &w.req[0];

	sd_send_segment(&w, raw, 0, 3, 2);
	resume(u);
	cr_expect_eq(u->segments, 1);
	u->rx_result = DDPS_LLP_HOLD;
	sd_send_segment(&w, raw, 0, 2, 1);
	cr_expect_eq(u->holds, 2);
	resume(u);
	cr_expect_eq(u->segments, 3);
	cr_expect_not(u->out_of_order);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, 0);
}

/* ---- the association goes ---- */

Test(sd_stall, contact_06_what_is_whole_outlives_the_association)
{
	struct sd_ulp *u = &w.req[0], *other = &w.req[1];

	sd_send_segment(&w, raw, 0, 2, 1);
	sd_send(&w, raw, 0, "0003 0004");
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(other->closes, 1);
	cr_expect_eq(other->error.code, DDPS_E_RESET);
	cr_expect_eq(u->closes, 0);
	cr_expect_gt(u->llp->ops->held(u->llp), 0);
	cr_expect_null(sd_carrier_of(&w, 0), "it is gone");
	u->llp->ops->kick(u->llp);
	u->llp->ops->resume(u->llp);
	sd_run(&w);
	cr_expect_eq(u->holds, 2, "it stalls again");
	cr_expect_eq(u->segments, 0);
	cr_expect_gt(u->peer_closings, 0);
	resume(u);
	cr_expect_eq(u->segments, 2);
	cr_expect_not(u->out_of_order);
	cr_expect_eq(u->peer_closes, 1);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, 0, "%s", u->error.text);
}

/* What follows it would be lost without a word. */
Test(sd_stall, contact_35_another_control_message_is_no_orderly_end)
{
	struct sd_ulp *u = &w.req[0];

	sd_send(&w, raw, 0, "0002 0002");
	sd_send_segment(&w, raw, 0, 3, 1);
	sd_send(&w, raw, 0, "0004 0004");
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(u->closes, 0);
	resume(u);
	cr_expect_eq(u->segments, 1);
	cr_expect_eq(u->peer_closes, 0);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_PROTOCOL);
	cr_expect_str_eq(u->error.text, "Accept is not legal in state OPEN");
}

Test(sd_stall, contact_06_where_something_is_missing_it_is_lost)
{
	struct sd_ulp *u = &w.req[0];

	sd_send(&w, raw, 0, "0003 0004"); /* 2 is not here; 4 is behind the end */
	sd_send_segment(&w, raw, 0, 4, 1);
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_RESET);
	cr_expect_eq(u->segments, 0);
}

Test(sd_stall, contact_06_without_its_close_it_is_lost)
{
	struct sd_ulp *u = &w.req[0];

	sd_send_segment(&w, raw, 0, 2, 1);
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->segments, 0);
}

/* A receive was posted in the same moment. */
Test(sd_stall, contact_06_it_goes_on_by_itself_if_it_may)
{
	struct sd_ulp *u = &w.req[0];

	sd_send(&w, raw, 0, "0002 0004");
	u->rx_result = 0;
	u->llp->ops->resume(u->llp);
	ddps_sd_carrier_free(sd_carrier_of(&w, 0));
	cr_expect_eq(u->segments, 0);
	sd_run(&w);
	cr_expect_eq(u->segments, 1);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, 0, "%s", u->error.text);
}

Test(sd_stall, contact_06_this_side_ends_what_outlives)
{
	struct sd_ulp *u = &w.req[0];

	sd_send(&w, raw, 0, "0002 0004");
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(u->closes, 0);
	u->llp->ops->shutdown(u->llp);
	cr_expect_eq(u->llp->ops->held(u->llp), 0);
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_CLOSED);
	cr_expect_eq(u->segments, 0);
}

Test(sd_stall, contact_06_what_outlives_can_be_freed)
{
	sd_send(&w, raw, 0, "0002 0004");
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	sd_free(&w.req[0]);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 0);
}

/* Found by tests/model/sd_session.pml: the Initiate was taken for a message of the old session. */
Test(sd_stall, peer_starts_over_while_its_last_segment_waits, .description = "5043-6.6-4")
{
	struct sd_ulp *u = &w.req[0];

	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	sd_send(&w, raw, 0, "0002 0004");
	cr_assert_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
	cr_expect_eq(u->closes, 0, "the segment may have its receive yet");
	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_LIMIT);
	cr_expect(strstr(u->error.text, "1 messages came that no receive"), "%s", u->error.text);
	cr_expect_eq(w.nreq, 3);
	sd_expect(raw, 0, "0000 0002");
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[2].segments, 1);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, 0);
}

/* It may not before its Terminate, and not while something is missing before that. */
Test(sd_stall, peer_starts_over_too_early, .description = "5043-10-6")
{
	struct sd_ulp *u = &w.req[0], *other = &w.req[1];

	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	other->llp->ops->shutdown(other->llp);
	sd_run(&w);
	sd_expect(raw, 1, "0001 0004");
	sd_send(&w, raw, 1, "0002 0004"); /* 1 is under way yet */
	cr_assert_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
	cr_assert_eq(sd_state(&w, 0, 1), DDPS_SD_LT);
	for (uint16_t i = 0; i < 2; i++) {
		sd_send(&w, raw, i, "0000 0001");
		cr_expect_eq(w.nreq, 2);
		cr_expect_eq(w.req[i].closes, 1);
		cr_expect_eq(w.req[i].error.code, DDPS_E_PROTOCOL, "%s", w.req[i].error.text);
	}
}

Test(sd_stall, sending_goes_on)
{
	struct sd_ulp *u = &w.req[0];

	u->to_send = 3;
	u->llp->ops->kick(u->llp);
	sd_run(&w);
	cr_expect_eq(u->done, 3);
	for (int i = 0; i < 3; i++)
		free(fake_sctp_raw_take(raw));
}

static void fill_sd_stall(uint16_t stream, unsigned *ssn, size_t len, size_t n)
{
	for (size_t i = 0; i < n; i++, ++*ssn)
		sd_push_segment(raw, stream, (uint16_t)*ssn, *ssn - 1, len);
	sd_run(&w);
}

Test(sd_stall, much_of_it_closes_the_receive_window, .description = "5043-10-5")
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2);
	struct sd_ulp *u = &w.req[0], *other = &w.req[1];
	unsigned ssn = 2, other_ssn = 1;

	fill_sd_stall(0, &ssn, len, n);
	cr_expect_not(raw->peer->hold);
	fill_sd_stall(0, &ssn, len, 1);
	cr_expect(raw->peer->hold, "one more and nothing is read");
	fill_sd_stall(0, &ssn, len, 1000);
	fill_sd_stall(1, &other_ssn, len, 1);
	cr_expect_eq(other->segments, 0);
	cr_expect_eq(u->closes, 0, "lossless");
	cr_expect_leq(sd_carrier_of(&w, 0)->held, DDPS_SD_STALL_OCTETS + 61000);
	resume(u);
	cr_expect_not(raw->peer->hold);
	cr_expect_eq(u->segments, ssn - 1);
	cr_expect_not(u->out_of_order);
	cr_expect_eq(other->segments, 1);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, 0);
}

Test(sd_stall, many_small_ones_stay_inside_the_window, .description = "5043-10-6 5043-10-d1")
{
	struct sd_ulp *u = &w.req[0];
	unsigned ssn = 2;

	fill_sd_stall(0, &ssn, SD_SEG_HDR, DDPS_SD_STALL_MESSAGES - 2);
	cr_expect_not(raw->peer->hold);
	fill_sd_stall(0, &ssn, SD_SEG_HDR, 50000);
	cr_expect(raw->peer->hold);
	resume(u);
	cr_expect_eq(u->segments, ssn - 1);
	cr_expect_not(u->out_of_order);
	cr_expect_eq(u->closes, 0);
}

Test(sd_stall, many_stalled_sessions_share_a_bound)
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2) / 2;

	for (uint16_t s = 2; s < 12; s++) {
		sd_send(&w, raw, s, "0000 0001");
		sd_expect(raw, s, "0000 0002");
		w.req[s].rx_result = DDPS_LLP_HOLD;
	}
	for (uint16_t s = 2; s < 12; s++) {
		unsigned ssn = 1;

		fill_sd_stall(s, &ssn, len, n);
	}
	cr_expect(raw->peer->hold);
	cr_expect_leq(sd_carrier_of(&w, 0)->held, DDPS_SD_STALL_ASSOC + 61000);
	for (uint16_t s = 2; s < 12; s++)
		resume(&w.req[s]);
	for (uint16_t s = 2; s < 12; s++) {
		cr_expect_eq(w.req[s].segments, n);
		cr_expect_eq(w.req[s].closes, 0);
	}
	cr_expect_not(raw->peer->hold);
}

Test(sd_stall, the_peers_close_waits_its_turn)
{
	struct sd_ulp *u = &w.req[0];

	cr_expect_eq(u->peer_closings, 0);
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(u->peer_closes, 0);
	cr_expect_eq(u->peer_closings, 1);
	resume(u);
	cr_expect_eq(u->segments, 1);
	cr_expect_eq(u->peer_closes, 1);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, 0);
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_stall, an_abort_opens_the_window_for_the_others)
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2) + 1;
	struct sd_ulp *u = &w.req[0];
	unsigned ssn = 2;
	char term[16];

	fill_sd_stall(0, &ssn, len, n);
	cr_expect(raw->peer->hold);
	sd_send_segment(&w, raw, 1, 1, 0);
	cr_expect_eq(w.req[1].segments, 0);
	u->llp->ops->abort(u->llp);
	u->llp->ops->resume(u->llp);
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_CLOSED);
	cr_expect_not(raw->peer->hold);
	cr_expect_eq(w.req[1].segments, 1);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, 0);
	sd_expect(raw, 0, "0001 0004");
	snprintf(term, sizeof term, "%04x 0004", ssn);
	sd_send(&w, raw, 0, term);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

Test(sd_stall, a_violation_behind_it_ends_the_session)
{
	struct sd_ulp *u = &w.req[0];

	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_PROTOCOL);
	sd_expect(raw, 0, "0001 0004");
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE, "the peer's Terminate had its turn");
}

Test(sd_stall, losing_the_association_is_noticed)
{
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_RESET);
}

/* Two sessions of one association, the responder of one posts no receives. */
Test(sd_stall, attack_4_a_stalled_session_does_not_silence_others_for_ever)
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2) + 1;
	struct sd_ulp *u = &w.req[0], *other = &w.req[1];
	struct ddps_timer *t = &sd_carrier_of(&w, 0)->pause_timer;
	unsigned ssn = 2, other_ssn = 1;

	cr_expect_not(ddps_timer_runs(t));
	fill_sd_stall(0, &ssn, len, n);
	fill_sd_stall(1, &other_ssn, len, 3);
	cr_expect_eq(other->segments, 0);
	cr_assert(ddps_timer_runs(t));
	t->fn(t->user); /* its time has come */
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_LIMIT, "%s", u->error.text);
	cr_expect_eq(other->segments, 3);
	cr_expect_eq(other->closes, 0);
	cr_expect_not(raw->peer->hold);
	cr_expect_not(ddps_timer_runs(t));
}

Test(sd_stall, attack_4_who_keeps_nobody_waiting_may_stall_for_ever)
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2) + 1;
	struct sd_ulp *u = &w.req[0], *other = &w.req[1];
	struct ddps_timer *t = &sd_carrier_of(&w, 0)->pause_timer;
	unsigned ssn = 2;

	other->rx_result = DDPS_LLP_HOLD;
	sd_send_segment(&w, raw, 1, 1, 0);
	fill_sd_stall(0, &ssn, len, n);
	cr_expect(raw->peer->hold);
	for (int i = 0; i < 10; i++) {
		cr_assert(ddps_timer_runs(t));
		t->fn(t->user);
		sd_run(&w);
	}
	cr_expect_eq(u->closes + other->closes, 0);
	resume(other);
	resume(u);
	cr_expect_eq(u->segments, ssn - 1);
	cr_expect_eq(other->segments, 1);
}

/* ---- a backend whose window can be made smaller ---- */

static struct {
	size_t octets, window; /* that is kept; with which the window is shut */
} kept;

static bool keep_stall_octets(struct ddps_sd_assoc *a, size_t octets)
{
	(void)a;
	kept.octets = octets;
	return octets >= kept.window;
}

static struct ddps_sd_carrier *keeper(size_t window)
{
	static struct ddps_sd_backend b;
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	b = *c->b;
	b.keep = keep_stall_octets;
	c->b = &b;
	kept.octets = 0;
	kept.window = window;
	return c;
}

Test(sd_stall, what_is_beyond_the_share_is_taken_off_the_window, .description = "5043-10-5")
{
	struct ddps_sd_carrier *c = keeper(4u << 20);
	size_t len = 60000, cost = ddps_sd_order_cost(len + 2);
	size_t n = DDPS_SD_STALL_OCTETS / cost;
	unsigned ssn = 2, other_ssn = 1;

	fill_sd_stall(0, &ssn, len, n);
	cr_expect_eq(kept.octets, 0);
	fill_sd_stall(0, &ssn, len, 4);
	cr_expect_eq(kept.octets, 2 * (c->held - DDPS_SD_STALL_OCTETS));
	cr_expect_gt(kept.octets, 3 * cost);
	cr_expect_not(raw->peer->hold, "it is read all the same");
	cr_expect_not(ddps_timer_runs(&c->pause_timer));
	fill_sd_stall(1, &other_ssn, len, 3);
	cr_expect_eq(w.req[1].segments, 3);
	/* a new one is set up */
	sd_send(&w, raw, 2, "0000 0001");
	sd_expect(raw, 2, "0000 0002");
	resume(&w.req[0]);
	cr_expect_eq(kept.octets, 0);
	cr_expect_eq(w.req[0].segments, ssn - 1);
	cr_expect_eq(c->held, 0);
}

Test(sd_stall, small_ones_beyond_the_share_are_taken_off_too, .description = "5043-10-6")
{
	unsigned ssn = 2;

	keeper(4u << 20);
	fill_sd_stall(0, &ssn, SD_SEG_HDR, DDPS_SD_STALL_MESSAGES - 1);
	cr_expect_eq(kept.octets, 0);
	fill_sd_stall(0, &ssn, SD_SEG_HDR, 100);
	cr_expect_eq(kept.octets, 100 * 2 * DDPS_SD_STALL_ITEM);
	resume(&w.req[0]);
	cr_expect_eq(kept.octets, 0);
	cr_expect_eq(w.req[0].closes, 0);
}

Test(sd_stall, attack_4_a_shut_window_is_opened_for_others, .description = "5043-10-5")
{
	struct ddps_sd_carrier *c = keeper(1u << 20);
	size_t len = 60000, cost = ddps_sd_order_cost(len + 2);
	struct sd_ulp *u = &w.req[0], *other = &w.req[1];
	unsigned ssn = 2;

	fill_sd_stall(0, &ssn, len, (DDPS_SD_STALL_OCTETS + (1u << 19)) / cost - 1);
	cr_expect_not(ddps_timer_runs(&c->pause_timer));
	fill_sd_stall(0, &ssn, len, 2);
	cr_assert(ddps_timer_runs(&c->pause_timer));
	cr_expect_not(raw->peer->hold);
	c->pause_timer.fn(c->pause_timer.user); /* its time has come */
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_LIMIT, "%s", u->error.text);
	cr_expect_eq(other->closes, 0);
	cr_expect_eq(kept.octets, 0);
	cr_expect_not(ddps_timer_runs(&c->pause_timer));
}

/* Several sessions lack receives: the one that holds most ends. */
Test(sd_stall, the_one_that_holds_most_ends)
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2) + 1;
	static const uint16_t stream[] = { 2, 4, 6 };
	unsigned ssn[] = { 1, 1, 1 };
	struct ddps_timer *t = &sd_carrier_of(&w, 0)->pause_timer;

	for (unsigned i = 0; i < 3; i++) {
		sd_send(&w, raw, stream[i], "0000 0001");
		w.req[2 + i].rx_result = DDPS_LLP_HOLD;
	}
	fill_sd_stall(2, &ssn[0], len, 2);
	fill_sd_stall(6, &ssn[2], len, 3);
	fill_sd_stall(4, &ssn[1], len, n);
	cr_assert(ddps_timer_runs(t));
	t->fn(t->user);
	sd_run(&w);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(w.req[i].closes, i == 3, "session %u", i);
	cr_expect_eq(w.req[3].error.code, DDPS_E_LIMIT, "%s", w.req[3].error.text);
	cr_expect_not(raw->peer->hold);
}

Test(sd_stall, an_association_that_goes_ends_nobody_for_others)
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2) + 1;
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	unsigned ssn = 2;

	fill_sd_stall(0, &ssn, len, n);
	cr_assert(ddps_timer_runs(&c->pause_timer));
	ddps_sd_carrier_up.peer_shutdown(c);
	ddps_timer_start(w.env.loop, &c->pause_timer, 0);
	sd_run(&w);
	cr_expect_not(ddps_timer_runs(&c->pause_timer));
	cr_expect_eq(w.req[0].error.code, DDPS_E_CLOSED);
}

/* What it held is forgotten: it is read when it begins anew. */
Test(sd_stall, an_association_that_was_about_to_end_is_read_again, .description = "9260-5.2.4-4")
{
	size_t len = 60000, n = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2) + 1;
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	unsigned ssn = 2;

	fill_sd_stall(0, &ssn, len, n);
	cr_assert(raw->peer->hold);
	ddps_sd_carrier_up.peer_shutdown(c);
	raw->peer->hold = false;
	ddps_sd_carrier_up.restarted(c);
	sd_send(&w, raw, 0, "0000 0001");
	w.req[w.nreq - 1].rx_result = DDPS_LLP_HOLD;
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(c->nwaiting, 1);
	cr_expect_not(raw->peer->hold);
}

/* All that stalled sessions hold together counts, beyond what an association may hold. */
Test(sd_stall, what_all_hold_is_taken_off_the_window, .description = "5043-10-5")
{
	struct ddps_sd_carrier *c = keeper(64u << 20);
	size_t len = 60000, each = DDPS_SD_STALL_OCTETS / ddps_sd_order_cost(len + 2);
	unsigned ssn = 2, other_ssn[4];

	for (uint16_t s = 2; s < 6; s++) { /* one is missing: they wait in order, and stall not */
		other_ssn[s - 2] = 2;
		sd_send(&w, raw, s, "0000 0001");
		fill_sd_stall(s, &other_ssn[s - 2], len, each);
	}
	resume(&w.req[0]);
	fill_sd_stall(1, &(unsigned){ 2 }, len, each);
	cr_assert_gt(c->held, DDPS_SD_STALL_ASSOC);
	cr_expect_eq(c->nwaiting, 0);
	cr_expect_eq(kept.octets, 0, "nobody stalls");
	w.req[0].rx_result = DDPS_LLP_HOLD;
	fill_sd_stall(0, &ssn, len, 2);
	cr_expect_eq(c->nwaiting, 1);
	cr_expect_eq(kept.octets, 2 * (c->held - DDPS_SD_STALL_ASSOC));
}

/* A window that was shut opens when half of what shut it is gone. */
Test(sd_stall, a_shut_window_stays_shut_until_half_is_gone)
{
	struct ddps_sd_carrier *c = keeper(1u << 20);
	size_t len = 60000, cost = ddps_sd_order_cost(len + 2);
	size_t share = DDPS_SD_STALL_OCTETS / cost;
	unsigned ssn = 2, other_ssn = 1;

	w.req[1].rx_result = DDPS_LLP_HOLD;
	fill_sd_stall(0, &ssn, len, share + 2);
	fill_sd_stall(1, &other_ssn, len, share + 8);
	cr_assert_not(c->paused);
	kept.window = 2 * (size_t)c->over; /* is shut by the next one */
	fill_sd_stall(1, &other_ssn, len, 1);
	cr_assert(c->paused);
	kept.window = SIZE_MAX;
	resume(&w.req[0]); /* less than half */
	cr_expect(c->paused);
	cr_expect(ddps_timer_runs(&c->pause_timer));
	resume(&w.req[1]);
	cr_expect_not(c->paused);
	cr_expect_not(ddps_timer_runs(&c->pause_timer));
}

/* Whatever else waits behind the segment does not end the session. */
Test(sd_stall, only_a_terminate_is_the_peers_close)
{
	sd_send(&w, raw, 0, "0002 0002");
	cr_expect_eq(w.req[0].peer_closings, 0);
	cr_expect_eq(w.req[0].closes, 0);
	sd_send(&w, raw, 0, "0003 0004");
	cr_expect_eq(w.req[0].peer_closings, 1);
}

/* Where two hold the same, one of them is enough. */
Test(sd_stall, of_two_that_hold_most_the_first_ends)
{
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	sd_send(&w, raw, 2, "0000 0001");
	w.req[1].rx_result = DDPS_LLP_HOLD;
	sd_send_segment(&w, raw, 1, 1, 0);
	cr_assert_eq(sd_pair_of(&w.req[0])->rx.octets, sd_pair_of(&w.req[1])->rx.octets);
	ddps_sd_rx_pause_over(c);
	sd_run(&w);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(w.req[i].closes, i == 0, "session %u", i);
	ddps_timer_stop(w.env.loop, &c->pause_timer);
}
