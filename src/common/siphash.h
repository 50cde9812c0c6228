/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SIPHASH_H
#define DDPS_SIPHASH_H
/*
 * SipHash-2-4 (Aumasson, Bernstein 2012): a keyed hash of short strings.  Nobody without the key can
 * make two strings of one value, or the value of a string.
 */
#include <stddef.h>
#include <stdint.h>

struct ddps_siphash_key {
	uint64_t k[2];
};

uint64_t ddps_siphash(const struct ddps_siphash_key *key, const void *data, size_t len);

#endif
