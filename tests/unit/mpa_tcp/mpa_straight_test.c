/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight way of mpa_straight.c against that of mpa_data.c: two connections that are given the same, one of which
 * does everything step by step, in whatever order chance wants; what they write and say is the same.
 */
#include "support/clock.h"
#include "unit/mpa_tcp/mpa_line_fixture.h"

#define WORLDS 1500
#define STEPS  25
#define LENS   64

TestSuite(mpa_straight, .timeout = 60);

static uint8_t pattern[1500];
static size_t lens[LENS];
static uint64_t seed;

static uint32_t draw_for_lines(uint32_t n)
{
	return draw_of(&seed) % n;
}

static bool draw_one_in(uint32_t n)
{
	return !draw_for_lines(n);
}

/* As RDMAP does: it says when there is no more, mostly. */
static int next_of_twins(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct mpa_side *s = user;
	int got;

	s->seg_len = lens[s->pulled % LENS];
	got = mpa_up_tx_next(user, seg, mulpdu);
	seg->final = got > 0 && s->pulled == s->nseg && s->pulled % 5;
	return got;
}

static struct ddps_llp_data data;
static struct ddps_mpa_tcp tcp;

/* [0] takes the straight way, [1] does not. */
static void open_lines(struct line l[2])
{
	bool crc = draw_for_lines(2), markers = draw_one_in(8);

	data = mpa_data;
	data.tx_next = next_of_twins;
	tcp = line_tcp;
	tcp.watch_keeps = true;
	for (int i = 0; i < 2; i++) {
		line_full(&l[i]);
		l[i].c->tcp = &tcp;
		l[i].c->stepwise = i;
		l[i].c->tx.crc = crc;
		l[i].c->tx.markers = markers;
		ddps_llp_attach(&l[i].c->llp, &data, l[i].s);
		l[i].s->pattern = pattern;
		ddps_mpa_conn_update_emss(l[i].c);
	}
	for (unsigned i = 0; i < LENS; i++)
		lens[i] = draw_one_in(4) ? 1 + draw_for_lines(1300) : 1 + draw_for_lines(160);
}

static void expect_lines_same(const struct line l[2], uint64_t world, unsigned what)
{
	const struct line *a = &l[0], *b = &l[1];

	cr_assert_eq(a->wrote, b->wrote, "world %u, step %u", (unsigned)world, what);
	cr_assert_eq(a->out.len, b->out.len);
	cr_assert_arr_eq(a->out.p, b->out.p, a->out.len);
	cr_assert_eq(a->sends, b->sends);
	cr_assert_eq(a->recvs, b->recvs);
	cr_assert_eq(a->events, b->events);
	cr_assert_eq(a->fins, b->fins);
	cr_assert_eq(a->resets, b->resets);
	cr_assert_eq(a->closes, b->closes);
	cr_assert_eq(a->s->pulled, b->s->pulled);
	cr_assert_eq(a->s->done, b->s->done);
	cr_assert_eq(a->s->segments, b->s->segments);
	cr_assert_eq(a->s->end.code, b->s->end.code);
	cr_assert_str_eq(a->s->end.text, b->s->end.text);
	cr_assert_eq(a->c->state, b->c->state);
	cr_assert_eq(a->c->wr, b->c->wr);
	cr_assert_eq(a->c->tx_errno, b->c->tx_errno);
	cr_assert_eq(a->c->held, b->c->held);
	cr_assert_eq(a->c->mulpdu_age, b->c->mulpdu_age);
	cr_assert_eq(ddps_mpa_tx_left(&a->c->tx), ddps_mpa_tx_left(&b->c->tx));
	cr_assert_eq(!a->c->tx.batch, !b->c->tx.batch);
}

/* What may happen, of what chance gave the same for both. */
static void step_line(struct line *l, unsigned what, unsigned n)
{
	if (what < 50) {
		l->s->nseg += what < 40 ? 1 : n % 4;
		l->s->llp->ops->kick(l->s->llp);
	} else if (what < 60) {
		l->room = n % 3 ? n % 300 : SIZE_MAX;
	} else if (what < 75) {
		l->room += n % 500;
		line_ready(l, DDPS_MPA_OUT);
	} else if (what < 80) {
		l->interrupts = (int)(n % 3);
	} else if (what < 90) {
		line_fpdus(l, 1 + n % 2, 18 + n % 50);
		line_ready(l, DDPS_MPA_IN);
	} else if (what < 92) {
		l->s->late = 1;
	} else if (what < 94) {
		l->s->holding = n % 2;
		l->s->llp->ops->resume(l->s->llp);
	} else if (what == 94 && n % 3 == 0) {
		l->send_err = n % 2 ? EPIPE : ENOSPC;
	} else if (what == 95 && n % 3 == 0) {
		l->s->llp->ops->shutdown(l->s->llp);
	} else if (what == 96 && n % 3 == 0) {
		l->s->react[UP_DONE] = DO_ABORT;
	} else if (what == 97) {
		l->c->mulpdu_age += DDPS_MPA_MULPDU_AGE / 2;
	} else {
		line_run(l);
	}
}

Test(mpa_straight, lines_do_the_same)
{
	static struct line l[2];
	unsigned ended = 0;

	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i ^ i >> 7);
	for (uint64_t world = 1; world <= WORLDS; world++) {
		seed = world;
		open_lines(l);
		for (unsigned i = 0; i < STEPS && l[0].c->open; i++) {
			unsigned what = draw_for_lines(100), n = draw_for_lines(1 << 20);

			step_line(&l[0], what, n);
			step_line(&l[1], what, n);
			expect_lines_same(l, world, what);
		}
		ended += !l[0].c->open;
		line_fini(&l[0]);
		line_fini(&l[1]);
	}
	cr_expect(ended > WORLDS / 50 && ended < WORLDS * 9 / 10, "%u of %u worlds ended", ended,
		  (unsigned)WORLDS);
}

/* A message that is small and alone needs no memory; TCP takes a part of it, and there is none for the rest. */
Test(mpa_straight, no_memory_for_the_rest)
{
	static struct line l[2];

	open_lines(l);
	lens[0] = lens[1] = 40;
	l[0].c->tx.markers = false;
	l[0].out.len = 4096; /* what is written is not kept */
	l[0].s->nseg = 1;
	mem_fail(1);
	l[0].s->llp->ops->kick(l[0].s->llp);
	cr_expect_not(mem_failed());
	cr_expect_eq(l[0].s->done, 1);
	l[0].room = 5;
	l[0].s->nseg = 2;
	l[0].s->llp->ops->kick(l[0].s->llp);
	cr_expect(mem_failed());
	line_run(&l[0]);
	cr_expect_eq(l[0].s->end.code, DDPS_E_NOMEM);
	cr_expect_eq(l[0].wrote, 48 + 5);
	line_fini(&l[0]);
	line_fini(&l[1]);
}
