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
	struct vd_async **at = &c->async;
	uint64_t one = 1;

	if (!a || !vd_mine(c->p)) {
		free(a);
		return; /* as lost as the completions of a queue that overflowed */
	}
	a->e.event_type = type;
	a->e.element.qp = element;
	while (*at)
		at = &(*at)->next;
	*at = a;
	if (write(ctx->async_fd, &one, sizeof one) < 0) {
		*at = NULL;
		free(a);
	}
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
		a = c->async;
		if (a) {
			c->async = a->next;
			a->next = c->p->unacked;
			c->p->unacked = a;
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
	struct vd_async **at, *a;

	if (!p)
		return; /* a child's is a new one, which knows no such event */
	ddps_lock(&p->lock);
	at = &p->unacked;
	while ((a = *at) &&
	       (a->e.element.qp != event->element.qp || a->e.event_type != event->event_type))
		at = &a->next;
	if (a) {
		*at = a->next;
		free(a);
		pthread_cond_broadcast(&p->acked);
	}
	ddps_unlock(&p->lock);
}

static bool has_unacked_event(const struct vd_process *p, const void *element)
{
	for (const struct vd_async *a = p->unacked; a; a = a->next)
		if (a->e.element.qp == element)
			return true;
	return false;
}

static void drop_async_events(struct vd_context *c, const void *element)
{
	struct vd_async **at = &c->async, *a;

	while ((a = *at)) {
		if (a->e.element.qp != element) {
			at = &a->next;
			continue;
		}
		*at = a->next;
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

	while ((a = ctx_of(ctx)->async)) {
		ctx_of(ctx)->async = a->next;
		free(a);
	}
}
