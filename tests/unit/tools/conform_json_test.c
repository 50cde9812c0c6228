/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON of conform under little memory: a line has all that it should, or the run fails and says so. */
#include "report/conform_out.h"
#include "sessctl/conform_probe.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long left; /* allocations that jansson still gets */

static void *take_json_memory(size_t len)
{
	return left-- > 0 ? malloc(len) : NULL;
}

/* The lines of a report with one failed case, of which all of jansson's memory beyond @n is lacking. */
static char *report_with_memory(long n, bool *failed)
{
	static const uint8_t octets[] = { 1, 2, 3 };
	const struct ddps_conform_item item = { .octets = octets, .len = 3, .by_target = 1 };
	const struct ddps_conform_result r = {
		.c = { .name = "mpa-x", .ids = "5044-7.1-2 5044-7.1-3", .rule = "A rule" },
		.verdict = DDPS_CONFORM_FAIL,
		.grade = DDPS_CONFORM_FAILS,
		.why = "it failed",
		.first = &item,
	};
	const struct ddps_conform_sum sum = { .fail = 1 };
	const struct conform_job job = { .o.json = true, .command = "test", .wire = "tcp" };
	char name[] = "/tmp/conform_json.XXXXXX";
	int fd = mkstemp(name), keep = dup(1);
	struct conform_out c;
	char *text;
	ssize_t len;

	cr_assert(fd >= 0 && keep >= 0);
	unlink(name);
	fflush(stdout);
	dup2(fd, 1);
	cr_assert_eq(conform_out_begin(&c, &job), 0);
	left = n;
	conform_out_case(&c, &r);
	*failed = conform_out_end(&c, &sum) != 0;
	left = 1000000;
	dup2(keep, 1);
	close(keep);
	text = calloc(1, 65536);
	cr_assert(text);
	len = pread(fd, text, 65535, 0);
	cr_assert(len >= 0);
	close(fd);
	return text;
}

Test(conform_json, a_line_is_whole_or_the_run_fails)
{
	bool failed = true;
	char *whole, *text;
	long n = 0;

	json_set_alloc_funcs(take_json_memory, free);
	whole = report_with_memory(1000000, &failed);
	cr_assert(!failed);
	cr_expect(strstr(whole, "\"wire\":[{\"by\":\"target\"") && strstr(whole, "\"causes\":[]"));
	for (failed = true; failed; n++) {
		text = report_with_memory(n, &failed);
		cr_expect(failed || !strcmp(text, whole), "%ld allocations: %s", n, text);
		free(text);
	}
	cr_expect_gt(n, 20, "the memory was wanted");
	free(whole);
}

/* ---- sessctl conform --pairs: the rows cover every pair that can be, and no other ---- */

static unsigned count_pair_rows(uint8_t row[PAIRS_MAX][PAIRS_PARAMS], unsigned n, unsigned p,
				unsigned x, unsigned q, unsigned y)
{
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++)
		found += row[i][p] == x && row[i][q] == y;
	return found;
}

Test(conform_pairs, every_pair_that_can_be_is_there)
{
	uint8_t row[PAIRS_MAX][PAIRS_PARAMS];
	unsigned n = pairs_make(row);

	cr_assert_gt(n, 0);
	cr_assert_lt(n, 30, "few enough for a peer: %u", n);
	for (unsigned p = 0; p < PAIRS_PARAMS; p++)
		for (unsigned q = p + 1; q < PAIRS_PARAMS; q++)
			for (unsigned x = 0; x < pairs_values[p]; x++)
				for (unsigned y = 0; y < pairs_values[q]; y++)
					cr_expect_eq(count_pair_rows(row, n, p, x, q, y) > 0,
						     pairs_allowed(p, x, q, y), "%u=%u, %u=%u", p,
						     x, q, y);
}
