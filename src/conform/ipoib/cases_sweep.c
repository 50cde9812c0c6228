/* SPDX-License-Identifier: BSD-2-Clause */
/* Every part of every message, and each with a bit flipped. */
#include "conform/ipoib/peer.h"
#include <string.h>

#define BATCH 16u /* messages between two questions */
#define FIRST 24u /* truncated ones below that have no header */

/* A message of this kind that would have an effect, about a connection of its own. */
static struct ci_conn *make_sample(struct ci *ci, unsigned attr, uint8_t m[CI_MAD])
{
	struct ci_conn *c;

	if (attr == CI_REP) {
		ci_meet(ci, CI_RC_FLAG);
		if (!(ci->target.lla[0] & CI_RC_FLAG))
			ci_skip(ci, "the target takes no reliable connections");
		c = ci_provoke(ci);
		ci_rep(ci, c);
		memcpy(m, c->rep, CI_MAD);
		return c;
	}
	ci_meet(ci, 0);
	c = ci_req(ci);
	if (attr == CI_REQ) {
		memcpy(m, c->req, CI_MAD);
		return c;
	}
	c->req[REQ_LOCAL_TIME] = 20 << 3; /* the REP does not come again meanwhile */
	ci_cm_send(ci, c->req);
	ci_rep_in(ci, c, ci_want(ci, CI_REP));
	if (attr == CI_MRA) {
		ci_mra(ci, m, c, 1, 20);
		return c;
	}
	ci_rtu(ci, c, false);
	ci_quiet(ci);
	memcpy(m, c->rtu, CI_MAD);
	if (attr == CI_REJ)
		ci_rej(ci, m, c, 2, CI_REJ_CONSUMER);
	else if (attr == CI_DREQ)
		ci_dreq(ci, m, c);
	else if (attr == CI_DREP) {
		ci_dreq(ci, m, c);
		cf_put16(m + M_ATTR, CI_DREP);
	}
	return c;
}

/* Without effect, so the connection can still be ended. */
static void check_sweep_truncated(struct ci *ci, unsigned attr)
{
	uint8_t m[CI_MAD];
	struct ci_conn *c = make_sample(ci, attr, m);
	unsigned n = 0;

	for (size_t len = 0; len < CI_MAD; len++) {
		struct ci_pkt p = ci_ud(ci, m, len);

		p.qpn = p.src_qpn = 1;
		p.qkey = 0x80010000;
		ci_packet(ci, ci->target.lid, &p);
		if (!(++n % BATCH))
			ci_quiet(ci);
	}
	ci_quiet(ci);
	if (c->up)
		ci_disconnect(ci, c);
	ci_forget(ci);
	ci_meet(ci, 0);
	ci_alive(ci);
}

/* What came back, whatever it was, has been said well; what came of it is ended. */
static void settle_sweep(struct ci *ci)
{
	uint8_t q[CI_MAD];
	uint32_t id = ci->next_id++;
	uint64_t until = ci_limit(ci, CI_PART_END);
	struct ci_ev *e;

	ci_mad(q, 7, 3, CI_DREQ, ci->next_tid++);
	cf_put32(q + CM_LOCAL, id);
	cf_put32(q + CM_REMOTE, ~id);
	ci_cm_send(ci, q);
	while ((e = ci_await(ci, CI_EV_CM, until))) {
		const char *bad = ci_mad_reserved(e->b);
		uint8_t a[CI_MAD];

		CI_CHECK(ci, !bad, "%s", bad);
		if (ci_attr(e->b) == CI_DREP && cf_get32(e->b + CM_REMOTE) == id)
			return;
		if (ci_attr(e->b) == CI_REP) {
			const struct ci_conn c = { .id = cf_get32(e->b + CM_REMOTE),
						   .peer_id = cf_get32(e->b + CM_LOCAL) };

			ci_rej(ci, a, &c, 1, CI_REJ_CONSUMER);
			ci_cm_send(ci, a);
		} else if (ci_attr(e->b) == CI_DREQ) {
			ci_drep(a, e->b);
			ci_cm_send(ci, a);
		}
	}
	ci_fail(ci, "the target does not answer any more");
}

static void flipped(struct ci *ci, unsigned attr)
{
	uint8_t m[CI_MAD];
	unsigned n = 0, bits = ci->plan.thorough ? 8 : 1;

	make_sample(ci, attr, m);
	for (size_t at = 0; at < CI_MAD; at++)
		for (unsigned bit = 0; bit < bits; bit++) {
			uint8_t was = m[at];

			m[at] ^= (uint8_t)(1u << (bits == 8 ? bit : at % 8));
			ci_cm_send(ci, m);
			m[at] = was;
			if (attr == CI_REQ) /* each is another one */
				cf_put32(m + CM_LOCAL, ci->next_id++);
			if (attr == CI_REQ)
				ci_put24(m + REQ_QPN, ci->next_qpn++ & 0x7fffff);
			if (!(++n % BATCH))
				settle_sweep(ci);
		}
	settle_sweep(ci);
	ci_sweep(ci);
	ci_forget(ci);
	ci->n_conns = 0;
	ci_meet(ci, 0);
	ci_alive(ci);
}

#define SWEEP(name, attr)                                                                          \
	static void truncated_##name(struct ci *ci)                                                \
	{                                                                                          \
		check_sweep_truncated(ci, attr);                                                   \
	}                                                                                          \
	static void flipped_##name(struct ci *ci)                                                  \
	{                                                                                          \
		flipped(ci, attr);                                                                 \
	}
SWEEP(req, CI_REQ)
SWEEP(rep, CI_REP)
SWEEP(rtu, CI_RTU)
SWEEP(mra, CI_MRA)
SWEEP(rej, CI_REJ)
SWEEP(dreq, CI_DREQ)
SWEEP(drep, CI_DREP)

#define ROW(name)                                                                                  \
	{ "short-" #name, "4755-8-1", "no part of this message has an effect (IBA 13.4.2)",        \
	  CI_NEEDS_PACKETS, truncated_##name },                                                    \
	{                                                                                          \
		"flipped-" #name, "4755-8-1", "with any bit flipped it does no harm", 0,           \
			flipped_##name                                                             \
	}

const struct ci_case ci_cases_sweep[] = {
	ROW(req), ROW(rep), ROW(rtu), ROW(mra), ROW(rej), ROW(dreq), ROW(drep), { 0 },
};
