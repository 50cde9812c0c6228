/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PREFETCH_H
#define DDPS_PREFETCH_H
/*
 * With many sessions what one needs is not in cache when its turn comes.  So it is asked for before: by the loop
 * when many connections are ready, by whoever polls a completion queue for posts to the sessions of what he
 * takes.  Memory answers a dozen such questions in the time of one.
 */
#include <stddef.h>
#include <stdint.h>

#define DDPS_CACHE_LINE 64u
#define DDPS_IN_CACHE	128u /* sessions: as many stay there */

/* @n octets at @p are needed soon.  There may be nothing: an address is a number here. */
static inline void ddps_prefetch(const void *p, size_t n)
{
	uintptr_t at = (uintptr_t)p & ~(uintptr_t)(DDPS_CACHE_LINE - 1);

	for (; at < (uintptr_t)p + n; at += DDPS_CACHE_LINE)
		__builtin_prefetch((const void *)at);
}

#endif
