/* SPDX-License-Identifier: BSD-2-Clause */
/* What settle and free wait for, and for how long.  tests/stress/ends.c has whole programs. */
#include "support/clock.h"
#include "support/e2e.h"
#include "support/child.h"
#include "session/session.h"
#include <ddpsess/secure.h>
#include <string.h>
#include <time.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN   65536u
#define COUNT 64u

TestSuite(ends, .timeout = 60);

/* Our wires: TCP, our SCTP, and both secured. */
static const int ours[] = { 0, 2, 6, 7 };
#define OURS (sizeof ours / sizeof ours[0])

/* It has a context of its own, which can go. */
struct writer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
};

static uint8_t out[LEN], in[LEN];

/* What has come to the reader, and the last error. */
static unsigned seen;
static struct ddps_error error;

/* One event, in @ms at most. */
static void serve_reader(struct e2e *e, int ms)
{
	struct ddps_event ev;

	if (ddps_event_wait(e->ctx, &ev, ms))
		return;
	if (ev.type == DDPS_EV_CONNECT_REQUEST)
		cr_assert_eq(ddps_accept(ev.request, e->b.ep, &e->accept), 0);
	if (ev.type == DDPS_EV_PEER_CLOSED)
		cr_assert_eq(ddps_disconnect(e->b.ep), 0);
	seen |= E2E_SEEN(ev.type);
	if (ev.type == DDPS_EV_CLOSED)
		error = ev.error;
}

static void make_writer_ep(struct writer *w)
{
	struct ddps_ep_attr attr;

	ddps_ep_attr_init(&attr);
	attr.pd = w->pd;
	attr.send_cq = attr.recv_cq = w->cq;
	attr.sq_depth = COUNT;
	cr_assert_eq(ddps_ep_new(w->ctx, &attr, &w->ep), 0);
}

static void open_writer(struct writer *w, bool secured)
{
	struct ddps_ctx_attr home;

	ddps_ctx_attr_init(&home);
	home.secure = secured ? e2e_secure() : NULL;
	cr_assert_eq(ddps_ctx_new(&w->ctx, &home), 0);
	ddps_secure_close(home.secure);
	cr_assert_eq(ddps_pd_new(w->ctx, &w->pd), 0);
	cr_assert_eq(ddps_cq_new(w->ctx, 2 * COUNT, &w->cq), 0);
	make_writer_ep(w);
}

/* A reader with @receives, driven by the library if @thread, else by nobody; and a session with it. */
static void open_both(struct e2e *e, struct writer *w, int wire, bool thread, unsigned receives,
		      uint32_t close_ms)
{
	struct ddps_ctx_attr attr;
	struct ddps_conn_param param;
	struct ddps_event ev;
	struct ddps_sge sge;
	unsigned up = 0;

	seen = 0;
	ddps_ctx_attr_init(&attr);
	attr.thread = thread;
	e2e_open_with(e, e2e_wires[wire], &attr);
	e->attr.rq_depth = COUNT;
	e->attr.no_recv = receives ? DDPS_NO_RECV_TERMINATE : DDPS_NO_RECV_STALL;
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->b.ep), 0);
	sge = e2e_sge(in, LEN, e2e_reg(e, in, LEN, DDPS_LOCAL_WRITE));
	for (unsigned i = 0; i < receives; i++)
		cr_assert_eq(ddps_post_recv(e->b.ep, i, &sge, 1), 0);
	open_writer(w, wire >= 6);
	ddps_conn_param_init(&param);
	param.close_ms = close_ms;
	cr_assert_eq(ddps_connect(w->ep, e->uri, &param), 0);
	while (!(seen & E2E_SEEN(DDPS_EV_ESTABLISHED)) || !(up & E2E_SEEN(DDPS_EV_ESTABLISHED))) {
		serve_reader(e, 1);
		if (!ddps_event_wait(w->ctx, &ev, 1))
			up |= E2E_SEEN(ev.type);
	}
}

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

/* How many messages arrive in the end, which is one in order. */
static unsigned read_to_the_end(struct e2e *e)
{
	unsigned got = 0;
	struct ddps_wc wc;

	for (int i = 0; !(seen & E2E_SEEN(DDPS_EV_CLOSED)); i++) {
		cr_assert_lt(i, 1000);
		serve_reader(e, 20);
	}
	cr_expect_eq(error.code, 0, "%s: %s", e->uri, error.text);
	while (ddps_cq_poll(e->cq, &wc, 1) == 1)
		got += wc.status == DDPS_WC_SUCCESS && wc.op == DDPS_OP_RECV;
	return got;
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
		do {
			if (!(seen & E2E_SEEN(DDPS_EV_CLOSED)))
				serve_reader(&e, 1);
		} while (ddps_event_wait(w.ctx, &ev, 1) || ev.type != DDPS_EV_CLOSED);
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
		struct ddps_event ev;
		struct writer w;
		struct e2e e;

		open_both(&e, &w, ours[i], false, COUNT, 60000);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		do
			serve_reader(&e, 1);
		while (ddps_event_wait(w.ctx, &ev, 1) || ev.type != DDPS_EV_CLOSED);
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
		struct ddps_event ev = { .type = DDPS_EV_ESTABLISHED };
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
		for (int k = 0; ev.type != DDPS_EV_CLOSED; k++) {
			cr_assert_lt(k, 2000, "%s", e.uri);
			serve_reader(&e, 1);
			if (ddps_event_wait(w.ctx, &ev, 1))
				ev.type = DDPS_EV_ESTABLISHED;
		}
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

/* A reader that stalls has @n messages; the writer has closed in order. */
static void open_stalled(struct e2e *e, struct writer *w, int wire, unsigned n, uint32_t close_ms)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	struct ddps_wc wc;

	open_both(e, w, wire, true, 0, close_ms);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(ddps_post_send(w->ep, &wr), 0);
	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(ddps_cq_wait(w->cq, &wc, 1, E2E_MS), 1);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
	}
}

/* Late receives get all @n messages, and the session ends in order. */
static void post_late(struct e2e *e, unsigned n)
{
	struct ddps_wc wc;

	while (!(seen & E2E_SEEN(DDPS_EV_PEER_CLOSING)))
		serve_reader(e, E2E_MS);
	cr_expect_not(seen & (E2E_SEEN(DDPS_EV_PEER_CLOSED) | E2E_SEEN(DDPS_EV_CLOSED)));
	for (uint64_t i = 0; i < n; i++) {
		cr_assert_eq(ddps_post_recv(e->b.ep, i, NULL, 0), 0, "%s: %u", e->uri, (unsigned)i);
		do
			cr_assert_eq(ddps_cq_wait(e->cq, &wc, 1, E2E_MS), 1);
		while (wc.op != DDPS_OP_RECV);
		cr_expect_eq(wc.status, DDPS_WC_SUCCESS, "%s: %u", e->uri, (unsigned)i);
		cr_expect_eq(wc.wr_id, i);
	}
	cr_expect_eq(read_to_the_end(e), 0, "%s: no more", e->uri);
	cr_expect(seen & E2E_SEEN(DDPS_EV_PEER_CLOSED));
}

/* Over TCP it is gone with what the kernel delivers, over SCTP its association is shut down. */
Test(ends, contact_06_what_waits_outlives_a_peer_that_has_settled)
{
	for (unsigned i = 0; i < OURS; i++) {
		uint64_t begun;
		struct writer w;
		struct e2e e;

		open_stalled(&e, &w, ours[i], 8, 60000);
		begun = read_clock_ms();
		cr_expect_eq(ddps_ctx_settle(w.ctx, 30000), 0, "%s", e.uri);
		cr_expect_lt(read_clock_ms() - begun, 10000, "%s: the reader stays", e.uri);
		ddps_ctx_free(w.ctx);
		post_late(&e, 8);
		e2e_close(&e);
	}
}

static void *settle_ends_writer(void *arg)
{
	const struct writer *w = arg;

	return (void *)(intptr_t)ddps_ctx_settle(w->ctx, 30000);
}

/* As if it had been lost, and sent again: SCTP may take a second until then. */
Test(ends, contact_06_the_last_words_of_a_late_reader_arrive_over_sctp)
{
	for (unsigned i = 0; i < OURS; i++) {
		const struct timespec late = { .tv_nsec = 500000000 };
		struct writer w;
		struct ddps_wc wc;
		struct e2e e;
		pthread_t t;
		void *err;

		if (e2e_wires[ours[i]][0] != 's')
			continue;
		open_stalled(&e, &w, ours[i], 1, 60000);
		cr_assert_eq(ddps_post_recv(w.ep, 1, NULL, 0), 0);
		cr_assert_eq(pthread_create(&t, NULL, settle_ends_writer, &w), 0);
		nanosleep(&late, NULL);
		cr_expect_eq(e2e_post(&e.b, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0, "%s", e.uri);
		post_late(&e, 1);
		cr_assert_eq(pthread_join(t, &err), 0);
		cr_expect_eq((intptr_t)err, 0, "%s", e.uri);
		cr_expect_eq(ddps_ctx_settle(e.ctx, 0), 0, "%s", e.uri);
		while (ddps_cq_poll(w.cq, &wc, 1) == 1 && wc.op != DDPS_OP_RECV)
			;
		cr_expect(wc.op == DDPS_OP_RECV && wc.status == DDPS_WC_SUCCESS, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

/* As long as @before its peer has had the patience of whoever settles it; in two seconds that is over. */
static uint64_t await_patience(struct writer *w, uint64_t before)
{
	const uint64_t end = read_clock_ms() + 3000;
	uint64_t now = before;

	while (now == before && read_clock_ms() < end) {
		poll(NULL, 0, 1);
		ddps_lock(&w->ctx->lock);
		now = w->ep->patience;
		ddps_unlock(&w->ctx->lock);
	}
	return now;
}

/* Nobody locks two contexts. */
static void *send_last_words(void *arg)
{
	struct e2e *e = arg;

	return (void *)(intptr_t)e2e_post(&e->b, DDPS_OP_SEND, NULL, 0, NULL, 0, 0);
}

/* What has come is news to settle, though a timer of the session has seen it. */
Test(ends, contact_06_a_stall_timer_takes_no_patience_over_sctp)
{
	for (unsigned i = 0; i < OURS; i++) {
		uint64_t before, taken;
		struct writer w;
		struct e2e e;
		pthread_t t, words;
		void *err;

		if (e2e_wires[ours[i]][0] != 's')
			continue;
		open_stalled(&e, &w, ours[i], 1, 60000);
		cr_assert_eq(ddps_post_recv(w.ep, 1, NULL, 0), 0);
		cr_assert_eq(pthread_create(&t, NULL, settle_ends_writer, &w), 0);
		before = await_patience(&w, 0);
		ddps_lock(&w.ctx->lock);
		taken = ddps_rdmap_taken(w.ep->rdmap);
		cr_assert_eq(pthread_create(&words, NULL, send_last_words, &e), 0);
		while (ddps_rdmap_taken(w.ep->rdmap) == taken)
			cr_assert_geq(ddps_ctx_turn(w.ctx), 0);
		ddps_ep_stall_timer(w.ep); /* as the timer does then */
		ddps_unlock(&w.ctx->lock);
		cr_assert_eq(pthread_join(words, &err), 0);
		cr_expect_eq((intptr_t)err, 0, "%s", e.uri);
		cr_expect_gt(await_patience(&w, before), before, "%s", e.uri);
		post_late(&e, 1);
		cr_assert_eq(pthread_join(t, &err), 0);
		cr_expect_eq((intptr_t)err, 0, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

/* It closes in order, and gives up when the reader does not: a reset, an ABORT. */
Test(ends, contact_06_what_waits_outlives_a_peer_that_gives_up_waiting)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct ddps_event ev = { .type = DDPS_EV_ESTABLISHED };
		struct writer w;
		struct e2e e;

		open_stalled(&e, &w, ours[i], 8, 50);
		cr_assert_eq(ddps_disconnect(w.ep), 0);
		while (ev.type != DDPS_EV_CLOSED)
			cr_assert_eq(ddps_event_wait(w.ctx, &ev, E2E_MS), 0);
		cr_expect_eq(ev.error.code, DDPS_E_TIMEDOUT, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		post_late(&e, 8);
		e2e_close(&e);
	}
}

/* A program that does not want it ends the session. */
Test(ends, contact_06_what_waits_goes_with_the_session_here)
{
	for (unsigned i = 0; i < 3 * OURS; i++) {
		struct writer w;
		struct e2e e;

		open_stalled(&e, &w, ours[i / 3], 8, 60000);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 30000), 0);
		ddps_ctx_free(w.ctx);
		while (!(seen & E2E_SEEN(DDPS_EV_PEER_CLOSING)))
			serve_reader(&e, E2E_MS);
		if (i % 3 == 0)
			cr_expect_eq(ddps_disconnect(e.b.ep), 0);
		else if (i % 3 == 1)
			cr_expect_eq(ddps_abort(e.b.ep), 0);
		while (i % 3 < 2 && !(seen & E2E_SEEN(DDPS_EV_CLOSED)))
			serve_reader(&e, E2E_MS);
		e2e_close(&e);
	}
}

/* A reset without a close is no end in order: it is seen immediately. */
Test(ends, contact_06_a_reset_is_seen_by_whoever_stalls)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_stalled(&e, &w, ours[i], 8, 60000);
		ddps_ctx_free(w.ctx);
		while (!(seen & E2E_SEEN(DDPS_EV_CLOSED)))
			serve_reader(&e, E2E_MS);
		cr_expect_eq(error.code, DDPS_E_RESET, "%s", error.text);
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

/* ---- last words ---- */

/* A peer that says its last words and ends: they count, though its host says by then that it is gone. */

struct peer {
	pid_t pid;
	int tell[2], hear[2];
	char uri[128];
};

/* Rejects one request when it is asked to, and ends without a word more. */
static _Noreturn void run_last_words_peer(const struct peer *p, const char *wire)
{
	struct ddps_event ev;
	struct e2e e;
	char go;

	e2e_open(&e, wire);
	if (write(p->tell[1], e.uri, sizeof e.uri) != sizeof e.uri)
		leave_child_fixture(1);
	do
		if (ddps_event_wait(e.ctx, &ev, E2E_MS))
			leave_child_fixture(2);
	while (ev.type != DDPS_EV_CONNECT_REQUEST);
	if (write(p->tell[1], "r", 1) != 1 || read(p->hear[0], &go, 1) != 1)
		leave_child_fixture(3);
	if (ddps_reject(ev.request, "last words", 10))
		leave_child_fixture(4);
	for (int i = 0; i < 10; i++)
		ddps_progress(e.ctx, 1);
	leave_child_fixture(0);
}

static void start_last_words_peer(struct peer *p, const char *wire)
{
	if (strstr(wire, "tls:"))
		ddps_secure_close(e2e_secure()); /* both sides have the same */
	cr_assert_eq(pipe(p->tell), 0);
	cr_assert_eq(pipe(p->hear), 0);
	p->pid = fork();
	close(p->pid ? p->tell[1] : p->hear[1]); /* the other's alone: a read ends when it does */
	if (!p->pid)
		run_last_words_peer(p, wire);
	cr_assert_eq(read(p->tell[0], p->uri, sizeof p->uri), sizeof p->uri);
}

/* It rejects and is gone; nobody here has looked at a socket meanwhile. */
static void let_it_end(struct peer *p)
{
	int status = -1;

	cr_assert_eq(write(p->hear[1], "g", 1), 1);
	cr_assert_eq(waitpid(p->pid, &status, 0), p->pid);
	cr_assert_eq(status, 0);
	close(p->tell[0]);
	close(p->hear[0]);
	close(p->hear[1]);
}

E2E_WIRES(last_words, are_heard_before_its_host_says_that_it_is_gone)
{
	struct ddps_ep *first, *second;
	struct pollfd asked;
	struct ddps_event ev;
	struct peer p;
	struct e2e e;

	if (strstr(wire, "://127.0.0.2:"))
		return; /* it is usrsctp that hears there, which has rules of its own */
	start_last_words_peer(&p, wire);
	e2e_open(&e, wire);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &first), 0);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &second), 0);
	cr_assert_eq(ddps_connect(first, p.uri, &e.connect), 0);
	asked = (struct pollfd){ p.tell[0], POLLIN, 0 };
	while (!poll(&asked, 1, 0))
		cr_assert_geq(ddps_progress(e.ctx, 1), 0);
	let_it_end(&p);
	/* Over SCTP this goes to the port that is closed, and brings an ICMP error. */
	cr_assert_eq(ddps_connect(second, p.uri, &e.connect), 0);
	do
		cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0, "%s", wire);
	while (ev.ep != first);
	cr_expect_eq(ev.type, DDPS_EV_REJECTED, "%s: %s", wire, ev.error.text);
	cr_expect_eq(ev.private_data_len, 10, "%s", wire);
	if (ev.private_data_len == 10)
		cr_expect_arr_eq(ev.private_data, "last words", 10);
	ddps_ep_free(first);
	ddps_ep_free(second);
	e2e_close(&e);
}
