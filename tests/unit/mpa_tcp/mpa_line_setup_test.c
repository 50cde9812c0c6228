/* SPDX-License-Identifier: BSD-2-Clause */
/* Request and Reply on a TCP connection that is slow, broken, or gives more than it was asked for. */
#include "unit/mpa_tcp/mpa_line_fixture.h"

TestSuite(mpa_line_setup, .timeout = 60);

#define REPLY MPA_REP "\x40\x01\0\0"

/* An initiator that TCP has connected. */
static void connect_both_mpa_line_setup(struct line *l)
{
	line_init(l);
	line_initiate(l);
	line_ready(l, DDPS_MPA_OUT);
}

/* ---- initiator ---- */

Test(mpa_line_setup, the_request_leaves_when_tcp_is_connected, .description = "5044-7.1.1-1")
{
	struct line l;

	connect_both_mpa_line_setup(&l);
	cr_expect_eq(l.c->state, DDPS_MPA_AWAIT_REPLY);
	cr_expect_eq(l.out.len, 20);
	cr_expect_eq(l.locals, 1);
	cr_expect_eq(l.c->emss, 1460);
	cr_expect_eq(l.c->deadline, DDPS_MPA_T_SETUP);
	line_fini(&l);
}

/* TCP takes nothing yet: all else is done. */
Test(mpa_line_setup, a_request_that_waits_holds_nothing_up)
{
	struct line l;

	line_init(&l);
	line_initiate(&l);
	l.room = 0;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.locals, 1);
	cr_expect_eq(l.c->emss, 1460);
	cr_expect(l.events & DDPS_MPA_OUT);
	l.room = 100;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.out.len, 20);
	cr_expect_not(l.events & DDPS_MPA_OUT);
	line_fini(&l);
}

/* A closed one is asked nothing more. */
Test(mpa_line_setup, a_request_that_cannot_leave_is_the_end)
{
	struct line l;

	line_init(&l);
	line_initiate(&l);
	l.send_err = EPIPE;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.closes, 1);
	cr_expect_eq(l.locals + l.emsses, 0);
	line_run(&l);
	cr_expect_eq(l.s->end.code, DDPS_E_RESET);
	line_fini(&l);
}

/* However it comes, what follows the Reply stays where it is until the application has decided. */
Test(mpa_line_setup, of_a_reply_no_more_is_read_than_is_missing,
     .description = "5044-7.1.2-10 5044-7.1.2-14")
{
	for (size_t first = 1; first < 20; first++) {
		struct line l;

		connect_both_mpa_line_setup(&l);
		l.s->react[UP_ANSWER] = DO_NOTHING;
		line_feed(&l, REPLY, first);
		line_ready(&l, DDPS_MPA_IN);
		cr_expect_eq(l.asked, 20 - first);
		line_feed(&l, (const uint8_t *)REPLY + first, 20 - first);
		line_fpdus(&l, 1, 18);
		line_ready(&l, DDPS_MPA_IN);
		cr_expect_eq(l.s->called[UP_ANSWER], 1);
		cr_expect_eq(l.at, 20, "%zu", first);
		cr_expect_eq(l.unwatches, 1);
		line_fini(&l);
	}
}

/* One with the word that an enhanced Request asks for is read with one call. */
Test(mpa_line_setup, the_word_is_read_with_the_reply)
{
	struct ddps_setup setup = { .enhanced = true,
				    .pd = (const uint8_t *)"\0\1\0\1",
				    .pd_len = 4 };
	struct line l;

	line_init(&l);
	line_initiate_by(&l, &setup);
	line_ready(&l, DDPS_MPA_OUT);
	l.s->react[UP_ANSWER] = DO_NOTHING;
	line_feed(&l, MPA_REP "\x50\2\0\4\0\1\0\1", 24);
	line_fpdus(&l, 1, 18);
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.s->called[UP_ANSWER], 1);
	cr_expect_eq(l.recvs, 1);
	cr_expect_eq(l.at, 24);
	line_fini(&l);
}

/* The deadline was for the Reply. */
Test(mpa_line_setup, after_the_reply_there_is_no_deadline, .description = "5044-7.1.2-25")
{
	struct line l;

	connect_both_mpa_line_setup(&l);
	cr_expect(ddps_timer_runs(&l.c->timer));
	line_feed(&l, REPLY, 20);
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.c->state, DDPS_MPA_FULL);
	cr_expect_eq(l.c->deadline, DDPS_MPA_T_NONE);
	cr_expect_not(ddps_timer_runs(&l.c->timer));
	line_fini(&l);
}

/* Ours until the peer has told its own. */
Test(mpa_line_setup, the_revision_is_that_of_the_reply)
{
	struct ddps_conn_info info = { 0 };
	struct line l;

	connect_both_mpa_line_setup(&l);
	l.s->llp->ops->info(l.s->llp, &info);
	cr_expect_eq(info.mpa.rev, 1);
	line_feed(&l, MPA_REP "\x40\x02\0\0", 20);
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.c->state, DDPS_MPA_FULL);
	l.s->llp->ops->info(l.s->llp, &info);
	cr_expect_eq(info.mpa.rev, 2);
	line_fini(&l);
}

/* ---- responder ---- */

/* One that counts as half-open has a deadline until its Request is there, and none while the application
 * decides; what was agreed on so far can be asked for. */
Test(mpa_line_setup, while_the_application_decides, .description = "5044-7.1.2-20 5044-4.5-1")
{
	struct ddps_conn_info info = { 0 };
	struct line l;

	line_responder(&l);
	cr_expect(ddps_timer_runs(&l.c->timer));
	l.s->react[UP_REQUEST] = DO_NOTHING;
	line_feed(&l, MPA_REQ "\xc0\x01\0\0", 20);
	line_ready(&l, DDPS_MPA_IN);
	cr_assert_eq(l.w.requests, 1);
	cr_expect_eq(l.c->deadline, DDPS_MPA_T_NONE);
	cr_expect_not(ddps_timer_runs(&l.c->timer));
	l.s->llp->ops->info(l.s->llp, &info);
	cr_expect(info.mpa.markers_tx && info.mpa.crc);
	cr_expect_eq(info.mulpdu, 1442, "with markers");
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.asked, 1, "one octet would be too many");
	cr_expect_eq(l.c->state, DDPS_MPA_REQUEST_ULP);
	line_fini(&l);
}

/* Batches with a CRC or markers are larger. */
Test(mpa_line_setup, batches_are_as_large_as_was_agreed)
{
	for (unsigned mode = 0; mode < 4; mode++) {
		const char flags = (char)((mode & 1 ? 0x40 : 0) | (mode & 2 ? 0x80 : 0));
		uint8_t request[20] = MPA_REQ;
		struct line l;

		request[16] = (uint8_t)flags;
		request[17] = 1;
		request[18] = request[19] = 0;
		line_responder(&l);
		l.w.answer_param.crc = false;
		line_feed(&l, request, 20);
		line_ready(&l, DDPS_MPA_IN);
		cr_expect_eq(l.c->tx.crc, mode & 1);
		cr_expect_eq(l.c->tx.markers, mode >> 1);
		cr_expect_eq(l.c->tx.spares, mode ? &l.w.env.mpa_copied : &l.w.env.mpa_tx, "%u",
			     mode);
		line_fini(&l);
	}
}

Test(mpa_line_setup, an_answer_has_so_much_private_data, .description = "5044-7.1.1-19")
{
	static const uint8_t pd[513];
	static const struct {
		size_t len;
		int err;
	} row[] = { { 0, 0 }, { 511, 0 }, { 512, 0 }, { 513, DDPS_E_TOO_LONG } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ddps_setup answer = { .pd = pd, .pd_len = row[i].len };
		struct line l;

		line_responder(&l);
		l.s->react[UP_REQUEST] = DO_NOTHING;
		line_requested(&l);
		cr_expect_eq(l.s->llp->ops->answer(l.s->llp, &answer, &l.w.answer_param),
			     row[i].err, "%zu", row[i].len);
		cr_expect_eq(l.out.len, row[i].err ? 0 : 20 + row[i].len);
		line_fini(&l);
	}
}

/* Whatever it sends then: we are out of MPA. */
Test(mpa_line_setup, nothing_of_a_rejected_peer_is_shown, .description = "5044-7.1.2-13")
{
	struct line l;

	line_responder(&l);
	l.s->react[UP_REQUEST] = DO_REJECT;
	line_requested(&l);
	line_fpdus(&l, 2, 18);
	l.in.p[l.in.len - 1] ^= 1;
	line_ready(&l, DDPS_MPA_IN);
	cr_expect_eq(l.at, l.in.len);
	cr_expect_eq(l.s->segments, 0);
	cr_expect_eq(l.s->called[UP_FAULT], 0);
	line_fini(&l);
}

/* It may be reset, too: that is no error. */
Test(mpa_line_setup, a_rejected_peer_that_resets_is_gone, .description = "5044-7.1.2-13")
{
	struct line l;

	line_responder(&l);
	l.s->react[UP_REQUEST] = DO_REJECT;
	line_requested(&l);
	l.recv_err = ECONNRESET;
	line_ready(&l, DDPS_MPA_IN | DDPS_MPA_BROKEN);
	cr_expect_eq(l.closes, 1);
	line_run(&l);
	cr_expect_eq(l.s->called[UP_CLOSED], 1);
	cr_expect_eq(l.s->end.code, 0);
	line_fini(&l);
}

/* TCP has taken half of the Reply: a FIN would tear it. */
Test(mpa_line_setup, no_fin_before_the_reply_has_left)
{
	struct line l;

	line_responder(&l);
	l.room = 10;
	line_requested(&l);
	cr_expect(l.events & DDPS_MPA_OUT);
	l.s->llp->ops->shutdown(l.s->llp);
	line_run(&l);
	cr_expect_eq(l.out.len, 10);
	cr_expect_eq(l.fins, 0);
	l.room = 100;
	line_ready(&l, DDPS_MPA_OUT);
	cr_expect_eq(l.out.len, 20);
	cr_expect_eq(l.fins, 1);
	line_fini(&l);
}
