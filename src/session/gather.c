/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are posted one by one leave together (struct ddps_ctx_attr: gather).
 *
 * The first one since the program looked at a queue leaves immediately: it may be alone.  Those
 * behind it wait until the program looks, there are enough of them, or a while is over, in which the
 * program does something else: then it is the timer, or the library thread at the end of its nap,
 * that lets them go.  A session whose requests have waited for that once is cautious: its next ones
 * leave one by one, and more of them each time.
 *
 * One with DDPS_WR_MORE waits for the rest of its burst, in any context, and here for no other.  Where
 * nothing is gathered there is no limit for it, and a library thread lets it go after its next nap.
 */
#include "session/cq_in.h"

#define GATHER_MOST   64u	   /* as many as leave with one call */
#define GATHER_OCTETS (32u * 1024) /* more are worth a call of their own */
#define GATHER_NS     100000u
#define THREAD_NS     1000000u /* the library thread need not wake up before, */
#define KEPT_MANY     64u      /* where so many looks in a row were in time */
#define CAUTION_LEAST 16u
#define CAUTION_MOST  8u /* doublings */

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

/* The program did not look meanwhile. */
static void on_late(void *user)
{
	struct ddps_ctx *ctx = user;
	struct ddps_ep *ep;

	ddps_gather_next(ctx);
	ctx->gather_kept = 0;
	while ((ep = LIST_FIRST(&ctx->gathers))) {
		ep->gather.wary = (uint16_t)(CAUTION_LEAST << ep->gather.caution);
		if (ep->gather.caution < CAUTION_MOST)
			ep->gather.caution++;
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
		return true;
	}
	ddps_gather_forget(ep);
	return false;
}
