/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control of src/sctp: both sides of each limit, and worked values of each formula. */
#include "sctp/send/tx_cc.h"
#include <criterion/criterion.h>

#define MS   1000000ull
#define SEC  (1000 * MS)
#define SMSS 1460u

static struct ddps_cc make_fresh_sctp_cc_table(void)
{
	struct ddps_cc cc;

	ddps_cc_init(&cc, SMSS, 128000);
	return cc;
}

static void acks(struct ddps_cc *cc, unsigned n, uint64_t rtt, bool round)
{
	for (unsigned i = 0; i < n; i++) {
		struct ddps_cc_ack a = { .acked = 1, .rtt = rtt, .srtt = rtt, .now = SEC };

		a.round = round && i + 1 == n;
		ddps_cc_grow(cc, &a);
	}
}

Test(sctp_cc, the_first_window_is_ten_packets_or_a_quarter_mebibyte)
{
	static const uint32_t of[][2] = { { 536, 5360 },
					  { 1460, 14600 },
					  { 26214, 262140 },
					  { 26215, 262144 },
					  { 65000, 262144 } };
	struct ddps_cc cc;

	for (unsigned i = 0; i < 5; i++) {
		ddps_cc_init(&cc, of[i][0], 1);
		cr_expect_eq(cc.cwnd, of[i][1]);
		ddps_cc_init(&cc, 100, 1);
		ddps_cc_set_smss(&cc, of[i][0]);
		cr_expect_eq(cc.cwnd, of[i][1]);
	}
}

/* RFC 9406 4.2: an eighth of the RTT, but no less than 4 ms and no more than 16 ms. */
Test(sctp_cc, hystart_waits_for_a_rise_of_an_eighth)
{
	static const uint64_t of[][2] = { { 10 * MS, 4 * MS },	      { 32 * MS, 4 * MS },
					  { 80 * MS, 10 * MS },	      { 128 * MS, 16 * MS },
					  { 400 * MS, 16 * MS },      { 33 * MS, 33 * MS / 8 },
					  { 124 * MS, 124 * MS / 8 }, { 132 * MS, 16 * MS },
					  { 28 * MS, 4 * MS } };

	for (unsigned i = 0; i < 9; i++) {
		uint64_t base = of[i][0], eta = of[i][1];
		struct ddps_cc less = make_fresh_sctp_cc_table(), just = make_fresh_sctp_cc_table(),
			       few = make_fresh_sctp_cc_table();

		acks(&less, 8, base, true);
		acks(&less, 20, base + eta - 1, false);
		cr_expect_eq(less.phase, DDPS_CC_SLOW);
		acks(&just, 1, base, true);
		acks(&just, 7, base + eta, false);
		cr_expect_eq(just.phase, DDPS_CC_SLOW, "eight samples are needed");
		acks(&just, 1, base + eta, false);
		cr_expect_eq(just.phase, DDPS_CC_CSS);
		acks(&few, 1, base, true);
		acks(&few, 7, base + eta, false);
		acks(&few, 20, 0, false);
		cr_expect_eq(few.phase, DDPS_CC_SLOW, "what has no RTT is no sample");
	}
}

Test(sctp_cc, hystart_takes_the_least_of_a_round)
{
	struct ddps_cc cc = make_fresh_sctp_cc_table();

	acks(&cc, 3, 90 * MS, false);
	acks(&cc, 1, 80 * MS, false);
	acks(&cc, 4, 90 * MS, true);
	acks(&cc, 8, 89 * MS, false);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW, "9 ms more than the least");
	acks(&cc, 1, 90 * MS, true);
	acks(&cc, 7, 110 * MS, false);
	acks(&cc, 1, 100 * MS, false);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW, "of 89 ms, an eighth is 11.1 ms");
	acks(&cc, 1, 120 * MS, true);
	acks(&cc, 8, 112 * MS + MS / 2, false);
	cr_expect_eq(cc.phase, DDPS_CC_CSS, "of 100 ms, 12.5 ms");
}

Test(sctp_cc, a_round_without_samples_says_nothing_of_the_next)
{
	struct ddps_cc cc = make_fresh_sctp_cc_table();

	acks(&cc, 8, 20 * MS, true);
	acks(&cc, 3, 0, true);
	acks(&cc, 20, 900 * MS, false);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
}

/* RFC 9406 4.2: five rounds in which the RTT is no less than at the begin. */
Test(sctp_cc, hystart_ends_after_five_rounds)
{
	struct ddps_cc cc = make_fresh_sctp_cc_table(), back;

	acks(&cc, 8, 20 * MS, true);
	acks(&cc, 8, 24 * MS, false);
	cr_assert_eq(cc.phase, DDPS_CC_CSS);
	for (unsigned i = 0; i < 4; i++) {
		acks(&cc, 8, 24 * MS, true);
		cr_assert_eq(cc.phase, DDPS_CC_CSS);
	}
	back = cc;
	acks(&back, 7, 24 * MS - 1, false);
	cr_expect_eq(back.phase, DDPS_CC_CSS);
	acks(&back, 1, 24 * MS - 1, false);
	cr_expect_eq(back.phase, DDPS_CC_SLOW);
	acks(&back, 1, 24 * MS - 1, true);
	acks(&back, 8, 30 * MS, false);
	cr_assert_eq(back.phase, DDPS_CC_CSS);
	for (unsigned i = 0; i < 4; i++)
		acks(&back, 8, 30 * MS, true);
	cr_expect_eq(back.phase, DDPS_CC_CSS, "counted anew");
	acks(&cc, 8, 24 * MS, true);
	cr_expect_eq(cc.phase, DDPS_CC_AVOID);
	cr_expect_eq(cc.ssthresh, cc.cwnd);
}

Test(sctp_cc, hystart_is_of_the_first_slow_start_only)
{
	struct ddps_cc cc = make_fresh_sctp_cc_table();

	cc.cwnd = 100 * SMSS;
	ddps_cc_timeout(&cc, true);
	acks(&cc, 8, 20 * MS, true);
	acks(&cc, 20, 100 * MS, false);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
}

/* By how much one acknowledgement of 4000 octets widens the window. */
static uint64_t growth(struct ddps_cc cc)
{
	struct ddps_cc_ack a = { .acked = 4000, .srtt = 20 * MS, .now = 9 * SEC };
	uint64_t was = cc.cwnd;

	ddps_cc_grow(&cc, &a);
	return cc.cwnd - was;
}

Test(sctp_cc, slow_start_grows_by_what_is_delivered, .description = "9260-7.2.1-5 9260-7.2.1-6")
{
	struct ddps_cc cc = make_fresh_sctp_cc_table();
	uint64_t wait;

	cc.cwnd = 100000;
	cr_expect_eq(growth(cc), 0, "nothing was ever in the way");
	cc.max_flight = 50000;
	cr_expect_eq(growth(cc), 0, "half of it was used");
	cc.max_flight = 50001;
	cr_expect_eq(growth(cc), 4000);
	cc.phase = DDPS_CC_CSS;
	cr_expect_eq(growth(cc), 1000);
	cc.ssthresh = 100999;
	cr_expect_eq(growth(cc), 999);
	cc.phase = DDPS_CC_SLOW;
	cc.ssthresh = 104001;
	cr_expect_eq(growth(cc), 4000);
	cc.max_flight = 0;
	cr_expect_eq(ddps_cc_room(&cc, cc.cwnd, SEC, SEC, &wait), 0);
	cr_expect_eq(growth(cc), 4000, "it was in the way");
	acks(&cc, 1, 20 * MS, true);
	cr_expect_eq(growth(cc), 4000, "a round ago");
	acks(&cc, 1, 20 * MS, true);
	cr_expect_eq(growth(cc), 0, "long ago");
}

/* What was in flight in a round says nothing of the next one. */
Test(sctp_cc, a_round_that_uses_less_ends_the_growth, .description = "9260-7.2.1-6")
{
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_cc cc = make_fresh_sctp_cc_table();
		struct ddps_cc_ack a = { .acked = 1000, .srtt = MS, .now = SEC, .round = true };

		cc.cwnd = 100000;
		cc.max_flight = 90000;
		a.flight = i ? 50001 : 50000;
		ddps_cc_grow(&cc, &a);
		cr_expect_eq(cc.cwnd, 101000);
		cc.cwnd = 100000;
		cr_expect_eq(growth(cc), i ? 4000 : 0);
	}
}

/* The pace is that of the RTT that was reported last. */
Test(sctp_cc, the_pace_follows_the_rtt)
{
	struct ddps_cc cc = make_fresh_sctp_cc_table();
	struct ddps_cc_ack a = { .now = SEC };

	cr_expect_eq(ddps_cc_rate(&cc), 0, "none is known");
	for (unsigned ms = 1; ms <= 100; ms *= 10) {
		a.srtt = ms * MS;
		ddps_cc_grow(&cc, &a);
		cr_expect_float_eq(ddps_cc_rate(&cc) * ms, 2 * 14600 * 1e3, 1);
	}
}

/* 9260-7.2.1-2: one packet, until something is delivered; PRR alone moves a window that repairs. */
Test(sctp_cc, what_does_not_let_a_window_grow, .description = "9260-7.2.1-2")
{
	struct ddps_cc t3 = make_fresh_sctp_cc_table(), repair = make_fresh_sctp_cc_table();
	struct ddps_cc_ack a = { .srtt = MS, .now = SEC };

	ddps_cc_timeout(&t3, true);
	ddps_cc_grow(&t3, &a);
	cr_expect(t3.after_t3, "nothing was delivered");
	a.acked = 1000;
	ddps_cc_grow(&t3, &a);
	cr_expect_not(t3.after_t3);
	repair.limited = true;
	ddps_cc_loss(&repair, 14600);
	ddps_cc_grow(&repair, &a);
	cr_expect_eq(repair.cwnd, 14600);
}

Test(sctp_cc, slow_start_ends_at_ssthresh, .description = "9260-7.2.1-3")
{
	struct ddps_cc cc = make_fresh_sctp_cc_table();
	struct ddps_cc_ack a = { .acked = 1000, .srtt = MS, .now = SEC };

	cc.cwnd = 10000;
	cc.ssthresh = 12000;
	cc.limited = true;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.cwnd, 11000);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.cwnd, 12000);
	cr_expect_eq(cc.phase, DDPS_CC_AVOID);
}

Test(sctp_cc, growth_waits_while_there_is_a_queue)
{
	struct ddps_cc cc = make_fresh_sctp_cc_table();
	struct ddps_cc_ack a = { .acked = 1000, .srtt = MS, .now = 2 * SEC, .queued = true };

	cc.cwnd = cc.ssthresh = 300000;
	cc.phase = DDPS_CC_AVOID;
	cc.epoch = SEC;
	cc.k = 1;
	cc.limited = true;
	ddps_cc_grow(&cc, &a);
	a.now = 3 * SEC;
	a.enough = 280000;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.cwnd, 300000, "not before the round ends");
	cr_expect_eq(cc.epoch, SEC);
	a.queued = false;
	a.now = 5 * SEC;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.epoch, 4 * SEC, "the three seconds do not count");
	a.round = a.queued = true;
	a.enough = cc.cwnd;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.epoch, 4 * SEC);
	a.enough = cc.cwnd - 1;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.cwnd, a.enough);
	cr_expect_eq(cc.epoch, 0, "the curve begins anew");
}

/* RFC 9438 4.2: W(t) = C (t - K)^3 + Wmax, one RTT ahead, between cwnd and 1.5 cwnd. */
Test(sctp_cc, cubic_follows_its_curve)
{
	/* in packets of 1000 octets C is 400 */
	static const struct {
		uint64_t ms, acked, w_max, cwnd;
	} of[] = { { 0, 1 << 30, 160800, 110800 },    { 1000, 1 << 30, 160800, 135200 },
		   { 1000, 50000, 160800, 117600 },   { 4000, 1 << 30, 160800, 150000 },
		   { 8000, 1 << 30, 110000, 120800 }, { 20000, 100000, 160800, 150000 },
		   { 0, 1 << 30, 149000, 100000 },    { 0, 10, 160800, 100001 } };

	for (unsigned i = 0; i < 8; i++) {
		struct ddps_cc cc;
		struct ddps_cc_ack a = { .acked = of[i].acked, .srtt = SEC };

		ddps_cc_init(&cc, 1000, 1);
		cc.cwnd = 100000;
		cc.phase = DDPS_CC_AVOID;
		cc.ssthresh = 100000;
		cc.limited = true;
		cc.w_max = (double)of[i].w_max;
		cc.epoch = SEC;
		cc.k = 6;
		a.now = SEC + of[i].ms * MS;
		ddps_cc_grow(&cc, &a);
		cr_expect(cc.cwnd + 1 >= of[i].cwnd && cc.cwnd <= of[i].cwnd, "%u: %llu", i,
			  (unsigned long long)cc.cwnd);
	}
}

Test(sctp_cc, an_epoch_begins_where_the_window_is)
{
	struct ddps_cc cc;
	struct ddps_cc_ack a = { .acked = 1000, .srtt = MS, .now = 0 };

	ddps_cc_init(&cc, 1000, 1);
	cc.cwnd = cc.ssthresh = 100000;
	cc.phase = DDPS_CC_AVOID;
	cc.limited = true;
	cc.w_max = 150000;
	cc.part = 0.75;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.epoch, 1, "0 would be none");
	cr_expect_float_eq(cc.k, 5, 1e-6);
	cr_expect_eq(cc.cwnd_prior, 100000);
	cr_expect_float_eq(cc.w_est, 100000 + 10, 1e-6);
	cr_expect_eq(cc.cwnd, 100010, "Reno's");
	cr_expect_lt(cc.part, 0.5);
	cc.used = true;
	ddps_cc_set_smss(&cc, 2000);
	cc.w_max = 90000;
	a.now = 7;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.epoch, 7);
	cr_expect_eq(cc.k, 0, "it is beyond what it was at the loss");
	cr_expect_eq(cc.w_max, 100010);
}

/* RFC 9438 4.2: K is the cube root of what is missing, in packets, by C. */
Test(sctp_cc, how_long_the_curve_takes_to_return)
{
	/* in packets of 1000 octets C is 400 */
	static const struct {
		uint64_t missing;
		double k;
	} is[] = { { 0, 0 },	{ 1, 0.135721 },   { 50, 0.5 },	      { 200, 0.793701 },
		   { 400, 1 },	{ 600, 1.144714 }, { 800, 1.259921 }, { 1200, 1.442250 },
		   { 3200, 2 }, { 50000, 5 } };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_cc cc;
		struct ddps_cc_ack a = { .acked = 1, .srtt = MS, .now = SEC };

		ddps_cc_init(&cc, 1000, 1);
		cc.cwnd = cc.ssthresh = 100000;
		cc.phase = DDPS_CC_AVOID;
		cc.limited = true;
		cc.w_max = (double)(100000 + is[i].missing);
		ddps_cc_grow(&cc, &a);
		cr_expect_float_eq(cc.k, is[i].k, 1e-5, "%u: %f", i, cc.k);
	}
}

/* What was left of the epoch before is not of this one. */
Test(sctp_cc, an_epoch_begins_with_whole_octets)
{
	struct ddps_cc cc;
	struct ddps_cc_ack a = { .acked = 1002, .srtt = SEC, .now = SEC };

	ddps_cc_init(&cc, 1000, 1);
	cc.cwnd = cc.ssthresh = 100000;
	cc.phase = DDPS_CC_AVOID;
	cc.limited = true;
	cc.w_max = 150000;
	cc.part = 0.9;
	ddps_cc_grow(&cc, &a);
	/* the curve is at 124,400 a round trip from now: 244.488 for 1.002 % of the window */
	cr_expect_eq(cc.cwnd, 100244);
	cr_expect_float_eq(cc.part, 0.488, 1e-6);
}

/* RFC 9438 4.3: Reno's window counts where the curve is below it, and never takes anything away. */
Test(sctp_cc, when_it_is_renos_window)
{
	/* the curve is at 110,000, and a tenth of what is missing there is delivered */
	static const struct {
		double reno;
		uint64_t cwnd;
	} is[] = { { 109999, 100100 }, { 110000, 100100 }, { 110001, 110001 }, { 99000, 100100 } };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_cc cc;
		struct ddps_cc_ack a = { .acked = 1000, .srtt = 0, .now = 2 * SEC };

		ddps_cc_init(&cc, 1000, 1);
		cc.cwnd = cc.ssthresh = 100000;
		cc.phase = DDPS_CC_AVOID;
		cc.limited = true;
		cc.w_max = 110000;
		cc.w_est = is[i].reno - 10; /* a packet a round: 10 for a hundredth of it */
		cc.epoch = SEC;
		cc.k = 1;
		ddps_cc_grow(&cc, &a);
		cr_expect_eq(cc.cwnd, is[i].cwnd, "%u: %llu", i, (unsigned long long)cc.cwnd);
	}
}

/* The curve has fallen behind, but the window has not. */
Test(sctp_cc, a_window_above_renos_stays)
{
	struct ddps_cc cc;
	struct ddps_cc_ack a = { .acked = 10, .srtt = MS, .now = 2 * SEC };

	ddps_cc_init(&cc, 1000, 1);
	cc.cwnd = cc.ssthresh = 100000;
	cc.phase = DDPS_CC_AVOID;
	cc.limited = true;
	cc.w_max = 90000;
	cc.w_est = 95000;
	cc.epoch = SEC;
	cc.k = 1;
	ddps_cc_grow(&cc, &a);
	cr_expect_eq(cc.cwnd, 100000);
}

/* RFC 9438 4.3: Reno's window, by 9/17 of a packet a round up to where the loss was. */
Test(sctp_cc, no_slower_than_reno)
{
	static const double prior[] = { 100001, 100000 }, more[] = { 9000.0 / 17, 1000 };

	for (unsigned i = 0; i < 2; i++) {
		struct ddps_cc cc;
		struct ddps_cc_ack a = { .acked = 100000, .srtt = MS, .now = 2 * SEC };

		ddps_cc_init(&cc, 1000, 1);
		cc.cwnd = cc.ssthresh = 100000;
		cc.phase = DDPS_CC_AVOID;
		cc.limited = true;
		cc.w_max = 100000;
		cc.w_est = 100000;
		cc.cwnd_prior = prior[i];
		cc.epoch = SEC;
		cc.k = 1.002;
		ddps_cc_grow(&cc, &a);
		cr_expect_float_eq(cc.w_est, 100000 + more[i], 1e-6);
		cr_expect_eq(cc.cwnd, (uint64_t)(100000 + more[i]));
	}
}

/* What does not make a whole octet is kept for the next. */
Test(sctp_cc, small_acknowledgements_add_up)
{
	struct ddps_cc cc;
	struct ddps_cc_ack a = { .acked = 10, .srtt = MS, .now = 7 * SEC };

	ddps_cc_init(&cc, 1000, 1);
	cc.cwnd = cc.ssthresh = 100000;
	cc.phase = DDPS_CC_AVOID;
	cc.limited = true;
	cc.w_max = 102000;
	cc.epoch = SEC;
	cc.k = 6;
	for (unsigned i = 0; i < 1000; i++)
		ddps_cc_grow(&cc, &a);
	/* a tenth of the window is delivered: a tenth of 2000, less what is already there */
	cr_expect(cc.cwnd >= 100188 && cc.cwnd <= 100200, "%llu", (unsigned long long)cc.cwnd);
}

/* After a pause of several RTOs: slow start, but not in the middle of a repair. */
Test(sctp_cc, a_pause_ends_no_repair, .description = "9260-7.2.1-10")
{
	static const enum ddps_cc_phase phase[] = { DDPS_CC_SLOW, DDPS_CC_CSS, DDPS_CC_AVOID,
						    DDPS_CC_RECOVER };
	uint64_t wait;

	for (unsigned i = 0; i < sizeof phase / sizeof *phase; i++) {
		struct ddps_cc cc;

		ddps_cc_init(&cc, 1400, 128000);
		cc.used = true;
		cc.phase = phase[i];
		cc.cwnd = 64 * 14000;
		cc.ssthresh = 64 * 14000;
		cc.sent_at = 1;
		ddps_cc_room(&cc, 0, 1000000000, 1 + 3 * 1000000000ull, &wait);
		cr_expect_eq(cc.cwnd, 8 * 14000, "%u", i);
		cr_expect_eq(cc.phase,
			     phase[i] == DDPS_CC_RECOVER ? DDPS_CC_RECOVER : DDPS_CC_SLOW);
	}
}
