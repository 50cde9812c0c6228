/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines, received TSNs, what is lost: against plain models.  And who says the time. */
#include "sctp_raw_fixture.h"
#include "sctp_sent_fixture.h"
#include <stdlib.h>

static uint64_t seed = 88172645463325252ull;

static unsigned draw_below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 11) % n;
}

/* ---- deadlines ---- */

#define TIMERS 70u

static struct ddps_sc_timer t[TIMERS];

static void check_heap(const struct ddps_sc_heap *h)
{
	uint64_t least = DDPS_SC_NEVER;
	size_t n = 0;

	for (unsigned i = 0; i < TIMERS; i++) {
		if (!t[i].slot)
			continue;
		n++;
		cr_assert_leq(t[i].slot, h->n);
		cr_assert_eq(h->v[t[i].slot], &t[i]);
		least = t[i].at < least ? t[i].at : least;
	}
	cr_assert_eq(n, h->n);
	cr_assert_eq(ddps_sc_heap_next(h), least);
	for (size_t i = 2; i <= h->n; i++)
		cr_assert_leq(h->v[(i - 2) / 4 + 1]->at, h->v[i]->at);
}

Test(sctp_parts, deadlines_against_a_plain_list)
{
	struct ddps_sc_heap h = { 0 };

	cr_assert_eq(ddps_sc_heap_reserve(&h, TIMERS), 0);
	for (unsigned i = 0; i < TIMERS; i++)
		t[i].want = DDPS_SC_NEVER;
	for (unsigned n = 0; n < 20000; n++) {
		struct ddps_sc_timer *one = &t[draw_below(TIMERS)], *due;
		uint64_t now = draw_below(300),
			 when = draw_below(10) ? 1 + draw_below(1000) : DDPS_SC_NEVER;

		switch (draw_below(4)) {
		case 0:
			ddps_sc_timer_drop(&h, one);
			cr_assert_eq(one->slot, 0);
			cr_assert_eq(one->want, DDPS_SC_NEVER);
			break;
		case 1:
			due = ddps_sc_heap_due(&h, now);
			cr_assert(!due || (due->want <= now && !due->slot));
			if (!due)
				cr_assert_gt(ddps_sc_heap_next(&h), now);
			break;
		default:
			ddps_sc_timer_set(&h, one, when);
			cr_assert_eq(one->want, when);
			if (when != DDPS_SC_NEVER)
				cr_assert(one->slot && one->at <= when);
		}
		check_heap(&h);
	}
	for (uint64_t now = 0; now <= 1000; now++) {
		struct ddps_sc_timer *due;

		while ((due = ddps_sc_heap_due(&h, now)))
			cr_assert_eq(due->want, now);
	}
	cr_expect_eq(h.n, 0);
	ddps_sc_heap_fini(&h);
}

Test(sctp_parts, room_for_deadlines)
{
	static const size_t is[][2] = { { 1, 16 },  { 15, 16 }, { 16, 32 },
					{ 31, 32 }, { 32, 64 }, { 5, 64 } };
	struct ddps_sc_heap h = { 0 };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		cr_assert_eq(ddps_sc_heap_reserve(&h, is[i][0]), 0);
		cr_expect_eq(h.cap, is[i][1], "%u", i); /* the first slot is not used */
	}
	ddps_sc_heap_fini(&h);
	cr_expect_eq(h.cap, 0);
}

/* ---- received TSNs ---- */

#define SPAN 300u

static void check_map(const struct ddps_sc_map *m, const bool *got, uint32_t first)
{
	uint32_t cum = first, high, from, start, end;
	unsigned runs = 0, want = 0;

	while (cum - first < SPAN && got[cum - first])
		cum++;
	cum--;
	high = cum;
	for (uint32_t i = 0; i < SPAN; i++) {
		uint32_t tsn = first + i;

		if (got[i] && (int32_t)(tsn - high) > 0)
			high = tsn;
		cr_assert_eq(ddps_sc_map_ask(m, tsn), got[i] ? DDPS_SC_DUP : DDPS_SC_NEW);
		want += (int32_t)(tsn - cum) > 0 && got[i] && !got[i - 1];
	}
	cr_assert_eq(m->cum, cum);
	cr_assert_eq(m->high, high);
	for (from = cum; ddps_sc_map_run(m, from, &start, &end); from = end, runs++) {
		cr_assert_gt((int32_t)(start - from), runs ? 1 : 0);
		cr_assert(!got[start - 1 - first] && got[start - first] && got[end - first]);
		cr_assert(end - first + 1 == SPAN || !got[end + 1 - first]);
	}
	cr_assert_eq(runs, want);
	if (high == cum)
		cr_assert_null(m->bits, "nothing is above");
}

Test(sctp_parts, received_ones_against_a_plain_list)
{
	static const uint32_t begin[] = { 1, 1000, UINT32_MAX - 150, 0x7fffff80, 63, 64 };

	for (unsigned k = 0; k < 6; k++) {
		bool got[SPAN] = { false };
		struct ddps_sc_map m;

		ddps_sc_map_init(&m, begin[k] - 1);
		for (unsigned n = 0; n < SPAN; n++) {
			unsigned i = draw_below(3) ? draw_below(SPAN) : m.cum + 1 - begin[k];

			if (i >= SPAN || got[i])
				continue;
			cr_assert_eq(ddps_sc_map_reserve(&m, begin[k] + i), 0);
			ddps_sc_map_mark(&m, begin[k] + i);
			got[i] = true;
			check_map(&m, got, begin[k]);
		}
		ddps_sc_map_fini(&m);
	}
}

Test(sctp_parts, how_far_ahead_one_is_received, .description = "9260-1.6-4")
{
	static const struct {
		uint32_t ahead;
		enum ddps_sc_map_what what;
	} is[] = { { 0, DDPS_SC_DUP },
		   { 1, DDPS_SC_NEW },
		   { DDPS_SC_WINDOW - 1, DDPS_SC_NEW },
		   { DDPS_SC_WINDOW, DDPS_SC_BEYOND },
		   { INT32_MAX, DDPS_SC_BEYOND },
		   { (uint32_t)INT32_MAX + 1, DDPS_SC_DUP },
		   { UINT32_MAX, DDPS_SC_DUP } };
	struct ddps_sc_map m;

	for (uint32_t cum = 0; cum < 3; cum++) {
		ddps_sc_map_init(&m, cum - 1);
		for (unsigned i = 0; i < sizeof is / sizeof *is; i++)
			cr_expect_eq(ddps_sc_map_ask(&m, cum - 1 + is[i].ahead), is[i].what, "%u",
				     i);
	}
}

/* ---- what is lost ---- */

/* The lowest from any place on: rings of each size, with few lost and with many. */
Test(sctp_parts, the_lowest_that_is_lost, .timeout = 60)
{
	static struct world w;

	for (unsigned size = 6; size <= 9000; size = size * 3 + 5) {
		uint32_t first = UINT32_MAX - size / 2;

		sent_begin(&w, 1, first, UINT32_MAX);
		for (unsigned i = 0; i < size; i++) {
			ddps_sent_begin(&w.s, &w.p[0], w.now);
			cr_assert_eq(ddps_sent_add_new(&w.s, 20, 4,
						       (void *)((uintptr_t)w.s.next + 7)),
				     0);
			ddps_sent_end(&w.s, 60, true);
		}
		for (unsigned n = 0; n < 60; n++) {
			uint32_t tsn = first + draw_below(size), want = 0, is = 0;
			bool some = false;

			if (ddps_sent_slot(&w.s, tsn)->state == SLOT_FLIGHT)
				ddps_sent_mark(&w.s, tsn);
			else if (ddps_sent_slot(&w.s, tsn)->state == SLOT_LOST && draw_below(2))
				ddps_sent_unlost(&w.s, tsn), ddps_sent_requeue(&w.s, tsn, w.now);
			tsn = first + draw_below(size);
			for (uint32_t i = tsn; i != w.s.next && !some; i++) {
				some = ddps_sent_slot(&w.s, i)->state == SLOT_LOST;
				want = i;
			}
			cr_assert_eq(ddps_sent_lowest(&w.s, tsn, &is), some, "%u of %u", n, size);
			cr_assert(!some || is == want, "%u of %u", n, size);
		}
		sent_end(&w);
	}
}

/* ---- the time ---- */

static struct raw r;

static void by_send(uint64_t now)
{
	struct iovec iov = { (void *)(uintptr_t) "x", 1 };

	ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, now);
}

static void by_pause(uint64_t now)
{
	ddps_sctp_pause(r.a, false, now);
}

static void by_hold(uint64_t now)
{
	ddps_sctp_hold_stream(r.a, 1, true, now);
}

static void by_letting_go(uint64_t now)
{
	ddps_sctp_hold_stream(r.a, 1, false, now);
}

static void by_keep(uint64_t now)
{
	ddps_sctp_keep(r.a, 0, now);
}

static void by_shutdown(uint64_t now)
{
	ddps_sctp_shutdown(r.a, now);
}

static void by_abort(uint64_t now)
{
	ddps_sctp_abort(r.a, NULL, now);
}

static void by_primary(uint64_t now)
{
	ddps_sctp_set_primary(r.a, &r.net.node[1].addr[0], now);
}

static void by_tick(uint64_t now)
{
	ddps_sctp_tick(r.e, now);
}

static void by_input(uint64_t now)
{
	ddps_sctp_input(r.e, NULL, 0, now);
}

static void by_icmp(uint64_t now)
{
	struct ddps_sctp_route to = { .peer = r.net.node[1].addr[0] };

	ddps_sctp_icmp(r.e, &to, DDPS_SCTP_ICMP_UNREACH, 0, NULL, 0, now);
}

static struct ddps_sctp_out none;

static void by_unsent(uint64_t now)
{
	ddps_sctp_unsent(r.e, &none, now);
}

static void by_refused(uint64_t now)
{
	ddps_sctp_refused(r.e, &none, 1400, now);
}

static void by_output(uint64_t now)
{
	struct iovec iov[DDPS_SCTP_IOV_MIN];
	uint8_t head[DDPS_SCTP_HEAD_MIN];
	struct ddps_sctp_out out = { .iov = iov,
				     .iov_max = DDPS_SCTP_IOV_MIN,
				     .head = head,
				     .head_max = sizeof head,
				     .max_segs = 1,
				     .max_len = 65507 };

	ddps_sctp_output(r.e, &out, now);
}

static void by_connect(uint64_t now)
{
	struct ddps_sctp_param p = { .port = 0 };
	struct ddps_sctp_assoc *a;

	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, 9, 9899, &sn_deaf, NULL,
				       now, &a),
		     0);
}

/* Each call says the time, and it never goes back. */
Test(sctp_parts, each_call_says_the_time)
{
	static void (*const is[])(uint64_t) = { by_send,    by_pause,	 by_hold,   by_letting_go,
						by_keep,    by_shutdown, by_abort,  by_primary,
						by_tick,    by_input,	 by_icmp,   by_unsent,
						by_refused, by_output,	 by_connect };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		uint64_t now;

		raw_up(&r);
		now = r.net.now + 5;
		is[i](now);
		cr_expect_eq(r.e->now, now, "%u", i);
		r.e->now = now + 7;
		if (i != 6) /* it is over */
			is[i](now);
		cr_expect_eq(r.e->now, now + 7, "%u", i);
		raw_fini(&r);
	}
}
