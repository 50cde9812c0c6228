/* SPDX-License-Identifier: BSD-2-Clause */
/* Ending in order what belongs to a context: ddps_ctx_settle, and what ddps_ctx_free waits for. */
#include "session/session.h"

#define STEP_MS	   10
#define FINISH_MS  5000 /* ddps_ctx_free: for sessions that were ending in order already */
#define WIND_UP_MS 1000 /* ddps_ctx_free: for what has to reach peers otherwise */

/* A peer's own end is waited for, once it has everything. */
#define PATIENCE_MS 200
/* Where this is the end of both directions, each peer says its last words as soon as it looks.  What is lost of them comes
 * again after a second at most, or if that is lost, too, after .4 and .8 s. */
#define PATIENCE_BOTH_MS 2000

static bool is_ending(const struct ddps_ep *ep)
{
	return ep->state == DDPS_EP_DRAINING || ep->state == DDPS_EP_CLOSING;
}

/* Work is under way, or has not arrived. */
static bool is_leaving(const struct ddps_ep *ep)
{
	return ep->state == DDPS_EP_DRAINING || ep->shut.prev ||
	       (ep->llp && ep->llp->ops->leaving(ep->llp));
}

/* The peer of @ep, which has everything, may still end its side.  Over TCP it could go on for ever. */
static bool is_awaited(struct ddps_ep *ep)
{
	const bool both = ep->llp && !ep->llp->half_close;
	const uint64_t taken = ddps_rdmap_taken(ep->rdmap);

	if (!ep->patience || (both && taken != ep->heard_seen)) {
		ep->heard_seen = taken;
		ep->patience = ddps_deadline(both ? PATIENCE_BOTH_MS : PATIENCE_MS);
	}
	return ddps_now() < ep->patience;
}

enum stage { ARRIVED, PATIENT, LEAVING };

/* How far those sessions are that end in order: the worst of them. */
static enum stage stage_of_all(struct ddps_ctx *ctx)
{
	enum stage worst = ARRIVED;

	for (struct ddps_ep *ep = LIST_FIRST(&ctx->eps); ep; ep = LIST_NEXT(ep, link)) {
		if (!is_ending(ep))
			continue;
		if (is_leaving(ep)) {
			worst = LEAVING;
			continue;
		}
		if (is_awaited(ep) && worst == ARRIVED)
			worst = PATIENT;
	}
	return worst;
}

/* Leaves the context, and sleeps.  Not long: what TCP has acknowledged makes nothing readable, and another
 * thread may take the last of it. */
static void leave_and_nap(struct ddps_ctx *ctx, uint64_t deadline)
{
	const uint64_t step = ddps_deadline(STEP_MS);
	int fd = ddps_loop_fd(ctx->env.loop);

	ddps_ctx_leave(ctx);
	ddps_wait_fd(fd, step < deadline ? step : deadline);
}

/* @late: without patience. */
static bool is_busy(struct ddps_ctx *ctx, bool late)
{
	enum stage stage = stage_of_all(ctx);
	enum ddps_left left;

	if (stage == PATIENT && late)
		stage = ARRIVED;
	left = ddps_providers_wind_up(&ctx->env, stage == ARRIVED);
	return stage != ARRIVED || left == DDPS_LEFT_WORK || (left == DDPS_LEFT_END && !late);
}

/* Work of an endpoint that is there, or was when ctx->cut_short was @before, may not have arrived. */
static bool lacks_work(const struct ddps_ctx *ctx, uint64_t before)
{
	bool lacks = ctx->cut_short != before;

	for (const struct ddps_ep *ep = LIST_FIRST(&ctx->eps); ep && !lacks;
	     ep = LIST_NEXT(ep, link))
		lacks = ep->cut_short;
	return lacks;
}

int ddps_ctx_settle(struct ddps_ctx *ctx, int timeout_ms)
{
	uint64_t deadline = ddps_deadline(timeout_ms < 0 ? 0 : timeout_ms), cut_short;
	int err = ddps_ctx_enter_until(ctx, deadline);

	if (err)
		return err;
	cut_short = ctx->cut_short;
	for (struct ddps_ep *ep = LIST_FIRST(&ctx->eps), *next; ep; ep = next) {
		next = LIST_NEXT(ep, link);
		ddps_ep_disconnect(ep);
	}
	for (;;) {
		bool late = ddps_now() >= deadline, busy = is_busy(ctx, late);

		if (!busy || late) {
			err = lacks_work(ctx, cut_short) ? DDPS_E_RESET : 0;
			ddps_ctx_leave(ctx);
			return busy ? DDPS_E_TIMEDOUT : err;
		}
		leave_and_nap(ctx, deadline);
		err = ddps_ctx_enter_until(ctx, deadline);
		if (err)
			return err;
		ddps_ctx_turn(ctx);
	}
}

static void take_turn(struct ddps_ctx *ctx, uint64_t deadline)
{
	leave_and_nap(ctx, deadline);
	ddps_lock(&ctx->lock);
	ddps_ctx_turn(ctx);
}

/* A rejection is worth nothing if it does not arrive, and an association that is shared by
 * sessions ends in order, not by an abort: give both a moment. */
static void wind_up(struct ddps_ctx *ctx, uint64_t deadline)
{
	for (;;) {
		bool busy = ddps_providers_wind_up(&ctx->env, true) != DDPS_LEFT_NOTHING;

		if ((!busy && !ddps_requests_winding_up(ctx)) || ddps_now() >= deadline)
			return;
		take_turn(ctx, deadline);
	}
}

void ddps_sessions_finish(struct ddps_ctx *ctx)
{
	uint64_t deadline = ddps_deadline(WIND_UP_MS);

	ddps_assert_held(&ctx->lock);
	ctx->ending = true;
	for (struct ddps_ep *ep = LIST_FIRST(&ctx->eps), *next; ep; ep = next) {
		next = LIST_NEXT(ep, link);
		if (!is_ending(ep))
			ddps_ep_destroy(ep);
	}
	while (!LIST_EMPTY(&ctx->listeners))
		ddps_listener_destroy(LIST_FIRST(&ctx->listeners));
	if (!LIST_EMPTY(&ctx->eps))
		deadline = ddps_deadline(FINISH_MS);
	while (stage_of_all(ctx) != ARRIVED && ddps_now() < deadline)
		take_turn(ctx, deadline);
	while (!LIST_EMPTY(&ctx->eps))
		ddps_ep_destroy(LIST_FIRST(&ctx->eps));
	wind_up(ctx, deadline);
}
