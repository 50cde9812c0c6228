/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_H
#define SESSCTL_H
/* What every part of sessctl knows: exit statuses and the clock. */
#include <stdint.h>
#include <time.h>

/* Exit statuses; functions that end a command return one of them. */
enum status {
	ST_DONE = 0,
	ST_FAILED = 1,
	ST_USAGE = 2,
	ST_REJECTED = 3,   /* the peer's application said no */
	ST_TERMINATED = 4, /* an RDMAP Terminate, either way */
	ST_TIMEDOUT = 5
};

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* While something is measured: look for work so long before sleeping. */
#define SPIN_NS	   50000ull
#define SPIN_POLLS 16 /* of completions alone, before anything else is looked at */

/* Monotonic nanoseconds. */
static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Milliseconds from now to @due, rounded up, for poll; -1 if @due is 0. */
static inline int clock_left_ms(uint64_t due)
{
	uint64_t now = clock_ns(), ms;

	if (!due)
		return -1;
	if (due <= now)
		return 0;
	ms = (due - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

#endif
