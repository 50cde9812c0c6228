/* SPDX-License-Identifier: BSD-2-Clause */
/* REQs that cross, by seed: four worlds a seed, see crossed_world.h. */
#include "sim/crossed_world.h"
#include "sim/sim_main.h"
#include <inttypes.h>
#include <stdio.h>

#define MESSAGES 16 /* one of so many is lost in a world with real timers */

static bool left(uint64_t seed, const char *what, unsigned n, unsigned want)
{
	if (n != want)
		printf("seed %" PRIu64 ": %s: %u connections are left, not %u\n", seed, what, n,
		       want);
	return n == want;
}

static bool world(uint64_t seed, struct sim_tally *t)
{
	struct crossed_met met = { 0 };
	bool good = left(seed, "ours and ours", crossed_run(seed, CROSSED_OURS, &met), 1) &&
		    left(seed, "ours and Linux", crossed_run(seed, CROSSED_LINUX, &met), 2);

	if (good && seed % 2)
		good = left(seed, "ours and ours, one message lost",
			    crossed_lose(seed, CROSSED_OURS, (unsigned)(seed / 2 % MESSAGES), &met),
			    1);
	else if (good)
		good = left(seed, "ours and Linux, one message lost",
			    crossed_lose(seed, CROSSED_LINUX, (unsigned)(seed / 2 % MESSAGES),
					 &met),
			    2);
	if (good && seed % 4 < 2)
		good = left(seed, "ours and ours, which restart",
			    crossed_restart(seed, CROSSED_OURS, &met), 1);
	else if (good)
		good = left(seed, "ours and Linux, which restart",
			    crossed_restart(seed, CROSSED_LINUX, &met), 2);
	t->n[0]++;
	t->n[1] += met.lost;
	t->n[2] += met.refused;
	t->n[3] += met.withdrawn;
	t->n[4] += met.closed;
	t->n[5] += met.broken;
	t->n[6] += met.restarts;
	return good;
}

int main(int argc, char **argv)
{
	static const struct sim_kind kind = {
		.names = { "seeds of four starts each", "messages lost", "REQs refused",
			   "REPs refused", "DREQs", "connections broken", "restarts" },
		.world = world,
	};

	return sim_main(&kind, argc, argv);
}
