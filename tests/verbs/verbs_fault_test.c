/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults on demand, as a program sees them: each status, event and effect by a rule. */
#include "edge/fault/vf.h"
#include "support/clock.h"
#include "verbs/vt.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A queue pair's states do not hide behind the connection's. */
static enum ibv_qp_state get_verbs_fault_state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

VT_TEST(verbs_fault, calls_fail_as_they_are_asked_to)
{
	struct vt v;
	struct ibv_mr *mr;

	vf_up(&v, "on ibv_reg_mr nth 4: fail ENOMEM\n"
		  "on ibv_alloc_pd: fail EAGAIN\n"
		  "on ibv_create_cq nth 3: fail EMFILE\n"
		  "on rdma_create_event_channel nth 3: fail ENODEV\n"
		  "on ibv_post_send nth 2: fail ENOBUFS\n"
		  "on ibv_query_port: fail EIO\n");
	/* two were made by vt_up */
	mr = ibv_reg_mr(v.a.id->pd, v.a.buf, 8, 0);
	cr_assert_not_null(mr);
	VT_NULL_AS(ibv_reg_mr(v.a.id->pd, v.a.buf, 8, 0), ENOMEM);
	VT_NULL_AS(ibv_alloc_pd(v.a.id->verbs), EAGAIN);
	VT_NULL_AS(ibv_create_cq(v.a.id->verbs, 1, NULL, NULL, 0), EMFILE);
	VT_NULL_AS(rdma_create_event_channel(), ENODEV);
	cr_expect_eq(vt_recv(&v.b, 1, 0, 100), 0);
	cr_expect_eq(vt_post(&v.a, 1, IBV_WR_SEND, 100, NULL), 0);
	cr_expect_eq(vt_post(&v.a, 2, IBV_WR_SEND, 100, NULL), ENOBUFS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	{
		struct ibv_port_attr attr;

		cr_expect_eq(ibv_query_port(v.a.id->verbs, 1, &attr), EIO);
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_str_eq(vf_traced(), "1 ibv_reg_mr: line 1: fail ENOMEM\n"
				      "2 ibv_alloc_pd: line 2: fail EAGAIN\n"
				      "3 ibv_create_cq: line 3: fail EMFILE\n"
				      "4 rdma_create_event_channel: line 4: fail ENODEV\n"
				      "5 ibv_post_send send qp 1: line 5: fail ENOBUFS\n"
				      "6 ibv_query_port: line 6: fail EIO\n");
	vt_down(&v);
}

/* The second of three Sends gets @status; what is behind it is flushed. */
static void get_verbs_fault_status(enum ibv_wc_status want)
{
	char rules[120];
	struct vt v;
	struct ibv_wc wc;

	snprintf(rules, sizeof rules, "on completion qp 1 opcode send nth 2: status %s\n",
		 vf_name(VF_NAME_STATUS, (int)want));
	vf_up(&v, rules);
	for (unsigned i = 1; i <= 3; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 100), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 100, NULL), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 100, NULL), 0);
	wc = vt_wc(&v.a);
	cr_expect_eq(wc.status, want, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.wr_id, 2);
	cr_expect_eq(wc.vendor_err, 255);
	if (want != IBV_WC_SUCCESS) {
		cr_expect_eq(get_verbs_fault_state_of(v.a.id->qp), IBV_QPS_ERR);
		vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
		vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	}
	vt_down(&v);
}

#define STATUS(name)                                                                               \
	Test(verbs_fault_status, name, .timeout = 60)                                              \
	{                                                                                          \
		get_verbs_fault_status(name);                                                      \
	}
STATUS(IBV_WC_SUCCESS)
STATUS(IBV_WC_LOC_LEN_ERR)
STATUS(IBV_WC_LOC_QP_OP_ERR)
STATUS(IBV_WC_LOC_EEC_OP_ERR)
STATUS(IBV_WC_LOC_PROT_ERR)
STATUS(IBV_WC_WR_FLUSH_ERR)
STATUS(IBV_WC_MW_BIND_ERR)
STATUS(IBV_WC_BAD_RESP_ERR)
STATUS(IBV_WC_LOC_ACCESS_ERR)
STATUS(IBV_WC_REM_INV_REQ_ERR)
STATUS(IBV_WC_REM_ACCESS_ERR)
STATUS(IBV_WC_REM_OP_ERR)
STATUS(IBV_WC_RETRY_EXC_ERR)
STATUS(IBV_WC_RNR_RETRY_EXC_ERR)
STATUS(IBV_WC_LOC_RDD_VIOL_ERR)
STATUS(IBV_WC_REM_INV_RD_REQ_ERR)
STATUS(IBV_WC_REM_ABORT_ERR)
STATUS(IBV_WC_INV_EECN_ERR)
STATUS(IBV_WC_INV_EEC_STATE_ERR)
STATUS(IBV_WC_FATAL_ERR)
STATUS(IBV_WC_RESP_TIMEOUT_ERR)
STATUS(IBV_WC_GENERAL_ERR)
STATUS(IBV_WC_TM_ERR)
STATUS(IBV_WC_TM_RNDV_INCOMPLETE)

/* ---- connecting ---- */

/* An identifier and where it would connect to: nobody is asked. */
static struct rdma_cm_id *dialer(struct vt *v)
{
	vt_init(v);
	v->a.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v->a.ch, &v->a.id, v, RDMA_PS_TCP), 0);
	((struct sockaddr_in *)&v->addr)->sin_port = htons(9);
	return v->a.id;
}

static void failed_with(struct vt *v, enum rdma_cm_event_type type, int status_)
{
	struct rdma_cm_event *e = vt_event(v->a.ch, type);

	cr_expect_eq(e->status, -status_, "%d", e->status);
	cr_expect_eq(e->id, v->a.id);
	rdma_ack_cm_event(e);
	vt_down(v);
}

static int resolve_addr(struct vt *v)
{
	return rdma_resolve_addr(v->a.id, NULL, (struct sockaddr *)&v->addr, 2000);
}

Test(verbs_fault_event, RDMA_CM_EVENT_ADDR_ERROR, .timeout = 60)
{
	struct vt v;

	vf_use("on rdma_resolve_addr peer 127.0.0.1: event ADDR_ERROR ENODEV\n");
	dialer(&v);
	cr_assert_eq(resolve_addr(&v), 0);
	failed_with(&v, RDMA_CM_EVENT_ADDR_ERROR, ENODEV);
}

Test(verbs_fault_event, RDMA_CM_EVENT_ROUTE_ERROR, .timeout = 60)
{
	struct vt v;

	vf_use("on rdma_resolve_route: event ROUTE_ERROR\n");
	dialer(&v);
	cr_assert_eq(resolve_addr(&v), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(v.a.id, 2000), 0);
	failed_with(&v, RDMA_CM_EVENT_ROUTE_ERROR, EHOSTUNREACH);
}

/* The peer never learns of it. */
static void connect_fails(const char *rule, enum rdma_cm_event_type type, int status_)
{
	struct vt v;

	vf_use(rule);
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	cr_expect_eq(get_verbs_fault_state_of(v.a.id->qp), IBV_QPS_ERR);
	failed_with(&v, type, status_);
}

Test(verbs_fault_event, RDMA_CM_EVENT_REJECTED, .timeout = 60)
{
	connect_fails("on rdma_connect: event REJECTED", RDMA_CM_EVENT_REJECTED, ECONNREFUSED);
}

Test(verbs_fault_event, RDMA_CM_EVENT_UNREACHABLE, .timeout = 60)
{
	uint64_t begun = read_clock_ms();

	connect_fails("on rdma_connect: event UNREACHABLE ETIMEDOUT in 200ms",
		      RDMA_CM_EVENT_UNREACHABLE, ETIMEDOUT);
	cr_expect_geq(read_clock_ms() - begun, 200);
}

Test(verbs_fault_event, RDMA_CM_EVENT_CONNECT_ERROR, .timeout = 60)
{
	connect_fails("on rdma_connect: event CONNECT_ERROR ENETDOWN", RDMA_CM_EVENT_CONNECT_ERROR,
		      ENETDOWN);
}

/* Those that are no failure come next to what the call does. */
static void beside(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	char rules[80];
	struct vt v;

	snprintf(rules, sizeof rules, "on completion qp 2 nth 1: event %s", rdma_event_str(type));
	vf_up(&v, rules);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 100), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 100, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	e = vt_event(v.b.ch, type);
	cr_expect_eq(e->id, v.b.id);
	cr_expect_null(e->listen_id);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

#define BESIDE(name)                                                                               \
	Test(verbs_fault_event, name, .timeout = 60)                                               \
	{                                                                                          \
		beside(name);                                                                      \
	}
BESIDE(RDMA_CM_EVENT_ADDR_RESOLVED)
BESIDE(RDMA_CM_EVENT_ROUTE_RESOLVED)
BESIDE(RDMA_CM_EVENT_CONNECT_RESPONSE)
BESIDE(RDMA_CM_EVENT_ESTABLISHED)
BESIDE(RDMA_CM_EVENT_DISCONNECTED)
BESIDE(RDMA_CM_EVENT_DEVICE_REMOVAL)
BESIDE(RDMA_CM_EVENT_MULTICAST_JOIN)
BESIDE(RDMA_CM_EVENT_MULTICAST_ERROR)
BESIDE(RDMA_CM_EVENT_ADDR_CHANGE)
BESIDE(RDMA_CM_EVENT_TIMEWAIT_EXIT)

/* A request from nobody: to accept it says that the peer has gone. */
Test(verbs_fault_event, RDMA_CM_EVENT_CONNECT_REQUEST, .timeout = 60)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	struct vt v;

	vf_use("on rdma_listen: event CONNECT_REQUEST in 50ms");
	vt_init(&v);
	vt_listen(&v);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_expect_eq(e->listen_id, v.listen);
	id = e->id;
	cr_assert_neq(id, v.listen);
	rdma_ack_cm_event(e);
	VT_MINUS_AS(rdma_accept(id, &v.accept), ECONNRESET);
	cr_expect_eq(rdma_destroy_id(id), 0);
	vt_down(&v);
}

/* An accept that fails: the peer is refused. */
VT_TEST(verbs_fault, an_accept_fails)
{
	struct vt v;

	vf_use("on rdma_accept: event CONNECT_ERROR\n");
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_CONNECT_ERROR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
	vt_down(&v);
}

/* ---- asynchronous events ---- */

static void async(enum ibv_event_type type, const char *point)
{
	struct ibv_async_event e;
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	char rules[120];
	struct vt v;

	snprintf(rules, sizeof rules, "on %s nth 1: async %s", point,
		 vf_name(VF_NAME_ASYNC, (int)type));
	vf_use(rules);
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	v.srq = ibv_create_srq(v.a.id->pd, &srq);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	get_verbs_fault_state_of(v.b.id->qp); /* where the rule fires */
	e = vt_async(v.b.id->verbs, type);
	if (type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED)
		cr_expect_eq(e.element.srq, v.srq);
	else if (type == IBV_EVENT_CQ_ERR)
		cr_expect_eq(e.element.cq, v.b.cq);
	else if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_COMM_EST)
		cr_expect_eq(e.element.qp, v.b.id->qp);
	else if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_GID_CHANGE)
		cr_expect_eq(e.element.port_num, 1);
	ibv_ack_async_event(&e);
	if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_DEVICE_FATAL)
		cr_expect_eq(get_verbs_fault_state_of(v.b.id->qp), IBV_QPS_ERR);
	if (type == IBV_EVENT_DEVICE_FATAL)
		cr_expect_eq(get_verbs_fault_state_of(v.a.id->qp), IBV_QPS_ERR);
	vt_down(&v);
}

#define ASYNC(name)                                                                                \
	Test(verbs_fault_async, name, .timeout = 60)                                               \
	{                                                                                          \
		async(name, "ibv_query_qp qp 2");                                                  \
	}
ASYNC(IBV_EVENT_CQ_ERR)
ASYNC(IBV_EVENT_QP_FATAL)
ASYNC(IBV_EVENT_QP_REQ_ERR)
ASYNC(IBV_EVENT_QP_ACCESS_ERR)
ASYNC(IBV_EVENT_COMM_EST)
ASYNC(IBV_EVENT_SQ_DRAINED)
ASYNC(IBV_EVENT_PATH_MIG)
ASYNC(IBV_EVENT_PATH_MIG_ERR)
ASYNC(IBV_EVENT_DEVICE_FATAL)
ASYNC(IBV_EVENT_PORT_ACTIVE)
ASYNC(IBV_EVENT_LID_CHANGE)
ASYNC(IBV_EVENT_PKEY_CHANGE)
ASYNC(IBV_EVENT_SM_CHANGE)
ASYNC(IBV_EVENT_SRQ_ERR)
ASYNC(IBV_EVENT_SRQ_LIMIT_REACHED)
ASYNC(IBV_EVENT_QP_LAST_WQE_REACHED)
ASYNC(IBV_EVENT_CLIENT_REREGISTER)
ASYNC(IBV_EVENT_GID_CHANGE)
ASYNC(IBV_EVENT_WQ_FATAL)

/* By time; and the port is down as long as it says so. */
Test(verbs_fault_async, IBV_EVENT_PORT_ERR, .timeout = 60)
{
	struct ibv_async_event e;
	struct ibv_port_attr port;
	struct vt v;

	vf_up(&v, "at 300ms: async PORT_ERR\nat 600ms: async PORT_ACTIVE\n");
	cr_assert_eq(ibv_query_port(v.a.id->verbs, 1, &port), 0);
	e = vt_async(v.a.id->verbs, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&e);
	e = vt_async(v.a.id->verbs, IBV_EVENT_PORT_ACTIVE);
	ibv_ack_async_event(&e);
	cr_assert_eq(ibv_query_port(v.a.id->verbs, 1, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_ACTIVE);
	cr_expect_str_eq(vf_traced(), "1 time: line 1: async IBV_EVENT_PORT_ERR\n"
				      "2 time: line 2: async IBV_EVENT_PORT_ACTIVE\n");
	vt_down(&v);
}

Test(verbs_fault, a_port_that_is_down_says_so, .timeout = 60)
{
	struct ibv_async_event e;
	struct ibv_port_attr port;
	struct vt v;

	vf_up(&v, "on ibv_query_qp: async PORT_ERR\n");
	cr_assert_eq(ibv_query_port(v.a.id->verbs, 1, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_ACTIVE);
	get_verbs_fault_state_of(v.a.id->qp);
	cr_assert_eq(ibv_query_port(v.a.id->verbs, 1, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_DOWN);
	e = vt_async(v.a.id->verbs, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&e);
	vt_down(&v);
}
