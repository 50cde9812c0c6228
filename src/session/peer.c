/* SPDX-License-Identifier: BSD-2-Clause */
/* Who the peer is, for programs. */
#include "secure/secure.h"
#include "session/session.h"

int ddps_llp_peer_id(const struct ddps_llp *llp, struct ddps_peer_id *id)
{
	static const struct ddps_peer_id nobody = { .struct_size = sizeof nobody };
	const struct ddps_peer_id *known = llp->ops->peer_id ? llp->ops->peer_id(llp) : NULL;

	return ddps_peer_id_give(id, known ? known : &nobody);
}

int ddps_ep_peer_id(const struct ddps_ep *ep, struct ddps_peer_id *id)
{
	int err = id ? ddps_ctx_enter(ep->ctx) : DDPS_E_INVAL;

	if (err < 0)
		return err;
	err = ep->established && ep->llp ? ddps_llp_peer_id(ep->llp, id) : DDPS_E_STATE;
	ddps_ctx_leave(ep->ctx);
	return err;
}
