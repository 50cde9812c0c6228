/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_RUN_H
#define DDPS_CONFORM_RUN_H
/* Running one case after the other. */
#include "conform/peer/inside.h"
#include "conform/profile/conform_profile.h"
#include <ddpsess/conform.h>

struct cf_result {
	enum ddps_conform_verdict verdict;
	char why[1000];		/* FAIL, SKIP, UNDECIDED */
	char want[200];		/* FAIL: what was waited for, or "" */
	uint32_t stop;		/* FAIL: enum ddps_conform_stop */
	bool ended;		/* FAIL: the session had to end and did, otherwise than it should */
	bool unreachable;	/* there was no connection to the target */
	struct cf_trace *trace; /* the caller's, cf_trace_free() */
};

/* Case number @i over all tables, and what it is about (@area may be NULL); NULL: there are not so many. */
const struct cf_case *cf_case_at(size_t i, const char **area);
/* Whether the case can run like that, else one word or two in @why. */
/* Cases of these are for it. */
unsigned cf_run_wires(const struct cf_run *run);
bool cf_case_fits(const struct cf_case *c, const struct cf_run *run, const char **why);
void cf_run_case(const struct cf_run *run, const struct cf_case *c, struct cf_result *res);

/* What the runs of either suite have to do with their caller: its structs, which may be those of
 * another release, what it is informed of each case, and why a run did not begin. */

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
