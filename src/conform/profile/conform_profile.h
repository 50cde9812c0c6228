/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_PROFILE_H
#define SESSCTL_CONFORM_PROFILE_H
/*
 * Deviations known of a target: lines of a case's name, blanks, and what the target does;
 * '#' begins a comment.  So a run shows only what is new.
 */
#include <stddef.h>

struct cf_profile {
	char *text; /* names and texts point into it */
	size_t n;
	struct cf_profile_row {
		const char *name, *does;
	} * row;
};

/* @name: a profile that is built in, or a file.  Return: 0, or -1 with a sentence in @why. */
int cf_profile_load(struct cf_profile *p, const char *name, char *why, size_t why_len);
void cf_profile_free(struct cf_profile *p);
/* What is known of a case, or NULL. */
const char *cf_profile_find(const struct cf_profile *p, const char *name);

#endif
