/* SPDX-License-Identifier: BSD-2-Clause */
/* The target asks for a connection (RFC 4755 sections 3 and 6; IBA volume 1, 12.9.6). */
#include "conform/ipoib/peer.h"
#include <string.h>

#define ECHO 84u

static struct ci_conn *meet_caller(struct ci *ci)
{
	ci_meet(ci, CI_RC_FLAG);
	if (!(ci->target.lla[0] & CI_RC_FLAG))
		ci_skip(ci, "the target takes no reliable connections");
	return ci_provoke(ci);
}

/* ---- what a REQ says ---- */

static void check_active_req(struct ci *ci)
{
	const struct ci_conn *c = meet_caller(ci);
	const uint8_t *m = c->req;

	CI_CHECK(ci, c->peer_id, "communication ID 0");
	CI_CHECK(ci, cf_get64(m + REQ_GUID), "CA GUID 0");
	CI_CHECK(ci,
		 c->peer_qpn > 1 && c->peer_qpn != ci->target.qpn && c->peer_qpn != CI_MCAST_QPN,
		 "queue pair %06x", c->peer_qpn);
	CI_CHECK(ci, !(m[REQ_TYPE] & 6), "transport type %u, not RC", m[REQ_TYPE] >> 1 & 3);
	CI_CHECK(ci, !((cf_get16(m + REQ_PKEY) ^ ci->plan.pkey) & 0x7fff), "P_Key %04x",
		 cf_get16(m + REQ_PKEY));
}

static void req_path(struct ci *ci)
{
	static const uint8_t none[REQ_PRIV - REQ_ALT];
	const uint8_t *m = meet_caller(ci)->req;

	CI_CHECK(ci, cf_get16(m + REQ_LLID) == ci->target.lid && cf_get16(m + REQ_RLID) == ci->lid,
		 "LIDs %u and %u", cf_get16(m + REQ_LLID), cf_get16(m + REQ_RLID));
	CI_CHECK(ci, !memcmp(m + REQ_LGID, ci->target.lla + 4, CI_GID), "local GID %s",
		 cf_hex(m + REQ_LGID, CI_GID));
	CI_CHECK(ci, !memcmp(m + REQ_RGID, ci->me.lla + 4, CI_GID), "remote GID %s",
		 cf_hex(m + REQ_RGID, CI_GID));
	CI_CHECK(ci, m[REQ_MTU] >> 4 == ci->plan.mtu, "path MTU %u, the path has %u",
		 m[REQ_MTU] >> 4, ci->plan.mtu);
	CI_CHECK(ci, m[REQ_RATE] == 3, "rate %u, the path has 3", m[REQ_RATE]);
	CI_CHECK(ci, m[REQ_SL] & 8, "not within the subnet");
	CI_CHECK(ci, m[REQ_ACK_TIME] >> 3 > ci->plan.life,
		 "ACK timeout %u for a packet lifetime of %u", m[REQ_ACK_TIME] >> 3, ci->plan.life);
	CI_CHECK(ci, !memcmp(m + REQ_ALT, none, sizeof none), "an alternate path: %s",
		 cf_hex(m + REQ_ALT, sizeof none));
}

static void req_private(struct ci *ci)
{
	uint32_t mtu = ci_private(ci, meet_caller(ci)->req);

	CI_CHECK(ci, mtu >= 72 && mtu <= 0x80000000u, "Receive MTU %u", mtu);
}

static void check_active_service_id(struct ci *ci)
{
	const uint8_t *m = meet_caller(ci)->req;

	CI_CHECK(ci, m[REQ_SID] == 1, "it begins with %02x", m[REQ_SID]);
}

static void service_id_rest(struct ci *ci)
{
	const uint8_t *m = meet_caller(ci)->req;

	CI_CHECK(ci, !m[REQ_SID + 1], "type %u", m[REQ_SID + 1]);
	CI_CHECK(ci, !ci_get24(m + REQ_SID + 2), "reserved octets: %s", cf_hex(m + REQ_SID, 8));
	/* with another queue pair than ours it would be no REQ for this case */
}

/* ---- RTU ---- */

static void check_active_rtu(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);
	struct ci_reply r;

	ci_accept(ci, c);
	CI_CHECK(ci, cf_get32(c->rtu + CM_LOCAL) == c->peer_id, "local ID %08x",
		 cf_get32(c->rtu + CM_LOCAL));
	CI_CHECK(ci, ci_tid(ci, c->rtu) == ci_tid(ci, c->req),
		 "another transaction ID than the REQ's");
	ci_echo_ud(ci, ECHO);
	ci_want_reply(ci, ci->seq, &r);
	CI_CHECK(ci, r.connected && r.qp == c->qp, "the answer does not use the connection");
}

static void rtu_private(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);

	ci_accept(ci, c);
	ci_private(ci, c->rtu);
}

static void check_active_rep_again(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);

	ci_accept(ci, c);
	ci->again = true;
	ci_cm_send(ci, c->rep);
	CI_CHECK(ci, !memcmp(ci_want(ci, CI_RTU), c->rtu, CI_MAD), "another RTU than the first");
	ci_cm_send(ci, c->rep);
	ci_want(ci, CI_RTU);
}

/* ---- REQs that get no answer, or another ---- */

/* The time after which it may come again: that of the REQ, and twice the path's. */
static uint64_t get_req_patience(const struct ci *ci, const uint8_t *m)
{
	return ci_time(m[REQ_TYPE] >> 3) + 2 * ci_time(ci->plan.life);
}

static void check_active_req_again(struct ci *ci)
{
	uint64_t begun = cf_now(), time;
	struct ci_conn *c = meet_caller(ci);
	const uint8_t *m;

	time = ci_time(c->req[REQ_TYPE] >> 3);
	ci->again = true;
	m = ci_came(ci, CI_REQ, ci_limit(ci, CI_PART_REQ) + 2 * get_req_patience(ci, c->req));
	CI_CHECK(ci, m, "no second REQ");
	CI_CHECK(ci, !memcmp(m, c->req, CI_MAD), "it is not the same message");
	CI_CHECK(ci, ci->at->at - begun >= time, "after %llu ms, it gives %llu",
		 (unsigned long long)(ci->at->at - begun) / 1000000,
		 (unsigned long long)time / 1000000);
	ci->again = false;
	ci_accept(ci, c);
}

static void check_active_mra(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);
	uint64_t wait = get_req_patience(ci, c->req);
	unsigned t = 31;
	uint8_t m[CI_MAD];

	while (ci_time(t) > 16 * wait) /* which is longer than any shortest time */
		t--;
	ci_mra(ci, m, c, 0, t);
	ci->again = true;
	ci_cm_send(ci, m);
	ci_settle(ci); /* REQs that were on their way */
	CI_CHECK(ci, !ci_came(ci, 0, cf_now() + 5 * wait / 4),
		 "a %s comes though an MRA asked for time", ci_mad_name(ci->at->b));
	ci->again = false;
	ci_accept(ci, c);
}

/* A REJ of ours to the REQ at hand. */
static void send_rej(struct ci *ci, const struct ci_conn *c, unsigned reason)
{
	uint8_t m[CI_MAD];

	ci_rej(ci, m, c, 0, reason);
	ci_cm_send(ci, m);
}

static void check_active_refused(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);
	uint64_t until = ci_limit(ci, CI_PART_LINK);
	struct ci_reply r;

	send_rej(ci, c, CI_REJ_CONSUMER);
	c->peer_id = 0;
	for (unsigned i = 0; i < 8 && cf_now() < until; i++) {
		const struct ci_ev *e;

		ci_echo_ud(ci, ECHO);
		if (ci_replied(ci, ci->seq, ci_part(ci, CI_PART_LINK, 8), &r)) {
			CI_CHECK(ci, !r.connected, "the answer comes on a connection");
			return;
		}
		while ((e = ci_await(ci, CI_EV_CM, 0)))
			if (ci_attr(e->b) == CI_REQ) {
				uint8_t m[CI_MAD];

				c->peer_id = cf_get32(e->b + CM_LOCAL);
				ci_rej(ci, m, c, 0, CI_REJ_CONSUMER);
				ci_cm_send(ci, m);
			}
	}
	c->peer_id = 0;
	ci_fail(ci, "datagrams do not reach a node that refuses connections");
}

static void refused_stale(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci), *again;
	uint32_t id = c->peer_id;

	send_rej(ci, c, CI_REJ_STALE);
	c->peer_id = 0;
	again = ci_provoke(ci);
	CI_CHECK(ci, again->peer_id != id, "the same communication ID");
	ci_accept(ci, again);
}

/* A REP that cannot be used: REJ 28 of message 1. */
static const uint8_t *bad_rep(struct ci *ci, uint32_t qpn, uint32_t mtu)
{
	struct ci_conn *c = meet_caller(ci);
	const uint8_t *m;

	ci_rep(ci, c);
	cf_put32(c->rep + REP_PRIV, qpn ? ci->me.qpn : 0);
	cf_put32(c->rep + REP_PRIV + 4, mtu);
	ci_cm_send(ci, c->rep);
	m = ci_want(ci, 0);
	CI_CHECK(ci, ci_attr(m) == CI_REJ, "%s comes, a REJ is due", ci_mad_name(m));
	CI_CHECK(ci, m[REJ_MSG] >> 6 == 1, "it refuses message %u, not a REP", m[REJ_MSG] >> 6);
	c->peer_id = 0;
	return m;
}

static void rep_mtu_4(struct ci *ci)
{
	const uint8_t *m = bad_rep(ci, 1, 4);

	CI_CHECK(ci, cf_get16(m + REJ_REASON) == CI_REJ_CONSUMER, "REJ %u",
		 cf_get16(m + REJ_REASON));
}

CI_CALL(rep_mtu_small, bad_rep(ci, 1, 71));
CI_CALL(rep_rej_private, ci_private(ci, bad_rep(ci, 1, 4)));
CI_CALL(rep_no_private, bad_rep(ci, 0, 0));

static void rep_reserved(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);

	ci_rep(ci, c);
	c->rep[REP_PRIV] = 0xff;
	c->rep[CI_MAD - 1] = 0xff;
	ci_cm_send(ci, c->rep);
	ci_want(ci, CI_RTU);
	c->up = true;
}

/* Our queue pair is that of a connection that is up. */
static void rep_stale(struct ci *ci)
{
	struct ci_conn *old, *c;
	const uint8_t *m;
	unsigned rejs = 0;

	ci_meet(ci, CI_RC_FLAG);
	old = ci_connect(ci, false);
	ci_quiet(ci);
	c = ci_provoke(ci);
	ci_rep(ci, c);
	ci_put24(c->rep + REP_QPN, old->qp->qpn);
	ci_cm_send(ci, c->rep);
	while (!rejs) {
		uint8_t a[CI_MAD];

		m = ci_want(ci, 0);
		if (ci_attr(m) == CI_DREQ) {
			ci_drep(a, m);
			ci_cm_send(ci, a);
			continue;
		}
		CI_CHECK(ci, ci_attr(m) == CI_REJ && cf_get16(m + REJ_REASON) == CI_REJ_STALE,
			 "%s comes, REJ 10 is due", ci_mad_name(m));
		CI_CHECK(ci, m[REJ_MSG] >> 6 == 1, "it refuses message %u", m[REJ_MSG] >> 6);
		rejs++;
	}
	ci->accept = true; /* it may ask again */
}

/* IDs of no REQ. */
static void rep_unknown(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);

	ci_rep(ci, c);
	cf_put32(c->rep + CM_REMOTE, c->peer_id ^ 0x10000);
	ci_cm_send(ci, c->rep);
	ci_quiet(ci);
	ci_accept(ci, c);
}

/* ---- how many ---- */

static void no_flags(struct ci *ci)
{
	struct ci_reply r;

	ci_meet(ci, 0);
	for (unsigned i = 0; i < 3; i++)
		ci_ping_ud(ci, ECHO, &r);
	ci_quiet(ci);
}

/* Another IP address, the same link-layer address. */
static void one_per_peer(struct ci *ci)
{
	struct ci_conn *c = meet_caller(ci);
	struct ci_reply r;

	ci_accept(ci, c);
	ci->me.ip = ci->plan.ip; /* that of no case */
	ci_resolve(ci);
	ci_echo_ud(ci, ECHO);
	ci_want_reply(ci, ci->seq, &r);
	CI_CHECK(ci, r.connected && r.qp == c->qp, "the answer does not use the connection");
	ci_quiet(ci);
}

const struct ci_case ci_cases_active[] = {
	{ "req-fields", "4755-2.3-3 4755-3.2-1 4755-3.2-2", "IDs, queue pair, transport, P_Key", 0,
	  check_active_req },
	{ "req-path", "4391-9.1.2-2 4391-9.1.2-3", "GIDs, and what the path says", CI_NEEDS_SA,
	  req_path },
	{ "req-private", "4755-3.2-10 4755-5.1-1 4755-6-1 4755-6-2 4755-6-3",
	  "UD queue pair and Receive MTU in private data", 0, req_private },
	{ "req-service-id", "4755-3.5-1 4755-3.2-5", "the service ID begins with 01", 0,
	  check_active_service_id },
	{ "req-service-id-rest", "4755-3.5-2 4755-3.5-3 4755-3.5-4 4755-2.3-2 4755-3.1-9",
	  "type and reserved octets are 0, the queue pair is ours", 0, service_id_rest },
	{ "rtu", "4755-3.2-4 4755-3.1-12 4755-2.3-1", "a REP is answered by an RTU, and used", 0,
	  check_active_rtu },
	{ "rtu-private", "4755-3.2-10 4755-6-1", "an RTU has private data", 0, rtu_private },
	{ "rtu-again", "", "a REP that comes again gets the same RTU (IBA 12.9.6)", 0,
	  check_active_rep_again },
	{ "req-again", "",
	  "a REQ without answer comes again, unchanged, in its time (IBA 12.9.8.2)", 0,
	  check_active_req_again },
	{ "req-mra", "", "an MRA makes it wait (IBA 12.9.8.6)", 0, check_active_mra },
	{ "req-refused", "4755-7-1 4755-3.1-13", "datagrams reach a node that refuses connections",
	  0, check_active_refused },
	{ "req-refused-stale", "", "behind a REJ 10 it tries again with another ID (IBA 12.4.1)", 0,
	  refused_stale },
	{ "rep-mtu-4", "4755-5-1", "a REP whose Receive MTU holds no packet gets REJ 28", 0,
	  rep_mtu_4 },
	{ "rep-mtu-small", "4755-5-1", "one that is too small for IP is refused", 0,
	  rep_mtu_small },
	{ "rep-rej-private", "4755-3.2-11", "that REJ has private data", 0, rep_rej_private },
	{ "rep-private-missing", "4755-3.2-10", "a REP without private data is refused", 0,
	  rep_no_private },
	{ "rep-private-reserved", "4755-6-4", "its reserved octet and the rest mean nothing", 0,
	  rep_reserved },
	{ "rep-stale", "", "a queue pair in use in a REP: REJ 10 (IBA 12.4.1)", 0, rep_stale },
	{ "rep-unknown", "", "a REP for no REQ is dropped (IBA 12.9.8.3)", 0, rep_unknown },
	{ "req-not-wanted", "4755-3.1-12 4755-3.1-1", "a node that says it takes none is not asked",
	  0, no_flags },
	{ "req-one-per-peer", "4755-2.3-6 4755-3.2-6",
	  "another IP address of a neighbour uses its connection", 0, one_per_peer },
	{ 0 },
};
