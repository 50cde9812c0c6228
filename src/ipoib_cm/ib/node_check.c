/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port says of its queue pairs and their memory, counted anew: see ddps_ib_node_check(). */
#include "common/system/assert.h"
#include "ipoib_cm/ib/node_in.h"

#ifdef DDPS_ASSERTS

#define CHECK_MAX 64 /* with more queue pairs counting takes longer than a test has */

static size_t check_ib_requester(const struct ddps_ib_qp *qp)
{
	size_t octets = 0;
	uint32_t psn = qp->psn;

	ddps_assert(qp->n_msg <= DDPS_IB_TX_MSGS && qp->cur <= qp->n_msg);
	ddps_assert(ddps_ib_psn_diff(qp->sent, qp->una) >= 0 &&
		    ddps_ib_psn_diff(qp->top, qp->sent) >= 0 &&
		    ddps_ib_psn_diff(qp->psn, qp->top) >= 0);
	ddps_assert(qp->uc || ddps_ib_psn_diff(qp->top, qp->una) <= DDPS_IB_WINDOW);
	for (unsigned i = qp->n_msg; i-- > 0;) {
		const struct ddps_ib_msg *m = &qp->msg[(qp->head + i) % DDPS_IB_TX_MSGS];

		ddps_assert(ddps_ib_psn_add(m->psn, m->n_pkt) == psn); /* without a gap */
		psn = m->psn;
		octets += m->len;
	}
	ddps_assert(!qp->n_msg || ddps_ib_psn_diff(qp->una, psn) >= 0);
	return octets;
}

void ddps_ib_node_check(const struct ddps_ib_node *n)
{
	uint32_t busy = 0;
	size_t tx = 0;

	ddps_assert(n->env.tx.used <= n->env.tx.max && n->env.rx.used <= n->env.rx.max);
	ddps_assert(n->n_busy <= n->n_slot);
	if (n->n_slot > CHECK_MAX)
		return;
	for (uint32_t i = 0; i < n->n_slot; i++) {
		const struct ib_slot *s = &n->slot[i];

		busy += s->busy;
		ddps_assert(!s->busy || s->used);
		ddps_assert(!s->due.place || (s->used && n->dues.heap[s->due.place] == &s->due));
		if (!s->used)
			continue;
		tx += check_ib_requester(&s->qp);
		ddps_assert(!s->qp.open || s->qp.in_len <= s->qp.rx_max);
	}
	ddps_assert(busy == n->n_busy && tx == n->env.tx.used);
}

#endif
