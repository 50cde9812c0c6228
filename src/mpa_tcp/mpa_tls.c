/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA's octets in records of TLS 1.3. */
#include "mpa_tcp/mpa_tls.h"
#include "secure/record/record.h"
#include "secure/shaker.h"
#include "secure/vault.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEALED_MOST (256u * 1024) /* octets that wait for TCP, of one connection */
#define READ_MOST   (256u * 1024) /* that are read with one call */
#define OWED_MOST   (16u * 1024)  /* of these, while answers to KeyUpdates are put behind them */
#define READS_MOST  3		  /* reads for one call of MPA */
#define AFTER_CLOSE 65536u	  /* octets that may follow the peer's close_notify */

struct tls_octets {
	uint8_t *p;
	size_t at, len, size; /* from @at to @len they are to be used */
};

struct ddps_mpa_tls {
	struct ddps_mpa_conn *c;
	struct ddps_shake *shake; /* until it is done */
	struct ddps_rec *rec;	  /* from then on */
	struct ddps_vault vault;  /* which it lies in */
	struct ddps_peer_id *id;
	char *host, *peer;
	struct tls_octets in;	 /* read, not opened */
	struct tls_octets plain; /* opened, not shown */
	struct tls_octets out;	 /* sealed, not written */
	size_t surplus;		 /* octets behind the peer's close_notify */
	unsigned events;	 /* that MPA waits for */
	bool eager;
	bool begun, done;      /* the handshake */
	bool heard;	       /* the peer has sent something */
	bool closed;	       /* close_notify came */
	bool fin_due, fin;     /* FIN follows what waits; it was sent */
	bool drop;	       /* close() resets */
	struct ddps_task task; /* what is here already is to be shown */
	struct ddps_error why;
};

static struct ddps_mpa_tls *tls_of(const struct ddps_mpa_conn *c)
{
	return c->tls;
}

/* ---- octets ---- */

static size_t count_waiting(const struct tls_octets *o)
{
	return o->len - o->at;
}

static uint8_t *reserve_octets(struct tls_octets *o, size_t n)
{
	size_t wait = count_waiting(o);
	uint8_t *more;

	if (o->at && o->size - o->len < n) {
		memmove(o->p, o->p + o->at, wait);
		o->at = 0;
		o->len = wait;
	}
	if (o->size - o->len < n) {
		more = realloc(o->p, o->len + n);
		if (!more)
			return NULL;
		o->p = more;
		o->size = o->len + n;
	}
	return o->p + o->len;
}

static bool keep_tls_octets(struct tls_octets *o, const uint8_t *p, size_t n)
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

/* An idle session keeps nothing. */
static void release_octets(struct tls_octets *o)
{
	if (count_waiting(o))
		return;
	free(o->p);
	*o = (struct tls_octets){ .p = NULL };
}

/* ---- the way out ---- */

static void set_tls_events(struct ddps_mpa_tls *t)
{
	unsigned events = t->events;

	if (!t->done && t->begun)
		events = t->shake && ddps_shake_busy(t->shake) ? 0 : DDPS_MPA_IN;
	if (count_waiting(&t->out))
		events |= DDPS_MPA_OUT;
	if (!events &&
	    t->shake) { /* a reset would be reported again and again until the step is done */
		ddps_mpa_sockets.unwatch(t->c);
		return;
	}
	if (ddps_mpa_sockets.watch(t->c, events, t->done && t->eager) < 0)
		ddps_log(&t->c->env->log, DDPS_LOG_ERROR, "mpa", "epoll: %s", strerror(errno));
}

/* As much as TCP takes of what is sealed, then the FIN.  0 or a negative errno. */
static int flush_sealed(struct ddps_mpa_tls *t)
{
	while (count_waiting(&t->out)) {
		struct iovec iov = { t->out.p + t->out.at, count_waiting(&t->out) };
		ssize_t n = ddps_mpa_io_write(t->c, &iov, 1);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return n == -EAGAIN ? 0 : (int)n;
		t->out.at += (size_t)n;
	}
	release_octets(&t->out);
	if (t->fin_due && !t->fin) {
		t->fin = true;
		ddps_mpa_sockets.fin(t->c);
	}
	return 0;
}

static void fail_tls(struct ddps_mpa_tls *t, const struct ddps_error *why)
{
	if (!t->why.code)
		t->why = *why;
}

static void seal_alert(struct ddps_mpa_tls *t, uint8_t alert)
{
	uint8_t *to = t->rec ? reserve_octets(&t->out, DDPS_REC_ALERT) : NULL;
	ssize_t n = to ? ddps_rec_seal_alert(t->rec, alert, to, DDPS_REC_ALERT) : 0;

	if (n > 0)
		t->out.len += (size_t)n;
}

/* The answer to a KeyUpdate that asks for one. */
static void seal_owed(struct ddps_mpa_tls *t)
{
	uint8_t *to;
	ssize_t n;

	/* A peer that asks and does not read: the answer waits, at most until there is data to send. */
	if (!ddps_rec_owes(t->rec) || count_waiting(&t->out) >= OWED_MOST)
		return;
	to = reserve_octets(&t->out, DDPS_REC_UPDATE);
	n = to ? ddps_rec_seal_owed(t->rec, to, DDPS_REC_UPDATE) : 0;
	if (n > 0)
		t->out.len += (size_t)n;
	(void)flush_sealed(t);
	set_tls_events(t);
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

	while (count_waiting(&t->out) < SEALED_MOST) {
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

static int begin_shake(struct ddps_mpa_tls *t);

/* ---- the way in ---- */

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

/* In TLS 1.3 a dialler is done before the listener has judged what it showed. */
static bool is_refusal(const struct ddps_mpa_tls *t)
{
	const int alert = ddps_rec_alert_got(t->rec);

	return t->c->startup && t->c->initiator &&
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
	fail_tls(t, &e);
	if (alert >= 0)
		seal_alert(t, (uint8_t)alert);
	(void)flush_sealed(t);
	return -ECONNABORTED;
}

/* A whole record was read and not opened. */
static bool has_record(const struct ddps_mpa_tls *t)
{
	const uint8_t *p = t->in.p + t->in.at;
	size_t n = count_waiting(&t->in);

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
		if (!keep_tls_octets(&t->plain, plain + used, o.len - used))
			return -ENOMEM;
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
	int err = open_records(t, t->in.p + t->in.at, count_waiting(&t->in), s, &used);

	t->in.at += used;
	release_octets(&t->in);
	return err;
}

/*
 * One read, behind the part of a record that is here: no more than that, or has_record().  0, or a negative
 * errno.  @drained: TCP has nothing more.
 */
static int read_records(struct ddps_mpa_tls *t, size_t asked, struct tls_sink *s, bool *drained)
{
	size_t before = count_waiting(&t->in), most = asked + DDPS_REC_WIRE_MAX, used;
	struct ddps_env *env = t->c->env;
	struct iovec iov;
	ssize_t n;
	int err;

	if (!env->sealed)
		env->sealed = malloc(READ_MOST + DDPS_REC_WIRE_MAX);
	if (!env->sealed)
		return -ENOMEM;
	iov = (struct iovec){ env->sealed + before, most < READ_MOST ? most : READ_MOST };
	n = ddps_mpa_io_read(t->c, &iov, 1);
	if (n < 0)
		return (int)n;
	if (!n) {
		if (!ddps_rec_end(t->rec))
			return fail_records(t);
		t->closed = true;
		return 0;
	}
	*drained = (size_t)n < (most < READ_MOST ? most : READ_MOST);
	if (before) {
		memcpy(env->sealed, t->in.p + t->in.at, before);
		t->in.at = t->in.len;
		release_octets(&t->in);
	}
	n += (ssize_t)before;
	err = open_records(t, env->sealed, (size_t)n, s, &used);
	if (!err && !keep_tls_octets(&t->in, env->sealed + used, (size_t)n - used))
		err = -ENOMEM;
	return err;
}

/* More is here than was asked for: epoll does not see it. */
static bool has_tls_more(const struct ddps_mpa_tls *t)
{
	return count_waiting(&t->plain) || has_record(t);
}

static ssize_t tls_recv(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	struct ddps_mpa_tls *t = tls_of(c);
	struct tls_sink s = { .iov = iov, .n = k };
	bool drained = false;
	size_t asked = 0;
	int err = 0;

	if (!t->begun && begin_shake(t))
		return -ECONNABORTED;
	if (t->why.code)
		return -ECONNABORTED;
	if (!t->done)
		return -EAGAIN;
	for (int i = 0; i < k; i++)
		asked += iov[i].iov_len;
	t->plain.at += fill_sink(&s, t->plain.p + t->plain.at, count_waiting(&t->plain));
	release_octets(&t->plain);
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
	seal_owed(t);
	if (t->surplus > AFTER_CLOSE)
		t->drop = true;
	if (has_tls_more(t))
		ddps_task_post(c->env->loop, &t->task);
	if (s.got) {
		c->io.moved = true;
		if (c->env->capture)
			ddps_mpa_io_show(c, false, iov, k, s.got);
		return (ssize_t)s.got;
	}
	return err ? err : t->closed ? 0 : -EAGAIN;
}

static void show_more(void *user)
{
	struct ddps_mpa_tls *t = user;

	if (t->events & DDPS_MPA_IN)
		ddps_mpa_conn_ready(t->c, DDPS_MPA_IN);
}

/* It is gone, perhaps with an alert that says why: in MPA's set-up nothing else is lost by reading on. */
static int look_for_alert(struct ddps_mpa_tls *t, int err)
{
	uint8_t octets[64];
	struct iovec iov = { octets, sizeof octets };
	struct tls_sink s = { .iov = &iov, .n = 1 };
	bool drained;

	if (err != -EAGAIN && t->c->startup && !has_record(t))
		(void)read_records(t, sizeof octets, &s, &drained);
	return t->why.code ? -ECONNABORTED : err;
}

static ssize_t tls_send(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	struct ddps_mpa_tls *t = tls_of(c);
	ssize_t n;
	int err;

	if (!t->begun && begin_shake(t))
		return -ECONNABORTED;
	if (t->why.code)
		return -ECONNABORTED;
	if (!t->done)
		return -EAGAIN;
	if (count_waiting(&t->out) >= SEALED_MOST) {
		err = flush_sealed(t);
		if (err)
			return look_for_alert(t, err);
		if (count_waiting(&t->out) >= SEALED_MOST)
			return -EAGAIN;
	}
	n = seal_some(t, iov, k);
	if (n < 0)
		return n == -ENOMEM ? -EAGAIN : n;
	if (c->env->capture)
		ddps_mpa_io_show(c, true, iov, k, (size_t)n);
	err = flush_sealed(t);
	set_tls_events(t);
	return err ? look_for_alert(t, err) : n;
}

static void tls_fin(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_tls *t = tls_of(c);

	seal_alert(t, DDPS_ALERT_CLOSE_NOTIFY);
	t->fin_due = true;
	(void)flush_sealed(t);
	set_tls_events(t);
}

/* ---- the handshake ---- */

/* It is over: MPA learns it as it would of TCP. */
static void end_shake(struct ddps_mpa_tls *t)
{
	ddps_shake_free(t->shake);
	t->shake = NULL;
	if (t->why.code)
		ddps_mpa_conn_fail(t->c, t->why.code, 0, "%s", t->why.text);
}

/* Ciphers want their keys so; a vault gives any address. */
static void *align_keys(uint8_t *p)
{
	return p + (-(uintptr_t)p & (DDPS_AEAD_ALIGN - 1));
}

static int take_keys_over(struct ddps_mpa_tls *t)
{
	struct ddps_rec_config conf;
	const uint8_t *rest;
	size_t nrest;
	int err;

	t->id = calloc(1, sizeof *t->id);
	if (!t->id)
		return DDPS_E_NOMEM;
	ddps_shake_take(t->shake, &conf, t->id, &rest, &nrest);
	err = ddps_vault_new(&t->vault, ddps_rec_size(&conf) + DDPS_AEAD_ALIGN);
	if (!err && ddps_rec_init(align_keys(t->vault.p), &conf, &t->rec))
		err = DDPS_E_TLS;
	explicit_bzero(&conf, sizeof conf);
	if (!err && !keep_tls_octets(&t->in, rest, nrest))
		err = DDPS_E_NOMEM;
	return err;
}

static void finish_shake(struct ddps_mpa_tls *t)
{
	int err = take_keys_over(t);
	struct ddps_error e;
	char peer[72];

	if (err) {
		e = ddps_error_make(err, 0, "the keys of the handshake are not usable");
		fail_tls(t, &e);
		end_shake(t);
		return;
	}
	t->done = true;
	ddps_mpa_addr_text(&t->c->peer, peer, sizeof peer);
	ddps_log(&t->c->env->log, DDPS_LOG_INFO, "secure", "%s: %s, %s, %s, peer %s", peer,
		 t->id->version, t->id->suite, t->id->group, t->id->name);
	end_shake(t);
	set_tls_events(t);
	ddps_mpa_conn_ready(t->c, DDPS_MPA_OUT | DDPS_MPA_IN);
}

/* What is to be sent of it goes to what is sealed: there it outlives it. */
static void take_shake_output(struct ddps_mpa_tls *t)
{
	size_t n;
	const uint8_t *p = ddps_shake_output(t->shake, &n);

	if (!keep_tls_octets(&t->out, p, n)) {
		struct ddps_error e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake");

		fail_tls(t, &e);
	}
	ddps_shake_sent(t->shake, n);
	(void)flush_sealed(t);
}

static void take_step(void *user)
{
	struct ddps_mpa_tls *t = user;
	const struct ddps_verdict *v = ddps_shake_why(t->shake);
	struct ddps_error e;

	take_shake_output(t);
	switch (ddps_shake_state(t->shake)) {
	case DDPS_HS_MORE:
		break;
	case DDPS_HS_DONE:
		finish_shake(t);
		return;
	case DDPS_HS_FAILED:
		e = ddps_error_make(v->code, 0, "%s", v->text);
		fail_tls(t, &e);
		break;
	}
	if (t->why.code)
		end_shake(t);
	else
		set_tls_events(t);
}

/* In a call from above nothing fails: the loop reports it. */
static int begin_shake(struct ddps_mpa_tls *t)
{
	const struct ddps_creds_want want = { .server = !t->c->initiator,
					      .host = t->host,
					      .peer = t->peer };
	struct ddps_error e;

	t->begun = true;
	if (!ddps_shake_new(t->c->env, &want, &t->c->peer.sa, take_step, t, &t->shake, &e)) {
		if (t->c->initiator && ddps_shake_feed(t->shake, NULL, 0))
			e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake");
		else
			e.code = 0;
	}
	if (e.code)
		fail_tls(t, &e);
	else
		set_tls_events(t);
	return e.code;
}

/* What has come for the handshake. */
static void read_for_shake(struct ddps_mpa_tls *t)
{
	uint8_t octets[4096];
	struct iovec iov = { octets, sizeof octets };
	struct ddps_error e;
	ssize_t n = ddps_mpa_io_read(t->c, &iov, 1);

	if (n == -EAGAIN)
		return;
	t->heard |= n > 0;
	if (n > 0 && !ddps_shake_feed(t->shake, octets, (size_t)n)) {
		set_tls_events(t);
		return;
	}
	if (n > 0)
		e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake");
	else
		e = ddps_error_make(
			DDPS_E_RESET, (int)-n,
			"the peer closed the connection in the TLS handshake%s%s: does it "
			"speak tls://?",
			n ? ", " : "", n ? strerror((int)-n) : "");
	fail_tls(t, &e);
	end_shake(t);
}

static void tls_io(void *user, uint32_t events)
{
	struct ddps_mpa_conn *c = user;
	struct ddps_mpa_tls *t = tls_of(c);
	unsigned pass = events;

	c->io.moved = false;
	if (t->begun && count_waiting(&t->out) && (events & DDPS_MPA_OUT)) {
		(void)flush_sealed(t);
		set_tls_events(t);
		if (count_waiting(&t->out) > SEALED_MOST / 2 || !(t->events & DDPS_MPA_OUT))
			pass &= ~(unsigned)DDPS_MPA_OUT;
	}
	if (t->begun && !t->done) {
		if (t->shake && !ddps_shake_busy(t->shake))
			read_for_shake(t);
		return;
	}
	if (pass)
		ddps_mpa_conn_ready(c, pass);
}

/* ---- the rest is TCP's ---- */

static void tls_reset(struct ddps_mpa_conn *c)
{
	tls_of(c)->drop = true;
	ddps_mpa_sockets.reset(c);
}

static void free_tls(struct ddps_mpa_tls *t)
{
	ddps_task_cancel(t->c->env->loop, &t->task);
	ddps_shake_free(t->shake);
	if (t->rec)
		ddps_rec_wipe(t->rec);
	ddps_vault_free(&t->vault);
	free(t->in.p);
	free(t->plain.p);
	free(t->out.p);
	free(t->host);
	free(t->peer);
	free(t->id);
	free(t);
}

/* There is nothing that the peer has to hear yet. */
static bool is_said(const struct ddps_mpa_tls *t)
{
	return t->drop || (!t->why.code && !count_waiting(&t->out)) || !t->begun;
}

/* In MPA's set-up, where nothing is said of what is wrong: that it is this side which closes [8446-6.1-2].  In a
 * session an end that was not agreed on stays a cut. */
static bool owes_close_notify(const struct ddps_mpa_tls *t)
{
	return t->done && t->c->startup && !t->drop && !t->why.code && !t->fin_due;
}

static void tls_close(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_tls *t = tls_of(c);

	if (owes_close_notify(t))
		seal_alert(t, DDPS_ALERT_CLOSE_NOTIFY);
	if (!is_said(t) &&
	    ddps_mpa_late_take(c, t->out.p, t->out.at, t->out.len,
			       c->p.close_ms && t->fin_due ? c->p.close_ms : DDPS_MPA_LINGER_MS))
		t->out = (struct tls_octets){ .p = NULL };
	else
		ddps_mpa_sockets.close(c);
	ddps_task_cancel(c->env->loop, &t->task);
	ddps_shake_free(t->shake);
	t->shake = NULL;
}

static int tls_watch(struct ddps_mpa_conn *c, unsigned events, bool eager)
{
	struct ddps_mpa_tls *t = tls_of(c);

	t->events = events;
	t->eager = eager;
	if (!t->begun && ddps_mpa_connecting(c))
		return ddps_mpa_sockets.watch(c, events, false);
	if (!t->begun && !c->initiator && (events & DDPS_MPA_IN))
		(void)begin_shake(t);
	set_tls_events(t);
	if (t->done && (events & DDPS_MPA_IN) && has_tls_more(t))
		ddps_task_post(c->env->loop, &t->task);
	return 0;
}

static void tls_unwatch(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_tls *t = tls_of(c);

	t->events = 0;
	if (count_waiting(&t->out))
		set_tls_events(t);
	else
		ddps_mpa_sockets.unwatch(c);
}

static uint32_t tls_emss(struct ddps_mpa_conn *c)
{
	const struct ddps_mpa_tls *t = tls_of(c);

	return t->rec ? (uint32_t)ddps_rec_room(t->rec) : DDPS_REC_CONTENT;
}

static size_t tls_unacked(const struct ddps_mpa_conn *c)
{
	return count_waiting(&tls_of(c)->out) + ddps_mpa_sockets.unacked(c);
}

static int tls_error(struct ddps_mpa_conn *c)
{
	return ddps_mpa_sockets.error(c);
}

static void tls_local(struct ddps_mpa_conn *c)
{
	ddps_mpa_sockets.local(c);
}

static int tls_stats(const struct ddps_mpa_conn *c, struct ddps_llp_tcp *st)
{
	return ddps_mpa_sockets.stats(c, st);
}

static void tls_busy(struct ddps_mpa_conn *c)
{
	ddps_mpa_sockets.busy(c);
}

static void tls_patience(struct ddps_mpa_conn *c)
{
	ddps_mpa_sockets.patience(c);
}

static void tls_release(struct ddps_mpa_conn *c)
{
	free_tls(tls_of(c));
}

static const struct ddps_mpa_tcp tls_tcp = {
	.recv = tls_recv,
	.send = tls_send,
	.fin = tls_fin,
	.reset = tls_reset,
	.close = tls_close,
	.release = tls_release,
	.error = tls_error,
	.watch = tls_watch,
	.unwatch = tls_unwatch,
	.local = tls_local,
	.emss = tls_emss,
	.stats = tls_stats,
	.unacked = tls_unacked,
	.busy = tls_busy,
	.patience = tls_patience,
};

int ddps_mpa_tls_wrap(struct ddps_mpa_conn *c, const char *host, const char *peer)
{
	struct ddps_mpa_tls *t = calloc(1, sizeof *t);

	if (!t)
		return DDPS_E_NOMEM;
	t->c = c;
	t->task = (struct ddps_task){ .fn = show_more, .user = t };
	t->host = host ? strdup(host) : NULL;
	t->peer = peer ? strdup(peer) : NULL;
	if ((host && !t->host) || (peer && !t->peer)) {
		free_tls(t);
		return DDPS_E_NOMEM;
	}
	c->tls = t;
	c->tcp = &tls_tcp;
	c->io.fn = tls_io;
	return 0;
}

const struct ddps_peer_id *ddps_mpa_tls_peer(const struct ddps_mpa_conn *c)
{
	return c->tls ? tls_of(c)->id : NULL;
}

bool ddps_mpa_tls_heard(const struct ddps_mpa_conn *c)
{
	return tls_of(c)->heard;
}

bool ddps_mpa_tls_shaking(const struct ddps_mpa_conn *c)
{
	return c->tls && !tls_of(c)->done;
}

bool ddps_mpa_tls_why(const struct ddps_mpa_conn *c, struct ddps_error *e)
{
	if (!c->tls || !tls_of(c)->why.code)
		return false;
	*e = tls_of(c)->why;
	return true;
}
