/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl perf: percentiles from classes. */
#include "report/perf_hist.h"
#include "sessctl/perf_op.h"
#include "report/kept.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static struct hist h;

Test(sessctl_hist, empty_and_one)
{
	hist_reset(&h);
	cr_expect_eq(hist_percentile(&h, 50), 0);
	hist_add(&h, 12345, 0);
	cr_expect_eq(h.count, 0);
	hist_add(&h, 12345, 1);
	cr_expect_eq(h.min, 12345);
	cr_expect_eq(h.max, 12345);
	cr_expect_eq(hist_percentile(&h, 1), 12345);
	cr_expect_eq(hist_percentile(&h, 100), 12345);
}

Test(sessctl_hist, small_values_are_exact)
{
	hist_reset(&h);
	for (uint64_t v = 1; v <= 100; v++)
		hist_add(&h, v <= 50 ? 3 : 127, 1);
	cr_expect_eq(hist_percentile(&h, 50), 3);
	cr_expect_eq(hist_percentile(&h, 51), 127);
	hist_reset(&h);
	hist_add(&h, 0, 99);
	hist_add(&h, 63, 1);
	cr_expect_eq(hist_percentile(&h, 99), 0);
	cr_expect_eq(hist_percentile(&h, 100), 63);
}

Test(sessctl_hist, one_of_ten_thousand_is_found)
{
	hist_reset(&h);
	hist_add(&h, 1, 9998);
	hist_add(&h, 50, 1);
	hist_add(&h, 100, 1);
	cr_expect_eq(hist_percentile(&h, 99.9), 1);
	cr_expect_eq(hist_percentile(&h, 99.99), 50);
	cr_expect_eq(hist_percentile(&h, 100), 100);
}

Test(sessctl_hist, two_become_one)
{
	static struct hist more;

	hist_reset(&h);
	hist_reset(&more);
	hist_merge(&h, &more);
	cr_expect_eq(h.count, 0);
	hist_add(&more, 7, 3);
	hist_add(&more, 5000, 1);
	hist_merge(&h, &more);
	hist_add(&h, 2, 4);
	hist_merge(&h, &more);
	cr_expect_eq(h.count, 12);
	cr_expect_eq(h.min, 2);
	cr_expect_eq(h.max, 5000);
	cr_expect_eq(hist_percentile(&h, 33), 2);
	cr_expect_eq(hist_percentile(&h, 80), 7);
	cr_expect_eq(hist_percentile(&h, 100), 5000);
}

/* For any value: never below it, above it by less than 1/512. */
Test(sessctl_hist, error_is_bounded)
{
	for (unsigned bit = 0; bit < 64; bit++)
		for (int d = -1; d <= 1; d++) {
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)(int64_t)d, p;

			hist_reset(&h);
			hist_add(&h, v, 9);
			hist_add(&h, UINT64_MAX, 1);
			p = hist_percentile(&h, 90);
			cr_expect(p >= v && p - v <= v / 512, "%lu: %lu", (unsigned long)v,
				  (unsigned long)p);
		}
}

Test(sessctl_plot, problems_are_named)
{
	setenv("PATH", "/nonexistent:", 1);
	cr_expect_str_eq(plot_problem("x.pdf"), "the name has to end in .svg or .png");
	cr_expect_str_eq(plot_problem(".svg"), "the name has to end in .svg or .png");
	cr_expect_str_eq(plot_problem("x.png"), "gnuplot is not installed (Debian: gnuplot-nox)");
}

/* ---- sessctl perf --parallel: threads that begin and end together ---- */

#define THREADS 4
#define ROUNDS	200

static struct meet m = MEET_INIT(THREADS);
static unsigned round_of[THREADS];
static unsigned behind, whole_rounds[THREADS];

/* Nobody is in another round than whoever comes out of a meeting. */
static void *walk_through_meetings(void *arg)
{
	unsigned me = *(unsigned *)arg;

	for (unsigned r = 1; r <= ROUNDS; r++) {
		__atomic_store_n(&round_of[me], r, __ATOMIC_RELAXED);
		whole_rounds[me] += meet_all(&m);
		for (unsigned i = 0; i < THREADS; i++)
			if (__atomic_load_n(&round_of[i], __ATOMIC_RELAXED) != r)
				__atomic_fetch_add(&behind, 1, __ATOMIC_RELAXED);
		meet_all(&m);
	}
	return NULL;
}

static void run_sessctl_meet(void *(*fn)(void *))
{
	unsigned id[THREADS];
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		id[i] = i;
		cr_assert_eq(pthread_create(&t[i], NULL, fn, &id[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

Test(sessctl_meet, nobody_goes_on_alone, .timeout = 30)
{
	run_sessctl_meet(walk_through_meetings);
	cr_expect_eq(behind, 0);
	for (unsigned i = 0; i < THREADS; i++)
		cr_expect_eq(whole_rounds[i], ROUNDS);
}

/* One fails in the middle; the others come to know, and wait for it no more. */
static void *until_one_leaves(void *arg)
{
	unsigned me = *(unsigned *)arg;

	for (unsigned r = 0; r < ROUNDS; r++) {
		if (me == 2 && r == 7) {
			meet_leave(&m);
			break;
		}
		if (!meet_all(&m))
			break;
		whole_rounds[me]++;
	}
	return NULL;
}

Test(sessctl_meet, nobody_waits_for_whoever_left, .timeout = 30)
{
	run_sessctl_meet(until_one_leaves);
	for (unsigned i = 0; i < THREADS; i++)
		cr_expect_eq(whole_rounds[i], 7, "%u", i);
}

/* ---- kept ---- */

/* The areas of a report follow from the cases, however many there are; and little memory is said. */

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
