/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_STATS_H
#define SESSCTL_STATS_H
/* Round trip times: all of them are kept, since a percentile needs them. */
#include "cli/out/out.h"

struct stats {
	float *us;
	uint32_t count, room;
	double sum;
};

/* Return: 0, or -1 if there is no memory. */
int stats_add(struct stats *s, double us);
/* min, avg, p50, p99 (nearest rank) and max; @count of @p too.  At least one was added. */
void stats_sum_up(struct stats *s, struct out_ping *p);
void stats_free(struct stats *s);

#endif
