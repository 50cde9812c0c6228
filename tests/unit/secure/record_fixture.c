/* SPDX-License-Identifier: BSD-2-Clause */
/* See record_fixture.h. */
#include "record_fixture.h"
#include "support/aead_stub.h"
#include <endian.h>
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t rec_scratch[REC_SCRATCH];

/* RFC 8446 7.1, without a context. */
static void expand_label(enum ddps_suite suite, const uint8_t *secret, const char *label, size_t n,
			 uint8_t *out)
{
	size_t hash = suite == DDPS_SUITE_AES_256_GCM ? 48 : 32;
	struct hmac_sha256_ctx small;
	struct hmac_sha384_ctx big;
	char info[32];
	int len = snprintf(info, sizeof info, "%c%c%ctls13 %s", 0, (int)n, 6 + (int)strlen(label),
			   label) +
		  1; /* the octet that ends it is the context's length */

	if (hash == 48) {
		hmac_sha384_set_key(&big, hash, secret);
		hkdf_expand(&big, (nettle_hash_update_func *)hmac_sha384_update,
			    (nettle_hash_digest_func *)hmac_sha384_digest, hash, (size_t)len,
			    (uint8_t *)info, n, out);
		return;
	}
	hmac_sha256_set_key(&small, hash, secret);
	hkdf_expand(&small, (nettle_hash_update_func *)hmac_sha256_update,
		    (nettle_hash_digest_func *)hmac_sha256_digest, hash, (size_t)len,
		    (uint8_t *)info, n, out);
}

void rec_keys_of(enum ddps_suite suite, struct ddps_rec_keys *k)
{
	expand_label(suite, k->secret, "key", suite == DDPS_SUITE_AES_128_GCM ? 16 : 32, k->key);
	expand_label(suite, k->secret, "iv", 12, k->iv);
}

void rec_configure(struct rec_ends *e, const struct ddps_aead *aead, enum ddps_suite suite,
		   unsigned seed)
{
	uint64_t state = seed + 1;
	struct ddps_rec_keys k[2] = { 0 };

	*e = (struct rec_ends){ 0 };
	for (int i = 0; i < 2; i++) {
		for (size_t j = 0; j < sizeof k[i].secret; j++)
			k[i].secret[j] = (uint8_t)draw_of(&state);
		rec_keys_of(suite, &k[i]);
	}
	for (int i = 0; i < 2; i++)
		e->conf[i] = (struct ddps_rec_config){
			.aead = aead, .suite = suite, .client = !i, .tx = k[i], .rx = k[!i]
		};
}

void rec_begin(struct rec_ends *e)
{
	for (int i = 0; i < 2; i++) {
		size_t size = ddps_rec_size(&e->conf[i]);

		cr_assert(size);
		e->mem[i] = aligned_alloc(DDPS_AEAD_ALIGN, size);
		cr_assert(e->mem[i]);
		cr_assert_eq(ddps_rec_init(e->mem[i], &e->conf[i], &e->end[i]), 0);
	}
}

void rec_setup(struct rec_ends *e)
{
	rec_configure(e, aead_stub(), DDPS_SUITE_AES_128_GCM, 1);
	rec_begin(e);
}

void rec_free(struct rec_ends *e)
{
	for (int i = 0; i < 2; i++) {
		ddps_rec_wipe(e->end[i]);
		free(e->mem[i]);
	}
}

void rec_forger_begin(struct rec_forger *f, const struct rec_ends *e, int from)
{
	*f = (struct rec_forger){ .aead = e->conf[from].aead,
				  .suite = e->conf[from].suite,
				  .k = e->conf[from].tx };
	cr_assert(f->aead->size(f->suite) <= sizeof f->st);
	cr_assert_eq(f->aead->init(f->st, f->suite, f->k.key), 0);
}

void rec_forger_update(struct rec_forger *f)
{
	uint8_t next[48];

	expand_label(f->suite, f->k.secret, "traffic upd",
		     f->suite == DDPS_SUITE_AES_256_GCM ? 48 : 32, next);
	memcpy(f->k.secret, next, sizeof next);
	rec_keys_of(f->suite, &f->k);
	f->k.seq = 0;
	f->aead->wipe(f->st);
	cr_assert_eq(f->aead->init(f->st, f->suite, f->k.key), 0);
}

void rec_forger_end(struct rec_forger *f)
{
	f->aead->wipe(f->st);
}

size_t rec_forge(struct rec_forger *f, const void *inner, size_t n, uint8_t *out)
{
	struct iovec iov = { (void *)inner, n };
	uint8_t nonce[12];
	uint64_t seq = htobe64(f->k.seq++);

	memcpy(nonce, f->k.iv, 12);
	for (size_t i = 0; i < 8; i++)
		nonce[4 + i] ^= ((uint8_t *)&seq)[i];
	memcpy(out, (uint8_t[]){ 23, 3, 3, (uint8_t)((n + 16) >> 8), (uint8_t)(n + 16) }, 5);
	cr_assert_eq(f->aead->seal(f->st, nonce, out, 5, &iov, 1, out + 5), 0);
	return 5 + n + 16;
}

size_t rec_forge_typed(struct rec_forger *f, uint8_t type, const void *content, size_t n,
		       size_t pad, uint8_t *out)
{
	uint8_t *inner = calloc(1, n + 1 + pad);
	size_t len;

	cr_assert(inner);
	if (n)
		memcpy(inner, content, n);
	inner[n] = type;
	len = rec_forge(f, inner, n + 1 + pad, out);
	free(inner);
	return len;
}

struct ddps_rec_opened rec_open(struct ddps_rec *r, const uint8_t *in, size_t n)
{
	return ddps_rec_open(r, in, n, rec_scratch);
}

void rec_failed(struct ddps_rec *r, int alert, int code, const char *what)
{
	struct ddps_error e = ddps_rec_error(r);
	uint8_t none[64] = { 23, 3, 3, 0, 17 };

	cr_expect_eq(ddps_rec_alert_due(r), alert, "%s: alert %d", what, ddps_rec_alert_due(r));
	cr_expect_eq(e.code, code, "%s: code %d, %s", what, e.code, e.text);
	cr_expect(strncmp(e.text, "TLS: ", 5) == 0 && strlen(e.text) > 20, "%s: %s", what, e.text);
	cr_expect_null(strchr(e.text, '%'));
	/* and it remains so */
	cr_expect_eq(rec_open(r, none, sizeof none).what, DDPS_REC_FAILED, "%s", what);
	cr_expect_eq(rec_open(r, none, 0).used, 0, "%s", what);
	cr_expect_eq(ddps_rec_alert_due(r), alert, "%s", what);
}
