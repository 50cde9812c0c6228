/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events: what befalls a queue pair, a queue or a shared queue. */
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static struct vd_context *ctx_of(struct ibv_context *ctx)
{
	return vd_of(ctx, struct vd_context, v.context);
}

/* @a: the event's memory, or NULL. */
static void queue_async_event(struct ibv_context *ctx, enum ibv_event_type type, void *element,
			      struct vd_async *a)
{
	struct vd_context *c = ctx_of(ctx);
	uint64_t one = 1;

	if (!a || !vd_mine(c->p)) {
		free(a);
		return; /* as lost as the completions of a queue that overflowed */
	}
	a->e.event_type = type;
	a->e.element.qp = element;
	if (write(ctx->async_fd, &one, sizeof one) < 0)
		free(a);
	else /* who reads the count takes the lock, too */
		STAILQ_INSERT_TAIL(&c->async, a, link);
}

void vd_async_post(struct ibv_context *ctx, enum ibv_event_type type, void *element)
{
	ddps_assert_held(&vd_process_of(ctx)->lock);
	queue_async_event(ctx, type, element, calloc(1, sizeof(struct vd_async)));
}

int vd_async_keep(struct vd_async **kept)
{
	if (!*kept)
		*kept = calloc(1, sizeof **kept);
	return *kept ? 0 : ENOMEM;
}

void vd_async_tell(struct ibv_context *ctx, enum ibv_event_type type, void *element,
		   struct vd_async **kept)
{
	struct vd_async *a = *kept;

	ddps_assert_held(&vd_process_of(ctx)->lock);
	*kept = NULL;
	queue_async_event(ctx, type, element, a ? a : calloc(1, sizeof *a));
}

/* A queue is reported once: it stays what it is. */
static void report_cq_overflow(struct ibv_cq *ibcq)
{
	struct vd_cq *cq = vd_of(ibcq, struct vd_cq, cq);

	if (cq->overflow &&
	    (__atomic_load_n(&cq->lost, __ATOMIC_SEQ_CST) || ddps_cq_overflowed(cq->d) == 1))
		vd_async_tell(ibcq->context, IBV_EVENT_CQ_ERR, ibcq, &cq->overflow);
}

void vd_async_overflow(const struct ibv_qp *qp)
{
	ddps_assert_held(&vd_process_of(qp->context)->lock);
	report_cq_overflow(qp->recv_cq);
	if (qp->send_cq != qp->recv_cq)
		report_cq_overflow(qp->send_cq);
}

VD_API int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct vd_context *c = ctx_of(ctx);
	struct vd_async *a;
	uint64_t one;

	if (!vd_mine(c->p))
		return vd_fail(EINVAL); /* the parent's, from before a fork: so are its events */
	for (;;) {
		/* Blocks, or fails with EAGAIN, as the program set the descriptor. */
		if (read(ctx->async_fd, &one, sizeof one) != sizeof one)
			return -1;
		ddps_lock(&c->p->lock);
		a = STAILQ_FIRST(&c->async);
		if (a) {
			STAILQ_REMOVE_HEAD(&c->async, link);
			STAILQ_INSERT_HEAD(&c->p->unacked, a, link);
			*event = a->e;
		}
		ddps_unlock(&c->p->lock);
		if (a)
			return 0;
	}
}

VD_API void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct vd_process *p = vd_process();
	struct vd_async *a;

	if (!p)
		return; /* a child's is a new one, which knows no such event */
	ddps_lock(&p->lock);
	STAILQ_FOREACH(a, &p->unacked, link)
		if (a->e.element.qp == event->element.qp && a->e.event_type == event->event_type)
			break;
	if (a) {
		STAILQ_REMOVE(&p->unacked, a, vd_async, link);
		free(a);
		pthread_cond_broadcast(&p->acked);
	}
	ddps_unlock(&p->lock);
}

static bool has_unacked_event(const struct vd_process *p, const void *element)
{
	const struct vd_async *a;

	STAILQ_FOREACH(a, &p->unacked, link)
		if (a->e.element.qp == element)
			return true;
	return false;
}

static void drop_async_events(struct vd_context *c, const void *element)
{
	struct vd_async *next;

	for (struct vd_async *a = STAILQ_FIRST(&c->async); a; a = next) {
		next = STAILQ_NEXT(a, link);
		if (a->e.element.qp != element)
			continue;
		STAILQ_REMOVE(&c->async, a, vd_async, link);
		free(a);
		/* Its count; somebody who waits in ibv_get_async_event may have taken that. */
		vd_eventfd_take(c->v.context.async_fd);
	}
}

void vd_async_forget(struct ibv_context *ctx, const void *element)
{
	struct vd_context *c = ctx_of(ctx);

	ddps_assert_held(&vd_process_of(ctx)->lock);
	drop_async_events(c, element);
	while (has_unacked_event(c->p, element))
		pthread_cond_wait(&c->p->acked, &c->p->lock.m);
	drop_async_events(c, element); /* what has come meanwhile */
}

void vd_async_drop(struct ibv_context *ctx)
{
	struct vd_async *a;

	while ((a = STAILQ_FIRST(&ctx_of(ctx)->async))) {
		STAILQ_REMOVE_HEAD(&ctx_of(ctx)->async, link);
		free(a);
	}
}
