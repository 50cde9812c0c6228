/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which port has which GID: what a port says of itself.  If two say the same, the one that had it is
 * asked whether it is there.
 */
#include "ipoib_cm/sa/sa_in.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MS	     1000000ull
#define PROBE_NS     (1500 * MS) /* it may take so long to answer; a claim is repeated meanwhile */
#define CLAIM_NS     (60000 * MS)
#define SAID_NS	     (60000 * MS) /* of one port, the same is said so often at most */
#define TRAP_IN_USE  64
#define GID_TEXT_LEN DDPS_IPOIB_GID_TEXT

enum { SAID_NOTHING, SAID_REFUSED, SAID_MOVED, SAID_RENAMED };

uint16_t ddps_sa_lid_of(const struct ddps_sa *sa, const uint8_t *gid)
{
	for (uint16_t i = 1; i < DDPS_SA_LIDS; i++)
		if (sa->port[i].known && !memcmp(sa->port[i].gid, gid, DDPS_IPOIB_GID_LEN))
			return i;
	return 0;
}

bool ddps_sa_knows(const struct ddps_sa *sa, uint16_t lid)
{
	return lid < DDPS_SA_LIDS && sa->port[lid].known;
}

/* ---- what the owner of the administration learns ---- */

const char *ddps_sa_notice(struct ddps_sa *sa)
{
	if (!sa->n_notice)
		return NULL;
	sa->n_notice--;
	return sa->notice[sa->first_notice++ % DDPS_SA_NOTICES];
}

__attribute__((format(printf, 5, 6))) static void say_of(struct ddps_sa *sa, uint16_t lid, int what,
							 uint64_t now, const char *fmt, ...)
{
	struct sa_port *p = &sa->port[lid];
	va_list ap;
	unsigned at;

	if (sa->n_notice == DDPS_SA_NOTICES || (p->said == what && now - p->said_at < SAID_NS))
		return;
	p->said = what;
	p->said_at = now;
	at = (sa->first_notice + sa->n_notice++) % DDPS_SA_NOTICES;
	va_start(ap, fmt);
	vsnprintf(sa->notice[at], sizeof(sa->notice[at]), fmt, ap);
	va_end(ap);
}

/* ---- a GID that two ports say they have ---- */

/* Whoever is there answers a report, whatever it is about. */
static void ask_whether_there(struct ddps_sa *sa, uint16_t lid)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_REPORT,
					.attr = DDPS_SA_NOTICE,
					.tid = ++sa->tid };
	struct ddps_sa_notice n = { .trap = TRAP_IN_USE, .issuer_lid = sa->cfg.lid };
	uint8_t mad[DDPS_CM_MAD_LEN];

	memcpy(n.gid, sa->port[lid].gid, sizeof(n.gid));
	memcpy(n.issuer_gid, sa->cfg.gid, sizeof(n.issuer_gid));
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_notice_put(mad, &n);
	sa->stats.sa_probes++;
	sa->cfg.send(sa->cfg.user, lid, mad);
}

/* @lid claims what the port at @was has.  Return: whether it has moved there. */
static uint16_t contest(struct ddps_sa *sa, uint16_t was, uint16_t lid, uint64_t now)
{
	struct sa_port *p = &sa->port[was];
	const bool asked = p->claimer == lid && now - p->claimed_at < CLAIM_NS;
	char text[GID_TEXT_LEN];

	if (was == sa->cfg.lid || (asked && p->there && !p->another)) {
		p->claimer = 0;
		sa->stats.sa_conflicts++;
		ddps_ipoib_gid_print(text, p->gid);
		say_of(sa, lid, SAID_REFUSED, now,
		       "two nodes have the GID %s: LID %u, which had it first and is there, and "
		       "LID %u, which is refused; try: another --gid for one of them",
		       text, was, lid);
		return DDPS_SA_DENIED;
	}
	if (p->another || (asked && now - p->claimed_at >= PROBE_NS))
		return DDPS_SA_OK;
	if (!asked) {
		p->claimer = lid;
		p->claimed_at = now;
		p->there = false;
	}
	ask_whether_there(sa, was);
	sa->undecided = true; /* the next repetition of the claim finds out */
	return DDPS_SA_NO_RESOURCES;
}

static void move_gid(struct ddps_sa *sa, const uint8_t *gid, uint16_t was, uint16_t lid,
		     uint64_t now)
{
	char text[GID_TEXT_LEN];

	sa->port[was].known = false;
	sa->port[was].claimer = 0;
	sa->port[was].traps = 0;
	ddps_sa_leave_all(sa, was, now);
	sa->stats.sa_moved++;
	ddps_ipoib_gid_print(text, gid);
	say_of(sa, lid, SAID_MOVED, now,
	       "the GID %s is at LID %u now; LID %u, which had it, does not answer", text, lid,
	       was);
}

uint16_t ddps_sa_learn(struct ddps_sa *sa, const uint8_t *gid, uint16_t lid, uint64_t now)
{
	uint16_t was = ddps_sa_lid_of(sa, gid);
	struct sa_port *p = &sa->port[lid];
	uint16_t status;

	p->another = p->known && was != lid;
	if (was == lid)
		return DDPS_SA_OK;
	status = was ? contest(sa, was, lid, now) : DDPS_SA_OK;
	if (status)
		return status;
	if (was)
		move_gid(sa, gid, was, lid, now);
	if (p->known) {
		char old[GID_TEXT_LEN], text[GID_TEXT_LEN];

		ddps_ipoib_gid_print(old, p->gid);
		ddps_ipoib_gid_print(text, gid);
		sa->stats.sa_renamed++;
		say_of(sa, lid, SAID_RENAMED, now,
		       "LID %u has the GID %s now, and had %s; try, if it was not started anew: "
		       "look "
		       "who else has its address",
		       lid, text, old);
	}
	p->full = p->limited = 0; /* those of whoever was here before */
	p->known = true;
	p->another = false;
	memcpy(p->gid, gid, DDPS_IPOIB_GID_LEN);
	return DDPS_SA_OK;
}
