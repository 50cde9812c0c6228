/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_WATCH_H
#define SESSCTL_WATCH_H
/* --stat: how sessions stand, at this interval. */
#include "cli/out/out_json.h"
#include "cli/sessctl.h"

struct watch {
	uint64_t every; /* ns; 0: never */
	uint64_t begin, due;
};

/* From now on, every @ms; 0: never. */
void watch_begin(struct watch *w, uint32_t ms);
/* Whether it is time; the next time is then set. */
bool watch_due(struct watch *w);
/* The earlier of @due (0: none) and the next time. */
uint64_t watch_until(const struct watch *w, uint64_t due);
void watch_show(const struct watch *w, struct out *o, unsigned session, struct ddps_ep *ep);

#endif
