/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_CLOCK_H
#define DDPS_TEST_CLOCK_H
/* The time that never goes back. */
#include <stdint.h>
#include <time.h>

static inline uint64_t read_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t read_clock_ms(void)
{
	return read_clock_ns() / 1000000;
}

#endif
