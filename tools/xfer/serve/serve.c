/* SPDX-License-Identifier: BSD-2-Clause */
/* A session's life on the listener's side. */
#include "xfer/opts.h"
#include "xfer/serve/serve.h"
#include "xfer/advice.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void session_renew(struct session *s)
{
	s->due = clock_ns() + s->patience_ns;
	if (s->limit && s->limit < s->due)
		s->due = s->limit;
}

void session_limit(struct session *s, uint64_t octets)
{
	s->limit = clock_ns() + s->patience_ns + octets / SERVE_RATE_MIN * NS_PER_S;
}

/* ---- requests ---- */

static void reject_session(struct server *sv, const struct ddps_event *ev, const void *pd,
			   size_t len)
{
	int err = ddps_reject(ev->request, pd, len);

	out_rejected(&sv->out, 0, ev);
	if (err)
		out_error(&sv->out, 0, NULL, "rejecting %s: %s", ev->info.peer, ddps_strerror(err));
	sv->ended++;
}

static struct session *make_server_session(struct server *sv, const struct ddps_event *ev, int *err)
{
	uint32_t patience = sv->o->timeout_ms ? sv->o->timeout_ms : SERVE_PATIENCE_MS;
	struct session *s = calloc(1, sizeof *s);

	*err = DDPS_E_NOMEM;
	if (!s)
		return NULL;
	*err = chan_open(&s->chan, sv->ctx, sv->pd, sv->cq, MSG_MAX, s);
	if (!*err)
		*err = chan_recv(&s->chan, 0);
	if (*err) {
		chan_close(&s->chan);
		free(s);
		return NULL;
	}
	s->sv = sv;
	s->id = (unsigned)ddps_ep_number(s->chan.ep);
	s->info = ev->info;
	s->net = share_net(&ev->info);
	s->pd_len = ev->private_data_len;
	memcpy(s->pd, ev->private_data, ev->private_data_len);
	s->patience_ns = patience * NS_PER_MS;
	session_renew(s);
	LIST_INSERT_HEAD(&sv->sessions, s, of_all);
	sv->live++;
	return s;
}

void session_stop(struct session *s)
{
	const struct service *service = s->service;

	if (!service)
		return;
	if (s->disk_busy) {
		disk_call_off(s->sv->disk, &s->task);
		return;
	}
	s->service = NULL;
	service->stop(s);
	s->job = NULL;
}

static void session_free(struct session *s)
{
	struct server *sv = s->sv;

	session_stop(s);
	if (s->disk_busy)
		return;
	chan_close(&s->chan);
	sv->windows -= s->win.len;
	window_close(&s->win);
	LIST_REMOVE(s, of_all);
	sv->live--;
	sv->dead--;
	sv->ended++;
	free(s);
}

static void die(struct session *s)
{
	s->state = SESSION_DEAD;
	s->sv->dead++;
}

/* A request: accept or reject it. */
static void answer_request(struct server *sv, const struct ddps_event *ev)
{
	const struct serve_net net = share_net(&ev->info);
	struct ddps_conn_param p;
	struct session *s;
	const char *why;
	int err;

	sv->taken++;
	why = sv->o->reject ? NULL : share_of_sessions(sv, &net);
	if (sv->o->reject || why) {
		sv->refused[REFUSED_SESSIONS] += why != NULL;
		if (why)
			reject_session(sv, ev, why, strlen(why));
		else
			reject_session(sv, ev, sv->o->pd.b, sv->o->pd.len);
		return;
	}
	s = make_server_session(sv, ev, &err);
	if (!s) {
		out_error(&sv->out, 0, NULL, "no session for %s: %s", ev->info.peer,
			  ddps_strerror(err));
		reject_session(sv, ev, NULL, 0);
		return;
	}
	chan_param(&p, sv->o);
	err = ddps_accept(ev->request, s->chan.ep, &p);
	if (!err)
		return;
	out_error(&sv->out, s->id, NULL, "accepting %s: %s", ev->info.peer, ddps_strerror(err));
	die(s);
	/* Otherwise the request is consumed: rejected by the library, or its peer has gone. */
	if (err != DDPS_E_IRD && err != DDPS_E_RTR && err != DDPS_E_CLOSED)
		ddps_reject(ev->request, NULL, 0);
}

/* ---- ends ---- */

static void show_session(struct session *s)
{
	watch_show(&s->sv->watch, &s->sv->out, s->id, s->chan.ep);
}

/* --stat: how it stands at its end. */
static void show_session_last(struct session *s)
{
	if (s->sv->watch.every && s->state > SESSION_SETUP && s->state < SESSION_CLOSING)
		show_session(s);
}

static void begin_session_end(struct session *s)
{
	show_session_last(s);
	session_stop(s);
	s->state = SESSION_CLOSING;
	s->due = clock_ns() + SERVE_GOODBYE_MS * NS_PER_MS;
}

static void disconnect_session(struct session *s)
{
	if (s->state >= SESSION_CLOSING)
		return;
	begin_session_end(s);
	ddps_disconnect(s->chan.ep);
}

void session_drop(struct session *s, const char *fmt, ...)
{
	char text[1400];
	va_list ap;

	if (s->state >= SESSION_CLOSING)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	out_error(&s->sv->out, s->id, NULL, "%s: %s", s->info.peer, text);
	begin_session_end(s);
	ddps_abort(s->chan.ep);
}

void session_send(struct session *s, const struct msg *m)
{
	int err = s->state < SESSION_CLOSING ? chan_send(&s->chan, m) : 0;

	/* DDPS_E_STATE: it ends already, and the event says why */
	if (err && err != DDPS_E_STATE)
		session_drop(s, "sending %s: %s", msg_name(m->type), ddps_strerror(err));
}

void session_done(struct session *s)
{
	if (s->state >= SESSION_LEAVING)
		return;
	session_stop(s);
	s->state = SESSION_LEAVING;
	s->due = clock_ns() + SERVE_GOODBYE_MS * NS_PER_MS;
}

void session_give_up(struct session *s, const char *reason)
{
	struct msg m = { .type = s->state == SESSION_SERVING ? MSG_ERROR : MSG_REFUSE };

	if (s->state >= SESSION_LEAVING)
		return;
	snprintf(m.text, sizeof m.text, "%s", reason);
	out_error(&s->sv->out, s->id, NULL, "%s: %s: %s", s->info.peer,
		  m.type == MSG_ERROR ? "gave up" : "refused", reason);
	session_send(s, &m);
	session_done(s);
}

/* ---- messages ---- */

void session_begin(struct session *s, const struct service *service, void *job)
{
	int err = 0;

	s->service = service;
	s->job = job;
	s->state = SESSION_SERVING;
	for (uint32_t i = 1; !err && i < CHAN_RECVS; i++)
		err = chan_recv(&s->chan, i);
	if (err && err != DDPS_E_STATE)
		session_drop(s, "posting a receive: %s", ddps_strerror(err));
}

int session_window(struct session *s, size_t len, unsigned access)
{
	const char *why = share_of_windows(s, len);
	int err;

	if (why) {
		s->sv->refused[REFUSED_WINDOWS]++;
		session_give_up(s, why);
		return -1;
	}
	err = window_open(&s->win, s->sv->pd, s->chan.ep, len, access);
	if (err) {
		session_give_up(s, ddps_strerror(err));
		return -1;
	}
	s->sv->windows += len;
	return 0;
}

struct hasher *session_hasher(struct session *s, enum digest_kind kind)
{
	if (kind != DIGEST_SHA256)
		return NULL;
	if (!s->sv->hasher)
		s->sv->hasher = hasher_new(kind);
	return s->sv->hasher;
}

static void take_first_message(struct session *s, const uint8_t *data, uint32_t len)
{
	const char *why;
	struct msg m;

	if (s->service)
		session_give_up(s, "a message before the answer to the first one");
	else if (msg_decode(&m, data, len, &why))
		session_give_up(s, why);
	else if (m.type == MSG_PUT || m.type == MSG_PUT_BY)
		serve_put(s, &m);
	else if (m.type == MSG_GET || m.type == MSG_GET_BY)
		serve_get(s, &m);
	else if (m.type == MSG_PING)
		serve_ping(s, &m);
	else if (m.type == MSG_PERF)
		serve_perf(s, &m);
	else
		session_give_up(s, "a session begins with PUT, GET, PING or PERF");
}

static void take_session_message(struct session *s, uint32_t i, uint32_t len)
{
	int err;

	if (s->state == SESSION_SETUP) {
		s->early = true; /* only buffer 0 is posted so far */
		s->early_len = len;
		return;
	}
	if (s->state < SESSION_LEAVING)
		session_renew(s);
	if (s->state == SESSION_OPEN)
		take_first_message(s, chan_data(&s->chan, i), len);
	else if (s->state == SESSION_SERVING)
		s->service->message(s, chan_data(&s->chan, i), len);
	/* what still comes from a peer that is to go is taken and forgotten */
	if (s->state >= SESSION_CLOSING || (s->service && s->service->own_receives))
		return;
	err = chan_recv(&s->chan, i);
	if (err && err != DDPS_E_STATE)
		session_drop(s, "posting a receive: %s", ddps_strerror(err));
}

void serve_completion(const struct ddps_wc *wc)
{
	struct session *s = wc->user;

	if (WR_KIND(wc->wr_id) == WR_MSG)
		chan_sent(&s->chan, WR_INDEX(wc->wr_id));
	/* what failed is explained by the event that follows */
	else if (wc->status != DDPS_WC_SUCCESS || s->state == SESSION_DEAD)
		return;
	else if (WR_KIND(wc->wr_id) == WR_RECV)
		take_session_message(s, WR_INDEX(wc->wr_id), wc->len);
	else if (s->state == SESSION_SERVING && s->service->completion)
		s->service->completion(s, wc);
}

/* ---- events ---- */

static void take_session_established(struct session *s, const struct ddps_event *ev)
{
	struct ddps_peer_id id;

	if (s->state != SESSION_SETUP) /* dropped in the meantime */
		return;
	s->info = ev->info;
	s->state = SESSION_OPEN;
	session_renew(s);
	out_established(&s->sv->out, s->id, &ev->info, secure_peer(s->chan.ep, &id), s->pd,
			s->pd_len);
	if (s->early)
		take_session_message(s, 0, s->early_len);
}

static void take_session_over(struct session *s, const struct ddps_event *ev)
{
	char text[400];

	show_session_last(s);
	out_error_text(text, sizeof text, &ev->error);
	s->sv->out.error = ev->error.code;
	if (ev->type == DDPS_EV_FAILED && advice_is_terminate(&ev->error))
		out_terminated(&s->sv->out, s->id, &ev->error);
	if (ev->type == DDPS_EV_FAILED)
		out_error(&s->sv->out, s->id, advice_for(&ev->error, s->sv->o, false),
			  "not established: %s", text);
	/* after a Terminate or our own abort the reason was given */
	else if (ev->error.code && s->state < SESSION_CLOSING)
		out_error(&s->sv->out, s->id, NULL, "%s", text);
	s->sv->out.error = 0;
	if (ev->type == DDPS_EV_CLOSED)
		out_closed(&s->sv->out, s->id);
	session_stop(s);
	die(s);
}

static void take_session_terminated(struct session *s, const struct ddps_event *ev)
{
	out_terminated(&s->sv->out, s->id, &ev->error);
	out_error(&s->sv->out, s->id, advice_for(&ev->error, s->sv->o, true),
		  "terminated by the %s side: %s", ev->error.by_peer ? "peer's" : "local",
		  ddps_triple_name(&ev->error.triple));
	begin_session_end(s);
}

void serve_event(struct server *sv, const struct ddps_event *ev)
{
	struct session *s = ev->ep ? ev->user : NULL;

	if (!s) {
		if (ev->type == DDPS_EV_CONNECT_REQUEST)
			answer_request(sv, ev);
		return;
	}
	switch (ev->type) {
	case DDPS_EV_ESTABLISHED:
		take_session_established(s, ev);
		break;
	case DDPS_EV_TERMINATED:
		take_session_terminated(s, ev);
		break;
	case DDPS_EV_PEER_CLOSED:
		if (s->state == SESSION_SERVING && !s->service->open_end)
			out_error(&sv->out, s->id, NULL, "%s: closed before its request was done",
				  s->info.peer);
		disconnect_session(s);
		break;
	case DDPS_EV_FAILED:
	case DDPS_EV_CLOSED:
	case DDPS_EV_REJECTED:
		take_session_over(s, ev);
		break;
	case DDPS_EV_CONNECT_REQUEST:
	case DDPS_EV_LISTENER_FAILED:
	case DDPS_EV_REQUEST_GONE:
	case DDPS_EV_SRQ_LIMIT:
	case DDPS_EV_PEER_CLOSING:
		break;
	}
}

/* ---- all of them ---- */

void serve_deadlines(struct server *sv)
{
	uint64_t now = clock_ns();
	struct session *s;

	LIST_FOREACH(s, &sv->sessions, of_all) {
		if (now < s->due || s->state == SESSION_DEAD)
			continue;
		if (s->disk_busy && s->state < SESSION_LEAVING) /* we are waited for */
			continue;
		if (s->state == SESSION_LEAVING) {
			disconnect_session(s);
		} else if (s->state == SESSION_CLOSING) {
			ddps_abort(s->chan.ep);
			s->due = now + SERVE_GOODBYE_MS * NS_PER_MS;
		} else if (s->limit && now >= s->limit) {
			session_drop(s, "slower than %u octets a second", SERVE_RATE_MIN);
		} else {
			session_drop(s, "nothing came for %g s",
				     (double)s->patience_ns / (double)NS_PER_S);
		}
	}
}

void serve_show(struct server *sv)
{
	struct session *s;

	LIST_FOREACH(s, &sv->sessions, of_all)
		if (s->state > SESSION_SETUP && s->state < SESSION_CLOSING)
			show_session(s);
}

void serve_reap(struct server *sv)
{
	struct session *s = LIST_FIRST(&sv->sessions), *next;

	for (; s && sv->dead; s = next) {
		next = LIST_NEXT(s, of_all);
		if (s->state == SESSION_DEAD)
			session_free(s);
	}
}

void serve_close_all(struct server *sv)
{
	struct session *s;

	LIST_FOREACH(s, &sv->sessions, of_all) {
		if (s->state == SESSION_SERVING)
			out_error(&sv->out, s->id, NULL, "%s: interrupted", s->info.peer);
		if (s->state == SESSION_SETUP)
			ddps_abort(s->chan.ep);
		else
			disconnect_session(s);
	}
}
