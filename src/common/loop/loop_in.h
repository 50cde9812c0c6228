/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_LOOP_IN_H
#define DDPS_LOOP_IN_H
/* The loop's own structure; private to loop*.c. */
#include "common/loop/loop.h"
#include "common/system/lock.h"
#include <sys/epoll.h>

#define DDPS_LOOP_READY 64
#define DDPS_SIGHTS	256
/* Tries in vain until epoll is asked again: more of them if it has paid. */
#define DDPS_MISSES_MIN 2
#define DDPS_MISSES_MAX 64
#define DDPS_HIDE_AFTER 32 /* hits of one that waits pay for */

/* A sign that is looked at, in one line of the cache. */
struct ddps_sight {
	const uint64_t *moves;
	const uint32_t *ends;
	struct ddps_io *io;
	uint64_t moved; /* what it was before fn() */
	uint32_t ended;
	bool again; /* fn() is called, whatever it is */
};

struct ddps_loop {
	struct ddps_load load; /* the first member: see loop.h */
	int epfd, timerfd, taskfd;
	unsigned era;	      /* of them: own.h */
	uint64_t owned_until; /* so long they are taken for the library's */
	uint64_t armed;	      /* what the timerfd is set to, or DDPS_NEVER */
	bool told;	      /* taskfd is readable: who sleeps on epfd wakes up */
	bool waking;	      /* and stays so until that has happened */
	struct epoll_event ready[DDPS_LOOP_READY];
	int nready, next_ready;	   /* the part of ready not served yet */
	struct ddps_timer *timers; /* the earliest one */
	struct ddps_task *tasks, **tasks_end;
	struct ddps_task round_end; /* the last of those that a round runs */
	bool running; /* inside ddps_loop_run: tasks posted now are run by it, or reported */

	struct ddps_io *lone;	/* the only one that the last busy round found; or NULL */
	struct ddps_io *hot;	/* was it twice, with no other between: it is tried; or NULL */
	unsigned hits, misses;	/* of it, since epoll was asked */
	unsigned patience;	/* misses that are allowed */
	unsigned streak;	/* hits since it is hot */
	struct ddps_io *hidden; /* the hot one, if it is not in epoll's set; or NULL */
	bool trying;		/* inside its fn() */
	bool tried;		/* since the guard looked */
	uint32_t guard_ms;	/* when it looks again */
	unsigned sleepers;	/* threads of the library's that sleep on epfd */
	unsigned found; /* rounds of whoever polls that found something, since nothing is hidden */
	struct ddps_sight *sights; /* room for DDPS_SIGHTS; or NULL */
	unsigned nsights, busy_sights;
	bool watched;	      /* one of them has to see everything */
	bool kept;	      /* others have epfd, and may sleep on it at any time */
	struct ddps_io *late; /* not added yet; or NULL */
	bool many;	      /* see ddps_loop_many */
#ifdef DDPS_ASSERTS
	const struct ddps_mutex *lock; /* held around all calls; or NULL */
#endif
	struct ddps_timer guard; /* runs while anything is hidden or looked at */
};

#define DDPS_NEVER UINT64_MAX

/* Call what is due at @now; returns how many. */
int ddps_loop_run_timers(struct ddps_loop *l, uint64_t now);
/* Somebody may sleep on epfd from now on: the timerfd is set to what is next. */
void ddps_loop_arm(struct ddps_loop *l);
/* If the armed time has come the timerfd is readable: clear it.  Then arm what is next.  0 or
 * DDPS_E_SYSTEM. */
int ddps_loop_rearm(struct ddps_loop *l);

/* Something is hidden from whoever kept epfd from before. */
void ddps_loop_guard(struct ddps_loop *l);
/* Nothing is any more. */
void ddps_loop_unguard(struct ddps_loop *l);
/* Nobody sleeps, but for those who are woken late. */
static inline bool ddps_loop_hides(const struct ddps_loop *l)
{
	return l->hidden || l->nsights;
}

static inline void ddps_loop_enter_round(struct ddps_loop *l)
{
	l->running = true;
	ddps_loop_join(l);
}

static inline void ddps_loop_leave_round(struct ddps_loop *l)
{
	ddps_loop_part(l);
	l->running = false;
}

/* ---- loop_sight.c ---- */
/* Look at @io's sign from now on, if there is room. */
void ddps_loop_sight(struct ddps_loop *l, struct ddps_io *io);
/* @io is looked at, and goes. */
void ddps_loop_unsight(struct ddps_loop *l, struct ddps_io *io);
/* Somebody may sleep: no sign is looked at any more. */
void ddps_loop_unsight_all(struct ddps_loop *l);
/* Look at all signs, more often if they are few.  Returns how many callbacks were made that found something. */
int ddps_loop_look_at_signs(struct ddps_loop *l);

/* ---- loop_task.c ---- */
/* Who sleeps on epfd wakes up. */
void ddps_loop_wake_sleeper(struct ddps_loop *l);
/* Tasks wait.  Where somebody polls without a pause he runs them soon, or else the guard shows what is
 * hidden, and then they are reported. */
static inline void ddps_loop_tell(struct ddps_loop *l)
{
	if (l->tasks && (!ddps_loop_hides(l) || l->sleepers))
		ddps_loop_wake_sleeper(l);
}
/* Run what was posted, and some of what that posts; returns how many. */
int ddps_loop_run_tasks(struct ddps_loop *l);
/* The descriptor of tasks is readable if there are any, or if somebody has to wake up.  0 or
 * DDPS_E_SYSTEM. */
int ddps_loop_retell(struct ddps_loop *l);

#ifdef DDPS_ASSERTS
#define ddps_assert_loop(l) ddps_assert(!(l)->lock || ddps_held_has((l)->lock))
#else
#define ddps_assert_loop(l) ((void)(l))
#endif

#endif
