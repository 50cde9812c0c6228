/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop's clock and timers: a pairing heap inside the timers themselves, so that starting one
 * cannot fail, and a timerfd for the earliest. */
#include "common/loop/loop_in.h"
#include <ddpsess/err.h>
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

uint64_t ddps_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) void arm_earlier(struct ddps_loop *l, uint64_t due)
{
	struct itimerspec its = { 0 };

	if (!ddps_loop_owns(l))
		return;
	l->armed = due;
	if (!due) /* all zeros would disarm it */
		due = 1;
	its.it_value.tv_sec = (time_t)(due / NSEC_PER_SEC);
	its.it_value.tv_nsec = (long)(due % NSEC_PER_SEC);
	timerfd_settime(l->timerfd, TFD_TIMER_ABSTIME, &its, NULL);
}

/*
 * Make the timerfd fire at @due, or earlier if it already will.  Only who sleeps needs that: whoever polls looks
 * at the clock, and is spared two calls of the system for each timer that moves away before it is due.
 */
static inline void arm_timerfd(struct ddps_loop *l, uint64_t due)
{
	if (due < l->armed && (l->sleepers || l->kept))
		arm_earlier(l, due);
}

void ddps_loop_arm(struct ddps_loop *l)
{
	if (l->timers)
		arm_timerfd(l, l->timers->due);
}

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
static struct ddps_timer *merge_siblings(struct ddps_timer *first)
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
	return root;
}

/* The earliest of all is @t, or NULL. */
static void set_earliest(struct ddps_loop *l, struct ddps_timer *t)
{
	l->timers = t;
	if (t)
		t->prev = t;
}

void ddps_timer_start(struct ddps_loop *l, struct ddps_timer *t, uint64_t due)
{
	ddps_assert_loop(l);
	ddps_timer_stop(l, t);
	t->due = due;
	set_earliest(l, meld(l->timers, t));
	arm_timerfd(l, due);
}

void ddps_timer_after(struct ddps_loop *l, struct ddps_timer *t, uint32_t ms)
{
	if (ms)
		ddps_timer_start(l, t, ddps_now() + ms * NSEC_PER_MSEC);
	else
		ddps_timer_stop(l, t);
}

void ddps_timer_stop(struct ddps_loop *l, struct ddps_timer *t)
{
	struct ddps_timer *below;

	ddps_assert_loop(l);
	if (!ddps_timer_runs(t))
		return;
	below = merge_siblings(t->child);
	if (t == l->timers) {
		set_earliest(l, below);
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		set_earliest(l, meld(l->timers, below));
	}
	t->child = t->next = t->prev = NULL;
}

int ddps_loop_run_timers(struct ddps_loop *l, uint64_t now)
{
	int n = 0;

	ddps_assert_loop(l);
	while (l->timers && l->timers->due <= now) {
		struct ddps_timer *t = l->timers;

		ddps_timer_stop(l, t);
		t->fn(t->user);
		n++;
	}
	return n;
}

int ddps_loop_rearm(struct ddps_loop *l)
{
	uint64_t count;

	if (l->armed == DDPS_NEVER || l->armed > ddps_now())
		return 0;
	if (read(l->timerfd, &count, sizeof count) < 0 && errno != EAGAIN)
		return DDPS_E_SYSTEM;
	l->armed = DDPS_NEVER;
	if (l->timers)
		arm_timerfd(l, l->timers->due);
	return 0;
}
