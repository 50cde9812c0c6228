/* SPDX-License-Identifier: BSD-2-Clause */
/* The bounds of handshakes that peers begin. */
#include "secure/shake_gate.h"
#include <stddef.h>
#include <string.h>

#define SECOND	 UINT64_C(1000000000) /* ns */
#define EACH	 (SECOND / DDPS_GATE_RATE)
#define PATIENCE (DDPS_GATE_MS * (SECOND / 1000))
#define BURST	 (DDPS_GATE_PLACES * EACH) /* what a network may owe */

void ddps_gate_init(struct ddps_gate *g)
{
	memset(g, 0, sizeof *g);
	ddps_shake_order_init(&g->waiting);
}

void ddps_gate_wait(struct ddps_gate *g, struct ddps_gate_pass *p, uint64_t net)
{
	p->at = DDPS_GATE_WAITS;
	ddps_shake_order_add(&g->waiting, &p->place, net);
}

/* ---- what networks owe ---- */

/* Of @net; or that which is paid first, for it to be used. */
static unsigned find_debt(const struct ddps_gate *g, uint64_t net)
{
	unsigned first = 0;

	for (unsigned i = 0; i < DDPS_GATE_NETS; i++) {
		if (g->debts[i].net == net)
			return i;
		if (g->debts[i].paid < g->debts[first].paid)
			first = i;
	}
	return first;
}

/* When the next one of @net may begin; <= @now: now. */
static uint64_t get_due(const struct ddps_gate *g, uint64_t net)
{
	const unsigned i = find_debt(g, net);
	const uint64_t paid = g->debts[i].net == net ? g->debts[i].paid : 0;

	return paid > BURST - EACH ? paid - (BURST - EACH) : 0;
}

static void charge_net(struct ddps_gate *g, uint64_t net, uint64_t now)
{
	const unsigned i = find_debt(g, net);

	if (g->debts[i].net != net || g->debts[i].paid < now)
		g->debts[i].paid = now;
	g->debts[i].net = net;
	g->debts[i].paid += EACH;
}

static void forgive_net(struct ddps_gate *g, uint64_t net)
{
	const unsigned i = find_debt(g, net);

	if (g->debts[i].net == net && g->debts[i].paid > EACH)
		g->debts[i].paid -= EACH;
}

/* ---- places ---- */

static struct ddps_gate_pass *pass_of(struct ddps_shake_place *p)
{
	return (struct ddps_gate_pass *)((char *)p - offsetof(struct ddps_gate_pass, place));
}

struct ddps_gate_pass *ddps_gate_waiter(const struct ddps_gate *g)
{
	struct ddps_shake_place *p = TAILQ_FIRST(&g->waiting.places);

	return p ? pass_of(p) : NULL;
}

static unsigned count_in(const struct ddps_gate *g, uint64_t net)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++)
		n += g->in[i]->place.net == net;
	return n;
}

/* Whoever may begin now, of the network that has fewest places (@fewest) the first in turn. */
static struct ddps_gate_pass *choose_waiter(const struct ddps_gate *g, uint64_t now,
					    unsigned *fewest, uint64_t *later)
{
	struct ddps_shake_place *p, *best = NULL, *last = NULL;
	unsigned n;

	*fewest = DDPS_GATE_PLACES + 1;
	*later = 0;
	TAILQ_FOREACH(p, &g->waiting.places, link) {
		const bool again = last && last->net == p->net;
		const uint64_t due = again ? 0 : get_due(g, p->net);

		last = p;
		if (again) /* most of a flood */
			continue;
		if (due > now) {
			*later = *later && *later < due ? *later : due;
			continue;
		}
		n = count_in(g, p->net);
		if (n < *fewest) {
			*fewest = n;
			best = p;
		}
	}
	return best ? pass_of(best) : NULL;
}

struct ddps_gate_pass *ddps_gate_next(struct ddps_gate *g, uint64_t now, uint64_t *later)
{
	struct ddps_gate_pass *p;
	unsigned fewest;

	*later = 0;
	if (g->n == DDPS_GATE_PLACES)
		return NULL;
	p = choose_waiter(g, now, &fewest, later);
	if (!p)
		return NULL;
	ddps_shake_order_pick(&g->waiting, &p->place);
	charge_net(g, p->place.net, now);
	p->at = DDPS_GATE_IN;
	g->in[g->n++] = p;
	return p;
}

/* Places of many networks, whose peers say nothing: each has its time. */
static struct ddps_gate_pass *find_silent(const struct ddps_gate *g, uint64_t now, uint64_t *later)
{
	struct ddps_gate_pass *oldest = NULL;
	uint64_t due;

	for (unsigned i = 0; i < g->n; i++)
		if (g->in[i]->idle && (!oldest || g->in[i]->idle < oldest->idle))
			oldest = g->in[i];
	due = oldest ? oldest->idle + PATIENCE : 0;
	if (due && due <= now)
		return oldest;
	if (due && (!*later || due < *later))
		*later = due;
	return NULL;
}

struct ddps_gate_pass *ddps_gate_first_to_go(const struct ddps_gate *g, uint64_t now,
					     uint64_t *later)
{
	struct ddps_gate_pass *go = NULL;
	unsigned fewest, most, n;
	uint64_t due;

	if (g->n < DDPS_GATE_PLACES || !choose_waiter(g, now, &fewest, &due))
		return NULL;
	most = fewest + 1; /* else the two would only take turns */
	for (unsigned i = 0; i < g->n; i++) {
		n = g->in[i]->idle ? count_in(g, g->in[i]->place.net) : 0;
		if (n > most) {
			most = n;
			go = g->in[i];
		}
	}
	return go || fewest ? go : find_silent(g, now, later);
}

void ddps_gate_leave(struct ddps_gate *g, struct ddps_gate_pass *p, bool well)
{
	unsigned i = 0;

	if (p->at == DDPS_GATE_WAITS)
		ddps_shake_order_del(&g->waiting, &p->place);
	if (p->at == DDPS_GATE_IN) {
		while (g->in[i] != p)
			i++;
		g->n--;
		memmove(&g->in[i], &g->in[i + 1], (g->n - i) * sizeof *g->in);
		if (well)
			forgive_net(g, p->place.net);
	}
	p->at = DDPS_GATE_OUT;
}
