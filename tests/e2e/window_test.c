/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows, regions that change, Writes that are confirmed: over real sockets, by public calls. */
#include "support/e2e.h"
#include <string.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static uint8_t mem[256], src[64];

static void open_window_pair(struct e2e *e, int wire)
{
	memset(mem, 0, sizeof mem);
	memset(src, 'x', sizeof src);
	e2e_open(e, e2e_wires[wire]);
	e->attr.rfc7306 = e->attr.send_imm = true;
	e2e_connect(e);
	cr_assert(e->a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->a.error.text);
}

/* a writes @len octets; how it ends. */
static struct ddps_wc write_into_window(struct e2e *e, uint32_t stag, uint64_t to, uint32_t len)
{
	struct ddps_mr *mr = e2e_reg(e, src, sizeof src, 0);
	struct ddps_sge sge = e2e_sge(src, len, mr);
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE,
				   .flags = DDPS_WR_PLACED,
				   .sge = &sge,
				   .nsge = 1,
				   .stag = stag,
				   .to = to };
	struct ddps_wc wc;

	cr_assert_eq(ddps_post_send(e->a.ep, &wr), 0);
	do
		wc = e2e_wc(e);
	while (wc.op != DDPS_OP_WRITE);
	cr_assert_eq(ddps_mr_dereg(mr), 0);
	return wc;
}

Test(window, a_placed_write_is_there_when_it_completes, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_mr *mr;
		struct e2e e;

		open_window_pair(&e, i);
		mr = e2e_reg(&e, mem, sizeof mem, DDPS_REMOTE_WRITE);
		for (unsigned n = 0; n < 50; n++) {
			memset(mem, 0, sizeof mem);
			cr_expect_eq(
				write_into_window(&e, ddps_mr_stag(mr), ddps_mr_to(mr), 64).status,
				DDPS_WC_SUCCESS);
			cr_assert_arr_eq(mem, src, 64);
		}
		e2e_close(&e);
	}
}

Test(window, a_refused_placed_write_is_blamed, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_mr *mr;
		struct ddps_wc wc;
		struct e2e e;

		open_window_pair(&e, i);
		mr = e2e_reg(&e, mem, sizeof mem, DDPS_REMOTE_READ);
		wc = write_into_window(&e, ddps_mr_stag(mr), ddps_mr_to(mr), 64);
		cr_expect_eq(wc.status, DDPS_WC_REMOTE, "%s", ddps_wc_status_name(wc.status));
		cr_expect_eq(wc.term.layer, 1);
		cr_expect_eq(mem[0], 0);
		e2e_close(&e);
	}
}

static void bind_window_e2e_window(struct e2e *e, struct ddps_mr *mw, struct ddps_mr *mr,
				   uint32_t len)
{
	struct ddps_sge sge = e2e_sge(mem + 64, len, mr);
	struct ddps_send_wr wr = { .op = DDPS_OP_BIND,
				   .stag = ddps_mr_stag(mw) ^ 1,
				   .sge = &sge,
				   .nsge = 1,
				   .bind = { .window = mw, .access = DDPS_REMOTE_WRITE } };
	struct ddps_wc wc;

	cr_assert_eq(ddps_post_send(e->b.ep, &wr), 0);
	wc = e2e_wc(e);
	cr_expect_eq(wc.op, DDPS_OP_BIND);
	cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
	cr_expect_eq(ddps_mr_stag(mw), wr.stag);
}

/* It gives its part, keeps its region alive, and is gone after the peer's Send with Invalidate. */
Test(window, bound_used_and_invalidated, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_send_wr inv = { .op = DDPS_OP_SEND, .flags = DDPS_WR_INVALIDATE };
		struct ddps_mr *mr, *mw = NULL;
		struct ddps_wc wc;
		struct e2e e;

		open_window_pair(&e, i);
		mr = e2e_reg(&e, mem, sizeof mem, DDPS_LOCAL_WRITE | DDPS_BIND);
		cr_assert_eq(ddps_mw_new(e.pd, false, &mw), 0);
		bind_window_e2e_window(&e, mw, mr, 64);
		cr_expect_eq(ddps_mr_dereg(mr), DDPS_E_BUSY);
		cr_expect_eq(write_into_window(&e, ddps_mr_stag(mw), ddps_mr_to(mw), 64).status,
			     DDPS_WC_SUCCESS);
		cr_expect_arr_eq(mem + 64, src, 64);
		cr_assert_eq(ddps_post_recv(e.b.ep, 1, NULL, 0), 0);
		inv.stag = ddps_mr_stag(mw);
		cr_assert_eq(ddps_post_send(e.a.ep, &inv), 0);
		do
			wc = e2e_wc(&e);
		while (wc.op != DDPS_OP_RECV);
		cr_expect(wc.invalidated);
		cr_expect_eq(wc.inv_stag, inv.stag);
		cr_expect_eq(write_into_window(&e, ddps_mr_stag(mw), ddps_mr_to(mw), 1).status,
			     DDPS_WC_REMOTE);
		cr_expect_eq(ddps_mr_dereg(mr), 0);
		cr_expect_eq(ddps_mr_dereg(mw), 0);
		e2e_close(&e);
	}
}

Test(window, local_invalidate, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_send_wr inv = { .op = DDPS_OP_LOCAL_INV };
		struct ddps_mr *mr;
		struct e2e e;

		open_window_pair(&e, i);
		mr = e2e_reg(&e, mem, sizeof mem, DDPS_REMOTE_WRITE);
		inv.stag = ddps_mr_stag(mr);
		cr_assert_eq(ddps_post_send(e.b.ep, &inv), 0);
		cr_expect_eq(e2e_wc(&e).op, DDPS_OP_LOCAL_INV);
		cr_expect_eq(write_into_window(&e, inv.stag, ddps_mr_to(mr), 1).status,
			     DDPS_WC_REMOTE);
		e2e_close(&e);
	}
}

Test(window, send_with_immediate_data, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND_IMM, .imm = { 1, 2, 3, 4, 5 } };
		struct ddps_sge from, to;
		struct ddps_wc wc;
		struct e2e e;

		open_window_pair(&e, i);
		from = e2e_sge(src, 48, e2e_reg(&e, src, sizeof src, 0));
		to = e2e_sge(mem, 64, e2e_reg(&e, mem, sizeof mem, DDPS_LOCAL_WRITE));
		wr.sge = &from;
		wr.nsge = 1;
		cr_assert_eq(ddps_post_recv(e.b.ep, 7, &to, 1), 0);
		cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
		do
			wc = e2e_wc(&e);
		while (wc.op != DDPS_OP_RECV);
		cr_expect_eq(wc.wr_id, 7);
		cr_expect_eq(wc.len, 48);
		cr_expect(wc.has_imm);
		cr_expect_arr_eq(wc.imm, "\1\2\3\4\xfe\xfe\xfe\xfe", 8);
		cr_expect_arr_eq(mem, src, 48);
		e2e_close(&e);
	}
}

/* Another tagged offset, other memory, other rights, under the STag that the peer knows. */
Test(window, a_region_changes, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_mr_change to = { .addr = mem + 128, .len = 64 };
		struct ddps_mr *mr;
		struct e2e e;

		open_window_pair(&e, i);
		mr = e2e_reg(&e, mem, 64, DDPS_REMOTE_WRITE);
		cr_expect_eq(ddps_mr_place(mr, UINT64_MAX - 62), DDPS_E_INVAL);
		cr_assert_eq(ddps_mr_place(mr, UINT64_C(1) << 63), 0);
		cr_expect_eq(ddps_mr_to(mr), UINT64_C(1) << 63);
		cr_expect_eq(
			write_into_window(&e, ddps_mr_stag(mr), (UINT64_C(1) << 63) + 60, 4).status,
			0);
		cr_expect_arr_eq(mem + 60, "xxxx", 4);
		cr_expect_eq(ddps_mr_change(mr, 0, &to), DDPS_E_INVAL);
		cr_expect_eq(ddps_mr_change(mr, 0x80, &to), DDPS_E_INVAL);
		to.reserved = 1;
		cr_expect_eq(ddps_mr_change(mr, DDPS_CHANGE_MEMORY, &to), DDPS_E_INVAL);
		to.reserved = 0;
		cr_assert_eq(ddps_mr_change(mr, DDPS_CHANGE_MEMORY, &to), 0);
		cr_expect_eq(write_into_window(&e, ddps_mr_stag(mr), ddps_mr_to(mr), 4).status, 0);
		cr_expect_arr_eq(mem + 128, "xxxx", 4);
		cr_assert_eq(ddps_mr_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
		cr_expect_eq(write_into_window(&e, ddps_mr_stag(mr), ddps_mr_to(mr), 4).status,
			     DDPS_WC_REMOTE);
		e2e_close(&e);
	}
}

Test(window, what_a_session_does_not_allow, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_mr *mr;
		struct e2e e;

		open_window_pair(&e, i);
		mr = e2e_reg(&e, mem, sizeof mem, DDPS_REMOTE_WRITE);
		cr_expect_eq(ddps_ep_allow(e.b.ep, DDPS_LOCAL_WRITE), DDPS_E_INVAL);
		cr_assert_eq(ddps_ep_allow(e.b.ep, DDPS_REMOTE_READ), 0);
		cr_expect_eq(write_into_window(&e, ddps_mr_stag(mr), ddps_mr_to(mr), 4).status,
			     DDPS_WC_REMOTE);
		cr_expect_eq(mem[0], 0);
		e2e_close(&e);
	}
}

/* ---- memory that its owner writes all the time, while peers read it and while it is sent ---- */

#define LEN    (1u << 20)
#define OCTETS (8u << 20) /* of each size and operation, but at most */
#define TIMES  200	  /* so often */

struct owner {
	uint64_t *words;
	atomic_bool stop;
	pthread_t thread;
};

/* No order between it and what the library reads is wanted: the sanitizer need not ask for one. */
__attribute__((no_sanitize("thread"))) static void *write_on(void *arg)
{
	struct owner *o = arg;

	for (uint64_t n = 1; !atomic_load_explicit(&o->stop, memory_order_relaxed); n++)
		for (size_t i = 0; i < LEN / sizeof *o->words; i++)
			((volatile uint64_t *)o->words)[i] = n;
	return NULL;
}

/* Reads by the initiator of the responder's memory, or Writes from its own. */
static void operations(struct e2e *e, enum ddps_op op, size_t size, uint8_t *changing,
		       struct ddps_mr *changing_mr, uint8_t *still, struct ddps_mr *still_mr)
{
	bool reads = op == DDPS_OP_READ;
	uint32_t stag = ddps_mr_stag(reads ? changing_mr : still_mr);
	uint64_t to = ddps_mr_to(reads ? changing_mr : still_mr);
	unsigned n = OCTETS / size < TIMES ? (unsigned)(OCTETS / size) : TIMES;

	for (unsigned i = 0; i < n; i++) {
		struct ddps_wc wc;

		cr_assert_eq(e2e_post(&e->a, op, reads ? still : changing, size,
				      reads ? still_mr : changing_mr, stag, to),
			     0);
		wc = e2e_wc(e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS, "%s of %zu octets, the %uth: %s",
			     ddps_op_name(op), size, i, ddps_wc_status_name(wc.status));
	}
}

static void every_size(const char *wire, bool markers)
{
	struct owner o = { .words = aligned_alloc(64, LEN) };
	uint8_t *still = calloc(1, LEN);
	struct ddps_mr *changing_mr, *still_mr;
	struct e2e e;

	cr_assert(o.words && still);
	memset(o.words, 0, LEN);
	e2e_open(&e, wire);
	e.connect.markers = e.accept.markers = markers;
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	changing_mr = e2e_reg(&e, o.words, LEN, DDPS_REMOTE_READ);
	still_mr = e2e_reg(&e, still, LEN, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE);
	cr_assert_eq(pthread_create(&o.thread, NULL, write_on, &o), 0);
	for (size_t size = 64; size <= LEN; size *= 4) {
		operations(&e, DDPS_OP_READ, size, (uint8_t *)o.words, changing_mr, still,
			   still_mr);
		operations(&e, DDPS_OP_WRITE, size, (uint8_t *)o.words, changing_mr, still,
			   still_mr);
	}
	e2e_disconnect(&e, &e.a);
	atomic_store(&o.stop, true);
	pthread_join(o.thread, NULL);
	e2e_close(&e);
	free(o.words);
	free(still);
}

E2E_WIRES(changing, attack_12a_memory_that_changes_while_it_is_sent_ends_no_session)
{
	every_size(wire, false);
	if (!strncmp(wire, "tcp", 3))
		every_size(wire, true);
}
