/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of the drop-in: RFC 7306, the missing receive, work posted too late. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- RFC 7306 ---- */

static int post_imm(struct vt_end *e, enum ibv_wr_opcode op, uint32_t len, unsigned flags,
		    const struct vt_end *peer)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = op,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = flags,
				  .imm_data = htonl(0xa1b2c3d4) },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + 4096;
	wr.wr.rdma.rkey = peer->mr->rkey;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

VT_TLS_TEST(verbs_ops, write_with_immediate_is_one_completion_on_either_side)
{
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	memset(v.a.buf, 0x5c, 300);
	for (unsigned flags = 0; flags <= IBV_SEND_INLINE; flags += IBV_SEND_INLINE) {
		cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
		cr_assert_eq(post_imm(&v.a, IBV_WR_RDMA_WRITE_WITH_IMM, 300, flags, &v.b), 0);
		vt_expect_wc(&v.a, 1, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
		wc = vt_wc(&v.b);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		cr_assert_eq(wc.wr_id, 7);
		cr_assert(wc.wc_flags & IBV_WC_WITH_IMM);
		cr_assert_eq(ntohl(wc.imm_data), 0xa1b2c3d4);
		cr_assert_eq(wc.byte_len, 300, "the length of the Write");
		cr_assert_arr_eq(v.b.buf + 4096, v.a.buf, 300);
		memset(v.b.buf, 0, sizeof v.b.buf);
		if (flags)
			break;
	}
	vt_down(&v);
}

VT_TLS_TEST(verbs_ops, send_with_immediate_data)
{
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_recv(&v.b, 6, 0, 64), 0);
	cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
	/* With a payload and without one: a receive each. */
	cr_assert_eq(post_imm(&v.a, IBV_WR_SEND_WITH_IMM, 48, 0, &v.b), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	wc = vt_wc(&v.b);
	cr_assert_eq(wc.opcode, IBV_WC_RECV);
	cr_assert_eq(wc.wr_id, 6);
	cr_assert_eq(wc.byte_len, 48);
	cr_assert(wc.wc_flags & IBV_WC_WITH_IMM);
	cr_assert_eq(ntohl(wc.imm_data), 0xa1b2c3d4);
	cr_assert_eq(post_imm(&v.a, IBV_WR_SEND_WITH_IMM, 0, 0, &v.b), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	wc = vt_wc(&v.b);
	cr_assert_eq(wc.opcode, IBV_WC_RECV);
	cr_assert_eq(wc.wr_id, 7);
	cr_assert_eq(wc.byte_len, 0);
	cr_assert(wc.wc_flags & IBV_WC_WITH_IMM);
	cr_assert_eq(ntohl(wc.imm_data), 0xa1b2c3d4);
	vt_down(&v);
}

/* There is nothing that could confirm it. */
VT_TLS_TEST(verbs_ops, without_reads_a_write_completes_when_it_has_left)
{
	struct vt v;

	vt_init(&v);
	v.connect.initiator_depth = v.connect.responder_resources = 0;
	v.accept.initiator_depth = v.accept.responder_resources = 0;
	vt_up(&v);
	cr_assert_eq(vt_post(&v.a, 3, IBV_WR_RDMA_WRITE, 64, &v.b), 0);
	vt_expect_wc(&v.a, 3, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	vt_down(&v);
}

static int post_verbs_ops_atomic(struct vt_end *e, enum ibv_wr_opcode op, uint64_t arg,
				 uint64_t swap, const struct vt_end *peer)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, 8, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = op, .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr.atomic.remote_addr = (uintptr_t)peer->buf;
	wr.wr.atomic.rkey = peer->mr->rkey;
	wr.wr.atomic.compare_add = arg;
	wr.wr.atomic.swap = swap;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

static uint64_t value(const void *at)
{
	uint64_t n;

	memcpy(&n, at, sizeof n);
	return n;
}

VT_TLS_TEST(verbs_ops, atomics_work_in_host_order)
{
	uint64_t start = UINT64_MAX - 2;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	memcpy(v.b.buf, &start, sizeof start);
	cr_assert_eq(post_verbs_ops_atomic(&v.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 10, 0, &v.b), 0);
	vt_expect_wc(&v.a, 5, IBV_WC_FETCH_ADD, IBV_WC_SUCCESS);
	cr_assert_eq(value(v.a.buf), start);
	cr_assert_eq(value(v.b.buf), 7, "carries go through all 64 bits");
	cr_assert_eq(post_verbs_ops_atomic(&v.a, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 99, &v.b), 0);
	vt_expect_wc(&v.a, 5, IBV_WC_COMP_SWAP, IBV_WC_SUCCESS);
	cr_assert_eq(value(v.a.buf), 7);
	cr_assert_eq(value(v.b.buf), 7, "unequal: it stays");
	cr_assert_eq(post_verbs_ops_atomic(&v.a, IBV_WR_ATOMIC_CMP_AND_SWP, 7, 99, &v.b), 0);
	vt_expect_wc(&v.a, 5, IBV_WC_COMP_SWAP, IBV_WC_SUCCESS);
	cr_assert_eq(value(v.b.buf), 99);
	vt_down(&v);
}

VT_TLS_TEST(verbs_ops, the_wr_interface_builds_the_same)
{
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	ex = ibv_qp_to_qp_ex(v.a.id->qp);
	cr_assert_eq(vt_recv(&v.b, 1, 64, 64), 0);
	cr_assert_eq(vt_recv(&v.b, 2, 64, 64), 0);
	ibv_wr_start(ex);
	ex->wr_id = 11;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(ex, v.b.mr->rkey, (uintptr_t)v.b.buf, 3);
	ibv_wr_set_sge(ex, v.a.mr->lkey, (uintptr_t)v.a.buf, 8);
	ex->wr_id = 12;
	ibv_wr_atomic_cmp_swp(ex, v.b.mr->rkey, (uintptr_t)v.b.buf, 3, 4);
	ibv_wr_set_sge(ex, v.a.mr->lkey, (uintptr_t)v.a.buf + 8, 8);
	ex->wr_id = 13;
	ibv_wr_rdma_write_imm(ex, v.b.mr->rkey, (uintptr_t)v.b.buf + 100, htonl(1));
	ibv_wr_set_inline_data(ex, "hello", 5);
	ex->wr_id = 14;
	ibv_wr_send_imm(ex, htonl(2));
	ibv_wr_set_sge_list(ex, 0, NULL);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	vt_expect_wc(&v.a, 11, IBV_WC_FETCH_ADD, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 12, IBV_WC_COMP_SWAP, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 13, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 14, IBV_WC_SEND, IBV_WC_SUCCESS);
	wc = vt_wc(&v.b);
	cr_assert_eq(ntohl(wc.imm_data), 1);
	wc = vt_wc(&v.b);
	cr_assert_eq(ntohl(wc.imm_data), 2);
	cr_assert_eq(value(v.b.buf), 4);
	cr_assert_arr_eq(v.b.buf + 100, "hello", 5);
	vt_down(&v);
}

Test(verbs_ops, rfc7306_can_be_switched_off, .timeout = 60)
{
	struct ibv_device_attr dev;
	struct vt v;

	setenv("DDPSESS_RFC7306", "off", 1);
	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(ibv_query_device(v.a.id->verbs, &dev), 0);
	cr_assert_eq(dev.atomic_cap, IBV_ATOMIC_NONE);
	cr_assert_eq(post_imm(&v.a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, &v.b), EOPNOTSUPP);
	cr_assert_eq(post_imm(&v.a, IBV_WR_SEND_WITH_IMM, 0, 0, &v.b), EOPNOTSUPP);
	cr_assert_eq(post_verbs_ops_atomic(&v.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &v.b),
		     EOPNOTSUPP);
	vt_down(&v);
}

/* ---- a Send without a receive: finding 13 ---- */

VT_TLS_TEST(verbs_ops, finding_13_a_send_waits_for_its_receive)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	strcpy((char *)v.a.buf, "late");
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert_eq(vt_recv(&v.b, 2, 0, 64), 0);
	vt_expect_wc(&v.b, 2, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_str_eq((char *)v.b.buf, "late");
	vt_down(&v);
}

/* The peer disconnects, and its program is informed; what came waits on. */
VT_TLS_TEST(verbs_ops, contact_06_late_receives_get_what_a_closed_peer_sent)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (uint64_t i = 0; i < 8; i++) {
		v.a.buf[0] = (uint8_t)i;
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 5, NULL), 0);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < 8; i++) {
		cr_assert_eq(vt_recv(&v.b, i, 64 * (size_t)i, 64), 0);
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
		cr_expect_eq(v.b.buf[64 * i], i);
	}
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

VT_TLS_TEST(verbs_ops, finding_13_strict_ends_the_connection)
{
	struct ibv_async_event e;
	struct vt v;

	setenv("DDPSESS_NO_RECV", "strict", 1);
	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 5, NULL), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	/* Two queue pairs of one context: both are informed. */
	for (int i = 0; i < 2; i++) {
		e = vt_async(v.a.id->verbs, IBV_EVENT_QP_FATAL);
		cr_assert(e.element.qp == v.a.id->qp || e.element.qp == v.b.id->qp);
		ibv_ack_async_event(&e);
	}
	vt_down(&v);
}

/* ---- work posted when the connection is over ---- */

VT_TLS_TEST(verbs_ops, late_work_is_flushed_in_order_and_wakes_the_channel)
{
	struct ibv_cq *cq;
	void *user;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	cr_assert_eq(vt_recv(&v.b, 2, 0, 64), 0);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_assert_eq(vt_recv(&v.b, 3, 0, 64), 0);
	for (uint64_t i = 1; i <= 3; i++)
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	/* Armed first, posted then. */
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 1), 0);
	cr_assert_not(vt_readable(v.b.cc->fd, 0));
	cr_assert_eq(vt_post(&v.b, 4, IBV_WR_SEND, 5, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	vt_expect_wc(&v.b, 4, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(vt_post(&v.b, 5, IBV_WR_RDMA_READ, 5, &v.a), 0);
	vt_expect_wc(&v.b, 5, IBV_WC_RDMA_READ, IBV_WC_WR_FLUSH_ERR);
	vt_down(&v);
}

VT_TLS_TEST(verbs_ops, a_queue_pair_set_to_error_flushes_what_it_has)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr init;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v); /* never connected */
	cr_assert_eq(vt_recv(&v.a, 1, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 9, IBV_WR_SEND, 5, NULL), EINVAL);
	cr_assert_eq(ibv_modify_qp(v.a.id->qp, &attr, IBV_QP_STATE), 0);
	cr_assert_eq(vt_recv(&v.a, 2, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 3, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	vt_expect_wc(&v.a, 2, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	vt_expect_wc(&v.a, 3, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(ibv_query_qp(v.a.id->qp, &attr, IBV_QP_STATE, &init), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_ERR);
	vt_down(&v);
}
