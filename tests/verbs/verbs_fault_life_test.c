/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules while objects go, or belong to a parent: nothing is touched that is not there any more. */
#include "support/child.h"
#include "verbs/vt.h"
#include "edge/fault/vf.h"
#include "verbs/vd.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <stdio.h>
#include <string.h>

#define FORKS 40

/* ---- an identifier goes before the queue pair that it was lent ---- */

struct lent {
	struct vt v;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	bool gone; /* atomic */
};

/* A connection of @v.a.id, whose queue pair is the program's own. */
static void lent_up(struct lent *l)
{
	struct vt *v = &l->v;
	struct ibv_qp_init_attr init;
	struct ibv_recv_wr recv = { .wr_id = 8 }, *bad;

	vt_init(v);
	vt_listen(v);
	v->a.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v->a.ch, &v->a.id, v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(v->a.id, NULL, (struct sockaddr *)&v->addr, 2000), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(v->a.id, 2000), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	l->cq = ibv_create_cq(v->a.id->verbs, 8, NULL, NULL, 0);
	init = (struct ibv_qp_init_attr){
		.send_cq = l->cq, .recv_cq = l->cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 }
	};
	l->qp = ibv_create_qp(v->a.id->pd, &init);
	cr_assert(l->cq && l->qp);
	v->a.id->qp = l->qp;
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
	vt_take_request(v);
	cr_assert_eq(ibv_post_recv(v->b.id->qp, &recv, &bad), 0);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

static void *destroy_id(void *arg)
{
	struct lent *l = arg;

	l->v.a.id->qp = NULL;
	cr_assert_eq(rdma_destroy_id(l->v.a.id), 0);
	__atomic_store_n(&l->gone, true, __ATOMIC_RELEASE);
	return NULL;
}

static struct ibv_wc next_in_verbs_fault_life(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		;
	return wc;
}

/* Its end waits for an acknowledgement while rules fire that are about it. */
static void goes_while(const char *rule)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct rdma_cm_event *e;
	struct lent l = { 0 };
	pthread_t thread;

	vf_use(rule);
	lent_up(&l);
	e = vt_event(l.v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(pthread_create(&thread, NULL, destroy_id, &l), 0);
	usleep(50000); /* it is in there, on most machines: else nothing is shown */
	cr_assert_eq(ibv_post_send(l.qp, &send, &bad), 0);
	cr_expect_eq(next_in_verbs_fault_life(l.cq).status, IBV_WC_SUCCESS);
	cr_expect(!__atomic_load_n(&l.gone, __ATOMIC_ACQUIRE));
	cr_assert_eq(rdma_ack_cm_event(e), 0);
	pthread_join(thread, NULL);
	l.v.a.id = NULL;
	cr_expect(!vt_readable(l.v.a.ch->fd, 100), "an event of an identifier that is gone");
	cr_expect_eq(ibv_destroy_qp(l.qp), 0);
	cr_expect_eq(ibv_destroy_cq(l.cq), 0);
	vt_down(&l.v);
}

VT_TEST(verbs_fault_life, an_identifier_goes_while_a_rule_reports_it)
{
	goes_while("on completion opcode send: event TIMEWAIT_EXIT\n");
}

VT_TEST(verbs_fault_life, an_identifier_goes_while_a_rule_will_report_it)
{
	goes_while("on completion opcode send: event TIMEWAIT_EXIT in 50ms\n");
}

/* ---- fork ---- */

static bool stop; /* atomic */

static void *poll_on(void *arg)
{
	struct ibv_wc wc;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		ibv_poll_cq(arg, 1, &wc);
	return NULL;
}

static void *post_on(void *arg)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(arg);

		ibv_post_send(arg, &send, &bad);
		ibv_wr_start(ex);
		ibv_wr_send(ex);
		ibv_wr_complete(ex);
	}
	return NULL;
}

/* Calls on what is the parent's come back, and say that. */
static int use_parents(struct vt *v)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(v->a.id->qp);
	struct ibv_wc wc;

	alarm(10);
	if (ibv_poll_cq(v->a.cq, 1, &wc) >= 0 ||
	    vt_post(&v->a, 1, IBV_WR_SEND, 1, NULL) != EINVAL ||
	    vt_recv(&v->a, 1, 0, 1) != EINVAL || ibv_req_notify_cq(v->a.cq, 0) != EINVAL)
		return 1;
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, v->a.mr->lkey, (uintptr_t)v->a.buf, 1);
	if (ibv_wr_complete(ex) != EINVAL)
		return 2;
	ibv_ack_cq_events(v->a.cq, 0);
	rdma_destroy_qp(v->a.id);
	return ibv_destroy_cq(v->a.cq) == EINVAL ? 0 : 3;
}

static void forks_while(void *(*busy)(void *), void *arg, struct vt *v)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, busy, arg), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(use_parents(v));
		cr_assert_eq(await_child_status(pid), 0, "fork %d", i);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	vt_down(v);
}

VT_TEST(verbs_fault_life, a_fork_while_another_thread_polls)
{
	struct vt v;

	vf_up(&v, "on ibv_reg_mr nth 99: fail ENOMEM\n");
	forks_while(poll_on, v.a.cq, &v);
}

VT_TEST(verbs_fault_life, a_fork_while_another_thread_posts)
{
	struct vt v;

	vf_up(&v, "on ibv_reg_mr nth 99: fail ENOMEM\n");
	forks_while(post_on, v.a.id->qp, &v);
}

VT_TEST(verbs_fault_life, a_fork_while_another_thread_posts_without_rules)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	forks_while(post_on, v.a.id->qp, &v);
}

/* Its queue pairs have numbers that the parent's have, too; here they are others. */
static int use_own(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct vt v;
	int err;

	alarm(20);
	vt_init(&v);
	vt_up(&v);
	err = ibv_query_qp(v.a.id->qp, &attr, IBV_QP_STATE, &init);
	vt_down(&v);
	return err == EIO ? 0 : 1;
}

VT_TEST(verbs_fault_life, a_child_has_queue_pairs_of_its_own)
{
	struct vt v;
	pid_t pid;

	vf_up(&v, "on ibv_query_qp qp 3: fail EIO\n");
	pid = fork_at_rest();
	if (!pid)
		_exit(use_own());
	cr_expect_eq(await_child_status(pid), 0);
	vt_down(&v);
}

/* ---- every call that a rule can name fails by one: n of n ---- */

/* An error that none of them has by itself. */
#define WHY	       ENOTTY
#define NULLED(call)   VT_NULL_AS(call, WHY)
#define MINUS(call)    VT_MINUS_AS(call, WHY)
#define NUMBERED(call) cr_expect_eq(call, WHY, "%s", #call)

static void open_verbs_fault_calls_device(struct ibv_context **ctx)
{
	struct ibv_device **list;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;

	NULLED(ibv_get_device_list(NULL));
	list = ibv_get_device_list(NULL);
	cr_assert_not_null(list);
	NULLED(ibv_open_device(list[0]));
	*ctx = ibv_open_device(list[0]);
	cr_assert_not_null(*ctx);
	NUMBERED(ibv_query_device(*ctx, &attr));
	NUMBERED(ibv_query_port(*ctx, 1, &port));
	MINUS(ibv_query_gid(*ctx, 1, 0, &gid));
	ibv_free_device_list(list);
}

static void use_verbs_fault_calls_memory(struct ibv_context *ctx, struct ibv_pd **pd)
{
	static char buf[8];
	struct ibv_mr *mr;

	NULLED(ibv_alloc_pd(ctx));
	*pd = ibv_alloc_pd(ctx);
	cr_assert_not_null(*pd);
	NULLED(ibv_reg_mr(*pd, buf, sizeof buf, 0));
	mr = ibv_reg_mr(*pd, buf, sizeof buf, 0);
	cr_assert_not_null(mr);
	errno = 0;
	cr_expect_neq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	cr_expect_eq(errno, WHY);
	NUMBERED(ibv_dereg_mr(mr));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

static void queues(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq **made)
{
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_comp_channel *ch;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *user;

	NULLED(ibv_create_comp_channel(ctx));
	ch = ibv_create_comp_channel(ctx);
	cr_assert_not_null(ch);
	NULLED(ibv_create_cq(ctx, 4, NULL, ch, 0));
	*made = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	cr_assert_not_null(*made);
	NUMBERED(ibv_resize_cq(*made, 4));
	NUMBERED(ibv_req_notify_cq(*made, 0));
	MINUS(ibv_get_cq_event(ch, &cq, &user));
	cr_expect_lt(ibv_poll_cq(*made, 1, &wc), 0);
	NULLED(ibv_create_srq(pd, &init));
	srq = ibv_create_srq(pd, &init);
	cr_assert_not_null(srq);
	NUMBERED(ibv_modify_srq(srq, &init.attr, IBV_SRQ_LIMIT));
	NUMBERED(ibv_post_srq_recv(srq, &wr, &bad));
	cr_expect_eq(bad, &wr);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
}

static void make_verbs_fault_calls_queue_pair(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_send_wr send = { .wr_id = 1 }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_qp *qp;

	NULLED(ibv_create_qp(pd, &init));
	qp = ibv_create_qp(pd, &init);
	cr_assert_not_null(qp);
	NUMBERED(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	NUMBERED(ibv_query_qp(qp, &attr, 0, &init));
	NUMBERED(ibv_post_send(qp, &send, &bad_send));
	cr_expect_eq(bad_send, &send);
	NUMBERED(ibv_post_recv(qp, &recv, &bad_recv));
	cr_expect_eq(bad_recv, &recv);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

static void identifiers(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct sockaddr *sa = (struct sockaddr *)&at;
	struct rdma_addrinfo hints = { 0 }, *res;
	struct rdma_event_channel *ch;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id, *other;

	NULLED(rdma_create_event_channel());
	ch = rdma_create_event_channel();
	cr_assert_not_null(ch);
	MINUS(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	MINUS(rdma_bind_addr(id, sa));
	MINUS(rdma_listen(id, 1));
	MINUS(rdma_resolve_addr(id, NULL, sa, 1000));
	MINUS(rdma_resolve_route(id, 1000));
	MINUS(rdma_create_qp(id, NULL, &init));
	MINUS(rdma_connect(id, NULL));
	MINUS(rdma_accept(id, NULL));
	MINUS(rdma_reject(id, NULL, 0));
	MINUS(rdma_establish(id));
	MINUS(rdma_disconnect(id));
	MINUS(rdma_get_request(id, &other));
	MINUS(rdma_get_cm_event(ch, &event));
	MINUS(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res));
	MINUS(rdma_create_ep(&other, &hints, NULL, &init));
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

Test(verbs_fault_calls, each_of_them_fails, .timeout = 60)
{
	char *rules = calloc(VF_COMPLETION, 80);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	unsigned lines = 0;

	for (int i = 0; i < VF_COMPLETION; i++)
		sprintf(rules + strlen(rules), "on %s nth 1: fail ENOTTY\n",
			vf_name(VF_NAME_POINT, i));
	vf_use(rules);
	open_verbs_fault_calls_device(&ctx);
	use_verbs_fault_calls_memory(ctx, &pd);
	queues(ctx, pd, &cq);
	make_verbs_fault_calls_queue_pair(pd, cq);
	identifiers();
	for (const char *at = vf_traced(); (at = strchr(at, '\n')); at++)
		lines++;
	cr_expect_eq(lines, VF_COMPLETION, "%u of %d calls", lines, VF_COMPLETION);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(ctx), 0);
	free(rules);
}

/* Nothing is between the program and the data path unless there are rules. */
Test(verbs_fault_calls, without_rules_the_data_path_is_the_devices, .timeout = 60)
{
	struct vt_dev d;

	unsetenv("DDPSESS_FAULTS");
	unsetenv("DDPSESS_CHECK");
	vt_dev_open(&d);
	cr_expect_eq(d.ctx->ops.post_send, vd_post_send);
	cr_expect_eq(d.ctx->ops.post_recv, vd_post_recv);
	cr_expect_eq(d.ctx->ops.post_srq_recv, vd_post_srq_recv);
	cr_expect_eq(d.ctx->ops.poll_cq, vd_poll_cq);
	cr_expect_eq(d.ctx->ops.req_notify_cq, vd_req_notify_cq);
	vt_dev_close(&d);
}
