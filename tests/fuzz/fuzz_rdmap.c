/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream between a hostile peer and an erratic application.  The input is a script of segments
 * and local calls; it is run with whole segments, then with direct placement, and both must come
 * to the same.  A third run does local calls in the middle of a placement.
 */
#include "rdmap_rig.h"

#define STEPS_MAX 300

/* What the peer has sent so far, to make what follows from it. */
struct peer {
	uint32_t msn[DDPS_QN_COUNT], mo[DDPS_QN_COUNT];
	uint32_t got; /* octets of the response to the oldest request */
};

static void show_segment_test(struct rig *g, const uint8_t *seg, size_t len)
{
	if (!g->held)
		rig_show(g, seg, len);
}

/* ---- the peer ---- */

static size_t payload(struct ddps_rbuf *in, uint8_t *out, size_t max)
{
	size_t want = ddps_rbuf_u8(in), n;
	const uint8_t *p = fuzz_some(in, want < max ? want : max, &n);

	if (n)
		memcpy(out, p, n);
	return n;
}

static void in_raw(struct rig *g, struct ddps_rbuf *in)
{
	uint8_t seg[256];

	show_segment_test(g, seg, payload(in, seg, sizeof seg));
}

/* Write, or anything else that is tagged, to a region of ours or an STag of nobody. */
static void in_tagged(struct rig *g, struct ddps_rbuf *in)
{
	unsigned ctrl = ddps_rbuf_u8(in), region = ddps_rbuf_u8(in);
	const struct rig_region *m = &g->region[region % RIG_REGIONS];
	struct ddps_ddp_hdr h = { .tagged = true, .last = ctrl & 0x80, .stag = m->stag };
	uint8_t seg[14 + 256];
	int8_t off = (int8_t)ddps_rbuf_u8(in);

	h.ulp = ddps_rdmap_ctrl((enum ddps_opcode)(ctrl & 15 & (ctrl & 0x40 ? 15 : 0)));
	h.stag ^= region & 0x80 ? region : 0;
	h.to = (m->mr ? m->mr->base : 0) + (uint64_t)(int64_t)off;
	if ((region & 0xc0) == 0x40) {
		h.stag = g->window[region & 1]->stag;
		h.to = (uint64_t)(int64_t)off;
	}
	ddps_ddp_encode(&h, seg);
	show_segment_test(g, seg, 14 + payload(in, seg + 14, 256));
}

/* In order unless the script says otherwise. */
static void send_untagged_segment(struct rig *g, struct peer *p, struct ddps_rbuf *in, unsigned op,
				  uint32_t qn, uint32_t word, const uint8_t *body, size_t len)
{
	unsigned odd = ddps_rbuf_u8(in);
	bool last = !(odd & 1);
	struct ddps_ddp_hdr h = { .last = last, .ulp_word = word, .qn = qn };
	uint8_t seg[18 + 256];

	if (g->held)
		return;
	h.ulp = ddps_rdmap_ctrl((enum ddps_opcode)op);
	h.msn = p->msn[qn % DDPS_QN_COUNT] + 1 + (odd & 2 ? odd >> 4 : 0) - (odd & 8 ? 1 : 0);
	h.mo = p->mo[qn % DDPS_QN_COUNT] + (odd & 4 ? odd >> 4 : 0);
	if (qn < DDPS_QN_COUNT) {
		p->mo[qn] = last ? 0 : p->mo[qn] + (uint32_t)len;
		p->msn[qn] += last;
	}
	ddps_ddp_encode(&h, seg);
	if (len)
		memcpy(seg + 18, body, len);
	show_segment_test(g, seg, 18 + len);
}

static void in_send(struct rig *g, struct peer *p, struct ddps_rbuf *in)
{
	static const uint8_t ops[] = { 3, 3, 4, 5, 6, 8, 9, 7 };
	unsigned b = ddps_rbuf_u8(in);
	unsigned op = b & 0x80 ? b & 15 : ops[b & 7];
	uint32_t qn = op == DDPS_OP_WIRE_TERMINATE ? DDPS_QN_TERM : 0;
	uint8_t body[256];
	size_t n = payload(in, body, sizeof body);

	if (b & 0x40)
		qn = b >> 3 & 7;
	if (op >= DDPS_OP_WIRE_IMM &&
	    n > 8) /* as long as it has to be; one for the Send behind it */
		n = 8;
	if (op == DDPS_OP_WIRE_IMM && n == 8 && b & 0x20)
		memset(body + DDPS_SEND_IMM_OCTETS, DDPS_AHEAD_OCTET, 8 - DDPS_SEND_IMM_OCTETS);
	send_untagged_segment(g, p, in, op, qn,
			      (b >> 3 & 3) == 3 ? g->window[0]->stag : g->region[b >> 3 & 3].stag,
			      body, n);
}

static void in_read(struct rig *g, struct peer *p, struct ddps_rbuf *in)
{
	unsigned region = ddps_rbuf_u8(in);
	const struct rig_region *m = &g->region[region % RIG_REGIONS];
	struct ddps_rreq q = { .sink_stag = 0x1a2b3c4d, .sink_to = 0x1000, .src_stag = m->stag };
	uint8_t body[DDPS_RREQ_LEN + 1];

	q.sink_to += (uint64_t)p->msn[DDPS_QN_READ] << 16; /* each its own */
	q.src_to = (m->mr ? m->mr->base : 0) + ddps_rbuf_u8(in);
	q.size = ddps_rbuf_u8(in);
	if (region & 0x20) {
		q.src_stag = g->window[region & 1]->stag;
		q.src_to -= m->mr ? m->mr->base : 0;
	}
	if (region & 0x40)
		q.src_to -= 0x80;
	ddps_rreq_encode(&q, body);
	send_untagged_segment(g, p, in, DDPS_OP_WIRE_READ_REQ, DDPS_QN_READ, 0, body,
			      DDPS_RREQ_LEN + (region >> 7));
}

static void in_atomic(struct rig *g, struct peer *p, struct ddps_rbuf *in)
{
	unsigned region = ddps_rbuf_u8(in), v = ddps_rbuf_u8(in);
	const struct rig_region *m = &g->region[region % RIG_REGIONS];
	struct ddps_areq a = { .aop = region >> 4 & 3, .id = v, .stag = m->stag };
	uint8_t body[DDPS_AREQ_LEN];

	a.to = (m->mr ? m->mr->base : 0) + ddps_rbuf_u8(in);
	a.data = v * UINT64_C(0x0101010101010101);
	a.mask = region & 0x80 ? ~UINT64_C(0) : 0;
	if (region & 0x40) { /* 14, 15: an Atomic Write, a Flush */
		a.aop = (uint8_t)(a.aop | 12);
		a.mask = region & 0x80 ? v & 7 : v & 3;
		a.data = v >> 2;
	}
	ddps_areq_encode(&a, body);
	send_untagged_segment(g, p, in, DDPS_OP_WIRE_ATOMIC_REQ, DDPS_QN_READ, 0, body,
			      sizeof body);
}

/* The answer to the oldest request of ours, or a part of it. */
static void in_answer(struct rig *g, struct peer *p, struct ddps_rbuf *in)
{
	const struct rig_ask a = g->nask ? g->ask[0] : (struct rig_ask){ .size = 8 };
	struct ddps_ddp_hdr h = { .tagged = true, .stag = a.stag, .to = a.to + p->got };
	struct ddps_aresp ar = { .id = a.id, .original = 0x1122334455667788 };
	unsigned odd = ddps_rbuf_u8(in), n = ddps_rbuf_u8(in);
	uint8_t seg[14 + 256], body[DDPS_ARESP_LEN];
	bool last;

	if (g->held)
		return;
	if (a.atomic ? !(odd & 1) : odd & 1) {
		ar.id += odd >> 4;
		ddps_aresp_encode(&ar, body);
		send_untagged_segment(g, p, in, DDPS_OP_WIRE_ATOMIC_RESP, DDPS_QN_ATOMIC, 0, body,
				      sizeof body);
		last = true;
	} else {
		if (!(odd & 2) && n > a.size - p->got)
			n = a.size - p->got;
		last = p->got + n >= a.size;
		h.last = odd & 4 ? !last : last;
		h.to += odd >> 4;
		h.ulp = ddps_rdmap_ctrl(DDPS_OP_WIRE_READ_RESP);
		ddps_ddp_encode(&h, seg);
		memset(seg + 14, (int)odd, n);
		p->got += n;
		show_segment_test(g, seg, 14 + n);
	}
	if (last) {
		p->got = 0;
		memmove(g->ask, g->ask + 1, sizeof g->ask - sizeof *g->ask);
		g->nask -= g->nask > 0;
	}
}

/* ---- this side ---- */

static void start_rdmap_script(struct rig *g, struct ddps_rbuf *in)
{
	unsigned a = ddps_rbuf_u8(in), b = ddps_rbuf_u8(in);
	struct ddps_rdmap_start s = { .ird = (uint16_t)(a % (RIG_IRD + 1)),
				      .ord = (uint16_t)(a >> 2 & 3),
				      .llp_mpa_codes = a & 0x10,
				      .rtr_needs_ord = a & 0x20,
				      .provider_read_slot = a & 0x40,
				      .rtr_strict = a & 0x80,
				      .send_rtr = b & 1 ? b >> 2 & 7 : 0,
				      .expect_rtr = b & 2 ? b >> 5 : 0 };

	int err = ddps_rdmap_start(g->r, &s);

	g->started |= !err;
	if (!err)
		order_start(&g->order, &s);
	fuzz_note(&g->log, "start: %d", err);
}

static void finish_pulled(struct rig *g, unsigned n)
{
	n = n > g->pulled ? g->pulled : n;
	g->pulled -= n;
	ddps_rdmap_tx_done(g->r, n);
	rig_look(g, 0);
}

static void fetch_completion(struct rig *g)
{
	if (!g->unfetched)
		return;
	g->unfetched--;
	ddps_rdmap_recv_fetched(g->r);
}

/* Calls of the application and the LLP below. */
static void local(struct rig *g, struct ddps_rbuf *in)
{
	static const struct ddps_triple ird = { 2, 0, 6 };
	unsigned b = ddps_rbuf_u8(in), arg = b >> 4;

	switch (b & 15) {
	case 0:
	case 1:
	case 2:
		rig_post_send(g, in);
		break;
	case 3:
	case 4:
		rig_post_recv(g, in);
		break;
	case 5:
	case 6:
	case 7:
		rig_pull(g, DDPS_SEG_HDR_MAX - 1 + arg * 20);
		break;
	case 8:
		finish_pulled(g, arg);
		break;
	case 9:
		rig_deregister(g, arg % RIG_REGIONS);
		break;
	case 10:
		rig_register(g, arg % RIG_REGIONS);
		break;
	case 11:
		fetch_completion(g);
		break;
	case 12:
		ddps_rdmap_nudge(g->r);
		break;
	case 13:
		if (g->use_srq)
			ddps_srq_watch(&g->srq, arg % 4);
		break;
	case 14:
		if (arg < 4)
			ddps_rdmap_drain(g->r);
		else if (arg < 8) {
			bool now = g->r->state == DDPS_RS_RUN && !g->r->peer_closed;

			ddps_rdmap_peer_closed(g->r);
			if (now)
				order_peer_closed(&g->order);
		} else if (arg == 8)
			ddps_rdmap_terminate(g->r, DDPS_E_PROTOCOL, ird, "by the script");
		break;
	default:
		start_rdmap_script(g, in);
		break;
	}
	rig_look(g, 0);
}

static void take_rdmap_step(struct rig *g, struct peer *p, struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in);

	fuzz_note(&g->log, "step %u", b % 16);
	switch (b % 16) {
	case 0:
		in_raw(g, in);
		break;
	case 1:
	case 2:
		in_tagged(g, in);
		break;
	case 3:
	case 4:
	case 5:
		in_send(g, p, in);
		break;
	case 6:
		in_read(g, p, in);
		break;
	case 7:
		in_atomic(g, p, in);
		break;
	case 8:
	case 9:
		in_answer(g, p, in);
		break;
	default:
		local(g, in);
		break;
	}
	while (g->held && g->ready) {
		uint8_t *again = fuzz_exact(g->held, g->held_len);

		g->ready = false;
		rig_show(g, again, g->held_len);
		free(again);
	}
	g->ready = false;
}

static struct fuzz_log run_rdmap_script(const uint8_t *data, size_t size, enum rig_mode mode)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	static struct rig g;
	struct peer p = { 0 };
	unsigned flags = ddps_rbuf_u8(&in);

	rig_init(&g, flags);
	g.mode = mode;
	g.piece = 1 + (flags >> 4) * 8;
	g.disturb = local;
	g.script = &in;
	if (!(flags & 8))
		start_rdmap_script(&g, &in);
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		take_rdmap_step(&g, &p, &in);
	rig_fini(&g);
	return g.log;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_log whole = run_rdmap_script(data, size, RIG_WHOLE);
	struct fuzz_log direct = run_rdmap_script(data, size, RIG_DIRECT);

	FUZZ_CHECK(whole.hash == direct.hash);
	run_rdmap_script(data, size, RIG_DISTURB);
	return 0;
}
