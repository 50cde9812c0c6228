/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake_udp.h. */
#include "fake_udp.h"
#include "fuzz.h"
#include <errno.h>

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

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

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	(void)flags;
	FUZZ_CHECK(m->msg_iovlen == 1);
	udp.sent(fd, m);
	return udp.fail_send ? failing(&udp.fail_send) : (ssize_t)m->msg_iov[0].iov_len;
}
