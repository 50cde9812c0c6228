/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds of handshakes that peers begin: how many, how fast, and whose. */
#include "secure/shake_gate.h"
#include <criterion/criterion.h>

#define SECOND UINT64_C(1000000000)
#define MANY   1000

static struct ddps_gate gate;
static struct ddps_gate_pass flood[MANY], other[DDPS_GATE_PLACES + 1];
static uint64_t clock_now, later;

static void setup(void)
{
	ddps_gate_init(&gate);
	clock_now = 5 * (uint64_t)SECOND;
}

static unsigned let_all_in(void)
{
	unsigned n = 0;

	while (ddps_gate_next(&gate, clock_now, &later))
		n++;
	return n;
}

static void knock(struct ddps_gate_pass *p, unsigned n, uint64_t net)
{
	for (unsigned i = 0; i < n; i++)
		ddps_gate_wait(&gate, &p[i], net);
}

Test(shake_gate, no_more_than_64_are_under_way, .init = setup)
{
	for (unsigned i = 0; i <= DDPS_GATE_PLACES; i++)
		ddps_gate_wait(&gate, &other[i], i);
	cr_expect_eq(let_all_in(), 64u);
	cr_expect_eq(later, 0u, "one has to leave first");
	cr_expect_eq(other[64].at, DDPS_GATE_WAITS);
	ddps_gate_leave(&gate, &other[7], true);
	ddps_gate_leave(&gate, &other[7], true);
	cr_expect_eq(ddps_gate_next(&gate, clock_now, &later), &other[64]);
}

Test(shake_gate, those_of_one_address_that_come_to_nothing_have_a_rate, .init = setup)
{
	const uint64_t end = clock_now + 10 * (uint64_t)SECOND;
	struct ddps_gate_pass *p;
	unsigned n = 0, next = 0;

	knock(flood, MANY, 1);
	while (clock_now < end) {
		while ((p = ddps_gate_next(&gate, clock_now, &later))) {
			n++;
			ddps_gate_leave(&gate, p, false);
			ddps_gate_wait(&gate, p, 1);
		}
		cr_assert_gt(later, clock_now);
		if (!next++) {
			cr_expect_eq(n, 64u, "at once: %u", n);
			ddps_gate_wait(&gate, &other[0], 2);
			cr_expect_eq(ddps_gate_next(&gate, clock_now, &later), &other[0],
				     "another address does not wait");
			ddps_gate_leave(&gate, &other[0], false);
			cr_expect_null(ddps_gate_next(&gate, clock_now, &later));
		}
		clock_now = later;
	}
	cr_expect(n >= 2000 && n <= 2064, "%u in 10 s", n);
}

Test(shake_gate, those_that_succeed_have_no_rate, .init = setup)
{
	struct ddps_gate_pass *p;
	unsigned n = 0;

	knock(flood, MANY, 1);
	while ((p = ddps_gate_next(&gate, clock_now, &later))) {
		n++;
		ddps_gate_leave(&gate, p, true);
	}
	cr_expect_eq(n, MANY);
}

Test(shake_gate, a_flood_gives_way_to_another_address, .init = setup)
{
	knock(flood, MANY, 1);
	cr_expect_eq(let_all_in(), 64u);
	cr_expect_null(ddps_gate_first_to_go(&gate, clock_now, &later), "its own ones wait");
	ddps_gate_wait(&gate, &other[0], 2);
	cr_expect_null(ddps_gate_first_to_go(&gate, clock_now, &later),
		       "their steps are under way");
	flood[3].idle = flood[9].idle = clock_now;
	cr_expect_neq(ddps_gate_waiter(&gate), &other[0], "others have waited longer");
	cr_expect_eq(ddps_gate_first_to_go(&gate, clock_now, &later), &flood[3], "the oldest");
	ddps_gate_leave(&gate, &flood[3], false);
	cr_expect_eq(ddps_gate_next(&gate, clock_now, &later), &other[0]);
}

/* A network that has a place gives it to none that has as many, and to one that has none after a while. */
Test(shake_gate, who_says_nothing_has_half_a_second, .init = setup)
{
	for (unsigned i = 0; i <= DDPS_GATE_PLACES; i++) {
		other[i].idle = clock_now + 64 - i; /* the last of them for longest */
		ddps_gate_wait(&gate, &other[i], i);
	}
	cr_expect_eq(let_all_in(), 64u);
	cr_expect_eq(later, 0u);
	cr_expect_null(ddps_gate_first_to_go(&gate, clock_now, &later));
	cr_expect_eq(later, clock_now + 1 + DDPS_GATE_MS * 1000000);
	cr_expect_eq(ddps_gate_first_to_go(&gate, later, &later), &other[63]);
	other[63].idle = 0;
	cr_expect_null(ddps_gate_first_to_go(&gate, later, &later), "its peer has answered");
	ddps_gate_leave(&gate, &other[64], false);
	ddps_gate_wait(&gate, &flood[0], 5);
	cr_expect_null(ddps_gate_first_to_go(&gate, clock_now + SECOND, &later), "it has one");
}

Test(shake_gate, failures_of_many_addresses_are_forgotten_not_kept, .init = setup)
{
	for (unsigned i = 0; i < MANY; i++) {
		ddps_gate_wait(&gate, &flood[i], i + 1);
		cr_expect_eq(ddps_gate_next(&gate, clock_now, &later), &flood[i]);
		ddps_gate_leave(&gate, &flood[i], false);
	}
}
