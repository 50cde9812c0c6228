/* SPDX-License-Identifier: BSD-2-Clause */
/* What the engine checks of itself in builds with assertions: each of these faults stops the program. */
#include "sctp_raw_fixture.h"
#include "sctp_sent_fixture.h"
#include "unit/spoil.h"

#ifdef DDPS_ASSERTS

/* ---- what is outstanding ---- */

static struct world w;

static void check_sent(void *on)
{
	(void)on;
	ddps_sent_check(&w.s);
}

static void lose_one_uncounted(void *on)
{
	(void)on;
	w.s.nlost++;
}

static void fly_more_octets(void *on)
{
	(void)on;
	w.p[0].flight++;
}

static void cut_the_list(void *on)
{
	(void)on;
	ddps_sent_slot(&w.s, w.p[0].head)->next = w.p[0].head;
}

static void change_a_state(void *on)
{
	(void)on;
	ddps_sent_slot(&w.s, w.s.cum + 1)->state = SLOT_SACKED;
}

static void check_sent_often(void *on)
{
	for (unsigned i = 0; i < 64; i++)
		check_sent(on);
}

/* @n are sent, and whatever is wrong with one of them is found by @check. */
static void expect_spoilt_sent_stops(unsigned n, void (*check)(void *))
{
	void (*const spoils[])(void *) = { lose_one_uncounted, fly_more_octets, cut_the_list,
					   change_a_state };

	sent_begin(&w, 1, 1, UINT32_MAX);
	for (unsigned i = 0; i < n; i++) {
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert_eq(ddps_sent_add_new(&w.s, 20, 4, (void *)((uintptr_t)w.s.next + 7)), 0);
		ddps_sent_end(&w.s, 60, true);
	}
	ddps_sent_mark(&w.s, 3);
	EXPECT_EACH_STOPS(spoils, check, NULL);
	sent_end(&w);
}

Test(sctp_invariants, of_what_is_outstanding)
{
	expect_spoilt_sent_stops(5, check_sent);
}

/* Not by each call, then. */
Test(sctp_invariants, of_much_that_is_outstanding)
{
	expect_spoilt_sent_stops(1000, check_sent_often);
}

/* ---- an association ---- */

static struct raw r;

static struct ddps_sctp_assoc *first_assoc(void)
{
	return TAILQ_FIRST(&r.net.node[0].e->all);
}

static void check_assoc(void *on)
{
	(void)on;
	ddps_sc_check(first_assoc());
}

static void wait_more_octets(void *on)
{
	(void)on;
	first_assoc()->unsent++;
}

static void hold_more_octets(void *on)
{
	(void)on;
	first_assoc()->held++;
}

static void count_a_blob(void *on)
{
	(void)on;
	first_assoc()->nblobs++;
}

static void point_elsewhere(void *on)
{
	static struct ddps_sc_path gone;

	(void)on;
	first_assoc()->primary = &gone;
}

static void count_a_gap(void *on)
{
	(void)on;
	first_assoc()->map.lone++;
}

Test(sctp_invariants, of_an_association)
{
	void (*const spoils[])(void *) = { wait_more_octets, hold_more_octets, count_a_blob,
					   point_elsewhere, count_a_gap };

	raw_init(&r);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, NULL, 0);
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
	EXPECT_EACH_STOPS(spoils, check_assoc, NULL);
	raw_fini(&r);
}

#endif
