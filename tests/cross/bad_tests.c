/* SPDX-License-Identifier: BSD-2-Clause */
/* What main.c has to notice, and what is well: tests/package/lanes.sh. */
#include "criterion/criterion.h"
#include <signal.h>
#include <unistd.h>

Test(bad, fails)
{
	cr_expect_eq(1, 2, "told");
}

Test(bad, crashes)
{
	raise(SIGSEGV);
}

Test(bad, hangs, .timeout = 0.1)
{
	(void)fork(); /* what waits may be a child */
	pause();
}

Test(bad, leaves_early)
{
	_exit(3);
}

static void *volatile kept;

Test(bad, leaks)
{
	kept = malloc(10);
	kept = NULL;
}

Test(bad, overflows)
{
	volatile size_t n = 10;
	volatile char *p = malloc(10);

	p[n] = 1;
	free((void *)p);
}

static void fail_bad_tests(void)
{
	cr_expect_fail("told");
}

Test(bad, fails_at_its_end, .fini = fail_bad_tests)
{
}

Test(well, is_so)
{
	kept = malloc(10); /* which somebody points to */
}

Test(well, is_skipped)
{
	cr_skip_test("not here");
}
