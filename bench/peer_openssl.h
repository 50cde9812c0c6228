/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_PEER_OPENSSL_H
#define BENCH_PEER_OPENSSL_H
/* What the programs by the calls of OpenSSL share: its errors, and a key that both sides have. */
#include "peer_tls.h"
#include <openssl/err.h>
#include <openssl/ssl.h>

static inline void peer_want_ssl(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, ERR_error_string(ERR_peek_last_error(), NULL));
	exit(1);
}

static inline unsigned peer_offer_psk(SSL *s, const char *hint, char *name, unsigned room,
				      unsigned char *key, unsigned key_room)
{
	(void)s;
	(void)hint;
	snprintf(name, room, "%s", PEER_PSK_NAME);
	if (key_room < sizeof PEER_PSK - 1)
		return 0;
	memcpy(key, PEER_PSK, sizeof PEER_PSK - 1);
	return sizeof PEER_PSK - 1;
}

static inline unsigned peer_find_psk(SSL *s, const char *name, unsigned char *key, unsigned room)
{
	char again[16];

	(void)name;
	return peer_offer_psk(s, NULL, again, sizeof again, key, room);
}

#endif
