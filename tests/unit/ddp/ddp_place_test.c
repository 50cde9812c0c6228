/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks before Placement. */
#include "ddp/ddp_place.h"
#include <criterion/criterion.h>

/* 0, or the untagged code 1/2/xx. */
static int make_untagged_ddp_place(struct ddps_ddp_queue q, uint32_t msn, uint32_t mo, size_t len,
				   bool have, uint64_t buf)
{
	struct ddps_ddp_hdr h = { .msn = msn, .mo = mo };
	struct ddps_fault f;

	if (!ddps_ddp_check_untagged(&q, &h, len, have, buf, &f))
		return 0;
	cr_expect_eq(f.triple.layer, 1);
	cr_expect_eq(f.triple.etype, 2);
	cr_expect_eq(f.code, DDPS_E_PROTOCOL);
	cr_expect(f.text[0]);
	return f.triple.code;
}

Test(ddp_place, msn_must_be_the_expected_one,
     .description = "5041-7.1-3 5041-7.1-7 5041-7.1-10 5041-7.2-1")
{
	struct ddps_ddp_queue q = { .msn = 9 };

	cr_expect_eq(make_untagged_ddp_place(q, 9, 0, 1, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 8, 0, 1, true, 10), 3);
	cr_expect_eq(make_untagged_ddp_place(q, 10, 0, 1, true, 10), 3);
	cr_expect_eq(make_untagged_ddp_place(q, 9, 0, 1, false, 0), 2);
	cr_expect_eq(make_untagged_ddp_place(q, 10, 0, 1, false, 0), 3);
}

Test(ddp_place, msn_wraps_through_zero, .description = "5041-4.3-12")
{
	struct ddps_ddp_queue q = { .msn = UINT32_MAX };

	cr_expect_eq(make_untagged_ddp_place(q, UINT32_MAX, 0, 0, true, 0), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 0, 0, 0, true, 0), 3);
	q.msn++;
	cr_expect_eq(make_untagged_ddp_place(q, 0, 0, 0, true, 0), 0);
	cr_expect_eq(make_untagged_ddp_place(q, UINT32_MAX, 0, 0, true, 0), 3);
}

Test(ddp_place, mo_and_length_stay_inside_the_buffer,
     .description = "5041-7.1-1 5041-7.1-8 5041-7.1-9 5041-1.2-1")
{
	struct ddps_ddp_queue q = { .msn = 1, .got = 4 };

	cr_expect_eq(make_untagged_ddp_place(q, 1, 4, 5, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 4, 6, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 4, 7, true, 10), 5);
	q.got = 10;
	cr_expect_eq(make_untagged_ddp_place(q, 1, 10, 0, true, 10), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 10, 1, true, 10), 5);
	q.got = 11;
	cr_expect_eq(make_untagged_ddp_place(q, 1, 11, 0, true, 10), 4);
}

Test(ddp_place, holes_and_repeats_are_refused, .description = "5041-1.2-2")
{
	struct ddps_ddp_queue q = { .msn = 1, .got = 4 };

	cr_expect_eq(make_untagged_ddp_place(q, 1, 3, 1, true, 10), 4);
	cr_expect_eq(make_untagged_ddp_place(q, 1, 5, 1, true, 10), 4);
	q.got = 0;
	cr_expect_eq(make_untagged_ddp_place(q, 1, 1, 1, true, 10), 4);
}

Test(ddp_place, mo_near_2_to_the_32)
{
	struct ddps_ddp_queue q = { .msn = 1, .got = UINT32_MAX };

	cr_expect_eq(make_untagged_ddp_place(q, 1, UINT32_MAX, 1, true, UINT32_MAX), 5);
	cr_expect_eq(make_untagged_ddp_place(q, 1, UINT32_MAX, 0, true, UINT32_MAX), 0);
	cr_expect_eq(make_untagged_ddp_place(q, 1, UINT32_MAX, 1, true, 10), 4);
}

Test(ddp_place, every_verdict_has_its_tagged_code, .description = "5041-7.2-1")
{
	static const struct {
		enum ddps_stag_verdict v;
		uint8_t code;
	} row[] = { { DDPS_STAG_INVALID, 0 },
		    { DDPS_STAG_ACCESS, 0 },
		    { DDPS_STAG_BOUNDS, 1 },
		    { DDPS_STAG_ASSOCIATION, 2 },
		    { DDPS_STAG_WRAP, 3 } };
	struct ddps_ddp_hdr h = { .tagged = true };
	struct ddps_fault f;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cr_expect_eq(ddps_ddp_stag_fault(row[i].v, &h, 1, &f), DDPS_E_ACCESS);
		cr_expect_eq(f.triple.layer, 1);
		cr_expect_eq(f.triple.etype, 1);
		cr_expect_eq(f.triple.code, row[i].code);
	}
}
