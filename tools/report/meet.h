/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_MEET_H
#define SESSCTL_MEET_H
/* Threads that wait for each other, again and again, unless one of them fails. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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
