/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SESSION_INTERNAL_H
#define DDPS_SESSION_INTERNAL_H
/*
 * The session layer: joins an LLP, the negotiation and an RDMAP stream under one state
 * machine, the same for every transport.
 */
#include "common/error.h"
#include "common/llp.h"
#include "common/loop/resolve.h"
#include "common/system/lock.h"
#include "negotiate/negotiate.h"
#include "rdmap/rdmap.h"
#include "rdmap/srq.h"
#include "session/provider.h"
#include <ddpsess/ddpsess.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/queue.h>

/* A source of events: an endpoint, a request or a listener.  Events are bits, built into a
 * struct ddps_event when fetched, so queueing one cannot fail. */
struct ddps_source {
	TAILQ_ENTRY(ddps_source) of_events;
	bool queued;	  /* it is in the context's queue */
	unsigned pending; /* 1u << enum ddps_event_type */
	/* Fill @ev (type is set) and forget what the event consumed. */
	void (*build)(struct ddps_source *s, struct ddps_event *ev);
};

/* A protection domain in its context's list. */
struct ddps_ctx_pd {
	struct ddps_pd pd; /* first */
	LIST_ENTRY(ddps_ctx_pd) link;
};

/* A shared receive queue in its context's list. */
struct ddps_ctx_srq {
	struct ddps_srq srq; /* first */
	struct ddps_source source;
	void *user;
	LIST_ENTRY(ddps_ctx_srq) link;
};

/* A thread that waits (wait.c). */
struct ddps_waiter {
	unsigned *what; /* how many sleep until it comes: events', a queue's, or progress */
	int (*drive)(struct ddps_loop *loop); /* how it serves what comes, if it leads */
	uint32_t woken;			      /* the word that followers sleep on */
	bool asleep, on_loop, joined;	      /* joined: it is in the context's list */
	LIST_ENTRY(ddps_waiter) of_all;
};

/* The library thread, and the program's that poll (mover.c). */
struct ddps_mover {
	pthread_t thread;
	bool runs, stop;
	struct ddps_task wake;	   /* gets the library thread out of its wait */
	pthread_cond_t napping_up; /* and out of its nap, */
	struct ddps_mutex nap;	   /* for which it has this one alone: of @woken */
	bool woken;
	bool napping, relied;	/* relied: who polled last has gone to sleep */
	bool looked;		/* the program did while the thread slept on the loop last */
	uint32_t drives;	/* polls of empty queues since the thread looked; atomic */
	uint16_t wary, skips;	/* naps, spins that are left out */
	uint8_t caution, doubt; /* doublings of them */
	uint8_t good;		/* naps in a row that were not too long */
};

struct ddps_walk {
	struct ddps_ep *next; /* NULL: there is none, or none under way */
	struct ddps_ctx_stats st;
};

/* Handles of requests that have ended, the oldest first. */
struct ddps_ended {
	STAILQ_HEAD(, ddps_request) handles;
	unsigned n;
};

struct ddps_ctx {
	struct ddps_ctx_attr attr;
	struct ddps_log_filter log_filter; /* of the environment */
	struct ddps_env env;
	struct ddps_mutex lock;
	uint8_t *alive; /* a page that fork wipes: DDPS_HERE in the process that made the context */
	unsigned era;	/* ddps_own_era() of its descriptors */
	struct ddps_mover mover;
	LIST_HEAD(, ddps_waiter) waiters;
	struct ddps_waiter *leader;
	unsigned event_sleepers, progress_sleepers;
	struct ddps_stag_table *stags;
	struct ddps_resolver resolver;
	TAILQ_HEAD(, ddps_source) events;
	int event_fd;
	bool events_watched, events_marked; /* somebody has event_fd; it is readable */
	LIST_HEAD(, ddps_ep) eps;
	unsigned neps;
	uint64_t serials;   /* given to endpoints so far */
	uint64_t cut_short; /* endpoints whose work may not have arrived, so far */
	LIST_HEAD(, ddps_listener) listeners;
	LIST_HEAD(, ddps_caller) callers;
	struct ddps_ended ended[2]; /* request.c */
	LIST_HEAD(, ddps_cq) cqs;
	unsigned cqs_filled; /* how many have a completion that nobody has fetched */
	LIST_HEAD(, ddps_ctx_pd) pds;
	LIST_HEAD(, ddps_ctx_srq) srqs;
	struct ddps_ctx_stats stats;  /* counters of its own, and of endpoints that are gone */
	LIST_HEAD(, ddps_ep) gathers; /* whose requests wait for others (gather.c) */
	struct ddps_timer gather_timer;
	uint64_t gather_late; /* when those that wait are late */
	uint32_t gather_turn; /* counts when the program looked; atomic */
	uint32_t gather_kept; /* how often in a row it came before that */
	uint64_t gather_at;   /* when the program posted the last time, nearly, while some waited */
	uint32_t gather_posts; /* how many have waited so far */
	bool gather_left;      /* its last look has left completions in the queue: it comes back */
	uint32_t vain;	       /* polls in a row that found nothing, */
	uint32_t vain_many;    /* and how many of them are so many that others are to run */
	bool gave;	       /* they did, and nobody has looked since */
	uint32_t away; /* threads that let others run just now; read without the lock, too */
	bool watched;  /* src/watch */
	bool ending;   /* nobody takes completions any more */
	struct ddps_walk walk;
};

/* Of a context: whether its descriptors are; DDPS_FORKED: it is the parent's. */
enum { DDPS_FORKED, DDPS_HERE, DDPS_ROBBED };

/* Whether it is useless: it is the parent's, or the program has closed its descriptors. */
static inline bool ddps_ctx_gone(const struct ddps_ctx *ctx)
{
	return __atomic_load_n(ctx->alive, __ATOMIC_RELAXED) != DDPS_HERE;
}
/* What a call says then: DDPS_E_FORKED, or DDPS_E_SYSTEM with EBADF. */
int ddps_ctx_why_gone(const struct ddps_ctx *ctx);

/* Enter and leave the context: 0 with the lock held, or why it is gone. */
static inline int ddps_ctx_enter(struct ddps_ctx *ctx)
{
	if (ddps_ctx_gone(ctx))
		return ddps_ctx_why_gone(ctx);
	ddps_lock(&ctx->lock);
	return 0;
}

/* The same bare (common/system/lock.h), where most calls touch memory only. */
static inline int ddps_ctx_enter_bare(struct ddps_ctx *ctx)
{
	if (ddps_ctx_gone(ctx))
		return ddps_ctx_why_gone(ctx);
	ddps_lock_bare(&ctx->lock);
	return 0;
}

/* The same for a call that is made seldom: it looks whether the descriptors are still there. */
int ddps_ctx_enter_seldom(struct ddps_ctx *ctx);
/* The same until @deadline at most, since the holder may be what this call has interrupted: or DDPS_E_TIMEDOUT. */
int ddps_ctx_enter_until(struct ddps_ctx *ctx, uint64_t deadline);
/* Whether the context may listen (@server) on secured wires, of @datagrams, or connect; else a code, and a sentence in the log. */
int ddps_secured_may(struct ddps_ctx *ctx, bool server, bool datagrams);
/* They are not: whoever waits learns of it, and nothing is done on their numbers any more.  The lock
 * is held. */
void ddps_ctx_rob(struct ddps_ctx *ctx);

/* The context goes: its sessions end, in order those that were ending so already.  The lock is held, but
 * for the sleeps. */
void ddps_sessions_finish(struct ddps_ctx *ctx);

static inline void ddps_ctx_leave(struct ddps_ctx *ctx)
{
	ddps_unlock(&ctx->lock);
}

/* With the lock: serve now what is due, without waiting for the library thread.  What was served, or
 * DDPS_E_SYSTEM. */
int ddps_ctx_turn(struct ddps_ctx *ctx);

/* ---- who moves the data (mover.c); the lock is held around the last one ---- */
void ddps_mover_init(struct ddps_ctx *ctx);
void ddps_mover_fini(struct ddps_ctx *ctx);
int ddps_mover_start(struct ddps_ctx *ctx); /* 0 or DDPS_E_SYSTEM */
void ddps_mover_stop(struct ddps_ctx *ctx);
/* It ends by itself, or never. */
void ddps_mover_leave(struct ddps_ctx *ctx);
/* Somebody is about to sleep: the library thread has to be awake. */
void ddps_ctx_rely_on_thread(struct ddps_ctx *ctx);

/* Sleep until @fd is readable: 1, 0 (time is up), DDPS_E_AGAIN (signal), DDPS_E_SYSTEM. */
int ddps_wait_fd(int fd, uint64_t deadline);
/* ms from now as a deadline; -1: never. */
uint64_t ddps_deadline(int timeout_ms);

/* ---- waiting (wait.c); the lock is held around all of them ---- */
/* Sleep until @w->what may have come, or nothing else has: serve what comes if it is this thread's
 * turn.  >= 0: what was served; or DDPS_E_TIMEDOUT, DDPS_E_AGAIN (signal), DDPS_E_SYSTEM. */
int ddps_sleep(struct ddps_ctx *ctx, struct ddps_waiter *w, uint64_t deadline);
/* After the last sleep, before @w goes. */
void ddps_sleep_end(struct ddps_ctx *ctx, struct ddps_waiter *w);
/* Nothing is there: sleep until @take returns something else than 0, and return that; or the errors
 * of ddps_sleep. */
int ddps_wait_for(struct ddps_ctx *ctx, struct ddps_waiter *w, int (*take)(void *arg), void *arg,
		  uint64_t deadline);
/* One has come: to be called if *@what, which counts who sleeps for it. */
void ddps_wake_one(struct ddps_ctx *ctx, const unsigned *what);
/* Somebody else has done what there was to do: if progress_sleepers. */
void ddps_wake_driven(struct ddps_ctx *ctx);
/* The context is gone. */
void ddps_wake_all(struct ddps_ctx *ctx);

/* ---- who polls; the lock is held (the rule is in mover.c) ---- */
#define DDPS_VAIN_MOST	32u /* polls: far more than a round trip between two that run takes */
#define DDPS_VAIN_LEAST 2u

/* He has found something: soon after others ran, who perhaps cannot run while he does. */
static inline void ddps_poller_found(struct ddps_ctx *ctx)
{
	ctx->vain = 0;
	if (!ctx->gave)
		return;
	ctx->gave = false;
	if (ctx->vain_many > DDPS_VAIN_LEAST)
		ctx->vain_many /= 2;
}

/* Somebody polls an empty queue; @sleeps: it is armed, and he will sleep.  As ddps_ctx_turn. */
static inline int ddps_poller_turn(struct ddps_ctx *ctx, bool sleeps)
{
	int n;

	if (ctx->attr.thread) {
		if (!ctx->attr.poll_drives)
			return 0;
		if (!sleeps) {
			__atomic_store_n(&ctx->mover.drives,
					 __atomic_load_n(&ctx->mover.drives, __ATOMIC_RELAXED) + 1,
					 __ATOMIC_RELAXED);
			ctx->mover.relied = false;
		}
	}
	ddps_uncancellable_within();
	n = ddps_loop_spin(ctx->env.loop);
	if (n > 0) /* something came, a set-up's step perhaps */
		ddps_poller_found(ctx);
	if (n > 0 && ctx->progress_sleepers)
		ddps_wake_driven(ctx);
	ddps_uncancellable_end();
	return n;
}

/* He is about to look.  true: it is the many-th time in vain, or more, and others are to run before. */
static inline bool ddps_poller_yields(const struct ddps_ctx *ctx)
{
	return ctx->vain + 1 >= ctx->vain_many;
}

/* Others run, until he is back: with the lock both times. */
static inline void ddps_poller_away(struct ddps_ctx *ctx, bool away)
{
	__atomic_store_n(&ctx->away, away ? ctx->away + 1 : ctx->away - 1, __ATOMIC_RELAXED);
}

static inline bool ddps_poller_is_away(const struct ddps_ctx *ctx)
{
	return __atomic_load_n(&ctx->away, __ATOMIC_RELAXED);
}

/* He has let others run, and some did, or nobody wanted to. */
static inline void ddps_poller_yielded(struct ddps_ctx *ctx, bool some)
{
	ctx->gave = some;
	if (!some && ctx->vain_many < DDPS_VAIN_MOST)
		ctx->vain_many *= 2;
}

/* He has found nothing. */
static inline void ddps_poller_vain(struct ddps_ctx *ctx)
{
	ctx->gave = false;
	if (ctx->vain < DDPS_VAIN_MOST)
		ctx->vain++;
}

/* ---- events (event.c) ---- */
void ddps_event_push(struct ddps_ctx *ctx, struct ddps_source *s, enum ddps_event_type type);
void ddps_event_drop(struct ddps_ctx *ctx, struct ddps_source *s);

/* ---- completion queues (cq.c) ---- */
/* false: full */
bool ddps_cq_push(struct ddps_cq *cq, const struct ddps_wc *wc);
/* How many completions it can take. */
uint32_t ddps_cq_room(const struct ddps_cq *cq);
void ddps_cq_get(struct ddps_cq *cq);
void ddps_cq_put(struct ddps_cq *cq);
void ddps_cq_forget(struct ddps_cq *cq, const struct ddps_ep *ep);
void ddps_cq_destroy(struct ddps_cq *cq);
/* Enter its context to look at it.  0 with the lock held, or why the context is gone. */
int ddps_cq_enter(struct ddps_cq *cq);
/* Drive the context as ddps_cq_poll.  Return: how many lie at @first and behind it, @max at most; or an error. */
int ddps_cq_look(struct ddps_cq *cq, const struct ddps_wc **first, int max);
/* The first @n of them, 1 or more, are taken.  Return: whether the queue has others. */
bool ddps_cq_drop(struct ddps_cq *cq, uint32_t n);
struct ddps_ctx *ddps_cq_ctx(const struct ddps_cq *cq);
/* A child's copies of all queues' descriptors. */
void ddps_cqs_close(struct ddps_ctx *ctx);

/* ---- memory (mr.c) ---- */
/* A region was revoked, by whomever: what was handed down from it is finished from a copy, nothing
 * may read it now. */
void ddps_let_go(struct ddps_ctx *ctx);

/* ---- persist.c: memory that is to be persistent ---- */
/* Whether all of it is a shared mapping of files that a device keeps. */
bool ddps_can_persist(const void *addr, size_t len);
/* Have it written to them.  0, or DDPS_E_SYSTEM with errno. */
int ddps_persist(void *addr, size_t len);

/* ---- shared receive queues (srq.c) ---- */
void ddps_srq_destroy(struct ddps_ctx_srq *s);

/* ---- counters (stats.c) ---- */
/* @ep goes: its counters stay in the context's. */
void ddps_stats_bury(struct ddps_ep *ep);

/* A walk over all endpoints that leaves the context in between, so that others are not kept waiting:
 * the lock is held around both.  One at a time. */
void ddps_walk_begin(struct ddps_ctx *ctx);
/* The next one, its counters in @st; NULL: that was all, and ctx->walk.st is complete. */
struct ddps_ep *ddps_walk_step(struct ddps_ctx *ctx, struct ddps_ep_stats *st);

/* ---- endpoints (ep.c, ep_up.c) ---- */

#define DDPS_EP_STATES(X)                                                                          \
	X(IDLE)	      /* never connected */                                                        \
	X(RESOLVING)  /* initiator: host name */                                                   \
	X(CONNECTING) /* initiator: transport, then the answer */                                  \
	X(AWAIT_RTR)  /* responder, peer-to-peer: accepted */                                      \
	X(OPEN)	      /* established */                                                            \
	X(DRAINING)   /* disconnect asked, work under way */                                       \
	X(CLOSING)    /* shutdown handed down */                                                   \
	X(DEAD)	      /* final event queued */

enum ddps_ep_state {
#define DDPS_X(name) DDPS_EP_##name,
	DDPS_EP_STATES(DDPS_X)
#undef DDPS_X
};

/* Work that came too late, to be completed as flushed behind the rest. */
struct ddps_late {
	STAILQ_ENTRY(ddps_late) of_ep;
	uint64_t wr_id;
	enum ddps_op op;
};

/* Requests of an endpoint that wait for others (gather.c). */
struct ddps_gather {
	LIST_ENTRY(ddps_ep) of_all;
	uint32_t turn; /* of the context, in which the last one was posted */
	uint32_t octets;
	uint16_t count;
	uint16_t wary; /* so many leave without waiting */
	uint8_t caution;
	bool joined; /* the context's list */
};

/* struct ddps_conn_info, for as long as an endpoint lives: the texts are made of the numbers when they are asked
 * for.  What has no number, the end of a pair on one host, has its name in @names. */
struct ddps_kept_info {
	struct ddps_addr local_addr, peer_addr;
	char *names; /* local's, then peer's; NULL: both have numbers, or are not known */
	uint32_t mulpdu;
	uint16_t ird, ord, peer_ird, peer_ord;
	enum ddps_transport transport;
	unsigned rtr, peer_rtr;
	bool initiator, enhanced, p2p;
	__typeof__(((struct ddps_conn_info *)0)->mpa) mpa;
	union { /* by transport */
		__typeof__(((struct ddps_conn_info *)0)->sctp) sctp;
		__typeof__(((struct ddps_conn_info *)0)->shm) shm;
	};
};

struct ddps_peer_text {
	char text[sizeof(((struct ddps_conn_info *)0)->peer)];
};

/* What each Send needs is together at the beginning, as in struct ddps_rdmap. */
struct ddps_ep {
	struct ddps_source source; /* first */
	struct ddps_ctx *ctx;
	struct ddps_rdmap *rdmap;
	struct ddps_llp *llp;
	enum ddps_ep_state state;
	bool established;
	bool stalls;	   /* DDPS_NO_RECV_STALL */
	bool closing_seen; /* of the peer, behind what waits */
	bool peer_closed;  /* in order */
	struct ddps_cq *send_cq, *recv_cq;
	void *user;
	struct ddps_gather gather;
	struct {
		uint32_t ms;	/* how long it may be silent; 0: for ever */
		bool looks;	/* the timer runs */
		bool gone;	/* it was silent for too long */
		uint64_t since; /* ns; when it was first seen to be; 0: it is not */
		struct ddps_timer timer;
	} host;		 /* the peer's (host.c) */
	uint64_t serial; /* unlike its address nobody's ever again */
	uint32_t late_count;
	bool cut_short;	      /* some of its work may not have arrived */
	bool id_lost;	      /* without memory for @was */
	struct ddps_who *was; /* the peer of a secured session that has ended, or NULL */
	LIST_ENTRY(ddps_ep) link;
	struct ddps_pd *pd;
	struct ddps_task kick, shut, overflow;
	struct ddps_timer close_timer, nudge_timer, stall_timer;
	uint64_t moved_seen, taken_seen; /* by the close timer; by the stall timer */
	uint64_t heard_seen;		 /* by settle */
	uint64_t
		patience; /* in order, all has arrived: how long its peer is waited for; 0: it has not */
	uint32_t close_ms, nudge_ms;
	bool flush_late;
	uint8_t mute, muted; /* DDPS_MUTE_*; and where something was flushed since */
	bool shared_rq;	     /* it has no receive queue of its own */
	STAILQ_HEAD(, ddps_late) late;
	struct ddps_kept_info info;
	struct ddps_kept_error error;
	struct ddps_dial *dial; /* initiator, until established or dead */
	uint8_t *pd_in;		/* peer's private data until fetched */
	size_t pd_in_len;
};

extern const struct ddps_llp_up ddps_ep_up;
extern const struct ddps_rdmap_up ddps_ep_rdmap_up;

const char *ddps_ep_state_name(enum ddps_ep_state s);
/* ---- what is known of a connection (peer.c) ---- */
/* Without memory names are lost. */
void ddps_info_keep(struct ddps_kept_info *k, const struct ddps_conn_info *info);
/* Without and with the texts of addresses that have numbers: see ddps_info_text. */
struct ddps_conn_info ddps_info_bare(const struct ddps_kept_info *k);
struct ddps_conn_info ddps_info_kept(const struct ddps_kept_info *k);
/* The peer as text; "" before it is known. */
struct ddps_peer_text ddps_ep_peer(const struct ddps_ep *ep);
/* All that its LLP knows. */
void ddps_ep_learn_info(struct ddps_ep *ep);
/* What changes in an established one: the path, and TCP may have made way for shared memory. */
void ddps_ep_renew_info(struct ddps_ep *ep);
void ddps_ep_set_state(struct ddps_ep *ep, enum ddps_ep_state s);
/* The session is over (or never was): release the LLP, flush, queue the final event. */
void ddps_ep_end(struct ddps_ep *ep, enum ddps_event_type final, const struct ddps_error *e);
/* End as FAILED or CLOSED, whichever fits. */
void ddps_ep_lost(struct ddps_ep *ep, const struct ddps_error *e);
void ddps_ep_established(struct ddps_ep *ep);
/* Start RDMAP with the result of the negotiation; @role fields are set by the caller. */
int ddps_ep_start(struct ddps_ep *ep, const struct ddps_nego_result *res,
		  const struct ddps_rdmap_start *role);
void ddps_ep_shutdown_soon(struct ddps_ep *ep);
/* When it is informed that a Send still waits though its peer has closed and nothing moves. */
#define DDPS_STALL_CLOSED_MS 1000
void ddps_ep_stall_timer(struct ddps_ep *ep);
/* The peer's host (host.c): looked at from now on, if it is to be; not any more. */
void ddps_host_init(struct ddps_ep *ep);
void ddps_host_posted(struct ddps_ep *ep);
void ddps_host_stop(struct ddps_ep *ep);
#define DDPS_EP_OFTEN 96u /* octets, from @ctx on, that each message needs */
/* With thousands of sessions none of it is in cache: fetch it, two lines each, while the lock is taken.  There may be
 * nothing: an address is a number here. */
static inline void ddps_ep_prefetch(const struct ddps_ep *ep)
{
	const uintptr_t line = 64;

	__builtin_prefetch(ep->rdmap);
	__builtin_prefetch((const void *)((uintptr_t)ep->rdmap + line));
	__builtin_prefetch(ep->llp);
	__builtin_prefetch((const void *)((uintptr_t)ep->llp + line));
}
/* ddps_post_send and ddps_post_recv with the lock held. */
int ddps_ep_send(struct ddps_ep *ep, const struct ddps_send_wr *wr);
/* It has something to send.  The lock may be bare. */
static inline void ddps_ep_kick(struct ddps_ep *ep)
{
	ddps_uncancellable_within();
	ep->llp->ops->kick(ep->llp);
	ddps_uncancellable_end();
}
int ddps_ep_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge);
/* Keep a copy of the peer's private data.  0 or DDPS_E_NOMEM. */
int ddps_ep_keep_pd(struct ddps_ep *ep, const uint8_t *pd, size_t len);
void ddps_ep_destroy(struct ddps_ep *ep);
void ddps_ep_end_init(struct ddps_ep *ep);
/* Let go of everything below and of everything that could call back. */
void ddps_ep_release(struct ddps_ep *ep);
/* If @lacks: some of @ep's work may not have arrived, or was refused.  Without work it means nothing. */
void ddps_ep_cut(struct ddps_ep *ep, bool lacks);
/* ddps_disconnect with the lock held. */
int ddps_ep_disconnect(struct ddps_ep *ep);

/* ---- requests that leave together (gather.c) ---- */
void ddps_gather_init(struct ddps_ctx *ctx);
/* @wr was posted: true if it stays for now, else everything is to go. */
bool ddps_gather(struct ddps_ep *ep, const struct ddps_send_wr *wr);
/* Nothing of @ep waits any more. */
void ddps_gather_forget(struct ddps_ep *ep);
/* All that waits goes. */
void ddps_gather_flush(struct ddps_ctx *ctx);
/* ... if its time is over. */
void ddps_gather_late(struct ddps_ctx *ctx);

/* How often the program has looked, nearly; also without the lock. */
static inline uint32_t ddps_gather_looks(const struct ddps_ctx *ctx)
{
	return __atomic_load_n(&ctx->gather_turn, __ATOMIC_RELAXED);
}

static inline void ddps_gather_next(struct ddps_ctx *ctx)
{
	__atomic_store_n(&ctx->gather_turn, ddps_gather_looks(ctx) + 1, __ATOMIC_RELAXED);
}

/* The program looks for what has come: nothing of its own waits for others now. */
static inline void ddps_gather_look(struct ddps_ctx *ctx)
{
	ctx->gather_left = false;
	ddps_gather_next(ctx);
	if (!LIST_EMPTY(&ctx->gathers))
		ddps_gather_flush(ctx);
}

/* The program fetches what its last look has left. */
void ddps_gather_again(struct ddps_ctx *ctx);

/* A request has left, which takes as long as many that wait: whoever posts such ones does nothing else, either. */
static inline void ddps_gather_posted(struct ddps_ctx *ctx)
{
	if (!LIST_EMPTY(&ctx->gathers))
		ctx->gather_at = ddps_now();
}

/* ---- work posted too late (ep_end.c) ---- */
int ddps_late_post(struct ddps_ep *ep, enum ddps_op op, uint64_t wr_id);
void ddps_late_free(struct ddps_ep *ep);

/* ---- parameters (param.c) ---- */
/* The caller's struct as one of this release, NULL: the defaults.
 * 0, DDPS_E_INVAL (its size) or DDPS_E_UNSUPPORTED (a member of a later release is set). */
int ddps_ctx_attr_take(struct ddps_ctx_attr *to, const struct ddps_ctx_attr *from);
int ddps_conn_param_take(struct ddps_conn_param *to, const struct ddps_conn_param *from);
int ddps_listen_param_take(struct ddps_listen_param *to, const struct ddps_listen_param *from);
int ddps_ep_attr_take(struct ddps_ep_attr *to, const struct ddps_ep_attr *from);
/* Check ranges and combination; @enhanced decides the limit of the private data. */
int ddps_param_check(const struct ddps_conn_param *p, bool enhanced, bool initiator);
void ddps_param_nego(const struct ddps_conn_param *p, const struct ddps_ctx *ctx,
		     struct ddps_nego_local *l);
void ddps_param_llp(const struct ddps_conn_param *p, struct ddps_llp_param *lp);
/* Split a setup message: word (enhanced) and what belongs to the application. */
void ddps_setup_split(const struct ddps_setup *s, struct ddps_word *w, const uint8_t **pd,
		      size_t *pd_len, bool *has_word);
/* Build private data with the word in front: buf of DDPS_PD_MAX. */
size_t ddps_setup_join(uint8_t *buf, const struct ddps_word *w, const void *pd, size_t len);

/* ---- initiator (connect.c) ---- */
void ddps_dial_answer(struct ddps_ep *ep, const struct ddps_setup *s);
/* closed() before the answer: another address or an unenhanced retry?  true if under way. */
bool ddps_dial_again(struct ddps_ep *ep, const struct ddps_error *e);
void ddps_dial_free(struct ddps_ep *ep);

/* ---- responder (listen.c, request.c) ---- */
struct ddps_listener {
	struct ddps_source source; /* first */
	struct ddps_ctx *ctx;
	LIST_ENTRY(ddps_listener) link;
	struct ddps_llp_listener *llp;
	struct ddps_listen_param param;
	struct ddps_error error;
};

/* Of the listener: somebody calls. */
void ddps_caller_new(void *user, struct ddps_llp *llp, const struct ddps_setup *s);
void ddps_callers_orphan(const struct ddps_listener *l);
/* All of them, and what the program holds of them. */
void ddps_requests_free(struct ddps_ctx *ctx);
/* Rejections are still on their way to their peers. */
bool ddps_requests_winding_up(const struct ddps_ctx *ctx);
unsigned ddps_requests_count(const struct ddps_ctx *ctx);
void ddps_listener_destroy(struct ddps_listener *l);
/* With the lock: where the @i-th listener listens.  What snprintf returns; 0: there are no more. */
int ddps_listener_nth(const struct ddps_ctx *ctx, unsigned i, char *buf, size_t len);

/* What ops->peer_id says, or that the wire is not secured, as the caller's struct. */
int ddps_llp_peer_id(const struct ddps_llp *llp, struct ddps_peer_id *id);

#endif
