/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROOF_OCTETS_H
#define PROOF_OCTETS_H
/* <endian.h> of a little-endian machine, in words that Eva understands: Frama-C's has no functions.
 * It is in front of everything (run.sh). */
#include <stdint.h>

static inline uint16_t be16toh(uint16_t v)
{
	return (uint16_t)((v & 0xff) * 256 + (v >> 8));
}

static inline uint32_t be32toh(uint32_t v)
{
	return v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24;
}

static inline uint64_t be64toh(uint64_t v)
{
	return (uint64_t)be32toh((uint32_t)v) << 32 | be32toh((uint32_t)(v >> 32));
}

static inline uint32_t htole32(uint32_t v)
{
	return v;
}

#define htobe16 be16toh
#define htobe32 be32toh
#define htobe64 be64toh
#endif
