/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions over SCTP where two things meet that seldom do. */
#include "support/sd_world.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static struct sd_world w;

static void init(void)
{
	sd_world_init(&w);
}

static void fini(void)
{
	sd_world_fini(&w);
}

TestSuite(sd_rare, .init = init, .fini = fini, .timeout = 30);

static const struct ddps_sd_assoc_up *const tell = &ddps_sd_carrier_up;

/* ---- whoever ends an association that nobody else needs ---- */

/* A session whose Terminate would not leave, just aborted; its task has not run. */
static struct ddps_sd_carrier *aborted_while_blocked(struct ddps_sd_assoc **raw)
{
	struct ddps_sd_carrier *c;

	w.accept = false;
	*raw = sd_raw_to_listener(&w);
	sd_send(&w, *raw, 0, "0000 0001");
	c = sd_carrier_of(&w, 0);
	(*raw)->hold = true;
	(*raw)->peer->room = 1;
	sd_send(&w, *raw, 1, "0000 0002"); /* its answer takes the room */
	cr_assert_eq(sd_answer(&w.req[0], false, NULL, 0), 0);
	sd_run(&w);
	cr_assert(c->blocked);
	w.req[0].llp->ops->abort(w.req[0].llp);
	cr_assert(c->stuck);
	cr_assert_eq(c->nsessions, 0);
	return c;
}

Test(sd_rare, a_stuck_association_is_aborted)
{
	struct ddps_sd_assoc *raw;

	aborted_while_blocked(&raw);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_null(sd_carrier_of(&w, 0));
	cr_expect(strstr(w.log, "aborted: it took nothing, and nobody else used it"), "%s", w.log);
}

Test(sd_rare, a_stuck_association_that_another_session_uses_stays)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_carrier *c = aborted_while_blocked(&raw);

	tell->message(c, 2, DDPS_SD_PPID_CONTROL, true, (const uint8_t *)"\0\0\0\1", 4);
	cr_assert_eq(w.nreq, 2);
	sd_run(&w);
	cr_expect_eq(sd_carrier_of(&w, 0), c);
	cr_expect_eq(raw->peer->aborts, 0);
	cr_expect_not(c->stuck);
	cr_expect_eq(w.req[1].closes, 0);
}

Test(sd_rare, a_stuck_association_that_the_peer_shuts_down_is_not_aborted)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_carrier *c = aborted_while_blocked(&raw);

	tell->peer_shutdown(c);
	sd_run(&w);
	cr_expect_eq(sd_carrier_of(&w, 0), c);
	cr_expect_eq(raw->peer->aborts, 0);
	cr_expect(ddps_timer_runs(&c->linger));
}

/* ---- news of an association that goes ---- */

Test(sd_rare, nothing_wakes_an_association_that_goes)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	struct ddps_sd_assoc *end = raw->peer;

	tell->peer_shutdown(c);
	cr_assert_eq(c->state, DDPS_SD_GOING);
	end->info.in_streams = 8;
	end->info.max_user_data = 600;
	tell->answered(c);
	tell->comm_up(c);
	tell->path(c);
	tell->dry(c);
	tell->acked(c, 1000);
	tell->message(c, 2, DDPS_SD_PPID_CONTROL, true, (const uint8_t *)"\0\0\0\1", 4);
	cr_expect_eq(c->state, DDPS_SD_GOING);
	cr_expect_eq(c->usable, DDPS_SCTP_STREAMS);
	cr_expect_eq(c->max_user_data, 1452);
	cr_expect_eq(c->acked, 1000, "what has left counts");
	cr_expect_eq(w.nreq, 1);
}

/* But a peer that begins anew before it has ended [9260-5.2.4-4]. */
Test(sd_rare, contact_10_a_peer_that_begins_anew_wakes_it)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	tell->peer_shutdown(c);
	cr_assert_eq(c->state, DDPS_SD_GOING);
	raw->peer->info.in_streams = 8;
	tell->restarted(c);
	cr_expect_eq(c->state, DDPS_SD_UP);
	cr_expect_eq(c->usable, 8);
	cr_expect_eq(c->nsessions, 0);
	cr_expect(ddps_timer_runs(&c->linger), "it ends if nothing is asked of it");
}

/* Its listener goes while the peer has yet to let it end: that has its deadline as before. */
Test(sd_rare, an_association_that_goes_outlasts_its_listener)
{
	struct ddps_sd_carrier *c;

	sd_raw_open(&w, 0);
	c = sd_carrier_of(&w, 0);
	tell->peer_shutdown(c);
	cr_assert(ddps_timer_runs(&c->linger));
	ddps_sctp_provider.listener_free(w.listener);
	w.listener = NULL;
	cr_expect(ddps_timer_runs(&c->linger));
	cr_expect_null(c->listener);
}

Test(sd_rare, an_unrequested_dry_acknowledges_nothing)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	uint64_t sent;

	raw->hold = true;
	raw->peer->hold_dry = true;
	w.req[0].to_send = 1;
	w.req[0].llp->ops->kick(w.req[0].llp);
	cr_assert_lt(c->acked, c->sent);
	cr_assert_not(c->asked);
	tell->dry(c);
	cr_expect_lt(c->acked, c->sent);
	w.req[0].llp->ops->shutdown(w.req[0].llp); /* its Terminate waits for the Accept */
	sd_run(&w);
	cr_assert(c->asked);
	sent = c->sent;
	tell->dry(c);
	cr_expect_eq(c->acked, sent);
	cr_expect_eq(c->sent, sent + 1, "the Terminate");
}

/* Whoever knows better than the association who the peer was, says so. */
Test(sd_rare, the_end_names_the_peer)
{
	struct ddps_error e = ddps_error_make(DDPS_E_TIMEDOUT, 0, "gone");

	sd_raw_open(&w, 0);
	tell->gone(sd_carrier_of(&w, 0), &e);
	sd_run(&w);
	cr_expect_str_eq(w.req[0].error.peer, "127.0.0.1:2");
	strcpy(e.peer, "[2001:db8::1]:9");
	sd_raw_open(&w, 0);
	tell->gone(sd_carrier_of(&w, 0), &e);
	sd_run(&w);
	cr_expect_str_eq(w.req[1].error.peer, "[2001:db8::1]:9");
}

/* An association that is being set up for nobody any more: what answers its INIT is no answer to whoever comes
 * later.  As long as somebody waits for it, others do so, too. */
Test(sd_rare, a_set_up_that_all_have_given_up)
{
	struct sd_ulp u[3] = { 0 };

	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 1, "they wait for one");
	sd_free(&u[0]);
	sd_free(&u[1]);
	cr_expect_eq(sd_carrier_of(&w, 0)->state, DDPS_SD_COMING, "it lingers");
	cr_assert_eq(sd_connect(&w, &u[2], SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 2);
	sd_free(&u[2]);
}

/* ---- requests that meet the peer's shutdown ---- */

Test(sd_rare, waiting_requests_that_joined_are_unheard)
{
	struct sd_ulp u[DDPS_SD_PENDING_MAX + 2] = { 0 };
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u[0], false);

	for (unsigned i = 1; i < DDPS_SD_PENDING_MAX + 2; i++)
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	raw->shut = true;
	fake_sctp_poke(raw);
	raw->hold = false;
	while (raw->narrived)
		free(fake_sctp_raw_take(raw));
	sd_run(&w);
	for (unsigned i = 0; i < DDPS_SD_PENDING_MAX + 2; i++) {
		cr_expect_eq(u[i].closes, 1);
		cr_expect_eq(u[i].llp->unheard, i != 0, "%u: the first made it", i);
		sd_free(&u[i]);
	}
}

/* A peer that has too many associations of ours without a session aborts one: nobody there has seen the request.
 * What is lost on the way was perhaps seen. */
Test(sd_rare, a_request_that_met_an_abort_is_unheard)
{
	const struct {
		int code;
		bool unheard;
	} of[] = { { DDPS_E_RESET, true }, { DDPS_E_TIMEDOUT, false }, { DDPS_E_CLOSED, false } };

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct ddps_error e = ddps_error_make(of[i].code, 0, "gone");
		struct sd_ulp u[2] = { 0 };

		if (i) {
			sd_world_fini(&w);
			sd_world_init(&w);
		}
		sd_raw_initiated(&w, &u[0], false);
		cr_assert_eq(sd_connect(&w, &u[1], SD_RAW_PORT, false, NULL, 0), 0);
		sd_run(&w);
		tell->gone(sd_carrier_of(&w, 0), &e);
		sd_run(&w);
		cr_expect_eq(u[1].closes, 1);
		cr_expect_not(u[0].llp->unheard);
		cr_expect_eq(u[1].llp->unheard, of[i].unheard, "%zu", i);
		sd_free(&u[0]);
		sd_free(&u[1]);
	}
}

/* Of a peer that has answered another request a new association may be of use, also to the one that this was made
 * for: an ABORT because the other session was given up meets it on its way. */
Test(sd_rare, a_first_request_is_unheard_if_another_was_answered)
{
	const struct {
		const char *answer;
		bool withdrawn;
	} of[] = { { "0000 0002", false }, { "0000 0003", false }, { "0000 0002", true } };

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		const struct ddps_error e = ddps_error_make(DDPS_E_RESET, 0, "gone");
		struct sd_ulp u[2] = { 0 };
		struct ddps_sd_assoc *raw;

		if (i) {
			sd_world_fini(&w);
			sd_world_init(&w);
		}
		raw = sd_raw_initiated(&w, &u[0], false);
		cr_assert_eq(sd_connect(&w, &u[1], SD_RAW_PORT, false, NULL, 0), 0);
		sd_run(&w);
		if (of[i].withdrawn)
			sd_free(&u[1]);
		sd_send(&w, raw, 2, of[i].answer);
		sd_run(&w);
		tell->gone(sd_carrier_of(&w, 0), &e);
		sd_run(&w);
		cr_expect_eq(u[0].closes, 1, "%zu", i);
		cr_expect(u[0].llp->unheard, "%zu", i);
		sd_free(&u[0]);
		if (of[i].withdrawn)
			continue;
		cr_expect_not(u[1].llp->unheard, "%zu: it was answered", i);
		sd_free(&u[1]);
	}
}

/* ---- calls out of turn ---- */

Test(sd_rare, calls_after_the_end_do_nothing)
{
	struct ddps_assoc_stats st = { 0 };
	struct ddps_path_stats path = { 0 };
	struct ddps_llp *llp;

	w.accept = false;
	sd_send(&w, sd_raw_to_listener(&w), 0, "0000 0001");
	llp = w.req[0].llp;
	cr_expect_eq(llp->ops->assoc_stats(llp, &st), DDPS_E_UNSUPPORTED);
	llp->ops->abort(llp);
	cr_expect_eq(sd_answer(&w.req[0], false, NULL, 0), DDPS_E_CLOSED);
	sd_run(&w);
	llp->ops->open(llp);
	llp->ops->kick(llp);
	llp->ops->resume(llp);
	llp->ops->shutdown(llp);
	cr_expect_eq(llp->ops->keep_copy(llp), 0);
	cr_expect_eq(llp->ops->held(llp), 0);
	cr_expect_eq(llp->ops->assoc_stats(llp, &st), DDPS_E_STATE);
	cr_expect_eq(llp->ops->path_stats(llp, 0, &path), DDPS_E_STATE);
	cr_expect_eq(llp->ops->set_primary(llp, 0), DDPS_E_STATE);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_CLOSED);
}

Test(sd_rare, calls_before_the_association_is_up)
{
	struct ddps_assoc_stats st = { 0 };
	struct sd_ulp u = { 0 };

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(u.llp->ops->assoc_stats(u.llp, &st), DDPS_E_STATE);
	u.llp->ops->open(u.llp);
	u.llp->ops->resume(u.llp);
	cr_expect_not(((struct ddps_sd_session *)u.llp)->opened);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_CLOSED);
	cr_expect_not(fake_sctp_raw_accepted(SD_RAW_PORT)->narrived);
	sd_free(&u);
}

Test(sd_rare, resume_of_what_does_not_stall_does_nothing)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_llp *llp = w.req[0].llp;

	llp->ops->resume(llp);
	cr_expect_null(((struct ddps_sd_session *)llp)->task.prev);
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[0].segments, 1);
}

/* The tables say what may happen; the rest is written down, and changes nothing. */
Test(sd_rare, an_event_out_of_place_changes_nothing)
{
	struct ddps_sd_pair *p;

	sd_raw_open(&w, 0);
	p = sd_pair_of(&w.req[0]);
	ddps_sd_pair_step(p, DDPS_SD_EV_CONNECT, NULL, NULL);
	cr_expect_eq(p->sm.state, DDPS_SD_OPEN);
	cr_expect(strstr(w.log, "CONNECT in state OPEN"), "%s", w.log);
	cr_expect_eq(w.req[0].closes, 0);
}

/* ---- ahead of the decision ---- */

Test(sd_rare, few_messages_may_come_ahead_of_the_decision, .description = "5043-10-5")
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	for (uint16_t i = 0; i < DDPS_SD_EARLY_MAX; i++)
		sd_send_segment(&w, raw, 0, (uint16_t)(i + 2), i + 1u);
	cr_expect_eq(w.req[0].closes, 0);
	sd_send_segment(&w, raw, 0, DDPS_SD_EARLY_MAX + 2, DDPS_SD_EARLY_MAX + 1);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_LIMIT);
	cr_expect(strstr(w.req[0].error.text, "64 messages ahead of the decision"), "%s",
		  w.req[0].error.text);
}

/* ---- out of pulling and sending ---- */

Test(sd_rare, a_session_may_end_when_it_is_asked_for_a_segment)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	u->abort_on_pull = true;
	u->llp->ops->kick(u->llp);
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_CLOSED);
	sd_expect(raw, 0, "0001 0004");
	sd_expect_silence(raw);
}

/* Posting while one is pulled that then finds no room: it is in the line once, and first. */
Test(sd_rare, posting_while_a_segment_finds_no_room)
{
	for (unsigned others = 0; others < 2; others++) {
		struct ddps_sd_assoc *raw;
		struct ddps_sd_carrier *c;

		sd_world_fini(&w);
		sd_world_init(&w);
		raw = sd_raw_open(&w, 0);
		sd_send(&w, raw, 1, "0000 0001");
		sd_expect(raw, 1, "0000 0002");
		c = sd_carrier_of(&w, 0);
		raw->hold = true;
		raw->peer->room = 1;
		w.req[0].to_send = 3;
		w.req[0].kick_on_pull = true;
		w.req[1].to_send = others;
		if (others) { /* is in the line when the other one's finds no room */
			c->quiet = true;
			w.req[1].llp->ops->kick(w.req[1].llp);
			w.req[0].llp->ops->kick(w.req[0].llp);
			c->quiet = false;
		}
		w.req[0].llp->ops->kick(w.req[0].llp);
		cr_assert(c->blocked);
		cr_expect_eq(TAILQ_FIRST(&c->seg), c->tx_pair);
		raw->hold = false;
		fake_sctp_poke(raw);
		sd_run(&w);
		cr_expect_eq(w.req[0].done, 3);
		cr_expect_eq(w.req[1].done, others);
		cr_expect(TAILQ_EMPTY(&c->seg));
	}
}

/* A Terminate that is due does not wait for the end of another session's turn. */
Test(sd_rare, a_control_message_goes_before_the_rest_of_a_turn)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	unsigned before = 0;
	struct fake_sctp_msg *m;

	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	sd_send(&w, raw, 2, "0000 0002"); /* all that was sent is acknowledged */
	sd_expect(raw, 2, "0000 0004");
	w.req[0].to_send = 20;
	w.req[0].abort_on_done = &w.req[1];
	w.req[0].llp->ops->kick(w.req[0].llp);
	sd_run(&w);
	cr_expect_eq(w.req[0].done, 20);
	while ((m = fake_sctp_raw_take(raw)) && m->ppid == DDPS_SD_PPID_SEGMENT) {
		before++;
		free(m);
	}
	cr_assert(m);
	cr_expect_eq(m->stream, 1);
	cr_expect_eq(before, 1);
	free(m);
}

/* ---- keeping a copy ---- */

Test(sd_rare, only_payload_is_copied_and_only_once)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	struct sd_ulp *u = &w.req[0];
	uint8_t piece[2][60];
	long live;

	raw->hold = true;
	raw->peer->room = 1;
	u->to_send = 3;
	u->llp->ops->kick(u->llp); /* one leaves, the next finds no room */
	cr_assert_eq(c->tx_pair, sd_pair_of(u));
	live = mem_live();
	cr_expect_eq(u->llp->ops->keep_copy(u->llp), 0);
	cr_expect_null(c->tx_copy, "a segment without payload");
	cr_expect_null(w.env.lenders);
	cr_expect_eq(mem_live(), live);
	u->pay_len = 100;
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	cr_assert_eq(u->done, 3);
	raw->hold = true;
	u->to_send = 5;
	u->llp->ops->kick(u->llp);
	cr_expect_neq(w.env.lenders, NULL);
	memset(piece[0], 'a', sizeof piece[0]);
	memset(piece[1], 'b', sizeof piece[1]);
	c->tx_seg->pay[0] = (struct iovec){ piece[0], 40 };
	c->tx_seg->pay[1] = (struct iovec){ piece[1], 60 };
	c->tx_seg->pay[2] = (struct iovec){ (void *)1, 1 }; /* of one that was before */
	c->tx_seg->npay = 2;
	mem_fail(1);
	cr_expect_eq(u->llp->ops->keep_copy(u->llp), DDPS_E_NOMEM);
	cr_expect_neq(w.env.lenders, NULL, "it refers to user memory yet");
	cr_expect_null(c->tx_copy);
	cr_expect_eq(u->llp->ops->keep_copy(u->llp), 0);
	cr_assert_not_null(c->tx_copy);
	cr_expect_arr_eq(c->tx_copy, piece[0], 40);
	cr_expect_arr_eq(c->tx_copy + 40, piece[1], 60);
	cr_expect(c->tx_seg->npay == 1 && c->tx_seg->pay[0].iov_base == c->tx_copy &&
		  c->tx_seg->pay[0].iov_len == 100);
	memset(piece, 0, sizeof piece); /* it is the program's again */
	cr_expect_null(w.env.lenders);
	live = mem_live();
	cr_expect_eq(u->llp->ops->keep_copy(u->llp), 0);
	cr_expect_eq(mem_live(), live, "kept once");
	tell->writable(c); /* too early */
	cr_expect(c->blocked);
	cr_expect_null(w.env.lenders, "the copy is its own");
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	cr_expect_eq(u->done, 5);
	cr_expect_null(c->tx_copy);
}

/* ---- no memory ---- */

Test(sd_rare, a_message_that_is_held_back_and_finds_no_memory)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	w.req[0].rx_result = DDPS_LLP_HOLD;
	sd_push_segment(raw, 0, 1, 0, SD_SEG_HDR);
	mem_fail(1);
	sd_run(&w);
	cr_expect(mem_failed());
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_NOMEM);
	cr_expect_null(sd_carrier_of(&w, 0), "a Terminate would say that all was taken");
}
