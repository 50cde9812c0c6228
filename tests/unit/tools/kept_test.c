/* SPDX-License-Identifier: BSD-2-Clause */
/* The areas of a report follow from the cases, however many there are; and little memory is said. */
#include "report/kept.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define AREAS 60

static struct ddps_conform_result make_result(const char *name, uint32_t verdict)
{
	return (struct ddps_conform_result){
		.c = { .name = name, .ids = "", .rule = "A rule", .area = "What it is about" },
		.verdict = verdict,
		.grade = verdict == DDPS_CONFORM_FAIL ? DDPS_CONFORM_FAILS : DDPS_CONFORM_STRICT,
		.why = ""
	};
}

Test(kept, an_area_for_each_beginning_of_a_name)
{
	struct kept k = { 0 };
	char name[AREAS][2][16];

	for (unsigned i = 0; i < AREAS; i++) {
		for (unsigned second = 0; second < 2; second++) {
			struct ddps_conform_result r = make_result(
				name[i][second], second ? DDPS_CONFORM_FAIL : DDPS_CONFORM_PASS);

			snprintf(name[i][second], sizeof name[i][second], "a%u-%u", i, second);
			cr_assert(kept_add(&k, &r));
		}
	}
	cr_assert_eq(k.areas, AREAS);
	for (unsigned i = 0; i < AREAS; i++) {
		const struct kept_area *a = &k.area[i];

		cr_expect_eq(strlen(a->name), strcspn(name[i][0], "-"));
		cr_expect_str_eq(a->title, "What it is about");
		cr_expect(a->verdict[DDPS_CONFORM_PASS] == 1 && a->verdict[DDPS_CONFORM_FAIL] == 1);
		cr_expect(a->grade[DDPS_CONFORM_STRICT] == 1 && a->grade[DDPS_CONFORM_FAILS] == 1);
	}
	kept_free(&k);
}

/* A case that is not counted is said to be missing. */
Test(kept, each_allocation_that_fails)
{
	const struct ddps_conform_result r = make_result("a-b", DDPS_CONFORM_PASS);
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		struct kept k = { 0 };

		mem_fail(n);
		(void)kept_add(&k, &r);
		failed = mem_failed();
		mem_fail(0);
		cr_expect_eq(k.short_of_memory, failed, "allocation %u", n);
		cr_expect(failed || k.area[0].verdict[DDPS_CONFORM_PASS] == 1);
		kept_free(&k);
		cr_assert_lt(n, 20);
	}
}
