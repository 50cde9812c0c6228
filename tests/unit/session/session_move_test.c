/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that move a context's data, and others that wait: calls that fail, contexts that are gone. */
#include "session/session.h"
#include "support/child.h"
#include "support/e2e.h"
#include "unit/sys_fixture.h"
#include <errno.h>
#include <pthread.h>

#define TCP "tcp://127.0.0.1:0"

TestSuite(session_move, .timeout = 60);

static void open_with_thread(struct e2e *e, bool poll_drives)
{
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	attr.poll_drives = poll_drives;
	e2e_open_with(e, TCP, &attr);
}

/* A Read, there and back. */
static void make_session_move_round_trip(struct e2e *e, struct ddps_mr *mr)
{
	struct ddps_wc wc;

	cr_assert_eq(e2e_post(&e->a, DDPS_OP_READ, NULL, 0, mr, 0, 0), 0);
	cr_assert_eq(ddps_cq_wait(e->cq, &wc, 1, E2E_MS), 1);
	cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
}

/* ---- calls of the library thread that fail ---- */

Test(session_move, waits_that_are_interrupted)
{
	static uint8_t octet[1];
	struct ddps_mr *mr;
	struct e2e e;

	open_with_thread(&e, false);
	e2e_connect(&e);
	mr = e2e_reg(&e, octet, sizeof octet, DDPS_LOCAL_WRITE);
	sys_fail("poll", 0, 200, EINTR);
	for (int i = 0; i < 100; i++)
		make_session_move_round_trip(&e, mr);
	cr_expect_gt(sys_failed(), 0);
	sys_fail(NULL, 0, 0, 0);
	e2e_close(&e);
}

/* Nobody waits and nobody drives: the thread looks again and again before it sleeps. */
Test(session_move, looks_that_are_interrupted)
{
	static uint8_t octet[1];
	struct ddps_mr *mr;
	struct ddps_wc wc;
	struct e2e e;
	int n;

	open_with_thread(&e, false);
	e2e_connect(&e);
	mr = e2e_reg(&e, octet, sizeof octet, DDPS_LOCAL_WRITE);
	ddps_lock(&e.ctx->lock);
	e.ctx->mover.relied = false; /* as if nobody had ever waited */
	ddps_unlock(&e.ctx->lock);
	sys_fail("poll", 0, 1000000, EINTR);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, NULL, 0, mr, 0, 0), 0);
		while (!(n = ddps_cq_poll(e.cq, &wc, 1)))
			sched_yield();
		cr_assert_eq(n, 1);
		cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
	}
	cr_expect_gt(sys_failed(), 0);
	sys_fail(NULL, 0, 0, 0);
	e2e_close(&e);
}

Test(session_move, a_look_that_fails_is_made_again)
{
	static uint8_t octet[1];
	struct ddps_mr *mr;
	struct e2e e;

	open_with_thread(&e, false);
	e2e_connect(&e);
	mr = e2e_reg(&e, octet, sizeof octet, DDPS_LOCAL_WRITE);
	sys_fail("epoll_wait", 0, 3, ENOMEM);
	for (int i = 0; i < 10; i++)
		make_session_move_round_trip(&e, mr);
	cr_expect_eq(sys_failed(), 3);
	e2e_close(&e);
}

/* What fails is no descriptor of ours any more: whoever waits is informed. */
static void is_taken(int err)
{
	static struct e2e e; /* stays as it is: its descriptors are another's */
	struct ddps_event ev;

	open_with_thread(&e, false);
	sys_fail("epoll_wait", 0, 1, err);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	errno = 0;
	cr_expect_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EBADF);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(ddps_disconnect(e.a.ep), DDPS_E_SYSTEM);
}

Test(session_move, a_number_that_is_no_descriptor)
{
	is_taken(EBADF);
}

Test(session_move, a_number_of_another_kind)
{
	is_taken(EINVAL);
}

static void ignore_move_call(void *user)
{
	(void)user;
}

/* The thread naps, since somebody polls; with the lock. */
static void lock_napping(struct e2e *e)
{
	static struct ddps_task t = { .fn = ignore_move_call };
	struct ddps_wc wc;

	for (;;) {
		for (int i = 0; i < 10; i++)
			cr_assert_geq(ddps_cq_poll(e->cq, &wc, 1), 0);
		ddps_lock(&e->ctx->lock);
		if (e->ctx->mover.napping)
			return;
		ddps_task_post(e->ctx->env.loop, &t); /* it wakes up, and sees who polls */
		ddps_unlock(&e->ctx->lock);
	}
}

/* Who finds in each poll what the thread has brought has nothing left to move, and still does better alone. */
Test(session_move, naps_where_it_fills_the_queue_that_is_polled)
{
	static uint8_t octet[1];
	struct ddps_mr *mr;
	struct ddps_wc wc;
	bool naps = false;
	struct e2e e;

	open_with_thread(&e, true);
	e2e_connect(&e);
	mr = e2e_reg(&e, octet, sizeof octet, DDPS_LOCAL_WRITE);
	ddps_lock(&e.ctx->lock);
	e.ctx->mover.relied = false; /* as if nobody had ever waited */
	ddps_unlock(&e.ctx->lock);
	for (int i = 0; i < 1000 && !naps; i++) {
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, NULL, 0, mr, 0, 0), 0);
		while (!ddps_ep_unfetched(e.a.ep)) {
			ddps_lock(&e.ctx->lock);
			naps |= e.ctx->mover.napping;
			ddps_unlock(&e.ctx->lock);
			sched_yield();
		}
		cr_assert_eq(ddps_cq_poll(e.cq, &wc, 1), 1);
	}
	cr_expect(naps);
	ddps_lock(&e.ctx->lock);
	cr_expect_eq(e.ctx->mover.drives, 0);
	ddps_unlock(&e.ctx->lock);
	e2e_close(&e);
}

/* Meanwhile the program closes all descriptors. */
Test(session_move, a_thread_that_naps_ends_with_its_context)
{
	struct ddps_wc wc;
	static struct e2e e; /* stays as it is */

	open_with_thread(&e, true);
	lock_napping(&e);
	ddps_ctx_rob(e.ctx);
	ddps_unlock(&e.ctx->lock);
	cr_expect_eq(pthread_join(e.ctx->mover.thread, NULL), 0);
	cr_expect_eq(ddps_cq_poll(e.cq, &wc, 1), DDPS_E_SYSTEM);
}

/* The child has no such thread, and does not wait for it. */
Test(session_move, a_child_frees_a_context_whose_thread_naps)
{
	struct e2e e;
	pid_t pid;

	open_with_thread(&e, true);
	lock_napping(&e);
	pid = fork_at_rest();
	if (!pid) {
		alarm(30);
		ddps_ctx_free(e.ctx);
		leave_child_fixture(0);
	}
	ddps_unlock(&e.ctx->lock);
	cr_expect_eq(await_child_status(pid), 0);
	e2e_close(&e);
}

/* ---- who leads, and who follows ---- */

struct waiter {
	struct ddps_ctx *ctx;
	struct ddps_cq *cq;
	int ms, result, error;
};

static void *wait_on_context(void *arg)
{
	struct waiter *w = arg;
	struct ddps_wc wc;

	errno = 0;
	w->result = w->cq ? ddps_cq_wait(w->cq, &wc, 1, w->ms) : ddps_progress(w->ctx, w->ms);
	w->error = errno;
	return NULL;
}

/* Until so many are asleep, with the lock. */
static void lock_when(struct ddps_ctx *ctx, const unsigned *sleepers, unsigned n)
{
	ddps_lock(&ctx->lock);
	while (*sleepers != n) {
		ddps_unlock(&ctx->lock);
		sched_yield();
		ddps_lock(&ctx->lock);
	}
}

static void *leads(void *arg)
{
	struct ddps_event ev;
	struct waiter *w = arg;

	errno = 0;
	w->result = ddps_event_wait(w->ctx, &ev, w->ms);
	w->error = errno;
	return NULL;
}

/* Who sleeps on the context's descriptor learns of its end when its time is up. */
Test(session_move, who_leads_is_informed_of_the_end)
{
	struct waiter w = { .ms = 300 };
	static struct e2e e; /* stays as it is */
	pthread_t thread;

	e2e_open(&e, TCP);
	w.ctx = e.ctx;
	cr_assert_eq(pthread_create(&thread, NULL, leads, &w), 0);
	lock_when(e.ctx, &e.ctx->event_sleepers, 1);
	ddps_ctx_rob(e.ctx);
	ddps_unlock(&e.ctx->lock);
	pthread_join(thread, NULL);
	cr_expect_eq(w.result, DDPS_E_SYSTEM);
	cr_expect_eq(w.error, EBADF);
}

static void lose_session_context(void *user)
{
	ddps_ctx_rob(user);
}

/* Whoever settles learns of it as soon as somebody has found it. */
Test(session_move, who_settles_is_informed_of_the_end)
{
	static struct e2e e; /* stays as it is */
	struct ddps_task t = { .fn = lose_session_context };

	e2e_up(&e, TCP);
	t.user = e.ctx;
	ddps_lock(&e.ctx->lock);
	ddps_task_post(e.ctx->env.loop, &t);
	ddps_unlock(&e.ctx->lock);
	errno = 0;
	cr_expect_eq(ddps_ctx_settle(e.ctx, E2E_MS), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EBADF);
}

/* One of them has moved something: both have a look. */
Test(session_move, progress_is_everybodys)
{
	struct ddps_task t = { .fn = ignore_move_call };
	struct waiter w[2];
	pthread_t thread[2];
	struct e2e e;

	e2e_open(&e, TCP);
	for (int i = 0; i < 2; i++) {
		w[i] = (struct waiter){ .ctx = e.ctx, .ms = E2E_MS };
		cr_assert_eq(pthread_create(&thread[i], NULL, wait_on_context, &w[i]), 0);
	}
	lock_when(e.ctx, &e.ctx->progress_sleepers, 2);
	ddps_task_post(e.ctx->env.loop, &t);
	ddps_unlock(&e.ctx->lock);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		cr_expect_geq(w[i].result, 0);
	}
	cr_expect_eq(w[0].result + w[1].result, 1, "one of them has run it");
	e2e_close(&e);
}

/* ---- requests that leave together ---- */

static void open_gathering(struct e2e *e)
{
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	attr.gather = true;
	e2e_open_with(e, TCP, &attr);
}

/* Many octets in the first pieces: they do not wait, however many pieces follow. */
Test(session_move, a_request_of_many_octets_is_not_gathered)
{
	static uint8_t from[3 * 40000], to[3 * 40000];
	struct ddps_sge sge[3];
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = sge, .nsge = 3 };
	struct ddps_mr *mf, *mt;
	struct e2e e;

	open_gathering(&e);
	e.attr.max_sge = 3;
	e2e_connect(&e);
	mf = e2e_reg(&e, from, sizeof from, 0);
	mt = e2e_reg(&e, to, sizeof to, DDPS_LOCAL_WRITE);
	e2e_fill(from, sizeof from, 1);
	for (int i = 0; i < 3; i++)
		sge[i] = e2e_sge(from + i * 40000, 40000, mf);
	for (int i = 0; i < 2; i++) {
		struct ddps_sge all = e2e_sge(to, sizeof to, mt);

		cr_assert_eq(ddps_post_recv(e.b.ep, 0, &all, 1), 0);
	}
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	cr_expect(LIST_EMPTY(&e.ctx->gathers));
	for (int i = 0; i < 4; i++)
		cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
	cr_expect_arr_eq(from, to, sizeof to);
	e2e_close(&e);
}

static void post_empty_sends_from(struct ddps_ep *from, struct ddps_ep *to, unsigned n)
{
	const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };

	while (n--) {
		cr_assert_eq(ddps_post_recv(to, 0, NULL, 0), 0);
		cr_assert_eq(ddps_post_send(from, &wr), 0);
	}
}

static void post_empty_sends(struct e2e *e, unsigned n)
{
	post_empty_sends_from(e->a.ep, e->b.ep, n);
}

/* What waits is late, and its program @posted a moment ago; or never. */
static void let_late_go(struct e2e *e, uint64_t posted)
{
	ddps_lock(&e->ctx->lock);
	cr_assert_not(LIST_EMPTY(&e->ctx->gathers));
	e->ctx->gather_late = 0;
	e->ctx->gather_at = posted;
	ddps_gather_late(e->ctx);
	cr_expect(LIST_EMPTY(&e->ctx->gathers));
	ddps_unlock(&e->ctx->lock);
}

/* Of many sessions each has posted before it looks: none of their requests was the last for a while. */
Test(session_move, who_posts_all_the_time_need_not_be_cautious)
{
	struct e2e e;

	open_gathering(&e);
	e2e_connect(&e);
	post_empty_sends(&e, 30);
	cr_expect_gt(e.ctx->gather_at, 0, "it is seen that somebody posts");
	let_late_go(&e, UINT64_MAX / 2);
	cr_expect_eq(e.a.ep->gather.wary, 0);
	post_empty_sends(&e, 2);
	let_late_go(&e, 0);
	cr_expect_eq(e.a.ep->gather.wary, 16);
	e2e_close(&e);
}

/* One that is cautious posts for long, since each of its requests is a call: that makes no other one cautious. */
Test(session_move, who_posts_what_leaves_alone_posts_too)
{
	struct e2e e;

	open_gathering(&e);
	e2e_connect(&e);
	e.a.ep->gather.wary = 2;
	post_empty_sends_from(e.b.ep, e.a.ep, 2);
	cr_assert_not(LIST_EMPTY(&e.ctx->gathers));
	e.ctx->gather_at = 0;
	post_empty_sends(&e, 2);
	cr_expect_eq(e.a.ep->gather.count, 0);
	cr_expect_gt(e.ctx->gather_at, 0, "it is seen that somebody posts");
	e2e_close(&e);
}

static void take_one_completion(struct e2e *e)
{
	struct ddps_wc wc;

	cr_assert_eq(ddps_cq_poll(e->cq, &wc, 1), 1);
	cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
}

/* The program that takes one of many completions comes back for the others. */
Test(session_move, a_look_that_leaves_completions_lets_nothing_go)
{
	struct e2e e;

	open_gathering(&e);
	e2e_connect(&e);
	post_empty_sends(&e, 1);
	e2e_wc(&e);
	e2e_wc(&e);
	post_empty_sends(&e, 8);
	ddps_lock(&e.ctx->lock);
	ddps_gather_look(e.ctx);
	ddps_unlock(&e.ctx->lock);
	take_one_completion(&e);
	post_empty_sends(&e, 3); /* not even the first */
	cr_expect_eq(e.a.ep->gather.count, 3);
	e.ctx->gather_late = UINT64_MAX; /* no time passes */
	take_one_completion(&e);
	cr_expect_eq(e.a.ep->gather.count, 3);
	e.ctx->gather_late = 0; /* a while has passed */
	take_one_completion(&e);
	cr_expect_eq(e.a.ep->gather.count, 0);
	post_empty_sends(&e, 1);
	cr_expect_eq(e.a.ep->gather.count, 1);
	ddps_lock(&e.ctx->lock);
	ddps_gather_look(e.ctx); /* at another queue, for example */
	ddps_unlock(&e.ctx->lock);
	cr_expect_eq(e.a.ep->gather.count, 0);
	post_empty_sends(&e, 1);
	cr_expect_eq(e.a.ep->gather.count, 0, "the first behind it leaves");
	e2e_close(&e);
}
