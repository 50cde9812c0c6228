/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_SAC_IN_H
#define DDPS_IB_SAC_IN_H
/* The client of subnet administration inside: queries in sac.c, groups in sac_group.c. */
#include "ipoib_cm/ib/sac.h"

/* Of a query; @tid 0: none is out. */
struct sac_query {
	uint32_t tid;
	unsigned tries;
	uint64_t due;
};

enum sac_state {
	SAC_UNKNOWN, /* nothing asked yet */
	SAC_ASKED,   /* whether it is there */
	SAC_JOINING,
	SAC_MEMBER,
	SAC_ABSENT,
	SAC_WAITING, /* refused or unanswered; to be tried again */
};

struct sac_group {
	bool used, want; /* want: full membership, else only for sending */
	enum sac_state state;
	uint8_t mgid[DDPS_IPOIB_GID_LEN];
	uint8_t join; /* state asked for or held */
	struct ddps_sa_mcm rec;
	struct sac_query q;
	uint64_t until, back_off; /* ABSENT, WAITING: then anew */
	uint64_t used_at;	  /* sent to */
};

struct sac_path {
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	struct sac_query q;
};

struct ddps_sac {
	struct ddps_sac_config cfg;
	struct sac_group group[DDPS_SAC_GROUPS];
	struct sac_path path[DDPS_SAC_PATHS];
	unsigned n_path;
	struct sac_query inform[2]; /* traps 66 and 67 */
	bool granted[2];	    /* since the groups were joined */
	unsigned refused;	    /* subscriptions, since both were granted */
	uint64_t inform_at;	    /* both anew; NEVER before the link is known */
	uint32_t tid;
	bool unheard; /* nothing came since a query was given up */
	struct ddps_sac_stats stats;
};

/* Number of its own and time of @q.  Return: the transaction ID. */
uint32_t ddps_sac_begin(struct ddps_sac *c, struct sac_query *q, uint64_t now);
/* One more try.  Return: false: it was the last. */
bool ddps_sac_again(struct ddps_sac *c, struct sac_query *q, uint64_t now);
void ddps_sac_send(struct ddps_sac *c, const uint8_t *mad);

void ddps_sac_group_answer(struct ddps_sac *c, struct sac_group *g, const struct ddps_sa_head *h,
			   const uint8_t *mad, uint64_t now);
void ddps_sac_group_report(struct ddps_sac *c, uint16_t trap, const uint8_t *mgid, uint64_t now);
void ddps_sac_group_renew(struct ddps_sac *c, struct sac_group *g, uint64_t now);
void ddps_sac_group_tick(struct ddps_sac *c, struct sac_group *g, uint64_t now);
uint64_t ddps_sac_group_due(const struct sac_group *g);

#endif
