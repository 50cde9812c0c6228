/* SPDX-License-Identifier: BSD-2-Clause */
/* The log callback. */
#include "common/log.h"
#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX_LEN 400

void ddps_log(const struct ddps_log *log, enum ddps_log_level level, const char *facility,
	      const char *fmt, ...)
{
	char line[LINE_MAX_LEN];
	va_list ap;

	if (!log->fn)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	log->fn(log->user, level, facility, line);
}

void ddps_log_stderr(void *user, enum ddps_log_level level, const char *facility,
		     const char *message)
{
	(void)user;
	(void)level;
	fprintf(stderr, "ddpsess: %s: %s\n", facility, message);
}
