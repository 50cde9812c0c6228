/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_DRAW_H
#define DDPS_TEST_DRAW_H
/* Numbers as if at random, below 2^31, which follow from a seed: each run of a test has the same. */
#include <stdint.h>

static inline uint32_t draw_of(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

#endif
