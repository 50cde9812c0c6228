/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks, sleeps and wake-ups of threads that run one at a time: calls come here by the linker's --wrap. */
#include "sched/sched.h"
#include "sim/kern.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define SEC 1000000000ull

struct lock {
	void *mutex;
	struct thread *owner;
};

static struct lock lock[64];
static uint64_t waits;		    /* for locks, of all threads */
static __thread uint64_t own_waits; /* of this one */

/* ---- locks ---- */

static struct lock *lock_of(void *mutex)
{
	struct lock *l = lock, *unused = NULL;

	for (; l < lock + sizeof lock / sizeof *lock; l++) {
		if (l->mutex == mutex)
			return l;
		if (!l->mutex && !unused)
			unused = l;
	}
	if (!unused)
		abort();
	*unused = (struct lock){ .mutex = mutex };
	return unused;
}

static bool is_free(void *arg)
{
	return !lock_of(arg)->owner;
}

static bool await_lock(void *mutex, uint64_t until)
{
	if (is_free(mutex))
		return true;
	waits++;
	own_waits++;
	return sched_block(is_free, mutex, until);
}

uint64_t sched_others_waited(void)
{
	return waits - own_waits;
}

/* NULL: whenever that may be. */
static uint64_t when(const struct timespec *at)
{
	return at ? (uint64_t)at->tv_sec * SEC + (uint64_t)at->tv_nsec : UINT64_MAX;
}

int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t c, const struct timespec *at);
int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t c, const struct timespec *at)
{
	(void)c;
	sched_point();
	if (!await_lock(m, when(at)))
		return ETIMEDOUT;
	lock_of(m)->owner = sched_current;
	return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	return __wrap_pthread_mutex_clocklock(m, 0, NULL);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
	sched_point();
	if (!is_free(m))
		return EBUSY;
	lock_of(m)->owner = sched_current;
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	struct lock *l = lock_of(m);

	if (l->owner != sched_current) {
		fprintf(stderr, "a lock is given back by somebody who has not got it\n");
		abort();
	}
	l->mutex = NULL;
	l->owner = NULL;
	sched_released();
	return 0;
}

/* ---- sleeps and wake-ups ---- */

struct sleeper {
	struct sleeper *next;
	const void *on;
	bool woken;
};

static struct sleeper *sleepers;

void sched_calls_start(void)
{
	memset(lock, 0, sizeof lock);
	sleepers = NULL;
}

static bool awake(void *arg)
{
	return ((struct sleeper *)arg)->woken;
}

static bool sleep_on(const void *on, uint64_t until)
{
	struct sleeper s = { .next = sleepers, .on = on }, **p = &sleepers;
	bool woken;

	sleepers = &s;
	woken = sched_block(awake, &s, until);
	while (*p != &s)
		p = &(*p)->next;
	*p = s.next;
	return woken;
}

static void wake(const void *on, int n)
{
	for (struct sleeper *s = sleepers; s && n; s = s->next) {
		if (s->on == on && !s->woken) {
			s->woken = true;
			n--;
		}
	}
	sched_point();
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at)
{
	bool woken;

	lock_of(m)->owner = NULL;
	woken = sleep_on(c, when(at));
	await_lock(m, UINT64_MAX);
	lock_of(m)->owner = sched_current;
	return woken ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				  const struct timespec *at);
int __wrap_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				  const struct timespec *at)
{
	(void)clock; /* there is one */
	return __wrap_pthread_cond_timedwait(c, m, at);
}

int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	return __wrap_pthread_cond_timedwait(c, m, NULL);
}

int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
	wake(c, 1);
	return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *c);
int __wrap_pthread_cond_broadcast(pthread_cond_t *c)
{
	wake(c, INT_MAX);
	return 0;
}

static bool is_never_ready(void *arg)
{
	(void)arg;
	return false;
}

uint64_t sched_yield_ns = SCHED_YIELD_NS;

/* Whoever yields waits for somebody else to do something. */
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	sched_block(is_never_ready, NULL, kern.now + sched_yield_ns);
	return 0;
}

int __wrap_pause(void);
int __wrap_pause(void)
{
	sched_block(is_never_ready, NULL, UINT64_MAX);
	errno = EINTR;
	return -1;
}

/* The one that the library calls by number: futex. */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	const struct timespec *at;
	uint32_t *word;
	va_list ap;
	int op, val;

	va_start(ap, number);
	word = va_arg(ap, uint32_t *);
	op = va_arg(ap, int);
	val = va_arg(ap, int);
	at = va_arg(ap, const struct timespec *);
	va_end(ap);
	if (number != SYS_futex)
		abort();
	if ((op & FUTEX_CMD_MASK) == FUTEX_WAKE) {
		wake(word, val);
		return 0;
	}
	sched_point();
	if (__atomic_load_n(word, __ATOMIC_RELAXED) != (uint32_t)val)
		errno = EAGAIN;
	else if (sleep_on(word, when(at)))
		return 0;
	else
		errno = ETIMEDOUT;
	return -1;
}
