/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of an adapter: what seldom happens to its messages, datagrams, ways, groups and MADs. */
#include "ib_verbs_fixture.h"

static struct ddps_ipoib_port *port_of(unsigned i)
{
	return ddps_ib_verbs_port(peer[i].v);
}

/* ---- connections, made by hand ---- */

static struct ddps_ipoib_qp_to get_ib_verbs_rare_way(unsigned from, unsigned to, uint32_t qpn)
{
	const struct vp_way w = { .dlid = fake[to].port.lid };

	return (struct ddps_ipoib_qp_to){
		.qpn = qpn, .path = { .addr = ddps_vport_addr(peer[from].v, &w, 0) }
	};
}

/* Of ports 0 and 1, to each other; no interface knows them. */
static void make_rc_pair(uint32_t qpn[2])
{
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(port_of(i)->ops->qp_create(port_of(i), DDPS_CM_RC, 65524, &qpn[i]), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct ddps_ipoib_qp_to to = get_ib_verbs_rare_way(i, 1 - i, qpn[1 - i]);

		cr_assert_eq(port_of(i)->ops->qp_ready(port_of(i), qpn[i], &to), 0);
	}
}

static void expect_pair_ended(uint32_t qpn[2])
{
	for (unsigned i = 0; i < 2; i++)
		port_of(i)->ops->qp_destroy(port_of(i), qpn[i]);
	turn_ib_verbs();
}

Test(ib_verbs_rare, queue_pairs_that_cannot_be_had, .init = init, .fini = fini)
{
	static const struct {
		uint8_t transport;
		int err, expected;
	} row[] = {
		{ DDPS_CM_UC, EINVAL, DDPS_E_UNSUPPORTED },
		{ DDPS_CM_UC, ENOSYS, DDPS_E_UNSUPPORTED },
		{ DDPS_CM_UC, EOPNOTSUPP, DDPS_E_UNSUPPORTED },
		{ DDPS_CM_UC, ENOMEM, DDPS_E_NOMEM },
		{ DDPS_CM_UC, EIO, DDPS_E_LIMIT },
		{ DDPS_CM_RC, EINVAL, DDPS_E_LIMIT },
	};
	struct ddps_ipoib_port *port;
	uint32_t qpn = 42;

	two_up();
	port = port_of(0);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 0, &qpn), DDPS_E_LIMIT);
	fake[0].fail = "create_qp";
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		fake[0].fail_errno = row[i].err;
		cr_expect_eq(port->ops->qp_create(port, row[i].transport, 65524, &qpn),
			     row[i].expected, "row %u", i);
		expect_reason(0, strerror(row[i].err));
	}
	fake[0].fail = NULL;
	cr_expect_eq(qpn, 42);
}

Test(ib_verbs_rare, queue_pairs_get_ready_once, .init = init, .fini = fini)
{
	struct ddps_ipoib_qp_to to;
	uint32_t qpn[2], other;

	two_up();
	make_rc_pair(qpn);
	to = get_ib_verbs_rare_way(0, 1, qpn[1]);
	cr_expect_eq(port_of(0)->ops->qp_ready(port_of(0), qpn[0], &to), DDPS_E_STATE, "again");
	cr_assert_eq(port_of(0)->ops->qp_create(port_of(0), DDPS_CM_RC, 65524, &other), 0);
	to.path.addr = 0xc001;
	cr_expect_eq(port_of(0)->ops->qp_ready(port_of(0), other, &to), DDPS_E_ADDRESS, "an MLID");
	to = get_ib_verbs_rare_way(0, 1, qpn[1]);
	fake[0].fail = "modify_qp";
	fake[0].fail_errno = ETIMEDOUT;
	cr_expect_eq(port_of(0)->ops->qp_ready(port_of(0), other, &to), DDPS_E_SYSTEM);
	expect_reason(0, strerror(ETIMEDOUT));
	fake[0].fail_after = 1; /* to RTR, but not to RTS */
	cr_expect_eq(port_of(0)->ops->qp_ready(port_of(0), other, &to), DDPS_E_SYSTEM);
	fake[0].fail = NULL;
	port_of(0)->ops->qp_destroy(port_of(0), other);
	cr_assert_eq(port_of(0)->ops->qp_create(port_of(0), DDPS_CM_RC, 65524, &other), 0);
	port_of(0)->ops->qp_stop(port_of(0), other);
	cr_expect_eq(port_of(0)->ops->qp_ready(port_of(0), other, &to), DDPS_E_STATE, "stopped");
	port_of(0)->ops->qp_destroy(port_of(0), other);
	expect_pair_ended(qpn);
}

Test(ib_verbs_rare, each_status_has_a_reason, .init = init, .fini = fini)
{
	static const struct {
		enum ibv_wc_status status;
		int err;
	} row[] = {
		{ IBV_WC_LOC_LEN_ERR, DDPS_E_TOO_LONG },
		{ IBV_WC_REM_INV_REQ_ERR, DDPS_E_PROTOCOL },
		{ IBV_WC_REM_ACCESS_ERR, DDPS_E_PROTOCOL },
		{ IBV_WC_REM_OP_ERR, DDPS_E_PROTOCOL },
		{ IBV_WC_REM_ABORT_ERR, DDPS_E_PROTOCOL },
		{ IBV_WC_BAD_RESP_ERR, DDPS_E_PROTOCOL },
		{ IBV_WC_WR_FLUSH_ERR, DDPS_E_RESET },
		{ IBV_WC_FATAL_ERR, DDPS_E_SYSTEM },
	};

	two_up();
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		uint32_t qpn[2];

		make_rc_pair(qpn);
		peer[0].qp_err = 0;
		fake[0].rc_status = row[i].status;
		cr_assert_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), 0);
		turn_ib_verbs();
		cr_expect_eq(peer[0].qp_err, row[i].err, "status %d: %d", row[i].status,
			     peer[0].qp_err);
		cr_expect_eq(peer[0].qp_failed, qpn[0]);
		cr_expect_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), row[i].err,
			     "and so for each that follows");
		expect_pair_ended(qpn);
	}
	cr_expect_eq(count_ib_verbs(0, "qp_failed"), sizeof(row) / sizeof(*row));
}

/* One that waits is with the adapter; completions come in any order after that. */
Test(ib_verbs_rare, connections_that_are_behind, .init = init, .fini = fini)
{
	uint32_t qpn[2], other[2];
	uint64_t full;
	unsigned n = 0;

	octets = 8 << 20;
	two_up();
	make_rc_pair(qpn);
	make_rc_pair(other);
	turn_ib_verbs();
	fake[0].stuck = true;
	for (; n < VP_QP_TX / 2; n++)
		cr_assert_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), 0);
	cr_expect_not(ddps_ib_verbs_busy(peer[0].v), "half of what one connection may have");
	for (; n < VP_QP_TX; n++)
		cr_assert_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), 0);
	cr_expect(ddps_ib_verbs_busy(peer[0].v));
	full = count_ib_verbs(0, "tx_full");
	cr_expect_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), DDPS_E_AGAIN);
	cr_expect_eq(count_ib_verbs(0, "tx_full"), full + 1);
	cr_expect_eq(port_of(0)->ops->qp_send(port_of(0), other[0], "12345", 5), 0);
	cr_expect_eq(ddps_ib_verbs_waiting(peer[0].v, qpn[0]), VP_QP_TX);
	cr_expect_eq(ddps_ib_verbs_waiting(peer[0].v, other[0]), 1);
	fake[0].stuck = false;
	port_of(0)->ops->qp_destroy(port_of(0), qpn[0]);
	turn_ib_verbs();
	cr_expect_eq(ddps_ib_verbs_waiting(peer[0].v, other[0]), 1,
		     "what is the other one's stays");
	cr_expect_eq(peer[0].v->pool[VP_MSG_OUT].n_out, 1);
	cr_expect_not(ddps_ib_verbs_busy(peer[0].v));
	port_of(1)->ops->qp_destroy(port_of(1), qpn[1]);
	expect_pair_ended(other);
	cr_expect_eq(peer[0].v->pool[VP_MSG_OUT].n_out, 0);
}

Test(ib_verbs_rare, an_adapter_that_takes_no_message, .init = init, .fini = fini)
{
	uint32_t qpn[2];

	two_up();
	make_rc_pair(qpn);
	fake[0].fail = "post_send";
	cr_expect_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), DDPS_E_AGAIN);
	fake[0].fail = NULL;
	cr_expect_eq(count_ib_verbs(0, "tx_full"), 1);
	cr_expect_eq(ddps_ib_verbs_waiting(peer[0].v, qpn[0]), 0);
	cr_expect_eq(peer[0].v->pool[VP_MSG_OUT].n_out, 0);
	cr_expect_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), 0);
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(1, "qp_rx"), 1);
	expect_pair_ended(qpn);
}

/* A receive that the adapter does not take back is offered again with the next. */
Test(ib_verbs_rare, an_adapter_that_takes_no_receive, .init = init, .fini = fini)
{
	uint32_t qpn[2];
	unsigned all;

	two_up();
	make_rc_pair(qpn);
	all = fake[1].n_srq;
	fake[1].fail = "post_srq_recv";
	cr_assert_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), 0);
	turn_ib_verbs();
	cr_expect_eq(fake[1].n_srq, all - 1);
	fake[1].fail = NULL;
	cr_assert_eq(port_of(0)->ops->qp_send(port_of(0), qpn[0], "12345", 5), 0);
	turn_ib_verbs();
	cr_expect_eq(fake[1].n_srq, all);
	cr_expect_eq(count_ib_verbs(1, "qp_rx"), 2);
	expect_pair_ended(qpn);
}

/* A completion of one of the receives that are posted to the shared queue. */
static void bring_receive_completion(unsigned i, uint32_t qpn, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .qp_num = qpn, .status = status, .byte_len = 5 };
	unsigned at = 0;

	while (fake[i].posted[at].kind != FAKE_MSG_IN)
		at++;
	wc.wr_id = fake_take(i, at).wr_id;
	fake_wc(i, 0, &wc);
	turn_ib_verbs();
}

Test(ib_verbs_rare, messages_for_nobody, .init = init, .fini = fini)
{
	uint32_t qpn[2];
	unsigned all;

	two_up();
	make_rc_pair(qpn);
	all = fake[0].n_srq;
	bring_receive_completion(0, 0x999999, IBV_WC_SUCCESS);
	bring_receive_completion(0, 0x999999, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), 0);
	bring_receive_completion(0, 0x999999, IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), 1);
	bring_receive_completion(0, qpn[0], IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(peer[0].qp_err, DDPS_E_SYSTEM);
	cr_expect_eq(count_ib_verbs(0, "qp_failed"), 1);
	bring_receive_completion(0, qpn[0], IBV_WC_SUCCESS); /* it has failed before */
	fake[1].stuck = true; /* its receives are not taken from it */
	port_of(1)->ops->qp_stop(port_of(1), qpn[1]);
	fake[1].stuck = false;
	bring_receive_completion(1, qpn[1], IBV_WC_SUCCESS);
	cr_expect_eq(count_ib_verbs(0, "qp_rx") + count_ib_verbs(1, "qp_rx"), 0);
	cr_expect_eq(fake[0].n_srq, all, "each is posted again");
	cr_expect_eq(fake[1].n_srq, all);
	expect_pair_ended(qpn);
}

/* ---- datagrams ---- */

/* A completion of the oldest receive of datagrams. */
static void bring_datagram_completion(uint32_t len, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .src_qp = 5, .slid = 99, .status = status, .byte_len = len };
	unsigned at = 0;

	while (fake[0].posted[at].kind != FAKE_UD_IN)
		at++;
	wc.qp_num = fake[0].posted[at].q->qp.qp_num;
	wc.wr_id = fake_take(0, at).wr_id;
	fake_wc(0, 0, &wc);
	turn_ib_verbs();
}

Test(ib_verbs_rare, lengths_of_datagrams, .init = init, .fini = fini)
{
	const struct fake_qp *q;
	uint64_t rx;

	two_up();
	settle_ib_verbs(0);
	q = fake_qp_of(0, ddps_ib_verbs_info(peer[0].v)->qpn);
	rx = count_ib_verbs(0, "ud_rx");
	bring_datagram_completion(VP_GRH - 1, IBV_WC_SUCCESS);
	bring_datagram_completion(VP_UD_LEN + 1, IBV_WC_SUCCESS);
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), 2);
	cr_expect_eq(count_ib_verbs(0, "ud_rx"), rx);
	bring_datagram_completion(VP_GRH + 5, IBV_WC_SUCCESS);
	bring_datagram_completion(VP_UD_LEN, IBV_WC_SUCCESS);
	cr_expect_eq(count_ib_verbs(0, "ud_rx"), rx + 2);
	cr_expect_eq(q->n_in, VP_UD_RX, "each is posted again");
	bring_datagram_completion(100, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), 2, "a queue that ends is no fault");
	cr_expect_eq(q->n_in, VP_UD_RX - 1);
}

Test(ib_verbs_rare, datagrams_before_there_is_a_link, .init = init, .fini = fini)
{
	const struct ddps_ipoib_lladdr to = { .qpn = 5 };
	const struct vp_way w = { .dlid = 99 };
	struct ddps_ipoib_path path = { 0 };
	struct ddps_ipoib_port *port;

	cr_assert_eq(try_open_ib_verbs(0), 0, "%s", why);
	port = port_of(0);
	path.addr = ddps_vport_addr(peer[0].v, &w, 0);
	cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), DDPS_E_AGAIN);
	ddps_ib_verbs_free(peer[0].v);
	peer[0].v = NULL;
	two_up();
	port = port_of(0);
	path.addr = ddps_vport_addr(peer[0].v, &w, 0);
	cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), 0);
	path.addr = 0xc001; /* a group's */
	cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), DDPS_E_ADDRESS);
	path.addr = 0;
	cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), DDPS_E_ADDRESS);
	path.addr = 99 | 5ull << 48; /* no GRH has that number yet */
	cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), DDPS_E_ADDRESS);
	path.addr = ddps_vport_addr(peer[0].v, &w, 0);
	fake[0].port.state = IBV_PORT_DOWN;
	fake_event(0, IBV_EVENT_PORT_ERR, NULL);
	turn_ib_verbs();
	cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), DDPS_E_AGAIN);
}

Test(ib_verbs_rare, datagrams_that_are_flushed, .init = init, .fini = fini)
{
	two_up();
	fake[0].ud_status = IBV_WC_WR_FLUSH_ERR;
	send_ib_verbs_ip(0, 1, 100); /* its ARP request */
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(0, "ud_failed"), 1);
	cr_expect_eq(count_ib_verbs(0, "ud_rebuilt"), 0, "whoever flushed it sets it up anew");
}

Test(ib_verbs_rare, receives_of_datagrams_that_are_not_taken, .init = init, .fini = fini)
{
	struct fake_qp *q;

	two_up();
	q = fake_qp_of(0, ddps_ib_verbs_info(peer[0].v)->qpn);
	for (unsigned i = 0; i < 2; i++) {
		fake[0].fail = "post_recv";
		fake[0].fail_after = 10;
		fake_event(0, IBV_EVENT_QP_FATAL, &q->qp);
		turn_ib_verbs();
		fake[0].fail = NULL;
		cr_expect_eq(q->n_in, 10, "the rest when one comes");
	}
	send_ib_verbs_ip(1, 0, 100);
	UNTIL(peer[0].n_rx == 1);
	cr_expect_eq(q->n_in, VP_UD_RX);
}

/* A completion that comes twice is of nothing. */
Test(ib_verbs_rare, completions_that_come_twice, .init = init, .fini = fini)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	const struct vp_pool *p;
	uint64_t bad;

	two_up();
	settle_ib_verbs(0);
	bad = count_ib_verbs(0, "rx_bad");
	p = &peer[0].v->pool[VP_UD_OUT];
	wc.wr_id = ddps_vport_wr_id(p, p->free); /* the last one that completed */
	fake_wc(0, 1, &wc);
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), bad + 1);
	wc.status = IBV_WC_WR_FLUSH_ERR; /* of an earlier life */
	fake_wc(0, 1, &wc);
	turn_ib_verbs();
	cr_expect_eq(count_ib_verbs(0, "rx_bad"), bad + 1);
}

Test(ib_verbs_rare, a_q_key_that_is_not_taken, .init = init, .fini = fini)
{
	make_ib_verbs(0);
	fake[0].fail = "modify_qp";
	fake[0].fail_errno = EINVAL;
	UNTIL(peer[0].join_err);
	cr_expect_eq(peer[0].join_err, DDPS_E_SYSTEM);
	expect_reason(0, "Q_Key 0x00000b1b: Invalid argument");
	cr_expect_null(strstr(ddps_ib_verbs_why(peer[0].v), "try"), "privileges are no help");
	fake[0].fail = NULL;
	UNTIL(is_ib_verbs_up(0));
}

/* ---- ways ---- */

/* Ways that differ in one thing are two: their tokens, and their address handles. */
Test(ib_verbs_rare, ways_are_distinguished, .init = init, .fini = fini)
{
	static const struct vp_way way[] = {
		{ .dlid = 9 },
		{ .dlid = 10 },
		{ .dlid = 9, .sl = 1 },
		{ .dlid = 9, .bits = 1 },
		{ .dlid = 9, .rate = 2 },
		{ .dlid = 9, .grh = true },
		{ .dlid = 9, .grh = true, .hop = 1 },
		{ .dlid = 9, .grh = true, .tclass = 1 },
		{ .dlid = 9, .grh = true, .flow = 1 },
		{ .dlid = 9, .grh = true, .gid = { 1 } },
	};
	const unsigned n = sizeof(way) / sizeof(*way);
	uint32_t ah[sizeof(way) / sizeof(*way)];
	ddps_cm_addr addr[sizeof(way) / sizeof(*way)];

	cr_assert_eq(try_open_ib_verbs(0), 0, "%s", why);
	for (unsigned i = 0; i < n; i++) {
		addr[i] = ddps_vport_addr(peer[0].v, &way[i], 3);
		ah[i] = ddps_vport_ah(peer[0].v, &way[i]);
		for (unsigned k = 0; k < i; k++) {
			cr_expect_neq(addr[i], addr[k], "%u and %u", i, k);
			cr_expect_neq(ah[i], ah[k], "%u and %u", i, k);
		}
	}
	cr_expect_eq(fake[0].n_ah, n);
	for (unsigned i = 0; i < n; i++) {
		struct vp_way got;
		uint16_t index;

		cr_expect_eq(ddps_vport_addr(peer[0].v, &way[i], 3), addr[i]);
		cr_expect_eq(ddps_vport_ah(peer[0].v, &way[i]), ah[i]);
		cr_assert(ddps_vport_way(peer[0].v, addr[i], &got, &index));
		cr_expect_eq(index, 3);
		cr_expect_eq(got.sl, way[i].sl);
		cr_expect_eq(got.flow, way[i].flow);
		cr_expect_eq(got.tclass, way[i].tclass);
		cr_expect_eq(got.hop, way[i].hop);
		cr_expect_eq(got.gid[0], way[i].gid[0]);
	}
}

/* ---- groups and paths ---- */

/* The administration may give a group another MLID when it has been asked anew. */
Test(ib_verbs_rare, a_group_under_another_mlid, .init = init, .fini = fini)
{
	uint16_t was[2];
	unsigned joined;

	two_up();
	UNTIL(fake[0].n_group == 2);
	for (unsigned i = 0; i < 2; i++)
		was[i] = fake[0].group[i].mlid;
	joined = peer[0].n_joined;
	fake_mlid = 1;
	fake_event(0, IBV_EVENT_CLIENT_REREGISTER, NULL);
	UNTIL(peer[0].n_joined >= joined + 2);
	cr_assert_eq(fake[0].n_group, 2, "attached to these, and to those of before no more");
	cr_expect_eq(fake[0].group[0].mlid ^ was[0] ^ fake[0].group[1].mlid ^ was[1], 0);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(fake[0].group[i].mlid >> 8, 0xc1);
}

Test(ib_verbs_rare, a_group_of_too_large_packets, .init = init, .fini = fini)
{
	fake[0].port.active_mtu = IBV_MTU_1024;
	make_ib_verbs(0);
	UNTIL(peer[0].join_err);
	cr_expect_eq(peer[0].join_err, DDPS_E_LIMIT);
	expect_reason(0, "2048 octets, above the port's");
	cr_expect_eq(fake[0].n_group, 0);
	cr_expect_not(is_ib_verbs_up(0));
}

Test(ib_verbs_rare, paths_to_nobody, .init = init, .fini = fini)
{
	static const uint8_t nobody[16] = { 0xfe, 0x80, [15] = 0x77 };

	two_up();
	cr_assert_eq(port_of(0)->ops->resolve(port_of(0), nobody), 0);
	UNTIL(peer[0].n_no_path == 1);
	cr_expect_eq(peer[0].n_path, 0);
}

Test(ib_verbs_rare, a_port_whose_packets_all_have_a_grh, .init = init, .fini = fini)
{
	fake[0].port.flags = IBV_QPF_GRH_REQUIRED;
	connect_two_interfaces();
	cr_expect_eq(conn(0)->attr.ah_attr.is_global, 1);
	cr_expect_eq(conn(0)->attr.ah_attr.grh.dgid.raw[15], 0x11);
	cr_expect_eq(conn(0)->attr.ah_attr.grh.hop_limit, 0, "as the path says");
}

Test(ib_verbs_rare, a_path_has_no_larger_packets_than_the_port, .init = init, .fini = fini)
{
	two_up();
	fake[0].port.active_mtu = IBV_MTU_512;
	fake_event(0, IBV_EVENT_SM_CHANGE, NULL);
	turn_ib_verbs();
	cr_expect_eq(ddps_ib_verbs_info(peer[0].v)->mtu, 2);
	cr_assert_eq(port_of(0)->ops->resolve(port_of(0), fake[1].gid.raw), 0);
	UNTIL(peer[0].n_path == 1);
	cr_expect_eq(peer[0].path.mtu, 2);
}

/* ---- MADs ---- */

Test(ib_verbs_rare, mads_that_are_not_taken, .init = init, .fini = fini)
{
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 7 };
	const struct vp_way w = { .dlid = 16 };
	uint64_t tx;

	two_up();
	tx = count_ib_verbs(0, "mad_tx");
	fake[0].fail = "umad_send";
	fake[0].fail_errno = EIO;
	cr_expect_eq(port_of(0)->ops->mad_send(port_of(0), ddps_vport_addr(peer[0].v, &w, 0), mad),
		     DDPS_E_SYSTEM);
	fake[0].fail = NULL;
	cr_expect_eq(count_ib_verbs(0, "mad_tx_failed"), 1);
	cr_expect_eq(count_ib_verbs(0, "mad_tx"), tx);
	cr_expect_eq(port_of(0)->ops->mad_send(port_of(0), ddps_vport_addr(peer[0].v, &w, 0), mad),
		     0);
	cr_expect_eq(count_ib_verbs(0, "mad_tx"), tx + 1);
}

Test(ib_verbs_rare, nobody_is_asked_without_a_manager, .init = init, .fini = fini)
{
	two_up();
	fake[0].port.sm_lid = 0;
	fake_event(0, IBV_EVENT_SM_CHANGE, NULL);
	turn_ib_verbs();
	run_ib_verbs(SEC);
	expect_reason(0, "knows no subnet manager; try: start opensm");
	cr_expect_gt(count_ib_verbs(0, "mad_tx_failed"), 0);
}

Test(ib_verbs_rare, mads_of_a_class_that_was_not_asked_for, .init = init, .fini = fini)
{
	static const struct {
		int agent;
		uint8_t class;
	} row[] = { { FAKE_CM, 3 }, { FAKE_SA, 7 }, { FAKE_REPORTS, 7 }, { 9, 7 }, { 9, 3 } };
	uint64_t rx;

	two_up();
	settle_ib_verbs(0);
	rx = count_ib_verbs(0, "mad_rx");
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		fake[0].mad[fake[0].n_mad++] = (typeof(fake[0].mad[0])){
			.agent = row[i].agent, .len = DDPS_CM_MAD_LEN, .mad = { 1, row[i].class }
		};
		turn_ib_verbs();
		cr_expect_eq(count_ib_verbs(0, "mad_bad"), i + 1, "row %u", i);
	}
	cr_expect_eq(count_ib_verbs(0, "mad_rx"), rx);
}

/* ---- RoCE ---- */

static int opened_fd;

/* As the library's own does it: with a socket that stays. */
static int netdev_group(int *fd, uint32_t ifindex, const uint8_t ip6[16], bool join)
{
	(void)ifindex, (void)ip6, (void)join;
	if (*fd < 0)
		*fd = opened_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

Test(ib_verbs_rare, the_socket_of_groups_is_closed, .init = init_roce, .fini = fini)
{
	const struct ddps_ib_verbs_config c = make_ib_verbs_config(0);
	struct ddps_verbs_lib lib = fake_lib;
	uint8_t mgid[16] = { 0xff, 0x12 };

	lib.netdev_group = netdev_group;
	cr_assert_eq(ddps_vport_new(&peer[0].v, &c, &lib, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(ddps_vport_roce_group(peer[0].v, mgid, true), 0);
	cr_assert_geq(fcntl(opened_fd, F_GETFD), 0);
	ddps_ib_verbs_free(peer[0].v);
	peer[0].v = NULL;
	cr_expect_eq(fcntl(opened_fd, F_GETFD), -1);
	cr_expect_eq(errno, EBADF);
}

Test(ib_verbs_rare, roce_answers_immediately_and_in_bounds, .init = init_roce, .fini = fini)
{
	static const uint8_t global[16] = { 0x20, 1, [15] = 0x77 };
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	const struct ddps_sa_head h = { .method = DDPS_SA_GET, .attr = DDPS_SA_PATH_RECORD };

	two_up();
	cr_assert_eq(port_of(0)->ops->resolve(port_of(0), global), 0);
	cr_expect_eq(ddps_ib_verbs_deadline(peer[0].v), fake_now, "the answer is there");
	turn_ib_verbs();
	cr_expect_eq(peer[0].n_path, 1);
	cr_expect_eq(peer[0].path.hop_limit, 64, "through routers");
	cr_assert_eq(port_of(0)->ops->resolve(port_of(0), fake[1].gid.raw), 0);
	turn_ib_verbs();
	cr_expect_eq(peer[0].path.hop_limit, 1);
	ddps_vport_roce_query(peer[0].v, mad);
	cr_expect_eq(peer[0].v->answers.n, 0, "of no class");
	ddps_sa_mad_begin(mad, &h);
	for (unsigned i = 0; i < VP_ANSWERS + 10; i++)
		ddps_vport_roce_query(peer[0].v, mad);
	cr_expect_eq(peer[0].v->answers.n, VP_ANSWERS);
	turn_ib_verbs();
	cr_expect_eq(peer[0].v->answers.n, 0);
}
