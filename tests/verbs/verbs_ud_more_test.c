/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams: bursts, sizes, hosts without IPv6, the extended forms. */
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What is in use cannot go; for shared receive queues see verbs_ud_srq_test.c. */
Test(verbs_ud, what_is_in_use_stays, .timeout = 30)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct vud_qp a;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	cr_expect_eq(ibv_destroy_cq(a.cq), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(v.pd), EBUSY);
	init.recv_cq = a.cq;
	VT_NULL_AS(ibv_create_qp(v.pd, &init), EINVAL);
	vud_down(&a);
	vud_close(&v);
}

/* More than a window without anybody who polls at the other end: nothing is lost for that. */
Test(verbs_ud, a_burst_is_paced, .timeout = 30)
{
	const unsigned n = 2000;
	unsigned sent = 0, done = 0, got = 0, posted = 0;
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	while (got < n) {
		while (posted - got < b.max_recv && posted < n)
			vud_recv(&b, posted++, 0, 1100);
		while (sent - done < a.max_send && sent < n) {
			memcpy(a.buf, &sent, sizeof sent);
			vud_send(&a, sent++, &b, 1000, IBV_SEND_SIGNALED);
		}
		while (ibv_poll_cq(a.cq, 1, &wc) > 0) {
			cr_assert_eq(wc.status, 0);
			cr_assert_eq(wc.wr_id, done++);
		}
		while (ibv_poll_cq(b.cq, 1, &wc) > 0) {
			cr_assert_eq(wc.status, 0);
			cr_assert_eq(wc.wr_id, got++);
		}
	}
	cr_expect_arr_eq(b.buf + 40, &(unsigned){ n - 1 }, sizeof n);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

#define RESIZED_QPS 5 /* of 64 places each: together more than the queue */

/* The @i-th request of all, by the queue pair whose turn it is. */
static void post_resized(struct vud_qp *q, uint64_t i)
{
	struct vud_qp *by = &q[i / q->max_send];
	struct ibv_send_wr wr = vud_wr(by, i, by, NULL, 0), *bad;

	wr.wr.ud.remote_qpn = 0x123456; /* to nobody */
	cr_assert_eq(ibv_post_send(by->qp, &wr, &bad), 0);
}

Test(verbs_ud, a_queue_of_datagrams_is_resized, .timeout = 30)
{
	static struct vud_qp q[RESIZED_QPS];
	struct ibv_async_event e;
	struct vud v;

	vud_open(&v);
	vud_up(&v, q);
	for (int i = 1; i < RESIZED_QPS; i++) {
		struct ibv_qp_init_attr init = { .send_cq = q->cq,
						 .recv_cq = q->cq,
						 .qp_type = IBV_QPT_UD,
						 .cap = { q->max_send, 1, 1, 1, 0 },
						 .sq_sig_all = 1 };

		q[i] = q[0];
		q[i].qp = ibv_create_qp(v.pd, &init);
		cr_assert_not_null(q[i].qp, "%m");
		vud_move(&q[i], IBV_QPS_RTS);
	}
	cr_assert_eq(ibv_req_notify_cq(q->cq, 0), 0);
	cr_assert_eq(ibv_resize_cq(q->cq, 300), 0);
	for (uint64_t i = 0; i < 300; i++)
		post_resized(q, i);
	vud_event(q);
	cr_expect_eq(ibv_resize_cq(q->cq, 10), EINVAL, "more wait to be fetched");
	for (uint64_t i = 0; i < 300; i++)
		cr_assert_eq(vud_wc(q).wr_id, i);
	/* One too many is reported as an overflow. */
	for (uint64_t i = 0; i < 301; i++)
		post_resized(q, i);
	e = vt_async(v.ctx, IBV_EVENT_CQ_ERR);
	cr_expect_eq(e.element.cq, q->cq);
	ibv_ack_async_event(&e);
	for (int i = 1; i < RESIZED_QPS; i++)
		cr_expect_eq(ibv_destroy_qp(q[i].qp), 0);
	vud_down(q);
	vud_close(&v);
}

/* A profile says how long a message may be: of several ports the one that takes most. */
Test(verbs_ud, a_profile_has_the_mtu, .timeout = 30)
{
	struct vud_qp a, b;
	struct vud v;

	vp_use("device a0\nport 1\nmtu 256\nport 2\nmtu 4096\n");
	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	vud_recv(&b, 1, 0, 4000);
	memset(a.buf, 0x5a, 3000);
	vud_send(&a, 1, &b, 3000, 0);
	cr_expect_eq(vud_wc(&a).status, 0);
	cr_expect_eq(vud_wc(&b).byte_len, 3040);
	cr_expect_arr_eq(b.buf + 40, a.buf, 3000);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* A kernel without IPv6, as far as this process can see. */
static void no_ipv6(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof code / sizeof *code, code };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

Test(verbs_ud, without_ipv6, .timeout = 30)
{
	struct ibv_send_wr wr, *bad;
	struct vud_qp a, b;
	struct ibv_ah *v6;
	struct vud v;

	no_ipv6();
	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	cr_assert_eq(ud_of_process()->acks.sock.family, AF_INET);
	/* More than a window, so that acknowledgements are at work. */
	for (unsigned i = 0; i < 300; i++) {
		vud_recv(&b, i, 0, 1100);
		vud_send(&a, i, &b, 1000, 0);
		cr_assert_eq(vud_wc(&a).wr_id, i);
		cr_assert_eq(vud_wc(&b).wr_id, i);
	}
	cr_expect_eq(b.buf[8 + 10], 0xff);
	cr_expect_arr_eq(b.buf + 8, b.buf + 24, 16, "its GRH has this host at both ends");
	v6 = vud_ah(&v, "::1");
	wr = vud_wr(&a, 0, &b, NULL, 0);
	wr.wr.ud.ah = v6;
	cr_assert_eq(ibv_post_send(a.qp, &wr, &bad), 0);
	cr_expect_eq(vud_wc(&a).status, 0, "lost, as datagrams may be");
	cr_expect_eq(vud_stats().unreachable, 1);
	cr_expect_eq(ibv_destroy_ah(v6), 0);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* By ibv_wr_* and an extended queue. */
Test(verbs_ud, the_extended_forms, .timeout = 30)
{
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_qp_ex *ex;
	struct vud_qp a, b;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_make(&v, &a, VUD_EX);
	vud_move(&a, IBV_QPS_RTS);
	vud_up(&v, &b);
	vud_recv(&b, 1, 0, 100);
	ex = ibv_qp_to_qp_ex(a.qp);
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, htonl(9));
	ibv_wr_set_ud_addr(ex, v.self, b.qp->qp_num, VUD_QKEY);
	ibv_wr_set_inline_data(ex, "four", 4);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	cr_assert_eq(ibv_start_poll(a.cqx, &poll), 0);
	cr_expect_eq(a.cqx->wr_id, 5);
	cr_expect_eq(a.cqx->status, 0);
	ibv_end_poll(a.cqx);
	wc = vud_wc(&b);
	cr_expect_eq(wc.imm_data, htonl(9));
	cr_expect_arr_eq(b.buf + 40, "four", 4);
	vud_recv(&a, 6, 0, 100);
	vud_send(&b, 2, &a, 3, 0);
	while (ibv_start_poll(a.cqx, &poll))
		;
	cr_expect_eq(a.cqx->wr_id, 6);
	cr_expect_eq(ibv_wc_read_src_qp(a.cqx), b.qp->qp_num);
	cr_expect_eq(ibv_wc_read_byte_len(a.cqx), 43);
	cr_expect_eq(ibv_wc_read_wc_flags(a.cqx), IBV_WC_GRH);
	ibv_end_poll(a.cqx);
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* ---- a completion queue for both kinds: datagrams and connections ---- */

static void armed(struct vt_end *e)
{
	cr_assert_eq(ibv_req_notify_cq(e->cq, 0), 0);
}

/* An event came, as many as there are, and the queue is empty then. */
static void expect_both_event(struct vt_end *e, unsigned completions)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	unsigned n = 0;
	void *user;

	cr_assert(vt_readable(e->cc->fd, VT_MS));
	cr_assert_eq(ibv_get_cq_event(e->cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	cr_expect_not(vt_readable(e->cc->fd, 20), "one arming, one event");
	while (n < completions)
		n += (unsigned)ibv_poll_cq(e->cq, 1, &wc);
	cr_expect_eq(ibv_poll_cq(e->cq, 1, &wc), 0);
}

/* Sessions and datagrams: one arming is for both, and what came in between is reported by the next. */
VT_TEST(verbs_ud_cm, a_queue_of_both_kinds)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 8, 8, 1, 1, 0 } };
	struct vud_qp q = { 0 };
	struct ibv_wc wc;
	struct vud ud;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	vud_open(&ud);
	init.send_cq = init.recv_cq = v.b.cq;
	q.v = &ud;
	q.qp = ibv_create_qp(ud.pd, &init);
	q.mr = ibv_reg_mr(ud.pd, q.buf, sizeof q.buf, IBV_ACCESS_LOCAL_WRITE);
	cr_assert(q.qp && q.mr);
	q.key = q.mr->lkey;
	vud_move(&q, IBV_QPS_RTS);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	/* One after the other, of either kind. */
	armed(&v.b);
	cr_assert_eq(vt_post(&v.a, 0, IBV_WR_SEND, 4, NULL), 0);
	expect_both_event(&v.b, 1);
	armed(&v.b);
	vud_send(&q, 0, &q, 1, 0);
	expect_both_event(&v.b, 1);
	/* Both at a time: one is reported, the other by the next arming. */
	armed(&v.b);
	vud_send(&q, 0, &q, 1, 0);
	cr_assert_eq(vt_post(&v.a, 0, IBV_WR_SEND, 4, NULL), 0);
	for (int i = 0; i < 2; i++) /* the first one's, and this one's */
		vt_expect_wc(&v.a, 0, IBV_WC_SEND, IBV_WC_SUCCESS);
	expect_both_event(&v.b, 2);
	armed(&v.b);
	while (vt_readable(v.b.cc->fd, 20)) { /* it may have been reported already */
		struct ibv_cq *cq;
		void *user;

		cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
		ibv_ack_cq_events(cq, 1);
		cr_expect_eq(ibv_poll_cq(v.b.cq, 1, &wc), 0);
		armed(&v.b);
	}
	cr_assert_eq(vt_post(&v.a, 0, IBV_WR_SEND, 4, NULL), 0);
	expect_both_event(&v.b, 1);
	cr_expect_eq(ibv_destroy_qp(q.qp), 0);
	cr_expect_eq(ibv_dereg_mr(q.mr), 0);
	vud_close(&ud);
	vt_down(&v);
}
