/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts, limits, descriptors to poll, regions bound to a session, wildcard listeners. */
#include "support/e2e.h"
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static bool is_context_e2e_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

Test(context, attributes_are_checked)
{
	struct ddps_ctx_attr attr;
	struct ddps_ctx *ctx;

	ddps_ctx_attr_init(&attr);
	attr.struct_size--;
	cr_expect_eq(ddps_ctx_new(&ctx, &attr), DDPS_E_INVAL);
	ddps_ctx_attr_init(&attr);
	attr.max_ird = DDPS_RD_MAX + 1;
	cr_expect_eq(ddps_ctx_new(&ctx, &attr), DDPS_E_INVAL);
	ddps_ctx_attr_init(&attr);
	attr.max_regions = 0;
	cr_expect_eq(ddps_ctx_new(&ctx, &attr), DDPS_E_INVAL);
	cr_expect_eq(ddps_ctx_new(NULL, NULL), DDPS_E_INVAL);
	cr_expect_str_eq(ddps_version(), DDPS_VERSION_STRING);
	cr_expect_eq(ddps_has_backend("native"), 1);
	cr_expect_eq(ddps_has_backend("usrsctp"), DDPS_E_INVAL);
	cr_expect_eq(ddps_has_backend("carrier pigeon"), DDPS_E_INVAL);
}

Test(context, regions_are_limited, .description = "5041-8.3.2-3 5042-6.4.1-1")
{
	struct ddps_ctx_attr attr;
	struct ddps_mr *mr[4];
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	char buf[16];

	ddps_ctx_attr_init(&attr);
	attr.max_regions = 3;
	cr_assert_eq(ddps_ctx_new(&ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(ctx, &pd), 0);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(ddps_mr_reg(pd, buf, sizeof buf, 0, NULL, &mr[i]), 0);
	cr_expect_eq(ddps_mr_reg(pd, buf, sizeof buf, 0, NULL, &mr[3]), DDPS_E_LIMIT);
	cr_expect_eq(ddps_mr_dereg(mr[1]), 0);
	cr_expect_eq(ddps_mr_reg(pd, buf, sizeof buf, 0, NULL, &mr[1]), 0);
	cr_expect_eq(ddps_mr_reg(pd, buf, sizeof buf, 0x100, NULL, &mr[3]), DDPS_E_INVAL);
	cr_expect_eq(ddps_mr_reg(pd, NULL, 1, 0, NULL, &mr[3]), DDPS_E_INVAL);
	cr_expect_eq(ddps_pd_free(pd), DDPS_E_BUSY);
	ddps_ctx_free(ctx);
}

/* What a work request may touch, and nothing else. */
Test(context, memory_is_copied_by_its_keys)
{
	struct ddps_ctx *ctx;
	struct ddps_pd *pd, *other;
	struct ddps_mr *r, *w;
	struct ddps_sge sge[2];
	uint8_t from[16] = "0123456789abcde", to[16], mem[16] = { 0 };
	size_t len = 8;

	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	cr_assert_eq(ddps_pd_new(ctx, &pd), 0);
	cr_assert_eq(ddps_pd_new(ctx, &other), 0);
	cr_assert_eq(ddps_mr_reg(pd, from, sizeof from, 0, NULL, &r), 0);
	cr_assert_eq(ddps_mr_reg(pd, mem, sizeof mem, DDPS_LOCAL_WRITE, NULL, &w), 0);
	sge[0] = (struct ddps_sge){ from + 10, 3, ddps_mr_stag(r) };
	sge[1] = (struct ddps_sge){ from, 2, ddps_mr_stag(r) };
	cr_expect_eq(ddps_sge_gather(pd, sge, 2, to, &len), 0);
	cr_expect_eq(len, 5);
	cr_expect_arr_eq(to, "abc01", 5);
	len = 4;
	cr_expect_eq(ddps_sge_gather(pd, sge, 2, to, &len), DDPS_E_TOO_LONG);
	cr_expect_eq(ddps_sge_gather(other, sge, 1, to, &len), DDPS_E_ACCESS);
	cr_expect_eq(ddps_sge_gather(pd, sge, DDPS_COPY_SGE_MAX + 1, to, &len), DDPS_E_INVAL);
	cr_expect_eq(ddps_sge_gather(pd, NULL, 0, to, &len), 0);
	cr_expect_eq(len, 0);
	sge[1] = (struct ddps_sge){ mem + 14, 3, ddps_mr_stag(w) };
	cr_expect_eq(ddps_sge_scatter(pd, sge + 1, 1, from, 1), DDPS_E_ACCESS, "out of bounds");
	sge[0] = (struct ddps_sge){ mem, 2, ddps_mr_stag(w) };
	sge[1] = (struct ddps_sge){ from, 2, ddps_mr_stag(r) };
	cr_expect_eq(ddps_sge_scatter(pd, sge, 2, from, 1), DDPS_E_ACCESS, "no right to write");
	sge[1] = (struct ddps_sge){ mem + 8, 4, ddps_mr_stag(w) };
	cr_expect_eq(ddps_sge_scatter(pd, sge, 2, from, 7), DDPS_E_TOO_LONG);
	cr_expect_eq(mem[0], 0, "nothing was copied");
	cr_expect_eq(ddps_sge_scatter(pd, sge, 2, from, 5), 0);
	cr_expect_arr_eq(mem, "01\0\0\0\0\0\000234\0", 12);
	cr_expect_eq(ddps_mr_dereg(w), 0);
	cr_expect_eq(ddps_sge_scatter(pd, sge, 2, from, 5), DDPS_E_ACCESS);
	ddps_ctx_free(ctx);
}

Test(context, zero_based_regions_start_at_0, .timeout = 30)
{
	uint8_t src[8] = "zeroes!", dst[64] = { 0 };
	struct ddps_mr *ms, *md;
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	ms = e2e_reg(&e, src, sizeof src, 0);
	md = e2e_reg(&e, dst, sizeof dst, DDPS_REMOTE_WRITE | DDPS_ZERO_BASED);
	cr_expect_eq(ddps_mr_to(md), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, src, sizeof src, ms, ddps_mr_stag(md), 56), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, NULL, 0, NULL, 0, 0), 0);
	e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_SUCCESS, 0);
	e2e_expect_wc(&e, &e.a, DDPS_OP_READ, DDPS_WC_SUCCESS, 0);
	cr_expect_arr_eq(dst + 56, src, sizeof src);
	e2e_close(&e);
}

Test(context, a_region_bound_to_another_session_is_out_of_reach, .timeout = 30,
     .description = "5041-8.2-2 5041-8.2-4 5040-8.1.1-2")
{
	uint8_t src[8] = "mine", dst[8] = { 0 };
	struct ddps_mr *ms, *bound;
	struct ddps_ep *other;
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &other), 0);
	ms = e2e_reg(&e, src, sizeof src, 0);
	cr_assert_eq(ddps_mr_reg(e.pd, dst, sizeof dst, DDPS_REMOTE_WRITE, other, &bound), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, src, sizeof src, ms, ddps_mr_stag(bound),
			      ddps_mr_to(bound)),
		     0);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect(e.b.error.has_triple && !e.b.error.by_peer);
	cr_expect_eq(e.b.error.triple.layer, 1);
	cr_expect_eq(e.b.error.triple.etype, 1);
	cr_expect_eq(e.b.error.triple.code, 2);
	cr_expect_eq(dst[0], 0);
	ddps_ep_free(other);
	e2e_close(&e);
}

Test(context, an_overflowing_completion_queue_ends_its_session_alone, .timeout = 30,
     .description = "5042-6.4.6-1 5040-8.1.1-11")
{
	struct ddps_cq *small, *big;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	big = e.cq;
	cr_assert_eq(ddps_cq_new(e.ctx, 2, &small), 0);
	e.attr.send_cq = small;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	e.attr.send_cq = big;
	e2e_connect(&e);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.triple.layer, 0);
	cr_expect_eq(e.a.error.triple.etype, 0);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect(e.b.error.by_peer);
	ddps_ep_free(e.a.ep);
	e.a.ep = NULL;
	cr_expect_eq(ddps_cq_free(small), 0);
	e2e_close(&e);
}

Test(context, descriptors_tell_when_to_look, .timeout = 30)
{
	struct ddps_event ev;
	struct ddps_wc wc;
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	cr_expect_not(is_context_e2e_readable(ddps_event_fd(e.ctx)));
	cr_expect_not(is_context_e2e_readable(ddps_cq_fd(e.cq)));
	/* Not armed: a completion does not show. */
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_expect_not(is_context_e2e_readable(ddps_cq_fd(e.cq)));
	/* Armed while one is queued: immediately. */
	cr_assert_eq(ddps_cq_arm(e.cq, false), 0);
	cr_expect(is_context_e2e_readable(ddps_cq_fd(e.cq)));
	cr_expect_eq(ddps_cq_wait(e.cq, &wc, 1, E2E_MS), 1);
	/* Solicited only: an ordinary success does not show, an error does. */
	cr_assert_eq(ddps_cq_arm(e.cq, true), 0);
	cr_expect_not(is_context_e2e_readable(ddps_cq_fd(e.cq)));
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_expect_not(is_context_e2e_readable(ddps_cq_fd(e.cq)));
	cr_expect_eq(ddps_cq_wait(e.cq, &wc, 1, E2E_MS), 1);
	cr_assert_eq(ddps_post_recv(e.a.ep, 0, NULL, 0), 0);
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	cr_expect(is_context_e2e_readable(ddps_cq_fd(e.cq)));
	/* Events: readable until the last one is taken. */
	cr_expect(is_context_e2e_readable(ddps_event_fd(e.ctx)));
	cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
	cr_expect_eq(ev.type, DDPS_EV_CLOSED);
	while (ddps_event_get(e.ctx, &ev) == 1)
		;
	cr_expect_not(is_context_e2e_readable(ddps_event_fd(e.ctx)));
	e2e_close(&e);
}

Test(context, events_from_before_the_descriptor_was_asked_for_show, .timeout = 30)
{
	struct ddps_event ev;
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	cr_assert_eq(ddps_abort(e.b.ep), 0);
	cr_assert_geq(ddps_progress(e.ctx, 0), 0);
	cr_expect(is_context_e2e_readable(ddps_event_fd(e.ctx)));
	while (ddps_event_get(e.ctx, &ev) == 1)
		;
	cr_expect_not(is_context_e2e_readable(ddps_event_fd(e.ctx)));
	e2e_close(&e);
}

Test(context, waits_end_in_time, .timeout = 30)
{
	struct ddps_event ev;
	struct ddps_wc wc;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_expect_eq(ddps_event_wait(e.ctx, &ev, 0), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_event_wait(e.ctx, &ev, 20), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_cq_wait(e.cq, &wc, 1, 20), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_cq_poll(e.cq, &wc, 1), 0);
	e2e_close(&e);
}

Test(context, a_solicited_send_wakes_the_receiver, .timeout = 30, .description = "5040-5.3-8")
{
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT };
	struct ddps_cq *rcq;
	struct ddps_wc wc;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_cq_new(e.ctx, 8, &rcq), 0);
	e.attr.recv_cq = rcq;
	e2e_connect(&e);
	cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.b.error.text);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ddps_post_recv(e.b.ep, (uint64_t)i, NULL, 0), 0);
	cr_assert_eq(ddps_cq_arm(rcq, true), 0);
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	cr_assert_eq(ddps_progress(e.ctx, E2E_MS) >= 0, 1);
	cr_expect_not(is_context_e2e_readable(ddps_cq_fd(rcq)));
	wr.flags |= DDPS_WR_SOLICITED;
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	while (!is_context_e2e_readable(ddps_cq_fd(rcq)))
		cr_assert_geq(ddps_progress(e.ctx, E2E_MS), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(ddps_cq_wait(rcq, &wc, 1, E2E_MS), 1);
		cr_expect_eq(wc.solicited, i == 1);
	}
	ddps_ep_free(e.a.ep);
	ddps_ep_free(e.b.ep);
	e.a.ep = e.b.ep = NULL;
	cr_expect_eq(ddps_cq_free(rcq), 0);
	e2e_close(&e);
}

static void expect_numbers(const char *text, const struct ddps_addr *a)
{
	char ip[INET6_ADDRSTRLEN] = "", want[80];

	inet_ntop(a->family == 6 ? AF_INET6 : AF_INET, a->ip, ip, sizeof ip);
	snprintf(want, sizeof want, a->family == 6 ? "[%s]:%u" : "%s:%u", ip, a->port);
	cr_expect_str_eq(text, want);
	cr_expect(!a->scope && !a->reserved);
}

static void expect_numbers_of_all(const struct e2e *e)
{
	const struct ddps_conn_info *info[] = { &e->request.info, &e->a.established.info,
						&e->b.established.info };

	for (unsigned i = 0; i < 3; i++) {
		expect_numbers(info[i]->local, &info[i]->local_addr);
		expect_numbers(info[i]->peer, &info[i]->peer_addr);
	}
}

E2E_WIRES(context, contact_26_addresses_are_numbers_too)
{
	struct e2e e;

	e2e_open(&e, wire);
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	if (!strncmp(e.uri, "shm:", 4))
		cr_expect_eq(e.b.established.info.peer_addr.family, 0, "there is none");
	else
		expect_numbers_of_all(&e);
	e2e_close(&e);
}

/* One listener on any address serves both families. */
static void wildcard(const char *wire, const char *scheme)
{
	static const char *const hosts[] = { "127.0.0.1", "[::1]" };
	char bound[128], *colon, *rest;

	for (int i = 0; i < 2; i++) {
		struct e2e e;

		e2e_open(&e, wire);
		strcpy(bound, e.uri);
		rest = strchr(bound, '?');
		if (rest)
			*rest++ = 0;
		colon = strrchr(bound, ':');
		snprintf(e.uri, sizeof e.uri, "%s://%s%s%s%s", scheme, hosts[i], colon,
			 rest ? "?" : "", rest ? rest : "");
		e2e_connect(&e);
		cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s: %s", e.uri,
			  e.a.error.text);
		cr_expect_eq(strncmp(e.b.established.info.peer, hosts[i], strlen(hosts[i])), 0,
			     "%s", e.b.established.info.peer);
		expect_numbers_of_all(&e);
		e2e_close(&e);
	}
}

Test(context, any_address_over_tcp, .timeout = 30)
{
	wildcard("tcp://:0", "tcp");
}

Test(context, any_address_over_sctp, .timeout = 30)
{
	wildcard("sctp://:0?backend=native&encap=0", "sctp");
}

/* Without a library thread: whatever arrives, this call has moved it. */
static void settle_whole_context_e2e(const char *wire)
{
	static uint8_t src[65536], dst[sizeof src];
	struct ddps_mr *ms, *md;
	struct e2e e;

	e2e_up(&e, wire);
	e2e_fill(src, sizeof src, 7);
	ms = e2e_reg(&e, src, sizeof src, 0);
	md = e2e_reg(&e, dst, sizeof dst, DDPS_REMOTE_WRITE);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, src, sizeof src, ms, ddps_mr_stag(md),
			      ddps_mr_to(md)),
		     0);
	cr_expect_eq(ddps_ctx_settle(e.ctx, E2E_MS), 0, "%s", wire);
	cr_expect_arr_eq(dst, src, sizeof src, "%s", wire);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(ddps_ctx_settle(e.ctx, -1), 0, "there is nothing left to wait for");
	e2e_close(&e);
}

Test(context, what_was_sent_over_sctp_arrives_before_the_end, .timeout = 60)
{
	settle_whole_context_e2e("sctp://127.0.0.1:0?backend=native&encap=0");
}

/* The peer has the same loop, which the short wait below does not reach. */
Test(context, settling_has_an_end, .timeout = 60)
{
	struct e2e e;

	e2e_up(&e, "sctp://127.0.0.1:0?backend=native&encap=0");
	cr_expect_eq(ddps_ctx_settle(e.ctx, 0), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_ctx_settle(e.ctx, E2E_MS), 0);
	e2e_close(&e);
}
