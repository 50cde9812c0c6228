/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends of one SCTP stream pair (RFC 5043 6, RFC 6581 7) for spin: each end is the library's own
 * table (src/sctp_ddp/sd_sm.c).  Around it is what sd_rx.c and sd_tx.c do with DDP-SSNs, on a network
 * that delivers every message once, in any order.  sd_session.pml chooses what happens next.
 *
 * A message carries, unseen, the session it belongs to.  The claims: nobody takes a message of one
 * session for one of another, no DDP-SSN is refused, nothing hangs: where nothing can happen any more,
 * both ends are idle.
 */
#include "sctp_ddp/sd_sm.h"
#include <stdio.h>
#include <string.h>

#ifndef SESSIONS
#define SESSIONS 2 /* that are begun */
#endif
#ifndef SEGMENTS
#define SEGMENTS 1 /* of either end */
#endif
#ifndef STALLS
#define STALLS 1 /* the layer above has no room for a segment */
#endif
#ifndef LOSSES
#define LOSSES 0 /* the association ends, and a new one takes its place */
#endif
#ifndef EARLY_REUSE
#define EARLY_REUSE 0 /* a bad rule: a pair is free before its messages have arrived */
#endif
#ifndef BOTH_ASK
#define BOTH_ASK 0 /* a bad rule: either end begins sessions on the same pair */
#endif

#define MSGS 6u /* of one end, under way or held */

enum kind { INIT, ACC, REJ, TERM, SEG };

struct msg {
	unsigned char there, arrived, kind, session, ssn;
};

struct end {
	struct ddps_sd_sm sm;
	struct msg msg[MSGS]; /* that it has sent */
	unsigned char session, next_tx, next_rx, owes, segments, stalled, live;
};

struct w {
	struct end e[2];
	unsigned char sessions, stalls, losses, bad;
};

/* What may happen, at end X: numbers for the choice. */
enum { CONNECT, ACCEPT, REJECT, ABORT, CLOSE, SEGMENT, RESUME, DRAINED, LOST, ARRIVE };
#define EVENTS (ARRIVE + MSGS)

static void begin(struct w *w)
{
	memset(w, 0, sizeof *w);
}

static void wrong(struct w *w, int cond)
{
	if (cond)
		w->bad = 1;
}

static void put(struct w *w, unsigned x, enum kind kind)
{
	struct end *e = &w->e[x];

	for (unsigned i = 0; i < MSGS; i++) {
		if (e->msg[i].there)
			continue;
		e->msg[i] = (struct msg){ 1, 0, (unsigned char)kind, e->session, e->next_tx++ };
		return;
	}
	w->bad = 2; /* the model is too small */
}

static int on_the_way(const struct end *e, int control)
{
	for (unsigned i = 0; i < MSGS; i++)
		if (e->msg[i].there && !e->msg[i].arrived &&
		    (!control || e->msg[i].kind == INIT || e->msg[i].kind == ACC))
			return 1;
	return 0;
}

static unsigned nheld(const struct end *peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MSGS; i++)
		n += peer->msg[i].there && peer->msg[i].arrived;
	return n;
}

static int closing(const struct end *peer)
{
	for (unsigned i = 0; i < MSGS; i++)
		if (peer->msg[i].there && peer->msg[i].arrived && peer->msg[i].kind == TERM)
			return 1;
	return 0;
}

/* What was held for end @x of its peer's messages is forgotten. */
static void forget(struct w *w, unsigned x)
{
	struct end *peer = &w->e[!x];

	for (unsigned i = 0; i < MSGS; i++)
		if (peer->msg[i].arrived)
			memset(&peer->msg[i], 0, sizeof peer->msg[i]);
	w->e[x].next_rx = 0;
	w->e[x].stalled = 0;
}

static void step(struct w *w, unsigned x, enum ddps_sd_event ev)
{
	struct end *e = &w->e[x];
	enum ddps_sd_state old = e->sm.state;
	unsigned acts;

	wrong(w, ddps_sd_step(&e->sm, ev, &acts) < 0);
	if (acts & DDPS_SD_SEND_INITIATE)
		put(w, x, INIT);
	if (acts & DDPS_SD_SEND_ACCEPT)
		put(w, x, ACC);
	if (acts & DDPS_SD_SEND_REJECT)
		put(w, x, REJ);
	if (acts & DDPS_SD_SEND_TERM) {
		put(w, x, TERM);
		e->owes = 0;
	}
	if (acts & DDPS_SD_OWE_TERM)
		e->owes = 1;
	if (ev == DDPS_SD_EV_ABORT || acts & (DDPS_SD_FAIL | DDPS_SD_END | DDPS_SD_RELEASE))
		e->live = e->stalled = 0;
	if (e->sm.state == DDPS_SD_DRAIN && old != DDPS_SD_DRAIN) {
		e->owes = 0;
		forget(w, x);
	}
	if (acts & DDPS_SD_RELEASE) {
		e->next_tx = 0;
		e->owes = 0;
		forget(w, x);
	}
}

/* A message whose turn it is. */
static void take(struct w *w, unsigned x, const struct msg *m)
{
	static const enum ddps_sd_event ev[] = {
		[INIT] = DDPS_SD_EV_INITIATE, [ACC] = DDPS_SD_EV_ACCEPT,
		[REJ] = DDPS_SD_EV_REJECT,    [TERM] = DDPS_SD_EV_TERMINATE,
		[SEG] = DDPS_SD_EV_SEGMENT,
	};
	struct end *e = &w->e[x];
	enum ddps_sd_state s = e->sm.state;
	int setting_up = s == DDPS_SD_A1 || s == DDPS_SD_A1C || s == DDPS_SD_A1T;

	if (m->kind == INIT && s == DDPS_SD_IDLE) {
		e->session = m->session;
		e->live = 1;
	} else if (e->live && m->session != e->session) {
		wrong(w, m->kind != INIT || !setting_up); /* both ask: both sessions end */
	}
	step(w, x, ev[m->kind]);
}

/* Whether the layer above has room for it. */
static int room(struct w *w, struct end *e, const struct msg *m, int stall)
{
	if (m->kind != SEG || !stall || !e->live ||
	    (e->sm.state != DDPS_SD_OPEN && e->sm.state != DDPS_SD_LT))
		return 1;
	e->stalled = 1;
	w->stalls++;
	return 0;
}

static void held_ones(struct w *w, unsigned x)
{
	struct end *e = &w->e[x], *peer = &w->e[!x];

	for (unsigned i = 0; i < MSGS && !e->stalled; i++) {
		struct msg m = peer->msg[i];

		if (!m.there || !m.arrived || m.ssn != e->next_rx)
			continue;
		memset(&peer->msg[i], 0, sizeof m);
		e->next_rx++;
		take(w, x, &m);
		i = (unsigned)-1; /* from the beginning */
	}
}

static void first(struct w *w, unsigned x, const struct msg *m)
{
	w->e[x].next_rx = 1;
	take(w, x, m);
}

static void arrives(struct w *w, unsigned x, unsigned i, int stall)
{
	struct end *e = &w->e[x], *peer = &w->e[!x];
	struct msg m = peer->msg[i];
	enum ddps_sd_state s = e->sm.state;

	memset(&peer->msg[i], 0, sizeof m);
	if (m.kind == INIT &&
	    (s == DDPS_SD_DRAIN ||
	     (s == DDPS_SD_LT && (!nheld(peer) || (e->stalled && closing(peer)))))) {
		step(w, x, DDPS_SD_EV_AGAIN);
		e->next_tx = 0;
		forget(w, x);
		first(w, x, &m);
	} else if (s == DDPS_SD_IDLE) {
		if (!m.ssn && m.kind != TERM)
			first(w, x, &m);
	} else if (m.ssn == e->next_rx && !e->stalled && room(w, e, &m, stall)) {
		e->next_rx++;
		take(w, x, &m);
		held_ones(w, x);
	} else {
		wrong(w, m.ssn < e->next_rx);
		peer->msg[i] = m;
		peer->msg[i].arrived = 1;
	}
}

static void lost(struct w *w)
{
	for (unsigned x = 0; x < 2; x++) {
		memset(w->e[x].msg, 0, sizeof w->e[x].msg);
		step(w, x, DDPS_SD_EV_LOST);
		w->e[x].next_tx = w->e[x].next_rx = w->e[x].owes = w->e[x].stalled = 0;
	}
	w->losses++;
}

static int can(const struct w *w, unsigned x, unsigned ev)
{
	const struct end *e = &w->e[x], *peer = &w->e[!x];
	enum ddps_sd_state s = e->sm.state;

	switch (ev) {
	case CONNECT:
		return s == DDPS_SD_IDLE && (BOTH_ASK || !x) && w->sessions < SESSIONS;
	case ACCEPT:
	case REJECT:
		return s == DDPS_SD_P1;
	case ABORT:
		return s == DDPS_SD_A1 || s == DDPS_SD_P1 || s == DDPS_SD_OPEN;
	case CLOSE: /* it may not overtake what began the session */
		return (s == DDPS_SD_OPEN || s == DDPS_SD_A1C || s == DDPS_SD_PEER_DONE ||
			(s == DDPS_SD_ERR && e->owes)) &&
		       !on_the_way(e, 1);
	case SEGMENT:
		return (s == DDPS_SD_OPEN || s == DDPS_SD_PEER_DONE) && e->live &&
		       e->segments < SEGMENTS;
	case RESUME:
		return e->stalled;
	case DRAINED:
		return s == DDPS_SD_DRAIN && (EARLY_REUSE || !on_the_way(e, 0));
	case LOST:
		return !x && w->losses < LOSSES;
	default:
		return peer->msg[ev - ARRIVE].there && !peer->msg[ev - ARRIVE].arrived;
	}
}

static void happens(struct w *w, unsigned x, unsigned ev, int stall)
{
	static const enum ddps_sd_event of[] = {
		[CONNECT] = DDPS_SD_EV_CONNECT,	  [ACCEPT] = DDPS_SD_EV_ULP_ACCEPT,
		[REJECT] = DDPS_SD_EV_ULP_REJECT, [ABORT] = DDPS_SD_EV_ABORT,
		[CLOSE] = DDPS_SD_EV_TERM_READY,  [DRAINED] = DDPS_SD_EV_DRAINED
	};
	struct end *e = &w->e[x];

	switch (ev) {
	case CONNECT:
		e->session = ++w->sessions;
		e->live = 1;
		e->next_rx = e->next_tx = 0;
		step(w, x, of[ev]);
		break;
	case SEGMENT:
		e->segments++;
		put(w, x, SEG);
		break;
	case RESUME:
		e->stalled = 0;
		held_ones(w, x);
		break;
	case LOST:
		lost(w);
		break;
	case ABORT: /* what was held back for the layer above is useless to it now */
		step(w, x, of[ev]);
		held_ones(w, x);
		break;
	case ACCEPT:
	case REJECT:
	case CLOSE:
	case DRAINED:
		step(w, x, of[ev]);
		break;
	default:
		arrives(w, x, ev - ARRIVE, stall && w->stalls < STALLS);
	}
}

/* A line of a trail: what has happened, and where that leaves both ends. */
static const char *said(const struct w *w, unsigned x, unsigned ev, int stall)
{
	static const char *const name[] = { "connect", "accept", "reject",  "abort", "close",
					    "segment", "resume", "drained", "lost" };
	static char text[100];

	snprintf(text, sizeof text, "%u %s%s: %s %u, %s %u", x, ev < ARRIVE ? name[ev] : "arrives",
		 ev >= ARRIVE && stall ? " (no room)" : "", ddps_sd_state_name(w->e[0].sm.state),
		 w->e[0].session, ddps_sd_state_name(w->e[1].sm.state), w->e[1].session);
	return text;
}

static int all_done(const struct w *w)
{
	return w->e[0].sm.state == DDPS_SD_IDLE && w->e[1].sm.state == DDPS_SD_IDLE;
}

static void look(const struct w *w, int may[2])
{
	for (unsigned x = 0; x < 2; x++) {
		may[x] = 0;
		for (unsigned ev = 0; ev < EVENTS; ev++)
			may[x] |= can(w, x, ev) << ev;
	}
}
