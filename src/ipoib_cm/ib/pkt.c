/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet headers as octets. */
#include "ipoib_cm/ib/pkt.h"
#include "common/bytes.h"
#include "common/crc32c.h"
#include <string.h>

#define DETH_LEN 8
#define NONE	 (-1)

/* Octets of the extended headers; NONE: no such opcode (IBA volume 1, 9.2, table 38). */
static int extended(uint8_t opcode)
{
	static const int8_t rc[] = {
		0,  0, 0, 4, 0, 4, 16, 0,  0,  4,    16, 20, /* Sends, RDMA Writes */
		16, 4, 0, 4, 4, 4, 12, 28, 28, NONE, 4,	 4   /* Reads, ACK, atomics, invalidates */
	};
	uint8_t op = opcode & DDPS_IB_OPERATION;

	switch (opcode & DDPS_IB_TRANSPORT) {
	case DDPS_IB_RC:
		return op < sizeof(rc) ? rc[op] : NONE;
	case DDPS_IB_UC:
		return op < DDPS_IB_READ_REQUEST ? rc[op] : NONE;
	case DDPS_IB_UD:
		return op == DDPS_IB_SEND_ONLY	     ? DETH_LEN
		       : op == DDPS_IB_SEND_ONLY_IMM ? DETH_LEN + 4
						     : NONE;
	default:
		return NONE;
	}
}

size_t ddps_ib_pkt_encode(uint8_t head[DDPS_IB_HEAD_MAX], struct ddps_ib_pkt *p)
{
	struct ddps_wbuf w = ddps_wbuf_init(head, DDPS_IB_HEAD_MAX);

	p->pad = -(unsigned)p->len & 3;
	ddps_wbuf_u8(&w, p->opcode);
	ddps_wbuf_u8(&w, (uint8_t)((p->solicited ? 0x80u : 0) | (p->migrated ? 0x40u : 0) |
				   p->pad << 4));
	ddps_wbuf_u16(&w, p->pkey);
	ddps_wbuf_u32(&w, p->qpn & DDPS_IB_QPN_MASK);
	ddps_wbuf_u32(&w, (uint32_t)p->ack_req << 31 | (p->psn & DDPS_IB_PSN_MASK));
	if ((p->opcode & DDPS_IB_TRANSPORT) == DDPS_IB_UD) {
		ddps_wbuf_u32(&w, p->qkey);
		ddps_wbuf_u32(&w, p->src_qpn & DDPS_IB_QPN_MASK);
	} else if (p->opcode == DDPS_IB_ACK) {
		ddps_wbuf_u32(&w, (uint32_t)p->syndrome << 24 | (p->msn & DDPS_IB_PSN_MASK));
	}
	return (size_t)(w.p - head);
}

/* @r: behind the BTH. */
static int get_extended(struct ddps_ib_pkt *p, struct ddps_rbuf *r)
{
	int len = extended(p->opcode);
	struct ddps_rbuf e;
	const uint8_t *at;
	uint32_t v;

	if (len < 0)
		return DDPS_E_UNSUPPORTED;
	at = ddps_rbuf_take(r, (size_t)len);
	if (!at)
		return DDPS_E_TRUNCATED;
	e = ddps_rbuf_init(at, (size_t)len);
	if ((p->opcode & DDPS_IB_TRANSPORT) == DDPS_IB_UD) {
		p->qkey = ddps_rbuf_u32(&e);
		p->src_qpn = ddps_rbuf_u32(&e) & DDPS_IB_QPN_MASK;
	} else if (p->opcode == DDPS_IB_ACK) {
		v = ddps_rbuf_u32(&e);
		p->syndrome = (uint8_t)(v >> 24);
		p->msn = v & DDPS_IB_PSN_MASK;
	}
	return 0;
}

int ddps_ib_pkt_decode(struct ddps_ib_pkt *p, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint8_t flags;
	uint32_t v;
	int err;

	*p = (struct ddps_ib_pkt){ 0 };
	if (len < DDPS_IB_BTH_LEN + DDPS_IB_ICRC_LEN)
		return DDPS_E_TRUNCATED;
	r.end -= DDPS_IB_ICRC_LEN;
	p->opcode = ddps_rbuf_u8(&r);
	flags = ddps_rbuf_u8(&r);
	p->solicited = flags & 0x80;
	p->migrated = flags & 0x40;
	p->pad = flags >> 4 & 3;
	p->pkey = ddps_rbuf_u16(&r);
	p->qpn = ddps_rbuf_u32(&r) & DDPS_IB_QPN_MASK;
	v = ddps_rbuf_u32(&r);
	p->ack_req = v >> 31;
	p->psn = v & DDPS_IB_PSN_MASK;
	if (flags & 0x0f || !p->qpn || len % 4) /* the version is 0 */
		return DDPS_E_PROTOCOL;
	err = get_extended(p, &r);
	if (err)
		return err;
	if (p->pad > ddps_rbuf_left(&r))
		return DDPS_E_PROTOCOL;
	p->data = r.p;
	p->len = ddps_rbuf_left(&r) - p->pad;
	return 0;
}

/* ---- the CRC, and its way back over a field that is not known ---- */

#define POLY	  0xedb88320u
#define AFTER_LRH 0xdebb20e3u /* eight octets 0xff, which stand for the LRH */
#define IP_LEN	  20
#define UDP_LEN	  8
#define ID_END	  6 /* of the identification, in the IP header */
#define BTH_RES	  4 /* FECN, BECN and reserved bits */

/* [k]: back over 2^k octets, as a factor. */
static const uint32_t back[] = {
	0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12,
	0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c,
};

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

/* The register behind the headers, @len octets from the BTH on being UDP's payload; one of the BTH counts as all ones. */
static uint32_t start_icrc(const struct ddps_ib_udp_hdr *u, size_t len, const uint8_t *head,
			   size_t head_len)
{
	uint8_t all[IP_LEN + UDP_LEN + DDPS_IB_HEAD_MAX];
	struct ddps_wbuf w = ddps_wbuf_init(all, sizeof(all));
	size_t udp = UDP_LEN + len;

	ddps_wbuf_u8(&w, 0x45);
	ddps_wbuf_u8(&w, 0xff); /* type of service */
	ddps_wbuf_u16(&w, (uint16_t)(IP_LEN + udp));
	ddps_wbuf_u16(&w, u->id);
	ddps_wbuf_u16(&w, 0x4000); /* no fragments */
	ddps_wbuf_u8(&w, 0xff);	   /* time to live */
	ddps_wbuf_u8(&w, 17);
	ddps_wbuf_u16(&w, 0xffff);
	ddps_wbuf_u32(&w, u->src);
	ddps_wbuf_u32(&w, u->dst);
	ddps_wbuf_u16(&w, u->sport);
	ddps_wbuf_u16(&w, u->dport);
	ddps_wbuf_u16(&w, (uint16_t)udp);
	ddps_wbuf_u16(&w, 0xffff);
	memcpy(w.p, head, head_len);
	w.p[BTH_RES] = 0xff;
	return ddps_crc32(AFTER_LRH, all, IP_LEN + UDP_LEN + head_len);
}

uint32_t ddps_ib_icrc(const struct ddps_ib_udp_hdr *u, const uint8_t *head, size_t head_len,
		      const uint8_t *data, size_t len, unsigned pad)
{
	static const uint8_t zero[4];
	uint32_t crc = start_icrc(u, head_len + len + pad + DDPS_IB_ICRC_LEN, head, head_len);

	if (len)
		crc = ddps_crc32(crc, data, len);
	if (pad)
		crc = ddps_crc32(crc, zero, pad);
	return htole32(~crc);
}

/* The product of two polynomials, the bits in the order of the register. */
static uint32_t product(uint32_t a, uint32_t b)
{
	uint32_t p = 0;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		p ^= a & bit ? b : 0;
		b = b >> 1 ^ (b & 1 ? POLY : 0);
	}
	return p;
}

enum ddps_ib_icrc ddps_ib_icrc_check(const struct ddps_ib_udp_hdr *u, const uint8_t *buf,
				     size_t len)
{
	size_t n = len - DDPS_IB_ICRC_LEN, behind = IP_LEN - ID_END + UDP_LEN + n;
	uint32_t wrong = le32toh(ddps_ib_icrc(u, buf, DDPS_IB_BTH_LEN, buf + DDPS_IB_BTH_LEN,
					      n - DDPS_IB_BTH_LEN, 0)) ^
			 le32(buf + n);

	if (!wrong)
		return DDPS_IB_ICRC_EXACT;
	/* an identification changes the low 16 bits of the register two octets after it began */
	behind += sizeof(uint16_t);
	for (unsigned k = 0; behind; k++, behind >>= 1) {
		if (k == sizeof(back) / sizeof(*back))
			return DDPS_IB_ICRC_BAD; /* longer than a packet can be */
		if (behind & 1)
			wrong = product(wrong, back[k]);
	}
	return wrong >> 16 ? DDPS_IB_ICRC_BAD : DDPS_IB_ICRC_ANOTHER;
}
