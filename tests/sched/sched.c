/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the system that run one at a time: each waits for its semaphore, and whoever stops hands
 * on.  The library's calls of pthread and futex come here by the linker's --wrap.
 */
#include "sched/sched.h"
#include "sim/kern.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS	  8u
#define DECISIONS 20000u
#define SEC	  1000000000ull

struct thread {
	pthread_t id;
	sem_t turn;
	void *(*fn)(void *);
	void *arg;
	bool used, done;
	bool (*ready)(void *arg); /* asleep until this */
	void *ready_arg;
	uint64_t until;
	unsigned host;
};

struct lock {
	void *mutex;
	struct thread *owner;
};

/* Who may go on here, and who did: 0 is whoever runs already, as long as he can. */
struct decision {
	uint8_t chosen, of;
	bool preempts; /* every choice but 0 */
};

static struct thread thread[THREADS], *current;
static struct lock lock[64];
static struct decision path[DECISIONS];
static unsigned depth, known, preempted, most;
static bool exploring;
static const struct sched_world *playing;

static void say(const char *why)
{
	printf("not ok sched: %s: %s; again: sched \"%s\" ", playing->name, why, playing->name);
	for (unsigned i = 0; i < depth; i++)
		putchar('0' + path[i].chosen);
	putchar('\n');
}

/* ---- who goes on ---- */

static bool can_run(struct thread *t)
{
	return t->used && !t->done && (!t->ready || t->ready(t->ready_arg) || t->until <= kern.now);
}

static bool time_passes(void)
{
	uint64_t at = kern_next();

	for (unsigned i = 0; i < THREADS; i++)
		if (thread[i].used && !thread[i].done && thread[i].ready && thread[i].until < at)
			at = thread[i].until;
	if (at == UINT64_MAX)
		return false;
	kern_go(at);
	return true;
}

static unsigned enabled(struct thread *list[])
{
	unsigned n = 0;

	if (can_run(current))
		list[n++] = current;
	for (unsigned i = 0; i < THREADS; i++)
		if (&thread[i] != current && can_run(&thread[i]))
			list[n++] = &thread[i];
	return n;
}

static unsigned decide(unsigned n, bool preempts)
{
	struct decision *d = &path[depth];

	if (!exploring || n < 2 || (preempts && preempted == most))
		return 0;
	if (depth == DECISIONS) {
		fprintf(stderr, "too many decisions\n");
		abort();
	}
	if (depth++ == known) {
		*d = (struct decision){ .of = (uint8_t)n, .preempts = preempts };
		known++;
	} else if (!d->of) { /* given by hand */
		d->of = (uint8_t)n;
		d->preempts = preempts;
	} else if (d->of != n || d->preempts != preempts) {
		fprintf(stderr,
			"the same decisions lead elsewhere: the world is not deterministic\n");
		abort();
	}
	preempted += preempts && d->chosen;
	return d->chosen;
}

static void hand_on(struct thread *to)
{
	struct thread *me = current;

	if (to == me)
		return;
	me->host = kern.host;
	current = to;
	kern.host = to->host;
	sem_post(&to->turn);
	if (!me->done)
		while (sem_wait(&me->turn))
			;
}

static void schedule(void)
{
	struct thread *list[THREADS];
	unsigned n;

	while (!(n = enabled(list)))
		if (!time_passes()) {
			say("all threads sleep for ever");
			fflush(stdout);
			_exit(1); /* nobody is left to go on */
		}
	hand_on(list[decide(n, list[0] == current)]);
}

void sched_point(void)
{
	if (exploring)
		schedule();
}

static bool block(bool (*ready)(void *arg), void *arg, uint64_t until)
{
	struct thread *me = current;

	me->ready = ready;
	me->ready_arg = arg;
	me->until = until;
	schedule();
	me->ready = NULL;
	return ready(arg);
}

/* ---- threads ---- */

static void *trampoline(void *arg)
{
	struct thread *t = arg;

	while (sem_wait(&t->turn))
		;
	t->fn(t->arg);
	t->done = true;
	schedule();
	return NULL;
}

int __real_pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	struct thread *t = thread;

	while (t->used)
		if (++t == thread + THREADS)
			return EAGAIN;
	*t = (struct thread){ .used = true, .fn = fn, .arg = arg, .host = kern.host };
	sem_init(&t->turn, 0, 0);
	if (__real_pthread_create(&t->id, a, trampoline, t))
		abort();
	*id = t->id;
	sched_point();
	return 0;
}

static bool finished(void *arg)
{
	return ((struct thread *)arg)->done;
}

int __real_pthread_join(pthread_t id, void **result);
int __wrap_pthread_join(pthread_t id, void **result);
int __wrap_pthread_join(pthread_t id, void **result)
{
	struct thread *t = thread;

	while (!t->used || !pthread_equal(t->id, id))
		t++;
	block(finished, t, UINT64_MAX);
	__real_pthread_join(id, result);
	sem_destroy(&t->turn);
	t->used = false;
	return 0;
}

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

static uint64_t when(const struct timespec *at)
{
	return (uint64_t)at->tv_sec * SEC + (uint64_t)at->tv_nsec;
}

int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t c, const struct timespec *at);
int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t c, const struct timespec *at)
{
	(void)c;
	sched_point();
	if (!is_free(m) && !block(is_free, m, at ? when(at) : UINT64_MAX))
		return ETIMEDOUT;
	lock_of(m)->owner = current;
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
	lock_of(m)->owner = current;
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	struct lock *l = lock_of(m);

	if (l->owner != current) {
		fprintf(stderr, "a lock is given back by somebody who has not got it\n");
		abort();
	}
	l->mutex = NULL;
	l->owner = NULL;
	sched_point();
	return 0;
}

/* ---- sleeps and wake-ups ---- */

struct sleeper {
	struct sleeper *next;
	const void *on;
	bool woken;
};

static struct sleeper *sleepers;

static bool awake(void *arg)
{
	return ((struct sleeper *)arg)->woken;
}

static bool sleep_on(const void *on, uint64_t until)
{
	struct sleeper s = { .next = sleepers, .on = on }, **p = &sleepers;
	bool woken;

	sleepers = &s;
	woken = block(awake, &s, until);
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
	if (!is_free(m))
		block(is_free, m, UINT64_MAX);
	lock_of(m)->owner = current;
	return woken ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
	wake(c, 1);
	return 0;
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
	else if (sleep_on(word, at ? when(at) : UINT64_MAX))
		return 0;
	else
		errno = ETIMEDOUT;
	return -1;
}

/* ---- runs ---- */

static void *call(void *arg)
{
	void (*body)(void);

	memcpy(&body, arg, sizeof body);
	body();
	return NULL;
}

void sched_run(void (*const body[])(void), unsigned n)
{
	pthread_t id[THREADS];

	exploring = true;
	for (unsigned i = 0; i < n; i++)
		__wrap_pthread_create(&id[i], NULL, call, (void *)(uintptr_t)&body[i]);
	for (unsigned i = 0; i < n; i++)
		__wrap_pthread_join(id[i], NULL);
	exploring = false;
}

static const char *one_run(const struct sched_world *w)
{
	kern_block = block;
	depth = preempted = 0;
	playing = w;
	memset(thread, 0, sizeof thread);
	memset(lock, 0, sizeof lock);
	current = &thread[0];
	current->used = true;
	sem_init(&current->turn, 0, 0);
	return w->play();
}

/* The next way to decide: the last decision that has another one left.  false: that was all. */
static bool next_way(void)
{
	for (known = depth; known; known--) {
		struct decision *d = &path[known - 1];

		if (d->chosen + 1 < d->of) {
			d->chosen++;
			return true;
		}
	}
	return false;
}

bool sched_explore(const struct sched_world *w, unsigned preemptions, uint64_t limit)
{
	uint64_t runs = 0;
	unsigned longest = 0;
	const char *why;

	most = preemptions;
	known = 0;
	do {
		why = one_run(w);
		if (why) {
			say(why);
			return false;
		}
		longest = depth > longest ? depth : longest;
	} while (++runs < limit && next_way());
	printf("%s sched: %s: %llu orders with up to %u preemptions, of up to %u decisions\n",
	       runs < limit ? "ok" : "not ok", w->name, (unsigned long long)runs, preemptions,
	       longest);
	if (runs == limit)
		printf("not ok sched: %s: there are more orders\n", w->name);
	return runs < limit;
}

bool sched_again(const struct sched_world *w, const char *decisions)
{
	const char *why;

	most = DECISIONS;
	for (known = 0; decisions[known]; known++)
		path[known] = (struct decision){ .chosen = (uint8_t)(decisions[known] - '0') };
	why = one_run(w);
	if (why)
		say(why);
	return !why;
}
