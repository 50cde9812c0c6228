/* SPDX-License-Identifier: BSD-2-Clause */
/* DDP-SSN window and messages ahead of order. */
#include "sctp_ddp/sd_order.h"
#include "sctp_ddp/sd_wire.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdlib.h>

static void hold_ssn(struct ddps_sd_order *o, uint16_t ssn)
{
	uint8_t data[2] = { (uint8_t)(ssn >> 8), (uint8_t)ssn };

	cr_assert_eq(ddps_sd_order_hold(o, ssn, 16, data, sizeof(data)), 0);
}

/* Takes the next, which must be @ssn. */
static void take_next_ssn(struct ddps_sd_order *o, uint16_t ssn)
{
	struct ddps_sd_held *h = ddps_sd_order_take(o);

	cr_assert(h);
	cr_assert_eq(h->ssn, ssn);
	cr_assert_eq(h->len, 2);
	cr_assert_eq(h->data[0] << 8 | h->data[1], ssn);
	free(h);
}

Test(sd_order, window_edges, .description = "5043-10-5 5043-10-6 5043-10-4")
{
	static const uint16_t starts[] = { 0, 1, 32767, 32768, 65535 };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct ddps_sd_order o = { .next = starts[i] };

		cr_expect_eq(ddps_sd_order_check(&o, starts[i]), DDPS_SD_NEXT);
		cr_expect_eq(ddps_sd_order_check(&o, (uint16_t)(starts[i] + 1)), DDPS_SD_AHEAD);
		cr_expect_eq(ddps_sd_order_check(&o, (uint16_t)(starts[i] + 32766)), DDPS_SD_AHEAD);
		cr_expect_eq(ddps_sd_order_check(&o, (uint16_t)(starts[i] + 32767)), DDPS_SD_AHEAD);
		cr_expect_eq(ddps_sd_order_check(&o, (uint16_t)(starts[i] + 32768)), DDPS_SD_OLD);
		cr_expect_eq(ddps_sd_order_check(&o, (uint16_t)(starts[i] - 1)), DDPS_SD_OLD);
		cr_expect_null(o.slot); /* a check allocates nothing */
	}
}

Test(sd_order, duplicates)
{
	struct ddps_sd_order o = { 0 };

	hold_ssn(&o, 5);
	cr_expect_eq(ddps_sd_order_check(&o, 5), DDPS_SD_DUPLICATE);
	cr_expect_eq(ddps_sd_order_check(&o, 21), DDPS_SD_AHEAD); /* the same slot */
	o.next = 5;
	cr_expect_eq(ddps_sd_order_check(&o, 5), DDPS_SD_DUPLICATE);
	take_next_ssn(&o, 5);
	cr_expect_eq(ddps_sd_order_check(&o, 5), DDPS_SD_OLD);
	ddps_sd_order_reset(&o);
}

Test(sd_order, a_far_message_costs_no_more_than_a_near_one, .description = "5043-10-5")
{
	struct ddps_sd_order o = { 0 };

	hold_ssn(&o, 32767);
	cr_expect_leq(o.nslot, 16);
	cr_expect_eq(o.octets, ddps_sd_order_cost(2));
	cr_expect_null(ddps_sd_order_take(&o));
	ddps_sd_order_reset(&o);
	cr_expect_eq(o.octets, 0);
	cr_expect_null(o.slot);
}

Test(sd_order, whole_window_backwards_over_the_wrap)
{
	struct ddps_sd_order o = { .next = 50000 };

	for (unsigned d = 32767; d > 0; d--)
		hold_ssn(&o, (uint16_t)(50000 + d));
	cr_expect_eq(o.count, 32767);
	cr_expect_null(ddps_sd_order_take(&o));
	hold_ssn(&o, 50000);
	for (unsigned d = 0; d < 32768; d++)
		take_next_ssn(&o, (uint16_t)(50000 + d));
	cr_expect_eq(o.count, 0);
	cr_expect_eq(o.octets, 0);
	ddps_sd_order_trim(&o);
	cr_expect_null(o.slot); /* a table that large is given back */
	cr_expect_eq(o.next, (uint16_t)(50000 + 32768));
}

Test(sd_order, what_is_put_back_has_its_turn_again)
{
	struct ddps_sd_order o = { .next = 65535 };
	struct ddps_sd_held *h;

	hold_ssn(&o, 65535);
	hold_ssn(&o, 0);
	h = ddps_sd_order_take(&o);
	cr_assert(h);
	cr_expect_eq(ddps_sd_order_check(&o, 0), DDPS_SD_DUPLICATE);
	ddps_sd_order_untake(&o, h);
	ddps_sd_order_trim(&o);
	cr_expect_eq(o.count, 2);
	cr_expect_eq(o.octets, 2 * ddps_sd_order_cost(2));
	cr_expect_eq(ddps_sd_order_check(&o, 65535), DDPS_SD_DUPLICATE);
	take_next_ssn(&o, 65535);
	take_next_ssn(&o, 0);
	cr_expect_eq(o.octets, 0);
	ddps_sd_order_reset(&o);
}

Test(sd_order, strip_keeps_numbers_and_control)
{
	static const uint8_t data[100] = { 0 };
	struct ddps_sd_order o = { 0 };
	struct ddps_sd_held *h;

	cr_assert_eq(ddps_sd_order_hold(&o, 0, DDPS_SD_PPID_SEGMENT, data, 100), 0);
	cr_assert_eq(ddps_sd_order_hold(&o, 1, DDPS_SD_PPID_CONTROL, data, 4), 0);
	cr_assert_eq(ddps_sd_order_hold(&o, 2, DDPS_SD_PPID_SEGMENT, data, 2), 0);
	ddps_sd_order_strip(&o);
	cr_expect_eq(o.octets, 2 * ddps_sd_order_cost(DDPS_SD_SSN_LEN) + ddps_sd_order_cost(4));
	h = ddps_sd_order_take(&o);
	cr_assert(h);
	cr_expect_eq(h->len, DDPS_SD_SSN_LEN);
	free(h);
	h = ddps_sd_order_take(&o);
	cr_assert(h);
	cr_expect_eq(h->len, 4);
	free(h);
	ddps_sd_order_reset(&o);
	cr_expect_eq(o.next, 0);
}

/* What has no data stands in front of what has, in the same place of the table. */
Test(sd_order, strip_looks_at_all_of_a_place)
{
	static const uint8_t data[10000] = { 0 };
	struct ddps_sd_order o = { 0 };
	struct ddps_sd_held *h;

	cr_assert_eq(ddps_sd_order_hold(&o, 0, DDPS_SD_PPID_SEGMENT, data, sizeof data), 0);
	cr_assert_eq(ddps_sd_order_hold(&o, 16, DDPS_SD_PPID_CONTROL, data, 4), 0);
	ddps_sd_order_strip(&o);
	cr_expect_eq(o.octets, ddps_sd_order_cost(DDPS_SD_SSN_LEN) + ddps_sd_order_cost(4));
	h = ddps_sd_order_take(&o);
	cr_assert(h);
	cr_expect_eq(h->len, DDPS_SD_SSN_LEN);
	cr_expect_lt(malloc_usable_size(h), 200, "the memory is given back");
	free(h);
	ddps_sd_order_reset(&o);
}

/* Twice as large each time; up to 1024 places stay when they are empty. */
Test(sd_order, the_size_of_the_table)
{
	struct ddps_sd_order o = { 0 };
	unsigned size = 16;

	for (uint16_t i = 0; i < 1025; i++) {
		if (i == 1024) {
			for (uint16_t k = 0; k < i; k++)
				free(ddps_sd_order_take(&o));
			ddps_sd_order_trim(&o);
			cr_expect_eq(o.nslot, 1024);
			for (uint16_t k = 0; k < i; k++)
				ddps_sd_order_hold(&o, (uint16_t)(i + k), 17, NULL, 0);
		}
		cr_assert_eq(ddps_sd_order_hold(&o, (uint16_t)(i == 1024 ? 2048 : i), 17, NULL, 0),
			     0);
		size = i >= size ? 2 * size : size;
		cr_expect_eq(o.nslot, size);
	}
	ddps_sd_order_trim(&o);
	cr_expect_eq(o.nslot, 2048, "it is not empty");
	while (o.count)
		free(ddps_sd_order_take(&o));
	ddps_sd_order_trim(&o);
	cr_expect_eq(o.nslot, 0);
	ddps_sd_order_reset(&o);
}

/* A message without payload keeps its place, too. */
Test(sd_order, nothing_but_a_header)
{
	struct ddps_sd_order o = { 0 };
	struct ddps_sd_held *h;

	cr_assert_eq(ddps_sd_order_hold(&o, 0, 17, NULL, 0), 0);
	h = ddps_sd_order_take(&o);
	cr_assert(h);
	cr_expect_eq(h->len, 0);
	cr_expect_eq(h->ppid, 17);
	free(h);
	ddps_sd_order_reset(&o);
}

/* Two in one place of the table; where there is no memory for a shorter piece, the long one stays. */
Test(sd_order, strip_leaves_the_octets_of_the_number)
{
	static const uint8_t data[100] = { 0x12, 0x34, 0x56 };

	for (unsigned fail = 0; fail < 3; fail++) {
		struct ddps_sd_order o = { 0 };
		struct ddps_sd_held *h;

		cr_assert_eq(ddps_sd_order_hold(&o, 0, DDPS_SD_PPID_SEGMENT, data, 100), 0);
		cr_assert_eq(ddps_sd_order_hold(&o, 16, DDPS_SD_PPID_SEGMENT, data, 100), 0);
		mem_fail(fail);
		ddps_sd_order_strip(&o);
		cr_expect_eq(mem_failed(), fail != 0);
		mem_fail(0);
		cr_expect_eq(o.count, 2);
		for (unsigned i = 0; i < 2; i++) {
			o.next = (uint16_t)(16 * i);
			h = ddps_sd_order_take(&o);
			cr_assert(h, "%u", fail);
			cr_expect_eq(h->len, DDPS_SD_SSN_LEN);
			cr_expect_arr_eq(h->data, data, DDPS_SD_SSN_LEN);
			free(h);
		}
		cr_expect_eq(o.octets, 0);
		ddps_sd_order_reset(&o);
	}
}
