/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_CRC_H
#define DDPS_MPA_CRC_H
/*
 * CRC32c of FPDUs (RFC 5044 4.4).  The running value is the raw register:
 * start with DDPS_MPA_CRC_INIT, invert at the end.  On the wire it goes least significant
 * octet first, as the iSCSI digests do [5044-4.4-13].
 */
#include "common/crc32c.h"

#define DDPS_MPA_CRC_INIT 0xFFFFFFFFu
#define DDPS_MPA_CRC_LEN  4u

static inline uint32_t ddps_mpa_crc(uint32_t crc, const uint8_t *p, size_t n)
{
	return ddps_crc32c(crc, p, n);
}

static inline void ddps_mpa_crc_store(uint8_t *at, uint32_t crc)
{
	crc = ~crc;
	for (unsigned i = 0; i < DDPS_MPA_CRC_LEN; i++)
		at[i] = (uint8_t)(crc >> (8 * i));
}

static inline uint32_t ddps_mpa_crc_load(const uint8_t *at)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < DDPS_MPA_CRC_LEN; i++)
		v |= (uint32_t)at[i] << (8 * i);
	return ~v;
}

#endif
