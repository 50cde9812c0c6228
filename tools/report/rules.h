/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef REPORT_RULES_H
#define REPORT_RULES_H
/* The rules that a case covers, in words.  They are those of tests/conformance/reqs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define RULE_LINE 400 /* one rule in words, terminated */

/* Takes the next id from *@ids: "RFC 5041 section 7.1 (MUST, sink): ...".  Return: false: there is none. */
bool rules_next(const char **ids, char *id, size_t id_size, char line[RULE_LINE]);

/* The Terminate codes that stand in @text as 1/1/00, each a line: "1/1/00 is ...". */
void rules_print_codes(FILE *f, const char *text, const char *indent);

#endif
