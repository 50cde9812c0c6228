/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA inside TLS, the way in: records are read, opened and shown. */
#include "mpa_tcp/mpa_tls_conn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_ROOM   (256u * 1024) /* octets that are read with one call */
#define READS_MOST  3		  /* reads for one call of MPA */
#define AFTER_CLOSE 65536u	  /* octets that may follow the peer's close_notify */

/* Where the next octets of a read go. */
struct tls_sink {
	struct iovec *iov;
	int n, i;
	size_t off, got;
};

static size_t fill_sink(struct tls_sink *s, const uint8_t *p, size_t n)
{
	size_t used = 0;

	while (used < n && s->i < s->n) {
		size_t take = s->iov[s->i].iov_len - s->off;

		if (take > n - used)
			take = n - used;
		memcpy((uint8_t *)s->iov[s->i].iov_base + s->off, p + used, take);
		used += take;
		s->off += take;
		if (s->off == s->iov[s->i].iov_len) {
			s->i++;
			s->off = 0;
		}
	}
	s->got += used;
	return used;
}

static bool is_sink_full(const struct tls_sink *s)
{
	return s->i == s->n;
}

/* Either side may be done before the other one has judged what it showed. */
static bool is_refusal(const struct ddps_mpa_tls *t)
{
	const int alert = ddps_rec_alert_got(t->rec);

	return t->c->startup &&
	       ((alert >= DDPS_ALERT_BAD_CERTIFICATE && alert <= DDPS_ALERT_DECRYPT_ERROR &&
		 alert != DDPS_ALERT_ILLEGAL_PARAMETER && alert != DDPS_ALERT_DECODE_ERROR) ||
		alert == DDPS_ALERT_UNKNOWN_PSK_IDENTITY ||
		alert == DDPS_ALERT_CERTIFICATE_REQUIRED);
}

static int fail_records(struct ddps_mpa_tls *t)
{
	const int alert = ddps_rec_alert_due(t->rec);
	struct ddps_error e = ddps_rec_error(t->rec);

	if (is_refusal(t))
		e = ddps_error_make(
			DDPS_E_CERT_REFUSED, 0,
			"the peer refused this side's certificate or pre-shared key (%s): its "
			"log says why",
			ddps_alert_name((uint8_t)ddps_rec_alert_got(t->rec)));
	ddps_mpa_tls_fail(t, &e);
	if (alert >= 0)
		ddps_mpa_tls_alert(t, (uint8_t)alert);
	(void)ddps_mpa_tls_flush(t); /* what is left of it close() hands on */
	return -ECONNABORTED;
}

/* Octets of the stream are gone: nothing behind them may be shown. */
static int fail_memory(struct ddps_mpa_tls *t)
{
	struct ddps_error e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for what the peer sent");

	ddps_mpa_tls_fail(t, &e);
	ddps_mpa_tls_alert(t, DDPS_ALERT_INTERNAL_ERROR);
	(void)ddps_mpa_tls_flush(t);
	return -ECONNABORTED;
}

/* A whole record was read and not opened. */
static bool has_record(const struct ddps_mpa_tls *t)
{
	const uint8_t *p = t->in.p + t->in.at;
	size_t n = ddps_tls_waiting(&t->in);

	return n >= DDPS_REC_HEADER && n >= DDPS_REC_HEADER + ((size_t)p[3] << 8 | p[4]);
}

/* Open what lies at @p, in place, until the sink is full.  0 or a negative errno.  @at: octets done with. */
static int open_records(struct ddps_mpa_tls *t, uint8_t *p, size_t n, struct tls_sink *s,
			size_t *at)
{
	size_t used;

	*at = 0;
	while (*at < n && !is_sink_full(s) && !t->closed) {
		uint8_t *plain = p + *at + DDPS_REC_HEADER;
		struct ddps_rec_opened o = ddps_rec_open(t->rec, p + *at, n - *at, plain);

		if (o.what == DDPS_REC_MORE)
			break;
		*at += o.used;
		if (o.what == DDPS_REC_FAILED)
			return fail_records(t);
		t->closed = o.what == DDPS_REC_CLOSED;
		if (o.what != DDPS_REC_DATA)
			continue;
		used = fill_sink(s, plain, o.len);
		if (!ddps_tls_keep(&t->plain, plain + used, o.len - used))
			return fail_memory(t);
	}
	if (t->closed) {
		t->surplus += n - *at;
		*at = n;
	}
	return 0;
}

/* What was read before: it is opened where it lies. */
static int open_kept(struct ddps_mpa_tls *t, struct tls_sink *s)
{
	size_t used;
	int err = open_records(t, t->in.p + t->in.at, ddps_tls_waiting(&t->in), s, &used);

	t->in.at += used;
	ddps_tls_release(&t->in);
	return err;
}

/* The peer's FIN.  If TCP has said before that it is broken, that is why. */
static int take_tls_fin(struct ddps_mpa_tls *t)
{
	if (t->lost && !t->closed)
		return -t->lost;
	if (!ddps_rec_end(t->rec))
		return fail_records(t);
	t->closed = true;
	return 0;
}

/*
 * One read, behind the part of a record that is here: no more than that, or has_record().  0, or a negative
 * errno.  @drained: TCP has nothing more.
 */
static int read_records(struct ddps_mpa_tls *t, size_t asked, struct tls_sink *s, bool *drained)
{
	size_t before = ddps_tls_waiting(&t->in), most = asked + DDPS_REC_WIRE_MAX, used;
	struct ddps_env *env = t->c->env;
	struct iovec iov;
	ssize_t n;
	int err;

	if (!env->sealed)
		env->sealed = malloc(READ_ROOM + DDPS_REC_WIRE_MAX);
	if (!env->sealed)
		return fail_memory(t);
	iov = (struct iovec){ env->sealed + before, most < READ_ROOM ? most : READ_ROOM };
	n = ddps_mpa_io_read(t->c, &iov, 1);
	if (n == -EAGAIN && t->lost)
		return -t->lost;
	if (n < 0)
		return (int)n;
	if (!n)
		return take_tls_fin(t);
	*drained = (size_t)n < iov.iov_len;
	if (before) {
		memcpy(env->sealed, t->in.p + t->in.at, before);
		t->in.at = t->in.len;
		ddps_tls_release(&t->in);
	}
	n += (ssize_t)before;
	err = open_records(t, env->sealed, (size_t)n, s, &used);
	if (!err && !ddps_tls_keep(&t->in, env->sealed + used, (size_t)n - used))
		err = fail_memory(t);
	return err;
}

bool ddps_mpa_tls_more(const struct ddps_mpa_tls *t)
{
	return ddps_tls_waiting(&t->plain) || has_record(t) || t->closed || t->why.code;
}

ssize_t ddps_mpa_tls_recv(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	struct ddps_mpa_tls *t = c->tls;
	struct tls_sink s = { .iov = iov, .n = k };
	bool drained = false;
	size_t asked = 0;
	int err = 0;

	if (t->why.code || (!t->begun && ddps_mpa_tls_begin(t)))
		return -ECONNABORTED;
	if (!t->done)
		return -EAGAIN;
	for (int i = 0; i < k; i++)
		asked += iov[i].iov_len;
	t->plain.at += fill_sink(&s, t->plain.p + t->plain.at, ddps_tls_waiting(&t->plain));
	ddps_tls_release(&t->plain);
	/* Records without data fill nothing: others have their turn after so many reads. */
	for (int reads = 0; !err && !is_sink_full(&s) && !t->closed && reads < READS_MOST;) {
		if (has_record(t)) {
			err = open_kept(t, &s);
			continue;
		}
		if (drained)
			break;
		err = read_records(t, asked - s.got, &s, &drained);
		reads++;
	}
	if (!t->why.code)
		ddps_mpa_tls_answer(t);
	if (t->surplus > AFTER_CLOSE)
		t->drop = true;
	if (s.got) {
		c->io.moved = true;
		if (c->env->capture)
			ddps_mpa_io_show(c, false, iov, k, s.got);
	} else if (err && err != -EAGAIN) {
		return err;
	} else if (t->closed) {
		return 0;
	}
	/* TCP will not say again that it is here. */
	if (ddps_mpa_tls_more(t))
		ddps_task_post(c->env->loop, &t->task);
	return s.got ? (ssize_t)s.got : -EAGAIN;
}

/* In MPA's set-up nothing else is lost by reading on. */
int ddps_mpa_tls_look(struct ddps_mpa_tls *t, int err)
{
	uint8_t octets[64];
	struct iovec iov = { octets, sizeof octets };
	struct tls_sink s = { .iov = &iov, .n = 1 };
	bool drained;

	if (t->c->startup && has_record(t))
		(void)open_kept(t, &s);
	else if (t->c->startup)
		(void)read_records(t, sizeof octets, &s, &drained);
	return t->why.code ? -EPIPE : err;
}
