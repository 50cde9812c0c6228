/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's times, losses and memory, one by one: at their bounds, and given back. */
#include "sctp_sent_fixture.h"
#include "unit/mem_fixture.h"

#define SECOND (1000 * MS)

static void send_sctp_given_burst(struct world *w, unsigned n)
{
	w->p[0].cc.cwnd = 1 << 20;
	for (unsigned i = 0; i < n; i++) {
		ddps_sent_begin(&w->s, &w->p[0], w->now);
		cr_assert_eq(ddps_sent_add_new(&w->s, 1016, 1000,
					       (void *)((uintptr_t)w->s.next + 7)),
			     0);
		ddps_sent_end(&w->s, 1056, i + 1 < n);
	}
}

/* ---- times ---- */

/* While nothing is heard it is looked again each 2 s, after 10 s each 5 s, after a minute not. */
Test(sctp_given, how_often_silence_is_looked_into)
{
	static const struct {
		uint64_t silent, wait;
	} row[] = { { 0, 2 * SECOND },
		    { 10 * SECOND - 1, 2 * SECOND },
		    { 10 * SECOND, 5 * SECOND },
		    { 60 * SECOND - 1, 5 * SECOND },
		    { 60 * SECOND, 0 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct world w;
		struct ddps_sent_path *p = &w.p[0];

		sent_begin(&w, 1, 1, 1 << 20);
		w.now = 100 * SECOND;
		send_sctp_given_burst(&w, 1);
		p->reo_at = p->pto_at = p->t3_at = 0;
		p->silent_at = w.now - row[i].silent;
		p->nudge_at = w.now;
		cr_expect_eq(ddps_sent_timer(&w.s, p, w.now), DDPS_SENT_EV_SEND);
		cr_expect_eq(p->nudge_at, row[i].wait ? w.now + row[i].wait : 0, "%zu", i);
		sent_end(&w);
	}
}

/* Of two that run the earlier one; 0 does not run. */
Test(sctp_given, which_timer_is_next)
{
	static const struct {
		uint64_t a, b, next;
	} row[] = { { 5, 6, 5 }, { 6, 5, 5 }, { 1, 5, 1 }, { 5, 1, 1 },
		    { 5, 5, 5 }, { 0, 5, 5 }, { 5, 0, 5 }, { 0, 0, DDPS_SENT_NEVER } };
	struct world w;
	struct ddps_sent_path *p = &w.p[0];

	sent_begin(&w, 1, 1, 1 << 20);
	send_sctp_given_burst(&w, 1);
	p->pace_at = 0;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		p->t3_at = p->nudge_at = 0;
		p->reo_at = row[i].a;
		p->pto_at = row[i].b;
		cr_expect_eq(ddps_sent_deadline(&w.s, p), row[i].next, "%zu", i);
		p->reo_at = p->pto_at = 0;
		p->t3_at = row[i].a;
		p->nudge_at = row[i].b;
		cr_expect_eq(ddps_sent_deadline(&w.s, p), row[i].next, "%zu", i);
	}
	sent_end(&w);
}

/* 9260-6.3.1-d2: RTTVAR is a quarter of the grain at least, and what it is beyond that. */
Test(sctp_given, the_least_rttvar, .description = "9260-6.3.1-d2")
{
	static const uint64_t row[][2] = { { 60000, 32000 }, { 72000, 36000 }, { 200000, 100000 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct world w;

		sent_begin(&w, 1, 1, 1 << 20);
		ddps_sent_sample(&w.s, &w.p[0], row[i][0]);
		cr_expect_eq(w.p[0].rttvar, row[i][1], "%zu", i);
		sent_end(&w);
	}
}

/* When reordering ends is looked at no earlier than half a grain from now. */
Test(sctp_given, when_reordering_ends)
{
	struct world w;
	struct ddps_sent_path *p = &w.p[0];
	uint64_t window;

	sent_begin(&w, 1, 1, 1 << 20);
	send_sctp_given_burst(&w, 2);
	p->rack_pn = p->next_pn;
	p->rack_rtt = 50 * MS;
	ddps_sent_detect(&w.s, p, w.now);
	cr_assert_gt(p->reo_at, w.now);
	window = p->reo_at - w.now - p->rack_rtt;
	w.now += 10 * MS;
	p->rack_rtt = 10 * MS + 100000 - window;
	ddps_sent_detect(&w.s, p, w.now);
	cr_expect_eq(p->reo_at, w.now + 100000);
	p->rack_rtt = 10 * MS + 50000 - window;
	ddps_sent_detect(&w.s, p, w.now);
	cr_expect_eq(p->reo_at, w.now + 64000);
	sent_end(&w);
}

/* ---- lost, and not lost ---- */

/* What T3 called lost is on its way; what was lost otherwise is not. */
Test(sctp_given, a_timeout_that_was_too_early)
{
	struct world w;
	struct ddps_sent_path *p = &w.p[0];
	struct ddps_sent_slot *c;
	uint64_t cwnd;

	sent_begin(&w, 1, 1, 1 << 20);
	send_sctp_given_burst(&w, 2);
	cwnd = p->cc.cwnd;
	ddps_cc_timeout(&p->cc, true);
	cr_assert_lt(p->cc.cwnd, cwnd);
	for (uint32_t t = 1; t <= 2; t++) {
		c = ddps_sent_slot(&w.s, t);
		c->episode = 5;
		ddps_sent_mark(&w.s, t);
		cr_expect_eq(c->episode, 0);
	}
	c = ddps_sent_slot(&w.s, 1);
	c->flags |= SLOT_T3 | SLOT_PKT;
	c->episode = 5;
	p->t3_at = 0;
	ddps_sent_false_t3(&w.s, p, w.now);
	cr_expect_eq(p->cc.cwnd, cwnd);
	cr_expect_eq(w.s.nlost, 1);
	cr_expect_eq(w.s.nflight, 1);
	cr_expect_eq(c->state, SLOT_FLIGHT);
	cr_expect_eq(c->flags & (SLOT_T3 | SLOT_PKT | SLOT_VOID), SLOT_VOID);
	cr_expect_eq(c->episode, 0);
	cr_expect_gt(p->t3_at, w.now);
	sent_end(&w);
}

/* One chunk at each of these times, and the timer of T3 at @at: how many are lost by it. */
static uint32_t lost_by_t3(const uint64_t *sent, unsigned n, uint64_t at)
{
	struct world w;
	struct ddps_sent_path *p = &w.p[0];
	uint8_t episode;
	uint32_t lost;

	sent_begin(&w, 1, 1, 1 << 20);
	for (unsigned i = 0; i < n; i++) {
		w.now = sent[i];
		send_sctp_given_burst(&w, 1);
	}
	p->nudge_at = 0;
	p->reo_at = p->pto_at = at + 1;
	p->t3_at = at;
	p->probe = p->tlp_out = true;
	p->srtt = p->rack_rtt = 20 * MS;
	p->min_rtt = 8 * MS;
	p->recovery = true;
	p->reord_seen = true;
	episode = p->episode;
	cr_expect_eq(ddps_sent_timer(&w.s, p, at),
		     DDPS_SENT_EV_T3 | DDPS_SENT_EV_LOST | DDPS_SENT_EV_SEND);
	cr_expect_neq(p->episode, episode);
	cr_expect_eq(p->epi_pn, p->next_pn);
	cr_expect_not(p->recovery || p->probe || p->tlp_out);
	cr_expect(!p->reo_at && !p->pto_at && p->t3_at > at);
	lost = w.s.nlost;
	sent_end(&w);
	return lost;
}

/* What would have been acknowledged by now: sent an RTT ago, and a quarter of the least one. */
Test(sctp_given, what_a_timeout_takes_for_lost)
{
	const uint64_t t = 1000 * MS, sent[] = { t, t + 10 * MS, t + 10 * MS + 1 };

	cr_expect_eq(lost_by_t3(sent, 3, t + 10 * MS + 22 * MS), 2);
	cr_expect_eq(lost_by_t3(sent, 3, t + 10 * MS + 22 * MS - 1), 1);
	cr_expect_eq(lost_by_t3(sent, 3, t + 10 * MS + 22 * MS + 1), 3);
}

/* Two timers together: reordering shows nothing, and the tail is probed; but there is one probe. */
Test(sctp_given, two_timers_together)
{
	struct world w;
	struct ddps_sent_path *p = &w.p[0];

	sent_begin(&w, 1, 1, 1 << 20);
	send_sctp_given_burst(&w, 2);
	for (unsigned i = 0; i < 2; i++) {
		p->tlp_out = i;
		p->force = p->probe = false;
		p->reo_at = p->pto_at = w.now;
		cr_expect_eq(ddps_sent_timer(&w.s, p, w.now), i ? 0 : DDPS_SENT_EV_SEND);
		cr_expect_eq(p->probe, !i);
	}
	sent_end(&w);
}

/* RACK: what was sent before something that has arrived, and should have, too. */
Test(sctp_given, what_is_lost_is_counted)
{
	uint64_t ssthresh[2];

	for (unsigned i = 0; i < 2; i++) {
		struct world w;
		struct ddps_sent_path *p = &w.p[0];

		sent_begin(&w, 1, 1, 1 << 20);
		send_sctp_given_burst(&w, 5);
		p->rack_pn = 3; /* the third packet is not older than that */
		p->rack_rtt = MS;
		w.now += 50 * MS;
		p->reo_at = w.now;
		p->pto_at = p->t3_at = 0;
		p->got.outstanding = i ? 1 << 30 : 0; /* of a SACK before */
		cr_expect_eq(ddps_sent_timer(&w.s, p, w.now),
			     DDPS_SENT_EV_LOST | DDPS_SENT_EV_SEND);
		cr_expect_eq(w.s.nlost, 2);
		cr_expect_eq(p->lost, 2);
		ssthresh[i] = p->cc.ssthresh;
		sent_end(&w);
	}
	cr_expect_eq(ssthresh[0], ssthresh[1]);
}

/* The peer has no room and says so: no error, once for each time it says so. */
Test(sctp_given, silence_of_a_peer_without_room, .description = "9260-6.1-5")
{
	struct world w;
	struct ddps_sent_path *p = &w.p[0];

	sent_begin(&w, 1, 1, 1 << 20);
	send_sctp_given_burst(&w, 1);
	w.s.a_rwnd = 0;
	w.s.zero_sacked = true;
	for (unsigned i = 0; i < 2; i++) {
		p->reo_at = p->pto_at = 0;
		p->t3_at = w.now;
		cr_expect_eq(ddps_sent_timer(&w.s, p, w.now) & DDPS_SENT_EV_T3,
			     i ? DDPS_SENT_EV_T3 : 0);
		cr_assert_eq(w.s.nlost, 1);
		ddps_sent_unlost(&w.s, 1);
		ddps_sent_requeue(&w.s, 1, w.now);
	}
	sent_end(&w);
}

/* ... and leaves as soon as it has, before any T3. */
Test(sctp_given, what_a_peer_without_room_dropped)
{
	static const uint32_t room[] = { 0, 1999, 2000 };

	for (unsigned i = 0; i < 3; i++) {
		struct world w;
		struct ddps_sent_sack k = { .a_rwnd = room[i] };
		struct ddps_sent_news news;

		sent_begin(&w, 1, 1, 1 << 20);
		send_sctp_given_burst(&w, 2);
		cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
		k.a_rwnd = 1 << 20;
		cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
		cr_expect_eq(w.s.nlost, i < 2, "the first of them");
		cr_expect_eq(w.p[0].force, i < 2);
		sent_end(&w);
	}
}

/* What the peer had no room for is lost when it has some again: that says nothing of the path. */
Test(sctp_given, losses_of_a_peer_without_room)
{
	static const uint32_t room[] = { 0, 1999, 1 << 20 };

	for (unsigned i = 0; i < 3; i++) {
		struct world w;
		struct ddps_sent_path *p = &w.p[0];
		struct ddps_sent_sack k = { .a_rwnd = room[i] };
		struct ddps_sent_news news;

		sent_begin(&w, 1, 1, 1 << 20);
		send_sctp_given_burst(&w, 2); /* the first leaves immediately */
		p->pmtu.size = p->pmtu.lim.max;
		ddps_sent_slot(&w.s, 2)->packet = p->pmtu.size;
		cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
		k.a_rwnd = 1 << 20;
		cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
		p->reo_at = p->pto_at = 0;
		p->t3_at = w.now;
		cr_expect(ddps_sent_timer(&w.s, p, w.now) & DDPS_SENT_EV_T3);
		cr_expect_eq(p->pmtu.holes, i < 2 ? 0 : 2, "%u", i);
		sent_end(&w);
	}
}

/* All of what an episode took for lost has arrived: the window is what it was. */
Test(sctp_given, losses_that_were_none)
{
	struct world w;
	struct ddps_sent_path *p = &w.p[0];
	uint64_t cwnd;

	sent_begin(&w, 1, 1, 1 << 20);
	send_sctp_given_burst(&w, 2);
	cwnd = p->cc.cwnd;
	ddps_cc_timeout(&p->cc, true);
	p->episode = p->undo_from = 5;
	p->undo_pending = 2;
	ddps_sent_false_loss(p, 4);
	ddps_sent_false_loss(p, 5);
	cr_expect_lt(p->cc.cwnd, cwnd);
	cr_expect_eq(p->undone, 0);
	ddps_sent_false_loss(p, 5);
	cr_expect_eq(p->cc.cwnd, cwnd);
	cr_expect_eq(p->undone, 1);
	sent_end(&w);
}

/* A path has become narrower: what is larger is lost, what just passes is not. */
Test(sctp_given, what_is_too_large_for_a_hole)
{
	for (uint16_t size = 1055; size <= 1056; size++) {
		struct world w;

		sent_begin(&w, 1, 1, 1 << 20);
		send_sctp_given_burst(&w, 2);
		w.p[0].pmtu.size = size;
		w.p[0].probe = true;
		ddps_sent_mtu_changed(&w.s, &w.p[0], DDPS_PMTU_HOLE);
		cr_expect_eq(w.s.nlost, size < 1056 ? 2 : 0);
		cr_expect_not(w.p[0].probe);
		sent_end(&w);
	}
}

/* Nothing waits, and nothing is lost: there is no room to ask for. */
Test(sctp_given, nothing_may_leave)
{
	uint64_t room = 7;
	struct world w;

	sent_begin(&w, 1, 1, 1 << 20);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room), DDPS_SENT_NOTHING);
	cr_expect_eq(room, 0);
	w.p[0].force = true; /* not as a probe */
	send_sctp_given_burst(&w, 1);
	cr_expect_not(w.p[0].tlp_out);
	cr_expect_eq(w.p[0].probes, 0);
	sent_end(&w);
}

/* ---- memory ---- */

/* Acknowledged is every third of @n, and then nothing more. */
static void with_gaps(struct world *w, uint32_t n)
{
	struct ddps_sent_gap gap[100];
	struct ddps_sent_sack k = { .cum = 0, .a_rwnd = 1 << 20, .gaps = gap };
	struct ddps_sent_news news;

	for (uint16_t t = 3; t <= n; t += 3)
		gap[k.ngaps++] = (struct ddps_sent_gap){ t, t };
	for (uint32_t t = 3; t <= n; t += 3)
		w->sacked[t - w->first] = 1;
	w->now += 20 * MS;
	cr_assert_eq(ddps_sent_sack(&w->s, &k, w->now, &news), DDPS_SENT_TAKEN);
	sent_check(w);
}

static long measure_given_life(void)
{
	long before = mem_live();
	struct world w;

	sent_begin(&w, 1, 1, 1 << 30);
	send_sctp_given_burst(&w, 250);
	for (uint32_t n = 30; n <= 240; n *= 2)
		with_gaps(&w, n);
	cr_expect_eq(w.s.nruns, 80);
	sent_end(&w);
	return mem_live() - before;
}

Test(sctp_given, a_sender_leaves_nothing)
{
	measure_given_life(); /* but for what is kept for the next one */
	long n = measure_given_life();

	cr_expect_eq(n, 0, "%ld", n);
}

/* What was given back while nothing was under way is there again when it is needed. */
Test(sctp_given, a_sender_that_rests)
{
	struct ddps_sent_sack k = { .cum = 60, .a_rwnd = 1 << 20 };
	struct ddps_sent_news news;
	struct world w;

	sent_begin(&w, 1, 1, 1 << 30);
	send_sctp_given_burst(&w, 60);
	with_gaps(&w, 60);
	w.now += 20 * MS;
	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	ddps_sent_rest(&w.s);
	cr_expect_null(w.s.runs);
	cr_expect_eq(w.s.runs_size, 0);
	cr_expect_eq(w.s.nruns, 0);
	sent_end(&w);
}

static void note_sctp_given_acked(void *user, uint32_t tsn, void *chunk)
{
	(void)user, (void)tsn, (void)chunk;
}

/* As many as 256 are kept, however many there were. */
Test(sctp_given, how_many_are_kept_for_the_next)
{
	static struct ddps_sent_spares spares;
	static const struct ddps_sent_conf conf = {
		.spares = &spares, .rto_initial = SECOND, .rto_max = 60 * SECOND, .grain = 128000
	};
	static struct ddps_sent s[260];
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	long before = mem_live();

	for (unsigned i = 0; i < 260; i++) {
		struct ddps_sent_path p;

		ddps_sent_init(&s[i], &conf, 1, 1 << 20, note_sctp_given_acked, NULL);
		ddps_sent_path_init(&s[i], &p, 0, &lim, 40);
		ddps_sent_begin(&s[i], &p, SECOND);
		cr_assert_eq(ddps_sent_add_new(&s[i], 1016, 1000, NULL), 0);
		ddps_sent_end(&s[i], 1056, false);
	}
	for (unsigned i = 0; i < 260; i++)
		ddps_sent_fini(&s[i]);
	cr_expect_eq(spares.n, 256);
	ddps_sent_spares_free(&spares);
	cr_expect_eq(spares.n, 0);
	cr_expect_eq(mem_live(), before);
}
