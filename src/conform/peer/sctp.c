/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's SCTP: associations with the target, and the user messages on them. */
#include "conform/peer/sctp_packet.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what carriers tell ---- */

struct cf_assoc *cf_sctp_accept(struct cf_net *n)
{
	struct cf_assoc *as = n->waiting;

	n->waiting = NULL;
	if (as)
		as->up = true;
	return as;
}

void cf_sctp_heard(struct cf_assoc *as, uint16_t stream, uint32_t ppid, bool unordered,
		   const uint8_t *data, size_t len)
{
	struct cf_queued *q = calloc(1, sizeof *q);

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
	as->held += len;
	cf_trace_sctp(as->net->cf->trace, true, as->number, stream, ppid, data, len);
}

void cf_sctp_gone(struct cf_assoc *as, const char *fmt, ...)
{
	va_list ap;

	if (as->gone)
		return;
	va_start(ap, fmt);
	vsnprintf(as->end, sizeof as->end, fmt, ap);
	va_end(ap);
	as->gone = true;
}

/* ---- associations ---- */

static void pump_carrier(struct cf *cf, uint64_t since, const char *waits_for)
{
	struct cf_net *n = cf->res->net;
	const char *note = cf->conn->assoc->note;
	struct pollfd p[CF_SCTP_FDS];
	char what[200];
	int left;
	uint64_t due = n->carrier->due(n), now = cf_now();

	snprintf(what, sizeof what, "%s%s%s%s", waits_for, note ? " (" : "", note ? note : "",
		 note ? ")" : "");
	left = cf_left(cf, since, what);
	if (due <= now)
		left = 0;
	else if ((due - now) / 1000000 < (uint64_t)left)
		left = (int)((due - now) / 1000000) + 1;
	poll(p, n->carrier->fds(n, p, CF_SCTP_FDS), cf_nap(cf, since, left));
	cf_woke(cf);
	n->carrier->step(n);
}

void cf_sctp_step(struct cf *cf)
{
	struct cf_net *n = cf->res->net;

	if (n)
		n->carrier->step(n);
}

static struct cf_net *net_on(struct cf *cf, const struct cf_carrier *carrier)
{
	struct cf_net *n = cf->res->net;

	if (n)
		return n;
	n = calloc(1, sizeof *n);
	CF_CHECK(cf, n, "out of memory");
	n->cf = cf;
	n->carrier = carrier;
	cf->res->net = n;
	return n;
}

static struct cf_net *get_carrier(struct cf *cf, const struct cf_at *at)
{
	bool kernel = !strcmp(at->backend, "kernel") ||
		      ((!*at->backend || !strcmp(at->backend, "auto")) && cf_sctp_kernel_there());

	return net_on(cf, kernel && !cf->run->secured ? &cf_sctp_kernel : &cf_sctp_packets);
}

static void listen_here(struct cf *cf)
{
	const char *text = cf->self ? cf_self_uri(cf) : cf->run->uri;
	struct cf_at at;
	struct cf_net *n;
	int err;

	cf_address(cf, text, &at);
	n = get_carrier(cf, &at);
	err = n->listening ? 0 : n->carrier->listen(n, &at, n->uri, sizeof n->uri);
	CF_CHECK(cf, !err, "cannot listen on %s: %s", text, strerror(err));
	n->listening = true;
}

static void find_target_address(struct cf *cf, struct cf_at *at)
{
	char text[200];

	cf_address(cf, cf->self ? cf_app_uri(cf, text, sizeof text) : cf->run->uri, at);
}

static void dial_association(struct cf *cf, struct cf_assoc *as)
{
	struct cf_at at;
	int err;

	find_target_address(cf, &at);
	as->net = get_carrier(cf, &at);
	err = as->net->carrier->dial(as, &at);
	CF_CHECK(cf, !err, "association: %s", strerror(err));
}

static struct cf_assoc *new_assoc(struct cf *cf)
{
	struct cf_conn *c = cf_conn_new(cf);
	struct cf_assoc *as = calloc(1, sizeof *as);

	CF_CHECK(cf, as, "out of memory");
	c->assoc = as;
	as->number = c->number;
	as->last = &as->first;
	return as;
}

/* A carrier that takes whole packets: not the operating system. */
static struct cf_net *get_packet_carrier(struct cf *cf, const struct cf_at *at)
{
	if (at->encap == CF_ENCAP_OFF && cf_sctp_kernel_there())
		cf_skip(cf, "SCTP of this system would answer too: use UDP encapsulation");
	return net_on(cf, &cf_sctp_packets);
}

struct cf_assoc *cf_sctp_bare(struct cf *cf)
{
	struct cf_assoc *as = new_assoc(cf);
	const char *text = cf->self ? cf_self_uri(cf) : cf->run->uri;
	struct cf_at at;
	int err;

	if (cf->c->target == CF_RESPONDER) {
		find_target_address(cf, &at);
		as->net = get_packet_carrier(cf, &at);
		err = cf_link_open(as, &at);
		CF_CHECK(cf, !err, "socket: %s", strerror(err));
		return as;
	}
	cf_address(cf, text, &at);
	as->net = get_packet_carrier(cf, &at);
	if (!as->net->listening) {
		err = as->net->carrier->listen(as->net, &at, as->net->uri, sizeof as->net->uri);
		CF_CHECK(cf, !err, "cannot listen on %s: %s", text, strerror(err));
		as->net->listening = true;
	}
	cf_provoke(cf, as->net->uri);
	return as;
}

void cf_sctp_open(struct cf *cf)
{
	struct cf_assoc *as = new_assoc(cf);
	uint64_t since = cf_now();

	if (cf->c->target == CF_RESPONDER) {
		dial_association(cf, as);
	} else {
		listen_here(cf);
		as->net = cf->res->net;
		as->net->waiting = as;
		cf_provoke(cf, as->net->uri);
	}
	while (!as->up && !as->gone)
		pump_carrier(cf, since, "an association with the target");
	CF_CHECK(cf, as->up, "no association: %s", as->end);
	cf->dialling = false;
	cf->res->awaited = false;
}

void cf_sctp_close(struct cf *cf)
{
	struct cf_net *n = cf->res->net;

	if (n)
		n->carrier->close(n);
	for (struct cf_conn *c = cf->conns; c; c = c->next) {
		struct cf_assoc *as = c->assoc;

		while (as && as->first) {
			struct cf_queued *q = as->first;

			as->first = q->next;
			free(q);
		}
		free(as);
	}
	free(n);
}

/* ---- messages ---- */

void cf_sctp_write(struct cf *cf, uint16_t stream, uint32_t ppid, const void *p, size_t len)
{
	struct cf_assoc *as = cf->conn->assoc;
	uint64_t since = cf_now();

	cf_trace_sctp(cf->trace, false, as->number, stream, ppid, p, len);
	/* If the target is gone, what comes next in the case says. */
	while (!as->gone && !as->net->carrier->send(as, stream, ppid, p, len))
		pump_carrier(cf, since, "the target to take a message");
}

/* The queued message at @at is taken out. */
static const struct cf_msg *take_queued_message(struct cf_assoc *as, struct cf_queued **at)
{
	struct cf_queued *q = *at;

	as->net->msg = q->m;
	as->held -= q->m.len;
	*at = q->next;
	if (!*at)
		as->last = at;
	free(q);
	return &as->net->msg;
}

/* Wait for one more message than seen up to @at.  Return: false if the association ended. */
static bool wait_for_message(struct cf *cf, struct cf_queued **at, uint64_t since)
{
	struct cf_assoc *as = cf->conn->assoc;

	while (!*at && !as->gone)
		pump_carrier(cf, since, "a message of the target");
	cf->ended = !*at;
	if (!*at)
		cf_closed(cf);
	return *at;
}

const struct cf_msg *cf_sctp_read(struct cf *cf)
{
	struct cf_assoc *as = cf->conn->assoc;

	CF_CHECK(cf, wait_for_message(cf, &as->first, cf_now()), "the association ended: %s",
		 as->end);
	return take_queued_message(as, &as->first);
}

const struct cf_msg *cf_sctp_read_ctrl(struct cf *cf)
{
	struct cf_assoc *as = cf->conn->assoc;
	struct cf_queued **at = &as->first;
	uint64_t since = cf_now();

	for (; wait_for_message(cf, at, since); at = &(*at)->next)
		if (cf->self || (*at)->m.ppid != PPID_SEGMENT)
			return take_queued_message(as, at);
	cf_fail(cf, "the association ended: %s", as->end);
}

/* The place of the session's next message; NULL: the association ended before it came. */
static struct cf_queued **find_session_message(struct cf *cf)
{
	struct cf_queued **at = &cf->conn->assoc->first;
	uint64_t since = cf_now();

	for (; wait_for_message(cf, at, since); at = &(*at)->next)
		if ((*at)->m.stream == cf->conn->stream && (*at)->m.len >= 2 &&
		    cf_get16((*at)->m.b) == cf->conn->rx_ssn)
			return at;
	return NULL;
}

const struct cf_msg *cf_sctp_in_order(struct cf *cf)
{
	struct cf_queued **at = find_session_message(cf);
	const struct cf_msg *m;

	CF_CHECK(cf, at, "the association ended: %s", cf->conn->assoc->end);
	m = take_queued_message(cf->conn->assoc, at);
	CF_CHECK(cf, m->unordered, "an ordered message: %s", cf_hex(m->b, m->len));
	cf->conn->rx_ssn++;
	return m;
}

bool cf_sctp_ended(struct cf *cf)
{
	struct cf_queued **at = find_session_message(cf);

	return !at || (*at)->m.ppid == PPID_CONTROL;
}

void cf_sctp_expect_end(struct cf *cf)
{
	struct cf_queued **at = find_session_message(cf);
	const struct cf_msg *m;
	bool ends;

	if (!at)
		return;
	m = take_queued_message(cf->conn->assoc, at);
	cf->conn->rx_ssn++;
	ends = m->ppid == PPID_CONTROL && m->len == 4 && cf_get16(m->b + 2) == CF_TERMINATE;
	if (!ends)
		cf->stop = DDPS_CONFORM_STOP_WENT_ON;
	CF_CHECK(cf, ends, "expected the session's Terminate, got PPID %u: %s", m->ppid,
		 cf_hex(m->b, m->len));
}

void cf_expect_gone(struct cf *cf)
{
	struct cf_assoc *as = cf->conn->assoc;
	uint64_t since = cf_now();

	while (!as->gone)
		pump_carrier(cf, since, "the association to end");
}

void cf_sctp_abort(struct cf *cf)
{
	cf->conn->assoc->net->carrier->abort(cf->conn->assoc);
}

void cf_sctp_shutdown(struct cf *cf)
{
	cf->conn->assoc->net->carrier->shutdown(cf->conn->assoc);
}
