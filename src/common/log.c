/* SPDX-License-Identifier: BSD-2-Clause */
/* The log callback. */
#include "common/log.h"
#include "common/system/lock.h"
#include "common/system/say.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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
	ddps_uncancellable_by_others();
	log->fn(log->user, level, facility, line);
	ddps_uncancellable_end();
}

static const char *const facilities[] = { "cq", "event", "mpa", "sctp", "secure", "session" };
static const char *const levels[] = { "error", "warn", "info", "debug" };

#define FACILITIES (sizeof facilities / sizeof *facilities)
#define LEVELS	   (sizeof levels / sizeof *levels)

_Static_assert(FACILITIES == sizeof((struct ddps_log_filter *)0)->level / sizeof(int),
	       "a level for each facility");

/* Which of @words the @len octets at @s are, or -1. */
static int find_word(const char *const *words, size_t n, const char *s, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) == len && !memcmp(words[i], s, len))
			return (int)i;
	return -1;
}

/* A level; "none" is -1.  Return: whether it is one. */
static bool level_of(const char *s, size_t len, int *level)
{
	*level = find_word(levels, LEVELS, s, len);
	return *level >= 0 || (len == 4 && !memcmp(s, "none", 4));
}

int ddps_log_filter_parse(struct ddps_log_filter *f, const char *spec)
{
	bool named[FACILITIES] = { false };
	int others = -1, level, facility;

	for (const char *at = spec;; at++) {
		size_t len = strcspn(at, ","), name = strcspn(at, ":,");

		if (name == len) {
			if (!level_of(at, len, &others))
				return -1;
		} else {
			facility = find_word(facilities, FACILITIES, at, name);
			if (facility < 0 || !level_of(at + name + 1, len - name - 1, &level))
				return -1;
			f->level[facility] = level;
			named[facility] = true;
		}
		at += len;
		if (!*at)
			break;
	}
	for (size_t i = 0; i < FACILITIES; i++)
		if (!named[i])
			f->level[i] = others;
	return 0;
}

bool ddps_log_passes(const struct ddps_log_filter *f, enum ddps_log_level level,
		     const char *facility)
{
	int i = find_word(facilities, FACILITIES, facility, strlen(facility));

	return i < 0 || (int)level <= f->level[i];
}

void ddps_log_stderr(void *user, enum ddps_log_level level, const char *facility,
		     const char *message)
{
	static atomic_uint unwritten;
	struct pollfd p = { .fd = fileno(stderr), .events = POLLOUT };
	char before[80] = "";
	int keep = errno;
	unsigned n;

	if (user && !ddps_log_passes(user, level, facility))
		return;
	if (poll(&p, 1, 0) == 1) {
		n = atomic_exchange(&unwritten, 0);
		if (n)
			snprintf(before, sizeof before,
				 "ddpsess: log: %u lines left out: nobody read them\n", n);
		/* together: so much a pipe that is writable takes (pipe(7)) */
		ddps_say("%sddpsess: %s: %s\n", before, facility, message);
	} else {
		atomic_fetch_add(&unwritten, 1);
	}
	errno = keep;
}
