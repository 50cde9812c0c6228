/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stream says of its queues and Reads, counted anew: see ddps_rdmap_check(). */
#include "rdmap/rdmap_priv.h"

#ifdef DDPS_ASSERTS

#define CHECK_MAX 256u /* with more posted counting takes longer than a test has */

static void check_sq(struct ddps_rdmap *r)
{
	const struct ddps_sq *q = &r->sq;
	uint64_t oldest = q->tail;
	uint32_t asked = 0;

	ddps_assert(q->head <= q->next && q->next <= q->tail);
	ddps_assert(q->tail - q->head <= q->depth && q->tail - q->head <= q->mem.size);
	if (q->tail - q->head > CHECK_MAX || r->state != DDPS_RS_RUN)
		return;
	for (uint64_t pos = q->head; pos != q->tail; pos++) {
		const struct ddps_sqe *e = ddps_sq_at(r, pos);

		ddps_assert(e->last_seg <= r->tx_pulled);
		ddps_assert(pos <= q->next || (!e->sent && !e->last_seg) || e->done);
		if (!(ddps_op_asks(e->op) || e->asking) || e->done || !e->sent)
			continue;
		if (!asked++)
			oldest = pos;
	}
	/* Each Read and atomic that has left and waits has its place in ORD, and so has the RTR Read. */
	ddps_assert(r->reads_out == asked + (r->rtr_read_out ? 1 : 0));
	ddps_assert(!asked || r->read_pos == oldest);
	ddps_assert(asked <= r->ord);
}

void ddps_rdmap_check(struct ddps_rdmap *r)
{
	const struct ddps_rq *q = &r->rq;
	const struct ddps_irrq *irrq = &r->irrq;

	ddps_assert(r->state <= DDPS_RS_GONE && r->tx_acked <= r->tx_pulled);
	ddps_assert(q->head <= q->tail && q->tail - q->head <= q->depth &&
		    q->tail - q->head <= q->mem.size);
	ddps_assert(irrq->count <= irrq->cap &&
		    irrq->count <= irrq->ird + (irrq->rtr_slot ? 1u : 0u));
	ddps_assert(!irrq->cap || irrq->head < irrq->cap);
	ddps_assert(!r->srq || r->srq_out <= r->srq_share || r->draining || r->state > DDPS_RS_RUN);
	check_sq(r);
}
#endif
