/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bit for each descriptor.  It is the process that forks and not a context, hence the table is the
 * process's; and what the child finds must be whole whenever the fork was, hence no lock.
 */
#include "common/own.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define BITS   64
#define FD_MAX (1 << 20) /* Linux's own default limit; what is above is not written down */

static uint64_t owned[FD_MAX / BITS];
static int top; /* one above the highest there ever was */
static bool forked;

/* Only this thread exists, and only what may be called in a signal handler is called. */
static void close_copies(void)
{
	for (int fd = 0; fd < top; fd++)
		if (owned[fd / BITS] & UINT64_C(1) << fd % BITS)
			close(fd);
	for (int i = 0; i < (top + BITS - 1) / BITS; i++)
		owned[i] = 0;
	top = 0;
	__atomic_store_n(&forked, false,
			 __ATOMIC_RELAXED); /* what is opened from now on is its own */
}

static void note_fork(void)
{
	__atomic_store_n(&forked, true, __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
	/* Without memory for that children are on their own. */
	if (pthread_atfork(note_fork, NULL, close_copies))
		note_fork();
}

bool ddps_own_forked(void)
{
	return __atomic_load_n(&forked, __ATOMIC_RELAXED);
}

int ddps_own(int fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int was = __atomic_load_n(&top, __ATOMIC_RELAXED);

	if (fd < 0 || fd >= FD_MAX)
		return fd;
	pthread_once(&once, watch_forks);
	__atomic_fetch_or(&owned[fd / BITS], UINT64_C(1) << fd % BITS, __ATOMIC_RELAXED);
	while (was <= fd && !__atomic_compare_exchange_n(&top, &was, fd + 1, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return fd;
}

void ddps_own_close(int fd)
{
	int keep = errno;

	/* Before: once closed the number may be somebody else's. */
	if (fd >= 0 && fd < FD_MAX)
		__atomic_fetch_and(&owned[fd / BITS], ~(UINT64_C(1) << fd % BITS),
				   __ATOMIC_RELAXED);
	close(fd);
	errno = keep;
}
