/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and completions that are as most are go another way than the rest: next to each other they keep their
 * order, and nobody sees which way it was. */
#include "verbs/ib/vd_qp.h"
#include "verbs/vt.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static struct vt v;

/* Until so many completions of its queue pair wait; polls of another queue drive what brings them. */
static void await_unfetched(const struct vt_end *e, int n)
{
	const time_t late = time(NULL) + VT_MS / 1000;
	struct ibv_wc wc;

	while (ddps_ep_unfetched(vd_of(e->id->qp, struct vd_qp, qp.qp_base)->ep) < n) {
		cr_assert_leq(time(NULL), late, "not %d completions", n);
		ibv_poll_cq(e == &v.a ? v.b.cq : v.a.cq, 0, &wc);
	}
}

static void send_some(uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	for (uint64_t i = first; i < first + n; i++)
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 64, NULL), 0);
	for (uint64_t i = first; i < first + n; i++)
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
}

static void poll_in_order(struct vt_end *e, uint64_t first, int n)
{
	struct ibv_wc wc[8];

	cr_assert_eq(ibv_poll_cq(e->cq, n, wc), n);
	for (int i = 0; i < n; i++) {
		cr_expect_eq(wc[i].wr_id, first + (uint64_t)i);
		cr_expect_eq(wc[i].status, IBV_WC_SUCCESS);
		cr_expect_eq(wc[i].opcode, IBV_WC_RECV);
		cr_expect_eq(wc[i].byte_len, 64);
	}
}

/* They lie in a ring: its end is in the midst of them. */
VT_TEST(verbs_plain, completions_at_both_ends_of_the_ring_come_with_one_call)
{
	vt_init(&v);
	v.cqe = 5;
	vt_up(&v);
	send_some(1, 4);
	await_unfetched(&v.b, 4);
	poll_in_order(&v.b, 1, 2);
	send_some(5, 3);
	await_unfetched(&v.b, 5);
	poll_in_order(&v.b, 3, 5);
	vt_down(&v);
}

/* Those of another way in the midst of a list: inline data, two pieces. */
VT_TEST(verbs_plain, a_list_of_both_kinds_keeps_its_order)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_READ,  IBV_WR_SEND,
						  IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND };
	enum { N = sizeof ops / sizeof *ops };
	struct ibv_send_wr wr[N] = { { 0 } }, *bad;
	struct ibv_sge sge[N][2];

	vt_init(&v);
	vt_up(&v);
	for (unsigned i = 0; i < N; i++) {
		const bool two = i == 3;

		memset(v.a.buf + 64 * i, 'a' + (int)i, 64);
		sge[i][0] = (struct ibv_sge){ (uintptr_t)(v.a.buf + 64 * i), two ? 32 : 64,
					      v.a.mr->lkey };
		sge[i][1] =
			(struct ibv_sge){ (uintptr_t)(v.a.buf + 64 * i + 32), 32, v.a.mr->lkey };
		wr[i] = (struct ibv_send_wr){ .wr_id = i,
					      .next = i + 1 < N ? &wr[i + 1] : NULL,
					      .sg_list = sge[i],
					      .num_sge = two ? 2 : 1,
					      .opcode = ops[i],
					      .send_flags = i == 2 ? IBV_SEND_INLINE : 0 };
		wr[i].wr.rdma.remote_addr = (uintptr_t)(v.b.buf + 4096 + 64 * i);
		wr[i].wr.rdma.rkey = v.b.mr->rkey;
	}
	memset(v.b.buf + 4096, 'r', 1024);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(vt_recv(&v.b, i, 64 * i, 64), 0);
	cr_assert_eq(ibv_post_send(v.a.id->qp, wr, &bad), 0);
	memset(v.a.buf + 64 * 2, 'x', 64); /* inline data was taken */
	for (unsigned i = 0; i < N; i++)
		vt_expect_wc(&v.a, i,
			     ops[i] == IBV_WR_SEND	  ? IBV_WC_SEND
			     : ops[i] == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
							  : IBV_WC_RDMA_WRITE,
			     IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4; i++) {
		cr_expect_eq(v.b.buf[64 * i], "acdf"[i], "receive %u", i);
		cr_expect_eq(v.b.buf[64 * i + 63], "acdf"[i], "receive %u", i);
	}
	cr_expect_eq(v.a.buf[64], 'r');
	cr_expect_eq(v.b.buf[4096 + 64 * 4 + 63], 'e');
	vt_down(&v);
}

/* The list ends at the first that has no place, whichever way it would have gone. */
VT_TEST(verbs_plain, the_first_without_a_place_is_named)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr[6] = { { 0 } }, *bad = NULL;

	for (int inl = 0; inl < 2; inl++) {
		vt_init(&v);
		v.init.cap.max_send_wr = 4;
		vt_up(&v);
		sge = (struct ibv_sge){ (uintptr_t)v.a.buf, 64, v.a.mr->lkey };
		for (unsigned i = 0; i < 6; i++) {
			cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
			wr[i] = (struct ibv_send_wr){ .wr_id = i,
						      .next = i < 5 ? &wr[i + 1] : NULL,
						      .sg_list = &sge,
						      .num_sge = 1,
						      .opcode = IBV_WR_SEND,
						      .send_flags = inl ? IBV_SEND_INLINE : 0 };
		}
		errno = 0;
		cr_expect_eq(ibv_post_send(v.a.id->qp, wr, &bad), ENOMEM);
		cr_expect_eq(errno, 0);
		cr_expect_eq(bad, &wr[4]);
		for (unsigned i = 0; i < 4; i++)
			vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
		cr_expect_eq(ibv_post_send(v.a.id->qp, bad, &bad), 0, "there are places again");
		vt_expect_wc(&v.a, 4, IBV_WC_SEND, IBV_WC_SUCCESS);
		vt_expect_wc(&v.a, 5, IBV_WC_SEND, IBV_WC_SUCCESS);
		vt_down(&v);
	}
}

#define EACH 500u

static unsigned fetched; /* atomic: completions of @v.a */

/* As many Writes as there are places, of one way by each of two threads; a completion gives its place back. */
static void *write_always(void *arg)
{
	struct ibv_sge sge = { (uintptr_t)v.a.buf, 8, v.a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = arg ? IBV_SEND_INLINE : 0 },
			   *bad;
	struct ibv_wc wc;
	int err;

	wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
	wr.wr.rdma.rkey = v.b.mr->rkey;
	for (unsigned n = 0; n < EACH; n += !err) {
		err = ibv_post_send(v.a.id->qp, &wr, &bad);
		if (err && err != ENOMEM)
			return &v;
		if (err && ibv_poll_cq(v.a.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS)
			__atomic_add_fetch(&fetched, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The queue has as many entries as the queue pair has places: a request too many would overflow it. */
VT_TEST(verbs_plain, both_ways_at_the_same_time_share_the_places)
{
	pthread_t other;
	void *wrong;

	vt_init(&v);
	v.init.cap.max_send_wr = 4;
	v.cqe = 4;
	vt_up(&v);
	cr_assert_eq(pthread_create(&other, NULL, write_always, &v), 0);
	cr_expect(!write_always(NULL));
	pthread_join(other, &wrong);
	cr_expect(!wrong);
	for (; fetched < 2 * EACH; fetched++)
		cr_assert_eq(vt_wc(&v.a).status, IBV_WC_SUCCESS);
	vt_down(&v);
}
