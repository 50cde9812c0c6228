/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_ERROR_H
#define DDPS_ERROR_H
#include <ddpsess/err.h>

/* Build a struct ddps_error: code, errno or 0, and one sentence.  The triple is left unset. */
struct ddps_error ddps_error_make(int code, int sys_errno, const char *fmt, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* The same with a Terminate code, found by this side. */
struct ddps_error ddps_error_triple(int code, struct ddps_triple t, const char *fmt, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* One that will be reported later: what lives long has it in 16 octets until there is one. */
struct ddps_kept_error {
	int code;
	bool has_triple : 1, by_peer : 1;
	struct ddps_triple triple;
	struct ddps_error *all; /* NULL: there is no more than the above */
};

/* Keep @e instead of what was kept before; without memory, what a program decides by. */
void ddps_error_keep(struct ddps_kept_error *k, const struct ddps_error *e);
struct ddps_error ddps_error_kept(const struct ddps_kept_error *k);
void ddps_error_drop(struct ddps_kept_error *k);

/* The DDPS_E_* value that fits an errno of connect, send or recv. */
int ddps_err_from_errno(int sys_errno);

#endif
