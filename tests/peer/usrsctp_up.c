/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes out of an association of the usrsctp peer. */
#include "peer/usrsctp_in.h"

#define HEADERS 28u /* of a packet with one DATA chunk */

/* ---- the end ---- */

void us_end_soon(struct ddps_sd_assoc *a, struct ddps_error e)
{
	if (a->ending)
		return;
	a->ending = true;
	a->end = e;
	if (a->so)
		usrsctp_close(a->so); /* with SO_LINGER 0: an ABORT if it is up */
	a->so = NULL;
	ddps_task_post(a->p->env->loop, &a->p->look);
}

static void on_end(struct ddps_sd_assoc *a, int sys_errno)
{
	if (!sys_errno && (a->shut || a->peer_shut))
		us_end_soon(a, ddps_error_make(DDPS_OK, 0, "association shut down"));
	else if (a->announced)
		us_end_soon(a, ddps_error_make(DDPS_E_RESET, sys_errno,
					       "usrsctp lost the association"));
	else
		us_end_soon(a,
			    ddps_error_make(DDPS_E_REFUSED, sys_errno, "the peer refused usrsctp"));
}

void us_refused(struct link *l)
{
	struct ddps_sd_assoc *a;

	DL_FOREACH(l->p->assocs, a)
	if (a->l == l)
		on_end(a, ECONNREFUSED);
}

static void timed_out(void *user)
{
	us_end_soon(user, ddps_error_make(DDPS_E_TIMEDOUT, 0, "no SCTP association in time"));
}

void us_release(struct ddps_sd_assoc *a)
{
	if (a->so)
		usrsctp_close(a->so);
	ddps_timer_stop(a->p->env->loop, &a->deadline);
	DL_DELETE(a->p->assocs, a);
	us_link_put(a->l);
	free(a->msg);
	free(a);
}

/* ---- what comes ---- */

static void announce(struct ddps_sd_assoc *a)
{
	struct ddps_sd_endpoint *ep = a->ep;

	a->announced = true;
	ddps_timer_stop(a->p->env->loop, &a->deadline);
	if (a->up) {
		a->up->comm_up(a->user);
		return;
	}
	if (ep)
		ep->up->accepted(ep->user, a);
	a->ep = NULL;
	a->freed |= !a->up;
}

static int so_error(const struct ddps_sd_assoc *a)
{
	int err = 0;
	socklen_t len = sizeof err;

	return usrsctp_getsockopt(a->so, SOL_SOCKET, SO_ERROR, &err, &len) < 0 ? errno : err;
}

static void on_change(struct ddps_sd_assoc *a, const struct sctp_assoc_change *c)
{
	switch (c->sac_state) {
	case SCTP_COMM_UP:
		a->up_seen = true;
		a->info.in_streams = c->sac_inbound_streams;
		a->info.out_streams = c->sac_outbound_streams;
		break;
	case SCTP_RESTART:
		us_end_soon(a, ddps_error_make(DDPS_E_RESET, 0, "peer restarted"));
		break;
	case SCTP_SHUTDOWN_COMP:
		a->peer_shut = true;
		on_end(a, 0);
		break;
	default:
		on_end(a, so_error(a));
	}
}

/* The event is one of before if there is again something that is not acknowledged. */
static void on_dry(struct ddps_sd_assoc *a)
{
	struct sctp_event ev = { .se_assoc_id = SCTP_CURRENT_ASSOC,
				 .se_type = SCTP_SENDER_DRY_EVENT };
	struct sctp_status st = { 0 };
	socklen_t len = sizeof st;

	usrsctp_setsockopt(a->so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	usrsctp_getsockopt(a->so, IPPROTO_SCTP, SCTP_STATUS, &st, &len);
	if (st.sstat_unackdata || st.sstat_penddata) {
		ev.se_on = 1;
		usrsctp_setsockopt(a->so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	} else if (a->want_dry) {
		a->want_dry = false;
		a->up->dry(a->user);
	}
}

static void on_note(struct ddps_sd_assoc *a)
{
	union sctp_notification n = { 0 };

	memcpy(&n, a->msg, a->len < sizeof n ? a->len : sizeof n);
	switch (n.sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		on_change(a, &n.sn_assoc_change);
		break;
	case SCTP_ADAPTATION_INDICATION:
		a->info.has_adaptation = true;
		a->info.adaptation = n.sn_adaptation_event.sai_adaptation_ind;
		break;
	case SCTP_SHUTDOWN_EVENT:
		a->peer_shut = true;
		a->up->peer_shutdown(a->user);
		break;
	case SCTP_SENDER_DRY_EVENT:
		on_dry(a);
		break;
	default:
		break;
	}
}

/* The indication comes right behind COMM_UP, or not at all. */
static bool is_indication(const struct ddps_sd_assoc *a, int flags)
{
	uint16_t type;

	memcpy(&type, a->msg, sizeof type);
	return flags & MSG_NOTIFICATION && type == SCTP_ADAPTATION_INDICATION;
}

/* One read; returns whether there may be more. */
static bool step_usrsctp_up(struct ddps_sd_assoc *a)
{
	struct sctp_rcvinfo info = { 0 };
	socklen_t len = sizeof info, no_name = 0;
	unsigned type = 0;
	int flags = 0;
	ssize_t n = usrsctp_recvv(a->so, a->msg + a->len, DDPS_SD_MSG_MAX + 1 - a->len, NULL,
				  &no_name, &info, &len, &type, &flags);
	int err = errno;

	if (a->up_seen && !a->announced && !(n > 0 && is_indication(a, flags)))
		announce(a);
	if (a->ending || a->freed || (n < 0 && err == EWOULDBLOCK))
		return false;
	if (n <= 0) {
		on_end(a, n < 0 ? err : 0);
		return false;
	}
	a->len += (size_t)n;
	if (a->len > DDPS_SD_MSG_MAX)
		us_end_soon(a, ddps_error_make(DDPS_E_PROTOCOL, 0, "too long a message"));
	if (!(flags & MSG_EOR))
		return !a->ending;
	n = (ssize_t)a->len;
	if (flags & MSG_NOTIFICATION)
		on_note(a);
	a->len = 0;
	if (!(flags & MSG_NOTIFICATION))
		a->up->message(a->user, info.rcv_sid, ntohl(info.rcv_ppid),
			       info.rcv_flags & SCTP_UNORDERED, a->msg, (size_t)n);
	return !a->ending && !a->freed;
}

static void serve_usrsctp_up(struct ddps_sd_assoc *a)
{
	int n = 0;

	while (a->so && !a->freed && !a->paused && step_usrsctp_up(a) && ++n < TURN)
		;
	if (n == TURN)
		ddps_task_post(a->p->env->loop, &a->p->look);
	/* Nobody reads a paused association, yet a lost one is lost. */
	if (a->so && a->paused && (usrsctp_get_events(a->so) & SCTP_EVENT_ERROR))
		on_end(a, so_error(a));
	if (a->so && !a->freed && a->want_write && (usrsctp_get_events(a->so) & SCTP_EVENT_WRITE)) {
		a->want_write = false;
		a->up->writable(a->user);
	}
	if (a->ending && !a->told && !a->freed) {
		a->told = true;
		memcpy(a->end.peer, a->info.peer, sizeof a->end.peer);
		if (a->up)
			a->up->gone(a->user, &a->end);
		else
			a->freed = true;
	}
}

/* ---- associations ---- */

struct ddps_sd_assoc *us_assoc_new(struct link *l, struct socket *so, const struct way *w,
				   uint16_t port, uint16_t peer_port)
{
	struct ddps_sd_assoc *a = calloc(1, sizeof *a);
	struct sockaddr_storage peer = w->to;

	if (!a)
		abort();
	a->p = l->p;
	a->l = l;
	a->so = so;
	a->msg = malloc(DDPS_SD_MSG_MAX + 1);
	if (!a->msg)
		abort();
	a->deadline = (struct ddps_timer){ .fn = timed_out, .user = a };
	a->info.encap = ddps_sd_port_number(&peer);
	a->info.max_user_data = (PATH - HEADERS) & ~3u; /* [5043-9-d1] */
	a->info.local_addr = us_link_name(l, port, a->info.local, sizeof a->info.local);
	ddps_sd_set_port(&peer, peer_port);
	ddps_addr_text((struct sockaddr *)&peer, a->info.peer, sizeof a->info.peer);
	a->info.peer_addr = ddps_addr_of((struct sockaddr *)&peer);
	DL_APPEND(l->p->assocs, a);
	return a;
}

static void take_new(struct ddps_sd_endpoint *e)
{
	struct sockaddr_conn from;
	struct ddps_sd_assoc *a;
	struct socket *so;
	socklen_t len = sizeof from;

	while ((so = usrsctp_accept(e->so, (struct sockaddr *)&from, &len))) {
		a = us_assoc_new(e->l, so, from.sconn_addr, e->port, ntohs(from.sconn_port));
		e->l->refs++;
		a->ep = e;
		len = sizeof from;
	}
}

void us_look(void *user)
{
	struct peer *p = user;
	struct ddps_sd_endpoint *e;
	struct ddps_sd_assoc *a, *next;

	DL_FOREACH(p->endpoints, e)
	take_new(e);
	DL_FOREACH(p->assocs, a)
	serve_usrsctp_up(a);
	DL_FOREACH_SAFE(p->assocs, a, next)
	if (a->freed)
		us_release(a);
}
