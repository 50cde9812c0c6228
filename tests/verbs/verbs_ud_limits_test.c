/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams: wrong requests, states and addresses, what is shown, and octets that are none. */
#include "verbs/vfail.h"
#include "verbs/vud.h"
#include <errno.h>
#include <string.h>

static struct vd_ud_qp *inner(const struct vud_qp *q)
{
	return vd_of(q->qp, struct vd_qp, qp.qp_base)->ud;
}

static void set_state(const struct vud_qp *q, enum ibv_qp_state state)
{
	struct vd_ud *ud = inner(q)->ud;

	ddps_lock(&ud->lock);
	ud_set_state(inner(q), state);
	ddps_unlock(&ud->lock);
}

/* ---- what is made on first use ---- */

/* All that the process's datagrams share is there, or nothing of it. */
Test(verbs_ud_limits, nothing_is_left_of_a_first_use_that_fails)
{
	static const struct {
		enum vfail_call call;
		unsigned n;
	} fails[] = { { VFAIL_MEMORY, 1 },	 { VFAIL_MEMORY, 2 },  { VFAIL_EPOLL_CREATE, 1 },
		      { VFAIL_EPOLL_CREATE, 2 }, { VFAIL_EVENTFD, 1 }, { VFAIL_EPOLL_CTL, 1 },
		      { VFAIL_THREAD, 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct vud v;
	long live;
	int files;

	vud_open(&v);
	init.send_cq = init.recv_cq = ibv_create_cq(v.ctx, 2, NULL, NULL, 0);
	cr_assert_not_null(init.send_cq);
	files = vfail_files();
	live = vfail_live();
	for (size_t i = 0; i < sizeof fails / sizeof *fails; i++) {
		vfail_nth(fails[i].call, fails[i].n);
		cr_expect_null(ibv_create_qp(v.pd, &init), "%zu", i);
		cr_expect(vfail_came(), "%zu", i);
		cr_expect(vfail_nothing_more(live, files), "%zu: %d files, there were %d", i,
			  vfail_files(), files);
	}
	cr_assert_eq(ibv_destroy_cq(init.send_cq), 0);
	vud_close(&v);
}

/* ---- states ---- */

#define S(state) (1u << IBV_QPS_##state)

/* Where each state leads to by one call. */
Test(verbs_ud_limits, states)
{
	static const unsigned from[] = {
		[IBV_QPS_RESET] = S(RESET) | S(ERR) | S(INIT),
		[IBV_QPS_INIT] = S(RESET) | S(ERR) | S(INIT) | S(RTR),
		[IBV_QPS_RTR] = S(RESET) | S(ERR) | S(RTS),
		[IBV_QPS_RTS] = S(RESET) | S(ERR) | S(RTS) | S(SQD),
		[IBV_QPS_SQD] = S(RESET) | S(ERR) | S(RTS) | S(SQD),
		[IBV_QPS_SQE] = S(RESET) | S(ERR) | S(RTS),
		[IBV_QPS_ERR] = S(RESET) | S(ERR),
	};
	const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	struct ibv_qp_attr attr = { .port_num = 1, .qkey = VUD_QKEY };
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_make(&v, &q, IBV_QPT_UD);
	cr_expect_eq(ibv_modify_qp(q.qp, &attr, IBV_QP_QKEY), EINVAL, "in RESET");
	for (unsigned now = 0; now <= IBV_QPS_ERR; now++)
		for (unsigned to = 0; to <= IBV_QPS_UNKNOWN; to++) {
			const bool may = to <= IBV_QPS_ERR && from[now] & 1u << to;

			set_state(&q, (enum ibv_qp_state)now);
			attr.qp_state = (enum ibv_qp_state)to;
			cr_expect_eq(ibv_modify_qp(q.qp, &attr,
						   IBV_QP_STATE | (to == IBV_QPS_INIT ? init : 0)),
				     may ? 0 : EINVAL, "%u to %u", now, to);
			cr_expect_eq(q.qp->state, may ? to : now);
		}
	set_state(&q, IBV_QPS_RESET);
	attr.qp_state = IBV_QPS_INIT;
	cr_expect_eq(ibv_modify_qp(q.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	vud_down(&q);
	vud_close(&v);
}

/* Datagrams come in all states from RTR on but ERR. */
Test(verbs_ud_limits, states_that_receive)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD,
						    IBV_QPS_SQE };
	struct vud_qp a, b;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		set_state(&b, states[i]);
		vud_recv(&b, i, 0, 100);
		vud_send(&a, 9, &b, 10, 0);
		cr_expect_eq(vud_wc(&b).wr_id, i);
		cr_expect_eq(vud_wc(&a).wr_id, 9);
	}
	/* In ERR a receive is flushed immediately. */
	set_state(&b, IBV_QPS_ERR);
	vud_recv(&b, 20, 0, 100);
	cr_expect_eq(vud_wc(&b).status, IBV_WC_WR_FLUSH_ERR);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* ---- requests ---- */

static int send_wrong(struct vud_qp *q, unsigned which, struct ibv_ah *foreign)
{
	struct ibv_sge sge[17] = { { (uintptr_t)q->buf, 513, q->key } };
	struct ibv_send_wr second = vud_wr(q, 2, q, sge, 1), *bad = NULL;
	struct ibv_send_wr wr = vud_wr(q, 1, q, sge, 1);
	int err;

	wr.next = &second;
	switch (which) {
	case 0:
		wr.send_flags |= 1u << 20;
		break;
	case 1:
		wr.wr.ud.ah = foreign;
		break;
	case 2:
		wr.wr.ud.ah = NULL;
		break;
	case 3:
		wr.num_sge = -1;
		break;
	case 4:
		wr.num_sge = 17;
		break;
	case 5:
		wr.send_flags |= IBV_SEND_INLINE; /* 513 octets */
		break;
	case 6:
		wr.opcode = IBV_WR_RDMA_WRITE;
		break;
	default:
		wr.wr.ud.remote_qpn = 1 << 24;
	}
	err = ibv_post_send(q->qp, &wr, &bad);
	cr_expect_eq(bad, &wr, "%u", which);
	return err;
}

Test(verbs_ud_limits, requests)
{
	struct ibv_recv_wr second = { .wr_id = 2 }, wr = { .wr_id = 1, .next = &second }, *bad;
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_pd *other;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	other = ibv_alloc_pd(v.ctx);
	attr.grh.dgid.raw[15] = 1;
	ah = ibv_create_ah(other, &attr);
	cr_assert_not_null(ah);
	for (unsigned which = 0; which < 8; which++)
		cr_expect_eq(send_wrong(&q, which, ah), EINVAL, "%u", which);
	wr.num_sge = -1;
	cr_expect_eq(ibv_post_recv(q.qp, &wr, &bad), EINVAL);
	cr_expect_eq(bad, &wr);
	wr.num_sge = 5; /* four are the most */
	cr_expect_eq(ibv_post_recv(q.qp, &wr, &bad), EINVAL);
	cr_expect_eq(ibv_poll_cq(q.cq, 1, &wc), 0, "nothing of it was taken");
	cr_expect_eq(ibv_poll_cq(q.cq, 0, &wc), 0);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
	vud_down(&q);
	vud_close(&v);
}

/* Numbers that no queue pair for datagrams can have lead nowhere, and that is not the sender's error. */
Test(verbs_ud_limits, numbers_of_nobody)
{
	static const uint32_t numbers[] = { 0xef0009, 0xff0009, 0xf00000, 9 };
	struct ibv_send_wr *bad;
	uint64_t unreachable;
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	unreachable = vud_stats().unreachable;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct ibv_sge sge = { (uintptr_t)q.buf, 10, q.key };
		struct ibv_send_wr wr = vud_wr(&q, i, &q, &sge, 1);

		wr.wr.ud.remote_qpn = numbers[i];
		cr_assert_eq(ibv_post_send(q.qp, &wr, &bad), 0);
		cr_expect_eq(vud_wc(&q).status, IBV_WC_SUCCESS);
		cr_expect_eq(vud_stats().unreachable, unreachable + i + 1, "%x", numbers[i]);
	}
	vud_down(&q);
	vud_close(&v);
}

/* The system has no room for a moment: the datagram is sent a moment later.  Other errors lose it. */
Test(verbs_ud_limits, sends_that_wait)
{
	static const int errors[] = { EAGAIN, ENOBUFS };
	uint64_t unreachable;
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		vud_recv(&q, 1, 0, 100);
		vfail_nth(VFAIL_SENDMSG, 1);
		vfail_as(errors[i]);
		vud_send(&q, 2, &q, 10, 0);
		cr_expect(vfail_came());
		cr_expect_eq(vud_wc(&q).status, IBV_WC_SUCCESS);
		cr_expect_eq(vud_wc(&q).status, IBV_WC_SUCCESS);
	}
	unreachable = vud_stats().unreachable;
	vfail_nth(VFAIL_SENDMSG, 1);
	vfail_as(EHOSTUNREACH);
	vud_send(&q, 3, &q, 10, 0);
	cr_expect(vfail_came());
	cr_expect_eq(vud_wc(&q).wr_id, 3);
	cr_expect_eq(vud_stats().unreachable, unreachable + 1);
	vud_down(&q);
	vud_close(&v);
}

/* What waits for lack of memory is refused; what waits is flushed or goes with its queue pair. */
Test(verbs_ud_limits, sends_that_wait_for_nothing)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	sge = (struct ibv_sge){ (uintptr_t)q.buf, 10, q.key };
	wr = vud_wr(&q, 1, &q, &sge, 1);
	vfail_size(offsetof(struct ud_sqe, data) + 10);
	vfail_nth(VFAIL_SENDMSG, 1);
	vfail_as(EAGAIN);
	cr_expect_eq(ibv_post_send(q.qp, &wr, &bad), ENOMEM);
	cr_expect(vfail_came());
	for (int i = 0; i < 2; i++) {
		vfail_nth(VFAIL_SENDMSG, 1);
		vfail_as(EAGAIN);
		vud_send(&q, 4, &q, 10, 0);
		attr.qp_state = i ? IBV_QPS_RESET : IBV_QPS_ERR;
		cr_assert_eq(ibv_modify_qp(q.qp, &attr, IBV_QP_STATE), 0);
		vfail_came();
		if (!i)
			cr_expect_eq(vud_wc(&q).wr_id, 4, "sent by now, or flushed");
		cr_assert_eq(ibv_modify_qp(q.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
					   IBV_QP_STATE),
			     0);
		vud_move(&q, IBV_QPS_RTS);
	}
	vud_down(&q);
	vud_close(&v);
}

/* ---- address handles ---- */

Test(verbs_ud_limits, address_handles)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 0 }, got;
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { .sgid.raw = { [15] = 1 } };
	struct ibv_ah *ah;
	struct vud v;

	vud_open(&v);
	attr.grh.dgid.raw[15] = 1;
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL);
	attr.port_num = 2;
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL);
	attr.port_num = 1;
	attr.grh.sgid_index = 1;
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL);
	attr.is_global = 0;
	attr.dlid = 1;
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL);
	VT_MINUS_AS(ibv_init_ah_from_wc(v.ctx, 0, &wc, &grh, &got), EINVAL);
	VT_MINUS_AS(ibv_init_ah_from_wc(v.ctx, 2, &wc, &grh, &got), EINVAL);
	VT_MINUS_AS(ibv_init_ah_from_wc(v.ctx, 1, &wc, NULL, &got), EINVAL);
	VT_NULL_AS(ibv_create_ah_from_wc(v.pd, &wc, NULL, 1), EINVAL);
	wc.wc_flags = 0;
	VT_NULL_AS(ibv_create_ah_from_wc(v.pd, &wc, &grh, 1), EINVAL);
	wc.wc_flags = IBV_WC_GRH;
	cr_expect_eq(ibv_init_ah_from_wc(v.ctx, 1, &wc, &grh, &got), 0);
	cr_expect_eq(got.grh.dgid.raw[15], 1);
	ah = ibv_create_ah_from_wc(v.pd, &wc, &grh, 1);
	cr_assert_not_null(ah);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	vud_close(&v);
}

Test(verbs_ud_limits, queue_pairs)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct vud v;

	vud_open(&v);
	VT_NULL_AS(ibv_create_qp(v.pd, &init), EINVAL);
	init.send_cq = ibv_create_cq(v.ctx, 1, NULL, NULL, 0);
	VT_NULL_AS(ibv_create_qp(v.pd, &init), EINVAL);
	init.recv_cq = init.send_cq;
	init.cap.max_send_sge = VD_MAX_SGE + 1;
	VT_NULL_AS(ibv_create_qp(v.pd, &init), EINVAL);
	cr_expect_eq(ibv_destroy_cq(init.send_cq), 0);
	vud_close(&v);
}

/* ---- what sessctl stat shows ---- */

Test(verbs_ud_limits, what_is_shown)
{
	struct vud_qp a, b;
	char text[512];
	struct vud v;

	vud_open(&v);
	cr_expect_eq(vd_ud_show(vd_process(), 0, text, sizeof text), 0, "there are none");
	vud_up(&v, &a);
	vud_make(&v, &b, IBV_QPT_UD);
	cr_assert_gt(vd_ud_show(vd_process(), 0, text, sizeof text), 0);
	cr_expect_not_null(strstr(text, "RESET"), "%s", text);
	cr_assert_gt(vd_ud_show(vd_process(), 1, text, sizeof text), 0);
	cr_expect_not_null(strstr(text, "RTS"), "%s", text);
	cr_expect_eq(vd_ud_show(vd_process(), 2, text, sizeof text), 0);
	b.qp->state = IBV_QPS_UNKNOWN;
	cr_assert_gt(vd_ud_show(vd_process(), 0, text, sizeof text), 0);
	cr_expect_not_null(strstr(text, "UNKNOWN"), "%s", text);
	b.qp->state = IBV_QPS_RESET;
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* ---- the wire ---- */

struct change {
	enum ud_type type;
	unsigned at, value; /* an octet */
	bool fits;
};

Test(verbs_ud_limits, octets)
{
	static const struct change all[] = {
		{ UD_DATA, 6, UD_F_ALL, true },	  { UD_DATA, 6, 8, false },
		{ UD_DATA, 7, 1, false },	  { UD_DATA, 4, 77, false },
		{ UD_DATA, 8, 1, false },	  { UD_DATA, 12, 1, false },
		{ UD_DATA, 0, 0, false },	  { UD_ACK, 6, 0, true },
		{ UD_ACK, 6, UD_F_ACK, false },	  { UD_REQ, 6, 0, true },
		{ UD_REQ, 6, 1, false },	  { UD_REQ, 18, 1, false },
		{ UD_REQ, 19, 1, false },	  { UD_REQ, 20, 1, false },
		{ UD_REQ, 17, UD_PD_REQ, false }, { UD_REQ, 17, UD_PD_REQ + 1, false },
		{ UD_REQ, 17, UD_PD_REP, true },  { UD_REP, 17, 0, true },
		{ UD_REP, 17, 1, false },	  { UD_REP, 17, UD_PD_REP + 1, false },
	};
	uint8_t octets[UD_HEADER + UD_PD_REQ + 1] = { 0 };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct ud_header h = { .type = all[i].type, .src = 2, .dest = 3 }, got;
		const bool cm = h.type == UD_REQ || h.type == UD_REP;
		const size_t len = cm ? ud_cm_len(h.type, 0) : UD_HEADER;

		memset(octets, 0, sizeof octets);
		ud_put(&h, octets);
		cr_expect(ud_get(octets, len, &got));
		cr_expect_eq(got.src, 2);
		octets[all[i].at] = (uint8_t)all[i].value;
		cr_expect_eq(ud_get(octets, len, &got), all[i].fits, "%zu", i);
		cr_expect_not(ud_get(octets, UD_HEADER - 1, &got));
	}
	cr_expect_eq(ud_cm_len(UD_REQ, 0), UD_HEADER + UD_PD_REP);
	cr_expect_eq(ud_cm_len(UD_REQ, UD_PD_REQ), UD_HEADER + UD_PD_REQ);
	cr_expect_eq(ud_cm_len(UD_REP, 5), UD_HEADER + 5);
}
