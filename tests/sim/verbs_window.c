/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows.  An end binds its window over what the peer writes to, and the peer's Writes may go
 * through it.  Where nothing is to go wrong, what is not valid is never used: that would end the
 * connection.
 *
 * Type 2: a Send of the peer invalidates it; or it stays the end's own, which then invalidates it
 * itself.  Type 1: any queue pair of the domain binds it, and the next bind takes it from where it was.
 * So a Send of the peer says in front of that that nothing goes through it any more.
 */
#include "sim/verbs_world.h"
#include <errno.h>

static struct ibv_mw_bind_info over_all_that_comes(struct end *e)
{
	return (struct ibv_mw_bind_info){ .mr = e->mr,
					  .addr = (uintptr_t)e->in,
					  .length = sizeof e->in,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
}

static void bind_it(struct end *e, struct ibv_send_wr *wr, struct request *r)
{
	r->op = wr->opcode = IBV_WR_BIND_MW;
	r->key = ibv_inc_rkey(e->wkey ? e->wkey : e->mw->rkey);
	wr->bind_mw.mw = e->mw;
	wr->bind_mw.rkey = r->key;
	wr->bind_mw.bind_info = over_all_that_comes(e);
}

static bool last_use(struct end *e, struct ibv_send_wr *wr, struct request *r)
{
	if (get_other_end(e)->window != WIN_OPEN)
		return false;
	r->op = wr->opcode = IBV_WR_SEND;
	r->key = get_other_end(e)->wkey;
	r->last_use = true;
	return true;
}

bool window_request(struct end *e, struct ibv_send_wr *wr, struct request *r)
{
	struct end *o = get_other_end(e);

	if (!w.windows || !sim_happens(SIM_window, get_end_owner(e), e->ops, 0.3))
		return false;
	if (w.windows == WINDOWS_1)
		return last_use(e, wr, r);
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

/* With a key that is not valid any more, or to where the window is not. */
static bool misuse(struct end *e, struct ibv_send_wr *wr, struct request *r)
{
	struct end *o = get_other_end(e);

	if (w.tidy || r->op != IBV_WR_RDMA_WRITE || !r->len ||
	    (!o->dead_key && o->window != WIN_OPEN) ||
	    !sim_happens(SIM_wrong, get_end_owner(e), e->ops, o->taken_back ? 0.3 : 0.03))
		return false;
	r->wrong = true;
	wr->wr.rdma.rkey = o->dead_key;
	if (o->window == WIN_OPEN && (!o->dead_key || sim_like(2))) {
		wr->wr.rdma.rkey = o->wkey;
		wr->wr.rdma.remote_addr = (uintptr_t)o->out[e->ops];
	}
	return true;
}

void window_use(struct end *e, struct ibv_send_wr *wr, struct request *r)
{
	struct end *o = get_other_end(e);

	if (!misuse(e, wr, r) && o->window == WIN_OPEN &&
	    (r->op == IBV_WR_RDMA_WRITE || r->op == IBV_WR_RDMA_WRITE_WITH_IMM))
		wr->wr.rdma.rkey = o->wkey;
}

/* An end that has a request left, or the last one would not tell that all have completed. */
static bool may_bind(const struct end *e, struct end *by)
{
	return user_may_post(by) && by->ops + 1 < MSGS && by->cm->qp->pd == e->cm->qp->pd;
}

void window_bind(struct end *e)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct request r = { .op = IBV_WR_BIND_MW, .of = e };
	uint32_t before;
	struct end *by;
	int err;

	if (w.windows != WINDOWS_1 || (e->window != WIN_NONE && e->window != WIN_PRIVATE) ||
	    !sim_happens(SIM_window, get_end_owner(e), MSGS + e->tries++, 0.3))
		return;
	by = &w.end[sim_like(w.npairs)][sim_like(2)];
	if (!may_bind(e, by))
		by = e;
	if (!may_bind(e, by))
		return;
	r.unbinds = e->wkey && (e->window == WIN_PRIVATE || !sim_like(4));
	if (!r.unbinds)
		bind.bind_info = over_all_that_comes(e);
	bind.wr_id = r.id = r.slot = by->ops;
	before = e->mw->rkey;
	err = ibv_bind_mw(by->cm->qp, e->mw, &bind);
	check(!err || (err == ENOMEM && by->nsq >= DEPTH) || !w.tidy, "bind: %s", strerror(err));
	check((e->mw->rkey == before) == (err != 0), "the key that a bind gives");
	w.t->n[T_REFUSED] += err != 0;
	r.key = e->mw->rkey;
	if (!err)
		user_posted(by, &r);
}

void window_posted(struct end *e, const struct request *r)
{
	if (r->op == IBV_WR_BIND_MW)
		(r->of ? r->of : e)->window = WIN_BINDING;
	else if (r->op == IBV_WR_LOCAL_INV)
		e->window = WIN_CLOSING;
	else if (r->op == IBV_WR_SEND_WITH_INV || r->last_use)
		get_other_end(e)->window = WIN_CLOSING;
	if (!r->wrong)
		return;
	w.t->n[T_WRONG]++;
	if (!e->wrong)
		e->wrong_at = e->ops;
	e->wrong = true;
}

/* What a bind of type 1 takes back is not valid with the new key, either. */
static void bound_1(struct end *e, const struct request *r)
{
	if (e->wkey)
		e->dead_key = r->unbinds ? r->key : e->wkey;
	e->taken_back = r->unbinds;
	e->wkey = r->unbinds ? 0 : r->key;
	if (!r->unbinds)
		w.t->n[T_BOUND_1]++;
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
		e->dead_key = e->wkey;
		w.t->n[T_INVALIDATED]++;
		return;
	}
	if (r->of)
		bound_1(e = r->of, r);
	else
		e->wkey = r->key;
	e->window = r->unbinds ? WIN_NONE : draw_verbs(4) ? WIN_OPEN : WIN_PRIVATE;
	w.t->n[r->unbinds ? T_INVALIDATED : T_BOUND]++;
}

void window_received(struct end *e, const struct request *r, const struct ibv_wc *wc)
{
	bool has = (wc->wc_flags & IBV_WC_WITH_INV) != 0;

	check(has == (r->op == IBV_WR_SEND_WITH_INV), "it invalidates, or does not");
	if (r->last_use) {
		check(e->window == WIN_CLOSING, "the window was not in use");
		e->window = WIN_NONE;
	}
	if (!has || w.failed)
		return;
	check(wc->invalidated_rkey == r->key && r->key == e->wkey && e->window == WIN_CLOSING,
	      "key %u was invalidated, not %u", wc->invalidated_rkey, r->key);
	e->window = WIN_NONE;
	e->dead_key = e->wkey;
	w.t->n[T_INVALIDATED]++;
}

void window_kept(struct end *e)
{
	const struct end *o = get_other_end(e);

	for (unsigned n = 0; n < e->ops && !w.failed; n++) {
		if (!e->all[n].wrong)
			continue;
		for (unsigned i = 0; i < MAX && !w.failed; i++)
			check(!o->in[n][i] && o->out[n][i] == octet(o, n, i),
			      "Write %u has changed what it must not", n);
	}
}
