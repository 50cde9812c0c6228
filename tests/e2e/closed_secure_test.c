/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that closes all descriptors above 2 while a handshake of its context is judged. */
#include "session/session.h"
#include "support/e2e.h"
#include "support/files.h"
#include <ddpsess/secure.h>
#include <semaphore.h>
#include <stdatomic.h>

static sem_t asked, answer;
static atomic_bool held;

/* The first peer waits for its verdict. */
static int hold_verdict(void *user, const struct ddps_peer_id *id)
{
	(void)user;
	(void)id;
	if (atomic_exchange(&held, true))
		return 0;
	sem_post(&asked);
	sem_wait(&answer);
	return 0;
}

static void expect_files_let_alone(struct e2e *e)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	/* the thread of handshakes either sees that the numbers are not its own, or writes */
	for (int ms = 0; !ddps_ctx_gone(e->ctx) && !touched(); ms++) {
		if (ms == 10000)
			leave_child_fixture(105);
		nanosleep(&moment, NULL);
	}
	ddps_ep_free(e->a.ep);
	ddps_listener_free(e->listener);
	ddps_ctx_free(e->ctx);
	leave_child_fixture(touched() ? 103 : 0);
}

static void close_fds_in_handshake(const char *wire, enum kind kind)
{
	struct ddps_ctx_attr attr;
	struct e2e e;

	sem_init(&asked, 0, 0);
	sem_init(&answer, 0, 0);
	ddps_ctx_attr_init(&attr);
	attr.secure = e2e_secure_judged(hold_verdict, NULL);
	e2e_open_with(&e, wire, &attr);
	ddps_secure_close(attr.secure);
	if (ddps_ep_new(e.ctx, &e.attr, &e.a.ep) || ddps_connect(e.a.ep, e.uri, &e.connect))
		leave_child_fixture(104);
	while (sem_trywait(&asked))
		ddps_progress(e.ctx, 1);
	take_numbers(kind);
	sem_post(&answer);
	expect_files_let_alone(&e);
}

Test(closed, the_thread_of_handshakes_lets_files_alone, .timeout = 60)
{
	static const char *const secured[] = { "tls://127.0.0.1:0", "sctps://127.0.0.1:0" };

	for (int i = 0; i < 2; i++)
		for (enum kind kind = MEMORY; kind < KINDS; kind++) {
			const pid_t pid = fork();

			if (!pid)
				close_fds_in_handshake(secured[i], kind);
			expect_child_ends_well(pid, kind);
		}
}
