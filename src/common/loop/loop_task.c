/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop's deferred calls, and whoever sleeps on its descriptor: an eventfd in it stands for both. */
#include "common/loop/loop_in.h"
#include <ddpsess/err.h>
#include <unistd.h>

#define TASK_ROUNDS 4

/*
 * Wake who sleeps on the loop's descriptor.  An eventfd, since a timerfd that is set to the past
 * costs an interrupt of the clock, and loses the time that it was set to.
 */
void ddps_loop_wake_sleeper(struct ddps_loop *l)
{
	uint64_t one = 1;

	ddps_uncancellable_within(); /* also for whoever only posts work */
	if (!l->told && ddps_loop_owns(l))
		l->told = write(l->taskfd, &one, sizeof one) > 0;
	ddps_uncancellable_end();
}

void ddps_loop_wake(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->waking = true;
	ddps_loop_wake_sleeper(l);
}

void ddps_loop_awake(struct ddps_loop *l)
{
	ddps_assert_loop(l);
	l->waking = false;
}

void ddps_task_post(struct ddps_loop *l, struct ddps_task *t)
{
	ddps_assert_loop(l);
	if (t->prev)
		return;
	t->next = NULL;
	t->prev = l->tasks_end;
	*l->tasks_end = t;
	l->tasks_end = &t->next;
	if (!l->running)
		ddps_loop_tell(l);
}

void ddps_task_cancel(struct ddps_loop *l, struct ddps_task *t)
{
	ddps_assert_loop(l);
	if (!t->prev)
		return;
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		l->tasks_end = t->prev;
	t->prev = NULL;
}

int ddps_loop_run_tasks(struct ddps_loop *l)
{
	struct ddps_task *last = &l->round_end;
	int n = 0;

	/* A task may post others; the mark ends a round so that they cannot starve I/O. */
	for (int round = 0; l->tasks && round < TASK_ROUNDS; round++) {
		ddps_task_post(l, last);
		while (l->tasks != last) {
			struct ddps_task *t = l->tasks;

			ddps_task_cancel(l, t);
			t->fn(t->user);
			n++;
		}
		ddps_task_cancel(l, last);
	}
	return n;
}

int ddps_loop_retell(struct ddps_loop *l)
{
	uint64_t count;

	if (l->waking)
		ddps_loop_wake_sleeper(l);
	else
		ddps_loop_tell(l);
	if (!l->tasks && !l->waking && l->told) {
		if (read(l->taskfd, &count, sizeof count) < 0)
			return DDPS_E_SYSTEM;
		l->told = false;
	}
	return 0;
}
