/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_SAC_H
#define DDPS_IB_SAC_H
/*
 * What an IPoIB port asks the subnet administration: paths, and groups to be joined or sent to
 * (RFC 4391 section 10).  It knows no sockets; time is an argument.  Queries are repeated until
 * they are answered or given up, groups that are wanted for good are asked for without end.
 *
 * Nothing is sent to a group before it is known to be there and has been joined.  That one is not
 * there is remembered until a report says otherwise, at most for half a minute.
 */
#include "ipoib_cm/sa/sa_mad.h"

#define DDPS_SAC_GROUPS 64
#define DDPS_SAC_PATHS	64 /* asked for simultaneously */

/* X(name, meaning) */
#define DDPS_SAC_STATS(X)                                                                          \
	X(sac_queries, "queries sent to the administration, repeated ones included")               \
	X(sac_unanswered, "queries given up")                                                      \
	X(sac_refused, "queries answered with a status other than 0")                              \
	X(sac_bad, "answers to nothing that was asked, or that cannot be")                         \
	X(sac_late, "answers that came once more, or when nobody waited any more")                 \
	X(sac_forgotten, "times that the administration seemed not to know this port any more")    \
	X(sac_reports, "reports received")                                                         \
	X(sac_full, "groups not joined or sent to, paths not asked for: too many")

struct ddps_sac_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_SAC_STATS(DDPS_X)
#undef DDPS_X
};

struct ddps_sac_ops {
	/* To QP 1 of the administration's port. */
	void (*send)(void *user, const uint8_t mad[DDPS_CM_MAD_LEN]);
	/* A group that was to be joined; @rec NULL: not now, and @err says why.  DDPS_E_BUSY:
	 * another port has our GID. */
	void (*joined)(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
		       const struct ddps_sa_mcm *rec, uint64_t now);
	/* @pr NULL: there is none. */
	void (*path)(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN], const struct ddps_sa_pr *pr,
		     uint64_t now);
	/* A group to which something was to be sent is there, or is not. */
	void (*open)(void *user, unsigned group, bool there, uint64_t now);
	/*
	 * A group is granted: what sending to it needs.  @rec NULL: it is not used any more.
	 * Return: 0, or why it cannot be used; then it is given back, and joined() is called.  May be
	 * NULL.
	 */
	int (*hold)(void *user, unsigned group, const struct ddps_sa_mcm *rec);
};

struct ddps_sac_config {
	uint8_t gid[DDPS_IPOIB_GID_LEN];       /* own */
	uint8_t broadcast[DDPS_IPOIB_GID_LEN]; /* MGID: its record is the link's */
	uint16_t pkey;
	uint32_t seed; /* random, of transaction IDs */
	/*
	 * Subscriptions are made again so often, 0: every 300 s.  One that was granted before and is
	 * refused says that the administration is another one.
	 */
	uint64_t renew_ns;
	const struct ddps_sac_ops *ops;
	void *user;
};

struct ddps_sac;

/* Return: NULL without memory. */
struct ddps_sac *ddps_sac_new(const struct ddps_sac_config *cfg);
void ddps_sac_free(struct ddps_sac *c);

/* Full membership, until ddps_sac_leave().  Return: 0, or DDPS_E_LIMIT. */
int ddps_sac_join(struct ddps_sac *c, const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint64_t now);
void ddps_sac_leave(struct ddps_sac *c, const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint64_t now);

/*
 * To send to a group.  Return: 0 and @rec; DDPS_E_AGAIN: asked, ddps_sac_ops.open will tell, and
 * @group says of which; DDPS_E_ADDRESS: there is no such group; DDPS_E_LIMIT: too many.
 */
int ddps_sac_open(struct ddps_sac *c, const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint64_t now,
		  const struct ddps_sa_mcm **rec, unsigned *group);
/* The group of an MLID, if it is received here; NULL: it is not. */
const struct ddps_sa_mcm *ddps_sac_member(const struct ddps_sac *c, uint16_t mlid);
/* What the broadcast group's record says; NULL before it is joined. */
const struct ddps_sa_mcm *ddps_sac_link(const struct ddps_sac *c);
/* Return: 0, DDPS_E_AGAIN (too many at a time). */
int ddps_sac_path(struct ddps_sac *c, const uint8_t gid[DDPS_IPOIB_GID_LEN], uint64_t now);

/* A MAD of class 3 from the administration, an answer or a report. */
void ddps_sac_rx(struct ddps_sac *c, const uint8_t mad[DDPS_CM_MAD_LEN], uint64_t now);
/*
 * The administration has forgotten this port, or is another one: groups that are wanted are joined
 * anew, others asked for when somebody sends, and subscriptions are made again.
 */
void ddps_sac_renew(struct ddps_sac *c, uint64_t now);
/* The link is joined, but a query was given up, and nothing has come of the administration since. */
bool ddps_sac_unheard(const struct ddps_sac *c);
uint64_t ddps_sac_due(const struct ddps_sac *c);
void ddps_sac_tick(struct ddps_sac *c, uint64_t now);
const struct ddps_sac_stats *ddps_sac_stats(const struct ddps_sac *c);

/*
 * Datagrams to groups (togroup.c): sent once the group is known and joined, a few of them held until
 * then; what is for a group beyond the link that is not there goes to the routers'.
 */
#define DDPS_IB_HELD_MAX 4 /* frames that wait for a group to be joined, each */

struct ddps_togroup {
	struct ddps_sac *sac;
	/* One datagram to a group that is joined; @group numbers it.  Return: 0 or why not. */
	int (*send)(void *user, const struct ddps_sa_mcm *rec, unsigned group, const void *frame,
		    size_t len);
	void *user;
	uint64_t *n_held, *n_none; /* counters: frames that waited; that were dropped */
	struct {
		unsigned n;
		struct {
			uint8_t *data;
			size_t len;
		} frame[DDPS_IB_HELD_MAX];
	} held[DDPS_SAC_GROUPS];
};

/* Return: 0: it is sent or will be; or why not. */
int ddps_togroup(struct ddps_togroup *t, const uint8_t *mgid, const void *frame, size_t len,
		 uint64_t now);
/* Of ddps_sac_ops.open: what waited for the group is sent, to the routers if need be. */
void ddps_togroup_open(struct ddps_togroup *t, unsigned group, uint64_t now);
void ddps_togroup_drop(struct ddps_togroup *t);

#endif
