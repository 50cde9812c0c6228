/* SPDX-License-Identifier: BSD-2-Clause */
/* What a SACK says to the sender: both sides of each limit, each flag. */
#include "sctp_sent_fixture.h"

#define SEC  (1000 * MS)
#define N(a) (sizeof(a) / sizeof *(a))

static struct world w;

static void setup(void)
{
	sent_begin(&w, 1, 1, 1 << 20);
	w.p[0].cc.cwnd = 1 << 20;
}

static void fini(void)
{
	sent_end(&w);
}

TestSuite(sctp_sack, .init = setup, .fini = fini);

static void repeat_sctp_sack_table(void)
{
	fini();
	setup();
}

/* So many packets of one chunk of 100 octets. */
static void send_sctp_sack_table(unsigned n)
{
	while (n--) {
		void *chunk = (void *)((uintptr_t)w.s.next + 7);

		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert_eq(ddps_sent_add_new(&w.s, 116, 100, chunk), 0);
		ddps_sent_end(&w.s, 156, n > 0);
	}
}

static void resend_sctp_sack_table(void)
{
	struct ddps_sent_chunk c;

	ddps_sent_begin(&w.s, &w.p[0], w.now);
	while (ddps_sent_next_old(&w.s, &c))
		ddps_sent_add_old(&w.s, c.tsn);
	ddps_sent_end(&w.s, 156, false);
}

static struct ddps_sent_news news;

static enum ddps_sent_verdict send_sctp_sack_table_sack(uint32_t cum, uint32_t a_rwnd,
							const struct ddps_sent_gap *gaps,
							size_t ngaps)
{
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = a_rwnd, .gaps = gaps, .ngaps = ngaps };

	return ddps_sent_sack(&w.s, &k, w.now, &news);
}

Test(sctp_sack, what_is_taken_what_is_old_and_what_is_a_lie, .description = "9260-12.4-3")
{
	static const struct {
		uint32_t cum;
		enum ddps_sent_verdict is;
	} of[] = { { 5, DDPS_SENT_TAKEN },
		   { 4, DDPS_SENT_STALE },
		   { 0, DDPS_SENT_STALE },
		   { 10, DDPS_SENT_TAKEN },
		   { 11, DDPS_SENT_LIE },
		   { 5u + (1u << 31) - 1, DDPS_SENT_LIE },
		   { 5u + (1u << 31), DDPS_SENT_STALE },
		   { UINT32_MAX, DDPS_SENT_STALE } };

	for (unsigned i = 0; i < N(of); i++) {
		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(10);
		cr_assert_eq(send_sctp_sack_table_sack(5, 1 << 20, NULL, 0), DDPS_SENT_TAKEN);
		cr_expect_eq(send_sctp_sack_table_sack(of[i].cum, 1 << 20, NULL, 0), of[i].is, "%u",
			     i);
		cr_expect_eq(w.s.stale_sacks, of[i].is == DDPS_SENT_STALE);
		cr_expect_eq(w.s.cum, of[i].is == DDPS_SENT_TAKEN ? of[i].cum : 5);
	}
}

Test(sctp_sack, blocks_in_order_and_out_of_it, .description = "9260-12.4-3")
{
	static const struct {
		struct ddps_sent_gap gap[2];
		unsigned n, sacked;
		enum ddps_sent_verdict is;
	} of[] = { { { { 2, 3 } }, 1, 2, DDPS_SENT_TAKEN },
		   { { { 2, 2 } }, 1, 1, DDPS_SENT_TAKEN },
		   { { { 0, 2 } }, 1, 0, DDPS_SENT_TAKEN },
		   { { { 3, 2 } }, 1, 0, DDPS_SENT_TAKEN },
		   { { { 2, 10 } }, 1, 9, DDPS_SENT_TAKEN },
		   { { { 2, 11 } }, 1, 0, DDPS_SENT_LIE },
		   { { { 2, 3 }, { 5, 6 } }, 2, 4, DDPS_SENT_TAKEN },
		   { { { 2, 3 }, { 4, 6 } }, 2, 5, DDPS_SENT_TAKEN },
		   { { { 2, 3 }, { 3, 6 } }, 2, 0, DDPS_SENT_TAKEN },
		   { { { 5, 6 }, { 2, 3 } }, 2, 0, DDPS_SENT_TAKEN },
		   { { { 2, 3 }, { 5, 11 } }, 2, 0, DDPS_SENT_LIE } };

	for (unsigned i = 0; i < N(of); i++) {
		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(10);
		cr_expect_eq(send_sctp_sack_table_sack(0, 1 << 20, of[i].gap, of[i].n), of[i].is,
			     "%u", i);
		cr_expect_eq(w.p[0].nsacked, of[i].sacked, "%u: %u", i, w.p[0].nsacked);
		cr_expect_eq(w.s.bad_blocks, of[i].is == DDPS_SENT_TAKEN && !of[i].sacked);
		cr_expect_eq(news.acked, of[i].sacked);
		cr_expect_eq(news.cum_advanced, 0);
	}
}

/* The I bit is answered immediately, or after a delay as if it had not been there. */
Test(sctp_sack, whether_the_peer_answers_the_i_bit)
{
	static const struct {
		bool i_bit;
		uint64_t ms;
		bool answers;
	} of[] = { { true, 109, true }, { true, 110, false }, { false, 50, false } };

	for (unsigned i = 0; i < N(of); i++) {
		struct ddps_sent_path *p = &w.p[0];

		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(1);
		ddps_sent_slot(&w.s, 1)->flags = of[i].i_bit ? SLOT_I : 0;
		p->srtt = 10 * MS;
		p->min_rtt = p->min_cur = 200 * MS;
		p->min_at = w.now;
		w.now += of[i].ms * MS;
		send_sctp_sack_table_sack(1, 1 << 20, NULL, 0);
		cr_expect_eq(w.s.i_answered, of[i].answers, "%u", i);
		/* what may have waited is no shortest RTT */
		cr_expect_eq(p->min_rtt, (of[i].i_bit ? of[i].ms : 200) * MS, "%u", i);
	}
	repeat_sctp_sack_table();
	send_sctp_sack_table(1);
	ddps_sent_slot(&w.s, 1)->flags = 0;
	w.now += 50 * MS;
	send_sctp_sack_table_sack(1, 1 << 20, NULL, 0);
	cr_expect_eq(w.p[0].min_rtt, 50 * MS, "better than none");
}

/* What was resent cannot be acknowledged in less than the shortest RTT, less an eighth. */
Test(sctp_sack, which_one_is_acknowledged)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sent_path *p = &w.p[0];
		uint64_t pn;

		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(3);
		ddps_sent_mark(&w.s, 1);
		w.now += 100 * MS;
		resend_sctp_sack_table();
		pn = p->next_pn - 1;
		p->min_rtt = p->min_cur = 80 * MS;
		p->min_at = w.now;
		p->undo_pending = 1;
		p->episode = 3;
		w.now += 70 * MS - i;
		send_sctp_sack_table_sack(1, 1 << 20, NULL, 0);
		cr_expect_eq(p->rack_pn, i ? 0 : pn);
		if (!i)
			cr_expect_eq(p->rack_rtt, 70 * MS);
		cr_expect_eq(w.s.hist[1].flags & HIST_UNDONE, i ? HIST_UNDONE : 0);
	}
}

/* Reports of duplicates: RFC 9260 3.3.4. */
Test(sctp_sack, what_a_duplicate_says)
{
	static const struct {
		uint8_t flags;
		bool spurious, undone;
	} of[] = { { 0, false, false },
		   { HIST_USED, true, true },
		   { HIST_USED | HIST_TOLD, false, false },
		   { HIST_USED | HIST_UNDONE, true, false },
		   { HIST_USED | HIST_TLP, false, false } };

	for (unsigned i = 0; i < 2 * N(of); i++) {
		struct ddps_sent_path *p = &w.p[0];
		struct ddps_sent_sack k = { .a_rwnd = 1 << 20, .ndups = 1 };
		uint32_t tsn = 1;
		bool other = i >= N(of), tlp = of[i % N(of)].flags & HIST_TLP;

		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(3);
		ddps_sent_mark(&w.s, 1);
		resend_sctp_sack_table();
		w.s.hist[1] = (struct ddps_sent_resent){ .tsn = other ? 257 : 1,
							 .episode = 9,
							 .flags = of[i % N(of)].flags };
		p->episode = 9;
		p->undo_pending = 2;
		p->tlp_out = p->tlp_resent = true;
		p->tlp_tsn = 1;
		k.dups = &tsn;
		cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
		cr_expect_eq(p->spurious, !other && of[i % N(of)].spurious, "%u", i);
		cr_expect_eq(p->undo_pending, !other && of[i % N(of)].undone ? 1 : 2, "%u", i);
		cr_expect_eq(p->tlp_out, other || !tlp, "%u", i);
		if (!other && of[i % N(of)].flags)
			cr_expect(w.s.hist[1].flags & HIST_TOLD);
	}
}

Test(sctp_sack, a_probe_that_was_not_this_one)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ddps_sent_path *p = &w.p[0];
		uint32_t tsn = 1;
		struct ddps_sent_sack k = { .a_rwnd = 1 << 20, .ndups = 1, .dups = &tsn };

		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(3);
		ddps_sent_mark(&w.s, 1);
		resend_sctp_sack_table();
		w.s.hist[1] = (struct ddps_sent_resent){ .tsn = 1, .flags = HIST_USED | HIST_TLP };
		p->tlp_out = i != 1;
		p->tlp_resent = i != 2;
		p->tlp_tsn = i == 3 ? 2 : 1;
		cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
		cr_expect_eq(p->tlp_out, i >= 2, "%u", i);
		cr_expect_eq(p->spurious, 0);
	}
}

/* RFC 5682: the second SACK after T3 shows it. */
Test(sctp_sack, whether_t3_was_too_early)
{
	static const struct {
		uint8_t frto;
		bool lost, cum;
		uint8_t then, fresh;
	} of[] = { { 0, true, true, 0, 0 },  { 1, true, true, 2, 2 }, { 1, false, true, 0, 2 },
		   { 1, true, false, 1, 0 }, { 2, true, true, 0, 0 }, { 2, true, false, 0, 0 } };
	static const struct ddps_sent_gap gap = { 3, 3 };

	for (unsigned i = 0; i < N(of); i++) {
		struct ddps_sent_path *p = &w.p[0];

		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(4);
		if (of[i].lost)
			ddps_sent_mark(&w.s, 2);
		p->frto = of[i].frto;
		p->frto_pn = 0; /* nothing acknowledged here proves anything */
		p->undone = 0;
		send_sctp_sack_table_sack(of[i].cum ? 1 : 0, 1 << 20, &gap, of[i].cum ? 0 : 1);
		cr_expect_eq(p->frto, of[i].then, "%u: %u", i, p->frto);
		cr_expect_eq(p->frto_new, of[i].fresh, "%u", i);
		cr_expect_eq(p->undone, 0);
	}
}

/* A queue within a fast path: see tx_sack.c. */
Test(sctp_sack, when_a_path_only_queues)
{
	static const struct {
		unsigned us, rtt, cwnd;
		bool here, queued;
	} of[] = { { 100, 601, 262145, false, true },	 { 100, 600, 262145, false, false },
		   { 100, 601, 262144, false, false },	 { 999, 1600, 262145, false, true },
		   { 1000, 1600, 262145, false, false }, { 100, 351, 262145, true, true },
		   { 100, 350, 262145, true, false } };

	for (unsigned i = 0; i < N(of); i++) {
		struct ddps_sent_path *p = &w.p[0];

		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(3);
		p->min_rtt = p->min_cur = of[i].us * 1000;
		p->min_at = w.now;
		p->within_host = of[i].here;
		p->cc.cwnd = of[i].cwnd;
		p->cc.ssthresh = of[i].cwnd;
		p->cc.phase = DDPS_CC_AVOID;
		p->cc.limited = true;
		p->cc_round = UINT64_MAX;
		w.now += of[i].rtt * 1000;
		send_sctp_sack_table_sack(1, 1 << 20, NULL, 0);
		cr_expect_eq(p->cc.stopped != 0, of[i].queued, "%u", i);
	}
}

Test(sctp_sack, the_window_of_the_peer, .description = "9260-6.2.1-d1")
{
	struct ddps_sent_sack k = { .shutdown = true };

	send_sctp_sack_table(4);
	cr_assert_eq(w.s.out_len, 400);
	send_sctp_sack_table_sack(0, 500, NULL, 0);
	cr_expect_not(news.window, "it is smaller");
	send_sctp_sack_table_sack(0, 500, NULL, 0);
	cr_expect_not(news.window, "it is the same");
	send_sctp_sack_table_sack(1, 500, NULL, 0);
	cr_expect(news.window, "there is room for what was taken");
	send_sctp_sack_table_sack(1, 501, NULL, 0);
	cr_expect(news.window);
	send_sctp_sack_table_sack(1, 150, NULL, 0);
	k.cum = 2;
	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	cr_expect_eq(w.s.a_rwnd, 200, "a SHUTDOWN tells none, but took 100");
	send_sctp_sack_table_sack(2, 201, NULL, 0);
	k.cum = 3;
	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	cr_expect_eq(w.s.a_rwnd, 201);
}

/* 9260-6.3.2: T3 begins anew where the oldest is acknowledged, and ends with the last. */
Test(sctp_sack, when_t3_begins_anew, .description = "9260-6.3.2-d1")
{
	static const struct ddps_sent_gap gap = { 2, 2 };
	struct ddps_sent_path *p = &w.p[0];
	uint64_t t3;

	send_sctp_sack_table(3);
	t3 = p->t3_at;
	w.now += 20 * MS;
	send_sctp_sack_table_sack(0, 1 << 20, &gap, 1);
	cr_expect_eq(p->t3_at, t3, "not of the oldest");
	cr_expect_eq(p->pto_at, 0, "a gap is no tail");
	w.now += 20 * MS;
	send_sctp_sack_table_sack(1, 1 << 20, &gap, 0);
	cr_expect_eq(p->t3_at, w.now + ddps_sent_rto(&w.s, p));
	send_sctp_sack_table_sack(3, 1 << 20, NULL, 0);
	cr_expect_eq(p->t3_at, 0);
}

Test(sctp_sack, after_an_outage_the_rtt_holds)
{
	for (unsigned i = 0; i < 3; i++) {
		struct ddps_sent_path *p = &w.p[0];

		if (i)
			repeat_sctp_sack_table();
		send_sctp_sack_table(2);
		ddps_sent_mark(&w.s, 1);
		resend_sctp_sack_table(); /* Karn: no sample ends the back-off */
		ddps_sent_mark(&w.s, 2);
		resend_sctp_sack_table();
		w.now += 5 * SEC;
		p->backoff = 3;
		p->nudge_at = p->alive_at = 7;
		p->silent_at = i == 2 ? 0 : w.now - SEC - i;
		send_sctp_sack_table_sack(1, 1 << 20, NULL, 0);
		cr_expect_eq(p->backoff, i == 1 ? 0 : 3, "%u", i);
		cr_expect_not(p->silent_at || p->nudge_at || p->alive_at);
	}
}

/* What was doubled while nobody answered is not waited for when somebody does. */
Test(sctp_sack, what_t3_was_doubled_to_is_over)
{
	static const struct ddps_sent_gap gap = { 2, 2 };
	struct ddps_sent_path *p = &w.p[0];

	send_sctp_sack_table(3);
	w.now += 20 * MS;
	p->backoff = 3;
	p->t3_at = w.now + ddps_sent_rto(&w.s, p);
	send_sctp_sack_table_sack(0, 1 << 20, &gap, 1);
	cr_assert_eq(p->backoff, 0);
	cr_expect_eq(p->t3_at, w.now + ddps_sent_rto(&w.s, p));
	p->backoff = 3;
	p->t3_at = w.now + ddps_sent_rto(&w.s, p);
	ddps_sent_path_lost(&w.s, p);
	p->t3_at = w.now + ddps_sent_rto(&w.s, p);
	ddps_sent_rtt(&w.s, p, 20 * MS, w.now);
	cr_expect_eq(p->t3_at, w.now + ddps_sent_rto(&w.s, p), "what is about to be resent");
}

/* The SACK that answered may be lost, and SHUTDOWN comes whenever it likes. */
Test(sctp_sack, the_age_of_a_shutdown_is_no_round_trip)
{
	struct ddps_sent_sack k = { .cum = 1, .shutdown = true };

	send_sctp_sack_table(1);
	w.now += 500 * MS;
	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	cr_expect_eq(w.p[0].srtt, 0);
	cr_expect_eq(w.p[0].min_rtt, 0);
}
