/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_ICRC_H
#define DDPS_TEST_ICRC_H
/* Packets of InfiniBand that tests make by hand. */
#include "ipoib_cm/ib/pkt.h"
#include <string.h>

/* Writes the ICRC behind the @len octets of a UDP payload without it.  @len: at least 12. */
static inline void icrc_put(const struct ddps_ib_udp_hdr *u, uint8_t *buf, size_t len)
{
	uint32_t crc = ddps_ib_icrc(u, buf, DDPS_IB_BTH_LEN, buf + DDPS_IB_BTH_LEN,
				    len - DDPS_IB_BTH_LEN, 0);

	memcpy(buf + len, &crc, sizeof(crc));
}

#endif
