/* SPDX-License-Identifier: BSD-2-Clause */
/* The context: lock, loop, fork detection; its library thread is in mover.c. */
#include "common/own.h"
#include "session/session.h"
#include "secure/secure.h"
#include "secure/shaker.h"
#include "secure/told.h"
#include "secure/vault.h"
#include "common/system/say.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const char *ddps_version(void)
{
	return DDPS_VERSION_STRING;
}

uint64_t ddps_deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return ddps_now() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
}

int ddps_wait_fd(int fd, uint64_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t now = ddps_now(), left;
	int ms = -1, n;

	if (deadline != UINT64_MAX) {
		/* Round up, so that a wait does not spin in its last millisecond. */
		left = deadline > now ? (deadline - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 0;
		ms = left > INT_MAX ? INT_MAX : (int)left;
	}
	n = poll(&pfd, 1, ms);
	if (n < 0)
		return errno == EINTR ? DDPS_E_AGAIN : DDPS_E_SYSTEM;
	if (n && pfd.revents & POLLNVAL) { /* somebody else has closed it: no wait would be one */
		errno = EBADF;
		return DDPS_E_SYSTEM;
	}
	return n;
}

/* ---- progress ---- */

int ddps_ctx_turn(struct ddps_ctx *ctx)
{
	int n = ddps_loop_run(ctx->env.loop);

	ddps_assert_held(&ctx->lock);
	if (n > 0 && ctx->progress_sleepers)
		ddps_wake_driven(ctx);
	return n;
}

int ddps_progress(struct ddps_ctx *ctx, int timeout_ms)
{
	struct ddps_waiter w = { .what = &ctx->progress_sleepers, .drive = ddps_loop_run };
	int n;

	if (ddps_ctx_gone(ctx))
		return ddps_ctx_why_gone(ctx);
	if (ctx->attr.thread)
		return 0;
	ddps_lock(&ctx->lock);
	ddps_gather_look(ctx);
	/* Another thread may have brought what the caller polled for before it came here. */
	if (timeout_ms && TAILQ_EMPTY(&ctx->events) && !ctx->cqs_filled) {
		n = ddps_sleep(ctx, &w, ddps_deadline(timeout_ms));
		ddps_sleep_end(ctx, &w);
	} else {
		n = ddps_ctx_turn(ctx);
	}
	ddps_unlock(&ctx->lock);
	return n == DDPS_E_AGAIN || n == DDPS_E_TIMEDOUT ? 0 : n;
}

int ddps_ctx_fd(struct ddps_ctx *ctx)
{
	int fd = ddps_ctx_enter_seldom(ctx);

	if (fd < 0)
		return fd;
	fd = ddps_loop_fd(ctx->env.loop);
	ddps_ctx_leave(ctx);
	return fd;
}

/* ---- descriptors that the program closes ---- */

int ddps_ctx_why_gone(const struct ddps_ctx *ctx)
{
	if (*ctx->alive == DDPS_FORKED)
		return DDPS_E_FORKED;
	errno = EBADF;
	return DDPS_E_SYSTEM;
}

void ddps_ctx_rob(struct ddps_ctx *ctx)
{
	ddps_assert_held(&ctx->lock);
	if (ddps_ctx_gone(ctx))
		return;
	__atomic_store_n(ctx->alive, DDPS_ROBBED, __ATOMIC_RELAXED);
	ddps_log(&ctx->env.log, DDPS_LOG_ERROR, "session",
		 "the library's descriptors were closed by the program: nothing moves now");
	ddps_wake_all(ctx);
}

/* The lock is held.  0: it still is, since the descriptors are there. */
static int look_at_own(struct ddps_ctx *ctx)
{
	if (!ddps_ctx_gone(ctx) && ddps_loop_look_anew(ctx->env.loop))
		return 0;
	ddps_ctx_rob(ctx);
	ddps_ctx_leave(ctx);
	return ddps_ctx_why_gone(ctx);
}

int ddps_ctx_enter_seldom(struct ddps_ctx *ctx)
{
	int err = ddps_ctx_enter(ctx);

	return err ? err : look_at_own(ctx);
}

/* ---- making and freeing ---- */

/* What the environment asks for: all, or what a filter lets pass. */
static void log_take(struct ddps_ctx *ctx)
{
	const char *spec = getenv("DDPSESS_LOG");

	if (spec && !ddps_log_filter_parse(&ctx->log_filter, spec)) {
		ctx->attr.log = ddps_log_stderr;
		ctx->attr.log_user = &ctx->log_filter;
	} else if (getenv("DDPSESS_DEBUG")) {
		ctx->attr.log = ddps_log_stderr;
		ctx->attr.log_user = NULL;
	} else if (spec && *spec) {
		ddps_say("ddpsess: DDPSESS_LOG=%.60s: it takes [FACILITY:]LEVEL,...; FACILITY is "
			 "cq, "
			 "event, mpa, sctp, secure or session, LEVEL none, error, warn, info or "
			 "debug\n",
			 spec);
	}
}

static int ctx_attr_checked(struct ddps_ctx *ctx, const struct ddps_ctx_attr *attr)
{
	int err = ddps_ctx_attr_take(&ctx->attr, attr);

	if (err)
		return err;
	if (ctx->attr.max_ird > DDPS_RD_MAX || ctx->attr.max_ord > DDPS_RD_MAX ||
	    !ctx->attr.max_regions)
		return DDPS_E_INVAL;
	for (size_t i = 0; i < sizeof ctx->attr.reserved; i++)
		if (ctx->attr.reserved[i])
			return DDPS_E_INVAL;
	if (!ctx->attr.log)
		log_take(ctx);
	ctx->env.log = (struct ddps_log){ ctx->attr.log, ctx->attr.log_user };
	ctx->env.capture = ctx->attr.capture;
	ctx->env.capture_user = ctx->attr.capture_user;
	return 0;
}

/* Of a thread that may have been at work for long: the numbers may be the program's now. */
static int enter_from_env(void *ctx)
{
	return ddps_ctx_enter_seldom(ctx);
}

static void leave_from_env(void *ctx)
{
	ddps_ctx_leave(ctx);
}

int ddps_secured_may(struct ddps_ctx *ctx, bool server, bool datagrams)
{
	struct ddps_error why;
	const int err = ddps_secure_may(ctx->env.secure, server, datagrams, &why);

	if (err && err != DDPS_E_NO_CERT) /* that says all */
		ddps_told_own(&ctx->env, why.text);
	return err;
}

/* What secured wires need. */
static int hold_secure(struct ddps_ctx *ctx)
{
	ctx->env.enter = enter_from_env;
	ctx->env.leave = leave_from_env;
	ctx->env.ctx = ctx;
	if (!ctx->attr.secure)
		return 0;
	ctx->env.vaults = calloc(1, sizeof *ctx->env.vaults);
	ctx->env.secure = ddps_secure_hold(ctx->attr.secure);
	return ctx->env.secure && ctx->env.vaults ? 0 : DDPS_E_NOMEM;
}

static int resources_take(struct ddps_ctx *ctx)
{
	int err;

	ctx->era = ddps_own_begin();
	err = ddps_loop_new(&ctx->env.loop);
	if (err < 0)
		return err;
	ddps_loop_locked_by(ctx->env.loop, &ctx->lock);
	ctx->resolver.loop = ctx->env.loop;
	err = ddps_stag_table_new(&ctx->stags, ctx->attr.max_regions);
	if (err < 0)
		return err;
	ctx->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ctx->event_fd < 0)
		return DDPS_E_SYSTEM;
	ctx->env.scratch = malloc(DDPS_SCRATCH_LEN);
	if (!ctx->env.scratch)
		return DDPS_E_NOMEM;
	ctx->alive = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ctx->alive == MAP_FAILED) {
		ctx->alive = NULL;
		return DDPS_E_NOMEM;
	}
	if (madvise(ctx->alive, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) < 0)
		return DDPS_E_SYSTEM;
	*ctx->alive = DDPS_HERE;
	return 0;
}

static void resources_free(struct ddps_ctx *ctx)
{
	int keep = errno;

	if (ctx->alive)
		munmap(ctx->alive, (size_t)sysconf(_SC_PAGESIZE));
	free(ctx->env.scratch);
	ddps_secure_close(ctx->env.secure);
	free(ctx->env.vaults);
	ddps_stag_table_free(ctx->stags);
	if (ddps_own_era() == ctx->era) {
		if (ctx->event_fd >= 0)
			close(ctx->event_fd);
		ddps_loop_free(ctx->env.loop);
		ddps_own_end(ctx->era);
	}
	ddps_mover_fini(ctx);
	pthread_mutex_destroy(&ctx->lock.m);
	free(ctx);
	errno = keep;
}

int ddps_ctx_new(struct ddps_ctx **out, const struct ddps_ctx_attr *attr)
{
	struct ddps_ctx *ctx;
	int err;

	if (!out)
		return DDPS_E_INVAL;
	ctx = calloc(1, sizeof *ctx);
	if (!ctx)
		return DDPS_E_NOMEM;
	ctx->event_fd = -1;
	TAILQ_INIT(&ctx->events);
	for (unsigned i = 0; i < 2; i++)
		STAILQ_INIT(&ctx->ended[i].handles);
	ddps_gather_init(ctx);
	ctx->vain_many = DDPS_VAIN_MOST;
	ddps_mutex_init(&ctx->lock, DDPS_LOCK_CTX);
	ddps_mover_init(ctx);
	ddps_uncancellable(); /* half a context is useless to anybody */
	err = ctx_attr_checked(ctx, attr);
	if (!err)
		err = resources_take(ctx);
	if (!err)
		err = hold_secure(ctx);
	if (!err && ctx->attr.thread)
		err = ddps_mover_start(ctx);
	if (err)
		resources_free(ctx);
	else
		*out = ctx;
	ddps_uncancellable_end();
	return err;
}

static bool lock_ctx_until(struct ddps_ctx *ctx, uint64_t deadline)
{
#ifdef __GLIBC__
	struct timespec at = { .tv_sec = (time_t)(deadline / NSEC_PER_SEC),
			       .tv_nsec = (long)(deadline % NSEC_PER_SEC) };

	return !ddps_lock_until(&ctx->lock, &at);
#else
	/* Elsewhere there is no lock that waits by this clock.  Sleep is short: whoever calls this ends a
	 * process, or answers somebody who can wait. */
	const struct timespec step = { .tv_nsec = NSEC_PER_MSEC };

	while (ddps_trylock(&ctx->lock)) {
		if (ddps_now() >= deadline)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
#endif
}

int ddps_ctx_enter_until(struct ddps_ctx *ctx, uint64_t deadline)
{
	if (ddps_ctx_gone(ctx))
		return ddps_ctx_why_gone(ctx);
	return lock_ctx_until(ctx, deadline) ? look_at_own(ctx) : DDPS_E_TIMEDOUT;
}

int ddps_ctx_flush(struct ddps_ctx *ctx, int timeout_ms)
{
	int err = ddps_ctx_enter_until(ctx, ddps_deadline(timeout_ms < 0 ? 0 : timeout_ms));

	if (err)
		return err;
	ddps_gather_look(ctx);
	ddps_ctx_turn(ctx); /* what an LLP keeps for the next poll */
	ddps_ctx_leave(ctx);
	return 0;
}

static void free_ctx(struct ddps_ctx *ctx)
{
	struct ddps_ctx_pd *pd;

	if (!ddps_ctx_enter_seldom(ctx))
		ddps_ctx_leave(ctx);
	if (ddps_ctx_gone(ctx) && *ctx->alive == DDPS_ROBBED) {
		ddps_mover_leave(ctx); /* it may be about to look at it */
		return;
	}
	if (ddps_ctx_gone(ctx)) {
		/* The parent's peers are not ours to speak to; sockets were closed by the fork
		 * (own.h), objects are copies.  Where a thread was at work that is not here, the
		 * lists may be in any state: their descriptors stay, which are nobody else's. */
		if (ddps_own_era() == ctx->era && !ddps_trylock(&ctx->lock)) {
			ddps_cqs_close(ctx);
			ddps_unlock(&ctx->lock);
		}
		resources_free(ctx);
		return;
	}
	ddps_mover_stop(ctx);
	ddps_lock(&ctx->lock);
	ddps_sessions_finish(ctx);
	ddps_requests_free(ctx);
	while (!LIST_EMPTY(&ctx->srqs))
		ddps_srq_destroy(LIST_FIRST(&ctx->srqs));
	while (!LIST_EMPTY(&ctx->cqs))
		ddps_cq_destroy(LIST_FIRST(&ctx->cqs));
	ddps_unlock(&ctx->lock); /* the thread of handshakes may wait for it */
	ddps_shaker_stop(&ctx->env);
	ddps_lock(&ctx->lock);
	ddps_providers_fini(&ctx->env);
	ddps_resolver_fini(&ctx->resolver);
	while ((pd = LIST_FIRST(&ctx->pds))) {
		LIST_REMOVE(pd, link);
		free(pd);
	}
	ddps_unlock(&ctx->lock);
	ddps_own_close_waiting();
	resources_free(ctx);
}

void ddps_ctx_free(struct ddps_ctx *ctx)
{
	if (!ctx)
		return;
	ddps_uncancellable();
	free_ctx(ctx);
	ddps_uncancellable_end();
}
