/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports of a subnet in memory, IPoIB interfaces on them, and single packets. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <ddpsess/ipoib_if.h>
#include "ipoib_cm/ib/node.h"
#include "ipoib_cm/wire/wire.h"
#include "support/ip4.h"

#define MS    1000000ull
#define SEC   (1000 * MS)
#define NODES 3
#define WIRE  4096
#define UD_OP (DDPS_IB_UD | DDPS_IB_SEND_ONLY)

struct flying {
	uint16_t slid, lid;
	struct ddps_ib_pkt p;
	uint8_t data[DDPS_IB_MTU_MAX];
};

struct peer {
	struct ddps_ib_node *n;
	struct ddps_ipoib_if *f;
	struct ddps_ib_node_config cfg;
	unsigned n_rx;
	size_t len;
	unsigned seen_tx, seen_rx, seen_conn;
};

static struct peer peer[NODES]; /* LIDs from 1; the first has the administration */
static struct flying *wire;
static unsigned n_wire, loss; /* per mille */
static size_t hole;	      /* what is longer is lost; 0: nothing */
static uint32_t rng;
static uint64_t now;
static uint8_t broadcast[16];
static bool same_qpns;

static bool take_ib_node_send(void *w, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	struct flying *f = &wire[n_wire];

	cr_assert_lt(group, DDPS_SAC_GROUPS);
	cr_assert_lt(n_wire, WIRE);
	f->slid = ((struct peer *)w)->cfg.lid;
	f->lid = lid;
	f->p = *p;
	cr_assert_leq(p->len, sizeof(f->data));
	if (p->len)
		memcpy(f->data, p->data, p->len);
	n_wire++;
	return true;
}

static void deliver_to_ib_node(void *user, const void *packet, size_t len)
{
	struct peer *p = user;

	(void)packet;
	p->n_rx++;
	p->len = len;
}

static void see_node_packet(void *user, const struct ddps_ib_seen *s)
{
	struct peer *p = user;

	p->seen_tx += s->tx;
	p->seen_rx += !s->tx;
	p->seen_conn += s->connected;
	cr_assert(s->slid && s->dlid && s->frame);
}

static void make_ib_node(unsigned i, uint16_t pkey)
{
	struct ddps_ipoib_if_calls calls = { sizeof(calls), deliver_to_ib_node, NULL, &peer[i] };
	struct ddps_ipoib_if_config c;
	struct peer *p = &peer[i];

	*p = (struct peer){ .cfg = { .lid = (uint16_t)(1 + i),
				     .sa_lid = 1,
				     .qpn = same_qpns ? 0x48 : 0x48 + i,
				     .pkey = pkey,
				     .scope = 2,
				     .mtu_max = 5,
				     .mtu = 4,
				     .life = 14,
				     .qkey = 0x80001234,
				     .max_qps = 8,
				     .tx_octets = 1 << 20,
				     .rx_octets = 1 << 20,
				     .seed = 77 * i,
				     .send = take_ib_node_send,
				     .up = ddps_ipoib_if_up(),
				     .see = see_node_packet } };
	p->cfg.wire = p->cfg.see_user = p;
	memcpy(p->cfg.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = (uint8_t)(1 + i) }, 16);
	cr_assert_eq(ddps_ib_node_new(&p->n, &p->cfg), 0);
	ddps_ipoib_if_config_init(&c);
	c.me.addr = (struct ddps_ipoib_lladdr){ .flags = DDPS_IPOIB_RC, .qpn = p->cfg.qpn };
	memcpy(c.me.addr.gid, p->cfg.gid, 16);
	c.me.pkey = pkey;
	c.me.rx_mtu = 65524;
	c.has_ip4 = true;
	memcpy(c.ip4, (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + i) }, 4);
	c.prefix4 = 24;
	c.retry_count = c.rnr_retry = 7;
	c.ca_guid = 1 + i;
	c.seed = i;
	c.probe_ns = MS;
	cr_assert_eq(ddps_ipoib_if_new(&p->f, &c, ddps_ib_node_port(p->n), &calls), 0);
	ddps_ib_node_user(p->n, p->f);
	ddps_ib_node_tick(p->n, now);
	cr_assert_eq(ddps_ipoib_if_start(p->f, now), 0);
}

static void init(void)
{
	now = SEC;
	cr_assert_eq(ddps_ipoib_mgid_broadcast(broadcast, 0xffff, 2), 0);
	n_wire = loss = 0;
	hole = 0;
	rng = 1;
	wire = calloc(WIRE, sizeof(*wire));
	for (unsigned i = 0; i < NODES; i++)
		make_ib_node(i, 0xffff);
}

static void fini(void)
{
	for (unsigned i = 0; i < NODES; i++) {
		ddps_ipoib_if_free(peer[i].f);
		ddps_ib_node_free(peer[i].n);
	}
	free(wire);
}

#define NodeTest(name, ids) Test(ib_node, name, .init = init, .fini = fini, .description = ids)

static void carry_ib_node(const struct flying *f)
{
	struct ddps_ib_pkt p = f->p;
	bool mcast = f->lid >= DDPS_MLID_FIRST;

	p.data = f->data;
	for (unsigned i = 0; i < NODES; i++)
		if (mcast || peer[i].cfg.lid == f->lid)
			ddps_ib_node_rx(peer[i].n, f->slid, mcast ? f->lid : 0, &p, now);
}

static void settle_ib_node(void)
{
	while (n_wire) {
		struct flying *was = wire;
		unsigned n = n_wire;

		wire = calloc(WIRE, sizeof(*wire));
		n_wire = 0;
		for (unsigned i = 0; i < n; i++) {
			rng = rng * 1664525 + 1013904223;
			if ((rng >> 8) % 1000 >= loss && (!hole || was[i].p.len <= hole))
				carry_ib_node(&was[i]);
		}
		free(was);
	}
}

static void run_ib_node(uint64_t ns)
{
	uint64_t end = now + ns;

	for (;;) {
		uint64_t due = end;

		settle_ib_node();
		for (unsigned i = 0; i < NODES; i++) {
			uint64_t a = ddps_ib_node_due(peer[i].n);
			uint64_t b = ddps_ipoib_if_deadline(peer[i].f);

			due = a < due ? a : due;
			due = b < due ? b : due;
		}
		if (due >= end)
			break;
		now = due > now ? due : now + 1;
		for (unsigned i = 0; i < NODES; i++) {
			ddps_ib_node_tick(peer[i].n, now);
			if (ddps_ipoib_if_deadline(peer[i].f) <= now)
				ddps_ipoib_if_tick(peer[i].f, now);
		}
	}
	now = end;
	for (unsigned i = 0; i < NODES; i++)
		ddps_ib_node_tick(peer[i].n, now);
}

static void send_ib_node_ip(unsigned from, const uint8_t to[4], size_t len)
{
	static uint8_t p[65536];

	ip4_header(p, len, IP4_WHOLE, (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + from) }, to);
	cr_assert_eq(ddps_ipoib_if_send(peer[from].f, p, len, now), 0);
}

static void send_to_ib_node(unsigned from, unsigned to, size_t len)
{
	send_ib_node_ip(from, (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + to) }, len);
}

static uint64_t count_ib_node(unsigned i, const char *name)
{
	uint64_t v = 0;
	const char *at;

	for (unsigned k = 0; (at = ddps_ib_node_counter(peer[i].n, k, &v)); k++)
		if (!strcmp(at, name))
			return v;
	cr_assert(false, "no counter %s", name);
	return 0;
}

static unsigned count_ib_node_conns(unsigned i)
{
	struct ddps_ipoib_if_conn_info c;
	unsigned up = 0;
	int res;

	for (unsigned k = 0; (res = ddps_ipoib_if_conn_info(peer[i].f, k, &c)) >= 0; k++)
		up += res && c.up;
	return up;
}

NodeTest(interfaces_come_up_and_connect, "4391-5-2 4391-5-3 4391-9.1.2-1")
{
	run_ib_node(100 * MS);
	for (unsigned i = 0; i < NODES; i++)
		cr_expect_eq(ddps_ipoib_if_state(peer[i].f), DDPS_IPOIB_IF_UP);
	send_to_ib_node(0, 1, 65000);
	run_ib_node(100 * MS);
	send_to_ib_node(0, 1, 65000);
	send_to_ib_node(1, 0, 65000);
	run_ib_node(100 * MS);
	cr_expect_eq(count_ib_node_conns(0), 1);
	cr_expect_eq(count_ib_node_conns(1), 1);
	cr_expect_eq(peer[0].n_rx, 1);
	cr_expect_eq(peer[1].n_rx, 2);
	cr_expect_eq(peer[1].len, 65000);
	cr_expect_geq(peer[0].seen_conn, 2);
	cr_expect(peer[0].seen_tx && peer[1].seen_rx);
	cr_expect_eq(count_ib_node(0, "rx_qkey") + count_ib_node(1, "rx_qkey") +
			     count_ib_node(2, "rx_pkey"),
		     0);
}

static void init_same(void)
{
	same_qpns = true;
	init();
	same_qpns = false;
}

/* What is broadcast by another node's queue pair with one's own number is not one's own. */
Test(ib_node, equal_queue_pair_numbers_reach_each_other, .init = init_same, .fini = fini)
{
	run_ib_node(100 * MS);
	send_to_ib_node(0, 1, 1000);
	run_ib_node(100 * MS);
	send_to_ib_node(1, 0, 1000);
	run_ib_node(100 * MS);
	cr_expect_eq(peer[1].n_rx, 1);
	cr_expect_eq(peer[0].n_rx, 1);
	cr_expect_eq(count_ib_node_conns(0), 1);
}

NodeTest(packets_arrive_under_loss, "")
{
	unsigned sent = 0;

	run_ib_node(100 * MS);
	send_to_ib_node(0, 1, 100);
	run_ib_node(SEC);
	loss = 20;
	for (; sent < 50; sent++) {
		send_to_ib_node(0, 1, 30000);
		run_ib_node(20 * MS);
	}
	run_ib_node(60 * SEC);
	cr_expect_eq(peer[1].n_rx, 51);
	cr_expect_gt(count_ib_node(0, "qp_again"), 0);
	cr_expect_eq(count_ib_node(0, "qp_failed"), 0);
}

/* Something between drops long packets without a word; of the last connections no packet is acknowledged. */
NodeTest(contact_30_a_way_that_drops_long_packets_is_said, "")
{
	const char *notice = NULL;

	run_ib_node(100 * MS);
	send_to_ib_node(0, 1, 30000);
	run_ib_node(100 * MS);
	send_to_ib_node(0, 1, 30000);
	run_ib_node(SEC);
	cr_assert_eq(peer[1].n_rx, 2);
	hole = 1400;
	for (unsigned s = 0; s < 120 && !notice; s++) {
		send_to_ib_node(0, 1, 30000);
		run_ib_node(SEC);
		notice = ddps_ib_node_notice(peer[0].n);
	}
	cr_assert_str_eq(
		notice,
		"packets with 2048 octets of payload to LID 2 are never acknowledged, and the "
		"short ones that make connections are answered: something between drops long "
		"ones without a word; try: a larger MTU of each network between, or "
		"--link-mtu 1024 at the administration");
	cr_expect_geq(count_ib_node(0, "qp_failed"), 2);
	cr_expect_null(ddps_ib_node_notice(peer[0].n), "once");
	for (unsigned s = 0; s < 300 && !notice; s++) {
		send_to_ib_node(0, 1, 30000);
		run_ib_node(SEC);
		notice = ddps_ib_node_notice(peer[0].n);
	}
	cr_expect_not_null(notice, "it lasts");
}

/* A peer that is gone, or comes back, is no such way. */
NodeTest(contact_30_a_peer_that_is_gone_drops_nothing, "")
{
	run_ib_node(100 * MS);
	for (unsigned i = 0; i < 4; i++) {
		loss = 0;
		send_to_ib_node(0, 1, 30000);
		run_ib_node(2 * SEC);
		send_to_ib_node(0, 1, 30000);
		run_ib_node(i % 2 ? SEC : 0);
		send_to_ib_node(0, 1, i < 2 ? 30000 : 100);
		loss = 1000;
		run_ib_node(10 * SEC);
	}
	loss = 0;
	run_ib_node(10 * SEC);
	cr_expect_geq(count_ib_node(0, "qp_failed"), 2);
	cr_expect_null(ddps_ib_node_notice(peer[0].n));
}

/* There is no such group: what may leave the link goes to the routers, if there are any. */
NodeTest(what_has_no_group_goes_to_the_routers, "4391-10-2 4391-10-6")
{
	static const uint8_t wide[4] = { 239, 1, 2, 4 }, narrow[4] = { 224, 0, 0, 77 };
	static const uint8_t all_routers[4] = { 224, 0, 0, 2 };
	struct ddps_ipoib_port *router = ddps_ib_node_port(peer[1].n);
	uint8_t mgid[16];

	run_ib_node(100 * MS);
	send_ib_node_ip(0, wide, 100);
	run_ib_node(100 * MS);
	cr_expect_eq(count_ib_node(0, "ud_no_group"), 1); /* no routers yet */
	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, all_routers, 0xffff, 2), 0);
	cr_assert_eq(router->ops->join(router, mgid), 0);
	run_ib_node(100 * MS); /* and the report of that group */
	send_ib_node_ip(0, wide, 100);
	run_ib_node(100 * MS);
	cr_expect_eq(peer[1].n_rx, 1);
	cr_expect_eq(peer[2].n_rx, 0);
	send_ib_node_ip(0, narrow, 100);
	run_ib_node(100 * MS);
	cr_expect_eq(peer[1].n_rx, 1);
	cr_expect_eq(count_ib_node(0, "ud_no_group"), 2);
	/* the group comes: the traffic moves */
	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, wide, 0xffff, 2), 0);
	cr_assert_eq(ddps_ib_node_port(peer[2].n)->ops->join(ddps_ib_node_port(peer[2].n), mgid),
		     0);
	run_ib_node(100 * MS);
	send_ib_node_ip(0, wide, 100);
	run_ib_node(100 * MS);
	cr_expect_eq(peer[1].n_rx, 1);
	cr_expect_eq(peer[2].n_rx, 1);
}

/* A datagram for a group waits until the group is joined, or known not to be there. */
NodeTest(groups_are_joined_to_be_sent_to, "4391-10-1 4391-10-3")
{
	static const uint8_t ip[4] = { 239, 1, 2, 3 };
	uint8_t mgid[16];

	run_ib_node(100 * MS);
	send_ib_node_ip(0, ip, 100);
	run_ib_node(100 * MS);
	cr_expect_eq(count_ib_node(0, "ud_held"), 2); /* for it, and for the routers */
	cr_expect_eq(count_ib_node(0, "ud_no_group"), 1);
	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, ip, 0xffff, 2), 0);
	cr_assert_eq(ddps_ib_node_port(peer[1].n)->ops->join(ddps_ib_node_port(peer[1].n), mgid),
		     0);
	run_ib_node(100 * MS);
	for (unsigned i = 0; i < 3; i++)
		send_ib_node_ip(0, ip, 100 + i);
	run_ib_node(100 * MS);
	cr_expect_eq(peer[1].n_rx, 3);
	cr_expect_eq(peer[2].n_rx, 0, "it has not joined");
	cr_expect_eq(count_ib_node(2, "rx_group"), 3);
}

/* ---- single packets ---- */

static void inject(unsigned to, uint16_t slid, uint16_t mlid, struct ddps_ib_pkt *p)
{
	ddps_ib_node_rx(peer[to].n, slid, mlid, p, now);
}

NodeTest(wrong_keys_are_dropped, "4391-9.1-1")
{
	static const uint8_t frame[64] = { 8 };
	struct ddps_ib_pkt p = { .opcode = UD_OP,
				 .pkey = 0xffff,
				 .qpn = 0x49,
				 .qkey = 0x80001234,
				 .data = frame,
				 .len = sizeof(frame) };
	uint64_t base;

	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "rx_qkey"), 1, "before the link is known");
	run_ib_node(100 * MS);
	base = count_ib_node(1, "ud_rx");
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "ud_rx"), base + 1);
	p.qkey++;
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "rx_qkey"), 2);
	p.qkey--;
	p.pkey = 0x8001;
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "rx_pkey"), 1);
	p.pkey = 0x7fff; /* a limited member and a full one */
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "ud_rx"), base + 2);
	p.qpn = 0x4a;
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "rx_qpn"), 1);
	p.qpn = DDPS_IPOIB_QPN_MCAST;
	inject(1, 3, 0xc000, &p);
	cr_expect_eq(count_ib_node(1, "ud_rx"), base + 3);
	inject(1, 2, 0xc000, &p); /* our own, come back */
	cr_expect_eq(count_ib_node(1, "ud_rx"), base + 3);
	inject(1, 3, 0xc001, &p);
	cr_expect_eq(count_ib_node(1, "rx_group"), 1);
	p.qpn = 0x49; /* a group's packet for one queue pair */
	inject(1, 3, 0xc000, &p);
	cr_expect_eq(count_ib_node(1, "rx_group"), 2);
	p.opcode = DDPS_IB_SEND_ONLY;
	inject(1, 3, 0xc000, &p);
	cr_expect_eq(count_ib_node(1, "rx_group"), 3);
}

NodeTest(mads_that_are_not_for_us, "")
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 3, 2, 0x81 };
	struct ddps_ib_pkt p = { .opcode = UD_OP,
				 .pkey = 0xffff,
				 .qpn = 1,
				 .qkey = DDPS_CM_QKEY,
				 .data = mad,
				 .len = sizeof(mad) };
	uint64_t sac_bad;

	run_ib_node(100 * MS);
	inject(1, 3, 0, &p); /* an answer that is not the administration's */
	cr_expect_eq(count_ib_node(1, "mad_bad"), 1);
	sac_bad = count_ib_node(1, "sac_bad");
	inject(1, 1, 0, &p);
	cr_expect_eq(count_ib_node(1, "sac_bad"), sac_bad + 1);
	mad[3] = 1; /* a query to a node without one */
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "mad_bad"), 2);
	mad[1] = 0x81; /* another class */
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "mad_bad"), 3);
	p.len = 252;
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "mad_bad"), 4);
	p.qkey = 0x80001234;
	inject(1, 3, 0, &p);
	cr_expect_eq(count_ib_node(1, "rx_qkey"), 1);
}

NodeTest(contact_34_questions_about_the_node_are_answered, "")
{
	uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 4, 1, 1, [17] = 0x12, [65] = 1 };
	struct ddps_ib_pkt p = { .opcode = UD_OP,
				 .pkey = 0xffff,
				 .qpn = 1,
				 .qkey = DDPS_CM_QKEY,
				 .data = mad,
				 .len = sizeof(mad) };
	uint64_t bad;

	run_ib_node(100 * MS);
	bad = count_ib_node(1, "mad_bad");
	n_wire = 0;
	inject(1, 3, 0, &p);
	cr_assert_eq(n_wire, 1);
	cr_expect_eq(wire[0].lid, 3);
	cr_expect_eq(wire[0].data[3], 0x81);
	cr_expect_gt(wire[0].data[64 + 35], 0, "packets sent");
	cr_expect_gt(wire[0].data[64 + 39], 0, "and received");
	cr_expect_eq(wire[0].data[64 + 9], (uint8_t)bad, "errors");
	mad[3] = 0x81;
	inject(1, 3, 0, &p);
	cr_expect_eq(n_wire, 1, "an answer is not answered");
	cr_expect_eq(count_ib_node(1, "mad_bad"), bad + 1);
}

/* Nobody but the node at the other end can say anything on a connection. */
NodeTest(packets_of_a_third_node_do_not_reach_a_connection, "")
{
	struct ddps_ipoib_if_conn_info c;
	struct ddps_ib_pkt p = { .opcode = DDPS_IB_SEND_MIDDLE, .pkey = 0xffff };

	run_ib_node(100 * MS);
	send_to_ib_node(0, 1, 100);
	run_ib_node(100 * MS);
	cr_assert_eq(ddps_ipoib_if_conn_info(peer[0].f, 0, &c), 1);
	p.qpn = c.qpn;
	inject(0, 3, 0, &p);
	cr_expect_eq(count_ib_node(0, "rx_qpn"), 1);
	cr_expect_eq(count_ib_node_conns(0), 1);
	p.qpn ^= 0x100; /* an older life of the same place */
	inject(0, 2, 0, &p);
	cr_expect_eq(count_ib_node(0, "rx_qpn"), 2);
}

NodeTest(queue_pairs_are_bounded_and_their_numbers_fresh, "")
{
	struct ddps_ipoib_port *port = ddps_ib_node_port(peer[0].n);
	uint32_t qpn[9], again;

	cr_expect_eq(port->ops->qp_create(port, 7, 4096, qpn), DDPS_E_UNSUPPORTED);
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_eq(port->ops->qp_create(port, i % 2 ? DDPS_CM_RC : DDPS_CM_UC, 4096,
						  &qpn[i]),
			     0);
		cr_expect(qpn[i] > 1 && qpn[i] < DDPS_IPOIB_QPN_MCAST && qpn[i] != 0x48);
		for (unsigned k = 0; k < i; k++)
			cr_expect_neq(qpn[i], qpn[k]);
	}
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 4096, &qpn[8]), DDPS_E_LIMIT);
	port->ops->qp_destroy(port, qpn[3]);
	cr_assert_eq(port->ops->qp_create(port, DDPS_CM_RC, 4096, &again), 0);
	cr_expect_neq(again, qpn[3]);
	cr_expect_eq(port->ops->qp_send(port, qpn[3], "x", 1), DDPS_E_STATE);
}

/* The three nodes of init() again, with these P_Keys. */
static void begin_ib_node_anew(uint16_t first, uint16_t second, uint16_t third)
{
	for (unsigned i = 0; i < NODES; i++) {
		ddps_ipoib_if_free(peer[i].f);
		ddps_ib_node_free(peer[i].n);
	}
	n_wire = 0;
	make_ib_node(0, first);
	make_ib_node(1, second);
	make_ib_node(2, third);
	run_ib_node(100 * MS);
}

/* A P_Key of its own makes another link; limited members talk to full ones only. */
Test(ib_node, pkeys_make_links, .init = init, .fini = fini)
{
	begin_ib_node_anew(0x8001, 0x0001, 0x8002);
	cr_expect_eq(ddps_ipoib_if_state(peer[0].f), DDPS_IPOIB_IF_UP);
	cr_expect_eq(ddps_ipoib_if_state(peer[1].f), DDPS_IPOIB_IF_UP);
	cr_expect_eq(ddps_ipoib_if_state(peer[2].f), DDPS_IPOIB_IF_JOINING, "no such link");
	send_to_ib_node(1, 0, 100);
	run_ib_node(SEC);
	cr_expect_eq(peer[0].n_rx, 1);
}

Test(ib_node, limited_members_do_not_reach_each_other, .init = init, .fini = fini)
{
	begin_ib_node_anew(0x8001, 0x0001, 0x0001);
	for (unsigned i = 0; i < NODES; i++)
		cr_assert_eq(ddps_ipoib_if_state(peer[i].f), DDPS_IPOIB_IF_UP);
	send_to_ib_node(1, 0, 100);
	send_to_ib_node(2, 0, 100);
	run_ib_node(SEC);
	cr_expect_eq(peer[0].n_rx, 2, "a full member is reached by both");
	send_to_ib_node(1, 2, 100);
	send_to_ib_node(2, 1, 100);
	run_ib_node(SEC);
	cr_expect_eq(peer[1].n_rx + peer[2].n_rx, 0);
}

NodeTest(what_the_network_cannot_carry_is_not_joined, "")
{
	struct ddps_ib_node_config c = peer[1].cfg;

	run_ib_node(100 * MS);
	ddps_ib_node_free(peer[1].n);
	c.mtu_max = c.mtu = 3; /* 1024, where the link has 2048 */
	cr_assert_eq(ddps_ib_node_new(&peer[1].n, &c), 0);
	ddps_ib_node_user(peer[1].n, peer[1].f);
	cr_assert_eq(ddps_ipoib_if_stats(peer[1].f)->join_failed, 0);
	ddps_ib_node_tick(peer[1].n, now);
	cr_assert_eq(ddps_ib_node_port(peer[1].n)->ops->join(ddps_ib_node_port(peer[1].n),
							     broadcast),
		     0);
	settle_ib_node();
	cr_expect_eq(ddps_ipoib_if_stats(peer[1].f)->join_failed, 1);
	ddps_ipoib_if_free(peer[1].f); /* its port has been replaced */
	peer[1].f = NULL;
}

NodeTest(refuses_bad_configurations, "")
{
	static const struct ddps_ipoib_up *none;
	struct ddps_ib_node *n;

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		struct ddps_ib_node_config c = peer[0].cfg;                                        \
		change;                                                                            \
		cr_expect_eq(ddps_ib_node_new(&n, &c), DDPS_E_INVAL, #change);                     \
	} while (0)
	REFUSED(c.lid = 0);
	REFUSED(c.lid = 256);
	REFUSED(c.sa_lid = 0);
	REFUSED(c.qpn = 1);
	REFUSED(c.qpn = 0xffffff);
	REFUSED(c.pkey = 0x8000);
	REFUSED(c.scope = 16);
	REFUSED(c.mtu = 0);
	REFUSED(c.mtu = 6);
	REFUSED(c.mtu_max = 3);
	REFUSED(c.life = 32);
	REFUSED(c.max_qps = 0);
	REFUSED(c.max_qps = 65537);
	REFUSED(c.up = none);
}

NodeTest(counters_have_names_of_their_own, "")
{
	const char *name[128];
	unsigned n = 0;
	uint64_t v;

	for (; (name[n] = ddps_ib_node_counter(peer[0].n, n, &v)); n++) {
		cr_assert_lt(n, 127);
		for (unsigned i = 0; i < n; i++)
			cr_expect_str_neq(name[i], name[n]);
	}
	cr_expect_gt(n, 30);
}

/* Whatever comes: a crash, a leak or a sanitizer's word is what this looks for. */
NodeTest(octets_from_anywhere, "")
{
	static uint8_t data[DDPS_IB_MTU_MAX];

	run_ib_node(100 * MS);
	send_to_ib_node(0, 1, 1000);
	run_ib_node(100 * MS);
	for (unsigned i = 0; i < 30000; i++) {
		struct ddps_ib_pkt p = { .pkey = 0xffff, .data = data };
		struct ddps_ipoib_if_conn_info c = { 0 };

		for (unsigned k = 0; k < 256; k++)
			data[k] = (uint8_t)((rng = rng * 1664525 + 1013904223) >> 24);
		(void)ddps_ipoib_if_conn_info(peer[0].f, 0, &c);
		p.opcode = (uint8_t)(rng >> 9);
		if (i % 3 == 0)
			p.opcode = UD_OP;
		p.qpn = i % 3 ? c.qpn : i % 2 ? 1 : 0x48;
		p.psn = rng >> 7 & 0xffffff;
		p.syndrome = (uint8_t)(rng >> 11);
		p.qkey = p.qpn == 1 ? DDPS_CM_QKEY : 0x80001234;
		p.len = i % 2 ? 256 : rng % 300;
		data[0] = 1;
		data[1] = i % 4 ? 3 : 7;
		data[2] = 2;
		inject(0, (uint16_t)(i % 5 ? 2 : 1), i % 7 ? 0 : 0xc000, &p);
		if (i % 100 == 0)
			run_ib_node(MS);
		if (i % 1000 == 0)
			send_to_ib_node(0, 1, 1000);
	}
	n_wire = 0;
}
