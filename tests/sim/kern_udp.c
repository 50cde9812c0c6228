/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams. */
#include "sim/kern_in.h"
#include <errno.h>
#include <netinet/udp.h>

#define OVERHEAD 28u /* IPv4 and UDP */

struct kern_dgram { /* in the order of arrival */
	struct kern_dgram *next;
	uint64_t at;
	unsigned host, to_host;
	uint16_t port, to_port;
	uint32_t group; /* that it is for, 0: for the host */
	size_t len;
	uint8_t octets[];
};

size_t (*kern_lie_packet)(uint8_t *p, size_t len);
void (*kern_watch)(const uint8_t *p, size_t len);
size_t (*kern_alter)(uint8_t *p, size_t len);

int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);

/* Datagrams that were on their way to a socket when it was closed, in the order of arrival. */
static struct kern_dgram *astray;

static void insert(struct kern_dgram **list, struct kern_dgram *d)
{
	while (*list && (*list)->at <= d->at)
		list = &(*list)->next;
	d->next = *list;
	*list = d;
}

/* Most arrive behind all others. */
static void enqueue(struct kern_file *f, struct kern_dgram *d)
{
	insert(f->first && f->last->at <= d->at ? &f->last->next : &f->first, d);
	if (!d->next)
		f->last = d;
	f->ndgrams++;
}

/* Those that found nobody by now: their senders are informed. */
static void bounce(void)
{
	struct kern_file *from;
	struct kern_dgram *d;

	while ((d = astray) && d->at <= kern.now) {
		astray = d->next;
		from = kern_bound(KERN_UDP, d->host, d->port);
		if (from)
			kern_icmp_nobody(from, d->to_host, d->to_port,
					 (struct kern_quote){ d->octets, d->len },
					 d->at + kern.delay);
		free(d);
	}
}

/* Somebody has the port again, and in time. */
void kern_udp_bound(struct kern_file *f)
{
	struct kern_dgram *d, **at = &astray;

	bounce();
	while ((d = *at)) {
		if (d->to_host != f->host || d->to_port != kern_seen_port(f)) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		enqueue(f, d);
	}
}

void kern_udp_nobody(void)
{
	struct kern_dgram *d;

	while ((d = astray)) {
		astray = d->next;
		free(d);
	}
}

uint32_t kern_udp_ready(struct kern_file *f)
{
	bounce();
	return (kern_icmp_waits(f) ? EPOLLERR : 0u) |
	       (f->first && f->first->at <= kern.now ? EPOLLIN : 0u) |
	       (f->full_until <= kern.now ? EPOLLOUT : 0u);
}

void kern_udp_close(struct kern_file *f)
{
	struct kern_dgram *d;

	kern_icmp_close(f);
	while ((d = f->first)) {
		f->first = d->next;
		if (d->at <= kern.now || d->group) {
			free(d);
			continue;
		}
		d->to_host = f->host;
		d->to_port = kern_seen_port(f);
		insert(&astray, d);
		kern_wake(d->at + kern.delay);
	}
}

/* ---- in ---- */

static void take_kern_datagram(struct kern_file *f, struct mmsghdr *m)
{
	struct kern_dgram *d = f->first;
	struct msghdr *h = &m->msg_hdr;
	struct sockaddr_in from = kern_addr(d->host, d->port);
	struct in_pktinfo info = { .ipi_ifindex = KERN_INTERFACE,
				   .ipi_spec_dst = kern_addr(f->host, 0).sin_addr,
				   .ipi_addr = kern_addr(f->host, 0).sin_addr };
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	size_t len = d->len < h->msg_iov->iov_len ? d->len : h->msg_iov->iov_len;

	if (d->group)
		info.ipi_addr.s_addr = htonl(d->group);
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
	int err;

	kern_point(false);
	(void)flags;
	(void)t;
	if (kern_fails("recvmmsg", EINTR, EAGAIN, ECONNREFUSED, ENOMEM, KERN_BRIEF))
		return -1;
	bounce();
	if ((err = kern_icmp_told(f)))
		return kern_err(err);
	if (kern_brief())
		n = 1;
	else if (f->ndgrams > 1 && kern_chance(kern.f.short_io, &kern.n.short_io))
		n = 1 + (unsigned)sim_like(n);
	while (k < n && f->first && f->first->at <= kern.now)
		take_kern_datagram(f, &m[k++]);
	return k ? (int)k : kern_err(EAGAIN);
}

/* The queue of ICMP errors. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	struct kern_file *f = kern_file(fd);

	kern_point(false);
	if (f->kind == KERN_UNIX)
		return kern_fails("recvmsg", EINTR, EAGAIN) ? -1 : kern_unix_recv(f, m, flags);
	if (f->kind == KERN_SCTP)
		return kern_stream_fails(f, "recvmsg",
					 (const int[]){ EINTR, EAGAIN, ECONNRESET, ETIMEDOUT,
							KERN_BRIEF, 0 })
			       ? -1
			       : kern_sctp_recv(f, m);
	return flags & MSG_ERRQUEUE ? kern_icmp_read(f, m) : kern_err(EAGAIN);
}

/* ---- out ---- */

static void arrive(const struct kern_file *f, struct kern_file *to, const uint8_t *p, size_t len)
{
	struct kern_dgram *d;

	if (to->ndgrams >= kern.datagrams) {
		kern.n.lost++;
		return;
	}
	d = kern_alloc(sizeof *d + len);
	*d = (struct kern_dgram){ .at = kern_arrival(),
				  .host = f->host,
				  .port = kern_seen_port(f),
				  .group = to->group,
				  .len = len };
	memcpy(d->octets, p, len);
	if (kern_chance(kern.f.late, &kern.n.late))
		d->at += sim_like(8 * kern.delay + 1);
	if (kern_chance(kern.f.corrupt, &kern.n.corrupt))
		d->octets[sim_like(len)] ^= (uint8_t)(1u << sim_like(8));
	enqueue(to, d);
	kern_wake(d->at);
}

static bool cut_off(const struct kern_file *f, unsigned host)
{
	return kern.dark_until > kern.now || kern.mute >> f->host & 1 || kern.mute >> host & 1;
}

static void arrive_perhaps_twice(const struct kern_file *f, struct kern_file *to, const uint8_t *p,
				 size_t len)
{
	arrive(f, to, p, len);
	if (kern_chance(kern.f.doubled, &kern.n.doubled))
		arrive(f, to, p, len);
}

static void one(struct kern_file *f, unsigned host, uint16_t port, uint8_t *p, size_t len)
{
	struct kern_file *to = kern_bound(KERN_UDP, host, port);
	struct kern_quote q = { .p = p };

	if (kern.liars >> f->host & 1 && kern_chance(kern.f.lie, &kern.n.lie))
		len = kern_lie_packet(p, len);
	if (kern_alter && len)
		len = kern_alter(p, len);
	if (!len || cut_off(f, host))
		return;
	q.len = len;
	if (kern_watch)
		kern_watch(p, len);
	if (kern_chance(kern.f.icmp, &kern.n.icmp))
		kern_icmp_lie(f, host, port, q);
	if (len + OVERHEAD > kern.mtu && !f->fragments) {
		if (kern.tells)
			kern_icmp_too_long(f, host, port, q);
		return;
	}
	if (kern_chance(kern.f.lost, &kern.n.lost))
		return;
	if (to)
		arrive_perhaps_twice(f, to, p, len);
	else if (!kern_forgotten(host, port))
		kern_icmp_nobody(f, host, port, q, kern_arrival() + kern.delay);
}

/* Each member's own is lost or doubled.  Nobody lies about these. */
static void to_members(const struct kern_file *f, uint32_t group, uint16_t port, const uint8_t *p,
		       size_t len)
{
	struct kern_file *to = NULL;

	while ((to = kern_member(to, group, port)))
		if (!cut_off(f, to->host) && len + OVERHEAD <= kern.mtu &&
		    !kern_chance(kern.f.lost, &kern.n.lost))
			arrive_perhaps_twice(f, to, p, len);
}

static size_t gather_kern_udp(const struct msghdr *m, uint8_t *all, size_t max)
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
	size_t len = gather_kern_udp(m, all, sizeof all), seg = segment_size(m);
	unsigned host = 0;
	uint16_t port;
	uint32_t group;
	int err;

	if (f->dead)
		return (ssize_t)len;
	if (kern_fails("sendmmsg", ENOBUFS, EAGAIN, EINTR, EPERM, ENETUNREACH, EIO))
		return -1;
	group = kern_group(m->msg_name, &port);
	if (!group && !kern_parse(m->msg_name, &host, &port))
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
	if ((err = kern_icmp_told(f)))
		return kern_err(err);
	if (!seg)
		seg = len;
	if (group) {
		to_members(f, group, port, all, len);
		return (ssize_t)len;
	}
	for (size_t at = 0; at < len; at += seg)
		one(f, host, port, all + at, len - at < seg ? len - at : seg);
	return (ssize_t)len;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct kern_file *f = kern_file(fd);

	kern_point(false);
	(void)flags;
	if (f->kind == KERN_UDP)
		return udp_send(f, m);
	if (f->kind == KERN_UNIX) {
		if (m->msg_controllen ? kern_fails("sendmsg", ENOBUFS, EAGAIN, ETOOMANYREFS)
				      : kern_fails("sendmsg", ENOBUFS))
			return -1;
		return kern_unix_send(f, m);
	}
	if (f->sctp ? kern_tcp_fails(f, "sendmsg", KERN_SEND_ERRS, ENOMEM, EACCES)
		    : kern_tcp_fails(f, "sendmsg", KERN_SEND_ERRS))
		return -1;
	return f->sctp ? kern_sctp_send(f, m) : kern_tcp_send(f, m->msg_iov, (int)m->msg_iovlen);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	unsigned k = 0;

	kern_point(false);
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
