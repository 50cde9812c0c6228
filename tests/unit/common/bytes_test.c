/* SPDX-License-Identifier: BSD-2-Clause */
/* Cursors over octets: their ends, and lengths that no object has. */
#include "common/bytes.h"
#include <criterion/criterion.h>

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
