/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are cancelled inside the library.  The request to cancel stands when a call begins, so the
 * thread would end at the first cancellation point that the call comes to, with what it holds then.
 */
#include "support/e2e.h"
#include <pthread.h>
#include <string.h>

struct world {
	struct e2e e;
	struct ddps_mr *mr;
	uint8_t mem[8192];
	struct ddps_listener *listener;
	struct ddps_ep *ep; /* not connected */
	char uri[128];
};

static void post_while_cancelled(struct world *w)
{
	e2e_post(&w->e.a, DDPS_OP_WRITE, w->mem, 4096, w->mr, ddps_mr_stag(w->mr),
		 ddps_mr_to(w->mr) + 4096);
}

static void poll_while_cancelled(struct world *w)
{
	struct ddps_wc wc[8];

	ddps_cq_poll(w->e.cq, wc, 8);
}

static void wait_while_cancelled(struct world *w)
{
	struct ddps_wc wc[8];

	ddps_cq_wait(w->e.cq, wc, 8, 20);
}

static void get_event_while_cancelled(struct world *w)
{
	struct ddps_event ev;

	ddps_event_get(w->e.ctx, &ev);
}

static void event_waiting(struct world *w)
{
	struct ddps_event ev;

	ddps_event_wait(w->e.ctx, &ev, 20);
}

static void progress(struct world *w)
{
	ddps_progress(w->e.ctx, 5);
}

static void flush_while_cancelled(struct world *w)
{
	ddps_ctx_flush(w->e.ctx, 5);
}

static void listen_there(struct world *w)
{
	ddps_listen(w->e.ctx, "tcp://127.0.0.1:0", NULL, &w->listener);
}

static void stop_listening(struct world *w)
{
	ddps_listener_free(w->listener);
}

static void dial_while_cancelled(struct world *w)
{
	ddps_ep_new(w->e.ctx, &w->e.attr, &w->ep);
	ddps_connect(w->ep, w->e.uri, NULL);
}

static void end_attempt(struct world *w)
{
	ddps_abort(w->ep);
	ddps_ep_free(w->ep);
}

static void context(struct world *w)
{
	struct ddps_ctx *ctx;

	(void)w;
	if (!ddps_ctx_new(&ctx, NULL))
		ddps_ctx_free(ctx);
}

static void disconnect_while_cancelled(struct world *w)
{
	ddps_disconnect(w->e.a.ep);
}

static const struct call {
	const char *name;
	void (*run)(struct world *w);
} calls[] = {
	{ "ddps_post_send", post_while_cancelled },
	{ "ddps_cq_poll", poll_while_cancelled },
	{ "ddps_cq_wait", wait_while_cancelled },
	{ "ddps_event_get", get_event_while_cancelled },
	{ "ddps_event_wait", event_waiting },
	{ "ddps_progress", progress },
	{ "ddps_ctx_flush", flush_while_cancelled },
	{ "ddps_listen", listen_there },
	{ "ddps_listener_free", stop_listening },
	{ "ddps_connect", dial_while_cancelled },
	{ "ddps_abort, ddps_ep_free", end_attempt },
	{ "ddps_ctx_new, ddps_ctx_free", context },
	{ "ddps_disconnect", disconnect_while_cancelled },
};

struct cancelled {
	struct world *w;
	const struct call *call;
	bool returned;
};

static void *run_cancelled_call(void *arg)
{
	struct cancelled *c = arg;

	pthread_cancel(pthread_self());
	c->call->run(c->w);
	c->returned = true;
	pthread_testcancel();
	return NULL;
}

E2E_WIRES(cancel, contact_03_a_thread_that_is_cancelled_leaves_no_lock)
{
	struct world w;

	memset(&w, 0, sizeof w);
	e2e_up(&w.e, wire);
	w.mr = e2e_reg(&w.e, w.mem, sizeof w.mem, DDPS_REMOTE_WRITE);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct cancelled c = { .w = &w, .call = &calls[i] };
		struct ddps_wc wc[16];
		void *how;
		pthread_t t;

		cr_assert_eq(pthread_create(&t, NULL, run_cancelled_call, &c), 0);
		cr_assert_eq(pthread_join(t, &how), 0);
		cr_expect_eq(how, PTHREAD_CANCELED);
		cr_expect(c.returned, "%s: %s did not return", wire, calls[i].name);
		/* would wait for ever for a lock that nobody gives back */
		cr_assert_geq(ddps_cq_poll(w.e.cq, wc, 16), 0);
	}
	e2e_close(&w.e);
}

/* It waits and holds nothing: cancelled where it is, or not. */
static void settle_while_cancelled(struct world *w)
{
	ddps_ctx_settle(w->e.ctx, 1000);
}

E2E_WIRES(cancel, contact_03_a_thread_that_is_cancelled_while_it_settles)
{
	const struct call call = { "ddps_ctx_settle", settle_while_cancelled };
	struct world w;
	struct cancelled c = { .w = &w, .call = &call };
	struct ddps_wc wc;
	pthread_t t;

	memset(&w, 0, sizeof w);
	e2e_up(&w.e, wire);
	w.mr = e2e_reg(&w.e, w.mem, sizeof w.mem, DDPS_REMOTE_WRITE);
	post_while_cancelled(&w);
	cr_assert_eq(pthread_create(&t, NULL, run_cancelled_call, &c), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
	cr_assert_geq(ddps_cq_poll(w.e.cq, &wc, 1), 0);
	e2e_close(&w.e);
}
