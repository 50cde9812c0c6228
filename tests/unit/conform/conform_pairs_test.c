/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl conform --pairs: the rows cover every pair that can be, and no other. */
#include "sessctl/conform_probe.h"
#include <criterion/criterion.h>

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
