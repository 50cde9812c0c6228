/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue: posting, segments of all requests. */
#include "common/bytes.h"
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>
#include <string.h>

/* MORE is the caller's business */
#define FLAGS_ANY (DDPS_WR_SILENT | DDPS_WR_FENCE | DDPS_WR_MORE)
/* So many PLACED requests, one behind the other, are confirmed by one Read. */
#define COVERED_MAX 7

/* What a work request of each type may look like. */
struct op_form {
	bool ok, ext; /* ext: RFC 7306 */
	bool atomic;
	bool flush; /* ... and of no RFC */
	bool local;
	unsigned flags; /* in addition to FLAGS_ANY */
	uint32_t max_sge;
};

static const struct op_form *get_op_form(enum ddps_op op)
{
	static const struct op_form forms[] = {
		[DDPS_OP_SEND] = { .ok = true,
				   .flags = DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE | DDPS_WR_PLACED,
				   .max_sge = UINT32_MAX },
		[DDPS_OP_WRITE] = { .ok = true, .flags = DDPS_WR_PLACED, .max_sge = UINT32_MAX },
		[DDPS_OP_READ] = { .ok = true, .max_sge = 1 },
		[DDPS_OP_IMM] = { .ok = true,
				  .ext = true,
				  .flags = DDPS_WR_SOLICITED | DDPS_WR_PLACED },
		[DDPS_OP_WRITE_IMM] = { .ok = true,
					.ext = true,
					.flags = DDPS_WR_SOLICITED | DDPS_WR_PLACED,
					.max_sge = UINT32_MAX },
		[DDPS_OP_SEND_IMM] = { .ok = true,
				       .ext = true,
				       .flags = DDPS_WR_SOLICITED | DDPS_WR_PLACED,
				       .max_sge = UINT32_MAX },
		[DDPS_OP_BIND] = { .ok = true, .local = true, .max_sge = 1 },
		[DDPS_OP_LOCAL_INV] = { .ok = true, .local = true },
		[DDPS_OP_FETCH_ADD] = { .ok = true, .ext = true, .atomic = true, .max_sge = 1 },
		[DDPS_OP_CMP_SWAP] = { .ok = true, .ext = true, .atomic = true, .max_sge = 1 },
		[DDPS_OP_ATOMIC_WRITE] = { .ok = true, .ext = true, .flush = true },
		[DDPS_OP_FLUSH] = { .ok = true, .ext = true, .flush = true },
	};

	if ((unsigned)op >= sizeof forms / sizeof *forms || !forms[op].ok)
		return NULL;
	return &forms[op];
}

static int no_access(const struct ddps_pd *pd, uint64_t *losses)
{
	*losses = DDPS_LOSSES_BAD;
	return pd->verbs_rules ? 0 : DDPS_E_ACCESS;
}

int ddps_sge_check(struct ddps_pd *pd, uint64_t stream, const struct ddps_sge *sge, uint32_t nsge,
		   unsigned need, uint64_t *len, uint64_t *losses)
{
	*losses = ddps_stag_losses(pd->table);
	if (nsge == 1) { /* as most are */
		*len = sge->len;
		return ddps_stag_check_local(pd, stream, sge, need) ? no_access(pd, losses) : 0;
	}
	*len = 0;
	for (uint32_t i = 0; i < nsge; i++)
		*len += sge[i].len;
	if (*len > UINT32_MAX) /* [5041-5.2-3] */
		return DDPS_E_TOO_LONG;
	for (uint32_t i = 0; i < nsge; i++)
		if (ddps_stag_check_local(pd, stream, &sge[i], need))
			return no_access(pd, losses);
	return 0;
}

static int check_form(const struct ddps_rdmap *r, const struct ddps_send_wr *wr)
{
	const struct op_form *form = get_op_form(wr->op);
	uint32_t max_sge = form && form->max_sge < r->max_sge ? form->max_sge : r->max_sge;

	if (!form || (wr->flags & ~(FLAGS_ANY | form->flags)) || wr->nsge > max_sge ||
	    (wr->nsge && !wr->sge))
		return DDPS_E_INVAL;
	if (form->atomic && wr->nsge && wr->sge->len != sizeof(uint64_t))
		return DDPS_E_INVAL;
	return wr->op == DDPS_OP_FLUSH && !ddps_flush_known(wr->atomic.mask) ? DDPS_E_INVAL : 0;
}

/* Where the response shall go: the sink's key and its tagged offset. */
static int find_sink(struct ddps_rdmap *r, struct ddps_sqe *e, const struct ddps_sge *sink)
{
	const struct ddps_mr *mr;

	if (!e->len || e->losses == DDPS_LOSSES_BAD)
		return 0; /* STag 0 and TO 0: nothing is placed */
	mr = ddps_stag_find(r->pd->table, sink->lkey);
	e->sink_stag = sink->lkey;
	e->sink_to = mr->base + (uint64_t)((uint8_t *)sink->addr - mr->addr);
	/* The peer could not place it without a wrap. */
	return e->sink_to + e->len < e->sink_to ? DDPS_E_ACCESS : 0;
}

static bool waits_for_peer(const struct ddps_send_wr *wr)
{
	return ddps_op_asks(wr->op) || wr->flags & DDPS_WR_PLACED;
}

static bool open_for(const struct ddps_rdmap *r, const struct ddps_send_wr *wr)
{
	if (r->state > DDPS_RS_RUN || r->draining)
		return false;
	return !waits_for_peer(wr) || (r->state == DDPS_RS_RUN && !r->peer_closed);
}

/* The fields of an atomic; the unused ones as the RFC wants them [7306-5.2.1-15]. */
static struct ddps_areq atomic_of(const struct ddps_send_wr *wr, uint64_t pos)
{
	static const uint8_t aop[] = { [DDPS_OP_FETCH_ADD] = DDPS_AOP_FETCH_ADD,
				       [DDPS_OP_CMP_SWAP] = DDPS_AOP_CMP_SWAP,
				       [DDPS_OP_ATOMIC_WRITE] = DDPS_AOP_WRITE,
				       [DDPS_OP_FLUSH] = DDPS_AOP_FLUSH };
	bool swap = wr->op == DDPS_OP_CMP_SWAP, write = wr->op == DDPS_OP_ATOMIC_WRITE;
	struct ddps_rbuf octets = ddps_rbuf_init(wr->imm, sizeof wr->imm);

	return (struct ddps_areq){
		.aop = aop[wr->op],
		.id = (uint32_t)pos,
		.stag = wr->stag,
		.to = wr->to,
		.data = write ? ddps_rbuf_u64(&octets) : wr->atomic.data,
		.mask = write ? UINT64_MAX : wr->atomic.mask,
		.compare = swap ? wr->atomic.compare : 0,
		.compare_mask = swap ? wr->atomic.compare_mask : UINT64_MAX,
	};
}

/* What else an operation needs of its request.  @pos: where it comes to lie. */
static int fill_sqe(struct ddps_rdmap *r, struct ddps_sqe *e, const struct ddps_send_wr *wr,
		    uint64_t pos)
{
	switch (wr->op) {
	case DDPS_OP_IMM:
	case DDPS_OP_WRITE_IMM:
		memcpy(e->imm, wr->imm, sizeof e->imm);
		return 0;
	case DDPS_OP_SEND_IMM:
		memcpy(e->imm, wr->imm, DDPS_SEND_IMM_OCTETS);
		memset(e->imm + DDPS_SEND_IMM_OCTETS, DDPS_AHEAD_OCTET,
		       sizeof e->imm - DDPS_SEND_IMM_OCTETS);
		return 0;
	case DDPS_OP_FETCH_ADD:
	case DDPS_OP_CMP_SWAP:
	case DDPS_OP_ATOMIC_WRITE:
	case DDPS_OP_FLUSH:
		e->atomic = atomic_of(wr, pos);
		return 0;
	case DDPS_OP_READ:
		return find_sink(r, e, wr->sge);
	case DDPS_OP_BIND:
		e->bind = wr->bind;
		if (wr->bind.reserved ||
		    !ddps_stag_is_window(r->pd, wr->bind.window, wr->bind.access))
			return DDPS_E_INVAL;
		wr->bind.window->pending++;
		return 0;
	default:
		return 0;
	}
}

/* A place for one more, the limit aside. */
static int make_sq_room(struct ddps_rdmap *r)
{
	int err;

	if (r->sq.head == r->sq.tail)
		r->sq.head = r->sq.next = r->sq.tail = ddps_wq_first(&r->sq.mem, r->sq.tail);
	if (r->sq.tail - r->sq.head < r->sq.mem.size)
		return 0;
	err = ddps_wq_grow(&r->sq.mem, sizeof(struct ddps_sqe), r->max_sge, r->sq.head, r->sq.tail);
	if (!err && r->cur == DDPS_CUR_SQ) /* the message in progress has moved, too */
		r->msg.sge = ddps_sq_sge(r, r->sq.next);
	return err;
}

int ddps_any_post_send(struct ddps_rdmap *r, const struct ddps_send_wr *wr)
{
	const struct op_form *form = get_op_form(wr->op);
	uint64_t pos, len, losses;
	struct ddps_sqe *e;
	int err;

	if (r->straight_only)
		return DDPS_E_STATE;
	if (form && form->ext && /* [7306-1.1-1] */
	    (!r->rfc7306 || (wr->op == DDPS_OP_SEND_IMM && !r->send_imm) ||
	     (form->flush && !r->flush)))
		return DDPS_E_UNSUPPORTED;
	if (!open_for(r, wr)) /* [5041-6.2.1-3] */
		return DDPS_E_STATE;
	err = check_form(r, wr);
	if (err)
		return err;
	if (r->sq.tail - r->sq.head == r->sq.depth) {
		r->met.sq_full++;
		return DDPS_E_LIMIT;
	}
	if (waits_for_peer(wr) && !r->ord)
		return DDPS_E_LIMIT;
	err = ddps_sge_check(r->pd, r->stream, wr->sge, wr->nsge,
			     ddps_op_asks(wr->op) ? DDPS_LOCAL_WRITE : 0, &len, &losses);
	if (err)
		return err;
	err = make_sq_room(r);
	if (err)
		return err;
	pos = r->sq.tail;
	e = ddps_sq_at(r, pos);
	*e = (struct ddps_sqe){
		.wr_id = wr->wr_id,
		.to = wr->to,
		.losses = losses,
		.len = (uint32_t)len,
		.stag = wr->stag,
		.nsge = wr->nsge,
		.flags = wr->flags,
		.op = wr->op,
		.plain = (wr->op == DDPS_OP_SEND || wr->op == DDPS_OP_WRITE) &&
			 !(wr->flags & DDPS_WR_PLACED),
	};
	if (wr->op != DDPS_OP_SEND && wr->op != DDPS_OP_WRITE) {
		err = fill_sqe(r, e, wr, pos);
		if (err)
			return err;
	}
	if (wr->nsge)
		memcpy(ddps_sq_sge(r, pos), wr->sge, wr->nsge * sizeof *wr->sge);
	r->sq.tail++;
	if (form->local)
		ddps_sq_local_now(r, pos);
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
	if ((e->flags & DDPS_WR_FENCE) && r->reads_out) /* none, once it is past its fence */
		return false;
	return e->plain || !(ddps_op_asks(e->op) || e->asking) ||
	       (r->reads_out < r->ord /* [5040-6.1-7] */ && r->reads_out < r->reads_max);
}

/* The message that is next for @e. */
static enum ddps_opcode next_opcode(const struct ddps_sqe *e)
{
	unsigned flags = e->flags;

	if (e->asking)
		return DDPS_OP_WIRE_READ_REQ;
	switch (e->op) {
	case DDPS_OP_WRITE:
		return DDPS_OP_WIRE_WRITE;
	case DDPS_OP_READ:
		return DDPS_OP_WIRE_READ_REQ;
	case DDPS_OP_FETCH_ADD:
	case DDPS_OP_CMP_SWAP:
	case DDPS_OP_ATOMIC_WRITE:
	case DDPS_OP_FLUSH:
		return DDPS_OP_WIRE_ATOMIC_REQ;
	case DDPS_OP_WRITE_IMM:
		if (!e->first_cut)
			return DDPS_OP_WIRE_WRITE;
		/* fall through */
	case DDPS_OP_IMM:
		return flags & DDPS_WR_SOLICITED ? DDPS_OP_WIRE_IMM_SE : DDPS_OP_WIRE_IMM;
	case DDPS_OP_SEND_IMM:
		if (!e->first_cut)
			return DDPS_OP_WIRE_IMM;
		break;
	default:
		break;
	}
	if (flags & DDPS_WR_INVALIDATE)
		return flags & DDPS_WR_SOLICITED ? DDPS_OP_WIRE_SEND_SE_INV : DDPS_OP_WIRE_SEND_INV;
	return flags & DDPS_WR_SOLICITED ? DDPS_OP_WIRE_SEND_SE : DDPS_OP_WIRE_SEND;
}

void ddps_sq_begin(struct ddps_rdmap *r, struct ddps_sqe *e)
{
	enum ddps_opcode op = next_opcode(e);
	struct ddps_ddp_msg *m = &r->msg;

	*m = (struct ddps_ddp_msg){
		.hdr = { .ulp = ddps_rdmap_ctrl(op) },
		.sge = ddps_sq_sge(r, r->sq.next),
		.nsge = e->nsge,
		.len = e->len,
	};
	if (op == DDPS_OP_WIRE_WRITE) {
		m->hdr.tagged = true;
		m->hdr.stag = e->stag;
		m->hdr.to = e->to;
	} else {
		/* Zero but for Invalidate [7306-4.1-1] */
		m->hdr.ulp_word = e->flags & DDPS_WR_INVALIDATE ? e->stag : 0;
		m->hdr.qn = ddps_op_asks(e->op) || e->asking ? DDPS_QN_READ : DDPS_QN_SEND;
		m->hdr.msn = r->tx_msn[m->hdr.qn]++; /* [5041-4.3-10] [5041-4.3-12] */
		if (!e->asking)
			e->msn = m->hdr.msn;
	}
	r->cur = DDPS_CUR_SQ;
}

/* The pieces that [off, off + len) touches must still be ours to use. */
static int check_source_again(struct ddps_rdmap *r, const struct ddps_sqe *e, uint64_t off,
			      uint64_t len, struct ddps_fault *f)
{
	unsigned need = ddps_op_asks(e->op) ? DDPS_LOCAL_WRITE : 0;
	const struct ddps_sge *sge = ddps_sq_sge(r, r->sq.next);
	enum ddps_stag_verdict v;
	uint64_t at = 0;

	for (uint32_t i = 0; i < e->nsge && at < off + len; at += sge[i++].len) {
		if (at + sge[i].len <= off)
			continue;
		v = ddps_stag_check_local(r->pd, r->stream, &sge[i], need);
		if (v) /* [5040-7.1-2] */
			return ddps_fault_set(f, DDPS_E_ACCESS, DDPS_TERM_RDMAP_LOCAL,
					      "posted work request, local key 0x%08" PRIx32 ": %s",
					      sge[i].lkey, ddps_stag_verdict_text(v));
	}
	if (e->losses == DDPS_LOSSES_BAD)
		return ddps_fault_set(
			f, DDPS_E_ACCESS, DDPS_TERM_RDMAP_LOCAL,
			"posted work request: its memory was not its own when posted");
	return 0;
}

static int source_valid(struct ddps_rdmap *r, const struct ddps_sqe *e, uint64_t off, uint64_t len,
			struct ddps_fault *f)
{
	return e->losses == ddps_stag_losses(r->pd->table) ? 0
							   : check_source_again(r, e, off, len, f);
}

/* The whole of a message that carries nothing but RDMAP's header.  Return: its length; 0: it is
 * a Send or Write. */
static size_t header_only(const struct ddps_rdmap *r, const struct ddps_sqe *e,
			  uint8_t out[DDPS_AREQ_LEN])
{
	struct ddps_rreq q;

	switch (ddps_rdmap_opcode(r->msg.hdr.ulp)) {
	case DDPS_OP_WIRE_READ_REQ:
		q = (struct ddps_rreq){ 0 };
		if (!e->asking)
			q = (struct ddps_rreq){
				.sink_stag = e->sink_stag,
				.sink_to = e->sink_to,
				.size = e->len,
				.src_stag = e->stag,
				.src_to = e->to,
			};
		ddps_rreq_encode(&q, out);
		return DDPS_RREQ_LEN;
	case DDPS_OP_WIRE_ATOMIC_REQ:
		ddps_areq_encode(&e->atomic, out);
		return DDPS_AREQ_LEN;
	case DDPS_OP_WIRE_IMM:
	case DDPS_OP_WIRE_IMM_SE:
		memcpy(out, e->imm, DDPS_IMM_LEN); /* [7306-6.3-6] */
		return DDPS_IMM_LEN;
	default:
		return 0;
	}
}

/* Whether a Read has to follow @e, all of which is cut: not if the request behind it has one that
 * proves as much.  Some do have one, or a queue that is never empty would never be confirmed. */
static bool asks_now(struct ddps_rdmap *r, struct ddps_sqe *e)
{
	uint64_t behind = r->sq.next + 1;

	if (!(e->flags & DDPS_WR_PLACED) || e->asking)
		return false;
	e->covered = r->covered < COVERED_MAX && behind != r->sq.tail &&
		     ddps_sq_at(r, behind)->flags & DDPS_WR_PLACED;
	r->covered = e->covered ? r->covered + 1 : 0;
	e->asking = !e->covered;
	return e->asking;
}

/* Whether there is another message to come of @e. */
static bool has_more_messages(struct ddps_rdmap *r, struct ddps_sqe *e)
{
	if ((e->op == DDPS_OP_WRITE_IMM || e->op == DDPS_OP_SEND_IMM) && !e->first_cut) {
		e->first_cut = true;
		return true;
	}
	if (asks_now(r, e))
		return true;
	/* Counted as outstanding before it leaves: the response may be quick. */
	if (ddps_op_asks(e->op) || e->asking)
		ddps_read_sent(r, r->sq.next);
	return false;
}

/* The last segment of a message was cut. */
static void message_out(struct ddps_rdmap *r, struct ddps_sqe *e)
{
	r->cur = DDPS_CUR_NONE;
	if (!e->plain && has_more_messages(r, e))
		return;
	e->sent = true;
	r->sq.next++;
}

int ddps_sq_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu, struct ddps_fault *f)
{
	struct ddps_sqe *e = ddps_sq_at(r, r->sq.next);
	uint8_t body[DDPS_AREQ_LEN];
	uint64_t used;
	size_t len;
	int err;

	if (r->cur == DDPS_CUR_NONE)
		ddps_sq_begin(r, e);
	len = header_only(r, e, body);
	used = len ? 0 : ddps_ddp_room(&r->msg, mulpdu);
	err = e->asking ? 0
			: source_valid(r, e, r->msg.sent, ddps_op_asks(e->op) ? e->len : used, f);
	if (err) {
		e->status = DDPS_WC_LOCAL_ACCESS;
		return err;
	}
	e->last_seg = r->tx_pulled + 1;
	if (len) {
		r->msg.hdr.last = true;
		ddps_tx_control(seg, &r->msg.hdr, body, len);
		message_out(r, e);
	} else if (ddps_ddp_cut(&r->msg, seg, mulpdu)) {
		message_out(r, e);
	}
	return 0;
}
