/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_modify_qp and ibv_query_qp: states and attributes of queue pairs. */
#include "verbs/ib/vd_memory.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud.h"
#include "verbs/cm/vd_oob.h"
#include "verbs/vd_why.h"
#include <errno.h>

int vd_qp_allow(struct vd_qp *qp, unsigned access)
{
	unsigned rights = DDPS_REMOTE_WRITE;

	if (qp->init.qp_type != IBV_QPT_UC)
		rights |= DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC;
	qp->allowed = vd_rights(access) & rights;
	qp->allowed_all = false;
	return vd_errno(ddps_ep_allow(qp->ep, qp->allowed));
}

#define MASK_KNOWN (((IBV_QP_DEST_QPN << 1) - 1) | IBV_QP_RATE_LIMIT)

/* Attributes of InfiniBand alone are ignored, where they ask for nothing that is not. */
static int check_attributes(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & ~MASK_KNOWN || mask & IBV_QP_CAP)
		return EOPNOTSUPP;
	if ((mask & IBV_QP_PORT && attr->port_num != 1) ||
	    (mask & IBV_QP_PKEY_INDEX && attr->pkey_index))
		return EINVAL;
	return 0;
}

/* Which states can follow.  A session has no way back to where it began. */
static int check_move(const struct vd_qp *qp, enum ibv_qp_state to)
{
	const enum ibv_qp_state now = qp->qp.qp_base.state;

	switch (to) {
	case IBV_QPS_RESET: /* an identifier's goes with its connection */
		return (qp->phase != VD_QP_IDLE || vd_oob_known(qp)) && (!qp->oob || qp->lent)
			       ? EOPNOTSUPP
			       : 0;
	case IBV_QPS_INIT:
		return now == IBV_QPS_RESET || now == IBV_QPS_INIT ? 0 : EINVAL;
	case IBV_QPS_RTR:
		return now == IBV_QPS_INIT ? 0 : EINVAL;
	case IBV_QPS_RTS:
		return now >= IBV_QPS_RTR && now <= IBV_QPS_SQD ? 0 : EINVAL;
	case IBV_QPS_SQD:
		return now == IBV_QPS_RTS || now == IBV_QPS_SQD ? 0 : EINVAL;
	case IBV_QPS_ERR:
		return 0;
	default:
		return EINVAL;
	}
}

static int set_error(struct vd_qp *qp)
{
	int err = ddps_abort(qp->ep);

	vd_qp_ended(qp);
	vd_oob_release(qp);
	return vd_errno(err);
}

/*
 * To begin anew: a session has no way back, so it is another endpoint, and what the old one left in
 * the queues is dropped.  The lock is held.
 */
static int reset_qp(struct vd_qp *qp)
{
	struct ibv_qp *ibqp = &qp->qp.qp_base;
	struct ddps_ep *old = qp->ep;
	int err = 0;

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	vd_drain_forget(qp);
	if (qp->phase != VD_QP_IDLE || vd_oob_known(qp) || qp->recvs_told) {
		ddps_lock(&qp->lock);
		err = vd_qp_make_ep(qp, &qp->ep);
		if (err)
			qp->ep = old;
		ddps_unlock(&qp->lock);
		if (err)
			return vd_errno(err);
		ddps_ep_free(old);
		ddps_ep_free(qp->tx);
		qp->tx = NULL;
		vd_await_polls(ibqp->send_cq);
		if (ibqp->recv_cq != ibqp->send_cq)
			vd_await_polls(ibqp->recv_cq);
		vd_async_forget(ibqp->context, ibqp);
		qp->phase = VD_QP_IDLE;
		qp->closing = false;
		if (!qp->allowed_all)
			ddps_ep_allow(qp->ep, qp->allowed);
	}
	vd_oob_reset(qp);
	ddps_lock(&qp->lock);
	qp->sends_told = qp->sends_fetched = qp->recvs_told = qp->recvs_fetched = 0;
	ddps_unlock(&qp->lock);
	ibqp->state = IBV_QPS_RESET;
	return 0;
}

/* On InfiniBand the program moves a queue pair of its own after the answer to its request; here it
 * has been moved with the connection. */
static bool is_there(const struct vd_qp *qp, enum ibv_qp_state to)
{
	return qp->lent && qp->phase == VD_QP_UP && vd_is_roce(qp->qp.qp_base.context) &&
	       (to == IBV_QPS_INIT || to == IBV_QPS_RTR || to == IBV_QPS_RTS);
}

/*
 * On iWARP it is the beginning of an orderly end.  On InfiniBand the send queue drains and all else goes
 * on, and so it is for queue pairs that only programs of InfiniBand connect.
 */
static int stop_sends(struct vd_qp *qp)
{
	if (!vd_is_roce(qp->qp.qp_base.context) && (!qp->oob || qp->lent))
		return vd_qp_close(qp);
	ddps_lock(&qp->lock);
	qp->qp.qp_base.state = IBV_QPS_SQD;
	ddps_unlock(&qp->lock);
	return 0;
}

static int resume_sends(struct vd_qp *qp)
{
	vd_drain_forget(qp);
	ddps_lock(&qp->lock);
	qp->qp.qp_base.state = IBV_QPS_RTS;
	if (!vd_later_waits(qp))
		vd_later_flush(qp);
	ddps_unlock(&qp->lock);
	return 0;
}

static int move_qp(struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int err = check_move(qp, attr->qp_state);

	if (qp->qp.qp_base.state == IBV_QPS_SQD && attr->qp_state == IBV_QPS_RTS)
		return resume_sends(qp);
	if (is_there(qp, attr->qp_state))
		return 0;
	if (err)
		return err;
	if (attr->qp_state == IBV_QPS_RESET && qp->oob && !qp->lent)
		return reset_qp(qp);
	if (attr->qp_state == IBV_QPS_ERR)
		return set_error(qp);
	if (attr->qp_state == IBV_QPS_SQD)
		return stop_sends(qp);
	if (qp->oob && !qp->lent)
		return vd_oob_modify(qp, attr, mask);
	if (qp->phase == VD_QP_IDLE)
		qp->qp.qp_base.state = attr->qp_state;
	return 0;
}

/* Keep what the program has said, so that it can be asked for. */
static void keep_said(struct ibv_qp_attr *said, const struct ibv_qp_attr *attr, int mask)
{
#define KEEP(flag, member)                                                                         \
	do {                                                                                       \
		if (mask & (flag))                                                                 \
			said->member = attr->member;                                               \
	} while (0)
	KEEP(IBV_QP_STATE, qp_state);
	KEEP(IBV_QP_PKEY_INDEX, pkey_index);
	KEEP(IBV_QP_QKEY, qkey);
	KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IBV_QP_AV, ah_attr);
	KEEP(IBV_QP_PATH_MTU, path_mtu);
	KEEP(IBV_QP_TIMEOUT, timeout);
	KEEP(IBV_QP_RETRY_CNT, retry_cnt);
	KEEP(IBV_QP_RNR_RETRY, rnr_retry);
	KEEP(IBV_QP_RQ_PSN, rq_psn);
	KEEP(IBV_QP_SQ_PSN, sq_psn);
	KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IBV_QP_DEST_QPN, dest_qp_num);
#undef KEEP
}

/* What TCP and SCTP need to send again what was lost.  An adapter may take four times the time, too. */
#define ANSWER_LEAST_MS 1000

void vd_qp_answer(struct vd_qp *qp)
{
	/* 4.096 us, doubled @timeout times, and that for each try (IBA C9-141) */
	const uint64_t ns = (UINT64_C(4096) << (qp->said.timeout & 31)) * (qp->said.retry_cnt + 1u);
	uint64_t ms = ns / 1000000;

	if (!vd_config()->strict || !qp->roce || qp->init.qp_type != IBV_QPT_RC || !qp->ep)
		return;
	ms = ms < ANSWER_LEAST_MS ? ANSWER_LEAST_MS : ms;
	ddps_ep_answer_within(qp->ep, qp->said.timeout ? (uint32_t)ms : 0);
}

/* The connection manager moves its queue pairs itself: programs may say so in addition. */
int vdi_ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct vd_process *p = vd_of(ibqp->context, struct vd_context, v.context)->p;
	struct vd_qp *qp = vd_of(ibqp, struct vd_qp, qp.qp_base);
	int err = check_attributes(attr, mask);
	const char *against;
	const bool tells = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify;

	if (err)
		return vd_refuse(err);
	if (!vd_mine(p))
		return vd_refuse(EINVAL); /* the parent's, from before a fork */
	ddps_lock(&p->lock);
	if (mask & IBV_QP_AV && qp->oob && !qp->lent)
		vd_why_no_way(qp, &attr->ah_attr);
	against = vd_rules_bind(qp) ? vd_rules_against(qp, attr, mask) : NULL;
	if (against)
		err = vd_rules_refuse(qp, "ibv_modify_qp", against);
	else if (tells && (mask & IBV_QP_STATE ? attr->qp_state : ibqp->state) == IBV_QPS_SQD)
		err = vd_drain_prepare(qp); /* what can fail comes before the move */
	if (!err && qp->ud)
		err = vd_ud_modify(qp, attr, mask);
	else if (!err && mask & IBV_QP_STATE)
		err = move_qp(qp, attr, mask);
	if (!err && tells && ibqp->state == IBV_QPS_SQD)
		vd_drain_tell(qp);
	if (!err && !qp->ud && mask & IBV_QP_ACCESS_FLAGS)
		err = vd_qp_allow(qp, (unsigned)attr->qp_access_flags);
	if (!err)
		keep_said(&qp->said, attr, mask);
	if (!err && mask & IBV_QP_MAX_QP_RD_ATOMIC)
		err = vd_oob_reads(qp);
	if (!err && mask & (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT))
		vd_qp_answer(qp);
	ddps_unlock(&p->lock);
	return err ? vd_refuse(err) : 0;
}

int vdi_ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		     struct ibv_qp_init_attr *init)
{
	struct vd_process *p = vd_of(ibqp->context, struct vd_context, v.context)->p;
	struct vd_qp *qp = vd_of(ibqp, struct vd_qp, qp.qp_base);
	struct ddps_conn_info info;

	(void)mask;
	ddps_lock(&p->lock);
	*attr = qp->said;
	attr->qp_state = ibqp->state;
	if (ibqp->state == IBV_QPS_RESET && !vd_is_roce(ibqp->context))
		attr->qp_state = IBV_QPS_INIT; /* drivers of RNICs have no other name for it */
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = vd_drains(qp);
	if (!attr->path_mtu)
		attr->path_mtu = IBV_MTU_1024;
	attr->cap = qp->init.cap;
	attr->port_num = 1;
	/* Where rdma_cm connects, they are the connection's. */
	if (!qp->ud && !vd_rules_concern(qp) && !ddps_ep_info(qp->ep, &info)) {
		attr->max_rd_atomic = (uint8_t)(info.ord > 255 ? 255 : info.ord);
		attr->max_dest_rd_atomic = (uint8_t)(info.ird > 255 ? 255 : info.ird);
	}
	*init = qp->init;
	ddps_unlock(&p->lock);
	return 0;
}
