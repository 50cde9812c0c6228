/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments and checksums (RFC 791, RFC 8200, RFC 9293; header of virtio 1.2, 5.1.6). */
#include "ipoib/bridge/offload.h"
#include <linux/virtio_net.h>
#include <string.h>

#define TCP	 6
#define IP4_HDR	 20u
#define IP6_HDR	 40u
#define TCP_HDR	 20u
#define AT_LEN	 2 /* of IPv4 */
#define AT_ID	 4
#define AT_FRAG	 6
#define AT_SUM	 10
#define AT_LEN6	 4
#define AT_SEQ	 4 /* of TCP */
#define AT_OFF	 12
#define AT_FLAGS 13
#define AT_CHECK 16
#define DF	 0x4000u
#define FIN	 0x01u
#define PSH	 0x08u
#define ACK	 0x10u
#define CWR	 0x80u

_Static_assert(sizeof(struct virtio_net_hdr) == OFFLOAD_HDR, "the header is that of the device");

static uint16_t get_offload_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void put_offload_u16(uint8_t *at, size_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static uint32_t get_offload_u32(const uint8_t *at)
{
	return (uint32_t)get_offload_u16(at) << 16 | get_offload_u16(at + 2);
}

static void put_offload_u32(uint8_t *at, uint32_t v)
{
	put_offload_u16(at, v >> 16);
	put_offload_u16(at + 2, v & 0xffff);
}

/* ---- checksums (RFC 1071): 16-bit words are added as they are in memory, and stay so ---- */

#define LANES 32 /* octets added at a time */

#if defined(__x86_64__)
typedef uint64_t lanes __attribute__((vector_size(LANES)));

#define WIDE_MIN 256 /* octets from which it is worth it */

/* @n is a multiple of LANES. */
__attribute__((target("avx2"))) static uint64_t add_wide(const uint8_t *p, size_t n)
{
	lanes w, a = { 0 }, b = { 0 };

	for (; n; n -= sizeof w, p += sizeof w) {
		memcpy(&w, p, sizeof w);
		a += w & UINT32_MAX;
		b += w >> 32;
	}
	a += b;
	return a[0] + a[1] + a[2] + a[3];
}

static bool can_add_wide(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
#define WIDE_MIN SIZE_MAX

static uint64_t add_wide(const uint8_t *p, size_t n)
{
	(void)p, (void)n;
	return 0;
}

static bool can_add_wide(void)
{
	return false;
}
#endif

static uint64_t add_checksum(uint64_t sum, const uint8_t *p, size_t n)
{
	uint64_t w[4], a = 0, b = 0;
	uint16_t half;

	if (n >= WIDE_MIN && can_add_wide()) {
		sum += add_wide(p, n - n % LANES);
		p += n - n % LANES;
		n %= LANES;
	}
	for (; n >= sizeof w; n -= sizeof w, p += sizeof w) {
		memcpy(w, p, sizeof w);
		a += (w[0] & UINT32_MAX) + (w[1] & UINT32_MAX) + (w[2] & UINT32_MAX) +
		     (w[3] & UINT32_MAX);
		b += (w[0] >> 32) + (w[1] >> 32) + (w[2] >> 32) + (w[3] >> 32);
	}
	sum += a + b;
	for (; n >= 2; n -= 2, p += 2) {
		memcpy(&half, p, 2);
		sum += half;
	}
	if (n) {
		const uint8_t last[2] = { *p, 0 };

		memcpy(&half, last, 2);
		sum += half;
	}
	return sum;
}

/* Not complemented. */
static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void put_offload_sum(uint8_t *at, uint16_t sum)
{
	memcpy(at, &sum, sizeof sum);
}

/* Addresses, protocol and length, for @len octets from the TCP header on. */
static uint64_t sum_pseudo_header(const uint8_t *ip, bool v6, size_t len)
{
	const uint8_t rest[4] = { 0, TCP, (uint8_t)(len >> 8), (uint8_t)len };

	return add_checksum(add_checksum(0, rest, sizeof rest), ip + (v6 ? 8 : 12), v6 ? 32 : 8);
}

static void sum_ip4(uint8_t *ip, size_t ihl)
{
	put_offload_u16(ip + AT_SUM, 0);
	put_offload_sum(ip + AT_SUM, (uint16_t)~fold(add_checksum(0, ip, ihl)));
}

static void set_length(uint8_t *ip, bool v6, size_t l4, size_t len)
{
	if (v6) {
		put_offload_u16(ip + AT_LEN6, len - IP6_HDR);
		return;
	}
	put_offload_u16(ip + AT_LEN, len);
	sum_ip4(ip, l4);
}

/* ---- out ---- */

/* One packet whose checksum is still that of the pseudo-header. */
static int finish_checksum(uint8_t *p, size_t len, const struct virtio_net_hdr *h)
{
	size_t start = h->csum_start, at = start + h->csum_offset;
	uint16_t sum;

	if (start >= len || at + 2 > len)
		return -1;
	sum = (uint16_t)~fold(add_checksum(0, p + start, len - start));
	put_offload_sum(p + at,
			sum ? sum : UINT16_MAX); /* 0 would say that there is none (RFC 768) */
	return 0;
}

/* Headers of a long packet, and where its segments are. */
struct cut {
	uint8_t head[256]; /* of IPv6 with some extensions and TCP */
	size_t l4, n;	   /* octets of the IP header; of all headers */
	bool v6;
	uint16_t id;
	uint32_t seq;
	uint8_t flags;
};

/* The header of segment number @i, with @size octets of payload behind it, at @p. */
static void head_of(struct cut *c, uint8_t *p, unsigned i, size_t off, size_t size, bool last)
{
	uint8_t *tcp = p + c->l4;
	size_t len = c->n + size;

	memcpy(p, c->head, c->n);
	if (!c->v6)
		put_offload_u16(p + AT_ID, (uint16_t)(c->id + i));
	set_length(p, c->v6, c->l4, len);
	put_offload_u32(tcp + AT_SEQ, c->seq + (uint32_t)off);
	tcp[AT_FLAGS] = c->flags;
	if (!last)
		tcp[AT_FLAGS] &= (uint8_t) ~(FIN | PSH);
	if (i)
		tcp[AT_FLAGS] &= (uint8_t)~CWR;
	put_offload_u16(tcp + AT_CHECK, 0);
	put_offload_sum(tcp + AT_CHECK,
			(uint16_t)~fold(add_checksum(sum_pseudo_header(p, c->v6, len - c->l4), tcp,
						     len - c->l4)));
}

/* Each header is written over the end of the segment before it, which has gone. */
static int cut_all(struct cut *c, uint8_t *p, size_t len, size_t mss, offload_out_fn *out,
		   void *arg)
{
	unsigned n = 0;

	for (size_t off = 0, all = len - c->n; off < all; off += mss, n++) {
		size_t size = all - off < mss ? all - off : mss;

		head_of(c, p + off, n, off, size, off + size == all);
		out(arg, p + off, c->n + size);
	}
	return (int)n;
}

/* Return: how many, or -1. */
static int segments(uint8_t *p, size_t len, const struct virtio_net_hdr *h, offload_out_fn *out,
		    void *arg)
{
	struct cut c = { .l4 = h->csum_start, .v6 = len && p[0] >> 4 == 6 };
	size_t least = c.v6 ? IP6_HDR : IP4_HDR;
	bool is_v6 = (h->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == VIRTIO_NET_HDR_GSO_TCPV6;

	if (len < least || is_v6 != c.v6 || c.l4 < least || c.l4 + TCP_HDR > len || !h->gso_size ||
	    h->csum_offset != AT_CHECK || (!c.v6 && c.l4 != (p[0] & 15u) * 4u))
		return -1;
	c.n = c.l4 + (p[c.l4 + AT_OFF] >> 4) * 4u;
	if (c.n < c.l4 + TCP_HDR || c.n >= len || c.n > sizeof c.head)
		return -1;
	memcpy(c.head, p, c.n);
	c.id = get_offload_u16(p + AT_ID);
	c.seq = get_offload_u32(p + c.l4 + AT_SEQ);
	c.flags = p[c.l4 + AT_FLAGS];
	return cut_all(&c, p, len, h->gso_size, out, arg);
}

int offload_out(uint8_t *buf, size_t len, offload_out_fn *out, void *arg)
{
	struct virtio_net_hdr h;
	uint8_t *p = buf + OFFLOAD_HDR;

	if (len < OFFLOAD_HDR)
		return -1;
	memcpy(&h, buf, sizeof h);
	len -= OFFLOAD_HDR;
	switch (h.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_NONE:
		if (h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && finish_checksum(p, len, &h))
			return -1;
		out(arg, p, len);
		return 1;
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return segments(p, len, &h, out, arg);
	default:
		return -1; /* was not asked for */
	}
}

/* ---- in ---- */

static void emit_offload_packet(struct offload_in *o, const struct virtio_net_hdr *h,
				const void *packet, size_t len, const void *rest, size_t rest_len)
{
	uint8_t hdr[OFFLOAD_HDR];

	memcpy(hdr, h, sizeof hdr);
	o->in(o->arg, hdr, packet, len, rest, rest_len);
}

/* A TCP segment with nothing unusual about it. */
struct segment {
	bool v6, more; /* more: neither PSH nor anything that ends a train */
	size_t l4, head, size;
};

/*
 * Return: whether it is one, with the right checksums: nobody looks at them again, as the device gets
 * the checksum of the pseudo-header alone, as if the sender were on this host.
 */
static bool is_segment(struct segment *s, const uint8_t *p, size_t len)
{
	const uint8_t *tcp;
	uint8_t flags;

	*s = (struct segment){ .v6 = len && p[0] >> 4 == 6 };
	s->l4 = s->v6 ? IP6_HDR : IP4_HDR;
	if (len < s->l4 + TCP_HDR || p[s->v6 ? 6 : 9] != TCP)
		return false;
	if (s->v6 ? p[0] >> 4 != 6 || get_offload_u16(p + AT_LEN6) + IP6_HDR != len
		  : p[0] != 0x45 || get_offload_u16(p + AT_LEN) != len ||
			    get_offload_u16(p + AT_FRAG) & ~DF ||
			    fold(add_checksum(0, p, IP4_HDR)) != UINT16_MAX)
		return false;
	tcp = p + s->l4;
	flags = tcp[AT_FLAGS];
	s->head = s->l4 + (tcp[AT_OFF] >> 4) * 4u;
	if (s->head < s->l4 + TCP_HDR || s->head >= len || (flags & ~PSH) != ACK ||
	    fold(add_checksum(sum_pseudo_header(p, s->v6, len - s->l4), tcp, len - s->l4)) !=
		    UINT16_MAX)
		return false;
	s->size = len - s->head;
	s->more = !(flags & PSH);
	return true;
}

/* Whether the headers are those of the ones that wait, but for what distinguishes segments. */
static bool same_flow(const struct offload_in *o, const uint8_t *p, const struct segment *s)
{
	const uint8_t *a = o->packet, *ta = a + s->l4, *tb = p + s->l4;

	if (o->v6 != s->v6 || o->head != s->head || get_offload_u32(tb + AT_SEQ) != o->seq)
		return false;
	if (s->v6 ? memcmp(a, p, AT_LEN6) != 0 || memcmp(a + 6, p + 6, IP6_HDR - 6) != 0
		  : a[1] != p[1] || memcmp(a + AT_FRAG, p + AT_FRAG, AT_SUM - AT_FRAG) != 0 ||
			    memcmp(a + 12, p + 12, 8) != 0 ||
			    (!(get_offload_u16(p + AT_FRAG) & DF) &&
			     get_offload_u16(p + AT_ID) !=
				     (uint16_t)(get_offload_u16(a + AT_ID) + o->n)))
		return false;
	/* ports; acknowledgement and length; window; options: all but flags and checksum */
	return !memcmp(ta, tb, AT_SEQ) && !memcmp(ta + 8, tb + 8, 5) &&
	       !memcmp(ta + 14, tb + 14, 2) && !memcmp(ta + 18, tb + 18, s->head - s->l4 - 18);
}

/* The headers at @p are those of a packet of @len octets that needs no look at its checksum. */
static struct virtio_net_hdr make_trusted_header(uint8_t *p, bool v6, size_t l4, size_t head,
						 size_t len)
{
	put_offload_sum(p + l4 + AT_CHECK, fold(sum_pseudo_header(p, v6, len - l4)));
	return (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.hdr_len = (uint16_t)head,
					.csum_start = (uint16_t)l4,
					.csum_offset = AT_CHECK };
}

void offload_in_flush(struct offload_in *o)
{
	uint8_t *p = o->packet;
	struct virtio_net_hdr h;

	if (!o->n)
		return;
	h = make_trusted_header(p, o->v6, o->l4, o->head, o->len);
	if (o->n > 1) {
		h.gso_type = o->v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		h.gso_size = (uint16_t)o->size;
		set_length(p, o->v6, o->l4, o->len);
	}
	o->n = 0;
	emit_offload_packet(o, &h, p, o->len, NULL, 0);
}

/* One that nothing can be added to. */
static void pass_packet(struct offload_in *o, const uint8_t *p, size_t len, const struct segment *s)
{
	uint8_t head[IP6_HDR + 60];
	struct virtio_net_hdr h;

	memcpy(head, p, s->head);
	h = make_trusted_header(head, s->v6, s->l4, s->head, len);
	emit_offload_packet(o, &h, head, s->head, p + s->head, s->size);
}

static void hold_offload_segment(struct offload_in *o, const uint8_t *p, size_t len,
				 const struct segment *s)
{
	o->n = 1;
	o->v6 = s->v6;
	o->l4 = s->l4;
	o->head = s->head;
	o->size = s->size;
	o->len = len;
	o->seq = get_offload_u32(p + s->l4 + AT_SEQ) + (uint32_t)s->size;
	memcpy(o->packet, p, len);
}

static void append_segment(struct offload_in *o, const uint8_t *p, const struct segment *s)
{
	memcpy(o->packet + o->len, p + s->head, s->size);
	o->packet[o->l4 + AT_FLAGS] |= p[s->l4 + AT_FLAGS];
	o->len += s->size;
	o->seq += (uint32_t)s->size;
	o->n++;
	if (!s->more || s->size < o->size || o->len + o->size > OFFLOAD_PACKET)
		offload_in_flush(o);
}

void offload_in(struct offload_in *o, const uint8_t *packet, size_t len)
{
	static const struct virtio_net_hdr unknown;
	struct segment s;
	bool is = is_segment(&s, packet, len);

	if (is && o->n && s.size <= o->size && o->len + s.size <= OFFLOAD_PACKET &&
	    same_flow(o, packet, &s)) {
		append_segment(o, packet, &s);
		return;
	}
	offload_in_flush(o); /* nothing overtakes */
	if (!is)
		emit_offload_packet(o, &unknown, packet, len, NULL, 0);
	else if (s.more && len + s.size <= OFFLOAD_PACKET)
		hold_offload_segment(o, packet, len, &s);
	else
		pass_packet(o, packet, len, &s);
}
