/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of an RDMAP stream. */
#include "rdmap/rdmap_priv.h"
#include <stdlib.h>

int ddps_rdmap_new(struct ddps_rdmap **out, const struct ddps_rdmap_cfg *cfg)
{
	struct ddps_rdmap *r;
	uint32_t rq_depth = cfg->srq ? 1 : cfg->rq_depth;
	uint32_t rq_sge = cfg->srq ? cfg->srq->max_sge : cfg->max_sge;

	if (!cfg->sq_depth || !rq_depth || !cfg->max_sge || cfg->max_sge > DDPS_DDP_SGE_MAX)
		return DDPS_E_INVAL;
	r = calloc(1, sizeof *r);
	if (!r)
		return DDPS_E_NOMEM;
	/* The buffer bound has its place. */
	if (cfg->srq && ddps_wq_make(&r->rq.mem, 1, sizeof(struct ddps_rqe), rq_sge)) {
		free(r);
		return DDPS_E_NOMEM;
	}
	r->sq.depth = cfg->sq_depth;
	r->rq.depth = rq_depth;
	r->rq.max_sge = rq_sge;
	r->pd = cfg->pd;
	r->stream = cfg->stream;
	r->up = cfg->up;
	r->user = cfg->user;
	r->max_sge = cfg->max_sge;
	r->no_recv = cfg->no_recv;
	r->srq = cfg->srq;
	r->srq_share = cfg->srq_share;
	if (r->srq)
		r->srq->users++;
	r->rfc7306 = cfg->rfc7306;
	r->send_imm = cfg->send_imm;
	r->flush = cfg->flush;
	r->reads_max = UINT16_MAX;
	r->may = DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC;
	for (int q = 0; q < DDPS_QN_COUNT; q++) { /* [5041-4.3-11] */
		r->tx_msn[q] = 1;
		r->rxq[q].msn = 1;
	}
	r->pd->streams++;
	*out = r;
	return 0;
}

void ddps_rdmap_free(struct ddps_rdmap *r)
{
	if (!r)
		return;
	r->pd->streams--;
	for (uint64_t pos = r->sq.head; pos != r->sq.tail; pos++)
		if (ddps_sq_at(r, pos)->op == DDPS_OP_BIND)
			ddps_sq_at(r, pos)->bind.window->pending--;
	if (r->srq)
		ddps_srq_detach(r);
	ddps_wq_free(&r->sq.mem);
	ddps_wq_free(&r->rq.mem);
	free(r->irrq.e);
	free(r->ctx);
	free(r->direct);
	free(r->tally.v);
	free(r);
}

int ddps_rdmap_start(struct ddps_rdmap *r, const struct ddps_rdmap_start *s)
{
	bool read_rtr = s->send_rtr == DDPS_RTR_READ;

	if (r->state != DDPS_RS_INIT)
		return DDPS_E_STATE;
	if ((s->send_rtr & (s->send_rtr - 1)) || (s->send_rtr & ~DDPS_RTR_ALL) ||
	    (read_rtr && !s->ord && !s->rtr_needs_ord))
		return DDPS_E_INVAL;
	r->irrq.rtr_slot = s->provider_read_slot && !s->ird;
	/* One place now, to know that there is memory [6581-9.3-1]; more when they are used. */
	if (s->ird || r->irrq.rtr_slot) {
		r->irrq.e = calloc(1, sizeof *r->irrq.e);
		if (!r->irrq.e)
			return DDPS_E_NOMEM;
		r->irrq.cap = 1;
	}
	r->irrq.ird = s->ird;
	r->ord = s->ord;
	r->send_rtr = s->send_rtr;
	r->expect_rtr = s->expect_rtr & DDPS_RTR_ALL;
	r->rtr_strict = s->rtr_strict;
	r->llp_mpa_codes = s->llp_mpa_codes;
	r->state = DDPS_RS_RUN;
	r->poke = true;
	ddps_rdmap_tell(r);
	return 0;
}

void ddps_rdmap_allow(struct ddps_rdmap *r, unsigned rights)
{
	r->may = (uint8_t)rights;
}

void ddps_rdmap_reads_max(struct ddps_rdmap *r, uint16_t n)
{
	r->reads_max = n;
}

void ddps_rdmap_tell(struct ddps_rdmap *r)
{
	bool poke = r->poke;

	r->poke = false;
	if (poke && ddps_rdmap_tx_ready(r))
		r->up->want_tx(r->user);
}

bool ddps_rdmap_owes(const struct ddps_rdmap *r)
{
	/* A message in progress is in one of these queues. */
	return r->sq.head != r->sq.tail || r->irrq.count || r->send_rtr ||
	       r->tx_acked != r->tx_pulled;
}

bool ddps_rdmap_has_work(const struct ddps_rdmap *r)
{
	return r->sq.head != r->sq.tail;
}

bool ddps_rdmap_posted(const struct ddps_rdmap *r)
{
	return r->sq.tail;
}

void ddps_rdmap_check_drained(struct ddps_rdmap *r)
{
	if (!r->draining || r->drained || r->state > DDPS_RS_RUN || ddps_rdmap_owes(r))
		return;
	r->drained = true;
	/* Nobody posts a receive any more: what waits for one finds none. */
	ddps_rdmap_unstall(r);
	r->up->drained(r->user);
}

void ddps_rdmap_unstall(struct ddps_rdmap *r)
{
	bool stalled = r->stalled;

	r->stalled = false;
	ddps_srq_leave(r);
	if (stalled)
		r->up->rx_ready(r->user);
}

void ddps_rdmap_drain(struct ddps_rdmap *r)
{
	ddps_rdmap_check(r);
	r->draining = true;
	ddps_rdmap_check_drained(r);
}

void ddps_rdmap_peer_closed(struct ddps_rdmap *r)
{
	ddps_rdmap_check(r);
	if (r->state != DDPS_RS_RUN || r->peer_closed)
		return;
	r->peer_closed = true;
	ddps_read_flush(r);
	ddps_sq_complete(r);
	r->poke = true; /* what waited for a fence or for ORD goes on */
	ddps_rdmap_check_drained(r);
	ddps_rdmap_tell(r);
}

/* ---- what is counted ---- */

struct ddps_msg_stats *ddps_rdmap_count_new(struct ddps_rdmap *r, bool in, unsigned op)
{
	struct ddps_tally *t = &r->tally;
	uint8_t room = t->room ? (uint8_t)(2 * t->room) : 2;
	struct ddps_msg_stats *more;

	if (t->n == t->room) {
		more = realloc(t->v, room * sizeof *more);
		if (!more)
			return &r->uncounted;
		t->v = more;
		t->room = room;
	}
	t->v[t->n] = (struct ddps_msg_stats){ 0 };
	t->at[in][op] = ++t->n;
	return &t->v[t->n - 1];
}

static struct ddps_msg_stats get_counted(const struct ddps_rdmap *r, bool in, unsigned op)
{
	unsigned at = r->tally.at[in][op];

	return at ? r->tally.v[at - 1] : (struct ddps_msg_stats){ 0 };
}

void ddps_rdmap_overflowed(struct ddps_rdmap *r)
{
	r->met.cq_overflow++;
}

struct ddps_ep_stats ddps_rdmap_stats(const struct ddps_rdmap *r)
{
	bool runs = r->state == DDPS_RS_RUN;
	struct ddps_ep_stats st = { .sq_full = r->met.sq_full,
				    .rq_full = r->met.rq_full,
				    .no_buffer = r->met.no_buffer,
				    .stalls = r->met.stalls,
				    .over_share = r->met.over_share,
				    .ird_overrun = r->met.ird_overrun,
				    .cq_overflow = r->met.cq_overflow,
				    .sends_posted = r->sq.tail - r->sq.head,
				    .recvs_posted = r->rq.tail - r->rq.head,
				    .recvs_out = r->srq_out,
				    .reads_out = runs ? r->reads_out : 0,
				    .reads_in = runs ? r->irrq.count : 0 };

	for (unsigned op = 0; op < DDPS_STAT_OPS; op++) {
		st.sent[op] = get_counted(r, false, op);
		st.received[op] = get_counted(r, true, op);
	}
	return st;
}

/* Out of RUN nothing but a Terminate is sent: a message in progress is abandoned on a segment
 * boundary, Read Requests not answered are dropped. */
void ddps_rdmap_stop(struct ddps_rdmap *r)
{
	ddps_sq_flush(r, false);
	ddps_rq_flush(r);
	ddps_rdmap_unstall(r); /* to be dropped, with all that follows */
}

void ddps_rdmap_unanswered(struct ddps_rdmap *r)
{
	struct ddps_sqe *oldest = r->sq.head != r->sq.tail ? ddps_sq_at(r, r->sq.head) : NULL;

	if (oldest && !oldest->status)
		oldest->status = DDPS_WC_UNANSWERED;
}

void ddps_rdmap_flush(struct ddps_rdmap *r)
{
	ddps_rdmap_check(r);
	r->state = DDPS_RS_GONE;
	ddps_rdmap_stop(r);
	ddps_sq_flush(r, true);
}

void ddps_rdmap_terminate(struct ddps_rdmap *r, int code, struct ddps_triple t, const char *text)
{
	struct ddps_fault f;

	ddps_fault_set(&f, code, ddps_term_of(&t), "%s", text);
	ddps_rdmap_fail(r, &f, NULL, NULL);
	ddps_rdmap_tell(r);
}

uint64_t ddps_rdmap_taken(const struct ddps_rdmap *r)
{
	uint64_t n = r->uncounted.segments;

	for (unsigned op = 0; op < DDPS_STAT_OPS; op++)
		n += get_counted(r, true, op).segments;
	return n;
}

uint64_t ddps_rdmap_own_progress(struct ddps_rdmap *r)
{
	uint64_t n = get_counted(r, true, DDPS_OP_WIRE_READ_RESP).octets +
		     get_counted(r, true, DDPS_OP_WIRE_ATOMIC_RESP).messages;

	for (unsigned op = 0; op < DDPS_STAT_OPS; op++)
		if (op != DDPS_OP_WIRE_READ_RESP && op != DDPS_OP_WIRE_ATOMIC_RESP)
			n += get_counted(r, false, op).segments;
	/* The oldest is on its way out, and with it what was handed down before. */
	if (r->sq.head != r->sq.tail && !ddps_op_asks(ddps_sq_at(r, r->sq.head)->op))
		n += r->tx_acked;
	return n;
}

bool ddps_rdmap_heard(const struct ddps_rdmap *r)
{
	return r->met.stalls || ddps_rdmap_taken(r);
}

const struct ddps_llp_data ddps_rdmap_data = {
	.tx_next = ddps_rdmap_tx_next,
	.tx_into = ddps_rdmap_tx_into,
	.tx_done = ddps_rdmap_tx_done,
	.rx_segment = ddps_rdmap_rx_segment,
	.rx_direct = ddps_rdmap_rx_direct,
	.rx_direct_iov = ddps_rdmap_rx_direct_iov,
	.rx_direct_end = ddps_rdmap_rx_direct_end,
};
