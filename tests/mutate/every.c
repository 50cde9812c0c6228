/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays the unit tests against each mutation that is linked in (every.py), one at a time.  First each test
 * runs without a mutation, and what functions it enters is kept: a mutation is shown to the tests that
 * enter its function, those that noticed one there before first.  A test runs in a process of its own.
 *
 * EVERY_LONG=1 in the environment: tests that take long, too.
 * usage: unit-every JOBS [SUITE-PREFIX...] <TABLE	lines: number of a mutation, number of its function
 * A line for each: "number noticed suite/name", or "number survived", with how many tests ran.
 */
#include "cross/criterion/criterion.h"
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define IS_LEAKING() __lsan_do_recoverable_leak_check()
#define LIMIT_MEMORY false
#else
#define IS_LEAKING() false
#define LIMIT_MEMORY true
#endif

#define FUNCTIONS 4096
#define TESTS	  8192
#define MUTATIONS 65536
#define MEMORY	  (8ull << 30)
/* What a mutation may add: it is noticed by its end, not by its speed. */
#define CPU_SPARE_US 500000u
#define SECONDS	     5u
#define AT_ONCE	     4u /* times as many as there are processors: some tests only wait */
/* Longer tests would take most of the time, and notice little: us of CPU, and of time */
#define LONGEST_US 200000u
#define WAITS_US   1500000u

/* every.py puts these into the copies of the sources, and this file with them. */
extern int ddps_mutation;
extern unsigned char *ddps_entered;

/* tests/unit/mem_fixture.h, where that is linked in */
long mem_live(void);
__attribute__((weak)) long mem_live(void)
{
	return 0;
}

struct seen {
	const struct cross_test *t;
	unsigned char *enters; /* by number of a function */
	uint64_t cpu_us, us;
	bool left_out;
	long live; /* allocations at its end */
};

static struct seen *tests;
static unsigned ntests;
static atomic_uint *next; /* of what is to be done; shared by those that do it */
/* The tests that enter a function, those that noticed something last in front. */
static uint16_t *order[FUNCTIONS];
static unsigned norder[FUNCTIONS];

static uint64_t us_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void limits(const struct seen *s)
{
	uint64_t cpu = s->cpu_us * 20 + CPU_SPARE_US;
	struct itimerval timer = { .it_value = { .tv_sec = (time_t)(cpu / 1000000),
						 .tv_usec = (suseconds_t)(cpu % 1000000) } };
	struct rlimit memory = { MEMORY, MEMORY }, none = { 0, 0 };

	setitimer(ITIMER_PROF, &timer, NULL);
	alarm(SECONDS + (unsigned)(s->us * 20 / 1000000));
	if (LIMIT_MEMORY)
		setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_CORE, &none);
}

static void run_every_here(struct seen *s, int mutation)
{
	int null = open("/dev/null", O_RDWR);

	munmap(next, sizeof(*next));
	setpgid(0, 0);
	if (!getenv("EVERY_LOUD")) {
		dup2(null, 1);
		dup2(null, 2);
	}
	limits(s);
	ddps_mutation = mutation;
	cross_play(s->t);
	if (!mutation)
		s->live = mem_live();
	/* Only then: to look for what nobody points to takes long. */
	else if (mem_live() > s->live && IS_LEAKING())
		cross_failed = true;
	cross_end(false);
}

/* 0: passed, CROSS_SKIPPED, or it noticed */
static int run_every(struct seen *s, int mutation)
{
	uint64_t from = now_us();
	struct rusage used;
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		run_every_here(s, mutation);
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
		return -1;
	kill(-pid, SIGKILL); /* whatever it left running */
	if (!mutation) {
		s->us = now_us() - from;
		s->cpu_us = us_of(used.ru_utime) + us_of(used.ru_stime);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int by_time(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->us > y->us) - (x->us < y->us);
}

/* One test: whether it can be played, and what it enters. */
static void look_at_one_every(struct seen *s)
{
	int status;

	s->us = s->cpu_us = 2000000;
	memset(ddps_entered, 0, FUNCTIONS);
	status = s->t->disabled ? CROSS_SKIPPED : run_every(s, 0);
	s->left_out = status != 0;
	memcpy(s->enters, ddps_entered, FUNCTIONS);
	if (status)
		fprintf(stderr, "# left out: %s/%s, status %d\n", s->t->suite, s->t->name, status);
	else if (getenv("EVERY_LOUD"))
		fprintf(stderr, "# %s/%s: %u us of CPU, %u us\n", s->t->suite, s->t->name,
			(unsigned)s->cpu_us, (unsigned)s->us);
}

static void *shared(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* @fn with each of @n, by @jobs processes. */
static void each(unsigned n, unsigned jobs, void (*fn)(unsigned))
{
	next = shared(sizeof(*next));
	for (unsigned j = 0; j < jobs; j++) {
		if (fork())
			continue;
		ddps_entered = shared(FUNCTIONS);
		for (unsigned i; (i = atomic_fetch_add(next, 1)) < n;)
			fn(i);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	munmap(next, sizeof(*next));
}

static void look_at_number(unsigned i)
{
	look_at_one_every(&tests[i]);
}

static bool is_long(const struct seen *s)
{
	return !getenv("EVERY_LONG") && (s->cpu_us > LONGEST_US || s->us > WAITS_US);
}

static void look_at_cursor(unsigned jobs, char **prefix)
{
	unsigned char *enters = shared(TESTS * FUNCTIONS);
	struct seen *seen = shared(TESTS * sizeof(*seen));

	tests = seen;
	for (const struct cross_test *t = cross_tests; t && ntests < TESTS; t = t->next) {
		if (!cross_is_wanted(t, prefix))
			continue;
		tests[ntests].t = t;
		tests[ntests].enters = enters + ntests * FUNCTIONS;
		ntests++;
	}
	each(ntests, jobs, look_at_number);
	qsort(tests, ntests, sizeof(tests[0]), by_time);
	for (unsigned f = 0; f < FUNCTIONS; f++) {
		order[f] = malloc(sizeof(*order[f]) * ntests);
		for (unsigned i = 0; i < ntests; i++) {
			if (tests[i].enters[f] && !tests[i].left_out && !is_long(&tests[i]))
				order[f][norder[f]++] = (uint16_t)i;
		}
	}
	/* From now on it is each process's own: a mutation may write anywhere. */
	tests = malloc(TESTS * sizeof(*tests));
	memcpy(tests, seen, TESTS * sizeof(*tests));
	munmap(seen, TESTS * sizeof(*seen));
	munmap(enters, TESTS * FUNCTIONS);
}

static void say_every(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(1, line, (size_t)n) != n)
		_exit(2);
}

static void judge_every(int mutation, unsigned f)
{
	for (unsigned i = 0; i < norder[f]; i++) {
		uint16_t at = order[f][i];
		int status = run_every(&tests[at], mutation);

		if (!status || status == CROSS_SKIPPED)
			continue;
		memmove(order[f] + 1, order[f], i * sizeof(*order[f]));
		order[f][0] = at;
		say_every("%d noticed %s/%s %d\n", mutation, tests[at].t->suite, tests[at].t->name,
			  status);
		return;
	}
	say_every("%d survived %u\n", mutation, norder[f]);
}

static int what[MUTATIONS][2];

static void judge_number(unsigned i)
{
	judge_every(what[i][0], (unsigned)what[i][1]);
}

int main(int argc, char **argv)
{
	unsigned n = 0, jobs = argc > 1 ? (unsigned)atoi(argv[1]) : 1;

	while (n < MUTATIONS && scanf("%d %d", &what[n][0], &what[n][1]) == 2)
		n++;
	look_at_cursor(jobs, argv + (argc > 1 ? 2 : 1));
	fprintf(stderr, "# %u tests, %u mutations\n", ntests, n);
	if (ntests == TESTS || n == MUTATIONS) {
		fprintf(stderr, "unit-every: more than there is room for: TESTS, MUTATIONS\n");
		return 2;
	}
	each(n, jobs * AT_ONCE, judge_number);
	return 0;
}
