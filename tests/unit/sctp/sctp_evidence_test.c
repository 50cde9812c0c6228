/* SPDX-License-Identifier: BSD-2-Clause */
/* What a SACK proves: of RTT and order, of losses that were none, of probes, and of the window. */
#include "sctp_sent_fixture.h"

#define N(a) (sizeof(a) / sizeof *(a))

static struct world w;
static struct ddps_sent_path *const p = &w.p[0];

static void begin_sctp_evidence(void)
{
	sent_begin(&w, 1, 1, 4 << 20);
	p->cc.cwnd = 100000;
	p->late = 0;
}

static void end_sctp_evidence(void)
{
	sent_end(&w);
}

TestSuite(sctp_evidence, .init = begin_sctp_evidence, .fini = end_sctp_evidence);

static void restart_evidence_rig(void)
{
	end_sctp_evidence();
	begin_sctp_evidence();
}

/* One packet of so many chunks of that many octets. */
static void make_sctp_evidence_packet(struct ddps_sent_path *on, unsigned chunks, uint16_t size)
{
	ddps_sent_begin(&w.s, on, w.now);
	for (unsigned i = 0; i < chunks; i++)
		cr_assert_eq(ddps_sent_add_new(&w.s, size, size - 16u,
					       (void *)((uintptr_t)w.s.next + 7)),
			     0);
	ddps_sent_end(&w.s, 40u + chunks * size, true);
}

static void send_sctp_evidence_packets(unsigned n)
{
	while (n--)
		make_sctp_evidence_packet(p, 1, 116);
}

static void resend_sctp_evidence(bool timed)
{
	struct ddps_sent_chunk c;

	ddps_sent_begin(&w.s, p, w.now);
	while (ddps_sent_next_old(&w.s, &c))
		ddps_sent_add_old(&w.s, c.tsn);
	if (!timed)
		ddps_sent_untimed(&w.s);
	ddps_sent_end(&w.s, 156, false);
}

static void take_sctp_evidence(const struct ddps_sent_sack *k)
{
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w.s, k, w.now, &news), DDPS_SENT_TAKEN);
}

/* Up to @cum, and so many blocks of one TSN each. */
static void send_sctp_evidence_sack(uint32_t cum, unsigned n, const uint32_t *tsn)
{
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = 4 << 20, .ngaps = n };
	struct ddps_sent_gap gap[8];

	cr_assert_leq(n, N(gap));
	for (unsigned i = 0; i < n; i++)
		gap[i].start = gap[i].end = (uint16_t)(tsn[i] - cum);
	k.gaps = gap;
	take_sctp_evidence(&k);
}

static void duplicates(unsigned n, const uint32_t *tsn)
{
	struct ddps_sent_sack k = { .cum = w.s.cum, .a_rwnd = 4 << 20, .ndups = n, .dups = tsn };

	take_sctp_evidence(&k);
}

/* What is lost in episode 9, one of two losses. */
static void lost_of_two(uint32_t tsn)
{
	ddps_sent_mark(&w.s, tsn);
	ddps_sent_slot(&w.s, tsn)->episode = 9;
	p->episode = 9;
	p->undo_pending = 2;
}

/* ---- RTT and order ---- */

/* The later SACK is for the same packet: neither its RTT is longer, nor was it overtaken. */
Test(sctp_evidence, two_sacks_for_one_packet)
{
	make_sctp_evidence_packet(p, 2, 116);
	send_sctp_evidence_packets(1);
	w.now += 50 * MS;
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect_eq(p->rack_rtt, 50 * MS);
	w.now += 40 * MS;
	send_sctp_evidence_sack(2, 0, NULL);
	cr_expect_eq(p->rack_pn, 1);
	cr_expect_eq(p->rack_rtt, 50 * MS);
	cr_expect_not(p->reord_seen);
	cr_expect_eq(ddps_sent_slot(&w.s, 2)->state, SLOT_FREE, "given back");
	cr_expect_eq(ddps_sent_slot(&w.s, 3)->state, SLOT_FLIGHT);
}

Test(sctp_evidence, an_answer_without_delay_is_a_sample)
{
	send_sctp_evidence_packets(1);
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect_gt(p->srtt, 0);
	cr_expect_gt(p->min_rtt, 0);
}

/*
 * The first of two was resent twice, just now for the last time: what has arrived may have been sent between,
 * and the SACK of the second may be lost.  Resent once, it is the first time that has arrived.
 */
Test(sctp_evidence, what_arrived_may_have_been_sent_between)
{
	for (unsigned times = 1; times <= 2; times++) {
		restart_evidence_rig();
		ddps_sent_rtt(&w.s, p, 10 * MS, w.now);
		p->rtt_round = 0;
		p->backoff = 1;
		send_sctp_evidence_packets(2);
		w.now += 400 * MS;
		for (unsigned i = 0; i < times; i++) {
			w.now += 10 * MS;
			ddps_sent_mark(&w.s, 1);
			resend_sctp_evidence(true);
		}
		send_sctp_evidence_sack(2, 0, NULL);
		cr_expect_eq(p->srtt == 10 * MS, times == 2);
		cr_expect_eq(p->backoff, 0);
		cr_expect_eq(p->min_rtt, 10 * MS);
	}
}

/* What was sent later on another path, too: its SACK reports both. */
Test(sctp_evidence, the_sack_of_another_path)
{
	send_sctp_evidence_packets(1);
	w.now += 400 * MS;
	make_sctp_evidence_packet(&w.p[1], 1, 116);
	w.now += 10 * MS;
	send_sctp_evidence_sack(2, 0, NULL);
	cr_expect_eq(p->srtt, 0);
	cr_expect_eq(p->min_rtt, 0);
	cr_expect_eq(w.p[1].srtt, 10 * MS);
	send_sctp_evidence_packets(1);
	make_sctp_evidence_packet(&w.p[1], 1, 116);
	w.now += 10 * MS;
	send_sctp_evidence_sack(4, 0, NULL);
	cr_expect_eq(p->srtt, 10 * MS, "they were sent together");
}

/* One sample in a round trip is enough, unless T3 has shown that RTO is wrong, or may have been. */
Test(sctp_evidence, a_second_sample_of_a_round_trip, .description = "9260-6.3.1-2")
{
	static const struct {
		uint64_t before; /* what was sent last: the round trip ends */
		uint32_t backoff;
		uint8_t frto;
		bool sampled;
	} of[] = {
		{ 0, 0, 0, false }, { 1, 0, 0, true }, { 0, 1, 0, true },
		{ 0, 0, 1, true },  { 0, 0, 2, true },
	};

	for (unsigned i = 0; i < N(of); i++, restart_evidence_rig()) {
		send_sctp_evidence_packets(2);
		w.now += 50 * MS;
		p->rtt_round = p->next_pn - of[i].before;
		p->backoff = of[i].backoff;
		p->frto = of[i].frto;
		p->frto_pn = 0;
		send_sctp_evidence_sack(2, 0, NULL);
		cr_expect_eq(p->srtt > 0, of[i].sampled, "%u", i);
		cr_expect_eq(p->rtt_round, p->next_pn - (of[i].sampled ? 0 : of[i].before), "%u",
			     i);
	}
}

/* Of a packet that left nobody knows when, nothing is known but that it has arrived. */
Test(sctp_evidence, an_untimed_packet_proves_nothing)
{
	send_sctp_evidence_packets(3);
	lost_of_two(1);
	resend_sctp_evidence(false);
	w.now += 50 * MS;
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect_eq(p->rack_pn, 0);
	cr_expect_eq(p->undo_pending, 2);
	cr_expect_not(w.s.hist[1].flags & HIST_UNDONE);
}

/* What was sent after a probe of the path MTU, and has arrived, shows that the probe is lost; what may
 * have been sent before does not. */
Test(sctp_evidence, what_shows_that_a_larger_packet_is_lost, .description = "8899-6.2-d1")
{
	for (unsigned timed = 0; timed < 2; timed++, restart_evidence_rig()) {
		send_sctp_evidence_packets(3);
		ddps_sent_rtt(&w.s, p, 10 * MS, w.now);
		ddps_pmtu_probe_sent(&p->pmtu, p->pmtu.probing, 0, w.now);
		cr_assert(p->pmtu.out);
		w.now += 20 * MS;
		ddps_sent_mark(&w.s, 1);
		resend_sctp_evidence(timed);
		w.now += 10 * MS;
		send_sctp_evidence_sack(1, 0, NULL);
		cr_expect_neq(p->pmtu.out, timed);
		cr_expect_eq(p->pmtu.count, timed);
	}
}

/* It arrives before it is resent: it was not lost. */
Test(sctp_evidence, what_was_taken_for_lost_arrives)
{
	send_sctp_evidence_packets(3);
	lost_of_two(1);
	w.now += 50 * MS;
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect_eq(p->undo_pending, 1);
	cr_expect(p->reord_seen);
	cr_expect_eq(w.s.nlost, 0);
}

/* RFC 5682: what was sent before T3, and is acknowledged after it without being resent. */
Test(sctp_evidence, what_proves_that_t3_was_too_early)
{
	for (unsigned before = 0; before < 2; before++, restart_evidence_rig()) {
		send_sctp_evidence_packets(3);
		w.now += 50 * MS;
		p->frto = 2;
		p->frto_pn = 1 + before; /* of the first packet after T3 */
		send_sctp_evidence_sack(1, 0, NULL);
		cr_expect_eq(p->undone, before);
		cr_expect_eq(p->frto, 0);
	}
}

/* ---- reports of duplicates ---- */

/* 9260-3.3.4: either T3 was too early, and all of it is taken back, or one loss of several was none. */
Test(sctp_evidence, whose_fault_a_duplicate_is)
{
	static const struct {
		uint8_t by_t3, frto;
		unsigned spurious, undone, pending, frto_then;
	} is[] = { { 0, 0, 1, 0, 1, 0 },
		   { HIST_T3, 0, 1, 0, 1, 0 },
		   { 0, 1, 1, 0, 1, 1 },
		   { HIST_T3, 1, 2, 1, 0, 0 } };
	const uint32_t one = 1;

	for (unsigned i = 0; i < N(is); i++, restart_evidence_rig()) {
		send_sctp_evidence_packets(3);
		lost_of_two(1);
		resend_sctp_evidence(true);
		w.s.hist[1].flags = HIST_USED | is[i].by_t3;
		p->frto = is[i].frto;
		for (unsigned k = 0; k < 2; k++) { /* what is reported again is no news */
			duplicates(1, &one);
			cr_expect_eq(p->spurious, is[i].spurious, "%u", i);
			cr_expect_eq(p->undone, is[i].undone, "%u", i);
			cr_expect_eq(p->undo_pending, is[i].pending, "%u", i);
			cr_expect_eq(p->frto, is[i].frto_then, "%u", i);
			cr_expect_eq(p->reo_mult, 2, "more patience, once: %u", i);
		}
	}
}

/* A probe of the tail is no repair of a loss that was before: it says nothing of that one. */
Test(sctp_evidence, a_probe_of_what_was_resent_before)
{
	send_sctp_evidence_packets(2);
	lost_of_two(1);
	resend_sctp_evidence(true);
	p->min_rtt = p->min_cur = 80 * MS;
	p->min_at = w.now;
	w.now += 160 * MS;
	p->force = p->probe = true;
	cr_assert_eq(p->tail, 1);
	resend_sctp_evidence(true);
	cr_assert(p->tlp_out && p->tlp_tsn == 1);
	cr_expect_eq(w.s.hist[1].flags, HIST_USED | HIST_TLP);
	cr_expect_eq(w.s.hist[1].episode, 0);
	w.now += 10 * MS; /* too soon for the probe */
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect_eq(p->undo_pending, 2);
	cr_expect_not(p->tlp_out);
}

/* What comes before its repair can have was late: others that are so late are waited for, also when the repair of
 * what was lost with it is over. */
Test(sctp_evidence, what_was_late_is_known_behind_its_recovery)
{
	p->srtt = p->min_rtt = 40 * MS;
	send_sctp_evidence_packets(3);
	lost_of_two(1);
	ddps_sent_mark(&w.s, 2);
	p->recovery = true;
	w.now += 100 * MS;
	resend_sctp_evidence(true);
	w.now += 10 * MS;
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect_eq(p->reo_late, 70 * MS + 70 * MS / 8);
	w.now += 40 * MS;
	send_sctp_evidence_sack(3, 0, NULL);
	cr_expect_not(p->recovery);
	cr_expect_eq(p->reo_late, 70 * MS + 70 * MS / 8);
}

/* One chunk is lost, repaired, and then said to have come twice. */
static void tell_of_a_duplicate(void)
{
	const uint32_t tsn = w.s.next;

	send_sctp_evidence_packets(1);
	ddps_sent_mark(&w.s, tsn);
	ddps_sent_slot(&w.s, tsn)->episode = p->episode = p->undo_from = 9;
	p->undo_pending = 1;
	resend_sctp_evidence(true);
	w.now += 50 * MS;
	send_sctp_evidence_sack(tsn, 0, NULL);
	duplicates(1, &tsn);
}

/* Nothing proves such a report: 16 of them undo something, and one more for each 16 repairs that stand. */
Test(sctp_evidence, how_often_a_peer_is_believed)
{
	struct ddps_cc_ack none = { .srtt = MS };

	for (unsigned i = 1; i <= 17; i++) {
		tell_of_a_duplicate();
		cr_expect_eq(p->undone, i < 17 ? i : 16, "%u", i);
	}
	for (unsigned i = 1; i <= 16; i++) {
		tell_of_a_duplicate();
		cr_expect_eq(p->undone, 16);
		p->recovery = true;
		ddps_sent_settle(&w.s, p, &none);
	}
	tell_of_a_duplicate();
	cr_expect_eq(p->undone, 17);
	tell_of_a_duplicate();
	cr_expect_eq(p->undone, 17);
	for (unsigned i = 0; i < 1000; i++) {
		p->recovery = true;
		ddps_sent_settle(&w.s, p, &none);
	}
	cr_expect_eq(p->trust, TRUST_MOST);
}

/* Three packets behind it have arrived: it is lost, unless packets were late, and then after that time. */
Test(sctp_evidence, the_third_miss_resends, .description = "9260-7.2.4-2")
{
	static const uint32_t gaps[] = { 2, 3, 4 };

	for (unsigned late = 0; late < 2; late++, restart_evidence_rig()) {
		ddps_sent_rtt(&w.s, p, 4 * MS, w.now);
		send_sctp_evidence_packets(4);
		p->reord_seen = late;
		p->reo_late = late * 20 * MS;
		w.now += 4 * MS;
		for (unsigned n = 1; n <= 3; n++) {
			send_sctp_evidence_sack(0, n, gaps);
			cr_expect_eq(w.s.nlost, n == 3 && !late, "%u", n);
		}
		if (!late)
			continue;
		cr_expect_eq(p->reo_at, w.now + 20 * MS);
		w.now = p->reo_at;
		cr_expect(ddps_sent_timer(&w.s, p, w.now) & DDPS_SENT_EV_LOST);
		cr_expect_eq(w.s.nlost, 1);
		cr_expect_eq(p->t3s, 0);
	}
}

/* ---- probes of the tail: RFC 8985 7.4.2 ---- */

Test(sctp_evidence, a_probe_of_new_data_repairs_nothing)
{
	send_sctp_evidence_packets(3);
	p->tlp_out = true;
	p->tlp_tsn = 2;
	w.now += 50 * MS;
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect(p->tlp_out, "it is under way");
	send_sctp_evidence_sack(2, 0, NULL);
	cr_expect_not(p->tlp_out, "there may be another one");
	cr_expect_eq(p->lost, 0);
	cr_expect_eq(p->cc.cwnd, 100000);
}

static void probe_resent(uint32_t tsn)
{
	p->tlp_out = p->tlp_resent = true;
	p->tlp_acked = false;
	p->tlp_tsn = tsn;
}

/* What lies beyond the probe is acknowledged without a word of a duplicate: one reaction, once. */
Test(sctp_evidence, a_probe_that_was_needed)
{
	static const uint32_t gaps[] = { 2, 4, 6 };
	struct ddps_cc *cc = &p->cc;

	send_sctp_evidence_packets(6);
	p->reord_seen = true; /* nothing is lost for its order */
	probe_resent(2);
	w.now += 50 * MS;
	send_sctp_evidence_sack(0, 1, gaps);
	cr_expect(p->tlp_out, "the probe alone is acknowledged");
	cr_expect_eq(cc->cwnd, 100000);
	for (unsigned n = 2; n <= 3; n++) {
		send_sctp_evidence_sack(0, n, gaps);
		cr_expect_eq(p->lost, 1);
		cr_expect_not(p->tlp_out);
		cr_expect_eq(p->epi_pn, p->next_pn, "a new episode");
		cr_expect(cc->cwnd + 1 >= 70000 && cc->cwnd <= 70000, "%llu",
			  (unsigned long long)cc->cwnd);
		cr_expect_eq(cc->ssthresh, cc->cwnd);
		cr_expect_eq(cc->phase, DDPS_CC_AVOID);
	}
}

/* Or an RTT and a quarter after the probe was acknowledged. */
Test(sctp_evidence, how_long_a_duplicate_of_the_probe_is_waited_for)
{
	static const uint32_t two = 2;

	for (unsigned late = 0; late < 2; late++, restart_evidence_rig()) {
		ddps_sent_rtt(&w.s, p, 40 * MS, w.now);
		send_sctp_evidence_packets(3);
		probe_resent(2);
		w.now += 40 * MS;
		send_sctp_evidence_sack(0, 1, &two);
		cr_assert_eq(p->srtt, 40 * MS);
		w.now += 50 * MS - 1 + late;
		send_sctp_evidence_sack(2, 0, NULL);
		cr_expect_eq(p->tlp_out, !late);
		cr_expect_eq(p->lost, late);
	}
}

/* ---- congestion control ---- */

/* A round ends with the first packet that was sent after it began. */
Test(sctp_evidence, what_congestion_control_is_given, .description = "9260-7.2.1-6")
{
	const struct ddps_cc *cc = &p->cc;

	send_sctp_evidence_packets(4);
	p->cc_round = 2;
	w.now += 50 * MS;
	send_sctp_evidence_sack(1, 0, NULL);
	cr_expect_eq(p->cc_round, 2);
	cr_expect_eq(cc->rtt_n, 1);
	cr_expect_eq(cc->rtt_cur, 50 * MS);
	cr_expect_eq(cc->srtt, 50 * MS);
	cr_expect_gt(ddps_cc_rate(cc), 0);
	cr_expect_eq(cc->max_flight, 4 * 116);
	send_sctp_evidence_sack(2, 0, NULL);
	cr_expect_eq(p->cc_round, 5);
	cr_expect_eq(cc->rtt_last, 50 * MS);
	cr_expect_eq(cc->max_flight, 2 * 116, "what is in flight as the next begins");
	send_sctp_evidence_sack(3, 0, NULL);
	cr_expect_eq(p->cc_round, 5);
}

/* Within the host the window goes back to what makes no queue, and no further than 256 KiB. */
Test(sctp_evidence, a_window_within_the_host)
{
	/* 350 of 1000 us are not spent in a queue; in whole KiB */
	static const struct {
		unsigned packets;
		uint64_t cwnd, then;
	} is[] = { { 21, 2u << 20, 358 * 1024 },
		   { 25, 1050000, 358 * 1024 },
		   { 25, 1023 * 1024, 358 * 1024 },
		   { 2, 2u << 20, 256 << 10 } };

	for (unsigned i = 0; i < N(is); i++, restart_evidence_rig()) {
		p->cc.cwnd = is[i].cwnd;
		p->within_host = true;
		p->min_rtt = p->min_cur = MS / 10;
		p->min_at = w.now;
		for (unsigned n = 0; n < is[i].packets; n++)
			make_sctp_evidence_packet(p, 1, 50000);
		if (is[i].packets == 21)
			ddps_sent_mark(&w.s, 5); /* it is outstanding as well */
		w.now += MS;
		send_sctp_evidence_sack(1, 0, NULL);
		cr_expect_eq(p->cc.cwnd, is[i].then, "%u: %llu", i, (unsigned long long)p->cc.cwnd);
	}
}

/* ---- the window of the peer ---- */

static void window(uint32_t a_rwnd)
{
	struct ddps_sent_sack k = { .cum = w.s.cum, .a_rwnd = a_rwnd };

	take_sctp_evidence(&k);
}

/* What was dropped while the peer had no room goes immediately, on each path, T3 or not. */
Test(sctp_evidence, a_window_that_opens, .description = "9260-6.2.1-1")
{
	for (unsigned i = 0; i < 2; i++, restart_evidence_rig()) {
		w.p[0].next_pn = w.p[1].next_pn = 1ull << 40; /* as after years */
		for (unsigned n = 0; n < 60; n++)
			make_sctp_evidence_packet(&w.p[n & 1], 1, 116);
		w.p[i].backoff = 3;
		w.p[i].t3_at = w.p[i].pto_at = w.now + 60000 * MS;
		window(0);
		cr_expect_eq(w.p[i].backoff, 3);
		cr_expect_eq(w.s.nlost, 0);
		window(1 << 20);
		cr_expect_eq(w.p[i].backoff, 0);
		cr_expect_eq(w.p[i].nlost, 1);
		cr_expect(w.p[i].force);
		cr_expect_eq(w.p[i].t3_at, w.now + ddps_sent_rto(&w.s, &w.p[i]));
		cr_expect_eq(w.p[i].pto_at, 0);
		cr_expect_eq(w.p[!i].nlost, 1);
		sent_check(&w);
		w.p[i].backoff = 3;
		window(2 << 20);
		cr_expect_eq(w.p[i].backoff, 3, "it was open");
	}
}

/* A window too small for what waits is as good as none, until it is not. */
Test(sctp_evidence, a_window_that_takes_its_probe, .description = "9260-6.2.1-1")
{
	send_sctp_evidence_packets(1);
	window(50);
	w.s.zero_out = true;
	w.s.zero_tsn = 1;
	p->backoff = 3;
	window(99);
	cr_expect(w.s.zero_out && p->backoff == 3);
	window(100);
	cr_expect(!w.s.zero_out && !p->backoff);
	cr_expect_eq(w.s.nlost, 1);
}

/* One too small for what is on its way is none for the rest of that. */
Test(sctp_evidence, a_window_that_opens_for_the_rest, .description = "9260-6.2.1-1")
{
	struct ddps_sent_sack k = { .cum = 1, .a_rwnd = 299 };

	send_sctp_evidence_packets(4);
	take_sctp_evidence(&k);
	window(298);
	cr_expect_eq(w.s.nlost, 0, "there is no room for it yet");
	window(300);
	cr_expect_eq(w.s.nlost, 1);
	cr_expect(p->force);
	resend_sctp_evidence(true);
	window(400);
	cr_expect_eq(w.s.nlost, 0, "there was room");
	window(299);
	k = (struct ddps_sent_sack){ .cum = 2, .a_rwnd = 400 };
	take_sctp_evidence(&k);
	cr_expect_eq(w.s.nlost, 0, "what has arrived since did fit, and the rest may");
	sent_check(&w);
}

/* A SHUTDOWN that acknowledges something shows that there is room. */
Test(sctp_evidence, a_shutdown_opens_the_window, .description = "9260-6.2.1-1")
{
	const struct ddps_sent_sack nothing = { .shutdown = true },
				    two = { .cum = 2, .shutdown = true };

	send_sctp_evidence_packets(4);
	window(0);
	p->backoff = 3;
	p->t3_at = w.now + 60000 * MS;
	take_sctp_evidence(&nothing);
	cr_expect_eq(p->backoff, 3);
	take_sctp_evidence(&two);
	cr_expect_eq(p->backoff, 0);
	cr_expect_eq(w.s.nlost, 1);
	cr_expect_leq(p->t3_at, w.now + ddps_sent_rto(&w.s, p));
	sent_check(&w);
}

/* ---- what it costs ---- */

/* A step for each duplicate that is reported, and for each chunk, whether it was known or not. */
Test(sctp_evidence, what_duplicates_and_known_chunks_cost)
{
	static const uint32_t dups[] = { 1, 1, 1, 1, 1 }, known[] = { 2, 3, 4, 5 };
	uint64_t cost[2], was;

	for (unsigned i = 0; i < 2; i++, restart_evidence_rig()) {
		send_sctp_evidence_packets(2);
		ddps_sent_mark(&w.s, 1);
		resend_sctp_evidence(true);
		was = w.s.steps;
		duplicates(i ? 5 : 1, dups);
		cost[i] = w.s.steps - was;
	}
	cr_expect_eq(cost[1] - cost[0], 4);
	for (unsigned i = 0; i < 2; i++, restart_evidence_rig()) {
		send_sctp_evidence_packets(9);
		p->reord_seen = true;
		w.now += 50 * MS;
		send_sctp_evidence_sack(0, i ? 4 : 1, known);
		was = w.s.steps;
		send_sctp_evidence_sack(6, 0, NULL);
		cost[i] = w.s.steps - was;
	}
	cr_expect_eq(cost[1], cost[0], "%u and %u", (unsigned)cost[1], (unsigned)cost[0]);
}
