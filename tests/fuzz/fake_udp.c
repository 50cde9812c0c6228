/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake_udp.h. */
#include "fake_udp.h"
#include "fuzz.h"
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);

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

static size_t put_local(struct msghdr *m, struct in_addr to)
{
	struct in_pktinfo info = { .ipi_spec_dst = to, .ipi_addr = to };
	struct cmsghdr *c = CMSG_FIRSTHDR(m);

	FUZZ_CHECK(m->msg_controllen >= CMSG_SPACE(sizeof info));
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof info),
			       .cmsg_level = IPPROTO_IP,
			       .cmsg_type = IP_PKTINFO };
	memcpy(CMSG_DATA(c), &info, sizeof info);
	return CMSG_SPACE(sizeof info);
}

static void read_one(struct mmsghdr *m, const struct fake_datagram *d)
{
	struct msghdr *h = &m->msg_hdr;

	FUZZ_CHECK(h->msg_iovlen == 1 && h->msg_iov[0].iov_len >= d->len);
	memcpy(h->msg_iov[0].iov_base, d->octets, d->len);
	m->msg_len = (unsigned)d->len;
	memcpy(h->msg_name, &d->from, sizeof d->from);
	h->msg_namelen = sizeof d->from;
	h->msg_controllen = put_local(h, d->to);
	h->msg_flags = d->cut ? MSG_TRUNC : 0;
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
		read_one(&m[k++], &udp.d[udp.taken++]);
	return (int)k;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	struct sock_extended_err e = { .ee_origin = SO_EE_ORIGIN_ICMP,
				       .ee_errno = ECONNREFUSED,
				       .ee_type = udp.icmp_type,
				       .ee_code = udp.icmp_code };
	size_t n = udp.nquoted;
	struct cmsghdr *c;

	FUZZ_CHECK(flags & MSG_ERRQUEUE);
	if (fd != udp.fd || !n) {
		errno = EAGAIN;
		return -1;
	}
	udp.nquoted = 0;
	if (n > m->msg_iov[0].iov_len)
		n = m->msg_iov[0].iov_len;
	memcpy(m->msg_iov[0].iov_base, udp.quoted, n);
	memcpy(m->msg_name, &udp.icmp_to, sizeof udp.icmp_to);
	FUZZ_CHECK(m->msg_controllen >= CMSG_SPACE(sizeof e));
	c = CMSG_FIRSTHDR(m);
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof e),
			       .cmsg_level = IPPROTO_IP,
			       .cmsg_type = IP_RECVERR };
	memcpy(CMSG_DATA(c), &e, sizeof e);
	m->msg_controllen = CMSG_SPACE(sizeof e);
	return (ssize_t)n;
}

static bool send_fails(void)
{
	if (!udp.fail_send || !udp.fail_times)
		return false;
	errno = udp.fail_send;
	udp.fail_times--;
	udp.failed = true;
	return true;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	(void)flags;
	FUZZ_CHECK(m->msg_iovlen == 1);
	if (send_fails())
		return -1;
	udp.sent(fd, m, m->msg_iov[0].iov_base, m->msg_iov[0].iov_len);
	return (ssize_t)m->msg_iov[0].iov_len;
}

/* Octets of a datagram that the kernel is to make of this; 0: not said. */
static size_t segment(struct msghdr *m)
{
	uint16_t size = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) {
			FUZZ_CHECK(c->cmsg_len == CMSG_LEN(sizeof size));
			memcpy(&size, CMSG_DATA(c), sizeof size);
			FUZZ_CHECK(size);
		}
	return size;
}

static void send_run(int fd, struct msghdr *m)
{
	const uint8_t *p = m->msg_iov[0].iov_base;
	size_t left = m->msg_iov[0].iov_len, size = segment(m);
	unsigned n = 0;

	FUZZ_CHECK(m->msg_iovlen == 1 && left && left <= 65507);
	while (left) {
		size_t len = size && size < left ? size : left;

		udp.sent(fd, m, p, len);
		p += len;
		left -= len;
		FUZZ_CHECK(++n <= 64);
	}
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	(void)flags;
	FUZZ_CHECK(n);
	if (send_fails())
		return -1;
	if (udp.few)
		n = 1;
	udp.few = false;
	for (unsigned i = 0; i < n; i++)
		send_run(fd, &m[i].msg_hdr);
	return (int)n;
}
