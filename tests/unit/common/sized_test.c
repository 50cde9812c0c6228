/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs that know their size, between a program and a library of different releases. */
#include "common/sized.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <stdint.h>
#include <string.h>

/* Three releases of one struct; "now" is the second. */
struct first {
	size_t struct_size;
	uint64_t a;
};

struct now {
	size_t struct_size;
	uint64_t a, b;
};

struct later {
	size_t struct_size;
	uint64_t a, b, c;
};

static const struct now defaults = { sizeof(struct now), 1, 2 };

static struct ddps_sized sizes(void)
{
	static const size_t known[] = { sizeof(struct first), sizeof(struct now) };

	return (struct ddps_sized){ sizeof(struct now), known, 2 };
}

Test(sized, an_older_struct_is_taken_and_the_rest_has_its_default)
{
	struct first from = { sizeof from, 7 };
	struct ddps_sized s = sizes();
	struct now to = defaults;

	cr_assert_eq(ddps_sized_take(&to, &from, &s), 0);
	cr_expect_eq(to.a, 7);
	cr_expect_eq(to.b, 2);
	cr_expect_eq(to.struct_size, sizeof to);
}

Test(sized, a_later_struct_is_taken_unless_it_sets_what_is_not_known)
{
	struct later from = { sizeof from, 7, 8, 0 };
	struct ddps_sized s = sizes();
	struct now to = defaults;

	cr_assert_eq(ddps_sized_take(&to, &from, &s), 0);
	cr_expect_eq(to.a, 7);
	cr_expect_eq(to.b, 8);
	cr_expect_eq(to.struct_size, sizeof to);
	from.c = UINT64_C(1) << 63;
	cr_expect_eq(ddps_sized_take(&to, &from, &s), DDPS_E_UNSUPPORTED);
}

Test(sized, other_sizes_are_refused)
{
	static const size_t wrong[] = { 0,
					sizeof(size_t),
					sizeof(struct first) - 1,
					sizeof(struct first) + 1,
					sizeof(struct now) - 1,
					DDPS_SIZED_MAX + 1,
					SIZE_MAX };
	struct ddps_sized s = sizes();
	struct now to = defaults, from = defaults;

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		from.struct_size = wrong[i];
		cr_expect_eq(ddps_sized_take(&to, &from, &s), DDPS_E_INVAL, "size %zu", wrong[i]);
		cr_expect_eq(ddps_sized_check(&from, &s), DDPS_E_INVAL, "size %zu", wrong[i]);
	}
	cr_expect_eq(memcmp(&to, &defaults, sizeof to), 0, "and nothing was taken");
}

Test(sized, an_initialiser_stays_within_what_the_caller_has)
{
	struct ddps_sized s = sizes();

	for (size_t size = 0; size <= sizeof(struct later); size++) {
		uint8_t mem[sizeof(struct later) + 1], want[sizeof mem];

		memset(mem, 0xee, sizeof mem);
		memset(want, 0xee, sizeof want);
		memset(want, 0, size);
		memcpy(want, &defaults, size < sizeof defaults ? size : sizeof defaults);
		if (size >= sizeof size)
			memcpy(want, &size, sizeof size);
		ddps_sized_init(mem, size, &defaults, &s);
		cr_expect_eq(memcmp(mem, want, sizeof mem), 0, "size %zu", size);
	}
}

Test(sized, what_is_filled_in_keeps_its_size_and_has_zeros_behind)
{
	struct ddps_sized s = sizes();
	struct first small[2] = { { sizeof small[0], 0 }, { 5, 6 } };
	struct later large = { sizeof large, 0, 0, 9 };

	cr_assert_eq(ddps_sized_check(&small[0], &s), 0);
	ddps_sized_give(&small[0], &defaults, &s);
	cr_expect_eq(small[0].struct_size, sizeof small[0]);
	cr_expect_eq(small[0].a, 1);
	cr_expect_eq(small[1].struct_size, 5, "nothing behind it was written");
	cr_assert_eq(ddps_sized_check(&large, &s), 0);
	ddps_sized_give(&large, &defaults, &s);
	cr_expect_eq(large.struct_size, sizeof large);
	cr_expect_eq(large.b, 2);
	cr_expect_eq(large.c, 0);
}
