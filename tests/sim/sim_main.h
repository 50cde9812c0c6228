/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_MAIN_H
#define SIM_MAIN_H
/*
 * Worlds by seed.  A program has one kind of world; this runs as many of them as asked for, in two
 * processes, and says which seed failed and how to play it again.
 *
 *	PROGRAM SEED COUNT [SECONDS]	from SEED on, until COUNT units were done or so long
 *	PROGRAM world SEED [EVENTS]	this one world alone; with no more in it than these
 *	PROGRAM --shrink SEED		... made as small as it goes so that it still fails
 */
#include <stdbool.h>
#include <stdint.h>

#define SIM_TALLIES 40

struct sim_tally {
	uint64_t n[SIM_TALLIES]; /* [0]: the units that are counted */
};

struct sim_kind {
	const char *names[SIM_TALLIES + 1]; /* of tallies, up to NULL */
	unsigned seconds;		    /* the tally of simulated ones, 0: there is none */
	/* Returns false if something was wrong; it has said what. */
	bool (*world)(uint64_t seed, struct sim_tally *t);
};

int sim_main(const struct sim_kind *kind, int argc, char **argv);

/* A generator; the state is any number. */
uint64_t sim_next(uint64_t *state);
/* 0 .. m-1 */
uint64_t sim_below(uint64_t *state, uint64_t m);
bool sim_chance(uint64_t *state, double p);

#endif
