/* SPDX-License-Identifier: BSD-2-Clause */
/* What the table of STags checks of itself in builds with assertions: each of these faults stops
 * the program. */
#include "ddp/stag.h"
#include "unit/spoil.h"

#ifdef DDPS_ASSERTS

static struct ddps_stag_table *t;
static struct ddps_pd pd;
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
