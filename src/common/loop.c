/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop on one epoll descriptor: descriptors, timers behind a timerfd, tasks behind an
 * eventfd. */
#include "common/loop.h"
#include <ddpsess/err.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define READY_MAX     64
#define TASK_ROUNDS   4
#define HITS_MAX      64 /* epoll is asked again after so many, */
#define MISSES_MIN    2	 /* or after so many tries in vain: more of them if it has paid */
#define MISSES_MAX    64
#define NEVER	      UINT64_MAX
#define NSEC_PER_SEC  1000000000u
#define NSEC_PER_MSEC 1000000u

struct ddps_loop {
	int epfd, timerfd, taskfd;
	uint64_t armed; /* what the timerfd is set to, or NEVER */
	bool told;	/* taskfd is readable: who sleeps on epfd wakes up */
	struct epoll_event ready[READY_MAX];
	int nready, next_ready;	   /* the part of ready not served yet */
	struct ddps_timer *timers; /* the earliest one */
	struct ddps_io *lone;	   /* the only one that the last busy round found; or NULL */
	struct ddps_io *hot;	   /* was it twice, with no other between: it is tried; or NULL */
	unsigned hits, misses;	   /* of it, since epoll was asked */
	unsigned patience;	   /* misses that are allowed */
	struct ddps_task *tasks, **tasks_end;
	bool running; /* inside ddps_loop_run: tasks posted now are run by it, or told of */
};

uint64_t ddps_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static bool open_descriptors(struct ddps_loop *l)
{
	struct epoll_event ev = { .events = EPOLLIN };

	l->timerfd = l->taskfd = -1;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		return false;
	l->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (l->timerfd < 0 || epoll_ctl(l->epfd, EPOLL_CTL_ADD, l->timerfd, &ev) < 0)
		return false;
	l->taskfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return l->taskfd >= 0 && !epoll_ctl(l->epfd, EPOLL_CTL_ADD, l->taskfd, &ev);
}

int ddps_loop_new(struct ddps_loop **out)
{
	struct ddps_loop *l = calloc(1, sizeof *l);

	if (!l)
		return DDPS_E_NOMEM;
	l->armed = NEVER;
	l->tasks_end = &l->tasks;
	if (!open_descriptors(l)) {
		ddps_loop_free(l);
		return DDPS_E_SYSTEM;
	}
	*out = l;
	return 0;
}

void ddps_loop_free(struct ddps_loop *l)
{
	int keep = errno;

	if (!l)
		return;
	if (l->taskfd >= 0)
		close(l->taskfd);
	if (l->timerfd >= 0)
		close(l->timerfd);
	if (l->epfd >= 0)
		close(l->epfd);
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
	if (l->hot == io)
		l->hot = NULL;
	if (l->lone == io)
		l->lone = NULL;
	for (int i = l->next_ready; i < l->nready; i++)
		if (l->ready[i].data.ptr == io)
			l->ready[i].data.ptr = NULL;
}

/* ---- timers: a pairing heap inside the timers themselves, so that starting one cannot fail ---- */

/* Two heaps become one; the one that is due later hangs below the other. */
static struct ddps_timer *meld(struct ddps_timer *a, struct ddps_timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (b->due < a->due) {
		struct ddps_timer *t = a;

		a = b;
		b = t;
	}
	b->prev = a;
	b->next = a->child;
	if (b->next)
		b->next->prev = b;
	a->child = b;
	return a;
}

/* One heap of a list of siblings: by pairs, then the pairs from the last to the first. */
static struct ddps_timer *gather(struct ddps_timer *first)
{
	struct ddps_timer *pairs = NULL, *root = NULL;

	while (first) {
		struct ddps_timer *a = first, *b = a->next;

		first = b ? b->next : NULL;
		if (b)
			b->next = NULL;
		a->next = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct ddps_timer *next = pairs->next;

		pairs->next = NULL;
		root = meld(root, pairs);
		pairs = next;
	}
	if (root)
		root->prev = NULL;
	return root;
}

void ddps_timer_start(struct ddps_loop *l, struct ddps_timer *t, uint64_t due)
{
	ddps_timer_stop(l, t);
	t->due = due;
	t->on = true;
	l->timers = meld(l->timers, t);
	arm(l, due);
}

void ddps_timer_after(struct ddps_loop *l, struct ddps_timer *t, uint32_t ms)
{
	if (ms)
		ddps_timer_start(l, t, ddps_now() + (uint64_t)ms * NSEC_PER_MSEC);
	else
		ddps_timer_stop(l, t);
}

void ddps_timer_stop(struct ddps_loop *l, struct ddps_timer *t)
{
	struct ddps_timer *below;

	if (!t->on)
		return;
	below = gather(t->child);
	if (t == l->timers) {
		l->timers = below;
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		l->timers = meld(l->timers, below);
	}
	t->child = t->next = t->prev = NULL;
	t->on = false;
}

/* ---- tasks ---- */

/*
 * Wake who sleeps on the loop's descriptor.  An eventfd, since a timerfd that is set to the past
 * costs an interrupt of the clock, and loses the time that it was set to.
 */
static void tell(struct ddps_loop *l)
{
	uint64_t one = 1;

	if (!l->told)
		l->told = write(l->taskfd, &one, sizeof one) > 0;
}

bool ddps_loop_running(const struct ddps_loop *l)
{
	return l->running;
}

void ddps_task_post(struct ddps_loop *l, struct ddps_task *t)
{
	if (t->prev)
		return;
	t->next = NULL;
	t->prev = l->tasks_end;
	*l->tasks_end = t;
	l->tasks_end = &t->next;
	if (!l->running)
		tell(l);
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
	uint64_t now = l->timers ? ddps_now() : 0;
	int n = 0;

	while (l->timers && l->timers->due <= now) {
		struct ddps_timer *t = l->timers;

		ddps_timer_stop(l, t);
		t->fn(t->user);
		n++;
	}
	return n;
}

/* One of many that are busy now and then is not worth a try in vain: it has to be found again. */
static void found_alone(struct ddps_loop *l, struct ddps_io *io)
{
	if (l->hot == io)
		return;
	l->hot = l->lone == io ? io : NULL;
	l->lone = io;
	l->patience = MISSES_MIN;
}

static int run_ios(struct ddps_loop *l)
{
	int n = 0;

	l->hits = l->misses = 0;
	l->nready = epoll_wait(l->epfd, l->ready, READY_MAX, 0);
	if (l->nready < 0) {
		l->nready = 0;
		return errno == EINTR ? 0 : DDPS_E_SYSTEM;
	}
	if (l->nready > 1)
		l->hot = l->lone = NULL;
	for (l->next_ready = 0; l->next_ready < l->nready;) {
		struct epoll_event *ev = &l->ready[l->next_ready++];
		struct ddps_io *io = ev->data.ptr;

		if (!io) /* one of the loop's own, or deleted in this round */
			continue;
		if (l->nready == 1)
			found_alone(l, io);
		io->fn(io->user, ev->events);
		n++;
	}
	return n;
}

/* If the armed time has come the descriptor is readable: clear it.  Then arm what is next. */
static int rearm(struct ddps_loop *l)
{
	uint64_t count;

	if (l->armed == NEVER || l->armed > ddps_now())
		return 0;
	if (read(l->timerfd, &count, sizeof count) < 0 && errno != EAGAIN)
		return DDPS_E_SYSTEM;
	l->armed = NEVER;
	if (l->timers)
		arm(l, l->timers->due);
	return 0;
}

/* The descriptor of tasks is readable if there are any. */
static int retell(struct ddps_loop *l)
{
	uint64_t count;

	if (l->tasks) {
		tell(l);
	} else if (l->told) {
		if (read(l->taskfd, &count, sizeof count) < 0)
			return DDPS_E_SYSTEM;
		l->told = false;
	}
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
	if (!err)
		err = retell(l);
	return err < 0 ? err : n;
}

int ddps_loop_spin(struct ddps_loop *l)
{
	struct ddps_io *io = l->hot;
	int n;

	if (!io || !io->eager || !(io->events & EPOLLIN) || l->tasks || l->hits >= HITS_MAX ||
	    l->misses >= l->patience)
		return ddps_loop_run(l);
	io->moved = false;
	l->running = true;
	io->fn(io->user, EPOLLIN);
	n = l->hot == io && io->moved;
	if (n) {
		l->hits++;
		if (l->misses && l->patience < MISSES_MAX) /* to wait has paid */
			l->patience *= 2;
		l->misses = 0;
	} else {
		l->misses++;
	}
	n += run_tasks(l);
	l->running = false;
	if (l->tasks)
		tell(l);
	return n;
}
