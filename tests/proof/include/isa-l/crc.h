/* SPDX-License-Identifier: BSD-2-Clause */
/* What the proofs know of ISA-L: it reads the octets that it is given. */
#include <stdint.h>
/*@ requires len >= 0;
    requires \valid_read(buffer + (0 .. len - 1));
    assigns \result \from buffer[0 .. len - 1], crc; */
unsigned int crc32_iscsi(unsigned char *buffer, int len, unsigned int crc);
/*@ requires \valid_read(buf + (0 .. len - 1));
    assigns \result \from buf[0 .. len - 1], seed; */
uint32_t crc32_gzip_refl(uint32_t seed, const unsigned char *buf, uint64_t len);
#undef __x86_64__ /* Eva knows no registers of a processor */
