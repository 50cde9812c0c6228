/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries and their answers; groups are in sa_group.c, reports in sa_report.c. */
#include "ipoib_cm/ib/sa_in.h"
#include <stdlib.h>
#include <string.h>

#define EXACTLY	       (DDPS_SEL_EXACTLY << 6)
#define CAP_MCAST      0x0200 /* UD multicast */
#define CAP2_SEND_FULL 0x1000 /* join state SendOnlyFullMember */
#define PORT_CM	       (1u << 16)
#define PORT_SM	       (1u << 1)
#define RESP_TIME      18

struct ddps_sa *ddps_sa_new(const struct ddps_sa_config *cfg)
{
	struct ddps_sa *sa = calloc(1, sizeof(*sa));

	if (!sa)
		return NULL;
	sa->cfg = *cfg;
	ddps_sa_broadcast_groups(sa);
	ddps_sa_learn(sa, cfg->gid, cfg->lid, 0);
	return sa;
}

void ddps_sa_free(struct ddps_sa *sa)
{
	free(sa);
}

const struct ddps_sa_stats *ddps_sa_stats(const struct ddps_sa *sa)
{
	return &sa->stats;
}

/* 0: not known */
static uint16_t lid_of(const struct ddps_sa *sa, const uint8_t *gid)
{
	for (uint16_t i = 1; i < DDPS_SA_LIDS; i++)
		if (sa->port[i].known && !memcmp(sa->port[i].gid, gid, DDPS_IPOIB_GID_LEN))
			return i;
	return 0;
}

void ddps_sa_learn(struct ddps_sa *sa, const uint8_t *gid, uint16_t lid, uint64_t now)
{
	uint16_t was = lid_of(sa, gid);

	if (!lid || lid >= DDPS_SA_LIDS || was == lid || (was && was == sa->cfg.lid))
		return;
	if (was) {
		sa->port[was].known = false;
		sa->port[was].traps = 0;
		ddps_sa_leave_all(sa, was, now);
		sa->stats.sa_moved++;
	}
	sa->port[lid].full = sa->port[lid].limited = 0; /* those of whoever was here before */
	sa->port[lid].known = true;
	memcpy(sa->port[lid].gid, gid, DDPS_IPOIB_GID_LEN);
}

static const struct sa_port *port_at(const struct ddps_sa *sa, uint16_t lid)
{
	return lid < DDPS_SA_LIDS && sa->port[lid].known ? &sa->port[lid] : NULL;
}

/* Where the path ends; 0: not known, or not to be reached from there in that partition. */
static uint16_t destination(struct ddps_sa *sa, const struct ddps_sa_pr *pr, uint64_t mask,
			    uint16_t from, unsigned part)
{
	const struct sa_group *g;
	uint16_t dlid = 0;

	if (mask & DDPS_PR_DGID && pr->dgid[0] == 0xff) {
		g = ddps_sa_group_find(sa, pr->dgid);
		return g && ddps_sa_part(sa, g->rec.pkey) == part ? g->rec.mlid : 0;
	}
	if (mask & DDPS_PR_DGID)
		dlid = lid_of(sa, pr->dgid);
	else if (mask & DDPS_PR_DLID && port_at(sa, pr->dlid))
		dlid = pr->dlid;
	return dlid && ddps_sa_part_talk(sa, from, dlid, part) ? dlid : 0;
}

static uint16_t path_query(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			   uint8_t *mad, uint64_t now)
{
	const struct ddps_sa_config *c = &sa->cfg;
	uint16_t dlid, from = slid;
	struct ddps_sa_pr pr;
	unsigned part = 0;

	ddps_sa_pr_get(&pr, mad);
	if (h->mask & DDPS_PR_PKEY)
		part = ddps_sa_part(sa, pr.pkey);
	if (h->mask & DDPS_PR_SGID) {
		from = lid_of(sa, pr.sgid);
		if (!from || !port_at(sa, slid)) { /* who asks for itself is known by that */
			ddps_sa_learn(sa, pr.sgid, slid, now);
			from = slid;
		}
	} else if (h->mask & DDPS_PR_SLID) {
		from = pr.slid;
	}
	if (part == DDPS_SA_NO_PART || !port_at(sa, from))
		return DDPS_SA_NO_RECORDS;
	if (h->mask & DDPS_PR_PKEY && from == slid)
		ddps_sa_part_learn(sa, slid, part, pr.pkey);
	dlid = destination(sa, &pr, h->mask, from, part);
	while (!dlid && !(h->mask & DDPS_PR_PKEY) && ++part < sa->n_part)
		dlid = destination(sa, &pr, h->mask, from, part);
	if (!dlid)
		return DDPS_SA_NO_RECORDS;
	memcpy(pr.sgid, sa->port[from].gid, sizeof(pr.sgid));
	if (dlid < DDPS_SA_LIDS)
		memcpy(pr.dgid, sa->port[dlid].gid, sizeof(pr.dgid));
	pr.dlid = dlid;
	pr.slid = from;
	pr.flow = pr.hop = pr.tclass = pr.sl = 0; /* within the subnet: no GRH */
	pr.pkey = c->pkey[part] | 0x8000;
	pr.mtu = EXACTLY | c->mtu;
	pr.rate = EXACTLY | c->rate;
	pr.life = EXACTLY | c->life;
	ddps_sa_pr_put(mad, &pr);
	ddps_sa_record_size(mad, 64);
	return DDPS_SA_OK;
}

/* 13.4.8.1 */
static uint16_t class_port_info(uint8_t *mad)
{
	struct ddps_wbuf w = ddps_wbuf_init(ddps_sa_record(mad), DDPS_SA_RECORD_LEN);

	memset(ddps_sa_record(mad), 0, DDPS_SA_RECORD_LEN);
	ddps_wbuf_u8(&w, 1);
	ddps_wbuf_u8(&w, DDPS_SA_VERSION);
	ddps_wbuf_u16(&w, CAP_MCAST);
	ddps_wbuf_u32(&w, CAP2_SEND_FULL << 5 | RESP_TIME);
	return DDPS_SA_OK;
}

/* 15.2.5.3, 14.2.5.6: what this administration can know of a port */
static uint16_t port_info(const struct ddps_sa *sa, const struct ddps_sa_head *h, uint8_t *mad)
{
	uint16_t lid = (uint16_t)(ddps_sa_record(mad)[0] << 8 | ddps_sa_record(mad)[1]);
	const struct sa_port *p = h->mask & 1 ? port_at(sa, lid) : NULL;
	uint8_t *r = ddps_sa_record(mad);
	struct ddps_wbuf w = ddps_wbuf_init(r, DDPS_SA_RECORD_LEN);

	if (!p)
		return DDPS_SA_NO_RECORDS;
	memset(r, 0, DDPS_SA_RECORD_LEN);
	ddps_wbuf_u16(&w, lid);
	ddps_wbuf_u16(&w, 1 << 8); /* port 1 */
	ddps_wbuf_u64(&w, 0);
	ddps_wbuf_bytes(&w, p->gid, 8);
	ddps_wbuf_u16(&w, lid);
	ddps_wbuf_u16(&w, sa->cfg.lid);
	ddps_wbuf_u32(&w, PORT_CM | (lid == sa->cfg.lid ? PORT_SM : 0));
	r[36] = 4;			     /* active */
	r[37] = 5 << 4;			     /* link up */
	r[40] = (uint8_t)(sa->cfg.mtu << 4); /* neighbour MTU */
	r[45] = sa->cfg.mtu;		     /* MTU capability */
	r[55] = sa->cfg.life & 0x1f;	     /* subnet timeout */
	ddps_sa_record_size(mad, 72);
	return DDPS_SA_OK;
}

static uint16_t query(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h, uint8_t *mad,
		      uint64_t now)
{
	switch (h->method << 16 | h->attr) {
	case DDPS_SA_GET << 16 | DDPS_SA_CLASS_PORT_INFO:
		return class_port_info(mad);
	case DDPS_SA_GET << 16 | DDPS_SA_PATH_RECORD:
		return path_query(sa, slid, h, mad, now);
	case DDPS_SA_GET << 16 | DDPS_SA_PORT_INFO_RECORD:
		return port_info(sa, h, mad);
	case DDPS_SA_GET << 16 | DDPS_SA_MCMEMBER_RECORD:
		return ddps_sa_group_query(sa, h, mad);
	case DDPS_SA_SET << 16 | DDPS_SA_MCMEMBER_RECORD:
		return ddps_sa_group_join(sa, slid, h, mad, now);
	case DDPS_SA_DELETE << 16 | DDPS_SA_MCMEMBER_RECORD:
		return ddps_sa_group_leave(sa, slid, h, mad, now);
	case DDPS_SA_SET << 16 | DDPS_SA_INFORM_INFO:
		return ddps_sa_subscribe(sa, slid, mad);
	default:
		return DDPS_SA_UNSUPPORTED;
	}
}

void ddps_sa_rx(struct ddps_sa *sa, uint16_t slid, const uint8_t mad[DDPS_CM_MAD_LEN], uint64_t now)
{
	uint8_t out[DDPS_CM_MAD_LEN];
	struct ddps_sa_head h;

	if (ddps_sa_mad_head(&h, mad) || !slid || slid >= DDPS_SA_LIDS) {
		sa->stats.sa_bad++;
		return;
	}
	if (h.method == (DDPS_SA_REPORT | DDPS_SA_RESPONSE)) {
		ddps_sa_heard(sa, slid, h.tid);
		return;
	}
	if (h.method & DDPS_SA_RESPONSE) {
		sa->stats.sa_bad++;
		return;
	}
	/* header and component mask come back, RMPP and SM_Key are 0; so is a changed record */
	ddps_sa_mad_begin(out, &h);
	memcpy(ddps_sa_record(out), mad + (DDPS_CM_MAD_LEN - DDPS_SA_RECORD_LEN),
	       DDPS_SA_RECORD_LEN);
	memcpy(out + 20, mad + 20, 4); /* attribute modifier */
	h.status = query(sa, slid, &h, out, now);
	out[3] = h.method == DDPS_SA_GET || h.method == DDPS_SA_SET
			 ? DDPS_SA_GET_RESP
			 : (uint8_t)(h.method | DDPS_SA_RESPONSE);
	out[4] = (uint8_t)(h.status >> 8);
	out[5] = (uint8_t)h.status;
	sa->stats.sa_queries++;
	sa->stats.sa_refused += h.status != DDPS_SA_OK;
	sa->cfg.send(sa->cfg.user, slid, out);
}
