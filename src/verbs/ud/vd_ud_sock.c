/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP sockets: both families, sources and destinations of datagrams, groups. */
#include "verbs/ud/vd_ud_in.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER (4 << 20) /* as much of it as the system grants */

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

/* Room for a source and a hop limit, on the way in and out. */
union control {
	struct cmsghdr align;
	uint8_t room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int))];
};

static int prepare_ud_socket(struct ud_sock *s)
{
	int one = 1, size = BUFFER;

	setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	if (s->family == AF_INET6)
		return setsockopt(s->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one);
	return setsockopt(s->fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
}

int ud_sock_adopt(struct ud_sock *s, int fd)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;

	if (getsockname(fd, (struct sockaddr *)&ss, &len))
		return errno;
	s->fd = fd;
	s->family = ss.ss_family;
	return prepare_ud_socket(s) ? errno : 0;
}

/* A child of fork that begins in the midst of this would keep the socket. */
static int make_sock(struct vd_ud *ud, struct ud_sock *s, sa_family_t family)
{
	int err;

	(void)vd_forks_hold();
	s->family = family;
	s->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	err = s->fd < 0 ? errno : ud_keep_fd(ud, s->fd);
	vd_forks_release();
	if (err && s->fd >= 0)
		close(s->fd);
	if (err)
		s->fd = -1; /* whoever closes it later closes nothing */
	return err;
}

static int bind_any(struct ud_sock *s, uint16_t *port)
{
	struct sockaddr_storage ss;
	const struct ud_addr any = { 0 };
	socklen_t len = ud_to_sockaddr(&any, s->family, &ss);
	struct ud_addr got;
	int no = 0;

	if (s->family == AF_INET6)
		setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
	if (bind(s->fd, (struct sockaddr *)&ss, len) ||
	    getsockname(s->fd, (struct sockaddr *)&ss, &len) || prepare_ud_socket(s))
		return errno;
	ud_from_sockaddr((struct sockaddr *)&ss, &got);
	*port = got.port;
	return 0;
}

int ud_sock_open(struct vd_ud *ud, struct ud_sock *s, uint16_t *port)
{
	static const sa_family_t families[] = { AF_INET6, AF_INET }; /* where there is no IPv6 */
	int err = EAFNOSUPPORT;

	for (int i = 0; i < 2 && err; i++) {
		err = make_sock(ud, s, families[i]);
		if (err)
			continue;
		err = bind_any(s, port);
		if (err)
			ud_sock_close(ud, s);
	}
	return err;
}

void ud_sock_close(struct vd_ud *ud, struct ud_sock *s)
{
	if (s->fd < 0)
		return;
	(void)vd_forks_hold();
	ud_forget_fd(ud, s->fd);
	vd_close(ud->p, s->fd);
	vd_forks_release();
	s->fd = -1;
}

/* ---- groups ---- */

static int join_ud_sock_group(const struct ud_sock *s, const struct ud_addr *group)
{
	struct ipv6_mreq m6 = { group->ip, group->ifindex };
	struct ip_mreqn m4 = { .imr_ifindex = (int)group->ifindex };
	int no = 0;

	/* Groups that others on this host have joined are none of ours. */
	if (s->family == AF_INET6) {
		setsockopt(s->fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &no, sizeof no);
		return setsockopt(s->fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &m6, sizeof m6);
	}
	memcpy(&m4.imr_multiaddr, group->ip.s6_addr + 12, 4);
	setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_ALL, &no, sizeof no);
	return setsockopt(s->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m4, sizeof m4);
}

int ud_sock_join(struct vd_ud *ud, struct ud_sock *s, const struct ud_addr *group)
{
	struct ud_addr at = *group;
	struct sockaddr_storage ss;
	socklen_t len;
	int one = 1, err;

	err = make_sock(ud, s, IN6_IS_ADDR_V4MAPPED(&group->ip) ? AF_INET : AF_INET6);
	if (err)
		return err;
	at.port = UD_PORT_MCAST;
	len = ud_to_sockaddr(&at, s->family, &ss);
	if (s->family == AF_INET6)
		setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    bind(s->fd, (struct sockaddr *)&ss, len) || prepare_ud_socket(s) ||
	    join_ud_sock_group(s, group))
		err = errno;
	if (err)
		ud_sock_close(ud, s);
	return err;
}

/* ---- out ---- */

static struct cmsghdr *add_cmsg(struct msghdr *m, struct cmsghdr *at, int level, int type,
				const void *data, size_t len)
{
	at->cmsg_level = level;
	at->cmsg_type = type;
	at->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(at), data, len);
	m->msg_controllen += CMSG_SPACE(len);
	return (struct cmsghdr *)(void *)((uint8_t *)at + CMSG_SPACE(len));
}

/* The interface, and the source if it is to be one; sockets of both families take the form of IPv6
 * for IPv4, too. */
static struct cmsghdr *add_source(struct msghdr *m, struct cmsghdr *at, sa_family_t family,
				  const struct ud_addr *to, const struct in6_addr *from)
{
	struct in6_pktinfo i6 = { .ipi6_ifindex = to->ifindex };
	struct in_pktinfo i4 = { .ipi_ifindex = (int)to->ifindex };

	if (family == AF_INET6) {
		if (from)
			i6.ipi6_addr = *from;
		else if (IN6_IS_ADDR_V4MAPPED(&to->ip))
			i6.ipi6_addr.s6_addr[10] = i6.ipi6_addr.s6_addr[11] = 0xff;
		return add_cmsg(m, at, IPPROTO_IPV6, IPV6_PKTINFO, &i6, sizeof i6);
	}
	if (from)
		memcpy(&i4.ipi_spec_dst, from->s6_addr + 12, 4);
	return add_cmsg(m, at, IPPROTO_IP, IP_PKTINFO, &i4, sizeof i4);
}

int ud_send(const struct ud_sock *s, const struct ud_addr *to, const struct in6_addr *from,
	    int hops, const struct iovec *iov, size_t n)
{
	const bool v4 = IN6_IS_ADDR_V4MAPPED(&to->ip);
	struct sockaddr_storage ss;
	union control c = { 0 };
	struct cmsghdr *at = &c.align;
	struct msghdr m = {
		.msg_name = &ss, .msg_iov = (struct iovec *)iov, .msg_iovlen = n, .msg_control = &c
	};

	if (s->family == AF_INET && !v4)
		return EAFNOSUPPORT;
	m.msg_namelen = ud_to_sockaddr(to, s->family, &ss);
	if (to->ifindex || from)
		at = add_source(&m, at, s->family, to, from);
	if (hops)
		add_cmsg(&m, at, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_HOPLIMIT, &hops,
			 sizeof hops);
	if (!m.msg_controllen)
		m.msg_control = NULL;
	return sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* ---- in ---- */

static void read_destination(struct msghdr *m, struct ud_packet *pk)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct in6_pktinfo i6;
	struct in_pktinfo i4;
	struct ud_addr to;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&i6, CMSG_DATA(c), sizeof i6);
			pk->to = i6.ipi6_addr;
			pk->from.ifindex = i6.ipi6_ifindex;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&i4, CMSG_DATA(c), sizeof i4);
			a4.sin_addr = i4.ipi_addr;
			ud_from_sockaddr((struct sockaddr *)&a4, &to);
			pk->to = to.ip;
			pk->from.ifindex = (unsigned)i4.ipi_ifindex;
		}
	}
}

int ud_recv(const struct ud_sock *s, struct ud_packet *pk, int max, size_t room)
{
	struct mmsghdr m[UD_BATCH] = { 0 };
	struct sockaddr_storage from[UD_BATCH];
	union control c[UD_BATCH];
	struct iovec iov[UD_BATCH];
	int n;

	for (int i = 0; i < max; i++) {
		iov[i] = (struct iovec){ pk[i].data, room };
		m[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
						.msg_namelen = sizeof from[i],
						.msg_iov = &iov[i],
						.msg_iovlen = 1,
						.msg_control = &c[i],
						.msg_controllen = sizeof c[i] };
	}
	n = recvmmsg(s->fd, m, (unsigned)max, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		pk[i].len = m[i].msg_hdr.msg_flags & MSG_TRUNC ? room : m[i].msg_len;
		memset(&pk[i].to, 0, sizeof pk[i].to);
		ud_from_sockaddr((struct sockaddr *)&from[i], &pk[i].from);
		read_destination(&m[i].msg_hdr, &pk[i]);
	}
	return n < 0 ? 0 : n;
}
