/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender of src/sctp on simulated paths: goodput, pauses, and what is sent in vain. */
#include "support/sctp_sim.h"
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MBIT (1e6 / 8)

/* 100 Mbit/s, 25 ms round trip, a queue of one round trip. */
static struct sctp_sim_conf wide(void)
{
	return (struct sctp_sim_conf){ .seed = 1,
				       .octets = UINT64_MAX,
				       .duration = 10 * SIM_SEC,
				       .rate = 100 * MBIT,
				       .delay = 12500000,
				       .queue = 312500 };
}

/* Octets of user data a second.  With SCTP_SIM_PRINT set, one line a run. */
static double goodput(const char *name, const struct sctp_sim_conf *c, struct sctp_sim_result *r)
{
	double rate;

	*r = sctp_sim_run(c);
	rate = (double)r->octets * 1e9 / (double)(r->end ? r->end : 1);
	cr_expect(!r->lied);
	if (getenv("SCTP_SIM_PRINT"))
		fprintf(stderr,
			"%-24s seed %-3" PRIu64 " %7.2f Mbit/s pause %7.1f ms packets %" PRIu64
			" dropped %" PRIu64 " resent %" PRIu64 " in vain %" PRIu64 " T3 %" PRIu64
			" TLP %" PRIu64 " undone %" PRIu64 " size %" PRIu64 "\n",
			name, c->seed, rate * 8 / 1e6, (double)r->pause / 1e6, r->packets,
			r->dropped, r->resent, r->duplicates, r->t3s, r->probes, r->undone,
			r->newest_size);
	return rate;
}

Test(sctp_path, fills_a_path_of_25_ms)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;
	double rate = goodput("25 ms", &c, &r);

	cr_expect_geq(rate, 0.9 * c.rate * 1444 / 1500);
	cr_expect_eq(r.t3s, 0);
	cr_expect_eq(r.duplicates, 0);
	cr_expect_lt(r.dropped * 100, r.packets);
}

Test(sctp_path, jitter_that_reorders_costs_less_than_a_tenth)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;
	double even = goodput("25 ms", &c, &r);

	c.jitter = 2 * SIM_MS;
	for (c.seed = 1; c.seed <= 3; c.seed++) {
		cr_expect_geq(goodput("25 ms, jitter 2 ms", &c, &r), 0.9 * even);
		cr_expect_eq(r.t3s, 0);
		cr_expect_lt(r.duplicates * 1000, r.packets);
	}
}

/* Reno's formula for 5 ms and 2 %: 20 Mbit/s. */
Test(sctp_path, two_percent_loss_at_5_ms)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.delay = 2500000;
	c.queue = 62500;
	c.loss = 0.02;
	for (c.seed = 1; c.seed <= 5; c.seed++) {
		double rate = goodput("5 ms, 2 % loss", &c, &r);

		cr_expect(rate >= 0.8 * 20 * MBIT && rate <= 1.6 * 20 * MBIT);
		cr_expect_eq(r.t3s, 0);
		cr_expect_eq(r.duplicates, 0);
	}
}

Test(sctp_path, black_hole_is_passed_within_2_s)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.mtu_at = 3 * SIM_SEC;
	c.mtu_then = 1280;
	goodput("1500 to 1280", &c, &r);
	cr_expect_lt(r.pause, 2 * SIM_SEC);
	cr_expect_eq(r.black_holes, 1);
	cr_expect_eq(r.newest_size, 1280);
}

Test(sctp_path, works_where_only_small_packets_pass)
{
	static const uint16_t mtu[] = { 1400, 1006, 576, 552, 296 };

	for (unsigned i = 0; i < sizeof mtu / sizeof *mtu; i++) {
		struct sctp_sim_conf c = wide();
		struct sctp_sim_result r;

		c.octets = 4000000;
		c.duration = 60 * SIM_SEC;
		c.mtu = mtu[i];
		goodput("small", &c, &r);
		cr_expect(r.done, "MTU %u", mtu[i]);
		c.mtu = 1500;
		c.mtu_at = SIM_SEC / 10;
		c.mtu_then = mtu[i];
		goodput("getting small", &c, &r);
		cr_expect(r.done, "MTU %u", mtu[i]);
	}
}

/* Late packets are not lost packets: after the first seconds next to nothing is sent in vain. */
Test(sctp_path, late_packets_cost_little)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;
	double even = goodput("25 ms", &c, &r);

	c.late = 0.05;
	c.late_by = 8 * SIM_MS;
	for (c.seed = 1; c.seed <= 3; c.seed++) {
		cr_expect_geq(goodput("5 % late by 8 ms", &c, &r), 0.95 * even);
		cr_expect_leq(r.duplicates, 10);
		cr_expect_eq(r.t3s, 0);
	}
}

Test(sctp_path, jitter_in_order_is_no_loss)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.delay = 25 * SIM_MS;
	c.jitter = 50 * SIM_MS;
	c.in_order = true;
	for (c.seed = 1; c.seed <= 3; c.seed++) {
		goodput("jitter in order", &c, &r);
		cr_expect_eq(r.t3s, 0);
		cr_expect_eq(r.duplicates, 0);
	}
}

/* Whatever of the last packets is lost: found by a probe, repaired without T3, cut once. */
Test(sctp_path, tail_of_any_length_lost)
{
	for (unsigned n = 1; n <= 10; n++) /* one window */
		for (unsigned k = 1; k <= n; k++) {
			struct sctp_sim_conf c = { .seed = 1,
						   .octets = 1144ull * n,
						   .len = 1144,
						   .duration = 10 * SIM_SEC,
						   .delay = 10 * SIM_MS };
			/* a probe after two RTTs, its answer, and one delayed SACK before */
			uint64_t srtt = 20 * SIM_MS, most = 3 * srtt + 30 * SIM_MS;
			struct sctp_sim_result r, whole = sctp_sim_run(&c);

			for (unsigned i = 0; i < k && i < 32; i++)
				c.drop[i] = n - i;
			r = sctp_sim_run(&c);
			cr_assert(r.done, "%u of %u", k, n);
			most += k > 1 ? 2 * srtt + srtt / 4 : 0;
			cr_expect_leq(r.end, whole.end + most, "%u of %u: %u ms", k, n,
				      (unsigned)(r.end / SIM_MS));
			cr_expect_eq(r.t3s, 0, "%u of %u", k, n);
			cr_expect_leq(r.cuts, 1, "%u of %u", k, n);
		}
}

/* A retransmission that is lost again is found by time, too. */
Test(sctp_path, lost_retransmission_needs_no_t3)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.duration = 2 * SIM_SEC;
	c.loss = 0.25;
	c.delay = 5 * SIM_MS;
	for (c.seed = 1; c.seed <= 5; c.seed++) {
		goodput("25 % loss", &c, &r);
		cr_expect_gt(r.octets, 100000);
		cr_expect_leq(r.t3s, 6);
		cr_expect_eq(r.lied, 0);
	}
}

Test(sctp_path, sacks_lost_for_one_round_trip)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.duration = 4 * SIM_SEC;
	c.octets = 20000000;
	c.queue = 0;
	c.sacks_dark_from = 1500 * SIM_MS;
	c.sacks_dark_until = 1525 * SIM_MS;
	goodput("no SACKs for 25 ms", &c, &r);
	cr_expect_eq(r.t3s, 0);
	cr_expect_leq(r.probes, 1);
	cr_expect_eq(r.cuts, 0);
	cr_expect(r.done);
}

/* RFC 5682: the delay jumps by a second; T3 is wrong, and is found to be. */
Test(sctp_path, t3_that_was_too_early)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.step_at = 3 * SIM_SEC;
	c.step = SIM_SEC;
	goodput("delay + 1 s", &c, &r);
	cr_expect_geq(r.t3s, 1);
	cr_expect_eq(r.undone, 1);
	cr_expect_leq(r.resent, r.dropped + 5);
}

Test(sctp_path, resumes_after_an_outage)
{
	static const uint64_t dark[] = { 100, 1000, 5000, 30000 }; /* ms */

	for (unsigned i = 0; i < 4; i++) {
		struct sctp_sim_conf c = wide();
		struct sctp_sim_result r;
		uint64_t most = (dark[i] > 10000 ? 5000 : 2000) + 100;

		c.duration = 45 * SIM_SEC;
		c.rate = 10 * MBIT;
		c.queue = 31250;
		c.octets = 40000000;
		c.dark_from = 3 * SIM_SEC;
		c.dark_until = c.dark_from + dark[i] * SIM_MS;
		goodput("outage", &c, &r);
		cr_expect_leq(r.pause, (dark[i] + most) * SIM_MS, "%u ms", (unsigned)dark[i]);
		cr_expect_geq(r.newest_size, 1492);
	}
}

/* The window closes for a while, and what is on its way is dropped; the peer says so. */
Test(sctp_path, window_that_closes_and_opens)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.shut_from = 3 * SIM_SEC;
	c.shut_until = 23 * SIM_SEC;
	c.duration = 60 * SIM_SEC;
	c.rate = 10 * MBIT;
	c.queue = 31250;
	c.octets = 20000000;
	goodput("closed for 20 s", &c, &r);
	cr_expect(r.done);
	cr_expect_eq(r.errors, 0);
	cr_expect_eq(r.black_holes, 0);
}

Test(sctp_path, many_small_chunks)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.len = 64;
	c.loss = 0.001;
	c.duration = 3 * SIM_SEC;
	goodput("chunks of 64 octets", &c, &r);
	cr_expect_gt(r.packets, 10000);
	cr_expect_eq(r.t3s, 0);
	cr_expect_eq(r.duplicates, 0);
}

/* Cost of a packet, in slots and blocks looked at, on a path with much of both. */
Test(sctp_path, cost_does_not_grow_with_the_window)
{
	struct sctp_sim_conf c = wide();
	struct sctp_sim_result r;

	c.rate = 1000 * MBIT;
	c.queue = 6250000;
	c.duration = 3 * SIM_SEC;
	c.loss = 0.0001;
	goodput("1 Gbit/s", &c, &r);
	cr_expect_leq(r.steps, 100 * r.packets, "%.1f a packet",
		      (double)r.steps / (double)r.packets);
}

/* Anything, in any mixture: it ends, and all that was sent arrived. */
Test(sctp_path, any_path, .timeout = 120)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t x = seed * 2654435761u + 88172645463325252ull;
		struct sctp_sim_conf c = { .seed = seed, .duration = 600 * SIM_SEC };
		struct sctp_sim_result r;

		c.octets = 1 + (uint64_t)(3e6 * sctp_sim_random(&x) * sctp_sim_random(&x));
		c.len = sctp_sim_random(&x) < 0.5 ? 0 : 1 + (size_t)(1100 * sctp_sim_random(&x));
		c.rate = sctp_sim_random(&x) < 0.3 ? 0 : MBIT + 1000 * MBIT * sctp_sim_random(&x);
		c.queue = sctp_sim_random(&x) < 0.3 ? 0 : (size_t)(1e6 * sctp_sim_random(&x));
		c.delay = (uint64_t)(50e6 * sctp_sim_random(&x));
		c.jitter = sctp_sim_random(&x) < 0.5 ? 0 : (uint64_t)(30e6 * sctp_sim_random(&x));
		c.loss = sctp_sim_random(&x) < 0.5 ? 0 : 0.1 * sctp_sim_random(&x);
		c.sack_loss = sctp_sim_random(&x) < 0.5 ? 0 : 0.3 * sctp_sim_random(&x);
		c.late = 0.1 * sctp_sim_random(&x);
		c.late_by = (uint64_t)(500e6 * sctp_sim_random(&x));
		c.mtu = (uint16_t)(296 + 1204 * sctp_sim_random(&x));
		c.ignores_i = sctp_sim_random(&x) < 0.3;
		c.small_steps = true;
		if (sctp_sim_random(&x) < 0.3) {
			c.dark_from = (uint64_t)(1e9 * sctp_sim_random(&x));
			c.dark_until = c.dark_from + (uint64_t)(5e9 * sctp_sim_random(&x));
		}
		goodput("any", &c, &r);
		cr_expect(r.done, "seed %u", (unsigned)seed);
		cr_expect_eq(r.octets, c.octets, "seed %u", (unsigned)seed);
	}
}
