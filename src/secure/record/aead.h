/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_AEAD_H
#define DDPS_SECURE_AEAD_H
/*
 * Authenticated encryption, as the record layers need it of a library.  They know none: what they use is given
 * to them as one of these tables.
 *
 * The state of a key is memory of the caller's, so that what is secret lies where he wants it.  One thread at a
 * time uses it.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* The numbers of the cipher suites of TLS 1.3 (RFC 8446 B.4). */
enum ddps_suite {
	DDPS_SUITE_AES_128_GCM = 0x1301,
	DDPS_SUITE_AES_256_GCM = 0x1302,
	DDPS_SUITE_CHACHA20_POLY1305 = 0x1303,
};

#define DDPS_AEAD_KEY_MAX 32u
#define DDPS_AEAD_NONCE	  12u
#define DDPS_AEAD_TAG	  16u
#define DDPS_AEAD_ALIGN	  64u /* of the state of a key */
#define DDPS_AEAD_IOV_MAX 64  /* pieces of one call */

struct ddps_aead {
	const char *name; /* of the library, for logs */

	/* Octets of the state of a key, a multiple of DDPS_AEAD_ALIGN.  0: it has not this suite. */
	size_t (*size)(enum ddps_suite suite);

	/* Make the state of @key in @st, whose content is nothing yet.  0 or -errno; then there is no state. */
	int (*init)(void *st, enum ddps_suite suite, const uint8_t *key);

	/*
	 * Seal the @n pieces of @iov, one behind the other, to @out, and the tag behind them.  Each octet is
	 * read once, and @out does not overlap them.  0 or -errno.
	 */
	int (*seal)(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
		    const struct iovec *iov, int n, uint8_t *out);

	/*
	 * Open @len octets, behind which is their tag, to @out, which is @in or does not overlap it.  0, or
	 * -EBADMSG if the tag is another: @out is zeros then.  Or another -errno.
	 */
	int (*open)(void *st, const uint8_t *nonce, const void *ad, size_t adlen, const uint8_t *in,
		    size_t len, uint8_t *out);

	/* Free what @st holds elsewhere, and overwrite it. */
	void (*wipe)(void *st);
};

/* Octets of a key. */
static inline size_t ddps_suite_key_len(enum ddps_suite suite)
{
	return suite == DDPS_SUITE_AES_128_GCM ? 16 : 32;
}

/* Octets of a secret: what the suite's hash gives. */
static inline size_t ddps_suite_hash_len(enum ddps_suite suite)
{
	return suite == DDPS_SUITE_AES_256_GCM ? 48 : 32;
}

#endif
