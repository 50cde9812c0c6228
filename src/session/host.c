/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer's host that acknowledges nothing any more.  What counts is its TCP or SCTP, which answers for a
 * program that stalls, too.  A session looks while it has work under way, and not otherwise.
 */
#include "session/session.h"

#define LOOKS_MS 50u /* at least between two looks, */
#define LOOKS	 4u  /* of which there are so many in the time */

static void look_again(struct ddps_ep *ep)
{
	uint32_t ms = ep->host.ms / LOOKS;

	ep->host.looks = true;
	ddps_timer_after(ep->ctx->env.loop, &ep->host.timer, ms < LOOKS_MS ? LOOKS_MS : ms);
}

/* Something is under way, and nothing has been acknowledged since it left.  How long, in ns. */
static uint64_t get_host_silence(struct ddps_ep *ep)
{
	const uint64_t now = ddps_now();
	uint64_t most, seen;

	if (!ep->llp->ops->unanswered(ep->llp, &most)) {
		ep->host.since = 0;
		return 0;
	}
	if (!ep->host.since)
		ep->host.since = now;
	seen = now - ep->host.since;
	return seen < most ? seen : most;
}

static void host_timer(void *user)
{
	struct ddps_ep *ep = user;
	struct ddps_error e;
	uint64_t silence;

	ep->host.looks = false;
	if (!ep->llp || !ep->host.ms)
		return;
	silence = get_host_silence(ep);
	if (silence < (uint64_t)ep->host.ms * 1000000) {
		if (ep->host.since || ddps_rdmap_owes(ep->rdmap))
			look_again(ep);
		return;
	}
	e = ddps_error_make(DDPS_E_TIMEDOUT, 0,
			    "the peer's host has acknowledged nothing for %u ms", ep->host.ms);
	ddps_error_keep(&ep->error, &e);
	ep->host.gone = true;
	ep->llp->ops->abort(ep->llp);
}

void ddps_host_init(struct ddps_ep *ep)
{
	ep->host.timer = (struct ddps_timer){ .fn = host_timer, .user = ep };
}

void ddps_host_posted(struct ddps_ep *ep)
{
	ddps_assert_held(&ep->ctx->lock);
	if (ep->host.ms && !ep->host.looks && ep->llp)
		look_again(ep);
}

void ddps_host_stop(struct ddps_ep *ep)
{
	ddps_assert_held(&ep->ctx->lock);
	ddps_timer_stop(ep->ctx->env.loop, &ep->host.timer);
}

int ddps_ep_answer_within(struct ddps_ep *ep, uint32_t ms)
{
	int err = ddps_ctx_enter(ep->ctx);

	if (err < 0)
		return err;
	/* Not the silence before, nor the time of the next look that another limit has set. */
	ep->host.since = 0;
	ep->host.looks = false;
	ddps_host_stop(ep);
	ep->host.ms = ms;
	ddps_host_posted(ep);
	ddps_ctx_leave(ep->ctx);
	return 0;
}
