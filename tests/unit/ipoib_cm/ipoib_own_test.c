/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of the host that come and go while the interface is up. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_net_fixture.h"

static struct net net;

static void fini(void)
{
	net_fini(&net);
}

static void begin_ipoib_own(void)
{
	net_init(&net, 2, 1, 0);
	net_start_all(&net);
	net_run(&net, SEC);
}

static int set_own_address(bool ip6, const uint8_t *ip, bool has)
{
	return ddps_ipoib_if_address(net.node[1].f, ip6, ip, ip6 ? 64 : 24, has,
				     ddps_ipoib_sim_now(net.sim));
}

/* A packet of node 0 to that address.  Return: how many node 1 has got of it. */
static uint64_t reaches(bool ip6, const uint8_t *ip)
{
	const uint64_t was = net.node[1].n_rx;
	uint8_t p[100];

	if (ip6) {
		net_packet6(&net, p, 0, 1, sizeof(p));
		memcpy(p + 24, ip, 16);
	} else {
		net_packet4(&net, p, 0, 1, sizeof(p), true);
		memcpy(p + 16, ip, 4);
	}
	(void)ddps_ipoib_if_send(net.node[0].f, p, sizeof(p), ddps_ipoib_sim_now(net.sim));
	ddps_ipoib_sim_touch(net.sim, 0);
	net_run(&net, SEC);
	return net.node[1].n_rx - was;
}

Test(ipoib_own, contact_37_an_address_is_added, .fini = fini)
{
	static const uint8_t four[4] = { 10, 0, 0, 77 }, six[16] = { 0xfd, [15] = 77 };
	uint64_t answers;

	begin_ipoib_own();
	cr_expect_eq(reaches(false, four), 0);
	cr_expect_eq(reaches(true, six), 0);
	net_run(&net, 10 * SEC);
	cr_expect_eq(set_own_address(false, four, true), 0);
	cr_expect_eq(set_own_address(true, six, true), 0);
	answers = net_stats(&net, 1)->tx_answer;
	cr_expect_eq(reaches(false, four), 1);
	cr_expect_eq(reaches(true, six), 1);
	cr_expect_gt(net_stats(&net, 1)->tx_answer, answers);
	cr_expect_eq(net_stats(&net, 0)->rx_bad_arp + net_stats(&net, 0)->rx_bad_nd, 0);
}

Test(ipoib_own, contact_37_an_address_is_taken_away, .fini = fini)
{
	static const uint8_t more[4] = { 10, 0, 0, 77 };
	uint8_t first[4];

	begin_ipoib_own();
	memcpy(first, net.node[1].cfg.ip4, 4);
	cr_expect_eq(set_own_address(false, more, true), 0);
	cr_expect_eq(set_own_address(false, more, false), 0);
	cr_expect_eq(set_own_address(false, first, false), 0);
	net_run(&net, 200 * SEC); /* until it is forgotten */
	cr_expect_eq(reaches(false, more), 0);
	cr_expect_eq(reaches(false, first), 0);
	net_run(&net, 200 * SEC);
	cr_expect_eq(set_own_address(false, first, true), 0);
	cr_expect_eq(reaches(false, first), 1);
}

Test(ipoib_own, contact_37_addresses_are_bounded, .fini = fini)
{
	uint8_t ip[4] = { 10, 1, 0, 0 };

	begin_ipoib_own();
	for (unsigned i = 0; i < 32; i++) {
		ip[3] = (uint8_t)i;
		cr_expect_eq(set_own_address(false, ip, true), 0, "%u", i);
		cr_expect_eq(set_own_address(false, ip, true), 0, "the same again, %u", i);
	}
	ip[3] = 32;
	cr_expect_eq(set_own_address(false, ip, true), DDPS_E_LIMIT);
	cr_expect_eq(set_own_address(false, net.node[1].cfg.ip4, true), 0);
	ip[3] = 5;
	cr_expect_eq(set_own_address(false, ip, false), 0);
	ip[3] = 32;
	cr_expect_eq(set_own_address(false, ip, true), 0);
}
