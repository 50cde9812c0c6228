/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SPARE_H
#define DDPS_SPARE_H
/*
 * Buffers of one size that the sessions of a context lend each other: an idle session has none,
 * and a busy one does not ask the allocator for each burst.
 */
#include <stddef.h>
#include <stdlib.h>

#define DDPS_SPARES_MAX 8 /* kept; more are freed */

struct ddps_spares {
	void *first; /* each begins with the address of the next */
	unsigned n;
};

/* @s NULL: plain malloc.  @size, at least that of a pointer, is the same in every call for @s. */
static inline void *ddps_spare_get(struct ddps_spares *s, size_t size)
{
	void **p = s ? s->first : NULL;

	if (!p)
		return malloc(size);
	s->first = *p;
	s->n--;
	return p;
}

/* @mem from ddps_spare_get with the same @s, or NULL. */
static inline void ddps_spare_put(struct ddps_spares *s, void *mem)
{
	if (!mem || !s || s->n == DDPS_SPARES_MAX) {
		free(mem);
		return;
	}
	*(void **)mem = s->first;
	s->first = mem;
	s->n++;
}

static inline void ddps_spares_fini(struct ddps_spares *s)
{
	while (s->first) {
		void **p = s->first;

		s->first = *p;
		free(p);
	}
	s->n = 0;
}

#endif
