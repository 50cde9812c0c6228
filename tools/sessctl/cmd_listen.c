/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl listen: one loop that serves any number of sessions until a signal or --count. */
#include "xfer/advice.h"
#include "xfer/link.h"
#include "xfer/opts.h"
#include "sessctl/cmd.h"
#include "xfer/serve/serve.h"
#include "cli/out/out_json.h"
#include "cli/text.h"
#include "cli/sig.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS	    250 /* how exactly deadlines of sessions are kept */
#define LATE_MS	    1000
#define BATCH	    64
#define FAREWELL_MS 3000ull /* for all sessions to close after a signal */

static enum status fail_listen(struct server *sv, int err, const char *what)
{
	struct ddps_error e = { .code = err, .sys_errno = err == DDPS_E_SYSTEM ? errno : 0 };
	char why[256];

	sv->out.error = err;
	out_error(&sv->out, 0, advice_for(&e, sv->o, false), "%s: %s%s%s", what,
		  advice_uri(err, what, true, why, sizeof why), e.sys_errno ? ": " : "",
		  e.sys_errno ? strerror(e.sys_errno) : "");
	return err == DDPS_E_ADDRESS && !advice_uri_whole(what, true) ? ST_USAGE : ST_FAILED;
}

/* What the library says unasked, as lines of this log: ddpsess(7). */
static void put_library_line(void *user, enum ddps_log_level level, const char *facility,
			     const char *message)
{
	struct server *sv = user;

	if (level <= DDPS_LOG_WARN && !strcmp(facility, "secure"))
		out_note(&sv->out, NULL, "%s: %s", facility, message);
}

static enum status make_listen_ctx(struct server *sv, int *err)
{
	struct ddps_ctx_attr attr;
	struct ddps_error why = { .code = 0 };

	ddps_ctx_attr_init(&attr);
	if (sv->out.log && !getenv("DDPSESS_LOG") && !getenv("DDPSESS_DEBUG")) {
		attr.log = put_library_line;
		attr.log_user = sv;
	}
	if (sv->o->capture) {
		if (ddps_capture_open(&sv->capture, sv->o->capture)) {
			out_error(&sv->out, 0, text_file_advice(errno), "--capture %s: %s",
				  sv->o->capture, strerror(errno));
			return ST_FAILED;
		}
		attr.capture = ddps_capture_add;
		attr.capture_user = sv->capture;
	}
	if (secure_open(&attr.secure, sv->o, &why)) {
		sv->out.error = why.code;
		out_error(&sv->out, 0, advice_for(&why, sv->o, false), "%s", why.text);
		return ST_FAILED;
	}
	*err = ddps_ctx_new(&sv->ctx, &attr);
	ddps_secure_close(attr.secure);
	return ST_DONE;
}

/* Without it there is only less to see, so this is said and no more. */
static void show_watch(struct server *sv)
{
	const char *where = getenv("DDPSESS_WATCH");
	int err = ddps_watch_open(&sv->shown, sv->ctx, "sessctl listen", NULL);
	char at[40], clean[256];

	if (!err) {
		ddps_watch_add(sv->shown, "service", share_show, sv);
		return;
	}
	snprintf(at, sizeof at, "/tmp/ddpsess-%u", (unsigned)geteuid());
	if (where && *where)
		text_clean(clean, sizeof clean, where, strlen(where));
	out_note(&sv->out, "DDPSESS_WATCH=DIR, a directory of this user only, or off",
		 "sessctl stat will not show this listener: %s: %s", where && *where ? clean : at,
		 err == DDPS_E_SYSTEM	? strerror(errno)
		 : err == DDPS_E_ACCESS ? "it is somebody else's, or others may use it"
					: ddps_strerror(err));
}

static enum status start_server(struct server *sv)
{
	struct ddps_listen_param p;
	char uri[1024];
	int err;

	if (sv->o->dir) {
		sv->dirfd = open(sv->o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sv->dirfd < 0) {
			out_error(&sv->out, 0,
				  errno == EACCES ? text_file_advice(errno)
						  : "a directory that exists",
				  "--dir %s: %s", sv->o->dir, strerror(errno));
			return ST_FAILED;
		}
		sv->disk = disk_new();
		if (!sv->disk)
			return fail_listen(sv, DDPS_E_SYSTEM, sv->o->dir);
	}
	ddps_listen_param_init(&p);
	if (!share_files(&sv->room, &p.max_half_open)) {
		out_error(&sv->out, 0, "raise the limit of open files (ulimit -n)",
			  "it leaves none for sessions");
		return ST_FAILED;
	}
	if (sv->o->timeout_ms)
		p.setup_ms = sv->o->timeout_ms;
	if (sv->o->rtr)
		p.rtr = sv->o->rtr;
	if (make_listen_ctx(sv, &err))
		return ST_FAILED;
	if (!err)
		err = ddps_pd_new(sv->ctx, &sv->pd);
	if (!err)
		err = ddps_cq_new(sv->ctx, SERVE_SESSIONS_MAX * CHAN_WCS, &sv->cq);
	if (!err)
		err = ddps_listen(sv->ctx, sv->o->arg[0], &p, &sv->listener);
	if (!err && ddps_listener_uri(sv->listener, uri, sizeof uri) < 0)
		err = DDPS_E_TOO_LONG;
	if (err)
		return fail_listen(sv, err, sv->o->arg[0]);
	show_watch(sv);
	out_listening(&sv->out, uri);
	return sv->out.write_errno ? ST_FAILED : ST_DONE; /* nobody will know where */
}

/* Take all completions that there are.  Return: whether there were any. */
static bool take_server_completions(struct server *sv)
{
	struct ddps_wc wc[BATCH];
	int n, any = 0;

	do {
		n = ddps_cq_poll(sv->cq, wc, BATCH);
		sv->now = 0;
		for (int i = 0; i < n; i++)
			serve_completion(&wc[i]);
		any |= n > 0;
	} while (n == BATCH);
	return any;
}

/* Look for completions alone for a moment: who is measured does not wait for anything else. */
static bool spin_server(struct server *sv)
{
	for (unsigned i = 0; i < SPIN_POLLS; i++)
		if (take_server_completions(sv))
			return true;
	return false;
}

/*
 * Serve what is there now, once; @more: there may be more, so do not sleep.
 * Return: ST_DONE, or that the listener failed.
 */
static enum status serve_round(struct server *sv, bool *more)
{
	struct ddps_event ev;

	*more = false;
	while (ddps_event_get(sv->ctx, &ev) == 1) {
		*more = true;
		if (ev.type == DDPS_EV_LISTENER_FAILED) {
			out_error(&sv->out, 0, advice_for(&ev.error, sv->o, false),
				  "listening ended: %s", ev.error.text);
			return ST_FAILED;
		}
		/* what came before an end is looked at before it */
		if (ev.type != DDPS_EV_CONNECT_REQUEST && ev.type != DDPS_EV_ESTABLISHED)
			take_server_completions(sv);
		serve_event(sv, &ev);
	}
	serve_disk(sv, false);
	*more |= sv->hot ? spin_server(sv) : take_server_completions(sv);
	serve_reap(sv);
	/* enough sessions: those under way go on, nobody else comes in */
	if (sv->o->count && sv->taken >= sv->o->count && sv->listener) {
		ddps_listener_free(sv->listener);
		sv->listener = NULL;
	}
	return ST_DONE;
}

/* Sleep until there is something to do.  Polling the queue of completions may have brought
 * events, so their descriptor counts too. */
static void nap_server(struct server *sv, int ms, bool with_signal)
{
	struct pollfd p[] = { { .fd = ddps_ctx_fd(sv->ctx), .events = POLLIN },
			      { .fd = ddps_event_fd(sv->ctx), .events = POLLIN },
			      { .fd = sv->disk ? disk_fd(sv->disk) : -1, .events = POLLIN },
			      { .fd = sig_fd(), .events = POLLIN } };

	if (poll(p, with_signal ? 4 : 3, ms) > 0 && p[0].revents)
		ddps_progress(sv->ctx, 0);
}

static bool is_server_done(const struct server *sv)
{
	return sv->o->count && sv->ended >= sv->o->count;
}

static enum status serve_sessions(struct server *sv)
{
	uint64_t tick = clock_ns(), busy = tick, now;
	bool more, late = false;

	watch_begin(&sv->watch, sv->o->stat_ms);
	while (!sig_pending()) {
		if (serve_round(sv, &more))
			return ST_FAILED;
		if (watch_due(&sv->watch))
			serve_show(sv);
		if (is_server_done(sv))
			return ST_DONE;
		now = clock_ns();
		if (now >= tick) {
			/* It was not this program's turn: what came meanwhile is read before anybody is
			 * judged to be silent. */
			late = !late && now - tick >= LATE_MS * NS_PER_MS;
			if (!late)
				serve_deadlines(sv);
			tick = now + TICK_MS * NS_PER_MS;
		}
		if (more)
			busy = now;
		else if (!sv->hot || now - busy >= SPIN_NS)
			nap_server(sv, sv->live ? clock_left_ms(watch_until(&sv->watch, tick)) : -1,
				   true);
	}
	return ST_DONE;
}

/* After a signal: everybody is informed, nobody waited for too long. */
static void farewell(struct server *sv)
{
	uint64_t due = clock_ns() + FAREWELL_MS * NS_PER_MS;
	bool more;

	ddps_listener_free(sv->listener);
	sv->listener = NULL;
	serve_close_all(sv);
	while (!serve_round(sv, &more) && (sv->live || more) && clock_ns() < due)
		if (!more)
			nap_server(sv, clock_left_ms(due), false);
}

/* Whoever is left is aborted. */
static void release_server(struct server *sv)
{
	struct session *s;

	LIST_FOREACH(s, &sv->sessions, of_all) {
		sv->dead += s->state != SESSION_DEAD;
		s->state = SESSION_DEAD;
	}
	for (serve_reap(sv); !LIST_EMPTY(&sv->sessions); serve_reap(sv)) {
		if (!disk_last(sv->disk)) {
			out_error(&sv->out, 0, DISK_ADVICE, DISK_HANGS);
			ddps_ctx_free(sv->ctx);
			(void)out_finish(&sv->out);
			sig_leave(ST_FAILED);
		}
		serve_disk(sv, true);
	}
	disk_free(sv->disk);
	hasher_free(sv->hasher);
	ddps_listener_free(sv->listener);
	ddps_watch_close(sv->shown);
	if (sv->cq)
		ddps_cq_free(sv->cq);
	if (sv->pd)
		ddps_pd_free(sv->pd);
	ddps_ctx_free(sv->ctx);
	if (sv->dirfd >= 0)
		close(sv->dirfd);
}

int cmd_listen(const struct opts *o)
{
	struct server sv = { .o = o, .dirfd = -1 };
	enum status s;

	out_init(&sv.out, "listen", o->json);
	sv.out.quiet = o->quiet;
	sv.out.secured = opts_secured(o);
	sv.out.drops = true;
	if (!o->json && (o->log || out_log_is_journal()) &&
	    out_log_begin(&sv.out, out_log_is_journal())) {
		out_error(&sv.out, 0, NULL, "--log: %s", strerror(errno));
		return ST_FAILED;
	}
	s = start_server(&sv);
	if (!s)
		s = serve_sessions(&sv);
	if (!s && !is_server_done(&sv))
		farewell(&sv);
	if (!s)
		link_settle(sv.ctx);
	release_server(&sv);
	if (ddps_capture_close(sv.capture)) {
		out_error(&sv.out, 0, text_file_advice(errno), "--capture %s: %s", o->capture,
			  strerror(errno));
		s = s ? s : ST_FAILED;
	}
	return (int)(out_finish(&sv.out) && !s ? ST_FAILED : s);
}
