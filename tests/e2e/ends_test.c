/* SPDX-License-Identifier: BSD-2-Clause */
/* What settle and free wait for, and for how long.  tests/stress/ends.c has whole programs. */
#include "support/e2e.h"
#include <string.h>
#include <time.h>

#define LEN   65536u
#define COUNT 64u

TestSuite(ends, .timeout = 60);

/* Our wires: TCP, and our SCTP. */
static const int ours[] = { 0, 2 };
#define OURS (sizeof ours / sizeof ours[0])

/* It has a context of its own, which can go. */
struct writer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
};

static uint8_t out[LEN], in[LEN];

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What has come to the reader, and the last error. */
static unsigned seen;
static struct ddps_error error;

/* One event, in @ms at most. */
static void serve_reader(struct e2e *e, int ms)
{
	struct ddps_event ev;

	if (ddps_event_wait(e->ctx, &ev, ms))
		return;
	if (ev.type == DDPS_EV_CONNECT_REQUEST)
		cr_assert_eq(ddps_accept(ev.request, e->b.ep, &e->accept), 0);
	if (ev.type == DDPS_EV_PEER_CLOSED)
		cr_assert_eq(ddps_disconnect(e->b.ep), 0);
	seen |= E2E_SEEN(ev.type);
	error = ev.error;
}

static void open_writer(struct writer *w)
{
	struct ddps_ep_attr attr;

	cr_assert_eq(ddps_ctx_new(&w->ctx, NULL), 0);
	cr_assert_eq(ddps_pd_new(w->ctx, &w->pd), 0);
	cr_assert_eq(ddps_cq_new(w->ctx, 2 * COUNT, &w->cq), 0);
	ddps_ep_attr_init(&attr);
	attr.pd = w->pd;
	attr.send_cq = attr.recv_cq = w->cq;
	attr.sq_depth = COUNT;
	cr_assert_eq(ddps_ep_new(w->ctx, &attr, &w->ep), 0);
}

/* A reader with @receives, driven by the library if @thread, else by nobody; and a session with it. */
static void open_both(struct e2e *e, struct writer *w, int wire, bool thread, unsigned receives,
		      uint32_t close_ms)
{
	struct ddps_ctx_attr attr;
	struct ddps_conn_param param;
	struct ddps_event ev;
	struct ddps_sge sge;
	unsigned up = 0;

	seen = 0;
	ddps_ctx_attr_init(&attr);
	attr.thread = thread;
	e2e_open_with(e, e2e_wires[wire], &attr);
	e->attr.rq_depth = COUNT;
	e->attr.no_recv = receives ? DDPS_NO_RECV_TERMINATE : DDPS_NO_RECV_STALL;
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->b.ep), 0);
	sge = e2e_sge(in, LEN, e2e_reg(e, in, LEN, DDPS_LOCAL_WRITE));
	for (unsigned i = 0; i < receives; i++)
		cr_assert_eq(ddps_post_recv(e->b.ep, i, &sge, 1), 0);
	open_writer(w);
	ddps_conn_param_init(&param);
	param.close_ms = close_ms;
	cr_assert_eq(ddps_connect(w->ep, e->uri, &param), 0);
	while (!(seen & E2E_SEEN(DDPS_EV_ESTABLISHED)) || !(up & E2E_SEEN(DDPS_EV_ESTABLISHED))) {
		serve_reader(e, 1);
		if (!ddps_event_wait(w->ctx, &ev, 1))
			up |= E2E_SEEN(ev.type);
	}
}

/* More than all buffers on the way hold. */
static void post_all(struct writer *w)
{
	struct ddps_mr *mr;
	struct ddps_sge sge;
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	cr_assert_eq(ddps_mr_reg(w->pd, out, LEN, 0, NULL, &mr), 0);
	sge = e2e_sge(out, LEN, mr);
	for (unsigned i = 0; i < COUNT; i++)
		cr_assert_eq(ddps_post_send(w->ep, &wr), 0);
}

/* How many messages arrive in the end, which is one in order. */
static unsigned read_to_the_end(struct e2e *e)
{
	unsigned got = 0;
	struct ddps_wc wc;

	for (int i = 0; !(seen & E2E_SEEN(DDPS_EV_CLOSED)); i++) {
		cr_assert_lt(i, 1000);
		serve_reader(e, 20);
	}
	cr_expect_eq(error.code, 0, "%s: %s", e->uri, error.text);
	while (ddps_cq_poll(e->cq, &wc, 1) == 1)
		got += wc.status == DDPS_WC_SUCCESS && wc.op == DDPS_OP_RECV;
	return got;
}

Test(ends, contact_01_settle_waits_for_acknowledgements)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		post_all(&w);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 100), DDPS_E_TIMEDOUT, "%s", e.uri);
		for (int k = 0; ddps_ctx_settle(w.ctx, 5); k++) {
			cr_assert_lt(k, 2000, "%s", e.uri);
			serve_reader(&e, 1);
		}
		ddps_ctx_free(w.ctx);
		cr_expect_eq(read_to_the_end(&e), COUNT, "%s", e.uri);
		e2e_close(&e);
	}
}

Test(ends, contact_01_settle_does_not_wait_for_a_peer_that_stays)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		uint64_t begun;
		struct writer w;
		struct e2e e;

		/* it stalls: that it is closed it sees behind the message that waits */
		open_both(&e, &w, ours[i], true, 0, 60000);
		cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		begun = now_ms();
		cr_expect_eq(ddps_ctx_settle(w.ctx, 30000), 0, "%s", e.uri);
		cr_expect_lt(now_ms() - begun, 10000, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

Test(ends, contact_01_settle_tells_of_what_was_lost)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 100);
		post_all(&w); /* nobody reads, so the session is given up */
		cr_expect_eq(ddps_ctx_settle(w.ctx, 30000), DDPS_E_RESET, "%s", e.uri);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 0), 0, "%s: of sessions that it ends", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

Test(ends, contact_01_free_finishes_what_was_disconnected)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], true, COUNT, 60000);
		post_all(&w);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		ddps_ctx_free(w.ctx);
		cr_expect_eq(read_to_the_end(&e), COUNT, "%s", e.uri);
		e2e_close(&e);
	}
}

Test(ends, contact_01_free_does_not_wait_for_ever)
{
	for (unsigned i = 0; i < OURS; i++) {
		uint64_t begun;
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		post_all(&w);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		begun = now_ms();
		ddps_ctx_free(w.ctx); /* nobody reads */
		cr_expect_geq(now_ms() - begun, 4900, "%s", e.uri);
		cr_expect_lt(now_ms() - begun, 20000, "%s", e.uri);
		e2e_close(&e);
	}
}
