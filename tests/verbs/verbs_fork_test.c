/* SPDX-License-Identifier: BSD-2-Clause */
/* Children of fork that go on living next to a parent that uses the drop-in. */
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Listens at a port that it prints, rejects one request and ends by the shortest way. */
static void reject_and_end(int tell)
{
	struct rdma_cm_event *e;
	struct vt v;
	uint16_t port;

	vt_init(&v);
	vt_listen(&v);
	port = vt_port(&v);
	if (write(tell, &port, sizeof port) != sizeof port)
		_exit(1);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	_exit(rdma_reject(e->id, "no thanks", 10) != 0);
}

VT_TLS_TEST(verbs_fork, a_rejection_is_out_before_the_process_ends)
{
	struct rdma_cm_event *e;
	struct vt v;
	uint16_t port;
	int tell[2];
	pid_t child;

	cr_assert_eq(pipe(tell), 0);
	child = fork();
	if (!child)
		reject_and_end(tell[1]);
	close(tell[1]); /* the child's alone: a read ends when it does */
	cr_assert_eq(read(tell[0], &port, sizeof port), sizeof port);
	vt_init(&v);
	((struct sockaddr_in *)&v.addr)->sin_port = htons(port);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_assert_not_null(e->param.conn.private_data);
	cr_expect_str_eq(e->param.conn.private_data, "no thanks");
	rdma_ack_cm_event(e);
	vt_down(&v);
	cr_expect_eq(await_child_status(child), 0);
	close(tell[0]);
}

VT_TLS_TEST(verbs_fork, attack_12_what_the_parent_destroys_is_gone)
{
	struct vt v, again;
	pid_t child;

	vt_init(&v);
	vt_up(&v);
	child = idle_child();
	rdma_destroy_qp(v.a.id);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_init(&again);
	again.addr = v.addr; /* with the port */
	vt_down(&v);
	vt_listen(&again);
	vt_down(&again);
	no_child(child);
}

/* Bound before the fork, listening after it. */
VT_TLS_TEST(verbs_fork, attack_12_a_kept_port_is_the_parents)
{
	struct vt v;
	pid_t child;

	vt_init(&v);
	v.b.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v.b.ch, &v.listen, &v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(v.listen, (struct sockaddr *)&v.addr), 0);
	child = idle_child();
	cr_expect_eq(rdma_listen(v.listen, 4), 0, "%m");
	vt_down(&v);
	no_child(child);
}

static bool is_verbs_fork_refused(int ret)
{
	return ret == -1 && errno == EINVAL;
}

/* With events in all three kinds of channels. */
static int eat(struct vt *v)
{
	struct ibv_async_event a;
	struct rdma_cm_event *e;
	struct ibv_cq *cq;
	void *user;

	if (!is_verbs_fork_refused(ibv_get_cq_event(v->b.cc, &cq, &user)))
		return 1;
	if (!is_verbs_fork_refused(rdma_get_cm_event(v->a.ch, &e)))
		return 2;
	if (!is_verbs_fork_refused(ibv_get_async_event(v->b.id->verbs, &a)))
		return 3;
	return 0;
}

VT_TLS_TEST(verbs_fork, attack_12_a_child_eats_no_events)
{
	struct vt v;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1, .srq_limit = 0 } };
	struct ibv_srq_attr low = { .srq_limit = 2 };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_async_event e;
	struct ibv_cq *cq;
	void *user;
	pid_t pid;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	v.srq = ibv_create_srq(v.a.id->pd, &srq);
	cr_assert_not_null(v.srq);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ibv_post_srq_recv(v.srq, &wr, &bad), 0);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(ibv_modify_srq(v.srq, &low, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert_eq(vt_post(&v.a, 9, IBV_WR_SEND, 0, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert(vt_readable(v.a.ch->fd, VT_MS)); /* ESTABLISHED */
	cr_assert(vt_readable(v.b.id->verbs->async_fd, VT_MS));
	pid = fork_at_rest();
	if (!pid)
		_exit(eat(&v));
	cr_expect_eq(await_child_status(pid), 0);
	cr_expect(vt_readable(v.b.cc->fd, 0) && vt_readable(v.a.ch->fd, 0) &&
		  vt_readable(v.b.id->verbs->async_fd, 0));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	e = vt_async(v.b.id->verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
	ibv_ack_async_event(&e);
	vt_down(&v);
}

/* Of the tests themselves: it would wait for Criterion's runner for ever. */
Test(verbs_fork, an_assertion_that_fails_in_a_child_ends_it, .timeout = 20)
{
	const int fd = vchild_file("");
	char text[1024] = "";
	int status;
	pid_t child = fork();

	if (!child) {
		dup2(fd, STDERR_FILENO);
		cr_assert_eq(fd, -1, "as meant");
		leave_child_fixture(0);
	}
	status = await_child_status(child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_FAILED, "%#x", status);
	cr_assert_gt(pread(fd, text, sizeof text - 1, 0), 0);
	cr_expect(strstr(text, "as meant"), "%s", text);
	close(fd);
}

/* ---- a child of fork refuses its parent's objects, call by call, and the parent's go on ---- */

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
