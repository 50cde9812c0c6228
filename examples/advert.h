/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An advert in the form of rping: 16 octets, big endian, u64 tagged offset, u32 STag, u32 size.  The
 * programs that use it work with rping and with programs for soft-iWARP.  For programs of your own there is
 * <ddpsess/advert.h>.
 */
#ifndef EXAMPLES_ADVERT_H
#define EXAMPLES_ADVERT_H

#include <stdint.h>

#define ADVERT_LEN 16

struct advert {
	uint64_t to;
	uint32_t stag, size;
};

static inline void put_advert_be(uint8_t *p, uint64_t v, unsigned octets)
{
	for (; octets--; v >>= 8)
		p[octets] = (uint8_t)v;
}

static inline uint64_t get_be(const uint8_t *p, unsigned octets)
{
	uint64_t v = 0;

	while (octets--)
		v = v << 8 | *p++;
	return v;
}

static inline void advert_encode(uint8_t *p, const struct advert *a)
{
	put_advert_be(p, a->to, 8);
	put_advert_be(p + 8, a->stag, 4);
	put_advert_be(p + 12, a->size, 4);
}

static inline struct advert advert_decode(const uint8_t *p)
{
	return (struct advert){ .to = get_be(p, 8),
				.stag = (uint32_t)get_be(p + 8, 4),
				.size = (uint32_t)get_be(p + 12, 4) };
}

#endif
