/* SPDX-License-Identifier: BSD-2-Clause */
/* What one trouble may cost (sctp_trouble.c): T3s, and how often one chunk is sent. */
#include "sim/sctp_world.h"

#define TSNS 4096u /* of one side; what is beyond is not counted */

static uint8_t sends[2 * SLOTS][TSNS];

void cost_begin(void)
{
	memset(sends, 0, sizeof sends);
}

/*
 * Since nothing is lost any more but for its size: what is resent goes in a packet that passes, or soon in
 * one that does.  Short chunks need not be in large packets.  0: nothing is known
 */
static unsigned most_sends(void)
{
	switch (w.trouble) {
	case NARROWS:
		return w.brief ? 3 : 5;
	case THINS:
		return 24;
	case REROUTES:
		return 3;
	default:
		return 0;
	}
}

void cost_sent(const struct side *s, uint32_t tsn)
{
	unsigned most = most_sends();
	uint32_t i;
	uint8_t *n;

	if (!most || !s->a || !w.well_at || w.net.now < w.well_at)
		return;
	i = tsn - s->a->own_tsn;
	if (i >= TSNS)
		return;
	n = &sends[2 * (s->slot - w.slot) + s->id][i];
	check(++*n <= most, "node %u: a chunk is sent %u times, where %u will do", s->node, *n,
	      most);
}

/*
 * A path that takes less: one T3 finds it, and one more where a single large chunk is on its way.  If it
 * takes less than the base size that is found in two steps.  One that takes longer has T3s too early,
 * until its RTT is known.  What is lost for less than a round trip a tail loss probe finds.
 */
static uint64_t most_t3s(const struct side *s)
{
	switch (w.trouble) {
	case NARROWS:
		return 2;
	case THINS:
		return 8;
	case LOSES: /* of the others SACKs are lost, perhaps that of what was resent */
		return s->node ? 3 : 1;
	case SLOWS:
		return 8;
	case REROUTES:
		return 6;
	default:
		return UINT64_MAX;
	}
}

void cost_sound(const struct side *s, const struct ddps_sctp_assoc *a)
{
	uint64_t t3s = a->path[0]->tx.t3s, most = most_t3s(s);

	check(t3s <= most, "node %u: %" PRIu64 " T3s where %" PRIu64 " will do", s->node, t3s,
	      most);
	if (w.trouble == SLOWS && t3s < 2 && a->path[0]->tx.pmtu.black_holes)
		w.false_holes |= 1ull << (2 * (s->slot - w.slot) + s->id);
}

/* A path that takes longer does not take less.  Where the first packet of a SACK and what was resent look
 * the same it may seem so, but not to many. */
void cost_end(void)
{
	unsigned n = (unsigned)__builtin_popcountll(w.false_holes);

	check(n <= 2 + w.nslots / 2, "%u of %u ends find a black hole where none is", n,
	      2 * w.nslots);
}
