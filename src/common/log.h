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

/* Which messages are written: "info", "mpa:debug,sctp:warn", "debug,session:none".  What names a
 * facility is for that one, a level alone for all that are not named. */
struct ddps_log_filter {
	int level[6]; /* of each facility: the most talkative that is written, -1: none */
};

/* Return: 0, or -1: @spec is not of that form, or names no facility or level that there is. */
int ddps_log_filter_parse(struct ddps_log_filter *f, const char *spec);
bool ddps_log_passes(const struct ddps_log_filter *f, enum ddps_log_level level,
		     const char *facility);

/* Writes "ddpsess: facility: message" to stderr, or, where a pipe is full, how many were left out, later: a
 * session does not wait for whoever reads the log.  @user: a struct ddps_log_filter, or NULL. */
void ddps_log_stderr(void *user, enum ddps_log_level level, const char *facility,
		     const char *message);

#endif
