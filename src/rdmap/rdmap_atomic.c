/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations (RFC 7306 5), Atomic Writes and Flushes, both sides; the check that all its messages
 * share. */
#include "common/bytes.h"
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>
#include <string.h>

#define TARGET_LEN 8u
#define REQUEST	   "Atomic Request"

int ddps_fixed_check(const struct ddps_ddp_queue *q, const struct ddps_rx_seg *s, bool have_buf,
		     size_t len, const char *what, struct ddps_fault *f)
{
	uint64_t end = s->h.mo + (uint64_t)s->pay_len;
	int err = ddps_ddp_check_untagged(q, &s->h, s->pay_len, have_buf, UINT64_MAX, f);

	if (err)
		return err;
	if (end > len || (s->h.last && end != len)) /* [7306-6.3-8] */
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPERATION,
				      "%s of %" PRIu64 " octets%s, expected %zu", what, end,
				      s->h.last ? "" : " or more", len);
	return 0;
}

/* ---- responder ---- */

int ddps_areq_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	/* The slots are those of Reads: one budget [7306-5.2.2-5]. */
	return ddps_fixed_check(&r->rxq[DDPS_QN_READ], s, ddps_irrq_room(&r->irrq, false),
				DDPS_AREQ_LEN, REQUEST, f);
}

/* What a Flush is about: its octets, or its whole region, in which no octet is out of bounds. */
static int find_flushed(struct ddps_rdmap *r, const struct ddps_areq *q, uint8_t **at, size_t *len,
			struct ddps_fault *f)
{
	const bool whole = q->mask & DDPS_FLUSH_REGION;
	const struct ddps_mr *mr = ddps_stag_find(r->pd->table, q->stag);
	const uint64_t to = whole && mr ? mr->base : q->to,
		       n = whole ? (mr ? mr->len : 0) : q->data;
	const unsigned need = (q->mask & DDPS_FLUSH_VISIBLE ? DDPS_FLUSHABLE : 0) |
			      (q->mask & DDPS_FLUSH_PERSISTENT ? DDPS_PERSISTENT : 0);
	/* Of the region alone: ddps_ep_allow is about what the peer may read and change. */
	enum ddps_stag_verdict v = ddps_stag_check(r->pd, r->stream, q->stag, to, n, need, at);

	*len = (size_t)n;
	return v ? ddps_request_fault(v, "Flush", (uint32_t)n, q->stag, to, f) : 0;
}

static int find_target(struct ddps_rdmap *r, const struct ddps_areq *q, uint8_t **at, size_t *len,
		       struct ddps_fault *f)
{
	const bool write = q->aop == DDPS_AOP_WRITE;
	enum ddps_stag_verdict v;

	if (q->aop == DDPS_AOP_FLUSH)
		return find_flushed(r, q, at, len, f);
	*len = TARGET_LEN;
	v = ddps_peer_check(r, q->stag, q->to, TARGET_LEN,
			    write ? DDPS_REMOTE_WRITE : DDPS_REMOTE_ATOMIC, at);
	/* Before there was a right of their own these two together were it. */
	if (v == DDPS_STAG_ACCESS && !write && !r->pd->verbs_rules)
		v = ddps_peer_check(r, q->stag, q->to, TARGET_LEN,
				    DDPS_REMOTE_READ | DDPS_REMOTE_WRITE, at);
	if (v)
		return ddps_request_fault(v, REQUEST, TARGET_LEN, q->stag, q->to, f);
	if ((uintptr_t)*at % TARGET_LEN) /* the address, not the TO [7306-8.2-4] [7306-8.2-5] */
		return ddps_fault_set(f, DDPS_E_ACCESS, DDPS_TERM_RDMAP_STREAM,
				      REQUEST " for STag 0x%08" PRIx32 ", TO 0x%" PRIx64
					      ": address is no multiple of %u",
				      q->stag, q->to, TARGET_LEN);
	return 0;
}

static bool is_aop_known(const struct ddps_rdmap *r, const struct ddps_areq *q)
{
	return q->aop == DDPS_AOP_FETCH_ADD || q->aop == DDPS_AOP_CMP_SWAP ||
	       (r->flush && (q->aop == DDPS_AOP_WRITE ||
			     (q->aop == DDPS_AOP_FLUSH && ddps_flush_known(q->mask))));
}

int ddps_areq_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	struct ddps_ddp_queue *queue = &r->rxq[DDPS_QN_READ];
	struct ddps_irrq_entry *e;
	struct ddps_areq q;
	uint8_t *at;
	size_t len;
	int err;

	queue->msn++;
	queue->got = 0;
	ddps_areq_decode(&q, r->rreq_buf);
	if (!is_aop_known(r, &q)) /* [7306-5.2.1-9] */
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPCODE,
				      REQUEST ": AOpCode %u", q.aop);
	err = find_target(r, &q, &at, &len, f);
	if (err)
		return err;
	e = ddps_irrq_push(r, s, f);
	if (!e)
		return f->code;
	e->atomic = true;
	e->a = q;
	return 0;
}

bool ddps_atomic_held(const struct ddps_rdmap *r)
{
	return r->irrq.count && r->irrq.e[r->irrq.head].atomic && r->rresp_seg > r->tx_acked;
}

/* The new value; false: it stays as it is. */
static bool modify(const struct ddps_areq *q, uint64_t old, uint64_t *new)
{
	uint64_t top = q->mask;

	if (q->aop == DDPS_AOP_FETCH_ADD) {
		/* Without the fields' top bits no carry can leave a field; these bits are then
		 * added without one. */
		*new = ((old & ~top) + (q->data & ~top)) ^ ((old ^ q->data) & top);
		return true;
	}
	*new = (old & ~q->mask) | (q->data & q->mask);
	return !((old ^ q->compare) & q->compare_mask);
}

/* [7306-5-1] [7306-5.3-1]: other contexts have threads of their own, so the lock of this one
 * is not enough. */
static uint64_t execute_atomic(const struct ddps_areq *q, uint8_t *at)
{
	typedef uint64_t __attribute__((may_alias)) word;
	word *target = (word *)(void *)at;
	uint64_t old, new;

	if (q->aop == DDPS_AOP_WRITE) {
		struct ddps_wbuf octets = ddps_wbuf_init(&new, sizeof new);

		ddps_wbuf_u64(&octets, q->data);
		__atomic_store_n(target, new, __ATOMIC_SEQ_CST);
		return 0;
	}
	old = __atomic_load_n(target, __ATOMIC_SEQ_CST);
	while (modify(q, old, &new) &&
	       !__atomic_compare_exchange_n(target, &old, new, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
	return old;
}

/* 0, or the memory is not what it was, or the system cannot do it: @f is set. */
static int execute_flush(struct ddps_rdmap *r, const struct ddps_areq *q, uint8_t *at, size_t len,
			 struct ddps_fault *f)
{
	/* All earlier Writes are in memory, which all processors see alike. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!(q->mask & DDPS_FLUSH_PERSISTENT) || !len || !r->up->persist(r->user, at, len))
		return 0;
	return ddps_fault_set(f, DDPS_E_SYSTEM, DDPS_TERM_DDP_LOCAL,
			      "Flush of %zu octets of STag 0x%08" PRIx32
			      ": the system cannot write them to their files",
			      len, q->stag);
}

int ddps_atomic_segment(struct ddps_rdmap *r, struct ddps_seg *seg, struct ddps_fault *f)
{
	const struct ddps_irrq_entry *e = &r->irrq.e[r->irrq.head];
	struct ddps_rx_seg s = { .hdr_len = sizeof e->hdr, .seg_len = e->seg_len };
	struct ddps_aresp a = { .id = e->a.id };
	uint8_t body[DDPS_ARESP_LEN], *at;
	size_t len;
	struct ddps_ddp_hdr h = {
		.last = true,
		.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_ATOMIC_RESP),
		.qn = DDPS_QN_ATOMIC,
	};
	/* Again: the region may be gone since Delivery. */
	int err = find_target(r, &e->a, &at, &len, f);

	if (!err && e->a.aop == DDPS_AOP_FLUSH)
		err = execute_flush(r, &e->a, at, len, f);
	else if (!err)
		a.original = execute_atomic(&e->a, at);
	if (err) {
		memcpy(s.raw, e->hdr, sizeof e->hdr);
		ddps_rdmap_fail(r, f, &s, NULL);
		return err;
	}
	h.msn = r->tx_msn[DDPS_QN_ATOMIC]++;
	ddps_aresp_encode(&a, body);
	ddps_tx_control(seg, &h, body, sizeof body);
	ddps_irrq_pop(&r->irrq);
	return 0;
}

/* ---- requester ---- */

/* NULL: what is due is no Atomic Response; the request before may be a Write, whose confirming Read
 * has neither a sink nor its size. */
static struct ddps_sqe *oldest_atomic(struct ddps_rdmap *r)
{
	struct ddps_sqe *e = ddps_read_oldest(r);

	return e && !ddps_sqe_read(e) ? e : NULL;
}

int ddps_aresp_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	/* A response before its turn, while a Read is the oldest, has no buffer either. */
	return ddps_fixed_check(&r->rxq[DDPS_QN_ATOMIC], s, oldest_atomic(r), DDPS_ARESP_LEN,
				"Atomic Response", f);
}

int ddps_aresp_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		      struct iovec *iov, int max)
{
	(void)max;
	iov->iov_base = r->aresp_buf + s->h.mo + off;
	iov->iov_len = s->pay_len - off;
	return 1;
}

/* The value goes into the sink, if there is one and it is still ours to write. */
static int store_atomic_value(struct ddps_rdmap *r, const struct ddps_sqe *e, struct ddps_fault *f)
{
	const struct ddps_sge *sink = ddps_sq_sge(r, r->read_pos);
	enum ddps_stag_verdict v;
	int err;

	if (!e->nsge)
		return 0;
	v = ddps_stag_check_local(r->pd, r->stream, sink, DDPS_LOCAL_WRITE);
	if (!v) {
		memcpy(sink->addr, &e->original, sizeof e->original);
		return 0;
	}
	err = ddps_fault_set(f, DDPS_E_ACCESS, DDPS_TERM_RDMAP_LOCAL,
			     "sink of an atomic, local key 0x%08" PRIx32 ": %s", sink->lkey,
			     ddps_stag_verdict_text(v));
	f->read_status = DDPS_WC_LOCAL_ACCESS;
	return err;
}

int ddps_aresp_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	struct ddps_ddp_queue *q = &r->rxq[DDPS_QN_ATOMIC];
	struct ddps_sqe *e = oldest_atomic(r);
	struct ddps_aresp a;
	int err;

	(void)s;
	q->msn++;
	q->got = 0;
	if (!e) /* the peer's half-close has ended it between two segments */
		return 0;
	ddps_aresp_decode(&a, r->aresp_buf);
	if (a.id != e->atomic.id) /* [7306-5.2.2-8] */
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPERATION,
				      "Atomic Response for request 0x%" PRIx32
				      ", expected 0x%" PRIx32,
				      a.id, e->atomic.id);
	e->original = a.original;
	err = store_atomic_value(r, e, f);
	if (err)
		return err;
	ddps_read_done(r); /* [7306-5.4-8] */
	return 0;
}
