/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints that listen: the port, the socket and what the engine takes there. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENCAP_PORT 9899 /* RFC 6951 */
#define PORT_FIRST 49152u
#define PORT_COUNT 16384u
#define PORT_TRIES 1000

int ddps_sn_encap(const struct ddps_uri *uri)
{
	if (uri->encap != DDPS_URI_ENCAP_DEFAULT)
		return uri->encap;
	return ddps_uri_sctps(uri) ? uri->port : ENCAP_PORT;
}

struct ddps_sctp_param ddps_sn_param(const struct ddps_sn_sock *s, uint32_t mtu)
{
	/* Equal counts both ways [5043-8-1]; [5043-5.1-1] [5043-5.1-d1] */
	struct ddps_sctp_param p = { .via = s->via,
				     .streams = DDPS_SCTP_STREAMS,
				     .has_adaptation = true,
				     .adaptation = DDPS_SCTP_ADAPTATION_DDP,
				     .mtu = mtu,
				     .host_mtu = s->ne->host_mtu };

	if (s->homes) {
		p.nlocal = s->homes->n;
		memcpy(p.local, s->homes->at, p.nlocal * sizeof p.local[0]);
	}
	return p;
}

static int listen_on_native_port(struct ddps_sd_endpoint *e, uint16_t port, unsigned per_address)
{
	/* The way to a peer may have a smaller link: the system will say so. */
	struct ddps_sctp_param p = ddps_sn_param(e->sock, UINT16_MAX);
	bool any = !port;
	uint16_t r;
	int err;

	p.max_per_addr = per_address;
	if (e->sock->secured) { /* each connection will have that */
		e->port = p.port = port ? port : e->sock->port;
		e->param = p;
		ddps_sn_dtls_listen(e);
		return 0;
	}
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

static int listen_sock(struct ddps_sn_env *ne, const struct ddps_uri *uri,
		       const struct sockaddr *sa, socklen_t sa_len, struct ddps_sn_sock **out)
{
	static const struct ddps_uri_addrs none;
	int encap = ddps_sn_encap(uri);

	if (!uri->hosts.n)
		return ddps_sn_sock_bind(ne, sa, sa_len, encap,
					 (uri->host[0] ? DDPS_SN_ONLY : DDPS_SN_BOTH) |
						 (ddps_uri_sctps(uri) ? DDPS_SN_SECURED : 0),
					 uri->tos, out);
	return ddps_sn_homes_sock(ne, &uri->hosts, ddps_sn_homes_family(&uri->hosts, &none), encap,
				  uri->tos, out);
}

int ddps_sn_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
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
	err = listen_sock(ne, uri, sa, sa_len, &e->sock);
	if (!err) {
		err = listen_on_native_port(e, ddps_sd_port_number(&ss), uri->per_address);
		if (err) {
			ddps_sn_sock_put(e->sock);
			ddps_sn_poke(ne); /* which closes it */
		}
	}
	if (err) {
		free(e);
		return err;
	}
	ddps_sn_sock_port(e->sock, e->port, true);
	LIST_INSERT_HEAD(&ne->endpoints, e, of_env);
	*out = e;
	return 0;
}

void ddps_sn_endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;

	*encap = e->sock->port;
	if (e->sock->homes) {
		ddps_sn_homes_text(e->sock->homes, e->port, buf, len);
		return;
	}
	getsockname(e->sock->io.fd, (struct sockaddr *)&ss, &ss_len);
	ddps_sd_set_port(&ss, e->port);
	ddps_addr_text((struct sockaddr *)&ss, buf, len);
}

void ddps_sn_endpoint_free(struct ddps_sd_endpoint *e)
{
	if (e->sock->secured)
		ddps_sn_dtls_unlisten(e);
	else
		ddps_sctp_unlisten(e->l);
	LIST_REMOVE(e, of_env);
	ddps_sn_sock_port(e->sock, e->port, false);
	ddps_sn_sock_put(e->sock);
	ddps_sn_poke(e->ne);
	free(e);
}
