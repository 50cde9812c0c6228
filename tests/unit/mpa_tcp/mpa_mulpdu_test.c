/* SPDX-License-Identifier: BSD-2-Clause */
/* MULPDU. */
#include "mpa_tcp/mpa_mulpdu.h"
#include "mpa_tcp/mpa_fpdu.h"
#include <criterion/criterion.h>

Test(mpa_mulpdu, follows_the_table,
     .description = "5044-4.5-1 5044-4.5-2 5044-5.1-1 5044-3-4 5044-4.5-6 5044-4.5-8")
{
	static const struct {
		size_t emss, plain, markers;
	} row[] = {
		{ 0, 128, 128 },      { 127, 128, 128 },       { 128, 128, 128 },
		{ 140, 134, 130 },    { 536, 530, 522 },       { 1220, 1214, 1202 },
		{ 1428, 1422, 1410 }, { 1448, 1442, 1430 },    { 1459, 1450, 1438 },
		{ 1460, 1454, 1442 }, { 8948, 8942, 8870 },    { 8960, 8954, 8882 },
		{ 9000, 8994, 8922 }, { 65483, 64768, 64768 }, /* around a marker more: */
		{ 511, 502, 498 },    { 512, 506, 502 },       { 513, 506, 498 },
		{ 1024, 1018, 1010 }, { 1025, 1018, 1006 },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		cr_expect_eq(ddps_mpa_mulpdu(row[i].emss, false, 0), row[i].plain, "%zu",
			     row[i].emss);
		cr_expect_eq(ddps_mpa_mulpdu(row[i].emss, true, 0), row[i].markers, "%zu",
			     row[i].emss);
	}
}

Test(mpa_mulpdu, clamps_at_both_ends, .description = "5044-3-4")
{
	cr_expect_eq(ddps_mpa_mulpdu(64772, false, 0), 64766);
	cr_expect_eq(ddps_mpa_mulpdu(64776, false, 0), 64768);
	cr_expect_eq(ddps_mpa_mulpdu(64777, false, 0), 64768);
	cr_expect_eq(ddps_mpa_mulpdu(1u << 30, true, 0), 64768);
}

Test(mpa_mulpdu, cap_lowers_only)
{
	cr_expect_eq(ddps_mpa_mulpdu(1460, false, 1453), 1453);
	cr_expect_eq(ddps_mpa_mulpdu(1460, false, 1454), 1454);
	cr_expect_eq(ddps_mpa_mulpdu(1460, false, 1455), 1454);
	cr_expect_eq(ddps_mpa_mulpdu(1460, false, 1), 128);
}

Test(mpa_mulpdu, fits_one_segment_at_every_phase, .description = "5044-4.5-d1 5044-3-3")
{
	for (size_t emss = 140; emss <= 9000; emss++) {
		size_t l = ddps_mpa_mulpdu(emss, true, 0);

		cr_assert_leq(ddps_mpa_fpdu_size(ddps_mpa_mulpdu(emss, false, 0), false, 0), emss);
		for (unsigned phase = 0; phase < 512; phase += 4)
			cr_assert_leq(ddps_mpa_fpdu_size(l, true, phase), emss, "%zu, phase %u",
				      emss, phase);
	}
}

Test(mpa_mulpdu, fpdu_size_equals_counting, .description = "5044-4.1-d1 5044-4.1-d2")
{
	for (unsigned phase = 0; phase < 512; phase += 4) {
		for (size_t l = 0; l < 1600; l++) {
			size_t left = (2 + l + 3) / 4 * 4 + 4, size = 0, at = phase;

			while (left) {
				if (at % 512)
					left -= 4;
				at += 4;
				size += 4;
			}
			cr_assert_eq(ddps_mpa_fpdu_size(l, true, phase), size, "%zu at %u", l,
				     phase);
		}
	}
	cr_expect_eq(ddps_mpa_fpdu_size(64768, false, 0), 64776);
	cr_expect_eq(ddps_mpa_fpdu_size(64768, true, 0), 65288);
	cr_expect_eq(ddps_mpa_fpdu_size(65535, false, 0), 65544);
	cr_expect_eq(ddps_mpa_fpdu_size(65535, true, 0), 66064);
}
