/* SPDX-License-Identifier: BSD-2-Clause */
/* The way out of a case. */
#include "conform/peer/left.h"
#include <stdio.h>

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
