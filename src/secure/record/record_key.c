/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys: taken over, made from their secret, followed by the next, wiped. */
#include "record_in.h"
#include "common/system/assert.h"
#include <errno.h>
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <string.h>

#define LIMIT_LEAST 64 /* [8449-4-1] */

void ddps_rec_expand(enum ddps_suite suite, const uint8_t *secret, const char *label, size_t n,
		     uint8_t *out)
{
	size_t hash = ddps_suite_hash_len(suite), len = strlen(label);
	uint8_t info[2 + 1 + 6 + 12 + 1];
	union {
		struct hmac_sha256_ctx sha256;
		struct hmac_sha384_ctx sha384;
	} mac;

	ddps_assert(len <= 12);
	info[0] = 0;
	info[1] = (uint8_t)n;
	info[2] = (uint8_t)(6 + len);
	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, len);
	info[9 + len] = 0; /* no context */
	if (suite == DDPS_SUITE_AES_256_GCM) {
		hmac_sha384_set_key(&mac.sha384, hash, secret);
		hkdf_expand(&mac.sha384, (nettle_hash_update_func *)hmac_sha384_update,
			    (nettle_hash_digest_func *)hmac_sha384_digest, hash, 10 + len, info, n,
			    out);
	} else {
		hmac_sha256_set_key(&mac.sha256, hash, secret);
		hkdf_expand(&mac.sha256, (nettle_hash_update_func *)hmac_sha256_update,
			    (nettle_hash_digest_func *)hmac_sha256_digest, hash, 10 + len, info, n,
			    out);
	}
	explicit_bzero(&mac, sizeof mac);
}

/* Key and IV of a secret (RFC 8446 7.3). */
static void derive_keys(enum ddps_suite suite, const uint8_t *secret, uint8_t *key, uint8_t *iv)
{
	ddps_rec_expand(suite, secret, "key", ddps_suite_key_len(suite), key);
	ddps_rec_expand(suite, secret, "iv", DDPS_AEAD_NONCE, iv);
}

int ddps_rec_next_keys(const struct ddps_rec *r, struct ddps_rec_half *h)
{
	uint8_t key[DDPS_AEAD_KEY_MAX], next[sizeof h->secret];
	int rc;

	ddps_rec_expand(r->suite, h->secret, "traffic upd", ddps_suite_hash_len(r->suite), next);
	memcpy(h->secret, next, ddps_suite_hash_len(r->suite));
	derive_keys(r->suite, h->secret, key, h->iv);
	r->aead->wipe(h->st);
	rc = r->aead->init(h->st, r->suite, key);
	explicit_bzero(next, sizeof next);
	explicit_bzero(key, sizeof key);
	h->seq = 0; /* [8446-5.3-1] */
	if (rc)
		h->st = NULL;
	return rc;
}

void ddps_rec_nonce(const struct ddps_rec_half *h, uint64_t seq, uint8_t *nonce)
{
	uint64_t low;

	memcpy(&low, h->iv + 4, sizeof low);
	low ^= htobe64(seq);
	memcpy(nonce, h->iv, 4);
	memcpy(nonce + 4, &low, sizeof low);
}

static size_t object_size(void)
{
	return (sizeof(struct ddps_rec) + DDPS_AEAD_ALIGN - 1) & ~(size_t)(DDPS_AEAD_ALIGN - 1);
}

size_t ddps_rec_size(const struct ddps_rec_config *c)
{
	size_t st = c->aead->size(c->suite);

	return st ? object_size() + 2 * st : 0;
}

static bool limit_ok(uint16_t limit)
{
	return !limit || limit >= LIMIT_LEAST;
}

/* Keys that do not come from their secret are not those that the peer will go on with. */
static int take_rec_keys(struct ddps_rec *r, struct ddps_rec_half *h, const struct ddps_rec_keys *k,
			 void *st)
{
	uint8_t key[DDPS_AEAD_KEY_MAX], iv[DDPS_AEAD_NONCE];
	int rc = -EINVAL;

	derive_keys(r->suite, k->secret, key, iv);
	if (!memcmp(key, k->key, ddps_suite_key_len(r->suite)) && !memcmp(iv, k->iv, sizeof iv))
		rc = r->aead->init(st, r->suite, key);
	if (!rc) {
		h->st = st;
		h->seq = k->seq;
		memcpy(h->iv, iv, sizeof iv);
		memcpy(h->secret, k->secret, ddps_suite_hash_len(r->suite));
	}
	explicit_bzero(key, sizeof key);
	explicit_bzero(iv, sizeof iv);
	return rc;
}

int ddps_rec_init(void *mem, const struct ddps_rec_config *c, struct ddps_rec **out)
{
	size_t each = c->aead->size(c->suite);
	struct ddps_rec *r = mem;
	uint8_t *st = mem;
	int rc;

	ddps_assert(!((uintptr_t)mem % DDPS_AEAD_ALIGN));
	if (!each || !limit_ok(c->peer_limit) || !limit_ok(c->own_limit))
		return -EINVAL;
	memset(mem, 0, object_size() + 2 * each);
	r->aead = c->aead;
	r->suite = c->suite;
	r->client = c->client;
	r->inner_max = DDPS_REC_CONTENT + 1;
	r->room = DDPS_REC_CONTENT;
	if (c->peer_limit && c->peer_limit <= DDPS_REC_CONTENT)
		r->room = (uint16_t)(c->peer_limit - 1); /* [8449-4-4] */
	if (c->own_limit && c->own_limit <= DDPS_REC_CONTENT)
		r->inner_max = c->own_limit;
	r->update_at = c->update_at ? c->update_at : DDPS_REC_UPDATE_AT;
	r->ask_at = c->ask_at ? c->ask_at : DDPS_REC_ASK_AT;
	r->alert_due = r->alert_got = -1;
	st += object_size();
	rc = take_rec_keys(r, &r->tx, &c->tx, st);
	if (!rc)
		rc = take_rec_keys(r, &r->rx, &c->rx, st + each);
	if (rc) {
		ddps_rec_wipe(r);
		return rc;
	}
	r->alive = DDPS_REC_ALIVE;
	*out = r;
	return 0;
}

void ddps_rec_wipe(struct ddps_rec *r)
{
	size_t each = r->aead ? r->aead->size(r->suite) : 0;

	if (r->aead && r->tx.st)
		r->aead->wipe(r->tx.st);
	if (r->aead && r->rx.st)
		r->aead->wipe(r->rx.st);
	explicit_bzero(r, object_size() + 2 * each);
}
