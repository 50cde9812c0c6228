/* SPDX-License-Identifier: BSD-2-Clause */
/* A receive queue shared by sessions, on both wires. */
#include "support/e2e.h"
#include <string.h>

#define N     8
#define DEPTH 32
#define LEN   3000

struct world {
	struct e2e e;
	struct ddps_srq *srq;
	struct ddps_ep *a[N], *b[N];
	unsigned na, nb, lows;
	uint8_t out[N][LEN], in[DEPTH][LEN];
	struct ddps_mr *mo, *mi;
};

static void serve_srq_e2e(struct world *w)
{
	struct ddps_event ev;

	cr_assert_eq(ddps_event_wait(w->e.ctx, &ev, E2E_MS), 0);
	if (ev.type == DDPS_EV_CONNECT_REQUEST) {
		cr_assert_eq(ddps_ep_new(w->e.ctx, &w->e.attr, &w->b[w->nb]), 0);
		cr_assert_eq(ddps_accept(ev.request, w->b[w->nb++], &w->e.accept), 0);
	} else if (ev.type == DDPS_EV_ESTABLISHED) {
		w->na += ev.info.initiator;
	} else if (ev.type == DDPS_EV_SRQ_LIMIT) {
		cr_expect_eq(ev.srq, w->srq);
		cr_expect_eq(ev.user, w);
		w->lows++;
	}
}

static void post_one_srq_e2e(struct world *w, unsigned i)
{
	struct ddps_sge sge = e2e_sge(w->in[i], LEN, w->mi);

	cr_assert_eq(ddps_post_srq_recv(w->srq, i, &sge, 1), 0);
}

static void begin_srq_e2e(struct world *w, const char *wire, enum ddps_no_recv no_recv,
			  uint32_t share)
{
	struct ddps_ep_attr plain;

	e2e_open(&w->e, wire);
	plain = w->e.attr;
	cr_assert_eq(ddps_srq_new(w->e.pd, DEPTH, 2, w, &w->srq), 0);
	w->e.attr.srq = w->srq;
	w->e.attr.srq_share = share;
	w->e.attr.no_recv = no_recv;
	w->e.attr.rq_depth = 0; /* ignored */
	w->mo = e2e_reg(&w->e, w->out, sizeof w->out, 0);
	w->mi = e2e_reg(&w->e, w->in, sizeof w->in, DDPS_LOCAL_WRITE);
	for (unsigned i = 0; i < N; i++) {
		e2e_fill(w->out[i], LEN, i + 1);
		cr_assert_eq(ddps_ep_new(w->e.ctx, &plain, &w->a[i]), 0);
		cr_assert_eq(ddps_connect(w->a[i], w->e.uri, &w->e.connect), 0);
		while (w->na <= i || w->nb <= i)
			serve_srq_e2e(w); /* one by one: b[i] is the peer of a[i] */
	}
}

static void end_srq_e2e(struct world *w)
{
	cr_expect_eq(ddps_srq_free(w->srq), DDPS_E_BUSY);
	for (unsigned i = 0; i < N; i++) {
		ddps_ep_free(w->a[i]);
		ddps_ep_free(w->b[i]);
	}
	ddps_mr_dereg(w->mo);
	ddps_mr_dereg(w->mi);
	cr_expect_eq(ddps_pd_free(w->e.pd), DDPS_E_BUSY);
	cr_expect_eq(ddps_srq_free(w->srq), 0);
	cr_expect_eq(ddps_pd_free(w->e.pd), 0);
	e2e_close(&w->e);
}

static int send_from(struct world *w, unsigned i, size_t len)
{
	struct e2e_end end = { .ep = w->a[i] };

	return e2e_post(&end, DDPS_OP_SEND, w->out[i], len, w->mo, 0, 0);
}

static unsigned index_of(const struct world *w, const struct ddps_ep *ep)
{
	unsigned i = 0;

	while (w->b[i] != ep)
		i++;
	return i;
}

/* Eight senders, four buffers each time: every message comes once, whole, to its own session. */
static void eight(const char *wire)
{
	static struct world w;
	unsigned got[N] = { 0 }, total = 0, sent = 0, rounds = 20;

	memset(&w, 0, sizeof w);
	begin_srq_e2e(&w, wire, DDPS_NO_RECV_STALL, 0);
	for (unsigned i = 0; i < 4; i++)
		post_one_srq_e2e(&w, i);
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < N; i++)
			cr_assert_eq(send_from(&w, i, LEN - r), 0);
	while (total < rounds * N || sent < rounds * N) {
		struct ddps_wc wc = e2e_wc(&w.e);
		unsigned i;

		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		if (wc.op == DDPS_OP_SEND) {
			sent++;
			continue;
		}
		i = index_of(&w, wc.ep);
		cr_expect_eq(wc.len, LEN - got[i]);
		cr_expect_eq(memcmp(w.in[wc.wr_id], w.out[i], wc.len), 0);
		got[i]++;
		total++;
		/* nobody is left behind by more than those who could be served meanwhile */
		for (unsigned j = 0; j < N; j++)
			cr_expect_leq(got[i], got[j] + 5, "%s: %u before %u", wire, i, j);
		post_one_srq_e2e(&w, (unsigned)wc.wr_id);
	}
	end_srq_e2e(&w);
}

Test(srq, shared_by_eight_tcp, .timeout = 120)
{
	eight(e2e_wires[0]);
}

Test(srq, shared_by_eight_sctp, .timeout = 120)
{
	eight(e2e_wires[2]);
}

Test(srq, low_water_is_reported, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		static struct world w;

		memset(&w, 0, sizeof w);
		begin_srq_e2e(&w, e2e_wires[i], DDPS_NO_RECV_TERMINATE, DEPTH);
		cr_expect_eq(ddps_srq_arm(w.srq, DEPTH + 1), DDPS_E_INVAL);
		for (unsigned n = 0; n < 4; n++)
			post_one_srq_e2e(&w, n);
		cr_assert_eq(ddps_srq_arm(w.srq, 4), 0);
		cr_assert_eq(send_from(&w, 3, 10), 0);
		while (!w.lows)
			serve_srq_e2e(&w);
		cr_assert_eq(ddps_srq_arm(w.srq, 4), 0);
		while (w.lows < 2)
			serve_srq_e2e(&w);
		end_srq_e2e(&w);
	}
}

/* Messages of another transport's take the oldest ones, between those of sessions. */
Test(srq, receives_are_taken_by_hand, .timeout = 120)
{
	static struct world w;
	struct ddps_sge sge[2];
	uint64_t wr_id = 77;
	uint32_t nsge = 0;
	struct ddps_wc wc;

	memset(&w, 0, sizeof w);
	begin_srq_e2e(&w, e2e_wires[0], DDPS_NO_RECV_STALL, DEPTH);
	cr_expect_eq(ddps_srq_posted(w.srq), 0);
	cr_expect_eq(ddps_take_srq_recv(w.srq, &wr_id, sge, &nsge), DDPS_E_AGAIN);
	cr_expect_eq(wr_id, 77);
	for (unsigned n = 0; n < DEPTH; n++)
		post_one_srq_e2e(&w, n);
	cr_expect_eq(ddps_srq_posted(w.srq), DEPTH);
	cr_assert_eq(ddps_take_srq_recv(w.srq, &wr_id, sge, &nsge), 0);
	cr_expect_eq(wr_id, 0);
	cr_expect_eq(nsge, 1);
	cr_expect_eq(sge[0].addr, w.in[0]);
	cr_expect_eq(sge[0].len, LEN);
	cr_expect_eq(ddps_srq_posted(w.srq), DEPTH - 1);
	post_one_srq_e2e(&w, 0); /* there is room again */
	cr_assert_eq(send_from(&w, 2, 10), 0);
	do
		wc = e2e_wc(&w.e);
	while (wc.op == DDPS_OP_SEND);
	cr_expect_eq(wc.wr_id, 1, "the session's is the next one");
	cr_assert_eq(ddps_srq_arm(w.srq, DEPTH - 1), 0);
	cr_assert_eq(ddps_take_srq_recv(w.srq, &wr_id, sge, &nsge), 0);
	cr_expect_eq(wr_id, 2);
	while (!w.lows)
		serve_srq_e2e(&w);
	end_srq_e2e(&w);
}

Test(srq, a_greedy_peer_is_held_to_its_share, .timeout = 120,
     .description = "5042-6.4.3.1-1 5040-8.1.2-8 5041-8.3.2-7")
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		static struct world w;
		struct ddps_wc wc[DEPTH];
		unsigned greedy = 0, other = 0, sent = 0;

		memset(&w, 0, sizeof w);
		begin_srq_e2e(&w, e2e_wires[i], DDPS_NO_RECV_TERMINATE, 5);
		for (unsigned n = 0; n < DEPTH; n++)
			post_one_srq_e2e(&w, n);
		for (unsigned n = 0; n < 20; n++)
			cr_assert_eq(send_from(&w, 0, LEN), 0);
		while (ddps_progress(w.e.ctx, 0) > 0)
			;
		cr_assert_eq(send_from(&w, 1, LEN), 0);
		while (ddps_progress(w.e.ctx, 0) > 0)
			;
		/* all of it before the first completion was fetched */
		for (int k = 0, n = ddps_cq_poll(w.e.cq, wc, DEPTH); k < n; k++) {
			greedy += wc[k].ep == w.b[0];
			other += wc[k].ep == w.b[1];
			sent += wc[k].op == DDPS_OP_SEND;
		}
		cr_expect_eq(greedy, 5, "%s: %u", e2e_wires[i], greedy);
		cr_expect_eq(other, 1);
		while (greedy < 20 || sent < 21) {
			wc[0] = e2e_wc(&w.e);
			cr_expect_eq(wc[0].status, DDPS_WC_SUCCESS);
			greedy += wc[0].ep == w.b[0];
			sent += wc[0].op == DDPS_OP_SEND;
		}
		end_srq_e2e(&w);
	}
}

Test(srq, an_empty_one_obeys_the_rule_of_the_endpoint, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		static struct world w;
		struct ddps_event ev;
		struct ddps_sge sge;

		memset(&w, 0, sizeof w);
		begin_srq_e2e(&w, e2e_wires[i], DDPS_NO_RECV_TERMINATE, 0);
		sge = e2e_sge(w.in[0], LEN, w.mi);
		cr_expect_eq(ddps_post_recv(w.b[0], 1, &sge, 1), DDPS_E_INVAL);
		cr_assert_eq(send_from(&w, 2, 10), 0);
		do
			cr_assert_eq(ddps_event_wait(w.e.ctx, &ev, E2E_MS), 0);
		while (ev.ep != w.b[2] || ev.type != DDPS_EV_TERMINATED);
		cr_expect_eq(ev.error.triple.layer, 1);
		cr_expect_eq(ev.error.triple.etype, 2);
		cr_expect_eq(ev.error.triple.code, 2);
		end_srq_e2e(&w);
	}
}

Test(srq, arguments_are_checked)
{
	struct ddps_srq *srq, *foreign;
	struct ddps_pd *pd;
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_expect_eq(ddps_srq_new(NULL, 1, 1, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 0, 1, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 65536, 1, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 1, 0, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 1, 17, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 65535, 16, NULL, &srq), 0);
	cr_assert_eq(ddps_pd_new(e.ctx, &pd), 0);
	cr_assert_eq(ddps_srq_new(pd, 1, 1, NULL, &foreign), 0);
	e.attr.srq = foreign;
	cr_expect_eq(ddps_ep_new(e.ctx, &e.attr, &ep), DDPS_E_INVAL, "of another PD");
	cr_expect_eq(ddps_srq_free(foreign), 0);
	cr_expect_eq(ddps_srq_free(NULL), 0);
	e2e_close(&e); /* frees what is left */
}
