/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that closes all descriptors above 2 while it uses the drop-in. */
#include "support/files.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include "vt.h"
#include <sys/resource.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#define BURNT 80000 /* us of processor time that are far too many */

static long burnt(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec +
	       r.ru_stime.tv_usec;
}

/* Each of them, on what there was before. */
static void use_end(struct vt_end *e)
{
	struct ibv_async_event a;
	struct rdma_cm_event *ev;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *user;

	ibv_poll_cq(e->cq, 1, &wc);
	ibv_req_notify_cq(e->cq, 0);
	vt_recv(e, 1, 0, 8);
	vt_post(e, 2, IBV_WR_SEND, 8, NULL);
	if (ibv_get_cq_event(e->cc, &cq, &user) != -1 || rdma_get_cm_event(e->ch, &ev) != -1 ||
	    ibv_get_async_event(e->id->verbs, &a) != -1)
		_exit(101);
}

static void free_end(struct vt_end *e)
{
	rdma_disconnect(e->id);
	rdma_destroy_qp(e->id);
	ibv_dereg_mr(e->mr);
	ibv_destroy_cq(e->cq);
	ibv_destroy_comp_channel(e->cc);
	rdma_destroy_id(e->id);
	rdma_destroy_event_channel(e->ch);
}

/* Two connections: one that is only used, and one whose end is the first thing. */
static void close_fds_in_verbs_closed(enum kind kind)
{
	struct vt used, freed, anew;
	struct rdma_cm_id *bound;
	struct vt_dev d;

	vt_init(&used);
	vt_init(&freed);
	vt_up(&used);
	vt_up(&freed);
	vt_dev_open(&d);
	cr_assert_eq(rdma_create_id(used.a.ch, &bound, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(bound, (struct sockaddr *)&(
						   struct sockaddr_in){ .sin_family = AF_INET }),
		     0);
	take_numbers(kind);
	free_end(&freed.a);
	free_end(&freed.b);
	rdma_destroy_id(freed.listen);
	rdma_destroy_id(bound);
	use_end(&used.a);
	use_end(&used.b);
	ibv_destroy_cq(d.cq);
	ibv_dealloc_pd(d.pd);
	ibv_close_device(d.ctx);
	if (touched() || touched_by_fork())
		_exit(102);
	/* What is made from here on has descriptors of its own. */
	vt_init(&anew);
	vt_up(&anew);
	cr_assert_eq(vt_recv(&anew.b, 7, 0, 8), 0);
	cr_assert_eq(vt_post(&anew.a, 8, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&anew.b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&anew);
	_exit(touched() ? 103 : 0);
}

VT_TLS_TEST(verbs_closed, the_programs_own_files_are_let_alone)
{
	for (enum kind kind = MEMORY; kind < KINDS; kind++) {
		const pid_t pid = fork();

		if (!pid)
			close_fds_in_verbs_closed(kind);
		expect_child_ends_well(pid, kind);
	}
}

/* Threads of the library's and the program's own sleep meanwhile. */
static void *destroy_unacked(void *arg)
{
	return rdma_destroy_id(arg) ? arg : NULL;
}

static void close_beside_threads(enum kind kind)
{
	const struct timespec t = { .tv_nsec = 300000000 };
	struct ibv_async_event a;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	pthread_t destroying;
	struct ibv_wc wc;
	struct vt v;
	long before;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert_eq(rdma_create_id(v.a.ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&v.addr, 1000), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(pthread_create(&destroying, NULL, destroy_unacked, id), 0);
	take_numbers(kind);
	before = burnt();
	if (ibv_get_async_event(v.a.id->verbs, &a) != -1 || ibv_poll_cq(v.a.cq, 1, &wc) >= 0 ||
	    !vt_post(&v.a, 1, IBV_WR_SEND, 8, NULL) || !vt_recv(&v.a, 1, 0, 8))
		_exit(113);
	if (rdma_ack_cm_event(e) || pthread_join(destroying, NULL))
		_exit(114);
	nanosleep(&t, NULL); /* time for threads to burn */
	if (burnt() - before > BURNT)
		_exit(104);
	_exit(touched() ? 105 : 0);
}

VT_TLS_TEST(verbs_closed, whoever_polls_is_informed_and_no_thread_burns)
{
	for (enum kind kind = MEMORY; kind < KINDS; kind++) {
		const pid_t pid = fork();

		if (!pid)
			close_beside_threads(kind);
		expect_child_ends_well(pid, kind);
	}
}

/* ---- datagrams ---- */

static void close_datagrams(enum kind kind)
{
	const struct timespec t = { .tv_nsec = 300000000 };
	struct vud_qp a, b;
	struct vud v;
	long before;

	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	vud_recv(&b, 1, 0, 1000);
	vud_send(&a, 2, &b, 100, IBV_SEND_SIGNALED);
	cr_assert_eq(vud_wc(&b).wr_id, 1);
	take_numbers(kind);
	before = burnt();
	if (!ibv_destroy_qp(b.qp))
		_exit(106);
	for (int i = 0; i < 4; i++) {
		struct ibv_sge sge = { (uintptr_t)a.buf, 100, a.key };
		struct ibv_send_wr wr = vud_wr(&a, 3, &b, &sge, 1), *bad;
		struct ibv_wc wc;

		if (!ibv_post_send(a.qp, &wr, &bad) || ibv_poll_cq(a.cq, 1, &wc) >= 0)
			_exit(107);
	}
	nanosleep(&t, NULL); /* time for threads to burn */
	if (burnt() - before > BURNT)
		_exit(108);
	_exit(touched() || touched_by_fork() ? 109 : 0);
}

Test(verbs_closed, sockets_of_datagrams_too, .timeout = 60)
{
	for (enum kind kind = MEMORY; kind < KINDS; kind++) {
		const pid_t pid = fork();

		if (!pid)
			close_datagrams(kind);
		expect_child_ends_well(pid, kind);
	}
}

/* ---- children ---- */

/* The parent's objects, in a child that has closed its copies. */
static void destroy_in_child(const struct vt *v, const struct vt_dev *d, enum kind kind)
{
	take_numbers(kind);
	rdma_destroy_event_channel(v->a.ch);
	ibv_destroy_comp_channel(v->a.cc);
	rdma_destroy_id(v->listen);
	ibv_close_device(d->ctx);
	_exit(touched() ? 110 : 0);
}

VT_TLS_TEST(verbs_closed, a_child_that_closes_all_is_left_its_files)
{
	struct vt_dev d;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	vt_dev_open(&d);
	for (enum kind kind = MEMORY; kind < KINDS; kind++) {
		const pid_t pid = fork_at_rest();

		if (!pid)
			destroy_in_child(&v, &d, kind);
		expect_child_ends_well(pid, kind);
	}
	/* The parent's are as they were. */
	cr_assert_eq(vt_recv(&v.b, 7, 0, 8), 0);
	cr_assert_eq(vt_post(&v.a, 8, IBV_WR_SEND, 8, NULL), 0);
	vt_expect_wc(&v.b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 8, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_dev_close(&d);
	vt_down(&v);
}

/* ---- files of the library's ---- */

/* A connection whose packets go into a file, and whose faults into another. */
static void close_files(const char *capture)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct vt v;

	setenv("DDPSESS_CAPTURE", capture, 1);
	vf_up(&v, "on ibv_query_qp: fail ENOMEM\n");
	take_numbers(MEMORY);
	for (int i = 0; i < 3; i++) {
		vt_post(&v.a, 8, IBV_WR_SEND, 8, NULL);
		ibv_query_qp(v.a.id->qp, &attr, IBV_QP_STATE, &init);
	}
	rdma_disconnect(v.a.id);
	_exit(touched() ? 112 : 0);
}

VT_TLS_TEST(verbs_closed, a_capture_and_a_trace_end_with_their_descriptors)
{
	char path[] = "/tmp/verbs_closed_XXXXXX";
	int fd = mkstemp(path);
	pid_t pid;

	cr_assert_geq(fd, 0);
	pid = fork();
	if (!pid)
		close_files(path);
	cr_expect_eq(await_child_status(pid), 0);
	close(fd);
	unlink(path);
}

/* ---- cancel ---- */

/* Threads of a program that are cancelled while they are within the drop-in: no lock of it stays taken. */

static void post_verbs_cancel_send(struct vt *v)
{
	vt_post(&v->a, 1, IBV_WR_RDMA_WRITE, 4096, &v->b);
}

static void post_verbs_cancel_recv(struct vt *v)
{
	vt_recv(&v->b, 2, 0, 64);
}

static void poll_verbs_cancel_cq(struct vt *v)
{
	struct ibv_wc wc[4];

	ibv_poll_cq(v->a.cq, 4, wc);
	ibv_poll_cq(v->b.cq, 4, wc);
}

static void arm(struct vt *v)
{
	ibv_req_notify_cq(v->a.cq, 0);
}

static void use_verbs_cancel_memory(struct vt *v)
{
	static uint8_t octets[4096];
	struct ibv_mr *mr = ibv_reg_mr(v->a.id->pd, octets, sizeof octets, IBV_ACCESS_LOCAL_WRITE);

	if (mr)
		ibv_dereg_mr(mr);
}

static void make_verbs_cancel_identifier(struct vt *v)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(v->a.ch, &id, NULL, RDMA_PS_TCP))
		return;
	rdma_bind_addr(id, (struct sockaddr *)&v->addr);
	rdma_listen(id, 1);
	rdma_destroy_id(id);
	if (rdma_create_id(v->a.ch, &id, NULL, RDMA_PS_TCP))
		return;
	rdma_resolve_addr(id, NULL, (struct sockaddr *)&v->addr, 1000);
	rdma_destroy_id(id);
}

static void open_verbs_cancel_device(struct vt *v)
{
	struct ibv_context *ctx = ibv_open_device(v->a.id->verbs->device);

	if (ctx)
		ibv_close_device(ctx);
}

static void look_up_while_verbs_cancel(struct vt *v)
{
	struct rdma_addrinfo *ai;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	if (!rdma_getaddrinfo("localhost", "7174", NULL, &ai))
		rdma_freeaddrinfo(ai);
	ibv_query_device(v->a.id->verbs, &attr);
	ibv_query_port(v->a.id->verbs, 1, &port);
}

static void make_verbs_cancel_queue_pair(struct vt *v)
{
	struct ibv_qp_init_attr init = { .send_cq = v->a.cq,
					 .recv_cq = v->a.cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(v->a.id->pd, &init);

	if (qp)
		ibv_destroy_qp(qp);
}

static void query(struct vt *v)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ibv_query_qp(v->a.id->qp, &attr, IBV_QP_STATE, &init);
}

static void disconnect_verbs_cancel(struct vt *v)
{
	rdma_disconnect(v->a.id);
}

static const struct call {
	const char *name;
	void (*run)(struct vt *v);
} calls[] = {
	{ "ibv_post_send", post_verbs_cancel_send },
	{ "ibv_post_recv", post_verbs_cancel_recv },
	{ "ibv_poll_cq", poll_verbs_cancel_cq },
	{ "ibv_req_notify_cq", arm },
	{ "ibv_reg_mr, ibv_dereg_mr", use_verbs_cancel_memory },
	{ "ibv_query_qp", query },
	{ "rdma_getaddrinfo, ibv_query_port", look_up_while_verbs_cancel },
	{ "ibv_open_device, ibv_close_device", open_verbs_cancel_device },
	{ "rdma_bind_addr, rdma_resolve_addr", make_verbs_cancel_identifier },
	{ "rdma_disconnect", disconnect_verbs_cancel },
};

struct cancelled {
	struct vt *v;
	const struct call *call;
	bool returned;
};

/* The request to cancel stands when the call begins: the thread ends where it may first. */
static void *run_verbs_cancel_cancelled(void *arg)
{
	struct cancelled *c = arg;

	pthread_cancel(pthread_self());
	c->call->run(c->v);
	c->returned = true;
	pthread_testcancel();
	return NULL;
}

VT_TLS_TEST(verbs_cancel, contact_03_no_lock_stays_taken)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct cancelled c = { .v = &v, .call = &calls[i] };
		void *how;
		pthread_t t;

		cr_assert_eq(pthread_create(&t, NULL, run_verbs_cancel_cancelled, &c), 0);
		cr_assert_eq(pthread_join(t, &how), 0);
		cr_expect_eq(how, PTHREAD_CANCELED, "%s", calls[i].name);
		cr_expect(c.returned, "%s did not return, and left what it had", calls[i].name);
		/* each of these would wait for ever for a lock that nobody gives back */
		for (size_t k = 0; k + 1 < sizeof calls / sizeof *calls; k++)
			calls[k].run(&v);
		make_verbs_cancel_queue_pair(&v);
		make_verbs_cancel_identifier(&v);
	}
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}
