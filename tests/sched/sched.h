/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCHED_H
#define SCHED_H
/*
 * Threads in the simulated kernel, one at a time.  At each point where threads can meet (a lock, a
 * wake-up, a sleep) somebody decides who goes on.  sched_explore() plays a world again and again,
 * until it has decided in every way: all orders with at most so many preemptions.
 */
#include <stdbool.h>
#include <stdint.h>

struct sched_world {
	const char *name;
	/* Makes the world, runs its threads by sched_run(), looks at what has come of it.  Returns what is
	 * wrong, or NULL. */
	const char *(*play)(void);
	/* Each run has a process of its own: it leaves something behind that only a process's end frees. */
	bool apart;
	bool large; /* for a deep search only */
};

/* The bodies run as threads of their own until all have returned. */
void sched_run(void (*const body[])(void), unsigned n);

/* A thread's own question: can the order matter here? */
void sched_point(void);
/* How long others run while a thread yields. */
#define SCHED_YIELD_NS 1000u
extern uint64_t sched_yield_ns;
/* How often other threads than this one had to wait for a lock, so far. */
uint64_t sched_others_waited(void);

/*
 * @preemptions: how many at most in a run; @limit: of runs; @fine: threads may be stopped where they have
 * given a lock back, too, and not only where they take one, wake, sleep or ask
 * @orders: one is added for each run
 * Returns false if something was wrong; it has said what, and the decisions that lead there.
 */
bool sched_explore(const struct sched_world *w, unsigned preemptions, bool fine, uint64_t limit,
		   uint64_t *orders);
/* One run, by the decisions that a failure has printed. */
bool sched_again(const struct sched_world *w, bool fine, const char *decisions);

/* Instead of all orders, one by @seed, from here to the end of the process. */
void sched_at_random(uint64_t seed);

/* Inside the scheduler: sched.c (who goes on, runs), sched_calls.c (what threads meet at). */

struct thread;
extern struct thread *sched_current;
/* Asleep until @ready or, then false, until then. */
bool sched_block(bool (*ready)(void *arg), void *arg, uint64_t until);
/* A lock was given back. */
void sched_released(void);
/* A new run: nobody holds a lock, nobody sleeps. */
void sched_calls_start(void);

#endif
