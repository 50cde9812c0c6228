/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up, private data, rejection, negotiation and ends of sessions on every wire. */
#include "support/e2e.h"
#include "support/child.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

E2E_WIRES(session, negotiates_and_tells_both_sides, .description = "6581-9.1-1 6581-9.1-11")
{
	struct e2e e;

	e2e_open(&e, wire);
	e.connect.ird = 5;
	e.connect.ord = 30;
	e.accept.ird = 20;
	e.accept.ord = 9;
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	cr_expect(e.a.established.info.enhanced);
	cr_expect(e.a.established.info.initiator);
	cr_expect_not(e.b.established.info.initiator);
	/* The responder raised its IRD to our ORD and lowered its ORD to our IRD. */
	cr_expect_eq(e.request.info.peer_ird, 5);
	cr_expect_eq(e.request.info.peer_ord, 30);
	cr_expect_eq(e.a.established.info.peer_ird, 30);
	cr_expect_eq(e.a.established.info.peer_ord, 5);
	cr_expect_eq(e.a.established.info.ord, 30);
	cr_expect_eq(e.b.established.info.ird, 30);
	cr_expect_eq(e.b.established.info.ord, 5);
	cr_expect_str_eq(e.a.established.info.peer, e.b.established.info.local);
	cr_expect_geq(e.a.established.info.mulpdu, 128);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

static void private_data(const char *wire, size_t len, bool plain)
{
	uint8_t there[DDPS_PD_MAX], back[DDPS_PD_MAX];
	struct e2e e;

	e2e_fill(there, sizeof there, 1);
	e2e_fill(back, sizeof back, 2);
	e2e_open(&e, wire);
	e.connect.plain = plain;
	e.connect.private_data = there;
	e.accept.private_data = back;
	e.connect.private_data_len = e.accept.private_data_len = len;
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	cr_expect_eq(e.a.established.info.enhanced, !plain);
	cr_expect_eq(e.request.private_data_len, len);
	cr_expect_eq(memcmp(e.request.private_data, there, len), 0);
	cr_expect_eq(e.a.established.private_data_len, len);
	cr_expect_eq(memcmp(e.a.established.private_data, back, len), 0);
	e2e_disconnect(&e, &e.b);
	e2e_close(&e);
}

E2E_WIRES(session, carries_private_data_both_ways,
	  .description = "5044-7.1.1-19 5043-5.2.3-1 5043-5.2.3-6 6581-7-2 6581-9-d1")
{
	private_data(wire, 0, false);
	private_data(wire, 1, false);
	private_data(wire, DDPS_PD_MAX_ENHANCED - 1, false);
	private_data(wire, DDPS_PD_MAX_ENHANCED, false);
	private_data(wire, DDPS_PD_MAX - 1, true);
	private_data(wire, DDPS_PD_MAX, true);
}

E2E_WIRES(session, refuses_one_octet_too_many, .description = "5044-7.1.1-19 5043-5.2.3-3 6581-7-4")
{
	static const uint8_t pd[DDPS_PD_MAX + 1];
	struct e2e e;

	e2e_open(&e, wire);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	e.connect.private_data = pd;
	e.connect.private_data_len = DDPS_PD_MAX_ENHANCED + 1;
	cr_expect_eq(ddps_connect(e.a.ep, e.uri, &e.connect), DDPS_E_TOO_LONG);
	e.connect.plain = true;
	e.connect.private_data_len = DDPS_PD_MAX + 1;
	cr_expect_eq(ddps_connect(e.a.ep, e.uri, &e.connect), DDPS_E_TOO_LONG);
	/* Nothing was sent and the endpoint is as new. */
	ddps_conn_param_init(&e.connect);
	e.keep_request = true;
	e.before_accept = NULL;
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	while (!e.request.request) {
		struct ddps_event ev;

		cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
		cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
		e.request = ev;
	}
	cr_expect_eq(ddps_reject(e.request.request, pd, DDPS_PD_MAX_ENHANCED + 1), DDPS_E_TOO_LONG);
	e.accept.private_data = pd;
	e.accept.private_data_len = DDPS_PD_MAX_ENHANCED + 1;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.b.ep), 0);
	cr_expect_eq(ddps_accept(e.request.request, e.b.ep, &e.accept), DDPS_E_TOO_LONG);
	e.accept.private_data_len = DDPS_PD_MAX_ENHANCED;
	cr_expect_eq(ddps_accept(e.request.request, e.b.ep, &e.accept), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_ESTABLISHED));
	e2e_close(&e);
}

E2E_WIRES(session, reject_reaches_the_initiator,
	  .description = "5044-7.1.2-5 5044-7.1.2-6 5043-6.3-2 6581-9.1-11")
{
	struct e2e e;

	for (int plain = 0; plain < 2; plain++) {
		e2e_open(&e, wire);
		e.connect.plain = plain;
		e.reject = true;
		e.reject_pd = "not today";
		e.reject_pd_len = 9;
		e2e_connect(&e);
		cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_REJECTED));
		cr_expect_eq(e.a.established.private_data_len, 9);
		cr_expect_eq(memcmp(e.a.established.private_data, "not today", 9), 0);
		cr_expect_eq(e.a.error.code, DDPS_E_REJECTED);
		cr_expect_str_not_empty(e.a.error.peer);
		e2e_close(&e);
	}
}

E2E_WIRES(session, peer_to_peer_uses_each_rtr,
	  .description = "6581-9.2-4 6581-9.2-9 6581-9.2-1 6581-5-1")
{
	static const unsigned kinds[] = { DDPS_RTR_SEND, DDPS_RTR_WRITE, DDPS_RTR_READ };

	for (size_t i = 0; i < 3; i++) {
		uint8_t out[8] = "hello!!", in[8] = { 0 };
		struct ddps_mr *mo, *mi;
		struct ddps_sge sge;
		struct e2e e;

		e2e_open(&e, wire);
		mo = e2e_reg(&e, out, sizeof out, 0);
		mi = e2e_reg(&e, in, sizeof in, DDPS_LOCAL_WRITE);
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
		sge = e2e_sge(in, sizeof in, mi);
		cr_assert_eq(ddps_post_recv(e.a.ep, 7, &sge, 1), 0);
		e.connect.p2p = true;
		e.connect.rtr = kinds[i];
		e2e_connect(&e);
		cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
		cr_expect(e.a.established.info.p2p);
		cr_expect_eq(e.a.established.info.rtr, kinds[i]);
		cr_expect_eq(e.b.established.info.rtr, kinds[i]);
		/* The responder may send first now; the RTR used up no receive. */
		cr_assert_eq(e2e_post(&e.b, DDPS_OP_SEND, out, sizeof out, mo, 0, 0), 0);
		for (int n = 0; n < 2; n++) {
			struct ddps_wc wc = e2e_wc(&e);

			cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
			if (wc.op == DDPS_OP_RECV)
				cr_expect_eq(wc.len, sizeof out);
		}
		cr_expect_arr_eq(in, out, sizeof out);
		e2e_disconnect(&e, &e.a);
		e2e_close(&e);
	}
}

E2E_WIRES(session, no_common_rtr_is_rejected_below_the_application,
	  .description = "6581-7-8 6581-9.2-8")
{
	struct ddps_listen_param lp;
	struct e2e e;

	e2e_open(&e, wire);
	ddps_listener_free(e.listener);
	ddps_listen_param_init(&lp);
	lp.rtr = DDPS_RTR_WRITE;
	cr_assert_eq(ddps_listen(e.ctx, wire, &lp, &e.listener), 0);
	cr_assert_gt(ddps_listener_uri(e.listener, e.uri, sizeof e.uri), 0);
	e.connect.p2p = true;
	e.connect.rtr = DDPS_RTR_SEND;
	e2e_connect(&e);
	cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_REJECTED));
	cr_expect_eq(e.a.established.info.peer_rtr, DDPS_RTR_WRITE);
	cr_expect_null(e.request.request);
	e2e_close(&e);
}

E2E_WIRES(session, rtr_mismatch_accepted_ends_in_terminate_2_0_07,
	  .description = "6581-9.2-10 6581-9.2-11")
{
	struct ddps_listen_param lp;
	struct e2e e;

	e2e_open(&e, wire);
	ddps_listener_free(e.listener);
	ddps_listen_param_init(&lp);
	lp.rtr = DDPS_RTR_WRITE;
	lp.rtr_mismatch_accept = true;
	cr_assert_eq(ddps_listen(e.ctx, wire, &lp, &e.listener), 0);
	cr_assert_gt(ddps_listener_uri(e.listener, e.uri, sizeof e.uri), 0);
	e.connect.p2p = true;
	e.connect.rtr = DDPS_RTR_SEND;
	e.accept.rtr = DDPS_RTR_WRITE;
	e2e_connect(&e);
	cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_FAILED));
	cr_expect(e.a.error.has_triple && !e.a.error.by_peer);
	cr_expect_eq(e.a.error.triple.layer, 2);
	cr_expect_eq(e.a.error.triple.etype, 0);
	cr_expect_eq(e.a.error.triple.code, 7);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_FAILED));
	cr_expect(e.b.error.has_triple && e.b.error.by_peer);
	cr_expect_eq(e.b.error.triple.code, 7);
	e2e_close(&e);
}

E2E_WIRES(session, need_ord_rejects_and_says_how_much, .description = "6581-9.1-5")
{
	struct e2e e;

	e2e_open(&e, wire);
	e.connect.ird = 3;
	e.accept.need_ord = 4;
	e2e_connect(&e);
	cr_expect_eq(e.accept_result, DDPS_E_IRD);
	cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_REJECTED));
	cr_expect_eq(e.a.established.info.peer_ord, 4);
	e2e_close(&e);
}

static const uint16_t rd_edges[] = { 0, 1, 128, 129, DDPS_RD_MAX, DDPS_RD_ULP };
#define NEDGES (sizeof rd_edges / sizeof rd_edges[0])

E2E_WIRES(session, ird_ord_edges, .description = "6581-9-1 6581-9.1-12 6581-9.1-14")
{
	for (size_t i = 0; i < NEDGES * NEDGES; i++) {
		uint16_t ird = rd_edges[i / NEDGES], ord = rd_edges[i % NEDGES];
		const struct ddps_conn_info *a, *b;
		struct e2e e;

		e2e_open(&e, wire);
		e.connect.ird = ird;
		e.connect.ord = ord;
		e.accept.ird = 7;
		e.accept.ord = 7;
		e2e_connect(&e);
		cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
		a = &e.a.established.info;
		b = &e.b.established.info;
		cr_expect_eq(b->peer_ird, ird);
		cr_expect_eq(b->peer_ord, ord);
		cr_expect_eq(a->peer_ird, ord == DDPS_RD_ULP ? DDPS_RD_ULP : b->ird);
		cr_expect_eq(a->peer_ord, ird == DDPS_RD_ULP ? DDPS_RD_ULP : b->ord);
		if (ird != DDPS_RD_ULP)
			cr_expect_leq(b->ord, ird);
		if (ord != DDPS_RD_ULP)
			cr_expect_eq(a->ord, ord);
		e2e_close(&e);
	}
}

E2E_WIRES(session, abort_is_seen_by_the_peer)
{
	struct e2e e;

	e2e_up(&e, wire);
	cr_expect_eq(ddps_abort(e.a.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, DDPS_E_CLOSED);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	e2e_close(&e);
}

E2E_WIRES(session, states_are_checked)
{
	struct ddps_conn_info info;
	struct e2e e;

	e2e_open(&e, wire);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_expect_eq(ddps_disconnect(e.a.ep), DDPS_E_STATE);
	cr_expect_eq(ddps_abort(e.a.ep), DDPS_E_STATE);
	cr_expect_eq(ddps_ep_info(e.a.ep, &info), DDPS_E_STATE);
	cr_expect_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), DDPS_E_STATE);
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	cr_expect_eq(ddps_connect(e.a.ep, e.uri, NULL), DDPS_E_STATE);
	cr_expect_eq(ddps_ep_info(e.a.ep, &info), 0);
	cr_expect_eq(ddps_pd_free(e.pd), DDPS_E_BUSY);
	cr_expect_eq(ddps_cq_free(e.cq), DDPS_E_BUSY);
	e2e_disconnect(&e, &e.a);
	cr_expect_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), DDPS_E_STATE);
	cr_expect_eq(ddps_disconnect(e.a.ep), 0);
	e2e_close(&e);
}

/* sessctl stat shows a session by it: nobody else has it, also when its endpoint is gone. */
E2E_WIRES(session, each_endpoint_has_a_number)
{
	struct ddps_ep *more;
	struct e2e e;

	e2e_up(&e, wire);
	cr_expect_eq(ddps_ep_number(e.a.ep) + ddps_ep_number(e.b.ep), 1 + 2);
	for (uint64_t n = 3; n < 5; n++) {
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &more), 0);
		cr_expect_eq(ddps_ep_number(more), n);
		ddps_ep_free(more);
	}
	e2e_close(&e);
}

/* There is no work to carry out yet: as an abort. */
E2E_WIRES(session, disconnecting_before_it_is_established_fails)
{
	struct e2e e;

	e2e_open(&e, wire);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	cr_expect_eq(ddps_disconnect(e.a.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_FAILED));
	cr_expect_eq(e.a.error.code, DDPS_E_CLOSED);
	cr_expect_not(e.a.seen & E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(ddps_abort(e.a.ep), 0);
	e2e_close(&e);
}

E2E_WIRES(session, nothing_is_left_behind)
{
	unsigned before = e2e_fds();
	struct e2e e;

	e2e_up(&e, wire);
	e2e_disconnect(&e, &e.b);
	e2e_close(&e);
	/* With the session still open, too. */
	e2e_up(&e, wire);
	e2e_close(&e);
	cr_expect_eq(e2e_fds(), before);
}

Test(session, a_forked_child_is_informed, .timeout = 30)
{
	struct e2e e;
	int status = -1;
	pid_t pid;

	e2e_up(&e, e2e_wires[0]);
	pid = fork();
	if (!pid) {
		struct ddps_event ev;
		bool good = ddps_progress(e.ctx, 0) == DDPS_E_FORKED &&
			    ddps_event_get(e.ctx, &ev) == DDPS_E_FORKED &&
			    ddps_disconnect(e.a.ep) == DDPS_E_FORKED;

		leave_child_fixture(good ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	/* The parent's session goes on. */
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

/* The peer keeps its association, which the first listener accepted. */
E2E_WIRES(session, a_new_listener_takes_the_place_of_an_old_one)
{
	struct ddps_listener *second;
	struct e2e_end first, first_peer;
	struct e2e e;

	e2e_up(&e, wire);
	ddps_listener_free(e.listener);
	e.listener = NULL;
	cr_assert_eq(ddps_listen(e.ctx, e.uri, NULL, &second), 0, "%s", e.uri);
	first = e.a;
	first_peer = e.b;
	memset(&e.a, 0, sizeof e.a);
	memset(&e.b, 0, sizeof e.b);
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	ddps_ep_free(first.ep);
	ddps_ep_free(first_peer.ep);
	e.listener = second;
	e2e_close(&e);
}

/* The association of the one before may be on its way out. */
E2E_WIRES(session, all_goes_and_the_same_port_serves_again)
{
	enum { ROUNDS = 12 };
	struct e2e e;

	e2e_open(&e, wire);
	for (unsigned i = 0; i < ROUNDS; i++) {
		e2e_connect(&e);
		cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "round %u: %s", i,
			  e.a.error.text);
		if (i & 1)
			e2e_disconnect(&e, i & 2 ? &e.a : &e.b);
		ddps_ep_free(i & 4 ? e.a.ep : e.b.ep);
		ddps_ep_free(i & 4 ? e.b.ep : e.a.ep);
		memset(&e.a, 0, sizeof e.a);
		memset(&e.b, 0, sizeof e.b);
		for (unsigned k = 0; k < i % 3; k++)
			cr_assert_geq(ddps_progress(e.ctx, 0), 0);
		ddps_listener_free(e.listener);
		for (unsigned k = 0; k < i % 5; k++)
			cr_assert_geq(ddps_progress(e.ctx, 0), 0);
		cr_assert_eq(ddps_listen(e.ctx, e.uri, NULL, &e.listener), 0, "%s", e.uri);
	}
	e2e_close(&e);
}

E2E_WIRES(session, a_refused_initiator_tries_again_when_asked_to)
{
	struct e2e e;
	struct ddps_event ev;

	e2e_open(&e, wire);
	ddps_listener_free(e.listener);
	e.listener = NULL;
	e.connect.refused_retry_ms = E2E_MS;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	/* Refused at least once in that time; nothing depends on it. */
	cr_expect_eq(ddps_event_wait(e.ctx, &ev, 60), DDPS_E_TIMEDOUT);
	cr_assert_eq(ddps_listen(e.ctx, e.uri, NULL, &e.listener), 0, "%s", e.uri);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_ESTABLISHED));
	e2e_close(&e);
}

E2E_WIRES(session, without_that_a_refusal_is_final, .description = "8261-6.1-7")
{
	struct e2e e;

	e2e_open(&e, wire);
	ddps_listener_free(e.listener);
	e.listener = NULL;
	if (!strncmp(wire, "sctps",
		     5)) /* inside DTLS a host's word that nothing is there ends nothing */
		e.connect.connect_ms = 900;
	e2e_connect(&e);
	cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_FAILED));
	if (!strncmp(wire, "sctps", 5)) {
		cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
		cr_expect(strstr(e.a.error.text, "says that nothing has this port"), "%s",
			  e.a.error.text);
		e2e_close(&e);
		return;
	}
	cr_expect_eq(e.a.error.code, DDPS_E_REFUSED, "%s", e.a.error.text);
	e2e_close(&e);
}

static void nudge_open(struct e2e *e, uint32_t first_ms, uint32_t nudge_ms)
{
	e2e_open(e, e2e_wires[0]);
	e->accept.first_fpdu_ms = first_ms;
	e->connect.nudge_ms = nudge_ms;
	e2e_connect(e);
	cr_assert(e->a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->a.error.text);
}

/* A responder may not speak first (RFC 5044 7.1.2): its Send leaves because of the nudge, which
 * itself shows in no completion queue. */
Test(session, a_nudge_breaks_the_silence, .timeout = 60)
{
	uint8_t out[4] = { 1, 2, 3, 4 }, in[4] = { 0 };
	struct ddps_mr *in_mr, *out_mr;
	struct ddps_sge sge;
	struct ddps_wc wc;
	struct e2e e;

	nudge_open(&e, 0, 20);
	in_mr = e2e_reg(&e, in, sizeof in, DDPS_LOCAL_WRITE);
	out_mr = e2e_reg(&e, out, sizeof out, 0);
	sge = e2e_sge(in, sizeof in, in_mr);
	cr_assert_eq(ddps_post_recv(e.a.ep, 0, &sge, 1), 0);
	cr_assert_eq(e2e_post(&e.b, DDPS_OP_SEND, out, sizeof out, out_mr, 0, 0), 0);
	for (unsigned seen = 0; seen != (1u << DDPS_OP_SEND | 1u << DDPS_OP_RECV);) {
		wc = e2e_wc(&e);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		cr_assert_neq(wc.op, DDPS_OP_WRITE);
		seen |= 1u << wc.op;
	}
	cr_expect_eq(memcmp(in, out, sizeof in), 0);
	e2e_disconnect(&e, &e.a);
	cr_expect_eq(ddps_cq_poll(e.cq, &wc, 1), 0);
	ddps_mr_dereg(in_mr);
	ddps_mr_dereg(out_mr);
	e2e_close(&e);
}

/* Not asked for, there is none, and the responder gives up. */
Test(session, there_is_no_nudge_by_default, .timeout = 60)
{
	struct ddps_conn_param p;
	struct e2e e;

	ddps_conn_param_init(&p);
	cr_expect_eq(p.nudge_ms, 0);
	nudge_open(&e, 60, p.nudge_ms);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.b.error.code, DDPS_E_TIMEDOUT, "%s", e.b.error.text);
	e2e_close(&e);
}

/* ---- where a session comes from ---- */

E2E_WIRES(session, attack_24a_a_session_comes_from_the_address_that_was_given)
{
	static const char *const bad[] = { "",	 "127.0.0.4",	"localhost:0",
					   ":0", "[::1]:99999", "127.0.0.4:0?encap=1" };
	const bool none = !strncmp(wire, "shm:", 4); /* there are no addresses */
	struct ddps_ep *ep;
	struct e2e e;

	e2e_open(&e, wire);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		e.connect.local = bad[i];
		cr_expect_eq(ddps_connect(ep, e.uri, &e.connect),
			     none ? DDPS_E_UNSUPPORTED : DDPS_E_ADDRESS, "%s", bad[i]);
	}
	ddps_ep_free(ep);
	if (none) {
		e2e_close(&e);
		return;
	}
	e.connect.local = strstr(wire, "[") ? "[::1]:0" : "127.0.0.4:0";
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s: %s", wire, e.a.error.text);
	cr_expect(!strncmp(e.request.info.peer, e.connect.local, strlen(e.connect.local) - 2),
		  "%s: from %s", wire, e.request.info.peer);
	e2e_close(&e);
}
