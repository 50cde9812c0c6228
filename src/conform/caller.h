/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CONFORM_CALLER_H
#define CONFORM_CALLER_H
/* What the runs of either suite have to do with their caller: its structs, which may be those of
 * another release, what it is informed of each case, and why a run did not begin. */
#include "conform/profile/conform_profile.h"
#include <ddpsess/conform.h>

struct conform_caller {
	struct ddps_conform_calls calls;
	struct ddps_conform_sum sum;
	struct cf_profile known;
	uint32_t number;
	char *why;
	size_t why_len;
};

/* Writes what of @defaults, which @known octets long, fits into the caller's struct of @size octets. */
void conform_put_sized(void *to, size_t size, const void *defaults, size_t known);
/* A struct of the caller's, whose size is its first member: as ours, or larger with zeros behind. */
int conform_take_sized(void *to, size_t size, const void *from);
/* Its calls and its profile, either of which may be NULL.  @c->known is freed by whoever has asked. */
int conform_caller_take(struct conform_caller *c, const struct ddps_conform_calls *calls,
			const char *profile);
/* The text of @err, which is returned. */
int conform_caller_fault(struct conform_caller *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The grade of a failure that the profile has no grade for: the session @ended as it had to, but
 * otherwise, or nothing speaks for the target.
 */
#define CONFORM_GRADE(ended) ((ended) ? DDPS_CONFORM_PASSES : DDPS_CONFORM_FAILS)
/* What became of a case; of a failure with its grade.  A failure that the profile knows is not counted as one. */
void conform_caller_tell(struct conform_caller *c, const struct ddps_conform_result *r);

#endif
