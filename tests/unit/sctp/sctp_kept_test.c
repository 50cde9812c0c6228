/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes of packets, the map of what was received, pieces of memory and timers: at their bounds. */
#include "sctp_sent_fixture.h"
#include "sctp/parts/sctp_map.h"
#include "sctp/parts/sctp_pool.h"
#include "sctp/parts/sctp_timer.h"
#include "unit/mem_fixture.h"

#define SECOND (1000 * MS)

/* ---- sizes of packets ---- */

static struct ddps_pmtu make_begun_sctp_kept(enum ddps_pmtu_state state, uint16_t size)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	struct ddps_pmtu m;

	ddps_pmtu_init(&m, &lim);
	ddps_pmtu_start(&m, 0, SECOND);
	m.state = state;
	m.size = size;
	return m;
}

/* What was thought not to pass has passed. */
Test(sctp_kept, a_probe_of_the_size_that_failed)
{
	struct ddps_pmtu m = make_begun_sctp_kept(DDPS_PMTU_SEARCH, 1200);

	m.fail = m.probing = 1400;
	cr_expect_eq(ddps_pmtu_probe_acked(&m, 1400, SECOND), DDPS_PMTU_SIZE);
	cr_expect_eq(m.size, 1400);
	cr_expect_eq(m.fail, 0);
	m = make_begun_sctp_kept(DDPS_PMTU_ERROR, 576);
	m.fragment = true;
	cr_expect_eq(ddps_pmtu_probe_acked(&m, 800, SECOND), DDPS_PMTU_SIZE);
	cr_expect_eq(m.size, 800);
	cr_expect_not(m.fragment);
}

/* A link that takes just what is asked for, or what failed: all of it goes on. */
Test(sctp_kept, a_link_of_the_size_that_is_asked_for)
{
	struct ddps_pmtu m = make_begun_sctp_kept(DDPS_PMTU_BASE, 1200);

	m.fail = 1400;
	m.count = 2;
	ddps_pmtu_local(&m, 1400, SECOND);
	cr_expect_eq(m.fail, 1400);
	m.fail = 0;
	ddps_pmtu_local(&m, m.probing, SECOND);
	cr_expect_eq(m.count, 2);
	cr_expect_eq(m.probing, 1200);
}

Test(sctp_kept, a_size_that_is_fixed)
{
	struct ddps_pmtu m = make_begun_sctp_kept(DDPS_PMTU_ERROR, 576);

	m.fragment = true;
	ddps_pmtu_fix(&m, 1400);
	cr_expect_eq(m.size, 1400);
	cr_expect_not(m.fragment);
	cr_expect_eq(m.probing, 0);
	cr_expect_eq(ddps_pmtu_delivered(&m, 1400, 1000, SECOND, SECOND, SECOND), 0);
	cr_expect_eq(ddps_pmtu_probe(&m, UINT64_MAX), 0);
}

/* Each path waits a little longer than the next one would. */
Test(sctp_kept, a_probe_waits)
{
	struct ddps_pmtu m = make_begun_sctp_kept(DDPS_PMTU_BASE, 1200);

	m.late = 255;
	ddps_pmtu_probe_sent(&m, 1200, 0, SECOND);
	cr_expect_eq(m.next_at, 2 * SECOND + SECOND / 4096 * 255);
}

/* Not even the base size is answered: what was counted of losses is of the size before. */
Test(sctp_kept, nothing_but_fragments_passes)
{
	struct ddps_pmtu m = make_begun_sctp_kept(DDPS_PMTU_BASE, 1200);

	m.holes = m.t3 = 1;
	for (unsigned i = 0; i < 3; i++) {
		ddps_pmtu_probe_sent(&m, 1200, 0, SECOND);
		ddps_pmtu_timer(&m, m.next_at);
	}
	cr_expect_eq(m.state, DDPS_PMTU_ERROR);
	cr_expect_eq(m.size, 576);
	cr_expect(m.fragment);
	cr_expect(!m.holes && !m.t3);
}

Test(sctp_kept, losses_that_prove_nothing_yet)
{
	struct ddps_pmtu m = make_begun_sctp_kept(DDPS_PMTU_DONE, 1500);

	for (unsigned i = 1; i <= 300; i++)
		cr_expect_eq(ddps_pmtu_lost(&m, i & 1 ? 1300 : 1400, i, SECOND), 0);
	cr_expect_eq(m.holes, 255);
	cr_expect_eq(m.lost_min, 1300);
	cr_expect_eq(m.lost_max, 1400);
}

/* By timeouts, or by what is smaller and passes. */
Test(sctp_kept, a_black_hole_is_reported)
{
	struct ddps_pmtu m = make_begun_sctp_kept(DDPS_PMTU_DONE, 1500);

	for (unsigned i = 1; i <= 3; i++)
		cr_expect_eq(ddps_pmtu_lost(&m, 1500, i, SECOND), 0);
	cr_expect_eq(ddps_pmtu_timeout(&m, SECOND), 0);
	cr_expect_eq(ddps_pmtu_timeout(&m, SECOND), DDPS_PMTU_HOLE | DDPS_PMTU_SIZE);
	cr_expect_eq(m.size, 1200);

	m = make_begun_sctp_kept(DDPS_PMTU_DONE, 1500);
	for (unsigned i = 1; i <= 2; i++)
		cr_expect_eq(ddps_pmtu_lost(&m, 1500, i, SECOND), 0);
	cr_expect_eq(ddps_pmtu_timeout(&m, SECOND), 0);
	cr_expect_eq(ddps_pmtu_delivered(&m, 600, 1000, SECOND, SECOND, SECOND),
		     DDPS_PMTU_HOLE | DDPS_PMTU_SIZE);
	cr_expect_eq(m.size, 1200);
}

/* ---- what was received, and pieces of memory ---- */

/* In its order it costs no memory. */
Test(sctp_kept, what_is_received)
{
	struct ddps_sc_map m;
	uint32_t start, end;

	ddps_sc_map_init(&m, 10);
	cr_expect_eq(ddps_sc_map_reserve(&m, 11), 0);
	cr_expect_null(m.bits);
	ddps_sc_map_mark(&m, 11);
	for (uint32_t t = 13; t <= 14; t++) {
		cr_assert_eq(ddps_sc_map_reserve(&m, t), 0);
		ddps_sc_map_mark(&m, t);
		cr_expect_eq(m.high, t);
	}
	cr_assert(ddps_sc_map_run(&m, m.cum, &start, &end));
	cr_expect_eq(start, 13);
	cr_expect_eq(end, 14);
	cr_expect_not(ddps_sc_map_run(&m, end, &start, &end));
	ddps_sc_map_fini(&m);
}

/* Each size is of the least class that has it; the last octet of a piece costs a fifth of it at most. */
Test(sctp_kept, classes_of_memory)
{
	size_t before = 0, size;

	for (unsigned c = 0; c < DDPS_SC_POOL_CLASSES; c++) {
		size = ddps_sc_pool_size(c);
		cr_expect(!c || size * 4 <= before * 5, "class %u", c);
		for (size_t n = before + 1; n <= size; n++)
			cr_assert_eq(ddps_sc_pool_class(n), c, "%zu octets", n);
		before = size;
	}
	cr_expect_eq(before, 128u << 10);
	cr_expect_eq(ddps_sc_pool_class(before + 1), DDPS_SC_POOL_CLASSES);
	cr_expect_eq(ddps_sc_pool_class(SIZE_MAX), DDPS_SC_POOL_CLASSES);
}

/* As much as the bound is kept, to the octet. */
Test(sctp_kept, how_much_memory_is_kept)
{
	static void *piece[56];
	struct ddps_sc_pool p = { .kept = 0 };
	size_t size = ddps_sc_pool_size(DDPS_SC_POOL_CLASSES - 1), most = DDPS_SC_POOL_KEPT / size;
	long before = mem_live();

	for (size_t i = 0; i < 56; i++)
		piece[i] = ddps_sc_pool_get(&p, size);
	cr_expect_eq(mem_live(), before + 56);
	for (size_t i = 0; i < 56; i++)
		ddps_sc_pool_put(&p, piece[i], size);
	cr_expect_eq(p.kept, DDPS_SC_POOL_KEPT);
	cr_expect_eq(mem_live(), before + (long)most);
	ddps_sc_pool_fini(&p);
	cr_expect_eq(mem_live(), before);
}

/* At the bound what nobody asks for any more makes room for what is given back now. */
Test(sctp_kept, memory_of_another_size_is_kept_instead)
{
	enum { OLD = 1280, NEW = 5120, MANY = 200 };
	static void *piece[DDPS_SC_POOL_KEPT / OLD];
	const size_t old = DDPS_SC_POOL_KEPT / OLD;
	struct ddps_sc_pool p = { .kept = 0 };
	long before = mem_live(), full;

	for (size_t i = 0; i < old; i++)
		piece[i] = ddps_sc_pool_get(&p, OLD);
	for (size_t i = 0; i < old; i++)
		ddps_sc_pool_put(&p, piece[i], OLD);
	full = mem_live();
	for (unsigned turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < MANY; i++)
			piece[i] = ddps_sc_pool_get(&p, NEW);
		for (size_t i = 0; i < MANY; i++)
			ddps_sc_pool_put(&p, piece[i], NEW);
		cr_expect_leq(p.kept, DDPS_SC_POOL_KEPT);
	}
	cr_expect_lt(mem_live(),
		     full - 3 * (MANY - DDPS_SC_POOL_CLASSES)); /* four old ones for each */
	full = mem_live();
	for (size_t i = 0; i < MANY - DDPS_SC_POOL_CLASSES; i++)
		piece[i] = ddps_sc_pool_get(&p, NEW);
	cr_expect_eq(mem_live(), full, "memory was asked for anew");
	for (size_t i = 0; i < MANY - DDPS_SC_POOL_CLASSES; i++)
		ddps_sc_pool_put(&p, piece[i], NEW);
	ddps_sc_pool_fini(&p);
	cr_expect_eq(p.kept, 0);
	cr_expect_eq(mem_live(), before);
}

/* Many times in any order, some of them taken out: they are due in theirs. */
Test(sctp_kept, timers_are_due_in_their_order)
{
	static struct ddps_sc_timer t[400];

	for (unsigned seed = 1; seed <= 20; seed++) {
		struct ddps_sc_heap h = { .n = 0 };
		struct world w = { .seed = seed * 2654435761u };
		uint64_t last = 0, next;
		struct ddps_sc_timer *due;

		memset(t, 0, sizeof t);
		cr_assert_eq(ddps_sc_heap_reserve(&h, 400), 0);
		for (unsigned i = 0; i < 400; i++)
			ddps_sc_timer_set(&h, &t[i], 1 + sent_draw(&w, 100000));
		for (unsigned i = 0; i < 100; i++)
			ddps_sc_timer_drop(&h, &t[sent_draw(&w, 400)]);
		while ((next = ddps_sc_heap_next(&h)) != UINT64_MAX) {
			cr_assert_geq(next, last);
			last = next;
			due = ddps_sc_heap_due(&h, next);
			cr_assert_not_null(due);
			cr_assert_eq(due->want, next);
		}
		ddps_sc_heap_fini(&h);
	}
}

/* One is taken out whose place has children that are late, next to others that are early: these stay
 * where they are. */
Test(sctp_kept, a_timer_is_taken_out_of_the_middle)
{
	static const uint64_t at[] = { 1, 50, 2, 3, 3, 60, 60, 60, 60, 5, 5, 5, 5 };
	static struct ddps_sc_timer t[39];
	struct ddps_sc_heap h = { .n = 0 };
	uint64_t last = 0, next;

	memset(t, 0, sizeof t);
	cr_assert_eq(ddps_sc_heap_reserve(&h, 39), 0);
	for (unsigned i = 0; i < 39; i++)
		ddps_sc_timer_set(&h, &t[i],
				  i < 13   ? at[i]
				  : i < 21 ? 10
				  : i < 37 ? 70
				  : i < 38 ? 6
					   : 100);
	ddps_sc_timer_drop(&h, &t[8]);
	for (; (next = ddps_sc_heap_next(&h)) != UINT64_MAX; last = next) {
		cr_assert_geq(next, last);
		ddps_sc_heap_due(&h, next);
	}
	ddps_sc_heap_fini(&h);
}

/* Nobody is to look in vain because the first of a few was put off; more of them are left as they are. */
Test(sctp_kept, the_first_of_a_few_deadlines_moves_when_it_is_put_off)
{
	struct ddps_sc_timer t[9] = { 0 };

	for (unsigned n = 1; n <= sizeof t / sizeof *t; n++) {
		struct ddps_sc_heap h = { .n = 0 };

		memset(t, 0, sizeof t);
		cr_assert_eq(ddps_sc_heap_reserve(&h, n), 0);
		for (unsigned i = 0; i < n; i++)
			ddps_sc_timer_set(&h, &t[i], 100 + i);
		ddps_sc_timer_set(&h, &t[0], 105);
		cr_expect_eq(ddps_sc_heap_next(&h), n > 5 ? 100 : n > 1 ? 101 : 105, "%u", n);
		for (unsigned i = 0; i < n; i++)
			ddps_sc_timer_set(&h, &t[i], UINT64_MAX);
		cr_expect_null(ddps_sc_heap_due(&h, 99));
		ddps_sc_timer_set(&h, &t[n - 1], 50);
		cr_expect_eq(ddps_sc_heap_next(&h), 50);
		cr_expect_eq(ddps_sc_heap_due(&h, 50), &t[n - 1]);
		ddps_sc_heap_fini(&h);
	}
}
