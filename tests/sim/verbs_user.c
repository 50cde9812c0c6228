/* SPDX-License-Identifier: BSD-2-Clause */
/* What an end posts, and what may be seen of it. */
#include "sim/verbs_world.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>

#define HELD 40000000ull /* ns: DISCONNECTED waits longer for a look */

static bool does_verbs_user_tell(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_INV || op == IBV_WR_SEND_WITH_IMM ||
	       op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

void user_post_recvs(struct end *e)
{
	while (e->nrq < DEPTH && e->posted_recvs < 2 * MSGS && !e->disconnected) {
		struct ibv_sge sge = { (uintptr_t)e->recv[e->posted_recvs], MAX, e->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = RECVS + e->posted_recvs,
					  .sg_list = &sge,
					  .num_sge = 1 },
				   *bad = NULL;
		int err;

		err = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad)
			     : ibv_post_recv(e->cm->qp, &wr, &bad);
		check(!err || (err == ENOMEM && w.poor && bad == &wr), "a receive is refused: %s",
		      strerror(err));
		if (err)
			return;
		e->posted_recvs++;
		e->nrq++;
	}
}

static void build_verbs_user(struct end *e, struct ibv_send_wr *wr, struct ibv_sge *sge,
			     struct request *r)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND,	     IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						  IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct end *o = get_other_end(e);
	const unsigned n = e->ops;

	*r = (struct request){ .id = n,
			       .op = ops[draw_verbs(6)],
			       .slot = n,
			       .len = (uint32_t)draw_verbs(draw_verbs(2) ? MAX + 1 : 100) };
	/* The last one says that all have. */
	r->silent = n + 1 < MSGS && sim_happens(SIM_silent, get_end_owner(e), n, 0.3);
	*sge = (struct ibv_sge){ (uintptr_t)e->out[n], r->len, e->mr->lkey };
	*wr = (struct ibv_send_wr){ .wr_id = n,
				    .opcode = r->op,
				    .sg_list = sge,
				    .num_sge = 1,
				    .send_flags = r->silent ? 0 : IBV_SEND_SIGNALED,
				    .imm_data = htonl(n) };
	if (window_request(e, wr, r))
		return;
	wr->wr.rdma.rkey = o->mr->rkey;
	wr->wr.rdma.remote_addr = (uintptr_t)o->in[n];
	window_use(e, wr, r);
	if (r->op == IBV_WR_RDMA_READ) {
		sge->addr = (uintptr_t)e->read[n];
		wr->wr.rdma.remote_addr = (uintptr_t)o->out[n];
	} else if (r->op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		r->len = sge->length = 8;
		sge->addr = (uintptr_t)e->read[n];
		wr->wr.atomic.remote_addr = (uintptr_t)&o->word;
		wr->wr.atomic.rkey = o->mr->rkey;
		wr->wr.atomic.compare_add = 1;
	}
}

void user_posted(struct end *e, const struct request *r)
{
	e->sq[e->nsq++] = e->all[e->ops] = *r;
	if (does_verbs_user_tell(r->op)) {
		e->writes_at[e->ntold] = e->ops;
		e->told[e->ntold++] = *r;
	}
	window_posted(e, r);
	e->ops++;
}

void user_post_some(struct end *e)
{
	const unsigned most = sim_happens(SIM_row, get_end_owner(e), e->ops, 0.4) ? 4 : 1;
	struct ibv_send_wr wr[4], *bad = NULL;
	struct request r[4];
	struct ibv_sge sge[4];
	unsigned n = 0, first = e->ops, taken;
	int err;

	while (n < most && e->ops < MSGS && e->ntold < MSGS) {
		build_verbs_user(e, &wr[n], &sge[n], &r[n]);
		wr[n].next = NULL;
		if (n)
			wr[n - 1].next = &wr[n];
		n++;
		e->ops++;
		if (r[n - 1].key) /* what comes behind it depends on what becomes of it */
			break;
	}
	e->ops = first;
	if (!n)
		return;
	err = ibv_post_send(e->cm->qp, wr, &bad);
	taken = err ? (unsigned)(bad - wr) : n;
	check(taken <= n && (!err || bad), "the refused one is not named");
	check(!err || (err == ENOMEM && e->nsq + n > DEPTH) || !w.tidy, "post: %s", strerror(err));
	check(err != ENOMEM || e->nsq + n > DEPTH || w.poor, "post: %s", strerror(err));
	w.t->n[T_REFUSED] += err != 0;
	for (unsigned i = 0; i < taken && !w.failed; i++) {
		user_posted(e, &r[i]);
	}
}

/* ---- completions ---- */

/* Writes that were posted before a message are in place when it is delivered. */
static void note_user_written(struct end *e, unsigned upto)
{
	struct end *o = get_other_end(e);

	for (; e->writes < upto && !w.failed; e->writes++)
		check(o->all[e->writes].op != IBV_WR_RDMA_WRITE || o->all[e->writes].wrong ||
			      !memcmp(e->in[e->writes], o->out[e->writes], o->all[e->writes].len),
		      "Write %u is not in place", e->writes);
}

static void note_verbs_user_received(struct end *e, const struct ibv_wc *wc)
{
	struct end *o = get_other_end(e);
	const struct request *r = &o->told[e->heard];

	const uint64_t n = wc->wr_id - RECVS;

	check(n == e->first_recv, "receive %u instead of %u", (unsigned)n, (unsigned)e->first_recv);
	e->first_recv++;
	e->nrq--;
	if (wc->status) {
		check(wc->status == IBV_WC_WR_FLUSH_ERR, "a receive: %s",
		      ibv_wc_status_str(wc->status));
		w.t->n[T_FLUSHED]++;
		return;
	}
	check(!e->behind, "message %u is told behind the end", e->heard);
	check(e->heard < o->ntold, "a message that nobody has sent");
	if (w.failed)
		return;
	w.t->n[T_RECEIVES]++;
	check(!o->wrong || o->writes_at[e->heard] < o->wrong_at,
	      "a message behind a Write that ends the connection");
	check(wc->byte_len == r->len, "%u octets of %u", wc->byte_len, r->len);
	check((wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) == (r->op == IBV_WR_RDMA_WRITE_WITH_IMM),
	      "opcode %d", wc->opcode);
	check(!(wc->wc_flags & IBV_WC_WITH_IMM) ==
		      (r->op == IBV_WR_SEND || r->op == IBV_WR_SEND_WITH_INV),
	      "immediate data");
	window_received(e, r, wc);
	check(!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) == r->slot,
	      "immediate data of %u", ntohl(wc->imm_data));
	if (r->op != IBV_WR_RDMA_WRITE_WITH_IMM)
		check(!memcmp(e->recv[n], o->out[r->slot], r->len), "message %u is altered",
		      e->heard);
	else
		check(!memcmp(e->in[r->slot], o->out[r->slot], r->len), "Write %u is not in place",
		      r->slot);
	note_user_written(e, o->writes_at[e->heard]);
	e->heard++;
}

/* In the order of posting; those that are silent complete with one behind them. */
static void note_verbs_user_sent(struct end *e, const struct ibv_wc *wc)
{
	unsigned i = 0;
	const struct request *r;

	while (i < e->nsq && e->sq[i].id != wc->wr_id) {
		check(e->sq[i].silent || wc->status, "request %u is passed over",
		      (unsigned)e->sq[i].id);
		i++;
	}
	check(i < e->nsq, "request %u was not posted, or completes twice", (unsigned)wc->wr_id);
	if (w.failed)
		return;
	r = &e->sq[i];
	e->flushed |= wc->status != 0;
	check(!r->silent || wc->status, "a silent request completes");
	w.t->n[wc->status ? T_FLUSHED : T_COMPLETIONS]++;
	if (!wc->status && r->op == IBV_WR_RDMA_READ)
		check(!memcmp(e->read[r->slot], get_other_end(e)->out[r->slot], r->len),
		      "Read %u is altered", r->slot);
	if (wc->status && w.tidy && !e->disconnected && !get_other_end(e)->disconnected)
		check(false, "request %u: %s", (unsigned)r->id, ibv_wc_status_str(wc->status));
	window_sent(e, r, wc);
	e->refused |= wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_OP_ERR ||
		      wc->status == IBV_WC_REM_INV_REQ_ERR;
	i++;
	memmove(e->sq, e->sq + i, (e->nsq - i) * sizeof *e->sq);
	e->nsq -= i;
}

static bool fetch_user_completion(struct end *e)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(e->cq, 1 + (int)draw_verbs(4), wc);

	check(n >= 0, "poll");
	for (int i = 0; i < n && !w.failed; i++) {
		check(wc[i].qp_num == e->cm->qp->qp_num, "of another queue pair");
		if (wc[i].wr_id >= RECVS)
			note_verbs_user_received(e, &wc[i]);
		else
			note_verbs_user_sent(e, &wc[i]);
	}
	return n > 0;
}

static bool fetch_all(struct end *e)
{
	bool any = false;

	while (!w.failed && fetch_user_completion(e))
		any = true;
	e->looked = kern.now;
	return any;
}

bool user_woken(struct end *e)
{
	struct pollfd p = { e->channel->fd, POLLIN, 0 };
	struct ibv_cq *cq = NULL;
	void *of = NULL;

	if (poll(&p, 1, 0) != 1)
		return false;
	check(!ibv_get_cq_event(e->channel, &cq, &of) && cq == e->cq && of == e,
	      "the channel has no event");
	if (!w.failed)
		ibv_ack_cq_events(cq, 1);
	return true;
}

/* It takes what there is, and arms the queue again.  The event of what it took is still there. */
static bool look_untold(struct end *e)
{
	struct pollfd p = { e->channel->fd, POLLIN, 0 };
	const bool any = fetch_all(e);

	check(!ibv_req_notify_cq(e->cq, 0), "arm the queue");
	check(!any || poll(&p, 1, 0) != 0, "an event that nobody has fetched is gone");
	return any;
}

/*
 * Either way is right: to arm the queue and look once more, or to arm it when there is nothing else to do.
 * What came after the last look is reported, too.
 */
bool user_look(struct end *e)
{
	if (!e->channel)
		return fetch_all(e);
	if (e->hasty && e->armed && sim_happens(SIM_spins, get_end_owner(e), e->looks++, 0.2))
		return look_untold(e);
	if (e->arms_late ? !e->armed : !e->armed || user_woken(e)) {
		check(!ibv_req_notify_cq(e->cq, 0), "arm the queue");
		e->armed = true;
		if (!e->arms_late)
			return fetch_all(e);
	}
	if (!e->arms_late || !user_woken(e))
		return false;
	e->armed = false;
	return fetch_all(e);
}

bool user_at_rest(struct end *e)
{
	while (user_woken(e) && !w.failed)
		;
	check(!ibv_req_notify_cq(e->cq, 0), "arm the queue");
	e->armed = true;
	return !fetch_all(e);
}

/* It is reported behind what came before it, unless the program fetches nothing for long. */
void user_told(struct end *e)
{
	e->behind = !w.poor && !e->disconnected && kern.now - e->looked < HELD;
}

bool user_answered(const struct end *e)
{
	for (unsigned i = 0; i < e->nsq; i++)
		if (!e->sq[i].silent)
			return false;
	return true;
}
