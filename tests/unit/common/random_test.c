/* SPDX-License-Identifier: BSD-2-Clause */
/* Random octets, when a signal ends the system's call. */
#include "common/system/random.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <errno.h>
#include <stdint.h>

static unsigned calls;

/* Every second one is interrupted; the others give as many octets as that is the how many-th. */
static ssize_t more_and_more(void *buf, size_t len, unsigned flags)
{
	const size_t n = ++calls / 2 < len ? calls / 2 : len;

	cr_expect_eq(flags, 0, "it waits until there are good ones");
	if (calls % 2) {
		errno = EINTR;
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		((uint8_t *)buf)[i] = (uint8_t)calls;
	return (ssize_t)n;
}

Test(random, what_is_missing_is_drawn)
{
	uint8_t b[8] = { 0 };

	sys_instead.getrandom = more_and_more;
	cr_expect_eq(ddps_random(b, 7), 0);
	cr_expect_arr_eq(b, "\2\4\4\6\6\6\x8\0", 8);
	cr_expect_eq(calls, 8);
}

Test(random, nothing_is_drawn_for_nobody)
{
	sys_instead.getrandom = more_and_more;
	cr_expect_eq(ddps_random(NULL, 0), 0);
	cr_expect_eq(calls, 0);
}

Test(random, the_system_has_none)
{
	uint8_t b[8] = { 0 };

	sys_fail("getrandom", 0, 1, ENOSYS);
	cr_expect_eq(ddps_random(b, sizeof b), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOSYS);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(ddps_random(b, sizeof b), 0);
}
