/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that connect by number and GID, without rdma_cm. */
#include "verbs/vt.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAIRS  300	/* more than share a port */
#define NOBODY 0xef0009 /* behind a port where nobody listens */

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char buf[256];
};

static struct ibv_qp *queue_pair(const struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = s->cq,
					 .recv_cq = s->cq,
					 .qp_type = type,
					 .cap = { 4, 4, 2, 2, 64 },
					 .sq_sig_all = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	cr_assert_not_null(qp);
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	return qp;
}

static void up(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(s, 0, sizeof *s);
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 64, NULL, NULL, 0);
	s->mr = ibv_reg_mr(s->pd, s->buf, sizeof s->buf,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(s->cq && s->mr);
	cr_assert_eq(ibv_query_gid(s->ctx, 1, 0, &s->gid), 0);
	s->qp = queue_pair(s, IBV_QPT_RC);
}

static void down(struct side *s)
{
	if (s->qp)
		cr_expect_eq(ibv_destroy_qp(s->qp), 0);
	cr_expect_eq(ibv_dereg_mr(s->mr), 0);
	cr_expect_eq(ibv_destroy_cq(s->cq), 0);
	cr_expect_eq(ibv_dealloc_pd(s->pd), 0);
	cr_expect_eq(ibv_close_device(s->ctx), 0);
}

static int to_rtr(struct ibv_qp *qp, uint32_t number, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = number,
				    .max_dest_rd_atomic = 4,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };

	attr.ah_attr.grh.dgid = *gid;
	return ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_MAX_DEST_RD_ATOMIC);
}

static int to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static void meet(struct side *s, const struct side *other)
{
	cr_assert_eq(to_rtr(s->qp, other->qp->qp_num, &other->gid), 0);
	cr_assert_eq(to(s->qp, IBV_QPS_RTS), 0);
}

static int say(struct side *s, const char *text, unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)strcpy(s->buf, text), (uint32_t)strlen(text) + 1,
			       s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = flags },
			   *bad;

	return ibv_post_send(s->qp, &wr, &bad);
}

static void listen_to(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, sizeof s->buf, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(s->qp, &wr, &bad), 0);
}

static struct ibv_wc next(const struct side *s)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct ibv_wc wc = { 0 };
	int n = 0;

	for (int i = 0; !n && i < VT_MS; i++) {
		n = ibv_poll_cq(s->cq, 1, &wc);
		if (!n)
			nanosleep(&pause, NULL);
	}
	cr_assert_eq(n, 1, "no completion came");
	return wc;
}

/* What is sent before the other side is ready arrives, whichever of the two comes first. */
VT_TEST(verbs_oob, either_side_may_be_first)
{
	for (int lower_first = 0; lower_first < 2; lower_first++) {
		struct side a, b, *first, *then;

		up(&a);
		up(&b);
		first = (a.qp->qp_num < b.qp->qp_num) == lower_first ? &a : &b;
		then = first == &a ? &b : &a;
		listen_to(then);
		meet(first, then);
		cr_assert_eq(say(first, "early", 0), 0);
		meet(then, first);
		cr_expect_eq(next(then).status, IBV_WC_SUCCESS);
		cr_expect_str_eq(then->buf, "early");
		cr_expect_eq(next(first).status, IBV_WC_SUCCESS);
		listen_to(first);
		cr_assert_eq(say(then, "late", IBV_SEND_INLINE), 0);
		cr_expect_eq(next(then).opcode, IBV_WC_SEND);
		cr_expect_eq(next(first).opcode, IBV_WC_RECV);
		cr_expect_str_eq(first->buf, "late");
		down(&a);
		down(&b);
	}
}

/* Inline data is the caller's again when the call returns, and the depth holds. */
/* perftest's servers post in RTR: iWARP knows no RTS, and whether a session is up nobody can know. */
VT_TEST(verbs_oob, rtr_is_enough_to_send)
{
	struct side a, b;

	up(&a);
	up(&b);
	listen_to(&b);
	cr_expect_eq(say(&a, "before", 0), EINVAL);
	cr_assert_eq(to_rtr(a.qp, b.qp->qp_num, &b.gid), 0);
	cr_expect_eq(say(&a, "in RTR", 0), 0);
	meet(&b, &a);
	cr_expect_eq(next(&b).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(b.buf, "in RTR");
	down(&a);
	down(&b);
}

VT_TEST(verbs_oob, what_is_kept_is_a_copy_and_has_an_end)
{
	struct side a, b;

	up(&a);
	up(&b);
	cr_expect_eq(say(&a, "too early", 0), EINVAL);
	listen_to(&b);
	meet(&a, &b);
	cr_assert_eq(say(&a, "first", IBV_SEND_INLINE), 0);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(say(&a, "other", IBV_SEND_INLINE), 0);
	cr_expect_eq(say(&a, "fifth of four", IBV_SEND_INLINE), ENOMEM);
	meet(&b, &a);
	cr_expect_eq(next(&b).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(b.buf, "first");
	down(&a);
	down(&b);
}

VT_TEST(verbs_oob, strangers_are_refused)
{
	struct side a, b, c, *low, *high;
	struct ibv_async_event ev;
	int err;

	up(&a);
	up(&b);
	up(&c);
	/* The higher of two waits for another one than the lower, which asks it. */
	low = a.qp->qp_num < b.qp->qp_num ? &a : &b;
	high = low == &a ? &b : &a;
	meet(high, &c);
	listen_to(low);
	cr_assert_eq(to_rtr(low->qp, high->qp->qp_num, &high->gid), 0);
	/* Told so already, or not yet. */
	err = to(low->qp, IBV_QPS_RTS);
	cr_expect(!err || err == EINVAL, "%s", strerror(err));
	cr_expect_eq(next(low).status, IBV_WC_WR_FLUSH_ERR);
	ev = vt_async(low->ctx, IBV_EVENT_QP_FATAL);
	cr_expect_eq(ev.element.qp, low->qp);
	ibv_ack_async_event(&ev);
	down(&a);
	down(&b);
	down(&c);
}

/* Back to the beginning and on to the same peer, one after the other as programs do it. */
VT_TEST(verbs_oob, reset_and_met_again)
{
	struct side a, b;

	up(&a);
	up(&b);
	meet(&a, &b);
	meet(&b, &a);
	for (int i = 0; i < 3; i++) {
		struct side *from = i % 2 ? &a : &b, *at = i % 2 ? &b : &a;

		listen_to(at);
		cr_assert_eq(say(from, "again", 0), 0);
		cr_expect_eq(next(from).status, IBV_WC_SUCCESS);
		cr_expect_eq(next(at).status, IBV_WC_SUCCESS);
		cr_expect_str_eq(at->buf, "again");
		listen_to(at); /* dropped */
		cr_assert_eq(to(from->qp, IBV_QPS_RESET), 0);
		cr_assert_eq(to(from->qp, IBV_QPS_INIT), 0);
		meet(from, at);
		cr_assert_eq(to(at->qp, IBV_QPS_RESET), 0);
		cr_assert_eq(to(at->qp, IBV_QPS_INIT), 0);
		meet(at, from);
	}
	down(&a);
	down(&b);
}

static struct ibv_wc write_to(struct side *s, uint32_t rkey, uint64_t addr)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, 4, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 3,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { addr, rkey } },
			   *bad;

	cr_assert_eq(ibv_post_send(s->qp, &wr, &bad), 0);
	return next(s);
}

/* A Write completes when it is in the peer's memory, at whatever offset that is known by. */
VT_TEST(verbs_oob, a_write_is_placed_when_it_completes)
{
	struct side a, b;
	struct ibv_mr *mr;

	up(&a);
	up(&b);
	meet(&a, &b);
	meet(&b, &a);
	mr = ibv_reg_mr_iova(b.pd, b.buf, sizeof b.buf, 0x1000,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(mr);
	for (unsigned i = 0; i < 100; i++) {
		memset(a.buf, (int)i, 4);
		cr_assert_eq(write_to(&a, mr->rkey, 0x1000 + i).status, IBV_WC_SUCCESS);
		cr_assert_arr_eq(b.buf + i, a.buf, 4);
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	down(&a);
	down(&b);
}

/* What the queue pair does not allow is refused, whatever the region does; and so it is told. */
VT_TEST(verbs_oob, access_of_the_queue_pair)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_init_attr init;
	struct side a, b;

	up(&a);
	up(&b);
	cr_assert_eq(ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	meet(&a, &b);
	meet(&b, &a);
	cr_assert_eq(ibv_query_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	cr_expect_eq(attr.dest_qp_num, a.qp->qp_num);
	cr_expect_arr_eq(&attr.ah_attr.grh.dgid, &a.gid, sizeof a.gid);
	cr_expect_eq(write_to(&a, b.mr->rkey, (uintptr_t)b.buf).status, IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(b.buf[0], 0);
	down(&a);
	down(&b);
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

	up(&a);
	up(&b);
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	cr_assert_eq(ibv_destroy_qp(b.qp), 0);
	a.qp = queue_pair(&a, IBV_QPT_UC);
	b.qp = queue_pair(&b, IBV_QPT_UC);
	cr_assert_eq(ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	cr_assert_eq(ibv_query_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_expect_eq(init.qp_type, IBV_QPT_UC);
	listen_to(&b);
	meet(&a, &b);
	meet(&b, &a);
	strcpy(a.buf, "unreliable");
	cr_expect_eq(write_to(&a, b.mr->rkey, (uintptr_t)b.buf + 100).status, IBV_WC_SUCCESS);
	cr_assert_eq(say(&a, "reliable", 0), 0);
	cr_expect_eq(next(&b).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(b.buf, "reliable");
	cr_expect_arr_eq(b.buf + 100, "unre", 4);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		wr.opcode = none[i];
		cr_expect_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL, "operation %d", none[i]);
	}
	down(&a);
	down(&b);
}

Test(verbs_oob, what_cannot_be_says_so)
{
	union ibv_gid none = { 0 };
	struct side a, b;

	up(&a);
	up(&b);
	cr_expect_eq(to(a.qp, IBV_QPS_RTS), EINVAL);
	cr_expect_eq(to(a.qp, IBV_QPS_RTR), EINVAL, "nobody is named");
	cr_expect_eq(to_rtr(a.qp, b.qp->qp_num, &none), EOPNOTSUPP, "a LID has no address");
	cr_expect_eq(to_rtr(a.qp, 1 << 24, &b.gid), EINVAL);
	meet(&a, &b);
	cr_expect_eq(to_rtr(a.qp, b.qp->qp_num, &b.gid), EINVAL);
	cr_expect_eq(to(a.qp, IBV_QPS_INIT), EINVAL);
	cr_expect_eq(to(a.qp, IBV_QPS_RESET), 0);
	cr_expect_eq(to(a.qp, IBV_QPS_RTR), EINVAL, "it has forgotten its peer");
	down(&a);
	down(&b);
}

/* Without a peer: the error state gives everything back. */
VT_TEST(verbs_oob, errors_flush_what_was_kept)
{
	struct side a, b;
	unsigned got = 0;

	up(&a);
	up(&b);
	listen_to(&a);
	meet(&a, &b);
	cr_assert_eq(say(&a, "nobody hears it", 0), 0);
	cr_assert_eq(to(a.qp, IBV_QPS_ERR), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = next(&a);

		cr_expect_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		got |= (unsigned)wc.wr_id;
	}
	cr_expect_eq(got, 3);
	down(&a);
	down(&b);
}

/* A peer that leaves in order takes no receives with it; the error state gives them back. */
VT_TEST(verbs_oob, receives_outlive_the_peer)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct side a, b;
	struct ibv_wc wc;

	up(&a);
	up(&b);
	listen_to(&a);
	listen_to(&a);
	meet(&a, &b);
	meet(&b, &a);
	cr_assert_eq(say(&b, "farewell", 0), 0);
	cr_expect_eq(next(&b).status, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_destroy_qp(b.qp), 0);
	b.qp = NULL;
	for (int i = 0; a.qp->state != IBV_QPS_ERR && i < VT_MS; i++)
		nanosleep(&pause, NULL);
	cr_assert_eq(a.qp->state, IBV_QPS_ERR);
	cr_expect_eq(next(&a).status, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_poll_cq(a.cq, 1, &wc), 0, "the other receive stays");
	cr_expect_eq(to(a.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(next(&a).status, IBV_WC_WR_FLUSH_ERR);
	down(&a);
	down(&b);
}

Test(verbs_oob, numbers_differ, .timeout = 60)
{
	static struct ibv_qp *qp[PAIRS];
	struct side a;

	up(&a);
	for (int i = 0; i < PAIRS; i++) {
		qp[i] = queue_pair(&a, IBV_QPT_RC);
		for (int k = 0; k < i; k++)
			cr_assert_neq(qp[k]->qp_num, qp[i]->qp_num);
		cr_assert_neq(qp[i]->qp_num, a.qp->qp_num);
		cr_assert_leq(qp[i]->qp_num, 0xffffff);
	}
	for (int i = 0; i < PAIRS; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	down(&a);
}

/* ---- channels ---- */

/* With a queue that tells, and a receive posted. */
static struct ibv_comp_channel *up_told(struct side *s)
{
	struct ibv_comp_channel *ch;

	up(s);
	cr_assert_eq(ibv_destroy_qp(s->qp), 0);
	cr_assert_eq(ibv_destroy_cq(s->cq), 0);
	ch = ibv_create_comp_channel(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 64, NULL, ch, 0);
	cr_assert(ch && s->cq);
	s->qp = queue_pair(s, IBV_QPT_RC);
	listen_to(s);
	return ch;
}

static void down_told(struct side *s, struct ibv_comp_channel *ch)
{
	if (s->qp)
		cr_expect_eq(ibv_destroy_qp(s->qp), 0);
	s->qp = NULL;
	cr_expect_eq(ibv_destroy_cq(s->cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
	s->cq = ibv_create_cq(s->ctx, 1, NULL, NULL, 0);
	down(s);
}

static void acked(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq;
	void *user;

	cr_assert(vt_readable(ch->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(ch, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
}

/*
 * On InfiniBand the end of a queue pair is no event of its queues, nor of its peer's.  Programs that
 * acknowledge all events before they destroy the queue pair would wait for ever for another one.
 */
VT_TEST(verbs_oob, a_queue_pair_that_goes_wakes_nobody)
{
	struct ibv_comp_channel *ca, *cb;
	struct side a, b;

	ca = up_told(&a);
	cb = up_told(&b);
	meet(&a, &b);
	meet(&b, &a);
	cr_assert_eq(say(&a, "hello", IBV_SEND_SIGNALED), 0);
	cr_expect_eq(next(&a).status, IBV_WC_SUCCESS);
	cr_expect_eq(next(&b).status, IBV_WC_SUCCESS);
	listen_to(&b);
	cr_assert_eq(ibv_req_notify_cq(a.cq, 0), 0);
	cr_assert_eq(ibv_req_notify_cq(b.cq, 0), 0);
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	a.qp = NULL;
	cr_expect(!vt_readable(ca->fd, 0), "its own queue");
	cr_expect(!vt_readable(cb->fd, 200), "its peer's queue");
	/* what the program does itself is told of */
	cr_assert_eq(to(b.qp, IBV_QPS_ERR), 0);
	acked(cb);
	cr_expect_eq(next(&b).status, IBV_WC_WR_FLUSH_ERR);
	down_told(&a, ca);
	down_told(&b, cb);
}

/* A peer that is not there is no orderly end. */
VT_TEST(verbs_oob, a_connection_that_fails_is_told_of)
{
	struct ibv_comp_channel *ch;
	struct side a;

	setenv("DDPSESS_RETRY_MS", "50", 1);
	ch = up_told(&a);
	cr_assert_eq(ibv_req_notify_cq(a.cq, 0), 0);
	cr_assert_eq(to_rtr(a.qp, NOBODY, &a.gid), 0);
	acked(ch);
	cr_expect_eq(next(&a).status, IBV_WC_WR_FLUSH_ERR);
	down_told(&a, ch);
}

/* ---- its own peer ---- */

static int write_self(struct side *s, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, 8, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 5,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)s->buf + 128;
	wr.wr.rdma.rkey = s->mr->rkey;
	return ibv_post_send(s->qp, &wr, &bad);
}

/* Both completions of a Send to itself, in whichever order. */
static void told_of_both(struct side *s)
{
	struct ibv_wc one = next(s), two = next(s);

	cr_expect_eq(one.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(one.status));
	cr_expect_eq(two.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(two.status));
	cr_expect_eq(one.wr_id + two.wr_id, 1 + 2);
	cr_expect_eq(one.qp_num, s->qp->qp_num);
	cr_expect_eq(two.qp_num, s->qp->qp_num);
}

static void talk_to_self(struct side *s)
{
	listen_to(s); /* before it knows whom it will hear */
	meet(s, s);
	cr_assert_eq(say(s, "hello", IBV_SEND_SIGNALED), 0);
	told_of_both(s);
	memcpy(s->buf, "written", 8);
	cr_assert_eq(write_self(s, IBV_WR_RDMA_WRITE), 0);
	cr_expect_eq(next(s).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(s->buf + 128, "written");
	memcpy(s->buf + 128, "is read", 8);
	cr_assert_eq(write_self(s, IBV_WR_RDMA_READ), 0);
	cr_expect_eq(next(s).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(s->buf, "is read");
}

VT_TEST(verbs_oob, a_queue_pair_is_its_own_peer)
{
	struct side s;

	up(&s);
	cr_assert_eq(ibv_dereg_mr(s.mr), 0);
	s.mr = ibv_reg_mr(s.pd, s.buf, sizeof s.buf,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
	cr_assert_not_null(s.mr);
	talk_to_self(&s);
	/* what is posted comes back when it fails ... */
	listen_to(&s);
	cr_assert_eq(to(s.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(next(&s).status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(say(&s, "late", IBV_SEND_SIGNALED), 0);
	cr_expect_eq(next(&s).status, IBV_WC_WR_FLUSH_ERR);
	/* ... and it begins anew */
	cr_assert_eq(to(s.qp, IBV_QPS_RESET), 0);
	{
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

		cr_assert_eq(ibv_modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	}
	talk_to_self(&s);
	down(&s);
}

/* What it may not touch ends it, on both of its ends. */
VT_TEST(verbs_oob, a_queue_pair_that_is_its_own_peer_fails)
{
	struct side s;

	up(&s);
	listen_to(&s);
	meet(&s, &s);
	cr_assert_eq(write_self(&s, IBV_WR_RDMA_READ), 0); /* no right to */
	for (int i = 0; i < 2; i++) { /* in whichever order its two ends learn of it */
		struct ibv_wc wc = next(&s);

		cr_expect_neq(wc.status, IBV_WC_SUCCESS);
		cr_expect_eq(wc.status == IBV_WC_WR_FLUSH_ERR, wc.wr_id == 2, "the receive");
	}
	down(&s);
}
