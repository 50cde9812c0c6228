/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are cancelled inside the library.  The request to cancel stands when a call begins, so the
 * thread would end at the first cancellation point that the call comes to, with what it holds then.
 */
#include "support/e2e.h"
#include "support/child.h"
#include "session/session.h"
#include <ddpsess/capture.h>
#include <ddpsess/watch.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

struct world {
	struct e2e e;
	struct ddps_mr *mr;
	uint8_t mem[8192];
	struct ddps_listener *listener;
	struct ddps_ep *ep; /* not connected */
	struct ddps_secure *secure;
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

static void listen_by_name(struct world *w)
{
	struct ddps_listener *l;

	if (!ddps_listen(w->e.ctx, "tcp://localhost:0", NULL, &l))
		ddps_listener_free(l);
}

static void keep_packets(struct world *w)
{
	struct ddps_capture *c;

	(void)w;
	if (!ddps_capture_open(&c, "/dev/null"))
		ddps_capture_close(c);
}

static void show_context(struct world *w)
{
	struct ddps_watch *watch;

	if (!ddps_watch_open(&watch, w->e.ctx, "cancelled", NULL))
		ddps_watch_close(watch);
}

static void read_credentials(struct world *w)
{
	struct ddps_secure_attr none;
	struct ddps_secure *secure;

	ddps_secure_attr_init(&none);
	none.ca = none.cert = none.key = "/dev/null";
	if (!ddps_secure_open(&secure, &none, NULL))
		ddps_secure_close(secure);
	ddps_secure_reload(w->secure, NULL);
	ddps_secure_close(w->secure);
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

/* It ends the session, and the first event is shown on a descriptor. */
static void invalidate_while_cancelled(struct world *w)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_LOCAL_INV, .stag = 0x12345678 };
	struct ddps_event ev;

	ddps_event_fd(w->e.ctx);
	while (ddps_event_get(w->e.ctx, &ev) > 0)
		;
	ddps_post_send(w->e.a.ep, &wr);
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
	{ "ddps_listen by name", listen_by_name },
	{ "ddps_capture_open, ddps_capture_close", keep_packets },
	{ "ddps_watch_open, ddps_watch_close", show_context },
	{ "ddps_secure_open, ddps_secure_reload, ddps_secure_close", read_credentials },
	{ "ddps_connect", dial_while_cancelled },
	{ "ddps_abort, ddps_ep_free", end_attempt },
	{ "ddps_ctx_new, ddps_ctx_free", context },
	{ "ddps_post_send of an Invalidate that fails", invalidate_while_cancelled },
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
	w.secure = e2e_secure();
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

/* ---- a child of fork that goes on living: what its parent ends has ended nevertheless ---- */

static const char *const wires[] = { "tcp://127.0.0.1:0",
				     "sctp://127.0.0.1:0?backend=native&encap=0" };
#define NWIRES 2

/* By the system call itself, as runtimes of other languages do it: no handler of fork is run. */
static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static pid_t idle_raw_child(void)
{
	return idle_child_of(raw_fork);
}

/* @unread: octets have come that nobody has taken from the socket yet. */
static void peer_learns(const char *wire, pid_t (*child_of)(void), bool unread)
{
	struct ddps_event ev;
	struct e2e e;
	pid_t child;

	e2e_up(&e, wire);
	child = child_of();
	if (unread)
		cr_assert_eq(e2e_post(&e.b, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	do
		cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0, "the peer is told nothing");
	while (ev.ep != e.b.ep);
	/* Over TCP that is a reset, or a FIN if nothing was unread. */
	cr_expect(ev.type == DDPS_EV_PEER_CLOSED || ev.type == DDPS_EV_CLOSED);
	no_child(child);
	e2e_close(&e);
}

Test(fork, attack_12_a_peer_learns_of_an_abort, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++) {
		peer_learns(wires[i], idle_child, false);
		peer_learns(wires[i], idle_child, true);
	}
	peer_learns(wires[0], idle_raw_child, false);
	peer_learns(wires[0], idle_raw_child, true);
}

/* The whole context goes, with an open session; then the same port once more. */
static void port_is_free(const char *wire, pid_t (*child_of)(void))
{
	char uri[sizeof((struct e2e *)NULL)->uri];
	struct e2e e;
	pid_t child;

	e2e_up(&e, wire);
	memcpy(uri, e.uri, sizeof uri);
	child = child_of();
	e2e_close(&e);
	e2e_up(&e, uri);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
	no_child(child);
}

Test(fork, attack_12_a_listeners_port_is_free, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++)
		port_is_free(wires[i], idle_child);
	port_is_free(wires[0], idle_raw_child);
}

Test(fork, attack_12_freeing_in_the_child_closes_its_copies, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++) {
		const unsigned before = e2e_fds();
		struct e2e e;
		pid_t pid;

		e2e_up(&e, wires[i]);
		pid = fork();
		if (!pid) {
			int was;

			ddps_ctx_free(e.ctx);
			pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &was);
			leave_child_fixture((e2e_fds() != before) +
					    2 * (was != PTHREAD_CANCEL_ENABLE));
		}
		cr_expect_eq(await_child_status(pid), 0,
			     "1: descriptors are left, 2: a lock is (%s)", wires[i]);
		/* Nothing of the parent's has gone with them. */
		e2e_disconnect(&e, &e.b);
		e2e_close(&e);
	}
}

/* A child that has a context of its own has it whole. */
Test(fork, attack_12_a_child_has_sessions_of_its_own, .timeout = 60)
{
	for (int i = 0; i < NWIRES; i++) {
		struct e2e e;
		pid_t pid;

		e2e_up(&e, wires[i]);
		pid = fork();
		if (!pid) {
			struct e2e own;

			ddps_ctx_free(e.ctx);
			e2e_up(&own, wires[0]);
			e2e_disconnect(&own, &own.a);
			e2e_close(&own);
			leave_child_fixture(0);
		}
		cr_expect_eq(await_child_status(pid), 0);
		e2e_disconnect(&e, &e.a);
		e2e_close(&e);
	}
}

/* Another thread is in a call of the library while a process forks: the lists of the context may be in
 * any state, and are let alone. */
Test(fork, freeing_in_the_child_of_a_context_that_is_in_use, .timeout = 60)
{
	struct e2e e;
	pid_t pid;

	e2e_up(&e, wires[0]);
	ddps_lock(&e.ctx->lock);
	pid = fork();
	if (!pid) {
		const int queue = ddps_cq_fd(e.cq) == DDPS_E_FORKED;

		ddps_ctx_free(e.ctx);
		leave_child_fixture(queue ? 0 : 1);
	}
	cr_expect_eq(await_child_status(pid), 0);
	ddps_unlock(&e.ctx->lock);
	e2e_disconnect(&e, &e.b);
	e2e_close(&e);
}
