/* SPDX-License-Identifier: BSD-2-Clause */
/* What outlasts what: requests their listener, memory its revocation, nobody his deadline. */
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"
#include "support/e2e.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(lasting, .timeout = 60);

/* ---- 13: what is batched when a region is invalidated ---- */

#define LEN (16u << 20)

/* The initiator's Writes fill all sockets; then the peer invalidates their source. */
static void invalidated(const char *wire)
{
	uint8_t *src = malloc(LEN), *dst = calloc(1, LEN), octet = 0;
	struct ddps_mr *ms, *md, *mo;
	struct ddps_sge sge;
	struct ddps_wc wc = { 0 };
	struct e2e e;

	e2e_open(&e, wire);
	e.connect.crc = e.accept.crc = false;
	e2e_connect(&e);
	cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	memset(src, 'o', LEN);
	cr_assert_eq(ddps_mr_reg(e.pd, src, LEN, DDPS_REMOTE_READ, e.a.ep, &ms), 0);
	md = e2e_reg(&e, dst, LEN, DDPS_REMOTE_WRITE);
	mo = e2e_reg(&e, &octet, 1, DDPS_LOCAL_WRITE);
	sge = e2e_sge(&octet, 1, mo);
	cr_assert_eq(ddps_post_recv(e.a.ep, 7, &sge, 1), 0);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, src, LEN, ms, ddps_mr_stag(md),
				      ddps_mr_to(md)),
			     0);
	cr_assert_eq(ddps_post_send(e.b.ep, &(struct ddps_send_wr){ .op = DDPS_OP_SEND,
								    .flags = DDPS_WR_INVALIDATE,
								    .stag = ddps_mr_stag(ms) }),
		     0);
	while (wc.wr_id != 7)
		wc = e2e_wc(&e);
	cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
	memset(src, 'X', LEN); /* the program's own again */
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_null(memchr(dst, 'X', LEN), "%s: what was written afterwards reached the peer",
		       wire);
	cr_expect_eq(ddps_mr_dereg(ms), 0);
	cr_expect_eq(ddps_mr_dereg(md), 0);
	e2e_close(&e);
	free(src);
	free(dst);
}

E2E_WIRES(lasting, attack_13_an_invalidated_region_is_not_read_any_more)
{
	invalidated(wire);
}

/* ---- 17: who refers to user memory is known ---- */

Test(lasting, attack_17_dereg_looks_at_nobody_who_does_not_refer_to_memory)
{
	uint8_t octets[64];
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	for (int i = 0; i < 3; i++) {
		struct ddps_mr *mr = e2e_reg(&e, octets, sizeof octets, DDPS_LOCAL_WRITE);

		cr_expect_null(e.ctx->env.lenders, "two sessions, nothing under way");
		cr_expect_eq(ddps_mr_dereg(mr), 0);
	}
	e2e_close(&e);
}

/* ---- 14: regions bound to an endpoint ---- */

Test(lasting, attack_14_a_later_endpoint_does_not_inherit_regions)
{
	uint8_t octets[64];
	struct ddps_mr *mr;
	struct ddps_sge sge;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_mr_reg(e.pd, octets, sizeof octets, DDPS_LOCAL_WRITE, e.a.ep, &mr), 0);
	sge = e2e_sge(octets, sizeof octets, mr);
	cr_expect_eq(ddps_post_recv(e.a.ep, 1, &sge, 1), 0);
	for (int i = 0; i < 64; i++) { /* malloc gives the same place again, mostly */
		ddps_ep_free(e.a.ep);
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
		cr_expect_neq(e.a.ep->serial, mr->stream);
		cr_assert_eq(ddps_post_recv(e.a.ep, 1, &sge, 1), DDPS_E_ACCESS, "try %d", i);
	}
	cr_expect_eq(ddps_mr_dereg(mr), 0);
	e2e_close(&e);
}

/* ---- 18: queues of another context ---- */

Test(lasting, attack_18_queues_are_of_the_endpoints_context)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;
	struct e2e e, other;

	e2e_open(&e, e2e_wires[0]);
	e2e_open(&other, e2e_wires[0]);
	attr = e.attr;
	attr.send_cq = other.cq;
	cr_expect_eq(ddps_ep_new(e.ctx, &attr, &ep), DDPS_E_INVAL);
	attr = e.attr;
	attr.recv_cq = other.cq;
	cr_expect_eq(ddps_ep_new(e.ctx, &attr, &ep), DDPS_E_INVAL);
	attr = e.attr;
	attr.pd = other.pd;
	cr_expect_eq(ddps_ep_new(e.ctx, &attr, &ep), DDPS_E_INVAL);
	e2e_close(&other);
	e2e_close(&e);
}

/* ---- 15: ends that come, and not too early ---- */

/* A bare initiator of a plain session without CRC with @e's listener; it is accepted. */
static int open_bare_lasting_e2e(struct e2e *e)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned port = 0;

	cr_assert_eq(sscanf(e->uri, "tcp://127.0.0.1:%u", &port), 1);
	to.sin_port = htons((uint16_t)port);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	cr_assert_eq(send(fd, "MPA ID Req Frame\0\1\0\0", 20, 0), 20);
	e->accept.crc = false;
	e2e_wait(e, &e->b, E2E_SEEN(DDPS_EV_ESTABLISHED));
	return fd;
}

/* A zero-length Write, again and again, until the session is over. */
static void send_on_lasting_e2e(struct e2e *e, int fd)
{
	static const uint8_t fpdu[20] = { 0, 14, 0xc1, 0x40 };
	struct ddps_event ev = { 0 };
	uint64_t until = ddps_now() + 10000000000u;

	while (ev.type != DDPS_EV_CLOSED) {
		cr_assert_lt(ddps_now(), until, "it does not end while the peer sends");
		for (int i = 0; i < 10; i++)
			send(fd, fpdu, sizeof fpdu, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (ddps_event_wait(e->ctx, &ev, 5) < 0)
			ev.type = DDPS_EV_ESTABLISHED;
	}
	cr_expect_eq(ev.error.code, DDPS_E_TIMEDOUT, "%s", ev.error.text);
}

Test(lasting, attack_15_a_peer_that_sends_on_does_not_keep_a_session_alive)
{
	for (int reads = 0; reads < 2; reads++) {
		uint8_t octets[8];
		struct ddps_mr *mr;
		struct e2e e;
		int fd;

		e2e_open(&e, e2e_wires[0]);
		e.accept.close_ms = 200;
		fd = open_bare_lasting_e2e(&e);
		mr = e2e_reg(&e, octets, sizeof octets, DDPS_LOCAL_WRITE);
		if (reads) /* it is never answered */
			cr_assert_eq(e2e_post(&e.b, DDPS_OP_READ, octets, sizeof octets, mr, 1, 0),
				     0);
		cr_assert_eq(ddps_disconnect(e.b.ep), 0);
		send_on_lasting_e2e(&e, fd);
		close(fd);
		e2e_close(&e);
	}
}

/* The peer's FIN comes instead of a Read Response: the Send behind the Read has left nevertheless,
 * and another one may still go. */
Test(lasting, a_close_without_an_answer_ends_reads_alone, .description = "5041-6.2.1-9")
{
	static const uint8_t fpdu[20] = { 0, 14, 0xc1, 0x40 };
	uint8_t octets[8];
	struct ddps_mr *mr;
	struct e2e e;
	int fd;

	e2e_open(&e, e2e_wires[0]);
	fd = open_bare_lasting_e2e(&e);
	mr = e2e_reg(&e, octets, sizeof octets, DDPS_LOCAL_WRITE);
	cr_assert_eq(e2e_post(&e.b, DDPS_OP_READ, octets, sizeof octets, mr, 1, 0), 0);
	cr_assert_eq(e2e_post(&e.b, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
	cr_assert_eq(send(fd, fpdu, sizeof fpdu, 0), (ssize_t)sizeof fpdu);
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSED));
	e2e_expect_wc(&e, &e.b, DDPS_OP_READ, DDPS_WC_FLUSHED, 0);
	e2e_expect_wc(&e, &e.b, DDPS_OP_SEND, DDPS_WC_SUCCESS, 0);
	cr_assert_eq(e2e_post(&e.b, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
	e2e_expect_wc(&e, &e.b, DDPS_OP_SEND, DDPS_WC_SUCCESS, 0);
	close(fd);
	e2e_close(&e);
}

/* The kernel ends the stream of a killed program as that of one which ends in order: what was on its way is cut. */
Test(lasting, an_end_inside_a_message_is_a_lost_connection)
{
	/* a Send of one octet or more; a Write of two octets or more */
	uint8_t part[2][28] = { { 0, 19, 0x01, 0x43, [15] = 1, [20] = 'x' },
				{ 0, 16, 0x81, 0x40, [16] = 'x', 'y' } };
	const size_t size[2] = { 28, 24 };

	for (int i = 0; i < 4; i++) {
		const bool whole = i & 1, write = i & 2;
		uint8_t octets[8], fpdu[28];
		struct ddps_sge sge;
		struct ddps_mr *mr;
		uint32_t stag;
		struct e2e e;
		int fd;

		e2e_open(&e, e2e_wires[0]);
		fd = open_bare_lasting_e2e(&e);
		mr = e2e_reg(&e, octets, sizeof octets,
			     DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_ZERO_BASED);
		sge = e2e_sge(octets, sizeof octets, mr);
		cr_assert_eq(ddps_post_recv(e.b.ep, 0, &sge, 1), 0);
		memcpy(fpdu, part[write], sizeof fpdu);
		if (whole)
			fpdu[2] |= 0x40;
		stag = htonl(ddps_mr_stag(mr));
		if (write)
			memcpy(fpdu + 4, &stag, sizeof stag);
		cr_assert_eq(send(fd, fpdu, size[write], 0), (ssize_t)size[write]);
		cr_assert_eq(shutdown(fd, SHUT_WR), 0);
		if (whole) {
			e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSED));
			cr_assert_eq(ddps_disconnect(e.b.ep), 0);
		}
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
		close(fd);
		cr_expect_eq(e.b.error.code, whole ? 0 : DDPS_E_RESET, "%d: %s", i, e.b.error.text);
		e2e_close(&e);
	}
}

#define SETTLE (64u << 20)

Test(lasting, attack_15_settle_waits_until_all_is_written)
{
	uint8_t *src = calloc(1, SETTLE), *dst = calloc(1, SETTLE);
	struct ddps_mr *ms, *md;
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	ms = e2e_reg(&e, src, SETTLE, 0);
	md = e2e_reg(&e, dst, SETTLE, DDPS_REMOTE_WRITE);
	memset(src, 'x', SETTLE);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, src, SETTLE, ms, ddps_mr_stag(md),
			      ddps_mr_to(md)),
		     0);
	cr_expect_eq(ddps_ctx_settle(e.ctx, 0), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_ctx_settle(e.ctx, E2E_MS), 0);
	e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_SUCCESS, SETTLE);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(dst[SETTLE - 1], 'x');
	e2e_close(&e);
	free(src);
	free(dst);
}

E2E_WIRES(lasting, attack_15_requests_outlast_their_listener)
{
	for (int accept = 0; accept < 2; accept++) {
		struct e2e e;

		e2e_open(&e, wire);
		e.keep_request = true;
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
		cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
		while (!e.request.request) {
			struct ddps_event ev;

			cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
			cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
			e.request = ev;
		}
		ddps_listener_free(e.listener);
		e.listener = NULL;
		if (accept) {
			cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.b.ep), 0);
			cr_expect_eq(ddps_accept(e.request.request, e.b.ep, &e.accept), 0);
			e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_ESTABLISHED));
		} else {
			cr_expect_eq(ddps_reject(e.request.request, NULL, 0), 0);
			e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_REJECTED));
		}
		e2e_close(&e);
	}
}

/* ---- a request on an association that its peer is giving up ---- */

/* As at the end of their idle time: the responder's ends of @n associations take nothing any more. */
static void give_up_idle(struct e2e *e, unsigned n)
{
	struct ddps_sd_provider *prov = e->ctx->env.sctp;
	struct ddps_sd_carrier *c;

	ddps_lock(&e->ctx->lock);
	TAILQ_FOREACH(c, &prov->carriers, link) {
		if (c->goal || c->state != DDPS_SD_UP)
			continue;
		cr_assert_eq(c->nsessions, 0);
		c->state = DDPS_SD_GOING;
		c->b->shutdown(c->assoc);
		n--;
	}
	ddps_unlock(&e->ctx->lock);
	cr_assert_eq(n, 0);
}

/* The initiator's end of the first association. */
static struct ddps_sd_carrier *initiators(struct e2e *e)
{
	struct ddps_sd_provider *prov = e->ctx->env.sctp;
	struct ddps_sd_carrier *c;

	TAILQ_FOREACH(c, &prov->carriers, link)
		if (c->goal)
			return c;
	cr_assert_fail("no association");
	return NULL;
}

/* It has ended in order, and its association is idle. */
static void end_one(struct e2e *e)
{
	e2e_disconnect(e, &e->a);
	ddps_ep_free(e->a.ep);
	ddps_ep_free(e->b.ep);
	memset(&e->a, 0, sizeof e->a);
	memset(&e->b, 0, sizeof e->b);
	memset(&e->request, 0, sizeof e->request);
}

/* The request and the peer's SHUTDOWN pass each other: it is made again, over a new association.  So it is
 * if another one was there, and goes as well. */
Test(lasting, a_request_outlasts_the_idle_associations_it_was_put_on)
{
	for (int i = 0; i < 2 * E2E_NWIRES; i++) {
		const char *wire = e2e_wires[i / 2];
		struct e2e e;

		if (strncmp(wire, "sctp:", 5) != 0 || strstr(wire, "kernel"))
			continue;
		e2e_up(&e, wire);
		end_one(&e);
		if (i % 2) {
			struct ddps_sd_carrier *c = initiators(&e);

			c->blocked = true; /* so the next request has an association of its own */
			e2e_connect(&e);
			end_one(&e);
			c->blocked = false;
		}
		give_up_idle(&e, i % 2 ? 2 : 1);
		e2e_connect(&e);
		cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s: %s", wire, e.a.error.text);
		cr_expect(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", wire);
		e2e_disconnect(&e, &e.b);
		e2e_close(&e);
	}
}
