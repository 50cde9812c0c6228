/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls of sessions on a context that is gone, and with arguments that cannot be. */
#include "session/session.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_srq *srq;
	struct ddps_ep *ep;
	struct ddps_listener *listener;
	struct ddps_mr *mr, *mw;
} a, b; /* of two contexts */
static struct ddps_ep_attr attr;
static uint8_t memory[64];

#define OPEN(x)                                                                                    \
	do {                                                                                       \
		cr_assert_eq(ddps_ctx_new(&(x).ctx, NULL), 0);                                     \
		cr_assert_eq(ddps_pd_new((x).ctx, &(x).pd), 0);                                    \
		cr_assert_eq(ddps_cq_new((x).ctx, 64, &(x).cq), 0);                                \
		cr_assert_eq(ddps_srq_new((x).pd, 8, 1, NULL, &(x).srq), 0);                       \
		ddps_ep_attr_init(&attr);                                                          \
		attr.pd = (x).pd;                                                                  \
		attr.send_cq = attr.recv_cq = (x).cq;                                              \
		cr_assert_eq(ddps_ep_new((x).ctx, &attr, &(x).ep), 0);                             \
		cr_assert_eq(ddps_listen((x).ctx, "tcp://127.0.0.1:0", NULL, &(x).listener), 0);   \
		cr_assert_eq(ddps_mr_reg((x).pd, memory, sizeof memory,                            \
					 DDPS_LOCAL_WRITE | DDPS_BIND, NULL, &(x).mr),             \
			     0);                                                                   \
		cr_assert_eq(ddps_mw_new((x).pd, false, &(x).mw), 0);                              \
	} while (0)

static void init(void)
{
	OPEN(b);
	OPEN(a);
}

static void fini(void)
{
	ddps_ctx_free(a.ctx);
	ddps_ctx_free(b.ctx);
}

TestSuite(session_args, .init = init, .fini = fini, .timeout = 30);

/* ---- a context that is gone ---- */

static int why;

#define GONE(call)                                                                                 \
	do {                                                                                       \
		errno = 0;                                                                         \
		cr_expect_eq(call, why);                                                           \
		cr_expect_eq(errno, why == DDPS_E_SYSTEM ? EBADF : 0, #call);                      \
	} while (0)

static void nothing_is_done_with_queues(void)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	struct ddps_sge sge = { 0 };
	struct ddps_wc wc;
	struct ddps_cq *cq = NULL;
	struct ddps_srq *srq = NULL;
	uint32_t n = 1;
	uint64_t id;

	GONE(ddps_cq_new(a.ctx, 8, &cq));
	cr_expect_null(cq);
	GONE(ddps_cq_free(a.cq));
	GONE(ddps_cq_resize(a.cq, 8));
	GONE(ddps_cq_stamp(a.cq));
	GONE(ddps_cq_overflowed(a.cq));
	GONE(ddps_cq_fd(a.cq));
	GONE(ddps_cq_arm(a.cq, false));
	GONE(ddps_cq_arm_next(a.cq, false));
	GONE(ddps_cq_on_notify(a.cq, NULL, NULL));
	GONE(ddps_cq_poll(a.cq, &wc, 1));
	GONE(ddps_cq_wait(a.cq, &wc, 1, 0));
	GONE(ddps_post_send(a.ep, &wr));
	GONE(ddps_post_recv(a.ep, 1, NULL, 0));
	GONE(ddps_srq_new(a.pd, 8, 1, NULL, &srq));
	cr_expect_null(srq);
	GONE(ddps_srq_free(a.srq));
	GONE(ddps_post_srq_recv(a.srq, 1, NULL, 0));
	GONE(ddps_srq_arm(a.srq, 1));
	GONE(ddps_srq_posted(a.srq));
	GONE(ddps_take_srq_recv(a.srq, &id, &sge, &n));
}

static void nothing_is_done_with_memory(void)
{
	const struct ddps_mr_change to = { .access = DDPS_LOCAL_WRITE };
	struct ddps_pd *pd = NULL;
	struct ddps_mr *mr = NULL;
	size_t len = 0;

	GONE(ddps_pd_new(a.ctx, &pd));
	cr_expect_null(pd);
	GONE(ddps_pd_free(a.pd));
	GONE(ddps_mr_reg(a.pd, memory, 1, 0, NULL, &mr));
	GONE(ddps_mw_new(a.pd, false, &mr));
	cr_expect_null(mr);
	GONE(ddps_mr_place(a.mr, 0));
	GONE(ddps_mr_change(a.mr, DDPS_CHANGE_ACCESS, &to));
	GONE(ddps_mr_dereg(a.mr));
	GONE(ddps_sge_gather(a.pd, NULL, 0, NULL, &len));
	GONE(ddps_sge_scatter(a.pd, NULL, 0, NULL, 0));
}

static void nothing_is_done_with_sessions(void)
{
	struct ddps_assoc_stats assoc = { .struct_size = sizeof assoc };
	struct ddps_path_stats path = { .struct_size = sizeof path };
	struct ddps_ep_stats stats = { .struct_size = sizeof stats };
	struct ddps_listener *l = NULL;
	struct ddps_conn_info info;
	struct ddps_ep *ep = NULL;
	char uri[100];

	GONE(ddps_listen(a.ctx, "tcp://127.0.0.1:0", NULL, &l));
	cr_expect_null(l);
	GONE(ddps_listener_uri(a.listener, uri, sizeof uri));
	GONE(ddps_ep_new(a.ctx, &attr, &ep));
	cr_expect_null(ep);
	GONE(ddps_connect(a.ep, "tcp://127.0.0.1:1", NULL));
	GONE(ddps_disconnect(a.ep));
	GONE(ddps_abort(a.ep));
	GONE(ddps_ep_allow(a.ep, 0));
	GONE(ddps_ep_reads_max(a.ep, 1));
	GONE(ddps_ep_mute(a.ep, 0));
	GONE(ddps_ep_info(a.ep, &info));
	GONE(ddps_ep_unfetched(a.ep));
	GONE(ddps_ep_stats(a.ep, &stats));
	GONE(ddps_ep_assoc_stats(a.ep, &assoc));
	GONE(ddps_ep_path_stats(a.ep, 0, &path));
	GONE(ddps_ep_set_primary(a.ep, 0));
}

static void nothing_moves(void)
{
	struct ddps_ctx_stats stats = { .struct_size = sizeof stats };
	struct ddps_secured_stats secured = { .struct_size = sizeof secured };
	struct ddps_event ev;

	GONE(ddps_ctx_fd(a.ctx));
	GONE(ddps_progress(a.ctx, 0));
	GONE(ddps_ctx_settle(a.ctx, 0));
	GONE(ddps_ctx_flush(a.ctx, 0));
	GONE(ddps_ctx_stats(a.ctx, &stats));
	GONE(ddps_ctx_secured_stats(a.ctx, &secured));
	GONE(ddps_event_fd(a.ctx));
	GONE(ddps_event_get(a.ctx, &ev));
	GONE(ddps_event_wait(a.ctx, &ev, 0));
}

/* As in a child of fork, and after the program has closed the library's descriptors. */
Test(session_args, on_a_context_that_is_gone)
{
	static const struct {
		uint8_t alive;
		int why;
	} row[] = { { DDPS_FORKED, DDPS_E_FORKED }, { DDPS_ROBBED, DDPS_E_SYSTEM } };

	for (size_t i = 0; i < 2; i++) {
		*a.ctx->alive = row[i].alive;
		why = row[i].why;
		nothing_is_done_with_queues();
		nothing_is_done_with_memory();
		nothing_is_done_with_sessions();
		nothing_moves();
	}
	*a.ctx->alive = DDPS_HERE; /* and all is as it was */
	cr_expect_eq(ddps_srq_posted(a.srq), 0);
	cr_expect_eq(ddps_mr_dereg(a.mw), 0);
	cr_expect_eq(ddps_mr_dereg(a.mr), 0);
	cr_expect_eq(ddps_post_recv(a.ep, 1, NULL, 0), 0);
}

/* ---- arguments ---- */

#define REFUSED(call) cr_expect_eq(call, DDPS_E_INVAL, #call)

Test(session_args, memory_that_cannot_be_registered)
{
	struct ddps_mr *mr = NULL;

	REFUSED(ddps_mr_reg(NULL, memory, 1, 0, NULL, &mr));
	REFUSED(ddps_mr_reg(a.pd, memory, 1, 0, NULL, NULL));
	REFUSED(ddps_mr_reg(a.pd, NULL, 1, 0, NULL, &mr));
	REFUSED(ddps_mr_reg(a.pd, memory, SIZE_MAX, 0, NULL, &mr));
	REFUSED(ddps_mr_reg(a.pd, memory, 1, 1u << 31, NULL, &mr));
	REFUSED(ddps_mr_reg(a.pd, memory, 1, 0, b.ep, &mr));
	cr_expect_null(mr);
	cr_assert_eq(ddps_mr_reg(a.pd, NULL, 0, 0, a.ep, &mr), 0);
	cr_expect_eq(ddps_mr_dereg(mr), 0);
	cr_expect_eq(ddps_mr_dereg(NULL), 0);
	mr = NULL;
	REFUSED(ddps_mw_new(NULL, false, &mr));
	REFUSED(ddps_mw_new(a.pd, false, NULL));
	cr_expect_null(mr);
}

Test(session_args, changes_that_cannot_be)
{
	struct ddps_mr_change to = { .access = DDPS_LOCAL_WRITE };

	REFUSED(ddps_mr_place(NULL, 0));
	REFUSED(ddps_mr_place(a.mw, 0));
	REFUSED(ddps_mr_place(a.mr, UINT64_MAX));
	cr_expect_eq(ddps_mr_place(a.mr, UINT64_MAX - sizeof memory), 0);
	REFUSED(ddps_mr_change(NULL, DDPS_CHANGE_ACCESS, &to));
	REFUSED(ddps_mr_change(a.mr, DDPS_CHANGE_ACCESS, NULL));
	REFUSED(ddps_mr_change(a.mr, 0, &to));
	REFUSED(ddps_mr_change(a.mr, 0x8, &to));
	REFUSED(ddps_mr_change(a.mr, DDPS_CHANGE_PD, &to));
	to.pd = b.pd;
	REFUSED(ddps_mr_change(a.mr, DDPS_CHANGE_PD, &to));
	cr_expect_eq(ddps_mr_change(a.mr, DDPS_CHANGE_ACCESS, &to), 0, "that is not looked at");
	to.pd = a.pd;
	cr_expect_eq(ddps_mr_change(a.mr, DDPS_CHANGE_PD, &to), 0);
	to.reserved = 1;
	REFUSED(ddps_mr_change(a.mr, DDPS_CHANGE_ACCESS, &to));
	to.reserved = 0;
	REFUSED(ddps_mr_change(a.mw, DDPS_CHANGE_ACCESS, &to));
}

Test(session_args, endpoints_that_cannot_be)
{
	struct ddps_ep *ep = NULL;
	struct ddps_ep_attr bad;

	REFUSED(ddps_ep_new(a.ctx, &attr, NULL));
	REFUSED(ddps_ep_new(a.ctx, NULL, &ep));
	for (unsigned i = 0; i < 16; i++) {
		bad = attr;
		switch (i) {
		case 0:
			bad.pd = NULL;
			break;
		case 1:
			bad.send_cq = NULL;
			break;
		case 2:
			bad.recv_cq = NULL;
			break;
		case 3:
			bad.pd = b.pd;
			break;
		case 4:
			bad.send_cq = b.cq;
			break;
		case 5:
			bad.recv_cq = b.cq;
			break;
		case 6:
			bad.sq_depth = 0;
			break;
		case 7:
			bad.sq_depth = UINT32_MAX;
			break;
		case 8:
			bad.rq_depth = 0;
			break;
		case 9:
			bad.rq_depth = UINT32_MAX;
			break;
		case 10:
			bad.srq = b.srq;
			break;
		case 11:
			bad.max_sge = 0;
			break;
		case 12:
			bad.max_sge = UINT32_MAX;
			break;
		case 13:
			bad.no_recv = (enum ddps_no_recv)99;
			break;
		case 14:
			memset(bad.reserved, 1, 1);
			break;
		default:
			bad.struct_size = 1;
			break;
		}
		REFUSED(ddps_ep_new(a.ctx, &bad, &ep));
		cr_expect_null(ep, "%u", i);
	}
	cr_assert_eq(ddps_ep_new(a.ctx, &attr, &ep), 0);
	REFUSED(ddps_ep_allow(NULL, 0));
	REFUSED(ddps_ep_allow(ep, 1u << 31));
	REFUSED(ddps_ep_reads_max(NULL, 1));
	REFUSED(ddps_ep_reads_max(ep, 0));
	REFUSED(ddps_ep_mute(ep, 4));
	ddps_ep_free(ep);
}

Test(session_args, connections_that_cannot_be)
{
	struct ddps_conn_param p;

	for (unsigned i = 0; i < 12; i++) {
		ddps_conn_param_init(&p);
		switch (i) {
		case 0:
			p.reserved = 1;
			break;
		case 1:
			p.ird = DDPS_RD_ULP + 1;
			break;
		case 2:
			p.ord = DDPS_RD_ULP + 1;
			break;
		case 3:
			p.ulp_ird = DDPS_RD_MAX + 1;
			break;
		case 4:
			p.ulp_ord = DDPS_RD_MAX + 1;
			break;
		case 5:
			p.need_ord = DDPS_RD_MAX + 1;
			break;
		case 6:
			p.rtr = 0x80;
			break;
		case 7:
			p.max_mulpdu = 1;
			break;
		case 8:
			p.p2p = true;
			p.rtr = 0;
			break;
		case 9:
			p.p2p = p.plain = true;
			break;
		case 10:
			p.private_data_len = 1;
			p.private_data = NULL;
			break;
		default:
			p.struct_size = 1;
			break;
		}
		cr_expect_eq(ddps_connect(a.ep, "tcp://127.0.0.1:1", &p), DDPS_E_INVAL, "%u", i);
	}
	ddps_conn_param_init(&p);
	p.private_data = memory;
	p.private_data_len = DDPS_PD_MAX + 1;
	cr_expect_eq(ddps_connect(a.ep, "tcp://127.0.0.1:1", &p), DDPS_E_TOO_LONG);
}

/* A request of @a at the listener of @b, taken from its events. */
static struct ddps_request *take_args_request(void)
{
	struct ddps_event ev = { 0 };
	char uri[100];

	cr_assert_geq(ddps_listener_uri(b.listener, uri, sizeof uri), 0);
	cr_assert_eq(ddps_connect(a.ep, uri, NULL), 0);
	while (ddps_event_wait(b.ctx, &ev, 1) != 0)
		cr_assert_geq(ddps_progress(a.ctx, 0), 0);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	return ev.request;
}

/* What is refused leaves the request as it was. */
Test(session_args, answers_that_cannot_be)
{
	static const uint8_t long_one[DDPS_PD_MAX + 1];
	struct ddps_request *req = take_args_request();
	struct ddps_conn_param p;
	struct ddps_event ev;

	REFUSED(ddps_accept(req, a.ep, NULL));
	ddps_conn_param_init(&p);
	p.rtr = 0;
	REFUSED(ddps_accept(req, b.ep, &p));
	REFUSED(ddps_reject(req, NULL, 1));
	cr_expect_eq(ddps_reject(req, long_one, sizeof long_one), DDPS_E_TOO_LONG);
	cr_expect_eq(ddps_accept(req, b.ep, NULL), 0);
	while (ddps_event_wait(a.ctx, &ev, 1) != 0)
		cr_assert_geq(ddps_progress(b.ctx, 0), 0);
	cr_expect_eq(ev.type, DDPS_EV_ESTABLISHED);
}

Test(session_args, an_endpoint_that_is_taken)
{
	struct ddps_request *req = take_args_request();

	cr_assert_eq(ddps_connect(b.ep, "tcp://127.0.0.1:1", NULL), 0);
	cr_expect_eq(ddps_accept(req, b.ep, NULL), DDPS_E_STATE);
	cr_expect_eq(ddps_connect(b.ep, "tcp://127.0.0.1:1", NULL), DDPS_E_STATE);
	cr_expect_eq(ddps_reject(req, "no", 2), 0);
}

/* Its peer has gone meanwhile: the answer says so, once, and the endpoint is free yet. */
Test(session_args, a_request_that_is_gone)
{
	for (unsigned reject = 0; reject < 2; reject++) {
		struct ddps_request *req;
		int err;

		if (reject) {
			fini();
			init();
		}
		req = take_args_request();
		ddps_abort(a.ep);
		while (TAILQ_EMPTY(&b.ctx->events)) { /* REQUEST_GONE, which nobody fetches */
			cr_assert_geq(ddps_progress(a.ctx, 0), 0);
			cr_assert_geq(ddps_progress(b.ctx, 1), 0);
		}
		err = reject ? ddps_reject(req, NULL, 0) : ddps_accept(req, b.ep, NULL);
		cr_expect_eq(err, DDPS_E_CLOSED, "%d", err);
		cr_expect_eq(ddps_connect(b.ep, "tcp://127.0.0.1:1", NULL), 0);
	}
}

Test(session_args, listeners_and_queues_that_cannot_be)
{
	struct ddps_listener *l = NULL;
	struct ddps_listen_param p;
	struct ddps_srq *srq = NULL;
	struct ddps_cq *cq = NULL;

	REFUSED(ddps_listen(a.ctx, "tcp://127.0.0.1:0", NULL, NULL));
	for (unsigned i = 0; i < 3; i++) {
		ddps_listen_param_init(&p);
		p.rtr = i == 0 ? 0 : i == 1 ? 0x80 : p.rtr;
		p.max_half_open = i == 2 ? 0 : p.max_half_open;
		REFUSED(ddps_listen(a.ctx, "tcp://127.0.0.1:0", &p, &l));
	}
	cr_expect_null(l);
	REFUSED(ddps_cq_new(a.ctx, 8, NULL));
	REFUSED(ddps_cq_new(a.ctx, 0, &cq));
	cr_expect_null(cq);
	REFUSED(ddps_srq_new(a.pd, 8, 1, NULL, NULL));
	REFUSED(ddps_srq_new(a.pd, 0, 1, NULL, &srq));
	cr_expect_null(srq);
}

Test(session_args, counters_without_a_place)
{
	struct ddps_ctx_stats small = { .struct_size = 1 };
	struct ddps_secured_stats tiny = { .struct_size = 1 };

	REFUSED(ddps_ep_stats(a.ep, NULL));
	REFUSED(ddps_ctx_stats(a.ctx, NULL));
	REFUSED(ddps_ctx_stats(a.ctx, &small));
	REFUSED(ddps_ctx_secured_stats(a.ctx, NULL));
	REFUSED(ddps_ctx_secured_stats(a.ctx, &tiny));
	REFUSED(ddps_ep_assoc_stats(a.ep, NULL));
	REFUSED(ddps_ep_path_stats(a.ep, 0, NULL));
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_UNCONFIRMED), "unconfirmed");
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_ACTIVE), "active");
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_DOUBTFUL), "doubtful");
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_INACTIVE), "inactive");
	cr_expect_str_eq(ddps_path_state_name((enum ddps_path_state)99), "unknown");
}

Test(session_args, copies_that_cannot_be)
{
	struct ddps_sge sge[2] = { { memory, 8, ddps_mr_stag(a.mr) },
				   { memory + 8, 0, ddps_mr_stag(a.mr) } };
	uint8_t out[16];
	size_t len = 16;

	REFUSED(ddps_sge_gather(a.pd, sge, 1, out, NULL));
	REFUSED(ddps_sge_gather(NULL, sge, 1, out, &len));
	REFUSED(ddps_sge_gather(a.pd, NULL, 1, out, &len));
	REFUSED(ddps_sge_gather(a.pd, sge, DDPS_COPY_SGE_MAX + 1, out, &len));
	REFUSED(ddps_sge_gather(a.pd, sge, 1, NULL, &len));
	REFUSED(ddps_sge_scatter(NULL, sge, 1, out, 8));
	REFUSED(ddps_sge_scatter(a.pd, NULL, 1, out, 8));
	REFUSED(ddps_sge_scatter(a.pd, sge, 1, NULL, 8));
	memset(memory, 7, 8);
	cr_expect_eq(ddps_sge_gather(a.pd, sge, 2, out, &len), 0);
	cr_expect_eq(len, 8);
	cr_expect_arr_eq(out, memory, 8);
	len = 7;
	cr_expect_eq(ddps_sge_gather(a.pd, sge, 1, out, &len), DDPS_E_TOO_LONG);
	len = 0;
	cr_expect_eq(ddps_sge_gather(a.pd, NULL, 0, NULL, &len), 0);
	cr_expect_eq(ddps_sge_scatter(a.pd, sge, 1, out, 9), DDPS_E_TOO_LONG);
	out[0] = 9;
	cr_expect_eq(ddps_sge_scatter(a.pd, sge + 1, 1, NULL, 0), 0);
	sge[1] = sge[0];
	sge[0].len = 0;
	cr_expect_eq(ddps_sge_scatter(a.pd, sge, 2, out, 8), 0);
	cr_expect_eq(memory[0], 9);
	sge[1].lkey ^= 1;
	cr_expect_eq(ddps_sge_scatter(a.pd, sge, 2, out, 8), DDPS_E_ACCESS);
}
