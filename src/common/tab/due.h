/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_DUE_H
#define DDPS_DUE_H
/*
 * Timers in a heap: the earliest is at hand, each of them is moved in steps of its logarithm.  Those of one
 * instant come in the order in which they were set.
 */
#include <stdint.h>
#include <stdlib.h>

#define DDPS_DUE_NEVER UINT64_MAX

/* One timer, a member of what it is for.  Zeroed it is not set. */
struct ddps_due {
	uint64_t at;
	uint32_t place; /* in the heap, from 1; 0: not there */
	uint32_t turn;	/* when it was set, modulo 2^32 */
};

struct ddps_dues {
	struct ddps_due **heap; /* the first place is not used */
	uint32_t n;
	uint32_t turns; /* that were given */
};

/* For up to @n timers.  Return: whether there was memory. */
static inline _Bool ddps_dues_new(struct ddps_dues *d, unsigned n)
{
	d->heap = (struct ddps_due **)calloc((size_t)n + 1, sizeof(*d->heap));
	return d->heap;
}

static inline void ddps_due_put(struct ddps_dues *d, uint32_t at, struct ddps_due *e)
{
	d->heap[at] = e;
	e->place = at;
}

static inline _Bool ddps_due_before(const struct ddps_due *a, const struct ddps_due *b)
{
	return a->at != b->at ? a->at < b->at : (int32_t)(a->turn - b->turn) < 0;
}

static inline void ddps_due_up(struct ddps_dues *d, uint32_t at, struct ddps_due *e)
{
	for (; at > 1 && ddps_due_before(e, d->heap[at / 2]); at /= 2)
		ddps_due_put(d, at, d->heap[at / 2]);
	ddps_due_put(d, at, e);
}

static inline void ddps_due_down(struct ddps_dues *d, uint32_t at, struct ddps_due *e)
{
	for (uint32_t c; (c = 2 * at) <= d->n; at = c) {
		if (c < d->n && ddps_due_before(d->heap[c + 1], d->heap[c]))
			c++;
		if (ddps_due_before(e, d->heap[c]))
			break;
		ddps_due_put(d, at, d->heap[c]);
	}
	ddps_due_put(d, at, e);
}

/* @e belongs at @at, or above, or below. */
static inline void ddps_due_move(struct ddps_dues *d, uint32_t at, struct ddps_due *e)
{
	if (at > 1 && ddps_due_before(e, d->heap[at / 2]))
		ddps_due_up(d, at, e);
	else
		ddps_due_down(d, at, e);
}

static inline void ddps_due_clear(struct ddps_dues *d, struct ddps_due *e)
{
	uint32_t at = e->place;
	struct ddps_due *last;

	if (!at)
		return;
	e->place = 0;
	last = d->heap[d->n--];
	if (last == e)
		return;
	ddps_due_move(d, at, last);
}

/* NEVER: not at all. */
static inline void ddps_due_set(struct ddps_dues *d, struct ddps_due *e, uint64_t at)
{
	if (at == DDPS_DUE_NEVER) {
		ddps_due_clear(d, e);
		e->at = at;
		return;
	}
	if (e->place && e->at == at)
		return;
	e->at = at;
	e->turn = d->turns++;
	if (e->place)
		ddps_due_move(d, e->place, e);
	else
		ddps_due_up(d, ++d->n, e);
}

static inline uint64_t ddps_dues_first(const struct ddps_dues *d)
{
	return d->n ? d->heap[1]->at : DDPS_DUE_NEVER;
}

/* The earliest, if it is due.  Return: NULL: none is. */
static inline struct ddps_due *ddps_dues_ready(const struct ddps_dues *d, uint64_t now)
{
	return d->n && d->heap[1]->at <= now ? d->heap[1] : NULL;
}

#endif
