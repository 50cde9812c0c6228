/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_SIPHASH_H
#define DDPS_SCTP_SIPHASH_H
/* SipHash-2-4: a hash whose collisions nobody without the key can foresee. */
#include <stddef.h>
#include <stdint.h>

uint64_t ddps_sc_siphash(const uint64_t key[2], const void *data, size_t len);

#endif
