/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/parts/sctp_pool.h"
#include <stdlib.h>

#define LEAST 128u

static unsigned get_pool_class(size_t size)
{
	size_t last = (size - 1) / LEAST; /* of the first class: 0 */
	unsigned c = last ? 64 - (unsigned)__builtin_clzll(last) : 0;

	return c < DDPS_SC_POOL_CLASSES ? c : DDPS_SC_POOL_CLASSES;
}

void *ddps_sc_pool_get(struct ddps_sc_pool *p, size_t size)
{
	unsigned c = get_pool_class(size);
	void **mem;

	if (c == DDPS_SC_POOL_CLASSES)
		return malloc(size);
	mem = p->first[c];
	if (!mem)
		return malloc((size_t)LEAST << c);
	p->first[c] = *mem;
	p->kept -= (size_t)LEAST << c;
	return mem;
}

void ddps_sc_pool_put(struct ddps_sc_pool *p, void *mem, size_t size)
{
	unsigned c = get_pool_class(size);

	if (!mem)
		return;
	if (c == DDPS_SC_POOL_CLASSES || p->kept + ((size_t)LEAST << c) > DDPS_SC_POOL_KEPT) {
		free(mem);
		return;
	}
	*(void **)mem = p->first[c];
	p->first[c] = mem;
	p->kept += (size_t)LEAST << c;
}

void ddps_sc_pool_fini(struct ddps_sc_pool *p)
{
	for (unsigned c = 0; c < DDPS_SC_POOL_CLASSES; c++) {
		while (p->first[c]) {
			void **mem = p->first[c];

			p->first[c] = *mem;
			free(mem);
		}
	}
	p->kept = 0;
}
