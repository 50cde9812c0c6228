/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_SESSION_CROWD_H
#define SIM_SESSION_CROWD_H
/*
 * Many programs, several of an address, call one that listens.
 *
 * session_crowd.c		what happens
 * session_crowd_call.c	a call, from its request to its end, and what may be seen of it
 */
#include "sim/session_world.h"

#define CALLS	     96u
#define PROGRAMS     6u /* the first listens */
#define WORDS	     160u
#define PIECE	     65536u
#define DEPTH	     300u
#define SHARED_RECVS 64u

enum kind {
	REJECTED, /* with a few words */
	WORKS,	  /* a few Writes each way */
	HELD,	  /* it sends what no receive is posted for */
	KINDS
};
enum phase { NOBODY, ASKED, THERE, LEFT };

struct call;
struct leg {
	struct call *call;
	unsigned id, program; /* 0: of whoever asks */
	struct ddps_ep *ep;
	bool there, over;
	unsigned posted, done;
};

struct call {
	struct leg leg[2];
	uint32_t number;
	enum kind kind;
	enum phase phase;
	uint64_t until; /* the step is over by then */
	unsigned sends, writes;
	uint32_t piece; /* octets of a Send */
	bool stalls;	/* so it shares no association */
	bool lost;	/* its program was killed: whatever becomes of it */
	struct ddps_request *req;
	uint8_t words[WORDS];
	size_t nwords;
};

struct program {
	unsigned host;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq,
		*seldom; /* seldom: of shared receives, which somebody fetches now and then */
	struct ddps_srq *srq;
	struct ddps_mr *from, *into;
	struct ddps_listener *listener;
	uint64_t naps_until, died;
	bool dead;
};

struct crowd {
	uint64_t rng, soon, late;
	const char *uri; /* how it goes on behind the address */
	unsigned programs, streams;
	uint32_t made; /* calls */
	bool native, naps;
	uint8_t *octets; /* to be sent, and a place for those that come */
	struct call call[CALLS];
	struct program program[PROGRAMS];
};
extern struct crowd crowd;

static inline uint64_t crowd_rnd(uint64_t m)
{
	return sim_below(&crowd.rng, m);
}

static inline struct program *crowd_at(unsigned i)
{
	kern.host = kern.who = crowd.program[i].host;
	kern.program = i;
	return &crowd.program[i];
}

/* NULL: all are in use. */
struct call *crowd_call(unsigned who, enum kind kind, bool stalls);
/* Goes on with it. */
void crowd_goes_on(struct call *c);
/* One of its ends, or both, have enough of it. */
void crowd_leaves(struct call *c);
/* What has happened at a program. */
void crowd_looks(unsigned i);
/* Shared receives are fetched; the first time they are posted. */
void crowd_receives(bool begins);
/* The program is not there any more. */
void crowd_lose(unsigned program);

#endif
