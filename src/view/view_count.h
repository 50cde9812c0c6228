/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VIEW_COUNT_H
#define DDPS_VIEW_COUNT_H
/* Counters of the device's port, summed over the processes that show it: view_counters.h. */
#include "view/view_counters.h"
#include <stdbool.h>
#include <stdint.h>

/*
 * All of them now.  A process that does not answer within a moment counts as it did last.  false: another
 * process keeps locked what those have left that are gone.
 */
bool view_count_sum(const char *root, uint64_t sum[VIEW_NCOUNTERS]);
#define VIEW_COUNT_BUSY_WHY                                                                        \
	"another process has locked the counters of ddpsess for half a second, as one does that "  \
	"is stopped meanwhile (see lslocks)"

/*
 * A descriptor to read a counter's present value from, if @path leads to one, from the folder @dir (or
 * AT_FDCWD) if it is relative; @flags as for open.  -1: it leads to none, and errno is as it was; VIEW_COUNT_BUSY: it cannot
 * be read now, and errno is EBUSY.
 */
#define VIEW_COUNT_BUSY (-2)
int view_count_open(const char *root, int dir, const char *path, int flags);

/* "iwInRdmaReads", ... */
const char *view_count_name(unsigned i);

#endif
