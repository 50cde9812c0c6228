/* SPDX-License-Identifier: BSD-2-Clause */
/* UC queue pairs. */
#include "ib_qp_fixture.h"

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
