/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes out next. */
#include "common/bytes.h"
#include "rdmap/rdmap_priv.h"

static bool response_due(const struct ddps_rdmap *r)
{
	return r->irrq.count && !ddps_atomic_held(r);
}

bool ddps_rdmap_tx_ready(struct ddps_rdmap *r)
{
	if (r->state == DDPS_RS_ERROR)
		return r->term_len && !r->term_pulled;
	if (r->state != DDPS_RS_RUN)
		return false;
	return r->send_rtr || r->cur != DDPS_CUR_NONE || response_due(r) || ddps_sq_ready(r);
}

void ddps_tx_control(struct ddps_seg *seg, const struct ddps_ddp_hdr *h, const void *body,
		     size_t len)
{
	struct ddps_wbuf w = ddps_wbuf_init(seg->hdr, sizeof seg->hdr);

	w.p += ddps_ddp_encode(h, seg->hdr);
	ddps_wbuf_bytes(&w, body, len);
	seg->hdr_len = (size_t)(w.p - seg->hdr);
	seg->npay = 0;
	seg->pay_len = 0;
}

static void terminate_segment(struct ddps_rdmap *r, struct ddps_seg *seg)
{
	struct ddps_ddp_hdr h = {
		.last = true,
		.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_TERMINATE),
		.qn = DDPS_QN_TERM, /* [5040-5.4-3] */
		.msn = 1,
	};

	ddps_tx_control(seg, &h, r->term, r->term_len);
	r->term_pulled = true;
}

/* The zero-length first message of the peer-to-peer model (RFC 6581 9.2). */
static void rtr_segment(struct ddps_rdmap *r, struct ddps_seg *seg)
{
	struct ddps_ddp_hdr h = { .last = true };
	uint8_t rreq[DDPS_RREQ_LEN] = { 0 };

	switch (r->send_rtr) {
	case DDPS_RTR_WRITE:
		h.tagged = true;
		h.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_WRITE);
		ddps_tx_control(seg, &h, NULL, 0);
		break;
	case DDPS_RTR_READ:
		h.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_READ_REQ);
		h.qn = DDPS_QN_READ;
		h.msn = r->tx_msn[DDPS_QN_READ]++;
		ddps_tx_control(seg, &h, rreq, sizeof rreq);
		if (!r->peer_closed) { /* else no response can come any more */
			r->rtr_read_out = true;
			r->reads_out++;
		}
		break;
	default:
		h.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_SEND);
		h.qn = DDPS_QN_SEND;
		h.msn = r->tx_msn[DDPS_QN_SEND]++;
		ddps_tx_control(seg, &h, NULL, 0);
		break;
	}
	r->send_rtr = 0;
}

/* It looks like the RTR Write: STag and offset mean nothing without payload. */
void ddps_rdmap_nudge(struct ddps_rdmap *r)
{
	ddps_rdmap_check(r);
	if (r->state != DDPS_RS_RUN || r->send_rtr || r->cur != DDPS_CUR_NONE)
		return;
	r->send_rtr = DDPS_RTR_WRITE;
	r->poke = true;
	ddps_rdmap_tell(r);
}

/* A message once begun is finished first [5041-5.3-2]; else responses and own work take
 * turns, so that neither side's load starves the other's. */
static enum ddps_tx_cur choose_next(struct ddps_rdmap *r)
{
	bool own;

	if (r->cur != DDPS_CUR_NONE)
		return r->cur;
	own = ddps_sq_ready(r);
	if (response_due(r) && (r->rresp_turn || !own)) {
		r->rresp_turn = false;
		return DDPS_CUR_RRESP;
	}
	r->rresp_turn = true;
	return own ? DDPS_CUR_SQ : DDPS_CUR_NONE;
}

/* It is next to be handed to DDP, and is carried out here.  Not in the middle of a message. */
static bool local_next(struct ddps_rdmap *r)
{
	return r->cur == DDPS_CUR_NONE && ddps_op_local(ddps_sq_at(r, r->sq.next)->op);
}

/* Return: 1, 0: nothing, < 0: the stream has just failed. */
static int send_work(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu)
{
	struct ddps_fault f; /* filled in by whoever fails */
	enum ddps_tx_cur next;
	int err;

	if (r->send_rtr) {
		rtr_segment(r, seg);
		return 1;
	}
	while ((next = choose_next(r)) == DDPS_CUR_SQ && local_next(r)) {
		err = ddps_sq_local(r, &f);
		if (err)
			goto failed;
	}
	if (next == DDPS_CUR_NONE)
		return 0;
	if (next == DDPS_CUR_RRESP) {
		err = ddps_rresp_segment(r, seg, mulpdu, &f);
		return err ? err : 1;
	}
	err = ddps_sq_segment(r, seg, mulpdu, &f);
	if (!err)
		return 1;
failed:
	ddps_rdmap_fail(r, &f, NULL, NULL);
	return err;
}

static void count_sent(struct ddps_rdmap *r, const struct ddps_seg *seg)
{
	struct ddps_msg_stats *st = ddps_rdmap_count(r, false, ddps_rdmap_opcode(seg->hdr[1]));

	st->messages += ddps_ddp_is_last(seg->hdr[0]);
	st->segments++;
	st->octets += seg->hdr_len + seg->pay_len - ddps_ddp_hdr_len(seg->hdr[0]);
}

int ddps_any_segment(struct ddps_rdmap *r, struct ddps_seg *seg, size_t mulpdu)
{
	int got = 0;

	if (r->straight_only)
		return 0;
	r->poke = false; /* being asked is as good as telling */
	if (mulpdu < DDPS_SEG_HDR_MAX)
		return 0;
	if (r->state == DDPS_RS_RUN)
		got = send_work(r, seg, mulpdu);
	if (r->state == DDPS_RS_ERROR && ddps_rdmap_tx_ready(r)) {
		terminate_segment(r, seg);
		got = 1;
	}
	if (got <= 0)
		return 0;
	r->tx_pulled++;
	count_sent(r, seg);
	seg->final = r->cur == DDPS_CUR_NONE && r->sq.next == r->sq.tail && !r->irrq.count;
	return 1;
}

/* @n have left, which may be all that something waited for. */
static __attribute__((noinline)) void count_and_settle(struct ddps_rdmap *r, uint64_t n)
{
	bool held = r->irrq.count && ddps_atomic_held(r);

	r->tx_acked += n;
	if (r->state == DDPS_RS_RUN)
		ddps_sq_complete(r);
	if (r->state == DDPS_RS_ERROR)
		ddps_sq_flush(r, false);
	if (r->draining)
		ddps_rdmap_check_drained(r);
	if (held) { /* perhaps no longer */
		r->poke = true;
		ddps_rdmap_tell(r);
	}
}

void ddps_rdmap_tx_done(void *user, unsigned n)
{
	struct ddps_rdmap *r = user;
	uint64_t left = r->tx_pulled - r->tx_acked;

	ddps_rdmap_check(r);
	if (n < left)
		left = n;
	if (r->state == DDPS_RS_RUN && !r->draining && !r->irrq.count) {
		r->tx_acked += left; /* as nearly always */
		ddps_sq_complete(r);
		if (r->state == DDPS_RS_RUN && !r->draining)
			return;
		left = 0;
	}
	count_and_settle(r, left);
}
