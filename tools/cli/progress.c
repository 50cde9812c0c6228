/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress bar: share, rate and time left, redrawn in place on standard error. */
#include "cli/out.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <string.h>

#define BAR_WIDTH 24
#define REDRAW_NS (100 * NS_PER_MS)

void out_progress(struct out *o, const char *name, uint64_t done, uint64_t total)
{
	uint64_t now;
	char bar[BAR_WIDTH + 1], rate[24], left[24];
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
	fprintf(o->err, "\r\033[K%.30s [%s] %3.0f%%  %s  %s left", name, bar, share * 100, rate,
		left);
	fflush(o->err);
}

void out_progress_end(struct out *o)
{
	if (o->bar_begin)
		fputs("\r\033[K", o->err);
	o->bar_begin = 0;
	o->bar_due = 0;
}
