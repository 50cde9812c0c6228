/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SYSTEM_LOCK_H
#define DDPS_SYSTEM_LOCK_H
/*
 * Locks of this library.  A thread that holds one is not cancelled: sockets are used with the lock held,
 * and each such call is a cancellation point, so the lock would stay taken for ever.  A request to cancel
 * the thread waits until it has left the library.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Of the thread: how many locks it holds, and its state before the first. */
struct ddps_held {
	unsigned depth;
	int before;
};

extern __thread struct ddps_held ddps_held
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Until ddps_uncancellable_end(), which may be called by a function above: calls nest. */
static inline void ddps_uncancellable(void)
{
	int was;

	if (ddps_held.depth) {
		ddps_held.depth++;
		return;
	}
	/* In this order: a signal handler may lock, too, at any place. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	ddps_held.depth = 1;
	atomic_signal_fence(memory_order_seq_cst);
	ddps_held.before = was;
}

static inline void ddps_uncancellable_end(void)
{
	int before = ddps_held.before;

	atomic_signal_fence(memory_order_seq_cst);
	if (!--ddps_held.depth)
		pthread_setcancelstate(before, NULL);
}

static inline void ddps_lock(pthread_mutex_t *m)
{
	ddps_uncancellable();
	pthread_mutex_lock(m);
}

/* As the functions of pthread.h, 0: the lock is held. */
static inline int ddps_trylock(pthread_mutex_t *m)
{
	int err;

	ddps_uncancellable();
	err = pthread_mutex_trylock(m);
	if (err)
		ddps_uncancellable_end();
	return err;
}

#ifdef __GLIBC__ /* elsewhere there is no lock that waits by this clock */
static inline int ddps_lock_until(pthread_mutex_t *m, const struct timespec *monotonic)
{
	int err;

	ddps_uncancellable();
	err = pthread_mutex_clocklock(m, CLOCK_MONOTONIC, monotonic);
	if (err)
		ddps_uncancellable_end();
	return err;
}
#endif

static inline void ddps_unlock(pthread_mutex_t *m)
{
	pthread_mutex_unlock(m);
	ddps_uncancellable_end();
}

#endif
