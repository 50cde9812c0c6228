/* SPDX-License-Identifier: BSD-2-Clause */
/* See fuzz.h. */
#include "fuzz.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void fuzz_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
	abort();
}

uint8_t *fuzz_exact(const void *p, size_t n)
{
	uint8_t *copy = malloc(n);

	FUZZ_CHECK(copy || !n);
	if (n)
		memcpy(copy, p, n);
	return copy;
}

const uint8_t *fuzz_some(struct ddps_rbuf *in, size_t n, size_t *got)
{
	size_t left = in->failed ? 0 : ddps_rbuf_left(in);

	*got = n < left ? n : left;
	return ddps_rbuf_take(in, *got);
}

char *fuzz_text(struct ddps_rbuf *in)
{
	size_t n;
	const uint8_t *p = fuzz_some(in, SIZE_MAX, &n);
	char *text = malloc(n + 1);

	FUZZ_CHECK(text);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)(p[i] ? p[i] : ' ');
	text[n] = 0;
	return text;
}

const char *fuzz_file(const void *p, size_t n)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		FUZZ_CHECK(fd >= 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	FUZZ_CHECK(!ftruncate(fd, 0));
	FUZZ_CHECK(pwrite(fd, p, n, 0) == (ssize_t)n);
	return path;
}

/* ---- the log ---- */

static void mix(struct fuzz_log *l, const void *p, size_t n)
{
	const uint8_t *octet = p;

	for (size_t i = 0; i < n; i++)
		l->hash = (l->hash ^ octet[i]) * 0x100000001b3;
}

static bool tracing(void)
{
	static int on = -1;

	if (on < 0)
		on = getenv("FUZZ_TRACE") != NULL;
	return on;
}

void fuzz_note(struct fuzz_log *l, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	FUZZ_CHECK(n > 0 && (size_t)n < sizeof line);
	l->lines++;
	mix(l, line, (size_t)n);
	if (tracing())
		fprintf(stderr, "  %s\n", line);
}

void fuzz_note_octets(struct fuzz_log *l, const char *what, const void *p, size_t n)
{
	const uint8_t *octet = p;

	fuzz_note(l, "%s, %zu octets", what, n);
	mix(l, p, n);
	for (size_t i = 0; tracing() && i < n; i++)
		fprintf(stderr, "%s%02x", i % 32 ? " " : "\n   ", octet[i]);
	if (tracing() && n)
		fputc('\n', stderr);
}
