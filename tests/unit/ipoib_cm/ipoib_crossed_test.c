/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * REQs that cross, in virtual time, by seed: tests/sim/crossed_world.c.  DDPS_CROSSED_RUNS says how
 * many runs (up to a million), DDPS_CROSSED_SEED with which seed the first one starts; a failure
 * names the seed of its run.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include "sim/crossed_world.h"

#ifdef __SANITIZE_ADDRESS__
#define RUNS 4000 /* sim-crossed has the same starts without it */
#else
#define RUNS 20000
#endif
#define MAX_RUNS 1000000

static struct crossed_met met;

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

Test(ipoib_crossed, one_connection_survives_every_interleaving, .timeout = 1200,
     .description = "4755-3.3-1 4755-3.3-2 4755-3.3-3 4755-3.3-4 4755-3.3-5 4755-3.3-6 "
		    "4755-3.3-9 4755-3.2-6")
{
	uint64_t seed = setting("DDPS_CROSSED_SEED", 1);
	uint64_t runs = setting("DDPS_CROSSED_RUNS", RUNS);

	cr_assert(runs && runs <= MAX_RUNS, "DDPS_CROSSED_RUNS is 1 to %d", MAX_RUNS);
	for (uint64_t i = 0; i < runs; i++)
		cr_assert_eq(crossed_run(seed + i, CROSSED_OURS, &met), 1,
			     "two or none, seed %" PRIu64, seed + i);
	if (runs < 1000)
		return;
	/* the wire was unkind enough for each rule to be needed */
	cr_expect(met.lost && met.refused && met.withdrawn && met.closed && met.broken,
		  "%u lost, %u refused, %u withdrawn, %u closed, %u broken", met.lost, met.refused,
		  met.withdrawn, met.closed, met.broken);
}

/* Nodes that keep several connections do end with two at times: the check above can fail. */
Test(ipoib_crossed, two_survive_where_several_are_wanted, .description = "4755-3.2-9")
{
	unsigned two = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		unsigned n = crossed_run(seed, CROSSED_MANY, &met);

		cr_assert_geq(n, 1, "seed %" PRIu64, seed);
		two += n > 1;
	}
	cr_expect_gt(two, 0);
}

/* Linux has no rule: two connections are right then, one a direction. */
Test(ipoib_crossed, two_are_left_with_a_peer_without_the_rule,
     .description = "4755-3.2-9 4755-3.3-1")
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
		cr_assert_eq(crossed_run(seed, CROSSED_LINUX, &met), 2, "seed %" PRIu64, seed);
}

/* Each message of a start is lost once, with the timers of real life: see crossed_lose(). */
Test(ipoib_crossed, no_lost_message_costs_two_seconds, .description = "4755-3.3-1")
{
	for (unsigned lost = 0; lost < 10; lost++)
		for (uint64_t seed = 1; seed <= 15; seed++) {
			cr_assert_eq(crossed_lose(seed, CROSSED_OURS, lost, &met), 1,
				     "seed %" PRIu64 ", message %u", seed, lost);
			cr_assert_eq(crossed_lose(seed, CROSSED_LINUX, lost, &met), 2,
				     "seed %" PRIu64 ", message %u", seed, lost);
		}
	cr_expect_gt(met.lost, 150);
}
