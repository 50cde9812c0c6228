/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/two.h"
#include <time.h>

#define FLOOD_DEPTH 1024
#define FLOOD_MS    20000 /* it ends by itself, should a test not come back */

uint64_t two_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void two_open(struct two_side *s, bool thread, bool poll_drives)
{
	struct ddps_ctx_attr attr;

	*s = (struct two_side){ 0 };
	ddps_ctx_attr_init(&attr);
	attr.thread = thread;
	attr.poll_drives = poll_drives;
	cr_assert_eq(ddps_ctx_new(&s->ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(s->ctx, &s->pd), 0);
}

void two_close(struct two_side *s)
{
	ddps_ctx_free(s->ctx);
}

struct ddps_cq *two_cq(struct two_side *s)
{
	struct ddps_cq *cq = NULL;

	cr_assert_eq(ddps_cq_new(s->ctx, 4096, &cq), 0);
	return cq;
}

struct ddps_ep *two_ep(struct two_side *s, struct ddps_cq *cq)
{
	struct ddps_ep_attr attr;
	struct ddps_ep *ep = NULL;

	ddps_ep_attr_init(&attr);
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = cq;
	attr.sq_depth = attr.rq_depth = FLOOD_DEPTH;
	cr_assert_eq(ddps_ep_new(s->ctx, &attr, &ep), 0);
	return ep;
}

/* Both sides are driven, whichever has a thread. */
static struct ddps_event next_two_event(struct two_side *s, struct two_side *other)
{
	const uint64_t until = two_ms() + E2E_MS;
	struct ddps_event ev;
	int n;

	while (!(n = ddps_event_get(s->ctx, &ev))) {
		cr_assert(two_ms() < until, "no event came");
		cr_assert_geq(ddps_progress(other->ctx, 0), 0);
		cr_assert_geq(ddps_progress(s->ctx, 0), 0);
	}
	cr_assert_eq(n, 1);
	return ev;
}

void two_connect(struct two_side *a, struct ddps_ep *from, struct two_side *b, struct ddps_ep *to,
		 const char *wire)
{
	struct ddps_event ev;

	if (!b->listener) {
		cr_assert_eq(ddps_listen(b->ctx, wire, NULL, &b->listener), 0);
		cr_assert_gt(ddps_listener_uri(b->listener, b->uri, sizeof b->uri), 0);
	}
	cr_assert_eq(ddps_connect(from, b->uri, NULL), 0);
	ev = next_two_event(b, a);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	cr_assert_eq(ddps_accept(ev.request, to, NULL), 0);
	ev = next_two_event(a, b);
	cr_assert_eq(ev.type, DDPS_EV_ESTABLISHED, "%s", ev.error.text);
	ev = next_two_event(b, a);
	cr_assert_eq(ev.type, DDPS_EV_ESTABLISHED, "%s", ev.error.text);
}

static void *flood_two(void *arg)
{
	struct two_flood *f = arg;
	const uint64_t until = two_ms() + FLOOD_MS;
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE, .flags = DDPS_WR_SILENT };
	struct ddps_wc wc;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED) && two_ms() < until) {
		while (!ddps_post_send(f->ep, &wr))
			;
		ddps_cq_poll(f->cq, &wc, 1);
	}
	return NULL;
}

void two_flood_start(struct two_flood *f, struct two_side *s, struct ddps_ep *ep,
		     struct ddps_cq *cq)
{
	*f = (struct two_flood){ .side = s, .ep = ep, .cq = cq };
	cr_assert_eq(pthread_create(&f->thread, NULL, flood_two, f), 0);
}

void two_flood_stop(struct two_flood *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
	pthread_join(f->thread, NULL);
}
