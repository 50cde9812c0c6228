/* SPDX-License-Identifier: BSD-2-Clause */
/* What docs/abi.md promises: structs of other releases, unknown flags, reserves. */
#include "support/e2e.h"
#include <string.h>

#define BEHIND 24 /* octets of a later release's members */

/* @name: the caller's struct with room behind it, as a later release's headers would have it. */
#define LATER(type, name)                                                                          \
	struct {                                                                                   \
		struct type p;                                                                     \
		uint8_t more[BEHIND];                                                              \
	} name;                                                                                    \
	type##_init_sized(&(name).p, sizeof(name))

static void no_octet_set(const uint8_t *p, size_t len, const char *what)
{
	for (size_t i = 0; i < len; i++)
		cr_expect_eq(p[i], 0, "%s, octet %zu", what, i);
}

Test(abi, contexts_of_other_releases)
{
	LATER(ddps_ctx_attr, later);
	struct ddps_ctx *ctx;

	no_octet_set(later.more, BEHIND, "attr");
	cr_expect_eq(later.p.max_ird, DDPS_RD_MAX);
	cr_assert_eq(ddps_ctx_new(&ctx, &later.p), 0);
	ddps_ctx_free(ctx);
	later.more[0] = 1;
	cr_expect_eq(ddps_ctx_new(&ctx, &later.p), DDPS_E_UNSUPPORTED);
	later.p.struct_size = 0;
	cr_expect_eq(ddps_ctx_new(&ctx, &later.p), DDPS_E_INVAL);
}

Test(abi, endpoints_of_other_releases, .timeout = 30)
{
	LATER(ddps_ep_attr, later);
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	later.p.pd = e.pd;
	later.p.send_cq = later.p.recv_cq = e.cq;
	cr_assert_eq(ddps_ep_new(e.ctx, &later.p, &ep), 0);
	ddps_ep_free(ep);
	later.more[BEHIND - 1] = 1;
	cr_expect_eq(ddps_ep_new(e.ctx, &later.p, &ep), DDPS_E_UNSUPPORTED);
	later.p.struct_size = sizeof later.p - 1;
	cr_expect_eq(ddps_ep_new(e.ctx, &later.p, &ep), DDPS_E_INVAL);
	e2e_close(&e);
}

Test(abi, listeners_of_other_releases, .timeout = 30)
{
	LATER(ddps_listen_param, later);
	struct ddps_listener *l;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_listen(e.ctx, "tcp://127.0.0.1:0", &later.p, &l), 0);
	ddps_listener_free(l);
	later.more[1] = 1;
	cr_expect_eq(ddps_listen(e.ctx, "tcp://127.0.0.1:0", &later.p, &l), DDPS_E_UNSUPPORTED);
	later.p.struct_size = sizeof later.p + 1;
	cr_expect_eq(ddps_listen(e.ctx, "tcp://127.0.0.1:0", &later.p, &l), 0,
		     "what is set is behind that size");
	ddps_listener_free(l);
	later.p.struct_size = 1;
	cr_expect_eq(ddps_listen(e.ctx, "tcp://127.0.0.1:0", &later.p, &l), DDPS_E_INVAL);
	e2e_close(&e);
}

Test(abi, connections_of_other_releases, .timeout = 30)
{
	LATER(ddps_conn_param, later);
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	later.more[2] = 1;
	cr_expect_eq(ddps_connect(ep, e.uri, &later.p), DDPS_E_UNSUPPORTED);
	later.more[2] = 0;
	later.p.reserved = 1;
	cr_expect_eq(ddps_connect(ep, e.uri, &later.p), DDPS_E_INVAL);
	later.p.reserved = 0;
	later.p.struct_size = sizeof later.p - 4;
	cr_expect_eq(ddps_connect(ep, e.uri, &later.p), DDPS_E_INVAL);
	later.p.struct_size = sizeof later;
	cr_expect_eq(ddps_connect(ep, e.uri, &later.p), 0);
	ddps_ep_free(ep);
	e2e_close(&e);
}

static void answer_in_vain(struct e2e *e, struct ddps_ep *ep)
{
	LATER(ddps_conn_param, later);
	later.more[3] = 1;
	cr_expect_eq(ddps_accept(e->request.request, ep, &later.p), DDPS_E_UNSUPPORTED,
		     "and the request is still there");
}

Test(abi, answers_of_other_releases, .timeout = 30)
{
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	e.before_accept = answer_in_vain;
	e2e_connect(&e);
	e2e_close(&e);
}

Test(abi, counters_of_other_releases, .timeout = 30)
{
	struct {
		struct ddps_ep_stats st;
		uint8_t more[BEHIND];
	} ep = { .st.struct_size = sizeof ep };
	struct {
		struct ddps_ctx_stats st;
		uint8_t more[BEHIND];
	} ctx = { .st.struct_size = sizeof ctx };
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	e2e_connect(&e);
	memset(ep.more, 0xff, BEHIND);
	memset(ctx.more, 0xff, BEHIND);
	cr_assert_eq(ddps_ep_stats(e.a.ep, &ep.st), 0);
	no_octet_set(ep.more, BEHIND, "endpoint");
	cr_expect_eq(ep.st.struct_size, sizeof ep);
	cr_assert_eq(ddps_ctx_stats(e.ctx, &ctx.st), 0);
	no_octet_set(ctx.more, BEHIND, "context");
	cr_expect_eq(ctx.st.endpoints, 2);
	cr_expect_eq(ctx.st.total.struct_size, sizeof ctx.st.total);
	ep.st.struct_size = 0;
	cr_expect_eq(ddps_ep_stats(e.a.ep, &ep.st), DDPS_E_INVAL);
	e2e_close(&e);
}

Test(abi, unknown_flags_are_refused, .timeout = 30)
{
	static const unsigned known = DDPS_WR_SILENT | DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE |
				      DDPS_WR_FENCE | DDPS_WR_MORE | DDPS_WR_PLACED;
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	struct ddps_listen_param lp;
	struct ddps_listener *l;
	struct ddps_mr *mr;
	struct ddps_ep *ep;
	struct e2e e;
	char buf[8];

	e2e_open(&e, e2e_wires[0]);
	e.attr.flush_late = true;
	e2e_connect(&e);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	for (unsigned bit = 1; bit; bit <<= 1) {
		struct ddps_conn_param p;

		wr.flags = bit;
		if (!(bit & known))
			cr_expect_eq(ddps_post_send(e.a.ep, &wr), DDPS_E_INVAL, "wr %x", bit);
		if (bit > DDPS_PERSISTENT)
			cr_expect_eq(ddps_mr_reg(e.pd, buf, sizeof buf, bit, NULL, &mr),
				     DDPS_E_INVAL, "access %x", bit);
		if (bit & DDPS_RTR_ALL)
			continue;
		ddps_conn_param_init(&p);
		p.rtr |= bit;
		cr_expect_eq(ddps_connect(ep, e.uri, &p), DDPS_E_INVAL, "rtr %x", bit);
		ddps_listen_param_init(&lp);
		lp.rtr |= bit;
		cr_expect_eq(ddps_listen(e.ctx, "tcp://127.0.0.1:0", &lp, &l), DDPS_E_INVAL,
			     "listener's rtr %x", bit);
	}
	e.attr.no_recv = (enum ddps_no_recv)2;
	cr_expect_eq(ddps_ep_new(e.ctx, &e.attr, &ep), DDPS_E_INVAL);
	ddps_abort(e.a.ep);
	wr.flags = known + 1;
	cr_expect_eq(ddps_post_send(e.a.ep, &wr), DDPS_E_INVAL, "the session is over");
	ddps_ep_free(ep);
	e2e_close(&e);
}

Test(abi, reserves_are_zero, .timeout = 30)
{
	struct ddps_conn_info info;
	struct ddps_wc wc;
	struct e2e e;

	memset(&info, 0xff, sizeof info);
	memset(&wc, 0xff, sizeof wc);
	e2e_open(&e, e2e_wires[0]);
	e2e_connect(&e);
	cr_assert_eq(ddps_ep_info(e.a.ep, &info), 0);
	no_octet_set((uint8_t *)info.reserved, sizeof info.reserved, "info");
	no_octet_set((uint8_t *)e.a.established.reserved, sizeof e.a.established.reserved, "event");
	no_octet_set((uint8_t *)e.a.established.error.reserved,
		     sizeof e.a.established.error.reserved, "error");
	cr_assert_eq(ddps_post_recv(e.a.ep, 1, NULL, 0), 0);
	ddps_abort(e.a.ep);
	do {
		cr_assert_eq(ddps_cq_wait(e.cq, &wc, 1, E2E_MS), 1);
		no_octet_set(wc.reserved, sizeof wc.reserved, "completion");
	} while (wc.ep != e.a.ep);
	cr_expect_eq(sizeof wc, 64);
	e2e_close(&e);
}
