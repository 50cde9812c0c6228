/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of ports, of this administration and of groups (IBA volume 1, 15.2.5). */
#include "ipoib_cm/sa/sa_in.h"
#include "ipoib_cm/sa/sa_mad.h"
#include <stdlib.h>
#include <string.h>

void ddps_sa_found_add(struct sa_found *f, const uint8_t *rec, size_t len)
{
	size_t want = f->all ? (f->n + 1) * f->stride : f->stride;
	uint8_t *more;

	if (f->failed || (!f->all && f->n++))
		return;
	f->failed = f->n >= DDPS_SA_RECORDS;
	if (f->failed)
		return;
	if (want > f->room) {
		more = realloc(f->data, 2 * want);
		f->room = more ? 2 * want : f->room;
		f->data = more ? more : f->data;
	}
	f->failed = want > f->room;
	if (f->failed)
		return;
	memset(f->data + want - f->stride, 0, f->stride);
	memcpy(f->data + want - f->stride, rec, len);
	f->n += f->all;
}

#define AT(octet, n)                                                                               \
	{                                                                                          \
		8 * (octet), 8 * (n), DDPS_SA_EQUAL                                                \
	}
#define BITS(octet, b, n)                                                                          \
	{                                                                                          \
		8 * (octet) + (b), n, DDPS_SA_EQUAL                                                \
	}
#define NODE	4  /* where the attribute begins in its record */
#define CAPS	20 /* of a PortInfo: the capability mask */
#define OFF_MOD 20 /* of a MAD: the attribute modifier */

static const struct ddps_sa_field node_field[] = {
	AT(0, 2),	   { 0 },
	AT(NODE, 1),	   AT(NODE + 1, 1),
	AT(NODE + 2, 1),   AT(NODE + 3, 1),
	AT(NODE + 4, 8),   AT(NODE + 12, 8),
	AT(NODE + 20, 8),  AT(NODE + 28, 2),
	AT(NODE + 30, 2),  AT(NODE + 32, 4),
	AT(NODE + 36, 1),  AT(NODE + 37, 3),
	AT(NODE + 40, 64),
};

static const struct ddps_sa_field port_field[] = {
	AT(0, 2),	  /* end port LID */
	AT(2, 1),	  /* port number */
	{ 0 },		  /* options */
	AT(NODE, 8),	  /* M_Key */
	AT(NODE + 8, 8),  /* GID prefix */
	AT(NODE + 16, 2), /* LID */
	AT(NODE + 18, 2), /* of the SM */
	AT(NODE + 20, 4), /* capabilities */
	AT(NODE + 24, 2), /* diagnostics */
	AT(NODE + 26, 2), /* lease of the M_Key */
	AT(NODE + 28, 1), /* local port */
	AT(NODE + 29, 1), /* width: enabled, supported, active */
	AT(NODE + 30, 1),
	AT(NODE + 31, 1),
	BITS(NODE + 32, 0, 4), /* speeds supported */
	BITS(NODE + 32, 4, 4), /* state */
	BITS(NODE + 33, 0, 4), /* physical state */
	BITS(NODE + 33, 4, 4),
	BITS(NODE + 34, 0, 2), /* protection of the M_Key */
	BITS(NODE + 34, 5, 3), /* LMC */
	BITS(NODE + 35, 0, 4), /* speed: active, enabled */
	BITS(NODE + 35, 4, 4),
	BITS(NODE + 36, 0, 4), /* neighbour's MTU */
	BITS(NODE + 36, 4, 4),
	BITS(NODE + 37, 0, 4), /* virtual lanes */
};

static const struct ddps_sa_field sm_field[] = { AT(0, 2),	{ 0 },	   AT(4, 8),
						 AT(12, 8),	AT(20, 4), BITS(24, 0, 4),
						 BITS(24, 4, 4) };

static const struct ddps_sa_field group_field[] = {
	AT(0, 16),
	AT(16, 16),
	AT(32, 4),
	AT(36, 2),
	{ 0, 0, DDPS_SA_SELECTOR },
	{ 8 * 38, 8, DDPS_SA_MTU },
	AT(39, 1),
	BITS(40, 1, 15),
	{ 0, 0, DDPS_SA_SELECTOR },
	{ 8 * 42, 8, DDPS_SA_RATE },
	{ 0, 0, DDPS_SA_SELECTOR },
	{ 8 * 43, 8, DDPS_SA_LIFE },
	BITS(44, 0, 4),
	BITS(44, 4, 20),
	AT(47, 1),
	BITS(48, 0, 4),
	BITS(48, 4, 4),
	BITS(49, 0, 1),
};

static struct ddps_ib_self self_of(const struct ddps_sa *sa, uint16_t lid)
{
	struct ddps_ib_self s = {
		.lid = lid, .sm_lid = sa->cfg.lid, .mtu = sa->cfg.mtu, .life = sa->cfg.life
	};

	memcpy(s.gid, sa->port[lid].gid, sizeof s.gid);
	return s;
}

/* 15.2.5.2 */
static size_t put_node(const struct ddps_sa *sa, uint16_t lid, uint8_t *rec)
{
	struct ddps_ib_self s = self_of(sa, lid);

	ddps_smp_node_info(rec + NODE, &s);
	ddps_smp_node_desc(rec + NODE + DDPS_SMP_NODE_INFO_LEN, &s);
	return NODE + DDPS_SMP_NODE_INFO_LEN + DDPS_SMP_NODE_DESC_LEN;
}

/* 15.2.5.3 */
static size_t put_port(const struct ddps_sa *sa, uint16_t lid, uint8_t *rec)
{
	struct ddps_ib_self s = self_of(sa, lid);

	rec[2] = 1; /* port number */
	ddps_smp_port_info(rec + NODE, &s);
	return NODE + DDPS_SMP_PORT_INFO_LEN;
}

/* 15.2.5.8 */
static size_t put_sm(const struct ddps_sa *sa, uint16_t lid, uint8_t *rec)
{
	struct ddps_ib_self s = self_of(sa, lid);

	ddps_smp_sm_info(rec + NODE, &s);
	return NODE + DDPS_SMP_SM_INFO_LEN;
}

static const struct sa_kind {
	uint16_t attr, stride;
	const struct ddps_sa_field *field;
	size_t n_field;
	size_t (*put)(const struct ddps_sa *sa, uint16_t lid, uint8_t *rec); /* NULL: of groups */
} kind[] = {
#define KIND(attr, stride, field, put)                                                             \
	{                                                                                          \
		attr, stride, field, sizeof(field) / sizeof *(field), put                          \
	}
	KIND(DDPS_SA_NODE_RECORD, 112, node_field, put_node),
	KIND(DDPS_SA_PORT_INFO_RECORD, 72, port_field, put_port),
	KIND(DDPS_SA_SM_INFO_RECORD, 32, sm_field, put_sm),
	KIND(DDPS_SA_MCMEMBER_RECORD, 56, group_field, NULL),
};

/* Of ports, by what they can do: what is asked for has to be there, and more may be. */
static void ignore_other_caps(const uint8_t *want, uint8_t *have)
{
	for (unsigned i = NODE + CAPS; i < NODE + CAPS + 4; i++)
		have[i] &= want[i];
}

/* @caps: bit 31 of the attribute modifier. */
static void find_ports(const struct ddps_sa *sa, const struct sa_kind *k, uint64_t mask, bool caps,
		       const uint8_t *want, struct sa_found *f)
{
	for (uint16_t lid = 1; lid < DDPS_SA_LIDS; lid++) {
		uint8_t rec[DDPS_SA_RECORD_LEN] = { (uint8_t)(lid >> 8), (uint8_t)lid };
		uint8_t compared[DDPS_SA_RECORD_LEN];
		size_t len;

		if (!ddps_sa_knows(sa, lid) || (k->put == put_sm && lid != sa->cfg.lid))
			continue;
		len = k->put(sa, lid, rec);
		memcpy(compared, rec, sizeof compared);
		if (caps && k->put == put_port)
			ignore_other_caps(want, compared);
		if (ddps_sa_match(k->field, k->n_field, mask, want, compared))
			ddps_sa_found_add(f, rec, len);
	}
}

/* 15.2.5.17.2: the groups, and not who is in them; but a port that is named is in those that it is in. */
static void find_groups(const struct ddps_sa *sa, const struct sa_kind *k, uint64_t mask,
			const uint8_t *want, struct sa_found *f)
{
	uint16_t lid = mask & DDPS_MC_PORT_GID ? ddps_sa_lid_of(sa, want + DDPS_IPOIB_GID_LEN) : 0;

	for (unsigned i = 0; i < DDPS_SA_GROUPS; i++) {
		const struct sa_group *g = &sa->group[i];
		uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
		struct ddps_sa_mcm r = g->rec;

		if (!g->used)
			continue;
		if (mask & DDPS_MC_PORT_GID) {
			if (!lid || !g->join[lid])
				continue;
			memcpy(r.port_gid, sa->port[lid].gid, sizeof r.port_gid);
			r.join = g->join[lid];
		}
		ddps_sa_mcm_put(mad, &r);
		if (ddps_sa_match(k->field, k->n_field, mask, want, ddps_sa_record(mad)))
			ddps_sa_found_add(f, ddps_sa_record(mad), k->stride);
	}
}

uint16_t ddps_sa_find_records(struct ddps_sa *sa, const struct ddps_sa_head *h, const uint8_t *mad,
			      struct sa_found *f)
{
	const uint8_t *want = mad + (DDPS_CM_MAD_LEN - DDPS_SA_RECORD_LEN);
	const struct sa_kind *k = kind;

	while (k->attr != h->attr)
		k++;
	f->stride = k->stride;
	if (k->put)
		find_ports(sa, k, h->mask, mad[OFF_MOD] & 0x80, want, f);
	else
		find_groups(sa, k, h->mask, want, f);
	return DDPS_SA_OK;
}
