/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sim_main.h"
#include "sim/sim_event.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS	 2u
#define PATIENCE 20 /* seconds of CPU that a world may take: SIGVTALRM ends one that never ends */

struct worker {
	pid_t pid;
	uint64_t seed; /* of the world it is in */
	bool bad;
	struct sim_tally t;
};

/* Not by clock_gettime(), which some programs simulate. */
static double seconds(void)
{
	struct timespec ts;

	timespec_get(&ts, TIME_UTC);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool bounded_world(const struct sim_kind *kind, uint64_t seed, struct sim_tally *t)
{
	const struct itimerval patience = { .it_value.tv_sec = PATIENCE };

	setitimer(ITIMER_VIRTUAL, &patience, NULL);
	return kind->world(seed, t);
}

static void work(const struct sim_kind *kind, struct worker *all, unsigned i, uint64_t seed,
		 uint64_t count, double until)
{
	struct worker *w = &all[i];

	for (w->seed = seed + i; !w->bad; w->seed += WORKERS) {
		uint64_t done = 0;
		bool found = false;

		for (unsigned k = 0; k < WORKERS; k++) {
			done += __atomic_load_n(&all[k].t.n[0], __ATOMIC_RELAXED);
			found |= __atomic_load_n(&all[k].bad, __ATOMIC_RELAXED);
		}
		if (found || done >= count || seconds() >= until)
			return;
		w->bad = !bounded_world(kind, w->seed, &w->t);
	}
}

static bool reap(const char *program, struct worker *w)
{
	int status;

	waitpid(w->pid, &status, 0);
	if (WIFEXITED(status) && !WEXITSTATUS(status) && !w->bad)
		return true;
	printf("not ok %s: seed %" PRIu64 " failed (status %x); again: %s world %" PRIu64 "\n",
	       program, w->bad ? w->seed - WORKERS : w->seed, (unsigned)status, program,
	       w->bad ? w->seed - WORKERS : w->seed);
	return false;
}

/* Of a run that found something, too: what it has played until then. */
static void report(const struct sim_kind *kind, const char *program, const struct worker *all,
		   double took, bool good)
{
	const char *name = strrchr(program, '/');
	double cpu, simulated = 0;
	struct rusage use;

	printf("%s %s:", good ? "ok" : "# until then", name ? name + 1 : program);
	for (unsigned i = 0; kind->names[i]; i++) {
		uint64_t sum = 0;

		for (unsigned k = 0; k < WORKERS; k++)
			sum += all[k].t.n[i];
		printf("%s %" PRIu64 " %s", i ? "," : "", sum, kind->names[i]);
	}
	printf(" (%.0f s)\n", took);
	if (!kind->seconds)
		return;
	getrusage(RUSAGE_CHILDREN, &use);
	cpu = (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
	      (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
	for (unsigned k = 0; k < WORKERS; k++)
		simulated += (double)all[k].t.n[kind->seconds];
	printf("# %.0f s of CPU: %.0f simulated hours in an hour of CPU\n", cpu, simulated / cpu);
}

/* One world; @events: nothing but these happens beyond the least ("nothing": none). */
static int run_sim_sim_main_alone(const struct sim_kind *kind, const char *seed, const char *events)
{
	size_t max = events ? strlen(events) / 8 + 1 : 0;
	uint64_t *only = calloc(max + 1, sizeof *only);
	struct sim_tally t = { { 0 } };
	bool good;
	int n = 0;

	if (events && strcmp(events, "nothing"))
		n = sim_names_parse(events, only, max);
	if (!only || n < 0) {
		fprintf(stderr, "events are KIND.A.B.C.N, separated by commas\n");
		return 2;
	}
	sim_events.limited = events;
	sim_events.only = only;
	sim_events.nonly = (size_t)n;
	good = bounded_world(kind, strtoull(seed, NULL, 0), &t);
	printf("%s world %s\n", good ? "ok" : "not ok", seed);
	free(only);
	return !good;
}

int sim_main(const struct sim_kind *kind, int argc, char **argv)
{
	struct worker *all;
	double start = seconds(), until = 1e18;
	bool good = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 3 && !strcmp(argv[1], "world"))
		return run_sim_sim_main_alone(kind, argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "--shrink"))
		return sim_shrink(kind, argv[0], strtoull(argv[2], NULL, 0));
	if (argc < 3) {
		fprintf(stderr,
			"usage: %s SEED COUNT [SECONDS] | world SEED [EVENTS] | --shrink SEED\n",
			argv[0]);
		return 2;
	}
	if (argc > 3)
		until = start + strtod(argv[3], NULL);
	all = mmap(NULL, WORKERS * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		   -1, 0);
	if (all == MAP_FAILED)
		return 2;
	for (unsigned i = 0; i < WORKERS; i++) {
		all[i].pid = fork();
		if (all[i].pid < 0)
			return 2;
		if (!all[i].pid) {
			work(kind, all, i, strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0),
			     until);
			exit(0);
		}
	}
	for (unsigned i = 0; i < WORKERS; i++)
		good &= reap(argv[0], &all[i]);
	report(kind, argv[0], all, seconds() - start, good);
	return !good;
}
