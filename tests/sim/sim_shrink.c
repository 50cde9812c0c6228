/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world that fails, made small: of what happened in it, one part after another is left out, and stays
 * out if the same check still fails.  Each try is a process of its own.
 */
#include "sim/sim_event.h"
#include "sim/sim_main.h"
#include "support/clock.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST	 (1u << 20) /* events of a world */
#define PATIENCE 20	    /* seconds of CPU of one try */

struct shrink {
	const struct sim_kind *kind;
	uint64_t seed;
	unsigned failed; /* how it fails: a check, or a status of the process */
	unsigned tries;
	time_t until;
	uint64_t *names, *try; /* what happens; what a try keeps of it */
	size_t n;
};

/* Shared with the process that tries. */
struct result {
	struct sim_tally tally;
	size_t nlog;
	unsigned failed;
	uint64_t log[MOST];
};
static struct result *result;

static void in_child(struct shrink *s, size_t keep, bool all, bool aloud)
{
	const struct itimerval patience = { .it_value.tv_sec = PATIENCE };
	int null = open("/dev/null", O_WRONLY);

	if (!aloud && (dup2(null, 2) < 0 || dup2(null, 1) < 0))
		_exit(2);
	setitimer(ITIMER_VIRTUAL, &patience, NULL);
	sim_events.limited = !all;
	sim_events.only = s->try;
	sim_events.nonly = keep;
	sim_events.log = result->log;
	sim_events.max_log = MOST;
	s->kind->world(s->seed, &result->tally);
	result->nlog = sim_events.nlog;
	result->failed = sim_events.failed;
	_exit(0);
}

/* How the world fails of which @keep names in s->try remain; 0: it does not. */
static unsigned attempt(struct shrink *s, size_t keep, bool all, bool aloud)
{
	int status;
	pid_t pid;

	result->nlog = 0;
	result->failed = 0;
	s->tries++;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return 0;
	if (!pid)
		in_child(s, keep, all, aloud);
	waitpid(pid, &status, 0);
	return status ? 0x10000u + (unsigned)status : result->failed;
}

static size_t sorted(uint64_t *names, size_t n)
{
	size_t k = 0;

	qsort(names, n, sizeof *names, compare_u64);
	for (size_t i = 0; i < n; i++)
		if (!k || names[k - 1] != names[i])
			names[k++] = names[i];
	return k;
}

/* Leaves out those that are in s->names and not in s->try, if it fails without them. */
static bool shrink_without(struct shrink *s, size_t keep)
{
	if (keep == s->n || attempt(s, keep, false, false) != s->failed)
		return false;
	/* A world that a signal ends has not told what happened. */
	if (result->nlog) {
		memcpy(s->names, result->log, result->nlog * sizeof *s->names);
		s->n = sorted(s->names, result->nlog);
	} else {
		memcpy(s->names, s->try, keep * sizeof *s->names);
		s->n = keep;
	}
	return true;
}

static bool late(const struct shrink *s)
{
	return time(NULL) >= s->until;
}

/* Everything of one kind, of one owner, ... */
static void by_group(struct shrink *s, unsigned shift)
{
	for (size_t i = s->n; i-- && s->n && !late(s);) {
		uint64_t group;
		size_t keep = 0;

		if (i >= s->n)
			i = s->n - 1;
		group = s->names[i] >> shift;
		for (size_t k = 0; k < s->n; k++)
			if (s->names[k] >> shift != group)
				s->try[keep++] = s->names[k];
		shrink_without(s, keep);
		while (i && i < s->n && s->names[i - 1] >> shift == group)
			i--;
	}
}

static bool by_part(struct shrink *s, size_t part)
{
	bool any = false;

	for (size_t at = s->n; at && !late(s);) {
		size_t from = at > part ? at - part : 0;

		memcpy(s->try, s->names, from * sizeof *s->try);
		memcpy(s->try + from, s->names + at, (s->n - at) * sizeof *s->try);
		any |= shrink_without(s, s->n - (at - from));
		at = from < s->n ? from : s->n;
	}
	return any;
}

static void reduce(struct shrink *s)
{
	bool any = true;

	by_group(s, 56);
	by_group(s, 48);
	by_group(s, 40);
	for (size_t part = s->n / 2; part > 1; part /= 2)
		by_part(s, part);
	while (any && !late(s))
		any = by_part(s, 1);
}

/* How it fails; 0: it does not.  What happens then is in s->names. */
static unsigned get_first_sim_shrink(struct shrink *s)
{
	s->failed = attempt(s, 0, true, true);
	/* A process that died has not said how much it wrote: no name is 0. */
	s->n = result->nlog;
	while (!result->nlog && s->n < MOST && result->log[s->n])
		s->n++;
	memcpy(s->names, result->log, s->n * sizeof *s->names);
	s->n = sorted(s->names, s->n);
	return s->failed;
}

static bool begin_sim_shrink(struct shrink *s, int seconds)
{
	const int prot = PROT_READ | PROT_WRITE;

	s->until = time(NULL) + seconds;
	result = mmap(NULL, sizeof *result, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->names =
		mmap(NULL, 2 * MOST * sizeof *s->names, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->try = s->names + MOST;
	return result != MAP_FAILED && s->names != MAP_FAILED;
}

static void finish_sim_shrink(struct shrink *s)
{
	munmap(result, sizeof *result);
	munmap(s->names, 2 * MOST * sizeof *s->names);
}

size_t sim_smallest(const struct sim_kind *kind, uint64_t seed, uint64_t *names, size_t max)
{
	struct shrink s = { .kind = kind, .seed = seed };
	size_t n = SIZE_MAX;

	if (!begin_sim_shrink(&s, 60))
		return n;
	if (get_first_sim_shrink(&s)) {
		reduce(&s);
		n = s.n;
		/* names may be NULL where max is 0 (C11 7.1.4) */
		if (n && max)
			memcpy(names, s.names, (n < max ? n : max) * sizeof *names);
	}
	finish_sim_shrink(&s);
	return n;
}

int sim_shrink(const struct sim_kind *kind, const char *program, uint64_t seed)
{
	const char *limit = getenv("SIM_SHRINK_SECONDS");
	struct shrink s = { .kind = kind, .seed = seed };
	size_t was;

	if (!begin_sim_shrink(&s, limit ? atoi(limit) : 120))
		return 2;
	if (!get_first_sim_shrink(&s)) {
		printf("ok %s world %" PRIu64 ": nothing fails\n", program, seed);
		return 2;
	}
	was = s.n;
	reduce(&s);
	memcpy(s.try, s.names, s.n * sizeof *s.names);
	attempt(&s, s.n, false, true);
	printf("# %zu of %zu events are left after %u tries%s\n", s.n, was, s.tries,
	       late(&s) ? ", when the time was up" : "");
	printf("not ok %s: seed %" PRIu64 "; again: %s world %" PRIu64 " ", program, seed, program,
	       seed);
	for (size_t i = 0; i < s.n; i++) {
		char text[64];

		sim_name_text(s.names[i], text);
		printf("%s%s", i ? "," : "", text);
	}
	printf("%s\n", s.n ? "" : "nothing");
	finish_sim_shrink(&s);
	return 1;
}
