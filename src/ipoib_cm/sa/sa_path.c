/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths (IBA volume 1, 15.2.5.16): between any two ports of a partition, and to its groups. */
#include "ipoib_cm/sa/sa_in.h"
#include <string.h>

#define EXACTLY (DDPS_SEL_EXACTLY << 6)
#define RECORD	64
#define ANY_LID 0

/* What a query asks; of what is not fixed any will do. */
struct sa_path_query {
	struct ddps_sa *sa;
	uint64_t mask;
	const uint8_t *want; /* record */
	struct ddps_sa_pr pr;
	uint16_t from, to; /* LIDs or ANY_LID */
	const struct sa_group *group;
	struct sa_found *found;
};

#define AT(octet, n)                                                                               \
	{                                                                                          \
		8 * (octet), 8 * (n), DDPS_SA_EQUAL                                                \
	}
#define BITS(at, n)                                                                                \
	{                                                                                          \
		at, n, DDPS_SA_EQUAL                                                               \
	}

/* By the bits of the mask.  A flow label, hop limit or traffic class is the asker's own wish. */
static const struct ddps_sa_field path_field[] = {
	[2] = AT(8, 16),
	[3] = AT(24, 16),
	[4] = AT(40, 2),
	[5] = AT(42, 2),
	[6] = { 0 },
	[7] = { 0 },
	[8] = { 0 },
	[9] = { 0 },
	[10] = { 0 },
	[11] = { 0 },
	[12] = { 0 },
	[13] = BITS(8 * 50 + 1, 15),
	[14] = { 0 },
	[15] = { 0 },
	[16] = { 0, 0, DDPS_SA_SELECTOR },
	[17] = { 8 * 54, 8, DDPS_SA_MTU },
	[18] = { 0, 0, DDPS_SA_SELECTOR },
	[19] = { 8 * 55, 8, DDPS_SA_RATE },
	[20] = { 0, 0, DDPS_SA_SELECTOR },
	[21] = { 8 * 56, 8, DDPS_SA_LIFE },
	[22] = { 0 },
};

/* A path takes smaller packets, too, if just those are asked for. */
static uint8_t path_mtu(const struct sa_path_query *q)
{
	uint8_t most = q->sa->cfg.mtu, code = q->pr.mtu & 0x3f;

	if ((q->mask & (DDPS_PR_MTU_SEL | DDPS_PR_MTU)) != (DDPS_PR_MTU_SEL | DDPS_PR_MTU) ||
	    code < 1)
		return most;
	if (q->pr.mtu >> 6 == DDPS_SEL_EXACTLY)
		return code < most ? code : most;
	if (q->pr.mtu >> 6 == DDPS_SEL_LESS && code > 1)
		return code - 1 < most ? (uint8_t)(code - 1) : most;
	return most;
}

static void path_add(struct sa_path_query *q, uint16_t from, uint16_t dlid, const uint8_t *dgid,
		     unsigned part)
{
	const struct ddps_sa_config *c = &q->sa->cfg;
	struct ddps_sa_pr pr = { .dlid = dlid,
				 .slid = from,
				 .pkey = c->pkey[part] | 0x8000,
				 .sl = q->mask & DDPS_PR_SL ? q->pr.sl
							    : 0, /* UDP knows no levels */
				 .mtu = EXACTLY | path_mtu(q),
				 .rate = EXACTLY | c->rate,
				 .life = (uint8_t)(EXACTLY | (from == dlid ? 0 : c->life)) };
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	memcpy(pr.sgid, q->sa->port[from].gid, sizeof pr.sgid);
	memcpy(pr.dgid, dgid, sizeof pr.dgid);
	ddps_sa_pr_put(mad, &pr); /* flow label, hop limit 0: no GRH within the subnet */
	if (ddps_sa_match(path_field, sizeof path_field / sizeof *path_field, q->mask, q->want,
			  ddps_sa_record(mad)))
		ddps_sa_found_add(q->found, ddps_sa_record(mad), RECORD);
}

/* From one port to another, or to a group, in the first partition that both are in. */
static void path_between(struct sa_path_query *q, uint16_t from, uint16_t to)
{
	const struct ddps_sa *sa = q->sa;
	unsigned part = 0, end = sa->n_part;

	if (q->mask & DDPS_PR_PKEY) {
		part = ddps_sa_part(sa, q->pr.pkey);
		end = part + 1;
	}
	for (; part < end; part++) {
		if (q->group && ddps_sa_part(sa, q->group->rec.pkey) == part) {
			path_add(q, from, q->group->rec.mlid, q->group->rec.mgid, part);
			return;
		}
		if (!q->group && (ddps_sa_part_talk(sa, from, to, part) ||
				  (from == to && ddps_sa_part_member(sa, from, part)))) {
			path_add(q, from, to, sa->port[to].gid, part);
			return;
		}
	}
}

/* A table that has failed, or the one path that is asked for: it need not look further. */
static bool has_enough_paths(const struct sa_found *f)
{
	return f->failed || (!f->all && f->n);
}

static void path_from(struct sa_path_query *q, uint16_t from)
{
	if (q->group) {
		path_between(q, from, 0);
		return;
	}
	for (uint16_t to = 1; to < DDPS_SA_LIDS && !has_enough_paths(q->found); to++)
		if (ddps_sa_knows(q->sa, to) && (q->to == ANY_LID || q->to == to))
			path_between(q, from, to);
}

/* Where it is to begin: whoever asks for itself is known by that. */
static bool path_begin(struct sa_path_query *q, uint16_t slid, uint64_t now)
{
	struct ddps_sa *sa = q->sa;

	if (q->mask & DDPS_PR_SGID) {
		q->from = ddps_sa_lid_of(sa, q->pr.sgid);
		if (!ddps_sa_knows(sa, slid)) {
			if (ddps_sa_learn(sa, q->pr.sgid, slid, now))
				return false;
			q->from = slid;
		} else if (!q->from) {
			return false;
		}
	} else if (q->mask & DDPS_PR_SLID) {
		q->from = q->pr.slid;
	} else if (q->mask & (DDPS_PR_DGID | DDPS_PR_DLID)) {
		q->from = slid;
	}
	return q->from == ANY_LID || ddps_sa_knows(sa, q->from);
}

static bool path_end(struct sa_path_query *q)
{
	if (q->mask & DDPS_PR_DGID && q->pr.dgid[0] == 0xff) {
		q->group = ddps_sa_group_find(q->sa, q->pr.dgid);
		return q->group;
	}
	if (q->mask & DDPS_PR_DGID)
		q->to = ddps_sa_lid_of(q->sa, q->pr.dgid);
	else if (q->mask & DDPS_PR_DLID)
		q->to = q->pr.dlid;
	else
		return true;
	return q->to && ddps_sa_knows(q->sa, q->to);
}

uint16_t ddps_sa_find_paths(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			    const uint8_t *mad, struct sa_found *f, uint64_t now)
{
	struct sa_path_query q = { .sa = sa,
				   .mask = h->mask,
				   .want = mad + (DDPS_CM_MAD_LEN - DDPS_SA_RECORD_LEN),
				   .found = f };
	unsigned part;

	ddps_sa_pr_get(&q.pr, mad);
	part = ddps_sa_part(sa, q.pr.pkey);
	f->stride = RECORD;
	if (!path_begin(&q, slid, now) || !path_end(&q) ||
	    (h->mask & DDPS_PR_PKEY && part == DDPS_SA_NO_PART))
		return DDPS_SA_OK;
	if (h->mask & DDPS_PR_PKEY && q.from == slid)
		ddps_sa_part_learn(sa, slid, part, q.pr.pkey);
	for (uint16_t from = 1; from < DDPS_SA_LIDS && !has_enough_paths(f); from++)
		if (ddps_sa_knows(sa, from) && (q.from == ANY_LID || q.from == from))
			path_from(&q, from);
	return DDPS_SA_OK;
}
