/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket options, control messages and address forms that a carrier needs. */
#include "sctp_ddp/backend/sd_sock.h"
#include "common/own.h"
#include "sctp_ddp/backend/sd_route.h"
#include <errno.h>
#include <string.h>
#include <netinet/udp.h>
#include <unistd.h>

#define BUF_LEN	    (8 * 1024 * 1024)
#define PROTO_SCTP  132
#define IP4_MIN	    20u
#define IP6_MTU_MIN 1280 /* RFC 8200 5 */

static void set_sock_int(int fd, int level, int opt, int value)
{
	/* Each of these only improves something; without it things still work. */
	(void)setsockopt(fd, level, opt, &value, sizeof value);
}

void ddps_sd_sock_set_df(int fd, int family, bool on)
{
	/* Whole, but whatever ICMP made the kernel believe: anybody can forge that. */
	set_sock_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, on ? IP_PMTUDISC_PROBE : IP_PMTUDISC_DONT);
	if (family != AF_INET6)
		return;
	/* No router fragments IPv6: what is larger than the link goes in parts that pass anywhere. */
	set_sock_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
		     on ? IPV6_PMTUDISC_PROBE : IPV6_PMTUDISC_OMIT);
	set_sock_int(fd, IPPROTO_IPV6, IPV6_MTU, on ? 0 : IP6_MTU_MIN);
}

static bool knows_segments(int fd)
{
	int none = 0;

	return setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof none) == 0;
}

int ddps_sd_sock_open(int family, bool raw, bool *gso)
{
	int type = raw ? SOCK_RAW : SOCK_DGRAM;
	int fd =
		ddps_own(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, raw ? PROTO_SCTP : 0));

	if (fd < 0)
		return -1;
	set_sock_int(fd, SOL_SOCKET, SO_RCVBUF, BUF_LEN);
	set_sock_int(fd, SOL_SOCKET, SO_SNDBUF, BUF_LEN);
	/* Beyond the system's limit, where that is allowed to us. */
	set_sock_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUF_LEN);
	set_sock_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, BUF_LEN);
	set_sock_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	set_sock_int(fd, IPPROTO_IP, IP_RECVERR, 1);
	if (family == AF_INET6) {
		set_sock_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		set_sock_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	}
	if (!raw)
		set_sock_int(fd, IPPROTO_UDP, UDP_GRO, 1);
	*gso = !raw && knows_segments(fd);
	ddps_sd_sock_set_df(fd, family, true);
	return fd;
}

int ddps_sd_sock_rcvbuf(int fd)
{
	int n = 0;
	socklen_t len = sizeof n;

	return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, &len) < 0 ? 0 : n;
}

/* ---- addresses ---- */

static struct sockaddr_in6 as_in6(const struct sockaddr_storage *ss)
{
	struct sockaddr_in6 a;

	memcpy(&a, ss, sizeof a);
	return a;
}

static struct sockaddr_in as_in(const struct sockaddr_storage *ss)
{
	struct sockaddr_in a;

	memcpy(&a, ss, sizeof a);
	return a;
}

/* An IPv4 peer on an IPv6 socket. */
static bool is_mapped(const struct sockaddr_storage *ss)
{
	struct sockaddr_in6 a = as_in6(ss);

	return ss->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.sin6_addr);
}

void ddps_sd_set_port(struct sockaddr_storage *ss, uint16_t port)
{
	struct sockaddr_in6 a6 = as_in6(ss);
	struct sockaddr_in a4 = as_in(ss);

	if (ss->ss_family == AF_INET6) {
		a6.sin6_port = htons(port);
		memcpy(ss, &a6, sizeof a6);
	} else {
		a4.sin_port = htons(port);
		memcpy(ss, &a4, sizeof a4);
	}
}

uint16_t ddps_sd_port_number(const struct sockaddr_storage *ss)
{
	return ntohs(ss->ss_family == AF_INET6 ? as_in6(ss).sin6_port : as_in(ss).sin_port);
}

static struct sockaddr_storage unmapped(const struct sockaddr_storage *ss)
{
	struct sockaddr_storage out = { 0 };
	struct sockaddr_in6 a6 = as_in6(ss);
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = a6.sin6_port };

	memcpy(&a4.sin_addr, a6.sin6_addr.s6_addr + 12, sizeof a4.sin_addr);
	memcpy(&out, &a4, sizeof a4);
	return out;
}

bool ddps_sd_sock_families_fit(const struct ddps_uri_addrs *from, const struct ddps_uri_addrs *to)
{
	for (unsigned i = 0; from->n && i < to->n; i++) {
		unsigned k = 0;

		while (k < from->n && from->at[k].ss_family != to->at[i].ss_family)
			k++;
		if (k == from->n)
			return false;
	}
	return true;
}

/* ---- the path ---- */

uint32_t ddps_sd_sock_mtu(const struct sockaddr_storage *to)
{
	struct sockaddr_storage ss = is_mapped(to) ? unmapped(to) : *to;

	return ddps_sd_route_mtu(&ss);
}

uint32_t ddps_sd_sock_host_mtu(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_storage ss = { 0 };

	memcpy(&ss, &sa, sizeof sa);
	return ddps_sd_route_mtu(&ss);
}

/* ---- control messages ---- */

int ddps_sd_sock_dest(struct msghdr *m, struct sockaddr_storage *local)
{
	int seg = 0;

	memset(local, 0, sizeof *local);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
		    local->ss_family != AF_INET6) {
			struct sockaddr_in a = { .sin_family = AF_INET };
			struct in_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof i);
			a.sin_addr = i.ipi_spec_dst;
			memcpy(local, &a, sizeof a);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
			struct in6_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof i);
			a.sin6_addr = i.ipi6_addr;
			if (IN6_IS_ADDR_LINKLOCAL(&i.ipi6_addr))
				a.sin6_scope_id = i.ipi6_ifindex;
			memcpy(local, &a, sizeof a);
		} else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&seg, CMSG_DATA(c), sizeof seg);
		}
	}
	return seg;
}

void ddps_sd_sock_source(struct msghdr *m, union ddps_sd_cmsg *ctrl,
			 const struct sockaddr_storage *local)
{
	bool v6 = local->ss_family == AF_INET6;
	struct in6_pktinfo i6 = { 0 };
	struct in_pktinfo i4 = { 0 };
	size_t len = v6 ? sizeof i6 : sizeof i4;
	struct cmsghdr *c;

	if (!local->ss_family)
		return;
	memset(ctrl, 0, sizeof *ctrl);
	m->msg_control = ctrl;
	m->msg_controllen = CMSG_SPACE(len);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
	c->cmsg_type = v6 ? IPV6_PKTINFO : IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(len);
	if (v6) {
		struct sockaddr_in6 a = as_in6(local);

		i6.ipi6_addr = a.sin6_addr;
		i6.ipi6_ifindex = a.sin6_scope_id;
		memcpy(CMSG_DATA(c), &i6, len);
	} else {
		i4.ipi_spec_dst = as_in(local).sin_addr;
		memcpy(CMSG_DATA(c), &i4, len);
	}
}

void ddps_sd_sock_segment(struct msghdr *m, union ddps_sd_cmsg *ctrl, uint16_t size)
{
	struct cmsghdr *c;

	m->msg_control = ctrl;
	c = (struct cmsghdr *)(void *)(ctrl->buf + m->msg_controllen);
	memset(c, 0, CMSG_SPACE(sizeof size)); /* what is behind the size, too */
	*c = (struct cmsghdr){ .cmsg_level = IPPROTO_UDP,
			       .cmsg_type = UDP_SEGMENT,
			       .cmsg_len = CMSG_LEN(sizeof size) };
	memcpy(CMSG_DATA(c), &size, sizeof size);
	m->msg_controllen += CMSG_SPACE(sizeof size);
}

bool ddps_sd_sock_error(struct msghdr *m, struct sock_extended_err *e)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
		bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;

		if ((v4 || v6) && c->cmsg_len >= CMSG_LEN(sizeof *e)) {
			memcpy(e, CMSG_DATA(c), sizeof *e);
			return true;
		}
	}
	return false;
}

bool ddps_sd_sock_strip_ip(int family, uint8_t **pkt, size_t *len)
{
	const uint8_t *p = *pkt;
	size_t hdr;

	if (family == AF_INET6) /* shown without */
		return true;
	if (*len < IP4_MIN || p[0] >> 4 != 4)
		return false;
	hdr = (size_t)(p[0] & 0xf) * 4;
	if (hdr < IP4_MIN || hdr > *len)
		return false;
	*pkt += hdr;
	*len -= hdr;
	return true;
}
