/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs what registered itself, each test in a process of its own: criterion/criterion.h beside this.
 * usage: unit-cross [SUITE-PREFIX...]
 */
#include "criterion/criterion.h"
#include <sys/wait.h>
#include <unistd.h>

#define SLOWER 10 /* than the machine that the time-outs were written for */

static void run_here(const struct cross_test *t)
{
	const struct cross_test *s = cross_suite_of(t);

	alarm((unsigned)(SLOWER * (t->timeout > 0	 ? t->timeout
				   : s && s->timeout > 0 ? s->timeout
							 : 15)));
	cross_play(t);
	cross_end(false);
}

static int run(const struct cross_test *t)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		run_here(t);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
	unsigned passed = 0, skipped = 0, bad = 0;

	for (const struct cross_test *t = cross_tests; t; t = t->next) {
		int status;

		if (t->disabled || !cross_is_wanted(t, argv + (argc > 0)))
			continue;
		status = run(t);
		passed += status == 0;
		skipped += status == CROSS_SKIPPED;
		if (status != 0 && status != CROSS_SKIPPED) {
			printf("not ok %s/%s\n", t->suite, t->name);
			bad++;
		}
	}
	printf("%u passed, %u skipped, %u failed\n", passed, skipped, bad);
	return passed && !bad ? 0 : 1;
}
