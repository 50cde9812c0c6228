/* SPDX-License-Identifier: BSD-2-Clause */
/* Events and errors as lines of a log. */
#include "cli/out/out_json.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct out_log {
	FILE *f; /* in memory */
	char *text;
	size_t len;
	bool journal;
};

bool out_log_is_journal(void)
{
	const char *where = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return where && sscanf(where, "%ju:%ju", &dev, &ino) == 2 && !fstat(STDERR_FILENO, &st) &&
	       st.st_dev == dev && st.st_ino == ino;
}

int out_log_begin(struct out *o, bool journal)
{
	struct out_log *l = calloc(1, sizeof *l);

	if (!l)
		return -1;
	l->f = open_memstream(&l->text, &l->len);
	if (!l->f) {
		free(l);
		return -1;
	}
	l->journal = journal;
	o->log = l;
	o->f = l->f;
	o->colour = false;
	o->bar = false;
	return 0;
}

void out_log_end(struct out *o)
{
	struct out_log *l = o->log;

	fclose(l->f);
	free(l->text);
	free(l);
	o->log = NULL;
	o->f = stdout;
}

static void put_prefix(const struct out_log *l, FILE *f, int level)
{
	char date[24] = "";
	struct timespec now;
	struct tm tm;

	if (l->journal) {
		fprintf(f, "<%d>", level);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &tm))
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(f, "%s.%03ldZ %s: ", date, now.tv_nsec / 1000000,
		level == LOG_INFO      ? "info"
		: level == LOG_WARNING ? "warning"
				       : "error");
}

/* Rows below the first line are put behind it, each label a blank before what it is of. */
static void put_rows(FILE *f, const char *p, size_t len)
{
	const char *end = p + len;
	bool first = true;

	while (p < end) {
		size_t n = strcspn(p, "\n");
		const char *pad = memmem(p, n, "  ", 2);

		if (!first)
			fputs(", ", f);
		if (!first && pad) {
			fprintf(f, "%.*s ", (int)(pad - p), p);
			n -= (size_t)(pad - p);
			p = pad;
			n -= strspn(p, " ");
			p += strspn(p, " ");
		}
		fwrite(p, 1, n, f);
		p += n;
		p += strspn(p, "\n ");
		first = false;
	}
	fputc('\n', f);
}

void out_log_event(struct out *o)
{
	struct out_log *l = o->log;

	if (fflush(l->f) || !l->len)
		return;
	put_prefix(l, stdout, LOG_INFO);
	put_rows(stdout, l->text, l->len);
	rewind(l->f);
	if (fflush(stdout) && !o->write_errno)
		o->write_errno = errno;
}

static void put_line(const struct out *o, FILE *f, int level, const char *text, const char *advice)
{
	put_prefix(o->log, f, level);
	fprintf(f, "%s%s%s\n", text, advice ? "; try: " : "", advice ? advice : "");
}

void out_log_say(struct out *o, int level, const char *text, const char *advice)
{
	char *line = NULL;
	size_t len;
	FILE *f = open_memstream(&line, &len);

	if (f) {
		put_line(o, f, level, text, advice);
		if (fclose(f)) {
			free(line);
			line = NULL;
		}
	}
	if (line)
		fputs(line, o->err);
	else /* in pieces, then */
		put_line(o, o->err, level, text, advice);
	free(line);
}
