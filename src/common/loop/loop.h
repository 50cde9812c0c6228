/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_LOOP_H
#define DDPS_LOOP_H
/*
 * Event loop: descriptors, timers and deferred calls on one epoll descriptor (a timerfd inside
 * it stands for the earliest timer where somebody may sleep on that, an eventfd for tasks).  Not
 * locked: the context's lock is held around every call and every callback.
 *
 * Ownership: struct ddps_io, ddps_timer and ddps_task are embedded in their owner's structure,
 * zeroed before first use.  An owner may stop or delete any of them, and free itself, inside
 * any callback: what is stopped is not called any more in this round.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddps_loop;
struct ddps_mutex;

/*
 * What lies in memory of somebody else's: as long as somebody polls, the loop looks there, and nobody needs to be woken.
 * fn() is called when one of the two words has changed, and whenever ddps_io_again asked for that.  What they say is
 * only a hint: fn() looks itself.
 */
struct ddps_sign {
	const uint64_t *moves;
	const uint32_t *ends;
	/* Nobody sleeps from now on (true), or somebody may: then what has come meanwhile is to be found, too. */
	void (*looked_at)(void *user, bool looked_at);
};

struct ddps_io {
	int fd;
	uint32_t events; /* EPOLLIN | EPOLLOUT as asked for; 0 while not added */
	void (*fn)(void *user, uint32_t events);
	void *user;
	bool added;
	/* For the first ddps_io_set, where nobody may sleep: it is added by the next round, or by the second one, and
	 * there is time for what is more urgent before.  If it cannot be added, fn(EPOLLIN) is called, which asks
	 * again. */
	bool late;
	/* fn(EPOLLIN) may be called when nothing is there: a try instead of asking epoll first.
	 * It sets moved if there was something. */
	bool eager, moved;
	uint16_t sight; /* where the loop keeps its sign, from 1 on; 0: it does not look there */
	const struct ddps_sign *sign; /* or NULL */
	/* NULL, or told before fn(), after ddps_loop_many: what that needs is to be in cache (common/prefetch.h).
	 * @next: nobody is between, else one is. */
	void (*soon)(void *user, bool next);
	/* Of ddps_io_moved: */
	uint8_t light;	 /* turns in a row in which it moved little */
	uint64_t octets; /* in the turn below */
	uint64_t turn;	 /* in which it has moved last */
};

struct ddps_timer {
	uint64_t due; /* ns, ddps_now() */
	void (*fn)(void *user);
	void *user;
	/* prev: of the first child, the parent; of the earliest one, itself; NULL: it does not run. */
	struct ddps_timer *child, *next, *prev;
};

struct ddps_task {
	void (*fn)(void *user);
	void *user;
	struct ddps_task *next, **prev; /* prev NULL: not queued */
};

int ddps_loop_new(struct ddps_loop **out); /* 0, DDPS_E_NOMEM, DDPS_E_SYSTEM */
void ddps_loop_free(struct ddps_loop *l);

/* @lock is held around all calls from now on, which builds for tests check; NULL: nobody else is there. */
void ddps_loop_locked_by(struct ddps_loop *l, const struct ddps_mutex *lock);

/* For whoever is about to sleep until it is readable: asked for before each sleep, since a descriptor
 * that is polled without a pause is not in it meanwhile (the sleeper would wake up to 16 ms late). */
int ddps_loop_fd(struct ddps_loop *l);

/* The same for threads of the library's, next to which others may begin to poll: from ddps_loop_sleep
 * to ddps_loop_slept one of them is asleep, and wakes up 1 ms late at most. */
int ddps_loop_sleep(struct ddps_loop *l);
void ddps_loop_slept(struct ddps_loop *l);

/* The same for a thread that stands in for whoever stops to poll: until ddps_loop_watched nothing is
 * taken out of it, so that it does not wake up late. */
int ddps_loop_watch(struct ddps_loop *l);
void ddps_loop_watched(struct ddps_loop *l);

/* Whoever sleeps on ddps_loop_fd wakes up, though there may be nothing to serve, and whoever else serves
 * the loop meanwhile.  The descriptor stays readable until ddps_loop_awake and the next round. */
void ddps_loop_wake(struct ddps_loop *l);
void ddps_loop_awake(struct ddps_loop *l);

#define NSEC_PER_SEC  UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)

/* Monotonic nanoseconds. */
uint64_t ddps_now(void);

/* Whether so many descriptors may be busy that they do not stay in cache: soon() is called then. */
void ddps_loop_many(struct ddps_loop *l, bool many);

/* Set what @io waits for, adding it the first time; 0 or DDPS_E_SYSTEM. */
int ddps_io_set(struct ddps_loop *l, struct ddps_io *io, uint32_t events);
/* @io is looked at: fn() is called in the next turn, whatever its sign says. */
void ddps_io_again(struct ddps_loop *l, const struct ddps_io *io);
/* Forget it; the descriptor stays the owner's.  Safe if never added. */
void ddps_io_del(struct ddps_loop *l, struct ddps_io *io);

/* (Re)start: @fn is called once at or after @due.  Needs no memory, cannot fail. */
void ddps_timer_start(struct ddps_loop *l, struct ddps_timer *t, uint64_t due);
static inline bool ddps_timer_runs(const struct ddps_timer *t)
{
	return t->prev;
}
/* ms from now; ms == 0 stops it (0 means "no deadline" in every parameter). */
void ddps_timer_after(struct ddps_loop *l, struct ddps_timer *t, uint32_t ms);
void ddps_timer_stop(struct ddps_loop *l, struct ddps_timer *t);

/*
 * Fairness.  A turn is one pass over what is ready: whoever is called in it takes a share of it and
 * leaves the rest for the next one, whose number is another.  ddps_loop_share is @all divided by
 * how many were ready, but not less than @least and not more than @most.
 *
 * Whoever moves little each time, a few times in a row, is light: somebody waits for it, as a rule.  While
 * there is a light one that moves the loop is gentle: all take the least share, and epoll is asked again after so
 * few octets that a light one waits for hardly more than one call of somebody else's.
 *
 * Each FPDU is counted, so this is no call: a pointer to the loop is one to its load, too.
 */
struct ddps_load {
	uint64_t turn;	 /* counts passes */
	uint64_t spent;	 /* octets moved since epoll was asked */
	uint64_t quiet;	 /* the same since a light one has moved, about */
	unsigned lights; /* descriptors that are light */
	unsigned busy;	 /* how many were ready */
	/* Of ddps_loop_owns: calls of the system that need no look, and how many a look is good for now. */
	unsigned sure, joined;
};

#define DDPS_LIGHT	  4	/* turns in a row, in each of which it has moved */
#define DDPS_LIGHT_OCTETS 2048u /* no more than so much */
#define DDPS_SPENT_MOST	  (4096u * 1024)
#define DDPS_SPENT_GENTLE (64u * 1024)
#define DDPS_QUIET	  (64u * 1024 * 1024) /* then nobody seems to wait for a light one any more */

static inline uint64_t ddps_loop_turn(const struct ddps_loop *l)
{
	return ((const struct ddps_load *)l)->turn;
}

static inline bool ddps_loop_gentle(const struct ddps_loop *l)
{
	const struct ddps_load *load = (const struct ddps_load *)l;

	return load->lights && load->quiet < DDPS_QUIET;
}

static inline unsigned ddps_loop_share(const struct ddps_loop *l, unsigned all, unsigned least,
				       unsigned most)
{
	const unsigned busy = ((const struct ddps_load *)l)->busy;
	unsigned n = ddps_loop_gentle(l) ? least : busy > 1 ? all / busy : all;

	return n < least ? least : n > most ? most : n;
}

/* So much is moved that the loop is to be run, whatever else there is to do. */
static inline bool ddps_loop_due(const struct ddps_loop *l)
{
	return ((const struct ddps_load *)l)->spent >= DDPS_SPENT_MOST;
}

/* @io is to move no more before the loop is run. */
static inline bool ddps_io_waits(const struct ddps_loop *l, const struct ddps_io *io)
{
	const struct ddps_load *load = (const struct ddps_load *)l;

	return ddps_loop_gentle(l) && load->spent >= DDPS_SPENT_GENTLE && io->light < DDPS_LIGHT;
}

static inline void ddps_io_not_light(struct ddps_loop *l, struct ddps_io *io)
{
	((struct ddps_load *)l)->lights -= io->light == DDPS_LIGHT;
	io->light = 0;
}

/* It has read or written so much. */
static inline void ddps_io_moved(struct ddps_loop *l, struct ddps_io *io, size_t octets)
{
	struct ddps_load *load = (struct ddps_load *)l;

	load->spent += octets;
	if (io->turn != load->turn) {
		io->turn = load->turn;
		if (io->octets <= DDPS_LIGHT_OCTETS && io->light < DDPS_LIGHT)
			load->lights += ++io->light == DDPS_LIGHT;
		if (io->light == DDPS_LIGHT)
			load->quiet = 0;
		io->octets = 0;
	}
	io->octets += octets;
	if (io->light && io->octets > DDPS_LIGHT_OCTETS)
		ddps_io_not_light(l, io);
}

/*
 * Whether the numbers of the library's descriptors are its own yet: a program that closes all has files of its own
 * there (own.h).  Asked before each call of the system on one, by the loop and by whoever reads or writes one
 * that is in it.  If not, errno is EBADF.  An answer holds for 50 us, which closing and opening files takes longer
 * than, as a rule: messages that follow each other need not pay for one each.  And it holds for three more calls
 * that follow immediately, from ddps_loop_join to ddps_loop_part: the clock is not read for them.  The loop does that
 * around each turn.
 */
bool ddps_loop_look(struct ddps_loop *l, uint64_t now);

/* The same, whatever the last answer was. */
bool ddps_loop_look_anew(struct ddps_loop *l);

/* For whoever has just read the clock. */
static inline bool ddps_loop_owns_at(struct ddps_loop *l, uint64_t now)
{
	struct ddps_load *load = (struct ddps_load *)l;

	if (!load->sure)
		return ddps_loop_look(l, now);
	load->sure--;
	return true;
}

static inline bool ddps_loop_owns(struct ddps_loop *l)
{
	return ddps_loop_owns_at(l, ((struct ddps_load *)l)->sure ? 0 : ddps_now());
}

#define DDPS_JOINED 3

static inline void ddps_loop_join(struct ddps_loop *l)
{
	((struct ddps_load *)l)->joined = DDPS_JOINED;
}

static inline void ddps_loop_part(struct ddps_loop *l)
{
	struct ddps_load *load = (struct ddps_load *)l;

	load->joined = load->sure = 0;
}

/* Inside fn(): nobody knows whether anything is there, see eager. */
bool ddps_loop_trying(const struct ddps_loop *l);

/* Inside one of the two below: tasks posted now still run before it returns. */
bool ddps_loop_running(const struct ddps_loop *l);

/* Somebody polls without a pause, and nobody sleeps: tasks posted now run soon, at no cost. */
bool ddps_loop_polled(const struct ddps_loop *l);

/* Call @fn soon, from ddps_loop_run, outside the present call chain.  Idempotent. */
void ddps_task_post(struct ddps_loop *l, struct ddps_task *t);
void ddps_task_cancel(struct ddps_loop *l, struct ddps_task *t);

/*
 * Serve what is ready; never sleeps.  Returns how many callbacks were made, or DDPS_E_SYSTEM.
 */
int ddps_loop_run(struct ddps_loop *l);

/*
 * The same for whoever polls without a pause: as long as one eager descriptor is the only busy one it
 * is tried directly, up to four times, and most calls look at nothing else.
 */
int ddps_loop_spin(struct ddps_loop *l);

#endif
