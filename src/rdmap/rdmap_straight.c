/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight ways: what is as most work is, a message of one piece that nothing stands against, is checked
 * once, at the head, and done in one go; a Send in one segment, a Read Request, a Write or a response to a Read in any
 * number of them.  Everything else takes the ways of the other files, which would have done the same with more
 * steps: to answer "no" here is never wrong.  The functions that the session and the LLP call are here, too, so that what
 * most work is costs one call a layer.
 * rdmap_straight_test.c holds both against each other.
 */
#include "common/bytes.h"
#include "rdmap/rdmap_priv.h"

#define CTRL_WHOLE  (DDPS_DDP_CTRL_L | DDPS_DDP_CTRL_DV1)
#define CTRL_TAGGED (DDPS_DDP_CTRL_T | DDPS_DDP_CTRL_DV1)
#define EASY_FLAGS  ((unsigned)(DDPS_WR_SILENT | DDPS_WR_MORE))

static bool is_easy(enum ddps_op op, unsigned flags, uint32_t nsge)
{
	return (op == DDPS_OP_SEND || op == DDPS_OP_WRITE || op == DDPS_OP_READ) &&
	       !(flags & ~EASY_FLAGS) && nsge == 1;
}

/* An entry more has room in the queue and in its memory. */
static bool has_place(const struct ddps_wq *mem, uint32_t depth, uint64_t used)
{
	return used < depth && used < mem->size;
}

/* The region that requests like @op have used last. */
static inline struct ddps_stag_seen *get_seen(struct ddps_rdmap *r, enum ddps_op op)
{
	return op == DDPS_OP_READ || op == DDPS_OP_RECV ? &r->into : &r->from;
}

/* Whether the stream may use @sge, in another one, which is the last one then. */
static bool see_piece(struct ddps_rdmap *r, enum ddps_op op, const struct ddps_sge *sge)
{
	struct ddps_stag_seen *seen = get_seen(r, op);

	return ddps_stag_see(r->pd, r->stream, sge, seen == &r->into ? DDPS_LOCAL_WRITE : 0, seen);
}

static __attribute__((noinline)) int see_and_send(struct ddps_rdmap *r,
						  const struct ddps_send_wr *wr)
{
	return see_piece(r, wr->op, wr->sge) ? ddps_rdmap_post_send(r, wr)
					     : ddps_any_post_send(r, wr);
}

/* Where the response to a Read goes, in the region that was used last. */
static inline uint64_t get_sink_to(const struct ddps_rdmap *r, const struct ddps_sge *sink)
{
	return r->into.base + ((uintptr_t)sink->addr - r->into.addr);
}

/* A Read can be asked for, and its response placed there without a wrap. */
static bool may_read_into(const struct ddps_rdmap *r, const struct ddps_sge *sink)
{
	uint64_t to = get_sink_to(r, sink);

	return r->ord && !r->peer_closed && sink->len && to + sink->len > to;
}

/* Each way out of it but the last is a call at its end, so that it keeps no registers for others. */
int ddps_rdmap_post_send(struct ddps_rdmap *r, const struct ddps_send_wr *wr)
{
	struct ddps_sq *q = &r->sq;
	struct ddps_sqe *e;

	ddps_rdmap_check(r);
	if (r->stepwise || r->state != DDPS_RS_RUN || r->draining ||
	    !is_easy(wr->op, wr->flags, wr->nsge) || !wr->sge ||
	    !has_place(&q->mem, q->depth, q->tail - q->head))
		return ddps_any_post_send(r, wr);
	if (!ddps_stag_is_seen(get_seen(r, wr->op), r->pd->table, wr->sge))
		return see_and_send(r, wr);
	if (wr->op == DDPS_OP_READ && !may_read_into(r, wr->sge))
		return ddps_any_post_send(r, wr);
	if (q->head == q->tail)
		q->head = q->next = q->tail = ddps_wq_first(&q->mem, q->tail);
	e = ddps_sq_at(r, q->tail);
	/* Each by itself: the union, most of it, is not for Sends and Writes. */
	e->wr_id = wr->wr_id;
	e->to = wr->to;
	e->last_seg = 0;
	e->losses = ddps_stag_losses(r->pd->table);
	e->len = wr->sge->len;
	e->stag = wr->stag;
	e->msn = 0;
	e->nsge = 1;
	e->flags = wr->flags;
	e->op = wr->op;
	e->status = DDPS_WC_SUCCESS;
	e->plain = wr->op != DDPS_OP_READ;
	e->sent = e->done = e->first_cut = e->asking = e->covered = false;
	e->straight = true;
	if (!e->plain) {
		e->sink_stag = wr->sge->lkey;
		e->sink_to = get_sink_to(r, wr->sge);
	}
	*ddps_sq_sge(r, q->tail) = *wr->sge;
	q->tail++;
	return 0;
}

static __attribute__((noinline)) int see_and_recv(struct ddps_rdmap *r, uint64_t wr_id,
						  const struct ddps_sge *sge)
{
	return see_piece(r, DDPS_OP_RECV, sge) ? ddps_rdmap_post_recv(r, wr_id, sge, 1)
					       : ddps_any_post_recv(r, wr_id, sge, 1);
}

int ddps_rdmap_post_recv(struct ddps_rdmap *r, uint64_t wr_id, const struct ddps_sge *sge,
			 uint32_t nsge)
{
	struct ddps_rq *q = &r->rq;

	ddps_rdmap_check(r);
	if (r->stepwise || r->state > DDPS_RS_RUN || r->srq || r->stalled || nsge != 1 || !sge ||
	    !has_place(&q->mem, q->depth, q->tail - q->head))
		return ddps_any_post_recv(r, wr_id, sge, nsge);
	if (!ddps_stag_is_seen(get_seen(r, DDPS_OP_RECV), r->pd->table, sge))
		return see_and_recv(r, wr_id, sge);
	if (q->head == q->tail)
		q->head = q->tail = ddps_wq_first(&q->mem, q->tail);
	*ddps_rq_at(r, q->tail) = (struct ddps_rqe){
		.wr_id = wr_id,
		.len = sge->len,
		.losses = ddps_stag_losses(r->pd->table),
		.nsge = 1,
	};
	*ddps_rq_sge(r, q->tail) = *sge;
	q->tail++;
	return 0;
}

/* ---- out ---- */

static inline void count_straight(struct ddps_rdmap *r, bool in, enum ddps_opcode op, size_t octets,
				  bool last)
{
	struct ddps_msg_stats *st = ddps_rdmap_count(r, in, op);

	st->messages += last;
	st->segments++;
	st->octets += octets;
}

/* Of a message in one segment. */
static __attribute__((always_inline)) inline void
put_untagged_header(struct ddps_rdmap *r, struct ddps_sqe *e, struct ddps_seg *seg,
		    enum ddps_opcode op, uint32_t qn)
{
	struct ddps_wbuf w = ddps_wbuf_init(seg->hdr, DDPS_DDP_UNTAGGED_LEN);

	e->msn = r->tx_msn[qn]++; /* [5041-4.3-10] [5041-4.3-12] */
	ddps_wbuf_u8(&w, CTRL_WHOLE);
	ddps_wbuf_u8(&w, ddps_rdmap_ctrl(op));
	ddps_wbuf_u32(&w, 0);
	ddps_wbuf_u32(&w, qn);
	ddps_wbuf_u32(&w, e->msn);
	ddps_wbuf_u32(&w, 0);
	seg->hdr_len = DDPS_DDP_UNTAGGED_LEN;
}

static inline void write_tagged_header(uint8_t *at, bool last, uint8_t ulp, uint32_t stag,
				       uint64_t to)
{
	struct ddps_wbuf w = ddps_wbuf_init(at, DDPS_DDP_TAGGED_LEN);

	ddps_wbuf_u8(&w, CTRL_TAGGED | (last ? DDPS_DDP_CTRL_L : 0));
	ddps_wbuf_u8(&w, ulp);
	ddps_wbuf_u32(&w, stag);
	ddps_wbuf_u64(&w, to);
}

static void put_tagged_header(struct ddps_seg *seg, bool last, uint8_t ulp, uint32_t stag,
			      uint64_t to)
{
	write_tagged_header(seg->hdr, last, ulp, stag, to);
	seg->hdr_len = DDPS_DDP_TAGGED_LEN;
}

static inline void put_payload(struct ddps_seg *seg, uint8_t *at, size_t len)
{
	seg->pay_len = len;
	seg->pay[0] = (struct iovec){ at, len };
	seg->npay = 1;
}

/* The last segment of @e, in one. */
static inline void end_request(struct ddps_rdmap *r, struct ddps_sqe *e)
{
	e->last_seg = r->tx_pulled + 1;
	e->sent = true;
	r->sq.next++;
	r->rresp_turn = true;
}

/* All segments take this.  @len: octets behind DDP's header. */
static inline void end_segment(struct ddps_rdmap *r, struct ddps_seg *seg, enum ddps_opcode op,
			       size_t len, bool last)
{
	seg->final = r->cur == DDPS_CUR_NONE && r->sq.next == r->sq.tail && !r->irrq.count;
	r->tx_pulled++;
	r->poke = false;
	count_straight(r, false, op, len, last);
}

/* The next segment of the tagged message in progress, whose payload begins at @at. */
static void cut_tagged(struct ddps_rdmap *r, struct ddps_seg *seg, uint8_t *at, size_t len)
{
	struct ddps_ddp_msg *m = &r->msg;
	bool last = m->sent + len == m->len; /* [5041-4.1-3] [5041-4.1-4] */

	put_tagged_header(seg, last, m->hdr.ulp, m->hdr.stag, m->hdr.to + m->sent);
	put_payload(seg, at, len);
	m->sent += len;
	seg->left = (size_t)(m->len - m->sent);
	if (!last) {
		end_segment(r, seg, ddps_rdmap_opcode(m->hdr.ulp), len, false);
		return;
	}
	if (r->cur == DDPS_CUR_RRESP) {
		ddps_irrq_pop(&r->irrq);
	} else {
		ddps_sq_at(r, r->sq.next)->sent = true;
		r->sq.next++;
	}
	r->cur = DDPS_CUR_NONE;
	end_segment(r, seg, ddps_rdmap_opcode(m->hdr.ulp), len, true);
}

/* Of the Write @e, which is in progress or does not fit one segment. */
static __attribute__((noinline)) void cut_write(struct ddps_rdmap *r, struct ddps_sqe *e,
						struct ddps_seg *seg, size_t mulpdu)
{
	if (r->cur == DDPS_CUR_NONE)
		ddps_sq_begin(r, e);
	e->last_seg = r->tx_pulled + 1;
	cut_tagged(r, seg, (uint8_t *)ddps_sq_sge(r, r->sq.next)->addr + r->msg.sent,
		   ddps_ddp_room(&r->msg, mulpdu));
}

/* The whole of a Read Request. */
static __attribute__((noinline)) bool pull_read(struct ddps_rdmap *r, struct ddps_sqe *e,
						struct ddps_seg *seg)
{
	const struct ddps_rreq q = { .sink_stag = e->sink_stag,
				     .sink_to = e->sink_to,
				     .size = e->len,
				     .src_stag = e->stag,
				     .src_to = e->to };

	if (e->done || r->reads_out >= r->ord /* [5040-6.1-7] */ || r->reads_out >= r->reads_max)
		return false;
	put_untagged_header(r, e, seg, DDPS_OP_WIRE_READ_REQ, DDPS_QN_READ);
	ddps_rreq_encode(&q, seg->hdr + DDPS_DDP_UNTAGGED_LEN);
	seg->hdr_len = DDPS_DDP_UNTAGGED_LEN + DDPS_RREQ_LEN;
	seg->pay_len = 0;
	seg->npay = 0;
	end_request(r, e);
	ddps_read_sent(r, r->sq.next - 1);
	end_segment(r, seg, DDPS_OP_WIRE_READ_REQ, DDPS_RREQ_LEN, true);
	return true;
}

/* Our own request whose turn it is. */
static bool pull_request(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu)
{
	struct ddps_sqe *e = ddps_sq_at(r, r->sq.next);
	bool tagged = e->op == DDPS_OP_WRITE;
	struct ddps_sge *sge;

	if (!e->straight || !e->len || e->losses != ddps_stag_losses(r->pd->table))
		return false;
	if (e->op == DDPS_OP_READ)
		return pull_read(r, e, seg);
	if (e->len > mulpdu - (tagged ? DDPS_DDP_TAGGED_LEN : DDPS_DDP_UNTAGGED_LEN) ||
	    r->cur != DDPS_CUR_NONE) {
		if (!tagged)
			return false;
		r->rresp_turn |= r->cur == DDPS_CUR_NONE;
		cut_write(r, e, seg, mulpdu);
		return true;
	}
	sge = ddps_sq_sge(r, r->sq.next);
	if (tagged)
		put_tagged_header(seg, true, ddps_rdmap_ctrl(DDPS_OP_WIRE_WRITE), e->stag, e->to);
	else
		put_untagged_header(r, e, seg, DDPS_OP_WIRE_SEND, DDPS_QN_SEND);
	put_payload(seg, sge->addr, e->len);
	end_request(r, e);
	end_segment(r, seg, tagged ? DDPS_OP_WIRE_WRITE : DDPS_OP_WIRE_SEND, e->len, true);
	return true;
}

/* The response to the oldest request of the peer. */
static __attribute__((noinline)) bool pull_response(struct ddps_rdmap *r, struct ddps_seg *seg,
						    size_t mulpdu)
{
	const struct ddps_irrq_entry *e = &r->irrq.e[r->irrq.head];
	uint64_t sent = r->cur == DDPS_CUR_NONE ? 0 : r->msg.sent, left = e->q.size - sent;
	size_t n = mulpdu - DDPS_DDP_TAGGED_LEN;
	uint8_t *at;

	if (left < n)
		n = (size_t)left;
	/* Again for every segment: it may be revoked meanwhile [5040-8.1.1-6]. */
	if (e->atomic || !n ||
	    ddps_peer_check(r, e->q.src_stag, e->q.src_to + sent, n, DDPS_REMOTE_READ, &at))
		return false;
	if (r->cur == DDPS_CUR_NONE) {
		ddps_rresp_begin(r, &e->q);
		r->rresp_turn = false;
	}
	r->rresp_seg = r->tx_pulled + 1;
	cut_tagged(r, seg, at, n);
	return true;
}

static inline bool pull_straight(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu)
{
	bool own = r->sq.next != r->sq.tail;

	if (r->stepwise || r->state != DDPS_RS_RUN || r->send_rtr || mulpdu < DDPS_SEG_HDR_MAX)
		return false;
	if (r->cur == DDPS_CUR_SQ || (r->cur == DDPS_CUR_NONE && own && !r->irrq.count))
		return pull_request(r, seg, mulpdu);
	if (r->cur == DDPS_CUR_RRESP || (!own && r->irrq.count))
		return pull_response(r, seg, mulpdu);
	return false;
}

int ddps_rdmap_tx_next(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct ddps_rdmap *r = user;

	ddps_rdmap_check(r);
	return pull_straight(r, seg, mulpdu) ? 1 : ddps_any_segment(r, seg, mulpdu);
}

/* Where @n octets more of the tagged message in progress are, behind which it goes on; NULL: something is unusual. */
static const uint8_t *find_rest_of_message(struct ddps_rdmap *r, size_t n)
{
	struct ddps_sqe *e;
	uint8_t *at;

	if (r->cur == DDPS_CUR_SQ) {
		e = ddps_sq_at(r, r->sq.next);
		if (e->op != DDPS_OP_WRITE || !e->straight ||
		    e->losses != ddps_stag_losses(r->pd->table))
			return NULL;
		e->last_seg = r->tx_pulled + 1;
		return (uint8_t *)ddps_sq_sge(r, r->sq.next)->addr + r->msg.sent;
	}
	if (ddps_peer_check(r, r->irrq.e[r->irrq.head].q.src_stag,
			    r->irrq.e[r->irrq.head].q.src_to + r->msg.sent, n, DDPS_REMOTE_READ,
			    &at))
		return NULL;
	r->rresp_seg = r->tx_pulled + 1;
	return at;
}

bool ddps_rdmap_tx_into(void *user, uint8_t *to, size_t len)
{
	struct ddps_rdmap *r = user;
	struct ddps_ddp_msg *m = &r->msg;
	size_t n = len - DDPS_DDP_TAGGED_LEN;
	const uint8_t *from;

	ddps_rdmap_check(r);
	if (r->stepwise || r->state != DDPS_RS_RUN || r->send_rtr || len < DDPS_SEG_HDR_MAX ||
	    r->cur == DDPS_CUR_NONE || !m->hdr.tagged || m->len - m->sent <= n ||
	    !(from = find_rest_of_message(r, n)))
		return false;
	write_tagged_header(to, false, m->hdr.ulp, m->hdr.stag, m->hdr.to + m->sent);
	memcpy(to + DDPS_DDP_TAGGED_LEN, from, n);
	m->sent += n;
	r->tx_pulled++;
	r->poke = false;
	count_straight(r, false, ddps_rdmap_opcode(m->hdr.ulp), n, false);
	return true;
}

/* ---- in ---- */

/* What is behind the first two octets of an untagged message that is whole, and the next one. */
static inline bool is_next_message(const struct ddps_rdmap *r, const uint8_t *seg, uint32_t queue)
{
	const struct ddps_ddp_queue *q = &r->rxq[queue];
	struct ddps_rbuf b = ddps_rbuf_init(seg, DDPS_DDP_UNTAGGED_LEN);
	uint32_t qn, msn, mo;

	ddps_rbuf_take(&b, 2 + sizeof(uint32_t)); /* control octets; for Invalidate only */
	qn = ddps_rbuf_u32(&b);
	msn = ddps_rbuf_u32(&b);
	mo = ddps_rbuf_u32(&b);
	return qn == queue && msn == q->msn && !mo; /* no message is in progress */
}

static inline bool fits_receive(const struct ddps_rdmap *r, const struct ddps_rqe *e, size_t len)
{
	return e->nsge == 1 && len <= e->len && e->losses == ddps_stag_losses(r->pd->table);
}

/* Into the oldest buffer of the shared queue, which is bound and delivered in one. */
static __attribute__((noinline)) bool place_shared_send(struct ddps_rdmap *r, const uint8_t *pay,
							size_t pay_len)
{
	struct ddps_srq *srq = r->srq;
	const struct ddps_rqe *e = &srq->e[srq->head];
	uint64_t wr_id = e->wr_id;

	if (r->rq.head != r->rq.tail || !srq->count || r->srq_out >= r->srq_share ||
	    !fits_receive(r, e, pay_len))
		return false;
	memcpy(srq->sge[(size_t)srq->head * srq->max_sge].addr, pay, pay_len);
	r->srq_out++;
	ddps_srq_drop(srq);
	r->rxq[DDPS_QN_SEND].msn++;
	count_straight(r, true, DDPS_OP_WIRE_SEND, pay_len, true);
	ddps_succeeded(r, true, DDPS_OP_RECV, wr_id, (uint32_t)pay_len);
	return true;
}

static bool place_next_send(struct ddps_rdmap *r, const uint8_t *seg, size_t pay_len)
{
	const struct ddps_rqe *e;

	if (r->ahead || !is_next_message(r, seg, DDPS_QN_SEND))
		return false;
	if (r->srq)
		return place_shared_send(r, seg + DDPS_DDP_UNTAGGED_LEN, pay_len);
	if (r->rq.head == r->rq.tail)
		return false;
	e = ddps_rq_at(r, r->rq.head);
	if (!fits_receive(r, e, pay_len))
		return false;
	memcpy(ddps_rq_sge(r, r->rq.head)->addr, seg + DDPS_DDP_UNTAGGED_LEN, pay_len);
	r->rxq[DDPS_QN_SEND].msn++;
	r->rq.head++;
	count_straight(r, true, DDPS_OP_WIRE_SEND, pay_len, true);
	ddps_succeeded(r, true, DDPS_OP_RECV, e->wr_id, (uint32_t)pay_len);
	return true;
}

/* A Read Request that waits for its turn to be answered. */
static __attribute__((noinline)) bool take_request(struct ddps_rdmap *r, const uint8_t *seg,
						   size_t len)
{
	struct ddps_irrq *irrq = &r->irrq;
	struct ddps_irrq_entry *e;
	struct ddps_rreq q;
	uint8_t *at;

	if (len != DDPS_DDP_UNTAGGED_LEN + DDPS_RREQ_LEN || irrq->count >= irrq->ird ||
	    irrq->count == irrq->cap || !is_next_message(r, seg, DDPS_QN_READ))
		return false;
	ddps_rreq_decode(&q, seg + DDPS_DDP_UNTAGGED_LEN);
	if (!q.size || ddps_peer_check(r, q.src_stag, q.src_to, q.size, DDPS_REMOTE_READ, &at))
		return false;
	r->rxq[DDPS_QN_READ].msn++;
	e = &irrq->e[(irrq->head + irrq->count++) % irrq->cap];
	e->atomic = false;
	e->q = q;
	memcpy(e->hdr, seg, sizeof e->hdr);
	e->seg_len = len;
	r->poke = true;
	count_straight(r, true, DDPS_OP_WIRE_READ_REQ, DDPS_RREQ_LEN, true);
	return true;
}

/* A tagged segment: of the message in progress, or the first of one; nothing else is in progress. */
static bool fits_message(const struct ddps_rdmap *r, bool last, uint8_t ulp, uint32_t stag)
{
	const struct ddps_rx_ctx *c = &r->ctx[DDPS_CTX_TAGGED];

	if (!r->ctx_open)
		return last || r->ctx;
	return r->ctx_open == 1u << DDPS_CTX_TAGGED && !c->done && c->seg.h.ulp == ulp &&
	       c->seg.h.stag == stag;
}

/* It is in place.  Of a message that goes on, the next segment is held against opcode and STag. */
static void note_part(struct ddps_rdmap *r, bool last, uint8_t ulp, uint32_t stag)
{
	struct ddps_rx_ctx *c = &r->ctx[DDPS_CTX_TAGGED];

	if (last) {
		r->ctx_open = 0;
	} else if (!r->ctx_open) {
		c->order = r->rx_order++;
		c->done = false;
		c->seg.h = (struct ddps_ddp_hdr){ .tagged = true, .ulp = ulp, .stag = stag };
		r->ctx_open = 1u << DDPS_CTX_TAGGED;
	}
}

/* Where the next octets of the response to the oldest Read go; NULL: they are not those. */
static uint8_t *find_response_place(struct ddps_rdmap *r, bool last, uint32_t stag, uint64_t to,
				    size_t len)
{
	const struct ddps_sqe *e = ddps_read_oldest(r);
	uint64_t left;

	if (!e || e->op != DDPS_OP_READ || e->losses != ddps_stag_losses(r->pd->table))
		return NULL;
	left = e->len - r->rresp_got;
	if (stag != e->sink_stag || to != e->sink_to + r->rresp_got || len > left ||
	    (last && len != left))
		return NULL;
	return (uint8_t *)ddps_sq_sge(r, r->read_pos)->addr + r->rresp_got;
}

/* Of a Write, or of a response to a Read. */
static __attribute__((noinline)) bool place_tagged(struct ddps_rdmap *r, const uint8_t *seg,
						   size_t pay_len)
{
	struct ddps_rbuf b = ddps_rbuf_init(seg + 2, DDPS_DDP_TAGGED_LEN - 2);
	uint32_t stag = ddps_rbuf_u32(&b);
	uint64_t to = ddps_rbuf_u64(&b);
	bool last = seg[0] & DDPS_DDP_CTRL_L,
	     write = ddps_rdmap_opcode(seg[1]) == DDPS_OP_WIRE_WRITE;
	uint8_t *at;

	if (!fits_message(r, last, seg[1], stag))
		return false;
	if (!write)
		at = find_response_place(r, last, stag, to, pay_len);
	else if (ddps_peer_check(r, stag, to, pay_len, DDPS_REMOTE_WRITE, &at))
		at = NULL;
	if (!at)
		return false;
	memcpy(at, seg + DDPS_DDP_TAGGED_LEN, pay_len);
	count_straight(r, true, ddps_rdmap_opcode(seg[1]), pay_len, last);
	note_part(r, last, seg[1], stag);
	if (!write) {
		r->rresp_got += pay_len;
		if (last)
			ddps_read_done(r);
	}
	return true;
}

static bool is_tagged(const uint8_t *seg)
{
	return (seg[0] & ~DDPS_DDP_CTRL_L) == CTRL_TAGGED &&
	       (seg[1] == ddps_rdmap_ctrl(DDPS_OP_WIRE_WRITE) ||
		seg[1] == ddps_rdmap_ctrl(DDPS_OP_WIRE_READ_RESP));
}

static inline bool receive_straight(struct ddps_rdmap *r, const uint8_t *seg, size_t len)
{
	if (r->stepwise || r->expect_rtr || len <= DDPS_DDP_UNTAGGED_LEN)
		return false;
	if (seg[0] == CTRL_WHOLE && seg[1] == ddps_rdmap_ctrl(DDPS_OP_WIRE_SEND)) {
		if (r->ctx_open || !place_next_send(r, seg, len - DDPS_DDP_UNTAGGED_LEN))
			return false;
	} else if (seg[0] == CTRL_WHOLE && seg[1] == ddps_rdmap_ctrl(DDPS_OP_WIRE_READ_REQ)) {
		if (r->ctx_open || !take_request(r, seg, len))
			return false;
	} else if (!is_tagged(seg) || !place_tagged(r, seg, len - DDPS_DDP_TAGGED_LEN)) {
		return false;
	}
	r->waited = false;
	return true;
}

int ddps_rdmap_rx_segment(void *user, const uint8_t *seg, size_t len)
{
	struct ddps_rdmap *r = user;
	int err;

	ddps_rdmap_check(r);
	if (r->state != DDPS_RS_RUN) /* dropped silently [5041-7.1-20] */
		return DDPS_E_STATE;
	if (receive_straight(r, seg, len))
		err = r->state == DDPS_RS_RUN ? 0 : DDPS_E_CLOSED;
	else
		err = ddps_any_receive(r, seg, len);
	if (r->poke)
		ddps_rdmap_tell(r);
	return err;
}
