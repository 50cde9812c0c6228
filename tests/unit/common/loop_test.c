/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop: order of timers, tasks, deletion inside callbacks. */
#include "common/loop/loop_in.h"
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct ddps_loop *loop;
static int order[64], norder;

static void setup(void)
{
	cr_assert_eq(ddps_loop_new(&loop), 0);
}

static void teardown(void)
{
	ddps_loop_free(loop);
}

TestSuite(loop, .init = setup, .fini = teardown, .timeout = 20);

static void note_order(void *user)
{
	order[norder++] = *(int *)user;
}

static void run_until_noted(int n)
{
	while (norder < n) {
		struct pollfd pfd = { .fd = ddps_loop_fd(loop), .events = POLLIN };

		cr_assert_eq(poll(&pfd, 1, 10000), 1, "the descriptor did not become readable");
		cr_assert_geq(ddps_loop_run(loop), 0);
	}
}

Test(loop, timers_run_in_order_of_time)
{
	static struct ddps_timer t[32];
	static int ids[32];
	uint64_t now = ddps_now();

	for (int i = 0; i < 32; i++) {
		ids[i] = i;
		t[i] = (struct ddps_timer){ .fn = note_order, .user = &ids[i] };
	}
	/* Inserted in a scrambled order, a third of them stopped again. */
	for (int i = 0; i < 32; i++) {
		int k = (i * 11) % 32;

		ddps_timer_start(loop, &t[k], now + (uint64_t)k * 100000);
	}
	for (int i = 0; i < 32; i += 3)
		ddps_timer_stop(loop, &t[i]);
	run_until_noted(21);
	for (int i = 0, k = 0; i < 32; i++)
		if (i % 3)
			cr_expect_eq(order[k++], i);
	cr_expect_eq(norder, 21);
}

static uint64_t latest;
static unsigned called;

static void expect_timer_order(void *user)
{
	const struct ddps_timer *t = user;

	cr_expect_geq(t->due, latest, "a timer overtook another");
	cr_expect_not(ddps_timer_runs(t));
	latest = t->due;
	called++;
}

/* Starting, moving and stopping many at random, against a plain count. */
Test(loop, many_timers_keep_their_order)
{
	static struct ddps_timer t[500];
	uint64_t now = ddps_now();
	uint32_t seed = 1;
	unsigned on = 0;

	for (unsigned i = 0; i < 500; i++)
		t[i] = (struct ddps_timer){ .fn = expect_timer_order, .user = &t[i] };
	for (unsigned i = 0; i < 20000; i++) {
		struct ddps_timer *one = &t[(seed = seed * 1664525u + 1013904223u) >> 8 & 0xff];

		if (i % 3)
			ddps_timer_start(loop, one, now - seed % 100000);
		else
			ddps_timer_stop(loop, one);
	}
	for (unsigned i = 0; i < 500; i++)
		on += ddps_timer_runs(&t[i]);
	cr_assert_gt(on, 50);
	cr_expect_eq(ddps_loop_run(loop), (int)on);
	cr_expect_eq(called, on);
}

Test(loop, restarting_a_timer_moves_it)
{
	int one = 1, two = 2;
	struct ddps_timer a = { .fn = note_order, .user = &one },
			  b = { .fn = note_order, .user = &two };
	uint64_t now = ddps_now();

	ddps_timer_start(loop, &a, now);
	ddps_timer_start(loop, &b, now + 1000000);
	ddps_timer_start(loop, &a, now + 2000000);
	run_until_noted(2);
	cr_expect_eq(order[0], 2);
	cr_expect_eq(order[1], 1);
}

Test(loop, after_zero_means_no_deadline)
{
	int one = 1;
	struct ddps_timer a = { .fn = note_order, .user = &one };

	ddps_timer_after(loop, &a, 1);
	ddps_timer_after(loop, &a, 0);
	cr_expect_not(ddps_timer_runs(&a));
}

static struct ddps_task again_task;
static int again_left;

static void post_task_again(void *user)
{
	note_order(user);
	if (again_left--)
		ddps_task_post(loop, &again_task);
}

Test(loop, tasks_may_post_themselves_without_starving_the_rest)
{
	static int one = 1;

	again_task = (struct ddps_task){ .fn = post_task_again, .user = &one };
	again_left = 20;
	ddps_task_post(loop, &again_task);
	ddps_task_post(loop, &again_task); /* idempotent */
	cr_assert_geq(ddps_loop_run(loop), 1);
	cr_expect_lt(norder, 21, "one run has a bound");
	run_until_noted(21);
	cr_expect_eq(norder, 21);
}

Test(loop, a_cancelled_task_does_not_run)
{
	int one = 1, two = 2;
	struct ddps_task a = { .fn = note_order, .user = &one },
			 b = { .fn = note_order, .user = &two };

	ddps_task_post(loop, &a);
	ddps_task_post(loop, &b);
	ddps_task_cancel(loop, &a);
	run_until_noted(1);
	cr_expect_eq(norder, 1);
	cr_expect_eq(order[0], 2);
}

static struct ddps_io ios[2];

static void delete_other(void *user, uint32_t events)
{
	struct ddps_io *self = user, *other = &ios[self == &ios[0]];

	cr_expect(events & EPOLLIN);
	ddps_io_del(loop, other);
	ddps_io_del(loop, self);
	norder++;
}

Test(loop, a_descriptor_deleted_in_the_same_round_is_not_served)
{
	for (int i = 0; i < 2; i++) {
		ios[i] = (struct ddps_io){ .fd = eventfd(1, EFD_NONBLOCK),
					   .fn = delete_other,
					   .user = &ios[i] };
		cr_assert_eq(ddps_io_set(loop, &ios[i], EPOLLIN), 0);
	}
	cr_assert_geq(ddps_loop_run(loop), 1);
	cr_assert_geq(ddps_loop_run(loop), 0);
	cr_expect_eq(norder, 1);
	close(ios[0].fd);
	close(ios[1].fd);
}

/* ---- standing still ---- */

static struct ddps_timer late_timer;
static struct ddps_io late_news, still;
static bool timed_out, heard;

static void time_out(void *user)
{
	(void)user;
	cr_expect(heard, "before what had come");
	timed_out = true;
}

static void hear_late_news(void *user, uint32_t events)
{
	(void)user;
	(void)events;
	heard = true;
	ddps_io_del(loop, &late_news);
}

/* The process is stopped here until the timer is due, and news come meanwhile. */
static void stand_still(void *user, uint32_t events)
{
	(void)user;
	(void)events;
	ddps_io_del(loop, &still);
	while (ddps_now() < late_timer.due)
		;
	eventfd_write(late_news.fd, 1);
}

Test(loop, what_has_come_has_the_first_word_when_a_timer_is_late)
{
	still = (struct ddps_io){ .fd = eventfd(1, EFD_NONBLOCK), .fn = stand_still };
	late_news = (struct ddps_io){ .fd = eventfd(0, EFD_NONBLOCK), .fn = hear_late_news };
	cr_assert_eq(ddps_io_set(loop, &late_news, EPOLLIN), 0);
	late_timer.fn = time_out;
	cr_assert_eq(ddps_io_set(loop, &still, EPOLLIN), 0);
	ddps_timer_start(loop, &late_timer, ddps_now() + 20 * NSEC_PER_MSEC);
	while (!timed_out)
		cr_assert_geq(ddps_loop_run(loop), 0);
	close(late_news.fd);
	close(still.fd);
}

/* ---- many ---- */

#define CROWD 5

static struct ddps_io crowd[CROWD];
static int asked_far[CROWD], asked_next[CROWD], forgets;

static void ask_soon_of_crowd(void *user, bool next)
{
	int at = (int)((struct ddps_io *)user - crowd);

	cr_expect_not(order[at], "%d was asked for when it had been called", at);
	if (next) { /* all but the first two were asked for before that */
		cr_expect(asked_far[at] || norder < 1);
		asked_next[at]++;
	} else {
		asked_far[at]++;
	}
}

static void call_of_crowd(void *user, uint32_t events)
{
	int at = (int)((struct ddps_io *)user - crowd);
	eventfd_t count;

	cr_expect(events & EPOLLIN);
	eventfd_read(crowd[at].fd, &count);
	order[at] = ++norder;
	if (forgets && norder == 1)
		ddps_io_del(loop, &crowd[3]);
}

static void run_crowd(bool many)
{
	norder = 0;
	for (int i = 0; i < CROWD; i++) {
		asked_far[i] = asked_next[i] = order[i] = 0;
		eventfd_write(crowd[i].fd, 1);
	}
	ddps_loop_many(loop, many);
	cr_assert_gt(ddps_loop_run(loop), 0);
}

Test(loop, what_is_called_soon_learns_it_where_there_are_many)
{
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = (struct ddps_io){ .fd = eventfd(0, EFD_NONBLOCK),
					     .fn = call_of_crowd,
					     .user = &crowd[i],
					     .soon = i == 4 ? NULL : ask_soon_of_crowd };
		cr_assert_eq(ddps_io_set(loop, &crowd[i], EPOLLIN), 0);
	}
	run_crowd(false);
	for (int i = 0; i < CROWD; i++)
		cr_expect(order[i] && !asked_far[i] && !asked_next[i], "few: %d", i);
	run_crowd(true);
	for (int i = 0; i < CROWD; i++) {
		cr_expect_eq(asked_next[i], order[i] > 1 && i != 4, "%d", i);
		cr_expect_eq(asked_far[i], order[i] > 2 && i != 4, "%d", i);
	}
	forgets = 1; /* one that is gone is not asked for */
	run_crowd(true);
	cr_expect_eq(norder, CROWD - 1);
	cr_expect(!order[3] && !asked_next[3] && !asked_far[3]);
	for (int i = 0; i < CROWD; i++)
		close(crowd[i].fd);
}

/* ---- whose the descriptors are ---- */

/* As if the program had closed all, and the last look were long ago. */
static void close_all_of_the_loop(void)
{
	loop->era++;
	loop->owned_until = 0;
}

Test(loop, a_look_is_good_for_three_more_calls_of_a_turn)
{
	ddps_loop_join(loop);
	cr_assert(ddps_loop_owns(loop));
	close_all_of_the_loop();
	for (int i = 0; i < 3; i++)
		cr_expect(ddps_loop_owns(loop));
	errno = 0;
	cr_expect_not(ddps_loop_owns(loop));
	cr_expect_eq(errno, EBADF);
	loop->era--;
	cr_assert(ddps_loop_owns(loop));
	close_all_of_the_loop();
	ddps_loop_part(loop);
	cr_expect_not(ddps_loop_owns(loop), "the turn is over");
	cr_expect_eq(ddps_loop_run(loop), DDPS_E_SYSTEM);
	cr_expect_not(loop->running);
	loop->era--;
	cr_expect_eq(ddps_loop_run(loop), 0);
	close_all_of_the_loop();
	cr_expect_not(ddps_loop_owns(loop), "that turn is over, too");
}

/* ---- who moves little ---- */

/* As many turns, in each of which @io moves so much. */
static void move_octets_in_turns(struct ddps_io *io, size_t octets, int turns)
{
	for (int i = 0; i < turns; i++) {
		cr_assert_geq(ddps_loop_run(loop), 0);
		ddps_io_moved(loop, io, octets);
	}
}

Test(loop, one_that_moves_little_each_turn_makes_it_gentle)
{
	struct ddps_io little = { .fd = eventfd(0, EFD_NONBLOCK) }, much = little;

	cr_assert_eq(ddps_io_set(loop, &little, EPOLLIN), 0);
	move_octets_in_turns(&much, DDPS_LIGHT_OCTETS + 1, 2 * DDPS_LIGHT);
	move_octets_in_turns(&little, DDPS_LIGHT_OCTETS, DDPS_LIGHT - 1);
	cr_expect_not(ddps_loop_gentle(loop));
	cr_expect_eq(ddps_loop_share(loop, 1000, 10, 1000), 1000u);
	move_octets_in_turns(&little, 1, 1);
	cr_expect(ddps_loop_gentle(loop));
	cr_expect_eq(ddps_loop_share(loop, 1000, 10, 1000), 10u);
	ddps_io_moved(loop, &little, DDPS_LIGHT_OCTETS - 1);
	cr_expect(ddps_loop_gentle(loop), "not more than a light one may");
	ddps_io_moved(loop, &little, 1);
	cr_expect_not(ddps_loop_gentle(loop), "it has moved more in this turn");
	move_octets_in_turns(&little, 1, DDPS_LIGHT + 1);
	cr_expect(ddps_loop_gentle(loop));
	ddps_io_del(loop, &little);
	cr_expect_not(ddps_loop_gentle(loop), "it is gone");
	close(little.fd);
}

Test(loop, others_wait_for_the_next_turn_while_it_is_gentle)
{
	struct ddps_io little = { .fd = -1 }, much = little;

	move_octets_in_turns(&much, DDPS_SPENT_GENTLE, 1);
	cr_expect_not(ddps_io_waits(loop, &much), "for nobody");
	move_octets_in_turns(&little, 1, DDPS_LIGHT);
	ddps_io_moved(loop, &much, DDPS_SPENT_GENTLE - 2);
	cr_expect_not(ddps_io_waits(loop, &much));
	ddps_io_moved(loop, &much, 1);
	cr_expect(ddps_io_waits(loop, &much));
	cr_expect_not(ddps_io_waits(loop, &little));
	cr_assert_geq(ddps_loop_run(loop), 0);
	cr_expect_not(ddps_io_waits(loop, &much), "a new turn");
}

/* One that has said nothing for long is not waited for, until it moves again. */
Test(loop, who_is_quiet_for_long_makes_nobody_wait)
{
	struct ddps_io little = { .fd = -1 }, much = little;

	move_octets_in_turns(&little, 1, DDPS_LIGHT);
	move_octets_in_turns(&much, 1u << 20, (int)(DDPS_QUIET >> 20));
	cr_expect(ddps_loop_gentle(loop));
	move_octets_in_turns(&much, 1u << 20, 2);
	cr_expect_not(ddps_loop_gentle(loop));
	cr_expect_not(ddps_io_waits(loop, &much));
	move_octets_in_turns(&little, 1, 1);
	cr_expect(ddps_loop_gentle(loop));
}
