/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of an adapter: what it finds when it is opened, its keys, and what it says when it cannot. */
#include "ib_verbs_fixture.h"

Test(ib_verbs, says_what_it_has_found, .init = init, .fini = fini)
{
	const struct ddps_ib_verbs_info *info;
	struct pollfd fds[DDPS_IB_VERBS_FDS];

	fake[1].port.lmc = 2;
	cr_assert_eq(try_open_ib_verbs(1), 0, "%s", why);
	info = ddps_ib_verbs_info(peer[1].v);
	cr_expect_str_eq(info->device, "fake1");
	cr_expect_eq(info->port, 1);
	cr_expect_eq(info->lid, 16);
	cr_expect_eq(info->lmc, 2);
	cr_expect_eq(info->sm_lid, FAKE_SA_LID);
	cr_expect_eq(info->mtu, 5);
	cr_expect_eq(info->pkey, 0xffff);
	cr_expect_eq(info->node_guid, 0x1001);
	cr_expect_eq(info->gid[15], 0x11);
	cr_expect(info->active);
	cr_expect(fake_qp_of(1, info->qpn));
	cr_expect_str_eq(ddps_ib_verbs_why(peer[1].v), "");
	ddps_ib_verbs_fds(peer[1].v, fds);
	for (unsigned i = 0; i < DDPS_IB_VERBS_FDS; i++) {
		cr_expect_geq(fcntl(fds[i].fd, F_GETFL), 0);
		cr_expect(fcntl(fds[i].fd, F_GETFL) & O_NONBLOCK, "descriptor %u would block", i);
		cr_expect_eq(fds[i].events, POLLIN);
	}
	cr_expect_eq(ddps_ib_verbs_deadline(peer[1].v), DDPS_CM_NEVER, "nothing is asked yet");
}

static void expect_ib_verbs_open_refusal(int err, const char *what, const char *advice)
{
	cr_expect_eq(try_open_ib_verbs(0), err, "%s", why);
	cr_expect(strstr(why, what), "'%s' says nothing of '%s'", why, what);
	cr_expect(strstr(why, advice), "'%s' does not advise '%s'", why, advice);
	cr_expect_null(peer[0].v);
}

Test(ib_verbs, no_device, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	fake_devices = 0;
	c.device = NULL;
	cr_expect_eq(ddps_vport_new(&peer[0].v, &c, &fake_lib, why, sizeof(why)),
		     DDPS_E_UNSUPPORTED);
	cr_expect(strstr(why, "no RDMA device") && strstr(why, "--port ib"), "%s", why);
	fake_devices = FAKES;
	c.device = "fake0";
	c.port = 2;
	cr_expect_eq(ddps_vport_new(&peer[0].v, &c, &fake_lib, why, sizeof(why)),
		     DDPS_E_UNSUPPORTED);
	cr_expect(strstr(why, "no port 2") && strstr(why, "ibv_devinfo"), "%s", why);
	c.device = "mlx5_9";
	cr_expect_eq(ddps_vport_new(&peer[0].v, &c, &fake_lib, why, sizeof(why)),
		     DDPS_E_UNSUPPORTED);
	cr_expect(strstr(why, "no device 'mlx5_9'"), "%s", why);
}

Test(ib_verbs, the_first_infiniband_port_is_taken, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	fake[0].port.link_layer = IBV_LINK_LAYER_ETHERNET;
	c.device = NULL;
	cr_assert_eq(ddps_vport_new(&peer[0].v, &c, &fake_lib, why, sizeof(why)), 0, "%s", why);
	cr_expect_str_eq(ddps_ib_verbs_info(peer[0].v)->device, "fake1");
}

Test(ib_verbs, each_refusal_says_what_to_try, .init = init, .fini = fini)
{
	struct ibv_port_attr good = fake[0].port;

	fake[0].port.link_layer = IBV_LINK_LAYER_ETHERNET;
	fake[0].dev.transport_type = IBV_TRANSPORT_IWARP;
	expect_ib_verbs_open_refusal(DDPS_E_UNSUPPORTED, "InfiniBand link layer", "another device");
	fake[0].port = good;
	fake[0].port.state = IBV_PORT_DOWN;
	expect_ib_verbs_open_refusal(DDPS_E_STATE, "is down", "cable");
	fake[0].port.state = IBV_PORT_INIT;
	expect_ib_verbs_open_refusal(DDPS_E_STATE, "subnet manager", "opensm");
	fake[0].port = good;
	fake[0].port.sm_lid = 0;
	expect_ib_verbs_open_refusal(DDPS_E_STATE, "without a subnet manager", "opensm");
	fake[0].port = good;
	fake[0].pkey[0] = 0x8001;
	expect_ib_verbs_open_refusal(DDPS_E_ADDRESS, "P_Key 0xffff", "partitions");
	fake[0].pkey[0] = 0xffff;
	fake[0].gid.raw[0] = fake[0].gid.raw[1] = fake[0].gid.raw[15] = 0;
	expect_ib_verbs_open_refusal(DDPS_E_ADDRESS, "no GID with index 0", "ibv_devinfo -v");
}

Test(ib_verbs, each_error_of_the_system_says_what_to_try, .init = init, .fini = fini)
{
	static const struct {
		const char *call;
		int err, expected;
		const char *what, *advice;
	} row[] = {
		{ "open_device", EACCES, DDPS_E_SYSTEM, "cannot be opened",
		  "/dev/infiniband/uverbs" },
		{ "open_device", ENOENT, DDPS_E_SYSTEM, "cannot be opened", "modprobe ib_uverbs" },
		{ "umad_init", ENOENT, DDPS_E_SYSTEM, "no device for MADs", "modprobe ib_umad" },
		{ "umad_open_port", EACCES, DDPS_E_SYSTEM, "no permission",
		  "/dev/infiniband/umad" },
		{ "umad_open_port", ENOENT, DDPS_E_SYSTEM, "no device for MADs",
		  "modprobe ib_umad" },
		{ "umad_register", 0, DDPS_E_BUSY, "ib_cm", "modprobe -r" },
		{ "reg_mr", ENOMEM, DDPS_E_NOMEM, "cannot be registered", "ulimit -l" },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		fake[0].fail = row[i].call;
		fake[0].fail_errno = row[i].err;
		expect_ib_verbs_open_refusal(row[i].expected, row[i].what, row[i].advice);
		if (row[i].expected == DDPS_E_SYSTEM)
			cr_expect_eq(errno, row[i].err, "%s", row[i].call);
	}
	fake[0].fail = NULL;
}

/* Whatever fails while it is opened, nothing is left of it: fake_fini() counts. */
Test(ib_verbs, nothing_is_left_of_one_that_does_not_open, .init = init, .fini = fini)
{
	static const char *const call[] = { "alloc_pd",	     "reg_mr",	     "create_comp_channel",
					    "create_cq",     "create_qp",    "create_srq",
					    "modify_qp",     "query_port",   "query_gid",
					    "umad_register", "req_notify_cq" };

	for (unsigned i = 0; i < sizeof(call) / sizeof(*call); i++) {
		unsigned n = 0;

		for (;; n++) {
			fake[0].fail = call[i];
			fake[0].fail_errno = ENOMEM;
			fake[0].fail_after = n;
			if (!try_open_ib_verbs(0))
				break;
			cr_expect_gt(strlen(why), 10, "%s: '%s'", call[i], why);
			cr_expect_eq(fake[0].n_obj + fake[0].n_mr + fake[0].n_qp, 0, "%s", call[i]);
			cr_assert_lt(n, 20);
		}
		cr_expect_gt(n, 0, "%s was never called", call[i]);
		ddps_ib_verbs_free(peer[0].v);
		peer[0].v = NULL;
	}
}

Test(ib_verbs, configurations_that_cannot_be)
{
	struct ddps_ib_verbs_config c;
	struct ddps_ib_verbs *v;

	ddps_ib_verbs_config_init(&c);
	cr_expect_eq(ddps_ib_verbs_new(&v, &c, why, sizeof(why)), DDPS_E_INVAL, "no up");
	c.up = &up_calls;
	c.pkey = 0x8000;
	cr_expect_eq(ddps_ib_verbs_new(&v, &c, why, sizeof(why)), DDPS_E_INVAL);
	c.pkey = 0xffff;
	c.rx_octets = 1000;
	cr_expect_eq(ddps_ib_verbs_new(&v, &c, why, sizeof(why)), DDPS_E_INVAL);
	c.rx_octets = 1 << 20;
	c.max_qps = 0;
	cr_expect_eq(ddps_ib_verbs_new(&v, &c, why, sizeof(why)), DDPS_E_INVAL);
	c.struct_size = 3;
	cr_expect_eq(ddps_ib_verbs_new(&v, &c, why, sizeof(why)), DDPS_E_INVAL);
	ddps_ib_verbs_free(NULL);
}

Test(ib_verbs, the_q_key_is_the_groups, .init = init, .fini = fini)
{
	fake_sa_stop();
	fake_sa_start(0x1234);
	two_up();
	cr_expect_eq(fake_qp_of(0, ddps_ib_verbs_info(peer[0].v)->qpn)->attr.qkey, 0x1234);
	send_ib_verbs_ip(0, 1, 100);
	UNTIL(peer[1].n_rx == 1);
}

Test(ib_verbs, a_controlled_q_key_needs_a_privilege, .init = init, .fini = fini)
{
	fake_sa_stop();
	fake_sa_start(0x80000b1b);
	make_ib_verbs(0);
	UNTIL(peer[0].join_err);
	cr_expect_eq(peer[0].join_err, DDPS_E_SYSTEM);
	cr_expect(strstr(ddps_ib_verbs_why(peer[0].v), "CAP_NET_RAW"), "%s",
		  ddps_ib_verbs_why(peer[0].v));
	cr_expect_not(is_ib_verbs_up(0));
	fake[0].privileged = true;
	UNTIL(is_ib_verbs_up(0));
}

Test(ib_verbs, p_keys_are_found_in_the_table, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);

	memcpy(fake[0].pkey, (uint16_t[]){ 0x0001, 0x7fff, 0x8001, 0 }, sizeof(fake[0].pkey));
	c.pkey = 0x0001;
	cr_assert_eq(ddps_vport_new(&peer[0].v, &c, &fake_lib, why, sizeof(why)), 0, "%s", why);
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->pkey, 0x8001, "full membership is preferred");
	cr_expect_eq(fake_qp_of(0, ddps_ib_verbs_info(peer[0].v)->qpn)->attr.pkey_index, 2);
	cr_expect_eq(peer[0].v->sa_pkey_index, 1, "the administration is in the default partition");
}
