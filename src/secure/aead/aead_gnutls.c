/* SPDX-License-Identifier: BSD-2-Clause */
/* AEADs by GnuTLS. */
#include "aead_lib.h"
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

struct gnutls_state {
	gnutls_aead_cipher_hd_t cipher;
};

static gnutls_cipher_algorithm_t cipher_of(enum ddps_suite suite)
{
	switch (suite) {
	case DDPS_SUITE_AES_128_GCM:
		return GNUTLS_CIPHER_AES_128_GCM;
	case DDPS_SUITE_AES_256_GCM:
		return GNUTLS_CIPHER_AES_256_GCM;
	case DDPS_SUITE_CHACHA20_POLY1305:
		return GNUTLS_CIPHER_CHACHA20_POLY1305;
	}
	return GNUTLS_CIPHER_UNKNOWN;
}

static int errno_of_gnutls(int rc)
{
	switch (rc) {
	case GNUTLS_E_SUCCESS:
		return 0;
	case GNUTLS_E_DECRYPTION_FAILED:
		return -EBADMSG;
	case GNUTLS_E_MEMORY_ERROR:
		return -ENOMEM;
	}
	return -EIO;
}

static size_t gnutls_size(enum ddps_suite suite)
{
	return cipher_of(suite) == GNUTLS_CIPHER_UNKNOWN ? 0 : DDPS_AEAD_ALIGN;
}

static int gnutls_key(void *st, enum ddps_suite suite, const uint8_t *key)
{
	struct gnutls_state *g = st;
	uint8_t copy[DDPS_AEAD_KEY_MAX];
	gnutls_datum_t k = { .data = copy, .size = (unsigned)ddps_suite_key_len(suite) };
	int rc;

	memcpy(copy, key, k.size); /* it asks for a key that it could change */
	rc = gnutls_aead_cipher_init(&g->cipher, cipher_of(suite), &k);
	explicit_bzero(copy, sizeof copy);
	return errno_of_gnutls(rc);
}

static int gnutls_seal(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
		       const struct iovec *iov, int n, uint8_t *out)
{
	struct gnutls_state *g = st;
	giovec_t auth = { .iov_base = (void *)ad, .iov_len = adlen };
	size_t room = DDPS_AEAD_TAG;

	for (int i = 0; i < n; i++)
		room += iov[i].iov_len;
	return errno_of_gnutls(gnutls_aead_cipher_encryptv(g->cipher, nonce, DDPS_AEAD_NONCE, &auth,
							   1, DDPS_AEAD_TAG, iov, n, out, &room));
}

static int gnutls_open(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
		       const uint8_t *in, size_t len, uint8_t *out)
{
	struct gnutls_state *g = st;
	size_t room = len;
	int rc = errno_of_gnutls(gnutls_aead_cipher_decrypt(g->cipher, nonce, DDPS_AEAD_NONCE, ad,
							    adlen, DDPS_AEAD_TAG, in,
							    len + DDPS_AEAD_TAG, out, &room));

	if (rc)
		explicit_bzero(out, len);
	return rc;
}

static void gnutls_wipe(void *st)
{
	struct gnutls_state *g = st;

	gnutls_aead_cipher_deinit(g->cipher);
	explicit_bzero(g, sizeof *g);
}

const struct ddps_aead *ddps_aead_gnutls(void)
{
	static const struct ddps_aead table = {
		.name = "GnuTLS",
		.size = gnutls_size,
		.init = gnutls_key,
		.seal = gnutls_seal,
		.open = gnutls_open,
		.wipe = gnutls_wipe,
	};

	return &table;
}

const struct ddps_aead *ddps_aead_best(void)
{
	const struct ddps_aead *fast = ddps_aead_ipsec_mb(NULL);

	return fast ? fast : ddps_aead_gnutls();
}
