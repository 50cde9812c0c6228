/* SPDX-License-Identifier: BSD-2-Clause */
/* The native backend: the engine of src/sctp over UDP (RFC 6951) or raw IP. */
#include "sctp_ddp/backend/native/sd_native.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "sctp_ddp/sd_wire.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENCAP_PORT 9899 /* RFC 6951 */
#define PORT_FIRST 49152u
#define PORT_COUNT 16384u
#define PORT_TRIES 1000

static bool available(void)
{
	return true;
}

static void endpoint_free(struct ddps_sd_endpoint *e);

static void fini(struct ddps_env *env, void *ctx)
{
	struct ddps_sn_env *ne = ctx;

	(void)env;
	if (!ne)
		return;
	while (ne->endpoints)
		endpoint_free(ne->endpoints);
	while (ne->assocs)
		ddps_sn_assoc_release(ne->assocs);
	ddps_sn_env_free(ne);
}

static uint16_t port_of(const struct sockaddr_storage *ss)
{
	return ddps_sd_port_number(ss);
}

static int encap_of(const struct ddps_uri *uri)
{
	return uri->encap == DDPS_URI_ENCAP_DEFAULT ? ENCAP_PORT : uri->encap;
}

static struct ddps_sctp_param param_for(const struct ddps_sn_sock *s, uint32_t mtu)
{
	/* Equal counts both ways [5043-8-1]; [5043-5.1-1] [5043-5.1-d1] */
	return (struct ddps_sctp_param){ .via = s->via,
					 .streams = DDPS_SCTP_STREAMS,
					 .has_adaptation = true,
					 .adaptation = DDPS_SCTP_ADAPTATION_DDP,
					 .mtu = mtu };
}

/* ---- connect ---- */

static socklen_t size_of(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* What the system says of a way to @ss, from @from if that is an address: 0 or an errno, and in
 * @local the address that is used. */
static int find_way(const struct sockaddr_storage *from, const struct sockaddr_storage *ss,
		    socklen_t len, struct sockaddr_storage *local)
{
	int fd = socket(ss->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	socklen_t local_len = sizeof *local;
	struct sockaddr_storage own = *from;

	if (fd < 0)
		return errno;
	ddps_sd_set_port(&own, 0);
	if ((from->ss_family && bind(fd, (struct sockaddr *)&own, size_of(&own)) < 0) ||
	    connect(fd, (const struct sockaddr *)ss, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)local, &local_len) < 0)
		err = errno;
	close(fd);
	return err;
}

/* Hand the set-up to the engine. */
static int start(struct ddps_sd_assoc *a, const struct sockaddr_storage *to, uint16_t encap)
{
	uint32_t mtu = ddps_sd_sock_mtu(to);
	struct ddps_sctp_param p = param_for(a->sock, mtu < 576 ? 576 : mtu);
	struct ddps_sctp_addr peer = ddps_sn_addr(to);
	struct ddps_sctp_info i;
	int err = ddps_sctp_connect(a->ne->e, &p, &peer, 1, port_of(to), encap, &ddps_sn_up, a,
				    ddps_now(), &a->sa);

	if (err)
		return err;
	ddps_sctp_info(a->sa, &i);
	a->port = i.port;
	ddps_sn_sock_port(a->sock, a->port, true);
	return 0;
}

/* A socket of its own for what shall come from a certain address. */
static int client_sock(struct ddps_sn_env *ne, const struct ddps_uri *uri, int family, bool raw,
		       struct ddps_sn_sock **out)
{
	const struct sockaddr_storage *from = &uri->from;

	if (!from->ss_family)
		return ddps_sn_sock_client(ne, family, raw, out);
	return ddps_sn_sock_bind(ne, (const struct sockaddr *)from, size_of(from),
				 raw ? DDPS_URI_ENCAP_OFF : 0, out);
}

static int do_connect(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		      const struct sockaddr *sa, socklen_t sa_len, uint32_t connect_ms,
		      const struct ddps_sd_assoc_up *up, void *user, struct ddps_sd_assoc **out)
{
	int encap = encap_of(uri), err, net_errno;
	bool raw = encap == DDPS_URI_ENCAP_OFF;
	struct sockaddr_storage to = { 0 };
	struct ddps_sn_sock *s;
	struct ddps_sd_assoc *a;
	struct ddps_sn_env *ne;

	memcpy(&to, sa, sa_len);
	if (!encap || !port_of(&to))
		return DDPS_E_ADDRESS;
	err = ddps_sn_env_get(env, ctx, &ne);
	if (!err)
		err = client_sock(ne, uri, sa->sa_family, raw, &s);
	if (err)
		return err;
	a = ddps_sn_assoc_new(ne, s);
	if (!a) {
		ddps_sn_sock_put(s);
		return DDPS_E_NOMEM;
	}
	a->up = up;
	a->user = user;
	a->by_us = true;
	net_errno = find_way(&uri->from, &to, sa_len, &a->local);
	if (net_errno)
		ddps_sn_doom(a,
			     ddps_error_make(DDPS_E_SYSTEM, net_errno, "cannot send to the peer"));
	else
		err = start(a, &to, raw ? 0 : (uint16_t)encap);
	if (err) {
		ddps_sn_assoc_release(a);
		return err;
	}
	ddps_timer_after(env->loop, &a->deadline, connect_ms);
	ddps_sn_poke(ne);
	*out = a;
	return 0;
}

/* ---- listen ---- */

static int listen_on(struct ddps_sd_endpoint *e, uint16_t port)
{
	/* The way to a peer may have a smaller link: the system will say so. */
	struct ddps_sctp_param p = param_for(e->sock, UINT16_MAX);
	bool any = !port;
	uint16_t r;
	int err;

	for (int i = 0; i < PORT_TRIES; i++) {
		ddps_sn_random(NULL, &r, sizeof r);
		p.port = any ? (uint16_t)(PORT_FIRST + r % PORT_COUNT) : port;
		err = ddps_sctp_listen(e->ne->e, &p, ddps_sn_accept, e, &e->l);
		if (err != DDPS_E_BUSY || !any)
			break;
	}
	e->port = p.port;
	if (err == DDPS_E_BUSY) {
		errno = EADDRINUSE;
		return DDPS_E_SYSTEM;
	}
	return err;
}

static int do_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		     const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		     const struct ddps_sd_listen_up *up, void *user, struct ddps_sd_endpoint **out)
{
	struct sockaddr_storage ss = { 0 };
	struct ddps_sd_endpoint *e;
	struct ddps_sn_env *ne;
	int err = ddps_sn_env_get(env, ctx, &ne);

	(void)backlog; /* associations are taken when they come up */
	if (err)
		return err;
	e = calloc(1, sizeof *e);
	if (!e)
		return DDPS_E_NOMEM;
	memcpy(&ss, sa, sa_len);
	*e = (struct ddps_sd_endpoint){ .ne = ne, .up = up, .user = user };
	err = ddps_sn_sock_bind(ne, sa, sa_len, encap_of(uri), &e->sock);
	if (!err) {
		err = listen_on(e, port_of(&ss));
		if (err)
			ddps_sn_sock_put(e->sock);
	}
	if (err) {
		free(e);
		return err;
	}
	ddps_sn_sock_port(e->sock, e->port, true);
	DL_APPEND(ne->endpoints, e);
	*out = e;
	return 0;
}

static void endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;

	getsockname(e->sock->io.fd, (struct sockaddr *)&ss, &ss_len);
	ddps_sd_set_port(&ss, e->port);
	ddps_addr_text((struct sockaddr *)&ss, buf, len);
	*encap = e->sock->port;
}

static void endpoint_free(struct ddps_sd_endpoint *e)
{
	ddps_sctp_unlisten(e->l);
	DL_DELETE(e->ne->endpoints, e);
	ddps_sn_sock_port(e->sock, e->port, false);
	ddps_sn_sock_put(e->sock);
	ddps_sn_poke(e->ne);
	free(e);
}

/* ---- associations ---- */

static void set_up(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user)
{
	a->up = up;
	a->user = user;
}

static void assoc_free(struct ddps_sd_assoc *a)
{
	if (a->ne->accepting == a)
		a->ne->accepting = NULL;
	ddps_sn_assoc_release(a);
}

static bool usable(const struct ddps_sd_assoc *a)
{
	return a->sa && !a->gone && !a->end.code;
}

static int do_send(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid, const struct iovec *iov,
		   int niov)
{
	/* Set-up and end of a session wait for acknowledgements: have the peer send them
	 * immediately (RFC 7053).  [5043-10-1] */
	unsigned flags =
		DDPS_SCTP_UNORDERED | (ppid == DDPS_SD_PPID_CONTROL ? DDPS_SCTP_SACK_NOW : 0);
	size_t len = 0;

	if (!usable(a))
		return DDPS_E_CLOSED;
	for (int i = 0; i < niov; i++)
		len += iov[i].iov_len;
	if (len > DDPS_SD_MSG_MAX)
		return DDPS_E_TOO_LONG;
	return ddps_sctp_send(a->sa, stream, ppid, flags, iov, niov, ddps_now());
}

static void do_flush(struct ddps_sd_assoc *a)
{
	ddps_sn_poke(a->ne);
}

/* Acknowledgements are told anyway. */
static void ask_dry(struct ddps_sd_assoc *a)
{
	(void)a;
}

static void do_pause(struct ddps_sd_assoc *a, bool on)
{
	if (!usable(a))
		return;
	ddps_sctp_pause(a->sa, on, ddps_now());
	ddps_sn_poke(a->ne);
}

static void do_abort(struct ddps_sd_assoc *a)
{
	ddps_sn_doom(a, ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side"));
}

static void do_shutdown(struct ddps_sd_assoc *a)
{
	if (!usable(a))
		return;
	if (!a->is_up) {
		do_abort(a);
		return;
	}
	ddps_sctp_shutdown(a->sa, ddps_now());
	ddps_sn_poke(a->ne);
}

const struct ddps_sd_backend ddps_sd_native = {
	.name = "native",
	.acks = true,
	.available = available,
	.connect = do_connect,
	.listen = do_listen,
	.endpoint_addr = endpoint_addr,
	.endpoint_free = endpoint_free,
	.set_up = set_up,
	.info = ddps_sn_info,
	.send = do_send,
	.flush = do_flush,
	.ask_dry = ask_dry,
	.pause = do_pause,
	.shutdown = do_shutdown,
	.abort = do_abort,
	.free = assoc_free,
	.fini = fini,
};
