/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef REPORT_CONFORM_IN_H
#define REPORT_CONFORM_IN_H
/* What the outputs of the conformance suites share. */
#include "report/conform_out.h"

const char *conform_verdict(uint32_t v);
const char *conform_grade(uint32_t g);

/* @k: NULL if there was no memory to keep it. */
void conform_json_case(const struct conform_out *c, const struct ddps_conform_result *r,
		       const struct kept_case *k);
void conform_json_end(const struct conform_out *c, const struct ddps_conform_sum *sum);

void conform_junit_begin(const struct conform_out *c);
void conform_junit_case(const struct conform_out *c, const struct ddps_conform_result *r,
			const struct kept_case *k);
void conform_junit_end(const struct conform_out *c);

/* The whole page; errors stay in ferror(). */
void conform_html(const struct conform_out *c, const struct ddps_conform_sum *sum);

/* As text of XML and of HTML, without what neither may have. */
void conform_escape(FILE *f, const char *s);

#endif
