/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROOF_ENDIAN_H
#define PROOF_ENDIAN_H
/* Of a little-endian machine, in words that Eva understands. */
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

#define htobe16 be16toh
#define htobe32 be32toh
#define htobe64 be64toh
#endif
