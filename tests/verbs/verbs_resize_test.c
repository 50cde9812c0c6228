/* SPDX-License-Identifier: BSD-2-Clause */
/* A completion queue gets another size while queue pairs use it. */
#include "verbs/vd.h"
#include "verbs/vt.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

enum { PLACES = 16 };

static int post_verbs_resize(struct vt *v, uint64_t wr_id)
{
	struct ibv_send_wr wr = { .wr_id = wr_id, .opcode = IBV_WR_RDMA_WRITE }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)v->b.buf;
	wr.wr.rdma.rkey = v->b.mr->rkey;
	return ibv_post_send(v->a.id->qp, &wr, &bad);
}

static void post_from(struct vt *v, uint64_t wr_id, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(post_verbs_resize(v, wr_id + i), 0);
}

/* Until so many completions are in the queue. */
static void await_verbs_resize(struct vt *v, int n)
{
	struct ddps_ep *ep = vd_of(v->a.id->qp, struct vd_qp, qp.qp_base)->ep;
	int is = 0;

	for (int i = 0; is != n && i < VT_MS; i++) {
		is = ddps_ep_unfetched(ep);
		if (is != n)
			poll(NULL, 0, 1);
	}
	cr_assert_eq(is, n);
}

static void fetch_from(struct vt *v, uint64_t wr_id, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		vt_expect_wc(&v->a, wr_id + i, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
}

static void begin_verbs_resize(struct vt *v, int cqe)
{
	vt_init(v);
	v->cqe = cqe;
	vt_up(v);
}

/* What is in it stays, in order, also where the ring begins anew; less than that is refused. */
VT_TLS_TEST(verbs_resize, contact_27_a_queue_that_is_used_gets_another_size)
{
	struct vt v;

	begin_verbs_resize(&v, 8);
	post_from(&v, 0, 6);
	await_verbs_resize(&v, 6);
	fetch_from(&v, 0, 5);
	post_from(&v, 6, 5);
	await_verbs_resize(&v, 6);
	cr_expect_eq(ibv_resize_cq(v.a.cq, 5), EINVAL);
	cr_expect_eq(v.a.cq->cqe, 8);
	cr_assert_eq(ibv_resize_cq(v.a.cq, 6), 0);
	cr_expect_eq(v.a.cq->cqe, 6);
	cr_assert_eq(ibv_resize_cq(v.a.cq, 64), 0);
	cr_expect_eq(v.a.cq->cqe, 64);
	post_from(&v, 11, PLACES - 6);
	await_verbs_resize(&v, PLACES);
	fetch_from(&v, 5, PLACES);
	cr_expect_not(vt_readable(v.a.id->verbs->async_fd, 0), "nothing was lost");
	vt_down(&v);
}

/* A queue that was made smaller holds no more than that. */
VT_TLS_TEST(verbs_resize, contact_27_a_smaller_queue_is_smaller)
{
	struct ibv_async_event e;
	struct vt v;

	begin_verbs_resize(&v, 64);
	cr_assert_eq(ibv_resize_cq(v.a.cq, 2), 0);
	post_from(&v, 0, 3);
	e = vt_async(v.a.id->verbs, IBV_EVENT_CQ_ERR);
	cr_expect_eq(e.element.cq, v.a.cq);
	ibv_ack_async_event(&e);
	vt_down(&v);
}

VT_TLS_TEST(verbs_resize, contact_27_a_queue_stays_armed)
{
	struct ibv_cq *cq;
	void *user;
	struct vt v;

	begin_verbs_resize(&v, 4);
	cr_assert_eq(ibv_req_notify_cq(v.a.cq, 0), 0);
	cr_assert_eq(ibv_resize_cq(v.a.cq, 40), 0);
	cr_expect_not(vt_readable(v.a.cc->fd, 0));
	post_from(&v, 0, 1);
	cr_assert(vt_readable(v.a.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.a.cc, &cq, &user), 0);
	cr_expect_eq(cq, v.a.cq);
	ibv_ack_cq_events(cq, 1);
	fetch_from(&v, 0, 1);
	vt_down(&v);
}

/* ---- while another thread polls ---- */

enum { ALL = 2000 };

struct poller {
	struct vt *v;
	unsigned fetched; /* atomic */
};

static void *poll_all(void *arg)
{
	struct poller *p = arg;
	struct ibv_wc wc[4];

	for (unsigned n = 0; n < ALL;) {
		int k = ibv_poll_cq(p->v->a.cq, 4, wc);

		cr_assert_geq(k, 0);
		for (int i = 0; i < k; i++, n++) {
			cr_assert_eq(wc[i].status, IBV_WC_SUCCESS);
			cr_assert_eq(wc[i].wr_id, n, "%u", n);
		}
		__atomic_store_n(&p->fetched, n, __ATOMIC_RELEASE);
	}
	return NULL;
}

VT_TLS_TEST(verbs_resize, contact_27_a_thread_polls_meanwhile)
{
	struct poller p = { 0 };
	pthread_t thread;
	struct vt v;

	begin_verbs_resize(&v, PLACES);
	p.v = &v;
	cr_assert_eq(pthread_create(&thread, NULL, poll_all, &p), 0);
	for (unsigned i = 0; i < ALL; i++) {
		while (i - __atomic_load_n(&p.fetched, __ATOMIC_ACQUIRE) >= PLACES)
			sched_yield();
		cr_assert_eq(post_verbs_resize(&v, i), 0);
		if (i % 7 == 0)
			cr_assert_eq(ibv_resize_cq(v.a.cq, PLACES + (int)(i % 97)), 0);
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	vt_down(&v);
}
