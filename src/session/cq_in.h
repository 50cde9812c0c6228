/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CQ_IN_H
#define DDPS_CQ_IN_H
/* A completion queue; private to cq.c, cq_take.c, gather.c and ep_up.c. */
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
	uint32_t at = cq->head + i;

	return &cq->ring[at < cq->depth ? at : at - cq->depth];
}

/* The place of the next one, which is to be written now.  NULL: it is full. */
static inline struct ddps_wc *ddps_cq_take_entry(struct ddps_cq *cq)
{
	ddps_assert_held(&cq->ctx->lock);
	if (cq->count == cq->depth) {
		cq->overflowed = true;
		return NULL;
	}
	cq->ctx->cqs_filled += !cq->count;
	return ddps_cq_entry(cq, cq->count++);
}

/* It is written, and somebody waits for one like it, or for any; or wants to know when.  Return: true. */
bool ddps_cq_attend(struct ddps_cq *cq, enum armed meets);

/* It is written: something that an arming like @meets, or one that meets more, waits for.  Return: true. */
static inline bool ddps_cq_written(struct ddps_cq *cq, enum armed meets)
{
	if (cq->sleepers | cq->ctx->progress_sleepers | cq->stamps || cq->armed >= meets)
		return ddps_cq_attend(cq, meets);
	if (cq->untold != ARMED_SOLICITED)
		cq->untold = meets;
	return true;
}

/* ddps_cq_push of one that has succeeded, of which no more is to be said. */
static inline bool ddps_cq_push_success(struct ddps_cq *cq, struct ddps_ep *ep, enum ddps_op op,
					uint64_t wr_id, uint32_t len)
{
	struct ddps_wc *at = ddps_cq_take_entry(cq);

	if (!at)
		return false;
	*at = (struct ddps_wc){ .wr_id = wr_id, .ep = ep, .user = ep->user, .op = op, .len = len };
	return ddps_cq_written(cq, ARMED_ANY);
}

#endif
