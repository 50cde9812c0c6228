/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets into a pcapng file (draft-ietf-opsawg-pcapng). */
#include <ddpsess/capture.h>
#include "common/system/file.h"
#include "common/system/lock.h"
#include "common/bytes.h"
#include "common/loop/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u
#define BYTE_ORDER_MARK 0x1a2b3c4du
#define LINK_RAW	101u /* IPv4 or IPv6, as the first four bits say */
#define TSRESOL		9u   /* option: resolution of times */
#define NANO		9u   /* 10^-9 s */

#define IP4_LEN	   20u
#define IP6_LEN	   40u
#define TCP_LEN	   20u
#define BLOCK_HEAD 28u
#define PAYLOAD	   60000u /* most of a stream in one packet */
#define HOPS	   64u
#define TCP	   6u
#define SCTP	   132u
#define ACK_PUSH   0x18u
#define FLOWS	   1024u
#define PIECES	   64 /* of memory, written by one call */

/* An end: mapped addresses are IPv4. */
struct end {
	bool v6;
	uint8_t ip[16];
	uint16_t port;
};

/* A TCP connection, to number its octets; [0]: from this side. */
struct flow {
	TAILQ_ENTRY(flow) of_all;
	struct end local, peer;
	uint32_t seq[2];
};

struct ddps_capture {
	int fd;
	struct stat self;	       /* of @fd: a program may close what is not its own */
	int error;		       /* atomic: why not all is in it, or 0 */
	off_t size, whole;	       /* octets written; those of them that are whole blocks */
	TAILQ_HEAD(flows, flow) flows; /* the one seen last comes first */
	unsigned nflows;
};

/* ---- file ---- */

static bool is_capture_file_ours(const struct ddps_capture *c)
{
	struct stat st;

	return !fstat(c->fd, &st) && st.st_dev == c->self.st_dev && st.st_ino == c->self.st_ino;
}

/* No more is written: the file ends with the last block that is whole. */
static void give_up_capture(struct ddps_capture *c, int error)
{
	/* A pipe or a device keeps what it has. */
	if (is_capture_file_ours(c) && ftruncate(c->fd, c->whole))
		errno = 0;
	__atomic_store_n(&c->error, error, __ATOMIC_RELAXED);
}

/* All of @iov, which is changed: a block, or a part of one. */
static void put_capture_octets(struct ddps_capture *c, struct iovec *iov, int n)
{
	if (!c->error && !is_capture_file_ours(c))
		give_up_capture(c, EBADF);
	while (n && !c->error) {
		ssize_t done = ddps_write_quietly(c->fd, iov, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			give_up_capture(c, errno);
		if (done > 0)
			c->size += done;
		while (done >= 0 && n && (size_t)done >= iov->iov_len) {
			done -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n && done > 0) {
			iov->iov_base = (uint8_t *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
}

/* What was put is a whole block, or several. */
static void end_block(struct ddps_capture *c)
{
	if (!c->error)
		c->whole = c->size;
}

static void put_capture_head(struct ddps_capture *c)
{
	uint8_t buf[64];
	struct ddps_wbuf o = ddps_wbuf_init(buf, sizeof buf);
	struct iovec iov = { buf, 0 };

	ddps_wbuf_u32(&o, BLOCK_SECTION);
	ddps_wbuf_u32(&o, 28);
	ddps_wbuf_u32(&o, BYTE_ORDER_MARK);
	ddps_wbuf_u16(&o, 1); /* version 1.0 */
	ddps_wbuf_u16(&o, 0);
	ddps_wbuf_u64(&o, UINT64_MAX); /* length not known */
	ddps_wbuf_u32(&o, 28);
	ddps_wbuf_u32(&o, BLOCK_INTERFACE);
	ddps_wbuf_u32(&o, 32);
	ddps_wbuf_u16(&o, LINK_RAW);
	ddps_wbuf_u16(&o, 0);
	ddps_wbuf_u32(&o, 0); /* no limit of packets */
	ddps_wbuf_u16(&o, TSRESOL);
	ddps_wbuf_u16(&o, 1);
	ddps_wbuf_u8(&o, NANO);
	ddps_wbuf_be(&o, 0, 3);
	ddps_wbuf_u32(&o, 0); /* end of options */
	ddps_wbuf_u32(&o, 32);
	iov.iov_len = (size_t)(o.p - buf);
	put_capture_octets(c, &iov, 1);
	end_block(c);
}

/* Emptied only once it is ours.  @made: it was not there, and payload is for this user.  Return: 0 or errno. */
static int open_file(struct ddps_capture *c, const char *path, bool *made)
{
	c->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	*made = c->fd >= 0;
	if (c->fd < 0 && errno == EEXIST)
		c->fd = open(path, O_WRONLY | O_CLOEXEC | (ddps_anew(path) & O_NOFOLLOW), 0600);
	if (c->fd < 0 || flock(c->fd, LOCK_EX | LOCK_NB) ||
	    (ftruncate(c->fd, 0) && errno != EINVAL)) /* EINVAL: a pipe, a device */
		return errno;
	if (fstat(c->fd, &c->self))
		return errno;
	put_capture_head(c);
	return c->error;
}

int ddps_capture_open(struct ddps_capture **out, const char *path)
{
	struct ddps_capture *c;
	bool made = false;
	int error;

	if (!out || !path)
		return DDPS_E_INVAL;
	c = calloc(1, sizeof *c);
	if (!c)
		return DDPS_E_NOMEM;
	TAILQ_INIT(&c->flows);
	ddps_uncancellable();
	error = open_file(c, path, &made);
	if (!error) {
		*out = c;
	} else {
		if (made && error != EWOULDBLOCK)
			unlink(path);
		if (c->fd >= 0)
			close(c->fd);
		free(c);
	}
	ddps_uncancellable_end();
	if (error)
		errno = error;
	return !error ? 0 : error == EWOULDBLOCK ? DDPS_E_BUSY : DDPS_E_SYSTEM;
}

int ddps_capture_error(const struct ddps_capture *c)
{
	return c ? __atomic_load_n(&c->error, __ATOMIC_RELAXED) : 0;
}

int ddps_capture_close(struct ddps_capture *c)
{
	struct flow *f;
	int error;

	if (!c)
		return 0;
	error = c->error;
	while ((f = TAILQ_FIRST(&c->flows))) {
		TAILQ_REMOVE(&c->flows, f, of_all);
		free(f);
	}
	ddps_uncancellable();
	if (is_capture_file_ours(c) && close(c->fd) && !error)
		error = errno;
	free(c);
	ddps_uncancellable_end();
	errno = error;
	return error ? DDPS_E_SYSTEM : 0;
}

/* ---- headers ---- */

static struct end get_packet_end(const struct sockaddr *sa)
{
	struct end e = { .v6 = false };
	struct sockaddr_in6 a6;
	struct sockaddr_in a4;

	if (sa->sa_family == AF_INET) {
		memcpy(&a4, sa, sizeof a4);
		memcpy(e.ip, &a4.sin_addr, 4);
		e.port = ntohs(a4.sin_port);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&a6, sa, sizeof a6);
		e.v6 = !IN6_IS_ADDR_V4MAPPED(&a6.sin6_addr);
		memcpy(e.ip, a6.sin6_addr.s6_addr + (e.v6 ? 0 : 12), e.v6 ? 16 : 4);
		e.port = ntohs(a6.sin6_port);
	}
	return e;
}

static uint16_t get_inet_sum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* Of a packet with @len octets behind it. */
static void put_ip(struct ddps_wbuf *o, const struct end *from, const struct end *to,
		   uint8_t protocol, size_t len)
{
	uint8_t *h = o->p;

	if (from->v6 || to->v6) {
		ddps_wbuf_u32(o, 6u << 28);
		ddps_wbuf_u16(o, (uint16_t)len);
		ddps_wbuf_u8(o, protocol);
		ddps_wbuf_u8(o, HOPS);
		ddps_wbuf_bytes(o, from->ip, 16);
		ddps_wbuf_bytes(o, to->ip, 16);
		return;
	}
	ddps_wbuf_u16(o, 0x4500);
	ddps_wbuf_u16(o, (uint16_t)(IP4_LEN + len));
	ddps_wbuf_u32(o, 0);
	ddps_wbuf_u8(o, HOPS);
	ddps_wbuf_u8(o, protocol);
	ddps_wbuf_u16(o, 0);
	ddps_wbuf_bytes(o, from->ip, 4);
	ddps_wbuf_bytes(o, to->ip, 4);
	if (!o->failed) {
		uint16_t sum = get_inet_sum(h, IP4_LEN);

		h[10] = (uint8_t)(sum >> 8);
		h[11] = (uint8_t)sum;
	}
}

/* ---- packets ---- */

static uint64_t read_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* The octets of @p from @at on, @len of them. */
static void put_part(struct ddps_capture *c, const struct ddps_packet *p, size_t at, size_t len)
{
	struct iovec part[PIECES];
	int parts = 0;

	for (int i = 0; i < p->niov && len; i++) {
		size_t n = p->iov[i].iov_len;

		if (at >= n) {
			at -= n;
			continue;
		}
		n = n - at < len ? n - at : len;
		part[parts++] = (struct iovec){ (uint8_t *)p->iov[i].iov_base + at, n };
		len -= n;
		at = 0;
		if (parts == PIECES || !len) {
			put_capture_octets(c, part, parts);
			parts = 0;
		}
	}
	put_capture_octets(c, part, parts);
}

/* A packet: @head, whose first BLOCK_HEAD octets are left free, then these octets of @p. */
static void put_captured_packet(struct ddps_capture *c, uint8_t *head, size_t head_len,
				const struct ddps_packet *p, size_t at, size_t len)
{
	size_t all = head_len - BLOCK_HEAD + len, pad = -all & 3;
	uint8_t tail[8] = { 0 };
	struct ddps_wbuf o = ddps_wbuf_init(head, BLOCK_HEAD);
	struct ddps_wbuf end = ddps_wbuf_init(tail + pad, 4);
	struct iovec iov = { head, head_len };

	ddps_wbuf_u32(&o, BLOCK_PACKET);
	ddps_wbuf_u32(&o, (uint32_t)(BLOCK_HEAD + 4 + all + pad));
	ddps_wbuf_u32(&o, 0); /* interface */
	ddps_wbuf_u64(&o, read_wall_ns());
	ddps_wbuf_u32(&o, (uint32_t)all);
	ddps_wbuf_u32(&o, (uint32_t)all);
	ddps_wbuf_u32(&end, (uint32_t)(BLOCK_HEAD + 4 + all + pad)); /* once more */
	put_capture_octets(c, &iov, 1);
	put_part(c, p, at, len);
	iov = (struct iovec){ tail, pad + 4 };
	put_capture_octets(c, &iov, 1);
	end_block(c);
}

static bool is_same_end(const struct end *a, const struct end *b)
{
	return a->v6 == b->v6 && a->port == b->port && !memcmp(a->ip, b->ip, sizeof a->ip);
}

static struct flow *flow_of(struct ddps_capture *c, const struct end *local, const struct end *peer)
{
	struct flow *f;

	TAILQ_FOREACH(f, &c->flows, of_all)
		if (is_same_end(&f->local, local) && is_same_end(&f->peer, peer))
			break;
	if (!f && c->nflows == FLOWS)
		f = TAILQ_LAST(&c->flows, flows);
	if (f) {
		TAILQ_REMOVE(&c->flows, f, of_all);
	} else {
		f = calloc(1, sizeof *f);
		if (!f) {
			give_up_capture(c, ENOMEM);
			return NULL;
		}
		c->nflows++;
	}
	if (!is_same_end(&f->local, local) || !is_same_end(&f->peer, peer))
		*f = (struct flow){ .local = *local, .peer = *peer, .seq = { 1, 1 } };
	TAILQ_INSERT_HEAD(&c->flows, f, of_all);
	return f;
}

static void add_tcp(struct ddps_capture *c, const struct ddps_packet *p, const struct end *local,
		    const struct end *peer)
{
	const struct end *from = p->sent ? local : peer, *to = p->sent ? peer : local;
	struct flow *f = flow_of(c, local, peer);
	uint8_t head[BLOCK_HEAD + IP6_LEN + TCP_LEN];

	for (size_t at = 0, len; f && at < p->len; at += len) {
		struct ddps_wbuf o = ddps_wbuf_init(head + BLOCK_HEAD, sizeof head - BLOCK_HEAD);

		len = p->len - at < PAYLOAD ? p->len - at : PAYLOAD;
		put_ip(&o, from, to, TCP, TCP_LEN + len);
		ddps_wbuf_u16(&o, from->port);
		ddps_wbuf_u16(&o, to->port);
		ddps_wbuf_u32(&o, f->seq[!p->sent]);
		ddps_wbuf_u32(&o, f->seq[p->sent]);
		ddps_wbuf_u16(&o, TCP_LEN / 4 << 12 | ACK_PUSH);
		ddps_wbuf_u16(&o, UINT16_MAX);
		ddps_wbuf_u32(&o, 0); /* no checksum */
		f->seq[!p->sent] += (uint32_t)len;
		put_captured_packet(c, head, (size_t)(o.p - head), p, at, len);
	}
}

void ddps_capture_add(void *capture, const struct ddps_packet *p)
{
	struct end local = get_packet_end(p->local), peer = get_packet_end(p->peer);
	struct ddps_capture *c = capture;
	uint8_t head[BLOCK_HEAD + IP6_LEN];
	struct ddps_wbuf o = ddps_wbuf_init(head + BLOCK_HEAD, IP6_LEN);

	if (c->error)
		return;
	if (p->transport == DDPS_TRANSPORT_TCP) {
		add_tcp(c, p, &local, &peer);
		return;
	}
	put_ip(&o, p->sent ? &local : &peer, p->sent ? &peer : &local, SCTP, p->len);
	put_captured_packet(c, head, (size_t)(o.p - head), p, 0, p->len);
}
