/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions that come late, in another order or never; connections that end or fall silent. */
#include "support/clock.h"
#include "verbs/vt.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void move_by_sends(struct vt *v, unsigned n)
{
	for (unsigned i = 1; i <= n; i++)
		cr_assert_eq(vt_recv(&v->b, i, 0, 100), 0);
	for (unsigned i = 1; i <= n; i++)
		cr_assert_eq(vt_post(&v->a, i, IBV_WR_SEND, 100, NULL), 0);
}

/* vt_wc sleeps until the queue has an event: so the queue has to. */
VT_TEST(verbs_fault_order, a_late_completion_wakes_and_keeps_its_place)
{
	uint64_t begun;
	struct vt v;

	vf_up(&v, "on completion qp 2 opcode recv nth 2: delay 200ms\n");
	begun = read_clock_ms();
	move_by_sends(&v, 3);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 2, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_geq(read_clock_ms() - begun, 200);
	vt_expect_wc(&v.b, 3, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}

VT_TEST(verbs_fault_order, a_lost_completion_does_not_come)
{
	struct vt v;
	struct ibv_wc wc;

	vf_up(&v, "on completion qp 2 opcode recv nth 2: lose\n");
	move_by_sends(&v, 3);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 3, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
	vt_down(&v);
}

/* Both queues of @b have one: the receive's, which came first, comes second. */
VT_TEST(verbs_fault_order, queues_change_their_order)
{
	struct vt v;

	vf_up(&v, "on completion qp 2 opcode recv nth 1: reorder 10s\n");
	cr_assert_eq(vt_recv(&v.b, 1, 0, 100), 0);
	cr_assert_eq(vt_recv(&v.a, 1, 0, 100), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 100, NULL), 0);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	/* it is there, and so is held back when the next one is asked for */
	for (uint64_t until = read_clock_ms() + VT_MS; !strstr(vf_traced(), "reorder");) {
		struct ibv_wc wc;

		cr_assert_lt(read_clock_ms(), until);
		cr_assert_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
	}
	cr_assert_eq(vt_post(&v.b, 2, IBV_WR_SEND, 100, NULL), 0);
	vt_expect_wc(&v.b, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}

VT_TEST(verbs_fault_order, receivers_are_not_ready_for_a_while)
{
	uint64_t begun;
	struct vt v;

	vf_up(&v, "on ibv_post_recv qp 2 nth 1: rnr 250ms\n");
	begun = read_clock_ms();
	move_by_sends(&v, 3);
	for (unsigned i = 1; i <= 3; i++)
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_geq(read_clock_ms() - begun, 250);
	vt_down(&v);
}

/* A queue pair uses it: it stays, and so does what a rule holds back of it. */
VT_TEST(verbs_fault_order, a_completion_queue_that_cannot_go_keeps_what_is_held)
{
	struct ibv_wc wc;
	struct vt v;

	vf_up(&v, "on completion qp 2 opcode recv nth 1: delay 200ms\n");
	move_by_sends(&v, 1);
	for (uint64_t until = read_clock_ms() + VT_MS; !strstr(vf_traced(), "delay");) {
		cr_assert_lt(read_clock_ms(), until);
		cr_assert_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
	}
	cr_expect_eq(ibv_destroy_cq(v.b.cq), EBUSY);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}

VT_TEST(verbs_fault_order, one_bit_of_a_payload_is_another)
{
	unsigned bits = 0;
	struct vt v;

	vf_up(&v, "on ibv_post_send qp 1 opcode send nth 2: corrupt\n");
	memset(v.a.buf, 0x5a, 100);
	for (unsigned i = 1; i <= 2; i++) {
		cr_assert_eq(vt_recv(&v.b, i, 0, 100), 0);
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 100, NULL), 0);
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
		if (i == 1)
			cr_expect_arr_eq(v.a.buf, v.b.buf, 100);
	}
	for (unsigned i = 0; i < 100; i++)
		bits += (unsigned)__builtin_popcount(v.a.buf[i] ^ v.b.buf[i]);
	cr_expect_eq(bits, 1);
	cr_expect_eq(v.a.buf[7], 0x5a, "the program's own buffer stays");
	vt_down(&v);
}

/* ---- connections ---- */

VT_TEST(verbs_fault_order, a_reset_is_seen_by_both)
{
	struct vt v;

	vf_up(&v, "on completion qp 2 bytes 250: reset\n");
	move_by_sends(&v, 4);
	for (unsigned i = 1; i <= 3; i++)
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* The peer's Write is not acknowledged by anybody, nor does this side learn of its end. */
VT_TEST(verbs_fault_order, a_silent_connection_says_nothing)
{
	struct ibv_wc wc;
	struct vt v;

	vf_up(&v, "on ibv_query_qp qp 1: silence\n");
	{
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;

		cr_assert_eq(ibv_query_qp(v.a.id->qp, &attr, 0, &init), 0);
		cr_expect_eq(attr.qp_state, IBV_QPS_RTS);
	}
	cr_assert_eq(vt_recv(&v.b, 1, 0, 100), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 100, NULL), 0);
	cr_assert_eq(vt_post(&v.b, 2, IBV_WR_RDMA_WRITE, 100, &v.a), 0);
	for (uint64_t until = read_clock_ms() + 500; read_clock_ms() < until;) {
		cr_assert_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
		cr_assert_eq(ibv_poll_cq(v.a.cq, 1, &wc), 0);
	}
	cr_expect_not(vt_readable(v.b.ch->fd, 0), "nobody tells");
	vt_down(&v);
}

/* Its socket is one of IPv6, and the connection one of IPv4. */
VT_TEST(verbs_fault_order, contact_26_a_listener_of_both_families_has_silent_connections)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	struct vt v;

	vf_use("on ibv_query_qp qp 2: silence\n");
	vt_init(&v);
	v.addr = (struct sockaddr_storage){ .ss_family = AF_INET6 };
	vt_listen(&v);
	((struct sockaddr_in *)&v.addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v.addr.ss_family = AF_INET;
	vt_connect(&v);
	cr_assert_eq(ibv_query_qp(v.b.id->qp, &attr, 0, &init), 0);
	memset(v.a.buf, 1, 100);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_RDMA_WRITE, 100, &v.b), 0);
	for (uint64_t until = read_clock_ms() + 500; read_clock_ms() < until;)
		cr_assert_eq(ibv_poll_cq(v.a.cq, 1, &wc), 0);
	cr_expect_eq(v.b.buf[0], 0, "it did not arrive");
	vt_down(&v);
}

VT_TEST(verbs_fault_order, a_half_open_connection_is_seen_by_the_peer_alone)
{
	struct rdma_cm_event *e;
	struct ibv_wc wc;
	struct vt v;

	vf_up(&v, "on completion qp 1 nth 1: half-open\n");
	cr_assert_eq(vt_recv(&v.b, 1, 0, 100), 0);
	cr_assert_eq(vt_recv(&v.a, 2, 0, 100), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 100, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	while (!strstr(vf_traced(), "half-open"))
		cr_assert_eq(ibv_poll_cq(v.a.cq, 1, &wc), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(ibv_poll_cq(v.a.cq, 1, &wc), 0, "nothing is flushed");
	cr_expect_eq(fcntl(v.a.ch->fd, F_SETFL, O_NONBLOCK), 0);
	VT_MINUS_AS(rdma_get_cm_event(v.a.ch, &e), EAGAIN);
	vt_down(&v);
}

VT_TEST(verbs_fault_order, a_device_that_goes_takes_all_with_it)
{
	struct ibv_async_event e;
	struct ibv_device **list;
	int n = 7;
	struct vt v;

	vf_up(&v, "on ibv_query_gid: remove-device\n");
	{
		union ibv_gid gid;

		ibv_query_gid(v.a.id->verbs, 1, 0, &gid);
	}
	e = vt_async(v.a.id->verbs, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&e);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DEVICE_REMOVAL);
	VT_NULL_AS(ibv_alloc_pd(v.a.id->verbs), EIO);
	VT_NULL_AS(ibv_reg_mr(v.a.id->pd, v.a.buf, 1, 0), EIO);
	cr_expect_eq(vt_post(&v.a, 1, IBV_WR_SEND, 1, NULL), EIO);
	cr_expect_eq(vt_recv(&v.a, 1, 0, 1), EIO);
	list = ibv_get_device_list(&n);
	cr_expect_eq(n, 0);
	cr_expect(list && !list[0]);
	ibv_free_device_list(list);
	vt_down(&v);
}

/* Requests that were built by ibv_wr_* and completions that are read by an extended queue. */
Test(verbs_fault_order, the_extended_calls_pass_the_edge, .timeout = 60)
{
	struct vt v;
	struct ibv_qp_ex *ex;
	struct ibv_sge sge;

	vf_up(&v, "on ibv_post_send opcode send nth 1: fail ENOBUFS\n"
		  "on ibv_post_send opcode send nth 2: corrupt\n");
	ex = ibv_qp_to_qp_ex(v.a.id->qp);
	for (int i = 0; i < 2; i++) {
		memset(v.a.buf, 0, 100);
		sge = (struct ibv_sge){ (uintptr_t)v.a.buf, 100, v.a.mr->lkey };
		cr_assert_eq(vt_recv(&v.b, 1, 0, 100), 0);
		ibv_wr_start(ex);
		ex->wr_id = 7;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
		cr_expect_eq(ibv_wr_complete(ex), i ? 0 : ENOBUFS);
	}
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect(memcmp(v.a.buf, v.b.buf, 100) != 0);
	vt_expect_wc(&v.a, 7, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* ---- rules that are none ---- */

Test(verbs_fault_order, a_wrong_rule_keeps_the_device_shut, .timeout = 60)
{
	struct ibv_device **list;

	vf_use("on completion: explode\n");
	list = ibv_get_device_list(NULL);
	cr_assert_not_null(list);
	VT_NULL_AS(ibv_open_device(list[0]), EINVAL);
	ibv_free_device_list(list);
}

/* ---- the same again ---- */

#define ROUNDS 40
#define RUNS   20

/* One thread, both ends: what it posts fails by chance, and what completes is late. */
static void play_faulty_exchange(void)
{
	struct vt v;

	vf_up(&v, "on ibv_post_send qp 1 chance 20%: fail ENOBUFS\n"
		  "on completion opcode recv qp 2 chance 15%: delay 1ms\n"
		  "on completion opcode send qp 1 chance 15%: reorder 1ms\n"
		  "on ibv_reg_mr chance 50%: delay 1ms\n");
	for (unsigned i = 0; i < ROUNDS; i++) {
		cr_assert_eq(vt_recv(&v.b, i, 0, 100), 0);
		while (vt_post(&v.a, i, IBV_WR_SEND, 100, NULL) == ENOBUFS)
			;
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
		vt_expect_wc(&v.a, i, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	vt_down(&v);
}

/* A run in a process of its own, and its trace. */
static void trace_of(const char *seed, char *text, size_t len)
{
	int end[2], status;
	size_t at = 0;
	ssize_t n;
	pid_t pid;

	cr_assert_eq(pipe(end), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		const char *trace;

		setenv("DDPSESS_SEED", seed, 1);
		play_faulty_exchange();
		trace = vf_traced();
		_exit(write(end[1], trace, strlen(trace)) < 0);
	}
	close(end[1]);
	while ((n = read(end[0], text + at, len - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = 0;
	close(end[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

/* The core is shown 1 000 times in tests/unit/edge/vf_test.c; this is whole processes. */
VT_TEST(verbs_fault_order, a_seed_is_a_trace)
{
	static char first[8192], again[8192];

	trace_of("11", first, sizeof first);
	cr_assert(strstr(first, "fail ENOBUFS") && strstr(first, "delay"), "%s", first);
	for (int i = 1; i < RUNS; i++) {
		trace_of("11", again, sizeof again);
		cr_assert_str_eq(again, first, "run %d", i);
	}
	trace_of("12", again, sizeof again);
	cr_expect_str_neq(again, first);
}
