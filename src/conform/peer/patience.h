/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_PATIENCE_H
#define DDPS_CONFORM_PATIENCE_H
/*
 * How long a run waits for a target that never answers.  A target that has sent no valid message in a
 * part of its sessions since the run began, and through a whole wait, will send none in the next case,
 * too: each such wait is a quarter of the one before.  What answers once, however late, gets whole waits
 * from then on.  Time is an argument: monotonic nanoseconds.
 */
#include <stdbool.h>
#include <stdint.h>

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

#endif
