/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_VERBS_WORLD_H
#define SIM_VERBS_WORLD_H
/* A world of verbs: connections and their ends (verbs_worlds.c), what is posted and completes (verbs_user.c). */
#include "sim/kern.h"
#include "sim/sim_event.h"
#include "sim/sim_main.h"
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#define PAIRS 3u
#define DEPTH 16u
#define MSGS  40u /* requests of an end */
#define MAX   3000u
#define RECVS 1000u /* the identifiers of receives */
#define RIGHTS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

enum {
	T_CONNECTIONS,
	T_COMPLETIONS,
	T_RECEIVES,
	T_FLUSHED,
	T_REFUSED,
	T_ERRORS,
	T_BROKEN,
	T_MS,
	T_SCTP,
	T_DATAGRAMS,
	T_BOUND,
	T_INVALIDATED
};

/* An end's memory window: of no use, being bound, the peer's to write through, its own alone; the peer
 * has asked for its end, or the end itself has. */
enum window { WIN_NONE, WIN_BINDING, WIN_OPEN, WIN_PRIVATE, WIN_CLOSING };

struct request {
	uint64_t id;
	enum ibv_wr_opcode op;
	uint32_t len, slot;
	uint32_t key; /* of the window that it binds, ends or has ended */
	bool silent;
};

struct end {
	unsigned id, pair;
	struct rdma_cm_id *cm;
	struct ibv_cq *cq;
	struct ibv_pd *pd; /* of its own, where receives are in a shared queue */
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct request sq[MSGS], all[MSGS]; /* posted, and not known to have completed; all */
	unsigned nsq, nrq, ops, posted_recvs;
	uint64_t first_recv;	   /* the oldest that is posted */
	struct request told[MSGS]; /* what the peer will receive, in order */
	unsigned ntold, heard, writes, writes_at[MSGS];
	bool dead, disconnected, flushed;
	uint8_t out[MSGS][MAX], in[MSGS][MAX], recv[2 * MSGS][MAX], read[MSGS][MAX];
	uint64_t word;
	struct ibv_mw *mw;
	enum window window;
	uint32_t wkey;
};

struct verbs_world {
	uint64_t seed, rng;
	unsigned npairs;
	bool tidy, failed, over;
	bool shares; /* receives are in shared queues */
	bool sctp;
	bool windows; /* each end has a memory window */
	double reset; /* streams, once they are connected */
	struct end end[PAIRS][2];
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listen;
	struct sim_tally *t;
};
extern struct verbs_world w;

#define check(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond) && !w.failed) {                                                        \
			fprintf(stderr, "seed %" PRIu64 " at %.6f: ", w.seed,                      \
				(double)kern.now / 1e9);                                           \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			w.failed = true;                                                           \
			sim_events.failed = __LINE__;                                              \
		}                                                                                  \
	} while (0)

static inline uint64_t rnd(uint64_t m)
{
	return sim_below(&w.rng, m);
}

static inline uint32_t owner(const struct end *e)
{
	return SIM_OWNER(e->pair, 0, e->id);
}

static inline struct end *other(struct end *e)
{
	return &w.end[e->pair][!e->id];
}

static inline uint8_t octet(const struct end *e, unsigned n, unsigned at)
{
	return (uint8_t)(n * 31 + at * 7 + e->id * 101 + e->pair * 57);
}

/* verbs_window.c: what else may be posted where there are windows.  Returns whether @wr is that. */
bool window_request(struct end *e, struct ibv_send_wr *wr, struct request *r);
/* Whether a Write or an RDMA Read of @e goes through the peer's window; then @wr says so. */
void window_use(struct end *e, struct ibv_send_wr *wr, const struct request *r);
void window_posted(struct end *e, const struct request *r);
void window_sent(struct end *e, const struct request *r, const struct ibv_wc *wc);
void window_received(struct end *e, const struct request *r, const struct ibv_wc *wc);

/* verbs_user.c */
void user_post_recvs(struct end *e);
/* One request, or a row of them; what has no room is refused, and what stands before it is taken. */
void user_post_some(struct end *e);
/* Returns whether there was any completion. */
bool user_fetch(struct end *e);
/* Nothing that would tell is still to complete. */
bool user_answered(const struct end *e);

#endif
