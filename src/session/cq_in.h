/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CQ_IN_H
#define DDPS_CQ_IN_H
/* A completion queue; private to cq.c and cq_take.c. */
#include "session/session.h"

enum armed { ARMED_NO, ARMED_SOLICITED, ARMED_ANY }; /* each meets what the one before meets */

struct ddps_cq {
	struct ddps_ctx *ctx;
	LIST_ENTRY(ddps_cq) link;
	uint32_t depth, head, count;
	unsigned users, sleepers;
	bool overflowed; /* once, and from then on */
	unsigned stamps; /* not 0: completions say when they came */
	int fd;
	enum armed armed;
	void (*on_notify)(void *user); /* called then, or NULL: the descriptor is written */
	void *on_notify_user;
	enum armed untold; /* what came while nobody had armed would have met this arming */
	uint64_t taken;	   /* completions, ever */
	uint64_t brought;  /* what it will be when all that the poller's last turn left is taken */
	struct ddps_wc *ring;
};

/* The @i-th entry from the oldest; no division, which takes longer than all the rest. */
static inline struct ddps_wc *ddps_cq_entry(struct ddps_cq *cq, uint32_t i)
{
	uint32_t to_end = cq->depth - cq->head;

	return &cq->ring[i < to_end ? cq->head + i : i - to_end];
}

#endif
