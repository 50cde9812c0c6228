/* SPDX-License-Identifier: BSD-2-Clause */
/* A world that fails is made small: what the failure needs stays, and nothing else. */
#include "sim/sim_event.h"
#include "sim/sim_main.h"
#include "support/mpa_support.h"
#include <stdio.h>
#include <unistd.h>

#define OPS 300u

/* Fails if operations 17, 90 and 211 of 300 and one packet lost, or a duplicate, come together.  Another
 * check fails without 90, and must not be taken for it. */
static bool picky(uint64_t seed, struct sim_tally *t)
{
	bool has[OPS], lost = false, doubled = false;

	sim_events.seed = seed;
	t->n[0]++;
	for (uint32_t i = 0; i < OPS; i++) {
		has[i] = sim_happens(SIM_op, SIM_OWNER(1, i % 2, 0), i, 1);
		lost |= sim_happens(SIM_lost, SIM_OWNER(100, 0, 0), i, 0.5);
		doubled |= sim_happens(SIM_doubled, SIM_OWNER(100, 0, 0), i, 0.5);
	}
	if (has[17] && has[211] && (lost || doubled))
		sim_events.failed = has[90] ? 5 : 6;
	return !sim_events.failed;
}

static bool does_picky_world_die(uint64_t seed, struct sim_tally *t)
{
	picky(seed, t);
	if (sim_events.failed == 5)
		_exit(3);
	return true;
}

static void has_the_least(const struct sim_kind *kind)
{
	const uint32_t ops[] = { 17, 90, 211 };
	uint64_t names[8] = { 0 };
	size_t n = sim_smallest(kind, 7, names, 8);
	unsigned seen = 0;

	cr_assert_eq(n, 4, "%zu events", n);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 3; k++)
			seen += names[i] == sim_name(SIM_op, SIM_OWNER(1, ops[k] % 2, 0), ops[k]);
	cr_assert_eq(seen, 3);
}

Test(sim_shrink, what_a_failure_needs_is_left)
{
	has_the_least(&(struct sim_kind){ .world = picky });
}

Test(sim_shrink, a_world_that_dies_is_made_small_too)
{
	has_the_least(&(struct sim_kind){ .world = does_picky_world_die });
}

/* Whatever happens, it fails. */
static bool is_always_failing(uint64_t seed, struct sim_tally *t)
{
	picky(seed, t);
	sim_events.failed = 7;
	return false;
}

Test(sim_shrink, a_failure_that_needs_nothing_is_left_with_nothing)
{
	cr_assert_eq(sim_smallest(&(struct sim_kind){ .world = is_always_failing }, 7, NULL, 0), 0);
}

static bool is_always_good(uint64_t seed, struct sim_tally *t)
{
	(void)seed;
	t->n[0]++;
	return true;
}

Test(sim_shrink, nothing_fails)
{
	cr_assert_eq(sim_smallest(&(struct sim_kind){ .world = is_always_good }, 7, NULL, 0),
		     SIZE_MAX);
}

Test(sim_shrink, names_are_read_as_they_are_written)
{
	uint64_t name = sim_name(SIM_short_io, SIM_OWNER(3, 255, 1), 4294967295u), back[2];
	char text[64], two[140];

	sim_name_text(name, text);
	cr_assert_str_eq(text, "short_io.3.255.1.4294967295");
	snprintf(two, sizeof two, "op.9.0.1.2,%s", text);
	cr_assert_eq(sim_names_parse(two, back, 2), 2);
	cr_assert_eq(back[0], name);
	cr_assert_eq(back[1], sim_name(SIM_op, SIM_OWNER(9, 0, 1), 2));
	cr_assert_eq(sim_names_parse(two, back, 1), -1);
	cr_assert_eq(sim_names_parse("opp.1.2.3.4", back, 2), -1);
	cr_assert_eq(sim_names_parse("op.1.256.3.4", back, 2), -1);
}
