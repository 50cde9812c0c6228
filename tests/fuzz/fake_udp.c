/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake_udp.h. */
#include "fake_udp.h"
#include "fuzz.h"
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);

static struct fake_udp udp;

struct fake_udp *fake_udp_reset(void)
{
	udp = (struct fake_udp){ .fd = -1 };
	return &udp;
}

int __wrap_socket(int family, int type, int protocol)
{
	if ((type & 0xf) != SOCK_RAW)
		return __real_socket(family, type, protocol);
	return __real_socket(family, SOCK_DGRAM | (type & ~0xf), 0);
}

static struct cmsghdr *put(struct msghdr *m, struct cmsghdr *c, int level, int type,
			   const void *data, size_t len)
{
	FUZZ_CHECK((uint8_t *)c + CMSG_SPACE(len) <= (uint8_t *)m->msg_control + m->msg_controllen);
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(len), .cmsg_level = level, .cmsg_type = type };
	memcpy(CMSG_DATA(c), data, len);
	return (struct cmsghdr *)(void *)((uint8_t *)c + CMSG_SPACE(len));
}

static bool joins(const struct fake_datagram *a, const struct fake_datagram *b)
{
	return a->len && b->len && b->len <= a->len && !a->cut && !b->cut &&
	       a->to.s_addr == b->to.s_addr && !memcmp(&a->from, &b->from, sizeof a->from);
}

/* One buffer: the next datagram, and with GRO what can be joined to it. */
static void read_one(struct mmsghdr *m)
{
	const struct fake_datagram *first = &udp.d[udp.taken], *d = first;
	struct in_pktinfo info = { .ipi_spec_dst = first->to, .ipi_addr = first->to };
	struct msghdr *h = &m->msg_hdr;
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	uint8_t *at = h->msg_iov[0].iov_base;
	int seg = (int)first->len;

	FUZZ_CHECK(h->msg_iovlen == 1);
	do {
		memcpy(at, d->octets, d->len);
		at += d->len;
		d = &udp.d[++udp.taken];
	} while (udp.gro && udp.taken < udp.nd && d[-1].len == first->len && joins(first, d));
	m->msg_len = (unsigned)(at - (uint8_t *)h->msg_iov[0].iov_base);
	FUZZ_CHECK(m->msg_len <= h->msg_iov[0].iov_len);
	memcpy(h->msg_name, &first->from, sizeof first->from);
	h->msg_namelen = sizeof first->from;
	h->msg_flags = first->cut ? MSG_TRUNC : 0;
	c = put(h, c, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
	if (m->msg_len != first->len)
		c = put(h, c, IPPROTO_UDP, UDP_GRO, &seg, sizeof seg);
	h->msg_controllen = (size_t)((uint8_t *)c - (uint8_t *)h->msg_control);
}

static int failing(int *with)
{
	errno = *with;
	*with = 0;
	return -1;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t)
{
	unsigned k = 0;

	(void)flags;
	(void)t;
	if (udp.fail_recv)
		return failing(&udp.fail_recv);
	if (fd != udp.fd || udp.taken == udp.nd) {
		errno = EAGAIN;
		return -1;
	}
	while (k < n && udp.taken < udp.nd)
		read_one(&m[k++]);
	return (int)k;
}

/* The error queue. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	const struct sock_extended_err e = { .ee_errno = ECONNREFUSED,
					     .ee_origin = SO_EE_ORIGIN_ICMP,
					     .ee_type = ICMP_DEST_UNREACH,
					     .ee_code = ICMP_PORT_UNREACH };
	size_t len = udp.icmp.len;
	struct cmsghdr *end;

	FUZZ_CHECK(flags & MSG_ERRQUEUE);
	if (fd != udp.fd || !udp.icmp_there) {
		errno = EAGAIN;
		return -1;
	}
	udp.icmp_there = false;
	len = len < m->msg_iov[0].iov_len ? len : m->msg_iov[0].iov_len;
	memcpy(m->msg_iov[0].iov_base, udp.icmp.octets, len);
	memcpy(m->msg_name, &udp.icmp.from, sizeof udp.icmp.from);
	m->msg_namelen = sizeof udp.icmp.from;
	end = put(m, CMSG_FIRSTHDR(m), IPPROTO_IP, IP_RECVERR, &e, sizeof e);
	m->msg_controllen = (size_t)((uint8_t *)end - (uint8_t *)m->msg_control);
	return (ssize_t)len;
}

static size_t segment_of(const struct msghdr *m)
{
	struct cmsghdr *c = m->msg_controllen ? CMSG_FIRSTHDR(m) : NULL;
	uint16_t size;

	for (; c; c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)m, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) {
			memcpy(&size, CMSG_DATA(c), sizeof size);
			FUZZ_CHECK(size);
			return size;
		}
	return SIZE_MAX;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	size_t seg = segment_of(m), left = m->msg_iov[0].iov_len, n;
	const uint8_t *at = m->msg_iov[0].iov_base;

	(void)flags;
	FUZZ_CHECK(m->msg_iovlen == 1 && left);
	if (udp.fail_send)
		return failing(&udp.fail_send);
	for (; left; left -= n, at += n) {
		n = left < seg ? left : seg;
		udp.sent(fd, m, at, n);
	}
	return (ssize_t)m->msg_iov[0].iov_len;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	unsigned k = 0;

	while (k < n && __wrap_sendmsg(fd, &m[k].msg_hdr, flags) >= 0)
		m[k++].msg_len = 1;
	return k || !n ? (int)k : -1;
}
