/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who moves the data of a context.  One rule for the program's threads and the library's own:
 *
 * 1. Whoever polls an empty queue moves it himself, where that is his to do (no library thread, or
 *    poll_drives).
 * 2. Whoever sleeps has it moved: by the library thread, and without one by the sleeper that leads
 *    (wait.c).  He says so before (ddps_ctx_rely_on_thread), and whatever he has posted leaves
 *    (gather.c).
 * 3. While somebody polls the library thread naps, 1 ms each time: woken by the same octets it
 *    would take his processor or his lock.  At the end of a nap it takes the lock if that is free, and
 *    waits for it only if nobody has polled: a program that polls holds it nearly always, and had to
 *    wake who waits for it each time that it gives it back.
 *    It naps, too, where it fills the queues of somebody who polls: he never finds them empty, and both
 *    would take the lock in turn for ever.
 * 4. Nobody says that he has polled for the last time; he may watch memory from then on.  A nap at
 *    whose end nobody polls for a moment, and data lies there, was too long: the thread sleeps on the
 *    loop's descriptor for the next ones, and for more of them each time that happens.  In a stream
 *    data lies there at any time, and somebody polls in any moment.  Who lets others run (6.) polls, too,
 *    however long they do.
 * 5. Data seldom comes alone.  Where nobody polls and nobody sleeps, so that only the library thread
 *    can move it, that looks again and again before it sleeps: as long as it pays.  It does not pay
 *    where it takes the processor of the very thread that would answer.
 * 6. Whoever has polled in vain many times gives his processor to whoever else could run on it, and
 *    looks then.  What is found only then comes from somebody who cannot run while he does, so the next
 *    time fewer times are many; they are more again once nobody else wanted to run.
 */
#include "session/session.h"
#include "common/system/thread.h"
#include <errno.h>
#include <time.h>

#define NAP_NS	    1000000u
#define MOMENT_NS   50000u  /* in which somebody who polls does so again */
#define POLLED_MANY 200u    /* polls in a nap: who makes so many does nothing else */
#define POLLED_SOME 4u	    /* who makes so many is slow, perhaps: he is given */
#define POLLS	    2u	    /* the time of so many, if that is longer than a moment */
#define POLLED_NS   200000u /* who keeps the lock so long and polls does nothing else, too */
#define WARY_LEAST  16u	    /* naps that are left out after one that was too long, */
#define WARY_MOST   8u	    /* doublings of that */
#define GOOD_MANY   32u	    /* naps in a row that were not: one doubling less */
#define SPIN_NS	    50000u  /* far more than a round trip within a host */
#define DOUBT_MOST  10u	    /* doublings of the number of arrivals behind which it does not spin */
#define DOUBT_MORE  2u	    /* for a spin in vain; one less for one that was not */

static void do_nothing(void *user)
{
	(void)user;
}

void ddps_mover_init(struct ddps_ctx *ctx)
{
	pthread_condattr_t clock;

	ctx->mover.wake.fn = do_nothing;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx->mover.napping_up, &clock);
	pthread_condattr_destroy(&clock);
	ddps_mutex_init(&ctx->mover.nap, DDPS_LOCK_NAP);
}

/* In a child of fork the thread that napped is not there, and would be waited for. */
void ddps_mover_fini(struct ddps_ctx *ctx)
{
	if (ctx->mover.napping)
		return;
	pthread_cond_destroy(&ctx->mover.napping_up);
	pthread_mutex_destroy(&ctx->mover.nap.m);
}

static uint32_t drives(const struct ddps_mover *m)
{
	return __atomic_load_n(&m->drives, __ATOMIC_RELAXED);
}

static void set_drives(struct ddps_mover *m, uint32_t n)
{
	__atomic_store_n(&m->drives, n, __ATOMIC_RELAXED);
}

/* ---- the library thread ---- */

void ddps_ctx_rely_on_thread(struct ddps_ctx *ctx)
{
	struct ddps_mover *m = &ctx->mover;

	ddps_assert_held(&ctx->lock);
	set_drives(m, 0);
	m->relied = true;
	if (!m->napping) { /* it may be asleep on the loop: nothing stays hidden from it */
		ddps_loop_sleep(ctx->env.loop);
		ddps_loop_slept(ctx->env.loop);
		return;
	}
	ddps_lock(&m->nap);
	m->woken = true;
	pthread_cond_signal(&m->napping_up);
	ddps_unlock(&m->nap);
}

/* What a nap has shown.  n: what lay there at its end, if nobody polled without a pause. */
static void judge_nap(struct ddps_mover *m, int n)
{
	if (n > 0) {
		m->wary = (uint16_t)(WARY_LEAST << m->caution);
		m->good = 0;
		if (m->caution < WARY_MOST)
			m->caution++;
	} else if (m->caution && ++m->good == GOOD_MANY) {
		/* Not after one: a peer that was served late makes its program poll for as long. */
		m->good = 0;
		m->caution--;
	}
}

/* Without the context's lock.  Return: whether it was as long as that; else somebody relies on this thread. */
static bool sleep_for(struct ddps_mover *m, uint64_t ns)
{
	uint64_t until = ddps_now() + ns;
	struct timespec ts = { (time_t)(until / NSEC_PER_SEC), (long)(until % NSEC_PER_SEC) };
	bool woken;
	int err = 0;

	ddps_assert(m->napping); /* ddps_mover_fini() goes by that */
	ddps_lock(&m->nap);
	while (!m->woken && !err)
		err = pthread_cond_timedwait(&m->napping_up, &m->nap.m, &ts);
	woken = m->woken;
	ddps_unlock(&m->nap);
	return !woken;
}

/* The lock is given back until end_naps(). */
static void begin_naps(struct ddps_ctx *ctx)
{
	ctx->mover.woken = false; /* nobody else looks at it now */
	ctx->mover.napping = true;
	ddps_unlock(&ctx->lock);
}

/* The lock is held again. */
static void end_naps(struct ddps_ctx *ctx)
{
	ctx->mover.napping = false;
	if (!ddps_ctx_gone(ctx))
		ddps_gather_late(ctx);
}

/* What a nap has shown: somebody relies on the thread; somebody polls; nobody does, or not now. */
enum nap { NAP_WOKEN, NAP_POLLED, NAP_QUIET };

/* Whoever relies on the thread sets them to 0. */
static uint32_t polls_since(const struct ddps_mover *m, uint32_t before)
{
	const uint32_t now = drives(m);

	return now > before ? now - before : 0;
}

/* In which somebody who has made @polls in a nap makes another one. */
static uint64_t moment_of(uint32_t polls)
{
	const uint64_t slow = polls >= POLLED_SOME ? POLLS * NAP_NS / polls : 0;

	return slow > MOMENT_NS ? slow : MOMENT_NS;
}

/* Return: whether the lock is held.  Somebody who polls keeps it, and moves what is there; 0: that he polls is known. */
static bool lock_unless_polled(struct ddps_ctx *ctx, uint64_t moment)
{
	struct ddps_mover *m = &ctx->mover;
	const uint32_t before = drives(m);

	if (!ddps_trylock(&ctx->lock))
		return true;
	if (!moment || (sleep_for(m, moment) && polls_since(m, before)))
		return false;
	ddps_lock(&ctx->lock);
	return true;
}

/* @polls: those in it, but if it is NAP_WOKEN.  Without the context's lock, so they are only read. */
static enum nap nap_once(struct ddps_ctx *ctx, uint32_t *polls)
{
	struct ddps_mover *m = &ctx->mover;
	const uint32_t before = drives(m);
	uint32_t looks;

	if (!sleep_for(m, NAP_NS))
		return NAP_WOKEN;
	*polls = polls_since(m, before);
	if (*polls >= POLLED_MANY)
		return NAP_POLLED;
	looks = ddps_gather_looks(ctx);
	if (*polls && !sleep_for(m, moment_of(*polls)))
		return NAP_WOKEN;
	return ddps_gather_looks(ctx) == looks && !ddps_poller_is_away(ctx) ? NAP_QUIET
									    : NAP_POLLED;
}

static void nap_mover(struct ddps_ctx *ctx)
{
	struct ddps_mover *m = &ctx->mover;
	uint32_t polls = 0;
	enum nap nap;

	begin_naps(ctx);
	while ((nap = nap_once(ctx, &polls)) != NAP_WOKEN &&
	       !lock_unless_polled(ctx, nap == NAP_POLLED ? 0 : moment_of(polls)))
		judge_nap(m, 0);
	if (nap == NAP_WOKEN)
		ddps_lock(&ctx->lock);
	end_naps(ctx);
	/* Woken also since the nap's end, by somebody who had the lock. */
	if (m->woken || ddps_ctx_gone(ctx))
		return;
	set_drives(m, polls);
	judge_nap(m, nap == NAP_QUIET ? ddps_ctx_turn(ctx) : 0);
}

/* This thread has @brought something, and while it slept somebody has polled a queue that it had filled. */
static bool fills_queues(const struct ddps_ctx *ctx, int brought)
{
	return brought > 0 && ctx->attr.poll_drives && !ctx->mover.relied && ctx->mover.looked;
}

/* Whether to nap: somebody polls, and comes back as far as is known.  @brought: by this thread, just now. */
static bool naps(struct ddps_ctx *ctx, int brought)
{
	struct ddps_mover *m = &ctx->mover;

	if (!drives(m) && !fills_queues(ctx, brought))
		return false;
	if (!m->wary)
		return true;
	m->wary--;
	set_drives(m, 0);
	return false;
}

/* Whether to look again before sleeping, after something came. */
static bool spins(struct ddps_mover *m)
{
	if (m->relied || drives(m))
		return false;
	if (!m->skips)
		return true;
	m->skips--;
	return false;
}

/* Without the lock, which who polls or posts would wait for.  >= 0, or DDPS_E_SYSTEM. */
static int spin_mover(struct ddps_mover *m, int fd)
{
	const uint64_t until = ddps_now() + SPIN_NS;
	int n;

	do
		n = ddps_wait_fd(fd, 0);
	while ((!n || n == DDPS_E_AGAIN) && !drives(m) && ddps_now() < until);
	return n;
}

static void judge_spin(struct ddps_mover *m, bool paid)
{
	if (!paid) {
		for (unsigned i = 0; i < DOUBT_MORE && m->doubt < DOUBT_MOST; i++)
			m->doubt++;
		m->skips = (uint16_t)((1u << m->doubt) - 1);
	} else if (m->doubt) {
		m->doubt--;
	}
}

/* What failed is no descriptor of the library's: the program has closed that, and may have given its
 * number to a file of its own, which can be ready for ever. */
static bool is_fd_taken(void)
{
	return errno == EBADF || errno == EINVAL;
}

/* Woken by what somebody who polls takes as well, perhaps.  If he does so for long, naps are right for him again. */
static void lock_after_polls(struct ddps_ctx *ctx)
{
	struct ddps_mover *m = &ctx->mover;
	const uint32_t before = drives(m);
	uint64_t since;

	if (!ddps_trylock(&ctx->lock))
		return;
	since = ddps_now();
	ddps_lock(&ctx->lock);
	if (polls_since(m, before) >= POLLED_SOME && ddps_now() - since >= POLLED_NS)
		m->wary = 0;
}

/* Sleep until something is there, and serve it.  @again: look for it for a while first. */
static int await_and_serve(struct ddps_ctx *ctx, bool again)
{
	const uint32_t looks = ddps_gather_looks(ctx);
	int fd = ddps_loop_watch(ctx->env.loop), n = 0, served, err;

	ddps_unlock(&ctx->lock);
	if (again)
		n = spin_mover(&ctx->mover, fd);
	if (!n || n == DDPS_E_AGAIN) {
		if (again)
			judge_spin(&ctx->mover, false);
		again = false;
		n = ddps_wait_fd(fd, UINT64_MAX);
	}
	err = n == DDPS_E_SYSTEM ? errno : 0;
	lock_after_polls(ctx);
	if (ddps_ctx_gone(ctx))
		return DDPS_E_SYSTEM;
	ddps_loop_watched(ctx->env.loop);
	ctx->mover.looked = ddps_gather_looks(ctx) != looks; /* a turn may count as a look */
	served = ddps_ctx_turn(ctx);
	if (again)
		judge_spin(&ctx->mover, served > 0);
	if ((err && err != ENOMEM) || (served == DDPS_E_SYSTEM && is_fd_taken()))
		return DDPS_E_SYSTEM;
	if (err) { /* there may be memory to sleep with a while later */
		begin_naps(ctx);
		sleep_for(&ctx->mover, NAP_NS);
		ddps_lock(&ctx->lock);
		end_naps(ctx);
	}
	return served > 0 ? served : 0;
}

static void *thread_main(void *arg)
{
	struct ddps_ctx *ctx = arg;
	struct ddps_mover *m = &ctx->mover;
	int n = 0;

	ddps_lock(&ctx->lock);
	while (!m->stop && n != DDPS_E_SYSTEM && !ddps_ctx_gone(ctx)) {
		if (naps(ctx, n)) {
			nap_mover(ctx);
			n = 0;
		} else {
			n = await_and_serve(ctx, n > 0 && spins(m));
		}
	}
	if (!m->stop)
		ddps_ctx_rob(ctx);
	ddps_unlock(&ctx->lock);
	return NULL;
}

int ddps_mover_start(struct ddps_ctx *ctx)
{
	int err = ddps_thread_start(&ctx->mover.thread, NULL, thread_main, ctx);

	if (err) {
		errno = err;
		return DDPS_E_SYSTEM;
	}
	ctx->mover.runs = true;
	return 0;
}

void ddps_mover_leave(struct ddps_ctx *ctx)
{
	if (ctx->mover.runs)
		pthread_detach(ctx->mover.thread);
	ctx->mover.runs = false;
}

void ddps_mover_stop(struct ddps_ctx *ctx)
{
	struct ddps_mover *m = &ctx->mover;

	if (!m->runs)
		return;
	ddps_lock(&ctx->lock);
	m->stop = true;
	ddps_ctx_rely_on_thread(ctx);
	ddps_task_post(ctx->env.loop, &m->wake);
	ddps_unlock(&ctx->lock);
	pthread_join(m->thread, NULL);
	m->runs = false;
}
