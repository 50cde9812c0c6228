/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes of the link and the paths to them. */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"

static struct ddps_ipoib_node *node_find(struct ddps_ipoib_if *f, const struct ddps_ipoib_lladdr *a)
{
	for (unsigned i = 0; i < f->n_node; i++)
		if (f->node[i].used && ddps_ipoib_lladdr_cmp(&f->node[i].lladdr, a) == 0)
			return &f->node[i];
	return NULL;
}

static bool has_qp(const struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n)
{
	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used && !f->qp[i].stopped && f->qp[i].node == n)
			return true;
	return false;
}

static struct ddps_ipoib_node *node_slot(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_node; i++)
		if (!f->node[i].used && !f->node[i].unsettled)
			return &f->node[i];
	if (f->n_node < f->cfg.max_peers)
		return &f->node[f->n_node++];
	for (unsigned i = 0; i < f->n_node; i++)
		if (!f->node[i].refs && !f->node[i].unsettled && !has_qp(f, &f->node[i]))
			return &f->node[i];
	f->stats.nbr_full++;
	return NULL;
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
	n->path_at = DDPS_CM_NEVER;
	n->lladdr = *lladdr;
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
	n->link.remote.flags = common; /* the same peer all the same */
}

static void forget(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	ddps_ipoib_link_close(&n->link, f->now);
	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used && f->qp[i].node == n) {
			ddps_ipoib_qp_stop(f, &f->qp[i]);
			f->qp[i].node = NULL;
		}
	ddps_ipoib_queue_drop(f, &n->hold, &f->stats.tx_unreachable);
	n->used = false;
	ddps_ipoib_qp_collect(f);
}

void ddps_ipoib_node_put(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	if (--n->refs == 0)
		forget(f, n);
}

void ddps_ipoib_node_clear(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_node; i++)
		if (f->node[i].used)
			forget(f, &f->node[i]);
	ddps_ipoib_conn_settle(f); /* no slot may be on the list when it is taken again */
	f->n_node = 0;
}

void ddps_ipoib_node_ask_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	if (n->path_at != DDPS_CM_NEVER) /* asked already */
		return;
	n->path_tries = 1;
	n->path_at = f->now + f->cfg.retry_ns;
	f->stats.tx_failed += f->port->ops->resolve(f->port, n->lladdr.gid) != 0;
}

static void path_lost(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	n->path_at = DDPS_CM_NEVER;
	n->has_path = false;
	ddps_ipoib_nbr_path(f, n);
}

void ddps_ipoib_node_path(struct ddps_ipoib_if *f, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			  const struct ddps_ipoib_path *path)
{
	for (unsigned i = 0; i < f->n_node; i++) {
		struct ddps_ipoib_node *n = &f->node[i];

		if (!n->used || memcmp(n->lladdr.gid, gid, sizeof(n->lladdr.gid)) != 0)
			continue;
		if (!path) {
			if (n->path_at != DDPS_CM_NEVER)
				path_lost(f, n);
			continue;
		}
		n->path = *path;
		n->link.addr = path->addr;
		n->has_path = true;
		n->path_at = DDPS_CM_NEVER;
		ddps_ipoib_nbr_path(f, n);
	}
}

void ddps_ipoib_node_tick(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_node; i++) {
		struct ddps_ipoib_node *n = &f->node[i];

		if (!n->used || n->path_at > f->now)
			continue;
		if (n->path_tries >= f->cfg.tries) {
			path_lost(f, n);
			continue;
		}
		n->path_tries++;
		n->path_at = f->now + f->cfg.retry_ns;
		f->stats.tx_failed += f->port->ops->resolve(f->port, n->lladdr.gid) != 0;
	}
}

uint64_t ddps_ipoib_node_deadline(const struct ddps_ipoib_if *f)
{
	uint64_t t = DDPS_CM_NEVER;

	for (unsigned i = 0; i < f->n_node; i++)
		if (f->node[i].used)
			t = ddps_ipoib_min(t, f->node[i].path_at);
	return t;
}
