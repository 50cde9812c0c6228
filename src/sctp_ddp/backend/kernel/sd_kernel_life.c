/* SPDX-License-Identifier: BSD-2-Clause */
/* From what an association's socket brings to the upcalls. */
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include <string.h>

/* An association begins with its life. */
static struct ddps_sd_assoc *get_life_assoc(struct ddps_sk_life *l)
{
	return (struct ddps_sd_assoc *)(void *)l;
}

static struct ddps_sk_life *life_of(struct ddps_sd_assoc *a)
{
	return (struct ddps_sk_life *)(void *)a;
}

static void end_timed_out_life(void *user)
{
	struct ddps_sk_life *l = user;

	ddps_sk_end_soon(get_life_assoc(l),
			 ddps_error_make(DDPS_E_TIMEDOUT, 0, "no SCTP association in time"));
}

void ddps_sk_life_init(struct ddps_sk_life *l, struct ddps_env *env)
{
	l->env = env;
	l->deadline = (struct ddps_timer){ .fn = end_timed_out_life, .user = l };
}

bool ddps_sk_life_alive(const struct ddps_sk_life *l)
{
	return !l->freed && !l->ending && !l->ended;
}

/* ---- the end ---- */

static void shut_down(struct ddps_sk_life *l)
{
	ddps_sk_abort_on_close(get_life_assoc(l), false);
	ddps_sk_end_soon(get_life_assoc(l), ddps_error_make(DDPS_OK, 0, "association shut down"));
}

void ddps_sk_life_on_end(struct ddps_sk_life *l, int sys_errno)
{
	if (!sys_errno && (l->peer_shut || l->shut))
		shut_down(l);
	else
		ddps_sk_end_soon(get_life_assoc(l), ddps_sk_why(get_life_assoc(l), sys_errno));
}

/* Last upcall; an association that nobody was informed of goes silently. */
static void finish_life(struct ddps_sk_life *l)
{
	struct ddps_error e = l->end;

	l->ended = true;
	ddps_sk_close(get_life_assoc(l));
	ddps_timer_stop(l->env->loop, &l->deadline);
	if (!l->up) {
		l->freed = true;
		return;
	}
	memcpy(e.peer, l->info.peer, sizeof e.peer);
	ddps_log(&l->env->log, DDPS_LOG_DEBUG, "sctp", "%s gone: %s", e.peer, e.text);
	l->up->gone(l->user, &e);
}

/* ---- the beginning ---- */

static void announce_life(struct ddps_sk_life *l)
{
	const struct ddps_sk_owner *ep = l->ep;

	l->announced = true;
	l->ep = NULL;
	ddps_timer_stop(l->env->loop, &l->deadline);
	ddps_log(&l->env->log, DDPS_LOG_DEBUG, "sctp", "%s up, streams %u/%u, %s", l->info.peer,
		 l->info.in_streams, l->info.out_streams,
		 l->info.has_adaptation ? "indication" : "no indication");
	if (!l->accepted) {
		l->up->comm_up(l->user);
		return;
	}
	if (ep)
		ep->up->accepted(ep->user, get_life_assoc(l));
	if (!l->up) /* no endpoint any more, or its owner did not want it */
		l->freed = true;
}

/* ---- items ---- */

static void take_life_up(struct ddps_sk_life *l, const struct ddps_sk_item *it)
{
	l->info.in_streams = it->in_streams;
	l->info.out_streams = it->out_streams;
	ddps_sk_addresses(get_life_assoc(l));
	l->up_seen = true;
}

static void on_indication(struct ddps_sk_life *l, const struct ddps_sk_item *it)
{
	l->info.has_adaptation = true;
	l->info.adaptation = it->adaptation;
	if (l->up_seen && !l->announced)
		announce_life(l);
}

static void on_data(struct ddps_sk_life *l, const struct ddps_sk_item *it)
{
	struct ddps_sd_part part = l->part;
	int err;

	if (!it->eor) {
		err = ddps_sd_part_hold(&l->part, it->data, it->len);
		if (err)
			ddps_sk_end_soon(get_life_assoc(l),
					 ddps_error_make(err, 0,
							 "a user message of %u octets or more",
							 DDPS_SD_MSG_MAX));
		return;
	}
	l->part = (struct ddps_sd_part){ 0 }; /* @l may be gone after the upcall */
	l->up->message(l->user, it->stream, it->ppid, it->unordered, part.own ? part.own : it->data,
		       part.len + it->len);
	ddps_sd_part_drop(&part);
}

static void on_item(struct ddps_sk_life *l, const struct ddps_sk_item *it)
{
	switch (it->what) {
	case DDPS_SK_DATA:
		on_data(l, it);
		break;
	case DDPS_SK_END:
		ddps_sk_life_on_end(l, it->sys_errno);
		break;
	case DDPS_SK_UP:
		take_life_up(l, it);
		break;
	case DDPS_SK_INDICATION:
		on_indication(l, it);
		break;
	case DDPS_SK_LOST:
		ddps_sk_life_on_end(l, ddps_sk_so_error(get_life_assoc(l)));
		break;
	case DDPS_SK_RESTART:
		/* All sessions are lost.  The kernel does not show the indication of the new INIT, so
		 * whether DDP may go on is not known: it may not [5043-11.1-3]. */
		ddps_sk_end_soon(
			get_life_assoc(l),
			ddps_error_make(DDPS_E_RESET, 0,
					"the peer restarted, and the kernel does not say whether "
					"its new association carries DDP: connect again"));
		break;
	case DDPS_SK_SHUT_DONE:
		shut_down(l);
		break;
	case DDPS_SK_PEER_SHUT:
		l->peer_shut = true;
		l->up->peer_shutdown(l->user);
		break;
	case DDPS_SK_DRY:
		ddps_sk_dry(get_life_assoc(l));
		break;
	case DDPS_SK_PART_LOST:
		ddps_sd_part_drop(&l->part);
		break;
	case DDPS_SK_NOTHING:
	case DDPS_SK_OTHER:
		break;
	}
}

bool ddps_sk_life_step(struct ddps_sk_life *l)
{
	struct ddps_sk_item it = ddps_sk_take(get_life_assoc(l));

	/* The indication comes with COMM_UP or not at all. */
	if (l->up_seen && !l->announced && it.what != DDPS_SK_INDICATION) {
		announce_life(l);
		if (!ddps_sk_life_alive(l))
			return false;
	}
	on_item(l, &it);
	return it.what != DDPS_SK_NOTHING && ddps_sk_life_alive(l);
}

/* ---- a turn ---- */

bool ddps_sk_life_enter(struct ddps_sk_life *l)
{
	l->serving = true;
	return ddps_sk_life_alive(l);
}

bool ddps_sk_life_leave(struct ddps_sk_life *l)
{
	if (l->ending && !l->ended && !l->freed)
		finish_life(l);
	l->serving = false;
	if (!l->freed)
		return true;
	ddps_sk_release(get_life_assoc(l));
	return false;
}

/* ---- from above ---- */

void ddps_sk_life_set_up(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user)
{
	struct ddps_sk_life *l = life_of(a);

	l->up = up;
	l->user = user;
}

void ddps_sk_life_abort(struct ddps_sd_assoc *a)
{
	ddps_sk_abort_on_close(a, true); /* a shutdown may be under way */
	ddps_sk_end_soon(a, ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side"));
}

void ddps_sk_life_free(struct ddps_sd_assoc *a)
{
	struct ddps_sk_life *l = life_of(a);

	l->freed = true;
	if (!l->serving)
		ddps_sk_release(a);
}
