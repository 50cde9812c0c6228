/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of a REQ or REP that precede any choice between connections. */
#include <string.h>
#include "ipoib_cm/cm/admit.h"
#include "ipoib_cm/wire/wire.h"

#define PKEY_BASE 0x7fff

/* Private data has no length on the wire: all zero is how its absence looks. */
static bool priv_ok(const struct ddps_ipoib_iface *me, const struct ddps_ipoib_priv *priv)
{
	if (!priv->qpn)
		return false;
	if (!priv->rx_mtu)
		return me->rx_mtu_may_be_0;
	/* [4755-5-1] and a peer cannot accept more than 2^31 octets [4755-5-4] */
	return ddps_ipoib_mtu_cm(me->rx_mtu, priv->rx_mtu) >= me->min_mtu;
}

static bool transport_ok(const struct ddps_ipoib_iface *me, uint8_t transport)
{
	return (transport == DDPS_CM_RC && me->addr.flags & DDPS_IPOIB_RC) ||
	       (transport == DDPS_CM_UC && me->addr.flags & DDPS_IPOIB_UC);
}

uint16_t ddps_ipoib_admit_req(const struct ddps_ipoib_iface *me, const struct ddps_cm_req *req,
			      struct ddps_ipoib_lladdr *peer, struct ddps_ipoib_priv *priv)
{
	enum ddps_ipoib_sid_form form;
	uint32_t qpn;

	ddps_ipoib_priv_decode(priv, req->private_data, sizeof(req->private_data));
	peer->flags = 0;
	peer->qpn = priv->qpn;
	memcpy(peer->gid, req->primary.local_gid, sizeof(peer->gid));
	if (ddps_ipoib_service_id_split(req->service_id, &form, &qpn) || qpn != me->addr.qpn)
		return DDPS_CM_REJ_SERVICE_ID;
	if (!transport_ok(me, req->transport))
		return DDPS_CM_REJ_TRANSPORT;
	if ((req->pkey ^ me->pkey) & PKEY_BASE ||
	    memcmp(req->primary.remote_gid, me->addr.gid, sizeof(me->addr.gid)) != 0)
		return DDPS_CM_REJ_CONSUMER;
	return priv_ok(me, priv) ? 0 : DDPS_CM_REJ_CONSUMER;
}

uint16_t ddps_ipoib_admit_rep(const struct ddps_ipoib_iface *me, const struct ddps_cm_rep *rep,
			      struct ddps_ipoib_priv *priv)
{
	ddps_ipoib_priv_decode(priv, rep->private_data, sizeof(rep->private_data));
	return priv_ok(me, priv) ? 0 : DDPS_CM_REJ_CONSUMER;
}
