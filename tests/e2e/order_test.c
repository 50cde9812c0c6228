/* SPDX-License-Identifier: BSD-2-Clause */
/* The last event of a session comes behind all of its completions, on every wire. */
#include "support/e2e.h"
#include <string.h>

#define MANY 48

static struct e2e e;

struct count {
	unsigned sent, got, flushed;
	bool over; /* its last event was fetched, and what was there then */
};

static struct count at[2];

static void take_all_completions(void)
{
	struct ddps_wc wc[16];
	int n;

	while ((n = ddps_cq_poll(e.cq, wc, 16)) > 0) {
		for (int i = 0; i < n; i++) {
			struct count *c = &at[wc[i].ep == e.b.ep];

			cr_expect_not(c->over, "a completion behind the last event");
			if (wc[i].status != DDPS_WC_SUCCESS)
				c->flushed++;
			else if (wc[i].op == DDPS_OP_RECV)
				c->got++;
			else
				c->sent++;
		}
	}
}

static void post_order_receives(struct ddps_ep *ep)
{
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(ddps_post_recv(ep, i, NULL, 0), 0);
}

/* @late: the receives come when the peer has closed. */
static void close_behind(const char *wire, bool late, bool both)
{
	struct ddps_event ev;

	memset(at, 0, sizeof at);
	e2e_open(&e, wire);
	e.attr.no_recv = DDPS_NO_RECV_STALL;
	e.attr.sq_depth = e.attr.rq_depth = MANY;
	e2e_connect(&e);
	cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.b.error.text);
	if (!late)
		post_order_receives(e.b.ep);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
	cr_assert_eq(ddps_disconnect(e.a.ep), 0);
	if (late) {
		while (ddps_progress(e.ctx, 20) > 0)
			;
		post_order_receives(e.b.ep);
	}
	if (both && !late)
		cr_assert_eq(ddps_disconnect(e.b.ep), 0);
	while (!at[0].over || !at[1].over) {
		cr_assert_gt(ddps_progress(e.ctx, E2E_MS), 0, "%s", wire);
		while (ddps_event_get(e.ctx, &ev) == 1) {
			if (ev.type == DDPS_EV_PEER_CLOSED && ev.ep == e.b.ep)
				ddps_disconnect(e.b.ep);
			if (ev.type != DDPS_EV_CLOSED)
				continue;
			take_all_completions();
			at[ev.ep == e.b.ep].over = true;
			cr_expect_eq(ev.error.code, 0, "%s: %s", wire, ev.error.text);
		}
	}
	for (unsigned i = 0; i < 20; i++) {
		ddps_progress(e.ctx, 0);
		take_all_completions();
	}
	cr_expect_eq(at[0].sent, MANY, "%s: %u", wire, at[0].sent);
	cr_expect_eq(at[1].got + at[1].flushed, MANY, "%s: %u", wire, at[1].got);
	if (!both)
		cr_expect_eq(at[1].got, MANY, "%s: %u", wire, at[1].got);
	e2e_close(&e);
}

E2E_WIRES(order, contact_01_all_completions_before_closed)
{
	for (unsigned i = 0; i < 10; i++)
		close_behind(wire, false, false);
}

E2E_WIRES(order, contact_01_all_completions_before_closed_by_both)
{
	for (unsigned i = 0; i < 10; i++)
		close_behind(wire, false, true);
}

E2E_WIRES(order, contact_01_all_completions_before_closed_of_what_waited)
{
	for (unsigned i = 0; i < 3; i++)
		close_behind(wire, true, false);
}
