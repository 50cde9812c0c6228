/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight ways: what is as most work is, a message of one piece in one segment that nothing stands
 * against, is checked once, at the head, and done in one go.  Everything else takes the ways of the other
 * files, which would have done the same with more steps: to answer "no" here is never wrong.
 * rdmap_straight_test.c holds both against each other.
 */
#include "common/bytes.h"
#include "rdmap/rdmap_priv.h"

#define CTRL_SEND  (DDPS_DDP_CTRL_L | DDPS_DDP_CTRL_DV1)
#define CTRL_WRITE (DDPS_DDP_CTRL_T | CTRL_SEND)
#define EASY_FLAGS ((unsigned)(DDPS_WR_SILENT | DDPS_WR_MORE))

static bool is_easy(enum ddps_op op, unsigned flags, uint32_t nsge)
{
	return (op == DDPS_OP_SEND || op == DDPS_OP_WRITE) && !(flags & ~EASY_FLAGS) && nsge == 1;
}

/* An entry more has room in the queue and in its memory. */
static bool has_place(const struct ddps_wq *mem, uint32_t depth, uint64_t used)
{
	return used < depth && used < mem->size;
}

bool ddps_straight_post_send(struct ddps_rdmap *r, const struct ddps_send_wr *wr)
{
	struct ddps_sq *q = &r->sq;
	struct ddps_sqe *e;

	if (r->stepwise || r->state != DDPS_RS_RUN || r->draining ||
	    !is_easy(wr->op, wr->flags, wr->nsge) || !wr->sge ||
	    !has_place(&q->mem, q->depth, q->tail - q->head) ||
	    !ddps_stag_is_near(r->pd, r->stream, wr->sge, 0))
		return false;
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
	e->plain = true;
	e->sent = e->done = e->first_cut = e->asking = e->covered = false;
	*ddps_sq_sge(r, q->tail) = *wr->sge;
	q->tail++;
	return true;
}

bool ddps_straight_post_recv(struct ddps_rdmap *r, uint64_t wr_id, const struct ddps_sge *sge,
			     uint32_t nsge)
{
	struct ddps_rq *q = &r->rq;

	if (r->stepwise || r->state > DDPS_RS_RUN || r->srq || r->stalled || nsge != 1 || !sge ||
	    !has_place(&q->mem, q->depth, q->tail - q->head) ||
	    !ddps_stag_is_near(r->pd, r->stream, sge, DDPS_LOCAL_WRITE))
		return false;
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
	return true;
}

/* ---- out ---- */

static inline void count_straight(struct ddps_rdmap *r, bool in, enum ddps_opcode op, size_t octets)
{
	struct ddps_msg_stats *st = ddps_rdmap_count(r, in, op);

	st->messages++;
	st->segments++;
	st->octets += octets;
}

/* Nothing but requests of ours is to be sent, and no message has begun. */
static bool only_own_work(const struct ddps_rdmap *r)
{
	return r->state == DDPS_RS_RUN && r->cur == DDPS_CUR_NONE && !r->send_rtr &&
	       !r->irrq.count && r->sq.next != r->sq.tail;
}

static void put_send_header(struct ddps_rdmap *r, struct ddps_sqe *e, struct ddps_seg *seg)
{
	struct ddps_wbuf w = ddps_wbuf_init(seg->hdr, DDPS_DDP_UNTAGGED_LEN);

	e->msn = r->tx_msn[DDPS_QN_SEND]++; /* [5041-4.3-10] [5041-4.3-12] */
	ddps_wbuf_u8(&w, CTRL_SEND);
	ddps_wbuf_u8(&w, ddps_rdmap_ctrl(DDPS_OP_WIRE_SEND));
	ddps_wbuf_u32(&w, 0);
	ddps_wbuf_u32(&w, DDPS_QN_SEND);
	ddps_wbuf_u32(&w, e->msn);
	ddps_wbuf_u32(&w, 0);
}

static void put_write_header(const struct ddps_sqe *e, struct ddps_seg *seg)
{
	struct ddps_wbuf w = ddps_wbuf_init(seg->hdr, DDPS_DDP_TAGGED_LEN);

	ddps_wbuf_u8(&w, CTRL_WRITE);
	ddps_wbuf_u8(&w, ddps_rdmap_ctrl(DDPS_OP_WIRE_WRITE));
	ddps_wbuf_u32(&w, e->stag);
	ddps_wbuf_u64(&w, e->to);
}

bool ddps_straight_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu)
{
	struct ddps_sqe *e;
	bool tagged;
	size_t hdr;

	if (r->stepwise || !only_own_work(r))
		return false;
	e = ddps_sq_at(r, r->sq.next);
	tagged = e->op == DDPS_OP_WRITE;
	hdr = tagged ? DDPS_DDP_TAGGED_LEN : DDPS_DDP_UNTAGGED_LEN;
	if (!is_easy(e->op, e->flags, e->nsge) || !e->len || mulpdu < DDPS_SEG_HDR_MAX ||
	    e->len > mulpdu - hdr || e->losses != ddps_stag_losses(r->pd->table))
		return false;
	if (tagged)
		put_write_header(e, seg);
	else
		put_send_header(r, e, seg);
	seg->hdr_len = hdr;
	seg->pay_len = e->len;
	seg->pay[0] = (struct iovec){ ddps_sq_sge(r, r->sq.next)->addr, e->len };
	seg->npay = 1;
	e->last_seg = ++r->tx_pulled;
	e->sent = true;
	r->sq.next++;
	r->rresp_turn = true;
	r->poke = false;
	count_straight(r, false, tagged ? DDPS_OP_WIRE_WRITE : DDPS_OP_WIRE_SEND, e->len);
	seg->final = r->sq.next == r->sq.tail;
	return true;
}

/* ---- in ---- */

/* What is behind the first two octets of a Send that is whole, and the next one. */
static bool is_next_send(const struct ddps_rdmap *r, const uint8_t *seg)
{
	const struct ddps_ddp_queue *q = &r->rxq[DDPS_QN_SEND];
	struct ddps_rbuf b = ddps_rbuf_init(seg, DDPS_DDP_UNTAGGED_LEN);
	uint32_t qn, msn, mo;

	ddps_rbuf_take(&b, 2 + sizeof(uint32_t)); /* control octets; for Invalidate only */
	qn = ddps_rbuf_u32(&b);
	msn = ddps_rbuf_u32(&b);
	mo = ddps_rbuf_u32(&b);
	return qn == DDPS_QN_SEND && msn == q->msn && !mo; /* no message is in progress */
}

static bool place_next_send(struct ddps_rdmap *r, const uint8_t *seg, size_t pay_len)
{
	const struct ddps_rqe *e;
	struct ddps_wc wc;

	if (r->srq || r->ahead || r->rq.head == r->rq.tail || !is_next_send(r, seg))
		return false;
	e = ddps_rq_at(r, r->rq.head);
	if (e->nsge != 1 || pay_len > e->len || e->losses != ddps_stag_losses(r->pd->table))
		return false;
	memcpy(ddps_rq_sge(r, r->rq.head)->addr, seg + DDPS_DDP_UNTAGGED_LEN, pay_len);
	wc = (struct ddps_wc){ .op = DDPS_OP_RECV, .wr_id = e->wr_id, .len = (uint32_t)pay_len };
	r->rxq[DDPS_QN_SEND].msn++;
	r->rq.head++;
	count_straight(r, true, DDPS_OP_WIRE_SEND, pay_len);
	r->up->complete(r->user, true, &wc);
	return true;
}

static bool place_whole_write(struct ddps_rdmap *r, const uint8_t *seg, size_t pay_len)
{
	struct ddps_rbuf b = ddps_rbuf_init(seg + 2, DDPS_DDP_TAGGED_LEN - 2);
	uint32_t stag = ddps_rbuf_u32(&b);
	uint64_t to = ddps_rbuf_u64(&b);
	uint8_t *at;

	if (ddps_peer_check(r, stag, to, pay_len, DDPS_REMOTE_WRITE, &at))
		return false;
	memcpy(at, seg + DDPS_DDP_TAGGED_LEN, pay_len);
	count_straight(r, true, DDPS_OP_WIRE_WRITE, pay_len);
	return true;
}

bool ddps_straight_receive(struct ddps_rdmap *r, const uint8_t *seg, size_t len)
{
	if (r->stepwise || r->ctx_open || r->expect_rtr || len <= DDPS_DDP_UNTAGGED_LEN)
		return false;
	if (seg[0] == CTRL_SEND && seg[1] == ddps_rdmap_ctrl(DDPS_OP_WIRE_SEND)) {
		if (!place_next_send(r, seg, len - DDPS_DDP_UNTAGGED_LEN))
			return false;
	} else if (seg[0] == CTRL_WRITE && seg[1] == ddps_rdmap_ctrl(DDPS_OP_WIRE_WRITE)) {
		if (!place_whole_write(r, seg, len - DDPS_DDP_TAGGED_LEN))
			return false;
	} else {
		return false;
	}
	r->waited = false;
	return true;
}
