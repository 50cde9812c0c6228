/* SPDX-License-Identifier: BSD-2-Clause */
/* The usrsctp backend: SCTP in this process, over UDP (RFC 6951) or raw IP. */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include "sctp_ddp/sd_wire.h"
#include <errno.h>
#include <stdlib.h>

#define ENCAP_PORT 9899 /* RFC 6951 */

/* ---- a context's own ---- */

static bool available(void)
{
	return true;
}

static void endpoint_free(struct ddps_sd_endpoint *e);

static void fini(struct ddps_env *env, void *ctx)
{
	struct ddps_us_env *ue = ctx;

	(void)env;
	if (!ue)
		return;
	while (ue->endpoints)
		endpoint_free(ue->endpoints);
	while (ue->assocs)
		ddps_us_release(ue->assocs);
	ddps_us_env_free(ue);
}

/* ---- associations: life ---- */

static void upcall(struct socket *so, void *arg, int flags)
{
	(void)so;
	(void)flags;
	ddps_us_mark(arg);
}

/* Locked.  Takes a reference of @h and @p over, and of their carrier. */
static struct ddps_sd_assoc *assoc_new(struct ddps_us_env *ue, struct ddps_us_handle *h,
				       struct ddps_us_port *p, uint16_t peer_port)
{
	struct ddps_sd_assoc *a = calloc(1, sizeof *a);
	struct sockaddr_storage peer = h->to;

	if (!a)
		return NULL;
	ddps_sd_life_init(&a->life, &ddps_us_life, ue->env);
	a->ue = ue;
	a->h = h;
	a->port = p;
	a->payload = h->payload;
	a->peer_port = peer_port;
	a->life.info.encap = h->addr.port;
	ddps_us_local_text(h->carrier, &h->local, p->num, a->life.info.local,
			   sizeof a->life.info.local);
	ddps_sd_set_port(&peer, peer_port);
	ddps_addr_text((struct sockaddr *)&peer, a->life.info.peer, sizeof a->life.info.peer);
	DL_APPEND(ue->assocs, a);
	DL_APPEND2(h->assocs, a, h_prev, h_next);
	ddps_us_inherit_tags(a);
	ddps_us_start_ticking(ue);
	return a;
}

void ddps_us_close(struct ddps_sd_assoc *a)
{
	if (!a->so)
		return;
	usrsctp_set_upcall(a->so, NULL, NULL);
	usrsctp_close(a->so); /* with SO_LINGER 0: an ABORT if it is up */
	a->so = NULL;
}

void ddps_us_doom_locked(struct ddps_sd_assoc *a, struct ddps_error e)
{
	if (a->life.doomed)
		return;
	a->life.doomed = true;
	a->life.end = e;
	ddps_us_close(a);
	ddps_us_mark(a);
}

void ddps_us_doom(struct ddps_sd_assoc *a, struct ddps_error e)
{
	ddps_us_lock(a->ue);
	ddps_us_doom_locked(a, e);
	ddps_us_unlock();
}

void ddps_us_release(struct ddps_sd_assoc *a)
{
	struct ddps_us_env *ue = a->ue;
	struct ddps_us_carrier *c = a->h->carrier;

	ddps_timer_stop(ue->env->loop, &a->life.deadline);
	ddps_us_lock(ue);
	ddps_us_close(a);
	if (a->queued)
		DL_DELETE2(ue->ready, a, ready_prev, ready_next);
	DL_DELETE(ue->assocs, a);
	DL_DELETE2(a->h->assocs, a, h_prev, h_next);
	ue->busy = ddps_now();
	ddps_us_port_put(a->port);
	ddps_us_handle_put(a->h);
	ddps_us_carrier_put(c);
	ddps_us_unlock();
	ddps_sd_part_drop(&a->life.part);
	free(a);
}

/* ---- connect ---- */

/* Locked: hand the set-up to usrsctp; errno on failure. */
static int start(struct ddps_sd_assoc *a)
{
	struct sockaddr_conn to = ddps_us_sconn(a->h, a->peer_port);

	a->so = ddps_us_socket_new(a->port, a->payload);
	if (!a->so)
		return -1;
	usrsctp_set_upcall(a->so, upcall, a);
	if (usrsctp_connect(a->so, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
		return -1;
	return 0;
}

static uint16_t port_of(const struct sockaddr *sa)
{
	struct sockaddr_storage ss = { 0 };

	memcpy(&ss, sa,
	       sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					 : sizeof(struct sockaddr_in));
	return ddps_sd_port_number(&ss);
}

/* Locked.  On failure the carrier is gone. */
static int assoc_on(struct ddps_us_carrier *c, uint16_t peer_port, struct ddps_sd_assoc **out)
{
	struct ddps_us_handle *h = c->peer;
	struct ddps_us_port *p;
	int err;

	c->serial = ddps_us_serial();
	h->id = ddps_us_handle_id(c, &h->addr);
	err = ddps_us_handle_enter(h);
	if (err) {
		free(h);
		ddps_us_carrier_put(c);
		return err;
	}
	ddps_us_handle_get(h);
	ddps_us_handle_probe(h);
	err = ddps_us_port_get(c, 0, &p);
	if (!err) {
		*out = assoc_new(c->ue, h, p, peer_port);
		if (*out)
			return 0;
		ddps_us_port_put(p);
		err = DDPS_E_NOMEM;
	}
	ddps_us_handle_put(h);
	ddps_us_carrier_put(c);
	return err;
}

static int do_connect(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		      const struct sockaddr *sa, socklen_t sa_len, uint32_t connect_ms,
		      const struct ddps_sd_assoc_up *up, void *user, struct ddps_sd_assoc **out)
{
	int encap = uri->encap == DDPS_URI_ENCAP_DEFAULT ? ENCAP_PORT : uri->encap;
	struct ddps_us_env *ue;
	struct ddps_us_carrier *c;
	struct ddps_sd_assoc *a;
	int err, net_errno;

	if (!encap || !port_of(sa))
		return DDPS_E_ADDRESS;
	err = ddps_us_env_get(env, ctx, &ue);
	if (!err)
		err = ddps_us_carrier_connect(ue, &uri->from.at[0], sa, sa_len, encap, &c,
					      &net_errno);
	if (err)
		return err;
	ddps_us_lock(ue);
	err = assoc_on(c, port_of(sa), &a);
	if (!err && !net_errno && start(a) < 0)
		net_errno = errno;
	ddps_us_unlock();
	if (err)
		return err;
	a->life.up = up;
	a->life.user = user;
	a->life.info.by_us = true;
	ddps_timer_after(env->loop, &a->life.deadline, connect_ms);
	if (net_errno)
		ddps_us_doom(a,
			     ddps_error_make(DDPS_E_SYSTEM, net_errno, "cannot send to the peer"));
	*out = a;
	return 0;
}

/* ---- listen ---- */

static int endpoint_open(struct ddps_sd_endpoint *e, struct ddps_us_carrier *c, uint16_t num,
			 unsigned backlog)
{
	uint32_t most = ddps_us_max_payload(AF_INET, c->raw);
	int err = ddps_us_port_get(c, num, &e->port);

	if (err)
		return err;
	if (e->port->ep)
		errno = EADDRINUSE;
	else
		e->so = ddps_us_socket_new(e->port, most);
	if (e->so && usrsctp_listen(e->so, backlog ? (int)backlog : 1) == 0) {
		e->port->ep = e;
		return 0;
	}
	if (e->so)
		usrsctp_close(e->so);
	ddps_us_port_put(e->port);
	return DDPS_E_SYSTEM;
}

static int do_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		     const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		     const struct ddps_sd_listen_up *up, void *user, struct ddps_sd_endpoint **out)
{
	int encap = uri->encap == DDPS_URI_ENCAP_DEFAULT ? ENCAP_PORT : uri->encap;
	struct ddps_sd_endpoint *e;
	struct ddps_us_carrier *c;
	struct ddps_us_env *ue;
	int err = ddps_us_env_get(env, ctx, &ue);

	if (err)
		return err;
	e = calloc(1, sizeof *e);
	if (!e)
		return DDPS_E_NOMEM;
	*e = (struct ddps_sd_endpoint){ .ue = ue, .owner = { up, user } };
	err = ddps_us_carrier_bind(ue, sa, sa_len, encap, &c);
	if (err) {
		free(e);
		return err;
	}
	ddps_us_lock(ue);
	if (!c->serial)
		c->serial = ddps_us_serial();
	err = endpoint_open(e, c, port_of(sa), backlog);
	if (err)
		ddps_us_carrier_put(c);
	else
		DL_APPEND(ue->endpoints, e);
	ddps_us_unlock();
	if (err)
		free(e);
	else
		*out = e;
	return err;
}

void ddps_us_endpoint_payload(struct ddps_sd_endpoint *e, uint32_t payload)
{
	ddps_us_socket_payload(e->so, payload, SCTP_FUTURE_ASSOC);
}

void ddps_us_accept(struct ddps_us_port *p)
{
	struct ddps_sd_endpoint *e = p->ep;
	struct sockaddr_conn from;
	struct ddps_us_handle *h;
	struct ddps_sd_assoc *a;
	struct socket *so;
	socklen_t len;

	for (;;) {
		len = sizeof from;
		so = usrsctp_accept(e->so, (struct sockaddr *)&from, &len);
		if (!so)
			return;
		h = ddps_us_handle_find((uintptr_t)from.sconn_addr);
		a = h ? assoc_new(e->ue, h, p, ntohs(from.sconn_port)) : NULL;
		if (!a) {
			usrsctp_close(so);
			continue;
		}
		ddps_us_handle_get(h);
		p->refs++;
		p->carrier->refs++;
		a->so = so;
		a->life.ep = &e->owner;
		a->life.accepted = true;
		a->cookie_seal = h->cookie_seal;
		usrsctp_set_upcall(so, upcall, a);
		ddps_us_mark(a);
	}
}

static void endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap)
{
	ddps_us_local_text(e->port->carrier, NULL, e->port->num, buf, len);
	*encap = ddps_us_carrier_port(e->port->carrier);
}

static void endpoint_free(struct ddps_sd_endpoint *e)
{
	struct ddps_us_env *ue = e->ue;
	struct ddps_us_carrier *c = e->port->carrier;
	struct ddps_sd_assoc *a;

	ddps_us_lock(ue);
	for (a = ue->assocs; a; a = a->next)
		if (a->life.ep == &e->owner)
			a->life.ep = NULL;
	DL_DELETE(ue->endpoints, e);
	usrsctp_close(e->so);
	e->port->ep = NULL;
	ddps_us_port_put(e->port);
	ddps_us_carrier_put(c);
	ddps_us_unlock();
	free(e);
}

/* ---- associations: use ---- */

static void info(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *out)
{
	*out = a->life.info;
	/* [5043-9-d1]: chunks are padded to 4 octets */
	out->max_user_data = (a->payload - DDPS_US_HDR) & ~3u;
}

void ddps_us_assoc_payload(struct ddps_sd_assoc *a, uint32_t payload)
{
	if (ddps_us_socket_payload(a->so, payload, SCTP_CURRENT_ASSOC) < 0)
		return;
	a->payload = payload;
	a->path_changed = true;
	ddps_us_mark(a);
}

static const uint8_t *gather(struct ddps_us_env *ue, const struct iovec *iov, int niov, size_t *len)
{
	size_t n = 0;

	*len = 0;
	for (int i = 0; i < niov; i++)
		*len += iov[i].iov_len;
	if (niov == 1)
		return iov[0].iov_base;
	if (*len > DDPS_SD_MSG_MAX)
		return NULL;
	for (int i = 0; i < niov; i++) {
		if (iov[i].iov_len)
			memcpy(ue->tx_buf + n, iov[i].iov_base, iov[i].iov_len);
		n += iov[i].iov_len;
	}
	return ue->tx_buf;
}

static int send_error(struct ddps_sd_assoc *a, int sys_errno)
{
	switch (sys_errno) {
	case EWOULDBLOCK:
		a->life.want_write = true;
		return DDPS_E_AGAIN;
	case EINVAL: /* stream number */
		return DDPS_E_INVAL;
	case EMSGSIZE:
		return DDPS_E_TOO_LONG;
	case ENOMEM:
		ddps_us_doom(a, ddps_error_make(DDPS_E_NOMEM, sys_errno, "SCTP: no memory"));
		return DDPS_E_NOMEM;
	default: /* it is over; the notification is there or on its way */
		return DDPS_E_RESET;
	}
}

static int do_send(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid, const struct iovec *iov,
		   int niov)
{
	/* Set-up and end of a session wait for acknowledgements, as does whoever asked for
	 * dry(): have the peer send them at once (RFC 7053). */
	bool at_once = ppid == DDPS_SD_PPID_CONTROL || a->life.want_dry;
	struct sctp_sndinfo si = {
		.snd_sid = stream,
		.snd_flags =
			SCTP_UNORDERED | (at_once ? SCTP_SACK_IMMEDIATELY : 0), /* [5043-10-1] */
		.snd_ppid = htonl(ppid), /* usrsctp does not swap it */
	};
	const uint8_t *data;
	ssize_t n;
	size_t len;

	if (!a->so)
		return DDPS_E_CLOSED;
	if (!a->life.announced || a->life.shut)
		return DDPS_E_STATE;
	data = gather(a->ue, iov, niov, &len);
	if (!len)
		return DDPS_E_INVAL;
	if (!data || len > DDPS_SD_MSG_MAX)
		return DDPS_E_TOO_LONG;
	ddps_us_lock(a->ue);
	n = usrsctp_sendv(a->so, data, len, NULL, 0, &si, sizeof si, SCTP_SENDV_SNDINFO, 0);
	ddps_us_unlock_later();
	return n < 0 ? send_error(a, errno) : 0;
}

static void ask_dry(struct ddps_sd_assoc *a)
{
	struct sctp_event ev = { .se_assoc_id = SCTP_CURRENT_ASSOC,
				 .se_type = SCTP_SENDER_DRY_EVENT,
				 .se_on = 1 };

	if (!a->so || a->life.want_dry)
		return;
	a->life.want_dry = true;
	/* Comes at once if there is nothing to wait for. */
	ddps_us_lock(a->ue);
	usrsctp_setsockopt(a->so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	ddps_us_mark(a);
	ddps_us_unlock();
}

static void do_pause(struct ddps_sd_assoc *a, bool on)
{
	a->life.paused = on;
	if (on)
		return;
	ddps_us_lock(a->ue);
	ddps_us_mark(a);
	ddps_us_unlock();
}

static void do_shutdown(struct ddps_sd_assoc *a)
{
	if (!a->so || a->life.shut)
		return;
	if (!a->life.announced) {
		ddps_sd_life_abort(a);
		return;
	}
	a->life.shut = true;
	ddps_us_lock(a->ue);
	usrsctp_shutdown(a->so, SHUT_WR);
	ddps_us_mark(a);
	ddps_us_unlock();
}

const struct ddps_sd_backend ddps_sd_usrsctp = {
	.name = "usrsctp",
	.available = available,
	.connect = do_connect,
	.listen = do_listen,
	.endpoint_addr = endpoint_addr,
	.endpoint_free = endpoint_free,
	.set_up = ddps_sd_life_set_up,
	.info = info,
	.send = do_send,
	.ask_dry = ask_dry,
	.pause = do_pause,
	.shutdown = do_shutdown,
	.abort = ddps_sd_life_abort,
	.free = ddps_sd_life_free,
	.fini = fini,
};
