/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_LATE_H
#define DDPS_CONFORM_LATE_H
/*
 * Whether the suite itself was late.  A host without a processor for the suite has hardly one for
 * a target next to it, and answers too late to any other: what a case concludes from such a wait
 * says nothing of the target.  Each wait sleeps in short naps, and how late it woke up from each
 * is the measure.  Time is an argument: monotonic nanoseconds.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CF_NAP_MS 50 /* no nap is longer */

struct cf_late {
	uint64_t key, begin, end, lost; /* the wait that goes on */
	uint64_t from, planned;		/* its nap */
	uint64_t worst_lost,
		worst_of; /* the wait of the case with most of it lost, if that counts */
};

/* Before a nap of at most @ms in the wait called @key, which no other is.  Return: how long to sleep. */
int cf_late_nap(struct cf_late *l, uint64_t key, uint64_t now, int ms);
/* Behind it, whatever woke it up. */
void cf_late_woke(struct cf_late *l, uint64_t now);
/* The case is over.  Return: whether a large part of one of its waits was lost.  Then @why, which
 * says what failed, becomes a sentence that says so, too. */
bool cf_late_doubt(struct cf_late *l, char *why, size_t len);

#endif
