/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_STRESS_RUN_H
#define DDPS_STRESS_RUN_H
/*
 * What the stress tests share: rounds of a second each, in which threads make calls drawn by a seed.
 * A thread that does not come back from a call is a failure, and so is a round that does not end.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define STRESS_LOST_MS 10000 /* a ping takes so long only if its wake-up was lost */

#define CHECK(cond) stress_check(cond, #cond, __LINE__)

struct stress_worker {
	pthread_t thread;
	uint64_t rng;
	unsigned calls;	  /* atomic */
	const char *what; /* atomic: the call under way; NULL: it has ended */
};

struct stress_op {
	const char *name;
	void (*fn)(struct stress_worker *t);
	unsigned weight;
};

struct stress {
	const char *name;
	const struct stress_op *ops;
	unsigned nops;
	void (*open)(uint64_t seed);
	/* Returns how many connections began next to those for pings. */
	unsigned (*close)(void);
	int (*child)(void); /* in a child of fork; 0: all is as it should be there */
};

/* usage: PROGRAM SEED SECONDS	of seeds from SEED on; the seed of a round that fails is printed */
int stress_main(const struct stress *s, int argc, char **argv);
/* Says what failed, of which seed, and aborts. */
void stress_check(bool ok, const char *what, int line);
uint64_t stress_ms(void); /* monotonic */
/* 0..n-1 */
uint32_t stress_draw(uint64_t *rng, uint32_t n);

/* Both have these: a signal comes, which none of the library's threads takes; the process forks, now
 * and then. */
void stress_signal(struct stress_worker *t);
void stress_fork(struct stress_worker *t);

#endif
