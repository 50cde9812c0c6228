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
	for (c.seed = 1; c.seed <= 5; c.seed++) {
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
