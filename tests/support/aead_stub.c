/* SPDX-License-Identifier: BSD-2-Clause */
/* See aead_stub.h. */
#include "support/aead_stub.h"
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct stub_state {
	uint64_t key;
};

unsigned aead_stub_fails;
int aead_stub_alive;

static uint64_t stub_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xbf58476d1ce4e5b9u;
	return h ^ h >> 29;
}

static uint64_t stub_hash(uint64_t h, const void *p, size_t n)
{
	const uint8_t *octet = p;
	uint64_t v;

	h = stub_mix(h, n + 1);
	for (; n >= sizeof v; n -= sizeof v, octet += sizeof v) {
		memcpy(&v, octet, sizeof v);
		h = stub_mix(h, v);
	}
	for (; n; n--)
		h = stub_mix(h, *octet++);
	return h;
}

static bool stub_fails(void)
{
	return aead_stub_fails && !--aead_stub_fails;
}

static size_t stub_size(enum ddps_suite suite)
{
	(void)suite;
	return DDPS_AEAD_ALIGN;
}

static int stub_init(void *st, enum ddps_suite suite, const uint8_t *key)
{
	struct stub_state *s = st;

	if (stub_fails())
		return -ENOMEM;
	s->key = stub_hash((uint64_t)suite, key, ddps_suite_key_len(suite));
	aead_stub_alive++;
	return 0;
}

/* Octets at @at of what a key and a nonce give, over @n octets from @in to @out. */
static void stub_cover(uint64_t h, size_t at, const uint8_t *in, size_t n, uint8_t *out)
{
	const uint64_t cover = htole64(h);
	uint64_t v;
	size_t i = 0;

	while (i < n)
		if ((at + i) % sizeof v == 0 && n - i >= sizeof v) {
			memcpy(&v, in + i, sizeof v);
			v ^= cover ^ ((at + i) >> 3 & 0xff) * UINT64_C(0x0101010101010101);
			memcpy(out + i, &v, sizeof v);
			i += sizeof v;
		} else {
			out[i] =
				in[i] ^ (uint8_t)(h >> (at + i) % 8 * 8) ^ (uint8_t)((at + i) >> 3);
			i++;
		}
}

static void stub_tag(uint64_t h, const void *ad, size_t adlen, const uint8_t *sealed, size_t len,
		     uint8_t *tag)
{
	h = stub_hash(stub_hash(h, ad, adlen), sealed, len);
	memcpy(tag, &h, sizeof h);
	h = stub_mix(h, 1);
	memcpy(tag + sizeof h, &h, sizeof h);
}

static int stub_seal(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
		     const struct iovec *iov, int n, uint8_t *out)
{
	const struct stub_state *s = st;
	uint64_t h = stub_hash(s->key, nonce, DDPS_AEAD_NONCE);
	size_t len = 0;

	if (stub_fails())
		return -EIO;
	for (int i = 0; i < n; len += iov[i++].iov_len)
		stub_cover(h, len, iov[i].iov_base, iov[i].iov_len, out + len);
	stub_tag(h, ad, adlen, out, len, out + len);
	return 0;
}

static int stub_open(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
		     const uint8_t *in, size_t len, uint8_t *out)
{
	const struct stub_state *s = st;
	uint64_t h = stub_hash(s->key, nonce, DDPS_AEAD_NONCE);
	uint8_t tag[DDPS_AEAD_TAG];

	if (stub_fails())
		return -EIO;
	stub_tag(h, ad, adlen, in, len, tag);
	if (memcmp(tag, in + len, sizeof tag)) {
		memset(out, 0, len);
		return -EBADMSG;
	}
	stub_cover(h, 0, in, len, out);
	return 0;
}

static void stub_wipe(void *st)
{
	explicit_bzero(st, sizeof(struct stub_state));
	aead_stub_alive--;
}

const struct ddps_aead *aead_stub(void)
{
	static const struct ddps_aead table = {
		.name = "stub",
		.size = stub_size,
		.init = stub_init,
		.seal = stub_seal,
		.open = stub_open,
		.wipe = stub_wipe,
	};

	return &table;
}
