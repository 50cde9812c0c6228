/* SPDX-License-Identifier: BSD-2-Clause */
/* Times in classes of a logarithmic scale with a linear one inside each power of two. */
#include "report/perf_hist.h"
#include <string.h>

void hist_reset(struct hist *h)
{
	memset(h, 0, sizeof *h);
}

/* Values below HIST_SUB have a class each; above, HIST_BITS bits after the leading one count. */
static unsigned get_hist_class(uint64_t v)
{
	unsigned shift;

	if (v < HIST_SUB)
		return (unsigned)v;
	shift = 63u - (unsigned)__builtin_clzll(v) - HIST_BITS;
	return HIST_SUB * (shift + 1) + (unsigned)((v >> shift) - HIST_SUB);
}

static uint64_t top_of(unsigned c)
{
	unsigned shift = c / HIST_SUB;

	if (!shift)
		return c;
	shift--;
	return ((uint64_t)(HIST_SUB + c % HIST_SUB) << shift) + ((UINT64_C(1) << shift) - 1);
}

void hist_add(struct hist *h, uint64_t v, uint64_t times)
{
	if (!times)
		return;
	if (!h->count || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count += times;
	h->n[get_hist_class(v)] += times;
}

void hist_merge(struct hist *h, const struct hist *more)
{
	if (!more->count)
		return;
	if (!h->count || more->min < h->min)
		h->min = more->min;
	if (more->max > h->max)
		h->max = more->max;
	h->count += more->count;
	for (unsigned c = 0; c < HIST_CLASSES; c++)
		h->n[c] += more->n[c];
}

uint64_t hist_percentile(const struct hist *h, double percent)
{
	/* Nearest rank; of 10000, so that 99.99 is exact. */
	const uint64_t parts = (uint64_t)(percent * 100 + 0.5);
	uint64_t rank = h->count / 10000 * parts + (h->count % 10000 * parts + 9999) / 10000;
	uint64_t seen = 0;

	for (unsigned c = 0; h->count && c < HIST_CLASSES; c++) {
		seen += h->n[c];
		if (seen >= rank && seen)
			return top_of(c) < h->max ? top_of(c) : h->max;
	}
	return 0;
}

/* ---- a barrier that threads may leave for good ---- */

/* Under the lock. */
static void next_round(struct meet *m)
{
	m->here = 0;
	m->whole = !m->gone; /* of this round: whoever leaves from now on has met all */
	m->round++;
	pthread_cond_broadcast(&m->all);
}

bool meet_all(struct meet *m)
{
	uint64_t round;
	bool whole;

	pthread_mutex_lock(&m->lock);
	round = m->round;
	if (++m->here + m->gone == m->n)
		next_round(m);
	while (m->round == round)
		pthread_cond_wait(&m->all, &m->lock);
	whole = m->whole; /* the next round ends with this thread, too, not before */
	pthread_mutex_unlock(&m->lock);
	return whole;
}

void meet_leave(struct meet *m)
{
	pthread_mutex_lock(&m->lock);
	m->gone++;
	if (m->here && m->here + m->gone == m->n)
		next_round(m);
	pthread_mutex_unlock(&m->lock);
}
