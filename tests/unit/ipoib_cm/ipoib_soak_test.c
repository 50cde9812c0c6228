/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces that start towards each other simultaneously, over a fabric that loses, delays,
 * reorders and doubles, by seed.  When it is calm again there is one connection, never two
 * and never none.  DDPS_SIM_RUNS says how many runs (make sim-soak: a million), DDPS_SIM_SEED
 * the seed of the first; a failure names its own.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ipoib_net_fixture.h"

#ifdef __SANITIZE_ADDRESS__
#define RUNS 5000 /* a tenth, which take as long */
#else
#define RUNS 50000
#endif
#define PARTS	 4 /* tests that share the runs, as they take both processors */
#define MAX_RUNS 1000000
#define US	 1000ull

static struct net net;

/* What the runs have met, so that a fabric that is too kind shows. */
static struct {
	uint64_t lost, duplicated, crossed, broken, closed;
} met;

static uint64_t from_env(const char *name, uint64_t otherwise, uint64_t max)
{
	const char *text = getenv(name);
	uint64_t v = text ? strtoull(text, NULL, 0) : otherwise;

	return v < max ? v : max;
}

/* Times short against the fabric's delays, tables as small as they may be. */
static void quick(struct ddps_ipoib_if_config *c)
{
	c->max_nbr = 4;
	c->max_peers = 4;
	c->max_qps = 64;
	c->cm_timeout = 8; /* about 1 ms */
	c->cm_retries = 5;
	c->policy.backoff_ns = 2 * MS;
	c->policy.long_ns = 3 * MS;
	c->policy.soon_ns = MS;
	c->retry_ns = 4 * MS;
	c->failed_ns = 5 * MS;
	c->n_ip6 = 0;
	c->seed |= 1;
}

static void talk_in_soak(uint64_t for_ns, uint64_t every)
{
	uint64_t end = ddps_ipoib_sim_now(net.sim) + for_ns;

	while (ddps_ipoib_sim_now(net.sim) < end) {
		unsigned from = (unsigned)ddps_ipoib_sim_random(net.sim, 2);

		net_send4(&net, from, !from, 100, true);
		net_run(&net, 1 + ddps_ipoib_sim_random(net.sim, every));
	}
}

static void count_soaked(void)
{
	const struct ddps_ipoib_sim_stats *s = ddps_ipoib_sim_stats(net.sim);

	met.lost += s->lost;
	met.duplicated += s->duplicated;
	for (unsigned i = 0; i < 2; i++) {
		met.crossed += net.node[i].rejs;
		met.closed += net.node[i].dreqs;
		met.broken += net_stats(&net, i)->conn_error;
	}
}

static bool soak_once(uint64_t seed)
{
	const struct ddps_ipoib_sim_faults calm = { .min_delay = US, .max_delay = 100 * US };
	struct ddps_ipoib_sim_faults wild = { .min_delay = US };
	bool good;

	net_init(&net, 2, seed, DDPS_IPOIB_RC);
	wild.loss = (unsigned)ddps_ipoib_sim_random(net.sim, 400000);
	wild.dup = (unsigned)ddps_ipoib_sim_random(net.sim, 200000);
	wild.late = (unsigned)ddps_ipoib_sim_random(net.sim, 200000);
	wild.max_delay = 10 * US + ddps_ipoib_sim_random(net.sim, 2 * MS);
	for (unsigned i = 0; i < 2; i++)
		quick(&net.node[i].cfg);
	net.node[ddps_ipoib_sim_random(net.sim, 2)].cfg.form =
		(enum ddps_ipoib_sid_form)ddps_ipoib_sim_random(net.sim, 2);
	net_start(&net, 0);
	net_start(&net, 1);
	net_run(&net, MS);
	ddps_ipoib_sim_set_faults(net.sim, &wild);
	talk_in_soak(ddps_ipoib_sim_random(net.sim, 20 * MS), 2 * MS);
	ddps_ipoib_sim_set_faults(net.sim, &calm);
	talk_in_soak(80 * MS, 8 * MS);
	net_run(&net, 10 * MS);
	good = net_conns(&net, 0) == 1 && net_conns(&net, 1) == 1;
	if (!good)
		fprintf(stderr, "DDPS_SIM_SEED=0x%" PRIx64 ": %u and %u connections\n", seed,
			net_conns(&net, 0), net_conns(&net, 1));
	net_send4(&net, 0, 1, 60000, true); /* both ways on it */
	net_send4(&net, 1, 0, 60000, true);
	net_run(&net, MS);
	good = good && net.node[0].last_len == 60000 && net.node[1].last_len == 60000;
	for (unsigned i = 0; i < 2; i++)
		ddps_ipoib_if_stop(net.node[i].f, ddps_ipoib_sim_now(net.sim));
	net_run(&net, 60 * SEC); /* and nothing of it is left */
	good = good && ddps_ipoib_if_at_rest(net.node[0].f) && ddps_ipoib_if_at_rest(net.node[1].f);
	count_soaked();
	net_fini(&net);
	if (!good)
		fprintf(stderr, "DDPS_SIM_SEED=0x%" PRIx64 " fails\n", seed);
	return good;
}

static void crossed(unsigned part)
{
	uint64_t seed = from_env("DDPS_SIM_SEED", 0x5eed0000, UINT64_MAX), failed = 0;
	uint64_t runs = from_env("DDPS_SIM_RUNS", RUNS, MAX_RUNS), i;

	for (i = part; i < runs; i += PARTS)
		failed += !soak_once(seed + i);
	cr_expect_eq(failed, 0, "%" PRIu64 " of %" PRIu64 " runs", failed, runs / PARTS);
	if (runs >= 1000)
		cr_expect(met.lost > runs / PARTS && met.duplicated > runs / PARTS && met.crossed &&
			  met.broken && met.closed);
}

#define CROSSED_IDS "4755-3.3-1 4755-3.3-3 4755-3.3-4 4755-3.3-5 4755-3.3-9 4755-3.2-6"
#define Crossed(n)                                                                                 \
	Test(ipoib_soak, crossed_requests_leave_one_connection_##n, .description = CROSSED_IDS)    \
	{                                                                                          \
		crossed(n);                                                                        \
	}

Crossed(0) Crossed(1) Crossed(2) Crossed(3)

/* ---- Many nodes for a long time ---- */

#define NODES 100
#define HOURS 100

	/* No two interfaces have two connections, whoever has asked for them. */
	static unsigned doubles(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NODES; i++) {
		unsigned per_peer[NODES] = { 0 };
		struct ddps_ipoib_if_conn_info info;
		int r;

		for (unsigned k = 0; (r = ddps_ipoib_if_conn_info(net.node[i].f, k, &info)) >= 0;
		     k++)
			if (r && info.up && info.to_send)
				n += per_peer[info.peer.qpn - 0x48]++ > 0;
	}
	return n;
}

Test(ipoib_soak, ten_thousand_node_hours, .description = "4755-3.2-6 4755-3.2-9 4755-3.4-3")
{
	const struct ddps_ipoib_sim_faults faults = {
		.loss = 2000, .dup = 2000, .late = 10000, .min_delay = 2 * US, .max_delay = MS
	};
	const struct ddps_ipoib_sim_faults calm = { .min_delay = US, .max_delay = 10 * US };
	uint64_t sent = 0, got = 0, up = 0;

	net_init(&net, NODES, from_env("DDPS_SIM_SEED", 11, UINT64_MAX), DDPS_IPOIB_RC);
	for (unsigned i = 0; i < NODES; i++) {
		net.node[i].cfg.max_nbr = net.node[i].cfg.max_peers = NODES;
		net.node[i].cfg.max_qps = 64;
	}
	net_start_all(&net);
	ddps_ipoib_sim_set_faults(net.sim, &faults);
	for (unsigned h = 0; h < HOURS; h++)
		for (unsigned k = 0; k < 100; k++) {
			unsigned from = (unsigned)ddps_ipoib_sim_random(net.sim, NODES);
			unsigned to =
				(from + 1 + (unsigned)ddps_ipoib_sim_random(net.sim, NODES - 1)) %
				NODES;

			net_send4(&net, from, to, 1000, true);
			if (k % 2)
				net_send4(&net, to, from, 1000, true);
			sent += 1 + k % 2;
			net_run(&net, HOUR / 100);
		}
	ddps_ipoib_sim_set_faults(net.sim, &calm);
	for (unsigned i = 0; i < 10; i++) {
		net_send4(&net, 0, 1, 1000, true);
		net_send4(&net, 1, 0, 1000, true);
		net_run(&net, SEC);
	}
	cr_expect_eq(doubles(), 0);
	net_run(&net, 600 * SEC);
	for (unsigned i = 0; i < NODES; i++) {
		got += net.node[i].n_rx;
		up += net_stats(&net, i)->conn_up;
		cr_expect(ddps_ipoib_if_at_rest(net.node[i].f), "node %u", i);
	}
	cr_expect_gt(got, sent * 98 / 100);
	cr_expect_gt(up, sent / 2);
	cr_expect_eq(ddps_ipoib_sim_stats(net.sim)->overflow, 0);
	cr_expect_geq(ddps_ipoib_sim_now(net.sim), HOURS * HOUR);
	net_fini(&net);
}

/* The same seed gives the same run. */
Test(ipoib_soak, is_deterministic)
{
	uint64_t events[2];

	for (unsigned i = 0; i < 2; i++) {
		const struct ddps_ipoib_sim_faults faults = {
			.loss = 200000, .dup = 100000, .min_delay = US, .max_delay = MS
		};

		net_init(&net, 2, 99, DDPS_IPOIB_RC);
		net_start_all(&net);
		ddps_ipoib_sim_set_faults(net.sim, &faults);
		talk_in_soak(100 * MS, 2 * MS);
		events[i] = ddps_ipoib_sim_stats(net.sim)->events * 1000003 +
			    ddps_ipoib_sim_random(net.sim, UINT64_MAX);
		net_fini(&net);
	}
	cr_expect_eq(events[0], events[1]);
}
