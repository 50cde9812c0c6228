/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of an adapter, on adapters in memory: interfaces talk, groups, and what an adapter says. */
#include "ib_verbs_fixture.h"

/* ---- talking ---- */

Test(ib_verbs, interfaces_talk, .init = init, .fini = fini)
{
	connect_two_interfaces();
	cr_expect_eq(peer[1].len, 60000);
	send_ib_verbs_ip(1, 0, 60000);
	UNTIL(peer[0].n_rx == 1);
	cr_expect_gt(count_ib_verbs(0, "ud_rx_grh"), 0, "what is for a group has a GRH");
	cr_expect_gt(count_ib_verbs(0, "ud_own"), 0, "a group gives its sender the packet back");
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(count_ib_verbs(i, "rx_bad"), 0);
		cr_expect_eq(count_ib_verbs(i, "mad_bad"), 0);
		cr_expect_eq(count_ib_verbs(i, "ud_failed"), 0);
		cr_expect_gt(peer[i].n_see, 2);
	}
	cr_expect_eq(conn(0)->attr.ah_attr.is_global, 0);
	cr_expect_eq(conn(0)->attr.path_mtu, IBV_MTU_2048, "that of the link, which is less");
	cr_expect_eq(conn(0)->attr.ah_attr.static_rate, 7);
	cr_expect_eq(conn(0)->attr.timeout, 19, "from the packet lifetime");
}

/* ---- unreliable connections ---- */

Test(ib_verbs, unreliable_connections, .init = init, .fini = fini)
{
	struct ddps_ipoib_port *port;
	uint8_t frame[2000] = { 8 };
	uint32_t qpn;

	flags = DDPS_IPOIB_UC;
	connect_two_interfaces();
	cr_expect_eq(conn(0)->init.qp_type, IBV_QPT_UC);
	cr_expect_eq(conn(1)->init.qp_type, IBV_QPT_UC);
	cr_expect_eq(conn(0)->attr.ah_attr.is_global, 0);
	cr_expect_eq(conn(0)->attr.path_mtu, IBV_MTU_2048);
	cr_expect_eq(conn(0)->attr.timeout, 0, "nobody waits for an acknowledgement");
	cr_expect_gt(peer[0].n_see_uc, 0);
	send_ib_verbs_ip(1, 0, 60000);
	UNTIL(peer[0].n_rx == 1);

	/* Nobody is there any more, and nobody says so. */
	port = ddps_ib_verbs_port(peer[0].v);
	qpn = conn(0)->qp.qp_num;
	ddps_ipoib_if_stop(peer[1].f, fake_now);
	while (count_ib_verbs_conns(0))
		turn_ib_verbs();
	cr_expect_eq(peer[0].qp_err, 0);
	cr_expect_eq(port->ops->qp_send(port, qpn, frame, sizeof(frame)), DDPS_E_STATE);
	run_ib_verbs(6 * SEC); /* till what is dying is dead */
	cr_expect_eq(count_ib_verbs(0, "qp_undrained"), 0);
}

/* A message that is longer than this end has offered: RC ends, UC loses it. */
Test(ib_verbs, what_is_too_long_is_lost_on_unreliable_connections, .init = init, .fini = fini)
{
	struct ddps_ipoib_port *port;
	static uint8_t frame[VP_MSG_LEN];

	flags = DDPS_IPOIB_UC;
	connect_two_interfaces();
	port = ddps_ib_verbs_port(peer[0].v);
	cr_assert_eq(port->ops->qp_send(port, conn(0)->qp.qp_num, frame, sizeof(frame)), 0);
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(1, "rx_bad"), 1);
	cr_expect_eq(peer[1].qp_err, 0);
	cr_expect_eq(count_ib_verbs_conns(1), 1);
	peer[1].n_rx = 0;
	send_ib_verbs_ip(0, 1, 60000);
	UNTIL(peer[1].n_rx == 1);
}

Test(ib_verbs, an_adapter_without_them_sends_datagrams, .init = init, .fini = fini)
{
	flags = DDPS_IPOIB_UC;
	fake[0].no_uc = true;
	two_up();
	send_ib_verbs_ip(0, 1, 1000);
	UNTIL(peer[1].n_rx == 1);
	run_ib_verbs(10 * SEC);
	cr_expect_eq(count_ib_verbs_conns(0), 0);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "unreliable"), "%s",
		  ddps_ib_verbs_why(peer[0].v));
	send_ib_verbs_ip(0, 1, 1000);
	UNTIL(peer[1].n_rx == 2);
}

/* [4391-6-6]: the GRH is read with the flag alone; what stands there without it is of nobody. */
Test(ib_verbs, datagrams_with_and_without_a_grh, .init = init, .fini = fini)
{
	uint64_t grh, all;

	flags = 0;
	two_up();
	send_ib_verbs_ip(0, 1, 100);
	UNTIL(peer[1].n_rx == 1);
	grh = count_ib_verbs(1, "ud_rx_grh");
	cr_expect_gt(grh, 0, "ARP is for a group");
	all = count_ib_verbs(1, "ud_rx");
	send_ib_verbs_ip(0, 1, 100); /* the fake writes ones where its GRH would be */
	UNTIL(peer[1].n_rx == 2);
	cr_expect_eq(count_ib_verbs(1, "ud_rx_grh"), grh);
	cr_expect_gt(count_ib_verbs(1, "ud_rx"), all);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(ddps_ipoib_if_stats(peer[i].f)->rx_bad_arp, 0);
}

Test(ib_verbs, hop_limit_above_0_brings_a_grh_everywhere, .init = init, .fini = fini)
{
	fake_hop = 3;
	connect_two_interfaces();
	cr_expect_eq(conn(0)->attr.ah_attr.is_global, 1);
	cr_expect_eq(conn(0)->attr.ah_attr.grh.hop_limit, 3);
	cr_expect_eq(conn(0)->attr.ah_attr.grh.dgid.raw[15], 0x11);
	cr_expect_eq(conn(1)->attr.ah_attr.is_global, 1, "the passive side answers the same way");
	cr_expect_eq(conn(1)->attr.ah_attr.grh.dgid.raw[15], 0x10);
	send_ib_verbs_ip(1, 0, 100);
	UNTIL(peer[0].n_rx == 1);
	ddps_ipoib_if_stop(peer[0].f, fake_now);
	/* its last MAD before those to the administration was the DREQ; its peer's is the DREP */
	UNTIL(count_ib_verbs_conns(1) == 0);
	cr_expect_eq(fake[1].last_to.grh_present, 1, "a MAD with a GRH is answered with one");
	cr_expect_eq(fake[1].last_to.gid[15], 0x10);
}

Test(ib_verbs, source_path_bits_come_from_the_path, .init = init, .fini = fini)
{
	struct ddps_ipoib_port *port;
	struct vp_way w;
	uint16_t pkey;

	fake[0].port.lmc = 3;
	two_up();
	port = ddps_ib_verbs_port(peer[0].v);
	(void)port;
	w = (struct vp_way){ .dlid = 16, .bits = 5, .sl = 3, .rate = 2 };
	cr_assert(ddps_vport_way(peer[0].v, ddps_vport_addr(peer[0].v, &w, 0x7123), &w, &pkey));
	cr_expect_eq(w.dlid, 16);
	cr_expect_eq(w.bits, 5);
	cr_expect_eq(w.sl, 3);
	cr_expect_eq(w.rate, 2);
	cr_expect_eq(pkey, 0x7123);
	cr_expect_not(w.grh);
}

Test(ib_verbs, a_token_of_a_grh_that_was_pushed_out_leads_nowhere, .init = init, .fini = fini)
{
	struct vp_way w = { .dlid = 16, .grh = true, .hop = 9 }, got;
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	struct ddps_ipoib_port *port;
	ddps_cm_addr oldest, newest = 0;
	uint16_t pkey;

	cr_assert_eq(try_open_ib_verbs(0), 0);
	port = ddps_ib_verbs_port(peer[0].v);
	oldest = ddps_vport_addr(peer[0].v, &w, 0);
	cr_expect(ddps_vport_way(peer[0].v, oldest, &got, &pkey));
	cr_expect_eq(got.hop, 9);
	for (unsigned i = 0; i < VP_GRHS; i++) {
		w.gid[0] = (uint8_t)(i >> 8);
		w.gid[1] = (uint8_t)i;
		w.gid[2] = 1;
		newest = ddps_vport_addr(peer[0].v, &w, 0);
	}
	cr_expect_not(ddps_vport_way(peer[0].v, oldest, &got, &pkey));
	cr_expect_eq(port->ops->mad_send(port, oldest, mad), DDPS_E_ADDRESS);
	cr_expect(ddps_vport_way(peer[0].v, newest, &got, &pkey));
	cr_expect_eq(port->ops->mad_send(port, newest, mad), 0);
	cr_expect_eq(port->ops->mad_send(port, 0xc001, mad), DDPS_E_ADDRESS, "an MLID");
}

/* ---- groups ---- */

Test(ib_verbs, groups_are_attached_and_detached, .init = init, .fini = fini)
{
	unsigned n;

	make_ib_verbs(0);
	UNTIL(is_ib_verbs_up(0) && fake[0].n_group == 2); /* broadcast, 224.0.0.1 */
	n = fake[0].n_group;
	cr_expect_eq(n, 2);
	ddps_ipoib_if_stop(peer[0].f, fake_now);
	cr_expect_eq(fake[0].n_group, 0);
}

Test(ib_verbs, an_adapter_that_does_not_attach, .init = init, .fini = fini)
{
	fake[0].fail = "attach_mcast";
	fake[0].fail_errno = ENOMEM;
	make_ib_verbs(0);
	UNTIL(peer[0].join_err);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "does not attach"), "%s",
		  ddps_ib_verbs_why(peer[0].v));
	cr_expect_not(is_ib_verbs_up(0));
	fake[0].fail = NULL;
	UNTIL(is_ib_verbs_up(0)); /* the join is tried again */
}

Test(ib_verbs, an_administration_that_does_not_answer, .init = init, .fini = fini)
{
	fake_sa_stop();
	make_ib_verbs(0);
	UNTIL(peer[0].join_err);
	cr_expect_eq(peer[0].join_err, DDPS_E_TIMEDOUT);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "opensm"), "%s",
		  ddps_ib_verbs_why(peer[0].v));
	fake_sa_start(0x0b1b);
	UNTIL(is_ib_verbs_up(0));
}

Test(ib_verbs, queries_that_came_back_unanswered_are_no_answers, .init = init, .fini = fini)
{
	two_up();
	fake[0].mad[fake[0].n_mad].status = ETIMEDOUT;
	fake[0].mad[fake[0].n_mad].agent = 1;
	fake[0].mad[fake[0].n_mad++].mad[1] = 3;
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(0, "mad_undelivered"), 1);
	cr_expect_eq(count_ib_verbs(0, "sac_bad"), 0);
}

/* ---- events ---- */

Test(ib_verbs, a_port_that_goes_down_and_up, .init = init, .fini = fini)
{
	connect_two_interfaces();
	fake[0].port.state = IBV_PORT_DOWN;
	fake_event(0, IBV_EVENT_PORT_ERR, NULL);
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 1);
	cr_expect_not(peer[0].link);
	cr_expect_not(is_ib_verbs_up(0));
	cr_expect_eq(count_ib_verbs_conns(0), 0);
	cr_expect_not(ddps_ib_verbs_info(peer[0].v)->active);
	run_ib_verbs(3 * SEC);
	cr_expect_not(is_ib_verbs_up(0));
	fake[0].port.state = IBV_PORT_ACTIVE;
	fake_event(0, IBV_EVENT_PORT_ACTIVE, NULL);
	UNTIL(is_ib_verbs_up(0));
	cr_expect(peer[0].link);
	cr_expect_eq(count_ib_verbs(0, "port_down"), 1);
	peer[1].n_rx = 0;
	UNTIL((send_ib_verbs_ip(0, 1, 60000), run_ib_verbs(SEC), peer[1].n_rx));
}

Test(ib_verbs, a_manager_that_forgot_us_is_asked_anew, .init = init, .fini = fini)
{
	static const enum ibv_event_type type[] = { IBV_EVENT_CLIENT_REREGISTER,
						    IBV_EVENT_SM_CHANGE };

	connect_two_interfaces();
	for (unsigned i = 0; i < 2; i++) {
		unsigned joined = peer[0].n_joined;

		fake_sa_stop();
		fake_sa_start(0x0b1b);
		fake_event(0, type[i], NULL);
		UNTIL(peer[0].n_joined >= joined + 2); /* both groups */
		cr_expect_eq(ddps_sa_stats(fake_sa)->sa_groups, 1, "the one that was not there");
	}
	cr_expect_eq(count_ib_verbs(0, "renewed"), 2);
	cr_expect_eq(peer[0].n_link, 2, "told, since paths may be others now");
	cr_expect(peer[0].link);
	cr_expect_eq(count_ib_verbs_conns(0), 1, "connections go on");
	peer[1].n_rx = 0;
	send_ib_verbs_ip(0, 1, 60000);
	UNTIL(peer[1].n_rx == 1);
}

Test(ib_verbs, another_lid_is_another_life, .init = init, .fini = fini)
{
	connect_two_interfaces();
	fake_event(0, IBV_EVENT_LID_CHANGE, NULL); /* the same one */
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 0);
	fake[0].port.lid = 0x40;
	fake_event(0, IBV_EVENT_LID_CHANGE, NULL);
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 2, "down and up");
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->lid, 0x40);
	UNTIL(is_ib_verbs_up(0));
	cr_expect_eq(count_ib_verbs_conns(0), 0, "those of before are gone");
}

Test(ib_verbs, a_p_key_that_moves_or_goes, .init = init, .fini = fini)
{
	uint32_t qpn;

	connect_two_interfaces();
	qpn = ddps_ib_verbs_info(peer[0].v)->qpn;
	fake_event(0, IBV_EVENT_PKEY_CHANGE, NULL); /* of another entry */
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 0);
	memcpy(fake[0].pkey, (uint16_t[]){ 0x8001, 0, 0, 0xffff }, sizeof(fake[0].pkey));
	fake_event(0, IBV_EVENT_PKEY_CHANGE, NULL);
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 2);
	cr_expect_eq(fake_qp_of(0, qpn)->attr.pkey_index, 3);
	cr_expect_eq(count_ib_verbs(0, "ud_rebuilt"), 1);
	UNTIL(is_ib_verbs_up(0));
	fake[0].pkey[3] = 0;
	fake_event(0, IBV_EVENT_PKEY_CHANGE, NULL);
	turn_ib_verbs();
	cr_expect_not(peer[0].link);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "P_Key"), "%s",
		  ddps_ib_verbs_why(peer[0].v));
	fake[0].pkey[1] = 0xffff;
	fake_event(0, IBV_EVENT_PKEY_CHANGE, NULL);
	UNTIL(is_ib_verbs_up(0));
	peer[1].n_rx = 0;
	UNTIL((send_ib_verbs_ip(0, 1, 100), run_ib_verbs(SEC), peer[1].n_rx));
}

Test(ib_verbs, another_gid_or_a_failed_device_is_the_end, .init = init, .fini = fini)
{
	two_up();
	fake_event(0, IBV_EVENT_GID_CHANGE, NULL); /* of another index */
	fake[1].gid.raw[8] ^= 1;
	fake_event(1, IBV_EVENT_GID_CHANGE, NULL);
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 0);
	cr_expect_eq(peer[1].n_link, 1);
	cr_expect(strstr(ddps_ib_verbs_why(peer[1].v), "another GID"), "%s",
		  ddps_ib_verbs_why(peer[1].v));
	fake_event(0, IBV_EVENT_DEVICE_FATAL, NULL);
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 1);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "dmesg"), "%s",
		  ddps_ib_verbs_why(peer[0].v));
}

/* Frames that are seen have the GIDs that are known: of both ends of a group's datagram. */
Test(ib_verbs, contact_35_who_sent_a_datagram, .init = init, .fini = fini)
{
	two_up();
	send_ib_verbs_ip(0, 1, 100);
	UNTIL(peer[1].n_rx == 1);
	cr_expect_arr_eq(peer[0].see_from[1], ddps_ib_verbs_info(peer[0].v)->gid, 16);
	cr_expect_arr_eq(peer[0].see_to[1], ddps_ib_verbs_info(peer[1].v)->gid, 16, "the echo");
	cr_expect_arr_eq(peer[1].see_from[0], ddps_ib_verbs_info(peer[0].v)->gid, 16,
			 "the question");
	cr_expect_eq(peer[1].see_to[0][0], 0xff);
	cr_expect_arr_eq(peer[1].see_from[1], ddps_ib_verbs_info(peer[1].v)->gid, 16, "the answer");
	cr_expect_arr_eq(peer[1].see_to[1], ddps_ib_verbs_info(peer[0].v)->gid, 16);
}
