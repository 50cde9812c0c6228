/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a REQ comes again, where nothing fails: once its answer could be here (IBA volume 1, 12.9.8: the
 * way there and back, and what the REQ gives the peer's connection manager), no later, and no more
 * often than it says.  It may come earlier after what shows that no answer will come.
 */
#include "sim/ipoib_world.h"

#define EARLY (100 * MS)

/* Of the lifetime that nodes say of paths. */
static uint64_t answer_time(const struct ddps_cm_req *req)
{
	return (2 * 4096ull << world.life) + (4096ull << req->remote_cm_timeout);
}

void timers(struct node *n, const struct ddps_ib_pkt *p)
{
	struct asking *a;
	struct ddps_cm_mad m;
	uint64_t time, gap;

	if (p->qpn != DDPS_IB_GSI_QPN || ddps_cm_mad_decode(&m, p->data, p->len) ||
	    m.hdr.attr_id != DDPS_CM_REQ)
		return;
	a = &n->asking[m.u.req.local_id % ASKING];
	if (a->id != m.u.req.local_id || a->life != n->life) {
		*a = (struct asking){ .id = m.u.req.local_id, .life = n->life, .at = world.now };
		return;
	}
	time = answer_time(&m.u.req);
	gap = world.now - a->at;
	check(gap <= time, "a REQ of node %u comes again after %.6f s, not %.6f", n->i,
	      (double)gap / 1e9, (double)time / 1e9);
	check(gap == time || gap >= EARLY, "a REQ of node %u comes again after %.6f s, not %.6f",
	      n->i, (double)gap / 1e9, (double)time / 1e9);
	check(++a->again <= m.u.req.max_cm_retries, "a REQ of node %u comes again %u times", n->i,
	      a->again);
	a->at = world.now;
}
