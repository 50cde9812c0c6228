/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_LOG_H
#define DDPS_LOG_H
#include <ddpsess/session.h>

struct ddps_log {
	ddps_log_fn *fn; /* NULL: off */
	void *user;
};

void ddps_log(const struct ddps_log *log, enum ddps_log_level level, const char *facility,
	      const char *fmt, ...) __attribute__((cold, format(printf, 4, 5)));

/* Writes "ddpsess: facility: message" to stderr. */
void ddps_log_stderr(void *user, enum ddps_log_level level, const char *facility,
		     const char *message);

#endif
