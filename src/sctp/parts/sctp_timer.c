/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/parts/sctp_timer.h"
#include <ddpsess/err.h>
#include <stdlib.h>

#define FEW 5u /* of so many, two steps at most are below the first */

void ddps_sc_heap_fini(struct ddps_sc_heap *h)
{
	free(h->v);
	h->v = NULL;
	h->n = h->cap = 0;
}

int ddps_sc_heap_reserve(struct ddps_sc_heap *h, size_t entries)
{
	size_t cap = h->cap ? h->cap : 16;
	struct ddps_sc_timer **v;

	while (cap < entries + 1)
		cap *= 2;
	if (cap == h->cap)
		return 0;
	v = realloc(h->v, cap * sizeof(struct ddps_sc_timer *));
	if (!v)
		return DDPS_E_NOMEM;
	h->v = v;
	h->cap = cap;
	return 0;
}

static void heap_put(struct ddps_sc_heap *h, size_t slot, struct ddps_sc_timer *t)
{
	h->v[slot] = t;
	t->slot = slot;
}

static size_t parent(size_t i)
{
	return (i - 2) / 4 + 1;
}

static void sift_up(struct ddps_sc_heap *h, size_t i)
{
	struct ddps_sc_timer *t = h->v[i];

	while (i > 1 && h->v[parent(i)]->at > t->at) {
		heap_put(h, i, h->v[parent(i)]);
		i = parent(i);
	}
	heap_put(h, i, t);
}

static void sift_down(struct ddps_sc_heap *h, size_t i)
{
	struct ddps_sc_timer *t = h->v[i];

	for (;;) {
		size_t c = 4 * (i - 1) + 2, best = i;
		uint64_t at = t->at;

		for (size_t k = c; k < c + 4 && k <= h->n; k++) {
			if (h->v[k]->at < at) {
				best = k;
				at = h->v[k]->at;
			}
		}
		if (best == i)
			break;
		heap_put(h, i, h->v[best]);
		i = best;
	}
	heap_put(h, i, t);
}

static void remove_timer(struct ddps_sc_heap *h, struct ddps_sc_timer *t)
{
	size_t i = t->slot;
	struct ddps_sc_timer *last = h->v[h->n--];

	t->slot = 0;
	if (last == t)
		return;
	heap_put(h, i, last);
	sift_up(h, i);
	sift_down(h, last->slot);
}

void ddps_sc_timer_set(struct ddps_sc_heap *h, struct ddps_sc_timer *t, uint64_t when)
{
	t->want = when;
	if (t->slot && when >= t->at) {
		if (t->slot > 1 || h->n > FEW)
			return;
		t->at = when; /* the first is looked at each turn */
		sift_down(h, 1);
		return;
	}
	if (when == DDPS_SC_NEVER)
		return;
	t->at = when;
	if (!t->slot)
		heap_put(h, ++h->n, t);
	sift_up(h, t->slot);
}

void ddps_sc_timer_drop(struct ddps_sc_heap *h, struct ddps_sc_timer *t)
{
	if (t->slot)
		remove_timer(h, t);
	t->want = DDPS_SC_NEVER;
}

struct ddps_sc_timer *ddps_sc_heap_due(struct ddps_sc_heap *h, uint64_t now)
{
	while (h->n && h->v[1]->at <= now) {
		struct ddps_sc_timer *t = h->v[1];

		remove_timer(h, t);
		if (t->want <= now)
			return t;
		ddps_sc_timer_set(h, t, t->want); /* it had moved away */
	}
	return NULL;
}
