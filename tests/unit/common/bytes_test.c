/* SPDX-License-Identifier: BSD-2-Clause */
/* Cursors over octets: their ends, and lengths that no object has. */
#include "common/bytes.h"
#include "common/crc32c.h"
#include "common/siphash.h"
#include "common/system/random.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <ddpsess/err.h>
#include <errno.h>
#include <stdint.h>

static const size_t absurd[] = { (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 23, SIZE_MAX };

#define ABSURD (sizeof absurd / sizeof *absurd)

Test(bytes, a_length_that_no_object_has_cannot_be_read)
{
	const uint8_t octets[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	for (size_t i = 0; i < ABSURD; i++) {
		struct ddps_rbuf r = ddps_rbuf_init(octets, absurd[i]);

		cr_assert(r.failed);
		cr_assert_eq(ddps_rbuf_left(&r), 0);
		cr_assert_null(ddps_rbuf_take(&r, 0));
		cr_assert_eq(ddps_rbuf_u8(&r), 0);
		cr_assert_eq(ddps_rbuf_u64(&r), 0);
		cr_assert_eq(r.p, octets);
	}
}

Test(bytes, a_length_that_no_object_has_cannot_be_written)
{
	uint8_t octets[16] = { 0 };

	for (size_t i = 0; i < ABSURD; i++) {
		struct ddps_wbuf w = ddps_wbuf_init(octets, absurd[i]);

		cr_assert(w.failed);
		ddps_wbuf_u8(&w, 0xff);
		ddps_wbuf_u64(&w, UINT64_MAX);
		cr_assert(w.failed);
		cr_assert_eq(w.p, octets);
	}
	for (size_t i = 0; i < sizeof octets; i++)
		cr_assert_eq(octets[i], 0);
}

Test(bytes, up_to_the_end_and_not_beyond)
{
	uint8_t octets[9] = { 0 };
	struct ddps_wbuf w = ddps_wbuf_init(octets, 8);
	struct ddps_rbuf r = ddps_rbuf_init(octets, 8);

	ddps_wbuf_u64(&w, UINT64_C(0x0102030405060708));
	cr_assert(!w.failed);
	ddps_wbuf_u8(&w, 9);
	cr_assert(w.failed);
	cr_assert_eq(octets[8], 0);
	cr_assert_eq(ddps_rbuf_u64(&r), UINT64_C(0x0102030405060708));
	cr_assert(!r.failed);
	cr_assert_eq(ddps_rbuf_u8(&r), 0);
	cr_assert(r.failed);
}

Test(bytes, nothing_has_an_end_too)
{
	struct ddps_rbuf r = ddps_rbuf_init("", 0);
	struct ddps_wbuf w = ddps_wbuf_init(&(uint8_t){ 0 }, 0);

	cr_assert(!r.failed && !w.failed);
	cr_assert_eq(ddps_rbuf_left(&r), 0);
	ddps_wbuf_bytes(&w, "", 0);
	cr_assert(!w.failed);
}

/* ---- crc32c ---- */

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

/* ---- SipHash-2-4 against the vectors of its authors ---- */

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

/* ---- random octets, when a signal ends the system's call ---- */

static unsigned calls;

/* Every second one is interrupted; the others give as many octets as that is the how many-th. */
static ssize_t more_and_more(void *buf, size_t len, unsigned flags)
{
	const size_t n = ++calls / 2 < len ? calls / 2 : len;

	cr_expect_eq(flags, 0, "it waits until there are good ones");
	if (calls % 2) {
		errno = EINTR;
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		((uint8_t *)buf)[i] = (uint8_t)calls;
	return (ssize_t)n;
}

Test(random, what_is_missing_is_drawn)
{
	uint8_t b[8] = { 0 };

	sys_instead.getrandom = more_and_more;
	cr_expect_eq(ddps_random(b, 7), 0);
	cr_expect_arr_eq(b, "\2\4\4\6\6\6\x8\0", 8);
	cr_expect_eq(calls, 8);
}

Test(random, nothing_is_drawn_for_nobody)
{
	sys_instead.getrandom = more_and_more;
	cr_expect_eq(ddps_random(NULL, 0), 0);
	cr_expect_eq(calls, 0);
}

Test(random, the_system_has_none)
{
	uint8_t b[8] = { 0 };

	sys_fail("getrandom", 0, 1, ENOSYS);
	cr_expect_eq(ddps_random(b, sizeof b), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOSYS);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(ddps_random(b, sizeof b), 0);
}
