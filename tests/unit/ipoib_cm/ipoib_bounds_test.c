/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers can make an interface hold has a bound, and a counter that reports it. */
#include <criterion/criterion.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_net_fixture.h"

static struct net net;

static void fini(void)
{
	net_fini(&net);
}

static unsigned neighbours(unsigned node)
{
	struct ddps_ipoib_if_nbr_info info;
	unsigned n = 0;
	int r;

	for (unsigned nr = 0; (r = ddps_ipoib_if_nbr_info(net.node[node].f, nr, &info)) >= 0; nr++)
		n += r > 0;
	return n;
}

Test(ipoib_bounds, neighbours_that_do_not_answer_leave_no_room, .fini = fini)
{
	net_init(&net, 4, 1, 0);
	net.node[0].cfg.max_nbr = 2;
	net_start(&net, 0);
	net_start(&net, 3);
	net_run(&net, 10 * MS);
	net_send4(&net, 0, 1, 100, true); /* nobody is there */
	net_send4(&net, 0, 2, 100, true);
	cr_expect_eq(net_stats(&net, 0)->nbr_full, 0);
	net_send4(&net, 0, 3, 100, true);
	cr_expect_eq(net_stats(&net, 0)->nbr_full, 1);
	cr_expect_eq(net_stats(&net, 0)->tx_unreachable, 1);
	net_run(&net, 60 * SEC); /* they have failed, and make room */
	net_send4(&net, 0, 3, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net.node[3].n_rx, 1);
	cr_expect_eq(net_stats(&net, 0)->nbr_full, 1);
	cr_expect_leq(neighbours(0), 2);
}

Test(ipoib_bounds, many_that_send_make_no_more_neighbours, .fini = fini)
{
	net_init(&net, 12, 1, 0);
	net.node[0].cfg.max_nbr = 3;
	net_start_all(&net);
	for (unsigned i = 1; i < 12; i++) {
		net_send4(&net, i, 0, 100, true);
		net_run(&net, SEC);
		cr_expect_leq(neighbours(0), 3);
	}
	cr_expect_eq(net.node[0].n_rx, 11, "whom it has no room for can reach it all the same");
	cr_expect_eq(neighbours(0), 3);
}

Test(ipoib_bounds, queue_pairs_are_limited, .fini = fini)
{
	net_init(&net, 6, 1, DDPS_IPOIB_RC);
	net.node[0].cfg.max_qps = 2;
	net_start_all(&net);
	for (unsigned i = 1; i < 6; i++) {
		net_send4(&net, i, 0, 100, true);
		net_run(&net, SEC);
		cr_expect_leq(net_conns(&net, 0), 2);
	}
	cr_expect_eq(net_conns(&net, 0), 2);
	cr_expect_geq(net_stats(&net, 0)->req_refused, 3);
	cr_expect_eq(net.node[0].n_rx, 5, "the others are served by datagrams");
}

/* What is over at both ends makes room, however long its timewait: for peers, and for us. */
Test(ipoib_bounds, connections_that_are_over_go_for_others, .fini = fini)
{
	struct ddps_cm_conn *c;

	net_init(&net, 5, 1, DDPS_IPOIB_RC);
	net.node[0].cfg.max_qps = 2;
	for (unsigned i = 0; i < 5; i++)
		net.node[i].cfg.idle_ns = SEC;
	net_start_all(&net);
	for (unsigned round = 0; round < 2; round++) {
		net_send4(&net, round ? 0 : 1, round ? 3 : 0, 100, true);
		net_send4(&net, round ? 0 : 2, round ? 4 : 0, 100, true);
		net_run(&net, SEC / 2);
		cr_expect_eq(net_conns(&net, 0), 2, "round %u", round);
		LIST_FOREACH(c, &net.node[0].f->cm->conns, of_all)
			c->timewait_ns = 3600 * (uint64_t)SEC;
		net_run(&net, 10 * SEC);
		cr_expect_eq(net_conns(&net, 0), 0);
		cr_expect_eq(net.node[0].f->cm->n_conns, 2, "in timewait");
	}
	net_send4(&net, 1, 0, 100, true);
	net_send4(&net, 2, 0, 100, true);
	net_run(&net, SEC / 2);
	cr_expect_eq(net_conns(&net, 0), 2);
	cr_expect_eq(net_stats(&net, 0)->req_refused, 0);
}

Test(ipoib_bounds, octets_that_wait_are_limited, .fini = fini)
{
	net_init(&net, 4, 1, 0);
	net.node[0].cfg.queue_octets = 1000;
	net_start(&net, 0);
	net_run(&net, 10 * MS);
	net_send4(&net, 0, 1, 600, true);
	net_send4(&net, 0, 2, 600, true);
	cr_expect_eq(net_stats(&net, 0)->tx_queue_full, 1, "of all neighbours together");
	net_send4(&net, 0, 3, 400, true);
	cr_expect_eq(net_stats(&net, 0)->tx_queue_full, 1, "to the last octet");
	net_send4(&net, 0, 3, 60, true);
	cr_expect_eq(net_stats(&net, 0)->tx_queue_full, 2);
	net_run(&net, 60 * SEC); /* given up: nothing waits */
	net_send4(&net, 0, 1, 1000, true);
	cr_expect_eq(net_stats(&net, 0)->tx_queue_full, 2);
}

Test(ipoib_bounds, packets_that_wait_for_one_neighbour_are_limited, .fini = fini)
{
	net_init(&net, 2, 1, 0);
	net_start(&net, 0);
	net_run(&net, 10 * MS);
	for (unsigned i = 0; i < 10; i++)
		net_send4(&net, 0, 1, 100 + i, true);
	cr_expect_eq(net_stats(&net, 0)->tx_queue_full, 2);
	net_start(&net, 1);
	net_run(&net, 5 * SEC);
	cr_expect_eq(net.node[1].n_rx, 8);
}

/*
 * REQs of neighbours that there are not, all of them from one address: GUID, GID and QPNs are what
 * the sender says, and so is that nobody need hear from it for minutes.  Others have places all
 * the same, and what it has taken comes back.
 */
Test(ipoib_bounds, attack_17_neighbours_of_one_address_leave_room_for_others, .fini = fini)
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct ddps_cm_mad m;

	net_init(&net, 3, 1, DDPS_IPOIB_RC);
	net.node[0].cfg.max_qps = net.node[0].cfg.max_peers = 32;
	net_start_all(&net);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, SEC);
	m = net.node[1].last_req;
	m.u.req.max_cm_retries = 15;
	m.u.req.local_cm_timeout = 31;
	for (unsigned i = 0; i < 200; i++) {
		m.u.req.local_id++;
		m.u.req.qpn++;
		m.u.req.ca_guid += 0x100;
		m.u.req.primary.local_gid[9] = (uint8_t)(i + 1);
		cr_assert_eq(ddps_cm_mad_encode(mad, &m), 0);
		ddps_ipoib_if_up()->mad(net.node[0].f, 77, mad, sizeof(mad),
					ddps_ipoib_sim_now(net.sim));
	}
	cr_expect_eq(ddps_ipoib_if_cm_stats(net.node[0].f)->over_share, 200 - 16);
	net_send4(&net, 2, 0, 100, true);
	net_run(&net, SEC);
	cr_expect_eq(net_conns(&net, 2), 1);
	net_run(&net, HOUR);
	m.u.req.local_id++;
	m.u.req.qpn++;
	cr_assert_eq(ddps_cm_mad_encode(mad, &m), 0);
	ddps_ipoib_if_up()->mad(net.node[0].f, 77, mad, sizeof(mad), ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(ddps_ipoib_if_cm_stats(net.node[0].f)->over_share, 200 - 16);
}
