/* SPDX-License-Identifier: BSD-2-Clause */
/* How an endpoint ends, and work that is posted then or later (attr.flush_late). */
#include "common/who.h"
#include "session/probe.h"
#include "session/session.h"
#include <stdlib.h>
#include <string.h>

/* ---- in order ---- */

static void shut_task(void *user)
{
	struct ddps_ep *ep = user;

	ep->llp->ops->shutdown(ep->llp); /* who ends it cancels this */
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

void ddps_ep_end_init(struct ddps_ep *ep)
{
	ep->shut = (struct ddps_task){ .fn = shut_task, .user = ep };
	ep->close_timer = (struct ddps_timer){ .fn = close_timer, .user = ep };
}

void ddps_ep_shutdown_soon(struct ddps_ep *ep)
{
	if (ep->state == DDPS_EP_CLOSING || ep->state == DDPS_EP_DEAD)
		return;
	ddps_ep_set_state(ep, DDPS_EP_CLOSING);
	ddps_timer_stop(ep->ctx->env.loop, &ep->close_timer);
	ddps_task_post(ep->ctx->env.loop, &ep->shut);
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

/* ---- in whatever way ---- */

void ddps_ep_cut(struct ddps_ep *ep, bool lacks)
{
	if (!lacks || ep->cut_short || !ddps_rdmap_posted(ep->rdmap))
		return;
	ep->cut_short = true;
	ep->ctx->cut_short++;
}

/* ---- what is posted too late ---- */

static struct ddps_cq *get_op_cq(const struct ddps_ep *ep, enum ddps_op op)
{
	return op == DDPS_OP_RECV ? ep->recv_cq : ep->send_cq;
}

static void complete_late(struct ddps_ep *ep, enum ddps_op op, uint64_t wr_id)
{
	struct ddps_wc wc = { .wr_id = wr_id, .op = op, .status = DDPS_WC_FLUSHED };

	ddps_ep_rdmap_up.complete(ep, op == DDPS_OP_RECV, &wc);
}

int ddps_late_post(struct ddps_ep *ep, enum ddps_op op, uint64_t wr_id)
{
	struct ddps_late *l;

	ddps_assert_held(&ep->ctx->lock);
	if (!ep->flush_late || ep->state < DDPS_EP_DRAINING)
		return DDPS_E_STATE;
	if ((unsigned)op > DDPS_OP_SEND_IMM || (op == DDPS_OP_RECV && ep->shared_rq))
		return DDPS_E_INVAL;
	if (ddps_cq_room(get_op_cq(ep, op)) <= ep->late_count)
		return DDPS_E_LIMIT;
	if (ep->state == DDPS_EP_DEAD) {
		complete_late(ep, op, wr_id);
		return 0;
	}
	l = malloc(sizeof *l);
	if (!l)
		return DDPS_E_NOMEM;
	*l = (struct ddps_late){ .wr_id = wr_id, .op = op };
	STAILQ_INSERT_TAIL(&ep->late, l, of_ep);
	ep->late_count++;
	return 0;
}

static struct ddps_late *take_late(struct ddps_ep *ep)
{
	struct ddps_late *l = STAILQ_FIRST(&ep->late);

	if (!l)
		return NULL;
	STAILQ_REMOVE_HEAD(&ep->late, of_ep);
	ep->late_count--;
	return l;
}

static void flush_late(struct ddps_ep *ep)
{
	struct ddps_late *l;

	ddps_assert_held(&ep->ctx->lock);
	while ((l = take_late(ep))) {
		complete_late(ep, l->op, l->wr_id);
		free(l);
	}
}

void ddps_late_free(struct ddps_ep *ep)
{
	struct ddps_late *l;

	while ((l = take_late(ep)))
		free(l);
}

/* ---- the end ---- */

/* What may be asked for once the LLP has gone. */
static void keep_facts(struct ddps_ep *ep)
{
	const struct ddps_llp_ops *ops = ep->llp->ops;
	const struct ddps_who *who = ops->peer_id ? ops->peer_id(ep->llp) : NULL;

	if (!ep->established)
		return;
	if (ep->info.transport == DDPS_TRANSPORT_TCP)
		ddps_ep_learn_info(ep); /* it may have moved */
	ep->was = ddps_who_copy(who);
	ep->id_lost = who && !ep->was;
}

void ddps_ep_release(struct ddps_ep *ep)
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
		keep_facts(ep);
		ep->llp->ops->free(ep->llp);
		ep->llp = NULL;
	}
}

void ddps_ep_end(struct ddps_ep *ep, enum ddps_event_type final, const struct ddps_error *e)
{
	struct ddps_error why;

	if (ep->state == DDPS_EP_DEAD)
		return;
	why = ep->error.code ? ddps_error_kept(&ep->error) : *e;
	if (!why.peer[0])
		memcpy(why.peer, ddps_ep_peer(ep).text, sizeof why.peer);
	ddps_error_keep(&ep->error, &why);
	/* What has arrived can still be refused. */
	ddps_ep_cut(ep, why.code && (!ep->patience || why.by_peer || why.code == DDPS_E_RESET ||
				     ddps_rdmap_has_work(ep->rdmap)));
	ddps_ep_release(ep);
	ddps_ep_set_state(ep, DDPS_EP_DEAD);
	DDPS_PROBE(ended, 3, ep->serial, ep->established, ep->error.code);
	if (ep->host.gone)
		ddps_rdmap_unanswered(ep->rdmap);
	ddps_rdmap_flush(ep->rdmap);
	flush_late(ep);
	ep->source.pending &= ~(1u << DDPS_EV_PEER_CLOSING); /* it would come last */
	ddps_event_push(ep->ctx, &ep->source, final);
}

void ddps_ep_lost(struct ddps_ep *ep, const struct ddps_error *e)
{
	ddps_ep_end(ep, ep->established ? DDPS_EV_CLOSED : DDPS_EV_FAILED, e);
}
