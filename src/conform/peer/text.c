/* SPDX-License-Identifier: BSD-2-Clause */
/* Octets: fields, patterns, text.  Written apart from src/common on purpose. */
#include "conform/peer/inside.h"
#include <stdio.h>

void cf_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

void cf_put32(uint8_t *p, uint32_t v)
{
	cf_put16(p, (uint16_t)(v >> 16));
	cf_put16(p + 2, (uint16_t)v);
}

void cf_put64(uint8_t *p, uint64_t v)
{
	cf_put32(p, (uint32_t)(v >> 32));
	cf_put32(p + 4, (uint32_t)v);
}

uint16_t cf_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

uint32_t cf_get32(const uint8_t *p)
{
	return (uint32_t)cf_get16(p) << 16 | cf_get16(p + 2);
}

uint64_t cf_get64(const uint8_t *p)
{
	return (uint64_t)cf_get32(p) << 32 | cf_get32(p + 4);
}

void cf_fill(void *p, size_t len, uint32_t seed)
{
	uint8_t *b = p;
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		b[i] = (uint8_t)(x >> 24);
	}
}

const char *cf_hex(const void *p, size_t len)
{
	static _Thread_local char text[4][3 * 48 + 8];
	static _Thread_local unsigned turn;
	char *t = text[turn++ % 4], *at = t;
	const uint8_t *b = p;

	*t = 0;
	for (size_t i = 0; i < len && i < 48; i++)
		at += sprintf(at, "%s%02x", i ? " " : "", b[i]);
	if (len > 48)
		sprintf(at, " ...");
	return t;
}

uint32_t cf_crc32c(const uint8_t *p, size_t len)
{
	uint32_t c = UINT32_MAX;

	while (len--) {
		c ^= *p++;
		for (unsigned i = 0; i < 8; i++)
			c = c >> 1 ^ (0x82f63b78u & -(c & 1));
	}
	return ~c;
}
