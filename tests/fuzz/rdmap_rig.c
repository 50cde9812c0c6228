/* SPDX-License-Identifier: BSD-2-Clause */
/* See rdmap_rig.h; rdmap_memory.c has its regions. */
#include "rdmap_rig.h"
#include <inttypes.h>

/* ---- upcalls ---- */

static void take_rdmap_rig_fuzz_complete(void *user, bool recv, struct ddps_wc *wc)
{
	struct rig *g = user;
	struct rig_work *w = &g->work[wc->wr_id % RIG_WORKS];
	int64_t *last = recv ? &g->last_rq : &g->last_sq;

	FUZZ_CHECK(wc->wr_id < g->nwork && w->recv == recv && !w->done);
	FUZZ_CHECK((int64_t)wc->wr_id > *last); /* in the order of posting */
	FUZZ_CHECK(!w->silent || wc->status != DDPS_WC_SUCCESS);
	FUZZ_CHECK(!recv || !g->terms || wc->status != DDPS_WC_SUCCESS);
	if (!recv)
		order_complete(&g->order, w->order, wc->status == DDPS_WC_SUCCESS);
	else if (wc->status == DDPS_WC_SUCCESS)
		order_received(&g->order, wc);
	w->done = true;
	*last = (int64_t)wc->wr_id;
	g->unfetched += recv && w->shared;
	fuzz_note(&g->log, "%s %u: op %d status %d, %" PRIu32 " octets, %d %d %" PRIx32 " %d",
		  recv ? "recv" : "send", (unsigned)wc->wr_id, wc->op, wc->status, wc->len,
		  wc->solicited, wc->invalidated, wc->inv_stag, wc->has_imm);
	if (wc->has_imm)
		fuzz_note_octets(&g->log, "imm", wc->imm, sizeof wc->imm);
}

static void up_want_tx(void *user)
{
	(void)user;
}

static void up_terminated(void *user, const struct ddps_term *t, bool by_peer)
{
	struct rig *g = user;

	FUZZ_CHECK(!g->terms++);
	fuzz_note(&g->log, "terminated %d/%d/%d by %s", t->triple.layer, t->triple.etype,
		  t->triple.code, by_peer ? "peer" : "us");
}

static void take_rdmap_rig_fuzz_first(void *user, unsigned rtr)
{
	struct rig *g = user;

	FUZZ_CHECK(!g->firsts++);
	fuzz_note(&g->log, "first message, RTR %u", rtr);
}

static void take_rdmap_rig_fuzz_ready(void *user)
{
	((struct rig *)user)->ready = true;
}

static void take_rdmap_rig_fuzz_drained(void *user)
{
	struct rig *g = user;

	FUZZ_CHECK(!g->drains++ && !g->terms);
}

static const struct ddps_rdmap_up rig_up = {
	.complete = take_rdmap_rig_fuzz_complete,
	.want_tx = up_want_tx,
	.terminated = up_terminated,
	.first_message = take_rdmap_rig_fuzz_first,
	.rx_ready = take_rdmap_rig_fuzz_ready,
	.drained = take_rdmap_rig_fuzz_drained,
	.persist = rig_persist,
};

/* ---- life ---- */

static void low(void *user)
{
	fuzz_note(&((struct rig *)user)->log, "shared queue low");
}

void rig_init(struct rig *g, unsigned flags)
{
	struct ddps_rdmap_cfg cfg = { .pd = &g->pd,
				      .stream = (uintptr_t)g,
				      .sq_depth = 6,
				      .rq_depth = 4,
				      .max_sge = RIG_SGE,
				      .srq_share = 2,
				      .up = &rig_up,
				      .user = g };

	memset(g, 0, sizeof *g);
	fuzz_random_reset();
	g->last_sq = g->last_rq = -1;
	cfg.rfc7306 = cfg.flush = g->rfc7306 = flags & 1;
	cfg.send_imm = g->order.send_imm = g->rfc7306 && flags & 0x80;
	g->stall = flags & 2;
	cfg.no_recv = g->stall ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	FUZZ_CHECK(!ddps_stag_table_new(&g->table, 100));
	g->pd.table = g->table;
	if (flags & 4) {
		g->srq.low = low;
		g->srq.user = g;
		FUZZ_CHECK(!ddps_srq_init(&g->srq, &g->pd, 4, RIG_SGE));
		cfg.srq = &g->srq;
		g->use_srq = true;
	}
	FUZZ_CHECK(!ddps_rdmap_new(&g->r, &cfg));
	for (unsigned i = 0; i < RIG_REGIONS; i++)
		rig_register(g, i);
	for (unsigned i = 0; i < RIG_WINDOWS; i++)
		FUZZ_CHECK(!ddps_stag_add_window(&g->pd, i, &g->window[i]));
}

void rig_fini(struct rig *g)
{
	struct ddps_seg seg;

	fuzz_note(&g->log, "flush");
	ddps_rdmap_flush(g->r);
	rig_look(g, 0);
	FUZZ_CHECK(!ddps_rdmap_tx_next(g->r, &seg, RIG_MULPDU));
	for (unsigned i = 0; i < g->nwork; i++)
		FUZZ_CHECK(g->work[i].done || g->work[i].silent || g->work[i].shared);
	FUZZ_CHECK(!ddps_rdmap_stats(g->r).sends_posted);
	ddps_rdmap_free(g->r);
	FUZZ_CHECK(!g->pd.streams);
	if (g->use_srq) {
		FUZZ_CHECK(!g->srq.users && !g->srq.bound);
		ddps_srq_fini(&g->srq);
	}
	for (unsigned i = 0; i < RIG_WINDOWS; i++) {
		FUZZ_CHECK(!g->window[i]->pending);
		ddps_stag_remove(g->window[i]);
	}
	for (unsigned i = 0; i < RIG_REGIONS; i++)
		rig_deregister(g, i);
	FUZZ_CHECK(!ddps_stag_count(g->table));
	ddps_stag_table_free(g->table);
	free(g->held);
}

/* ---- posting ---- */

static unsigned pieces(struct rig *g, struct ddps_rbuf *in, unsigned n, struct ddps_sge *sge,
		       struct rig_work *w)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned region = ddps_rbuf_u8(in) % RIG_REGIONS;
		struct rig_region *m = &g->region[region];
		size_t off = ddps_rbuf_u8(in), len = ddps_rbuf_u8(in);

		/* outside of it in one case out of sixteen */
		if (len < 0xf0 && off > m->len)
			off %= m->len;
		if (len < 0xf0 && len > m->len - off)
			len = m->len - off;
		sge[i] = (struct ddps_sge){ (uint8_t *)((uintptr_t)m->mem + off), (uint32_t)len,
					    m->stag };
		w->sge[i].region = region;
		w->sge[i].generation = m->generation;
		w->sge[i].off = off;
		w->sge[i].len = len;
	}
	w->nsge = n;
	return n;
}

/* What is done here, and what is confirmed: some of the values that name a region mean these. */
static void uncommon(struct rig *g, struct ddps_send_wr *wr, unsigned where)
{
	struct ddps_mr *window = g->window[where >> 2 & 1];

	switch (where & 3) {
	case 0:
		wr->op = DDPS_OP_BIND;
		wr->flags &= ~(DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE);
		wr->stag = window->stag ^ (where >> 4 & 1);
		wr->bind = (struct ddps_bind){ .window = window,
					       .access = (unsigned)wr->to & ALL_RIGHTS &
							 ~(unsigned)DDPS_LOCAL_WRITE };
		wr->bind.access |= DDPS_ZERO_BASED;
		break;
	case 1:
		wr->op = DDPS_OP_LOCAL_INV;
		wr->flags &= ~(DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE);
		wr->nsge = 0;
		wr->stag = where & 8 ? window->stag : wr->stag;
		break;
	case 2:
		wr->op = !(where & 0x20) ? DDPS_OP_SEND_IMM
			 : where & 0x10	 ? DDPS_OP_FLUSH
					 : DDPS_OP_ATOMIC_WRITE;
		wr->flags &= ~DDPS_WR_INVALIDATE;
		if (!(where & 0x20))
			break;
		wr->flags &= ~DDPS_WR_SOLICITED;
		wr->nsge = 0;
		wr->atomic.mask = where >> 2 & 3;
		break;
	default:
		wr->flags &= ~DDPS_WR_INVALIDATE;
		wr->flags |= DDPS_WR_PLACED;
	}
}

static bool sinks(enum ddps_op op)
{
	return op == DDPS_OP_READ || op == DDPS_OP_FETCH_ADD || op == DDPS_OP_CMP_SWAP;
}

void rig_post_send(struct rig *g, struct ddps_rbuf *in)
{
	struct ddps_sge sge[RIG_SGE];
	struct rig_work *w = &g->work[g->nwork];
	unsigned op = ddps_rbuf_u8(in), where = ddps_rbuf_u8(in), region = where % RIG_REGIONS;
	struct ddps_send_wr wr = { .wr_id = g->nwork,
				   .op = (enum ddps_op)(op % 9),
				   .flags = op / 9 % 16,
				   .sge = sge,
				   .stag = g->region[region].stag };

	if (g->nwork == RIG_WORKS || g->nbinds == RIG_WORKS)
		return;
	*w = (struct rig_work){ .silent = wr.flags & DDPS_WR_SILENT };
	wr.to = ddps_rbuf_u8(in);
	wr.atomic = (struct ddps_atomic){ wr.to, op, 2 * op, 3 * op };
	memset(wr.imm, (int)op, sizeof wr.imm);
	wr.nsge = pieces(g, in, ddps_rbuf_u8(in) % (RIG_SGE + 1), sge, w);
	if (wr.op == DDPS_OP_FETCH_ADD || wr.op == DDPS_OP_CMP_SWAP)
		for (unsigned i = 0; i < wr.nsge && op < 0x80; i++)
			sge[i].len = 8;
	if (where >= 0xc0)
		uncommon(g, &wr, where);
	w->nsge = wr.nsge;
	if (wr.op == DDPS_OP_BIND && wr.nsge && where >= 0xc0)
		g->bind[g->nbinds++] = (struct rig_bind){ .window = where >> 2 & 1,
							  .region = w->sge[0].region,
							  .generation = w->sge[0].generation,
							  .access = wr.bind.access,
							  .off = w->sge[0].off,
							  .len = w->sge[0].len };
	for (unsigned i = 0; i < wr.nsge; i++)
		w->sge[i].len = sge[i].len;
	g->nwork++; /* it may complete inside the call */
	w->order = order_post(&g->order, &wr);
	if (ddps_rdmap_post_send(g->r, &wr)) {
		FUZZ_CHECK(!w->done);
		g->nwork--;
		g->order.nwork--;
		return;
	}
	if (sinks(wr.op) && !w->done)
		rig_cover(g, w, 1);
	else
		w->settled = true;
}

void rig_post_recv(struct rig *g, struct ddps_rbuf *in)
{
	struct ddps_sge sge[RIG_SGE];
	struct rig_work *w = &g->work[g->nwork];
	unsigned n = ddps_rbuf_u8(in) % (RIG_SGE + 1);
	int err;

	if (g->nwork == RIG_WORKS)
		return;
	*w = (struct rig_work){ .recv = true, .shared = g->use_srq };
	pieces(g, in, n, sge, w);
	g->nwork++;
	if (g->use_srq)
		err = ddps_srq_post(&g->srq, g->nwork - 1, sge, n);
	else
		err = ddps_rdmap_post_recv(g->r, g->nwork - 1, sge, n);
	if (err) {
		FUZZ_CHECK(!w->done);
		g->nwork--;
		return;
	}
	FUZZ_CHECK(!w->done);
	rig_cover(g, w, 1);
}

/* ---- in ---- */

/* Read payload octets into their place, as an LLP does without CRCs. */
static int place(struct rig *g, const uint8_t *pay, size_t len)
{
	struct iovec iov[DDPS_SEG_IOV_MAX];
	size_t off = 0, room = g->piece;

	while (off < len) {
		int n = ddps_rdmap_rx_direct_iov(g->r, off, iov, DDPS_SEG_IOV_MAX);

		if (n < 0)
			return n;
		FUZZ_CHECK(n > 0 && n <= DDPS_SEG_IOV_MAX);
		for (int i = 0; i < n && room; i++) {
			size_t k = iov[i].iov_len < room ? iov[i].iov_len : room;

			k = k < len - off ? k : len - off;
			memcpy(iov[i].iov_base, pay + off, k);
			off += k;
			room -= k;
		}
		room = g->piece;
		if (g->mode == RIG_DISTURB && off < len) {
			rig_look(g, len);
			g->disturb(g, g->script);
		}
	}
	return ddps_rdmap_rx_direct_end(g->r);
}

static int take_rig_segment(struct rig *g, const uint8_t *seg, size_t len)
{
	size_t have = len < 20 ? len : 20, hdr = 0;
	uint8_t *head;

	if (g->mode != RIG_WHOLE) {
		head = fuzz_exact(seg, have);
		hdr = ddps_rdmap_rx_direct(g->r, head, have, len);
		free(head);
	}
	if (!hdr)
		return ddps_rdmap_rx_segment(g->r, seg, len);
	FUZZ_CHECK((hdr == 14 || hdr == 18) && hdr < len);
	return place(g, seg + hdr, len - hdr);
}

void rig_show(struct rig *g, const uint8_t *seg, size_t len)
{
	uint8_t *exact = fuzz_exact(seg, len);
	unsigned lines = g->log.lines;
	int err;

	order_in(&g->order, exact, len);
	err = take_rig_segment(g, exact, len);
	order_taken(&g->order, exact, len, err);

	if (g->mode == RIG_DISTURB)
		lines = g->log.lines;
	if (g->dead) { /* all that follows is dropped silently */
		FUZZ_CHECK(err < 0 && lines == g->log.lines);
		rig_look(g, 0);
	}
	rig_look(g, len);
	free(g->held);
	g->held = NULL;
	if (err == DDPS_LLP_HOLD) {
		FUZZ_CHECK(g->stall || g->use_srq);
		g->held = exact;
		g->held_len = len;
		return;
	}
	free(exact);
	FUZZ_CHECK(err <= 0);
	if (err < 0 && !g->dead)
		fuzz_note(&g->log, "segment refused: %d", err);
	g->dead = g->dead || (g->started && err < 0);
}

/* ---- out ---- */

static void note_request(struct rig *g, const struct ddps_seg *seg)
{
	struct rig_ask *a = &g->ask[g->nask];
	struct ddps_rreq q;
	struct ddps_areq aq;

	FUZZ_CHECK(g->nask < sizeof g->ask / sizeof *g->ask);
	if (ddps_rdmap_opcode(seg->hdr[1]) == DDPS_OP_WIRE_READ_REQ) {
		ddps_rreq_decode(&q, seg->hdr + DDPS_DDP_UNTAGGED_LEN);
		*a = (struct rig_ask){ .stag = q.sink_stag, .size = q.size, .to = q.sink_to };
		g->nask++;
	} else if (ddps_rdmap_opcode(seg->hdr[1]) == DDPS_OP_WIRE_ATOMIC_REQ) {
		ddps_areq_decode(&aq, seg->hdr + DDPS_DDP_UNTAGGED_LEN);
		*a = (struct rig_ask){ .atomic = true, .id = aq.id };
		g->nask++;
	}
}

/* What the target of an atomic had is what its requester gets; who writes or flushes asks for nothing. */
static void check_original(struct rig *g, const struct ddps_seg *seg, const struct order_request *q)
{
	struct ddps_aresp a;
	uint64_t old;

	ddps_aresp_decode(&a, seg->hdr + DDPS_DDP_UNTAGGED_LEN);
	if (q->a.aop == DDPS_AOP_WRITE || q->a.aop == DDPS_AOP_FLUSH) {
		FUZZ_CHECK(!a.original);
		return;
	}
	for (unsigned i = 0; i < RIG_REGIONS; i++) {
		const struct rig_region *m = &g->region[i];

		if (!m->mr || m->stag != q->a.stag)
			continue;
		memcpy(&old, m->shadow + (q->a.to - m->mr->base), sizeof old);
		FUZZ_CHECK(a.original == old);
		return;
	}
	FUZZ_CHECK(false);
}

/* The memory belongs to a region now, and the peer may read it if it asked for it. */
static void check_source(struct rig *g, const struct iovec *iov, bool by_peer)
{
	for (unsigned i = 0; i < RIG_REGIONS; i++) {
		const struct rig_region *m = &g->region[i];
		uintptr_t at = (uintptr_t)iov->iov_base;

		if (!m->mr || at < (uintptr_t)m->mem ||
		    at + iov->iov_len > (uintptr_t)m->mem + m->len)
			continue;
		FUZZ_CHECK(!m->foreign);
		FUZZ_CHECK(!by_peer || (m->access & DDPS_REMOTE_READ && m->mr->valid) ||
			   rig_by_window(g, m, at - (uintptr_t)m->mem, iov->iov_len,
					 DDPS_REMOTE_READ));
		return;
	}
	FUZZ_CHECK(!iov->iov_len);
}

void rig_pull(struct rig *g, size_t mulpdu)
{
	struct ddps_seg seg;
	struct ddps_ddp_hdr h;
	size_t sum = 0;
	const struct order_request *atomic;
	unsigned op;

	if (!ddps_rdmap_tx_next(g->r, &seg, mulpdu)) {
		rig_look(g, 0);
		return;
	}
	g->pulled++;
	FUZZ_CHECK(seg.hdr_len + seg.pay_len <= mulpdu && seg.hdr_len <= sizeof seg.hdr);
	FUZZ_CHECK(ddps_ddp_decode(&h, seg.hdr, seg.hdr_len) > 0);
	FUZZ_CHECK(ddps_rdmap_rv_ok(h.ulp));
	op = ddps_rdmap_opcode(h.ulp);
	FUZZ_CHECK(g->rfc7306 || op <= DDPS_OP_WIRE_TERMINATE);
	FUZZ_CHECK(!g->term_segs);
	g->term_segs += op == DDPS_OP_WIRE_TERMINATE;
	note_request(g, &seg);
	atomic = order_out(&g->order, &seg);
	if (atomic)
		check_original(g, &seg, atomic);
	/* A Terminate may quote an offset that is an address, which is another one in each run. */
	fuzz_note_octets(&g->log, "out", seg.hdr,
			 g->term_segs ? DDPS_DDP_UNTAGGED_LEN + 4u : seg.hdr_len);
	FUZZ_CHECK(seg.npay >= 0 && seg.npay <= DDPS_SEG_IOV_MAX);
	for (int i = 0; i < seg.npay; i++) {
		check_source(g, &seg.pay[i], op == DDPS_OP_WIRE_READ_RESP);
		fuzz_note_octets(&g->log, "payload", seg.pay[i].iov_base, seg.pay[i].iov_len);
		sum += seg.pay[i].iov_len;
	}
	FUZZ_CHECK(sum == seg.pay_len);
	rig_look(g, op == DDPS_OP_WIRE_ATOMIC_RESP ? 8 : 0);
}
