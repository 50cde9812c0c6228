/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inbound segments: one path of checks for both ways in (whole segments, direct
 * placement), which changes nothing; then Placement; then Delivery in the order of the
 * source.
 */
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>
#include <string.h>

/* One row per opcode (RFC 5040 figure 4). */
struct rx_op {
	const char *name; /* NULL: not assigned */
	bool tagged, direct;
	bool ext; /* RFC 7306 */
	uint8_t qn, ctx;
	int (*check)(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
	int (*target)(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		      struct iovec *iov, int max);
	/* NULL: nothing to do at Delivery, which then needs no order. */
	int (*deliver)(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f);
};

static int write_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	uint8_t *at;

	if (!s->pay_len) /* [5041-5.2-11] */
		return 0;
	if (!(r->may & DDPS_REMOTE_WRITE))
		return ddps_ddp_stag_fault(DDPS_STAG_ACCESS, &s->h, s->pay_len, f);
	return ddps_ddp_check_tagged(r->pd, r->stream, &s->h, s->pay_len, &at, f);
}

static int write_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
			struct iovec *iov, int max)
{
	struct ddps_fault f;
	uint8_t *at;
	int err = ddps_ddp_check_tagged(r->pd, r->stream, &s->h, s->pay_len, &at, &f);

	(void)max;
	if (err)
		return err;
	iov->iov_base = at + off;
	iov->iov_len = s->pay_len - off;
	return 1;
}

#define SEND_OP(text)                                                                              \
	{                                                                                          \
		.name = (text), .qn = DDPS_QN_SEND, .ctx = DDPS_CTX_SEND, .direct = true,          \
		.check = ddps_recv_check, .target = ddps_recv_target,                              \
		.deliver = ddps_recv_deliver,                                                      \
	}

#define IMM_OP(text)                                                                               \
	{                                                                                          \
		.name = (text), .ext = true, .qn = DDPS_QN_SEND, .ctx = DDPS_CTX_SEND,             \
		.check = ddps_imm_check, .target = ddps_imm_target, .deliver = ddps_recv_deliver,  \
	}

static const struct rx_op ops[16] = {
	[DDPS_OP_WIRE_WRITE] = { .name = "RDMA Write",
				 .tagged = true,
				 .direct = true,
				 .ctx = DDPS_CTX_TAGGED,
				 .check = write_check,
				 .target = write_target },
	[DDPS_OP_WIRE_READ_REQ] = { .name = "RDMA Read Request",
				    .qn = DDPS_QN_READ,
				    .ctx = DDPS_CTX_READ,
				    .check = ddps_rreq_check,
				    .target = ddps_rreq_target,
				    .deliver = ddps_rreq_deliver },
	[DDPS_OP_WIRE_READ_RESP] = { .name = "RDMA Read Response",
				     .tagged = true,
				     .direct = true,
				     .ctx = DDPS_CTX_TAGGED,
				     .check = ddps_rresp_check,
				     .target = ddps_rresp_target,
				     .deliver = ddps_rresp_deliver },
	[DDPS_OP_WIRE_SEND] = SEND_OP("Send"),
	[DDPS_OP_WIRE_SEND_INV] = SEND_OP("Send with Invalidate"),
	[DDPS_OP_WIRE_SEND_SE] = SEND_OP("Send with SE"),
	[DDPS_OP_WIRE_SEND_SE_INV] = SEND_OP("Send with SE and Invalidate"),
	[DDPS_OP_WIRE_TERMINATE] = { .name = "Terminate", .qn = DDPS_QN_TERM },
	[DDPS_OP_WIRE_IMM] = IMM_OP("Immediate Data"),
	[DDPS_OP_WIRE_IMM_SE] = IMM_OP("Immediate Data with SE"),
	[DDPS_OP_WIRE_ATOMIC_REQ] = { .name = "Atomic Request",
				      .ext = true,
				      .qn = DDPS_QN_READ,
				      .ctx = DDPS_CTX_READ,
				      .check = ddps_areq_check,
				      .target = ddps_rreq_target,
				      .deliver = ddps_areq_deliver },
	[DDPS_OP_WIRE_ATOMIC_RESP] = { .name = "Atomic Response",
				       .ext = true,
				       .qn = DDPS_QN_ATOMIC,
				       .ctx = DDPS_CTX_ATOMIC,
				       .check = ddps_aresp_check,
				       .target = ddps_aresp_target,
				       .deliver = ddps_aresp_deliver },
};

static const struct rx_op *get_rx_op(const struct ddps_rx_seg *s)
{
	return &ops[ddps_rdmap_opcode(s->h.ulp)];
}

/* ---- checks ---- */

static bool is_ctx_open(const struct ddps_rdmap *r, unsigned ctx)
{
	return r->ctx_open >> ctx & 1;
}

static bool is_terminate(const struct ddps_rx_seg *s)
{
	return ddps_rdmap_opcode(s->h.ulp) == DDPS_OP_WIRE_TERMINATE;
}

/* Version, opcode, and whether the opcode fits T and QN. */
static int check_rdmap(const struct ddps_rdmap *r, const struct ddps_rx_seg *s,
		       struct ddps_fault *f)
{
	const struct rx_op *op = get_rx_op(s);

	if (!ddps_rdmap_rv_ok(s->h.ulp)) /* [5040-7.2-3] */
		return ddps_fault_set(f, DDPS_E_REVISION, DDPS_TERM_RDMAP_VERSION,
				      "RDMAP control octet 0x%02x", s->h.ulp);
	/* [5040-7.2-2] [7306-8.2-2] */
	if (!op->name || (op->ext && !r->rfc7306) || op->tagged != s->h.tagged)
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPCODE,
				      "opcode 0x%x in %s segment", s->h.ulp & 0x0Fu,
				      s->h.tagged ? "a tagged" : "an untagged");
	if (s->h.tagged)
		return 0;
	/* [5041-7.1-2] */
	if (s->h.qn >= DDPS_QN_COUNT || (s->h.qn == DDPS_QN_ATOMIC && !r->rfc7306))
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_DDP_QUEUE, "queue %" PRIu32,
				      s->h.qn);
	if (s->h.qn != op->qn)
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPCODE,
				      "%s on queue %" PRIu32, op->name, s->h.qn);
	return 0;
}

/* Split the segment and check all that its header alone can tell. */
static int parse_segment(struct ddps_rdmap *r, struct ddps_rx_seg *s, const uint8_t *seg,
			 size_t have, size_t seg_len, struct ddps_fault *f)
{
	size_t avail = have < seg_len ? have : seg_len;
	size_t hdr = avail ? ddps_ddp_hdr_len(*seg) : 0;
	int n = ddps_ddp_decode(&s->h, seg, avail);

	s->seg_len = seg_len;
	if (n != DDPS_E_TRUNCATED && avail >= hdr) {
		s->hdr_len = hdr;
		if (avail >= sizeof s->raw) /* what is behind the header does not matter */
			memcpy(s->raw, seg, sizeof s->raw);
		else
			memcpy(s->raw, seg, hdr);
	}
	if (n == DDPS_E_REVISION) {
		bool tagged = hdr == DDPS_DDP_TAGGED_LEN;

		return ddps_fault_set(f, n,
				      tagged ? DDPS_TERM_DDP_TAGGED_VERSION
					     : DDPS_TERM_DDP_UNTAGGED_VERSION,
				      "DDP control octet 0x%02x", *seg);
	}
	if (n < 0) /* no DDP code exists for it */
		return ddps_fault_set(f, n,
				      r->llp_mpa_codes ? DDPS_TERM_MPA_MARKER : DDPS_TERM_DDP_LOCAL,
				      "segment of %zu octets is shorter than its header", seg_len);
	s->pay_len = seg_len - hdr;
	return check_rdmap(r, s, f);
}

/* Which RTR the first message is, if it is one that was flagged. */
static unsigned rtr_of(const struct ddps_rdmap *r, const struct ddps_rx_seg *s)
{
	unsigned rtr = 0;
	struct ddps_rreq q;

	if (!r->expect_rtr || !s->h.last)
		return 0;
	switch (ddps_rdmap_opcode(s->h.ulp)) {
	case DDPS_OP_WIRE_WRITE:
		rtr = s->pay_len ? 0 : DDPS_RTR_WRITE;
		break;
	case DDPS_OP_WIRE_SEND:
		rtr = s->pay_len ? 0 : DDPS_RTR_SEND;
		break;
	case DDPS_OP_WIRE_READ_REQ:
		/* never placed directly, so its octets are here */
		if (s->pay_len == DDPS_RREQ_LEN) {
			ddps_rreq_decode(&q, s->pay);
			rtr = q.size ? 0 : DDPS_RTR_READ;
		}
		break;
	default:
		break;
	}
	return rtr & r->expect_rtr;
}

/* A segment against the messages in progress. */
static int check_ctx(const struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	const struct ddps_rx_ctx *c;

	if (!is_ctx_open(r, get_rx_op(s)->ctx))
		return 0;
	c = &r->ctx[get_rx_op(s)->ctx];
	if (c->done && !s->h.tagged)
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_DDP_MSN,
				      "second message on queue %" PRIu32
				      " while the first waits for an earlier one",
				      s->h.qn);
	if (c->done || ddps_rdmap_opcode(c->seg.h.ulp) != ddps_rdmap_opcode(s->h.ulp))
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPCODE,
				      "%s before the end of %s", get_rx_op(s)->name,
				      get_rx_op(&c->seg)->name);
	if (s->h.tagged && s->h.stag != c->seg.h.stag)
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_DDP_STAG,
				      "STag 0x%08" PRIx32 " in a message for 0x%08" PRIx32,
				      s->h.stag, c->seg.h.stag);
	return 0;
}

/* Everything that stands between a segment and Placement.  Changes nothing but @s, and binds a
 * buffer of a shared receive queue. */
static int check_segment(struct ddps_rdmap *r, struct ddps_rx_seg *s, struct ddps_fault *f)
{
	int err;

	s->rtr = rtr_of(r, s);
	if (r->expect_rtr && r->rtr_strict && !s->rtr)
		return ddps_fault_set(f, DDPS_E_RTR, DDPS_TERM_MPA_RTR,
				      "first message is %s, no RTR", get_rx_op(s)->name);
	/* The queue's checks come first for untagged segments: a changed MSN is a new
	 * message before the end of the old one, and told as such. */
	if (!s->h.tagged) {
		err = get_rx_op(s)->check(r, s, f);
		return err ? err : check_ctx(r, s, f);
	}
	err = check_ctx(r, s, f);
	return err ? err : get_rx_op(s)->check(r, s, f);
}

/* ---- Delivery ---- */

/* The oldest message that is not delivered. */
static struct ddps_rx_ctx *oldest(struct ddps_rdmap *r)
{
	struct ddps_rx_ctx *best = NULL;

	for (unsigned i = 0; i < DDPS_CTX_COUNT; i++)
		if (is_ctx_open(r, i) && (!best || r->ctx[i].order < best->order))
			best = &r->ctx[i];
	return best;
}

bool ddps_rdmap_is_inside(const struct ddps_rdmap *r)
{
	bool inside = false;

	for (unsigned i = 0; i < DDPS_CTX_COUNT; i++)
		inside |= is_ctx_open(r, i) && !r->ctx[i].done;
	return inside;
}

static int fail_segment(struct ddps_rdmap *r, const struct ddps_fault *f,
			const struct ddps_rx_seg *s)
{
	bool rreq = ddps_rdmap_opcode(s->h.ulp) == DDPS_OP_WIRE_READ_REQ;

	ddps_rdmap_fail(r, f, s, rreq ? r->rreq_buf : NULL);
	return f->code;
}

/* Deliver what may be: nothing overtakes an earlier message [5041-5.4-2]. */
static int deliver_rx_message(struct ddps_rdmap *r)
{
	struct ddps_rx_ctx *c;
	struct ddps_rx_seg s;
	struct ddps_fault f;

	while (r->state == DDPS_RS_RUN && (c = oldest(r)) && c->done) {
		s = c->seg;
		r->ctx_open &= ~(1u << get_rx_op(&s)->ctx);
		if (get_rx_op(&s)->deliver(r, &s, &f))
			return fail_segment(r, &f, &s);
	}
	return r->state == DDPS_RS_RUN ? 0 : DDPS_E_CLOSED;
}

static void note_message(struct ddps_rdmap *r, const struct ddps_rx_seg *s)
{
	struct ddps_msg_stats *st = ddps_rdmap_count(r, true, ddps_rdmap_opcode(s->h.ulp));

	st->messages += s->h.last;
	st->segments++;
	st->octets += s->pay_len;
	r->waited = false;
}

static void count_received(struct ddps_rdmap *r, const struct ddps_rx_seg *s)
{
	note_message(r, s);
	if (!s->h.tagged)
		r->rxq[s->h.qn].got += s->pay_len;
	else if (ddps_rdmap_opcode(s->h.ulp) == DDPS_OP_WIRE_READ_RESP)
		r->rresp_got += s->pay_len;
}

/* Keep in mind that @s has come: of a message that is not whole, or not the next one. */
static int keep_segment(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	const struct rx_op *op = get_rx_op(s);
	struct ddps_rx_ctx *c;

	if (!r->ctx)
		r->ctx = calloc(DDPS_CTX_COUNT, sizeof *r->ctx);
	if (!r->ctx)
		return ddps_fault_set(f, DDPS_E_NOMEM, DDPS_TERM_RDMAP_LOCAL,
				      "no memory for a message in parts");
	c = &r->ctx[op->ctx];
	if (!is_ctx_open(r, op->ctx))
		c->order = r->rx_order++;
	c->seg = *s;
	c->done = s->h.last && op->deliver;
	if (!s->h.last || op->deliver)
		r->ctx_open |= 1u << op->ctx;
	else
		r->ctx_open &= ~(1u << op->ctx);
	return 0;
}

/* The payload of @s is in place. */
static int note_placed(struct ddps_rdmap *r, const struct ddps_rx_seg *s)
{
	bool alone = s->h.last && !r->ctx_open; /* a message that nothing was or is kept of */
	struct ddps_fault f;

	count_received(r, s);
	if (!alone && keep_segment(r, s, &f))
		return fail_segment(r, &f, s);
	if (r->expect_rtr) {
		r->expect_rtr = 0;
		r->up->first_message(r->user, s->rtr);
	}
	if (!alone || r->state != DDPS_RS_RUN)
		return deliver_rx_message(r);
	if (get_rx_op(s)->deliver && get_rx_op(s)->deliver(r, s, &f))
		return fail_segment(r, &f, s);
	return r->state == DDPS_RS_RUN ? 0 : DDPS_E_CLOSED;
}

/* ---- whole segments ---- */

static int place_segment(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	struct iovec iov[DDPS_SEG_IOV_MAX];
	size_t off = 0;
	int n;

	while (off < s->pay_len) {
		n = get_rx_op(s)->target(r, s, off, iov, DDPS_SEG_IOV_MAX);
		if (n <= 0)
			return ddps_fault_set(f, DDPS_E_ACCESS, DDPS_TERM_DDP_LOCAL,
					      "no place for octet %zu of the payload", off);
		for (int i = 0; i < n; off += iov[i++].iov_len)
			memcpy(iov[i].iov_base, s->pay + off, iov[i].iov_len);
	}
	return 0;
}

/* A message is counted once, however often it is shown. */
static int hold_segment(struct ddps_rdmap *r)
{
	r->met.stalls += !r->waited;
	r->met.over_share += !r->waited && r->over_share;
	r->waited = true;
	r->stalled = true;
	return DDPS_LLP_HOLD;
}

int ddps_any_receive(struct ddps_rdmap *r, const uint8_t *seg, size_t len)
{
	struct ddps_rx_seg s = { 0 };
	struct ddps_fault f;
	int err;

	if (r->straight_only)
		return DDPS_E_STATE;
	if (parse_segment(r, &s, seg, len, len, &f))
		return fail_segment(r, &f, &s);
	s.pay = seg + s.hdr_len;
	if (is_terminate(&s)) {
		note_message(r, &s);
		ddps_term_received(r, &s);
		return DDPS_E_TERMINATED;
	}
	err = check_segment(r, &s, &f);
	if (err == DDPS_LLP_HOLD)
		return hold_segment(r);
	if (err || place_segment(r, &s, &f))
		return fail_segment(r, &f, &s);
	return note_placed(r, &s);
}

/* ---- direct placement ---- */

size_t ddps_rdmap_rx_direct(void *user, const uint8_t *hdr, size_t have, size_t seg_len)
{
	struct ddps_rdmap *r = user;
	struct ddps_rx_seg *s = r->direct;
	struct ddps_fault f;

	if (!s)
		s = r->direct = malloc(sizeof *s);
	if (!s)
		return 0;
	*s = (struct ddps_rx_seg){ 0 };
	/* A fault is found again, and acted on, when the segment comes whole. */
	if (r->state != DDPS_RS_RUN || parse_segment(r, s, hdr, have, seg_len, &f) ||
	    !get_rx_op(s)->direct || !s->pay_len || check_segment(r, s, &f))
		return 0;
	return s->hdr_len;
}

int ddps_rdmap_rx_direct_iov(void *user, size_t off, struct iovec *iov, int max)
{
	struct ddps_rdmap *r = user;
	struct ddps_fault f;
	int err;

	if (r->state != DDPS_RS_RUN)
		return DDPS_E_STATE;
	if (!r->direct || off >= r->direct->pay_len)
		return DDPS_E_INVAL;
	/* Memory may have been revoked since the last octets came [5040-8.1.1-6]. */
	err = check_segment(r, r->direct, &f);
	if (!err)
		return get_rx_op(r->direct)->target(r, r->direct, off, iov, max);
	err = fail_segment(r, &f, r->direct);
	ddps_rdmap_tell(r);
	return err;
}

int ddps_rdmap_rx_direct_end(void *user)
{
	struct ddps_rdmap *r = user;
	struct ddps_rx_seg s;
	int err;

	ddps_rdmap_check(r);
	if (r->state != DDPS_RS_RUN)
		return DDPS_E_STATE;
	if (!r->direct || !r->direct->pay_len)
		return DDPS_E_INVAL;
	s = *r->direct;
	r->direct->pay_len = 0;
	err = note_placed(r, &s);
	ddps_rdmap_tell(r);
	return err;
}
