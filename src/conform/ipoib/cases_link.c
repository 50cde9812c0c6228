/* SPDX-License-Identifier: BSD-2-Clause */
/* What the target has asked of the subnet administration (RFC 4391 sections 4, 5, 9 and 10). */
#include "conform/ipoib/peer.h"
#include <string.h>

#define MASKED 0x10083u /* what the join of the broadcast group has at least */

static const uint8_t *expect_group_joined(struct ci *ci, const uint8_t *mgid)
{
	const uint8_t *m = ci_sa_asked(ci, SA_SET, SA_MCMEMBER, mgid);

	CI_CHECK(ci, m, "the target has not joined %s", cf_hex(mgid, CI_GID));
	return m;
}

static void check_link_join(struct ci *ci)
{
	const uint8_t *m = expect_group_joined(ci, ci->group[0].mgid);
	uint64_t mask = cf_get64(m + SA_MASK);

	CI_CHECK(ci, (mask & MASKED) == MASKED, "component mask %llx", (unsigned long long)mask);
	CI_CHECK(ci, m[MC_SCOPE] & 1, "join state %u is no full member", m[MC_SCOPE] & 15);
	CI_CHECK(ci, !((cf_get16(m + MC_PKEY) ^ ci->plan.pkey) & 0x7fff), "P_Key %04x",
		 cf_get16(m + MC_PKEY));
	CI_CHECK(ci, !memcmp(m + MC_PORT, ci->target.lla + 4, CI_GID),
		 "port GID %s, ARP has another", cf_hex(m + MC_PORT, CI_GID));
}

static void check_link_first_join(struct ci *ci)
{
	const uint8_t *m = ci_sa_asked(ci, SA_SET, SA_MCMEMBER, NULL);

	CI_CHECK(ci, m, "the target has joined nothing");
	CI_CHECK(ci, !memcmp(m + MC_MGID, ci->group[0].mgid, CI_GID), "it joins %s first",
		 cf_hex(m + MC_MGID, CI_GID));
}

/* The target's joins but that of the broadcast group; NULL at the end. */
static const uint8_t *next_join(const struct ci *ci, unsigned *at)
{
	while (*at < ci->n_log) {
		const struct ci_query *l = &ci->log[(*at)++];

		if (l->slid == ci->target.lid && l->mad[M_METHOD] == SA_SET &&
		    ci_attr(l->mad) == SA_MCMEMBER &&
		    memcmp(l->mad + MC_MGID, ci->group[0].mgid, CI_GID) != 0)
			return l->mad;
	}
	return NULL;
}

static void mgids(struct ci *ci)
{
	const uint8_t *m, *b = ci->group[0].mgid;
	unsigned at = 0, n = 0;

	for (; (m = next_join(ci, &at)); n++) {
		const uint8_t *g = m + MC_MGID;

		CI_CHECK(ci, g[0] == 0xff && g[1] == b[1], "T or scope: %s", cf_hex(g, CI_GID));
		CI_CHECK(ci, cf_get16(g + 2) == 0x401b || cf_get16(g + 2) == 0x601b,
			 "signature: %s", cf_hex(g, CI_GID));
		CI_CHECK(ci, cf_get16(g + 4) == cf_get16(b + 4), "P_Key: %s", cf_hex(g, CI_GID));
		CI_CHECK(ci,
			 cf_get16(g + 2) == 0x601b ||
				 (!cf_get32(g + 6) && !cf_get16(g + 10) && g[12] < 16),
			 "more than 28 bits of an IPv4 group: %s", cf_hex(g, CI_GID));
	}
	if (!n)
		ci_skip(ci, "the target is in no group but that of broadcasts");
}

static void like_broadcast(struct ci *ci)
{
	/* of the record: Q_Key, MTU, class, P_Key, rate, SL and flow label and hop limit */
	static const struct {
		uint64_t mask;
		uint8_t at, len;
	} f[] = { { 0x4, 32, 4 },  { 0x20, 38, 1 },  { 0x40, 39, 1 },
		  { 0x80, 40, 2 }, { 0x200, 42, 1 }, { 0x7000, 44, 4 } };
	const uint8_t *m;
	unsigned at = 0, n = 0;

	for (; (m = next_join(ci, &at)); n++)
		for (unsigned i = 0; i < sizeof f / sizeof *f; i++) {
			const uint8_t *v = m + SA_RECORD + f[i].at;

			CI_CHECK(ci, cf_get64(m + SA_MASK) & f[i].mask,
				 "a group is joined that may have to be made, without octet %u of "
				 "the "
				 "record: mask %llx",
				 f[i].at, (unsigned long long)cf_get64(m + SA_MASK));
			CI_CHECK(ci, !memcmp(v, ci->group[0].rec + f[i].at, f[i].len),
				 "octets %u of the record: %s, broadcast has %s", f[i].at,
				 cf_hex(v, f[i].len), cf_hex(ci->group[0].rec + f[i].at, f[i].len));
		}
	if (!n)
		ci_skip(ci, "the target is in no group but that of broadcasts");
}

static void all_hosts(struct ci *ci)
{
	uint8_t g[CI_GID];
	const uint8_t *m;

	memcpy(g, ci->group[0].mgid, CI_GID);
	cf_put32(g + 12, 1); /* 224.0.0.1: 28 bits of it */
	m = expect_group_joined(ci, g);
	CI_CHECK(ci, m[MC_SCOPE] & 1, "join state %u is no full member", m[MC_SCOPE] & 15);
}

static void all_nodes(struct ci *ci)
{
	uint8_t g[CI_GID] = { 0xff };

	memcpy(g + 1, ci->group[0].mgid + 1, 5);
	cf_put16(g + 2, 0x601b);
	g[15] = 1;
	expect_group_joined(ci, g);
	memset(g + 6, 0, 10); /* the target's solicited-node group */
	g[11] = 1;
	g[12] = 0xff;
	memcpy(g + 13, ci->target.ip6 + 13, 3);
	expect_group_joined(ci, g);
}

static void traps(struct ci *ci)
{
	bool seen[2] = { false };

	for (unsigned i = 0; i < ci->n_log; i++) {
		const uint8_t *m = ci->log[i].mad;
		uint16_t trap = cf_get16(m + II_TRAP);

		if (ci->log[i].slid != ci->target.lid || ci_attr(m) != SA_INFORM ||
		    m[M_METHOD] != SA_SET || !m[II_SUBSCRIBE])
			continue;
		seen[0] |= trap == 66 || trap == 0xffff;
		seen[1] |= trap == 67 || trap == 0xffff;
	}
	CI_CHECK(ci, seen[0] && seen[1], "no InformInfo for trap %s", seen[0] ? "67" : "66");
}

/* The target's latest query for the way to us. */
static const uint8_t *path_query(struct ci *ci)
{
	for (unsigned i = ci->n_log; i-- > 0;) {
		const uint8_t *q = ci->log[i].mad;

		if (ci->log[i].slid == ci->target.lid && q[M_METHOD] == SA_GET &&
		    ci_attr(q) == SA_PATH && !memcmp(q + PR_DGID, ci->plan.gid, CI_GID))
			return q;
	}
	ci_fail(ci, "the target answers without having asked for the path to us");
}

static void check_link_path(struct ci *ci)
{
	const uint8_t *m;
	uint64_t mask;

	ci_meet(ci, 0);
	m = path_query(ci);
	mask = cf_get64(m + SA_MASK);
	CI_CHECK(ci, !memcmp(m + PR_SGID, ci->target.lla + 4, CI_GID), "SGID %s",
		 cf_hex(m + PR_SGID, CI_GID));
	CI_CHECK(ci, (mask & 0xc) == 0xc, "mask %llx", (unsigned long long)mask);
	CI_CHECK(ci, !(mask & 0x2000) || !((cf_get16(m + PR_PKEY) ^ ci->plan.pkey) & 0x7fff),
		 "P_Key %04x", cf_get16(m + PR_PKEY));
}

const struct ci_case ci_cases_link[] = {
	{ "link-join", "4391-5-2 4391-4-2 4391-4-3 4391-4.1-1 4391-4.1-6 4392-4-1 4392-4.2.5-1",
	  "the broadcast group is joined as full member", CI_NEEDS_SA, check_link_join },
	{ "link-join-first", "4391-5-2", "before all other groups", CI_NEEDS_SA,
	  check_link_first_join },
	{ "link-mgids", "4391-4-2 4391-4-3 4391-4-4 4391-4-5 4391-4-7 4391-4.1-1 4392-4.1-1",
	  "MGIDs have T, the link's scope and P_Key, and a signature", CI_NEEDS_SA, mgids },
	{ "link-like-broadcast", "4391-10-8 4391-10-9",
	  "groups are asked for with the values of the broadcast group", CI_NEEDS_SA,
	  like_broadcast },
	{ "link-all-hosts", "4391-10-7 4392-4.2.2-1", "224.0.0.1 is joined as full member",
	  CI_NEEDS_SA, all_hosts },
	{ "link-all-nodes", "4391-4-4 4391-10-7", "ff02::1 and the solicited-node group are joined",
	  CI_NEEDS_SA | CI_NEEDS_IP6, all_nodes },
	{ "link-traps", "4391-10-5 4392-4.2.5-2",
	  "creation and deletion of groups are subscribed to", CI_NEEDS_SA, traps },
	{ "link-path", "4391-9.1.2-2 4391-9.1.2-3 4755-3.1-11",
	  "the way to a neighbour is asked of the subnet administration", CI_NEEDS_SA,
	  check_link_path },
	{ 0 },
};
