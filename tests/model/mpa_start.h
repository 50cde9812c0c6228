/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of MPA between two ends (RFC 5044 7.1, RFC 6581 5) for spin: each end is the library's own
 * table (src/mpa_tcp/mpa_sm.c).  TCP keeps the order.  mpa_start.pml chooses what happens next.
 *
 * The claims: a responder sends no FPDU before it has one [5044-7.1.2-15], nothing arrives where the
 * table has no place for it, and where nothing can happen any more all that was posted has arrived,
 * unless somebody said no.
 */
#include "mpa_tcp/mpa_sm.h"
#include <stdio.h>
#include <string.h>

#ifndef RTR
#define RTR 1 /* peer-to-peer: the initiator sends one FPDU by itself [6581-5-1] */
#endif
#ifndef POSTS0
#define POSTS0 0 /* of the initiator */
#endif
#ifndef POSTS1
#define POSTS1 2
#endif

#define QUEUE 8u

enum kind { REQUEST, REPLY, NO, FPDU };

struct end {
	unsigned char state, nq, posted, held, got, first;
	unsigned char q[QUEUE]; /* on the way to it */
};

struct w {
	struct end e[2];
	unsigned char bad, refused;
};

/* What may happen at an end. */
enum { ULP_YES, ULP_NO, POST, ARRIVE, EVENTS };

static void put(struct w *w, unsigned x, enum kind kind)
{
	struct end *to = &w->e[!x];

	w->bad |= to->nq == QUEUE;
	to->q[to->nq++] = (unsigned char)kind;
}

static void fpdu(struct w *w, unsigned x)
{
	w->bad |= x && !w->e[x].first;
	put(w, x, FPDU);
}

static void step(struct w *w, unsigned x, enum ddps_mpa_event ev)
{
	struct end *e = &w->e[x];
	enum ddps_mpa_state s = (enum ddps_mpa_state)e->state;
	unsigned acts = ddps_mpa_sm_step(&s, ev);

	w->bad |= !acts;
	e->state = (unsigned char)s;
	if (acts & DDPS_MPA_DO_SEND_REQUEST)
		put(w, x, REQUEST);
	if (acts & DDPS_MPA_DO_SEND_REPLY)
		put(w, x, ev == DDPS_MPA_EV_ULP_ACCEPT ? REPLY : NO);
	if (acts & DDPS_MPA_DO_HOLD)
		e->held++;
	if (acts & DDPS_MPA_DO_SEND)
		fpdu(w, x);
	if (!x && ev == DDPS_MPA_EV_ULP_ACCEPT && RTR)
		fpdu(w, x);
	if (acts & DDPS_MPA_DO_OPEN_FENCE || (!x && ev == DDPS_MPA_EV_ULP_ACCEPT))
		for (; e->held; e->held--)
			fpdu(w, x);
}

static void begin(struct w *w)
{
	memset(w, 0, sizeof *w);
	step(w, 0, DDPS_MPA_EV_INITIATE);
	step(w, 1, DDPS_MPA_EV_RESPOND);
}

static int decides(const struct end *e)
{
	return e->state == DDPS_MPA_REPLY_ULP || e->state == DDPS_MPA_REQUEST_ULP;
}

static int can(const struct w *w, unsigned x, unsigned ev)
{
	const struct end *e = &w->e[x];

	switch (ev) {
	case ULP_YES:
		return decides(e);
	case ULP_NO:
		return decides(e) && x;
	case POST: /* of a responder: once it has a request */
		return e->posted < (x ? POSTS1 : POSTS0) && !w->refused &&
		       e->state != DDPS_MPA_AWAIT_REQUEST;
	default: /* what follows the Reply waits for the decision */
		return e->nq && !decides(e) && !w->refused;
	}
}

static void arrives(struct w *w, unsigned x)
{
	static const enum ddps_mpa_event ev[] = { DDPS_MPA_EV_REQUEST_OK, DDPS_MPA_EV_REPLY_OK,
						  DDPS_MPA_EV_REPLY_REJECT, DDPS_MPA_EV_FPDU_OK };
	struct end *e = &w->e[x];
	enum kind kind = (enum kind)e->q[0];

	memmove(e->q, e->q + 1, QUEUE - 1);
	e->q[--e->nq] = 0;
	w->refused |= kind == NO;
	e->got += kind == FPDU;
	e->first |= kind == FPDU;
	step(w, x, ev[kind]);
}

static void happens(struct w *w, unsigned x, unsigned ev, int unused)
{
	(void)unused;
	w->e[x].posted += ev == POST;
	switch (ev) {
	case ULP_YES:
		step(w, x, DDPS_MPA_EV_ULP_ACCEPT);
		break;
	case ULP_NO:
		step(w, x, DDPS_MPA_EV_ULP_REJECT);
		break;
	case POST:
		step(w, x, DDPS_MPA_EV_POST);
		break;
	default:
		arrives(w, x);
	}
}

static const char *said(const struct w *w, unsigned x, unsigned ev, int unused)
{
	static const char *const name[] = { "yes", "no", "post", "arrives" };
	static char text[100];

	(void)unused;
	snprintf(text, sizeof text, "%u %s: %s, %s", x, name[ev],
		 ddps_mpa_state_name((enum ddps_mpa_state)w->e[0].state),
		 ddps_mpa_state_name((enum ddps_mpa_state)w->e[1].state));
	return text;
}

static int all_done(const struct w *w)
{
	return w->refused || (w->e[0].got == POSTS1 && w->e[1].got == POSTS0 + RTR);
}

static void look(const struct w *w, int may[2])
{
	for (unsigned x = 0; x < 2; x++) {
		may[x] = 0;
		for (unsigned ev = 0; ev < EVENTS; ev++)
			may[x] |= can(w, x, ev) << ev;
	}
}
