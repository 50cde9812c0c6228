/* SPDX-License-Identifier: BSD-2-Clause */
/* Who wants to learn of groups, and reports to them (IBA volume 1, 13.4.9, 13.4.11). */
#include "ipoib_cm/sa/sa_in.h"
#include <string.h>

#define TRAP_FIRST 64
#define TRAP_LAST  67
#define ANY	   0xffff
#define TYPE_SM	   3 /* of notices: subnet management, or for information */
#define TRIES	   4
#define AGAIN_NS   500000000ull

static bool on_a_link(const struct ddps_sa *sa, uint16_t lid)
{
	for (unsigned i = 0; i < sa->n_part; i++)
		if (sa->group[i].join[lid] & DDPS_MC_FULL)
			return true;
	return false;
}

uint16_t ddps_sa_subscribe(struct ddps_sa *sa, uint16_t slid, const uint8_t *mad)
{
	static const uint8_t none[DDPS_IPOIB_GID_LEN];
	struct ddps_sa_inform r;
	uint8_t bits = 0;

	ddps_sa_inform_get(&r, mad);
	for (uint16_t t = TRAP_FIRST; t <= TRAP_LAST; t++)
		if (r.trap == ANY || r.trap == t)
			bits |= (uint8_t)(1u << (t - TRAP_FIRST));
	/*
	 * Whoever is on a link is in its broadcast group.  Whoever is not has joined an
	 * administration before this one, and hears in this way that it has to do so again.
	 */
	if (!on_a_link(sa, slid))
		return DDPS_SA_REQ_INVALID;
	/* subscriptions to one GID or to a range of LIDs are not kept, so they are not taken */
	if (!bits || r.wrong || !r.generic || (r.type != ANY && r.type != TYPE_SM) ||
	    (memcmp(r.gid, none, sizeof(none)) != 0) || (r.lid_first != ANY))
		return DDPS_SA_REQ_INVALID;
	if (r.subscribe)
		sa->port[slid].traps |= bits;
	else
		sa->port[slid].traps &= (uint8_t)~bits;
	return DDPS_SA_OK;
}

static void send_sa_report(struct ddps_sa *sa, struct sa_report *r, uint64_t now)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_REPORT,
					.attr = DDPS_SA_NOTICE,
					.tid = r->tid };
	struct ddps_sa_notice n = { .trap = r->trap, .issuer_lid = sa->cfg.lid };
	uint8_t mad[DDPS_CM_MAD_LEN];

	memcpy(n.gid, r->gid, sizeof(n.gid));
	memcpy(n.issuer_gid, sa->cfg.gid, sizeof(n.issuer_gid));
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_notice_put(mad, &n);
	r->tries++;
	r->due = now + AGAIN_NS;
	sa->stats.sa_reports++;
	sa->cfg.send(sa->cfg.user, r->lid, mad);
}

void ddps_sa_report(struct ddps_sa *sa, uint16_t trap, const struct sa_group *g, uint64_t now)
{
	unsigned part = ddps_sa_part(sa, g->rec.pkey);

	for (uint16_t lid = 1; lid < DDPS_SA_LIDS; lid++) {
		struct sa_report *r = &sa->report[sa->n_report];

		if (!(sa->port[lid].traps & 1u << (trap - TRAP_FIRST)) ||
		    !ddps_sa_part_member(sa, lid, part))
			continue;
		if (sa->n_report == DDPS_SA_REPORTS) {
			sa->stats.sa_unheard++;
			continue;
		}
		*r = (struct sa_report){ .lid = lid, .trap = trap, .tid = ++sa->tid };
		memcpy(r->gid, g->rec.mgid, sizeof(r->gid));
		sa->n_report++;
		send_sa_report(sa, r, now);
	}
}

void ddps_sa_heard(struct ddps_sa *sa, uint16_t slid, uint64_t tid)
{
	for (unsigned i = 0; i < sa->n_report; i++)
		if (sa->report[i].lid == slid && sa->report[i].tid == tid) {
			sa->report[i] = sa->report[--sa->n_report];
			return;
		}
	if (ddps_sa_late(sa->tid, tid))
		sa->stats.sa_late++;
	else
		sa->stats.sa_bad++;
}

uint64_t ddps_sa_due(const struct ddps_sa *sa)
{
	uint64_t due = ddps_sa_table_due(sa);

	for (unsigned i = 0; i < sa->n_report; i++)
		due = sa->report[i].due < due ? sa->report[i].due : due;
	return due;
}

void ddps_sa_tick(struct ddps_sa *sa, uint64_t now)
{
	ddps_sa_table_tick(sa, now);
	for (unsigned i = sa->n_report; i-- > 0;) {
		struct sa_report *r = &sa->report[i];

		if (r->due > now)
			continue;
		if (r->tries < TRIES) {
			send_sa_report(sa, r, now);
			continue;
		}
		/* whoever does not answer is taken for gone, and subscribes when it is back */
		sa->stats.sa_unheard++;
		sa->port[r->lid].traps = 0;
		*r = sa->report[--sa->n_report];
	}
	ddps_sa_check(sa);
}
