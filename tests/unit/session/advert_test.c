/* SPDX-License-Identifier: BSD-2-Clause */
/* The advert: its octets, and what is none. */
#include <ddpsess/advert.h>
#include <ddpsess/err.h>
#include <criterion/criterion.h>
#include <string.h>

static const uint8_t octets[DDPS_ADVERT_LEN] = { 0x01, 0x02, 0x03, 0x04, 0x10, 0x20, 0x30,
						 0x40, 0x50, 0x60, 0x70, 0x80, 0,    0,
						 0,    1,    0,	   0,	 0,    2 };

Test(advert, octets_are_as_the_header_says)
{
	const struct ddps_advert a = { 0x1020304050607080, 0x100000002, 0x01020304, 0 };
	struct ddps_advert got = { 0 };
	uint8_t out[DDPS_ADVERT_LEN];

	ddps_advert_encode(out, &a);
	cr_expect_arr_eq(out, octets, sizeof out);
	cr_expect_eq(ddps_advert_decode(&got, octets, sizeof octets), 0);
	cr_expect_eq(got.to, a.to);
	cr_expect_eq(got.length, a.length);
	cr_expect_eq(got.stag, a.stag);
	cr_expect_eq(got.reserved, 0);
}

Test(advert, another_length_is_none_and_changes_nothing)
{
	struct ddps_advert a = { 1, 2, 3, 0 };
	uint8_t more[DDPS_ADVERT_LEN + 1] = { 0 };

	for (size_t len = 0; len <= sizeof more; len++)
		if (len != DDPS_ADVERT_LEN)
			cr_expect_eq(ddps_advert_decode(&a, more, len), DDPS_E_PROTOCOL, "%zu",
				     len);
	cr_expect(a.to == 1 && a.length == 2 && a.stag == 3);
}

Test(advert, memory_does_not_run_beyond_the_last_offset)
{
	struct ddps_advert a = { UINT64_MAX - 3, 4, 7, 0 };
	uint8_t out[DDPS_ADVERT_LEN];

	ddps_advert_encode(out, &a);
	cr_expect_eq(ddps_advert_decode(&a, out, sizeof out), 0);
	a.length = 5;
	ddps_advert_encode(out, &a);
	cr_expect_eq(ddps_advert_decode(&a, out, sizeof out), DDPS_E_PROTOCOL);
	a = (struct ddps_advert){ 0 };
	ddps_advert_encode(out, &a);
	cr_expect_eq(ddps_advert_decode(&a, out, sizeof out), 0);
	cr_expect_eq(a.length, 0);
}
