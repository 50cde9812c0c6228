/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: timers at their edges, and packets whose length or pad cannot be. */
#include "ib_qp_fixture.h"

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
