/* SPDX-License-Identifier: BSD-2-Clause */
/* Path MTU discovery (RFC 8899): both sides of each limit. */
#include "sctp/send/tx_pmtu.h"
#include <criterion/criterion.h>

#define MS   1000000ull
#define SEC  (1000 * MS)
#define N(a) (sizeof(a) / sizeof *(a))

static struct ddps_pmtu begin_sctp_pmtu_table(uint32_t device, enum ddps_pmtu_state state,
					      uint16_t size)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, device);
	struct ddps_pmtu m;

	ddps_pmtu_init(&m, &lim);
	m.state = state;
	m.size = size;
	return m;
}

Test(sctp_pmtu, limits_of_each_kind_of_path, .description = "6951-5.6-1")
{
	static const struct {
		bool ipv6;
		uint32_t device;
		uint16_t min, base, max;
	} is[] = { { false, 1500, 576, 1200, 1500 },
		   { true, 1500, 1280, 1280, 1500 },
		   { false, 1503, 576, 1200, 1500 },
		   { false, 1000, 576, 1000, 1000 },
		   { false, 500, 500, 500, 500 },
		   { false, 71, 68, 68, 68 },
		   { false, 0, 68, 68, 68 },
		   { true, 1279, 1280, 1280, 1280 },
		   { false, 65531, 576, 1200, 65528 },
		   { false, 1 << 20, 576, 1200, 65532 },
		   { true, 1 << 20, 1280, 1280, 65532 },
		   { true, 1 << 20, 1280, 1280, 65532 } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu_limits l = ddps_pmtu_limits(is[i].ipv6, is[i].device);

		cr_expect_eq(l.min, is[i].min);
		cr_expect_eq(l.base, is[i].base);
		cr_expect_eq(l.max, is[i].max, "%u: %u", i, l.max);
	}
}

Test(sctp_pmtu, begins_with_what_is_hoped_for)
{
	static const uint16_t is[][2] = { { 0, 1200 },	  { 1200, 1200 }, { 1203, 1200 },
					  { 1204, 1204 }, { 1500, 1500 }, { 9000, 1500 } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_OFF, 68);

		m.fail = 1300;
		m.holes = 2;
		m.fragment = m.smaller_passed = true;
		m.doubt = 1200;
		ddps_pmtu_start(&m, is[i][0], SEC);
		cr_expect_eq(m.state, DDPS_PMTU_BASE);
		cr_expect_eq(m.size, is[i][1]);
		cr_expect_eq(ddps_pmtu_probe(&m, SEC), is[i][1]);
		cr_expect_eq(ddps_pmtu_probe(&m, SEC - 1), 0);
		cr_expect_not(m.fail || m.holes || m.fragment || m.doubt || m.smaller_passed);
		ddps_pmtu_start_likely(&m, is[i][0], SEC);
		cr_expect_eq(m.state, is[i][1] > 1200 ? DDPS_PMTU_SEARCH : DDPS_PMTU_BASE);
		cr_expect_eq(m.size, 1200, "until it is answered");
		cr_expect_eq(ddps_pmtu_probe(&m, SEC), is[i][1]);
		ddps_pmtu_fix(&m, is[i][0]);
		cr_expect_eq(m.state, DDPS_PMTU_OFF);
		cr_expect_eq(m.size, is[i][0] < 1500 ? is[i][0] : 1500);
		cr_expect_eq(ddps_pmtu_deadline(&m), UINT64_MAX);
		cr_expect_eq(ddps_pmtu_probe(&m, SEC), 0);
	}
}

/* What passes, up to @most, until the search has ended. */
static uint64_t search_sctp_pmtu_table(struct ddps_pmtu *m, uint16_t most, uint64_t now)
{
	for (unsigned n = 0; m->state != DDPS_PMTU_DONE && n < 1000; n++) {
		uint16_t size = ddps_pmtu_probe(m, now);

		if (!size) {
			now = ddps_pmtu_deadline(m);
			ddps_pmtu_timer(m, now);
			continue;
		}
		ddps_pmtu_probe_sent(m, size, MS, now);
		if (size <= most)
			ddps_pmtu_probe_acked(m, size, now);
	}
	return now;
}

/* Within a host what was lost had no room in a socket, as a rule: that is not for long.  A relay that takes less is asked
 * ever more seldom. */
Test(sctp_pmtu, when_a_larger_size_is_asked_for_again)
{
	for (unsigned near = 0; near < 2; near++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(65535, DDPS_PMTU_OFF, 1200);
		uint64_t now, pause = near ? 5 * SEC : 600 * SEC;

		if (near)
			ddps_pmtu_start_likely(&m, 65532, SEC);
		else
			ddps_pmtu_start(&m, 65532, SEC);
		now = search_sctp_pmtu_table(&m, 4000, SEC);
		cr_assert_eq(m.state, DDPS_PMTU_DONE);
		cr_expect(m.size > 3980 && m.size <= 4000, "%u", m.size);
		for (unsigned n = 0; n < 9; n++) {
			const bool used = n % 2;

			cr_expect_eq(ddps_pmtu_deadline(&m), now + pause, "%u, %u", near, n);
			now += pause;
			pause = 2 * pause < 600 * SEC ? 2 * pause : 600 * SEC;
			m.used = used;
			ddps_pmtu_timer(&m, now);
			cr_expect_eq(ddps_pmtu_probe(&m, now), used ? 65532 : 0);
			now = search_sctp_pmtu_table(&m, 4000, now);
		}
		m.next_at = now;
		m.used = true;
		ddps_pmtu_timer(&m, now);
		search_sctp_pmtu_table(&m, 65532, now);
		cr_expect_eq(m.size, 65532);
		ddps_pmtu_start(&m, 0, now);
		cr_expect_not(m.near, "it has moved");
	}
}

/* What is asked for next, when @lo passes and @hi does not: sizes of links, then halves. */
Test(sctp_pmtu, the_next_size_to_ask_for)
{
	static const uint16_t is[][3] = {
		{ 1200, 0, 9216 },    { 1200, 9220, 9216 }, { 1200, 9216, 9000 },
		{ 1200, 9000, 8900 }, { 1200, 8900, 4352 }, { 1200, 4352, 1500 },
		{ 1200, 1500, 1492 }, { 1200, 1492, 1480 }, { 1200, 1480, 1452 },
		{ 1200, 1452, 1420 }, { 1200, 1420, 1400 }, { 1200, 1400, 1380 },
		{ 1200, 1380, 1280 }, { 1200, 1280, 1240 }, { 1200, 1220, 1208 },
		{ 1200, 1216, 0 },    { 1280, 1380, 1328 }, { 4352, 8900, 6624 },
		{ 1492, 1516, 1500 }, { 1500, 1516, 0 },    { 9216, 0, 0 },
		{ 9212, 0, 9216 },    { 1280, 1300, 1288 }
	};

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m =
			begin_sctp_pmtu_table(9216, DDPS_PMTU_SEARCH, (uint16_t)(is[i][0] - 4));

		m.probing = is[i][0];
		m.fail = is[i][1];
		m.out = true;
		cr_expect_eq(ddps_pmtu_probe_acked(&m, is[i][0], SEC), DDPS_PMTU_SIZE);
		cr_expect_eq(m.size, is[i][0]);
		cr_expect_eq(m.probing, is[i][2], "%u: %u", i, m.probing);
		cr_expect_eq(m.state, is[i][2] ? DDPS_PMTU_SEARCH : DDPS_PMTU_DONE);
		cr_expect_eq(ddps_pmtu_deadline(&m), is[i][2]		? SEC
						     : is[i][0] == 9216 ? UINT64_MAX
									: 601 * SEC);
	}
}

/* RFC 8899 5.1.2: three probes, each with twice the RTO, a second at least. */
Test(sctp_pmtu, a_size_is_given_up_after_three_probes, .description = "8899-5.1-2")
{
	static const uint64_t is[][2] = { { 1, SEC }, { 500 * MS, SEC }, { 501 * MS, 1002 * MS } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(9216, DDPS_PMTU_SEARCH, 1200);
		uint64_t now = SEC;

		m.probing = 9216;
		m.next_at = now;
		for (unsigned n = 0; n < 3; n++) {
			cr_assert_eq(ddps_pmtu_probe(&m, now), 9216);
			ddps_pmtu_probe_sent(&m, 1212, is[i][0], now);
			cr_assert_eq(ddps_pmtu_probe(&m, now), 9216, "another one");
			ddps_pmtu_probe_sent(&m, 9216, is[i][0], now);
			cr_assert_eq(ddps_pmtu_deadline(&m), now + is[i][1]);
			ddps_pmtu_timer(&m, now + is[i][1] - 1);
			cr_assert(m.out);
			now += is[i][1];
			cr_assert_eq(ddps_pmtu_probe(&m, now), 0, "one at a time");
			ddps_pmtu_timer(&m, now);
			cr_assert_not(m.out);
		}
		cr_expect_eq(m.fail, 9216);
		cr_expect_eq(ddps_pmtu_probe(&m, now), 9000);
		cr_expect_eq(m.count, 0);
	}
}

/* Nothing passes: both sizes in turn, seldom, and at least once a minute. */
Test(sctp_pmtu, where_nothing_passes_it_is_asked_seldom)
{
	static const uint16_t wait[] = { 0, 1, 2, 4, 8, 16, 32, 60, 60 };
	struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_OFF, 1200);
	uint64_t now = SEC;

	ddps_pmtu_start(&m, 0, now);
	for (unsigned n = 0; n < 3; n++) {
		ddps_pmtu_probe_sent(&m, 1200, 1, now);
		now += SEC;
		cr_assert_eq(m.state, DDPS_PMTU_BASE);
		cr_expect_eq(ddps_pmtu_timer(&m, now), n == 2 ? DDPS_PMTU_SIZE : 0);
	}
	for (unsigned i = 0; i < N(wait); i++) {
		cr_assert_eq(m.state, DDPS_PMTU_ERROR);
		cr_assert(m.fragment && m.size == 576);
		cr_assert_eq(ddps_pmtu_deadline(&m), now + wait[i] * SEC, "%u", i);
		now = ddps_pmtu_deadline(&m);
		for (unsigned n = 0; n < 3; n++) {
			cr_assert_eq(ddps_pmtu_probe(&m, now), i % 2 ? 1200 : 576);
			ddps_pmtu_probe_sent(&m, i % 2 ? 1200 : 576, 1, now);
			now += SEC;
			cr_expect_eq(ddps_pmtu_timer(&m, now), 0);
		}
	}
	cr_expect_eq(ddps_pmtu_probe_acked(&m, 575, now), 0);
	cr_expect_eq(m.state, DDPS_PMTU_ERROR);
	m.fail = 900;
	cr_expect_eq(ddps_pmtu_probe_acked(&m, 576, now), DDPS_PMTU_SIZE, "no fragments any more");
	cr_expect(m.state == DDPS_PMTU_SEARCH && m.size == 576 && !m.fragment && !m.fail);
}

/* A hole: three packets lost and smaller ones pass, or two timeouts; two where both are so. */
Test(sctp_pmtu, what_makes_a_black_hole)
{
	for (unsigned i = 0; i < 2u * 4 * 5; i++) {
		bool passed = i & 1, is;
		uint8_t t3 = i / 2 % 4, n = (uint8_t)(i / 8 + 1);
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_DONE, 1500);

		m.holes = (uint8_t)(n - 1);
		m.t3 = t3;
		m.smaller_passed = passed;
		m.lost_min = m.lost_max = 1400;
		passed = passed && n > 1; /* the first one that is lost begins the count */
		is = n >= 3 ? passed || t3 >= 2 : n == 2 && passed && t3;
		cr_expect_eq(ddps_pmtu_lost(&m, 1396, 9, SEC),
			     is ? DDPS_PMTU_SIZE | DDPS_PMTU_HOLE : 0, "%u %u %u", passed, t3, n);
		cr_expect_eq(m.black_holes, is);
		cr_expect_eq(m.size, is ? 1200 : 1500);
		cr_expect_eq(m.state, is ? DDPS_PMTU_BASE : DDPS_PMTU_DONE);
		cr_expect_eq(m.fail, is && passed ? 1396 : 0);
		cr_expect_eq(m.holes, is ? 0 : n);
		cr_expect_eq(m.t3, is ? 0 : t3);
		cr_expect_eq(m.lost_max, is ? 0 : n > 1 ? 1400 : 1396);
		cr_expect_eq(m.lost_min, is ? 0 : 1396);
	}
}

Test(sctp_pmtu, losses_that_say_nothing_of_the_size)
{
	static const struct {
		enum ddps_pmtu_state state;
		uint16_t used, size;
		uint16_t asks; /* after a timeout; 0: it counts for nothing */
	} is[] = { { DDPS_PMTU_DONE, 1400, 1400, 1200 }, { DDPS_PMTU_DONE, 1400, 1404, 0 },
		   { DDPS_PMTU_DONE, 1400, 1204, 1200 }, { DDPS_PMTU_DONE, 1400, 1200, 576 },
		   { DDPS_PMTU_DONE, 1400, 580, 576 },	 { DDPS_PMTU_DONE, 1400, 576, 128 },
		   { DDPS_PMTU_DONE, 1400, 132, 128 },	 { DDPS_PMTU_DONE, 1400, 128, 0 },
		   { DDPS_PMTU_DONE, 1200, 1200, 576 },	 { DDPS_PMTU_BASE, 1200, 1200, 576 },
		   { DDPS_PMTU_BASE, 1200, 580, 576 },	 { DDPS_PMTU_BASE, 1200, 576, 128 },
		   { DDPS_PMTU_BASE, 1400, 1200, 576 },	 { DDPS_PMTU_BASE, 1400, 1204, 1200 },
		   { DDPS_PMTU_OFF, 1400, 1400, 0 },	 { DDPS_PMTU_SEARCH, 1400, 1400, 1200 } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, is[i].state, is[i].used), f = m;
		bool counts = is[i].asks;

		ddps_pmtu_lost(&m, is[i].size, 7, SEC);
		cr_expect_eq(m.holes, counts, "%u", i);
		ddps_pmtu_lost(&m, is[i].size, 7, SEC);
		cr_expect_eq(m.holes, counts, "the same packet");
		ddps_pmtu_lost(&m, is[i].size, 8, SEC);
		cr_expect_eq(m.holes, 2 * counts);
		f.fragment = true;
		ddps_pmtu_lost(&f, is[i].size, 7, SEC);
		cr_expect_eq(f.holes, 0, "it went in fragments");
		/* a timeout asks whether something smaller passes */
		ddps_pmtu_timeout(&f, SEC);
		cr_expect_eq(f.t3, 0);
		m.holes = counts;
		ddps_pmtu_timeout(&m, SEC);
		cr_expect_eq(m.t3, counts);
		cr_expect_eq(m.doubt, is[i].asks);
		if (m.doubt) {
			cr_expect_eq(ddps_pmtu_deadline(&m), 0);
			cr_expect_eq(ddps_pmtu_probe(&m, SEC), is[i].asks);
			ddps_pmtu_probe_sent(&m, 1204, 1, SEC);
			cr_expect(m.doubt);
			ddps_pmtu_probe_sent(&m, is[i].asks, 1, SEC);
			cr_expect_not(m.doubt);
		}
		m.doubt = 1200;
		m.out = true;
		ddps_pmtu_stop(&m);
		cr_expect(!m.doubt && !m.out && m.state == DDPS_PMTU_OFF);
	}
}

/* Where the hole swallows the base itself, only fragments are left. */
Test(sctp_pmtu, a_hole_at_the_base)
{
	static const uint16_t is[][2] = { { 1200, 576 }, { 1204, 1200 }, { 1400, 1200 } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_BASE, is[i][0]);

		m.holes = m.t3 = 2;
		m.lost_min = m.lost_max = is[i][0];
		cr_expect_eq(ddps_pmtu_lost(&m, is[i][0], 9, SEC), DDPS_PMTU_SIZE | DDPS_PMTU_HOLE);
		cr_expect_eq(m.state, i ? DDPS_PMTU_BASE : DDPS_PMTU_ERROR);
		cr_expect_eq(m.size, is[i][1]);
		cr_expect_eq(m.fragment, !i);
	}
}

Test(sctp_pmtu, what_passes_ends_the_doubt)
{
	struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_DONE, 1400), p;

	ddps_pmtu_lost(&m, 1400, 1, SEC);
	ddps_pmtu_lost(&m, 1300, 2, SEC);
	p = m;
	ddps_pmtu_delivered(&p, 1404, 3, SEC, SEC, SEC);
	cr_expect(p.holes == 2 && p.smaller_passed, "fragments are smaller");
	p.smaller_passed = false;
	ddps_pmtu_delivered(&p, 1396, 3, SEC, SEC, SEC);
	cr_expect(p.holes == 2 && p.smaller_passed);
	ddps_pmtu_delivered(&p, 1400, 3, SEC, SEC, SEC);
	cr_expect(!p.holes && !p.smaller_passed && !p.lost_max);
	cr_expect_eq(ddps_pmtu_probe_acked(&m, 1200, SEC), 0);
	cr_expect_not(m.smaller_passed, "an answer to what was asked before");
	ddps_pmtu_delivered(&m, 600, 2, SEC, SEC, SEC);
	cr_expect_not(m.smaller_passed, "sent before");
	ddps_pmtu_delivered(&m, 600, 3, SEC, SEC, SEC);
	cr_expect(m.smaller_passed);
	cr_expect_eq(ddps_pmtu_lost(&m, 1400, 3, SEC), DDPS_PMTU_SIZE | DDPS_PMTU_HOLE);
	cr_expect_eq(m.fail, 1300);
}

/* Sent later and arrived: then the probe is lost, three RTTs after it was sent. */
Test(sctp_pmtu, a_probe_is_overtaken)
{
	static const struct {
		uint64_t sent, srtt, now;
		bool lost;
	} is[] = { { SEC + 1, 20 * MS, SEC + 60 * MS, true },
		   { SEC + 1, 20 * MS, SEC + 60 * MS - 1, false },
		   { SEC, 20 * MS, SEC + 60 * MS, false },
		   { SEC + 1, 0, SEC + 60 * MS, false } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_SEARCH, 1200);

		m.probing = 1500;
		ddps_pmtu_probe_sent(&m, 1500, 1, SEC);
		ddps_pmtu_delivered(&m, 1200, 1, is[i].sent, is[i].srtt, is[i].now);
		cr_expect_eq(m.out, !is[i].lost);
		cr_expect_eq(m.count, is[i].lost);
		cr_expect_eq(m.next_at, is[i].lost ? is[i].now : 2 * SEC);
	}
}

Test(sctp_pmtu, what_a_router_may_say, .description = "8899-4.6-3 8899-4.6-1")
{
	static const struct {
		enum ddps_pmtu_state is;
		uint16_t size, probing, told;
		enum ddps_pmtu_state then;
		uint16_t used, asks, fail;
		bool bad;
	} is[] = {
		{ DDPS_PMTU_DONE, 1500, 0, 1500, DDPS_PMTU_DONE, 1500, 0, 0, true },
		{ DDPS_PMTU_DONE, 1500, 0, 1499, DDPS_PMTU_SEARCH, 1200, 1496, 1500, false },
		{ DDPS_PMTU_DONE, 1500, 0, 1204, DDPS_PMTU_SEARCH, 1200, 1204, 1500, false },
		{ DDPS_PMTU_DONE, 1500, 0, 1200, DDPS_PMTU_SEARCH, 1200, 1492, 1500, false },
		{ DDPS_PMTU_DONE, 1500, 0, 1199, DDPS_PMTU_BASE, 1200, 1200, 0, false },
		{ DDPS_PMTU_DONE, 1500, 0, 576, DDPS_PMTU_BASE, 1200, 1200, 0, false },
		{ DDPS_PMTU_DONE, 1500, 0, 575, DDPS_PMTU_DONE, 1500, 0, 0, true },
		{ DDPS_PMTU_BASE, 1200, 1200, 1000, DDPS_PMTU_ERROR, 576, 576, 0, false },
		{ DDPS_PMTU_BASE, 1200, 1200, 1200, DDPS_PMTU_BASE, 1200, 1200, 0, true },
		{ DDPS_PMTU_ERROR, 576, 1200, 1000, DDPS_PMTU_ERROR, 576, 1200, 0, true },
		{ DDPS_PMTU_OFF, 1500, 0, 1400, DDPS_PMTU_OFF, 1500, 0, 0, true },
		{ DDPS_PMTU_SEARCH, 1300, 1500, 1300, DDPS_PMTU_DONE, 1300, 0, 1500, false },
		{ DDPS_PMTU_SEARCH, 1300, 1500, 1400, DDPS_PMTU_SEARCH, 1300, 1400, 1500, false },
		{ DDPS_PMTU_SEARCH, 1300, 1500, 1500, DDPS_PMTU_SEARCH, 1300, 1500, 0, true },
		{ DDPS_PMTU_SEARCH, 1000, 1500, 800, DDPS_PMTU_ERROR, 576, 576, 0, false },
		{ DDPS_PMTU_SEARCH, 1000, 1500, 1100, DDPS_PMTU_SEARCH, 1000, 1100, 1500, false },
	};

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, is[i].is, is[i].size), deaf;
		unsigned bits;

		m.probing = is[i].probing;
		m.next_at = UINT64_MAX;
		m.deaf_until = 5 * SEC;
		deaf = m;
		cr_expect_eq(ddps_pmtu_ptb(&deaf, is[i].told, 5 * SEC - 1), 0);
		cr_expect(deaf.bad_ptb == 1 && deaf.state == is[i].is && deaf.size == is[i].size);
		bits = ddps_pmtu_ptb(&m, is[i].told, 5 * SEC);
		cr_expect_eq(bits, is[i].used != is[i].size ? DDPS_PMTU_SIZE : 0);
		cr_expect_eq(m.bad_ptb, is[i].bad, "%u", i);
		cr_expect_eq(m.state, is[i].then, "%u", i);
		cr_expect_eq(m.size, is[i].used, "%u: %u", i, m.size);
		cr_expect_eq(m.probing, is[i].asks, "%u: %u", i, m.probing);
		cr_expect_eq(m.fail, is[i].fail);
		cr_expect_eq(m.ptb, is[i].bad ? 0 : is[i].told & ~3u);
	}
}

/* What passes although a router said no: nobody is believed for a minute. */
Test(sctp_pmtu, a_lie_is_remembered_for_a_minute)
{
	static const uint64_t is[][4] = { /* told, passed, deaf before, deaf after */
					  { 1300, 1304, 0, 61 * SEC },
					  { 1300, 1300, 0, 0 },
					  { 0, 1400, 0, 0 },
					  { 1300, 1304, SEC, 61 * SEC },
					  { 1300, 1304, SEC + 1, SEC + 1 }
	};

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_SEARCH, 1200);

		m.ptb = (uint16_t)is[i][0];
		m.deaf_until = is[i][2];
		m.probing = 1500;
		ddps_pmtu_probe_acked(&m, (uint16_t)is[i][1], SEC);
		cr_expect_eq(m.deaf_until, is[i][3], "%u", i);
		cr_expect_eq(m.size, is[i][1]);
		cr_expect_eq(m.probing, 1500, "is still asked for");
	}
}

Test(sctp_pmtu, answers_in_each_state)
{
	static const struct {
		enum ddps_pmtu_state is;
		uint16_t size, probing, acked;
		enum ddps_pmtu_state then;
		uint16_t used, asks;
	} is[] = { { DDPS_PMTU_OFF, 1200, 0, 1400, DDPS_PMTU_OFF, 1200, 0 },
		   { DDPS_PMTU_DONE, 1200, 0, 1504, DDPS_PMTU_DONE, 1200, 0 },
		   { DDPS_PMTU_DONE, 1200, 0, 1500, DDPS_PMTU_DONE, 1500, 0 },
		   { DDPS_PMTU_DONE, 1400, 0, 1396, DDPS_PMTU_DONE, 1400, 0 },
		   { DDPS_PMTU_BASE, 1200, 1200, 1196, DDPS_PMTU_BASE, 1200, 1200 },
		   { DDPS_PMTU_BASE, 1200, 1200, 1200, DDPS_PMTU_SEARCH, 1200, 1500 },
		   { DDPS_PMTU_BASE, 1400, 1400, 1200, DDPS_PMTU_SEARCH, 1400, 1500 },
		   { DDPS_PMTU_BASE, 1200, 1400, 1300, DDPS_PMTU_BASE, 1300, 1400 },
		   { DDPS_PMTU_SEARCH, 1200, 1400, 1400, DDPS_PMTU_SEARCH, 1400, 1500 },
		   { DDPS_PMTU_SEARCH, 1200, 1400, 1396, DDPS_PMTU_SEARCH, 1396, 1400 },
		   { DDPS_PMTU_SEARCH, 1200, 1400, 1200, DDPS_PMTU_SEARCH, 1200, 1400 },
		   { DDPS_PMTU_SEARCH, 1200, 1400, 1500, DDPS_PMTU_DONE, 1500, 0 } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, is[i].is, is[i].size);

		m.probing = is[i].probing;
		cr_expect_eq(ddps_pmtu_probe_acked(&m, is[i].acked, SEC),
			     is[i].used != is[i].size ? DDPS_PMTU_SIZE : 0);
		cr_expect_eq(m.state, is[i].then, "%u", i);
		cr_expect_eq(m.size, is[i].used, "%u: %u", i, m.size);
		cr_expect_eq(m.probing, is[i].asks, "%u: %u", i, m.probing);
	}
}

/* RFC 8899 5.1.1: ten minutes later a larger one is tried, if the path is used. */
Test(sctp_pmtu, a_larger_one_after_ten_minutes)
{
	struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_DONE, 1200);

	m.fail = 1204;
	m.next_at = 600 * SEC;
	cr_expect_eq(ddps_pmtu_timer(&m, 600 * SEC), 0);
	cr_expect(m.state == DDPS_PMTU_DONE && m.next_at == 1200 * SEC, "nobody uses it");
	ddps_pmtu_delivered(&m, 1200, 1, 1, 1, 700 * SEC);
	ddps_pmtu_timer(&m, 1200 * SEC - 1);
	cr_expect_eq(m.state, DDPS_PMTU_DONE);
	ddps_pmtu_timer(&m, 1200 * SEC);
	cr_expect(m.state == DDPS_PMTU_SEARCH && m.probing == 1500 && !m.fail);
	ddps_pmtu_probe_sent(&m, 1500, 1, 1200 * SEC);
	cr_expect_not(m.used, "what was used before does not count again");
}

Test(sctp_pmtu, the_device_takes_another_size)
{
	static const struct {
		uint32_t device;
		enum ddps_pmtu_state is, then;
		uint16_t size, max, asks;
	} is[] = { { 9003, DDPS_PMTU_DONE, DDPS_PMTU_SEARCH, 1400, 9000, 9000 },
		   { 1400, DDPS_PMTU_DONE, DDPS_PMTU_DONE, 1400, 1400, 0 },
		   { 1404, DDPS_PMTU_DONE, DDPS_PMTU_SEARCH, 1400, 1404, 1404 },
		   { 1300, DDPS_PMTU_SEARCH, DDPS_PMTU_DONE, 1300, 1300, 0 },
		   { 1300, DDPS_PMTU_BASE, DDPS_PMTU_BASE, 1300, 1300, 1300 },
		   { 1448, DDPS_PMTU_BASE, DDPS_PMTU_BASE, 1400, 1448, 1448 },
		   { 1452, DDPS_PMTU_BASE, DDPS_PMTU_BASE, 1400, 1452, 1450 },
		   { 400, DDPS_PMTU_OFF, DDPS_PMTU_OFF, 400, 400, 400 },
		   { 67, DDPS_PMTU_OFF, DDPS_PMTU_OFF, 68, 68, 68 },
		   { 1 << 20, DDPS_PMTU_OFF, DDPS_PMTU_OFF, 1400, 65532, 1450 } };

	for (unsigned i = 0; i < N(is); i++) {
		struct ddps_pmtu m = begin_sctp_pmtu_table(1500, is[i].is, 1400);

		m.probing = 1450;
		m.fail = 1450;
		cr_expect_eq(ddps_pmtu_local(&m, is[i].device, SEC),
			     is[i].size != 1400 ? DDPS_PMTU_SIZE : 0);
		cr_expect_eq(m.state, is[i].then, "%u", i);
		cr_expect_eq(m.size, is[i].size);
		cr_expect_eq(m.lim.max, is[i].max);
		cr_expect_eq(m.lim.base, is[i].max < 1200 ? is[i].max : 1200);
		cr_expect_eq(m.lim.min, is[i].max < 576 ? is[i].max : 576);
		if (is[i].device != 9003 && is[i].device < 1 << 20)
			cr_expect_eq(m.probing, is[i].asks, "%u: %u", i, m.probing);
		cr_expect_eq(m.fail, is[i].max < 1450 ? 0 : 1450);
	}
}

/* One loss and then silence, for longer than any association lives: that is no black hole. */
Test(sctp_pmtu, timeouts_are_counted_to_255)
{
	struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_DONE, 1500);

	cr_expect_eq(ddps_pmtu_lost(&m, 1500, 1, SEC), 0);
	for (unsigned i = 1; i < 600; i++) {
		cr_expect_eq(ddps_pmtu_timeout(&m, i * SEC), 0);
		cr_expect_eq(m.t3, i < 255 ? i : 255);
	}
	cr_expect(m.size == 1500 && m.holes == 1 && !m.black_holes);
}

/* The size of another association is asked three times, then the base. */
Test(sctp_pmtu, a_hint_that_was_wrong)
{
	struct ddps_pmtu m = begin_sctp_pmtu_table(1500, DDPS_PMTU_OFF, 1200);

	ddps_pmtu_start(&m, 1400, SEC);
	cr_expect(m.size == 1400 && m.probing == 1400 && m.state == DDPS_PMTU_BASE);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(m.size, 1400);
		ddps_pmtu_probe_sent(&m, 1400, SEC, SEC);
		ddps_pmtu_timer(&m, m.next_at);
	}
	cr_expect(m.size == 1200 && m.probing == 1200 && m.state == DDPS_PMTU_BASE);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(m.state, DDPS_PMTU_BASE);
		ddps_pmtu_probe_sent(&m, 1200, SEC, SEC);
		ddps_pmtu_timer(&m, m.next_at);
	}
	cr_expect(m.state == DDPS_PMTU_ERROR && m.size == 576 && m.fragment);
}
