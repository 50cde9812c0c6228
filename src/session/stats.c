/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: the public face of what RDMAP, the LLPs and the session layer count. */
#include "session/session.h"
#include "common/sized.h"
#include <string.h>

/* All but struct_size are counters of this type, so that they can be added up as an array. */
#define FIRST	  offsetof(struct ddps_ep_stats, sent)
#define NCOUNTERS ((sizeof(struct ddps_ep_stats) - FIRST) / sizeof(uint64_t))

#define EP_STATS  DDPS_SIZED(ddps_ep_stats, sizeof(struct ddps_ep_stats))
#define CTX_STATS DDPS_SIZED(ddps_ctx_stats, sizeof(struct ddps_ctx_stats))

#define SECURED_STATS DDPS_SIZED(ddps_secured_stats, sizeof(struct ddps_secured_stats))

#define ASSOC_STATS DDPS_SIZED(ddps_assoc_stats, sizeof(struct ddps_assoc_stats))
#define PATH_STATS  DDPS_SIZED(ddps_path_stats, sizeof(struct ddps_path_stats))

DDPS_SIZED_NO_TAIL(ddps_ep_stats, held_octets);
DDPS_SIZED_NO_TAIL(ddps_ctx_stats, total);
DDPS_SIZED_NO_TAIL(ddps_secured_stats, untried);
DDPS_SIZED_NO_TAIL(ddps_assoc_stats, state);
DDPS_SIZED_NO_TAIL(ddps_path_stats, in_use);

static void add_stats(struct ddps_ep_stats *to, const struct ddps_ep_stats *from)
{
	uint64_t a[NCOUNTERS], b[NCOUNTERS];

	memcpy(a, (uint8_t *)to + FIRST, sizeof a);
	memcpy(b, (const uint8_t *)from + FIRST, sizeof b);
	for (size_t i = 0; i < NCOUNTERS; i++)
		a[i] += b[i];
	memcpy((uint8_t *)to + FIRST, a, sizeof a);
}

static struct ddps_ep_stats ep_collect(struct ddps_ep *ep)
{
	struct ddps_ep_stats st = ddps_rdmap_stats(ep->rdmap);

	st.held_octets = ep->llp ? ep->llp->ops->held(ep->llp) : 0;
	return st;
}

void ddps_stats_bury(struct ddps_ep *ep)
{
	struct ddps_ep_stats st = ep_collect(ep);
	struct ddps_walk *walk = &ep->ctx->walk;

	ddps_assert_held(&ep->ctx->lock);
	/* What it holds it gives back. */
	st.sends_posted = st.recvs_posted = st.recvs_out = st.reads_out = st.reads_in = 0;
	st.held_octets = 0;
	add_stats(&ep->ctx->stats.total, &st);
	/* Endpoints are walked over from the youngest on: one that the walk would have come to is
	 * not missing in its sum. */
	if (walk->next && ep->serial <= walk->next->serial)
		add_stats(&walk->st.total, &st);
	if (walk->next == ep)
		walk->next = LIST_NEXT(ep, link);
}

int ddps_ep_stats(struct ddps_ep *ep, struct ddps_ep_stats *st)
{
	struct ddps_ep_stats all;
	int err;

	if (!st || ddps_sized_check(st, &EP_STATS) < 0)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ep->ctx);
	if (err < 0)
		return err;
	all = ep_collect(ep);
	ddps_ctx_leave(ep->ctx);
	ddps_sized_give(st, &all, &EP_STATS);
	return 0;
}

/* All but what is asked of each endpoint. */
static void own_collect(const struct ddps_ctx *ctx, struct ddps_ctx_stats *st)
{
	*st = ctx->stats;
	st->total.struct_size = sizeof st->total;
	st->half_open_full = ctx->env.half_open_full;
	st->idle_ended = ctx->env.idle_ended;
	st->half_open_given_up = ctx->env.half_open_given_up;
	st->refused_identity = ctx->env.refused[DDPS_REFUSED_IDENTITY];
	st->refused_not_listed = ctx->env.refused[DDPS_REFUSED_NOT_LISTED];
	st->refused_protocol = ctx->env.refused[DDPS_REFUSED_PROTOCOL];
	st->refused_gone = ctx->env.refused[DDPS_REFUSED_GONE];
	st->reloads_failed = ctx->env.reloads_failed;
	st->secured_held = ctx->env.secured_held;
	st->regions = ddps_stag_count(ctx->stags);
	st->requests = ddps_requests_count(ctx);
	for (const struct ddps_ctx_srq *s = LIST_FIRST(&ctx->srqs); s; s = LIST_NEXT(s, link))
		st->srq_posted += s->srq.count;
}

static void ctx_collect(struct ddps_ctx *ctx, struct ddps_ctx_stats *st)
{
	own_collect(ctx, st);
	for (struct ddps_ep *ep = LIST_FIRST(&ctx->eps); ep;
	     ep = LIST_NEXT(ep, link), st->endpoints++) {
		struct ddps_ep_stats one = ep_collect(ep);

		add_stats(&st->total, &one);
	}
}

void ddps_walk_begin(struct ddps_ctx *ctx)
{
	ddps_assert_held(&ctx->lock);
	own_collect(ctx, &ctx->walk.st);
	ctx->walk.next = LIST_FIRST(&ctx->eps);
}

struct ddps_ep *ddps_walk_step(struct ddps_ctx *ctx, struct ddps_ep_stats *st)
{
	struct ddps_walk *w = &ctx->walk;
	struct ddps_ep *ep = w->next;

	ddps_assert_held(&ctx->lock);
	if (!ep)
		return NULL;
	*st = ep_collect(ep);
	add_stats(&w->st.total, st);
	w->st.endpoints++;
	w->next = LIST_NEXT(ep, link);
	return ep;
}

int ddps_ctx_stats(struct ddps_ctx *ctx, struct ddps_ctx_stats *st)
{
	const size_t total_at = offsetof(struct ddps_ctx_stats, total);
	struct ddps_ctx_stats all;
	int err;

	if (!st || ddps_sized_check(st, &CTX_STATS) < 0)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ctx);
	if (err < 0)
		return err;
	ctx_collect(ctx, &all);
	if (st->struct_size < sizeof all)
		all.total.struct_size = st->struct_size - total_at;
	ddps_sized_give(st, &all, &CTX_STATS);
	ddps_ctx_leave(ctx);
	return 0;
}

int ddps_ctx_secured_stats(struct ddps_ctx *ctx, struct ddps_secured_stats *st)
{
	int err;

	if (!st || ddps_sized_check(st, &SECURED_STATS) < 0)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ctx);
	if (err < 0)
		return err;
	ddps_sized_give(st, &ctx->env.secured, &SECURED_STATS);
	ddps_ctx_leave(ctx);
	return 0;
}

/* ---- associations ---- */

static int has_assoc(const struct ddps_ep *ep)
{
	if (!ep->llp)
		return DDPS_E_STATE;
	return ep->llp->ops->assoc_stats ? 0 : DDPS_E_UNSUPPORTED;
}

int ddps_ep_assoc_stats(struct ddps_ep *ep, struct ddps_assoc_stats *st)
{
	struct ddps_assoc_stats all = { .struct_size = sizeof all };
	int err;

	if (!st || ddps_sized_check(st, &ASSOC_STATS) < 0)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ep->ctx);
	if (err < 0)
		return err;
	err = has_assoc(ep);
	if (!err)
		err = ep->llp->ops->assoc_stats(ep->llp, &all);
	if (!err)
		ddps_sized_give(st, &all, &ASSOC_STATS);
	ddps_ctx_leave(ep->ctx);
	return err;
}

int ddps_ep_path_stats(struct ddps_ep *ep, uint32_t path, struct ddps_path_stats *st)
{
	struct ddps_path_stats all = { .struct_size = sizeof all };
	int err;

	if (!st || ddps_sized_check(st, &PATH_STATS) < 0)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ep->ctx);
	if (err < 0)
		return err;
	err = has_assoc(ep);
	if (!err)
		err = ep->llp->ops->path_stats(ep->llp, path, &all);
	if (!err)
		ddps_sized_give(st, &all, &PATH_STATS);
	ddps_ctx_leave(ep->ctx);
	return err;
}

int ddps_ep_set_primary(struct ddps_ep *ep, uint32_t path)
{
	int err = ddps_ctx_enter(ep->ctx);

	if (err < 0)
		return err;
	err = has_assoc(ep);
	if (!err)
		err = ep->llp->ops->set_primary(ep->llp, path);
	ddps_ctx_leave(ep->ctx);
	return err;
}

const char *ddps_path_state_name(enum ddps_path_state state)
{
	switch (state) {
	case DDPS_PATH_UNCONFIRMED:
		return "unconfirmed";
	case DDPS_PATH_ACTIVE:
		return "active";
	case DDPS_PATH_DOUBTFUL:
		return "doubtful";
	case DDPS_PATH_INACTIVE:
		return "inactive";
	}
	return "unknown";
}
