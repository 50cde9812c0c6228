/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a packet that was sent: what is asked for with it, and which timers run. */
#include "sctp_sent_fixture.h"
#include <ddpsess/err.h>

static struct world w;
static struct ddps_sent_path *const p = &w.p[0];

static void begin_sctp_ends(void)
{
	sent_begin(&w, 1, 1, 1000000);
}

static void end_sctp_ends(void)
{
	sent_end(&w);
}

TestSuite(sctp_ends, .init = begin_sctp_ends, .fini = end_sctp_ends);

static void restart_ends_rig(void)
{
	end_sctp_ends();
	begin_sctp_ends();
}

static void add_to_sctp_ends(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(ddps_sent_add_new(&w.s, 116, 100, (void *)((uintptr_t)w.s.next + 7)),
			     0);
}

/* A packet with one chunk that is new. */
static bool make_sctp_ends_packet(bool more)
{
	ddps_sent_begin(&w.s, p, w.now);
	add_to_sctp_ends(1);
	return ddps_sent_end(&w.s, 156, more);
}

/* What is in flight of the lowest TSNs is lost. */
static void lose_sctp_ends(uint32_t tsn)
{
	ddps_sent_mark(&w.s, tsn);
}

static bool resend_sctp_ends(uint32_t tsn, bool more)
{
	struct ddps_sent_chunk c;

	ddps_sent_begin(&w.s, p, w.now);
	cr_assert(ddps_sent_next_old(&w.s, &c));
	cr_assert_eq(c.tsn, tsn);
	ddps_sent_add_old(&w.s, tsn);
	return ddps_sent_end(&w.s, 156, more);
}

/* ---- the I bit ---- */

Test(sctp_ends, when_an_answer_is_asked_for, .description = "9260-3.3.1-1")
{
	cr_expect(make_sctp_ends_packet(true), "nothing was in flight");
	cr_expect(!make_sctp_ends_packet(true), "more follows, and others are in flight");
	cr_expect(make_sctp_ends_packet(false), "nothing follows");
	cr_expect(!make_sctp_ends_packet(true));
	lose_sctp_ends(1);
	cr_expect(resend_sctp_ends(1, true), "it was lost");
	cr_expect(!make_sctp_ends_packet(true));
}

Test(sctp_ends, when_the_window_of_the_path_is_full)
{
	static const struct {
		int more;
		bool i;
	} is[] = { { -1, true }, { 0, true }, { 1, false } };

	for (unsigned k = 0; k < 3; k++, restart_ends_rig()) {
		make_sctp_ends_packet(true);
		p->cc.cwnd = (uint64_t)(232 + is[k].more); /* two chunks */
		cr_expect_eq(make_sctp_ends_packet(true), is[k].i, "%u", k);
	}
}

Test(sctp_ends, when_the_window_of_the_peer_is_full)
{
	static const struct {
		int more;
		bool i;
	} is[] = { { -1, true }, { 0, false }, { 1, false } };

	for (unsigned k = 0; k < 3; k++, restart_ends_rig()) {
		make_sctp_ends_packet(true);
		w.s.a_rwnd = (uint32_t)((int)p->cc.smss + 200 + is[k].more);
		cr_expect_eq(make_sctp_ends_packet(true), is[k].i, "%u", k);
	}
}

/* ---- T3 ---- */

/* It runs from the first; the lowest that is resent begins it anew, but not into silence. */
Test(sctp_ends, when_t3_begins, .description = "9260-6.1-18 9260-6.1-19 9260-6.3.2-d1")
{
	static const struct {
		uint32_t tsn;
		bool silent, anew;
	} is[] = { { 1, false, true }, { 2, false, false }, { 1, true, false } };

	for (unsigned k = 0; k < 3; k++, restart_ends_rig()) {
		uint64_t t3 = w.now + 1000 * MS;

		p->late = 0;
		make_sctp_ends_packet(true);
		cr_assert_eq(p->t3_at, t3, "RTO.Initial");
		w.now += 10 * MS;
		make_sctp_ends_packet(true);
		cr_assert_eq(p->t3_at, t3);
		lose_sctp_ends(is[k].tsn);
		p->silent_at = is[k].silent ? w.now : 0;
		w.now += 10 * MS;
		resend_sctp_ends(is[k].tsn, true);
		cr_expect_eq(p->t3_at, is[k].anew ? w.now + 1000 * MS : t3, "%u", k);
	}
}

/* ---- what is counted ---- */

Test(sctp_ends, numbers_of_packets)
{
	cr_assert_eq(p->next_pn, 1);
	cr_expect_eq(ddps_sent_begin(&w.s, p, w.now), 1);
	cr_expect(!ddps_sent_end(&w.s, 40, false), "without chunks it is forgotten");
	cr_expect_eq(p->next_pn, 1);
	cr_expect_eq(p->packets, 0);
	for (unsigned i = 1; i <= 3; i++) {
		cr_expect_eq(ddps_sent_begin(&w.s, p, w.now), i);
		add_to_sctp_ends(2);
		ddps_sent_end(&w.s, 300, true);
		cr_expect_eq(p->packets, i);
		cr_expect_eq(p->nflight, 2 * i);
		cr_expect_eq(w.s.out_len, 200 * i);
		cr_expect_eq(p->flight, 232 * i);
		for (uint32_t t = 2 * i - 1; t <= 2 * i; t++) {
			cr_expect_eq(ddps_sent_slot(&w.s, t)->pn, i);
			cr_expect_eq(ddps_sent_slot(&w.s, t)->packet, 300);
			cr_expect_eq(ddps_sent_slot(&w.s, t)->nsent, 1);
		}
	}
	cr_expect_eq(p->resent, 0);
	lose_sctp_ends(3);
	resend_sctp_ends(3, true);
	cr_expect_eq(p->resent, 1);
	cr_expect_eq(ddps_sent_slot(&w.s, 3)->pn, 4);
	cr_expect_eq(ddps_sent_slot(&w.s, 3)->nsent, 2);
	cr_expect_eq(w.s.nlost + p->nlost, 0);
	cr_expect_eq(p->lost_octets, 0);
}

/* A packet that was timed by nobody: its own chunks, and no others. */
Test(sctp_ends, a_packet_that_left_before)
{
	make_sctp_ends_packet(true);
	ddps_sent_begin(&w.s, p, w.now);
	add_to_sctp_ends(3);
	ddps_sent_untimed(&w.s);
	ddps_sent_end(&w.s, 400, true);
	make_sctp_ends_packet(true);
	for (uint32_t t = 1; t <= 5; t++)
		cr_expect_eq(!(ddps_sent_slot(&w.s, t)->flags & SLOT_VOID), t == 1 || t == 5, "%u",
			     t);
}

/* ---- F-RTO (RFC 5682): two packets of new data, and no third ---- */

Test(sctp_ends, how_many_new_ones_leave_after_t3)
{
	static const struct {
		uint8_t step, left, then;
		bool old;
	} is[] = { { 2, 2, 1, false }, { 2, 1, 0, false }, { 2, 0, 0, false }, { 2, 2, 2, true },
		   { 2, 0, 0, true },  { 1, 2, 2, false }, { 0, 2, 2, false } };

	for (unsigned k = 0; k < sizeof is / sizeof *is; k++, restart_ends_rig()) {
		make_sctp_ends_packet(true);
		make_sctp_ends_packet(true);
		if (is[k].old)
			lose_sctp_ends(1);
		p->frto = is[k].step;
		p->frto_new = is[k].left;
		if (is[k].old)
			resend_sctp_ends(1, true);
		else
			make_sctp_ends_packet(true);
		cr_expect_eq(p->frto_new, is[k].then, "%u: %u", k, p->frto_new);
	}
}

Test(sctp_ends, new_ones_go_before_those_that_t3_called_lost)
{
	static const struct {
		uint8_t step, left;
		size_t len;
		enum ddps_sent_what what;
		bool one;
	} is[] = { { 2, 2, 100, DDPS_SENT_NEW, true },	   { 2, 1, 100, DDPS_SENT_NEW, true },
		   { 2, 0, 100, DDPS_SENT_OLD, false },	   { 1, 2, 100, DDPS_SENT_OLD, false },
		   { 0, 2, 100, DDPS_SENT_OLD, false },	   { 2, 2, SIZE_MAX, DDPS_SENT_OLD, false },
		   { 2, 2, 1000001, DDPS_SENT_OLD, false } };

	for (unsigned k = 0; k < sizeof is / sizeof *is; k++, restart_ends_rig()) {
		uint64_t room;

		make_sctp_ends_packet(true);
		make_sctp_ends_packet(true);
		lose_sctp_ends(1);
		p->frto = is[k].step;
		p->frto_new = is[k].left;
		cr_expect_eq(ddps_sent_may(&w.s, p, w.now, is[k].len, &room), is[k].what, "%u", k);
		cr_expect_eq(room == 1, is[k].one, "%u: %llu", k, (unsigned long long)room);
	}
}

/* ---- a packet that goes whatever the window says ---- */

Test(sctp_ends, what_is_forced)
{
	static const struct {
		bool force, probe, lost;
		size_t len;
		enum ddps_sent_what what;
		bool still;
	} is[] = { { true, false, true, 100, DDPS_SENT_OLD, true },
		   { true, true, true, 100, DDPS_SENT_OLD, true },
		   { true, true, false, 100, DDPS_SENT_NEW, true },
		   { true, true, false, SIZE_MAX, DDPS_SENT_OLD, true },
		   { true, false, false, 100, DDPS_SENT_NOTHING, false },
		   { false, false, true, 100, DDPS_SENT_NOTHING, false } };

	for (unsigned k = 0; k < sizeof is / sizeof *is; k++, restart_ends_rig()) {
		uint64_t room;

		make_sctp_ends_packet(true);
		make_sctp_ends_packet(true);
		if (is[k].lost)
			lose_sctp_ends(1);
		p->cc.cwnd = 1; /* full */
		p->force = is[k].force;
		p->probe = is[k].probe;
		cr_expect_eq(ddps_sent_may(&w.s, p, w.now, is[k].len, &room), is[k].what, "%u", k);
		cr_expect_eq(room, is[k].what != DDPS_SENT_NOTHING, "%u", k);
		cr_expect_eq(p->force, is[k].still, "%u", k);
		cr_expect_eq(p->probe, is[k].still && is[k].probe && !is[k].lost, "%u", k);
		make_sctp_ends_packet(false);
		cr_expect(!p->force && !p->probe);
	}
}

/* ---- another path ---- */

Test(sctp_ends, what_was_sent_on_two_paths_proves_neither)
{
	struct ddps_sent_chunk c;

	make_sctp_ends_packet(true);
	make_sctp_ends_packet(true);
	lose_sctp_ends(1);
	lose_sctp_ends(2);
	resend_sctp_ends(1, true);
	ddps_sent_begin(&w.s, &w.p[1], w.now);
	cr_assert(ddps_sent_next_old(&w.s, &c));
	ddps_sent_add_old(&w.s, c.tsn);
	ddps_sent_end(&w.s, 156, true);
	cr_expect_eq(c.tsn, 2);
	cr_expect_eq(ddps_sent_slot(&w.s, 1)->flags & SLOT_AWAY, 0);
	cr_expect_eq(ddps_sent_slot(&w.s, 2)->flags & SLOT_AWAY, SLOT_AWAY);
	cr_expect_eq(ddps_sent_slot(&w.s, 2)->path, 1);
	cr_expect_eq(p->nflight, 1);
	cr_expect_eq(w.p[1].nflight, 1);
	cr_expect_eq(w.p[1].resent, 1);
	cr_expect_eq(p->resent, 1);
}

/* The tail loss probe: one packet, of new data where there are, else of the last. */
Test(sctp_ends, what_a_probe_leaves)
{
	for (unsigned new = 0; new < 2; new ++, restart_ends_rig()) {
		struct ddps_sent_chunk c;

		make_sctp_ends_packet(true);
		make_sctp_ends_packet(true);
		p->force = p->probe = true;
		p->tlp_acked = p->sampled = true;
		ddps_sent_begin(&w.s, p, w.now);
		if (new) {
			add_to_sctp_ends(1);
		} else {
			cr_assert(ddps_sent_next_old(&w.s, &c));
			cr_expect_eq(c.tsn, 2);
			ddps_sent_add_old(&w.s, 2);
			cr_expect(!ddps_sent_next_old(&w.s, &c), "one is enough");
		}
		cr_expect(ddps_sent_end(&w.s, 156, true), "it wants an answer");
		cr_expect(p->tlp_out);
		cr_expect(!p->tlp_acked && !p->sampled);
		cr_expect_eq(p->tlp_resent, !new);
		cr_expect_eq(p->tlp_tsn, new ? 3 : 2);
		cr_expect_eq(p->probes, 1);
		cr_expect_eq(ddps_sent_slot(&w.s, 2)->flags & SLOT_TLP, new ? 0 : SLOT_TLP);
		lose_sctp_ends(2); /* and resent for another reason */
		ddps_sent_slot(&w.s, 2)->flags |= SLOT_VOID | SLOT_PKT | SLOT_T3;
		resend_sctp_ends(2, true);
		cr_expect_eq(ddps_sent_slot(&w.s, 2)->flags, SLOT_T3 | SLOT_I);
	}
}

/* A window that was closed is not asked any more when something leaves. */
Test(sctp_ends, what_leaves_ends_the_wait_for_the_window)
{
	w.s.zero_on = p;
	w.s.zero_at = w.now + 5;
	make_sctp_ends_packet(true);
	cr_expect_eq(w.s.zero_at, 0);
	cr_expect_gt(ddps_sent_deadline(&w.s, p), w.now + 5);
	w.s.zero_go = true;
	make_sctp_ends_packet(true);
	cr_expect(!w.s.zero_go && !w.s.zero_out);
	cr_expect_eq(w.s.zero_n, 0);
}

/* What a SACK costs is counted: each block, also of one that lies. */
Test(sctp_ends, what_a_lie_costs)
{
	static const struct ddps_sent_gap gap[] = { { 2, 2 }, { 4, 4 }, { 6, 60 } };
	struct ddps_sent_sack k = { .cum = 0, .a_rwnd = 1000, .gaps = gap, .ngaps = 3 };
	struct ddps_sent_news news;
	uint32_t tsn;
	uint64_t was;

	for (unsigned i = 0; i < 6; i++)
		make_sctp_ends_packet(true);
	was = w.s.steps;
	cr_expect_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_LIE);
	cr_expect_eq(w.s.steps, was + 3);
	lose_sctp_ends(6);
	was = w.s.steps;
	cr_expect(ddps_sent_lowest(&w.s, 1, &tsn));
	cr_expect_eq(w.s.steps, was + 1);
}

static uint64_t cost_of(const struct ddps_sent_gap *gap, size_t n)
{
	struct ddps_sent_sack k = { .cum = 0, .a_rwnd = 100000, .gaps = gap, .ngaps = n };
	const uint64_t was = w.s.steps;
	struct ddps_sent_news news;

	cr_expect_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	return w.s.steps - was;
}

/* Runs that have become one are not looked at any more. */
Test(sctp_ends, what_a_block_behind_a_single_run_costs)
{
	static const struct ddps_sent_gap many[] = { { 2, 2 }, { 4, 4 }, { 6, 6 }, { 8, 8 } },
					  one[] = { { 2, 8 }, { 10, 10 } };
	uint64_t cost[2];

	for (int i = 0; i < 2; i++, restart_ends_rig()) {
		for (unsigned k = 0; k < 10; k++)
			make_sctp_ends_packet(true);
		if (i) {
			cost_of(many, 3);
			cost_of(many, 4);
		}
		cost_of(one, 1);
		cr_expect_eq(w.s.nruns, 1);
		cost[i] = cost_of(one, 2);
	}
	cr_expect_eq(cost[0], cost[1], "%u, %u", (unsigned)cost[0], (unsigned)cost[1]);
}

/* What is kept of a chunk that is sent again. */
Test(sctp_ends, what_is_remembered_of_what_is_resent)
{
	static const struct {
		uint8_t slot, hist;
	} is[] = { { 0, HIST_USED }, { SLOT_T3, HIST_USED | HIST_T3 }, { SLOT_I, HIST_USED } };

	for (unsigned k = 0; k < 3; k++, restart_ends_rig()) {
		make_sctp_ends_packet(true);
		make_sctp_ends_packet(true);
		lose_sctp_ends(1);
		ddps_sent_slot(&w.s, 1)->flags = is[k].slot;
		ddps_sent_slot(&w.s, 1)->episode = 9;
		resend_sctp_ends(1, true);
		cr_expect_eq(w.s.hist[1].tsn, 1);
		cr_expect_eq(w.s.hist[1].path, 0);
		cr_expect_eq(w.s.hist[1].episode, 9);
		cr_expect_eq(w.s.hist[1].flags, is[k].hist, "%u: %x", k, w.s.hist[1].flags);
		cr_expect_eq(w.s.hist[2].flags, 0);
	}
}

/* T3 is a new congestion only for what was sent since the last. */
Test(sctp_ends, which_t3_is_a_new_congestion, .description = "9260-7.2.3-2")
{
	static const struct {
		uint64_t since;
		bool cut;
	} is[] = { { 0, true }, { 1, true }, { 2, false } };

	for (unsigned k = 0; k < 3; k++, restart_ends_rig()) {
		make_sctp_ends_packet(true);
		p->epi_pn = is[k].since;
		p->pto_at = 0;
		w.now = p->t3_at;
		cr_expect(ddps_sent_timer(&w.s, p, w.now) & DDPS_SENT_EV_T3);
		cr_expect_eq(p->frto, is[k].cut, "%u", k);
		cr_expect_eq(p->cc.ssthresh != DDPS_CC_NO_LIMIT, is[k].cut, "%u", k);
		cr_expect_eq(p->cc.cwnd, p->cc.smss);
	}
}

/* A look whether the path is back: something is resent, and nothing counted. */
Test(sctp_ends, a_look_after_silence)
{
	make_sctp_ends_packet(true);
	p->pto_at = 0;
	p->nudge_at = w.now + 5;
	p->silent_at = w.now;
	cr_expect_eq(ddps_sent_timer(&w.s, p, w.now + 4), 0);
	cr_expect_eq(ddps_sent_timer(&w.s, p, w.now + 5), DDPS_SENT_EV_SEND);
	cr_expect_eq(w.s.nlost, 1);
	cr_expect(p->force);
	cr_expect_eq(p->t3s, 0);
}

/* A SACK that may have had no room for more says nothing of what is above its last block. */
Test(sctp_ends, what_a_full_sack_says)
{
	static struct ddps_sent_gap gap[101];

	for (unsigned n = 99; n <= 101; n++, restart_ends_rig()) {
		struct ddps_sent_sack k = { .a_rwnd = 1000000, .gaps = gap, .ngaps = n };
		struct ddps_sent_news news;

		for (uint16_t i = 0; i < n; i++)
			gap[i].start = gap[i].end = (uint16_t)(2 * i + 2);
		for (unsigned i = 0; i < 210; i++)
			make_sctp_ends_packet(true);
		cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
		cr_expect_eq(w.s.cut_short, n >= 100, "%u", n);
		cr_expect_eq(w.s.told, 2 * n);
		cr_expect_eq(news.acked, n);
	}
}

Test(sctp_ends, what_was_not_reported_is_not_lost)
{
	static const struct {
		bool cut;
		uint8_t nsent;
		uint32_t told;
		bool lost;
	} is[] = { { true, 1, 0, false }, { true, 1, 1, true },	 { true, 2, 0, true },
		   { false, 1, 0, true }, { false, 2, 0, true }, { true, 3, 1, true } };

	for (unsigned k = 0; k < sizeof is / sizeof *is; k++, restart_ends_rig()) {
		make_sctp_ends_packet(true);
		make_sctp_ends_packet(true);
		w.s.cut_short = is[k].cut;
		w.s.told = is[k].told;
		ddps_sent_slot(&w.s, 1)->nsent = is[k].nsent;
		p->rack_pn = 2;
		p->rack_rtt = MS;
		ddps_sent_detect(&w.s, p, w.now + 1000 * MS);
		cr_expect_eq(w.s.nlost, is[k].lost, "%u", k);
	}
}

/* Growth that stood still goes on where it was, once. */
Test(sctp_ends, growth_that_stood_still)
{
	struct ddps_cc_ack a = { .now = 100 * MS, .acked = 1000, .srtt = 10 * MS };
	struct ddps_cc *cc = &p->cc;
	uint64_t epoch;

	cc->phase = DDPS_CC_AVOID;
	cc->limited = true;
	cc->ssthresh = 20000;
	ddps_cc_grow(cc, &a);
	epoch = cc->epoch;
	cr_assert_eq(epoch, 100 * MS);
	a.queued = true;
	a.now = 200 * MS;
	ddps_cc_grow(cc, &a);
	cr_expect_eq(cc->stopped, 200 * MS);
	a.now = 300 * MS;
	ddps_cc_grow(cc, &a);
	cr_expect_eq(cc->stopped, 200 * MS);
	a.queued = false;
	a.now = 350 * MS;
	ddps_cc_grow(cc, &a);
	cr_expect_eq(cc->stopped, 0);
	cr_expect_eq(cc->epoch, epoch + 150 * MS);
	a.now = 400 * MS;
	ddps_cc_grow(cc, &a);
	cr_expect_eq(cc->epoch, epoch + 150 * MS);
}
