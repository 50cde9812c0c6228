/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys: taken over, wiped; what the AEAD is given in addition to content. */
#include "common/bytes.h"
#include "common/system/assert.h"
#include "secure/dtls/dtls_in.h"
#include <endian.h>
#include <errno.h>
#include <string.h>

static size_t dtls_object_size(void)
{
	return (sizeof(struct ddps_dtls) + DDPS_AEAD_ALIGN - 1) & ~(size_t)(DDPS_AEAD_ALIGN - 1);
}

size_t ddps_dtls_size(const struct ddps_dtls_config *c)
{
	size_t st = c->aead->size(c->suite);

	return st ? dtls_object_size() + 2 * st : 0;
}

static int take_dtls_keys(const struct ddps_dtls *d, struct ddps_dtls_half *h,
			  const struct ddps_dtls_keys *k, void *st)
{
	int rc = d->aead->init(st, d->suite, k->key);

	if (rc)
		return rc;
	h->st = st;
	memcpy(h->iv, k->iv, sizeof h->iv);
	return 0;
}

int ddps_dtls_init(void *mem, const struct ddps_dtls_config *c, struct ddps_dtls **out)
{
	size_t each = c->aead->size(c->suite);
	struct ddps_dtls *d = mem;
	uint8_t *st = mem;
	int rc;

	ddps_assert(!((uintptr_t)mem % DDPS_AEAD_ALIGN));
	if (!each || !c->epoch || c->tx.seq > DDPS_DTLS_SEQ_MAX)
		return -EINVAL;
	memset(mem, 0, dtls_object_size() + 2 * each);
	d->aead = c->aead;
	d->suite = c->suite;
	d->epoch = c->epoch;
	d->seq = c->tx.seq;
	d->renew_at = c->renew_at ? c->renew_at : DDPS_DTLS_RENEW_AT;
	d->stop_at = c->stop_at ? c->stop_at : DDPS_DTLS_STOP_AT;
	d->forged_at = c->forged_at ? c->forged_at : DDPS_DTLS_FORGED_AT;
	if (!ddps_dtls_explicit(d)) { /* it has no limit that is in reach but the numbers' own */
		d->renew_at = d->stop_at = DDPS_DTLS_SEQ_MAX;
	}
	st += dtls_object_size();
	rc = take_dtls_keys(d, &d->tx, &c->tx, st);
	if (!rc)
		rc = take_dtls_keys(d, &d->rx, &c->rx, st + each);
	if (rc) {
		ddps_dtls_wipe(d);
		return rc;
	}
	d->alive = DDPS_DTLS_ALIVE;
	*out = d;
	return 0;
}

void ddps_dtls_wipe(struct ddps_dtls *d)
{
	size_t each = d->aead ? d->aead->size(d->suite) : 0;

	if (d->aead && d->tx.st)
		d->aead->wipe(d->tx.st);
	if (d->aead && d->rx.st)
		d->aead->wipe(d->rx.st);
	explicit_bzero(d, dtls_object_size() + 2 * each);
}

unsigned ddps_dtls_content(const struct ddps_dtls *d)
{
	return DDPS_DTLS_HEADER + (ddps_dtls_explicit(d) ? DDPS_DTLS_EXPLICIT : 0);
}

unsigned ddps_dtls_overhead(const struct ddps_dtls *d)
{
	return ddps_dtls_content(d) + DDPS_AEAD_TAG;
}

const struct ddps_dtls_stats *ddps_dtls_stats(const struct ddps_dtls *d)
{
	return &d->stats;
}

/* AES-GCM: what the sender has put into the record (RFC 5288 3).  ChaCha20: epoch and number, hidden by the IV
 * (RFC 7905 2). */
void ddps_dtls_nonce(const struct ddps_dtls *d, const struct ddps_dtls_half *h, const uint8_t *rec,
		     uint8_t *nonce)
{
	if (ddps_dtls_explicit(d)) {
		memcpy(nonce, h->iv, 4);
		memcpy(nonce + 4, rec + DDPS_DTLS_HEADER, DDPS_DTLS_EXPLICIT);
		return;
	}
	memcpy(nonce, h->iv, DDPS_AEAD_NONCE);
	for (unsigned i = 0; i < 8; i++)
		nonce[4 + i] ^= rec[3 + i];
}

/* Epoch and number, type, version, length of the content (RFC 5246 6.2.3.3, RFC 6347 4.1.2.1). */
void ddps_dtls_ad(const uint8_t *rec, size_t content, uint8_t *ad)
{
	memcpy(ad, rec + 3, 8);
	memcpy(ad + 8, rec, 3);
	ad[11] = (uint8_t)(content >> 8);
	ad[12] = (uint8_t)content;
}
