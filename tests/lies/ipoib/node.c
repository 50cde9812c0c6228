/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is on the network besides: the target, which answers echoes, an administration, the suite's port. */
#include "lies/ipoib/world.h"
#include "ipoib_cm/ib/node.h"
#include "support/icrc.h"
#include <ddpsess/ipoib_if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IP4   20u
#define NODES (STRANGER + 1)

static struct ddps_ib_node *node[NODES];
static struct ddps_ipoib_if *target;
static bool by_port;

/* ---- packets ---- */

static bool take_node_liar_send(void *wire, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	uint16_t from = (uint16_t)(uintptr_t)wire;
	const struct ddps_ib_udp_hdr h = world_header(from, lid);
	uint8_t b[DDPS_IB_PKT_MAX];
	size_t len = ddps_ib_pkt_encode(b, p);

	(void)group;
	if (p->len)
		memcpy(b + len, p->data, p->len);
	len += p->len;
	memset(b + len, 0, p->pad);
	len += p->pad;
	icrc_put(&h, b, len);
	world_says(from, lid, b, len + DDPS_IB_ICRC_LEN);
	return true;
}

void nodes_take(uint16_t lid, uint16_t from, uint16_t mlid, const uint8_t *b, size_t len)
{
	const struct ddps_ib_udp_hdr h = world_header(from, mlid ? mlid : lid);
	struct ddps_ib_pkt p;

	/* what was asked in a stranger's name is answered to the target */
	if (lid == STRANGER && !mlid)
		lid = TARGET;
	if (lid >= NODES || !node[lid] || ddps_ib_pkt_decode(&p, b, len))
		return;
	if (ddps_ib_icrc_check(&h, b, len) == DDPS_IB_ICRC_BAD)
		return;
	ddps_ib_node_rx(node[lid], from, mlid, &p, world.now);
	ddps_ib_node_pump(node[lid], world.now);
}

uint64_t nodes_due(void)
{
	uint64_t due = ddps_ipoib_if_deadline(target);

	for (unsigned i = 0; i < NODES; i++)
		if (node[i] && ddps_ib_node_due(node[i]) < due)
			due = ddps_ib_node_due(node[i]);
	return due;
}

void nodes_tick(void)
{
	for (unsigned i = 0; i < NODES; i++)
		if (node[i]) {
			ddps_ib_node_tick(node[i], world.now);
			ddps_ib_node_pump(node[i], world.now);
		}
	if (ddps_ipoib_if_deadline(target) <= world.now)
		ddps_ipoib_if_tick(target, world.now);
}

bool nodes_suite(void)
{
	return by_port;
}

/* ---- the target answers echoes, in one piece or in several ---- */

static struct {
	uint8_t b[65536 + IP4];
	size_t got, all;
	unsigned id;
} whole;

static void put_node_liar_sum(uint8_t *at, const uint8_t *p, size_t len)
{
	uint32_t s = 0;

	cf_put16(at, 0);
	for (size_t i = 0; i < len; i++)
		s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	cf_put16(at, (uint16_t)~s);
}

static void answer_node_liar(size_t len)
{
	uint8_t *p = whole.b, src[4];

	if (len < IP4 + 8 || p[IP4] != 8)
		return;
	memcpy(src, p + 12, 4);
	memcpy(p + 12, p + 16, 4);
	memcpy(p + 16, src, 4);
	cf_put16(p + 2, (uint16_t)len);
	cf_put16(p + 6, 0);
	put_node_liar_sum(p + 10, p, IP4);
	p[IP4] = 0;
	put_node_liar_sum(p + IP4 + 2, p + IP4, len - IP4);
	(void)ddps_ipoib_if_send(target, p, len, world.now);
}

static void deliver_to_node_liar(void *user, const void *packet, size_t len)
{
	const uint8_t *p = packet;
	size_t off;

	(void)user;
	if (len < IP4 || p[0] != 0x45 || p[9] != 1)
		return;
	off = (size_t)(cf_get16(p + 6) & 0x1fff) * 8;
	if (IP4 + off + len > sizeof whole.b)
		return;
	if (!off || cf_get16(p + 4) != whole.id) {
		whole.id = cf_get16(p + 4);
		whole.got = whole.all = 0;
	}
	if (!off)
		memcpy(whole.b, p, IP4);
	memcpy(whole.b + IP4 + off, p + IP4, len - IP4);
	whole.got += len - IP4;
	if (!(cf_get16(p + 6) & 0x2000))
		whole.all = off + len - IP4;
	if (whole.all && whole.got == whole.all)
		answer_node_liar(IP4 + whole.all);
}

/* ---- the suite's port: it forwards, and lies ---- */

static struct {
	struct ddps_ipoib_port port; /* first: what the suite takes for its port */
	struct ddps_ipoib_port *real;
	const struct ddps_ipoib_up *up;
	void *user;
} suite;

struct waiting {
	uint32_t qpn, peer, sent, acked;
};
static struct waiting waits[CI_QPS];

static bool may_node_run_again(void)
{
	return world.port.again && world.port.again--;
}

static int take_node_liar_ud(struct ddps_ipoib_port *p, const struct ddps_ipoib_lladdr *to,
			     const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	(void)p;
	return may_node_run_again() ? DDPS_E_AGAIN
				    : suite.real->ops->ud_send(suite.real, to, path, frame, len);
}

static int on_join(struct ddps_ipoib_port *p, const uint8_t mgid[16])
{
	(void)p;
	if (world.port.refused)
		suite.up->joined(suite.user, mgid, DDPS_E_LIMIT, 0, world.now);
	if (world.port.refused || world.port.deaf)
		return 0;
	return world.port.join ? world.port.join : suite.real->ops->join(suite.real, mgid);
}

static void on_leave(struct ddps_ipoib_port *p, const uint8_t mgid[16])
{
	(void)p;
	suite.real->ops->leave(suite.real, mgid);
}

static int take_node_liar_resolve(struct ddps_ipoib_port *p, const uint8_t gid[16])
{
	(void)p;
	if (world.port.no_path)
		suite.up->path(suite.user, gid, NULL, world.now);
	if (world.port.no_path || world.port.no_answer)
		return 0;
	return world.port.resolve ? world.port.resolve : suite.real->ops->resolve(suite.real, gid);
}

static int take_node_liar_mad(struct ddps_ipoib_port *p, ddps_cm_addr to,
			      const uint8_t mad[DDPS_CM_MAD_LEN])
{
	(void)p;
	if (world.port.mad_again && world.port.mad_again--)
		return DDPS_E_AGAIN;
	return suite.real->ops->mad_send(suite.real, to, mad);
}

static int on_create(struct ddps_ipoib_port *p, uint8_t transport, uint32_t rx_mtu, uint32_t *qpn)
{
	(void)p;
	return world.port.create ? world.port.create
				 : suite.real->ops->qp_create(suite.real, transport, rx_mtu, qpn);
}

static int on_ready(struct ddps_ipoib_port *p, uint32_t qpn, const struct ddps_ipoib_qp_to *to)
{
	(void)p;
	for (unsigned i = 0; i < CI_QPS; i++)
		if (!waits[i].qpn) {
			waits[i] = (struct waiting){ .qpn = qpn, .peer = to->qpn };
			break;
		}
	return world.port.ready ? world.port.ready : suite.real->ops->qp_ready(suite.real, qpn, to);
}

static int on_qp_send(struct ddps_ipoib_port *p, uint32_t qpn, const void *frame, size_t len)
{
	(void)p;
	if (may_node_run_again())
		return DDPS_E_AGAIN;
	for (unsigned i = 0; i < CI_QPS; i++)
		waits[i].sent += waits[i].qpn == qpn;
	return suite.real->ops->qp_send(suite.real, qpn, frame, len);
}

static void on_stop(struct ddps_ipoib_port *p, uint32_t qpn)
{
	(void)p;
	suite.real->ops->qp_stop(suite.real, qpn);
}

static void on_destroy(struct ddps_ipoib_port *p, uint32_t qpn)
{
	(void)p;
	suite.real->ops->qp_destroy(suite.real, qpn);
}

static const struct ddps_ipoib_port_ops ops = { .struct_size = sizeof(ops),
						.ud_send = take_node_liar_ud,
						.join = on_join,
						.leave = on_leave,
						.resolve = take_node_liar_resolve,
						.mad_send = take_node_liar_mad,
						.qp_create = on_create,
						.qp_ready = on_ready,
						.qp_send = on_qp_send,
						.qp_stop = on_stop,
						.qp_destroy = on_destroy };

static void up_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t now)
{
	struct ddps_ipoib_ud_from f = *from;

	(void)user;
	world.came = true;
	f.has_gid = true;
	memcpy(f.gid, world.o.gid, sizeof f.gid);
	f.gid[15] = (uint8_t)from->slid;
	suite.up->ud(suite.user, &f, frame, len, now);
}

static void up_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	(void)user;
	world.came = true;
	suite.up->mad(suite.user, from, mad, len, now);
}

static void up_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	(void)user;
	world.came = true;
	suite.up->qp(suite.user, qpn, frame, len, now);
}

static void up_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	(void)user;
	world.came = true;
	suite.up->qp_error(suite.user, qpn, err, now);
}

static void up_path(void *user, const uint8_t gid[16], const struct ddps_ipoib_path *path,
		    uint64_t now)
{
	(void)user;
	world.came = true;
	suite.up->path(suite.user, gid, path, now);
}

static void up_joined(void *user, const uint8_t mgid[16], int err, uint32_t link_mtu, uint64_t now)
{
	(void)user;
	world.came = true;
	suite.up->joined(suite.user, mgid, err, link_mtu, now);
}

static void up_link(void *user, bool up, uint64_t now)
{
	(void)user;
	suite.up->link(suite.user, up, now);
}

static const struct ddps_ipoib_up up_calls = { .struct_size = sizeof(up_calls),
					       .ud = up_ud,
					       .mad = up_mad,
					       .qp = up_qp,
					       .qp_error = up_qp_error,
					       .path = up_path,
					       .joined = up_joined,
					       .link = up_link };

/* For liars: what the fabric says to the suite. */
const struct ddps_ipoib_up *port_up(void **user)
{
	world.came = true;
	*user = suite.user;
	return suite.up;
}

void port_acked(uint32_t qpn, uint32_t msn)
{
	for (unsigned i = 0; i < CI_QPS; i++)
		if (waits[i].qpn == qpn)
			waits[i].acked = msn;
}

/* ---- life ---- */

static struct ddps_ib_node_config make_node_liar_config(uint16_t lid, uint32_t qpn)
{
	struct ddps_ib_node_config c = { .lid = lid,
					 .sa_lid = by_port || world.o.sa_lid ? SA : SUITE,
					 .qpn = qpn,
					 .pkey = 0xffff,
					 .scope = 2,
					 .mtu_max = world.target_mtu,
					 .mtu = world.o.mtu,
					 .life = world.o.life,
					 .qkey = world.o.qkey,
					 .max_qps = 512,
					 .late_acks = true,
					 .tx_octets = 1 << 24,
					 .rx_octets = 1 << 24,
					 .seed = 99u + lid + world.opened,
					 .send = take_node_liar_send,
					 .wire = (void *)(uintptr_t)lid,
					 .up = lid == TARGET ? ddps_ipoib_if_up() : &up_calls };

	memcpy(c.gid, world.o.gid, sizeof c.gid);
	c.gid[15] = (uint8_t)lid;
	return c;
}

static void must_node_liar(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "lies-ipoib: %s: error %d\n", what, err);
	abort();
}

static struct ddps_ipoib_port *open_lying_port(void *user, const struct ddps_ipoib_up *up,
					       void *up_user, struct ddps_conform_ipoib_node *n,
					       char *why, size_t len)
{
	struct ddps_ib_node_config c;

	(void)user;
	if (world.port.blind) {
		snprintf(why, len, "the cable is out");
		return NULL;
	}
	world.opened++;
	c = make_node_liar_config(SUITE,
				  world.port.qpn ? world.port.qpn : TARGET_QPN + 1 + world.opened);
	if (ddps_ib_node_new(&node[SUITE], &c))
		return NULL;
	suite.port.ops = &ops;
	suite.real = ddps_ib_node_port(node[SUITE]);
	suite.up = up;
	suite.user = up_user;
	memset(waits, 0, sizeof waits);
	memcpy(n->gid, c.gid, sizeof n->gid);
	n->qpn = world.port.says ? world.port.says : c.qpn;
	n->pkey = c.pkey;
	ddps_ib_node_tick(node[SUITE], world.now);
	return &suite.port;
}

static void close_lying_port(void *user)
{
	(void)user;
	ddps_ib_node_free(node[SUITE]);
	node[SUITE] = NULL;
}

static void run_lying_node(void *user, uint64_t until)
{
	(void)user;
	(void)world_turn(until);
	world.came = false;
}

static unsigned count_waiting_frames(void *user, uint32_t qpn)
{
	(void)user;
	for (unsigned i = 0; i < CI_QPS; i++)
		if (waits[i].qpn == qpn)
			return world.port.never + waits[i].sent - waits[i].acked;
	return 0;
}

const struct ddps_conform_ipoib_fabric world_fabric = { .struct_size = sizeof world_fabric,
							.open = open_lying_port,
							.close = close_lying_port,
							.run = run_lying_node,
							.waiting = count_waiting_frames };

static void no_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t now)
{
	(void)user, (void)from, (void)frame, (void)len, (void)now;
}

static void no_link(void *user, bool up, uint64_t now)
{
	(void)user, (void)up, (void)now;
}

/* The administration's node has no other user. */
static const struct ddps_ipoib_up nobody = { .struct_size = sizeof(nobody),
					     .ud = no_ud,
					     .link = no_link };

static void open_target(void)
{
	const struct ddps_ipoib_if_calls calls = { sizeof(calls), deliver_to_node_liar, NULL,
						   NULL };
	struct ddps_ib_node_config c = make_node_liar_config(TARGET, world.target_qpn);
	struct ddps_ipoib_if_config f;

	must_node_liar(ddps_ib_node_new(&node[TARGET], &c), "the target's port");
	ddps_ipoib_if_config_init(&f);
	f.me.addr = (struct ddps_ipoib_lladdr){ .flags = DDPS_IPOIB_RC, .qpn = c.qpn };
	memcpy(f.me.addr.gid, c.gid, sizeof f.me.addr.gid);
	f.me.pkey = c.pkey;
	f.me.rx_mtu = DDPS_IPOIB_MTU_CM_MAX + DDPS_IPOIB_ENCAP_LEN;
	f.has_ip4 = true;
	memcpy(f.ip4, world.o.target, 4);
	f.prefix4 = 24;
	f.n_ip6 = world.o.target6[0] != 0;
	memcpy(f.ip6[0], world.o.target6, 16);
	f.cm_timeout = 13;
	f.retry_count = f.rnr_retry = 7;
	f.ca_guid = 0x0200000000000007;
	f.seed = 5;
	f.probe_ns = 1000000; /* the world begins with a target that is there */
	must_node_liar(ddps_ipoib_if_new(&target, &f, ddps_ib_node_port(node[TARGET]), &calls),
		       "the target");
	ddps_ib_node_user(node[TARGET], target);
	ddps_ib_node_tick(node[TARGET], world.now);
	must_node_liar(ddps_ipoib_if_start(target, world.now), "its start");
}

void nodes_begin(unsigned mode)
{
	by_port = mode & BY_PORT;
	memset(&whole, 0, sizeof whole);
	if (mode & (BY_PORT | AS_CLIENT)) {
		struct ddps_ib_node_config c = make_node_liar_config(SA, 7);

		c.up = &nobody;
		must_node_liar(ddps_ib_node_new(&node[SA], &c), "the administration");
		ddps_ib_node_tick(node[SA], world.now);
	}
	open_target();
}

void nodes_end(void)
{
	ddps_ipoib_if_free(target);
	for (unsigned i = 0; i < NODES; i++) {
		ddps_ib_node_free(node[i]);
		node[i] = NULL;
	}
}
