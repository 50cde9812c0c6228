/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_PERF_HIST_H
#define SESSCTL_PERF_HIST_H
/*
 * Any number of times in fixed memory: counted in classes that grow with the value, each less
 * than 1/512 of it wide.  The smallest and the largest are kept as they are.
 */
#include <stdint.h>

#define HIST_BITS    9u
#define HIST_SUB     (1u << HIST_BITS)		       /* classes for each power of two */
#define HIST_CLASSES (HIST_SUB * (64 - HIST_BITS + 1)) /* for all of 64 bits */

struct hist {
	uint64_t count, min, max;
	uint64_t n[HIST_CLASSES];
};

void hist_reset(struct hist *h);
/* Add what @more has. */
void hist_merge(struct hist *h, const struct hist *more);
/* @times times the value @v. */
void hist_add(struct hist *h, uint64_t v, uint64_t times);
/* The value that @percent of all do not exceed (nearest rank, top of its class); 0 if none. */
uint64_t hist_percentile(const struct hist *h, double percent);

#endif
