/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes in on a stream: checks, DDP-SSN order, and what no session is there for. */
#include "sctp_ddp/sd_assoc.h"
#include <stdlib.h>

/* Messages with a foreign PPID before the whole association is given up. */
#define BAD_PPID_MAX 64u

static void drop_sd_message(struct ddps_sd_carrier *c, uint16_t stream, const char *why)
{
	c->stats.dropped++;
	ddps_sd_log(c, DDPS_LOG_DEBUG, " stream %u: dropped: %s", stream, why);
}

static void fail_pair(struct ddps_sd_pair *p, const struct ddps_error *e)
{
	ddps_sd_pair_step(p, DDPS_SD_EV_ILLEGAL, NULL, e);
}

static void follow_flag(bool *flag, bool now, unsigned *count)
{
	if (*flag != now)
		*count += now ? 1u : -1u;
	*flag = now;
}

static uint32_t beyond_share(const struct ddps_sd_order *o)
{
	size_t octets = o->octets > DDPS_SD_STALL_OCTETS ? o->octets - DDPS_SD_STALL_OCTETS : 0;
	size_t items = o->count > DDPS_SD_STALL_MESSAGES
			       ? (o->count - DDPS_SD_STALL_MESSAGES) * DDPS_SD_STALL_ITEM
			       : 0;

	return (uint32_t)(octets > items ? octets : items);
}

/* The window takes what the stalled sessions hold too much.  Whether it is shut, or was and half of
 * that is still there. */
static bool narrow_window(struct ddps_sd_carrier *c)
{
	size_t all =
		c->nwaiting && c->held > DDPS_SD_STALL_ASSOC ? c->held - DDPS_SD_STALL_ASSOC : 0;
	uint32_t over = c->over > all ? c->over : (uint32_t)all;

	if (c->kept == 2 * over)
		return c->paused;
	c->kept = 2 * over;
	if (c->b->keep(c->assoc, c->kept)) {
		c->over_shut = over;
		return true;
	}
	return c->paused && over > c->over_shut / 2;
}

/* Half, so that it does not flutter. */
static void follow_brim(struct ddps_sd_pair *p)
{
	unsigned part = p->brim ? 2 : 1;

	follow_flag(&p->brim,
		    p->waits && (p->rx.octets >= DDPS_SD_STALL_OCTETS / part ||
				 p->rx.count >= DDPS_SD_STALL_MESSAGES / part),
		    &p->carrier->nbrim);
}

/* For want of a window of its own it is not read. */
static bool holds_too_much(const struct ddps_sd_carrier *c)
{
	return c->nbrim || (c->nwaiting && c->held >= DDPS_SD_STALL_ASSOC / (c->paused ? 2 : 1));
}

/* Follow what @p holds: stop or go on reading the association. */
static void follow_pressure(struct ddps_sd_pair *p)
{
	struct ddps_sd_carrier *c = p->carrier;
	uint32_t over;
	bool pause;

	follow_flag(&p->waits, p->sess && p->sess->stalled, &c->nwaiting);
	over = p->waits ? beyond_share(&p->rx) : 0;
	c->over += over - p->over;
	p->over = over;
	follow_brim(
		p); /* whatever the state: an association that was about to end may begin anew */
	if (c->state != DDPS_SD_UP)
		return;
	pause = c->b->keep ? narrow_window(c) : holds_too_much(c);
	if (c->paused == pause)
		return;
	c->paused = pause;
	if (pause)
		ddps_timer_after(c->env->loop, &c->pause_timer, DDPS_SD_PAUSE_MS);
	else
		ddps_timer_stop(c->env->loop, &c->pause_timer);
	ddps_sd_log(c, DDPS_LOG_INFO, ": association %s",
		    c->paused ? "takes nothing while a session lacks receive buffers"
			      : "takes messages again");
	if (!c->b->keep)
		c->b->pause(c->assoc, c->paused);
}

void ddps_sd_rx_restart(struct ddps_sd_carrier *c)
{
	ddps_timer_stop(c->env->loop, &c->pause_timer);
	c->paused = false;
	c->over_shut = 0;
	if (c->kept)
		c->b->keep(c->assoc, 0);
	c->kept = 0;
}

void ddps_sd_rx_pause_over(struct ddps_sd_carrier *c)
{
	struct ddps_sd_pair *most = NULL;
	struct ddps_error e;

	/* If all of them stall, or the only one, nobody is kept waiting. */
	if (c->state != DDPS_SD_UP)
		return;
	ddps_timer_after(c->env->loop, &c->pause_timer, DDPS_SD_PAUSE_MS);
	if (c->nwaiting >= c->nsessions)
		return;
	for (unsigned i = 0; i < c->npairs_size; i++) {
		struct ddps_sd_pair *p = c->pairs[i];

		if (p && p->waits && (!most || p->rx.octets > most->rx.octets))
			most = p;
	}
	if (!most)
		return;
	e = ddps_error_make(
		DDPS_E_LIMIT, 0,
		"no receive was posted for %u ms with %zu octets waiting, and other "
		"sessions of the association waited behind them: post receives in time, or "
		"have the initiator stall too, then it has an association of its own",
		DDPS_SD_PAUSE_MS, most->rx.octets);
	fail_pair(most, &e);
}

void ddps_sd_rx_reset(struct ddps_sd_pair *p)
{
	p->carrier->held -= p->rx.octets;
	ddps_sd_order_reset(&p->rx);
	p->closing = false;
	follow_pressure(p);
}

void ddps_sd_rx_strip(struct ddps_sd_pair *p)
{
	p->carrier->held -= p->rx.octets;
	ddps_sd_order_strip(&p->rx);
	p->carrier->held += p->rx.octets;
	follow_pressure(p);
}

/* ---- in order ---- */

static bool is_pair_stalled(const struct ddps_sd_pair *p)
{
	return p->sess && p->sess->stalled;
}

static void tell_closing(const struct ddps_sd_pair *p)
{
	if (p->closing && is_pair_stalled(p))
		p->sess->llp.up->peer_closing(p->sess->llp.user);
}

/* After the Accept nothing is taken before the ULP has called open(). */
static bool gated(const struct ddps_sd_pair *p)
{
	return is_pair_stalled(p) || (p->sess && !p->sess->opened && p->sm.state == DDPS_SD_OPEN);
}

/* [5043-6.4-3] Whether one more Initiate may be shown. */
static bool may_request(const struct ddps_sd_carrier *c)
{
	const struct ddps_sd_listener *l = c->listener;

	if (!l)
		return false;
	if (c->pending < DDPS_SD_PENDING_MAX && l->half_open < l->param.max_half_open)
		return true;
	c->env->half_open_full++;
	return false;
}

/* @m has its turn. */
static void take_sd_message(struct ddps_sd_pair *p, const struct ddps_sd_msg *m)
{
	struct ddps_sd_carrier *c = p->carrier;
	enum ddps_sd_event ev = ddps_sd_classify(&p->sm, m);

	if (ev == DDPS_SD_EV_INITIATE && p->sm.state == DDPS_SD_IDLE) {
		ddps_sd_carrier_spoke(c);
		if (may_request(c))
			p->sm.enhanced = m->code == DDPS_SD_ENH_INITIATE;
		else
			ev = DDPS_SD_EV_OVERLOAD;
	}
	ddps_sd_pair_step(p, ev, m, NULL);
}

void ddps_sd_rx_resume(struct ddps_sd_pair *p)
{
	struct ddps_sd_held *h;
	struct ddps_sd_msg m;

	while (!gated(p)) {
		h = ddps_sd_order_take(&p->rx);
		if (!h)
			break;
		p->carrier->held -= ddps_sd_order_cost(h->len);
		/* It was decoded before it was held, and cannot fail now. */
		ddps_sd_decode(&m, h->ppid, h->data, h->len);
		take_sd_message(p, &m);
		if (is_pair_stalled(p)) {
			ddps_sd_order_untake(&p->rx, h);
			p->carrier->held += ddps_sd_order_cost(h->len);
		} else {
			free(h);
		}
	}
	ddps_sd_order_trim(&p->rx);
	follow_pressure(p);
	tell_closing(p);
}

/* ---- ahead of order ---- */

/*
 * Whether @cost more octets may be held; @e says why not.  A responder may send right behind its
 * Accept, which may be late: what overtakes it has the bounds of a session.  In front of a decision,
 * or for a session that was given up, there is little to wait for.
 */
static bool may_hold_message(const struct ddps_sd_pair *p, size_t cost, struct ddps_error *e)
{
	enum ddps_sd_state s = p->sm.state;
	bool early = s == DDPS_SD_A1C || s == DDPS_SD_A1T || s == DDPS_SD_P1;
	size_t limit = early ? DDPS_SD_EARLY_OCTETS : DDPS_SD_HELD_SESSION;

	if (early && p->rx.count >= DDPS_SD_EARLY_MAX)
		*e = ddps_error_make(DDPS_E_LIMIT, 0, "more than %u messages ahead of the %s",
				     DDPS_SD_EARLY_MAX, s == DDPS_SD_P1 ? "decision" : "answer");
	else if (p->rx.octets + cost > limit)
		*e = ddps_error_make(DDPS_E_LIMIT, 0, "more than %zu octets out of order", limit);
	else if (p->carrier->held + cost > DDPS_SD_HELD_ASSOC)
		*e = ddps_error_make(DDPS_E_LIMIT, 0,
				     "more than %u octets out of order in one association",
				     DDPS_SD_HELD_ASSOC);
	else
		return true;
	return false;
}

/* SCTP has acknowledged it, so it cannot be refused: keep it, or end the session. */
static bool hold_sd_message(struct ddps_sd_pair *p, const struct ddps_sd_msg *m, uint32_t ppid,
			    const uint8_t *data, size_t len)
{
	struct ddps_error e;

	/* Of a dead session only the number still counts. */
	if (!p->sess && m->segment)
		len = DDPS_SD_SSN_LEN;
	if (!may_hold_message(p, ddps_sd_order_cost(len), &e)) {
		fail_pair(p, &e);
		return false;
	}
	if (ddps_sd_order_hold(&p->rx, m->ssn, ppid, data, len) < 0) {
		e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a message that has to wait");
		if (p->sess && p->sess->opened)
			ddps_sd_session_fail(p->sess, &e);
		else
			fail_pair(p, &e);
		return false;
	}
	p->carrier->held += ddps_sd_order_cost(len);
	if (!m->segment && m->code == DDPS_SD_TERMINATE) {
		p->closing = true;
		p->closing_ssn = m->ssn;
		ddps_sd_tx_wait_dry(
			p, DDPS_SD_WHENEVER); /* the association may go before that is taken */
	}
	return true;
}

/* The layer above holds the message back that has its turn: it keeps its place in the order. */
static void put_back(struct ddps_sd_pair *p, const struct ddps_sd_msg *m, uint32_t ppid,
		     const uint8_t *data, size_t len)
{
	if (hold_sd_message(p, m, ppid, data, len))
		p->rx.next--;
}

/* ---- arrival ---- */

static void in_session(struct ddps_sd_pair *p, const struct ddps_sd_msg *m, uint32_t ppid,
		       const uint8_t *data, size_t len)
{
	struct ddps_error e;

	switch (ddps_sd_order_check(&p->rx, m->ssn)) {
	case DDPS_SD_NEXT:
		if (gated(p)) {
			hold_sd_message(p, m, ppid, data, len);
			break;
		}
		p->rx.next++;
		take_sd_message(p, m);
		if (is_pair_stalled(p))
			put_back(p, m, ppid, data, len);
		break;
	case DDPS_SD_AHEAD:
		hold_sd_message(p, m, ppid, data, len);
		break;
	case DDPS_SD_OLD: /* [5043-10-6] */
	case DDPS_SD_DUPLICATE:
		e = ddps_error_make(DDPS_E_PROTOCOL, 0,
				    "DDP-SSN %u is old or a duplicate, due is %u", m->ssn,
				    p->rx.next);
		fail_pair(p, &e);
		break;
	}
	if (p->rx.count)
		ddps_sd_rx_resume(p);
}

/* @m is the first of a session on an idle pair. */
static void take_first_sd_message(struct ddps_sd_pair *p, const struct ddps_sd_msg *m)
{
	p->rx.next = 1;
	take_sd_message(p, m);
}

/* Nothing may precede the Initiate [5043-6.6-2], so nothing is held here. */
static void without_session(struct ddps_sd_carrier *c, uint16_t stream, const struct ddps_sd_msg *m)
{
	struct ddps_sd_pair *p;

	if (m->ssn || (!m->segment && !m->bad && m->code == DDPS_SD_TERMINATE)) {
		drop_sd_message(c, stream, "no session there");
		return;
	}
	if (!ddps_sd_is_initiate(m) && ddps_sd_pair_answered(c, stream)) {
		drop_sd_message(c, stream, "no session there, and the peer was informed");
		return;
	}
	p = ddps_sd_pair_new(c, stream);
	if (!p) {
		ddps_log(&c->env->log, DDPS_LOG_ERROR, "sctp", "stream %u: no memory", stream);
		drop_sd_message(c, stream, "no memory");
		return;
	}
	take_first_sd_message(p, m);
}

/*
 * The peer may start over after its last message, without a Terminate of its own in LT.  Or with one
 * that waits behind a segment which the layer above has no room for: the peer has ended the session.
 */
static bool starts_over(const struct ddps_sd_pair *p, const struct ddps_sd_msg *m)
{
	if (!ddps_sd_is_initiate(m) || m->ssn)
		return false;
	return p->sm.state == DDPS_SD_DRAIN ||
	       (p->sm.state == DDPS_SD_LT && (!p->rx.count || (p->closing && is_pair_stalled(p))));
}

static void start_over(struct ddps_sd_pair *p, const struct ddps_sd_msg *m)
{
	struct ddps_error lost;

	if (p->rx.count)
		lost = ddps_error_make(DDPS_E_LIMIT, 0,
				       "%u messages came that no receive was posted for, and the "
				       "peer has begun its next session",
				       p->rx.count - 1);
	ddps_sd_pair_step(p, DDPS_SD_EV_AGAIN, m, p->rx.count ? &lost : NULL);
	if (p->sess) { /* in DRAIN: a rejected one that waits for the end */
		struct ddps_error e = ddps_error_make(0, 0, "session closed");

		ddps_sd_session_end(p->sess, &e);
	}
	ddps_sd_tx_reset(p);
	ddps_sd_rx_reset(p);
	take_first_sd_message(p, m);
}

/* No DDP-SSN in it, or no meaning: no place in the order. */
static void senseless(struct ddps_sd_carrier *c, uint16_t stream, uint32_t ppid, size_t len,
		      int err)
{
	struct ddps_sd_pair *p = ddps_sd_pair_find(c, stream);
	struct ddps_error e =
		ddps_error_make(DDPS_E_TRUNCATED, 0, "message of %zu octets, PPID %u", len, ppid);

	if (err == DDPS_E_PROTOCOL) {
		e = ddps_error_make(
			DDPS_E_PROTOCOL, 0, "PPID 0x%08x is neither 16 nor 17%s", ppid,
			ddps_sd_ppid_swapped(ppid) ? ": its octets are in the wrong order" : "");
		c->stats.bad_ppid++;
	}
	if (p) {
		fail_pair(p, &e);
	} else {
		drop_sd_message(c, stream, e.text);
	}
	if (c->stats.bad_ppid > BAD_PPID_MAX)
		ddps_sd_carrier_abort(c, &e);
}

/* As most are: a segment that has its turn, on an open session that takes it.  False: nothing was done, and
 * the steps decide. */
static bool take_straight(struct ddps_sd_carrier *c, uint16_t stream, uint32_t ppid,
			  const uint8_t *data, size_t len)
{
	struct ddps_sd_pair *p = ddps_sd_pair_find(c, stream);
	struct ddps_sd_msg m = { .segment = true };

	if (ppid != DDPS_SD_PPID_SEGMENT || len < DDPS_SD_SSN_LEN || !p ||
	    p->sm.state != DDPS_SD_OPEN || p->rx.count || !p->sess || !p->sess->opened ||
	    p->sess->stalled)
		return false;
	m.ssn = (uint16_t)(data[0] << 8 | data[1]);
	if (m.ssn != p->rx.next)
		return false;
	p->rx.next++;
	ddps_sd_pair_deliver(p, data + DDPS_SD_SSN_LEN, len - DDPS_SD_SSN_LEN);
	if (is_pair_stalled(p))
		put_back(p, &m, ppid, data, len);
	if (p->rx.count)
		ddps_sd_rx_resume(p);
	return true;
}

/* A program that has seen the end of a session may call nothing again. */
static void acknowledge_end(struct ddps_sd_carrier *c, const struct ddps_sd_msg *m)
{
	bool ends = m->code == DDPS_SD_TERMINATE || m->code == DDPS_SD_REJECT ||
		    m->code == DDPS_SD_ENH_REJECT;

	if (ends && c->b->ack_now)
		c->b->ack_now(c->assoc);
}

void ddps_sd_rx_message(struct ddps_sd_carrier *c, uint16_t stream, uint32_t ppid,
			const uint8_t *data, size_t len)
{
	struct ddps_sd_pair *p;
	struct ddps_sd_msg m;
	int err;

	if (stream >= c->usable) {
		drop_sd_message(c, stream, "the stream has no partner");
		return;
	}
	if (take_straight(c, stream, ppid, data, len))
		return;
	err = ddps_sd_decode(&m, ppid, data, len);
	if (err < 0) {
		senseless(c, stream, ppid, len, err);
		return;
	}
	acknowledge_end(c, &m);
	p = ddps_sd_pair_find(c, stream);
	if ((!p || starts_over(p, &m)) && c->ebbs)
		drop_sd_message(c, stream, "the association ends");
	else if (!p)
		without_session(c, stream, &m);
	else if (starts_over(p, &m))
		start_over(p, &m);
	else if (p->sm.state == DDPS_SD_DRAIN)
		ddps_sd_pair_step(p, ddps_sd_classify(&p->sm, &m), &m, NULL);
	else
		in_session(p, &m, ppid, data, len);
}
