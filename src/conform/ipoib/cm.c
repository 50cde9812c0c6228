/* SPDX-License-Identifier: BSD-2-Clause */
/* Communication management: messages that come, and what is answered in the background. */
#include "conform/ipoib/peer.h"
#include <stdio.h>
#include <string.h>

#define NS_PER_S 1000000000ull

void ci_mad_packet(struct ci *ci, uint16_t lid, const uint8_t *m)
{
	struct ci_pkt p = { .op = CI_UD | CI_ONLY,
			    .pkey = ci->plan.pkey,
			    .qpn = 1,
			    .qkey = 0x80010000,
			    .src_qpn = 1,
			    .data = m,
			    .len = CI_MAD };

	ci_packet(ci, lid, &p);
}

void ci_cm_send(struct ci *ci, const uint8_t *m)
{
	if (ci->fab.used)
		ci_fab_mad(ci, m);
	else
		ci_mad_packet(ci, ci->target.lid, m);
}

uint64_t ci_tid(const struct ci *ci, const uint8_t *m)
{
	return ci->fab.used ? cf_get32(m + M_TID + 4) : cf_get64(m + M_TID);
}

void ci_put_private(const struct ci *ci, uint8_t *m, uint32_t rx_mtu)
{
	size_t at = ci_priv_at(m);

	cf_put32(m + at, ci->me.qpn);
	cf_put32(m + at + 4, rx_mtu);
}

uint32_t ci_private(struct ci *ci, const uint8_t *m)
{
	static const uint8_t zero[CI_MAD];
	size_t at = ci_priv_at(m);
	const uint8_t *p = m + at;

	CI_CHECK(ci, !p[0], "the reserved octet of a %s's private data is %02x", ci_mad_name(m),
		 p[0]);
	CI_CHECK(ci, ci_get24(p + 1) == ci->target.qpn,
		 "the private data of a %s has UD QPN %06x, ARP has %06x", ci_mad_name(m),
		 ci_get24(p + 1), ci->target.qpn);
	CI_CHECK(ci, !memcmp(p + 8, zero, CI_MAD - at - 8), "private data behind octet 8: %s",
		 cf_hex(p + 8, CI_MAD - at - 8));
	return cf_get32(p + 4);
}

/* ---- in the background ---- */

static bool is_our_comm_id(const struct ci *ci, uint32_t id)
{
	return id - ci->me.first_id < ci->next_id - ci->me.first_id;
}

/* Of a case that is over, or of none. */
static void refuse_old(struct ci *ci, const uint8_t *m)
{
	uint8_t a[CI_MAD];

	ci_mad(a, 7, 3, CI_REJ, cf_get64(m + M_TID));
	cf_put32(a + CM_REMOTE, cf_get32(m + CM_LOCAL));
	cf_put16(a + REJ_REASON, CI_REJ_CONSUMER);
	if (ci_attr(m) == CI_DREQ) {
		ci_drep(a, m);
	} else if (ci_attr(m) == CI_REP) {
		cf_put32(a + CM_LOCAL, cf_get32(m + CM_REMOTE));
		a[REJ_MSG] = 1 << 6;
	} else if (ci_attr(m) != CI_REQ) {
		return;
	}
	ci_cm_send(ci, a);
}

static struct ci_conn *by_id(struct ci *ci, uint32_t id)
{
	for (unsigned i = 0; i < ci->n_conns; i++)
		if (ci->conn[i].id == id)
			return &ci->conn[i];
	return NULL;
}

/* Return: whether the case need not know of it. */
static bool background(struct ci *ci, const uint8_t *m)
{
	struct ci_conn *c;

	if (ci_attr(m) == CI_REQ && ci->accept && ci->n_conns < CI_CONNS) {
		c = ci_req_in(ci, m, cf_now());
		c->background = true;
		ci_rep(ci, c);
		ci_cm_send(ci, c->rep);
		return true;
	}
	c = ci_attr(m) == CI_REQ ? NULL : by_id(ci, cf_get32(m + CM_REMOTE));
	/* a CM may ask for time before it answers, and for another path later (IBA 12.6.6, 12.8.1) */
	if (c && (ci_attr(m) == CI_MRA ? !c->up : ci_attr(m) == CI_LAP && c->up))
		return true;
	if (!c || !c->background || ci_attr(m) != CI_RTU)
		return false;
	c->up = true;
	memcpy(c->rtu, m, CI_MAD);
	return true;
}

bool ci_surplus(struct ci *ci, const uint8_t *m)
{
	struct ci_conn *c = by_id(ci, cf_get32(m + CM_REMOTE));
	uint8_t a[CI_MAD];

	if (ci_attr(m) != CI_DREQ || !c || !c->up || cf_get32(m + CM_LOCAL) != c->peer_id)
		return false;
	ci_drep(a, m);
	ci_cm_send(ci, a);
	c->up = false;
	return true;
}

/* Return: whether it came before, octet for octet. */
static bool is_mad_repeated(struct ci *ci, const uint8_t *m)
{
	for (unsigned i = 0; i < CI_SEEN && i < ci->n_seen; i++)
		if (!memcmp(ci->seen[i], m, CI_MAD))
			return true;
	memcpy(ci->seen[ci->n_seen++ % CI_SEEN], m, CI_MAD);
	return false;
}

void ci_cm_rx(struct ci *ci, uint16_t slid, const uint8_t *m)
{
	const char *bad = ci_mad_reserved(m);
	uint32_t about = ci_attr(m) == CI_REQ ? 0 : cf_get32(m + CM_REMOTE);
	bool here;

	if (slid != ci->target.lid || !ci->target.known || m[M_CLASS] != 7)
		return;
	if (bad)
		ci_lint(ci, CI_LINT_MAD, "%s", bad);
	if (m[M_BASE] != 1 || m[M_VERSION] != 2 || m[M_METHOD] != 3)
		return;
	here = ci_attr(m) == CI_REQ ? ci_get24(m + REQ_SID + 5) == ci->me.qpn
				    : is_our_comm_id(ci, about);
	if (!here) {
		refuse_old(ci, m);
		return;
	}
	if (is_mad_repeated(ci, m) && !ci->again)
		return;
	if (!background(ci, m))
		ci_event(ci, CI_EV_CM, m, CI_MAD);
}

/* ---- what a case waits for ---- */

static const char *describe_mad(const uint8_t *m, char text[80])
{
	if (ci_attr(m) == CI_REJ)
		snprintf(text, 80, "REJ %u of message %u", (unsigned)cf_get16(m + REJ_REASON),
			 (unsigned)m[REJ_MSG] >> 6);
	else
		snprintf(text, 80, "%s", ci_mad_name(m));
	return text;
}

/* A message that is due, for those who do not know its name; 0: the answer to a REQ. */
static const char *explain_mad(unsigned attr)
{
	switch (attr) {
	case CI_REQ:
		return "a REQ, with which the target asks for a connection";
	case CI_REP:
		return "a REP, with which the target accepts our request for a connection";
	case CI_REJ:
		return "a REJ, with which the target refuses";
	case CI_RTU:
		return "an RTU, with which the target says that the connection is ready";
	case CI_DREQ:
		return "a DREQ, with which the target ends the connection";
	case CI_DREP:
		return "a DREP, with which the target confirms that the connection is over";
	default:
		return "an answer to our message";
	}
}

/* 0: the answer to a REQ. */
static enum ci_part part_of_mad(unsigned attr)
{
	return attr == CI_REQ			    ? CI_PART_REQ
	       : attr == CI_RTU			    ? CI_PART_RTU
	       : attr == CI_DREQ || attr == CI_DREP ? CI_PART_END
						    : CI_PART_REP;
}

const uint8_t *ci_came(struct ci *ci, unsigned attr, uint64_t until)
{
	uint8_t due[CI_MAD] = { 0 };
	struct ci_ev *e;
	char text[80];

	do {
		e = ci_await(ci, CI_EV_CM, until);
		if (!e)
			return NULL;
	} while (attr != CI_DREQ && ci_surplus(ci, e->b));
	cf_put16(due + M_ATTR, (uint16_t)attr);
	if (attr && ci_attr(e->b) != attr) {
		ci_due(ci, "%s", explain_mad(attr));
		ci_fail(ci, "%s comes, %s is due", describe_mad(e->b, text), ci_mad_name(due));
	}
	ci_heard(ci, part_of_mad(ci_attr(e->b)));
	return e->b;
}

const uint8_t *ci_want(struct ci *ci, unsigned attr)
{
	uint8_t due[CI_MAD] = { 0 };
	const uint8_t *m;

	ci_due(ci, "%s", explain_mad(attr));
	m = ci_came(ci, attr, ci_limit(ci, part_of_mad(attr)));
	cf_put16(due + M_ATTR, (uint16_t)attr);
	CI_CHECK(ci, m, "no %s comes", attr ? ci_mad_name(due) : "answer");
	return m;
}

/* A DREQ for a connection that there is not, which is always answered. */
static uint32_t question(struct ci *ci)
{
	uint8_t m[CI_MAD];
	uint32_t id = ci->next_id++;

	ci_mad(m, 7, 3, CI_DREQ, ci->next_tid++);
	cf_put32(m + CM_LOCAL, id);
	cf_put32(m + CM_REMOTE, ~id);
	ci_put24(m + DREQ_QPN, 0x123456);
	ci_cm_send(ci, m);
	return id;
}

/* @strict: nothing comes before the answer. */
static void barrier(struct ci *ci, bool strict)
{
	uint64_t until = ci_limit(ci, CI_PART_END);
	uint32_t id = question(ci), first = id;
	char text[80];

	ci_due(ci, "a DREP: a DREQ is answered also if its connection is not known");
	while (cf_now() < until) {
		uint64_t next = cf_now() + NS_PER_S;
		struct ci_ev *e = ci_await(ci, CI_EV_CM, next < until ? next : until);

		if (!e) {
			id = question(ci); /* one may be lost */
			continue;
		}
		if (ci_attr(e->b) == CI_DREP && cf_get32(e->b + CM_REMOTE) - first <= id - first) {
			ci_heard(ci, CI_PART_END);
			return;
		}
		if (strict && !ci_surplus(ci, e->b)) {
			ci_due(ci, "no message");
			ci_fail(ci, "%s comes where nothing is due", describe_mad(e->b, text));
		}
	}
	ci_fail(ci, "a DREQ for an unknown connection is not answered");
}

void ci_quiet(struct ci *ci)
{
	barrier(ci, true);
}

void ci_settle(struct ci *ci)
{
	barrier(ci, false);
}

/* ---- messages ---- */

void ci_rej(const struct ci *ci, uint8_t *m, const struct ci_conn *c, unsigned msg, unsigned reason)
{
	ci_mad(m, 7, 3, CI_REJ, cf_get64((c->by_target ? c->req : c->rep) + M_TID));
	cf_put32(m + CM_LOCAL, msg ? c->id : 0);
	cf_put32(m + CM_REMOTE, c->peer_id);
	m[REJ_MSG] = (uint8_t)(msg << 6);
	cf_put16(m + REJ_REASON, (uint16_t)reason);
	ci_put_private(ci, m, ci->rx_mtu);
}

void ci_mra(const struct ci *ci, uint8_t *m, const struct ci_conn *c, unsigned msg, unsigned t)
{
	ci_mad(m, 7, 3, CI_MRA, cf_get64(c->req + M_TID));
	cf_put32(m + CM_LOCAL, c->id);
	cf_put32(m + CM_REMOTE, c->peer_id);
	m[MRA_MSG] = (uint8_t)(msg << 6);
	m[MRA_TIME] = (uint8_t)(t << 3);
	ci_put_private(ci, m, ci->rx_mtu);
}

void ci_dreq(struct ci *ci, uint8_t *m, const struct ci_conn *c)
{
	ci_mad(m, 7, 3, CI_DREQ, ci->next_tid++);
	cf_put32(m + CM_LOCAL, c->id);
	cf_put32(m + CM_REMOTE, c->peer_id);
	ci_put24(m + DREQ_QPN, c->peer_qpn);
}

void ci_drep(uint8_t *m, const uint8_t *dreq)
{
	uint32_t local = cf_get32(dreq + CM_LOCAL), remote = cf_get32(dreq + CM_REMOTE);
	uint64_t tid = cf_get64(dreq + M_TID);

	ci_mad(m, 7, 3, CI_DREP, tid);
	cf_put32(m + CM_LOCAL, remote);
	cf_put32(m + CM_REMOTE, local);
}

#define UNSWEPT 8u

/* What is there of a case's connections ends, and nothing of it is left to come.  A target that did not answer this
 * is given a quarter of the time the next time. */
void ci_sweep(struct ci *ci)
{
	uint8_t m[CI_MAD];
	uint64_t until = ci_limit(ci, CI_PART_END);
	uint64_t most = cf_now() + (NS_PER_S >> 2 * (ci->unswept < 5 ? ci->unswept : 5));
	uint32_t id;

	if (!ci->target.known)
		return;
	for (unsigned i = 0; i < ci->n_conns; i++) {
		struct ci_conn *c = &ci->conn[i];

		if (!c->peer_id)
			continue;
		if (!c->up) {
			ci_rej(ci, m, c, !c->by_target, CI_REJ_CONSUMER);
			ci_cm_send(ci, m);
		}
		ci_dreq(ci, m, c);
		ci_cm_send(ci, m);
	}
	id = question(ci);
	until = until < most ? until : most;
	if (++ci->unswept == UNSWEPT) /* as good as one wait that was whole */
		cf_patience_silent(&ci->patience, CI_PART_END);
	while (cf_now() < until) {
		struct ci_ev *e =
			ci_await(ci, CI_EV_CM | CI_EV_FRAME | CI_EV_MSG | CI_EV_ACK, until);

		if (e && e->kind == CI_EV_CM && ci_attr(e->b) == CI_DREP &&
		    cf_get32(e->b + CM_REMOTE) == id) {
			ci_heard(ci, CI_PART_END);
			ci->unswept = 0;
			break;
		}
		if (e && e->kind == CI_EV_CM && ci_attr(e->b) == CI_DREQ)
			refuse_old(ci, e->b);
	}
}
