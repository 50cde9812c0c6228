/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCHED_SIDES_H
#define SCHED_SIDES_H
/*
 * Two hosts; sessions from the peer's context to the one that threads share.
 */
#include "sched/sched.h"
#include <ddpsess/ddpsess.h>
#include <stddef.h>

#define EPS	3u
#define LEN	64u
#define WAIT_MS 10000
#define SOON	900000u	  /* ns of simulated time, in which all that is sent has arrived */
#define ARRIVE	10000000u /* everything that is under way does, and nobody looks */

struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq[EPS];
	struct ddps_ep *ep[EPS];
	struct ddps_mr *mr;
	unsigned up;
};

extern struct side own, peer;
extern uint8_t buf[2][EPS][LEN];
extern uint64_t begun;
extern const char *wrong;     /* the first thing that was */
extern const char *side_wire; /* of the sessions: tcp, tls or sctps */

#define want(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond) && !wrong)                                                             \
			wrong = #cond;                                                             \
	} while (0)

#define RUN(...)                                                                                   \
	do {                                                                                       \
		static void (*const body[])(void) = { __VA_ARGS__ };                               \
		sched_run(body, sizeof body / sizeof *body);                                       \
	} while (0)

void let_pass(uint64_t ns);
/* Sessions are up and have receives. */
void make_as(bool thread, bool gather);
void make(bool thread);
void send_to(unsigned i);
/* What is sent is in the sockets when the threads begin. */
void messages(unsigned n);
/* Return: what was wrong, or NULL. */
const char *end(void);

/* The sets of worlds: the library, what is freed in it, and the drop-in. */
extern const struct sched_world library_worlds[], free_worlds[], verbs_worlds[];
extern const unsigned library_nworlds, free_nworlds, verbs_nworlds;

#endif
