/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SYSTEM_LOCK_H
#define DDPS_SYSTEM_LOCK_H
/*
 * Locks of this library.  A thread that holds one is not cancelled: sockets are used with the lock held,
 * and each such call is a cancellation point, so the lock would stay taken for ever.  A request to cancel
 * the thread waits until it has left the library.
 *
 * To say so costs more than the lock itself.  Where most calls touch memory only, which is no cancellation point, the
 * lock is taken bare, and only what may call the system or the program is put between ddps_uncancellable_within() and
 * ddps_uncancellable_end().  The simulated kernel checks that.
 */
#include "assert.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
/* A thread that nobody but itself can cancel: two atomic steps less a call, which wait for all that was written. */
#define ddps_is_alone() (__libc_single_threaded)
#else
#define ddps_is_alone() 0
#endif

/*
 * The order of all locks: whoever holds one takes only those that stand below it here, and none of the same kind.
 * Builds for tests check it.  ddps_trylock() and ddps_lock_until() give way, so they may take any.
 */
enum ddps_order {
	DDPS_LOCK_CQ,	    /* completions of the extended form: from start_poll to end_poll */
	DDPS_LOCK_ED_POLLS, /* what stands in front: who polls keeps the order */
	DDPS_LOCK_OOB,	    /* queue pairs without an identifier */
	DDPS_LOCK_PROCESS,  /* the drop-in: identifiers, events */
	DDPS_LOCK_QP,	    /* posting */
	DDPS_LOCK_UD,	    /* datagrams */
	DDPS_LOCK_SHARED,   /* what identifiers share */
	DDPS_LOCK_GLOBAL,   /* the drop-in's start and end, fork */
	DDPS_LOCK_NAMED,    /* domains, devices, memory of devices */
	DDPS_LOCK_CTX,	    /* a context */
	DDPS_LOCK_NAP,	    /* the nap of its thread */
	DDPS_LOCK_UD_CQ,    /* completions of datagrams */
	DDPS_LOCK_ED,	    /* rules, marks */
	DDPS_LOCK_CK,	    /* mistakes that were reported */
	DDPS_LOCK_CHANNEL,  /* events of a completion channel */
	DDPS_LOCK_CQ_ACKS,  /* acknowledged events */
	DDPS_LOCK_OWN,	    /* descriptors of this process */
	DDPS_LOCK_UMAD,	    /* libibumad on a subnet in UDP */
	DDPS_LOCK_PLUGIN,   /* loading libddpsess-tls.so */
	DDPS_LOCK_FILES,    /* reading files of secured wires */
	DDPS_LOCK_CREDS,    /* which of them are in use */
	DDPS_LOCK_SHAKER,   /* handshakes that wait for a step, or have done one */
};

struct ddps_mutex {
	pthread_mutex_t m;
	bool bare; /* the holder's */
#ifdef DDPS_ASSERTS
	enum ddps_order order;
#endif
};

#ifdef DDPS_ASSERTS
#define DDPS_MUTEX(at)                                                                             \
	{                                                                                          \
		.m = PTHREAD_MUTEX_INITIALIZER, .order = (at)                                      \
	}
#else
#define DDPS_MUTEX(at)                                                                             \
	{                                                                                          \
		.m = PTHREAD_MUTEX_INITIALIZER                                                     \
	}
#endif

static inline void ddps_mutex_init(struct ddps_mutex *l, enum ddps_order at)
{
	(void)at;
	*l = (struct ddps_mutex)DDPS_MUTEX(at);
}

#define DDPS_HELD_MAX 8

/* Of the thread: how many locks it holds; before: PTHREAD_CANCEL_ENABLE if that is to be so again after the last. */
struct ddps_held {
	unsigned depth;
	int before;
#ifdef DDPS_ASSERTS
	unsigned n;
	const struct ddps_mutex *lock[DDPS_HELD_MAX];
#endif
};

extern __thread struct ddps_held ddps_held
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Until ddps_uncancellable_end(), which may be called by a function above: calls nest.  For whoever may hold a bare lock. */
static inline void ddps_uncancellable_within(void)
{
	int was;

	if (ddps_held.depth) {
		ddps_held.depth++;
		return;
	}
	/* In this order: a signal handler may lock, too, at any place. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	ddps_held.depth = 1;
	atomic_signal_fence(memory_order_seq_cst);
	ddps_held.before = was;
}

/* The same for whoever holds nothing, or is uncancellable already. */
static inline void ddps_uncancellable(void)
{
	if (ddps_held.depth || !ddps_is_alone()) {
		ddps_uncancellable_within();
		return;
	}
	pthread_testcancel(); /* has it done so, it ends here, where it holds nothing */
	ddps_held.depth = 1;
}

/*
 * The same around what is not the library's: it may cancel this thread, or begin another one that does, also where the
 * process had no other.
 */
static inline void ddps_uncancellable_by_others(void)
{
	int was;

	ddps_uncancellable_within();
	if (ddps_held.before == PTHREAD_CANCEL_ENABLE)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	ddps_held.before = was;
}

static inline void ddps_uncancellable_end(void)
{
	int before = ddps_held.before;

	atomic_signal_fence(memory_order_seq_cst);
	if (--ddps_held.depth || before != PTHREAD_CANCEL_ENABLE)
		return;
	ddps_held.before = PTHREAD_CANCEL_DISABLE;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

#ifdef DDPS_ASSERTS
void ddps_held_order(const struct ddps_mutex *l) __attribute__((visibility("hidden")));
void ddps_held_add(const struct ddps_mutex *l) __attribute__((visibility("hidden")));
void ddps_held_drop(const struct ddps_mutex *l) __attribute__((visibility("hidden")));
bool ddps_held_has(const struct ddps_mutex *l) __attribute__((visibility("hidden")));
#define ddps_assert_held(l) ddps_assert(ddps_held_has(l))
#else
#define ddps_held_order(l)  ((void)(l))
#define ddps_held_add(l)    ((void)(l))
#define ddps_held_drop(l)   ((void)(l))
#define ddps_assert_held(l) ((void)sizeof(l))
#endif

static inline void ddps_lock(struct ddps_mutex *l)
{
	ddps_uncancellable();
	ddps_held_order(l);
	pthread_mutex_lock(&l->m);
	ddps_held_add(l);
}

#ifdef DDPS_ASSERTS /* simulations have one thread, and are to find what is not within */
#define ddps_spares_bare() 0
#else
#define ddps_spares_bare() ddps_is_alone()
#endif

/* Bare, but in a process of one thread, which loses nothing. */
static inline void ddps_lock_bare(struct ddps_mutex *l)
{
	if (ddps_held.depth || ddps_spares_bare()) {
		ddps_lock(l);
		return;
	}
	ddps_held_order(l);
	pthread_mutex_lock(&l->m);
	ddps_held_add(l);
	l->bare = true;
}

/* As the functions of <pthread.h>, 0: the lock is held. */
static inline int ddps_trylock(struct ddps_mutex *l)
{
	int err;

	ddps_uncancellable();
	err = pthread_mutex_trylock(&l->m);
	if (err)
		ddps_uncancellable_end();
	else
		ddps_held_add(l);
	return err;
}

#ifdef __GLIBC__ /* elsewhere there is no lock that waits by this clock */
static inline int ddps_lock_until(struct ddps_mutex *l, const struct timespec *monotonic)
{
	int err;

	ddps_uncancellable();
	err = pthread_mutex_clocklock(&l->m, CLOCK_MONOTONIC, monotonic);
	if (err)
		ddps_uncancellable_end();
	else
		ddps_held_add(l);
	return err;
}
#endif

static inline void ddps_unlock(struct ddps_mutex *l)
{
	bool bare = l->bare;

	l->bare = false;
	ddps_held_drop(l);
	pthread_mutex_unlock(&l->m);
	if (!bare)
		ddps_uncancellable_end();
}

#endif
