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

/* ---- the port of an adapter: datagrams and connections that fail, and bounds ---- */

/* ---- datagrams that fail ---- */

Test(ib_verbs, a_datagram_that_fails_is_not_the_end, .init = init, .fini = fini)
{
	two_up();
	fake[0].ud_status = IBV_WC_LOC_QP_OP_ERR;
	send_ib_verbs_ip(0, 1, 100); /* its ARP request */
	run_ib_verbs(100 * MS);
	cr_expect_eq(count_ib_verbs(0, "ud_failed"), 1);
	cr_expect_eq(count_ib_verbs(0, "ud_rebuilt"), 1);
	UNTIL((send_ib_verbs_ip(0, 1, 100), run_ib_verbs(SEC), peer[1].n_rx));
}

Test(ib_verbs, a_queue_that_is_full, .init = init, .fini = fini)
{
	struct ddps_ipoib_lladdr to = { .qpn = 5 };
	struct ddps_ipoib_path path = { 0 };
	struct ddps_ipoib_port *port;
	uint8_t frame[100] = { 8 };
	struct vp_way w = { .dlid = 99 };
	unsigned n = 0;

	two_up();
	port = ddps_ib_verbs_port(peer[0].v);
	path.addr = ddps_vport_addr(peer[0].v, &w, 0);
	turn_ib_verbs();
	fake[0].stuck = true;
	while (!port->ops->ud_send(port, &to, &path, frame, sizeof(frame)))
		cr_assert_lt(n++, 1000);
	cr_expect_eq(n, VP_UD_TX);
	cr_expect_eq(count_ib_verbs(0, "tx_full"), 1);
	fake[0].stuck = false;
	fake_event(0, IBV_EVENT_QP_FATAL, &fake_qp_of(0, ddps_ib_verbs_info(peer[0].v)->qpn)->qp);
	turn_ib_verbs();
	cr_expect_eq(port->ops->ud_send(port, &to, &path, frame, sizeof(frame)), 0, "set up anew");
	cr_expect_eq(port->ops->ud_send(port, &to, &path, frame, 2049), DDPS_E_TOO_LONG);
	cr_expect_eq(port->ops->ud_send(port, &to, NULL, frame, sizeof(frame)), DDPS_E_ADDRESS);
	fake[0].fail = "post_send";
	cr_expect_eq(port->ops->ud_send(port, &to, &path, frame, sizeof(frame)), DDPS_E_AGAIN);
	fake[0].fail = NULL;
}

Test(ib_verbs, address_handles_are_bounded, .init = init, .fini = fini)
{
	struct ddps_ipoib_lladdr to = { .qpn = 5 };
	struct ddps_ipoib_path path = { 0 };
	struct ddps_ipoib_port *port;
	uint8_t frame[100] = { 8 };
	unsigned made;

	two_up();
	port = ddps_ib_verbs_port(peer[0].v);
	for (uint16_t i = 0; i < 3 * VP_AHS; i++) {
		struct vp_way w = { .dlid = (uint16_t)(0x100 + i) };

		path.addr = ddps_vport_addr(peer[0].v, &w, 0);
		cr_assert_eq(port->ops->ud_send(port, &to, &path, frame, sizeof(frame)), 0);
		turn_ib_verbs();
	}
	cr_expect_leq(fake[0].n_ah, VP_AHS);
	made = (unsigned)count_ib_verbs(0, "ah_made");
	cr_assert_eq(port->ops->ud_send(port, &to, &path, frame, sizeof(frame)), 0);
	cr_expect_eq(count_ib_verbs(0, "ah_made"), made, "the last one is still there");
	fake[0].fail = "create_ah";
	path.addr = 0x1234;
	cr_expect_eq(port->ops->ud_send(port, &to, &path, frame, sizeof(frame)), DDPS_E_AGAIN);
	fake[0].fail = NULL;
}

/* ---- connections that fail ---- */

static void expect_failure(enum ibv_wc_status status, int err)
{
	struct fake_qp *q = conn(0);

	peer[0].qp_err = 0;
	fake[0].rc_status = status;
	send_ib_verbs_ip(0, 1, 60000);
	UNTIL(peer[0].qp_err);
	cr_expect_eq(peer[0].qp_err, err, "%d for %d", peer[0].qp_err, status);
	cr_expect_eq(peer[0].qp_failed, q->qp.qp_num);
	peer[1].n_rx = 0;
	UNTIL((send_ib_verbs_ip(0, 1, 60000), run_ib_verbs(SEC),
	       peer[1].n_rx)); /* on another one */
}

Test(ib_verbs, connections_that_fail_say_why, .init = init, .fini = fini)
{
	connect_two_interfaces();
	expect_failure(IBV_WC_RETRY_EXC_ERR, DDPS_E_TIMEDOUT);
	expect_failure(IBV_WC_RNR_RETRY_EXC_ERR, DDPS_E_BUSY);
	expect_failure(IBV_WC_REM_INV_REQ_ERR, DDPS_E_PROTOCOL);
	expect_failure(IBV_WC_GENERAL_ERR, DDPS_E_SYSTEM);
	cr_expect_eq(count_ib_verbs(0, "qp_failed"), 4);
}

Test(ib_verbs, an_event_of_the_queue_pair_ends_the_connection, .init = init, .fini = fini)
{
	connect_two_interfaces();
	fake_event(0, IBV_EVENT_QP_REQ_ERR, &conn(0)->qp);
	UNTIL(peer[0].qp_err);
	cr_expect_eq(peer[0].qp_err, DDPS_E_PROTOCOL);
}

Test(ib_verbs, a_message_above_the_receive_mtu_ends_the_connection, .init = init, .fini = fini)
{
	static uint8_t frame[65530] = { 8 };
	struct ddps_ipoib_port *port;

	connect_two_interfaces();
	port = ddps_ib_verbs_port(peer[0].v);
	cr_expect_eq(port->ops->qp_send(port, conn(0)->qp.qp_num, frame, sizeof(frame)), 0);
	UNTIL(peer[1].qp_err);
	cr_expect_eq(peer[1].qp_err, DDPS_E_TOO_LONG);
	cr_expect_eq(port->ops->qp_send(port, conn(0)->qp.qp_num, frame, 65537), DDPS_E_TOO_LONG);
}

Test(ib_verbs, connections_have_bounds, .init = init, .fini = fini)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(0);
	struct ddps_ipoib_qp_to to = { .qpn = 9 };
	struct ddps_ipoib_port *port;
	uint8_t frame[100] = { 8 };
	uint32_t qpn;

	c.max_qps = 2;
	cr_assert_eq(ddps_vport_new(&peer[0].v, &c, &fake_lib, why, sizeof(why)), 0, "%s", why);
	port = ddps_ib_verbs_port(peer[0].v);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RD, 65524, &qpn), DDPS_E_UNSUPPORTED);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 65537, &qpn), DDPS_E_LIMIT);
	fake[0].fail = "create_qp";
	fake[0].fail_errno = ENOMEM;
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 65524, &qpn), DDPS_E_NOMEM);
	fake[0].fail_errno = 0; /* a driver that does not say why */
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 65524, &qpn), DDPS_E_LIMIT);
	fake[0].fail = NULL;
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 65524, &qpn), 0);
	cr_expect_eq(port->ops->qp_send(port, qpn, frame, sizeof(frame)), DDPS_E_STATE);
	cr_expect_eq(port->ops->qp_ready(port, qpn, &to), DDPS_E_STATE, "no link yet");
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 65524, &qpn), DDPS_E_LIMIT);
	port->ops->qp_destroy(port, qpn);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 65524, &qpn), 0, "never was ready");
	port->ops->qp_stop(port, 0x123456);
	port->ops->qp_destroy(port, 0x123456);
}

Test(ib_verbs, messages_on_their_way_have_bounds, .init = init, .fini = fini)
{
	struct ddps_ipoib_port *port;
	uint8_t frame[100] = { 8 };
	unsigned n = 0;
	uint32_t qpn;

	connect_two_interfaces();
	port = ddps_ib_verbs_port(peer[0].v);
	qpn = conn(0)->qp.qp_num;
	turn_ib_verbs();
	fake[0].stuck = true;
	while (!port->ops->qp_send(port, qpn, frame, sizeof(frame)))
		cr_assert_lt(n++, 1000);
	cr_expect_eq(n, (1 << 20) / VP_MSG_LEN, "all memory there is");
	cr_expect_eq(ddps_ib_verbs_waiting(peer[0].v, qpn), n);
	cr_expect_eq(ddps_ib_verbs_waiting(peer[0].v, 0x999999), 0);
	cr_expect(ddps_ib_verbs_busy(peer[0].v));
	cr_expect_eq(port->ops->qp_send(port, qpn, frame, sizeof(frame)), DDPS_E_AGAIN);
	fake[0].stuck = false;
	fake_event(0, IBV_EVENT_QP_FATAL, &conn(0)->qp);
	peer[1].n_rx = 0;
	run_ib_verbs(10 * SEC); /* until its queue pair is gone, and its messages with it */
	cr_expect_not(ddps_ib_verbs_busy(peer[0].v));
	UNTIL((send_ib_verbs_ip(0, 1, 60000), run_ib_verbs(SEC), peer[1].n_rx));
}

/* A queue pair may hold a receive of the shared queue until the adapter says that it does not. */
Test(ib_verbs, queue_pairs_are_destroyed_when_they_are_drained, .init = init, .fini = fini)
{
	uint32_t qpn;

	connect_two_interfaces();
	qpn = conn(0)->qp.qp_num;
	fake[0].no_last_wqe = true;
	ddps_ipoib_if_stop(peer[0].f, fake_now);
	ddps_ib_verbs_port(peer[0].v)->ops->qp_destroy(ddps_ib_verbs_port(peer[0].v), qpn);
	turn_ib_verbs();
	cr_expect(fake_qp_of(0, qpn), "not yet");
	cr_expect_leq(ddps_ib_verbs_deadline(peer[0].v), fake_now + VP_DYING_NS);
	fake_event(0, IBV_EVENT_QP_LAST_WQE_REACHED, &fake_qp_of(0, qpn)->qp);
	turn_ib_verbs();
	cr_expect_null(fake_qp_of(0, qpn));
	cr_expect_eq(count_ib_verbs(0, "qp_undrained"), 0);
}

Test(ib_verbs, one_that_never_says_so_is_destroyed_in_the_end, .init = init, .fini = fini)
{
	uint32_t qpn;

	connect_two_interfaces();
	qpn = conn(0)->qp.qp_num;
	fake[0].no_last_wqe = true;
	ddps_ib_verbs_port(peer[0].v)->ops->qp_destroy(ddps_ib_verbs_port(peer[0].v), qpn);
	run_ib_verbs(4 * SEC);
	cr_expect(fake_qp_of(0, qpn));
	run_ib_verbs(2 * SEC);
	cr_expect_null(fake_qp_of(0, qpn));
	cr_expect_eq(count_ib_verbs(0, "qp_undrained"), 1);
}

/* Completions of an earlier life of a buffer, or with numbers of nobody. */
Test(ib_verbs, completions_of_nothing_are_not_believed, .init = init, .fini = fini)
{
	struct ibv_wc wc = { .byte_len = 100 };

	two_up();
	for (unsigned k = 0; k < 5; k++) {
		wc.wr_id = (uint64_t[]){ 0, UINT64_MAX, 7ull << 56, 2ull << 56 | 5000, 1 }[k];
		fake_wc(0, 0, &wc);
	}
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), 5);
	send_ib_verbs_ip(0, 1, 100);
	UNTIL(peer[1].n_rx == 1);
}

Test(ib_verbs, reports_of_somebody_else, .init = init, .fini = fini)
{
	fake[0].no_reports = true;
	two_up();
	cr_expect_eq(count_ib_verbs(0, "no_reports"), 1);
	cr_expect_eq(count_ib_verbs(1, "no_reports"), 0);
}
