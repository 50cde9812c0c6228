/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_COMPLETE_H
#define SESSCTL_COMPLETE_H
/*
 * What Tab offers, for the completions of bash, zsh and fish: from the tables that the help comes from, and by
 * the same calls.  A line each: a candidate, a tabulator, what it is; or ":files", ":folders", ":commands", of
 * which the shell knows itself.
 */
#include "cli/optrow.h"

/* From now on what would print a help prints candidates for the last of @n words behind the command. */
void complete_begin(char *const *words, int n);
bool complete_wanted(void);

/* Before the options: the names that a PATTERN matches.  @of: number @i, and in @about what it is; NULL: behind the last. */
void complete_patterns(const char *(*of)(size_t i, const char **about));

/* A candidate, if it begins as the word does. */
void complete_offer(const char *name, const char *about);
/* Options, their values, arguments. */
void complete_options(const struct option_table *t, const struct option_user *u);

#endif
