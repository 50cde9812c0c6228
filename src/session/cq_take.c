/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: whoever polls or waits drives the context, and takes what has come. */
#include "session/cq_in.h"
#include "common/prefetch.h"
#include <sched.h>
#include <string.h>

#define SOME_NS 2000u /* longer than a call of the system that changes nothing */

/* Those of shared receive queues leave room there. */
static void note_fetched(const struct ddps_wc *wc, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (wc[i].op == DDPS_OP_RECV)
			ddps_rdmap_recv_fetched(wc[i].ep->rdmap);
}

_Static_assert(offsetof(struct ddps_ep, host.looks) - offsetof(struct ddps_ep, ctx) <=
		       DDPS_EP_OFTEN,
	       "what a Send needs of an endpoint is asked for");

#define EXPECTED 64u /* completions, about as many as a program takes at a time */

/*
 * Whoever takes completions posts to their sessions next, as a rule.  In three steps, since each looks at what the
 * one before has asked for: so all sessions wait for memory at the same time.
 */
static __attribute__((noinline)) void expect_posts(const struct ddps_wc *wc, uint32_t n)
{
	const struct ddps_ep *ep[EXPECTED];
	unsigned k = 0;

	for (uint32_t i = 0; i < n && k < EXPECTED; i++) {
		if (k && wc[i].ep == ep[k - 1])
			continue;
		ep[k++] = wc[i].ep;
		ddps_prefetch(&wc[i].ep->ctx, DDPS_EP_OFTEN);
	}
	for (unsigned i = 0; i < k; i++) {
		ddps_prefetch(ep[i]->rdmap, DDPS_RDMAP_OFTEN);
		ddps_prefetch(ep[i]->llp, DDPS_LLP_OFTEN);
	}
	for (unsigned i = 0; i < k; i++)
		ddps_rdmap_expect(ep[i]->rdmap);
}

/* The program has these now. */
static inline void note_taken(const struct ddps_cq *cq, const struct ddps_wc *wc, uint32_t n)
{
	if (n > 1 && cq->ctx->neps > DDPS_IN_CACHE)
		expect_posts(wc, n);
	if (!LIST_EMPTY(&cq->ctx->srqs))
		note_fetched(wc, n);
}

/* What was taken is out of the ring. */
static void drop_taken(struct ddps_cq *cq, uint32_t n)
{
	ddps_poller_found(cq->ctx);
	cq->taken += n;
	cq->count -= n;
	cq->ctx->gather_left = cq->count > 0;
	if (cq->count)
		return;
	cq->head = 0; /* the same few entries, which are in cache, again */
	cq->untold = ARMED_NO;
	cq->ctx->cqs_filled--;
}

static inline int take_cq_completions(struct ddps_cq *cq, struct ddps_wc *wc, int max)
{
	uint32_t n = (uint32_t)max < cq->count ? (uint32_t)max : cq->count;
	uint32_t to_end = cq->depth - cq->head;

	if (!n || max <= 0)
		return 0;
	if (n < to_end) {
		memcpy(wc, cq->ring + cq->head, n * sizeof *wc);
		cq->head += n;
	} else {
		memcpy(wc, cq->ring + cq->head, to_end * sizeof *wc);
		memcpy(wc + to_end, cq->ring, (n - to_end) * sizeof *wc);
		cq->head = n - to_end;
	}
	note_taken(cq, wc, n);
	drop_taken(cq, n);
	return (int)n;
}

/* With posts that complete immediately a queue never runs empty, and others wait: they have a turn, but
 * not before what the last one brought is taken, since receives are posted for that. */
static bool others_turn(const struct ddps_cq *cq)
{
	return ddps_loop_due(cq->ctx->env.loop) && cq->taken >= cq->brought;
}

/* Drive the context if the queue is empty and that is up to whoever polls.  Return: below 0, an error. */
static __attribute__((always_inline)) inline int drive_cq(struct ddps_cq *cq)
{
	struct ddps_ctx *ctx = cq->ctx;
	int n = 0;

	if (cq->count && ctx->gather_left)
		ddps_gather_again(ctx);
	else
		ddps_gather_look(ctx);
	if (!cq->count || others_turn(cq)) {
		n = ddps_poller_turn(ctx, cq->armed != ARMED_NO);
		cq->brought = cq->taken + cq->count;
	}
	return n;
}

static inline int drive_and_take(struct ddps_cq *cq, struct ddps_wc *wc, int max)
{
	int n = drive_cq(cq);

	return n < 0 ? n : take_cq_completions(cq, wc, max);
}

/*
 * Before the look and not behind it: others may run for long, and what has come meanwhile is found.
 * A program that gets "nothing" after such a pause looks for the end of its connection next, and
 * would find it before what came in front of it.
 */
static int yield_ctx(struct ddps_ctx *ctx)
{
	uint64_t before;
	bool some;
	int err;

	ddps_poller_away(ctx, true);
	ddps_ctx_leave(ctx);
	before = ddps_now();
	sched_yield();
	some = ddps_now() - before >= SOME_NS;
	err = ddps_ctx_enter_bare(ctx);
	if (!err) {
		ddps_poller_away(ctx, false);
		ddps_poller_yielded(ctx, some);
	}
	return err;
}

int ddps_cq_enter(struct ddps_cq *cq)
{
	int err = ddps_ctx_enter_bare(cq->ctx);

	return err >= 0 && !cq->count && ddps_poller_yields(cq->ctx) ? yield_ctx(cq->ctx) : err;
}

int ddps_cq_look(struct ddps_cq *cq, const struct ddps_wc **first, int max)
{
	int err = drive_cq(cq);
	uint32_t to_end = cq->depth - cq->head, row = cq->count < to_end ? cq->count : to_end;

	ddps_assert_held(&cq->ctx->lock);
	if (err < 0)
		return err;
	if (!row)
		ddps_poller_vain(cq->ctx);
	*first = &cq->ring[cq->head];
	return row < (uint32_t)max ? (int)row : max;
}

bool ddps_cq_drop(struct ddps_cq *cq, uint32_t n)
{
	ddps_assert_held(&cq->ctx->lock);
	note_taken(cq, &cq->ring[cq->head], n);
	cq->head = cq->head + n < cq->depth ? cq->head + n : 0;
	drop_taken(cq, n);
	return cq->count > 0;
}

int ddps_cq_poll(struct ddps_cq *cq, struct ddps_wc *wc, int max)
{
	int n = ddps_cq_enter(cq);

	if (n < 0)
		return n;
	n = drive_and_take(cq, wc, max);
	if (!n)
		ddps_poller_vain(cq->ctx);
	ddps_ctx_leave(cq->ctx);
	return n;
}

struct wanted {
	struct ddps_cq *cq;
	struct ddps_wc *wc;
	int max;
};

static int take_wanted_completions(void *arg)
{
	const struct wanted *w = arg;

	return take_cq_completions(w->cq, w->wc, w->max);
}

static __attribute__((noinline)) int await_completions(struct ddps_cq *cq, struct ddps_wc *wc,
						       int max, int timeout_ms)
{
	struct ddps_waiter w = { .what = &cq->sleepers, .drive = ddps_loop_spin };
	struct wanted wanted = { cq, wc, max };

	return ddps_wait_for(cq->ctx, &w, take_wanted_completions, &wanted,
			     ddps_deadline(timeout_ms));
}

int ddps_cq_wait(struct ddps_cq *cq, struct ddps_wc *wc, int max, int timeout_ms)
{
	int n = ddps_ctx_enter(cq->ctx);

	if (n < 0)
		return n;
	n = drive_and_take(cq, wc, max);
	if (!n)
		n = await_completions(cq, wc, max, timeout_ms);
	ddps_ctx_leave(cq->ctx);
	return n;
}
