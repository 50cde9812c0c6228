/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to send that wait: for the session of a queue pair that its program connects, and in SQD.
 * In SQD those posted before go on until they are done; who has asked for it is informed then.
 */
#include "verbs/ib/vd_qp.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_STEP_NS 1000000

struct vd_later {
	STAILQ_ENTRY(vd_later) link;
	struct ibv_send_wr wr;
	struct ibv_sge sge[VD_MAX_SGE];
	uint8_t data[VD_MAX_INLINE];
};

static uint64_t count_under_way(const struct vd_qp *qp)
{
	struct ddps_ep_stats st = { .struct_size = sizeof st };

	return ddps_ep_stats(vd_tx(qp), &st) ? 0 : st.sends_posted;
}

static int keep_wr(struct vd_qp *qp, const struct ibv_send_wr *wr)
{
	const enum ibv_qp_state state = qp->qp.qp_base.state;
	struct ddps_send_wr to = { 0 };
	struct vd_later *l;
	size_t len = 0;
	int err;

	/* Once the session is up iWARP knows no difference between RTR and RTS; the program cannot
	 * know whether it is up yet. */
	if (state < IBV_QPS_RTR || state > IBV_QPS_SQD)
		return EINVAL;
	err = vd_check_send(qp, wr, &to);
	if (err)
		return err;
	if (qp->nlater + count_under_way(qp) >= qp->init.cap.max_send_wr)
		return ENOMEM;
	l = calloc(1, sizeof *l);
	if (!l)
		return ENOMEM;
	l->wr = *wr;
	l->wr.next = NULL;
	l->wr.sg_list = l->sge;
	if (wr->num_sge)
		memcpy(l->sge, wr->sg_list, (size_t)wr->num_sge * sizeof *l->sge);
	for (int i = 0; wr->send_flags & IBV_SEND_INLINE && i < wr->num_sge; i++) {
		if (!l->sge[i].length)
			continue;
		memcpy(l->data + len, (const void *)(uintptr_t)l->sge[i].addr, l->sge[i].length);
		l->sge[i].addr = (uintptr_t)(l->data + len);
		len += l->sge[i].length;
	}
	STAILQ_INSERT_TAIL(&qp->later, l, link);
	qp->nlater++;
	return 0;
}

bool vd_later_waits(const struct vd_qp *qp)
{
	ddps_assert_held(&qp->lock);
	return qp->qp.qp_base.state == IBV_QPS_SQD ||
	       (qp->oob && !qp->lent && qp->phase == VD_QP_IDLE);
}

int vd_later_keep(struct vd_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = 0;

	ddps_assert_held(&qp->lock);
	for (; wr && !err; wr = wr->next) {
		err = vd_take_place(qp, wr);
		if (!err && (err = keep_wr(qp, wr)))
			vd_leave_place(qp, wr);
		if (err)
			*bad = wr;
	}
	return err;
}

void vd_later_flush(struct vd_qp *qp)
{
	struct vd_later *l;
	bool ended = false;

	ddps_assert_held(&qp->lock);
	while ((l = STAILQ_FIRST(&qp->later))) {
		STAILQ_REMOVE_HEAD(&qp->later, link);
		qp->nlater--;
		/* What was taken has a completion: where one cannot go, as a Read with an ORD of 0, the
		 * connection ends, and it comes back flushed with all behind it. */
		if (vd_post_one(qp, &l->wr, !STAILQ_EMPTY(&qp->later)) && !ended) {
			ended = true;
			ddps_abort(vd_tx(qp));
			(void)vd_post_one(qp, &l->wr, !STAILQ_EMPTY(&qp->later));
		}
		free(l);
	}
}

void vd_later_drop(struct vd_qp *qp)
{
	struct vd_later *l;

	while ((l = STAILQ_FIRST(&qp->later))) {
		STAILQ_REMOVE_HEAD(&qp->later, link);
		free(l);
	}
	qp->nlater = 0;
}

/* ---- SQD ---- */

bool vd_drains(const struct vd_qp *qp)
{
	return qp->qp.qp_base.state == IBV_QPS_SQD && !qp->ud && count_under_way(qp);
}

/* Report those that have.  The lock is held. */
static void look_at_draining(struct vd_process *p)
{
	struct vd_qp *next;

	ddps_assert_held(&p->lock);
	for (struct vd_qp *qp = LIST_FIRST(&p->draining); qp; qp = next) {
		next = LIST_NEXT(qp, drain_link);
		if (vd_drains(qp))
			continue;
		vd_drain_forget(qp);
		vd_async_tell(qp->qp.qp_base.context, IBV_EVENT_SQ_DRAINED, &qp->qp.qp_base,
			      &qp->drained);
	}
}

/* Requests may be done in the program's own calls, so nothing else wakes a thread then. */
static void *watch_draining(void *arg)
{
	static const struct timespec step = { .tv_nsec = DRAIN_STEP_NS };
	struct vd_process *p = arg;
	bool more = true;

	while (more) {
		nanosleep(&step, NULL);
		ddps_lock(&p->lock);
		if (vd_mine(p))
			look_at_draining(p);
		while (!vd_mine(p) && !LIST_EMPTY(&p->draining))
			vd_drain_forget(LIST_FIRST(&p->draining));
		more = p->drain_watch = !LIST_EMPTY(&p->draining);
		ddps_unlock(&p->lock);
	}
	return NULL;
}

int vd_drain_prepare(struct vd_qp *qp)
{
	struct vd_process *p = vd_process_of(qp->qp.qp_base.context);
	int err = vd_async_keep(&qp->drained);

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	if (err || p->drain_watch)
		return err;
	err = vd_thread(watch_draining,
			p); /* it looks when the lock is free; without work it ends */
	p->drain_watch = !err;
	return err;
}

void vd_drain_tell(struct vd_qp *qp)
{
	struct vd_process *p = vd_process_of(qp->qp.qp_base.context);

	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	vd_drain_forget(qp);
	LIST_INSERT_HEAD(&p->draining, qp, drain_link);
	qp->drains = true;
	look_at_draining(p);
}

void vd_drain_forget(struct vd_qp *qp)
{
	ddps_assert_held(&vd_process_of(qp->qp.qp_base.context)->lock);
	if (qp->drains)
		LIST_REMOVE(qp, drain_link);
	qp->drains = false;
}
