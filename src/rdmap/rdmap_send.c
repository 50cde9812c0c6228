/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue: posting, segments of Sends, Writes and Read Requests, completions. */
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>
#include <string.h>

#define FLAGS_KNOWN (DDPS_WR_SILENT | DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE | DDPS_WR_FENCE)
#define FLAGS_SEND  (DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE)

int ddps_sge_check(struct ddps_pd *pd, const void *stream, const struct ddps_sge *sge,
		   uint32_t nsge, unsigned need, uint64_t *len)
{
	*len = 0;
	for (uint32_t i = 0; i < nsge; i++)
		*len += sge[i].len;
	if (*len > UINT32_MAX) /* [5041-5.2-3] */
		return DDPS_E_TOO_LONG;
	for (uint32_t i = 0; i < nsge; i++)
		if (ddps_stag_check_local(pd, stream, &sge[i], need))
			return DDPS_E_ACCESS;
	return 0;
}

static int check_form(const struct ddps_rdmap *r, const struct ddps_send_wr *wr)
{
	if (wr->op != DDPS_OP_SEND && wr->op != DDPS_OP_WRITE && wr->op != DDPS_OP_READ)
		return DDPS_E_INVAL;
	if ((wr->flags & ~FLAGS_KNOWN) || (wr->op != DDPS_OP_SEND && (wr->flags & FLAGS_SEND)))
		return DDPS_E_INVAL;
	if (wr->nsge > (wr->op == DDPS_OP_READ ? 1 : r->max_sge) || (wr->nsge && !wr->sge))
		return DDPS_E_INVAL;
	return 0;
}

/* Where the response shall go: the sink's key and its tagged offset. */
static int find_sink(struct ddps_rdmap *r, struct ddps_sqe *e, const struct ddps_sge *sink)
{
	const struct ddps_mr *mr;

	if (!e->len)
		return 0; /* STag 0 and TO 0: nothing is placed */
	mr = ddps_stag_find(r->pd->table, sink->lkey);
	e->sink_stag = sink->lkey;
	e->sink_to = mr->base + (uint64_t)((uint8_t *)sink->addr - mr->addr);
	/* The peer could not place it without a wrap (reference 2.7). */
	return e->sink_to + e->len < e->sink_to ? DDPS_E_ACCESS : 0;
}

static bool open_for(const struct ddps_rdmap *r, enum ddps_op op)
{
	if (r->state > DDPS_RS_RUN || r->draining)
		return false;
	return op != DDPS_OP_READ || (r->state == DDPS_RS_RUN && !r->peer_closed);
}

int ddps_rdmap_post_send(struct ddps_rdmap *r, const struct ddps_send_wr *wr)
{
	uint64_t pos = r->sq.tail, len;
	struct ddps_sqe e;
	int err;

	if (!open_for(r, wr->op)) /* [5041-6.2.1-3] */
		return DDPS_E_STATE;
	err = check_form(r, wr);
	if (err)
		return err;
	if (pos - r->sq.head == r->sq.depth) {
		r->stats.sq_full++;
		return DDPS_E_LIMIT;
	}
	if (wr->op == DDPS_OP_READ && !r->ord)
		return DDPS_E_LIMIT;
	err = ddps_sge_check(r->pd, r->stream, wr->sge, wr->nsge,
			     wr->op == DDPS_OP_READ ? DDPS_LOCAL_WRITE : 0, &len);
	if (err)
		return err;
	e = (struct ddps_sqe){
		.wr_id = wr->wr_id,
		.to = wr->to,
		.len = (uint32_t)len,
		.stag = wr->stag,
		.nsge = wr->nsge,
		.flags = wr->flags,
		.op = wr->op,
	};
	if (wr->op == DDPS_OP_READ) {
		err = find_sink(r, &e, wr->sge);
		if (err)
			return err;
	}
	*ddps_sq_at(r, pos) = e;
	if (wr->nsge)
		memcpy(ddps_sq_sge(r, pos), wr->sge, wr->nsge * sizeof *wr->sge);
	r->sq.tail++;
	r->poke = true;
	ddps_rdmap_tell(r);
	return 0;
}

/* ---- transmit ---- */

bool ddps_sq_ready(struct ddps_rdmap *r)
{
	const struct ddps_sqe *e;

	/* Reads that the peer's close has ended before they went out. */
	while (r->sq.next != r->sq.tail && ddps_sq_at(r, r->sq.next)->done)
		r->sq.next++;
	if (r->sq.next == r->sq.tail)
		return false;
	e = ddps_sq_at(r, r->sq.next);
	if ((e->flags & DDPS_WR_FENCE) && r->reads_out)
		return false;
	return e->op != DDPS_OP_READ || r->reads_out < r->ord; /* [5040-6.1-7] */
}

static enum ddps_opcode send_opcode(unsigned flags)
{
	if (flags & DDPS_WR_INVALIDATE)
		return flags & DDPS_WR_SOLICITED ? DDPS_OP_WIRE_SEND_SE_INV : DDPS_OP_WIRE_SEND_INV;
	return flags & DDPS_WR_SOLICITED ? DDPS_OP_WIRE_SEND_SE : DDPS_OP_WIRE_SEND;
}

static void begin(struct ddps_rdmap *r, struct ddps_sqe *e)
{
	struct ddps_ddp_msg *m = &r->msg;

	*m = (struct ddps_ddp_msg){
		.sge = ddps_sq_sge(r, r->sq.next),
		.nsge = e->nsge,
		.len = e->len,
	};
	switch (e->op) {
	case DDPS_OP_WRITE:
		m->hdr.tagged = true;
		m->hdr.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_WRITE);
		m->hdr.stag = e->stag;
		m->hdr.to = e->to;
		break;
	case DDPS_OP_READ:
		m->hdr.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_READ_REQ);
		m->hdr.qn = DDPS_QN_READ;
		break;
	default:
		m->hdr.ulp = ddps_rdmap_ctrl(send_opcode(e->flags));
		m->hdr.ulp_word = e->flags & DDPS_WR_INVALIDATE ? e->stag : 0;
		m->hdr.qn = DDPS_QN_SEND;
		break;
	}
	if (!m->hdr.tagged) {
		e->msn = r->tx_msn[m->hdr.qn]++; /* [5041-4.3-10] [5041-4.3-12] */
		m->hdr.msn = e->msn;
	}
	r->cur = DDPS_CUR_SQ;
}

/* The pieces that [off, off + len) touches must still be ours to use. */
static int still_valid(struct ddps_rdmap *r, const struct ddps_sqe *e, uint64_t off, uint64_t len,
		       struct ddps_fault *f)
{
	unsigned need = e->op == DDPS_OP_READ ? DDPS_LOCAL_WRITE : 0;
	const struct ddps_sge *sge = ddps_sq_sge(r, r->sq.next);
	enum ddps_stag_verdict v;
	uint64_t at = 0;

	for (uint32_t i = 0; i < e->nsge && at < off + len; at += sge[i++].len) {
		if (at + sge[i].len <= off)
			continue;
		v = ddps_stag_check_local(r->pd, r->stream, &sge[i], need);
		if (v) /* [5040-7.1-2] */
			return ddps_fault_set(f, DDPS_E_ACCESS, 0, 0, 0,
					      "posted work request, local key 0x%08" PRIx32 ": %s",
					      sge[i].lkey, ddps_stag_verdict_text(v));
	}
	return 0;
}

static void read_request(struct ddps_rdmap *r, const struct ddps_sqe *e, struct ddps_seg *seg)
{
	struct ddps_rreq q = {
		.sink_stag = e->sink_stag,
		.sink_to = e->sink_to,
		.size = e->len,
		.src_stag = e->stag,
		.src_to = e->to,
	};

	r->msg.hdr.last = true;
	seg->hdr_len = ddps_ddp_encode(&r->msg.hdr, seg->hdr);
	ddps_rreq_encode(&q, seg->hdr + seg->hdr_len);
	seg->hdr_len += DDPS_RREQ_LEN;
	seg->npay = 0;
	seg->pay_len = 0;
}

int ddps_sq_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu, struct ddps_fault *f)
{
	struct ddps_sqe *e = ddps_sq_at(r, r->sq.next);
	bool last = true, read = e->op == DDPS_OP_READ;
	int err;

	if (r->cur == DDPS_CUR_NONE)
		begin(r, e);
	err = still_valid(r, e, r->msg.sent, read ? e->len : ddps_ddp_room(&r->msg, mulpdu), f);
	if (err) {
		e->status = DDPS_WC_LOCAL_ACCESS;
		return err;
	}
	if (read)
		read_request(r, e, seg);
	else
		last = ddps_ddp_cut(&r->msg, seg, mulpdu);
	e->last_seg = r->tx_pulled + 1;
	if (last) {
		/* Counted as outstanding before it leaves: the response may be quick. */
		if (read)
			ddps_read_sent(r, r->sq.next);
		e->sent = true;
		r->sq.next++;
		r->cur = DDPS_CUR_NONE;
	}
	return 0;
}

/* ---- completion ---- */

static void complete(struct ddps_rdmap *r, enum ddps_wc_status status)
{
	const struct ddps_sqe *e = ddps_sq_at(r, r->sq.head);
	struct ddps_wc wc = {
		.wr_id = e->wr_id,
		.op = e->op,
		.status = status,
		.len = e->op == DDPS_OP_READ && !status ? e->len : 0,
	};
	bool silent = !status && (e->flags & DDPS_WR_SILENT);

	r->sq.head++;
	if (r->sq.next < r->sq.head)
		r->sq.next = r->sq.head;
	if (!silent)
		r->up->complete(r->user, false, &wc);
}

void ddps_sq_complete(struct ddps_rdmap *r)
{
	while (r->state == DDPS_RS_RUN && r->sq.head != r->sq.tail) {
		const struct ddps_sqe *e = ddps_sq_at(r, r->sq.head);

		/* In order of posting: what has not ended holds back the rest
		 * [5040-5.5-15] [5040-5.5-16] [5040-5.5-20]. */
		if (e->op == DDPS_OP_READ ? !e->done : !e->sent || e->last_seg > r->tx_acked)
			return;
		complete(r, e->status);
	}
}

void ddps_sq_flush(struct ddps_rdmap *r, bool all)
{
	while (r->sq.head != r->sq.tail) {
		const struct ddps_sqe *e = ddps_sq_at(r, r->sq.head);

		if (!all && e->last_seg > r->tx_acked)
			return;
		complete(r, e->status ? e->status : DDPS_WC_FLUSHED);
	}
}
