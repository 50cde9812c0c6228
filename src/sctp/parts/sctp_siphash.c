/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/parts/sctp_siphash.h"
#include <endian.h>
#include <string.h>

struct state {
	uint64_t a, b, c, d;
};

static uint64_t rol(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void rounds(struct state *s, unsigned n)
{
	while (n--) {
		s->a += s->b;
		s->b = rol(s->b, 13) ^ s->a;
		s->a = rol(s->a, 32);
		s->c += s->d;
		s->d = rol(s->d, 16) ^ s->c;
		s->a += s->d;
		s->d = rol(s->d, 21) ^ s->a;
		s->c += s->b;
		s->b = rol(s->b, 17) ^ s->c;
		s->c = rol(s->c, 32);
	}
}

static void word(struct state *s, uint64_t m)
{
	s->d ^= m;
	rounds(s, 2);
	s->a ^= m;
}

uint64_t ddps_sc_siphash(const uint64_t key[2], const void *data, size_t len)
{
	struct state s = { key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
			   key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u };
	const uint8_t *p = data;
	uint64_t m;

	for (size_t n = len / 8; n--; p += 8) {
		memcpy(&m, p, sizeof m);
		word(&s, le64toh(m));
	}
	m = 0;
	memcpy(&m, p, len % 8);
	word(&s, le64toh(m) | (uint64_t)len << 56);
	s.c ^= 0xff;
	rounds(&s, 4);
	return s.a ^ s.b ^ s.c ^ s.d;
}
