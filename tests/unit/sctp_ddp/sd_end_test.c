/* SPDX-License-Identifier: BSD-2-Clause */
/* The context goes, or all of an association: what is reported, and what is left behind. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct sd_world w;
static struct sd_ulp u, v;

static void init(void)
{
	sd_world_init(&w);
	u = v = (struct sd_ulp){ 0 };
}

static void fini(void)
{
	sd_free(&u);
	sd_free(&v);
	sd_world_fini(&w);
}

TestSuite(sd_end, .init = init, .fini = fini, .timeout = 30);

static bool winds_up(void)
{
	return ddps_sctp_provider.wind_up(&w.env, false);
}

/* ---- winding up ---- */

Test(sd_end, an_association_without_a_session_is_shut_down_with_its_context)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send(&w, raw, 0, "0000 0002");
	cr_assert_eq(u.answers, 1);
	cr_expect(winds_up(), "it is to be waited for");
	sd_run(&w);
	cr_expect_eq(raw->peer->shutdowns, 0, "a session is there");
	cr_expect_eq(sd_carrier_of(&w, 0)->state, DDPS_SD_UP);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	sd_free(&u);
	cr_expect(winds_up());
	cr_expect_eq(raw->peer->shutdowns, 1);
	cr_expect_eq(sd_carrier_of(&w, 0)->state, DDPS_SD_GOING);
	cr_expect(winds_up());
	cr_expect_eq(raw->peer->shutdowns, 1, "once");
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	cr_expect_not(winds_up(), "nothing is left");
	cr_expect_eq(raw->peer, NULL);
}

Test(sd_end, an_association_that_comes_up_for_nobody_goes_with_its_context)
{
	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect(winds_up(), "somebody waits for it");
	cr_expect_eq(sd_carrier_of(&w, 0)->state, DDPS_SD_COMING);
	sd_free(&u);
	cr_assert(sd_carrier_of(&w, 0));
	cr_expect_not(winds_up());
	cr_expect_null(sd_carrier_of(&w, 0));
}

/* What an idle association waits for does not cut short the end of one that is shut down. */
Test(sd_end, contact_14_an_orderly_end_does_not_become_an_abort)
{
	struct ddps_sd_carrier *c;

	sd_raw_to_listener(&w);
	c = sd_carrier_of(&w, 0);
	cr_assert(ddps_timer_runs(&c->linger));
	ddps_timer_after(w.env.loop, &c->linger, 0);
	cr_expect(winds_up());
	cr_expect_eq(c->state, DDPS_SD_GOING);
	cr_expect(ddps_timer_runs(&c->linger));
	cr_expect_gt(c->linger.due, ddps_now() + 20 * NSEC_PER_SEC);
	sd_run(&w);
	cr_expect_not(winds_up());
}

/* An event that comes late, as an acknowledgement, does not take away that limit. */
Test(sd_end, contact_14_an_orderly_end_keeps_its_limit)
{
	struct ddps_sd_carrier *c;

	sd_raw_to_listener(&w);
	c = sd_carrier_of(&w, 0);
	cr_expect(winds_up());
	cr_assert_eq(c->state, DDPS_SD_GOING);
	ddps_sd_carrier_idle(c);
	cr_expect(ddps_timer_runs(&c->linger));
	sd_run(&w);
	cr_expect_not(winds_up());
}

/* The peer begins anew while we end: the association is up again, and a peer that is now without DDP can be
 * refused. */
Test(sd_end, contact_10_a_restart_of_what_ends_begins_anew)
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	cr_expect(winds_up());
	cr_assert_eq(c->state, DDPS_SD_GOING);
	c->broken = c->paused = true;
	fake_sctp_restart(raw->peer);
	sd_run(&w);
	cr_assert_eq(c->state, DDPS_SD_UP);
	cr_expect_not(c->broken);
	cr_expect_not(c->paused);
	cr_expect(ddps_timer_runs(&c->linger), "it is idle");
	cr_expect(winds_up());
	raw->peer->info.has_adaptation = false;
	fake_sctp_restart(raw->peer);
	sd_run(&w);
	cr_expect_null(sd_carrier_of(&w, 0));
}

/* Over SCTP nothing but the peer's Terminate is missing: that need not be waited for. */
Test(sd_end, contact_01_sessions_that_have_said_all_go_with_their_association)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send(&w, raw, 0, "0000 0002");
	cr_assert_eq(u.answers, 1);
	u.llp->ops->open(u.llp);
	cr_expect_not(u.llp->ops->leaving(u.llp));
	raw->hold = true;
	u.llp->ops->shutdown(u.llp);
	cr_expect(u.llp->ops->leaving(u.llp), "it has not left");
	cr_expect(ddps_sctp_provider.wind_up(&w.env, true));
	cr_expect_eq(raw->peer->shutdowns, 0);
	sd_run(&w);
	cr_expect_not(u.llp->ops->leaving(u.llp));
	cr_expect(winds_up());
	cr_expect_eq(raw->peer->shutdowns, 0, "it is given time");
	cr_expect(ddps_sctp_provider.wind_up(&w.env, true));
	cr_expect_eq(raw->peer->shutdowns, 1);
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, 0, "%s", u.error.text);
	cr_expect_not(winds_up());
}

static struct ddps_sd_backend engine;
static unsigned asked;

/* The peer has not seen it yet. */
static void shut_down_later(struct ddps_sd_assoc *a)
{
	(void)a;
}

static void count_ack_now(struct ddps_sd_assoc *a)
{
	(void)a;
	asked++;
}

/* As our own engine: it says what is acknowledged, and waits with the SACK for an answer unless it is asked. */
static struct ddps_sd_assoc *open_on_engine(void)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	engine = fake_sctp;
	engine.acks = true;
	engine.ack_now = count_ack_now;
	asked = 0;
	sd_carrier_of(&w, 0)->b = &engine;
	return raw;
}

/* The peer's program waits for that, and this one may have seen all that it wants to see. */
Test(sd_end, contact_01_the_last_word_is_acknowledged_immediately)
{
	struct ddps_sd_assoc *raw = open_on_engine();

	sd_send(&w, raw, 0, "0000 0002");
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(asked, 0, "an answer may follow");
	sd_send(&w, raw, 0, "0003 0004");
	cr_expect_eq(asked, 1, "ahead of its turn, too");
	sd_send(&w, raw, 2, "0000 0001");
	cr_expect_eq(asked, 1);
	sd_send(&w, raw, 4, "0000 0003");
	cr_expect_eq(asked, 2);
	sd_send(&w, raw, 6, "0000 0007 00000000");
	cr_expect_eq(asked, 3);
}

/* Nor is what was under way taken for lost. */
Test(sd_end, contact_01_an_association_that_ends_hears_acknowledgements)
{
	struct ddps_sd_assoc *raw = open_on_engine();
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	ddps_sd_carrier_up.acked(c, c->sent);
	sd_send(&w, raw, 0, "0000 0002");
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(u.closes, 0, "not before it has arrived");
	sd_free(&u);
	cr_expect_eq(ddps_sctp_provider.wind_up(&w.env, true), DDPS_LEFT_WORK);
	cr_assert_eq(c->state, DDPS_SD_GOING);
	ddps_sd_carrier_up.acked(c, c->sent);
	cr_expect_eq(ddps_sctp_provider.wind_up(&w.env, true), DDPS_LEFT_END);
}

/* Its SCTP acknowledges what the peer has under way, so the peer takes it for delivered. */
Test(sd_end, contact_01_what_is_under_way_to_an_association_that_ends_comes_up)
{
	struct ddps_sd_assoc *raw = open_on_engine();
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	unsigned dropped;

	sd_send(&w, raw, 0, "0000 0002");
	u.llp->ops->open(u.llp);
	u.llp->ops->shutdown(u.llp);
	ddps_sd_carrier_up.acked(c, c->sent);
	engine.shutdown = shut_down_later;
	ddps_sctp_provider.wind_up(&w.env, true);
	cr_assert_eq(c->state, DDPS_SD_GOING);
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(u.segments, 1);
	dropped = c->stats.dropped;
	sd_send(&w, raw, 2, "0000 0001"); /* no new session */
	cr_expect_eq(c->stats.dropped, dropped + 1);
	cr_expect_eq(c->npairs, 1);
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(u.closes, 0);
	ddps_sd_carrier_up.acked(c, c->sent);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, 0, "%s", u.error.text);
}

/* The peer may go before it has acknowledged what came before the end. */
Test(sd_end, contact_01_whose_last_octets_are_not_acknowledged_has_not_ended)
{
	static const int codes[] = { 0, DDPS_E_RESET };

	for (unsigned i = 0; i < 2; i++) {
		struct ddps_error e = ddps_error_make(codes[i], 0, "as the backend says");
		struct ddps_sd_carrier *c;

		if (i)
			init();
		sd_send(&w, open_on_engine(), 0, "0000 0002");
		c = sd_carrier_of(&w, 0);
		u.llp->ops->open(u.llp);
		u.llp->ops->shutdown(u.llp);
		sd_run(&w);
		ddps_sd_carrier_up.peer_shutdown(c);
		cr_expect_eq(u.closes, 0);
		cr_expect(u.llp->ops->leaving(u.llp));
		if (!codes[i])
			ddps_sd_carrier_up.acked(c, c->sent);
		cr_expect_eq(u.llp->ops->leaving(u.llp), codes[i] != 0);
		ddps_sd_carrier_up.gone(c, &e);
		sd_run(&w);
		cr_expect_eq(u.closes, 1);
		cr_expect_eq(u.error.code, codes[i], "%s", u.error.text);
		if (!i)
			fini();
	}
}

/* Each of several: one that goes does not end the round. */
Test(sd_end, all_associations_wind_up)
{
	struct ddps_sd_assoc *raw[3];

	for (int i = 0; i < 3; i++)
		raw[i] = sd_raw_to_listener(&w);
	cr_expect(winds_up());
	for (int i = 0; i < 3; i++)
		cr_expect_eq(raw[i]->peer->shutdowns, 1);
	sd_run(&w);
	cr_expect_not(winds_up());
}

Test(sd_end, sessions_are_informed_that_their_context_goes)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	cr_assert_eq(sd_connect(&w, &v, 9, false, NULL, 0), 0);
	sd_send(&w, raw, 0, "0000 0002");
	ddps_sctp_provider.fini(&w.env);
	cr_expect_null(w.env.sctp);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_RESET);
	cr_expect_eq(u.error.sys_errno, 0);
	cr_expect_str_eq(u.error.text, "association freed");
	cr_expect_eq(v.closes, 1);
}

/* What SCTP did not take is in a room of its association's. */
Test(sd_end, a_segment_that_waits_for_room_goes_with_its_association)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.to_send = 3;
	u.pay_len = 100;
	raw->hold = true;
	raw->peer->room = 1;
	fake_sctp_raw_send(raw, 0, DDPS_SD_PPID_CONTROL, "\0\0\0\2", 4);
	sd_run(&w);
	cr_assert_eq(u.done, 1);
	cr_assert(sd_carrier_of(&w, 0)->tx_pair);
	cr_expect_eq(u.llp->ops->keep_copy(u.llp), 0);
	cr_expect(sd_carrier_of(&w, 0)->tx_copy);
}

/* ---- names ---- */

static struct ddps_sd_backend named;

Test(sd_end, of_whom_and_what_is_too_long_is_cut)
{
	static char longest[300];
	struct ddps_conn_info info = { 0 };
	struct ddps_error e = ddps_error_make(DDPS_E_RESET, 0, "test");
	struct ddps_sd_carrier *c;

	memset(longest, 'x', sizeof longest - 1);
	sd_raw_initiated(&w, &u, false);
	c = sd_carrier_of(&w, 0);
	named = *c->b;
	named.name = longest;
	c->b = &named;
	u.llp->ops->info(u.llp, &info);
	ddps_info_text(&info);
	cr_expect_str_eq(info.local, "127.0.0.1:1");
	cr_expect_str_eq(info.peer, "127.0.0.1:2");
	cr_expect_eq(strnlen(info.sctp.backend, sizeof info.sctp.backend),
		     sizeof info.sctp.backend - 1);
	cr_expect_eq(info.sctp.stream, 0);
	cr_expect_not(info.enhanced);
	ddps_sd_session_end((struct ddps_sd_session *)u.llp, &e);
	sd_run(&w);
	cr_expect_str_eq(u.error.peer, "127.0.0.1:2");
	cr_expect_eq(u.error.code, DDPS_E_RESET);
}

Test(sd_end, what_is_known_while_it_waits)
{
	struct ddps_conn_info info = { 0 };

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	info.sctp.stream = 7;
	u.llp->ops->info(u.llp, &info);
	ddps_info_text(&info);
	cr_expect_eq(info.sctp.stream, 0, "none yet");
	cr_expect_str_eq(info.local, "", "not known yet");
	cr_expect_str_eq(info.peer, "127.0.0.1:7200");
	cr_expect_str_eq(info.sctp.backend, "fake");
}

/* ---- strays ---- */

enum { STRAYS = 40 };

/* In an order in which neighbours do not follow each other; each stream once. */
static uint16_t stray_stream(unsigned i)
{
	return (uint16_t)(i * 7 % STRAYS);
}

/* A message to a stream without a session is answered once for each stream, whichever it is, until
 * the peer begins a session there. */
Test(sd_end, each_stream_has_its_answer_of_its_own)
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);
	char terminate[] = "0000 0004";

	for (unsigned i = 0; i < STRAYS; i++) {
		sd_send(&w, raw, stray_stream(i), "0000 0002");
		sd_expect(raw, stray_stream(i), terminate);
		for (unsigned k = 0; k < STRAYS; k++)
			cr_expect_eq(ddps_sd_pair_answered(sd_carrier_of(&w, 0), stray_stream(k)),
				     k <= i, "%u after %u", k, i);
	}
	for (unsigned i = 0; i < STRAYS; i++) {
		unsigned dropped = sd_carrier_of(&w, 0)->stats.dropped;

		sd_send(&w, raw, stray_stream(i), "0000 0002");
		sd_expect_silence(raw);
		cr_expect_eq(sd_carrier_of(&w, 0)->stats.dropped, dropped + 1);
	}
	w.accept = false;
	for (unsigned i = 0; i < STRAYS; i += 3) {
		sd_send(&w, raw, stray_stream(i), "0000 0001");
		sd_send(&w, raw, stray_stream(i), "0001 0004");
		sd_expect(raw, stray_stream(i), terminate);
		for (unsigned k = 0; k < STRAYS; k++)
			cr_expect_eq(ddps_sd_pair_answered(sd_carrier_of(&w, 0), stray_stream(k)),
				     k > i || k % 3, "%u after %u", k, i);
	}
}

/* The largest stream of all has its place, too. */
Test(sd_end, the_highest_stream)
{
	static const uint16_t streams[] = { 7, 8, 9, 15, 16, 17, 26, 64 };

	for (unsigned i = 0; i < sizeof streams / sizeof streams[0]; i++) {
		struct ddps_sd_assoc *raw;

		fake_sctp_net.in_streams = fake_sctp_net.out_streams = streams[i];
		raw = sd_raw_to_listener(&w);
		sd_send(&w, raw, (uint16_t)(streams[i] - 1), "0000 0002");
		sd_expect(raw, (uint16_t)(streams[i] - 1), "0000 0004");
		sd_send(&w, raw, (uint16_t)(streams[i] - 1), "0000 0002");
		sd_expect_silence(raw);
		sd_send(&w, raw, streams[i], "0000 0001");
		sd_expect_silence(raw);
	}
}

/* ---- given up ---- */

/* A session that is alone goes with its association; not before its Accept is known to have arrived. */
Test(sd_end, contact_01_an_only_session_that_is_given_up_resets_its_association)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ddps_sd_assoc *raw = sd_raw_to_listener(&w), *own;
		struct sd_ulp *s;

		own = raw->peer;
		own->hold_dry = i / 2;
		sd_send(&w, raw, 0, "0000 0001");
		sd_expect(raw, 0, "0000 0002");
		s = &w.req[w.nreq - 1];
		if (i % 2)
			sd_send_segment(&w, raw, 0, 1, 0); /* this says so, too */
		if (i % 2)
			s->llp->ops->abort(s->llp);
		else
			sd_free(s);
		if (i % 2) {
			cr_expect_eq(own->aborts, 1, "%u", i);
			sd_run(&w);
		} else {
			sd_run(&w);
			cr_expect_eq(raw->peer != NULL, 1, "%u: it is not known", i);
		}
		fake_sctp_lose(raw, DDPS_E_RESET);
		sd_run(&w);
	}
}

/* ---- in order is what has arrived ---- */

static const struct ddps_error peers_gone = { .code = DDPS_E_RESET,
					      .text = "the peer's SCTP has gone" };

static void expect_over(int code)
{
	sd_run(&w);
	cr_expect_eq(u.closes, 1, "%u", u.closes);
	cr_expect_eq(u.error.code, code, "%s", u.error.text);
}

/* A session of ours that is open, one segment of which is under way. */
static struct ddps_sd_assoc *one_under_way(void)
{
	struct ddps_sd_assoc *raw = open_on_engine();
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	ddps_sd_carrier_up.acked(c, c->sent);
	sd_send(&w, raw, 0, "0000 0002");
	u.llp->ops->open(u.llp);
	u.to_send = 1;
	u.no_shut = true;
	u.llp->ops->kick(u.llp);
	return raw;
}

/* Whichever side says so last: both have ended it, and the octets have yet to arrive. */
Test(sd_end, contact_01_two_ends_in_order_are_no_acknowledgement)
{
	for (unsigned i = 0; i < 6; i++) {
		struct ddps_sd_assoc *raw;
		struct ddps_sd_carrier *c;

		if (i)
			init();
		raw = one_under_way();
		c = sd_carrier_of(&w, 0);
		if (i % 2)
			u.llp->ops->shutdown(u.llp);
		sd_send(&w, raw, 0, "0001 0004");
		u.llp->ops->shutdown(u.llp);
		sd_run(&w);
		cr_expect_eq(c->sent, 3);
		cr_expect_eq(u.closes, 0);
		cr_expect(u.llp->ops->leaving(u.llp));
		ddps_sd_carrier_up.acked(c, 1 + i / 2);
		sd_run(&w);
		if (i < 4) {
			cr_expect_eq(u.closes, 0, "its Terminate is not acknowledged");
			cr_expect_eq(ddps_sctp_provider.wind_up(&w.env, true), DDPS_LEFT_WORK);
			ddps_sd_carrier_up.gone(c, &peers_gone);
		}
		/* That its Terminate is lost takes nothing away: the peer has said that it ends. */
		expect_over(i < 2 ? DDPS_E_RESET : 0);
		if (i < 5)
			fini();
	}
}

/* The peer does not acknowledge it, and goes on living. */
Test(sd_end, what_is_not_acknowledged_has_a_time_limit)
{
	struct ddps_sd_assoc *raw = one_under_way();

	((struct ddps_sd_session *)u.llp)->param.close_ms = 1;
	sd_send(&w, raw, 0, "0001 0004");
	u.llp->ops->shutdown(u.llp);
	sd_run_until(&w, &u.closes);
	cr_expect_eq(u.error.code, DDPS_E_TIMEDOUT);
	cr_expect_str_eq(u.error.text, "the peer did not acknowledge all in 1 ms");
}

/* The peer shuts the association down, which it does not complete: what came before that is in order if it was
 * acknowledged, before or since. */
Test(sd_end, contact_01_an_acknowledgement_counts_whatever_comes_then)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sd_carrier *c;

		if (i)
			init();
		sd_send(&w, open_on_engine(), 0, "0000 0002");
		c = sd_carrier_of(&w, 0);
		u.llp->ops->open(u.llp);
		u.llp->ops->shutdown(u.llp);
		sd_run(&w);
		if (i)
			ddps_sd_carrier_up.acked(c, c->sent);
		ddps_sd_carrier_up.peer_shutdown(c);
		if (!i)
			ddps_sd_carrier_up.acked(c, c->sent);
		expect_over(0);
		cr_expect_eq(ddps_sctp_provider.wind_up(&w.env, true), DDPS_LEFT_END);
		ddps_sd_carrier_up.gone(c, &peers_gone);
		expect_over(0);
		if (!i)
			fini();
	}
}

/* The peer has ended the session, then it shuts the association down; ours is not ended yet. */
Test(sd_end, contact_01_a_shutdown_behind_the_peers_end_says_nothing_of_ours)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sd_assoc *raw;
		struct ddps_sd_carrier *c;

		if (i)
			init();
		raw = one_under_way();
		c = sd_carrier_of(&w, 0);
		sd_send(&w, raw, 0, "0001 0004");
		ddps_sd_carrier_up.peer_shutdown(c);
		sd_run(&w);
		cr_expect_eq(u.closes, 0, "it is in doubt");
		if (i)
			ddps_sd_carrier_up.acked(c, c->sent);
		else
			ddps_sd_carrier_up.gone(c, &peers_gone);
		expect_over(i ? DDPS_E_CLOSED : DDPS_E_RESET);
		if (!i)
			fini();
	}
}

/* A peer that has acknowledged everything, and never ends its side: nothing is to be waited for but its end. */
Test(sd_end, contact_01_whose_peer_has_everything_has_no_work_left)
{
	struct ddps_sd_carrier *c;

	one_under_way();
	c = sd_carrier_of(&w, 0);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	cr_expect_eq(ddps_sctp_provider.wind_up(&w.env, false), DDPS_LEFT_WORK);
	engine.shutdown = shut_down_later;
	ddps_sd_carrier_up.acked(c, c->sent);
	cr_expect_eq(ddps_sctp_provider.wind_up(&w.env, true), DDPS_LEFT_END);
	cr_expect_eq(c->state, DDPS_SD_GOING);
	cr_expect_eq(c->npairs, 1);
}

/* Where a program reads late, what it has sent may be lost behind the end that waits for it. */
Test(sd_end, contact_01_what_outlives_the_association_ends_as_what_was_sent)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sd_assoc *raw;
		struct ddps_sd_carrier *c;

		if (i)
			init();
		raw = one_under_way();
		c = sd_carrier_of(&w, 0);
		u.rx_result = DDPS_LLP_HOLD;
		sd_send_segment(&w, raw, 0, 1, 0);
		sd_send(&w, raw, 0, "0002 0004");
		ddps_sd_carrier_up.peer_shutdown(c);
		if (i)
			ddps_sd_carrier_up.acked(c, c->sent);
		ddps_sd_carrier_up.gone(c, &peers_gone);
		cr_expect_eq(u.closes, 0);
		u.rx_result = 0;
		u.llp->ops->resume(u.llp);
		expect_over(i ? 0 : DDPS_E_RESET);
		cr_expect_eq(u.peer_closes, 1);
		if (!i)
			fini();
	}
}
