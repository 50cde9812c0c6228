/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_PKT_H
#define DDPS_IB_PKT_H
/*
 * InfiniBand packets as UDP carries them: base transport header, extended headers, payload,
 * pad, ICRC (IBA volume 1, chapter 9; annex A17).  Addresses are IP's matter: there are neither
 * LRH nor GRH.
 */
#include <ddpsess/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_IB_BTH_LEN	 12
#define DDPS_IB_HEAD_MAX 28 /* BTH and the longest of the extended headers that are sent or read */
#define DDPS_IB_MTU_MAX	 4096
/* The longest payload of UDP that can be a packet: an RDMA Write with immediate data. */
#define DDPS_IB_PKT_MAX (DDPS_IB_BTH_LEN + 20 + DDPS_IB_MTU_MAX + 4)

#define DDPS_IB_QPN_MASK 0xffffffu
#define DDPS_IB_PSN_MASK 0xffffffu

/* The transport, in the upper three bits of an opcode. */
enum { DDPS_IB_RC = 0x00, DDPS_IB_UC = 0x20, DDPS_IB_UD = 0x60, DDPS_IB_TRANSPORT = 0xe0 };

/* The operation, in the lower five. */
enum {
	DDPS_IB_SEND_FIRST = 0x00,
	DDPS_IB_SEND_MIDDLE = 0x01,
	DDPS_IB_SEND_LAST = 0x02,
	DDPS_IB_SEND_LAST_IMM = 0x03,
	DDPS_IB_SEND_ONLY = 0x04,
	DDPS_IB_SEND_ONLY_IMM = 0x05,
	DDPS_IB_WRITE_FIRST = 0x06,
	DDPS_IB_READ_REQUEST = 0x0c,
	DDPS_IB_READ_RESPONSE = 0x0d, /* up to 0x10 */
	DDPS_IB_ACK = 0x11,
	DDPS_IB_ATOMIC_ACK = 0x12,
	DDPS_IB_SEND_LAST_INV = 0x16,
	DDPS_IB_SEND_ONLY_INV = 0x17,
	DDPS_IB_OPERATION = 0x1f,
};

/* What an AETH says, in the upper three bits of its syndrome (IBA volume 1, 9.7.5.1). */
enum { DDPS_IB_AETH_ACK = 0x00, DDPS_IB_AETH_RNR = 0x20, DDPS_IB_AETH_NAK = 0x60 };
#define DDPS_IB_AETH_KIND  0xe0
#define DDPS_IB_NO_CREDITS 0x1f /* with ACK: nothing is said about them */

/* Of a NAK. */
enum { DDPS_IB_NAK_PSN, DDPS_IB_NAK_REQUEST, DDPS_IB_NAK_ACCESS, DDPS_IB_NAK_OPERATION };

struct ddps_ib_pkt {
	uint8_t opcode;
	bool solicited, migrated, ack_req;
	uint16_t pkey;
	uint32_t qpn, psn;	/* the destination's queue pair */
	uint32_t qkey, src_qpn; /* of UD */
	uint8_t syndrome;	/* of an ACK */
	uint32_t msn;
	const uint8_t *data; /* without the pad */
	size_t len;
	bool stays; /* of one to be sent: the data are there until whoever has them says otherwise */
	unsigned pad; /* of 0 to 3 octets; set by both functions */
};

/* Headers of @p; @len and @pad count.  Return: their length. */
size_t ddps_ib_pkt_encode(uint8_t head[DDPS_IB_HEAD_MAX], struct ddps_ib_pkt *p);

/*
 * A payload of UDP with its ICRC, which is not looked at.
 * Return: 0; DDPS_E_TRUNCATED; DDPS_E_PROTOCOL (version, a queue pair 0, a pad that does not fit,
 * a length that is no multiple of 4); DDPS_E_UNSUPPORTED (an opcode that nobody here has).
 */
int ddps_ib_pkt_decode(struct ddps_ib_pkt *p, const void *buf, size_t len);

/* P_Keys of a packet and of a queue pair, or two queue pairs (IBA volume 1, 10.9.3). */
static inline bool ddps_ib_pkey_match(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && (a & 0x7fff) && ((a | b) & 0x8000);
}

/* Above 0: @a is newer than @b, less than half the circle. */
static inline int32_t ddps_ib_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t ddps_ib_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & DDPS_IB_PSN_MASK;
}

/*
 * The invariant CRC of an InfiniBand packet in UDP over IPv4 (IBA volume 1, 7.8.1 and annex A17):
 * that of IEEE 802.3 over the headers as sent, with ones for what routers may change.
 *
 * It covers the identification of the IP header.  A UDP socket sends 0 there, if it is not
 * connected and forbids fragments, but does not show what has been received.  A CRC is linear,
 * so what is wrong about one computed with 0 gives the identification that would make it right,
 * if there is one: 16 of the 32 bits check, the others are spent on it.
 */

#define DDPS_IB_ICRC_LEN 4

/* The headers before the BTH, all in host order. */
struct ddps_ib_udp_hdr {
	uint32_t src, dst;
	uint16_t sport, dport;
	uint16_t id; /* of the IP header; of a packet that has come: the likely one */
};

enum ddps_ib_icrc {
	DDPS_IB_ICRC_BAD,
	DDPS_IB_ICRC_EXACT,  /* with the identification that was given */
	DDPS_IB_ICRC_ANOTHER /* with some other one */
};

/* Of a packet in three parts: @head_len octets of headers, 12 to DDPS_IB_HEAD_MAX; payload; pad.  As on the wire. */
uint32_t ddps_ib_icrc(const struct ddps_ib_udp_hdr *u, const uint8_t *head, size_t head_len,
		      const uint8_t *data, size_t len, unsigned pad);

/* Whether the ICRC at the end of a UDP payload can be right.  @len: at least 16. */
enum ddps_ib_icrc ddps_ib_icrc_check(const struct ddps_ib_udp_hdr *u, const uint8_t *buf,
				     size_t len);

#endif
