/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CROSSED_WORLD_H
#define CROSSED_WORLD_H
/* Two nodes that ask each other for connections at the same time, by seed. */
#include <stdbool.h>
#include <stdint.h>

enum crossed_kind {
	CROSSED_OURS, /* both have our rules: one connection is left */
	CROSSED_MANY, /* both keep several */
	CROSSED_LINUX, /* the other one accepts every REQ and sends on its own connection alone: two */
};

/* What runs have met, so that a wire that is too kind shows. */
struct crossed_met {
	unsigned lost, refused, withdrawn, closed, broken, restarts;
};

/*
 * One world with short timers and a wild wire that gets calm.  Ends the process, with the seed, if
 * something is wrong.  Return: connections that are left.
 */
unsigned crossed_run(uint64_t seed, enum crossed_kind kind, struct crossed_met *met);

/*
 * One world with the timers of real life (packet lifetime 14, 67 ms) in which both start within ten
 * milliseconds and message number @lost is lost.  No node of ours is without a connection for
 * two seconds.  Return: connections that are left.
 */
unsigned crossed_lose(uint64_t seed, enum crossed_kind kind, unsigned lost,
		      struct crossed_met *met);

/*
 * One world with timers of real life (a CM's answer: 4 s) in which nothing is lost, but nodes restart,
 * and use numbers of queue pairs anew.  The same holds as if a message was lost.
 */
unsigned crossed_restart(uint64_t seed, enum crossed_kind kind, struct crossed_met *met);

#endif
