/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules at their limits: at a time, without memory, of things that are not there. */
#include "edge/ed.h"
#include "verbs/vfail.h"
#include "verbs/voob.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static unsigned count_text_in(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* ---- at a time ---- */

/* Time passes, for the edge. */
static void ten_minutes(void)
{
	ddps_lock(&ed.lock);
	ed.begun -= UINT64_C(10) * 60 * 1000;
	ddps_unlock(&ed.lock);
	ed_clock_wake();
}

/* One for each queue pair, one for the second alone, which is the passive side's. */
VT_TEST(verbs_rules_more, at_a_time)
{
	struct ibv_async_event e;
	struct vt v;

	vf_up(&v, "at 10min: async COMM_EST\nat 20min qp 2: async QP_REQ_ERR\n");
	cr_expect_not(vt_readable(v.a.id->verbs->async_fd, 0));
	ten_minutes();
	for (int i = 0; i < 2; i++) {
		e = vt_async(v.a.id->verbs, IBV_EVENT_COMM_EST);
		cr_expect(e.element.qp == v.a.id->qp || e.element.qp == v.b.id->qp);
		ibv_ack_async_event(&e);
	}
	ten_minutes();
	e = vt_async(v.a.id->verbs, IBV_EVENT_QP_REQ_ERR);
	cr_expect_eq(e.element.qp, v.b.id->qp);
	ibv_ack_async_event(&e);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

static volatile sig_atomic_t alarms;

static void take_verbs_rules_more_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* A delay is as long as it says, whatever signals come. */
Test(verbs_rules_more, a_delay_with_signals, .timeout = 60)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
	struct sigaction act = { .sa_handler = take_verbs_rules_more_alarm };
	struct ibv_device_attr attr;
	struct vt_dev s;
	uint64_t begun;

	vf_use("on ibv_query_device nth 2: delay 50ms\n");
	vt_dev_open(&s);
	cr_assert_eq(sigaction(SIGALRM, &act, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
	begun = ed_ms();
	cr_expect_eq(ibv_query_device(s.ctx, &attr), 0);
	cr_expect_geq(ed_ms() - begun, 49);
	cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
	cr_expect_gt(alarms, 0);
	vt_dev_close(&s);
}

/* What is next is the soonest, in whichever order they are. */
Test(verbs_rules_more, the_soonest, .timeout = 60)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id[2];
	uint64_t now;

	vf_use("on rdma_resolve_addr nth 1: event ADDR_CHANGE in 10min\n"
	       "on rdma_resolve_addr nth 2: event ADDR_CHANGE in 20min\n");
	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ch = rdma_create_event_channel();
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(rdma_create_id(ch, &id[i], NULL, RDMA_PS_TCP), 0);
		cr_assert_eq(rdma_resolve_addr(id[i], NULL, (struct sockaddr *)&a4, 1), 0);
	}
	now = ed_ms();
	cr_expect_leq(ed_events_due(now) - now, 10 * 60 * 1000);
	cr_expect_eq(rdma_destroy_id(id[0]), 0);
	cr_expect_gt(ed_events_due(now) - now, 10 * 60 * 1000);
	cr_expect_eq(rdma_destroy_id(id[1]), 0);
	cr_expect_eq(ed_events_due(now), UINT64_MAX);
	rdma_destroy_event_channel(ch);
}

/* ---- two queue pairs of one queue, which are each other's peer ---- */

static struct side one, two;

static void bring_both_verbs_rules_more_up(const char *rules)
{
	vf_use(rules);
	open_oob_side(&one);
	two = one;
	two.qp = make_oob_qp(&one, IBV_QPT_RC);
	meet_oob_side(&one, &two);
	meet_oob_side(&two, &one);
}

static void both_down(void)
{
	cr_expect_eq(ibv_destroy_qp(two.qp), 0);
	close_oob_side(&one);
}

static int receives(struct ibv_qp *qp, uint64_t wr_id, int n)
{
	struct ibv_sge sge = { (uintptr_t)one.buf + 128, 64, one.mr->lkey };
	struct ibv_recv_wr wr[2] = {
		{ .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .next = n > 1 ? &wr[1] : NULL },
		{ .wr_id = wr_id + 1, .sg_list = &sge, .num_sge = 1 }
	};
	struct ibv_recv_wr *bad = NULL;
	int err = ibv_post_recv(qp, wr, &bad);

	cr_expect_eq(bad == &wr[0], err != 0);
	return err;
}

static int post_ruled_sends(struct ibv_qp *qp, uint64_t wr_id, int n)
{
	struct ibv_sge sge = { (uintptr_t)one.buf, 16, one.mr->lkey };
	struct ibv_send_wr wr[2] = { { .wr_id = wr_id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED,
				       .next = n > 1 ? &wr[1] : NULL } };
	struct ibv_send_wr *bad = NULL;
	int err;

	wr[1] = wr[0];
	wr[1].next = NULL;
	wr[1].wr_id++;
	err = ibv_post_send(qp, wr, &bad);
	cr_expect_eq(bad == &wr[0], err != 0);
	return err;
}

/* What one queue pair's completion waits for is nothing to another's, which passes it. */
VT_TEST(verbs_rules_more, completions_that_wait)
{
	struct ed_cq *c;
	uint64_t now;

	bring_both_verbs_rules_more_up("on completion opcode send nth 1: delay 20min\n"
				       "on completion opcode recv nth 1: delay 10ms\n"
				       "on completion opcode recv nth 2: delay 30min\n");
	cr_assert_eq(receives(two.qp, 7, 2), 0);
	cr_assert_eq(post_ruled_sends(one.qp, 1, 1), 0);
	cr_expect_eq(await_oob_wc(&one).wr_id, 7, "the later one's receive");
	cr_assert_eq(post_ruled_sends(one.qp, 2, 1), 0);
	while (ddps_ep_unfetched(vd_of(two.qp, struct vd_qp, qp.qp_base)->ep)) {
		struct ibv_wc wc;

		cr_expect_eq(ibv_poll_cq(one.cq, 1, &wc), 0, "%llu", (unsigned long long)wc.wr_id);
	}
	c = ed_cq_of(one.cq);
	ddps_lock(&ed.lock);
	c->armed = true;
	now = ed_ms();
	cr_expect_leq(ed_completions_due(now) - now, 20 * 60 * 1000);
	c->armed = false;
	ddps_unlock(&ed.lock);
	ed_cq_done(c);
	both_down(); /* and what waits goes with its queue */
}

/* Of two queue pairs' receives that wait the soonest is next. */
VT_TEST(verbs_rules_more, receives_that_wait)
{
	uint64_t now;

	bring_both_verbs_rules_more_up(
		"on ibv_post_recv nth 1: rnr 20min\non ibv_post_recv nth 2: rnr 10min\n"
		"on ibv_post_recv nth 3: delay 1ms\non ibv_post_recv nth 4: fail EIO\n");
	cr_assert_eq(receives(one.qp, 7, 1), 0);
	cr_assert_eq(receives(two.qp, 7, 1), 0);
	now = ed_ms();
	cr_expect_leq(ed_recvs_due(now) - now, 10 * 60 * 1000);
	cr_expect_eq(receives(one.qp, 8, 1), 0);
	cr_expect_eq(receives(one.qp, 8, 2), EIO, "the first, and the second is not tried");
	cr_expect_eq(count_text_in(vf_traced(), "fail EIO"), 1);
	both_down();
}

/* Of a list whose first fails nothing is done. */
VT_TEST(verbs_rules_more, a_list_that_fails)
{
	struct ibv_wc wc;

	bring_both_verbs_rules_more_up("on ibv_post_send nth 1: fail ENOMEM\n");
	cr_assert_eq(receives(two.qp, 7, 1), 0);
	cr_expect_eq(post_ruled_sends(one.qp, 1, 2), ENOMEM);
	cr_expect_eq(ibv_poll_cq(one.cq, 1, &wc), 0);
	cr_assert_eq(post_ruled_sends(one.qp, 5, 1), 0);
	for (int i = 0; i < 2; i++) {
		wc = await_oob_wc(&one);
		cr_expect(wc.wr_id == 5 || wc.wr_id == 7, "%llu", (unsigned long long)wc.wr_id);
		cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	}
	both_down();
}

/* A completion that a queue pair had when it fell silent is not told any more. */
VT_TEST(verbs_rules_more, silence_keeps_what_was_done)
{
	struct ibv_wc wc;

	bring_both_verbs_rules_more_up("on ibv_query_qp nth 1: silence\n");
	cr_assert_eq(receives(two.qp, 7, 1), 0);
	cr_assert_eq(post_ruled_sends(one.qp, 1, 1), 0);
	while (!ddps_ep_unfetched(vd_of(one.qp, struct vd_qp, qp.qp_base)->ep) ||
	       !ddps_ep_unfetched(vd_of(two.qp, struct vd_qp, qp.qp_base)->ep))
		sched_yield();
	{
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;

		cr_assert_eq(ibv_query_qp(one.qp, &attr, 0, &init), 0);
	}
	cr_expect_eq(await_oob_wc(&one).wr_id, 7, "the peer's");
	cr_expect_eq(ibv_poll_cq(one.cq, 1, &wc), 0);
	both_down();
}

/* ---- without memory, each of these is as without rules ---- */

VT_TEST(verbs_rules_more, a_queue_pair_that_is_not_known)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_qp *known;

	vf_use("on ibv_query_qp nth 1: reset\non ibv_query_qp nth 2: silence\n"
	       "on ibv_query_qp nth 3: half-open\non ibv_query_qp nth 4: event DISCONNECTED\n"
	       "on ibv_query_qp nth 5: event DISCONNECTED\non ibv_post_send: fail EIO\n");
	open_oob_side(&one);
	known = one.qp;
	vfail_size(sizeof(struct ed_qp));
	one.qp = make_oob_qp(&one, IBV_QPT_RC);
	cr_assert(vfail_came());
	for (int i = 0; i < 4; i++)
		cr_expect_eq(ibv_query_qp(one.qp, &attr, 0, &init), 0);
	cr_expect_eq(one.qp->state, IBV_QPS_INIT);
	/* One that is known, but has no identifier that could be reported. */
	cr_expect_eq(ibv_query_qp(known, &attr, 0, &init), 0);
	meet_oob_side(&one, &one);
	cr_assert_eq(receives(one.qp, 7, 1), 0);
	cr_expect_eq(post_ruled_sends(one.qp, 1, 1), 0);
	cr_expect_eq(await_oob_wc(&one).status, IBV_WC_SUCCESS);
	cr_expect_eq(await_oob_wc(&one).status, IBV_WC_SUCCESS);
	cr_expect_eq(post_ruled_sends(known, 1, 1), EIO);
	cr_expect_eq(ibv_destroy_qp(known), 0);
	close_oob_side(&one);
}

Test(verbs_rules_more, queues_that_are_not_known, .timeout = 60)
{
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_srq *srq, *newer;
	struct ibv_wc wc;
	struct vt_dev s;

	vf_use("on ibv_post_srq_recv nth 3: fail EIO\n");
	vt_dev_open(&s);
	srq = ibv_create_srq(s.pd, &init);
	newer = ibv_create_srq(s.pd, &init);
	vfail_size(sizeof(struct ed_srq));
	cr_expect_eq(ibv_post_srq_recv(srq, &wr, &bad), 0, "not seen by the rule");
	cr_assert(vfail_came());
	cr_expect_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
	cr_expect_eq(ibv_post_srq_recv(newer, &wr, &bad), 0);
	cr_expect_eq(ibv_post_srq_recv(srq, &wr, &bad), EIO);
	vfail_size(sizeof(struct ed_cq));
	cr_expect_eq(ibv_poll_cq(s.cq, 1, &wc), 0);
	cr_assert(vfail_came());
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_destroy_srq(newer), 0);
	srq = ibv_create_srq(s.pd, &init);
	vfail_size(sizeof(struct ed_srq));
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_assert(vfail_came());
	vfail_size(sizeof(struct ed_cq));
	vt_dev_close(&s);
	cr_assert(vfail_came());
}

VT_TEST(verbs_rules_more, effects_without_memory)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	bring_both_verbs_rules_more_up(
		"on completion nth 1: delay 20min\non ibv_post_send nth 2: corrupt\n"
		"on ibv_query_qp nth 1: remove-device\n");
	memset(one.buf, 'x', sizeof one.buf);
	cr_assert_eq(receives(two.qp, 7, 2), 0);
	vfail_size(sizeof(struct ed_held));
	cr_assert_eq(post_ruled_sends(one.qp, 1, 1), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(await_oob_wc(&one).status, IBV_WC_SUCCESS);
	cr_assert(vfail_came());
	vfail_size(sizeof(struct vd_mr));
	cr_assert_eq(post_ruled_sends(one.qp, 2, 1), 0);
	cr_assert(vfail_came());
	for (int i = 0; i < 2; i++)
		cr_expect_eq(await_oob_wc(&one).status, IBV_WC_SUCCESS);
	for (int i = 0; i < 16; i++)
		cr_expect_eq(one.buf[128 + i], 'x', "no bit was changed");
	cr_assert_eq(ibv_query_qp(one.qp, &attr, 0, &init), 0);
	cr_expect_eq(one.qp->state, IBV_QPS_ERR);
	cr_expect_eq(two.qp->state, IBV_QPS_ERR);
	both_down();
}

/* Rules about a process that cannot be made. */
Test(verbs_rules_more, no_process, .timeout = 60)
{
	struct ibv_device **list;
	int n;

	vf_use("on ibv_get_device_list nth 1: async PORT_ERR\n"
	       "on ibv_get_device_list nth 2: remove-device\n");
	vfail_size(sizeof(struct vd_process));
	list = ibv_get_device_list(&n);
	cr_assert(vfail_came());
	cr_expect(list && n == 1);
	ibv_free_device_list(list);
	vfail_size(sizeof(struct vd_process));
	ibv_free_device_list(ibv_get_device_list(&n));
	cr_assert(vfail_came());
	list = ibv_get_device_list(&n);
	cr_expect(list && n == 0, "it has gone all the same");
	ibv_free_device_list(list);
	cr_expect_not_null(strstr(vf_traced(), "remove-device"));
}

/* ---- what is left of a device that has gone ---- */

VT_TEST(verbs_rules_more, to_leave_a_device_that_has_gone)
{
	struct rdma_event_channel *ch;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rdma_addrinfo *ai;
	struct ibv_cq *cq;
	void *user;
	struct vt v;

	vf_up(&v, "on ibv_query_qp nth 1: remove-device\n");
	cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert_eq(ibv_query_qp(v.a.id->qp, &attr, 0, &init), 0);
	cr_expect_eq(ibv_query_qp(v.a.id->qp, &attr, 0, &init), EIO);
	VT_MINUS_AS(rdma_resolve_route(v.a.id, 1), EIO);
	ch = rdma_create_event_channel();
	cr_expect_not_null(ch);
	rdma_destroy_event_channel(ch);
	cr_expect_eq(rdma_getaddrinfo("127.0.0.1", "7", NULL, &ai), 0);
	rdma_freeaddrinfo(ai);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_expect_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	VT_MINUS_AS(rdma_reject(v.a.id, NULL, 0), EINVAL);
	rdma_disconnect(v.a.id);
	cr_expect_neq(errno, EIO);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DEVICE_REMOVAL);
	vt_down(&v);
}

/* ---- events that a rule makes ---- */

/* In place of a connection without a queue pair, and with one that is not known. */
VT_TEST(verbs_rules_more, no_connection)
{
	struct vt v;

	vf_use("on rdma_connect: event REJECTED\n");
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	rdma_destroy_qp(v.a.id);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
	vt_end_down(&v.a);
	vfail_size(sizeof(struct ed_qp));
	vt_dial(&v);
	cr_assert(vfail_came());
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_expect_not(vt_readable(v.b.ch->fd, 0), "nothing was sent");
	vt_down(&v);
}

/* The end of a connection whose queue pair has gone is reported as usual. */
VT_TEST(verbs_rules_more, an_end_without_a_queue_pair)
{
	struct vt v;

	vf_up(&v, "on completion nth 100: lose\n");
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_assert(vt_readable(v.b.ch->fd, VT_MS));
	rdma_destroy_qp(v.b.id);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* Of a shared queue, without a queue pair; and addresses that no rule is about. */
Test(verbs_rules_more, asynchronous_events_of_shared_queues, .timeout = 60)
{
	struct sockaddr unknown = { .sa_family = AF_UNIX };
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC };
	struct rdma_event_channel *ch;
	struct ibv_async_event e;
	struct rdma_cm_id *id;
	struct ibv_srq *srq;
	struct vt_dev s;

	vf_use("on ibv_modify_srq: async SRQ_ERR\non rdma_create_qp: fail ENOSPC\n"
	       "on ibv_reg_mr: fail ENOSPC\n");
	vt_dev_open(&s);
	srq = ibv_create_srq(s.pd, &init);
	cr_assert_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	e = vt_async(s.ctx, IBV_EVENT_SRQ_ERR);
	cr_expect_eq(e.element.srq, srq);
	ibv_ack_async_event(&e);
	ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, &unknown, 1), EAFNOSUPPORT);
	VT_MINUS_AS(rdma_create_qp_ex(id, &ex), ENOSPC);
	VT_NULL_AS(ibv_reg_mr_iova2(s.pd, one.buf, 8, 0, 0), ENOSPC);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	vt_dev_close(&s);
}
