/* SPDX-License-Identifier: BSD-2-Clause */
/* A completion queue for both kinds: datagrams and connections. */
#include "verbs/vud.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

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
