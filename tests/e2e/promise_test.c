/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences of the headers that no other test holds: tests/promises.tsv names them. */
#include "support/e2e.h"
#include "support/child.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

Test(promise, defaults_are_those_of_the_headers)
{
	struct ddps_listen_param l;
	struct ddps_conn_param c;
	struct ddps_ctx_attr a;
	struct ddps_ep_attr e;

	ddps_ctx_attr_init(&a);
	cr_expect(!a.thread && !a.poll_drives && !a.gather && !a.verbs_rules && !a.log);
	cr_expect(a.max_ird == DDPS_RD_MAX && a.max_ord == DDPS_RD_MAX && a.max_regions == 65536);
	ddps_conn_param_init(&c);
	cr_expect(!c.plain && !c.p2p && c.ird == 16 && c.ord == 16 && c.rtr == DDPS_RTR_ALL);
	cr_expect(c.crc && !c.markers && !c.nudge_ms && !c.refused_retry_ms && !c.local && !c.shm &&
		  !c.address_ms);
	cr_expect(c.connect_ms == 10000 && c.setup_ms == 10000 && c.first_fpdu_ms == 60000 &&
		  c.close_ms == 5000);
	ddps_listen_param_init(&l);
	cr_expect(l.backlog == 1024 && l.max_half_open == 1024 && l.setup_ms == 5000 &&
		  l.rtr == DDPS_RTR_ALL);
	ddps_ep_attr_init(&e);
	cr_expect(e.sq_depth == 64 && e.rq_depth == 64 && e.max_sge == 4 && !e.rfc7306 &&
		  e.no_recv == DDPS_NO_RECV_TERMINATE);
}

Test(promise, null_may_be_freed)
{
	ddps_ctx_free(NULL);
	ddps_listener_free(NULL);
	ddps_ep_free(NULL);
	cr_expect_eq(ddps_mr_dereg(NULL), 0);
	cr_expect_eq(ddps_srq_free(NULL), 0);
	cr_expect_eq(ddps_pd_free(NULL), 0);
	cr_expect_eq(ddps_cq_free(NULL), 0);
}

Test(promise, names_are_never_null)
{
	for (int i = -2; i < 40; i++) {
		cr_expect_not_null(ddps_event_name((enum ddps_event_type)i));
		cr_expect_not_null(ddps_op_name((enum ddps_op)i));
		cr_expect_not_null(ddps_wc_status_name((enum ddps_wc_status)i));
		cr_expect_not_null(ddps_strerror(-i));
	}
	for (int i = 0; i <= DDPS_OP_FLUSH; i++)
		for (int j = 0; j <= DDPS_OP_FLUSH + 1; j++)
			cr_expect(i == j || strcmp(ddps_op_name((enum ddps_op)i),
						   ddps_op_name((enum ddps_op)j)),
				  "operations %d and %d: %s", i, j, ddps_op_name((enum ddps_op)i));
	cr_expect_str_eq(ddps_event_name(DDPS_EV_ESTABLISHED), "established");
	cr_expect_str_eq(ddps_event_name(DDPS_EV_CLOSED), "closed");
}

Test(promise, bounds_of_queues_and_endpoints, .timeout = 30)
{
	static const struct {
		uint32_t sq, rq, sge;
	} bad[] = { { 0, 1, 1 },     { 65536, 1, 1 }, { 1, 0, 1 },
		    { 1, 65536, 1 }, { 1, 1, 0 },     { 1, 1, 17 } };
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct e2e e;
	char small[8];

	e2e_open(&e, e2e_wires[0]);
	cr_expect_eq(ddps_cq_new(e.ctx, 0, &cq), DDPS_E_INVAL);
	cr_expect_eq(ddps_cq_new(e.ctx, (1u << 22) + 1, &cq), DDPS_E_INVAL);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		e.attr.sq_depth = bad[i].sq;
		e.attr.rq_depth = bad[i].rq;
		e.attr.max_sge = bad[i].sge;
		cr_expect_eq(ddps_ep_new(e.ctx, &e.attr, &ep), DDPS_E_INVAL, "%zu", i);
	}
	e.attr.sq_depth = e.attr.rq_depth = 65535;
	e.attr.max_sge = 16;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	ddps_ep_free(ep);
	cr_expect_eq(ddps_listener_uri(e.listener, small, sizeof small), DDPS_E_TOO_LONG);
	e2e_close(&e);
}

/* All events of one endpoint, in the order of a session's life, before those of the next. */
Test(promise, events_come_endpoint_by_endpoint, .timeout = 60)
{
	struct ddps_event ev, request[2];
	struct ddps_ep *from[2], *to[2];
	unsigned n = 0;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &from[i]), 0);
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &to[i]), 0);
		cr_assert_eq(ddps_connect(from[i], e.uri, &e.connect), 0);
		cr_assert_eq(ddps_event_wait(e.ctx, &request[i], E2E_MS), 0);
		cr_assert_eq(request[i].type, DDPS_EV_CONNECT_REQUEST);
	}
	/* Each is established with that; nothing drives the context meanwhile. */
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ddps_accept(request[i].request, to[i], &e.accept), 0);
	cr_assert_eq(ddps_abort(to[0]), 0);
	while (n < 3 && ddps_event_get(e.ctx, &ev) == 1) {
		cr_expect_eq(ev.ep, to[n == 2], "%u", n);
		cr_expect_eq(ev.type, n == 1 ? DDPS_EV_CLOSED : DDPS_EV_ESTABLISHED, "%u", n);
		n++;
	}
	cr_expect_eq(n, 3);
	cr_expect_eq(ddps_event_get(e.ctx, &ev), 0);
	for (int i = 0; i < 2; i++) {
		ddps_ep_free(from[i]);
		ddps_ep_free(to[i]);
	}
	e2e_close(&e);
}

/* Timers are included in the descriptor, so poll needs no timeout. */
Test(promise, the_descriptor_of_a_context_reports_timers_too, .timeout = 60)
{
	struct ddps_event ev = { .type = DDPS_EV_ESTABLISHED };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), got = 0;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof in;
	struct e2e e;

	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	e2e_open(&e, e2e_wires[0]);
	snprintf(e.uri, sizeof e.uri, "tcp://127.0.0.1:%u", ntohs(in.sin_port));
	e.connect.setup_ms = 50; /* nobody answers */
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	while (!got) {
		struct pollfd p = { .fd = ddps_ctx_fd(e.ctx), .events = POLLIN };

		cr_assert_eq(poll(&p, 1, 20000), 1, "it slept through the deadline");
		cr_assert_geq(ddps_progress(e.ctx, 0), 0);
		got = ddps_event_get(e.ctx, &ev);
	}
	cr_expect_eq(ev.type, DDPS_EV_FAILED);
	cr_expect_eq(ev.error.code, DDPS_E_TIMEDOUT);
	close(fd);
	e2e_close(&e);
}

Test(promise, progress_has_nothing_to_do_next_to_a_thread, .timeout = 30)
{
	struct ddps_ctx_attr attr;
	struct ddps_ctx *ctx;

	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	cr_assert_eq(ddps_ctx_new(&ctx, &attr), 0);
	cr_expect_eq(ddps_progress(ctx, -1), 0);
	ddps_ctx_free(ctx);
}

static bool take_one_promise_e2e(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof n) == sizeof n;
}

/* One for each asking, of completions not reported yet; read takes one. */
Test(promise, a_queue_that_counts_its_notifications, .timeout = 30)
{
	struct ddps_wc wc[4];
	struct e2e e;
	int fd;

	e2e_up(&e, e2e_wires[0]);
	fd = ddps_cq_fd(e.cq);
	cr_assert_eq(ddps_cq_arm_next(e.cq, false), 0);
	cr_expect_not(take_one_promise_e2e(fd));
	cr_expect_eq(errno, EAGAIN);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_expect(take_one_promise_e2e(fd));
	cr_expect_not(take_one_promise_e2e(fd), "asked for once");
	cr_assert_eq(ddps_cq_arm_next(e.cq, true), 0);
	cr_expect_not(take_one_promise_e2e(fd), "only for a solicited receive or an error");
	for (int n = 0; n < 2;) {
		int k = ddps_cq_wait(e.cq, wc, 4, E2E_MS);

		cr_assert_gt(k, 0);
		n += k;
	}
	cr_assert_eq(ddps_post_recv(e.a.ep, 0, NULL, 0), 0);
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	cr_expect(take_one_promise_e2e(fd), "flushed is an error");
	e2e_close(&e);
}

/* The time is of the moment when it was queued, and 0 where nobody has asked. */
Test(promise, a_queue_that_stamps_its_completions, .timeout = 30)
{
	struct timespec from, to;
	struct ddps_wc wc[2];
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_assert_eq(ddps_cq_wait(e.cq, wc, 1, E2E_MS), 1);
	cr_expect_eq(wc[0].time_ns, 0);
	cr_assert_eq(ddps_cq_stamp(e.cq), 0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	cr_assert_eq(ddps_post_recv(e.a.ep, 0, NULL, 0), 0);
	cr_assert_eq(ddps_abort(e.a.ep), 0); /* the receive is flushed */
	clock_gettime(CLOCK_MONOTONIC, &to);
	usleep(2000);
	cr_assert_eq(ddps_cq_poll(e.cq, wc, 2), 1);
	cr_expect_geq(wc[0].time_ns, (uint64_t)from.tv_sec * 1000000000 + (uint64_t)from.tv_nsec);
	cr_expect_leq(wc[0].time_ns, (uint64_t)to.tv_sec * 1000000000 + (uint64_t)to.tv_nsec);
	e2e_close(&e);
}

/* Two flushed receives wait in it. */
Test(promise, contact_27_a_queue_has_its_limits, .timeout = 30)
{
	struct ddps_wc wc[3];
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	cr_expect_eq(ddps_cq_resize(e.cq, 0), DDPS_E_INVAL);
	cr_expect_eq(ddps_cq_resize(e.cq, (1u << 22) + 1), DDPS_E_INVAL);
	cr_assert_eq(ddps_post_recv(e.a.ep, 1, NULL, 0), 0);
	cr_assert_eq(ddps_post_recv(e.a.ep, 2, NULL, 0), 0);
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	cr_expect_eq(ddps_cq_resize(e.cq, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_cq_resize(e.cq, 2), 0);
	cr_expect_eq(ddps_cq_resize(e.cq, 1u << 22), 0);
	cr_assert_eq(ddps_cq_poll(e.cq, wc, 3), 2);
	cr_expect_eq(wc[0].wr_id, 1);
	cr_expect_eq(wc[1].wr_id, 2);
	e2e_close(&e);
}

static void flush_one_promise_e2e(struct e2e_end *end)
{
	cr_assert_eq(ddps_post_recv(end->ep, 7, NULL, 0), 0);
	cr_assert_eq(ddps_abort(end->ep), 0);
}

/* Whoever sleeps sleeps on, until the endpoint may be heard again. */
Test(promise, a_muted_endpoint_is_flushed_without_a_notification, .timeout = 30)
{
	struct ddps_wc wc[4];
	struct e2e e;
	int fd;

	e2e_up(&e, e2e_wires[0]);
	fd = ddps_cq_fd(e.cq);
	cr_expect_eq(ddps_ep_mute(e.a.ep, 4), DDPS_E_INVAL);
	cr_assert_eq(ddps_ep_mute(e.a.ep, DDPS_MUTE_RECVS), 0);
	cr_assert_eq(ddps_cq_arm_next(e.cq, false), 0);
	flush_one_promise_e2e(&e.a);
	cr_expect_not(take_one_promise_e2e(fd), "it was told of");
	cr_assert_eq(ddps_cq_arm_next(e.cq, false), 0);
	cr_expect_not(take_one_promise_e2e(fd), "an arming was told of it");
	cr_assert_eq(ddps_ep_mute(e.a.ep, 0), 0);
	cr_expect(take_one_promise_e2e(fd), "it is told of now");
	cr_expect_not(take_one_promise_e2e(fd), "once");
	cr_assert_eq(ddps_ep_mute(e.a.ep, 0), 0);
	cr_assert_eq(ddps_cq_arm_next(e.cq, false), 0);
	cr_expect_not(take_one_promise_e2e(fd), "and not again");
	cr_expect_eq(ddps_cq_poll(e.cq, wc, 4), 1);
	cr_expect(wc[0].wr_id == 7 && wc[0].status == DDPS_WC_FLUSHED);
	e2e_close(&e);
}

/* What was polled needs no notification, and the other queue is as loud as usual. */
Test(promise, a_muted_queue_is_one_of_two, .timeout = 30)
{
	struct ddps_wc wc[4];
	struct e2e e;
	int fd;

	e2e_up(&e, e2e_wires[0]);
	fd = ddps_cq_fd(e.cq);
	cr_assert_eq(ddps_ep_mute(e.a.ep, DDPS_MUTE_RECVS), 0);
	cr_assert_eq(ddps_ep_mute(e.b.ep, DDPS_MUTE_SENDS), 0);
	cr_assert_eq(ddps_cq_arm_next(e.cq, true), 0);
	flush_one_promise_e2e(&e.a);
	cr_expect_eq(ddps_cq_poll(e.cq, wc, 4), 1);
	cr_assert_eq(ddps_ep_mute(e.a.ep, 0), 0);
	cr_expect_not(take_one_promise_e2e(fd), "an empty queue has nothing to tell");
	flush_one_promise_e2e(&e.b);
	cr_expect(take_one_promise_e2e(fd), "its receives are not muted");
	e2e_close(&e);
}

static void count_promise_e2e(void *user)
{
	++*(unsigned *)user;
}

Test(promise, a_queue_that_calls_for_each_notification, .timeout = 30)
{
	struct ddps_wc wc[4];
	unsigned calls = 0;
	struct e2e e;

	e2e_up(&e, e2e_wires[0]);
	cr_assert_eq(ddps_cq_on_notify(e.cq, count_promise_e2e, &calls), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_expect_eq(calls, 0, "not armed");
	cr_assert_eq(ddps_cq_arm(e.cq, false), 0);
	cr_expect_eq(calls, 1, "inside the call, for what is queued");
	cr_expect_eq(ddps_cq_wait(e.cq, wc, 4, E2E_MS), 1);
	cr_assert_eq(ddps_cq_on_notify(e.cq, NULL, NULL), 0);
	cr_assert_eq(ddps_cq_arm(e.cq, false), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
	cr_expect_eq(ddps_cq_wait(e.cq, wc, 4, E2E_MS), 1);
	cr_expect_eq(calls, 1, "the descriptor again");
	e2e_close(&e);
}

#define IS_FORKED(call)                                                                            \
	do {                                                                                       \
		if ((call) != DDPS_E_FORKED)                                                       \
			leave_child_fixture(__LINE__ % 200 + 1);                                   \
	} while (0)

static void note_promise_e2e_notified(void *user)
{
	(void)user;
}

static void child_of_session(struct e2e *e)
{
	struct ddps_assoc_stats as = { .struct_size = sizeof as };
	struct ddps_path_stats ps = { .struct_size = sizeof ps };

	IS_FORKED(ddps_accept(e->request.request, e->a.ep, NULL));
	IS_FORKED(ddps_reject(e->request.request, NULL, 0));
	IS_FORKED(ddps_cq_on_notify(e->cq, note_promise_e2e_notified, NULL));
	IS_FORKED(ddps_cq_resize(e->cq, 8));
	IS_FORKED(ddps_cq_stamp(e->cq));
	IS_FORKED(ddps_cq_overflowed(e->cq));
	IS_FORKED(ddps_ep_unfetched(e->a.ep));
	IS_FORKED(ddps_ep_mute(e->a.ep, 0));
	IS_FORKED(ddps_ep_assoc_stats(e->a.ep, &as));
	IS_FORKED(ddps_ep_path_stats(e->a.ep, 0, &ps));
	IS_FORKED(ddps_ep_set_primary(e->a.ep, 0));
}

static _Noreturn void run_promise_e2e_child(struct e2e *e, struct ddps_mr *mr, struct ddps_srq *srq)
{
	struct ddps_mr *mw = NULL;
	struct ddps_ctx_stats cs = { .struct_size = sizeof cs };
	struct ddps_ep_stats es = { .struct_size = sizeof es };
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE };
	struct ddps_listener *l;
	struct ddps_conn_info info;
	struct ddps_event ev;
	struct ddps_cq *cq;
	struct ddps_pd *pd;
	struct ddps_ep *ep;
	struct ddps_wc wc;
	char buf[8];
	size_t len = sizeof buf;
	struct ddps_sge sge;
	uint64_t wr_id;
	uint32_t nsge;

	IS_FORKED(ddps_ctx_settle(e->ctx, 0));
	IS_FORKED(ddps_ctx_flush(e->ctx, 0));
	IS_FORKED(ddps_ctx_fd(e->ctx));
	IS_FORKED(ddps_progress(e->ctx, 0));
	IS_FORKED(ddps_event_fd(e->ctx));
	IS_FORKED(ddps_event_get(e->ctx, &ev));
	IS_FORKED(ddps_event_wait(e->ctx, &ev, 0));
	IS_FORKED(ddps_listen(e->ctx, "tcp://127.0.0.1:0", NULL, &l));
	IS_FORKED(ddps_ep_new(e->ctx, &e->attr, &ep));
	IS_FORKED(ddps_listener_uri(e->listener, buf, sizeof buf));
	IS_FORKED(ddps_connect(e->a.ep, e->uri, NULL));
	IS_FORKED(ddps_disconnect(e->a.ep));
	IS_FORKED(ddps_abort(e->a.ep));
	IS_FORKED(ddps_ep_info(e->a.ep, &info));
	IS_FORKED(ddps_pd_new(e->ctx, &pd));
	IS_FORKED(ddps_mr_reg(e->pd, buf, sizeof buf, 0, NULL, &mr));
	IS_FORKED(ddps_mr_place(mr, 0));
	IS_FORKED(ddps_mr_change(mr, DDPS_CHANGE_ACCESS, &(struct ddps_mr_change){ 0 }));
	IS_FORKED(ddps_mw_new(e->pd, true, &mw));
	IS_FORKED(ddps_ep_allow(e->a.ep, 0));
	IS_FORKED(ddps_ep_reads_max(e->a.ep, 1));
	IS_FORKED(ddps_sge_gather(e->pd, NULL, 0, buf, &len));
	IS_FORKED(ddps_sge_scatter(e->pd, NULL, 0, buf, 0));
	IS_FORKED(ddps_mr_dereg(mr));
	IS_FORKED(ddps_cq_new(e->ctx, 1, &cq));
	IS_FORKED(ddps_cq_fd(e->cq));
	IS_FORKED(ddps_cq_free(e->cq));
	IS_FORKED(ddps_pd_free(e->pd));
	IS_FORKED(ddps_cq_arm(e->cq, false));
	IS_FORKED(ddps_cq_arm_next(e->cq, false));
	IS_FORKED(ddps_cq_poll(e->cq, &wc, 1));
	IS_FORKED(ddps_cq_wait(e->cq, &wc, 1, 0));
	IS_FORKED(ddps_post_send(e->a.ep, &wr));
	IS_FORKED(ddps_post_recv(e->a.ep, 0, NULL, 0));
	IS_FORKED(ddps_srq_new(e->pd, 1, 1, NULL, &srq));
	IS_FORKED(ddps_post_srq_recv(srq, 0, NULL, 0));
	IS_FORKED(ddps_srq_posted(srq));
	IS_FORKED(ddps_take_srq_recv(srq, &wr_id, &sge, &nsge));
	IS_FORKED(ddps_srq_arm(srq, 0));
	IS_FORKED(ddps_srq_free(srq));
	IS_FORKED(ddps_ep_stats(e->a.ep, &es));
	IS_FORKED(ddps_ctx_stats(e->ctx, &cs));
	child_of_session(e);
	ddps_ctx_free(e->ctx);
	leave_child_fixture(0);
}

/* A request that nobody answers. */
static struct ddps_ep *ask_once_more(struct e2e *e)
{
	struct ddps_ep *ep;

	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &ep), 0);
	cr_assert_eq(ddps_connect(ep, e->uri, &e->connect), 0);
	cr_assert_eq(ddps_event_wait(e->ctx, &e->request, E2E_MS), 0);
	cr_assert_eq(e->request.type, DDPS_EV_CONNECT_REQUEST);
	return ep;
}

Test(promise, every_call_informs_a_forked_child, .timeout = 60)
{
	int status = -1;
	struct ddps_srq *srq;
	struct ddps_ep *asks;
	struct ddps_mr *mr;
	char buf[8];
	struct e2e e;
	pid_t pid;

	e2e_up(&e, e2e_wires[0]);
	mr = e2e_reg(&e, buf, sizeof buf, 0);
	cr_assert_eq(ddps_srq_new(e.pd, 1, 1, NULL, &srq), 0);
	asks = ask_once_more(&e);
	pid = fork();
	if (!pid)
		run_promise_e2e_child(&e, mr, srq);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "line %d, modulo 200",
		  WEXITSTATUS(status) - 1);
	ddps_ep_free(asks);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}
