/* SPDX-License-Identifier: BSD-2-Clause */
/* Sealing: data from scattered memory, KeyUpdates, the last alert. */
#include "record_in.h"
#include <errno.h>
#include <string.h>

size_t ddps_rec_room(const struct ddps_rec *r)
{
	return r->room;
}

/* Each half asks the other; a question is not repeated before its answer (RFC 9846 4.7.3). */
static bool wants_answer(const struct ddps_rec *r)
{
	return r->rx.seq >= r->ask_at && !r->asked && !r->closed && !r->fault;
}

bool ddps_rec_owes(const struct ddps_rec *r)
{
	return !r->tx_end && (r->answer || r->tx.seq >= r->update_at || wants_answer(r));
}

/* May anything be sealed?  0 or -errno. */
static int may_seal(const struct ddps_rec *r)
{
	if (r->alive != DDPS_REC_ALIVE)
		return -EOWNERDEAD;
	return r->tx_end;
}

/*
 * One record.  @iov has room for one piece more, the inner type.  The number is used up first: whatever
 * happens then, nothing is sealed with it again.
 */
static int seal_one(struct ddps_rec *r, uint8_t type, struct iovec *iov, int n, size_t len,
		    uint8_t *out)
{
	size_t sealed = len + 1 + DDPS_AEAD_TAG;
	uint8_t nonce[DDPS_AEAD_NONCE];
	int rc;

	if (r->tx.seq == UINT64_MAX) { /* [8446-5.3-2] */
		r->tx_end = -EOVERFLOW;
		return r->tx_end;
	}
	ddps_rec_nonce(&r->tx, r->tx.seq++, nonce);
	out[0] = DDPS_REC_TYPE_DATA;
	out[1] = 3;
	out[2] = 3; /* [8446-5.1-7] */
	out[3] = (uint8_t)(sealed >> 8);
	out[4] = (uint8_t)sealed;
	iov[n] = (struct iovec){ .iov_base = &type, .iov_len = 1 };
	rc = r->aead->seal(r->tx.st, nonce, out, DDPS_REC_HEADER, iov, n + 1,
			   out + DDPS_REC_HEADER);
	if (rc)
		r->tx_end = rc;
	else
		r->stats.sealed++;
	return rc;
}

/* With the old keys; all that follows is sealed with the next [8446-4.6.3-5]. */
static int seal_update(struct ddps_rec *r, uint8_t *out)
{
	bool ask = wants_answer(r);
	uint8_t msg[] = { DDPS_REC_MSG_UPDATE, 0, 0, 1, ask };
	struct iovec iov[2] = { { .iov_base = msg, .iov_len = sizeof msg } };
	int rc = seal_one(r, DDPS_REC_TYPE_HANDSHAKE, iov, 1, sizeof msg, out);

	if (!rc) {
		rc = ddps_rec_next_keys(r, &r->tx);
		r->tx_end = rc;
	}
	r->answer = false;
	r->asked |= ask;
	r->stats.updates_sent += !rc;
	return rc;
}

ssize_t ddps_rec_seal_owed(struct ddps_rec *r, uint8_t *out, size_t room)
{
	int rc = may_seal(r);

	if (rc)
		return rc;
	if (!ddps_rec_owes(r))
		return 0;
	if (room < DDPS_REC_UPDATE)
		return -ENOBUFS;
	rc = seal_update(r, out);
	return rc ? rc : (ssize_t)DDPS_REC_UPDATE;
}

ssize_t ddps_rec_seal(struct ddps_rec *r, const struct iovec *iov, int n, uint8_t *out, size_t room)
{
	struct iovec piece[DDPS_AEAD_IOV_MAX];
	size_t len = 0, owed = 0;
	int rc = may_seal(r);

	if (rc)
		return rc;
	if (n < 0 || n >= DDPS_AEAD_IOV_MAX)
		return -EMSGSIZE;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > r->room - len)
			return -EMSGSIZE;
		piece[i] = iov[i];
		len += iov[i].iov_len;
	}
	if (ddps_rec_owes(r))
		owed = DDPS_REC_UPDATE;
	if (room < owed + len + DDPS_REC_OVERHEAD)
		return -ENOBUFS;
	if (owed)
		rc = seal_update(r, out);
	if (!rc)
		rc = seal_one(r, DDPS_REC_TYPE_DATA, piece, n, len, out + owed);
	return rc ? rc : (ssize_t)(owed + len + DDPS_REC_OVERHEAD);
}

/* All but the two that only end say fatal [8446-6-1]. */
ssize_t ddps_rec_seal_alert(struct ddps_rec *r, uint8_t alert, uint8_t *out, size_t room)
{
	bool warning = alert == DDPS_ALERT_CLOSE_NOTIFY || alert == DDPS_ALERT_USER_CANCELED;
	uint8_t msg[] = { warning ? 1 : 2, alert };
	struct iovec iov[2] = { { .iov_base = msg, .iov_len = sizeof msg } };
	int rc = may_seal(r);

	if (rc)
		return rc;
	if (room < DDPS_REC_ALERT)
		return -ENOBUFS;
	rc = seal_one(r, DDPS_REC_TYPE_ALERT, iov, 1, sizeof msg, out);
	if (rc)
		return rc;
	r->tx_end = -EPIPE;
	return DDPS_REC_ALERT;
}
