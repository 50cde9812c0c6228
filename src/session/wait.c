/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for events and completions, any number of threads on one context.
 *
 * One of them leads: it sleeps on the loop's descriptor and serves what comes, for everybody.  The
 * others follow: each sleeps on a word of its own until what it waits for has come, whoever made it
 * come, or until the leader leaves and makes it leader.  In a context with a library thread that
 * thread leads, and all who wait follow.
 */
#include "session/session.h"
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Absolute time.  A deadline is always given: without one a handler that was installed with
 * SA_RESTART would not end the wait. */
static int futex_wait(uint32_t *word, uint64_t deadline)
{
	const uint64_t sec = deadline / NSEC_PER_SEC;
	struct timespec at = { .tv_sec = sec > INT32_MAX ? INT32_MAX : (time_t)sec,
			       .tv_nsec = (long)(deadline % NSEC_PER_SEC) };

	if (!syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, 0, &at, NULL,
		     FUTEX_BITSET_MATCH_ANY))
		return 0;
	switch (errno) {
	case EAGAIN: /* woken before it slept */
		return 0;
	case ETIMEDOUT:
		return DDPS_E_TIMEDOUT;
	case EINTR:
		return DDPS_E_AGAIN;
	default:
		return DDPS_E_SYSTEM;
	}
}

/* With the lock, so that @w stays where it is. */
static void wake_waiter(struct ddps_ctx *ctx, struct ddps_waiter *w)
{
	__atomic_store_n(&w->woken, 1, __ATOMIC_RELAXED);
	if (w == ctx->leader && w->on_loop)
		ddps_loop_wake(ctx->env.loop);
	else
		syscall(SYS_futex, &w->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void ddps_wake_one(struct ddps_ctx *ctx, const unsigned *what)
{
	struct ddps_waiter *w;

	ddps_assert_held(&ctx->lock);
	LIST_FOREACH(w, &ctx->waiters, of_all)
		if (w->what == what && w->asleep && !w->woken) {
			wake_waiter(ctx, w);
			return;
		}
}

void ddps_wake_driven(struct ddps_ctx *ctx)
{
	struct ddps_waiter *w;

	ddps_assert_held(&ctx->lock);
	LIST_FOREACH(w, &ctx->waiters, of_all)
		if (w->what == &ctx->progress_sleepers && w->asleep && !w->woken)
			wake_waiter(ctx, w);
}

void ddps_wake_all(struct ddps_ctx *ctx)
{
	struct ddps_waiter *w;

	ddps_assert_held(&ctx->lock);
	/* The loop's descriptors are not to be touched: who leads sleeps on. */
	LIST_FOREACH(w, &ctx->waiters, of_all)
		if (w->asleep && !w->on_loop)
			wake_waiter(ctx, w);
}

static void fall_asleep(struct ddps_ctx *ctx, struct ddps_waiter *w)
{
	w->woken = 0;
	w->asleep = true;
	++*w->what;
	ddps_uncancellable(); /* @w is on this thread's stack */
	ddps_ctx_leave(ctx);
}

static void wake_up(struct ddps_ctx *ctx, struct ddps_waiter *w)
{
	ddps_lock(&ctx->lock);
	ddps_uncancellable_end();
	--*w->what;
	w->asleep = w->on_loop = false;
}

static int follow_leader(struct ddps_ctx *ctx, struct ddps_waiter *w, uint64_t deadline)
{
	int err;

	if (ctx->attr.thread)
		ddps_ctx_rely_on_thread(ctx);
	fall_asleep(ctx, w);
	err = futex_wait(&w->woken, deadline);
	wake_up(ctx, w);
	return err;
}

static int lead_waiters(struct ddps_ctx *ctx, struct ddps_waiter *w, uint64_t deadline)
{
	int fd = ddps_loop_sleep(ctx->env.loop), n;

	w->on_loop = true;
	fall_asleep(ctx, w);
	n = ddps_wait_fd(fd, deadline);
	wake_up(ctx, w);
	if (ddps_ctx_gone(ctx))
		return ddps_ctx_why_gone(ctx);
	ddps_loop_slept(ctx->env.loop);
	ddps_loop_awake(ctx->env.loop);
	if (n <= 0)
		return n ? n : DDPS_E_TIMEDOUT;
	n = w->drive(ctx->env.loop);
	if (n > 0 && ctx->progress_sleepers)
		ddps_wake_driven(ctx);
	return n;
}

static void join_waiters(struct ddps_ctx *ctx, struct ddps_waiter *w)
{
	if (!w->joined)
		LIST_INSERT_HEAD(&ctx->waiters, w, of_all);
	w->joined = true;
}

int ddps_sleep(struct ddps_ctx *ctx, struct ddps_waiter *w, uint64_t deadline)
{
	ddps_assert_held(&ctx->lock);
	if (ddps_ctx_gone(ctx))
		return ddps_ctx_why_gone(ctx);
	/* However much there is to serve: the time of a wait is up when it is up. */
	if (deadline != UINT64_MAX && ddps_now() >= deadline)
		return DDPS_E_TIMEDOUT;
	join_waiters(ctx, w);
	if (!ctx->leader && !ctx->attr.thread)
		ctx->leader = w;
	return w == ctx->leader ? lead_waiters(ctx, w, deadline) : follow_leader(ctx, w, deadline);
}

void ddps_sleep_end(struct ddps_ctx *ctx, struct ddps_waiter *w)
{
	ddps_assert_held(&ctx->lock);
	if (!w->joined)
		return;
	LIST_REMOVE(w, of_all);
	if (ctx->leader != w || ddps_ctx_gone(ctx))
		return;
	ctx->leader = LIST_FIRST(&ctx->waiters);
	if (ctx->leader)
		wake_waiter(ctx, ctx->leader);
}

int ddps_wait_for(struct ddps_ctx *ctx, struct ddps_waiter *w, int (*take)(void *arg), void *arg,
		  uint64_t deadline)
{
	int err, n;

	ddps_assert_held(&ctx->lock);
	/* A sleep that its deadline or a signal has ended may have been a wake-up too. */
	do {
		err = ddps_sleep(ctx, w, deadline);
		n = take(arg);
	} while (!n && err >= 0);
	ddps_sleep_end(ctx, w);
	return n ? n : err;
}
