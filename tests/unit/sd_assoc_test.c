/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations with sessions on both ends: life, loss, restart, pairs, many sessions. */
#include "support/sd_world.h"
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

TestSuite(sd_assoc, .init = init, .fini = fini, .timeout = 60);

/* A session from here to the own listener, open. */
static void open_session(struct sd_ulp *u)
{
	if (!w.listener)
		sd_listen(&w);
	cr_assert_eq(sd_connect(&w, u, SD_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_assert_eq(u->answers, 1);
}

static void time_is_up(struct ddps_timer *t)
{
	cr_assert(t->on, "the timer does not run");
	ddps_timer_start(w.env.loop, t, 0);
	sd_run(&w);
}

/* ---- adaptation indication ---- */

Test(sd_assoc, peer_without_ddp, .description = "5043-11.1-2 5043-11.1-3")
{
	struct sd_ulp u = { 0 };

	fake_sctp_net.no_adaptation = true;
	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_NO_DDP);
	cr_expect(strstr(u.error.text, "no adaptation indication"));
	cr_expect_null(sd_carrier_of(&w, 0));
	sd_free(&u);
}

Test(sd_assoc, peer_with_another_adaptation, .description = "5043-11.1-2 5043-11.1-4 5043-7.1-3")
{
	struct sd_ulp u = { 0 };
	struct ddps_sd_assoc *raw;

	fake_sctp_net.adaptation = 7;
	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_eq(u.error.code, DDPS_E_NO_DDP);
	cr_expect(strstr(u.error.text, "0x00000007"), "%s", u.error.text);
	sd_expect_silence(fake_sctp_raw_accepted(SD_RAW_PORT));
	sd_free(&u);

	raw = sd_raw_to_listener(&w);
	sd_run(&w);
	cr_expect_null(sd_carrier_of(&w, 0));
	cr_expect_null(raw->peer);
}

/* ---- end of an association ---- */

Test(sd_assoc, loss_ends_every_session, .description = "5043-11.3-1 5043-11.3-2 5043-11.3-d1")
{
	struct sd_ulp u[3] = { 0 };

	for (int i = 0; i < 3; i++)
		open_session(&u[i]);
	fake_sctp_lose(sd_carrier_of(&w, 0)->assoc, DDPS_E_TIMEDOUT);
	sd_run(&w);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(u[i].closes, 1);
		cr_expect_eq(u[i].error.code, DDPS_E_TIMEDOUT);
		cr_expect_eq(w.req[i].closes, 1);
		cr_expect_eq(w.req[i].segments, 0);
		u[i].llp->ops->kick(u[i].llp); /* harmless now */
		u[i].llp->ops->shutdown(u[i].llp);
		u[i].llp->ops->abort(u[i].llp);
		cr_expect_eq(u[i].llp->ops->mulpdu(u[i].llp), 516);
		sd_free(&u[i]);
	}
	sd_run(&w);
	cr_expect_null(sd_carrier_of(&w, 0));
	cr_expect_eq(w.req[0].closes, 1);
}

Test(sd_assoc, peer_shutdown_ends_open_sessions)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	w.req[1].llp->ops->shutdown(w.req[1].llp);
	sd_run(&w);
	sd_expect(raw, 1, "0001 0004");
	sd_push_segment(raw, 0, 1, 0, SD_SEG_HDR);
	raw->shut = true;
	fake_sctp_poke(raw);
	sd_run(&w);
	cr_expect_eq(w.req[0].segments, 1); /* what was under way is delivered */
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_CLOSED);
	cr_expect(strstr(w.req[0].error.text, "association closed"));
	cr_expect_eq(w.req[1].closes, 1);
	cr_expect_eq(w.req[1].error.code, 0); /* one Terminate was enough */
	cr_expect_null(sd_carrier_of(&w, 0));
}

Test(sd_assoc, restart_loses_all_and_goes_on, .description = "5043-11.1-2")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	sd_send_segment(&w, raw, 0, 2, 1); /* held */
	sd_send(&w, raw, 5, "0000 0002");  /* answered stray */
	sd_expect(raw, 5, "0000 0004");
	raw->peer->info.in_streams = 8;
	fake_sctp_restart(raw->peer);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_RESET);
	cr_expect_eq(c->npairs, 0);
	cr_expect_eq(c->held, 0);
	cr_expect_eq(c->usable, 8);
	sd_send(&w, raw, 0, "0000 0001");
	sd_expect(raw, 0, "0000 0002");
	sd_send(&w, raw, 5, "0000 0002");
	sd_expect(raw, 5, "0000 0004"); /* forgotten, too */
}

Test(sd_assoc, restart_without_ddp_is_the_end, .description = "5043-11.1-2 5043-11.1-3")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	raw->peer->info.has_adaptation = false;
	fake_sctp_restart(raw->peer);
	sd_run(&w);
	cr_expect_eq(w.req[0].error.code, DDPS_E_RESET);
	cr_expect_null(sd_carrier_of(&w, 0));
}

Test(sd_assoc, linger_and_reuse, .description = "5043-11.3-d2")
{
	struct sd_ulp u = { 0 };
	struct ddps_sd_carrier *c, *other;

	open_session(&u);
	c = sd_carrier_of(&w, 0);
	other = sd_carrier_of(&w, 1);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	cr_expect(c->linger.on);
	cr_expect(other->linger.on);
	cr_expect_gt(other->linger.due, c->linger.due); /* the opener goes first */
	sd_free(&u);
	u = (struct sd_ulp){ 0 };
	open_session(&u);
	cr_expect_eq(fake_sctp_net.connects, 1);
	cr_expect_eq(c->linger.on, 0);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	time_is_up(&c->linger);
	cr_expect_null(sd_carrier_of(&w, 0)); /* both ends */
	sd_free(&u);
}

/* Only where the request was put on an association that was up: there nobody has seen it. */
Test(sd_assoc, a_request_on_an_association_that_is_shut_down_is_unheard)
{
	struct sd_ulp u[3] = { 0 };
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u[0], false);

	cr_assert_eq(sd_connect(&w, &u[1], SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 1);
	sd_send(&w, raw, 2, "0000 0002");
	cr_assert_eq(u[1].answers, 1);
	cr_assert_eq(sd_connect(&w, &u[2], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	raw->shut = true;
	fake_sctp_poke(raw);
	sd_run(&w);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(u[i].closes, 1, "%u", i);
		cr_expect_eq(u[i].error.code, DDPS_E_CLOSED, "%u", i);
	}
	cr_expect_not(u[0].llp->unheard,
		      "the association was made for it: a new one does no better");
	cr_expect_not(u[1].llp->unheard, "it was answered");
	cr_expect(u[2].llp->unheard);
	for (unsigned i = 0; i < 3; i++)
		sd_free(&u[i]);
}

Test(sd_assoc, passive_side_closes_in_the_end)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send(&w, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");
	time_is_up(&sd_carrier_of(&w, 0)->linger);
	cr_expect_null(sd_carrier_of(&w, 0));
}

Test(sd_assoc, association_without_any_initiate)
{
	struct ddps_sd_assoc *raw;

	w.lparam.setup_ms = 50;
	raw = sd_raw_to_listener(&w);
	cr_expect_leq(sd_carrier_of(&w, 0)->linger.due, ddps_now() + 50000000u);
	time_is_up(&sd_carrier_of(&w, 0)->linger);
	cr_expect_null(sd_carrier_of(&w, 0));
	cr_expect_eq(((struct ddps_sd_listener *)w.listener)->half_open, 0);
	(void)raw;
}

/* Whoever opened it may have a request under way: he closes it, or time does. */
Test(sd_assoc, idle_associations_outlast_their_listener_by_seconds)
{
	struct ddps_sd_assoc *idle = sd_raw_to_listener(&w), *raw;
	struct ddps_timer *linger = &sd_carrier_of(&w, 0)->linger;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	ddps_sctp_provider.listener_free(w.listener);
	w.listener = NULL;
	sd_run(&w);
	cr_assert(idle->peer);
	cr_expect_leq(linger->due, ddps_now() + 5000000000u);
	time_is_up(linger);
	sd_run(&w);
	cr_expect_null(idle->peer);
	cr_assert(raw->peer);
	cr_assert_eq(sd_answer(&w.req[0], false, NULL, 0), 0); /* the request lives on */
	sd_run(&w);
	sd_expect(raw, 0, "0000 0002");
}

Test(sd_assoc, association_coming_up_for_nobody)
{
	struct sd_ulp u = { 0 };
	struct ddps_sd_carrier *c;

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	sd_free(&u);
	c = sd_carrier_of(&w, 0);
	cr_assert_eq(c->state, DDPS_SD_COMING);
	time_is_up(&c->linger);
	cr_expect_null(sd_carrier_of(&w, 0));
}

/* ---- stream pairs ---- */

Test(sd_assoc, opener_takes_even_ids_the_other_side_odd_ones)
{
	struct sd_ulp u[4] = { 0 }, back[2] = { 0 };
	struct ddps_sd_carrier *a, *b;

	for (int i = 0; i < 3; i++)
		open_session(&u[i]);
	a = sd_carrier_of(&w, 0);
	b = sd_carrier_of(&w, 1);
	for (uint16_t i = 0; i < 3; i++)
		cr_expect_eq(sd_pair_of(&u[i])->stream, 2 * i);
	/* The other side becomes active on the same association. */
	a->listener = (struct ddps_sd_listener *)w.listener;
	for (int i = 0; i < 2; i++) {
		struct ddps_sd_session *s = ddps_sd_session_new(&w.env, true);

		back[i].w = &w;
		back[i].llp = &s->llp;
		s->llp.up = w.req[0].llp->up;
		s->llp.user = &back[i];
		ddps_llp_attach(&s->llp, w.req[0].llp->data, &back[i]);
		ddps_sd_carrier_wait(b, s);
		cr_expect_eq(s->pair->stream, 2 * i + 1);
	}
	/* and both at once */
	cr_assert_eq(sd_connect(&w, &u[3], SD_PORT, false, NULL, 0), 0);
	sd_run(&w);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(back[i].answers, 1);
		back[i].to_send = 50;
		back[i].llp->ops->kick(back[i].llp);
	}
	u[1].to_send = 50;
	u[1].llp->ops->kick(u[1].llp);
	sd_run(&w);
	cr_expect_eq(w.nreq, 6);
	cr_expect_eq(w.req[1].segments, 50);
	cr_expect_eq(w.req[3].segments, 50);
	cr_expect_eq(w.req[4].segments, 50);
	for (int i = 0; i < 2; i++) {
		back[i].llp->ops->shutdown(back[i].llp);
		sd_run(&w);
		cr_expect_eq(back[i].closes, 1);
		cr_expect_eq(back[i].error.code, 0);
		sd_free(&back[i]);
	}
	cr_expect_eq(fake_sctp_net.connects, 1);
	for (int i = 0; i < 4; i++)
		sd_free(&u[i]);
	a->listener = NULL;
}

Test(sd_assoc, pairs_are_used_again_only_when_drained, .description = "5043-6.6-4 5043-6-d1")
{
	struct ddps_sd_assoc *raw;
	struct sd_ulp u[3] = { 0 };

	fake_sctp_net.in_streams = 5; /* ids 0, 2, 4 */
	raw = sd_raw_initiated(&w, &u[0], false);
	for (uint16_t i = 1; i < 3; i++) {
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
		sd_run(&w);
		sd_expect(raw, 2 * i, "0000 0001");
	}
	cr_expect(ddps_sd_carrier_full(sd_carrier_of(&w, 0)));
	/* 0: rejected, but our Initiate counts as not acknowledged yet */
	raw->peer->hold_dry = true;
	sd_send(&w, raw, 0, "0000 0003");
	sd_free(&u[0]);
	u[0] = (struct sd_ulp){ 0 };
	cr_expect(ddps_sd_carrier_full(sd_carrier_of(&w, 0)));
	raw->peer->hold_dry = false;
	fake_sctp_poke(raw->peer);
	sd_run(&w);
	cr_assert_eq(sd_connect(&w, &u[0], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0001");
	/* 2: we terminated, the peer did not: never from this side */
	sd_send(&w, raw, 2, "0000 0002");
	sd_free(&u[1]);
	sd_run(&w);
	sd_expect(raw, 2, "0001 0004");
	u[1] = (struct sd_ulp){ 0 };
	cr_expect(ddps_sd_carrier_full(sd_carrier_of(&w, 0)));
	sd_send(&w, raw, 2, "0001 0004");
	cr_assert_eq(sd_connect(&w, &u[1], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	sd_expect(raw, 2, "0000 0001");
	for (int i = 0; i < 3; i++)
		sd_free(&u[i]);
}

/* Nobody is refused for want of streams, and what one holds the others do not share. */
Test(sd_assoc, attack_4_full_blocked_and_stalling_ones_are_not_shared)
{
	struct sd_ulp u[7] = { 0 };
	struct ddps_sd_carrier *first;

	fake_sctp_net.out_streams = 3; /* ids 0 and 2 */
	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
		sd_run(&w);
	}
	first = sd_carrier_of(&w, 0);
	cr_expect_eq(sd_pair_of(&u[1])->carrier, first);
	cr_expect_null(sd_carrier_of(&w, 1));
	cr_assert_eq(sd_connect(&w, &u[2], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_neq(sd_pair_of(&u[2])->carrier, first, "it is full");
	w.param.stalls = true;
	cr_assert_eq(sd_connect(&w, &u[3], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_neq(sd_pair_of(&u[3])->carrier, sd_pair_of(&u[2])->carrier);
	w.param.stalls = false;
	cr_assert_eq(sd_connect(&w, &u[4], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_eq(sd_pair_of(&u[4])->carrier, sd_pair_of(&u[2])->carrier);
	cr_assert_eq(sd_connect(&w, &u[5], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_neq(sd_pair_of(&u[5])->carrier, sd_pair_of(&u[2])->carrier, "it is full, too");
	cr_expect_neq(sd_pair_of(&u[5])->carrier, sd_pair_of(&u[3])->carrier, "it may stall");
	sd_pair_of(&u[5])->carrier->blocked = true; /* the peer does not read it */
	cr_assert_eq(sd_connect(&w, &u[6], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_neq(sd_pair_of(&u[6])->carrier, sd_pair_of(&u[5])->carrier);
	for (int i = 0; i < 7; i++)
		sd_free(&u[i]);
}

Test(sd_assoc, pairs_run_out_for_sessions_that_wait)
{
	struct sd_ulp u[3] = { 0 };

	fake_sctp_net.out_streams = 3; /* ids 0 and 2 */
	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_eq(u[0].closes + u[1].closes, 0);
	cr_expect_eq(u[2].closes, 1);
	cr_expect_eq(u[2].error.code, DDPS_E_LIMIT);
	for (int i = 0; i < 3; i++)
		sd_free(&u[i]);
}

/* A peer that opens associations and asks for nothing, or no longer. */
/* One that had a session and has none any more; @hold: our Terminate is still on its way. */
static struct ddps_sd_assoc *left_idle(bool hold)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	raw->hold = hold;
	sd_send(&w, raw, 0, "0001 0004");
	if (!hold)
		sd_expect(raw, 0, "0001 0004");
	sd_free(&w.req[w.nreq - 1]);
	sd_run(&w);
	return raw;
}

/* A parallel program's processes on one host call all at the same time, each with an association of
 * its own: the first have not asked for a session yet when the last are there. */
Test(sd_assoc, many_new_associations_of_one_host_all_get_their_session)
{
	struct ddps_sd_assoc *raw[4 * DDPS_SD_IDLE_PEER];

	w.lparam.max_half_open = 1000;
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		raw[i] = sd_raw_to_listener(&w);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++) {
		sd_send(&w, raw[i], 0, "0000 0001");
		sd_expect(raw[i], 0, "0000 0002");
	}
	cr_expect_eq(w.env.idle_ended, 0);
}

/* The sessions of such a program end at the same time, too.  Our Terminate is the last word of each:
 * an association is not aborted for being idle before the peer has it. */
Test(sd_assoc, many_sessions_that_end_together_all_get_their_terminate)
{
	struct ddps_sd_assoc *raw[4 * DDPS_SD_IDLE_PEER];
	unsigned over = 0;

	w.lparam.max_half_open = 1000;
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		raw[i] = left_idle(true);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		cr_assert_not(raw[i]->over, "%u", i);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++) {
		raw[i]->hold = false;
		fake_sctp_poke(raw[i]);
	}
	sd_run(&w);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		sd_expect(raw[i], 0, "0001 0004");
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		over += raw[i]->over;
	cr_expect_eq(over, 3 * DDPS_SD_IDLE_PEER, "%u", over);
}

Test(sd_assoc, attack_3_idle_associations_are_few)
{
	struct ddps_sd_assoc *raw[DDPS_SD_IDLE_PEER + 4];
	unsigned ended = 0;

	w.lparam.max_half_open = 1000;
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4;
	     i++) /* one carries a session and is no prey */
		raw[i] = i == 1 ? sd_raw_open(&w, 0) : left_idle(false);
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4; i++) {
		ended += raw[i]->over;
		cr_expect_eq(raw[i]->over, i == 0 || i == 2 || i == 3, "%u", i);
	}
	cr_expect_eq(ended, 3);
	cr_expect_eq(w.env.idle_ended, 3);
	cr_expect_eq(w.req[1].closes, 0);
}

/* Whoever has a whole /64 has one share all the same, and takes no place of others. */
Test(sd_assoc, attack_3_idle_associations_of_one_network_are_few)
{
	struct ddps_sd_assoc *other, *raw[DDPS_SD_IDLE_PEER + 4];
	char from[40];

	w.lparam.max_half_open = 1000;
	fake_sctp_net.from = "[2001:db8:0:1::1]:7";
	other = left_idle(false);
	fake_sctp_net.from = from;
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4; i++) {
		snprintf(from, sizeof(from), "[2001:db8:0:2:%x::1]:7", i);
		raw[i] = left_idle(false);
	}
	cr_expect_eq(w.env.idle_ended, 4);
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4; i++)
		cr_expect_eq(raw[i]->over, i < 4, "%u", i);
	cr_expect_not(other->over);
	/* Many networks: the one that has most gives way, not whoever came first. */
	for (unsigned i = 0; i < DDPS_SD_IDLE_LISTENER; i++) {
		snprintf(from, sizeof(from), "10.0.%u.%u:7", i >> 8, i & 255);
		left_idle(false);
	}
	cr_expect_eq(w.env.idle_ended, 4 + DDPS_SD_IDLE_PEER + 1);
	cr_expect(other->over, "the oldest where all have one");
}

/* ---- many ---- */

#define MANY 1000

static struct sd_ulp many[MANY];

static void many_sessions(uint32_t reorder, unsigned room)
{
	fake_sctp_net.reorder = reorder;
	fake_sctp_net.room = room;
	w.accept_send = 10;
	sd_listen(&w);
	for (unsigned i = 0; i < MANY; i++) {
		many[i].to_send = 10;
		many[i].pay_len = i % 100;
		cr_assert_eq(sd_connect(&w, &many[i], SD_PORT, i & 1, "word", 4), 0);
	}
	sd_run(&w);
	cr_expect_eq(w.nreq, MANY);
	cr_expect_eq(fake_sctp_net.connects,
		     (MANY + DDPS_SCTP_STREAMS / 2 - 1) / (DDPS_SCTP_STREAMS / 2));
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_eq(many[i].answers, 1, "%u: %s", i, many[i].error.text);
		cr_expect_eq(many[i].segments, 10);
		cr_expect_not(many[i].out_of_order);
		cr_expect_eq(w.req[i].segments, 10);
		cr_expect_not(w.req[i].out_of_order);
	}
	for (unsigned i = 0; i < MANY; i += 2) /* half of them from here, half from there */
		many[i].llp->ops->shutdown(many[i].llp);
	sd_run(&w);
	for (unsigned i = 0; i < MANY; i++)
		if (!w.req[i].closes)
			w.req[i].llp->ops->shutdown(w.req[i].llp);
	sd_run(&w);
	for (unsigned i = 0; i < MANY; i++) {
		cr_expect_eq(many[i].closes, 1);
		cr_expect_eq(many[i].error.code, 0, "%s", many[i].error.text);
		cr_expect_eq(w.req[i].closes, 1);
		cr_expect_eq(w.req[i].error.code, 0);
		sd_free(&many[i]);
	}
	cr_expect_eq(sd_carrier_of(&w, 0)->npairs, 0);
	cr_expect_eq(sd_carrier_of(&w, 1)->npairs, 0);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, 0);
}

Test(sd_assoc, thousand_sessions, .description = "5043-8-d2")
{
	many_sessions(0, 0);
}

Test(sd_assoc, thousand_sessions_out_of_order_and_under_back_pressure)
{
	many_sessions(12345, 50);
}

Test(sd_assoc, bulk_both_ways_out_of_order)
{
	struct sd_ulp u[4] = { 0 };

	fake_sctp_net.reorder = 99;
	fake_sctp_net.room = 200;
	for (int i = 0; i < 4; i++)
		open_session(&u[i]);
	for (int i = 0; i < 4; i++) {
		u[i].to_send = 20000;
		w.req[i].to_send = 20000;
		u[i].llp->ops->kick(u[i].llp);
		w.req[i].llp->ops->kick(w.req[i].llp);
	}
	sd_run(&w);
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(u[i].segments, 20000);
		cr_expect_eq(w.req[i].segments, 20000);
		cr_expect_not(u[i].out_of_order);
		cr_expect_not(w.req[i].out_of_order);
		sd_free(&u[i]);
	}
}

/* ---- anything at all ---- */

#define RANDOM_STREAMS 40

static uint32_t dice(uint32_t *seed, uint32_t sides)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % sides;
}

static void random_message(struct ddps_sd_assoc *raw, uint32_t *seed, uint16_t *ssn)
{
	uint8_t buf[64] = { 0 };
	uint16_t stream = (uint16_t)dice(seed, RANDOM_STREAMS);
	uint32_t ppid = dice(seed, 100) ? 16 + dice(seed, 2) : dice(seed, 30);
	uint16_t n = ssn[stream]++;

	if (!dice(seed, 8))
		n = ssn[stream] = 0;
	if (!dice(seed, 40))
		n = (uint16_t)dice(seed, 65536);
	else if (!dice(seed, 20))
		n = (uint16_t)(n + dice(seed, 4));
	buf[0] = (uint8_t)(n >> 8);
	buf[1] = (uint8_t)n;
	buf[3] = n ? (uint8_t)dice(seed, 9) : dice(seed, 2) ? 1 : 5;
	fake_sctp_raw_send(raw, stream, ppid, buf,
			   dice(seed, 4) ? 4 + 4 * dice(seed, 2) : dice(seed, 64));
}

static void random_action(struct sd_ulp *u, uint32_t *seed)
{
	if (!u->llp)
		return;
	switch (dice(seed, 6)) {
	case 0:
		u->to_send += dice(seed, 5);
		u->llp->ops->kick(u->llp);
		break;
	case 1:
		u->llp->ops->shutdown(u->llp);
		break;
	case 2:
		u->llp->ops->abort(u->llp);
		break;
	case 3:
		sd_free(u);
		break;
	default:
		sd_answer(u, !dice(seed, 3), "word", u->enhanced ? 4 : 0);
	}
}

Test(sd_assoc, survives_any_sequence_of_messages_and_calls, .description = "5043-6.1-2")
{
	for (uint32_t round = 1; round <= 30; round++) {
		struct ddps_sd_assoc *raw;
		uint32_t seed = round;
		uint16_t ssn[RANDOM_STREAMS] = { 0 };

		w.accept = round & 1;
		fake_sctp_net.reorder = round % 3 ? round : 0;
		fake_sctp_net.room = round % 5;
		w.nreq = 0;
		raw = sd_raw_to_listener(&w);
		for (int i = 0; i < 1500 && raw->peer; i++) {
			random_message(raw, &seed, ssn);
			if (w.nreq && !dice(&seed, 3))
				random_action(&w.req[dice(&seed, w.nreq)], &seed);
			if (!dice(&seed, 3))
				sd_run(&w);
			if (!raw->peer)
				break;
			raw->peer->hold_dry = !dice(&seed, 2);
			fake_sctp_poke(raw->peer);
		}
		if (raw->peer)
			fake_sctp_lose(raw, DDPS_E_RESET);
		sd_run(&w);
		cr_expect_null(sd_carrier_of(&w, 0));
		cr_expect_eq(((struct ddps_sd_listener *)w.listener)->half_open, 0);
		cr_expect_gt(w.nreq, 30); /* it did get somewhere */
		for (unsigned i = 0; i < w.nreq; i++) {
			if (w.req[i].llp)
				cr_expect_eq(w.req[i].closes, 1);
			sd_free(&w.req[i]);
		}
	}
}
