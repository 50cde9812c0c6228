/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: endpoints of the library, numbered. */
#include "verbs/cm/vd_event.h"
#include "verbs/ib/vd_flush.h"
#include "verbs/ib/vd_memory.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud.h"
#include "verbs/cm/vd_oob.h"
#include "verbs/vd_strict.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOSE_SECONDS 1

/* What is granted is never less than what was asked for, and said: ibv_create_qp(3). */
int vd_qp_grant(struct ibv_qp_cap *cap, bool srq)
{
	*cap = vd_cap_used(cap, srq);
	if (cap->max_send_wr > VD_MAX_WR || cap->max_recv_wr > VD_MAX_WR ||
	    cap->max_send_sge > VD_MAX_SGE || cap->max_recv_sge > VD_MAX_SGE ||
	    cap->max_inline_data > VD_MAX_INLINE)
		return EINVAL;
	cap->max_send_wr += !cap->max_send_wr;
	cap->max_recv_wr += !srq && !cap->max_recv_wr;
	cap->max_send_sge += !cap->max_send_sge;
	cap->max_recv_sge += !srq && !cap->max_recv_sge;
	cap->max_inline_data = VD_MAX_INLINE;
	return 0;
}

static int make_inline(struct vd_qp *qp, struct ddps_pd *pd)
{
	size_t len = ((size_t)qp->init.cap.max_send_wr + 1) * VD_MAX_INLINE;

	qp->inl = vd_pd_alloc(qp->qp.qp_base.pd, len, &qp->inl_own);
	if (!qp->inl)
		return DDPS_E_NOMEM;
	return ddps_mr_reg(pd, qp->inl, len, 0, NULL, &qp->inl_mr);
}

int vd_qp_make_ep(struct vd_qp *qp, struct ddps_ep **ep)
{
	const struct ibv_qp_init_attr *in = &qp->init;
	struct vd_process *p = vd_process_of(qp->qp.qp_base.context);
	struct ddps_pd *pd = vd_of(qp->qp.qp_base.pd, struct vd_pd, pd)->d;
	struct ddps_ep_attr attr;

	if ((in->srq && vd_async_keep(&qp->last_wqe)) || vd_async_keep(&qp->fatal))
		return DDPS_E_NOMEM;
	ddps_ep_attr_init(&attr);
	attr.pd = pd;
	attr.send_cq = vd_of(in->send_cq, struct vd_cq, cq)->d;
	attr.recv_cq = vd_of(in->recv_cq, struct vd_cq, cq)->d;
	attr.sq_depth = in->cap.max_send_wr;
	attr.rq_depth = in->cap.max_recv_wr;
	attr.max_sge = in->cap.max_send_sge > in->cap.max_recv_sge ? in->cap.max_send_sge
								   : in->cap.max_recv_sge;
	attr.user = qp;
	attr.rfc7306 = attr.send_imm = attr.flush = vd_has_rfc7306(qp->qp.qp_base.context);
	attr.no_recv = vd_config()->no_wait || (vd_config()->strict && !qp->roce)
			       ? DDPS_NO_RECV_TERMINATE
			       : DDPS_NO_RECV_STALL;
	attr.flush_late = true;
	if (in->srq) { /* no queue pair is kept from any of them: there is no such rule in verbs */
		attr.srq = vd_of(in->srq, struct vd_srq, srq)->d;
		attr.srq_share = vd_of(in->srq, struct vd_srq, srq)->attr.max_wr;
	}
	return ddps_ep_new(p->ctx, &attr, ep);
}

int vd_qp_double(struct vd_qp *qp)
{
	return vd_errno(vd_qp_make_ep(qp, &qp->tx));
}

static void free_qp(struct vd_qp *qp)
{
	ddps_ep_free(qp->ep);
	ddps_ep_free(qp->tx);
	ddps_mr_dereg(qp->inl_mr);
	vd_pd_free(qp->qp.qp_base.pd, qp->inl, qp->inl_own);
	vd_wr_fini(qp);
	vd_later_drop(qp);
	free(qp->drained);
	free(qp->last_wqe);
	free(qp->fatal);
	free(qp);
}

static unsigned all_access(const struct ibv_context *ctx, enum ibv_qp_type type)
{
	unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	if (type == IBV_QPT_UC)
		return all;
	return all | IBV_ACCESS_REMOTE_READ | (vd_has_rfc7306(ctx) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* Nothing says of a UC queue pair's requests that the peer has them.  On a RoCE device all complete then.  On an iWARP
 * one only Writes do: a program of iWARP may send what the peer has no receive for yet, and its Sends complete. */
static enum vd_placed choose_placed(enum ibv_qp_type type, bool roce)
{
	const enum vd_placed said = vd_config()->placed;

	if (type == IBV_QPT_UC)
		return VD_PLACED_NONE;
	return said != VD_PLACED_FACE ? said : roce ? VD_PLACED_ALL : VD_PLACED_WRITES;
}

struct vd_qp *vd_qp_new(struct ibv_context *ctx, struct ibv_pd *ibpd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_cap cap = attr->cap;
	bool known = attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_UC;
	struct vd_qp *qp;
	int err;

	if (attr->qp_type == IBV_QPT_UD)
		return vd_ud_qp_new(ctx, ibpd, attr);
	if (!known || !attr->send_cq || !attr->recv_cq) {
		errno = known ? EINVAL : EOPNOTSUPP;
		return NULL;
	}
	err = vd_qp_grant(&cap, attr->srq);
	qp = err ? NULL : calloc(1, sizeof *qp);
	if (!qp) {
		errno = err ? err : ENOMEM;
		return NULL;
	}
	qp->init = *attr;
	qp->init.cap = cap;
	qp->roce = vd_is_roce(ctx);
	qp->placed = choose_placed(attr->qp_type, qp->roce);
	qp->allowed_all = true; /* until the program says what */
	qp->said.qp_access_flags = all_access(ctx, attr->qp_type);
	STAILQ_INIT(&qp->later);
	ddps_mutex_init(&qp->lock, DDPS_LOCK_QP);
	qp->qp.qp_base = (struct ibv_qp){ .context = ctx,
					  .qp_context = attr->qp_context,
					  .pd = ibpd,
					  .send_cq = attr->send_cq,
					  .recv_cq = attr->recv_cq,
					  .srq = attr->srq,
					  .qp_num = vd_number(),
					  .state = IBV_QPS_RESET,
					  .qp_type = attr->qp_type };
	err = make_inline(qp, vd_of(ibpd, struct vd_pd, pd)->d);
	if (!err)
		err = vd_qp_make_ep(qp, &qp->ep);
	if (err) {
		free_qp(qp);
		errno = vd_errno(err);
		return NULL;
	}
	if (attr->qp_type == IBV_QPT_UC) /* a session like others, but for Reads and atomics */
		vd_qp_allow(qp, IBV_ACCESS_REMOTE_WRITE);
	vd_wr_init(qp);
	attr->cap = cap;
	return qp;
}

/* One that belongs to no identifier of rdma_cm. */
static struct ibv_qp *new_alone(struct ibv_context *ctx, struct ibv_pd *pd,
				struct ibv_qp_init_attr *attr)
{
	struct vd_qp *qp = vd_qp_new(ctx, pd, attr);
	int err;

	if (!qp)
		return NULL;
	err = qp->ud ? 0 : vd_oob_new(qp);
	if (!err)
		return &qp->qp.qp_base;
	free_qp(qp);
	errno = err;
	return NULL;
}

struct ibv_qp *vdi_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return new_alone(pd->context, pd, attr);
}

#define EX_KNOWN                                                                                   \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS)
#define OPS_UC                                                                                     \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV |              \
	 IBV_QP_EX_WITH_BIND_MW)
#define OPS_UC_7306 (IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_RC	    (OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_RC_7306                                                                                \
	(OPS_UC_7306 | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |   \
	 VD_QP_EX_WITH_FLUSH | VD_QP_EX_WITH_ATOMIC_WRITE)

static uint64_t send_ops(const struct ibv_context *ctx, enum ibv_qp_type type)
{
	bool more = vd_has_rfc7306(ctx);

	if (type == IBV_QPT_UD)
		return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	if (type == IBV_QPT_UC)
		return OPS_UC | (more ? OPS_UC_7306 : 0);
	return OPS_RC | (more ? OPS_RC_7306 : 0);
}

struct ibv_qp *vd_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *ex)
{
	/* The extended form begins like the plain one. */
	struct ibv_qp_init_attr attr;
	struct ibv_qp *qp;

	memcpy(&attr, ex, sizeof attr);
	if (ex->comp_mask & ~(uint32_t)EX_KNOWN || !(ex->comp_mask & IBV_QP_INIT_ATTR_PD) ||
	    (ex->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && ex->create_flags) ||
	    (ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	     ex->send_ops_flags & ~send_ops(ctx, ex->qp_type))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = new_alone(ctx, ex->pd, &attr);
	if (qp)
		ex->cap = attr.cap;
	return qp;
}

/*
 * A session whose end has begun gets a moment to reach it: to free it now would be an abort, which
 * takes from the peer what was sent last.  The lock is held.
 */
static void await_session_end(struct vd_process *p, struct vd_qp *qp)
{
	struct timespec until;

	ddps_assert_held(&p->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CLOSE_SECONDS;
	while (qp->closing && qp->phase == VD_QP_UP && vd_mine_quick(p))
		if (pthread_cond_clockwait(&p->ended, &p->lock.m, CLOCK_MONOTONIC, &until))
			return;
}

/*
 * Its queue pair has gone.  As with an adapter, somebody else who waits for the end of the connection is informed
 * of it; and who waits for the beginning learns that there will be none [rdma_get_cm_event(3)].
 */
static void tell_without_qp(struct vd_process *p, struct vd_id *id)
{
	ddps_assert_held(&p->lock);
	if (vd_ud_id(id)) /* there is no connection */
		return;
	if (id->state == VD_ID_UP) {
		vd_down(p, id, true);
	} else if (id->state == VD_ID_CONNECTING || id->state == VD_ID_ACCEPTING) {
		id->state = VD_ID_DOWN;
		vd_event_tell(id, &id->answer, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNABORTED, NULL);
	}
}

int vdi_ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct vd_qp *qp = vd_of(ibqp, struct vd_qp, qp.qp_base);
	struct vd_process *p = vd_process_of(ibqp->context);

	if (!vd_mine(p))
		return vd_refuse(EINVAL); /* the parent's, from before a fork */
	ddps_lock(&p->lock);
	vd_drain_forget(qp);
	/* A program that has acknowledged all events may not count on another one: Gloo does not. */
	if (qp->ep)
		ddps_ep_mute(qp->ep, DDPS_MUTE_SENDS | DDPS_MUTE_RECVS);
	if (qp->tx)
		ddps_ep_mute(qp->tx, DDPS_MUTE_SENDS | DDPS_MUTE_RECVS);
	if (qp->oob && qp->phase == VD_QP_UP)
		vd_qp_close(qp); /* nobody else would: such programs have no call for it */
	await_session_end(p, qp);
	if (qp->id)
		vd_held_release(p, qp->id);
	ddps_ep_free(qp->ep); /* nothing is reported of it from here on */
	ddps_ep_free(qp->tx);
	qp->ep = qp->tx = NULL;
	if (qp->id)
		tell_without_qp(p, qp->id);
	vd_await_polls(ibqp->send_cq);
	if (ibqp->recv_cq != ibqp->send_cq)
		vd_await_polls(ibqp->recv_cq);
	vd_oob_free(qp);
	vd_async_forget(ibqp->context, ibqp);
	if (qp->id) {
		qp->id->qp = NULL;
		qp->id->id.qp = NULL;
	}
	if (qp->ud)
		vd_ud_qp_free(qp);
	else
		free_qp(qp);
	ddps_unlock(&p->lock);
	return 0;
}

void vd_qp_ended(struct vd_qp *qp)
{
	struct vd_process *p = vd_process_of(qp->qp.qp_base.context);
	bool again = qp->phase == VD_QP_ERROR;

	vd_drain_forget(qp);
	ddps_lock(&qp->lock);
	vd_later_flush(qp);
	qp->phase = VD_QP_ERROR;
	qp->qp.qp_base.state = IBV_QPS_ERR;
	ddps_unlock(&qp->lock);
	if (qp->tx) { /* where one end of it is gone, so is the other */
		ddps_abort(qp->ep);
		ddps_abort(qp->tx);
	}
	/* It takes no receive of the shared queue any more, and has completed what it took. */
	if (qp->init.srq && !again)
		vd_async_tell(qp->qp.qp_base.context, IBV_EVENT_QP_LAST_WQE_REACHED,
			      &qp->qp.qp_base, &qp->last_wqe);
	pthread_cond_broadcast(&p->ended);
}

int vd_qp_close(struct vd_qp *qp)
{
	int err = ddps_disconnect(vd_tx(qp));

	if (!err)
		qp->closing = true;
	return vd_errno(err);
}

VD_API int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 1; /* octets are placed in ascending order */
}
