/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the system that run one at a time: each waits for its semaphore, and whoever stops hands
 * on.  The library's calls of pthread and futex come here and to sched_calls.c by the linker's --wrap.
 */
#include "sched/sched.h"
#include "sim/kern.h"
#include "sim/sim_main.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS	  10u
#define DECISIONS 20000u
#define RARELY	  0.05 /* a thread is stopped where it could go on */
#define SECONDS	  60   /* of a run */

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

/* Who may go on here, and who did: 0 is whoever runs already, as long as he can. */
struct decision {
	uint8_t chosen, of;
	bool preempts; /* every choice but 0 */
};

/* What is known of a run from outside, also if it had a process of its own and that is no more. */
struct run {
	struct decision path[DECISIONS];
	unsigned depth, known, preempted;
	char wrong[256];
};

struct thread *sched_current;
static struct thread thread[THREADS];
static struct run *run;
static unsigned most;
static bool exploring, in_detail, random_order;
static uint64_t random_state;
static const struct sched_world *playing;

static void say_sched(const char *why)
{
	printf("not ok sched: %s: %s; again: sched \"%s\" ", playing->name, why, playing->name);
	for (unsigned i = 0; i < run->depth; i++)
		putchar('0' + run->path[i].chosen);
	putchar('\n');
}

/* Nobody is left to go on. */
_Noreturn static void give_up(const char *why)
{
	if (!playing) {
		fprintf(stderr, "%s\n", why);
	} else if (playing->apart) {
		snprintf(run->wrong, sizeof run->wrong, "%s", why);
	} else {
		say_sched(why);
		fflush(stdout);
	}
	_exit(1);
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

	if (can_run(sched_current))
		list[n++] = sched_current;
	for (unsigned i = 0; i < THREADS; i++)
		if (&thread[i] != sched_current && can_run(&thread[i]))
			list[n++] = &thread[i];
	return n;
}

static unsigned decide(unsigned n, bool preempts)
{
	struct decision *d;

	if (random_order)
		return preempts && !sim_chance(&random_state, RARELY)
			       ? 0
			       : (unsigned)sim_below(&random_state, n);
	if (!exploring || n < 2 || (preempts && run->preempted == most))
		return 0;
	if (run->depth == DECISIONS)
		give_up("too many decisions");
	d = &run->path[run->depth];
	if (run->depth++ == run->known) {
		*d = (struct decision){ .of = (uint8_t)n, .preempts = preempts };
		run->known++;
	} else if (!d->of) { /* given by hand */
		d->of = (uint8_t)n;
		d->preempts = preempts;
	} else if (d->of != n || d->preempts != preempts) {
		give_up("the same decisions lead elsewhere: the world is not deterministic");
	}
	run->preempted += preempts && d->chosen;
	return d->chosen;
}

static void hand_on(struct thread *to)
{
	struct thread *me = sched_current;

	if (to == me)
		return;
	me->host = kern.host;
	sched_current = to;
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
		if (!time_passes())
			give_up("all threads sleep for ever");
	hand_on(list[decide(n, list[0] == sched_current)]);
}

void sched_point(void)
{
	if (exploring)
		schedule();
}

void sched_released(void)
{
	if (in_detail)
		sched_point();
}

bool sched_block(bool (*ready)(void *arg), void *arg, uint64_t until)
{
	struct thread *me = sched_current;

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
	sched_block(finished, t, UINT64_MAX);
	__real_pthread_join(id, result);
	sem_destroy(&t->turn);
	t->used = false;
	return 0;
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

static void begin_threads(void)
{
	kern_block = sched_block;
	memset(thread, 0, sizeof thread);
	sched_calls_start();
	sched_current = &thread[0];
	sched_current->used = true;
	sem_init(&sched_current->turn, 0, 0);
}

static const char *play_sched_world(const struct sched_world *w)
{
	begin_threads();
	return w->play();
}

void sched_at_random(uint64_t seed)
{
	begin_threads();
	random_state = seed;
	exploring = random_order = in_detail = true;
}

/* In a process of its own, which begins like all others and takes with it what the world leaves. */
static const char *play_apart(const struct sched_world *w)
{
	const char *why;
	pid_t child;
	int status;

	run->wrong[0] = '\0';
	fflush(stdout);
	child = fork();
	if (child < 0)
		return "fork() fails";
	if (!child) {
		alarm(SECONDS);
		why = play_sched_world(w);
		if (why)
			snprintf(run->wrong, sizeof run->wrong, "%s", why);
		_exit(why != NULL);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			abort();
	if (WIFSIGNALED(status))
		snprintf(run->wrong, sizeof run->wrong, "signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (status && !run->wrong[0])
		return "exit status";
	return run->wrong[0] ? run->wrong : NULL;
}

static const char *run_sched_once(const struct sched_world *w)
{
	run->depth = run->preempted = 0;
	playing = w;
	return w->apart ? play_apart(w) : play_sched_world(w);
}

/* The next way to decide: the last decision that has another one left.  false: that was all. */
static bool next_way(void)
{
	for (run->known = run->depth; run->known; run->known--) {
		struct decision *d = &run->path[run->known - 1];

		if (d->chosen + 1 < d->of) {
			d->chosen++;
			return true;
		}
	}
	return false;
}

static void begin_sched(void)
{
	run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run == MAP_FAILED)
		abort();
}

bool sched_explore(const struct sched_world *w, unsigned preemptions, bool fine, uint64_t limit,
		   uint64_t *orders)
{
	uint64_t runs = 0;
	unsigned longest = 0;
	const char *why;

	begin_sched();
	most = preemptions;
	in_detail = fine;
	do {
		why = run_sched_once(w);
		if (why) {
			say_sched(why);
			break;
		}
		longest = run->depth > longest ? run->depth : longest;
	} while (++runs < limit && next_way());
	munmap(run, sizeof *run);
	*orders += runs;
	if (why)
		return false;
	printf("%s sched: %s: %llu orders with up to %u preemptions, of up to %u decisions\n",
	       runs < limit ? "ok" : "not ok", w->name, (unsigned long long)runs, preemptions,
	       longest);
	if (runs == limit)
		printf("not ok sched: %s: there are more orders\n", w->name);
	return runs < limit;
}

bool sched_again(const struct sched_world *w, bool fine, const char *decisions)
{
	const char *why;

	begin_sched();
	most = DECISIONS;
	in_detail = fine;
	for (; decisions[run->known] && run->known < DECISIONS; run->known++)
		run->path[run->known] =
			(struct decision){ .chosen = (uint8_t)(decisions[run->known] - '0') };
	why = run_sched_once(w);
	if (why)
		say_sched(why);
	munmap(run, sizeof *run);
	return !why;
}
