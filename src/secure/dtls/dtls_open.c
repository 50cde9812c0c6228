/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening: each number once, within a window, and only after its tag was right. */
#include "secure/dtls/dtls_in.h"
#include <errno.h>

/* ---- the window (RFC 6347 4.1.2.6), a ring of bits whose oldest word is cleared as the newest begins ---- */

static bool is_seen(const struct ddps_dtls *d, uint64_t seq)
{
	if (seq >= d->high)
		return false;
	if (d->high - seq > DDPS_DTLS_WINDOW)
		return true; /* too old: it may have been */
	return d->seen[seq / 64 % DDPS_DTLS_WORDS] >> seq % 64 & 1;
}

static void note_seen(struct ddps_dtls *d, uint64_t seq)
{
	uint64_t from = d->high ? (d->high - 1) / 64 : 0, to = seq / 64;

	if (seq >= d->high) {
		if (to - from > DDPS_DTLS_WORDS)
			from = to - DDPS_DTLS_WORDS;
		for (uint64_t w = from + 1; w <= to; w++)
			d->seen[w % DDPS_DTLS_WORDS] = 0;
		d->high = seq + 1;
	}
	d->seen[seq / 64 % DDPS_DTLS_WORDS] |= UINT64_C(1) << seq % 64;
}

bool ddps_dtls_is_newest(const struct ddps_dtls *d, const struct ddps_dtls_head *h)
{
	return h->seq + 1 == d->high;
}

/* ---- records ---- */

static ssize_t count_forged(struct ddps_dtls *d)
{
	return ++d->stats.forged >= d->forged_at ? -EOVERFLOW : -EBADMSG;
}

void ddps_dtls_pardon(struct ddps_dtls *d)
{
	d->stats.forged--;
}

ssize_t ddps_dtls_open(struct ddps_dtls *d, const struct ddps_dtls_head *h, const uint8_t *in,
		       uint8_t *out)
{
	const size_t at = ddps_dtls_content(d), over = at + DDPS_AEAD_TAG;
	uint8_t nonce[DDPS_AEAD_NONCE], ad[DDPS_DTLS_AD];
	size_t len;
	int rc;

	if (d->alive != DDPS_DTLS_ALIVE)
		return -EOWNERDEAD;
	if (d->stats.forged >= d->forged_at)
		return -EOVERFLOW;
	if (h->epoch != d->epoch || in[2] != 253 || h->len < over ||
	    h->len - over > DDPS_DTLS_CONTENT) {
		d->stats.strange++;
		return -EPROTO;
	}
	if (is_seen(d, h->seq)) {
		d->stats.replayed++;
		return -EALREADY;
	}
	len = h->len - over;
	ddps_dtls_nonce(d, &d->rx, in, nonce);
	ddps_dtls_ad(in, len, ad);
	rc = d->aead->open(d->rx.st, nonce, ad, sizeof ad, in + at, len, out);
	if (rc == -EBADMSG)
		return count_forged(d);
	if (rc)
		return rc;
	note_seen(d, h->seq);
	d->stats.opened++;
	return (ssize_t)len;
}
