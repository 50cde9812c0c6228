/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's SCTP: user messages over one of the library's two carriers of associations. */
#include "conform/cases/cases_sctp.h"
#include "conform/run.h"
#include "sctp_ddp/sd_backend.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct queued {
	struct queued *next;
	struct cf_msg m;
};

struct cf_assoc {
	struct cf_net *net;
	struct ddps_sd_assoc *a;
	unsigned number;
	bool up, gone;
	struct ddps_error end;
	struct queued *first, **last;
};

struct cf_net {
	struct cf *cf;
	struct ddps_env env;
	void *ctx;
	const struct ddps_sd_backend *b;
	struct ddps_sd_endpoint *ep;
	struct cf_assoc *waiting; /* for the target to come */
	struct cf_msg msg;	  /* the latest one read */
};

/* ---- upcalls ---- */

static void on_up(void *user)
{
	((struct cf_assoc *)user)->up = true;
}

static void on_message(void *user, uint16_t stream, uint32_t ppid, bool unordered,
		       const uint8_t *data, size_t len)
{
	struct cf_assoc *as = user;
	struct queued *q = calloc(1, sizeof *q);

	if (!q || len > sizeof q->m.b) { /* the case will miss it and fail */
		free(q);
		return;
	}
	q->m.stream = stream;
	q->m.ppid = ppid;
	q->m.unordered = unordered;
	q->m.len = len;
	if (len)
		memcpy(q->m.b, data, len);
	*as->last = q;
	as->last = &q->next;
	cf_trace_sctp(as->net->cf->trace, true, as->number, stream, ppid, data, len);
}

static void on_gone(void *user, const struct ddps_error *e)
{
	struct cf_assoc *as = user;

	as->gone = true;
	as->end = *e;
}

static void nothing(void *user)
{
	(void)user;
}

static const struct ddps_sd_assoc_up up = {
	.comm_up = on_up,
	.message = on_message,
	.writable = nothing,
	.dry = nothing,
	.peer_shutdown = nothing,
	.restarted = nothing,
	.gone = on_gone,
};

static void on_accepted(void *user, struct ddps_sd_assoc *a)
{
	struct cf_net *n = user;
	struct cf_assoc *as = n->waiting;

	if (!as) {
		n->b->free(a);
		return;
	}
	n->waiting = NULL;
	as->a = a;
	as->up = true;
	n->b->set_up(a, &up, as);
}

static void on_failed(void *user, const struct ddps_error *e)
{
	(void)user;
	(void)e; /* nobody comes then, and the case says so */
}

static const struct ddps_sd_listen_up listen_up = { on_accepted, on_failed };

/* ---- associations ---- */

static void pump(struct cf *cf, uint64_t since, const char *what)
{
	struct ddps_loop *l = cf->res->net->env.loop;
	struct pollfd p = { ddps_loop_fd(l), POLLIN, 0 };

	poll(&p, 1, cf_left(cf, since, what));
	CF_CHECK(cf, ddps_loop_run(l) >= 0, "the peer's loop failed");
}

static struct cf_net *net(struct cf *cf, const struct ddps_uri *uri)
{
	struct cf_net *n = cf->res->net;

	if (n)
		return n;
	n = calloc(1, sizeof *n);
	CF_CHECK(cf, n, "out of memory");
	n->cf = cf;
	n->env.scratch = malloc(DDPS_SCRATCH_LEN);
	if (!n->env.scratch || ddps_loop_new(&n->env.loop)) {
		free(n->env.scratch);
		free(n);
		cf_fail(cf, "out of memory");
	}
	n->b = &ddps_sd_usrsctp;
	if (!strcmp(uri->backend, "kernel") ||
	    (strcmp(uri->backend, "usrsctp") && ddps_sd_kernel.available()))
		n->b = &ddps_sd_kernel;
	cf->res->net = n;
	return n;
}

static void listen_here(struct cf *cf, char *uri, size_t len)
{
	const char *text = cf->self ? "sctp://127.0.0.1:0?backend=usrsctp&encap=0" : cf->run->uri;
	struct sockaddr_storage ss;
	struct ddps_uri u;
	socklen_t ss_len = sizeof ss;
	uint16_t encap;
	char at[80];
	struct cf_net *n;

	cf_address(cf, text, &u, &ss, &ss_len);
	n = net(cf, &u);
	if (!n->ep)
		CF_CHECK(cf,
			 !n->b->listen(&n->env, &n->ctx, &u, (struct sockaddr *)&ss, ss_len, 16,
				       &listen_up, n, &n->ep),
			 "cannot listen on %s", text);
	n->b->endpoint_addr(n->ep, at, sizeof at, &encap);
	if (encap)
		snprintf(uri, len, "sctp://%s?backend=%s&encap=%u", at, n->b->name, encap);
	else
		snprintf(uri, len, "sctp://%s?backend=%s&encap=off", at, n->b->name);
}

static void dial(struct cf *cf, struct cf_assoc *as)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	struct ddps_uri u;
	char text[200];
	int err;

	cf_address(cf, cf->self ? cf_app_uri(cf, text, sizeof text) : cf->run->uri, &u, &ss, &len);
	as->net = net(cf, &u);
	err = as->net->b->connect(&as->net->env, &as->net->ctx, &u, (struct sockaddr *)&ss, len,
				  cf->run->limit_ms, &up, as, &as->a);
	CF_CHECK(cf, !err, "association: %s", ddps_strerror(err));
}

void cf_sctp_open(struct cf *cf)
{
	struct cf_conn *c = cf_conn_new(cf);
	struct cf_assoc *as = calloc(1, sizeof *as);
	uint64_t since = ddps_now();
	char uri[160];

	CF_CHECK(cf, as, "out of memory");
	c->assoc = as;
	as->number = c->number;
	as->last = &as->first;
	if (cf->c->target == CF_RESPONDER) {
		dial(cf, as);
	} else {
		listen_here(cf, uri, sizeof uri);
		as->net = cf->res->net;
		as->net->waiting = as;
		cf_provoke(cf, uri);
	}
	while (!as->up && !as->gone)
		pump(cf, since, "an association with the target");
	CF_CHECK(cf, as->up, "no association: %s", as->end.text);
	cf->dialling = false;
	cf->res->awaited = false;
}

void cf_sctp_close(struct cf *cf)
{
	struct cf_net *n = cf->res->net;

	for (struct cf_conn *c = cf->conns; c; c = c->next) {
		struct cf_assoc *as = c->assoc;

		if (!as)
			continue;
		if (as->a)
			n->b->free(as->a);
		while (as->first) {
			struct queued *q = as->first;

			as->first = q->next;
			free(q);
		}
		free(as);
	}
	if (!n)
		return;
	if (n->ep)
		n->b->endpoint_free(n->ep);
	n->b->fini(&n->env, n->ctx);
	ddps_loop_free(n->env.loop);
	free(n->env.scratch);
	free(n);
}

/* ---- messages ---- */

void cf_sctp_write(struct cf *cf, uint16_t stream, uint32_t ppid, const void *p, size_t len)
{
	struct cf_assoc *as = cf->conn->assoc;
	/* The backend only reads it. */
	struct iovec iov = { (void *)(uintptr_t)p, len };
	uint64_t since = ddps_now();

	cf_trace_sctp(cf->trace, false, as->number, stream, ppid, p, len);
	while (!as->gone) {
		int err = as->net->b->send(as->a, stream, ppid, &iov, 1);

		if (err != DDPS_E_AGAIN)
			return; /* if the target is gone, what comes next in the case tells */
		pump(cf, since, "the target to take a message");
	}
}

/* The queued message at @at is taken out. */
static const struct cf_msg *take(struct cf_assoc *as, struct queued **at)
{
	struct queued *q = *at;

	as->net->msg = q->m;
	*at = q->next;
	if (!*at)
		as->last = at;
	free(q);
	return &as->net->msg;
}

/* Wait for one more message than seen up to @at.  Return: false if the association ended. */
static bool more(struct cf *cf, struct queued **at, uint64_t since)
{
	struct cf_assoc *as = cf->conn->assoc;

	while (!*at && !as->gone)
		pump(cf, since, "a message of the target");
	return *at;
}

const struct cf_msg *cf_sctp_read(struct cf *cf)
{
	struct cf_assoc *as = cf->conn->assoc;

	CF_CHECK(cf, more(cf, &as->first, ddps_now()), "the association ended: %s", as->end.text);
	return take(as, &as->first);
}

const struct cf_msg *cf_sctp_read_ctrl(struct cf *cf)
{
	struct cf_assoc *as = cf->conn->assoc;
	struct queued **at = &as->first;
	uint64_t since = ddps_now();

	for (; more(cf, at, since); at = &(*at)->next)
		if (cf->self || (*at)->m.ppid != PPID_SEGMENT)
			return take(as, at);
	cf_fail(cf, "the association ended: %s", as->end.text);
}

/* The place of the session's next message; NULL: the association ended before it came. */
static struct queued **find(struct cf *cf)
{
	struct queued **at = &cf->conn->assoc->first;
	uint64_t since = ddps_now();

	for (; more(cf, at, since); at = &(*at)->next)
		if ((*at)->m.stream == cf->conn->stream && (*at)->m.len >= 2 &&
		    cf_get16((*at)->m.b) == cf->conn->rx_ssn)
			return at;
	return NULL;
}

const struct cf_msg *cf_sctp_in_order(struct cf *cf)
{
	struct queued **at = find(cf);
	const struct cf_msg *m;

	CF_CHECK(cf, at, "the association ended: %s", cf->conn->assoc->end.text);
	m = take(cf->conn->assoc, at);
	CF_CHECK(cf, m->unordered, "an ordered message: %s", cf_hex(m->b, m->len));
	cf->conn->rx_ssn++;
	return m;
}

bool cf_sctp_ended(struct cf *cf)
{
	struct queued **at = find(cf);

	return !at || (*at)->m.ppid == PPID_CONTROL;
}

void cf_sctp_expect_end(struct cf *cf)
{
	struct queued **at = find(cf);
	const struct cf_msg *m;

	if (!at)
		return;
	m = take(cf->conn->assoc, at);
	cf->conn->rx_ssn++;
	CF_CHECK(cf, m->ppid == PPID_CONTROL && m->len == 4 && cf_get16(m->b + 2) == CF_TERMINATE,
		 "expected the session's Terminate, got PPID %u: %s", m->ppid,
		 cf_hex(m->b, m->len));
}

void cf_expect_gone(struct cf *cf)
{
	struct cf_assoc *as = cf->conn->assoc;
	uint64_t since = ddps_now();

	while (!as->gone)
		pump(cf, since, "the association to end");
}

void cf_sctp_abort(struct cf *cf)
{
	cf->conn->assoc->net->b->abort(cf->conn->assoc->a);
}

void cf_sctp_shutdown(struct cf *cf)
{
	cf->conn->assoc->net->b->shutdown(cf->conn->assoc->a);
}
