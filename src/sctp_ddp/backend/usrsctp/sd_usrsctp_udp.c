/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers: the sockets below usrsctp, UDP (RFC 6951) or raw IP protocol 132, and the table of
 * the peers that have associations through them.
 */
#include "common/own.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp_icmp.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SLOT_LEN     65536u
#define BATCH	     (DDPS_SCRATCH_LEN / SLOT_LEN)
#define ROUNDS	     4	 /* batches per turn, then others have theirs */
#define SCTP_MIN     16u /* common header and one chunk header */
#define CHECKSUM_OFF 8u
#define CHUNK_OFF    12u

/* ---- the path ---- */

static bool is_v4(const struct ddps_us_handle *h)
{
	return h->addr.family == AF_INET || ddps_sd_sock_is_mapped(&h->to);
}

static uint32_t payload_of(const struct ddps_us_handle *h, uint32_t mtu)
{
	uint32_t headers = (is_v4(h) ? 20u : 40u) + (h->carrier->raw ? 0u : 8u);

	return mtu > headers + DDPS_US_PAYLOAD_MIN ? mtu - headers : DDPS_US_PAYLOAD_MIN;
}

void ddps_us_handle_probe(struct ddps_us_handle *h)
{
	uint32_t mtu = ddps_sd_sock_mtu(&h->to);
	uint32_t most = ddps_us_max_payload(is_v4(h) ? AF_INET : AF_INET6, h->carrier->raw);

	h->mtu_stale = false;
	h->payload = most;
	if (mtu && payload_of(h, mtu) < most)
		h->payload = payload_of(h, mtu);
}

void ddps_us_handle_narrow(struct ddps_us_handle *h, uint32_t mtu)
{
	uint32_t least = is_v4(h) ? 68u : 1280u; /* RFC 791 3.2, RFC 8200 5 */

	if (mtu >= least && h->payload && payload_of(h, mtu) < h->payload)
		h->payload = payload_of(h, mtu);
}

uint32_t ddps_us_max_payload(int family, bool raw)
{
	uint32_t udp = raw ? 0 : 8;

	/* IPv6 does not count its header in the length. */
	return (family == AF_INET ? 65535u - 20u : 65535u) - udp;
}

/* ---- peers ---- */

void ddps_us_addr_key(struct ddps_us_addr *key, const struct sockaddr_storage *ss, bool raw)
{
	struct sockaddr_in6 a6;
	struct sockaddr_in a4;

	memset(key, 0, sizeof *key);
	key->family = ss->ss_family;
	key->port = raw ? 0 : ddps_sd_port_number(ss);
	if (ss->ss_family == AF_INET6) {
		memcpy(&a6, ss, sizeof a6);
		memcpy(key->ip, &a6.sin6_addr, sizeof key->ip);
		key->scope = a6.sin6_scope_id;
	} else {
		memcpy(&a4, ss, sizeof a4);
		memcpy(key->ip, &a4.sin_addr, sizeof a4.sin_addr);
	}
}

static struct ddps_us_handle *handle_new(struct ddps_us_carrier *c)
{
	struct ddps_us_handle *h = calloc(1, sizeof *h);

	if (h)
		h->carrier = c;
	return h;
}

void ddps_us_handle_get(struct ddps_us_handle *h)
{
	if (!h->refs++)
		usrsctp_register_address((void *)h->id);
}

void ddps_us_handle_put(struct ddps_us_handle *h)
{
	if (--h->refs)
		return;
	ddps_us_flush(h->carrier->ue); /* packets of it wait there */
	usrsctp_deregister_address((void *)h->id);
	ddps_us_handle_leave(h);
	free(h);
}

struct datagram {
	uint8_t *pkt;
	size_t len;
	struct sockaddr_storage from, local;
	socklen_t from_len;
};

static void feed(struct ddps_us_handle *h, const struct datagram *d, struct ddps_us_port *p)
{
	uint8_t chunk = d->pkt[CHUNK_OFF];
	size_t len = d->len;

	if (!ddps_us_guard(h, d->pkt, &len))
		return;

	/* What becomes of this must know the size of its path from the start: usrsctp can
	 * lower it later, but not raise it. */
	if (p && p->ep && chunk == SCTP_COOKIE_ECHO) {
		if (!h->payload)
			ddps_us_handle_probe(h);
		ddps_us_endpoint_payload(p->ep, h->payload);
	}
	usrsctp_conninput((void *)h->id, d->pkt, len, 0);
	if (p && p->ep && chunk != SCTP_DATA && chunk != SCTP_SELECTIVE_ACK)
		ddps_us_accept(p);
}

/* A peer without association gets the spare handle, to keep if one comes of this packet. */
static void feed_stray(struct ddps_us_carrier *c, const struct ddps_us_addr *key, uintptr_t id,
		       const struct datagram *d, struct ddps_us_port *p)
{
	struct ddps_us_handle *h = c->stray ? c->stray : handle_new(c);

	c->stray = NULL;
	if (!h)
		return;
	h->id = id;
	h->addr = *key;
	h->to = d->from;
	h->to_len = d->from_len;
	h->local = d->local;
	h->payload = 0;
	memset(h->sent, 0, sizeof h->sent);
	if (!ddps_us_handle_enter(h)) {
		feed(h, d, p);
		if (h->refs)
			return;
		ddps_us_handle_leave(h);
	}
	c->stray = h;
}

/* From whoever it is. */
static void feed_from(struct ddps_us_carrier *c, const struct datagram *d, struct ddps_us_port *p)
{
	struct ddps_us_handle *h;
	struct ddps_us_addr key;
	uintptr_t id;

	ddps_us_addr_key(&key, &d->from, c->raw);
	id = ddps_us_handle_id(c, &key);
	h = ddps_us_handle_find(id);
	if (!h)
		feed_stray(c, &key, id, d, p);
	else if (h->carrier == c && !memcmp(&h->addr, &key, sizeof key))
		feed(h, d, p);
}

static uint16_t be16_at(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool checksum_ok(uint8_t *pkt, size_t len)
{
	uint32_t got, want;

	memcpy(&got, pkt + CHECKSUM_OFF, sizeof got);
	memset(pkt + CHECKSUM_OFF, 0, sizeof got);
	want = ddps_us_checksum(pkt, len);
	memcpy(pkt + CHECKSUM_OFF, &got, sizeof got);
	return got == want;
}

static void input(struct ddps_us_carrier *c, struct datagram *d)
{
	struct ddps_us_port *p;

	if (c->raw && !ddps_sd_sock_strip_ip(c->family, &d->pkt, &d->len))
		return;
	if (d->len < SCTP_MIN || !be16_at(d->pkt) || !be16_at(d->pkt + 2))
		return;
	/* usrsctp looks for the port alone; a port of another carrier is none here.  Raw
	 * sockets see every packet of the host: only ours concern us. */
	p = ddps_us_port_find(be16_at(d->pkt + 2));
	if (p ? p->carrier != c : c->raw)
		return;
	if (!checksum_ok(d->pkt, d->len))
		return;
	if (c->connected)
		feed(c->peer, d, p);
	else
		feed_from(c, d, p);
}

/* ---- in ---- */

/* What the kernel put together is fed datagram by datagram. */
static void cut_up(struct ddps_us_carrier *c, struct mmsghdr *m,
		   const struct sockaddr_storage *from)
{
	struct datagram d = { .from = *from, .from_len = m->msg_hdr.msg_namelen };
	uint8_t *buf = m->msg_hdr.msg_iov->iov_base;
	size_t off = 0, at;
	int seg = ddps_sd_sock_dest(&m->msg_hdr, &d.local);

	for (at = 0; (d.len = ddps_us_gro_next(m->msg_len, seg, &off)); at = off) {
		d.pkt = buf + at;
		input(c, &d);
	}
}

static int read_batch(struct ddps_us_carrier *c)
{
	struct mmsghdr m[BATCH] = { 0 };
	struct iovec iov[BATCH];
	struct sockaddr_storage from[BATCH];
	union ddps_sd_cmsg ctrl[BATCH];
	int n;

	for (unsigned i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ c->ue->env->scratch + i * SLOT_LEN, SLOT_LEN };
		m[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
						.msg_namelen = sizeof from[i],
						.msg_iov = &iov[i],
						.msg_iovlen = 1,
						.msg_control = &ctrl[i],
						.msg_controllen = sizeof ctrl[i] };
	}
	n = recvmmsg(c->io.fd, m, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		if (m[i].msg_hdr.msg_flags & MSG_TRUNC)
			continue;
		/* cppcheck-suppress uninitvar ; recvmmsg has filled it */
		cut_up(c, &m[i], &from[i]);
	}
	return n;
}

static void readable(void *user, uint32_t events)
{
	struct ddps_us_carrier *c = user;
	struct ddps_us_env *ue = c->ue;
	int n = BATCH;

	ddps_us_lock(ue);
	ue->busy = ddps_now();
	for (int i = 0; i < ROUNDS && n == BATCH; i++) {
		n = read_batch(c);
		ddps_us_flush(ue); /* acknowledgements, and what those of the peer let go */
	}
	if (events & EPOLLERR)
		ddps_us_icmp_read(c);
	ddps_us_unlock();
}

/* ---- life ---- */

static int carrier_new(struct ddps_us_env *ue, int family, bool raw, struct ddps_us_carrier **out)
{
	struct ddps_us_carrier *c = calloc(1, sizeof *c);

	if (!c)
		return DDPS_E_NOMEM;
	*c = (struct ddps_us_carrier){ .ue = ue, .family = family, .raw = raw, .refs = 1 };
	c->io.fn = readable;
	c->io.user = c;
	c->io.fd = ddps_sd_sock_open(family, raw, &c->gso);
	if (c->io.fd < 0) {
		free(c);
		return DDPS_E_SYSTEM;
	}
	DL_APPEND(ue->carriers, c);
	*out = c;
	return 0;
}

void ddps_us_carrier_put(struct ddps_us_carrier *c)
{
	int keep = errno;

	if (--c->refs)
		return;
	DL_DELETE(c->ue->carriers, c);
	ddps_io_del(c->ue->env->loop, &c->io);
	ddps_own_close(c->io.fd);
	free(c->stray);
	free(c);
	errno = keep;
}

static struct ddps_us_carrier *find_bound(struct ddps_us_env *ue, const struct sockaddr_storage *ss,
					  bool raw)
{
	struct ddps_us_carrier *c;
	struct ddps_us_addr want, have;
	struct sockaddr_storage bound;
	socklen_t len;

	ddps_us_addr_key(&want, ss, raw);
	for (c = ue->carriers; c; c = c->next) {
		len = sizeof bound;
		memset(&bound, 0, sizeof bound);
		if (c->connected || c->raw != raw ||
		    getsockname(c->io.fd, (struct sockaddr *)&bound, &len) < 0)
			continue;
		ddps_us_addr_key(&have, &bound, raw);
		if (!memcmp(&want, &have, sizeof want))
			return c;
	}
	return NULL;
}

int ddps_us_carrier_bind(struct ddps_us_env *ue, const struct sockaddr *sa, socklen_t len,
			 int encap, struct ddps_us_carrier **out)
{
	bool raw = encap == DDPS_URI_ENCAP_OFF;
	struct sockaddr_storage ss = { 0 };
	struct ddps_us_carrier *c = NULL;
	int err;

	memcpy(&ss, sa, len);
	ddps_sd_set_port(&ss, raw ? 0 : (uint16_t)encap);
	/* Endpoints of one context share a UDP port, as they would with a kernel's SCTP. */
	if (raw || encap)
		c = find_bound(ue, &ss, raw);
	if (c) {
		c->refs++;
		*out = c;
		return 0;
	}
	err = carrier_new(ue, sa->sa_family, raw, &c);
	if (err)
		return err;
	if (bind(c->io.fd, (struct sockaddr *)&ss, len) < 0)
		err = DDPS_E_SYSTEM;
	else
		err = ddps_io_set(ue->env->loop, &c->io, EPOLLIN);
	if (err)
		ddps_us_carrier_put(c);
	else
		*out = c;
	return err;
}

int ddps_us_carrier_connect(struct ddps_us_env *ue, const struct sockaddr_storage *from,
			    const struct sockaddr *sa, socklen_t len, int encap,
			    struct ddps_us_carrier **out, int *net_errno)
{
	bool raw = encap == DDPS_URI_ENCAP_OFF;
	struct ddps_us_handle *h;
	struct ddps_us_carrier *c;
	int err;

	*net_errno = 0;
	err = carrier_new(ue, sa->sa_family, raw, &c);
	if (err)
		return err;
	h = handle_new(c);
	err = h ? ddps_io_set(ue->env->loop, &c->io, EPOLLIN) : DDPS_E_NOMEM;
	if (err) {
		free(h);
		ddps_us_carrier_put(c);
		return err;
	}
	memcpy(&h->to, sa, len);
	h->to_len = len;
	ddps_sd_set_port(&h->to, raw ? 0 : (uint16_t)encap);
	ddps_us_addr_key(&h->addr, &h->to, raw);
	c->peer = h;
	c->connected = true;
	if ((from->ss_family && bind(c->io.fd, (const struct sockaddr *)from, len) < 0) ||
	    connect(c->io.fd, (struct sockaddr *)&h->to, len) < 0)
		*net_errno = errno;
	*out = c;
	return 0;
}

/* ---- addresses ---- */

void ddps_us_local_text(const struct ddps_us_carrier *c, const struct sockaddr_storage *ip,
			uint16_t port, char *buf, size_t len)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;

	if (ip && ip->ss_family)
		ss = *ip;
	else
		getsockname(c->io.fd, (struct sockaddr *)&ss, &ss_len);
	ddps_sd_set_port(&ss, port);
	ddps_addr_text((struct sockaddr *)&ss, buf, len);
}

uint16_t ddps_us_carrier_port(const struct ddps_us_carrier *c)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;

	if (c->raw || getsockname(c->io.fd, (struct sockaddr *)&ss, &len) < 0)
		return 0;
	return ddps_sd_port_number(&ss);
}
