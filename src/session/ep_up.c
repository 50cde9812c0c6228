/* SPDX-License-Identifier: BSD-2-Clause */
/* What the layers below tell an endpoint: the LLP's events and RDMAP's. */
#include "session/probe.h"
#include "session/cq_in.h"
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/* ---- from the LLP ---- */

static void ep_up_answer(void *user, const struct ddps_setup *s)
{
	ddps_dial_answer(user, s);
}

static void up_fault(void *user, const struct ddps_error *e)
{
	struct ddps_ep *ep = user;

	ddps_rdmap_terminate(ep->rdmap, e->code, e->triple, e->text);
}

/* Whoever ends in order ends between two messages.  Over SCTP a message may come behind the end. */
static bool is_cut_short(const struct ddps_ep *ep)
{
	return (ep->state == DDPS_EP_OPEN || ep->state == DDPS_EP_DRAINING) &&
	       ep->llp->half_close && ddps_rdmap_is_inside(ep->rdmap);
}

static void ep_up_peer_closed(void *user)
{
	struct ddps_ep *ep = user;
	struct ddps_error e;

	ep->peer_closed = true;
	if (is_cut_short(ep)) {
		e = ddps_error_make(DDPS_E_RESET, 0,
				    "the peer closed the connection inside a message, truncated");
		ddps_ep_lost(ep, &e);
		return;
	}
	switch (ep->state) {
	case DDPS_EP_AWAIT_RTR:
		e = ddps_error_make(DDPS_E_RESET, 0, "peer closed before its RTR message");
		ddps_ep_lost(ep, &e);
		break;
	case DDPS_EP_OPEN:
		ddps_timer_stop(ep->ctx->env.loop, &ep->stall_timer);
		ep->source.pending &= ~(1u << DDPS_EV_PEER_CLOSING);
		ddps_event_push(ep->ctx, &ep->source, DDPS_EV_PEER_CLOSED);
		ddps_rdmap_peer_closed(ep->rdmap);
		if (!ep->llp->half_close) {
			ddps_ep_set_state(ep, DDPS_EP_DRAINING);
			ddps_rdmap_drain(ep->rdmap);
		}
		break;
	case DDPS_EP_DRAINING:
		ddps_rdmap_peer_closed(ep->rdmap);
		break;
	default:
		break;
	}
}

static void ep_up_peer_closing(void *user)
{
	struct ddps_ep *ep = user;

	if (!ep->closing_seen)
		ddps_ep_stall_timer(ep);
	ep->closing_seen = true;
}

static void ep_up_closed(void *user, const struct ddps_error *e)
{
	struct ddps_error why = *e; /* @e may live in the LLP, which is freed on the way */
	struct ddps_ep *ep = user;

	if (ep->state == DDPS_EP_CONNECTING && ddps_dial_again(ep, &why))
		return;
	/* Both have said all: the peer need not wait for our close before it ends what is below.  A Read
	 * of its own that came behind our end is not answered, and the peer has seen that. */
	if (ep->peer_closed && why.code == DDPS_E_CLOSED && !ddps_rdmap_has_work(ep->rdmap))
		why = ddps_error_make(0, 0, "session closed");
	if (!why.code && ddps_rdmap_has_work(ep->rdmap))
		why = ddps_error_make(DDPS_E_RESET, 0,
				      "the peer has gone before all posted work had ended");
	if (ep->host.ms && why.code == DDPS_E_TIMEDOUT)
		ep->host.gone = true; /* the system has found it out */
	if (!why.code)		      /* in the same words, whatever is below */
		snprintf(why.text, sizeof why.text, "session closed");
	ddps_ep_lost(ep, &why);
}

const struct ddps_llp_up ddps_ep_up = {
	.answer = ep_up_answer,
	.fault = up_fault,
	.peer_closed = ep_up_peer_closed,
	.peer_closing = ep_up_peer_closing,
	.closed = ep_up_closed,
};

/* ---- from RDMAP ---- */

/* There was no room for it. */
static __attribute__((noinline)) void lose_completion(struct ddps_ep *ep)
{
	ddps_rdmap_overflowed(ep->rdmap);
	ddps_task_post(ep->ctx->env.loop, &ep->overflow);
}

static void ep_up_complete(void *user, bool recv_queue, struct ddps_wc *wc)
{
	struct ddps_ep *ep = user;

	DDPS_PROBE(completion, 5, ep->serial, wc->wr_id, wc->op, wc->status, wc->len);
	wc->ep = ep;
	wc->user = ep->user;
	if (ep->ctx->ending || ddps_cq_push(recv_queue ? ep->recv_cq : ep->send_cq, wc))
		return;
	lose_completion(ep);
}

static void ep_up_succeeded(void *user, bool recv_queue, enum ddps_op op, uint64_t wr_id,
			    uint32_t len)
{
	struct ddps_ep *ep = user;

	DDPS_PROBE(completion, 5, ep->serial, wr_id, op, DDPS_WC_SUCCESS, len);
	if (ep->ctx->ending ||
	    ddps_cq_push_success(recv_queue ? ep->recv_cq : ep->send_cq, ep, op, wr_id, len))
		return;
	lose_completion(ep);
}

static void ep_up_want_tx(void *user)
{
	struct ddps_ep *ep = user;

	ddps_task_post(ep->ctx->env.loop, &ep->kick);
}

static void ep_up_terminated(void *user, const struct ddps_term *t, bool by_peer)
{
	struct ddps_ep *ep = user;
	struct ddps_error e;
	char wire[32] = "";

	/* One of ours may not leave: before the first FPDU that is right nothing may be sent
	 * [5044-7.1.2-15], and a reset may come first.  So no more is said than who ended it.
	 * The peer's as it stood on the wire, too: there are peers that swap its bits. */
	if (by_peer)
		snprintf(wire, sizeof wire, " (wire %02x %02x %02x %02x)", t->wire[0], t->wire[1],
			 t->wire[2], t->wire[3]);
	e = ddps_error_triple(DDPS_E_TERMINATED, t->triple, "%s: %s%s%s%s",
			      by_peer ? "peer sent a Terminate" : "this side ended the session",
			      ddps_triple_name(&t->triple), t->text[0] ? ": " : "", t->text, wire);
	DDPS_PROBE(terminate, 5, ep->serial, by_peer, t->triple.layer, t->triple.etype,
		   t->triple.code);
	e.by_peer = by_peer;
	memcpy(e.peer, ddps_ep_peer(ep).text, sizeof e.peer);
	ddps_error_keep(&ep->error, &e);
	ddps_ep_cut(ep, true);
	if (ep->established)
		ddps_event_push(ep->ctx, &ep->source, DDPS_EV_TERMINATED);
	/* Graceful, so that the Terminate is not destroyed by a reset [5040-6.2.1-4]. */
	ddps_ep_shutdown_soon(ep);
}

static void up_first_message(void *user, unsigned rtr)
{
	struct ddps_ep *ep = user;

	ep->info.rtr = rtr;
	if (ep->state == DDPS_EP_AWAIT_RTR)
		ddps_ep_established(ep);
}

static void up_revoked(void *user)
{
	struct ddps_ep *ep = user;

	ddps_let_go(ep->ctx);
}

static void up_rx_ready(void *user)
{
	struct ddps_ep *ep = user;

	if (ep->llp)
		ep->llp->ops->resume(ep->llp);
}

static int up_persist(void *user, uint8_t *at, size_t len)
{
	(void)user;
	return ddps_persist(at, len);
}

static void ep_up_drained(void *user)
{
	ddps_ep_shutdown_soon(user);
}

const struct ddps_rdmap_up ddps_ep_rdmap_up = {
	.complete = ep_up_complete,
	.succeeded = ep_up_succeeded,
	.want_tx = ep_up_want_tx,
	.terminated = ep_up_terminated,
	.first_message = up_first_message,
	.revoked = up_revoked,
	.rx_ready = up_rx_ready,
	.persist = up_persist,
	.drained = ep_up_drained,
};
