/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions and queue pairs: what goes too early, what asks for too much, what is left. */
#include "edge/ck.h"
#include "edge/ed.h"
#include "verbs/ib/vd_qp.h"
#include <stdlib.h>

/* By address, since the keys of regions are no numbers to count on. */
struct ck_region {
	LIST_ENTRY(ck_region) link;
	const struct ibv_mr *mr;
	uint64_t addr;
	size_t len;
	uint32_t lkey;
	unsigned access;
	struct ck_trace made;
};

static LIST_HEAD(, ck_region) regions; /* the newest first; under ed.lock */

/* The last ones that went; under ed.lock, too. */
#define GONE 64u
static struct {
	uint32_t lkey;
	struct ck_trace at;
} gone[GONE];
static unsigned gone_count;

void ck_forget_regions(void)
{
	LIST_INIT(&regions);
	gone_count = 0;
}

void ck_registered(const struct ibv_mr *mr, unsigned access)
{
	struct ck_region *r = calloc(1, sizeof *r);

	if (!r)
		return;
	r->mr = mr;
	r->addr = (uintptr_t)mr->addr;
	r->len = mr->length;
	r->lkey = mr->lkey;
	r->access = access;
	ck_note(&r->made);
	ddps_lock(&ed.lock);
	LIST_INSERT_HEAD(&regions, r, link);
	ddps_unlock(&ed.lock);
}

/* ed.lock is held. */
static struct ck_region *find_check_region(const struct ibv_mr *mr)
{
	struct ck_region *r;

	ddps_assert_held(&ed.lock);
	LIST_FOREACH(r, &regions, link)
		if (r->mr == mr)
			break;
	return r;
}

void ck_reregistered(const struct ibv_mr *mr, unsigned access)
{
	struct ck_region *r;

	ddps_lock(&ed.lock);
	r = find_check_region(mr);
	if (r) {
		r->addr = (uintptr_t)mr->addr;
		r->len = mr->length;
		r->access = access;
	}
	ddps_unlock(&ed.lock);
}

void ck_deregistered(struct ck_region *r)
{
	struct ck_trace here;

	if (!r)
		return;
	ck_note(&here);
	ddps_lock(&ed.lock);
	LIST_REMOVE(r, link);
	gone[gone_count % GONE].lkey = r->lkey;
	gone[gone_count++ % GONE].at = here;
	ddps_unlock(&ed.lock);
	free(r);
}

bool ck_is_gone(uint32_t lkey, struct ck_trace *at)
{
	const struct ck_region *r;
	bool found = false;

	ddps_lock(&ed.lock);
	LIST_FOREACH(r, &regions, link)
		if (r->lkey == lkey)
			break;
	for (unsigned i = gone_count; !r && i && gone_count - i < GONE && !found; i--) {
		found = gone[(i - 1) % GONE].lkey == lkey;
		if (found)
			*at = gone[(i - 1) % GONE].at;
	}
	ddps_unlock(&ed.lock);
	return found;
}

bool ck_is_own(const struct ibv_sge *s)
{
	const unsigned peers =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
	const struct ck_region *r;
	bool own;

	ddps_lock(&ed.lock);
	LIST_FOREACH(r, &regions, link)
		if (r->lkey == s->lkey)
			break;
	own = r && !(r->access & peers) && s->addr >= r->addr && s->length <= r->len &&
	      s->addr - r->addr <= r->len - s->length;
	ddps_unlock(&ed.lock);
	return own;
}

/* ed.lock is held. */
static const struct ck_work *find_region_user(const struct ck_queue *q, uint32_t lkey)
{
	const struct ck_work *w;

	ddps_assert_held(&ed.lock);
	STAILQ_FOREACH(w, q, link)
		for (int i = 0; i < w->n; i++)
			if (w->sge[i].lkey == lkey)
				return w;
	return NULL;
}

bool ck_flushes(const struct ed_qp *q)
{
	return q->failed || q->qp->state == IBV_QPS_ERR ||
	       vd_of(q->qp, struct vd_qp, qp.qp_base)->closing;
}

static bool is_alive(const struct ed_qp *q)
{
	return (q->qp->state == IBV_QPS_RTS || q->qp->state == IBV_QPS_SQD) && !ck_flushes(q);
}

struct ck_region *ck_deregister(const struct ibv_mr *mr)
{
	struct ck_trace posted = { 0 };
	struct ck_region *r;
	unsigned number = 0;
	struct ed_qp *q;

	ddps_lock(&ed.lock);
	r = find_check_region(mr);
	for (unsigned i = 0; i < ED_BUCKETS && !number; i++)
		LIST_FOREACH(q, &ed.qps[i], link) {
			const struct ck_work *w = find_region_user(&q->sends, mr->lkey);

			w = w ? w : find_region_user(&q->recvs, mr->lkey);
			if (!w || !is_alive(q))
				continue;
			posted = w->posted;
			number = q->number;
			break;
		}
	ddps_unlock(&ed.lock);
	if (number)
		ck_report(CK_DEREG_PENDING, &posted,
			  "the region with key %#x goes while a request of queue pair %u uses it",
			  mr->lkey, number);
	return r;
}

void ck_qp_asked(const struct ibv_qp_cap *cap, bool srq)
{
	const struct ibv_qp_cap used = vd_cap_used(cap, srq);
	uint32_t sge =
		used.max_send_sge > used.max_recv_sge ? used.max_send_sge : used.max_recv_sge;

	if (cap->max_inline_data > CK_COMMON_INLINE)
		ck_report(CK_INLINE_SIZE, NULL,
			  "%u octets of inline data: not all adapters take more than %d",
			  cap->max_inline_data, CK_COMMON_INLINE);
	if (sge > CK_COMMON_SGE)
		ck_report(CK_SGE_COUNT, NULL,
			  "%u pieces in a request: not all adapters take more than %d", sge,
			  CK_COMMON_SGE);
}

/* ---- states, by InfiniBand's rules on either face ---- */

static const char *get_ck_state_name(enum ibv_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < sizeof names / sizeof *names ? names[state] : "an unknown state";
}

void ck_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct vd_process *p = vd_process_of(qp->context);
	const struct vd_qp *v = vd_of(qp, struct vd_qp, qp.qp_base);
	struct ed_qp *q = ed_qp_of(qp);
	enum ibv_qp_state now;
	const char *what;

	if (!q)
		return;
	ddps_lock(&p->lock);
	now = vd_rules_state(v);
	what = vd_rules_against(v, attr, mask);
	ddps_unlock(&p->lock);
	if (what)
		ck_report(CK_QP_STATE, NULL,
			  "ibv_modify_qp of queue pair %u from %s to %s with mask %#x: %s",
			  q->number, get_ck_state_name(now),
			  get_ck_state_name(mask & IBV_QP_STATE ? attr->qp_state : now),
			  (unsigned)mask, what);
	ed_qp_done(q);
}

void ck_post_state(const struct ed_qp *q, bool recv)
{
	const struct vd_qp *v = vd_of(q->qp, struct vd_qp, qp.qp_base);
	struct vd_process *p = vd_process_of(q->qp->context);
	enum ibv_qp_state now;
	bool ours;

	ddps_lock(&p->lock);
	now = vd_rules_state(v);
	ours = vd_rules_concern(v);
	ddps_unlock(&p->lock);
	if (now < (recv ? IBV_QPS_INIT : IBV_QPS_RTS) && ours)
		ck_report(CK_QP_STATE, NULL,
			  "%s on queue pair %u, which the program has left in %s",
			  recv ? "ibv_post_recv" : "ibv_post_send", q->number,
			  get_ck_state_name(now));
}

static bool was_polled(struct ibv_cq *cq)
{
	struct ed_cq *c = ed_cq_of(cq);
	bool polled = !c || c->polled;

	if (c)
		ed_cq_done(c);
	return polled;
}

void ck_unpolled(struct ibv_qp *qp)
{
	const struct vd_qp *v = vd_of(qp, struct vd_qp, qp.qp_base);
	int n = v->ep ? ddps_ep_unfetched(v->ep) : 0;

	if (n > 0 && !was_polled(qp->send_cq) && !was_polled(qp->recv_cq))
		ck_report(CK_NEVER_POLLED, NULL,
			  "the queue pair goes with %d completions that nobody has polled", n);
}

/* One report for each place that has made some that are left. */
void ck_left(void)
{
	struct ck_region *r;
	struct ed_qp *q;

	ddps_lock(&ed.lock);
	LIST_FOREACH(r, &regions, link)
		ck_report_at(CK_LEAK, &r->made, "a region of %zu octets is left, made at", r->len);
	for (unsigned i = 0; i < ED_BUCKETS; i++) {
		LIST_FOREACH(q, &ed.qps[i], link)
			ck_report_at(CK_LEAK, &q->made, "queue pair %u is left, made at",
				     q->number);
	}
	ddps_unlock(&ed.lock);
}
