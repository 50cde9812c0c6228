/* SPDX-License-Identifier: BSD-2-Clause */
/* What settle says of work that a peer has refused or cut off: on each wire, whoever drives the writer. */
#include "support/clock.h"
#include "support/e2e.h"
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEN	   64u
#define TRIES	   20
#define PATIENT_MS 200 /* settle waits so long for a peer's end: one that is later it cannot know */

TestSuite(refused, .timeout = 120);

static const char *const wires[] = { "tcp://127.0.0.1:0",
				     "sctp://127.0.0.1:0?backend=native&encap=0",
				     "sctp://127.0.0.1:0?backend=kernel&encap=off" };
#define WIRES (ddps_has_backend("kernel") == 1 ? 3 : 2)

/* It has a context of its own. */
struct writer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_mr *mr;
};

static uint8_t octets[LEN];

static void take_refused_event(struct ddps_ctx *ctx, enum ddps_event_type type)
{
	struct ddps_event ev = { .type = DDPS_EV_SRQ_LIMIT };

	while (ev.type != type)
		cr_assert_eq(ddps_event_wait(ctx, &ev, E2E_MS), 0, "%s", ddps_event_name(type));
}

/* A writer, driven by a thread or by its calls, in a session with a reader, which has a thread. */
static void open_refused(struct e2e *e, struct writer *w, const char *uri, bool thread)
{
	struct ddps_ctx_attr attr;
	struct ddps_ep_attr ep;
	struct ddps_event ev;

	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	e2e_open_with(e, uri, &attr);
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->b.ep), 0);
	attr.thread = thread;
	cr_assert_eq(ddps_ctx_new(&w->ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(w->ctx, &w->pd), 0);
	cr_assert_eq(ddps_cq_new(w->ctx, 64, &w->cq), 0);
	cr_assert_eq(ddps_mr_reg(w->pd, octets, LEN, 0, NULL, &w->mr), 0);
	ddps_ep_attr_init(&ep);
	ep.pd = w->pd;
	ep.send_cq = ep.recv_cq = w->cq;
	cr_assert_eq(ddps_ep_new(w->ctx, &ep, &w->ep), 0);
	e->connect.p2p = true;
	cr_assert_eq(ddps_connect(w->ep, e->uri, &e->connect), 0);
	do {
		(void)ddps_progress(w->ctx, 0);
	} while (ddps_event_wait(e->ctx, &ev, 1));
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	cr_assert_eq(ddps_accept(ev.request, e->b.ep, &e->accept), 0);
	take_refused_event(w->ctx, DDPS_EV_ESTABLISHED);
	take_refused_event(e->ctx, DDPS_EV_ESTABLISHED);
}

static void close_refused(struct e2e *e, struct writer *w)
{
	ddps_ctx_free(w->ctx);
	e2e_close(e);
}

/* To memory that nobody has. */
static void write_astray(struct writer *w)
{
	struct ddps_sge sge = { octets, LEN, ddps_mr_stag(w->mr) };
	const struct ddps_send_wr wr = {
		.op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1, .stag = 0xdeadbe00, .to = 4096
	};

	cr_assert_eq(ddps_post_send(w->ep, &wr), 0);
}

static void settle_what_was_refused(const char *uri, bool thread, enum ddps_event_type fetched)
{
	struct writer w;
	struct e2e e;

	open_refused(&e, &w, uri, thread);
	write_astray(&w);
	take_refused_event(w.ctx, fetched);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ddps_ctx_settle(w.ctx, E2E_MS), DDPS_E_RESET, "%s", uri);
	ddps_ep_free(w.ep);
	cr_expect_eq(ddps_ctx_settle(w.ctx, E2E_MS), 0, "%s: it is forgotten", uri);
	close_refused(&e, &w);
}

Test(refused, contact_01_settle_reports_what_was_refused_before)
{
	for (int i = 0; i < 4 * WIRES; i++)
		settle_what_was_refused(wires[i / 4], i % 2,
					i & 2 ? DDPS_EV_CLOSED : DDPS_EV_TERMINATED);
}

/* Whether settle, which takes this long, has had the time to see it. */
static bool reports_refused(struct writer *w, const char *uri)
{
	uint64_t begun = read_clock_ms();
	int err = ddps_ctx_settle(w->ctx, E2E_MS);

	cr_assert(err == DDPS_E_RESET || (!err && read_clock_ms() - begun >= PATIENT_MS), "%s: %s",
		  uri, ddps_strerror(err));
	return err;
}

Test(refused, contact_01_settle_reports_what_is_refused_meanwhile)
{
	for (int i = 0; i < 2 * WIRES; i++) {
		bool reports = false;

		for (int k = 0; k < TRIES && !reports; k++) {
			struct writer w;
			struct e2e e;

			open_refused(&e, &w, wires[i / 2], i % 2);
			write_astray(&w);
			reports = reports_refused(&w, wires[i / 2]);
			close_refused(&e, &w);
		}
		cr_expect(reports, "%s", wires[i / 2]);
	}
}

/* A Terminate of the writer's own, about what its peer has sent: in front of settle, or when settle has seen
 * that all had arrived.  Over SCTP nothing comes after the close. */
Test(refused, contact_01_a_terminate_of_this_side_counts_whenever_it_is_sent)
{
	for (int i = 0; i < 2 * WIRES + 2; i++) {
		const char *wire = wires[i < 2 * WIRES ? i / 2 : 0];
		const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct ddps_sge sge = { .len = LEN };
		const struct ddps_send_wr astray = {
			.op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1, .stag = 0xdeadbe00, .to = 4096
		};
		struct writer w;
		struct e2e e;

		open_refused(&e, &w, wire, i % 2);
		cr_assert_eq(ddps_post_recv(e.b.ep, 0, NULL, 0), 0);
		sge = e2e_sge(octets, LEN, e2e_reg(&e, octets, LEN, 0));
		cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		while (i >= 2 * WIRES && ddps_ctx_settle(w.ctx, 0))
			cr_assert_geq(ddps_progress(w.ctx, 0), 0);
		cr_assert_eq(ddps_post_send(e.b.ep, &astray), 0);
		take_refused_event(w.ctx, DDPS_EV_TERMINATED);
		cr_expect_eq(ddps_ctx_settle(w.ctx, E2E_MS), DDPS_E_RESET, "%s %d", wire, i);
		close_refused(&e, &w);
	}
}

/* Its TCP has acknowledged all, but it resets the connection in place of closing it. */
Test(refused, contact_01_settle_reports_a_reset_by_the_peer)
{
	for (int i = 0; i < 2; i++) {
		const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct writer w;
		struct e2e e;

		open_refused(&e, &w, wires[0], i);
		cr_assert_eq(ddps_post_recv(e.b.ep, 0, NULL, 0), 0);
		cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		while (ddps_ctx_settle(w.ctx, 0)) /* it has not waited for the peer's end */
			cr_assert_geq(ddps_progress(w.ctx, 0), 0);
		take_refused_event(e.ctx, DDPS_EV_PEER_CLOSED);
		cr_assert_eq(ddps_abort(e.b.ep), 0);
		take_refused_event(w.ctx, DDPS_EV_CLOSED);
		cr_expect_eq(ddps_ctx_settle(w.ctx, E2E_MS), DDPS_E_RESET);
		close_refused(&e, &w);
	}
}

/* What the program has ended by itself does not arrive either; without work there is nothing to lose. */
Test(refused, contact_01_settle_reports_what_was_aborted)
{
	for (int i = 0; i < 2 * WIRES; i++) {
		const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct writer w;
		struct e2e e;

		open_refused(&e, &w, wires[i / 2], false);
		cr_assert_eq(ddps_post_recv(e.b.ep, 0, NULL, 0), 0);
		if (i % 2)
			cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		cr_assert_eq(ddps_abort(w.ep), 0);
		cr_expect_eq(ddps_ctx_settle(w.ctx, E2E_MS), i % 2 ? DDPS_E_RESET : 0, "%s",
			     wires[i / 2]);
		close_refused(&e, &w);
	}
}

/* Over TCP a peer that has closed its side in order is written to; when it is gone that is reset. */
Test(refused, contact_01_settle_reports_what_a_peer_that_is_gone_did_not_take)
{
	for (int i = 0; i < 4; i++) {
		const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct ddps_event ev = { .type = DDPS_EV_SRQ_LIMIT };
		struct writer w;
		struct e2e e;

		open_refused(&e, &w, wires[0], i % 2);
		cr_assert_eq(ddps_disconnect(e.b.ep), 0);
		take_refused_event(w.ctx, DDPS_EV_PEER_CLOSED);
		ddps_ep_free(e.b.ep);
		e.b.ep = NULL;
		cr_assert_eq(ddps_post_send(w.ep, &wr), 0);
		if (i < 2) {
			cr_expect_eq(ddps_ctx_settle(w.ctx, E2E_MS), DDPS_E_RESET);
		} else {
			cr_assert_eq(ddps_disconnect(w.ep), 0);
			while (ev.type != DDPS_EV_CLOSED)
				cr_assert_eq(ddps_event_wait(w.ctx, &ev, E2E_MS), 0);
			cr_expect_eq(ev.error.code, DDPS_E_RESET, "%s", ev.error.text);
		}
		close_refused(&e, &w);
	}
}

/* What was on its way is dropped on all wires, and is not called an end in order. */
Test(refused, contact_01_a_peer_that_aborts_ends_out_of_order)
{
	for (int i = 0; i < 2 * WIRES; i++) {
		const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct ddps_wc wc;
		struct e2e e;

		e2e_up(&e, wires[i / 2]);
		cr_assert_eq(ddps_post_recv(e.b.ep, 0, NULL, 0), 0);
		cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
		if (i % 2) {
			cr_assert_eq(ddps_abort(e.b.ep), 0);
		} else {
			ddps_ep_free(e.b.ep);
			e.b.ep = NULL;
		}
		cr_expect_eq(ddps_ctx_settle(e.ctx, E2E_MS), DDPS_E_RESET, "%s", wires[i / 2]);
		while (ddps_cq_poll(e.cq, &wc, 1) == 1)
			cr_expect(wc.op == DDPS_OP_SEND || wc.status != DDPS_WC_SUCCESS);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.a.error.code, DDPS_E_RESET, "%s: %s", wires[i / 2], e.a.error.text);
		e2e_close(&e);
	}
}

/* Where sessions share an association there is only RFC 5043's message, which an end in order has, too: the
 * others go on. */
Test(refused, contact_01_over_sctp_an_abort_leaves_other_sessions_alone)
{
	for (int i = 1; i < WIRES; i++) {
		struct e2e_end a, b;
		struct e2e e;

		e2e_up(&e, wires[i]);
		a = e.a;
		b = e.b;
		e.a = e.b = (struct e2e_end){ 0 };
		e2e_connect(&e); /* on the same association */
		cr_assert_eq(ddps_abort(e.b.ep), 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_PEER_CLOSED));
		cr_expect_eq(ddps_disconnect(e.a.ep), 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.a.error.code, 0, "%s", e.a.error.text);
		ddps_ep_free(e.a.ep);
		ddps_ep_free(e.b.ep);
		e.a = a;
		e.b = b;
		cr_assert_eq(ddps_post_recv(e.b.ep, 0, NULL, 0), 0);
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
		e2e_expect_wc(&e, &e.a, DDPS_OP_SEND, DDPS_WC_SUCCESS, 0);
		e2e_expect_wc(&e, &e.b, DDPS_OP_RECV, DDPS_WC_SUCCESS, 0);
		e2e_close(&e);
	}
}

/* ---- the first FPDU is wrong: the session ends, and no Terminate may leave ---- */

/* An initiator by hand, of MPA revision 1 with CRCs. */
static int dial_unsent_e2e(const char *uri)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(strrchr(uri, ':') + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const char request[] = "MPA ID Req Frame\x40\1\0";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	cr_assert_eq(send(fd, request, sizeof request, 0), (ssize_t)sizeof request);
	return fd;
}

/* Octets until the peer's FIN, while the context is served. */
static size_t receive_unsent_e2e(struct e2e *e, int fd, uint8_t *to, size_t least, size_t room)
{
	size_t n = 0;
	ssize_t k = 1;

	while (n < least || (!least && k)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		cr_assert_geq(ddps_progress(e->ctx, 0), 0);
		if (poll(&p, 1, 1) != 1)
			continue;
		k = recv(fd, to + n, room - n, 0);
		cr_assert_geq(k, 0);
		n += (size_t)k;
	}
	return n;
}

Test(unsent, contact_04_a_terminate_that_may_not_leave_is_not_said_to_have_left, .timeout = 60,
     .description = "5044-7.1.2-15")
{
	/* a Send of one octet, and four octets that are no CRC of it */
	static const uint8_t fpdu[] = { 0, 19, 0x41, 0x43, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0,
					0, 1,  0,    0,	   0, 0, 'x', 0, 0, 0, 9, 9, 9, 9 };
	struct ddps_event ev;
	uint8_t got[256];
	struct e2e e;
	int fd;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.b.ep), 0);
	fd = dial_unsent_e2e(e.uri);
	cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	cr_assert_eq(ddps_accept(ev.request, e.b.ep, NULL), 0);
	cr_assert_eq(receive_unsent_e2e(&e, fd, got, 20, 20), 20); /* the Reply */
	cr_assert_eq(send(fd, fpdu, sizeof fpdu, 0), (ssize_t)sizeof fpdu);
	cr_expect_eq(receive_unsent_e2e(&e, fd, got, 0, sizeof got), 0, "nothing but a FIN");
	close(fd);
	do
		cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
	while (ev.type != DDPS_EV_CLOSED && ev.type != DDPS_EV_FAILED);
	cr_expect_eq(ev.error.code, DDPS_E_TERMINATED, "%s", ev.error.text);
	cr_expect(strstr(ev.error.text, "CRC"), "%s", ev.error.text);
	cr_expect_null(strstr(ev.error.text, "sent"), "%s", ev.error.text);
	e2e_close(&e);
}
