/* SPDX-License-Identifier: BSD-2-Clause */
/* Worlds in which all is well but for one trouble: how long that is felt is known. */
#include "sim/sctp_world.h"

#define MESSAGES 120u /* of each side: enough for the trouble to meet some */

/* All of it begins at once, so that it is there when the trouble comes. */
static void well(unsigned slots)
{
	struct sn_net *n = &w.net;
	struct sn_link l = { .delay = 1000 + sn_below(n, 1u << sn_below(n, 25)), .mtu = 1500 };

	for (unsigned i = 0; i < n->nodes; i++)
		n->node[i].link[0] = n->node[i].link[1] = l;
	n->full = 0;
	w.mtu = 1500;
	w.clean = w.steady = false;
	w.nslots = w.nslots < slots ? w.nslots : slots;
	w.rtt_least = 2 * l.delay;
	w.rtt_most = 2 * l.delay + 21000000;
}

void trouble_choose(void)
{
	struct sn_net *n = &w.net;

	if (w.harsh || sn_chance(n, 0.75))
		return;
	w.trouble = 1 + (enum trouble)sn_below(n, TROUBLES - 1);
	well(16);
	w.paths = w.trouble == FAILS ? 2 : 1;
	if (w.trouble == NARROWS || w.trouble == FAILS) /* a SACK beside DATA is lost with it */
		w.rtt_most = 0;
	w.trouble_turn = 10 + (unsigned)sn_below(n, 10);
}

unsigned trouble_messages(unsigned n)
{
	return w.trouble ? MESSAGES : n;
}

static void narrows(void)
{
	static const unsigned mtus[] = { 1200, 1280, 1400 };
	struct sn_net *n = &w.net;
	unsigned mtu = mtus[sn_below(n, 3)];

	for (unsigned i = 0; i < n->nodes; i++)
		n->node[i].link[0].mtu = mtu;
}

static void slows(void)
{
	struct sn_net *n = &w.net;
	uint64_t more = 200000000 + sn_below(n, 400000000);

	for (unsigned i = 0; i < n->nodes; i++)
		n->node[i].link[0].delay += more;
	w.rtt_most += 2 * more;
}

static void dies(bool dead)
{
	for (unsigned i = 0; i < w.net.nodes; i++)
		w.net.node[i].link[0].dead = dead;
}

/* Once, and not before all are up. */
void trouble_comes(unsigned turn)
{
	struct sn_net *n = &w.net;

	if (!w.trouble || turn < w.trouble_turn || w.troubled)
		return;
	for (unsigned i = 0; i < w.nslots; i++)
		if (w.slot[i].open && !(w.slot[i].side[0].up && w.slot[i].side[1].up))
			return;
	w.troubled = true;
	if (w.trouble == NARROWS)
		narrows();
	else if (w.trouble == SLOWS)
		slows();
	else if (w.trouble == RESTS)
		n->node[0].rests = n->now + 6 * SEC + sn_below(n, 6 * SEC);
	else
		dies(true);
}

void trouble_ends(void)
{
	if (w.trouble == FAILS)
		dies(false);
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

/* A path that takes less: one T3 finds it, and one more where a single large chunk is on its way.
 * One that takes longer has T3s too early, until its RTT is known. */
static void felt(const struct side *s, const struct ddps_sctp_assoc *a)
{
	uint64_t t3s = a->path[0]->tx.t3s, most = w.trouble == NARROWS ? 2 : 8;

	if (w.trouble == NARROWS || w.trouble == SLOWS)
		check(t3s <= most, "node %u: %" PRIu64 " T3s where %" PRIu64 " will do", s->node,
		      t3s, most);
}

void trouble_sound(const struct side *s, const struct ddps_sctp_assoc *a)
{
	if (w.trouble)
		felt(s, a);
}
