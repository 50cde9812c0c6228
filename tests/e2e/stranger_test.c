/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions with an SCTP that is not ours: one that is killed and comes again from the same ports,
 * and transfers with loss.  All that is in E2E_WIRES runs with it too.
 */
#include "peer/usrsctp.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"
#include "support/two.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIRE	 "sctp://127.0.0.1:0?encap=0"
#define ATTEMPTS 5
#define BIG	 (64u << 20)
#define PIECE	 (1u << 20)

static struct two_side ours, theirs;

static void stranger_open(void)
{
	two_open(&theirs, false, false);
	cr_assert_eq(ddps_sd_use_backend(&theirs.ctx->env, &peer_usrsctp, true, true), 0);
}

/* It says nothing any more, and its memory is gone. */
static void kill_stranger(struct ddps_ep *ep)
{
	peer_usrsctp_knobs.mute = true;
	ddps_ep_free(ep);
	ddps_listener_free(theirs.listener);
	two_close(&theirs);
	peer_usrsctp_knobs.mute = false;
}

static void both_go_on(void)
{
	cr_assert_geq(ddps_progress(theirs.ctx, 0), 0);
	cr_assert_geq(ddps_progress(ours.ctx, 1), 0);
}

static uint16_t sctp_port(const char *addr)
{
	return (uint16_t)atoi(strrchr(addr, ':') + 1);
}

/* A session from @a, whose endpoint is @from, to @b; false: it failed.  Our other endpoints may hear
 * of their end meanwhile: *@lost is one that does. */
static bool try_session(struct two_side *a, struct ddps_ep *from, const char *uri,
			struct two_side *b, struct ddps_ep *to, bool *lost)
{
	const uint64_t until = two_ms() + E2E_MS;
	struct ddps_event ev;
	bool up = false;

	cr_assert_eq(ddps_connect(from, uri, NULL), 0);
	while (two_ms() < until) {
		both_go_on();
		while (ddps_event_get(a->ctx, &ev) == 1) {
			if (ev.ep == from && ev.type != DDPS_EV_ESTABLISHED)
				return false;
			up |= ev.ep == from;
			*lost |= ev.ep != from && ev.error.code == DDPS_E_RESET;
		}
		while (ddps_event_get(b->ctx, &ev) == 1) {
			if (ev.type == DDPS_EV_CONNECT_REQUEST)
				cr_assert_eq(ddps_accept(ev.request, to, NULL), 0);
			else if (ev.ep != to)
				*lost |= ev.error.code == DDPS_E_RESET;
		}
		if (up)
			return true;
	}
	cr_assert_fail("neither up nor failed");
	return false;
}

/* Octets from end to end, so that both know that it works. */
static void ping_stranger_e2e(struct ddps_ep *from, struct ddps_cq *from_cq, struct ddps_ep *to,
			      struct ddps_cq *to_cq)
{
	const uint64_t until = two_ms() + E2E_MS;
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	bool sent = false, got = false;
	struct ddps_wc wc;

	cr_assert_eq(ddps_post_recv(to, 1, NULL, 0), 0);
	cr_assert_eq(ddps_post_send(from, &wr), 0);
	while (!sent || !got) {
		cr_assert(two_ms() < until, "sent %d, got %d", sent, got);
		both_go_on();
		sent |= ddps_cq_poll(from_cq, &wc, 1) == 1 && wc.status == DDPS_WC_SUCCESS;
		got |= ddps_cq_poll(to_cq, &wc, 1) == 1 && wc.status == DDPS_WC_SUCCESS;
	}
}

/* A client's host was booted: its first set-up is a restart for us (RFC 9260 5.2.4 A). */
Test(stranger, a_client_that_was_killed_comes_again_from_its_port, .timeout = 60)
{
	struct ddps_ep *a, *b, *again;
	struct ddps_conn_info i;
	bool up = false, lost = false;
	struct ddps_cq *their_cq = NULL, *our_cq;

	two_open(&ours, false, false);
	stranger_open();
	a = two_ep(&theirs, two_cq(&theirs));
	b = two_ep(&ours, two_cq(&ours));
	two_connect(&theirs, a, &ours, b, WIRE);
	cr_assert_eq(ddps_ep_info(a, &i), 0);
	peer_usrsctp_knobs.port = sctp_port(i.local);
	kill_stranger(a);
	our_cq = two_cq(&ours);
	again = two_ep(&ours, our_cq);
	for (int n = 0; n < ATTEMPTS && !up; n++) {
		stranger_open();
		their_cq = two_cq(&theirs);
		a = two_ep(&theirs, their_cq);
		up = try_session(&theirs, a, ours.uri, &ours, again, &lost);
		if (!up) {
			ddps_ep_free(a);
			two_close(&theirs);
		}
	}
	cr_assert(up);
	cr_expect(lost, "the session of before ends");
	cr_assert_eq(ddps_ep_info(a, &i), 0);
	cr_expect_eq(sctp_port(i.local), peer_usrsctp_knobs.port);
	ping_stranger_e2e(a, their_cq, again, our_cq);
	ping_stranger_e2e(again, our_cq, a, their_cq);
	ddps_ep_free(a);
	ddps_ep_free(b);
	ddps_ep_free(again);
	two_close(&theirs);
	two_close(&ours);
}

/* A server that was killed and runs again knows nothing of the session. */
Test(stranger, a_server_that_was_killed_runs_again, .timeout = 60)
{
	struct ddps_cq *our_cq, *their_cq;
	struct ddps_ep *a, *b, *again;
	bool up = false, lost = false;
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	char uri[128];

	two_open(&ours, false, false);
	stranger_open();
	a = two_ep(&ours, two_cq(&ours));
	b = two_ep(&theirs, two_cq(&theirs));
	two_connect(&ours, a, &theirs, b, WIRE);
	snprintf(uri, sizeof uri, "%s", theirs.uri);
	kill_stranger(b);
	stranger_open();
	cr_assert_eq(ddps_listen(theirs.ctx, uri, NULL, &theirs.listener), 0);
	cr_assert_eq(ddps_post_send(a, &wr), 0); /* nobody knows this association */
	our_cq = two_cq(&ours);
	their_cq = two_cq(&theirs);
	b = two_ep(&theirs, their_cq);
	for (int n = 0; n < ATTEMPTS && !up; n++) {
		again = two_ep(&ours, our_cq);
		up = try_session(&ours, again, uri, &theirs, b, &lost);
		if (!up)
			ddps_ep_free(again);
	}
	cr_assert(up);
	cr_expect(lost, "the session of before ends");
	ping_stranger_e2e(again, our_cq, b, their_cq);
	ping_stranger_e2e(b, their_cq, again, our_cq);
	ddps_ep_free(a);
	ddps_ep_free(again);
	ddps_ep_free(b);
	two_close(&theirs);
	two_close(&ours);
}

/* ---- loss ---- */

static uint8_t *src, *dst;

/* 64 MiB by @op, of which three of a thousand packets are lost each way. */
static void much(const char *wire, enum ddps_op op)
{
	struct ddps_mr *from, *to;
	struct e2e e;
	bool read = op == DDPS_OP_READ;

	e2e_up(&e, wire);
	memset(dst, 0, BIG);
	from = e2e_reg(&e, src, BIG, DDPS_REMOTE_READ);
	to = e2e_reg(&e, dst, BIG, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE);
	peer_usrsctp_knobs.lose = 3;
	for (uint32_t at = 0; at < BIG; at += PIECE)
		cr_assert_eq(e2e_post(&e.a, op, (read ? dst : src) + at, PIECE, read ? to : from,
				      ddps_mr_stag(read ? from : to),
				      ddps_mr_to(read ? from : to) + at),
			     0);
	for (uint32_t at = 0; at < BIG; at += PIECE)
		e2e_expect_wc(&e, &e.a, op, DDPS_WC_SUCCESS, PIECE);
	peer_usrsctp_knobs.lose = 0;
	e2e_disconnect(&e, &e.a);
	cr_expect_eq(memcmp(src, dst, BIG), 0);
	cr_expect_eq(ddps_mr_dereg(from), 0);
	cr_expect_eq(ddps_mr_dereg(to), 0);
	e2e_close(&e);
}

static void both_roles(enum ddps_op op)
{
	src = malloc(BIG);
	dst = malloc(BIG);
	cr_assert(src && dst);
	e2e_fill(src, BIG, 7);
	much(e2e_wires[4], op);
	much(e2e_wires[5], op);
	free(src);
	free(dst);
}

Test(stranger, writes_of_64_mib_with_loss, .timeout = 120)
{
	both_roles(DDPS_OP_WRITE);
}

Test(stranger, reads_of_64_mib_with_loss, .timeout = 120)
{
	both_roles(DDPS_OP_READ);
}
