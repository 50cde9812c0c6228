/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef IB_QP_FIXTURE_H
#define IB_QP_FIXTURE_H
/* Two queue pairs, and a wire that loses what the test wants. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/ib/qp.h"

/* not each file of tests needs all of it */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"

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
	size_t gone, gone_sum; /* octets of messages that are no longer kept; of their values */
};

static struct end a, b;
static uint64_t now;

static bool take_ib_qp_send(void *user, struct ddps_ib_qp *qp, struct ddps_ib_pkt *p)
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

static void take_ib_qp_message_fixture(void *user, struct ddps_ib_qp *qp, const void *data,
				       size_t len, uint64_t t)
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

/* Memory that still is: the sanitizer sees what is not. */
static void take_ib_qp_gone(void *user, const uint8_t *data, size_t len)
{
	struct end *e = user;

	e->gone += len;
	for (size_t i = 0; i < len; i++)
		e->gone_sum += data[i];
}

static const struct ddps_ib_qp_ops ops = { .send = take_ib_qp_send,
					   .message = take_ib_qp_message_fixture,
					   .failed = on_failed,
					   .gone = take_ib_qp_gone };

static void init_ib_qp_end(struct end *e, bool uc, uint32_t qpn)
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
	init_ib_qp_end(&a, uc, 0x11);
	init_ib_qp_end(&b, uc, 0x22);
	cr_assert_eq(ddps_ib_qp_ready(&a.qp, &to), 0);
	to.qpn = 0x11;
	to.tx_psn = 0x777777;
	to.rx_psn = psn;
	cr_assert_eq(ddps_ib_qp_ready(&b.qp, &to), 0);
}

static void make_qp_pair(uint32_t psn)
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
static void carry_ib_qp(struct end *from, unsigned i)
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

static void settle_ib_qp(void)
{
	for (unsigned i = 0; a.n_out || b.n_out; i++) {
		cr_assert_lt(i, 1000);
		flow(&a, -1);
		flow(&b, -1);
	}
}

static void tick_ib_qp(struct end *e)
{
	now = ddps_ib_qp_due(&e->qp);
	cr_assert_neq(now, DDPS_IB_NEVER);
	ddps_ib_qp_tick(&e->qp, now);
}

static void send_ib_qp(struct end *e, size_t len)
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

#endif
