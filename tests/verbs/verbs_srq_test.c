/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues of the drop-in. */
#include "verbs/vt.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

static struct ibv_mr *mr;
static uint8_t pool[4096];

static void make_srq(struct vt *v, uint32_t depth)
{
	struct ibv_srq_init_attr init = { .srq_context = v, .attr = { depth, 2, 0 } };

	vt_listen(v);
	mr = ibv_reg_mr(v->listen->pd, pool, sizeof pool, IBV_ACCESS_LOCAL_WRITE);
	v->srq = ibv_create_srq(v->listen->pd, &init);
	cr_assert_not_null(v->srq);
	cr_assert_eq(v->srq->srq_context, v);
}

static int give_srq_receive(struct vt *v, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)pool + wr_id * 64, 64, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(v->srq, &wr, &bad);
}

static void connect_it(struct vt *v)
{
	vt_dial(v);
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
	vt_take_request(v);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

VT_TLS_TEST(verbs_srq, sends_take_the_receives_of_the_shared_queue)
{
	struct vt v;

	vt_init(&v);
	make_srq(&v, 8);
	connect_it(&v);
	cr_assert_eq(v.b.id->qp->srq, v.srq);
	cr_assert_neq(vt_recv(&v.b, 1, 0, 64), 0, "the queue pair has no receive queue of its own");
	/* All of the queue may be taken before one completion is fetched. */
	for (uint64_t i = 0; i < 8; i++)
		cr_assert_eq(give_srq_receive(&v, i), 0);
	cr_assert_eq(give_srq_receive(&v, 8), ENOMEM);
	for (uint64_t i = 0; i < 8; i++) {
		v.a.buf[0] = (uint8_t)(0x30 + i);
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 5, NULL), 0);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	for (uint64_t i = 0; i < 8; i++) {
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
		cr_assert_eq(pool[i * 64], 0x30 + i);
	}
	cr_assert_eq(ibv_destroy_srq(v.srq), EBUSY);
	vt_end_down(&v.a);
	vt_end_down(&v.b);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}

/* A rule holds its receive back, and a queue pair uses it: with the queue that stays, too. */
VT_TEST(verbs_srq, one_that_cannot_go_keeps_what_a_rule_holds_back)
{
	struct vt v;

	vf_use("on ibv_post_srq_recv nth 1: rnr 200ms\n");
	vt_init(&v);
	make_srq(&v, 8);
	connect_it(&v);
	cr_assert_eq(give_srq_receive(&v, 1), 0);
	cr_expect_eq(ibv_destroy_srq(v.srq), EBUSY);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_end_down(&v.a);
	vt_end_down(&v.b);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}

VT_TLS_TEST(verbs_srq, the_limit_is_reported_once_on_the_asynchronous_descriptor)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_async_event e;
	struct vt v;

	vt_init(&v);
	make_srq(&v, 4);
	connect_it(&v);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(give_srq_receive(&v, i), 0);
	cr_assert_eq(ibv_modify_srq(v.srq, &attr, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(ibv_query_srq(v.srq, &attr), 0);
	cr_assert_eq(attr.srq_limit, 2);
	cr_assert_eq(attr.max_wr, 4);
	cr_assert_eq(attr.max_sge, 2);
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 5, NULL), 0);
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	}
	e = vt_async(v.listen->verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_assert_eq(e.element.srq, v.srq);
	ibv_ack_async_event(&e);
	cr_assert_not(vt_readable(v.listen->verbs->async_fd, 0), "one event for one arming");
	cr_assert_eq(ibv_query_srq(v.srq, &attr), 0);
	cr_assert_eq(attr.srq_limit, 0, "it is disarmed by the event");
	vt_end_down(&v.a);
	vt_end_down(&v.b);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	vt_down(&v);
}

Test(verbs_srq, limits_and_numbers)
{
	struct ibv_srq_init_attr init = { .attr = { 4, 17, 0 } };
	struct ibv_srq_init_attr_ex ex = { .attr = { 4, 0, 0 },
					   .comp_mask =
						   IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					   .srq_type = IBV_SRQT_TM };
	struct ibv_srq_attr attr = { .max_wr = 4, .srq_limit = 5 };
	struct ibv_device_attr dev;
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct rdma_cm_id *id;
	struct ibv_srq *other;
	uint32_t number = 0, second = 0;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	cr_assert_eq(ibv_query_device(id->verbs, &dev), 0);
	cr_assert_gt(dev.max_srq, 0);
	cr_assert_eq(dev.max_srq_sge, 16);
	cr_assert_null(ibv_create_srq(id->pd, &init));
	cr_assert_eq(errno, EINVAL);
	init.attr.max_sge = 16;
	init.attr.max_wr = (uint32_t)dev.max_srq_wr + 1;
	cr_assert_null(ibv_create_srq(id->pd, &init));
	ex.pd = id->pd;
	cr_assert_null(ibv_create_srq_ex(id->verbs, &ex));
	cr_assert_eq(errno, EOPNOTSUPP);
	ex.srq_type = IBV_SRQT_BASIC;
	ex.attr.max_sge = 0;
	cr_assert_eq(rdma_create_srq_ex(id, &ex), 0);
	cr_assert_eq(ex.attr.max_sge, 1, "what is granted is said");
	other = ibv_create_srq_ex(id->verbs, &ex);
	cr_assert_not_null(other);
	cr_assert_eq(ibv_get_srq_num(id->srq, &number), 0);
	cr_assert_eq(ibv_get_srq_num(other, &second), 0);
	cr_assert_neq(number, second);
	cr_assert_eq(ibv_modify_srq(other, &attr, IBV_SRQ_LIMIT), EINVAL);
	cr_assert_eq(ibv_modify_srq(other, &attr, IBV_SRQ_MAX_WR), 0);
	attr.max_wr = 5;
	cr_assert_eq(ibv_modify_srq(other, &attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	cr_assert_eq(ibv_destroy_srq(other), 0);
	rdma_destroy_srq(id);
	cr_assert_null(id->srq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* ibv_create_qp(3): next to a shared queue the fields of a receive queue are ignored. */
Test(verbs_srq, contact_25_receive_fields_next_to_a_shared_queue_are_ignored, .timeout = 30)
{
	static const enum ibv_qp_type type[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_qp_init_attr attr, said;
	struct ibv_qp_attr query;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct vt_dev d;

	vt_dev_open(&d);
	srq = ibv_create_srq(d.pd, &init);
	cr_assert_not_null(srq);
	for (size_t i = 0; i < sizeof type / sizeof *type; i++) {
		attr = vt_rc(&d);
		attr.qp_type = type[i];
		attr.srq = srq;
		attr.cap.max_recv_wr = UINT32_MAX;
		attr.cap.max_recv_sge = 1000;
		qp = ibv_create_qp(d.pd, &attr);
		cr_assert_not_null(qp, "%d: %m", type[i]);
		cr_expect_eq(attr.cap.max_recv_wr, 0, "what is granted is said");
		cr_expect_eq(attr.cap.max_recv_sge, 0);
		cr_assert_eq(ibv_query_qp(qp, &query, IBV_QP_CAP, &said), 0);
		cr_expect_eq(query.cap.max_recv_wr, 0);
		cr_expect_eq(said.cap.max_recv_sge, 0);
		cr_expect_eq(ibv_destroy_qp(qp), 0);
		attr = vt_rc(&d);
		attr.qp_type = type[i];
		attr.srq = srq;
		attr.cap.max_send_sge = 17;
		VT_NULL_AS(ibv_create_qp(d.pd, &attr), EINVAL);
		attr.srq = NULL;
		attr.cap.max_send_sge = 1;
		attr.cap.max_recv_sge = 17;
		VT_NULL_AS(ibv_create_qp(d.pd, &attr), EINVAL);
	}
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	vt_dev_close(&d);
}

/* Also where the shared queue is the identifier's, and a profile has limits of its own. */
Test(verbs_srq, contact_25_an_identifiers_shared_queue_too, .timeout = 30)
{
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { 1, UINT32_MAX, 1, 1000, 0 } };
	struct sockaddr_in a4 = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct rdma_cm_id *id;

	vp_use("device a0\nlimit max_qp_wr 8\nlimit max_sge 2\nport 1\ninterface lo\n");
	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	cr_assert_eq(rdma_create_srq(id, NULL, &init), 0, "%m");
	cr_assert_eq(rdma_create_qp(id, NULL, &attr), 0, "%m");
	cr_expect_eq(id->recv_cq->cqe, 4, "no more receives can be taken at once");
	cr_expect_eq(attr.cap.max_recv_wr, 0);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

/* Nothing of it is there, and each way to it says so: docs/verbs.md has the reason. */
Test(verbs_srq, xrc_is_refused, .timeout = 30)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							  IBV_XRCD_INIT_ATTR_OFLAGS,
					     .fd = -1,
					     .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = 4, .max_sge = 1 },
					    .comp_mask =
						    IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						    IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					    .srq_type = IBV_SRQT_XRC };
	struct ibv_qp_init_attr_ex qp = { .qp_type = IBV_QPT_XRC_SEND,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp_open_attr open = { 0 };
	struct vt_dev d;

	vt_dev_open(&d);
	cr_expect_not(d.attr.device_cap_flags & IBV_DEVICE_XRC);
	VT_NULL_AS(ibv_open_xrcd(d.ctx, &domain), EOPNOTSUPP);
	srq.pd = qp.pd = d.pd;
	srq.cq = qp.send_cq = qp.recv_cq = d.cq;
	VT_NULL_AS(ibv_create_srq_ex(d.ctx, &srq), EOPNOTSUPP);
	VT_NULL_AS(ibv_create_qp_ex(d.ctx, &qp), EOPNOTSUPP);
	qp.qp_type = IBV_QPT_XRC_RECV;
	VT_NULL_AS(ibv_create_qp_ex(d.ctx, &qp), EOPNOTSUPP);
	VT_NULL_AS(ibv_open_qp(d.ctx, &open), EOPNOTSUPP);
	vt_dev_close(&d);
}
