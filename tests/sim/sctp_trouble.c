/* SPDX-License-Identifier: BSD-2-Clause */
/* Worlds in which all is well but for one trouble: how long that is felt is known. */
#include "sim/sctp_world.h"

/* All of it begins immediately, so that it is there when the trouble comes. */
static void well(unsigned slots)
{
	struct sn_net *n = &w.net;
	struct sn_link l = { .delay = 1000 + sn_below(n, 1u << sn_below(n, 25)), .mtu = 1500 };

	for (unsigned i = 0; i < n->nodes; i++)
		n->node[i].link[0] = n->node[i].link[1] = l;
	n->full = 0;
	w.mtu = 1500;
	w.clean = w.steady = w.sure = false;
	w.nslots = w.nslots < slots ? w.nslots : slots;
	w.rtt_least = 2 * l.delay;
	w.rtt_most = 2 * l.delay + 21000000;
}

/* RTTs differ by some per cent. */
static void jitters(void)
{
	struct sn_net *n = &w.net;

	for (unsigned i = 0; i < n->nodes; i++)
		n->node[i].link[0].jitter = n->node[i].link[0].delay / 32;
}

/* Packets leave one after the other, and so do their answers: some come before the path is slow, and
 * some after. */
static void read_sctp_trouble_one_by_one(void)
{
	struct sn_net *n = &w.net;

	for (unsigned i = 0; i < n->nodes; i++) {
		struct sn_link *l = &n->node[i].link[0];

		l->rate = 1500e9 / (double)(l->delay / 8 + 1);
	}
}

/* How the programs send: what the trouble meets depends on it. */
static void habits(void)
{
	struct sn_net *n = &w.net;

	w.eager = w.trouble == SLOWS && sn_chance(n, 0.5);
	w.brief = w.trouble == REROUTES ||
		  ((w.trouble == NARROWS || w.trouble == THINS) && sn_chance(n, 0.5));
	w.trickles = w.trouble == REROUTES && sn_chance(n, 0.5);
}

bool trouble_is_contact(void)
{
	return w.trouble >= REFUSES;
}

static void contact(void)
{
	struct sn_net *n = &w.net;

	w.trouble = REFUSES + (enum trouble)sn_below(n, 3);
	w.harsh = w.restarts = false;
	w.poor = 0;
	well(16);
	w.paths = w.trouble == SWITCHES ? 1 : 2;
	w.rtt_most = 0;
	cost_begin();
	w.trouble_turn = 10 + (unsigned)sn_below(n, 10);
	for (unsigned i = 0; i < n->nodes; i++) {
		if (w.trouble == CLAIMS)
			n->node[i].link[1].refuses = true;
		if (w.trouble == SWITCHES)
			n->node[i].link[0].mtu = w.mtu = 9000;
		n->node[i].link[0].blunt = true;
	}
}

void trouble_choose(void)
{
	struct sn_net *n = &w.net;

	if (w.seed * 0x9e3779b97f4a7c15u >> 60 == 0) {
		contact();
		return;
	}
	if (w.harsh || sn_chance(n, 0.7))
		return;
	w.trouble = 1 + (enum trouble)sn_below(n, TROUBLES - 1);
	well(16);
	w.paths = w.trouble == FAILS ? 2 : 1;
	if (w.trouble == LOSES)
		jitters();
	if (w.trouble != SLOWS && w.trouble != RESTS) /* a SACK next to DATA is lost with it */
		w.rtt_most = 0;
	habits();
	if (w.eager) {
		read_sctp_trouble_one_by_one();
		w.rtt_most = 0;
	}
	cost_begin();
	w.trouble_turn = 10 + (unsigned)sn_below(n, 10);
}

unsigned trouble_messages(unsigned n)
{
	return w.trouble ? MESSAGES : n;
}

static void narrows(void)
{
	static const unsigned mtus[] = { 1200, 1280, 1400 };
	static const unsigned thin[] = { 296, 400, 552, 576, 800, 1000, 1100 };
	struct sn_net *n = &w.net;
	unsigned mtu = w.trouble == THINS ? thin[sn_below(n, 7)] : mtus[sn_below(n, 3)];

	for (unsigned i = 0; i < n->nodes; i++)
		n->node[i].link[0].mtu = mtu;
}

static void slows(void)
{
	struct sn_net *n = &w.net;
	uint64_t more = 200000000 + sn_below(n, 400000000);

	for (unsigned i = 0; i < n->nodes; i++)
		n->node[i].link[0].delay += more;
	w.rtt_most += w.rtt_most ? 2 * more : 0;
}

static void dies(bool dead)
{
	for (unsigned i = 0; i < w.net.nodes; i++)
		w.net.node[i].link[0].dead = dead;
}

/* Both of its addresses are known to be the peer's. */
static bool has_both(const struct side *s)
{
	return !s->a || (s->a->npaths == 2 && s->a->path[1]->state == DDPS_SCTP_ACTIVE);
}

/* Once, and not before all are up. */
static bool its_turn(unsigned turn)
{
	if (!w.trouble || turn < w.trouble_turn || w.troubled)
		return false;
	for (unsigned i = 0; i < w.nslots; i++)
		if (w.slot[i].open && !(w.slot[i].side[0].up && w.slot[i].side[1].up))
			return false;
	for (unsigned i = 0; w.trouble == REFUSES && i < w.nslots; i++)
		if (w.slot[i].open &&
		    !(has_both(&w.slot[i].side[0]) && has_both(&w.slot[i].side[1])))
			return false;
	return true;
}

uint64_t trouble_comes(unsigned turn)
{
	struct sn_net *n = &w.net;

	if (!its_turn(turn))
		return 0;
	w.troubled = true;
	w.well_at = n->now;
	switch (w.trouble) {
	case NARROWS:
	case THINS:
		narrows();
		return 0;
	case REFUSES:
		for (unsigned i = 0; i < n->nodes; i++)
			n->node[i].link[0].refuses = true;
		return 0;
	case CLAIMS:
		return 0;
	case SWITCHES:
		for (unsigned i = 0; i < n->nodes; i++)
			n->node[i].link[0].mtu = 1500;
		return 0;
	case SLOWS: /* in the middle of something */
		return 1 + sn_below(n, 4 * n->node[0].link[0].delay);
	case RESTS:
		n->node[0].rests = n->now + 6 * SEC + sn_below(n, 6 * SEC);
		return 0;
	case LOSES: /* again and again, with time for a round trip to be measured between */
		n->node[0].link[0].dead = true;
		w.troubled = false;
		w.trouble_turn = turn + 6;
		return 1 + sn_below(n, 2 * n->node[0].link[0].delay);
	case REROUTES:
		dies(true);
		narrows();
		w.well_at = 0; /* not yet */
		return 1 + sn_below(n, 3 * SEC);
	default:
		dies(true);
		return 0;
	}
}

uint64_t trouble_ends(void)
{
	if (w.trouble == FAILS || w.trouble == REROUTES || w.trouble == LOSES)
		dies(false);
	if (w.trouble == SLOWS)
		slows();
	w.well_at = w.net.now;
	return w.trouble == LOSES ? SEC : 0;
}

/* The primary path is there for long again: it is used. */
static void returned(const struct side *s)
{
	check(!s->a || s->a->state != SC_ESTABLISHED || s->a->data_path == s->a->primary,
	      "node %u: the primary path is there again, and not used", s->node);
}

void trouble_over(void)
{
	for (unsigned i = 0; i < w.nslots; i++) {
		returned(&w.slot[i].side[0]);
		returned(&w.slot[i].side[1]);
	}
}

/* What a rest may add to an RTT: to those of the host itself no more than passes before a timer
 * shows it. */
uint64_t trouble_rests(const struct side *s)
{
	if (w.trouble != RESTS)
		return 0;
	return s->node ? 20 * SEC : SEC + SEC / 8;
}
