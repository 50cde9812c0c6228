/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs for datagrams that share a receive queue, with each other and with sessions. */
#include "verbs/vud.h"
#include <errno.h>
#include <string.h>

#define PIECE 64
#define DEPTH 8

struct shared {
	struct vud v;
	struct ibv_pd *pd; /* of the queue and its memory, another than the queue pairs' */
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct vud_qp from, to[2];
	uint8_t pool[DEPTH * PIECE];
};

static void open_srq(struct shared *s, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = { .attr = { DEPTH, 1, 0 } };

	s->pd = pd;
	s->mr = ibv_reg_mr(pd, s->pool, sizeof s->pool, IBV_ACCESS_LOCAL_WRITE);
	s->srq = ibv_create_srq(pd, &init);
	cr_assert(s->mr && s->srq, "%m");
}

static void begin_verbs_ud_srq(struct shared *s)
{
	vud_open(&s->v);
	vud_up(&s->v, &s->from);
	open_srq(s, ibv_alloc_pd(s->v.ctx));
	s->v.srq = s->srq;
	for (int i = 0; i < 2; i++)
		vud_up(&s->v, &s->to[i]);
}

static void end_verbs_ud_srq(struct shared *s)
{
	cr_expect_eq(ibv_destroy_srq(s->srq), EBUSY, "queue pairs use it");
	vud_down(&s->to[0]);
	vud_down(&s->to[1]);
	cr_expect_eq(ibv_destroy_srq(s->srq), 0);
	cr_expect_eq(ibv_dereg_mr(s->mr), 0);
	cr_expect_eq(ibv_dealloc_pd(s->pd), 0);
	vud_down(&s->from);
	vud_close(&s->v);
}

/* Its @wr_id-th piece. */
static int give_shared_receive(struct shared *s, uint64_t wr_id, uint32_t key)
{
	struct ibv_sge sge = { (uintptr_t)s->pool + wr_id * PIECE, PIECE, key };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(s->srq, &wr, &bad);
}

static void send_to_shared(struct shared *s, unsigned whom, uint8_t what)
{
	s->from.buf[0] = what;
	vud_send(&s->from, what, &s->to[whom], 1, 0);
	cr_expect_eq(vud_wc(&s->from).status, 0);
}

static void expect_shared_message(struct shared *s, unsigned who, uint64_t wr_id, uint8_t what)
{
	struct ibv_wc wc = vud_wc(&s->to[who]);

	cr_expect_eq(wc.status, 0);
	cr_expect_eq(wc.wr_id, wr_id);
	cr_expect_eq(wc.byte_len, 41);
	cr_expect_eq(wc.qp_num, s->to[who].qp->qp_num);
	cr_expect_eq(s->pool[wr_id * PIECE + 40], what);
}

Test(verbs_ud_srq, messages_take_the_oldest_receive_of_all, .timeout = 30)
{
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct shared s;

	begin_verbs_ud_srq(&s);
	cr_expect_eq(s.to[0].qp->srq, s.srq);
	cr_expect_eq(ibv_post_recv(s.to[0].qp, &wr, &bad), EINVAL, "it has no queue of its own");
	for (uint64_t i = 0; i < DEPTH; i++)
		cr_assert_eq(give_shared_receive(&s, i, s.mr->lkey), 0);
	cr_expect_eq(give_shared_receive(&s, 0, s.mr->lkey), ENOMEM);
	for (uint8_t i = 0; i < DEPTH; i++) {
		send_to_shared(&s, i & 1, (uint8_t)(0x30 + i));
		expect_shared_message(&s, i & 1, i, (uint8_t)(0x30 + i));
	}
	/* A receive that was taken has left room for another. */
	cr_expect_eq(give_shared_receive(&s, 3, s.mr->lkey), 0);
	send_to_shared(&s, 1, 7);
	expect_shared_message(&s, 1, 3, 7);
	end_verbs_ud_srq(&s);
}

/* What finds none waits, in each of the sockets; one receive is one message's. */
Test(verbs_ud_srq, messages_wait_for_receives, .timeout = 30)
{
	struct ibv_wc wc;
	struct shared s;

	begin_verbs_ud_srq(&s);
	send_to_shared(&s, 0, 1);
	send_to_shared(&s, 1, 2);
	/* Polled and asleep, nobody has a receive for them. */
	for (int i = 0; i < 100; i++)
		cr_expect_eq(ibv_poll_cq(s.to[i & 1].cq, 1, &wc), 0);
	cr_assert_eq(ibv_req_notify_cq(s.to[0].cq, 0), 0);
	cr_assert_eq(ibv_req_notify_cq(s.to[1].cq, 0), 0);
	cr_expect_not(vt_readable(s.to[0].cc->fd, 20));
	cr_expect_not(vt_readable(s.to[1].cc->fd, 0));
	cr_assert_eq(give_shared_receive(&s, 0, s.mr->lkey), 0);
	cr_assert_eq(give_shared_receive(&s, 1, s.mr->lkey), 0);
	vud_event(&s.to[0]);
	vud_event(&s.to[1]);
	cr_assert_eq(ibv_poll_cq(s.to[0].cq, 1, &wc), 1);
	cr_expect_eq(s.pool[wc.wr_id * PIECE + 40], 1);
	cr_assert_eq(ibv_poll_cq(s.to[1].cq, 1, &wc), 1);
	cr_expect_eq(s.pool[wc.wr_id * PIECE + 40], 2);
	cr_expect_eq(vud_stats().no_recv, 0);
	end_verbs_ud_srq(&s);
}

Test(verbs_ud_srq, the_limit_is_reported, .timeout = 30)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_async_event e;
	struct shared s;

	begin_verbs_ud_srq(&s);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(give_shared_receive(&s, i, s.mr->lkey), 0);
	cr_assert_eq(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), 0);
	send_to_shared(&s, 0, 1);
	expect_shared_message(&s, 0, 0, 1);
	cr_expect_not(vt_readable(s.v.ctx->async_fd, 0), "two are left, which is no fewer");
	send_to_shared(&s, 1, 2);
	e = vt_async(s.v.ctx, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_expect_eq(e.element.srq, s.srq);
	ibv_ack_async_event(&e);
	expect_shared_message(&s, 1, 1, 2);
	end_verbs_ud_srq(&s);
}

/* One that fails says that it takes no more; what is posted is the other's. */
Test(verbs_ud_srq, one_that_fails_leaves_the_rest_to_others, .timeout = 30)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event e;
	struct shared s;
	struct ibv_wc wc;

	begin_verbs_ud_srq(&s);
	cr_assert_eq(give_shared_receive(&s, 0, s.mr->lkey + 0x100), 0,
		     "no region's, which its turn shows");
	cr_assert_eq(give_shared_receive(&s, 1, s.mr->lkey), 0);
	send_to_shared(&s, 0, 1);
	wc = vud_wc(&s.to[0]);
	cr_expect_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(wc.wr_id, 0);
	e = vt_async(s.v.ctx, IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_expect_eq(e.element.qp, s.to[0].qp);
	ibv_ack_async_event(&e);
	send_to_shared(&s, 1, 2);
	expect_shared_message(&s, 1, 1, 2);
	cr_assert_eq(ibv_modify_qp(s.to[1].qp, &attr, IBV_QP_STATE), 0);
	e = vt_async(s.v.ctx, IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_expect_eq(e.element.qp, s.to[1].qp);
	ibv_ack_async_event(&e);
	cr_assert_eq(ibv_modify_qp(s.to[1].qp, &attr, IBV_QP_STATE), 0);
	cr_expect_not(vt_readable(s.v.ctx->async_fd, 20), "once");
	end_verbs_ud_srq(&s);
}

/* With DDPSESS_NO_RECV=strict nothing waits. */
Test(verbs_ud_srq, strict_drops_what_finds_none, .timeout = 30)
{
	struct shared s;

	setenv("DDPSESS_NO_RECV", "strict", 1);
	begin_verbs_ud_srq(&s);
	send_to_shared(&s, 0, 1);
	while (!vud_stats().no_recv) {
		struct ibv_wc wc;

		cr_assert_eq(ibv_poll_cq(s.to[0].cq, 1, &wc), 0);
	}
	cr_assert_eq(give_shared_receive(&s, 0, s.mr->lkey), 0);
	send_to_shared(&s, 0, 2);
	expect_shared_message(&s, 0, 0, 2);
	end_verbs_ud_srq(&s);
}

/* A session and datagrams take turns with the same receives; an identifier's queue is its queue pair's. */
VT_TEST(verbs_ud_srq, sessions_and_datagrams_share_one)
{
	struct shared s;
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	open_srq(&s, v.listen->pd);
	v.srq = s.srq;
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vud_open(&s.v);
	vud_up(&s.v, &s.from);
	s.v.srq = s.srq;
	vud_up(&s.v, &s.to[0]);
	for (uint64_t i = 0; i < DEPTH; i++)
		cr_assert_eq(give_shared_receive(&s, i, s.mr->lkey), 0);
	for (uint8_t i = 0; i < DEPTH; i++) {
		if (i & 1) {
			send_to_shared(&s, 0, i);
			expect_shared_message(&s, 0, i, i);
			continue;
		}
		v.a.buf[0] = i;
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 1, NULL), 0);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
		wc = vt_wc(&v.b);
		cr_expect_eq(wc.wr_id, i);
		cr_expect_eq(s.pool[i * PIECE], i);
	}
	vud_down(&s.to[0]);
	vud_down(&s.from);
	vud_close(&s.v);
	vt_end_down(&v.a);
	vt_end_down(&v.b);
	cr_expect_eq(ibv_dereg_mr(s.mr), 0);
	vt_down(&v);
}

static void of_identifier(enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct ibv_qp_init_attr init = { .qp_type = type, .cap = { 4, 4, 1, 1, 0 } };
	struct sockaddr_in a4 = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, ps), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	cr_assert_eq(rdma_create_srq(id, NULL, &srq), 0, "%m");
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0, "%m");
	cr_expect_eq(id->qp->srq, id->srq);
	rdma_destroy_ep(id);
}

Test(verbs_ud_srq, an_identifiers_queue_is_its_queue_pairs, .timeout = 30)
{
	of_identifier(RDMA_PS_UDP, IBV_QPT_UD);
	of_identifier(RDMA_PS_TCP, IBV_QPT_RC);
}
