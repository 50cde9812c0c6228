/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the bundle does not take from libraries: the checksums of ISA-L, which is not packaged as an archive,
 * CRC32c with the processor's instruction where it has one, that of Ethernet by tables; and a function that
 * Debian 11's C library lacks.
 */
#include "old_libc.h"
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <nmmintrin.h>
#define TARGET		  __attribute__((target("sse4.2")))
#define HAS_INSTRUCTION() __builtin_cpu_supports("sse4.2")
#define CRC_8(crc, v)	  ((uint32_t)_mm_crc32_u64(crc, v))
#define CRC_1(crc, v)	  _mm_crc32_u8(crc, v)
#else
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define TARGET		  __attribute__((target("+crc")))
#define HAS_INSTRUCTION() (getauxval(AT_HWCAP) & HWCAP_CRC32)
#define CRC_8(crc, v)	  __crc32cd(crc, v)
#define CRC_1(crc, v)	  __crc32cb(crc, v)
#endif

#define POLYNOMIAL 0x82f63b78u /* of CRC32c, reflected */
#define ETHERNET   0xedb88320u

unsigned crc32_iscsi(unsigned char *buf, int len, unsigned crc);
uint32_t crc32_gzip_refl(uint32_t crc, const unsigned char *buf, uint64_t len);

TARGET static uint32_t sum_fast(const unsigned char *p, int len, uint32_t crc)
{
	uint64_t v;

	for (; len >= (int)sizeof v; p += sizeof v, len -= (int)sizeof v) {
		memcpy(&v, p, sizeof v);
		crc = CRC_8(crc, v);
	}
	while (len-- > 0)
		crc = CRC_1(crc, *p++);
	return crc;
}

static uint32_t sum_by_bits(const unsigned char *p, int len, uint32_t crc)
{
	while (len-- > 0) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
	}
	return crc;
}

unsigned crc32_iscsi(unsigned char *buf, int len, unsigned crc)
{
	return HAS_INSTRUCTION() ? sum_fast(buf, len, crc) : sum_by_bits(buf, len, crc);
}

/* Of an octet that has so many octets of 0 behind it. */
static uint32_t behind[8][256];

__attribute__((constructor)) static void fill_crc_tables(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ ETHERNET : crc >> 1;
		behind[0][i] = crc;
	}
	for (unsigned n = 1; n < 8; n++)
		for (unsigned i = 0; i < 256; i++)
			behind[n][i] = behind[0][behind[n - 1][i] & 0xff] ^ behind[n - 1][i] >> 8;
}

uint32_t crc32_gzip_refl(uint32_t crc, const unsigned char *p, uint64_t len)
{
	uint64_t v;

	for (crc = ~crc; len >= sizeof v; p += sizeof v, len -= sizeof v) {
		memcpy(&v, p, sizeof v);
		v ^= crc;
		crc = 0;
		for (int i = 0; i < 8; i++)
			crc ^= behind[7 - i][v >> 8 * i & 0xff];
	}
	while (len-- > 0)
		crc = behind[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

const char *strerrorname_np(int err)
{
	static const char *const names[] = {
#include "errno_names.h"
	};

	return err >= 0 && (size_t)err < sizeof names / sizeof *names ? names[err] : NULL;
}
