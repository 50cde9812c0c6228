/* SPDX-License-Identifier: BSD-2-Clause */
/* The three calls that wait for events: against destruction, signals and stops. */
#include "verbs/cm/vd_event.h"
#include "verbs/vt.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- completion queues that come and go next to the thread that gets their events ---- */

#define GOINGS 300

struct getter {
	struct ibv_comp_channel *ch;
	unsigned seen; /* atomic */
	bool stop;
};

/* Without blocking, so that it can be asked to stop. */
static void *get_events(void *arg)
{
	struct getter *g = arg;
	struct ibv_cq *cq;
	void *user;

	while (!__atomic_load_n(&g->stop, __ATOMIC_ACQUIRE)) {
		if (!vt_readable(g->ch->fd, 10) || ibv_get_cq_event(g->ch, &cq, &user))
			continue;
		cr_assert_eq(user, g);
		ibv_ack_cq_events(cq, 1);
		__atomic_add_fetch(&g->seen, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A flushed receive is an event; the queue goes while somebody may be getting it. */
static void come_and_go_in_verbs_waits(struct vt_dev *d, struct getter *g)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_cq *cq = ibv_create_cq(d->ctx, 16, g, g->ch, 0);
	struct ibv_qp_init_attr attr = vt_rc(d);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_qp *qp;

	cr_assert(cq);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(d->pd, &attr);
	cr_assert(qp);
	cr_assert_eq(ibv_req_notify_cq(cq, 0), 0);
	cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
	cr_assert_eq(ibv_modify_qp(qp, &err, IBV_QP_STATE), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
}

Test(verbs_waits, attack_10_queues_go_while_their_events_are_got, .timeout = 60)
{
	struct getter g = { 0 };
	pthread_t t[2];
	struct vt_dev d;

	vt_dev_open(&d);
	g.ch = ibv_create_comp_channel(d.ctx);
	cr_assert(g.ch);
	cr_assert_eq(fcntl(g.ch->fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, get_events, &g), 0);
	for (int i = 0; i < GOINGS; i++)
		come_and_go_in_verbs_waits(&d, &g);
	/* A queue that is gone leaves no event behind. */
	cr_expect(!vt_readable(g.ch->fd, 0));
	__atomic_store_n(&g.stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	cr_assert_leq(g.seen, GOINGS);
	cr_expect_eq(ibv_destroy_comp_channel(g.ch), 0);
	vt_dev_close(&d);
}

/* To close what another thread reads is a race to ThreadSanitizer, whatever follows. */
#ifndef __SANITIZE_THREAD__

static void *get_for_ever(void *arg)
{
	struct ibv_cq *cq;
	void *user;

	ibv_get_cq_event(arg, &cq, &user);
	return NULL;
}

static bool waited_on(const struct ibv_comp_channel *ch)
{
	const struct vd_channel *c = vd_of(ch, const struct vd_channel, c);

	return __atomic_load_n(&c->holders, __ATOMIC_ACQUIRE) == 2;
}

/* A channel may go while a thread waits on it, which is cancelled then. */
Test(verbs_waits, attack_10_a_channel_goes_while_it_is_waited_on, .timeout = 60)
{
	struct ibv_comp_channel *ch;
	struct vt_dev d;
	pthread_t t;

	vt_dev_open(&d);
	for (int i = 0; i < 20; i++) {
		ch = ibv_create_comp_channel(d.ctx);
		cr_assert_eq(pthread_create(&t, NULL, get_for_ever, ch), 0);
		while (!waited_on(ch))
			sched_yield();
		cr_expect_eq(ibv_destroy_comp_channel(ch), 0);
		cr_assert_eq(pthread_cancel(t), 0);
		pthread_join(t, NULL);
	}
	vt_dev_close(&d);
}

#endif

/* ---- signals and stops ---- */

struct waiter {
	const struct event_kind *kind;
	struct vt v;
	pid_t tid; /* atomic: 0 until it runs */
	int result, error;
};

struct event_kind {
	const char *name;
	int (*wait)(struct waiter *w);
	void (*cause)(struct waiter *w); /* such an event comes */
};

static int wait_verbs_waits_cq(struct waiter *w)
{
	struct ibv_cq *cq;
	void *user;
	int ret = ibv_get_cq_event(w->v.a.cc, &cq, &user);

	if (!ret)
		ibv_ack_cq_events(cq, 1);
	return ret;
}

static void cause_cq(struct waiter *w)
{
	struct ibv_wc wc;

	cr_assert_eq(ibv_req_notify_cq(w->v.a.cq, 0), 0);
	cr_assert_eq(vt_post(&w->v.a, 1, IBV_WR_RDMA_WRITE, 8, &w->v.b), 0);
	while (!ibv_poll_cq(w->v.a.cq, 1, &wc))
		;
}

static int wait_cm(struct waiter *w)
{
	struct rdma_cm_event *e;
	int ret = rdma_get_cm_event(w->v.a.ch, &e);

	if (!ret)
		rdma_ack_cm_event(e);
	return ret;
}

static void cause_cm(struct waiter *w)
{
	struct vd_id *id = vd_of(w->v.a.id, struct vd_id, id);

	ddps_lock(&id->p->lock);
	cr_assert_eq(vd_event_post(id, NULL, RDMA_CM_EVENT_ADDR_CHANGE, 0, NULL), 0);
	ddps_unlock(&id->p->lock);
}

static int wait_async(struct waiter *w)
{
	struct ibv_async_event e;
	int ret = ibv_get_async_event(w->v.a.id->verbs, &e);

	if (!ret)
		ibv_ack_async_event(&e);
	return ret;
}

static void cause_async(struct waiter *w)
{
	struct vd_process *p = vd_of(w->v.a.id, struct vd_id, id)->p;

	ddps_lock(&p->lock);
	vd_async_post(w->v.a.id->verbs, IBV_EVENT_COMM_EST, w->v.a.id->qp);
	ddps_unlock(&p->lock);
}

static const struct event_kind kinds[] = {
	{ "ibv_get_cq_event", wait_verbs_waits_cq, cause_cq },
	{ "rdma_get_cm_event", wait_cm, cause_cm },
	{ "ibv_get_async_event", wait_async, cause_async },
};
#define NKINDS (sizeof kinds / sizeof *kinds)

static void *wait_once(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	errno = 0;
	w->result = w->kind->wait(w);
	w->error = errno;
	return NULL;
}

/* The state of a thread, the letter in its stat file. */
static char get_verbs_waits_state_of(pid_t pid, pid_t tid)
{
	char path[64], line[256], *at;
	char state = '?';
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof line, f) && (at = strrchr(line, ')')) && at[1])
		state = at[2];
	if (f)
		fclose(f);
	return state;
}

static void until_state(pid_t pid, const pid_t *tid, char state)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	unsigned in_a_row = 0;

	/* A thread may be asleep for a lock for a moment on its way into the wait. */
	for (int i = 0; i < VT_MS && in_a_row < 3; i++) {
		const pid_t t = __atomic_load_n(tid, __ATOMIC_ACQUIRE);

		in_a_row = t && get_verbs_waits_state_of(pid, t) == state ? in_a_row + 1 : 0;
		nanosleep(&moment, NULL);
	}
	cr_assert_eq(in_a_row, 3, "not in state %c", state);
}

static void start_verbs_waits(struct waiter *w, const struct event_kind *kind, pthread_t *t)
{
	w->kind = kind;
	w->tid = 0;
	cr_assert_eq(pthread_create(t, NULL, wait_once, w), 0);
	until_state(getpid(), &w->tid, 'S');
}

/* @what is for the message, which one framework does not print. */
static void expect_restart(struct waiter *w, pthread_t t, __attribute__((unused)) const char *what)
{
	until_state(getpid(), &w->tid, 'S');
	w->kind->cause(w);
	pthread_join(t, NULL);
	cr_expect_eq(w->result, 0, "%s after %s: %s", w->kind->name, what, strerror(w->error));
}

/* Under ThreadSanitizer handlers run when it likes. */
#ifndef __SANITIZE_THREAD__

static unsigned handled; /* atomic */

static void handler(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void install_waits_handler(int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };

	cr_assert_eq(sigaction(SIGUSR1, &act, NULL), 0);
}

static void interrupt(pthread_t t)
{
	const unsigned before = __atomic_load_n(&handled, __ATOMIC_RELAXED);

	cr_assert_eq(pthread_kill(t, SIGUSR1), 0);
	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) == before)
		sched_yield();
}

Test(verbs_waits, attack_11_a_handler_with_sa_restart_ends_no_wait, .timeout = 60)
{
	struct waiter w = { 0 };
	pthread_t t;

	vt_init(&w.v);
	vt_up(&w.v);
	for (size_t i = 0; i < NKINDS; i++) {
		install_waits_handler(SA_RESTART);
		start_verbs_waits(&w, &kinds[i], &t);
		interrupt(t);
		expect_restart(&w, t, "a handler with SA_RESTART");
		/* One without it does: some programs set a timer for that. */
		install_waits_handler(0);
		start_verbs_waits(&w, &kinds[i], &t);
		interrupt(t);
		pthread_join(t, NULL);
		cr_expect_eq(w.result, -1, "%s", kinds[i].name);
		cr_expect_eq(w.error, EINTR, "%s: %s", kinds[i].name, strerror(w.error));
	}
	vt_down(&w.v);
}
#endif

/* What a connection of a peer that does not answer is bound by; each has its test below the drop-in. */
Test(verbs_waits, connections_have_deadlines)
{
	struct ddps_conn_param param;

	cr_assert_not_null(vd_process());
	vd_conn_param(vd_process(), NULL, &param);
	cr_expect_eq(param.connect_ms, 10000 + vd_process()->cfg.retry_ms);
	cr_expect_eq(vd_process()->cfg.retry_ms, 1000);
	cr_expect_eq(param.setup_ms, 60000);
	cr_expect_eq(param.first_fpdu_ms, 60000);
	cr_expect_eq(param.close_ms, 2000);
}

/* Nothing is asked of the network, so the answer is there whatever time-out is given. */
Test(verbs_waits, resolving_waits_for_nothing)
{
	static const int ms[] = { 0, 1, 2000, -1 };
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	v.a.ch = rdma_create_event_channel();
	for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
		cr_assert_eq(rdma_create_id(v.a.ch, &v.a.id, NULL, RDMA_PS_TCP), 0);
		cr_assert_eq(rdma_resolve_addr(v.a.id, NULL, (struct sockaddr *)&v.addr, ms[i]), 0);
		cr_assert(vt_readable(v.a.ch->fd, 0), "%d: inside the call", ms[i]);
		vt_expect(v.a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
		cr_assert_eq(rdma_resolve_route(v.a.id, ms[i]), 0);
		cr_assert(vt_readable(v.a.ch->fd, 0), "%d: inside the call", ms[i]);
		vt_expect(v.a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
		cr_assert_eq(rdma_destroy_id(v.a.id), 0);
	}
	v.a.id = NULL;
	vt_down(&v);
}

/* What a shell does with ^Z and fg, or a debugger. */
static void stop_and_continue(pid_t tid)
{
	const pid_t parent = getpid();
	pid_t child = fork();
	int status;

	cr_assert_geq(child, 0);
	if (!child) {
		const struct timespec moment = { .tv_nsec = 1000000 };

		kill(parent, SIGSTOP);
		for (int i = 0; i < VT_MS && get_verbs_waits_state_of(parent, tid) != 'T'; i++)
			nanosleep(&moment, NULL);
		kill(parent, SIGCONT);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0)
		cr_assert_eq(errno, EINTR);
}

Test(verbs_waits, attack_11_a_stop_ends_no_wait, .timeout = 60)
{
	struct waiter w = { 0 };
	pthread_t t;

	vt_init(&w.v);
	vt_up(&w.v);
	for (size_t i = 0; i < NKINDS; i++) {
		start_verbs_waits(&w, &kinds[i], &t);
		stop_and_continue(w.tid);
		expect_restart(&w, t, "a stop");
	}
	vt_down(&w.v);
}
