/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs what registered itself, each test in a process of its own: criterion/criterion.h beside this.
 * usage: unit-cross [SUITE-PREFIX...]
 */
#include "criterion/criterion.h"
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define SLOWER	10 /* than the machine that the time-outs were written for */

struct cross_test *cross_tests, *cross_suites;
static bool failed;

void cross_fail(const char *file, int line, const char *what)
{
	failed = true;
	printf("# %s:%d: %s\n", file, line, what);
}

void cross_say(const char *fmt, ...)
{
	va_list ap;

	if (!*fmt)
		return;
	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

void cross_end(bool skipped)
{
	fflush(stdout);
	_exit(skipped ? SKIPPED : failed);
}

static void run_here(const struct cross_test *t)
{
	const struct cross_test *s = cross_suites;

	while (s && strcmp(s->suite, t->suite))
		s = s->next;
	alarm((unsigned)(SLOWER * (t->timeout > 0	 ? t->timeout
				   : s && s->timeout > 0 ? s->timeout
							 : 15)));
	if (s && s->init)
		s->init();
	if (t->init)
		t->init();
	t->fn();
	if (t->fini)
		t->fini();
	if (s && s->fini)
		s->fini();
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

static bool is_wanted(const struct cross_test *t, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strncmp(t->suite, argv[i], strlen(argv[i])))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	unsigned passed = 0, skipped = 0, bad = 0;

	for (const struct cross_test *t = cross_tests; t; t = t->next) {
		int status;

		if (t->disabled || !is_wanted(t, argc, argv))
			continue;
		status = run(t);
		passed += status == 0;
		skipped += status == SKIPPED;
		if (status != 0 && status != SKIPPED) {
			printf("not ok %s/%s\n", t->suite, t->name);
			bad++;
		}
	}
	printf("%u passed, %u skipped, %u failed\n", passed, skipped, bad);
	return passed && !bad ? 0 : 1;
}
