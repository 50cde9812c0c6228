/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 7306 over real sockets. */
#include "support/e2e.h"

static void open_atomic_pair(struct e2e *e, const char *wire, bool crc)
{
	e2e_open(e, wire);
	e->attr.rfc7306 = true;
	e->connect.crc = e->accept.crc = crc;
	e2e_connect(e);
	cr_assert(e->a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->a.error.text);
}

static void all_kinds(const char *wire, bool crc)
{
	static uint64_t cell, got;
	struct ddps_mr *cell_mr, *got_mr;
	struct ddps_sge sge;
	struct ddps_send_wr wr;
	struct ddps_wc wc;
	unsigned seen = 0;
	struct e2e e;

	open_atomic_pair(&e, wire, crc);
	cell = 40;
	cell_mr = e2e_reg(&e, &cell, 8, DDPS_REMOTE_ATOMIC | DDPS_REMOTE_WRITE);
	got_mr = e2e_reg(&e, &got, 8, DDPS_LOCAL_WRITE);
	sge = e2e_sge(&got, 8, got_mr);
	wr = (struct ddps_send_wr){ .op = DDPS_OP_FETCH_ADD,
				    .sge = &sge,
				    .nsge = 1,
				    .stag = ddps_mr_stag(cell_mr),
				    .to = ddps_mr_to(cell_mr),
				    .atomic = { .data = 2 } };
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	wc = e2e_wc(&e);
	cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
	cr_expect_eq(wc.original, 40);
	cr_expect_eq(got, 40);
	cr_expect_eq(cell, 42);
	wr.op = DDPS_OP_CMP_SWAP;
	wr.atomic = (struct ddps_atomic){ 7, UINT64_MAX, 42, UINT64_MAX };
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	wc = e2e_wc(&e);
	cr_expect_eq(wc.op, DDPS_OP_CMP_SWAP);
	cr_expect_eq(wc.original, 42);
	cr_expect_eq(cell, 7);
	cr_assert_eq(ddps_post_recv(e.b.ep, 9, NULL, 0), 0);
	wr.op = DDPS_OP_WRITE_IMM;
	wr.imm[7] = 5;
	got = 1234;
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	while (seen != 3) {
		wc = e2e_wc(&e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		seen |= wc.op == DDPS_OP_RECV ? 1 : 2;
		if (wc.op == DDPS_OP_RECV) {
			cr_expect(wc.has_imm);
			cr_expect_eq(wc.imm[7], 5);
			cr_expect_eq(cell, 1234, "the Write is placed first");
		}
	}
	/* Outstanding at the disconnect: still carried out. */
	wr.op = DDPS_OP_FETCH_ADD;
	wr.atomic = (struct ddps_atomic){ .data = 1 };
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	e2e_disconnect(&e, &e.a);
	wc = e2e_wc(&e);
	cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
	cr_expect_eq(cell, 1235);
	e2e_close(&e);
}

Test(atomic, all_kinds_on_every_wire, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		all_kinds(e2e_wires[i], true);
		all_kinds(e2e_wires[i], false);
	}
}

Test(atomic, a_refused_one_is_blamed_and_the_rest_flushed, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i += 2) {
		struct ddps_send_wr wr = { .op = DDPS_OP_FETCH_ADD, .stag = 1 };
		struct ddps_wc wc;
		struct e2e e;

		open_atomic_pair(&e, e2e_wires[i], true);
		for (wr.wr_id = 0; wr.wr_id < 2; wr.wr_id++)
			cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
		wc = e2e_wc(&e);
		cr_expect_eq(wc.wr_id, 0);
		cr_expect_eq(wc.status, DDPS_WC_REMOTE, "%s", ddps_wc_status_name(wc.status));
		wc = e2e_wc(&e);
		cr_expect_eq(wc.status, DDPS_WC_FLUSHED);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.a.error.triple.code, 0);
		e2e_close(&e);
	}
}

static void open_flush_pair(struct e2e *e, const char *wire, bool peer_has_it)
{
	struct ddps_ep_attr *attr;

	e2e_open(e, wire);
	attr = &e->attr;
	attr->rfc7306 = true;
	attr->flush = peer_has_it;
	e2e_connect(e);
	cr_assert(e->a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->a.error.text);
}

Test(atomic, writes_and_flushes_on_every_wire, .timeout = 60)
{
	static uint64_t cells[64];

	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_send_wr wr = { .imm = { 1, 2, 3, 4, 5, 6, 7, 8 } };
		struct ddps_mr *mr;
		struct ddps_wc wc;
		struct e2e e;

		memset(cells, 0, sizeof cells);
		open_flush_pair(&e, e2e_wires[i], true);
		mr = e2e_reg(&e, cells, sizeof cells, DDPS_REMOTE_WRITE | DDPS_FLUSHABLE);
		wr.stag = ddps_mr_stag(mr);
		wr.to = ddps_mr_to(mr) + 8;
		wr.op = DDPS_OP_FLUSH;
		wr.atomic = (struct ddps_atomic){ .data = 100, .mask = DDPS_FLUSH_VISIBLE };
		cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
		wr.op = DDPS_OP_ATOMIC_WRITE;
		cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
		wc = e2e_wc(&e);
		cr_expect(wc.op == DDPS_OP_FLUSH && wc.status == DDPS_WC_SUCCESS, "%s",
			  e2e_wires[i]);
		wc = e2e_wc(&e);
		cr_expect(wc.op == DDPS_OP_ATOMIC_WRITE && wc.status == DDPS_WC_SUCCESS);
		cr_expect_arr_eq((uint8_t *)&cells[1], wr.imm, 8);
		cr_expect_eq(cells[0] | cells[2], 0);
		e2e_close(&e);
	}
}

Test(atomic, a_flush_that_was_not_agreed_on_is_not_sent, .timeout = 60)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_FLUSH, .atomic.mask = DDPS_FLUSH_VISIBLE };
	struct e2e e;

	open_flush_pair(&e, e2e_wires[0], false);
	cr_expect_eq(ddps_post_send(e.a.ep, &wr), DDPS_E_UNSUPPORTED);
	e2e_close(&e);
}

/* Of the heap, no file would keep anything; also where a region becomes such a one. */
Test(atomic, memory_that_cannot_be_persistent, .timeout = 60)
{
	struct ddps_mr_change to = { .access = DDPS_PERSISTENT };
	struct ddps_mr *mr = NULL;
	static uint8_t octets[64];
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_expect_eq(ddps_mr_reg(e.pd, octets, sizeof octets, DDPS_PERSISTENT, NULL, &mr),
		     DDPS_E_UNSUPPORTED);
	cr_assert_eq(ddps_mr_reg(e.pd, octets, sizeof octets, DDPS_FLUSHABLE, NULL, &mr), 0);
	cr_expect_eq(ddps_mr_change(mr, DDPS_CHANGE_ACCESS, &to), DDPS_E_UNSUPPORTED);
	cr_expect_eq(ddps_mr_dereg(mr), 0);
	e2e_close(&e);
}
