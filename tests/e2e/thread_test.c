/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts driven by the library's own thread; also run under ThreadSanitizer. */
#include "support/e2e.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NPINGS 200

static int interrupted;

struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_mr *mr;
	bool polls; /* busily, without sleeping */
	uint8_t buf[128];
};

static void open_thread_e2e_side(struct side *s)
{
	struct ddps_ctx_attr attr;
	struct ddps_ep_attr ea;
	struct ddps_sge sge;

	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	attr.poll_drives = s->polls;
	cr_assert_eq(ddps_ctx_new(&s->ctx, &attr), 0);
	cr_assert_eq(ddps_pd_new(s->ctx, &s->pd), 0);
	cr_assert_eq(ddps_cq_new(s->ctx, 64, &s->cq), 0);
	cr_assert_eq(ddps_mr_reg(s->pd, s->buf, sizeof s->buf, DDPS_LOCAL_WRITE, NULL, &s->mr), 0);
	ddps_ep_attr_init(&ea);
	ea.pd = s->pd;
	ea.send_cq = ea.recv_cq = s->cq;
	ea.rfc7306 = true;
	cr_assert_eq(ddps_ep_new(s->ctx, &ea, &s->ep), 0);
	sge = e2e_sge(s->buf, 64, s->mr);
	cr_assert_eq(ddps_post_recv(s->ep, 1, &sge, 1), 0);
}

static void close_thread_e2e_side(struct side *s)
{
	ddps_ep_free(s->ep);
	ddps_ctx_free(s->ctx);
}

static void send_one_thread_e2e(struct side *s)
{
	struct ddps_sge sge = e2e_sge(s->buf + 64, 64, s->mr);
	struct ddps_send_wr wr = {
		.op = DDPS_OP_SEND, .flags = DDPS_WR_SILENT, .sge = &sge, .nsge = 1
	};

	cr_assert_eq(ddps_post_send(s->ep, &wr), 0);
}

static void receive_one_thread_e2e(struct side *s)
{
	struct ddps_sge sge = e2e_sge(s->buf, 64, s->mr);
	struct ddps_wc wc;
	int n;

	do
		n = s->polls ? ddps_cq_poll(s->cq, &wc, 1) : ddps_cq_wait(s->cq, &wc, 1, E2E_MS);
	while (s->polls && !n);
	cr_assert_eq(n, 1);
	cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
	cr_assert_eq(ddps_post_recv(s->ep, 1, &sge, 1), 0);
}

static void *run_thread_e2e_responder(void *arg)
{
	struct side *s = arg;
	struct ddps_event ev;

	cr_assert_eq(ddps_event_wait(s->ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	cr_assert_eq(ddps_accept(ev.request, s->ep, NULL), 0);
	cr_assert_eq(ddps_event_wait(s->ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_ESTABLISHED);
	for (int i = 0; i < NPINGS; i++) {
		receive_one_thread_e2e(s);
		send_one_thread_e2e(s);
	}
	cr_assert_eq(ddps_event_wait(s->ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_PEER_CLOSED);
	cr_assert_eq(ddps_disconnect(s->ep), 0);
	cr_assert_eq(ddps_event_wait(s->ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_CLOSED);
	return NULL;
}

static void ping_pong(const char *wire, bool polls)
{
	struct side a = { .polls = polls }, b = { .polls = polls };
	struct ddps_listener *l;
	struct ddps_event ev;
	pthread_t thread;
	char uri[128];

	open_thread_e2e_side(&a);
	open_thread_e2e_side(&b);
	cr_assert_eq(ddps_listen(b.ctx, wire, NULL, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, uri, sizeof uri), 0);
	cr_assert_eq(pthread_create(&thread, NULL, run_thread_e2e_responder, &b), 0);
	cr_assert_eq(ddps_connect(a.ep, uri, NULL), 0);
	cr_assert_eq(ddps_event_wait(a.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_ESTABLISHED, "%s", ev.error.text);
	for (int i = 0; i < NPINGS; i++) {
		send_one_thread_e2e(&a);
		receive_one_thread_e2e(&a);
	}
	cr_assert_eq(ddps_disconnect(a.ep), 0);
	do
		cr_assert_eq(ddps_event_wait(a.ctx, &ev, E2E_MS), 0);
	while (ev.type != DDPS_EV_CLOSED);
	cr_expect_eq(ev.error.code, 0, "%s", ev.error.text);
	pthread_join(thread, NULL);
	close_thread_e2e_side(&a);
	close_thread_e2e_side(&b);
}

Test(thread, two_contexts_play_ping_pong_over_tcp, .timeout = 60)
{
	ping_pong(e2e_wires[0], false);
}

Test(thread, two_that_poll_play_ping_pong_over_tcp, .timeout = 60)
{
	ping_pong(e2e_wires[0], true);
}

Test(thread, two_contexts_play_ping_pong_over_sctp, .timeout = 60)
{
	ping_pong(e2e_wires[2], false);
}

Test(thread, two_that_poll_play_ping_pong_over_sctp, .timeout = 60)
{
	ping_pong(e2e_wires[2], true);
}

static void ignore_thread_signal(int sig)
{
	(void)sig;
}

static void *raise_thread_e2e_signal(void *arg)
{
	struct timespec moment = { .tv_nsec = 50 * 1000 * 1000 };

	(void)arg;
	/* To the process, until it was seen: the library's thread must not be the one to take it. */
	while (!__atomic_load_n(&interrupted, __ATOMIC_ACQUIRE)) {
		kill(getpid(), SIGUSR1);
		nanosleep(&moment, NULL);
	}
	return NULL;
}

Test(thread, a_signal_ends_a_wait, .timeout = 60)
{
	struct sigaction act = { .sa_handler = ignore_thread_signal };
	struct side a = { 0 };
	sigset_t usr1;
	pthread_t thread;
	struct ddps_wc wc;

	open_thread_e2e_side(&a);
	sigaction(SIGUSR1, &act, NULL);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	/* The raiser does not take it either. */
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, raise_thread_e2e_signal, NULL), 0);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	cr_expect_eq(ddps_cq_wait(a.cq, &wc, 1, E2E_MS), DDPS_E_AGAIN);
	__atomic_store_n(&interrupted, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close_thread_e2e_side(&a);
}

/* A target of RDMA Writes makes no calls: its library thread does the work. */
static void passive_target(bool polls)
{
	struct side a = { .polls = polls }, b = { .polls = polls };
	struct ddps_send_wr wr = { 0 };
	struct ddps_listener *l;
	struct ddps_mr *target;
	struct ddps_event ev;
	static uint8_t memory[1 << 16];
	struct ddps_wc wc;
	char uri[128];

	open_thread_e2e_side(&a);
	open_thread_e2e_side(&b);
	cr_assert_eq(ddps_mr_reg(b.pd, memory, sizeof memory, DDPS_REMOTE_WRITE | DDPS_REMOTE_READ,
				 NULL, &target),
		     0);
	cr_assert_eq(ddps_listen(b.ctx, e2e_wires[0], NULL, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, uri, sizeof uri), 0);
	cr_assert_eq(ddps_connect(a.ep, uri, NULL), 0);
	cr_assert_eq(ddps_event_wait(b.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ddps_accept(ev.request, b.ep, NULL), 0);
	cr_assert_eq(ddps_event_wait(a.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_ESTABLISHED, "%s", ev.error.text);
	/* Who polled until now, and no more: the thread takes over by itself. */
	cr_assert_eq(ddps_cq_poll(b.cq, &wc, 1), 0);
	memcpy(a.buf + 64, "written into a sleeping process", 32);
	for (int i = 0; i < 2; i++) {
		struct ddps_sge sge = e2e_sge(i ? a.buf : a.buf + 64, 32, a.mr);

		wr = (struct ddps_send_wr){ .op = i ? DDPS_OP_READ : DDPS_OP_WRITE,
					    .sge = &sge,
					    .nsge = 1,
					    .stag = ddps_mr_stag(target),
					    .to = ddps_mr_to(target) + 1000 };
		cr_assert_eq(ddps_post_send(a.ep, &wr), 0);
		cr_assert_eq(ddps_cq_wait(a.cq, &wc, 1, E2E_MS), 1);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
	}
	cr_expect_arr_eq(a.buf, a.buf + 64, 32);
	close_thread_e2e_side(&a);
	close_thread_e2e_side(&b);
}

Test(thread, a_passive_target_is_served, .timeout = 60)
{
	passive_target(false);
}

Test(thread, a_target_that_polled_is_served, .timeout = 60)
{
	passive_target(true);
}

/* The receive comes from this thread, the message that waits for it is the library thread's. */
static void stalled_peer(const char *wire)
{
	struct side a = { 0 }, b = { 0 };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	struct ddps_ep_stats st = { .struct_size = sizeof st };
	struct ddps_listener *l;
	struct ddps_ep_attr ea;
	struct ddps_event ev;
	struct ddps_ep *ep;
	struct ddps_wc wc;
	char uri[128];

	open_thread_e2e_side(&a);
	open_thread_e2e_side(&b);
	ddps_ep_attr_init(&ea);
	ea.pd = b.pd;
	ea.send_cq = ea.recv_cq = b.cq;
	ea.no_recv = DDPS_NO_RECV_STALL;
	cr_assert_eq(ddps_ep_new(b.ctx, &ea, &ep), 0);
	cr_assert_eq(ddps_listen(b.ctx, wire, NULL, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, uri, sizeof uri), 0);
	cr_assert_eq(ddps_connect(a.ep, uri, NULL), 0);
	cr_assert_eq(ddps_event_wait(b.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ddps_accept(ev.request, ep, NULL), 0);
	cr_assert_eq(ddps_event_wait(a.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_ESTABLISHED, "%s", ev.error.text);
	for (int i = 0; i < NPINGS; i++) {
		cr_assert_eq(ddps_post_send(a.ep, &wr), 0);
		cr_assert_eq(ddps_cq_wait(a.cq, &wc, 1, E2E_MS), 1);
		cr_assert_eq(ddps_post_recv(ep, (uint64_t)i, NULL, 0), 0);
		cr_assert_eq(ddps_cq_wait(b.cq, &wc, 1, E2E_MS), 1);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		cr_assert_eq(wc.wr_id, (uint64_t)i);
	}
	cr_assert_eq(ddps_ep_stats(ep, &st), 0);
	cr_expect_eq(st.received[DDPS_STAT_SEND].messages, NPINGS);
	ddps_ep_free(ep);
	close_thread_e2e_side(&a);
	close_thread_e2e_side(&b);
}

Test(thread, a_receive_posted_here_ends_a_stall_there, .timeout = 60)
{
	stalled_peer(e2e_wires[0]);
	stalled_peer(e2e_wires[2]);
}

#define NADDS 500

/* A pair of contexts whose responder has the common counter. */
struct adder {
	struct side a, b;
	struct ddps_mr *mr;
	pthread_t thread;
};

static void adder_open(struct adder *d, uint64_t *counter)
{
	struct ddps_listener *l;
	struct ddps_event ev;
	char uri[128];

	open_thread_e2e_side(&d->a);
	open_thread_e2e_side(&d->b);
	cr_assert_eq(ddps_mr_reg(d->b.pd, counter, sizeof *counter,
				 DDPS_REMOTE_WRITE | DDPS_REMOTE_READ, NULL, &d->mr),
		     0);
	cr_assert_eq(ddps_listen(d->b.ctx, e2e_wires[0], NULL, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, uri, sizeof uri), 0);
	cr_assert_eq(ddps_connect(d->a.ep, uri, NULL), 0);
	cr_assert_eq(ddps_event_wait(d->b.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ddps_accept(ev.request, d->b.ep, NULL), 0);
	cr_assert_eq(ddps_event_wait(d->a.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_ESTABLISHED, "%s", ev.error.text);
}

static void *add_to_thread_e2e(void *arg)
{
	struct adder *d = arg;
	struct ddps_send_wr wr = { .op = DDPS_OP_FETCH_ADD,
				   .stag = ddps_mr_stag(d->mr),
				   .to = ddps_mr_to(d->mr),
				   .atomic = { .data = 1 } };
	int posted = 0, done = 0;

	while (done < NADDS) {
		struct ddps_wc wc;

		for (; posted < NADDS && posted < done + 16; posted++)
			cr_assert_eq(ddps_post_send(d->a.ep, &wr), 0);
		cr_assert_eq(ddps_cq_wait(d->a.cq, &wc, 1, E2E_MS), 1);
		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		done++;
	}
	return NULL;
}

Test(thread, one_counter_for_two_contexts, .timeout = 60,
     .description = "7306-5-1 7306-5.3-1 7306-5.4-2")
{
	struct adder d[2] = { 0 };
	static uint64_t counter;

	for (int i = 0; i < 2; i++)
		adder_open(&d[i], &counter);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&d[i].thread, NULL, add_to_thread_e2e, &d[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(d[i].thread, NULL);
	cr_expect_eq(__atomic_load_n(&counter, __ATOMIC_SEQ_CST), 2 * NADDS);
	for (int i = 0; i < 2; i++) {
		close_thread_e2e_side(&d[i].a);
		close_thread_e2e_side(&d[i].b);
	}
}
