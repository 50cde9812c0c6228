/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CRC32C_H
#define DDPS_CRC32C_H
/*
 * CRC32c, and the CRC-32 of Ethernet, by ISA-L, as running values without inversion.
 *
 * ISA-L's ways for AVX-512 return with the upper halves of the vector registers in use.  On Intel's
 * processors each SSE instruction behind such a call then waits for the whole register, until
 * something clears the halves.  So they are cleared here, behind the calls that leave them so.
 */
#include <isa-l/crc.h>
#include <stddef.h>
#include <stdint.h>

static inline void ddps_clear_upper_halves(void)
{
#ifdef __x86_64__
#ifdef __AVX__
	__builtin_ia32_vzeroupper(); /* the compiler may have something of its own there */
#else
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper"); /* the lower halves, SSE's, stay */
#endif
#endif
}

static inline uint32_t ddps_crc32c(uint32_t crc, const void *p, size_t n)
{
	/* ISA-L takes an int and forgot the const; no piece of a packet is near INT_MAX. */
	crc = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)n, crc);
	ddps_clear_upper_halves();
	return crc;
}

static inline uint32_t ddps_crc32(uint32_t crc, const void *p, size_t n)
{
	crc = ~crc32_gzip_refl(~crc, p, n);
	ddps_clear_upper_halves();
	return crc;
}

#endif
