/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits and wrong arguments of what needs neither a port nor an interface. */
#include <criterion/criterion.h>
#include <string.h>
#include <ddpsess/ib_cm.h>
#include <ddpsess/ipoib_if.h>
#include "ipoib_cm/cm/admit.h"
#include "ipoib_cm/ib/pkt.h"
#include "ipoib_cm/wire/wire.h"
#include "unit/mem_fixture.h"
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_net_fixture.h"

static struct ddps_cm_config make_ipoib_limits_config(unsigned max_conns)
{
	struct ddps_cm_config c;

	ddps_cm_config_init(&c);
	c.max_conns = max_conns;
	return c;
}

Test(ipoib_limits, connections_of_a_manager)
{
	static const struct {
		unsigned n;
		int err;
	} row[] = { { 0, DDPS_E_INVAL }, { 1, 0 }, { 65535, 0 }, { 65536, DDPS_E_INVAL } };

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct ddps_cm_config c = make_ipoib_limits_config(row[i].n);
		struct ddps_cm *cm = NULL;

		cr_expect_eq(ddps_cm_new(&cm, &c), row[i].err, "%u", row[i].n);
		cr_expect_eq(!cm, row[i].err != 0, "unchanged");
		ddps_cm_free(cm);
	}
}

Test(ipoib_limits, memory_of_a_manager)
{
	const struct ddps_cm_config c = make_ipoib_limits_config(8);
	const long live = mem_live();
	unsigned n = 1;

	for (;; n++) {
		struct ddps_cm *cm = NULL;
		int err;

		cr_assert_lt(n, 20);
		mem_fail(n);
		err = ddps_cm_new(&cm, &c);
		if (!mem_failed()) {
			cr_assert_eq(err, 0);
			ddps_cm_free(cm);
			break;
		}
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", n);
		cr_expect_null(cm);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
	}
	cr_expect_eq(n, 7, "itself, four tables, and the timers");
}

/* A packet lifetime above 31 means 31: the REQ waits no longer for it. */
Test(ipoib_limits, lifetimes_of_paths)
{
	const struct ddps_cm_config c = make_ipoib_limits_config(8);
	uint64_t due[2];

	for (unsigned i = 0; i < 2; i++) {
		struct ddps_cm_connect p = { .packet_life = i ? 1000 : 31, .to = 5 };
		struct ddps_cm_outs o;
		struct ddps_cm *cm;
		uint32_t id;

		p.req.transport = DDPS_CM_RC;
		p.req.remote_cm_timeout = p.req.local_cm_timeout = 10;
		cr_assert_eq(ddps_cm_new(&cm, &c), 0);
		cr_assert_eq(ddps_cm_connect(cm, &p, 1, &id, &o), 0);
		due[i] = ddps_cm_deadline(cm);
		cr_expect_eq(ddps_cm_tick(cm, DDPS_CM_NEVER, &o), 0, "that never comes");
		cr_expect_eq(o.n_send + o.n_report, 0);
		ddps_cm_free(cm);
	}
	cr_expect_eq(due[0], due[1]);
}

Test(ipoib_limits, whom_an_interface_admits, .description = "4755-3.1-5")
{
	struct ddps_ipoib_iface me = {
		.addr = { .qpn = 0x48 }, .pkey = 0xffff, .rx_mtu = 2048, .min_mtu = 72
	};
	const struct ddps_ipoib_priv theirs = { .qpn = 0x49, .rx_mtu = 2048 };
	struct ddps_cm_req req = { .transport = DDPS_CM_RC, .pkey = 0xffff };
	struct ddps_ipoib_lladdr peer;
	struct ddps_ipoib_priv priv;

	cr_assert_eq(ddps_ipoib_service_id(&req.service_id, DDPS_IPOIB_SID_RFC, 0x48), 0);
	ddps_ipoib_priv_encode(req.private_data, &theirs);
	cr_expect_eq(ddps_ipoib_admit_req(&me, &req, &peer, &priv), DDPS_CM_REJ_TRANSPORT,
		     "no mode was advertised");
	cr_expect_eq(peer.qpn, 0x49, "filled nevertheless");
	me.addr.flags = DDPS_IPOIB_UC;
	cr_expect_eq(ddps_ipoib_admit_req(&me, &req, &peer, &priv), DDPS_CM_REJ_TRANSPORT);
	me.addr.flags = DDPS_IPOIB_RC;
	cr_expect_eq(ddps_ipoib_admit_req(&me, &req, &peer, &priv), 0);
	req.transport = DDPS_CM_UC;
	cr_expect_eq(ddps_ipoib_admit_req(&me, &req, &peer, &priv), DDPS_CM_REJ_TRANSPORT);
	req.transport = DDPS_CM_RC;
	req.service_id ^= 1; /* of another queue pair */
	cr_expect_eq(ddps_ipoib_admit_req(&me, &req, &peer, &priv), DDPS_CM_REJ_SERVICE_ID);
	req.service_id = 0x7700000000000048; /* of something else */
	cr_expect_eq(ddps_ipoib_admit_req(&me, &req, &peer, &priv), DDPS_CM_REJ_SERVICE_ID);
}

/* What begins with 255 and is not the broadcast address is no group. */
Test(ipoib_limits, groups_of_ip4, .description = "4391-4-6")
{
	uint8_t mgid[DDPS_IPOIB_GID_LEN], all[DDPS_IPOIB_GID_LEN], ip[4];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(all, 0xffff, 2), 0);
	for (unsigned i = 0; i <= 4; i++) {
		memset(ip, 255, 4);
		if (i < 4)
			ip[i] = 254;
		cr_expect_eq(ddps_ipoib_mgid_ipv4(mgid, ip, 0xffff, 2), i < 4 ? DDPS_E_INVAL : 0);
	}
	cr_expect_arr_eq(mgid, all, sizeof(all));
}

Test(ipoib_limits, names_of_attributes)
{
	cr_expect_str_eq(ddps_cm_attr_name(DDPS_CM_APR + 1), "unknown");
	cr_expect_str_eq(ddps_cm_attr_name(DDPS_CM_REQ - 1), "unknown");
	cr_expect_str_neq(ddps_cm_attr_name(DDPS_CM_APR), "unknown");
	cr_expect_str_neq(ddps_cm_attr_name(DDPS_CM_REQ), "unknown");
}

Test(ipoib_limits, an_arp_packet_of_an_address_that_cannot_be)
{
	struct ddps_ipoib_arp arp = { .op = 1, .sender = { .qpn = 1u << 24 } };
	uint8_t octets[DDPS_IPOIB_ARP_LEN];

	cr_expect_neq(ddps_ipoib_arp_encode(octets, &arp), 0);
	arp.sender.qpn = (1u << 24) - 1;
	arp.target.qpn = 1u << 24;
	cr_expect_neq(ddps_ipoib_arp_encode(octets, &arp), 0);
	arp.target.qpn = 0;
	cr_expect_eq(ddps_ipoib_arp_encode(octets, &arp), 0);
}

/* Each bit of the base header goes there and back. */
Test(ipoib_limits, bits_of_a_packet)
{
	for (unsigned i = 0; i < 8; i++) {
		struct ddps_ib_pkt p = { .opcode = DDPS_IB_RC | DDPS_IB_SEND_ONLY,
					 .solicited = i & 1,
					 .migrated = i & 2,
					 .ack_req = i & 4,
					 .pkey = 0xffff,
					 .qpn = 5,
					 .psn = 9 };
		uint8_t b[DDPS_IB_HEAD_MAX + 4] = { 0 };
		size_t len = ddps_ib_pkt_encode(b, &p);
		struct ddps_ib_pkt q;

		cr_assert_eq(ddps_ib_pkt_decode(&q, b, len + 4), 0);
		cr_expect_eq(q.solicited, (i & 1) != 0);
		cr_expect_eq(q.migrated, (i & 2) != 0);
		cr_expect_eq(q.ack_req, (i & 4) != 0);
		cr_expect_eq(q.psn, 9);
	}
}

/* ---- what peers can make an interface hold has a bound, and a counter that reports it ---- */

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

/* ---- an interface that comes up while its host has no memory ---- */

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
