/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of endpoints and contexts, exact on every wire. */
#include "support/e2e.h"
#include <string.h>

static struct ddps_ep_stats read_end_stats(const struct e2e_end *end)
{
	struct ddps_ep_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ep_stats(end->ep, &st), 0);
	return st;
}

static struct ddps_ctx_stats of_ctx(const struct e2e *e)
{
	struct ddps_ctx_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ctx_stats(e->ctx, &st), 0);
	return st;
}

static void exact(const char *wire)
{
	static uint8_t out[100000], in[100000];
	struct ddps_ep_stats a, b;
	struct ddps_ctx_stats c;
	struct ddps_mr *mo, *mi;
	struct ddps_sge sge;
	struct e2e e;

	e2e_up(&e, wire);
	a = read_end_stats(&e.a);
	cr_expect_eq(a.sent[DDPS_STAT_SEND].messages, 0);
	mo = e2e_reg(&e, out, sizeof out, DDPS_REMOTE_READ);
	mi = e2e_reg(&e, in, sizeof in, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE);
	sge = e2e_sge(in, sizeof in, mi);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(ddps_post_recv(e.b.ep, 1, &sge, 1), 0);
	cr_expect_eq(read_end_stats(&e.b).recvs_posted, 3);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, out, sizeof out, mo, 0, 0), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, out, 5000, mo, ddps_mr_stag(mi), ddps_mr_to(mi)),
		     0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, in, 700, mi, ddps_mr_stag(mo),
				      ddps_mr_to(mo)),
			     0);
	for (int i = 0; i < 9; i++)
		cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
	a = read_end_stats(&e.a);
	b = read_end_stats(&e.b);
	cr_expect_eq(a.sent[DDPS_STAT_SEND].messages, 2);
	cr_expect_eq(a.sent[DDPS_STAT_SEND].octets, 2 * sizeof out);
	cr_expect_gt(a.sent[DDPS_STAT_SEND].segments, 2);
	cr_expect_eq(a.sent[DDPS_STAT_WRITE].octets, 5000);
	cr_expect_eq(a.sent[DDPS_STAT_READ_REQUEST].messages, 4);
	cr_expect_eq(a.received[DDPS_STAT_READ_RESPONSE].messages, 4);
	cr_expect_eq(a.received[DDPS_STAT_READ_RESPONSE].octets, 4 * 700);
	cr_expect_eq(memcmp(a.sent, b.received, sizeof a.sent), 0, "what one sends ...");
	cr_expect_eq(memcmp(b.sent, a.received, sizeof a.sent), 0, "... the other receives");
	cr_expect_eq(a.sends_posted, 0);
	cr_expect_eq(a.reads_out, 0);
	cr_expect_eq(b.reads_in, 0);
	cr_expect_eq(b.recvs_posted, 1);
	cr_expect_eq(a.held_octets + b.held_octets, 0);
	c = of_ctx(&e);
	cr_expect_eq(c.endpoints, 2);
	cr_expect_eq(c.regions, 2);
	cr_expect_eq(c.requests, 0);
	cr_expect_eq(c.total.recvs_posted, 1);
	ddps_ep_free(e.a.ep);
	e.a.ep = NULL;
	c = of_ctx(&e);
	cr_expect_eq(c.endpoints, 1);
	cr_expect_eq(c.total.sent[DDPS_STAT_SEND].octets, 2 * sizeof out, "remembered");
	cr_expect_eq(c.total.received[DDPS_STAT_SEND].octets, 2 * sizeof out);
	cr_expect_eq(c.total.recvs_posted, 1);
	e2e_close(&e);
}

Test(stats, are_exact, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++)
		exact(e2e_wires[i]);
}

Test(stats, a_stall_shows, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_ep_stats b;
		struct e2e e;

		e2e_open(&e, e2e_wires[i]);
		e.attr.no_recv = DDPS_NO_RECV_STALL;
		e2e_connect(&e);
		for (int n = 0; n < 2; n++)
			cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
		for (int n = 0; n < 2; n++)
			cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
		do {
			cr_assert_geq(ddps_progress(e.ctx, 1000), 0);
			b = read_end_stats(&e.b);
		} while (!b.stalls);
		cr_expect_eq(b.stalls, 1);
		cr_expect_gt(b.held_octets, 0);
		cr_expect_eq(b.received[DDPS_STAT_SEND].messages, 0);
		for (int n = 0; n < 2; n++)
			cr_assert_eq(ddps_post_recv(e.b.ep, 1, NULL, 0), 0);
		for (int n = 0; n < 2; n++)
			cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
		b = read_end_stats(&e.b);
		cr_expect_eq(b.stalls, 1);
		cr_expect_eq(b.held_octets, 0);
		cr_expect_eq(b.received[DDPS_STAT_SEND].messages, 2);
		e2e_close(&e);
	}
}

/* An endpoint on a queue for one completion: the second one is lost and ends its session. */
static void overflow(const char *wire)
{
	struct ddps_ep *bystander;
	struct ddps_cq *small;
	struct e2e e;

	e2e_open(&e, wire);
	cr_assert_eq(ddps_cq_new(e.ctx, 1, &small), 0);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &bystander), 0);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	e.attr.recv_cq = small;
	e2e_connect(&e);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(ddps_post_recv(e.b.ep, 1, NULL, 0), 0);
		cr_assert_eq(ddps_post_recv(bystander, 1, NULL, 0), 0);
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_TERMINATED));
	cr_expect_eq(e.b.error.triple.layer, 0);
	cr_expect_eq(e.b.error.triple.etype, 0);
	cr_expect_eq(e.b.error.triple.code, 0);
	cr_expect_eq(read_end_stats(&e.b).cq_overflow, 2,
		     "the second, and the receive that was flushed");
	cr_expect_eq(of_ctx(&e).total.cq_overflow, 2);
	cr_expect_eq(read_end_stats(&e.a).cq_overflow, 0);
	cr_expect_eq(ddps_cq_free(small), DDPS_E_BUSY);
	ddps_ep_free(bystander);
	e2e_close(&e);
}

Test(stats, an_overflow_is_counted, .timeout = 120,
     .description = "5042-6.4.6-1 5040-8.1.1-11 5042-6.4.3.2-1 5040-8.1.2-5")
{
	overflow(e2e_wires[0]);
	overflow(e2e_wires[2]);
}

Test(stats, regions_and_shared_queues_have_a_bound,
     .description = "5042-6.4.1-1 5040-8.1.2-2 5042-3-2")
{
	struct ddps_ctx_attr attr;
	struct ddps_ctx_stats st;
	struct ddps_srq *srq;
	struct ddps_ctx *ctx;
	struct ddps_mr *mr[3];
	struct ddps_pd *pd;
	uint8_t buf[8];

	ddps_ctx_attr_init(&attr);
	attr.max_regions = 2;
	cr_assert_eq(ddps_ctx_new(&ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(ctx, &pd), 0);
	cr_assert_eq(ddps_mr_reg(pd, buf, 8, 0, NULL, &mr[0]), 0);
	cr_assert_eq(ddps_mr_reg(pd, buf, 8, 0, NULL, &mr[1]), 0);
	cr_expect_eq(ddps_mr_reg(pd, buf, 8, 0, NULL, &mr[2]), DDPS_E_LIMIT);
	cr_assert_eq(ddps_srq_new(pd, 2, 1, NULL, &srq), 0);
	cr_assert_eq(ddps_post_srq_recv(srq, 1, NULL, 0), 0);
	cr_assert_eq(ddps_post_srq_recv(srq, 1, NULL, 0), 0);
	cr_expect_eq(ddps_post_srq_recv(srq, 1, NULL, 0), DDPS_E_LIMIT);
	st.struct_size = sizeof st - 1;
	cr_expect_eq(ddps_ctx_stats(ctx, &st), DDPS_E_INVAL);
	st.struct_size = sizeof st;
	cr_assert_eq(ddps_ctx_stats(ctx, &st), 0);
	cr_expect_eq(st.regions, 2);
	cr_expect_eq(st.regions_refused, 1);
	cr_expect_eq(st.srq_full, 1);
	cr_expect_eq(st.srq_posted, 2);
	cr_expect_eq(st.endpoints, 0);
	ddps_ctx_free(ctx);
}

Test(stats, half_open_peers_are_counted, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i += 2) {
		struct ddps_listen_param lp;
		struct ddps_ep *ep[3];
		struct ddps_listener *l;
		struct ddps_event ev;
		struct e2e e;

		e2e_open(&e, e2e_wires[i]);
		ddps_listen_param_init(&lp);
		lp.max_half_open = 1;
		cr_assert_eq(ddps_listen(e.ctx, e2e_wires[i], &lp, &l), 0);
		cr_assert_gt(ddps_listener_uri(l, e.uri, sizeof e.uri), 0);
		cr_expect_eq(of_ctx(&e).half_open_full, 0);
		for (int n = 0; n < 3; n++) {
			cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep[n]), 0);
			cr_assert_eq(ddps_connect(ep[n], e.uri, &e.connect), 0);
		}
		do /* dials that lost their places while they shook hands end first */
			cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
		while (ev.type != DDPS_EV_CONNECT_REQUEST);
		cr_expect_eq(of_ctx(&e).requests, 1);
		while (!of_ctx(&e).half_open_full)
			cr_assert_geq(ddps_progress(e.ctx, 1000), 0);
		ddps_listener_free(l);
		for (int n = 0; n < 3; n++)
			ddps_ep_free(ep[n]);
		e2e_close(&e);
	}
}
