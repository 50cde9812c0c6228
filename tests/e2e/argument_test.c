/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments that the headers forbid: each is refused, and what it was given for is as it was. */
#include "support/e2e.h"
#include <poll.h>
#include <string.h>

TestSuite(argument, .timeout = 60);

static void count_call(void *user)
{
	++*(unsigned *)user;
}

static struct ddps_event take_argument_event(struct e2e *e)
{
	struct ddps_event ev;

	cr_assert_eq(ddps_event_wait(e->ctx, &ev, E2E_MS), 0);
	return ev;
}

/* An initiator whose request waits to be answered. */
static struct ddps_request *take_waiting_request(struct e2e *e)
{
	struct ddps_event ev;

	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, e->uri, &e->connect), 0);
	ev = take_argument_event(e);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	return ev.request;
}

/* The call with default parameters, but for one. */
#define CONNECT(err, ...)                                                                          \
	do {                                                                                       \
		struct ddps_conn_param p;                                                          \
                                                                                                   \
		ddps_conn_param_init(&p);                                                          \
		__VA_ARGS__;                                                                       \
		cr_expect_eq(ddps_connect(ep, e.uri, &p), err, #__VA_ARGS__);                      \
	} while (0)
#define ACCEPT(err, ...)                                                                           \
	do {                                                                                       \
		struct ddps_conn_param p;                                                          \
                                                                                                   \
		ddps_conn_param_init(&p);                                                          \
		__VA_ARGS__;                                                                       \
		cr_expect_eq(ddps_accept(req, ep, &p), err, #__VA_ARGS__);                         \
	} while (0)

Test(argument, of_connect)
{
	static const char text[DDPS_PD_MAX + 1];
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	CONNECT(DDPS_E_INVAL, p.reserved = 1);
	CONNECT(DDPS_E_INVAL, p.ird = DDPS_RD_ULP + 1);
	CONNECT(DDPS_E_INVAL, p.ord = DDPS_RD_ULP + 1);
	CONNECT(DDPS_E_INVAL, p.ulp_ird = DDPS_RD_MAX + 1);
	CONNECT(DDPS_E_INVAL, p.ulp_ord = DDPS_RD_MAX + 1);
	CONNECT(DDPS_E_INVAL, p.need_ord = DDPS_RD_MAX + 1);
	CONNECT(DDPS_E_INVAL, p.rtr = DDPS_RTR_ALL + 1);
	CONNECT(DDPS_E_INVAL, p.max_mulpdu = 127);
	CONNECT(DDPS_E_INVAL, p.p2p = true, p.rtr = 0);
	CONNECT(DDPS_E_INVAL, p.p2p = true, p.plain = true);
	CONNECT(DDPS_E_INVAL, p.private_data_len = 1);
	CONNECT(DDPS_E_TOO_LONG, p.private_data = text, p.private_data_len = 509);
	CONNECT(DDPS_E_TOO_LONG, p.plain = true, p.private_data = text, p.private_data_len = 513);
	/* None of it has used the endpoint; each at its limit is taken. */
	CONNECT(0, p.ird = DDPS_RD_ULP, p.ord = DDPS_RD_ULP, p.ulp_ird = DDPS_RD_MAX,
		p.ulp_ord = DDPS_RD_MAX, p.need_ord = DDPS_RD_MAX, p.rtr = 0, p.max_mulpdu = 128,
		p.private_data = text, p.private_data_len = 508);
	CONNECT(DDPS_E_STATE, p.ird = 1);
	ddps_ep_free(ep);
	e2e_close(&e);
}

Test(argument, of_accept_and_reject)
{
	static const char text[DDPS_PD_MAX + 1];
	struct ddps_ctx_stats st = { .struct_size = sizeof st };
	struct ddps_request *req;
	struct ddps_ep *ep;
	struct e2e e, other;

	e2e_open(&e, e2e_wires[0]);
	e2e_open(&other, e2e_wires[0]);
	req = take_waiting_request(&e);
	cr_assert_eq(ddps_ep_new(other.ctx, &other.attr, &ep), 0);
	ACCEPT(DDPS_E_INVAL, p.ird = 1);
	ddps_ep_free(ep);
	ep = e.a.ep;
	ACCEPT(DDPS_E_STATE, p.ird = 1);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	ACCEPT(DDPS_E_INVAL, p.rtr = 0);
	ACCEPT(DDPS_E_INVAL, p.struct_size--);
	ACCEPT(DDPS_E_INVAL, p.private_data_len = 1);
	ACCEPT(DDPS_E_TOO_LONG, p.private_data = text, p.private_data_len = 509);
	cr_expect_eq(ddps_reject(req, NULL, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_reject(req, text, 509), DDPS_E_TOO_LONG);
	cr_assert_eq(ddps_ctx_stats(e.ctx, &st), 0);
	cr_expect_eq(st.requests, 1, "it can still be answered");
	/* What is forbidden at an initiator has no meaning here. */
	e.b.ep = ep;
	ACCEPT(0, p.p2p = true, p.plain = true);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_ESTABLISHED));
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
	e2e_close(&other);
}

Test(argument, no_rtr_type_that_the_responder_takes)
{
	struct ddps_request *req;
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	e.connect.p2p = true;
	e.connect.rtr = DDPS_RTR_SEND;
	req = take_waiting_request(&e);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	ACCEPT(DDPS_E_RTR, p.rtr = DDPS_RTR_WRITE, p.private_data = "why", p.private_data_len = 3);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_REJECTED));
	cr_expect_eq(e.a.established.private_data_len, 3);
	cr_expect_arr_eq(e.a.established.private_data, "why", 3);
	cr_expect_eq(e.a.established.info.peer_rtr, DDPS_RTR_WRITE);
	ddps_ep_free(ep); /* which was not used */
	e2e_close(&e);
}

/* Whose initiator has left, but nobody has taken the event that says so. */
static struct ddps_request *leave_unread_request(struct e2e *e)
{
	struct ddps_request *req = take_waiting_request(e);
	struct ddps_event ev;
	struct pollfd gone;

	cr_assert_eq(ddps_abort(e->a.ep), 0);
	ev = take_argument_event(e);
	cr_assert_eq(ev.type, DDPS_EV_FAILED);
	gone = (struct pollfd){ .fd = ddps_event_fd(e->ctx), .events = POLLIN };
	while (!poll(&gone, 1, 0))
		cr_assert_geq(ddps_progress(e->ctx, E2E_MS), 0);
	return req;
}

Test(argument, a_request_that_has_gone)
{
	struct ddps_event ev;
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	cr_expect_eq(ddps_accept(leave_unread_request(&e), ep, NULL), DDPS_E_CLOSED);
	cr_expect_eq(ddps_event_get(e.ctx, &ev), 0, "it is used up, and so is its event");
	ddps_ep_free(e.a.ep);
	cr_expect_eq(ddps_reject(leave_unread_request(&e), NULL, 0), DDPS_E_CLOSED);
	cr_expect_eq(ddps_event_get(e.ctx, &ev), 0);
	ddps_ep_free(ep);
	e2e_close(&e);
}

#define EP(...)                                                                                    \
	do {                                                                                       \
		struct ddps_ep_attr attr = e.attr;                                                 \
                                                                                                   \
		__VA_ARGS__;                                                                       \
		cr_expect_eq(ddps_ep_new(e.ctx, &attr, &ep), DDPS_E_INVAL, #__VA_ARGS__);          \
	} while (0)

Test(argument, of_an_endpoint)
{
	struct ddps_ep *ep = NULL;
	struct ddps_srq *srq;
	struct e2e e, other;
	struct ddps_pd *pd;
	struct ddps_wc wc;

	e2e_open(&e, e2e_wires[0]);
	e2e_open(&other, e2e_wires[0]);
	cr_assert_eq(ddps_pd_new(e.ctx, &pd), 0);
	cr_assert_eq(ddps_srq_new(pd, 1, 1, NULL, &srq), 0);
	EP(attr.pd = NULL);
	EP(attr.send_cq = NULL);
	EP(attr.recv_cq = NULL);
	EP(attr.pd = other.pd);
	EP(attr.send_cq = other.cq);
	EP(attr.recv_cq = other.cq);
	EP(attr.srq = srq); /* of another protection domain */
	EP(attr.no_recv = (enum ddps_no_recv)(DDPS_NO_RECV_STALL + 1));
	EP(attr.reserved[sizeof e.attr.reserved - 1] = 1);
	EP(attr.struct_size--);
	cr_expect_eq(ddps_ep_new(e.ctx, NULL, &ep), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_new(e.ctx, &e.attr, NULL), DDPS_E_INVAL);
	cr_expect_null(ep);
	e.attr.flush_late = true;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	cr_expect_eq(ddps_ep_allow(NULL, 0), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_allow(ep, DDPS_LOCAL_WRITE), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_allow(ep, DDPS_REMOTE_READ), 0);
	cr_expect_eq(ddps_ep_mute(ep, 4), DDPS_E_INVAL);
	/* Also once it has ended and takes what is to be flushed. */
	cr_assert_eq(ddps_abort(ep), 0);
	cr_expect_eq(ddps_post_send(
			     ep, &(struct ddps_send_wr){ .op = (enum ddps_op)(DDPS_OP_FLUSH + 1) }),
		     DDPS_E_INVAL);
	cr_expect_eq(ddps_post_send(ep, &(struct ddps_send_wr){ .op = DDPS_OP_RECV }),
		     DDPS_E_INVAL);
	cr_expect_eq(ddps_post_send(ep, &(struct ddps_send_wr){ .flags = 0x100 }), DDPS_E_INVAL);
	cr_expect_eq(ddps_cq_poll(e.cq, &wc, 1), 0);
	cr_expect_eq(ddps_post_send(ep, &(struct ddps_send_wr){ .op = DDPS_OP_SEND_IMM }), 0);
	cr_expect_eq(ddps_cq_poll(e.cq, &wc, 1), 1);
	cr_expect(wc.op == DDPS_OP_SEND_IMM && wc.status == DDPS_WC_FLUSHED);
	ddps_ep_free(ep);
	cr_assert_eq(ddps_srq_free(srq), 0);
	e2e_close(&e);
	e2e_close(&other);
}

Test(argument, a_shared_queue_has_the_receives_of_its_endpoints)
{
	struct ddps_srq *srq;
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_srq_new(e.pd, 1, 1, NULL, &srq), 0);
	e.attr.srq = srq;
	e.attr.flush_late = true;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	cr_expect_eq(ddps_post_recv(ep, 1, NULL, 0), DDPS_E_INVAL);
	cr_assert_eq(ddps_abort(ep), 0);
	cr_expect_eq(ddps_post_recv(ep, 1, NULL, 0), DDPS_E_INVAL, "nor later");
	cr_expect_eq(ddps_srq_free(srq), DDPS_E_BUSY);
	ddps_ep_free(ep);
	cr_assert_eq(ddps_srq_free(srq), 0);
	e2e_close(&e);
}

static void no_log(void *user, enum ddps_log_level level, const char *facility, const char *message)
{
	cr_expect(!user && level <= DDPS_LOG_DEBUG && facility && message);
}

#define CTX(...)                                                                                   \
	do {                                                                                       \
		struct ddps_ctx_attr bad;                                                          \
                                                                                                   \
		ddps_ctx_attr_init(&bad);                                                          \
		__VA_ARGS__;                                                                       \
		cr_expect_eq(ddps_ctx_new(&ctx, &bad), DDPS_E_INVAL, #__VA_ARGS__);                \
		cr_expect_null(ctx);                                                               \
	} while (0)

Test(argument, of_a_context)
{
	struct ddps_ctx *ctx = NULL;
	struct ddps_ctx_attr attr;

	CTX(bad.max_ird = DDPS_RD_MAX + 1);
	CTX(bad.max_ord = DDPS_RD_MAX + 1);
	CTX(bad.max_regions = 0);
	CTX(bad.reserved[0] = 1);
	CTX(bad.reserved[5] = 1);
	CTX(bad.struct_size--);
	cr_expect_eq(ddps_ctx_new(NULL, NULL), DDPS_E_INVAL);
	ddps_ctx_attr_init(&attr);
	attr.log = no_log;
	attr.max_ird = attr.max_ord = DDPS_RD_MAX;
	attr.max_regions = 1;
	cr_assert_eq(ddps_ctx_new(&ctx, &attr), 0);
	ddps_ctx_free(ctx);
}

#define LISTEN(...)                                                                                \
	do {                                                                                       \
		struct ddps_listen_param p;                                                        \
                                                                                                   \
		ddps_listen_param_init(&p);                                                        \
		__VA_ARGS__;                                                                       \
		cr_expect_eq(ddps_listen(e.ctx, e2e_wires[0], &p, &l), DDPS_E_INVAL,               \
			     #__VA_ARGS__);                                                        \
	} while (0)

Test(argument, of_a_listener)
{
	struct ddps_listener *l = NULL;
	struct e2e e;
	char why[1] = "x";

	e2e_open(&e, e2e_wires[0]);
	LISTEN(p.rtr = 0);
	LISTEN(p.rtr = DDPS_RTR_ALL + 1);
	LISTEN(p.max_half_open = 0);
	LISTEN(p.struct_size--);
	cr_expect_eq(ddps_listen(e.ctx, e2e_wires[0], NULL, NULL), DDPS_E_INVAL);
	cr_expect_null(l);
	/* No room for a sentence: none is written. */
	cr_expect_eq(ddps_uri_check("tcp://h", why, 0), DDPS_E_ADDRESS);
	cr_expect_eq(why[0], 'x');
	cr_expect_eq(ddps_uri_check("tcp://h", why, 1), DDPS_E_ADDRESS);
	cr_expect_eq(why[0], 0);
	e2e_close(&e);
}

Test(argument, of_a_region)
{
	static char buf[16];
	struct ddps_mr_change to = { .access = DDPS_REMOTE_READ };
	struct ddps_mr *mr, *mw, *none = NULL;
	struct ddps_pd *pd;
	struct ddps_ep *ep;
	struct e2e e, other;

	e2e_open(&e, e2e_wires[0]);
	e2e_open(&other, e2e_wires[0]);
	cr_assert_eq(ddps_pd_new(e.ctx, &pd), 0);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	cr_expect_eq(ddps_mr_reg(NULL, buf, 1, 0, NULL, &none), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_reg(pd, buf, 1, 0, NULL, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_reg(pd, NULL, 1, 0, NULL, &none), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_reg(pd, buf, ((size_t)1 << 48) + 1, 0, NULL, &none), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_reg(pd, buf, 1, 0x100, NULL, &none), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_reg(pd, buf, 1, 0, ep, &none), DDPS_E_INVAL, "of another PD");
	cr_expect_eq(ddps_mw_new(NULL, true, &none), DDPS_E_INVAL);
	cr_expect_eq(ddps_mw_new(pd, true, NULL), DDPS_E_INVAL);
	cr_expect_null(none);
	cr_assert_eq(ddps_mr_reg(e.pd, NULL, 0, 0, ep, &mr), 0, "no memory at all is a region");
	cr_assert_eq(ddps_mr_dereg(mr), 0);
	cr_assert_eq(ddps_mr_reg(pd, buf, sizeof buf, 0, NULL, &mr), 0);
	cr_assert_eq(ddps_mw_new(pd, true, &mw), 0);
	cr_expect_eq(ddps_mr_place(NULL, 0), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_place(mw, 0), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_place(mr, UINT64_MAX - sizeof buf + 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_to(mr), (uintptr_t)buf);
	cr_expect_eq(ddps_mr_place(mr, UINT64_MAX - sizeof buf), 0);
	cr_expect_eq(ddps_mr_to(mr), UINT64_MAX - sizeof buf);
	cr_expect_eq(ddps_mr_change(NULL, DDPS_CHANGE_ACCESS, &to), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_change(mr, DDPS_CHANGE_ACCESS, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_change(mr, 0, &to), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_change(mr, 8, &to), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_change(mw, DDPS_CHANGE_ACCESS, &to), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_change(mr, DDPS_CHANGE_PD, &to), DDPS_E_INVAL, "no PD");
	to.pd = other.pd;
	cr_expect_eq(ddps_mr_change(mr, DDPS_CHANGE_PD, &to), DDPS_E_INVAL, "another context's");
	to.pd = e.pd;
	to.reserved = 1;
	cr_expect_eq(ddps_mr_change(mr, DDPS_CHANGE_PD, &to), DDPS_E_INVAL);
	cr_expect_eq(ddps_pd_free(pd), DDPS_E_BUSY);
	to.reserved = 0;
	cr_expect_eq(ddps_mr_change(mr, DDPS_CHANGE_PD, &to), 0);
	cr_assert_eq(ddps_mr_dereg(mw), 0);
	cr_expect_eq(ddps_pd_free(pd), 0, "the region is in the other one now");
	cr_assert_eq(ddps_mr_dereg(mr), 0);
	ddps_ep_free(ep);
	e2e_close(&e);
	e2e_close(&other);
}

Test(argument, of_copies)
{
	char buf[] = "abcdefgh", out[8] = "";
	struct ddps_sge sge[DDPS_COPY_SGE_MAX + 1] = { 0 };
	struct ddps_mr *mr;
	struct e2e e;
	size_t len = 8;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_mr_reg(e.pd, buf, 8, DDPS_LOCAL_WRITE, NULL, &mr), 0);
	sge[0] = (struct ddps_sge){ buf, 5, ddps_mr_stag(mr) };
	sge[2] = (struct ddps_sge){ buf + 5, 3, ddps_mr_stag(mr) }; /* sge[1] has nothing */
	cr_expect_eq(ddps_sge_gather(NULL, sge, 3, out, &len), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_gather(e.pd, sge, 3, out, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_gather(e.pd, NULL, 1, out, &len), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_gather(e.pd, sge, 3, NULL, &len), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_gather(e.pd, sge, DDPS_COPY_SGE_MAX + 1, out, &len), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_scatter(NULL, sge, 3, out, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_scatter(e.pd, NULL, 1, out, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_scatter(e.pd, sge, 3, NULL, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_scatter(e.pd, sge, DDPS_COPY_SGE_MAX + 1, out, 1), DDPS_E_INVAL);
	cr_expect_eq(out[0], 0);
	cr_expect_str_eq(buf, "abcdefgh");
	cr_expect_eq(ddps_sge_gather(e.pd, sge, DDPS_COPY_SGE_MAX, out, &len), 0);
	cr_expect_eq(len, 8);
	cr_expect_arr_eq(out, "abcdefgh", 8);
	cr_expect_eq(ddps_sge_scatter(e.pd, sge, 3, "1234567", 7), 0);
	cr_expect_str_eq(buf, "1234567h");
	cr_expect_eq(ddps_sge_scatter(e.pd, sge, 3, NULL, 0), 0);
	len = 0;
	cr_expect_eq(ddps_sge_gather(e.pd, sge + 1, 1, NULL, &len), 0, "nothing fits nowhere");
	cr_expect_eq(len, 0);
	cr_assert_eq(ddps_mr_dereg(mr), 0);
	e2e_close(&e);
}

Test(argument, of_queues)
{
	struct ddps_srq *srq = NULL;
	struct ddps_cq *cq;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_expect_eq(ddps_cq_new(e.ctx, 1, NULL), DDPS_E_INVAL);
	cr_assert_eq(ddps_cq_new(e.ctx, 1, &cq), 0);
	cr_expect_eq(ddps_cq_free(cq), 0);
	cr_expect_eq(ddps_srq_new(NULL, 1, 1, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 1, 1, NULL, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 0, 1, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 65536, 1, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 1, 0, NULL, &srq), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_new(e.pd, 1, 17, NULL, &srq), DDPS_E_INVAL);
	cr_expect_null(srq);
	cr_assert_eq(ddps_srq_new(e.pd, 65535, 16, NULL, &srq), 0);
	cr_expect_eq(ddps_srq_arm(srq, 65536), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_posted(srq), 0);
	cr_assert_eq(ddps_srq_free(srq), 0);
	e2e_close(&e);
}

/* A struct_size that no release has had, and counters that this one does not have. */
Test(argument, of_counters)
{
	struct {
		struct ddps_ctx_stats st;
		uint64_t later;
	} more = { .st.struct_size = sizeof more, .later = 7 };
	struct ddps_assoc_stats as = { .struct_size = 1 };
	struct ddps_path_stats ps = { .struct_size = 1 };
	struct ddps_ep_stats es = { .struct_size = 1 };
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	cr_expect_eq(ddps_ep_stats(ep, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_stats(ep, &es), DDPS_E_INVAL);
	cr_expect_eq(ddps_ctx_stats(e.ctx, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_assoc_stats(ep, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_assoc_stats(ep, &as), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_path_stats(ep, 0, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_ep_path_stats(ep, 0, &ps), DDPS_E_INVAL);
	as.struct_size = sizeof as;
	cr_expect_eq(ddps_ep_assoc_stats(ep, &as), DDPS_E_STATE);
	cr_expect_eq(ddps_ep_set_primary(ep, 0), DDPS_E_STATE);
	cr_expect_eq(ddps_ctx_stats(e.ctx, &more.st), 0);
	cr_expect_eq(more.later, 0);
	cr_expect_eq(more.st.endpoints, 1);
	cr_expect_eq(more.st.total.struct_size, sizeof more.st.total);
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_UNCONFIRMED), "unconfirmed");
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_ACTIVE), "active");
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_DOUBTFUL), "doubtful");
	cr_expect_str_eq(ddps_path_state_name(DDPS_PATH_INACTIVE), "inactive");
	cr_expect_str_eq(ddps_path_state_name((enum ddps_path_state)9), "unknown");
	ddps_ep_free(ep);
	e2e_close(&e);
}

/* ---- what is under way ---- */

/* Its name is being looked up when it ends. */
Test(argument, an_end_before_there_is_an_address)
{
	struct e2e e;

	for (int i = 0; i < 2; i++) {
		e2e_open(&e, e2e_wires[0]);
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
		e.connect.connect_ms = 0;
		cr_assert_eq(ddps_connect(e.a.ep, "tcp://localhost:9", &e.connect), 0);
		cr_expect_eq(i ? ddps_abort(e.a.ep) : ddps_disconnect(e.a.ep), 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_FAILED));
		cr_expect_eq(e.a.error.code, DDPS_E_CLOSED, "%s", e.a.error.text);
		cr_expect_eq(ddps_disconnect(e.a.ep), 0, "once more does nothing");
		e2e_close(&e);
	}
}

/* None is set: no deadline ends it. */
Test(argument, no_time_limits)
{
	struct e2e e;

	for (int i = 0; i < 3; i += 2) {
		e2e_open(&e, e2e_wires[i]);
		e.connect.connect_ms = e.connect.setup_ms = 0;
		e.accept.first_fpdu_ms = e.accept.setup_ms = 0;
		e2e_connect(&e);
		cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
		e2e_disconnect(&e, &e.a);
		e2e_close(&e);
	}
}

/* A window is not deregistered while a request that waits for its turn binds it. */
Test(argument, a_window_that_is_going_to_be_bound)
{
	static char buf[16];
	struct ddps_mr *mr, *mw;
	struct ddps_send_wr bind = { .op = DDPS_OP_BIND, .flags = DDPS_WR_FENCE, .nsge = 1 };
	struct ddps_sge sge;
	struct ddps_wc wc;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	e.attr.rfc7306 = true;
	e2e_connect(&e);
	mr = e2e_reg(&e, buf, sizeof buf, DDPS_LOCAL_WRITE | DDPS_REMOTE_READ | DDPS_BIND);
	cr_assert_eq(ddps_mw_new(e.pd, true, &mw), 0);
	sge = e2e_sge(buf, 8, mr);
	bind.sge = &sge;
	bind.stag = ddps_mr_stag(mw);
	bind.bind = (struct ddps_bind){ mw, DDPS_REMOTE_READ, 0 };
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, buf, 8, mr, ddps_mr_stag(mr), ddps_mr_to(mr) + 8),
		     0);
	cr_assert_eq(ddps_post_send(e.a.ep, &bind), 0);
	cr_expect_eq(ddps_mr_dereg(mw), DDPS_E_BUSY, "the Read has not been answered");
	e2e_expect_wc(&e, &e.a, DDPS_OP_READ, DDPS_WC_SUCCESS, 8);
	do
		wc = e2e_wc(&e);
	while (wc.op != DDPS_OP_BIND);
	cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
	cr_expect_eq(ddps_mr_dereg(mr), DDPS_E_BUSY, "the window is bound to it");
	cr_expect_eq(ddps_mr_dereg(mw), 0);
	cr_expect_eq(ddps_mr_dereg(mr), 0);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

/* Completions of two endpoints in one queue: each has its own. */
Test(argument, completions_are_counted_by_endpoint)
{
	struct ddps_wc wc[4];
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_assert_eq(e2e_post(&e.b, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	while (ddps_ep_unfetched(e.a.ep) + ddps_ep_unfetched(e.b.ep) < 4)
		cr_assert_geq(ddps_progress(e.ctx, E2E_MS), 0);
	cr_expect_eq(ddps_ep_unfetched(e.a.ep), 3);
	cr_expect_eq(ddps_ep_unfetched(e.b.ep), 1);
	cr_expect_eq(ddps_cq_poll(e.cq, wc, 4), 4);
	cr_expect_eq(ddps_ep_unfetched(e.a.ep), 0);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

/* A Send queue that was flushed silently makes up for it, unless nothing is left to report. */
Test(argument, a_send_queue_that_was_muted)
{
	static unsigned calls;
	struct ddps_wc wc[4];

	for (int taken = 0; taken < 2; taken++) {
		struct e2e e;

		calls = 0;
		e2e_open(&e, e2e_wires[0]);
		e.attr.flush_late = true;
		e2e_connect(&e);
		cr_assert_eq(ddps_cq_on_notify(e.cq, count_call, &calls), 0);
		cr_assert_eq(ddps_cq_arm(e.cq, false), 0);
		cr_assert_eq(ddps_ep_mute(e.a.ep, DDPS_MUTE_SENDS | DDPS_MUTE_RECVS), 0);
		cr_assert_eq(ddps_abort(e.a.ep), 0);
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
		cr_expect_eq(calls, 0);
		if (taken)
			cr_expect_eq(ddps_cq_poll(e.cq, wc, 4), 1);
		cr_assert_eq(ddps_ep_mute(e.a.ep, DDPS_MUTE_RECVS), 0);
		cr_expect_eq(calls, !taken);
		cr_assert_eq(ddps_ep_mute(e.a.ep, 0), 0);
		cr_expect_eq(calls, !taken, "of the receives nothing was flushed");
		e2e_close(&e);
	}
}

/* A name, which is looked up while the call lasts. */
Test(argument, where_to_listen_by_name)
{
	struct ddps_listener *l = NULL;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_expect_eq(ddps_listen(e.ctx, "tcp://name.invalid:7", NULL, &l), DDPS_E_ADDRESS);
	cr_expect_null(l);
	cr_assert_eq(ddps_listen(e.ctx, "tcp://localhost:0", NULL, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, e.uri, sizeof e.uri), 0);
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	e2e_disconnect(&e, &e.a);
	ddps_listener_free(l);
	e2e_close(&e);
}
