/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop: signs in memory that are looked at.  Whoever moves one rings only if nobody looks. */
#include "common/loop/loop_in.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SIDES 300 /* more than are looked at */

static struct side {
	struct ddps_io io;
	struct ddps_sign sign;
	uint64_t head, at; /* moved by the other side, taken by this one */
	uint32_t end, ended;
	bool looked_at, stalled; /* nothing is taken */
	unsigned calls, told, rung;
	struct ddps_task task;
} sides[SIDES];

static struct ddps_loop *l;
static struct side *victim; /* goes when the next one is called */
static unsigned nopen;

static bool has_side_news(const struct side *s)
{
	return !s->stalled && (s->head != s->at || s->end != s->ended);
}

static void take_side(struct side *s)
{
	s->io.moved |= has_side_news(s);
	if (s->stalled)
		return;
	s->at = s->head;
	s->ended = s->end;
}

static void on_side(void *user, uint32_t events)
{
	struct side *s = user;
	eventfd_t count;

	cr_expect(events & EPOLLIN);
	s->calls++;
	if (!ddps_loop_trying(l))
		(void)!eventfd_read(s->io.fd, &count);
	take_side(s);
	if (victim)
		ddps_io_del(l, &victim->io);
	victim = NULL;
}

static void on_side_task(void *user)
{
	take_side(user);
}

static void on_looked_at(void *user, bool looked_at)
{
	struct side *s = user;

	cr_expect_neq(s->looked_at, looked_at);
	s->looked_at = looked_at;
	s->told++;
	if (!looked_at && has_side_news(s))
		ddps_task_post(l, &s->task);
}

static void ring_side(struct side *s)
{
	eventfd_write(s->io.fd, 1);
	s->rung++;
}

static void move_side(struct side *s)
{
	s->head++;
	if (!s->looked_at)
		ring_side(s);
}

static void open_sight_side(struct side *s)
{
	*s = (struct side){
		.io = { .fd = eventfd(0, EFD_NONBLOCK), .fn = on_side, .user = s, .eager = true },
		.sign = { &s->head, &s->end, on_looked_at },
		.task = { .fn = on_side_task, .user = s },
	};
	s->io.sign = &s->sign;
	cr_assert_geq(s->io.fd, 0);
	cr_assert_eq(ddps_io_set(l, &s->io, EPOLLIN | EPOLLET), 0);
	nopen++;
}

static void open_sides(unsigned n)
{
	while (nopen < n)
		open_sight_side(&sides[nopen]);
}

static void close_sides(void)
{
	while (nopen) {
		struct side *s = &sides[--nopen];

		ddps_io_del(l, &s->io);
		ddps_task_cancel(l, &s->task);
		close(s->io.fd);
	}
}

static void init(void)
{
	cr_assert_eq(ddps_loop_new(&l), 0);
}

static void fini(void)
{
	close_sides();
	ddps_loop_free(l);
}

TestSuite(loop_sight, .init = init, .fini = fini, .timeout = 60);

static void spin_once(void)
{
	cr_assert_geq(ddps_loop_spin(l), 0);
}

/* Polled for so long that those which move are looked at. */
static void look_at_sides(unsigned n)
{
	for (unsigned k = 0; k < DDPS_HIDE_AFTER + 2; k++)
		for (unsigned i = 0; i < n; i++) {
			move_side(&sides[i]);
			for (unsigned tries = 0; sides[i].at != sides[i].head && tries < 100;
			     tries++)
				spin_once();
			cr_assert_eq(sides[i].at, sides[i].head);
		}
}

static void await_side(const struct side *s, unsigned polls)
{
	while (s->at != s->head && polls--)
		spin_once();
	cr_expect_eq(s->at, s->head);
}

Test(loop_sight, nobody_rings_for_whoever_polls)
{
	unsigned calls[3], rung[3];

	open_sides(3);
	look_at_sides(3);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert(sides[i].looked_at);
		rung[i] = sides[i].rung;
	}
	for (unsigned k = 0; k < 100; k++) {
		move_side(&sides[k % 3]);
		await_side(&sides[k % 3], 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(sides[i].rung, rung[i]);
		calls[i] = sides[i].calls;
	}
	for (unsigned k = 0; k < 200; k++)
		spin_once();
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(sides[i].calls, calls[i], "nothing has changed");
	sides[1].end = 1;
	spin_once();
	cr_expect_eq(sides[1].ended, 1);
	ddps_io_again(l, &sides[2].io);
	spin_once();
	cr_expect_eq(sides[2].calls, calls[2] + 1, "it was asked for");
}

Test(loop_sight, few_polls_pay_for_nothing)
{
	open_sides(2);
	for (unsigned k = 0; k < 10 * DDPS_HIDE_AFTER; k++) {
		move_side(&sides[k % 2]);
		await_side(&sides[k % 2], 100);
		if (k % (DDPS_HIDE_AFTER / 2) == 0)
			ddps_loop_fd(l);
	}
	cr_expect_eq(sides[0].told + sides[1].told, 0);
}

/* Whoever runs the loop, or asks for its descriptor, may sleep then. */
Test(loop_sight, all_are_found_by_whoever_may_sleep)
{
	struct pollfd p = { .events = POLLIN };

	open_sides(3);
	look_at_sides(3);
	move_side(&sides[0]);
	move_side(&sides[2]);
	cr_expect(ddps_loop_polled(l));
	p.fd = ddps_loop_fd(l);
	cr_expect_not(ddps_loop_polled(l));
	cr_expect_eq(poll(&p, 1, 0), 1);
	cr_assert_geq(ddps_loop_run(l), 0);
	cr_expect_eq(sides[0].at, sides[0].head);
	cr_expect_eq(sides[2].at, sides[2].head);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_not(sides[i].looked_at);
	move_side(&sides[1]);
	cr_expect_eq(poll(&p, 1, 0), 1, "it rings again");
}

/* The descriptor as it was given out long ago. */
Test(loop_sight, whoever_sleeps_nevertheless_is_woken_by_the_guard)
{
	struct pollfd p = { .events = POLLIN };

	p.fd = ddps_loop_fd(l);
	open_sides(2);
	look_at_sides(2);
	move_side(&sides[1]);
	while (sides[1].at != sides[1].head) {
		cr_assert_eq(poll(&p, 1, 10000), 1, "nobody woke up");
		cr_assert_geq(ddps_loop_run(l), 0);
	}
}

Test(loop_sight, nothing_is_looked_at_next_to_whoever_watches)
{
	open_sides(2);
	cr_expect_geq(ddps_loop_watch(l), 0);
	look_at_sides(2);
	cr_expect_eq(sides[0].told + sides[1].told, 0);
	ddps_loop_watched(l);
	look_at_sides(2);
	cr_expect(sides[0].looked_at && sides[1].looked_at);
}

Test(loop_sight, without_memory_they_ring)
{
	open_sides(2);
	mem_fail(1);
	for (unsigned k = 0; k < 100 && !mem_failed(); k++) {
		move_side(&sides[k % 2]);
		await_side(&sides[k % 2], 100);
	}
	cr_expect(mem_failed());
	cr_expect_eq(sides[0].told + sides[1].told, 0);
	mem_fail(0);
	look_at_sides(2);
	cr_expect(sides[0].looked_at && sides[1].looked_at);
}

/* Those for which there is no room ring, and are served nevertheless. */
Test(loop_sight, more_than_there_is_room_for)
{
	unsigned looked_at = 0;

	open_sides(SIDES);
	look_at_sides(SIDES);
	for (unsigned i = 0; i < SIDES; i++)
		looked_at += sides[i].looked_at;
	cr_expect_eq(looked_at, DDPS_SIGHTS);
	for (unsigned i = 0; i < SIDES; i++)
		move_side(&sides[i]);
	for (unsigned i = 0; i < SIDES; i++)
		await_side(&sides[i], 100);
	/* One goes, and one that had no room is looked at. */
	for (unsigned i = 0; i < SIDES; i++)
		if (sides[i].looked_at) {
			ddps_io_del(l, &sides[i].io);
			break;
		}
	looked_at = 0;
	for (unsigned i = 0; i < SIDES; i++)
		if (sides[i].io.added && !sides[i].looked_at) {
			move_side(&sides[i]);
			await_side(&sides[i], 100);
			looked_at += sides[i].looked_at;
		}
	cr_expect_eq(looked_at, 1);
}

/* Any may go while any is called, also itself. */
Test(loop_sight, one_goes_while_another_is_served)
{
	for (unsigned k = 0; k < 16; k++) {
		open_sides(4);
		look_at_sides(4);
		victim = &sides[k / 4];
		for (unsigned i = k % 4; i < 4; i++)
			move_side(&sides[i]);
		for (unsigned i = k % 4; i < 4; i++)
			if (&sides[i] != &sides[k / 4])
				await_side(&sides[i], 100);
		spin_once();
		cr_expect_null(victim);
		cr_expect_not(sides[k / 4].io.added);
		close_sides();
		cr_expect_not(ddps_loop_polled(l), "none is left");
	}
}

static void count_other(void *user, uint32_t events)
{
	(void)events;
	++*(unsigned *)user;
}

/* Epoll has its turn, however much signs have to say. */
Test(loop_sight, others_have_their_turn)
{
	unsigned calls = 0;
	struct ddps_io other = { .fd = eventfd(1, EFD_NONBLOCK),
				 .fn = count_other,
				 .user = &calls };

	open_sides(2);
	look_at_sides(2);
	cr_assert_eq(ddps_io_set(l, &other, EPOLLIN), 0);
	for (unsigned k = 0; k < 300; k++) {
		move_side(&sides[0]);
		await_side(&sides[0], 100);
	}
	cr_expect_geq(calls, 3);
	cr_expect(sides[0].looked_at);
	for (unsigned k = calls = 0; k < 300; k++) /* and when they have nothing */
		spin_once();
	cr_expect_geq(calls, 100);
	/* One that moves much waits for it. */
	l->load.lights = 1;
	calls = 0;
	ddps_io_moved(l, &sides[0].io, DDPS_SPENT_GENTLE);
	move_side(&sides[0]);
	await_side(&sides[0], 2);
	cr_expect_eq(calls, 1);
	l->load.lights = 0;
	ddps_io_del(l, &other);
	close(other.fd);
}

/* ---- no news are ever lost, in whatever order things are done ---- */

enum sight_act { MOVE, MOVE_OTHER, END, RING, STALL, GO_ON, POLL, RUN, ASK, LEAVE, NSIGHTACTS };

#define SIGHT_DEEP 4

static void act_on_sight(enum sight_act a)
{
	struct side *s = &sides[0];

	switch (a) {
	case MOVE:
	case MOVE_OTHER:
		move_side(&sides[a == MOVE_OTHER]);
		break;
	case END:
		s->end++;
		if (!s->looked_at)
			ring_side(s);
		break;
	case RING: /* a bell for nothing */
		ring_side(s);
		break;
	case STALL:
		s->stalled = true;
		break;
	case GO_ON:
		s->stalled = false;
		if (s->io.sight)
			ddps_io_again(l, &s->io);
		else if (has_side_news(s))
			ddps_task_post(l, &s->task);
		break;
	case POLL:
		spin_once();
		break;
	case RUN:
		cr_assert_geq(ddps_loop_run(l), 0);
		break;
	case ASK:
		ddps_loop_fd(l);
		break;
	default:
		ddps_io_del(l, &sides[2].io);
		break;
	}
}

/* Both ways to go on: polling, or sleeping until something is readable. */
static void end_sight_order(bool sleeps, unsigned order)
{
	struct pollfd p = { .events = POLLIN };
	unsigned left = 100;

	act_on_sight(GO_ON);
	while ((has_side_news(&sides[0]) || has_side_news(&sides[1])) && left--) {
		if (!sleeps) {
			spin_once();
			continue;
		}
		p.fd = ddps_loop_fd(l);
		if (poll(&p, 1, 0) == 1)
			cr_assert_geq(ddps_loop_run(l), 0);
	}
	cr_assert_not(has_side_news(&sides[0]) || has_side_news(&sides[1]), "order %u, sleeping %d",
		      order, sleeps);
}

Test(loop_sight, no_news_are_ever_lost)
{
	unsigned orders = 1;

	for (int i = 0; i < SIGHT_DEEP; i++)
		orders *= NSIGHTACTS;
	open_sides(2);
	for (unsigned k = 0; k < orders * 2; k++) {
		unsigned left = k / 2;

		open_sides(3);
		look_at_sides(3);
		cr_assert(sides[0].looked_at && sides[1].looked_at && sides[2].looked_at);
		for (int i = 0; i < SIGHT_DEEP; i++, left /= NSIGHTACTS)
			act_on_sight(left % NSIGHTACTS);
		end_sight_order(k % 2, k / 2);
		ddps_io_del(l, &sides[2].io);
		ddps_task_cancel(l, &sides[2].task);
		close(sides[2].io.fd);
		nopen = 2;
	}
}
