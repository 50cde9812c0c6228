/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked of each AEAD: vectors of others, pieces, in place, a wrong tag, one library against the other. */
#include "secure/aead/aead_lib.h"
#include "support/aead_stub.h"
#include "support/clock.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum ddps_suite suites[] = { DDPS_SUITE_AES_128_GCM, DDPS_SUITE_AES_256_GCM,
					  DDPS_SUITE_CHACHA20_POLY1305 };

struct aead_vector {
	enum ddps_suite suite;
	const char *key, *nonce, *ad, *plain, *sealed;
};

/* GCM's test cases 4 and 16 (McGrew, Viega), and RFC 8439 2.8.2. */
static const struct aead_vector vectors[] = {
	{ DDPS_SUITE_AES_128_GCM, "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
	  "feedfacedeadbeeffeedfacedeadbeefabaddad2",
	  "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e24"
	  "49a6b525b16aedf5aa0de657ba637b39",
	  "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5a"
	  "ac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47" },
	{ DDPS_SUITE_AES_256_GCM,
	  "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
	  "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
	  "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e24"
	  "49a6b525b16aedf5aa0de657ba637b39",
	  "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b10"
	  "56828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b" },
	{ DDPS_SUITE_CHACHA20_POLY1305,
	  "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
	  "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
	  "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966"
	  "204920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f72207468652066757475"
	  "72652c2073756e73637265656e20776f756c642062652069742e",
	  "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69"
	  "da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad67594"
	  "5585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691" },
};

static size_t vector_octets(const char *text, uint8_t *out)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(sscanf(text + 2 * i, "%2hhx", &out[i]), 1);
	return n;
}

static void *make_state(const struct ddps_aead *a, enum ddps_suite suite, const uint8_t *key)
{
	size_t size = a->size(suite);
	void *st;

	cr_assert(size && !(size % DDPS_AEAD_ALIGN));
	st = aligned_alloc(DDPS_AEAD_ALIGN, size);
	cr_assert(st);
	memset(st, 0xa5, size);
	cr_assert_eq(a->init(st, suite, key), 0);
	return st;
}

static void free_state(const struct ddps_aead *a, void *st)
{
	a->wipe(st);
	free(st);
}

static void check_vector(const struct ddps_aead *a, const struct aead_vector *v)
{
	uint8_t key[32], nonce[12], ad[32], plain[128], sealed[160], out[160];
	size_t nad = vector_octets(v->ad, ad), n = vector_octets(v->plain, plain);
	struct iovec iov = { plain, n };
	void *st;

	vector_octets(v->key, key);
	vector_octets(v->nonce, nonce);
	cr_assert_eq(vector_octets(v->sealed, sealed), n + DDPS_AEAD_TAG);
	st = make_state(a, v->suite, key);
	cr_assert_eq(a->seal(st, nonce, ad, nad, &iov, 1, out), 0);
	cr_expect_arr_eq(out, sealed, n + DDPS_AEAD_TAG, "%s, %04x", a->name, v->suite);
	memset(out, 0, sizeof out);
	cr_assert_eq(a->open(st, nonce, ad, nad, sealed, n, out), 0);
	cr_expect_arr_eq(out, plain, n, "%s, %04x", a->name, v->suite);
	free_state(a, st);
}

/* The same octets in one piece and in many, opened in place and elsewhere; and each kind of change is seen. */
static void check_pieces(const struct ddps_aead *a, const struct ddps_aead *other,
			 enum ddps_suite suite, uint64_t seed)
{
	static uint8_t plain[20000], sealed[2][20016], out[20016];
	uint8_t key[32], nonce[12], ad[13];
	size_t n = draw_of(&seed) % 3 ? draw_of(&seed) % 200 : draw_of(&seed) % 20000, at = 0;
	size_t adlen = draw_of(&seed) % 2 ? 5 : 13, bit;
	struct iovec iov[DDPS_AEAD_IOV_MAX], whole = { plain, n };
	void *st, *st2;
	int pieces = 0;

	for (size_t i = 0; i < sizeof key; i++)
		key[i] = (uint8_t)draw_of(&seed);
	for (size_t i = 0; i < sizeof nonce; i++)
		nonce[i] = (uint8_t)draw_of(&seed);
	for (size_t i = 0; i < sizeof ad; i++)
		ad[i] = (uint8_t)draw_of(&seed);
	for (size_t i = 0; i < n; i++)
		plain[i] = (uint8_t)draw_of(&seed);
	while (at < n || !pieces) {
		size_t some = n - at;

		if (pieces < DDPS_AEAD_IOV_MAX - 1)
			some = draw_of(&seed) % 2 ? draw_of(&seed) % 20 : draw_of(&seed) % (n + 1);
		some = some < n - at ? some : n - at;
		iov[pieces++] = (struct iovec){ plain + at, some };
		at += some;
	}
	st = make_state(a, suite, key);
	st2 = make_state(other, suite, key);
	cr_assert_eq(a->seal(st, nonce, ad, adlen, iov, pieces, sealed[0]), 0);
	cr_assert_eq(other->seal(st2, nonce, ad, adlen, &whole, 1, sealed[1]), 0);
	cr_assert_arr_eq(sealed[0], sealed[1], n + DDPS_AEAD_TAG, "%zu octets", n);
	cr_assert_eq(a->open(st, nonce, ad, adlen, sealed[0], n, out), 0);
	cr_assert(!memcmp(out, plain, n));
	cr_assert_eq(a->open(st, nonce, ad, adlen, sealed[0], n, sealed[0]), 0, "in place");
	cr_assert(!memcmp(sealed[0], plain, n));

	bit = draw_of(&seed) % ((n + DDPS_AEAD_TAG) * 8);
	sealed[1][bit / 8] ^= (uint8_t)(1u << bit % 8);
	memset(out, 0xff, n);
	cr_assert_eq(a->open(st, nonce, ad, adlen, sealed[1], n, out), -EBADMSG);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(out[i], 0, "nothing is shown of what did not authenticate");
	sealed[1][bit / 8] ^= (uint8_t)(1u << bit % 8);
	ad[draw_of(&seed) % adlen] ^= 1;
	cr_assert_eq(a->open(st, nonce, ad, adlen, sealed[1], n, out), -EBADMSG);
	free_state(a, st);
	free_state(other, st2);
}

Test(aead, gnutls_seals_the_vectors_of_others)
{
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		check_vector(ddps_aead_gnutls(), &vectors[i]);
}

Test(aead, gnutls_seals_pieces_as_a_whole)
{
	for (uint64_t seed = 0; seed < 300; seed++)
		check_pieces(ddps_aead_gnutls(), ddps_aead_gnutls(), suites[seed % 3], seed);
}

Test(aead, the_stub_sees_every_change)
{
	for (uint64_t seed = 0; seed < 300; seed++)
		check_pieces(aead_stub(), aead_stub(), suites[seed % 3], seed);
	cr_expect_eq(aead_stub_alive, 0);
}

/* Where ipsec-mb cannot be used it is said why, and GnuTLS is what is best. */
Test(aead, ipsec_mb_is_gnutls_but_faster)
{
	const char *why;
	const struct ddps_aead *mb = ddps_aead_ipsec_mb(&why);

	if (!mb) {
		cr_expect(why && strlen(why) > 10);
		cr_expect_eq(ddps_aead_best(), ddps_aead_gnutls());
		return;
	}
	cr_expect_null(why);
	cr_expect_eq(ddps_aead_best(), mb);
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
		check_vector(mb, &vectors[i]);
	for (uint64_t seed = 0; seed < 300; seed++) {
		check_pieces(mb, ddps_aead_gnutls(), suites[seed % 3], seed);
		check_pieces(ddps_aead_gnutls(), mb, suites[seed % 3], seed);
	}
}
