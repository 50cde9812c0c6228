/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VIEW_COUNT_H
#define DDPS_VIEW_COUNT_H
/* Counters of the device's port, summed over the processes that show it: view_counters.h. */
#include "view/view_counters.h"
#include <stdint.h>

/* All of them now.  A process that does not answer within a moment counts as it did last. */
void view_count_sum(const char *root, uint64_t sum[VIEW_NCOUNTERS]);

/*
 * A descriptor to read a counter's present value from, if @path leads to one, from the folder @dir (or
 * AT_FDCWD) if it is relative; @flags as for open.  -1: it leads to none, and errno is as it was.
 */
int view_count_open(const char *root, int dir, const char *path, int flags);

/* "iwInRdmaReads", ... */
const char *view_count_name(unsigned i);

#endif
