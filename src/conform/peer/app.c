/* SPDX-License-Identifier: BSD-2-Clause */
/* The target's application: our own stack through its public API, or a command to run. */
#include "conform/peer/inside.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CQ_DEPTH 4096
#define FILL	 7
#define STEP_MS	 5 /* the peer of SCTP is looked after so often */

#define COMMAND_TICK_MS 50

struct cf_app_mem {
	struct cf_app_mem *next;
	uint8_t b[];
};

static void check_app_call(struct cf *cf, int err, const char *what)
{
	CF_CHECK(cf, err >= 0, "application: %s: %s", what, ddps_strerror(err));
}

static uint8_t *alloc_app_memory(struct cf *cf, size_t len)
{
	struct cf_app_mem *m = calloc(1, sizeof *m + len + 1);

	CF_CHECK(cf, m, "out of memory");
	m->next = cf->res->mem;
	cf->res->mem = m;
	return m->b;
}

void cf_app_start(struct cf *cf)
{
	struct cf_app *a = &cf->app;
	struct ddps_ctx_attr attr;

	ddps_conn_param_init(&a->param);
	if (!cf->self)
		return;
	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	check_app_call(cf, ddps_ctx_new(&a->ctx, &attr), "context");
	check_app_call(cf, ddps_pd_new(a->ctx, &a->pd), "protection domain");
	check_app_call(cf, ddps_cq_new(a->ctx, CQ_DEPTH, &a->cq), "completion queue");
	ddps_ep_attr_init(&a->attr);
	a->attr.pd = a->pd;
	a->attr.send_cq = a->attr.recv_cq = a->cq;
}

void cf_app_stop(struct cf *cf)
{
	struct cf_app_mem *m;

	ddps_ctx_free(cf->app.ctx);
	while ((m = cf->res->mem)) {
		cf->res->mem = m->next;
		free(m);
	}
}

const char *cf_app_uri(struct cf *cf, char *buf, size_t len)
{
	struct cf_app *a = &cf->app;

	if (!a->listener)
		check_app_call(cf, ddps_listen(a->ctx, cf_self_uri(cf), NULL, &a->listener),
			       "listening");
	check_app_call(cf, ddps_listener_uri(a->listener, buf, len), "the listener's URI");
	return buf;
}

static void need_ep(struct cf *cf)
{
	CF_CHECK(cf, cf->self, "case: it needs the target's application, and does not say so");
	if (!cf->app.ep)
		check_app_call(cf, ddps_ep_new(cf->app.ctx, &cf->app.attr, &cf->app.ep),
			       "endpoint");
}

void cf_app_answer(struct cf *cf)
{
	struct cf_app *a = &cf->app;

	if (!cf->self || cf->c->target != CF_RESPONDER)
		return;
	a->request = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	need_ep(cf);
	check_app_call(cf, ddps_accept(a->request.request, a->ep, &a->param), "accepting");
}

/* ---- making the target connect ---- */

static void run_command(struct cf *cf, const char *uri)
{
	int pid;

	if (!cf->run->then)
		return;
	pid = fork();
	CF_CHECK(cf, pid >= 0, "fork failed");
	if (pid) {
		cf->res->child = pid;
		cf->res->awaited = true;
		return;
	}
	setpgid(0, 0);
	setenv("DDPS_URI", uri, 1);
	execl("/bin/sh", "sh", "-c", cf->run->then, (char *)NULL);
	_exit(127);
}

void cf_provoke(struct cf *cf, const char *uri)
{
	if (!cf->self) {
		run_command(cf, uri);
		return;
	}
	need_ep(cf);
	check_app_call(cf, ddps_connect(cf->app.ep, uri, &cf->app.param), "connecting");
}

int cf_provoked_left(struct cf *cf, int left)
{
	siginfo_t info = { 0 };

	if (!cf->res->awaited)
		return left;
	/* It may have connected and ended since the caller looked: once more before giving up. */
	if (cf->res->over)
		cf_fail(cf, "the command failed before the target connected");
	if (!waitid(P_PID, (id_t)cf->res->child, &info, WEXITED | WNOHANG | WNOWAIT))
		cf->res->over = info.si_pid && info.si_status;
	return left < COMMAND_TICK_MS ? left : COMMAND_TICK_MS;
}

void cf_provoked_end(struct cf *cf)
{
	if (!cf->res->child)
		return;
	/* The shell and what it started: a group of its own. */
	kill(-cf->res->child, SIGTERM);
	kill(cf->res->child, SIGTERM);
	waitpid(cf->res->child, NULL, 0);
}

/* ---- work ---- */

void cf_app_recv(struct cf *cf, unsigned n, size_t len)
{
	need_ep(cf);
	while (n--) {
		uint8_t *b = alloc_app_memory(cf, len);
		struct ddps_sge sge = { .addr = b, .len = (uint32_t)len };
		struct ddps_mr *mr;

		if (len) {
			check_app_call(cf,
				       ddps_mr_reg(cf->app.pd, b, len, DDPS_LOCAL_WRITE, NULL, &mr),
				       "registering a receive");
			sge.lkey = ddps_mr_stag(mr);
		}
		check_app_call(cf, ddps_post_recv(cf->app.ep, (uintptr_t)b, &sge, len ? 1 : 0),
			       "posting a receive");
	}
}

const uint8_t *cf_app_recv_data(struct cf *cf, const struct ddps_wc *wc)
{
	(void)cf;
	return (const uint8_t *)(uintptr_t)wc->wr_id;
}

struct cf_mr cf_app_mr(struct cf *cf, size_t len, unsigned access)
{
	struct cf_mr m = { .len = len };

	CF_CHECK(cf, cf->self, "case: it needs the target's application, and does not say so");
	m.mem = alloc_app_memory(cf, len);
	cf_fill(m.mem, len, FILL);
	check_app_call(cf, ddps_mr_reg(cf->app.pd, m.mem, len, access, NULL, &m.mr), "registering");
	m.stag = ddps_mr_stag(m.mr);
	m.to = ddps_mr_to(m.mr);
	return m;
}

void cf_app_post(struct cf *cf, enum ddps_op op, unsigned flags, const struct cf_mr *mr,
		 uint32_t len, uint32_t stag, uint64_t to)
{
	struct ddps_sge sge = { mr ? mr->mem : NULL, len, mr ? mr->stag : 0 };
	struct ddps_send_wr wr = { .wr_id = (uint64_t)op,
				   .op = op,
				   .flags = flags,
				   .sge = &sge,
				   .nsge = mr ? 1 : 0,
				   .stag = stag,
				   .to = to };

	check_app_call(cf, ddps_post_send(cf->app.ep, &wr), "posting");
}

/* Over SCTP the peer acknowledges what comes meanwhile: a session ends when that is done. */
static int nap_app(struct cf *cf, uint64_t since)
{
	const int left = cf_ms_left(cf, since);

	return cf_nap(cf, since, cf->res->net && left > STEP_MS ? STEP_MS : left);
}

/* Whether there is time for another look after one that said @err. */
static bool app_waits(struct cf *cf, uint64_t since, int err)
{
	cf_sctp_step(cf);
	return (err == DDPS_E_TIMEDOUT || err == DDPS_E_AGAIN) && cf_ms_left(cf, since);
}

struct ddps_wc cf_app_wc(struct cf *cf)
{
	uint64_t since = cf_now();
	struct ddps_wc wc;
	int n;

	do {
		n = ddps_cq_wait(cf->app.cq, &wc, 1, nap_app(cf, since));
		cf_woke(cf);
	} while (app_waits(cf, since, n));
	CF_CHECK(cf, n == 1, "application: no completion came");
	return wc;
}

void cf_app_no_wc(struct cf *cf)
{
	struct ddps_wc wc;

	CF_CHECK(cf, !ddps_cq_poll(cf->app.cq, &wc, 1), "application: a completion of a %s (%s)",
		 ddps_op_name(wc.op), ddps_wc_status_name(wc.status));
}

bool cf_app_next(struct cf *cf, struct ddps_event *ev)
{
	uint64_t since = cf_now();
	int err;

	do {
		err = ddps_event_wait(cf->app.ctx, ev, nap_app(cf, since));
		cf_woke(cf);
	} while (app_waits(cf, since, err));
	return !err;
}

struct ddps_event cf_app_event(struct cf *cf, enum ddps_event_type type)
{
	struct ddps_event ev;

	CF_CHECK(cf, cf_app_next(cf, &ev), "application: no event, wanted '%s'",
		 ddps_event_name(type));
	CF_CHECK(cf, ev.type == type, "application: event '%s' instead of '%s': %s",
		 ddps_event_name(ev.type), ddps_event_name(type), ev.error.text);
	return ev;
}
