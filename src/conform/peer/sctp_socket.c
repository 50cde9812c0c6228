/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets under the peer's own SCTP: UDP (RFC 6951), or raw ones for SCTP directly on IP. */
#include "conform/peer/sctp_packet.h"
#include "conform/peer/secured.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UDP_PORT 9899 /* RFC 6951 */
#define BUF	 (4 << 20)
#define TURN	 256 /* packets of one socket before another one has its turn */

static uint16_t *get_port_field(struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)ss)->sin6_port
					 : &((struct sockaddr_in *)ss)->sin_port;
}

static int socket_for(const struct cf_at *at)
{
	bool raw = at->encap == CF_ENCAP_OFF;
	int fd = socket(at->ss.ss_family, (raw ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC,
			raw ? IPPROTO_SCTP : 0);
	int size = BUF;

	if (fd >= 0) /* as much as the system grants */
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	return fd;
}

/* The address of packets: the UDP port in the place of SCTP's. */
static struct sockaddr_storage carrier_address(const struct cf_at *at)
{
	struct sockaddr_storage ss = at->ss;

	*get_port_field(&ss) = at->encap == CF_ENCAP_OFF
				       ? 0
				       : htons((uint16_t)(at->encap < 0 ? UDP_PORT : at->encap));
	return ss;
}

static struct cf_below *get_socket_carrier(struct cf_net *n)
{
	struct cf_below *b = n->below;

	if (b)
		return b;
	b = calloc(1, sizeof *b);
	if (b)
		b->listen_fd = -1;
	n->below = b;
	return b;
}

/* ---- inside DTLS: loopback is all that the packets see ---- */

static const struct cf_secured *secured_sctp(const struct cf_net *n)
{
	return n->cf->self ? NULL : n->cf->run->secured;
}

static struct cf_at inner_at(const struct cf_at *at, uint16_t udp_port)
{
	struct cf_at in = { .len = sizeof(struct sockaddr_in), .encap = udp_port };
	struct sockaddr_storage sctp = at->ss;
	struct sockaddr_in *to = (struct sockaddr_in *)&in.ss;

	to->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to->sin_port = *get_port_field(&sctp);
	return in;
}

/* What leads to where @at is; the case fails if nothing does. */
static struct cf_dtls *dial_inside(const struct cf_net *n, const struct cf_at *at, struct cf_at *in)
{
	const struct cf_secured *s = secured_sctp(n);
	struct sockaddr_storage to = at->ss;
	struct sockaddr_in inner = { .sin_port = 0 };
	char host[256], why[300] = "";
	struct cf_dtls *d;

	if (at->encap > 0) /* else its port is UDP's, too */
		*get_port_field(&to) = htons((uint16_t)at->encap);
	cf_uri_host(n->cf->run->uri, host, sizeof host);
	d = s->lib->dial(s->creds, (struct sockaddr *)&to, at->len, host,
			 cf_limit(n->cf, CF_PART_SETUP), &inner, why, sizeof why);
	CF_CHECK(n->cf, d, "the DTLS handshake: %s", why);
	*in = inner_at(at, ntohs(inner.sin_port));
	/* cppcheck-suppress returnDanglingLifetime ; it keeps neither address */
	return d;
}

/* The socket at @at is that of DTLS; 0 or an errno. */
static int front_inside(struct cf_net *n, const struct cf_at *at, char *uri, size_t len)
{
	const struct cf_secured *s = secured_sctp(n);
	struct sockaddr_storage ss = at->ss;
	struct cf_below *b = n->below;
	socklen_t ss_len = sizeof ss;
	char text[80], why[300] = "";
	struct sockaddr_in inner;
	int outer = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (outer < 0 || bind(outer, (struct sockaddr *)&ss, at->len) ||
	    getsockname(outer, (struct sockaddr *)&ss, &ss_len)) {
		int err = errno;

		if (outer >= 0)
			close(outer);
		return err;
	}
	ss_len = sizeof inner;
	if (getsockname(b->listen_fd, (struct sockaddr *)&inner, &ss_len))
		return errno;
	cf_addr_text(&ss, text, sizeof text);
	snprintf(uri, len, "sctps://%s", text);
	b->port = ntohs(*get_port_field(&ss));
	b->front = s->lib->front(s->creds, outer, &inner, why, sizeof why);
	return b->front ? 0 : ENOMEM;
}

/* ---- where packets come from ---- */

static int listen_on_carrier(struct cf_net *n, const struct cf_at *at, char *uri, size_t len)
{
	const struct cf_at in = inner_at(at, 0), *outer = at;
	struct sockaddr_storage ss, sctp = at->ss;
	struct cf_below *b = get_socket_carrier(n);
	socklen_t ss_len = sizeof ss;
	char text[80], encap[16] = "off";

	if (!b)
		return ENOMEM;
	if (secured_sctp(n))
		at = &in;
	ss = carrier_address(at);
	b->raw = at->encap == CF_ENCAP_OFF;
	b->listen_fd = socket_for(at);
	if (b->listen_fd < 0 || bind(b->listen_fd, (struct sockaddr *)&ss, at->len) ||
	    getsockname(b->listen_fd, (struct sockaddr *)&ss, &ss_len))
		return errno;
	if (secured_sctp(n))
		return front_inside(n, outer, uri, len);
	if (!*get_port_field(&sctp))
		*get_port_field(&sctp) = htons((uint16_t)(49152 + cf_now() / 1000 % 16384));
	b->port = ntohs(*get_port_field(&sctp));
	if (!b->raw)
		snprintf(encap, sizeof encap, "%u", ntohs(*get_port_field(&ss)));
	cf_addr_text(&sctp, text, sizeof text);
	snprintf(uri, len, "sctp://%s?backend=%s&encap=%s", text,
		 *at->backend ? at->backend : "auto", encap);
	return 0;
}

int cf_link_open(struct cf_assoc *as, const struct cf_at *at)
{
	struct cf_below *b = get_socket_carrier(as->net);
	struct sockaddr_storage to, sctp = at->ss;
	struct cf_dtls *dtls = NULL;
	struct cf_link *l;
	struct cf_at in;
	int fd;

	if (!b)
		return ENOMEM;
	if (secured_sctp(as->net)) {
		dtls = dial_inside(as->net, at, &in);
		at = &in;
	}
	to = carrier_address(at);
	b->raw = at->encap == CF_ENCAP_OFF;
	fd = socket_for(at);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, at->len)) {
		int err = errno;

		close(fd);
		errno = err;
		fd = -1;
	}
	l = fd < 0 ? NULL : cf_link_new(as->net, fd, true);
	if (!l) {
		int err = fd < 0 ? errno : ENOMEM;

		if (fd >= 0)
			close(fd);
		if (dtls)
			secured_sctp(as->net)->lib->close(dtls);
		return err;
	}
	l->dtls = dtls;
	l->as = as;
	l->to = to;
	l->to_len = at->len;
	l->peer_port = ntohs(*get_port_field(&sctp));
	as->below = l;
	return 0;
}

static int dial_on_carrier(struct cf_assoc *as, const struct cf_at *at)
{
	int err = cf_link_open(as, at);

	if (!err)
		cf_link_dial(as->below);
	return err;
}

static size_t fill_carrier_fds(struct cf_net *n, struct pollfd *p, size_t max)
{
	struct cf_below *b = n->below;
	size_t count = 0;

	if (b->listen_fd >= 0)
		p[count++] = (struct pollfd){ b->listen_fd, POLLIN, 0 };
	for (struct cf_link *l = b->links; l && count < max; l = l->next)
		if (l->own_fd && l->state != CF_L_OVER)
			p[count++] = (struct pollfd){ l->fd, POLLIN, 0 };
	return count;
}

static uint64_t get_carrier_due(struct cf_net *n)
{
	struct cf_below *b = n->below;
	uint64_t first = UINT64_MAX;

	for (struct cf_link *l = b->links; l; l = l->next)
		first = l->due < first ? l->due : first;
	return first;
}

static void read_carrier_socket(struct cf_net *n, int fd, struct cf_assoc *as)
{
	struct cf_below *b = n->below;

	for (unsigned i = 0; i < TURN; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t from_len = sizeof from;
		ssize_t got = recvfrom(fd, b->in, sizeof b->in, MSG_DONTWAIT,
				       (struct sockaddr *)&from, &from_len);

		/* Nobody has that UDP port. */
		if (got < 0 && errno == ECONNREFUSED && as)
			cf_sctp_gone(as, "%s", strerror(errno));
		if (got < 0)
			return;
		cf_pkt_in(n, fd, &from, from_len, b->in, (size_t)got);
	}
}

static void step_carrier(struct cf_net *n)
{
	struct cf_below *b = n->below;
	uint64_t now;

	if (b->listen_fd >= 0)
		read_carrier_socket(n, b->listen_fd, NULL);
	for (struct cf_link *l = b->links; l; l = l->next)
		if (l->own_fd && l->state != CF_L_OVER)
			read_carrier_socket(n, l->fd, l->as);
	now = cf_now();
	for (struct cf_link *l = b->links; l; l = l->next) {
		cf_link_reopen(l);
		if (l->due <= now)
			cf_link_expired(l);
	}
}

static bool send_on_carrier(struct cf_assoc *as, uint16_t stream, uint32_t ppid, const void *p,
			    size_t len)
{
	struct cf_link *l = as->below;

	if (!cf_link_put(l, stream, ppid, p, len))
		return false;
	cf_link_flush(l);
	return true;
}

static void shut_down_carrier_link(struct cf_assoc *as)
{
	struct cf_link *l = as->below;

	if (l->state != CF_L_UP)
		return;
	l->state = CF_L_SHUTDOWN_DUE;
	cf_link_go_on(l);
}

static void abort_carrier_link(struct cf_assoc *as)
{
	cf_link_abort(as->below);
	cf_sctp_gone(as, "aborted here");
}

static void close_carrier(struct cf_net *n)
{
	struct cf_below *b = n->below;

	while (b && b->links) {
		struct cf_link *l = b->links;

		b->links = l->next;
		cf_link_abort(l);
		if (l->own_fd)
			close(l->fd);
		if (l->dtls)
			secured_sctp(n)->lib->close(l->dtls);
		free(l);
	}
	if (b && b->spare_own)
		close(b->spare_fd);
	if (b && b->front)
		secured_sctp(n)->lib->close(b->front);
	if (b && b->listen_fd >= 0)
		close(b->listen_fd);
	free(b);
}

const struct cf_carrier cf_sctp_packets = {
	.listen = listen_on_carrier,
	.dial = dial_on_carrier,
	.fds = fill_carrier_fds,
	.due = get_carrier_due,
	.step = step_carrier,
	.send = send_on_carrier,
	.shutdown = shut_down_carrier_link,
	.abort = abort_carrier_link,
	.close = close_carrier,
};
