/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a connection is reported after the completions that came before it. */
#include "support/clock.h"
#include "verbs/vd.h"
#include "verbs/vt.h"
#include <sched.h>
#include <time.h>

/* Until the passive side's session is over, without looking for an event or a completion. */
static void await_verbs_held_end(struct vt *v)
{
	const uint64_t until = read_clock_ms() + VT_MS;
	struct vd_process *p = vd_process();
	enum ibv_qp_state state;

	do {
		sched_yield();
		cr_assert(read_clock_ms() < until, "the session does not end");
		ddps_lock(&p->lock);
		state = v->b.id->qp->state;
		ddps_unlock(&p->lock);
	} while (state != IBV_QPS_ERR);
}

/* Until b has the message, which nobody fetches: what breaks a connection off may overtake it. */
static void await_message(struct vt *v)
{
	const struct vd_qp *qp = vd_of(v->b.id->qp, struct vd_qp, qp.qp_base);
	const uint64_t until = read_clock_ms() + VT_MS;

	while (!ddps_ep_unfetched(qp->ep)) {
		sched_yield();
		cr_assert(read_clock_ms() < until, "the message does not come");
	}
}

static void leave_verbs_held(struct vt_end *e)
{
	cr_assert_eq(rdma_disconnect(e->id), 0);
}

static void break_off(struct vt_end *e)
{
	cr_assert_eq(ibv_modify_qp(e->id->qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR },
				   IBV_QP_STATE),
		     0);
}

/* The end is held back for @hold_ms; a message and the end come between two polls of b's. */
static void send_and_end(struct vt *v, unsigned hold_ms, void (*end)(struct vt_end *))
{
	vd_process()->hold_ms = hold_ms;
	cr_assert_eq(vt_recv(&v->b, 7, 0, 64), 0);
	cr_assert_eq(vt_post(&v->a, 1, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v->a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	await_message(v);
	end(&v->a);
	await_verbs_held_end(v);
}

static void send_and_leave(struct vt *v, unsigned hold_ms)
{
	vt_init(v);
	vt_up(v);
	send_and_end(v, hold_ms, leave_verbs_held);
}

/* For @quiet_ms nothing is reported; the completion is fetched, and then the end is. */
static void told_behind_the_completion(struct vt *v, int quiet_ms)
{
	cr_expect(!vt_readable(v->b.ch->fd, quiet_ms), "the end is told before the completion");
	vt_expect_wc(&v->b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect(v->b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v->a.ch, RDMA_CM_EVENT_DISCONNECTED);
}

/* What nobody fetched before the end was reported is there after it. */
static void told_before_the_completion(struct vt *v)
{
	vt_expect(v->b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v->a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect_wc(&v->b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(v);
}

VT_TLS_TEST(verbs_held, attack_25_the_last_completion_comes_before_the_end)
{
	struct vt v;

	send_and_leave(&v, 10 * VT_MS);
	/* What libfabric's rxm does: events first, and at the end of the connection it destroys. */
	told_behind_the_completion(&v, 0);
	rdma_destroy_qp(v.b.id);
	vt_down(&v);
}

VT_TLS_TEST(verbs_held, attack_25_the_end_waits_for_nobody_for_long)
{
	struct vt v;

	send_and_leave(&v, 50);
	told_before_the_completion(&v);
}

/* The queue pair goes while its end waits. */
VT_TLS_TEST(verbs_held, attack_25_a_queue_pair_that_goes_holds_nothing_back)
{
	struct vt v;

	send_and_leave(&v, 10 * VT_MS);
	cr_expect(!LIST_EMPTY(&vd_process()->held));
	rdma_destroy_qp(v.b.id);
	cr_expect(LIST_EMPTY(&vd_process()->held));
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

VT_TLS_TEST(verbs_held, attack_25_an_end_with_nothing_before_it_is_reported_immediately)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	vd_process()->hold_ms = 10 * VT_MS;
	cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect_wc(&v.b, 7, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* libfabric's rxm on a busy host: what it has not fetched is not lost because it did not run for a while. */
VT_TLS_TEST(verbs_held, attack_25_who_fetches_is_waited_for_longer)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_recv(&v.b, 6, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v.b, 6, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	send_and_end(&v, 50, leave_verbs_held);
	told_behind_the_completion(&v, 500);
	vt_down(&v);
}

/* A peer that goes without a word, as a process that is killed does. */
VT_TLS_TEST(verbs_held, attack_25_the_last_completion_comes_before_a_broken_end)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	send_and_end(&v, 10 * VT_MS, break_off);
	told_behind_the_completion(&v, 100);
	vt_down(&v);
}

/* Who ends it, too, waits for nothing. */
VT_TLS_TEST(verbs_held, attack_25_an_end_from_both_sides_is_reported_immediately)
{
	struct vt v;

	send_and_leave(&v, 10 * VT_MS);
	cr_expect(!LIST_EMPTY(&vd_process()->held));
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	cr_expect(LIST_EMPTY(&vd_process()->held));
	told_before_the_completion(&v);
}
