/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals each millisecond, forks and too few descriptors, in the midst of everything. */
#include "support/child.h"
#include "support/descriptor.h"
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>

/* ---- signals ---- */

static volatile sig_atomic_t signals;

static void count_verbs_storm(int signo)
{
	(void)signo;
	signals = signals + 1;
}

/* A handler without SA_RESTART. */
static void storm(bool on)
{
	const struct itimerval ms = { { 0, on ? 1000 : 0 }, { 0, on ? 1000 : 0 } };
	const struct sigaction sa = { .sa_handler = count_verbs_storm };

	if (on)
		cr_assert_eq(sigaction(SIGALRM, &sa, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &ms, NULL), 0);
}

/* The next event; a signal is the only thing that may come before. */
static struct rdma_cm_event *next_verbs_storm_event(struct rdma_event_channel *ch,
						    enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	while (rdma_get_cm_event(ch, &e))
		cr_assert_eq(errno, EINTR, "%m");
	cr_assert_eq(e->event, type, "%s (%d) came instead of %s", rdma_event_str(e->event),
		     e->status, rdma_event_str(type));
	return e;
}

static void pass_verbs_storm(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	cr_assert_eq(rdma_ack_cm_event(next_verbs_storm_event(ch, type)), 0);
}

static void await_wc(struct vt_end *e, uint64_t wr_id)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *user;

	cr_assert_eq(ibv_req_notify_cq(e->cq, 0), 0);
	while (!ibv_poll_cq(e->cq, 1, &wc)) {
		while (ibv_get_cq_event(e->cc, &cq, &user))
			cr_assert_eq(errno, EINTR, "%m");
		ibv_ack_cq_events(cq, 1);
		cr_assert_eq(ibv_req_notify_cq(e->cq, 0), 0);
	}
	cr_assert_eq(wc.wr_id, wr_id);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
}

static void connect_and_go(struct vt *v)
{
	struct rdma_cm_event *e;

	v->a.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v->a.ch, &v->a.id, v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(v->a.id, NULL, (struct sockaddr *)&v->addr, 2000), 0, "%m");
	pass_verbs_storm(v->a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(v->a.id, 2000), 0, "%m");
	pass_verbs_storm(v->a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	vt_equip(v, &v->a);
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0, "%m");
	e = next_verbs_storm_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	v->b.id = e->id;
	rdma_ack_cm_event(e);
	vt_equip(v, &v->b);
	cr_assert_eq(vt_recv(&v->b, 7, 0, 4096), 0);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0, "%m");
	pass_verbs_storm(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	pass_verbs_storm(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(vt_post(&v->a, 8, IBV_WR_SEND, 4096, NULL), 0);
	await_wc(&v->b, 7);
	await_wc(&v->a, 8);
	cr_assert_eq(rdma_disconnect(v->a.id), 0, "%m");
	pass_verbs_storm(v->a.ch, RDMA_CM_EVENT_DISCONNECTED);
	pass_verbs_storm(v->b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_end_down(&v->a);
	vt_end_down(&v->b);
	rdma_destroy_event_channel(v->a.ch);
	v->a.ch = NULL;
}

VT_TEST(verbs_storm, signals_end_waits_and_nothing_else)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	storm(true);
	for (int i = 0; i < 20 || signals < 100; i++)
		connect_and_go(&v);
	storm(false);
	vt_down(&v);
}

/* ---- an identifier that goes while its channel is waited on ---- */

static void *wait_for_one_verbs_storm(void *arg)
{
	struct rdma_event_channel *ch = arg;
	struct rdma_cm_event *e;

	return rdma_get_cm_event(ch, &e) ? NULL : e;
}

static void destroyed_while_waited_for(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					.sin_port = htons(9) };
	struct rdma_cm_id *gone, *stays;
	pthread_t waiter;
	void *event;

	cr_assert_not_null(ch);
	cr_assert_eq(rdma_create_id(ch, &gone, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_create_id(ch, &stays, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(pthread_create(&waiter, NULL, wait_for_one_verbs_storm, ch), 0);
	until_others_sleep();
	cr_assert_eq(rdma_destroy_id(gone), 0);
	/* The waiter waits on, and gets what is the other's. */
	cr_assert_eq(rdma_resolve_addr(stays, NULL, (struct sockaddr *)&to, 1000), 0, "%m");
	pthread_join(waiter, &event);
	cr_assert_not_null(event);
	cr_expect_eq(((struct rdma_cm_event *)event)->id, stays);
	cr_assert_eq(rdma_ack_cm_event(event), 0);
	cr_assert_eq(rdma_destroy_id(stays), 0);
	rdma_destroy_event_channel(ch);
}

VT_TEST(verbs_storm, an_identifier_goes_while_its_channel_is_waited_on)
{
	for (int i = 0; i < 20; i++)
		destroyed_while_waited_for();
}

/* ---- forks ---- */

#define CALLERS 3
#define ROUNDS	12

static unsigned running; /* atomic */

static void *come_and_go_in_verbs_storm(void *arg)
{
	struct vt v;

	(void)arg;
	vt_init(&v);
	vt_listen(&v);
	for (int i = 0; i < ROUNDS; i++)
		connect_and_go(&v);
	vt_down(&v);
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Whatever the parent's threads were at: a child gets to its end, by exit() as well. */
VT_TEST(verbs_storm, forks_while_connections_come_and_go)
{
	pthread_t thread[CALLERS];
	unsigned forks = 0;

	running = CALLERS;
	for (int i = 0; i < CALLERS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, come_and_go_in_verbs_storm, NULL), 0);
	while (__atomic_load_n(&running, __ATOMIC_RELAXED)) {
		const pid_t pid = fork();

		cr_assert_geq(pid, 0);
		if (!pid)
			_exit(0);
		cr_assert_eq(await_child_status(pid), 0);
		forks++;
	}
	for (int i = 0; i < CALLERS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_gt(forks, 0);
}

/* A child begins when this lets it, in front of what the library does in it. */
static int held[2];

static void wait_for_leave(void)
{
	char c;

	close(held[1]);
	if (read(held[0], &c, 1)) /* the end */
		_exit(1);
}

static void *let_the_child_begin(void *arg)
{
	(void)arg;
	until_others_sleep();
	close(held[1]);
	return NULL;
}

/* A child that has not run yet has a copy of the socket that keeps the port of a bound identifier. */
VT_TEST(verbs_storm, a_bound_port_is_listened_on_after_a_fork)
{
	pthread_t other;
	struct vt v;
	pid_t pid;

	cr_assert_eq(pipe(held), 0);
	cr_assert_eq(pthread_atfork(NULL, NULL, wait_for_leave), 0);
	vt_init(&v);
	v.b.ch = rdma_create_event_channel();
	cr_assert_not_null(v.b.ch);
	cr_assert_eq(rdma_create_id(v.b.ch, &v.listen, &v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(v.listen, (struct sockaddr *)&v.addr), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(0);
	cr_assert_eq(pthread_create(&other, NULL, let_the_child_begin, NULL), 0);
	cr_expect_eq(rdma_listen(v.listen, 1), 0, "%m");
	pthread_join(other, NULL);
	cr_expect_eq(await_child_status(pid), 0);
	vt_down(&v);
}

/* ---- descriptors ---- */

#define MOST_MS 200

/* As far as it gets.  Each call that fails says that there are too few of them. */
static bool step_verbs_storm(bool done)
{
	if (!done && errno != EMFILE && errno != ENOMEM)
		_exit(100 + (errno & 63));
	return done;
}

static bool took(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
		 struct rdma_cm_id **id)
{
	struct rdma_cm_event *e;
	bool is;

	if (!vt_readable(ch->fd, MOST_MS) || rdma_get_cm_event(ch, &e))
		return false;
	is = e->event == type;
	if (is && id)
		*id = e->id;
	rdma_ack_cm_event(e);
	return is;
}

static bool equip_verbs_storm(struct vt *v, struct vt_end *e)
{
	struct ibv_qp_init_attr attr = v->init;

	if (!step_verbs_storm((e->cc = ibv_create_comp_channel(e->id->verbs))) ||
	    !step_verbs_storm((e->cq = ibv_create_cq(e->id->verbs, 64, e, e->cc, 0))))
		return false;
	attr.send_cq = attr.recv_cq = e->cq;
	return step_verbs_storm(!rdma_create_qp(e->id, NULL, &attr)) &&
	       step_verbs_storm((e->mr = ibv_reg_mr(e->id->pd, e->buf, sizeof e->buf,
						    IBV_ACCESS_LOCAL_WRITE)));
}

static bool get_up(struct vt *v)
{
	if (!step_verbs_storm((v->b.ch = rdma_create_event_channel())) ||
	    !step_verbs_storm(!rdma_create_id(v->b.ch, &v->listen, v, RDMA_PS_TCP)) ||
	    !step_verbs_storm(!rdma_bind_addr(v->listen, (struct sockaddr *)&v->addr)) ||
	    !step_verbs_storm(!rdma_listen(v->listen, 4)))
		return false;
	((struct sockaddr_in *)&v->addr)->sin_port = rdma_get_src_port(v->listen);
	if (!step_verbs_storm((v->a.ch = rdma_create_event_channel())) ||
	    !step_verbs_storm(!rdma_create_id(v->a.ch, &v->a.id, v, RDMA_PS_TCP)) ||
	    !step_verbs_storm(
		    !rdma_resolve_addr(v->a.id, NULL, (struct sockaddr *)&v->addr, 1000)) ||
	    !took(v->a.ch, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) ||
	    !step_verbs_storm(!rdma_resolve_route(v->a.id, 1000)) ||
	    !took(v->a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) || !equip_verbs_storm(v, &v->a) ||
	    !step_verbs_storm(!rdma_connect(v->a.id, &v->connect)))
		return false;
	if (!took(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST, &v->b.id))
		return false;
	return equip_verbs_storm(v, &v->b) && step_verbs_storm(!rdma_accept(v->b.id, &v->accept)) &&
	       took(v->a.ch, RDMA_CM_EVENT_ESTABLISHED, NULL) &&
	       took(v->b.ch, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static void limit_verbs_storm(rlim_t soft)
{
	struct rlimit r = { soft, 4096 };

	if (setrlimit(RLIMIT_NOFILE, &r))
		_exit(90);
}

/* With @room descriptors.  The library raises the limit with its first object, so that one is made
 * before, of the smallest kind; or that is where it ends. */
static void with_room(int room, bool first)
{
	struct rdma_event_channel *ch = first ? NULL : rdma_create_event_channel();
	struct rlimit hard = { (rlim_t)(find_next_fd() + room), (rlim_t)(find_next_fd() + room) };
	struct vt v;
	bool up;

	vt_init(&v);
	if (first) {
		if (setrlimit(RLIMIT_NOFILE, &hard))
			_exit(91);
		up = get_up(&v);
		vt_down(&v);
		_exit(up ? 1 : 0);
	}
	limit_verbs_storm(hard.rlim_cur);
	up = get_up(&v);
	limit_verbs_storm(4096);
	vt_down(&v);
	/* Nothing is broken for good. */
	vt_init(&v);
	vt_up(&v);
	vt_down(&v);
	rdma_destroy_event_channel(ch);
	_exit(up ? 1 : 0);
}

static void less_and_less(bool first)
{
	int status = 0;

	for (int room = 0; !status; room++) {
		const pid_t pid = fork();

		if (!pid)
			with_room(room, first);
		status = await_child_status(pid);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "room for %d: %#x", room,
			  status);
		cr_assert_lt(room, 100);
	}
}

VT_TEST(verbs_storm, descriptors_run_out_at_each_step)
{
	less_and_less(false);
}

VT_TEST(verbs_storm, descriptors_run_out_from_the_start_on)
{
	less_and_less(true);
}
