/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strict mode on a RoCE device: the peer's Send has no receive.  An adapter has the sender try again, as
 * often as its queue pair says and at the distance that the receiver's says.  The wire carries neither,
 * so it is this side's queue pair that counts both.  Then the connection ends, in order: with no receive
 * to come, the peer is informed that there was none.
 */
#include "edge/ed.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vd_why.h"

#define LOOKS	 8 /* in the time that a Send may wait: it ends so much later at most */
#define LEAST_MS 5
#define MOST_MS	 250
#define FOR_EVER 7 /* rnr_retry */

/* IBA's table of 5 bits: 0.01 ms, and about half as much again with each; 0 stands for the last. */
static uint64_t read_rnr_timer_us(unsigned timer)
{
	if (!timer)
		timer = 32;
	return (timer % 2 ? UINT64_C(15) : UINT64_C(10)) << timer / 2;
}

static uint64_t get_rnr_limit_ms(const struct vd_qp *v)
{
	return (read_rnr_timer_us(v->said.min_rnr_timer) * v->said.rnr_retry + 999) / 1000;
}

static bool can_run_out(const struct vd_qp *v)
{
	return v->roce && v->ep && v->init.qp_type == IBV_QPT_RC &&
	       v->qp.qp_base.state == IBV_QPS_RTS && !v->closing && v->said.rnr_retry < FOR_EVER;
}

static uint64_t get_look_ms(const struct vd_qp *v)
{
	const uint64_t ms = get_rnr_limit_ms(v) / LOOKS;

	return ms < LEAST_MS ? LEAST_MS : ms > MOST_MS ? MOST_MS : ms;
}

/* Whether a Send waits, for as long as it may.  The process's lock is held. */
static bool has_run_out(struct ed_qp *q, const struct vd_qp *v, uint64_t now)
{
	struct ddps_ep_stats st = { .struct_size = sizeof st };
	uint64_t taken = 0;

	ddps_assert_held(&vd_process_of(q->qp->context)->lock);
	if (ddps_ep_stats(v->ep, &st))
		return false;
	for (unsigned op = 0; op < DDPS_STAT_OPS; op++)
		taken += st.received[op].segments;
	if (st.stalls != q->rnr.stalls) {
		q->rnr.stalls = st.stalls;
		q->rnr.taken = taken;
		q->rnr.since = now;
	}
	/* It has found its receive: more has come since, or nothing of the peer's is held now. */
	if (taken != q->rnr.taken || !st.held_octets)
		q->rnr.since = 0;
	return q->rnr.since && now - q->rnr.since >= get_rnr_limit_ms(v);
}

static void tell_run_out(struct vd_qp *v)
{
	struct ddps_conn_info info = { 0 };

	if (!ddps_ep_info(v->ep, &info) && vd_why_is_due(v, VD_WHY_ENDED))
		vd_why_say(v,
			   ", peer %s: a Send of the peer has no receive, and its tries are "
			   "over, so the connection ends",
			   info.peer);
}

uint64_t ed_rnr_due(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!ed.strict)
		return next;
	for (struct ed_qp *q = ed_qp_next(NULL); q; q = ed_qp_next(q)) {
		struct vd_qp *v = vd_of(q->qp, struct vd_qp, qp.qp_base);
		struct vd_process *p = vd_process_of(q->qp->context);

		ddps_lock(&p->lock);
		if (can_run_out(v) && has_run_out(q, v, now)) {
			tell_run_out(v);
			vd_qp_close(v);
		}
		if (can_run_out(v) && next > now + get_look_ms(v))
			next = now + get_look_ms(v);
		ddps_unlock(&p->lock);
	}
	return next;
}

void ed_rnr_begins(void)
{
	if (ed.strict)
		ed_clock_wake();
}
