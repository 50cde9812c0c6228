/* SPDX-License-Identifier: BSD-2-Clause */
/* A host without memory: a call fails and may be made again, and what has happened is reported nevertheless. */
#include "verbs/cm/vd_event.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <string.h>

/* ---- events ---- */

/* No event finds memory once the connection has been asked for. */
VT_TEST(verbs_poor, a_connection_is_reported)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(vd_event_keep(vd_id_of(v.b.id)), 0);
	vfail_size(sizeof(struct vd_event));
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vfail_came();
	vt_down(&v);
}

VT_TEST(verbs_poor, a_refusal_is_reported)
{
	struct rdma_cm_event *e;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	vfail_size(sizeof(struct vd_event));
	cr_assert_eq(rdma_reject(v.b.id, "no", 2), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->param.conn.private_data_len, 2);
	cr_expect_eq(memcmp(e->param.conn.private_data, "no", 2), 0);
	rdma_ack_cm_event(e);
	vfail_came();
	vt_down(&v);
}

/* Nobody listens there any more. */
VT_TEST(verbs_poor, a_failure_is_reported)
{
	struct rdma_cm_event *e;
	struct vt v;

	setenv("DDPSESS_RETRY_MS", "0", 1);
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_destroy_id(v.listen), 0);
	v.listen = NULL;
	cr_assert_eq(vd_event_keep(vd_id_of(v.a.id)), 0);
	vfail_size(sizeof(struct vd_event));
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	cr_assert(vt_readable(v.a.ch->fd, VT_MS));
	cr_assert_eq(rdma_get_cm_event(v.a.ch, &e), 0);
	cr_expect_lt(e->status, 0, "%s", rdma_event_str(e->event));
	rdma_ack_cm_event(e);
	vfail_came();
	vt_down(&v);
}

/* Without an event for what will come of it a call fails, and the next one does not. */
VT_TEST(verbs_poor, calls_that_find_no_event)
{
	struct sockaddr *sa;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	sa = (struct sockaddr *)&v.addr;
	v.a.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v.a.ch, &v.a.id, &v, RDMA_PS_TCP), 0);
	vfail_size(sizeof(struct vd_event));
	VT_MINUS_AS(rdma_resolve_addr(v.a.id, NULL, sa, 2000), ENOMEM);
	cr_assert_eq(rdma_resolve_addr(v.a.id, NULL, sa, 2000), 0, "%m");
	vt_expect(v.a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	vfail_size(sizeof(struct vd_event));
	VT_MINUS_AS(rdma_resolve_route(v.a.id, 2000), ENOMEM);
	cr_assert_eq(rdma_resolve_route(v.a.id, 2000), 0, "%m");
	vt_expect(v.a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	vt_equip(&v, &v.a);
	vfail_size(sizeof(struct vd_event));
	VT_MINUS_AS(rdma_connect(v.a.id, &v.connect), ENOMEM);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0, "%m");
	vt_take_request(&v);
	vfail_size(sizeof(struct vd_event));
	VT_MINUS_AS(rdma_accept(v.b.id, &v.accept), ENOMEM);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "%m");
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_down(&v);
}

VT_TEST(verbs_poor, a_listener_that_finds_no_event)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	vfail_size(sizeof(struct vd_event));
	VT_MINUS_AS(rdma_listen(id, 1), ENOMEM);
	cr_assert_eq(rdma_listen(id, 1), 0, "%m");
	cr_assert_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* What a program waits for that has a shared queue: that it needs more, that a queue pair is done with it. */
VT_TEST(verbs_poor, a_shared_queue_is_reported)
{
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_async_event e;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	v.srq = ibv_create_srq(v.listen->pd, &init);
	cr_assert_not_null(v.srq);
	cr_assert_eq(ibv_post_srq_recv(v.srq, &wr, &bad), 0);
	vfail_size(sizeof(struct vd_async));
	VT_REFUSED_AS(ibv_modify_srq(v.srq, &limit, IBV_SRQ_LIMIT) == ENOMEM, ENOMEM);
	cr_assert_eq(ibv_modify_srq(v.srq, &limit, IBV_SRQ_LIMIT), 0);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vfail_size(sizeof(struct vd_async));
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 0, NULL), 0);
	e = vt_async(v.listen->verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
	ibv_ack_async_event(&e);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	e = vt_async(v.listen->verbs, IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_expect_eq(e.element.qp, v.b.id->qp);
	ibv_ack_async_event(&e);
	vfail_came();
	vt_down(&v);
}

/* What ends a connection that the program has not ended: a queue that overflows, of either side. */
VT_TEST(verbs_poor, an_overflow_is_reported)
{
	struct ibv_async_event e;
	struct vt v;

	vt_init(&v);
	v.init.cap.max_send_wr = v.init.cap.max_recv_wr = 80; /* the queue takes 64 */
	vt_up(&v);
	for (uint64_t i = 0; i < 66; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	vfail_size(sizeof(struct vd_async));
	for (uint64_t i = 0; i < 66; i++) {
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 8, NULL), 0);
		vt_wc(&v.a);
	}
	e = vt_async(v.a.id->verbs, IBV_EVENT_CQ_ERR);
	cr_expect_eq(e.element.cq, v.b.cq);
	ibv_ack_async_event(&e);
	e = vt_async(v.a.id->verbs, IBV_EVENT_QP_FATAL);
	cr_expect_eq(e.element.qp, v.b.id->qp);
	ibv_ack_async_event(&e);
	vfail_came();
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* ... and a Terminate, at both ends. */
VT_TEST(verbs_poor, a_terminate_is_reported)
{
	struct ibv_qp *first = NULL;
	struct ibv_async_event e;
	struct vt v;

	setenv("DDPSESS_NO_RECV", "strict", 1);
	vt_init(&v);
	vt_up(&v);
	vfail_size(sizeof(struct vd_async));
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 5, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		e = vt_async(v.a.id->verbs, IBV_EVENT_QP_FATAL);
		cr_expect(e.element.qp == v.a.id->qp || e.element.qp == v.b.id->qp);
		cr_expect_neq(e.element.qp, first);
		first = e.element.qp;
		ibv_ack_async_event(&e);
	}
	vfail_came();
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* ---- calls that fail ---- */

/* The queues that were made for it are gone, and the program's attributes do not name them. */
VT_TEST(verbs_poor, a_queue_pair_that_finds_no_memory)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 0 } };
	struct vt v;
	unsigned n = 0;
	int ret;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	rdma_destroy_qp(v.a.id);
	do {
		vfail_nth(VFAIL_MEMORY, ++n);
		ret = rdma_create_qp(v.a.id, NULL, &attr);
		vfail_came();
		if (ret)
			cr_expect(!attr.send_cq && !attr.recv_cq && !v.a.id->send_cq &&
				  !v.a.id->recv_cq);
	} while (ret && !attr.send_cq);
	cr_expect_eq(ret, 0);
	cr_expect_gt(n, 4);
	cr_expect(attr.send_cq && attr.recv_cq);
	vt_down(&v);
}

/* A signal may come while the system collects random numbers. */
Test(verbs_poor, a_key_that_a_signal_delays, .timeout = 60)
{
	struct vt_dev d;
	struct ibv_mr *mr;
	char mem[16];

	vt_dev_open(&d);
	vfail_nth(VFAIL_GETRANDOM, 1);
	vfail_as(EINTR);
	mr = ibv_reg_mr(d.pd, mem, sizeof mem, 0);
	cr_expect(vfail_came());
	cr_assert_not_null(mr, "%m");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_dev_close(&d);
}

/* ---- threads ---- */

/* No thread of the process ends when it cannot sleep, whichever it is. */
VT_TEST(verbs_poor, threads_that_cannot_poll)
{
	struct vt v;

	for (int i = 0; i < 8; i++) {
		vt_init(&v);
		vt_listen(&v);
		vfail_other(VFAIL_POLL);
		vt_dial(&v);
		cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
		vt_take_request(&v);
		cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
		vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
		vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
		cr_expect(vfail_came());
		vt_down(&v);
	}
}

Test(verbs_poor, datagrams_of_who_cannot_poll, .timeout = 60)
{
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	for (int i = 0; i < 8; i++) {
		vfail_other(VFAIL_POLL);
		vud_recv(&q, 1, 0, 100);
		cr_assert_eq(ibv_req_notify_cq(q.cq, 0), 0);
		vud_send(&q, 2, &q, 8, 0);
		vud_event(&q);
		cr_expect_eq(vud_wc(&q).wr_id + vud_wc(&q).wr_id, 3);
		vfail_came();
	}
	vud_down(&q);
	vud_close(&v);
}

/* ---- completions of datagrams ---- */

/* Their memory is there before there is any: without it there is no queue pair, and no larger queue. */
Test(verbs_poor, completions_have_their_memory, .timeout = 60)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *qp;
	struct vt_dev d;

	vt_dev_open(&d);
	init.send_cq = d.cq;
	init.recv_cq = ibv_create_cq(d.ctx, 256, NULL, NULL, 0);
	vfail_size(256 * sizeof(struct ud_entry));
	VT_NULL_AS(ibv_create_qp(d.pd, &init), ENOMEM);
	vfail_size((uint32_t)d.cq->cqe * sizeof(struct ud_entry));
	init.send_cq = init.recv_cq;
	qp = ibv_create_qp(d.pd, &init);
	cr_assert_not_null(qp, "%m");
	vfail_size(300 * sizeof(struct ud_entry));
	VT_REFUSED_AS(ibv_resize_cq(init.recv_cq, 300) == ENOMEM, ENOMEM);
	cr_expect_eq(init.recv_cq->cqe, 256);
	cr_expect_eq(ibv_resize_cq(init.recv_cq, 300), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_cq(init.recv_cq), 0);
	vfail_came();
	vt_dev_close(&d);
}
