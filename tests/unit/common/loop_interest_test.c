/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop: no interest is lost, in whatever order things are done. */
#include "common/loop/loop_in.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum act {
	WANT_READ,
	WANT_WRITE,
	WANT_BOTH,
	FORGET,
	HIDE,
	SHOW,
	SPIN,
	SLEEP,
	STUFF, /* it cannot be written to */
	OTHER, /* another descriptor has something, too */
	NACTS
};

/* How it goes on; each also with the other descriptor busy, which brings back what is hidden. */
enum way { SPINNING, SPINNING_BUSY, SLEEPING, NWAYS };

#define ACTS_DEEP 4

static struct world {
	struct ddps_loop *l;
	struct ddps_io io, other;
	int peer;
	bool got_in, got_out, got_other, stuffed, other_busy;
} world;

static void on_world(void *user, uint32_t events)
{
	struct world *w = user;
	uint8_t octets[64];
	ssize_t n = 0;

	if (events & EPOLLIN)
		n = read(w->io.fd, octets, sizeof octets);
	w->io.moved = n > 0;
	w->got_in |= n > 0;
	w->got_out |= (events & EPOLLOUT) != 0;
}

static void on_other(void *user, uint32_t events)
{
	struct world *w = user;
	eventfd_t count;

	(void)events;
	w->got_other |= !eventfd_read(w->other.fd, &count);
}

static void open_loop_interest_world(struct world *w)
{
	int fd[2], small = 4096;

	*w = (struct world){ 0 };
	cr_assert_eq(ddps_loop_new(&w->l), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	w->peer = fd[1];
	w->io = (struct ddps_io){ .fd = fd[0], .fn = on_world, .user = w, .eager = true };
	w->other = (struct ddps_io){ .fd = eventfd(0, EFD_NONBLOCK), .fn = on_other, .user = w };
	cr_assert_eq(ddps_io_set(w->l, &w->other, EPOLLIN), 0);
}

static void close_loop_interest_world(struct world *w)
{
	ddps_io_del(w->l, &w->io);
	ddps_io_del(w->l, &w->other);
	close(w->io.fd);
	close(w->peer);
	close(w->other.fd);
	ddps_loop_free(w->l);
}

static void feed_loop_interest(struct world *w)
{
	cr_assert_eq(write(w->peer, "", 1), 1);
}

static void stuff(struct world *w, bool full)
{
	char octets[4096] = { 0 };

	w->stuffed = full;
	while (full ? write(w->io.fd, octets, sizeof octets) > 0
		    : read(w->peer, octets, sizeof octets) > 0)
		;
}

/* It is the only busy one, and to wait for it has paid so often that the next hit hides it. */
static void try_to_hide(struct world *w)
{
	for (int i = 0; i < 8; i++) {
		if (w->l->hot == &w->io) {
			w->l->patience = 64;
			w->l->streak = 1000;
		}
		if (w->io.events & EPOLLIN)
			feed_loop_interest(w);
		cr_assert_geq(ddps_loop_spin(w->l), 0);
	}
}

static void sleep_once(struct world *w)
{
	struct pollfd p = { .fd = ddps_loop_fd(w->l), .events = POLLIN };

	if (poll(&p, 1, 0) == 1)
		cr_assert_geq(ddps_loop_run(w->l), 0);
}

static void act_on_interest(struct world *w, enum act a)
{
	switch (a) {
	case WANT_READ:
	case WANT_WRITE:
	case WANT_BOTH:
		cr_assert_eq(ddps_io_set(w->l, &w->io,
					 a == WANT_READ	   ? EPOLLIN
					 : a == WANT_WRITE ? EPOLLOUT
							   : EPOLLIN | EPOLLOUT),
			     0);
		break;
	case FORGET:
		ddps_io_del(w->l, &w->io);
		break;
	case HIDE:
		try_to_hide(w);
		break;
	case SHOW:
		ddps_loop_fd(w->l);
		break;
	case SPIN:
		cr_assert_geq(ddps_loop_spin(w->l), 0);
		break;
	case SLEEP:
		sleep_once(w);
		break;
	case STUFF:
		stuff(w, true);
		break;
	default:
		eventfd_write(w->other.fd, 1);
		break;
	}
}

static bool all_served(const struct world *w)
{
	return (w->got_in || !(w->io.events & EPOLLIN)) &&
	       (w->got_out || !(w->io.events & EPOLLOUT)) && (w->got_other || !w->other_busy);
}

/* All that is waited for is there now: is everybody told within a bounded number of steps? */
static bool does_loop_interest_end_well(struct world *w, enum way way)
{
	w->got_in = w->got_out = w->got_other = false;
	if (w->stuffed)
		stuff(w, false);
	if (w->other_busy)
		eventfd_write(w->other.fd, 1);
	feed_loop_interest(w);
	for (int i = 0; i < 300 && !all_served(w); i++) {
		if (way == SPINNING_BUSY && (w->io.events & EPOLLIN))
			feed_loop_interest(w);
		if (way == SLEEPING)
			sleep_once(w);
		else
			cr_assert_geq(ddps_loop_spin(w->l), 0);
	}
	return all_served(w);
}

/* Every order of so many acts, each followed by every way to go on. */
Test(loop, attack_12b_no_interest_is_ever_lost, .timeout = 60)
{
	static const char *const names[] = { "read", "write", "both",  "forget", "hide",
					     "show", "spin",  "sleep", "stuff",	 "other" };
	unsigned orders = 1, hidden = 0;

	for (int i = 0; i < ACTS_DEEP; i++)
		orders *= NACTS;
	for (unsigned k = 0; k < orders * NWAYS * 8; k++) {
		unsigned order_left = k / (NWAYS * 8);
		bool beside_a_sleeper = k / (NWAYS * 4) % 2; /* the first act */
		char text[ACTS_DEEP * 8] = "";
		size_t len = 0;

		open_loop_interest_world(&world);
		world.io.late = k / (NWAYS * 2) % 2;
		if (beside_a_sleeper)
			ddps_loop_sleep(world.l);
		for (int i = 0; i < ACTS_DEEP; i++, order_left /= NACTS) {
			act_on_interest(&world, order_left % NACTS);
			if (beside_a_sleeper && !i)
				ddps_loop_slept(world.l);
			hidden += world.l->hidden != NULL;
			len += (size_t)snprintf(text + len, sizeof text - len, " %s",
						names[order_left % NACTS]);
		}
		world.other_busy = k / NWAYS % 2;
		cr_assert(does_loop_interest_end_well(&world, k % NWAYS),
			  "way %u after%s: in %d, out %d, other %d of events 0x%x", k % NWAYS, text,
			  world.got_in, world.got_out, world.got_other, world.io.events);
		close_loop_interest_world(&world);
	}
	cr_expect_gt(hidden, orders / 100, "hiding was tried, too");
}

/* A timer that looks after what is hidden: seldom if somebody polls for long, each millisecond if a
 * thread of the library's sleeps meanwhile. */
Test(loop, the_guard_of_what_is_hidden_gives_way_to_whoever_polls)
{
	static const uint32_t ms[] = { 2, 4, 8, 16, 16 };
	struct world *w = &world;

	open_loop_interest_world(w);
	cr_assert_eq(ddps_io_set(w->l, &w->io, EPOLLIN), 0);
	try_to_hide(w);
	cr_assert_eq(w->l->hidden, &w->io);
	cr_expect_eq(w->l->guard_ms, 1);
	for (unsigned i = 0; i < sizeof ms / sizeof *ms; i++) {
		w->l->tried = true;
		ddps_timer_stop(w->l, &w->l->guard);
		w->l->guard.fn(w->l);
		cr_expect(ddps_timer_runs(&w->l->guard));
		cr_expect_eq(w->l->guard_ms, ms[i]);
	}
	w->l->sleepers = 1;
	w->l->tried = true;
	ddps_timer_stop(w->l, &w->l->guard);
	w->l->guard.fn(w->l);
	cr_expect_eq(w->l->guard_ms, 1);
	ddps_timer_stop(w->l, &w->l->guard);
	w->l->guard.fn(w->l);
	cr_expect_null(w->l->hidden, "nobody has tried it");
	ddps_loop_sleep(w->l);
	ddps_loop_slept(w->l);
	cr_expect_eq(w->l->sleepers, 1);
	close_loop_interest_world(w);
}

/* The library thread stands in for whoever stops to poll: it must not wake up late. */
Test(loop, nothing_is_hidden_from_whoever_watches)
{
	struct world w;

	for (int watched = 0; watched < 2; watched++) {
		open_loop_interest_world(&w);
		cr_assert_eq(ddps_io_set(w.l, &w.io, EPOLLIN), 0);
		if (watched)
			cr_expect_geq(ddps_loop_watch(w.l), 0);
		try_to_hide(&w);
		cr_expect_eq(w.l->hidden, watched ? NULL : &w.io);
		if (watched)
			ddps_loop_watched(w.l);
		try_to_hide(&w);
		cr_expect_eq(w.l->hidden, &w.io);
		close_loop_interest_world(&w);
	}
}

/* ---- calls of the system that fail ---- */

static void hidden_world(struct world *w)
{
	open_loop_interest_world(w);
	act_on_interest(w, WANT_READ);
	try_to_hide(w);
	cr_assert_eq(w->l->hidden, &w->io);
}

Test(loop, what_cannot_be_hidden_is_not)
{
	struct world *w = &world;

	open_loop_interest_world(w);
	act_on_interest(w, WANT_READ);
	sys_fail("epoll_ctl", 0, 1000, ENOMEM);
	try_to_hide(w);
	cr_expect_gt(sys_failed(), 0);
	cr_expect_null(w->l->hidden);
	cr_expect(does_loop_interest_end_well(w, SLEEPING));
	close_loop_interest_world(w);
}

/* Whoever runs the loop serves it, and others next to it. */
Test(loop, what_cannot_be_shown_is_served)
{
	struct world *w = &world;

	hidden_world(w);
	sys_fail("epoll_ctl", 0, 1000, ENOMEM);
	w->got_in = false;
	feed_loop_interest(w);
	cr_expect_gt(ddps_loop_run(w->l), 0);
	cr_expect(w->got_in);
	cr_expect_eq(w->l->hidden, &w->io);
	w->got_in = false;
	feed_loop_interest(w);
	eventfd_write(w->other.fd, 1); /* it would be the hot one now */
	cr_expect_geq(ddps_loop_run(w->l), 2);
	cr_expect(w->got_in && w->got_other);
	cr_expect_eq(w->l->hidden, &w->io);
	sys_fail(NULL, 0, 0, 0);
	cr_expect(does_loop_interest_end_well(w, SLEEPING));
	cr_expect_null(w->l->hidden);
	close_loop_interest_world(w);
}

/* It is noted, and added by the next round: before that it costs no call. */
Test(loop, what_is_late_is_added_by_the_next_round)
{
	struct world *w = &world;

	open_loop_interest_world(w);
	w->io.late = true;
	sys_fail("epoll_ctl", 0, 1000, ENOMEM);
	act_on_interest(w, WANT_READ);
	cr_expect_eq(sys_failed(), 0);
	feed_loop_interest(w);
	cr_expect_geq(ddps_loop_run(w->l), 0);
	cr_expect_gt(sys_failed(), 0);
	cr_expect(w->got_in, "whoever cannot be added is called");
	sleep_once(w);
	sys_fail(NULL, 0, 0, 0);
	cr_expect(does_loop_interest_end_well(w, SLEEPING));
	cr_expect_null(w->l->late);
	close_loop_interest_world(w);
}

/* Nothing would call a sleeper. */
Test(loop, nothing_is_late_where_somebody_may_sleep)
{
	struct world *w = &world;

	open_loop_interest_world(w);
	ddps_loop_fd(w->l);
	w->io.late = true;
	act_on_interest(w, WANT_READ);
	cr_expect_null(w->l->late);
	feed_loop_interest(w);
	sleep_once(w);
	cr_expect(w->got_in);
	close_loop_interest_world(w);
}

/* What has been added once is late no more. */
Test(loop, what_was_added_while_a_thread_slept_is_changed)
{
	struct world *w = &world;

	open_loop_interest_world(w);
	w->io.late = true;
	ddps_loop_sleep(w->l);
	act_on_interest(w, WANT_READ);
	ddps_loop_slept(w->l);
	cr_assert_eq(ddps_io_set(w->l, &w->io, EPOLLIN | EPOLLOUT), 0);
	cr_expect_null(w->l->late);
	cr_expect_geq(ddps_loop_run(w->l), 0);
	cr_expect(w->got_out);
	close_loop_interest_world(w);
}

Test(loop, a_loop_whose_descriptor_is_gone_says_so)
{
	struct world *w = &world;
	int epfd;

	hidden_world(w);
	epfd = dup(w->l->epfd);
	close(w->l->epfd);
	cr_expect_eq(ddps_loop_run(w->l), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EBADF);
	cr_assert_eq(dup2(epfd, w->l->epfd), w->l->epfd);
	close(epfd);
	cr_expect(does_loop_interest_end_well(w, SLEEPING));
	close_loop_interest_world(w);
}

static void forget_it(void *user)
{
	struct world *w = user;

	ddps_io_del(w->l, &w->io);
}

/* A task that was posted takes the hot one away: nobody looks at it any more. */
Test(loop, the_hot_one_goes_before_it_is_looked_at)
{
	struct world *w = &world;
	struct ddps_task t = { .fn = forget_it, .user = w };

	hidden_world(w);
	w->got_in = false;
	feed_loop_interest(w);
	ddps_task_post(w->l, &t);
	cr_expect_eq(ddps_loop_spin(w->l), 1);
	cr_expect_not(w->got_in);
	cr_expect_null(w->l->hot);
	close_loop_interest_world(w);
}

static void count_loop_interest(void *user)
{
	++*(unsigned *)user;
}

/* The loop's own descriptors: what is due is done, and the next turn reads them. */
Test(loop, a_read_of_its_own_descriptors_that_fails)
{
	struct world *w = &world;
	unsigned runs = 0;
	struct ddps_task task = { .fn = count_loop_interest, .user = &runs };
	struct ddps_timer timer = { .fn = count_loop_interest, .user = &runs };

	open_loop_interest_world(w);
	ddps_task_post(w->l, &task);
	sys_fail("read", 0, 1, EIO);
	cr_expect_eq(ddps_loop_run(w->l), DDPS_E_SYSTEM);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(runs, 1);
	cr_expect_eq(ddps_loop_run(w->l), 0);
	ddps_loop_fd(w->l); /* who has it may be asleep on it: the timerfd is set */
	ddps_timer_start(w->l, &timer, ddps_now());
	sys_fail("read", 0, 1, EIO);
	cr_expect_eq(ddps_loop_run(w->l), DDPS_E_SYSTEM);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(runs, 2);
	cr_expect_eq(ddps_loop_run(w->l), 0);
	cr_expect_eq(runs, 2);
	close_loop_interest_world(w);
}

/* Who polls looks at the clock anyway: a timer costs a call of the system only where somebody may sleep. */
Test(loop, the_timerfd_is_set_for_sleepers)
{
	struct world *w = &world;
	unsigned runs = 0;
	struct ddps_timer t = { .fn = count_loop_interest, .user = &runs };
	struct pollfd p = { .events = POLLIN };
	uint64_t soon;

	open_loop_interest_world(w);
	ddps_timer_start(w->l, &t, ddps_now());
	cr_expect_eq(w->l->armed, DDPS_NEVER);
	cr_expect_eq(ddps_loop_run(w->l), 1);
	cr_expect_eq(runs, 1);

	soon = ddps_now() + 1000000;
	ddps_timer_start(w->l, &t, soon);
	cr_expect_eq(w->l->armed, DDPS_NEVER);
	p.fd = ddps_loop_sleep(w->l); /* it runs already when he falls asleep */
	cr_expect_eq(w->l->armed, soon);
	cr_expect_eq(poll(&p, 1, 10000), 1);
	ddps_timer_start(w->l, &t, soon - 1); /* sooner, while he sleeps */
	cr_expect_eq(w->l->armed, soon - 1);
	ddps_loop_slept(w->l);
	cr_expect_eq(ddps_loop_run(w->l), 1);
	cr_expect_eq(runs, 2);

	ddps_timer_start(w->l, &t, ddps_now());
	cr_expect_eq(w->l->armed, DDPS_NEVER);
	p.fd = ddps_loop_fd(w->l);
	cr_expect_eq(poll(&p, 1, 10000), 1);
	cr_expect_eq(ddps_loop_run(w->l), 1);
	ddps_timer_start(w->l, &t, soon); /* it may have been kept */
	cr_expect_eq(w->l->armed, soon);
	close_loop_interest_world(w);
}

Test(loop, a_wait_that_is_interrupted_has_found_nothing)
{
	struct world *w = &world;

	open_loop_interest_world(w);
	act_on_interest(w, WANT_READ);
	feed_loop_interest(w);
	sys_fail("epoll_wait", 0, 1, EINTR);
	cr_expect_eq(ddps_loop_run(w->l), 0);
	cr_expect_not(w->got_in);
	cr_expect_eq(ddps_loop_run(w->l), 1);
	cr_expect(w->got_in);
	close_loop_interest_world(w);
}
