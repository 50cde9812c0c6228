/* SPDX-License-Identifier: BSD-2-Clause */
/* Events, queues, windows and queue pairs that a program connects itself, where they are refused. */
#include "verbs/vfail.h"
#include "verbs/voob.h"
#include "verbs/vd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* ---- asynchronous events ---- */

static void raise_event(struct ibv_context *ctx, enum ibv_event_type type, void *what)
{
	struct vd_process *p = vd_process();

	ddps_lock(&p->lock);
	vd_async_post(ctx, type, what);
	ddps_unlock(&p->lock);
}

/* They are acknowledged in any order, each once; what is lost for lack of memory is lost. */
Test(verbs_work_limits, acknowledgements)
{
	struct ibv_async_event e[3], strange = { .event_type = IBV_EVENT_SM_CHANGE };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp[2];
	struct vt_dev s;

	vt_dev_open(&s);
	for (int i = 0; i < 2; i++) {
		init = vt_rc(&s);
		qp[i] = ibv_create_qp(s.pd, &init);
		cr_assert_not_null(qp[i]);
	}
	raise_event(s.ctx, IBV_EVENT_QP_FATAL, qp[0]);
	raise_event(s.ctx, IBV_EVENT_QP_FATAL, qp[1]);
	raise_event(s.ctx, IBV_EVENT_COMM_EST, qp[0]);
	vfail_nth(VFAIL_MEMORY, 1);
	raise_event(s.ctx, IBV_EVENT_PATH_MIG, qp[0]);
	cr_expect(vfail_came());
	vfail_nth(VFAIL_WRITE, 1);
	raise_event(s.ctx, IBV_EVENT_PATH_MIG, qp[0]);
	cr_expect(vfail_came());
	for (int i = 0; i < 3; i++)
		cr_assert_eq(ibv_get_async_event(s.ctx, &e[i]), 0);
	cr_expect_eq(e[1].element.qp, qp[1]);
	cr_expect_eq(e[2].event_type, IBV_EVENT_COMM_EST);
	cr_expect_not(vt_readable(s.ctx->async_fd, 0));
	ibv_ack_async_event(&strange);
	for (int i = 0; i < 3; i++)
		ibv_ack_async_event(&e[i]);
	cr_expect(STAILQ_EMPTY(&vd_process()->unacked));
	cr_expect_eq(ibv_destroy_qp(qp[0]), 0);
	cr_expect_eq(ibv_destroy_qp(qp[1]), 0);
	/* What nobody has fetched goes with its context. */
	raise_event(s.ctx, IBV_EVENT_LID_CHANGE, NULL);
	vt_dev_close(&s);
}

/* ---- completion queues ---- */

Test(verbs_work_limits, queue_of_one_thread)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 4,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 2, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct vt_dev s;

	vt_dev_open(&s);
	cq = ibv_create_cq_ex(s.ctx, &ex);
	cr_assert_not_null(cq);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(s.pd, &init);
	cr_assert_not_null(qp);
	cr_assert_eq(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		     0);
	cr_expect_eq(ibv_start_poll(cq, &poll), ENOENT);
	for (wr.wr_id = 1; wr.wr_id <= 2; wr.wr_id++)
		cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
	attr.qp_state = IBV_QPS_ERR;
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	cr_assert_eq(ibv_start_poll(cq, &poll), 0);
	cr_expect_eq(cq->wr_id, 1);
	cr_expect_eq(cq->status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(ibv_next_poll(cq), 0);
	cr_expect_eq(cq->wr_id, 2);
	cr_expect_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	vt_dev_close(&s);
}

/* ---- requests of a connection ---- */

static int post_wr(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(qp, wr, &bad);

	cr_expect_eq(bad, err ? wr : NULL);
	return err;
}

VT_TEST(verbs_work_limits, windows)
{
	struct ibv_mw_bind bind = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	struct ibv_mw *one, *two, *foreign;
	struct ibv_pd *other;
	uint32_t key;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	other = ibv_alloc_pd(v.a.id->verbs);
	one = ibv_alloc_mw(v.a.id->pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(v.a.id->pd, IBV_MW_TYPE_2);
	foreign = ibv_alloc_mw(other, IBV_MW_TYPE_1);
	cr_assert(one && two && foreign);
	key = one->rkey;
	cr_expect_eq(ibv_bind_mw(v.a.id->qp, two, &bind), EINVAL);
	cr_expect_eq(ibv_bind_mw(v.a.id->qp, foreign, &bind), EINVAL);
	bind.bind_info.length = 8; /* of no region */
	cr_expect_eq(ibv_bind_mw(v.a.id->qp, one, &bind), EINVAL);
	cr_expect_eq(one->rkey, key);
	wr.bind_mw.mw = two;
	wr.bind_mw.bind_info.mr = v.a.mr;
	wr.bind_mw.bind_info.length = UINT64_C(1) << 32;
	cr_expect_eq(post_wr(v.a.id->qp, &wr), EINVAL);
	wr.bind_mw.mw = NULL;
	wr.bind_mw.bind_info.length = 8;
	cr_expect_eq(post_wr(v.a.id->qp, &wr), EINVAL);
	/* A region that does not allow windows: the bind fails, and with it the queue pair. */
	wr.wr_id = 4;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw.mw = two;
	wr.bind_mw.rkey = ibv_inc_rkey(two->rkey);
	wr.bind_mw.bind_info.addr = (uintptr_t)v.a.buf;
	cr_expect_eq(post_wr(v.a.id->qp, &wr), 0);
	vt_expect_wc(&v.a, 4, IBV_WC_BIND_MW, IBV_WC_MW_BIND_ERR);
	rdma_destroy_qp(v.a.id);
	cr_expect_eq(ibv_dealloc_mw(foreign), 0);
	cr_expect_eq(ibv_dealloc_mw(two), 0);
	cr_expect_eq(ibv_dealloc_mw(one), 0);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
	vt_down(&v);
}

/* Where no Read may ever be under way it is no question of room. */
VT_TEST(verbs_work_limits, reads)
{
	struct vt v;

	vt_init(&v);
	v.connect.initiator_depth = v.accept.responder_resources = 0;
	vt_up(&v);
	cr_expect_eq(vt_post(&v.a, 1, IBV_WR_RDMA_READ, 8, &v.b), EINVAL);
	/* Solicited means nothing to what completes nothing. */
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_RDMA_WRITE, 8, &v.b), 0);
	vt_expect_wc(&v.a, 2, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	vt_down(&v);
}

VT_TEST(verbs_work_limits, solicited)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_cq *cq;
	struct ibv_sge sge;
	void *user;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	sge = (struct ibv_sge){ (uintptr_t)v.a.buf, 8, v.a.mr->lkey };
	cr_assert_eq(vt_recv(&v.b, 7, 64, 8), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 1), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr wr = { .wr_id = 3,
					  .opcode = ops[i],
					  .sg_list = &sge,
					  .num_sge = 1,
					  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED };

		wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
		wr.wr.rdma.rkey = v.b.mr->rkey;
		cr_assert_eq(post_wr(v.a.id->qp, &wr), 0);
		vt_expect_wc(&v.a, 3, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	}
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	vt_expect_wc(&v.b, 7, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* ---- queue pairs ---- */

Test(verbs_work_limits, extended_queue_pairs)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	struct vt_dev s;

	vt_dev_open(&s);
	ex.send_cq = ex.recv_cq = s.cq;
	ex.pd = s.pd;
	VT_NULL_AS(ibv_create_qp_ex(s.ctx, &ex), EOPNOTSUPP); /* of no domain */
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
	VT_NULL_AS(ibv_create_qp_ex(s.ctx, &ex), EOPNOTSUPP);
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	ex.create_flags = 1;
	VT_NULL_AS(ibv_create_qp_ex(s.ctx, &ex), EOPNOTSUPP);
	ex.create_flags = 0;
	ex.cap.max_recv_sge = VD_MAX_SGE + 1;
	VT_NULL_AS(ibv_create_qp_ex(s.ctx, &ex), EINVAL);
	ex.cap.max_recv_sge = 1;
	qp = ibv_create_qp_ex(s.ctx, &ex);
	cr_assert_not_null(qp);
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(attr.qp_access_flags, IBV_ACCESS_REMOTE_ATOMIC);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&s);
}

/* What is not there yet cannot be reset, an identifier's goes with its connection. */
VT_TEST(verbs_work_limits, states_of_an_identifiers)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_expect_eq(move_oob_qp(v.a.id->qp, IBV_QPS_INIT), 0);
	cr_expect_eq(move_oob_qp(v.a.id->qp, IBV_QPS_RESET), 0);
	cr_expect_eq(move_oob_qp(v.a.id->qp, IBV_QPS_RTS), EINVAL);
	cr_expect_eq(move_oob_qp(v.a.id->qp, IBV_QPS_INIT), 0);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	VT_MINUS_AS(rdma_establish(v.b.id), EINVAL);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	VT_MINUS_AS(rdma_establish(v.a.id), EINVAL);
	cr_expect_eq(move_oob_qp(v.a.id->qp, IBV_QPS_RESET), EOPNOTSUPP);
	cr_expect_eq(move_oob_qp(v.a.id->qp, IBV_QPS_INIT), EINVAL);
	vt_down(&v);
}

/* ---- those that a program connects itself ---- */

static int post_before_session(struct side *s, unsigned flags, int n)
{
	struct ibv_sge sge[2] = { { (uintptr_t)s->buf, 0, s->mr->lkey },
				  { (uintptr_t)s->buf, 4, s->mr->lkey } };
	struct ibv_send_wr second = { .wr_id = 2, .opcode = IBV_WR_SEND };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .next = &second,
				  .opcode = IBV_WR_SEND,
				  .sg_list = sge,
				  .num_sge = n,
				  .send_flags = flags };

	return post_wr(s->qp, &wr);
}

/* Requests that wait for the peer are looked at when they are posted, and go with the queue pair. */
VT_TEST(verbs_work_limits, early_requests)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .ah_attr.port_num = 1 };
	struct side a;

	open_oob_side(&a);
	cr_expect_eq(post_before_session(&a, IBV_SEND_SIGNALED, 2), EINVAL, "not before RTR");
	attr.dest_qp_num = NOBODY;
	cr_expect_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN),
		     EOPNOTSUPP, "an address without a GID");
	/* Of two the lower one calls: this is one that waits to be called. */
	cr_assert_eq(move_oob_to_rtr(a.qp, 2, &a.gid), 0, "%m");
	cr_expect_eq(post_before_session(&a, 1u << 20, 2), EINVAL);
	cr_expect_eq(post_before_session(&a, IBV_SEND_SIGNALED, 3), EINVAL);
	vfail_nth(VFAIL_MEMORY, 1);
	cr_expect_eq(post_before_session(&a, IBV_SEND_SIGNALED, 2), ENOMEM);
	cr_expect(vfail_came());
	cr_expect_eq(post_before_session(&a, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 2), 0);
	cr_expect_eq(post_before_session(&a, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 2), 0);
	cr_expect_eq(post_before_session(&a, IBV_SEND_SIGNALED, 2), ENOMEM, "four are the most");
	close_oob_side(&a);
}

struct hello {
	unsigned len, at;
	uint8_t value;
};

/* Who calls such a queue pair's port says whom it means; else it is refused. */
VT_TEST(verbs_work_limits, callers_who_mean_nobody)
{
	static const struct hello wrong[] = {
		{ 15, 0, 'd' }, { 17, 0, 'd' },	  { 0, 0, 'd' },
		{ 16, 0, 'D' }, { 16, 12, 0xff }, { 16, 15, 0 },
	};
	struct side s;

	open_oob_side(&s);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		uint8_t hello[17] = "ddpsQP1";
		struct vt v;
		struct sockaddr_in *at = (struct sockaddr_in *)&v.addr;

		vt_init(&v);
		memcpy(&at->sin_addr, s.gid.raw + 12, 4);
		at->sin_port = htons((uint16_t)s.qp->qp_num);
		for (unsigned k = 0; k < 4; k++)
			hello[12 + k] = (uint8_t)(s.qp->qp_num >> (24 - 8 * k));
		hello[wrong[i].at] = wrong[i].value;
		if (wrong[i].at == 15)
			hello[15] = (uint8_t)(s.qp->qp_num + 1);
		v.connect.private_data = hello;
		v.connect.private_data_len = (uint8_t)wrong[i].len;
		vt_dial(&v);
		cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
		vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
		vt_down(&v);
	}
	close_oob_side(&s);
}

/* ---- endpoints ---- */

VT_TEST(verbs_work_limits, requests_of_an_endpoint)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE }, *ai;
	struct ibv_qp_init_attr init = { .cap = { 1, 1, VD_MAX_SGE + 1, 1, 0 } };
	struct rdma_cm_id *listen, *id;
	struct vt v;

	vt_init(&v);
	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "0", &hints, &ai), 0);
	cr_assert_eq(rdma_create_ep(&listen, ai, NULL, &init), 0, "%m");
	cr_assert_eq(rdma_listen(listen, 2), 0);
	rdma_freeaddrinfo(ai);
	cr_assert_eq(fcntl(listen->channel->fd, F_SETFL, O_NONBLOCK), 0);
	VT_MINUS_AS(rdma_get_request(listen, &id), EAGAIN);
	cr_assert_eq(fcntl(listen->channel->fd, F_SETFL, 0), 0);
	((struct sockaddr_in *)&v.addr)->sin_port = rdma_get_src_port(listen);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	VT_MINUS_AS(rdma_get_request(listen, &id), EINVAL);
	vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_ep(listen);
	vt_down(&v);
}
