/* SPDX-License-Identifier: BSD-2-Clause */
/* More of what programs do: queues that are shared, atomics, windows, Sends that wait. */
#include "fault/fault.h"
#include "sim/kern.h"
#include <string.h>

#define NARROW 3000u /* octets of a stream that are on their way: less than a message */
#define WHILE  5     /* ms, until all that can come has come */

/* Whether the @n pieces of dst are the first one of src. */
static bool pieces_are(const struct fault_world *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (memcmp(w->dst + i * FAULT_SMALL, w->src, FAULT_SMALL))
			return false;
	return true;
}

static struct ddps_sge source(struct fault_world *w)
{
	return fault_piece(w->src, FAULT_SMALL, w->from);
}

static struct ddps_sge sink(struct fault_world *w, uint32_t i)
{
	return fault_piece(w->dst + i * FAULT_SMALL, FAULT_SMALL, w->to);
}

/* ---- a shared receive queue ---- */

static int fill_more_sweep_queue(struct fault_world *w, uint32_t n)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		struct ddps_sge sge = sink(w, i);

		err = ddps_post_srq_recv(w->srq, i, &sge, 1);
		w->posted += !err;
	}
	return err ? err : ddps_srq_arm(w->srq, 1);
}

/* Messages wait for the queue, which says that it is empty again. */
int fault_shared(struct fault_world *w)
{
	int err = fault_begin(w);

	for (unsigned i = 0; !err && i < w->neps; i++) {
		err = fault_post(w, w->a[i], DDPS_OP_SEND, source(w), NULL, 0);
		if (!err)
			err = fault_post(w, w->a[i], DDPS_OP_SEND_IMM, source(w), NULL, 0);
	}
	if (!err)
		err = fault_drive(w, WHILE);
	if (!err)
		err = fill_more_sweep_queue(w, 2 * w->neps);
	if (!err)
		err = fault_completions(w, w->posted);
	if (!err && !pieces_are(w, 2 * w->neps))
		return SILENT;
	while (!err && !w->lows)
		err = fault_event(w);
	return err ? err : fault_tear_down(w);
}

/* ---- atomics and immediate data ---- */

static uint64_t cell[2]; /* the peer's, and what it was */

static int atomic_wr(struct fault_world *w, enum ddps_op op, struct ddps_mr *mr, uint64_t data)
{
	struct ddps_sge sge = { &cell[1], sizeof cell[1], ddps_mr_stag(mr) };
	const struct ddps_send_wr wr = {
		.op = op,
		.sge = &sge,
		.nsge = 1,
		.stag = ddps_mr_stag(mr),
		.to = ddps_mr_to(mr),
		.imm = "1234567",
		.atomic = { data, op == DDPS_OP_CMP_SWAP ? UINT64_MAX : 0, FAULT_READS,
			    UINT64_MAX },
	};

	return fault_request(w, w->a[0], &wr);
}

/* Of the two receives, whose Sends had data behind them. */
static int immediate(struct fault_world *w)
{
	unsigned told = 0;
	struct ddps_wc wc;
	int err = 0;

	while (!err && w->posted) {
		err = fault_one_completion(w, &wc);
		if (!err && wc.status)
			err = DDPS_E_CLOSED;
		told += !err && wc.has_imm && !memcmp(wc.imm, "1234567", 8);
	}
	return !err && told != 2 ? SILENT : err;
}

/* More of them than the inbound queue holds at first, between Reads. */
int fault_atomics(struct fault_world *w)
{
	struct ddps_mr *mr = NULL;
	int err = fault_begin(w);

	cell[0] = cell[1] = 0;
	if (!err)
		err = ddps_mr_reg(w->pd, cell, sizeof cell,
				  DDPS_LOCAL_WRITE | DDPS_REMOTE_ATOMIC | DDPS_REMOTE_WRITE, NULL,
				  &mr);
	for (uint32_t i = 0; !err && i < FAULT_READS; i++) {
		err = atomic_wr(w, DDPS_OP_FETCH_ADD, mr, 1);
		if (!err && i % 8 == 0)
			err = fault_post(w, w->a[0], DDPS_OP_READ, sink(w, 0), w->from, 0);
	}
	if (!err)
		err = fault_completions(w, w->posted);
	if (!err && (cell[0] != FAULT_READS || cell[1] != FAULT_READS - 1 || !pieces_are(w, 1)))
		return SILENT;
	if (!err)
		err = atomic_wr(w, DDPS_OP_CMP_SWAP, mr, 7);
	if (!err)
		err = fault_completions(w, 1);
	if (!err && (cell[0] != 7 || cell[1] != FAULT_READS))
		return SILENT;
	for (int i = 0; !err && i < 2; i++)
		err = fault_receive(w, w->b[0], sink(w, 0));
	if (!err)
		err = atomic_wr(w, DDPS_OP_WRITE_IMM, mr, 0);
	if (!err)
		err = fault_request(w, w->a[0],
				    &(struct ddps_send_wr){ .op = DDPS_OP_IMM, .imm = "1234567" });
	if (!err)
		err = immediate(w);
	if (!err && cell[0] != FAULT_READS)
		return SILENT;
	return err ? err : fault_tear_down(w);
}

/* ---- windows and regions that change ---- */

static int bind_more_sweep_window(struct fault_world *w, struct ddps_mr *mw, struct ddps_mr *mr)
{
	struct ddps_sge sge = fault_piece(w->dst, FAULT_SMALL, mr);
	const struct ddps_send_wr wr = { .op = DDPS_OP_BIND,
					 .stag = ddps_mr_stag(mw) ^ 1,
					 .sge = &sge,
					 .nsge = 1,
					 .bind = { mw, DDPS_REMOTE_WRITE, 0 } };
	int err = fault_request(w, w->b[0], &wr);

	return err ? err : fault_completions(w, 1);
}

static int write_placed(struct fault_world *w, struct ddps_mr *at)
{
	struct ddps_sge sge = source(w);
	const struct ddps_send_wr wr = { .op = DDPS_OP_WRITE,
					 .flags = DDPS_WR_PLACED,
					 .sge = &sge,
					 .nsge = 1,
					 .stag = ddps_mr_stag(at),
					 .to = ddps_mr_to(at) };
	int err = fault_request(w, w->a[0], &wr);

	if (!err)
		err = fault_completions(w, 1);
	if (!err && !pieces_are(w, 1))
		return SILENT;
	memset(w->dst, 0, FAULT_SMALL);
	return err;
}

/* The peer invalidates @mw; this side its own region, and makes it valid again. */
static int invalidate_more_sweep(struct fault_world *w, struct ddps_mr *mw, struct ddps_mr *mr)
{
	const struct ddps_send_wr theirs = { .op = DDPS_OP_SEND,
					     .flags = DDPS_WR_INVALIDATE,
					     .stag = ddps_mr_stag(mw) };
	const struct ddps_send_wr own = { .op = DDPS_OP_LOCAL_INV, .stag = ddps_mr_stag(mr) };
	const struct ddps_mr_change to = { .access = DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE };
	int err = fault_receive(w, w->b[0], (struct ddps_sge){ 0 });

	if (!err)
		err = fault_request(w, w->a[0], &theirs);
	if (!err)
		err = fault_completions(w, 2);
	if (!err)
		err = fault_request(w, w->b[0], &own);
	if (!err)
		err = fault_completions(w, 1);
	if (!err)
		err = ddps_mr_dereg(mw);
	return err ? err : ddps_mr_change(mr, DDPS_CHANGE_ACCESS, &to);
}

int fault_windows(struct fault_world *w)
{
	struct ddps_mr *mr = NULL, *mw = NULL;
	int err = fault_begin(w);

	if (!err)
		err = ddps_mr_reg(w->pd, w->dst, FAULT_SMALL, DDPS_LOCAL_WRITE | DDPS_BIND, NULL,
				  &mr);
	if (!err)
		err = ddps_mw_new(w->pd, false, &mw);
	if (!err)
		err = bind_more_sweep_window(w, mw, mr);
	if (!err && ddps_mr_dereg(mr) != DDPS_E_BUSY)
		return SILENT;
	if (!err)
		err = write_placed(w, mw);
	if (!err)
		err = invalidate_more_sweep(w, mw, mr);
	if (!err)
		err = write_placed(w, mr);
	return err ? err : fault_tear_down(w);
}

/* A region goes while the wire has taken a part of a message from it. */
int fault_lent(struct fault_world *w)
{
	const uint32_t len = 20 * FAULT_SMALL;
	int err;

	kern.window = NARROW;
	err = fault_begin(w);
	if (!err)
		err = fault_receive(w, w->b[0], fault_piece(w->dst, len, w->to));
	if (!err)
		err = fault_post(w, w->a[0], DDPS_OP_SEND, fault_piece(w->src, len, w->from), NULL,
				 0);
	if (!err)
		err = ddps_mr_dereg(w->from);
	if (!err)
		err = fault_completions(w, 2);
	if (!err && memcmp(w->src, w->dst, len))
		return SILENT;
	return err ? err : fault_tear_down(w);
}

/* ---- Sends that wait for a receive ---- */

int fault_stalled(struct fault_world *w)
{
	int err;

	kern.window = NARROW;
	err = fault_begin(w);
	for (uint32_t i = 0; !err && i < 4; i++)
		err = fault_post(w, w->a[0], DDPS_OP_SEND, source(w), NULL, 0);
	if (!err)
		err = fault_post(w, w->a[0], DDPS_OP_WRITE, source(w), w->to, 4 * FAULT_SMALL);
	if (!err)
		err = fault_drive(w, WHILE);
	for (uint32_t i = 0; !err && i < 4; i++) {
		err = fault_receive(w, w->b[0], sink(w, i));
		if (!err)
			err = fault_drive(w, 1);
	}
	if (!err)
		err = fault_completions(w, w->posted);
	if (!err)
		err = fault_post(w, w->a[0], DDPS_OP_READ, sink(w, 5), w->from, 0);
	if (!err)
		err = fault_completions(w, 1);
	if (!err && !pieces_are(w, 6))
		return SILENT;
	return err ? err : fault_tear_down(w);
}
