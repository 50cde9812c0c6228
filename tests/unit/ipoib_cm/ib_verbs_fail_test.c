/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of an adapter: datagrams and connections that fail, and bounds. */
#include "ib_verbs_fixture.h"

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
