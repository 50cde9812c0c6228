/* SPDX-License-Identifier: BSD-2-Clause */
/* A covering array: greedy, so the same each time, and a few rows longer than the shortest. */
#include "sessctl/conform_probe.h"
#include <string.h>

#define VALUES_MAX 5

/* 0: model: plain, enhanced, peer-to-peer with Send, Write, Read.  1, 2: IRD, ORD: 0, 1, 16, ulp.
 * 3: CRC, 4: markers: off, on.  5: private data: none, the most. */
const unsigned pairs_values[PAIRS_PARAMS] = { 5, 4, 4, 2, 2, 2 };

typedef bool covered_t[PAIRS_PARAMS][VALUES_MAX][PAIRS_PARAMS][VALUES_MAX];

bool pairs_allowed(unsigned p, unsigned x, unsigned q, unsigned y)
{
	if (q < p)
		return pairs_allowed(q, y, p, x);
	/* Nothing is exchanged then: one value stands for all.  RTR by Read needs one Read. */
	if (p == 0 && x == 0 && (q == 1 || q == 2))
		return y == 2;
	return !(p == 0 && x == 4 && q == 2 && y == 0);
}

static bool row_allowed(const uint8_t *row)
{
	for (unsigned p = 0; p < PAIRS_PARAMS; p++)
		for (unsigned q = p + 1; q < PAIRS_PARAMS; q++)
			if (!pairs_allowed(p, row[p], q, row[q]))
				return false;
	return true;
}

/* The next row, counting; false: that was the last. */
static bool next_row(uint8_t *row)
{
	for (unsigned p = 0; p < PAIRS_PARAMS; p++) {
		if (++row[p] < pairs_values[p])
			return true;
		row[p] = 0;
	}
	return false;
}

static unsigned gain(const uint8_t *row, covered_t covered)
{
	unsigned n = 0;

	for (unsigned p = 0; p < PAIRS_PARAMS; p++)
		for (unsigned q = p + 1; q < PAIRS_PARAMS; q++)
			n += !covered[p][row[p]][q][row[q]];
	return n;
}

unsigned pairs_make(uint8_t row[PAIRS_MAX][PAIRS_PARAMS])
{
	static covered_t covered;
	unsigned n = 0, best;

	memset(covered, 0, sizeof covered);
	for (; n < PAIRS_MAX; n++) {
		uint8_t try[PAIRS_PARAMS] = { 0 };

		best = 0;
		do {
			unsigned g = row_allowed(try) ? gain(try, covered) : 0;

			if (g > best) {
				best = g;
				memcpy(row[n], try, sizeof try);
			}
		} while (next_row(try));
		if (!best)
			break;
		for (unsigned p = 0; p < PAIRS_PARAMS; p++)
			for (unsigned q = p + 1; q < PAIRS_PARAMS; q++)
				covered[p][row[n][p]][q][row[n][q]] = true;
	}
	return n;
}
