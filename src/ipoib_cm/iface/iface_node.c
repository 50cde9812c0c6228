/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes of the link and the paths to them. */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

/* Whoever is seen at a new place is asked for so many times sooner than in doubt, each time after twice
 * as long. */
#define MOVED_ASKS 4u

static uint64_t hash_node_gid(const struct ddps_ipoib_if *f, const uint8_t *gid)
{
	return ddps_siphash(&f->key, gid, DDPS_IPOIB_GID_LEN);
}

/* [4755-3.3-8]: the flags are no part of it */
static uint64_t node_hash(const struct ddps_ipoib_if *f, const struct ddps_ipoib_lladdr *a)
{
	uint8_t key[sizeof(a->qpn) + DDPS_IPOIB_GID_LEN];

	memcpy(key, &a->qpn, sizeof(a->qpn));
	memcpy(key + sizeof(a->qpn), a->gid, DDPS_IPOIB_GID_LEN);
	return ddps_siphash(&f->key, key, sizeof(key));
}

static struct ddps_ipoib_node *node_find(struct ddps_ipoib_if *f, const struct ddps_ipoib_lladdr *a)
{
	struct ddps_ipoib_node *n;

	DDPS_TAB_EACH(&f->node_by_lladdr, node_hash(f, a), n, struct ddps_ipoib_node, by_lladdr)
		if (ddps_ipoib_lladdr_cmp(&n->lladdr, a) == 0)
			return n;
	return NULL;
}

/* ---- those that may be forgotten: without address, connection or anything to be done ---- */

static void put_free(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	LIST_INSERT_HEAD(&f->node_free, n, spare);
}

void ddps_ipoib_node_weigh(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	bool idle = n->used && !n->refs && !n->live && !n->unsettled;

	if (idle && !n->idle)
		LIST_INSERT_HEAD(&f->node_idle, n, spare);
	else if (!idle && n->idle)
		LIST_REMOVE(n, spare);
	n->idle = idle;
}

static void forget_node(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	struct ddps_ipoib_qp *qp;

	ddps_ipoib_link_close(&n->link, f->now);
	while ((qp = LIST_FIRST(&n->qps))) {
		ddps_ipoib_qp_stop(f, qp);
		ddps_ipoib_qp_orphan(qp);
	}
	ddps_ipoib_queue_drop(f, &n->hold, &f->stats.tx_unreachable);
	ddps_due_clear(&f->node_dues, &n->due);
	ddps_tab_del(&f->node_by_lladdr, &n->by_lladdr);
	ddps_tab_del(&f->node_by_gid, &n->by_gid);
	n->used = false;
	ddps_ipoib_node_weigh(f, n);
	if (!n->unsettled) /* else its slot is free when it is not on that list any more */
		put_free(f, n);
	ddps_ipoib_qp_collect(f);
}

void ddps_ipoib_node_settled(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	if (n->used)
		ddps_ipoib_node_weigh(f, n);
	else
		put_free(f, n);
}

static struct ddps_ipoib_node *node_slot(struct ddps_ipoib_if *f)
{
	struct ddps_ipoib_node *n;

	if (LIST_EMPTY(&f->node_free) && f->n_node < f->cfg.max_peers)
		return &f->node[f->n_node++];
	if (LIST_EMPTY(&f->node_free) && !LIST_EMPTY(&f->node_idle))
		forget_node(f, LIST_FIRST(&f->node_idle));
	n = LIST_FIRST(&f->node_free);
	if (n)
		LIST_REMOVE(n, spare);
	else
		f->stats.nbr_full++;
	return n;
}

struct ddps_ipoib_node *ddps_ipoib_node_get(struct ddps_ipoib_if *f,
					    const struct ddps_ipoib_lladdr *lladdr)
{
	struct ddps_ipoib_node *n = node_find(f, lladdr);

	if (n)
		return n;
	n = node_slot(f);
	if (!n)
		return NULL;
	memset(n, 0, sizeof(*n));
	n->used = true;
	n->subnet = f->subnet;
	n->due.at = DDPS_CM_NEVER;
	n->lladdr = *lladdr;
	ddps_tab_add(&f->node_by_lladdr, &n->by_lladdr, node_hash(f, lladdr));
	ddps_tab_add(&f->node_by_gid, &n->by_gid, hash_node_gid(f, lladdr->gid));
	ddps_ipoib_link_init(&n->link, &f->links, lladdr, 0, f->cfg.form);
	ddps_ipoib_node_flags(f, n, lladdr->flags);
	return n;
}

void ddps_ipoib_node_flags(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint8_t flags)
{
	uint8_t common = flags & f->cfg.me.addr.flags;

	n->lladdr.flags = flags;
	if (f->cfg.prefer_uc && common & DDPS_IPOIB_UC)
		common = DDPS_IPOIB_UC;
	n->link.remote.flags = common; /* the same peer anyway */
}

void ddps_ipoib_node_put(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	if (--n->refs == 0)
		forget_node(f, n);
}

void ddps_ipoib_node_clear(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_node; i++)
		if (f->node[i].used)
			forget_node(f, &f->node[i]);
	ddps_ipoib_conn_settle(f); /* no slot may be on the list when it is taken again */
	f->n_node = 0;
	LIST_INIT(&f->node_free);
}

static void resolve_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	n->path_tries++;
	n->subnet = f->subnet;
	n->asked_at = f->now;
	ddps_due_set(&f->node_dues, &n->due, f->now + f->cfg.retry_ns);
	f->stats.tx_failed += f->port->ops->resolve(f->port, n->lladdr.gid) != 0;
}

void ddps_ipoib_node_ask_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	if (n->due.at != DDPS_CM_NEVER) /* asked already */
		return;
	n->path_tries = 0;
	resolve_path(f, n);
}

/* Asks for its path again, but not before @at.  Return: whether that was to be done. */
static bool reask_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint64_t at)
{
	const bool waits = n->due.at != DDPS_CM_NEVER;

	if (!n->has_path || (waits && (n->path_tries || n->due.at <= at)))
		return false;
	n->path_tries = 0;
	if (at > f->now)
		ddps_due_set(&f->node_dues, &n->due, at);
	else
		resolve_path(f, n);
	return true;
}

void ddps_ipoib_node_doubt(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	reask_path(f, n, n->asked_at + f->cfg.retry_ns);
}

/*
 * What is seen at a new place has moved, and what goes by the old way is lost until that is known, which
 * the administration may know later.  Seen there on and on, it may as well be another LID of a port
 * that has several.
 */
void ddps_ipoib_node_seen_at(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, uint16_t lid)
{
	if (!lid || !n->path.dlid || lid == n->path.dlid)
		return;
	if (n->elsewhere != lid)
		n->seen_asks = 0;
	n->elsewhere = lid;
	if (reask_path(f, n, n->asked_at + (f->cfg.retry_ns >> (MOVED_ASKS - n->seen_asks))) &&
	    n->seen_asks < MOVED_ASKS)
		n->seen_asks++;
}

void ddps_ipoib_node_seen(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	if (n->lladdr.qpn == f->from_qpn)
		ddps_ipoib_node_seen_at(f, n, f->from_lid);
}

/* One that there was stays: whether it still leads there, the neighbours' probes show. */
static void path_lost(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	ddps_due_set(&f->node_dues, &n->due, DDPS_CM_NEVER);
	if (!n->has_path)
		ddps_ipoib_nbr_path(f, n);
}

/* Token and rate do not matter to what goes that way already. */
static bool is_same_path(const struct ddps_ipoib_path *a, const struct ddps_ipoib_path *b)
{
	return (a->dlid ? a->dlid == b->dlid : a->addr == b->addr) && a->slid == b->slid &&
	       a->sl == b->sl && a->mtu == b->mtu && a->traffic_class == b->traffic_class &&
	       a->flow_label == b->flow_label && a->hop_limit == b->hop_limit;
}

static void path_found(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n,
		       const struct ddps_ipoib_path *path)
{
	const bool moved = n->has_path && !is_same_path(&n->path, path);

	n->path = *path;
	n->link.addr = path->addr;
	n->has_path = true;
	ddps_due_set(&f->node_dues, &n->due, DDPS_CM_NEVER);
	if (moved)
		ddps_ipoib_conn_moved(f, n);
	ddps_ipoib_nbr_path(f, n);
}

void ddps_ipoib_node_path(struct ddps_ipoib_if *f, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			  const struct ddps_ipoib_path *path)
{
	uint64_t hash = hash_node_gid(f, gid);
	struct ddps_tab_link *l = ddps_tab_first(&f->node_by_gid, hash), *next;

	for (; l; l = next) {
		struct ddps_ipoib_node *n =
			(void *)((char *)l - offsetof(struct ddps_ipoib_node, by_gid));

		next = ddps_tab_like(l->next, hash); /* @n may be forgotten, no other */
		if (memcmp(n->lladdr.gid, gid, sizeof(n->lladdr.gid)) != 0)
			continue;
		if (path)
			path_found(f, n, path);
		else if (n->due.at != DDPS_CM_NEVER)
			path_lost(f, n);
	}
}

void ddps_ipoib_node_tick(struct ddps_ipoib_if *f)
{
	struct ddps_due *due;

	while ((due = ddps_dues_ready(&f->node_dues, f->now))) {
		struct ddps_ipoib_node *n =
			(void *)((char *)due - offsetof(struct ddps_ipoib_node, due));

		if (n->path_tries >= f->cfg.tries)
			path_lost(f, n);
		else
			resolve_path(f, n);
	}
}

uint64_t ddps_ipoib_node_deadline(const struct ddps_ipoib_if *f)
{
	return ddps_dues_first(&f->node_dues);
}
