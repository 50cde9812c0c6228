/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniBand packets in UDP: headers and the invariant CRC. */
#include "conform/ipoib/packet.h"
#include "conform/peer/peer.h"
#include <string.h>

#define IP_UDP	 28u
#define IP_ID	 4u /* where the identification is */
#define DF	 0x4000u
#define CRC_POLY 0xedb88320u

/* ---- invariant CRC (9.2.1.1, A17.3.3): the CRC of zlib over what no router changes ---- */

static uint32_t crc_octet(uint32_t c, uint8_t o)
{
	c ^= o;
	for (unsigned i = 0; i < 8; i++)
		c = c >> 1 ^ (CRC_POLY & -(c & 1));
	return c;
}

static uint32_t crc_octets(uint32_t c, const uint8_t *p, size_t len)
{
	static uint32_t table[256];

	if (!table[1])
		for (unsigned i = 0; i < 256; i++)
			table[i] = crc_octet(0, (uint8_t)i);
	while (len--)
		c = c >> 8 ^ table[(uint8_t)c ^ *p++];
	return c;
}

/* The IP and UDP headers, all that may change on the way set to ones. */
static void masked_ip(uint8_t h[IP_UDP], size_t len, const struct ci_addr *a)
{
	memset(h, 0, IP_UDP);
	h[0] = 0x45;
	h[1] = 0xff;
	cf_put16(h + 2, (uint16_t)(IP_UDP + len));
	cf_put16(h + 6, DF);
	h[8] = 0xff;
	h[9] = 17;
	cf_put16(h + 10, 0xffff);
	cf_put32(h + 12, a->src);
	cf_put32(h + 16, a->dst);
	cf_put16(h + 20, a->sport);
	cf_put16(h + 22, a->dport);
	cf_put16(h + 24, (uint16_t)(8 + len));
	cf_put16(h + 26, 0xffff);
}

/* @len: with the ICRC, which does not count. */
static uint32_t compute_icrc(const uint8_t *b, size_t len, const struct ci_addr *a)
{
	static const uint8_t lrh[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint8_t h[IP_UDP], fixed[5];
	uint32_t c = UINT32_MAX;

	masked_ip(h, len, a);
	memcpy(fixed, b, sizeof fixed);
	fixed[4] = 0xff; /* FECN, BECN, reserved */
	c = crc_octets(c, lrh, sizeof lrh);
	c = crc_octets(c, h, sizeof h);
	c = crc_octets(c, fixed, sizeof fixed);
	return ~crc_octets(c, b + sizeof fixed, len - sizeof fixed - CI_ICRC);
}

static uint32_t icrc_there(const uint8_t *b, size_t len)
{
	const uint8_t *p = b + len - CI_ICRC;

	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* What bit @bit of the identification changes in the CRC of a packet of @len octets. */
static uint32_t bit_weight(unsigned bit, size_t len)
{
	static const uint8_t zero[256];
	uint8_t at[2] = { (uint8_t)(1u << bit >> 8), (uint8_t)(1u << bit) };
	uint32_t c = crc_octets(0, at, 2);
	size_t left = IP_UDP - IP_ID - 2 + len - CI_ICRC;

	for (; left > sizeof zero; left -= sizeof zero)
		c = crc_octets(c, zero, sizeof zero);
	return crc_octets(c, zero, left);
}

bool ci_icrc_right(const uint8_t *b, size_t len, const struct ci_addr *a)
{
	uint32_t diff = compute_icrc(b, len, a) ^ icrc_there(b, len), base[32] = { 0 };

	if (!diff)
		return true;
	/* The CRC is linear: is the difference a sum of the bits' weights? */
	for (unsigned bit = 0; bit < 16; bit++) {
		uint32_t w = bit_weight(bit, len);

		for (unsigned k = 0; w && k < 32; k++) {
			unsigned top = 31 - k;

			if (!(w >> top & 1))
				continue;
			if (!base[top]) {
				base[top] = w;
				break;
			}
			w ^= base[top];
		}
	}
	for (unsigned k = 0; k < 32; k++)
		if (diff >> (31 - k) & 1)
			diff ^= base[31 - k];
	return !diff;
}

/* ---- packets ---- */

static size_t put_ib_headers(uint8_t *b, const struct ci_pkt *p, unsigned pad)
{
	size_t n = CI_BTH;

	memset(b, 0, CI_HEAD_MAX);
	b[0] = p->op;
	b[1] = (uint8_t)(p->flags | pad << 4);
	cf_put16(b + 2, p->pkey);
	cf_put32(b + 4, p->qpn);
	b[4] = p->reserved;
	cf_put32(b + 8, p->psn);
	b[8] = p->ack_req ? 0x80 : 0;
	if ((p->op & CI_TRANSPORT) == CI_UD) {
		cf_put32(b + n, p->qkey);
		cf_put32(b + n + 4, p->src_qpn);
		n += 8;
	} else if (p->op == CI_ACK) {
		cf_put32(b + n, (uint32_t)p->syndrome << 24 | p->msn);
		n += 4;
	} else if (p->op == CI_WRITE_ONLY || p->op == CI_READ) {
		cf_put32(b + n + 12, (uint32_t)p->len);
		n += 16;
	}
	return n;
}

size_t ci_pkt_build(uint8_t *b, const struct ci_pkt *p, const struct ci_addr *a)
{
	unsigned pad = (unsigned)-p->len & 3;
	size_t n = put_ib_headers(b, p, pad);
	uint32_t c;

	if (p->len)
		memcpy(b + n, p->data, p->len);
	n += p->len;
	memset(b + n, 0, pad + CI_ICRC);
	n += pad + CI_ICRC;
	c = compute_icrc(b, n, a) ^ p->spoil;
	for (unsigned i = 0; i < 4; i++)
		b[n - 4 + i] = (uint8_t)(c >> (8 * i));
	return n;
}

const char *ci_pkt_parse(struct ci_pkt *p, const uint8_t *b, size_t len)
{
	size_t n = CI_BTH, pad;

	if (len < CI_BTH + CI_ICRC)
		return "shorter than a header and an ICRC";
	*p = (struct ci_pkt){ .op = b[0],
			      .flags = b[1],
			      .reserved = b[4],
			      .pkey = cf_get16(b + 2),
			      .qpn = cf_get32(b + 4) & 0xffffff,
			      .ack_req = b[8] & 0x80,
			      .psn = cf_get32(b + 8) & 0xffffff };
	pad = b[1] >> 4 & 3;
	if ((p->op & CI_TRANSPORT) == CI_UD)
		n += 8;
	else if (p->op == CI_ACK)
		n += 4;
	if (len < n + pad + CI_ICRC)
		return "shorter than its headers";
	if (n == CI_BTH + 8) {
		p->qkey = cf_get32(b + CI_BTH);
		p->src_qpn = cf_get32(b + CI_BTH + 4) & 0xffffff;
	} else if (n == CI_BTH + 4) {
		p->syndrome = b[CI_BTH];
		p->msn = cf_get32(b + CI_BTH) & 0xffffff;
	}
	if (len % 4)
		return "a length that is no multiple of 4";
	p->data = b + n;
	p->len = len - n - pad - CI_ICRC;
	return NULL;
}

size_t ci_pkt_ip(uint8_t *out, const uint8_t *b, size_t len, const struct ci_addr *a)
{
	uint32_t sum = 0;

	masked_ip(out, len, a);
	out[1] = 0;
	out[8] = 64;
	cf_put16(out + 10, 0);
	cf_put16(out + 26, 0);
	for (unsigned i = 0; i < 20; i += 2)
		sum += cf_get16(out + i);
	sum = (sum & 0xffff) + (sum >> 16);
	cf_put16(out + 10, (uint16_t) ~(sum + (sum >> 16)));
	memcpy(out + IP_UDP, b, len);
	return IP_UDP + len;
}
