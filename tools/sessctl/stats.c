/* SPDX-License-Identifier: BSD-2-Clause */
/* Round trip times and what they come to. */
#include "sessctl/stats.h"
#include <stdlib.h>

int stats_add(struct stats *s, double us)
{
	if (s->count == s->room) {
		uint32_t room = s->room ? 2 * s->room : 1024;
		float *more = realloc(s->us, room * sizeof *more);

		if (!more)
			return -1;
		s->us = more;
		s->room = room;
	}
	s->us[s->count++] = (float)us;
	s->sum += us;
	return 0;
}

static int ascending(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Of times in order; nearest rank. */
static double percentile(const struct stats *s, unsigned percent)
{
	uint64_t rank = ((uint64_t)s->count * percent + 99) / 100; /* 1..count */

	return (double)s->us[rank - 1];
}

void stats_sum_up(struct stats *s, struct out_ping *p)
{
	qsort(s->us, s->count, sizeof *s->us, ascending);
	p->count = s->count;
	p->min = (double)s->us[0];
	p->avg = s->sum / s->count;
	p->p50 = percentile(s, 50);
	p->p99 = percentile(s, 99);
	p->max = (double)s->us[s->count - 1];
}

void stats_free(struct stats *s)
{
	free(s->us);
	*s = (struct stats){ .us = NULL };
}
