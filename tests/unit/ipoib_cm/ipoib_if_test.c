/* SPDX-License-Identifier: BSD-2-Clause */
/* An IPoIB interface among others: resolution, modes, connections, their end. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/sim/sim_port.h"
#include "ipoib_net_fixture.h"

#define RC DDPS_IPOIB_RC
#define UC DDPS_IPOIB_UC

static struct net net;

static void make_if_pair(uint8_t a, uint8_t b)
{
	net_init(&net, 2, 1, a);
	net.node[1].cfg.me.addr.flags = b;
	net.node[1].cfg.me.rx_mtu = b ? RX_MTU_CM : RX_MTU_UD;
	net_start_all(&net);
}

static void fini(void)
{
	net_fini(&net);
}

#define IfTest(name, ids) Test(ipoib_if, name, .fini = fini, .description = ids)

IfTest(joins_broadcast_first, "4391-5-2 4391-5-3")
{
	make_if_pair(RC, RC);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_expect_eq(net.node[1].n_rx, 1);
	cr_expect_eq(ddps_ipoib_if_start(net.node[0].f, 0), DDPS_E_STATE);
}

IfTest(down_before_join_and_while_alone, "4391-5-2")
{
	net_init(&net, 2, 1, RC);
	ddps_ipoib_sim_plug(net.sim, 0, false);
	net_start(&net, 0);
	net_start(&net, 1);
	net_run(&net, SEC);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_JOINING);
	net_send4(&net, 0, 1, 100, true);
	cr_expect_eq(net_stats(&net, 0)->tx_down, 1);
	ddps_ipoib_sim_plug(net.sim, 0, true);
	net_run(&net, SEC);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP);
}

IfTest(group_below_minimum_is_no_link, "4755-5-1")
{
	const uint8_t mgid[16] = {
		0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff
	};

	net_init(&net, 1, 1, RC);
	net.node[0].cfg.has_ip4 = false;
	ddps_ipoib_sim_plug(net.sim, 0, false);
	net_start(&net, 0);
	ddps_ipoib_if_up()->joined(net.node[0].f, mgid, 0, 1283, 1);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_JOINING);
	cr_expect_eq(net_stats(&net, 0)->join_failed, 1);
	ddps_ipoib_if_up()->joined(net.node[0].f, mgid, 0, 1284, 1);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP);
}

/* Of both protocols the one that fits. */
IfTest(contact_30_a_link_too_narrow_for_ipv6_serves_ipv4, "4755-5-1")
{
	const uint8_t mgid[16] = {
		0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff
	};

	net_init(&net, 1, 1, RC);
	cr_assert(net.node[0].cfg.has_ip4 && net.node[0].cfg.n_ip6);
	ddps_ipoib_sim_plug(net.sim, 0, false);
	net_start(&net, 0);
	ddps_ipoib_if_up()->joined(net.node[0].f, mgid, 0, 71, 1);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_JOINING, "nor for IPv4");
	ddps_ipoib_if_up()->joined(net.node[0].f, mgid, 0, 1024, 1);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP);
	cr_expect_eq(net_stats(&net, 0)->join_failed, 1);
	ddps_ipoib_if_stop(net.node[0].f, 2);
	cr_assert_eq(ddps_ipoib_if_start(net.node[0].f, 3), 0);
	ddps_ipoib_if_up()->joined(net.node[0].f, mgid, 0, 2048, 4);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP, "IPv6 is back");
}

IfTest(resolves_by_arp_and_sends, "4755-3-1 4755-3-2 4755-3.1-8 4755-3.1-10 4755-3.1-11 4391-9.2-1 "
				  "4755-2.2-2 4391-6-1 4391-9.1.1-3")
{
	struct ddps_ipoib_if_nbr_info info;

	make_if_pair(0, 0);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_str_eq(info.state, "reachable");
	cr_expect_eq(info.lladdr.qpn, net.node[1].cfg.me.addr.qpn);
	cr_expect_eq(net_stats(&net, 0)->tx_query, 1);
	cr_expect_eq(net_stats(&net, 1)->tx_answer, 1);
	cr_expect_eq(net_stats(&net, 0)->tx_ud, 1);
	cr_expect_eq(net.node[1].n_rx, 1);
	cr_expect_eq(net.node[1].last_len, 100);
	/* the one asked has learned who asked */
	cr_assert(net_nbr(&net, 1, 0, false, &info));
	cr_expect_str_eq(info.state, "reachable");
}

IfTest(resolves_by_nd_and_sends, "4391-9.3-1 4391-9.3-2 4755-7-4 4391-4-4")
{
	struct ddps_ipoib_if_nbr_info info;

	make_if_pair(0, 0);
	net_send6(&net, 0, 1, 1280);
	net_run(&net, 100 * MS);
	cr_assert(net_nbr(&net, 0, 1, true, &info));
	cr_expect_str_eq(info.state, "reachable");
	cr_expect_eq(net.node[1].n_rx, 1);
	cr_expect_eq(net.node[1].last_len, 1280);
}

IfTest(nobody_answers, "4391-9.4-1")
{
	struct ddps_ipoib_if_nbr_info info;

	make_if_pair(RC, RC);
	net_kill(&net, 1);
	for (unsigned i = 0; i < DDPS_IPOIB_IF_QUEUE + 1; i++)
		net_send4(&net, 0, 1, 100, true);
	cr_expect_eq(net_stats(&net, 0)->tx_queue_full, 1);
	net_run(&net, 4 * SEC);
	cr_expect_eq(net_stats(&net, 0)->tx_query, 3);
	cr_expect_eq(net_stats(&net, 0)->tx_unreachable, DDPS_IPOIB_IF_QUEUE);
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_str_eq(info.state, "failed");
	net_send4(&net, 0, 1, 100, true); /* not asked again immediately */
	net_run(&net, 100 * MS);
	cr_expect_eq(net_stats(&net, 0)->tx_query, 3);
	net_run(&net, 10 * SEC);
	net_start(&net, 1);
	net_run(&net, SEC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 1);
}

/* The first packet goes as datagram while the connection is made, the next on it. */
static void one_connection(uint8_t a, uint8_t b, const char *mode)
{
	struct ddps_ipoib_if_nbr_info info;

	make_if_pair(a, b);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_expect_eq(net_stats(&net, 0)->tx_ud, 1);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net_conns(&net, 1), 1);
	net_send4(&net, 0, 1, 65520, true);
	net_send4(&net, 1, 0, 65520, true);
	net_send6(&net, 1, 0, 65520); /* [4755-5-3] the same connection */
	net_run(&net, 100 * MS);
	cr_expect_eq(net_stats(&net, 0)->tx_conn, 1);
	cr_expect_eq(net_stats(&net, 1)->tx_conn, 2);
	cr_expect_eq(net.node[1].last_len, 65520);
	cr_expect_eq(net.node[0].last_len, 65520);
	cr_expect_eq(net.node[0].reqs + net.node[1].reqs, 1);
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_eq(info.mtu, 65520);
	cr_expect_str_eq(info.mode, mode);
}

IfTest(connects_on_demand_rc, "4755-2.3-1 4755-2.3-4 4755-2.3-5 4755-2.3-6 4755-3.2-1 4755-3.2-2 "
			      "4755-3.2-3 4755-3.2-4 4755-3.2-6 4755-5-3 4755-5.1-4 4755-5.1-5 "
			      "4755-7-1 4755-7-2")
{
	one_connection(RC, RC, "rc");
}

IfTest(connects_on_demand_uc, "4755-3.1-1 4755-3.1-12")
{
	one_connection(UC, RC | UC, "uc");
}

IfTest(both_modes_prefer_rc, "4755-3.1-4")
{
	one_connection(RC | UC, RC | UC, "rc");
}

IfTest(both_modes_uc_by_choice, "4755-3.1-4 4755-3.1-12")
{
	struct ddps_ipoib_if_nbr_info info;

	net_init(&net, 2, 1, RC | UC);
	net.node[0].cfg.prefer_uc = true;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_str_eq(info.mode, "uc");
}

IfTest(no_common_mode_means_datagrams, "4755-3.1-5 4755-3.1-12 4755-7-1 4755-3.1-6")
{
	make_if_pair(RC, UC);
	for (unsigned i = 0; i < 5; i++)
		net_send4(&net, 0, 1, 2044, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 5);
	cr_expect_eq(net_stats(&net, 0)->tx_ud, 5);
	cr_expect_eq(net.node[0].reqs, 0);
}

IfTest(capability_is_no_duty, "4755-3.1-13")
{
	net_init(&net, 2, 1, RC);
	net.node[0].cfg.passive = true;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[0].reqs, 0);
	net_send4(&net, 1, 0, 100, true); /* but the other may connect, and both use it */
	net_run(&net, SEC);
	net_send4(&net, 0, 1, 60000, true);
	net_run(&net, SEC);
	cr_expect_eq(net_stats(&net, 0)->tx_conn, 1);
}

IfTest(multicast_stays_on_ud, "4755-2.1-1 4755-7-3 4391-4-6")
{
	uint8_t p[3000];

	net_init(&net, 3, 1, RC);
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	net_packet4(&net, p, 0, 1, 200, true);
	memcpy(p + 16, (uint8_t[]){ 224, 0, 0, 1 }, 4);
	ddps_ipoib_if_send(net.node[0].f, p, 200, ddps_ipoib_sim_now(net.sim));
	memcpy(p + 16, (uint8_t[]){ 10, 0, 255, 255 }, 4); /* broadcast of the subnet */
	ddps_ipoib_if_send(net.node[0].f, p, 200, ddps_ipoib_sim_now(net.sim));
	memset(p + 16, 0xff, 4);
	ddps_ipoib_if_send(net.node[0].f, p, 200, ddps_ipoib_sim_now(net.sim));
	net_run(&net, SEC);
	cr_expect_eq(net_stats(&net, 0)->tx_mcast, 3);
	cr_expect_eq(net_stats(&net, 0)->tx_conn, 0);
	cr_expect_eq(net.node[1].n_rx, 4);
	cr_expect_eq(net.node[2].n_rx, 3);
	net_packet4(&net, p, 0, 1, 2045, true); /* one octet too long: nobody to answer */
	memset(p + 16, 0xff, 4);
	ddps_ipoib_if_send(net.node[0].f, p, 2045, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_stats(&net, 0)->tx_too_big, 1);
	cr_expect_eq(net.node[0].n_rx, 0);
	net_packet4(&net, p, 0, 1, 2045, false);
	memset(p + 16, 0xff, 4);
	ddps_ipoib_if_send(net.node[0].f, p, 2045, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_stats(&net, 0)->tx_fragments, 2);
	net_run(&net, SEC);
	cr_expect_eq(net.node[2].n_rx, 5);
}

/* The header is written before the packet, and where fragments are sent, nowhere near it. */
IfTest(a_packet_with_room_before_it, "4755-4-1")
{
	uint8_t p[4 + 60000];

	make_if_pair(RC, RC);
	for (unsigned i = 0; i < 2; i++) { /* a datagram, then on a connection */
		net_packet4(&net, p + 4, 0, 1, 1000, true);
		memset(p, 0xee, 4);
		cr_assert_eq(ddps_ipoib_if_send_frame(net.node[0].f, p, 1000,
						      ddps_ipoib_sim_now(net.sim)),
			     0);
		net_run(&net, SEC);
		cr_expect_eq(net.node[1].n_rx, i + 1);
		cr_expect_eq(net.node[1].last_len, 1000);
		cr_expect_eq(p[0] << 8 | p[1], i ? 0x0800 : 0xeeee,
			     "the first had to wait for ARP");
		net_packet4(&net, p + 4, 0, 1, 1000, true);
		cr_expect_arr_eq(net.node[1].last, p + 4, 1000);
	}
	cr_expect_eq(net_stats(&net, 0)->tx_conn, 1);
	net_packet4(&net, p + 4, 0, 1, 60000, true);
	cr_expect_eq(ddps_ipoib_if_send_frame(net.node[0].f, p, 59999, ddps_ipoib_sim_now(net.sim)),
		     DDPS_E_INVAL);
}

IfTest(nd_from_above_stays_on_ud, "4755-7-4")
{
	uint8_t p[100];

	make_if_pair(RC, RC);
	net_send6(&net, 0, 1, 100);
	net_run(&net, SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	net_packet6(&net, p, 0, 1, 80);
	p[6] = 58;
	p[40] = 136;
	ddps_ipoib_if_send(net.node[0].f, p, 80, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_stats(&net, 0)->tx_conn, 0);
	cr_expect_eq(net_stats(&net, 0)->tx_ud, 2);
}

IfTest(mtu_is_the_smaller_receive_mtu, "4755-5.1-2 4755-5.1-4 4755-5.1-5 4755-7.2-1")
{
	struct ddps_ipoib_if_nbr_info info;

	net_init(&net, 3, 1, RC);
	net.node[1].cfg.me.rx_mtu = 32772;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_send4(&net, 0, 2, 100, true);
	net_run(&net, SEC);
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_eq(info.mtu, 32768);
	cr_assert(net_nbr(&net, 0, 2, false, &info));
	cr_expect_eq(info.mtu, 65520);
	net_send4(&net, 0, 1, 32768, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].last_len, 32768);
	net_send4(&net, 0, 1, 32769, true);
	net_run(&net, SEC);
	cr_expect_eq(net_stats(&net, 0)->tx_too_big, 1);
	cr_expect_eq(net.node[0].last[20], 3);
	cr_expect_eq(net.node[0].last[26] << 8 | net.node[0].last[27], 32768);
	net_send4(&net, 0, 1, 32769, false);
	cr_expect_eq(net_stats(&net, 0)->tx_fragments, 2);
}

IfTest(big_packet_waits_for_the_connection, "4755-7-1")
{
	make_if_pair(RC, RC);
	net_send4(&net, 0, 1, 40000, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 1);
	cr_expect_eq(net.node[1].last_len, 40000);
	cr_expect_eq(net_stats(&net, 0)->tx_conn, 1);
	cr_expect_eq(net_stats(&net, 0)->tx_too_big, 0);
}

/* A peer that refuses: what waited is answered with the MTU of datagrams. */
IfTest(big_packet_is_answered_when_refused, "4755-7-1 4755-3.2-8 4755-7.2-1")
{
	net_init(&net, 2, 1, RC);
	net.node[0].cfg.n_ip6 = 0;
	net.node[0].cfg.me.rx_mtu = 1000; /* too little for a node with IPv6 */
	net_start_all(&net);
	net_send4(&net, 0, 1, 3000, true);
	net_send4(&net, 0, 1, 3000, false);
	net_run(&net, 50 * MS);
	cr_expect_eq(net.node[1].rejs, 1);
	cr_expect_eq(net_stats(&net, 0)->tx_too_big, 1);
	cr_expect_eq(net_stats(&net, 0)->tx_fragments, 2);
	cr_expect_eq(net.node[0].n_rx, 1);
	cr_expect_eq(net.node[0].last[26] << 8 | net.node[0].last[27], 2044);
	cr_expect_eq(net.node[1].n_rx, 2);
	net_run(&net, SEC);
}

IfTest(idle_connection_ends_and_comes_back, "4755-3.4-3 4755-3.4-2")
{
	net_init(&net, 2, 1, RC);
	net.node[0].cfg.idle_ns = 5 * SEC;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 4 * SEC);
	cr_expect_eq(net_conns(&net, 0), 1);
	net_send4(&net, 0, 1, 100, true); /* in use: not idle */
	net_run(&net, 4 * SEC);
	cr_expect_eq(net_conns(&net, 0), 1);
	net_run(&net, 3 * SEC);
	cr_expect_eq(net_conns(&net, 0), 0);
	cr_expect_eq(net_conns(&net, 1), 0);
	cr_expect_eq(net_stats(&net, 0)->conn_idle, 1);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net.node[1].n_rx, 3);
}

/* On UC a peer that has ended the connection, and was not heard, looks like one that listens. */
IfTest(uc_is_asked_again_when_nothing_comes, "4755-3.4-3")
{
	net_init(&net, 2, 1, UC);
	net.node[0].cfg.idle_ns = 5 * SEC;
	net_start_all(&net);
	for (unsigned i = 0; i < 12; i++) {
		net_send4(&net, 0, 1, 100, true);
		net_run(&net, SEC);
	}
	cr_expect_geq(net_stats(&net, 0)->conn_idle, 1);
	cr_expect_geq(net_stats(&net, 0)->conn_up, 2);
	cr_expect_eq(net.node[1].n_rx, 12);
}

IfTest(ends_with_the_interface, "4755-3.4-1 4391-10-10")
{
	make_if_pair(RC, RC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	ddps_ipoib_if_stop(net.node[0].f, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net.node[0].dreqs, 1);
	cr_expect_eq(ddps_ipoib_if_at_rest(net.node[0].f), false);
	net_run(&net, 60 * SEC);
	cr_expect_eq(net_conns(&net, 1), 0);
	cr_expect(ddps_ipoib_if_at_rest(net.node[0].f));
	cr_expect(ddps_ipoib_if_at_rest(net.node[1].f));
	cr_assert_eq(ddps_ipoib_if_start(net.node[0].f, ddps_ipoib_sim_now(net.sim)), 0);
	net_run(&net, SEC);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[0].n_rx, 1);
}

IfTest(ends_with_the_neighbour, "4755-3.4-2 4391-9.4-1")
{
	struct ddps_ipoib_if_nbr_info info;

	net_init(&net, 2, 1, RC);
	net.node[0].cfg.reachable_ns = 10 * SEC;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 16 * SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 6 * SEC); /* used, so it was asked again */
	cr_expect(net_nbr(&net, 0, 1, false, &info));
	cr_expect_eq(net_stats(&net, 0)->tx_query, 2);
	cr_expect_eq(net_conns(&net, 0), 1);
	net_run(&net, 40 * SEC);
	cr_expect_not(net_nbr(&net, 0, 1, false, &info));
	cr_expect_eq(net_conns(&net, 0), 0);
	cr_expect_eq(net_conns(&net, 1), 0);
}

IfTest(survives_a_killed_peer, "4755-8-1 4755-3.1-9 4391-9.4-1")
{
	struct ddps_ipoib_if_nbr_info info;

	make_if_pair(RC, RC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	net_kill(&net, 1);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net_conns(&net, 0), 0);
	net.node[1].cfg.me.addr.qpn = 0x999; /* a restart brings another UD QP */
	net.node[1].cfg.seed ^= 0x55;
	net_start(&net, 1);
	net_run(&net, SEC); /* the newcomer's announcement corrects the neighbour */
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_eq(info.lladdr.qpn, 0x999);
	net_send4(&net, 0, 1, 1000, true);
	net_run(&net, SEC);
	net_send4(&net, 0, 1, 60000, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].last_len, 60000);
	cr_expect_eq(net_conns(&net, 0), 1);
}

IfTest(many_addresses_one_connection, "4755-2.3-6")
{
	make_if_pair(RC, RC);
	net_send4(&net, 0, 1, 100, true);
	net_send6(&net, 0, 1, 100);
	net_run(&net, SEC);
	cr_expect_eq(net.node[0].reqs, 1);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net_conns(&net, 1), 1);
}

IfTest(both_start_at_once, "4755-3.3-1 4755-3.3-4 4755-3.3-5 4755-3.3-6 4755-3.2-9")
{
	for (uint64_t seed = 1; seed < 40; seed++) {
		if (net.sim)
			net_fini(&net);
		net_init(&net, 2, seed, RC);
		net_start_all(&net);
		for (unsigned i = 0; i < 3; i++) {
			net_send4(&net, 0, 1, 100, true);
			net_send4(&net, 1, 0, 100, true);
			net_run(&net, 5000);
		}
		net_run(&net, SEC);
		cr_expect_eq(net_conns(&net, 0), 1, "seed %u", (unsigned)seed);
		cr_expect_eq(net_conns(&net, 1), 1, "seed %u", (unsigned)seed);
	}
}

IfTest(reject_carries_private_data, "4755-3.2-11 4755-3.2-10 4755-6-1 4755-6-2")
{
	struct ddps_ipoib_priv priv;

	net_init(&net, 2, 1, RC);
	net.node[1].cfg.me.rx_mtu = 1284; /* the least for IPv6 */
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net.node[0].last_req.u.req.service_id, 0x0100000000000049);
	net_fini(&net);

	net_init(&net, 2, 1, RC);
	net.node[0].cfg.n_ip6 = 0;
	net.node[0].cfg.me.rx_mtu = 1000; /* too little for a node with IPv6 */
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 50 * MS);
	cr_expect_eq(net_conns(&net, 0), 0);
	cr_assert_eq(net.node[1].rejs, 1);
	cr_expect_eq(net.node[1].last_rej.u.rej.reason, DDPS_CM_REJ_CONSUMER);
	ddps_ipoib_priv_decode(&priv, net.node[1].last_rej.u.rej.private_data, 8);
	cr_expect_eq(priv.qpn, 0x49);
	cr_expect_eq(priv.rx_mtu, RX_MTU_CM);
	cr_expect_eq(net_stats(&net, 1)->req_refused, 1);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 1); /* the datagram */
}

IfTest(linux_form_first, "4755-3.5-4")
{
	net_init(&net, 2, 1, RC);
	net.node[0].cfg.form = DDPS_IPOIB_SID_LINUX;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[0].last_req.u.req.service_id, 0x1000000000000049);
	cr_expect_eq(net_conns(&net, 0), 1);
}

/* Linux takes its own RNR retry count from our REP: 7 is "without end". */
Test(ipoib_if, rep_lets_the_peer_wait_for_us, .fini = fini)
{
	net_init(&net, 2, 1, RC);
	net.node[0].cfg.rnr_retry = 1;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net.node[0].last_req.u.req.rnr_retry, 1);
	cr_expect_eq(net.node[1].last_rep.u.rep.rnr_retry, 7);
}

static void ignore_ipoib_if_deliver(void *user, const void *packet, size_t len)
{
	(void)user, (void)packet, (void)len;
}

Test(ipoib_if, refuses_bad_configurations, .description = "4755-5-1 4755-5-4 4755-3.1-2")
{
	const struct ddps_ipoib_if_calls none = { .struct_size = sizeof(none),
						  .deliver = ignore_ipoib_if_deliver };
	struct ddps_ipoib_if_config good, bad;
	struct ddps_ipoib_if *f;
	struct ddps_ipoib_port *port;

	net_init(&net, 1, 1, RC);
	port = ddps_ipoib_sim_port(net.sim, 0);
	good = net.node[0].cfg;
	good.me.rx_mtu = 1284;
	cr_assert_eq(ddps_ipoib_if_new(&f, &good, port, &none), 0);
	ddps_ipoib_if_free(f);
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		bad = good;                                                                        \
		bad.change;                                                                        \
		cr_expect_eq(ddps_ipoib_if_new(&f, &bad, port, &none), DDPS_E_INVAL, #change);     \
	} while (0)
	REFUSED(me.rx_mtu = 1283);
	REFUSED(me.rx_mtu = DDPS_IPOIB_RX_MTU_MAX + 1);
	REFUSED(me.addr.flags = 0x20);
	REFUSED(me.addr.qpn = 0);
	REFUSED(me.addr.qpn = DDPS_IPOIB_QPN_MCAST);
	REFUSED(scope = 16);
	REFUSED(prefix4 = 33);
	REFUSED(n_ip6 = DDPS_IPOIB_IF_IP6_MAX + 1);
	REFUSED(max_qps = 65536);
	REFUSED(max_nbr = 65536);
	REFUSED(max_peers = 65536);
	REFUSED(retry_count = 8);
	REFUSED(cm_timeout = 32);
	REFUSED(cm_retries = 16);
	REFUSED(rnr_retry = 8);
	net_fini(&net);
}
