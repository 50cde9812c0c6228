/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4 against the vectors of its authors. */
#include "common/siphash.h"
#include <criterion/criterion.h>

Test(siphash, vectors)
{
	/* key 00..0f, input 00, 00 01, ...: the lengths 0, 1, 7, 8, 15 */
	static const struct {
		size_t len;
		uint64_t value;
	} want[] = {
		{ 0, 0x726fdb47dd0e0e31 }, { 1, 0x74f839c593dc67fd },  { 7, 0xab0200f58b01d137 },
		{ 8, 0x93f5f5799a932462 }, { 15, 0xa129ca6149be45e5 },
	};
	struct ddps_siphash_key key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	uint8_t in[16];

	for (uint8_t i = 0; i < sizeof in; i++)
		in[i] = i;
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
		cr_expect_eq(ddps_siphash(&key, in, want[i].len), want[i].value, "%zu octets",
			     want[i].len);
}
