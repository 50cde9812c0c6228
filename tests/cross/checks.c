/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks and the tests of criterion/criterion.h next to this, in the process that plays one. */
#include "criterion/criterion.h"
#include <stdarg.h>
#include <unistd.h>

struct cross_test *cross_tests, *cross_suites;
bool cross_failed;
static pid_t player; /* of the test; 0: none yet */

bool cross_is_child(void)
{
	return player && getpid() != player;
}

void cross_fail(const char *file, int line, const char *what)
{
	cross_failed = true;
	dprintf(STDERR_FILENO, "# %s:%d: %s\n", file, line, what);
}

void cross_say(const char *fmt, ...)
{
	va_list ap;

	if (!*fmt)
		return;
	dprintf(STDERR_FILENO, "# ");
	va_start(ap, fmt);
	vdprintf(STDERR_FILENO, fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "\n");
}

void cross_end(bool skipped)
{
	fflush(stdout);
	_exit(skipped ? CROSS_SKIPPED : cross_failed ? CROSS_FAILED : 0);
}

const struct cross_test *cross_suite_of(const struct cross_test *t)
{
	const struct cross_test *s = cross_suites;

	while (s && strcmp(s->suite, t->suite))
		s = s->next;
	return s;
}

void cross_play(const struct cross_test *t)
{
	const struct cross_test *s = cross_suite_of(t);

	player = getpid();
	if (s && s->init)
		s->init();
	if (t->init)
		t->init();
	t->fn();
	if (t->fini)
		t->fini();
	if (s && s->fini)
		s->fini();
}

bool cross_is_wanted(const struct cross_test *t, char *const *prefix)
{
	if (!*prefix)
		return true;
	for (; *prefix; prefix++)
		if (!strncmp(t->suite, *prefix, strlen(*prefix)))
			return true;
	return false;
}
