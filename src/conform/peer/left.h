/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_LEFT_H
#define DDPS_CONFORM_LEFT_H
/* How a case is left before its end, of either suite, and what that says of it. */
#include <ddpsess/conform.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether the suite itself was late.  A host without a processor for the suite has hardly one for
 * a target next to it, and answers too late to any other: what a case concludes from such a wait
 * says nothing of the target.  Each wait sleeps in short naps, and how late it woke up from each
 * is the measure.  Time is an argument: monotonic nanoseconds.
 */

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

/*
 * How long a run waits for a target that never answers.  A target that has sent no valid message in a
 * part of its sessions since the run began, and through a whole wait, will send none in the next case,
 * too: each such wait is a quarter of the one before.  What answers once, however late, gets whole waits
 * from then on.  Time is an argument: monotonic nanoseconds.
 */

enum cf_part { CF_PART_SETUP, CF_PART_SESSION };

#define CF_PARTS 6u /* IPoIB has others: ci_part */

#define CF_PATIENCE_MIN_MS 50u /* no wait is shorter than this and four times the slowest answer */

struct cf_patience {
	bool heard[CF_PARTS];	   /* a valid message came in this part, of any session */
	unsigned silent[CF_PARTS]; /* waits in which none did, all of them before it was heard */
	uint64_t answer_ns;	   /* how long answers take, the slow ones above all */
};

/* How long the next wait takes of @whole milliseconds. */
unsigned cf_patience_ms(const struct cf_patience *p, unsigned part, unsigned whole);
/* A valid message came after @ns: octets that are none are no answer. */
void cf_patience_heard(struct cf_patience *p, unsigned part, uint64_t ns);
/* A wait went by without anything. */
void cf_patience_silent(struct cf_patience *p, unsigned part);

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
