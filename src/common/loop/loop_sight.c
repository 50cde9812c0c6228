/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signs in memory, which whoever polls looks at: in place of a descriptor for each message there is a line of the cache.
 * The descriptors stay in epoll's set, since they have other news: nobody rings there meanwhile.  Whatever a sign says
 * or does not say, all are found when somebody may sleep again.
 */
#include "common/loop/loop_in.h"
#include <stdlib.h>

#define LOOKS_MOST 64 /* at signs, until whoever polls has another turn */

void ddps_loop_sight(struct ddps_loop *l, struct ddps_io *io)
{
	if (!l->sights)
		l->sights = calloc(DDPS_SIGHTS, sizeof *l->sights);
	if (!l->sights || l->nsights == DDPS_SIGHTS || l->hidden)
		return;
	ddps_loop_guard(l);
	l->hot = l->lone = NULL;
	l->patience = DDPS_MISSES_MIN;
	l->sights[l->nsights++] = (struct ddps_sight){
		.moves = io->sign->moves, .ends = io->sign->ends, .io = io, .again = true
	};
	io->sight = (uint16_t)l->nsights;
	io->sign->looked_at(io->user, true);
}

void ddps_loop_unsight(struct ddps_loop *l, struct ddps_io *io)
{
	struct ddps_sight *s = &l->sights[io->sight - 1];

	*s = l->sights[--l->nsights];
	s->io->sight = io->sight;
	io->sight = 0;
	if (!l->nsights)
		ddps_loop_unguard(l);
}

void ddps_loop_unsight_all(struct ddps_loop *l)
{
	unsigned n = l->nsights;

	l->nsights = 0;
	for (unsigned i = 0; i < n; i++)
		l->sights[i].io->sight = 0;
	for (unsigned i = 0; i < n; i++)
		l->sights[i].io->sign->looked_at(l->sights[i].io->user, false);
	ddps_loop_unguard(l);
}

void ddps_io_again(struct ddps_loop *l, const struct ddps_io *io)
{
	ddps_assert_loop(l);
	l->sights[io->sight - 1].again = true;
}

/* Whether @s says that there is something. */
static inline bool has_sign(const struct ddps_sight *s)
{
	return s->again || __atomic_load_n(s->moves, __ATOMIC_RELAXED) != s->moved ||
	       __atomic_load_n(s->ends, __ATOMIC_RELAXED) != s->ended;
}

/* fn() sees at least what is noted here.  It may delete any of them: what comes in its place has its turn later. */
static bool serve_sight(struct ddps_loop *l, unsigned i)
{
	struct ddps_sight *s = &l->sights[i];
	struct ddps_io *io = s->io;

	s->again = false;
	s->moved = __atomic_load_n(s->moves, __ATOMIC_ACQUIRE);
	s->ended = __atomic_load_n(s->ends, __ATOMIC_ACQUIRE);
	io->moved = false;
	io->fn(io->user, EPOLLIN);
	return i < l->nsights && s->io == io && io->moved;
}

/* Those from the @i-th on, which has a sign. */
static __attribute__((noinline)) int serve_sights(struct ddps_loop *l, unsigned i)
{
	unsigned served = 0;
	int n = 0;

	l->load.turn++;
	l->load.busy = l->busy_sights;
	ddps_loop_enter_round(l);
	l->trying = true;
	for (bool known = true; i < l->nsights; i++, known = false) {
		if (!known && !has_sign(&l->sights[i]))
			continue;
		if (ddps_io_waits(l, l->sights[i].io)) {
			l->misses = DDPS_MISSES_MAX; /* epoll has the next word */
			continue;
		}
		n += serve_sight(l, i);
		served++;
	}
	l->trying = false;
	l->busy_sights = served;
	if (l->tasks)
		n += ddps_loop_run_tasks(l);
	ddps_loop_leave_round(l);
	ddps_loop_tell(l);
	return n;
}

static int look_at_each(struct ddps_loop *l)
{
	for (unsigned i = 0; i < l->nsights; i++)
		if (has_sign(&l->sights[i]))
			return serve_sights(l, i);
	return 0;
}

int ddps_loop_look_at_signs(struct ddps_loop *l)
{
	int n = 0;

	l->tried = true;
	for (unsigned looks = 0; !n && l->nsights && looks < LOOKS_MOST; looks += l->nsights)
		n = look_at_each(l);
	if (!n) {
		l->misses++;
		return 0;
	}
	l->hits++;
	if (l->misses && l->patience < DDPS_MISSES_MAX) /* to wait has paid */
		l->patience *= 2;
	if (l->misses < DDPS_MISSES_MAX)
		l->misses = 0;
	return n;
}
