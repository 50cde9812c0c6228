/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of random calls; each has a process of its own, since the drop-in reads its wire once. */
#include "stress/run.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NTHREADS      4
#define ROUND_MS      1000
#define STUCK_MS      30000 /* no call that is made here may take that long */
#define CHILD_SECONDS 20    /* less, so that none is left behind */

/* What all rounds came to, in memory that they share. */
struct totals {
	unsigned long long calls, connections;
};

static const struct stress *test;
static struct stress_worker workers[NTHREADS];
static uint64_t current_seed;
static bool stop; /* atomic */

void stress_check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	printf("not ok stress-%s seed %llu: line %d: %s (%s)\n", test->name,
	       (unsigned long long)current_seed, line, what, strerror(errno));
	fflush(stdout);
	abort();
}

uint64_t stress_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* xorshift64* */
uint32_t stress_draw(uint64_t *rng, uint32_t n)
{
	*rng ^= *rng >> 12;
	*rng ^= *rng << 25;
	*rng ^= *rng >> 27;
	return (uint32_t)(*rng * 2685821657736338717u >> 33) % n;
}

void stress_signal(struct stress_worker *t)
{
	(void)t;
	kill(getpid(), SIGUSR1);
}

void stress_fork(struct stress_worker *t)
{
	int status = -1;
	pid_t pid;

	if (stress_draw(&t->rng, 20))
		return;
	pid = fork();
	if (!pid) {
		alarm(CHILD_SECONDS);
		_exit(test->child());
	}
	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	CHECK(!status);
}

static void *run_stress_worker(void *arg)
{
	struct stress_worker *t = arg;
	unsigned all = 0;

	for (unsigned i = 0; i < test->nops; i++)
		all += test->ops[i].weight;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		const struct stress_op *op = test->ops;
		unsigned at = stress_draw(&t->rng, all);

		for (; at >= op->weight; op++)
			at -= op->weight;
		__atomic_store_n(&t->what, op->name, __ATOMIC_RELAXED);
		op->fn(t);
		__atomic_add_fetch(&t->calls, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&t->what, NULL, __ATOMIC_RELAXED);
	return NULL;
}

/* ---- rounds ---- */

static const struct timespec step = { .tv_nsec = 20000000 };

/* To be joined soon; one that does not come back from its call is stuck. */
static void await_worker_end(const struct stress_worker *t)
{
	const uint64_t until = stress_ms() + STUCK_MS;
	const char *what;

	while ((what = __atomic_load_n(&t->what, __ATOMIC_RELAXED))) {
		if (stress_ms() >= until) {
			printf("# a thread does not come back from %s\n", what);
			CHECK(false && "a thread is stuck");
		}
		nanosleep(&step, NULL);
	}
}

static void one_round(uint64_t seed, struct totals *totals)
{
	uint64_t until;

	test->open(seed);
	for (unsigned i = 0; i < NTHREADS; i++) {
		workers[i] = (struct stress_worker){ .rng = seed * NTHREADS + i + 1,
						     .what = "nothing yet" };
		CHECK(!pthread_create(&workers[i].thread, NULL, run_stress_worker, &workers[i]));
	}
	until = stress_ms() + ROUND_MS;
	while (stress_ms() < until)
		nanosleep(&step, NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < NTHREADS; i++) {
		await_worker_end(&workers[i]);
		pthread_join(workers[i].thread, NULL);
		totals->calls += workers[i].calls;
	}
	totals->connections += test->close();
}

/* The child's end too must come, whatever it hangs in. */
static void await_round(pid_t pid)
{
	const uint64_t until = stress_ms() + ROUND_MS + 2 * STUCK_MS;
	int status = -1;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (stress_ms() >= until) {
			kill(pid, SIGABRT);
			CHECK(false && "a round does not end");
		}
		nanosleep(&step, NULL);
	}
	CHECK(!status);
}

static void ignore_run_signal(int sig)
{
	(void)sig;
}

int stress_main(const struct stress *s, int argc, char **argv)
{
	struct sigaction act = { .sa_handler = ignore_run_signal };
	const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	const uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 0) : 10;
	const uint64_t until = stress_ms() + seconds * 1000;
	struct totals *totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	test = s;
	current_seed = seed;
	CHECK(totals != MAP_FAILED);
	sigaction(SIGUSR1, &act, NULL);
	do {
		const pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			one_round(current_seed, totals);
#ifdef __SANITIZE_THREAD__ /* see tests/tsan/main.c */
			_exit(0);
#endif
			return 0;
		}
		await_round(pid);
		current_seed++;
	} while (stress_ms() < until);
	/* Else it was no test.  Of one round it may be so, where the machine is busy. */
	CHECK(totals->calls > 0 && totals->connections > 0);
	printf("ok stress-%s: %llu rounds from seed %llu, %llu calls, %llu connections\n", s->name,
	       (unsigned long long)(current_seed - seed), (unsigned long long)seed, totals->calls,
	       totals->connections);
	return 0;
}
