/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress bar: share, rate and time left, redrawn in place on standard error. */
#include "cli/out/out.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <string.h>
#include <sys/ioctl.h>

#define BAR_WIDTH  24
#define BAR_ROOM   (BAR_WIDTH + 3) /* with brackets and a blank */
#define NAME_WIDTH 30
#define NAME_LEAST 8 /* columns; a name shorter than that goes before the bar does */
#define COLUMNS	   80
#define REDRAW_NS  (100 * NS_PER_MS)

static size_t columns_of(const struct out *o)
{
	struct winsize w;

	if (o->columns)
		return o->columns;
	return ioctl(fileno(o->err), TIOCGWINSZ, &w) || !w.ws_col ? COLUMNS : w.ws_col;
}

/* On one line, whatever its width: the bar goes first, then the name.  The last column stays free,
 * because terminals wrap there. */
static void draw_bar(struct out *o, const char *name, const char *bar, const char *rest)
{
	size_t room = columns_of(o) - 1, tail = strlen(rest), left;
	bool with_bar = room >= NAME_LEAST + BAR_ROOM + 1 + tail;

	left = tail + (with_bar ? BAR_ROOM : 0) + 1;
	left = room > left ? room - left : 0;
	fprintf(o->err, "\r\033[K");
	if (left)
		fprintf(o->err, "%.*s ", (int)text_fit(name, left < NAME_WIDTH ? left : NAME_WIDTH),
			name);
	if (with_bar)
		fprintf(o->err, "[%s] ", bar);
	fprintf(o->err, "%.*s", (int)room, rest);
	fflush(o->err);
}

void out_progress(struct out *o, const char *name, uint64_t done, uint64_t total)
{
	uint64_t now;
	char bar[BAR_WIDTH + 1], rate[24], left[24], rest[80];
	double share, seconds, speed;
	size_t full;

	if (!o->bar || !total)
		return;
	now = clock_ns();
	if (!o->bar_begin)
		o->bar_begin = now;
	if (now < o->bar_due)
		return;
	o->bar_due = now + REDRAW_NS;
	share = (double)done / (double)total;
	seconds = (double)(now - o->bar_begin) / (double)NS_PER_S;
	speed = seconds > 0 ? (double)done / seconds : 0;
	full = (size_t)(share * BAR_WIDTH);
	memset(bar, '#', full);
	memset(bar + full, '-', BAR_WIDTH - full);
	bar[BAR_WIDTH] = 0;
	text_rate(rate, sizeof rate, speed);
	text_time(left, sizeof left, speed > 0 ? (double)(total - done) / speed : 0);
	snprintf(rest, sizeof rest, "%3.0f%%  %s  %s left", share * 100, rate, left);
	draw_bar(o, name, bar, rest);
}

void out_progress_end(struct out *o)
{
	if (o->bar_begin)
		fputs("\r\033[K", o->err);
	o->bar_begin = 0;
	o->bar_due = 0;
}
