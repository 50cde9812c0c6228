/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_SESSION_WORLD_H
#define SIM_SESSION_WORLD_H
/*
 * Hosts with a context each, and pairs of endpoints between them that connect, work, end and begin
 * again.  Both users of a session are here, so the model knows what either may see.
 *
 * session_worlds.c  the world		session_user.c	what an endpoint's user does
 * session_hosts.c   hosts; sessions begin, go on and end
 * session_trouble.c what happens	session_lies.c	hosts that lie
 * session_model.c   what may be seen; what contexts count, counted again
 * session_stuck.c   a world of its own: a peer that does not read
 * session_bulk.c    another one: much to say, both ways
 * session_crowd.c   another one: many programs that call simultaneously, killed, rejected, held up
 * session_brief.c   another one: short sessions, and how long each of their steps takes
 * session_mixed.c  another one: short sessions next to others that never have enough
 */
#include "sim/kern.h"
#include "sim/sim_event.h"
#include "sim/sim_main.h"
#include <ddpsess/ddpsess.h>
#include <ddpsess/wr.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAIRS	 10u
#define SLOTS	 16u   /* of Writes, of Reads, of receives */
#define SLOT_LEN 8192u /* of Writes and Reads */
#define RECV_LEN 16384u
#define OPS	 64u /* of one end */
#define TABLE	 65536u
#define SEC	 1000000000ull

enum {
	T_SESSIONS,
	T_TCP,
	T_SCTP,
	T_ORDERLY,
	T_BROKEN,
	T_REJECTED,
	T_FAILED,
	T_OPS,
	T_TERMINATES,
	T_WORLDS,
	T_SECONDS,
	T_FAULTS,
	T_SAME,
	T_LIED,
	T_RESTARTS,
	T_SHARED,
	T_PLACED,
	T_KERNEL,
	T_TLS,
	T_DTLS,
	T_RENEWED,
	T_REBOUND,
	T_SHM,
	T_FLUSHED,
	T_KINDS /* of faults, one each */
};

struct wr { /* posted, not completed */
	uint64_t id;
	enum ddps_op op;
	uint32_t len,
		at; /* READ: offset in the table; FLUSH: Writes before it; others: where, or number */
	unsigned slot; /* of a Read */
	unsigned tx;   /* of what is sent from memory that changes once it has left; 0: none */
	bool silent, placed;
};

struct queue { /* in the order of posting */
	struct wr wr[OPS + SLOTS];
	unsigned first, n;
	bool failed; /* one of them has: none behind it may succeed */
};

struct msg { /* a Send or Immediate Data */
	uint32_t len;
	unsigned writes; /* Writes posted before it */
	bool imm, invalidate;
};

struct pair;

struct end {
	struct pair *pair;
	unsigned id, host;
	uint64_t rng,
		program; /* of its program: the same whatever the wire does; one operation's */
	struct ddps_ep *ep;
	struct ddps_request *req;
	struct ddps_mr *src, *sink, *local, *atomic, *cells, *inv, *tx, *bait;
	bool asked, established, final, freed, terminated, peer_closed, disconnected, aborted;
	bool naughty;	     /* it has done what nobody expects */
	const void *carrier; /* over SCTP, once established: its association here */
	bool tx_used[SLOTS];
	unsigned looks; /* turns that it had */
	int code;
	struct ddps_triple triple;
	char text[200];
	struct queue sq, rq;
	uint64_t next_id;
	unsigned sq_depth, rq_depth;
	unsigned ops, to_post; /* of its program */
	struct msg msgs[OPS];
	unsigned nmsgs, received, nrecvs;
	uint32_t write_len[OPS];
	unsigned nwrites, nreads, reads_done, added, ncells, ord;
	bool invalidated;
	uint64_t digest[2]; /* of all that was seen: received, sent */
	/* Memory that nobody has a right to: where a Read or a receive has ended; all, at the end. */
	uint64_t read_kept[SLOTS], recv_kept[SLOTS], tx_kept[SLOTS], kept;
	uint64_t counter, cell[SLOTS]; /* the latter are written by Atomic Writes */
	uint8_t guard[64];	       /* a region of nobody: no peer may write here */
	uint8_t sink_mem[SLOTS * SLOT_LEN], read_mem[SLOTS * SLOT_LEN + 8]; /* 8: of atomics */
	uint8_t recv_mem[SLOTS * RECV_LEN];
	uint8_t inv_mem[64];
	uint8_t tx_mem[SLOTS * RECV_LEN];
};

struct pair {
	struct end end[2];
	uint32_t salt;
	uint64_t rng, sched; /* of what its users do, and of when */
	unsigned rounds, n;  /* n: turns that it had */
	bool shared;	     /* its responder takes receives from its host's queue */
	bool open, tcp, tidy, evil, rfc7306, flush, p2p, markers, crc;
	bool rejected; /* so it was answered */
	bool lied;     /* one of the hosts lies: what arrives may be anything */
};

struct host {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_srq *srq;
	struct ddps_ep *nobody; /* never connected: its regions are nobody's to write */
	struct ddps_listener *tcp, *sctp;
	uint64_t stalled_until, rng;
	unsigned looks;
	bool spins; /* its user does nothing but poll for completions */
};

/* Receives of a host that sessions share. */
#define SHARED	  64u
#define SHARED_ID (UINT64_C(1) << 63)
struct shared {
	struct ddps_mr *mr;
	uint64_t posted[SHARED], ids; /* the identifier, 0: not posted */
	uint8_t mem[SHARED * RECV_LEN];
};
extern struct shared shared[KERN_HOSTS];

struct world {
	uint64_t seed, rng;
	bool secured; /* "tcp" is tls */
	bool inside;  /* and "sctp" is sctps */
	bool shm;     /* "tcp" is shm */
	bool near;    /* who has TCP would rather have shared memory */
	unsigned nhosts, npairs;
	struct host host[KERN_HOSTS];
	struct pair *pair;
	enum { WIRE_ANY, WIRE_TCP, WIRE_SCTP } wire;
	const char *sctp; /* how URIs of SCTP go on */
	bool quiet;	  /* nothing fails */
	bool keen;	  /* its hosts do nothing but poll */
	bool bulk;	  /* ... and each has more to send than the sockets take */
	bool corrupt;	  /* set-up frames of MPA have no CRC: what they say may be wrong */
	bool still;	  /* no faults any more, and nobody asks for anything new */
	bool calm;	  /* the end of it: all sessions end */
	bool failed;
	struct sim_tally *t;
};
extern struct world world;
extern uint8_t table[TABLE + RECV_LEN];

/* Says what is wrong, once. */
void world_fails(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define check(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond) && !world.failed)                                                      \
			world_fails(__VA_ARGS__);                                                  \
	} while (0)

/* Enter a host: what is called now is called there. */
static inline struct host *at_host(unsigned i)
{
	kern.host = kern.who = i;
	return &world.host[i];
}

static inline struct end *get_other_session_end(struct end *e)
{
	return &e->pair->end[!e->id];
}

/* When things happen, for a pair. */
static inline uint64_t below(struct pair *p, uint64_t m)
{
	return sim_below(&p->sched, m);
}

static inline bool shares(const struct end *e)
{
	return e->pair->shared && e->id;
}

static inline uint32_t pair_name(const struct pair *p, unsigned end)
{
	return SIM_OWNER(p - world.pair, p->rounds, end);
}

/* An end's @n-th of a kind. */
static inline bool does_session_world_happen(const struct end *e, enum sim_event kind, unsigned n,
					     double p)
{
	return sim_happens(kind, pair_name(e->pair, e->id), n, p);
}

/* ---- session_model.c ---- */
/* What message or Write @n of @e holds. */
const uint8_t *model_octets(const struct end *e, unsigned n, bool write);
/* It is to be sent: nobody may write it until that has been done. */
void model_to_send(struct end *e, unsigned tx);
/* Memory of which the library has no right to know any more: whoever reads it is found out. */
void model_scribble(struct end *e, unsigned tx);
void model_completion(const struct ddps_wc *wc);
void model_event(struct end *e, const struct ddps_event *ev);
/* All has been fetched: nothing may be missing. */
void model_final(struct end *e);
/* Is anything not done that its user has asked for?  Silent ones complete by nothing. */
bool model_waits(const struct end *e);
/* It did not end in order, and rightly so, perhaps: the kernel's SCTP says that all has arrived of an association, not of
 * a session.  Where another session takes the association along before that, one that has ended may have lost something. */
bool model_doubts(const struct end *e);
/* Both ends have had their end. */
void model_pair(struct pair *p);

/* The library may write again what nobody might: it has not been written meanwhile. */
void model_lend(struct end *e, const struct wr *w);

/* ---- session_hosts.c ---- */
/* A line of a context's log, with the time and the host. */
void session_log(void *user, enum ddps_log_level level, const char *facility, const char *text);

/* ---- session_trouble.c ---- */
/* A context has its listeners; it ends. */
void dtls_begin(struct ddps_ctx *ctx);
void dtls_end(const struct ddps_ctx *ctx);
/* In the plain world. */
void trouble(void);

/* ---- session_stuck.c ---- */
bool stuck_world(uint64_t seed, struct sim_tally *t);
bool bulk_world(uint64_t seed, struct sim_tally *t);
bool crowd_world(uint64_t seed, struct sim_tally *t);
bool brief_world(uint64_t seed, struct sim_tally *t);
/* Recounts what the context of @host counts of associations over SCTP. */
void counts_check(unsigned host, const struct ddps_ctx *ctx);
bool mixed_world(uint64_t seed, struct sim_tally *t);
bool ends_world(uint64_t seed, struct sim_tally *t);

/* ---- session_lies.c ---- */
void lies_begin(unsigned hosts);

/* ---- session_user.c ---- */
void user_begin(struct end *e);
void user_connect(struct end *e);
void user_answer(struct end *e);
/* Goes on with its program. */
void user_turn(struct end *e);
void user_free(struct end *e);
/* A host posts what is not posted to its shared queue. */
void user_share(unsigned host);
void user_request(unsigned host, const struct ddps_event *ev);

/* ---- session_hosts.c: wires of all worlds ---- */

/* Where @host listens in this world: for what is TCP there, or for SCTP. */
void sim_uri(char *uri, size_t len, unsigned host, bool tcp);
/* ddps_ctx_new with what that needs. */
int sim_ctx_new(struct ddps_ctx **ctx, struct ddps_ctx_attr *attr);

/* ---- session_hosts.c: the plain world's ---- */
void host_new(unsigned i);
/* @over: its sessions have ended, so what they took of the shared queue is known. */
void host_free(unsigned i, bool over);
void host_listen(struct host *h, unsigned i, bool tcp);
/* Requests that the program holds outlive it. */
void host_listen_no_more(struct host *h, unsigned i, bool tcp);
void host_fetch_events(unsigned i);
/* Its completions.  false: there was none. */
bool host_fetch(unsigned i);
/* One moment of a host: all that is to be done then, and what its users look at. */
void host_turn(unsigned i);

/* ---- session_hosts.c, too: its pairs ---- */
/* false: nothing of it is left to do. */
bool pair_turn(struct pair *p);
/* Before a world that is played on either wire, and after it: what users saw is the same. */
void pairs_forget(void);
void pairs_same_on_both(struct sim_tally *t);

#endif
