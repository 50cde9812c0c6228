/* SPDX-License-Identifier: BSD-2-Clause */
/* What a listener counts: associations that say nothing yet, and those without a session. */
#include "common/loop/loop_in.h"
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static struct sd_world w;
static struct sd_ulp u, v;
static char lines[2000];

static void note_sd_idle(void *user, enum ddps_log_level level, const char *facility,
			 const char *message)
{
	size_t n = strlen(lines);

	(void)user;
	(void)level;
	(void)facility;
	snprintf(lines + n, sizeof lines - n, "%s\n", message);
}

static void init(void)
{
	sd_world_init(&w);
	w.lparam.max_half_open = 1000;
	lines[0] = 0;
}

static void fini(void)
{
	sd_free(&u);
	sd_free(&v);
	sd_world_fini(&w);
}

TestSuite(sd_idle, .init = init, .fini = fini, .timeout = 30);

static const struct ddps_sd_assoc_up *const tell = &ddps_sd_carrier_up;

static struct ddps_sd_listener *get_sd_idle_listener(void)
{
	return (struct ddps_sd_listener *)w.listener;
}

/* An association that had a session and has none any more. */
static struct ddps_sd_assoc *make_idle_sd_idle(void)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send(&w, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");
	sd_free(&w.req[w.nreq - 1]);
	sd_run(&w);
	return raw;
}

static struct ddps_sd_carrier *last_carrier(void)
{
	struct ddps_sd_provider *prov = w.env.sctp;

	return TAILQ_LAST(&prov->carriers, ddps_sd_carrier_list);
}

/* ---- how one goes ---- */

static void lingers_over(struct ddps_sd_carrier *c)
{
	ddps_timer_stop(w.env.loop, &c->linger);
	c->linger.fn(c->linger.user);
	cr_expect_eq(c->state, DDPS_SD_GOING);
	cr_expect(ddps_timer_runs(&c->linger), "but not for ever");
}

static void peer_shuts_down(struct ddps_sd_carrier *c)
{
	tell->peer_shutdown(c);
	cr_expect_eq(c->state, DDPS_SD_GOING);
}

static void is_lost(struct ddps_sd_carrier *c)
{
	struct ddps_error e = ddps_error_make(DDPS_E_RESET, 0, "test");

	tell->gone(c, &e);
}

/* Twice is not more than once. */
static void is_aborted(struct ddps_sd_carrier *c)
{
	struct ddps_error e = ddps_error_make(DDPS_E_LIMIT, 0, "test");
	struct ddps_sd_assoc *a = c->assoc;

	ddps_sd_carrier_abort(c, &e);
	cr_expect_eq(c->state, DDPS_SD_GOING);
	ddps_sd_carrier_abort(c, &e);
	cr_expect_eq(a->aborts, 1);
}

static const struct way {
	const char *name;
	void (*go)(struct ddps_sd_carrier *c);
} ways
	[] = {
		{ "peer_shutdown", peer_shuts_down },
		{ "gone", is_lost },
		{ "abort", is_aborted },
		{ "free", ddps_sd_carrier_free },
		{ "linger", lingers_over }, /* of those without a session */
	};

#define WAYS (sizeof ways / sizeof *ways)

Test(sd_idle, one_that_goes_is_not_idle_any_more)
{
	for (size_t i = 0; i < WAYS; i++) {
		make_idle_sd_idle();
		cr_assert_eq(get_sd_idle_listener()->idle.places, 1);
		ways[i].go(last_carrier());
		cr_expect_eq(get_sd_idle_listener()->idle.places, 0, "%s", ways[i].name);
		sd_run(&w);
		cr_expect_eq(get_sd_idle_listener()->idle.places, 0, "%s", ways[i].name);
	}
	cr_expect_eq(w.env.idle_ended, 0);
}

/* ... and one that goes with its session never is: no other has to give way to it. */
Test(sd_idle, one_that_goes_with_its_session_is_not_idle)
{
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER; i++)
		make_idle_sd_idle();
	for (size_t i = 0; i < WAYS - 1; i++) {
		sd_raw_open(&w, 0);
		ways[i].go(last_carrier());
		cr_expect_eq(get_sd_idle_listener()->idle.places, DDPS_SD_IDLE_PEER, "%s",
			     ways[i].name);
		sd_run(&w);
		cr_expect_eq(w.req[w.nreq - 1].closes, 1, "%s", ways[i].name);
		cr_expect_eq(w.env.idle_ended, 0, "%s", ways[i].name);
		sd_free(&w.req[w.nreq - 1]);
	}
}

Test(sd_idle, one_that_goes_is_not_silent_any_more)
{
	for (size_t i = 0; i < WAYS - 1; i++) {
		sd_raw_to_listener(&w);
		cr_assert_eq(get_sd_idle_listener()->half_open, 1);
		cr_assert_eq(get_sd_idle_listener()->silent.places, 1);
		ways[i].go(last_carrier());
		if (ways[i].go == peer_shuts_down) /* it has its place until it is gone */
			sd_run(&w);
		cr_expect_eq(get_sd_idle_listener()->half_open, ways[i].go == peer_shuts_down, "%s",
			     ways[i].name);
		if (ways[i].go == peer_shuts_down)
			is_lost(last_carrier());
		sd_run(&w);
		cr_expect_eq(get_sd_idle_listener()->half_open, 0, "%s", ways[i].name);
		cr_expect_eq(get_sd_idle_listener()->silent.places, 0, "%s", ways[i].name);
	}
}

Test(sd_idle, one_with_a_session_again_is_not_idle)
{
	struct ddps_sd_assoc *raw = make_idle_sd_idle();

	cr_assert_eq(get_sd_idle_listener()->idle.places, 1);
	sd_send(&w, raw, 2, "0000 0001");
	cr_expect_eq(w.nreq, 2);
	cr_expect_eq(get_sd_idle_listener()->idle.places, 0);
	cr_expect_not(ddps_timer_runs(&last_carrier()->linger));
}

/* Something that is no request says nothing yet: the place is that of one that is silent. */
Test(sd_idle, a_stray_message_is_no_request, .description = "5043-6.4-3")
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);

	sd_send(&w, raw, 0, "0000 0002");
	sd_expect(raw, 0, "0000 0004");
	cr_expect(last_carrier()->fresh);
	cr_expect_eq(get_sd_idle_listener()->half_open, 1);
	cr_expect_eq(get_sd_idle_listener()->silent.places, 1);
	cr_expect_eq(w.env.half_open_full, 0);
	sd_send(&w, raw, 1, "0000 0001");
	cr_expect_not(last_carrier()->fresh);
	cr_expect_eq(get_sd_idle_listener()->half_open, 0);
	cr_expect_eq(get_sd_idle_listener()->silent.places, 0);
}

/* ---- what the log says ---- */

Test(sd_idle, the_log_says_whose_were_too_many)
{
	char from[40];

	fake_sctp_net.from = from;
	for (unsigned i = 0; i < DDPS_SD_IDLE_LISTENER + 1; i++) {
		snprintf(from, sizeof from, i < 5 ? "192.0.2.1:%u" : "10.0.1.%u:7", i);
		if (i > 200)
			snprintf(from, sizeof from, "10.0.2.%u:7", i - 200);
		make_idle_sd_idle();
	}
	cr_expect_eq(w.env.idle_ended, 1);
	cr_expect_str_eq(w.log, "192.0.2.1:0: association aborted: 257 associations without a "
				"session, 5 of this peer\n");
}

Test(sd_idle, the_log_says_that_one_was_idle)
{
	make_idle_sd_idle();
	w.env.log = (struct ddps_log){ note_sd_idle, NULL };
	lingers_over(last_carrier());
	cr_expect_str_eq(lines, "127.0.0.1:2: idle association shut down\n");
	sd_run(&w);
}

/* ---- for how long ---- */

/* Up to a sixteenth longer. */
static bool is_sd_idle_due_in(const struct ddps_timer *t, uint64_t ms)
{
	uint64_t left = t->due - ddps_now();

	return ddps_timer_runs(t) && left <= (ms + ms / 16) * NSEC_PER_MSEC &&
	       left > (ms - ms / 10) * NSEC_PER_MSEC;
}

Test(sd_idle, pairs_without_a_session_have_five_seconds)
{
	sd_raw_initiated(&w, &u, false);
	sd_free(&u);
	cr_assert_eq(sd_state(&w, 0, 0), DDPS_SD_A1C);
	cr_expect(is_sd_idle_due_in(&sd_carrier_of(&w, 0)->linger, 5000));
}

/* An association that is not read may end nevertheless. */
Test(sd_idle, one_that_goes_while_it_is_not_read_waits_for_nothing)
{
	struct ddps_sd_carrier *c;

	sd_raw_open(&w, 0);
	c = last_carrier();
	c->paused = true;
	ddps_timer_after(w.env.loop, &c->pause_timer, DDPS_SD_PAUSE_MS);
	is_lost(c);
	cr_expect_null(w.env.loop->timers);
}

/* ---- who gives up ---- */

static void fire_session_timer(struct sd_ulp *s)
{
	struct ddps_timer *t = &((struct ddps_sd_session *)s->llp)->timer;

	ddps_timer_stop(w.env.loop, t);
	t->fn(t->user);
}

Test(sd_idle, a_session_that_ended_has_no_deadline)
{
	w.param.connect_ms = 50000;
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect(ddps_timer_runs(&((struct ddps_sd_session *)u.llp)->timer));
	u.llp->ops->abort(u.llp);
	cr_expect_not(ddps_timer_runs(&((struct ddps_sd_session *)u.llp)->timer));
}

/* It comes up later, and then it may serve another. */
Test(sd_idle, an_association_that_takes_too_long_to_come_up_is_not_aborted)
{
	struct ddps_sd_assoc *a;

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	a = sd_carrier_of(&w, 0)->assoc;
	fire_session_timer(&u);
	sd_run(&w);
	cr_expect_eq(u.error.code, DDPS_E_TIMEDOUT);
	cr_expect_eq(a->aborts, 0);
	cr_assert(sd_carrier_of(&w, 0));
	cr_expect_eq(sd_carrier_of(&w, 0)->state, DDPS_SD_UP);
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 1);
}

/* The other one ended in order, and its Terminate is on its way. */
Test(sd_idle, who_gives_up_next_to_another_leaves_the_association)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	sd_send(&w, raw, 0, "0000 0002");
	sd_send(&w, raw, 2, "0000 0002");
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	fire_session_timer(&u);
	cr_expect_not(sd_carrier_of(&w, 0)->stuck);
	sd_free(&v);
	sd_run(&w);
	cr_expect_eq(raw->peer->aborts, 0);
	cr_expect_eq(sd_carrier_of(&w, 0)->state, DDPS_SD_UP);
}

/* Also of the request on the first stream. */
Test(sd_idle, a_request_on_the_first_stream_may_be_unheard)
{
	struct ddps_sd_assoc *raw;

	fake_sctp_net.in_streams = 2;
	raw = sd_raw_initiated(&w, &u, false);
	sd_send(&w, raw, 0, "0000 0003");
	cr_assert(u.rejected);
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_assert_eq(sd_state(&w, 0, 0), DDPS_SD_A1);
	raw->shut = true;
	fake_sctp_poke(raw);
	sd_run(&w);
	cr_expect_eq(v.closes, 1);
	cr_expect(v.llp->unheard);
}
