/* SPDX-License-Identifier: BSD-2-Clause */
/* A node that does as Linux does: each end sends on the connection that it has asked for. */
#include "sim/crossed_in.h"
#include <string.h>

static void flush_crossed_linux(struct node *n, const struct ddps_cm_outs *o)
{
	for (unsigned i = 0; i < o->n_send; i++)
		crossed_send(n, &o->send[i]);
}

/* UD queue pair and Receive MTU. */
static void put_priv(const struct node *n, uint8_t *at)
{
	const struct ddps_ipoib_priv priv = { .qpn = n->links.me.addr.qpn,
					      .rx_mtu = n->links.me.rx_mtu };

	MUST(ddps_ipoib_priv_encode(at, &priv) == 0);
}

void crossed_linux_traffic(struct node *n)
{
	struct ddps_cm_connect c = { .packet_life = n->links.packet_life, .to = !n->nr };
	struct ddps_cm_outs o;

	if (n->own)
		return;
	crossed_ask(n, &n->link, &c.req);
	c.req.pkey = n->links.me.pkey;
	memcpy(c.req.primary.local_gid, n->links.me.addr.gid, DDPS_IPOIB_GID_LEN);
	memcpy(c.req.primary.remote_gid, n->link.remote.gid, DDPS_IPOIB_GID_LEN);
	put_priv(n, c.req.private_data);
	MUST(!ddps_ipoib_service_id(&c.req.service_id, DDPS_IPOIB_SID_LINUX, n->link.remote.qpn));
	MUST(!ddps_cm_connect(n->links.cm, &c, n->w->now, &n->own, &o));
	flush_crossed_linux(n, &o);
}

/* Every REQ is accepted, an RTU says nothing, a connection that ends is forgotten. */
void crossed_linux_report(struct node *n, const struct ddps_cm_report *r)
{
	static const uint8_t nothing[DDPS_IPOIB_PRIV_LEN];
	struct ddps_cm_rep rep = { 0 };
	struct ddps_cm_outs o = { 0 };
	uint64_t now = n->w->now;

	switch (r->ev) {
	case DDPS_CM_EV_RX_REQ:
		rep.qpn = n->next_qpn++;
		put_priv(n, rep.private_data);
		MUST(!ddps_cm_reply(n->links.cm, r->id, &rep, now, &o));
		break;
	case DDPS_CM_EV_RX_REP:
		MUST(!ddps_cm_ready(n->links.cm, r->id, nothing, now, &o));
		n->own_up = true;
		break;
	case DDPS_CM_EV_RX_RTU:
	case DDPS_CM_EV_DATA_IN:
	case DDPS_CM_EV_T_END_DATA:
		return;
	case DDPS_CM_EV_RX_DREQ:
		(void)ddps_cm_closed(n->links.cm, r->id, now, &o);
		/* fall through */
	default:
		if (r->id == n->own) {
			n->own = 0;
			n->own_up = false;
		}
	}
	flush_crossed_linux(n, &o);
}

void crossed_linux_fails(struct node *n, uint32_t id)
{
	struct ddps_cm_outs o;

	if (!ddps_cm_disconnect(n->links.cm, id, n->w->now, &o))
		flush_crossed_linux(n, &o);
	if (id == n->own) {
		n->own = 0;
		n->own_up = false;
	}
}
