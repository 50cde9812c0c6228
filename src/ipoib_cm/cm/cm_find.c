/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of an agent: made, found by what messages say, forgotten. */
#include <stdlib.h>
#include "ipoib_cm/cm/cm_conn.h"

/* A number of this side, or one of the peer with @guid. */
static uint64_t conn_hash(const struct ddps_cm *cm, uint64_t guid, uint32_t number)
{
	const uint64_t words[2] = { guid, number };

	return ddps_siphash(&cm->key, words, sizeof(words));
}

struct ddps_cm_conn *ddps_cm_conn_find(const struct ddps_cm *cm, uint32_t local_id)
{
	struct ddps_cm_conn *c;

	DDPS_TAB_EACH(&cm->by_id, conn_hash(cm, 0, local_id), c, struct ddps_cm_conn, by_id)
		if (c->local_id == local_id)
			return c;
	return NULL;
}

struct ddps_cm_conn *ddps_cm_conn_remote(const struct ddps_cm *cm, uint64_t guid, uint32_t id)
{
	struct ddps_cm_conn *c;

	DDPS_TAB_EACH(&cm->by_remote, conn_hash(cm, guid, id), c, struct ddps_cm_conn, by_remote)
		if (c->remote_guid == guid && c->remote_id == id)
			return c;
	return NULL;
}

/*
 * A connection in timewait is over at both ends, and a peer that has restarted gives its QPNs
 * anew: that is no stale connection.
 */
struct ddps_cm_conn *ddps_cm_conn_qpn(const struct ddps_cm *cm, uint64_t guid, uint32_t qpn)
{
	struct ddps_cm_conn *c;

	DDPS_TAB_EACH(&cm->by_qpn, conn_hash(cm, guid, qpn), c, struct ddps_cm_conn, by_qpn)
		if (c->remote_guid == guid && c->remote_qpn == qpn)
			return c;
	return NULL;
}

/* The list begins with the newest.  A withdrawn one waits for no more than a late REP, to refuse it. */
bool ddps_cm_conn_forget(struct ddps_cm *cm)
{
	struct ddps_cm_conn *over = NULL, *c;

	LIST_FOREACH(c, &cm->conns, of_all)
		if (c->state == DDPS_CM_ST_TIMEWAIT ||
		    (c->state == DDPS_CM_ST_WITHDRAWN &&
		     (!over || over->state == DDPS_CM_ST_WITHDRAWN)))
			over = c;
	if (over)
		ddps_cm_conn_drop(cm, over);
	return over;
}

struct ddps_cm_conn *ddps_cm_conn_new(struct ddps_cm *cm)
{
	struct ddps_cm_conn *c;

	if (cm->n_conns >= cm->cfg.max_conns && !ddps_cm_conn_forget(cm))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	do
		c->local_id = cm->id_counter++ ^ cm->cfg.id_seed;
	while (!c->local_id || ddps_cm_conn_find(cm, c->local_id));
	c->due.at = DDPS_CM_NEVER;
	ddps_tab_add(&cm->by_id, &c->by_id, conn_hash(cm, 0, c->local_id));
	LIST_INSERT_HEAD(&cm->conns, c, of_all);
	cm->n_conns++;
	return c;
}

void ddps_cm_conn_known(struct ddps_cm *cm, struct ddps_cm_conn *c)
{
	c->has_remote = c->has_qpn = true;
	ddps_tab_add(&cm->by_remote, &c->by_remote, conn_hash(cm, c->remote_guid, c->remote_id));
	ddps_tab_add(&cm->by_qpn, &c->by_qpn, conn_hash(cm, c->remote_guid, c->remote_qpn));
}

static uint64_t addr_hash(const struct ddps_cm *cm, ddps_cm_addr addr)
{
	return ddps_siphash(&cm->key, &addr, sizeof(addr));
}

void ddps_cm_conn_share(struct ddps_cm *cm, struct ddps_cm_conn *c)
{
	c->has_share = true;
	ddps_tab_add(&cm->by_addr, &c->by_addr, addr_hash(cm, c->addr));
}

bool ddps_cm_conn_over_share(const struct ddps_cm *cm, ddps_cm_addr addr)
{
	const uint64_t hash = addr_hash(cm, addr);
	unsigned n = 0;

	/* By the hash of where the REQ came from: a path may have changed c->addr since. */
	for (struct ddps_tab_link *l = ddps_tab_first(&cm->by_addr, hash); l;
	     l = ddps_tab_like(l->next, hash))
		n++;
	return cm->cfg.max_per_addr && n >= cm->cfg.max_per_addr;
}

void ddps_cm_conn_over(struct ddps_cm *cm, struct ddps_cm_conn *c)
{
	if (c->has_qpn)
		ddps_tab_del(&cm->by_qpn, &c->by_qpn);
	if (c->has_share)
		ddps_tab_del(&cm->by_addr, &c->by_addr);
	c->has_qpn = c->has_share = false;
}

void ddps_cm_conn_drop(struct ddps_cm *cm, struct ddps_cm_conn *c)
{
	uint32_t id = c->local_id;

	ddps_due_clear(&cm->dues, &c->due);
	ddps_tab_del(&cm->by_id, &c->by_id);
	ddps_cm_conn_over(cm, c);
	if (c->has_remote)
		ddps_tab_del(&cm->by_remote, &c->by_remote);
	LIST_REMOVE(c, of_all);
	cm->n_conns--;
	free(c);
	if (cm->gone)
		cm->gone(cm->gone_user, id);
}
