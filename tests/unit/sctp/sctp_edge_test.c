/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender at its bounds: counts that saturate, windows that close, what belongs to another path. */
#include "sctp_sent_fixture.h"
#include "unit/mem_fixture.h"
#include <ddpsess/err.h>

#define N(a) (sizeof(a) / sizeof *(a))

static struct world w;

static void begin_sctp_edge(uint32_t a_rwnd)
{
	sent_begin(&w, 1, 1, a_rwnd);
	w.p[0].cc.cwnd = w.p[1].cc.cwnd = 1 << 30;
}

static void fini(void)
{
	sent_end(&w);
}

TestSuite(sctp_edge, .fini = fini);

/* One packet of one chunk; as ddps_sent_add_new(). */
static int send_on_sctp_edge(unsigned path, size_t len)
{
	void *chunk = (void *)((uintptr_t)w.s.next + 7);
	int err;

	ddps_sent_begin(&w.s, &w.p[path], w.now);
	err = ddps_sent_add_new(&w.s, (uint16_t)(len + 16), len, chunk);
	ddps_sent_end(&w.s, (uint32_t)len + 56, true);
	return err;
}

static void send_sctp_edge(unsigned n)
{
	while (n--)
		cr_assert_eq(send_on_sctp_edge(0, 100), 0);
}

static void resend_sctp_edge(unsigned path)
{
	struct ddps_sent_chunk c;

	ddps_sent_begin(&w.s, &w.p[path], w.now);
	while (ddps_sent_next_old(&w.s, &c))
		ddps_sent_add_old(&w.s, c.tsn);
	ddps_sent_end(&w.s, 156, false);
}

static struct ddps_sent_news news;

static void send_sctp_edge_sack(uint32_t cum, uint32_t a_rwnd, const struct ddps_sent_gap *gaps,
				size_t ngaps)
{
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = a_rwnd, .gaps = gaps, .ngaps = ngaps };

	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
}

static void shutdown_of(uint32_t cum)
{
	struct ddps_sent_sack k = { .cum = cum, .shutdown = true };

	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
}

static int get_sctp_edge_state(uint32_t tsn)
{
	return ddps_sent_slot(&w.s, tsn)->state;
}

/* ---- the peer's window ---- */

Test(sctp_edge, a_closed_window_is_asked_ever_more_seldom, .description = "9260-6.1-6")
{
	begin_sctp_edge(0);
	for (unsigned n = 0; n < 12; n++) {
		uint64_t room, wait = w.p[0].rto << n, most = 60000 * MS;

		cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 100, &room), DDPS_SENT_NOTHING);
		cr_expect_eq(w.s.zero_at - w.now, wait < most ? wait : most, "%u", n);
		cr_expect_eq(ddps_sent_deadline(&w.s, &w.p[0]), w.s.zero_at);
		w.now = w.s.zero_at;
		cr_expect_eq(ddps_sent_timer(&w.s, &w.p[0], w.now), DDPS_SENT_EV_SEND);
		cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 100, &room), DDPS_SENT_NEW);
		cr_expect_eq(room, 1);
		send_sctp_edge(1);
		cr_expect(w.s.zero_out);
		cr_expect_eq(w.s.zero_n, n + 1);
		w.now += MS;
		send_sctp_edge_sack(w.s.next - 1, 0, NULL, 0);
		cr_expect_not(w.s.zero_out);
	}
	send_sctp_edge_sack(w.s.next - 1, 1000, NULL, 0);
	cr_expect_eq(w.s.zero_n, 0, "it is open");
}

/* What probes a window must be alone, and larger than the window. */
Test(sctp_edge, what_counts_as_the_probe_of_a_window)
{
	begin_sctp_edge(100);
	send_sctp_edge(1);
	w.s.zero_go = true; /* as the timer leaves it */
	cr_expect_eq(send_on_sctp_edge(0, 101), DDPS_E_AGAIN, "something is in flight");
	ddps_sent_path_lost(&w.s, &w.p[0]);
	cr_expect_eq(send_on_sctp_edge(0, 101), DDPS_E_AGAIN, "something is lost");
	resend_sctp_edge(0);
	send_sctp_edge_sack(1, 100, NULL, 0);
	cr_expect_not(w.s.zero_out);
	cr_expect_eq(send_on_sctp_edge(0, 101), 0);
	cr_expect(w.s.zero_out && w.s.zero_tsn == 2 && w.s.zero_n == 1);
	cr_expect_not(w.s.zero_go);
	send_sctp_edge_sack(2, 100, NULL, 0);
	w.s.zero_go = true;
	cr_expect_eq(send_on_sctp_edge(0, 100), 0); /* the window has room for it by now */
	cr_expect(!w.s.zero_out && !w.s.zero_go && !w.s.zero_n);
	cr_expect_eq(send_on_sctp_edge(0, 1), DDPS_E_AGAIN);
}

Test(sctp_edge, the_probe_of_a_window_is_one_chunk)
{
	begin_sctp_edge(1000);
	send_sctp_edge(3);
	w.s.zero_out = true;
	w.s.zero_tsn = 3;
	send_sctp_edge_sack(1, 0, NULL, 0);
	cr_expect(w.s.zero_out, "another one was acknowledged");
	send_sctp_edge_sack(3, 0, NULL, 0);
	cr_expect_not(w.s.zero_out);
}

/* What a SHUTDOWN acknowledges is taken by now, twice as much may be. */
Test(sctp_edge, the_window_that_a_shutdown_shows)
{
	static const struct {
		unsigned n;
		uint32_t before, after;
	} row[] = { { 1, 3000000000u, 3000000000u },
		    { 32700, 3000000000u, 32700 * 65516u * 2 },
		    { 32778, 3000000000u, 4294966896u },
		    { 32779, 3000000000u, UINT32_MAX } };

	for (unsigned i = 0; i < N(row); i++) {
		if (i)
			fini();
		begin_sctp_edge(row[i].before);
		for (unsigned k = 0; k < row[i].n; k++)
			cr_assert_eq(send_on_sctp_edge(0, 65516), 0);
		shutdown_of(row[i].n);
		cr_expect_eq(w.s.a_rwnd, row[i].after, "%u: %u", i, w.s.a_rwnd);
	}
}

/* ---- counts ---- */

/* The last of 65,535 asks for an answer: nothing more can leave before one comes. */
Test(sctp_edge, as_many_as_a_block_can_reach)
{
	unsigned asks = 0;
	bool last = false;
	uint64_t room;

	begin_sctp_edge(1 << 30);
	for (unsigned i = 0; i < DDPS_SENT_MAX; i++) {
		cr_assert_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 4, &room), DDPS_SENT_NEW);
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert_eq(ddps_sent_add_new(&w.s, 20, 4, (void *)((uintptr_t)w.s.next + 7)), 0);
		last = ddps_sent_end(&w.s, 60, true);
		asks += last;
	}
	cr_expect(last);
	cr_expect_eq(asks, 2, "and the first, since nothing was in flight: %u", asks);
	cr_expect_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 4, &room), DDPS_SENT_NOTHING);
	cr_expect_eq(send_on_sctp_edge(0, 4), DDPS_E_AGAIN);
	cr_expect_eq(w.s.mask, 65535);
	send_sctp_edge_sack(DDPS_SENT_MAX, 1 << 30, NULL, 0);
	cr_expect_eq(send_on_sctp_edge(0, 4), 0);
}

Test(sctp_edge, how_often_a_chunk_was_sent)
{
	begin_sctp_edge(1000);
	send_sctp_edge(1);
	for (unsigned i = 1; i < 300; i++) {
		cr_assert_eq(ddps_sent_slot(&w.s, 1)->nsent, i < 255 ? i : 255);
		ddps_sent_path_lost(&w.s, &w.p[0]);
		resend_sctp_edge(0);
	}
	cr_expect_eq(w.p[0].resent, 299);
	w.now += 10 * MS;
	send_sctp_edge_sack(1, 1000, NULL, 0);
	cr_expect_eq(w.p[0].srtt, 0, "what was resent is no sample");
}

Test(sctp_edge, the_largest_packet)
{
	static const uint32_t size[][2] = {
		{ 65534, 65534 }, { 65535, 65535 }, { 65536, 65535 }, { 70000, 65535 }
	};

	begin_sctp_edge(1000);
	for (uint32_t i = 0; i < N(size); i++) {
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert_eq(ddps_sent_add_new(&w.s, 116, 100, (void *)((uintptr_t)i + 8)), 0);
		ddps_sent_end(&w.s, size[i][0], true);
		cr_expect_eq(ddps_sent_slot(&w.s, i + 1)->packet, size[i][1]);
	}
}

Test(sctp_edge, t3_backs_off_sixteen_times)
{
	uint64_t room;

	begin_sctp_edge(1000);
	send_sctp_edge(1);
	for (unsigned i = 0; w.p[0].t3s < 20; i++) {
		cr_assert_lt(i, 1000);
		w.now = ddps_sent_deadline(&w.s, &w.p[0]);
		cr_assert_neq(w.now, DDPS_SENT_NEVER);
		ddps_sent_timer(&w.s, &w.p[0], w.now);
		while (ddps_sent_may(&w.s, &w.p[0], w.now, SIZE_MAX, &room) == DDPS_SENT_OLD)
			resend_sctp_edge(0);
		cr_expect_eq(w.p[0].backoff, w.p[0].t3s < 16 ? w.p[0].t3s : 16);
	}
	cr_expect_eq(ddps_sent_rto(&w.s, &w.p[0]), 60000 * MS);
}

/* ---- whose T3 ---- */

/* Of a chunk on each path, the first of which is the probe of a closed window. */
static void probe_and_other(unsigned path)
{
	begin_sctp_edge(1000);
	send_sctp_edge(1);
	w.s.zero_out = true;
	w.s.zero_tsn = 1;
	cr_assert_eq(send_on_sctp_edge(path, 100), 0);
	w.p[0].pto_at = w.p[1].pto_at = 0;
}

Test(sctp_edge, a_silent_window_is_no_congestion_but_a_silent_path_is)
{
	probe_and_other(0);
	w.now = w.p[0].t3_at;
	cr_expect(ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_SEND);
	cr_expect_eq(w.p[0].t3s, 0);
	cr_expect(get_sctp_edge_state(1) == SLOT_LOST && get_sctp_edge_state(2) == SLOT_FLIGHT);
	fini();

	probe_and_other(1); /* T3 of the other path */
	w.now = w.p[1].t3_at;
	cr_expect(ddps_sent_timer(&w.s, &w.p[1], w.now) & DDPS_SENT_EV_LOST);
	cr_expect_eq(w.p[1].t3s, 1);
	cr_expect(get_sctp_edge_state(1) == SLOT_FLIGHT && get_sctp_edge_state(2) == SLOT_LOST);
	fini();

	probe_and_other(0); /* the probe is not under way */
	ddps_sent_mark(&w.s, 1);
	w.now = w.p[0].t3_at;
	cr_expect(ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_LOST);
	cr_expect_eq(w.p[0].t3s, 1);
	cr_expect(get_sctp_edge_state(1) == SLOT_LOST && get_sctp_edge_state(2) == SLOT_LOST);
}

Test(sctp_edge, a_false_t3_is_that_of_one_path)
{
	begin_sctp_edge(1000);
	cr_assert_eq(send_on_sctp_edge(0, 100), 0);
	cr_assert_eq(send_on_sctp_edge(1, 100), 0);
	for (unsigned i = 0; i < 2; i++) {
		w.p[i].pto_at = 0;
		w.now = w.p[i].t3_at;
		ddps_sent_timer(&w.s, &w.p[i], w.now);
		cr_assert_eq(w.p[i].t3s, 1);
	}
	cr_expect_eq(w.s.nlost, 2);
	ddps_sent_false_t3(&w.s, &w.p[0], w.now);
	cr_expect(get_sctp_edge_state(1) == SLOT_FLIGHT && get_sctp_edge_state(2) == SLOT_LOST);
	cr_expect(w.p[0].nflight == 1 && w.p[1].nlost == 1);
	cr_expect(w.p[0].undone == 1 && w.p[1].undone == 0);
	ddps_sent_false_t3(&w.s, &w.p[1], w.now);
	cr_expect_eq(get_sctp_edge_state(2), SLOT_FLIGHT);
	cr_expect_eq(w.s.nlost, 0);
}

/* The window in which packets may overtake each other has grown since its timer was set. */
Test(sctp_edge, a_timer_of_order_that_finds_nothing_lost)
{
	uint64_t sent;

	begin_sctp_edge(1000);
	sent = w.now;
	send_sctp_edge(2);
	w.p[0].rack_pn = 2;
	w.p[0].rack_rtt = 50 * MS;
	w.p[0].pto_at = 0;
	w.p[0].reo_at = w.now += 10 * MS;
	cr_expect_eq(ddps_sent_timer(&w.s, &w.p[0], w.now), 0);
	cr_expect_eq(w.s.nlost, 0);
	cr_expect_eq(w.p[0].reo_at, sent + 50 * MS);
	w.now = w.p[0].reo_at;
	cr_expect_eq(ddps_sent_timer(&w.s, &w.p[0], w.now), DDPS_SENT_EV_LOST | DDPS_SENT_EV_SEND);
	cr_expect(get_sctp_edge_state(1) == SLOT_LOST && get_sctp_edge_state(2) == SLOT_FLIGHT);
}

/* ---- SACKs ---- */

/* Four packets, the first of which seems lost and is resent; its original was late. */
static void late_original(bool memory)
{
	static const struct ddps_sent_gap gap = { 2, 4 };
	struct ddps_sent_sack k = { .cum = 4, .a_rwnd = 1000 };
	uint32_t dup = 1;

	begin_sctp_edge(1000);
	ddps_sent_rtt(&w.s, &w.p[0], 100 * MS, w.now);
	send_sctp_edge(4);
	w.now += 100 * MS;
	send_sctp_edge_sack(0, 1000, &gap, 1);
	cr_assert_eq(get_sctp_edge_state(1), SLOT_LOST);
	mem_fail(memory ? 0 : 1);
	resend_sctp_edge(0);
	cr_expect_eq(mem_failed(), !memory);
	cr_expect_eq(w.s.hist != NULL, memory);
	mem_fail(0);
	w.now += MS;
	send_sctp_edge_sack(4, 1000, NULL, 0);
	cr_expect_eq(w.p[0].undone, 1);
	cr_expect(w.p[0].reord_seen);
	k.dups = &dup;
	k.ndups = 1;
	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	cr_expect_eq(w.p[0].spurious, memory);
	cr_expect_eq(w.p[0].undone, 1, "one loss is taken back once");
}

Test(sctp_edge, a_late_original_is_known_without_memory)
{
	late_original(true);
	fini();
	late_original(false);
}

/* SHUTDOWN has a cumulative ack and no blocks: what they named is still known. */
Test(sctp_edge, a_sack_that_moves_over_what_was_acknowledged)
{
	static const struct ddps_sent_gap first[] = { { 2, 4 }, { 6, 9 } },
					  then[] = { { 2, 3 }, { 5, 5 } };

	begin_sctp_edge(10000);
	send_sctp_edge(10);
	send_sctp_edge_sack(0, 10000, first, 2);
	shutdown_of(1);
	cr_expect_eq(news.acked, 1);
	cr_expect_eq(get_sctp_edge_state(2), SLOT_SACKED);
	send_sctp_edge_sack(4, 10000, then, 2); /* 6, 7 and 9; it does not name 8 any more */
	cr_expect_eq(news.acked, 0);
	cr_expect_eq(news.cum_advanced, 3);
	cr_expect_eq(w.s.reneged, 1);
	cr_expect_eq(get_sctp_edge_state(8), SLOT_FLIGHT);
	cr_expect_eq(w.s.nruns, 2);
	cr_expect(w.s.runs[0].start == 6 && w.s.runs[0].end == 7);
	cr_expect(w.s.runs[1].start == 9 && w.s.runs[1].end == 9);
}
