/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions (IBA volume 1, 10.9), multicast groups and their members (15.2.5.17). */
#include "ipoib_cm/sa/sa_in.h"
#include <string.h>

#define EXACTLY	  (DDPS_SEL_EXACTLY << 6)
#define COUNTING  (DDPS_MC_FULL | DDPS_MC_SEND_FULL)
#define RECORD	  56 /* octets, rounded up */
#define TRAP_NEW  66
#define TRAP_DEL  67
#define PKEY_FULL 0x8000
#define PKEY_BASE 0x7fff

_Static_assert(DDPS_SA_PKEYS <= 32, "a bit for each");

/* ---- partitions ---- */

unsigned ddps_sa_part(const struct ddps_sa *sa, uint16_t pkey)
{
	unsigned i = 0;

	while (i < sa->n_part && (sa->cfg.pkey[i] & PKEY_BASE) != (pkey & PKEY_BASE))
		i++;
	return i < sa->n_part ? i : DDPS_SA_NO_PART;
}

void ddps_sa_part_learn(struct ddps_sa *sa, uint16_t lid, unsigned part, uint16_t pkey)
{
	struct sa_port *p = &sa->port[lid];
	uint32_t bit = 1u << part;

	p->full &= ~bit;
	p->limited &= ~bit;
	if (pkey & PKEY_FULL)
		p->full |= bit;
	else
		p->limited |= bit;
}

static bool is_full_member(const struct ddps_sa *sa, uint16_t lid, unsigned part)
{
	const struct sa_port *p = &sa->port[lid];

	/* whoever says nothing is in the first one */
	return p->full >> part & 1 || (!part && !p->full && !p->limited);
}

bool ddps_sa_part_member(const struct ddps_sa *sa, uint16_t lid, unsigned part)
{
	return is_full_member(sa, lid, part) || sa->port[lid].limited >> part & 1;
}

bool ddps_sa_part_talk(const struct ddps_sa *sa, uint16_t a, uint16_t b, unsigned part)
{
	return ddps_sa_part_member(sa, a, part) && ddps_sa_part_member(sa, b, part) &&
	       (is_full_member(sa, a, part) || is_full_member(sa, b, part));
}

/* ---- groups ---- */

void ddps_sa_broadcast_groups(struct ddps_sa *sa)
{
	const struct ddps_sa_config *c = &sa->cfg;

	for (; sa->n_part < DDPS_SA_PKEYS && c->pkey[sa->n_part]; sa->n_part++) {
		struct sa_group *g = &sa->group[sa->n_part];

		g->used = true;
		g->rec = (struct ddps_sa_mcm){ .qkey = c->qkey,
					       .mlid = (uint16_t)(DDPS_MLID_FIRST + sa->n_part),
					       .mtu = EXACTLY | c->mtu,
					       .pkey = c->pkey[sa->n_part] | 0x8000,
					       .rate = EXACTLY | c->rate,
					       .life = EXACTLY | c->life,
					       .scope = c->scope };
		/* cannot fail: the scope has four bits */
		(void)ddps_ipoib_mgid_broadcast(g->rec.mgid, g->rec.pkey, c->scope & 15);
	}
}

struct sa_group *ddps_sa_group_find(struct ddps_sa *sa, const uint8_t *mgid)
{
	for (unsigned i = 0; i < DDPS_SA_GROUPS; i++)
		if (sa->group[i].used && !memcmp(sa->group[i].rec.mgid, mgid, DDPS_IPOIB_GID_LEN))
			return &sa->group[i];
	return NULL;
}

/* The group's place says its MLID, so one free place from the MGID's own on will do. */
static struct sa_group *free_place(struct ddps_sa *sa, const uint8_t *mgid)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (unsigned i = 0; i < DDPS_IPOIB_GID_LEN; i++)
		hash = (hash ^ mgid[i]) * 16777619u;
	for (unsigned k = 0; k < DDPS_SA_GROUPS - sa->n_part; k++) {
		unsigned i = sa->n_part + (hash + k) % (DDPS_SA_GROUPS - sa->n_part);

		if (!sa->group[i].used)
			return &sa->group[i];
	}
	return NULL;
}

#define MASKED(bit, test) (!(mask & (bit)) || (test))
/* A selector and what it goes with count together. */
#define BOTH(x) ((mask & (DDPS_MC_##x##_SEL | DDPS_MC_##x)) == (DDPS_MC_##x##_SEL | DDPS_MC_##x))

/* What the request says of the group is so. */
static bool agrees(const struct ddps_sa_mcm *r, const struct ddps_sa_mcm *g, uint64_t mask)
{
	return MASKED(DDPS_MC_PKEY, !((r->pkey ^ g->pkey) & PKEY_BASE)) &&
	       MASKED(DDPS_MC_QKEY, r->qkey == g->qkey) &&
	       MASKED(DDPS_MC_TCLASS, r->tclass == g->tclass) &&
	       MASKED(DDPS_MC_SL, r->sl == g->sl) && MASKED(DDPS_MC_FLOW, r->flow == g->flow) &&
	       MASKED(DDPS_MC_HOP, r->hop == g->hop) &&
	       (!BOTH(MTU) || ddps_sa_selected(DDPS_SA_MTU, r->mtu, g->mtu)) &&
	       (!BOTH(RATE) || ddps_sa_selected(DDPS_SA_RATE, r->rate, g->rate)) &&
	       (!BOTH(LIFE) || ddps_sa_selected(DDPS_SA_LIFE, r->life, g->life));
}

/* [4391-4-1], [4391-4-7]: the signatures of IPoIB, whose groups have the scope of their link. */
static bool is_ipoib(const uint8_t *mgid)
{
	return (mgid[2] == 0x40 || mgid[2] == 0x60) && mgid[3] == 0x1b;
}

/* One that is not there: a port that names none may have it (IBA volume 1, 15.2.5.17). */
static void draw_mgid(struct ddps_sa *sa, uint8_t *mgid, uint8_t scope)
{
	do {
		struct ddps_wbuf w = ddps_wbuf_init(mgid, DDPS_IPOIB_GID_LEN);

		ddps_wbuf_u8(&w, 0xff);
		ddps_wbuf_u8(&w, (uint8_t)(0x10 | scope));
		ddps_wbuf_u16(&w, 0xa01b);
		ddps_wbuf_bytes(&w, sa->cfg.gid, 8);
		ddps_wbuf_u32(&w, ++sa->drawn);
	} while (ddps_sa_group_find(sa, mgid));
}

static bool mgid_fits(const uint8_t *mgid, const struct ddps_sa_mcm *broadcast)
{
	uint8_t scope = mgid[1] & 15;

	/* scopes 0 and 15 are reserved, 1 does not leave the node */
	return mgid[0] == 0xff && scope > 1 && scope < 15 &&
	       (!is_ipoib(mgid) || scope == (broadcast->mgid[1] & 15));
}

/* A group of a link: like its broadcast group in all but the MGID [4391-10-8]. */
static uint16_t make_sa_group(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_mcm *r,
			      uint64_t mask, struct sa_group **out, uint64_t now)
{
	const struct ddps_sa_mcm *broadcast;
	struct sa_group *g;
	unsigned part = ddps_sa_part(sa, r->pkey);

	static const uint8_t none[DDPS_IPOIB_GID_LEN];
	uint8_t mgid[DDPS_IPOIB_GID_LEN];

	if (!(r->join & COUNTING))
		return DDPS_SA_REQ_INVALID;
	if ((mask & DDPS_MC_CREATE) != DDPS_MC_CREATE)
		return DDPS_SA_TOO_FEW;
	if (part == DDPS_SA_NO_PART || !(r->pkey & PKEY_FULL)) /* limited members make none */
		return DDPS_SA_REQ_INVALID;
	broadcast = &sa->group[part].rec;
	memcpy(mgid, r->mgid, sizeof mgid);
	if (!memcmp(mgid, none, sizeof none))
		draw_mgid(sa, mgid, mask & DDPS_MC_SCOPE ? r->scope : broadcast->mgid[1] & 15);
	if (!mgid_fits(mgid, broadcast) || !agrees(r, broadcast, mask))
		return DDPS_SA_REQ_INVALID;
	g = sa->port[slid].made < DDPS_SA_SHARE ? free_place(sa, mgid) : NULL;
	if (!g) {
		sa->stats.sa_limit++;
		return DDPS_SA_NO_RESOURCES;
	}
	*g = (struct sa_group){ .used = true, .rec = *broadcast, .maker = slid };
	memcpy(g->rec.mgid, mgid, sizeof(g->rec.mgid));
	g->rec.scope = mgid[1] & 15;
	g->rec.mlid = (uint16_t)(DDPS_MLID_FIRST + (g - sa->group));
	sa->port[slid].made++;
	sa->stats.sa_groups++;
	ddps_sa_report(sa, TRAP_NEW, g, now);
	*out = g;
	return DDPS_SA_OK;
}

/* Without anybody who counts it goes. */
static void free_sa_group_if_empty(struct ddps_sa *sa, struct sa_group *g, uint64_t now)
{
	if (g < sa->group + sa->n_part)
		return;
	for (unsigned i = 0; i < DDPS_SA_LIDS; i++)
		if (g->join[i] & COUNTING)
			return;
	sa->port[g->maker].made--;
	g->used = false;
	ddps_sa_report(sa, TRAP_DEL, g, now);
}

void ddps_sa_leave_all(struct ddps_sa *sa, uint16_t lid, uint64_t now)
{
	for (unsigned i = 0; i < DDPS_SA_GROUPS; i++) {
		struct sa_group *g = &sa->group[i];

		if (!g->used || !g->join[lid])
			continue;
		g->join[lid] = 0;
		free_sa_group_if_empty(sa, g, now);
	}
}

static void put_answer(uint8_t *mad, const struct sa_group *g, const struct ddps_sa_mcm *r)
{
	struct ddps_sa_mcm rec = g->rec;

	memcpy(rec.port_gid, r->port_gid, sizeof(rec.port_gid));
	rec.join = r->join; /* those asked for, not all that the port has */
	ddps_sa_mcm_put(mad, &rec);
	ddps_sa_record_size(mad, RECORD);
}

/* Of whom the request speaks.  Return: a status. */
static uint16_t port_in(const struct ddps_sa *sa, const struct ddps_sa_head *h,
			const struct ddps_sa_mcm *r)
{
	const uint64_t need = DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_JOIN;

	if ((h->mask & need) != need)
		return DDPS_SA_TOO_FEW;
	if (memcmp(r->port_gid, sa->cfg.gid, 8) != 0) /* another subnet's prefix */
		return DDPS_SA_INVALID_GID;
	if (!r->join)
		return DDPS_SA_REQ_INVALID;
	return DDPS_SA_OK;
}

uint16_t ddps_sa_group_join(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			    uint8_t *mad, uint64_t now)
{
	struct ddps_sa_mcm r;
	struct sa_group *g;
	uint16_t status;

	ddps_sa_mcm_get(&r, mad);
	status = port_in(sa, h, &r);
	if (!status)
		status = ddps_sa_learn(sa, r.port_gid, slid, now);
	if (status)
		return status;
	g = ddps_sa_group_find(sa, r.mgid);
	if (g && !agrees(&r, &g->rec, h->mask))
		return DDPS_SA_REQ_INVALID;
	if (!g)
		status = make_sa_group(sa, slid, &r, h->mask, &g, now);
	if (status)
		return status;
	if (h->mask & DDPS_MC_PKEY)
		ddps_sa_part_learn(sa, slid, ddps_sa_part(sa, r.pkey), r.pkey);
	g->join[slid] |= r.join;
	put_answer(mad, g, &r);
	return DDPS_SA_OK;
}

uint16_t ddps_sa_group_leave(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			     uint8_t *mad, uint64_t now)
{
	struct ddps_sa_mcm r;
	struct sa_group *g;
	uint16_t status;

	ddps_sa_mcm_get(&r, mad);
	status = port_in(sa, h, &r);
	if (status)
		return status;
	g = ddps_sa_group_find(sa, r.mgid);
	if (!g || !(g->join[slid] & r.join))
		return DDPS_SA_REQ_INVALID;
	g->join[slid] &= (uint8_t)~r.join;
	put_answer(mad, g, &r);
	free_sa_group_if_empty(sa, g, now);
	return DDPS_SA_OK;
}
