/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA inside TLS, the way out: octets are sealed, then TCP takes them. */
#include "mpa_tcp/mpa_tls_conn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OWED_MOST                                                                                  \
	(16u * 1024) /* octets that wait for TCP, while answers to KeyUpdates are put behind them */

/* ---- octets ---- */

/* Room for @n octets more, or NULL. */
static uint8_t *reserve_octets(struct ddps_tls_octets *o, size_t n)
{
	size_t wait = ddps_tls_waiting(o), size;
	uint8_t *more;

	if (o->at && o->size - o->len < n) {
		memmove(o->p, o->p + o->at, wait);
		o->at = 0;
		o->len = wait;
	}
	if (o->size - o->len < n) {
		size = o->len + n > 2 * o->size ? o->len + n : 2 * o->size;
		more = realloc(o->p, size);
		if (!more)
			return NULL;
		o->p = more;
		o->size = size;
	}
	return o->p + o->len;
}

bool ddps_tls_keep(struct ddps_tls_octets *o, const uint8_t *p, size_t n)
{
	uint8_t *to = n ? reserve_octets(o, n) : NULL;

	if (!n)
		return true;
	if (!to)
		return false;
	memcpy(to, p, n);
	o->len += n;
	return true;
}

void ddps_tls_release(struct ddps_tls_octets *o)
{
	if (ddps_tls_waiting(o))
		return;
	free(o->p);
	*o = (struct ddps_tls_octets){ .p = NULL };
}

/* ---- to TCP ---- */

/* What waits will never leave. */
static int lose_out(struct ddps_mpa_tls *t, int err)
{
	t->lost = err;
	t->unsent = ddps_tls_waiting(&t->out);
	t->out.at = t->out.len;
	ddps_tls_release(&t->out);
	return -err;
}

int ddps_mpa_tls_flush(struct ddps_mpa_tls *t)
{
	while (ddps_tls_waiting(&t->out)) {
		struct iovec iov = { t->out.p + t->out.at, ddps_tls_waiting(&t->out) };
		ssize_t n = t->lost ? -t->lost : ddps_mpa_io_write(t->c, &iov, 1);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return lose_out(t, (int)-n);
		t->out.at += (size_t)n;
	}
	ddps_tls_release(&t->out);
	if (t->fin_due && !t->fin) {
		t->fin = true;
		ddps_mpa_sockets.fin(t->c);
	}
	return -t->lost;
}

bool ddps_mpa_tls_arrived(const struct ddps_mpa_tls *t)
{
	/* TCP counts the FIN as one */
	return t->unsent + ddps_tls_waiting(&t->out) + ddps_mpa_sockets.unacked(t->c) <=
	       t->farewell + t->fin;
}

/* ---- sealing ---- */

void ddps_mpa_tls_alert(struct ddps_mpa_tls *t, uint8_t alert)
{
	uint8_t *to = t->rec && !t->lost ? reserve_octets(&t->out, DDPS_REC_ALERT) : NULL;
	ssize_t n = to ? ddps_rec_seal_alert(t->rec, alert, to, DDPS_REC_ALERT) : 0;

	if (n <= 0)
		return;
	t->out.len += (size_t)n;
	t->farewell = (size_t)n;
}

void ddps_mpa_tls_answer(struct ddps_mpa_tls *t)
{
	uint8_t *to;
	ssize_t n;

	if (t->lost || !ddps_rec_owes(t->rec))
		return;
	/* A peer that asks and does not read: the answer waits, at most until there is data to send. */
	if (ddps_tls_waiting(&t->out) >= OWED_MOST && ddps_mpa_tls_flush(t))
		return;
	if (ddps_tls_waiting(&t->out) >= OWED_MOST)
		return;
	to = reserve_octets(&t->out, DDPS_REC_UPDATE);
	n = to ? ddps_rec_seal_owed(t->rec, to, DDPS_REC_UPDATE) : 0;
	if (n > 0)
		t->out.len += (size_t)n;
	(void)ddps_mpa_tls_flush(t); /* it is kept: recv and send say it */
	ddps_mpa_tls_rewatch(t);
}

/* The next pieces of @iov from @off on, of @room octets at most: what one record takes. */
static int cut_record(const struct iovec *iov, int n, size_t off, size_t room, struct iovec *out,
		      size_t *len)
{
	int k = 0;

	*len = 0;
	for (int i = 0; i < n && k < DDPS_AEAD_IOV_MAX - 1 && *len < room; i++) {
		size_t take = iov[i].iov_len;

		if (off >= take) {
			off -= take;
			continue;
		}
		take -= off;
		if (take > room - *len)
			take = room - *len;
		out[k++] = (struct iovec){ (uint8_t *)iov[i].iov_base + off, take };
		*len += take;
		off = 0;
	}
	return k;
}

static ssize_t seal_some(struct ddps_mpa_tls *t, const struct iovec *iov, int n)
{
	struct iovec piece[DDPS_AEAD_IOV_MAX];
	size_t taken = 0, len;
	int k;

	while (ddps_tls_waiting(&t->out) < DDPS_MPA_TLS_SEALED) {
		size_t room;
		uint8_t *to;
		ssize_t sealed;

		k = cut_record(iov, n, taken, ddps_rec_room(t->rec), piece, &len);
		if (!k)
			break;
		room = len + DDPS_REC_OVERHEAD + DDPS_REC_UPDATE;
		to = reserve_octets(&t->out, room);
		sealed = to ? ddps_rec_seal(t->rec, piece, k, to, room) : -ENOMEM;
		if (sealed < 0)
			return taken ? (ssize_t)taken : sealed;
		t->out.len += (size_t)sealed;
		taken += len;
	}
	return (ssize_t)taken;
}

static void fail_sealing(struct ddps_mpa_tls *t, int err)
{
	struct ddps_error e = ddps_error_make(err == ENOMEM ? DDPS_E_NOMEM : DDPS_E_TLS, err,
					      "nothing can be sealed any more: %s", strerror(err));

	ddps_mpa_tls_fail(t, &e);
}

/* What TLS has to say of its end is read, not sent: with -EPIPE MPA reads on, and no reset takes an alert along. */
ssize_t ddps_mpa_tls_send(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	struct ddps_mpa_tls *t = c->tls;
	ssize_t n;
	int err;

	if (t->why.code || (!t->begun && ddps_mpa_tls_begin(t)))
		return -EPIPE;
	if (!t->done)
		return -EAGAIN;
	if (t->lost || ddps_tls_waiting(&t->out) >= DDPS_MPA_TLS_SEALED) {
		err = ddps_mpa_tls_flush(t);
		if (err)
			return ddps_mpa_tls_look(t, err);
		if (ddps_tls_waiting(&t->out) >= DDPS_MPA_TLS_SEALED)
			return -EAGAIN;
	}
	n = seal_some(t, iov, k);
	if (n < 0) {
		fail_sealing(t, (int)-n);
		return -EPIPE;
	}
	if (c->env->capture)
		ddps_mpa_io_show(c, true, iov, k, (size_t)n);
	err = ddps_mpa_tls_flush(t);
	ddps_mpa_tls_rewatch(t);
	return err ? ddps_mpa_tls_look(t, err) : n;
}

/* Without memory for the close_notify the peer sees a cut: better than an end that is none. */
void ddps_mpa_tls_fin(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_tls *t = c->tls;

	ddps_mpa_tls_alert(t, DDPS_ALERT_CLOSE_NOTIFY);
	t->fin_due = true;
	(void)ddps_mpa_tls_flush(t); /* it is kept: error() says it */
	ddps_mpa_tls_rewatch(t);
}
