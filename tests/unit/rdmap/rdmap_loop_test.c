/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two streams back to back: random work both ways, segments carried as octets, the MULPDU
 * changing from one to the next, in pieces by direct placement or whole; every octet checked.
 */
#include "rdmap/rdmap_priv.h"
#include "support/clock.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define SRC_LEN	 (256u * 1024)
#define MSG_MAX	 (150u * 1024)
#define DEPTH	 16
#define PIECES	 5
#define WIRE	 16 /* segments under way in one direction */
#define WIRE_MAX 65536

struct job {
	struct ddps_send_wr wr;
	struct ddps_sge sge[PIECES];
	uint32_t len, src; /* src: where a Read reads from */
	uint8_t *dst;	   /* Write: at the peer; Read: here */
};

struct end {
	struct end *peer;
	struct ddps_pd pd;
	struct ddps_rdmap *r;
	struct ddps_mr *src_mr, *dst_mr;
	uint8_t *src, *dst; /* dst: DEPTH slots for receives, sinks, the peer's Writes each */
	/* Jobs posted, by number; the last 2 * DEPTH are kept. */
	struct job job[4 * DEPTH];
	uint64_t posted, completed, received, recv_posted, sends;
	uint64_t send_job[4 * DEPTH]; /* job number of each Send */
	uint64_t writes_checked;
	unsigned drained;
	bool by_direct;
	/* the wire from here to the peer */
	uint8_t *wire[WIRE];
	size_t wire_len[WIRE];
	unsigned wire_head, wire_count, not_done;
};

static uint64_t seed;

static uint32_t draw_rdmap_loop(uint32_t n)
{
	return draw_of(&seed) % n;
}

static uint32_t rnd_len(void)
{
	switch (draw_rdmap_loop(8)) {
	case 0:
		return 0;
	case 1:
		return draw_rdmap_loop(MSG_MAX + 1);
	case 2:
		return draw_rdmap_loop(20000);
	default:
		return draw_rdmap_loop(600);
	}
}

enum { SLOT_RECV, SLOT_SINK, SLOT_WRITE, NSLOT };

static uint8_t *slot(struct end *e, unsigned kind, uint64_t n)
{
	return e->dst + ((n % DEPTH) * NSLOT + kind) * (size_t)MSG_MAX;
}

static void expect_same_rdmap_loop(const uint8_t *got, const struct job *j, const uint8_t *src)
{
	for (uint32_t i = 0; i < j->wr.nsge; i++) {
		cr_assert_arr_eq(got, j->sge[i].addr, j->sge[i].len);
		got += j->sge[i].len;
	}
	if (src)
		cr_assert_arr_eq(j->dst, src + j->src, j->len);
}

/* A Send has come in: all Writes posted before it must be in place (5040-5.1-8). */
static void check_rdmap_loop_writes(struct end *from, uint64_t upto)
{
	for (; from->writes_checked < upto; from->writes_checked++) {
		struct job *j = &from->job[from->writes_checked % (4 * DEPTH)];

		if (j->wr.op == DDPS_OP_WRITE)
			expect_same_rdmap_loop(j->dst, j, NULL);
	}
}

static void take_rdmap_loop_complete(void *user, bool recv, struct ddps_wc *wc)
{
	struct end *e = user;
	struct job *j;

	cr_assert_eq(wc->status, DDPS_WC_SUCCESS);
	if (recv) {
		uint64_t n = e->peer->send_job[e->received % (4 * DEPTH)];

		j = &e->peer->job[n % (4 * DEPTH)];
		cr_assert_eq(wc->wr_id, e->received);
		cr_assert_eq(wc->len, j->len);
		cr_assert_eq(wc->solicited, !!(j->wr.flags & DDPS_WR_SOLICITED));
		expect_same_rdmap_loop(slot(e, SLOT_RECV, e->received++), j, NULL);
		check_rdmap_loop_writes(e->peer, n);
		return;
	}
	j = &e->job[e->completed % (4 * DEPTH)];
	cr_assert_eq(wc->wr_id, e->completed, "in order of posting");
	cr_assert_eq(wc->op, j->wr.op);
	if (wc->op == DDPS_OP_READ) {
		cr_assert_eq(wc->len, j->len);
		cr_assert_arr_eq(j->dst, e->peer->src + j->src, j->len);
	}
	e->completed++;
}

static void take_rdmap_loop_want(void *user)
{
	(void)user;
}

static void take_rdmap_loop_term(void *user, const struct ddps_term *t, bool by_peer)
{
	(void)user;
	cr_assert_fail("terminated by %s: %u/%u/%02x %s", by_peer ? "peer" : "itself",
		       t->triple.layer, t->triple.etype, t->triple.code, t->text);
}

static void take_rdmap_loop_first(void *user, unsigned rtr)
{
	(void)user;
	cr_assert_eq(rtr, DDPS_RTR_READ);
}

static void take_rdmap_loop_drained(void *user)
{
	((struct end *)user)->drained++;
}

static const struct ddps_rdmap_up loop_up = {
	.complete = take_rdmap_loop_complete,
	.want_tx = take_rdmap_loop_want,
	.terminated = take_rdmap_loop_term,
	.first_message = take_rdmap_loop_first,
	.drained = take_rdmap_loop_drained,
};

/* ---- work ---- */

static struct ddps_sge *cut_rdmap_loop(struct end *e, struct job *j)
{
	uint32_t left = j->len;

	j->wr.nsge = 1 + draw_rdmap_loop(PIECES);
	for (uint32_t i = 0; i < j->wr.nsge; i++) {
		uint32_t n = i + 1 == j->wr.nsge ? left : draw_rdmap_loop(left + 1);

		j->sge[i].len = n;
		j->sge[i].addr = e->src + draw_rdmap_loop(SRC_LEN - n + 1);
		j->sge[i].lkey = e->src_mr->stag;
		left -= n;
	}
	return j->sge;
}

/* One random work request, if there is room for it everywhere. */
static void post_rdmap_loop(struct end *e)
{
	struct job *j = &e->job[e->posted % (4 * DEPTH)];
	uint32_t kind = draw_rdmap_loop(3);

	if (e->posted - e->completed == DEPTH || e->posted - e->writes_checked >= DEPTH)
		kind = 0; /* only a Send lets the peer check older Writes */
	if (e->posted - e->completed == DEPTH || (!kind && e->sends == e->peer->recv_posted))
		return;
	*j = (struct job){ .wr = { .wr_id = e->posted }, .len = rnd_len() };
	if (kind == 0) {
		j->wr.op = DDPS_OP_SEND;
		j->wr.flags = draw_rdmap_loop(2) ? DDPS_WR_SOLICITED : 0;
		j->wr.sge = cut_rdmap_loop(e, j);
		e->send_job[e->sends++ % (4 * DEPTH)] = e->posted;
	} else if (kind == 1) {
		j->wr.op = DDPS_OP_WRITE;
		j->wr.sge = cut_rdmap_loop(e, j);
		j->dst = slot(e->peer, SLOT_WRITE, e->posted);
		j->wr.stag = e->peer->dst_mr->stag;
		j->wr.to = e->peer->dst_mr->base + (uint64_t)(j->dst - e->peer->dst);
	} else {
		j->wr.op = DDPS_OP_READ;
		j->dst = slot(e, SLOT_SINK, e->posted);
		j->src = draw_rdmap_loop(SRC_LEN - j->len + 1);
		j->sge[0] = (struct ddps_sge){ j->dst, j->len, e->dst_mr->stag };
		j->wr.sge = j->sge;
		j->wr.nsge = 1;
		j->wr.stag = e->peer->src_mr->stag;
		j->wr.to = e->peer->src_mr->base + j->src;
	}
	if (!draw_rdmap_loop(5))
		j->wr.flags |= DDPS_WR_FENCE;
	e->posted++;
	cr_assert_eq(ddps_rdmap_post_send(e->r, &j->wr), 0);
}

static void post_rdmap_loop_recv(struct end *e)
{
	uint8_t *at = slot(e, SLOT_RECV, e->recv_posted);
	uint32_t a = draw_rdmap_loop(MSG_MAX + 1);
	struct ddps_sge sge[2] = { { at, a, e->dst_mr->stag },
				   { at + a, MSG_MAX - a, e->dst_mr->stag } };

	if (e->recv_posted - e->received == DEPTH)
		return;
	cr_assert_eq(ddps_rdmap_post_recv(e->r, e->recv_posted++, sge, 2), 0);
}

/* ---- the wire ---- */

static void transmit(struct end *e)
{
	unsigned at = (e->wire_head + e->wire_count) % WIRE;
	size_t mulpdu = draw_rdmap_loop(2) ? 128 + draw_rdmap_loop(2000)
					   : 128 + draw_rdmap_loop(64768 - 127),
	       n;
	struct ddps_seg seg;

	if (e->wire_count == WIRE || !ddps_rdmap_tx_next(e->r, &seg, mulpdu))
		return;
	cr_assert_leq(seg.hdr_len + seg.pay_len, mulpdu);
	memcpy(e->wire[at], seg.hdr, seg.hdr_len);
	n = seg.hdr_len;
	for (int i = 0; i < seg.npay; i++) {
		memcpy(e->wire[at] + n, seg.pay[i].iov_base, seg.pay[i].iov_len);
		n += seg.pay[i].iov_len;
	}
	e->wire_len[at] = n;
	e->wire_count++;
	e->not_done++;
}

static void by_direct(struct end *to, const uint8_t *seg, size_t len, size_t hdr)
{
	struct iovec iov[4];

	for (size_t off = hdr; off < len;) {
		size_t left = 1 + draw_rdmap_loop(5000);
		int n = ddps_rdmap_rx_direct_iov(to->r, off - hdr, iov,
						 1 + (int)draw_rdmap_loop(4));

		cr_assert_gt(n, 0);
		for (int i = 0; i < n && left; i++) {
			size_t m = iov[i].iov_len < left ? iov[i].iov_len : left;

			memcpy(iov[i].iov_base, seg + off, m);
			off += m;
			left -= m;
		}
	}
	cr_assert_eq(ddps_rdmap_rx_direct_end(to->r), 0);
}

static void receive_rdmap_loop(struct end *to)
{
	struct end *from = to->peer;
	uint8_t *seg = from->wire[from->wire_head];
	size_t len = from->wire_len[from->wire_head], hdr = 0;

	if (!from->wire_count)
		return;
	if (to->by_direct && draw_rdmap_loop(4))
		hdr = ddps_rdmap_rx_direct(to->r, seg, len < 18 ? len : 18, len);
	if (hdr)
		by_direct(to, seg, len, hdr);
	else
		cr_assert_eq(ddps_rdmap_rx_segment(to->r, seg, len), 0);
	from->wire_head = (from->wire_head + 1) % WIRE;
	from->wire_count--;
}

static void count_done(struct end *e)
{
	unsigned n = draw_rdmap_loop(e->not_done + 1);

	e->not_done -= n;
	ddps_rdmap_tx_done(e->r, n);
}

/* ---- the run ---- */

static void init_rdmap_loop_end(struct end *e, struct ddps_stag_table *t, struct end *peer)
{
	struct ddps_rdmap_cfg cfg = { .pd = &e->pd,
				      .stream = (uintptr_t)e,
				      .sq_depth = DEPTH,
				      .rq_depth = DEPTH,
				      .max_sge = PIECES,
				      .up = &loop_up,
				      .user = e };
	size_t dst_len = (size_t)DEPTH * NSLOT * MSG_MAX;

	memset(e, 0, sizeof *e);
	e->peer = peer;
	e->pd.table = t;
	e->src = malloc(SRC_LEN);
	e->dst = malloc(dst_len);
	for (size_t i = 0; i < SRC_LEN; i++)
		e->src[i] = (uint8_t)draw_rdmap_loop(256);
	cr_assert_eq(ddps_rdmap_new(&e->r, &cfg), 0);
	cr_assert_eq(ddps_stag_add(&e->pd, e->src, SRC_LEN, DDPS_REMOTE_READ, (uintptr_t)e,
				   &e->src_mr),
		     0);
	cr_assert_eq(ddps_stag_add(&e->pd, e->dst, dst_len,
				   DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_ZERO_BASED, 0,
				   &e->dst_mr),
		     0);
	for (int i = 0; i < WIRE; i++)
		e->wire[i] = malloc(WIRE_MAX);
}

static void end_fini(struct end *e)
{
	ddps_rdmap_free(e->r);
	free(e->src);
	free(e->dst);
	for (int i = 0; i < WIRE; i++)
		free(e->wire[i]);
}

static void step_rdmap_loop(struct end *e, bool more)
{
	switch (draw_rdmap_loop(6)) {
	case 0:
		if (more)
			post_rdmap_loop(e);
		break;
	case 1:
		post_rdmap_loop_recv(e);
		break;
	case 2:
		count_done(e);
		break;
	case 3:
		receive_rdmap_loop(e);
		break;
	default:
		transmit(e);
		break;
	}
}

static void run_rdmap_loop(uint64_t with, unsigned steps)
{
	struct ddps_stag_table *t;
	struct end *e = malloc(2 * sizeof *e);
	struct ddps_rdmap_start st = { .ird = 3, .ord = 3, .send_rtr = DDPS_RTR_READ };

	seed = with;
	cr_assert_eq(ddps_stag_table_new(&t, 8), 0);
	for (int i = 0; i < 2; i++) {
		init_rdmap_loop_end(&e[i], t, &e[!i]);
		e[i].by_direct = (with >> i) & 1;
		cr_assert_eq(ddps_rdmap_start(e[i].r, &st), 0);
		st.send_rtr = 0;
		st.expect_rtr = DDPS_RTR_READ;
		st.rtr_strict = true;
	}
	for (unsigned n = 0; n < steps; n++)
		step_rdmap_loop(&e[draw_rdmap_loop(2)], true);
	for (int i = 0; i < 2; i++)
		ddps_rdmap_drain(e[i].r);
	for (unsigned n = 0; !e[0].drained || !e[1].drained; n++) {
		cr_assert_lt(n, 10000000u, "stuck");
		step_rdmap_loop(&e[n & 1], false);
	}
	for (int i = 0; i < 2; i++) {
		cr_expect_gt(e[i].posted, steps / 100);
		cr_expect_eq(e[i].completed, e[i].posted);
		while (e[!i].wire_count)
			receive_rdmap_loop(&e[i]);
		check_rdmap_loop_writes(&e[!i], e[!i].posted);
		cr_expect_eq(e[i].received, e[!i].sends);
		cr_expect_eq(e[i].drained, 1);
	}
	for (int i = 0; i < 2; i++)
		end_fini(&e[i]);
	ddps_stag_table_free(t);
	free(e);
}

Test(rdmap_loop, random_work_arrives_intact,
     .description = "5041-3-3 5041-5.2-4 5041-5.2-5 5040-5.1-8 5040-5.2-1 5040-5.5-12 "
		    "5040-5.5-14 5040-5.5-16 5040-5.5-19 5040-6.1-7 5040-6.1-8")
{
	for (uint64_t i = 0; i < 8; i++)
		run_rdmap_loop(i, 40000);
}
