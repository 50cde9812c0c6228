/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of a RoCE adapter: no LIDs, no subnet administration, GIDs only. */
#include "ib_verbs_fixture.h"

Test(ib_verbs_roce, a_gid_of_version_2_is_taken, .init = init_roce, .fini = fini)
{
	const struct ddps_ib_verbs_info *info;

	cr_assert_eq(try_open_ib_verbs(0), 0, "%s", why);
	info = ddps_ib_verbs_info(peer[0].v);
	cr_expect(info->roce && info->active);
	cr_expect_eq(info->gid_index, 2, "neither version 1 nor an IPv4 one");
	cr_expect_eq(info->gid[15], 0x10);
	cr_expect(!info->lid && !info->sm_lid && !info->lmc);
	cr_expect_eq(peer[0].v->sa_agent, -1, "there is nobody to ask");
}

Test(ib_verbs_roce, interfaces_talk, .init = init_roce, .fini = fini)
{
	struct fake_qp *q;

	connect_two_interfaces();
	q = conn(0);
	cr_expect(q->attr.ah_attr.is_global);
	cr_expect_eq(q->attr.ah_attr.grh.sgid_index, 2);
	cr_expect_eq(q->attr.ah_attr.grh.hop_limit, 1);
	cr_expect_eq(memcmp(q->attr.ah_attr.grh.dgid.raw, fake[1].gid.raw, 16), 0);
	cr_expect_eq(fake[0].last_to.grh_present, 1);
	cr_expect_eq(fake[0].last_to.gid_index, 2);
	send_ib_verbs_ip(1, 0, 40000);
	UNTIL(peer[0].n_rx == 1);
	cr_expect_eq(peer[0].len, 40000);
	cr_expect_eq(count_ib_verbs(0, "sac_unanswered") + count_ib_verbs(0, "sac_bad") +
			     count_ib_verbs(0, "rx_bad"),
		     0);
	cr_expect_gt(fake_in_groups, 2, "broadcast, all hosts of each");
}

/* Queue pairs of two nodes have one number here: only the own GID says that a datagram is the own. */
Test(ib_verbs_roce, a_queue_pair_of_the_same_number_is_somebody_else, .init = init_roce,
     .fini = fini)
{
	two_up();
	cr_assert_eq(ddps_ib_verbs_info(peer[0].v)->qpn, ddps_ib_verbs_info(peer[1].v)->qpn);
	send_ib_verbs_ip(0, 1, 200);
	UNTIL(peer[1].n_rx == 1);
	cr_expect_gt(count_ib_verbs(0, "ud_own"), 0, "what it sends to a group comes back to it");
	cr_expect_gt(count_ib_verbs(0, "ud_rx"), 0, "and what the other one sends is taken");
}

Test(ib_verbs_roce, the_link_is_what_the_configuration_says, .init = init_roce, .fini = fini)
{
	two_up();
	cr_expect_eq(fake_qp_of(0, ddps_ib_verbs_info(peer[0].v)->qpn)->attr.qkey, 0x0b1b);
	cr_expect_eq(peer[0].v->link.mtu & 0x3f, 5, "the port's");
	link_mtu = 3;
	link_qkey = 0x1234;
	make_ib_verbs(2);
	UNTIL(is_ib_verbs_up(2));
	cr_expect_eq(fake_qp_of(2, ddps_ib_verbs_info(peer[2].v)->qpn)->attr.qkey, 0x1234);
	cr_expect_eq(peer[2].v->link.mtu & 0x3f, 3);
	link_mtu = 0;
	link_qkey = 0;
}

static void expect_ib_verbs_roce_refused(const struct ddps_ib_verbs_config *c, int err,
					 const char *what, const char *advice)
{
	cr_expect_eq(ddps_vport_new(&peer[0].v, c, &fake_lib, why, sizeof why), err, "%s", why);
	cr_expect(strstr(why, what) && strstr(why, advice), "%s", why);
}

Test(ib_verbs_roce, each_refusal_says_what_to_try, .init = init_roce, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);
	struct ddps_verbs_lib old = fake_lib;

	c.device = NULL;
	fake_devices = 1;
	expect_ib_verbs_roce_refused(&c, DDPS_E_UNSUPPORTED,
				     "no port with an InfiniBand link layer", "name this one");
	c.port = 1;
	expect_ib_verbs_roce_refused(&c, DDPS_E_UNSUPPORTED, "no InfiniBand link layer",
				     "name this device");
	c = make_ib_verbs_config(0);
	fake[0].dev.transport_type = IBV_TRANSPORT_IWARP;
	expect_ib_verbs_roce_refused(&c, DDPS_E_UNSUPPORTED, "no port with an InfiniBand",
				     "iWARP has no datagrams");
	c.port = 1;
	expect_ib_verbs_roce_refused(&c, DDPS_E_UNSUPPORTED, "iWARP cannot", "ibv_devinfo");
	c.port = 0;
	fake[0].dev.transport_type = IBV_TRANSPORT_IB;
	c.gid_index = 1;
	expect_ib_verbs_roce_refused(&c, DDPS_E_ADDRESS, "GID 1", "gid_attrs/types");
	c.gid_index = 0;
	c.mtu = 5;
	fake[0].port.active_mtu = IBV_MTU_1024;
	expect_ib_verbs_roce_refused(&c, DDPS_E_INVAL, "4096 octets", "MTU of the network device");
	c.mtu = 0;
	fake[0].port.state = IBV_PORT_DOWN;
	expect_ib_verbs_roce_refused(&c, DDPS_E_STATE, "is down", "cable");
	fake[0].port.state = IBV_PORT_INIT;
	expect_ib_verbs_roce_refused(&c, DDPS_E_STATE, "not active", "ip link");
	fake[0].port.state = IBV_PORT_ACTIVE;
	fake[0].gid.raw[0] = 0x20;
	expect_ib_verbs_roce_refused(&c, DDPS_E_ADDRESS, "link-local", "IPv6");
	old.query_gid_ex = NULL;
	cr_expect_eq(ddps_vport_new(&peer[0].v, &c, &old, why, sizeof why), DDPS_E_UNSUPPORTED);
	cr_expect(strstr(why, "rdma-core 34"), "%s", why);
}

Test(ib_verbs_roce, a_global_address_if_asked_for, .init = init_roce, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	c.gid_index = 3;
	cr_assert_eq(ddps_vport_new(&peer[0].v, &c, &fake_lib, why, sizeof why), 0, "%s", why);
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->gid[0], 0x20);
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->gid_index, 3);
}

Test(ib_verbs_roce, of_infiniband_the_subnet_says_the_link, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	c.qkey = 0x1234;
	expect_ib_verbs_roce_refused(&c, DDPS_E_INVAL, "its subnet says", "without these");
	c.qkey = 0;
	c.mtu = 4;
	expect_ib_verbs_roce_refused(&c, DDPS_E_INVAL, "its subnet says", "without these");
	c.mtu = 6;
	cr_expect_eq(ddps_ib_verbs_new(&peer[0].v, &c, why, sizeof why), DDPS_E_INVAL);
}

Test(ib_verbs_roce, a_network_device_that_joins_no_group, .init = init_roce, .fini = fini)
{
	make_ib_verbs(0);
	fake[0].fail = "netdev_group";
	fake[0].fail_errno = ENODEV;
	UNTIL(peer[0].join_err);
	cr_expect_eq(peer[0].join_err, DDPS_E_SYSTEM);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "does not attach to group ff12:401b"), "%s",
		  ddps_ib_verbs_why(peer[0].v));
	fake[0].fail = NULL;
	UNTIL(is_ib_verbs_up(0)); /* asked for again */
}

Test(ib_verbs_roce, an_adapter_that_does_not_attach_leaves_no_group, .init = init_roce,
     .fini = fini)
{
	make_ib_verbs(0);
	fake[0].fail = "attach_mcast";
	fake[0].fail_errno = ENOMEM;
	UNTIL(peer[0].join_err);
	cr_expect_eq(fake_in_groups, 0);
	fake[0].fail = NULL;
}

/* A MAD without a GRH cannot be answered; nor is it. */
Test(ib_verbs_roce, who_has_no_gid_gets_no_answer, .init = init_roce, .fini = fini)
{
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1 };
	struct vp_way w = { .dlid = 5 };
	ddps_cm_addr to;

	two_up();
	to = ddps_vport_addr(peer[0].v, &w, 0);
	cr_expect_eq(peer[0].v->port.ops->mad_send(&peer[0].v->port, to, mad), DDPS_E_ADDRESS);
}

Test(ib_verbs_roce, a_gid_that_goes_is_the_end, .init = init_roce, .fini = fini)
{
	connect_two_interfaces();
	fake_event(0, IBV_EVENT_GID_CHANGE, NULL);
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_link, 0, "it is still there");
	fake[0].gid.raw[9] = 7;
	fake_event(0, IBV_EVENT_GID_CHANGE, NULL);
	UNTIL(peer[0].n_link == 1);
	cr_expect(!peer[0].link);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "another GID"));
	fake[0].gid.raw[9] = 0;
}
