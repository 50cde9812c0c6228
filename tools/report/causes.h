/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef REPORT_CAUSES_H
#define REPORT_CAUSES_H
/* What a failed case has in common with others: the likely cause. */
#include "report/decode.h"
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cause {
	CAUSE_NONE,
	CAUSE_ECHO,
	CAUSE_STRANGER,
	CAUSE_TLS,
	CAUSE_WRONG_SETUP,
	CAUSE_PART_SETUP,
	CAUSE_NOT_FPDU,
	CAUSE_PART_FPDU,
	CAUSE_CRC_WRONG,
	CAUSE_CRC_REFUSED,
	CAUSE_REJECTS,
	CAUSE_SILENT_SETUP,
	CAUSE_SILENT_SESSION,
	CAUSE_CLOSED_SETUP,
	CAUSE_CLOSED_SESSION,
	CAUSE_NO_WORDS,
	CAUSE_GOES_ON,
	CAUSE_GONE,
	CAUSE_RESERVED,
	CAUSE_OTHER_WORDS,
	CAUSE_LINK_SILENT,
	CAUSE_CM_SILENT,
	CAUSES
};

struct cause_words {
	const char *name; /* in JSON */
	const char *text; /* one sentence, in front of ": 96 cases" */
	const char *tell; /* what to look for, or to tell the vendor */
};

enum cause cause_of(const struct ddps_conform_result *r, const struct decode_found *found);
const struct cause_words *cause_words(enum cause c);
/* Whether a peer with this in common takes no session at all. */
bool cause_refuses_all(enum cause c);

/* The rules that a case covers, in words.  They are those of tests/conformance/reqs. */

#define RULE_LINE 400 /* one rule in words, terminated */

/* Takes the next id from *@ids: "RFC 5041 section 7.1 (MUST, sink): ...".  Return: false: there is none. */
bool rules_next(const char **ids, char *id, size_t id_size, char line[RULE_LINE]);

/* The Terminate codes that stand in @text as 1/1/00, each a line: "1/1/00 is ...". */
void rules_print_codes(FILE *f, const char *text, const char *indent);

#endif
