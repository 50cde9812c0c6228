/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: making, posting, disconnecting, ending. */
#include "session/probe.h"
#include "common/prefetch.h"
#include "common/term_codes.h"
#include "session/session.h"
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 65535u
#define SGE_MAX	  16u
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
	if (ep->ctx->env.log.fn) {
		const struct ddps_peer_text peer = ddps_ep_peer(ep);

		ddps_log(&ep->ctx->env.log, DDPS_LOG_DEBUG, "session", "%s: %s -> %s",
			 peer.text[0] ? peer.text : "-", ddps_ep_state_name(ep->state),
			 ddps_ep_state_name(s));
	}
	ep->state = s;
}

/* ---- events ---- */

static void build_ep_event(struct ddps_source *s, struct ddps_event *ev)
{
	struct ddps_ep *ep = (struct ddps_ep *)s;

	ev->ep = ep;
	ev->user = ep->user;
	ev->info = ddps_info_kept(&ep->info);
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

static void overflow_task(void *user)
{
	struct ddps_ep *ep = user;

	ddps_rdmap_terminate(ep->rdmap, DDPS_E_LIMIT, ddps_term_triple(DDPS_TERM_RDMAP_LOCAL),
			     "a completion queue of this session overflowed");
}

static void nudge_timer(void *user)
{
	struct ddps_ep *ep = user;

	if (ddps_rdmap_heard(ep->rdmap) ||
	    (ep->state != DDPS_EP_OPEN && ep->state != DDPS_EP_DRAINING))
		return;
	ddps_log(&ep->ctx->env.log, DDPS_LOG_INFO, "session",
		 "%s: silent for %u ms, sending a zero-length RDMA Write", ddps_ep_peer(ep).text,
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

/* ---- making and freeing ---- */

static void link_ep(struct ddps_ep *ep)
{
	struct ddps_ctx *ctx = ep->ctx;

	LIST_INSERT_HEAD(&ctx->eps, ep, link);
	ddps_loop_many(ctx->env.loop, ++ctx->neps > DDPS_IN_CACHE);
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
	err = ddps_ctx_enter(ctx); /* there are no descriptors in it */
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
	STAILQ_INIT(&ep->late);
	ep->kick = (struct ddps_task){ .fn = kick_task, .user = ep };
	ep->overflow = (struct ddps_task){ .fn = overflow_task, .user = ep };
	ep->nudge_timer = (struct ddps_timer){ .fn = nudge_timer, .user = ep };
	ep->stall_timer = (struct ddps_timer){ .fn = stall_timer, .user = ep };
	ddps_host_init(ep);
	ddps_ep_end_init(ep);
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
		.flush = attr->rfc7306 && attr->flush,
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

void ddps_ep_destroy(struct ddps_ep *ep)
{
	struct ddps_ctx *ctx = ep->ctx;

	ddps_assert_held(&ctx->lock);
	ddps_ep_release(ep);
	ddps_stats_bury(ep);
	ddps_event_drop(ctx, &ep->source);
	ddps_rdmap_free(ep->rdmap);
	ddps_late_free(ep);
	ddps_cq_forget(ep->send_cq, ep);
	ddps_cq_forget(ep->recv_cq, ep);
	ddps_cq_put(ep->send_cq);
	ddps_cq_put(ep->recv_cq);
	ep->pd->users--;
	LIST_REMOVE(ep, link);
	ddps_loop_many(ctx->env.loop, --ctx->neps > DDPS_IN_CACHE);
	ddps_error_drop(&ep->error);
	free(ep->info.names);
	free(ep->pd_in);
	free(ep->was);
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

/* ---- beginning ---- */

int ddps_ep_start(struct ddps_ep *ep, const struct ddps_nego_result *res,
		  const struct ddps_rdmap_start *role)
{
	struct ddps_rdmap_start s = *role;

	s.ird = res->ird;
	s.ord = res->ord;
	s.rtr_needs_ord = res->rtr_needs_ord;
	s.provider_read_slot = res->provider_read_slot;
	/* MPA has Terminate codes of its own, SCTP has none. */
	s.llp_mpa_codes = ep->llp->has_codes;
	ep->info.ird = res->ird;
	ep->info.ord = res->ord;
	return ddps_rdmap_start(ep->rdmap, &s);
}

int ddps_ep_keep_pd(struct ddps_ep *ep, const uint8_t *pd, size_t len)
{
	if (!len)
		return 0;
	ep->pd_in = malloc(len);
	if (!ep->pd_in)
		return DDPS_E_NOMEM;
	memcpy(ep->pd_in, pd, len);
	ep->pd_in_len = len;
	return 0;
}

void ddps_ep_established(struct ddps_ep *ep)
{
	ep->established = true;
	ddps_ep_set_state(ep, DDPS_EP_OPEN);
	DDPS_PROBE(established, 4, ep->serial, ddps_ep_peer(ep).text, ep->info.transport,
		   ep->info.initiator);
	ddps_event_push(ep->ctx, &ep->source, DDPS_EV_ESTABLISHED);
}

uint64_t ddps_ep_number(const struct ddps_ep *ep)
{
	return ep->serial;
}

/* ---- posting ---- */

static bool leaves_now(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	if (ep->ctx->attr.gather || wr->flags & DDPS_WR_MORE || ep->gather.joined)
		return !ddps_gather(ep, wr);
	return true;
}

int ddps_ep_send(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	int err;

	ddps_assert_held(&ep->ctx->lock);
	if (ep->state != DDPS_EP_OPEN && ep->state != DDPS_EP_AWAIT_RTR)
		return wr->op == DDPS_OP_RECV || (wr->flags & ~WR_FLAGS)
			       ? DDPS_E_INVAL
			       : ddps_late_post(ep, wr->op, wr->wr_id);
	err = ddps_rdmap_post_send(ep->rdmap, wr);
	if (err ? ddps_rdmap_tx_ready(ep->rdmap) : leaves_now(ep, wr)) {
		ddps_ep_kick(ep);
		ddps_gather_posted(ep->ctx);
	}
	if (ep->host.ms)
		ddps_host_posted(ep);
	return err;
}

int ddps_post_send(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	int err;

	ddps_ep_prefetch(ep);
	err = ddps_ctx_enter_bare(ep->ctx);
	if (err < 0)
		return err;
	err = ddps_ep_send(ep, wr);
	ddps_ctx_leave(ep->ctx);
	return err;
}

int ddps_ep_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge)
{
	ddps_assert_held(&ep->ctx->lock);
	if (ep->state == DDPS_EP_CLOSING || ep->state == DDPS_EP_DEAD)
		return ddps_late_post(ep, DDPS_OP_RECV, wr_id);
	return ddps_rdmap_post_recv(ep->rdmap, wr_id, sge, nsge);
}

int ddps_post_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge)
{
	int err = ddps_ctx_enter_bare(ep->ctx);

	if (err < 0)
		return err;
	err = ddps_ep_recv(ep, wr_id, sge, nsge);
	ddps_ctx_leave(ep->ctx);
	return err;
}
