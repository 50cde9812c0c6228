/* SPDX-License-Identifier: BSD-2-Clause */
/* What a SACK, or a router, changes in a path. */
#include "sctp_sent_fixture.h"
#include "unit/mem_fixture.h"

static struct world w;
static struct ddps_sent_path *const p = &w.p[0];

static void begin_sctp_news(void)
{
	sent_begin(&w, 1, 1, 1000000);
	p->late = 0;
}

static void end_sctp_news(void)
{
	sent_end(&w);
}

TestSuite(sctp_news, .init = begin_sctp_news, .fini = end_sctp_news);

static void begin_news_again(void)
{
	end_sctp_news();
	begin_sctp_news();
}

static void send_sctp_news_packets(unsigned n)
{
	for (; n; n--) {
		ddps_sent_begin(&w.s, p, w.now);
		cr_assert_eq(ddps_sent_add_new(&w.s, 116, 100, (void *)((uintptr_t)w.s.next + 7)),
			     0);
		ddps_sent_end(&w.s, 156, true);
	}
}

static void send_sctp_news_sack(uint32_t cum, uint32_t a_rwnd, uint16_t from, uint16_t to)
{
	struct ddps_sent_gap gap = { from, to };
	struct ddps_sent_sack k = {
		.cum = cum, .a_rwnd = a_rwnd, .gaps = &gap, .ngaps = from != 0
	};
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
}

/* The probe of the tail begins anew with each SACK that brings something; not where losses are reported. */
Test(sctp_news, when_the_tail_is_probed_next)
{
	send_sctp_news_packets(4);
	w.now += 50 * MS;
	p->pto_at = 0;
	send_sctp_news_sack(1, 1000000, 0, 0);
	cr_assert_eq(p->srtt, 50 * MS);
	cr_expect_eq(p->pto_at, w.now + 100 * MS, "two RTTs");
	cr_expect_eq(p->t3_at, w.now + ddps_sent_rto(&w.s, p));
	w.now += MS;
	send_sctp_news_sack(1, 1000000, 2, 2);
	cr_expect_eq(p->pto_at, 0, "RACK will see");
}

/* What was sent before the highest that has arrived, and arrives later, has been overtaken. */
Test(sctp_news, who_was_overtaken)
{
	for (unsigned late = 0; late < 2; late++, begin_news_again()) {
		send_sctp_news_packets(4);
		w.now += 50 * MS;
		send_sctp_news_sack(1, 1000000, 0, 0);
		cr_expect_eq(p->fack, 1);
		w.now += MS;
		if (late)
			send_sctp_news_sack(1, 1000000, 2, 2);
		else
			send_sctp_news_sack(2, 1000000, 0, 0);
		cr_expect_eq(p->fack, late ? 3 : 2);
		cr_expect(!p->reord_seen);
		w.now += MS;
		send_sctp_news_sack(3, 1000000, 0, 0);
		cr_expect_eq(p->fack, 3);
		cr_expect_eq(p->reord_seen, late);
	}
}

/* A chunk more costs a step more, however it is acknowledged. */
Test(sctp_news, what_a_sack_costs)
{
	uint64_t cost[2][2];

	for (unsigned gaps = 0; gaps < 2; gaps++)
		for (unsigned n = 0; n < 2; n++, begin_news_again()) {
			uint64_t was;

			send_sctp_news_packets(9);
			was = w.s.steps;
			if (gaps)
				send_sctp_news_sack(0, 1000000, 2, n ? 6 : 2);
			else
				send_sctp_news_sack(n ? 5 : 1, 1000000, 0, 0);
			cost[gaps][n] = w.s.steps - was;
		}
	cr_expect_eq(cost[0][1] - cost[0][0], 4);
	cr_expect_geq(cost[1][1] - cost[1][0], 4);
}

/* The chunk that asks for the window has its answer when the window would take it. */
Test(sctp_news, which_window_answers, .description = "9260-6.2.1-1")
{
	static const struct {
		uint32_t a_rwnd;
		bool still;
	} is[] = { { 0, true }, { 99, true }, { 100, false }, { 101, false } };

	for (unsigned k = 0; k < 4; k++, begin_news_again()) {
		send_sctp_news_packets(1);
		w.s.zero_out = true;
		w.s.zero_tsn = 1;
		w.s.zero_n = 3;
		send_sctp_news_sack(0, is[k].a_rwnd, 0, 0);
		cr_expect_eq(w.s.zero_out, is[k].still, "%u", k);
		cr_expect_eq(w.s.zero_n, is[k].still ? 3 : 0, "%u", k);
		cr_expect_eq(w.s.a_rwnd, is[k].a_rwnd);
	}
}

/* A router names the size that is in use while a larger one is asked for: that ends the search. */
Test(sctp_news, a_router_ends_the_search, .description = "8899-6.2-2")
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	struct ddps_pmtu m;
	uint16_t size;

	ddps_pmtu_init(&m, &lim);
	ddps_pmtu_start(&m, 0, 1000 * MS);
	cr_assert_eq(ddps_pmtu_probe(&m, 1000 * MS), 1200);
	ddps_pmtu_probe_sent(&m, 1200, 0, 1000 * MS);
	ddps_pmtu_probe_acked(&m, 1200, 1010 * MS);
	size = ddps_pmtu_probe(&m, 1010 * MS);
	cr_assert_eq(size, 1500);
	ddps_pmtu_probe_sent(&m, size, 0, 1010 * MS);
	cr_expect(m.out);
	cr_expect_eq(ddps_pmtu_ptb(&m, 1200, 1020 * MS), 0, "nothing has changed");
	cr_expect_eq(m.state, DDPS_PMTU_DONE);
	cr_expect(!m.out);
	cr_expect_eq(m.probing, 0);
	cr_expect_eq(m.fail, 1500);
	cr_expect_eq(m.size, 1200);
	cr_expect_eq(ddps_pmtu_deadline(&m), 601020 * MS, "ten minutes later");
	cr_expect_eq(ddps_pmtu_probe(&m, 601019 * MS), 0);
}

/* What arrives too soon for what was resent is the original: then nothing was lost, and a probe of it
 * was for nothing. */
Test(sctp_news, an_original_that_arrives_behind_its_probe)
{
	for (unsigned tlp = 0; tlp < 2; tlp++, begin_news_again()) {
		struct ddps_sent_slot *c;

		send_sctp_news_packets(2);
		p->srtt = p->min_rtt = 80 * MS;
		w.now += 81 * MS;
		c = ddps_sent_slot(&w.s, 1);
		c->nsent = 2;
		c->sent_at = w.now - 69 * MS; /* less than seven eighths */
		c->flags = tlp ? SLOT_TLP : 0;
		p->tlp_out = true;
		p->tlp_tsn = 2;
		send_sctp_news_sack(1, 1000000, 0, 0);
		cr_expect_eq(p->tlp_out, !tlp);
		cr_expect_eq(p->rack_pn, 0, "no evidence");
	}
}

/* Without memory for its blocks a SACK is as one that was lost, and leaves nothing. */
Test(sctp_news, blocks_that_find_no_memory)
{
	for (unsigned n = 1; n <= 2; n++, begin_news_again()) {
		long before;

		send_sctp_news_packets(4);
		before = mem_live();
		mem_fail(n);
		send_sctp_news_sack(0, 1000000, 2, 3);
		cr_expect(mem_failed());
		mem_fail(0);
		cr_expect_eq(mem_live(), before);
		cr_expect_eq(p->nsacked, 0);
		send_sctp_news_sack(0, 1000000, 2, 3);
		cr_expect_eq(p->nsacked, 2);
	}
}

/* For ten milliseconds behind a rest of the host, its rest is not taken for the path's. */
Test(sctp_news, what_is_found_behind_a_rest, .description = "9260-6.3.1-1")
{
	static const struct {
		uint64_t behind, srtt;
	} is[] = { { 8 * MS, 10 * MS },
		   { 9 * MS, 10 * MS },
		   { 10 * MS, 11 * MS },
		   { 10 * MS + 1, 510 * MS + 1 } };
	const struct ddps_sent_conf *was;
	struct ddps_sent_conf conf;

	for (unsigned k = 0; k < 4; k++) {
		was = w.s.conf;
		conf = *was;
		w.s.conf = &conf;
		send_sctp_news_packets(1);
		p->min_rtt = 10 * MS;
		conf.rest_from = w.now + MS;
		conf.rest_to = w.now + 500 * MS;
		w.now = conf.rest_to + is[k].behind;
		send_sctp_news_sack(1, 1000000, 0, 0);
		/* no less than the shortest */
		cr_expect_eq(p->srtt, is[k].srtt, "%u: %llu", k, (unsigned long long)p->srtt);
		w.s.conf = was;
		begin_news_again();
	}
}
