/* SPDX-License-Identifier: BSD-2-Clause */
/* What real programs rely on, points 11 and later: channels, one-sided work. */
#include "verbs/vt.h"
#include "verbs/vd.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- 11: completion channels ---- */

VT_TLS_TEST(verbs_finding, finding_11_one_event_for_each_arming)
{
	struct ibv_cq *cq;
	void *user;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	fcntl(v.b.cc->fd, F_SETFL, fcntl(v.b.cc->fd, F_GETFL) | O_NONBLOCK);
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), -1);
	cr_assert_eq(errno, EAGAIN);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	for (uint64_t i = 0; i < 2; i++)
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 5, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	vt_expect_wc(&v.a, 0, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), -1);
	cr_assert_eq(errno, EAGAIN);
	ibv_ack_cq_events(v.b.cq, 1);
	/* Only solicited ones, or errors: the flush of the third receive is one. */
	vt_expect_wc(&v.b, 0, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 1), 0);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	vt_down(&v);
}

VT_TLS_TEST(verbs_finding, finding_11_arming_again_takes_no_event_back)
{
	struct ibv_cq *cq;
	void *user;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	fcntl(v.b.cc->fd, F_SETFL, fcntl(v.b.cc->fd, F_GETFL) | O_NONBLOCK);
	for (uint64_t i = 0; i < 2; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert_eq(vt_post(&v.a, 0, IBV_WR_SEND, 5, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS)); /* else vt_expect_wc would fetch the event */
	/* Its completion is polled before its event is fetched, as perftest -e does. */
	vt_expect_wc(&v.b, 0, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	/* And the second arming still holds. */
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 5, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	ibv_ack_cq_events(cq, 2);
	vt_down(&v);
}

VT_TLS_TEST(verbs_finding, finding_11_an_unpolled_queue_does_not_storm)
{
	struct ibv_cq *cq;
	void *user;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	fcntl(v.b.cc->fd, F_SETFL, fcntl(v.b.cc->fd, F_GETFL) | O_NONBLOCK);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	/* What came before the arming is reported once, and never again while it is left there. */
	cr_assert_eq(vt_post(&v.a, 0, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v.a, 0, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_READ, 5, &v.b), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
		cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), -1);
		cr_assert_eq(errno, EAGAIN);
	}
	/* A new one is. */
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 5, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	vt_expect_wc(&v.b, 0, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	ibv_ack_cq_events(v.b.cq, 2);
	vt_down(&v);
}

/* ---- 12, 14, 16: one-sided ---- */

VT_TLS_TEST(verbs_finding, finding_12_and_16_a_target_makes_no_calls)
{
	volatile uint8_t *last;
	struct pollfd none = { -1, 0, 0 };
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	memset(v.a.buf, 0x77, sizeof v.a.buf);
	last = &v.b.buf[4095];
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_WRITE, 4096, &v.b), 0);
	for (int i = 0; i < VT_MS && !*last; i++)
		poll(&none, 1, 1);
	cr_assert_eq(*last, 0x77, "its thread places what arrives");
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	memset(v.b.buf, 0x66, sizeof v.b.buf);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_RDMA_READ, 4096, &v.b), 0);
	vt_expect_wc(&v.a, 2, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	cr_assert_arr_eq(v.a.buf, v.b.buf, 4096, "completed means visible");
	vt_down(&v);
}

VT_TLS_TEST(verbs_finding, finding_14_the_sink_of_a_read_may_be_local_alone)
{
	struct ibv_mr *whole;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	whole = v.a.mr;
	v.a.mr = ibv_reg_mr(v.a.id->pd, v.a.buf, sizeof v.a.buf, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(v.a.mr);
	memset(v.b.buf, 0x44, 64);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_RDMA_READ, 64, &v.b), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	cr_assert_arr_eq(v.a.buf, v.b.buf, 64);
	cr_assert_eq(ibv_dereg_mr(v.a.mr), 0);
	v.a.mr = whole;
	vt_down(&v);
}

/* ---- 15: an unmapped region ---- */

static void send_unmapped(int out)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 1 }, *bad;
	struct pollfd none = { -1, 0, 0 };
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct vt v;
	void *mem;

	dup2(out, STDERR_FILENO);
	signal(SIGSEGV, SIG_DFL); /* as in a program without a handler */
	vt_init(&v);
	vt_up(&v);
	vt_recv(&v.b, 1, 0, 8192);
	mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(v.a.id->pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	sge = (struct ibv_sge){ (uintptr_t)mem, 4096, mr->lkey };
	wr.sg_list = &sge;
	munmap(mem, 4096);
	ibv_post_send(v.a.id->qp, &wr, &bad);
	poll(&none, 1, VT_MS);
	_exit(0);
}

Test(verbs_finding, finding_15_an_unmapped_region_ends_the_process_and_says_why, .timeout = 60)
{
	char text[4096];
	size_t n = 0;
	ssize_t k;
	int out[2], status;
	pid_t pid;

	cr_assert_eq(pipe(out), 0);
	pid = fork();
	if (!pid)
		send_unmapped(out[1]);
	close(out[1]);
	while (n < sizeof text - 1 && (k = read(out[0], text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)k;
	text[n] = 0;
	close(out[0]);
	waitpid(pid, &status, 0);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%s", text);
	cr_assert(strstr(text, "unmapped or protected while registered"), "%s", text);
}

/* ---- 18, 19: connecting ---- */

VT_TLS_TEST(verbs_finding, finding_18_and_19_parameters_and_private_data)
{
	static uint8_t data[200];
	struct rdma_cm_event *e;
	struct vt v;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i + 1);
	vt_init(&v);
	v.connect = (struct rdma_conn_param){ .private_data = data,
					      .private_data_len = 196,
					      .responder_resources = 255,
					      .initiator_depth = 3 };
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_assert_eq(e->param.conn.private_data_len, 196);
	cr_assert_arr_eq(e->param.conn.private_data, data, 196);
	cr_assert_eq(e->param.conn.initiator_depth, 128, "the sides are swapped, and cut");
	cr_assert_eq(e->param.conn.responder_resources, 3);
	cr_assert_eq(rdma_reject(e->id, data + 100, 24), 0);
	v.b.id = e->id;
	rdma_ack_cm_event(e);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_assert_eq(e->status, -ECONNREFUSED);
	cr_assert_eq(e->param.conn.private_data_len, 24);
	cr_assert_arr_eq(e->param.conn.private_data, data + 100, 24);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

VT_TLS_TEST(verbs_finding, finding_18_disconnected_then_flushed)
{
	struct vt v;

	vt_init(&v);
	v.accept.private_data = "yes";
	v.accept.private_data_len = 3;
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(vt_recv(&v.a, 9, 0, 64), 0);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_not(vt_readable(v.b.ch->fd, 0), "nothing is established before the accept");
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	struct rdma_cm_event *e = vt_event(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);

	cr_assert_eq(e->param.conn.private_data_len, 3);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	cr_assert_eq(rdma_disconnect(v.b.id), 0, "the second time does nothing");
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect_wc(&v.a, 9, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	cr_assert_not(vt_readable(v.b.ch->fd, 0));
	vt_down(&v);
}

/* ---- programs ---- */

/*
 * What rsockets and libfabric rely on besides the interface itself; they run in run.sh and
 * libfabric.sh.
 */

/* rsockets set errno, post, and look at it then. */
VT_TEST(verbs_programs, errno_stays_while_data_moves)
{
	struct ibv_wc wc;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	errno = E2BIG;
	cr_expect_eq(vt_recv(&v.b, 1, 0, 4096), 0);
	cr_expect_eq(errno, E2BIG);
	cr_expect_eq(vt_post(&v.a, 2, IBV_WR_SEND, 4096, NULL), 0);
	cr_expect_eq(errno, E2BIG);
	cr_expect_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_expect_eq(errno, E2BIG);
	while (ibv_poll_cq(v.b.cq, 1, &wc) == 0)
		cr_expect_eq(errno, E2BIG);
	cr_expect_eq(errno, E2BIG);
	cr_expect_neq(vt_post(&v.a, 3, IBV_WR_DRIVER1, 1, NULL), 0);
	cr_expect_eq(errno, E2BIG, "errors are returned");
	vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* They give the identifier one queue and one channel for both ways. */
Test(verbs_programs, a_queue_for_both_ways_goes_once)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, VT_MS), 0);
	id->recv_cq_channel = id->send_cq_channel = ibv_create_comp_channel(id->verbs);
	id->recv_cq = id->send_cq = ibv_create_cq(id->verbs, 8, id, id->recv_cq_channel, 0);
	init.send_cq = init.recv_cq = id->recv_cq;
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	rdma_destroy_qp(id);
	cr_expect_null(id->recv_cq);
	cr_expect_null(id->send_cq_channel);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

/* libfabric resolves with an identifier of its own channel, then moves it to another. */
Test(verbs_programs, an_identifier_moves_with_its_last_event, .timeout = 30)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, VT_MS), 0);
	cr_assert_not_null(id->event);
	cr_assert_eq(rdma_migrate_id(id, ch), 0);
	cr_expect_null(id->event);
	cr_expect_eq(id->channel, ch);
	cr_assert_eq(rdma_resolve_route(id, VT_MS), 0);
	vt_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* perftest accepts after it has filled its buffers, and its client crashes if it is informed of an end
 * of patience; run.sh has its clients ask for longer than the library's own limit. */
Test(verbs_programs, a_slow_program_has_time_to_listen_and_to_accept)
{
	static struct vd_process p;
	struct ddps_conn_param defaults, to;

	ddps_conn_param_init(&defaults);
	p.cfg.retry_ms = 15000;
	vd_conn_param(&p, NULL, &to);
	cr_expect_eq(to.refused_retry_ms, 15000);
	cr_expect_eq(to.connect_ms, 15000 + defaults.connect_ms, "it would end the tries");
	cr_expect_eq(to.setup_ms, 60000);
	p.cfg.retry_ms = UINT32_MAX - defaults.connect_ms + 1;
	vd_conn_param(&p, NULL, &to);
	cr_expect_eq(to.connect_ms, UINT32_MAX);
}
