/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_CRC_H
#define DDPS_MPA_CRC_H
/*
 * CRC32c of FPDUs (RFC 5044 4.4).  The running value is the raw register:
 * start with DDPS_MPA_CRC_INIT, invert at the end.  On the wire it goes least significant
 * octet first, as the iSCSI digests do [5044-4.4-13].
 */
#include "common/crc32c.h"
#include <endian.h>
#include <string.h>

#define DDPS_MPA_CRC_INIT 0xFFFFFFFFu
#define DDPS_MPA_CRC_LEN  4u

static inline uint32_t ddps_mpa_crc(uint32_t crc, const uint8_t *p, size_t n)
{
	return ddps_crc32c(crc, p, n);
}

static inline void ddps_mpa_crc_store(uint8_t *at, uint32_t crc)
{
	crc = htole32(~crc);
	memcpy(at, &crc, DDPS_MPA_CRC_LEN);
}

static inline uint32_t ddps_mpa_crc_load(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, DDPS_MPA_CRC_LEN);
	return ~le32toh(v);
}

#endif
