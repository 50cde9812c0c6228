/* SPDX-License-Identifier: BSD-2-Clause */
/* What a backend says of an association: who the peer is, messages, the end. */
#include "common/uri.h"
#include "sctp_ddp/sd_assoc.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* [5043-11.1-2] [5043-11.1-3] [5043-11.1-4] */
static int check_adaptation(const struct ddps_sd_assoc_info *i, struct ddps_error *why)
{
	if (!i->has_adaptation)
		*why = ddps_error_make(DDPS_E_NO_DDP, 0,
				       "peer has no DDP: no adaptation indication in its INIT");
	else if (i->adaptation != DDPS_SCTP_ADAPTATION_DDP)
		*why = ddps_error_make(
			DDPS_E_NO_DDP, 0,
			"peer has no DDP: its adaptation indication is 0x%08x, not 1",
			i->adaptation);
	else
		return 0;
	return DDPS_E_NO_DDP;
}

struct ddps_sd_name ddps_sd_carrier_peer(const struct ddps_sd_carrier *c)
{
	struct ddps_sd_name name = { "" };

	if (c->peer_addr.family)
		ddps_addr_text_of(&c->peer_addr, name.text, sizeof name.text);
	return name;
}

void ddps_sd_log(const struct ddps_sd_carrier *c, enum ddps_log_level level, const char *fmt, ...)
{
	char what[320];
	va_list ap;

	if (!c->env->log.fn)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	ddps_log(&c->env->log, level, "sctp", "%s%s", ddps_sd_carrier_peer(c).text, what);
}

/* Who the peer is and what it offers. */
static int learn_peer(struct ddps_sd_carrier *c, struct ddps_error *why)
{
	struct ddps_sd_assoc_info i = { 0 };

	c->b->info(c->assoc, &i);
	c->local_addr = i.local_addr;
	c->peer_addr = i.peer_addr;
	if (check_adaptation(&i, why) < 0)
		return why->code;
	c->max_user_data = (uint32_t)i.max_user_data;
	c->encap = i.encap;
	c->by_us = i.by_us;
	c->usable = i.in_streams < i.out_streams ? i.in_streams : i.out_streams;
	free(c->answered);
	c->answered = NULL;
	c->state = DDPS_SD_UP;
	return 0;
}

static void log_up(const struct ddps_sd_carrier *c)
{
	ddps_sd_log(c, DDPS_LOG_INFO,
		    ": association up, %s, %u streams, user messages up to %u octets", c->b->name,
		    c->usable, c->max_user_data);
}

int ddps_sd_carrier_begin(struct ddps_sd_carrier *c, struct ddps_error *why)
{
	int err = learn_peer(c, why);

	if (!err)
		log_up(c);
	return err;
}

/* The last packet of the set-up takes the first Initiates along.  A peer without DDP is left in
 * COMING: comm_up() ends it. */
static void up_answered(void *user)
{
	struct ddps_sd_carrier *c = user;
	struct ddps_error why;

	ddps_sd_check(c);
	if (c->state != DDPS_SD_COMING || learn_peer(c, &why) < 0)
		return;
	ddps_sd_carrier_start_waiting(c);
	ddps_sd_tx_run(c);
}

static void bring_carrier_up(struct ddps_sd_carrier *c)
{
	struct ddps_error why;

	if (ddps_sd_carrier_begin(c, &why) < 0)
		ddps_sd_carrier_abort(c, &why);
	else
		ddps_sd_carrier_start_waiting(c);
}

static void up_comm_up(void *user)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	if (c->state == DDPS_SD_UP) /* since it was answered */
		log_up(c);
	else if (c->state == DDPS_SD_COMING)
		bring_carrier_up(c);
}

static void up_message(void *user, uint16_t stream, uint32_t ppid, bool unordered,
		       const uint8_t *data, size_t len)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	if (c->state != DDPS_SD_UP && !c->ebbs)
		return;
	if (!unordered) /* the DDP-SSN rules anyway */
		c->stats.ordered++;
	ddps_sd_rx_message(c, stream, ppid, data, len);
}

static void up_writable(void *user)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	c->blocked = false;
	if (c->state == DDPS_SD_UP && !c->b->acks)
		ddps_sd_carrier_refresh(c);
	ddps_sd_tx_run(c);
}

/* The peer has begun to end the association: what is in doubt no more is over. */
static void lose_to_shutdown(struct ddps_sd_carrier *c)
{
	struct ddps_error e = ddps_error_make(DDPS_E_CLOSED, 0, "association closed by the peer");

	ddps_sd_carrier_lose(c, &e, false);
}

static void up_dry(void *user)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	if (c->state == DDPS_SD_UP)
		ddps_sd_carrier_refresh(c);
	if (c->state != DDPS_SD_COMING)
		ddps_sd_tx_dry(c);
	if (c->peer_shut)
		lose_to_shutdown(c);
}

static void up_acked(void *user, uint64_t n)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	/* Also what was under way when the association began to end. */
	if (c->state != DDPS_SD_COMING)
		ddps_sd_tx_acked(c, n);
	if (c->peer_shut)
		lose_to_shutdown(c);
}

static void sd_up_path(void *user)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	if (c->state == DDPS_SD_UP)
		ddps_sd_carrier_refresh(c);
}

/*
 * The peer gave up an association that carried nothing, and our request met that on its way.  It
 * begins no session on an association that it shuts down, so nobody there has seen the request.  Or it
 * was one idle association too many, which it ends by an ABORT, or the only session that it knew there
 * was given up.  Whoever had it made for himself would get no better one, unless it was of use to another.
 */
static void mark_unheard(struct ddps_sd_carrier *c)
{
	struct ddps_sd_session *s;

	TAILQ_FOREACH(s, &c->waiting, link)
		s->llp.unheard = s->joined || c->served;
	for (unsigned i = 0; i < c->npairs_size; i++) {
		s = c->pairs[i] && c->pairs[i]->sm.state == DDPS_SD_A1 ? c->pairs[i]->sess : NULL;
		if (s)
			s->llp.unheard = s->joined || c->served;
	}
}

static void up_peer_shutdown(void *user)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	mark_unheard(c);
	ddps_sd_carrier_not_idle(c);
	c->state = DDPS_SD_GOING;
	c->ebbs = false;
	c->peer_shut = true;
	lose_to_shutdown(c);
	ddps_sd_carrier_leave(c);
}

/* Old state would misplace data: all sessions are lost, all streams idle. */
static void up_restarted(void *user)
{
	struct ddps_sd_carrier *c = user;
	struct ddps_error e =
		ddps_error_make(DDPS_E_RESET, 0, "the peer restarted the association");

	ddps_sd_check(c);
	if (c->state == DDPS_SD_COMING)
		return;
	/* Not the waiting ones: they have sent nothing. */
	for (unsigned i = 0; i < c->npairs_size; i++)
		if (c->pairs[i])
			ddps_sd_pair_lose(c->pairs[i], &e);
	ddps_sd_tx_restart(c);
	ddps_sd_rx_restart(c);
	ddps_timer_stop(c->env->loop, &c->linger);
	c->ebbs = c->peer_shut = false;
	c->state = DDPS_SD_COMING; /* also one that was about to end [9260-5.2.4-4] */
	bring_carrier_up(c);
	if (c->state == DDPS_SD_UP && !c->nsessions)
		ddps_sd_carrier_idle(c);
}

/* Those who wait ask anew, and get an association of their own, whose handshake is judged. */
static void up_judged(void *user, const struct ddps_error *why)
{
	struct ddps_sd_carrier *c = user;

	ddps_sd_check(c);
	c->judging = false;
	c->refused |= why->code != 0;
	for (unsigned i = 0; i < c->npairs_size; i++)
		if (c->pairs[i])
			ddps_sd_pair_judged(c->pairs[i], why);
	while (why->code && !TAILQ_EMPTY(&c->waiting)) {
		struct ddps_sd_session *s = TAILQ_FIRST(&c->waiting);

		s->llp.unheard = s->joined;
		ddps_sd_session_end(s, why);
	}
	ddps_sd_carrier_start_waiting(c);
	ddps_sd_tx_run(c);
}

static void up_gone(void *user, const struct ddps_error *e)
{
	struct ddps_sd_carrier *c = user;
	struct ddps_error why = *e;

	ddps_sd_check(c);
	if (!why.code)
		why = ddps_error_make(DDPS_E_CLOSED, 0, "association closed");
	ddps_sd_log(c, DDPS_LOG_INFO, ": association gone: %s", why.text);
	if (c->state == DDPS_SD_UP && why.code == DDPS_E_RESET)
		mark_unheard(c);
	c->state = DDPS_SD_GOING;
	ddps_sd_carrier_lose(c, &why, true);
	ddps_sd_carrier_free(c);
}

const struct ddps_sd_assoc_up ddps_sd_carrier_up = {
	.answered = up_answered,
	.comm_up = up_comm_up,
	.message = up_message,
	.writable = up_writable,
	.dry = up_dry,
	.acked = up_acked,
	.path = sd_up_path,
	.peer_shutdown = up_peer_shutdown,
	.restarted = up_restarted,
	.judged = up_judged,
	.gone = up_gone,
};
