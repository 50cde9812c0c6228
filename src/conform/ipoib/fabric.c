/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port of a fabric in place of sockets.  What it says is kept as it comes, and dealt with when its
 * turn is over: a case may leave from there, and must not leave from inside the port.
 */
#include "conform/ipoib/peer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS	  1000000ull
#define KEPT_MAX  4096u /* events that have not been dealt with */
#define TX_WAIT	  (2000 * MS)
#define MSG_MAX	  65536u
#define MCAST_QPN 0xffffffu
#define IP_EXTRA  28u
#define RETRIES	  7u

enum { CAME_UD, CAME_MAD, CAME_MSG, CAME_ERROR };

struct ci_came {
	STAILQ_ENTRY(ci_came) of_all;
	int what, err;
	uint32_t qpn;
	struct ddps_ipoib_ud_from from;
	size_t len;
	uint8_t b[];
};

/* ---- what the port says ---- */

static struct ci_came *keep_arrival(struct ci_fab *f, int what, const void *b, size_t len)
{
	struct ci_came *c = f->n < KEPT_MAX ? calloc(1, sizeof *c + len) : NULL;

	if (!c) {
		f->lost = true;
		return NULL;
	}
	c->what = what;
	c->len = len;
	if (len)
		memcpy(c->b, b, len);
	STAILQ_INSERT_TAIL(&f->came, c, of_all);
	f->n++;
	return c;
}

static void keep_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
		    size_t len, uint64_t now)
{
	struct ci_came *c = keep_arrival(user, CAME_UD, frame, len);

	(void)now;
	if (c)
		c->from = *from;
}

static void keep_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	(void)from, (void)now;
	(void)keep_arrival(user, CAME_MAD, mad, len);
}

static void keep_qp_message(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	struct ci_came *c = keep_arrival(user, CAME_MSG, frame, len);

	(void)now;
	if (c)
		c->qpn = qpn;
}

static void keep_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	struct ci_came *c = keep_arrival(user, CAME_ERROR, NULL, 0);

	(void)now;
	if (!c)
		return;
	c->qpn = qpn;
	c->err = err;
}

static void take_fab_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			  const struct ddps_ipoib_path *path, uint64_t now)
{
	struct ci_fab *f = user;

	(void)gid, (void)now;
	f->answered = true;
	f->path = path ? *path : (struct ddps_ipoib_path){ 0 };
}

static void take_fab_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
			    uint32_t link_mtu, uint64_t now)
{
	struct ci_fab *f = user;

	(void)mgid, (void)now;
	f->answered = true;
	f->join_err = err;
	f->link_mtu = link_mtu;
}

static void take_fab_link(void *user, bool up, uint64_t now)
{
	(void)now;
	((struct ci_fab *)user)->down = !up;
}

static const struct ddps_ipoib_up up_calls = { .struct_size = sizeof(up_calls),
					       .ud = keep_ud,
					       .mad = keep_mad,
					       .qp = keep_qp_message,
					       .qp_error = keep_qp_error,
					       .path = take_fab_path,
					       .joined = take_fab_joined,
					       .link = take_fab_link };

static void forget_arrivals(struct ci_fab *f)
{
	struct ci_came *c;

	while ((c = STAILQ_FIRST(&f->came))) {
		STAILQ_REMOVE_HEAD(&f->came, of_all);
		free(c);
	}
	STAILQ_INIT(&f->came);
	f->n = 0;
	free(f->at);
	f->at = NULL;
}

/* ---- what was sent and came, for captures: packets as they would be in UDP ---- */

static void record_packet(struct ci *ci, bool by_target, struct ci_pkt *p)
{
	/* 192.0.2.1 is the suite, .2 the target; whose LIDs say nothing to a reader */
	const struct ci_addr a = { .src = 0xc0000201u + by_target,
				   .dst = 0xc0000202u - by_target,
				   .sport = ci->plan.port,
				   .dport = ci->plan.port };
	uint8_t b[CI_PKT_MAX], ip[IP_EXTRA + CI_PKT_MAX];
	size_t len;

	if (!ci->trace || p->len > 4096)
		return;
	p->pkey = ci->plan.pkey;
	len = ci_pkt_build(b, p, &a);
	cf_trace_ib(ci->trace, by_target, ip, ci_pkt_ip(ip, b, len, &a));
}

static void record_mad(struct ci *ci, bool by_target, const uint8_t *m)
{
	struct ci_pkt p = { .op = CI_UD | CI_ONLY,
			    .qpn = 1,
			    .src_qpn = 1,
			    .qkey = 0x80010000,
			    .data = m,
			    .len = CI_MAD };

	record_packet(ci, by_target, &p);
}

static void record_ud(struct ci *ci, bool by_target, uint32_t qpn, const void *b, size_t len)
{
	struct ci_pkt p = { .op = CI_UD | CI_ONLY,
			    .qpn = qpn,
			    .src_qpn = by_target ? ci->target.qpn : ci->me.qpn,
			    .data = b,
			    .len = len };

	record_packet(ci, by_target, &p);
}

/* ---- turns ---- */

static void run_fabric(struct ci *ci, uint64_t until)
{
	uint64_t now = cf_now(), nap = until > now ? until - now : 0;

	if (nap > CF_NAP_MS * MS)
		nap = CF_NAP_MS * MS;
	(void)cf_late_nap(&ci->left.late, until, now, (int)(nap / MS));
	ci->fab.f.run(ci->fab.f.user, now + nap);
	cf_late_woke(&ci->left.late, cf_now());
}

static void await_fabric(struct ci *ci, const char *what)
{
	uint64_t until = ci_limit(ci, CI_PART_LINK);

	while (!ci->fab.answered && cf_now() < until)
		run_fabric(ci, until);
	CI_CHECK(ci, ci->fab.answered, "%s: the fabric gives no answer", what);
}

/* Somebody else's datagrams are no business of a case. */
static void take_fab_frame(struct ci *ci, const struct ci_came *c)
{
	bool of_target =
		c->from.has_gid && !memcmp(c->from.gid, ci->target.lla + 4, sizeof c->from.gid);
	struct ci_ev *e;

	if (ci->target.known && c->from.qpn != ci->target.qpn) {
		if (of_target)
			ci_lint(ci, CI_LINT_SOURCE, "a datagram from queue pair %06x", c->from.qpn);
		return;
	}
	record_ud(ci, true, c->from.multicast ? MCAST_QPN : ci->me.qpn, c->b, c->len);
	if (c->len < CI_ENCAP || c->b[2] || c->b[3])
		ci_lint(ci, CI_LINT_ENCAP, "encapsulation header %s",
			cf_hex(c->b, c->len < CI_ENCAP ? c->len : CI_ENCAP));
	e = ci_event(ci, CI_EV_FRAME, c->b, c->len);
	e->src_qpn = c->from.qpn;
	e->mlid = c->from.multicast ? ci->group[0].mlid : 0; /* it is the only one joined */
}

static void message_in(struct ci *ci, struct ci_qp *qp, const struct ci_came *c)
{
	struct ci_ev *e;

	if (c->len < CI_ENCAP || c->b[2] || c->b[3])
		ci_lint(ci, CI_LINT_ENCAP, "encapsulation header %s",
			cf_hex(c->b, c->len < CI_ENCAP ? c->len : CI_ENCAP));
	e = ci_event(ci, CI_EV_MSG, c->b, c->len);
	e->qp = qp;
}

static struct ci_qp *find_fab_qp(struct ci *ci, uint32_t qpn)
{
	for (unsigned i = 0; i < CI_QPS; i++)
		if (ci->qp[i].used && ci->qp[i].qpn == qpn)
			return &ci->qp[i];
	return NULL;
}

static void take_arrival(struct ci *ci, const struct ci_came *c)
{
	struct ci_qp *qp =
		c->what == CAME_UD || c->what == CAME_MAD ? NULL : find_fab_qp(ci, c->qpn);

	if (c->what == CAME_UD) {
		take_fab_frame(ci, c);
	} else if (c->what == CAME_MAD && c->len == CI_MAD) {
		if (ci_attr(c->b) == CI_REQ &&
		    memcmp(c->b + REQ_LGID, ci->target.lla + 4, CI_GID) != 0)
			return; /* of somebody else */
		record_mad(ci, true, c->b);
		ci_cm_rx(ci, ci->target.lid, c->b);
	} else if (c->what == CAME_MSG && qp) {
		message_in(ci, qp, c);
	} else if (c->what == CAME_ERROR && qp) {
		qp->failed = c->err;
	}
}

void ci_fab_pump(struct ci *ci, uint64_t until)
{
	struct ci_fab *f = &ci->fab;

	if (STAILQ_EMPTY(&f->came))
		run_fabric(ci, until);
	while (!STAILQ_EMPTY(&f->came)) {
		free(f->at);
		f->at = STAILQ_FIRST(
			&f->came); /* freed later: what is done with it may leave the case */
		STAILQ_REMOVE_HEAD(&f->came, of_all);
		f->n--;
		take_arrival(ci, f->at);
	}
	CI_CHECK(ci, !f->lost, "more comes from the fabric than can be kept");
	CI_CHECK(ci, !f->down, "the port went down");
}

/* ---- life ---- */

static void resolve_target(struct ci *ci)
{
	struct ci_fab *f = &ci->fab;

	f->answered = false;
	if (f->port->ops->resolve(f->port, ci->target.lla + 4))
		ci_fail(ci, "the path to the target cannot be asked for");
	await_fabric(ci, "the path to the target");
	CI_CHECK(ci, f->path.addr, "there is no path to the target's GID");
	ci->target.lid = f->path.dlid;
	ci->lid = f->path.slid;
	ci->plan.mtu = f->path.mtu;
	ci->plan.life = f->path.life;
}

void ci_fab_path(struct ci *ci)
{
	resolve_target(ci);
}

void ci_fab_open(struct ci *ci)
{
	struct ci_fab *f = &ci->fab;
	struct ddps_conform_ipoib_node node = { 0 };
	char why[400] = "";
	uint8_t mgid[CI_GID] = { 0xff, 0x12, 0x40, 0x1b, [12] = 0xff, 0xff, 0xff, 0xff };

	ci_fab_close(ci);
	f->port = f->f.open(f->f.user, &up_calls, f, &node, why, sizeof why);
	CI_CHECK(ci, f->port, "%s", why);
	memcpy(ci->plan.gid, node.gid, CI_GID);
	ci->plan.pkey = node.pkey;
	f->qpn = node.qpn;
	cf_put16(mgid + 4, node.pkey | 0x8000);
	f->answered = false;
	if (f->port->ops->join(f->port, mgid))
		ci_fail(ci, "the broadcast group cannot be joined");
	await_fabric(ci, "the broadcast group");
	CI_CHECK(ci, !f->join_err, "the broadcast group cannot be joined (error %d)", f->join_err);
	ci->mtu = f->link_mtu;
	if (!ci->group[0].mlid)
		(void)ci_group_make(ci, mgid, 0);
	if (ci->target.known)
		resolve_target(ci);
}

void ci_fab_close(struct ci *ci)
{
	struct ci_fab *f = &ci->fab;

	if (f->port)
		f->f.close(f->f.user);
	f->port = NULL;
	f->lost = f->down = false;
	forget_arrivals(f);
	for (unsigned i = 0; i < CI_QPS; i++)
		ci->qp[i].gone = true;
}

/* ---- datagrams and MADs ---- */

/* Linux's ib_umad refuses a MAD whose transaction has one that is still on its way. */
void ci_fab_mad(struct ci *ci, const uint8_t *m)
{
	struct ci_fab *f = &ci->fab;
	uint64_t until = cf_now() + TX_WAIT;

	record_mad(ci, false, m);
	while (f->port->ops->mad_send(f->port, f->path.addr, m)) {
		CI_CHECK(ci, cf_now() < until, "the port does not send a MAD");
		run_fabric(ci, cf_now() + MS);
	}
}

void ci_fab_ud(struct ci *ci, const uint8_t *mgid, const void *frame, size_t len)
{
	struct ddps_ipoib_lladdr to = { .qpn = mgid ? MCAST_QPN : ci->target.qpn };
	struct ddps_ipoib_port *port = ci->fab.port;
	uint64_t until = cf_now() + TX_WAIT;

	memcpy(to.gid, mgid ? mgid : ci->target.lla + 4, CI_GID);
	record_ud(ci, false, to.qpn, frame, len);
	while (port->ops->ud_send(port, &to, mgid ? NULL : &ci->fab.path, frame, len) ==
		       DDPS_E_AGAIN &&
	       cf_now() < until)
		run_fabric(ci, cf_now() + MS);
}

/* ---- connections ---- */

void ci_fab_qp_new(struct ci *ci, struct ci_qp *qp)
{
	struct ddps_ipoib_port *port = ci->fab.port;
	int err = port->ops->qp_create(port, DDPS_CM_RC, MSG_MAX, &qp->qpn);

	CI_CHECK(ci, !err, "the port gives no queue pair (error %d)", err);
}

void ci_fab_qp_ready(struct ci *ci, struct ci_qp *qp)
{
	struct ddps_ipoib_port *port = ci->fab.port;
	struct ddps_ipoib_qp_to to = { .qpn = qp->peer,
				       .tx_psn = qp->psn,
				       .rx_psn = qp->first,
				       .rx_mtu = CI_RX_MTU,
				       .path = ci->fab.path,
				       .ack_timeout = (uint8_t)(ci->plan.life + 1),
				       .retry_count = RETRIES,
				       .rnr_retry = RETRIES };
	int err;

	if (qp->gone)
		return;
	for (to.path.mtu = 1; to.path.mtu < 5 && 128u << to.path.mtu < qp->mtu; to.path.mtu++)
		;
	to.peer.qpn = ci->target.qpn;
	memcpy(to.peer.gid, ci->target.lla + 4, CI_GID);
	err = port->ops->qp_ready(port, qp->qpn, &to);
	CI_CHECK(ci, !err, "queue pair %06x is not made ready (error %d)", qp->qpn, err);
}

void ci_fab_qp_send(struct ci *ci, struct ci_qp *qp, const void *b, size_t len)
{
	struct ddps_ipoib_port *port = ci->fab.port;
	uint64_t until = cf_now() + TX_WAIT;

	while (!qp->gone && port->ops->qp_send(port, qp->qpn, b, len) == DDPS_E_AGAIN &&
	       cf_now() < until)
		run_fabric(ci, cf_now() + MS);
}

bool ci_fab_acked(struct ci *ci, const struct ci_qp *qp)
{
	return !qp->gone && !qp->failed && !ci->fab.f.waiting(ci->fab.f.user, qp->qpn);
}

void ci_fab_want_acked(struct ci *ci, struct ci_qp *qp)
{
	uint64_t until = ci_limit(ci, CI_PART_DATA);

	ci_due(ci, "an ACK of all that we sent");
	while (!ci_fab_acked(ci, qp) && cf_now() < until) {
		CI_CHECK(ci, !qp->failed, "the connection fails before all is acknowledged (%d)",
			 qp->failed);
		ci_fab_pump(ci, cf_now() + MS);
	}
	CI_CHECK(ci, ci_fab_acked(ci, qp), "not all that was sent is acknowledged");
	ci_heard(ci, CI_PART_DATA);
}

/* From here on nothing of it is acknowledged. */
void ci_fab_qp_stop(struct ci *ci, struct ci_qp *qp)
{
	if (!qp->gone)
		ci->fab.port->ops->qp_stop(ci->fab.port, qp->qpn);
}
