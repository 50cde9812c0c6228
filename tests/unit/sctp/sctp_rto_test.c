/* SPDX-License-Identifier: BSD-2-Clause */
/* RTT samples, RTO, T3 and the window of the peer: one rule at a time. */
#include "sctp_sent_fixture.h"
#include <ddpsess/err.h>

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

/* One packet of one chunk.  Its TSN. */
static uint32_t send_sctp_rto(size_t len)
{
	uint32_t tsn = w.s.next;

	ddps_sent_begin(&w.s, &w.p[0], w.now);
	cr_assert_eq(ddps_sent_add_new(&w.s, (uint16_t)(16 + ((len + 3) & ~3u)), len,
				       (void *)((uintptr_t)tsn + 7)),
		     0);
	ddps_sent_end(&w.s, (uint32_t)len + 56, true);
	return tsn;
}

static void ack_sctp_rto(uint32_t cum)
{
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = 1 << 20 };
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
}

/* Sends once more whatever is lost. */
static unsigned resend_sctp_rto(void)
{
	struct ddps_sent_chunk c;
	unsigned n = 0;

	ddps_sent_begin(&w.s, &w.p[0], w.now);
	while (ddps_sent_next_old(&w.s, &c)) {
		ddps_sent_add_old(&w.s, c.tsn);
		n++;
	}
	ddps_sent_end(&w.s, 1056, false);
	return n;
}

Test(sctp_rto, follows_the_samples, .init = setup, .fini = fini,
     .description = "9260-6.3.1-d1 9260-6.3.1-d2 9260-6.3.1-6 9260-6.3.1-1")
{
	struct ddps_sent_path *p = &w.p[0];

	cr_expect_eq(ddps_sent_rto(&w.s, p), w.s.conf->rto_initial);
	send_sctp_rto(100);
	w.now += 800 * MS;
	ack_sctp_rto(w.s.next - 1);
	cr_expect_eq(p->srtt, 800 * MS);
	cr_expect_eq(p->rttvar, 400 * MS);
	cr_expect_eq(ddps_sent_rto(&w.s, p), 2400 * MS);
	send_sctp_rto(100);
	w.now += 400 * MS;
	ack_sctp_rto(w.s.next - 1);
	cr_expect_eq(p->srtt, 750 * MS);   /* 7/8 and 1/8 */
	cr_expect_eq(p->rttvar, 400 * MS); /* 3/4 of 400 and 1/4 of |800 - 400| */
	for (unsigned i = 0; i < 200; i++) {
		send_sctp_rto(100);
		w.now += MS;
		ack_sctp_rto(w.s.next - 1);
	}
	cr_expect_gt(w.s.conf->grain, 0);
	cr_expect_eq(p->rttvar, w.s.conf->grain / 4);	 /* no less than what is measured with */
	cr_expect_geq(ddps_sent_rto(&w.s, p), 200 * MS); /* the floor */
	ddps_sent_rtt(&w.s, p, w.s.conf->rto_max, w.now);
	cr_expect_eq(ddps_sent_rto(&w.s, p), w.s.conf->rto_max); /* the ceiling */
}

/* Karn: of what was sent twice nobody knows which one is acknowledged. */
Test(sctp_rto, resent_chunks_give_no_sample, .init = setup, .fini = fini,
     .description = "9260-6.3.1-3 9260-6.3.1-4")
{
	struct ddps_sent_path *p = &w.p[0];
	uint64_t srtt;

	ddps_sent_rtt(&w.s, p, 20 * MS, w.now);
	srtt = p->srtt;
	send_sctp_rto(100);
	w.now = ddps_sent_deadline(&w.s, p);
	ddps_sent_timer(&w.s, p, w.now); /* a probe of the tail, or T3 */
	if (!w.s.nlost) {
		w.now = p->t3_at;
		ddps_sent_timer(&w.s, p, w.now);
	}
	cr_assert_eq(resend_sctp_rto(), 1);
	w.now += 700 * MS;
	ack_sctp_rto(w.s.next - 1);
	cr_expect_eq(p->srtt, srtt);
}

/* Two packets acknowledged by one SACK, one round trip: one sample. */
Test(sctp_rto, one_sample_a_round_trip, .init = setup, .fini = fini, .description = "9260-6.3.1-2")
{
	struct ddps_sent_path *p = &w.p[0];
	uint64_t srtt, var;

	ddps_sent_rtt(&w.s, p, 20 * MS, w.now);
	for (unsigned i = 0; i < 10; i++)
		send_sctp_rto(100);
	w.now += 20 * MS;
	ack_sctp_rto(w.s.cum + 1);
	srtt = p->srtt;
	var = p->rttvar;
	for (unsigned i = 0; i < 9; i++) {
		w.now += 50 * MS; /* would change it much */
		ack_sctp_rto(w.s.cum + 1);
	}
	cr_expect_eq(p->srtt, srtt);
	cr_expect_eq(p->rttvar, var);
}

Test(sctp_rto, t3_runs_from_the_oldest, .init = setup, .fini = fini,
     .description = "9260-6.1-20 9260-6.1-21 9260-6.3.2-d1 9260-6.3.3-2")
{
	struct ddps_sent_path *p = &w.p[0];
	uint64_t t3, rto;
	uint32_t first;
	unsigned ev;

	ddps_sent_rtt(&w.s, p, 2000 * MS, w.now);
	rto = ddps_sent_rto(&w.s, p);
	first = send_sctp_rto(100);
	t3 = p->t3_at;
	cr_expect_eq(t3, w.now + rto);
	w.now += 100 * MS;
	send_sctp_rto(100);
	cr_expect_eq(p->t3_at, t3); /* it runs already */
	w.now += 100 * MS;
	ack_sctp_rto(first); /* the oldest is there: anew */
	cr_expect_eq(p->t3_at, w.now + ddps_sent_rto(&w.s, p));
	ack_sctp_rto(w.s.next - 1);
	cr_expect_eq(ddps_sent_deadline(&w.s, p), DDPS_SENT_NEVER); /* nothing is out */
	for (unsigned i = 0; i < 5; i++)
		send_sctp_rto(100);
	p->pto_at = 0; /* without a probe of the tail */
	w.now = p->t3_at;
	rto = ddps_sent_rto(&w.s, p);
	ev = ddps_sent_timer(&w.s, p, w.now);
	cr_expect(ev & DDPS_SENT_EV_T3);
	cr_expect_eq(w.s.nlost, 5);
	cr_expect_eq(p->t3_at, w.now + 2 * rto);
}

/* The peer's window is what it said, less what is out. */
Test(sctp_rto, the_window_is_tracked_between_sacks, .fini = fini,
     .description = "9260-6.2.1-1 9260-6.2.1-d2 9260-6.1-8 9260-6.1-17")
{
	uint64_t room;

	sent_begin(&w, 1, 1, 3000);
	w.p[0].cc.cwnd = 1 << 20;
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NEW);
	send_sctp_rto(1000);
	send_sctp_rto(1000);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NEW);
	/* no chunk is cut to fit the rest of a window */
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1001, &room), DDPS_SENT_NOTHING);
	cr_expect_eq(ddps_sent_add_new(&w.s, 1020, 1001, NULL), DDPS_E_AGAIN);
	cr_expect_eq(w.s.out_len, 2000);
}

/* What is counted is the chunk with its header and padding, once. */
Test(sctp_rto, flight_is_of_padded_chunks, .init = setup, .fini = fini,
     .description = "9260-7.2-4 9260-1.3-d1")
{
	struct ddps_sent_path *p = &w.p[0];

	send_sctp_rto(5);
	cr_expect_eq(p->flight, 24);
	w.now = p->t3_at ? p->t3_at : ddps_sent_deadline(&w.s, p);
	while (!w.s.nlost) {
		w.now = ddps_sent_deadline(&w.s, p) > w.now ? ddps_sent_deadline(&w.s, p) : w.now;
		ddps_sent_timer(&w.s, p, w.now);
	}
	cr_expect_eq(p->flight, 0); /* it waits to be sent again */
	cr_expect_eq(resend_sctp_rto(), 1);
	cr_expect_eq(p->flight, 24);
	ack_sctp_rto(w.s.next - 1);
	cr_expect_eq(p->flight, 0);
}

/* Each path has a window of its own, and that grows which carried the data. */
Test(sctp_rto, paths_have_their_own_windows, .fini = fini,
     .description = "9260-7.2-3 9260-7.2.1-9 9260-7.1-d1")
{
	uint64_t first, second;

	sent_begin(&w, 1, 1, 1 << 20);
	first = w.p[0].cc.cwnd;
	second = w.p[1].cc.cwnd;
	cr_expect_eq(w.p[1].cc.phase, DDPS_CC_SLOW);
	for (unsigned i = 0; i < 10; i++)
		send_sctp_rto(1400);
	w.now += 20 * MS;
	ack_sctp_rto(w.s.next - 1);
	cr_expect_gt(w.p[0].cc.cwnd, first);
	cr_expect_eq(w.p[1].cc.cwnd, second);
	for (unsigned i = 0; i < 4; i++)
		send_sctp_rto(1400);
	w.p[0].pto_at = 0;
	w.now = w.p[0].t3_at;
	ddps_sent_timer(&w.s, &w.p[0], w.now);
	cr_expect_leq(w.p[0].cc.cwnd, first);
	cr_expect_eq(w.p[1].cc.cwnd, second);
}

/* The acknowledgement of what was out when it began ends recovery; a second loss before that is no
 * second cut. */
Test(sctp_rto, recovery_ends_where_it_was_to, .init = setup, .fini = fini,
     .description = "9260-6.2.1-d4 9260-7.2.4-d2 9260-7.2.4-d3 9260-7.2.4-6 9260-7.2.4-7")
{
	const struct ddps_sent_gap g[] = { { 2, 4 } }, h[] = { { 2, 4 }, { 6, 8 } };
	struct ddps_sent_sack k = { .a_rwnd = 1 << 20, .gaps = g, .ngaps = 1 };
	struct ddps_sent_path *p = &w.p[0];
	struct ddps_sent_news news;
	uint64_t ssthresh;

	ddps_sent_rtt(&w.s, p, 20 * MS, w.now);
	for (unsigned i = 0; i < 10; i++)
		send_sctp_rto(1000);
	w.now += 20 * MS;
	k.cum = w.first - 1;
	ddps_sent_sack(&w.s, &k, w.now, &news);
	cr_assert(p->recovery);
	ssthresh = p->cc.ssthresh;
	k.gaps = h;
	k.ngaps = 2;
	ddps_sent_sack(&w.s, &k, w.now + MS, &news);
	cr_expect_eq(w.s.nlost, 2);
	cr_expect_eq(p->cc.ssthresh, ssthresh);
	cr_expect_eq(resend_sctp_rto(), 2);
	cr_expect_eq(p->t3_at, w.now + ddps_sent_rto(&w.s, p)); /* the oldest is among them */
	w.now += 20 * MS;
	ack_sctp_rto(w.first + 8);
	cr_expect(p->recovery); /* the last one is still out */
	ack_sctp_rto(w.s.next - 1);
	cr_expect_not(p->recovery);
	cr_expect_eq(p->cc.cwnd, ssthresh);
}

static void ack_gap(uint32_t cum, uint32_t tsn)
{
	const struct ddps_sent_gap g = { (uint16_t)(tsn - cum), (uint16_t)(tsn - cum) };
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = 1 << 20, .gaps = &g, .ngaps = 1 };
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
}

/* @len: of the message that waits to be sent, and so is the probe of the tail. */
static void wait_for_t3(size_t len)
{
	uint64_t room;

	while (!w.s.nlost) {
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		cr_assert_neq(w.now, DDPS_SENT_NEVER);
		ddps_sent_timer(&w.s, &w.p[0], w.now);
		if (w.p[0].probe && ddps_sent_may(&w.s, &w.p[0], w.now, len, &room)) {
			if (len == SIZE_MAX)
				resend_sctp_rto();
			else
				send_sctp_rto(len);
		}
	}
}

static void resend_one(void)
{
	struct ddps_sent_chunk c;

	ddps_sent_begin(&w.s, &w.p[0], w.now);
	cr_assert(ddps_sent_next_old(&w.s, &c));
	ddps_sent_add_old(&w.s, c.tsn);
	ddps_sent_end(&w.s, 156, true);
}

/*
 * Of ten the last has arrived, a probe of the tail, and its SACK was lost.  What T3 resends is answered soon, and the
 * SACK reports the last one, too.  Its age is no RTT: what is answered sooner than that would be
 * thought never to have been lost.
 */
Test(sctp_rto, a_lost_sack_makes_no_rtt, .init = setup, .fini = fini)
{
	struct ddps_sent_path *p = &w.p[0];
	uint32_t first = w.s.next;
	uint64_t room;

	for (unsigned i = 0; i < 9; i++)
		send_sctp_rto(100);
	wait_for_t3(100);
	cr_assert_eq(w.s.next, first + 10);
	resend_one();
	w.now += MS;
	ack_gap(first, first + 9);
	cr_expect_eq(p->srtt, 0);
	cr_expect_eq(p->min_rtt, 0);
	for (uint32_t left = 8; left; left = w.s.nlost) {
		cr_assert_eq(w.s.nlost, left, "lost they are");
		cr_assert_eq(ddps_sent_may(&w.s, p, w.now, SIZE_MAX, &room), DDPS_SENT_OLD);
		resend_one();
		w.now += MS;
		ack_gap(w.s.cum + 1, first + 9);
	}
	cr_expect_eq(p->t3s, 1);
}

/* The path has become shorter: an early answer proves that nothing was lost, or so it seems.  When
 * T3 finds them missing again, that is believed. */
Test(sctp_rto, a_t3_is_called_off_once, .init = setup, .fini = fini)
{
	struct ddps_sent_path *p = &w.p[0];
	uint64_t room;

	ddps_sent_rtt(&w.s, p, 100 * MS, w.now);
	for (unsigned i = 0; i < 10; i++)
		send_sctp_rto(100);
	for (unsigned i = 0; i < 2; i++) {
		wait_for_t3(SIZE_MAX);
		resend_one();
		w.now += MS;
		ack_sctp_rto(w.s.cum + 1);
	}
	for (uint32_t left = 8; left; left = w.s.nlost) {
		cr_assert_eq(w.s.nlost, left);
		cr_assert_eq(ddps_sent_may(&w.s, p, w.now, SIZE_MAX, &room), DDPS_SENT_OLD);
		resend_one();
		w.now += MS;
		ack_sctp_rto(w.s.cum + 1);
	}
	cr_expect_eq(p->t3s, 2);
}

/* The window after a thousand packets that are acknowledged together, @rtt later. */
static uint64_t window_after(bool within_host, uint64_t rtt)
{
	struct ddps_sent_path *p = &w.p[0];

	p->within_host = within_host;
	ddps_sent_rtt(&w.s, p, MS / 50, w.now);
	p->cc.cwnd = 4u << 20;
	p->cc.phase = DDPS_CC_AVOID;
	for (unsigned i = 0; i < 1000; i++)
		send_sctp_rto(1000);
	w.now += rtt;
	ack_sctp_rto(w.s.cum + 1000);
	return p->cc.cwnd;
}

/* What a window makes within a host is a queue in the receiver's socket, before what others send. */
Test(sctp_rto, a_queue_within_the_host_shrinks_the_window, .init = setup, .fini = fini)
{
	uint64_t cwnd = window_after(true, MS);

	cr_expect_lt(cwnd, 600u << 10);
	cr_expect_geq(cwnd, 256u << 10, "enough for any such path");
}

Test(sctp_rto, no_queue_no_smaller_window, .init = setup, .fini = fini)
{
	cr_expect_geq(window_after(true, MS / 5), 4u << 20);
}

/* Elsewhere others may have made it. */
Test(sctp_rto, a_queue_beyond_the_host_stops_growth_only, .init = setup, .fini = fini)
{
	cr_expect_eq(window_after(false, MS), 4u << 20);
}

/* What was under way on a path that is given up is not the other's. */
Test(sctp_rto, a_path_that_is_lost_is_at_rest, .init = setup, .fini = fini)
{
	struct ddps_sent_path *p = &w.p[0];

	send_sctp_rto(1000);
	send_sctp_rto(1000);
	p->recovery = p->force = p->probe = p->tlp_out = true;
	p->t3_at = p->pto_at = p->reo_at = w.now + MS;
	ddps_sent_path_lost(&w.s, p);
	cr_expect_not(p->recovery || p->force || p->probe || p->tlp_out);
	cr_expect_eq(p->t3_at | p->pto_at | p->reo_at, 0);
	cr_expect_eq(p->nflight, 0);
	cr_expect_eq(w.s.nlost, 2);
}

/* What is too large for a path that has become narrower is lost, and nothing else. */
Test(sctp_rto, what_does_not_fit_any_more_is_lost, .init = setup, .fini = fini)
{
	struct ddps_sent_path *p = &w.p[0];
	struct ddps_sent_chunk c;
	const uint16_t size = p->pmtu.size;
	uint32_t large;

	send_sctp_rto(100);
	large = send_sctp_rto(1000);
	send_sctp_rto(200);
	p->pmtu.size = 600;
	ddps_sent_mtu_changed(&w.s, p, DDPS_PMTU_SIZE);
	cr_expect_eq(w.s.nlost, 0, "it is no hole yet");
	ddps_sent_mtu_changed(&w.s, p, DDPS_PMTU_SIZE | DDPS_PMTU_HOLE);
	cr_expect_eq(w.s.nlost, 1);
	cr_expect_eq(p->nflight, 2);
	cr_expect(p->force);
	ddps_sent_begin(&w.s, p, w.now);
	cr_assert(ddps_sent_next_old(&w.s, &c));
	cr_expect_eq(c.tsn, large);
	p->pmtu.size = size;
}
