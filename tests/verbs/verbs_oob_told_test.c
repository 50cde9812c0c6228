/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that programs connect themselves: what channels report of them, and one that is its own peer. */
#include "verbs/voob.h"
#include "support/descriptor.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vchild.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- channels ---- */

/* With a queue that has events, and a receive posted. */
static struct ibv_comp_channel *up_told(struct side *s)
{
	struct ibv_comp_channel *ch;

	open_oob_side(s);
	cr_assert_eq(ibv_destroy_qp(s->qp), 0);
	cr_assert_eq(ibv_destroy_cq(s->cq), 0);
	ch = ibv_create_comp_channel(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 64, NULL, ch, 0);
	cr_assert(ch && s->cq);
	s->qp = make_oob_qp(s, IBV_QPT_RC);
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
	close_oob_side(s);
}

static void note_verbs_oob_told_acked(struct ibv_comp_channel *ch)
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
	meet_oob_side(&a, &b);
	meet_oob_side(&b, &a);
	cr_assert_eq(say_oob(&a, "hello", IBV_SEND_SIGNALED), 0);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
	listen_to(&b);
	cr_assert_eq(ibv_req_notify_cq(a.cq, 0), 0);
	cr_assert_eq(ibv_req_notify_cq(b.cq, 0), 0);
	cr_assert_eq(ibv_destroy_qp(a.qp), 0);
	a.qp = NULL;
	cr_expect(!vt_readable(ca->fd, 0), "its own queue");
	cr_expect(!vt_readable(cb->fd, 200), "its peer's queue");
	/* what the program does itself is reported */
	cr_assert_eq(move_oob_qp(b.qp, IBV_QPS_ERR), 0);
	note_verbs_oob_told_acked(cb);
	cr_expect_eq(await_oob_wc(&b).status, IBV_WC_WR_FLUSH_ERR);
	down_told(&a, ca);
	down_told(&b, cb);
}

/* A peer that is not there is no orderly end. */
VT_TEST(verbs_oob, a_connection_that_fails_is_reported)
{
	struct ibv_comp_channel *ch;
	struct side a;

	setenv("DDPSESS_RETRY_MS", "50", 1);
	ch = up_told(&a);
	cr_assert_eq(ibv_req_notify_cq(a.cq, 0), 0);
	cr_assert_eq(move_oob_to_rtr(a.qp, NOBODY, &a.gid), 0);
	note_verbs_oob_told_acked(ch);
	cr_expect_eq(await_oob_wc(&a).status, IBV_WC_WR_FLUSH_ERR);
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
	struct ibv_wc one = await_oob_wc(s), two = await_oob_wc(s);

	cr_expect_eq(one.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(one.status));
	cr_expect_eq(two.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(two.status));
	cr_expect_eq(one.wr_id + two.wr_id, 1 + 2);
	cr_expect_eq(one.qp_num, s->qp->qp_num);
	cr_expect_eq(two.qp_num, s->qp->qp_num);
}

static void talk_to_self(struct side *s)
{
	listen_to(s); /* before it knows whom it will hear */
	meet_oob_side(s, s);
	cr_assert_eq(say_oob(s, "hello", IBV_SEND_SIGNALED), 0);
	told_of_both(s);
	memcpy(s->buf, "written", 8);
	cr_assert_eq(write_self(s, IBV_WR_RDMA_WRITE), 0);
	cr_expect_eq(await_oob_wc(s).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(s->buf + 128, "written");
	memcpy(s->buf + 128, "is read", 8);
	cr_assert_eq(write_self(s, IBV_WR_RDMA_READ), 0);
	cr_expect_eq(await_oob_wc(s).status, IBV_WC_SUCCESS);
	cr_expect_str_eq(s->buf, "is read");
}

VT_TEST(verbs_oob, a_queue_pair_is_its_own_peer)
{
	struct side s;

	open_oob_side(&s);
	cr_assert_eq(ibv_dereg_mr(s.mr), 0);
	s.mr = ibv_reg_mr(s.pd, s.buf, sizeof s.buf,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
	cr_assert_not_null(s.mr);
	talk_to_self(&s);
	/* what is posted comes back when it fails ... */
	listen_to(&s);
	cr_assert_eq(move_oob_qp(s.qp, IBV_QPS_ERR), 0);
	cr_expect_eq(await_oob_wc(&s).status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(say_oob(&s, "late", IBV_SEND_SIGNALED), 0);
	cr_expect_eq(await_oob_wc(&s).status, IBV_WC_WR_FLUSH_ERR);
	/* ... and it begins anew */
	cr_assert_eq(move_oob_qp(s.qp, IBV_QPS_RESET), 0);
	{
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

		cr_assert_eq(ibv_modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	}
	talk_to_self(&s);
	close_oob_side(&s);
}

/* What it may not touch ends it, on both of its ends. */
VT_TEST(verbs_oob, a_queue_pair_that_is_its_own_peer_fails)
{
	struct side s;

	open_oob_side(&s);
	listen_to(&s);
	meet_oob_side(&s, &s);
	cr_assert_eq(write_self(&s, IBV_WR_RDMA_READ), 0); /* no right to */
	for (int i = 0; i < 2; i++) { /* in whichever order its two ends learn of it */
		struct ibv_wc wc = await_oob_wc(&s);

		cr_expect_neq(wc.status, IBV_WC_SUCCESS);
		cr_expect_eq(wc.status == IBV_WC_WR_FLUSH_ERR, wc.wr_id == 2, "the receive");
	}
	close_oob_side(&s);
}

/* ---- reads ---- */

/* Reads of queue pairs that a program connects itself: how many are on their way at most, and more than the peer
 * takes. */

static struct side low, high;

static int move_with_reads(struct side *s, const struct side *to, uint8_t in, uint8_t out)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = to->qp->qp_num,
				    .path_mtu = IBV_MTU_1024,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_dest_rd_atomic = in,
				    .max_rd_atomic = out,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };
	int err;

	attr.ah_attr.grh.dgid = to->gid;
	err = ibv_modify_qp(s->qp, &attr, TO_RTR);
	attr.qp_state = IBV_QPS_RTS;
	return err ? err : ibv_modify_qp(s->qp, &attr, TO_RTS);
}

/* Reads of one of the two, in one call, 4 at most. */
static void post_reads(struct side *from, const struct side *to, uint64_t n)
{
	struct ibv_sge sge = { (uintptr_t)from->buf, 8, from->mr->lkey };
	struct ibv_send_wr wr[4], *bad;

	for (uint64_t i = 0; i < n; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = i,
					      .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_READ };
		wr[i].wr.rdma.remote_addr = (uintptr_t)to->buf;
		wr[i].wr.rdma.rkey = to->mr->rkey;
	}
	cr_assert_eq(ibv_post_send(from->qp, wr, &bad), 0);
}

static void open_reading_side(struct side *s)
{
	open_oob_side(s);
	cr_assert_eq(ibv_dereg_mr(s->mr), 0);
	s->mr = ibv_reg_mr(s->pd, s->buf, sizeof s->buf,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	cr_assert_not_null(s->mr);
}

static void open_two_sides(uint8_t in, uint8_t out)
{
	open_reading_side(&low);
	open_reading_side(&high);
	cr_assert_eq(move_with_reads(&low, &high, in, out), 0);
	cr_assert_eq(move_with_reads(&high, &low, in, out), 0);
}

static void read_each_way(uint64_t n)
{
	open_two_sides(2, 8);
	post_reads(&low, &high, n);
	for (uint64_t i = 0; i < n; i++)
		cr_expect_eq(await_oob_wc(&low).status, IBV_WC_SUCCESS);
	post_reads(&high, &low, n);
	for (uint64_t i = 0; i < n; i++)
		cr_expect_eq(await_oob_wc(&high).status, IBV_WC_SUCCESS);
	close_oob_side(&low);
	close_oob_side(&high);
}

static void read_few(void)
{
	read_each_way(2);
}

static void read_many(void)
{
	read_each_way(4);
}

/* Nothing is answered: an adapter's Reads fail, and with them the connection. */
static void read_too_many(void)
{
	enum ibv_wc_status status;

	open_two_sides(2, 8);
	listen_to(&low);
	listen_to(&high);
	cr_assert_eq(say_oob(&high, "up", 0), 0);
	while (await_oob_wc(&low).opcode != IBV_WC_RECV)
		;
	cut_network();
	post_reads(&low, &high, 4);
	cr_expect_eq(await_oob_wc(&low).status, IBV_WC_REM_INV_REQ_ERR);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(await_oob_wc(&low).status, IBV_WC_WR_FLUSH_ERR);
	mend_network(); /* the peer sends something, and learns of it */
	cr_assert_eq(say_oob(&high, "there?", 0), 0);
	while ((status = await_oob_wc(&high).status) == IBV_WC_SUCCESS)
		;
	cr_expect_eq(status, IBV_WC_WR_FLUSH_ERR);
	close_oob_side(&low);
	close_oob_side(&high);
}

/* ---- what is said, and what becomes of them ---- */

static void live_strictly(const void *arg)
{
	void (*const *live)(void) = arg;

	setenv("DDPSESS_STRICT", "on", 1);
	setenv("DDPSESS_FACE", "roce", 1);
	(*live)();
}

static void live_by_default(const void *arg)
{
	void (*const *live)(void) = arg;

	(*live)();
}

VT_TEST(verbs_reads, more_than_the_peer_takes)
{
	static const char said[] = ": max_rd_atomic is 8, and the peer's max_dest_rd_atomic is 2: ";
	void (*const few)(void) = read_few, (*const many)(void) = read_many,
		     (*const over)(void) = read_too_many;
	const char *told;

	cr_expect_eq(vchild_run(live_by_default, &many, &told), 0, "%s", told);
	cr_expect_eq(vchild_times(told, "ddpsess: "), 0, "%s", told);
	cr_expect_eq(vchild_run(live_strictly, &few, &told), 0, "%s", told);
	cr_expect_eq(vchild_times(told, said), 2, "each of the two: %s", told);
	cr_expect_eq(vchild_times(told, "ddpsess: "), 2, "%s", told);
	cr_expect_eq(vchild_run(live_strictly, &over, &told), 0, "%s", told);
	cr_expect_eq(vchild_times(told, ": more than 2 Reads are on their way, "), 1, "%s", told);
}

struct depth {
	uint8_t in, out, reads;
	bool alone; /* the queue pair is its own peer */
};

/* Nothing is answered any more: what is on its way stays so.  The status is how many. */
static void count_reads_on_their_way(const void *arg)
{
	const struct depth *d = arg;
	struct ddps_ep_stats st = { .struct_size = sizeof st };
	struct side *peer = d->alone ? &low : &high;
	struct vd_qp *qp;

	if (d->alone) {
		open_reading_side(&low);
		cr_assert_eq(move_with_reads(&low, &low, d->in, d->out), 0);
	} else {
		open_two_sides(d->in, d->out);
	}
	listen_to(&low);
	cr_assert_eq(say_oob(peer, "up", 0), 0);
	while (await_oob_wc(&low).opcode != IBV_WC_RECV)
		;
	cut_network();
	post_reads(&low, peer, 4);
	qp = vd_of(low.qp, struct vd_qp, qp.qp_base);
	for (int more = 20, ms = 0; ms < 10000 && more; ms++) { /* and then no more of them */
		ibv_poll_cq(low.cq, 0, NULL);
		cr_assert_eq(ddps_ep_stats(vd_tx(qp), &st), 0);
		more -= st.reads_out >= d->reads;
		usleep(1000);
	}
	_exit((int)st.reads_out);
}

VT_TEST(verbs_reads, max_rd_atomic_counts)
{
	static const struct depth depths[] = { { 16, 16, 4, false }, { 16, 1, 1, false },
					       { 3, 16, 3, false },  { 16, 16, 4, true },
					       { 16, 1, 1, true },   { 3, 16, 3, true } };
	const char *told;
	int status;

	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		status = vchild_run(count_reads_on_their_way, &depths[i], &told);
		cr_expect(WIFEXITED(status));
		cr_expect_eq(WEXITSTATUS(status), depths[i].reads,
			     "%d on their way, in %u, out %u, alone %d: %s", WEXITSTATUS(status),
			     depths[i].in, depths[i].out, depths[i].alone, told);
	}
}
