/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections from REQ to DREP, in both roles. */
#include "conform/ipoib/peer.h"
#include <string.h>

#define REP_TIME 16u /* 268 ms for an RTU; cases about losses set their own */
#define RETRIES	 15u
#define ECHO	 84u /* octets of an echo that makes the target connect */
#define AGAIN	 700000000ull

static struct ci_conn *conn_new(struct ci *ci)
{
	struct ci_conn *c;

	CI_CHECK(ci, ci->n_conns < CI_CONNS, "the peer is out of connections");
	c = &ci->conn[ci->n_conns++];
	*c = (struct ci_conn){ .id = ci->next_id++, .qp = ci_qp_new(ci) };
	return c;
}

struct ci_conn *ci_req(struct ci *ci)
{
	struct ci_conn *c = conn_new(ci);
	uint8_t *m = c->req;

	ci_mad(m, 7, 3, CI_REQ, ci->next_tid++);
	cf_put32(m + CM_LOCAL, c->id);
	m[REQ_SID] = (uint8_t)(ci->sid_form ? ci->sid_form : 1);
	ci_put24(m + REQ_SID + 5, ci->target.qpn);
	cf_put64(m + REQ_GUID, ci->me.guid);
	ci_put24(m + REQ_QPN, c->qp->qpn);
	m[REQ_TYPE] = 20 << 3;
	ci_put24(m + REQ_PSN, c->qp->first);
	m[REQ_LOCAL_TIME] = REP_TIME << 3 | 7;
	cf_put16(m + REQ_PKEY, ci->plan.pkey);
	m[REQ_MTU] = (uint8_t)(ci->plan.mtu << 4 | 7);
	m[REQ_RETRIES] = RETRIES << 4;
	cf_put16(m + REQ_LLID, ci->lid);
	cf_put16(m + REQ_RLID, ci->target.lid);
	memcpy(m + REQ_LGID, ci->me.lla + 4, CI_GID);
	memcpy(m + REQ_RGID, ci->target.lla + 4, CI_GID);
	m[REQ_RATE] = 3;
	m[REQ_SL] = 1 << 3;
	m[REQ_ACK_TIME] = (uint8_t)((ci->plan.life + 1) << 3);
	ci_put_private(ci, m, ci->rx_mtu);
	return c;
}

void ci_rep_in(struct ci *ci, struct ci_conn *c, const uint8_t *m)
{
	CI_CHECK(ci, cf_get32(m + CM_REMOTE) == c->id, "a REP for ID %08x, not %08x",
		 cf_get32(m + CM_REMOTE), c->id);
	CI_CHECK(ci, cf_get32(m + CM_LOCAL), "a REP with ID 0");
	memcpy(c->rep, m, CI_MAD);
	c->peer_id = cf_get32(m + CM_LOCAL);
	c->peer_qpn = c->qp->peer = ci_get24(m + REP_QPN);
	c->qp->psn = ci_get24(m + REP_PSN);
	c->rx_mtu = cf_get32(m + REP_PRIV + 4);
	ci->target.guid = cf_get64(m + REP_GUID);
	if (ci->fab.used)
		ci_fab_qp_ready(ci, c->qp);
}

void ci_rtu(struct ci *ci, struct ci_conn *c, bool two_way)
{
	ci_mad(c->rtu, 7, 3, CI_RTU, cf_get64(c->req + M_TID));
	cf_put32(c->rtu + CM_LOCAL, c->id);
	cf_put32(c->rtu + CM_REMOTE, c->peer_id);
	if (two_way)
		ci_put_private(ci, c->rtu, ci->rx_mtu);
	ci_cm_send(ci, c->rtu);
	c->up = true;
}

struct ci_conn *ci_connect(struct ci *ci, bool two_way)
{
	struct ci_conn *c = ci_req(ci);

	ci_cm_send(ci, c->req);
	ci_rep_in(ci, c, ci_want(ci, CI_REP));
	ci_rtu(ci, c, two_way);
	return c;
}

/* ---- the target connects ---- */

struct ci_conn *ci_req_in(struct ci *ci, const uint8_t *m, uint64_t at)
{
	struct ci_conn *c = conn_new(ci);

	c->by_target = true;
	c->req_at = at;
	memcpy(c->req, m, CI_MAD);
	c->peer_id = cf_get32(m + CM_LOCAL);
	c->peer_qpn = c->qp->peer = ci_get24(m + REQ_QPN);
	c->qp->psn = ci_get24(m + REQ_PSN);
	if (m[REQ_MTU] >> 4 >= 1 && m[REQ_MTU] >> 4 <= 5)
		c->qp->mtu = 128u << (m[REQ_MTU] >> 4);
	c->rx_mtu = cf_get32(m + REQ_PRIV + 4);
	ci->target.guid = cf_get64(m + REQ_GUID);
	if (ci->fab.used)
		ci_fab_qp_ready(ci, c->qp);
	return c;
}

struct ci_conn *ci_provoke(struct ci *ci)
{
	uint64_t until = ci_limit(ci, CI_PART_REQ), next;
	const uint8_t *m;

	ci_due(ci, "a REQ, with which the target asks for a connection");
	while (cf_now() < until) {
		ci_echo_ud(ci, ECHO);
		next = cf_now() + AGAIN;
		m = ci_came(ci, CI_REQ, next < until ? next : until);
		if (m)
			return ci_req_in(ci, m, ci->at->at);
	}
	ci_fail(ci, "the target does not connect, though we say that we take connections");
}

void ci_rep(struct ci *ci, struct ci_conn *c)
{
	uint8_t *m = c->rep;

	ci_mad(m, 7, 3, CI_REP, cf_get64(c->req + M_TID));
	cf_put32(m + CM_LOCAL, c->id);
	cf_put32(m + CM_REMOTE, c->peer_id);
	ci_put24(m + REP_QPN, c->qp->qpn);
	ci_put24(m + REP_PSN, c->qp->first);
	m[REP_RNR] = 7 << 5;
	cf_put64(m + REP_GUID, ci->me.guid);
	ci_put_private(ci, m, ci->rx_mtu);
}

void ci_accept(struct ci *ci, struct ci_conn *c)
{
	ci_rep(ci, c);
	ci_cm_send(ci, c->rep);
	memcpy(c->rtu, ci_want(ci, CI_RTU), CI_MAD);
	c->up = true;
}

/* ---- the end ---- */

void ci_disconnect(struct ci *ci, struct ci_conn *c)
{
	uint8_t q[CI_MAD];
	const uint8_t *m;

	ci_dreq(ci, q, c);
	ci_cm_send(ci, q);
	m = ci_want(ci, CI_DREP);
	CI_CHECK(ci, cf_get32(m + CM_LOCAL) == c->peer_id && cf_get32(m + CM_REMOTE) == c->id,
		 "a DREP with IDs %08x and %08x", cf_get32(m + CM_LOCAL), cf_get32(m + CM_REMOTE));
	CI_CHECK(ci, ci_tid(ci, m) == ci_tid(ci, q),
		 "a DREP with another transaction ID than its DREQ");
	c->up = false;
}

void ci_gone(struct ci *ci, struct ci_conn *c)
{
	struct ci_ev *e;

	ci_disconnect(ci, c);
	/* Linux sends its DREP before it stops the queue pair; its CM has one thread, and answers this
	 * when the queue pair is stopped. */
	ci_quiet(ci);
	ci_echo_rc(ci, c, ECHO);
	ci_quiet(ci);
	ci_ud_quiet(ci);
	CI_CHECK(ci, !ci->fab.used || !ci_fab_acked(ci, c->qp),
		 "the queue pair of a connection that is over acknowledges");
	while ((e = ci_await(ci, CI_EV_ACK | CI_EV_MSG, 0)))
		CI_CHECK(ci, e->qp != c->qp, "the queue pair of a connection that is over answers");
}

void ci_alive(struct ci *ci)
{
	struct ci_conn *c = ci_connect(ci, false);

	ci_echo_rc(ci, c, ECHO);
	ci_want_acked(ci, c->qp);
	ci_disconnect(ci, c);
}
