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

/* For qsort(). */

static inline int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Numbers as if at random, below 2^31, which follow from a seed: each run of a test has the same. */

static inline uint32_t draw_of(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

#endif
