/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA inside TLS: the handshake, whose steps a thread takes, and whose octets go here. */
#include "mpa_tcp/mpa_tls_conn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ddps_mpa_tls_end_shake(struct ddps_mpa_tls *t)
{
	struct ddps_error why = ddps_error_kept(&t->why);

	ddps_shake_free(t->shake);
	t->shake = NULL;
	if (why.code)
		ddps_mpa_conn_fail(t->c, why.code, 0, "%s", why.text);
}

static int take_keys_over(struct ddps_mpa_tls *t, struct ddps_peer_id *id)
{
	struct ddps_rec_config conf;
	const uint8_t *rest;
	size_t nrest;
	int err;

	ddps_shake_take(t->shake, &conf, id, &rest, &nrest);
	t->who = ddps_who_keep(id);
	err = t->who ? ddps_vault_in(t->c->env->vaults, &t->vault, ddps_rec_size(&conf))
		     : DDPS_E_NOMEM;
	if (!err && ddps_rec_init(t->vault.p, &conf, &t->rec))
		err = DDPS_E_TLS;
	explicit_bzero(&conf, sizeof conf);
	if (!err && !ddps_tls_keep(&t->in, rest, nrest))
		err = DDPS_E_NOMEM;
	return err;
}

static void finish_shake(struct ddps_mpa_tls *t)
{
	struct ddps_peer_id id;
	int err = take_keys_over(t, &id);
	struct ddps_error e;
	char peer[72];

	if (err) {
		e = ddps_error_make(err, 0, "the keys of the handshake are not usable");
		ddps_mpa_tls_fail(t, &e);
		ddps_mpa_tls_end_shake(t);
		return;
	}
	t->done = true;
	ddps_mpa_addr_text(&t->c->peer, peer, sizeof peer);
	ddps_log(&t->c->env->log, DDPS_LOG_INFO, "secure", "%s: %s, %s, %s, peer %s", peer,
		 id.version, id.suite, id.group, id.name);
	ddps_mpa_tls_end_shake(t);
	ddps_mpa_conn_update_emss(t->c); /* now it is known what a record takes */
	ddps_mpa_tls_rewatch(t);
	ddps_mpa_conn_ready(t->c, DDPS_MPA_OUT | DDPS_MPA_IN);
}

/* What is to be sent of it goes to what is sealed: there it outlives it. */
static void take_shake_output(struct ddps_mpa_tls *t)
{
	size_t n;
	const uint8_t *p = ddps_shake_output(t->shake, &n);

	if (!ddps_tls_keep(&t->out, p, n)) {
		struct ddps_error e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake");

		ddps_mpa_tls_fail(t, &e);
	}
	ddps_shake_sent(t->shake, n);
	(void)ddps_mpa_tls_flush(t); /* reading says what is wrong */
}

static void take_step(void *user)
{
	struct ddps_mpa_tls *t = user;
	const struct ddps_verdict *v = ddps_shake_why(t->shake);
	struct ddps_error e;

	take_shake_output(t);
	if (ddps_shake_state(t->shake) == DDPS_HS_FAILED) {
		e = ddps_error_make(v->code, 0, "%s", v->text);
		ddps_mpa_tls_fail(t, &e);
	}
	if (t->why.code)
		ddps_mpa_tls_end_shake(t);
	else if (ddps_shake_state(t->shake) == DDPS_HS_DONE)
		finish_shake(t);
	else
		ddps_mpa_tls_rewatch(t);
}

/* Not in a call from above, and with no octet of the peer's to wait for: the task ends it. */
int ddps_mpa_tls_begin(struct ddps_mpa_tls *t)
{
	const struct ddps_creds_want want = { .server = !t->c->initiator, .host = t->host };
	struct ddps_error e;

	t->begun = true;
	if (!ddps_shake_new(t->c->env, &want, &t->c->peer.sa, take_step, t, &t->shake, &e)) {
		if (t->c->initiator && ddps_shake_feed(t->shake, NULL, 0))
			e = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake");
		else
			e.code = 0;
	}
	if (e.code) {
		ddps_mpa_tls_fail(t, &e);
		ddps_task_post(t->c->env->loop, &t->task);
	} else {
		ddps_mpa_tls_rewatch(t);
	}
	return e.code;
}

/* What has come for the handshake. */
static void read_for_shake(struct ddps_mpa_tls *t)
{
	uint8_t octets[4096];
	struct iovec iov = { octets, sizeof octets };
	struct ddps_error e;
	ssize_t n = ddps_mpa_io_read(t->c, &iov, 1);

	if (n == -EAGAIN && !t->lost)
		return;
	if (n <= 0 && t->lost) /* TCP has said why when it was written to */
		n = -t->lost;
	t->heard |= n > 0;
	if (n > 0 && !ddps_shake_feed(t->shake, octets, (size_t)n)) {
		ddps_mpa_tls_rewatch(t);
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
	ddps_mpa_tls_fail(t, &e);
	ddps_mpa_tls_end_shake(t);
}

void ddps_mpa_tls_shake_io(struct ddps_mpa_tls *t)
{
	if (!t->shake)
		ddps_mpa_tls_end_shake(t);
	else if (!ddps_shake_busy(t->shake))
		read_for_shake(t);
}
