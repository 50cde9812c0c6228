/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that closes all descriptors above 2 while it uses the library. */
#include "support/e2e.h"
#include "support/files.h"

static const char *const wires[] = { "tcp://127.0.0.1:0",
				     "sctp://127.0.0.1:0?backend=native&encap=0" };

static bool says_so(int err)
{
	return err == DDPS_E_SYSTEM && errno == EBADF;
}

/* Each call that does more than post and poll. */
static bool all_say_so(struct e2e *e, struct ddps_ep *idle, struct ddps_request *req)
{
	struct ddps_listener *l;
	struct ddps_wc wc;
	struct ddps_cq *cq;
	char uri[128];

	return says_so(ddps_abort(e->a.ep)) && says_so(ddps_disconnect(e->b.ep)) &&
	       says_so(ddps_cq_new(e->ctx, 1, &cq)) && says_so(ddps_event_fd(e->ctx)) &&
	       says_so(ddps_progress(e->ctx, 0)) && says_so(ddps_cq_poll(e->cq, &wc, 1)) &&
	       says_so(ddps_connect(idle, e->uri, NULL)) && says_so(ddps_accept(req, idle, NULL)) &&
	       says_so(ddps_reject(req, NULL, 0)) && says_so(ddps_cq_free(e->cq)) &&
	       says_so(ddps_cq_arm(e->cq, false)) && says_so(ddps_cq_fd(e->cq)) &&
	       says_so(ddps_ctx_fd(e->ctx)) && says_so(ddps_ctx_settle(e->ctx, 0)) &&
	       says_so(ddps_ctx_flush(e->ctx, 0)) &&
	       says_so(ddps_listen(e->ctx, e->uri, NULL, &l)) &&
	       says_so(ddps_listener_uri(e->listener, uri, sizeof uri));
}

static struct ddps_ep *idle_ep(struct e2e *e)
{
	struct ddps_ep *ep;

	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &ep), 0);
	return ep;
}

static struct ddps_request *new_request(struct e2e *e)
{
	struct ddps_event ev;

	cr_assert_eq(ddps_connect(idle_ep(e), e->uri, &e->connect), 0);
	do
		cr_assert_eq(ddps_event_wait(e->ctx, &ev, E2E_MS), 0);
	while (ev.type != DDPS_EV_CONNECT_REQUEST);
	return ev.request;
}

static void close_and_go_on(const char *wire, enum kind kind)
{
	struct ddps_request *req;
	struct e2e e, anew;
	struct ddps_ep *ep;

	e2e_up(&e, wire);
	ep = idle_ep(&e);
	req = new_request(&e);
	take_numbers(kind);
	if (!all_say_so(&e, ep, req))
		leave(101);
	ddps_ep_free(e.a.ep);
	ddps_listener_free(e.listener);
	ddps_ctx_free(e.ctx);
	if (touched() || touched_by_fork())
		leave(102);
	e2e_up(&anew, wire);
	e2e_close(&anew);
	leave(touched() ? 103 : 0);
}

Test(closed, the_programs_own_files_are_let_alone, .timeout = 60)
{
	for (int i = 0; i < 2; i++)
		for (enum kind kind = MEMORY; kind < KINDS; kind++) {
			const pid_t pid = fork();

			if (!pid)
				close_and_go_on(wires[i], kind);
			ends_well(pid, kind);
		}
}
