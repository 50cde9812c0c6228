/* SPDX-License-Identifier: BSD-2-Clause */
/* Error texts, names of requests and of Terminate codes, and building of struct ddps_error. */
#include "common/error.h"
#include "common/error_text.h"
#include "common/term_codes.h"
#include <ddpsess/wr.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

const char *ddps_strerror(int err)
{
	return ddps_error_text(err);
}

const char *ddps_triple_name(const struct ddps_triple *t)
{
	struct ddps_triple key = *t;

	/* RFC 6580 3: here every code is of this error. */
	if ((t->layer == 0 && t->etype == 0) || (t->layer == 1 && (t->etype == 0 || t->etype == 3)))
		key.code = 0;
	switch (ddps_term_of(&key)) {
#define DDPS_X(name, layer, etype, code, text)                                                     \
	case DDPS_TERM_##name:                                                                     \
		return text;
		DDPS_TERM_CODES(DDPS_X)
#undef DDPS_X
	}
	return "unassigned error";
}

static struct ddps_error error_make(int code, int sys_errno, const char *fmt, va_list ap)
{
	struct ddps_error e = { .code = code, .sys_errno = sys_errno };

	vsnprintf(e.text, sizeof e.text, fmt, ap);
	return e;
}

struct ddps_error ddps_error_make(int code, int sys_errno, const char *fmt, ...)
{
	struct ddps_error e;
	va_list ap;

	va_start(ap, fmt);
	e = error_make(code, sys_errno, fmt, ap);
	va_end(ap);
	return e;
}

struct ddps_error ddps_error_triple(int code, struct ddps_triple t, const char *fmt, ...)
{
	struct ddps_error e;
	va_list ap;

	va_start(ap, fmt);
	e = error_make(code, 0, fmt, ap);
	va_end(ap);
	e.has_triple = true;
	e.triple = t;
	return e;
}

int ddps_err_from_errno(int sys_errno)
{
	switch (sys_errno) {
	case ECONNREFUSED:
		return DDPS_E_REFUSED;
	case ETIMEDOUT:
		return DDPS_E_TIMEDOUT;
	case ECONNRESET:
	case EPIPE:
	case ECONNABORTED:
		return DDPS_E_RESET;
	case ENOMEM:
	case ENOBUFS:
		return DDPS_E_NOMEM;
	default:
		return DDPS_E_SYSTEM;
	}
}

void ddps_error_keep(struct ddps_kept_error *k, const struct ddps_error *e)
{
	bool more = e->code || e->has_triple || e->text[0] || e->peer[0];

	ddps_error_drop(k);
	k->code = e->code;
	k->has_triple = e->has_triple;
	k->by_peer = e->by_peer;
	k->triple = e->triple;
	k->all = more ? malloc(sizeof *k->all) : NULL;
	if (k->all)
		*k->all = *e;
}

struct ddps_error ddps_error_kept(const struct ddps_kept_error *k)
{
	struct ddps_error e = { .code = 0 };

	if (k->all)
		return *k->all;
	if (k->code)
		e = ddps_error_make(k->code, 0, "%s (no memory for the details)",
				    ddps_strerror(k->code));
	e.has_triple = k->has_triple;
	e.by_peer = k->by_peer;
	e.triple = k->triple;
	return e;
}

void ddps_error_drop(struct ddps_kept_error *k)
{
	free(k->all);
	*k = (struct ddps_kept_error){ 0 };
}

const char *ddps_op_name(enum ddps_op op)
{
	static const char *const names[] = { "send", "write",	  "read",      "recv",
					     "imm",  "write-imm", "fetch-add", "cmp-swap",
					     "bind", "local-inv", "send-imm",  "atomic-write",
					     "flush" };

	return (unsigned)op < sizeof names / sizeof names[0] ? names[op] : "unknown";
}

const char *ddps_wc_status_name(enum ddps_wc_status status)
{
	static const char *const names[] = {
		"success",	"local access error",
		"length error", "remote error",
		"flushed",	"the peer's host does not answer",
	};

	return (unsigned)status < sizeof names / sizeof names[0] ? names[status] : "unknown";
}
