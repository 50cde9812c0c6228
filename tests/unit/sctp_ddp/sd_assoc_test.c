/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations with sessions on both ends: life, loss, restart, pairs, many sessions. */
#include "sd_assoc_fixture.h"

struct sd_world world;

static void init(void)
{
	sd_world_init(&world);
}

static void fini(void)
{
	sd_world_fini(&world);
}

TestSuite(sd_assoc, .init = init, .fini = fini, .timeout = 60);

static void fire_assoc_timer(struct ddps_timer *t)
{
	cr_assert(ddps_timer_runs(t), "the timer does not run");
	ddps_timer_start(world.env.loop, t, 0);
	sd_run(&world);
}

/* ---- adaptation indication ---- */

Test(sd_assoc, peer_without_ddp, .description = "5043-11.1-2 5043-11.1-3")
{
	struct sd_ulp u = { 0 };

	fake_sctp_net.no_adaptation = true;
	fake_sctp_raw_listen(&world.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&world, &u, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_NO_DDP);
	cr_expect(strstr(u.error.text, "no adaptation indication"));
	cr_expect_null(sd_carrier_of(&world, 0));
	sd_free(&u);
}

Test(sd_assoc, peer_with_another_adaptation, .description = "5043-11.1-2 5043-11.1-4 5043-7.1-3")
{
	struct sd_ulp u = { 0 };
	struct ddps_sd_assoc *raw;

	fake_sctp_net.adaptation = 7;
	fake_sctp_raw_listen(&world.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&world, &u, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_eq(u.error.code, DDPS_E_NO_DDP);
	cr_expect(strstr(u.error.text, "0x00000007"), "%s", u.error.text);
	sd_expect_silence(fake_sctp_raw_accepted(SD_RAW_PORT));
	sd_free(&u);

	raw = sd_raw_to_listener(&world);
	sd_run(&world);
	cr_expect_null(sd_carrier_of(&world, 0));
	cr_expect_null(raw->peer);
}

/* ---- end of an association ---- */

Test(sd_assoc, loss_ends_every_session, .description = "5043-11.3-1 5043-11.3-2 5043-11.3-d1")
{
	struct sd_ulp u[3] = { 0 };

	for (int i = 0; i < 3; i++)
		open_session(&u[i]);
	fake_sctp_lose(sd_carrier_of(&world, 0)->assoc, DDPS_E_TIMEDOUT);
	sd_run(&world);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(u[i].closes, 1);
		cr_expect_eq(u[i].error.code, DDPS_E_TIMEDOUT);
		cr_expect_eq(world.req[i].closes, 1);
		cr_expect_eq(world.req[i].segments, 0);
		u[i].llp->ops->kick(u[i].llp); /* harmless now */
		u[i].llp->ops->shutdown(u[i].llp);
		u[i].llp->ops->abort(u[i].llp);
		cr_expect_eq(u[i].llp->ops->mulpdu(u[i].llp), 516);
		sd_free(&u[i]);
	}
	sd_run(&world);
	cr_expect_null(sd_carrier_of(&world, 0));
	cr_expect_eq(world.req[0].closes, 1);
}

Test(sd_assoc, peer_shutdown_ends_open_sessions)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0);

	sd_send(&world, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	world.req[1].llp->ops->shutdown(world.req[1].llp);
	sd_run(&world);
	sd_expect(raw, 1, "0001 0004");
	sd_push_segment(raw, 0, 1, 0, SD_SEG_HDR);
	raw->shut = true;
	fake_sctp_poke(raw);
	sd_run(&world);
	cr_expect_eq(world.req[0].segments, 1); /* what was under way is delivered */
	cr_expect_eq(world.req[0].closes, 1);
	cr_expect_eq(world.req[0].error.code, DDPS_E_CLOSED);
	cr_expect(strstr(world.req[0].error.text, "association closed"));
	cr_expect_eq(world.req[1].closes, 1);
	cr_expect_eq(world.req[1].error.code, 0); /* one Terminate was enough */
	cr_expect_null(sd_carrier_of(&world, 0));
}

Test(sd_assoc, restart_loses_all_and_goes_on, .description = "5043-11.1-2")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&world, 0);

	sd_send_segment(&world, raw, 0, 2, 1); /* held */
	sd_send(&world, raw, 5, "0000 0002");  /* answered stray */
	sd_expect(raw, 5, "0000 0004");
	raw->peer->info.in_streams = 8;
	fake_sctp_restart(raw->peer);
	sd_run(&world);
	cr_expect_eq(world.req[0].closes, 1);
	cr_expect_eq(world.req[0].error.code, DDPS_E_RESET);
	cr_expect_eq(c->npairs, 0);
	cr_expect_eq(c->held, 0);
	cr_expect_eq(c->usable, 8);
	sd_send(&world, raw, 0, "0000 0001");
	sd_expect(raw, 0, "0000 0002");
	sd_send(&world, raw, 5, "0000 0002");
	sd_expect(raw, 5, "0000 0004"); /* forgotten, too */
}

Test(sd_assoc, restart_without_ddp_is_the_end, .description = "5043-11.1-2 5043-11.1-3")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0);

	raw->peer->info.has_adaptation = false;
	fake_sctp_restart(raw->peer);
	sd_run(&world);
	cr_expect_eq(world.req[0].error.code, DDPS_E_RESET);
	cr_expect_null(sd_carrier_of(&world, 0));
}

Test(sd_assoc, linger_and_reuse, .description = "5043-11.3-d2")
{
	struct sd_ulp u = { 0 };
	struct ddps_sd_carrier *c, *other;

	open_session(&u);
	c = sd_carrier_of(&world, 0);
	other = sd_carrier_of(&world, 1);
	u.llp->ops->shutdown(u.llp);
	sd_run(&world);
	cr_expect(ddps_timer_runs(&c->linger));
	cr_expect(ddps_timer_runs(&other->linger));
	cr_expect_gt(other->linger.due, c->linger.due); /* the opener goes first */
	sd_free(&u);
	u = (struct sd_ulp){ 0 };
	open_session(&u);
	cr_expect_eq(fake_sctp_net.connects, 1);
	cr_expect_not(ddps_timer_runs(&c->linger));
	u.llp->ops->shutdown(u.llp);
	sd_run(&world);
	fire_assoc_timer(&c->linger);
	cr_expect_null(sd_carrier_of(&world, 0)); /* both ends */
	sd_free(&u);
}

/* Where the request was put on an association that was up, or others were answered there: nobody has seen it. */
Test(sd_assoc, a_request_on_an_association_that_is_shut_down_is_unheard)
{
	struct sd_ulp u[3] = { 0 };
	struct ddps_sd_assoc *raw = sd_raw_initiated(&world, &u[0], false);

	cr_assert_eq(sd_connect(&world, &u[1], SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 1);
	sd_send(&world, raw, 2, "0000 0002");
	cr_assert_eq(u[1].answers, 1);
	cr_assert_eq(sd_connect(&world, &u[2], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	raw->shut = true;
	fake_sctp_poke(raw);
	sd_run(&world);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(u[i].closes, 1, "%u", i);
		cr_expect_eq(u[i].error.code, DDPS_E_CLOSED, "%u", i);
	}
	cr_expect(u[0].llp->unheard);
	cr_expect_not(u[1].llp->unheard, "it was answered");
	cr_expect(u[2].llp->unheard);
	for (unsigned i = 0; i < 3; i++)
		sd_free(&u[i]);
}

Test(sd_assoc, passive_side_closes_in_the_end)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0);

	sd_send(&world, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");
	fire_assoc_timer(&sd_carrier_of(&world, 0)->linger);
	cr_expect_null(sd_carrier_of(&world, 0));
}

Test(sd_assoc, association_without_any_initiate)
{
	struct ddps_sd_assoc *raw;

	world.lparam.setup_ms = 50;
	raw = sd_raw_to_listener(&world);
	cr_expect_leq(sd_carrier_of(&world, 0)->linger.due, ddps_now() + 50000000u);
	fire_assoc_timer(&sd_carrier_of(&world, 0)->linger);
	cr_expect_null(sd_carrier_of(&world, 0));
	cr_expect_eq(((struct ddps_sd_listener *)world.listener)->half_open, 0);
	(void)raw;
}

/* Whoever opened it may have a request under way: he closes it, or time does. */
Test(sd_assoc, idle_associations_outlast_their_listener_by_seconds)
{
	struct ddps_sd_assoc *idle = sd_raw_to_listener(&world), *raw;
	struct ddps_timer *linger = &sd_carrier_of(&world, 0)->linger;

	world.accept = false;
	raw = sd_raw_to_listener(&world);
	sd_send(&world, raw, 0, "0000 0001");
	ddps_sctp_provider.listener_free(world.listener);
	world.listener = NULL;
	sd_run(&world);
	cr_assert(idle->peer);
	cr_expect_leq(linger->due, ddps_now() + 5000000000u);
	fire_assoc_timer(linger);
	sd_run(&world);
	cr_expect_null(idle->peer);
	cr_assert(raw->peer);
	cr_assert_eq(sd_answer(&world.req[0], false, NULL, 0), 0); /* the request lives on */
	sd_run(&world);
	sd_expect(raw, 0, "0000 0002");
}

Test(sd_assoc, association_coming_up_for_nobody)
{
	struct sd_ulp u = { 0 };
	struct ddps_sd_carrier *c;

	fake_sctp_raw_listen(&world.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&world, &u, SD_RAW_PORT, false, NULL, 0), 0);
	sd_free(&u);
	c = sd_carrier_of(&world, 0);
	cr_assert_eq(c->state, DDPS_SD_COMING);
	fire_assoc_timer(&c->linger);
	cr_expect_null(sd_carrier_of(&world, 0));
}

/* Nobody needs it any more, and a SHUTDOWN would wait for what was sent, for ever if need be. */
Test(sd_assoc, freed_and_its_terminate_is_not_taken)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0);
	struct sd_ulp *u = &world.req[0];

	raw->hold = true;
	raw->peer->room = 1;
	u->to_send = 1;
	u->llp->ops->kick(u->llp);
	cr_assert_eq(raw->nin, 1);
	cr_assert_not(sd_carrier_of(&world, 0)->blocked);
	sd_free(u);
	sd_run(&world);
	fire_assoc_timer(&sd_carrier_of(&world, 0)->linger);
	cr_assert_eq(sd_carrier_of(&world, 0)->state, DDPS_SD_GOING);
	fire_assoc_timer(&sd_carrier_of(&world, 0)->linger);
	cr_expect_null(sd_carrier_of(&world, 0));
	cr_expect_eq(raw->error.code, DDPS_E_RESET, "%s", raw->error.text);
}

/* The answer to a SHUTDOWN waits for what was sent to its sender, which need not take it. */
Test(sd_assoc, attack_4_a_peer_that_shuts_down_and_takes_nothing)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0), *a = raw->peer;

	a->up->peer_shutdown(a->user);
	sd_run(&world);
	cr_expect_eq(world.req[0].error.code, DDPS_E_CLOSED);
	cr_assert(sd_carrier_of(&world, 0));
	cr_expect_leq(sd_carrier_of(&world, 0)->linger.due, ddps_now() + 30000000000u);
	fire_assoc_timer(&sd_carrier_of(&world, 0)->linger);
	cr_expect_null(sd_carrier_of(&world, 0));
	cr_expect_eq(raw->error.code, DDPS_E_RESET, "%s", raw->error.text);
}

/* ---- stream pairs ---- */

Test(sd_assoc, opener_takes_even_ids_the_other_side_odd_ones)
{
	struct sd_ulp u[4] = { 0 }, back[2] = { 0 };
	struct ddps_sd_carrier *a, *b;

	for (int i = 0; i < 3; i++)
		open_session(&u[i]);
	a = sd_carrier_of(&world, 0);
	b = sd_carrier_of(&world, 1);
	for (uint16_t i = 0; i < 3; i++)
		cr_expect_eq(sd_pair_of(&u[i])->stream, 2 * i);
	/* The other side becomes active on the same association. */
	a->listener = (struct ddps_sd_listener *)world.listener;
	for (int i = 0; i < 2; i++) {
		struct ddps_sd_session *s = ddps_sd_session_new(&world.env, true);

		back[i].w = &world;
		back[i].llp = &s->llp;
		s->llp.up = world.req[0].llp->up;
		s->llp.user = &back[i];
		ddps_llp_attach(&s->llp, world.req[0].llp->data, &back[i]);
		ddps_sd_carrier_wait(b, s);
		cr_expect_eq(s->pair->stream, 2 * i + 1);
	}
	/* and both simultaneously */
	cr_assert_eq(sd_connect(&world, &u[3], SD_PORT, false, NULL, 0), 0);
	sd_run(&world);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(back[i].answers, 1);
		back[i].to_send = 50;
		back[i].llp->ops->kick(back[i].llp);
	}
	u[1].to_send = 50;
	u[1].llp->ops->kick(u[1].llp);
	sd_run(&world);
	cr_expect_eq(world.nreq, 6);
	cr_expect_eq(world.req[1].segments, 50);
	cr_expect_eq(world.req[3].segments, 50);
	cr_expect_eq(world.req[4].segments, 50);
	for (int i = 0; i < 2; i++) {
		back[i].llp->ops->shutdown(back[i].llp);
		sd_run(&world);
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
	raw = sd_raw_initiated(&world, &u[0], false);
	for (uint16_t i = 1; i < 3; i++) {
		cr_assert_eq(sd_connect(&world, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
		sd_run(&world);
		sd_expect(raw, 2 * i, "0000 0001");
	}
	cr_expect(ddps_sd_carrier_full(sd_carrier_of(&world, 0)));
	/* 0: rejected, but our Initiate counts as not acknowledged yet */
	raw->peer->hold_dry = true;
	sd_send(&world, raw, 0, "0000 0003");
	sd_free(&u[0]);
	u[0] = (struct sd_ulp){ 0 };
	cr_expect(ddps_sd_carrier_full(sd_carrier_of(&world, 0)));
	raw->peer->hold_dry = false;
	fake_sctp_poke(raw->peer);
	sd_run(&world);
	cr_assert_eq(sd_connect(&world, &u[0], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	sd_expect(raw, 0, "0000 0001");
	/* 2: we terminated, the peer did not: never from this side */
	sd_send(&world, raw, 2, "0000 0002");
	sd_free(&u[1]);
	sd_run(&world);
	sd_expect(raw, 2, "0001 0004");
	u[1] = (struct sd_ulp){ 0 };
	cr_expect(ddps_sd_carrier_full(sd_carrier_of(&world, 0)));
	sd_send(&world, raw, 2, "0001 0004");
	cr_assert_eq(sd_connect(&world, &u[1], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	sd_expect(raw, 2, "0000 0001");
	for (int i = 0; i < 3; i++)
		sd_free(&u[i]);
}

/* Nobody is refused for want of streams, and what one holds the others do not share. */
Test(sd_assoc, attack_4_full_blocked_and_stalling_ones_are_not_shared)
{
	struct sd_ulp u[8] = { 0 };
	struct ddps_sd_carrier *first;

	fake_sctp_net.out_streams = 3; /* ids 0 and 2 */
	fake_sctp_raw_listen(&world.env, SD_RAW_PORT);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(sd_connect(&world, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
		sd_run(&world);
	}
	first = sd_carrier_of(&world, 0);
	cr_expect_eq(sd_pair_of(&u[1])->carrier, first);
	cr_expect_null(sd_carrier_of(&world, 1));
	cr_assert_eq(sd_connect(&world, &u[2], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_neq(sd_pair_of(&u[2])->carrier, first, "it is full");
	world.param.stalls = true;
	cr_assert_eq(sd_connect(&world, &u[3], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_neq(sd_pair_of(&u[3])->carrier, sd_pair_of(&u[2])->carrier);
	world.param.stalls = false;
	cr_assert_eq(sd_connect(&world, &u[4], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_eq(sd_pair_of(&u[4])->carrier, sd_pair_of(&u[2])->carrier);
	cr_assert_eq(sd_connect(&world, &u[5], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_neq(sd_pair_of(&u[5])->carrier, sd_pair_of(&u[2])->carrier, "it is full, too");
	cr_expect_neq(sd_pair_of(&u[5])->carrier, sd_pair_of(&u[3])->carrier, "it may stall");
	sd_pair_of(&u[5])->carrier->blocked = true; /* the peer does not read it */
	cr_assert_eq(sd_connect(&world, &u[6], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_neq(sd_pair_of(&u[6])->carrier, sd_pair_of(&u[5])->carrier);
	sd_pair_of(&u[6])->carrier->assoc->info.shut = true; /* its window has no room */
	cr_assert_eq(sd_connect(&world, &u[7], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_neq(sd_pair_of(&u[7])->carrier, sd_pair_of(&u[6])->carrier);
	for (int i = 0; i < 8; i++)
		sd_free(&u[i]);
}

Test(sd_assoc, pairs_run_out_for_sessions_that_wait)
{
	struct sd_ulp u[3] = { 0 };

	fake_sctp_net.out_streams = 3; /* ids 0 and 2 */
	fake_sctp_raw_listen(&world.env, SD_RAW_PORT);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sd_connect(&world, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_expect_eq(u[0].closes + u[1].closes, 0);
	cr_expect_eq(u[2].closes, 1);
	cr_expect_eq(u[2].error.code, DDPS_E_LIMIT);
	for (int i = 0; i < 3; i++)
		sd_free(&u[i]);
}
