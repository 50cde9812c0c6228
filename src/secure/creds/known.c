/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains whose signatures were right.  Peers come again, and to verify a chain takes a third of a handshake. */
#include "secure/creds/set.h"
#include <gnutls/crypto.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN 64u

struct ddps_known {
	/* Whoever finds it set verifies: nobody waits, in a child of fork neither. */
	atomic_flag busy;
	unsigned next;
	uint8_t chain[KNOWN][DDPS_CHAIN_HASH];
};

struct ddps_known *ddps_known_new(void)
{
	struct ddps_known *k = calloc(1, sizeof *k);

	if (k)
		atomic_flag_clear(&k->busy);
	return k;
}

bool ddps_chain_hash(uint8_t *dst, const struct ddps_creds_peer *peer, const int *at, unsigned n,
		     bool server)
{
	const uint8_t use = server;
	gnutls_hash_hd_t h;
	int err;

	if (gnutls_hash_init(&h, GNUTLS_DIG_SHA256))
		return false;
	err = gnutls_hash(h, &use, sizeof use);
	if (!err)
		err = gnutls_hash(h, at, n * sizeof *at);
	for (unsigned i = 0; !err && i < peer->ncerts; i++) {
		const uint64_t len = peer->cert[i].len;

		err = gnutls_hash(h, &len, sizeof len);
		if (!err)
			err = gnutls_hash(h, peer->cert[i].p, peer->cert[i].len);
	}
	gnutls_hash_deinit(h, dst);
	return !err;
}

bool ddps_known_has(struct ddps_known *k, const uint8_t *hash)
{
	bool found = false;

	if (!k || atomic_flag_test_and_set(&k->busy))
		return false;
	for (unsigned i = 0; !found && i < KNOWN; i++)
		found = !memcmp(k->chain[i], hash, sizeof k->chain[i]);
	atomic_flag_clear(&k->busy);
	return found;
}

void ddps_known_add(struct ddps_known *k, const uint8_t *hash)
{
	if (!k || atomic_flag_test_and_set(&k->busy))
		return;
	memcpy(k->chain[k->next++ % KNOWN], hash, sizeof k->chain[0]);
	atomic_flag_clear(&k->busy);
}
