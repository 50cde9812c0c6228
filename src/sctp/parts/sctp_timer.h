/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_TIMER_H
#define DDPS_SCTP_TIMER_H
/*
 * Deadlines in a 4-ary heap, one for each association.  A deadline that moves away is only noted:
 * the entry is looked at when the old one comes.  So a T3 that moves with each SACK costs nothing.  The first
 * of a few moves with it, so that nobody looks in vain.
 */
#include <stddef.h>
#include <stdint.h>

#define DDPS_SC_NEVER UINT64_MAX

struct ddps_sc_timer {
	uint64_t at;   /* where it is in the heap */
	uint64_t want; /* when it is due; DDPS_SC_NEVER: not */
	size_t slot;   /* 1 ...; 0: not in the heap */
};

struct ddps_sc_heap {
	struct ddps_sc_timer **v; /* v[1] is the first */
	size_t n, cap;
};

void ddps_sc_heap_fini(struct ddps_sc_heap *h);
/* Room for one more entry than there are now, so that set() cannot fail.  0 or DDPS_E_NOMEM. */
int ddps_sc_heap_reserve(struct ddps_sc_heap *h, size_t entries);
void ddps_sc_timer_set(struct ddps_sc_heap *h, struct ddps_sc_timer *t, uint64_t when);
/* Out of the heap for good. */
void ddps_sc_timer_drop(struct ddps_sc_heap *h, struct ddps_sc_timer *t);
/* When the first is due; may be earlier than the truth, once. */
static inline uint64_t ddps_sc_heap_next(const struct ddps_sc_heap *h)
{
	return h->n ? h->v[1]->at : DDPS_SC_NEVER;
}
/* One that is due at @now, taken out, or NULL. */
struct ddps_sc_timer *ddps_sc_heap_due(struct ddps_sc_heap *h, uint64_t now);

#endif
