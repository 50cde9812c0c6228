/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_LINT_H
#define DDPS_CONFORM_LINT_H
/* What holds of every packet that anyone sends: RFC 9260 sections 3, 6.8 and 6.10. */
struct cf_raw;

/* Fails the case if r->in is not as it must be. */
void cf_raw_lint(struct cf_raw *r);

#endif
