/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_ICRC_H
#define DDPS_IB_ICRC_H
/*
 * The invariant CRC of an InfiniBand packet in UDP over IPv4 (IBA volume 1, 7.8.1 and annex A17):
 * that of IEEE 802.3 over the headers as sent, with ones for what routers may change.
 *
 * It covers the identification of the IP header.  A UDP socket sends 0 there, if it is not
 * connected and forbids fragments, but does not show what has been received.  A CRC is linear,
 * so what is wrong about one computed with 0 tells the identification that would make it right,
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
};

/* The register after the headers of a packet whose UDP payload has @len octets, ICRC included. */
uint32_t ddps_ib_icrc_start(const struct ddps_ib_udp_hdr *u, size_t len);
/* The same after @n octets more; the fifth of the BTH counts as 0xff and is the caller's matter. */
uint32_t ddps_ib_icrc_add(uint32_t crc, const void *buf, size_t n);
/* The four octets for the wire. */
void ddps_ib_icrc_put(uint8_t out[DDPS_IB_ICRC_LEN], uint32_t crc);

/* Whether the ICRC at the end of a UDP payload can be right.  @len: at least 16. */
bool ddps_ib_icrc_check(const struct ddps_ib_udp_hdr *u, const uint8_t *buf, size_t len);

#endif
