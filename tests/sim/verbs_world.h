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
	T_INVALIDATED,
	T_BOUND_1,
	T_WRONG,
	T_DGRAMS_SENT,
	T_DGRAMS_GOT,
	T_DGRAMS_GROUP,
	T_DGRAMS_FAILED,
	T_DGRAMS_WRONG,
	T_DGRAMS_CUT,
	T_DGRAMS_LOST,
	T_POOR,
	T_CALLS_FAILED,
	T_GIVEN_UP,
	T_LEFT,
	T_BESIDE,
	T_SETTLED,
	T_LOST_QUEUES,
	T_NO_MEMORY,
	T_NO_DESCRIPTOR,
	T_NO_CALL
};

/* An end's memory window: useless, being bound, the peer's to write through, its own alone; the peer
 * has asked for its end, or the end itself has. */
enum window { WIN_NONE, WIN_BINDING, WIN_OPEN, WIN_PRIVATE, WIN_CLOSING };
/* Each end has one, in some worlds. */
enum windows { WINDOWS_NONE, WINDOWS_1, WINDOWS_2 };
/* Memory, descriptors and calls fail: never, once the connections are up, from the start on. */
enum poor { POOR_NONE, POOR_LATER, POOR_EARLY };

struct end;

struct request {
	uint64_t id;
	enum ibv_wr_opcode op;
	uint32_t len, slot;
	uint32_t key; /* of the window that it binds, ends or has ended */
	bool silent;
	struct end *of; /* whose window it binds, where that may be another end's */
	bool unbinds;	/* ... or takes back */
	bool last_use;	/* a Send that says: the peer does not write through the window any more */
	bool wrong;	/* a Write that no window allows */
};

struct end {
	unsigned id, pair;
	struct rdma_cm_id *cm;
	struct ibv_cq *cq;
	struct ibv_comp_channel
		*channel; /* it looks for completions when it is informed that there are some */
	bool armed, arms_late, hasty; /* hasty: it does not always wait until it is informed */
	uint32_t looks;
	uint64_t looked;   /* when it found that there were no more */
	struct ibv_pd *pd; /* of its own, where receives are in a shared queue */
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct request sq[MSGS], all[MSGS]; /* posted, and not known to have completed; all */
	unsigned nsq, nrq, ops, posted_recvs;
	uint64_t first_recv;	   /* the oldest that is posted */
	struct request told[MSGS]; /* what the peer will receive, in order */
	unsigned ntold, heard, writes, writes_at[MSGS];
	bool dead, disconnected, flushed;
	bool last_wqe; /* it takes no receive of the shared queue any more */
	bool refused;  /* the peer has answered a request of it by a Terminate ... */
	bool fatal;    /* ... and it was informed that its queue pair failed, by an event */
	bool up;
	bool behind; /* it is informed of the end, and has looked shortly before: all messages have come */
	bool lost; /* it cannot go on with its connection ... */
	bool gone; /* ... which has been given up */
	bool left; /* it has destroyed its queue pair without waiting for the end of its connection */
	uint8_t out[MSGS][MAX], in[MSGS][MAX], recv[2 * MSGS][MAX], read[MSGS][MAX];
	uint64_t word;
	struct ibv_mw *mw;
	enum window window;
	uint32_t wkey, dead_key; /* dead_key: one that was the window's */
	bool taken_back;	 /* by a bind to nothing, which has made a key, too */
	unsigned tries;
	bool wrong; /* it has posted a Write that ends the connection, as its request @wrong_at */
	unsigned wrong_at;
};

struct verbs_world {
	uint64_t seed, rng;
	unsigned npairs;
	bool tidy, failed, over;
	bool sleeps;   /* each end has a channel */
	bool shares;   /* receives are in shared queues */
	bool full;     /* it ends with a completion queue that overflows */
	bool parallel; /* it ends with a program of several threads */
	bool leaves;   /* who ends a connection does not wait for its end */
	bool sctp;
	enum windows windows;
	enum poor poor;
	unsigned settle_at; /* the turn in front of which the program waits */
	double reset;	    /* streams, once they are connected */
	struct end end[PAIRS][2];
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listen, *again; /* again: a request that has come a second time */
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

static inline uint64_t draw_verbs(uint64_t m)
{
	return sim_below(&w.rng, m);
}

static inline uint32_t get_end_owner(const struct end *e)
{
	return SIM_OWNER(e->pair, 0, e->id);
}

static inline struct end *get_other_end(struct end *e)
{
	return &w.end[e->pair][!e->id];
}

static inline uint8_t octet(const struct end *e, unsigned n, unsigned at)
{
	return (uint8_t)(n * 31 + at * 7 + e->id * 101 + e->pair * 57);
}

/* verbs_worlds.c */
void let_pass(uint64_t ns);

/* verbs_connect.c */
void connect_all(void);
/* What has happened to connections. */
void events(void);
void end_over(struct end *e);
void end_free(struct end *e);
/* All has been done.  It ends the connection, and destroys its queue pair immediately. */
void end_leave(struct end *e);

/* verbs_oob.c: when all else is over, queue pairs that the program connects itself */
void oob_play(void);

/* verbs_full.c: the same, where a completion queue is too small */
void full_play(void);

/* verbs_parallel.c: the same, of several threads */
void parallel_play(void);

/* verbs_poor.c */
void poor_begin(void);
void poor_on(void);
/* For a moment, and for good. */
void poor_pause(void);
void poor_stop(void);
/* A call may have failed, and errno has to say why.  Returns false. */
bool poor_fails(const char *what);
#define tried(call) (errno = 0, (call) ? true : poor_fails(#call))
/* Now and then something more that may fail comes and goes. */
void poor_turn(void);
/* What there is now is what has to be left at the end. */
void poor_note(void);
void poor_left(void);
/* Nothing fails, and users only wait: all that was asked for is done in the end, or it ends by itself. */
void wait_until_done(void);

/* verbs_window.c: what else may be posted where there are windows.  Returns whether @wr is that. */
bool window_request(struct end *e, struct ibv_send_wr *wr, struct request *r);
/* A Write of @e may go through the peer's window, and in an untidy world next to it; then @wr says so. */
void window_use(struct end *e, struct ibv_send_wr *wr, struct request *r);
/* Type 1 has a call of its own, on any queue pair of the domain. */
void window_bind(struct end *e);
void window_posted(struct end *e, const struct request *r);
void window_sent(struct end *e, const struct request *r, const struct ibv_wc *wc);
void window_received(struct end *e, const struct request *r, const struct ibv_wc *wc);
/* What its wrong Writes would have changed is as it was. */
void window_kept(struct end *e);

/* verbs_user.c */
/* It may post, and nobody has begun to end it. */
static inline bool user_may_post(struct end *e)
{
	return !e->dead && !e->disconnected && !get_other_end(e)->disconnected;
}

/* What was taken is to be seen by either side. */
void user_posted(struct end *e, const struct request *r);
void user_post_recvs(struct end *e);
/* One request, or a row of them; what has no room is refused, and what stands before it is taken. */
void user_post_some(struct end *e);
/* All that there is; with a channel, only if that says so.  Returns whether there was any. */
bool user_look(struct end *e);
/* It waits for the next completion.  Returns whether there is none now, nor an event. */
bool user_at_rest(struct end *e);
/* Its channel has an event, which is taken. */
bool user_woken(struct end *e);
/* The end of its connection has been reported. */
void user_told(struct end *e);
/* Nothing that would tell is still to complete. */
bool user_answered(const struct end *e);

#endif
