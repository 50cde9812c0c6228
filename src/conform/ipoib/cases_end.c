/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections end (RFC 4755 3.4; IBA volume 1, 12.9.9 and 12.4.1). */
#include "conform/ipoib/peer.h"
#include <string.h>

#define ECHO 84u

static void dreq(struct ci *ci)
{
	ci_meet(ci, 0);
	ci_disconnect(ci, ci_connect(ci, false));
}

static void check_end_dead(struct ci *ci)
{
	ci_meet(ci, 0);
	ci_gone(ci, ci_connect(ci, false));
}

static void dreq_again(struct ci *ci)
{
	uint8_t q[CI_MAD], first[CI_MAD];
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_connect(ci, false);
	ci_dreq(ci, q, c);
	ci->again = true;
	ci_cm_send(ci, q);
	memcpy(first, ci_want(ci, CI_DREP), CI_MAD);
	ci_cm_send(ci, q);
	CI_CHECK(ci, !memcmp(ci_want(ci, CI_DREP), first, CI_MAD), "another DREP than the first");
	c->up = false;
}

static void dreq_qpn(struct ci *ci)
{
	uint8_t q[CI_MAD];
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_connect(ci, false);
	ci_dreq(ci, q, c);
	ci_put24(q + DREQ_QPN, c->peer_qpn ^ 1);
	ci_cm_send(ci, q);
	ci_quiet(ci);
	ci_echo_rc(ci, c, ECHO);
	ci_want_acked(ci, c->qp);
	ci_disconnect(ci, c);
}

static void check_end_unknown(struct ci *ci)
{
	uint8_t q[CI_MAD];
	const uint8_t *m;

	ci_meet(ci, 0);
	ci_mad(q, 7, 3, CI_DREQ, ci->next_tid++);
	cf_put32(q + CM_LOCAL, ci->next_id++);
	cf_put32(q + CM_REMOTE, 0x5a5a0001);
	ci_cm_send(ci, q);
	m = ci_want(ci, CI_DREP);
	CI_CHECK(ci, cf_get32(m + CM_LOCAL) == 0x5a5a0001, "local ID %08x", cf_get32(m + CM_LOCAL));
	CI_CHECK(ci, ci_tid(ci, m) == ci_tid(ci, q), "another transaction ID than the DREQ's");
}

/* Before the RTU: the asker takes it for established. */
static void before_rtu(struct ci *ci)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	ci_cm_send(ci, c->req);
	ci_rep_in(ci, c, ci_want(ci, CI_REP));
	ci_gone(ci, c);
}

static void qpn_rests(struct ci *ci)
{
	struct ci_conn *a, *b;

	ci_meet(ci, 0);
	a = ci_connect(ci, false);
	ci_disconnect(ci, a);
	b = ci_connect(ci, false);
	CI_CHECK(ci, a->peer_qpn != b->peer_qpn, "queue pair %06x is used again immediately",
		 a->peer_qpn);
	CI_CHECK(ci, a->peer_id != b->peer_id, "communication ID %08x is used again immediately",
		 a->peer_id);
}

static void late_req(struct ci *ci)
{
	struct ci_conn *c;
	const uint8_t *m;

	ci_meet(ci, 0);
	c = ci_connect(ci, false);
	ci_disconnect(ci, c);
	ci->again = true;
	ci_cm_send(ci, c->req);
	m = ci_came(ci, 0, cf_now() + 300000000);
	CI_CHECK(ci, !m || (ci_attr(m) == CI_REJ && cf_get16(m + REJ_REASON) == CI_REJ_STALE),
		 "a REQ of a connection that is over gets %s %u", ci_mad_name(m),
		 ci_attr(m) == CI_REJ ? cf_get16(m + REJ_REASON) : 0);
}

static void rej_established(struct ci *ci)
{
	struct ci_conn *c;
	uint8_t m[CI_MAD];

	ci_meet(ci, 0);
	c = ci_connect(ci, false);
	ci_rej(ci, m, c, 2, CI_REJ_CONSUMER);
	ci_cm_send(ci, m);
	ci_gone(ci, c);
}

/* ---- the target ends it: what it has sent cannot be ---- */

/* A connection of its own that it uses, and its DREQ when we refuse a message. */
static struct ci_conn *broken(struct ci *ci, uint8_t dreq_out[CI_MAD])
{
	struct ci_conn *c;
	struct ci_reply r;
	const uint8_t *m;

	ci_meet(ci, CI_RC_FLAG);
	c = ci_provoke(ci);
	ci_accept(ci, c);
	ci_echo_ud(ci, ECHO);
	ci_want_reply(ci, ci->seq, &r);
	CI_CHECK(ci, r.connected, "the answer does not use the connection");
	ci_qp_refuse(ci, c->qp);
	ci_echo_ud(ci, ECHO);
	m = ci_want(ci, CI_DREQ);
	memcpy(dreq_out, m, CI_MAD);
	return c;
}

static void target_dreq(struct ci *ci)
{
	uint8_t q[CI_MAD], a[CI_MAD];
	struct ci_conn *c = broken(ci, q);

	CI_CHECK(ci, cf_get32(q + CM_LOCAL) == c->peer_id && cf_get32(q + CM_REMOTE) == c->id,
		 "IDs %08x and %08x", cf_get32(q + CM_LOCAL), cf_get32(q + CM_REMOTE));
	CI_CHECK(ci, ci_get24(q + DREQ_QPN) == c->qp->qpn, "queue pair %06x, ours is %06x",
		 ci_get24(q + DREQ_QPN), c->qp->qpn);
	ci_drep(a, q);
	c->up = false;
	ci->accept = true;
	ci_cm_send(ci, a);
	ci_quiet(ci);
}

static void target_dreq_again(struct ci *ci)
{
	uint8_t q[CI_MAD], a[CI_MAD];
	struct ci_conn *c = broken(ci, q);
	uint64_t until = ci_limit(ci, CI_PART_END);
	struct ci_ev *e;

	c->up = false;
	ci->accept = ci->again = true;
	while ((e = ci_await(ci, CI_EV_CM, until)))
		if (ci_attr(e->b) == CI_DREQ) {
			CI_CHECK(ci, !memcmp(e->b, q, CI_MAD), "it is not the same message");
			ci_drep(a, q);
			ci_cm_send(ci, a);
			return;
		}
	ci_fail(ci, "an unanswered DREQ does not come again");
}

static void check_end_crossed(struct ci *ci)
{
	uint8_t q[CI_MAD];
	struct ci_conn *c = broken(ci, q);

	ci->accept = true;
	ci_disconnect(ci, c);
	ci_quiet(ci);
}

/* It connects again when there is something to send. */
static void check_end_comes_back(struct ci *ci)
{
	uint8_t q[CI_MAD], a[CI_MAD];
	struct ci_conn *c = broken(ci, q);
	uint64_t until = ci_limit(ci, CI_PART_REQ);
	struct ci_reply r;

	ci_drep(a, q);
	ci_cm_send(ci, a);
	c->up = false;
	ci->accept = true;
	while (cf_now() < until) {
		ci_echo_ud(ci, ECHO);
		if (ci_replied(ci, ci->seq, cf_now() + 500000000, &r) && r.connected) {
			CI_CHECK(ci, r.qp != c->qp, "the old queue pair is used");
			return;
		}
	}
	ci_fail(ci, "no new connection");
}

const struct ci_case ci_cases_end[] = {
	{ "end-dreq", "4755-3.4-3", "a DREQ gets its DREP", 0, dreq },
	{ "end-dead", "4755-3.4-3", "and nothing is taken afterwards", 0, check_end_dead },
	{ "end-dreq-again", "", "a DREQ that comes again gets the same DREP (IBA 12.9.9)", 0,
	  dreq_again },
	{ "end-dreq-qpn", "", "a DREQ for another queue pair is dropped (IBA 12.6.10)", 0,
	  dreq_qpn },
	{ "end-unknown", "", "a DREQ for no connection gets a DREP (IBA 12.9.9)", 0,
	  check_end_unknown },
	{ "end-before-rtu", "", "a DREQ may come before the RTU (IBA 12.9.7)", 0, before_rtu },
	{ "end-qpn-rests", "", "queue pair and ID are not used again immediately (IBA 12.4.1)", 0,
	  qpn_rests },
	{ "end-late-req", "", "a REQ that comes after the end revives nothing (IBA 12.9.8.3)", 0,
	  late_req },
	{ "end-rej", "", "a REJ ends a connection as well (IBA 12.9.7)", 0, rej_established },
	{ "end-own-dreq", "4755-3.4-3", "the target's own DREQ: IDs and our queue pair", 0,
	  target_dreq },
	{ "end-own-dreq-again", "", "it comes again without a DREP, unchanged (IBA 12.9.9)", 0,
	  target_dreq_again },
	{ "end-crossed", "", "DREQs that cross are answered (IBA 12.9.9)", 0, check_end_crossed },
	{ "end-comes-back", "4755-3.4-3 4755-2.3-1", "then it connects anew", 0,
	  check_end_comes_back },
	{ 0 },
};
