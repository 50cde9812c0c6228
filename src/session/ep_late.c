/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that is posted when the session ends or has ended (attr.flush_late). */
#include "session/session.h"
#include <stdlib.h>

static struct ddps_cq *get_op_cq(const struct ddps_ep *ep, enum ddps_op op)
{
	return op == DDPS_OP_RECV ? ep->recv_cq : ep->send_cq;
}

static void complete_late(struct ddps_ep *ep, enum ddps_op op, uint64_t wr_id)
{
	struct ddps_wc wc = { .wr_id = wr_id, .op = op, .status = DDPS_WC_FLUSHED };

	ddps_ep_rdmap_up.complete(ep, op == DDPS_OP_RECV, &wc);
}

int ddps_late_post(struct ddps_ep *ep, enum ddps_op op, uint64_t wr_id)
{
	struct ddps_late *l;

	ddps_assert_held(&ep->ctx->lock);
	if (!ep->flush_late || ep->state < DDPS_EP_DRAINING)
		return DDPS_E_STATE;
	if ((unsigned)op > DDPS_OP_SEND_IMM || (op == DDPS_OP_RECV && ep->shared_rq))
		return DDPS_E_INVAL;
	if (ddps_cq_room(get_op_cq(ep, op)) <= ep->late_count)
		return DDPS_E_LIMIT;
	if (ep->state == DDPS_EP_DEAD) {
		complete_late(ep, op, wr_id);
		return 0;
	}
	l = malloc(sizeof *l);
	if (!l)
		return DDPS_E_NOMEM;
	*l = (struct ddps_late){ .wr_id = wr_id, .op = op };
	*ep->late_end = l;
	ep->late_end = &l->next;
	ep->late_count++;
	return 0;
}

static struct ddps_late *take_late(struct ddps_ep *ep)
{
	struct ddps_late *l = ep->late;

	if (!l)
		return NULL;
	ep->late = l->next;
	if (!ep->late)
		ep->late_end = &ep->late;
	ep->late_count--;
	return l;
}

void ddps_late_flush(struct ddps_ep *ep)
{
	struct ddps_late *l;

	ddps_assert_held(&ep->ctx->lock);
	while ((l = take_late(ep))) {
		complete_late(ep, l->op, l->wr_id);
		free(l);
	}
}

void ddps_late_free(struct ddps_ep *ep)
{
	struct ddps_late *l;

	while ((l = take_late(ep)))
		free(l);
}
