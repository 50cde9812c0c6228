/* SPDX-License-Identifier: BSD-2-Clause */
/* The drop-in under rough handling: deaths, forks, threads, many queue pairs, odd orders. */
#include "support/child.h"
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a peer that dies ---- */

static void die_connected(struct vt *v)
{
	vt_dial(v);
	if (rdma_connect(v->a.id, &v->connect))
		_exit(1);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	for (uint64_t i = 0; i < 8; i++)
		vt_post(&v->a, i, IBV_WR_SEND, 4096, NULL);
	raise(SIGKILL);
}

/* Over TCP: the system closes for a process that is killed.  Over SCTP on UDP nobody does. */
Test(verbs_life, a_killed_peer_is_noticed_and_work_is_flushed, .timeout = 60)
{
	struct sockaddr_in *a4;
	int port[2];
	struct vt v;
	pid_t pid;

	vt_init(&v);
	cr_assert_eq(pipe(port), 0);
	pid = fork();
	if (!pid) { /* makes a context of its own */
		a4 = (struct sockaddr_in *)&v.addr;
		close(port[1]);
		if (read(port[0], &a4->sin_port, 2) != 2)
			_exit(1);
		die_connected(&v);
	}
	vt_listen(&v);
	a4 = (struct sockaddr_in *)&v.addr;
	cr_assert_eq(write(port[1], &a4->sin_port, 2), 2);
	vt_take_request(&v);
	for (uint64_t i = 0; i < 16; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 4096), 0);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < 16; i++) {
		struct ibv_wc wc = vt_wc(&v.b);

		cr_assert_eq(wc.wr_id, i, "all come back, in order");
		cr_assert(i < 8 || wc.status == IBV_WC_WR_FLUSH_ERR);
	}
	waitpid(pid, NULL, 0);
	close(port[0]);
	close(port[1]);
	vt_down(&v);
}

/* ---- fork ---- */

static int child_of(struct vt *parent)
{
	struct vt v;

	/* The parent's objects are refused and left alone. */
	if (!ibv_destroy_qp(parent->a.id->qp) || !ibv_destroy_cq(parent->a.cq) ||
	    !ibv_dereg_mr(parent->a.mr) || !rdma_destroy_id(parent->a.id))
		return 2;
	vt_init(&v);
	vt_up(&v);
	if (vt_recv(&v.b, 1, 0, 64) || vt_post(&v.a, 2, IBV_WR_SEND, 5, NULL))
		return 3;
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
	return 0;
}

VT_TLS_TEST(verbs_life, a_child_has_a_context_of_its_own)
{
	int status;
	struct vt v;
	pid_t pid;

	vt_init(&v);
	vt_up(&v);
	pid = fork_at_rest();
	if (!pid)
		_exit(child_of(&v));
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0, "status %#x", (unsigned)status);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}

/* ---- threads ---- */

#define SENDS 400

static void *send_all_verbs_life(void *arg)
{
	struct vt_end *e = arg;

	for (uint64_t i = 0; i < SENDS; i++) {
		cr_assert_eq(vt_post(e, i, IBV_WR_SEND, 64, NULL), 0);
		vt_expect_wc(e, i, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	return NULL;
}

static void *recv_all(void *arg)
{
	struct vt_end *e = arg;

	for (uint64_t i = 0; i < SENDS; i++) {
		cr_assert_eq(vt_recv(e, i, 0, 64), 0);
		vt_expect_wc(e, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	}
	return NULL;
}

VT_TLS_TEST(verbs_life, threads_post_on_several_queue_pairs)
{
	pthread_t t[6];
	struct vt *v = calloc(3, sizeof *v);

	for (int i = 0; i < 3; i++) {
		vt_init(&v[i]);
		vt_up(&v[i]);
		pthread_create(&t[2 * i], NULL, send_all_verbs_life, &v[i].a);
		pthread_create(&t[2 * i + 1], NULL, recv_all, &v[i].b);
	}
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 3; i++)
		vt_down(&v[i]);
	free(v);
}

/* ---- nothing to do ---- */

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

VT_TLS_TEST(verbs_life, an_idle_connection_uses_no_processor)
{
	struct pollfd none = { -1, 0, 0 };
	struct vt v;
	double before;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	before = cpu();
	poll(&none, 1, 1000); /* the time that is measured */
	cr_assert_lt(cpu() - before, 0.1);
	vt_down(&v);
}

/* ---- orders of destruction ---- */

VT_TLS_TEST(verbs_life, what_is_in_use_is_busy_and_any_other_order_works)
{
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(ibv_destroy_cq(v.a.cq), EBUSY);
	cr_assert_eq(ibv_destroy_comp_channel(v.a.cc), EBUSY);
	pd = ibv_alloc_pd(v.a.id->verbs);
	mr = ibv_reg_mr(pd, v.a.buf, 16, 0);
	cr_assert_eq(ibv_dealloc_pd(pd), EBUSY);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	/* The listener first, then a region in use, then the identifier before its queue pair. */
	cr_assert_eq(rdma_destroy_id(v.listen), 0);
	v.listen = NULL;
	cr_assert_eq(vt_recv(&v.b, 1, 0, 64), 0);
	cr_assert_eq(ibv_dereg_mr(v.b.mr), 0);
	v.b.mr = NULL;
	id = v.a.id;
	struct ibv_qp *qp = id->qp;

	cr_assert_eq(rdma_destroy_id(id), 0);
	v.a.id = NULL;
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* ---- addresses that lead nowhere ---- */

Test(verbs_life, resolving_errors)
{
	struct sockaddr_in bad = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_BROADCAST) };
	struct sockaddr un = { .sa_family = AF_UNIX };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_lt(rdma_resolve_addr(id, NULL, &un, 1), 0);
	cr_assert_eq(errno, EAFNOSUPPORT);
	cr_assert_lt(rdma_resolve_route(id, 1), 0, "not before the address");
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&bad, 1), 0);
	e = vt_event(ch, RDMA_CM_EVENT_ADDR_ERROR);
	cr_assert_lt(e->status, 0);
	rdma_ack_cm_event(e);
	rdma_destroy_id(id);
	cr_assert_lt(rdma_create_id(ch, &id, NULL, RDMA_PS_IPOIB), 0);
	cr_assert_eq(errno, EOPNOTSUPP);
	rdma_destroy_event_channel(ch);
}

/* ---- a queue that overflows ---- */

VT_TLS_TEST(verbs_life, an_overflow_is_reported_as_an_error_of_the_queue)
{
	struct ibv_async_event e;
	struct ibv_context *ctx;
	struct vt v;

	vt_init(&v);
	v.init.cap.max_send_wr = v.init.cap.max_recv_wr = 80; /* the queue takes 64 */
	vt_up(&v);
	ctx = v.a.id->verbs;
	for (uint64_t i = 0; i < 66; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	for (uint64_t i = 0; i < 66; i++) {
		cr_assert_eq(vt_post(&v.a, i, IBV_WR_SEND, 8, NULL), 0);
		vt_wc(&v.a);
	}
	e = vt_async(ctx, IBV_EVENT_CQ_ERR);
	cr_assert_eq(e.element.cq, v.b.cq);
	ibv_ack_async_event(&e);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* One queue for sends, one for receives: only that of the sends is too small. */
VT_TLS_TEST(verbs_life, contact_27_only_the_queue_that_overflowed_is_named)
{
	struct ibv_async_event e;
	struct ibv_cq *small;
	struct vt v;
	int n = 0;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	rdma_destroy_qp(v.a.id);
	small = ibv_create_cq(v.a.id->verbs, 4, NULL, NULL, 0);
	cr_assert_not_null(small);
	v.init.send_cq = small;
	v.init.recv_cq = v.a.cq;
	cr_assert_eq(rdma_create_qp(v.a.id, NULL, &v.init), 0, "%m");
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	while (n < 16 && !vt_post(&v.a, 1, IBV_WR_RDMA_WRITE, 8, &v.b))
		n++;
	cr_expect_gt(n, 4);
	e = vt_async(v.a.id->verbs, IBV_EVENT_CQ_ERR);
	cr_expect_eq(e.element.cq, small);
	ibv_ack_async_event(&e);
	/* Both queue pairs, of which one has met the other's Terminate; no other queue. */
	for (int i = 0; i < 2; i++) {
		e = vt_async(v.a.id->verbs, IBV_EVENT_QP_FATAL);
		ibv_ack_async_event(&e);
	}
	rdma_destroy_qp(v.a.id);
	cr_expect_eq(ibv_destroy_cq(small), 0);
	vt_down(&v);
}

/* The association of the one before may be on its way out when the port serves again. */
VT_TLS_TEST(verbs_life, all_goes_and_the_same_port_serves_again)
{
	struct sockaddr_storage addr;
	struct vt v;

	vt_init(&v);
	for (unsigned i = 0; i < 8; i++) {
		vt_up(&v);
		if (i & 1)
			cr_assert_eq(rdma_disconnect(i & 2 ? v.a.id : v.b.id), 0);
		addr = v.addr;
		vt_down(&v);
		vt_init(&v);
		v.addr = addr; /* the port, too */
	}
}
