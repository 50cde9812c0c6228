/* SPDX-License-Identifier: BSD-2-Clause */
/* ISA-L's CRC32c where it is not packaged; with musl, what archives made for glibc ask for too. */
#include <stdarg.h>
#include <stdio.h>

#define POLYNOMIAL 0x82f63b78u /* of CRC32c, reflected */

unsigned crc32_iscsi(unsigned char *buf, int len, unsigned crc);

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

unsigned crc32_iscsi(unsigned char *buf, int len, unsigned crc)
{
	for (int i = 0; i < len; i++) {
		crc ^= buf[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
	}
	return crc;
}
