/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that comes while a REQ to it is out already. */
#include <criterion/criterion.h>
#include "ipoib_cm/cm/cm_conn.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_net_fixture.h"
#include "sim/crossed_world.h"
#include <inttypes.h>
#include <stdlib.h>

static struct net net;

static void fini(void)
{
	net_fini(&net);
}

static void lose_ipoib_again(unsigned of_a_million)
{
	const struct ddps_ipoib_sim_faults faults = { .loss = of_a_million };

	ddps_ipoib_sim_set_faults(net.sim, &faults);
}

static struct ddps_cm_conn *only_conn(unsigned node)
{
	struct ddps_cm_conn *c = LIST_FIRST(&net.node[node].f->cm->conns);

	cr_assert(c && !LIST_NEXT(c, of_all));
	return c;
}

/*
 * Two that know each other.  The REQ of the second, whose key is larger, is lost; it would come again
 * after four seconds.
 */
static void ask_unheard(uint8_t retries)
{
	net_init(&net, 2, 1, DDPS_IPOIB_RC);
	net.node[0].cfg.passive = true;
	net.node[1].cfg.cm_timeout = 20;
	net.node[1].cfg.cm_retries = retries;
	net_start_all(&net);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_assert_eq(net.node[1].n_rx, 1);
	lose_ipoib_again(1000000);
	net_send4(&net, 1, 0, 100, true);
	net_run(&net, 100 * MS);
	cr_assert_eq(net.node[1].reqs, 1);
	net.node[0].f->cfg.passive = false;
	lose_ipoib_again(0);
}

/* [4755-3.3-5]: the smaller one is refused, and has to wait for the REQ of the larger one. */
Test(ipoib_again, a_req_comes_again_soon_after_one_that_it_wins_against, .fini = fini)
{
	ask_unheard(7);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_assert_eq(net.node[1].rejs, 1, "it is refused");
	net_run(&net, 100 * MS);
	cr_expect_eq(net.node[1].reqs, 2);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(net_conns(&net, 1), 1);
}

/* A REQ comes no earlier than an answer could be here, and with no more retries than there are. */
Test(ipoib_again, a_req_that_wins_uses_up_its_retries, .fini = fini)
{
	ask_unheard(1);
	only_conn(1)->retries_left = 0;
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 300 * MS);
	cr_expect_eq(net.node[1].reqs, 1, "it ends in place of that");
	cr_expect_eq(ddps_cm_deadline(net.node[1].f->cm), DDPS_CM_NEVER);
	net_run(&net, SEC);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_expect_eq(net_conns(&net, 0), 1);
}

Test(ipoib_again, a_req_on_a_long_path_waits_for_its_answer, .fini = fini)
{
	const uint64_t trip = 2 * ddps_cm_time_ns(18);
	uint64_t asked;

	ask_unheard(7);
	only_conn(1)->life = 18;
	asked = ddps_ipoib_sim_now(net.sim);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 100 * MS);
	cr_expect_geq(ddps_cm_deadline(net.node[1].f->cm), asked + trip);
	cr_expect_leq(ddps_cm_deadline(net.node[1].f->cm), asked + trip + 100 * MS);
}

Test(ipoib_again, a_req_that_would_come_earlier_is_left_alone, .fini = fini)
{
	uint64_t due;

	ask_unheard(7);
	due = ddps_ipoib_sim_now(net.sim) + 50 * MS;
	ddps_due_set(&net.node[1].f->cm->dues, &only_conn(1)->due, due);
	ddps_ipoib_sim_touch(net.sim, 1);
	net_send4(&net, 0, 1, 100, true);
	net_run(&net, 40 * MS);
	cr_assert_eq(net.node[1].rejs, 1);
	cr_expect_eq(ddps_cm_deadline(net.node[1].f->cm), due);
}

/* Its REQ is answered, and then it has forgotten that: no RTU comes, for minutes. */
Test(ipoib_again, a_pending_connection_is_not_waited_for_without_end)
{
	static const struct ddps_ipoib_policy policy = { .backoff_ns = 100 };
	const struct ddps_ipoib_lladdr a = { .qpn = 1 }, b = { .qpn = 2 };
	struct ddps_ipoib_peer_in in = { .ev = DDPS_IPOIB_EV_REQ, .id = 1 };
	struct ddps_ipoib_peer_out out;
	struct ddps_ipoib_peer p;

	ddps_ipoib_peer_init(&p, &a, &b, DDPS_IPOIB_SID_LINUX);
	for (; in.id < 3; in.id++, in.now += 150) {
		ddps_ipoib_peer_step(&p, &policy, &in, &out);
		cr_assert_eq(out.acts, DDPS_IPOIB_DO_ACCEPT);
	}
	in = (struct ddps_ipoib_peer_in){ .ev = DDPS_IPOIB_EV_TRAFFIC, .now = 199 };
	ddps_ipoib_peer_step(&p, &policy, &in, &out);
	cr_expect_eq(out.acts, 0);
	in.now = 200; /* from the first, however many came since */
	ddps_ipoib_peer_step(&p, &policy, &in, &out);
	cr_expect_eq(out.acts, DDPS_IPOIB_DO_CONNECT);
}

/* ---- crossed ---- */

/*
 * REQs that cross, in virtual time, by seed: tests/sim/crossed_world.c.  DDPS_CROSSED_RUNS says how
 * many runs (up to a million), DDPS_CROSSED_SEED with which seed the first one starts; a failure
 * names the seed of its run.
 */

#ifdef __SANITIZE_ADDRESS__
#define RUNS 4000 /* sim-crossed has the same starts without it */
#else
#define RUNS 20000
#endif
#define MAX_RUNS 1000000

static struct crossed_met met;

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

Test(ipoib_crossed, one_connection_survives_every_interleaving, .timeout = 1200,
     .description = "4755-3.3-1 4755-3.3-2 4755-3.3-3 4755-3.3-4 4755-3.3-5 4755-3.3-6 "
		    "4755-3.3-9 4755-3.2-6")
{
	uint64_t seed = setting("DDPS_CROSSED_SEED", 1);
	uint64_t runs = setting("DDPS_CROSSED_RUNS", RUNS);

	cr_assert(runs && runs <= MAX_RUNS, "DDPS_CROSSED_RUNS is 1 to %d", MAX_RUNS);
	for (uint64_t i = 0; i < runs; i++)
		cr_assert_eq(crossed_run(seed + i, CROSSED_OURS, &met), 1,
			     "two or none, seed %" PRIu64, seed + i);
	if (runs < 1000)
		return;
	/* the wire was unkind enough for each rule to be needed */
	cr_expect(met.lost && met.refused && met.withdrawn && met.closed && met.broken,
		  "%u lost, %u refused, %u withdrawn, %u closed, %u broken", met.lost, met.refused,
		  met.withdrawn, met.closed, met.broken);
}

/* Nodes that keep several connections do end with two at times: the check above can fail. */
Test(ipoib_crossed, two_survive_where_several_are_wanted, .description = "4755-3.2-9")
{
	unsigned two = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		unsigned n = crossed_run(seed, CROSSED_MANY, &met);

		cr_assert_geq(n, 1, "seed %" PRIu64, seed);
		two += n > 1;
	}
	cr_expect_gt(two, 0);
}

/* Linux has no rule: two connections are right then, one a direction. */
Test(ipoib_crossed, two_are_left_with_a_peer_without_the_rule,
     .description = "4755-3.2-9 4755-3.3-1")
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
		cr_assert_eq(crossed_run(seed, CROSSED_LINUX, &met), 2, "seed %" PRIu64, seed);
}

/* Each message of a start is lost once, with the timers of real life: see crossed_lose(). */
Test(ipoib_crossed, no_lost_message_costs_two_seconds, .description = "4755-3.3-1")
{
	for (unsigned lost = 0; lost < 10; lost++)
		for (uint64_t seed = 1; seed <= 15; seed++) {
			cr_assert_eq(crossed_lose(seed, CROSSED_OURS, lost, &met), 1,
				     "seed %" PRIu64 ", message %u", seed, lost);
			cr_assert_eq(crossed_lose(seed, CROSSED_LINUX, lost, &met), 2,
				     "seed %" PRIu64 ", message %u", seed, lost);
		}
	cr_expect_gt(met.lost, 150);
}
