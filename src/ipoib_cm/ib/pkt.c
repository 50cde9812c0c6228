/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet headers as octets. */
#include "ipoib_cm/ib/pkt.h"
#include "common/bytes.h"
#include "ipoib_cm/ib/icrc.h"

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
