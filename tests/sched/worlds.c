/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What several threads do with one library, in every order.  Prints "ok" and "not ok" lines.
 * usage: sched [--deep] [--list | WORLD [DECISIONS]]
 *
 * --deep: the drop-in's worlds with as many preemptions as the library's, and some more of them.
 */
#include "sched/sides.h"
#include <stdio.h>
#include <string.h>

#define PREEMPTIONS 2
#define LIMIT	    10000000

static bool deep;

static bool play_scheduled_world(const char *of, const struct sched_world *w, unsigned n, int argc,
				 char **argv)
{
	uint64_t orders = 0;
	unsigned played = 0;
	bool good = true;

	for (unsigned i = 0; i < n; i++) {
		const bool fine = deep || !w[i].apart;

		if (argc > 1 ? strcmp(argv[1], w[i].name) != 0 : w[i].large && !deep)
			continue;
		played++;
		good &= argc > 2 ? sched_again(&w[i], fine, argv[2])
				 : sched_explore(&w[i], fine ? PREEMPTIONS : 1, fine, LIMIT,
						 &orders);
		fflush(stdout);
	}
	if (argc == 1)
		printf("# %u worlds of the %s, %llu orders\n", played, of,
		       (unsigned long long)orders);
	return good;
}

static void list(const struct sched_world *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		puts(w[i].name);
}

int main(int argc, char **argv)
{
	bool good;

	if (argc > 1 && !strcmp(argv[1], "--deep")) {
		deep = true;
		argv++;
		argc--;
	}
	if (argc > 1 && !strcmp(argv[1], "--list")) {
		list(library_worlds, library_nworlds);
		list(free_worlds, free_nworlds);
		list(verbs_worlds, verbs_nworlds);
		return 0;
	}
	good = play_scheduled_world("library", library_worlds, library_nworlds, argc, argv);
	good &= play_scheduled_world("library's ends", free_worlds, free_nworlds, argc, argv);
	good &= play_scheduled_world("drop-in", verbs_worlds, verbs_nworlds, argc, argv);
	return !good;
}
