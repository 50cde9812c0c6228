/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/crc32c.h"
#include <criterion/criterion.h>
#include <stdlib.h>

Test(crc32c, any_cut_gives_the_same_value, .description = "5044-4.4-13")
{
	enum { LEN = 70000 };
	uint8_t *p = malloc(LEN);
	uint32_t whole;

	for (unsigned i = 0; i < LEN; i++)
		p[i] = (uint8_t)(i * 2654435761u >> 13);
	whole = ddps_crc32c(~0u, p, LEN);
	for (size_t cut = 1; cut < LEN; cut += cut / 3 + 1)
		cr_expect_eq(ddps_crc32c(ddps_crc32c(~0u, p, cut), p + cut, LEN - cut), whole,
			     "cut at %zu", cut);
	free(p);
}

#ifdef __x86_64__
#include <cpuid.h>

/* Which parts of the registers hold something: bit 2 is the upper halves that AVX added. */
static uint32_t read_states_in_use(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return low;
}

Test(crc32c, upper_halves_are_clean)
{
	static uint8_t p[65536];
	unsigned a = 0, b, c, d;

	if (!__builtin_cpu_supports("avx") || !__get_cpuid_count(0xD, 1, &a, &b, &c, &d) ||
	    !(a & 1u << 2))
		cr_skip("this processor does not say which halves are in use");
	for (size_t n = 1; n <= sizeof p; n *= 2) {
		ddps_crc32c(~0u, p, n);
		cr_expect_eq(read_states_in_use() & 1u << 2, 0, "%zu octets", n);
	}
}
#endif
