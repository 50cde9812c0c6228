/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop on one epoll descriptor: descriptors, a timer heap behind a timerfd, tasks. */
#include "common/loop.h"
#include <ddpsess/err.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define READY_MAX	64
#define TASK_ROUNDS	4
#define NEVER		UINT64_MAX
#define NSEC_PER_SEC	1000000000u
#define NSEC_PER_MSEC	1000000u
#define HEAP_FIRST_SIZE 32

struct ddps_loop {
	int epfd, timerfd;
	uint64_t armed; /* what the timerfd is set to, or NEVER */
	struct epoll_event ready[READY_MAX];
	int nready, next_ready; /* the part of ready not served yet */
	struct ddps_timer **heap;
	size_t ntimers, heap_size;
	struct ddps_task *tasks, **tasks_end;
	bool running; /* inside ddps_loop_run: tasks posted now are run by it, or armed for */
};

uint64_t ddps_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

int ddps_loop_new(struct ddps_loop **out)
{
	struct ddps_loop *l = calloc(1, sizeof *l);
	struct epoll_event ev = { .events = EPOLLIN };

	if (!l)
		return DDPS_E_NOMEM;
	l->armed = NEVER;
	l->tasks_end = &l->tasks;
	l->timerfd = -1;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		goto fail;
	l->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (l->timerfd < 0)
		goto fail;
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, l->timerfd, &ev) < 0)
		goto fail;
	*out = l;
	return 0;
fail:
	ddps_loop_free(l);
	return DDPS_E_SYSTEM;
}

void ddps_loop_free(struct ddps_loop *l)
{
	int keep = errno;

	if (!l)
		return;
	if (l->timerfd >= 0)
		close(l->timerfd);
	if (l->epfd >= 0)
		close(l->epfd);
	free(l->heap);
	free(l);
	errno = keep;
}

int ddps_loop_fd(const struct ddps_loop *l)
{
	return l->epfd;
}

/* Make the timerfd fire at @due, or earlier if it already will. */
static void arm(struct ddps_loop *l, uint64_t due)
{
	struct itimerspec its = { 0 };

	if (due >= l->armed)
		return;
	l->armed = due;
	if (!due) /* all zeros would disarm it */
		due = 1;
	its.it_value.tv_sec = (time_t)(due / NSEC_PER_SEC);
	its.it_value.tv_nsec = (long)(due % NSEC_PER_SEC);
	timerfd_settime(l->timerfd, TFD_TIMER_ABSTIME, &its, NULL);
}

/* ---- descriptors ---- */

int ddps_io_set(struct ddps_loop *l, struct ddps_io *io, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = io };

	if (io->added && io->events == events)
		return 0;
	if (epoll_ctl(l->epfd, io->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, io->fd, &ev) < 0)
		return DDPS_E_SYSTEM;
	io->added = true;
	io->events = events;
	return 0;
}

void ddps_io_del(struct ddps_loop *l, struct ddps_io *io)
{
	if (!io->added)
		return;
	epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
	io->added = false;
	io->events = 0;
	for (int i = l->next_ready; i < l->nready; i++)
		if (l->ready[i].data.ptr == io)
			l->ready[i].data.ptr = NULL;
}

/* ---- timers: a binary heap, slot = index + 1 ---- */

static void heap_put(struct ddps_loop *l, size_t i, struct ddps_timer *t)
{
	l->heap[i] = t;
	t->slot = i + 1;
}

static void sift_up(struct ddps_loop *l, size_t i)
{
	struct ddps_timer *t = l->heap[i];

	while (i > 0 && l->heap[(i - 1) / 2]->due > t->due) {
		heap_put(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(l, i, t);
}

static void sift_down(struct ddps_loop *l, size_t i)
{
	struct ddps_timer *t = l->heap[i];

	for (;;) {
		size_t kid = 2 * i + 1;

		if (kid >= l->ntimers)
			break;
		if (kid + 1 < l->ntimers && l->heap[kid + 1]->due < l->heap[kid]->due)
			kid++;
		if (l->heap[kid]->due >= t->due)
			break;
		heap_put(l, i, l->heap[kid]);
		i = kid;
	}
	heap_put(l, i, t);
}

int ddps_timer_start(struct ddps_loop *l, struct ddps_timer *t, uint64_t due)
{
	ddps_timer_stop(l, t);
	if (l->ntimers == l->heap_size) {
		size_t size = l->heap_size ? 2 * l->heap_size : HEAP_FIRST_SIZE;
		struct ddps_timer **heap = realloc(l->heap, size * sizeof *heap);

		if (!heap)
			return DDPS_E_NOMEM;
		l->heap = heap;
		l->heap_size = size;
	}
	t->due = due;
	l->heap[l->ntimers++] = t;
	sift_up(l, l->ntimers - 1);
	arm(l, due);
	return 0;
}

int ddps_timer_after(struct ddps_loop *l, struct ddps_timer *t, uint32_t ms)
{
	if (!ms) {
		ddps_timer_stop(l, t);
		return 0;
	}
	return ddps_timer_start(l, t, ddps_now() + (uint64_t)ms * NSEC_PER_MSEC);
}

void ddps_timer_stop(struct ddps_loop *l, struct ddps_timer *t)
{
	size_t i = t->slot - 1;
	struct ddps_timer *last;

	if (!t->slot)
		return;
	t->slot = 0;
	last = l->heap[--l->ntimers];
	if (last == t)
		return;
	heap_put(l, i, last);
	sift_up(l, i);
	sift_down(l, last->slot - 1);
}

/* ---- tasks ---- */

void ddps_task_post(struct ddps_loop *l, struct ddps_task *t)
{
	if (t->prev)
		return;
	t->next = NULL;
	t->prev = l->tasks_end;
	*l->tasks_end = t;
	l->tasks_end = &t->next;
	if (!l->running)
		arm(l, 0);
}

void ddps_task_cancel(struct ddps_loop *l, struct ddps_task *t)
{
	if (!t->prev)
		return;
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		l->tasks_end = t->prev;
	t->prev = NULL;
}

static int run_tasks(struct ddps_loop *l)
{
	struct ddps_task last = { 0 };
	int n = 0;

	/* A task may post others; the mark ends a round so that they cannot starve I/O. */
	for (int round = 0; l->tasks && round < TASK_ROUNDS; round++) {
		ddps_task_post(l, &last);
		while (l->tasks != &last) {
			struct ddps_task *t = l->tasks;

			ddps_task_cancel(l, t);
			t->fn(t->user);
			n++;
		}
		ddps_task_cancel(l, &last);
	}
	return n;
}

static int run_timers(struct ddps_loop *l)
{
	uint64_t now = ddps_now();
	int n = 0;

	while (l->ntimers && l->heap[0]->due <= now) {
		struct ddps_timer *t = l->heap[0];

		ddps_timer_stop(l, t);
		t->fn(t->user);
		n++;
	}
	return n;
}

static int run_ios(struct ddps_loop *l)
{
	int n = 0;

	l->nready = epoll_wait(l->epfd, l->ready, READY_MAX, 0);
	if (l->nready < 0) {
		l->nready = 0;
		return errno == EINTR ? 0 : DDPS_E_SYSTEM;
	}
	for (l->next_ready = 0; l->next_ready < l->nready;) {
		struct epoll_event *ev = &l->ready[l->next_ready++];
		struct ddps_io *io = ev->data.ptr;

		if (!io) /* the timerfd, or deleted in this round */
			continue;
		io->fn(io->user, ev->events);
		n++;
	}
	return n;
}

/* If the armed time has come the descriptor is readable: clear it.  Then arm what is next. */
static int rearm(struct ddps_loop *l)
{
	uint64_t count;

	if (l->armed != NEVER && l->armed <= ddps_now()) {
		if (read(l->timerfd, &count, sizeof count) < 0 && errno != EAGAIN)
			return DDPS_E_SYSTEM;
		l->armed = NEVER;
		if (l->ntimers)
			arm(l, l->heap[0]->due);
	}
	if (l->tasks)
		arm(l, 0);
	return 0;
}

int ddps_loop_run(struct ddps_loop *l)
{
	int n, err;

	l->running = true;
	n = run_ios(l);
	if (n >= 0) {
		n += run_timers(l);
		n += run_tasks(l);
	}
	l->running = false;
	err = rearm(l);
	return err < 0 ? err : n;
}
