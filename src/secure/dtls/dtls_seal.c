/* SPDX-License-Identifier: BSD-2-Clause */
/* Sealing: from scattered memory, each record under a number of its own. */
#include "secure/dtls/dtls_in.h"
#include <errno.h>
#include <string.h>

static void write_dtls_head(const struct ddps_dtls *d, uint8_t type, uint64_t seq, size_t len,
			    uint8_t *out)
{
	out[0] = type;
	out[1] = 254;
	out[2] = 253;
	out[3] = (uint8_t)(d->epoch >> 8);
	out[4] = (uint8_t)d->epoch;
	for (unsigned i = 0; i < 6; i++)
		out[5 + i] = (uint8_t)(seq >> (40 - 8 * i));
	out[11] = (uint8_t)(len >> 8);
	out[12] = (uint8_t)len;
	if (ddps_dtls_explicit(d)) /* never twice under one key, since no number is */
		memcpy(out + DDPS_DTLS_HEADER, out + 3, DDPS_DTLS_EXPLICIT);
}

ssize_t ddps_dtls_seal(struct ddps_dtls *d, enum ddps_dtls_type type, const struct iovec *iov,
		       int n, uint8_t *out, size_t room)
{
	const unsigned at = ddps_dtls_content(d);
	uint8_t nonce[DDPS_AEAD_NONCE], ad[DDPS_DTLS_AD];
	size_t len = 0;
	uint64_t seq;
	int rc;

	if (d->alive != DDPS_DTLS_ALIVE)
		return -EOWNERDEAD;
	if (d->tx_end)
		return d->tx_end;
	if (n < 0 || n > DDPS_AEAD_IOV_MAX)
		return -EMSGSIZE;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > DDPS_DTLS_CONTENT - len)
			return -EMSGSIZE;
		len += iov[i].iov_len;
	}
	if (room < at + len + DDPS_AEAD_TAG)
		return -ENOBUFS;
	if (d->stats.sealed >= d->stop_at || d->seq > DDPS_DTLS_SEQ_MAX)
		return -EOVERFLOW;
	seq = d->seq++;
	d->stats.sealed++;
	write_dtls_head(d, (uint8_t)type, seq, at - DDPS_DTLS_HEADER + len + DDPS_AEAD_TAG, out);
	ddps_dtls_nonce(d, &d->tx, out, nonce);
	ddps_dtls_ad(out, len, ad);
	rc = d->aead->seal(d->tx.st, nonce, ad, sizeof ad, iov, n, out + at);
	if (rc)
		d->tx_end = rc;
	return rc ? rc : (ssize_t)(at + len + DDPS_AEAD_TAG);
}

ssize_t ddps_dtls_seal_alert(struct ddps_dtls *d, enum ddps_alert alert, uint8_t *out, size_t room)
{
	uint8_t msg[] = { alert == DDPS_ALERT_CLOSE_NOTIFY ? 1 : 2, (uint8_t)alert };

	return ddps_dtls_seal(d, DDPS_DTLS_ALERT, &(struct iovec){ msg, sizeof msg }, 1, out, room);
}

bool ddps_dtls_due(const struct ddps_dtls *d)
{
	return d->stats.sealed >= d->renew_at || d->stats.opened >= d->renew_at;
}
