/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_LEFT_H
#define DDPS_CONFORM_LEFT_H
/* How a case is left before its end, of either suite, and what that says of it. */
#include "conform/peer/late.h"
#include <ddpsess/conform.h>
#include <setjmp.h>
#include <stdarg.h>

/* Monotonic nanoseconds. */
uint64_t cf_now(void);

struct cf_left {
	jmp_buf to;
	bool skipped; /* it says nothing of the target */
	char why[1000];
	struct cf_late late;
};

/* Before the jump to @l->to: why the case has failed, or is @skipped. */
void cf_left_why(struct cf_left *l, bool skipped, const char *fmt, va_list ap);
/* What a case that was left says of its target. */
enum ddps_conform_verdict cf_left_verdict(struct cf_left *l);

#endif
