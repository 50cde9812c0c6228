/* SPDX-License-Identifier: BSD-2-Clause */
/* The way out of a case. */
#include "conform/peer/left.h"
#include <stdio.h>
#include <inttypes.h>
#include <string.h>

void cf_left_why(struct cf_left *l, bool skipped, const char *fmt, va_list ap)
{
	vsnprintf(l->why, sizeof l->why, fmt, ap);
	l->skipped = skipped;
}

enum ddps_conform_verdict cf_left_verdict(struct cf_left *l)
{
	if (l->skipped)
		return DDPS_CONFORM_SKIP;
	return cf_late_doubt(&l->late, l->why, sizeof l->why) ? DDPS_CONFORM_UNDECIDED
							      : DDPS_CONFORM_FAIL;
}

/* ---- late ---- */

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

/* ---- patience ---- */

#define LEAST 5u /* so many quarterings are enough for any wait */

unsigned cf_patience_ms(const struct cf_patience *p, unsigned part, unsigned whole)
{
	unsigned n = p->silent[part] < LEAST ? p->silent[part] : LEAST;
	uint64_t least = CF_PATIENCE_MIN_MS + 4 * (p->answer_ns / NS_PER_MS);
	unsigned ms = p->heard[part] ? whole : whole >> (2 * n);

	if (ms >= least || ms == whole)
		return ms;
	return least < whole ? (unsigned)least : whole;
}

void cf_patience_heard(struct cf_patience *p, unsigned part, uint64_t ns)
{
	uint64_t before = p->answer_ns - p->answer_ns / 8;

	p->heard[part] = true;
	p->answer_ns = ns > before ? ns : before;
}

void cf_patience_silent(struct cf_patience *p, unsigned part)
{
	if (!p->heard[part])
		p->silent[part]++;
}
