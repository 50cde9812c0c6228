/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's part of datagrams.  A thread reads the sockets; a program that polls an empty queue
 * reads them itself, and then the thread keeps away from queue pairs until that has stopped for a
 * millisecond, or the queue is armed.
 */
#include "verbs/ud/vd_ud_in.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define AWAY_NS 1000000
#define MINE_NS 50000
#define EVENTS	16

uint64_t ud_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool ud_mine(struct vd_ud *ud)
{
	const uint64_t now = ud_now_ns();

	if (now < __atomic_load_n(&ud->mine_until, __ATOMIC_RELAXED) && vd_mine_quick(ud->p))
		return true;
	if (!vd_mine(ud->p))
		return false;
	__atomic_store_n(&ud->mine_until, now + MINE_NS, __ATOMIC_RELAXED);
	return true;
}

void ud_wake(struct vd_ud *ud)
{
	uint64_t one = 1;

	ddps_uncancellable();
	if (ud_mine(ud))
		(void)!write(ud->wake_fd, &one, sizeof one); /* at its top the count wakes anyway */
	ddps_uncancellable_end();
}

/* ---- what there is to do ---- */

/* Do what there is to do on sockets; the lock is held. */
static void drive_ud_sockets(struct vd_ud *ud)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(ud->epfd, ev, EVENTS, 0);
	struct vd_ud_qp *u;

	ddps_assert_held(&ud->lock);
	for (int i = 0; i < n; i++) {
		struct ud_source *s = ev[i].data.ptr;

		if (s->qp)
			ud_readable(s->qp, s);
		else
			ud_acks_readable(ud);
	}
	if (!ud->waiting)
		return;
	LIST_FOREACH(u, &ud->qps, link)
		if (!STAILQ_EMPTY(&u->sq))
			ud_push(u, ud_now_ms());
}

void ud_drive_polled(struct vd_ud *ud, bool alone)
{
	if (alone)
		__atomic_store_n(&ud->polled, ud_now_ns(), __ATOMIC_SEQ_CST);
	if (ddps_trylock(&ud->lock))
		return; /* somebody is at it */
	if (ud_mine(ud))
		drive_ud_sockets(ud);
	ddps_unlock(&ud->lock);
}

/* When requests that wait are due; the lock is held. */
static uint64_t sends_due(const struct vd_ud *ud)
{
	uint64_t due = UINT64_MAX;
	const struct vd_ud_qp *u;

	ddps_assert_held(&ud->lock);
	if (!ud->waiting)
		return due;
	LIST_FOREACH(u, &ud->qps, link)
		if (!STAILQ_EMPTY(&u->sq) && u->retry_at < due)
			due = u->retry_at;
	return due;
}

/* ---- the thread ---- */

static bool keeps_away(struct vd_ud *ud)
{
	bool away = ud_now_ns() - __atomic_load_n(&ud->polled, __ATOMIC_SEQ_CST) < AWAY_NS;

	__atomic_store_n(&ud->away, away, __ATOMIC_SEQ_CST);
	/* Once more: a queue may have been armed before that could be seen. */
	return away && __atomic_load_n(&ud->polled, __ATOMIC_SEQ_CST);
}

static void tell_news(struct vd_ud *ud)
{
	struct vd_process *p = ud->p;
	struct vd_ud_qp *u;

	if (!__atomic_exchange_n(&ud->news, false, __ATOMIC_SEQ_CST))
		return;
	ddps_lock(&p->lock);
	ddps_lock(&ud->lock);
	LIST_FOREACH(u, &ud->qps, link) {
		struct ibv_qp *q = &u->qp->qp.qp_base;

		if (u->lost)
			vd_async_overflow(q);
		if (u->last_wqe)
			vd_async_tell(q->context, IBV_EVENT_QP_LAST_WQE_REACHED, q,
				      &u->qp->last_wqe);
		u->lost = u->last_wqe = false;
	}
	ddps_unlock(&ud->lock);
	ddps_unlock(&p->lock);
}

/* How long it may sleep, ms. */
static int get_ud_patience(struct vd_ud *ud, bool away)
{
	uint64_t due, other, now = ud_now_ms();

	ddps_lock(&ud->p->lock);
	due = ud_cm_due(ud);
	ddps_unlock(&ud->p->lock);
	ddps_lock(&ud->lock);
	other = sends_due(ud);
	ddps_unlock(&ud->lock);
	if (!away && other < due)
		due = other;
	if (due == UINT64_MAX)
		return away ? 1 : -1;
	if (due <= now)
		return 0;
	return away || due - now < 1 ? 1 : due - now > 1000 ? 1000 : (int)(due - now);
}

static void *serve_ud(void *arg)
{
	struct vd_ud *ud = arg;
	struct pollfd fd[] = { { ud->wake_fd, POLLIN, 0 },
			       { ud->cm_epfd, POLLIN, 0 },
			       { ud->epfd, POLLIN, 0 } };

	for (;;) {
		bool away = keeps_away(ud);

		if (poll(fd, away ? 2 : 3, get_ud_patience(ud, away)) < 0) {
			vd_poll_again();
			continue;
		}
		if ((fd[0].revents | fd[1].revents | fd[2].revents) & POLLNVAL || !vd_mine(ud->p))
			return NULL; /* the program has closed what is not its own */
		if (fd[0].revents)
			vd_eventfd_take(ud->wake_fd);
		ddps_lock(&ud->p->lock);
		ud_cm_serve(ud);
		ddps_unlock(&ud->p->lock);
		if (!away) {
			ddps_lock(&ud->lock);
			drive_ud_sockets(ud);
			ddps_unlock(&ud->lock);
		}
		tell_news(ud);
	}
}

/* ---- what the process has ---- */

int ud_keep_fd(struct vd_ud *ud, int fd)
{
	int *more;

	if (ud->nfds == ud->fds_size) {
		more = reallocarray(ud->fds, ud->fds_size + 32, sizeof *more);
		if (!more)
			return ENOMEM;
		ud->fds = more;
		ud->fds_size += 32;
	}
	ud->fds[ud->nfds++] = fd;
	return 0;
}

void ud_forget_fd(struct vd_ud *ud, int fd)
{
	for (unsigned i = 0; i < ud->nfds; i++)
		if (ud->fds[i] == fd) {
			ud->fds[i] = ud->fds[--ud->nfds];
			return;
		}
}

void vd_ud_in_child(struct vd_ud *ud)
{
	for (unsigned i = 0; ud && i < ud->nfds; i++)
		vd_close(ud->p, ud->fds[i]);
}

int ud_watch_new(struct vd_ud *ud, struct ud_source *s)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };

	return epoll_ctl(ud->epfd, EPOLL_CTL_ADD, s->sock.fd, &ev) ? errno : 0;
}

/* One that is new, kept or closed again. */
static int keep_or_close(struct vd_ud *ud, int fd)
{
	const int err = fd < 0 ? errno : ud_keep_fd(ud, fd);

	if (err && fd >= 0)
		close(fd);
	return err;
}

static int make_ud(struct vd_ud *ud)
{
	int err;

	(void)vd_forks_hold();
	ud->epfd = epoll_create1(EPOLL_CLOEXEC);
	err = keep_or_close(ud, ud->epfd);
	if (!err) {
		ud->cm_epfd = epoll_create1(EPOLL_CLOEXEC);
		err = keep_or_close(ud, ud->cm_epfd);
	}
	if (!err) {
		ud->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = keep_or_close(ud, ud->wake_fd);
	}
	vd_forks_release();
	if (!err)
		err = ud_sock_open(ud, &ud->acks.sock, &ud->ack_port);
	if (!err)
		err = ud_watch_new(ud, &ud->acks);
	return err ? err : vd_thread(serve_ud, ud);
}

static void free_ud(struct vd_ud *ud)
{
	ud_sock_close(ud, &ud->acks.sock);
	(void)vd_forks_hold();
	for (unsigned i = 0; i < ud->nfds; i++)
		vd_close(ud->p, ud->fds[i]);
	vd_forks_release();
	free(ud->fds);
	free(ud);
}

struct vd_ud *ud_of_process(void)
{
	struct vd_process *p = vd_process();
	struct vd_ud *ud;
	int err;

	if (!p)
		return NULL;
	ddps_lock(&p->shared_lock);
	ud = p->ud;
	if (!ud && (ud = calloc(1, sizeof *ud))) {
		ud->p = p;
		ud->acks.sock.fd = -1;
		ddps_mutex_init(&ud->lock, DDPS_LOCK_UD);
		err = make_ud(ud);
		if (err) {
			free_ud(ud);
			ud = NULL;
			errno = err;
		}
		__atomic_store_n(&p->ud, ud, __ATOMIC_RELEASE);
	}
	ddps_unlock(&p->shared_lock);
	return ud;
}
