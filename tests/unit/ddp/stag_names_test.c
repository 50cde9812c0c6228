/* SPDX-License-Identifier: BSD-2-Clause */
/* STags as they are drawn: which of them may be given out, and what becomes of a region or window that
 * gets none. */
#include "ddp/stag.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include "unit/spoil.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define ALL (DDPS_LOCAL_WRITE | DDPS_REMOTE_READ | DDPS_BIND)

static struct ddps_pd pd;
static uint8_t mem[100];
static uint32_t next; /* to be drawn */

static ssize_t drawn(void *buf, size_t len, unsigned flags)
{
	(void)flags;
	cr_assert_eq(len, sizeof next);
	memcpy(buf, &next, len);
	return (ssize_t)len;
}

static void setup(void)
{
	pd = (struct ddps_pd){ .streams = 1 };
	cr_assert_eq(ddps_stag_table_new(&pd.table, 50), 0);
}

static void teardown(void)
{
	sys_instead.getrandom = NULL;
	ddps_stag_table_free(pd.table);
}

TestSuite(stag_names, .init = setup, .fini = teardown);

static struct ddps_mr *register_stag_names(uint32_t stag)
{
	struct ddps_mr *mr = NULL;

	next = stag;
	sys_instead.getrandom = stag ? drawn : NULL;
	cr_assert_eq(ddps_stag_add(&pd, mem, sizeof mem, ALL, 0, &mr), 0);
	cr_expect(!stag || mr->stag == stag);
	return mr;
}

/* 256 names are kept apart for a window, no more. */
Test(stag_names, the_next_256_are_others)
{
	register_stag_names(0x1100);
	cr_expect_not(ddps_stag_usable(pd.table, 0x1105, true));
	cr_expect_not(ddps_stag_usable(pd.table, 0x11ff, true));
	cr_expect(ddps_stag_usable(pd.table, 0x1005, true));
	cr_expect(ddps_stag_usable(pd.table, 0x10ff, true));
	cr_expect(ddps_stag_usable(pd.table, 0x1200, true));
}

Test(stag_names, each_of_those_freed_rests, .description = "5042-6.1.1-4")
{
	uint32_t stag[20];

	for (int i = 0; i < 20; i++) {
		struct ddps_mr *mr = register_stag_names(0);

		stag[i] = mr->stag;
		ddps_stag_remove(mr);
	}
	for (int i = 0; i < 20; i++)
		cr_expect_not(ddps_stag_usable(pd.table, stag[i], false), "%d", i);
}

static unsigned draws;

/* Interrupted, then after two octets, which are kept, then not. */
static ssize_t drawn_at_last(void *buf, size_t len, unsigned flags)
{
	(void)flags;
	if (++draws == 1) {
		errno = EINTR;
		return -1;
	}
	memset(buf, draws == 2 ? 0x77 : 0x12, len);
	return draws == 2 ? 2 : (ssize_t)len;
}

Test(stag_names, a_signal_while_it_is_drawn)
{
	struct ddps_mr *mr = NULL;

	draws = 0;
	sys_instead.getrandom = drawn_at_last;
	cr_assert_eq(ddps_stag_add(&pd, mem, sizeof mem, ALL, 0, &mr), 0);
	cr_expect_eq(mr->stag, be32toh(0x77771212));
	cr_expect_eq(draws, 3);
}

/* Without random numbers there is no name that nobody can guess. */
Test(stag_names, none_is_drawn, .description = "5042-6.1.1-4")
{
	struct ddps_mr *mr = register_stag_names(0);
	long live = mem_live();

	sys_fail("getrandom", 0, 2, EIO);
	cr_expect_eq(ddps_stag_add(&pd, mem, sizeof mem, ALL, 0, &mr), DDPS_E_SYSTEM);
	cr_expect_eq(ddps_stag_add_window(&pd, true, &mr), DDPS_E_SYSTEM);
	cr_expect_eq(sys_failed(), 2);
	cr_expect_eq(ddps_stag_count(pd.table), 1);
	cr_expect_eq(pd.users, 1);
	cr_expect_eq(mem_live(), live);
}

Test(stag_names, no_memory_for_a_table)
{
	struct ddps_stag_table *t = NULL;

	mem_fail(1);
	cr_expect_eq(ddps_stag_table_new(&t, 10), DDPS_E_NOMEM);
	mem_fail(0);
	cr_expect_null(t);
}

/* Ten names in one place make the table larger.  A window that cannot come to its new name lets go of
 * its region, which can be changed then. */
Test(stag_names, a_window_that_loses_its_name_is_not_bound)
{
	struct ddps_mr_change to = { .access = DDPS_LOCAL_WRITE };
	struct ddps_sge piece = { mem, 10, 0 };
	struct ddps_mr *mw, *mr = register_stag_names(0x10003);
	uint64_t losses;

	for (uint32_t i = 2; i < 10; i++)
		register_stag_names(i << 16 | 3);
	next = 0xabcd04;
	cr_assert_eq(ddps_stag_add_window(&pd, true, &mw), 0);
	piece.lkey = mr->stag;
	cr_assert_eq(ddps_stag_bind(&pd, 1, mw, mw->stag, &piece, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), DDPS_E_BUSY);
	losses = ddps_stag_losses(pd.table);
	mem_fail(1);
	cr_expect_eq(ddps_stag_bind(&pd, 1, mw, 0xabcd03, &piece, DDPS_REMOTE_READ),
		     DDPS_STAG_INVALID);
	cr_expect(mem_failed());
	cr_expect_null(ddps_stag_find(pd.table, 0xabcd03));
	cr_expect_null(ddps_stag_find(pd.table, 0xabcd04));
	cr_expect_not(mw->valid);
	cr_expect_eq(mr->windows, 0);
	cr_expect_eq(ddps_stag_losses(pd.table), losses + 1);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	ddps_stag_remove(mw);
	cr_expect_eq(ddps_stag_count(pd.table), 9);
}

/* ---- stag invariants ---- */

/* What the table of STags checks of itself in builds with assertions: each of these faults stops
 * the program. */

#ifdef DDPS_ASSERTS

static struct ddps_stag_table *t;
static struct ddps_mr *region, *window;

static void check_stags(void *on)
{
	ddps_stag_table_check(on);
}

static void bind_uncounted(void *on)
{
	(void)on;
	region->windows++;
}

static void reach_further(void *on)
{
	(void)on;
	window->len += region->len;
}

static void stay_without_a_region(void *on)
{
	(void)on;
	region->valid = false;
}

static void keep_another_near(void *on)
{
	(void)on;
	*ddps_stag_near(t, region->stag + 1) = region;
}

static void be_of_nobody(void *on)
{
	(void)on;
	pd.users = 0;
}

Test(stag_invariants, of_the_table)
{
	void (*const spoils[])(void *) = { bind_uncounted, reach_further, stay_without_a_region,
					   keep_another_near, be_of_nobody };
	static uint8_t memory[64];
	struct ddps_sge piece = { .addr = memory, .len = 32 };

	cr_assert_eq(ddps_stag_table_new(&t, 16), 0);
	pd.table = t;
	cr_assert_eq(ddps_stag_add(&pd, memory, sizeof memory,
				   DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_BIND, 0, &region),
		     0);
	cr_assert_eq(ddps_stag_add_window(&pd, true, &window), 0);
	piece.lkey = region->stag;
	cr_assert_eq(ddps_stag_bind(&pd, 1, window, window->stag, &piece, DDPS_REMOTE_WRITE), 0);
	EXPECT_EACH_STOPS(spoils, check_stags, t);
	ddps_stag_table_free(t);
}

#endif
