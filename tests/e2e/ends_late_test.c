/* SPDX-License-Identifier: BSD-2-Clause */
/* A reader that stalls gets what waits for it, whatever becomes of the writer. */
#include "support/clock.h"
#include "e2e/ends_fixture.h"
#include "session/session.h"
#include <poll.h>
#include <pthread.h>
#include <time.h>

TestSuite(ends_late, .timeout = 60);

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

	serve_reader_until(e, DDPS_EV_PEER_CLOSING);
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
Test(ends_late, contact_06_what_waits_outlives_a_peer_that_has_settled)
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

/* A reader that stalls has a message; the writer waits for one, and settles in thread @t.  false: a wire that is not
 * SCTP's. */
static bool open_settling(struct e2e *e, struct writer *w, int wire, pthread_t *t)
{
	if (e2e_wires[wire][0] != 's')
		return false;
	open_stalled(e, w, wire, 1, 60000);
	cr_assert_eq(ddps_post_recv(w->ep, 1, NULL, 0), 0);
	cr_assert_eq(pthread_create(t, NULL, settle_ends_writer, w), 0);
	return true;
}

/* What the thread returned. */
static int join_ends_thread(pthread_t t)
{
	void *err;

	cr_assert_eq(pthread_join(t, &err), 0);
	return (int)(intptr_t)err;
}

/* As if it had been lost, and sent again: SCTP may take a second until then. */
Test(ends_late, contact_06_the_last_words_of_a_late_reader_arrive_over_sctp)
{
	for (unsigned i = 0; i < OURS; i++) {
		const struct timespec late = { .tv_nsec = 500000000 };
		struct writer w;
		struct ddps_wc wc;
		struct e2e e;
		pthread_t t;

		if (!open_settling(&e, &w, ours[i], &t))
			continue;
		nanosleep(&late, NULL);
		cr_expect_eq(e2e_post(&e.b, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0, "%s", e.uri);
		post_late(&e, 1);
		cr_expect_eq(join_ends_thread(t), 0, "%s", e.uri);
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
Test(ends_late, contact_06_a_stall_timer_takes_no_patience_over_sctp)
{
	for (unsigned i = 0; i < OURS; i++) {
		uint64_t before, taken, limit;
		struct writer w;
		struct e2e e;
		pthread_t t, words;

		if (!open_settling(&e, &w, ours[i], &t))
			continue;
		before = await_patience(&w, 0);
		ddps_lock(&w.ctx->lock);
		taken = ddps_rdmap_taken(w.ep->rdmap);
		cr_assert_eq(pthread_create(&words, NULL, send_last_words, &e), 0);
		limit = read_clock_ms() + E2E_MS;
		while (ddps_rdmap_taken(w.ep->rdmap) == taken) {
			cr_assert_lt(read_clock_ms(), limit, "%s", e.uri);
			cr_assert_geq(ddps_ctx_turn(w.ctx), 0);
		}
		ddps_ep_stall_timer(w.ep); /* as the timer does then */
		ddps_unlock(&w.ctx->lock);
		cr_expect_eq(join_ends_thread(words), 0, "%s", e.uri);
		cr_expect_gt(await_patience(&w, before), before, "%s", e.uri);
		post_late(&e, 1);
		cr_expect_eq(join_ends_thread(t), 0, "%s", e.uri);
		ddps_ctx_free(w.ctx);
		e2e_close(&e);
	}
}

/* It closes in order, and gives up when the reader does not: a reset, an ABORT. */
Test(ends_late, contact_06_what_waits_outlives_a_peer_that_gives_up_waiting)
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
Test(ends_late, contact_06_what_waits_goes_with_the_session_here)
{
	for (unsigned i = 0; i < 3 * OURS; i++) {
		struct writer w;
		struct e2e e;

		open_stalled(&e, &w, ours[i / 3], 8, 60000);
		cr_expect_eq(ddps_ctx_settle(w.ctx, 30000), 0);
		ddps_ctx_free(w.ctx);
		serve_reader_until(&e, DDPS_EV_PEER_CLOSING);
		if (i % 3 == 0)
			cr_expect_eq(ddps_disconnect(e.b.ep), 0);
		else if (i % 3 == 1)
			cr_expect_eq(ddps_abort(e.b.ep), 0);
		if (i % 3 < 2)
			serve_reader_until(&e, DDPS_EV_CLOSED);
		e2e_close(&e);
	}
}

/* A reset without a close is no end in order: it is seen immediately. */
Test(ends_late, contact_06_a_reset_is_seen_by_whoever_stalls)
{
	for (unsigned i = 0; i < OURS; i++) {
		struct writer w;
		struct e2e e;

		open_stalled(&e, &w, ours[i], 8, 60000);
		ddps_ctx_free(w.ctx);
		serve_reader_until(&e, DDPS_EV_CLOSED);
		cr_expect_eq(error.code, DDPS_E_RESET, "%s", error.text);
		e2e_close(&e);
	}
}
