/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ENDS_FIXTURE_H
#define ENDS_FIXTURE_H
/* A writer whose context can go, and a reader that is looked at or not. */
#include "support/e2e.h"

#define LEN   65536u
#define COUNT 64u

/* Our wires: TCP, our SCTP, and both secured. */
static const int ours[] = { 0, 2, 6, 7 };
#define OURS (sizeof ours / sizeof ours[0])

/* It has a context of its own, which can go. */
struct writer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
};

static uint8_t in[LEN];

/* What has come to the reader, and the last error. */
static unsigned seen;
static struct ddps_error error;

/* One event, in @ms at most. */
static inline void serve_reader(struct e2e *e, int ms)
{
	struct ddps_event ev;

	if (ddps_event_wait(e->ctx, &ev, ms))
		return;
	if (ev.type == DDPS_EV_CONNECT_REQUEST)
		cr_assert_eq(ddps_accept(ev.request, e->b.ep, &e->accept), 0);
	if (ev.type == DDPS_EV_PEER_CLOSED)
		cr_assert_eq(ddps_disconnect(e->b.ep), 0);
	seen |= E2E_SEEN(ev.type);
	if (ev.type == DDPS_EV_CLOSED)
		error = ev.error;
}

static inline void make_writer_ep(struct writer *w)
{
	struct ddps_ep_attr attr;

	ddps_ep_attr_init(&attr);
	attr.pd = w->pd;
	attr.send_cq = attr.recv_cq = w->cq;
	attr.sq_depth = COUNT;
	cr_assert_eq(ddps_ep_new(w->ctx, &attr, &w->ep), 0);
}

static inline void open_writer(struct writer *w, bool secured)
{
	struct ddps_ctx_attr home;

	ddps_ctx_attr_init(&home);
	home.secure = secured ? e2e_secure() : NULL;
	cr_assert_eq(ddps_ctx_new(&w->ctx, &home), 0);
	ddps_secure_close(home.secure);
	cr_assert_eq(ddps_pd_new(w->ctx, &w->pd), 0);
	cr_assert_eq(ddps_cq_new(w->ctx, 2 * COUNT, &w->cq), 0);
	make_writer_ep(w);
}

/* A reader with @receives, driven by the library if @thread, else by nobody; and a session with it. */
static inline void open_both(struct e2e *e, struct writer *w, int wire, bool thread,
			     unsigned receives, uint32_t close_ms)
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
	open_writer(w, wire >= 6);
	ddps_conn_param_init(&param);
	param.close_ms = close_ms;
	cr_assert_eq(ddps_connect(w->ep, e->uri, &param), 0);
	while (!(seen & E2E_SEEN(DDPS_EV_ESTABLISHED)) || !(up & E2E_SEEN(DDPS_EV_ESTABLISHED))) {
		serve_reader(e, 1);
		if (!ddps_event_wait(w->ctx, &ev, 1))
			up |= E2E_SEEN(ev.type);
	}
}

static inline void serve_reader_until(struct e2e *e, enum ddps_event_type type)
{
	for (int i = 0; !(seen & E2E_SEEN(type)); i++) {
		cr_assert_lt(i, 1000, "%s", e->uri);
		serve_reader(e, 20);
	}
}

/* How many messages arrive in the end, which is one in order. */
static inline unsigned read_to_the_end(struct e2e *e)
{
	unsigned got = 0;
	struct ddps_wc wc;

	serve_reader_until(e, DDPS_EV_CLOSED);
	cr_expect_eq(error.code, 0, "%s: %s", e->uri, error.text);
	while (ddps_cq_poll(e->cq, &wc, 1) == 1)
		got += wc.status == DDPS_WC_SUCCESS && wc.op == DDPS_OP_RECV;
	return got;
}

#endif
