/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors become Terminates here, and Terminates of the peer become errors. */
#include "rdmap/rdmap_priv.h"
#include <stdio.h>
#include <string.h>

/* RFC 5040 figure 10: whether the DDP header of the cause goes back. */
static bool wants_ddp(const struct ddps_triple *t)
{
	if (t->layer == 0)
		return t->etype != 0; /* [5040-4.8-11] */
	return t->layer == 1 && t->etype != 0;
}

/* ... and the Read Request header. */
static bool wants_rreq(const struct ddps_triple *t)
{
	return t->layer == 0 && t->etype == 1; /* [5040-4.8-13] */
}

static void build_terminate(struct ddps_rdmap *r, const struct ddps_fault *f,
			    const struct ddps_rx_seg *s, const uint8_t *rreq)
{
	struct ddps_term_msg m = { .triple = f->triple };

	if (s && s->hdr_len && wants_ddp(&f->triple)) {
		m.ddp = s->raw;
		m.ddp_len = s->hdr_len;
		m.has_len = s->seg_len <= UINT16_MAX; /* [5040-4.8-9] */
		m.seg_len = (uint16_t)s->seg_len;
		if (wants_rreq(&f->triple))
			m.rreq = rreq;
	}
	r->term_len = ddps_term_encode(&m, r->term);
}

/* The peer went over one of our limits. */
static void count_limit(struct ddps_rdmap *r, const struct ddps_triple *t,
			const struct ddps_rx_seg *s)
{
	if (!s || s->h.tagged || ddps_term_of(t) != DDPS_TERM_DDP_NO_BUFFER)
		return;
	r->met.no_buffer += s->h.qn == DDPS_QN_SEND;
	r->met.ird_overrun += s->h.qn == DDPS_QN_READ;
}

static void mark_work(struct ddps_rdmap *r, const struct ddps_fault *f)
{
	struct ddps_sqe *read = ddps_read_oldest(r);

	if (f->recv_status && r->rq.head != r->rq.tail)
		ddps_rq_at(r, r->rq.head)->status = f->recv_status;
	if (f->read_status && read)
		read->status = f->read_status;
}

void ddps_rdmap_fail(struct ddps_rdmap *r, const struct ddps_fault *f, const struct ddps_rx_seg *s,
		     const uint8_t *rreq)
{
	struct ddps_term t = { .triple = f->triple, .code = f->code };

	if (r->state > DDPS_RS_RUN) /* [5040-7.1-5] [5041-7.1-20] */
		return;
	count_limit(r, &f->triple, s);
	build_terminate(r, f, s, rreq);
	memcpy(t.wire, r->term, sizeof t.wire);
	memcpy(t.text, f->text, sizeof t.text);
	mark_work(r, f);
	r->state = DDPS_RS_ERROR;
	r->poke = true;
	ddps_rdmap_stop(r);
	r->up->terminated(r->user, &t, false);
}

/* ---- received ---- */

/*
 * Which work request the returned headers name.  soft-iWARP puts a wrong MSN there for
 * Reads, but its copy of the Read Request is right.
 */
static bool is_wr_named(const struct ddps_sqe *e, const struct ddps_term_msg *m,
			const struct ddps_ddp_hdr *h)
{
	struct ddps_rreq q;

	if (!e->last_seg)
		return false;
	if (h->tagged)
		return e->flags & DDPS_WR_PLACED && !e->done && h->stag == e->stag &&
		       h->to - e->to < e->len;
	if (e->op == DDPS_OP_SEND || e->op == DDPS_OP_IMM || e->op == DDPS_OP_SEND_IMM ||
	    e->first_cut)
		return h->qn == DDPS_QN_SEND && h->msn == e->msn;
	if (!ddps_op_asks(e->op) || e->done || h->qn != DDPS_QN_READ)
		return false;
	if (!m->swapped)
		return h->msn == e->msn;
	if (!m->rreq || e->op != DDPS_OP_READ)
		return false;
	ddps_rreq_decode(&q, m->rreq);
	return q.src_stag == e->stag && q.src_to == e->to && q.sink_to == e->sink_to;
}

/* It names none: of those that wait to be confirmed it can only be about the first. */
static void blame_oldest(struct ddps_rdmap *r, const struct ddps_term_msg *m)
{
	for (uint64_t pos = r->sq.head; pos != r->sq.tail; pos++) {
		struct ddps_sqe *e = ddps_sq_at(r, pos);

		if ((e->flags & DDPS_WR_PLACED || e->op == DDPS_OP_FLUSH) && e->last_seg &&
		    !e->done) {
			e->status = DDPS_WC_REMOTE;
			r->blame = m->triple;
			return;
		}
	}
}

static void blame(struct ddps_rdmap *r, const struct ddps_term_msg *m)
{
	struct ddps_ddp_hdr h;

	if (!m->ddp) {
		blame_oldest(r, m);
		return;
	}
	/* It is whole; in another version the fields are taken for where they are in ours. */
	(void)ddps_ddp_decode(&h, m->ddp, m->ddp_len);
	for (uint64_t pos = r->sq.head; pos != r->sq.tail; pos++) {
		struct ddps_sqe *e = ddps_sq_at(r, pos);

		if (is_wr_named(e, m, &h)) {
			e->status = DDPS_WC_REMOTE;
			r->blame = m->triple;
			return;
		}
	}
}

void ddps_term_received(struct ddps_rdmap *r, const struct ddps_rx_seg *s)
{
	struct ddps_term t = { 0 };
	struct ddps_term_msg m;
	const char *odd = "";

	/* Whatever is wrong with it, a Terminate is not answered. */
	t.code = ddps_term_decode(&m, s->pay, s->pay_len);
	if (t.code) {
		odd = "shorter than it announces";
	} else if (s->h.msn != 1 || s->h.mo || !s->h.last || s->pay_len > DDPS_TERM_LEN_MAX) {
		t.code = DDPS_E_PROTOCOL;
		odd = "not one segment with MSN 1 of at most 52 octets";
	}
	t.triple = m.triple;
	t.swapped = m.swapped;
	memcpy(t.wire, m.ctrl, sizeof t.wire);
	snprintf(t.text, sizeof t.text, "%s%s%s", m.swapped ? "bit-swapped" : "",
		 m.swapped && *odd ? ", " : "", odd);
	blame(r, &m);
	r->state = DDPS_RS_ERROR; /* no term_len: nothing is sent any more [5040-5.4-11] */
	ddps_rdmap_stop(r);
	r->up->terminated(r->user, &t, true);
}
