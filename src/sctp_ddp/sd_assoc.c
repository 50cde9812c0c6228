/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations: from coming up to winding up, and the sessions that wait for them. */
#include "sctp_ddp/sd_assoc.h"
#include <stdlib.h>
#include <string.h>

/* The side that opened an idle association closes it.  Short, since a new one costs a round
 * trip; long enough for a program that opens its sessions one after another. */
#define LINGER_MS 500u
/* The other side leaves that to it, but not for ever. */
#define PASSIVE_LINGER_MS 30000u
/* Pairs whose session is over, waiting for the peer's Terminate or for acknowledgements. */
#define DRAIN_MS 5000u
/* Shut down, and the peer has not taken everything or has not answered. */
#define LEAVE_MS 30000u

static void run_task(void *user);
static void linger_over(void *user);
static void begin_quiet(void *user);
static void pause_over(void *user);

struct ddps_sd_carrier *ddps_sd_carrier_new(struct ddps_env *env, struct ddps_sd_provider *prov,
					    const struct ddps_sd_backend *b)
{
	struct ddps_sd_carrier *c =
		calloc(1, sizeof(*c) + (b->acks ? 0 : sizeof(c->quiet_timer[0])));

	if (!c)
		return NULL;
	c->env = env;
	c->prov = prov;
	c->b = b;
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->ctl);
	TAILQ_INIT(&c->seg);
	TAILQ_INIT(&c->dry);
	c->task = (struct ddps_task){ .fn = run_task, .user = c };
	c->linger = (struct ddps_timer){ .fn = linger_over, .user = c };
	if (!b->acks)
		c->quiet_timer[0] = (struct ddps_timer){ .fn = begin_quiet, .user = c };
	c->pause_timer = (struct ddps_timer){ .fn = pause_over, .user = c };
	TAILQ_INSERT_TAIL(&prov->carriers, c, link);
	return c;
}

void ddps_sd_carrier_lose(struct ddps_sd_carrier *c, const struct ddps_error *why, bool all)
{
	while (!TAILQ_EMPTY(&c->waiting))
		ddps_sd_session_end(TAILQ_FIRST(&c->waiting), why);
	for (unsigned i = 0; i < c->npairs_size; i++) {
		struct ddps_sd_pair *p = c->pairs[i];

		if (p && (all || !ddps_sd_pair_in_doubt(p)))
			ddps_sd_pair_lose(p, why);
	}
}

void ddps_sd_carrier_spoke(struct ddps_sd_carrier *c)
{
	if (c->fresh) {
		c->listener->half_open--;
		ddps_shares_del(&c->listener->silent, &c->share);
	}
	c->fresh = false;
}

void ddps_sd_carrier_not_idle(struct ddps_sd_carrier *c)
{
	if (!c->fresh && c->share.counted)
		ddps_shares_del(&c->listener->idle, &c->share);
}

void ddps_sd_goal_free(struct ddps_sd_goal *g)
{
	if (!g)
		return;
	free(g->host);
	free(g);
}

void ddps_sd_carrier_free(struct ddps_sd_carrier *c)
{
	struct ddps_error e = ddps_error_make(DDPS_E_RESET, 0, "association freed");

	c->state = DDPS_SD_GOING;
	ddps_sd_carrier_not_idle(c);
	ddps_sd_carrier_lose(c, &e, true);
	ddps_sd_carrier_spoke(c);
	TAILQ_REMOVE(&c->prov->carriers, c, link);
	ddps_timer_stop(c->env->loop, &c->linger);
	ddps_sd_tx_quiet(c, false);
	ddps_timer_stop(c->env->loop, &c->pause_timer);
	ddps_task_cancel(c->env->loop, &c->task);
	if (c->assoc)
		c->b->free(c->assoc);
	free(c->pairs);
	free(c->answered);
	if (c->goal)
		TAILQ_REMOVE(&c->prov->goals[c->goal->place], c->goal, link);
	ddps_sd_goal_free(c->goal);
	free(c);
}

/* All but the ABORT. */
static void give_up_carrier(struct ddps_sd_carrier *c, enum ddps_log_level level,
			    const struct ddps_error *why)
{
	c->state = DDPS_SD_GOING;
	c->ebbs = false;
	ddps_sd_carrier_not_idle(c);
	ddps_timer_stop(c->env->loop, &c->linger);
	ddps_sd_log(c, level, ": association aborted: %s", why->text);
	ddps_sd_carrier_spoke(c);
	ddps_sd_carrier_lose(c, why, true);
}

void ddps_sd_carrier_abort(struct ddps_sd_carrier *c, const struct ddps_error *why)
{
	if (c->state == DDPS_SD_GOING)
		return;
	give_up_carrier(c, DDPS_LOG_WARN, why);
	c->b->abort(c->assoc);
}

static void reset_carrier(struct ddps_sd_carrier *c)
{
	struct ddps_error e = ddps_error_make(DDPS_E_CLOSED, 0, "its only session was given up");

	give_up_carrier(c, DDPS_LOG_INFO, &e);
	c->b->abort(c->assoc);
}

void ddps_sd_carrier_reset(struct ddps_sd_carrier *c, bool soon)
{
	c->resets = true;
	if (soon ||
	    ddps_loop_running(c->env->loop)) /* one of its messages may be on its way up just now */
		ddps_task_post(c->env->loop, &c->task);
	else
		reset_carrier(c);
}

void ddps_sd_carrier_orphan(struct ddps_sd_carrier *c)
{
	ddps_sd_carrier_spoke(c);
	ddps_sd_carrier_not_idle(c);
	c->listener = NULL;
	/* Whoever opened it closes it: he may have a request under way, which a SHUTDOWN would meet,
	 * and the listener that comes next takes it. */
	if (c->state == DDPS_SD_UP)
		ddps_sd_carrier_idle(c);
}

/* All sessions have ended; what the peer sends until it sees that comes up. */
static void shut_down_carrier(struct ddps_sd_carrier *c)
{
	ddps_sd_carrier_not_idle(c);
	c->state = DDPS_SD_GOING;
	c->ebbs = true;
	c->b->shutdown(c->assoc);
	ddps_sd_carrier_leave(c);
}

/* How many sessions have nothing more to say. */
static unsigned said_all(const struct ddps_sd_carrier *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->npairs_size; i++)
		n += c->pairs[i] && c->pairs[i]->sess && ddps_sd_pair_said_all(c->pairs[i]);
	return n;
}

void ddps_sd_carrier_wind_up(struct ddps_sd_carrier *c, bool all)
{
	if (c->nsessions && (!all || said_all(c) < c->nsessions))
		return;
	if (c->state == DDPS_SD_COMING) {
		ddps_sd_carrier_free(c);
	} else if (c->state == DDPS_SD_UP) {
		ddps_sd_tx_run(c); /* Terminates of sessions that were just given up */
		shut_down_carrier(c);
	}
}

bool ddps_sd_carrier_has_work(const struct ddps_sd_carrier *c)
{
	for (unsigned i = 0; i < c->npairs_size; i++) {
		const struct ddps_sd_pair *p = c->pairs[i];

		if (p && (!ddps_sd_pair_said_all(p) || ddps_sd_pair_unacked(p)))
			return true;
	}
	return false;
}

void ddps_sd_carrier_refresh(struct ddps_sd_carrier *c)
{
	struct ddps_sd_assoc_info info = { 0 };

	c->b->info(c->assoc, &info);
	c->max_user_data = (uint32_t)info.max_user_data;
}

/* ---- winding up ---- */

/* What carries nothing is ended early when there is too much of it. */
static void limit_idle(struct ddps_sd_listener *l, const struct ddps_sd_carrier *latest)
{
	struct ddps_share *oldest;
	unsigned of_peer = ddps_shares_of(&l->idle, &latest->share, &oldest);
	struct ddps_error e;

	if (of_peer <= DDPS_SD_IDLE_PEER) {
		if (l->idle.places <= DDPS_SD_IDLE_LISTENER)
			return;
		oldest = ddps_shares_first_to_go(&l->idle);
		of_peer = ddps_shares_of(&l->idle, oldest, &oldest);
	}
	l->env->idle_ended++;
	e = ddps_error_make(DDPS_E_LIMIT, 0, "%u associations without a session, %u of this peer",
			    l->idle.places, of_peer);
	ddps_sd_carrier_abort(oldest->owner, &e);
}

static void list_idle(struct ddps_sd_carrier *c)
{
	struct ddps_sd_listener *l = c->listener;
	struct ddps_error e;

	/* A fresh one has a half-open place.  Where pairs drain our Terminate may be under way, and an
	 * abort would overtake it. */
	if (!l || c->fresh || c->npairs || c->share.counted)
		return;
	if (ddps_shares_add(&l->idle, &c->share, ddps_share_net(&c->peer_addr)) < 0) {
		e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for an association");
		ddps_sd_carrier_abort(c, &e);
		return;
	}
	limit_idle(l, c);
}

/* Up to a sixteenth longer, so that what became idle together does not leave together.  It has to
 * differ from one to the next, not to be hard to guess. */
static uint32_t spread(struct ddps_sd_provider *prov, uint32_t ms)
{
	return ms + ms / 16 * (prov->lingers++ * 7 % 16) / 16;
}

void ddps_sd_carrier_idle(struct ddps_sd_carrier *c)
{
	const struct ddps_sd_listener *waits;
	uint32_t ms = LINGER_MS;

	if (c->nsessions || c->state == DDPS_SD_GOING) {
		ddps_sd_carrier_not_idle(c);
		if (c->state != DDPS_SD_GOING) /* it has a time limit, see ddps_sd_carrier_leave */
			ddps_timer_stop(c->env->loop, &c->linger);
		return;
	}
	list_idle(c);
	if (c->state == DDPS_SD_GOING)
		return;
	waits = c->fresh ? c->listener : NULL; /* for its first word */
	if (waits)
		ms = waits->param.setup_ms ? waits->param.setup_ms : PASSIVE_LINGER_MS;
	else if (c->npairs)
		ms = DRAIN_MS;
	else if (!c->goal)
		ms = c->listener ? PASSIVE_LINGER_MS : DRAIN_MS;
	if (!c->fresh) /* the other is somebody's deadline */
		ms = spread(c->prov, ms);
	ddps_timer_after(c->env->loop, &c->linger, ms);
}

/* A SHUTDOWN and the answer to one wait for what was sent (9260-9.2), for ever if the peer does not read. */
void ddps_sd_carrier_leave(struct ddps_sd_carrier *c)
{
	ddps_timer_after(c->env->loop, &c->linger, LEAVE_MS);
}

static void linger_over(void *user)
{
	struct ddps_sd_carrier *c = user;

	if (c->state == DDPS_SD_COMING) {
		ddps_sd_carrier_free(c);
		return;
	}
	if (c->state == DDPS_SD_GOING) {
		ddps_sd_log(c, DDPS_LOG_INFO, ": the peer does not let it end");
		c->b->abort(c->assoc);
		return;
	}
	ddps_sd_log(c, DDPS_LOG_DEBUG, ": idle association shut down");
	shut_down_carrier(c);
}

/* ---- starting sessions ---- */

/* The side that sent the INIT takes even ids, the other odd ones: then two Initiates never
 * meet on one id.  The number of usable ids if none is free. */
static unsigned free_id(const struct ddps_sd_carrier *c)
{
	unsigned parity = c->by_us ? 0 : 1;
	unsigned count = (c->usable + 1 - parity) / 2;

	for (unsigned i = 0; i < count; i++) {
		unsigned id = (c->next_id + i) % count * 2 + parity;

		if (!ddps_sd_pair_find(c, id))
			return id;
	}
	return c->usable;
}

bool ddps_sd_carrier_full(const struct ddps_sd_carrier *c)
{
	return c->state == DDPS_SD_UP && free_id(c) == c->usable;
}

static void start_session(struct ddps_sd_carrier *c, struct ddps_sd_session *s)
{
	unsigned id = free_id(c);
	struct ddps_sd_pair *p;
	struct ddps_error e;

	if (id == c->usable) {
		e = ddps_error_make(DDPS_E_LIMIT, 0,
				    "all stream pairs of the association are in use");
		ddps_sd_session_end(s, &e);
		return;
	}
	p = ddps_sd_pair_new(c, (uint16_t)id);
	if (!p) {
		e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a stream pair");
		ddps_sd_session_end(s, &e);
		return;
	}
	c->next_id = id / 2 + 1;
	ddps_timer_stop(c->env->loop, &s->timer);
	TAILQ_REMOVE(&c->waiting, s, link);
	ddps_sd_session_attach(s, c, p);
	p->sm.enhanced = s->enhanced;
	p->answer_ms = s->param.setup_ms;
	p->pd = s->pd;
	p->pd_len = s->pd_len;
	s->pd = NULL;
	ddps_sd_pair_step(p, DDPS_SD_EV_CONNECT, NULL, NULL);
}

void ddps_sd_carrier_start_waiting(struct ddps_sd_carrier *c)
{
	while (c->state == DDPS_SD_UP && !c->judging && c->outgoing < DDPS_SD_PENDING_MAX &&
	       !TAILQ_EMPTY(&c->waiting))
		start_session(c, TAILQ_FIRST(&c->waiting));
}

void ddps_sd_carrier_wait(struct ddps_sd_carrier *c, struct ddps_sd_session *s)
{
	TAILQ_INSERT_TAIL(&c->waiting, s, link);
	ddps_sd_session_attach(s, c, NULL);
	ddps_sd_session_connect_timer(s);
	ddps_sd_carrier_start_waiting(c);
}

static void run_task(void *user)
{
	struct ddps_sd_carrier *c = user;
	struct ddps_error e;

	ddps_sd_check(c);
	if (c->resets) {
		reset_carrier(c);
		return;
	}
	if (c->stuck && !c->nsessions) {
		e = ddps_error_make(DDPS_E_CLOSED, 0, "it took nothing, and nobody else used it");
		ddps_sd_carrier_abort(c, &e);
		return;
	}
	c->stuck = false;
	ddps_sd_carrier_start_waiting(c);
	if (c->b->acks && c->ndry)
		ddps_sd_tx_acked(c, c->acked);
	else
		ddps_sd_tx_run(c);
}

static void pause_over(void *user)
{
	ddps_sd_check(user);
	ddps_sd_rx_pause_over(user);
}

static void begin_quiet(void *user)
{
	struct ddps_sd_carrier *c = user;

	c->quiet = true;
}
