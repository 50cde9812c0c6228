/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that programs connect themselves: what channels report of them, and one that is its own peer. */
#include "verbs/voob.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- channels ---- */

/* With a queue that has events, and a receive posted. */
static struct ibv_comp_channel *up_told(struct side *s)
{
	struct ibv_comp_channel *ch;

	open_oob_side(s);
	cr_assert_eq(ibv_destroy_qp(s->qp), 0);
	cr_assert_eq(ibv_destroy_cq(s->cq), 0);
	ch = ibv_create_comp_channel(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 64, NULL, ch, 0);
	cr_assert(ch && s->cq);
	s->qp = make_oob_qp(s, IBV_QPT_RC);
	listen_to(s);
	return ch;
}

static void down_told(struct side *s, struct ibv_comp_channel *ch)
{
	if (s->qp)
		cr_expect_eq(ibv_destroy_qp(s->qp), 0);
	s->qp = NULL;
	cr_expect_eq(ibv_destroy_cq(s->cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
	s->cq = ibv_create_cq(s->ctx, 1, NULL, NULL, 0);
	close_oob_side(s);
}

static void note_verbs_oob_told_acked(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq;
	void *user;

	cr_assert(vt_readable(ch->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(ch, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
}

/*
 * On InfiniBand the end of a queue pair is no event of its queues, nor of its peer's.  Programs that
 * acknowledge all events before they destroy the queue pair would wait for ever for another one.
 */
VT_TEST(verbs_oob, a_queue_pair_that_goes_wakes_nobody)
{
	struct ibv_comp_channel *ca, *cb;
	struct side a, b;

	ca = up_told(&a);
	cb = up_told(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	cr_assert_eq(say_oob(&a, "hello", IBV_SEND_SIGNALED), 0);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	listen_to(&b);
	cr_assert_eq(ibv_req_notify_cq(a.cq, 0), 0);
	cr_assert_eq(ibv_req_notify_cq(b.cq, 0), 0);
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	a.qp = NULL;
	cr_expect(!vt_readable(ca->fd, 0), "its own queue");
	cr_expect(!vt_readable(cb->fd, 200), "its peer's queue");
	/* what the program does itself is reported */
	cr_assert_eq(move_oob_qp(b.qp, IBV_QPS_ERR), 0);
	note_verbs_oob_told_acked(cb);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_WR_FLUSH_ERR);
	down_told(&a, ca);
	down_told(&b, cb);
}

/* A peer that is not there is no orderly end. */
VT_TEST(verbs_oob, a_connection_that_fails_is_reported)
{
	struct ibv_comp_channel *ch;
	struct side a;

	setenv("DDPSESS_RETRY_MS", "50", 1);
	ch = up_told(&a);
	cr_assert_eq(ibv_req_notify_cq(a.cq, 0), 0);
	cr_assert_eq(move_oob_to_rtr(a.qp, NOBODY, &a.gid), 0);
	note_verbs_oob_told_acked(ch);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
	down_told(&a, ch);
}

/* ---- its own peer ---- */

static int write_self(struct side *s, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, 8, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 5,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)s->buf + 128;
	wr.wr.rdma.rkey = s->mr->rkey;
	return ibv_post_send(s->qp, &wr, &bad);
}

/* Both completions of a Send to itself, in whichever order. */
static void told_of_both(struct side *s)
{
	struct ibv_wc one = await_oob_wc(s), two = await_oob_wc(s);

	cr_expect_eq(one.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(one.status));
	cr_expect_eq(two.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(two.status));
	cr_expect_eq(one.wr_id + two.wr_id, 1 + 2);
	cr_expect_eq(one.qp_num, s->qp->qp_num);
	cr_expect_eq(two.qp_num, s->qp->qp_num);
}

static void talk_to_self(struct side *s)
{
	listen_to(s); /* before it knows whom it will hear */
	meet_oob_side(s, s);
	cr_assert_eq(say_oob(s, "hello", IBV_SEND_SIGNALED), 0);
	told_of_both(s);
	memcpy(s->buf, "written", 8);
	cr_assert_eq(write_self(s, IBV_WR_RDMA_WRITE), 0);
	cr_expect_eq(await_oob_wc(s).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(s->buf + 128, "written");
	memcpy(s->buf + 128, "is read", 8);
	cr_assert_eq(write_self(s, IBV_WR_RDMA_READ), 0);
	cr_expect_eq(await_oob_wc(s).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(s->buf, "is read");
}

VT_TEST(verbs_oob, a_queue_pair_is_its_own_peer)
{
	struct side s;

	open_oob_side(&s);
	cr_assert_eq(ibv_dereg_mr(s.mr), 0);
	s.mr = ibv_reg_mr(s.pd, s.buf, sizeof s.buf,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
	cr_assert_not_null(s.mr);
	talk_to_self(&s);
	/* what is posted comes back when it fails ... */
	listen_to(&s);
	cr_assert_eq(move_oob_qp(s.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(await_oob_wc(&s).status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(say_oob(&s, "late", IBV_SEND_SIGNALED), 0);
	cr_expect_eq(await_oob_wc(&s).status, IBV_WC_WR_FLUSH_ERR);
	/* ... and it begins anew */
	cr_assert_eq(move_oob_qp(s.qp, IBV_QPS_RESET), 0);
	{
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

		cr_assert_eq(ibv_modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	}
	talk_to_self(&s);
	close_oob_side(&s);
}

/* What it may not touch ends it, on both of its ends. */
VT_TEST(verbs_oob, a_queue_pair_that_is_its_own_peer_fails)
{
	struct side s;

	open_oob_side(&s);
	listen_to(&s);
	meet_oob_side(&s, &s);
	cr_assert_eq(write_self(&s, IBV_WR_RDMA_READ), 0); /* no right to */
	for (int i = 0; i < 2; i++) { /* in whichever order its two ends learn of it */
		struct ibv_wc wc = await_oob_wc(&s);

		cr_expect_neq(wc.status, IBV_WC_SUCCESS);
		cr_expect_eq(wc.status == IBV_WC_WR_FLUSH_ERR, wc.wr_id == 2, "the receive");
	}
	close_oob_side(&s);
}
