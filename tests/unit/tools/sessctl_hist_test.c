/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl perf: percentiles from classes. */
#include "report/perf_hist.h"
#include "sessctl/perf_plot.h"
#include <criterion/criterion.h>
#include <stdlib.h>

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
