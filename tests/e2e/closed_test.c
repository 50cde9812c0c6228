/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that closes all descriptors above 2 while it uses the library. */
#include "support/e2e.h"
#include "support/files.h"
#include "session/session.h"
#include <pthread.h>
#include <stdatomic.h>
#include <ddpsess/secure.h>
#include <semaphore.h>

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

static void close_fds_in_closed_e2e(const char *wire, enum kind kind)
{
	struct ddps_request *req;
	struct e2e e, anew;
	struct ddps_ep *ep;

	e2e_up(&e, wire);
	ep = idle_ep(&e);
	req = new_request(&e);
	take_numbers(kind);
	if (!all_say_so(&e, ep, req))
		leave_child_fixture(101);
	ddps_ep_free(e.a.ep);
	ddps_listener_free(e.listener);
	ddps_ctx_free(e.ctx);
	if (touched() || touched_by_fork())
		leave_child_fixture(102);
	e2e_up(&anew, wire);
	e2e_close(&anew);
	leave_child_fixture(touched() ? 103 : 0);
}

Test(closed, the_programs_own_files_are_let_alone, .timeout = 60)
{
	for (int i = 0; i < 2; i++)
		for (enum kind kind = MEMORY; kind < KINDS; kind++) {
			const pid_t pid = fork();

			if (!pid)
				close_fds_in_closed_e2e(wires[i], kind);
			expect_child_ends_well(pid, kind);
		}
}

/* ---- a program that only posts and polls ---- */

/* Each of these is the first thing that the program does with the library then. */
static uint8_t octets[64];
static struct ddps_mr *octets_mr;

static int post_a_send(struct e2e *e)
{
	int err = 0;

	for (int i = 0; i < 3 && !err; i++) /* the first one may only be kept */
		err = e2e_post(&e->a, DDPS_OP_SEND, octets, sizeof octets, octets_mr, 0, 0);
	return err;
}

static int poll_completions(struct e2e *e)
{
	struct ddps_wc wc;

	return ddps_cq_poll(e->cq, &wc, 1);
}

static int progress_now(struct e2e *e)
{
	return ddps_progress(e->ctx, 0);
}

static int flush_now(struct e2e *e)
{
	return ddps_ctx_flush(e->ctx, 0);
}

static int poll_events(struct e2e *e)
{
	struct ddps_event ev;

	return ddps_event_get(e->ctx, &ev);
}

static int (*const firsts[])(struct e2e *e) = { post_a_send, poll_completions, progress_now,
						flush_now, poll_events };
#define FIRSTS (sizeof firsts / sizeof firsts[0])

static const char *const post_wires[] = { "tcp://127.0.0.1:0", "shm://@", "tcp://127.0.0.6:0",
					  "sctp://127.0.0.1:0?backend=native&encap=0" };

/* Completions and events show on descriptors, too. */
static void close_and_post(const char *wire, enum kind kind, unsigned first)
{
	struct e2e e;

	e2e_up(&e, wire);
	octets_mr = e2e_reg(&e, octets, sizeof octets, 0);
	if (ddps_event_fd(e.ctx) < 0 || ddps_cq_arm(e.cq, false))
		leave_child_fixture(101);
	take_numbers(kind);
	for (unsigned i = 0; i < FIRSTS; i++)
		firsts[(first + i) % FIRSTS](&e);
	leave_child_fixture(touched() || touched_by_fork() ? 103 : 0);
}

Test(closed, who_only_posts_and_polls_lets_files_alone, .timeout = 60)
{
	for (unsigned w = 0; w < sizeof post_wires / sizeof post_wires[0]; w++)
		for (enum kind kind = MEMORY; kind < KINDS; kind++)
			for (unsigned first = 0; first < FIRSTS; first++) {
				const pid_t pid = fork();

				if (!pid)
					close_and_post(post_wires[w], kind, first);
				expect_child_ends_well(pid, kind);
			}
}

static int settle_now(struct e2e *e)
{
	return ddps_ctx_settle(e->ctx, E2E_MS);
}

/* What a program calls before it ends may be the first thing that finds it, and does not say that all is well. */
static void close_and_end(const char *wire, int (*end)(struct e2e *e))
{
	struct e2e e;

	e2e_up(&e, wire);
	take_numbers(MEMORY);
	leave_child_fixture(!says_so(end(&e)) ? 101 : touched() ? 103 : 0);
}

Test(closed, who_ends_is_informed, .timeout = 60)
{
	int (*const ends[])(struct e2e * e) = { settle_now, flush_now };

	for (unsigned w = 0; w < sizeof post_wires / sizeof post_wires[0]; w++)
		for (int i = 0; i < 2; i++) {
			const pid_t pid = fork();

			if (!pid)
				close_and_end(post_wires[w], ends[i]);
			expect_child_ends_well(pid, MEMORY);
		}
}

/* The library thread sleeps on what is closed, and is left to itself. */
static void close_with_a_thread(enum kind kind)
{
	struct ddps_request *req;
	struct ddps_ctx_attr attr;
	struct ddps_ep *ep;
	struct e2e e;

	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	e2e_open_with(&e, wires[0], &attr);
	e2e_connect(&e);
	ep = idle_ep(&e);
	req = new_request(&e);
	take_numbers(kind);
	if (!all_say_so(&e, ep, req))
		leave_child_fixture(101);
	ddps_ep_free(e.a.ep);
	ddps_ctx_free(e.ctx);
	leave_child_fixture(touched() ? 103 : 0);
}

Test(closed, a_library_thread_lets_files_alone, .timeout = 60)
{
	for (enum kind kind = MEMORY; kind < KINDS; kind++) {
		const pid_t pid = fork();

		if (!pid)
			close_with_a_thread(kind);
		expect_child_ends_well(pid, kind);
	}
}

static struct ddps_ctx *waited_for;
static atomic_int told, wrong;

static void *wait_for_ever(void *arg)
{
	struct ddps_event ev;

	(void)arg;
	if (!says_so(ddps_event_wait(waited_for, &ev, -1)))
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&told, 1);
	return NULL;
}

/* Of two that wait one sleeps on the sockets, and cannot be woken; the other one is informed. */
static void close_while_two_wait(enum kind kind)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	pthread_t thread;
	struct e2e e;

	e2e_open(&e, wires[0]);
	waited_for = e.ctx;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, wait_for_ever, NULL))
			leave_child_fixture(104);
	take_numbers(kind); /* once they sleep: there is no session that could wake them */
	if (!says_so(ddps_event_fd(e.ctx)))
		leave_child_fixture(101);
	for (int ms = 0; !atomic_load(&told); ms++) {
		if (ms == 10000)
			leave_child_fixture(105);
		nanosleep(&moment, NULL);
	}
	leave_child_fixture(atomic_load(&wrong) || touched() ? 103 : 0);
}

Test(closed, who_waits_is_informed, .timeout = 60)
{
	for (enum kind kind = MEMORY; kind < KINDS; kind++) {
		const pid_t pid = fork();

		if (!pid)
			close_while_two_wait(kind);
		expect_child_ends_well(pid, kind);
	}
}

/* ---- closed secure ---- */

/* A program that closes all descriptors above 2 while a handshake of its context is judged. */

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
