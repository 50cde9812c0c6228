/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive queue: posting, inbound Sends and Immediate Data, completions. */
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>
#include <string.h>

static struct ddps_rqe *rq_head(struct ddps_rdmap *r)
{
	return ddps_rq_at(r, r->rq.head);
}

/* The oldest one is the application's again. */
static void rq_pop(struct ddps_rdmap *r)
{
	r->rq.head++;
	if (r->srq)
		r->srq->bound--;
}

int ddps_any_post_recv(struct ddps_rdmap *r, uint64_t wr_id, const struct ddps_sge *sge,
		       uint32_t nsge)
{
	uint64_t len, losses;
	int err;

	if (r->state > DDPS_RS_RUN || r->straight_only)
		return DDPS_E_STATE;
	if (r->srq || nsge > r->rq.max_sge || (nsge && !sge))
		return DDPS_E_INVAL;
	if (r->rq.tail - r->rq.head == r->rq.depth) {
		r->met.rq_full++;
		return DDPS_E_LIMIT;
	}
	err = ddps_sge_check(r->pd, r->stream, sge, nsge, DDPS_LOCAL_WRITE, &len, &losses);
	if (err)
		return err;
	if (r->rq.head == r->rq.tail)
		r->rq.head = r->rq.tail = ddps_wq_first(&r->rq.mem, r->rq.tail);
	if (r->rq.tail - r->rq.head == r->rq.mem.size) {
		err = ddps_wq_grow(&r->rq.mem, sizeof(struct ddps_rqe), r->rq.max_sge, r->rq.head,
				   r->rq.tail);
		if (err)
			return err;
	}
	*ddps_rq_at(r, r->rq.tail) = (struct ddps_rqe){
		.wr_id = wr_id,
		.len = len,
		.losses = losses,
		.nsge = nsge,
	};
	if (nsge)
		memcpy(ddps_rq_sge(r, r->rq.tail), sge, nsge * sizeof *sge);
	r->rq.tail++;
	ddps_rdmap_unstall(r);
	return 0;
}

/* The pieces that the segment touches must still be ours to write. */
static int check_sink_again(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	const struct ddps_sge *sge = ddps_rq_sge(r, r->rq.head);
	uint64_t at = 0, off = s->h.mo, end = off + s->pay_len;
	enum ddps_stag_verdict v;
	int err;

	for (uint32_t i = 0; i < rq_head(r)->nsge && at < end; at += sge[i++].len) {
		if (at + sge[i].len <= off)
			continue;
		v = ddps_stag_check_local(r->pd, r->stream, &sge[i], DDPS_LOCAL_WRITE);
		if (!v)
			continue;
		/* The buffer was validated when it was posted; now it cannot be written:
		 * the fault is on this side. */
		err = ddps_fault_set(f, DDPS_E_ACCESS, DDPS_TERM_DDP_LOCAL,
				     "posted receive, local key 0x%08" PRIx32 ": %s", sge[i].lkey,
				     ddps_stag_verdict_text(v));
		f->recv_status = DDPS_WC_LOCAL_ACCESS;
		return err;
	}
	return 0;
}

static int sink_valid(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	return rq_head(r)->losses == ddps_stag_losses(r->pd->table) ? 0 : check_sink_again(r, s, f);
}

/*
 * A buffer for the message that is due: 0, whether there is one or not, or DDPS_LLP_HOLD.  One of
 * a shared queue is bound now, and stays so whatever the segment turns out to be.
 */
static int find_buffer(struct ddps_rdmap *r)
{
	enum ddps_srq_answer a;

	if (r->rq.head != r->rq.tail)
		return 0;
	a = r->srq ? ddps_srq_take(r) : DDPS_SRQ_EMPTY;
	if (a == DDPS_SRQ_TAKEN)
		return 0;
	r->over_share = a == DDPS_SRQ_SHARE;
	if (r->over_share) /* [5042-6.4.3.1-1] [5040-8.1.2-8] */
		return DDPS_LLP_HOLD;
	/* Once drained no buffer will come any more, and the RFC's answer is the right one. */
	if (r->no_recv != DDPS_NO_RECV_STALL || r->drained)
		return 0;
	if (r->srq)
		ddps_srq_wait(r);
	return DDPS_LLP_HOLD; /* [5041-7.1-5] the LLP's flow control makes up for it */
}

int ddps_recv_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	/* The RTR Send takes MSN 1 but no buffer of the application. */
	bool rtr = s->rtr == DDPS_RTR_SEND, have;
	const struct ddps_ddp_queue *q = &r->rxq[DDPS_QN_SEND];
	int err;

	if (!rtr && s->h.msn == q->msn && find_buffer(r))
		return DDPS_LLP_HOLD;
	have = r->rq.head != r->rq.tail;
	err = ddps_ddp_check_untagged(q, &s->h, s->pay_len, have || rtr, have ? rq_head(r)->len : 0,
				      f);
	if (err && f->triple.code == 0x05)
		f->recv_status = DDPS_WC_LENGTH;
	if (err || !s->pay_len)
		return err;
	return sink_valid(r, s, f);
}

int ddps_recv_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		     struct iovec *iov, int max)
{
	return ddps_sge_iov(ddps_rq_sge(r, r->rq.head), rq_head(r)->nsge, s->h.mo + (uint64_t)off,
			    s->pay_len - off, iov, max);
}

/* It takes a receive of whatever size: the octets go to the completion [7306-6.3-3]. */
int ddps_imm_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	if (s->h.msn == r->rxq[DDPS_QN_SEND].msn && find_buffer(r))
		return DDPS_LLP_HOLD;
	return ddps_fixed_check(&r->rxq[DDPS_QN_SEND], s, r->rq.head != r->rq.tail, DDPS_IMM_LEN,
				"Immediate Data", f);
}

int ddps_imm_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		    struct iovec *iov, int max)
{
	(void)max;
	iov->iov_base = r->imm_buf + s->h.mo + off;
	iov->iov_len = s->pay_len - off;
	return 1;
}

static int invalidate_stag(struct ddps_rdmap *r, uint32_t stag, struct ddps_fault *f)
{
	enum ddps_stag_verdict v = ddps_stag_invalidate(r->pd, r->stream, stag);

	if (!v) {
		if (r->up->revoked)
			r->up->revoked(r->user);
		return 0;
	}
	return ddps_fault_set(f, DDPS_E_ACCESS, DDPS_TERM_RDMAP_PROTECT_INVALIDATE,
			      "Invalidate of STag 0x%08" PRIx32 ": %s", stag,
			      ddps_stag_verdict_text(v));
}

/* Whether the Immediate Data just received belongs to the Send that follows. */
static bool is_ahead(const struct ddps_rdmap *r)
{
	for (unsigned i = DDPS_SEND_IMM_OCTETS; i < DDPS_IMM_LEN; i++)
		if (r->imm_buf[i] != DDPS_AHEAD_OCTET)
			return false;
	return r->send_imm;
}

/* No receive is taken for it. */
static int keep_ahead(struct ddps_rdmap *r, struct ddps_fault *f)
{
	if (r->ahead)
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPERATION,
				      "Immediate Data for a Send twice");
	memcpy(r->ahead_imm, r->imm_buf, sizeof r->ahead_imm);
	r->ahead = true;
	return 0;
}

int ddps_recv_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	struct ddps_ddp_queue *q = &r->rxq[DDPS_QN_SEND];
	uint8_t op = ddps_rdmap_opcode(s->h.ulp);
	struct ddps_wc wc = { .op = DDPS_OP_RECV, .len = (uint32_t)q->got };
	int err;

	q->msn++;
	q->got = 0;
	if (s->rtr)
		return 0;
	wc.wr_id = rq_head(r)->wr_id;
	wc.solicited = op == DDPS_OP_WIRE_SEND_SE || op == DDPS_OP_WIRE_SEND_SE_INV ||
		       op == DDPS_OP_WIRE_IMM_SE;
	wc.has_imm = op == DDPS_OP_WIRE_IMM || op == DDPS_OP_WIRE_IMM_SE;
	if (wc.has_imm) {
		if (is_ahead(r))
			return keep_ahead(r, f);
		memcpy(wc.imm, r->imm_buf, sizeof wc.imm);
		wc.len = 0; /* nothing in the buffer */
	} else if (r->ahead) {
		r->ahead = false;
		wc.has_imm = true;
		memcpy(wc.imm, r->ahead_imm, sizeof wc.imm);
	}
	wc.invalidated = op == DDPS_OP_WIRE_SEND_INV || op == DDPS_OP_WIRE_SEND_SE_INV;
	if (wc.invalidated) { /* before the application sees it [5040-5.3-16]
				 [5040-5.3-17] */
		err = invalidate_stag(r, s->h.ulp_word, f);
		if (err)
			return err;
		wc.inv_stag = s->h.ulp_word;
	}
	rq_pop(r);
	r->up->complete(r->user, true, &wc);
	return 0;
}

void ddps_rq_flush(struct ddps_rdmap *r)
{
	while (r->rq.head != r->rq.tail) {
		const struct ddps_rqe *e = rq_head(r);
		struct ddps_wc wc = {
			.wr_id = e->wr_id,
			.op = DDPS_OP_RECV,
			.status = e->status ? e->status : DDPS_WC_FLUSHED,
		};

		rq_pop(r);
		r->up->complete(r->user, true, &wc);
	}
}
