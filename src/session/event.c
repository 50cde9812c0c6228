/* SPDX-License-Identifier: BSD-2-Clause */
/* The event queue: sources with pending bits, in the order in which they became pending. */
#include "session/session.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

const char *ddps_event_name(enum ddps_event_type type)
{
	static const char *const names[] = {
		[DDPS_EV_CONNECT_REQUEST] = "connect request",
		[DDPS_EV_ESTABLISHED] = "established",
		[DDPS_EV_REJECTED] = "rejected",
		[DDPS_EV_FAILED] = "failed",
		[DDPS_EV_TERMINATED] = "terminated",
		[DDPS_EV_PEER_CLOSED] = "peer closed",
		[DDPS_EV_CLOSED] = "closed",
		[DDPS_EV_LISTENER_FAILED] = "listener failed",
		[DDPS_EV_REQUEST_GONE] = "request gone",
		[DDPS_EV_SRQ_LIMIT] = "shared receive queue low",
		[DDPS_EV_PEER_CLOSING] = "peer closing",
	};

	if ((unsigned)type >= sizeof names / sizeof names[0])
		return "unknown event";
	return names[type];
}

/* The descriptor is readable while there are events, once somebody has asked for it: a program
 * that only polls is spared two system calls an event. */
static void mark_events(struct ddps_ctx *ctx)
{
	uint64_t count = 1;
	bool marked = ctx->events_watched && !TAILQ_EMPTY(&ctx->events);

	if (marked == ctx->events_marked)
		return;
	ctx->events_marked = marked;
	ddps_uncancellable_within(); /* a post that fails ends the session: a bare lock may be held */
	if (!ddps_loop_owns(ctx->env.loop) ||
	    (marked ? write(ctx->event_fd, &count, sizeof count)
		    : read(ctx->event_fd, &count, sizeof count)) < 0)
		ddps_log(&ctx->env.log, DDPS_LOG_ERROR, "event", "eventfd: %s", strerror(errno));
	ddps_uncancellable_end();
}

static void unlink_source(struct ddps_ctx *ctx, struct ddps_source *s)
{
	TAILQ_REMOVE(&ctx->events, s, of_events);
	s->queued = false;
	mark_events(ctx);
}

void ddps_event_push(struct ddps_ctx *ctx, struct ddps_source *s, enum ddps_event_type type)
{
	ddps_assert_held(&ctx->lock);
	s->pending |= 1u << type;
	if (ctx->event_sleepers)
		ddps_wake_one(ctx, &ctx->event_sleepers);
	if (ctx->progress_sleepers)
		ddps_wake_driven(ctx);
	if (s->queued)
		return;
	TAILQ_INSERT_TAIL(&ctx->events, s, of_events);
	s->queued = true;
	mark_events(ctx);
}

void ddps_event_drop(struct ddps_ctx *ctx, struct ddps_source *s)
{
	ddps_assert_held(&ctx->lock);
	s->pending = 0;
	if (s->queued)
		unlink_source(ctx, s);
}

/* The order in which one source's pending events are reported: as enum ddps_event_type has it. */
static bool take_pending_event(struct ddps_ctx *ctx, struct ddps_event *ev)
{
	struct ddps_source *s = TAILQ_FIRST(&ctx->events);
	unsigned type = 0;

	ddps_assert_held(&ctx->lock);
	if (!s)
		return false;
	while (!(s->pending & 1u << type))
		type++;
	s->pending &= ~(1u << type);
	if (!s->pending)
		unlink_source(ctx, s);
	memset(ev, 0, offsetof(struct ddps_event, private_data));
	ev->type = (enum ddps_event_type)type;
	s->build(s, ev);
	return true;
}

int ddps_event_fd(struct ddps_ctx *ctx)
{
	int err = ddps_ctx_enter_seldom(ctx);

	if (err < 0)
		return err;
	ctx->events_watched = true;
	mark_events(ctx);
	ddps_ctx_leave(ctx);
	return ctx->event_fd;
}

int ddps_event_get(struct ddps_ctx *ctx, struct ddps_event *ev)
{
	int n = ddps_ctx_enter(ctx);

	if (n < 0)
		return n;
	ddps_gather_look(ctx);
	n = take_pending_event(ctx, ev);
	ddps_ctx_leave(ctx);
	return n;
}

struct wanted {
	struct ddps_ctx *ctx;
	struct ddps_event *ev;
};

static int take_wanted_event(void *arg)
{
	const struct wanted *w = arg;

	return take_pending_event(w->ctx, w->ev);
}

int ddps_event_wait(struct ddps_ctx *ctx, struct ddps_event *ev, int timeout_ms)
{
	struct ddps_waiter w = { .what = &ctx->event_sleepers, .drive = ddps_loop_run };
	/* cppcheck-suppress ctuuninitvar ; an event is written there, not read */
	struct wanted wanted = { ctx, ev };
	const uint64_t deadline = ddps_deadline(timeout_ms);
	int n = ddps_progress(ctx, 0);

	if (n >= 0)
		n = ddps_ctx_enter(ctx);
	if (n < 0)
		return n;
	ddps_gather_look(ctx);
	n = take_pending_event(ctx, ev);
	if (!n)
		n = ddps_wait_for(ctx, &w, take_wanted_event, &wanted, deadline);
	ddps_ctx_leave(ctx);
	return n < 0 ? n : 0;
}
