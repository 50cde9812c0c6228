/* SPDX-License-Identifier: BSD-2-Clause */
/* REQs that cross (RFC 4755 section 3.3): the node with the smaller address accepts. */
#include "conform/ipoib/peer.h"
#include <string.h>

#define ECHO 84u

/* Its REQ is here and has no answer, ours goes out.  Return: what comes back. */
static const uint8_t *send_crossing_req(struct ci *ci, struct ci_conn **theirs,
					struct ci_conn **ours)
{
	const uint8_t *m;

	if (!(ci->target.lla[0] & CI_RC_FLAG))
		ci_skip(ci, "the target takes no reliable connections");
	*theirs = ci_provoke(ci);
	*ours = ci_req(ci);
	ci_cm_send(ci, (*ours)->req);
	m = ci_want(ci, 0);
	if (ci_attr(m) == CI_REP)
		ci_rep_in(ci, *ours, m);
	return m;
}

/* We are the smaller one: our REQ is refused, its own goes on. */
static const uint8_t *expect_our_req_refused(struct ci *ci, struct ci_conn **theirs)
{
	struct ci_conn *ours;
	const uint8_t *m = send_crossing_req(ci, theirs, &ours);

	CI_CHECK(ci, ci_attr(m) == CI_REJ, "%s comes, REJ 28 is due", ci_mad_name(m));
	CI_CHECK(ci, cf_get16(m + REJ_REASON) == CI_REJ_CONSUMER, "REJ %u, not 28",
		 cf_get16(m + REJ_REASON));
	CI_CHECK(ci, !(m[REJ_MSG] >> 6), "it refuses message %u, not a REQ", m[REJ_MSG] >> 6);
	ours->peer_id = 0;
	return m;
}

static void used(struct ci *ci, const struct ci_conn *c)
{
	struct ci_reply r;

	ci_echo_ud(ci, ECHO);
	ci_want_reply(ci, ci->seq, &r);
	CI_CHECK(ci, r.connected && r.qp == c->qp, "the answer does not use the connection");
	ci_quiet(ci);
}

static void check_cross_smaller(struct ci *ci)
{
	struct ci_conn *theirs;

	ci_meet_order(ci, CI_RC_FLAG, -1);
	expect_our_req_refused(ci, &theirs);
	ci_accept(ci, theirs);
	used(ci, theirs);
}

static void smaller_private(struct ci *ci)
{
	struct ci_conn *theirs;

	ci_meet_order(ci, CI_RC_FLAG, -1);
	ci_private(ci, expect_our_req_refused(ci, &theirs));
	ci_accept(ci, theirs);
}

/* All flags are set, which would make ours the larger one. */
static void check_cross_flags(struct ci *ci)
{
	struct ci_conn *theirs;

	ci_meet_order(ci, 0xff, -1);
	if (ci->target.lla[0] & CI_UC_FLAG)
		ci_skip(ci, "the target may connect by UC");
	expect_our_req_refused(ci, &theirs);
	ci_accept(ci, theirs);
}

/* Refused however often: by the REQ that is out, not by its first answer. */
static void check_cross_again(struct ci *ci)
{
	struct ci_conn *theirs, *c;
	const uint8_t *m;

	ci_meet_order(ci, CI_RC_FLAG, -1);
	expect_our_req_refused(ci, &theirs);
	c = ci_req(ci);
	ci_cm_send(ci, c->req);
	m = ci_want(ci, 0);
	CI_CHECK(ci, ci_attr(m) == CI_REJ, "the second REQ gets a %s", ci_mad_name(m));
	c->peer_id = 0;
	ci_accept(ci, theirs);
	used(ci, theirs);
}

/* We are the larger one: ours is accepted, and we refuse the other. */
static void expect_our_req_accepted(struct ci *ci, struct ci_conn **theirs, struct ci_conn **ours)
{
	const uint8_t *m = send_crossing_req(ci, theirs, ours);

	CI_CHECK(ci, ci_attr(m) == CI_REP, "REJ %u comes, a REP is due", cf_get16(m + REJ_REASON));
}

static void check_cross_larger(struct ci *ci)
{
	struct ci_conn *theirs, *ours;

	ci_meet_order(ci, CI_RC_FLAG, 1);
	expect_our_req_accepted(ci, &theirs, &ours);
}

/* One connection serves both ways. */
static void check_cross_one(struct ci *ci)
{
	struct ci_conn *theirs, *ours;
	uint8_t m[CI_MAD];

	ci_meet_order(ci, CI_RC_FLAG, 1);
	expect_our_req_accepted(ci, &theirs, &ours);
	ci_rej(ci, m, theirs, 0, CI_REJ_CONSUMER);
	theirs->peer_id = 0;
	ci_cm_send(ci, m);
	ci_rtu(ci, ours, true);
	ci_quiet(ci);
	used(ci, ours);
}

/* The REJ is late: what the two-way RTU has made of its REQ must not be a second connection. */
static void late_rej(struct ci *ci)
{
	struct ci_conn *theirs, *ours;
	const uint8_t *m;

	ci_meet_order(ci, CI_RC_FLAG, 1);
	expect_our_req_accepted(ci, &theirs, &ours);
	ci_rtu(ci, ours, true);
	ci_quiet(ci);
	ci_rep(ci, theirs); /* of a peer that answered both */
	ci_cm_send(ci, theirs->rep);
	m = ci_want(ci, 0);
	CI_CHECK(ci, ci_attr(m) == CI_REJ || ci_attr(m) == CI_RTU, "%s comes, REJ or RTU is due",
		 ci_mad_name(m));
	if (ci_attr(m) == CI_REJ)
		theirs->peer_id = 0;
	else
		theirs->up = true;
	used(ci, ci_attr(m) == CI_REJ ? ours : theirs);
}

/* The queue pairs are equal, so the GIDs decide. */
static void gid_smaller(struct ci *ci)
{
	struct ci_conn *theirs;

	ci_meet_gid(ci, CI_RC_FLAG, -1);
	expect_our_req_refused(ci, &theirs);
	ci_accept(ci, theirs);
}

static void gid_larger(struct ci *ci)
{
	struct ci_conn *theirs, *ours;

	ci_meet_gid(ci, CI_RC_FLAG, 1);
	expect_our_req_accepted(ci, &theirs, &ours);
}

/* An MRA is no answer: the REQ is still out. */
static void behind_mra(struct ci *ci)
{
	struct ci_conn *theirs, *c;
	const uint8_t *m;
	uint8_t a[CI_MAD];

	ci_meet_order(ci, CI_RC_FLAG, -1);
	if (!(ci->target.lla[0] & CI_RC_FLAG))
		ci_skip(ci, "the target takes no reliable connections");
	theirs = ci_provoke(ci);
	ci_mra(ci, a, theirs, 0, 20);
	ci_cm_send(ci, a);
	c = ci_req(ci);
	ci_cm_send(ci, c->req);
	m = ci_want(ci, 0);
	CI_CHECK(ci, ci_attr(m) == CI_REJ, "%s comes, REJ 28 is due", ci_mad_name(m));
	c->peer_id = 0;
	ci_accept(ci, theirs);
}

#define RULES "4755-3.3-1 4755-3.3-2 4755-3.3-3 "

const struct ci_case ci_cases_cross[] = {
	{ "cross-smaller", RULES "4755-3.3-5 4755-3.3-6",
	  "the target has the larger address: REJ 28, its own REQ continues", 0,
	  check_cross_smaller },
	{ "cross-smaller-private", "4755-3.2-11", "that REJ has private data", 0, smaller_private },
	{ "cross-smaller-again", RULES "4755-3.3-5 4755-3.3-9", "and so is the next one refused", 0,
	  check_cross_again },
	{ "cross-flags", "4755-3.3-7", "flags do not count", 0, check_cross_flags },
	{ "cross-larger", RULES "4755-3.3-4", "the target has the smaller address: it accepts", 0,
	  check_cross_larger },
	{ "cross-one", "4755-3.3-1", "with its own REQ refused, that connection serves both ways",
	  0, check_cross_one },
	{ "cross-late-rej", "4755-3.3-1", "a REP for the other one leaves one that is used", 0,
	  late_rej },
	{ "cross-gid-smaller", "4755-3.3-8 4755-3.3-5",
	  "equal queue pairs: the GID decides, larger", CI_NEEDS_SA, gid_smaller },
	{ "cross-gid-larger", "4755-3.3-8 4755-3.3-4",
	  "equal queue pairs: the GID decides, smaller", CI_NEEDS_SA, gid_larger },
	{ "cross-behind-mra", RULES "4755-3.3-5", "a REQ that has an MRA is outstanding", 0,
	  behind_mra },
	{ 0 },
};
