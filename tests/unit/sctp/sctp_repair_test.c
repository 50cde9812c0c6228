/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of a path while a loss is repaired: after a SACK, after a timer, after T3. */
#include "sctp_sent_fixture.h"

#define SMSS 1160u
#define LESS 8119u /* seven tenths of ten packets, in whole octets */

static struct world w;
static struct ddps_sent_path *const p = &w.p[0];

/* Ten packets in flight, a window of ten. */
static void begin_sctp_repair(void)
{
	sent_begin(&w, 1, 1, 1 << 20);
	cr_assert_eq(ddps_sent_smss(p), SMSS);
	p->late = 0;
	p->cc.cwnd = 10 * SMSS;
	p->cc.ssthresh = 5 * SMSS;
	p->cc.phase = DDPS_CC_AVOID;
	for (unsigned i = 0; i < 10; i++) {
		ddps_sent_begin(&w.s, p, w.now);
		cr_assert_eq(ddps_sent_add_new(&w.s, SMSS, SMSS - 16,
					       (void *)((uintptr_t)w.s.next + 7)),
			     0);
		ddps_sent_end(&w.s, 1200, true);
	}
	cr_assert_eq(p->flight, 10 * SMSS);
	w.now += 20 * MS;
}

static void end_sctp_repair(void)
{
	sent_end(&w);
}

TestSuite(sctp_repair, .init = begin_sctp_repair, .fini = end_sctp_repair);

static void resend_sctp_repair(void)
{
	struct ddps_sent_chunk c;

	ddps_sent_begin(&w.s, p, w.now);
	cr_assert(ddps_sent_next_old(&w.s, &c));
	ddps_sent_add_old(&w.s, c.tsn);
	ddps_sent_end(&w.s, 1200, true);
}

static void send_sctp_repair_sack(uint32_t cum, uint16_t from, uint16_t to)
{
	struct ddps_sent_gap gap = { from, to };
	struct ddps_sent_sack k = { .cum = cum, .a_rwnd = 1 << 20, .gaps = &gap, .ngaps = 1 };
	struct ddps_sent_news news;

	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
}

/* RFC 9937 5: what is delivered leaves room, but no more than up to ssthresh, and a packet more where
 * the repair goes on well. */
Test(sctp_repair, the_window_follows_what_is_delivered, .description = "9260-7.2.4-6")
{
	send_sctp_repair_sack(0, 2, 4);
	cr_assert_eq(w.s.nlost, 1, "three packets were sent later");
	cr_assert(p->recovery);
	cr_expect_eq(p->cc.fs, 10 * SMSS);
	cr_expect_eq(p->cc.ssthresh, LESS);
	cr_expect_eq(p->flight, 6 * SMSS);
	cr_expect_eq(p->cc.cwnd, LESS);
	resend_sctp_repair();
	p->cc.ssthresh = 100 * SMSS;
	w.now += 20 * MS;
	send_sctp_repair_sack(4, 2,
			      4); /* that one and three more; what was sent before it is lost */
	cr_expect_eq(w.s.nlost, 3);
	cr_expect_eq(p->flight, 0);
	/* seven were delivered, and one left: none more, since the repair does not go well */
	cr_expect_eq(p->cc.cwnd, 6 * SMSS, "%llu", (unsigned long long)p->cc.cwnd);
}

/* A timer shows a loss, while another packet waits to be resent for its size. */
Test(sctp_repair, a_loss_that_a_timer_shows, .description = "9260-7.2.4-6")
{
	send_sctp_repair_sack(0, 2, 2);
	cr_assert_eq(w.s.nlost, 0, "it may have been overtaken");
	ddps_sent_mark(&w.s, 10);
	w.now = p->reo_at;
	cr_expect_eq(ddps_sent_timer(&w.s, p, w.now), DDPS_SENT_EV_LOST | DDPS_SENT_EV_SEND);
	cr_expect(w.s.nlost == 2 && p->recovery);
	cr_expect_eq(p->cc.fs, 9 * SMSS, "one is delivered");
	cr_expect_eq(p->cc.ssthresh, LESS);
	cr_expect_eq(p->flight, 7 * SMSS);
	cr_expect_eq(p->cc.cwnd, 8 * SMSS, "the first that is resent always goes");
}

/* RFC 5681 3.1: another T3 is no other loss. */
Test(sctp_repair, a_second_t3_reduces_once, .description = "9260-7.2.3-2")
{
	for (unsigned n = 1; n <= 2; n++) {
		p->pto_at = 0;
		w.now = p->t3_at;
		cr_expect(ddps_sent_timer(&w.s, p, w.now) & DDPS_SENT_EV_T3);
		cr_expect_eq(p->t3s, n);
		cr_expect_not(p->recovery);
		cr_expect_eq(p->cc.phase, DDPS_CC_SLOW, "%u", n);
		cr_expect_eq(p->cc.cwnd, SMSS);
		cr_expect_eq(p->cc.ssthresh, LESS);
		cr_expect_eq(p->epi_pn, p->next_pn);
		resend_sctp_repair();
	}
}
