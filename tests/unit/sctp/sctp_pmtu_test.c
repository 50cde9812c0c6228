/* SPDX-License-Identifier: BSD-2-Clause */
/* Path MTU discovery (RFC 8899) on a path that takes packets up to a size. */
#include "sctp/send/tx_pmtu.h"
#include <criterion/criterion.h>

#define MS  1000000ull
#define SEC (1000 * MS)
#define RTT (20 * MS)
#define RTO (300 * MS)

struct path {
	struct ddps_pmtu m;
	uint64_t now, pn;
	uint32_t mtu; /* what passes */
	unsigned probes, fragments;
	bool ptb; /* a router says so */
	uint16_t size;
	bool fragment; /* as last told */
	unsigned black_holes;
};

static void begin_sctp_pmtu(struct path *w, bool ipv6, uint32_t device, uint32_t mtu)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(ipv6, device);

	*w = (struct path){ .now = SEC, .mtu = mtu };
	ddps_pmtu_init(&w->m, &lim);
	ddps_pmtu_start(&w->m, 0, w->now);
	w->size = w->m.size;
}

static void check_sctp_pmtu_sane(const struct path *w)
{
	const struct ddps_pmtu *m = &w->m;

	cr_assert(m->size >= m->lim.min && m->size <= m->lim.max, "size %u", m->size);
	cr_assert_eq(m->size & 3, 0);
	cr_assert(!m->probing || m->probing <= m->lim.max);
	cr_assert(m->state != DDPS_PMTU_ERROR || m->fragment);
}

/* What has changed is reported, and nothing else: the window and what is in flight depend on it. */
static unsigned check_pmtu_told(struct path *w, unsigned bits)
{
	const struct ddps_pmtu *m = &w->m;

	cr_assert_eq(!!(bits & DDPS_PMTU_SIZE), m->size != w->size || m->fragment != w->fragment);
	cr_assert_eq(!!(bits & DDPS_PMTU_HOLE), m->black_holes != w->black_holes);
	w->size = m->size;
	w->fragment = m->fragment;
	w->black_holes = m->black_holes;
	return bits;
}

/* Sends a probe if one is due, and carries its answer. */
static bool probe(struct path *w)
{
	uint16_t size = ddps_pmtu_probe(&w->m, w->now);

	if (!size)
		return false;
	/* 9260 has them at least one RTT apart; a probe for a black hole may come between */
	w->probes++;
	ddps_pmtu_probe_sent(&w->m, size, RTO, w->now);
	if (size <= w->mtu) {
		w->now += RTT;
		check_pmtu_told(w, ddps_pmtu_probe_acked(&w->m, size, w->now));
	} else if (w->ptb) {
		w->now += RTT / 2;
		check_pmtu_told(w, ddps_pmtu_ptb(&w->m, (uint16_t)w->mtu, w->now));
	}
	check_sctp_pmtu_sane(w);
	return true;
}

/* One packet of data of the size that is used.  Returns whether it arrives. */
static bool does_pmtu_data_arrive(struct path *w)
{
	uint64_t at = w->now;
	uint16_t size = w->m.size;
	bool arrives = w->m.fragment || size <= w->mtu;

	w->now += RTT;
	w->pn++;
	w->fragments += w->m.fragment;
	if (arrives)
		check_pmtu_told(w, ddps_pmtu_delivered(&w->m, size, w->pn, at, RTT, w->now));
	else
		check_pmtu_told(w, ddps_pmtu_lost(&w->m, size, w->pn, w->now));
	check_sctp_pmtu_sane(w);
	return arrives;
}

static void wait_quietly(struct path *w, uint64_t until)
{
	while (w->now < until) {
		uint64_t at = ddps_pmtu_deadline(&w->m);

		while (probe(w))
			;
		at = ddps_pmtu_deadline(&w->m);
		if (at > until)
			return;
		w->now = at > w->now ? at : w->now;
		check_pmtu_told(w, ddps_pmtu_timer(&w->m, w->now));
		check_sctp_pmtu_sane(w);
	}
}

Test(sctp_pmtu, finds_the_size_of_any_path,
     .description = "6951-5.5-2 6951-5.6-3 6951-5.6-4 9260-7.3-1 8899-6.2-d1")
{
	for (uint32_t mtu = 1200; mtu <= 1500; mtu += 4) {
		struct path w;

		begin_sctp_pmtu(&w, false, 1500, mtu);
		wait_quietly(&w, 200 * SEC);
		cr_expect_eq(w.m.state, DDPS_PMTU_DONE, "MTU %u", mtu);
		cr_expect((uint32_t)w.m.size <= mtu && (uint32_t)w.m.size + 24 > mtu, "MTU %u: %u",
			  mtu, w.m.size);
		cr_expect_leq(w.probes, 50, "MTU %u: %u", mtu, w.probes);
	}
}

/* One at a time, each with a timer of a second at least: RFC 8899 5.1.1. */
Test(sctp_pmtu, probes_take_their_time, .description = "8899-5.1-1 8899-8-1")
{
	struct path w;
	uint16_t size;

	begin_sctp_pmtu(&w, false, 1500, 1200);
	size = ddps_pmtu_probe(&w.m, w.now);
	cr_assert_neq(size, 0);
	ddps_pmtu_probe_sent(&w.m, size, RTO, w.now);
	for (unsigned ms = 0; ms < 1000; ms += 50) {
		cr_assert_eq(ddps_pmtu_probe(&w.m, w.now + ms * MS), 0, "%u", ms);
		check_pmtu_told(&w, ddps_pmtu_timer(&w.m, w.now + ms * MS));
	}
	cr_expect_geq(ddps_pmtu_deadline(&w.m), w.now + SEC);
	ddps_pmtu_init(&w.m, &w.m.lim);
	ddps_pmtu_start(&w.m, 0, w.now);
	size = ddps_pmtu_probe(&w.m, w.now);
	ddps_pmtu_probe_sent(&w.m, size, 3 * SEC, w.now); /* a long path has a longer one */
	cr_expect_geq(ddps_pmtu_deadline(&w.m), w.now + 3 * SEC);
}

/* The largest is asked for first: two probes, two round trips; and then none any more. */
Test(sctp_pmtu, two_probes_where_nothing_is_in_the_way, .description = "8899-5.1-2")
{
	static const uint32_t mtu[] = { 1500, 9000, 65536 };

	for (unsigned i = 0; i < 3; i++) {
		struct path w;

		begin_sctp_pmtu(&w, i == 1, mtu[i], mtu[i]);
		wait_quietly(&w, 2000 * SEC);
		cr_expect_eq(w.probes, 2);
		cr_expect_eq(w.m.size, w.m.lim.max);
		cr_expect((uint32_t)w.m.size + 20 >= (mtu[i] > 65535 ? 65535 : mtu[i]));
		cr_expect_eq(ddps_pmtu_deadline(&w.m), UINT64_MAX);
	}
}

Test(sctp_pmtu, limits, .description = "6951-5.6-1")
{
	struct ddps_pmtu_limits l = ddps_pmtu_limits(false, 65536);

	cr_expect_eq(l.max, 20 + 8 + 65504);
	l = ddps_pmtu_limits(false, 1500);
	cr_expect(l.min == 576 && l.base == 1200 && l.max == 1500);
	l = ddps_pmtu_limits(true, 1500);
	cr_expect(l.min == 1280 && l.base == 1280 && l.max == 1500);
	l = ddps_pmtu_limits(false, 552);
	cr_expect(l.min == 552 && l.base == 552 && l.max == 552);
	l = ddps_pmtu_limits(false, 0);
	cr_expect_eq(l.max, 68);
	l = ddps_pmtu_limits(true, 0);
	cr_expect_eq(l.max, 1280);
}

/* Not even the base passes: fragments, within 3 probe timers; and found again later. */
Test(sctp_pmtu, fragments_below_the_base)
{
	static const uint32_t mtu[] = { 576, 552, 296 };

	for (unsigned i = 0; i < 3; i++) {
		struct path w;

		begin_sctp_pmtu(&w, false, 1500, mtu[i]);
		wait_quietly(&w, w.now + 3 * SEC + RTT);
		cr_expect_eq(w.m.size, 576);
		cr_expect(does_pmtu_data_arrive(&w), "MTU %u", mtu[i]);
		wait_quietly(&w, w.now + 200 * SEC);
		cr_expect(does_pmtu_data_arrive(&w), "MTU %u", mtu[i]);
		cr_expect_eq(w.m.fragment, mtu[i] < 576);
		w.mtu = 1500;
		does_pmtu_data_arrive(&w);
		wait_quietly(&w, w.now + 1000 * SEC);
		cr_expect_eq(w.m.size, 1500, "MTU %u", mtu[i]);
	}
}

/* Large packets vanish, small ones pass: base after three, then what is right. */
Test(sctp_pmtu, black_hole)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 1500, 1500);
	wait_quietly(&w, 2 * SEC);
	w.mtu = 1400;
	for (int i = 0; i < 3; i++)
		cr_expect_not(does_pmtu_data_arrive(&w));
	cr_expect_eq(w.m.size, 1500, "it may be an outage");
	cr_expect_eq(ddps_pmtu_timeout(&w.m, w.now), 0);
	cr_expect_eq(ddps_pmtu_probe(&w.m, w.now), 1200, "now it shows");
	ddps_pmtu_probe_sent(&w.m, 1200, RTO, w.now);
	w.now += RTT;
	cr_expect_eq(check_pmtu_told(&w, ddps_pmtu_probe_acked(&w.m, 1200, w.now)),
		     DDPS_PMTU_SIZE | DDPS_PMTU_HOLE);
	cr_expect_eq(w.m.size, 1200);
	for (int i = 0; i < 200; i++) {
		probe(&w);
		cr_assert(does_pmtu_data_arrive(&w));
		wait_quietly(&w, w.now);
	}
	cr_expect_eq(w.m.size, 1400);
	cr_expect_eq(w.m.black_holes, 1);
}

/* Packets of different sizes vanish: the smallest of them says how wide the hole is. */
Test(sctp_pmtu, a_hole_is_as_wide_as_the_smallest_that_was_lost)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 1500, 1500);
	wait_quietly(&w, 2 * SEC);
	check_pmtu_told(&w, ddps_pmtu_lost(&w.m, 1452, 1, w.now));
	check_pmtu_told(&w, ddps_pmtu_lost(&w.m, 1400, 2, w.now));
	check_pmtu_told(&w, ddps_pmtu_delivered(&w.m, 1300, 3, w.now, RTT, w.now));
	cr_expect_eq(w.m.black_holes, 0);
	check_pmtu_told(&w, ddps_pmtu_lost(&w.m, 1500, 4, w.now));
	cr_expect_eq(w.m.black_holes, 1);
	cr_expect_eq(w.m.fail, 1400);
	cr_expect_eq(w.m.size, 1200);
}

/* The little that a sender had was one packet, sent twice: its T3 and an answer to a small one will do. */
Test(sctp_pmtu, black_hole_of_a_lone_packet)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 1500, 1500);
	wait_quietly(&w, 2 * SEC);
	w.mtu = 1400;
	cr_expect_not(does_pmtu_data_arrive(&w));
	cr_expect_not(does_pmtu_data_arrive(&w));
	cr_expect_eq(ddps_pmtu_timeout(&w.m, w.now), 0);
	cr_expect_eq(w.m.size, 1500, "it may be an outage");
	ddps_pmtu_probe_sent(&w.m, 1200, RTO, w.now);
	w.now += RTT;
	cr_expect_eq(check_pmtu_told(&w, ddps_pmtu_probe_acked(&w.m, 1200, w.now)),
		     DDPS_PMTU_SIZE | DDPS_PMTU_HOLE);
	cr_expect_eq(w.m.size, 1200);
}

Test(sctp_pmtu, random_loss_is_no_black_hole)
{
	struct path w;
	uint64_t seed = 88172645463325252ull;

	begin_sctp_pmtu(&w, false, 1500, 1500);
	wait_quietly(&w, 2 * SEC);
	for (int i = 0; i < 100000; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		w.pn++;
		if (seed % 10 < 3) /* some packets are small */
			check_pmtu_told(&w, ddps_pmtu_lost(&w.m, seed >> 32 & 1 ? 1500 : 100, w.pn,
							   w.now));
		else
			check_pmtu_told(&w, ddps_pmtu_delivered(&w.m, seed >> 32 & 1 ? 1500 : 1300,
								w.pn, w.now, RTT, w.now));
		w.now += MS;
		if (w.m.black_holes)
			break;
	}
	/* three large ones lost in a row, before any large one: that does happen at 30 % */
	cr_expect_leq(w.m.black_holes, 1);
	w.m.black_holes = w.black_holes = 0;
	ddps_pmtu_start(&w.m, 0, w.now);
	w.size = w.m.size;
	wait_quietly(&w, w.now + 2 * SEC);
	for (int i = 0; i < 3000; i++) {
		w.pn++;
		if (i % 3 < 2)
			check_pmtu_told(&w, ddps_pmtu_lost(&w.m, 1500, w.pn, w.now));
		else
			check_pmtu_told(&w,
					ddps_pmtu_delivered(&w.m, 1500, w.pn, w.now, RTT, w.now));
		check_pmtu_told(&w, ddps_pmtu_delivered(&w.m, 100, w.pn, w.now, RTT, w.now));
	}
	cr_expect_eq(w.m.black_holes, 0, "large ones pass, though few");
}

/* An outage is none either: the search begins anew, and ends where it was. */
Test(sctp_pmtu, after_an_outage_the_size_is_found_again)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 1500, 1500);
	wait_quietly(&w, 2 * SEC);
	w.mtu = 0;
	for (int i = 0; i < 20; i++) {
		w.pn++;
		w.now += RTT;
		check_pmtu_told(&w, ddps_pmtu_lost(&w.m, w.m.size, w.pn, w.now));
		if (i % 5 == 4)
			check_pmtu_told(&w, ddps_pmtu_timeout(&w.m, w.now));
		probe(&w);
	}
	wait_quietly(&w, w.now + 10 * SEC);
	w.mtu = 1500;
	for (int i = 0; i < 100; i++) {
		does_pmtu_data_arrive(&w);
		wait_quietly(&w, w.now + SEC);
	}
	cr_expect_eq(w.m.size, 1500);
	cr_expect_not(w.m.fragment);
}

struct ptb {
	const char *what;
	uint16_t mtu, size, probing; /* afterwards */
	bool believed;
};

Test(sctp_pmtu, ptb_never_sets_the_size, .description = "8899-4.6-3 8899-4.6-4 8899-4.6-1")
{
	static const struct ptb done[] = {
		{ "68", 68, 1500, 0, false },
		{ "0", 0, 1500, 0, false },
		{ "as large", 1500, 1500, 0, false },
		{ "larger", 9000, 1500, 0, false },
		{ "smaller", 1400, 1200, 1400, true },
		{ "the base", 1200, 1200, 1492, true },
		{ "below the base", 800, 1200, 1200, true },
	};

	for (unsigned i = 0; i < sizeof done / sizeof *done; i++) {
		const struct ptb *t = &done[i];
		struct path w;

		begin_sctp_pmtu(&w, false, 1500, 1500);
		wait_quietly(&w, 2 * SEC);
		cr_assert_eq(w.m.state, DDPS_PMTU_DONE);
		check_pmtu_told(&w, ddps_pmtu_ptb(&w.m, t->mtu, w.now));
		cr_expect_eq(w.m.size, t->size, "%s: %u", t->what, w.m.size);
		cr_expect_eq(w.m.probing, t->probing, "%s: %u", t->what, w.m.probing);
		cr_expect_eq(w.m.bad_ptb, !t->believed, "%s", t->what);
		check_sctp_pmtu_sane(&w);
	}
}

/* A router that says the truth saves the search. */
Test(sctp_pmtu, honest_ptb_is_quick, .description = "8899-6.2-2 pkdr-icmp-active pkdr-icmp-passive")
{
	struct path w;

	begin_sctp_pmtu(&w, false, 9000, 1400);
	w.ptb = true;
	wait_quietly(&w, 3 * SEC);
	cr_expect_eq(w.m.size, 1400);
}

/* One that lies is not believed for a minute, once a larger probe has passed. */
/* Informed of a size below the base it once began again each round trip, for ever. */
Test(sctp_pmtu, honest_ptb_below_the_base_is_asked_once, .description = "8899-6.2-2")
{
	static const uint16_t mtus[] = { 576, 600, 1000, 1196 };

	for (size_t i = 0; i < sizeof mtus / sizeof *mtus; i++) {
		struct path w;

		begin_sctp_pmtu(&w, false, 9000, mtus[i]);
		w.ptb = true;
		for (unsigned n = 0; n < 100; n++)
			probe(&w);
		cr_assert_leq(w.probes, 6, "%u: %u probes", mtus[i], w.probes);
		cr_assert_eq(w.m.size, mtus[i], "%u: %u", mtus[i], w.m.size);
		cr_assert(!w.m.fragment);
	}
}

Test(sctp_pmtu, lying_ptb_is_found_out)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 1500, 1500);
	wait_quietly(&w, 2 * SEC);
	check_pmtu_told(&w, ddps_pmtu_ptb(&w.m, 1300, w.now));
	cr_expect_eq(w.m.size, 1200);
	wait_quietly(&w, w.now + 30 * SEC);
	cr_expect_geq(w.m.size, 1480);
	check_pmtu_told(&w, ddps_pmtu_ptb(&w.m, 1300, w.now));
	cr_expect_geq(w.m.size, 1480);
	cr_expect_eq(w.m.bad_ptb, 1);
}

Test(sctp_pmtu, tries_larger_ones_again_if_used)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 1500, 1400);
	wait_quietly(&w, 100 * SEC);
	cr_expect_eq(w.m.size, 1400);
	w.mtu = 1500;
	wait_quietly(&w, 2000 * SEC);
	cr_expect_eq(w.m.size, 1400, "nothing was sent meanwhile");
	does_pmtu_data_arrive(&w);
	wait_quietly(&w, w.now + 700 * SEC);
	cr_expect_eq(w.m.size, 1500);
}

Test(sctp_pmtu, device_changes)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 9000, 9000);
	wait_quietly(&w, 2 * SEC);
	cr_expect_eq(w.m.size, 9000);
	check_pmtu_told(&w, ddps_pmtu_local(&w.m, 1500, w.now));
	cr_expect_eq(w.m.size, 1500);
	check_pmtu_told(&w, ddps_pmtu_local(&w.m, 9000, w.now));
	cr_expect_eq(w.m.size, 1500, "to be proved");
	wait_quietly(&w, w.now + SEC);
	cr_expect_eq(w.m.size, 9000);
	check_pmtu_told(&w, ddps_pmtu_local(&w.m, 20, w.now));
	cr_expect_eq(w.m.size, 68);
	check_sctp_pmtu_sane(&w);
}

Test(sctp_pmtu, off_means_silent)
{
	struct path w;

	begin_sctp_pmtu(&w, false, 1500, 1500);
	wait_quietly(&w, 2 * SEC);
	ddps_pmtu_stop(&w.m);
	cr_expect_eq(ddps_pmtu_deadline(&w.m), UINT64_MAX);
	cr_expect_eq(ddps_pmtu_ptb(&w.m, 1300, w.now), 0);
	cr_expect_eq(ddps_pmtu_probe_acked(&w.m, 1500, w.now), 0);
	cr_expect_eq(w.m.size, 1500);
	ddps_pmtu_fix(&w.m, 1000);
	cr_expect_eq(w.m.size, 1000);
}

/* Whatever is reported, in whatever order: sizes stay within the limits. */
Test(sctp_pmtu, any_order_of_events)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t r = seed * 2654435761u + 88172645463325252ull;
		struct path w;

		begin_sctp_pmtu(&w, seed & 1, seed % 3 ? 1500 : 65536, 1500);
		for (int i = 0; i < 500; i++) {
			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			w.now += r % (50 * MS);
			w.mtu = 296 + (uint32_t)(r >> 20) % 2000;
			switch ((r >> 40) % 8) {
			case 0:
				check_pmtu_told(&w,
						ddps_pmtu_ptb(&w.m, (uint16_t)(r >> 24), w.now));
				break;
			case 1:
				check_pmtu_told(&w, ddps_pmtu_timeout(&w.m, w.now));
				break;
			case 2:
				check_pmtu_told(&w,
						ddps_pmtu_probe_acked(
							&w.m, (uint16_t)(r >> 24 & 0xfffc), w.now));
				break;
			case 3:
				check_pmtu_told(&w, ddps_pmtu_lost(&w.m, (uint16_t)(r >> 24),
								   ++w.pn, w.now));
				break;
			case 4:
				w.now += r % (5 * SEC);
				check_pmtu_told(&w, ddps_pmtu_timer(&w.m, w.now));
				break;
			case 5:
				probe(&w);
				break;
			default:
				does_pmtu_data_arrive(&w);
			}
			check_sctp_pmtu_sane(&w);
		}
	}
}
