/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening: what is a record, whether it is the peer's, and what it holds. */
#include "record_in.h"
#include <errno.h>
#include <string.h>

bool ddps_rec_fail(struct ddps_rec *r, enum ddps_rec_fault why, uint32_t detail, int alert)
{
	if (!r->fault) {
		r->fault = (uint8_t)why;
		r->detail = detail;
		r->alert_due = (int16_t)alert;
	}
	return false;
}

/* A record without data; a peer sends only so many in a row. */
static bool count_idle(struct ddps_rec *r)
{
	if (++r->idle <= DDPS_REC_IDLE_MAX)
		return true;
	return ddps_rec_fail(r, DDPS_REC_F_IDLE, 0, DDPS_ALERT_UNEXPECTED_MESSAGE);
}

/* What is there of the header is right.  @len is set when it is whole. */
static bool check_rec_header(struct ddps_rec *r, const uint8_t *in, size_t n, size_t *len)
{
	if (n && in[0] != DDPS_REC_TYPE_DATA) /* [8446-5-1], [8446-5-3] */
		return ddps_rec_fail(r, DDPS_REC_F_OUTER, in[0], DDPS_ALERT_UNEXPECTED_MESSAGE);
	if (n < DDPS_REC_HEADER)
		return true;
	*len = (size_t)in[3] << 8 | in[4];
	if (*len > r->inner_max + DDPS_AEAD_TAG) /* [8446-5.2-2], [8446-5.4-2], [8449-4-3] */
		return ddps_rec_fail(r, DDPS_REC_F_LONG, (uint32_t)*len,
				     DDPS_ALERT_RECORD_OVERFLOW);
	if (*len < DDPS_AEAD_TAG)
		return ddps_rec_fail(r, DDPS_REC_F_TAG, 0, DDPS_ALERT_BAD_RECORD_MAC);
	return true;
}

/* The level says nothing that the alert does not [8446-6-2]. */
static bool read_rec_alert(struct ddps_rec *r, const uint8_t *p, size_t n)
{
	if (n != 2) /* [8446-5.1-4], [8446-6-4] */
		return ddps_rec_fail(r, DDPS_REC_F_ALERT, (uint32_t)n, DDPS_ALERT_DECODE_ERROR);
	r->alert_got = p[1];
	if (p[1] != DDPS_ALERT_CLOSE_NOTIFY && p[1] != DDPS_ALERT_USER_CANCELED)
		return ddps_rec_fail(r, DDPS_REC_F_BY_PEER, p[1], -1); /* [8446-6.2-1] */
	if (ddps_rec_within_message(r))
		return ddps_rec_fail(r, DDPS_REC_F_CUT_IN, DDPS_REC_TYPE_ALERT,
				     DDPS_ALERT_UNEXPECTED_MESSAGE);
	r->closed = p[1] == DDPS_ALERT_CLOSE_NOTIFY;
	return r->closed || count_idle(r);
}

static bool read_rec_data(struct ddps_rec *r, size_t n)
{
	if (ddps_rec_within_message(r)) /* [8446-5.1-1] */
		return ddps_rec_fail(r, DDPS_REC_F_CUT_IN, DDPS_REC_TYPE_DATA,
				     DDPS_ALERT_UNEXPECTED_MESSAGE);
	if (!n) { /* [8446-5.1-5] */
		r->stats.empties++;
		return count_idle(r);
	}
	r->idle = 0;
	return true;
}

static bool read_rec_handshake(struct ddps_rec *r, const uint8_t *p, size_t n)
{
	struct ddps_rec_stats before = r->stats;

	if (!ddps_rec_messages(r, p, n))
		return false;
	/* whole tickets may come at any time, any number of them [8446-4.6.1-1] */
	if (!ddps_rec_within_message(r) && before.updates_got == r->stats.updates_got)
		return true;
	return count_idle(r);
}

/* @n octets of inner plaintext, whose tag was right.  @len: octets of data. */
static bool read_inner(struct ddps_rec *r, const uint8_t *p, size_t n, size_t *len)
{
	uint8_t type;

	while (n && !p[n - 1]) /* [8446-5.4-3] */
		n--;
	if (!n) /* [8446-5.4-1] */
		return ddps_rec_fail(r, DDPS_REC_F_NO_TYPE, 0, DDPS_ALERT_UNEXPECTED_MESSAGE);
	type = p[--n];
	if (type != DDPS_REC_TYPE_ALERT && type != DDPS_REC_TYPE_HANDSHAKE &&
	    type != DDPS_REC_TYPE_DATA) /* [8446-5-1], [8446-5-3] */
		return ddps_rec_fail(r, DDPS_REC_F_TYPE, type, DDPS_ALERT_UNEXPECTED_MESSAGE);
	if (!n && type != DDPS_REC_TYPE_DATA) /* [8446-5.1-3] */
		return ddps_rec_fail(r, DDPS_REC_F_EMPTY, type, DDPS_ALERT_UNEXPECTED_MESSAGE);
	if (type == DDPS_REC_TYPE_ALERT)
		return read_rec_alert(r, p, n);
	if (type == DDPS_REC_TYPE_HANDSHAKE)
		return read_rec_handshake(r, p, n);
	*len = n;
	return read_rec_data(r, n);
}

/* A whole record, @len octets behind its header. */
static bool open_whole(struct ddps_rec *r, const uint8_t *in, size_t len, uint8_t *out, size_t *got)
{
	uint8_t nonce[DDPS_AEAD_NONCE];
	int rc;

	if (r->rx.seq == UINT64_MAX) /* [8446-5.3-2] */
		return ddps_rec_fail(r, DDPS_REC_F_USED_UP, 0, DDPS_ALERT_INTERNAL_ERROR);
	ddps_rec_nonce(&r->rx, r->rx.seq, nonce);
	rc = r->aead->open(r->rx.st, nonce, in, DDPS_REC_HEADER, in + DDPS_REC_HEADER,
			   len - DDPS_AEAD_TAG, out);
	if (rc == -EBADMSG) /* [8446-5.2-3] */
		return ddps_rec_fail(r, DDPS_REC_F_TAG, 0, DDPS_ALERT_BAD_RECORD_MAC);
	if (rc)
		return ddps_rec_fail(r, DDPS_REC_F_LIBRARY, (uint32_t)-rc,
				     DDPS_ALERT_INTERNAL_ERROR);
	r->rx.seq++;
	r->stats.opened++;
	return read_inner(r, out, len - DDPS_AEAD_TAG, got);
}

struct ddps_rec_opened ddps_rec_open(struct ddps_rec *r, const uint8_t *in, size_t n, uint8_t *out)
{
	struct ddps_rec_opened o = { .what = DDPS_REC_FAILED };
	size_t len = 0;

	if (r->alive != DDPS_REC_ALIVE)
		ddps_rec_fail(r, DDPS_REC_F_FORKED, 0, -1);
	if (r->closed && !r->fault) { /* [8446-6.1-1] */
		o.what = DDPS_REC_CLOSED;
		o.used = n;
		return o;
	}
	if (r->fault || !check_rec_header(r, in, n, &len))
		return o;
	if (n < DDPS_REC_HEADER + len) {
		o.what = DDPS_REC_MORE;
		return o;
	}
	if (!open_whole(r, in, len, out, &o.len))
		return o;
	o.used = DDPS_REC_HEADER + len;
	o.what = r->closed ? DDPS_REC_CLOSED : o.len ? DDPS_REC_DATA : DDPS_REC_NONE;
	return o;
}

bool ddps_rec_end(struct ddps_rec *r)
{
	if (r->closed && !r->fault)
		return true;
	return ddps_rec_fail(r, DDPS_REC_F_CUT_SHORT, 0, -1); /* [8446-6.1-4] */
}
