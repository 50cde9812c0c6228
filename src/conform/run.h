/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_RUN_H
#define DDPS_CONFORM_RUN_H
/* Running one case after the other. */
#include "conform/peer/inside.h"

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

#endif
