/* SPDX-License-Identifier: BSD-2-Clause */
/* What an event has handed out lives on, whatever the peer and other threads do. */
#include "support/e2e.h"
#include <pthread.h>
#include <string.h>

/* A request is fetched, its peer leaves, the end of it is fetched, too: as by another thread. */
static struct ddps_request *fetch_gone(struct e2e *e)
{
	struct ddps_event ev;

	e->keep_request = true;
	e->b.seen = e->a.seen = 0;
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, e->uri, &e->connect), 0);
	cr_assert_eq(ddps_event_wait(e->ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	cr_assert_eq(ddps_abort(e->a.ep), 0);
	e2e_wait(e, &e->a, E2E_SEEN(DDPS_EV_FAILED));
	e2e_wait(e, &e->b, E2E_SEEN(DDPS_EV_REQUEST_GONE));
	cr_assert_eq(e->request.request, ev.request);
	ddps_ep_free(e->a.ep);
	e->a.ep = NULL;
	return ev.request;
}

E2E_WIRES(held, contact_02_the_answer_to_a_request_that_has_gone)
{
	struct ddps_request *req[2];
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, wire);
	for (unsigned i = 0; i < 2; i++)
		req[i] = fetch_gone(&e);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	cr_expect_eq(ddps_accept(req[0], ep, NULL), DDPS_E_CLOSED);
	cr_expect_eq(ddps_reject(req[1], NULL, 0), DDPS_E_CLOSED);
	cr_expect_eq(ddps_reject(req[0], NULL, 0), DDPS_E_CLOSED, "however often");
	/* the endpoint is as it was, and the next caller is taken */
	e.keep_request = false;
	e.a.seen = e.b.seen = 0;
	e.b.ep = ep;
	e2e_connect(&e);
	cr_expect(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	cr_expect_eq(ddps_accept(e.request.request, ep, NULL), DDPS_E_CLOSED, "it was answered");
	e2e_close(&e);
}

/* ---- one thread answers, another one fetches ---- */

#define CALLERS 200

struct race {
	struct e2e e;
	pthread_barrier_t fetched;
	struct ddps_request *request;
	unsigned closed, taken;
};

static void *answer_held_e2e(void *arg)
{
	struct race *r = arg;
	struct ddps_request *request;
	struct ddps_ep *ep;
	int err;

	for (;;) {
		pthread_barrier_wait(&r->fetched);
		request = r->request;
		pthread_barrier_wait(&r->fetched); /* the other one goes on when this knows which */
		if (!request)
			return NULL;
		cr_assert_eq(ddps_ep_new(r->e.ctx, &r->e.attr, &ep), 0);
		err = ddps_accept(request, ep, NULL);
		cr_assert(!err || err == DDPS_E_CLOSED, "%d", err);
		r->closed += err == DDPS_E_CLOSED;
		r->taken += !err;
		ddps_ep_free(ep);
	}
}

/* NULL: there are no more. */
static void give_request(struct race *r, struct ddps_request *request)
{
	r->request = request;
	pthread_barrier_wait(&r->fetched);
	pthread_barrier_wait(&r->fetched);
}

Test(held, contact_02_one_thread_answers_while_another_one_fetches, .timeout = 120)
{
	struct ddps_event ev;
	struct race r = { .request = NULL };
	pthread_t t;

	e2e_open(&r.e, e2e_wires[0]);
	cr_assert_eq(pthread_barrier_init(&r.fetched, NULL, 2), 0);
	cr_assert_eq(pthread_create(&t, NULL, answer_held_e2e, &r), 0);
	for (unsigned i = 0; i < CALLERS; i++) {
		struct ddps_ep *ep;
		bool ended = false;

		cr_assert_eq(ddps_ep_new(r.e.ctx, &r.e.attr, &ep), 0);
		cr_assert_eq(ddps_connect(ep, r.e.uri, &r.e.connect), 0);
		do
			cr_assert_eq(ddps_event_wait(r.e.ctx, &ev, E2E_MS), 0);
		while (ev.type != DDPS_EV_CONNECT_REQUEST);
		give_request(&r, ev.request);
		ddps_abort(ep);
		while (!ended) {
			cr_assert_eq(ddps_event_wait(r.e.ctx, &ev, E2E_MS), 0);
			ended = ev.ep == ep &&
				(ev.type == DDPS_EV_FAILED || ev.type == DDPS_EV_CLOSED);
		}
		ddps_ep_free(ep);
	}
	give_request(&r, NULL);
	cr_assert_eq(pthread_join(t, NULL), 0);
	pthread_barrier_destroy(&r.fetched);
	cr_expect_eq(r.closed + r.taken, CALLERS);
	e2e_close(&r.e);
}

/* ---- the last event of a session comes behind all of its completions, on every wire ---- */

#define MANY 48

static struct e2e e;

struct count {
	unsigned sent, got, flushed;
	bool over; /* its last event was fetched, and what was there then */
};

static struct count at[2];

static void take_all_completions(void)
{
	struct ddps_wc wc[16];
	int n;

	while ((n = ddps_cq_poll(e.cq, wc, 16)) > 0) {
		for (int i = 0; i < n; i++) {
			struct count *c = &at[wc[i].ep == e.b.ep];

			cr_expect_not(c->over, "a completion behind the last event");
			if (wc[i].status != DDPS_WC_SUCCESS)
				c->flushed++;
			else if (wc[i].op == DDPS_OP_RECV)
				c->got++;
			else
				c->sent++;
		}
	}
}

static void post_order_receives(struct ddps_ep *ep)
{
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(ddps_post_recv(ep, i, NULL, 0), 0);
}

/* @late: the receives come when the peer has closed. */
static void close_behind(const char *wire, bool late, bool both)
{
	struct ddps_event ev;

	memset(at, 0, sizeof at);
	e2e_open(&e, wire);
	e.attr.no_recv = DDPS_NO_RECV_STALL;
	e.attr.sq_depth = e.attr.rq_depth = MANY;
	e2e_connect(&e);
	cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.b.error.text);
	if (!late)
		post_order_receives(e.b.ep);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
	cr_assert_eq(ddps_disconnect(e.a.ep), 0);
	if (late) {
		while (ddps_progress(e.ctx, 20) > 0)
			;
		post_order_receives(e.b.ep);
	}
	if (both && !late)
		cr_assert_eq(ddps_disconnect(e.b.ep), 0);
	while (!at[0].over || !at[1].over) {
		cr_assert_gt(ddps_progress(e.ctx, E2E_MS), 0, "%s", wire);
		while (ddps_event_get(e.ctx, &ev) == 1) {
			if (ev.type == DDPS_EV_PEER_CLOSED && ev.ep == e.b.ep)
				ddps_disconnect(e.b.ep);
			if (ev.type != DDPS_EV_CLOSED)
				continue;
			take_all_completions();
			at[ev.ep == e.b.ep].over = true;
			cr_expect_eq(ev.error.code, 0, "%s: %s", wire, ev.error.text);
		}
	}
	for (unsigned i = 0; i < 20; i++) {
		ddps_progress(e.ctx, 0);
		take_all_completions();
	}
	cr_expect_eq(at[0].sent, MANY, "%s: %u", wire, at[0].sent);
	cr_expect_eq(at[1].got + at[1].flushed, MANY, "%s: %u", wire, at[1].got);
	if (!both)
		cr_expect_eq(at[1].got, MANY, "%s: %u", wire, at[1].got);
	e2e_close(&e);
}

E2E_WIRES(order, contact_01_all_completions_before_closed)
{
	for (unsigned i = 0; i < 10; i++)
		close_behind(wire, false, false);
}

E2E_WIRES(order, contact_01_all_completions_before_closed_by_both)
{
	for (unsigned i = 0; i < 10; i++)
		close_behind(wire, false, true);
}

E2E_WIRES(order, contact_01_all_completions_before_closed_of_what_waited)
{
	for (unsigned i = 0; i < 3; i++)
		close_behind(wire, true, false);
}
