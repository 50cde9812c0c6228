/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef REPORT_KEPT_H
#define REPORT_KEPT_H
/* Results of cases that are kept to the end of a run, for what is said of all of them together. */
#include "report/causes.h"
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kept_case {
	struct ddps_conform_case c;
	uint32_t verdict, grade;
	enum cause cause;
	uint64_t ns;
	char *why, *known; /* "", NULL: none */
	char *expected;	   /* FAIL */
	char *talk;	   /* FAIL: what was sent and what came, in lines; NULL: no memory */
};

/* An area is what the names of cases begin with: a summary has one line each. */
struct kept_area {
	char *name;
	const char *title; /* for people, of its first case; or NULL */
	uint32_t grade[4], verdict[5];
};

struct kept {
	struct kept_case *at;
	size_t n;
	struct kept_area *area;
	size_t areas;
	bool short_of_memory;
	uint32_t cause[CAUSES]; /* cases that failed for it */
};

/* The copy of a result whose texts are clean.  Return: valid until the next call, or NULL: no memory. */
const struct kept_case *kept_add(struct kept *k, const struct ddps_conform_result *r);
void kept_free(struct kept *k);

/* The causes that several cases share, the most frequent first; 0 ends them. */
void kept_causes(const struct kept *k, enum cause order[CAUSES]);

/* Cases that a peer passes because it takes nothing, as its failures show; 0: not such a peer.  @order: of
 * kept_causes(). */
uint32_t kept_idle_passes(const struct kept *k, const enum cause *order);
#define KEPT_IDLE_WORDS                                                                            \
	"these send what has to be refused, and a peer that takes nothing passes them, too. They " \
	"say nothing good of it"

/* The rules in words, what was expected, what came, and the octets, behind @indent; rules: at most @rules. */
void kept_print(FILE *f, const struct kept_case *c, const char *indent, size_t rules);

#endif
