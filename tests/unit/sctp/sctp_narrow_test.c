/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths narrower than the base size, and paths that only seem so: RFC 8899 5.1.2, 5.2. */
#include "sctp_net_fixture.h"
#include "sctp_sent_fixture.h"

#define SEC 1000000000ull

static struct ddps_pmtu found(uint16_t size)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	struct ddps_pmtu m;

	ddps_pmtu_init(&m, &lim);
	m.state = DDPS_PMTU_DONE;
	m.size = size;
	return m;
}

/* Loses a packet by T3; what is asked is answered. */
static unsigned timeout(struct ddps_pmtu *m, uint16_t size, uint64_t pn, bool answered)
{
	unsigned bits = ddps_pmtu_lost(m, size, pn, SEC) | ddps_pmtu_timeout(m, SEC);
	uint16_t asked = ddps_pmtu_probe(m, SEC);

	if (!asked || bits)
		return bits;
	ddps_pmtu_probe_sent(m, asked, 1, SEC);
	return answered ? ddps_pmtu_probe_acked(m, asked, SEC) : 0;
}

/* Nothing larger than the base was lost: smaller ones pass, so it is the size. */
Test(sctp_narrow, a_path_below_the_base_size)
{
	static const uint16_t is[] = { 1200, 1000, 580, 576, 200 };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_pmtu m = found(1500);

		cr_expect_eq(timeout(&m, is[i], 1, true), 0, "one may be chance");
		cr_expect_eq(timeout(&m, is[i], 2, true), DDPS_PMTU_SIZE | DDPS_PMTU_HOLE, "%u", i);
		cr_expect(m.state == DDPS_PMTU_ERROR && m.size == 576 && m.fragment);
	}
}

/* The same in silence is an outage: small packets do not become smaller by it. */
Test(sctp_narrow, an_outage_shows_nothing_of_small_packets)
{
	struct ddps_pmtu m = found(1500);

	for (unsigned n = 1; n < 9; n++)
		cr_expect_eq(timeout(&m, 1000, n, false), 0);
	cr_expect_eq(ddps_pmtu_delivered(&m, 200, 9, SEC, SEC, SEC), 0, "it is over");
	cr_expect_eq(ddps_pmtu_delivered(&m, 1000, 10, SEC, SEC, SEC), 0);
	cr_expect(m.size == 1500 && !m.holes && !m.black_holes);
}

/* After each timeout something smaller is asked. */
Test(sctp_narrow, what_is_asked_in_doubt)
{
	static const uint16_t is[][4] = { { 1400, 1200, 576, 128 }, { 1000, 576, 128, 128 } };

	for (unsigned i = 0; i < 2; i++) {
		struct ddps_pmtu m = found(1500);

		for (unsigned n = 1; n < 4; n++) {
			ddps_pmtu_lost(&m, is[i][0], n > 2 ? 2 : n, SEC);
			ddps_pmtu_timeout(&m, SEC);
			cr_expect_eq(m.doubt, is[i][n], "%u %u: %u", i, n, m.doubt);
			cr_expect_eq(ddps_pmtu_sure(&m), i ? 576 : 1200);
		}
	}
}

/* What the search must stay below is the least that the base size would not take. */
Test(sctp_narrow, small_losses_do_not_end_the_search)
{
	struct ddps_pmtu m = found(1500);

	ddps_pmtu_lost(&m, 148, 1, SEC);
	ddps_pmtu_lost(&m, 1500, 2, SEC);
	ddps_pmtu_delivered(&m, 140, 3, SEC, SEC, SEC);
	cr_expect_eq(ddps_pmtu_lost(&m, 1452, 4, SEC), DDPS_PMTU_SIZE | DDPS_PMTU_HOLE);
	cr_expect(m.state == DDPS_PMTU_BASE && m.size == 1200);
	cr_expect_eq(m.fail, 1452);
}

/* One more that is lost after a smaller one has passed may be lost to a T3. */
Test(sctp_narrow, a_timeout_after_a_smaller_one_has_passed)
{
	struct ddps_pmtu m = found(1500);

	cr_expect_eq(ddps_pmtu_lost(&m, 1000, 1, SEC), 0);
	cr_expect_eq(ddps_pmtu_lost(&m, 1000, 2, SEC), 0);
	cr_expect_eq(ddps_pmtu_delivered(&m, 200, 3, SEC, SEC, SEC), 0);
	cr_expect_eq(ddps_pmtu_timeout(&m, SEC), DDPS_PMTU_SIZE | DDPS_PMTU_HOLE);
	cr_expect(m.state == DDPS_PMTU_ERROR && m.size == 576 && m.fragment);
}

/* RFC 8200 section 5: each path of IPv6 takes 1280 octets, so that their loss says nothing of it. */
Test(sctp_narrow, ipv6_has_no_path_below_its_least_size)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(true, 1500);
	struct ddps_pmtu m;

	ddps_pmtu_init(&m, &lim);
	m.state = DDPS_PMTU_DONE;
	m.size = 1500;
	for (unsigned n = 1; n < 9; n++)
		cr_expect_eq(timeout(&m, 1280, n, true), 0);
	cr_expect(m.size == 1500 && !m.holes && !m.black_holes);
}

/* What was taken for lost arrives after all. */
Test(sctp_narrow, losses_that_were_none)
{
	struct ddps_pmtu m = found(1500);

	ddps_pmtu_lost(&m, 1500, 1, SEC);
	ddps_pmtu_lost(&m, 1500, 2, SEC);
	ddps_pmtu_timeout(&m, SEC);
	ddps_pmtu_false(&m);
	cr_expect(!m.holes && !m.t3 && !m.doubt);
	cr_expect_eq(ddps_pmtu_delivered(&m, 200, 3, SEC, SEC, SEC), 0);
	cr_expect_eq(m.size, 1500);
}

/* ---- of the sender ---- */

static void send_sctp_narrow_burst(struct world *w, unsigned n)
{
	w->p[0].cc.cwnd = 1 << 20;
	for (unsigned i = 0; i < n; i++) {
		ddps_sent_begin(&w->s, &w->p[0], w->now);
		cr_assert_eq(ddps_sent_add_new(&w->s, 116, 100, (void *)((uintptr_t)w->s.next + 7)),
			     0);
		ddps_sent_end(&w->s, 156, i + 1 < n);
	}
}

/* T3 was too early: an answer comes sooner after what it resent than any ever did.  No hole is in that, and
 * a SHUTDOWN that brings it announces no window larger than what it took. */
Test(sctp_narrow, a_timeout_that_was_too_early)
{
	struct ddps_sent_sack k = { .cum = 1, .shutdown = true };
	struct ddps_sent_news news;
	struct ddps_sent_path *p;
	struct world w;

	sent_begin(&w, 1, 1, 500);
	p = &w.p[0];
	send_sctp_narrow_burst(&w, 4);
	p->srtt = p->min_rtt = 100 * MS;
	w.now += SEC;
	p->pto_at = 0;
	p->t3_at = w.now;
	cr_assert(ddps_sent_timer(&w.s, p, w.now) & DDPS_SENT_EV_T3);
	cr_assert(p->pmtu.holes == 4 && p->pmtu.doubt == 128);
	ddps_sent_begin(&w.s, p, w.now);
	ddps_sent_add_old(&w.s, 1);
	ddps_sent_end(&w.s, 156, true);
	cr_assert_eq(w.s.out_len, 100);
	w.now += MS;
	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	cr_expect_eq(w.s.out_len, 300, "the others are on their way");
	cr_expect_eq(w.s.a_rwnd, 500);
	cr_expect(!p->pmtu.holes && !p->pmtu.doubt);
	sent_end(&w);
}

/* ---- of whole engines ---- */

static struct {
	struct sn_net net;
	struct ddps_sctp_assoc *a, *b;
	size_t octets;
	bool gone;
} run;

static void ignore_narrow_upcall(void *user)
{
	(void)user;
}

static void take_sctp_narrow_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)user;
	run.octets += m->len;
}

static void take_sctp_narrow_acked(void *user, uint64_t n)
{
	(void)user, (void)n;
}

static void take_sctp_narrow_gone(void *user, const struct ddps_error *e)
{
	(void)user, (void)e;
	run.gone = true;
}

static void send_one_sctp_narrow(size_t len)
{
	static uint8_t buf[2000];
	struct iovec iov = { buf, len };

	cr_assert_eq(ddps_sctp_send(run.a, 0, 7, 0, &iov, 1, run.net.now), 0);
}

static size_t early; /* octets that go with the cookie */

static void take_sctp_narrow_answered(void *user)
{
	(void)user;
	if (early)
		send_one_sctp_narrow(early);
}

static const struct ddps_sctp_up up = { .answered = take_sctp_narrow_answered,
					.up = ignore_narrow_upcall,
					.message = take_sctp_narrow_message,
					.writable = ignore_narrow_upcall,
					.acked = take_sctp_narrow_acked,
					.peer_shutdown = ignore_narrow_upcall,
					.restarted = ignore_narrow_upcall,
					.gone = take_sctp_narrow_gone };

static void take_sctp_narrow_accept(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	run.b = a;
	ddps_sctp_assoc_set_up(a, &up, NULL);
}

static void narrow_path(unsigned mtu)
{
	run.net.node[0].link[0].mtu = run.net.node[1].link[0].mtu = mtu;
}

static void connect_sctp_narrow(void)
{
	struct ddps_sctp_param p = { .port = 5000, .mtu = 1500 };
	struct ddps_sctp_config c;
	struct ddps_sctp_port *l;

	sn_config(&run.net, &c);
	for (unsigned i = 0; i < 2; i++)
		sn_boot(&run.net, i, &c);
	cr_assert_eq(ddps_sctp_listen(run.net.node[1].e, &p, take_sctp_narrow_accept, NULL, &l), 0);
	p.port = 10000;
	cr_assert_eq(ddps_sctp_connect(run.net.node[0].e, &p, run.net.node[1].addr, 1, 5000, 9899,
				       &up, NULL, run.net.now, &run.a),
		     0);
	sn_run(&run.net, 4 * SEC);
	cr_assert(run.b);
}

/* It narrows below the base size, nobody says so, and only what the base would take is on its way. */
Test(sctp_narrow, messages_below_the_base_size)
{
	static const unsigned is[][2] = {
		{ 1000, 1100 }, { 800, 900 }, { 576, 700 }, { 400, 500 }
	};

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		memset(&run, 0, sizeof run);
		early = 0;
		sn_init(&run.net, i);
		connect_sctp_narrow();
		narrow_path(is[i][0]);
		for (unsigned n = 0; n < 3; n++)
			send_one_sctp_narrow(is[i][1]);
		sn_run(&run.net, 6 * SEC);
		cr_expect_eq(run.octets, 3 * is[i][1], "%u: %zu", i, run.octets);
		cr_expect_not(run.gone);
		sn_fini(&run.net);
	}
}

/* COOKIE ECHO with what goes with it is sent once more where the path takes less: in fragments. */
Test(sctp_narrow, a_cookie_that_is_too_large)
{
	memset(&run, 0, sizeof run);
	sn_init(&run.net, 1);
	narrow_path(400);
	early = 330;
	connect_sctp_narrow();
	sn_run(&run.net, 6 * SEC);
	cr_expect_eq(run.octets, 330);
	cr_expect_not(run.gone);
	sn_fini(&run.net);
}
