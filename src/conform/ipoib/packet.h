/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_IB_PACKET_H
#define DDPS_CONFORM_IB_PACKET_H
/*
 * InfiniBand packets in UDP, as octets (IBA volume 1, chapter 9; annex A17).  Written from the
 * specification, apart from src/ipoib_cm: what judges a node shares no code with it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CI_BTH	     12u
#define CI_HEAD_MAX  28u
#define CI_ICRC	     4u
#define CI_PKT_MAX   (CI_HEAD_MAX + 4096u + 3u + CI_ICRC + 1u)
#define CI_MLID	     0xc000u
#define CI_MCAST_QPN 0xffffffu

enum { CI_RC = 0x00, CI_UC = 0x20, CI_UD = 0x60, CI_TRANSPORT = 0xe0 };
enum {
	CI_FIRST = 0x00,
	CI_MIDDLE = 0x01,
	CI_LAST = 0x02,
	CI_ONLY = 0x04,
	CI_WRITE_ONLY = 0x0a,
	CI_READ = 0x0c,
	CI_ACK = 0x11
};
/* Syndromes (9.7.5.1). */
enum {
	CI_AETH_ACK = 0x1f,
	CI_NAK_PSN = 0x60,
	CI_NAK_REQUEST = 0x61,
	CI_NAK_ACCESS = 0x62,
	CI_NAK_OPERATION = 0x63
};

struct ci_pkt {
	uint8_t op;
	uint8_t flags;	  /* octet 1: SE, M, pad, version */
	uint8_t reserved; /* octet 4 */
	bool ack_req;
	uint16_t pkey;
	uint32_t qpn, psn;
	uint32_t qkey, src_qpn; /* UD */
	uint8_t syndrome;	/* ACK */
	uint32_t msn;
	const uint8_t *data;
	size_t len;
	uint32_t spoil; /* built: xor of the ICRC */
};

/* Addresses of the UDP packet, host order. */
struct ci_addr {
	uint32_t src, dst;
	uint16_t sport, dport;
};

/* Headers, payload, pad and ICRC into CI_PKT_MAX octets.  Return: how many. */
size_t ci_pkt_build(uint8_t *b, const struct ci_pkt *p, const struct ci_addr *a);
/* Return: NULL, or what is wrong with it.  The ICRC is not looked at. */
const char *ci_pkt_parse(struct ci_pkt *p, const uint8_t *b, size_t len);
/*
 * Whether the ICRC is right for some IP identification: a UDP socket does not tell that.  So
 * 16 of its 32 bits are checked of a sender that numbers its packets, all of one that has 0.
 */
bool ci_icrc_right(const uint8_t *b, size_t len, const struct ci_addr *a);
/* A whole IPv4 packet around it, for captures.  Return: its length; @out: 28 octets more. */
size_t ci_pkt_ip(uint8_t *out, const uint8_t *b, size_t len, const struct ci_addr *a);

#endif
