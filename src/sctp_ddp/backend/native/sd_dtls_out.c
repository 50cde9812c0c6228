/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets out: each sealed into the place behind the one before, all sent in one call. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is sealed at one time, and a packet that is in too many pieces: of a context, made on first use. */
uint8_t *ddps_sn_dtls_room(struct ddps_sn_env *ne)
{
	if (!ne->sealed)
		ne->sealed = malloc(DDPS_SN_SEALED + DDPS_SN_FLAT);
	return ne->sealed;
}

/* The parts of a packet as the AEAD takes them. */
static const struct iovec *few_parts(struct ddps_sn_env *ne, const struct iovec *iov, unsigned *n,
				     struct iovec *one)
{
	size_t len = 0;

	if (*n <= DDPS_AEAD_IOV_MAX)
		return iov;
	for (unsigned i = 0; i < *n && len + iov[i].iov_len <= DDPS_SN_FLAT; i++) {
		memcpy(ne->sealed + DDPS_SN_SEALED + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	*one = (struct iovec){ ne->sealed + DDPS_SN_SEALED, len };
	*n = 1;
	return one;
}

/* All packets of @o, one behind the other; the octets, or -errno. */
static ssize_t seal_packets(struct ddps_sn_dtls *c, const struct ddps_sctp_out *o)
{
	size_t all = 0;

	if (!ddps_sn_dtls_room(c->ne))
		return -ENOMEM;
	for (unsigned i = 0, k; i < o->niov; i += k) {
		const struct iovec *parts;
		struct iovec one;
		unsigned n;
		ssize_t len;

		k = ddps_sn_parts_of(o, i);
		n = k;
		parts = few_parts(c->ne, o->iov + i, &n, &one);
		len = ddps_dtls_seal(c->cur.rec, DDPS_DTLS_DATA, parts, (int)n, c->ne->sealed + all,
				     DDPS_SN_SEALED - all);
		if (len < 0)
			return len;
		all += (size_t)len;
	}
	return (ssize_t)all;
}

struct to_send {
	struct sockaddr_storage to;
	struct iovec iov;
	struct msghdr m;
	union ddps_sd_cmsg ctrl;
};

static void address_sealed(const struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
			   uint16_t port, const struct ddps_sctp_addr *from, struct to_send *x)
{
	struct sockaddr_storage local;

	memset(&x->m, 0, sizeof x->m);
	x->m.msg_name = &x->to;
	x->m.msg_namelen = ddps_sn_sockaddr(peer, port, udp->family, &x->to);
	if (from->family) {
		ddps_sn_sockaddr(from, 0, udp->family, &local);
		ddps_sd_sock_source(&x->m, &x->ctrl, &local);
	}
	x->m.msg_iov = &x->iov;
	x->m.msg_iovlen = 1;
}

/* The same octets one by one, since the kernel does not cut them; false: too long for the link. */
static bool send_cut_records(struct ddps_sn_sock *udp, struct to_send *x, size_t all, size_t each)
{
	uint8_t *p = x->iov.iov_base;

	for (size_t at = 0; at < all && !udp->full; at += x->iov.iov_len) {
		x->iov = (struct iovec){ p + at, all - at < each ? all - at : each };
		if (!ddps_sn_send_packet(udp, &x->m) && errno == EMSGSIZE)
			return false;
	}
	return true;
}

static bool send_sealed(struct ddps_sn_sock *udp, struct to_send *x, size_t all, size_t each)
{
	struct msghdr plain = x->m;

	x->iov.iov_len = all;
	if (all > each && udp->gso) {
		ddps_sd_sock_segment(&x->m, &x->ctrl, (uint16_t)each);
		if (ddps_sn_send_packet(udp, &x->m) || udp->full)
			return true;
		x->m = plain; /* whatever it is, what was sealed may leave as it is */
		if (ddps_sn_no_gso(errno))
			udp->gso = false;
	}
	return send_cut_records(udp, x, all, each);
}

void ddps_sn_dtls_send(struct ddps_sn_sock *as, const struct ddps_sctp_out *o, bool *large)
{
	struct ddps_sn_dtls *c = as->dtls;
	struct ddps_sn_sock *udp = c->udp;
	struct ddps_error e;
	struct to_send x;
	ssize_t n;

	if (c->state != DDPS_SN_OPEN)
		return;
	n = seal_packets(c, o);
	if (n < 0) {
		e = ddps_error_make(n == -EOVERFLOW ? DDPS_E_LIMIT : DDPS_E_NOMEM, 0,
				    n == -EOVERFLOW ? "the DTLS key has sealed all that it may: "
						      "connect anew"
						    : "nothing can be sealed any more");
		ddps_sn_dtls_end(c, &e);
		return;
	}
	address_sealed(udp, &o->to.peer, o->to.encap, &o->to.local, &x);
	x.iov.iov_base = c->ne->sealed;
	if (o->fragment)
		ddps_sd_sock_set_df(udp->io.fd, udp->family, false);
	*large = !send_sealed(udp, &x, (size_t)n, o->seg_size + ddps_dtls_overhead(c->cur.rec));
	if (o->fragment)
		ddps_sd_sock_set_df(udp->io.fd, udp->family, true);
	if (!c->server && !c->renewing && ddps_dtls_due(c->cur.rec))
		ddps_sn_dtls_renew(c);
}

void ddps_sn_dtls_send_raw(struct ddps_sn_sock *udp, const struct ddps_sctp_addr *peer,
			   uint16_t port, const struct ddps_sctp_addr *local, const uint8_t *p,
			   size_t n)
{
	struct to_send x;

	address_sealed(udp, peer, port, local, &x);
	x.iov = (struct iovec){ (void *)(uintptr_t)p, n };
	(void)ddps_sn_send_packet(udp, &x.m); /* it is as good as lost on the way */
}

void ddps_sn_dtls_alert(struct ddps_sn_dtls *c, enum ddps_alert alert)
{
	uint8_t out[DDPS_DTLS_OVERHEAD + 2];
	ssize_t n = c->cur.rec ? ddps_dtls_seal_alert(c->cur.rec, alert, out, sizeof out) : 0;

	if (n > 0)
		ddps_sn_dtls_send_raw(c->udp, &c->peer, c->at.port, &c->local, out, (size_t)n);
}
