/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows of type 2.  An end binds its window over what the peer writes to.  Then the peer's
 * Writes may go through it, until a Send of the peer invalidates it; or it stays the end's own, which
 * then invalidates it itself.  What is invalid is never used: that would end the connection.
 */
#include "sim/verbs_world.h"

static void bind_it(struct end *e, struct ibv_send_wr *wr, struct request *r)
{
	r->op = wr->opcode = IBV_WR_BIND_MW;
	r->key = ibv_inc_rkey(e->wkey ? e->wkey : e->mw->rkey);
	wr->bind_mw.mw = e->mw;
	wr->bind_mw.rkey = r->key;
	wr->bind_mw.bind_info =
		(struct ibv_mw_bind_info){ .mr = e->mr,
					   .addr = (uintptr_t)e->in,
					   .length = sizeof e->in,
					   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
}

bool window_request(struct end *e, struct ibv_send_wr *wr, struct request *r)
{
	struct end *o = other(e);

	if (!w.windows || !sim_happens(SIM_window, owner(e), e->ops, 0.3))
		return false;
	if (e->window == WIN_NONE) {
		bind_it(e, wr, r);
	} else if (e->window == WIN_PRIVATE) {
		r->op = wr->opcode = IBV_WR_LOCAL_INV;
		r->key = wr->invalidate_rkey = e->wkey;
	} else if (o->window == WIN_OPEN) {
		r->op = wr->opcode = IBV_WR_SEND_WITH_INV;
		r->key = wr->invalidate_rkey = o->wkey;
		return true; /* it carries octets, as a Send does */
	} else {
		return false;
	}
	r->len = 0;
	r->silent = false;
	wr->num_sge = 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	return true;
}

void window_use(struct end *e, struct ibv_send_wr *wr, const struct request *r)
{
	struct end *o = other(e);

	if (o->window == WIN_OPEN &&
	    (r->op == IBV_WR_RDMA_WRITE || r->op == IBV_WR_RDMA_WRITE_WITH_IMM))
		wr->wr.rdma.rkey = o->wkey;
}

void window_posted(struct end *e, const struct request *r)
{
	if (r->op == IBV_WR_BIND_MW)
		e->window = WIN_BINDING;
	else if (r->op == IBV_WR_LOCAL_INV)
		e->window = WIN_CLOSING;
	else if (r->op == IBV_WR_SEND_WITH_INV)
		other(e)->window = WIN_CLOSING;
}

void window_sent(struct end *e, const struct request *r, const struct ibv_wc *wc)
{
	if (wc->status || (r->op != IBV_WR_BIND_MW && r->op != IBV_WR_LOCAL_INV))
		return;
	check(wc->opcode == (r->op == IBV_WR_BIND_MW ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV),
	      "opcode %d of a window", wc->opcode);
	if (r->op == IBV_WR_LOCAL_INV) {
		check(e->window == WIN_CLOSING, "the window was not the end's own");
		e->window = WIN_NONE;
		w.t->n[T_INVALIDATED]++;
		return;
	}
	e->wkey = r->key;
	e->window = rnd(4) ? WIN_OPEN : WIN_PRIVATE;
	w.t->n[T_BOUND]++;
}

void window_received(struct end *e, const struct request *r, const struct ibv_wc *wc)
{
	bool has = (wc->wc_flags & IBV_WC_WITH_INV) != 0;

	check(has == (r->op == IBV_WR_SEND_WITH_INV), "it invalidates, or does not");
	if (!has || w.failed)
		return;
	check(wc->invalidated_rkey == r->key && r->key == e->wkey && e->window == WIN_CLOSING,
	      "key %u was invalidated, not %u", wc->invalidated_rkey, r->key);
	e->window = WIN_NONE;
	w.t->n[T_INVALIDATED]++;
}
