/* SPDX-License-Identifier: BSD-2-Clause */
/* The soft port: datagrams, groups and CM messages over UDP, and the port as a whole. */
#include "ipoib/soft/soft_in.h"
#include "cli/hostport.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH	     64
#define DATAGRAM_MAX 4096u

socklen_t ddps_soft_addr_len(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static bool same_addr(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_in6 a6, b6;
	struct sockaddr_in a4, b4;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6) {
		memcpy(&a6, a, sizeof(a6));
		memcpy(&b6, b, sizeof(b6));
		return a6.sin6_port == b6.sin6_port &&
		       memcmp(&a6.sin6_addr, &b6.sin6_addr, sizeof(a6.sin6_addr)) == 0;
	}
	memcpy(&a4, a, sizeof(a4));
	memcpy(&b4, b, sizeof(b4));
	return a4.sin_port == b4.sin_port && a4.sin_addr.s_addr == b4.sin_addr.s_addr;
}

static void put(struct ddps_soft *s, const struct sockaddr_storage *to, struct ddps_soft_header *h,
		const void *data, size_t len)
{
	uint8_t head[DDPS_SOFT_HEADER_LEN];
	struct iovec iov[2] = { { head, sizeof(head) }, { (void *)data, len } };
	struct msghdr m = { .msg_name = (void *)to,
			    .msg_namelen = ddps_soft_addr_len(to),
			    .msg_iov = iov,
			    .msg_iovlen = 2 };

	h->from_qpn = h->kind == DDPS_SOFT_MAD ? 1 : s->cfg.qpn;
	memcpy(h->from, s->cfg.gid, sizeof(h->from));
	ddps_soft_header_encode(head, h);
	/* an earlier ICMP error for another peer may come out here: the second try sends */
	for (unsigned tries = 0; sendmsg(s->udp, &m, MSG_DONTWAIT) < 0; tries++)
		if (tries) {
			s->stats.tx_lost++;
			return;
		}
}

/* What a header says about a datagram, for a capture. */
static void see(const struct ddps_soft *s, bool tx, ddps_cm_addr peer,
		const struct ddps_soft_header *h, const void *frame, size_t len)
{
	const struct ddps_soft_seen seen = { .tx = tx,
					     .peer = peer,
					     .from_qpn = h->from_qpn,
					     .to_qpn = h->to_qpn,
					     .from = h->from,
					     .to = h->to,
					     .frame = frame,
					     .len = len };

	if (s->cfg.see && h->kind != DDPS_SOFT_MAD)
		s->cfg.see(s->cfg.see_user, &seen);
}

static void put_to_peer(struct ddps_soft *s, unsigned peer, struct ddps_soft_header *h,
			const void *data, size_t len)
{
	memcpy(h->to, s->peer[peer].gid, sizeof(h->to));
	put(s, &s->peer[peer].udp, h, data, len);
	see(s, true, (ddps_cm_addr)peer + 1, h, data, len);
}

static void put_to_group(struct ddps_soft *s, struct ddps_soft_header *h, const uint8_t *mgid,
			 const void *data, size_t len)
{
	h->kind = DDPS_SOFT_GROUP;
	memcpy(h->to, mgid, sizeof(h->to));
	if (s->mcast >= 0)
		put(s, &s->cfg.group, h, data, len);
	for (unsigned i = 0; i < s->n_peers && s->mcast < 0; i++)
		put(s, &s->peer[i].udp, h, data, len);
	see(s, true, 0, h, data, len);
}

static int ud_send(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
		   const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	struct ddps_soft *s = SOFT(port);
	struct ddps_soft_header h = { .kind = DDPS_SOFT_UD, .to_qpn = to->qpn };

	if (len > s->cfg.link_mtu)
		return DDPS_E_TOO_LONG;
	if (to->qpn == DDPS_IPOIB_QPN_MCAST) {
		put_to_group(s, &h, to->gid, frame, len);
		return 0;
	}
	if (!path || !path->addr || path->addr > s->n_peers)
		return DDPS_E_ADDRESS;
	put_to_peer(s, (unsigned)path->addr - 1, &h, frame, len);
	return 0;
}

static int mad_send(struct ddps_ipoib_port *port, ddps_cm_addr to,
		    const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_soft_header h = { .kind = DDPS_SOFT_MAD, .to_qpn = 1 };

	if (!to || to > SOFT(port)->n_peers)
		return DDPS_E_ADDRESS;
	put_to_peer(SOFT(port), (unsigned)to - 1, &h, mad, DDPS_CM_MAD_LEN);
	return 0;
}

static int find_group(const struct ddps_soft *s, const uint8_t *mgid)
{
	for (unsigned i = 0; i < s->n_group; i++)
		if (memcmp(s->group[i], mgid, DDPS_IPOIB_GID_LEN) == 0)
			return (int)i;
	return -1;
}

/* Operations may not call up: what they found is told in the next round. */
static int answer_later(struct ddps_soft *s, bool joined, const uint8_t *gid)
{
	struct soft_answer *a = &s->answer[s->n_answer];

	if (s->n_answer == SOFT_ANSWERS)
		return DDPS_E_AGAIN;
	a->joined = joined;
	memcpy(a->gid, gid, sizeof(a->gid));
	s->n_answer++;
	return 0;
}

static int join(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	struct ddps_soft *s = SOFT(port);
	int err = answer_later(s, true, mgid);

	if (err || find_group(s, mgid) >= 0)
		return err;
	if (s->n_group == SOFT_GROUPS) {
		s->n_answer--;
		return DDPS_E_LIMIT;
	}
	memcpy(s->group[s->n_group++], mgid, DDPS_IPOIB_GID_LEN);
	return 0;
}

static void leave(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	struct ddps_soft *s = SOFT(port);
	int i = find_group(s, mgid);

	if (i >= 0)
		memmove(s->group[i], s->group[--s->n_group], DDPS_IPOIB_GID_LEN);
}

static int resolve(struct ddps_ipoib_port *port, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	return answer_later(SOFT(port), false, gid);
}

static int find_peer(const struct ddps_soft *s, const uint8_t *gid)
{
	for (unsigned i = 0; i < s->n_peers; i++)
		if (memcmp(s->peer[i].gid, gid, DDPS_IPOIB_GID_LEN) == 0)
			return (int)i;
	return -1;
}

/* What the interface knows a peer by. */
static ddps_cm_addr token(int peer)
{
	return (ddps_cm_addr)peer + 1;
}

static void tell_path(struct ddps_soft *s, const uint8_t *gid, uint64_t now)
{
	int peer = find_peer(s, gid);
	struct ddps_ipoib_path path = { .slid = 1, .dlid = 2, .hop_limit = 1, .mtu = 4, .rate = 3 };

	path.addr = token(peer);
	path.dlid = (uint16_t)(peer + 2);
	path.life = 14; /* 4.096 us * 2^14 = 67 ms */
	s->cfg.up->path(s->cfg.user, gid, peer < 0 ? NULL : &path, now);
}

static bool answer(struct ddps_soft *s, uint64_t now)
{
	struct soft_answer list[SOFT_ANSWERS];
	unsigned n = s->n_answer;

	memcpy(list, s->answer, n * sizeof(*list));
	s->n_answer = 0;
	for (unsigned i = 0; i < n; i++)
		if (list[i].joined)
			s->cfg.up->joined(s->cfg.user, list[i].gid, 0, s->cfg.link_mtu, now);
		else
			tell_path(s, list[i].gid, now);
	return n;
}

static void take_datagram(struct ddps_soft *s, const struct sockaddr_storage *src, size_t len,
			  uint64_t now)
{
	struct ddps_ipoib_ud_from from = { .has_gid = true };
	const uint8_t *data = s->buf + DDPS_SOFT_HEADER_LEN;
	struct ddps_soft_header h;
	bool group;
	int peer;

	if (ddps_soft_header_decode(&h, s->buf, len)) {
		s->stats.rx_bad++;
		return;
	}
	len -= DDPS_SOFT_HEADER_LEN;
	peer = find_peer(s, h.from);
	group = h.kind == DDPS_SOFT_GROUP;
	if (group && s->mcast >= 0 && !memcmp(h.from, s->cfg.gid, sizeof(h.from)))
		return; /* our own, come back */
	if (peer < 0 || !same_addr(src, &s->peer[peer].udp) ||
	    (!group && memcmp(h.to, s->cfg.gid, sizeof(h.to)) != 0) ||
	    (h.kind == DDPS_SOFT_UD && h.to_qpn != s->cfg.qpn)) {
		s->stats.rx_stranger++;
	} else if (group && find_group(s, h.to) < 0) {
		s->stats.rx_group++;
	} else if (h.kind == DDPS_SOFT_MAD) {
		s->cfg.up->mad(s->cfg.user, token(peer), data, len, now);
	} else {
		from.qpn = h.from_qpn;
		from.multicast = group;
		memcpy(from.gid, h.from, sizeof(from.gid));
		see(s, false, token(peer), &h, data, len);
		s->cfg.up->ud(s->cfg.user, &from, data, len, now);
	}
}

static bool read_udp(struct ddps_soft *s, int fd, uint64_t now)
{
	for (unsigned i = 0; i < BATCH; i++) {
		struct sockaddr_storage src = { 0 };
		socklen_t src_len = sizeof(src);
		ssize_t n = recvfrom(fd, s->buf, DDPS_SOFT_HEADER_LEN + DATAGRAM_MAX,
				     MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&src, &src_len);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		if (n < 0)
			continue; /* an ICMP error about an earlier datagram */
		if ((size_t)n > DDPS_SOFT_HEADER_LEN + DATAGRAM_MAX)
			s->stats.rx_bad++;
		else
			take_datagram(s, &src, (size_t)n, now);
	}
	return true;
}

bool ddps_ipoib_soft_run(struct ddps_soft *s, uint64_t now)
{
	bool more = answer(s, now);

	more |= read_udp(s, s->udp, now);
	more |= s->mcast >= 0 && read_udp(s, s->mcast, now);
	more |= ddps_soft_sessions_run(s, now);
	return more || s->n_answer;
}

void ddps_ipoib_soft_fds(struct ddps_soft *s, struct pollfd fds[DDPS_SOFT_FDS])
{
	const int fd[DDPS_SOFT_FDS] = { s->udp, s->mcast, ddps_ctx_fd(s->ctx),
					ddps_event_fd(s->ctx), ddps_cq_fd(s->cq) };

	for (unsigned i = 0; i < DDPS_SOFT_FDS; i++)
		fds[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
}

static const struct ddps_ipoib_port_ops ops = {
	.struct_size = sizeof(ops),
	.ud_send = ud_send,
	.join = join,
	.leave = leave,
	.resolve = resolve,
	.mad_send = mad_send,
	.qp_create = ddps_soft_qp_create,
	.qp_ready = ddps_soft_qp_ready,
	.qp_send = ddps_soft_qp_send,
	.qp_stop = ddps_soft_qp_stop,
	.qp_destroy = ddps_soft_qp_destroy,
};

static int open_udp(struct ddps_soft *s, char *why, size_t why_len)
{
	const struct sockaddr_storage *a = &s->cfg.udp;
	char text[HOSTPORT_TEXT];
	int err;

	s->udp = socket(a->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->udp >= 0 && bind(s->udp, (const struct sockaddr *)a, ddps_soft_addr_len(a)) == 0)
		return 0;
	err = errno;
	hostport_print(text, a);
	snprintf(why, why_len, "UDP on %s: %s", text, strerror(err));
	errno = err;
	return DDPS_E_SYSTEM;
}

int ddps_ipoib_soft_new(struct ddps_soft **out, const struct ddps_soft_config *cfg, char *why,
			size_t why_len)
{
	struct ddps_soft *s;
	int err;

	snprintf(why, why_len, "out of memory");
	if (!cfg->up || cfg->link_mtu > DATAGRAM_MAX || cfg->link_mtu < DDPS_IPOIB_ENCAP_LEN ||
	    cfg->qpn >= DDPS_IPOIB_QPN_MCAST) {
		snprintf(why, why_len, "a link MTU of %u to %u, a QPN of 24 bits",
			 (unsigned)DDPS_IPOIB_ENCAP_LEN, DATAGRAM_MAX);
		return DDPS_E_INVAL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return DDPS_E_NOMEM;
	s->port.ops = &ops;
	s->cfg = *cfg;
	s->cfg.max_qps = cfg->max_qps ? cfg->max_qps : 64;
	s->next_qpn = cfg->seed & DDPS_IPOIB_QPN_MAX;
	s->udp = s->mcast = -1;
	s->buf = malloc(DDPS_SOFT_HEADER_LEN + DATAGRAM_MAX);
	err = s->buf ? open_udp(s, why, why_len) : DDPS_E_NOMEM;
	if (!err)
		err = ddps_soft_mcast_open(s, why, why_len);
	if (!err)
		err = ddps_soft_sessions_open(s, why, why_len);
	if (err) {
		int keep = errno;

		ddps_ipoib_soft_free(s);
		errno = keep;
		return err;
	}
	*out = s;
	return 0;
}

int ddps_ipoib_soft_add(struct ddps_soft *s, const struct ddps_soft_peer *peer)
{
	if (peer->udp.ss_family != s->cfg.udp.ss_family || find_peer(s, peer->gid) >= 0 ||
	    memcmp(peer->gid, s->cfg.gid, sizeof(peer->gid)) == 0)
		return DDPS_E_INVAL;
	if (s->n_peers == DDPS_SOFT_PEERS)
		return DDPS_E_LIMIT;
	s->peer[s->n_peers++] = *peer;
	return 0;
}

void ddps_ipoib_soft_free(struct ddps_soft *s)
{
	if (!s)
		return;
	ddps_soft_sessions_close(s);
	if (s->udp >= 0)
		close(s->udp);
	if (s->mcast >= 0)
		close(s->mcast);
	free(s->buf);
	free(s);
}

struct ddps_ipoib_port *ddps_ipoib_soft_port(struct ddps_soft *s)
{
	return &s->port;
}

void ddps_ipoib_soft_user(struct ddps_soft *s, void *user)
{
	s->cfg.user = user;
}

const struct ddps_soft_stats *ddps_ipoib_soft_stats(const struct ddps_soft *s)
{
	return &s->stats;
}

uint16_t ddps_ipoib_soft_udp_port(const struct ddps_soft *s)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in6 a6 = { 0 };
	struct sockaddr_in a4 = { 0 };
	socklen_t len = sizeof(a);

	if (getsockname(s->udp, (struct sockaddr *)&a, &len))
		return 0;
	memcpy(&a6, &a, sizeof(a6));
	memcpy(&a4, &a, sizeof(a4));
	return ntohs(a.ss_family == AF_INET6 ? a6.sin6_port : a4.sin_port);
}

int ddps_ipoib_soft_uri(const struct ddps_soft *s, char *buf, size_t len)
{
	return s->listener ? ddps_listener_uri(s->listener, buf, len) : DDPS_E_STATE;
}
