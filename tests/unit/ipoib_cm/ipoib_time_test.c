/* SPDX-License-Identifier: BSD-2-Clause */
/* The 5-bit times of CM messages. */
#include "ipoib_cm/wire/wire.h"
#include <criterion/criterion.h>
#include <ddpsess/ipoib_cm.h>

Test(ipoib_time, five_bit_times)
{
	cr_expect_eq(ddps_cm_time_ns(0), 4096);
	cr_expect_eq(ddps_cm_time_ns(8), 1048576);
	cr_expect_eq(ddps_cm_time_ns(20), 4294967296);
	cr_expect_eq(ddps_cm_time_ns(31), 8796093022208);
	cr_expect_eq(ddps_cm_time_ns(32), 8796093022208);
	for (unsigned t = 0; t <= 31; t++) {
		cr_expect_eq(ddps_cm_time_code(ddps_cm_time_ns(t)), t);
		cr_expect_eq(ddps_cm_time_code(ddps_cm_time_ns(t) + 1), t < 31 ? t + 1 : 31);
	}
	cr_expect_eq(ddps_cm_time_code(0), 0);
	cr_expect_eq(ddps_cm_time_code(UINT64_MAX), 31);
}

Test(ipoib_time, local_ack_timeout_follows_lifetime_and_delay)
{
	static const unsigned row[][3] = {
		/* life, delay, timeout */
		{ 18, 15, 19 }, { 18, 18, 20 }, { 18, 19, 20 }, { 18, 20, 21 }, { 18, 21, 21 },
		{ 0, 0, 2 },	{ 31, 31, 31 }, { 30, 0, 31 },	{ 0, 31, 31 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		cr_expect_eq(ddps_cm_ack_timeout(row[i][0], row[i][1]), row[i][2], "row %zu", i);
}
