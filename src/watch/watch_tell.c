/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a context as JSON: a few sessions are copied with the lock held, and written without
 * it.  Of what is written nothing is a peer's: no private data, no text of an error.  Its name is, where
 * a CA or a key vouches for it.
 */
#include "watch/watch_in.h"
#include "common/who.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH	32 /* sessions copied at a time */
#define LOCK_MS 1000
#define URIS	64 /* listeners that are named; "listeners" counts all */

/* One session, and what is below it. */
struct row {
	uint64_t serial;
	enum ddps_ep_state state;
	struct ddps_conn_info info;
	struct ddps_ep_stats st;
	bool has_tcp, has_assoc, has_path;
	char is[DDPS_PEER_NAME], version[16], suite[40]; /* "": not secured */
	struct ddps_llp_tcp tcp;
	struct ddps_assoc_stats assoc;
	struct ddps_path_stats path; /* that new data goes to */
};

struct teller {
	const struct ddps_watch_subject *s;
	struct ddps_watch_own own;
	ddps_watch_put *put;
	void *user;
	bool over; /* nobody listens any more */
	size_t len;
	char text[4096];
	struct ddps_ctx_stats st;
	struct ddps_secured_stats secured;
	struct row row[BATCH];
	unsigned listeners;
	char uri[URIS][256];
};

/* ---- text ---- */

static void flush_teller(struct teller *t)
{
	if (t->len && !t->over)
		t->over = !t->put(t->user, t->text, t->len);
	t->len = 0;
}

static void write_teller(struct teller *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* At most a quarter of the buffer at a time. */
static void write_teller(struct teller *t, const char *fmt, ...)
{
	va_list ap;

	if (t->len >= sizeof t->text * 3 / 4)
		flush_teller(t);
	va_start(ap, fmt);
	t->len += (size_t)vsnprintf(t->text + t->len, sizeof t->text - t->len, fmt, ap);
	va_end(ap);
}

/* A string in quotes; a program's name may be any octets: what is not ASCII is a '?'. */
static void say_string(struct teller *t, const char *s)
{
	char clean[256];
	size_t n = 0;

	for (; *s && n < sizeof clean - 2; s++) {
		if (*s == '"' || *s == '\\')
			clean[n++] = '\\';
		clean[n++] = *s >= ' ' && *s < 0x7f ? *s : '?';
	}
	clean[n] = 0;
	write_teller(t, "\"%s\"", clean);
}

static void say_text(struct teller *t, const char *name, const char *s)
{
	write_teller(t, ",\"%s\":", name);
	say_string(t, s);
}

static void say_number(struct teller *t, const char *name, uint64_t v)
{
	write_teller(t, ",\"%s\":%" PRIu64, name, v);
}

static void say_bool(struct teller *t, const char *name, bool v)
{
	write_teller(t, ",\"%s\":%s", name, v ? "true" : "false");
}

/* ---- what is reported ---- */

static void say_messages(struct teller *t, const char *name, const struct ddps_msg_stats *m)
{
	struct ddps_msg_stats sum = { .messages = 0 };

	for (int i = 0; i < DDPS_STAT_OPS; i++) {
		sum.messages += m[i].messages;
		sum.segments += m[i].segments;
		sum.octets += m[i].octets;
	}
	write_teller(t,
		     ",\"%s\":{\"messages\":%" PRIu64 ",\"segments\":%" PRIu64
		     ",\"octets\":%" PRIu64 "}",
		     name, sum.messages, sum.segments, sum.octets);
}

static void say_counters(struct teller *t, const struct ddps_ep_stats *st)
{
	say_messages(t, "sent", st->sent);
	say_messages(t, "received", st->received);
	say_number(t, "sends_posted", st->sends_posted);
	say_number(t, "recvs_posted", st->recvs_posted);
	say_number(t, "recvs_out", st->recvs_out);
	say_number(t, "reads_out", st->reads_out);
	say_number(t, "reads_in", st->reads_in);
	say_number(t, "held_octets", st->held_octets);
	say_number(t, "stalls", st->stalls);
	say_number(t, "over_share", st->over_share);
	say_number(t, "no_buffer", st->no_buffer);
	say_number(t, "sq_full", st->sq_full);
	say_number(t, "rq_full", st->rq_full);
	say_number(t, "ird_overrun", st->ird_overrun);
	say_number(t, "cq_overflow", st->cq_overflow);
}

static const char *rtr_name(unsigned rtr)
{
	return rtr == DDPS_RTR_SEND    ? "send"
	       : rtr == DDPS_RTR_WRITE ? "write"
	       : rtr == DDPS_RTR_READ  ? "read"
				       : "none";
}

static void say_negotiated(struct teller *t, const struct ddps_conn_info *i)
{
	say_bool(t, "enhanced", i->enhanced);
	say_number(t, "ird", i->ird);
	say_number(t, "ord", i->ord);
	say_number(t, "peer_ird", i->peer_ird);
	say_number(t, "peer_ord", i->peer_ord);
	say_bool(t, "p2p", i->p2p);
	write_teller(t, ",\"rtr\":\"%s\"", rtr_name(i->rtr));
	say_number(t, "mulpdu", i->mulpdu);
	if (i->transport == DDPS_TRANSPORT_SHM) {
		say_number(t, "peer_pid", i->shm.pid);
		say_number(t, "peer_uid", i->shm.uid);
		say_number(t, "peer_gid", i->shm.gid);
	}
	if (i->transport == DDPS_TRANSPORT_TCP || i->transport == DDPS_TRANSPORT_SHM) {
		say_number(t, "mpa_rev", i->mpa.rev);
		say_bool(t, "crc", i->mpa.crc);
		say_bool(t, "markers_tx", i->mpa.markers_tx);
		say_bool(t, "markers_rx", i->mpa.markers_rx);
	} else if (i->transport == DDPS_TRANSPORT_SCTP) {
		write_teller(t, ",\"backend\":\"%s\"", i->sctp.backend);
		say_number(t, "stream", i->sctp.stream);
		say_number(t, "encap", i->sctp.encap);
	}
}

static void say_assoc(struct teller *t, const struct ddps_assoc_stats *a)
{
	say_number(t, "packets_sent", a->packets_sent);
	say_number(t, "packets_received", a->packets_received);
	say_number(t, "chunks_sent", a->chunks_sent);
	say_number(t, "chunks_received", a->chunks_received);
	say_number(t, "retransmitted", a->retransmitted);
	say_number(t, "timeouts", a->timeouts);
	say_number(t, "duplicates", a->duplicates);
	say_number(t, "gaps", a->gaps);
	say_number(t, "restarts", a->restarts);
	say_number(t, "unsent", a->unsent);
	say_number(t, "unacked", a->unacked);
	say_number(t, "out_of_order", a->out_of_order);
	say_number(t, "rwnd", a->rwnd);
	say_number(t, "peer_rwnd", a->peer_rwnd);
	say_number(t, "paths", a->paths);
	say_number(t, "shares_association_with", a->sessions - 1u);
}

static void say_wire(struct teller *t, const struct row *r)
{
	if (r->has_tcp) {
		say_number(t, "retransmitted", r->tcp.retransmitted);
		say_number(t, "srtt_ns", r->tcp.srtt_ns);
		say_number(t, "cwnd", r->tcp.cwnd);
		say_number(t, "unacked", r->tcp.unacked);
	}
	if (r->has_assoc)
		say_assoc(t, &r->assoc);
	if (r->has_path) {
		say_number(t, "srtt_ns", r->path.srtt_ns);
		say_number(t, "cwnd", r->path.cwnd);
		say_number(t, "mtu", r->path.mtu);
	}
}

/* As the scheme of its URI. */
static const char *name_wire(const struct row *r)
{
	switch (r->info.transport) {
	case DDPS_TRANSPORT_TCP:
		return r->is[0] ? "tls" : "tcp";
	case DDPS_TRANSPORT_SCTP:
		return r->is[0] ? "sctps" : "sctp";
	case DDPS_TRANSPORT_SHM:
		return "shm";
	case DDPS_TRANSPORT_NONE:
		break;
	}
	return "none";
}

static void say_row(struct teller *t, const struct row *r, bool first)
{
	write_teller(t, "%s{\"session\":%" PRIu64 ",\"state\":\"%s\",\"transport\":\"%s\"",
		     first ? "" : ",", r->serial, ddps_ep_state_name(r->state), name_wire(r));
	say_bool(t, "initiator", r->info.initiator);
	say_text(t, "local", r->info.local);
	say_text(t, "peer", r->info.peer);
	if (r->is[0]) {
		say_text(t, "peer_id", r->is);
		say_text(t, "secured", r->version);
		say_text(t, "suite", r->suite);
	}
	say_negotiated(t, &r->info);
	say_counters(t, &r->st);
	say_wire(t, r);
	write_teller(t, "}");
}

/* ---- with the lock ---- */

/* Who the peer is has been judged, and its name is clean. */
static void copy_who(struct row *r, const struct ddps_who *who)
{
	if (!who)
		return;
	snprintf(r->is, sizeof r->is, "%s", ddps_who_text(who, DDPS_WHO_NAME));
	snprintf(r->version, sizeof r->version, "%s", ddps_who_text(who, DDPS_WHO_VERSION));
	snprintf(r->suite, sizeof r->suite, "%s", ddps_who_text(who, DDPS_WHO_SUITE));
}

static void copy_row(struct row *r, struct ddps_ep *ep, const struct ddps_ep_stats *st)
{
	const struct ddps_llp_ops *ops = ep->llp ? ep->llp->ops : NULL;

	if (ep->established)
		ddps_ep_renew_info(ep);
	*r = (struct row){ .serial = ep->serial,
			   .state = ep->state,
			   .info = ddps_info_kept(&ep->info),
			   .st = *st };
	if (!ops) {
		copy_who(r, ep->was);
		return;
	}
	copy_who(r, ops->peer_id ? ops->peer_id(ep->llp) : NULL);
	r->has_tcp = ops->tcp_stats && !ops->tcp_stats(ep->llp, &r->tcp);
	r->has_assoc = ops->assoc_stats && !ops->assoc_stats(ep->llp, &r->assoc);
	for (uint32_t i = 0; r->has_assoc && i < r->assoc.paths && !r->path.in_use; i++)
		r->has_path = !ops->path_stats(ep->llp, i, &r->path);
}

static bool enter_teller(const struct teller *t)
{
	return !ddps_ctx_enter_until(t->s->ctx, ddps_deadline(LOCK_MS));
}

static bool copy_first(struct teller *t)
{
	if (!enter_teller(t))
		return false;
	t->own = *t->s->own;
	ddps_walk_begin(t->s->ctx);
	for (unsigned i = 0; i < URIS; i++) {
		if (ddps_listener_nth(t->s->ctx, i, t->uri[i], sizeof t->uri[i]) <= 0)
			break;
		t->listeners++;
	}
	ddps_ctx_leave(t->s->ctx);
	return true;
}

/* Up to BATCH more, fewer if that was all; -1: the lock was not available. */
static int copy_batch(struct teller *t)
{
	struct ddps_ep_stats st;
	struct ddps_ep *ep;
	int n = 0;

	if (!enter_teller(t))
		return -1;
	while (n < BATCH && (ep = ddps_walk_step(t->s->ctx, &st)))
		copy_row(&t->row[n++], ep, &st);
	t->st = t->s->ctx->walk.st;
	t->secured = t->s->ctx->env.secured;
	ddps_ctx_leave(t->s->ctx);
	return n;
}

/* ---- all of it ---- */

static void say_process(struct teller *t)
{
	write_teller(t, "{\"pid\":%d", (int)getpid());
	say_text(t, "program", program_invocation_short_name);
	say_text(t, "label", t->s->label);
	write_teller(t, ",\"version\":\"%s\"", ddps_version());
	say_number(t, "watched_ns", ddps_now() - t->s->since);
	say_number(t, "time_ns", ddps_now());
}

static void say_listeners(struct teller *t)
{
	write_teller(t, ",\"listeners\":[");
	for (unsigned i = 0; i < t->listeners; i++) {
		if (i)
			write_teller(t, ",");
		say_string(t, t->uri[i]);
	}
	write_teller(t, "]");
}

static void say_context(struct teller *t)
{
	const struct ddps_ctx_stats *st = &t->st;

	write_teller(t, ",\"context\":{\"sessions\":%" PRIu64, st->endpoints);
	say_number(t, "requests", st->requests);
	say_number(t, "regions", st->regions);
	say_number(t, "srq_posted", st->srq_posted);
	say_number(t, "regions_refused", st->regions_refused);
	say_number(t, "srq_full", st->srq_full);
	say_number(t, "half_open_full", st->half_open_full);
	say_number(t, "half_open_given_up", st->half_open_given_up);
	say_number(t, "idle_ended", st->idle_ended);
	say_number(t, "refused_identity", st->refused_identity);
	say_number(t, "refused_not_listed", st->refused_not_listed);
	say_number(t, "refused_protocol", st->refused_protocol);
	say_number(t, "refused_gone", st->refused_gone);
	say_number(t, "reloads_failed", st->reloads_failed);
	say_number(t, "secured_held", st->secured_held);
	say_number(t, "dtls_cookies", t->secured.cookies);
	say_number(t, "dtls_strange", t->secured.strange);
	say_number(t, "dtls_replayed", t->secured.replayed);
	say_number(t, "dtls_forged", t->secured.forged);
	say_number(t, "dtls_renewed", t->secured.renewed);
	say_number(t, "dtls_rebound", t->secured.rebound);
	say_number(t, "dtls_tried", t->secured.tried);
	say_number(t, "dtls_untried", t->secured.untried);
	say_counters(t, &st->total);
	write_teller(t, "}");
}

/* Return: whether all of them were reported. */
static bool say_sessions(struct teller *t)
{
	bool first = true;
	int n;

	write_teller(t, ",\"sessions\":[");
	do {
		n = copy_batch(t);
		for (int i = 0; i < n; i++, first = false)
			say_row(t, &t->row[i], first);
		flush_teller(t);
	} while (n == BATCH && !t->over);
	write_teller(t, "]");
	return n >= 0;
}

/* What the program adds.  Return: whether all of it was reported. */
static bool say_own(struct teller *t)
{
	char text[sizeof t->text / 4];
	int len = 0;

	if (!t->own.fn)
		return true;
	write_teller(t, ",\"%s\":[", t->own.name);
	for (uint32_t i = 0; !t->over; i++) {
		len = t->own.fn(t->own.user, i, text, sizeof text);
		if (len >= (int)sizeof text)
			len = -1; /* it has no such text */
		if (len <= 0)
			break;
		write_teller(t, "%s%.*s", i ? "," : "", len, text);
	}
	write_teller(t, "]");
	return len >= 0;
}

void ddps_watch_tell(const struct ddps_watch_subject *s, ddps_watch_put *put, void *user)
{
	struct teller *t = calloc(1, sizeof *t);
	bool whole;

	if (!t)
		return;
	t->s = s;
	t->put = put;
	t->user = user;
	say_process(t);
	whole = copy_first(t);
	if (whole) {
		say_listeners(t);
		whole = say_sessions(t) && say_own(t);
	}
	if (whole)
		say_context(t);
	/* The context's lock was not available: somebody holds it, perhaps for good. */
	write_teller(t, "%s}\n", whole ? "" : ",\"stuck\":true");
	flush_teller(t);
	free(t);
}
