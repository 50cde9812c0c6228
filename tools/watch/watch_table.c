/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of all processes, the busiest first. */
#include "watch/watch.h"
#include "cli/text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct line {
	const json_t *process, *session;
	double sent, received;
	size_t nth;
};

static const json_t *same_session(const json_t *before, uint64_t number)
{
	const json_t *s;
	size_t i;

	json_array_foreach(json_object_get(before, "sessions"), i,
			   s) if (watch_number(s, "session") == number) return s;
	return NULL;
}

static int busier(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	double p = x->sent + x->received, q = y->sent + y->received;

	return p < q ? 1 : p > q ? -1 : (x->nth > y->nth) - (x->nth < y->nth);
}

static size_t count_sessions(const json_t *all)
{
	const json_t *p;
	const char *key;
	size_t n = 0;

	json_object_foreach((json_t *)(uintptr_t)all, key, p) n +=
		json_array_size(json_object_get(p, "sessions"));
	return n;
}

/* Every session with its rates. */
static void gather_lines(struct line *to, const json_t *all, const json_t *before)
{
	const json_t *p, *s, *was;
	const char *key;
	size_t i, n = 0;

	json_object_foreach((json_t *)(uintptr_t)all, key, p)
	{
		const json_t *old = json_object_get(before, key);
		uint64_t ns = watch_number(p, "time_ns") - watch_number(old, "time_ns");

		json_array_foreach(json_object_get(p, "sessions"), i, s)
		{
			was = old ? same_session(old, watch_number(s, "session")) : NULL;
			to[n] = (struct line){ p, s, watch_rate(s, was, "sent", ns),
					       watch_rate(s, was, "received", ns), n };
			n++;
		}
	}
}

/* What there is to see of a session, each from a width of the table on. */
static const struct column {
	const char *head;
	int width; /* negative: to the left */
	unsigned from;
} columns[] = {
	{ "PID", 7, 0 },       { "PROGRAM", -15, 78 },	{ "NO", 5, 78 },
	{ "WIRE", -5, 93 },    { "STATE", -10, 133 },	{ "PEER", -27, 133 },
	{ "PEER", -21, 78 },   { "PEER", -15, 0 },	{ "SENT", 12, 0 },
	{ "RECEIVED", 12, 0 }, { "SEND/RECV", 9, 133 }, { "STALLS", 6, 133 },
	{ "RESENT", 6, 133 },  { "RTT ms", 8, 93 },
};

#define NCOLUMNS (sizeof columns / sizeof *columns)

/* Of columns with one head the widest one is shown. */
static bool is_shown(size_t i, unsigned width)
{
	return columns[i].from <= width &&
	       (!i || strcmp(columns[i].head, columns[i - 1].head) != 0 ||
		columns[i - 1].from > width);
}

static void put_cells(FILE *f, char cell[NCOLUMNS][48], unsigned width)
{
	const char *sep = "";

	for (size_t i = 0; i < NCOLUMNS; i++) {
		const char *text = cell ? cell[i] : columns[i].head;
		int w = columns[i].width;

		if (!is_shown(i, width))
			continue;
		/* texts are cut, figures are not */
		fprintf(f, "%s%*.*s", sep, w, w < 0 ? (int)text_fit(text, (size_t)-w) : -1, text);
		sep = " ";
	}
	fputc('\n', f);
}

static void put_table_line(FILE *f, const struct line *l, unsigned width)
{
	static const char *const texts[] = { "transport", "state", "peer", "peer", "peer" };
	static const char *const counts[] = { "stalls", "retransmitted" };
	const uint64_t rtt = watch_number(l->session, "srtt_ns");
	char cell[NCOLUMNS][48];

	snprintf(cell[0], sizeof *cell, "%" PRIu64, watch_number(l->process, "pid"));
	watch_string(cell[1], sizeof *cell, l->process, "program");
	snprintf(cell[2], sizeof *cell, "%" PRIu64, watch_number(l->session, "session"));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		watch_string(cell[3 + i], sizeof *cell, l->session, texts[i]);
	text_rate(cell[8], sizeof *cell, l->sent);
	text_rate(cell[9], sizeof *cell, l->received);
	snprintf(cell[10], sizeof *cell, "%" PRIu64 "/%" PRIu64,
		 watch_number(l->session, "sends_posted"),
		 watch_number(l->session, "recvs_posted"));
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (json_object_get(l->session, counts[i]))
			snprintf(cell[11 + i], sizeof *cell, "%" PRIu64,
				 watch_number(l->session, counts[i]));
		else
			strcpy(cell[11 + i], "-");
	if (rtt)
		snprintf(cell[13], sizeof *cell, "%.3f", (double)rtt / 1e6);
	else
		strcpy(cell[13], "-"); /* not measured, or nothing to measure */
	put_cells(f, cell, width);
}

void watch_table(struct out *o, const json_t *all, const json_t *before, unsigned lines)
{
	size_t n = count_sessions(all), shown = n;
	struct line *l = calloc(n + 1, sizeof *l);
	double sent = 0, received = 0;
	unsigned width = text_width(o->f);
	char a[24], b[24], head[160];

	if (!l) {
		out_error(o, 0, NULL, "out of memory");
		return;
	}
	gather_lines(l, all, before);
	qsort(l, n, sizeof *l, busier);
	for (size_t i = 0; i < n; i++) {
		sent += l[i].sent;
		received += l[i].received;
	}
	text_rate(a, sizeof a, sent);
	text_rate(b, sizeof b, received);
	snprintf(head, sizeof head, "contexts %zu, sessions %zu, sent %s, received %s",
		 json_object_size(all), n, a, b);
	text_fold(o->f, head, 0, 2, width);
	put_cells(o->f, NULL, width);
	if (lines && lines < n + 3)
		shown = lines > 4 ? lines - 4 : 1;
	for (size_t i = 0; i < n && i < shown; i++)
		put_table_line(o->f, &l[i], width);
	if (shown < n)
		fprintf(o->f, "%zu more\n", n - shown);
	free(l);
	out_flush(o);
}
