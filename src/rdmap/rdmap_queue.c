/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of work queues: as much as was needed at a time, so that idle sessions are small. */
#include "rdmap/rdmap_priv.h"
#include "common/prefetch.h"
#include <stdlib.h>
#include <string.h>

#define FIRST 8u
#define SOON  4u /* entries: as many posts are expected */

_Static_assert(
	offsetof(struct ddps_sqe, atomic) <= DDPS_CACHE_LINE &&
		(sizeof(void *) < 8 || sizeof(struct ddps_sqe) % DDPS_CACHE_LINE == 0),
	"what a Send needs of an entry is in one line of the cache, of a processor with 64 bits");
_Static_assert(offsetof(struct ddps_rdmap, irrq.count) < DDPS_RDMAP_OFTEN &&
		       offsetof(struct ddps_rdmap, rxq[1]) <= DDPS_LLP_DATA_OFTEN,
	       "what a Send needs of a stream is asked for");

int ddps_wq_make(struct ddps_wq *q, uint32_t size, size_t each, uint32_t max_sge)
{
	uint8_t *mem =
		malloc(DDPS_CACHE_LINE - 1 + size * each + (size_t)size * max_sge * sizeof *q->sge);

	if (!mem)
		return DDPS_E_NOMEM;
	q->before = (uint32_t)(-(uintptr_t)mem % DDPS_CACHE_LINE);
	q->e = mem + q->before;
	q->sge = (struct ddps_sge *)(mem + q->before + size * each);
	q->size = size;
	return 0;
}

int ddps_wq_grow(struct ddps_wq *q, size_t each, uint32_t max_sge, uint64_t head, uint64_t tail)
{
	uint32_t size = q->size ? 2 * q->size : FIRST;
	struct ddps_wq to;

	if (ddps_wq_make(&to, size, each, max_sge))
		return DDPS_E_NOMEM;
	for (; head != tail; head++) {
		size_t i = head & (q->size - 1), k = head & (size - 1);

		memcpy((uint8_t *)to.e + k * each, (const uint8_t *)q->e + i * each, each);
		memcpy(to.sge + k * max_sge, q->sge + i * max_sge, max_sge * sizeof *to.sge);
	}
	ddps_wq_free(q);
	*q = to;
	return 0;
}

void ddps_wq_free(struct ddps_wq *q)
{
	if (q->size)
		free((uint8_t *)q->e - q->before);
}

void ddps_rdmap_expect(const struct ddps_rdmap *r)
{
	const struct ddps_wq *q = &r->sq.mem;
	uint64_t pos = r->sq.head == r->sq.tail ? ddps_wq_first(q, r->sq.tail) : r->sq.tail;

	for (uint64_t end = pos + (q->size ? SOON : 0); pos != end; pos++) {
		size_t at = pos & (q->size - 1);

		__builtin_prefetch((const struct ddps_sqe *)q->e + at, 1);
		__builtin_prefetch(q->sge + at * r->max_sge, 1);
	}
	__builtin_prefetch(r->tally.v, 1);
}
