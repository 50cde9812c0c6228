/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/direct.h"
#include "session/session.h"

int ddps_direct_enter(struct ddps_ep *ep)
{
	ddps_ep_prefetch(ep);
	return ddps_ctx_enter_bare(ep->ctx);
}

void ddps_direct_leave(struct ddps_ep *ep)
{
	ddps_ctx_leave(ep->ctx);
}

int ddps_direct_send(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	return ddps_ep_send(ep, wr);
}

bool ddps_direct_may_read(struct ddps_ep *ep, const struct ddps_sge *sge, int n)
{
	ddps_assert_held(&ep->ctx->lock);
	for (int i = 0; i < n; i++)
		if (ddps_stag_check_local(ep->pd, ep->serial, &sge[i], 0))
			return false;
	return true;
}

int ddps_direct_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge)
{
	return ddps_ep_recv(ep, wr_id, sge, nsge);
}

int ddps_direct_poll(struct ddps_cq *cq, const struct ddps_wc **first, int max)
{
	int n = ddps_cq_enter(cq);

	if (n < 0)
		return n;
	n = ddps_cq_look(cq, first, max);
	if (n <= 0)
		ddps_ctx_leave(ddps_cq_ctx(cq));
	return n;
}

bool ddps_direct_taken(struct ddps_cq *cq, int n)
{
	bool more = ddps_cq_drop(cq, (uint32_t)n);

	ddps_ctx_leave(ddps_cq_ctx(cq));
	return more;
}
