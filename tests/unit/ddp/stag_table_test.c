/* SPDX-License-Identifier: BSD-2-Clause */
/* The STag table. */
#include "ddp/stag.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define RW (DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ)

static struct ddps_stag_table *table;
static struct ddps_pd pd, other;
static uint8_t mem[100];
enum { STREAM_A = 1, STREAM_B };

static void setup(void)
{
	cr_assert_eq(ddps_stag_table_new(&table, 8), 0);
	pd = (struct ddps_pd){ .table = table, .streams = 1 };
	other = (struct ddps_pd){ .table = table, .streams = 1 };
}

static void teardown(void)
{
	ddps_stag_table_free(table);
}

static struct ddps_mr *register_stag_table(unsigned access, uint64_t stream)
{
	struct ddps_mr *mr = NULL;

	cr_assert_eq(ddps_stag_add(&pd, mem, sizeof mem, access, stream, &mr), 0);
	return mr;
}

static enum ddps_stag_verdict check_stag_table(const struct ddps_mr *mr, uint64_t to, uint64_t len,
					       unsigned need)
{
	uint8_t *at = NULL;
	enum ddps_stag_verdict v = ddps_stag_check(&pd, STREAM_A, mr->stag, to, len, need, &at);

	if (!v)
		cr_expect_eq(at, mem + (to - mr->base));
	return v;
}

TestSuite(stag, .init = setup, .fini = teardown);

Test(stag, values_are_random_and_never_zero,
     .description = "5040-8.1.1-8 5040-8.1.1-9 5042-5.1.1-1 5042-6.1.1-4")
{
	uint32_t all_or = 0, all_and = UINT32_MAX, prev = 0;
	int ascending = 0;

	for (int i = 0; i < 256; i++) {
		struct ddps_mr *mr = register_stag_table(RW, 0);

		cr_expect_neq(mr->stag, 0);
		all_or |= mr->stag;
		all_and &= mr->stag;
		ascending += mr->stag > prev;
		prev = mr->stag;
		ddps_stag_remove(mr);
	}
	/* Chances of a false alarm: below 2^-200. */
	cr_expect_eq(all_or, UINT32_MAX);
	cr_expect_eq(all_and, 0);
	cr_expect(ascending > 30 && ascending < 226);
}

Test(stag, limit_of_regions, .description = "5042-6.4.1-1")
{
	struct ddps_mr *mr[9];

	for (int i = 0; i < 7; i++)
		mr[i] = register_stag_table(RW, 0);
	mr[7] = register_stag_table(RW, 0);
	cr_expect_eq(ddps_stag_count(table), 8);
	cr_expect_eq(pd.users, 8);
	cr_expect_eq(ddps_stag_add(&pd, mem, 1, RW, 0, &mr[8]), DDPS_E_LIMIT);
	ddps_stag_remove(mr[7]);
	cr_expect_eq(pd.users, 7);
	cr_expect_eq(ddps_stag_add(&pd, mem, 1, RW, 0, &mr[8]), 0);
}

Test(stag, what_cannot_be_registered)
{
	struct ddps_mr *mr;

	cr_expect_eq(ddps_stag_add(&pd, NULL, 1, RW, 0, &mr), DDPS_E_INVAL);
	cr_expect_eq(ddps_stag_add(&pd, NULL, 0, RW, 0, &mr), 0);
#if SIZE_MAX > UINT32_MAX
	cr_expect_eq(ddps_stag_add(&pd, mem, (1ull << 48) + 1, RW, 0, &mr), DDPS_E_INVAL);
	cr_expect_eq(ddps_stag_add(&pd, mem, 1ull << 48, RW, 0, &mr), 0);
#endif
	cr_expect_eq(ddps_stag_add(&pd, mem, 1, 0x100, 0, &mr), DDPS_E_INVAL);
	cr_expect_eq(ddps_stag_add(&pd, (void *)(UINTPTR_MAX - 1), 3, RW, 0, &mr), DDPS_E_INVAL);
}

Test(stag, bounds_are_exact_to_the_octet,
     .description = "5041-7.1-14 5041-7.1-15 5041-8.1-1 5041-8.3-1 5041-8.3.1-4 "
		    "5040-8.1.1-3 5042-6.2.1-1")
{
	for (int zero = 0; zero < 2; zero++) {
		struct ddps_mr *mr = register_stag_table(RW | (zero ? DDPS_ZERO_BASED : 0), 0);
		uint64_t b = mr->base;

		cr_expect_eq(b, zero ? 0 : (uintptr_t)mem);
		cr_expect_eq(check_stag_table(mr, b, 99, DDPS_REMOTE_WRITE), DDPS_STAG_OK);
		cr_expect_eq(check_stag_table(mr, b, 100, DDPS_REMOTE_WRITE), DDPS_STAG_OK);
		cr_expect_eq(check_stag_table(mr, b, 101, DDPS_REMOTE_WRITE), DDPS_STAG_BOUNDS);
		cr_expect_eq(check_stag_table(mr, b + 99, 1, DDPS_REMOTE_WRITE), DDPS_STAG_OK);
		cr_expect_eq(check_stag_table(mr, b + 100, 1, DDPS_REMOTE_WRITE), DDPS_STAG_BOUNDS);
		cr_expect_eq(check_stag_table(mr, b + 101, 1, DDPS_REMOTE_WRITE), DDPS_STAG_BOUNDS);
		if (!zero)
			cr_expect_eq(check_stag_table(mr, b - 1, 1, DDPS_REMOTE_WRITE),
				     DDPS_STAG_BOUNDS);
		cr_expect_eq(check_stag_table(mr, b, UINT64_MAX - b, DDPS_REMOTE_WRITE),
			     DDPS_STAG_BOUNDS);
	}
}

Test(stag, wrap_is_reported_before_bounds, .description = "5041-7.1-16")
{
	struct ddps_mr *mr = register_stag_table(RW | DDPS_ZERO_BASED, 0);

	cr_expect_eq(check_stag_table(mr, UINT64_MAX - 7, 7, DDPS_REMOTE_READ), DDPS_STAG_BOUNDS);
	cr_expect_eq(check_stag_table(mr, UINT64_MAX - 7, 8, DDPS_REMOTE_READ), DDPS_STAG_WRAP);
	cr_expect_eq(check_stag_table(mr, UINT64_MAX - 7, 9, DDPS_REMOTE_READ), DDPS_STAG_WRAP);
	mr->base = UINT64_MAX - 99; /* a region that ends with the last octet but none */
	cr_expect_eq(check_stag_table(mr, UINT64_MAX - 99, 99, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_eq(check_stag_table(mr, UINT64_MAX - 99, 100, DDPS_REMOTE_READ), DDPS_STAG_WRAP);
}

Test(stag, rights_are_separate, .description = "5041-8.3.1-6 5040-8.1.1-5 5042-6.3.5-1")
{
	static const unsigned right[] = { DDPS_LOCAL_WRITE, DDPS_REMOTE_WRITE, DDPS_REMOTE_READ };

	for (int i = 0; i < 3; i++) {
		struct ddps_mr *mr = register_stag_table(right[i] | DDPS_ZERO_BASED, 0);

		for (int j = 0; j < 3; j++)
			cr_expect_eq(check_stag_table(mr, 0, 1, right[j]),
				     i == j ? DDPS_STAG_OK : DDPS_STAG_ACCESS);
	}
}

Test(stag, domain_and_stream,
     .description = "5041-8.2-1 5041-8.2-2 5041-8.2-4 5041-8.3-3 5041-8.3.1-2 5041-8.3.1-3 "
		    "5040-8.1.1-1 5040-8.1.1-2 5042-6.1.1-1 5042-6.1.1-2 5042-6.1.1-3")
{
	struct ddps_mr *any = register_stag_table(RW | DDPS_ZERO_BASED, 0);
	struct ddps_mr *mine = register_stag_table(RW | DDPS_ZERO_BASED, STREAM_A);
	struct ddps_sge sge = { mem, 1, any->stag };
	uint8_t *at;

	cr_expect_eq(ddps_stag_check(&pd, STREAM_B, any->stag, 0, 1, DDPS_REMOTE_READ, &at),
		     DDPS_STAG_OK);
	cr_expect_eq(ddps_stag_check(&other, STREAM_A, any->stag, 0, 1, DDPS_REMOTE_READ, &at),
		     DDPS_STAG_ASSOCIATION);
	cr_expect_eq(check_stag_table(mine, 0, 1, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_eq(ddps_stag_check(&pd, STREAM_B, mine->stag, 0, 1, DDPS_REMOTE_READ, &at),
		     DDPS_STAG_ASSOCIATION);
	cr_expect_eq(ddps_stag_check_local(&other, STREAM_A, &sge, 0), DDPS_STAG_ASSOCIATION);
	sge.lkey = mine->stag;
	cr_expect_eq(ddps_stag_check_local(&pd, STREAM_B, &sge, 0), DDPS_STAG_ASSOCIATION);
	cr_expect_eq(ddps_stag_check_local(&pd, STREAM_A, &sge, 0), DDPS_STAG_OK);
}

Test(stag, association_before_rights_before_bounds)
{
	struct ddps_mr *mr = register_stag_table(DDPS_ZERO_BASED, 0);
	uint8_t *at;

	cr_expect_eq(ddps_stag_check(&other, 0, mr->stag, 0, 500, DDPS_REMOTE_READ, &at),
		     DDPS_STAG_ASSOCIATION);
	cr_expect_eq(check_stag_table(mr, 0, 500, DDPS_REMOTE_READ), DDPS_STAG_ACCESS);
	mr->valid = false;
	cr_expect_eq(ddps_stag_check(&other, 0, mr->stag, 0, 500, DDPS_REMOTE_READ, &at),
		     DDPS_STAG_INVALID);
}

Test(stag, local_pieces)
{
	struct ddps_mr *mr;
	struct ddps_sge sge;

	cr_assert_eq(ddps_stag_add(&pd, mem + 1, 50, 0, 0, &mr), 0);
	sge = (struct ddps_sge){ mem + 1, 50, mr->stag };
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, 0), DDPS_STAG_OK);
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, DDPS_LOCAL_WRITE), DDPS_STAG_ACCESS);
	sge.len = 51;
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, 0), DDPS_STAG_BOUNDS);
	sge = (struct ddps_sge){ mem + 50, 1, mr->stag };
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, 0), DDPS_STAG_OK);
	sge.addr = mem + 51;
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, 0), DDPS_STAG_BOUNDS);
	sge.addr = mem;
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, 0), DDPS_STAG_BOUNDS);
	sge = (struct ddps_sge){ mem + 1, 1, ~mr->stag };
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, 0), DDPS_STAG_INVALID);
	sge.len = 0;
	cr_expect_eq(ddps_stag_check_local(&pd, 0, &sge, DDPS_LOCAL_WRITE), DDPS_STAG_OK);
}

Test(stag, removal_revokes_immediately,
     .description = "5041-8.3-2 5041-8.3.1-5 5040-8.1.1-4 5040-8.1.1-6 5042-6.2.2-2")
{
	struct ddps_mr *mr = register_stag_table(RW | DDPS_ZERO_BASED, 0);
	uint32_t stag = mr->stag;
	uint8_t *at;

	ddps_stag_remove(mr);
	cr_expect_null(ddps_stag_find(table, stag));
	cr_expect_eq(ddps_stag_check(&pd, 0, stag, 0, 1, DDPS_REMOTE_READ, &at), DDPS_STAG_INVALID);
}

Test(stag, remote_invalidation_of_a_bound_region, .description = "5040-5.3-16 5040-5.3-17")
{
	struct ddps_mr *mr = register_stag_table(RW | DDPS_ZERO_BASED, STREAM_A);
	struct ddps_sge sge = { mem, 1, mr->stag };

	pd.streams = 2; /* does not matter for a bound one */
	cr_expect_eq(ddps_stag_invalidate(&pd, STREAM_B, mr->stag), DDPS_STAG_ASSOCIATION);
	cr_expect(mr->valid);
	cr_expect_eq(ddps_stag_invalidate(&other, STREAM_A, mr->stag), DDPS_STAG_ASSOCIATION);
	cr_expect_eq(ddps_stag_invalidate(&pd, STREAM_A, mr->stag), DDPS_STAG_OK);
	cr_expect_eq(check_stag_table(mr, 0, 1, DDPS_REMOTE_WRITE), DDPS_STAG_INVALID);
	cr_expect_eq(ddps_stag_check_local(&pd, STREAM_A, &sge, 0), DDPS_STAG_INVALID);
	cr_expect_eq(ddps_stag_invalidate(&pd, STREAM_A, mr->stag), DDPS_STAG_INVALID);
	cr_expect_eq(ddps_stag_count(table), 1, "kept until it is deregistered");
	ddps_stag_remove(mr);
}

Test(stag, remote_invalidation_of_a_shared_region, .description = "5040-8.1.1-7")
{
	struct ddps_mr *mr = register_stag_table(RW, 0);

	cr_expect_eq(ddps_stag_invalidate(&pd, STREAM_A, ~mr->stag), DDPS_STAG_INVALID);
	pd.streams = 2;
	cr_expect_eq(ddps_stag_invalidate(&pd, STREAM_A, mr->stag), DDPS_STAG_ASSOCIATION);
	cr_expect(mr->valid);
	pd.streams = 1;
	cr_expect_eq(ddps_stag_invalidate(&other, STREAM_A, mr->stag), DDPS_STAG_ASSOCIATION);
	cr_expect_eq(ddps_stag_invalidate(&pd, STREAM_A, mr->stag), DDPS_STAG_OK);
}

Test(stag, verdicts_have_texts)
{
	for (int v = DDPS_STAG_OK; v <= DDPS_STAG_BOUNDS; v++)
		for (int w = DDPS_STAG_OK; w < v; w++)
			cr_expect_str_neq(ddps_stag_verdict_text((enum ddps_stag_verdict)v),
					  ddps_stag_verdict_text((enum ddps_stag_verdict)w));
}

Test(stag, freed_values_rest_for_a_while, .description = "5042-6.1.1-4")
{
	struct ddps_mr *mr = register_stag_table(RW, 0);
	uint32_t stag = mr->stag;

	cr_expect_not(ddps_stag_usable(table, 0, false));
	cr_expect_not(ddps_stag_usable(table, stag, false), "in use");
	ddps_stag_remove(mr);
	for (int i = 0; i < 1024; i++) {
		cr_expect_not(ddps_stag_usable(table, stag, false), "%d", i);
		ddps_stag_remove(register_stag_table(RW, 0));
	}
	cr_expect(ddps_stag_usable(table, stag, false));
}
