/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's context, the thread that hands its events out, and the settings. */
#include "common/system/thread.h"
#include "verbs/cm/vd_event.h"
#include "verbs/ib/vd_memory.h"
#include "verbs/ud/vd_ud.h"
#include "verbs/vd.h"
#include "verbs/vd_secure.h"
#include "common/system/say.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FD_WANTED    65536
#define SETTLE_MS    1000
#define HOLD_MS	     50
#define TIMEWAIT_MS  2000 /* what an adapter waits by the timers of rdma_cm */
#define TELL_SECONDS 2
#define AGAIN_NS     1000000
#define CHECK_STATUS 66 /* of a program that --check has found mistakes of: docs/check.md */

/* The global state of the drop-in: its interface has no argument that could carry it. */
static struct {
	struct ddps_mutex lock;
	struct vd_process *p;
	struct vd_config cfg;
	bool configured; /* atomic */
	struct ibv_device device;
	struct vd_reserved reserved;
} global = { .lock = DDPS_MUTEX(DDPS_LOCK_GLOBAL) };

static void make_device(struct ibv_device *dev, const char *name, bool roce)
{
	dev->node_type = roce ? IBV_NODE_CA : IBV_NODE_RNIC;
	dev->transport_type = roce ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
	snprintf(dev->name, sizeof dev->name, "%s", name);
	snprintf(dev->dev_name, sizeof dev->dev_name, "uverbs0");
	snprintf(dev->dev_path, sizeof dev->dev_path, "/sys/class/infiniband_verbs/uverbs0");
	snprintf(dev->ibdev_path, sizeof dev->ibdev_path, "/sys/class/infiniband/%s", name);
}

/* A child must not find the lock held by a thread that it does not have. */
static void lock_process_for_fork(void)
{
	ddps_lock(&global.lock);
}

static void unlock_process_after_fork(void)
{
	ddps_unlock(&global.lock);
}

static void reset_process_in_child(void)
{
	struct vd_id *id;

	LIST_FOREACH(id, &global.reserved, reserved_link) {
		vd_close(id->p, id->reserved);
		id->reserved = -1;
	}
	LIST_INIT(&global.reserved);
	if (global.p) {
		vd_ud_in_child(global.p->ud);
		vd_close(global.p, global.p->link_fd);
		vd_count_in_child(global.p);
		vd_mark_in_child(global.p);
		global.p->inherited = true;
	}
	ddps_unlock(&global.lock);
}

struct vd_reserved *vd_forks_hold(void)
{
	ddps_lock(&global.lock);
	return &global.reserved;
}

void vd_forks_release(void)
{
	ddps_unlock(&global.lock);
}

const struct vd_config *vd_config(void)
{
	if (__atomic_load_n(&global.configured, __ATOMIC_ACQUIRE))
		return &global.cfg;
	ddps_lock(&global.lock);
	if (!global.configured) {
		vd_config_read(&global.cfg);
		if (vd_front_fill(&vd_front, &global.cfg))
			global.cfg.bad = true;
		make_device(&global.device, global.cfg.name, global.cfg.roce);
		pthread_atfork(lock_process_for_fork, unlock_process_after_fork,
			       reset_process_in_child);
	}
	__atomic_store_n(&global.configured, true, __ATOMIC_RELEASE);
	ddps_unlock(&global.lock);
	return &global.cfg;
}

struct ibv_device *vd_device(void)
{
	vd_config();
	return &global.device;
}

/* The program has closed the descriptors.  Whoever waits for what they would have brought learns of
 * that. */
static void let_process_go(struct vd_process *p)
{
	vd_rob(p);
	ddps_lock(&p->lock);
	pthread_cond_broadcast(&p->ended);
	pthread_cond_broadcast(&p->acked);
	ddps_unlock(&p->lock);
}

void vd_poll_again(void)
{
	static const struct timespec moment = { .tv_nsec = AGAIN_NS };

	if (errno != EINTR) /* the system has no memory */
		nanosleep(&moment, NULL);
}

/* Hands events to identifiers as long as the process lives. */
static void *serve_process(void *arg)
{
	struct vd_process *p = arg;
	struct pollfd fd[] = { { ddps_event_fd(p->ctx), POLLIN, 0 },
			       { p->tell_fd, POLLIN, 0 },
			       { p->link_fd, POLLIN, 0 },
			       { p->mark.fd[0], 0, 0 },
			       { vd_count_fd(p), POLLIN, 0 } };
	struct ddps_event ev;
	int ms = -1; /* until something is due */

	for (;;) {
		if (poll(fd, 5, ms) < 0) {
			vd_poll_again();
			continue;
		}
		if ((fd[0].revents | fd[1].revents | fd[2].revents | fd[4].revents) & POLLNVAL ||
		    fd[3].revents || !vd_mine(p)) {
			let_process_go(p);
			return NULL;
		}
		if (fd[1].revents && !__atomic_load_n(&p->ending, __ATOMIC_ACQUIRE))
			return NULL; /* ... and has given its number to a file of its own */
		if (fd[1].revents) {
			vd_stats_tell(p->ctx);
			vd_ud_stats_tell(p);
			sem_post(&p->told);
			return NULL;
		}
		if (fd[4].revents)
			vd_count_answer(p);
		/* Taken under the lock, so that what an event names cannot go before it is served. */
		ddps_lock(&p->lock);
		while (ddps_event_get(p->ctx, &ev) == 1)
			vd_conn_event(p, &ev);
		ms = vd_held_serve(p);
		if (fd[2].revents)
			vd_ports_look(p);
		ddps_unlock(&p->lock);
	}
}

int vd_thread(void *(*run)(void *), void *arg)
{
	pthread_attr_t detached;
	pthread_t thread;
	int err;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	err = ddps_thread_start(&thread, &detached, run, arg);
	pthread_attr_destroy(&detached);
	return err;
}

/* Programs made for an adapter do not count on a descriptor for each queue pair and queue. */
static void raise_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur >= FD_WANTED)
		return;
	lim.rlim_cur = lim.rlim_max < FD_WANTED ? lim.rlim_max : FD_WANTED;
	if (setrlimit(RLIMIT_NOFILE, &lim))
		return; /* it works with what there is */
}

static const char *why_not_shown(int err)
{
	if (err == DDPS_E_ACCESS)
		return "it is somebody else's, or others may use it";
	return err == DDPS_E_SYSTEM ? strerror(errno) : ddps_strerror(err);
}

/* For sessctl stat.  Where it cannot, there is only less to see. */
static void show_process(struct vd_process *p)
{
	const char *where = *p->cfg.watch ? p->cfg.watch : NULL;
	int err = ddps_watch_open(&p->watch, p->ctx, p->cfg.name, where);

	if (!err)
		ddps_watch_add(p->watch, "datagrams", vd_ud_show, p);
	else if (where)
		ddps_say("ddpsess: DDPSESS_WATCH=%s: %s; nothing is shown there\n", where,
			 why_not_shown(err));
	else
		ddps_say("ddpsess: /tmp/ddpsess-%u: %s; sessctl stat does not show this program "
			 "(DDPSESS_WATCH names another directory)\n",
			 (unsigned)geteuid(), why_not_shown(err));
}

/* Nothing runs in it, and it has no context. */
static struct vd_process *make_process(void)
{
	struct vd_process *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->pid = getpid();
	p->cfg = global.cfg;
	p->hold_ms = HOLD_MS;
	p->timewait_ms = TIMEWAIT_MS;
	STAILQ_INIT(&p->unacked);
	ddps_mutex_init(&p->lock, DDPS_LOCK_PROCESS);
	ddps_mutex_init(&p->shared_lock, DDPS_LOCK_SHARED);
	ddps_mutex_init(&p->named_lock, DDPS_LOCK_NAMED);
	ddps_mutex_init(&p->oob_lock, DDPS_LOCK_OOB);
	vd_moved_init(p);
	pthread_cond_init(&p->acked, NULL);
	pthread_cond_init(&p->ended, NULL);
	sem_init(&p->told, 0, 0);
	sem_init(&p->unwatched, 0, 0);
	sem_init(&p->counted, 0, 0);
	p->tell_fd = eventfd(0, EFD_CLOEXEC);
	if (p->tell_fd < 0) {
		free(p);
		return NULL;
	}
	vd_mark_open(p);
	return p;
}

static struct vd_process *start_process(void)
{
	struct ddps_ctx_attr attr;
	struct vd_process *p;
	int err;

	if (global.cfg.bad) {
		errno = EINVAL; /* vd_config.c has said why */
		return NULL;
	}
	p = make_process();
	if (!p)
		return NULL;
	ddps_ctx_attr_init(&attr);
	err = vd_secure_open(&p->cfg, &attr.secure);
	if (err)
		goto no_keys;
	attr.thread = true;
	attr.verbs_rules = true;
	attr.gather = true;	 /* programs post one by one what an adapter fetches by itself */
	attr.poll_drives = true; /* who polls need not wait for the thread to be woken */
	vd_capture_open(p, &attr);
	err = vd_errno(ddps_ctx_new(&p->ctx, &attr));
	ddps_secure_close(attr.secure); /* the context keeps it */
	if (err)
		goto no_context;
	raise_limit();
	vd_ports_open(p);
	vd_count_open(p);
	err = vd_thread(serve_process, p);
	if (err)
		goto no_thread;
	vd_fault_watch(p);
	show_process(p);
	return p;

no_thread:
	if (p->link_fd >= 0)
		close(p->link_fd);
	if (p->count)
		vd_count_end(p);
	ddps_ctx_free(p->ctx);
no_context:
	ddps_capture_close(p->capture);
no_keys:
	close(p->tell_fd);
	vd_mark_close(p);
	free(p);
	errno = err;
	return NULL;
}

struct vd_process *vd_process(void)
{
	struct vd_process *p;

	vd_config();
	ddps_lock(&global.lock);
	if (!global.p || !vd_mine(global.p)) {
		/* The parent's objects are useless here; they are left alone. */
		global.p = start_process();
	}
	p = global.p;
	ddps_unlock(&global.lock);
	return p;
}

/* Whatever it is, it is done soon or never.  Return: 0 or errno. */
static int await_semaphore(sem_t *done)
{
	struct timespec until;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TELL_SECONDS;
	do
		err = sem_clockwait(done, CLOCK_MONOTONIC, &until) ? errno : 0;
	while (err == EINTR);
	return err;
}

static void *close_watch(void *arg)
{
	struct vd_process *p = arg;

	ddps_watch_close(p->watch);
	sem_post(&p->unwatched);
	return NULL;
}

static void *end_count(void *arg)
{
	struct vd_process *p = arg;

	vd_count_end(p);
	sem_post(&p->counted);
	return NULL;
}

/*
 * A signal handler may have called exit() in the midst of a call of the library, whose lock is held
 * then for good.  So another thread takes it, and is not waited for without end.
 */
static void await_stats(struct vd_process *p)
{
	static const char none[] = "ddpsess: no counters: exit() came in the midst of a call\n";
	uint64_t one = 1;

	__atomic_store_n(&p->ending, true, __ATOMIC_RELEASE);
	if (!vd_mine(p))
		return;
	if (write(p->tell_fd, &one, sizeof one) < 0)
		return;
	if (await_semaphore(&p->told) && write(STDERR_FILENO, none, sizeof none - 1) < 0)
		return;
}

/* The end of the process: what was sent must not go with it, which an adapter would see to. */
__attribute__((destructor)) static void finish(void)
{
	if (!global.p || global.p->pid != getpid())
		return;
	if (global.p->watch && !vd_thread(close_watch, global.p))
		await_semaphore(&global.p->unwatched); /* see await_stats */
	ddps_ctx_settle(global.p->ctx, SETTLE_MS);
	if (global.p->count && !vd_thread(end_count, global.p))
		await_semaphore(&global.p->counted); /* see await_stats */
	if (global.cfg.stats)
		await_stats(global.p);
	vd_capture_tell(global.p);
	if (vd_front.end()) {
		fflush(NULL);
		_exit(CHECK_STATUS);
	}
}

struct vd_process *vd_fault_process(void)
{
	return global.p;
}

void vd_fault_inherit(struct vd_process *p)
{
	p->old_segv = global.p->old_segv;
	p->old_bus = global.p->old_bus;
}

uint32_t vd_number(void)
{
	struct vd_process *p = vd_process();

	/* 0 and 1 are special on InfiniBand. */
	return 2 + __atomic_fetch_add(&p->last_number, 1, __ATOMIC_RELAXED) % (VD_QPN_MASK - 2);
}

void vd_eventfd_take(int fd)
{
	uint64_t one;
	struct iovec iov = { &one, sizeof one };

	/* The descriptor is the program's, who may want it blocking.  Kernels that cannot do this
	 * (before 5.8) leave one wakeup too many, which its reader bears. */
	if (preadv2(fd, &iov, 1, -1, RWF_NOWAIT) < 0)
		return;
}

int vd_errno(int err)
{
	if (vd_is_insecure(err))
		return vd_secure_errno(err);
	switch (err) {
	case 0:
		return 0;
	case DDPS_E_NOMEM:
	case DDPS_E_LIMIT:
		return ENOMEM;
	case DDPS_E_SYSTEM:
		return errno ? errno : EIO;
	case DDPS_E_ACCESS:
		return EACCES;
	case DDPS_E_ADDRESS:
		return EADDRNOTAVAIL;
	case DDPS_E_UNSUPPORTED:
		return EOPNOTSUPP;
	case DDPS_E_BUSY:
		return EBUSY;
	case DDPS_E_AGAIN:
		return EAGAIN;
	case DDPS_E_TIMEDOUT:
		return ETIMEDOUT;
	case DDPS_E_CLOSED:
	case DDPS_E_RESET:
		return ECONNRESET;
	case DDPS_E_REFUSED:
		return ECONNREFUSED;
	default:
		return EINVAL;
	}
}

int vd_fail(int error)
{
	errno = error;
	return -1;
}

int vd_refuse(int error)
{
	errno = error;
	return error;
}
