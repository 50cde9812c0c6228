/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_IPOIB_WORLD_H
#define SIM_IPOIB_WORLD_H
/* A world of IPoIB: its nodes (ipoib_worlds.c), the network (ipoib_net.c), and what has to be so in the end
 * (ipoib_calm.c). */
#include "ipoib_cm/ib/node.h"
#include "sim/kern.h"
#include "sim/sim_event.h"
#include "sim/sim_main.h"
#include <ddpsess/ipoib_if.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES	 5u
#define US	 1000ull
#define MS	 (1000 * US)
#define SEC	 (1000 * MS)
#define TURNS	 200u
#define LONGEST	 9000u
#define LAST_LID 47u
#define POOR	 0.5	    /* allocations that fail while there is next to no memory */
#define SPINS	 5000u	    /* turns of a node at one moment */
#define FLYING	 (1u << 16) /* packets on their way: more are lost */
#define CALM	 300u	    /* seconds in which each node has to reach each other one */
#define SETTLE	 20u	    /* seconds of traffic after which connections are as they will be */
#define STEADY	 6u	    /* seconds in which what is sent arrives */
#define ONCE	 3u	    /* seconds until a node that has restarted does so again */
#define SOON	 2u	    /* and after that it is as the others are */
#define ADMIN	 8u	    /* if it has the administration: nodes look every five seconds */
#define REST	 600u	    /* and in which nothing may be left when all have stopped */

enum {
	T_WORLDS,
	T_SENT,
	T_GOT,
	T_CONNECTIONS,
	T_RESTARTS,
	T_MOVES,
	T_SECONDS,
	T_PACKETS,
	T_LOST,
	T_DOUBLED,
	T_LATE,
	T_ALTERED,
	T_LIES,
	T_FULL,
	T_MEMORY
};

struct flying {
	struct flying *next;
	uint64_t at;
	unsigned from;
	uint16_t slid, lid;
	struct ddps_ib_pkt p;
	uint8_t data[DDPS_IB_MTU_MAX];
};

#define ASKING 32u

/* A REQ that is out, and how often it was repeated. */
struct asking {
	uint32_t id, life; /* of the node that sent it */
	unsigned again;
	uint64_t at;
};

struct node {
	unsigned i;
	uint16_t lid; /* when it begins next */
	struct ddps_ib_node *n;
	struct ddps_ipoib_if *f;
	struct ddps_ib_node_config cfg;
	uint8_t mode;
	uint32_t life; /* how often it began */
	uint32_t seed; /* of its queue pair numbers */
	uint64_t stalled_until, sent;
	uint64_t poor_until; /* its host has next to no memory */
	uint64_t room_at;    /* the network takes its packets again; 0: it does */
	uint32_t draws[SIM_KINDS];
	bool stopped;
	bool away;	      /* there is no such node now */
	uint64_t counts_from; /* the number of its first packet that counts */
	uint64_t got[NODES];  /* how many packets, of each */
	struct asking asking[ASKING];
	uint64_t asked_at[NODES]; /* when the first REQ of each came; 0: none has */
};

struct world {
	uint64_t seed, rng, now;
	unsigned n;
	bool same_qpn;	   /* of datagrams, at all nodes */
	bool same_numbers; /* whoever restarts begins with the numbers of the time before */
	struct node node[NODES];
	struct flying *first;
	unsigned flying;
	double memory; /* allocations that fail */
	double lost, doubled, late, altered, lies, full;
	uint64_t delay;
	uint8_t life;	  /* of a packet, as nodes say */
	unsigned slow_cm; /* of how many lengths answers of connection managers may be waited for */
	bool few_qps;	  /* there are no more than two for each peer, and two */
	uint32_t draws;	  /* of whether somebody moves */
	bool swapped;	  /* datagrams by old paths may come to another node */
	bool calm, failed;
	int liar;
	uint64_t tight; /* one of so many packets finds no room, where nothing else fails */
	const struct node *greedy;
	bool no_rtu; /* of the greedy one, which does not say when it ends either */
	struct sim_tally *t;
};
extern struct world world;

/* Who has it now. */
static inline unsigned get_ipoib_world_owner(uint16_t lid)
{
	unsigned i = 0;

	while (i < world.n && (world.node[i].away || world.node[i].cfg.lid != lid))
		i++;
	return i;
}

void fails(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define check(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond) && !world.failed)                                                      \
			fails(__VA_ARGS__);                                                        \
	} while (0)

static inline uint64_t draw_ipoib_world(uint64_t m)
{
	return sim_below(&world.rng, m);
}

/* Does one of these happen to @n now? */
bool happens(struct node *n, enum sim_event kind, double p, unsigned tally);

/* ipoib_net.c */
bool net_send(void *wire, uint16_t lid, unsigned group, struct ddps_ib_pkt *p);
/* What has arrived by now. */
void net_land(void);
void net_clear(void);

/* ipoib_again.c: @p leaves @n, where nothing fails. */
void timers(struct node *n, const struct ddps_ib_pkt *p);

/* ipoib_worlds.c */
/* What is done from now on is done by @n, with the memory that its host has. */
void be(const struct node *n);
void begin(struct node *n);
/* Nobody is informed. */
void finish(struct node *n);
void send_ip(struct node *n, unsigned to, size_t len);
/* A length that may leave in one packet, if both have connections. */
size_t length(struct node *n, unsigned to);
void run_until(uint64_t end);

/* ipoib_net.c: a node stands still, restarts, stops or starts; or the network is a slower one. */
void trouble(void);
/* A host has no memory for a while; its node may begin right then, as when a machine comes up. */
void poor(void);
/* It has another LID when it begins next, which was nobody's; not the administration. */
void moves(struct node *n);
/* Two that are away have each other's when they begin. */
void swap(struct node *a, struct node *b);

/* ipoib_calm.c: once nothing fails any more, and then in the end. */
void calm(void);
void stop(void);
/* How many connections of @n to @to are up. */
unsigned connections(const struct node *n, unsigned to);

/* ipoib_again.c: sockets are full at times, and nothing is lost. */
void tight(void);

/* ipoib_again.c: then nodes go and come again, and have connections soon. */
void again(void);
/* From time to time each sends to @n, or @n to each, or both. */
enum who { OTHERS, ALONE, BOTH };
void chatter(uint64_t span, struct node *n, enum who speaks);
/* It begins, and has connections soon after it asks or is asked. */
uint64_t comes_again(struct node *n, enum who speaks);

/* ipoib_again.c: then one of them wastes what the others have. */
void greedy(void);
/* Return: whether @p leaves @n; its data may be others then, in @data. */
bool greed(const struct node *n, struct ddps_ib_pkt *p, uint8_t data[DDPS_CM_MAD_LEN]);

#endif
