/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers of the sender: tail loss probes, T3, closed windows. */
#include "sctp_sent_fixture.h"
#include <ddpsess/err.h>

/* Sends @n packets of 1000 octets on path 0 and returns the TSN before the first. */
static uint32_t send_sctp_sent_time_burst(struct world *w, int n)
{
	uint32_t before = w->s.next - 1;

	w->p[0].cc.cwnd = 1 << 20;
	for (int i = 0; i < n; i++) {
		ddps_sent_begin(&w->s, &w->p[0], w->now);
		cr_assert_eq(ddps_sent_add_new(&w->s, 1016, 1000,
					       (void *)((uintptr_t)w->s.next + 7)),
			     0);
		ddps_sent_end(&w->s, 1056, i + 1 < n);
	}
	return before;
}

static void ack_sctp_sent_time(struct world *w, uint32_t cum, uint32_t from, uint32_t to)
{
	const struct ddps_sent_gap g = { (uint16_t)(from - cum), (uint16_t)(to - cum) };
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = 1 << 20, .gaps = &g, .ngaps = from != 0 };
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w->s, &k, w->now, &news), DDPS_SENT_TAKEN);
}

/* Five packets, of which the last is lost, and has been sent again as a probe: its TSN. */
static uint32_t probed(struct world *w)
{
	struct ddps_sent_chunk c;
	uint64_t room, at;
	uint32_t b;

	sent_begin(w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w->s, &w->p[0], 20 * MS, w->now);
	b = send_sctp_sent_time_burst(w, 5);
	w->now += 20 * MS;
	ack_sctp_sent_time(w, b + 4, 0, 0);
	at = ddps_sent_deadline(&w->s, &w->p[0]);
	cr_expect_leq(at, w->now + 2 * 20 * MS + 2 * MS);
	w->now = at;
	cr_expect(ddps_sent_timer(&w->s, &w->p[0], w->now) == DDPS_SENT_EV_SEND);
	cr_expect_eq(ddps_sent_may(&w->s, &w->p[0], w->now, SIZE_MAX, &room), DDPS_SENT_OLD);
	ddps_sent_begin(&w->s, &w->p[0], w->now);
	cr_assert(ddps_sent_next_old(&w->s, &c));
	cr_expect_eq(c.tsn, b + 5);
	ddps_sent_add_old(&w->s, c.tsn);
	cr_expect_not(ddps_sent_next_old(&w->s, &c), "one chunk is enough");
	cr_expect(ddps_sent_end(&w->s, 1056, false), "the I bit");
	w->now += 20 * MS;
	return c.tsn;
}

/* RFC 8985 7: what is lost at the tail is found by a probe, without T3, with one reaction. */
Test(sctp_sent, tail_loss_is_probed)
{
	struct world w;

	ack_sctp_sent_time(&w, probed(&w), 0, 0);
	cr_expect_eq(w.p[0].t3s, 0);
	cr_expect_eq(w.s.next - 1, w.s.cum);
	cr_expect_eq(ddps_sent_deadline(&w.s, &w.p[0]), DDPS_SENT_NEVER);
	sent_end(&w);
}

/* RFC 8985 7.4.2: unless a duplicate is reported in time, the probe has repaired a loss. */
Test(sctp_sent, a_probe_that_was_needed_is_a_loss)
{
	struct world w;
	uint32_t tsn = probed(&w);

	ack_sctp_sent_time(&w, tsn, 0, 0);
	cr_expect_eq(w.p[0].lost, 0, "the original may yet have been delayed");
	send_sctp_sent_time_burst(&w, 1);
	w.now += 20 * MS;
	ack_sctp_sent_time(&w, tsn + 1, 0, 0); /* a duplicate would have been seen before this */
	cr_expect_eq(w.p[0].lost, 1);
	sent_end(&w);
}

/* @conf says when the host rests. */
static void begin_to_rest(struct world *w, struct ddps_sent_conf *conf)
{
	sent_begin(w, 1, 1, 1 << 20);
	*conf = *w->s.conf;
	w->s.conf = conf;
}

/* Its process did not run when the SACK came: that was not the path. */
Test(sctp_sent, a_rest_of_the_host_is_not_the_paths, .description = "9260-6.3.1-1")
{
	struct ddps_sent_conf conf;
	struct world w;
	uint32_t b;

	begin_to_rest(&w, &conf);
	b = send_sctp_sent_time_burst(&w, 5);
	conf.rest_from = w.now + 10 * MS;
	w.now += 2000 * MS;
	conf.rest_to = w.now;
	ack_sctp_sent_time(&w, b + 4, 0, 0);
	cr_expect_leq(w.p[0].srtt, 20 * MS);
	cr_expect_leq(w.p[0].min_rtt, 20 * MS);
	send_sctp_sent_time_burst(&w, 1);
	w.now += 9 * MS + 2000 * MS;
	ack_sctp_sent_time(&w, b + 6, 0, 0);
	cr_expect_geq(w.p[0].srtt, 200 * MS, "this time it was the path");
	sent_end(&w);
}

/* What left right before the host rested was on its way while it did. */
Test(sctp_sent, a_rest_right_behind_a_packet, .description = "9260-6.3.1-1")
{
	struct ddps_sent_conf conf;
	struct world w;
	uint32_t b;

	begin_to_rest(&w, &conf);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = send_sctp_sent_time_burst(&w, 2);
	conf.rest_from = w.now;
	w.now += 2000 * MS;
	conf.rest_to = w.now;
	ack_sctp_sent_time(&w, b + 2, 0, 0);
	cr_expect_leq(w.p[0].srtt, 20 * MS);
	sent_end(&w);
}

/* Both hosts slept: the peer's SACK comes when it has woken, too.  That is no round trip, either, whatever
 * rests come in between. */
Test(sctp_sent, a_sleep_of_both_hosts_is_not_the_paths, .description = "9260-6.3.1-1")
{
	struct ddps_sent_conf conf;
	struct world w;
	uint32_t b;

	begin_to_rest(&w, &conf);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = send_sctp_sent_time_burst(&w, 2);
	conf.rest_from = conf.slept_from = w.now;
	w.now += 2400 * 1000 * MS;
	conf.rest_from = w.now; /* another one, a short one */
	w.now += 3 * MS;
	conf.rest_to = w.now;
	w.now += 21 * MS;
	ack_sctp_sent_time(&w, b + 2, 0, 0);
	cr_expect_eq(w.p[0].srtt, 20 * MS);
	cr_expect_eq(w.p[0].min_rtt, 20 * MS);
	b = send_sctp_sent_time_burst(&w, 2);
	w.now += 100 * MS;
	ack_sctp_sent_time(&w, b + 2, 0, 0);
	cr_expect_gt(w.p[0].srtt, 20 * MS, "what left behind it is measured");
	sent_end(&w);
}

/* What answers INIT, COOKIE ECHO or HEARTBEAT behind a rest shows what the path takes, or nothing. */
Test(sctp_sent, a_rest_is_not_the_paths_in_set_up, .description = "9260-6.3.1-1")
{
	struct ddps_sent_conf conf;
	struct world w;

	begin_to_rest(&w, &conf);
	conf.rest_from = w.now + 10 * MS;
	w.now += 2000 * MS;
	conf.rest_to = w.now;
	ddps_sent_rtt(&w.s, &w.p[0], 2000 * MS, w.now);
	cr_expect_eq(w.p[0].srtt, 0);
	cr_expect_eq(w.p[0].min_rtt, 0);
	conf.rest_from = 0;
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	conf.rest_from = w.now + 10 * MS;
	w.now += 2000 * MS;
	conf.rest_to = w.now;
	ddps_sent_rtt(&w.s, &w.p[0], 2000 * MS, w.now);
	cr_expect_leq(w.p[0].srtt, 20 * MS);
	sent_end(&w);
}

/* A HEARTBEAT ACK shows that the path lives: a T3 that was doubled three times is not waited for. */
Test(sctp_sent, life_ends_the_wait_for_a_doubled_t3)
{
	struct ddps_sent_chunk c;
	struct world w;
	uint64_t room;

	sent_begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	send_sctp_sent_time_burst(&w, 1);
	while (w.p[0].t3s < 4) {
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		ddps_sent_timer(&w.s, &w.p[0], w.now);
		if (ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room) != DDPS_SENT_OLD)
			continue;
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		while (ddps_sent_next_old(&w.s, &c))
			ddps_sent_add_old(&w.s, c.tsn);
		ddps_sent_end(&w.s, 1056, false);
	}
	cr_expect_gt(w.p[0].t3_at, w.now + 2000 * MS);
	w.now += 20 * MS;
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	cr_expect_leq(w.p[0].t3_at, w.now + 500 * MS);
	sent_end(&w);
}

Test(sctp_sent, t3_backs_off_and_looks_between, .description = "9260-6.3.3-d1")
{
	struct ddps_sent_chunk c;
	struct world w;
	uint64_t start, errors = 0, packets = 0, room;
	unsigned ev;

	sent_begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	send_sctp_sent_time_burst(&w, 10);
	start = w.now;
	while (w.now - start < 30000 * MS) {
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		cr_assert_neq(w.now, DDPS_SENT_NEVER);
		ev = ddps_sent_timer(&w.s, &w.p[0], w.now);
		errors += (ev & DDPS_SENT_EV_T3) != 0;
		while (ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room)) {
			ddps_sent_begin(&w.s, &w.p[0], w.now);
			cr_assert(ddps_sent_next_old(&w.s, &c));
			ddps_sent_add_old(&w.s, c.tsn);
			ddps_sent_end(&w.s, 1056, false);
			packets++;
		}
		sent_check(&w);
	}
	cr_expect(errors >= 5 && errors <= 7, "0.4, 0.8, 1.6 s and so on: %u", (unsigned)errors);
	cr_expect(packets >= 12 && packets <= 24, "and every 2 or 5 s: %u", (unsigned)packets);
	/* a sign of life: immediately; an answer, and RTO is back */
	cr_expect(ddps_sent_alive(&w.s, &w.p[0], w.now));
	cr_expect_not(ddps_sent_alive(&w.s, &w.p[0], w.now + MS), "once a second");
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room), DDPS_SENT_OLD);
	cr_expect_gt(ddps_sent_rto(&w.s, &w.p[0]), 10000 * MS);
	w.now += 20 * MS;
	ack_sctp_sent_time(&w, w.s.cum + 1, 0, 0);
	cr_expect_leq(ddps_sent_rto(&w.s, &w.p[0]), 400 * MS);
	sent_end(&w);
}

/* 9260-6.1-5, -6: probing a closed window is slow, and no error while the peer answers. */
Test(sctp_sent, closed_window_is_probed,
     .description = "9260-6.1-1 9260-6.1-2 9260-6.1-5 9260-6.1-6 9260-6.1-3 9260-6.1-7 9260-6.1-4 "
		    "9260-6.2.1-d2")
{
	struct world w;
	uint64_t room, last = 0, cwnd;
	uint32_t b;

	sent_begin(&w, 1, 1, 3000);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = send_sctp_sent_time_burst(&w, 3);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NOTHING);
	w.now += 20 * MS;
	{
		struct ddps_sent_sack k = { .cum = b + 3 };
		struct ddps_sent_news news;

		ddps_sent_sack(&w.s, &k, w.now, &news);
	}
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NOTHING);
	cr_expect_eq(ddps_sent_deadline(&w.s, &w.p[0]), w.now + w.p[0].rto, "after one RTO");
	w.now = ddps_sent_deadline(&w.s, &w.p[0]);
	cr_expect_eq(ddps_sent_timer(&w.s, &w.p[0], w.now), DDPS_SENT_EV_SEND);
	cr_assert_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NEW);
	send_sctp_sent_time_burst(&w, 1);
	cwnd = w.p[0].cc.cwnd;
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NOTHING);
	for (int i = 0; i < 6; i++) {
		struct ddps_sent_sack k = { .cum = b + 3 };
		struct ddps_sent_chunk c;
		struct ddps_sent_news news;
		uint64_t at = ddps_sent_deadline(&w.s, &w.p[0]);

		cr_expect_geq(at - w.now, last, "doubles");
		last = at - w.now;
		ddps_sent_sack(&w.s, &k, w.now + 20 * MS, &news); /* no room, it says */
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		cr_expect_not(ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_T3);
		cr_assert_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_OLD);
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert(ddps_sent_next_old(&w.s, &c));
		ddps_sent_add_old(&w.s, c.tsn);
		ddps_sent_end(&w.s, 1056, true);
		sent_check(&w);
	}
	cr_expect(w.p[0].cc.cwnd == cwnd && w.p[0].cc.phase == DDPS_CC_SLOW);
	w.now += 20 * MS;
	ack_sctp_sent_time(&w, b + 3, 0, 0); /* open again */
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_OLD, "at once");
	sent_end(&w);
}

/* Two chunks of one packet are one piece of evidence (RFC 8985 6.2, DUPTHRESH in packets). */
Test(sctp_sent, one_packet_is_one_piece_of_evidence)
{
	struct world w;
	uint32_t b;

	sent_begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = send_sctp_sent_time_burst(&w, 1);
	w.now += MS;
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(ddps_sent_add_new(&w.s, 116, 100, (void *)((uintptr_t)w.s.next + 7)),
			     0);
	ddps_sent_end(&w.s, 620, true);
	w.now += 20 * MS;
	ack_sctp_sent_time(&w, b, b + 2, b + 6);
	cr_expect_eq(w.p[0].sacked_packets, 1);
	cr_expect_eq(w.s.nlost, 0, "may still be on its way");
	cr_expect_neq(w.p[0].reo_at, 0);
	w.now = ddps_sent_deadline(&w.s, &w.p[0]);
	cr_expect(ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_LOST);
	cr_expect_eq(w.s.nlost, 1);
	sent_end(&w);
}

Test(sctp_sent, rests_in_no_memory)
{
	struct world w;
	uint32_t b;

	sent_begin(&w, 1, 1, 1 << 20);
	cr_expect_null(w.s.ring);
	b = send_sctp_sent_time_burst(&w, 3);
	ddps_sent_rest(&w.s);
	cr_expect_not_null(w.s.ring, "not while something is outstanding");
	w.now += MS;
	ack_sctp_sent_time(&w, b + 3, 0, 0);
	ddps_sent_rest(&w.s);
	cr_expect_null(w.s.ring);
	b = send_sctp_sent_time_burst(&w, 3);
	ack_sctp_sent_time(&w, b + 3, 0, 0);
	sent_end(&w);
}

/* Only our way there is dead: what comes from the peer must not make T3 count faster. */
Test(sctp_sent, one_way_outage_counts_no_faster)
{
	struct ddps_sent_chunk c;
	struct world w;
	uint64_t start, errors = 0, room;

	sent_begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	send_sctp_sent_time_burst(&w, 10);
	for (start = w.now; w.now - start < 60000 * MS; w.now += 10 * MS) {
		if (ddps_sent_deadline(&w.s, &w.p[0]) <= w.now)
			errors += (ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_T3) != 0;
		ddps_sent_alive(&w.s, &w.p[0], w.now);
		while (ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room)) {
			ddps_sent_begin(&w.s, &w.p[0], w.now);
			cr_assert(ddps_sent_next_old(&w.s, &c));
			ddps_sent_add_old(&w.s, c.tsn);
			ddps_sent_end(&w.s, 1056, false);
		}
		sent_check(&w);
	}
	cr_expect(errors >= 6 && errors <= 8, "%u in a minute", (unsigned)errors);
	sent_end(&w);
}

/* One RTT may be that of a peer that did not run just then: what is answered sooner is no proof of anything. */
Test(sctp_sent, one_long_rtt_calls_off_no_t3)
{
	for (unsigned n = 1; n < 3; n++) {
		struct ddps_sent_chunk c;
		struct world w;
		uint32_t b;

		sent_begin(&w, 1, 1, 1 << 20);
		w.p[0].rtts = 0;
		for (unsigned i = 0; i < n; i++)
			ddps_sent_rtt(&w.s, &w.p[0], 1440 * MS, w.now);
		cr_expect_eq(w.p[0].rtts, n);
		b = send_sctp_sent_time_burst(&w, 3);
		while (!w.p[0].t3s) {
			w.now = ddps_sent_deadline(&w.s, &w.p[0]);
			ddps_sent_timer(&w.s, &w.p[0], w.now);
		}
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert(ddps_sent_next_old(&w.s, &c));
		ddps_sent_add_old(&w.s, c.tsn);
		ddps_sent_end(&w.s, 1056, false);
		w.now += 7 * MS;
		ack_sctp_sent_time(&w, b + 1, 0, 0);
		cr_expect_eq(w.p[0].undone, n > 1, "%u", n);
		cr_expect_eq(w.s.nlost, n > 1 ? 0 : 2, "%u", n);
		sent_end(&w);
	}
}

/* What is sent again in silence is marked lost by T3's guess: if that was wrong, so was this. */
Test(sctp_sent, a_false_t3_takes_back_what_silence_resent)
{
	struct ddps_sent_chunk c;
	struct world w;
	uint32_t b;

	sent_begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	b = send_sctp_sent_time_burst(&w, 1);
	while (!w.p[0].t3s) {
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		ddps_sent_timer(&w.s, &w.p[0], w.now);
	}
	send_sctp_sent_time_burst(&w, 1);
	ddps_sent_resend(&w.s, &w.p[0]);
	cr_assert_eq(w.s.nlost, 2);
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	cr_assert(ddps_sent_next_old(&w.s, &c));
	cr_assert_eq(c.tsn, b + 1);
	ddps_sent_add_old(&w.s, c.tsn);
	ddps_sent_end(&w.s, 1056, false);
	ack_sctp_sent_time(&w, b + 1, 0, 0); /* too soon to be of what was sent again */
	cr_expect_eq(w.p[0].undone, 1);
	cr_expect_eq(w.s.nlost, 0, "the second is on its way, too");
	cr_expect_eq(w.p[0].nflight, 1);
	sent_check(&w);
	sent_end(&w);
}

/* What may not leave yet for the sake of an even pace leaves when its time has come. */
Test(sctp_sent, the_pace_has_a_timer)
{
	struct world w;
	uint64_t room, at;
	unsigned n = 0;

	sent_begin(&w, 1, 1, 1 << 20);
	ddps_sent_rtt(&w.s, &w.p[0], 20 * MS, w.now);
	w.p[0].cc.cwnd = 1 << 20;
	while (ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room) == DDPS_SENT_NEW && n++ < 900)
		send_sctp_sent_time_burst(&w, 1);
	cr_assert(n > 1 && n < 900, "%u", n);
	at = ddps_sent_deadline(&w.s, &w.p[0]);
	cr_expect(at > w.now && at < w.now + 20 * MS);
	cr_expect_eq(ddps_sent_timer(&w.s, &w.p[0], at - 1), 0);
	cr_expect_eq(ddps_sent_timer(&w.s, &w.p[0], at), DDPS_SENT_EV_SEND);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], at, 1000, &room), DDPS_SENT_NEW);
	cr_expect_gt(ddps_sent_deadline(&w.s, &w.p[0]), at);
	sent_end(&w);
}
