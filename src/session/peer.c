/* SPDX-License-Identifier: BSD-2-Clause */
/* Who the peer is, and what is known of the connection, for programs. */
#include "common/uri.h"
#include "common/who.h"
#include "secure/secure.h"
#include "session/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- what is known of the connection ---- */

static char *join_names(const char *local, const char *peer)
{
	const size_t first = strlen(local) + 1, second = strlen(peer) + 1;
	char *names = malloc(first + second);

	if (!names)
		return NULL;
	memcpy(names, local, first);
	memcpy(names + first, peer, second);
	return names;
}

void ddps_info_keep(struct ddps_kept_info *k, const struct ddps_conn_info *i)
{
	const bool named =
		(i->local[0] && !i->local_addr.family) || (i->peer[0] && !i->peer_addr.family);

	free(k->names);
	*k = (struct ddps_kept_info){
		.local_addr = i->local_addr,
		.peer_addr = i->peer_addr,
		.names = named ? join_names(i->local, i->peer) : NULL,
		.mulpdu = i->mulpdu,
		.ird = i->ird,
		.ord = i->ord,
		.peer_ird = i->peer_ird,
		.peer_ord = i->peer_ord,
		.transport = i->transport,
		.rtr = i->rtr,
		.peer_rtr = i->peer_rtr,
		.initiator = i->initiator,
		.enhanced = i->enhanced,
		.p2p = i->p2p,
		.mpa = i->mpa,
	};
	if (i->transport == DDPS_TRANSPORT_SCTP)
		k->sctp = i->sctp;
	else
		k->shm = i->shm;
}

static const char *name_of_peer(const struct ddps_kept_info *k)
{
	return k->names + strlen(k->names) + 1;
}

struct ddps_conn_info ddps_info_bare(const struct ddps_kept_info *k)
{
	struct ddps_conn_info i = {
		.transport = k->transport,
		.initiator = k->initiator,
		.enhanced = k->enhanced,
		.ird = k->ird,
		.ord = k->ord,
		.peer_ird = k->peer_ird,
		.peer_ord = k->peer_ord,
		.p2p = k->p2p,
		.rtr = k->rtr,
		.peer_rtr = k->peer_rtr,
		.mulpdu = k->mulpdu,
		.mpa = k->mpa,
		.local_addr = k->local_addr,
		.peer_addr = k->peer_addr,
	};

	if (k->transport == DDPS_TRANSPORT_SCTP)
		i.sctp = k->sctp;
	else
		i.shm = k->shm;
	if (k->names) {
		snprintf(i.local, sizeof i.local, "%s", k->names);
		snprintf(i.peer, sizeof i.peer, "%s", name_of_peer(k));
	}
	return i;
}

struct ddps_conn_info ddps_info_kept(const struct ddps_kept_info *k)
{
	struct ddps_conn_info i = ddps_info_bare(k);

	ddps_info_text(&i);
	return i;
}

struct ddps_peer_text ddps_ep_peer(const struct ddps_ep *ep)
{
	struct ddps_peer_text t = { "" };

	if (ep->info.peer_addr.family)
		ddps_addr_text_of(&ep->info.peer_addr, t.text, sizeof t.text);
	else if (ep->info.names)
		snprintf(t.text, sizeof t.text, "%s", name_of_peer(&ep->info));
	return t;
}

void ddps_ep_learn_info(struct ddps_ep *ep)
{
	struct ddps_conn_info i = ddps_info_bare(&ep->info);

	ep->llp->ops->info(ep->llp, &i);
	ddps_info_keep(&ep->info, &i);
}

void ddps_ep_renew_info(struct ddps_ep *ep)
{
	if (!ep->llp)
		return;
	if (ep->info.transport == DDPS_TRANSPORT_TCP)
		ddps_ep_learn_info(ep);
	else
		ep->info.mulpdu = (uint32_t)ep->llp->ops->mulpdu(ep->llp);
}

int ddps_ep_info(struct ddps_ep *ep, struct ddps_conn_info *info)
{
	int err = ddps_ctx_enter(ep->ctx);

	if (err < 0)
		return err;
	if (!ep->established) {
		err = DDPS_E_STATE;
	} else {
		ddps_ep_renew_info(ep);
		*info = ddps_info_kept(&ep->info);
	}
	ddps_ctx_leave(ep->ctx);
	return err;
}
