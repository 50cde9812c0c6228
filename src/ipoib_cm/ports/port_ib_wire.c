/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a port whose packets are UDP's: opened, written to, read. */
#include "ipoib_cm/ports/port_ib_wire.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#define LID_MASK 0xffu
#define PARTS	 3 /* of a packet: before, of and behind its payload */
#define ROUNDS	 4 /* batches of a socket in one turn */
#define BUFFER	 (4 << 20)
#define SURE	 64  /* packets after which a node is taken for one that does not count */
#define FORGET	 255 /* and for one that does */

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO	    104
#endif

static struct sockaddr_in make_wire_address(uint32_t ip, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(ip),
				     .sin_port = htons(port) };
}

/*
 * A socket that sends identification 0, without which the ICRC cannot be known beforehand: it is
 * not connected and forbids fragments.  Return: -1 with errno.
 */
static int open_wire_socket(uint32_t ip, uint16_t port)
{
	const int on = 1, no_fragments = IP_PMTUDISC_PROBE, room = BUFFER;
	struct sockaddr_in a = make_wire_address(ip, port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -1;
	/* beyond the system's limit only with the right to */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &no_fragments, sizeof(no_fragments)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* Nodes of one machine may share a broadcast address, never their own. */
static int open_shared(uint32_t ip, uint16_t port)
{
	const int on = 1, room = BUFFER;
	struct sockaddr_in a = make_wire_address(ip, port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

int ddps_ib_wire_open(struct ib_wire *w, uint32_t *where)
{
	const int on = 1;

	w->multicast = -1;
	*where = w->ip;
	w->unicast = open_wire_socket(w->ip, w->udp_port);
	if (w->unicast < 0)
		return -1;
	(void)setsockopt(w->unicast, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	*where = w->broadcast;
	w->multicast = open_shared(w->broadcast, w->udp_port);
	return w->multicast < 0 ? -1 : 0;
}

void ddps_ib_wire_close(struct ib_wire *w)
{
	if (w->unicast >= 0)
		close(w->unicast);
	if (w->multicast >= 0)
		close(w->multicast);
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		(void)ddps_ib_wire_hold(w, i, 0);
}

/* Groups may share an MLID, but sockets cannot share a port. */
static int get_mlid_port(const struct ib_wire *w, uint16_t mlid)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (w->group[i].mlid == mlid)
			return fcntl(w->group[i].fd, F_DUPFD_CLOEXEC, 0);
	return open_wire_socket(w->ip, mlid);
}

int ddps_ib_wire_hold(struct ib_wire *w, unsigned group, uint16_t mlid)
{
	struct ib_wire_group *g = &w->group[group];

	if (g->mlid == mlid)
		return 0;
	if (g->mlid)
		close(g->fd);
	g->mlid = 0;
	if (!mlid)
		return 0;
	g->fd = get_mlid_port(w, mlid);
	if (g->fd < 0)
		return -1;
	g->mlid = mlid;
	return 0;
}

/* ---- out ---- */

static bool no_room(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == ENOBUFS;
}

/* Headers, payload unless it stays where it is, pad and ICRC, from @buf on.  Return: octets of the packet. */
static size_t build_wire_packet(struct ib_wire_piece *at, uint8_t *buf,
				const struct ddps_ib_udp_hdr *h, struct ddps_ib_pkt *p)
{
	size_t head = ddps_ib_pkt_encode(buf, p);
	uint32_t crc = ddps_ib_icrc(h, buf, head, p->data, p->len, p->pad);
	uint8_t *end = buf + head;

	*at = (struct ib_wire_piece){ .own = buf, .head = head };
	if (p->stays) {
		at->data = p->data;
		at->len = p->len;
	} else if (p->len) {
		memcpy(end, p->data, p->len);
		end += p->len;
	}
	memset(end, 0, p->pad);
	memcpy(end + p->pad, &crc, sizeof(crc));
	at->own_len = (size_t)(end - buf) + p->pad + sizeof(crc);
	return at->own_len + at->len;
}

static void give_up_packets(struct ib_wire *w, unsigned n, uint32_t to, int err)
{
	w->stats.wire_tx_failed += n;
	w->failed_err = err;
	w->failed_to = to;
}

/* A group's, by its own socket; what fails for another reason than room is lost. */
static bool send_to_wire_group(struct ib_wire *w, uint16_t mlid, unsigned group,
			       struct ddps_ib_pkt *p)
{
	const struct ddps_ib_udp_hdr h = {
		.src = w->ip, .dst = w->broadcast, .sport = mlid, .dport = w->udp_port
	};
	struct sockaddr_in to = make_wire_address(h.dst, w->udp_port);
	uint8_t buf[DDPS_IB_PKT_MAX];
	struct ib_wire_piece at;
	size_t len = build_wire_packet(&at, buf, &h, p);
	int fd = w->group[group].mlid == mlid ? w->group[group].fd : -1;

	w->stats.wire_tx_calls++;
	if (fd >= 0 && sendto(fd, buf, len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) >= 0)
		w->stats.wire_tx++;
	else if (fd >= 0 && no_room(errno))
		return false; /* groups are best effort: nobody waits for room */
	else
		give_up_packets(w, 1, h.dst, fd < 0 ? EBADF : errno);
	return true;
}

static size_t size_at(const struct ib_wire_out *o, unsigned i)
{
	return o->at[i].own_len + o->at[i].len;
}

/* Octets behind those of the @n parts that @iov has.  Return: how many it has now. */
static unsigned add_part(struct iovec *iov, unsigned n, const uint8_t *p, size_t len)
{
	if (n && (uint8_t *)iov[n - 1].iov_base + iov[n - 1].iov_len == p) {
		iov[n - 1].iov_len += len;
		return n;
	}
	iov[n] = (struct iovec){ (void *)(uintptr_t)p, len };
	return n + 1;
}

static unsigned add_piece_parts(struct iovec *iov, unsigned n, const struct ib_wire_piece *at)
{
	if (!at->len)
		return add_part(iov, n, at->own, at->own_len);
	n = add_part(iov, n, at->own, at->head);
	n = add_part(iov, n, at->data, at->len);
	return add_part(iov, n, at->own + at->head, at->own_len - at->head);
}

static struct ddps_ib_udp_hdr header_to(const struct ib_wire *w, uint16_t lid, uint16_t id)
{
	return (struct ddps_ib_udp_hdr){ .src = w->ip,
					 .dst = (w->ip & ~LID_MASK) | lid,
					 .sport = w->udp_port,
					 .dport = w->udp_port,
					 .id = id };
}

/* Return: what was sent, below 0 with errno. */
static ssize_t send_cut(struct ib_wire *w)
{
	struct ib_wire_out *o = &w->out;
	struct sockaddr_in to = make_wire_address(header_to(w, o->at[0].lid, 0).dst, w->udp_port);
	union {
		char room[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov[IB_WIRE_CUTS * PARTS];
	struct msghdr m = { .msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = iov,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	uint16_t size = (uint16_t)size_at(o, 0);

	for (unsigned i = 0; i < o->n; i++)
		m.msg_iovlen = add_piece_parts(iov, (unsigned)m.msg_iovlen, &o->at[i]);
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	return sendmsg(w->unicast, &m, MSG_DONTWAIT);
}

/* Each by itself from now on: their identifications are 0 then. */
static void give_up_cutting(struct ib_wire *w)
{
	struct ib_wire_out *o = &w->out;
	struct ddps_ib_udp_hdr h = header_to(w, o->at[0].lid, 0);

	w->no_cut = true;
	o->cut = false;
	for (unsigned i = 0; i < o->n; i++) {
		struct ib_wire_piece *at = &o->at[i];
		uint8_t *end = at->own + at->own_len - DDPS_IB_ICRC_LEN;
		unsigned behind = (unsigned)(end - (at->own + at->head));
		uint32_t crc =
			at->len ? ddps_ib_icrc(&h, at->own, at->head, at->data, at->len, behind)
				: ddps_ib_icrc(&h, at->own, at->head, at->own + at->head, behind,
					       0);

		memcpy(end, &crc, sizeof(crc));
	}
}

/* Return: how many were sent, below 0 with errno. */
static int send_each(struct ib_wire *w)
{
	struct mmsghdr msg[IB_WIRE_CUTS];
	struct sockaddr_in to[IB_WIRE_CUTS];
	struct iovec iov[IB_WIRE_CUTS][PARTS];
	struct ib_wire_out *o = &w->out;
	unsigned n = 0;

	for (unsigned i = o->first; i < o->n; i++, n++) {
		to[n] = make_wire_address(header_to(w, o->at[i].lid, 0).dst, w->udp_port);
		msg[n].msg_hdr = (struct msghdr){
			.msg_name = &to[n],
			.msg_namelen = sizeof(to[n]),
			.msg_iov = iov[n],
			.msg_iovlen = add_piece_parts(iov[n], 0, &o->at[i]),
		};
	}
	return sendmmsg(w->unicast, msg, n, MSG_DONTWAIT);
}

/* One call.  Return: how many packets it was good for, below 0 with errno. */
static int send_waiting(struct ib_wire *w)
{
	struct ib_wire_out *o = &w->out;

	w->stats.wire_tx_calls++;
	if (!o->cut || o->n == 1)
		return send_each(w);
	if (send_cut(w) >= 0)
		return (int)o->n;
	if (errno == EINVAL || errno == EIO || errno == EOPNOTSUPP || errno == ENOPROTOOPT) {
		give_up_cutting(w);
		errno = EINTR; /* again, otherwise */
	}
	return -1;
}

bool ddps_ib_wire_flush(struct ib_wire *w)
{
	struct ib_wire_out *o = &w->out;

	/* an earlier ICMP error for another node may come out here: the second try sends */
	for (unsigned tries = 0; o->first < o->n;) {
		int n = send_waiting(w);

		if (n > 0) {
			w->stats.wire_tx += (unsigned)n;
			o->first += (unsigned)n;
			tries = 0;
		} else if (no_room(errno)) {
			w->full = true;
			return false;
		} else if (++tries == 3) {
			give_up_packets(w, o->cut ? o->n : 1,
					header_to(w, o->at[o->first].lid, 0).dst, errno);
			o->first += o->cut ? o->n : 1;
			tries = 0;
		}
	}
	o->first = o->n = 0;
	o->len = o->used = 0;
	return true;
}

/* Whether a packet of @size to @lid can go with those that wait. */
static bool may_join_waiting(const struct ib_wire_out *o, uint16_t lid, bool cut, size_t size)
{
	if (!o->n)
		return true;
	if (o->first || o->n == IB_WIRE_CUTS || o->len + size > IB_WIRE_OUT || cut != o->cut)
		return false;
	return !cut || (lid == o->at[0].lid && !o->ended && size <= size_at(o, 0));
}

bool ddps_ib_wire_send(struct ib_wire *w, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	struct ib_wire_out *o = &w->out;
	bool cut = !w->no_cut && lid < IB_WIRE_LIDS && w->plain[lid] >= SURE;
	size_t most = DDPS_IB_HEAD_MAX + p->len + 3 + DDPS_IB_ICRC_LEN;
	struct ddps_ib_udp_hdr h;

	if (lid >= DDPS_MLID_FIRST)
		return send_to_wire_group(w, lid, group, p);
	for (;;) {
		struct ib_wire_piece *at = &o->at[o->n];
		size_t len = 0;

		h = header_to(w, lid, cut ? (uint16_t)o->n : 0);
		if (o->n < IB_WIRE_CUTS && o->len + most <= IB_WIRE_OUT)
			len = build_wire_packet(at, o->buf + o->used, &h, p);
		if (len && may_join_waiting(o, lid, cut, len)) {
			at->lid = lid;
			o->cut = cut;
			o->ended = o->n && len < size_at(o, 0);
			o->len += len;
			o->used += at->own_len;
			o->n++;
			return true;
		}
		if (!ddps_ib_wire_flush(w))
			return false;
	}
}

void ddps_ib_wire_gone(struct ib_wire *w, const uint8_t *data, size_t len)
{
	struct ib_wire_out *o = &w->out;

	for (unsigned i = o->first; i < o->n; i++) {
		struct ib_wire_piece *at = &o->at[i];

		if (!at->len || at->data < data || at->data >= data + len)
			continue;
		memcpy(o->buf + o->used, at->data, at->len);
		at->data = o->buf + o->used;
		o->used += at->len;
	}
}

/* ---- in ---- */

/* What the identifications of a node's packets say of it. */
static void note_icrc_kind(struct ib_wire *w, uint16_t lid, enum ddps_ib_icrc icrc)
{
	if (icrc == DDPS_IB_ICRC_EXACT) {
		w->plain[lid] = (uint8_t)(w->plain[lid] + (w->plain[lid] < SURE));
		w->counted[lid] = 0;
	} else if (++w->counted[lid] == FORGET || w->plain[lid] < SURE) {
		w->plain[lid] = w->counted[lid] = 0;
	}
}

/* @id: the likely identification. */
static void take_wire_packet(struct ib_wire *w, const struct sockaddr_in *from, bool mcast,
			     const uint8_t *buf, size_t len, uint16_t id, uint64_t now)
{
	const struct ddps_ib_udp_hdr h = { .src = ntohl(from->sin_addr.s_addr),
					   .dst = mcast ? w->broadcast : w->ip,
					   .sport = ntohs(from->sin_port),
					   .dport = w->udp_port,
					   .id = id };
	uint16_t slid = h.src & LID_MASK;
	struct ddps_ib_pkt p;
	enum ddps_ib_icrc icrc;

	w->stats.wire_rx++;
	if ((h.src ^ w->ip) & ~LID_MASK || !slid) {
		w->stats.wire_stranger++;
		return;
	}
	if (len > DDPS_IB_PKT_MAX || ddps_ib_pkt_decode(&p, buf, len) ||
	    (mcast && h.sport < DDPS_MLID_FIRST)) {
		w->stats.wire_bad++;
		return;
	}
	icrc = ddps_ib_icrc_check(&h, buf, len);
	if (icrc == DDPS_IB_ICRC_BAD) {
		w->stats.wire_icrc++;
		return;
	}
	if (!mcast)
		note_icrc_kind(w, slid, icrc);
	w->rx(w->user, slid, mcast ? h.sport : 0, &p, now);
}

/* Octets of each packet of a buffer; 0: it is one. */
static size_t cut_size(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			int size;

			memcpy(&size, CMSG_DATA(c), sizeof(size));
			return size > 0 ? (size_t)size : 0;
		}
	return 0;
}

static void take_wire_buffer(struct ib_wire *w, unsigned i, bool mcast, uint64_t now)
{
	size_t len = w->msg[i].msg_len, size = cut_size(&w->msg[i].msg_hdr), n;
	uint16_t id = 0;

	if (!size || size > len)
		size = len;
	for (size_t at = 0; at < len || !len; at += n, id++) {
		n = len - at < size ? len - at : size;
		take_wire_packet(w, &w->from[i], mcast, w->in[i] + at, n, id, now);
		if (!len)
			return;
	}
}

static bool read_socket(struct ib_wire *w, bool mcast, uint64_t now)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		int n;

		for (unsigned i = 0; i < IB_WIRE_BATCH; i++) {
			w->iov[i] = (struct iovec){ w->in[i], sizeof(w->in[i]) };
			w->msg[i].msg_hdr =
				(struct msghdr){ .msg_name = &w->from[i],
						 .msg_namelen = sizeof(w->from[i]),
						 .msg_iov = &w->iov[i],
						 .msg_iovlen = 1,
						 .msg_control = w->control[i].room,
						 .msg_controllen = sizeof(w->control[i].room) };
		}
		n = recvmmsg(mcast ? w->multicast : w->unicast, w->msg, IB_WIRE_BATCH, MSG_DONTWAIT,
			     NULL);
		for (int i = 0; i < n; i++)
			take_wire_buffer(w, (unsigned)i, mcast, now);
		if (n < IB_WIRE_BATCH) /* an ICMP error about an earlier packet is no end */
			return n < 0 && !no_room(errno);
	}
	return true;
}

bool ddps_ib_wire_read(struct ib_wire *w, uint64_t now)
{
	bool more = read_socket(w, false, now);

	return read_socket(w, true, now) || more;
}
