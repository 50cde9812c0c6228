/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs for datagrams. */
#include "verbs/vud.h"
#include <string.h>

struct vd_ud_stats vud_stats(void)
{
	struct vd_ud *ud = ud_of_process();
	struct vd_ud_stats st;

	ddps_lock(&ud->lock);
	st = ud_stats_all(ud);
	ddps_unlock(&ud->lock);
	return st;
}

struct ibv_ah *vud_ah(struct vud *v, const char *ip)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	if (strchr(ip, ':')) {
		cr_assert_eq(inet_pton(AF_INET6, ip, attr.grh.dgid.raw), 1);
	} else {
		attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
		cr_assert_eq(inet_pton(AF_INET, ip, attr.grh.dgid.raw + 12), 1);
	}
	return ibv_create_ah(v->pd, &attr);
}

void vud_open(struct vud *v)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	v->srq = NULL;
	v->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	cr_assert_not_null(v->ctx);
	v->pd = ibv_alloc_pd(v->ctx);
	cr_assert_eq(ibv_query_gid(v->ctx, 1, 0, &attr.grh.dgid), 0);
	v->self = ibv_create_ah(v->pd, &attr);
	cr_assert(v->pd && v->self);
}

void vud_close(struct vud *v)
{
	cr_expect_eq(ibv_destroy_ah(v->self), 0);
	cr_expect_eq(ibv_dealloc_pd(v->pd), 0);
	cr_expect_eq(ibv_close_device(v->ctx), 0);
}

static struct ibv_qp *make_ex(struct vud *v, const struct vud_qp *q)
{
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = q->cq,
		.recv_cq = q->cq,
		.cap = { q->max_send, q->max_recv, 4, 4, 64 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = v->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM
	};

	return ibv_create_qp_ex(v->ctx, &ex);
}

void vud_make(struct vud *v, struct vud_qp *q, int type)
{
	struct ibv_cq_init_attr_ex cqx = {
		.cqe = 256, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
	};
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1 };

	memset(q, 0, sizeof *q);
	q->v = v;
	q->max_send = q->max_recv = 64;
	q->cc = ibv_create_comp_channel(v->ctx);
	cqx.channel = q->cc;
	if (type == VUD_EX) {
		q->cqx = ibv_create_cq_ex(v->ctx, &cqx);
		q->cq = ibv_cq_ex_to_cq(q->cqx);
		q->qp = make_ex(v, q);
	} else {
		q->cq = ibv_create_cq(v->ctx, 256, q, q->cc, 0);
		init.send_cq = init.recv_cq = q->cq;
		init.srq = v->srq;
		init.cap = (struct ibv_qp_cap){ q->max_send, q->max_recv, 4, 4, 64 };
		q->qp = ibv_create_qp(v->pd, &init);
	}
	cr_assert_not_null(q->qp, "%m");
	q->mr = ibv_reg_mr(v->pd, q->buf, sizeof q->buf, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(q->mr);
	q->key = q->mr->lkey;
}

void vud_move(struct vud_qp *q, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = VUD_QKEY };

	cr_assert_eq(ibv_modify_qp(q->qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		     0);
	for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= to; attr.qp_state++)
		cr_assert_eq(ibv_modify_qp(q->qp, &attr,
					   attr.qp_state == IBV_QPS_RTS
						   ? IBV_QP_STATE | IBV_QP_SQ_PSN
						   : IBV_QP_STATE),
			     0);
}

void vud_up(struct vud *v, struct vud_qp *q)
{
	vud_make(v, q, IBV_QPT_UD);
	vud_move(q, IBV_QPS_RTS);
}

void vud_down(struct vud_qp *q)
{
	cr_expect_eq(ibv_destroy_qp(q->qp), 0);
	cr_expect_eq(ibv_dereg_mr(q->mr), 0);
	cr_expect_eq(ibv_destroy_cq(q->cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(q->cc), 0);
}

void vud_event(struct vud_qp *q)
{
	struct ibv_cq *cq;
	void *user;

	cr_assert(vt_readable(q->cc->fd, VT_MS), "no completion came");
	cr_assert_eq(ibv_get_cq_event(q->cc, &cq, &user), 0);
	cr_assert_eq(cq, q->cq);
	ibv_ack_cq_events(cq, 1);
}

/* What came between the look and the arming is no news: so there is a second look. */
struct ibv_wc vud_wc(struct vud_qp *q)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(q->cq, 1, &wc)) {
		cr_assert_eq(ibv_req_notify_cq(q->cq, 0), 0);
		if (ibv_poll_cq(q->cq, 1, &wc))
			break;
		vud_event(q);
	}
	return wc;
}

void vud_recv(struct vud_qp *q, uint64_t wr_id, size_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)(q->buf + off), len, q->key };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(q->qp, &wr, &bad), 0);
}

struct ibv_send_wr vud_wr(const struct vud_qp *q, uint64_t wr_id, const struct vud_qp *to,
			  struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_SEND,
				  .sg_list = sge,
				  .num_sge = n,
				  .send_flags = IBV_SEND_SIGNALED };

	wr.wr.ud.ah = q->v->self;
	wr.wr.ud.remote_qpn = to->qp->qp_num;
	wr.wr.ud.remote_qkey = VUD_QKEY;
	return wr;
}

void vud_send(struct vud_qp *q, uint64_t wr_id, const struct vud_qp *to, uint32_t len,
	      unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)q->buf, len, q->key };
	struct ibv_send_wr wr = vud_wr(q, wr_id, to, &sge, 1), *bad;

	wr.send_flags |= flags;
	cr_assert_eq(ibv_post_send(q->qp, &wr, &bad), 0);
}
