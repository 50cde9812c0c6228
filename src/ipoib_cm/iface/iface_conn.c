/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: queue pairs for what link.c decides, and what CM says of them. */
#include <string.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/iface/iface_in.h"

#define RNR_FOREVER 7 /* IBA volume 1, 9.7.5.2.8: no count */

#define NODE_OF(l) ((struct ddps_ipoib_node *)((char *)(l)-offsetof(struct ddps_ipoib_node, link)))

static void unsettle(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	n->settle = true;
	if (n->unsettled)
		return;
	n->unsettled = true;
	SLIST_INSERT_HEAD(&f->unsettled, n, on_unsettled);
}

static void flush_conn(struct ddps_ipoib_if *f, const struct ddps_cm_send *s)
{
	if (f->calls.trace)
		f->calls.trace(f->calls.user, true, s->to, s->mad, sizeof(s->mad), f->now);
	f->stats.tx_failed += f->port->ops->mad_send(f->port, s->to, s->mad) != 0;
}

static void flush_all(struct ddps_ipoib_if *f, const struct ddps_cm_outs *o)
{
	for (unsigned i = 0; i < o->n_send; i++)
		flush_conn(f, &o->send[i]);
}

/* ---- What link.c asks for ---- */

static void send_link_mad(void *user, const struct ddps_cm_send *s)
{
	flush_conn(user, s);
}

static int ask_link_qp(void *user, struct ddps_ipoib_link *l, struct ddps_cm_req *req)
{
	struct ddps_ipoib_if *f = user;
	const struct ddps_ipoib_path *path = &NODE_OF(l)->path;
	struct ddps_cm_path *p = &req->primary;
	struct ddps_ipoib_qp *qp;
	int err = ddps_ipoib_qp_make(f, NODE_OF(l), req->transport, &qp);

	if (err)
		return err;
	qp->active = true;
	unsettle(f, NODE_OF(l)); /* its ID comes later */
	req->qpn = qp->qpn;
	req->starting_psn = qp->psn;
	req->remote_cm_timeout = req->local_cm_timeout = f->cfg.cm_timeout;
	req->max_cm_retries = f->cfg.cm_retries;
	req->retry_count = f->cfg.retry_count;
	req->rnr_retry = f->cfg.rnr_retry;
	req->path_mtu = path->mtu;
	p->local_lid = path->slid;
	p->remote_lid = path->dlid;
	p->sl = path->sl;
	p->rate = path->rate;
	p->traffic_class = path->traffic_class;
	p->flow_label = path->flow_label;
	p->hop_limit = path->hop_limit;
	p->subnet_local = path->hop_limit <= 1;
	p->ack_timeout = ddps_cm_ack_timeout(path->life, 0);
	return 0;
}

static int answer_link_req(void *user, struct ddps_ipoib_link *l, uint32_t id,
			   const struct ddps_cm_req *req, struct ddps_cm_rep *rep)
{
	struct ddps_ipoib_if *f = user;
	struct ddps_ipoib_node *n = NODE_OF(l);
	struct ddps_ipoib_qp *qp;
	int err = ddps_ipoib_qp_make(f, n, req->transport, &qp);

	if (err)
		return err;
	ddps_ipoib_qp_name(f, qp, id);
	qp->by_req = !n->has_path || (n->path.dlid && n->path.dlid != (uint16_t)n->req_from);
	if (qp->by_req)
		qp->dlid = (uint16_t)n->req_from;
	err = ddps_ipoib_qp_ready(f, qp, req->qpn, req->starting_psn, req->private_data);
	if (err) {
		ddps_ipoib_qp_free(f, qp);
		return err;
	}
	rep->qpn = qp->qpn;
	rep->starting_psn = qp->psn;
	/* the peer's sends wait for us without end: a full receiver ends no connection */
	rep->rnr_retry = RNR_FOREVER;
	return 0;
}

static void bring_conn_up(void *user, struct ddps_ipoib_link *l, uint32_t id, uint32_t mtu,
			  bool to_send)
{
	struct ddps_ipoib_if *f = user;
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_id(f, id);

	if (!qp || qp->stopped)
		return;
	qp->up = true;
	qp->mtu = mtu;
	qp->to_send = to_send;
	ddps_ipoib_qp_is_used(f, qp);
	f->stats.conn_up++;
	unsettle(f, NODE_OF(l));
}

static void take_conn_down(void *user, struct ddps_ipoib_link *l, uint32_t id)
{
	struct ddps_ipoib_if *f = user;
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_id(f, id);

	unsettle(f, NODE_OF(l));
	if (qp)
		ddps_ipoib_qp_stop(f, qp);
}

static void resolve_link(void *user, struct ddps_ipoib_link *l)
{
	NODE_OF(l)->resolve = true;
	unsettle(user, NODE_OF(l));
}

const struct ddps_ipoib_link_ops ddps_ipoib_conn_ops = { send_link_mad,	  ask_link_qp,
							 answer_link_req, bring_conn_up,
							 take_conn_down,  resolve_link };

/* ---- After a call of link.c ---- */

/* Own queue pairs get the ID of their connection, or go if none came of them. */
static void name_qps(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	bool asked = n->link.peer.own == DDPS_IPOIB_OWN_REQ_OUT && n->link.peer.own_id &&
		     !ddps_ipoib_conn_by_id(f, n->link.peer.own_id);

	for (struct ddps_ipoib_qp *qp = LIST_FIRST(&n->qps), *next; qp; qp = next) {
		next = LIST_NEXT(qp, of_node);
		if (qp->id)
			continue;
		if (asked)
			ddps_ipoib_qp_name(f, qp, n->link.peer.own_id);
		else
			ddps_ipoib_qp_free(f, qp);
		asked = false;
	}
}

/* A connection that is not wanted any more may have been refused before it was known. */
static void drop_unknown(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	struct ddps_ipoib_qp *qp;

	LIST_FOREACH(qp, &n->qps, of_node)
		if (!qp->stopped && !ddps_ipoib_peer_knows(&n->link.peer, qp->id))
			ddps_ipoib_qp_stop(f, qp);
}

static void settle_node(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	const struct ddps_ipoib_peer *p = &n->link.peer;
	struct ddps_ipoib_qp *qp;

	if (!n->settle || !n->used)
		return;
	n->settle = false;
	name_qps(f, n);
	drop_unknown(f, n);
	ddps_ipoib_qp_collect(f);
	if (n->resolve) {
		n->resolve = false;
		ddps_ipoib_nbr_reresolve(f, n);
		ddps_ipoib_node_doubt(f, n);
	}
	ddps_ipoib_tx_mtu(f, n, &qp);
	if (n->held && (qp || (p->own != DDPS_IPOIB_OWN_REQ_OUT && !p->n_pending))) {
		n->held = false;
		ddps_ipoib_tx_queue(f, n, &n->hold);
	}
}

/* What links have in common is set for the one at hand: each path has its lifetime. */
static void set_life(struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n)
{
	f->links.packet_life = n->has_path ? n->path.life : f->cfg.cm_timeout;
}

void ddps_ipoib_conn_traffic(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	if (f->cfg.passive)
		return;
	set_life(f, n);
	ddps_ipoib_link_traffic(&n->link, f->now);
	if (n->settle) {
		n->settle = false; /* the packet at hand is the caller's, held ones wait */
		name_qps(f, n);
	}
}

/*
 * What follows from a change may send, and sending may change more: so nothing settles a node from
 * inside a call that sends, and each way into the interface ends here.  It comes to an end since
 * every failure takes a connection with it.
 */
void ddps_ipoib_conn_settle_all(struct ddps_ipoib_if *f)
{
	struct ddps_ipoib_node *n;

	while ((n = SLIST_FIRST(&f->unsettled))) {
		SLIST_REMOVE_HEAD(&f->unsettled, on_unsettled);
		n->unsettled = false;
		settle_node(f, n);
		if (!n->unsettled)
			ddps_ipoib_node_settled(f, n);
	}
}

void ddps_ipoib_conn_broken(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	struct ddps_ipoib_node *n = qp->node;

	if (!n || qp->stopped)
		return;
	ddps_ipoib_link_broken(&n->link, qp->id, f->now);
	unsettle(f, n);
}

void ddps_ipoib_conn_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	struct ddps_ipoib_if *f = user;
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_qpn(f, qpn);

	(void)err;
	f->now = now;
	if (!qp || qp->stopped)
		return;
	f->stats.conn_error++;
	if (qp->node)
		ddps_ipoib_node_doubt(f, qp->node);
	ddps_ipoib_conn_broken(f, qp);
}

/* The peer is informed by the new way. */
void ddps_ipoib_conn_moved(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	struct ddps_ipoib_qp *qp;

	f->stats.path_moved++;
	LIST_FOREACH(qp, &n->qps, of_node) {
		struct ddps_cm_conn *c = qp->id ? ddps_cm_conn_find(f->cm, qp->id) : NULL;

		if (!c || (qp->by_req && qp->dlid == n->path.dlid))
			continue;
		c->addr = n->path.addr; /* also of a DREQ that is under way already */
		ddps_ipoib_conn_broken(f, qp);
	}
}

/* ---- CM messages ---- */

static void conn_req_in(struct ddps_ipoib_if *f, const struct ddps_cm_report *r)
{
	struct ddps_ipoib_node *n = NULL;
	struct ddps_ipoib_lladdr peer;
	struct ddps_ipoib_priv priv;
	struct ddps_cm_outs o;
	uint16_t reason = ddps_ipoib_admit_req(&f->cfg.me, &r->mad->u.req, &peer, &priv);

	if (!reason) {
		n = ddps_ipoib_node_get(f, &peer);
		reason = n ? 0 : DDPS_CM_REJ_NO_RESOURCES;
	}
	if (reason) {
		f->stats.req_refused++;
		if (!ddps_cm_reject(f->cm, r->id, reason, NULL, f->now, &o))
			flush_all(f, &o);
		return;
	}
	if (!n->has_path)
		n->link.addr = r->addr;
	n->req_from = r->addr;
	ddps_ipoib_node_seen_at(f, n, (uint16_t)r->addr);
	ddps_ipoib_link_report(&n->link, r, f->now);
	unsettle(f, n);
}

/*
 * Data has come and no RTU, for all the REPs sent again: nobody can tell whether the peer uses
 * both directions.  Taken for a peer that does not, a second connection could stay for good,
 * as the end that has to close one of two would not know that it has two.  So it ends, and
 * the next packet asks for another.
 */
static void no_rtu(struct ddps_ipoib_if *f, const struct ddps_cm_report *r)
{
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_id(f, r->id);

	if (qp && r->ev == DDPS_CM_EV_T_END_DATA)
		ddps_ipoib_conn_broken(f, qp);
}

/* The queue pair has to be able to receive before the RTU goes out. */
static void conn_rep_in(struct ddps_ipoib_if *f, const struct ddps_cm_report *r)
{
	const struct ddps_cm_rep *rep = &r->mad->u.rep;
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_id(f, r->id);
	struct ddps_ipoib_priv priv;
	bool broken;

	if (!qp || !qp->node || qp->stopped)
		return;
	broken = !ddps_ipoib_admit_rep(&f->cfg.me, rep, &priv) &&
		 ddps_ipoib_qp_ready(f, qp, rep->qpn, rep->starting_psn, rep->private_data);
	ddps_ipoib_link_report(&qp->node->link, r, f->now);
	unsettle(f, qp->node);
	if (broken) {
		f->stats.conn_error++;
		ddps_ipoib_conn_broken(f, qp);
	}
}

/* @from: the LID that the message came from; 0: there was none */
static void take_cm_report(struct ddps_ipoib_if *f, const struct ddps_cm_report *r, uint16_t from)
{
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_id(f, r->id);
	struct ddps_ipoib_node *n = qp ? qp->node : NULL;
	struct ddps_cm_outs o;

	if (n)
		ddps_ipoib_node_seen_at(f, n, from);
	if (r->ev == DDPS_CM_EV_RX_REQ) {
		conn_req_in(f, r);
	} else if (r->ev == DDPS_CM_EV_RX_REP) {
		conn_rep_in(f, r);
	} else if (n) {
		set_life(f, n);
		ddps_ipoib_link_report(&n->link, r, f->now);
		unsettle(f, n);
		no_rtu(f, r);
	} else if (r->ev == DDPS_CM_EV_RX_DREQ && !ddps_cm_closed(f->cm, r->id, f->now, &o)) {
		flush_all(f, &o);
	}
}

static void take_cm_outs(struct ddps_ipoib_if *f, const struct ddps_cm_outs *o, uint16_t from)
{
	flush_all(f, o);
	for (unsigned i = 0; i < o->n_report; i++)
		take_cm_report(f, &o->report[i], from);
	ddps_ipoib_conn_settle(f);
	ddps_ipoib_qp_collect(f);
}

static void seen_elsewhere(struct ddps_ipoib_if *f, uint32_t id, uint16_t lid)
{
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_id(f, id);

	if (qp && qp->node)
		ddps_ipoib_node_seen_at(f, qp->node, lid);
}

void ddps_ipoib_conn_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	struct ddps_ipoib_if *f = user;
	const struct ddps_cm_stats *cm = ddps_cm_stats(f->cm);
	const uint64_t refused = cm->refused;
	struct ddps_cm_outs o;

	f->now = now;
	if (f->calls.trace)
		f->calls.trace(f->calls.user, false, from, mad, len, now);
	if (ddps_cm_rx(f->cm, mad, len, from, now, &o)) {
		f->stats.mad_bad++;
		return;
	}
	f->stats.req_refused += cm->refused - refused; /* by the agent: it is full, for one */
	if (f->cm->stray) /* the peer may have moved; the path says whether it has */
		seen_elsewhere(f, f->cm->stray, (uint16_t)from);
	take_cm_outs(f, &o, (uint16_t)from);
	ddps_ipoib_check(f);
}

/* A timer has ended.  Its queue pair may have been used since it was set. */
static void look_whether_idle(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp)
{
	uint64_t end = qp->used_at + f->cfg.idle_ns;

	ddps_due_set(&f->qp_dues, &qp->due, end > f->now ? end : DDPS_CM_NEVER);
	if (end > f->now || !qp->up || !qp->node)
		return;
	f->stats.conn_idle++;
	ddps_ipoib_conn_broken(f, qp);
}

void ddps_ipoib_conn_tick(struct ddps_ipoib_if *f)
{
	struct ddps_cm_outs o;
	struct ddps_due *due;

	while (ddps_cm_tick(f->cm, f->now, &o))
		take_cm_outs(f, &o, 0);
	while ((due = ddps_dues_ready(&f->qp_dues, f->now)))
		look_whether_idle(
			f, (struct ddps_ipoib_qp *)(void *)((char *)due -
							    offsetof(struct ddps_ipoib_qp, due)));
}

uint64_t ddps_ipoib_conn_deadline(const struct ddps_ipoib_if *f)
{
	return ddps_ipoib_min(ddps_cm_deadline(f->cm), ddps_dues_first(&f->qp_dues));
}

int ddps_ipoib_if_conn_info(const struct ddps_ipoib_if *f, unsigned nr,
			    struct ddps_ipoib_if_conn_info *info)
{
	const struct ddps_ipoib_qp *qp = nr < f->n_qp ? &f->qp[nr] : NULL;

	if (!qp || !qp->used || qp->stopped || !qp->node)
		return qp ? 0 : -1;
	*info = (struct ddps_ipoib_if_conn_info){ .qpn = qp->qpn,
						  .id = qp->id,
						  .peer = qp->node->lladdr,
						  .active = qp->active,
						  .up = qp->up,
						  .to_send = qp->to_send,
						  .uc = qp->transport == DDPS_CM_UC,
						  .mtu = qp->mtu };
	return 1;
}
