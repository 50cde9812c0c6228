/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: making, posting, disconnecting, ending. */
#include "session/probe.h"
#include "common/term_codes.h"
#include "session/session.h"
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  65535u
#define SGE_MAX	   16u
#define CACHE_LINE 64
#define WR_FLAGS                                                                                   \
	(DDPS_WR_SILENT | DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE | DDPS_WR_FENCE | DDPS_WR_MORE |  \
	 DDPS_WR_PLACED)

const char *ddps_ep_state_name(enum ddps_ep_state s)
{
	static const char *const names[] = {
#define DDPS_X(name) #name,
		DDPS_EP_STATES(DDPS_X)
#undef DDPS_X
	};

	return names[s];
}

void ddps_ep_set_state(struct ddps_ep *ep, enum ddps_ep_state s)
{
	ddps_log(&ep->ctx->env.log, DDPS_LOG_DEBUG, "session", "%s: %s -> %s",
		 ep->info.peer[0] ? ep->info.peer : "-", ddps_ep_state_name(ep->state),
		 ddps_ep_state_name(s));
	ep->state = s;
}

/* ---- events ---- */

static void build_ep_event(struct ddps_source *s, struct ddps_event *ev)
{
	struct ddps_ep *ep = (struct ddps_ep *)s;

	ev->ep = ep;
	ev->user = ep->user;
	ev->info = ep->info;
	if (ev->type == DDPS_EV_ESTABLISHED || ev->type == DDPS_EV_REJECTED) {
		if (ep->pd_in_len)
			memcpy(ev->private_data, ep->pd_in, ep->pd_in_len);
		ev->private_data_len = ep->pd_in_len;
		free(ep->pd_in);
		ep->pd_in = NULL;
		ep->pd_in_len = 0;
	}
	if (ev->type != DDPS_EV_ESTABLISHED && ev->type != DDPS_EV_PEER_CLOSED)
		ev->error = ddps_error_kept(&ep->error);
}

/* ---- tasks and timers ---- */

static void kick_task(void *user)
{
	struct ddps_ep *ep = user;

	if (ep->llp)
		ep->llp->ops->kick(ep->llp);
}

static void shut_task(void *user)
{
	struct ddps_ep *ep = user;

	ep->llp->ops->shutdown(ep->llp); /* who ends it cancels this */
}

static void overflow_task(void *user)
{
	struct ddps_ep *ep = user;

	ddps_rdmap_terminate(ep->rdmap, DDPS_E_LIMIT, ddps_term_triple(DDPS_TERM_RDMAP_LOCAL),
			     "a completion queue of this session overflowed");
}

static void close_timer(void *user)
{
	struct ddps_ep *ep = user;
	uint64_t progress = ddps_rdmap_own_progress(ep->rdmap);
	struct ddps_error e;

	/* Not by what the peer sends or asks for: it could go on for ever. */
	if (progress != ep->moved_seen) {
		ep->moved_seen = progress;
		ddps_timer_after(ep->ctx->env.loop, &ep->close_timer, ep->close_ms);
		return;
	}
	if (!ep->error.code) { /* the first one is the one that is reported */
		e = ddps_error_make(DDPS_E_TIMEDOUT, 0,
				    "disconnect: posted work made no progress for %u ms",
				    ep->close_ms);
		ddps_error_keep(&ep->error, &e);
	}
	ep->llp->ops->abort(ep->llp);
}

static void nudge_timer(void *user)
{
	struct ddps_ep *ep = user;

	if (ddps_rdmap_heard(ep->rdmap) ||
	    (ep->state != DDPS_EP_OPEN && ep->state != DDPS_EP_DRAINING))
		return;
	ddps_log(&ep->ctx->env.log, DDPS_LOG_INFO, "session",
		 "%s: silent for %u ms, sending a zero-length RDMA Write", ep->info.peer,
		 ep->nudge_ms);
	ddps_rdmap_nudge(ep->rdmap);
}

/* The peer has closed, and a Send of it still waits for a receive. */
static void stall_timer(void *user)
{
	struct ddps_ep *ep = user;

	if (ddps_rdmap_taken(ep->rdmap) != ep->taken_seen)
		ddps_ep_stall_timer(ep);
	else if (ep->state == DDPS_EP_OPEN)
		ddps_event_push(ep->ctx, &ep->source, DDPS_EV_PEER_CLOSING);
}

void ddps_ep_stall_timer(struct ddps_ep *ep)
{
	ep->taken_seen = ddps_rdmap_taken(ep->rdmap);
	ddps_timer_after(ep->ctx->env.loop, &ep->stall_timer, DDPS_STALL_CLOSED_MS);
}

void ddps_ep_shutdown_soon(struct ddps_ep *ep)
{
	if (ep->state == DDPS_EP_CLOSING || ep->state == DDPS_EP_DEAD)
		return;
	ddps_ep_set_state(ep, DDPS_EP_CLOSING);
	ddps_timer_stop(ep->ctx->env.loop, &ep->close_timer);
	ddps_task_post(ep->ctx->env.loop, &ep->shut);
}

/* ---- making and freeing ---- */

static void link_ep(struct ddps_ep *ep)
{
	struct ddps_ctx *ctx = ep->ctx;

	ep->next = ctx->eps;
	ep->prev = &ctx->eps;
	if (ep->next)
		ep->next->prev = &ep->next;
	ctx->eps = ep;
	ep->pd->users++;
	ddps_cq_get(ep->send_cq);
	ddps_cq_get(ep->recv_cq);
}

static bool rq_ok(const struct ddps_ep_attr *attr)
{
	if (attr->srq)
		return attr->srq->pd == attr->pd;
	return attr->rq_depth && attr->rq_depth <= DEPTH_MAX;
}

static int ep_attr_checked(struct ddps_ep_attr *attr, const struct ddps_ep_attr *given,
			   const struct ddps_ctx *ctx)
{
	int err = given ? ddps_ep_attr_take(attr, given) : DDPS_E_INVAL;

	if (err)
		return err;
	if (!attr->pd || !attr->send_cq || !attr->recv_cq || attr->pd->ctx != ctx ||
	    ddps_cq_ctx(attr->send_cq) != ctx || ddps_cq_ctx(attr->recv_cq) != ctx ||
	    !attr->sq_depth || attr->sq_depth > DEPTH_MAX || !rq_ok(attr) || !attr->max_sge ||
	    attr->max_sge > SGE_MAX || (unsigned)attr->no_recv > DDPS_NO_RECV_STALL ||
	    memcmp(attr->reserved, (uint8_t[sizeof attr->reserved]){ 0 }, sizeof attr->reserved))
		return DDPS_E_INVAL;
	return 0;
}

/* A peer that takes half of what all share is no longer one among others. */
static uint32_t get_srq_share(const struct ddps_ep_attr *attr)
{
	if (!attr->srq || attr->srq_share)
		return attr->srq_share;
	return (attr->srq->depth + 1) / 2;
}

int ddps_ep_new(struct ddps_ctx *ctx, const struct ddps_ep_attr *given, struct ddps_ep **out)
{
	struct ddps_ep_attr taken, *attr = &taken;
	struct ddps_rdmap_cfg cfg;
	struct ddps_ep *ep;
	int err = out ? ep_attr_checked(attr, given, ctx) : DDPS_E_INVAL;

	if (err)
		return err;
	err = ddps_ctx_enter_seldom(ctx);
	if (err < 0)
		return err;
	ep = calloc(1, sizeof *ep);
	if (!ep) {
		ddps_ctx_leave(ctx);
		return DDPS_E_NOMEM;
	}
	ep->ctx = ctx;
	ep->serial = ++ctx->serials;
	ep->source.build = build_ep_event;
	ep->pd = attr->pd;
	ep->send_cq = attr->send_cq;
	ep->recv_cq = attr->recv_cq;
	ep->user = attr->user;
	ep->flush_late = attr->flush_late;
	ep->shared_rq = attr->srq;
	ep->late_end = &ep->late;
	ep->kick = (struct ddps_task){ .fn = kick_task, .user = ep };
	ep->shut = (struct ddps_task){ .fn = shut_task, .user = ep };
	ep->overflow = (struct ddps_task){ .fn = overflow_task, .user = ep };
	ep->close_timer = (struct ddps_timer){ .fn = close_timer, .user = ep };
	ep->nudge_timer = (struct ddps_timer){ .fn = nudge_timer, .user = ep };
	ep->stall_timer = (struct ddps_timer){ .fn = stall_timer, .user = ep };
	ddps_host_init(ep);
	ep->stalls = attr->no_recv == DDPS_NO_RECV_STALL;
	cfg = (struct ddps_rdmap_cfg){
		.pd = attr->pd,
		.stream = ep->serial,
		.sq_depth = attr->sq_depth,
		.rq_depth = attr->rq_depth,
		.max_sge = attr->max_sge,
		.no_recv = attr->no_recv,
		.srq = attr->srq,
		.srq_share = get_srq_share(attr),
		.rfc7306 = attr->rfc7306,
		.send_imm = attr->rfc7306 && attr->send_imm,
		.up = &ddps_ep_rdmap_up,
		.user = ep,
	};
	err = ddps_rdmap_new(&ep->rdmap, &cfg);
	if (err < 0) {
		free(ep);
	} else {
		link_ep(ep);
		*out = ep;
	}
	ddps_ctx_leave(ctx);
	return err;
}

/* Let go of everything below and of everything that could call back. */
static void release_below(struct ddps_ep *ep)
{
	struct ddps_loop *loop = ep->ctx->env.loop;

	ddps_gather_forget(ep);
	ddps_task_cancel(loop, &ep->kick);
	ddps_task_cancel(loop, &ep->shut);
	ddps_task_cancel(loop, &ep->overflow);
	ddps_timer_stop(loop, &ep->close_timer);
	ddps_timer_stop(loop, &ep->nudge_timer);
	ddps_timer_stop(loop, &ep->stall_timer);
	ddps_host_stop(ep);
	ddps_dial_free(ep);
	if (ep->llp) {
		ep->llp->ops->free(ep->llp);
		ep->llp = NULL;
	}
}

void ddps_ep_destroy(struct ddps_ep *ep)
{
	struct ddps_ctx *ctx = ep->ctx;

	ddps_assert_held(&ctx->lock);
	release_below(ep);
	ddps_stats_bury(ep);
	ddps_event_drop(ctx, &ep->source);
	ddps_rdmap_free(ep->rdmap);
	ddps_late_free(ep);
	ddps_cq_forget(ep->send_cq, ep);
	ddps_cq_forget(ep->recv_cq, ep);
	ddps_cq_put(ep->send_cq);
	ddps_cq_put(ep->recv_cq);
	ep->pd->users--;
	*ep->prev = ep->next;
	if (ep->next)
		ep->next->prev = ep->prev;
	ddps_error_drop(&ep->error);
	free(ep->pd_in);
	free(ep);
}

void ddps_ep_free(struct ddps_ep *ep)
{
	struct ddps_ctx *ctx;

	if (!ep)
		return;
	ctx = ep->ctx;
	if (ddps_ctx_enter_seldom(ctx) < 0)
		return;
	ddps_ep_cut(ep,
		    ep->state != DDPS_EP_DEAD && !ep->patience); /* another thread may settle it */
	ddps_ep_destroy(ep);
	ddps_ctx_leave(ctx);
}

/* ---- the way to the end ---- */

void ddps_ep_end(struct ddps_ep *ep, enum ddps_event_type final, const struct ddps_error *e)
{
	struct ddps_error why;

	if (ep->state == DDPS_EP_DEAD)
		return;
	why = ep->error.code ? ddps_error_kept(&ep->error) : *e;
	if (!why.peer[0])
		memcpy(why.peer, ep->info.peer, sizeof why.peer);
	ddps_error_keep(&ep->error, &why);
	/* What has arrived can still be refused. */
	ddps_ep_cut(ep, why.code && (!ep->patience || why.by_peer || why.code == DDPS_E_RESET ||
				     ddps_rdmap_owes(ep->rdmap)));
	release_below(ep);
	ddps_ep_set_state(ep, DDPS_EP_DEAD);
	DDPS_PROBE(ended, 3, ep->serial, ep->established, ep->error.code);
	if (ep->host.gone)
		ddps_rdmap_unanswered(ep->rdmap);
	ddps_rdmap_flush(ep->rdmap);
	ddps_late_flush(ep);
	ep->source.pending &= ~(1u << DDPS_EV_PEER_CLOSING); /* it would come last */
	ddps_event_push(ep->ctx, &ep->source, final);
}

void ddps_ep_lost(struct ddps_ep *ep, const struct ddps_error *e)
{
	ddps_ep_end(ep, ep->established ? DDPS_EV_CLOSED : DDPS_EV_FAILED, e);
}

void ddps_ep_established(struct ddps_ep *ep)
{
	ep->established = true;
	ddps_ep_set_state(ep, DDPS_EP_OPEN);
	DDPS_PROBE(established, 4, ep->serial, ep->info.peer, ep->info.transport,
		   ep->info.initiator);
	ddps_event_push(ep->ctx, &ep->source, DDPS_EV_ESTABLISHED);
}

int ddps_ep_disconnect(struct ddps_ep *ep)
{
	ddps_assert_held(&ep->ctx->lock);
	switch (ep->state) {
	case DDPS_EP_IDLE:
		return DDPS_E_STATE;
	case DDPS_EP_OPEN:
		ddps_ep_set_state(ep, DDPS_EP_DRAINING);
		ep->moved_seen = ddps_rdmap_own_progress(ep->rdmap);
		ddps_timer_after(ep->ctx->env.loop, &ep->close_timer, ep->close_ms);
		if (ddps_rdmap_tx_ready(ep->rdmap)) /* posted with DDPS_WR_MORE */
			ep->llp->ops->kick(ep->llp);
		ddps_rdmap_drain(ep->rdmap);
		break;
	case DDPS_EP_RESOLVING:
	case DDPS_EP_CONNECTING:
	case DDPS_EP_AWAIT_RTR: {
		struct ddps_error e =
			ddps_error_make(DDPS_E_CLOSED, 0, "disconnected before it was established");

		ddps_ep_lost(ep, &e);
		break;
	}
	case DDPS_EP_DRAINING:
	case DDPS_EP_CLOSING:
	case DDPS_EP_DEAD:
		break;
	}
	return 0;
}

int ddps_disconnect(struct ddps_ep *ep)
{
	int err = ddps_ctx_enter_seldom(ep->ctx);

	if (err < 0)
		return err;
	err = ddps_ep_disconnect(ep);
	ddps_ctx_leave(ep->ctx);
	return err;
}

/* Never connected: nobody waits for an event. */
static int bury_idle(struct ddps_ep *ep)
{
	if (!ep->flush_late)
		return DDPS_E_STATE;
	ddps_ep_set_state(ep, DDPS_EP_DEAD);
	ddps_rdmap_flush(ep->rdmap);
	return 0;
}

int ddps_abort(struct ddps_ep *ep)
{
	struct ddps_error e = ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side");
	int err = ddps_ctx_enter_seldom(ep->ctx);

	if (err < 0)
		return err;
	if (ep->state == DDPS_EP_IDLE)
		err = bury_idle(ep);
	else
		ddps_ep_lost(ep, &e); /* freeing an open LLP aborts it */
	ddps_ctx_leave(ep->ctx);
	return err;
}

int ddps_ep_info(struct ddps_ep *ep, struct ddps_conn_info *info)
{
	int err = ddps_ctx_enter(ep->ctx);

	if (err < 0)
		return err;
	if (!ep->established) {
		err = DDPS_E_STATE;
	} else {
		if (ep->llp)
			ep->info.mulpdu = (uint32_t)ep->llp->ops->mulpdu(ep->llp);
		*info = ep->info;
	}
	ddps_ctx_leave(ep->ctx);
	return err;
}

/* ---- posting ---- */

/* Its first two cache lines.  There may be nothing: an address is a number here. */
static void prefetch_ep(const void *p)
{
	__builtin_prefetch(p);
	__builtin_prefetch((const void *)((uintptr_t)p + CACHE_LINE));
}

/* With thousands of sessions none of it is in cache: fetch it while the lock is taken. */
static void prefetch(const struct ddps_ep *ep)
{
	prefetch_ep(ep->rdmap);
	prefetch_ep(ep->llp);
}

static bool leaves_now(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	if (ep->ctx->attr.gather || wr->flags & DDPS_WR_MORE || ep->gather.prev)
		return !ddps_gather(ep, wr);
	return true;
}

int ddps_post_send(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	int err;

	prefetch(ep);
	err = ddps_ctx_enter(ep->ctx);
	if (err < 0)
		return err;
	if (ep->state != DDPS_EP_OPEN && ep->state != DDPS_EP_AWAIT_RTR) {
		err = wr->op == DDPS_OP_RECV || (wr->flags & ~WR_FLAGS)
			      ? DDPS_E_INVAL
			      : ddps_late_post(ep, wr->op, wr->wr_id);
	} else {
		err = ddps_rdmap_post_send(ep->rdmap, wr);
		if (err ? ddps_rdmap_tx_ready(ep->rdmap) : leaves_now(ep, wr))
			ep->llp->ops->kick(ep->llp);
		if (ep->host.ms)
			ddps_host_posted(ep);
	}
	ddps_ctx_leave(ep->ctx);
	return err;
}

int ddps_post_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge)
{
	int err = ddps_ctx_enter(ep->ctx);

	if (err < 0)
		return err;
	if (ep->state == DDPS_EP_CLOSING || ep->state == DDPS_EP_DEAD)
		err = ddps_late_post(ep, DDPS_OP_RECV, wr_id);
	else
		err = ddps_rdmap_post_recv(ep->rdmap, wr_id, sge, nsge);
	ddps_ctx_leave(ep->ctx);
	return err;
}
