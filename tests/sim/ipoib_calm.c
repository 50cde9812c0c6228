/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is so in a world of IPoIB in which nothing fails any more: all nodes reach each other.  Soon what is
 * sent arrives, once, in packets as long as connections take, and each two that both have
 * connections have one.  A node that restarts is the same as the others after some seconds.
 */
#include "sim/ipoib_world.h"

/* Its counters, on the standard error. */
static void show(const struct node *n)
{
	const struct ddps_ipoib_if_stats *st = ddps_ipoib_if_stats(n->f);
	const char *name;
	uint64_t value;

	fprintf(stderr, "node %u, mode %u, state %u:", n->i, n->mode, ddps_ipoib_if_state(n->f));
#define DDPS_X(name, text)                                                                         \
	if (st->name)                                                                              \
		fprintf(stderr, " " #name " %" PRIu64, st->name);
	DDPS_IPOIB_IF_STATS(DDPS_X)
#undef DDPS_X
	for (unsigned i = 0; (name = ddps_ib_node_counter(n->n, i, &value)); i++)
		if (value)
			fprintf(stderr, " %s %" PRIu64, name, value);
	fprintf(stderr, "\n");
}

/* All reach each other. */
static void reach(void)
{
	bool all = false;

	for (unsigned i = 0; i < world.n && !world.failed; i++) {
		struct node *n = &world.node[i];

		if ((int)i == world.liar) { /* what it believes may be anything */
			finish(n);
			begin(n);
		} else if (n->stopped) {
			check(!ddps_ipoib_if_start(n->f, world.now), "it does not start again");
		}
		memset(n->got, 0, sizeof n->got);
	}
	for (unsigned k = 0; k < CALM && !all && !world.failed; k++) {
		all = true;
		for (unsigned i = 0; i < world.n * world.n; i++) {
			unsigned from = i / world.n, to = i % world.n;

			if (from == to || world.node[to].got[from])
				continue;
			all = false;
			send_ip(&world.node[from], to, 100);
		}
		run_until(world.now + SEC);
	}
	for (unsigned i = 0; i < world.n * world.n && !all; i++)
		check(i / world.n == i % world.n || world.node[i % world.n].got[i / world.n],
		      "node %u does not reach node %u", i / world.n, i % world.n);
}

/* One packet of any length from each node to each other one, a second. */
static void traffic(unsigned seconds)
{
	for (unsigned k = 0; k < seconds && !world.failed; k++) {
		for (unsigned i = 0; i < world.n * world.n; i++) {
			unsigned from = i / world.n, to = i % world.n;

			if (from != to)
				send_ip(&world.node[from], to, length(&world.node[from], to));
		}
		run_until(world.now + SEC);
	}
}

unsigned connections(const struct node *n, unsigned to)
{
	struct ddps_ipoib_if_conn_info info;
	unsigned up = 0;
	int is;

	for (unsigned i = 0; (is = ddps_ipoib_if_conn_info(n->f, i, &info)) >= 0; i++)
		up += is && info.up && info.peer.gid[15] == to + 1;
	return up;
}

/* All that is sent arrives, once. */
static void steady(void)
{
	for (unsigned i = 0; i < world.n; i++) {
		memset(world.node[i].got, 0, sizeof world.node[i].got);
		world.node[i].counts_from = world.node[i].sent;
	}
	traffic(STEADY);
	run_until(world.now + SEC);
	for (unsigned i = 0; i < world.n * world.n && !world.failed; i++) {
		unsigned from = i / world.n, to = i % world.n, up;
		struct node *n = &world.node[to];

		if (from == to)
			continue;
		up = connections(n, from);
		check(n->got[from] == STEADY, "node %u has %u of %u packets of node %u", to,
		      (unsigned)n->got[from], STEADY, from);
		check(up == ((n->mode & world.node[from].mode) != 0),
		      "node %u has %u connections to node %u", to, up, from);
	}
}

/* Whoever is at the other end of a connection that is over there notices after eight ACK timeouts at most, and
 * may have two of them. */
static unsigned settling(void)
{
	const uint64_t timeout = 4096ull << (world.life + 1);

	return SETTLE + (unsigned)(20 * timeout / SEC);
}

void calm(void)
{
	struct node *n = &world.node[draw_ipoib_world(world.n)];

	world.calm = true;
	if (world.delay > MS) /* no longer than what nodes say of the path */
		world.delay = MS;
	reach();
	traffic(settling());
	steady();
	if (world.failed)
		return;
	for (unsigned k = 0; k < 2;
	     k++) { /* what it had of the first time is in its peers' memory */
		finish(n);
		begin(n);
		traffic(!k ? ONCE : n->i ? SOON : ADMIN);
	}
	steady();
	for (unsigned i = 0; i < world.n && getenv("DDPS_SIM_TRACE"); i++)
		show(&world.node[i]);
}

void stop(void)
{
	bool rest = false;

	for (unsigned i = 0; i < world.n && !world.failed; i++)
		ddps_ipoib_if_stop(world.node[i].f, world.now);
	for (unsigned k = 0; k < REST && !rest && !world.failed; k++) {
		run_until(world.now + SEC);
		rest = true;
		for (unsigned i = 0; i < world.n; i++)
			rest &= ddps_ipoib_if_at_rest(world.node[i].f);
	}
	check(rest, "a connection is left");
}
