/* SPDX-License-Identifier: BSD-2-Clause */
#include "conform/peer/late.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define LEAST_MS  50u /* less than that no case depends on */
#define PART	  4u  /* one part in so many of a wait is a large one */

static void judge_late_wait(struct cf_late *l)
{
	if (l->lost < LEAST_MS * NS_PER_MS || l->lost * PART < l->end - l->begin ||
	    l->lost <= l->worst_lost)
		return;
	l->worst_lost = l->lost;
	l->worst_of = l->end - l->begin;
}

int cf_late_nap(struct cf_late *l, uint64_t key, uint64_t now, int ms)
{
	if (key != l->key) {
		judge_late_wait(l);
		l->key = key;
		l->begin = now;
		l->lost = 0;
	} else if (now - l->end > CF_NAP_MS * NS_PER_MS) {
		l->lost += now - l->end; /* awake, and it did not run */
	}
	if (ms > CF_NAP_MS)
		ms = CF_NAP_MS;
	l->from = l->end = now;
	l->planned = (uint64_t)(ms > 0 ? ms : 0) * NS_PER_MS;
	return ms;
}

void cf_late_woke(struct cf_late *l, uint64_t now)
{
	if (now - l->from > l->planned)
		l->lost += now - l->from - l->planned;
	l->end = now;
}

bool cf_late_doubt(struct cf_late *l, char *why, size_t len)
{
	char failed[1000];

	judge_late_wait(l);
	if (!l->worst_lost)
		return false;
	snprintf(failed, sizeof failed, "%s", why);
	snprintf(why, len,
		 "undecided: this host had no processor for %" PRIu64 " of %" PRIu64
		 " ms: run again on a quieter one (%.800s)",
		 l->worst_lost / NS_PER_MS, l->worst_of / NS_PER_MS, failed);
	return true;
}
