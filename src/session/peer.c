/* SPDX-License-Identifier: BSD-2-Clause */
/* Who the peer is, for programs. */
#include "common/who.h"
#include "secure/secure.h"
#include "session/session.h"

static int give_peer_id(const struct ddps_who *known, struct ddps_peer_id *id)
{
	struct ddps_peer_id all;

	ddps_who_give(known, &all);
	return ddps_peer_id_give(id, &all);
}

int ddps_llp_peer_id(const struct ddps_llp *llp, struct ddps_peer_id *id)
{
	return give_peer_id(llp->ops->peer_id ? llp->ops->peer_id(llp) : NULL, id);
}

int ddps_ep_peer_id(const struct ddps_ep *ep, struct ddps_peer_id *id)
{
	int err = id ? ddps_ctx_enter(ep->ctx) : DDPS_E_INVAL;

	if (err < 0)
		return err;
	if (!ep->established)
		err = DDPS_E_STATE;
	else if (ep->llp)
		err = ddps_llp_peer_id(ep->llp, id);
	else
		err = ep->id_lost ? DDPS_E_NOMEM : give_peer_id(ep->was, id);
	ddps_ctx_leave(ep->ctx);
	return err;
}
