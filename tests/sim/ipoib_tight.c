/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets that are full for a moment, where nothing else fails: what did not leave leaves when there is
 * room, and so no packet of a connection is sent twice.  Nobody has to wait for a timer.
 */
#include "sim/ipoib_world.h"

#define STEP  (20 * MS)
#define STEPS 100u

/* Packets of connections that were sent again, by all nodes. */
static uint64_t repeated(void)
{
	uint64_t sum = 0, value;
	const char *name;

	for (unsigned i = 0; i < world.n; i++)
		for (unsigned k = 0; (name = ddps_ib_node_counter(world.node[i].n, k, &value)); k++)
			sum += strcmp(name, "qp_again") ? 0 : value;
	return sum;
}

void tight(void)
{
	uint64_t before = repeated(), again;

	if (draw_ipoib_world(4))
		return;
	world.tight = 1 + draw_ipoib_world(7);
	for (unsigned k = 0; k < STEPS && !world.failed; k++) {
		for (unsigned i = 0; i < world.n * world.n; i++)
			if (i / world.n != i % world.n)
				send_ip(&world.node[i / world.n], i % world.n,
					100 + draw_ipoib_world(1900));
		run_until(world.now + STEP);
	}
	world.tight = 0;
	again = repeated() - before;
	check(!again, "%" PRIu64 " packets are sent again, and none was lost", again);
	run_until(world.now + SEC);
}
