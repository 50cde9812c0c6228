/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules while objects go, or belong to a parent: nothing is touched that is not there any more. */
#include "support/child.h"
#include "verbs/vt_fault.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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
