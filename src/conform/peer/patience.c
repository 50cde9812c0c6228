/* SPDX-License-Identifier: BSD-2-Clause */
#include "conform/peer/patience.h"

#define NS_PER_MS UINT64_C(1000000)
#define LEAST	  5u /* so many quarterings are enough for any wait */

unsigned cf_patience_ms(const struct cf_patience *p, unsigned part, unsigned whole)
{
	unsigned n = p->silent[part] < LEAST ? p->silent[part] : LEAST;
	uint64_t least = CF_PATIENCE_MIN_MS + 4 * (p->answer_ns / NS_PER_MS);
	unsigned ms = p->heard[part] ? whole : whole >> (2 * n);

	if (ms >= least || ms == whole)
		return ms;
	return least < whole ? (unsigned)least : whole;
}

void cf_patience_heard(struct cf_patience *p, unsigned part, uint64_t ns)
{
	uint64_t before = p->answer_ns - p->answer_ns / 8;

	p->heard[part] = true;
	p->answer_ns = ns > before ? ns : before;
}

void cf_patience_silent(struct cf_patience *p, unsigned part)
{
	if (!p->heard[part])
		p->silent[part]++;
}
