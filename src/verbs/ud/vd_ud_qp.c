/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of type UD: life and states. */
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud_in.h"
#include "verbs/vd_secure.h"
#include <errno.h>
#include <stdlib.h>

/* ---- completions ---- */

/* The thread has an event to post, which takes a lock that is not held here. */
static void notify_ud_thread(struct vd_ud *ud)
{
	__atomic_store_n(&ud->news, true, __ATOMIC_SEQ_CST);
	ud_wake(ud);
}

void ud_complete(struct vd_ud_qp *u, struct ibv_cq *cq, struct ibv_wc *wc, bool solicited)
{
	ddps_assert_held(&u->ud->lock);
	if (ud_cq_push(vd_of(cq, struct vd_cq, cq), wc, solicited, u))
		return;
	u->stats.cq_full++;
	if (vd_why_is_due(u->qp, VD_WHY_CQ))
		vd_why_say(u->qp, ": a completion of a datagram is lost: its queue of %d is full",
			   cq->cqe);
	__atomic_store_n(&vd_of(cq, struct vd_cq, cq)->lost, true, __ATOMIC_SEQ_CST);
	u->lost = true;
	notify_ud_thread(u->ud);
}

/* ---- life ---- */

static int get_number(struct vd_ud_qp *u)
{
	struct vd_ud *ud = u->ud;
	unsigned high;
	int err = ud_sock_open(ud, &u->unicast.sock, &u->port);

	if (err)
		return err;
	ddps_lock(&ud->lock);
	high = UD_QPN_FIRST + ud->last_high++ % (UD_QPN_LAST - UD_QPN_FIRST + 1);
	u->qp->qp.qp_base.qp_num = high << 16 | u->port;
	LIST_INSERT_HEAD(&ud->qps, u, link);
	u->listed = true;
	err = ud_watch_new(ud, &u->unicast);
	ddps_unlock(&ud->lock);
	return err;
}

/* The largest of the device's ports: which one a queue pair uses makes no difference here. */
static size_t get_ud_mtu(struct ibv_context *ctx)
{
	struct vd_context *c = vd_of(ctx, struct vd_context, v.context);
	struct ibv_port_attr attr;
	size_t mtu = 0;

	for (unsigned i = 1; i <= vd_port_count(ctx); i++)
		if (!c->v.query_port(ctx, (uint8_t)i, &attr, sizeof attr) &&
		    (size_t)128 << attr.active_mtu > mtu)
			mtu = (size_t)128 << attr.active_mtu;
	return mtu < UD_MTU ? mtu : UD_MTU;
}

static struct vd_qp *make_qp(struct ibv_context *ctx, struct ibv_pd *pd,
			     const struct ibv_qp_init_attr *attr, const struct ibv_qp_cap *cap)
{
	struct vd_ud_qp *u = calloc(1, sizeof *u);
	struct vd_qp *qp = calloc(1, sizeof *qp);

	if (!u || !qp || (attr->srq && vd_async_keep(&qp->last_wqe))) {
		free(u);
		free(qp);
		return NULL;
	}
	qp->init = *attr;
	qp->init.cap = *cap;
	qp->ud = u;
	ddps_mutex_init(&qp->lock, DDPS_LOCK_QP);
	qp->qp.qp_base = (struct ibv_qp){ .context = ctx,
					  .qp_context = attr->qp_context,
					  .pd = pd,
					  .send_cq = attr->send_cq,
					  .recv_cq = attr->recv_cq,
					  .srq = attr->srq,
					  .state = IBV_QPS_RESET,
					  .qp_type = IBV_QPT_UD };
	u->qp = qp;
	STAILQ_INIT(&u->sq);
	u->mtu = get_ud_mtu(ctx);
	u->pd = vd_of(pd, struct vd_pd, pd)->d;
	u->unicast.qp = u;
	u->unicast.sock.fd = -1;
	return qp;
}

/* One lock for all who use the queues, who may take this one's first. */
static int use_queues(struct vd_ud_qp *u, const struct ibv_qp_init_attr *attr)
{
	struct vd_cq *scq = vd_of(attr->send_cq, struct vd_cq, cq),
		     *rcq = vd_of(attr->recv_cq, struct vd_cq, cq);
	int err = ud_cq_use(scq, u->ud);

	if (err)
		return err;
	err = ud_cq_use(rcq, u->ud);
	if (err)
		ud_cq_unuse(scq);
	return err;
}

struct vd_qp *vd_ud_qp_new(struct ibv_context *ctx, struct ibv_pd *pd,
			   struct ibv_qp_init_attr *attr)
{
	struct vd_ud *ud;
	struct ibv_qp_cap cap = attr->cap;
	struct vd_qp *qp;
	int err = vd_secure_refuse(VD_UNSECURED_UD);

	if (err) {
		errno = err;
		return NULL;
	}
	ud = ud_of_process();
	if (!ud)
		return NULL;
	err = !attr->send_cq || !attr->recv_cq ? EINVAL : vd_qp_grant(&cap, attr->srq);
	qp = err ? NULL : make_qp(ctx, pd, attr, &cap);
	if (!qp) {
		errno = err ? err : ENOMEM;
		return NULL;
	}
	qp->ud->ud = ud;
	err = use_queues(qp->ud, attr);
	if (err) {
		free(qp->last_wqe);
		free(qp->ud);
		free(qp);
		errno = err;
		return NULL;
	}
	__atomic_add_fetch(&vd_of(pd, struct vd_pd, pd)->users, 1, __ATOMIC_RELAXED);
	if (attr->srq)
		__atomic_add_fetch(&vd_of(attr->srq, struct vd_srq, srq)->ud_users, 1,
				   __ATOMIC_RELAXED);
	err = get_number(qp->ud);
	if (err) {
		vd_ud_qp_free(qp);
		errno = err;
		return NULL;
	}
	vd_wr_init(qp);
	attr->cap = cap;
	return qp;
}

void vd_ud_qp_free(struct vd_qp *qp)
{
	struct vd_ud_qp *u = qp->ud;
	struct ibv_qp *q = &qp->qp.qp_base;
	struct vd_cq *scq = vd_of(q->send_cq, struct vd_cq, cq),
		     *rcq = vd_of(q->recv_cq, struct vd_cq, cq);

	ddps_lock(&u->ud->lock);
	if (u->listed)
		LIST_REMOVE(u, link);
	ud_stats_add(&u->ud->stats, &u->stats);
	ud_drop_sends(u);
	while (!LIST_EMPTY(&u->groups))
		ud_group_free(u, LIST_FIRST(&u->groups));
	ud_sock_close(u->ud, &u->unicast.sock);
	ud_cq_forget(scq, u);
	ud_cq_forget(rcq, u);
	ddps_unlock(&u->ud->lock);
	ud_cq_unuse(scq);
	ud_cq_unuse(rcq);
	__atomic_sub_fetch(&vd_of(q->pd, struct vd_pd, pd)->users, 1, __ATOMIC_RELAXED);
	if (q->srq)
		__atomic_sub_fetch(&vd_of(q->srq, struct vd_srq, srq)->ud_users, 1,
				   __ATOMIC_RELAXED);
	free(u->rq);
	free(u->peers);
	free(u);
	vd_wr_fini(qp);
	pthread_mutex_destroy(&qp->lock.m);
	free(qp->last_wqe);
	free(qp);
}

/* ---- states ---- */

void ud_set_state(struct vd_ud_qp *u, enum ibv_qp_state state)
{
	const bool ends = state == IBV_QPS_ERR && ud_state(u) != IBV_QPS_ERR;

	ddps_assert_held(&u->ud->lock);
	u->qp->qp.qp_base.state = state;
	/* Where nothing is received, sockets are read anyway: what comes is dropped. */
	ud_watch(u, true);
	if (state == IBV_QPS_ERR) {
		ud_flush_sends(u);
		ud_flush_recvs(u);
	}
	if (ends && u->qp->qp.qp_base.srq) {
		u->last_wqe = true;
		notify_ud_thread(u->ud);
	}
}

/* As if it had just been made; what is in its sockets was for the one before. */
static void reset_ud_qp(struct vd_ud_qp *u)
{
	ud_drop_sends(u);
	u->rq_count = 0;
	ud_set_state(u, IBV_QPS_RESET);
	for (int before = -1; before != (int)u->stats.no_recv;) {
		before = (int)u->stats.no_recv;
		ud_readable(u, &u->unicast);
	}
	ud_cq_forget(vd_of(u->qp->qp.qp_base.send_cq, struct vd_cq, cq), u);
	ud_cq_forget(vd_of(u->qp->qp.qp_base.recv_cq, struct vd_cq, cq), u);
	u->qp->sends_told = u->qp->sends_fetched = u->qp->recvs_told = u->qp->recvs_fetched = 0;
}

/* Which states can follow, and what must be said then. */
static bool can_follow(enum ibv_qp_state now, enum ibv_qp_state to, int mask)
{
	const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

	switch (to) {
	case IBV_QPS_RESET:
	case IBV_QPS_ERR:
		return true;
	case IBV_QPS_INIT:
		return now == IBV_QPS_INIT || (now == IBV_QPS_RESET && (mask & init) == init);
	case IBV_QPS_RTR:
		return now == IBV_QPS_INIT;
	case IBV_QPS_RTS:
		return now == IBV_QPS_RTR || now == IBV_QPS_RTS || now == IBV_QPS_SQD ||
		       now == IBV_QPS_SQE;
	case IBV_QPS_SQD:
		return now == IBV_QPS_RTS || now == IBV_QPS_SQD;
	default:
		return false;
	}
}

static int move_ud_qp(struct vd_ud_qp *u, enum ibv_qp_state to, int mask)
{
	if (!can_follow(ud_state(u), to, mask))
		return EINVAL;
	if (to == IBV_QPS_RESET && u->qp->qp.qp_base.srq && vd_async_keep(&u->qp->last_wqe))
		return ENOMEM;
	if (to == IBV_QPS_RESET)
		reset_ud_qp(u);
	else
		ud_set_state(u, to);
	if (!STAILQ_EMPTY(&u->sq))
		ud_push(u, ud_now_ms());
	return 0;
}

int vd_ud_modify(struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct vd_ud_qp *u = qp->ud;
	int err = 0;

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	ddps_lock(&u->ud->lock);
	if (mask & IBV_QP_QKEY && !(mask & IBV_QP_STATE) && ud_state(u) == IBV_QPS_RESET)
		err = EINVAL;
	if (!err && mask & IBV_QP_STATE)
		err = move_ud_qp(u, attr->qp_state, mask);
	if (!err && mask & IBV_QP_QKEY)
		u->qkey = attr->qkey;
	ddps_unlock(&u->ud->lock);
	return err;
}

void vd_ud_qp_start(struct vd_qp *qp)
{
	ddps_lock(&qp->ud->ud->lock);
	qp->ud->qkey = qp->said.qkey = UD_QKEY_CM;
	ud_set_state(qp->ud, IBV_QPS_RTS);
	ddps_unlock(&qp->ud->ud->lock);
}
