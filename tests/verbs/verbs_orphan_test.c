/* SPDX-License-Identifier: BSD-2-Clause */
/* A child of fork refuses its parent's objects, call by call, and the parent's go on. */
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct vt v;
static struct vud u;
static struct vud_qp q;
static struct rdma_cm_id *bound, *fresh;
static struct ibv_srq *srq;
static struct ibv_mw *mw;
static struct ibv_dm *dm;
static struct ibv_cq_ex *cqx;

static void make_all(void)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_srq_init_attr srq_attr = { .attr = { 4, 1, 0 } };
	struct ibv_cq_init_attr_ex ex = { .cqe = 4 };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };

	vt_init(&v);
	vt_up(&v);
	vud_open(&u);
	vud_up(&u, &q);
	cr_assert_eq(rdma_create_id(v.a.ch, &bound, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(bound, (struct sockaddr *)&a4), 0);
	cr_assert_eq(rdma_create_id(v.a.ch, &fresh, NULL, RDMA_PS_UDP), 0);
	srq = ibv_create_srq(u.pd, &srq_attr);
	mw = ibv_alloc_mw(u.pd, IBV_MW_TYPE_2);
	dm = ibv_alloc_dm(u.ctx, &dm_attr);
	cqx = ibv_create_cq_ex(u.ctx, &ex);
	cr_assert(srq && mw && dm && cqx);
}

static void drop_all_verbs_orphan(void)
{
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)), 0);
	cr_expect_eq(ibv_free_dm(dm), 0);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(rdma_destroy_id(fresh), 0);
	cr_expect_eq(rdma_destroy_id(bound), 0);
	vud_down(&q);
	vud_close(&u);
	vt_down(&v);
}

/* The number of the first call that is not refused, or 0. */
#define REFUSED(number, call)                                                                      \
	do {                                                                                       \
		errno = 0;                                                                         \
		if (!(call))                                                                       \
			return number;                                                             \
	} while (0)
#define MINUS(call)   ((call) == -1 && errno == EINVAL)
#define INVALID(call) ((call) == EINVAL)

static int of_libibverbs(void)
{
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_async_event async;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	union ibv_gid group = { { [10] = 0xff, [11] = 0xff, [12] = 239 } };
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *user;

	REFUSED(1, INVALID(ibv_destroy_qp(v.a.id->qp)));
	REFUSED(2, INVALID(ibv_destroy_qp(q.qp)));
	REFUSED(3, INVALID(ibv_destroy_cq(v.a.cq)));
	REFUSED(4, INVALID(ibv_destroy_srq(srq)));
	REFUSED(5, INVALID(ibv_dereg_mr(v.a.mr)));
	REFUSED(6, INVALID(ibv_dealloc_mw(mw)));
	REFUSED(7, INVALID(ibv_free_dm(dm)));
	REFUSED(8, INVALID(ibv_dealloc_pd(u.pd)));
	REFUSED(9, INVALID(ibv_modify_qp(v.a.id->qp, &attr, IBV_QP_STATE)));
	REFUSED(10, INVALID(ibv_modify_qp(q.qp, &attr, IBV_QP_STATE)));
	REFUSED(11, INVALID(ibv_attach_mcast(q.qp, &group, 0)));
	REFUSED(12, INVALID(ibv_detach_mcast(q.qp, &group, 0)));
	REFUSED(13, INVALID(ibv_req_notify_cq(v.a.cq, 0)));
	REFUSED(14, ibv_poll_cq(q.cq, 1, &wc) < 0);
	REFUSED(15, ibv_poll_cq(v.a.cq, 1, &wc) < 0);
	REFUSED(16, ibv_start_poll(cqx, &poll) == EIO);
	REFUSED(17, MINUS(ibv_get_cq_event(v.a.cc, &cq, &user)));
	REFUSED(18, MINUS(ibv_get_async_event(u.ctx, &async)));
	REFUSED(19, !ibv_reg_dm_mr(u.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED) && errno == EINVAL);
	ibv_ack_cq_events(v.a.cq, 1);
	return 0;
}

static int of_requests(void)
{
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv = NULL;
	struct ibv_sge sge = { (uintptr_t)q.buf, 1, q.key };
	struct ibv_send_wr send = vud_wr(&q, 1, &q, &sge, 1), *bad = NULL;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(v.a.id->qp);

	REFUSED(31, INVALID(ibv_post_send(v.a.id->qp, &send, &bad)) && bad == &send);
	bad = NULL;
	REFUSED(32, INVALID(ibv_post_send(q.qp, &send, &bad)) && bad == &send);
	REFUSED(33, INVALID(ibv_post_recv(v.a.id->qp, &recv, &bad_recv)) && bad_recv == &recv);
	bad_recv = NULL;
	REFUSED(34, INVALID(ibv_post_recv(q.qp, &recv, &bad_recv)) && bad_recv == &recv);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 0, 0, 0);
	REFUSED(35, INVALID(ibv_wr_complete(ex)));
	ibv_wr_start(ex);
	ibv_wr_abort(ex);
	return 0;
}

static int of_librdmacm(void)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct sockaddr *sa = (struct sockaddr *)&a4;
	struct rdma_cm_event *e;

	a4.sin_addr.s_addr = htonl(0xefff0001);
	REFUSED(51, MINUS(rdma_get_cm_event(v.a.ch, &e)));
	REFUSED(52, MINUS(rdma_bind_addr(fresh, sa)));
	REFUSED(53, MINUS(rdma_listen(bound, 1)));
	REFUSED(54, MINUS(rdma_resolve_addr(bound, NULL, sa, 1)));
	REFUSED(55, MINUS(rdma_connect(bound, NULL)));
	REFUSED(56, MINUS(rdma_accept(v.b.id, NULL)));
	REFUSED(57, MINUS(rdma_reject(v.b.id, NULL, 0)));
	REFUSED(58, MINUS(rdma_disconnect(v.a.id)));
	REFUSED(59, MINUS(rdma_migrate_id(bound, NULL)));
	REFUSED(60, MINUS(rdma_join_multicast(fresh, sa, NULL)));
	REFUSED(61, MINUS(rdma_leave_multicast(fresh, sa)));
	REFUSED(62, MINUS(rdma_destroy_id(bound)));
	rdma_destroy_event_channel(v.b.ch);
	return 0;
}

static void refuse_verbs_orphan(const void *arg)
{
	int first = of_libibverbs();

	(void)arg;
	first = first ? first : of_requests();
	_exit(first ? first : of_librdmacm());
}

static void orphan(void)
{
	const char *told;
	int status;

	make_all();
	status = vchild_run(refuse_verbs_orphan, NULL, &told);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "call %d is taken, or %#x",
		  WEXITSTATUS(status), status);
	/* What the child did is nothing to the parent. */
	cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 8, IBV_WR_SEND, 10, NULL), 0);
	vt_expect_wc(&v.a, 8, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vud_recv(&q, 4, 0, 100);
	vud_send(&q, 5, &q, 20, 0);
	cr_expect_eq(vud_wc(&q).status, IBV_WC_SUCCESS);
	cr_expect_eq(vud_wc(&q).status, IBV_WC_SUCCESS);
	drop_all_verbs_orphan();
}

VT_TEST(verbs_orphan, a_child_is_refused)
{
	orphan();
}

VT_TEST(verbs_orphan, a_child_is_refused_that_is_checked)
{
	setenv("DDPSESS_CHECK", "on", 1);
	orphan();
}
