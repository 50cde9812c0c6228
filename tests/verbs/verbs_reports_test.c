/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was reported of drivers of other devices, and of programs on them, from the end of 2023 on:
 * each of it holds here.  The numbers are of pull requests of rdma-core, where nothing else is said.
 */
#include "verbs/vt.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct vt v;
static struct ibv_cq_ex *cqx;

/* The active end's queue is an extended one. */
static void up_extended(unsigned flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64,
					    .wc_flags = IBV_WC_STANDARD_FLAGS,
					    .comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
					    .flags = flags };

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	rdma_destroy_qp(v.a.id);
	cqx = ibv_create_cq_ex(v.a.id->verbs, &attr);
	cr_assert_not_null(cqx);
	v.init.send_cq = v.init.recv_cq = ibv_cq_ex_to_cq(cqx);
	cr_assert_eq(rdma_create_qp(v.a.id, NULL, &v.init), 0, "%m");
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

static void down_extended(void)
{
	if (v.a.id->qp)
		rdma_destroy_qp(v.a.id);
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)), 0);
	vt_down(&v);
}

static int start_report_poll(void)
{
	struct ibv_poll_cq_attr none = { 0 };

	return ibv_start_poll(cqx, &none);
}

static void write_and_see(uint64_t wr_id)
{
	int err;

	cr_assert_eq(vt_post(&v.a, wr_id, IBV_WR_RDMA_WRITE, 8, &v.b), 0);
	while ((err = start_report_poll()))
		cr_assert_eq(err, ENOENT);
	cr_expect_eq(cqx->wr_id, wr_id);
	cr_expect_eq(cqx->status, IBV_WC_SUCCESS);
}

static void *poll_elsewhere(void *arg)
{
	(void)arg;
	cr_expect_eq(start_report_poll(), ENOENT);
	return NULL;
}

/* 1617, 1512: nothing is unlocked twice or fetched twice by an end that follows ENOENT. */
VT_TLS_TEST(verbs_reports, an_end_after_the_last_completion)
{
	pthread_t thread;

	for (int single = 0; single < 2; single++) {
		up_extended(single ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0);
		for (uint64_t i = 1; i < 4; i++) {
			write_and_see(i);
			cr_expect_eq(ibv_next_poll(cqx), ENOENT);
			ibv_end_poll(cqx);
			cr_expect_eq(start_report_poll(), ENOENT);
			cr_assert_eq(pthread_create(&thread, NULL, poll_elsewhere, NULL), 0);
			pthread_join(thread, NULL);
		}
		down_extended();
	}
}

/* 1526: the queue pair of the completion that is being read goes. */
VT_TLS_TEST(verbs_reports, a_queue_pair_goes_while_its_completion_is_read)
{
	up_extended(0);
	cr_assert_eq(vt_recv(&v.a, 7, 0, 8), 0);
	write_and_see(1);
	rdma_destroy_qp(v.a.id);
	cr_expect_eq(ibv_next_poll(cqx), ENOENT);
	ibv_end_poll(cqx);
	cr_expect_eq(start_report_poll(), ENOENT);
	down_extended();
}

/* 1616: one goes before its completions are fetched; another's are still there. */
VT_TLS_TEST(verbs_reports, a_queue_is_polled_after_its_queue_pair_has_gone)
{
	struct ibv_wc wc;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_WRITE, 8, &v.b), 0);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_RDMA_READ, 8, &v.b), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	rdma_destroy_qp(v.a.id);
	cr_expect_eq(ibv_poll_cq(v.a.cq, 1, &wc), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* 1470: nothing stays locked by a start that fails. */
VT_TLS_TEST(verbs_reports, a_start_that_fails_locks_nothing)
{
	struct ibv_poll_cq_attr bad = { .comp_mask = 1 };

	up_extended(0);
	cr_expect_eq(ibv_start_poll(cqx, &bad), EINVAL);
	rdma_destroy_qp(v.a.id);
	cr_expect_eq(start_report_poll(), ENOENT);
	down_extended();
}

/* 1556: requests without a piece, of each kind. */
VT_TLS_TEST(verbs_reports, requests_without_pieces)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						  IBV_WR_RDMA_READ };
	struct ibv_recv_wr recv = { .wr_id = 9 }, *bad_recv;
	struct ibv_send_wr wr = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	vt_init(&v);
	vt_up(&v);
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		bool received = i != 2 && i != 4;

		if (received)
			cr_assert_eq(ibv_post_recv(v.b.id->qp, &recv, &bad_recv), 0);
		wr.opcode = ops[i];
		wr.wr.rdma.remote_addr = (uintptr_t)v.b.buf;
		wr.wr.rdma.rkey = v.b.mr->rkey;
		cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0, "%zu", i);
		cr_expect_eq(vt_wc(&v.a).status, IBV_WC_SUCCESS, "%zu", i);
		if (!received)
			continue;
		wc = vt_wc(&v.b);
		cr_expect_eq(wc.wr_id, 9);
		cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%zu", i);
		cr_expect_eq(wc.byte_len, 0, "%zu", i);
	}
	vt_down(&v);
}

/* libfabric's issue 12362: one that was up ends by one event, and none of the set-up follows. */
VT_TLS_TEST(verbs_reports, a_connection_ends_once)
{
	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	rdma_destroy_qp(v.a.id);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(v.b.id);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect(!vt_readable(v.a.ch->fd, 100));
	cr_expect(!vt_readable(v.b.ch->fd, 100));
	vt_down(&v);
}

/* Valkey's pull request 3557: where there is a listener already all of the second one can go. */
VT_TLS_TEST(verbs_reports, a_listener_where_there_is_one)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct rdma_cm_id *id;

	vt_init(&v);
	vt_listen(&v);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons(vt_port(&v));
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	errno = 0;
	cr_expect(rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, 4));
	cr_expect_eq(errno, EADDRINUSE, "%m");
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_down(&v);
}

static void *take_the_end(void *arg)
{
	vt_expect(arg, RDMA_CM_EVENT_DISCONNECTED);
	return NULL;
}

/* 1182: one thread fetches the end while another destroys the queue pair. */
VT_TLS_TEST(verbs_reports, a_queue_pair_goes_while_the_end_is_fetched)
{
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		vt_init(&v);
		vt_up(&v);
		cr_assert_eq(pthread_create(&thread, NULL, take_the_end, v.b.ch), 0);
		cr_assert_eq(rdma_disconnect(v.a.id), 0);
		rdma_destroy_qp(v.b.id);
		pthread_join(thread, NULL);
		vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
		vt_down(&v);
	}
}

/* Nobody has disconnected: both ends are informed. */
VT_TLS_TEST(verbs_reports, a_queue_pair_that_goes_ends_its_connection)
{
	vt_init(&v);
	vt_up(&v);
	rdma_destroy_qp(v.b.id);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

static void *destroy_elsewhere(void *arg)
{
	cr_expect_eq(rdma_destroy_id(arg), 0);
	return NULL;
}

/* PureFlash's issue 52: an identifier waits for its events to be acknowledged, and then goes. */
VT_TLS_TEST(verbs_reports, an_identifier_waits_for_an_acknowledgement_and_goes)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	pthread_t thread;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	ev = vt_event(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	id = v.b.id;
	rdma_destroy_qp(id);
	cr_assert_eq(ibv_dereg_mr(v.b.mr), 0);
	v.b.mr = NULL;
	cr_assert_eq(ibv_destroy_cq(v.b.cq), 0);
	v.b.cq = NULL;
	v.b.id = NULL;
	cr_assert_eq(pthread_create(&thread, NULL, destroy_elsewhere, id), 0);
	cr_expect_eq(rdma_ack_cm_event(ev), 0);
	pthread_join(thread, NULL);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}
