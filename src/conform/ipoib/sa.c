/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration, from both ends (IBA volume 1, 15.2): no more of it than a link needs. */
#include "conform/ipoib/peer.h"
#include <string.h>

#define EXACTLY	  0x80u
#define RATE_10	  3u
#define BAD	  0x0200u
#define NO_RECORD 0x0300u
#define UNKNOWN	  0x000cu
#define JOIN_MASK 0x10083u /* MGID, PortGID, P_Key, JoinState */
#define PATH_MASK 0x340cu  /* DGID, SGID, traffic class, number, P_Key */

void ci_sa_start(struct ci *ci)
{
	/* RFC 4391 section 4: T, scope 2, signature of IPv4, P_Key, 32 ones */
	uint8_t mgid[CI_GID] = { 0xff, 0x12, 0x40, 0x1b, [12] = 0xff, 0xff, 0xff, 0xff };
	struct ci_group *g;

	cf_put16(mgid + 4, ci->plan.pkey | 0x8000);
	g = ci_group_make(ci, mgid, 0);
	memcpy(g->rec, mgid, CI_GID);
	cf_put32(g->rec + 32, ci->plan.qkey);
	cf_put16(g->rec + 36, g->mlid);
	g->rec[38] = (uint8_t)(EXACTLY | ci->plan.mtu);
	cf_put16(g->rec + 40, ci->plan.pkey);
	g->rec[42] = EXACTLY | RATE_10;
	g->rec[43] = (uint8_t)(EXACTLY | ci->plan.life);
	g->rec[48] = 2 << 4;
	ci->qkey = ci->plan.qkey;
	ci->mtu = 128u << ci->plan.mtu;
}

/* ---- as the administration ---- */

static uint16_t lid_of(const struct ci *ci, const uint8_t *gid)
{
	if (!memcmp(gid, ci->me.lla + 4, CI_GID) || !memcmp(gid, ci->plan.gid, CI_GID))
		return ci->lid;
	for (unsigned i = 0; i < ci->n_nodes; i++)
		if (!memcmp(ci->node[i].gid, gid, CI_GID))
			return ci->node[i].lid;
	return 0;
}

static void learn_gid(struct ci *ci, const uint8_t *gid, uint16_t lid)
{
	for (unsigned i = 0; i < ci->n_nodes; i++)
		if (ci->node[i].lid == lid) {
			memcpy(ci->node[i].gid, gid, CI_GID);
			return;
		}
	if (ci->n_nodes == CI_NODES)
		return;
	ci->node[ci->n_nodes].lid = lid;
	memcpy(ci->node[ci->n_nodes++].gid, gid, CI_GID);
}

static uint16_t answer_path_query(struct ci *ci, uint16_t slid, uint8_t *m)
{
	uint16_t dlid = lid_of(ci, m + PR_DGID);

	if (!dlid)
		return NO_RECORD;
	cf_put16(m + PR_DLID, dlid);
	cf_put16(m + PR_SLID, slid);
	memset(m + PR_SLID + 2, 0, PR_NUM - PR_SLID - 2);
	m[PR_NUM] = 0x81; /* reversible, one */
	cf_put16(m + PR_PKEY, ci->plan.pkey);
	cf_put16(m + PR_PKEY + 2, 0);
	m[PR_MTU] = (uint8_t)(EXACTLY | ci->plan.mtu);
	m[PR_RATE] = EXACTLY | RATE_10;
	m[PR_LIFE] = (uint8_t)(EXACTLY | ci->plan.life);
	cf_put16(m + 44, 8);
	return 0;
}

static uint16_t answer_member(struct ci *ci, uint16_t slid, unsigned method, uint8_t *m)
{
	struct ci_group *g = ci_group(ci, m + MC_MGID);
	uint8_t port[CI_GID], join = m[MC_SCOPE] & 15;

	memcpy(port, m + MC_PORT, CI_GID);
	if (method == SA_GET && !g)
		return NO_RECORD;
	if (method == SA_DELETE)
		return g ? 0 : BAD;
	if (!g && (join & 9) && (g = ci_group_make(ci, m + MC_MGID, 0))) {
		memcpy(g->rec, ci->group[0].rec, sizeof g->rec);
		memcpy(g->rec, g->mgid, CI_GID);
		cf_put16(g->rec + 36, g->mlid);
	}
	if (!g)
		return BAD;
	if (method == SA_SET)
		learn_gid(ci, port, slid);
	memcpy(m + SA_RECORD, g->rec, sizeof g->rec);
	memcpy(m + MC_PORT, port, CI_GID);
	m[MC_SCOPE] = (uint8_t)((m[MC_SCOPE] & 0xf0) | join);
	cf_put16(m + 44, 7);
	return 0;
}

static uint16_t answer_sa_query(struct ci *ci, uint16_t slid, uint8_t *m)
{
	unsigned method = m[M_METHOD], attr = ci_attr(m);

	if (method == SA_GET && attr == SA_PATH)
		return answer_path_query(ci, slid, m);
	if (attr == SA_MCMEMBER && (method == SA_GET || method == SA_SET || method == SA_DELETE))
		return answer_member(ci, slid, method, m);
	if (method == SA_GET && attr == SA_PORT_INFO) {
		memset(m + SA_RECORD, 0, CI_MAD - SA_RECORD);
		cf_put32(m + SA_RECORD, 0x01020200); /* UD multicast */
		cf_put32(m + SA_RECORD + 4, 0x1000u << 5 | 18);
		return 0;
	}
	return method == SA_SET && attr == SA_INFORM ? 0 : UNKNOWN;
}

void ci_sa_rx(struct ci *ci, uint16_t slid, const uint8_t *q)
{
	uint8_t m[CI_MAD];

	if (q[M_METHOD] & 0x80) { /* of no interest to whoever asks nobody */
		if (!ci->sa && slid == ci->plan.sa_lid)
			ci_event(ci, CI_EV_SA, q, CI_MAD);
		return;
	}
	if (!ci->sa)
		return;
	/* what others ask is no matter once it is known who the target is */
	if (ci->n_log < CI_LOG && (!ci->target.lid || slid == ci->target.lid)) {
		struct ci_query *l = &ci->log[ci->n_log++];

		l->at = cf_now();
		l->slid = slid;
		memcpy(l->mad, q, CI_MAD);
	}
	memcpy(m, q, CI_MAD);
	memset(m + 24, 0, SA_MASK - 24);
	cf_put16(m + M_STATUS, answer_sa_query(ci, slid, m));
	m[M_METHOD] = m[M_METHOD] == SA_DELETE ? SA_DELETE | 0x80 : SA_GET_RESP;
	ci_mad_packet(ci, slid, m);
}

const uint8_t *ci_sa_asked(const struct ci *ci, unsigned method, unsigned attr, const uint8_t *mgid)
{
	for (unsigned i = 0; i < ci->n_log; i++) {
		const struct ci_query *l = &ci->log[i];

		if (l->slid == ci->target.lid && l->mad[M_METHOD] == method &&
		    ci_attr(l->mad) == attr && (!mgid || !memcmp(l->mad + MC_MGID, mgid, CI_GID)))
			return l->mad;
	}
	return NULL;
}

/* ---- as a client ---- */

/* A query and its answer, asked again every second. */
static const uint8_t *ask_sa(struct ci *ci, uint8_t *m, uint64_t mask, const char *what)
{
	uint64_t until = ci_limit(ci, CI_PART_LINK);
	struct ci_ev *e;

	cf_put64(m + SA_MASK, mask);
	ci_due(ci, "an answer of the subnet administration");
	while (cf_now() < until) {
		ci_mad_packet(ci, ci->plan.sa_lid, m);
		e = ci_await(ci, CI_EV_SA, cf_now() + 1000000000);
		if (!e || memcmp(e->b + M_TID, m + M_TID, 8) != 0)
			continue;
		CI_CHECK(ci, !cf_get16(e->b + M_STATUS), "%s: status %04x", what,
			 cf_get16(e->b + M_STATUS));
		ci_got(ci);
		return e->b;
	}
	ci_fail(ci, "%s: the subnet administration does not answer", what);
}

void ci_sa_join(struct ci *ci)
{
	uint8_t m[CI_MAD];
	const uint8_t *a;
	struct ci_group *g;

	ci_mad(m, 3, SA_SET, SA_MCMEMBER, ci->next_tid++);
	m[MC_MGID] = 0xff;
	m[MC_MGID + 1] = 0x12;
	cf_put16(m + MC_MGID + 2, 0x401b);
	cf_put16(m + MC_MGID + 4, ci->plan.pkey | 0x8000);
	memset(m + MC_MGID + 12, 0xff, 4);
	memcpy(m + MC_PORT, ci->plan.gid, CI_GID);
	cf_put16(m + MC_PKEY, ci->plan.pkey);
	m[MC_SCOPE] = 1;
	a = ask_sa(ci, m, JOIN_MASK, "the broadcast group");
	g = ci_group_make(ci, a + MC_MGID, cf_get16(a + MC_MLID));
	memcpy(g->rec, a + SA_RECORD, sizeof g->rec);
	ci->qkey = cf_get32(a + MC_QKEY);
	CI_CHECK(ci, (a[MC_MTU] & 63) >= 1 && (a[MC_MTU] & 63) <= 5, "MTU %02x", a[MC_MTU]);
	ci->mtu = 128u << (a[MC_MTU] & 7);
}

void ci_sa_path(struct ci *ci, const uint8_t *gid)
{
	uint8_t m[CI_MAD];
	const uint8_t *a;

	ci_mad(m, 3, SA_GET, SA_PATH, ci->next_tid++);
	memcpy(m + PR_DGID, gid, CI_GID);
	memcpy(m + PR_SGID, ci->plan.gid, CI_GID);
	m[PR_NUM] = 1;
	cf_put16(m + PR_PKEY, ci->plan.pkey);
	a = ask_sa(ci, m, PATH_MASK, "the path to the target");
	ci->target.lid = cf_get16(a + PR_DLID);
	CI_CHECK(ci, (a[PR_MTU] & 63) >= 1 && (a[PR_MTU] & 63) <= 5, "MTU %02x", a[PR_MTU]);
	ci->plan.mtu = a[PR_MTU] & 7;
	ci->plan.life = a[PR_LIFE] & 31;
}
