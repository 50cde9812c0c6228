/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OPTROW_H
#define SESSCTL_OPTROW_H
/* A table of options and what comes from it: the parser and the help. */
#include "cli/optval.h"
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#define OPTROW_MAX  80	    /* rows of a table */
#define OPTROW_REST INT_MAX /* max_args: options end at the first argument, the rest is not ours */

struct option_row {
	const char *name;
	const char *arg; /* NULL: a flag */
	unsigned cmds;	 /* one bit for each command that takes it */
	enum optval_kind kind;
	size_t at; /* of the field in the struct of options */
	uint64_t min, max;
	const char *help;
};

struct option_table {
	const struct option_row *row;
	size_t n; /* at most OPTROW_MAX */
};

enum opts_result { OPTS_OK, OPTS_HELP, OPTS_VERSION, OPTS_BAD };

/* A command as its table knows it. */
struct option_user {
	const char *name, *synopsis, *about;
	unsigned bit;
	int min_args, max_args;
};

/*
 * Parse @argv[1..] (permuted) into the struct at @opts, which has its defaults already; what
 * is left starts at @argv[@first].  OPTS_BAD: one sentence in @why.
 */
enum opts_result optrow_parse(const struct option_table *t, const struct option_user *u, void *opts,
			      int argc, char **argv, int *first, char *why, size_t why_len);

/* The letter by which an option of this name can be given, too; 0: none. */
char optrow_letter(const char *name);

/* Usage, what it is for, and its options. */
void optrow_help(FILE *f, const struct option_table *t, const struct option_user *u);

#endif
