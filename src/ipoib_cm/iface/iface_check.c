/* SPDX-License-Identifier: BSD-2-Clause */
/* What an interface says of its neighbours, nodes and queue pairs, counted anew: see ddps_ipoib_check(). */
#include "common/system/assert.h"
#include "ipoib_cm/iface/iface_in.h"

#ifdef DDPS_ASSERTS

#define CHECK_MAX 64 /* with more of them counting takes longer than a test has */

static bool is_in_tab(const struct ddps_tab *t, const struct ddps_tab_link *l)
{
	const struct ddps_tab_link *at = t->row[l->hash & t->mask];

	while (at && at != l)
		at = at->next;
	return at != NULL;
}

static void check_if_due(const struct ddps_dues *d, const struct ddps_due *e)
{
	ddps_assert(!e->place || (e->place <= d->n && d->heap[e->place] == e));
}

static void check_if_dues(const struct ddps_dues *d)
{
	for (uint32_t i = 2; i <= d->n; i++)
		ddps_assert(d->heap[i / 2]->at <= d->heap[i]->at);
}

static size_t count_queued(const struct ddps_ipoib_queue *q)
{
	size_t octets = 0;

	ddps_assert(q->n <= DDPS_IPOIB_IF_QUEUE);
	for (unsigned i = 0; i < q->n; i++)
		octets += q->pkt[i].len;
	return octets;
}

/* Return: the octets that wait for it. */
static size_t check_nbr(const struct ddps_ipoib_if *f, const struct ddps_ipoib_nbr *b)
{
	const bool lost = b->state == NBR_RESOLVING || b->state == NBR_FAILED;

	check_if_due(&f->nbr_dues, &b->due);
	ddps_assert(is_in_tab(&f->nbr_by_ip, &b->by_ip));
	ddps_assert(lost == !b->node);
	ddps_assert(!b->node || b->node->used);
	ddps_assert(!b->due.place == (b->state == NBR_PATH));
	ddps_assert(b->old ==
		    (b->state == NBR_REACHABLE || b->state == NBR_STALE || b->state == NBR_FAILED));
	ddps_assert(!b->queue.n || b->state == NBR_RESOLVING || b->state == NBR_PATH);
	return count_queued(&b->queue);
}

static size_t check_if_node(const struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n)
{
	unsigned refs = 0, live = 0;
	const struct ddps_ipoib_nbr *b;
	const struct ddps_ipoib_qp *qp;

	check_if_due(&f->node_dues, &n->due);
	ddps_assert(is_in_tab(&f->node_by_lladdr, &n->by_lladdr));
	ddps_assert(is_in_tab(&f->node_by_gid, &n->by_gid));
	LIST_FOREACH(b, &n->nbrs, of_node) {
		ddps_assert(b->node == n);
		refs++;
	}
	LIST_FOREACH(qp, &n->qps, of_node) {
		ddps_assert(qp->used && qp->node == n);
		live += !qp->stopped;
	}
	ddps_assert(n->refs == refs && n->live == live);
	ddps_assert(!n->unsettled);
	ddps_assert(n->idle == (!refs && !live));
	ddps_assert(n->held == (n->hold.n != 0));
	return count_queued(&n->hold);
}

static void check_if_qp(const struct ddps_ipoib_if *f, const struct ddps_ipoib_qp *qp)
{
	check_if_due(&f->qp_dues, &qp->due);
	ddps_assert(is_in_tab(&f->qp_by_qpn, &qp->by_qpn));
	ddps_assert(!qp->id || is_in_tab(&f->qp_by_id, &qp->by_id));

	ddps_assert(!qp->stopped || (!qp->up && !qp->due.place));
	ddps_assert(!qp->up || (qp->id && qp->node && qp->mtu));
}

/* The addresses that are not held, and when the next of them has something to do. */
static void check_claims(struct ddps_ipoib_if *f)
{
	const struct ddps_ipoib_claim *c;
	unsigned young = 0;
	const uint8_t *ip;
	bool v6;

	for (unsigned i = 0; i < DDPS_IPOIB_CLAIMS; i++) {
		c = ddps_ipoib_own_at(f, i, &v6, &ip);
		young += c && !c->held;
		ddps_assert(!c || !c->timed || f->own_due <= c->due);
	}
	ddps_assert(f->n_young == young);
}

void ddps_ipoib_check(struct ddps_ipoib_if *f)
{
	unsigned used = 0;
	size_t queued = 0;

	ddps_assert(f->n_nbr <= f->cfg.max_nbr && f->n_node <= f->cfg.max_peers &&
		    f->n_qp <= f->cfg.max_qps);
	ddps_assert(f->queued <= f->cfg.queue_octets);
	ddps_assert(SLIST_EMPTY(&f->unsettled) && SLIST_EMPTY(&f->qp_look));
	ddps_assert(!f->nbr_last || f->nbr_last->state != NBR_FREE);
	ddps_assert(!f->qp_last || f->qp_last->used);
	ddps_assert(!f->cfg.n_ip6 || f->cfg.n_ip6 == f->n_ip6);
	if (f->state == DDPS_IPOIB_IF_UP) {
		ddps_assert(f->ud_mtu >= f->cfg.me.min_mtu);
		check_claims(f);
	}
	if (f->n_nbr > CHECK_MAX || f->n_node > CHECK_MAX || f->n_qp > CHECK_MAX)
		return;
	for (unsigned i = 0; i < f->n_nbr; i++)
		queued += f->nbr[i].state != NBR_FREE ? check_nbr(f, &f->nbr[i]) : 0;
	for (unsigned i = 0; i < f->n_node; i++)
		queued += f->node[i].used ? check_if_node(f, &f->node[i]) : 0;
	for (unsigned i = 0; i < f->n_qp; i++) {
		if (f->qp[i].used)
			check_if_qp(f, &f->qp[i]);
		used += f->qp[i].used;
	}
	ddps_assert(queued == f->queued && used == f->n_qp_used);
	check_if_dues(&f->nbr_dues);
	check_if_dues(&f->node_dues);
	check_if_dues(&f->qp_dues);
}

#endif
