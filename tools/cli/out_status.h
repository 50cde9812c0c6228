/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OUT_STATUS_H
#define SESSCTL_OUT_STATUS_H
/* How a session stands, and the SCTP association below it: one line, or one JSON object. */
#include "cli/out.h"
#include <ddpsess/stats.h>

#define OUT_PATHS_MAX 8

struct out_status {
	double seconds;		 /* since somebody began to look */
	uint64_t sent, received; /* octets behind DDP headers */
	uint64_t held;
	bool has_assoc;
	struct ddps_assoc_stats assoc;
	struct ddps_path_stats path[OUT_PATHS_MAX];
};

/* Read what there is of @ep; all but @st->seconds is set.  0, or -1: nothing can be read. */
int out_status_read(struct out_status *st, struct ddps_ep *ep);
void out_status(struct out *o, unsigned session, const struct out_status *st);

#endif
