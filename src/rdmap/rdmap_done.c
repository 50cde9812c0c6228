/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue: what has ended is reported, in order. */
#include "rdmap/rdmap_priv.h"

__attribute__((noinline)) void ddps_complete_whole(struct ddps_rdmap *r, bool recv_queue,
						   enum ddps_op op, uint64_t wr_id, uint32_t len)
{
	struct ddps_wc wc = { .wr_id = wr_id, .op = op, .len = len };

	r->up->complete(r->user, recv_queue, &wc);
}

/* The oldest is a Send or Write that has left. */
static void complete_plain(struct ddps_rdmap *r, const struct ddps_sqe *e)
{
	r->sq.head++;
	if (!(e->flags & DDPS_WR_SILENT))
		ddps_succeeded(r, false, e->op, e->wr_id, 0);
}

static __attribute__((noinline)) void complete_oldest(struct ddps_rdmap *r,
						      enum ddps_wc_status status)
{
	const struct ddps_sqe *e = ddps_sq_at(r, r->sq.head);
	struct ddps_wc wc = {
		.wr_id = e->wr_id,
		.op = e->op,
		.status = status,
		.len = ddps_op_asks(e->op) && !status ? e->len : 0,
	};
	bool silent = !status && (e->flags & DDPS_WR_SILENT);

	if (status == DDPS_WC_REMOTE)
		wc.term = r->blame;
	if (!status && ddps_op_asks(e->op) && e->op != DDPS_OP_READ)
		wc.original = e->original;
	if (e->op == DDPS_OP_BIND)
		e->bind.window->pending--;
	r->sq.head++;
	if (r->sq.next < r->sq.head)
		r->sq.next = r->sq.head;
	if (!silent)
		r->up->complete(r->user, false, &wc);
}

void ddps_sq_complete(struct ddps_rdmap *r)
{
	while (r->state == DDPS_RS_RUN && r->sq.head != r->sq.tail) {
		const struct ddps_sqe *e = ddps_sq_at(r, r->sq.head);

		/* In order of posting: what has not ended holds back the rest
		 * [5040-5.5-15] [5040-5.5-16] [5040-5.5-20]. */
		if (!e->plain && ddps_sqe_waits(e) && !e->done)
			return;
		if ((e->plain || !ddps_op_asks(e->op)) && (!e->sent || e->last_seg > r->tx_acked))
			return;
		if (e->plain && !e->status)
			complete_plain(r, e);
		else
			complete_oldest(r, e->status);
	}
}

void ddps_sq_flush(struct ddps_rdmap *r, bool all)
{
	while (r->sq.head != r->sq.tail) {
		const struct ddps_sqe *e = ddps_sq_at(r, r->sq.head);

		if (!all && e->last_seg > r->tx_acked)
			return;
		complete_oldest(r, e->status ? e->status : DDPS_WC_FLUSHED);
	}
}
