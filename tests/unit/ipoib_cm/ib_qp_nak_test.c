/* SPDX-License-Identifier: BSD-2-Clause */
/* RC queue pairs: NAKs, receivers that are not ready, what is not legal, and states. */
#include "ib_qp_fixture.h"

/* No memory for a message of several packets: RNR NAK; the peer waits and comes again. */
Test(ib_qp, rc_receiver_that_is_not_ready, .fini = fini)
{
	make_qp_pair(9);
	b.env.rx.max = 65523;
	send_ib_qp(&a, 4 * MTU);
	flow(&a, -1);
	cr_assert_eq(b.n_out, 1, "no NAK for what follows");
	cr_expect_eq(b.out[0].p.syndrome & 0xe0, 0x20);
	cr_expect_eq(b.out[0].p.psn, 9);
	flow(&b, -1);
	cr_expect_eq(a.n_out, 0);
	cr_expect_eq(ddps_ib_qp_due(&a.qp), now + 640000);
	b.env.rx.max = 1 << 20;
	tick_ib_qp(&a);
	settle_ib_qp();
	cr_expect_eq(b.n_msg, 1);
	cr_expect_eq(b.env.stats.qp_rnr_tx, 1);
	send_ib_qp(&a, 10); /* one packet needs no memory */
	settle_ib_qp();
	cr_expect_eq(b.n_msg, 2);
}

/* 9.7.5.2.8: 7 is without end, else it is counted. */
QpTest(rc_counts_rnr_naks)
{
	for (uint8_t rnr = 0; rnr <= 7; rnr++) {
		unsigned n = 0;

		if (rnr)
			fini();
		pair_with(false, 9, 7, rnr);
		b.env.rx.max = 0;
		send_ib_qp(&a, 4 * MTU);
		for (; !a.n_failed && n < 100; n++) {
			flow(&a, -1);
			flow(&b, -1);
			if (!a.n_failed)
				tick_ib_qp(&a);
		}
		cr_expect_eq(n, rnr == 7 ? 100 : rnr + 1);
		if (rnr < 7)
			cr_expect_eq(a.err, DDPS_E_BUSY);
	}
}

/* Table 45 of 9.7.5.2.8, in hundredths of a millisecond. */
QpTest(rc_rnr_timers)
{
	static const uint32_t cms[32] = { 65536, 1,    2,    3,	    4,	   6,	  8,	 12,
					  16,	 24,   32,   48,    64,	   96,	  128,	 192,
					  256,	 384,  512,  768,   1024,  1536,  2048,	 3072,
					  4096,	 6144, 8192, 12288, 16384, 24576, 32768, 49152 };

	make_qp_pair(0);
	send_ib_qp(&a, 100);
	for (uint8_t i = 0; i < 32; i++) {
		struct ddps_ib_pkt p = { .opcode = DDPS_IB_ACK, .syndrome = 0x20 | i };

		ddps_ib_qp_rx(&a.qp, &p, now);
		cr_expect_eq(ddps_ib_qp_due(&a.qp), now + cms[i] * 10000ull, "%u", i);
	}
}

/* Linux sends a NAK for the packets behind the one that found nobody ready. */
QpTest(rc_nak_during_an_rnr_wait_is_no_news)
{
	struct ddps_ib_pkt rnr = { .opcode = DDPS_IB_ACK, .syndrome = 0x20 | 12 };
	struct ddps_ib_pkt nak = { .opcode = DDPS_IB_ACK, .syndrome = 0x60 };

	pair_with(false, 0, 0, 7);
	send_ib_qp(&a, 4 * MTU);
	a.n_out = 0;
	ddps_ib_qp_rx(&a.qp, &rnr, now);
	ddps_ib_qp_rx(&a.qp, &nak, now);
	cr_expect_eq(a.n_out, 0);
	cr_expect_eq(a.n_failed, 0);
}

/* Whoever acknowledges what was never sent, or what is done, changes nothing. */
QpTest(rc_answers_out_of_the_window_are_dropped)
{
	static const uint32_t psn[] = { 3, 0x800000, 4, 0x7fffff, 0xffffff };
	static const uint8_t syndrome[] = { 0x1f, 0x20, 0x60, 0x61, 0x40, 0xff };

	make_qp_pair(0);
	send_ib_qp(&a, 10);
	send_ib_qp(&a, 10);
	settle_ib_qp();
	send_ib_qp(&a, 10);
	a.n_out = 0;
	for (unsigned i = 0; i < sizeof(psn) / sizeof(*psn); i++)
		for (unsigned k = 0; k < sizeof(syndrome); k++) {
			struct ddps_ib_pkt p = { .opcode = DDPS_IB_ACK,
						 .psn = psn[i],
						 .syndrome = syndrome[k] };

			ddps_ib_qp_rx(&a.qp, &p, now);
		}
	cr_expect_eq(a.n_failed, 0);
	cr_expect_eq(a.n_out, 0);
	cr_expect_eq(a.qp.una, 2);
}

QpTest(rc_fatal_naks)
{
	for (uint8_t code = 1; code < 4; code++) {
		struct ddps_ib_pkt p = { .opcode = DDPS_IB_ACK,
					 .syndrome = (uint8_t)(0x60 | code) };

		if (code > 1)
			fini();
		make_qp_pair(0);
		send_ib_qp(&a, 10);
		ddps_ib_qp_rx(&a.qp, &p, now);
		cr_expect_eq(a.n_failed, 1);
		cr_expect_eq(a.err, DDPS_E_PROTOCOL);
		cr_expect_eq(a.env.tx.used, 0);
	}
}

struct bad {
	uint8_t op[3];
	uint16_t len[3];
	unsigned n;
	int err;
};

/* 9.7.4.1: what the order, the length or the operation forbids ends the connection by a NAK. */
QpTest(rc_refuses_what_is_not_legal)
{
	static const struct bad row[] = {
		{ { 0x01 }, { MTU }, 1, DDPS_E_PROTOCOL },		  /* Middle first */
		{ { 0x02 }, { 1 }, 1, DDPS_E_PROTOCOL },		  /* Last first */
		{ { 0x00, 0x00 }, { MTU, MTU }, 2, DDPS_E_PROTOCOL },	  /* First twice */
		{ { 0x00, 0x04 }, { MTU, 1 }, 2, DDPS_E_PROTOCOL },	  /* Only between */
		{ { 0x00 }, { MTU - 4 }, 1, DDPS_E_PROTOCOL },		  /* not the MTU */
		{ { 0x00, 0x01 }, { MTU, 2 * MTU }, 2, DDPS_E_PROTOCOL }, /* another MTU */
		{ { 0x00, 0x02 }, { MTU, 0 }, 2, DDPS_E_PROTOCOL },	  /* an empty Last */
		{ { 0x00, 0x02 }, { MTU, MTU + 4 }, 2, DDPS_E_PROTOCOL }, /* a long Last */
		{ { 0x06 }, { MTU }, 1, DDPS_E_PROTOCOL },		  /* RDMA Write */
		{ { 0x0c }, { 0 }, 1, DDPS_E_PROTOCOL },		  /* RDMA Read */
		{ { 0x13 }, { 0 }, 1, DDPS_E_PROTOCOL },		  /* atomic */
		{ { 0x17 }, { 4 }, 1, DDPS_E_PROTOCOL },		  /* invalidates a key */
		{ { 0x00, 0x01, 0x02 }, { MTU, MTU, 1 }, 3, DDPS_E_TOO_LONG },
		{ { 0x04 }, { 2 * MTU + 1 }, 1, DDPS_E_TOO_LONG },
	};
	static const uint8_t data[DDPS_IB_MTU_MAX];

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		if (i)
			fini();
		make_qp_pair(0xffffff);
		b.qp.rx_max = 2 * MTU;
		for (unsigned k = 0; k < row[i].n; k++) {
			struct ddps_ib_pkt p = { .opcode = row[i].op[k],
						 .psn = (0xffffff + k) & 0xffffff,
						 .data = data,
						 .len = row[i].len[k] };

			cr_expect_eq(b.n_failed, 0, "row %u", i);
			ddps_ib_qp_rx(&b.qp, &p, now);
		}
		cr_expect_eq(b.n_failed, 1, "row %u", i);
		cr_expect_eq(b.err, row[i].err, "row %u", i);
		cr_expect_eq(b.n_msg, 0);
		cr_assert_eq(b.n_out, 1, "row %u", i);
		cr_expect_eq(b.out[0].p.syndrome, 0x61);
		cr_expect_eq(b.out[0].p.psn, (0xffffff + row[i].n - 1) & 0xffffff);
		flow(&b, -1);
	}
}

QpTest(states)
{
	struct ddps_ib_qp_to to = { .qpn = 1, .mtu = 300 };
	struct ddps_ib_pkt p = { .opcode = DDPS_IB_SEND_ONLY };

	init_ib_qp_end(&a, false, 1);
	init_ib_qp_end(&b, false, 2);
	cr_expect_eq(ddps_ib_qp_send(&a.qp, "x", 1, now), DDPS_E_STATE);
	ddps_ib_qp_rx(&a.qp, &p, now);
	cr_expect_eq(a.env.stats.qp_bad, 1);
	cr_expect_eq(ddps_ib_qp_ready(&a.qp, &to), DDPS_E_INVAL);
	to.mtu = 2048;
	cr_expect_eq(ddps_ib_qp_ready(&a.qp, &to), 0);
	cr_expect_eq(ddps_ib_qp_ready(&a.qp, &to), DDPS_E_STATE);
	p.opcode |= DDPS_IB_UC; /* the other transport */
	ddps_ib_qp_rx(&a.qp, &p, now);
	cr_expect_eq(a.env.stats.qp_bad, 2);
	ddps_ib_qp_stop(&a.qp);
	p.opcode = DDPS_IB_SEND_ONLY;
	ddps_ib_qp_rx(&a.qp, &p, now);
	cr_expect_eq(a.env.stats.qp_bad, 3);
	cr_expect_eq(a.n_out + a.n_msg + a.n_failed, 0);
}
