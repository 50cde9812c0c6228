/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDUs that go out: how much in a turn, and TCP that takes little, nothing, or fails. */
#include "unit/mpa_tcp/mpa_line_fixture.h"

TestSuite(mpa_line_send, .timeout = 60);

static uint8_t pattern[65536];

/* In full operation on a path with so large packets. */
static void full_with(struct line *l, uint32_t emss)
{
	line_full(l);
	l->emss = emss;
	ddps_mpa_conn_update_emss(l->c);
}

/* ---- how much ---- */

/* 4 MiB, and the batch that goes beyond it; the rest when it can be written again.  A first batch that is
 * more than each may write in any case is no reason to stop. */
Test(mpa_line_send, a_turn_writes_so_much)
{
	static const struct {
		uint32_t emss;
		size_t len, batch, wrote;
	} row[] = { { 40000, 32762, 65536, (4096 + 64) * 1024 },
		    { 16389, 16382, 131104, 4195328 } };

	for (size_t i = 0; i < 2; i++) {
		struct line l;

		full_with(&l, row[i].emss);
		mpa_send_segments(l.s, pattern, row[i].len, 300);
		cr_expect_eq(l.wrote, row[i].wrote, "%zu", (size_t)l.wrote);
		cr_expect_eq(l.sends, row[i].wrote / row[i].batch);
		cr_expect(l.events & DDPS_MPA_OUT);
		for (unsigned k = 0; k < 3; k++)
			line_ready(&l, DDPS_MPA_OUT);
		cr_expect_eq(l.s->done, 300);
		line_fini(&l);
	}
}

/* The same with small ones: 2048 of them, and a batch. */
Test(mpa_line_send, a_turn_sends_so_many)
{
	struct line l;

	full_with(&l, 4000);
	mpa_send_segments(l.s, pattern, 2010, 5000); /* FPDUs of 2016 octets, 64 in a batch */
	cr_expect_eq(l.s->pulled, 2048 + 64, "%u", l.s->pulled);
	line_fini(&l);
}

/* What was not written does not count. */
Test(mpa_line_send, an_interrupted_call_is_made_again)
{
	struct line l;

	full_with(&l, 40000);
	l.interrupts = 100;
	mpa_send_segments(l.s, pattern, 32762, 2);
	cr_expect_eq(l.s->done, 2);
	cr_expect_eq(l.sends, 101);
	line_fini(&l);
}

/* TCP has said that it has no more room: it is not asked again before it has. */
Test(mpa_line_send, what_is_taken_in_part_is_enough_for_now)
{
	struct line l;

	line_full(&l);
	l.room = 10;
	mpa_send_segments(l.s, pattern, 500, 1);
	cr_expect_eq(l.sends, 1);
	cr_expect_eq(l.s->done, 0);
	cr_expect(l.events & DDPS_MPA_OUT);
	l.room = 1000;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.sends, 2);
	cr_expect_eq(l.s->done, 1);
	line_fini(&l);
}

/* Somebody else waits for little: it has its turn first. */
Test(mpa_line_send, others_that_are_light_come_first)
{
	struct ddps_load *load;
	struct line l;

	line_full(&l);
	load = (struct ddps_load *)l.w.env.loop;
	load->lights = 1;
	load->quiet = 0;
	load->spent = DDPS_SPENT_GENTLE;
	l.c->io.light = 0;
	mpa_send_segments(l.s, pattern, 500, 1);
	cr_expect_eq(l.sends, 0);
	cr_expect_eq(l.c->wr, DDPS_MPA_WR_FULL);
	cr_expect(l.events & DDPS_MPA_OUT);
	load->lights = 0;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.s->done, 1);
	line_fini(&l);
}

/* ---- who may not send ---- */

/* Nothing is asked of TCP, as little as of the layer above. */
Test(mpa_line_send, a_kick_before_full_operation_only_counts,
     .description = "5044-7.1.2-15 5044-7.1.2-d2")
{
	for (unsigned decided = 0; decided < 2; decided++) {
		struct line l;

		line_responder(&l);
		if (!decided)
			l.s->react[UP_REQUEST] = DO_NOTHING;
		line_requested(&l);
		cr_assert_eq(l.c->state, decided ? DDPS_MPA_FENCED : DDPS_MPA_REQUEST_ULP);
		line_forget(&l);
		mpa_send_segments(l.s, pattern, 18, 1);
		cr_expect_eq(l.sends + l.watches + l.unwatches + l.recvs, 0);
		cr_expect_eq(l.s->pulled, 0);
		cr_expect(l.c->held);
		line_fini(&l);
	}
}

/* ---- failures ---- */

/* What the peer or the network has broken is read to its end; anything else ends it with a reset, so that
 * a torn FPDU is not taken for an end. */
Test(mpa_line_send, a_call_that_fails, .description = "5044-8-1")
{
	static const struct {
		int err;
		bool lost;
	} row[] = { { EPIPE, true },  { ECONNRESET, true }, { ETIMEDOUT, true },
		    { EPERM, false }, { EFAULT, false },    { EHOSTUNREACH, false } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct line l;

		line_full(&l);
		l.send_err = row[i].err;
		mpa_send_segments(l.s, pattern, 18, 1);
		cr_expect_eq(l.resets, !row[i].lost, "%s", strerror(row[i].err));
		cr_expect_eq(l.closes, !row[i].lost);
		line_run(&l);
		cr_expect_eq(l.s->called[UP_CLOSED], 1, "%s", strerror(row[i].err));
		cr_expect_eq(l.s->end.sys_errno, row[i].err);
		cr_expect_eq(l.s->end.has_triple, row[i].lost);
		line_fini(&l);
	}
}

Test(mpa_line_send, the_error_says_what_could_not_be_sent)
{
	struct line l;

	line_full(&l);
	l.s->pattern = pattern;
	l.s->seg_len = 0;
	l.s->nseg = 1;
	l.s->llp->ops->kick(l.s->llp);
	line_run(&l);
	cr_expect_eq(l.s->end.code, DDPS_E_INVAL);
	cr_expect(strstr(l.s->end.text, "segment is empty"), "%s", l.s->end.text);
	line_fini(&l);

	line_full(&l);
	ddps_spares_fini(&l.w.env.mpa_copied);
	mem_fail(1);
	mpa_send_segments(l.s, pattern, 18, 1);
	line_run(&l);
	cr_expect_eq(l.s->end.code, DDPS_E_NOMEM);
	cr_expect(strstr(l.s->end.text, "no memory"), "%s", l.s->end.text);
	line_fini(&l);
}

static int next_aborts(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct mpa_side *s = user;
	const struct ddps_mpa_conn *c = (const struct ddps_mpa_conn *)s->llp;

	(void)seg;
	(void)mulpdu;
	cr_expect_not_null(c->tx.batch);
	s->llp->ops->abort(s->llp);
	cr_expect_not_null(c->tx.batch, "it is being filled");
	return 0;
}

/* The batch goes when it is not in use any more. */
Test(mpa_line_send, aborted_while_a_batch_is_filled)
{
	struct ddps_llp_data data = mpa_data;
	struct line l;

	line_full(&l);
	l.c->stepwise = true; /* the straight way has none */
	data.tx_next = next_aborts;
	ddps_llp_attach(&l.c->llp, &data, l.s);
	l.s->llp->ops->kick(l.s->llp);
	cr_expect_null(l.c->tx.batch);
	cr_expect_eq(l.sends, 0);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	line_fini(&l);
}
