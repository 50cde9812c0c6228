/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that arrive: which connection one belongs to and which event it is there, and the
 * answers to those that belong to none.  Transaction IDs do not take part: they may be
 * rewritten on the way.
 */
#include <string.h>
#include "ipoib_cm/cm/cm_conn.h"

#define PKEY_BASE 0x7fff /* without the membership bit */
#define TIME_MOST 21	 /* 5-bit form: 8.6 s */

static void unmatched(struct ddps_cm *cm)
{
	cm->stats.unmatched++;
}

/* Whether the message is said to be of @c, but does not come from its peer. */
static bool is_stray(struct ddps_cm *cm, const struct ddps_cm_conn *c)
{
	if (!((c->addr ^ cm->from) & cm->port_bits))
		return false;
	cm->stray = c->local_id;
	return true;
}

/* An event for @c; where the table has no rule the message is dropped. */
static void feed_conn(struct ddps_cm *cm, struct ddps_cm_conn *c, enum ddps_cm_event ev,
		      uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = ev, .now = now, .mad = &cm->rx };

	if (!c || is_stray(cm, c) || ddps_cm_step(cm, c, &in, o))
		unmatched(cm);
}

/* The connection with both IDs, as every message after the REP has them. */
static struct ddps_cm_conn *by_ids(struct ddps_cm *cm, uint32_t local_id, uint32_t remote_id)
{
	struct ddps_cm_conn *c = ddps_cm_conn_find(cm, local_id);

	return c && c->has_remote && c->remote_id == remote_id ? c : NULL;
}

/* An own REQ to which no answer has fixed the peer's ID yet. */
static struct ddps_cm_conn *by_own_req(struct ddps_cm *cm, uint32_t local_id)
{
	struct ddps_cm_conn *c = ddps_cm_conn_find(cm, local_id);

	return c && !c->has_remote ? c : NULL;
}

/* Refuses the REQ at hand without a connection. */
static void refuse_req(struct ddps_cm *cm, uint16_t reason, const struct ddps_cm_listener *l,
		       ddps_cm_addr from, struct ddps_cm_outs *o)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REJ, cm->rx.hdr.tid);
	m.u.rej.remote_id = cm->rx.u.req.local_id;
	m.u.rej.msg = DDPS_CM_MSG_REQ;
	m.u.rej.reason = reason;
	if (l && (reason == DDPS_CM_REJ_GID || reason == DDPS_CM_REJ_ALT_GID)) {
		m.u.rej.info_len = DDPS_IPOIB_GID_LEN; /* the GID that would have done */
		memcpy(m.u.rej.ari, l->gid, DDPS_IPOIB_GID_LEN);
	}
	memcpy(m.u.rej.private_data, l ? l->priv : cm->cfg.priv, DDPS_IPOIB_PRIV_LEN);
	ddps_cm_emit(o, &m, from);
	cm->stats.refused++;
}

/* The peer has taken the QPN of @old for something new, so @old is dead there. */
static void close_stale(struct ddps_cm *cm, struct ddps_cm_conn *old, uint64_t now,
			struct ddps_cm_outs *o)
{
	const struct ddps_cm_in in = { .ev = DDPS_CM_EV_STALE, .now = now, .mad = &cm->rx };

	/* Only an established one can be disconnected; others end by their timers. */
	if (!is_stray(cm, old))
		(void)ddps_cm_step(cm, old, &in, o);
}

/* Return: the reason to refuse, or 0. */
static uint16_t check_req_path(const struct ddps_cm_req *req, const struct ddps_cm_listener *l)
{
	if ((req->pkey ^ l->pkey) & PKEY_BASE ||
	    memcmp(req->primary.remote_gid, l->gid, sizeof(l->gid)) != 0)
		return DDPS_CM_REJ_GID;
	if (req->alternate.local_lid &&
	    memcmp(req->alternate.remote_gid, l->gid, sizeof(l->gid)) != 0)
		return DDPS_CM_REJ_ALT_GID;
	return 0;
}

/* A time that the peer asks for: up to 2.4 hours can be said, 9 s are more than anybody needs. */
static uint64_t peer_time(uint8_t code)
{
	return ddps_cm_time_ns(code < TIME_MOST ? code : TIME_MOST);
}

static void start_passive(struct ddps_cm *cm, struct ddps_cm_conn *c,
			  const struct ddps_cm_listener *l, ddps_cm_addr from)
{
	const struct ddps_cm_mad *mad = &cm->rx;
	const struct ddps_cm_req *req = &mad->u.req;
	uint8_t ack = req->primary.ack_timeout;

	c->remote_id = req->local_id;
	c->remote_guid = req->ca_guid;
	c->remote_qpn = req->qpn;
	ddps_cm_conn_known(cm, c);
	c->tid = mad->hdr.tid;
	c->resp_ns = peer_time(req->local_cm_timeout);
	c->retries = req->max_cm_retries;
	c->life = (uint8_t)(ack ? ack - 1 : 0);
	c->timewait_ns = peer_time(ack);
	c->addr = from;
	ddps_cm_conn_share(cm, c);
	c->user = l->user;
	memcpy(c->priv, l->priv, sizeof(c->priv));
}

static void take_req(struct ddps_cm *cm, ddps_cm_addr from, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_req *req = &cm->rx.u.req;
	const struct ddps_cm_listening *at = ddps_cm_listener_find(cm, req->service_id);
	const struct ddps_cm_listener *l = at ? &at->l : NULL;
	struct ddps_cm_conn *c = ddps_cm_conn_remote(cm, req->ca_guid, req->local_id);
	uint16_t reason;

	if (c) {
		feed_conn(cm, c->active ? NULL : c, DDPS_CM_EV_RX_REQ_DUP, now, o);
		return;
	}
	c = ddps_cm_conn_qpn(cm, req->ca_guid, req->qpn);
	if (c) {
		refuse_req(cm, DDPS_CM_REJ_STALE, l, from, o);
		close_stale(cm, c, now, o);
		return;
	}
	if (!l)
		reason = DDPS_CM_REJ_SERVICE_ID;
	else if (!req->local_id) /* 0 stands for "not known" */
		reason = DDPS_CM_REJ_COMM_ID;
	else
		reason = check_req_path(req, l);
	if (!reason && ddps_cm_conn_over_share(cm, from)) {
		cm->stats.over_share++;
		reason = DDPS_CM_REJ_NO_RESOURCES;
	}
	if (!reason) {
		c = ddps_cm_conn_new(cm);
		if (!c)
			reason = DDPS_CM_REJ_NO_RESOURCES;
	}
	if (reason) {
		refuse_req(cm, reason, l, from, o);
		return;
	}
	start_passive(cm, c, l, from);
	feed_conn(cm, c, DDPS_CM_EV_RX_REQ, now, o);
}

static void take_rep(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_rep *rep = &cm->rx.u.rep;
	struct ddps_cm_conn *c = by_own_req(cm, rep->remote_id), *other;

	if (!c) {
		c = by_ids(cm, rep->remote_id, rep->local_id);
		feed_conn(cm, c && c->active ? c : NULL, DDPS_CM_EV_RX_REP_DUP, now, o);
		return;
	}
	if (ddps_cm_conn_remote(cm, rep->ca_guid, rep->local_id)) {
		unmatched(cm);
		return;
	}
	other = ddps_cm_conn_qpn(cm, rep->ca_guid, rep->qpn);
	if (!other) {
		feed_conn(cm, c, DDPS_CM_EV_RX_REP, now, o);
		return;
	}
	feed_conn(cm, c, DDPS_CM_EV_RX_REP_STALE, now, o);
	close_stale(cm, other, now, o);
}

/* Reason 4 comes from a peer that may never have learned our ID: its GUID says who it is. */
static struct ddps_cm_conn *find_timed_out(struct ddps_cm *cm, const struct ddps_cm_rej *rej)
{
	uint64_t guid = 0;

	if (rej->info_len < 8)
		return NULL;
	for (unsigned i = 0; i < 8; i++)
		guid = guid << 8 | rej->ari[i];
	return ddps_cm_conn_remote(cm, guid, rej->local_id);
}

static void take_rej(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_rej *rej = &cm->rx.u.rej;
	struct ddps_cm_conn *c;

	if (rej->reason == DDPS_CM_REJ_TIMEOUT)
		c = find_timed_out(cm, rej);
	else if (rej->msg == DDPS_CM_MSG_REQ)
		c = by_own_req(cm, rej->remote_id);
	else
		c = by_ids(cm, rej->remote_id, rej->local_id);
	feed_conn(cm, c,
		  rej->reason == DDPS_CM_REJ_STALE ? DDPS_CM_EV_RX_REJ_STALE : DDPS_CM_EV_RX_REJ,
		  now, o);
}

static void rx_mra(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_mra *mra = &cm->rx.u.mra;
	struct ddps_cm_conn *c = NULL;

	if (mra->msg == DDPS_CM_MSG_REQ)
		c = by_own_req(cm, mra->remote_id);
	else if (mra->msg == DDPS_CM_MSG_REP)
		c = by_ids(cm, mra->remote_id, mra->local_id);
	feed_conn(cm, c, DDPS_CM_EV_RX_MRA, now, o);
}

static void rx_dreq(struct ddps_cm *cm, ddps_cm_addr from, uint64_t now, struct ddps_cm_outs *o)
{
	const struct ddps_cm_dreq *dreq = &cm->rx.u.dreq;
	struct ddps_cm_conn *c = by_ids(cm, dreq->remote_id, dreq->local_id);
	struct ddps_cm_mad m;

	if (c) {
		feed_conn(cm, c->local_qpn == dreq->remote_qpn ? c : NULL, DDPS_CM_EV_RX_DREQ, now,
			  o);
		return;
	}
	/* Never a REJ: whatever the DREQ meant is gone, which is what its sender wants. */
	ddps_cm_mad_init(&m, DDPS_CM_DREP, cm->rx.hdr.tid);
	m.u.drep.local_id = dreq->remote_id;
	m.u.drep.remote_id = dreq->local_id;
	ddps_cm_emit(o, &m, from);
	unmatched(cm);
}

static void take_rtu(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o)
{
	struct ddps_cm_conn *c = by_ids(cm, cm->rx.u.rtu.remote_id, cm->rx.u.rtu.local_id);

	feed_conn(cm, c && !c->active ? c : NULL, DDPS_CM_EV_RX_RTU, now, o);
}

static void rx_drep(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o)
{
	struct ddps_cm_conn *c = by_ids(cm, cm->rx.u.drep.remote_id, cm->rx.u.drep.local_id);

	feed_conn(cm, c, DDPS_CM_EV_RX_DREP, now, o);
}

int ddps_cm_rx(struct ddps_cm *cm, const void *buf, size_t len, ddps_cm_addr from, uint64_t now,
	       struct ddps_cm_outs *o)
{
	int err = ddps_cm_mad_decode(&cm->rx, buf, len);

	o->n_send = o->n_report = 0;
	cm->from = from;
	cm->stray = 0;
	if (err) {
		if (err == DDPS_E_UNSUPPORTED)
			cm->stats.unsupported++;
		else
			cm->stats.malformed++;
		return err;
	}
	switch (cm->rx.hdr.attr_id) {
	case DDPS_CM_REQ:
		take_req(cm, from, now, o);
		return 0;
	case DDPS_CM_REP:
		take_rep(cm, now, o);
		return 0;
	case DDPS_CM_RTU:
		take_rtu(cm, now, o);
		return 0;
	case DDPS_CM_REJ:
		take_rej(cm, now, o);
		return 0;
	case DDPS_CM_MRA:
		rx_mra(cm, now, o);
		return 0;
	case DDPS_CM_DREQ:
		rx_dreq(cm, from, now, o);
		return 0;
	case DDPS_CM_DREP:
		rx_drep(cm, now, o);
		return 0;
	default:
		cm->stats.unsupported++;
		return DDPS_E_UNSUPPORTED;
	}
}
