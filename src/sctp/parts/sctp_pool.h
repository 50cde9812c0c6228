/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_POOL_H
#define DDPS_SCTP_POOL_H
/*
 * Memory of any size that is asked for and given back all the time: freed pieces are kept by size
 * class, up to a bound, and given again.  What others keep goes for what is given back at the bound: when the size of
 * messages has changed, that of the old ones is not asked for any more.  There are four classes from each power of two to the next one, so
 * that what has a power of two of octets and a header takes not twice as much.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define DDPS_SC_POOL_CLASSES 41 /* 128 octets .. 128 KiB; larger ones are not kept */
#define DDPS_SC_POOL_LEAST   128u
#define DDPS_SC_POOL_KEPT    (6u << 20) /* a whole send buffer, in the sizes of the classes */

struct ddps_sc_pool {
	void *first[DDPS_SC_POOL_CLASSES];
	size_t kept;   /* octets */
	unsigned hand; /* the class that is the next one to lose what it keeps */
};

static inline unsigned ddps_sc_pool_class(size_t size)
{
	const size_t last = size - 1, quarters = last / (DDPS_SC_POOL_LEAST / 4);
	unsigned c, up;

	if (last < DDPS_SC_POOL_LEAST)
		return 0;
	up = 61 - (unsigned)__builtin_clzll(quarters); /* its powers of two above the least */
	c = 4 * up + (unsigned)(quarters >> up) - 3;
	return c < DDPS_SC_POOL_CLASSES ? c : DDPS_SC_POOL_CLASSES;
}

/* What a piece of class @c has. */
static inline size_t ddps_sc_pool_size(unsigned c)
{
	return c ? (DDPS_SC_POOL_LEAST / 4) * (size_t)(5 + (c - 1) % 4) << (c - 1) / 4
		 : DDPS_SC_POOL_LEAST;
}

/* @size: more than 0.  NULL: no memory. */
static inline void *ddps_sc_pool_get(struct ddps_sc_pool *p, size_t size)
{
	unsigned c = ddps_sc_pool_class(size);
	void **mem;

	if (c == DDPS_SC_POOL_CLASSES)
		return malloc(size);
	mem = (void **)p->first[c];
	if (!mem)
		return malloc(ddps_sc_pool_size(c));
	p->first[c] = *mem;
	__builtin_prefetch(*mem, 1); /* whoever asks for one asks for more */
	p->kept -= ddps_sc_pool_size(c);
	return mem;
}

/* For a piece of class @c, from the class whose turn it is; false: there is none. */
bool ddps_sc_pool_make_room(struct ddps_sc_pool *p, unsigned c);

/* @size as it was asked for. */
static inline void ddps_sc_pool_put(struct ddps_sc_pool *p, void *mem, size_t size)
{
	unsigned c = ddps_sc_pool_class(size);

	if (!mem)
		return;
	if (c == DDPS_SC_POOL_CLASSES ||
	    (p->kept + ddps_sc_pool_size(c) > DDPS_SC_POOL_KEPT && !ddps_sc_pool_make_room(p, c))) {
		free(mem);
		return;
	}
	*(void **)mem = p->first[c];
	p->first[c] = mem;
	p->kept += ddps_sc_pool_size(c);
}

void ddps_sc_pool_fini(struct ddps_sc_pool *p);

#endif
