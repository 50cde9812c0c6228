/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers whose LID changes, paths that become others, and a subnet that says that it has changed. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/sim/sim_port.h"
#include "ipoib_cm/wire/wire.h"
#include "ipoib_net_fixture.h"

#define RC    DDPS_IPOIB_RC
#define MOVED 700

static struct net net;

static void make_moving_pair(uint8_t flags)
{
	net_init(&net, 2, 1, flags);
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, SEC);
	cr_assert_eq(net.node[1].n_rx, 1);
}

static void fini(void)
{
	net_fini(&net);
}

static void move_to_lid(unsigned node, uint16_t lid)
{
	cr_assert_eq(ddps_ipoib_sim_move(net.sim, node, lid), 0);
}

/* Each sends one to the other.  Return: how many came. */
static uint64_t both_ways(uint64_t within)
{
	const uint64_t was = net.node[0].n_rx + net.node[1].n_rx;

	net_send4(&net, 0, 1, 100, true);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, within);
	return net.node[0].n_rx + net.node[1].n_rx - was;
}

/* One of node 1 comes to node 0, from that LID. */
static void datagram_from(uint16_t lid)
{
	const struct ddps_ipoib_ud_from from = { .qpn = net.node[1].cfg.me.addr.qpn, .slid = lid };
	uint8_t frame[4 + 100];

	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_IPV4);
	net_packet4(&net, frame + 4, 1, 0, 100, true);
	ddps_ipoib_if_up()->ud(net.node[0].f, &from, frame, sizeof(frame),
			       ddps_ipoib_sim_now(net.sim));
	ddps_ipoib_sim_touch(net.sim, 0);
}

#define MoveTest(name, ids) Test(ipoib_move, name, .fini = fini, .description = ids)

MoveTest(lids_of_a_fabric, "")
{
	net_init(&net, 2, 1, 0);
	cr_expect_eq(ddps_ipoib_sim_move(net.sim, 2, 5), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_sim_move(net.sim, 0, 0), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_sim_move(net.sim, 0, 0xc000), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_sim_move(net.sim, 0, 2), DDPS_E_INVAL); /* the other's */
	cr_expect_eq(ddps_ipoib_sim_move(net.sim, 0, 1), 0);		/* its own */
	cr_expect_eq(ddps_ipoib_sim_move(net.sim, 0, 0xbfff), 0);
	cr_expect_eq(ddps_ipoib_sim_move(net.sim, 1, 1), 0);
}

MoveTest(a_datagram_from_another_lid, "4391-9.1.2-2")
{
	make_moving_pair(0);
	net_run(&net, SEC);
	move_to_lid(1, MOVED);
	cr_expect_eq(both_ways(100 * MS), 1); /* ours is lost, theirs shows it */
	cr_expect_eq(both_ways(100 * MS), 2);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	cr_expect_eq(net_stats(&net, 1)->path_moved, 0);
}

MoveTest(an_arp_request_from_another_lid, "4755-3.1-11")
{
	struct ddps_ipoib_if_nbr_info info;

	make_moving_pair(0);
	net_run(&net, SEC);
	move_to_lid(1, MOVED);
	net_kill(&net, 1); /* so that it has to ask; same address and queue pair */
	net_start(&net, 1);
	net_run(&net, 10 * MS);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, 500 * MS); /* before it would ask a second time */
	cr_expect_eq(net.node[0].n_rx, 1);
	cr_assert(net_nbr(&net, 1, 0, false, &info));
	cr_expect_str_eq(info.state, "reachable");
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
}

MoveTest(a_solicitation_from_another_lid, "4391-9.3-1")
{
	make_moving_pair(0);
	net_send6(&net, 0, 1, 200);
	net_run(&net, 2 * SEC);
	move_to_lid(1, MOVED);
	net_kill(&net, 1);
	net_start(&net, 1);
	net_run(&net, 10 * MS);
	net_send6(&net, 1, 0, 200);
	net_run(&net, 500 * MS);
	cr_expect_eq(net.node[0].n_rx, 1);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
}

/* Nothing is known of it: the probe of a neighbour in use finds it. */
MoveTest(a_silent_peer_is_found_by_its_probe, "4391-9.4-1")
{
	make_moving_pair(0);
	net_run(&net, 2 * SEC);
	move_to_lid(1, MOVED);
	for (unsigned i = 0; i < 63; i++) {
		net_send4(&net, 0, 1, 100, true);
		net_run(&net, SEC);
	}
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	net.node[1].n_rx = 0;
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 10 * MS);
	cr_expect_eq(net.node[1].n_rx, 1);
}

/* A CM message that node 0 would have sent, but from that LID. */
static void mad_from(uint16_t lid, const struct ddps_cm_mad *m)
{
	uint8_t octets[DDPS_CM_MAD_LEN];

	cr_assert_eq(ddps_cm_mad_encode(octets, m), 0);
	ddps_ipoib_if_up()->mad(net.node[1].f, lid, octets, sizeof(octets),
				ddps_ipoib_sim_now(net.sim));
	ddps_ipoib_sim_touch(net.sim, 1);
}

/* In the name of the peer: nothing ends, but its path is looked at.  From the peer it counts. */
MoveTest(contact_35_messages_of_another_lid, "")
{
	struct ddps_cm_mad m;
	uint64_t ended, moved;

	make_moving_pair(RC);
	net_run(&net, 2 * SEC);
	cr_assert_eq(net_conns(&net, 1), 1);
	ddps_cm_mad_init(&m, DDPS_CM_REJ, 1);
	m.u.rej.local_id = net.node[0].last_req.u.req.local_id;
	m.u.rej.reason = DDPS_CM_REJ_TIMEOUT;
	m.u.rej.info_len = 8;
	for (unsigned i = 0; i < 8; i++)
		m.u.rej.ari[i] = (uint8_t)(net.node[0].cfg.ca_guid >> (56 - 8 * i));
	ended = net_stats(&net, 1)->conn_down;
	moved = net_stats(&net, 1)->path_moved;
	mad_from(99, &m);
	net_run(&net, 2 * SEC);
	cr_expect_eq(net_stats(&net, 1)->conn_down, ended);
	cr_expect_eq(net_stats(&net, 1)->path_moved, moved, "it is where it was");
	cr_expect_eq(both_ways(100 * MS), 2);
	mad_from(1, &m);
	net_run(&net, SEC);
	cr_expect_eq(net_stats(&net, 1)->conn_down, ended + 1);
}

/* The queue pair fails, the path is asked for, another connection leads to the new place. */
MoveTest(a_connection_to_the_old_place_fails, "4755-3.4-1")
{
	struct ddps_ipoib_if_conn_info info;

	make_moving_pair(RC);
	net_run(&net, 2 * SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	move_to_lid(1, MOVED);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 500 * MS);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	net_run(&net, SEC);
	cr_expect_eq(both_ways(SEC), 2);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net_conns(&net, 1), 1);
	net_run(&net, 60 * SEC);
	cr_expect_eq(net_conns(&net, 0), 1);
	for (unsigned nr = 0; ddps_ipoib_if_conn_info(net.node[0].f, nr, &info) >= 0; nr++)
		cr_expect_eq(net.node[0].last_req.u.req.primary.remote_lid, MOVED);
}

/* A REQ from the new place: its connection goes there immediately, and stays when the path is known. */
MoveTest(a_req_from_another_lid, "4755-3.3-4")
{
	make_moving_pair(0);
	net_kill(&net, 0);
	net_kill(&net, 1);
	net.node[0].cfg.me.addr.flags = net.node[1].cfg.me.addr.flags = RC;
	net.node[0].cfg.me.rx_mtu = net.node[1].cfg.me.rx_mtu = RX_MTU_CM;
	net.node[0].cfg.passive = true; /* it waits to be asked */
	net_start_all(&net);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, 2 * SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	move_to_lid(1, MOVED);
	net_kill(&net, 1); /* its connection is gone, its address is the same */
	net_start(&net, 1);
	net_run(&net, 10 * MS);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, 100 * MS);
	net.node[0].n_rx = net.node[1].n_rx = 0;
	cr_expect_eq(both_ways(2 * SEC), 2);
	cr_expect_eq(net_conns(&net, 1), 1);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	cr_expect_eq(net_stats(&net, 1)->conn_down, 0); /* the one that it has asked for */
}

/* It says goodbye from the new place, soon after its path was asked for: that is asked for again. */
MoveTest(a_dreq_from_another_lid, "4755-3.4-1")
{
	net_init(&net, 2, 1, RC);
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 200 * MS);
	cr_assert_eq(net_conns(&net, 0), 1);
	move_to_lid(1, MOVED);
	ddps_ipoib_if_stop(net.node[1].f, ddps_ipoib_sim_now(net.sim));
	ddps_ipoib_sim_touch(net.sim, 1);
	net_run(&net, 20 * MS);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	cr_expect_eq(net_conns(&net, 0), 0);
}

/* Answers from one LID of several that a port has: the path is asked for again, not too often. */
MoveTest(a_port_with_several_lids_costs_little, "")
{
	uint64_t events, rx;

	make_moving_pair(0);
	net_run(&net, 2 * SEC);
	rx = net_stats(&net, 0)->rx_ud;
	events = ddps_ipoib_sim_stats(net.sim)->events;
	for (unsigned i = 0; i < 100; i++) {
		datagram_from(3);
		net_run(&net, 10 * MS);
	}
	/* after 0, 125, 250 and 500 ms: an answer and two timers each */
	cr_expect_leq(ddps_ipoib_sim_stats(net.sim)->events - events, 16);
	events = ddps_ipoib_sim_stats(net.sim)->events;
	for (unsigned i = 0; i < 200; i++) {
		datagram_from(3);
		net_run(&net, 10 * MS);
	}
	cr_expect_leq(ddps_ipoib_sim_stats(net.sim)->events - events, 12); /* once a second */
	cr_expect_eq(net_stats(&net, 0)->path_moved, 0);
	cr_expect_eq(net_stats(&net, 0)->rx_ud - rx, 300);
}

/* The administration does not know yet that it has moved when it is seen there first. */
MoveTest(the_administration_knows_later, "4755-3.4-1")
{
	make_moving_pair(0);
	datagram_from(MOVED);
	net_run(&net, 200 * MS);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 0);
	move_to_lid(1, MOVED);
	datagram_from(MOVED);
	net_run(&net, 100 * MS);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
}

/* Another service level or MTU to the same place: what goes by the old one ends, and is informed of it. */
MoveTest(another_service_level, "")
{
	struct ddps_ipoib_path path = { .addr = 2,
					.slid = 1,
					.dlid = 2,
					.sl = 3,
					.rate = 3,
					.mtu = 4,
					.life = 5,
					.hop_limit = 1 };
	const struct ddps_ipoib_up *up = ddps_ipoib_if_up();
	const uint8_t *gid = net.node[1].cfg.me.addr.gid;

	make_moving_pair(RC);
	net_run(&net, 2 * SEC);
	cr_assert_eq(net_conns(&net, 0), 1);
	up->path(net.node[0].f, gid, &path, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_conns(&net, 0), 0);
	net_run(&net, SEC);
	cr_expect_eq(net_conns(&net, 1), 0);
	cr_expect_eq(both_ways(SEC), 2);
	if (net.node[0].reqs > 1)
		cr_expect_eq(net.node[0].last_req.u.req.primary.sl, 3);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	path.rate = 4; /* what is there goes on */
	path.life = 6;
	up->path(net.node[0].f, gid, &path, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	path.mtu = 3;
	up->path(net.node[0].f, gid, &path, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_stats(&net, 0)->path_moved, 2);
}

/* The port says that the subnet has changed: paths are asked for when they are used. */
MoveTest(the_subnet_has_changed, "")
{
	make_moving_pair(0);
	net_run(&net, 2 * SEC);
	move_to_lid(1, MOVED);
	ddps_ipoib_if_up()->link(net.node[0].f, true, ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_stats(&net, 0)->path_moved, 0);
	net_send4(&net, 0, 1, 100, true); /* lost */
	net_run(&net, 10 * MS);
	cr_expect_eq(net_stats(&net, 0)->path_moved, 1);
	net.node[1].n_rx = 0;
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 10 * MS);
	cr_expect_eq(net.node[1].n_rx, 1);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP);
}

/* The administration has no answer: the path of before serves on. */
MoveTest(no_answer_changes_nothing, "")
{
	make_moving_pair(RC);
	net_run(&net, 2 * SEC);
	ddps_ipoib_if_up()->link(net.node[0].f, true, ddps_ipoib_sim_now(net.sim));
	net_send4(&net, 0, 1, 100, true);
	ddps_ipoib_if_up()->path(net.node[0].f, net.node[1].cfg.me.addr.gid, NULL,
				 ddps_ipoib_sim_now(net.sim));
	net_run(&net, 10 * MS);
	cr_expect_eq(net.node[1].n_rx, 2);
	cr_expect_eq(both_ways(SEC), 2);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net_stats(&net, 0)->conn_down, 0);
}

/* The broadcast group is joined anew with another MTU, as after a subnet manager's restart. */
MoveTest(another_link_mtu, "4391-5-3")
{
	static const uint8_t broadcast[16] = { 0xff, 0x12,	  0x40, 0x1b, 0xff,
					       0xff, [12] = 0xff, 0xff, 0xff, 0xff };
	struct ddps_ipoib_if_nbr_info info;

	make_moving_pair(0);
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_eq(info.mtu, 2044);
	ddps_ipoib_if_up()->joined(net.node[0].f, broadcast, 0, 4096, ddps_ipoib_sim_now(net.sim));
	cr_assert(net_nbr(&net, 0, 1, false, &info));
	cr_expect_eq(info.mtu, 4092);
}

/* With what is sent to groups: solicitations. */
static unsigned pass_ip6(unsigned from, unsigned to)
{
	const uint64_t was = net.node[to].n_rx;

	net_send6(&net, from, to, 100);
	net_send4(&net, from, to, 100, true);
	net_run(&net, 5 * SEC);
	return (unsigned)(net.node[to].n_rx - was);
}

static void join_all_at(uint32_t link_mtu)
{
	const uint8_t mgid[16] = {
		0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff
	};

	for (unsigned i = 0; i < net.n; i++)
		ddps_ipoib_if_up()->joined(net.node[i].f, mgid, 0, link_mtu,
					   ddps_ipoib_sim_now(net.sim));
	net_run(&net, SEC);
}

/* Joined anew with another MTU while it is up, as after a restart of the subnet administration. */
MoveTest(contact_35_ipv6_comes_and_goes_with_the_mtu_of_the_link, "4755-5-1 4391-5-3")
{
	static const uint8_t more[16] = { 0xfd, 9, [15] = 7 };

	make_moving_pair(RC);
	net_run(&net, SEC);
	cr_assert_eq(pass_ip6(0, 1), 2);
	for (unsigned round = 0; round < 3; round++) {
		join_all_at(1024);
		cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP);
		net_run(&net, 200 * SEC); /* what was known of the neighbour is forgotten */
		cr_expect_eq(pass_ip6(0, 1), 1, "IPv4");
		cr_assert_eq(ddps_ipoib_if_address(net.node[1].f, true, more, 64, round % 2,
						   ddps_ipoib_sim_now(net.sim)),
			     0);
		join_all_at(2048);
		cr_expect_eq(pass_ip6(0, 1), 2, "IPv6 is back");
		cr_expect_eq(pass_ip6(1, 0), 2);
	}
	cr_expect_eq(net_stats(&net, 0)->join_failed, 0);
}

/* One that has nothing else goes down with it, and comes back. */
MoveTest(contact_35_a_link_that_becomes_too_narrow_for_all_is_down, "4755-5-1")
{
	net_init(&net, 2, 1, RC);
	net.node[0].cfg.has_ip4 = net.node[1].cfg.has_ip4 = false;
	net_start_all(&net);
	net_run(&net, SEC);
	for (unsigned i = 0; i < 2; i++)
		ddps_ipoib_sim_plug(net.sim, i, false);
	join_all_at(1024);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_JOINING);
	cr_expect_eq(net_stats(&net, 0)->join_failed, 1);
	for (unsigned i = 0; i < 2; i++)
		ddps_ipoib_sim_plug(net.sim, i, true);
	net_run(&net, 5 * SEC);
	cr_expect_eq(ddps_ipoib_if_state(net.node[0].f), DDPS_IPOIB_IF_UP);
	net_send6(&net, 0, 1, 100);
	net_run(&net, SEC);
	cr_expect_eq(net.node[1].n_rx, 1);
}

/* Everybody moves, time and again; in the end everybody finds everybody. */
MoveTest(all_of_them_move, "")
{
	net_init(&net, 6, 7, RC);
	net_start_all(&net);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 6; i++)
			for (unsigned k = 0; k < 6; k++)
				if (i != k)
					net_send4(&net, i, k, 100, true);
		net_run(&net, 3 * SEC);
		if (round < 10)
			move_to_lid((unsigned)ddps_ipoib_sim_random(net.sim, 6),
				    (uint16_t)(100 + round));
	}
	for (unsigned i = 0; i < 6; i++)
		net.node[i].n_rx = 0;
	for (unsigned i = 0; i < 6; i++)
		for (unsigned k = 0; k < 6; k++)
			if (i != k)
				net_send4(&net, i, k, 100, true);
	net_run(&net, SEC);
	for (unsigned i = 0; i < 6; i++) {
		cr_expect_eq(net.node[i].n_rx, 5, "node %u has %lu", i,
			     (unsigned long)net.node[i].n_rx);
		cr_expect_eq(net_conns(&net, i), 5);
	}
}
