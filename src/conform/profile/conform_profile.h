/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_PROFILE_H
#define SESSCTL_CONFORM_PROFILE_H
/*
 * Deviations known of a target: lines of a case's name, blanks, and what the target does;
 * '#' begins a comment.  So a run shows only what is new.  "passes:" or "harmless:" in front of what
 * the target does is the grade of it.
 */
#include <ddpsess/conform.h>
#include <stddef.h>

struct cf_profile {
	char *text; /* names and texts point into it */
	size_t n;
	struct cf_profile_row {
		const char *name, *does;       /* without the grade */
		enum ddps_conform_grade grade; /* DDPS_CONFORM_FAILS: none is given */
	} * row;
};

/* @name: a profile that is built in, or a file.  Return: 0, or -1 with a sentence in @why. */
int cf_profile_load(struct cf_profile *p, const char *name, char *why, size_t why_len);
void cf_profile_free(struct cf_profile *p);
/* What is known of a case, or NULL. */
const struct cf_profile_row *cf_profile_find(const struct cf_profile *p, const char *name);

#endif
