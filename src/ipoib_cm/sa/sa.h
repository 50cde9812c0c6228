/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_SA_H
#define DDPS_IB_SA_H
/*
 * A subnet administration for a small subnet (IBA volume 1, chapter 15): it answers queries for
 * paths, groups and ports, keeps the members of groups and reports when one comes or goes.  It
 * knows no sockets; time is an argument.
 *
 * It learns which port has which GID from the joins and queries of the ports themselves.  If two ports
 * say that they have the same, the first one stays if it answers; else it has moved.  LIDs
 * are 1 to DDPS_SA_LIDS - 1, so there are that many ports; each of them may have made a share of
 * the groups.  A group gets its MLID from its MGID as far as that goes, so that members agree with
 * an administration that has started anew.
 *
 * A subnet has one partition or several (IBA volume 1, 10.9).  Each has a broadcast group of its own,
 * so each is a link of its own [4392-4.1-1].  Which ports are in it, and whether as full or as limited
 * members, is what the P_Keys of their own joins and queries say.
 */
#include <ddpsess/ib_udp.h>
#include "ipoib_cm/sa/sa_mad.h"

#define DDPS_SA_LIDS	256
#define DDPS_SA_GROUPS	254			/* the broadcast group of the link among them */
#define DDPS_SA_SHARE	64			/* groups that one port may have made */
#define DDPS_SA_REPORTS 256			/* on their way */
#define DDPS_SA_TABLES	16			/* on their way, each of another port */
#define DDPS_SA_RECORDS 4096			/* of a table */
#define DDPS_SA_NOTICES 8			/* that nobody has read */
#define DDPS_SA_PKEYS	(1 + DDPS_IB_UDP_PKEYS) /* partitions */

/* X(name, meaning) */
#define DDPS_SA_STATS(X)                                                                           \
	X(sa_queries, "queries answered")                                                          \
	X(sa_refused, "of these: with a status other than 0")                                      \
	X(sa_bad, "MADs that are no query")                                                        \
	X(sa_late, "answers to reports that came once more, or when nobody waited any more")       \
	X(sa_groups, "groups made")                                                                \
	X(sa_limit, "groups not made for lack of room or share")                                   \
	X(sa_moved, "GIDs that another port had before")                                           \
	X(sa_conflicts, "queries refused: another port has the GID, and is there")                 \
	X(sa_renamed, "ports that came with another GID")                                          \
	X(sa_probes, "ports asked whether they are there")                                         \
	X(sa_reports, "reports sent, repeated ones included")                                      \
	X(sa_unheard, "reports that nobody answered, or that found no room")                       \
	X(sa_tables, "tables sent")                                                                \
	X(sa_table_limit, "tables not sent: too large, or too many on their way")                  \
	X(sa_table_lost, "tables that their receiver ended, or did not acknowledge")               \
	X(sa_ref_unsupported, "queries refused: of a kind that is not answered")                   \
	X(sa_ref_room, "queries refused: no room, or no right")                                    \
	X(sa_ref_invalid, "queries refused: something in them cannot be")                          \
	X(sa_ref_none, "queries refused: there is no such record")                                 \
	X(sa_ref_many, "queries refused: more than one record, and one was asked for")             \
	X(sa_ref_gid, "queries refused: a GID that is none here")                                  \
	X(sa_ref_few, "queries refused: not enough was said")

struct ddps_sa_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_SA_STATS(DDPS_X)
#undef DDPS_X
};

/* MTU, rate and lifetime as codes, without selector. */
struct ddps_sa_config {
	uint8_t gid[DDPS_IPOIB_GID_LEN]; /* own */
	uint16_t lid;
	uint16_t pkey[DDPS_SA_PKEYS]; /* the first: whoever does not say one is in it; 0: no more */
	uint32_t qkey;
	uint8_t mtu, rate, life, scope;
	void (*send)(void *user, uint16_t lid, const uint8_t mad[DDPS_CM_MAD_LEN]);
	void *user;
};

struct ddps_sa;

/* Return: NULL without memory. */
struct ddps_sa *ddps_sa_new(const struct ddps_sa_config *cfg);
void ddps_sa_free(struct ddps_sa *sa);
/* A MAD of class 3 that is no answer, or the answer to a report; what follows goes by send(). */
void ddps_sa_rx(struct ddps_sa *sa, uint16_t slid, const uint8_t mad[DDPS_CM_MAD_LEN],
		uint64_t now);
uint64_t ddps_sa_due(const struct ddps_sa *sa);
void ddps_sa_tick(struct ddps_sa *sa, uint64_t now);
/*
 * One sentence on GIDs that two ports have, that moved, or that a port has changed.  Return: NULL: there
 * is none; valid until the next call of anything here.
 */
const char *ddps_sa_notice(struct ddps_sa *sa);
const struct ddps_sa_stats *ddps_sa_stats(const struct ddps_sa *sa);

#endif
