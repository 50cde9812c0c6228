/* SPDX-License-Identifier: BSD-2-Clause */
/* RC and UC queue pairs: two of them, a wire that loses what the test wants, and single packets. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/ib/qp.h"

#define MTU	256u
#define WIRE	1024
#define MS	1000000ull
#define TIMEOUT 14 /* 67 ms */

struct sent {
	struct ddps_ib_pkt p;
	uint8_t data[DDPS_IB_MTU_MAX];
};

/* One end. */
struct end {
	struct ddps_ib_qp_env env;
	struct ddps_ib_qp qp;
	struct sent *out; /* on the wire */
	unsigned n_out;
	unsigned room; /* packets that can be sent until there is none */
	unsigned n_msg, n_failed;
	int err;
	size_t len; /* of the last message */
	uint8_t *last;
	uint64_t sum;
};

static struct end a, b;
static uint64_t now;

static bool on_send(void *user, struct ddps_ib_qp *qp, struct ddps_ib_pkt *p)
{
	struct end *e = user;
	struct sent *s = &e->out[e->n_out];

	cr_assert_eq(qp, &e->qp);
	if (!e->room)
		return false;
	e->room--;
	cr_assert_lt(e->n_out, WIRE);
	s->p = *p;
	s->p.pad = -(unsigned)p->len & 3;
	if (p->len)
		memcpy(s->data, p->data, p->len);
	s->p.data = s->data;
	e->n_out++;
	return true;
}

static void on_message(void *user, struct ddps_ib_qp *qp, const void *data, size_t len, uint64_t t)
{
	struct end *e = user;

	cr_assert(qp == &e->qp && t == now);
	cr_assert_leq(len, 65536);
	e->n_msg++;
	e->len = len;
	if (len)
		memcpy(e->last, data, len);
	for (size_t i = 0; i < len; i++)
		e->sum = e->sum * 31 + e->last[i];
}

static void on_failed(void *user, struct ddps_ib_qp *qp, int err, uint64_t t)
{
	struct end *e = user;

	(void)t;
	cr_assert_eq(qp->state, DDPS_IB_QP_ERR);
	e->n_failed++;
	e->err = err;
}

static const struct ddps_ib_qp_ops ops = { on_send, on_message, on_failed };

static void end_init(struct end *e, bool uc, uint32_t qpn)
{
	*e = (struct end){
		.env = { .ops = &ops, .tx = { .max = 1 << 20 }, .rx = { .max = 1 << 20 } },
		.room = UINT32_MAX
	};
	e->env.user = e;
	e->out = calloc(WIRE, sizeof(*e->out));
	e->last = malloc(65536);
	ddps_ib_qp_init(&e->qp, &e->env, uc, qpn, 65524);
}

static void pair_with(bool uc, uint32_t psn, uint8_t retry, uint8_t rnr)
{
	struct ddps_ib_qp_to to = { .qpn = 0x22,
				    .tx_psn = psn,
				    .rx_psn = 0x777777,
				    .mtu = MTU,
				    .ack_timeout = TIMEOUT,
				    .retry = retry,
				    .rnr_retry = rnr };

	now = 1000 * MS;
	end_init(&a, uc, 0x11);
	end_init(&b, uc, 0x22);
	cr_assert_eq(ddps_ib_qp_ready(&a.qp, &to), 0);
	to.qpn = 0x11;
	to.tx_psn = 0x777777;
	to.rx_psn = psn;
	cr_assert_eq(ddps_ib_qp_ready(&b.qp, &to), 0);
}

static void pair(uint32_t psn)
{
	pair_with(false, psn, 7, 7);
}

static void fini(void)
{
	struct end *both[] = { &a, &b };

	for (unsigned i = 0; i < 2; i++) {
		ddps_ib_qp_fini(&both[i]->qp);
		cr_expect_eq(both[i]->env.tx.used, 0);
		cr_expect_eq(both[i]->env.rx.used, 0);
		free(both[i]->out);
		free(both[i]->last);
	}
}

#define QpTest(name) Test(ib_qp, name, .fini = fini)

/* Packet @i of what @from has sent, to the other. */
static void carry(struct end *from, unsigned i)
{
	struct end *to = from == &a ? &b : &a;
	struct sent s = from->out[i];

	s.p.data = s.data;
	cr_assert_eq(s.p.qpn, to->qp.qpn);
	ddps_ib_qp_rx(&to->qp, &s.p, now);
}

/* All that is on the wire arrives, but @lost of it; @lost counts from the first, -1: nothing. */
static void flow(struct end *from, int lost)
{
	unsigned n = from->n_out;
	struct sent *was = from->out;

	from->out = calloc(WIRE, sizeof(*from->out));
	from->n_out = 0;
	for (unsigned i = 0; i < n; i++) {
		struct end *to = from == &a ? &b : &a;
		struct sent s = was[i];

		s.p.data = s.data;
		if ((int)i != lost)
			ddps_ib_qp_rx(&to->qp, &s.p, now);
	}
	free(was);
}

static void settle(void)
{
	for (unsigned i = 0; a.n_out || b.n_out; i++) {
		cr_assert_lt(i, 1000);
		flow(&a, -1);
		flow(&b, -1);
	}
}

static void tick(struct end *e)
{
	now = ddps_ib_qp_due(&e->qp);
	cr_assert_neq(now, DDPS_IB_NEVER);
	ddps_ib_qp_tick(&e->qp, now);
}

static void send(struct end *e, size_t len)
{
	uint8_t *m = malloc(len + 1);

	for (size_t i = 0; i < len; i++)
		m[i] = (uint8_t)(i * 7 + len);
	cr_assert_eq(ddps_ib_qp_send(&e->qp, m, len, now), 0);
	free(m);
}

static bool arrived(const struct end *e, size_t len)
{
	if (e->len != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (e->last[i] != (uint8_t)(i * 7 + len))
			return false;
	return true;
}

/* IBA volume 1, 9.7.2: as many packets as it needs, all but the last full. */
QpTest(rc_cuts_messages_at_the_mtu)
{
	static const struct {
		size_t len;
		unsigned n;
	} row[] = { { 0, 1 },	    { 1, 1 },	    { MTU - 1, 1 },	{ MTU, 1 },
		    { MTU + 1, 2 }, { 2 * MTU, 2 }, { 2 * MTU + 1, 3 }, { 20 * MTU, 20 } };

	pair(0x100);
	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		send(&a, row[i].len);
		cr_assert_eq(a.n_out, row[i].n, "%zu", row[i].len);
		for (unsigned k = 0; k + 1 < a.n_out; k++) {
			cr_expect_eq(a.out[k].p.len, MTU);
			cr_expect_eq(a.out[k].p.opcode,
				     k ? DDPS_IB_SEND_MIDDLE : DDPS_IB_SEND_FIRST);
		}
		cr_expect_eq(a.out[row[i].n - 1].p.opcode,
			     row[i].n == 1 ? DDPS_IB_SEND_ONLY : DDPS_IB_SEND_LAST);
		cr_expect(a.out[row[i].n - 1].p.ack_req);
		settle();
		cr_expect_eq(b.n_msg, i + 1);
		cr_expect(arrived(&b, row[i].len), "%zu", row[i].len);
		cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER, "all acknowledged");
	}
	cr_expect_eq(b.qp.msn, sizeof(row) / sizeof(*row));
	cr_expect_eq(a.env.stats.qp_again, 0);
}

QpTest(rc_psns_wrap)
{
	pair(0xfffff0);
	for (unsigned i = 0; i < 3; i++)
		send(&a, 20 * MTU);
	settle();
	cr_expect_eq(b.n_msg, 3);
	cr_expect(arrived(&b, 20 * MTU));
	cr_expect_eq(b.qp.epsn, (0xfffff0 + 60) & 0xffffff);
}

/* Each packet of a message lost once, in turn. */
QpTest(rc_loses_nothing)
{
	pair(0xfffffe);
	for (int lost = 0; lost < 10; lost++) {
		send(&a, 10 * MTU);
		flow(&a, lost);
		settle();
		if (lost == 9) { /* nothing behind it tells of the gap */
			cr_expect_eq(b.n_msg, 9);
			tick(&a);
			cr_expect_eq(now - 1000 * MS, 50 * MS);
			settle();
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
	pair(5);
	send(&a, 10 * MTU);
	for (unsigned i = 1; i < 10; i++)
		carry(&a, i);
	cr_assert_eq(b.n_out, 1);
	cr_expect_eq(b.out[0].p.syndrome, 0x60);
	cr_expect_eq(b.out[0].p.psn, 5);
	cr_expect_eq(b.env.stats.qp_gap, 9);
}

QpTest(rc_lost_ack_costs_a_duplicate_only)
{
	pair(5);
	send(&a, 100);
	flow(&a, -1);
	cr_assert_eq(b.n_out, 1);
	flow(&b, 0);
	tick(&a);
	cr_expect_eq(a.n_out, 1);
	settle();
	cr_expect_eq(b.n_msg, 1, "once");
	cr_expect_eq(b.env.stats.qp_duplicate, 1);
	cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER);
}

/* Nothing has come back: one packet asks what is missing, and no more is repeated than that. */
QpTest(rc_repeats_no_more_than_is_missing)
{
	pair(5);
	send(&a, 40 * MTU);
	flow(&a, -1);
	b.n_out = 0; /* all arrived, every answer is lost */
	tick(&a);
	cr_assert_eq(a.n_out, 1);
	cr_expect_eq(a.out[0].p.psn, 5);
	cr_expect(a.out[0].p.ack_req);
	settle();
	cr_expect_eq(a.env.stats.qp_again, 1);
	cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER);
	send(&a, 40 * MTU);
	a.n_out = 0; /* nothing arrived */
	tick(&a);
	cr_assert_eq(a.n_out, 1);
	settle();
	cr_expect_eq(b.n_msg, 2);
	cr_expect_eq(a.env.stats.qp_again, 41);
}

/* 9.7.5.1.2: a duplicate is answered by the ACK of the newest, wanted or not. */
QpTest(rc_duplicate_is_acknowledged)
{
	pair(5);
	send(&a, 3 * MTU);
	for (unsigned i = 0; i < 3; i++)
		carry(&a, i);
	b.n_out = 0;
	carry(&a, 0);
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

	pair(0xffff00);
	while (b.n_msg < 200) {
		struct end *both[] = { &a, &b };

		cr_assert_eq(a.n_failed + b.n_failed, 0);
		for (unsigned k = 0; k < 3 && want < 200 && a.qp.n_msg < 8; k++)
			send(&a, 1 + want++ * 37 % (9 * MTU));
		if (!a.n_out && !b.n_out) {
			cr_assert_lt(wait++, 2000);
			tick(&a);
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
	pair(0);
	for (unsigned i = 0; i < 20; i++)
		send(&a, 10 * MTU);
	cr_expect_eq(a.n_out, DDPS_IB_WINDOW);
	cr_expect(a.out[DDPS_IB_WINDOW - 1].p.ack_req, "or nothing would ever come back");
	settle();
	cr_expect_eq(b.n_msg, 20);
}

QpTest(rc_takes_no_more_than_it_has_room_for)
{
	static const uint8_t m[1000];
	unsigned n = 0;

	pair(0);
	a.env.tx.max = 20000;
	while (!ddps_ib_qp_send(&a.qp, m, sizeof(m), now))
		n++;
	cr_expect_eq(n, 20);
	cr_expect_eq(a.env.tx.refused, 1);
	settle();
	cr_expect_eq(b.n_msg, 20);
	for (n = 0; !ddps_ib_qp_send(&a.qp, "", 0, now); n++)
		;
	cr_expect_eq(n, DDPS_IB_TX_MSGS);
}

QpTest(rc_waits_for_room_on_the_wire)
{
	pair(0);
	a.room = 3;
	send(&a, 10 * MTU);
	send(&a, 10);
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
	settle();
	cr_expect_eq(ddps_ib_qp_due(&a.qp), DDPS_IB_NEVER);
}

/* IBA volume 1, 9.7.6.1.3: timeouts beyond the retry count end it; early repetitions do not. */
/* An ACK for which there was no room twice is sent when there is. */
QpTest(rc_owes_an_ack_until_it_is_sent)
{
	pair(5);
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
	settle();
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
		send(&a, 100);
		while (!a.n_failed && now < 100000 * MS)
			tick(&a);
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
	send(&a, 10 * MTU);
	flow(&a, 3);
	flow(&b, -1);
	cr_expect_eq(a.n_failed, 1);
	cr_expect_eq(a.err, DDPS_E_TIMEDOUT);
}

/* One ACK for what asked for sixteen; the rest have theirs when the batch is over. */
QpTest(acks_may_stand_for_several_packets)
{
	pair(5);
	b.env.late_acks = true;
	for (unsigned i = 0; i < 20; i++)
		send(&a, 10);
	flow(&a, -1);
	cr_expect_eq(b.n_msg, 20);
	cr_expect_eq(b.n_out, 1);
	cr_expect(b.qp.ack_owed);
	ddps_ib_qp_pump(&b.qp, now);
	cr_expect(b.n_out == 2 && !b.qp.ack_owed);
	flow(&b, -1);
	cr_expect_eq(a.qp.n_msg, 0);
	settle();
}

/* No memory for a message of several packets: RNR NAK; the peer waits and comes again. */
Test(ib_qp, rc_receiver_that_is_not_ready, .fini = fini)
{
	pair(9);
	b.env.rx.max = 65523;
	send(&a, 4 * MTU);
	flow(&a, -1);
	cr_assert_eq(b.n_out, 1, "no NAK for what follows");
	cr_expect_eq(b.out[0].p.syndrome & 0xe0, 0x20);
	cr_expect_eq(b.out[0].p.psn, 9);
	flow(&b, -1);
	cr_expect_eq(a.n_out, 0);
	cr_expect_eq(ddps_ib_qp_due(&a.qp), now + 640000);
	b.env.rx.max = 1 << 20;
	tick(&a);
	settle();
	cr_expect_eq(b.n_msg, 1);
	cr_expect_eq(b.env.stats.qp_rnr_tx, 1);
	send(&a, 10); /* one packet needs no memory */
	settle();
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
		send(&a, 4 * MTU);
		for (; !a.n_failed && n < 100; n++) {
			flow(&a, -1);
			flow(&b, -1);
			if (!a.n_failed)
				tick(&a);
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

	pair(0);
	send(&a, 100);
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
	send(&a, 4 * MTU);
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

	pair(0);
	send(&a, 10);
	send(&a, 10);
	settle();
	send(&a, 10);
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
		pair(0);
		send(&a, 10);
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
		pair(0xffffff);
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

	end_init(&a, false, 1);
	end_init(&b, false, 2);
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

/* IBA volume 1, 9.8.2: nobody answers, and a gap costs the messages that it touches. */
QpTest(uc_goes_on_after_a_gap)
{
	for (int lost = 0; lost < 12; lost++) {
		if (lost)
			fini();
		pair_with(true, 0xfffffc, 7, 7);
		for (unsigned i = 0; i < 4; i++)
			send(&a, 3 * MTU + i);
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
	send(&a, 3 * MTU);
	b.qp.epsn = 0;
	flow(&a, -1);
	cr_expect_eq(b.n_msg, 2);
	cr_expect_eq(b.env.rx.refused, 1);
}
