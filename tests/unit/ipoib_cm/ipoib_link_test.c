/* SPDX-License-Identifier: BSD-2-Clause */
/* A neighbour as a whole: what goes over the wire when, and what the queue pairs are asked to do. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/cm/link.h"
#include "ipoib_cm/wire/wire.h"

#define PEER_ID	  0x55667788u
#define PEER_GUID 0x20

struct rig {
	struct ddps_cm *cm;
	struct ddps_ipoib_links links;
	struct ddps_ipoib_link link;
	struct ddps_cm_mad sent[8];
	unsigned n_sent, n_up, n_down, n_resolve;
	uint32_t up_id, up_mtu;
	bool to_send, no_qp;
	uint64_t now;
};

static void take_ipoib_link_send(void *user, const struct ddps_cm_send *s)
{
	struct rig *r = user;

	cr_assert_lt(r->n_sent, 8);
	cr_assert_eq(ddps_cm_mad_decode(&r->sent[r->n_sent++], s->mad, 256), 0);
	cr_expect_eq(s->to, 7);
}

static int on_ask(void *user, struct ddps_ipoib_link *l, struct ddps_cm_req *req)
{
	struct rig *r = user;

	cr_assert_eq(l, &r->link);
	if (r->no_qp)
		return DDPS_E_LIMIT;
	req->qpn = 0x451;
	return 0;
}

static int take_ipoib_link_answer(void *user, struct ddps_ipoib_link *l, uint32_t id,
				  const struct ddps_cm_req *req, struct ddps_cm_rep *rep)
{
	struct rig *r = user;

	cr_assert(l == &r->link && id && req->qpn == 0x452);
	if (r->no_qp)
		return DDPS_E_LIMIT;
	rep->qpn = 0x450;
	return 0;
}

static void take_ipoib_link_up(void *user, struct ddps_ipoib_link *l, uint32_t id, uint32_t mtu,
			       bool to_send)
{
	struct rig *r = user;

	cr_assert_eq(l, &r->link);
	r->n_up++;
	r->up_id = id;
	r->up_mtu = mtu;
	r->to_send = to_send;
}

static void take_ipoib_link_down_call(void *user, struct ddps_ipoib_link *l, uint32_t id)
{
	struct rig *r = user;

	cr_assert(l == &r->link && id);
	r->n_down++;
}

static void take_ipoib_link_resolve(void *user, struct ddps_ipoib_link *l)
{
	struct rig *r = user;

	cr_assert_eq(l, &r->link);
	r->n_resolve++;
}

static const struct ddps_ipoib_link_ops ops = {
	take_ipoib_link_send,	   on_ask,
	take_ipoib_link_answer,	   take_ipoib_link_up,
	take_ipoib_link_down_call, take_ipoib_link_resolve
};

static void init_ipoib_link_rig(struct rig *r, uint8_t own_flags, uint8_t peer_flags)
{
	const struct ddps_cm_config cfg = {
		.struct_size = sizeof(cfg), .ca_guid = 0x10, .id_seed = 99, .max_conns = 8
	};
	struct ddps_cm_listener l = { .service_id = 0x0100000000000049, .pkey = 0xffff };
	struct ddps_ipoib_lladdr remote = { .flags = peer_flags, .qpn = 0x4a };

	memset(r, 0, sizeof(*r));
	remote.gid[15] = 1;
	cr_assert_eq(ddps_cm_new(&r->cm, &cfg), 0);
	r->links.cm = r->cm;
	r->links.me.addr.flags = own_flags;
	r->links.me.addr.qpn = 0x49;
	r->links.me.addr.gid[15] = 2;
	r->links.me.pkey = 0xffff;
	r->links.me.rx_mtu = 32772;
	r->links.me.min_mtu = DDPS_IPOIB_MTU_MIN_V6;
	r->links.policy.backoff_ns = 1000;
	r->links.ops = &ops;
	r->links.user = r;
	l.gid[15] = 2;
	cr_assert_eq(ddps_cm_listen(r->cm, &l), 0);
	ddps_ipoib_link_init(&r->link, &r->links, &remote, 7, DDPS_IPOIB_SID_LINUX);
}

static void feed_ipoib_link_rx(struct rig *r, const struct ddps_cm_mad *m)
{
	struct ddps_cm_outs o;
	uint8_t octets[256];

	r->n_sent = 0;
	cr_assert_eq(ddps_cm_mad_encode(octets, m), 0);
	cr_assert_eq(ddps_cm_rx(r->cm, octets, 256, 7, r->now, &o), 0);
	for (unsigned i = 0; i < o.n_send; i++)
		take_ipoib_link_send(r, &o.send[i]);
	for (unsigned i = 0; i < o.n_report; i++)
		ddps_ipoib_link_report(&r->link, &o.report[i], r->now);
}

static void connect_ipoib_link(struct rig *r)
{
	r->n_sent = 0;
	ddps_ipoib_link_traffic(&r->link, r->now);
}

static void set_priv(struct ddps_cm_mad *m, uint32_t rx_mtu)
{
	const struct ddps_ipoib_priv priv = { .qpn = 0x4a, .rx_mtu = rx_mtu };
	size_t len;

	cr_assert_eq(ddps_ipoib_priv_encode(ddps_cm_private_data(m, &len), &priv), 0);
}

static void rx_req(struct rig *r)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REQ, 1);
	m.u.req.local_id = PEER_ID;
	m.u.req.ca_guid = PEER_GUID;
	m.u.req.qpn = 0x452;
	m.u.req.service_id = 0x0100000000000049;
	m.u.req.pkey = 0xffff;
	m.u.req.max_cm_retries = 1;
	m.u.req.primary.local_gid[15] = 1;
	m.u.req.primary.remote_gid[15] = 2;
	set_priv(&m, 65524);
	feed_ipoib_link_rx(r, &m);
}

static void rx_rtu(struct rig *r, bool with_priv)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_RTU, 1);
	m.u.rtu.local_id = PEER_ID;
	m.u.rtu.remote_id = r->sent[0].u.rep.local_id;
	if (with_priv)
		set_priv(&m, 65524);
	feed_ipoib_link_rx(r, &m);
}

static void rx_rep(struct rig *r, uint32_t rx_mtu)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REP, 1);
	m.u.rep.local_id = PEER_ID + 1;
	m.u.rep.remote_id = r->link.peer.own_id;
	m.u.rep.qpn = 0x453;
	m.u.rep.ca_guid = PEER_GUID;
	set_priv(&m, rx_mtu);
	feed_ipoib_link_rx(r, &m);
}

static void rx_rej(struct rig *r, uint16_t reason)
{
	struct ddps_cm_mad m;

	ddps_cm_mad_init(&m, DDPS_CM_REJ, 1);
	m.u.rej.remote_id = r->link.peer.own_id;
	m.u.rej.reason = reason;
	feed_ipoib_link_rx(r, &m);
}

static uint32_t priv_qpn(struct ddps_cm_mad *m)
{
	struct ddps_ipoib_priv priv;
	size_t len;

	ddps_ipoib_priv_decode(&priv, ddps_cm_private_data(m, &len), 8);
	cr_expect(!priv.qpn || priv.rx_mtu == 32772);
	return priv.qpn;
}

Test(ipoib_link, req_says_who_asks_whom,
     .description = "4755-2.3-2 4755-2.3-3 4755-2.3-5 4755-3.2-5 4755-3.2-10 4755-5.1-1 "
		    "4755-6-1 4755-3.1-12")
{
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	connect_ipoib_link(&r);
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].hdr.attr_id, DDPS_CM_REQ);
	cr_expect_eq(r.sent[0].u.req.service_id, 0x100000000000004a);
	cr_expect_eq(r.sent[0].u.req.qpn, 0x451);
	cr_expect_eq(r.sent[0].u.req.pkey, 0xffff);
	cr_expect_eq(r.sent[0].u.req.primary.local_gid[15], 2);
	cr_expect_eq(r.sent[0].u.req.primary.remote_gid[15], 1);
	cr_expect_eq(priv_qpn(&r.sent[0]), 0x49);
	ddps_cm_free(r.cm);
}

Test(ipoib_link, mode_is_one_that_both_have,
     .description = "4755-3.1-12 4755-7-1 4755-3.1-4 4755-3.1-5")
{
	static const struct {
		uint8_t own, peer;
		bool connects;
		uint8_t transport;
	} row[] = {
		{ 0x80, 0x80, true, DDPS_CM_RC },  { 0xc0, 0xc0, true, DDPS_CM_RC },
		{ 0xc0, 0x40, true, DDPS_CM_UC },  { 0x40, 0xc0, true, DDPS_CM_UC },
		{ 0x80, 0x40, false, DDPS_CM_RC }, { 0x80, 0x00, false, DDPS_CM_RC },
		{ 0x00, 0xc0, false, DDPS_CM_RC },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct rig r;

		init_ipoib_link_rig(&r, row[i].own, row[i].peer);
		connect_ipoib_link(&r);
		cr_assert_eq(r.n_sent, row[i].connects, "row %zu", i);
		if (row[i].connects)
			cr_expect_eq(r.sent[0].u.req.transport, row[i].transport, "row %zu", i);
		ddps_cm_free(r.cm);
	}
}

Test(ipoib_link, own_connection_comes_up_and_breaks,
     .description = "4755-5.1-4 4755-5.1-5 4755-3.2-10")
{
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	connect_ipoib_link(&r);
	rx_rep(&r, 65524);
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].hdr.attr_id, DDPS_CM_RTU);
	cr_expect_eq(priv_qpn(&r.sent[0]), 0x49);
	cr_expect(r.n_up == 1 && r.to_send && r.up_mtu == 32768);
	r.n_sent = 0;
	ddps_ipoib_link_broken(&r.link, r.up_id, r.now);
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].hdr.attr_id, DDPS_CM_DREQ);
	cr_expect_eq(r.n_down, 1);
	connect_ipoib_link(&r);
	cr_expect_eq(r.n_sent, 1);
	ddps_cm_free(r.cm);
}

Test(ipoib_link, rep_with_too_small_a_receive_mtu_is_refused, .description = "4755-3.2-11 4755-5-1")
{
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	connect_ipoib_link(&r);
	rx_rep(&r, 1283);
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].u.rej.reason, DDPS_CM_REJ_CONSUMER);
	cr_expect_eq(r.sent[0].u.rej.msg, DDPS_CM_MSG_REP);
	cr_expect_eq(priv_qpn(&r.sent[0]), 0x49);
	cr_expect(r.n_up == 0 && r.n_down == 1);
	connect_ipoib_link(&r);
	cr_expect_eq(r.n_sent, 0); /* back-off */
	ddps_cm_free(r.cm);
}

Test(ipoib_link, other_form_of_service_id_is_tried)
{
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	connect_ipoib_link(&r);
	rx_rej(&r, DDPS_CM_REJ_SERVICE_ID);
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].u.req.service_id, 0x010000000000004a);
	rx_rej(&r, DDPS_CM_REJ_SERVICE_ID);
	cr_expect_eq(r.n_sent, 0);
	cr_expect_eq(r.n_resolve, 1);
	ddps_cm_free(r.cm);
}

Test(ipoib_link, inbound_connection_serves_both_ways_or_one,
     .description = "4755-2.3-4 4755-3.2-3 4755-6-1")
{
	for (unsigned two_way = 0; two_way < 2; two_way++) {
		struct rig r;

		init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
		rx_req(&r);
		cr_assert_eq(r.n_sent, 1);
		cr_expect_eq(r.sent[0].hdr.attr_id, DDPS_CM_REP);
		cr_expect_eq(r.sent[0].u.rep.qpn, 0x450);
		cr_expect_eq(priv_qpn(&r.sent[0]), 0x49);
		rx_rtu(&r, two_way);
		cr_expect(r.n_up == 1 && r.up_mtu == 32768);
		cr_expect_eq(r.to_send, two_way);
		connect_ipoib_link(&r);
		cr_expect_eq(r.n_sent, !two_way); /* a Linux peer: one for each direction */
		ddps_cm_free(r.cm);
	}
}

Test(ipoib_link, data_without_rtu_makes_a_one_way_connection)
{
	struct ddps_cm_outs o;
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	rx_req(&r);
	cr_assert_eq(ddps_cm_data_seen(r.cm, r.sent[0].u.rep.local_id), 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(r.n_up, 0);
		r.now = ddps_cm_deadline(r.cm);
		cr_assert_eq(ddps_cm_tick(r.cm, r.now, &o), 1);
		for (unsigned j = 0; j < o.n_report; j++)
			ddps_ipoib_link_report(&r.link, &o.report[j], r.now);
	}
	cr_expect(r.n_up == 1 && !r.to_send);
	ddps_cm_free(r.cm);
}

Test(ipoib_link, dreq_is_answered_immediately, .description = "4755-3.4-3")
{
	struct ddps_cm_mad m;
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	rx_req(&r);
	rx_rtu(&r, true);
	ddps_cm_mad_init(&m, DDPS_CM_DREQ, 5);
	m.u.dreq.local_id = PEER_ID;
	m.u.dreq.remote_id = r.up_id;
	m.u.dreq.remote_qpn = 0x450;
	feed_ipoib_link_rx(&r, &m);
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].hdr.attr_id, DDPS_CM_DREP);
	cr_expect_eq(r.n_down, 1);
	r.now = ddps_cm_deadline(r.cm);
	cr_expect_eq(ddps_cm_state(r.cm, r.up_id), DDPS_CM_ST_TIMEWAIT);
	ddps_cm_free(r.cm);
}

Test(ipoib_link, without_a_queue_pair_there_is_no_connection, .description = "4755-3.2-11")
{
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	r.no_qp = true;
	connect_ipoib_link(&r);
	cr_expect_eq(r.n_sent, 0);
	cr_expect_eq(r.link.peer.own, DDPS_IPOIB_OWN_FAILED);
	rx_req(&r);
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].u.rej.reason, DDPS_CM_REJ_NO_RESOURCES);
	cr_expect_eq(r.link.peer.n_pending, 0);
	r.no_qp = false;
	rx_req(&r); /* resent: decided afresh */
	cr_assert_eq(r.n_sent, 1);
	cr_expect_eq(r.sent[0].hdr.attr_id, DDPS_CM_REP);
	ddps_cm_free(r.cm);
}

Test(ipoib_link, everything_ends_with_the_interface,
     .description = "4755-3.4-1 4755-3.4-2 4755-3.2-6")
{
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	rx_req(&r);
	rx_rtu(&r, false);
	connect_ipoib_link(&r);
	rx_rep(&r, 65524);
	r.n_sent = 0;
	ddps_ipoib_link_close(&r.link, r.now);
	cr_assert_eq(r.n_sent, 2); /* one each way */
	cr_expect_eq(r.sent[0].hdr.attr_id, DDPS_CM_DREQ);
	cr_expect_eq(r.sent[1].hdr.attr_id, DDPS_CM_DREQ);
	cr_expect_eq(r.n_down, 2);
	ddps_cm_free(r.cm);
}

Test(ipoib_link, exchanges_that_wait_are_taken_back_with_the_interface,
     .description = "4755-3.4-1 4755-3.2-11")
{
	struct rig r;

	init_ipoib_link_rig(&r, DDPS_IPOIB_RC, DDPS_IPOIB_RC);
	connect_ipoib_link(&r);
	rx_req(&r); /* own key is smaller: accepted */
	cr_assert_eq(r.sent[0].hdr.attr_id, DDPS_CM_REP);
	r.n_sent = 0;
	ddps_ipoib_link_close(&r.link, r.now);
	cr_assert_eq(r.n_sent, 2);
	cr_expect_eq(r.sent[0].u.rej.reason, DDPS_CM_REJ_TIMEOUT);
	cr_expect_eq(r.sent[1].u.rej.reason, DDPS_CM_REJ_CONSUMER);
	cr_expect_eq(r.sent[1].u.rej.msg, DDPS_CM_MSG_OTHER);
	cr_expect_eq(priv_qpn(&r.sent[1]), 0x49);
	cr_expect(!r.link.peer.own_id && !r.link.peer.n_pending && !r.n_resolve);
	ddps_cm_free(r.cm);
}
