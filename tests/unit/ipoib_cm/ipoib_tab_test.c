/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables and timers of the IPoIB library against the plainest that do the same. */
#include <criterion/criterion.h>
#include <stddef.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/iface/iface_in.h"
#include "common/tab/due.h"
#include "common/tab/tab.h"

#define ENTRIES 61

struct entry {
	struct ddps_tab_link link;
	struct ddps_due due;
	bool in;
	uint64_t hash, at, turn;
};

static struct entry entry[ENTRIES];

/* A linear congruence is as good as any: each value of it comes up. */
static uint32_t next_in_ipoib_tab(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % below;
}

Test(ipoib_tab, finds_what_is_in_it)
{
	struct ddps_tab t;
	uint32_t seed = 1;

	cr_assert(ddps_tab_new(&t, 8)); /* more entries than rows */
	for (unsigned turn = 0; turn < 20000; turn++) {
		struct entry *e = &entry[next_in_ipoib_tab(&seed, ENTRIES)], *at;
		unsigned found = 0, there = 0;

		if (e->in)
			ddps_tab_del(&t, &e->link);
		else
			ddps_tab_add(&t, &e->link, e->hash = next_in_ipoib_tab(&seed, 24));
		e->in = !e->in;
		DDPS_TAB_EACH(&t, e->hash, at, struct entry, link) {
			cr_assert(at->in && at->hash == e->hash);
			found++;
		}
		for (unsigned i = 0; i < ENTRIES; i++)
			there += entry[i].in && entry[i].hash == e->hash;
		cr_assert_eq(found, there);
	}
	free(t.row);
}

Test(ipoib_tab, timers_come_in_their_order)
{
	struct ddps_dues d = { 0 };
	uint32_t seed = 7;

	cr_assert(ddps_dues_new(&d, ENTRIES));
	for (unsigned i = 0; i < ENTRIES; i++)
		entry[i] = (struct entry){ .at = DDPS_DUE_NEVER };
	for (unsigned turn = 0; turn < 50000; turn++) {
		struct entry *e = &entry[next_in_ipoib_tab(&seed, ENTRIES)];
		uint64_t at =
			next_in_ipoib_tab(&seed, 4) ? next_in_ipoib_tab(&seed, 40) : DDPS_DUE_NEVER;
		const struct entry *first = &entry[0];
		struct ddps_due *ready;

		e->turn = at == e->at ? e->turn : turn;
		e->at = at;
		ddps_due_set(&d, &e->due, at);
		for (unsigned i = 1; i < ENTRIES; i++)
			if (entry[i].at < first->at ||
			    (entry[i].at == first->at && entry[i].turn < first->turn))
				first = &entry[i];
		cr_assert_eq(ddps_dues_first(&d), first->at);
		ready = ddps_dues_ready(&d, 10);
		cr_assert_eq(ready, first->at <= 10 ? &first->due : NULL);
	}
	for (unsigned i = 0; i < ENTRIES; i++)
		ddps_due_clear(&d, &entry[i].due);
	cr_assert_eq(d.n, 0);
	free(d.heap);
}

/* Of a table up to two rows, and a place among the timers. */
#define TABLE (2 * sizeof(void *))
#define PLACE sizeof(void *)

Test(ipoib_tab, memory_is_what_the_header_says)
{
	cr_expect_leq(sizeof(struct ddps_ipoib_nbr) + TABLE + PLACE, 320);
	cr_expect_leq(sizeof(struct ddps_ipoib_node) + 2 * TABLE + PLACE, 480);
	/* the agent's tables are as large as those of queue pairs, its connections made when needed */
	cr_expect_leq(sizeof(struct ddps_ipoib_qp) + 2 * TABLE + PLACE + 4 * TABLE + PLACE, 256);
	cr_expect_leq(sizeof(struct ddps_cm_conn) + 2 * sizeof(size_t), 576);
}
