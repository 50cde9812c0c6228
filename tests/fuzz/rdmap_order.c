/* SPDX-License-Identifier: BSD-2-Clause */
/* See rdmap_order.h. */
#include "rdmap_order.h"
#include "fuzz.h"

void order_start(struct order *o, const struct ddps_rdmap_start *s)
{
	o->rtr_due = s->send_rtr != 0;
	o->ord = s->ord;
}

static void next_work(struct order *o)
{
	o->second = o->asking = false;
	o->next++;
}

static bool is_asking_op(enum ddps_op op)
{
	return op == DDPS_OP_READ || op == DDPS_OP_FETCH_ADD || op == DDPS_OP_CMP_SWAP ||
	       op == DDPS_OP_ATOMIC_WRITE || op == DDPS_OP_FLUSH;
}

/* What needs an answer has none coming any more.  Sends and Writes that nobody confirms still go out. */
void order_peer_closed(struct order *o)
{
	bool in_progress = o->begun && !o->response;

	for (unsigned i = o->next; i < o->nwork; i++)
		o->work[i].ended |= is_asking_op(o->work[i].op);
	if (o->asking || (o->next < o->nwork && o->work[o->next].ended && !in_progress))
		next_work(o);
	o->asks_out = 0;
	o->peer_closed = true;
}

static bool is_local(enum ddps_op op)
{
	return op == DDPS_OP_BIND || op == DDPS_OP_LOCAL_INV;
}

static bool has_two(enum ddps_op op)
{
	return op == DDPS_OP_WRITE_IMM || op == DDPS_OP_SEND_IMM;
}

unsigned order_post(struct order *o, const struct ddps_send_wr *wr)
{
	struct order_work *w = &o->work[o->nwork];

	FUZZ_CHECK(o->nwork < ORDER_WORKS);
	*w = (struct order_work){
		.op = wr->op, .flags = wr->flags, .stag = wr->stag, .to = wr->to
	};
	for (uint32_t i = 0; i < wr->nsge; i++)
		w->len += wr->sge[i].len;
	return o->nwork++;
}

static bool is_answer(unsigned op)
{
	return op == DDPS_OP_WIRE_READ_RESP || op == DDPS_OP_WIRE_ATOMIC_RESP;
}

/* The oldest that waits is answered, and what it proves. */
static void note_answer(struct order *o)
{
	unsigned nr = o->ask_of[0];

	o->work[nr].answered = true;
	while (nr && o->work[nr - 1].covered)
		o->work[--nr].answered = true;
}

/* Inside the segment that is the answer it may be reported already. */
static bool answered_now(const struct order *o, unsigned nr)
{
	unsigned last = o->ask_of[0];

	if (!o->in_valid || !o->in.last || !is_answer(ddps_rdmap_opcode(o->in.ulp)) ||
	    o->rtr_read_out || !o->asks_out || nr > last)
		return false;
	for (; nr < last; nr++)
		if (!o->work[nr].covered)
			return false;
	return true;
}

void order_complete(struct order *o, unsigned nr, bool well)
{
	struct order_work *w = &o->work[nr];

	w->over = true;
	if (well && (is_asking_op(w->op) || w->flags & DDPS_WR_PLACED)) /* [5040-5.5-20] */
		FUZZ_CHECK(w->answered || answered_now(o, nr));
}

/* ---- in ---- */

static bool is_send(unsigned op)
{
	return (op >= DDPS_OP_WIRE_SEND && op <= DDPS_OP_WIRE_SEND_SE_INV) ||
	       op == DDPS_OP_WIRE_IMM || op == DDPS_OP_WIRE_IMM_SE;
}

static bool whole_send(const struct order *o)
{
	return o->in_valid && !o->in.tagged && o->in.qn == DDPS_QN_SEND && o->in.last &&
	       is_send(ddps_rdmap_opcode(o->in.ulp));
}

/* A message completes a receive when its last segment is taken in, whole [5040-5.3-7], or when
 * the one before it is [5041-5.4-2]. */
void order_received(struct order *o, const struct ddps_wc *wc)
{
	const struct ddps_ddp_hdr *h = whole_send(o) ? &o->in : &o->waiting;
	size_t len = whole_send(o) ? o->in.mo + o->in_len : o->waiting_len;
	unsigned op = ddps_rdmap_opcode(h->ulp);
	bool imm = op >= DDPS_OP_WIRE_IMM, ahead = !imm && o->ahead;

	FUZZ_CHECK(whole_send(o) || o->waits);
	o->waits = false;
	FUZZ_CHECK(wc->has_imm == (imm || ahead));
	o->completed = true;
	o->ahead &= !ahead;
	FUZZ_CHECK(wc->len == (imm ? 0 : len));
	FUZZ_CHECK(wc->solicited == (op == DDPS_OP_WIRE_SEND_SE || op == DDPS_OP_WIRE_SEND_SE_INV ||
				     op == DDPS_OP_WIRE_IMM_SE));
	FUZZ_CHECK(wc->invalidated ==
		   (op == DDPS_OP_WIRE_SEND_INV || op == DDPS_OP_WIRE_SEND_SE_INV));
	FUZZ_CHECK(!wc->invalidated || wc->inv_stag == h->ulp_word);
}

void order_in(struct order *o, const uint8_t *seg, size_t len)
{
	int hdr = ddps_ddp_decode(&o->in, seg, len);

	o->in_valid = hdr > 0;
	o->in_len = hdr > 0 ? len - (size_t)hdr : 0;
	o->completed = false;
}

static void request_came(struct order *o, bool atomic)
{
	struct order_request *q = &o->request[o->nrequests];

	FUZZ_CHECK(o->nrequests < ORDER_REQUESTS);
	q->atomic = atomic;
	if (atomic)
		ddps_areq_decode(&q->a, o->body);
	else
		ddps_rreq_decode(&q->read, o->body);
	o->nrequests++;
}

static void answer_came(struct order *o)
{
	if (o->rtr_read_out) {
		o->rtr_read_out = false;
	} else if (o->asks_out) {
		note_answer(o);
		o->asks_out--;
		memmove(o->ask_of, o->ask_of + 1, o->asks_out * sizeof *o->ask_of);
	}
}

/* Immediate Data is a message of its own, or goes with the Send behind it and takes no receive. */
static void immediate_came(struct order *o, const uint8_t *octets, size_t mo, bool last)
{
	static const uint8_t with_a_send[] = { DDPS_AHEAD_OCTET, DDPS_AHEAD_OCTET, DDPS_AHEAD_OCTET,
					       DDPS_AHEAD_OCTET };

	FUZZ_CHECK(mo <= sizeof o->imm && o->in_len <= sizeof o->imm - mo);
	memcpy(o->imm + mo, octets, o->in_len);
	if (!last || !o->send_imm ||
	    memcmp(o->imm + DDPS_SEND_IMM_OCTETS, with_a_send, sizeof with_a_send))
		return;
	FUZZ_CHECK(!o->completed && !o->ahead);
	o->ahead = true;
}

void order_taken(struct order *o, const uint8_t *seg, size_t len, int err)
{
	unsigned op = ddps_rdmap_opcode(o->in.ulp);
	struct ddps_ddp_hdr h = o->in;

	if (err || !o->in_valid) {
		o->in_valid = false;
		return;
	}
	if (!h.tagged && h.qn == DDPS_QN_READ) {
		FUZZ_CHECK(h.mo <= sizeof o->body && o->in_len <= sizeof o->body - h.mo);
		memcpy(o->body + h.mo, seg + len - o->in_len, o->in_len);
		if (h.last)
			request_came(o, op == DDPS_OP_WIRE_ATOMIC_REQ);
	}
	if (whole_send(o) && !o->completed) {
		o->waiting = h;
		o->waiting_len = h.mo + o->in_len;
		o->waits = true;
	}
	if (!h.tagged && h.qn == DDPS_QN_SEND &&
	    (op == DDPS_OP_WIRE_IMM || op == DDPS_OP_WIRE_IMM_SE))
		immediate_came(o, seg + len - o->in_len, h.mo, h.last);
	if (h.last && is_answer(op))
		answer_came(o);
	o->in_valid = false;
}

/* ---- out ---- */

/* Numbers without a gap in each queue, offsets without one in each message. */
static void check_queue_numbers(struct order *o, const struct ddps_ddp_hdr *h)
{
	if (h->tagged)
		return;
	FUZZ_CHECK(h->qn < DDPS_QN_COUNT && h->mo == o->sent);
	if (!h->mo && !o->begun)
		o->msn[h->qn]++;
	FUZZ_CHECK(h->msn == o->msn[h->qn]);
}

static void check_response(struct order *o, const struct ddps_ddp_hdr *h,
			   const struct ddps_seg *seg)
{
	const struct order_request *q = &o->request[0];
	struct ddps_aresp a;

	FUZZ_CHECK(o->nrequests && q->atomic == !h->tagged); /* [5040-5.5-21] */
	if (q->atomic) {
		ddps_aresp_decode(&a, seg->hdr + DDPS_DDP_UNTAGGED_LEN);
		FUZZ_CHECK(h->last && h->qn == DDPS_QN_ATOMIC && a.id == q->a.id);
		return;
	}
	FUZZ_CHECK(h->stag == q->read.sink_stag && h->to == q->read.sink_to + o->sent);
	FUZZ_CHECK(h->last == (o->sent + seg->pay_len == q->read.size));
}

/* The opcode that a work request has on the wire. */
static unsigned opcode_of(const struct order *o, const struct order_work *w)
{
	bool se = w->flags & DDPS_WR_SOLICITED, inv = w->flags & DDPS_WR_INVALIDATE;

	switch (w->op) {
	case DDPS_OP_WRITE:
		return DDPS_OP_WIRE_WRITE;
	case DDPS_OP_WRITE_IMM:
		if (!o->second)
			return DDPS_OP_WIRE_WRITE;
		return se ? DDPS_OP_WIRE_IMM_SE : DDPS_OP_WIRE_IMM;
	case DDPS_OP_IMM:
		return se ? DDPS_OP_WIRE_IMM_SE : DDPS_OP_WIRE_IMM;
	case DDPS_OP_SEND_IMM:
		if (!o->second)
			return DDPS_OP_WIRE_IMM;
		return DDPS_OP_WIRE_SEND + (inv ? 1u : 0) + (se ? 2u : 0);
	case DDPS_OP_READ:
		return DDPS_OP_WIRE_READ_REQ;
	case DDPS_OP_FETCH_ADD:
	case DDPS_OP_CMP_SWAP:
	case DDPS_OP_ATOMIC_WRITE:
	case DDPS_OP_FLUSH:
		return DDPS_OP_WIRE_ATOMIC_REQ;
	default:
		return DDPS_OP_WIRE_SEND + (inv ? 1u : 0) + (se ? 2u : 0);
	}
}

static void check_request(const struct order_work *w, const struct ddps_seg *seg)
{
	const uint8_t *body = seg->hdr + DDPS_DDP_UNTAGGED_LEN;
	struct ddps_rreq q;
	struct ddps_areq a;

	if (w->op == DDPS_OP_READ) {
		ddps_rreq_decode(&q, body);
		FUZZ_CHECK(q.src_stag == w->stag && q.src_to == w->to && q.size == w->len);
	} else {
		ddps_areq_decode(&a, body);
		FUZZ_CHECK(a.stag == w->stag && a.to == w->to);
	}
}

static void note_ask(struct order *o)
{
	FUZZ_CHECK(o->asks_out < o->ord && o->ord <= ORDER_REQUESTS); /* [5040-6.1-7] */
	o->ask_of[o->asks_out++] = o->next;
}

/* A Read of nothing from nowhere, which proves that all before it has been placed. */
static void check_asking(struct order *o, const struct ddps_ddp_hdr *h, const struct ddps_seg *seg)
{
	struct ddps_rreq q;

	ddps_rreq_decode(&q, seg->hdr + DDPS_DDP_UNTAGGED_LEN);
	FUZZ_CHECK(ddps_rdmap_opcode(h->ulp) == DDPS_OP_WIRE_READ_REQ && h->last &&
		   h->qn == DDPS_QN_READ);
	FUZZ_CHECK(!q.size && !q.src_stag && !q.src_to && !q.sink_stag && !q.sink_to);
	note_ask(o);
	next_work(o);
}

/* All messages of @w are out: is it asked now whether they have come? */
static bool has_to_ask(struct order *o, struct order_work *w)
{
	bool more = o->next + 1 < o->nwork && w[1].flags & DDPS_WR_PLACED;

	if (!(w->flags & DDPS_WR_PLACED) || o->peer_closed)
		return false;
	w->covered = o->covered < 7 && more;
	o->covered = w->covered ? o->covered + 1 : 0;
	return !w->covered;
}

/* The work that was posted first, of what has not gone out [5040-5.5-14]. */
static void check_own(struct order *o, const struct ddps_ddp_hdr *h, const struct ddps_seg *seg)
{
	unsigned op = ddps_rdmap_opcode(h->ulp);
	struct order_work *w;

	while (!o->begun && !o->second && !o->asking && o->next < o->nwork &&
	       (o->work[o->next].over || o->work[o->next].ended || is_local(o->work[o->next].op)))
		o->next++;
	FUZZ_CHECK(o->next < o->nwork);
	if (o->asking) {
		check_asking(o, h, seg);
		return;
	}
	w = &o->work[o->next];
	FUZZ_CHECK(op == opcode_of(o, w));
	if (!o->begun && !o->second)
		FUZZ_CHECK(!(w->flags & DDPS_WR_FENCE) || !o->asks_out);
	if (h->tagged)
		FUZZ_CHECK(h->stag == w->stag && h->to == w->to + o->sent);
	else
		FUZZ_CHECK(h->qn == (is_asking_op(w->op) ? DDPS_QN_READ : DDPS_QN_SEND));
	if (is_asking_op(w->op)) {
		FUZZ_CHECK(h->last);
		note_ask(o);
		check_request(w, seg);
	} else if (op < DDPS_OP_WIRE_IMM) {
		FUZZ_CHECK(h->last == (o->sent + seg->pay_len == w->len));
	}
	if (!h->last)
		return;
	o->second = has_two(w->op) && !o->second && !w->ended;
	if (o->second)
		return;
	o->asking = has_to_ask(o, w);
	if (!o->asking)
		next_work(o);
}

/* The first message of the peer-to-peer model, or one like it; nothing is posted for it. */
static bool is_rtr(struct order *o, const struct ddps_ddp_hdr *h, const struct ddps_seg *seg)
{
	unsigned op = ddps_rdmap_opcode(h->ulp);
	bool nudge = h->tagged && !h->stag && !h->to && op == DDPS_OP_WIRE_WRITE;

	if (!o->rtr_due && !nudge)
		return false;
	FUZZ_CHECK(!o->begun && h->last && !seg->pay_len);
	FUZZ_CHECK(nudge || op == DDPS_OP_WIRE_SEND || op == DDPS_OP_WIRE_READ_REQ);
	o->rtr_read_out |= op == DDPS_OP_WIRE_READ_REQ;
	o->rtr_due = false;
	return true;
}

const struct order_request *order_out(struct order *o, const struct ddps_seg *seg)
{
	static struct order_request answered;
	struct ddps_ddp_hdr h;
	unsigned op;
	bool response;

	FUZZ_CHECK(ddps_ddp_decode(&h, seg->hdr, seg->hdr_len) > 0);
	op = ddps_rdmap_opcode(h.ulp);
	if (op == DDPS_OP_WIRE_TERMINATE)
		return NULL;
	response = op == DDPS_OP_WIRE_READ_RESP || op == DDPS_OP_WIRE_ATOMIC_RESP;
	FUZZ_CHECK(!o->begun || response == o->response); /* [5041-5.3-2] */
	check_queue_numbers(o, &h);
	if (is_rtr(o, &h, seg))
		return NULL;
	if (response)
		check_response(o, &h, seg);
	else
		check_own(o, &h, seg);
	o->begun = !h.last;
	o->response = response;
	o->sent = h.last ? 0 : o->sent + seg->pay_len;
	if (!response || !h.last)
		return NULL;
	answered = o->request[0];
	memmove(o->request, o->request + 1, --o->nrequests * sizeof *o->request);
	return answered.atomic ? &answered : NULL;
}
