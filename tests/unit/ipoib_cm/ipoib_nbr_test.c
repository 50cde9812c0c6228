/* SPDX-License-Identifier: BSD-2-Clause */
/* How neighbours are asked for and answered (RFC 4861 7.2): one interface, on a port that keeps what it sends. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/wire/wire.h"
#include "ipoib_net_fixture.h"
#include "ipoib_cm/iface/iface_in.h"

#define FRAMES	  64
#define SOLICITED 0x40
#define OVERRIDE  0x20
#define NS	  135
#define NA	  136
#define ND_PLAIN  64 /* octets of a message without its option */
#define ND_WHOLE  88

static const uint8_t own[16] = { 0xfe, 0x80, [15] = 1 }, peer[16] = { 0xfe, 0x80, [15] = 7 };
static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };
static const struct ddps_ipoib_lladdr me = { .qpn = 0x48, .gid = { 0xfe, 0x80, [15] = 1 } };
static const struct ddps_ipoib_lladdr it = { .qpn = 0x77, .gid = { 0xfe, 0x80, [15] = 7 } };

static struct {
	struct ddps_ipoib_port port;
	struct ddps_ipoib_if *f;
	uint64_t now;
	bool has_way; /* there is a path to the peer */
	unsigned n, n_told;
	struct {
		struct ddps_ipoib_lladdr to;
		uint8_t p[128]; /* without the encapsulation */
		size_t len;
	} sent[FRAMES];
	uint8_t told[FRAMES][1280];
} nbr;

static int keep_nbr_frame(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
			  const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	(void)port;
	(void)path;
	cr_assert_lt(nbr.n, FRAMES);
	nbr.sent[nbr.n].to = *to;
	nbr.sent[nbr.n].len = len - DDPS_IPOIB_ENCAP_LEN;
	memcpy(nbr.sent[nbr.n].p, (const uint8_t *)frame + DDPS_IPOIB_ENCAP_LEN,
	       len < sizeof(nbr.sent[0].p) ? len - DDPS_IPOIB_ENCAP_LEN : sizeof(nbr.sent[0].p));
	nbr.n++;
	return 0;
}

static int join_nbr_group(struct ddps_ipoib_port *port, const uint8_t *mgid)
{
	(void)port;
	(void)mgid;
	return 0;
}

static void leave_nbr_group(struct ddps_ipoib_port *port, const uint8_t *mgid)
{
	(void)join_nbr_group(port, mgid);
}

static void keep_nbr_delivery(void *user, const void *packet, size_t len)
{
	(void)user;
	cr_assert_lt(nbr.n_told, FRAMES);
	cr_assert_leq(len, sizeof(nbr.told[0]));
	memcpy(nbr.told[nbr.n_told++], packet, len);
}

static const struct ddps_ipoib_port_ops nbr_ops = { .struct_size = sizeof(nbr_ops),
						    .ud_send = keep_nbr_frame,
						    .join = join_nbr_group,
						    .leave = leave_nbr_group,
						    .resolve = join_nbr_group };

static void pass_nbr_time(uint64_t ns)
{
	const uint64_t end = nbr.now + ns;

	for (uint64_t due; (due = ddps_ipoib_if_deadline(nbr.f)) <= end;) {
		nbr.now = due > nbr.now ? due : nbr.now;
		ddps_ipoib_if_tick(nbr.f, nbr.now);
	}
	nbr.now = end;
}

static void init(void)
{
	const struct ddps_ipoib_if_calls calls = { sizeof(calls), keep_nbr_delivery, NULL, NULL };
	struct ddps_ipoib_if_config c;
	uint8_t mgid[DDPS_IPOIB_GID_LEN];

	memset(&nbr, 0, sizeof(nbr));
	ddps_ipoib_if_config_init(&c);
	c.me.addr = me;
	c.me.pkey = 0xffff;
	c.me.rx_mtu = RX_MTU_UD;
	c.has_ip4 = true;
	memcpy(c.ip4, (uint8_t[]){ 10, 0, 0, 1 }, 4);
	c.prefix4 = 24;
	c.n_ip6 = 1;
	memcpy(c.ip6[0], own, 16);
	nbr.port.ops = &nbr_ops;
	cr_assert_eq(ddps_ipoib_if_new(&nbr.f, &c, &nbr.port, &calls), 0);
	cr_assert_eq(ddps_ipoib_if_start(nbr.f, 0), 0);
	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, 2), 0);
	ddps_ipoib_if_up()->joined(nbr.f, mgid, 0, 2048, 0);
	pass_nbr_time(20 * SEC); /* its addresses are announced */
	nbr.n = 0;
}

static void fini(void)
{
	ddps_ipoib_if_free(nbr.f);
}

#define NbrTest(name, ids) Test(ipoib_nbr, name, .init = init, .fini = fini, .description = ids)

static void make_group_of(uint8_t group[16], const uint8_t *ip)
{
	memcpy(group, (uint8_t[16]){ 0xff, 2, [11] = 1, [12] = 0xff }, 13);
	memcpy(group + 13, ip + 13, 3);
}

/* A solicitation or advertisement comes from the peer; @option: it has its link-layer address. */
static void take_nd(uint8_t type, uint8_t flags, const uint8_t *src, const uint8_t *dst,
		    const uint8_t *target, bool option)
{
	const struct ddps_ipoib_ud_from from = { .qpn = it.qpn };
	uint8_t frame[DDPS_IPOIB_ENCAP_LEN + ND_WHOLE] = { 0 }, *p = frame + DDPS_IPOIB_ENCAP_LEN;
	const size_t len = option ? ND_WHOLE : ND_PLAIN;

	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_IPV6);
	p[0] = 0x60;
	p[5] = (uint8_t)(len - 40);
	p[6] = 58;
	p[7] = 255;
	memcpy(p + 8, src, 16);
	memcpy(p + 24, dst, 16);
	p[40] = type;
	p[44] = flags;
	memcpy(p + 48, target, 16);
	if (option)
		cr_assert_eq(ddps_ipoib_nd_encode(
				     p + ND_PLAIN,
				     type == NS ? DDPS_IPOIB_ND_SOURCE : DDPS_IPOIB_ND_TARGET, &it),
			     0);
	put_nd_cksum(p, len);
	ddps_ipoib_if_up()->ud(nbr.f, &from, frame, DDPS_IPOIB_ENCAP_LEN + len, nbr.now);
}

static void give_way(void)
{
	const struct ddps_ipoib_path path = { .addr = 7, .dlid = 7, .slid = 1, .mtu = 4 };

	ddps_ipoib_if_up()->path(nbr.f, it.gid, &path, nbr.now);
}

/* Message @i of those sent, to that address, to a group or to the peer. */
static void expect_nd(unsigned i, uint8_t type, uint8_t flags, const uint8_t *dst,
		      const uint8_t *target)
{
	const uint8_t *p = nbr.sent[i].p;
	struct ddps_ipoib_lladdr a;
	uint8_t mgid[DDPS_IPOIB_GID_LEN];

	cr_assert_lt(i, nbr.n);
	cr_assert_eq(nbr.sent[i].len, ND_WHOLE, "%zu", nbr.sent[i].len);
	cr_expect_eq(p[40], type);
	cr_expect_eq(p[44], flags, "%02x", p[44]);
	cr_expect_eq(p[7], 255);
	cr_expect_arr_eq(p + 8, own, 16);
	cr_expect_arr_eq(p + 24, dst, 16);
	cr_expect_arr_eq(p + 48, target, 16);
	cr_assert_eq(ddps_ipoib_nd_find(&a,
					type == NS ? DDPS_IPOIB_ND_SOURCE : DDPS_IPOIB_ND_TARGET,
					p + ND_PLAIN, ND_WHOLE - ND_PLAIN),
		     1);
	cr_expect_eq(ddps_ipoib_lladdr_cmp(&a, &me), 0);
	if (dst[0] != 0xff) {
		cr_expect_eq(ddps_ipoib_lladdr_cmp(&nbr.sent[i].to, &it), 0);
		return;
	}
	cr_assert_eq(ddps_ipoib_mgid_ipv6(mgid, dst, 0xffff, 2), 0);
	cr_expect_eq(nbr.sent[i].to.qpn, DDPS_IPOIB_QPN_MCAST);
	cr_expect_arr_eq(nbr.sent[i].to.gid, mgid, sizeof(mgid));
}

NbrTest(contact_35_the_unspecified_address_is_answered_to_all_nodes,
	"4861-7.2.4-1 4861-7.2.4-2 4861-7.2.4-4")
{
	static const uint8_t none[16];
	uint8_t group[16];

	make_group_of(group, own);
	take_nd(NS, 0, none, group, own, false);
	expect_nd(0, NA, OVERRIDE, all_nodes, own);
	pass_nbr_time(10 * SEC);
	cr_expect_eq(nbr.n, 1);
}

NbrTest(contact_35_whoever_asks_is_answered_by_unicast, "4861-7.2.4-1 4861-7.2.4-3 4861-7.2.4-4")
{
	uint8_t group[16];

	make_group_of(group, own);
	take_nd(NS, 0, peer, group, own, true);
	cr_expect_eq(nbr.n, 0, "not before there is a path");
	give_way();
	expect_nd(0, NA, SOLICITED | OVERRIDE, peer, own);
	take_nd(NS, 0, peer, own, own, false); /* it is known now */
	expect_nd(1, NA, SOLICITED | OVERRIDE, peer, own);
	cr_expect_eq(nbr.n, 2);
}

NbrTest(contact_35_what_is_not_its_own_is_not_answered, "4861-7.2.3-3")
{
	static const uint8_t other[16] = { 0xfe, 0x80, [15] = 2 };
	uint8_t group[16];

	make_group_of(group, other);
	take_nd(NS, 0, peer, group, other, true);
	take_nd(NS, 0, (uint8_t[16]){ 0 }, group, other, false);
	give_way();
	cr_expect_eq(nbr.n, 0);
}

/* From an address of its own, to the solicited-node group, with its link-layer address. */
NbrTest(contact_35_who_does_not_say_its_address_is_asked_for_it,
	"4861-7.2.4-5 4861-7.2.2-1 4861-7.2.2-2")
{
	uint8_t group[16];

	make_group_of(group, peer);
	take_nd(NS, 0, peer, own, own, false);
	cr_expect_eq(nbr.n, 1);
	expect_nd(0, NS, 0, group, peer);
	take_nd(NA, SOLICITED, peer, own, peer, true);
	give_way();
	expect_nd(1, NA, SOLICITED | OVERRIDE, peer, own);
	pass_nbr_time(SEC);
	cr_expect_eq(nbr.n, 2, "once");
}

/* It never says it: asked three times, then forgotten, and nothing is owed any more. */
NbrTest(contact_35_whoever_never_says_its_address_is_given_up, "4861-7.2.4-5")
{
	struct ddps_ipoib_if_nbr_info info;

	take_nd(NS, 0, peer, own, own, false);
	pass_nbr_time(60 * SEC);
	cr_expect_eq(nbr.n, 3);
	cr_expect_eq(ddps_ipoib_if_nbr_info(nbr.f, 0, &info), 0);
	cr_expect_eq(nbr.n_told, 0, "no packet of the host waited");
}

static void send_nbr_packet(bool v6, unsigned tag)
{
	uint8_t p[60] = {
		0x45, [3] = 60, [8] = 64, [9] = 17, [12] = 10, [15] = 1, [16] = 10, [19] = 7
	};

	if (v6) {
		memset(p, 0, sizeof(p));
		p[0] = 0x60;
		p[5] = 20;
		p[6] = 17;
		p[7] = 64;
		memcpy(p + 8, own, 16);
		memcpy(p + 24, peer, 16);
	}
	p[59] = (uint8_t)tag;
	cr_assert_eq(ddps_ipoib_if_send(nbr.f, p, sizeof(p), nbr.now), 0);
}

/* The newest are kept; the host is informed of each that nobody answers for, and of later ones. */
static void expect_unreachable(bool v6)
{
	const unsigned header = v6 ? 40 : 20;

	nbr.n = nbr.n_told = 0;
	for (unsigned i = 0; i < DDPS_IPOIB_IF_QUEUE + 2; i++)
		send_nbr_packet(v6, i);
	pass_nbr_time(2900 * MS);
	cr_expect_eq(nbr.n, 3, "asked three times");
	cr_expect_eq(nbr.n_told, 0);
	pass_nbr_time(200 * MS);
	cr_expect_eq(nbr.n_told, DDPS_IPOIB_IF_QUEUE);
	for (unsigned i = 0; i < nbr.n_told; i++) {
		const uint8_t *p = nbr.told[i];

		cr_expect_eq(p[header], v6 ? 1 : 3);
		cr_expect_eq(p[header + 1], v6 ? 3 : 1, "host or address unreachable");
		cr_expect_eq(p[header + 8 + 59], i + 2, "the packet is in it");
		if (v6)
			cr_expect_eq(net_cksum(p + 40, 68, net_cksum(p + 8, 32, 68 + 58) ^ 0xffffu),
				     0);
		else
			cr_expect_eq(net_cksum(p + 20, 68, 0), 0);
	}
	send_nbr_packet(v6, 0);
	cr_expect_eq(nbr.n_told, DDPS_IPOIB_IF_QUEUE + 1);
}

NbrTest(contact_35_what_waited_for_nobody_is_said, "4861-7.2.2-3 4861-7.2.2-4")
{
	expect_unreachable(true);
	pass_nbr_time(20 * SEC);
	expect_unreachable(false);
}

/* No address is held yet: the answer to a packet that is too long comes from the one that it was for. */
NbrTest(contact_35_no_error_comes_from_the_unspecified_address, "")
{
	static const uint8_t router[16] = { 0xfd, 9, [15] = 1 };
	uint8_t p[3000] = {
		0x60, [4] = (3000 - 40) >> 8, [5] = (3000 - 40) & 0xff, [6] = 17, [7] = 64
	};

	take_nd(NS, 0, peer, own, own, true);
	give_way();
	cr_assert_eq(ddps_ipoib_if_address(nbr.f, true, own, 64, false, nbr.now), 0);
	cr_assert_eq(ddps_ipoib_if_address(nbr.f, true, own, 64, true, nbr.now), 0);
	memcpy(p + 8, router, 16);
	memcpy(p + 24, peer, 16);
	cr_assert_eq(ddps_ipoib_if_send(nbr.f, p, sizeof(p), nbr.now), 0);
	cr_assert_eq(nbr.n_told, 1);
	cr_expect_eq(nbr.told[0][40], 2, "packet too big");
	cr_expect_arr_eq(nbr.told[0] + 8, peer, 16);
	cr_expect_arr_eq(nbr.told[0] + 24, router, 16);
}

/* Another node uses the address: it is announced, but not in a quarrel without end. */
NbrTest(contact_35_an_address_is_defended_once_in_ten_seconds, "5227-2.4-1 5227-2.4-2")
{
	const struct ddps_ipoib_ud_from from = { .qpn = it.qpn, .multicast = true };
	const struct ddps_ipoib_arp arp = { .op = DDPS_IPOIB_ARP_REQUEST,
					    .sender = it,
					    .sender_ip = { 10, 0, 0, 1 },
					    .target_ip = { 10, 0, 0, 1 } };
	uint8_t frame[DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN];

	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_ARP);
	cr_assert_eq(ddps_ipoib_arp_encode(frame + DDPS_IPOIB_ENCAP_LEN, &arp), 0);
	for (unsigned s = 0; s < 25; s++) {
		ddps_ipoib_if_up()->ud(nbr.f, &from, frame, sizeof(frame), nbr.now);
		cr_expect_eq(nbr.n, 1 + s / 10, "after %u s", s);
		pass_nbr_time(SEC);
	}
	cr_assert_eq(nbr.sent[2].len, DDPS_IPOIB_ARP_LEN);
	cr_expect_eq(nbr.sent[2].to.qpn, DDPS_IPOIB_QPN_MCAST);
	cr_expect_arr_eq(nbr.sent[2].p + 28, arp.sender_ip, 4);
	cr_expect_eq(ddps_ipoib_if_stats(nbr.f)->ip_conflict, 25);
}

/* ---- straight ---- */

/* The straight way to a neighbour or connection, the one used last, finds what the tables find. */

#define NODES 6
#define STEPS 400

static struct net net;

static void fini_straight(void)
{
	net_fini(&net);
}

static struct ddps_ipoib_nbr *scan_nbrs(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	for (unsigned i = 0; i < f->n_nbr; i++) {
		struct ddps_ipoib_nbr *b = &f->nbr[i];

		if (b->state != NBR_FREE && b->ip.v6 == ip->v6 &&
		    !memcmp(b->ip.a, ip->a, sizeof(ip->a)))
			return b;
	}
	return NULL;
}

static struct ddps_ipoib_qp *scan_qps(struct ddps_ipoib_if *f, uint32_t qpn, uint32_t id)
{
	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used && (id ? f->qp[i].id == id : f->qp[i].qpn == qpn))
			return &f->qp[i];
	return NULL;
}

/* In an order that makes each the last one before another. */
static void expect_same_finds(struct ddps_ipoib_if *f, uint32_t seen[2][64], unsigned *n_seen)
{
	for (unsigned i = 0; i < 2 * NODES; i++) {
		struct ddps_ipoib_ip ip = { .v6 = i & 1 };
		const struct ddps_ipoib_if_config *c = &net.node[i / 2].cfg;

		memcpy(ip.a, ip.v6 ? c->ip6[0] : c->ip4, ip.v6 ? 16 : 4);
		cr_assert_eq(ddps_ipoib_nbr_find(f, &ip), scan_nbrs(f, &ip));
		cr_assert_eq(ddps_ipoib_nbr_find(f, &ip), scan_nbrs(f, &ip), "again");
	}
	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used && f->qp[i].id) { /* and some that are gone by then */
			seen[0][*n_seen % 64] = f->qp[i].qpn;
			seen[1][(*n_seen)++ % 64] = f->qp[i].id;
		}
	for (unsigned i = 0; i < 64 && i < *n_seen; i++) {
		cr_assert_eq(ddps_ipoib_conn_by_id(f, seen[1][i]), scan_qps(f, 0, seen[1][i]));
		cr_assert_eq(ddps_ipoib_conn_by_qpn(f, seen[0][i]), scan_qps(f, seen[0][i], 0));
		cr_assert_eq(ddps_ipoib_conn_by_id(f, seen[1][i]), scan_qps(f, 0, seen[1][i]));
	}
}

/* Few neighbours and queue pairs, so each is forgotten for another soon. */
static void make_straight_world(uint64_t seed)
{
	net_init(&net, NODES, seed, DDPS_IPOIB_RC);
	for (unsigned i = 0; i < NODES; i++) {
		net.node[i].cfg.max_nbr = 3;
		net.node[i].cfg.max_qps = 4;
		net.node[i].cfg.idle_ns = 2 * SEC;
		net.node[i].cfg.reachable_ns = SEC;
	}
	net_start_all(&net);
}

static uint64_t draw_straight(uint64_t below)
{
	return ddps_ipoib_sim_random(net.sim, below);
}

Test(ipoib_straight, finds_what_the_tables_find, .fini = fini_straight)
{
	static uint32_t seen[NODES][2][64];
	uint64_t conns = 0;

	for (uint64_t seed = 1; seed <= 5; seed++) {
		unsigned n_seen[NODES] = { 0 };

		make_straight_world(seed);
		for (unsigned k = 0; k < STEPS; k++) {
			const unsigned from = (unsigned)draw_straight(NODES);
			const unsigned to = (from + 1 + (unsigned)draw_straight(NODES - 1)) % NODES;

			if (draw_straight(100) == 0) {
				net_kill(&net, to);
				net.node[to].cfg.me.addr.qpn += 0x100;
				net_start(&net, to);
			}
			if (draw_straight(2))
				net_send4(&net, from, to, 100 + draw_straight(5000), true);
			else
				net_send6(&net, from, to, 100 + draw_straight(5000));
			net_run(&net, draw_straight(4) ? 10 * MS : draw_straight(3 * SEC));
			for (unsigned i = 0; i < NODES; i++)
				expect_same_finds(net.node[i].f, seen[i], &n_seen[i]);
		}
		for (unsigned i = 0; i < NODES; i++)
			conns += net_stats(&net, i)->conn_down;
		if (seed < 5)
			net_fini(&net);
	}
	cr_expect_gt(conns, 50, "only %u connections have ended", (unsigned)conns);
}
