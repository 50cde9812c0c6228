/* SPDX-License-Identifier: BSD-2-Clause */
/* An interface that comes up while its host has no memory. */
#include <criterion/criterion.h>
#include "ipoib_net_fixture.h"
#include "unit/mem_fixture.h"

static struct net net;

/* Whether one allocation failed. */
static bool comes_up_without(unsigned n)
{
	bool failed;

	net_init(&net, 2, 7, DDPS_IPOIB_RC);
	net_start(&net, 1);
	net_start(&net, 0);
	mem_fail(n);
	net_run(&net, 10 * MS);
	failed = mem_failed();
	mem_fail(0);
	net_run(&net, 5 * SEC);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net_conns(&net, 0), 1, "allocation %u", n);
	cr_expect_eq(net.node[0].rejs, 0, "allocation %u", n);
	net_fini(&net);
	return failed;
}

/* Whichever allocation fails meanwhile, it takes the REQs that come later, by the first service ID that they try. */
Test(ipoib_up, without_memory_it_is_asked_for_connections_later, .description = "4755-3.2-11")
{
	unsigned n = 1;

	while (comes_up_without(n))
		cr_assert_lt(++n, 100);
}
