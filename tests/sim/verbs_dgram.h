/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_VERBS_DGRAM_H
#define SIM_VERBS_DGRAM_H
/*
 * Queue pairs of type UD in a world of verbs: how they come and go (verbs_dgram_seen.c), what
 * their program does (verbs_dgram.c), and what it may see (verbs_dgram_seen.c).
 */
#include "sim/verbs_world.h"

#define NODES	    4u
#define GROUPS	    2u
#define DGRAMS	    30u /* of a node */
#define JOINS	    6u
#define GRH	    40u
#define MTU	    1024u
#define BEHIND	    16u /* octets behind a receive that nobody may write to */
#define UNTOUCHED   0xee
#define NOBODY	    NODES
#define NO_GROUP    GROUPS
#define GROUP_QPN   0xffffffu
#define NEVER	    UINT64_MAX
#define DGRAM_QKEY  0x11110000u
#define INLINE	    64u
#define DGRAM_TRIES 8u /* of what a poor world has nothing for */

/* Times are those of dgrams.tick, which every call that matters moves. */
struct dgram {
	uint32_t len;
	unsigned to, group; /* NOBODY, NO_GROUP; for nobody it has a wrong number or Q_Key */
	uint32_t qkey;
	bool imm, silent;
	enum ibv_wc_status fails; /* what its completion has to say, if it is not flushed */
	bool flushed;		  /* it stands behind one that fails */
	bool perhaps;		  /* the queue pair's end has overtaken it: either may be */
	uint64_t posted, done;
	unsigned got[NODES];
	bool must[NODES]; /* it arrives there, or is lost on the way */
	uint8_t octets[MTU + 1];
};

struct node {
	unsigned id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah, *group_ah[GROUPS], *reply; /* to this host, to groups, to a sender */
	unsigned reply_to;
	uint32_t qkey;
	bool armed;
	bool broken; /* a request that fails was posted: what is behind it is flushed */
	bool failed; /* ... and has completed */
	bool ended;  /* in the error state */
	struct dgram all[DGRAMS];
	unsigned posted, turns;
	unsigned sq[DGRAMS], nsq; /* posted, and not known to have completed */
	uint64_t first_recv, next_recv;
	unsigned depth; /* receives that it posts at a time */
	uint32_t room[DEPTH];
	uint8_t recv[DEPTH][GRH + MTU + BEHIND];
	struct {
		uint64_t from, to;
	} in[GROUPS][JOINS];
	unsigned joins[GROUPS];
	unsigned last[NODES]
		     [GROUPS + 1]; /* what came from each sender: of its own and of each group's */
};

struct dgrams {
	bool on, armed, ordered;
	bool settled; /* all has been sent, and nothing is on its way */
	uint64_t tick, news;
	unsigned
		cut; /* messages that were too long for their receive, and of which more is not known */
	union ibv_gid self, gid[GROUPS];
	struct node node[NODES];
};
extern struct dgrams dgrams;

static inline uint32_t node_owner(const struct node *d)
{
	return SIM_OWNER(60, 0, d->id);
}

static inline bool node_joined(const struct node *d, unsigned g)
{
	return d->joins[g] && d->in[g][d->joins[g] - 1].to == NEVER;
}

static inline uint32_t node_recvs(const struct node *d)
{
	return (uint32_t)(d->next_recv - d->first_recv);
}

/* verbs_dgram_seen.c */
void dgrams_begin(void);
void dgrams_take_down(void);
/* Now and then, one of those without use comes or goes. */
void dgrams_crowd(void);
/* From RESET.  false: it cannot, now. */
bool node_bring_up(struct node *d);

/* verbs_dgram.c, for verbs_worlds.c */
/* Returns whether anything has moved. */
bool dgrams_turn(void);
bool dgrams_over(void);

/* verbs_dgram_seen.c */
/* Returns whether there was any completion. */
bool node_fetch(struct node *d);
/* Nothing that would tell is still to complete. */
bool node_answered(const struct node *d);
/* What has to arrive, of what is posted now. */
void node_posted(struct node *d, struct dgram *m);
/* What is under way from and to a queue pair that ends need not arrive. */
void node_forget(struct node *d);
/* Messages that did not arrive are as many as were lost. */
void dgrams_missed(void);

#endif
