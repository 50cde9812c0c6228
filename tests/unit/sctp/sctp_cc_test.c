/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control and pacing of src/sctp: each rule for itself. */
#include "sctp/send/tx_cc.h"
#include <criterion/criterion.h>

#define MS   1000000ull
#define SEC  (1000 * MS)
#define SMSS 1460u

static struct ddps_cc make_fresh_sctp_cc(void)
{
	struct ddps_cc cc;

	ddps_cc_init(&cc, SMSS, 128000);
	return cc;
}

/* A round trip in which the window is full and everything is delivered. */
static void make_sctp_cc_round_trip(struct ddps_cc *cc, uint64_t *now, uint64_t rtt)
{
	uint64_t window = cc->cwnd, wait;
	struct ddps_cc_ack a = { .rtt = rtt, .srtt = rtt, .cum_advanced = true };

	ddps_cc_sent(cc, SMSS, window, *now);
	cr_assert_eq(ddps_cc_room(cc, window, SEC, *now, &wait), 0);
	*now += rtt;
	for (uint64_t done = 0; done < window; done += 2 * SMSS) {
		a.now = *now;
		a.acked = window - done < 2 * SMSS ? window - done : 2 * SMSS;
		a.flight = window - done - a.acked;
		a.round = !a.flight;
		ddps_cc_grow(cc, &a);
	}
}

Test(sctp_cc, slow_start_doubles,
     .description = "9260-7.2.1-5 9260-7.2-1 9260-7.2.1-3 9260-7.2.1-7 9260-7.1-d1")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t now = SEC;

	cr_expect_eq(cc.cwnd, 10 * SMSS);
	cr_expect_eq(cc.ssthresh, DDPS_CC_NO_LIMIT);
	make_sctp_cc_round_trip(&cc, &now, 20 * MS);
	cr_expect_eq(cc.cwnd, 20 * SMSS);
	make_sctp_cc_round_trip(&cc, &now, 20 * MS);
	cr_expect_eq(cc.cwnd, 40 * SMSS);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
}

Test(sctp_cc, window_that_is_not_used_does_not_grow, .description = "9260-7.2.1-6")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	struct ddps_cc_ack a = { .acked = SMSS, .rtt = MS, .srtt = MS, .round = true };

	for (uint64_t now = SEC; now < 2 * SEC; now += MS) {
		ddps_cc_sent(&cc, SMSS, SMSS, now);
		a.now = now;
		ddps_cc_grow(&cc, &a);
		cr_assert_eq(cc.cwnd, 10 * SMSS);
	}
}

/* RFC 9406: a delay that rises by more than 4 ms ends the exponential growth, without a loss. */
Test(sctp_cc, hystart_leaves_before_the_queue_is_full, .description = "9260-7.2-1")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t now = SEC, before;

	for (int i = 0; i < 4; i++)
		make_sctp_cc_round_trip(&cc, &now, 20 * MS);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
	make_sctp_cc_round_trip(&cc, &now, 26 * MS);
	cr_expect_eq(cc.phase, DDPS_CC_CSS);
	before = cc.cwnd;
	make_sctp_cc_round_trip(&cc, &now, 27 * MS);
	cr_expect_leq(cc.cwnd, before * 5 / 4 + SMSS, "a quarter of the growth");
	for (int i = 0; i < 4; i++)
		make_sctp_cc_round_trip(&cc, &now, 27 * MS);
	cr_expect_eq(cc.phase, DDPS_CC_AVOID);
	cr_expect_neq(cc.ssthresh, DDPS_CC_NO_LIMIT);
}

Test(sctp_cc, hystart_takes_a_false_alarm_back)
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t now = SEC;

	for (int i = 0; i < 4; i++)
		make_sctp_cc_round_trip(&cc, &now, 20 * MS);
	make_sctp_cc_round_trip(&cc, &now, 26 * MS);
	cr_expect_eq(cc.phase, DDPS_CC_CSS);
	make_sctp_cc_round_trip(&cc, &now, 20 * MS);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
}

/* RFC 9438 4.2: after a loss at W it is at W again K = cbrt(W (1 - b) / C) seconds later. */
Test(sctp_cc, cubic_returns_after_k)
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t now = SEC, start, full = 1000 * SMSS;
	double k = 9.0856; /* cbrt(1000 * 0.3 / 0.4) */

	cc.cwnd = full;
	cc.ssthresh = full;
	cc.phase = DDPS_CC_AVOID;
	ddps_cc_loss(&cc, full);
	cr_expect(cc.ssthresh + 1 >= full / 10 * 7 && cc.ssthresh <= full / 10 * 7);
	ddps_cc_recovered(&cc);
	cr_expect_eq(cc.cwnd, cc.ssthresh);
	start = now;
	while (cc.cwnd < full * 99 / 100)
		make_sctp_cc_round_trip(&cc, &now, 100 * MS);
	/* the curve is flat there: 99 % comes cbrt(0.01 * 1000 / 0.4) = 2.9 s before K */
	cr_expect(now - start > (uint64_t)((k - 3.4) * 1e9) &&
			  now - start < (uint64_t)((k - 2.4) * 1e9),
		  "%f s", (double)(now - start) / 1e9);
	cr_expect_lt(cc.cwnd, full);
}

/* With a short RTT it is no slower than Reno with b = 0.7 (RFC 9438 4.3). */
Test(sctp_cc, friendly_to_reno)
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t now = SEC;

	cc.cwnd = cc.ssthresh = 20 * SMSS;
	cc.phase = DDPS_CC_AVOID;
	ddps_cc_loss(&cc, cc.cwnd);
	ddps_cc_recovered(&cc);
	for (int i = 0; i < 34; i++)
		make_sctp_cc_round_trip(&cc, &now, MS);
	/* from 14 packets 9/17 of a packet a round trip up to 20 (11.3 of them), then one */
	cr_expect(cc.cwnd > 41 * SMSS && cc.cwnd < 44 * SMSS, "%u", (unsigned)(cc.cwnd / SMSS));
}

Test(sctp_cc, floor_of_four_packets, .description = "9260-7.2.3-1")
{
	struct ddps_cc cc = make_fresh_sctp_cc();

	cc.cwnd = 2 * SMSS;
	ddps_cc_loss(&cc, cc.cwnd);
	cr_expect_eq(cc.ssthresh, 4 * SMSS);
}

Test(sctp_cc, t3_leaves_one_packet, .description = "9260-7.2.1-2 9260-7.2.3-2")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	struct ddps_cc_ack a = { .now = 2 * SEC, .acked = SMSS, .srtt = MS };
	uint64_t wait;

	cc.cwnd = 100 * SMSS;
	ddps_cc_timeout(&cc, true);
	cr_expect_eq(cc.cwnd, SMSS);
	cr_expect_eq(cc.ssthresh, 70 * SMSS);
	cr_expect_gt(ddps_cc_room(&cc, 0, SEC, SEC, &wait), 0);
	ddps_cc_sent(&cc, 100, 100, SEC);
	cr_expect_eq(ddps_cc_room(&cc, 100, SEC, SEC, &wait), 0, "one packet, however small");
	ddps_cc_timeout(&cc, false);
	cr_expect_eq(cc.ssthresh, 70 * SMSS, "RFC 5681 3.1");
	ddps_cc_grow(&cc, &a);
	cr_expect_gt(ddps_cc_room(&cc, 0, SEC, 2 * SEC, &wait), 0);
}

/* RFC 9937: while more than ssthresh is in flight, for each 10 delivered about 7 leave. */
Test(sctp_cc, recovery_is_proportional, .description = "9260-7.2.4-6 9260-7.2.4-4 9260-7.2.4-5")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t flight = 99 * SMSS, sent = 0;
	struct ddps_cc_ack a = { .acked = SMSS, .srtt = 20 * MS, .now = SEC, .new_loss = true };

	cc.cwnd = 100 * SMSS;
	ddps_cc_loss(&cc, 100 * SMSS);
	for (int i = 0; i < 99; i++) {
		flight -= SMSS;
		a.flight = flight;
		ddps_cc_recover(&cc, &a);
		a.new_loss = false;
		if (!i)
			cr_expect_gt(cc.cwnd, flight, "the first retransmission always goes");
		while (flight + SMSS <= cc.cwnd) {
			flight += SMSS;
			sent += SMSS;
			ddps_cc_sent(&cc, SMSS, flight, SEC);
		}
		cr_assert_lt(flight, 100 * SMSS);
	}
	cr_expect(flight >= 68 * SMSS && flight <= 71 * SMSS, "%u", (unsigned)(flight / SMSS));
	cr_expect(sent >= 67 * SMSS && sent <= 72 * SMSS);
	ddps_cc_recovered(&cc);
	cr_expect_eq(cc.cwnd, 70 * SMSS);
}

/* All of what was sent is lost, and as much has left as was delivered: no timer runs, so who would
 * ever send again? */
Test(sctp_cc, with_nothing_in_flight_a_packet_may_leave, .description = "9260-7.2.4-6")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	struct ddps_cc_ack a = { .acked = 728, .rtt = MS, .srtt = MS, .now = SEC, .flight = 1444 };
	uint64_t wait;

	ddps_cc_sent(&cc, 2 * SMSS, 2 * SMSS, SEC);
	ddps_cc_loss(&cc, 2 * SMSS);
	ddps_cc_sent(&cc, 728, 2 * SMSS, SEC);
	ddps_cc_recover(&cc, &a);
	a.acked = a.flight = 0;
	ddps_cc_recover(&cc, &a);
	cr_expect_gt(ddps_cc_room(&cc, 0, SEC, SEC + MS, &wait), 0);
}

Test(sctp_cc, false_alarm_is_taken_back)
{
	struct ddps_cc cc = make_fresh_sctp_cc(), was;
	uint64_t now = SEC;

	for (int i = 0; i < 3; i++)
		make_sctp_cc_round_trip(&cc, &now, 20 * MS);
	was = cc;
	ddps_cc_loss(&cc, cc.cwnd);
	ddps_cc_undo(&cc);
	cr_expect_eq(cc.cwnd, was.cwnd);
	cr_expect_eq(cc.ssthresh, was.ssthresh);
	cr_expect_eq(cc.phase, DDPS_CC_SLOW);
	ddps_cc_undo(&cc); /* once */
	cr_expect_eq(cc.cwnd, was.cwnd);
	ddps_cc_timeout(&cc, true);
	ddps_cc_undo(&cc);
	cr_expect_eq(cc.cwnd, was.cwnd);
}

Test(sctp_cc, idle_window_shrinks_and_ssthresh_remembers, .description = "9260-7.2.1-10 9260-7.1-1")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t wait;

	cc.cwnd = 160 * SMSS;
	cc.phase = DDPS_CC_AVOID;
	cc.ssthresh = 80 * SMSS;
	ddps_cc_sent(&cc, SMSS, SMSS, SEC);
	ddps_cc_room(&cc, 0, SEC, SEC + SEC / 2, &wait);
	cr_expect_eq(cc.cwnd, 160 * SMSS, "not yet");
	ddps_cc_room(&cc, 0, SEC, 3 * SEC + SEC / 2, &wait);
	cr_expect_eq(cc.cwnd, 40 * SMSS);
	cr_expect_eq(cc.ssthresh, 120 * SMSS);
	ddps_cc_room(&cc, 0, SEC, 3 * SEC + SEC / 2, &wait);
	cr_expect_eq(cc.cwnd, 40 * SMSS, "once");
	ddps_cc_room(&cc, 0, SEC, 100 * SEC, &wait);
	cr_expect_eq(cc.cwnd, 10 * SMSS, "not below the first window");
	cc.cwnd = 4 * SMSS;
	ddps_cc_room(&cc, 0, SEC, 300 * SEC, &wait);
	cr_expect_eq(cc.cwnd, 4 * SMSS, "and it is never an increase");
}

Test(sctp_cc, larger_packets_do_not_widen_the_window)
{
	struct ddps_cc cc = make_fresh_sctp_cc();

	ddps_cc_set_smss(&cc, 8960);
	cr_expect_eq(cc.cwnd, 10 * 8960, "nothing was sent yet");
	ddps_cc_sent(&cc, 8960, 8960, SEC);
	ddps_cc_set_smss(&cc, 1460);
	cr_expect_eq(cc.cwnd, 10 * 8960);
	ddps_cc_set_smss(&cc, 65000);
	cr_expect_eq(cc.cwnd, 10 * 8960);
}

/* Over any time the octets sent are at most rate * time + one bucket; and nearly that. */
Test(sctp_cc, pacing_keeps_the_rate)
{
	static const uint64_t rtts[] = { MS, 10 * MS, 100 * MS };

	for (unsigned i = 0; i < 3; i++) {
		struct ddps_cc cc = make_fresh_sctp_cc();
		uint64_t now = SEC, sent = 0, wait, room, wakes = 0;
		double most, rate;

		cc.cwnd = cc.ssthresh = 1000 * SMSS;
		cc.phase = DDPS_CC_AVOID;
		cc.srtt = rtts[i];
		rate = ddps_cc_rate(&cc);
		cr_expect_float_eq(rate, 1.25 * 1000 * SMSS * 1e9 / (double)rtts[i], 1e6);
		while (now < 2 * SEC) {
			room = ddps_cc_room(&cc, 0, SEC, now, &wait);
			for (uint64_t out = 0; out < room; out += SMSS, sent += SMSS)
				ddps_cc_sent(&cc, SMSS, SMSS, now);
			most = rate * (double)(now - SEC) / 1e9 + 2.0 * DDPS_CC_BUNDLE +
			       rate * 128e-6;
			cr_assert_leq((double)sent, most);
			if (!room) {
				cr_assert_gt(wait, now);
				now = wait;
				wakes++;
			} else if (rtts[i] == MS) {
				now += 10000; /* time passes between calls */
			}
		}
		cr_expect_geq((double)sent, 0.95 * rate);
		cr_expect_leq(wakes, 2000 + 64 * sent / DDPS_CC_BUNDLE, "no wake-up a packet");
	}
}

Test(sctp_cc, first_window_is_not_paced)
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t wait, room = ddps_cc_room(&cc, 0, SEC, SEC, &wait);

	cr_expect_eq(room, 10 * SMSS);
	cr_expect_eq(ddps_cc_rate(&cc), 0);
}

/* 9260-6.1-9, -10: one packet may pass cwnd, and never when cwnd is reached. */
Test(sctp_cc, one_packet_may_pass_the_window,
     .description = "9260-6.1-9 9260-6.1-10 9260-6.1-11 9260-7.2-2 9260-7.2.1-4")
{
	struct ddps_cc cc = make_fresh_sctp_cc();
	uint64_t wait;

	cr_expect_eq(ddps_cc_room(&cc, cc.cwnd - 1, SEC, SEC, &wait), 1);
	cr_expect_eq(ddps_cc_room(&cc, cc.cwnd, SEC, SEC, &wait), 0);
	cr_expect_eq(wait, 0);
}
