/* SPDX-License-Identifier: BSD-2-Clause */
/* The conformance cases that need no application suit any: here one that talks, and listens. */
#include "conform/run.h"
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#define RECEIVES 16u
#define TICK_MS	 20

struct talker {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_mr *mr;
	char uri[128];
	pthread_t thread;
	volatile bool stop;
	uint8_t mem[64];
};

static void accept_one(struct talker *t, struct ddps_request *req)
{
	struct ddps_sge sge = { t->mem, sizeof t->mem, ddps_mr_stag(t->mr) };
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = t->pd;
	attr.send_cq = attr.recv_cq = t->cq;
	cr_assert_eq(ddps_ep_new(t->ctx, &attr, &ep), 0);
	for (unsigned i = 0; i < RECEIVES; i++)
		cr_assert_eq(ddps_post_recv(ep, i, &sge, 1), 0);
	if (ddps_accept(req, ep, NULL) < 0)
		ddps_ep_free(ep);
}

/* As soon as it may it says something, in several ways. */
static void speak(struct talker *t, struct ddps_ep *ep)
{
	struct ddps_sge sge = { t->mem, 8, ddps_mr_stag(t->mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	/* The session may be over already. */
	(void)ddps_post_send(ep, &wr);
	wr.op = DDPS_OP_WRITE;
	wr.nsge = 0;
	(void)ddps_post_send(ep, &wr);
}

static void *serve(void *arg)
{
	struct talker *t = arg;
	struct ddps_event ev;
	struct ddps_wc wc;

	while (!t->stop) {
		while (ddps_cq_poll(t->cq, &wc, 1) == 1)
			;
		if (ddps_event_wait(t->ctx, &ev, TICK_MS))
			continue;
		switch (ev.type) {
		case DDPS_EV_CONNECT_REQUEST:
			accept_one(t, ev.request);
			break;
		case DDPS_EV_ESTABLISHED:
			speak(t, ev.ep);
			break;
		case DDPS_EV_PEER_CLOSED:
			ddps_disconnect(ev.ep);
			break;
		case DDPS_EV_CLOSED:
		case DDPS_EV_FAILED:
			ddps_ep_free(ev.ep);
			break;
		default:
			break;
		}
	}
	return NULL;
}

static void start(struct talker *t, const char *uri)
{
	struct ddps_ctx_attr attr;
	struct ddps_listener *l;

	memset(t, 0, sizeof *t);
	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	cr_assert_eq(ddps_ctx_new(&t->ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(t->ctx, &t->pd), 0);
	cr_assert_eq(ddps_cq_new(t->ctx, 4096, &t->cq), 0);
	cr_assert_eq(ddps_mr_reg(t->pd, t->mem, sizeof t->mem, DDPS_LOCAL_WRITE, NULL, &t->mr), 0);
	cr_assert_eq(ddps_listen(t->ctx, uri, NULL, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, t->uri, sizeof t->uri), 0);
	cr_assert_eq(pthread_create(&t->thread, NULL, serve, t), 0);
}

static void all_cases(unsigned wire, const char *uri)
{
	static struct talker t;
	struct cf_run run = { .wire = wire, .uri = t.uri, .limit_ms = 10000 };
	const struct cf_case *c;
	const char *why;
	unsigned n = 0;

	start(&t, uri);
	for (size_t i = 0; (c = cf_case_at(i)); i++) {
		struct cf_result res;

		if (!cf_case_fits(c, &run, &why))
			continue;
		cf_run_case(&run, c, &res);
		cr_expect_neq(res.verdict, CF_FAIL, "%s: %s", c->name, res.why);
		cf_trace_free(res.trace);
		n++;
	}
	cr_expect_gt(n, 60);
	t.stop = true;
	pthread_join(t.thread, NULL);
	ddps_ctx_free(t.ctx);
}

Test(conform, cases_suit_a_talking_responder_tcp)
{
	all_cases(CF_TCP, "tcp://127.0.0.1:0");
}

Test(conform, cases_suit_a_talking_responder_sctp)
{
	all_cases(CF_SCTP, "sctp://127.0.0.1:0?backend=usrsctp&encap=0");
}
