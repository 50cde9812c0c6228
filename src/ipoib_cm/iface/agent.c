/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager on a port: found by ARP, asked by REQs, answering for itself. */
#include <ddpsess/ipoib_agent.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define ASKING	8 /* who may wait for an answer to ARP while the way to them is looked up */
#define FOREVER 7 /* the RNR retry count: Linux takes its own from our REP */

struct agent_qp {
	uint32_t id, qpn; /* qpn 0: free */
};

struct ddps_ipoib_agent {
	struct ddps_ipoib_if_config cfg;
	struct ddps_ipoib_agent_calls calls;
	struct ddps_ipoib_port *port;
	struct ddps_cm *cm;
	struct agent_qp *qp;
	uint32_t psn;
	struct ddps_ipoib_arp asking[ASKING]; /* op 0: free */
	unsigned next;
	uint8_t broadcast[DDPS_IPOIB_GID_LEN];
};

static struct agent_qp *find_agent_qp(struct ddps_ipoib_agent *a, uint32_t id, bool is_free)
{
	for (unsigned i = 0; i < a->cfg.max_qps; i++)
		if (is_free ? !a->qp[i].qpn : a->qp[i].qpn && a->qp[i].id == id)
			return &a->qp[i];
	return NULL;
}

/* The connection manager has forgotten it. */
static void forget_agent_conn(void *user, uint32_t id)
{
	struct ddps_ipoib_agent *a = user;
	struct agent_qp *q = find_agent_qp(a, id, false);

	if (!q)
		return;
	a->port->ops->qp_destroy(a->port, q->qpn);
	q->qpn = 0;
}

static int listen_on_both(struct ddps_ipoib_agent *a, const uint8_t priv[DDPS_IPOIB_PRIV_LEN])
{
	static const enum ddps_ipoib_sid_form form[] = { DDPS_IPOIB_SID_LINUX, DDPS_IPOIB_SID_RFC };
	struct ddps_cm_listener l = { .pkey = a->cfg.me.pkey };
	int err = 0;

	memcpy(l.gid, a->cfg.me.addr.gid, sizeof(l.gid));
	memcpy(l.priv, priv, sizeof(l.priv));
	for (unsigned i = 0; i < 2 && !err; i++) {
		ddps_ipoib_service_id(&l.service_id, form[i], a->cfg.me.addr.qpn);
		err = ddps_cm_listen(a->cm, &l);
	}
	return err;
}

static int open_cm(struct ddps_ipoib_agent *a)
{
	const struct ddps_ipoib_if_config *c = &a->cfg;
	const struct ddps_ipoib_priv priv = { .qpn = c->me.addr.qpn, .rx_mtu = c->me.rx_mtu };
	struct ddps_cm_config cm = { .struct_size = sizeof(cm),
				     .ca_guid = c->ca_guid,
				     .tid_high = c->seed,
				     .id_seed = c->seed,
				     .max_conns = c->max_qps,
				     .max_per_addr = DDPS_IPOIB_CONNS_PER_ADDR,
				     .hash_key = { c->hash_key[0], c->hash_key[1] } };

	ddps_ipoib_priv_encode(cm.priv, &priv);
	a->qp = calloc(c->max_qps, sizeof(*a->qp));
	if (!a->qp || ddps_cm_new(&a->cm, &cm))
		return DDPS_E_NOMEM;
	a->cm->gone = forget_agent_conn;
	a->cm->gone_user = a;
	a->cm->port_bits = UINT16_MAX; /* the LID */
	return listen_on_both(a, cm.priv);
}

int ddps_ipoib_agent_new(struct ddps_ipoib_agent **out, const struct ddps_ipoib_if_config *cfg,
			 struct ddps_ipoib_port *port, const struct ddps_ipoib_agent_calls *calls)
{
	struct ddps_ipoib_agent *a;
	int err;

	if (!port || !port->ops || port->ops->struct_size < sizeof(*port->ops) ||
	    calls->struct_size < sizeof(*calls) || !calls->report)
		return DDPS_E_INVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return DDPS_E_NOMEM;
	a->calls = *calls;
	a->port = port;
	err = ddps_ipoib_if_config_take(&a->cfg, cfg);
	if (!err)
		err = open_cm(a);
	if (err) {
		ddps_ipoib_agent_free(a);
		return err;
	}
	a->psn = a->cfg.seed;
	ddps_ipoib_mgid_broadcast(a->broadcast, a->cfg.me.pkey, a->cfg.scope);
	*out = a;
	return 0;
}

void ddps_ipoib_agent_free(struct ddps_ipoib_agent *a)
{
	if (!a)
		return;
	for (unsigned i = 0; a->qp && i < a->cfg.max_qps; i++)
		if (a->qp[i].qpn)
			a->port->ops->qp_destroy(a->port, a->qp[i].qpn);
	if (a->cm)
		a->cm->gone = NULL;
	ddps_cm_free(a->cm);
	free(a->qp);
	free(a);
}

int ddps_ipoib_agent_start(struct ddps_ipoib_agent *a)
{
	return a->port->ops->join(a->port, a->broadcast);
}

/* ---- communication management ---- */

void ddps_ipoib_agent_outs(struct ddps_ipoib_agent *a, const struct ddps_cm_outs *o, uint64_t now)
{
	for (unsigned i = 0; i < o->n_send; i++)
		(void)a->port->ops->mad_send(a->port, o->send[i].to, o->send[i].mad);
	for (unsigned i = 0; i < o->n_report; i++) {
		const struct ddps_cm_report *r = &o->report[i];
		struct agent_qp *q =
			r->ev == DDPS_CM_EV_RX_DREQ ? find_agent_qp(a, r->id, false) : NULL;

		if (q)
			a->port->ops->qp_stop(a->port, q->qpn);
		a->calls.report(a->calls.user, r, now);
	}
}

int ddps_ipoib_agent_accept(struct ddps_ipoib_agent *a, const struct ddps_cm_report *r,
			    uint64_t now, uint32_t *qpn)
{
	const struct ddps_cm_req *req = r->mad ? &r->mad->u.req : NULL;
	const struct ddps_ipoib_port_ops *ops = a->port->ops;
	struct ddps_cm_rep rep = { .srq = 1, .rnr_retry = FOREVER };
	struct agent_qp *q = find_agent_qp(a, 0, true);
	struct ddps_ipoib_qp_to to = { .rnr_retry = FOREVER, .path.addr = r->addr };
	struct ddps_cm_outs o;
	int err;

	if (r->ev != DDPS_CM_EV_RX_REQ || !req)
		return DDPS_E_INVAL;
	if (!q)
		return DDPS_E_LIMIT;
	err = ops->qp_create(a->port, req->transport, a->cfg.me.rx_mtu, &rep.qpn);
	if (err)
		return err;
	memcpy(rep.private_data, a->cm->cfg.priv, DDPS_IPOIB_PRIV_LEN);
	a->psn = a->psn * 1664525 + 1013904223;
	rep.starting_psn = to.rx_psn = a->psn >> 8;
	to.qpn = req->qpn;
	to.tx_psn = req->starting_psn;
	to.retry_count = req->retry_count;
	err = ops->qp_ready(a->port, rep.qpn, &to);
	if (!err)
		err = ddps_cm_reply(a->cm, r->id, &rep, now, &o);
	if (err) { /* the connection may have another one, from an earlier answer */
		ops->qp_destroy(a->port, rep.qpn);
		return err;
	}
	*q = (struct agent_qp){ r->id, rep.qpn };
	if (qpn)
		*qpn = rep.qpn;
	ddps_ipoib_agent_outs(a, &o, now);
	return 0;
}

int ddps_ipoib_agent_closed(struct ddps_ipoib_agent *a, uint32_t id, uint64_t now)
{
	struct ddps_cm_outs o;
	int err = ddps_cm_closed(a->cm, id, now, &o);

	if (!err)
		ddps_ipoib_agent_outs(a, &o, now);
	return err;
}

struct ddps_cm *ddps_ipoib_agent_cm(struct ddps_ipoib_agent *a)
{
	return a->cm;
}

uint64_t ddps_ipoib_agent_deadline(const struct ddps_ipoib_agent *a)
{
	return ddps_cm_deadline(a->cm);
}

void ddps_ipoib_agent_tick(struct ddps_ipoib_agent *a, uint64_t now)
{
	struct ddps_cm_outs o;

	while (ddps_cm_tick(a->cm, now, &o))
		ddps_ipoib_agent_outs(a, &o, now);
}

/* ---- what the port says ---- */

/* An ARP request for us is answered when the way back is known [4391-9.2.1]. */
static void take_agent_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
			  size_t len, uint64_t now)
{
	struct ddps_ipoib_agent *a = user;
	struct ddps_ipoib_arp *arp = &a->asking[a->next % ASKING];
	struct ddps_ipoib_arp in;
	const uint8_t *packet;
	uint16_t type;
	size_t n;

	(void)from, (void)now;
	if (ddps_ipoib_encap_decode(&type, &packet, &n, frame, len) ||
	    type != DDPS_IPOIB_TYPE_ARP || ddps_ipoib_arp_decode(&in, packet, n) ||
	    in.op != DDPS_IPOIB_ARP_REQUEST || !a->cfg.has_ip4 ||
	    memcmp(in.target_ip, a->cfg.ip4, sizeof(in.target_ip)) != 0)
		return;
	*arp = in;
	a->next++;
	if (a->port->ops->resolve(a->port, in.sender.gid))
		arp->op = 0; /* whoever asks asks again */
}

/* Sender and target change places. */
static void answer_agent_arp(struct ddps_ipoib_agent *a, struct ddps_ipoib_arp *arp,
			     const struct ddps_ipoib_path *path)
{
	uint8_t frame[DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN];

	arp->op = DDPS_IPOIB_ARP_REPLY;
	arp->target = arp->sender;
	memcpy(arp->target_ip, arp->sender_ip, sizeof(arp->target_ip));
	arp->sender = a->cfg.me.addr;
	memcpy(arp->sender_ip, a->cfg.ip4, sizeof(arp->sender_ip));
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_ARP);
	if (!ddps_ipoib_arp_encode(frame + DDPS_IPOIB_ENCAP_LEN, arp))
		(void)a->port->ops->ud_send(a->port, &arp->target, path, frame, sizeof(frame));
}

static void take_agent_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			    const struct ddps_ipoib_path *path, uint64_t now)
{
	struct ddps_ipoib_agent *a = user;

	(void)now;
	for (unsigned i = 0; i < ASKING; i++) {
		struct ddps_ipoib_arp *arp = &a->asking[i];

		if (!arp->op || memcmp(arp->sender.gid, gid, DDPS_IPOIB_GID_LEN) != 0)
			continue;
		if (path)
			answer_agent_arp(a, arp, path);
		arp->op = 0;
	}
}

static void take_agent_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	struct ddps_ipoib_agent *a = user;
	struct ddps_cm_outs o;

	if (!ddps_cm_rx(a->cm, mad, len, from, now, &o))
		ddps_ipoib_agent_outs(a, &o, now);
}

static void take_agent_qp_message(void *user, uint32_t qpn, const void *frame, size_t len,
				  uint64_t now)
{
	struct ddps_ipoib_agent *a = user;

	if (a->calls.message && len >= DDPS_IPOIB_ENCAP_LEN)
		a->calls.message(a->calls.user, qpn, frame, len, now);
}

/* A queue pair without use: its connection ends. */
static void end_agent_conn(void *user, uint32_t qpn, int err, uint64_t now)
{
	struct ddps_ipoib_agent *a = user;
	struct ddps_cm_outs o;

	(void)err;
	for (unsigned i = 0; i < a->cfg.max_qps; i++)
		if (a->qp[i].qpn == qpn && !ddps_cm_disconnect(a->cm, a->qp[i].id, now, &o)) {
			ddps_ipoib_agent_outs(a, &o, now);
			return;
		}
}

static void take_agent_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
			      uint32_t link_mtu, uint64_t now)
{
	struct ddps_ipoib_agent *a = user;

	if (a->calls.joined && !memcmp(mgid, a->broadcast, DDPS_IPOIB_GID_LEN))
		a->calls.joined(a->calls.user, err, link_mtu, now);
}

static void ignore_agent_link(void *user, bool is_up, uint64_t now)
{
	(void)user, (void)is_up, (void)now; /* what is sent meanwhile is lost, and repeated */
}

static const struct ddps_ipoib_up up = {
	.struct_size = sizeof(up),
	.ud = take_agent_ud,
	.mad = take_agent_mad,
	.qp = take_agent_qp_message,
	.qp_error = end_agent_conn,
	.path = take_agent_path,
	.joined = take_agent_joined,
	.link = ignore_agent_link,
};

const struct ddps_ipoib_up *ddps_ipoib_agent_up(void)
{
	return &up;
}
