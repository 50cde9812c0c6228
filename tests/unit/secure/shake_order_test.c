/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of handshakes: one network with many does not delay another. */
#include "secure/shake_order.h"
#include <criterion/criterion.h>

#define MANY 1000

static struct ddps_shake_place place[MANY], other[3];

Test(shake_order, a_flood_delays_another_network_by_one_turn)
{
	struct ddps_shake_order o;

	ddps_shake_order_init(&o);
	for (int i = 0; i < MANY; i++)
		ddps_shake_order_add(&o, &place[i], 1);
	cr_expect_eq(ddps_shake_order_take(&o), &place[0]);
	ddps_shake_order_add(&o, &other[0], 2);
	ddps_shake_order_add(&o, &other[1], 2);
	ddps_shake_order_add(&o, &other[2], 3);
	cr_expect_eq(ddps_shake_order_take(&o), &place[1]);
	cr_expect_eq(ddps_shake_order_take(&o), &other[0]);
	cr_expect_eq(ddps_shake_order_take(&o), &other[2]);
	cr_expect_eq(ddps_shake_order_take(&o), &place[2]);
	cr_expect_eq(ddps_shake_order_take(&o), &other[1]);
	for (int i = 3; i < MANY; i++)
		cr_expect_eq(ddps_shake_order_take(&o), &place[i]);
	cr_expect_null(ddps_shake_order_take(&o));
}

Test(shake_order, who_has_left_takes_no_turn)
{
	struct ddps_shake_order o;

	ddps_shake_order_init(&o);
	for (int i = 0; i < 3; i++)
		ddps_shake_order_add(&o, &place[i], 1);
	ddps_shake_order_add(&o, &other[0], 2);
	ddps_shake_order_del(&o, &place[0]);
	ddps_shake_order_del(&o, &place[2]);
	cr_expect_eq(ddps_shake_order_take(&o), &other[0]);
	cr_expect_eq(ddps_shake_order_take(&o), &place[1]);
	cr_expect_null(ddps_shake_order_take(&o));
	ddps_shake_order_add(&o, &place[0], 1);
	cr_expect_eq(ddps_shake_order_take(&o), &place[0]);
}
