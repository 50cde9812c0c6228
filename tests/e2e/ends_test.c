/* SPDX-License-Identifier: BSD-2-Clause */
/* What settle and free wait for, and for how long.  tests/stress/ends.c has whole programs. */
#include "support/clock.h"
#include "e2e/ends_fixture.h"
#include <string.h>

TestSuite(ends, .timeout = 60);

static uint8_t out[LEN];

/* More than all buffers on the way hold. */
static void post_all(struct writer *w)
{
	struct ddps_mr *mr;
	struct ddps_sge sge;
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	cr_assert_eq(ddps_mr_reg(w->pd, out, LEN, 0, NULL, &mr), 0);
	sge = e2e_sge(out, LEN, mr);
	for (unsigned i = 0; i < COUNT; i++)
		cr_assert_eq(ddps_post_send(w->ep, &wr), 0);
}

Test(ends, contact_01_settle_waits_for_acknowledgements)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		post_all(&w);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 100), DDPS_E_TIMEDOUT, "%s", e.uri);
		for (int k = 0; ddps_ctx_settle(w.ctx, 5); k++) {
			cr_assert_lt(k, 2000, "%s", e.uri);
			serve_reader(&e, 1);
		}
		ddps_ctx_free(w.ctx);
		cr_expect_eq(read_to_the_end(&e), COUNT, "%s", e.uri);
		e2e_close(&e);
	}
}

/* The writer's end; the reader is served meanwhile, or until its own end if it @goes then. */
static struct ddps_event await_writer_end(struct e2e *e, struct writer *w, bool goes)
{
	struct ddps_event ev = { .type = DDPS_EV_ESTABLISHED };

	for (int i = 0; ev.type != DDPS_EV_CLOSED; i++) {
		cr_assert_lt(i, 2000, "%s", e->uri);
		if (!goes || !(seen & E2E_SEEN(DDPS_EV_CLOSED)))
			serve_reader(e, 1);
		if (ddps_event_wait(w->ctx, &ev, 1))
			ev.type = DDPS_EV_ESTABLISHED;
	}
	return ev;
}

/* Over SCTP nobody answers to the end of the association then.  Nothing is under way, whoever is gone. */
Test(ends, contact_01_settle_counts_no_reader_that_has_seen_the_end_and_is_gone)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct ddps_event ev;
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		post_all(&w);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		ev = await_writer_end(&e, &w, true);
		cr_expect_eq(ev.error.code, 0, "%s: %s", e.uri, ev.error.text);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 300), 0, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		cr_expect_eq(read_to_the_end(&e), COUNT, "%s", e.uri);
		e2e_close(&e);
	}
}

/* Its last words are acknowledged, though they came with what the other program calls nothing behind. */
Test(ends, contact_01_settle_counts_no_writer_that_has_seen_the_end_and_is_gone)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		await_writer_end(&e, &w, false);
		cr_expect_eq(ddps_ctx_settle(e.ctx, 300), 0, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

Test(ends, contact_01_settle_counts_no_reader_that_has_seen_the_close_and_is_gone)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct ddps_event ev;
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		do
			cr_assert_geq(ddps_progress(w.ctx, 0), 0);
		while (ddps_event_wait(e.ctx, &ev, 1));
		cr_expect_eq(ev.type, DDPS_EV_PEER_CLOSED, "%s", e.uri);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 600), 0, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

/* It has nobody to answer it any more: that is no work of the writer's which was lost. */
Test(ends, contact_01_settle_counts_no_read_that_comes_behind_the_end)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct ddps_event ev;
		struct ddps_mr *mr;
		struct ddps_wc wc;
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		cr_assert_eq(ddps_mr_reg(w.pd, out, LEN, DDPS_REMOTE_READ, NULL, &mr), 0);
		cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		while (ddps_cq_wait(w.cq, &wc, 1, 1) != 1)
			serve_reader(&e, 1);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		for (int k = 0; k < 3; k++) /* its end is on the way, and nobody has looked */
			cr_assert_geq(ddps_progress(w.ctx, 0), 0);
		cr_assert_eq(e2e_post(&e.b, DDPS_OP_READ, in, LEN,
				      e2e_reg(&e, in, LEN, DDPS_LOCAL_WRITE), ddps_mr_stag(mr),
				      ddps_mr_to(mr)),
			     0);
		ev = await_writer_end(&e, &w, false);
		cr_expect_eq(ev.error.code, 0, "%s: %s", e.uri, ev.error.text);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 300), 0, "%s", e.uri);
		cr_expect_eq(read_to_the_end(&e), 1, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

static void reject_writer(struct e2e *e, struct writer *w)
{
	struct ddps_event ev;

	make_writer_ep(w);
	cr_assert_eq(ddps_connect(w->ep, e->uri, NULL), 0);
	while (ddps_event_wait(e->ctx, &ev, 1))
		cr_assert_geq(ddps_progress(w->ctx, 0), 0);
	cr_assert_eq(ddps_reject(ev.request, NULL, 0), 0);
	do
		cr_assert_geq(ddps_progress(e->ctx, 0), 0);
	while (ddps_event_wait(w->ctx, &ev, 1));
	cr_expect_eq(ev.type, DDPS_EV_REJECTED, "%s: %s", e->uri, ev.error.text);
}

/* Over SCTP both times on one association, of which the first message is acknowledged in any case. */
Test(ends, contact_01_settle_counts_nobody_that_was_rejected_and_is_gone)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		e2e_open(&e, e2e_wires[ours[i]]);
		open_writer(&w, ours[i] >= 6);
		reject_writer(&e, &w);
		reject_writer(&e, &w);
		cr_expect_eq(ddps_ctx_settle(e.ctx, 300), 0, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

/* The reader has the octets and has looked at none when the writer is gone.  Inside TLS its own close_notify meets nobody. */
Test(ends, contact_01_settle_is_enough_for_a_reader_that_is_busy)
{
	for (unsigned i = 0; i < 2 * OURS; i++) {
		struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i / 2], false, COUNT, 60000);
		for (unsigned k = 0; k < COUNT; k++)
			cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		if (i % 2)
			cr_assert_eq(ddps_disconnect(w.ep), 0);
		for (int k = 0; ddps_ctx_settle(w.ctx, 5); k++) {
			cr_assert_lt(k, 2000, "%s", e.uri);
			if (!strncmp(e.uri, "sctp", 4)) /* TCP's kernel answers by itself */
				serve_reader(&e, 1);
		}
		ddps_ctx_free(w.ctx);
		cr_expect_eq(read_to_the_end(&e), COUNT, "%s", e.uri);
		e2e_close(&e);
	}
}

Test(ends, contact_01_settle_reports_what_was_lost)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 100);
		post_all(&w); /* nobody reads, so the session is given up */
		cr_expect_eq(ddps_ctx_settle(w.ctx, 30000), DDPS_E_RESET, "%s", e.uri);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 0), DDPS_E_RESET, "%s: and again", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

Test(ends, contact_01_free_finishes_what_was_disconnected)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], true, COUNT, 60000);
		post_all(&w);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		ddps_ctx_free(w.ctx);
		cr_expect_eq(read_to_the_end(&e), COUNT, "%s", e.uri);
		e2e_close(&e);
	}
}

Test(ends, contact_01_free_does_not_wait_for_ever)
{
	for (unsigned i = 0; i < OURS; i++) {
		uint64_t begun;
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		post_all(&w);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		begun = read_clock_ms();
		ddps_ctx_free(w.ctx); /* nobody reads */
		cr_expect_geq(read_clock_ms() - begun, 4900, "%s", e.uri);
		cr_expect_lt(read_clock_ms() - begun, 20000, "%s", e.uri);
		e2e_close(&e);
	}
}

/* ---- both ends in one context ---- */

static int settle_with_posted(struct e2e *e, struct e2e_end *end, const char *uri, bool p2p)
{
	struct ddps_event ev;
	int err;

	e2e_open(e, uri);
	e->connect.p2p = p2p;
	e2e_connect(e);
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_eq(e2e_post(end, DDPS_OP_WRITE, out, 0, NULL, 0, 0), 0);
	}
	err = ddps_ctx_settle(e->ctx, 5000);
	while (ddps_event_get(e->ctx, &ev) == 1) {
		struct e2e_end *of = ev.ep == e->a.ep ? &e->a : &e->b;

		of->seen |= E2E_SEEN(ev.type);
		of->error = ev.error;
	}
	cr_expect(e->a.seen & E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect(e->b.seen & E2E_SEEN(DDPS_EV_CLOSED));
	return err;
}

Test(ends, contact_07_an_end_in_order_has_the_same_words_on_all_wires)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct e2e e;

		cr_expect_eq(settle_with_posted(&e, &e.a, e2e_wires[i], false), 0, "%s",
			     e2e_wires[i]);
		cr_expect_str_eq(e.a.error.text, "session closed");
		cr_expect_str_eq(e.b.error.text, "session closed");
		e2e_close(&e);
	}
}

/* [5044-7.1.2-15]: a responder's work waits for the initiator's first message. */
Test(ends, contact_07_what_a_responder_has_posted_and_may_not_send)
{
	struct e2e e;

	cr_expect_eq(settle_with_posted(&e, &e.b, e2e_wires[0], false), DDPS_E_RESET);
	cr_expect(strstr(e.b.error.text, "before its first FPDU"), "%s", e.b.error.text);
	e2e_close(&e);
	cr_expect_eq(settle_with_posted(&e, &e.b, e2e_wires[0], true), 0, "p2p");
	e2e_close(&e);
	cr_expect_eq(settle_with_posted(&e, &e.b, e2e_wires[2], false), 0);
	e2e_close(&e);
}
