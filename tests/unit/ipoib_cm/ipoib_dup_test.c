/* SPDX-License-Identifier: BSD-2-Clause */
/* Two nodes with one IP address, and neighbours that are gone (RFC 5227, RFC 4862 5.4, RFC 4861 7.3). */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_net_fixture.h"

static struct net net;

static void fini(void)
{
	net_fini(&net);
}

#define DupTest(name) Test(ipoib_dup, name, .fini = fini)

/* The last node has the addresses of the first one, too, and starts when that is at work. */
static void make_doubles(void)
{
	net_init(&net, 3, 1, DDPS_IPOIB_RC);
	for (unsigned i = 0; i < net.n; i++)
		net.node[i].cfg.probe_ns = SEC;
	memcpy(net.node[2].cfg.ip4, net.node[0].cfg.ip4, 4);
	memcpy(net.node[2].cfg.ip6[0], net.node[0].cfg.ip6[0], 16);
	net_start(&net, 0);
	net_start(&net, 1);
	net_run(&net, 10 * SEC);
	net_send4(&net, 1, 0, 100, true);
	net_send6(&net, 1, 0, 100);
	net_run(&net, SEC);
	cr_assert_eq(net.node[0].n_rx, 2);
}

static bool find_conflict(unsigned node, bool ip6, struct ddps_ipoib_if_conflict *c)
{
	int res;

	for (unsigned nr = 0; (res = ddps_ipoib_if_conflict(net.node[node].f, nr, c)) >= 0; nr++)
		if (res && c->ip6 == ip6 &&
		    !memcmp(c->ip, ip6 ? net.node[0].cfg.ip6[0] : net.node[0].cfg.ip4,
			    ip6 ? 16 : 4))
			return true;
	return false;
}

DupTest(contact_37_the_second_one_with_an_address_gives_it_up)
{
	struct ddps_ipoib_if_conflict c;

	make_doubles();
	net_start(&net, 2);
	for (unsigned i = 0; i < 80; i++) { /* nobody takes the second one for the first */
		net_send4(&net, 1, 0, 100, true);
		net_send6(&net, 1, 0, 100);
		net_run(&net, 100 * MS);
	}
	cr_expect_eq(net.node[0].n_rx, 162);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		cr_assert(find_conflict(2, v6, &c), "IPv%u", v6 ? 6 : 4);
		cr_expect(c.given_up);
		cr_expect_arr_eq(c.other.gid, net.node[0].cfg.me.addr.gid, 16);
		cr_assert(find_conflict(0, v6, &c), "IPv%u", v6 ? 6 : 4);
		cr_expect_not(c.given_up);
		cr_expect_arr_eq(c.other.gid, net.node[2].cfg.me.addr.gid, 16);
	}
	cr_expect_eq(ddps_ipoib_if_conflict(net.node[1].f, 0, &c), 0);
	cr_expect_eq(net.node[2].n_rx, 0);
}

/* Each was alone on its part of a link, and both have connections: both keep it, and say so seldom. */
Test(ipoib_dup, contact_37_two_old_ones_keep_an_address_and_say_it, .fini = fini,
     .description = "5227-2.4-1")
{
	struct ddps_ipoib_if_conflict c;
	uint64_t sent;

	make_doubles();
	memset(net.node[2].cfg.ip4, 1, 4);
	memset(net.node[2].cfg.ip6[0], 0x20, 16);
	net_start(&net, 2);
	net_run(&net, 5 * SEC);
	cr_assert_eq(ddps_ipoib_if_address(net.node[2].f, false, net.node[0].cfg.ip4, 24, true,
					   ddps_ipoib_sim_now(net.sim)),
		     0);
	net_run(&net, SEC);
	cr_assert(find_conflict(2, false, &c));
	cr_expect(c.given_up, "one that came later");
	sent = net_stats(&net, 0)->ip_conflict;
	net_run(&net, 30 * SEC);
	cr_expect_eq(net_stats(&net, 0)->ip_conflict, sent, "no quarrel without end");
}

/* The same node with another queue pair is no other node. */
DupTest(contact_37_a_node_that_has_restarted_is_no_conflict)
{
	struct ddps_ipoib_if_conflict c;

	net_init(&net, 2, 1, DDPS_IPOIB_RC);
	net_start(&net, 0);
	net_start(&net, 1);
	net_run(&net, SEC);
	net_kill(&net, 1);
	net.node[1].cfg.me.addr.qpn = 0x999;
	net_start(&net, 1);
	net_run(&net, 5 * SEC);
	cr_expect_eq(ddps_ipoib_if_conflict(net.node[0].f, 0, &c), 0);
	cr_expect_eq(ddps_ipoib_if_conflict(net.node[1].f, 0, &c), 0);
}

/* 45 s at most, then 5 s of delay and three questions. */
Test(ipoib_dup, contact_33_a_dead_neighbour_is_found_out_in_53_seconds, .fini = fini,
     .description = "4861-6.3.2-1 4861-7.3.3-3")
{
	struct ddps_ipoib_if_nbr_info info;
	unsigned s = 0;

	for (unsigned v6 = 0; v6 < 2; v6++) {
		net_init(&net, 2, 1, 0);
		net_start(&net, 0);
		net_start(&net, 1);
		net_run(&net, SEC);
		if (v6)
			net_send6(&net, 0, 1, 100);
		else
			net_send4(&net, 0, 1, 100, true);
		net_run(&net, SEC);
		net_kill(&net, 1);
		for (s = 0; s < 60 && net_nbr(&net, 0, 1, v6, &info) && info.has_lladdr; s++) {
			if (v6)
				net_send6(&net, 0, 1, 100);
			else
				net_send4(&net, 0, 1, 100, true);
			net_run(&net, SEC);
		}
		cr_expect_geq(s, 15 + 5 + 2, "IPv%u: %u s", v6 ? 6 : 4, s);
		cr_expect_leq(s, 45 + 5 + 4, "IPv%u: %u s", v6 ? 6 : 4, s);
		if (!v6)
			net_fini(&net);
	}
}

/* ---- addresses of the host that come and go while the interface is up ---- */

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
