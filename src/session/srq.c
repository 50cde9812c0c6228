/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: the public face of rdmap/srq.h. */
#include "session/session.h"
#include <stdlib.h>

#define DEPTH_MAX 65535u
#define SGE_MAX	  16u

static struct ddps_ctx_srq *get_ctx_srq(struct ddps_srq *srq)
{
	return (struct ddps_ctx_srq *)srq;
}

static void build_srq_event(struct ddps_source *source, struct ddps_event *ev)
{
	struct ddps_ctx_srq *s =
		(struct ddps_ctx_srq *)((char *)source - offsetof(struct ddps_ctx_srq, source));

	ev->srq = &s->srq;
	ev->user = s->user;
}

static void report_srq_low(void *user)
{
	struct ddps_ctx_srq *s = user;

	ddps_event_push(s->srq.pd->ctx, &s->source, DDPS_EV_SRQ_LIMIT);
}

int ddps_srq_new(struct ddps_pd *pd, uint32_t depth, uint32_t max_sge, void *user,
		 struct ddps_srq **out)
{
	struct ddps_ctx_srq *s;
	int err;

	if (!pd || !out || !depth || depth > DEPTH_MAX || !max_sge || max_sge > SGE_MAX)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(pd->ctx);
	if (err < 0)
		return err;
	s = calloc(1, sizeof *s);
	err = s ? ddps_srq_init(&s->srq, pd, depth, max_sge) : DDPS_E_NOMEM;
	if (err < 0) {
		free(s);
	} else {
		s->srq.low = report_srq_low;
		s->srq.user = s;
		s->user = user;
		s->source.build = build_srq_event;
		LIST_INSERT_HEAD(&pd->ctx->srqs, s, link);
		*out = &s->srq;
	}
	ddps_ctx_leave(pd->ctx);
	return err;
}

void ddps_srq_destroy(struct ddps_ctx_srq *s)
{
	ddps_assert_held(&s->srq.pd->ctx->lock);
	ddps_event_drop(s->srq.pd->ctx, &s->source);
	ddps_srq_fini(&s->srq);
	LIST_REMOVE(s, link);
	free(s);
}

int ddps_srq_free(struct ddps_srq *srq)
{
	struct ddps_ctx *ctx;
	int err;

	if (!srq)
		return 0;
	ctx = srq->pd->ctx;
	err = ddps_ctx_enter(ctx);
	if (err < 0)
		return err;
	if (srq->users)
		err = DDPS_E_BUSY;
	else
		ddps_srq_destroy(get_ctx_srq(srq));
	ddps_ctx_leave(ctx);
	return err;
}

int ddps_post_srq_recv(struct ddps_srq *srq, uint64_t wr_id, const struct ddps_sge *sge,
		       uint32_t nsge)
{
	int err = ddps_ctx_enter(srq->pd->ctx);

	if (err < 0)
		return err;
	err = ddps_srq_post(srq, wr_id, sge, nsge);
	srq->pd->ctx->stats.srq_full += err == DDPS_E_LIMIT;
	ddps_ctx_leave(srq->pd->ctx);
	return err;
}

int ddps_srq_arm(struct ddps_srq *srq, uint32_t limit)
{
	int err = ddps_ctx_enter(srq->pd->ctx);

	if (err < 0)
		return err;
	if (limit > srq->depth)
		err = DDPS_E_INVAL;
	else
		ddps_srq_watch(srq, limit);
	ddps_ctx_leave(srq->pd->ctx);
	return err;
}

int ddps_srq_posted(struct ddps_srq *srq)
{
	int n = ddps_ctx_enter(srq->pd->ctx);

	if (n < 0)
		return n;
	n = (int)srq->count;
	ddps_ctx_leave(srq->pd->ctx);
	return n;
}

int ddps_take_srq_recv(struct ddps_srq *srq, uint64_t *wr_id, struct ddps_sge *sge, uint32_t *nsge)
{
	int err = ddps_ctx_enter(srq->pd->ctx);

	if (err < 0)
		return err;
	err = ddps_srq_pop(srq, wr_id, sge, nsge);
	ddps_ctx_leave(srq->pd->ctx);
	return err;
}
