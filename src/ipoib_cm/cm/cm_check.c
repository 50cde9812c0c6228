/* SPDX-License-Identifier: BSD-2-Clause */
/* What a connection manager says of itself, counted anew: see ddps_cm_check(). */
#include "common/system/assert.h"
#include "ipoib_cm/cm/cm_conn.h"

#ifdef DDPS_ASSERTS

#define CHECK_MAX 64 /* with more connections counting takes longer than a test has */

static void check_cm_conn(const struct ddps_cm *cm, const struct ddps_cm_conn *c)
{
	ddps_assert(c->state != DDPS_CM_ST_IDLE && c->state < DDPS_CM_NSTATE);
	ddps_assert(c->local_id && ddps_cm_conn_find(cm, c->local_id) == c);
	ddps_assert(!c->has_qpn || c->has_remote);
	ddps_assert(!c->has_qpn || ddps_cm_conn_qpn(cm, c->remote_guid, c->remote_qpn));
	ddps_assert(!c->has_remote || ddps_cm_conn_remote(cm, c->remote_guid, c->remote_id));
	ddps_assert(c->state != DDPS_CM_ST_TIMEWAIT || (!c->has_qpn && !c->has_share));
	ddps_assert(c->retries_left <= c->retries);
	ddps_assert(!c->due.place == (c->due.at == DDPS_CM_NEVER));
	ddps_assert(!c->due.place || cm->dues.heap[c->due.place] == &c->due);
}

void ddps_cm_check(const struct ddps_cm *cm)
{
	unsigned n = 0, timed = 0;
	const struct ddps_cm_conn *c;

	ddps_assert(cm->n_conns <= cm->cfg.max_conns && cm->dues.n <= cm->n_conns);
	if (cm->n_conns > CHECK_MAX)
		return;
	LIST_FOREACH(c, &cm->conns, of_all) {
		n++;
		check_cm_conn(cm, c);
		timed += c->due.place != 0;
	}
	ddps_assert(n == cm->n_conns && timed == cm->dues.n);
	for (uint32_t i = 2; i <= cm->dues.n; i++)
		ddps_assert(cm->dues.heap[i / 2]->at <= cm->dues.heap[i]->at);
}

#endif
