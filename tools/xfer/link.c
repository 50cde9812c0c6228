/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's one session, driven step by step. */
#include "xfer/link.h"
#include "xfer/opts.h"
#include "xfer/advice.h"
#include "cli/text.h"
#include "cli/sig.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>

/* For an orderly end; after Ctrl-C or a timeout nobody wants to wait for long. */
#define CLOSE_MS       6000ull /* the library aborts after 5 s */
#define CLOSE_HASTY_MS 1000ull

/* For the last messages over SCTP to be acknowledged, in steps between which a signal is seen */
#define SETTLE_MS      5000ull
#define SETTLE_STEP_MS 100

void link_init(struct link *l, const struct opts *o, const char *cmd)
{
	*l = (struct link){ .o = o, .uri = cmd, .other_fd = -1 };
	if (o->timeout_ms) /* for the whole command, its files too */
		l->due = clock_ns() + o->timeout_ms * NS_PER_MS;
	out_init(&l->out, cmd, o->json);
	l->out.secured = opts_secured(o);
}

enum status link_fail(struct link *l, enum status s, const char *advice, const char *fmt, ...)
{
	char text[1400];
	va_list ap;

	if (l->failed)
		return l->end;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (s == ST_TIMEDOUT && !l->out.error)
		l->out.error = DDPS_E_TIMEDOUT;
	out_error(&l->out, 0, advice, "%s", text);
	l->failed = true;
	l->end = s;
	return s;
}

/* The session ends by itself: its event, or a last message of the peer, says why. */
static enum status explain_lost_link(struct link *l)
{
	struct msg m;
	enum status s;

	do
		s = link_expect(l, MSG_ANY, &m);
	while (!s);
	return s;
}

enum status link_call_failed(struct link *l, int err, const char *what)
{
	struct ddps_error e = { .code = err, .sys_errno = err == DDPS_E_SYSTEM ? errno : 0 };
	char why[256];

	if (err == DDPS_E_STATE && (l->up || l->over))
		return explain_lost_link(l);
	/* names are looked up later, so this is the URI's form */
	l->out.error = err;
	return link_fail(l, err == DDPS_E_ADDRESS ? ST_USAGE : ST_FAILED,
			 advice_for(&e, l->o, l->was_up), "%s: %s%s%s", what,
			 advice_uri(err, what, false, why, sizeof why), e.sys_errno ? ": " : "",
			 e.sys_errno ? strerror(e.sys_errno) : "");
}

/* The library's account of why it is over. */
static enum status fail_with(struct link *l, const struct ddps_error *e)
{
	char text[400];
	enum status s = e->code == DDPS_E_TIMEDOUT   ? ST_TIMEDOUT
			: e->code == DDPS_E_REJECTED ? ST_REJECTED
			: advice_is_terminate(e)     ? ST_TERMINATED
						     : ST_FAILED;

	out_error_text(text, sizeof text, e);
	l->out.error = e->code;
	return link_fail(l, s, advice_for(e, l->o, l->was_up), "%s: %s", l->uri, text);
}

static void take_link_end(struct link *l, const struct ddps_event *ev)
{
	l->over = true;
	l->up = false;
	if (ev->type == DDPS_EV_REJECTED) {
		out_rejected(&l->out, 0, ev);
		l->out.error = DDPS_E_REJECTED;
		link_fail(l, ST_REJECTED, "ask the peer; its private data says why, if it sent any",
			  "%s: rejected by the peer's application", l->uri);
	} else if (ev->type == DDPS_EV_FAILED) {
		if (advice_is_terminate(&ev->error))
			out_terminated(&l->out, 0, &ev->error);
		fail_with(l, &ev->error);
	} else if (ev->error.code) {
		fail_with(l, &ev->error);
	}
}

static void on_event(struct link *l, const struct ddps_event *ev)
{
	struct ddps_peer_id id;

	switch (ev->type) {
	case DDPS_EV_ESTABLISHED:
		l->up = true;
		l->was_up = true;
		l->info = ev->info;
		out_established(&l->out, 0, &ev->info, secure_peer(l->chan.ep, &id),
				ev->private_data, ev->private_data_len);
		watch_begin(&l->watch, l->o->stat_ms);
		break;
	case DDPS_EV_TERMINATED:
		out_terminated(&l->out, 0, &ev->error);
		link_fail(l, ST_TERMINATED, advice_for(&ev->error, l->o, l->was_up),
			  "%s: terminated by the %s side: %s", l->uri,
			  ev->error.by_peer ? "peer's" : "local",
			  ddps_triple_name(&ev->error.triple));
		break;
	case DDPS_EV_PEER_CLOSED:
		l->peer_done = true;
		break;
	case DDPS_EV_REJECTED:
	case DDPS_EV_FAILED:
	case DDPS_EV_CLOSED:
		take_link_end(l, ev);
		break;
	case DDPS_EV_CONNECT_REQUEST:
	case DDPS_EV_REQUEST_GONE:
	case DDPS_EV_LISTENER_FAILED:
	case DDPS_EV_SRQ_LIMIT:
	case DDPS_EV_PEER_CLOSING:
		break; /* not on a client */
	}
}

/* Take one event.  Return: whether there was one. */
static bool take_link_event(struct link *l)
{
	struct ddps_event ev;

	if (ddps_event_get(l->ctx, &ev) != 1)
		return false;
	on_event(l, &ev);
	return true;
}

static void look_at_link(struct link *l)
{
	if (watch_due(&l->watch) && l->up)
		watch_show(&l->watch, &l->out, 0, l->chan.ep);
}

/*
 * Sleep until the library has something to do, @due has come or a signal.  Return: ST_DONE to
 * look again, ST_TIMEDOUT if @due has come, ST_FAILED after a signal (not reported).
 */
static enum status nap_link(struct link *l, uint64_t due)
{
	struct pollfd p[] = { { .fd = l->ctx ? ddps_ctx_fd(l->ctx) : -1, .events = POLLIN },
			      { .fd = sig_fd(), .events = POLLIN },
			      { .fd = l->other_fd, .events = POLLIN } };

	if (sig_pending())
		return ST_FAILED;
	if (due && clock_ns() >= due)
		return ST_TIMEDOUT;
	if (poll(p, 3, clock_left_ms(watch_until(&l->watch, due))) > 0 && p[0].revents)
		ddps_progress(l->ctx, 0);
	look_at_link(l);
	return ST_DONE;
}

/* nap with the deadline of the command and of the peer, reported. */
static enum status wait_more(struct link *l, uint64_t patience)
{
	bool whole = l->due && l->due < patience;

	switch (nap_link(l, whole ? l->due : patience)) {
	case ST_DONE:
		return ST_DONE;
	case ST_TIMEDOUT:
		if (whole)
			return link_fail(l, ST_TIMEDOUT, "a larger --timeout",
					 "%s: not done within %g s", l->uri,
					 l->o->timeout_ms / 1000.0);
		return link_fail(l, ST_TIMEDOUT, "is the peer overloaded, or no sessctl?",
				 "%s: nothing came from the peer for %d s", l->uri,
				 LINK_PATIENCE_MS / 1000);
	default:
		return link_fail(l, ST_FAILED, NULL, "interrupted");
	}
}

static uint64_t patience_from_now(void)
{
	return clock_ns() + LINK_PATIENCE_MS * NS_PER_MS;
}

static enum status set_up_link(struct link *l, uint32_t recv_len)
{
	struct ddps_ctx_attr attr;
	struct ddps_error why = { .code = 0 };
	int err;

	ddps_ctx_attr_init(&attr);
	if (l->o->capture) {
		if (ddps_capture_open(&l->capture, l->o->capture))
			return link_fail(l, ST_FAILED, text_file_advice(errno), "--capture %s: %s",
					 l->o->capture, strerror(errno));
		attr.capture = ddps_capture_add;
		attr.capture_user = l->capture;
	}
	if (secure_open(&attr.secure, l->o, &why))
		return fail_with(l, &why);
	err = ddps_ctx_new(&l->ctx, &attr);
	ddps_secure_close(attr.secure);
	if (!err)
		err = ddps_pd_new(l->ctx, &l->pd);
	if (!err)
		err = ddps_cq_new(l->ctx, CHAN_WCS, &l->cq);
	if (!err)
		err = chan_open(&l->chan, l->ctx, l->pd, l->cq, recv_len, l);
	for (uint32_t i = 0; !err && i < CHAN_RECVS; i++)
		err = chan_recv(&l->chan, i);
	return err ? link_call_failed(l, err, "preparing a session") : ST_DONE;
}

enum status link_open(struct link *l, const char *uri, uint32_t recv_len)
{
	struct ddps_conn_param p;
	enum status s;
	int err;

	l->uri = uri;
	s = set_up_link(l, recv_len);
	if (s)
		return s;
	chan_param(&p, l->o);
	err = ddps_connect(l->chan.ep, uri, &p);
	if (err)
		return link_call_failed(l, err, uri);
	while (!l->up && !l->over) {
		if (take_link_event(l))
			continue;
		/* the library's own deadlines bound this too */
		s = wait_more(l, patience_from_now());
		if (s)
			return s;
	}
	return l->up ? ST_DONE : l->end;
}

/* Whether @wc is for the caller. */
static bool for_caller(struct link *l, const struct ddps_wc *wc)
{
	if (WR_KIND(wc->wr_id) == WR_MSG) {
		chan_sent(&l->chan, WR_INDEX(wc->wr_id));
		return false;
	}
	/* what did not succeed is explained by the event that follows */
	return wc->status == DDPS_WC_SUCCESS;
}

/* No completion is there: see why, and whether to go on. */
static enum status idle_link(struct link *l, uint64_t patience, bool sleep)
{
	if (l->over || l->failed || l->peer_done)
		return link_fail(l, ST_FAILED, "see what the listener reports",
				 "%s: the peer closed the session before it was done", l->uri);
	return take_link_event(l) || !sleep ? ST_DONE : wait_more(l, patience);
}

/* Through memory a MiB takes longer than SPIN_NS, and needs the system only if somebody sleeps meanwhile. */
static uint64_t get_spin_ns(const struct link *l)
{
	return l->info.transport == DDPS_TRANSPORT_SHM ? 5 * SPIN_NS : SPIN_NS;
}

enum status link_take(struct link *l, struct ddps_wc *wc, int max, int *n)
{
	uint64_t begin = 0;
	enum status s = ST_DONE;

	*n = 0;
	look_at_link(l);
	if (sig_pending() || (l->due && clock_ns() >= l->due))
		return wait_more(l, patience_from_now());
	for (unsigned tries = 1; !s && !*n; tries++) {
		int got = ddps_cq_poll(l->cq, wc, max);

		for (int i = 0; i < got; i++)
			if (for_caller(l, &wc[i]))
				wc[(*n)++] = wc[i];
		if (got > 0 || tries % SPIN_POLLS)
			continue;
		if (!begin)
			begin = clock_ns();
		s = idle_link(l, begin + LINK_PATIENCE_MS * NS_PER_MS,
			      clock_ns() - begin >= get_spin_ns(l));
	}
	return s;
}

enum status link_next(struct link *l, struct ddps_wc *wc)
{
	uint64_t patience = patience_from_now();
	enum status s;

	look_at_link(l);
	/* also when there is always something to do */
	if (sig_pending() || (l->due && clock_ns() >= l->due))
		return wait_more(l, patience);
	for (;;) {
		/* before events: a message that came first counts first */
		if (ddps_cq_poll(l->cq, wc, 1) == 1) {
			if (for_caller(l, wc))
				return ST_DONE;
			continue;
		}
		s = idle_link(l, patience, true);
		if (s)
			return s;
	}
}

enum status link_pause(struct link *l, uint32_t ms)
{
	uint64_t until = clock_ns() + ms * NS_PER_MS;
	uint64_t due = l->due && l->due < until ? l->due : until;
	enum status s = ST_DONE;

	while (ms && !s) {
		while (take_link_event(l))
			if (l->over || l->failed || l->peer_done)
				return link_fail(l, ST_FAILED, "see what the listener reports",
						 "%s: the peer closed the session", l->uri);
		s = nap_link(l, due);
	}
	/* what ended it is looked at again there, to be reported */
	return !s || (s == ST_TIMEDOUT && due == until) ? ST_DONE : wait_more(l, due);
}

/* @fd is readable. */
static enum status wait_readable(struct link *l, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	enum status s = ST_DONE;

	l->other_fd = fd;
	while (!s && !poll(&p, 1, 0)) {
		while (l->ctx && take_link_event(l))
			;
		s = l->failed ? l->end : nap_link(l, l->due);
	}
	l->other_fd = -1;
	/* what ended it is looked at again there, to be reported */
	return s && !l->failed ? wait_more(l, patience_from_now()) : s;
}

/* A call of the system does not come back: nothing that it uses can be freed. */
static _Noreturn void leave_hanging(struct link *l, enum status s)
{
	out_error(&l->out, 0, DISK_ADVICE, DISK_HANGS);
	s = link_close(l, s);
	sig_leave((int)link_free(l, s));
}

enum status link_disk(struct link *l, struct disk *d, struct disk_task *t)
{
	enum status s;

	disk_do(d, t);
	s = wait_readable(l, disk_fd(d));
	if (s) {
		disk_call_off(d, t);
		if (!disk_last(d))
			leave_hanging(l, s);
	}
	(void)disk_take(d, true);
	return s;
}

enum status link_wait(struct link *l)
{
	enum status s = ST_DONE;
	struct ddps_wc wc;

	while (!s && !l->over && !l->peer_done)
		if (ddps_cq_poll(l->cq, &wc, 1) != 1 && !take_link_event(l))
			s = wait_more(l, patience_from_now());
	return s ? s : l->end;
}

/* Wait for the final event.  Return: ST_DONE, or why not. */
static enum status await_close(struct link *l, bool hasty)
{
	int known_signal = sig_pending();
	struct pollfd p[] = { { .fd = ddps_ctx_fd(l->ctx), .events = POLLIN },
			      { .fd = sig_fd(), .events = POLLIN } };
	uint64_t due = clock_ns() + (hasty ? CLOSE_HASTY_MS : CLOSE_MS) * NS_PER_MS;
	struct ddps_wc wc;

	while (!l->over) {
		if (ddps_cq_poll(l->cq, &wc, 1) == 1 || take_link_event(l))
			continue;
		if (clock_ns() >= due)
			return link_fail(l, ST_TIMEDOUT, NULL, "%s: the peer did not close",
					 l->uri);
		if (sig_pending() != known_signal)
			return link_fail(l, ST_FAILED, NULL, "interrupted");
		/* a signal that is known stays readable */
		if (poll(p, known_signal ? 1 : 2, clock_left_ms(due)) > 0)
			ddps_progress(l->ctx, 0);
	}
	return ST_DONE;
}

enum status link_close(struct link *l, enum status s)
{
	if (!l->up)
		return s;
	if (l->watch.every) /* the last one */
		watch_show(&l->watch, &l->out, 0, l->chan.ep);
	ddps_disconnect(l->chan.ep);
	await_close(l, sig_pending() || s == ST_TIMEDOUT);
	if (l->over)
		out_closed(&l->out, 0);
	return s ? s : l->end;
}

void link_settle(struct ddps_ctx *ctx)
{
	uint64_t due = clock_ns() + SETTLE_MS * NS_PER_MS;

	while (ddps_ctx_settle(ctx, SETTLE_STEP_MS) == DDPS_E_TIMEDOUT && !sig_pending() &&
	       clock_ns() < due)
		;
}

enum status link_free(struct link *l, enum status s)
{
	if (!s && l->ctx)
		link_settle(l->ctx);
	chan_close(&l->chan);
	if (l->cq)
		ddps_cq_free(l->cq);
	if (l->pd)
		ddps_pd_free(l->pd);
	ddps_ctx_free(l->ctx);
	l->ctx = NULL;
	if (ddps_capture_close(l->capture)) {
		out_error(&l->out, 0, text_file_advice(errno), "--capture %s: %s", l->o->capture,
			  strerror(errno));
		s = s ? s : ST_FAILED;
	}
	return out_finish(&l->out) && !s ? ST_FAILED : s;
}
