/* SPDX-License-Identifier: BSD-2-Clause */
/* How full a send queue is: as of an adapter where a profile limits it, and in what --check says. */
#include "verbs/vchild.h"
#include "verbs/vd.h"
#include "verbs/voob.h"
#include "verbs/vt.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <pthread.h>
#include <sched.h>

enum { PLACES = 16, FOUND = 66 };

static const char limited[] = "device d0\nlimit max_qp_wr 16\n";

static int post_verbs_depth(struct vt *v, unsigned flags)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_RDMA_WRITE, .send_flags = flags };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)v->b.buf;
	wr.wr.rdma.rkey = v->b.mr->rkey;
	return ibv_post_send(v->a.id->qp, &wr, &bad);
}

static void fill_verbs_depth(struct vt *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(post_verbs_depth(v, 0), 0, "%u", i);
}

static void begin_verbs_depth(struct vt *v)
{
	vt_init(v);
	v->init.sq_sig_all = 0;
	vt_up(v);
}

/* What was posted before has arrived: this came behind it. */
static void wait_for_all(struct vt *v)
{
	cr_assert_eq(vt_recv(&v->a, 1, 0, 8), 0);
	cr_assert_eq(vt_post(&v->b, 2, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v->a, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
}

/* A completion is in the queue. */
static void wait_for_one_verbs_depth(struct vt *v)
{
	struct ddps_ep *ep = vd_of(v->a.id->qp, struct vd_qp, qp.qp_base)->ep;

	for (int i = 0; ddps_ep_unfetched(ep) != 1 && i < VT_MS; i++)
		poll(NULL, 0, 1);
	cr_assert_eq(ddps_ep_unfetched(ep), 1);
}

VT_TEST(verbs_depth, contact_27_a_limited_queue_is_full_for_ever_without_completions)
{
	struct vt v;

	vp_use(limited);
	begin_verbs_depth(&v);
	fill_verbs_depth(&v, PLACES);
	cr_expect_eq(post_verbs_depth(&v, 0), ENOMEM);
	wait_for_all(&v);
	cr_expect_eq(post_verbs_depth(&v, IBV_SEND_SIGNALED), ENOMEM, "nothing of it was fetched");
	vt_down(&v);
}

VT_TEST(verbs_depth, contact_27_a_completion_that_is_fetched_frees_all_before_it)
{
	struct vt v;

	vp_use(limited);
	begin_verbs_depth(&v);
	for (int i = 0; i < 3; i++) { /* round the queue, with one left over */
		fill_verbs_depth(&v, PLACES - 2 - (i > 0));
		cr_assert_eq(post_verbs_depth(&v, IBV_SEND_SIGNALED), 0);
		cr_assert_eq(post_verbs_depth(&v, 0), 0);
		cr_expect_eq(post_verbs_depth(&v, 0), ENOMEM);
		wait_for_one_verbs_depth(&v);
		cr_expect_eq(post_verbs_depth(&v, 0), ENOMEM, "it is there, and not fetched");
		vt_expect_wc(&v.a, 7, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	}
	vt_down(&v);
}

/* All are reported: each completion is a place. */
VT_TEST(verbs_depth, contact_27_each_completion_is_a_place)
{
	struct vt v;

	vp_use(limited);
	vt_init(&v);
	vt_up(&v);
	fill_verbs_depth(&v, PLACES);
	cr_expect_eq(post_verbs_depth(&v, 0), ENOMEM);
	for (int i = 0; i < 3; i++) {
		vt_expect_wc(&v.a, 7, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
		cr_expect_eq(post_verbs_depth(&v, 0), 0);
		cr_expect_eq(post_verbs_depth(&v, 0), ENOMEM);
	}
	vt_down(&v);
}

/* A request that is refused for another reason takes no place; a queue that failed is not counted. */
VT_TEST(verbs_depth, contact_27_what_is_refused_takes_no_place)
{
	struct vt v;

	vp_use(limited);
	begin_verbs_depth(&v);
	for (int i = 0; i < PLACES + 1; i++)
		cr_expect_eq(post_verbs_depth(&v, 0x40000000), EINVAL);
	fill_verbs_depth(&v, PLACES);
	cr_expect_eq(post_verbs_depth(&v, 0), ENOMEM);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* Those of a queue pair that begins anew are free; they are kept here until it is connected. */
Test(verbs_depth, contact_27_reset_empties_the_queue, .timeout = 60)
{
	struct side s;

	setenv("DDPSESS_RETRY_MS", "30000", 1);
	vp_use(limited);
	open_oob_side(&s);
	for (int k = 0; k < 2; k++) {
		cr_assert_eq(move_oob_to_rtr(s.qp, NOBODY, &s.gid), 0);
		cr_assert_eq(to_rts(s.qp), 0);
		for (int i = 0; i < 4; i++)
			cr_expect_eq(say_oob(&s, "x", 0), 0, "%d", i);
		cr_expect_eq(say_oob(&s, "x", 0), ENOMEM);
		cr_expect_eq(move_oob_qp(s.qp, IBV_QPS_RESET), 0);
		cr_expect_eq(to_init(s.qp), 0);
	}
	close_oob_side(&s);
}

/* Receives that nobody was connected for are dropped, too. */
Test(verbs_depth, reset_drops_the_receives, .timeout = 60)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct side s;

	open_oob_side(&s);
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < 4; i++)
			cr_expect_eq(ibv_post_recv(s.qp, &wr, &bad), 0, "%d", i);
		cr_expect_eq(ibv_post_recv(s.qp, &wr, &bad), ENOMEM);
		cr_expect_eq(move_oob_qp(s.qp, IBV_QPS_RESET), 0);
		cr_expect_eq(to_init(s.qp), 0);
	}
	close_oob_side(&s);
}

/* Without a limit the drop-in is more patient than an adapter. */
VT_TEST(verbs_depth, contact_27_by_default_what_is_done_is_free)
{
	struct ibv_wc wc;
	struct vt v;

	begin_verbs_depth(&v);
	for (int i = 0; i < 10 * PLACES; i++)
		while (post_verbs_depth(&v, 0))
			cr_assert_eq(ibv_poll_cq(v.a.cq, 1, &wc), 0);
	vt_down(&v);
}

/* ---- sessctl run --check ---- */

/* One without a mistake: it asks for a completion of each sixteenth. */
static void ask_completion_in_time(const void *arg)
{
	struct vt v;

	(void)arg;
	setenv("DDPSESS_CHECK", "on", 1);
	begin_verbs_depth(&v);
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < PLACES - 1; k++)
			cr_assert_eq(post_verbs_depth(&v, 0), 0);
		cr_assert_eq(post_verbs_depth(&v, IBV_SEND_SIGNALED), 0);
		vt_expect_wc(&v.a, 7, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	}
	vt_down(&v);
}

static void never_ask_completion(const void *arg)
{
	struct ibv_wc wc;
	struct vt v;

	(void)arg;
	setenv("DDPSESS_CHECK", "on", 1);
	begin_verbs_depth(&v);
	for (int i = 0; i < 4 * PLACES; i++)
		while (post_verbs_depth(&v, 0))
			cr_assert_eq(ibv_poll_cq(v.a.cq, 1, &wc), 0);
	vt_down(&v);
}

VT_TEST(verbs_depth, contact_27_check_names_a_queue_that_an_adapter_has_full)
{
	const char *text;
	int status = vchild_run(never_ask_completion, NULL, &text);

	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == FOUND, "%#x: %s", status, text);
	cr_expect_eq(vchild_times(text,
				  "ddpsess: check: queue-full: queue pair 1: its send queue "
				  "has 16 places, and all are taken until the program fetches "
				  "a completion: an adapter refuses this request\n"),
		     1, "%s", text);
	cr_expect_eq(vchild_times(text, "ddpsess: "), 1, "%s", text);
}

VT_TEST(verbs_depth, contact_27_check_is_silent_of_a_program_that_fetches)
{
	const char *text;
	int status = vchild_run(ask_completion_in_time, NULL, &text);

	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "%#x: %s", status, text);
	cr_expect_eq(vchild_times(text, "ddpsess: "), 0, "%s", text);
}

/* Without any setting: the completion queues are as deep as the queues whose completions they take, and a
 * program posts until it is refused. */
VT_TEST(verbs_depth, contact_a_queue_that_nobody_polls_is_full_before_its_completion_queue)
{
	struct vt v;
	uint32_t sends, recvs = 0;

	vt_init(&v);
	vt_up(&v);
	sends = v.init.cap.max_send_wr;
	for (uint32_t i = 0; i < sends; i++) {
		cr_assert_eq(vt_recv(&v.b, i, 0, 8), 0);
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 8, NULL), 0);
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	}
	cr_expect_eq(vt_post(&v.a, sends, IBV_WR_SEND, 8, NULL), ENOMEM,
		     "all have arrived, none was fetched");
	for (uint32_t i = 0; i < sends; i++)
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
	while (recvs <= v.init.cap.max_recv_wr && !vt_recv(&v.b, recvs, 0, 8))
		recvs++;
	cr_expect_eq(recvs, v.init.cap.max_recv_wr);
	cr_assert_eq(vt_post(&v.a, 7, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.a, 7, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_expect_eq(vt_recv(&v.b, recvs, 0, 8), ENOMEM,
		     "it may have arrived, and was not fetched");
	vt_expect_wc(&v.b, 0, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_eq(vt_recv(&v.b, recvs, 0, 8), 0);
	vt_down(&v);
}

/* ---- a completion queue gets another size while queue pairs use it ---- */
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
