/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_VOOB_H
#define DDPS_TEST_VOOB_H
/* Queue pairs that a program connects itself. */
#include "verbs/vt.h"
#include <string.h>

#define NOBODY 0xef0009 /* behind a port where nobody listens */

/* What InfiniBand wants for INIT, RTR and RTS of a reliable connection. */
#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                                     \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                                     \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_QP_RD_ATOMIC)

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char buf[256];
};

static inline int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC };

	return ibv_modify_qp(qp, &attr, TO_INIT);
}

static inline struct ibv_qp *make_oob_qp(const struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = s->cq,
					 .recv_cq = s->cq,
					 .qp_type = type,
					 .cap = { 4, 4, 2, 2, 64 },
					 .sq_sig_all = 1 };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	cr_assert_not_null(qp);
	cr_assert_eq(to_init(qp), 0);
	return qp;
}

/* All but a queue pair. */
static inline void up_device(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(s, 0, sizeof *s);
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 64, NULL, NULL, 0);
	s->mr = ibv_reg_mr(s->pd, s->buf, sizeof s->buf,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(s->cq && s->mr);
	cr_assert_eq(ibv_query_gid(s->ctx, 1, 0, &s->gid), 0);
}

static inline void open_oob_side(struct side *s)
{
	up_device(s);
	s->qp = make_oob_qp(s, IBV_QPT_RC);
}

static inline void close_oob_side(struct side *s)
{
	if (s->qp)
		cr_expect_eq(ibv_destroy_qp(s->qp), 0);
	cr_expect_eq(ibv_dereg_mr(s->mr), 0);
	cr_expect_eq(ibv_destroy_cq(s->cq), 0);
	cr_expect_eq(ibv_dealloc_pd(s->pd), 0);
	cr_expect_eq(ibv_close_device(s->ctx), 0);
}

static inline int move_oob_to_rtr(struct ibv_qp *qp, uint32_t number, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = number,
				    .path_mtu = IBV_MTU_1024,
				    .max_dest_rd_atomic = 4,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };

	attr.ah_attr.grh.dgid = *gid;
	return ibv_modify_qp(qp, &attr, TO_RTR);
}

static inline int move_oob_qp(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static inline int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4 };

	return ibv_modify_qp(qp, &attr, TO_RTS);
}

static inline void meet_oob_side(struct side *s, const struct side *other)
{
	cr_assert_eq(move_oob_to_rtr(s->qp, other->qp->qp_num, &other->gid), 0);
	cr_assert_eq(to_rts(s->qp), 0);
}

static inline int say_oob(struct side *s, const char *text, unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)strcpy(s->buf, text), (uint32_t)strlen(text) + 1,
			       s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = flags },
			   *bad;

	return ibv_post_send(s->qp, &wr, &bad);
}

static inline void listen_to(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, sizeof s->buf, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(s->qp, &wr, &bad), 0);
}

static inline struct ibv_wc await_oob_wc(const struct side *s)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct ibv_wc wc = { 0 };
	int n = 0;

	for (int i = 0; !n && i < VT_MS; i++) {
		n = ibv_poll_cq(s->cq, 1, &wc);
		if (!n)
			nanosleep(&pause, NULL);
	}
	cr_assert_eq(n, 1, "no completion came");
	return wc;
}

#endif
