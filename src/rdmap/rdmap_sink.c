/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA Read, requester's side: outstanding Reads (and atomics) and their responses. */
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>

/* Of those that have left. */
static bool waiting(const struct ddps_sqe *e)
{
	return (ddps_op_asks(e->op) || e->asking) && !e->done;
}

void ddps_read_sent(struct ddps_rdmap *r, uint64_t pos)
{
	if (r->reads_out == (r->rtr_read_out ? 1 : 0))
		r->read_pos = pos;
	r->reads_out++;
}

struct ddps_sqe *ddps_read_oldest(struct ddps_rdmap *r)
{
	if (!r->reads_out || r->rtr_read_out)
		return NULL;
	return ddps_sq_at(r, r->read_pos);
}

/* Step on to the next one that waits; each SQ position is passed once. */
static void advance_read(struct ddps_rdmap *r)
{
	r->rresp_got = 0;
	if (!--r->reads_out)
		return;
	while (!waiting(ddps_sq_at(r, r->read_pos)))
		r->read_pos++;
}

/* A Send or Write that nobody will confirm.  What is behind it goes out, and must not overtake it: a
 * message that says that a Write is there comes after that Write (RFC 5040 5.5). */
static bool leaves_yet(const struct ddps_sqe *e)
{
	return !ddps_op_asks(e->op) && !e->asking && !e->sent;
}

void ddps_read_flush(struct ddps_rdmap *r)
{
	for (uint64_t pos = r->sq.head; pos != r->sq.tail; pos++) {
		struct ddps_sqe *e = ddps_sq_at(r, pos);

		if (!ddps_sqe_waits(e) || e->done)
			continue;
		e->status = DDPS_WC_FLUSHED;
		if (leaves_yet(e)) {
			e->flags &= ~DDPS_WR_PLACED;
		} else {
			e->done = true;
			e->sent = true; /* no more of it goes out: what is being cut leaves yet */
		}
	}
	r->reads_out = 0;
	r->rtr_read_out = false;
	r->rresp_got = 0;
}

static int mismatch(const struct ddps_rx_seg *s, enum ddps_term_code error, uint32_t stag,
		    uint64_t to, uint64_t left, struct ddps_fault *f)
{
	return ddps_fault_set(f, DDPS_E_PROTOCOL, error,
			      "Read Response: %zu octets%s to STag 0x%08" PRIx32 ", TO 0x%" PRIx64
			      "; expected 0x%08" PRIx32 ", 0x%" PRIx64 ", %" PRIu64 " octets left",
			      s->pay_len, s->h.last ? " (last)" : "", s->h.stag, s->h.to, stag, to,
			      left);
}

/* [5040-5.2.2-9]: only the response to the oldest Read, without a gap, of the size asked.
 */
int ddps_rresp_check(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	const struct ddps_sqe *e = ddps_read_oldest(r);
	bool sink = e && e->op == DDPS_OP_READ; /* else nothing was asked for but a response */
	uint64_t len = sink ? e->len : 0, left = len - r->rresp_got;
	uint64_t to = (sink ? e->sink_to : 0) + r->rresp_got;
	uint32_t stag = sink ? e->sink_stag : 0;
	enum ddps_stag_verdict v;
	int err;

	/* Responses come in the order of the requests, those of atomics too. */
	if (!r->reads_out || (e && !ddps_sqe_read(e)))
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_RDMAP_OPCODE,
				      "Read Response without an outstanding Read");
	/* A zero-length message has no STag and TO to look at [5041-5.2-11]. */
	if (s->pay_len || !s->h.last || r->rresp_got) {
		if (s->h.stag != stag)
			return mismatch(s, DDPS_TERM_DDP_STAG, stag, to, left, f);
		if (s->h.to != to)
			return mismatch(s, DDPS_TERM_DDP_BOUNDS, stag, to, left, f);
	}
	if (s->pay_len > left || (s->h.last && s->pay_len != left))
		return mismatch(s, DDPS_TERM_DDP_BOUNDS, stag, to, left, f);
	if (!s->pay_len)
		return 0;
	v = ddps_stag_check_local(r->pd, r->stream, ddps_sq_sge(r, r->read_pos), DDPS_LOCAL_WRITE);
	if (!v)
		return 0;
	err = ddps_ddp_stag_fault(v, &s->h, s->pay_len, f);
	f->read_status = DDPS_WC_LOCAL_ACCESS;
	return err;
}

int ddps_rresp_target(struct ddps_rdmap *r, const struct ddps_rx_seg *s, size_t off,
		      struct iovec *iov, int max)
{
	return ddps_sge_iov(ddps_sq_sge(r, r->read_pos), 1, r->rresp_got + off, s->pay_len - off,
			    iov, max);
}

/* So has all that this response was to confirm. */
static void complete_read(struct ddps_rdmap *r)
{
	ddps_sq_at(r, r->read_pos)->done = true; /* [5040-5.5-23] */
	for (uint64_t pos = r->read_pos; pos != r->sq.head && ddps_sq_at(r, pos - 1)->covered;)
		ddps_sq_at(r, --pos)->done = true;
}

void ddps_read_done(struct ddps_rdmap *r)
{
	if (r->rtr_read_out)
		r->rtr_read_out = false; /* swallowed */
	else
		complete_read(r);
	advance_read(r);
	r->poke = true; /* an ORD slot, perhaps a fence */
	ddps_sq_complete(r);
	ddps_rdmap_check_drained(r);
}

int ddps_rresp_deliver(struct ddps_rdmap *r, const struct ddps_rx_seg *s, struct ddps_fault *f)
{
	(void)s;
	(void)f;
	if (r->reads_out) /* else the peer's half-close has ended it between two segments */
		ddps_read_done(r);
	return 0;
}
