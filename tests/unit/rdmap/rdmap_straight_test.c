/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight ways of rdmap_straight.c against the others: two streams that are given the same, one of
 * which does everything step by step, in whatever order chance wants; all that can be seen of them is the
 * same.  That what is usual takes the straight way, or nothing would be compared, shows rdmap_usual_test.c.
 */
#include "rdmap_fixture.h"
#include "support/clock.h"

#define WORLDS	  1500
#define STEPS	  100
#define OTHER_LEN 512

static uint64_t twin_seed;

static uint32_t draw_twin(uint32_t n)
{
	return draw_of(&twin_seed) % n;
}

static bool draw_rarely(uint32_t one_in)
{
	return !draw_twin(one_in);
}

/* [0] takes the straight ways, [1] none. */
struct twins {
	struct side s[2];
	struct ddps_mr *other[2]; /* no right to write */
	uint8_t other_mem[2][OTHER_LEN];
	unsigned out; /* segments pulled, not counted as done */
	bool shared;  /* receives are of a queue that others could use, too */
	struct ddps_srq srq[2];
};

/* The stream of @i has its receives from a shared queue. */
static void share_receives(struct twins *t, int i)
{
	struct side *s = &t->s[i];
	struct ddps_rdmap_cfg cfg = { .pd = &s->pd,
				      .stream = (uintptr_t)s,
				      .sq_depth = 4,
				      .max_sge = 2,
				      .srq = &t->srq[i],
				      .srq_share = 3,
				      .up = &side_up,
				      .user = s };

	t->srq[i] = (struct ddps_srq){ 0 };
	cr_assert_eq(ddps_srq_init(&t->srq[i], &s->pd, 5, 2), 0);
	ddps_rdmap_free(s->r);
	cr_assert_eq(ddps_rdmap_new(&s->r, &cfg), 0);
}

static void open_twins(struct twins *t, bool stalls, bool rfc7306, bool shared)
{
	t->shared = shared;
	for (int i = 0; i < 2; i++) {
		side_init(&t->s[i], 4, 4, 2);
		if (shared)
			share_receives(t, i);
		t->s[i].r->no_recv = stalls ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
		t->s[i].r->stepwise = i;
		t->s[i].r->rfc7306 = t->s[i].r->send_imm = rfc7306;
		memset(t->other_mem[i], 0x77, OTHER_LEN);
		t->other[i] = side_reg(&t->s[i], t->other_mem[i], OTHER_LEN, DDPS_REMOTE_READ);
		side_start(&t->s[i], 4, 4);
	}
	t->out = 0;
}

static void close_twins(struct twins *t)
{
	for (int i = 0; i < 2; i++) {
		close_rdmap_side(&t->s[i]);
		if (t->shared)
			ddps_srq_fini(&t->srq[i]);
	}
}

static void expect_same_completions(const struct ddps_wc *a, const struct ddps_wc *b)
{
	cr_assert_eq(a->wr_id, b->wr_id);
	cr_assert_eq(a->op, b->op);
	cr_assert_eq(a->status, b->status);
	cr_assert_eq(a->len, b->len);
	cr_assert_eq(a->solicited, b->solicited);
	cr_assert_eq(a->invalidated, b->invalidated);
	cr_assert_eq(a->has_imm, b->has_imm);
	cr_assert_eq(a->time_ns, b->time_ns);
}

static void expect_twins_same(struct twins *t)
{
	struct side *a = &t->s[0], *b = &t->s[1];
	struct ddps_ep_stats sa = ddps_rdmap_stats(a->r), sb = ddps_rdmap_stats(b->r);

	cr_assert_eq(a->nsq, b->nsq);
	cr_assert_eq(a->nrq, b->nrq);
	if (a->nsq)
		expect_same_completions(&a->sq[(a->nsq - 1) % MAX_WC],
					&b->sq[(b->nsq - 1) % MAX_WC]);
	if (a->nrq)
		expect_same_completions(&a->rq[(a->nrq - 1) % MAX_WC],
					&b->rq[(b->nrq - 1) % MAX_WC]);
	if (t->shared) {
		cr_assert_eq(a->r->srq_out, b->r->srq_out);
		cr_assert_eq(t->srq[0].count, t->srq[1].count);
		cr_assert_eq(t->srq[0].bound, t->srq[1].bound);
	}
	cr_assert_eq(a->want, b->want);
	cr_assert_eq(a->ready, b->ready);
	cr_assert_eq(a->drained, b->drained);
	cr_assert_eq(a->terms, b->terms);
	cr_assert_eq(a->term.code, b->term.code);
	cr_assert_arr_eq(&a->term.triple, &b->term.triple, sizeof a->term.triple);
	cr_assert_arr_eq(a->mem, b->mem, sizeof a->mem);
	cr_assert_arr_eq(&sa, &sb, sizeof sa);
	cr_assert_eq(ddps_rdmap_tx_ready(a->r), ddps_rdmap_tx_ready(b->r));
	cr_assert_eq(ddps_rdmap_taken(a->r), ddps_rdmap_taken(b->r));
	cr_assert_eq(ddps_rdmap_own_progress(a->r), ddps_rdmap_own_progress(b->r));
	cr_assert_eq(ddps_rdmap_owes(a->r), ddps_rdmap_owes(b->r));
}

/* ---- what may happen ---- */

/* Where a piece lies: mostly where it may. */
struct piece {
	uint32_t off, len;
	bool other, foreign, beyond;
};

static struct piece draw_piece(void)
{
	return (struct piece){ .off = draw_twin(200),
			       .len = draw_rarely(8)   ? 0
				      : draw_rarely(5) ? draw_twin(200)
						       : draw_twin(56),
			       .other = draw_rarely(12),
			       .foreign = draw_rarely(40),
			       .beyond = draw_rarely(40) };
}

static struct ddps_sge get_twin_piece(struct twins *t, int i, const struct piece *p)
{
	struct ddps_mr *mr = p->other ? t->other[i] : t->s[i].mr;
	uint32_t end = p->other ? OTHER_LEN : sizeof t->s[i].mem;

	return (struct ddps_sge){ .addr = mr->addr + (p->beyond ? end - p->len / 2 : p->off),
				  .len = p->len,
				  .lkey = mr->stag ^ (p->foreign ? 0x100 : 0) };
}

static unsigned draw_flags(void)
{
	static const unsigned rare[] = { DDPS_WR_SOLICITED, DDPS_WR_INVALIDATE, DDPS_WR_FENCE,
					 DDPS_WR_PLACED };
	unsigned flags =
		(draw_rarely(3) ? DDPS_WR_SILENT : 0) | (draw_rarely(3) ? DDPS_WR_MORE : 0);

	return draw_rarely(6) ? flags | rare[draw_twin(4)] : flags;
}

static void post_twin_sends(struct twins *t)
{
	static const enum ddps_op ops[] = { DDPS_OP_SEND,  DDPS_OP_SEND,    DDPS_OP_SEND,
					    DDPS_OP_WRITE, DDPS_OP_WRITE,   DDPS_OP_WRITE,
					    DDPS_OP_READ,  DDPS_OP_SEND_IMM };
	struct piece p[3] = { draw_piece(), draw_piece(), draw_piece() };
	uint32_t nsge = draw_rarely(6) ? draw_twin(4) : 1;
	struct ddps_send_wr wr = { .wr_id = draw_twin(1000000),
				   .op = ops[draw_twin(sizeof ops / sizeof *ops)],
				   .flags = draw_flags(),
				   .nsge = nsge,
				   .stag = 0x1a2b3c01,
				   .to = draw_twin(4096) };
	int got[2];

	p[0].other |= wr.op == DDPS_OP_READ && draw_rarely(3);
	for (int i = 0; i < 2; i++) {
		struct ddps_sge sge[3];

		for (int k = 0; k < 3; k++)
			sge[k] = get_twin_piece(t, i, &p[k]);
		wr.sge = sge;
		got[i] = ddps_rdmap_post_send(t->s[i].r, &wr);
	}
	cr_assert_eq(got[0], got[1], "%d and %d", got[0], got[1]);
}

/* Mostly longer than what comes. */
static struct piece draw_receive(void)
{
	struct piece p = draw_piece();

	p.len += draw_rarely(300) ? 0 : 100;
	return p;
}

/* The program has taken all completions: their receives count no more. */
static void fetch_of_twins(struct twins *t)
{
	for (int i = 0; i < 2; i++) {
		struct ddps_rdmap *r = t->s[i].r;

		while (r->srq_out > r->rq.tail - r->rq.head)
			ddps_rdmap_recv_fetched(r);
	}
}

static void post_twin_recvs(struct twins *t)
{
	struct piece p[3] = { draw_receive(), draw_receive(), draw_receive() };
	uint32_t nsge = draw_rarely(6) ? draw_twin(4) : 1;
	uint64_t id = draw_twin(1000000);
	int got[2];

	if (nsge == 2) /* so that messages fill both */
		p[0].len = 1 + draw_twin(20);
	if (draw_rarely(2))
		fetch_of_twins(t);
	for (int i = 0; i < 2; i++) {
		struct ddps_sge sge[3];

		for (int k = 0; k < 3; k++)
			sge[k] = get_twin_piece(t, i, &p[k]);
		got[i] = t->shared ? ddps_srq_post(&t->srq[i], id, sge, nsge)
				   : ddps_rdmap_post_recv(t->s[i].r, id, sge, nsge);
	}
	cr_assert_eq(got[0], got[1], "%d and %d", got[0], got[1]);
}

/* The sink is each one's own: its place in its region is the same. */
static void expect_same_requests(struct twins *t, uint8_t out[2][2048])
{
	struct ddps_rreq q[2];
	uint64_t at[2];

	for (int i = 0; i < 2; i++) {
		const struct ddps_mr *mr;

		ddps_rreq_decode(&q[i], out[i] + DDPS_DDP_UNTAGGED_LEN);
		mr = ddps_stag_find(t->s[i].table, q[i].sink_stag);
		at[i] = q[i].sink_to - (mr ? mr->base : q[i].sink_to);
	}
	cr_assert_eq(at[0], at[1]);
	cr_assert_arr_eq(out[0], out[1], DDPS_DDP_UNTAGGED_LEN);
	cr_assert_eq(q[0].size, q[1].size);
	cr_assert_eq(q[0].src_stag, q[1].src_stag);
	cr_assert_eq(q[0].src_to, q[1].src_to);
}

/* Of a Terminate the header alone is looked at: it may quote what has an STag of each one's own. */
static void pull_from_twins(struct twins *t)
{
	static const size_t sizes[] = { 60, DDPS_SEG_HDR_MAX, 72, 80, 100, 1500 };
	size_t mulpdu = sizes[draw_twin(sizeof sizes / sizeof *sizes)], n[2];
	uint8_t out[2][2048], op;

	for (int i = 0; i < 2; i++)
		n[i] = pull_only(&t->s[i], mulpdu, out[i]);
	cr_assert_eq(n[0], n[1], "%zu and %zu octets", n[0], n[1]);
	if (!n[0])
		return;
	op = ddps_rdmap_opcode(out[0][1]);
	if (op == DDPS_OP_WIRE_READ_REQ)
		expect_same_requests(t, out);
	else
		cr_assert_arr_eq(out[0], out[1],
				 op == DDPS_OP_WIRE_TERMINATE && n[0] > 2 ? 2 : n[0]);
	t->out++;
}

static void count_twins_done(struct twins *t)
{
	unsigned n = t->out ? 1 + draw_twin(t->out) : 0;

	for (int i = 0; i < 2 && n; i++)
		ddps_rdmap_tx_done(t->s[i].r, n);
	t->out -= n;
}

static void feed_to_twins(struct twins *t, uint8_t seg[2][256], size_t len)
{
	int got[2];

	if (draw_rarely(800))
		len = draw_twin((uint32_t)len);
	else if (draw_rarely(800)) {
		size_t at = draw_twin((uint32_t)len);
		uint8_t bit = (uint8_t)(1u << draw_twin(8));

		seg[0][at] ^= bit;
		seg[1][at] ^= bit;
	}
	for (int i = 0; i < 2; i++)
		got[i] = feed_rdmap(&t->s[i], seg[i], len);
	cr_assert_eq(got[0], got[1], "%d and %d", got[0], got[1]);
}

/* In the middle of a message mostly what it began with. */
static unsigned draw_send_op(const struct ddps_rdmap *r)
{
	static const unsigned rare[] = { DDPS_OP_WIRE_SEND_INV, DDPS_OP_WIRE_SEND_SE_INV };

	if (draw_rarely(300))
		return rare[draw_twin(2)];
	if (r->rxq[DDPS_QN_SEND].got && !draw_rarely(300))
		return ddps_rdmap_opcode(r->ctx[DDPS_CTX_SEND].seg.h.ulp);
	if (r->rfc7306 && draw_rarely(6))
		return DDPS_OP_WIRE_IMM;
	return draw_rarely(8) ? DDPS_OP_WIRE_SEND_SE : DDPS_OP_WIRE_SEND;
}

static void feed_twin_sends(struct twins *t)
{
	const struct ddps_ddp_queue *q = &t->s[0].r->rxq[DDPS_QN_SEND];
	unsigned op = draw_send_op(t->s[0].r);
	uint32_t msn = q->msn + (draw_rarely(400) ? 1 : 0);
	uint32_t mo = (uint32_t)q->got + (draw_rarely(400) ? 1 : 0);
	size_t len = op == DDPS_OP_WIRE_IMM ? DDPS_IMM_LEN : draw_rarely(8) ? 0 : draw_twin(40);
	uint32_t qn = draw_rarely(400) ? DDPS_QN_READ : DDPS_QN_SEND;
	bool last = op == DDPS_OP_WIRE_IMM || !draw_rarely(5), ahead = draw_rarely(2);
	uint8_t pay[64], seg[2][256];

	for (size_t i = 0; i < sizeof pay; i++)
		pay[i] = op == DDPS_OP_WIRE_IMM && ahead && i >= DDPS_SEND_IMM_OCTETS
				 ? DDPS_AHEAD_OCTET
				 : (uint8_t)draw_twin(256);
	for (int i = 0; i < 2; i++)
		make_untagged_rdmap(seg[i], op, 0, qn, msn, mo, last, pay, len);
	feed_to_twins(t, seg, 18 + len);
}

/* Its response waits until what was answered before has left. */
static void feed_twin_atomics(struct twins *t)
{
	uint32_t msn = t->s[0].r->rxq[DDPS_QN_READ].msn;
	uint8_t seg[2][256];

	for (int i = 0; i < 2; i++) {
		struct ddps_areq q = { .stag = t->s[i].mr->stag,
				       .to = t->s[i].mr->base,
				       .data = 1 };
		uint8_t body[DDPS_AREQ_LEN];

		ddps_areq_encode(&q, body);
		make_untagged_rdmap(seg[i], DDPS_OP_WIRE_ATOMIC_REQ, 0, DDPS_QN_READ, msn, 0, true,
				    body, sizeof body);
	}
	feed_to_twins(t, seg, 18 + DDPS_AREQ_LEN);
}

/* The tagged message in progress, if there is one, is of this opcode. */
static bool may_feed_tagged(const struct ddps_rdmap *r, unsigned op)
{
	return !(r->ctx_open >> DDPS_CTX_TAGGED & 1) ||
	       ddps_rdmap_opcode(r->ctx[DDPS_CTX_TAGGED].seg.h.ulp) == op || draw_rarely(50);
}

static void feed_twin_writes(struct twins *t)
{
	bool other = draw_rarely(300), last = !draw_rarely(3);
	uint64_t to = draw_rarely(300) ? 4090 : draw_twin(200);
	size_t len = draw_rarely(8) ? 0 : draw_twin(60);
	uint8_t seg[2][256];
	char text[64];

	if (!may_feed_tagged(t->s[0].r, DDPS_OP_WIRE_WRITE))
		return;
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + draw_twin(26));
	text[len] = 0;
	for (int i = 0; i < 2; i++)
		make_tagged_rdmap(seg[i], DDPS_OP_WIRE_WRITE,
				  (other ? t->other[i] : t->s[i].mr)->stag, to, last, text);
	feed_to_twins(t, seg, 14 + len);
}

static void feed_twin_reads(struct twins *t)
{
	uint32_t msn = t->s[0].r->rxq[DDPS_QN_READ].msn + draw_rarely(100);
	uint32_t size = draw_rarely(100) ? OTHER_LEN + 1 : draw_twin(100);
	bool other = !draw_rarely(100), last = !draw_rarely(100);
	uint8_t seg[2][256];

	for (int i = 0; i < 2; i++) {
		struct ddps_rreq q = { .sink_stag = 0xa501,
				       .size = size,
				       .src_stag = t->other[i]->stag ^ (other ? 0 : 0x100) };
		uint8_t body[DDPS_RREQ_LEN];

		q.src_to = t->other[i]->base;
		ddps_rreq_encode(&q, body);
		make_untagged_rdmap(seg[i], DDPS_OP_WIRE_READ_REQ, 0, DDPS_QN_READ, msn, 0, last,
				    body, sizeof body);
	}
	feed_to_twins(t, seg, 18 + DDPS_RREQ_LEN);
}

/* Memory goes, and comes: what was checked when it was posted is to be checked again. */
static void revoke_of_twins(struct twins *t)
{
	for (int i = 0; i < 2; i++) {
		ddps_stag_remove(t->other[i]);
		t->other[i] = side_reg(&t->s[i], t->other_mem[i], OTHER_LEN,
				       DDPS_REMOTE_READ | DDPS_LOCAL_WRITE);
	}
}

/* What the oldest Read waits for, in one segment or in several. */
static void feed_twin_responses(struct twins *t)
{
	const struct ddps_sqe *e = ddps_read_oldest(t->s[0].r);
	uint64_t left = e && e->op == DDPS_OP_READ ? e->len - t->s[0].r->rresp_got : 0;
	size_t len = draw_rarely(3) ? draw_twin((uint32_t)left + 1) : (size_t)left;
	bool last = len == left && !draw_rarely(10), off = draw_rarely(300);
	uint8_t seg[2][256];
	char text[256];

	if ((!e && !draw_rarely(300)) || !may_feed_tagged(t->s[0].r, DDPS_OP_WIRE_READ_RESP))
		return;
	len += draw_rarely(300);
	if (draw_rarely(12))
		revoke_of_twins(t);
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + draw_twin(26));
	text[len] = 0;
	for (int i = 0; i < 2; i++) {
		const struct ddps_rdmap *r = t->s[i].r;

		e = ddps_read_oldest(t->s[i].r);
		make_tagged_rdmap(seg[i], DDPS_OP_WIRE_READ_RESP, left ? e->sink_stag : 0,
				  (left ? e->sink_to + r->rresp_got : 0) + off, last, text);
	}
	feed_to_twins(t, seg, 14 + len);
}

static void step_twins(struct twins *t)
{
	unsigned rights = draw_rarely(3) ? DDPS_REMOTE_READ : DDPS_REMOTE_READ | DDPS_REMOTE_WRITE;
	unsigned what = draw_twin(400);

	/* Nothing is placed before what was asked for has come. */
	if (t->s[0].r->reads_out && draw_rarely(4))
		feed_twin_responses(t);

	if (what < 100)
		post_twin_sends(t);
	else if (what < 200)
		post_twin_recvs(t);
	else if (what < 270)
		pull_from_twins(t);
	else if (what < 310)
		count_twins_done(t);
	else if (what < 360)
		feed_twin_sends(t);
	else if (what < 385)
		feed_twin_writes(t);
	else if (what < 390 && t->s[0].r->rfc7306 && draw_rarely(3))
		feed_twin_atomics(t);
	else if (what < 390)
		feed_twin_reads(t);
	else if (what < 392)
		feed_twin_responses(t);
	else if (what < 396)
		revoke_of_twins(t);
	else if (what == 396 && draw_rarely(4))
		for (int i = 0; i < 2; i++)
			(void)ddps_stag_place(t->s[i].mr, t->s[i].mr->base ^ 8);
	else if (what < 398)
		for (int i = 0; i < 2; i++)
			ddps_rdmap_allow(t->s[i].r, rights);
	else if (what == 398)
		for (int i = 0; i < 2; i++)
			ddps_rdmap_nudge(t->s[i].r);
	else if (draw_rarely(4))
		for (int i = 0; i < 2; i++)
			ddps_rdmap_drain(t->s[i].r);
	expect_twins_same(t);
}

Test(rdmap_straight, twins_do_the_same)
{
	static struct twins t;
	unsigned ended = 0;

	for (twin_seed = 1; twin_seed <= WORLDS; twin_seed++) {
		uint64_t world = twin_seed;

		open_twins(&t, world % 8, world & 8, world & 32);
		if (world & 16) /* with the right to write */
			revoke_of_twins(&t);
		for (unsigned i = 0; i < STEPS && t.s[0].r->state == DDPS_RS_RUN; i++)
			step_twins(&t);
		ended += t.s[0].r->state != DDPS_RS_RUN;
		for (int i = 0; i < 2; i++)
			ddps_rdmap_flush(t.s[i].r);
		expect_twins_same(&t);
		close_twins(&t);
		twin_seed = world;
	}
	cr_expect(ended > WORLDS / 10 && ended < WORLDS * 9 / 10,
		  "%u of %u worlds ended by a fault", ended, (unsigned)WORLDS);
}
