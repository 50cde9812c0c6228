/* SPDX-License-Identifier: BSD-2-Clause */
/* When to tell how sessions stand. */
#include "xfer/watch.h"

void watch_begin(struct watch *w, uint32_t ms)
{
	w->every = ms * NS_PER_MS;
	w->begin = clock_ns();
	w->due = w->begin + w->every;
}

bool watch_due(struct watch *w)
{
	uint64_t now;

	if (!w->every)
		return false;
	now = clock_ns();
	if (now < w->due)
		return false;
	w->due += w->every;
	if (w->due < now) /* it was late by more than one */
		w->due = now + w->every;
	return true;
}

uint64_t watch_until(const struct watch *w, uint64_t due)
{
	return w->every && (!due || w->due < due) ? w->due : due;
}

void watch_show(const struct watch *w, struct out *o, unsigned session, struct ddps_ep *ep)
{
	struct out_status st = { .seconds = (double)(clock_ns() - w->begin) / (double)NS_PER_S };

	if (!out_status_read(&st, ep))
		out_status(o, session, &st);
}
