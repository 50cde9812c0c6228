/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in use is destroyed, in odd orders; processes fork, exec, exit and die. */
#include "support/child.h"
#include "verbs/vt.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what is in use ---- */

Test(verbs_rough, a_domain_is_busy_while_anything_is_in_it)
{
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_qp_init_attr attr;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct vt_dev d;

	vt_dev_open(&d);
	attr = vt_rc(&d);
	srq = ibv_create_srq(d.pd, &init);
	cr_assert_not_null(srq);
	cr_expect_eq(ibv_dealloc_pd(d.pd), EBUSY, "a shared queue");
	attr.srq = srq;
	qp = ibv_create_qp(d.pd, &attr);
	cr_assert_not_null(qp);
	cr_expect_eq(ibv_destroy_srq(srq), EBUSY);
	cr_expect_eq(ibv_destroy_cq(d.cq), EBUSY);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	attr.srq = NULL;
	qp = ibv_create_qp(d.pd, &attr);
	cr_assert_not_null(qp);
	cr_expect_eq(ibv_dealloc_pd(d.pd), EBUSY, "a queue pair");
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&d);
}

/* The man page has it that this leaks; nothing may be used after it is freed. */
Test(verbs_rough, a_device_that_is_closed_first)
{
	struct ibv_qp_init_attr attr;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct vt_dev d;
	char buf[64];

	vt_dev_open(&d);
	attr = vt_rc(&d);
	qp = ibv_create_qp(d.pd, &attr);
	mr = ibv_reg_mr(d.pd, buf, sizeof buf, 0);
	cr_assert(qp && mr);
	cr_expect_eq(ibv_close_device(d.ctx), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(d.pd), 0);
	cr_expect_eq(ibv_destroy_cq(d.cq), 0);
}

/* To be refused must not arm a queue, nor take an event or what was asked for back. */
VT_TLS_TEST(verbs_rough, a_queue_that_is_busy_stays_as_it_is)
{
	struct ibv_cq *cq;
	struct vt v;
	void *user;

	vt_init(&v);
	vt_up(&v);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_expect_eq(ibv_destroy_cq(v.b.cq), EBUSY, "armed");
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 8, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_expect_eq(ibv_destroy_cq(v.b.cq), EBUSY, "an event waits");
	cr_assert(vt_readable(v.b.cc->fd, 0));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	cr_expect_eq(ibv_destroy_cq(v.b.cq), EBUSY, "neither");
	cr_expect(!vt_readable(v.b.cc->fd, 0), "nobody has asked for another one");
	vt_expect_wc(&v.b, 0, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* ---- events that were not acknowledged ---- */

struct waiter {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int told[2];
};

static void *destroy_queue(void *arg)
{
	struct waiter *w = arg;

	cr_expect_eq(ibv_destroy_cq(w->cq), 0);
	cr_assert_eq(write(w->told[1], "", 1), 1);
	return NULL;
}

static void *destroy_pair(void *arg)
{
	struct waiter *w = arg;

	cr_expect_eq(ibv_destroy_qp(w->qp), 0);
	cr_assert_eq(write(w->told[1], "", 1), 1);
	return NULL;
}

#define STILL_MS 50 /* is it still waiting?  Too short an answer would only miss a fault */

VT_TLS_TEST(verbs_rough, a_queue_is_gone_when_its_events_are_acknowledged)
{
	struct waiter w;
	struct ibv_cq *cq;
	pthread_t t;
	struct vt v;
	void *user;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(pipe(w.told), 0);
	for (uint64_t i = 0; i < 2; i++) {
		cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 8, NULL), 0);
		cr_assert(vt_readable(v.b.cc->fd, VT_MS));
		cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	}
	rdma_destroy_qp(v.b.id);
	w.cq = v.b.cq;
	cr_assert_eq(pthread_create(&t, NULL, destroy_queue, &w), 0);
	ibv_ack_cq_events(cq, 1);
	cr_expect(!vt_readable(w.told[0], STILL_MS), "one is missing");
	ibv_ack_cq_events(cq, 1);
	cr_expect(vt_readable(w.told[0], VT_MS));
	pthread_join(t, NULL);
	v.b.cq = NULL;
	close(w.told[0]);
	close(w.told[1]);
	vt_down(&v);
}

VT_TLS_TEST(verbs_rough, a_queue_pair_is_gone_when_its_events_are_acknowledged)
{
	struct ibv_async_event e;
	struct waiter w;
	pthread_t t;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(pipe(w.told), 0);
	v.b.mr->rkey ^= 0x100; /* what b will refuse */
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_WRITE, 8, &v.b), 0);
	do {
		cr_assert(vt_readable(v.b.id->verbs->async_fd, VT_MS));
		cr_assert_eq(ibv_get_async_event(v.b.id->verbs, &e), 0);
		if (e.element.qp != v.b.id->qp) /* a is informed too, by the Terminate */
			ibv_ack_async_event(&e);
	} while (e.element.qp != v.b.id->qp);
	w.qp = v.b.id->qp;
	cr_assert_eq(pthread_create(&t, NULL, destroy_pair, &w), 0);
	cr_expect(!vt_readable(w.told[0], STILL_MS), "the event is not acknowledged");
	ibv_ack_async_event(&e);
	cr_expect(vt_readable(w.told[0], VT_MS));
	pthread_join(t, NULL);
	cr_expect_null(v.b.id->qp);
	close(w.told[0]);
	close(w.told[1]);
	vt_down(&v);
}

/* In any order, also behind the identifier that the request was for. */
VT_TLS_TEST(verbs_rough, events_are_acknowledged_in_any_order)
{
	struct rdma_cm_event *request, *up[2], *gone;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	request = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	v.b.id = request->id;
	vt_equip(&v, &v.b);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	up[0] = vt_event(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	up[1] = vt_event(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	gone = vt_event(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(rdma_ack_cm_event(gone), 0);
	cr_expect_eq(rdma_ack_cm_event(up[1]), 0);
	vt_end_down(&v.b);
	cr_expect_eq(rdma_ack_cm_event(request), 0, "it is the listener's");
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(rdma_ack_cm_event(up[0]), 0);
	vt_down(&v);
}

/* ---- work that is under way ---- */

/* Completions that nobody has fetched go with their queue pair. */
VT_TLS_TEST(verbs_rough, a_queue_pair_takes_its_completions_with_it)
{
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (uint64_t i = 0; i < 16; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.b, 0, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	rdma_destroy_qp(v.b.id);
	cr_expect_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
	vt_down(&v);
}

/* The receive's memory is no longer the library's: it is not touched, and the connection ends. */
VT_TLS_TEST(verbs_rough, a_receive_without_its_region_is_an_error)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	memset(v.b.buf, 0x5a, sizeof v.b.buf);
	memset(v.a.buf, 0xa5, sizeof v.a.buf);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	cr_assert_eq(vt_recv(&v.b, 2, 64, 64), 0);
	cr_assert_eq(ibv_dereg_mr(v.b.mr), 0);
	v.b.mr = NULL;
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_LOC_PROT_ERR);
	vt_expect_wc(&v.b, 2, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	for (int i = 0; i < 128; i++)
		cr_assert_eq(v.b.buf[i], 0x5a);
	vt_down(&v);
}

#define BIG  (2 << 20)
#define MANY 15

/*
 * The source of Writes goes while they are on their way: each is completed once, in order, and what
 * the program writes there afterwards does not reach the peer.  A Send for which the peer has no
 * receive yet stands before them, so they cannot all have left, however slow this thread is.
 */
VT_TLS_TEST(verbs_rough, writes_without_their_source)
{
	uint8_t *from = malloc(BIG), *to = calloc(1, BIG);
	struct ibv_mr *src, *dst;
	unsigned bad = 0, own = 0;
	struct vt v;

	cr_assert(from && to);
	memset(from, 1, BIG);
	vt_init(&v);
	vt_up(&v);
	src = ibv_reg_mr(v.a.id->pd, from, BIG, 0);
	dst = ibv_reg_mr(v.b.id->pd, to, BIG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(src && dst);
	cr_assert_eq(vt_post(&v.a, MANY, IBV_WR_SEND, 64, NULL), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		struct ibv_sge sge = { (uintptr_t)from, BIG, src->lkey };
		struct ibv_send_wr wr = { .wr_id = i,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .wr.rdma = { (uintptr_t)to, dst->rkey } },
				   *no;

		cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &no), 0);
	}
	cr_assert_eq(ibv_dereg_mr(src), 0);
	memset(from, 2, BIG);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	vt_expect_wc(&v.a, MANY, IBV_WC_SEND, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < MANY; i++) {
		struct ibv_wc wc = vt_wc(&v.a);

		cr_assert_eq(wc.wr_id, i);
		/* One fails, behind those that were not confirmed and before the rest. */
		cr_assert(!bad || wc.status != IBV_WC_SUCCESS);
		bad += wc.status != IBV_WC_SUCCESS;
		own += wc.status == IBV_WC_LOC_PROT_ERR;
	}
	cr_expect_gt(bad, 0, "30 MiB do not fit into what lies between");
	cr_expect_eq(own, 1);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_null(memchr(to, 2, BIG));
	cr_assert_eq(ibv_dereg_mr(dst), 0);
	free(from);
	free(to);
	vt_down(&v);
}

/* The target of a Write goes: the one who writes is informed. */
VT_TLS_TEST(verbs_rough, a_write_to_a_region_that_is_gone)
{
	struct ibv_mr gone;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	memset(v.b.buf, 0x5a, sizeof v.b.buf);
	gone = *v.b.mr;
	cr_assert_eq(ibv_dereg_mr(v.b.mr), 0);
	v.b.mr = &gone;
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_READ, 64, &v.b), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	v.b.mr = NULL;
	vt_down(&v);
}

/* A listener goes while a peer waits for its answer. */
VT_TLS_TEST(verbs_rough, a_listener_takes_its_requests_with_it)
{
	struct rdma_cm_event *e;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_destroy_id(v.listen), 0);
	v.listen = NULL;
	cr_assert(vt_readable(v.a.ch->fd, VT_MS));
	cr_assert_eq(rdma_get_cm_event(v.a.ch, &e), 0);
	cr_expect_eq(e->event, RDMA_CM_EVENT_REJECTED, "%s", rdma_event_str(e->event));
	rdma_ack_cm_event(e);
	VT_MINUS_AS(rdma_accept(v.b.id, &v.accept), ECONNRESET);
	VT_MINUS_AS(rdma_reject(v.b.id, NULL, 0), EINVAL);
	vt_down(&v);
}
