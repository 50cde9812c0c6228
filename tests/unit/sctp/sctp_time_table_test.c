/* SPDX-License-Identifier: BSD-2-Clause */
/* RTO, probes of the tail and the windows of time: both sides of each limit. */
#include "sctp_sent_fixture.h"

#define SEC  (1000 * MS)
#define N(a) (sizeof(a) / sizeof *(a))

static struct world w;
static struct ddps_sent_conf conf;

static void setup(void)
{
	sent_begin(&w, 1, 1, 1 << 20);
	conf = *w.s.conf;
	w.s.conf = &conf;
	w.p[0].cc.cwnd = 1 << 20;
}

static void fini(void)
{
	sent_end(&w);
}

TestSuite(sctp_time, .init = setup, .fini = fini);

/* One packet of so many chunks of 100 octets. */
static void send_sctp_time_table(unsigned chunks, bool more)
{
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	for (unsigned i = 0; i < chunks; i++) {
		void *chunk = (void *)((uintptr_t)w.s.next + 7);

		cr_assert_eq(ddps_sent_add_new(&w.s, 116, 100, chunk), 0);
	}
	ddps_sent_end(&w.s, 40 + 116 * chunks, more);
}

static void send_sctp_time_table_sack(uint32_t cum, uint32_t a_rwnd)
{
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = a_rwnd };
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
}

Test(sctp_time, the_rto_of_each_path,
     .description = "9260-6.3.1-6 9260-6.3.1-d1 9260-6.3.1-d2 9260-6.3.3-d1")
{
	static const struct {
		uint64_t first, srtt, var, min;
		uint32_t backoff;
		bool answers;
		uint64_t ms;
	} is[] = { { 1000, 0, 0, 0, 0, false, 1000 },	   { 1000, 0, 0, 0, 1, false, 2000 },
		   { 1000, 0, 0, 0, 5, false, 32000 },	   { 1000, 0, 0, 0, 6, false, 60000 },
		   { 1000, 0, 0, 0, 16, false, 60000 },	   { 90000, 0, 0, 0, 0, false, 60000 },
		   { 1, 500, 100, 0, 0, false, 900 },	   { 1, 500, 100, 0, 3, false, 7200 },
		   { 1, 100, 75, 0, 0, false, 400 },	   { 1, 100, 74, 0, 0, false, 400 },
		   { 1, 100, 76, 0, 0, false, 404 },	   { 1, 100, 25, 0, 0, true, 200 },
		   { 1, 100, 24, 0, 1, true, 400 },	   { 1, 100, 26, 0, 0, true, 204 },
		   { 1, 10, 5, 1000, 0, true, 1000 },	   { 1, 10, 5, 35, 0, false, 35 },
		   { 1, 10, 5, 29, 0, false, 30 },	   { 1, 20000, 10000, 0, 0, false, 60000 },
		   { 1, 20000, 2500, 0, 1, false, 60000 }, { 1, 20000, 2499, 0, 1, false, 59992 } };
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < N(is); i++) {
		p->rto = is[i].first * MS;
		p->srtt = is[i].srtt * MS;
		p->rttvar = is[i].var * MS;
		p->backoff = is[i].backoff;
		conf.rto_min = is[i].min * MS;
		w.s.i_answered = is[i].answers;
		cr_expect_eq(ddps_sent_rto(&w.s, p), is[i].ms * MS, "%u: %llu", i,
			     (unsigned long long)(ddps_sent_rto(&w.s, p) / MS));
	}
}

/* RFC 6298 2.2 and 2.3 */
Test(sctp_time, a_sample, .description = "9260-6.3.1-d1")
{
	static const struct {
		uint64_t srtt, var, rtt, then, var_then;
	} is[] = { { 0, 0, 100, 100, 50 }, { 80, 40, 80, 80, 30 }, { 80, 40, 160, 90, 50 },
		   { 80, 40, 40, 75, 40 }, { 80, 0, 80, 80, 0 },   { 800, 400, 0, 700, 500 } };
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < N(is); i++) {
		uint64_t least = conf.grain / 4, var = is[i].var_then * MS;

		p->srtt = is[i].srtt * MS;
		p->rttvar = is[i].var * MS;
		p->backoff = 3;
		p->sampled = false;
		ddps_sent_sample(&w.s, p, is[i].rtt * MS);
		cr_expect_eq(p->srtt, is[i].then * MS, "%u", i);
		cr_expect_eq(p->rttvar, var < least ? least : var, "%u", i);
		cr_expect_eq(p->cc.srtt, p->srtt);
		cr_expect_eq(p->rto, ddps_sent_rto(&w.s, p));
		cr_expect(p->sampled && !p->backoff);
	}
}

/* The least of two windows of 150 s. */
Test(sctp_time, the_shortest_rtt_is_forgotten_in_the_end)
{
	static const uint64_t is[][3] = { /* s, ms, least */
					  { 0, 50, 50 },   { 1, 40, 40 },   { 2, 60, 40 },
					  { 150, 45, 40 }, { 151, 70, 40 }, { 160, 65, 40 },
					  { 301, 80, 40 }, { 302, 90, 65 }, { 303, 55, 55 },
					  { 453, 60, 55 }, { 604, 90, 60 }, { 755, 95, 90 }
	};
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < N(is); i++) {
		ddps_sent_min_rtt(p, is[i][1] * MS, is[i][0] * SEC);
		cr_expect_eq(p->min_rtt, is[i][2] * MS, "%u: %llu", i,
			     (unsigned long long)(p->min_rtt / MS));
	}
}

Test(sctp_time, a_heartbeat_shortens_the_wait)
{
	struct ddps_sent_path *p = &w.p[0];
	uint64_t t3;

	send_sctp_time_table(1, false);
	t3 = p->t3_at;
	cr_assert_eq(t3, w.now + SEC);
	ddps_sent_rtt(&w.s, p, 2 * SEC, w.now);
	cr_expect_eq(p->t3_at, t3, "never later");
	p->srtt = 0;
	ddps_sent_rtt(&w.s, p, 20 * MS, w.now);
	cr_expect_eq(p->t3_at, w.now + 400 * MS);
	cr_expect_eq(p->min_rtt, 20 * MS);
}

/* RFC 8985 7.2: twice the RTT, and what the peer may wait with the SACK of a lone packet. */
Test(sctp_time, when_the_tail_is_probed)
{
	static const struct {
		uint64_t srtt, grain;
		unsigned packets;
		bool i_bit;
		uint64_t ns;
	} is[] = { { 0, 128000, 2, false, SEC },
		   { 20 * MS, 128000, 2, false, 40 * MS },
		   { 20 * MS, 128000, 1, false, 240 * MS },
		   { 20 * MS, 128000, 1, true, 41 * MS },
		   { 20 * MS, 500001, 1, true, 41 * MS + 2 },
		   { 20 * MS, 499999, 1, true, 41 * MS } };
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < N(is); i++) {
		conf.grain = is[i].grain;
		for (unsigned n = 0; n < is[i].packets; n++)
			send_sctp_time_table(2, n + 1 < is[i].packets);
		ddps_sent_slot(&w.s, p->tail)->flags =
			is[i].i_bit ? SLOT_I : 0; /* as if it had been asked for */
		p->srtt = is[i].srtt;
		p->t3_at = 0;
		ddps_sent_arm_pto(&w.s, p, w.now);
		cr_expect_eq(p->pto_at, w.now + is[i].ns, "%u: %llu", i,
			     (unsigned long long)(p->pto_at - w.now));
		p->t3_at = w.now + is[i].ns + 1;
		ddps_sent_arm_pto(&w.s, p, w.now);
		cr_expect_eq(p->pto_at, w.now + is[i].ns);
		p->t3_at = w.now + is[i].ns - 1;
		ddps_sent_arm_pto(&w.s, p, w.now);
		cr_expect_eq(p->pto_at, p->t3_at, "not later than T3");
		send_sctp_time_table_sack(w.s.next - 1, 1 << 20);
	}
}

Test(sctp_time, where_the_tail_is_not_probed)
{
	struct ddps_sent_path *p = &w.p[0];

	p->srtt = 20 * MS;
	ddps_sent_arm_pto(&w.s, p, w.now);
	cr_expect_eq(p->pto_at, 0, "nothing is in flight");
	send_sctp_time_table(1, false);
	for (unsigned i = 0; i < 6; i++) {
		p->recovery = i == 1;
		p->nlost = i == 2;
		p->nsacked = i == 3;
		p->backoff = i == 4;
		w.s.zero_out = i == 5;
		p->pto_at = 1;
		ddps_sent_arm_pto(&w.s, p, w.now);
		cr_expect_eq(p->pto_at != 0, !i, "%u", i);
	}
	p->nlost = p->nsacked = 0;
	w.s.zero_out = false;
}

Test(sctp_time, the_soonest_timer_counts)
{
	struct ddps_sent_path *p = &w.p[0];
	uint64_t *const all[] = { &p->reo_at, &p->pto_at, &p->t3_at, &p->nudge_at, &p->pace_at };

	send_sctp_time_table(1, false);
	for (unsigned i = 0; i < N(all); i++)
		*all[i] = 0;
	cr_expect_eq(ddps_sent_deadline(&w.s, p), DDPS_SENT_NEVER);
	for (unsigned i = 0; i < N(all); i++) {
		for (unsigned k = 0; k < N(all); k++)
			*all[k] = k == i ? 500 : k < i ? 0 : 501 + k;
		cr_expect_eq(ddps_sent_deadline(&w.s, p), 500);
	}
	w.s.zero_on = &w.p[1];
	w.s.zero_at = 400;
	cr_expect_eq(ddps_sent_deadline(&w.s, p), 500);
	w.s.zero_on = p;
	cr_expect_eq(ddps_sent_deadline(&w.s, p), 400);
	cr_expect_eq(ddps_sent_timer(&w.s, p, 399), 0);
	cr_expect_eq(ddps_sent_timer(&w.s, p, 400), DDPS_SENT_EV_SEND);
	cr_expect(w.s.zero_go && !w.s.zero_at);
	p->reo_at = p->pto_at = p->t3_at = p->nudge_at = 0;
	p->pace_at = 600;
	cr_expect_eq(ddps_sent_timer(&w.s, p, 599), 0);
	cr_expect_eq(p->pace_at, 600);
	cr_expect_eq(ddps_sent_timer(&w.s, p, 600), DDPS_SENT_EV_SEND);
	cr_expect_eq(p->pace_at, 0);
	w.s.zero_on = NULL;
}

/* RFC 8985 6.2: by how much packets may overtake each other. */
Test(sctp_time, what_is_late_and_what_is_lost)
{
	static const struct {
		uint32_t mult, sacked;
		bool seen, recovery;
		uint64_t srtt, wait, late;
	} is[] = { { 1, 0, false, false, 90, 10, 0 },	{ 1, 2, false, false, 90, 10, 0 },
		   { 1, 3, false, false, 90, 0, 0 },	{ 1, 0, false, true, 90, 0, 0 },
		   { 1, 3, true, true, 90, 10, 0 },	{ 3, 0, true, false, 90, 30, 0 },
		   { 9, 0, true, false, 90, 90, 0 },	{ 20, 0, true, false, 90, 90, 0 },
		   { 1, 0, true, false, 90, 200, 200 }, { 3, 0, true, false, 90, 30, 20 } };
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < N(is); i++) {
		uint64_t at = w.now, due = at + 50 * MS + is[i].wait * MS;

		send_sctp_time_table(1, false);
		p->rack_pn = p->next_pn;
		p->rack_rtt = 50 * MS;
		p->min_rtt = 40 * MS;
		p->srtt = is[i].srtt * MS;
		p->reo_mult = is[i].mult;
		p->reo_late = is[i].late * MS;
		p->reord_seen = is[i].seen;
		p->sacked_packets = is[i].sacked;
		p->recovery = is[i].recovery;
		ddps_sent_detect(&w.s, p, due - 1);
		cr_expect_eq(w.s.nlost, 0);
		cr_expect_eq(p->reo_at, due - 1 + conf.grain / 2, "no timer for less");
		ddps_sent_detect(&w.s, p, at);
		cr_expect_eq(p->reo_at, due);
		ddps_sent_detect(&w.s, p, due);
		cr_expect_eq(w.s.nlost, 1, "%u", i);
		cr_expect(p->recovery && p->reo_at == 0 && p->got.new_loss);
		p->sacked_packets = 0;
		p->recovery = false;
		p->cc.phase = DDPS_CC_AVOID;
		p->cc.cwnd = 1 << 20;
		send_sctp_time_table_sack(w.s.next - 1, 1 << 20);
		w.now += SEC;
		p->recovery = false;
	}
	send_sctp_time_table(1, false);
	p->rack_pn = p->next_pn - 1; /* this very packet */
	ddps_sent_detect(&w.s, p, w.now + 9 * SEC);
	cr_expect_eq(w.s.nlost, 0);
}

/* As late as was seen, and an eighth; but no later than 16 SRTTs, and not half as late as T3. */
Test(sctp_time, how_late_a_packet_is_waited_for)
{
	struct ddps_sent_path *p = &w.p[0];
	static const struct {
		uint64_t srtt, after, late;
		bool lasts;
	} is[] = { { 4, 0, 0, false },	    { 4, 2, 0, false },	     { 4, 18, 18, true },
		   { 4, 10, 18, true },	    { 4, 58, 63, true },     { 4, 60, 63, false },
		   { 100, 160, 177, true }, { 100, 200, 177, false } };

	w.now = SEC;
	for (unsigned i = 0; i < N(is); i++) {
		if (p->srtt != is[i].srtt * MS)
			p->reo_late = 0;
		p->srtt = is[i].srtt * MS;
		p->rttvar = p->srtt / 8;
		p->min_rtt = 2 * MS;
		p->reo_persist = 0;
		ddps_sent_note_late(&w.s, p, is[i].after ? w.now - is[i].after * MS : 0, w.now);
		cr_expect_eq(p->reo_late / MS, is[i].late, "%u: %u ms", i,
			     (unsigned)(p->reo_late / MS));
		cr_expect_eq(p->reo_persist, is[i].lasts ? 16 : 0, "%u", i);
	}
}

Test(sctp_time, more_patience_after_duplicates)
{
	struct ddps_sent_path *p = &w.p[0];

	send_sctp_time_table(1, false);
	ddps_sent_reordered(&w.s, p);
	cr_expect(p->reo_mult == 1 && !p->dsack_round_set);
	p->got.spurious = true;
	ddps_sent_reordered(&w.s, p);
	cr_expect(p->reo_mult == 2 && p->reo_persist == 16 && p->dsack_round == w.s.next);
	ddps_sent_reordered(&w.s, p);
	cr_expect_eq(p->reo_mult, 2, "once a round trip");
	w.s.cum++; /* the round is not over before what was next then */
	ddps_sent_reordered(&w.s, p);
	cr_expect_eq(p->reo_mult, 2);
	w.s.cum--;
	send_sctp_time_table(1, false);
	send_sctp_time_table_sack(w.s.next - 1, 1 << 20);
	p->got.spurious = true;
	ddps_sent_reordered(&w.s, p);
	cr_expect_eq(p->reo_mult, 3);
}

/* What is waited for, longer than a round trip, and comes keeps the patience. */
Test(sctp_time, what_comes_late_keeps_patience)
{
	struct ddps_sent_path *p = &w.p[0];

	p->rack_rtt = p->srtt = p->min_rtt = 4 * MS;
	p->reo_late = 20 * MS;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t at = w.now;

		send_sctp_time_table(1, false);
		p->rack_pn = p->next_pn;
		ddps_sent_detect(&w.s, p, at + (i ? 8 * MS + 1 : 8 * MS));
		cr_expect_eq(p->waited, i > 0);
		p->reo_persist = 3;
		p->got.first_acked = i < 2;
		ddps_sent_reordered(&w.s, p);
		cr_expect_eq(p->reo_persist, i == 1 ? 16 : 3, "%u", i);
		send_sctp_time_table_sack(w.s.next - 1, 1 << 20);
		cr_expect_not(p->waited);
		p->rack_rtt = p->srtt = 4 * MS;
	}
}

Test(sctp_time, a_repair_that_was_needed_costs_patience)
{
	struct ddps_sent_path *p = &w.p[0];
	struct ddps_cc_ack none = { .srtt = MS };

	p->reo_mult = 4;
	p->reo_late = 20 * MS;
	p->reo_persist = 2;
	ddps_sent_settle(&w.s, p, &none);
	cr_expect_eq(p->reo_persist, 2, "there was none");
	for (unsigned i = 0; i < 3; i++) {
		p->recovery = true;
		p->got.spurious = !i;
		ddps_sent_settle(&w.s, p, &none);
		cr_expect_not(p->recovery);
		cr_expect_eq(p->reo_mult, i < 2 ? 4 : 1);
		cr_expect_eq(p->reo_late, i < 2 ? 20 * MS : 0);
	}
	send_sctp_time_table(1, false);
	p->recovery = true;
	p->epi_pn = p->next_pn;
	ddps_sent_settle(&w.s, p, &none);
	cr_expect(p->recovery, "what was in flight is not acknowledged");
	p->epi_pn = p->next_pn - 1;
	ddps_sent_settle(&w.s, p, &none);
	cr_expect_not(p->recovery);
	p->recovery = true;
	p->nlost = 1;
	ddps_sent_settle(&w.s, p, &none);
	cr_expect(p->recovery);
	p->nlost = 0;
	p->recovery = false;
}

Test(sctp_time, all_losses_were_none)
{
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < 4; i++) {
		p->episode = p->undo_from = 5;
		p->undo_pending = i == 2 ? 0 : 2;
		p->reord_seen = false;
		p->recovery = true;
		p->frto = 1;
		p->undone = 0;
		ddps_sent_false_loss(p, i == 0 ? 0 : i == 1 ? 4 : 5);
		cr_expect_eq(p->reord_seen, i == 3, "%u", i);
		cr_expect_eq(p->undo_pending, i == 2 ? 0 : i == 3 ? 1 : 2);
		cr_expect(p->recovery && p->frto && !p->undone);
	}
	ddps_sent_false_loss(p, 5);
	cr_expect(!p->recovery && !p->frto && p->undone == 1 && !p->undo_pending);
	p->episode = 255;
	p->tlp_out = true;
	p->undo_pending = 3;
	ddps_sent_episode(p);
	cr_expect(p->episode == 1 && !p->tlp_out && !p->undo_pending, "0 is none");
	cr_expect_eq(p->epi_pn, p->next_pn);
	ddps_sent_episode(p);
	cr_expect_eq(p->episode, 2);
}

/*
 * News of what was late comes when other episodes have begun: the window is what it was before the first
 * of them, once nothing of any is left.  One that began longer ago than a packet may be late is over.
 */
Test(sctp_time, episodes_are_undone_together)
{
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < 2; i++) {
		const uint64_t lost_at[] = { w.now + 20 * MS, w.now + (i ? 84 * MS : 84 * MS - 1) };
		uint8_t first = 0;

		p->srtt = p->min_rtt = 4 * MS;
		p->rttvar = 0;
		p->cc.phase = DDPS_CC_AVOID;
		p->cc.cwnd = 1 << 20;
		for (unsigned k = 0; k < 2; k++) {
			send_sctp_time_table(1, false);
			p->rack_pn = p->next_pn;
			p->rack_rtt = 0;
			w.now = lost_at[k];
			ddps_sent_detect(&w.s, p, w.now);
			cr_assert_eq(w.s.nlost, k + 1);
			cr_assert_neq(p->episode, first, "one of its own");
			first = p->episode;
		}
		cr_expect_eq(p->undo_pending, 2 - i);
		p->undone = 0;
		send_sctp_time_table_sack(w.s.next - 1, 1 << 20); /* both were late */
		cr_expect_eq(p->undone, 1);
		cr_expect_eq(p->cc.cwnd >= 1 << 20, !i, "%u octets", (unsigned)p->cc.cwnd);
		w.now += SEC;
	}
}

/* A sign of life after a second of silence has what waits sent, once a second. */
Test(sctp_time, life_after_silence)
{
	static const struct {
		uint32_t backoff;
		uint64_t silent, now, alive;
		bool zero, is;
	} is[] = {
		{ 1, 1, SEC + 1, 0, false, true },	 { 1, 1, SEC, 0, false, false },
		{ 0, 1, SEC + 1, 0, false, false },	 { 1, 0, SEC + 1, 0, false, false },
		{ 1, 1, SEC + 1, SEC + 1, false, true }, { 1, 1, SEC + 1, SEC + 2, false, false },
		{ 1, 1, SEC + 1, 0, true, false }
	};
	struct ddps_sent_path *p = &w.p[0];

	for (unsigned i = 0; i < N(is); i++) {
		send_sctp_time_table(1, false);
		p->force = false;
		p->probe = true;
		p->backoff = is[i].backoff;
		p->silent_at = is[i].silent;
		p->alive_at = is[i].alive;
		w.s.zero_out = is[i].zero;
		cr_expect_eq(ddps_sent_alive(&w.s, p, is[i].now), is[i].is, "%u", i);
		cr_expect_eq(p->force, is[i].is);
		cr_expect_eq(p->probe, !is[i].is);
		cr_expect_eq(w.s.nlost, is[i].is);
		if (is[i].is)
			cr_expect_eq(p->alive_at, is[i].now + SEC);
		w.s.zero_out = false;
		send_sctp_time_table_sack(w.s.next - 1, 1 << 20);
	}
	p->backoff = 1;
	p->silent_at = 1;
	p->alive_at = 0;
	p->force = true;
	cr_expect_not(ddps_sent_alive(&w.s, p, 9 * SEC), "nothing waits");
	cr_expect_not(p->force);
}
