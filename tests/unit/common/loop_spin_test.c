/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop: the busy one is tried without epoll, and others are not forgotten. */
#include "common/loop/loop_in.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct ddps_loop *loop;
static int epoll; /* its descriptor, as it was given out once */

static void setup(void)
{
	cr_assert_eq(ddps_loop_new(&loop), 0);
}

static void teardown(void)
{
	ddps_loop_free(loop);
}

TestSuite(loop_spin, .init = setup, .fini = teardown, .timeout = 20);

static struct ddps_io eager;
static int tries, found;
static int others; /* calls of what is not eager */

static void try_it(void *user, uint32_t events)
{
	uint64_t count;

	(void)user;
	(void)events;
	tries++;
	eager.moved = read(eager.fd, &count, sizeof count) == sizeof count;
	found += eager.moved;
}

static void make_eager(void)
{
	tries = found = 0;
	eager = (struct ddps_io){ .fd = eventfd(0, EFD_NONBLOCK), .fn = try_it, .eager = true };
	cr_assert_eq(ddps_io_set(loop, &eager, EPOLLIN), 0);
	for (int i = 1; i <= 2; i++) { /* once may be chance: it is asked for again by epoll */
		eventfd_write(eager.fd, 1);
		cr_assert_eq(ddps_loop_spin(loop), 1);
		cr_assert_eq(found, i);
		cr_expect_eq(ddps_loop_spin(loop), 0);
		cr_expect_eq(tries, i == 1 ? 1 : 3, "found alone %d times", i);
	}
}

static void serve_other(void *user, uint32_t events)
{
	(void)user;
	(void)events;
	others++;
}

static void fire_other(void *user)
{
	(void)user;
	others++;
}

/* It is tried without epoll, and what others have is found nevertheless, soon. */
Test(loop_spin, spinning_tries_the_busy_one_and_forgets_nobody)
{
	struct ddps_io other = { .fd = eventfd(0, EFD_NONBLOCK), .fn = serve_other };
	struct ddps_timer t = { .fn = fire_other };
	int rounds = 0;

	make_eager();
	for (int i = 0; i < 200; i++) { /* busy all the time: the other one has its turn */
		eventfd_write(eager.fd, 1);
		cr_assert_geq(ddps_loop_spin(loop), 1);
	}
	cr_expect_eq(found, 202);
	cr_assert_eq(ddps_io_set(loop, &other, EPOLLIN), 0);
	eventfd_write(other.fd, 1);
	for (; !others && rounds < 1000; rounds++)
		cr_assert_geq(ddps_loop_spin(loop), 0);
	cr_expect_leq(rounds, 130);
	ddps_io_del(loop, &other);
	close(other.fd);
	ddps_timer_start(loop, &t, 1);
	for (others = rounds = 0; !others && rounds < 1000; rounds++)
		cr_assert_geq(ddps_loop_spin(loop), 0);
	cr_expect_leq(rounds, 130);
	ddps_io_del(loop, &eager);
	close(eager.fd);
}

Test(loop_spin, spinning_leaves_alone_what_is_deleted_or_does_not_read)
{
	make_eager();
	cr_assert_eq(ddps_io_set(loop, &eager, EPOLLOUT), 0);
	eager.fn = serve_other; /* writable: epoll says so */
	cr_expect_eq(ddps_loop_spin(loop), 1);
	cr_expect_eq(others, 1);
	ddps_io_del(loop, &eager);
	cr_expect_eq(ddps_loop_spin(loop), 0);
	cr_expect_eq(others, 1);
	close(eager.fd);
}

/* Does epoll's set hold @fd? */
static bool is_fd_watched(int fd)
{
	char path[64], line[256];
	bool found_it = false;
	FILE *f;
	int tfd;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
	f = fopen(path, "re");
	cr_assert(f);
	while (fgets(line, sizeof line, f))
		found_it |= sscanf(line, "tfd: %d", &tfd) == 1 && tfd == fd;
	fclose(f);
	return found_it;
}

/* Tries in vain that pay, until epoll is not informed of it any more. */
static void make_hidden(void)
{
	epoll = ddps_loop_fd(loop);
	make_eager();
	for (int i = 0; i < 2000 && is_fd_watched(eager.fd); i++) {
		cr_assert_eq(ddps_loop_spin(loop), 0);
		eventfd_write(eager.fd, 1);
		for (int before = found; found == before;)
			cr_assert_geq(ddps_loop_spin(loop), 0);
	}
	cr_assert_not(is_fd_watched(eager.fd), "hidden");
	cr_expect(ddps_loop_polled(loop));
	found = 0;
}

static void drop_eager(void)
{
	ddps_io_del(loop, &eager);
	close(eager.fd);
}

static bool fd_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static bool readable_now(void)
{
	return fd_readable(epoll);
}

/* Sleep on the descriptor as it was given out long ago. */
static void sleep_until_found(void)
{
	struct pollfd p = { .fd = epoll, .events = POLLIN };

	while (!found) {
		cr_assert_eq(poll(&p, 1, 10000), 1, "nobody woke up");
		cr_assert_geq(ddps_loop_run(loop), 0);
	}
}

Test(loop_spin, who_asks_for_the_descriptor_sees_what_was_hidden)
{
	make_hidden();
	eventfd_write(eager.fd, 1);
	cr_assert_eq(ddps_loop_fd(loop), epoll);
	cr_expect(is_fd_watched(eager.fd));
	cr_expect(readable_now());
	cr_expect_geq(ddps_loop_run(loop), 1);
	cr_expect_eq(found, 1);
	drop_eager();
}

Test(loop_spin, who_sleeps_on_the_descriptor_as_it_was_wakes_nevertheless)
{
	make_hidden();
	eventfd_write(eager.fd, 1);
	sleep_until_found();
	cr_expect(is_fd_watched(eager.fd));
	drop_eager();
}

Test(loop_spin, others_are_served_while_one_is_hidden)
{
	struct ddps_io other = { .fd = eventfd(0, EFD_NONBLOCK), .fn = serve_other };

	make_hidden();
	cr_assert_eq(ddps_io_set(loop, &other, EPOLLIN), 0);
	eventfd_write(other.fd, 1);
	for (int i = 0; !others && i < 1000; i++)
		cr_assert_geq(ddps_loop_spin(loop), 0);
	cr_expect_geq(others, 1);
	cr_expect(is_fd_watched(eager.fd), "it is not the only one any more");
	ddps_io_del(loop, &other);
	close(other.fd);
	drop_eager();
}

Test(loop_spin, what_is_hidden_can_be_changed_and_deleted)
{
	struct epoll_event none;

	make_hidden();
	cr_assert_eq(ddps_io_set(loop, &eager, EPOLLOUT), 0);
	cr_expect(is_fd_watched(eager.fd));
	cr_expect(readable_now());
	drop_eager();

	make_hidden();
	drop_eager();
	cr_expect_eq(ddps_loop_spin(loop), 0);
	/* The guard has gone with it: what is left of it wakes nobody twice. */
	while (poll(&(struct pollfd){ .fd = epoll, .events = POLLIN }, 1, 20) == 1)
		cr_assert_eq(ddps_loop_run(loop), 0);
	cr_expect_eq(epoll_wait(epoll, &none, 1, 0), 0);
}

static void run_once(void *user)
{
	(*(int *)user)++;
}

/* Whoever polls runs it with the next poll, without a call to the system for it; whoever sleeps is
 * informed of it, by the guard at the latest. */
Test(loop_spin, what_is_posted_while_one_is_hidden_is_run)
{
	int ran = 0;
	struct ddps_task task = { .fn = run_once, .user = &ran };

	make_hidden();
	ddps_task_post(loop, &task);
	/* Not the whole set: on a slow machine the guard's millisecond is over by now. */
	cr_expect_not(fd_readable(loop->taskfd));
	cr_expect_geq(ddps_loop_spin(loop), 1);
	cr_expect_eq(ran, 1);
	cr_expect_not(is_fd_watched(eager.fd));

	ddps_task_post(loop, &task);
	cr_assert_eq(ddps_loop_fd(loop), epoll);
	cr_expect(readable_now());
	cr_expect_geq(ddps_loop_run(loop), 1);
	cr_expect_eq(ran, 2);
	drop_eager();

	make_hidden();
	ddps_task_post(loop, &task);
	while (ran == 2) {
		cr_assert_eq(poll(&(struct pollfd){ .fd = epoll, .events = POLLIN }, 1, 10000), 1,
			     "nobody woke up");
		cr_assert_geq(ddps_loop_run(loop), 0);
	}
	drop_eager();

	make_hidden();
	ddps_task_post(loop, &task);
	drop_eager();
	cr_expect(readable_now());
	cr_expect_geq(ddps_loop_run(loop), 1);
	cr_expect_eq(ran, 4);
}

/* A library's thread that sleeps does not wait for the guard. */
Test(loop_spin, a_thread_that_sleeps_is_informed_of_tasks_immediately)
{
	int ran = 0;
	struct ddps_task task = { .fn = run_once, .user = &ran };

	make_hidden();
	ddps_loop_sleep(loop);
	while (is_fd_watched(eager.fd)) { /* others go on polling */
		eventfd_write(eager.fd, 1);
		cr_assert_geq(ddps_loop_spin(loop), 0);
	}
	ddps_task_post(loop, &task);
	cr_expect(readable_now());
	cr_expect_geq(ddps_loop_run(loop), 1);
	cr_expect_eq(ran, 1);
	ddps_loop_slept(loop);
	drop_eager();
}

/* No memory for epoll's entry, say; here the number is not open for a moment. */
Test(loop_spin, what_cannot_be_shown_is_tried_until_it_can)
{
	int keep;

	make_hidden();
	keep = dup(eager.fd);
	close(eager.fd);
	ddps_loop_fd(loop);
	cr_assert_eq(dup2(keep, eager.fd), eager.fd);
	close(keep);
	cr_expect_not(is_fd_watched(eager.fd));
	eventfd_write(eager.fd, 1);
	sleep_until_found();
	cr_expect(is_fd_watched(eager.fd));
	drop_eager();
}

/* A busy one that is tried without epoll: after so many octets the other one is found. */
static void two_are_ready(size_t octets, int most)
{
	struct ddps_io other = { .fd = eventfd(1, EFD_NONBLOCK), .fn = serve_other };
	int spins = 0;

	make_eager();
	for (int i = 0; i < 8; i++) {
		eventfd_write(eager.fd, 1);
		cr_assert_geq(ddps_loop_spin(loop), 1);
	}
	ddps_io_moved(loop, &eager, DDPS_LIGHT_OCTETS + 1);
	others = 0;
	cr_assert_eq(ddps_io_set(loop, &other, EPOLLIN), 0);
	for (; !others && spins < 1000; spins++) {
		eventfd_write(eager.fd, 1);
		ddps_io_moved(loop, &eager, octets);
		cr_assert_geq(ddps_loop_spin(loop), 0);
	}
	cr_expect_leq(spins, most, "%zu octets each time: %d", octets, spins);
	ddps_io_del(loop, &other);
	close(other.fd);
	drop_eager();
}

Test(loop_spin, spinning_asks_epoll_after_so_many_octets)
{
	struct ddps_io little = { .fd = -1 };

	two_are_ready(1u << 20, DDPS_SPENT_MOST / (1u << 20) + 1);
	for (int i = 0; i <= DDPS_LIGHT; i++) { /* from now on it is gentle */
		cr_assert_geq(ddps_loop_run(loop), 0);
		ddps_io_moved(loop, &little, 1);
	}
	two_are_ready(DDPS_SPENT_GENTLE / 2, 3);
}
