/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA's octets in records of TLS 1.3: the struct ddps_mpa_tcp. */
#include "mpa_tcp/mpa_tls_conn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct ddps_mpa_tls *tls_of(const struct ddps_mpa_conn *c)
{
	return c->tls;
}

void ddps_mpa_tls_fail(struct ddps_mpa_tls *t, const struct ddps_error *why)
{
	if (!t->why.code)
		ddps_error_keep(&t->why, why);
}

/* ---- what to wait for ---- */

static int watch_tls(struct ddps_mpa_tls *t)
{
	unsigned events = t->events;

	if (!t->done && t->begun)
		events = t->shake && !ddps_shake_busy(t->shake) ? DDPS_MPA_IN : 0;
	if (ddps_tls_waiting(&t->out))
		events |= DDPS_MPA_OUT;
	/* Else the end would be reported again and again, until the step is done or somebody cares. */
	if (!events && (t->quiet || (t->begun && !t->done))) {
		ddps_mpa_sockets.unwatch(t->c);
		return 0;
	}
	return ddps_mpa_sockets.watch(t->c, events, t->done && t->eager);
}

void ddps_mpa_tls_rewatch(struct ddps_mpa_tls *t)
{
	if (watch_tls(t) < 0)
		ddps_log(&t->c->env->log, DDPS_LOG_ERROR, "mpa", "epoll: %s", strerror(errno));
}

/* What is here, for MPA.  It is here until it is read, which this turn may have no share for. */
static void show_more(void *user)
{
	struct ddps_mpa_tls *t = user;

	if (t->begun && !t->done && !t->shake) {
		ddps_mpa_tls_end_shake(t);
		return;
	}
	if (!(t->events & DDPS_MPA_IN) || !ddps_mpa_tls_more(t))
		return;
	ddps_task_post(t->c->env->loop, &t->task);
	ddps_mpa_conn_ready(t->c, DDPS_MPA_IN);
}

static void tls_io(void *user, uint32_t events)
{
	struct ddps_mpa_conn *c = user;
	struct ddps_mpa_tls *t = tls_of(c);
	unsigned pass = events;

	c->io.moved = false;
	if (ddps_tls_waiting(&t->out) && (events & (DDPS_MPA_OUT | DDPS_MPA_BROKEN))) {
		if (ddps_mpa_tls_flush(t))
			pass |= DDPS_MPA_BROKEN;
		ddps_mpa_tls_rewatch(t);
		if (ddps_tls_waiting(&t->out) > DDPS_MPA_TLS_SEALED / 2 ||
		    !(t->events & DDPS_MPA_OUT))
			pass &= ~(unsigned)DDPS_MPA_OUT;
	}
	if (t->begun && !t->done)
		ddps_mpa_tls_shake_io(t);
	else if (pass && !t->quiet)
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
	free(t->who);
	ddps_error_drop(&t->why);
	free(t);
}

/* There is nothing that the peer has to hear yet. */
static bool is_said(const struct ddps_mpa_tls *t)
{
	return t->drop || (!t->why.code && !ddps_tls_waiting(&t->out)) || !t->begun;
}

/* In MPA's set-up, where nothing is said of what is wrong: that it is this side which closes [8446-6.1-2].  In a
 * session an end that was not agreed on stays a cut. */
static bool owes_close_notify(const struct ddps_mpa_tls *t)
{
	return t->done && t->c->startup && !t->drop && !t->why.code && !t->fin_due;
}

/* The peer may still say its close_notify, which nobody reads any more: close() would be a reset then. */
static bool owes_reading(const struct ddps_mpa_tls *t)
{
	return t->fin && !t->lost && !t->drop && !t->why.code && !t->closed;
}

static void tls_close(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_tls *t = tls_of(c);

	if (owes_close_notify(t))
		ddps_mpa_tls_alert(t, DDPS_ALERT_CLOSE_NOTIFY);
	if ((!is_said(t) || owes_reading(t)) &&
	    ddps_mpa_late_take(c, t->out.p, t->out.at, t->out.len,
			       c->p.close_ms && t->fin_due && ddps_tls_waiting(&t->out)
				       ? c->p.close_ms
				       : DDPS_MPA_LINGER_MS))
		t->out = (struct ddps_tls_octets){ .p = NULL };
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
	t->quiet = false;
	if (!t->begun && ddps_mpa_connecting(c))
		return ddps_mpa_sockets.watch(c, events, false);
	if (!t->begun && !c->initiator && (events & DDPS_MPA_IN))
		(void)ddps_mpa_tls_begin(t); /* the task says that it failed */
	if (t->done && (events & DDPS_MPA_IN) && ddps_mpa_tls_more(t))
		ddps_task_post(c->env->loop, &t->task);
	return watch_tls(t);
}

static void tls_unwatch(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_tls *t = tls_of(c);

	t->events = 0;
	t->quiet = true;
	ddps_mpa_tls_rewatch(t);
}

static uint32_t tls_emss(struct ddps_mpa_conn *c)
{
	const struct ddps_mpa_tls *t = tls_of(c);

	return t->rec ? (uint32_t)ddps_rec_room(t->rec) : DDPS_REC_CONTENT;
}

/*
 * A peer that has closed, and that all but our close_notify has reached, need not be there for that: it is not
 * lost, it is gone.
 */
static bool is_peer_gone(const struct ddps_mpa_tls *t)
{
	return t->lost && t->closed && t->fin_due && ddps_mpa_tls_arrived(t);
}

static size_t tls_unacked(const struct ddps_mpa_conn *c)
{
	const struct ddps_mpa_tls *t = tls_of(c);

	return is_peer_gone(t) ? 0 : ddps_tls_waiting(&t->out) + ddps_mpa_sockets.unacked(c);
}

static int tls_error(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_tls *t = tls_of(c);

	if (!t->lost)
		t->lost = ddps_mpa_sockets.error(c);
	return is_peer_gone(t) ? 0 : t->lost;
}

static void tls_local(struct ddps_mpa_conn *c)
{
	ddps_mpa_sockets.local(c);
}

static int tls_stats(const struct ddps_mpa_conn *c, struct ddps_llp_tcp *st)
{
	int err = ddps_mpa_sockets.stats(c, st);

	if (!err)
		st->unacked += ddps_tls_waiting(&tls_of(c)->out);
	return err;
}

static void tls_busy(struct ddps_mpa_conn *c)
{
	ddps_mpa_sockets.busy(c);
}

static void tls_options(struct ddps_mpa_conn *c)
{
	ddps_mpa_sockets.options(c);
}

static void tls_release(struct ddps_mpa_conn *c)
{
	free_tls(tls_of(c));
}

static const struct ddps_mpa_tcp tls_tcp = {
	.recv = ddps_mpa_tls_recv,
	.send = ddps_mpa_tls_send,
	.fin = ddps_mpa_tls_fin,
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
	.options = tls_options,
};

int ddps_mpa_tls_wrap(struct ddps_mpa_conn *c, const char *host)
{
	struct ddps_mpa_tls *t = calloc(1, sizeof *t);

	if (!t)
		return DDPS_E_NOMEM;
	t->c = c;
	t->task = (struct ddps_task){ .fn = show_more, .user = t };
	t->host = host ? strdup(host) : NULL;
	if (host && !t->host) {
		free_tls(t);
		return DDPS_E_NOMEM;
	}
	c->tls = t;
	c->tcp = &tls_tcp;
	c->io.fn = tls_io;
	return 0;
}

const struct ddps_who *ddps_mpa_tls_peer(const struct ddps_mpa_conn *c)
{
	return c->tls ? tls_of(c)->who : NULL;
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
	*e = ddps_error_kept(&tls_of(c)->why);
	return true;
}
