/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_ICRC_H
#define DDPS_IB_ICRC_H
/*
 * The invariant CRC of an InfiniBand packet in UDP over IPv4 (IBA volume 1, 7.8.1 and annex A17):
 * that of IEEE 802.3 over the headers as sent, with ones for what routers may change.
 *
 * It covers the identification of the IP header.  A UDP socket sends 0 there, if it is not
 * connected and forbids fragments, but does not show what has been received.  A CRC is linear,
 * so what is wrong about one computed with 0 gives the identification that would make it right,
 * if there is one: 16 of the 32 bits check, the others are spent on it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Writes the ICRC behind the @len octets of a UDP payload without it.  @len: at least 12. */
void ddps_ib_icrc_make(const struct ddps_ib_udp_hdr *u, uint8_t *buf, size_t len);

/* Whether the ICRC at the end of a UDP payload can be right.  @len: at least 16. */
enum ddps_ib_icrc ddps_ib_icrc_check(const struct ddps_ib_udp_hdr *u, const uint8_t *buf,
				     size_t len);

#endif
