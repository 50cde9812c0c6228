/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDUs that come in: how TCP is asked for them, how much in a turn, and the peer's end. */
#include "unit/mpa_tcp/mpa_line_fixture.h"

TestSuite(mpa_line_read, .timeout = 60);

#define BIG 32762u /* a ULPDU; its FPDU has 32 KiB */

/* The layer above has something to say to each segment. */
static int rx_kicks(void *user, const uint8_t *seg, size_t len)
{
	struct mpa_side *s = user;
	unsigned pulled = s->pulled;

	(void)seg;
	(void)len;
	s->segments++;
	s->pattern = mpa_send1;
	s->seg_len = 18;
	s->nseg++;
	s->llp->ops->kick(s->llp);
	cr_expect_eq(s->pulled, pulled, "it is asked at the end of the call");
	return 0;
}

static struct ddps_llp_data answering(void)
{
	struct ddps_llp_data data = mpa_data;

	data.rx_segment = rx_kicks;
	return data;
}

/* In full operation, and TCP takes no more of what there is to send. */
static void full_and_choked(struct line *l)
{
	line_full(l);
	l->room = 0;
	mpa_send_segments(l->s, mpa_send1, 18, 1);
	cr_assert_eq(l->c->wr, DDPS_MPA_WR_FULL);
	cr_assert(l->events & DDPS_MPA_OUT);
	line_forget(l);
}

/* As if the loop had been asked again. */
static void next_turn(struct line *l)
{
	l->c->turn = UINT64_MAX;
}

/* ---- what TCP is asked ---- */

Test(mpa_line_read, a_message_costs_one_call)
{
	struct line l;

	line_full(&l);
	for (unsigned i = 0; i < 3; i++) {
		line_fpdus(&l, 1, i ? 1000 : 18);
		line_forget(&l);
		line_ready(&l, DDPS_MPA_IN);
		cr_expect_eq(l.s->segments, 2 + i);
		cr_expect_eq(l.recvs, 1, "all was there");
		cr_expect_eq(l.watches, 0, "it waits for the same");
		cr_expect_eq(l.sends, 0);
	}
	line_fini(&l);
}

/* In pieces, too: what is missing of an FPDU, and what comes behind it. */
Test(mpa_line_read, the_rest_of_a_message_costs_one_call)
{
	struct line l;

	line_full(&l);
	line_fpdus(&l, 1, 1000);
	l.in.len -= 100;
	line_ready(&l, DDPS_MPA_IN);
	line_forget(&l);
	l.in.len += 100;
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.s->segments, 2);
	cr_expect_eq(l.recvs, 1);
	line_fini(&l);
}

Test(mpa_line_read, what_can_be_written_is_no_reason_to_read)
{
	struct line l;

	full_and_choked(&l);
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.sends, 0, "nor is what can be read one to write");
	cr_expect_eq(l.c->wr, DDPS_MPA_WR_FULL);
	line_forget(&l);
	l.room = 1000;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.recvs, 0);
	cr_expect_eq(l.s->done, 1);
	cr_expect_not(l.events & DDPS_MPA_OUT);
	line_fini(&l);
}

Test(mpa_line_read, a_direction_that_is_closed_stays_so)
{
	struct line l;

	line_full(&l);
	l.s->llp->ops->shutdown(l.s->llp);
	line_run(&l);
	cr_expect_eq(l.fins, 1);
	line_ready(&l, DDPS_MPA_OUT | DDPS_MPA_IN);
	cr_expect_eq(l.c->wr, DDPS_MPA_WR_SHUT);
	cr_expect_eq(l.fins, 1);
	line_fini(&l);
}

/* One that has ended is not waited for, whatever it was woken by. */
Test(mpa_line_read, one_that_has_ended_is_not_watched)
{
	struct line l;

	line_full(&l);
	l.s->react[UP_RX] = DO_ABORT;
	line_fpdus(&l, 2, 18);
	line_forget(&l);
	line_ready(&l, DDPS_MPA_OUT | DDPS_MPA_IN);
	cr_expect_eq(l.s->segments, 2);
	cr_expect_eq(l.watches, 0);
	cr_expect_eq(l.recvs, 1);
	line_fini(&l);
}

/* ---- how much in a turn ---- */

/* Alone it may read 1 MiB, in however large reads. */
Test(mpa_line_read, a_turn_reads_so_much)
{
	static const struct {
		size_t ask, reads, octets;
	} row[] = { { 512 * 1024, 2, 1024 * 1024 }, { 64 * 1024, 5, 1472 * 1024 } };

	for (size_t i = 0; i < 2; i++) {
		struct line l;

		line_full(&l);
		l.c->rx.ask = row[i].ask;
		line_fpdus(&l, 64, BIG);
		line_ready(&l, DDPS_MPA_IN);
		cr_expect_eq(l.recvs, row[i].reads, "%u", l.recvs);
		cr_expect_eq(l.at - 44, row[i].octets, "%zu", l.at);
		line_fini(&l);
	}
}

/* Answers leave after the first read, not after the last. */
Test(mpa_line_read, answers_do_not_wait_for_more_input)
{
	const struct ddps_llp_data data = answering();
	struct line l;

	line_full(&l);
	ddps_llp_attach(&l.c->llp, &data, l.s);
	line_fpdus(&l, 40, BIG);
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_gt(l.recvs, 1);
	cr_expect_eq(l.read_before_sent, 1);
	cr_expect_eq(l.s->done, l.s->nseg);
	line_fini(&l);
}

/* ---- while it stalls ---- */

static void stall_mpa_line_read(struct line *l)
{
	line_full(l);
	l->s->holding = true;
	line_fpdus(l, 1, 18);
	line_ready(l, DDPS_MPA_IN);
	cr_assert_eq(l->s->holds, 1);
}

/* A FIN behind it is waited for, and told once; nothing is read. */
Test(mpa_line_read, what_is_waited_for_while_it_stalls)
{
	struct line l;

	stall_mpa_line_read(&l);
	cr_expect_eq(l.events, DDPS_MPA_PEER_FIN);
	line_forget(&l);
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.s->called[UP_PEER_CLOSING], 0, "there is none");
	cr_expect_eq(l.events, DDPS_MPA_PEER_FIN);
	line_ready(&l, DDPS_MPA_PEER_FIN);
	cr_expect_eq(l.s->called[UP_PEER_CLOSING], 1);
	cr_expect_eq(l.events, 0);
	cr_expect_eq(l.recvs, 0);
	line_fini(&l);
}

/* Only resume() has it shown again: not what else there is to do. */
Test(mpa_line_read, held_back_again_it_waits_for_the_next_resume)
{
	struct line l;

	stall_mpa_line_read(&l);
	l.s->llp->ops->resume(l.s->llp);
	line_run(&l);
	cr_expect_eq(l.s->holds, 2);
	l.s->llp->ops->shutdown(l.s->llp);
	line_run(&l);
	cr_expect_eq(l.fins, 1);
	cr_expect_eq(l.s->holds, 2);
	line_fini(&l);
}

/* What a turn has left is shown in the next; if that is held back nothing more is read. */
Test(mpa_line_read, nothing_is_read_behind_what_is_held_back)
{
	struct line l;
	size_t at;

	line_full(&l);
	next_turn(&l);
	line_fpdus(&l, 600, 18);
	line_ready(&l, DDPS_MPA_IN);
	cr_assert(l.c->rx.cut);
	l.s->holding = true;
	line_fpdus(&l, 1, 18);
	at = l.at;
	line_forget(&l);
	next_turn(&l);
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.s->holds, 1);
	cr_expect_eq(l.recvs, 0);
	cr_expect_eq(l.at, at);
	line_fini(&l);
}

/* ---- the peer's end ---- */

/* The deadline was for its first FPDU; that of a close goes on. */
Test(mpa_line_read, a_fin_instead_of_the_first_fpdu, .description = "5044-7.1.2-26")
{
	for (unsigned closing = 0; closing < 2; closing++) {
		struct line l;

		line_fenced(&l);
		cr_expect_eq(l.c->deadline, DDPS_MPA_T_FIRST_FPDU);
		if (closing) {
			l.s->llp->ops->kick(l.s->llp);
			l.s->llp->ops->shutdown(l.s->llp);
		}
		l.c->held = false;
		l.fin = true;
		line_ready(&l, DDPS_MPA_IN);
		cr_expect_eq(l.s->called[UP_PEER_CLOSED], 1);
		cr_expect_eq(l.closes, closing);
		if (!closing) {
			cr_expect_eq(l.c->deadline, DDPS_MPA_T_NONE);
			cr_expect_not(ddps_timer_runs(&l.c->timer));
		}
		line_fini(&l);
	}
}

Test(mpa_line_read, the_deadline_of_a_close_outlasts_a_fin, .description = "5044-7.1.2-26")
{
	struct line l;

	full_and_choked(&l);
	l.s->llp->ops->shutdown(l.s->llp);
	l.fin = true;
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.s->called[UP_PEER_CLOSED], 1);
	cr_expect_eq(l.c->deadline, DDPS_MPA_T_CLOSE);
	cr_expect(ddps_timer_runs(&l.c->timer));
	line_fini(&l);
}

/* Behind the fence what is queued can never leave: that is no end in order.  Elsewhere it leaves yet. */
Test(mpa_line_read, a_fin_while_something_is_queued, .description = "5044-7.1.2-15")
{
	struct line l;

	line_fenced(&l);
	mpa_send_segments(l.s, mpa_send1, 18, 1);
	l.fin = true;
	line_ready(&l, DDPS_MPA_IN);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_PEER_CLOSED], 0);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, DDPS_E_RESET);
	cr_expect(strstr(l.s->end.text, "before its first FPDU"), "%s", l.s->end.text);
	line_fini(&l);

	full_and_choked(&l);
	mpa_send_segments(l.s, mpa_send1, 18, 1);
	l.fin = true;
	line_ready(&l, DDPS_MPA_IN);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_PEER_CLOSED], 1);
	cr_expect_eq(l.s->called[UP_CLOSED], 0);
	l.room = 1000;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.s->done, 2);
	line_fini(&l);
}

/* The same where TCP has not taken all of the Reply: to wait for that would be in vain. */
Test(mpa_line_read, a_fin_before_the_reply_has_left, .description = "5044-7.1.2-15")
{
	struct line l;

	line_responder(&l);
	l.room = 10;
	line_requested(&l);
	mpa_send_segments(l.s, mpa_send1, 18, 1);
	l.fin = true;
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.closes, 1);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, DDPS_E_RESET);
	line_fini(&l);
}

/* Only what was begun and would have been shown is cut off. */
Test(mpa_line_read, where_a_reset_has_hit, .description = "5044-8-1 5044-4.3-11")
{
	static const struct {
		size_t cut; /* octets of the second FPDU that came; 0: none */
		bool bad;   /* there was a fault before */
		bool truncated;
	} row[] = { { 0, false, false }, { 100, false, true }, { 100, true, false } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct line l;

		line_full(&l);
		line_fpdus(&l, 1, 500);
		l.in.p[l.in.len - 1] ^= row[i].bad;
		l.in.len -= 100;
		line_ready(&l, DDPS_MPA_IN); /* what follows is in a buffer, also if it is bad */
		l.in.len += 100;
		line_ready(&l, DDPS_MPA_IN);
		cr_expect_eq(l.s->called[UP_FAULT], row[i].bad);
		line_fpdus(&l, 1, 500);
		l.in.len -= 508 - row[i].cut;
		if (row[i].cut)
			line_ready(&l, DDPS_MPA_IN);
		l.recv_err = ECONNRESET;
		line_ready(&l, DDPS_MPA_IN | DDPS_MPA_BROKEN);
		line_run(&l);
		cr_expect_eq(l.s->called[UP_CLOSED], 1);
		cr_expect_eq(l.s->end.sys_errno, ECONNRESET);
		cr_expect_eq(strstr(l.s->end.text, "truncated") != NULL, row[i].truncated,
			     "row %zu: %s", i, l.s->end.text);
		line_fini(&l);
	}
}

Test(mpa_line_read, without_memory_for_an_fpdu_it_ends)
{
	struct line l;

	line_full(&l);
	line_fpdus(&l, 1, 500);
	l.in.len -= 100;
	mem_fail(1);
	line_ready(&l, DDPS_MPA_IN);
	cr_assert(mem_failed());
	line_run(&l);
	cr_expect_eq(l.s->called[UP_FAULT], 0, "it is not the peer's");
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, DDPS_E_NOMEM);
	cr_expect_eq(l.resets, 1, "a FIN would say that it was taken");
	cr_expect_str_eq(l.s->end.peer, "127.0.0.1:7");
	line_fini(&l);
}

/* ---- a connection that cannot be written any more ---- */

/* From the loop alone all is shown that had come before, though TCP reports nothing; then the end. */
Test(mpa_line_read, what_came_before_is_shown_without_being_woken)
{
	static const unsigned counts[] = { 0, 1, 511, 512, 513, 2000 };

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct line l;

		line_full(&l);
		line_fpdus(&l, counts[i], 18);
		l.send_err = EPIPE;
		mpa_send_segments(l.s, mpa_send1, 18, 1);
		cr_expect_eq(l.s->segments, 1);
		line_run(&l);
		cr_expect_eq(l.s->segments, 1 + counts[i]);
		cr_expect_eq(l.s->called[UP_CLOSED], 1, "%u", counts[i]);
		cr_expect_eq(l.s->end.sys_errno, EPIPE);
		line_fini(&l);
	}
}

/* A turn in which as much as one may show was shown: the next one is another. */
Test(mpa_line_read, a_share_that_is_used_up_is_not_the_end)
{
	struct line l;

	line_full(&l);
	next_turn(&l);
	line_fpdus(&l, 512, 18);
	line_ready(&l, DDPS_MPA_IN);
	cr_assert_eq(l.c->rx.share, 0);
	cr_assert_not(l.c->rx.cut);
	line_fpdus(&l, 3, 18);
	l.send_err = EPIPE;
	mpa_send_segments(l.s, mpa_send1, 18, 1);
	line_run(&l);
	cr_expect_eq(l.s->segments, 1 + 512 + 3);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	line_fini(&l);
}

/* kick() shows nothing: whoever calls it is not ready for that. */
Test(mpa_line_read, nothing_is_shown_from_inside_a_kick)
{
	struct line l;

	line_full(&l);
	line_fpdus(&l, 3, 18);
	l.send_err = EPIPE;
	for (unsigned i = 0; i < 3; i++) {
		mpa_send_segments(l.s, mpa_send1, 18, 1);
		cr_expect_eq(l.s->segments, 1, "kick %u", i);
		cr_expect_eq(l.closes, 0);
	}
	line_run(&l);
	cr_expect_eq(l.s->segments, 4);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	line_fini(&l);
}
