/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop on one epoll descriptor: descriptors, timers behind a timerfd, tasks behind an
 * eventfd. */
#include "common/loop/loop_in.h"
#include "common/own.h"
#include "common/prefetch.h"
#include <ddpsess/err.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define OWNED_NS  50000 /* a look costs as much as a call of the system: it holds so long */
#define HITS_MAX  64	/* epoll is asked again after so many, */
#define TRIES_MAX 4	/* of a hidden one in a row: the way here and back takes half a try */
#define GUARD_MS  1	/* who sleeps while it is hidden wakes up that late, */
#define GUARD_MOST                                                                                 \
	16 /* or that late, if somebody else has polled for long: a timer each
			* millisecond would be what the slowest hundredth of round trips waits for */

static void on_guard(void *user);
static void show_all(struct ddps_loop *l);
static bool add_late(struct ddps_loop *l);

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
	l->era = ddps_own_era();
	l->armed = DDPS_NEVER;
	l->tasks_end = &l->tasks;
	l->guard = (struct ddps_timer){ .fn = on_guard, .user = l };
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
	free(l->sights);
	free(l);
	errno = keep;
}

bool ddps_loop_look(struct ddps_loop *l, uint64_t now)
{
	if (now >= l->owned_until) {
		if (ddps_own_era() != l->era) {
			errno = EBADF;
			return false;
		}
		l->owned_until = now + OWNED_NS;
	}
	l->load.sure = l->load.joined;
	return true;
}

bool ddps_loop_look_anew(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->owned_until = 0;
	return ddps_loop_look(l, ddps_now());
}

void ddps_loop_locked_by(struct ddps_loop *l, const struct ddps_mutex *lock)
{
#ifdef DDPS_ASSERTS
	l->lock = lock;
#else
	(void)l;
	(void)lock;
#endif
}

/* For whoever may sleep on it. */
static int show_epfd(struct ddps_loop *l)
{
	show_all(l);
	if (l->late && !add_late(l)) /* the next round says so */
		ddps_loop_wake_sleeper(l);
	ddps_loop_arm(l);
	return l->epfd;
}

int ddps_loop_fd(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->kept = true;
	return show_epfd(l);
}

int ddps_loop_sleep(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->sleepers++;
	return show_epfd(l);
}

void ddps_loop_slept(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->sleepers--;
}

int ddps_loop_watch(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->watched = true;
	return ddps_loop_sleep(l);
}

void ddps_loop_watched(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->watched = false;
	ddps_loop_slept(l);
}

/* ---- the hot descriptor ---- */

/*
 * One that is polled without a pause, and pays for it, is taken out of epoll's set: whoever sends
 * to it is spared a callback for each message.  It comes back before anybody is given the loop's
 * descriptor to sleep on.  Whoever has kept that from before is woken by the guard, late but not never.
 */
static void hide(struct ddps_loop *l)
{
	if (l->hot->sign) {
		ddps_loop_sight(l, l->hot);
		return;
	}
	if (!ddps_loop_owns(l) || epoll_ctl(l->epfd, EPOLL_CTL_DEL, l->hot->fd, NULL) < 0)
		return;
	ddps_loop_guard(l);
	l->hidden = l->hot;
}

void ddps_loop_guard(struct ddps_loop *l)
{
	if (ddps_loop_hides(l))
		return;
	l->tried = false;
	l->guard_ms = GUARD_MS;
	ddps_timer_after(l, &l->guard, l->guard_ms);
}

void ddps_loop_unguard(struct ddps_loop *l)
{
	ddps_timer_stop(l, &l->guard);
	ddps_loop_tell(l);
}

static __attribute__((noinline)) void show_now(struct ddps_loop *l)
{
	struct ddps_io *io = l->hidden;
	struct epoll_event ev;

	ev = (struct epoll_event){ .events = io->events, .data.ptr = io };
	l->streak = 0;
	/* Without memory for that it stays hidden, and the guard goes on to wake who sleeps. */
	if (!ddps_loop_owns(l) || epoll_ctl(l->epfd, EPOLL_CTL_ADD, io->fd, &ev) < 0) {
		ddps_timer_after(l, &l->guard, GUARD_MS);
		return;
	}
	l->hidden = NULL;
	ddps_loop_unguard(l);
}

static inline void show_hidden(struct ddps_loop *l)
{
	if (l->hidden)
		show_now(l);
}

/* Somebody may sleep. */
static void show_all(struct ddps_loop *l)
{
	l->found = 0;
	show_hidden(l);
	if (l->nsights)
		ddps_loop_unsight_all(l);
}

static void on_guard(void *user)
{
	struct ddps_loop *l = user;

	if (l->tried) {
		l->guard_ms = l->sleepers		     ? GUARD_MS
			      : l->guard_ms < GUARD_MOST / 2 ? 2 * l->guard_ms
							     : GUARD_MOST;
		ddps_timer_after(l, &l->guard, l->guard_ms);
	} else {
		show_all(l);
	}
	l->tried = false;
}

/* NULL: none is.  One that cannot be shown stays. */
static void set_hot(struct ddps_loop *l, struct ddps_io *io)
{
	show_hidden(l);
	if (l->hidden)
		return;
	l->hot = io;
	l->patience = DDPS_MISSES_MIN;
	l->streak = 0;
}

/* ---- descriptors ---- */

int ddps_io_set(struct ddps_loop *l, struct ddps_io *io, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = io };
	bool late;

	ddps_assert_loop(l);
	if (io == l->late) {
		l->late = NULL;
		io->added = false;
	}
	late = io->late && !io->added;
	io->late = false;
	if (io->added && io->events == events)
		return 0;
	if (late && !l->late && !l->sleepers && !l->kept) {
		io->added = true;
		io->events = events;
		l->late = io;
		return 0;
	}
	if (io == l->hot)
		show_hidden(l);
	if (!ddps_loop_owns(l) ||
	    epoll_ctl(l->epfd, io->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, io->fd, &ev) < 0)
		return DDPS_E_SYSTEM;
	io->added = true;
	io->events = events;
	return 0;
}

/* There is one.  false: it cannot be, and stays late. */
static __attribute__((noinline)) bool add_late(struct ddps_loop *l)
{
	struct ddps_io *io = l->late;

	if (!ddps_io_set(l, io, io->events))
		return true;
	io->added = true;
	l->late = io;
	return false;
}

void ddps_loop_many(struct ddps_loop *l, bool many)
{
	ddps_assert_loop(l);
	l->many = many;
}

void ddps_io_del(struct ddps_loop *l, struct ddps_io *io)
{
	ddps_assert_loop(l);
	if (!io->added)
		return;
	if (io->sight)
		ddps_loop_unsight(l, io);
	if (l->hidden == io) {
		l->hidden = NULL;
		ddps_loop_unguard(l);
	} else if (l->late == io) {
		l->late = NULL;
	} else if (ddps_loop_owns(l)) {
		epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
	}
	io->added = false;
	io->events = 0;
	ddps_io_not_light(l, io);
	if (l->hot == io)
		l->hot = NULL;
	if (l->lone == io)
		l->lone = NULL;
	for (int i = l->next_ready; i < l->nready; i++)
		if (l->ready[i].data.ptr == io)
			l->ready[i].data.ptr = NULL;
}

/* ---- the turn ---- */

bool ddps_loop_running(const struct ddps_loop *l)
{
	return l->running;
}

bool ddps_loop_trying(const struct ddps_loop *l)
{
	return l->trying;
}

bool ddps_loop_polled(const struct ddps_loop *l)
{
	return ddps_loop_hides(l) && !l->sleepers;
}

/* One of many that are busy now and then is not worth a try in vain: it has to be found again. */
static void found_alone(struct ddps_loop *l, struct ddps_io *io)
{
	if (l->hot == io || l->nsights)
		return;
	if (l->lone == io)
		set_hot(l, io);
	else if (l->hot)
		set_hot(l, NULL);
	l->lone = io;
}

/* How many of those found ready are not the loop's own. */
static unsigned count_others(const struct ddps_loop *l)
{
	unsigned n = 0;

	for (int i = 0; i < l->nready; i++)
		n += l->ready[i].data.ptr != NULL;
	return n;
}

static struct ddps_io *find_ready(const struct ddps_loop *l, int at)
{
	return at < l->nready ? l->ready[at].data.ptr : NULL;
}

static void tell_soon(const struct ddps_io *io, bool next)
{
	if (io && io->soon)
		io->soon(io->user, next);
}

/* Those behind the one whose turn it is. */
static __attribute__((noinline)) void expect_ready(const struct ddps_loop *l)
{
	tell_soon(find_ready(l, l->next_ready), true);
	tell_soon(find_ready(l, l->next_ready + 1), false);
	ddps_prefetch(find_ready(l, l->next_ready + 2), sizeof(struct ddps_io));
}

/* Epoll has found it, and its fn() is to be called next. */
static void note_found(struct ddps_loop *l, struct ddps_io *io)
{
	if (l->load.busy == 1)
		found_alone(l, io);
	if (!io->sign)
		l->patience = l->nsights ? DDPS_MISSES_MIN : l->patience;
	else if (!io->sight && l->found >= DDPS_HIDE_AFTER && !l->watched)
		ddps_loop_sight(l, io);
}

/* More than one is ready, or none but the loop's own. */
static __attribute__((noinline)) int serve_ready(struct ddps_loop *l)
{
	int n = 0;

	l->load.busy = count_others(l);
	if (l->load.busy > 1) {
		set_hot(l, NULL);
		l->lone = NULL;
	}
	for (l->next_ready = 0; l->next_ready < l->nready;) {
		struct epoll_event *ev = &l->ready[l->next_ready++];

		if (l->many)
			expect_ready(l);
		struct ddps_io *io = ev->data.ptr;

		if (!io) /* one of the loop's own, or deleted in this round */
			continue;
		note_found(l, io);
		io->fn(io->user, ev->events);
		n++;
	}
	return n;
}

static int run_ios(struct ddps_loop *l)
{
	struct ddps_io *io;

	l->load.turn++;
	l->hits = l->misses = 0;
	l->load.quiet += l->load.spent;
	l->load.spent = 0;
	if (l->late && !add_late(l))
		l->late->fn(l->late->user, EPOLLIN);
	l->nready = epoll_wait(l->epfd, l->ready, DDPS_LOOP_READY, 0);
	if (l->nready < 0) {
		l->nready = 0;
		return errno == EINTR ? 0 : DDPS_E_SYSTEM;
	}
	io = l->ready[0].data.ptr;
	if (l->nready != 1 || !io)
		return serve_ready(l);
	l->load.busy = 1;
	l->next_ready = 1;
	note_found(l, io);
	io->fn(io->user, l->ready[0].events);
	return 1;
}

static int run_round(struct ddps_loop *l)
{
	/* A process may stand still for longer than a timer runs, at any place.  What has come meanwhile has the first
	 * word: a timer that is due only since then waits for the next round. */
	const uint64_t began = l->timers ? ddps_now() : 0;
	int n, timed;

	ddps_loop_enter_round(l);
	if (!(began ? ddps_loop_owns_at(l, began) : ddps_loop_owns(l))) {
		ddps_loop_leave_round(l);
		return DDPS_E_SYSTEM;
	}
	n = run_ios(l);
	timed = n >= 0 && began ? ddps_loop_run_timers(l, began) : 0;
	if (n >= 0 && l->tasks)
		n += ddps_loop_run_tasks(l);
	ddps_loop_leave_round(l);
	/* If it has fired, epoll has found it; the clock need not be asked. */
	if ((timed || l->nready > (int)l->load.busy) && ddps_loop_rearm(l))
		return DDPS_E_SYSTEM;
	if ((l->tasks || l->waking || l->told) && ddps_loop_retell(l))
		return DDPS_E_SYSTEM;
	return n < 0 ? n : n + timed;
}

/* Returns how many callbacks were made that found something. */
static int try_hot(struct ddps_loop *l)
{
	struct ddps_io *io = l->hot;
	int n;

	l->load.turn++;
	l->load.busy = 1;
	io->moved = false;
	l->tried = true;
	ddps_loop_enter_round(l);
	l->trying = true;
	io->fn(io->user, EPOLLIN);
	l->trying = false;
	n = l->hot == io && io->moved;
	if (l->tasks)
		n += ddps_loop_run_tasks(l);
	ddps_loop_leave_round(l);
	ddps_loop_tell(l);
	return n;
}

int ddps_loop_run(struct ddps_loop *l)
{
	int n;

	ddps_assert_loop(l);
	show_all(l);
	n = run_round(l);
	if (l->hidden && n >= 0) /* it could not be shown */
		n += try_hot(l);
	return n;
}

/* What a try of the hot one has brought. */
static void judge_hot_try(struct ddps_loop *l, bool hit)
{
	if (!hit) {
		l->misses++;
		return;
	}
	l->hits++;
	if (l->misses && l->patience < DDPS_MISSES_MAX) /* to wait has paid */
		l->patience *= 2;
	l->misses = 0;
	/* Nobody but epoll knows when it can be written to. */
	if (++l->streak >= DDPS_HIDE_AFTER && l->patience >= DDPS_MISSES_MAX && !l->hidden &&
	    !l->watched && !(l->hot->events & EPOLLOUT))
		hide(l);
}

/* Whoever polls runs what was posted since, without asking epoll first. */
static int run_posted(struct ddps_loop *l)
{
	int n;

	if (!l->tasks)
		return 0;
	ddps_loop_enter_round(l);
	n = ddps_loop_run_tasks(l);
	ddps_loop_leave_round(l);
	ddps_loop_tell(l);
	return n;
}

/* Whoever polls asks epoll. */
static int spin_round(struct ddps_loop *l)
{
	int n = run_round(l);

	l->found += n > 0;
	return n;
}

/* It is up to epoll whether anything is there. */
static bool is_epolls_turn(const struct ddps_loop *l)
{
	return l->hits >= HITS_MAX || l->misses >= l->patience || ddps_loop_due(l);
}

static int spin_signs(struct ddps_loop *l)
{
	int n = run_posted(l), more;

	if (l->nsights)
		n += ddps_loop_look_at_signs(l);
	if (!is_epolls_turn(l))
		return n;
	more = spin_round(l);
	return more < 0 ? more : n + more;
}

int ddps_loop_spin(struct ddps_loop *l)
{
	struct ddps_io *io;
	int n, done;

	ddps_assert_loop(l);
	if (l->nsights)
		return spin_signs(l);
	io = l->hot;
	if (!io || !io->eager || !(io->events & EPOLLIN))
		return l->hidden ? ddps_loop_run(l) : spin_round(l);
	if ((l->tasks && !l->hidden) || is_epolls_turn(l) || ddps_io_waits(l, io))
		return spin_round(l);
	done = run_posted(l);
	if (l->hot != io)
		return done;
	for (int tries = 1;; tries++) {
		n = done + try_hot(l);
		if (l->hot == io)
			judge_hot_try(l, io->moved);
		if (n || l->hidden != io || tries == TRIES_MAX || l->misses >= l->patience)
			return n;
	}
}
