/* SPDX-License-Identifier: BSD-2-Clause */
/* Losses, rests and the pace of src/sctp: worked values, and both sides of each limit. */
#include "sctp/send/tx_cc.h"
#include <criterion/criterion.h>

#define MS   1000000ull
#define SEC  (1000 * MS)
#define SMSS 1000u

static struct ddps_cc make_cc_in(uint64_t cwnd)
{
	struct ddps_cc cc;

	ddps_cc_init(&cc, SMSS, 128000);
	cc.cwnd = cwnd;
	return cc;
}

Test(sctp_cc, a_loss_takes_three_tenths, .description = "9260-7.2.3-1")
{
	static const uint64_t is[][2] = { { 100000, 70000 }, { 10000, 7000 }, { 6000, 4200 },
					  { 5714, 4000 },    { 5000, 4000 },  { 1, 4000 } };

	for (unsigned i = 0; i < 6; i++) {
		struct ddps_cc loss = make_cc_in(is[i][0]), t3 = loss, probe = loss;

		loss.stopped = loss.epoch = SEC;
		loss.after_t3 = true;
		loss.prr_out = loss.prr_delivered = 7;
		ddps_cc_loss(&loss, 0);
		cr_expect_eq(loss.ssthresh, is[i][1]);
		cr_expect_eq(loss.phase, DDPS_CC_RECOVER);
		cr_expect_eq(loss.fs, 1);
		cr_expect_eq((uint64_t)loss.cwnd_prior, is[i][0]);
		cr_expect_eq((uint64_t)loss.w_max, is[i][0]);
		cr_expect_not(loss.after_t3 || loss.stopped || loss.epoch || loss.prr_out ||
			      loss.prr_delivered);
		ddps_cc_timeout(&t3, true);
		cr_expect_eq(t3.ssthresh, is[i][1]);
		cr_expect_eq(t3.w_max, 0);
		probe.epoch = SEC;
		ddps_cc_repaired(&probe);
		cr_expect_eq(probe.ssthresh, is[i][1]);
		cr_expect_eq(probe.cwnd, is[i][1]);
		cr_expect_eq(probe.phase, DDPS_CC_AVOID);
		cr_expect_eq(probe.epoch, 0);
	}
}

/* RFC 9438 4.7: a window that did not get to where it was gives way to others. */
Test(sctp_cc, fast_convergence)
{
	static const double was[] = { 99999, 100000, 100001 }, now[] = { 100000, 100000, 85000 };

	for (unsigned i = 0; i < 3; i++) {
		struct ddps_cc cc = make_cc_in(100000);

		cc.w_max = was[i];
		ddps_cc_loss(&cc, 1);
		cr_expect_float_eq(cc.w_max, now[i], 1e-6);
	}
}

/* RFC 9937 5: what may leave for what one SACK brings. */
Test(sctp_cc, proportional_rate_reduction_step_by_step, .description = "9260-7.2.4-6")
{
	/* ssthresh is 70,000 */
	static const struct {
		uint64_t acked, had, out, flight, left;
		bool cum, lost;
	} is[] = {
		{ 1000, 0, 0, 99000, 701, true, false }, /* 1000 * 0.7 and one octet */
		{ 1000, 9000, 6500, 90000, 501, true, false },
		{ 1000, 9000, 7000, 90000, 1, true, false },
		{ 1000, 9000, 7001, 90000, 0, true, false },
		{ 1000, 9000, 9999, 90000, 0, true, false },
		{ 1000, 0, 0, 70001, 701, true, false },
		{ 1000, 0, 0, 70000, 0, true, false },		/* the gap is 0; but see below */
		{ 1000, 9000, 100, 60000, 10000, true, false }, /* no more than the gap */
		{ 1000, 9000, 5000, 60000, 6000, true, false }, /* 10,000 - 5000 and a packet */
		{ 1000, 9000, 5000, 60000, 5000, true, true },
		{ 1000, 9000, 5000, 60000, 5000, false, false },
		{ 1000, 9000, 9500, 60000, 1000, false, false }, /* at least what arrived */
		{ 1000, 9000, 10000, 60000, 1000, false, false },
		{ 1000, 9000, 30000, 60000, 1000, false, false },
		{ 1000, 9000, 30000, 69500, 500, false, false },
		{ 0, 9000, 8999, 60000, 1, false, false },
		{ 0, 9000, 9000, 60000, 0, false, false },
		{ 0, 9000, 30000, 60000, 0, false, false },
		{ 0, 0, 0, 90000, 1000, false, true }, /* the first retransmission always goes */
		{ 0, 0, 1, 90000, 0, false, true },
	};

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_cc cc = make_cc_in(100000);
		struct ddps_cc_ack a = { .acked = is[i].acked, .flight = is[i].flight, .srtt = MS };

		ddps_cc_loss(&cc, 100000);
		cr_assert_eq(cc.ssthresh, 70000);
		cc.prr_delivered = is[i].had;
		cc.prr_out = is[i].out;
		a.cum_advanced = is[i].cum;
		a.new_loss = is[i].lost;
		ddps_cc_recover(&cc, &a);
		cr_expect_eq(cc.srtt, MS);
		cr_expect_eq(cc.prr_delivered, is[i].had + is[i].acked);
		cr_expect_eq(cc.cwnd - is[i].flight, !is[i].out && !is[i].left ? SMSS : is[i].left,
			     "%u: %llu", i, (unsigned long long)(cc.cwnd - is[i].flight));
	}
}

/* What comes behind a T3 begins anew, whether it is the first of a series or not. */
Test(sctp_cc, the_curve_ends_with_t3, .description = "9260-7.2.3-2")
{
	for (unsigned first = 0; first < 2; first++) {
		struct ddps_cc cc = make_cc_in(100000);

		cc.phase = DDPS_CC_AVOID;
		cc.ssthresh = 50000;
		cc.epoch = cc.stopped = SEC;
		ddps_cc_timeout(&cc, first);
		cr_expect_eq(cc.cwnd, SMSS);
		cr_expect_eq(cc.phase, DDPS_CC_SLOW);
		cr_expect_eq(cc.ssthresh, first ? 70000 : 50000);
		cr_expect(!cc.epoch && !cc.stopped);
	}
}

/* What is late for several round trips ends slow start, and nothing else. */
Test(sctp_cc, a_doubt_ends_slow_start)
{
	for (enum ddps_cc_phase is = DDPS_CC_SLOW; is <= DDPS_CC_RECOVER; is++) {
		struct ddps_cc cc = make_cc_in(100000);
		bool slow = is == DDPS_CC_SLOW || is == DDPS_CC_CSS;

		cc.phase = is;
		ddps_cc_doubt(&cc);
		cr_expect_eq(cc.phase, slow ? DDPS_CC_AVOID : is);
		cr_expect_eq(cc.ssthresh, slow ? 100000 : DDPS_CC_NO_LIMIT);
		cr_expect_eq(cc.cwnd, 100000);
	}
}

Test(sctp_cc, only_what_recovers_is_recovered)
{
	struct ddps_cc cc = make_cc_in(50000);
	struct ddps_cc_ack a = { .acked = 1000, .flight = 1000, .srtt = MS };

	cc.ssthresh = 20000;
	ddps_cc_recovered(&cc);
	ddps_cc_recover(&cc, &a);
	cr_expect_eq(cc.cwnd, 50000);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
	cr_expect_eq(cc.srtt, 0);
	ddps_cc_loss(&cc, 50000);
	ddps_cc_sent(&cc, 300, 300, SEC);
	ddps_cc_sent(&cc, 400, 700, SEC);
	cr_expect_eq(cc.prr_out, 700);
	cr_expect_eq(cc.max_flight, 700);
	ddps_cc_sent(&cc, 100, 600, 2 * SEC);
	cr_expect_eq(cc.max_flight, 700);
	cr_expect_eq(cc.sent_at, 2 * SEC);
	cc.epoch = SEC;
	ddps_cc_recovered(&cc);
	cr_expect_eq(cc.cwnd, 35000);
	cr_expect_eq(cc.phase, DDPS_CC_AVOID);
	cr_expect_eq(cc.epoch, 0);
	ddps_cc_sent(&cc, 100, 600, 2 * SEC);
	cr_expect_eq(cc.prr_out, 800, "not of this repair");
}

Test(sctp_cc, a_false_alarm_leaves_nothing)
{
	for (unsigned i = 0; i < 3; i++) {
		struct ddps_cc cc = make_cc_in(90000), was;

		cc.ssthresh = 80000;
		cc.epoch = 3 * SEC;
		cc.w_max = 95000;
		cc.k = 2.5;
		cc.w_est = 91000;
		cc.cwnd_prior = 99000;
		cc.phase = DDPS_CC_AVOID;
		was = cc;
		if (i)
			ddps_cc_timeout(&cc, true);
		else
			ddps_cc_loss(&cc, 90000);
		if (i == 2)
			cc.cwnd = 120000; /* it has grown beyond that since */
		cc.k = cc.w_est = 7;
		cc.epoch = 7;
		ddps_cc_undo(&cc);
		cr_expect_eq(cc.cwnd, i == 2 ? 120000 : was.cwnd);
		cr_expect_eq(cc.ssthresh, was.ssthresh);
		cr_expect_eq(cc.epoch, was.epoch);
		cr_expect_eq(cc.w_max, was.w_max);
		cr_expect_eq(cc.k, was.k);
		cr_expect_eq(cc.w_est, was.w_est);
		cr_expect_eq(cc.cwnd_prior, was.cwnd_prior);
		cr_expect_eq(cc.phase, was.phase);
		cr_expect_not(cc.after_t3);
		cc.cwnd = 1;
		ddps_cc_undo(&cc);
		cr_expect_eq(cc.cwnd, 1, "once");
	}
}

/* While a loss is repaired cwnd moves with what is in flight; what is meant is ssthresh. */
Test(sctp_cc, a_loss_within_a_repair)
{
	struct ddps_cc cc = make_cc_in(100000);

	ddps_cc_loss(&cc, 100000);
	cc.cwnd = 123456;
	ddps_cc_loss(&cc, 100000);
	cr_expect_eq(cc.ssthresh, 49000);
	cr_expect_eq(cc.fs, 100000);
	ddps_cc_undo(&cc);
	cr_expect_eq(cc.cwnd, 70000);
	cr_expect_eq(cc.phase, DDPS_CC_AVOID);
}

/* 9260-7.2.1-10: halved for each RTO of rest, not below the first window. */
Test(sctp_cc, a_rest_halves_the_window, .description = "9260-7.2.1-10")
{
	static const struct {
		uint64_t rest, cwnd, after;
	} is[] = { { SEC, 160000, 160000 },	   { SEC + 1, 160000, 80000 },
		   { 2 * SEC - 1, 160000, 80000 }, { 2 * SEC, 160000, 40000 },
		   { 4 * SEC, 160000, 10000 },	   { 3 * SEC, 160016, 20002 },
		   { 5 * SEC, 160000, 10000 },	   { 63 * SEC, 160000, 10000 },
		   { 64 * SEC, 160000, 10000 },	   { 65 * SEC, 160000, 10000 },
		   { 2 * SEC, 10000, 10000 },	   { 2 * SEC, 10001, 10000 },
		   { 2 * SEC, 9000, 9000 } };
	uint64_t wait;

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_cc cc = make_cc_in(is[i].cwnd), other;
		uint64_t now = 5 * SEC + is[i].rest;
		bool rested = is[i].rest > SEC;

		cc.phase = DDPS_CC_AVOID;
		cc.ssthresh = is[i].cwnd / 2;
		cc.epoch = SEC;
		ddps_cc_sent(&cc, 1, 1, 5 * SEC);
		other = cc;
		ddps_cc_room(&other, 1, SEC, now, &wait);
		cr_expect_eq(other.cwnd, is[i].cwnd, "something is in flight");
		other.ssthresh = DDPS_CC_NO_LIMIT;
		ddps_cc_room(&other, 0, SEC, now, &wait);
		cr_expect_eq(other.cwnd, is[i].after);
		cr_expect_eq(other.ssthresh, DDPS_CC_NO_LIMIT);
		cr_expect_eq(other.phase, DDPS_CC_AVOID);
		ddps_cc_room(&cc, 0, SEC, now, &wait);
		cr_expect_eq(cc.cwnd, is[i].after, "%u: %llu", i, (unsigned long long)cc.cwnd);
		cr_expect_eq(cc.ssthresh, rested ? is[i].cwnd / 4 * 3 : is[i].cwnd / 2);
		cr_expect_eq(cc.epoch, rested ? SEC + is[i].rest : SEC);
		cr_expect_eq(cc.sent_at, rested ? now : 5 * SEC);
		if (is[i].cwnd > 20000)
			cr_expect_eq(cc.phase, rested ? DDPS_CC_SLOW : DDPS_CC_AVOID);
	}
}

/* Slow start is for a window that a rest has made smaller than ssthresh. */
Test(sctp_cc, a_rest_that_takes_nothing_begins_no_slow_start, .description = "9260-7.2.1-10")
{
	static const struct {
		uint64_t cwnd, ssthresh;
		enum ddps_cc_phase then;
	} is[] = { { 10000, 20000, DDPS_CC_AVOID },
		   { 10001, 20000, DDPS_CC_SLOW },
		   { 13333, 10000, DDPS_CC_AVOID },
		   { 13333, 10001, DDPS_CC_SLOW } };
	uint64_t wait;

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_cc cc = make_cc_in(is[i].cwnd);

		cc.phase = DDPS_CC_AVOID;
		cc.ssthresh = is[i].ssthresh;
		ddps_cc_sent(&cc, 1, 1, SEC);
		ddps_cc_room(&cc, 0, SEC, 9 * SEC, &wait);
		cr_expect_eq(cc.cwnd, 10000);
		cr_expect_eq(cc.ssthresh, is[i].ssthresh);
		cr_expect_eq(cc.phase, is[i].then, "%u", i);
	}
}

Test(sctp_cc, a_rest_before_the_first_loss_or_packet)
{
	struct ddps_cc cc = make_cc_in(160000);
	uint64_t wait;

	ddps_cc_room(&cc, 0, SEC, 9 * SEC, &wait);
	cr_expect_eq(cc.cwnd, 160000, "nothing was sent yet");
	ddps_cc_sent(&cc, 1, 1, SEC);
	ddps_cc_room(&cc, 0, 0, 9 * SEC, &wait);
	cr_expect_eq(cc.cwnd, 160000, "no RTO is known");
	cc.ssthresh = 150000;
	ddps_cc_room(&cc, 0, SEC, 3 * SEC, &wait);
	cr_expect_eq(cc.cwnd, 40000);
	cr_expect_eq(cc.ssthresh, 150000, "it is more than three quarters");
	cr_expect_eq(cc.epoch, 0, "none has begun");
}

Test(sctp_cc, room_is_what_is_left, .description = "9260-6.1-9 9260-7.2.1-2")
{
	struct ddps_cc cc = make_cc_in(30000);
	uint64_t wait = 1;

	cr_expect_eq(ddps_cc_room(&cc, 29999, SEC, SEC, &wait), 1);
	cr_expect_not(cc.limited);
	cr_expect_eq(ddps_cc_room(&cc, 30000, SEC, SEC, &wait), 0);
	cr_expect_eq(wait, 0);
	cr_expect(cc.limited);
	cc.cwnd = SMSS - 1;
	cr_expect_eq(ddps_cc_room(&cc, 998, SEC, SEC, &wait), 1);
	cr_expect_eq(ddps_cc_room(&cc, 0, SEC, SEC, &wait), SMSS);
	cc.cwnd = 60000;
	cr_expect_eq(ddps_cc_room(&cc, 10000, SEC, SEC, &wait), 50000);
	cc.cwnd = 200000;
	cr_expect_eq(ddps_cc_room(&cc, 0, SEC, SEC, &wait), DDPS_CC_BUNDLE);
	cc.after_t3 = true;
	cr_expect_eq(ddps_cc_room(&cc, 1, SEC, SEC, &wait), 0);
	cr_expect_gt(ddps_cc_room(&cc, 0, SEC, SEC, &wait), 0);
}

/* The bucket is empty, and full again in a millisecond: a timer must not be later than that by itself. */
Test(sctp_cc, what_is_worth_a_timer)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_cc cc = make_cc_in(100000);
		uint64_t wait;

		cc.srtt = 10 * MS;
		cc.grain = MS + i;
		cr_assert_eq(ddps_cc_room(&cc, 0, SEC, SEC, &wait), 20000);
		ddps_cc_sent(&cc, 20000, 20000, SEC);
		cr_expect_eq(ddps_cc_room(&cc, 20000, SEC, SEC, &wait), i ? 20000 : 0);
		cr_expect_eq(wait, i ? 0 : SEC + MS);
	}
}

/* What leaves in a millisecond at a rate above the window's, no less than two packets. */
Test(sctp_cc, a_bundle_is_a_millisecond)
{
	static const struct {
		uint64_t cwnd, ssthresh, srtt, room;
		enum ddps_cc_phase phase;
	} is[] = { { 100000, 1, 10 * MS, 20000, DDPS_CC_SLOW },
		   { 100000, 1, 10 * MS, 20000, DDPS_CC_CSS },
		   { 100000, 1, 10 * MS, 12500, DDPS_CC_AVOID },
		   { 100000, 1, 10 * MS, 12500, DDPS_CC_RECOVER },
		   { 100000, 200000, 10 * MS, 25000, DDPS_CC_RECOVER },
		   { 100000, 200000, 10 * MS, 12500, DDPS_CC_AVOID },
		   { 100000, 1, 62 * MS, 2016, DDPS_CC_AVOID },
		   { 100000, 1, 63 * MS, 2000, DDPS_CC_AVOID },
		   { 100000, 1, MS, DDPS_CC_BUNDLE, DDPS_CC_AVOID } };
	uint64_t wait;

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_cc cc = make_cc_in(is[i].cwnd);
		uint64_t ns;

		cc.ssthresh = is[i].ssthresh;
		cc.phase = is[i].phase;
		cc.srtt = is[i].srtt;
		cr_expect_eq(ddps_cc_room(&cc, 0, SEC, SEC, &wait), is[i].room);
		ddps_cc_sent(&cc, is[i].room - 1, 1, SEC);
		cr_expect_gt(ddps_cc_room(&cc, 1, SEC, SEC, &wait), 0, "the last octet of it");
		cr_expect_eq(wait, 0);
		ddps_cc_sent(&cc, 1000, 1, SEC);
		cr_expect_eq(ddps_cc_room(&cc, 1, SEC, SEC, &wait), 0);
		cr_expect(cc.limited);
		ns = (uint64_t)((double)(is[i].room + 999) * 1e9 / ddps_cc_rate(&cc));
		cr_expect(wait >= SEC + ns - 1 && wait <= SEC + ns + 1);
		cr_expect_gt(ddps_cc_room(&cc, 1, SEC, wait, &wait), 0);
		cc.grain = 2 * ns;
		ddps_cc_sent(&cc, is[i].room + 1, 1, SEC);
		cr_expect_gt(ddps_cc_room(&cc, 1, SEC, cc.tokens_at, &wait), 0,
			     "not worth a timer");
	}
}
