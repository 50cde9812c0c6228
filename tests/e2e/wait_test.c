/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads that wait on one context, and waits that have to end under a flood. */
#include "support/two.h"
#include <poll.h>
#include <string.h>
#include <time.h>

#define ROUNDS	60
#define LOST_MS 8000 /* a wait that long for what has come has lost its wake-up */

static const char *const wires[] = { "tcp://127.0.0.1:0",
				     "sctp://127.0.0.1:0?backend=native&encap=0" };
#define NWIRES 2

/* ---- two threads, one context ---- */

struct waits {
	struct two_side *side;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	pthread_barrier_t *round;
	pthread_t thread;
};

enum how { BY_WAIT, BY_PROGRESS };

static int wait_for_completion_how(struct waits *w, enum how how, struct ddps_wc *wc)
{
	const uint64_t until = two_ms() + LOST_MS;
	int n;

	if (how == BY_WAIT)
		return ddps_cq_wait(w->cq, wc, 1, LOST_MS);
	while (!(n = ddps_cq_poll(w->cq, wc, 1)) && two_ms() < until)
		cr_assert_geq(ddps_progress(w->side->ctx, LOST_MS), 0);
	/* One that came with the end of its time was not brought by a wake-up. */
	return two_ms() < until ? n : DDPS_E_TIMEDOUT;
}

static void receive_wait_e2e(struct waits *w, enum how how)
{
	struct ddps_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		cr_assert_eq(ddps_post_recv(w->ep, 1, NULL, 0), 0);
		pthread_barrier_wait(w->round);
		cr_assert_eq(wait_for_completion_how(w, how, &wc), 1, "round %d: a lost wake-up",
			     i);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		pthread_barrier_wait(w->round);
	}
}

static void *receive_by_wait(void *arg)
{
	receive_wait_e2e(arg, BY_WAIT);
	return NULL;
}

static void *receive_by_progress(void *arg)
{
	receive_wait_e2e(arg, BY_PROGRESS);
	return NULL;
}

/* A little time, another one each round: the other threads fall asleep meanwhile or do not. */
static void linger(int i)
{
	struct timespec t = { .tv_nsec = i % 4 * 400000 };

	nanosleep(&t, NULL);
}

static void two_receive(const char *wire, void *(*one)(void *), void *(*other)(void *))
{
	void *(*const fn[])(void *) = { one, other };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT };
	struct waits w[2];
	struct two_side a, b;
	struct ddps_ep *from[2];
	struct ddps_cq *cq;
	pthread_barrier_t round;

	two_open(&a, true, false);
	two_open(&b, false, false);
	cq = two_cq(&a);
	pthread_barrier_init(&round, NULL, 3);
	for (int i = 0; i < 2; i++) {
		w[i] = (struct waits){ .side = &b, .cq = two_cq(&b), .round = &round };
		w[i].ep = two_ep(&b, w[i].cq);
		from[i] = two_ep(&a, cq);
		two_connect(&a, from[i], &b, w[i].ep, wire);
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&w[i].thread, NULL, fn[i], &w[i]), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&round);
		linger(i);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(ddps_post_send(from[k], &wr), 0);
		pthread_barrier_wait(&round);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(w[i].thread, NULL);
	pthread_barrier_destroy(&round);
	two_close(&a);
	two_close(&b);
}

Test(wait, attack_8_two_threads_wait_for_completions, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++)
		two_receive(wires[i], receive_by_wait, receive_by_wait);
}

Test(wait, attack_8_one_waits_one_makes_progress, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++)
		two_receive(wires[i], receive_by_wait, receive_by_progress);
}

/* Drive the context until nothing comes any more; whatever is too slow would only miss a fault. */
static void drive_until_quiet(struct ddps_ctx *ctx)
{
	struct pollfd p = { .fd = ddps_ctx_fd(ctx), .events = POLLIN };

	while (poll(&p, 1, 50) > 0)
		cr_assert_geq(ddps_progress(ctx, 0), 0);
}

static void comes_back(struct ddps_ctx *ctx, const char *what)
{
	const uint64_t began = two_ms();

	cr_assert_geq(ddps_progress(ctx, E2E_MS), 0);
	cr_expect_lt(two_ms() - began, LOST_MS, "%s: a lost wake-up", what);
}

/* Another thread may have brought it since the caller looked: there is no other one here. */
Test(wait, attack_8_progress_does_not_sleep_on_what_is_there, .timeout = 60)
{
	struct ddps_event ev;
	struct ddps_wc wc[2];
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	drive_until_quiet(e.ctx);
	comes_back(e.ctx, "two completions");
	cr_assert_eq(ddps_cq_poll(e.cq, wc, 1), 1);
	comes_back(e.ctx, "one completion");
	cr_assert_eq(ddps_cq_poll(e.cq, wc, 1), 1);
	cr_expect_eq(ddps_progress(e.ctx, 50), 0, "nothing is there");
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	drive_until_quiet(e.ctx);
	comes_back(e.ctx, "events");
	while (ddps_event_get(e.ctx, &ev) == 1)
		;
	e2e_close(&e);
}

static void *answer_requests(void *arg)
{
	struct waits *w = arg;
	struct ddps_event ev;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(w->round);
		cr_assert_eq(ddps_event_wait(w->side->ctx, &ev, LOST_MS), 0,
			     "round %d: a lost wake-up", i);
		cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
		cr_assert_eq(ddps_reject(ev.request, NULL, 0), 0);
		pthread_barrier_wait(w->round);
	}
	return NULL;
}

static void check_event_and_completion(const char *wire)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT };
	pthread_barrier_t round;
	struct two_side a, b;
	struct ddps_event ev;
	struct ddps_ep *from;
	struct ddps_cq *cq;
	struct waits w[2];

	two_open(&a, true, false);
	two_open(&b, false, false);
	cq = two_cq(&a);
	pthread_barrier_init(&round, NULL, 3);
	w[0] = (struct waits){ .side = &b, .cq = two_cq(&b), .round = &round };
	w[0].ep = two_ep(&b, w[0].cq);
	w[1] = (struct waits){ .side = &b, .round = &round };
	from = two_ep(&a, cq);
	two_connect(&a, from, &b, w[0].ep, wire);
	cr_assert_eq(pthread_create(&w[0].thread, NULL, receive_by_wait, &w[0]), 0);
	cr_assert_eq(pthread_create(&w[1].thread, NULL, answer_requests, &w[1]), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct ddps_ep *caller = two_ep(&a, cq);

		pthread_barrier_wait(&round);
		linger(i);
		cr_assert_eq(ddps_connect(caller, b.uri, NULL), 0);
		cr_assert_eq(ddps_post_send(from, &wr), 0);
		pthread_barrier_wait(&round);
		/* The rejection may be on its way still; nobody sends it on, but who waits. */
		while (ddps_event_wait(a.ctx, &ev, 10) == DDPS_E_TIMEDOUT)
			cr_assert_geq(ddps_progress(b.ctx, 0), 0);
		cr_assert_eq(ev.type, DDPS_EV_REJECTED, "%s", ev.error.text);
		ddps_ep_free(caller);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(w[i].thread, NULL);
	pthread_barrier_destroy(&round);
	two_close(&a);
	two_close(&b);
}

Test(wait, attack_8_one_waits_for_events_one_for_completions, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++)
		check_event_and_completion(wires[i]);
}

static void *await_sent(void *arg)
{
	struct waits *w = arg;
	struct ddps_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(w->round);
		cr_assert_eq(ddps_cq_wait(w->cq, &wc, 1, LOST_MS), 1, "round %d: a lost wake-up",
			     i);
		pthread_barrier_wait(w->round);
	}
	return NULL;
}

/* The completion is made inside the other thread's call. */
Test(wait, attack_8_a_post_here_wakes_a_wait_there, .timeout = 60)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE };
	pthread_barrier_t round;
	struct two_side a, b;
	struct waits w;

	two_open(&a, false, false);
	two_open(&b, true, false);
	pthread_barrier_init(&round, NULL, 2);
	w = (struct waits){ .side = &a, .cq = two_cq(&a), .round = &round };
	w.ep = two_ep(&a, w.cq);
	two_connect(&a, w.ep, &b, two_ep(&b, two_cq(&b)), wires[0]);
	cr_assert_eq(pthread_create(&w.thread, NULL, await_sent, &w), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&round);
		linger(i);
		cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		pthread_barrier_wait(&round);
	}
	pthread_join(w.thread, NULL);
	pthread_barrier_destroy(&round);
	two_close(&a);
	two_close(&b);
}

/* ---- every wait of the session API that has a time-out, under a flood ---- */

#define WAIT_MS 100
#define LATE_MS 3000 /* the machine may be busy; a wait that takes the flood's 20 s is not late */

struct victim {
	struct two_side side;
	struct ddps_cq *cq;
};

static int wait_wait_e2e_event(struct victim *v)
{
	struct ddps_event ev;

	return ddps_event_wait(v->side.ctx, &ev, WAIT_MS);
}

static int wait_wait_e2e_cq(struct victim *v)
{
	struct ddps_wc wc;

	return ddps_cq_wait(v->cq, &wc, 1, WAIT_MS);
}

static int wait_progress(struct victim *v)
{
	int n = ddps_progress(v->side.ctx, WAIT_MS);

	return n < 0 ? n : DDPS_E_TIMEDOUT;
}

/* The last: it ends the sessions. */
__attribute__((unused)) static int wait_settle(struct victim *v)
{
	int err = ddps_ctx_settle(v->side.ctx, WAIT_MS);

	return err ? err : DDPS_E_TIMEDOUT;
}

static const struct {
	const char *name;
	int (*wait)(struct victim *v);

} waits[] = {
	{ "ddps_event_wait", wait_wait_e2e_event },
	{ "ddps_cq_wait", wait_wait_e2e_cq },
	{ "ddps_progress", wait_progress },
#ifndef __SANITIZE_THREAD__ /* GCC's does not know pthread_mutex_clocklock */
	{ "ddps_ctx_settle", wait_settle },
#endif
};

#define PEERS 3

struct peer {
	struct two_side side;
	struct two_flood flood;
};

static void peer_up(struct peer *p, struct victim *v, const char *wire)
{
	struct ddps_cq *cq;
	struct ddps_ep *ep;

	two_open(&p->side, false, false);
	cq = two_cq(&p->side);
	ep = two_ep(&p->side, cq);
	two_connect(&p->side, ep, &v->side, two_ep(&v->side, v->cq), wire);
	two_flood_start(&p->flood, &p->side, ep, cq);
}

static void flooded(const char *wire, bool thread, bool poll_drives)
{
	struct peer peers[PEERS];
	struct victim v;
	uint64_t began;

	two_open(&v.side, thread, poll_drives);
	v.cq = two_cq(&v.side);
	for (int i = 0; i < PEERS; i++)
		peer_up(&peers[i], &v, wire);
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		int err;

		began = two_ms();
		err = waits[i].wait(&v);
		cr_expect_eq(err, DDPS_E_TIMEDOUT, "%s: %s", waits[i].name, ddps_strerror(err));
		cr_expect(two_ms() - began < LATE_MS, "%s(%d) took %llu ms (%s, thread %d)",
			  waits[i].name, WAIT_MS, (unsigned long long)(two_ms() - began), wire,
			  thread);
	}
	began = two_ms();
	two_close(&v.side);
	cr_expect(two_ms() - began < LATE_MS, "ddps_ctx_free took %llu ms (%s)",
		  (unsigned long long)(two_ms() - began), wire);
	for (int i = 0; i < PEERS; i++) {
		two_flood_stop(&peers[i].flood);
		two_close(&peers[i].side);
	}
}

Test(wait, every_wait_ends_in_time_under_a_flood, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++) {
		flooded(wires[i], false, false);
		flooded(wires[i], true, false);
		flooded(wires[i], true, true);
	}
}
