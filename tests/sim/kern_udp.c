/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams. */
#include "sim/kern_in.h"
#include <errno.h>
#include <netinet/udp.h>

#define OVERHEAD 28u /* IPv4 and UDP */

struct kern_dgram { /* in the order of arrival */
	struct kern_dgram *next;
	uint64_t at;
	unsigned host;
	uint16_t port;
	size_t len;
	uint8_t octets[];
};

int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);

uint32_t kern_udp_ready(const struct kern_file *f)
{
	return (f->first && f->first->at <= kern.now ? EPOLLIN : 0u) |
	       (f->full_until <= kern.now ? EPOLLOUT : 0u);
}

void kern_udp_close(struct kern_file *f)
{
	struct kern_dgram *d;

	while ((d = f->first)) {
		f->first = d->next;
		free(d);
	}
}

/* ---- in ---- */

static void take(struct kern_file *f, struct mmsghdr *m)
{
	struct kern_dgram *d = f->first;
	struct msghdr *h = &m->msg_hdr;
	struct sockaddr_in from = kern_addr(d->host, d->port);
	struct in_pktinfo info = { .ipi_spec_dst = kern_addr(f->host, 0).sin_addr };
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	size_t len = d->len < h->msg_iov->iov_len ? d->len : h->msg_iov->iov_len;

	memcpy(h->msg_iov->iov_base, d->octets, len);
	memcpy(h->msg_name, &from, sizeof from);
	h->msg_namelen = sizeof from;
	h->msg_flags = len < d->len ? MSG_TRUNC : 0;
	m->msg_len = (unsigned)len;
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof info),
			       .cmsg_level = IPPROTO_IP,
			       .cmsg_type = IP_PKTINFO };
	memcpy(CMSG_DATA(c), &info, sizeof info);
	h->msg_controllen = CMSG_SPACE(sizeof info);
	f->first = d->next;
	f->ndgrams--;
	free(d);
}

int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t)
{
	struct kern_file *f = kern_file(fd);
	unsigned k = 0;

	(void)flags;
	(void)t;
	if (kern_fails("recvmmsg", EINTR, EAGAIN, ECONNREFUSED, ENOMEM, KERN_BRIEF))
		return -1;
	if (kern_brief())
		n = 1;
	else if (f->ndgrams > 1 && kern_chance(kern.f.short_io, &kern.n.short_io))
		n = 1 + (unsigned)sim_like(n);
	while (k < n && f->first && f->first->at <= kern.now)
		take(f, &m[k++]);
	return k ? (int)k : kern_err(EAGAIN);
}

/* The queue of ICMP errors: empty. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	(void)fd;
	(void)m;
	(void)flags;
	return kern_err(EAGAIN);
}

/* ---- out ---- */

static void arrive(const struct kern_file *f, struct kern_file *to, const uint8_t *p, size_t len)
{
	struct kern_dgram *d, **at;

	if (to->ndgrams >= kern.datagrams) {
		kern.n.lost++;
		return;
	}
	d = kern_alloc(sizeof *d + len);
	*d = (struct kern_dgram){
		.at = kern_arrival(), .host = f->host, .port = f->port, .len = len
	};
	memcpy(d->octets, p, len);
	if (kern_chance(kern.f.late, &kern.n.late))
		d->at += sim_like(8 * kern.delay + 1);
	if (kern_chance(kern.f.corrupt, &kern.n.corrupt))
		d->octets[sim_like(len)] ^= (uint8_t)(1u << sim_like(8));
	for (at = &to->first; *at && (*at)->at <= d->at; at = &(*at)->next)
		;
	d->next = *at;
	*at = d;
	to->ndgrams++;
	kern_wake(d->at);
}

static void one(const struct kern_file *f, struct kern_file *to, const uint8_t *p, size_t len)
{
	if (!to || kern.dark || len + OVERHEAD > kern.mtu || kern_chance(kern.f.lost, &kern.n.lost))
		return;
	arrive(f, to, p, len);
	if (kern_chance(kern.f.doubled, &kern.n.doubled))
		arrive(f, to, p, len);
}

static size_t gather(const struct msghdr *m, uint8_t *all, size_t max)
{
	size_t len = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++) {
		if (m->msg_iov[i].iov_len > max - len)
			return 0;
		memcpy(all + len, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		len += m->msg_iov[i].iov_len;
	}
	return len;
}

static uint16_t segment_size(const struct msghdr *m)
{
	struct msghdr h = *m;
	uint16_t size = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT)
			memcpy(&size, CMSG_DATA(c), sizeof size);
	return size;
}

static ssize_t udp_send(struct kern_file *f, const struct msghdr *m)
{
	static uint8_t all[1 << 17];
	size_t len = gather(m, all, sizeof all), seg = segment_size(m);
	struct kern_file *to;
	unsigned host;
	uint16_t port;

	if (kern_fails("sendmmsg", ENOBUFS, EAGAIN, EINTR, EPERM, ENETUNREACH, EIO) ||
	    !kern_parse(m->msg_name, &host, &port))
		return -1;
	if (f->full_until > kern.now || kern_chance(kern.f.again, &kern.n.again)) {
		if (f->full_until <= kern.now)
			f->full_until = kern.now + 1 + sim_like(2 * kern.delay + 1);
		kern_wake(f->full_until);
		return kern_err(EAGAIN);
	}
	if (seg && !kern.gso)
		return kern_err(EIO);
	if (!len || (!seg && len > 65507))
		return kern_err(EMSGSIZE);
	if (!f->port)
		f->port = kern_free_port();
	to = kern_bound(KERN_UDP, host, port);
	if (!seg)
		seg = len;
	for (size_t at = 0; at < len; at += seg)
		one(f, to, all + at, len - at < seg ? len - at : seg);
	return (ssize_t)len;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct kern_file *f = kern_file(fd);

	(void)flags;
	if (f->kind != KERN_TCP)
		return udp_send(f, m);
	if (kern_tcp_fails(f, "sendmsg", KERN_SEND_ERRS))
		return -1;
	return kern_tcp_send(f, m->msg_iov, (int)m->msg_iovlen);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	unsigned k = 0;

	(void)flags;
	if (n > 1 && kern_chance(kern.f.short_io, &kern.n.short_io))
		n = 1 + (unsigned)sim_like(n);
	for (; k < n; k++) {
		ssize_t len = udp_send(kern_file(fd), &m[k].msg_hdr);

		if (len < 0)
			break;
		m[k].msg_len = (unsigned)len;
	}
	return k ? (int)k : -1;
}
