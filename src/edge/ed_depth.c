/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How full an adapter's send queue would be.  A place there is free when the completion of its request
 * is fetched, or of one behind it; the drop-in's is free when the request is done.  What an error
 * leaves behind is flushed one by one, and nothing is counted until the queue pair begins anew.
 */
#include "edge/ed.h"
#include <stdlib.h>
#include <string.h>

static bool is_limited(const struct vp_device *d)
{
	return d && vp_limit(d, VP_MAX_QP_WR, UINT64_MAX) != UINT64_MAX;
}

bool ed_depth_wanted(void)
{
	for (unsigned i = 0; i < ed.profile.n; i++)
		if (is_limited(&ed.profile.device[i]))
			return true;
	return false;
}

void ed_depth_init(struct ed_qp *q, const struct vd_qp *v)
{
	struct ed_depth *d = &q->depth;

	d->enforced = ed.strict || is_limited(ed_device_of(q->qp->context->device));
	d->size = v->init.cap.max_send_wr;
	if ((d->enforced || ck_on()) && d->size)
		d->told = malloc(d->size);
}

bool ed_depth_take(struct ed_qp *q, bool told)
{
	struct ed_depth *d = &q->depth;
	bool full;

	if (!d->told)
		return true;
	ddps_lock(&ed.lock);
	full = d->used == d->size && !d->off;
	if (d->used < d->size)
		d->told[(d->head + d->used++) % d->size] = told;
	ddps_unlock(&ed.lock);
	return !full;
}

void ed_depth_undo(struct ed_qp *q)
{
	ddps_lock(&ed.lock);
	if (q->depth.used)
		q->depth.used--;
	ddps_unlock(&ed.lock);
}

void ed_depth_passed(struct ed_qp *q)
{
	bool first;

	ddps_lock(&ed.lock);
	first = !q->depth.off;
	q->depth.off = true; /* how many there are says nothing from here on */
	ddps_unlock(&ed.lock);
	if (first)
		ck_queue_full(q, q->depth.size);
}

void ed_depth_done(struct ed_qp *q, const struct ibv_wc *wc)
{
	struct ed_depth *d = &q->depth;
	bool last = false;

	if (wc->opcode & IBV_WC_RECV)
		return;
	ddps_lock(&ed.lock);
	d->off = d->off || wc->status != IBV_WC_SUCCESS;
	for (; d->used && !last && !d->off; d->used--) {
		last = d->told[d->head];
		d->head = (d->head + 1) % d->size;
	}
	ddps_unlock(&ed.lock);
}

void ed_depth_anew(struct ibv_qp *qp)
{
	struct ed_qp *q = ed_qp_of(qp);

	if (!q)
		return;
	ddps_lock(&ed.lock);
	q->depth.used = 0;
	q->depth.off = false;
	ddps_unlock(&ed.lock);
	memset(&q->rnr, 0, sizeof q->rnr); /* another endpoint counts anew */
	q->stalls = 0;
	ed_qp_done(q);
}
