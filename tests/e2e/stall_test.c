/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends that wait for a receive instead of ending the session, on every wire. */
#include "support/e2e.h"
#include <stdlib.h>
#include <string.h>

#define MANY 64
#define BIG  (1u << 20)

static void open_stalling_pair(struct e2e *e, const char *wire)
{
	e2e_open(e, wire);
	e->attr.no_recv = DDPS_NO_RECV_STALL;
	e2e_connect(e);
	cr_assert(e->b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->b.error.text);
}

/* Serve what is ready, until nothing is. */
static void settle_stall_e2e(struct e2e *e)
{
	while (ddps_progress(e->ctx, 0) > 0)
		;
}

static int recv_at(struct e2e_end *end, uint64_t id, void *buf, size_t len, struct ddps_mr *mr)
{
	struct ddps_sge sge = e2e_sge(buf, len, mr);

	return ddps_post_recv(end->ep, id, &sge, 1);
}

/* Much more than any buffer on the way is sent; it stops, and loses nothing. */
static void backpressure(const char *wire, bool crc)
{
	uint8_t *out = malloc(BIG), *in = malloc((size_t)MANY * BIG), small[8] = "pong";
	struct ddps_mr *mo, *mi, *ms;
	unsigned sent = 0, got = 0;
	struct ddps_wc wc;
	struct e2e e;

	e2e_open(&e, wire);
	e.attr.no_recv = DDPS_NO_RECV_STALL;
	e.attr.sq_depth = e.attr.rq_depth = MANY;
	e.connect.crc = e.accept.crc = crc;
	e2e_connect(&e);
	cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	e2e_fill(out, BIG, 11);
	mo = e2e_reg(&e, out, BIG, 0);
	mi = e2e_reg(&e, in, (size_t)MANY * BIG, DDPS_LOCAL_WRITE);
	ms = e2e_reg(&e, small, sizeof small, DDPS_LOCAL_WRITE);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, out, BIG, mo, 0, 0), 0);
	settle_stall_e2e(&e);
	while (ddps_cq_poll(e.cq, &wc, 1) == 1)
		sent++;
	cr_expect_lt(sent, MANY, "%s", wire);
	/* the other direction works */
	cr_assert_eq(recv_at(&e.a, 1, small, sizeof small, ms), 0);
	cr_assert_eq(e2e_post(&e.b, DDPS_OP_SEND, small, 4, ms, 0, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		do {
			wc = e2e_wc(&e);
			sent += wc.ep == e.a.ep && wc.op == DDPS_OP_SEND;
		} while (wc.ep == e.a.ep && wc.op == DDPS_OP_SEND);
		cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
	}
	cr_expect_lt(sent, MANY, "%s", wire);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(recv_at(&e.b, i, in + (size_t)i * BIG, BIG, mi), 0);
	while (sent < MANY || got < MANY) {
		wc = e2e_wc(&e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS, "%s", wire);
		if (wc.op == DDPS_OP_RECV)
			cr_expect_eq(wc.wr_id, got);
		got += wc.op == DDPS_OP_RECV;
		sent += wc.op == DDPS_OP_SEND;
	}
	for (unsigned i = 0; i < MANY; i++)
		cr_expect_eq(memcmp(in + (size_t)i * BIG, out, BIG), 0, "%s message %u", wire, i);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
	free(out);
	free(in);
}

Test(stall, slows_the_sender_down_tcp, .timeout = 120, .description = "5041-7.1-3")
{
	backpressure(e2e_wires[0], true);
	backpressure(e2e_wires[0], false); /* direct placement */
}

Test(stall, slows_the_sender_down_sctp, .timeout = 120, .description = "5041-7.1-3")
{
	backpressure(e2e_wires[2], true);
}

/* A zero-length Send of the peer waits at b. */
static void stall_one_send(struct e2e *e, const char *wire)
{
	open_stalling_pair(e, wire);
	cr_assert_eq(e2e_post(&e->a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
	e2e_expect_wc(e, &e->a, DDPS_OP_SEND, DDPS_WC_SUCCESS, 0);
	settle_stall_e2e(e);
	cr_expect_not(e->b.seen & E2E_SEEN(DDPS_EV_TERMINATED));
}

Test(stall, one_receive_at_a_time, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct e2e e;

		stall_one_send(&e, e2e_wires[i]);
		for (uint64_t n = 0; n < 100; n++) {
			struct ddps_wc wc;

			cr_assert_eq(ddps_post_recv(e.b.ep, n, NULL, 0), 0);
			wc = e2e_wc(&e);
			cr_assert_eq(wc.op, DDPS_OP_RECV);
			cr_assert_eq(wc.wr_id, n);
			cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
			e2e_expect_wc(&e, &e.a, DDPS_OP_SEND, DDPS_WC_SUCCESS, 0);
		}
		e2e_close(&e);
	}
}

Test(stall, disconnect_here_ends_it_by_the_rule, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct e2e e;

		stall_one_send(&e, e2e_wires[i]);
		cr_expect_eq(ddps_disconnect(e.b.ep), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_TERMINATED));
		cr_expect_eq(e.b.error.triple.layer, 1);
		cr_expect_eq(e.b.error.triple.etype, 2);
		cr_expect_eq(e.b.error.triple.code, 2);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect(e.a.error.by_peer, "%s", e.a.error.text);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
		e2e_close(&e);
	}
}

Test(stall, disconnect_there_is_seen_behind_it, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct e2e e;

		stall_one_send(&e, e2e_wires[i]);
		cr_expect_eq(ddps_disconnect(e.a.ep), 0);
		settle_stall_e2e(&e);
		cr_expect_not(e.b.seen & E2E_SEEN(DDPS_EV_PEER_CLOSED));
		cr_assert_eq(ddps_post_recv(e.b.ep, 5, NULL, 0), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSED));
		e2e_expect_wc(&e, &e.b, DDPS_OP_RECV, DDPS_WC_SUCCESS, 0);
		cr_expect_eq(ddps_disconnect(e.b.ep), 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.a.error.code, 0, "%s", e.a.error.text);
		cr_expect_eq(e.b.error.code, 0, "%s", e.b.error.text);
		e2e_close(&e);
	}
}

/* A program that posts no receive is informed, and what came waits on.  It ends the session itself. */
Test(stall, contact_06_disconnect_there_is_reported_after_a_second, .timeout = 120,
     .description = "5041-7.1-3")
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct e2e e;

		stall_one_send(&e, e2e_wires[i]);
		cr_expect_eq(ddps_disconnect(e.a.ep), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSING));
		cr_expect_not(e.b.seen & (E2E_SEEN(DDPS_EV_PEER_CLOSED) |
					  E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED)));
		cr_expect_eq(ddps_disconnect(e.b.ep), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.b.error.triple.layer, 1);
		cr_expect_eq(e.b.error.triple.etype, 2);
		cr_expect_eq(e.b.error.triple.code, 2);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_neq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
		e2e_close(&e);
	}
}

/* Post @n large Sends that nobody receives; what they refer to is the caller's to free. */
static uint8_t *send_big(struct e2e *e, unsigned n)
{
	uint8_t *out = malloc(BIG);
	struct ddps_mr *mr;

	cr_assert(out);
	e2e_fill(out, BIG, 12);
	mr = e2e_reg(e, out, BIG, 0);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(e2e_post(&e->a, DDPS_OP_SEND, out, BIG, mr, 0, 0), 0);
	return out;
}

/* What waits in front of the close is more than TCP takes from one side to the other while nobody reads. */
static void close_behind_large_sends(const char *wire)
{
	enum { N = 8 };
	uint8_t *out, *in = calloc(N, BIG);
	struct ddps_mr *mr;
	struct e2e e;

	cr_assert(in);
	open_stalling_pair(&e, wire);
	out = send_big(&e, N);
	cr_expect_eq(ddps_disconnect(e.a.ep), 0);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSING));
	mr = e2e_reg(&e, in, (size_t)N * BIG, DDPS_LOCAL_WRITE);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(recv_at(&e.b, i, in + (size_t)i * BIG, BIG, mr), 0);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSED));
	for (unsigned i = 0; i < N; i++)
		cr_expect_eq(memcmp(in + (size_t)i * BIG, out, BIG), 0, "message %u", i);
	cr_expect_eq(ddps_disconnect(e.b.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, 0, "%s", e.a.error.text);
	e2e_close(&e);
	free(out);
	free(in);
}

Test(stall, contact_06_a_close_behind_large_sends_is_seen, .timeout = 60)
{
	close_behind_large_sends(e2e_wires[0]);
	close_behind_large_sends(e2e_wires[6]); /* tls */
}

/* What came is so much more than a session's share that the window is shut: who closes gives up after
 * a while, and that is seen. */
Test(stall, a_peer_that_gives_up_is_seen_by_whoever_does_not_read, .timeout = 120)
{
	enum { N = 6 };
	uint8_t *out;
	struct ddps_wc wc;
	struct e2e e;

	e2e_open(&e, e2e_wires[2]);
	e.attr.no_recv = DDPS_NO_RECV_STALL;
	e.connect.close_ms = 100;
	e2e_connect(&e);
	out = send_big(&e, N);
	for (unsigned i = 0; i < N; i++) {
		wc = e2e_wc(&e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
	}
	cr_expect_eq(ddps_disconnect(e.a.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
	cr_expect_not(e.b.seen & E2E_SEEN(DDPS_EV_PEER_CLOSED));
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.b.error.code, DDPS_E_RESET, "%s", e.b.error.text);
	e2e_close(&e);
	free(out);
}

/* The same when SCTP takes no more, so that not even the close of the session can leave. */
Test(stall, an_abort_is_seen_by_whoever_does_not_read, .timeout = 120)
{
	enum { N = 32 };
	uint8_t *out;
	struct e2e e;

	e2e_open(&e, e2e_wires[2]);
	e.attr.no_recv = DDPS_NO_RECV_STALL;
	e.attr.sq_depth = N;
	e.connect.close_ms = 100;
	e2e_connect(&e);
	out = send_big(&e, N);
	settle_stall_e2e(&e);
	cr_expect_eq(ddps_disconnect(e.a.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.b.error.code, DDPS_E_RESET, "%s", e.b.error.text);
	e2e_close(&e);
	free(out);
}

Test(stall, work_under_way_bounds_a_disconnect, .timeout = 120)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		uint8_t buf[8];
		struct ddps_mr *mr;
		struct e2e e;

		e2e_open(&e, e2e_wires[i]);
		e.attr.no_recv = DDPS_NO_RECV_STALL;
		e.accept.close_ms = 100;
		e2e_connect(&e);
		mr = e2e_reg(&e, buf, sizeof buf, DDPS_LOCAL_WRITE | DDPS_REMOTE_READ);
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
		e2e_expect_wc(&e, &e.a, DDPS_OP_SEND, DDPS_WC_SUCCESS, 0);
		settle_stall_e2e(&e);
		/* its response is behind the Send that b does not take */
		cr_assert_eq(e2e_post(&e.b, DDPS_OP_READ, buf, 8, mr, ddps_mr_stag(mr),
				      ddps_mr_to(mr)),
			     0);
		cr_expect_eq(ddps_disconnect(e.b.ep), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.b.error.code, DDPS_E_TIMEDOUT, "%s", e.b.error.text);
		e2e_expect_wc(&e, &e.b, DDPS_OP_READ, DDPS_WC_FLUSHED, 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		e2e_close(&e);
	}
}

Test(stall, abort_on_either_side_is_seen, .timeout = 120)
{
	for (int i = 0; i < 2 * E2E_NWIRES; i++) {
		struct e2e e;

		stall_one_send(&e, e2e_wires[i / 2]);
		cr_expect_eq(ddps_abort(i & 1 ? e.a.ep : e.b.ep), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_neq(e.b.error.code, 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		e2e_close(&e);
	}
}

Test(stall, the_default_is_the_rfcs, .timeout = 120, .description = "5041-7.1-3")
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	cr_expect_eq(attr.no_recv, DDPS_NO_RECV_TERMINATE);
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct e2e e;

		e2e_up(&e, e2e_wires[i]);
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.b.error.triple.code, 2);
		e.attr.no_recv = (enum ddps_no_recv)2;
		cr_expect_eq(ddps_ep_new(e.ctx, &e.attr, &ep), DDPS_E_INVAL);
		e2e_close(&e);
	}
}

/*
 * As programs do that know iWARP and InfiniBand only: receives on one queue pair are posted after
 * the traffic of another one.
 */
Test(stall, attack_4_receives_on_one_session_only_after_another_ones_traffic, .timeout = 120)
{
	enum { N = 20 }; /* MiB: more than any buffer on the way */

	for (int i = 0; i < E2E_NWIRES; i++) {
		struct e2e_end first_a, first_b, other;
		struct ddps_mr *mi;
		uint8_t *in = malloc((size_t)N * BIG), *out, *out2;
		struct ddps_wc wc;
		unsigned got = 0;
		struct e2e e;

		e2e_open(&e, e2e_wires[i]);
		e.attr.no_recv = DDPS_NO_RECV_STALL;
		e.attr.sq_depth = e.attr.rq_depth = N;
		e2e_connect(&e);
		first_a = e.a;
		first_b = e.b;
		e.a = e.b = (struct e2e_end){ 0 };
		e2e_connect(&e); /* a second session between the same two */
		other = e.a;
		e.a = first_a;
		out = send_big(&e, N);
		settle_stall_e2e(&e);
		e.a = other;
		mi = e2e_reg(&e, in, (size_t)N * BIG, DDPS_LOCAL_WRITE);
		for (unsigned k = 0; k < N; k++)
			cr_assert_eq(recv_at(&e.b, k, in + (size_t)k * BIG, BIG, mi), 0);
		out2 = send_big(&e, N);
		while (got < N) {
			wc = e2e_wc(&e);
			cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
			if (wc.op == DDPS_OP_RECV)
				cr_assert_eq(wc.ep, e.b.ep);
			got += wc.op == DDPS_OP_RECV;
		}
		for (unsigned k = 0; k < N; k++)
			cr_assert_eq(recv_at(&first_b, k, in + (size_t)k * BIG, BIG, mi), 0);
		for (got = 0; got < N;) {
			wc = e2e_wc(&e);
			cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
			got += wc.op == DDPS_OP_RECV && wc.ep == first_b.ep;
		}
		ddps_ep_free(first_a.ep);
		ddps_ep_free(first_b.ep);
		e2e_close(&e);
		free(in);
		free(out);
		free(out2);
	}
}

/* A session of e, whose responder alone stalls, with @mib MiB sent to it; e has no ends afterwards. */
static uint8_t *first_stalls(struct e2e *e, unsigned mib, struct e2e_end *a, struct e2e_end *b)
{
	uint8_t *out;

	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	e->attr.no_recv = DDPS_NO_RECV_STALL;
	e2e_connect(e);
	out = send_big(e, mib);
	settle_stall_e2e(e);
	*a = e->a;
	*b = e->b;
	e->a = e->b = (struct e2e_end){ 0 };
	e->attr.no_recv = DDPS_NO_RECV_TERMINATE;
	return out;
}

/*
 * A new session to a peer of which one session takes nothing: within a window that is not shut it
 * shares the association, else it has one of its own.  It works at either end immediately.
 */
static void joins(const char *wire, unsigned mib, unsigned sessions)
{
	struct ddps_assoc_stats st = { .struct_size = sizeof st };
	struct e2e_end first_a, first_b;
	uint8_t *out, word[2][8] = { "ping", "pong" };
	struct ddps_mr *mr;
	struct ddps_wc wc;
	struct e2e e;

	e2e_open(&e, wire);
	e.attr.sq_depth = e.attr.rq_depth = 64;
	e.connect.setup_ms = 2000; /* others are given 5 s */
	out = first_stalls(&e, mib, &first_a, &first_b);
	/* All that fits is under way. */
	for (unsigned i = 0; i < mib && sessions == 2; i++)
		e2e_expect_wc(&e, &first_a, DDPS_OP_SEND, DDPS_WC_SUCCESS, BIG);
	while (ddps_cq_poll(e.cq, &wc, 1) == 1)
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%u MiB: %s", mib, e.a.error.text);
	cr_assert_eq(ddps_ep_assoc_stats(e.a.ep, &st), 0);
	cr_expect_eq(st.sessions, sessions, "%u MiB: %u", mib, st.sessions);
	mr = e2e_reg(&e, word, sizeof word, DDPS_LOCAL_WRITE);
	for (int i = 0; i < 100; i++) {
		struct e2e_end *from = i & 1 ? &e.b : &e.a, *to = i & 1 ? &e.a : &e.b;

		cr_assert_eq(recv_at(to, 1, word[1], 8, mr), 0);
		cr_assert_eq(e2e_post(from, DDPS_OP_SEND, word[0], 8, mr, 0, 0), 0);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
	}
	cr_expect_not(first_b.seen & E2E_SEEN(DDPS_EV_CLOSED));
	ddps_ep_free(first_a.ep);
	ddps_ep_free(first_b.ep);
	e2e_close(&e);
	free(out);
}

Test(stall, attack_4_a_session_that_comes_later_is_set_up, .timeout = 120)
{
	joins(e2e_wires[2], 3, 2);  /* its share */
	joins(e2e_wires[2], 5, 2);  /* and a part of the window */
	joins(e2e_wires[2], 32, 1); /* all of it */
}

/* Within what our engine would take off its window, the kernel's SCTP is read on.  Runs in the guest
 * of tests/interop. */
Test(stall_kernel, a_session_that_comes_later_is_set_up, .timeout = 120)
{
	static const char wire[] = "sctp://127.0.0.1:0?backend=kernel&encap=off";

	if (ddps_has_backend("kernel") != 1)
		cr_skip_test("the kernel has no SCTP");
	joins(wire, 3, 2);
	joins(wire, 5, 2);
	joins(wire, 32, 1);
}

/*
 * Two sessions of one association, of which one takes nothing: it holds what is within its share, and
 * the other one moves many times that much meanwhile.
 */
Test(stall, a_stalled_session_leaves_its_association_alone, .timeout = 120)
{
	enum { HELD = 3, N = 64 }; /* MiB */
	struct ddps_assoc_stats st = { .struct_size = sizeof st };
	uint8_t *in = malloc(BIG), *out, *out2;
	struct e2e_end first_a, first_b;
	struct ddps_mr *mi;
	struct ddps_wc wc;
	unsigned got = 0;
	struct e2e e;

	e2e_open(&e, e2e_wires[2]);
	e.attr.sq_depth = e.attr.rq_depth = N;
	out = first_stalls(&e, HELD, &first_a, &first_b);
	for (unsigned i = 0; i < HELD; i++)
		e2e_expect_wc(&e, &first_a, DDPS_OP_SEND, DDPS_WC_SUCCESS, BIG);
	e2e_connect(&e);
	cr_assert_eq(ddps_ep_assoc_stats(e.a.ep, &st), 0);
	cr_assert_eq(st.sessions, 2);
	mi = e2e_reg(&e, in, BIG, DDPS_LOCAL_WRITE);
	for (unsigned k = 0; k < N; k++)
		cr_assert_eq(recv_at(&e.b, k, in, BIG, mi), 0);
	out2 = send_big(&e, N);
	while (got < N) {
		wc = e2e_wc(&e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		cr_assert_neq(wc.ep, first_b.ep);
		got += wc.op == DDPS_OP_RECV;
	}
	memset(in, 0, BIG);
	for (unsigned k = 0; k < HELD; k++)
		cr_assert_eq(recv_at(&first_b, k, in, BIG, mi), 0);
	for (got = 0; got < HELD;) {
		wc = e2e_wc(&e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		got += wc.op == DDPS_OP_RECV && wc.ep == first_b.ep;
	}
	cr_expect_eq(memcmp(in, out, BIG), 0);
	ddps_ep_free(first_a.ep);
	ddps_ep_free(first_b.ep);
	e2e_close(&e);
	free(in);
	free(out);
	free(out2);
}
