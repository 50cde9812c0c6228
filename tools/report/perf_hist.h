/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_PERF_HIST_H
#define SESSCTL_PERF_HIST_H
/*
 * Any number of times in fixed memory: counted in classes that grow with the value, each less
 * than 1/512 of it wide.  The smallest and the largest are kept as they are.
 */
#include <stdint.h>
#include <pthread.h>
#include <stdbool.h>

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

/* Threads that wait for each other, again and again, unless one of them fails. */

struct meet {
	pthread_mutex_t lock;
	pthread_cond_t all;
	unsigned n;	     /* threads */
	unsigned here, gone; /* that wait for the others; that left, for whom nobody waits */
	uint64_t round;
	bool whole; /* nobody had left when the last one ended */
};

#define MEET_INIT(threads)                                                                         \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER, .n = (threads) \
	}

/* Wait until all are here.  Return: whether nobody has left. */
bool meet_all(struct meet *m);

/* Instead of any further meeting: this one has failed. */
void meet_leave(struct meet *m);

#endif
