/* SPDX-License-Identifier: BSD-2-Clause */
/* Of fuzz.h: "random" numbers and the clock, in place of the kernel's. */
#include "fuzz.h"
#include <sys/random.h>
#include <time.h>

ssize_t __wrap_getrandom(void *buf, size_t n, unsigned flags);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __real_clock_gettime(clockid_t clock, struct timespec *ts);

static uint64_t random_state, time_shown;

void fuzz_random_reset(void)
{
	random_state = 0x9e3779b97f4a7c15;
}

/* In place of the kernel's: inputs must do the same every time. */
ssize_t __wrap_getrandom(void *buf, size_t n, unsigned flags)
{
	uint8_t *p = buf;

	(void)flags;
	for (size_t i = 0; i < n; i++) {
		random_state = random_state * 6364136223846793005u + 1442695040888963407u;
		p[i] = (uint8_t)(random_state >> 56);
	}
	return (ssize_t)n;
}

void fuzz_time_set(uint64_t ns)
{
	time_shown = ns;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!time_shown || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ts);
	ts->tv_sec = (time_t)(time_shown / 1000000000);
	ts->tv_nsec = (long)(time_shown % 1000000000);
	return 0;
}
