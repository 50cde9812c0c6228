/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that connect by number and GID, without rdma_cm. */
#include "session/session.h"
#include "support/clock.h"
#include "verbs/vd.h"
#include "verbs/voob.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAIRS 300 /* more than share a port */

/* What is sent before the other side is ready arrives, whichever of the two comes first. */
VT_TEST(verbs_oob, either_side_may_be_first)
{
	for (int lower_first = 0; lower_first < 2; lower_first++) {
		struct side a, b, *first, *then;

		open_oob_side(&a);
		open_oob_side(&b);
		first = (a.qp->qp_num < b.qp->qp_num) == lower_first ? &a : &b;
		then = first == &a ? &b : &a;
		listen_to(then);
		meet_oob_side(first, then);
		cr_assert_eq(say_oob(first, "early", 0), 0);
		meet_oob_side(then, first);
		cr_expect_eq(await_oob_wc(then).status, IBV_WC_SUCCESS);
		cr_expect_str_eq(then->buf, "early");
		cr_expect_eq(await_oob_wc(first).status, IBV_WC_SUCCESS);
		listen_to(first);
		cr_assert_eq(say_oob(then, "late", IBV_SEND_INLINE), 0);
		cr_expect_eq(await_oob_wc(then).opcode, IBV_WC_SEND);
		cr_expect_eq(await_oob_wc(first).opcode, IBV_WC_RECV);
		cr_expect_str_eq(first->buf, "late");
		close_oob_side(&a);
		close_oob_side(&b);
	}
}

/* Inline data is the caller's again when the call returns, and the depth holds. */
/* perftest's servers post in RTR: iWARP knows no RTS, and whether a session is up nobody can know. */
VT_TEST(verbs_oob, rtr_is_enough_to_send)
{
	struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	listen_to(&b);
	cr_expect_eq(say_oob(&a, "before", 0), EINVAL);
	cr_assert_eq(move_oob_to_rtr(a.qp, b.qp->qp_num, &b.gid), 0);
	cr_expect_eq(say_oob(&a, "in RTR", 0), 0);
	meet_oob_side(&b, &a);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(b.buf, "in RTR");
	close_oob_side(&a);
	close_oob_side(&b);
}

VT_TEST(verbs_oob, what_is_kept_is_a_copy_and_has_an_end)
{
	struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	cr_expect_eq(say_oob(&a, "too early", 0), EINVAL);
	listen_to(&b);
	meet_oob_side(&a, &b);
	cr_assert_eq(say_oob(&a, "first", IBV_SEND_INLINE), 0);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(say_oob(&a, "other", IBV_SEND_INLINE), 0);
	cr_expect_eq(say_oob(&a, "fifth of four", IBV_SEND_INLINE), ENOMEM);
	meet_oob_side(&b, &a);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(b.buf, "first");
	close_oob_side(&a);
	close_oob_side(&b);
}

VT_TEST(verbs_oob, strangers_are_refused)
{
	struct side a, b, c, *low, *high;
	struct ibv_async_event ev;
	int err;

	open_oob_side(&a);
	open_oob_side(&b);
	open_oob_side(&c);
	/* The higher of two waits for another one than the lower, which asks it. */
	low = a.qp->qp_num < b.qp->qp_num ? &a : &b;
	high = low == &a ? &b : &a;
	meet_oob_side(high, &c);
	listen_to(low);
	cr_assert_eq(move_oob_to_rtr(low->qp, high->qp->qp_num, &high->gid), 0);
	/* Told so already, or not yet. */
	err = move_oob_qp(low->qp, IBV_QPS_RTS);
	cr_expect(!err || err == EINVAL, "%s", strerror(err));
	cr_expect_eq(await_oob_wc(low).status, IBV_WC_WR_FLUSH_ERR);
	ev = vt_async(low->ctx, IBV_EVENT_QP_FATAL);
	cr_expect_eq(ev.element.qp, low->qp);
	ibv_ack_async_event(&ev);
	close_oob_side(&a);
	close_oob_side(&b);
	close_oob_side(&c);
}

/* Back to the beginning and on to the same peer, one after the other as programs do it. */
VT_TEST(verbs_oob, reset_and_met_again)
{
	struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	for (int i = 0; i < 3; i++) {
		struct side *from = i % 2 ? &a : &b, *at = i % 2 ? &b : &a;

		listen_to(at);
		cr_assert_eq(say_oob(from, "again", 0), 0);
		cr_expect_eq(await_oob_wc(from).status, IBV_WC_SUCCESS);
		cr_expect_eq(await_oob_wc(at).status, IBV_WC_SUCCESS);
		cr_expect_str_eq(at->buf, "again");
		listen_to(at); /* dropped */
		cr_assert_eq(move_oob_qp(from->qp, IBV_QPS_RESET), 0);
		cr_assert_eq(move_oob_qp(from->qp, IBV_QPS_INIT), 0);
		meet_oob_side(from, at);
		cr_assert_eq(move_oob_qp(at->qp, IBV_QPS_RESET), 0);
		cr_assert_eq(move_oob_qp(at->qp, IBV_QPS_INIT), 0);
		meet_oob_side(at, from);
	}
	close_oob_side(&a);
	close_oob_side(&b);
}

static struct ibv_wc write_to_verbs_oob(struct side *s, uint32_t rkey, uint64_t addr)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, 4, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 3,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { addr, rkey } },
			   *bad;

	cr_assert_eq(ibv_post_send(s->qp, &wr, &bad), 0);
	return await_oob_wc(s);
}

/* A Write completes when it is in the peer's memory, at whatever offset that is known by. */
VT_TEST(verbs_oob, a_write_is_placed_when_it_completes)
{
	struct side a, b;
	struct ibv_mr *mr;

	open_oob_side(&a);
	open_oob_side(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	mr = ibv_reg_mr_iova(b.pd, b.buf, sizeof b.buf, 0x1000,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(mr);
	for (unsigned i = 0; i < 100; i++) {
		memset(a.buf, (int)i, 4);
		cr_assert_eq(write_to_verbs_oob(&a, mr->rkey, 0x1000 + i).status, IBV_WC_SUCCESS);
		cr_assert_arr_eq(b.buf + i, a.buf, 4);
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	close_oob_side(&a);
	close_oob_side(&b);
}

/* A Send whose receive names memory that it may not; what its sender gets. */
static enum ibv_wc_status refused_send(void)
{
	struct ibv_recv_wr wr = { .wr_id = 2, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct side a, b;
	enum ibv_wc_status status;

	open_oob_side(&a);
	open_oob_side(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	sge = (struct ibv_sge){ (uintptr_t)b.buf, sizeof b.buf, b.mr->lkey + 0x100 };
	wr.sg_list = &sge;
	cr_assert_eq(ibv_post_recv(b.qp, &wr, &bad), 0);
	cr_assert_eq(say_oob(&a, "to nowhere", 0), 0);
	status = await_oob_wc(&a).status;
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_LOC_PROT_ERR);
	close_oob_side(&a);
	close_oob_side(&b);
	return status;
}

VT_TEST(verbs_oob, contact_28a_on_a_roce_device_a_send_completes_when_it_is_received)
{
	setenv("DDPSESS_FACE", "roce", 1);
	cr_expect_eq(refused_send(), IBV_WC_REM_OP_ERR);
}

VT_TEST(verbs_oob, contact_28a_on_an_iwarp_device_a_send_completes_when_it_has_left)
{
	cr_expect_eq(refused_send(), IBV_WC_SUCCESS);
}

VT_TEST(verbs_oob, contact_28a_what_completes_when_placed_can_be_said_for_any_face)
{
	setenv("DDPSESS_PLACED", "all", 1);
	cr_expect_eq(refused_send(), IBV_WC_REM_OP_ERR);
}

/* What the queue pair does not allow is refused, whatever the region does; and so it is reported. */
VT_TEST(verbs_oob, access_of_the_queue_pair)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_init_attr init;
	struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	cr_assert_eq(ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	cr_assert_eq(ibv_query_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	cr_expect_eq(attr.dest_qp_num, a.qp->qp_num);
	cr_expect_arr_eq(&attr.ah_attr.grh.dgid, &a.gid, sizeof a.gid);
	cr_expect_eq(write_to_verbs_oob(&a, b.mr->rkey, (uintptr_t)b.buf).status,
		     IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(b.buf[0], 0);
	close_oob_side(&a);
	close_oob_side(&b);
}

/* UC: Sends and Writes, in order; no Reads and atomics, neither one's own nor the peer's. */
VT_TEST(verbs_oob, unreliable_connections)
{
	static const enum ibv_wr_opcode none[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						   IBV_WR_ATOMIC_CMP_AND_SWP,
						   IBV_WR_SEND_WITH_INV };
	struct ibv_qp_attr attr = { .qp_access_flags =
					    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };
	struct ibv_send_wr wr = { 0 }, *bad;
	struct ibv_qp_init_attr init;
	struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	cr_assert_eq(ibv_destroy_qp(b.qp), 0);
	a.qp = make_oob_qp(&a, IBV_QPT_UC);
	b.qp = make_oob_qp(&b, IBV_QPT_UC);
	cr_assert_eq(ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	cr_assert_eq(ibv_query_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	cr_expect_eq(init.qp_type, IBV_QPT_UC);
	listen_to(&b);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	strcpy(a.buf, "unreliable");
	cr_expect_eq(write_to_verbs_oob(&a, b.mr->rkey, (uintptr_t)b.buf + 100).status,
		     IBV_WC_SUCCESS);
	cr_assert_eq(say_oob(&a, "reliable", 0), 0);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(b.buf, "reliable");
	cr_expect_arr_eq(b.buf + 100, "unre", 4);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		wr.opcode = none[i];
		cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL, "operation %d", none[i]);
	}
	close_oob_side(&a);
	close_oob_side(&b);
}

Test(verbs_oob, what_cannot_be_says_so)
{
	union ibv_gid none = { 0 };
	struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	cr_expect_eq(move_oob_qp(a.qp, IBV_QPS_RTS), EINVAL);
	cr_expect_eq(move_oob_qp(a.qp, IBV_QPS_RTR), EINVAL, "nobody is named");
	cr_expect_eq(move_oob_to_rtr(a.qp, b.qp->qp_num, &none), EOPNOTSUPP,
		     "a LID has no address");
	cr_expect_eq(move_oob_to_rtr(a.qp, 1 << 24, &b.gid), EINVAL);
	meet_oob_side(&a, &b);
	cr_expect_eq(move_oob_to_rtr(a.qp, b.qp->qp_num, &b.gid), EINVAL);
	cr_expect_eq(move_oob_qp(a.qp, IBV_QPS_INIT), EINVAL);
	cr_expect_eq(move_oob_qp(a.qp, IBV_QPS_RESET), 0);
	cr_expect_eq(move_oob_qp(a.qp, IBV_QPS_RTR), EINVAL, "it has forgotten its peer");
	close_oob_side(&a);
	close_oob_side(&b);
}

/* Without a peer: the error state gives everything back. */
VT_TEST(verbs_oob, errors_flush_what_was_kept)
{
	struct side a, b;
	unsigned got = 0;

	open_oob_side(&a);
	open_oob_side(&b);
	listen_to(&a);
	meet_oob_side(&a, &b);
	cr_assert_eq(say_oob(&a, "nobody hears it", 0), 0);
	cr_assert_eq(move_oob_qp(a.qp, IBV_QPS_ERR), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = await_oob_wc(&a);

		cr_expect_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		got |= (unsigned)wc.wr_id;
	}
	cr_expect_eq(got, 3);
	close_oob_side(&a);
	close_oob_side(&b);
}

/* A peer that leaves in order takes no receives with it; the error state gives them back. */
VT_TEST(verbs_oob, receives_outlive_the_peer)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct side a, b;
	struct ibv_wc wc;

	open_oob_side(&a);
	open_oob_side(&b);
	listen_to(&a);
	listen_to(&a);
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	cr_assert_eq(say_oob(&b, "farewell", 0), 0);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_destroy_qp(b.qp), 0);
	b.qp = NULL;
	for (int i = 0; a.qp->state != IBV_QPS_ERR && i < VT_MS; i++)
		nanosleep(&pause, NULL);
	cr_assert_eq(a.qp->state, IBV_QPS_ERR);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_poll_cq(a.cq, 1, &wc), 0, "the other receive stays");
	cr_expect_eq(move_oob_qp(a.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
	close_oob_side(&a);
	close_oob_side(&b);
}

Test(verbs_oob, numbers_differ, .timeout = 60)
{
	static struct ibv_qp *qp[PAIRS];
	struct side a;

	open_oob_side(&a);
	for (int i = 0; i < PAIRS; i++) {
		qp[i] = make_oob_qp(&a, IBV_QPT_RC);
		for (int k = 0; k < i; k++)
			cr_assert_neq(qp[k]->qp_num, qp[i]->qp_num);
		cr_assert_neq(qp[i]->qp_num, a.qp->qp_num);
		cr_assert_leq(qp[i]->qp_num, 0xffffff);
	}
	for (int i = 0; i < PAIRS; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	close_oob_side(&a);
}

/* Until somebody asks for a queue pair; or, with the process's lock, until it is known that he has gone.  Not
 * for ever: it makes what is tried likely, and no more. */
static void await_caller(struct vd_process *p, bool gone)
{
	bool now = false;

	for (int i = 0; i < 100000 && !now; i++) {
		sched_yield();
		cr_assert_eq(ddps_ctx_enter(p->ctx), 0);
		now = gone ? LIST_EMPTY(&p->ctx->callers) || !TAILQ_EMPTY(&p->ctx->events)
			   : !LIST_EMPTY(&p->ctx->callers);
		ddps_ctx_leave(p->ctx);
	}
}

/* A peer calls and begins anew: its request, which has gone, may not have been taken from those that wait
 * when the other side is ready.  Which is first, this thread or
 * the one that takes it, is chance. */
VT_TEST(verbs_oob, contact_35_a_peer_that_has_begun_anew_fails_nobody)
{
	struct ibv_qp *caller, *called;
	uint64_t end = read_clock_ms() + 3000;
	struct vd_process *p;
	struct side a;

	open_oob_side(&a);
	p = vd_process_of(a.ctx);
	caller = a.qp; /* the lower number */
	called = make_oob_qp(&a, IBV_QPT_RC);
	for (int i = 0; i < 4000 && read_clock_ms() < end; i++) {
		cr_assert_eq(move_oob_to_rtr(caller, called->qp_num, &a.gid), 0);
		await_caller(p, false);
		for (int k = 0; k < 100; k++) {
			ddps_lock(&p->lock);
			ddps_unlock(&p->lock);
			sched_yield();
		}
		cr_assert_eq(move_oob_qp(caller, IBV_QPS_RESET), 0);
		ddps_lock(&p->lock);
		await_caller(p, true);
		ddps_unlock(&p->lock);
		cr_assert_eq(move_oob_to_rtr(called, caller->qp_num, &a.gid), 0, "%d: %m", i);
		cr_assert_eq(move_oob_qp(called, IBV_QPS_RESET), 0);
		cr_assert_eq(to_init(caller), 0);
		cr_assert_eq(to_init(called), 0);
	}
	cr_expect_eq(ibv_destroy_qp(called), 0);
	close_oob_side(&a);
}
