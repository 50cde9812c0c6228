/* SPDX-License-Identifier: BSD-2-Clause */
/* The target is asked for connections (RFC 4755 sections 3 and 6; IBA volume 1, 12.9.7). */
#include "conform/ipoib/peer.h"
#include <string.h>

#define REP_TIME 15u /* 134 ms */

/* ---- what a REP says ---- */

static void rep(struct ci *ci)
{
	struct ci_conn *c;
	const uint8_t *m;

	ci_meet(ci, 0);
	c = ci_req(ci);
	ci_cm_send(ci, c->req);
	m = ci_want(ci, CI_REP);
	ci_rep_in(ci, c, m);
	CI_CHECK(ci, ci_tid(ci, c->rep) == ci_tid(ci, c->req),
		 "another transaction ID than the REQ's");
	CI_CHECK(ci,
		 c->peer_qpn > 1 && c->peer_qpn != ci->target.qpn && c->peer_qpn != CI_MCAST_QPN,
		 "queue pair %06x", c->peer_qpn);
	CI_CHECK(ci, cf_get64(c->rep + REP_GUID), "CA GUID 0");
	CI_CHECK(ci, !(c->rep[REP_DELAY] & 1), "end-to-end flow control, which was not asked for");
}

static void rep_private(struct ci *ci)
{
	uint32_t mtu;

	ci_meet(ci, 0);
	mtu = ci_private(ci, ci_connect(ci, false)->rep);
	CI_CHECK(ci, mtu >= 72 && mtu <= 0x80000000u, "Receive MTU %u", mtu);
}

/* ---- service IDs ---- */

/* One octet of it is another. */
static const uint8_t *other_sid(struct ci *ci, unsigned octet, uint8_t value)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	c->req[REQ_SID + octet] = value;
	ci_cm_send(ci, c->req);
	return ci_want(ci, 0);
}

static void check_passive_nobody(struct ci *ci, unsigned octet, uint8_t value)
{
	const uint8_t *m = other_sid(ci, octet, value);

	CI_CHECK(ci, ci_attr(m) == CI_REJ, "%s comes, REJ 8 is due", ci_mad_name(m));
	CI_CHECK(ci, cf_get16(m + REJ_REASON) == CI_REJ_SERVICE_ID, "REJ %u, not 8",
		 cf_get16(m + REJ_REASON));
	CI_CHECK(ci, !(m[REJ_MSG] >> 6), "it refuses message %u, not a REQ", m[REJ_MSG] >> 6);
}

static void sid_rfc(struct ci *ci)
{
	const uint8_t *m = other_sid(ci, 0, 1);

	CI_CHECK(ci, ci_attr(m) == CI_REP, "a REQ to service ID 01... gets REJ %u",
		 cf_get16(m + REJ_REASON));
}

CI_CALL(sid_block, check_passive_nobody(ci, 0, 2));
CI_CALL(sid_type, check_passive_nobody(ci, 1, 1));

static void sid_reserved(struct ci *ci)
{
	for (unsigned i = 2; i < 5; i++)
		check_passive_nobody(ci, i, 0x80);
}

static void sid_qpn(struct ci *ci)
{
	check_passive_nobody(ci, 7, (uint8_t)(ci->target.qpn ^ 0x80));
	check_passive_nobody(ci, 5, (uint8_t)(ci->target.qpn >> 16 ^ 0x80));
}

CI_CALL(rej_private, ci_private(ci, other_sid(ci, 1, 1)));

static void rej_ids(struct ci *ci)
{
	const uint8_t *m = other_sid(ci, 1, 1);
	const struct ci_conn *c = &ci->conn[0];

	CI_CHECK(ci, !cf_get32(m + CM_LOCAL), "a local ID %08x, though it has none",
		 cf_get32(m + CM_LOCAL));
	CI_CHECK(ci, ci_tid(ci, m) == ci_tid(ci, c->req), "another transaction ID than the REQ's");
}

/* ---- REQs that are taken or refused ---- */

static const uint8_t *send_altered_req(struct ci *ci, size_t at, uint8_t value)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	c->req[at] = value;
	ci_cm_send(ci, c->req);
	return ci_want(ci, 0);
}

static void is_rep(struct ci *ci, const uint8_t *m)
{
	CI_CHECK(ci, ci_attr(m) == CI_REP, "it is refused: REJ %u", cf_get16(m + REJ_REASON));
}

static void is_rej(struct ci *ci, const uint8_t *m)
{
	CI_CHECK(ci, ci_attr(m) == CI_REJ, "%s comes, a REJ is due", ci_mad_name(m));
	CI_CHECK(ci, !(m[REJ_MSG] >> 6), "it refuses message %u, not a REQ", m[REJ_MSG] >> 6);
}

CI_CALL(private_reserved, is_rep(ci, send_altered_req(ci, REQ_PRIV, 0xff)));

static void req_reserved(struct ci *ci)
{
	static const uint8_t at[] = { 28, 48, 51, 64, 66, 114 };
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	for (unsigned i = 0; i < sizeof at; i++)
		c->req[at[i]] |= at[i] == 114 ? 0x0f : 0xff;
	ci_cm_send(ci, c->req);
	is_rep(ci, ci_want(ci, 0));
}

CI_CALL(tail, is_rep(ci, send_altered_req(ci, CI_MAD - 1, 0xff)));

static void no_private(struct ci *ci)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	memset(c->req + REQ_PRIV, 0, 8);
	ci_cm_send(ci, c->req);
	is_rej(ci, ci_want(ci, 0));
}

static void small_mtu(struct ci *ci)
{
	ci->rx_mtu = 71;
	ci_meet(ci, 0);
	ci_cm_send(ci, ci_req(ci)->req);
	is_rej(ci, ci_want(ci, 0));
}

static void other_mtus(struct ci *ci)
{
	static const uint32_t mtu[] = { 2048, 4096, 65524, 0x80000000u };

	for (unsigned i = 0; i < sizeof mtu / sizeof *mtu; i++) {
		ci->rx_mtu = mtu[i];
		ci_meet(ci, 0);
		ci_disconnect(ci, ci_connect(ci, false));
	}
}

static void uc(struct ci *ci)
{
	ci_meet(ci, 0);
	if (ci->target.lla[0] & CI_UC_FLAG)
		ci_skip(ci, "the target takes unreliable connections");
	is_rej(ci, send_altered_req(ci, REQ_TYPE, 20 << 3 | 1 << 1));
}

CI_CALL(other_pkey, is_rej(ci, send_altered_req(ci, REQ_PKEY + 1, (uint8_t)(ci->plan.pkey ^ 1))));

static void other_gid(struct ci *ci)
{
	is_rej(ci, send_altered_req(ci, REQ_RGID + 15, (uint8_t)(ci->target.lla[19] ^ 0x55)));
}

static void check_passive_second(struct ci *ci)
{
	struct ci_conn *c;
	const uint8_t *m;

	ci_meet(ci, 0);
	ci_connect(ci, false);
	c = ci_req(ci);
	ci_cm_send(ci, c->req);
	m = ci_want(ci, 0);
	if (ci_attr(m) == CI_REP) {
		ci_rep_in(ci, c, m);
		ci_rtu(ci, c, false);
		ci_echo_rc(ci, c, 84);
		ci_want_acked(ci, c->qp);
	} else {
		is_rej(ci, m);
		ci_private(ci, m);
	}
}

/* ---- messages that are lost, late or come twice ---- */

/* A REQ that gives little time for its REP. */
static struct ci_conn *short_req(struct ci *ci, unsigned t, unsigned retries)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	c->req[REQ_LOCAL_TIME] = (uint8_t)(t << 3 | 7);
	c->req[REQ_RETRIES] = (uint8_t)(retries << 4);
	ci->again = true;
	c->req_at = cf_now(); /* no answer can have been sent earlier, however late it is read */
	ci_cm_send(ci, c->req);
	ci_rep_in(ci, c, ci_want(ci, CI_REP));
	return c;
}

static void check_passive_rep_again(struct ci *ci)
{
	struct ci_conn *c = short_req(ci, REP_TIME, 7);
	const uint8_t *m = ci_want(ci, CI_REP);

	CI_CHECK(ci, !memcmp(m, c->rep, CI_MAD), "it is not the same message");
	/* Linux counts 2^(t-8) ms where InfiniBand has 4.096 us * 2^t: 5 % less */
	CI_CHECK(ci, ci->at->at >= c->req_at + ci_time(REP_TIME) * 15 / 16, "after %llu us",
		 (unsigned long long)(ci->at->at - c->req_at) / 1000);
	ci->again = false;
	ci_rtu(ci, c, false);
	ci_quiet(ci);
}

static void rep_count(struct ci *ci)
{
	struct ci_conn *c = short_req(ci, REP_TIME, 2);
	const uint8_t *m;
	uint64_t until;

	ci_want(ci, CI_REP);
	ci_want(ci, CI_REP);
	/* not a third time; what may come is an end */
	until = cf_now() + 4 * ci_time(REP_TIME);
	while ((m = ci_came(ci, 0, until)))
		CI_CHECK(ci, ci_attr(m) == CI_REJ && cf_get16(m + REJ_REASON) == CI_REJ_TIMEOUT,
			 "another %s comes", ci_mad_name(m));
	c->up = false;
	ci->again = false;
	ci_gone(ci, c);
}

static void check_passive_req_again(struct ci *ci)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	ci_cm_send(ci, c->req);
	ci_cm_send(ci, c->req);
	ci_rep_in(ci, c, ci_want(ci, CI_REP));
	ci_quiet(ci); /* the REP itself may come twice */
	ci_rtu(ci, c, false);
	ci_quiet(ci);
	ci_cm_send(ci, c->req);
	ci_quiet(ci);
	ci_echo_rc(ci, c, 84);
	ci_want_acked(ci, c->qp);
}

static void rtu_again(struct ci *ci)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_connect(ci, false);
	ci_cm_send(ci, c->rtu);
	ci_cm_send(ci, c->rtu);
	ci_quiet(ci);
	ci_echo_rc(ci, c, 84);
	ci_want_acked(ci, c->qp);
}

static void check_passive_mra(struct ci *ci)
{
	struct ci_conn *c = short_req(ci, REP_TIME, 7);
	uint8_t m[CI_MAD];

	ci_mra(ci, m, c, 1, REP_TIME + 3);
	ci_cm_send(ci, m);
	ci_settle(ci); /* REPs that were on their way */
	CI_CHECK(ci, !ci_came(ci, 0, cf_now() + 2 * ci_time(REP_TIME)),
		 "a %s comes though an MRA asked for time", ci_mad_name(ci->at->b));
	ci->again = false;
	ci_rtu(ci, c, false);
	ci_echo_rc(ci, c, 84);
	ci_want_acked(ci, c->qp);
}

/* @m ends what has no RTU yet: no REP comes again. */
static void is_over(struct ci *ci, struct ci_conn *c, const uint8_t *m)
{
	ci->again = false; /* those that are on their way */
	ci_cm_send(ci, m);
	ci_quiet(ci);
	ci->again = true;
	CI_CHECK(ci, !ci_came(ci, 0, cf_now() + 2 * ci_time(REP_TIME)), "a %s comes",
		 ci_mad_name(ci->at->b));
	ci->again = false;
	ci_gone(ci, c);
}

static void rep_refused(struct ci *ci)
{
	struct ci_conn *c = short_req(ci, REP_TIME, 7);
	uint8_t m[CI_MAD];

	ci_rej(ci, m, c, 1, CI_REJ_CONSUMER);
	is_over(ci, c, m);
}

static void check_passive_withdrawn(struct ci *ci)
{
	struct ci_conn *c = short_req(ci, REP_TIME, 7);
	uint8_t m[CI_MAD];

	ci_rej(ci, m, c, 2, CI_REJ_TIMEOUT);
	m[REJ_LEN] = 8 << 1;
	cf_put64(m + REJ_ARI, ci->me.guid);
	is_over(ci, c, m);
}

static void data_first(struct ci *ci)
{
	struct ci_conn *c;

	ci_meet(ci, 0);
	c = ci_req(ci);
	ci_cm_send(ci, c->req);
	ci_rep_in(ci, c, ci_want(ci, CI_REP));
	ci_echo_rc(ci, c, 84);
	ci_want_acked(ci, c->qp);
	ci_rtu(ci, c, false);
	ci_echo_rc(ci, c, 84);
	ci_want_acked(ci, c->qp);
}

/* Our queue pair in a new REQ: the old connection is none any more. */
static void check_passive_stale(struct ci *ci)
{
	struct ci_conn *old, *c;
	const uint8_t *m;
	bool rej = false, dreq = false;
	uint8_t a[CI_MAD];

	ci_meet(ci, 0);
	old = ci_connect(ci, false);
	ci_quiet(ci); /* the RTU was dealt with */
	c = ci_req(ci);
	ci_put24(c->req + REQ_QPN, old->qp->qpn);
	old->up = false; /* its DREQ is due */
	ci_cm_send(ci, c->req);
	while (!rej || !dreq) {
		m = ci_want(ci, 0);
		if (ci_attr(m) == CI_DREQ) {
			CI_CHECK(ci, cf_get32(m + CM_REMOTE) == old->id, "a DREQ of another one");
			dreq = true;
			ci_drep(a, m);
			ci_cm_send(ci, a);
			continue;
		}
		CI_CHECK(ci, ci_attr(m) == CI_REJ && cf_get16(m + REJ_REASON) == CI_REJ_STALE,
			 "%s comes, REJ 10 and a DREQ are due", ci_mad_name(m));
		CI_CHECK(ci, !(m[REJ_MSG] >> 6), "it refuses message %u", m[REJ_MSG] >> 6);
		rej = true;
	}
	ci_quiet(ci);
}

#define SET_UP "4755-3.2-4 4755-3.2-1"

const struct ci_case ci_cases_passive[] = {
	{ "cm-rep", "4755-2.3-4 4755-3.2-3 4755-2.3-5 " SET_UP,
	  "what a REP says of IDs and queue pair", 0, rep },
	{ "cm-rep-private", "4755-3.2-10 4755-6-1 4755-6-2 4755-6-3 4755-9-2",
	  "and of UD queue pair and Receive MTU", 0, rep_private },
	{ "cm-service-id", "4755-3.5-1 4755-3.1-9", "the service ID of RFC 4755 is listened on", 0,
	  sid_rfc },
	{ "cm-service-id-block", "4755-3.5-1", "no other block, IETF's apart: REJ 8", 0,
	  sid_block },
	{ "cm-service-id-type", "4755-3.5-2", "no other type: REJ 8", 0, sid_type },
	{ "cm-service-id-reserved", "4755-3.5-3", "no reserved octet: REJ 8", 0, sid_reserved },
	{ "cm-service-id-qpn", "4755-3.5-4", "no other queue pair: REJ 8", 0, sid_qpn },
	{ "cm-rej-private", "4755-3.2-11 4755-6-1 4755-6-3", "a REJ has private data", 0,
	  rej_private },
	{ "cm-rej-ids", "", "and the IDs that a refused REQ leads to (IBA 12.6.7)", 0, rej_ids },
	{ "cm-private-reserved", "4755-6-4 4755-9-2", "the reserved octet of ours means nothing", 0,
	  private_reserved },
	{ "cm-private-rest", "4755-6-2", "nor does what is behind the eight octets", 0, tail },
	{ "cm-req-reserved", "", "nor do reserved octets of a REQ (IBA 12.6.5)", 0, req_reserved },
	{ "cm-private-missing", "4755-3.2-10 4755-5.1-1", "a REQ without private data is refused",
	  0, no_private },
	{ "cm-mtu-small", "4755-5-1", "a Receive MTU that IP cannot use is refused", 0, small_mtu },
	{ "cm-mtu-other", "4755-5.1-2 4755-5-4", "smaller and larger ones are taken", 0,
	  other_mtus },
	{ "cm-uc", "4755-3.1-12", "UC is refused by a node that does not offer it", 0, uc },
	{ "cm-pkey", "4392-4.1-1", "a REQ with another P_Key is refused", 0, other_pkey },
	{ "cm-gid", "", "a REQ for another GID is refused (IBA 12.6.5)", 0, other_gid },
	{ "cm-second", "4755-3.2-7 4755-3.2-8 4755-3.2-9",
	  "a second connection is accepted or refused well", 0, check_passive_second },
	{ "cm-rep-again", "",
	  "an unanswered REP comes again, unchanged, in its time (IBA 12.9.8.4)", 0,
	  check_passive_rep_again },
	{ "cm-rep-count", "", "as often as the REQ allows, and then it is over (IBA 12.9.8.4)", 0,
	  rep_count },
	{ "cm-req-again", "", "a REQ that comes twice makes one connection (IBA 12.9.8.3)", 0,
	  check_passive_req_again },
	{ "cm-rtu-again", "", "an RTU may come twice (IBA 12.9.7)", 0, rtu_again },
	{ "cm-mra", "", "an MRA makes a REP wait (IBA 12.9.8.6)", 0, check_passive_mra },
	{ "cm-rep-refused", "4755-3.2-4", "a REJ for the REP is the end", 0, rep_refused },
	{ "cm-withdrawn", "", "so is a REJ 4, known by the CA GUID (IBA 12.6.7)", 0,
	  check_passive_withdrawn },
	{ "cm-data-first", "4755-2.3-1", "data may come before the RTU", 0, data_first },
	{ "cm-stale", "", "a queue pair in use in a new REQ: REJ 10 and a DREQ (IBA 12.4.1)", 0,
	  check_passive_stale },
	{ 0 },
};
