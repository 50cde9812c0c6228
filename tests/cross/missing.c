/* SPDX-License-Identifier: BSD-2-Clause */
/* ISA-L's checksums where it is not packaged; with musl, what archives made for glibc ask for too. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#define POLYNOMIAL 0x82f63b78u /* of CRC32c, reflected */
#define ETHERNET   0xedb88320u

unsigned crc32_iscsi(unsigned char *buf, int len, unsigned crc);
uint32_t crc32_gzip_refl(uint32_t crc, const unsigned char *buf, uint64_t len);

int __fprintf_chk(FILE *f, int flag, const char *fmt, ...);

int __fprintf_chk(FILE *f, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	n = vfprintf(f, fmt, ap);
	va_end(ap);
	return n;
}

static uint32_t sum_crc_octets(const unsigned char *p, uint64_t len, uint32_t crc,
			       uint32_t polynomial)
{
	for (; len; len--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
	}
	return crc;
}

unsigned crc32_iscsi(unsigned char *buf, int len, unsigned crc)
{
	return sum_crc_octets(buf, (uint64_t)len, crc, POLYNOMIAL);
}

uint32_t crc32_gzip_refl(uint32_t crc, const unsigned char *buf, uint64_t len)
{
	return ~sum_crc_octets(buf, len, ~crc, ETHERNET);
}
