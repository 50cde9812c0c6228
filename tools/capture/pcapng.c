/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets into a pcapng file (draft-ietf-opsawg-pcapng). */
#include "capture/pcapng.h"
#include "cli/octets.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/uio.h>

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u
#define BYTE_ORDER_MARK 0x1a2b3c4du
#define LINK_RAW	101u /* IPv4 or IPv6, as the first four bits say */
#define TSRESOL		9u   /* option: resolution of times */
#define NANO		9u   /* 10^-9 s */

#define IP4_LEN	 20u
#define IP6_LEN	 40u
#define TCP_LEN	 20u
#define PAYLOAD	 60000u /* most of a stream in one packet */
#define HOPS	 64u
#define TCP	 6u
#define SCTP	 132u
#define ACK_PUSH 0x18u

/* An end: mapped addresses are IPv4. */
struct end {
	bool v6;
	uint8_t ip[16];
	uint16_t port;
};

/* A TCP connection, to number its octets; [0]: from this side. */
struct pcapng_flow {
	struct pcapng_flow *next;
	struct end local, peer;
	uint32_t seq[2];
};

/* ---- file ---- */

static void put(struct pcapng *c, const void *buf, size_t len)
{
	if (len && !c->write_errno && fwrite(buf, len, 1, c->f) != 1)
		c->write_errno = errno ? errno : EIO;
}

static void put_octets(struct pcapng *c, const uint8_t *buf, const struct octets *o)
{
	put(c, buf, (size_t)(o->p - buf));
}

int pcapng_open(struct pcapng *c, const char *path)
{
	uint8_t buf[64];
	struct octets o = octets_at(buf, sizeof buf);

	*c = (struct pcapng){ .f = fopen(path, "wb"), .path = path };
	if (!c->f)
		return -1;
	octets_be(&o, BLOCK_SECTION, 4);
	octets_be(&o, 28, 4);
	octets_be(&o, BYTE_ORDER_MARK, 4);
	octets_be(&o, 1, 2); /* version 1.0 */
	octets_be(&o, 0, 2);
	octets_be(&o, UINT64_MAX, 8); /* length not known */
	octets_be(&o, 28, 4);
	octets_be(&o, BLOCK_INTERFACE, 4);
	octets_be(&o, 32, 4);
	octets_be(&o, LINK_RAW, 2);
	octets_be(&o, 0, 2);
	octets_be(&o, 0, 4); /* no limit of packets */
	octets_be(&o, TSRESOL, 2);
	octets_be(&o, 1, 2);
	octets_be(&o, NANO, 1);
	octets_be(&o, 0, 3);
	octets_be(&o, 0, 4); /* end of options */
	octets_be(&o, 32, 4);
	put_octets(c, buf, &o);
	return 0;
}

int pcapng_close(struct pcapng *c)
{
	struct pcapng_flow *next;
	int err = c->write_errno;

	for (struct pcapng_flow *f = c->flows; f; f = next) {
		next = f->next;
		free(f);
	}
	c->flows = NULL;
	if (c->f && fclose(c->f) && !err)
		err = errno;
	c->f = NULL;
	errno = err;
	return err ? -1 : 0;
}

/* ---- headers ---- */

static struct end end_of(const struct sockaddr *sa)
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

static uint16_t sum_of(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* Of a packet with @len octets behind it. */
static void put_ip(struct octets *o, const struct end *from, const struct end *to, uint8_t protocol,
		   size_t len)
{
	uint8_t *h = o->p;

	if (from->v6 || to->v6) {
		octets_be(o, 6u << 28, 4);
		octets_be(o, len, 2);
		octets_be(o, protocol, 1);
		octets_be(o, HOPS, 1);
		octets_put(o, from->ip, 16);
		octets_put(o, to->ip, 16);
		return;
	}
	octets_be(o, 0x4500, 2);
	octets_be(o, IP4_LEN + len, 2);
	octets_be(o, 0, 4);
	octets_be(o, HOPS, 1);
	octets_be(o, protocol, 1);
	octets_be(o, 0, 2);
	octets_put(o, from->ip, 4);
	octets_put(o, to->ip, 4);
	if (!o->failed) {
		uint16_t sum = sum_of(h, IP4_LEN);

		h[10] = (uint8_t)(sum >> 8);
		h[11] = (uint8_t)sum;
	}
}

/* ---- packets ---- */

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The octets of @p from @at on, @len of them. */
static void put_part(struct pcapng *c, const struct ddps_packet *p, size_t at, size_t len)
{
	for (int i = 0; i < p->niov && len; i++) {
		size_t n = p->iov[i].iov_len;

		if (at >= n) {
			at -= n;
			continue;
		}
		n = n - at < len ? n - at : len;
		put(c, (const uint8_t *)p->iov[i].iov_base + at, n);
		len -= n;
		at = 0;
	}
}

/* A packet: @head, then these octets of @p. */
static void put_packet(struct pcapng *c, const uint8_t *head, size_t head_len,
		       const struct ddps_packet *p, size_t at, size_t len)
{
	static const uint8_t zero[4];
	size_t all = head_len + len, pad = -all & 3;
	uint64_t t = wall_ns();
	uint8_t buf[28];
	struct octets o = octets_at(buf, sizeof buf);

	octets_be(&o, BLOCK_PACKET, 4);
	octets_be(&o, 32 + all + pad, 4);
	octets_be(&o, 0, 4); /* interface */
	octets_be(&o, t, 8);
	octets_be(&o, all, 4);
	octets_be(&o, all, 4);
	put_octets(c, buf, &o);
	put(c, head, head_len);
	put_part(c, p, at, len);
	put(c, zero, pad);
	put(c, buf + 4, 4); /* the length again */
}

static bool same(const struct end *a, const struct end *b)
{
	return a->v6 == b->v6 && a->port == b->port && !memcmp(a->ip, b->ip, sizeof a->ip);
}

static struct pcapng_flow *flow_of(struct pcapng *c, const struct end *local,
				   const struct end *peer)
{
	struct pcapng_flow *f = c->flows;

	while (f && !(same(&f->local, local) && same(&f->peer, peer)))
		f = f->next;
	if (f)
		return f;
	f = calloc(1, sizeof *f);
	if (!f) {
		c->write_errno = ENOMEM;
		return NULL;
	}
	*f = (struct pcapng_flow){
		.next = c->flows, .local = *local, .peer = *peer, .seq = { 1, 1 }
	};
	c->flows = f;
	return f;
}

static void add_tcp(struct pcapng *c, const struct ddps_packet *p, const struct end *local,
		    const struct end *peer)
{
	const struct end *from = p->sent ? local : peer, *to = p->sent ? peer : local;
	struct pcapng_flow *f = flow_of(c, local, peer);
	uint8_t head[IP6_LEN + TCP_LEN];

	for (size_t at = 0, len; f && at < p->len; at += len) {
		struct octets o = octets_at(head, sizeof head);

		len = p->len - at < PAYLOAD ? p->len - at : PAYLOAD;
		put_ip(&o, from, to, TCP, TCP_LEN + len);
		octets_be(&o, from->port, 2);
		octets_be(&o, to->port, 2);
		octets_be(&o, f->seq[!p->sent], 4);
		octets_be(&o, f->seq[p->sent], 4);
		octets_be(&o, TCP_LEN / 4 << 12 | ACK_PUSH, 2);
		octets_be(&o, UINT16_MAX, 2);
		octets_be(&o, 0, 4); /* no checksum */
		f->seq[!p->sent] += (uint32_t)len;
		put_packet(c, head, (size_t)(o.p - head), p, at, len);
	}
}

void pcapng_add(void *user, const struct ddps_packet *p)
{
	struct end local = end_of(p->local), peer = end_of(p->peer);
	struct pcapng *c = user;
	uint8_t head[IP6_LEN];
	struct octets o = octets_at(head, sizeof head);

	if (!c->f || c->write_errno)
		return;
	if (p->transport == DDPS_TRANSPORT_TCP) {
		add_tcp(c, p, &local, &peer);
		return;
	}
	put_ip(&o, p->sent ? &local : &peer, p->sent ? &peer : &local, SCTP, p->len);
	put_packet(c, head, (size_t)(o.p - head), p, 0, p->len);
}
