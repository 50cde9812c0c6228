/* SPDX-License-Identifier: BSD-2-Clause */
/* The straight way to a neighbour or connection, the one used last, finds what the tables find. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_net_fixture.h"

#define NODES 6
#define STEPS 400

static struct net net;

static void fini(void)
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

Test(ipoib_straight, finds_what_the_tables_find, .fini = fini)
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
