/* SPDX-License-Identifier: BSD-2-Clause */
/* One neighbour of one interface: CM reports become decisions, decisions CM calls. */
#include <string.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/cm/link.h"
#include "ipoib_cm/wire/wire.h"

#define DO(name) DDPS_IPOIB_DO_##name

void ddps_ipoib_link_init(struct ddps_ipoib_link *l, const struct ddps_ipoib_links *all,
			  const struct ddps_ipoib_lladdr *remote, ddps_cm_addr addr,
			  enum ddps_ipoib_sid_form form)
{
	memset(l, 0, sizeof(*l));
	l->all = all;
	l->remote = *remote;
	l->addr = addr;
	ddps_ipoib_peer_init(&l->peer, &all->me.addr, remote, form);
}

static void flush_link(const struct ddps_ipoib_link *l, const struct ddps_cm_outs *o)
{
	for (unsigned i = 0; i < o->n_send; i++)
		l->all->ops->send(l->all->user, &o->send[i]);
}

static void put_link_priv(const struct ddps_ipoib_link *l, uint8_t *at)
{
	const struct ddps_ipoib_priv priv = { .qpn = l->all->me.addr.qpn,
					      .rx_mtu = l->all->me.rx_mtu };

	ddps_ipoib_priv_encode(at, &priv); /* cannot fail: the QPN is that of an address */
}

/* [4755-3.2-5] [4755-3.2-10] [4755-2.3-3] */
static int connect_link(struct ddps_ipoib_link *l, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_ipoib_iface *me = &l->all->me;
	struct ddps_cm_connect c = { .packet_life = l->all->packet_life, .to = l->addr, .user = l };
	bool rc = l->remote.flags & me->addr.flags & DDPS_IPOIB_RC;
	int err;

	c.req.transport = rc ? DDPS_CM_RC : DDPS_CM_UC;
	c.req.pkey = me->pkey;
	memcpy(c.req.primary.local_gid, me->addr.gid, DDPS_IPOIB_GID_LEN);
	memcpy(c.req.primary.remote_gid, l->remote.gid, DDPS_IPOIB_GID_LEN);
	put_link_priv(l, c.req.private_data);
	err = ddps_ipoib_service_id(&c.req.service_id, l->peer.form, l->remote.qpn);
	if (!err)
		err = l->all->ops->ask(l->all->user, l, &c.req);
	if (!err)
		err = ddps_cm_connect(l->all->cm, &c, now, &l->peer.own_id, o);
	return err;
}

/* Return: 0, or there is no queue pair for it and it has been refused. */
static int accept_link(struct ddps_ipoib_link *l, uint32_t id, const struct ddps_cm_req *req,
		       uint64_t now, struct ddps_cm_outs *o)
{
	struct ddps_cm_rep rep = { 0 };
	int err;

	put_link_priv(l, rep.private_data);
	err = l->all->ops->answer(l->all->user, l, id, req, &rep);
	if (!err)
		err = ddps_cm_reply(l->all->cm, id, &rep, now, o);
	if (err)
		(void)ddps_cm_reject(l->all->cm, id, DDPS_CM_REJ_NO_RESOURCES, NULL, now, o);
	return err;
}

static void link_step(struct ddps_ipoib_link *l, const struct ddps_ipoib_peer_in *in,
		      const struct ddps_cm_mad *mad);

static void end_link_conn(struct ddps_ipoib_link *l, enum ddps_ipoib_peer_event ev, uint32_t id,
			  uint64_t now)
{
	const struct ddps_ipoib_peer_in in = { .ev = ev, .id = id, .now = now };

	link_step(l, &in, NULL);
}

/* Ends connections that the other one replaces. */
static void close_others(struct ddps_ipoib_link *l, const struct ddps_ipoib_peer_out *out,
			 uint64_t now)
{
	struct ddps_cm_outs o;

	if (out->acts & DO(WITHDRAW)) {
		if (!ddps_cm_withdraw(l->all->cm, out->own_id, now, &o))
			flush_link(l, &o);
		l->all->ops->down(l->all->user, l, out->own_id);
	}
	if (out->acts & DO(CLOSE_OWN)) {
		if (!ddps_cm_disconnect(l->all->cm, out->own_id, now, &o))
			flush_link(l, &o);
		l->all->ops->down(l->all->user, l, out->own_id);
	}
	if (out->acts & DO(CLOSE_IN)) {
		if (!ddps_cm_disconnect(l->all->cm, out->in_id, now, &o))
			flush_link(l, &o);
		l->all->ops->down(l->all->user, l, out->in_id);
	}
}

/* @mad: the REQ or REP at hand, or NULL. */
static void link_step(struct ddps_ipoib_link *l, const struct ddps_ipoib_peer_in *in,
		      const struct ddps_cm_mad *mad)
{
	struct ddps_cm *cm = l->all->cm;
	struct ddps_ipoib_peer_out out;
	struct ddps_cm_outs o = { 0 };
	int err = 0;

	ddps_ipoib_peer_step(&l->peer, &l->all->policy, in, &out);
	if (out.acts & DO(CONNECT)) {
		err = connect_link(l, in->now, &o);
		flush_link(l, &o);
		if (err)
			end_link_conn(l, DDPS_IPOIB_EV_TIMEOUT, 0, in->now);
	} else if (out.acts & DO(ACCEPT)) {
		err = accept_link(l, in->id, &mad->u.req, in->now, &o);
		flush_link(l, &o);
		if (err)
			end_link_conn(l, DDPS_IPOIB_EV_DOWN, in->id, in->now);
	} else if (out.acts & DO(READY)) {
		if (!ddps_cm_ready(cm, in->id, NULL, in->now, &o))
			flush_link(l, &o);
	} else if (out.acts & (DO(REFUSE) | DO(REJECT_REP))) {
		if (!ddps_cm_reject(cm, in->id, out.reason, NULL, in->now, &o))
			flush_link(l, &o);
		ddps_cm_conn_soon(cm, l->peer.own_id, in->now);
	}
	close_others(l, &out, in->now);
	if (out.acts & DO(RESOLVE))
		l->all->ops->resolve(l->all->user, l);
}

void ddps_ipoib_link_traffic(struct ddps_ipoib_link *l, uint64_t now)
{
	/* [4755-3.1-12] only in a mode that both have */
	if (l->remote.flags & l->all->me.addr.flags)
		end_link_conn(l, DDPS_IPOIB_EV_TRAFFIC, 0, now);
}

static void link_req_in(struct ddps_ipoib_link *l, const struct ddps_cm_report *r, uint64_t now)
{
	const struct ddps_ipoib_peer_in in = { .ev = DDPS_IPOIB_EV_REQ, .id = r->id, .now = now };
	struct ddps_ipoib_priv priv;

	ddps_ipoib_priv_decode(&priv, r->mad->u.req.private_data,
			       sizeof(r->mad->u.req.private_data));
	l->in_rx_mtu = priv.rx_mtu;
	ddps_cm_set_user(l->all->cm, r->id, l);
	link_step(l, &in, r->mad);
}

static uint32_t mtu_with(const struct ddps_ipoib_link *l, uint32_t rx_mtu)
{
	uint32_t mtu = ddps_ipoib_mtu_cm(l->all->me.rx_mtu, rx_mtu);

	return mtu ? mtu : DDPS_IPOIB_MTU_DEFAULT; /* 0 was admitted as "not negotiated" */
}

static void link_rep_in(struct ddps_ipoib_link *l, const struct ddps_cm_report *r, uint64_t now)
{
	struct ddps_ipoib_peer_in in = { .ev = DDPS_IPOIB_EV_REP, .id = r->id, .now = now };
	struct ddps_ipoib_priv priv;

	if (ddps_ipoib_admit_rep(&l->all->me, &r->mad->u.rep, &priv))
		in.ev = DDPS_IPOIB_EV_REP_BAD;
	link_step(l, &in, r->mad);
	if (in.ev == DDPS_IPOIB_EV_REP_BAD)
		l->all->ops->down(l->all->user, l, r->id);
	else
		l->all->ops->up(l->all->user, l, r->id, mtu_with(l, priv.rx_mtu), true);
}

/* Up from inside: by an RTU, or by data where none came. */
static void link_rtu_in(struct ddps_ipoib_link *l, const struct ddps_cm_report *r, uint64_t now)
{
	struct ddps_ipoib_peer_in in = { .ev = DDPS_IPOIB_EV_RTU, .id = r->id, .now = now };
	struct ddps_ipoib_priv priv = { 0 };

	if (r->ev == DDPS_CM_EV_RX_RTU)
		ddps_ipoib_priv_decode(&priv, r->mad->u.rtu.private_data,
				       sizeof(r->mad->u.rtu.private_data));
	in.two_way = priv.qpn != 0;
	l->all->ops->up(l->all->user, l, r->id, mtu_with(l, l->in_rx_mtu), in.two_way);
	link_step(l, &in, NULL);
}

/* @r ends the connection, for the agent or for us. */
static void down_in(struct ddps_ipoib_link *l, const struct ddps_cm_report *r, uint64_t now)
{
	struct ddps_ipoib_peer_in in = { .ev = DDPS_IPOIB_EV_DOWN, .id = r->id, .now = now };
	struct ddps_cm_outs o;

	if (l->peer.own == DDPS_IPOIB_OWN_REQ_OUT && l->peer.own_id == r->id) {
		in.ev = DDPS_IPOIB_EV_TIMEOUT;
		if (r->mad && r->mad->hdr.attr_id == DDPS_CM_REJ) {
			in.ev = DDPS_IPOIB_EV_REJ;
			in.reason = r->mad->u.rej.reason;
		}
	}
	if (r->ev == DDPS_CM_EV_RX_DREQ && !ddps_cm_closed(l->all->cm, r->id, now, &o))
		flush_link(l, &o);
	if (ddps_ipoib_peer_knows(&l->peer, r->id))
		l->all->ops->down(l->all->user, l, r->id);
	link_step(l, &in, NULL);
}

void ddps_ipoib_link_report(struct ddps_ipoib_link *l, const struct ddps_cm_report *r, uint64_t now)
{
	switch (r->ev) {
	case DDPS_CM_EV_RX_REQ:
		link_req_in(l, r, now);
		break;
	case DDPS_CM_EV_RX_REP:
		link_rep_in(l, r, now);
		break;
	case DDPS_CM_EV_RX_RTU:
	case DDPS_CM_EV_DATA_IN:
	case DDPS_CM_EV_T_END_DATA:
		link_rtu_in(l, r, now);
		break;
	default:
		down_in(l, r, now);
	}
}

void ddps_ipoib_link_broken(struct ddps_ipoib_link *l, uint32_t id, uint64_t now)
{
	struct ddps_cm *cm = l->all->cm;
	struct ddps_cm_outs o;

	/* One that is up is disconnected, a REQ or REP that waits is taken back. */
	if (!ddps_cm_disconnect(cm, id, now, &o) ||
	    !ddps_cm_abort(cm, id, DDPS_CM_REJ_CONSUMER, now, &o))
		flush_link(l, &o);
	if (ddps_ipoib_peer_knows(&l->peer, id))
		l->all->ops->down(l->all->user, l, id);
	end_link_conn(l, DDPS_IPOIB_EV_DOWN, id, now);
}

void ddps_ipoib_link_close(struct ddps_ipoib_link *l, uint64_t now)
{
	if (l->peer.own_id)
		ddps_ipoib_link_broken(l, l->peer.own_id, now);
	if (l->peer.in_up)
		ddps_ipoib_link_broken(l, l->peer.in_id, now);
	while (l->peer.n_pending)
		ddps_ipoib_link_broken(l, l->peer.pending[0], now);
}
