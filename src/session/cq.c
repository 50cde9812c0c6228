/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: a ring, and a descriptor that is written when armed.  cq_take.c empties it. */
#include "session/cq_in.h"
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CQ_DEPTH_MAX (1u << 22)

int ddps_cq_new(struct ddps_ctx *ctx, uint32_t depth, struct ddps_cq **out)
{
	struct ddps_cq *cq;
	int err;

	if (!out || !depth || depth > CQ_DEPTH_MAX)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter_seldom(ctx);
	if (err < 0)
		return err;
	cq = calloc(1, sizeof *cq);
	if (cq)
		cq->ring = calloc(depth, sizeof *cq->ring);
	if (!cq || !cq->ring) {
		free(cq);
		err = DDPS_E_NOMEM;
		goto out;
	}
	cq->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	if (cq->fd < 0) {
		free(cq->ring);
		free(cq);
		err = DDPS_E_SYSTEM;
		goto out;
	}
	cq->ctx = ctx;
	cq->depth = depth;
	LIST_INSERT_HEAD(&ctx->cqs, cq, link);
	*out = cq;
out:
	ddps_ctx_leave(ctx);
	return err;
}

struct ddps_ctx *ddps_cq_ctx(const struct ddps_cq *cq)
{
	return cq->ctx;
}

void ddps_cq_destroy(struct ddps_cq *cq)
{
	ddps_assert_held(&cq->ctx->lock);
	cq->ctx->cqs_filled -= cq->count != 0;
	LIST_REMOVE(cq, link);
	close(cq->fd);
	free(cq->ring);
	free(cq);
}

void ddps_cqs_close(struct ddps_ctx *ctx)
{
	struct ddps_cq *cq;

	LIST_FOREACH(cq, &ctx->cqs, link)
		close(cq->fd);
}

int ddps_cq_free(struct ddps_cq *cq)
{
	struct ddps_ctx *ctx;
	int err;

	if (!cq)
		return 0;
	ctx = cq->ctx;
	err = ddps_ctx_enter_seldom(ctx);
	if (err < 0)
		return err;
	if (cq->users)
		err = DDPS_E_BUSY;
	else
		ddps_cq_destroy(cq);
	ddps_ctx_leave(ctx);
	return err;
}

void ddps_cq_get(struct ddps_cq *cq)
{
	ddps_assert_held(&cq->ctx->lock);
	cq->users++;
}

void ddps_cq_put(struct ddps_cq *cq)
{
	ddps_assert_held(&cq->ctx->lock);
	cq->users--;
}

static void cq_notify(struct ddps_cq *cq)
{
	uint64_t one = 1;

	cq->armed = cq->untold = ARMED_NO;
	if (cq->on_notify) {
		ddps_uncancellable_by_others();
		cq->on_notify(cq->on_notify_user);
		ddps_uncancellable_end();
		return;
	}
	ddps_uncancellable_within();
	if (!ddps_loop_owns(cq->ctx->env.loop) || write(cq->fd, &one, sizeof one) < 0)
		ddps_log(&cq->ctx->env.log, DDPS_LOG_ERROR, "cq", "eventfd: write failed");
	ddps_uncancellable_end();
}

/* Something has come that an arming like @meets, or one that meets more, waits for. */
static void notify_armed_cq(struct ddps_cq *cq, enum armed meets)
{
	if (cq->armed >= meets)
		cq_notify(cq);
	else if (cq->untold != ARMED_SOLICITED)
		cq->untold = meets;
}

/* What is to be done about the entry that is the latest now, but for notifications. */
static void attend(struct ddps_cq *cq)
{
	if (cq->stamps)
		ddps_cq_entry(cq, cq->count - 1)->time_ns = ddps_now();
	if (cq->sleepers)
		ddps_wake_one(cq->ctx, &cq->sleepers);
	if (cq->ctx->progress_sleepers)
		ddps_wake_driven(cq->ctx);
}

bool ddps_cq_attend(struct ddps_cq *cq, enum armed meets)
{
	attend(cq);
	notify_armed_cq(cq, meets);
	return true;
}

/* Whether nobody is to be informed of this one. */
static __attribute__((noinline, cold)) bool is_wc_muted(const struct ddps_wc *wc)
{
	unsigned queue = wc->op == DDPS_OP_RECV ? DDPS_MUTE_RECVS : DDPS_MUTE_SENDS;

	if (wc->status != DDPS_WC_FLUSHED || !(wc->ep->mute & queue))
		return false;
	wc->ep->muted |= (uint8_t)queue;
	return true;
}

bool ddps_cq_push(struct ddps_cq *cq, const struct ddps_wc *wc)
{
	struct ddps_wc *at = ddps_cq_take_entry(cq);

	if (!at)
		return false;
	*at = *wc;
	if (wc->status == DDPS_WC_SUCCESS)
		return ddps_cq_written(cq, wc->solicited ? ARMED_SOLICITED : ARMED_ANY);
	if (!is_wc_muted(wc))
		return ddps_cq_written(cq, ARMED_SOLICITED);
	attend(cq);
	return true;
}

uint32_t ddps_cq_room(const struct ddps_cq *cq)
{
	return cq->depth - cq->count;
}

void ddps_cq_forget(struct ddps_cq *cq, const struct ddps_ep *ep)
{
	uint32_t kept = 0;

	ddps_assert_held(&cq->ctx->lock);
	for (uint32_t i = 0; i < cq->count; i++) {
		const struct ddps_wc *wc = ddps_cq_entry(cq, i);

		if (wc->ep != ep)
			*ddps_cq_entry(cq, kept++) = *wc;
	}
	if (cq->count && !kept) {
		cq->untold = ARMED_NO;
		cq->ctx->cqs_filled--;
	}
	cq->count = kept;
}

/* What is in it goes to @ring, which becomes the queue's.  Return: what is to be freed. */
static struct ddps_wc *change_ring(struct ddps_cq *cq, struct ddps_wc *ring, uint32_t depth)
{
	struct ddps_wc *old = cq->ring;

	if (depth < cq->count)
		return ring;
	for (uint32_t i = 0; i < cq->count; i++)
		ring[i] = *ddps_cq_entry(cq, i);
	cq->ring = ring;
	cq->depth = depth;
	cq->head = 0;
	return old;
}

int ddps_cq_resize(struct ddps_cq *cq, uint32_t depth)
{
	struct ddps_wc *ring, *left;
	int err;

	if (!depth || depth > CQ_DEPTH_MAX)
		return DDPS_E_INVAL;
	ring = calloc(depth, sizeof *ring);
	err = ddps_ctx_enter_seldom(cq->ctx);
	if (err < 0 || !ring) {
		free(ring);
		if (!err)
			ddps_ctx_leave(cq->ctx);
		return err ? err : DDPS_E_NOMEM;
	}
	left = change_ring(cq, ring, depth);
	ddps_ctx_leave(cq->ctx);
	free(left);
	return left == ring ? DDPS_E_INVAL : 0;
}

int ddps_cq_stamp(struct ddps_cq *cq)
{
	int err = ddps_ctx_enter(cq->ctx);

	if (err < 0)
		return err;
	cq->stamps = 1;
	ddps_ctx_leave(cq->ctx);
	return 0;
}

int ddps_cq_overflowed(struct ddps_cq *cq)
{
	int err = ddps_ctx_enter_seldom(cq->ctx), lost;

	if (err < 0)
		return err;
	lost = cq->overflowed;
	ddps_ctx_leave(cq->ctx);
	return lost;
}

int ddps_cq_fd(struct ddps_cq *cq)
{
	return ddps_ctx_gone(cq->ctx) ? ddps_ctx_why_gone(cq->ctx) : cq->fd;
}

int ddps_cq_on_notify(struct ddps_cq *cq, void (*fn)(void *user), void *user)
{
	int err = ddps_ctx_enter(cq->ctx);

	if (err < 0)
		return err;
	cq->on_notify = fn;
	cq->on_notify_user = user;
	ddps_ctx_leave(cq->ctx);
	return 0;
}

int ddps_cq_arm(struct ddps_cq *cq, bool solicited_only)
{
	uint64_t count;
	int err = ddps_ctx_enter_seldom(cq->ctx);

	if (err < 0)
		return err;
	if (read(cq->fd, &count, sizeof count) < 0)
		count = 0; /* it was not readable */
	ddps_gather_look(cq->ctx);
	cq->armed = solicited_only ? ARMED_SOLICITED : ARMED_ANY;
	ddps_ctx_rely_on_thread(cq->ctx);
	if (cq->count)
		cq_notify(cq);
	ddps_ctx_leave(cq->ctx);
	return 0;
}

int ddps_cq_arm_next(struct ddps_cq *cq, bool solicited_only)
{
	enum armed wanted = solicited_only ? ARMED_SOLICITED : ARMED_ANY;
	int err = ddps_ctx_enter(cq->ctx);

	if (err < 0)
		return err;
	ddps_gather_look(cq->ctx);
	if (cq->armed < wanted)
		cq->armed = wanted;
	ddps_ctx_rely_on_thread(cq->ctx);
	if (cq->untold != ARMED_NO && cq->untold <= cq->armed)
		cq_notify(cq);
	ddps_ctx_leave(cq->ctx);
	return 0;
}

static int count_ep_completions(struct ddps_cq *cq, const struct ddps_ep *ep)
{
	int n = 0;

	for (uint32_t i = 0; i < cq->count; i++) {
		const struct ddps_wc *wc = ddps_cq_entry(cq, i);

		n += wc->ep == ep && wc->status != DDPS_WC_FLUSHED;
	}
	return n;
}

int ddps_ep_unfetched(struct ddps_ep *ep)
{
	int n = ddps_ctx_enter(ep->ctx);

	if (n < 0)
		return n;
	n = count_ep_completions(ep->recv_cq, ep);
	if (ep->send_cq != ep->recv_cq)
		n += count_ep_completions(ep->send_cq, ep);
	ddps_ctx_leave(ep->ctx);
	return n;
}

int ddps_ep_mute(struct ddps_ep *ep, unsigned queues)
{
	unsigned due;
	int err;

	if (queues & ~(unsigned)(DDPS_MUTE_SENDS | DDPS_MUTE_RECVS))
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ep->ctx);
	if (err < 0)
		return err;
	due = ep->muted & ~queues;
	ep->mute = (uint8_t)queues;
	ep->muted &= (uint8_t)queues;
	if (due & DDPS_MUTE_RECVS && ep->recv_cq->count)
		notify_armed_cq(ep->recv_cq, ARMED_SOLICITED);
	if (due & DDPS_MUTE_SENDS && ep->send_cq->count)
		notify_armed_cq(ep->send_cq, ARMED_SOLICITED);
	ddps_ctx_leave(ep->ctx);
	return 0;
}
