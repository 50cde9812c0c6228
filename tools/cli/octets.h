/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OCTETS_H
#define SESSCTL_OCTETS_H
/* Octets, one big-endian field behind the other; beyond the end only @failed is set. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct octets {
	uint8_t *p, *end;
	bool failed;
};

static inline struct octets octets_at(uint8_t *buf, size_t len)
{
	return (struct octets){ buf, buf + len, false };
}

static inline void octets_put(struct octets *o, const void *src, size_t n)
{
	o->failed |= n > (size_t)(o->end - o->p);
	if (o->failed)
		return;
	if (n)
		memcpy(o->p, src, n);
	o->p += n;
}

/* The last @n octets of @v, at most eight. */
static inline void octets_be(struct octets *o, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> (56 - 8 * i));
	octets_put(o, b + 8 - n, n);
}

struct octets_in {
	const uint8_t *p, *end;
	bool failed;
};

static inline struct octets_in octets_from(const uint8_t *buf, size_t len)
{
	return (struct octets_in){ buf, buf + len, false };
}

/* The next @n octets in place, or NULL. */
static inline const uint8_t *octets_take(struct octets_in *o, size_t n)
{
	const uint8_t *at = o->p;

	o->failed |= n > (size_t)(o->end - o->p);
	if (o->failed)
		return NULL;
	o->p += n;
	return at;
}

/* The next @n octets as a number, at most eight; 0 beyond the end. */
static inline uint64_t octets_get(struct octets_in *o, size_t n)
{
	const uint8_t *at = octets_take(o, n);
	uint64_t v = 0;

	for (size_t i = 0; at && i < n; i++)
		v = v << 8 | at[i];
	return v;
}

#endif
