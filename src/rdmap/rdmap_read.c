/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA Read, responder's side: the inbound Read Request Queue and Read Responses. */
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool ddps_irrq_room(const struct ddps_irrq *q, bool rtr)
{
	return q->count < q->ird || (rtr && q->rtr_slot && !q->count);
}

int ddps_rreq_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	/* [5040-6.1-8]: a request beyond IRD finds no buffer on queue 1. */
	return ddps_ddp_check_untagged(&r->rxq[DDPS_QN_READ], &s->h, s->pay_len,
				       ddps_irrq_room(&r->irrq, s->rtr == DDPS_RTR_READ),
				       DDPS_RREQ_LEN, f);
}

int ddps_rreq_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		     struct iovec *iov, int max)
{
	(void)max;
	iov->iov_base = r->rreq_buf + s->h.mo + off;
	iov->iov_len = s->pay_len - off;
	return 1;
}

int ddps_request_fault(enum ddps_stag_verdict v, const char *what, uint32_t len, uint32_t stag,
		       uint64_t to, struct ddps_fault *f)
{
	static const enum ddps_term_code error[] = {
		[DDPS_STAG_INVALID] = DDPS_TERM_RDMAP_STAG,
		[DDPS_STAG_BOUNDS] = DDPS_TERM_RDMAP_BOUNDS,
		[DDPS_STAG_ACCESS] = DDPS_TERM_RDMAP_ACCESS,
		[DDPS_STAG_ASSOCIATION] = DDPS_TERM_RDMAP_ASSOCIATION,
		[DDPS_STAG_WRAP] = DDPS_TERM_RDMAP_WRAP,
	};

	return ddps_fault_set(f, DDPS_E_ACCESS, error[v],
			      "%s for %" PRIu32 " octets of STag 0x%08" PRIx32 ", TO 0x%" PRIx64
			      ": %s",
			      what, len, stag, to, ddps_stag_verdict_text(v));
}

static int source_fault(enum ddps_stag_verdict v, const struct ddps_rreq *q, struct ddps_fault *f)
{
	return ddps_request_fault(v, "Read Request", q->size, q->src_stag, q->src_to, f);
}

/* Room for one more entry: doubled on demand, so that a large IRD costs nothing unused. */
static int grow_irrq(struct ddps_irrq *q)
{
	uint32_t cap = q->cap * 2 < q->ird ? q->cap * 2 : q->ird;
	struct ddps_irrq_entry *e;

	if (q->count < q->cap)
		return 0;
	e = calloc(cap, sizeof *e);
	if (!e)
		return DDPS_E_NOMEM;
	for (uint32_t i = 0; i < q->count; i++)
		e[i] = q->e[(q->head + i) % q->cap];
	free(q->e);
	q->e = e;
	q->cap = cap;
	q->head = 0;
	return 0;
}

struct ddps_irrq_entry *ddps_irrq_push(struct ddps_rdmap *r, const struct ddps_rx_seg *s,
				       struct ddps_fault *f)
{
	struct ddps_irrq *q = &r->irrq;
	struct ddps_irrq_entry *e;

	if (grow_irrq(q)) {
		ddps_fault_set(f, DDPS_E_NOMEM, DDPS_TERM_RDMAP_STREAM,
			       "no memory for the inbound Read queue");
		return NULL;
	}
	e = &q->e[(q->head + q->count++) % q->cap];
	*e = (struct ddps_irrq_entry){ .seg_len = s->seg_len };
	memcpy(e->hdr, s->raw, sizeof e->hdr);
	r->poke = true;
	return e;
}

void ddps_irrq_pop(struct ddps_irrq *q)
{
	q->head = (q->head + 1) % q->cap;
	q->count--;
}

int ddps_rreq_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	struct ddps_ddp_queue *queue = &r->rxq[DDPS_QN_READ];
	uint64_t got = queue->got;
	struct ddps_irrq_entry *e;
	enum ddps_stag_verdict v;
	struct ddps_rreq q;
	uint8_t *at;

	queue->msn++;
	queue->got = 0;
	if (got != DDPS_RREQ_LEN)
		return ddps_fault_set(f, DDPS_E_TRUNCATED, DDPS_TERM_RDMAP_OPERATION,
				      "Read Request of %" PRIu64 " octets", got);
	ddps_rreq_decode(&q, r->rreq_buf);
	if (q.size) { /* [5040-5.2.1-16] [5040-5.2.1-17] */
		v = ddps_peer_check(r, q.src_stag, q.src_to, q.size, DDPS_REMOTE_READ, &at);
		if (v)
			return source_fault(v, &q, f);
	}
	e = ddps_irrq_push(r, s, f);
	if (!e)
		return f->code;
	e->q = q;
	return 0;
}

/* ---- responses ---- */

void ddps_rresp_begin(struct ddps_rdmap *r, const struct ddps_rreq *q)
{
	r->rresp_src.len = q->size;
	/* Sink fields come back as they were, for size 0 too [5040-4.4-2]
	 * [5040-5.2.1-18]. */
	r->msg = (struct ddps_ddp_msg){
		.hdr =
			{
				.tagged = true,
				.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_READ_RESP),
				.stag = q->sink_stag,
				.to = q->sink_to,
			},
		.sge = &r->rresp_src,
		.nsge = 1,
		.len = q->size,
	};
	r->cur = DDPS_CUR_RRESP;
}

/* A revoked source ends the stream; the header returned says how far the response came
 * [5040-4.8-15] [5040-4.8-16]. */
static int revoked(struct ddps_rdmap *r, enum ddps_stag_verdict v, struct ddps_fault *f)
{
	const struct ddps_irrq_entry *e = &r->irrq.e[r->irrq.head];
	struct ddps_rreq q = e->q;
	struct ddps_rx_seg s = { .hdr_len = sizeof e->hdr, .seg_len = e->seg_len };
	uint8_t body[DDPS_RREQ_LEN];
	int err;

	q.sink_to += r->msg.sent;
	q.src_to += r->msg.sent;
	q.size -= (uint32_t)r->msg.sent;
	memcpy(s.raw, e->hdr, sizeof e->hdr);
	ddps_rreq_encode(&q, body);
	err = source_fault(v, &q, f);
	ddps_rdmap_fail(r, f, &s, body);
	return err;
}

int ddps_rresp_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu,
		       struct ddps_fault *f)
{
	struct ddps_irrq *irrq = &r->irrq;
	const struct ddps_rreq *q = &irrq->e[irrq->head].q;
	enum ddps_stag_verdict v;
	uint8_t *at = NULL;
	size_t n;

	if (irrq->e[irrq->head].atomic)
		return ddps_atomic_segment(r, seg, f);
	if (r->cur == DDPS_CUR_NONE)
		ddps_rresp_begin(r, q);
	n = ddps_ddp_room(&r->msg, mulpdu);
	if (n) { /* again for every segment: it may be revoked meanwhile [5040-8.1.1-6] */
		v = ddps_peer_check(r, q->src_stag, q->src_to + r->msg.sent, n, DDPS_REMOTE_READ,
				    &at);
		if (v)
			return revoked(r, v, f);
		r->rresp_src.addr = at - r->msg.sent;
	}
	r->rresp_seg = r->tx_pulled + 1;
	if (ddps_ddp_cut(&r->msg, seg, mulpdu)) {
		/* The slot is free as soon as the LLP has the last segment, else a
		 * requester within its ORD could overrun it. */
		ddps_irrq_pop(irrq);
		r->cur = DDPS_CUR_NONE;
	}
	return 0;
}
