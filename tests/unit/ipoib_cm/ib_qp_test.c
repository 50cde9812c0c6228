/* SPDX-License-Identifier: BSD-2-Clause */
/* RC queue pairs: what arrives, what is lost and repeated, and windows. */
#include "ib_qp_fixture.h"

/* IBA volume 1, 9.7.2: as many packets as it needs, all but the last full. */
QpTest(rc_cuts_messages_at_the_mtu)
{
	static const struct {
		size_t len;
		unsigned n;
	} row[] = { { 0, 1 },	    { 1, 1 },	    { MTU - 1, 1 },	{ MTU, 1 },
		    { MTU + 1, 2 }, { 2 * MTU, 2 }, { 2 * MTU + 1, 3 }, { 20 * MTU, 20 } };

	make_qp_pair(0x100);
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		send_ib_qp(&a, row[i].len);
		cr_assert_eq(a.n_out, row[i].n, "%zu", row[i].len);
		for (unsigned k = 0; k + 1 < a.n_out; k++) {
			cr_expect_eq(a.out[k].p.len, MTU);
			cr_expect_eq(a.out[k].p.opcode,
				     k ? DDPS_IB_SEND_MIDDLE : DDPS_IB_SEND_FIRST);
		}
		cr_expect_eq(a.out[row[i].n - 1].p.opcode,
			     row[i].n == 1 ? DDPS_IB_SEND_ONLY : DDPS_IB_SEND_LAST);
		cr_expect(a.out[row[i].n - 1].p.ack_req);
		settle_ib_qp();
		cr_expect_eq(b.n_msg, i + 1);
		cr_expect(arrived(&b, row[i].len), "%zu", row[i].len);
		cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER, "all acknowledged");
	}
	cr_expect_eq(b.qp.msn, sizeof(row) / sizeof(*row));
	cr_expect_eq(a.env.stats.qp_again, 0);
}

/* Before the memory of a message is given back, however that comes, whoever sends packets from it is informed. */
QpTest(what_a_message_was_in_is_said_to_go)
{
	make_qp_pair(0);
	send_ib_qp(&a, 3 * MTU);
	cr_expect_eq(a.gone, 0);
	settle_ib_qp();
	cr_expect_eq(a.gone, 3 * MTU, "acknowledged");
	send_ib_qp(&a, 2 * MTU);
	cr_expect_eq(a.gone, 3 * MTU);
	ddps_ib_qp_stop(&a.qp);
	cr_expect_eq(a.gone, 5 * MTU, "stopped");
	fini();
	pair_with(true, 0, 7, 7);
	send_ib_qp(&a, 3 * MTU + 1);
	cr_expect_eq(a.gone, 3 * MTU + 1, "unreliable: it has left");
}

QpTest(rc_psns_wrap)
{
	make_qp_pair(0xfffff0);
	for (unsigned i = 0; i < 3; i++)
		send_ib_qp(&a, 20 * MTU);
	settle_ib_qp();
	cr_expect_eq(b.n_msg, 3);
	cr_expect(arrived(&b, 20 * MTU));
	cr_expect_eq(b.qp.epsn, (0xfffff0 + 60) & 0xffffff);
}

/* Each packet of a message lost once, in turn. */
QpTest(rc_loses_nothing)
{
	make_qp_pair(0xfffffe);
	for (int lost = 0; lost < 10; lost++) {
		send_ib_qp(&a, 10 * MTU);
		flow(&a, lost);
		settle_ib_qp();
		if (lost == 9) { /* nothing behind it reports the gap */
			cr_expect_eq(b.n_msg, 9);
			tick_ib_qp(&a);
			cr_expect_eq(now - 1000 * MS, 50 * MS);
			settle_ib_qp();
		}
		cr_expect_eq(b.n_msg, (unsigned)lost + 1);
		cr_expect(arrived(&b, 10 * MTU));
	}
	cr_expect_eq(b.env.stats.qp_nak_tx, 9);
	cr_expect_eq(a.env.stats.qp_nak_rx, 9);
	cr_expect_eq(a.n_failed + b.n_failed, 0);
}

/* IBA volume 1, 9.7.5.2.2: one NAK for a gap, with the PSN that is expected. */
QpTest(rc_asks_once_for_what_is_missing)
{
	make_qp_pair(5);
	send_ib_qp(&a, 10 * MTU);
	for (unsigned i = 1; i < 10; i++)
		carry_ib_qp(&a, i);
	cr_assert_eq(b.n_out, 1);
	cr_expect_eq(b.out[0].p.syndrome, 0x60);
	cr_expect_eq(b.out[0].p.psn, 5);
	cr_expect_eq(b.env.stats.qp_gap, 9);
}

QpTest(rc_lost_ack_costs_a_duplicate_only)
{
	make_qp_pair(5);
	send_ib_qp(&a, 100);
	flow(&a, -1);
	cr_assert_eq(b.n_out, 1);
	flow(&b, 0);
	tick_ib_qp(&a);
	cr_expect_eq(a.n_out, 1);
	settle_ib_qp();
	cr_expect_eq(b.n_msg, 1, "once");
	cr_expect_eq(b.env.stats.qp_duplicate, 1);
	cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER);
}

/* Nothing has come back: one packet asks what is missing, and no more is repeated than that. */
QpTest(rc_repeats_no_more_than_is_missing)
{
	make_qp_pair(5);
	send_ib_qp(&a, 40 * MTU);
	flow(&a, -1);
	b.n_out = 0; /* all arrived, every answer is lost */
	tick_ib_qp(&a);
	cr_assert_eq(a.n_out, 1);
	cr_expect_eq(a.out[0].p.psn, 5);
	cr_expect(a.out[0].p.ack_req);
	settle_ib_qp();
	cr_expect_eq(a.env.stats.qp_again, 1);
	cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER);
	send_ib_qp(&a, 40 * MTU);
	a.n_out = 0; /* nothing arrived */
	tick_ib_qp(&a);
	cr_assert_eq(a.n_out, 1);
	settle_ib_qp();
	cr_expect_eq(b.n_msg, 2);
	cr_expect_eq(a.env.stats.qp_again, 41);
}

/* 9.7.5.1.2: a duplicate is answered by the ACK of the newest, wanted or not. */
QpTest(rc_duplicate_is_acknowledged)
{
	make_qp_pair(5);
	send_ib_qp(&a, 3 * MTU);
	for (unsigned i = 0; i < 3; i++)
		carry_ib_qp(&a, i);
	b.n_out = 0;
	carry_ib_qp(&a, 0);
	cr_assert_eq(b.n_out, 1);
	cr_expect_eq(b.out[0].p.psn, 7);
	cr_expect_eq(b.out[0].p.syndrome, 0x1f);
	cr_expect_eq(b.out[0].p.msn, 1);
}

/* A packet out of every @n is lost in both directions; all arrives, in order, once. */
QpTest(rc_under_loss)
{
	uint32_t rng = 1;
	unsigned want = 0, wait = 0;

	make_qp_pair(0xffff00);
	while (b.n_msg < 200) {
		struct end *both[] = { &a, &b };

		cr_assert_eq(a.n_failed + b.n_failed, 0);
		for (unsigned k = 0; k < 3 && want < 200 && a.qp.n_msg < 8; k++)
			send_ib_qp(&a, 1 + want++ * 37 % (9 * MTU));
		if (!a.n_out && !b.n_out) {
			cr_assert_lt(wait++, 2000);
			tick_ib_qp(&a);
		}
		for (unsigned i = 0; i < 2; i++) {
			rng = rng * 1664525 + 1013904223;
			flow(both[i], rng >> 28 ? -1 : (int)(rng >> 20 & 7));
		}
	}
	cr_expect_eq(b.n_msg, 200);
	cr_expect(arrived(&b, 1 + 199 * 37 % (9 * MTU)));
	cr_expect_gt(a.env.stats.qp_again, 0);
}

QpTest(rc_window_is_bounded)
{
	make_qp_pair(0);
	for (unsigned i = 0; i < 20; i++)
		send_ib_qp(&a, 10 * MTU);
	cr_expect_eq(a.n_out, DDPS_IB_WINDOW);
	cr_expect(a.out[DDPS_IB_WINDOW - 1].p.ack_req, "or nothing would ever come back");
	settle_ib_qp();
	cr_expect_eq(b.n_msg, 20);
}

QpTest(rc_takes_no_more_than_it_has_room_for)
{
	static const uint8_t m[1000];
	unsigned n = 0;

	make_qp_pair(0);
	a.env.tx.max = 20000;
	while (!ddps_ib_qp_send(&a.qp, m, sizeof(m), now))
		n++;
	cr_expect_eq(n, 20);
	cr_expect_eq(a.env.tx.refused, 1);
	settle_ib_qp();
	cr_expect_eq(b.n_msg, 20);
	for (n = 0; !ddps_ib_qp_send(&a.qp, "", 0, now); n++)
		;
	cr_expect_eq(n, DDPS_IB_TX_MSGS);
}

QpTest(rc_waits_for_room_on_the_wire)
{
	make_qp_pair(0);
	a.room = 3;
	send_ib_qp(&a, 10 * MTU);
	send_ib_qp(&a, 10);
	cr_expect_eq(a.n_out, 3);
	cr_expect(a.qp.blocked);
	a.room = 1000;
	ddps_ib_qp_pump(&a.qp, now);
	cr_expect_eq(a.n_out, 11);
	b.room = 0;
	flow(&a, -1);
	cr_expect_eq(b.n_msg, 2);
	cr_expect(b.qp.blocked, "an ACK is owed");
	b.room = 1000;
	ddps_ib_qp_pump(&b.qp, now);
	cr_expect_eq(b.n_out, 1, "one for both");
	settle_ib_qp();
	cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER);
}

/* IBA volume 1, 9.7.6.1.3: timeouts beyond the retry count end it; early repetitions do not. */
/* An ACK for which there was no room twice is sent when there is. */
QpTest(rc_owes_an_ack_until_it_is_sent)
{
	make_qp_pair(5);
	cr_assert_eq(ddps_ib_qp_send(&a.qp, "x", 1, now), 0);
	b.room = 0;
	flow(&a, -1);
	cr_expect_eq(b.n_msg, 1);
	cr_expect(b.qp.blocked);
	ddps_ib_qp_pump(&b.qp, now);
	cr_expect(b.qp.blocked, "there is still no room");
	b.room = UINT32_MAX;
	ddps_ib_qp_pump(&b.qp, now);
	cr_expect_eq(b.n_out, 1);
	settle_ib_qp();
	cr_expect_eq(a.qp.n_msg, 0);
}

QpTest(rc_gives_up_when_nobody_answers)
{
	static const uint8_t retries[] = { 0, 1, 7 };

	for (unsigned i = 0; i < 3; i++) {
		uint64_t least = (retries[i] + 1) * (4096ull << TIMEOUT);

		if (i)
			fini();
		pair_with(false, 0, retries[i], 7);
		send_ib_qp(&a, 100);
		while (!a.n_failed && now < 100000 * MS)
			tick_ib_qp(&a);
		cr_expect_eq(a.err, DDPS_E_TIMEDOUT);
		cr_expect_geq(now - 1000 * MS, least);
		cr_expect_eq(a.env.stats.qp_timeouts, retries[i] + 1);
		cr_expect_eq(a.n_failed, 1);
		cr_expect_eq(ddps_ib_qp_send(&a.qp, "x", 1, now), DDPS_E_STATE);
	}
}

QpTest(rc_nak_without_retries_left_ends_it)
{
	pair_with(false, 0, 0, 7);
	send_ib_qp(&a, 10 * MTU);
	flow(&a, 3);
	flow(&b, -1);
	cr_expect_eq(a.n_failed, 1);
	cr_expect_eq(a.err, DDPS_E_TIMEDOUT);
}

/* One ACK for what asked for sixteen; the rest have theirs when the batch is over. */
QpTest(acks_may_stand_for_several_packets)
{
	make_qp_pair(5);
	b.env.late_acks = true;
	for (unsigned i = 0; i < 20; i++)
		send_ib_qp(&a, 10);
	flow(&a, -1);
	cr_expect_eq(b.n_msg, 20);
	cr_expect_eq(b.n_out, 1);
	cr_expect(b.qp.ack_owed);
	ddps_ib_qp_pump(&b.qp, now);
	cr_expect(b.n_out == 2 && !b.qp.ack_owed);
	flow(&b, -1);
	cr_expect_eq(a.qp.n_msg, 0);
	settle_ib_qp();
}

/* ---- UC queue pairs ---- */

/* IBA volume 1, 9.8.2: nobody answers, and a gap costs the messages that it touches. */
QpTest(uc_goes_on_after_a_gap)
{
	for (int lost = 0; lost < 12; lost++) {
		if (lost)
			fini();
		pair_with(true, 0xfffffc, 7, 7);
		for (unsigned i = 0; i < 4; i++)
			send_ib_qp(&a, 3 * MTU + i);
		cr_assert_eq(a.n_out, 15 - 0);
		flow(&a, lost);
		cr_expect_eq(b.n_out, 0);
		cr_expect_eq(b.n_msg, 3, "lost %d", lost);
		cr_expect_eq(b.n_failed, 0);
		cr_expect_eq(a.qp.n_msg, 0);
		cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER);
	}
}

QpTest(uc_drops_what_is_not_legal)
{
	static const uint8_t data[DDPS_IB_MTU_MAX];
	static const uint8_t op[] = { 0x26, 0x20, 0x20, 0x22, 0x24, 0x21, 0x22, 0x24 };
	static const uint16_t len[] = { 64, 100, MTU, 2 * MTU, 5, MTU, 1, 6 };

	pair_with(true, 0, 7, 7);
	for (unsigned i = 0; i < sizeof(op); i++) {
		struct ddps_ib_pkt p = { .opcode = op[i], .psn = i, .data = data, .len = len[i] };

		ddps_ib_qp_rx(&b.qp, &p, now);
	}
	cr_expect_eq(b.n_msg, 2, "the two Onlys");
	cr_expect_eq(b.len, 6);
	cr_expect_eq(b.n_failed + b.n_out, 0);
	b.env.rx.max = 0;
	send_ib_qp(&a, 3 * MTU);
	b.qp.epsn = 0;
	flow(&a, -1);
	cr_expect_eq(b.n_msg, 2);
	cr_expect_eq(b.env.rx.refused, 1);
}

/* ---- queue pairs: timers at their edges, and packets whose length or pad cannot be ---- */

/* 0: it waits without end for what it asks for again and again (IBA volume 1, 9.7.6.1.3). */
QpTest(a_timeout_of_0_never_ends)
{
	make_qp_pair(5);
	a.qp.to.ack_timeout = 0;
	send_ib_qp(&a, 100);
	for (unsigned i = 0; i < 50; i++) {
		a.n_out = 0; /* all is lost */
		tick_ib_qp(&a);
		cr_expect_eq(a.n_out, 1, "asked again");
	}
	cr_expect_eq(a.n_failed, 0);
	cr_expect_eq(a.env.stats.qp_timeouts, 0);
	settle_ib_qp();
	cr_expect(arrived(&b, 100));
}

QpTest(a_tick_before_its_time_does_nothing)
{
	make_qp_pair(5);
	send_ib_qp(&a, 100);
	a.n_out = 0;
	now = ddps_ib_qp_due(&a.qp) - 1;
	ddps_ib_qp_tick(&a.qp, now);
	cr_expect_eq(a.n_out, 0);
	now++;
	ddps_ib_qp_tick(&a.qp, now);
	cr_expect_eq(a.n_out, 1);
	fini();
	init_ib_qp_end(&a, false, 0x11); /* one that is not ready has no timers */
	init_ib_qp_end(&b, false, 0x22);
	ddps_ib_qp_tick(&a.qp, UINT64_MAX);
	cr_expect_eq(a.n_out + a.n_failed, 0);
}

/* An illegal packet ends a reliable connection, and its sender is informed. */
static void illegal(uint8_t op, size_t len, unsigned pad)
{
	static const uint8_t data[DDPS_IB_MTU_MAX + 4];
	const struct ddps_ib_pkt p = {
		.opcode = op, .psn = 5, .data = data, .len = len, .pad = pad
	};

	make_qp_pair(5);
	ddps_ib_qp_rx(&b.qp, &p, now);
	cr_expect_eq(b.n_failed, 1, "opcode %u of %zu octets", op, len);
	cr_expect_eq(b.err, DDPS_E_PROTOCOL);
	cr_expect_eq(b.n_msg, 0);
	cr_assert_eq(b.n_out, 1);
	cr_expect_eq(b.out[0].p.syndrome, DDPS_IB_AETH_NAK | DDPS_IB_NAK_REQUEST);
}

QpTest(lengths_that_cannot_be)
{
	static const struct {
		uint8_t op;
		uint16_t len;
		uint8_t pad;
	} row[] = {
		{ DDPS_IB_SEND_ONLY, DDPS_IB_MTU_MAX + 1, 3 },
		{ DDPS_IB_SEND_FIRST, 256, 1 }, /* only the last packet has a pad */
		{ DDPS_IB_SEND_FIRST, 128, 0 },
		{ DDPS_IB_SEND_FIRST, 300, 0 },
		{ DDPS_IB_SEND_MIDDLE, 256, 0 }, /* of no message */
		{ DDPS_IB_SEND_LAST, 1, 3 },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		if (i)
			fini();
		illegal(row[i].op, row[i].len, row[i].pad);
	}
}

QpTest(an_only_may_have_all_octets_of_a_packet)
{
	static const uint8_t data[DDPS_IB_MTU_MAX];
	const struct ddps_ib_pkt p = {
		.opcode = DDPS_IB_SEND_ONLY, .psn = 5, .data = data, .len = sizeof(data)
	};

	make_qp_pair(5);
	ddps_ib_qp_rx(&b.qp, &p, now);
	cr_expect_eq(b.n_msg, 1);
	cr_expect_eq(b.len, DDPS_IB_MTU_MAX);
	cr_expect_eq(b.n_failed, 0);
}
