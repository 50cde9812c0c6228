/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_ORDER_H
#define DDPS_TEST_ORDER_H
/* For qsort(). */
#include <stdint.h>

static inline int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#endif
