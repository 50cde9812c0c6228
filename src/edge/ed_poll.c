/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions on their way to the program.  Those of one queue of a queue pair stay in order,
 * whatever a rule does to one of them; "reorder" changes the order among queues.
 */
#include "edge/ed.h"
#include <errno.h>
#include <stdlib.h>

#define BATCH 16

/* The vendor_err of a status that a rule has made: docs/faults.md. */
#define VENDOR_ERR 255

static unsigned get_wc_queue(const struct ibv_wc *wc)
{
	return wc->opcode & IBV_WC_RECV ? 1 : 0;
}

static bool same_queue(const struct ibv_wc *a, const struct ibv_wc *b)
{
	return a->qp_num == b->qp_num && get_wc_queue(a) == get_wc_queue(b);
}

/* ---- what is held back.  ed.lock is held in all of these. ---- */

/* Whether one of its queue is held before @until, which is in the list or NULL for all. */
static bool is_behind(const struct ed_cq *c, const struct ibv_wc *wc, const struct ed_held *until)
{
	const struct ed_held *h;

	ddps_assert_held(&ed.lock);
	STAILQ_FOREACH(h, &c->held, link)
		if (h == until)
			break;
		else if (same_queue(&h->wc, wc))
			return true;
	return false;
}

static bool is_ready(const struct ed_cq *c, const struct ed_held *h, uint64_t now)
{
	ddps_assert_held(&ed.lock);
	return h->due <= now && !is_behind(c, &h->wc, h);
}

/* Return: false, there is no memory: it is reported now. */
static bool hold_completion(struct ed_cq *c, const struct ibv_wc *wc, uint64_t due, bool swap)
{
	struct ed_held *h = calloc(1, sizeof *h);

	ddps_assert_held(&ed.lock);
	if (!h)
		return false;
	h->wc = *wc;
	h->stamp = __atomic_load_n(&vd_of(c->cq, struct vd_cq, cq)->stamp, __ATOMIC_RELAXED);
	h->due = due;
	h->swap = swap;
	STAILQ_INSERT_TAIL(&c->held, h, link);
	return true;
}

/* The program sees this one: those that waited for one of another queue follow. */
static void release_followers(const struct ibv_wc *wc)
{
	struct ed_held *h;
	struct ed_cq *c;

	LIST_FOREACH(c, &ed.cqs, link)
		STAILQ_FOREACH(h, &c->held, link)
			if (h->swap && !same_queue(&h->wc, wc))
				h->due = 0;
}

static int take_ready(struct ed_cq *c, int n, struct ibv_wc *wc)
{
	uint64_t now = ed_ms();
	int got = 0;

	ddps_assert_held(&ed.lock);
	for (struct ed_held *h = STAILQ_FIRST(&c->held); h && got < n;) {
		if (!is_ready(c, h, now)) {
			h = STAILQ_NEXT(h, link);
			continue;
		}
		wc[got] = h->wc;
		__atomic_store_n(&vd_of(c->cq, struct vd_cq, cq)->stamp, h->stamp,
				 __ATOMIC_RELAXED);
		release_followers(&wc[got++]);
		STAILQ_REMOVE(&c->held, h, ed_held, link);
		free(h);
		h = STAILQ_FIRST(&c->held); /* what was behind it may be ready */
	}
	return got;
}

/* One that is armed; @next: when something is due, if that is sooner. */
static void tell_cq_due(struct ed_cq *c, uint64_t now, uint64_t *next)
{
	const struct ed_held *h;

	STAILQ_FOREACH(h, &c->held, link) {
		if (is_ready(c, h, now)) {
			c->armed = false;
			vd_channel_tell(vd_of(c->cq, struct vd_cq, cq));
			return;
		}
		if (h->due > now && h->due < *next)
			*next = h->due;
	}
}

uint64_t ed_completions_due(uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct ed_cq *c;

	ddps_assert_held(&ed.lock);
	LIST_FOREACH(c, &ed.cqs, link)
		if (c->armed)
			tell_cq_due(c, now, &next);
	return next;
}

/* ---- new ones ---- */

/* Return: whether the program gets it now. */
static bool pass_completion(struct ed_cq *c, const struct ibv_wc *wc, const struct vf_rule *rule)
{
	uint64_t due = 0;
	bool later = false, swap = false, now;

	if (rule && rule->what == VF_LOSE)
		return false;
	if (rule && (rule->what == VF_DELAY || rule->what == VF_REORDER)) {
		later = true;
		swap = rule->what == VF_REORDER;
		due = ed_ms() + rule->ms;
	}
	ddps_lock(&ed.lock);
	now = !(later || is_behind(c, wc, NULL)) || !hold_completion(c, wc, due, swap);
	if (now)
		release_followers(wc);
	ddps_unlock(&ed.lock);
	return now;
}

static bool is_for_program(struct ed_cq *c, struct ibv_wc *wc)
{
	struct ed_qp *q = ed_qp_numbered(wc->qp_num);
	struct ed_subject s = { .qp = q, .cq = c->cq, .opcode = (int)wc->opcode };
	const struct vf_rule *rule = NULL;
	bool now = true;

	if (!q)
		return true;
	s.queue = get_wc_queue(wc);
	ed_depth_done(q, wc);
	if (ck_on())
		ck_completed(q, wc);
	if (s.queue)
		ed_moved(q, wc->byte_len);
	if (wc->status == IBV_WC_SUCCESS && !ed_is_mute(q))
		rule = ed_ask(VF_COMPLETION, &s);
	if (rule && rule->what == VF_STATUS) {
		wc->status = (enum ibv_wc_status)rule->value;
		wc->vendor_err = VENDOR_ERR;
	}
	ed_apply(rule, &s);
	now = !ed_is_mute(q) && pass_completion(c, wc, rule);
	/* A queue pair that has failed a request is in the error state. */
	if (rule && rule->what == VF_STATUS && rule->value != IBV_WC_SUCCESS)
		ed_break(q);
	ed_qp_done(q);
	return now;
}

static int poll_new(struct ed_cq *c, int n, struct ibv_wc *wc)
{
	struct ibv_wc got[BATCH];
	int all = 0, max, k;

	do {
		max = n - all < BATCH ? n - all : BATCH;
		k = vd_poll_cq(c->cq, max, got);
		if (k < 0)
			return -1;
		for (int i = 0; i < k; i++)
			if (is_for_program(c, &got[i]))
				wc[all++] = got[i];
	} while (k == max && all < n);
	return all;
}

int ed_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	const struct ed_subject s = { .cq = cq, .ctx = cq->context, .opcode = VF_NOT_SAID };
	int keep = errno, all, more = 0;
	struct ed_cq *c;

	all = ed_call(VF_ibv_poll_cq, &s);
	errno = keep;
	if (all)
		return -1;
	c = ed_cq_of(cq);
	if (!c)
		return vd_poll_cq(cq, n, wc);
	ddps_lock(&c->polls);
	ddps_lock(&ed.lock);
	c->polled = true;
	all = take_ready(c, n, wc);
	ddps_unlock(&ed.lock);
	if (all < n)
		more = poll_new(c, n - all, wc + all);
	all = more < 0 && !all ? -1 : all + (more > 0 ? more : 0);
	ddps_lock(&ed.lock);
	if (all >= 0 && all < n)
		all += take_ready(c, n - all, wc + all);
	ddps_unlock(&ed.lock);
	ddps_unlock(&c->polls);
	ed_cq_done(c);
	errno = keep;
	return all;
}

int ed_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct ed_subject s = { .cq = cq, .ctx = cq->context, .opcode = VF_NOT_SAID };
	int keep = errno, err = ed_call(VF_ibv_req_notify_cq, &s);
	struct ed_cq *c;

	errno = keep;
	if (!err)
		err = vd_req_notify_cq(cq, solicited_only);
	c = err ? NULL : ed_cq_of(cq);
	if (!c)
		return err;
	ddps_lock(&ed.lock);
	c->armed = true;
	ddps_unlock(&ed.lock);
	ed_cq_done(c);
	ed_clock_wake();
	errno = keep;
	return 0;
}
