/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_TWO_H
#define DDPS_TEST_TWO_H
/* Contexts of which each is used by threads of its own, and sessions between them. */
#include "support/e2e.h"
#include <pthread.h>

struct two_side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_listener *listener;
	char uri[128];
};

void two_open(struct two_side *s, bool thread, bool poll_drives);
void two_close(struct two_side *s);
/* An endpoint with queues of @cq. */
struct ddps_ep *two_ep(struct two_side *s, struct ddps_cq *cq);
struct ddps_cq *two_cq(struct two_side *s);
/* A session from @a to @b, both of whose endpoints are new; nobody else takes events meanwhile. */
void two_connect(struct two_side *a, struct ddps_ep *from, struct two_side *b, struct ddps_ep *to,
		 const char *wire);

/* A thread that sends zero-length Writes on @ep, as fast as they go, until it is stopped. */
struct two_flood {
	struct two_side *side;
	struct ddps_ep *ep;
	struct ddps_cq *cq;
	pthread_t thread;
	bool stop; /* atomic */
};
void two_flood_start(struct two_flood *f, struct two_side *s, struct ddps_ep *ep,
		     struct ddps_cq *cq);
void two_flood_stop(struct two_flood *f);

uint64_t two_ms(void); /* monotonic */

#endif
