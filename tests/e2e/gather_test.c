/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that are posted one by one and leave together (struct ddps_ctx_attr: gather). */
#include "support/e2e.h"
#include "support/two.h"
#include <string.h>
#include <unistd.h>

#define LEN   64u
#define DEPTH 200u
#define BIG   (33u * 1024)

/* What leaves by TCP: calls that send, counted where the library shows their octets. */
struct world {
	struct two_side near, far;
	struct ddps_cq *cq, *far_cq;
	struct ddps_ep *ep, *to;
	struct ddps_mr *mr, *far_mr;
	unsigned calls; /* atomic */
	int *flushed;	/* by a call that comes while the lock is held, as a handler's may */
	uint8_t buf[BIG], far_buf[BIG];
};

static void take_gather_e2e_packet(void *user, const struct ddps_packet *p)
{
	struct world *w = user;

	if (p->sent)
		__atomic_add_fetch(&w->calls, 1, __ATOMIC_RELAXED);
	if (w->flushed)
		*w->flushed = ddps_ctx_flush(w->near.ctx, 1);
}

static struct ddps_ep *ep_of(struct two_side *s, struct ddps_cq *cq)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = cq;
	attr.sq_depth = attr.rq_depth = DEPTH;
	cr_assert_eq(ddps_ep_new(s->ctx, &attr, &ep), 0);
	return ep;
}

static void open_gather_e2e_with(struct world *w, bool gather, bool thread)
{
	struct ddps_ctx_attr attr;

	memset(w, 0, sizeof *w);
	ddps_ctx_attr_init(&attr);
	attr.capture = take_gather_e2e_packet;
	attr.capture_user = w;
	attr.gather = gather;
	attr.thread = attr.poll_drives = thread;
	cr_assert_eq(ddps_ctx_new(&w->near.ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(w->near.ctx, &w->near.pd), 0);
	two_open(&w->far, false, false);
	w->cq = two_cq(&w->near);
	w->far_cq = two_cq(&w->far);
	w->ep = ep_of(&w->near, w->cq);
	w->to = ep_of(&w->far, w->far_cq);
	cr_assert_eq(ddps_mr_reg(w->near.pd, w->buf, BIG, 0, NULL, &w->mr), 0);
	cr_assert_eq(ddps_mr_reg(w->far.pd, w->far_buf, BIG, DDPS_LOCAL_WRITE, NULL, &w->far_mr),
		     0);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct ddps_sge sge = e2e_sge(w->far_buf, BIG, w->far_mr);

		cr_assert_eq(ddps_post_recv(w->to, i, &sge, 1), 0);
	}
	two_connect(&w->near, w->ep, &w->far, w->to, "tcp://127.0.0.1:0");
	__atomic_store_n(&w->calls, 0, __ATOMIC_RELAXED);
}

static void shut_gather_e2e(struct world *w)
{
	ddps_ep_free(w->ep);
	ddps_ep_free(w->to);
	two_close(&w->near);
	two_close(&w->far);
}

static unsigned calls(struct world *w)
{
	return __atomic_load_n(&w->calls, __ATOMIC_RELAXED);
}

static void post_gather_e2e(struct world *w, unsigned n, size_t len, unsigned flags)
{
	struct ddps_sge sge = e2e_sge(w->buf, len, w->mr);
	struct ddps_send_wr wr = {
		.op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT | flags, .sge = &sge, .nsge = 1
	};

	while (n--)
		cr_assert_eq(ddps_post_send(w->ep, &wr), 0);
}

static void look_for_completions(struct world *w)
{
	struct ddps_wc wc;

	cr_assert_eq(ddps_cq_poll(w->cq, &wc, 1), 0);
}

static void deliver_gather_e2e(struct world *w, unsigned n)
{
	struct ddps_wc wc;

	while (n--) {
		cr_assert_eq(ddps_cq_wait(w->far_cq, &wc, 1, E2E_MS), 1);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
	}
}

Test(gather, the_first_leaves_and_those_behind_it_together, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, true, false);
	post_gather_e2e(&w, 1, LEN, 0);
	cr_expect_eq(calls(&w), 1, "it is alone, as far as anybody knows");
	deliver_gather_e2e(&w, 1);
	post_gather_e2e(&w, 10, LEN, 0);
	cr_expect_eq(calls(&w), 1);
	look_for_completions(&w);
	cr_expect_eq(calls(&w), 2);
	deliver_gather_e2e(&w, 10);
	for (unsigned i = 0; i < 3; i++) { /* one between two looks waits for nothing */
		post_gather_e2e(&w, 1, LEN, 0);
		cr_expect_eq(calls(&w), 3 + i);
		look_for_completions(&w);
	}
	deliver_gather_e2e(&w, 3);
	shut_gather_e2e(&w);
}

Test(gather, without_it_each_leaves_alone, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, false, false);
	post_gather_e2e(&w, 10, LEN, 0);
	cr_expect_eq(calls(&w), 10);
	deliver_gather_e2e(&w, 10);
	shut_gather_e2e(&w);
}

Test(gather, enough_of_them_wait_for_no_others, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, true, false);
	post_gather_e2e(&w, 1 + 63, LEN, 0);
	cr_expect_eq(calls(&w), 1);
	post_gather_e2e(&w, 1, LEN, 0);
	cr_expect_eq(calls(&w), 2, "64 of them");
	post_gather_e2e(&w, 1, LEN, 0);
	post_gather_e2e(&w, 1, BIG, 0);
	cr_expect_eq(calls(&w), 3, "more than 32 KiB");
	deliver_gather_e2e(&w, 1 + 64 + 2);
	shut_gather_e2e(&w);
}

/* One that says that more follow is kept for those, but no longer than others. */
Test(gather, a_list_whose_end_never_comes_leaves, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, true, false);
	post_gather_e2e(&w, 3, LEN, DDPS_WR_MORE);
	cr_expect_eq(calls(&w), 0);
	look_for_completions(&w);
	cr_expect_eq(calls(&w), 1);
	post_gather_e2e(&w, 3, LEN, DDPS_WR_MORE);
	post_gather_e2e(&w, 1, LEN, 0);
	cr_expect_eq(calls(&w), 2, "a list is one request");
	deliver_gather_e2e(&w, 7);
	shut_gather_e2e(&w);
}

/* With gathering, and what says that more follows without it, whoever drives the context. */
static void looks_by(int (*how)(struct world *w))
{
	struct world w;

	open_gather_e2e_with(&w, true, false);
	post_gather_e2e(&w, 1 + 4, LEN, 0);
	cr_expect_eq(calls(&w), 1);
	cr_expect_eq(how(&w), 0);
	cr_expect_eq(calls(&w), 2);
	deliver_gather_e2e(&w, 5);
	shut_gather_e2e(&w);
	open_gather_e2e_with(&w, false, false);
	post_gather_e2e(&w, 100, LEN, DDPS_WR_MORE);
	cr_expect_eq(calls(&w), 0);
	cr_expect_eq(how(&w), 0);
	cr_expect_geq(calls(&w), 1, "a burst whose end never comes");
	deliver_gather_e2e(&w, 100);
	shut_gather_e2e(&w);
}

static int by_wait(struct world *w)
{
	struct ddps_wc wc;

	return ddps_cq_wait(w->cq, &wc, 1, 0) == DDPS_E_TIMEDOUT ? 0 : -1;
}

static int by_arm(struct world *w)
{
	return ddps_cq_arm(w->cq, false);
}

static int by_arm_next(struct world *w)
{
	return ddps_cq_arm_next(w->cq, true);
}

static int by_event(struct world *w)
{
	struct ddps_event ev;

	return ddps_event_get(w->near.ctx, &ev);
}

static int by_progress(struct world *w)
{
	return ddps_progress(w->near.ctx, 0) < 0 ? -1 : 0;
}

static int by_flush(struct world *w)
{
	return ddps_ctx_flush(w->near.ctx, 0);
}

static int by_disconnect(struct world *w)
{
	return ddps_disconnect(w->ep);
}

static int by_poll(struct world *w)
{
	struct ddps_wc wc;

	return ddps_cq_poll(w->cq, &wc, 1);
}

static int by_event_wait(struct world *w)
{
	struct ddps_event ev;

	return ddps_event_wait(w->near.ctx, &ev, 0) == DDPS_E_TIMEDOUT ? 0 : -1;
}

static int by_settle(struct world *w)
{
	return ddps_ctx_settle(w->near.ctx, E2E_MS);
}

Test(gather, every_way_to_look_lets_them_go, .timeout = 60)
{
	looks_by(by_wait);
	looks_by(by_arm);
	looks_by(by_arm_next);
	looks_by(by_event);
	looks_by(by_progress);
	looks_by(by_flush);
	looks_by(by_disconnect);
	looks_by(by_poll);
	looks_by(by_event_wait);
	looks_by(by_settle);
}

/* The library thread sends what waits with whatever calls for it; the program need not look. */
Test(gather, contact_01_flush_sends_what_waits_for_more_with_a_thread, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, false, true);
	for (unsigned i = 0; i < 10; i++) {
		post_gather_e2e(&w, 3, LEN, DDPS_WR_MORE);
		cr_expect_eq(ddps_ctx_flush(w.near.ctx, E2E_MS), 0);
		deliver_gather_e2e(&w, 3);
	}
	post_gather_e2e(&w, 3, LEN, DDPS_WR_MORE);
	cr_assert_eq(ddps_disconnect(w.ep), 0);
	deliver_gather_e2e(&w, 3);
	shut_gather_e2e(&w);
}

Test(gather, nothing_waits_while_a_queue_is_armed, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, true, false);
	cr_assert_eq(ddps_cq_arm_next(w.cq, false), 0);
	post_gather_e2e(&w, 5, LEN, 0);
	cr_expect_eq(calls(&w), 5);
	deliver_gather_e2e(&w, 5);
	shut_gather_e2e(&w);
}

/* A program that posts and then does something else; whoever has done that once is not made to wait
 * again soon. */
Test(gather, the_library_thread_lets_them_go, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, true, true);
	post_gather_e2e(&w, 1 + 2, LEN, 0);
	deliver_gather_e2e(&w, 3);
	while (calls(&w) < 2) /* it is counted behind the call that sends */
		usleep(100);
	for (unsigned i = 0; i < 16; i++) {
		unsigned before = calls(&w);

		post_gather_e2e(&w, 1, LEN, 0);
		cr_expect_eq(calls(&w), before + 1, "request %u", i);
	}
	deliver_gather_e2e(&w, 16);
	shut_gather_e2e(&w);
}

/* The same while the thread keeps away, since the program has polled. */
Test(gather, the_thread_lets_them_go_at_the_end_of_its_nap, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, true, true);
	for (unsigned i = 0; i < 2000; i++)
		look_for_completions(&w);
	post_gather_e2e(&w, 1 + 2, LEN, 0);
	deliver_gather_e2e(&w, 3);
	shut_gather_e2e(&w);
}

Test(gather, a_session_that_goes_takes_what_waits_with_it, .timeout = 60)
{
	struct world w;

	open_gather_e2e_with(&w, true, false);
	post_gather_e2e(&w, 1 + 4, LEN, 0);
	ddps_ep_free(w.ep);
	cr_expect_eq(calls(&w), 1);
	w.ep = NULL;
	look_for_completions(&w);
	shut_gather_e2e(&w);
}

Test(gather, flushing_has_an_end, .timeout = 60)
{
	int flushed = 0;
	struct world w;

	open_gather_e2e_with(&w, true, false);
	w.flushed = &flushed;
	post_gather_e2e(&w, 1, LEN, 0);
	cr_expect_eq(flushed, DDPS_E_TIMEDOUT);
	w.flushed = NULL;
	deliver_gather_e2e(&w, 1);
	shut_gather_e2e(&w);
}
