/* SPDX-License-Identifier: BSD-2-Clause */
/* Stream pairs: carries out what the state machine says. */
#include "sctp_ddp/sd_assoc.h"
#include <stdlib.h>
#include <string.h>

/* Second period after a given-up Initiate if the ULP set no deadline (RFC 5043 2, A1c). */
#define CANCEL_MS_DEFAULT 10000u

static void answer_late(void *user);

/* ---- table ---- */

struct ddps_sd_pair *ddps_sd_pair_find(const struct ddps_sd_carrier *c, unsigned stream)
{
	return stream < c->npairs_size ? c->pairs[stream] : NULL;
}

static int table_grow(struct ddps_sd_carrier *c, unsigned stream)
{
	unsigned size = c->npairs_size ? c->npairs_size : 2;
	struct ddps_sd_pair **pairs;

	while (size <= stream)
		size *= 2;
	if (size == c->npairs_size)
		return 0;
	pairs = realloc(c->pairs, size * sizeof(*pairs));
	if (!pairs)
		return DDPS_E_NOMEM;
	for (unsigned i = c->npairs_size; i < size; i++)
		pairs[i] = NULL;
	c->pairs = pairs;
	c->npairs_size = size;
	return 0;
}

bool ddps_sd_pair_answered(const struct ddps_sd_carrier *c, unsigned stream)
{
	return c->mute || (c->answered && c->answered[stream / 8] >> (stream % 8) & 1);
}

static void answered_set(struct ddps_sd_carrier *c, unsigned stream, bool on)
{
	uint8_t bit = (uint8_t)(1u << (stream % 8));

	if (on && !c->answered)
		c->answered = calloc(c->usable / 8 + 1, 1);
	if (!c->answered)
		c->mute |= on;
	else if (on)
		c->answered[stream / 8] |= bit;
	else
		c->answered[stream / 8] &= (uint8_t)~bit;
}

struct ddps_sd_pair *ddps_sd_pair_new(struct ddps_sd_carrier *c, uint16_t stream)
{
	struct ddps_sd_pair *p;

	if (table_grow(c, stream) < 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->carrier = c;
	p->turns = c->turns - 1;
	p->stream = stream;
	p->timer = (struct ddps_timer){ .fn = answer_late, .user = p };
	c->pairs[stream] = p;
	c->npairs++;
	return p;
}

static void release_pair(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;

	ddps_timer_stop(c->env->loop, &p->timer);
	ddps_sd_tx_reset(p);
	ddps_sd_rx_reset(p);
	answered_set(c, p->stream, p->sm.answered);
	free(p->asked);
	c->pairs[p->stream] = NULL;
	c->npairs--;
	free(p);
	ddps_sd_carrier_idle(c);
}

/* ---- ending the session above ---- */

struct ddps_error ddps_sd_illegal(const struct ddps_sd_msg *m, enum ddps_sd_state old)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): messages only come with one */
	const char *what = m->segment ? "a DDP segment" : ddps_sd_code_name(m->code);

	if (m->bad)
		return ddps_error_make(DDPS_E_PROTOCOL, 0,
				       "malformed control message: code 0x%04x (%s) with %zu "
				       "octets of private data",
				       m->code, what, m->len);
	return ddps_error_make(DDPS_E_PROTOCOL, 0, "%s is not legal in state %s", what,
			       ddps_sd_state_name(old));
}

/* How a session ends by @ev, for those events that bring no reason of their own. */
static struct ddps_error make_pair_error(const struct ddps_sd_pair *p, enum ddps_sd_state old,
					 enum ddps_sd_event ev)
{
	if (ev == DDPS_SD_EV_REJECT)
		return ddps_error_make(DDPS_E_REJECTED, 0,
				       "the peer's application rejected the request");
	if (old == DDPS_SD_A1)
		return ddps_error_make(DDPS_E_REFUSED, 0, "%s answered with Terminate: %s",
				       p->sm.enhanced ? "Enhanced Initiate" : "Initiate",
				       p->sm.enhanced ? "overloaded, nothing listens, or it does "
							"not know RFC 6581"
						      : "overloaded, or nothing listens");
	if (old == DDPS_SD_P1)
		return ddps_error_make(DDPS_E_CLOSED, 0, "the peer withdrew its request");
	return ddps_error_make(0, 0, "session closed");
}

static void end_pair_session(struct ddps_sd_pair *p, enum ddps_sd_state old, enum ddps_sd_event ev,
			     const struct ddps_error *why)
{
	struct ddps_error e;

	if (!p->sess)
		return;
	if (ev == DDPS_SD_EV_LOST && old == DDPS_SD_OPEN && ddps_sd_session_outlive(p->sess, why))
		return;
	e = why ? *why : make_pair_error(p, old, ev);
	ddps_sd_session_end(p->sess, &e);
}

static void fail_session(struct ddps_sd_pair *p, enum ddps_sd_state old,
			 const struct ddps_sd_msg *m, const struct ddps_error *why)
{
	struct ddps_error e = why ? *why : ddps_sd_illegal(m, old);

	ddps_sd_log(p->carrier, p->sess ? DDPS_LOG_WARN : DDPS_LOG_DEBUG, " stream %u: %s",
		    p->stream, e.text);
	if (p->sess)
		ddps_sd_session_end(p->sess, &e);
}

void ddps_sd_pair_detached(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;

	if (c->tx_pair == p) /* its payload is the ULP's again; it has no DDP-SSN yet */
		ddps_sd_tx_let_go(c);
	p->sess = NULL;
	ddps_sd_rx_strip(p);
}

void ddps_sd_pair_give_up(struct ddps_sd_pair *p)
{
	/* An Initiate that never left leaves nothing to end. */
	if (p->sm.state == DDPS_SD_A1 && p->ctl) {
		ddps_sd_pair_step(p, DDPS_SD_EV_LOST, NULL, NULL);
		return;
	}
	ddps_sd_pair_step(p, DDPS_SD_EV_ABORT, NULL, NULL);
	ddps_sd_rx_resume(p);
}

bool ddps_sd_pair_in_doubt(const struct ddps_sd_pair *p)
{
	switch (p->sm.state) {
	case DDPS_SD_OPEN:
		return ddps_sd_pair_data_unacked(p) && p->sess && ddps_sd_session_has_all(p->sess);
	case DDPS_SD_PEER_DONE:
		return ddps_sd_pair_data_unacked(p);
	case DDPS_SD_LT:
	case DDPS_SD_DRAIN:
		return ddps_sd_pair_unacked(p);
	default:
		return false;
	}
}

void ddps_sd_pair_lose(struct ddps_sd_pair *p, const struct ddps_error *why)
{
	struct ddps_error over = ddps_error_make(0, 0, "session closed");
	bool arrived = p->sm.state == DDPS_SD_DRAIN && p->sess && p->sess->shutting &&
		       p->carrier->acked >= p->data_seq;

	/* One Terminate is enough [5043-6.2-2]: in LT the peer may go without its own, and in DRAIN without
	 * ours.  SCTP does not end in order before all is acknowledged. */
	if (ddps_sd_pair_said_all(p) && (arrived || why->code == DDPS_E_CLOSED))
		why = &over;
	ddps_sd_pair_step(p, DDPS_SD_EV_LOST, NULL, why);
}

/* ---- timer ---- */

static void timer_on(struct ddps_sd_pair *p)
{
	uint32_t ms = p->answer_ms;

	if (p->sm.state == DDPS_SD_A1C && !ms)
		ms = CANCEL_MS_DEFAULT;
	ddps_timer_after(p->carrier->env->loop, &p->timer, ms);
}

static void answer_late(void *user)
{
	struct ddps_sd_pair *p = user;
	struct ddps_error e;

	if (p->sm.state == DDPS_SD_A1) {
		e = ddps_error_make(DDPS_E_TIMEDOUT, 0, "no answer to the Initiate in %u ms",
				    p->answer_ms);
		ddps_sd_session_end(p->sess, &e);
		ddps_sd_pair_give_up(p);
	} else { /* A1C: no other state has the timer */
		p->owe_term = true;
		ddps_sd_tx_check(p);
	}
}

/* ---- upcalls ---- */

static void refuse_judged(struct ddps_sd_pair *p, const struct ddps_error *why)
{
	struct ddps_sd_carrier *c = p->carrier;

	ddps_log(&c->env->log, DDPS_LOG_WARN, "secure", "%s: %s", ddps_sd_carrier_peer(c).text,
		 why->text);
	ddps_sd_pair_step(p, DDPS_SD_EV_ABORT, NULL, NULL);
}

static void show_request(struct ddps_sd_pair *p, const uint8_t *pd, size_t len)
{
	struct ddps_sd_carrier *c = p->carrier;
	struct ddps_sd_listener *l = c->listener;
	struct ddps_sd_session *s;
	struct ddps_setup setup = { .enhanced = p->sm.enhanced, .pd = pd, .pd_len = len };

	s = ddps_sd_session_new(c->env, false);
	if (!s) {
		ddps_log(&c->env->log, DDPS_LOG_ERROR, "sctp", "stream %u: no memory for a request",
			 p->stream);
		ddps_sd_pair_step(p, DDPS_SD_EV_ABORT, NULL, NULL);
		return;
	}
	s->opened = true;
	ddps_sd_session_attach(s, p->carrier, p);
	l->up->request(l->user, &s->llp, &setup);
}

/* Who was let in once may have been revoked since. */
static void take_pair_request(struct ddps_sd_pair *p, const struct ddps_sd_msg *m)
{
	struct ddps_sd_carrier *c = p->carrier;
	struct ddps_error why;
	int err = c->b->judge ? c->b->judge(c->assoc, &why) : 0;

	/* NOLINTBEGIN(clang-analyzer-core.NullDereference): messages only come with one */
	if (!err) {
		show_request(p, m->data, m->len);
		return;
	}
	if (err == DDPS_E_AGAIN) {
		p->asked = malloc(sizeof *p->asked + m->len);
		if (p->asked) {
			p->asked->len = m->len;
			memcpy(p->asked->pd, m->data, m->len);
			return;
		}
		why = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a request");
	}
	/* NOLINTEND(clang-analyzer-core.NullDereference) */
	refuse_judged(p, &why);
}

void ddps_sd_pair_judged(struct ddps_sd_pair *p, const struct ddps_error *why)
{
	struct ddps_sd_asked *asked = p->asked;
	const struct ddps_error gone = ddps_error_make(DDPS_E_CLOSED, 0, "nobody listens any more");

	if (!asked)
		return;
	p->asked = NULL;
	if (why->code || !p->carrier->listener)
		refuse_judged(p, why->code ? why : &gone);
	else
		show_request(p, asked->pd, asked->len);
	free(asked);
}

/* Whatever the peer says here, it has our Initiate, or our Accept. */
static void control_arrived(struct ddps_sd_pair *p)
{
	if (p->last_seq == p->ctl_seq)
		p->last_seq = 0;
	p->ctl_seq = 0;
}

static void show_answer(struct ddps_sd_pair *p, const struct ddps_sd_msg *m)
{
	struct ddps_setup setup = {
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): messages only come with one */
		.enhanced = m->code == DDPS_SD_ENH_ACCEPT || m->code == DDPS_SD_ENH_REJECT,
		.reject = m->code == DDPS_SD_REJECT || m->code == DDPS_SD_ENH_REJECT,
		.pd = m->data,
		.pd_len = m->len,
	};

	ddps_sd_carrier_refresh(p->carrier);
	if (p->sm.state == DDPS_SD_OPEN)
		control_arrived(p);
	p->sess->llp.up->answer(p->sess->llp.user, &setup);
}

void ddps_sd_pair_deliver(struct ddps_sd_pair *p, const uint8_t *data, size_t len)
{
	struct ddps_sd_session *s = p->sess;
	int verdict;

	if (!s || s->rx_dead)
		return;
	if (p->ctl_seq)
		control_arrived(p);
	verdict = s->llp.data->rx_segment(s->llp.data_user, data, len);
	if (p->sess != s)
		return;
	s->rx_dead = verdict < 0;
	s->stalled = verdict == DDPS_LLP_HOLD; /* sd_rx.c keeps it */
}

/* ---- steps ---- */

/* Counts and lists that follow the state. */
static void entered(struct ddps_sd_pair *p, enum ddps_sd_state old, enum ddps_sd_event ev)
{
	struct ddps_sd_carrier *c = p->carrier;
	enum ddps_sd_state now = p->sm.state;
	struct ddps_sd_listener *l = c->listener;

	ddps_sd_log(c, DDPS_LOG_DEBUG, " stream %u: %s -%s-> %s", p->stream,
		    ddps_sd_state_name(old), ddps_sd_event_name(ev), ddps_sd_state_name(now));
	if (now == DDPS_SD_A1)
		c->outgoing++;
	if (now == DDPS_SD_P1) {
		c->pending++;
		c->listener->half_open++;
	}
	if (old == DDPS_SD_P1) {
		free(p->asked);
		p->asked = NULL;
		c->pending--;
		if (l)
			l->half_open--;
	}
	if (old == DDPS_SD_A1 || old == DDPS_SD_A1C)
		c->served |= ev == DDPS_SD_EV_ACCEPT || ev == DDPS_SD_EV_REJECT;
	if (old == DDPS_SD_A1) {
		c->outgoing--;
		if (!TAILQ_EMPTY(&c->waiting))
			ddps_task_post(c->env->loop, &c->task);
	}
	if (now == DDPS_SD_DRAIN)
		ddps_sd_rx_reset(p);
}

static void send_control(struct ddps_sd_pair *p, unsigned acts)
{
	bool enhanced = p->sm.enhanced;

	if (acts & DDPS_SD_SEND_INITIATE)
		p->ctl = enhanced ? DDPS_SD_ENH_INITIATE : DDPS_SD_INITIATE;
	if (acts & DDPS_SD_SEND_ACCEPT)
		p->ctl = enhanced ? DDPS_SD_ENH_ACCEPT : DDPS_SD_ACCEPT;
	if (acts & DDPS_SD_SEND_REJECT)
		p->ctl = enhanced ? DDPS_SD_ENH_REJECT : DDPS_SD_REJECT;
	if (acts & DDPS_SD_SEND_TERM) {
		p->owe_term = false;
		p->term_due = true;
	}
	ddps_sd_tx_control(p);
}

void ddps_sd_pair_step(struct ddps_sd_pair *p, enum ddps_sd_event ev, const struct ddps_sd_msg *m,
		       const struct ddps_error *why)
{
	enum ddps_sd_state old = p->sm.state;
	unsigned acts;

	if (ddps_sd_step(&p->sm, ev, &acts) < 0) {
		ddps_log(&p->carrier->env->log, DDPS_LOG_ERROR, "sctp", "stream %u: %s in state %s",
			 p->stream, ddps_sd_event_name(ev), ddps_sd_state_name(old));
		return;
	}
	if (acts == DDPS_SD_DELIVER) {
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): messages only come with one */
		ddps_sd_pair_deliver(p, m->data, m->len);
		return;
	}
	if (p->sm.state != old)
		entered(p, old, ev);
	if (acts & DDPS_SD_TIMER_OFF)
		ddps_timer_stop(p->carrier->env->loop, &p->timer);
	if (acts & DDPS_SD_TIMER_ON)
		timer_on(p);
	if (acts &
	    (DDPS_SD_SEND_INITIATE | DDPS_SD_SEND_ACCEPT | DDPS_SD_SEND_REJECT | DDPS_SD_SEND_TERM))
		send_control(p, acts);
	else if (p->sm.state == DDPS_SD_DRAIN && old != DDPS_SD_DRAIN)
		ddps_sd_tx_wait_dry(p, DDPS_SD_SOON); /* else when that has been sent */
	if (acts & DDPS_SD_DROP)
		p->carrier->stats.dropped++;
	if (acts & DDPS_SD_REQUEST)
		take_pair_request(p, m);
	if (acts & DDPS_SD_ANSWER)
		show_answer(p, m);
	if (acts & DDPS_SD_PEER_CLOSED) /* of an open session only */
		p->sess->llp.up->peer_closed(p->sess->llp.user);
	if (acts & DDPS_SD_FAIL)
		fail_session(p, old, m, why);
	if (acts & (DDPS_SD_END | DDPS_SD_RELEASE))
		end_pair_session(p, old, ev, why);
	if (acts & DDPS_SD_OWE_TERM) {
		p->owe_term = true;
		ddps_sd_tx_check(p);
	}
	if (acts & DDPS_SD_RELEASE)
		release_pair(p);
}
