/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to the nodes of a world of IPoIB besides what the network does. */
#include "sim/ipoib_world.h"

void moves(struct node *n)
{
	if (!n->i || n->lid + NODES > LAST_LID)
		return;
	n->lid = (uint16_t)(n->lid + NODES);
	world.t->n[T_MOVES]++;
}

void swap(struct node *a, struct node *b)
{
	const uint16_t lid = a->lid;

	a->lid = b->lid;
	b->lid = lid;
	world.swapped = true;
	world.t->n[T_MOVES] += 2;
}

void trouble(void)
{
	struct node *n = &world.node[sim_like(world.n)];
	unsigned what = (unsigned)sim_like(4);

	be(n);
	if (getenv("DDPS_SIM_TRACE"))
		fprintf(stderr, "%.6f node %u: trouble %u\n", (double)world.now / 1e9, n->i, what);
	switch (what) {
	case 0:
		n->stalled_until = world.now + sim_like(5 * SEC);
		break;
	case 1:
		finish(n);
		if (sim_happens(SIM_moves, 0, world.draws++, 0.2))
			moves(n);
		begin(n);
		world.t->n[T_RESTARTS]++;
		break;
	case 2:
		if (n->stopped) {
			if (!ddps_ipoib_if_start(n->f, world.now))
				n->stopped = false;
		} else {
			ddps_ipoib_if_stop(n->f, world.now);
			n->stopped = true;
		}
		break;
	default:
		world.delay = US + sim_like(2 * world.delay);
	}
}

void poor(void)
{
	struct node *n = &world.node[sim_like(world.n)];

	n->poor_until = world.now + sim_like(SEC);
	if (sim_like(2)) {
		be(n);
		finish(n);
		begin(n);
		world.t->n[T_RESTARTS]++;
	}
}
