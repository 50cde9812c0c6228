/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors about packets of the host that are lost: RFC 1191 and RFC 792 for IPv4, RFC 4443 for IPv6. */
#include <string.h>
#include "common/bytes.h"
#include "ipoib_cm/iface/iface_in.h"

#define IP4_HDR	    20
#define IP6_HDR	    40
#define ICMP_HDR    8
#define ICMP4_MAX   576 /* of the whole answer (RFC 1812 4.3.2.3) */
#define ICMP6_MAX   1280
#define PROTO_ICMP  1
#define PROTO_ICMP6 58
#define TTL	    64

/* Bursts of so many answers, each paid back in so long (RFC 4443 2.4 (f)). */
#define BURST 10
#define PRICE 100000000ull /* ns */

/* The internet checksum; @sum: of what is not in @data. */
uint16_t ddps_ipoib_cksum(const void *data, size_t len, uint32_t sum)
{
	struct ddps_rbuf r = ddps_rbuf_init(data, len);
	uint64_t s = sum;

	while (ddps_rbuf_left(&r) > 1)
		s += ddps_rbuf_u16(&r);
	if (ddps_rbuf_left(&r))
		s += (uint64_t)ddps_rbuf_u8(&r) << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

/* Of an ICMPv6 message behind a plain IPv6 header; 0 if the one in it is right. */
uint16_t ddps_ipoib_cksum6(const uint8_t *packet, size_t len)
{
	uint32_t sum = (uint32_t)(len - IP6_HDR) + PROTO_ICMP6;

	for (size_t i = 8; i < IP6_HDR; i += 2)
		sum += (uint32_t)packet[i] << 8 | packet[i + 1];
	return ddps_ipoib_cksum(packet + IP6_HDR, len - IP6_HDR, sum);
}

struct icmp_error {
	uint16_t type4, type6; /* type and code */
	uint32_t mtu;
	uint64_t *at; /* when its allowance is full again */
};

static bool is_icmp_allowed(struct ddps_ipoib_if *f, uint64_t *at)
{
	if (*at < f->now)
		*at = f->now;
	if (*at - f->now > (BURST - 1) * PRICE) {
		f->stats.icmp_limited++;
		return false;
	}
	*at += PRICE;
	f->stats.icmp_sent++;
	return true;
}

/* RFC 1122 3.2.2: not to errors, later fragments, or senders that are no single host. */
static bool may_answer4(const uint8_t *p, size_t len)
{
	size_t ihl = (size_t)(p[0] & 15) * 4;
	uint8_t type = len > ihl ? p[ihl] : 0;

	if ((p[6] & 0x1f) || p[7])
		return false;
	if (p[9] == PROTO_ICMP && type != 8 && type != 0)
		return false;
	return p[12] != 0 && p[12] != 127 && p[12] < 224;
}

static void tell_error4(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len,
			const struct icmp_error *e)
{
	uint8_t out[ICMP4_MAX];
	size_t part =
		len < sizeof(out) - IP4_HDR - ICMP_HDR ? len : sizeof(out) - IP4_HDR - ICMP_HDR;
	size_t size = IP4_HDR + ICMP_HDR + part;
	struct ddps_wbuf w = ddps_wbuf_init(out, sizeof(out)), c;

	if (!ddps_ipoib_serves(f, false) || !may_answer4(packet, len) || !is_icmp_allowed(f, e->at))
		return;
	ddps_wbuf_u16(&w, 0x4500);
	ddps_wbuf_u16(&w, (uint16_t)size);
	ddps_wbuf_u32(&w, 0);
	ddps_wbuf_u8(&w, TTL);
	ddps_wbuf_u8(&w, PROTO_ICMP);
	ddps_wbuf_u16(&w, 0);
	/* not from our own address: a kernel drops what comes in with one of its own */
	ddps_wbuf_bytes(&w, packet + 16, 4);
	ddps_wbuf_bytes(&w, packet + 12, 4);
	ddps_wbuf_u16(&w, e->type4);
	ddps_wbuf_u16(&w, 0);
	ddps_wbuf_u32(&w, e->mtu > UINT16_MAX ? UINT16_MAX : e->mtu);
	ddps_wbuf_bytes(&w, packet, part);
	c = ddps_wbuf_init(out + 10, 2);
	ddps_wbuf_u16(&c, ddps_ipoib_cksum(out, IP4_HDR, 0));
	c = ddps_wbuf_init(out + IP4_HDR + 2, 2);
	ddps_wbuf_u16(&c, ddps_ipoib_cksum(out + IP4_HDR, size - IP4_HDR, 0));
	f->calls.deliver(f->calls.user, out, size);
}

static const uint8_t none[16];

/* RFC 4443 2.4 (e) */
static bool may_answer6(const uint8_t *p, size_t len)
{
	if (p[6] == PROTO_ICMP6 && len > IP6_HDR && p[IP6_HDR] < 128)
		return false;
	return p[8] != 0xff && memcmp(p + 8, none, sizeof(none)) != 0;
}

static void tell_error6(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len,
			const struct icmp_error *e)
{
	uint8_t out[ICMP6_MAX];
	size_t part =
		len < sizeof(out) - IP6_HDR - ICMP_HDR ? len : sizeof(out) - IP6_HDR - ICMP_HDR;
	size_t size = IP6_HDR + ICMP_HDR + part;
	struct ddps_wbuf w = ddps_wbuf_init(out, sizeof(out)), c;
	const uint8_t *src = ddps_ipoib_own_for(f, true, packet + 8);

	if (!ddps_ipoib_serves(f, true) || !may_answer6(packet, len) || !is_icmp_allowed(f, e->at))
		return;
	ddps_wbuf_u32(&w, 6u << 28);
	ddps_wbuf_u16(&w, (uint16_t)(size - IP6_HDR));
	ddps_wbuf_u8(&w, PROTO_ICMP6);
	ddps_wbuf_u8(&w, TTL);
	/* RFC 4443 2.2 wants an address: without one, that of whom the packet was for */
	ddps_wbuf_bytes(&w, memcmp(src, none, sizeof(none)) ? src : packet + 24, 16);
	ddps_wbuf_bytes(&w, packet + 8, 16);
	ddps_wbuf_u16(&w, e->type6);
	ddps_wbuf_u16(&w, 0);
	ddps_wbuf_u32(&w, e->mtu);
	ddps_wbuf_bytes(&w, packet, part);
	c = ddps_wbuf_init(out + IP6_HDR + 2, 2);
	ddps_wbuf_u16(&c, ddps_ipoib_cksum6(out, size));
	f->calls.deliver(f->calls.user, out, size);
}

static void tell_error(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len,
		       const struct icmp_error *e)
{
	if (packet[0] >> 4 == 4)
		tell_error4(f, packet, len, e);
	else
		tell_error6(f, packet, len, e);
}

void ddps_ipoib_too_big(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len, uint32_t mtu)
{
	/* unreachable: fragmentation needed; packet too big */
	tell_error(f, packet, len,
		   &(struct icmp_error){ 0x0304, 0x0200, mtu, &f->icmp_too_big_at });
}

void ddps_ipoib_unreachable(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len)
{
	tell_error(f, packet, len, &(struct icmp_error){ 0x0301, 0x0103, 0, &f->icmp_lost_at });
}
