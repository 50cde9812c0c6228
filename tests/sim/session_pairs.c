/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of endpoints: they begin, go on, end; and what becomes of them is the same over either wire. */
#include "sim/session_in.h"

#define ROUNDS 5u

static void open_pair(struct pair *p)
{
	uint32_t name;

	p->rounds--;
	p->rejected = false;
	p->salt = (uint32_t)sim_next(&p->rng);
	name = pair_name(p, 0);
	p->open = sim_happens(SIM_session, name, 0, 1);
	if (!p->open)
		return;
	p->evil = sim_chance(&p->rng, 0.3);
	p->tidy = !p->evil && sim_chance(&p->rng, 0.7) && !p->lied;
	p->rfc7306 = sim_happens(SIM_rfc7306, name, 0, 0.3);
	p->flush = p->rfc7306 && sim_happens(SIM_flush, name, 0, 0.7);
	p->p2p = sim_happens(SIM_p2p, name, 0, 0.3);
	p->shared = sim_happens(SIM_shared, name, 0, 0.2);
	p->markers = sim_happens(SIM_markers, name, 0, 0.3) && !p->lied;
	p->crc = sim_chance(&p->rng, 0.6) || world.corrupt;
	user_begin(&p->end[0]);
	user_begin(&p->end[1]);
	user_connect(&p->end[0]);
}

/* What became of a session, as far as it may not depend on the wire. */
static struct outcome {
	bool there;
	int code[2];
	unsigned received[2];
	uint64_t digest[2][2];
} outcome[2][PAIRS][ROUNDS];

void pairs_forget(void)
{
	memset(outcome, 0, sizeof outcome);
}

static void note_outcome(const struct pair *p)
{
	struct outcome *o = &outcome[p->tcp][p - world.pair][p->rounds];

	*o = (struct outcome){ .there = p->tidy && !world.still };
	for (unsigned k = 0; k < 2; k++) {
		o->code[k] = p->end[k].code;
		o->received[k] = p->end[k].received;
		memcpy(o->digest[k], p->end[k].digest, sizeof o->digest[k]);
	}
}

void pairs_same_on_both(struct sim_tally *t)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		for (unsigned k = 0; k < ROUNDS; k++) {
			const struct outcome *a = &outcome[0][i][k], *b = &outcome[1][i][k];

			if (!a->there || !b->there)
				continue;
			t->n[T_SAME]++;
			check(!memcmp(a, b, sizeof *a),
			      "pair %u: SCTP: codes %d %d, %u and %u messages; TCP: %d %d, %u and "
			      "%u",
			      i, a->code[0], a->code[1], a->received[0], a->received[1], b->code[0],
			      b->code[1], b->received[0], b->received[1]);
		}
	}
}

static void close_pair(struct pair *p)
{
	for (unsigned k = 0; k < 2; k++) {
		struct end *e = &p->end[k];

		host_fetch(e->host);
		host_fetch_events(e->host);
		if (!e->freed && e->asked)
			model_final(e);
	}
	if (!world.failed)
		model_pair(p);
	note_outcome(p);
	user_free(&p->end[0]);
	user_free(&p->end[1]);
	p->open = false;
}

/* The responder that was never asked has nothing to wait for. */
static bool is_pair_over(const struct pair *p)
{
	const struct end *a = &p->end[0], *b = &p->end[1];

	return a->final && (b->final || (!b->asked && !b->req));
}

bool pair_turn(struct pair *p)
{
	if (!p->open) {
		if (p->rounds && !world.still && below(p, 10) < 3)
			open_pair(p);
		return p->open || (p->rounds && !world.still);
	}
	if (is_pair_over(p)) {
		close_pair(p);
		return true;
	}
	if (p->end[1].req &&
	    (world.still || !does_session_world_happen(&p->end[1], SIM_waits, p->n++, 0.5)))
		user_answer(&p->end[1]);
	for (unsigned k = 0; k < 2 && !world.failed; k++)
		if (world.still || p->end[k].final ||
		    world.host[p->end[k].host].stalled_until <= kern.now)
			user_turn(&p->end[k]);
	return true;
}
