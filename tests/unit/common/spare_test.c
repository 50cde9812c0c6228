/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers that sessions lend each other. */
#include "common/spare.h"
#include <criterion/criterion.h>

Test(spare, given_back_is_given_out_again)
{
	struct ddps_spares s = { 0 };
	void *a = ddps_spare_get(&s, 64), *b = ddps_spare_get(&s, 64);

	cr_assert(a && b && a != b);
	ddps_spare_put(&s, NULL);
	cr_expect_eq(s.n, 0);
	ddps_spare_put(&s, a);
	cr_expect_eq(ddps_spare_get(&s, 64), a);
	ddps_spare_put(&s, a);
	ddps_spare_put(&s, b);
	cr_expect_eq(s.n, 2);
	ddps_spares_fini(&s);
	cr_expect_eq(s.n, 0);
	cr_expect_null(s.first);
	ddps_spare_put(NULL, ddps_spare_get(NULL, 8)); /* no store: the allocator's */
}

Test(spare, keeps_so_many_and_no_more)
{
	struct ddps_spares s = { 0 };
	void *p[DDPS_SPARES_MAX + 1];

	for (int i = 0; i <= DDPS_SPARES_MAX; i++)
		p[i] = ddps_spare_get(&s, 64);
	for (int i = 0; i <= DDPS_SPARES_MAX; i++)
		ddps_spare_put(&s, p[i]);
	cr_expect_eq(s.n, DDPS_SPARES_MAX); /* the last one was freed: LeakSanitizer watches */
	ddps_spares_fini(&s);
}
