/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are posted one by one leave together (struct ddps_ctx_attr: gather).
 *
 * The first one since the program looked at a queue leaves immediately: it may be alone.  Those
 * behind it wait until the program looks, there are enough of them, or a while is over, in which the
 * program does something else: then it is the timer, or the library thread at the end of its nap,
 * that lets them go.  A session whose requests have waited for that once is cautious: its next ones
 * leave one by one, and more of them each time.  That is not so where the program was posting all the while, perhaps
 * to many sessions.
 *
 * One with DDPS_WR_MORE waits for the rest of its burst, in any context, and here for no other.  Where
 * nothing is gathered there is no limit for it, and a library thread lets it go after its next nap.
 */
#include "session/cq_in.h"

#define GATHER_MOST   64u	   /* as many as leave with one call */
#define GATHER_OCTETS (32u * 1024) /* more are worth a call of their own */
#define GATHER_NS     100000u
#define DRAIN_NS      20000u   /* in which looks that leave completions behind let nothing go */
#define POSTS_NS      50000u   /* who posts SOME_POSTS in that time does nothing else */
#define SOME_POSTS    8u       /* a power of two */
#define THREAD_NS     1000000u /* the library thread need not wake up before, */
#define KEPT_MANY     64u      /* where so many looks in a row were in time */
#define CAUTION_LEAST 16u
#define CAUTION_MOST  4u /* doublings */

static void let_ep_go(struct ddps_ep *ep)
{
	ddps_gather_forget(ep);
	ddps_ep_kick(ep); /* who ends it forgets what was gathered */
}

void ddps_gather_flush(struct ddps_ctx *ctx)
{
	struct ddps_ep *ep;

	ddps_assert_held(&ctx->lock);
	ctx->gather_kept += ctx->gather_kept < KEPT_MANY;
	ddps_loop_join(ctx->env.loop);
	while ((ep = LIST_FIRST(&ctx->gathers))) {
		if (ep->gather.caution)
			ep->gather.caution--;
		let_ep_go(ep);
	}
	ddps_loop_part(ctx->env.loop);
}

/* Whoever takes a few of many completions comes back for the rest, and has posted more by then: perhaps to many
 * sessions, a request or two each time. */
void ddps_gather_again(struct ddps_ctx *ctx)
{
	if (ctx->attr.gather && !LIST_EMPTY(&ctx->gathers) &&
	    ddps_now() + (GATHER_NS - DRAIN_NS) < ctx->gather_late)
		ddps_gather_next(ctx);
	else
		ddps_gather_look(ctx);
}

static void make_cautious(struct ddps_gather *g)
{
	g->wary = (uint16_t)(CAUTION_LEAST << g->caution);
	if (g->caution < CAUTION_MOST)
		g->caution++;
}

/* The program did not look meanwhile; it does something else, unless it still posts. */
static void on_late(void *user)
{
	struct ddps_ctx *ctx = user;
	const bool posts = ddps_now() < ctx->gather_at + POSTS_NS;
	struct ddps_ep *ep;

	ddps_gather_next(ctx);
	if (!posts)
		ctx->gather_kept = 0;
	while ((ep = LIST_FIRST(&ctx->gathers))) {
		if (!posts)
			make_cautious(&ep->gather);
		let_ep_go(ep);
	}
}

void ddps_gather_init(struct ddps_ctx *ctx)
{
	ctx->gather_timer = (struct ddps_timer){ .fn = on_late, .user = ctx };
}

void ddps_gather_late(struct ddps_ctx *ctx)
{
	ddps_assert_held(&ctx->lock);
	if (!LIST_EMPTY(&ctx->gathers) && ctx->gather_late <= ddps_now())
		on_late(ctx);
}

void ddps_gather_forget(struct ddps_ep *ep)
{
	struct ddps_ctx *ctx = ep->ctx;

	ddps_assert_held(&ctx->lock);
	ep->gather.count = 0;
	ep->gather.octets = 0;
	if (!ep->gather.joined)
		return;
	LIST_REMOVE(ep, gather.of_all);
	ep->gather.joined = false;
	if (LIST_EMPTY(&ctx->gathers))
		ddps_timer_stop(ctx->env.loop, &ctx->gather_timer);
}

/* A program that looks in time, always, would have the library thread wake up for nothing each time. */
static void await_gathered(struct ddps_ctx *ctx)
{
	uint64_t now = ddps_now();
	bool kept = ctx->attr.thread && ctx->gather_kept == KEPT_MANY;

	ctx->gather_late = now + GATHER_NS;
	ddps_timer_start(ctx->env.loop, &ctx->gather_timer, now + (kept ? THREAD_NS : GATHER_NS));
}

static void join_gathering(struct ddps_ep *ep)
{
	struct ddps_ctx *ctx = ep->ctx;

	if (ep->gather.joined)
		return;
	if (LIST_EMPTY(&ctx->gathers) && ctx->attr.gather)
		await_gathered(ctx);
	LIST_INSERT_HEAD(&ctx->gathers, ep, gather.of_all);
	ep->gather.joined = true;
}

/* Whether a single request, which may be the last for a while, is to wait for others. */
static bool waits_for_others(struct ddps_ep *ep)
{
	const uint32_t looks = ddps_gather_looks(ep->ctx);

	if (ep->gather.turn != looks) { /* nothing was posted since the program looked */
		ep->gather.turn = looks;
		if (!ep->ctx->gather_left)
			return false;
	}
	if (ep->gather.wary) {
		ep->gather.wary--;
		return false;
	}
	/* Who has armed a queue is going to sleep. */
	return ep->send_cq->armed == ARMED_NO && ep->recv_cq->armed == ARMED_NO;
}

/* Those of @ep that wait are too many with @wr. */
static bool is_burst_full(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	for (uint32_t i = 0; i < wr->nsge && ep->gather.octets <= GATHER_OCTETS; i++)
		ep->gather.octets +=
			wr->sge[i].len < GATHER_OCTETS ? wr->sge[i].len : GATHER_OCTETS;
	return ++ep->gather.count >= GATHER_MOST || ep->gather.octets >= GATHER_OCTETS;
}

bool ddps_gather(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	bool more = wr->flags & DDPS_WR_MORE;

	if (ep->ctx->attr.gather ? (more || waits_for_others(ep)) && !is_burst_full(ep, wr)
				 : more) {
		join_gathering(ep);
		if (++ep->ctx->gather_posts % SOME_POSTS == 0)
			ep->ctx->gather_at = ddps_now();
		return true;
	}
	ddps_gather_forget(ep);
	return false;
}
