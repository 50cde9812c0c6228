/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4. */
#include "common/siphash.h"
#include <endian.h>
#include <string.h>

static uint64_t rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[1] = rotl(v[1], 13) ^ v[0];
		v[0] = rotl(v[0], 32);
		v[2] += v[3];
		v[3] = rotl(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotl(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotl(v[1], 17) ^ v[2];
		v[2] = rotl(v[2], 32);
	}
}

static void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t ddps_siphash(const struct ddps_siphash_key *key, const void *data, size_t len)
{
	uint64_t v[4] = { key->k[0] ^ UINT64_C(0x736f6d6570736575),
			  key->k[1] ^ UINT64_C(0x646f72616e646f6d),
			  key->k[0] ^ UINT64_C(0x6c7967656e657261),
			  key->k[1] ^ UINT64_C(0x7465646279746573) };
	const uint8_t *p = data;
	uint64_t word;
	size_t left = len;

	for (; left >= sizeof word; left -= sizeof word, p += sizeof word) {
		memcpy(&word, p, sizeof word);
		absorb(v, le64toh(word));
	}
	word = (uint64_t)len << 56;
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)p[i] << 8 * i;
	absorb(v, word);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
