/* SPDX-License-Identifier: BSD-2-Clause */
/* SQD: the send queue drains and waits, receiving goes on, RTS resumes. */
#include "verbs/vfail.h"
#include "verbs/voob.h"
#include "verbs/vud.h"
#include <errno.h>
#include <stdlib.h>

static enum ibv_qp_state get_verbs_sqd_state_of(struct ibv_qp *qp, bool draining)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.sq_draining, draining);
	cr_expect_eq(attr.cur_qp_state, attr.qp_state);
	cr_expect_eq(qp->state, attr.qp_state);
	return attr.qp_state;
}

static int stop_verbs_sqd(struct ibv_qp *qp, bool notify)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static void expect_drained(struct ibv_context *ctx, struct ibv_qp *qp)
{
	struct ibv_async_event ev;

	cr_assert(vt_readable(ctx->async_fd, VT_MS));
	cr_assert_eq(ibv_get_async_event(ctx, &ev), 0);
	cr_expect_eq(ev.event_type, IBV_EVENT_SQ_DRAINED);
	cr_expect_eq(ev.element.qp, qp);
	ibv_ack_async_event(&ev);
}

static void up_both(const char *face, struct side *a, struct side *b)
{
	setenv("DDPSESS_FACE", face, 1);
	open_oob_side(a);
	open_oob_side(b);
	meet_oob_side(a, b);
	meet_oob_side(b, a);
}

/* @from says something and @to has heard it. */
static void pass_verbs_sqd(struct side *from, struct side *to)
{
	listen_to(to);
	cr_assert_eq(say_oob(from, "hello", 0), 0);
	cr_assert_eq(await_oob_wc(to).status, IBV_WC_SUCCESS);
	cr_assert_eq(await_oob_wc(from).status, IBV_WC_SUCCESS);
}

static void expect_no_completion(struct side *s)
{
	struct ibv_wc wc;

	cr_expect_eq(ibv_poll_cq(s->cq, 1, &wc), 0);
}

static void down_both(struct side *a, struct side *b)
{
	close_oob_side(a);
	close_oob_side(b);
}

/* Settings are read once, so each face is a test of its own. */
#define ON_BOTH_FACES(name, test)                                                                  \
	VT_TEST(verbs_sqd, name##_on_the_roce_face)                                                \
	{                                                                                          \
		test("roce");                                                                      \
	}                                                                                          \
	VT_TEST(verbs_sqd, name##_on_the_iwarp_face)                                               \
	{                                                                                          \
		test("iwarp");                                                                     \
	}

static void waits_and_resumes(const char *face)
{
	static struct side a, b;

	up_both(face, &a, &b);
	pass_verbs_sqd(&a, &b);
	cr_assert_eq(stop_verbs_sqd(a.qp, false), 0);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, false), IBV_QPS_SQD);
	for (int i = 0; i < 3; i++)
		listen_to(&b);
	cr_expect_eq(say_oob(&a, "first", IBV_SEND_INLINE), 0);
	cr_expect_eq(say_oob(&a, "second, longer", IBV_SEND_INLINE), 0);
	cr_expect_eq(say_oob(&a, "third", 0), 0);
	cr_expect_eq(say_oob(&a, "third", 0), 0);
	cr_expect_eq(say_oob(&a, "one too many", 0), ENOMEM);
	pass_verbs_sqd(&b, &a);
	expect_no_completion(&a);
	expect_no_completion(&b);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RTS), 0);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, false), IBV_QPS_RTS);
	cr_expect_eq(await_oob_wc(&b).byte_len, sizeof "first");
	cr_expect_eq(await_oob_wc(&b).byte_len, sizeof "second, longer");
	cr_expect_eq(await_oob_wc(&b).byte_len, sizeof "third");
	listen_to(&b);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	cr_expect_eq(b.qp->state, IBV_QPS_RTS);
	pass_verbs_sqd(&a, &b);
	down_both(&a, &b);
}

ON_BOTH_FACES(contact_21_sends_wait_and_receives_go_on, waits_and_resumes)

/* A Send completes when it is received, which its receiver puts off here. */
static void drains(const char *face)
{
	static struct side a, b;

	setenv("DDPSESS_PLACED", "all", 1);
	up_both(face, &a, &b);
	pass_verbs_sqd(&a, &b);
	cr_assert_eq(say_oob(&a, "last", 0), 0);
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, true), IBV_QPS_SQD);
	listen_to(&a);
	cr_assert_eq(say_oob(&b, "hello", 0), 0);
	cr_expect_eq(await_oob_wc(&a).opcode, IBV_WC_RECV);
	cr_expect_not(vt_readable(a.ctx->async_fd, 0));
	listen_to(&b);
	expect_drained(a.ctx, a.qp);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, false), IBV_QPS_SQD);
	cr_expect_eq(await_oob_wc(&a).opcode, IBV_WC_SEND);
	for (int i = 0; i < 2; i++) /* its receive and its Send */
		cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	/* Once more, with nothing under way; and where nobody has asked for it. */
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RTS), 0);
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	expect_drained(a.ctx, a.qp);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RTS), 0);
	cr_assert_eq(stop_verbs_sqd(a.qp, false), 0);
	cr_expect_not(vt_readable(a.ctx->async_fd, 20));
	down_both(&a, &b);
}

ON_BOTH_FACES(contact_21_the_end_of_draining_is_told, drains)

/* Whoever resumes, resets or destroys it before is informed of nothing. */
static void stops_draining(const char *face)
{
	static struct side a, b;

	setenv("DDPSESS_PLACED", "all", 1);
	up_both(face, &a, &b);
	pass_verbs_sqd(&a, &b);
	cr_assert_eq(say_oob(&a, "under way", 0), 0);
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RTS), 0);
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	cr_assert_eq(say_oob(&a, "waits", 0), 0);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RESET), 0);
	cr_expect_not(vt_readable(a.ctx->async_fd, 20));
	expect_no_completion(&a);
	down_both(&a, &b);
	up_both(face, &a, &b);
	pass_verbs_sqd(&a, &b);
	cr_assert_eq(say_oob(&a, "under way", 0), 0);
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	cr_assert_eq(say_oob(&a, "waits", 0), 0);
	down_both(&a, &b);
}

ON_BOTH_FACES(contact_21_draining_can_be_left, stops_draining)

static void end_stopped_queue(const char *face)
{
	static struct side a, b;

	up_both(face, &a, &b);
	pass_verbs_sqd(&a, &b);
	cr_assert_eq(stop_verbs_sqd(a.qp, false), 0);
	cr_assert_eq(say_oob(&a, "waits", 0), 0);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, false), IBV_QPS_ERR);
	cr_expect_eq(move_oob_qp(a.qp, IBV_QPS_SQD), EINVAL);
	down_both(&a, &b);
}

ON_BOTH_FACES(contact_21_what_waits_is_flushed, end_stopped_queue)

/* It may be stopped before there is a session: then nothing goes when that comes. */
static void stop_before_session(const char *face)
{
	static struct side a, b;

	setenv("DDPSESS_FACE", face, 1);
	open_oob_side(&a);
	open_oob_side(&b);
	meet_oob_side(&a, &b);
	cr_assert_eq(say_oob(&a, "before", 0), 0);
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	expect_drained(a.ctx, a.qp);
	listen_to(&b);
	meet_oob_side(&b, &a);
	pass_verbs_sqd(&b, &a);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, false), IBV_QPS_SQD);
	expect_no_completion(&b);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RTS), 0);
	cr_expect_eq(await_oob_wc(&b).byte_len, sizeof "before");
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	down_both(&a, &b);
}

ON_BOTH_FACES(contact_21_a_session_that_comes_later_resumes_nothing, stop_before_session)

static void modified(const char *face)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ,
				    .timeout = 9 };
	static struct side a, b;

	up_both(face, &a, &b);
	pass_verbs_sqd(&a, &b);
	cr_assert_eq(stop_verbs_sqd(a.qp, false), 0);
	cr_expect_eq(
		ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_TIMEOUT), 0);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, false), IBV_QPS_SQD);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RTS), 0);
	pass_verbs_sqd(&a, &b);
	pass_verbs_sqd(&b, &a);
	down_both(&a, &b);
}

ON_BOTH_FACES(contact_21_attributes_change_in_between, modified)

/* Those of rdma_cm, too, where the device is one of RoCE; verbs_states has the iWARP one. */
VT_TEST(verbs_sqd, contact_21_connections_of_rdma_cm_drain_on_the_roce_face)
{
	struct vt v;

	setenv("DDPSESS_FACE", "roce", 1);
	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	cr_assert_eq(stop_verbs_sqd(v.a.id->qp, true), 0);
	expect_drained(v.a.id->verbs, v.a.id->qp);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 64, NULL), 0);
	cr_assert_eq(vt_recv(&v.a, 3, 0, 64), 0);
	cr_assert_eq(vt_post(&v.b, 4, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v.a, 3, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 4, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert_eq(move_oob_qp(v.a.id->qp, IBV_QPS_RTS), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert_eq(stop_verbs_sqd(v.a.id->qp, false), 0);
	cr_assert_eq(vt_post(&v.a, 5, IBV_WR_SEND, 64, NULL), 0);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* A Read was taken in SQD that cannot go, as there is no ORD: nothing that was taken is without a completion. */
VT_TEST(verbs_sqd, contact_21_what_cannot_go_comes_back)
{
	struct vt v;

	setenv("DDPSESS_FACE", "roce", 1);
	vt_init(&v);
	v.connect.initiator_depth = v.connect.responder_resources = 0;
	v.accept.initiator_depth = v.accept.responder_resources = 0;
	vt_up(&v);
	cr_assert_eq(stop_verbs_sqd(v.a.id->qp, false), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_READ, 64, &v.b), 0);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 64, NULL), 0);
	cr_assert_eq(move_oob_qp(v.a.id->qp, IBV_QPS_RTS), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_READ, IBV_WC_WR_FLUSH_ERR);
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

Test(verbs_sqd, contact_21_datagrams_tell_it_too, .timeout = 30)
{
	struct vud_qp a;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	expect_drained(a.qp->context, a.qp);
	cr_expect_eq(get_verbs_sqd_state_of(a.qp, false), IBV_QPS_SQD);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_RTS), 0);
	vud_down(&a);
	vud_close(&v);
}

/* What is wanted for the event fails: nothing has happened then. */
Test(verbs_sqd, what_fails_leaves_the_state, .timeout = 60)
{
	static const enum vfail_call calls[] = { VFAIL_MEMORY, VFAIL_THREAD };
	struct side a, b;

	up_both("roce", &a, &b);
	for (int i = 0; i < 2; i++) {
		vfail_nth(calls[i], 1);
		cr_expect_neq(stop_verbs_sqd(a.qp, true), 0);
		cr_expect(vfail_came());
		cr_expect_eq(a.qp->state, IBV_QPS_RTS);
	}
	cr_assert_eq(stop_verbs_sqd(a.qp, true), 0);
	expect_drained(a.ctx, a.qp);
	down_both(&a, &b);
}
