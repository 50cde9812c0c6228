/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_RDMAP_WIRE_H
#define DDPS_RDMAP_WIRE_H
/* RDMAP's control octet, Read Request and Terminate (RFC 5040 4): octets <-> struct. */
#include "ddp/ddp_wire.h"
#include <ddpsess/err.h>

enum ddps_opcode {
	DDPS_OP_WIRE_WRITE = 0x0,
	DDPS_OP_WIRE_READ_REQ = 0x1,
	DDPS_OP_WIRE_READ_RESP = 0x2,
	DDPS_OP_WIRE_SEND = 0x3,
	DDPS_OP_WIRE_SEND_INV = 0x4,
	DDPS_OP_WIRE_SEND_SE = 0x5,
	DDPS_OP_WIRE_SEND_SE_INV = 0x6,
	DDPS_OP_WIRE_TERMINATE = 0x7,
	/* RFC 7306 */
	DDPS_OP_WIRE_IMM = 0x8,
	DDPS_OP_WIRE_IMM_SE = 0x9,
	DDPS_OP_WIRE_ATOMIC_REQ = 0xA,
	DDPS_OP_WIRE_ATOMIC_RESP = 0xB
};

/* Queues (RFC 5040 3.1), the last one of RFC 7306. */
enum { DDPS_QN_SEND, DDPS_QN_READ, DDPS_QN_TERM, DDPS_QN_ATOMIC, DDPS_QN_COUNT };

#define DDPS_RREQ_LEN	  28
#define DDPS_TERM_LEN_MAX 52
/* Immediate Data for the Send behind it: its octets that are not the sender's.  Of no RFC. */
#define DDPS_AHEAD_OCTET 0xFE
#define DDPS_IMM_LEN	 8  /* Immediate Data, the whole message (RFC 7306 6.1) */
#define DDPS_AREQ_LEN	 52 /* Atomic Request */
#define DDPS_ARESP_LEN	 12 /* Atomic Response */

static inline uint8_t ddps_rdmap_ctrl(enum ddps_opcode op)
{
	return (uint8_t)(0x40 | op); /* RV 01b, Rsv 0 [5040-4.1-8] [5040-4.1-9] */
}

static inline bool ddps_rdmap_rv_ok(uint8_t ctrl)
{
	return (ctrl & 0xC0) == 0x40;
}

static inline uint8_t ddps_rdmap_opcode(uint8_t ctrl)
{
	return ctrl & 0x0F; /* Rsv is ignored [5040-4.1-10] */
}

/* Read Request header (4.4). */
struct ddps_rreq {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t src_stag;
	uint64_t src_to;
};

void ddps_rreq_encode(const struct ddps_rreq *q, uint8_t out[DDPS_RREQ_LEN]);
void ddps_rreq_decode(struct ddps_rreq *q, const uint8_t in[DDPS_RREQ_LEN]);

/* AOpCodes; 1 is reserved.  The last two are of no RFC: see struct ddps_send_wr. */
enum {
	DDPS_AOP_FETCH_ADD = 0,
	DDPS_AOP_CMP_SWAP = 2,
	DDPS_AOP_WRITE = 14, /* @data: the octets, the first one on top */
	DDPS_AOP_FLUSH = 15  /* @data: how many octets, @mask: DDPS_FLUSH_* */
};

/* Atomic Request header (RFC 7306 5.2.1). */
struct ddps_areq {
	uint8_t aop; /* 4 bits */
	uint32_t id;
	uint32_t stag;
	uint64_t to;
	uint64_t data, mask; /* Add or Swap */
	uint64_t compare, compare_mask;
};

void ddps_areq_encode(const struct ddps_areq *q, uint8_t out[DDPS_AREQ_LEN]);
void ddps_areq_decode(struct ddps_areq *q, const uint8_t in[DDPS_AREQ_LEN]);

/* Atomic Response header (RFC 7306 5.2.2). */
struct ddps_aresp {
	uint32_t id;
	uint64_t original;
};

void ddps_aresp_encode(const struct ddps_aresp *a, uint8_t out[DDPS_ARESP_LEN]);
void ddps_aresp_decode(struct ddps_aresp *a, const uint8_t in[DDPS_ARESP_LEN]);

/* Terminate header (4.8). */
struct ddps_term_msg {
	struct ddps_triple triple;
	uint8_t ctrl[4];    /* decode only: Terminate Control as on the wire, zero filled */
	bool swapped;	    /* decode only: written bit-swapped, as soft-iWARP does */
	bool has_len;	    /* M */
	uint16_t seg_len;   /* valid if has_len */
	const uint8_t *ddp; /* D: the terminated DDP header, 14 or 18 octets, or NULL */
	size_t ddp_len;
	const uint8_t *rreq; /* R: the terminated Read Request header, 28 octets, or NULL */
};

/* @t->rreq only with an untagged @t->ddp.  Return: the length written. */
size_t ddps_term_encode(const struct ddps_term_msg *t, uint8_t out[DDPS_TERM_LEN_MAX]);

/*
 * Read a Terminate; @t borrows from @buf.  What the flags announce but the length does
 * not cover is left out, so a wrong flag does no harm. Return: 0, or DDPS_E_TRUNCATED:
 * less than the flags announce; what is there is in @t.
 */
int ddps_term_decode(struct ddps_term_msg *t, const uint8_t *buf, size_t len);

#endif
