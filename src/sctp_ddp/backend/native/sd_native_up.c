/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations of the engine: their life, and what comes up from them. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 3000u /* octets of a window in which a request finds room */

/* ---- life ---- */

void ddps_sn_late(const struct ddps_sd_assoc *a, struct ddps_error *e)
{
	const struct ddps_sn_dtls *d = a->sock->dtls;
	const size_t len = strlen(e->text);

	if (d && d->state == DDPS_SN_SHAKING)
		*e = ddps_sn_dtls_late(d);
	else if (d)
		*e = ddps_error_make(DDPS_E_TIMEDOUT, 0,
				     "DTLS is there, but nothing answers SCTP inside it");
	else if (!a->is_up)
		snprintf(e->text + len, sizeof e->text - len,
			 " (does the peer listen on sctp:// at this port, and not on sctps://?)");
}

static void end_timed_out_assoc(void *user)
{
	struct ddps_error e = ddps_error_make(DDPS_E_TIMEDOUT, 0, "no SCTP association in time");

	ddps_sn_late(user, &e);
	ddps_sn_end_soon(user, e);
}

static void tell_gone(struct ddps_sd_assoc *a)
{
	struct ddps_sd_assoc_info info = { 0 };
	struct ddps_error end;

	a->gone = true;
	ddps_timer_stop(a->ne->env->loop, &a->deadline);
	ddps_sn_info(a, &info);
	end = ddps_error_kept(&a->end);
	memcpy(end.peer, info.peer, sizeof end.peer);
	ddps_log(&a->ne->env->log, DDPS_LOG_DEBUG, "sctp", "%s gone: %s", end.peer, end.text);
	a->up->gone(a->user, &end);
}

static void report_end_of_assoc(void *user)
{
	tell_gone(user);
}

struct ddps_sd_assoc *ddps_sn_assoc_new(struct ddps_sn_env *ne, struct ddps_sn_sock *s)
{
	struct ddps_sd_assoc *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->ne = ne;
	a->sock = s;
	a->deadline = (struct ddps_timer){ .fn = end_timed_out_assoc, .user = a };
	a->end_task = (struct ddps_task){ .fn = report_end_of_assoc, .user = a };
	TAILQ_INSERT_TAIL(&ne->assocs, a, of_env);
	return a;
}

void ddps_sn_assoc_release(struct ddps_sd_assoc *a)
{
	struct ddps_sn_env *ne = a->ne;

	ddps_timer_stop(ne->env->loop, &a->deadline);
	ddps_task_cancel(ne->env->loop, &a->end_task);
	if (a->sa)
		ddps_sctp_assoc_free(a->sa, ddps_sn_now(ne));
	if (a->port)
		ddps_sn_sock_port(a->sock, a->port, false);
	TAILQ_REMOVE(&ne->assocs, a, of_env);
	ddps_sn_sock_put(a->sock);
	if (a->sock->dtls)
		ddps_sn_dtls_left(a->sock->dtls, a);
	ddps_error_drop(&a->end);
	free(a);
	ddps_sn_poke(ne);
}

void ddps_sn_end_soon(struct ddps_sd_assoc *a, struct ddps_error e)
{
	if (a->gone || a->end.code)
		return;
	ddps_error_keep(&a->end, &e);
	if (a->sa) {
		ddps_sctp_abort(a->sa, NULL, ddps_sn_now(a->ne));
		ddps_sn_poke(a->ne);
	}
	ddps_task_post(a->ne->env->loop, &a->end_task);
}

/* ---- info ---- */

struct ddps_addr ddps_sn_text(const struct ddps_sctp_addr *addr, uint16_t port, char *buf,
			      size_t len)
{
	struct sockaddr_storage ss;

	ddps_sn_sockaddr(addr, port, addr->family == 6 ? AF_INET6 : AF_INET, &ss);
	ddps_addr_text((struct sockaddr *)&ss, buf, len);
	return ddps_addr_of((struct sockaddr *)&ss);
}

void ddps_sn_info(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *out)
{
	struct ddps_sctp_path_info p = { 0 };
	struct ddps_sctp_addr local;
	struct ddps_sctp_info i;

	memset(out, 0, sizeof *out);
	if (a->sock->dtls)
		out->peer_addr = ddps_sn_text(&a->sock->dtls->peer, a->sock->dtls->at.port,
					      out->peer, sizeof out->peer);
	if (!a->sa)
		return;
	ddps_sctp_info(a->sa, &i);
	/* of the path that is preferred: one of them always is */
	for (unsigned k = 0; !p.primary && !ddps_sctp_path_info(a->sa, k, &p); k++)
		;
	local = p.local.family ? p.local : a->local;
	out->local_addr = ddps_sn_text(&local, i.port, out->local, sizeof out->local);
	out->peer_addr = ddps_sn_text(&p.peer, i.peer_port, out->peer, sizeof out->peer);
	out->in_streams = i.in_streams;
	out->out_streams = i.out_streams;
	out->has_adaptation = i.has_adaptation;
	out->adaptation = i.adaptation;
	out->encap = p.encap;
	out->by_us = i.by_us;
	/* Behind a large packet that waits for room a small one waits too; and behind what waited while
	 * there was none, if that is more than what there is now. */
	out->shut = i.peer_rwnd < (!i.unsent			       ? SMALL
				   : 2 * p.mtu < DDPS_SCTP_SHARE_LEAST ? 2 * p.mtu
								       : DDPS_SCTP_SHARE_LEAST) ||
		    (i.behind && i.peer_rwnd < i.unsent + i.unacked);
	/* [5043-9-d1]: chunks are padded to 4 octets */
	out->max_user_data = ddps_sctp_max_chunk(a->sa) & ~(size_t)3;
}

/* ---- upcalls ---- */

/* The end was reported, or is about to be, for a reason of ours. */
static bool is_assoc_over(const struct ddps_sd_assoc *a)
{
	return a->gone || a->end.code;
}

static void take_native_answered(void *user)
{
	struct ddps_sd_assoc *a = user;

	if (is_assoc_over(a))
		return;
	a->told = (uint32_t)ddps_sctp_max_chunk(a->sa);
	if (a->up->answered)
		a->up->answered(a->user);
}

static void take_native_up(void *user)
{
	struct ddps_sd_assoc *a = user;

	if (is_assoc_over(a))
		return;
	a->is_up = true;
	a->told = (uint32_t)ddps_sctp_max_chunk(a->sa);
	ddps_timer_stop(a->ne->env->loop, &a->deadline);
	a->up->comm_up(a->user);
}

static void take_native_message(void *user, const struct ddps_sctp_msg *m)
{
	struct ddps_sd_assoc *a = user;

	a->ne->work++;
	if (!is_assoc_over(a))
		a->up->message(a->user, m->stream, m->ppid, m->unordered, m->data, m->len);
}

/* Before the layer above sends: is a message of another length right now?  Frees nothing. */
static void tell_size(struct ddps_sd_assoc *a)
{
	size_t now = ddps_sctp_max_chunk(a->sa);

	if (now == a->told)
		return;
	a->told = (uint32_t)now;
	a->up->path(a->user);
}

static void take_native_writable(void *user)
{
	struct ddps_sd_assoc *a = user;

	if (is_assoc_over(a))
		return;
	tell_size(a);
	a->up->writable(a->user);
}

static void take_native_acked(void *user, uint64_t n)
{
	struct ddps_sd_assoc *a = user;

	if (is_assoc_over(a))
		return;
	tell_size(a);
	a->up->acked(a->user, n);
}

static void take_native_path(void *user, const struct ddps_sctp_addr *peer,
			     enum ddps_sctp_path_state s)
{
	static const char *const names[] = { "unconfirmed", "active", "doubtful", "inactive" };
	struct ddps_sd_assoc *a = user;
	char addr[72];

	ddps_sn_text(peer, 0, addr, sizeof addr);
	ddps_log(&a->ne->env->log, DDPS_LOG_INFO, "sctp", "path to %s is %s", addr, names[s]);
}

static void take_native_refused(void *user, const struct ddps_sctp_addr *peer)
{
	struct ddps_sd_assoc *a = user;
	char addr[72];

	ddps_sn_text(peer, 0, addr, sizeof addr);
	ddps_log(&a->ne->env->log, DDPS_LOG_INFO, "sctp",
		 "%s refuses: its host answers that nothing takes SCTP there; others are used",
		 addr);
}

static void on_peer_shutdown(void *user)
{
	struct ddps_sd_assoc *a = user;

	if (!is_assoc_over(a))
		a->up->peer_shutdown(a->user);
}

/* All sessions are lost; the layer above looks at what the association is now [9260-5.2.4-4]. */
static void take_native_restarted(void *user)
{
	struct ddps_sd_assoc *a = user;

	if (is_assoc_over(a))
		return;
	a->told = (uint32_t)ddps_sctp_max_chunk(a->sa);
	a->up->restarted(a->user);
}

static bool take_native_roamed(void *user, uint16_t encap)
{
	const struct ddps_sd_assoc *a = user;

	return ddps_sn_dtls_roamed(a->sock->dtls, encap);
}

static void take_native_gone(void *user, const struct ddps_error *e)
{
	struct ddps_sd_assoc *a = user;

	if (a->gone)
		return;
	if (!a->end.code) /* else the task reports it */
		ddps_error_keep(&a->end, e);
	ddps_task_cancel(a->ne->env->loop, &a->end_task);
	tell_gone(a);
}

const struct ddps_sctp_up ddps_sn_up = {
	.answered = take_native_answered,
	.up = take_native_up,
	.message = take_native_message,
	.writable = take_native_writable,
	.acked = take_native_acked,
	.peer_shutdown = on_peer_shutdown,
	.restarted = take_native_restarted,
	.path = take_native_path,
	.refused = take_native_refused,
	.roamed = take_native_roamed,
	.gone = take_native_gone,
};

/* ---- accepting ---- */

void ddps_sn_accept(void *user, struct ddps_sctp_assoc *sa)
{
	struct ddps_sd_endpoint *ep = user;
	struct ddps_sn_sock *s = ep->sock;
	struct ddps_sd_assoc *a;
	struct ddps_sctp_info i;

	if (s->secured) {
		ddps_sctp_info(sa, &i);
		s = ep->ne->socks[i.via];
		s->dtls->took = true; /* its timer may be one of new keys */
	}
	a = ddps_sn_assoc_new(ep->ne, s);
	if (!a) {
		ddps_sctp_assoc_free(sa, ddps_sn_now(ep->ne));
		return;
	}
	s->refs++;
	a->sa = sa;
	a->port = ep->port;
	ddps_sn_sock_port(a->sock, a->port, true);
	a->is_up = true;
	a->told = (uint32_t)ddps_sctp_max_chunk(sa);
	ddps_sctp_assoc_set_up(sa, &ddps_sn_up, a);
	ep->ne->accepting = a;
	ep->up->accepted(ep->user, a);
	/* freed inside, or nobody's */
	if (ep->ne->accepting && !a->up)
		ddps_sn_assoc_release(a);
	ep->ne->accepting = NULL;
}
