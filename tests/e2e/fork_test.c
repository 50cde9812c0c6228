/* SPDX-License-Identifier: BSD-2-Clause */
/* A child of fork that goes on living: what its parent ends has ended nevertheless. */
#include "support/child.h"
#include "support/e2e.h"
#include "session/session.h"
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

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
