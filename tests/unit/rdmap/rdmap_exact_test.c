/* SPDX-License-Identifier: BSD-2-Clause */
/* Small promises of one RDMAP stream, each to the last detail: what is counted where, and who is informed. */
#include "rdmap/srq.h"
#include "rdmap_fixture.h"

static struct side s;
static struct ddps_rdmap_up up;

static void setup(void)
{
	open_rdmap_side(&s);
	up = side_up;
	s.r->up = &up;
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_exact, .init = setup, .fini = teardown);

/* ---- requests that complete when the peer has them ---- */

/* Each row of eight has one Read behind it, the second like the first. */
Test(rdmap_exact, rows_are_equally_long)
{
	uint8_t out[128];

	close_rdmap_side(&s);
	side_init(&s, 32, 1, 1);
	side_start(&s, 4, 4);
	for (uint64_t i = 0; i < 26; i++)
		cr_assert_eq(post_rdmap(&s, DDPS_OP_WRITE, i, DDPS_WR_PLACED, 0, 4), 0);
	for (unsigned i = 1; pull(&s, 1500, out); i++)
		cr_expect_eq(out[1], i % 9 && i != 30 ? 0x40 : 0x41, "message %u", i);
	for (unsigned n = 8; n <= 24; n += 8) {
		cr_expect_eq(feed_rresp(&s, 0, 0, true, ""), 0);
		cr_expect_eq(s.nsq, n);
	}
}

/* ---- a Read behind the RTR Read, not the first request of the queue ---- */

Test(rdmap_exact, a_read_behind_a_send_while_the_rtr_is_out, .description = "5040-5.2.2-9")
{
	struct ddps_rdmap_start st = { .ird = 4, .ord = 4, .send_rtr = DDPS_RTR_READ };
	uint8_t out[128];

	close_rdmap_side(&s);
	side_init(&s, 8, 8, 4);
	cr_assert_eq(ddps_rdmap_start(s.r, &st), 0);
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 2, 0, 8, 4);
	while (pull(&s, 1500, out))
		;
	cr_expect_eq(s.r->reads_out, 2);
	cr_expect_eq(s.r->read_pos - s.r->sq.head, 0, "the Send is done");
	cr_expect_eq(feed_rresp(&s, 0, 0, true, ""), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 8, true, "abcd"), 0);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[1], 2, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cr_expect_arr_eq(s.mem + 8, "abcd", 4);
}

/* ---- Immediate Data that belongs to a Send ---- */

/* Only the agreed octets behind it say so: with any other it is what it is for the RFC. */
Test(rdmap_exact, ahead_is_what_all_its_octets_say, .description = "7306-6.3-3")
{
	for (unsigned k = 0; k <= DDPS_IMM_LEN; k++) {
		uint8_t imm[DDPS_IMM_LEN] = { 1, 2, 3, 4, 5, 6, 7, 8 };
		bool ahead = k < DDPS_SEND_IMM_OCTETS || k == DDPS_IMM_LEN;

		close_rdmap_side(&s);
		open_rdmap_side(&s);
		s.r->rfc7306 = s.r->send_imm = true;
		post_rdmap_recv(&s, 1, 0, 64);
		memset(imm + DDPS_SEND_IMM_OCTETS, DDPS_AHEAD_OCTET,
		       sizeof imm - DDPS_SEND_IMM_OCTETS);
		if (k < sizeof imm)
			imm[k] ^= 1;
		cr_expect_eq(feed_untagged(&s, 8, 0, 0, 1, 0, true, imm, sizeof imm), 0);
		cr_expect_eq(s.nrq, !ahead, "octet %u", k);
		cr_expect_eq(s.r->ahead, ahead, "octet %u", k);
		if (!ahead)
			cr_expect_arr_eq(s.rq[0].imm, imm, sizeof imm);
	}
}

/* ---- the rights of atomics ---- */

/* Their own right, or, before there was one, both of the others; under verbs' rules only the first. */
Test(rdmap_exact, rights_of_an_atomic, .description = "7306-8.2-1 5040-8.1.1-5")
{
	static const unsigned rights[] = { DDPS_REMOTE_ATOMIC, DDPS_REMOTE_READ,
					   DDPS_REMOTE_WRITE };
	static uint64_t cell[1];

	for (unsigned k = 0; k < 16; k++) {
		bool rules = k & 8, may = k & 1 || (!rules && (k & 6) == 6);
		unsigned access = DDPS_ZERO_BASED | DDPS_LOCAL_WRITE;
		struct ddps_areq q = { DDPS_AOP_FETCH_ADD, 7, 0, 0, 1, 0, 0, UINT64_MAX };
		uint8_t body[DDPS_AREQ_LEN], out[128];

		close_rdmap_side(&s);
		open_rdmap_side(&s);
		s.r->rfc7306 = true;
		s.pd.verbs_rules = rules;
		for (unsigned i = 0; i < 3; i++)
			access |= k >> i & 1 ? rights[i] : 0;
		q.stag = side_reg(&s, cell, sizeof cell, access)->stag;
		cell[0] = 41;
		ddps_areq_encode(&q, body);
		cr_expect_eq(!feed_untagged(&s, 0xA, 0, 1, 1, 0, true, body, sizeof body), may,
			     "%u", k);
		while (pull(&s, 1500, out))
			;
		cr_expect_eq(cell[0], may ? 42 : 41, "%u", k);
		cr_expect_eq(s.terms, !may);
		if (!may)
			cr_expect_eq(s.term.triple.code, 0x02, "access");
	}
}

/* Responses are numbered on a queue of their own. */
Test(rdmap_exact, atomic_responses_are_numbered, .description = "5041-4.3-12")
{
	static uint64_t cell[1];
	struct ddps_areq q = { DDPS_AOP_FETCH_ADD, 7, 0, 0, 1, 0, 0, UINT64_MAX };
	uint8_t body[DDPS_AREQ_LEN], out[128];

	s.r->rfc7306 = true;
	q.stag = side_reg(&s, cell, sizeof cell, RIGHTS | DDPS_ZERO_BASED)->stag;
	ddps_areq_encode(&q, body);
	for (uint8_t i = 1; i <= 3; i++) {
		struct ddps_ddp_hdr h;

		cr_expect_eq(feed_untagged(&s, 0xA, 0, 1, i, 0, true, body, sizeof body), 0);
		cr_assert_eq(pull(&s, 1500, out), 18 + DDPS_ARESP_LEN);
		cr_assert_eq(ddps_ddp_decode(&h, out, 18), 18);
		cr_expect(h.qn == 3 && h.msn == i && h.mo == 0 && h.last, "%u", i);
		cr_expect_eq(cell[0], i);
	}
}

/* ---- whoever ends the stream from inside ---- */

static void end_by_terminate(void *user, bool recv, struct ddps_wc *wc)
{
	struct side *t = user;

	take_rdmap_complete(user, recv, wc);
	if (recv && !wc->status)
		ddps_rdmap_terminate(t->r, DDPS_E_LIMIT, (struct ddps_triple){ 0, 0, 0 }, "no");
}

/* The LLP is informed that no more may come, also where the message itself was right. */
Test(rdmap_exact, a_completion_that_ends_the_stream_stops_the_input)
{
	for (unsigned parts = 1; parts <= 2; parts++) {
		close_rdmap_side(&s);
		open_rdmap_side(&s);
		up.complete = end_by_terminate;
		s.r->up = &up;
		post_rdmap_recv(&s, 1, 0, 64);
		if (parts == 2)
			cr_expect_eq(feed_send(&s, 1, 0, false, "ab"), 0);
		cr_expect_eq(feed_send(&s, 1, parts == 2 ? 2 : 0, true, "cd"), DDPS_E_CLOSED);
		cr_expect_eq(s.nrq, 1);
		cr_expect_eq(s.terms, 1);
	}
}

static void end_by_flush(void *user, const struct ddps_term *t, bool by_peer)
{
	take_rdmap_term(user, t, by_peer);
	ddps_rdmap_flush(((struct side *)user)->r);
}

/* A source is gone, and whoever is informed ends the stream immediately: then nothing goes out. */
Test(rdmap_exact, flushed_when_a_source_is_gone, .description = "5040-8.1.1-6")
{
	for (unsigned atomic = 0; atomic < 2; atomic++) {
		struct ddps_areq q = { DDPS_AOP_FETCH_ADD, 7, 0, 0, 1, 0, 0, UINT64_MAX };
		uint8_t body[DDPS_AREQ_LEN], out[128];

		close_rdmap_side(&s);
		open_rdmap_side(&s);
		up.terminated = end_by_flush;
		s.r->up = &up;
		s.r->rfc7306 = true;
		q.stag = s.mr->stag;
		ddps_areq_encode(&q, body);
		if (atomic)
			cr_expect_eq(feed_untagged(&s, 0xA, 0, 1, 1, 0, true, body, sizeof body),
				     0);
		else
			cr_expect_eq(feed_rreq(&s, 1, 4, s.mr->stag, 0), 0);
		s.mr->valid = false;
		cr_expect_eq(pull(&s, 1500, out), 0);
		cr_expect_eq(s.terms, 1);
	}
}

/* Whoever is informed of an own Terminate gets its first octets as they leave. */
Test(rdmap_exact, a_terminate_is_reported_as_it_leaves, .description = "5040-4.8-5")
{
	uint8_t out[128];

	cr_expect_lt(feed_write(&s, 0xdead, 0, true, "x"), 0);
	cr_assert_eq(s.terms, 1);
	cr_assert_gt(pull(&s, 1500, out), 22);
	cr_expect_arr_eq(s.term.wire, out + 18, sizeof s.term.wire);
	cr_expect_eq(s.term.wire[0], 0x11, "DDP, tagged buffer");
}

/* ---- windows and the shared receive queue ---- */

/* A window is held by the requests that bind it, and by no other. */
Test(rdmap_exact, a_window_is_held_until_it_is_bound)
{
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 16);
	struct ddps_send_wr wr = { .op = DDPS_OP_BIND, .sge = &sge, .nsge = 1 };
	struct ddps_mr *mw, *mr;
	uint8_t out[128];

	mr = side_reg(&s, s.mem, 64, RIGHTS | DDPS_BIND);
	sge.lkey = mr->stag;
	cr_assert_eq(ddps_stag_add_window(&s.pd, true, &mw), 0);
	wr.bind = (struct ddps_bind){ .window = mw, .access = DDPS_REMOTE_READ };
	wr.stag = mw->stag;
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	wr.flags = DDPS_WR_FENCE;
	for (unsigned i = 1; i <= 3; i++) {
		cr_assert_eq(ddps_rdmap_post_send(s.r, &wr), 0);
		cr_expect_eq(mw->pending, i);
	}
	while (pull(&s, 1500, out))
		;
	cr_expect_eq(mw->pending, 3, "the fence holds them back");
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	while (pull(&s, 1500, out))
		;
	cr_expect_eq(s.nsq, 4);
	cr_expect_eq(mw->pending, 0);
	cr_expect(mw->valid);
	cr_expect_eq(mr->windows, 1);
}

static void count_low(void *user)
{
	++*(unsigned *)user;
}

/* However one leaves the queue, its owner learns that few are left. */
Test(rdmap_exact, low_water_by_taking_receives_back)
{
	unsigned lows = 0;
	struct ddps_srq srq = { .low = count_low, .user = &lows };
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 16), back[4];
	unsigned users;
	uint64_t id;
	uint32_t n;

	cr_assert_eq(ddps_srq_init(&srq, &s.pd, 8, 4), 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(ddps_srq_post(&srq, i, &sge, 1), 0);
	ddps_srq_watch(&srq, 2);
	cr_expect_eq(ddps_srq_pop(&srq, &id, back, &n), 0);
	cr_expect_eq(lows, 0);
	cr_expect_eq(ddps_srq_pop(&srq, &id, back, &n), 0);
	cr_expect_eq(lows, 1);
	cr_expect_eq(id, 1);
	cr_expect_eq(ddps_srq_pop(&srq, &id, back, &n), 0);
	cr_expect_eq(lows, 1, "once");
	cr_expect_eq(ddps_srq_pop(&srq, &id, back, &n), DDPS_E_AGAIN);
	users = s.pd.users;
	ddps_srq_fini(&srq);
	cr_expect_eq(s.pd.users, users - 1);
}

/* ---- the table of STags ---- */

/* Whatever takes something away counts, so that what was checked before is checked again. */
Test(rdmap_exact, each_loss_counts_up)
{
	struct ddps_mr_change to = { .access = RIGHTS };
	uint64_t before = ddps_stag_losses(s.table);
	struct ddps_mr *mr = side_reg(&s, s.mem, 64, RIGHTS);

	cr_expect_eq(ddps_stag_losses(s.table), before);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(ddps_stag_losses(s.table), ++before);
	cr_expect_eq(ddps_stag_revoke(&s.pd, (uintptr_t)&s, mr->stag), 0);
	cr_expect_eq(ddps_stag_losses(s.table), ++before);
	ddps_stag_remove(mr);
	cr_expect_eq(ddps_stag_losses(s.table), ++before);
}

/* What was let go once is not let go again; what is changed is valid again. */
Test(rdmap_exact, a_window_lets_go_once)
{
	struct ddps_mr_change to = { .access = RIGHTS };
	struct ddps_mr *mr = side_reg(&s, s.mem, 64, RIGHTS | DDPS_BIND), *mw[2];
	struct ddps_sge sge = { s.mem, 8, mr->stag };

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ddps_stag_add_window(&s.pd, true, &mw[i]), 0);
		cr_assert_eq(ddps_stag_bind(&s.pd, 1, mw[i], mw[i]->stag, &sge, 0), DDPS_STAG_OK);
	}
	cr_expect_eq(mr->windows, 2);
	cr_expect_eq(ddps_stag_revoke(&s.pd, 1, mw[0]->stag), DDPS_STAG_OK);
	cr_expect_eq(mr->windows, 1);
	ddps_stag_remove(mw[0]);
	cr_expect_eq(mr->windows, 1);
	ddps_stag_remove(mw[1]);
	cr_expect_eq(mr->windows, 0);
	cr_expect_eq(ddps_stag_revoke(&s.pd, 1, mr->stag), DDPS_STAG_OK);
	cr_expect_not(mr->valid);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect(mr->valid);
}

/* A window could come to each of 256 names, the last of them, too. */
Test(rdmap_exact, a_name_that_ends_in_ff_is_kin)
{
	struct ddps_mr *mr;

	for (unsigned i = 0; i < 900; i++) {
		mr = side_reg(&s, s.mem, 1, RIGHTS);
		if ((mr->stag & 0xff) == 0xff || (mr->stag & 0xff) == 0)
			for (uint32_t k = 1; k < 255; k++)
				cr_assert_not(
					ddps_stag_usable(s.table, (mr->stag & ~0xffu) | k, true));
	}
}

/* ---- who is informed how often, and what a stream is made of ---- */

/* The LLP is informed once that there is something to send, until it has asked. */
Test(rdmap_exact, told_once_until_asked)
{
	unsigned want = s.want;

	cr_expect_eq(feed_rreq(&s, 1, 4, s.mr->stag, 0), 0);
	cr_expect_eq(s.want, want + 1);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(feed_write(&s, s.mr->stag, i, true, "x"), 0);
	cr_expect_eq(s.want, want + 1);
}

Test(rdmap_exact, made_as_it_was_asked_for)
{
	for (unsigned k = 0; k < 8; k++) {
		struct ddps_rdmap_cfg cfg = { .pd = &s.pd,
					      .stream = 7 + k,
					      .sq_depth = 1 + k,
					      .rq_depth = 2 + k,
					      .max_sge = 1 + k,
					      .up = &side_up,
					      .user = &s,
					      .rfc7306 = k & 1,
					      .send_imm = k & 2,
					      .no_recv = k & 4 ? DDPS_NO_RECV_STALL
							       : DDPS_NO_RECV_TERMINATE };
		unsigned streams = s.pd.streams;
		struct ddps_rdmap *r;

		cr_assert_eq(ddps_rdmap_new(&r, &cfg), 0);
		cr_expect_eq(s.pd.streams, streams + 1);
		cr_expect(r->stream == 7 + k && r->sq.depth == 1 + k && r->rq.depth == 2 + k);
		cr_expect(r->max_sge == 1 + k && r->rq.max_sge == 1 + k);
		cr_expect_eq(r->rfc7306, (k & 1) != 0);
		cr_expect_eq(r->send_imm, (k & 2) != 0);
		cr_expect_eq(r->no_recv, cfg.no_recv);
		cr_expect_eq(r->may, DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC);
		ddps_rdmap_free(r);
		cr_expect_eq(s.pd.streams, streams);
	}
}

/* Immediate Data waits for a receive as a Send does. */
Test(rdmap_exact, immediate_data_waits_for_a_receive, .description = "7306-6.3-3 5041-7.1-5")
{
	s.r->rfc7306 = true;
	s.r->no_recv = DDPS_NO_RECV_STALL;
	cr_expect_eq(feed_untagged(&s, 8, 0, 0, 1, 0, true, "12345678", 8), DDPS_LLP_HOLD);
	cr_expect_eq(ddps_rdmap_stats(s.r).stalls, 1);
	post_rdmap_recv(&s, 5, 0, 4);
	cr_expect_eq(s.ready, 1);
	cr_expect_eq(feed_untagged(&s, 8, 0, 0, 1, 0, true, "12345678", 8), 0);
	cr_assert_eq(s.nrq, 1);
	cr_expect_arr_eq(s.rq[0].imm, "12345678", 8);
	cr_expect_eq(s.terms, 0);
}

Test(rdmap_exact, what_binds_nothing_is_refused)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_BIND };
	struct ddps_mr *mw;

	cr_assert_eq(ddps_stag_add_window(&s.pd, true, &mw), 0);
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), DDPS_E_INVAL, "no window");
	wr.stag = mw->stag;
	wr.bind = (struct ddps_bind){ .window = mw, .reserved = 1 };
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), DDPS_E_INVAL, "reserved");
	cr_expect_eq(mw->pending, 0);
	wr.bind.reserved = 0;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
}

/* What is not to change stays, whatever the request has in its place. */
Test(rdmap_exact, a_change_of_memory_leaves_the_rights)
{
	struct ddps_mr_change to = { .addr = s.mem + 64, .len = 32, .access = 0 };
	struct ddps_mr *mr = side_reg(&s, s.mem, 64, DDPS_REMOTE_READ);
	uint8_t *at;

	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_MEMORY, &to), 0);
	cr_expect_eq(ddps_stag_check(&s.pd, 1, mr->stag, (uintptr_t)s.mem + 64, 32,
				     DDPS_REMOTE_READ, &at),
		     DDPS_STAG_OK);
	cr_expect_eq(at, s.mem + 64);
}

/* Once it is over nothing is out, in either direction. */
Test(rdmap_exact, nothing_is_out_when_it_is_over)
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	cr_expect_gt(pull(&s, 1500, out), 0);
	cr_expect_eq(feed_rreq(&s, 1, 4, s.mr->stag, 0), 0);
	cr_expect_eq(ddps_rdmap_stats(s.r).reads_out, 1);
	cr_expect_eq(ddps_rdmap_stats(s.r).reads_in, 1);
	ddps_rdmap_flush(s.r);
	cr_expect_eq(ddps_rdmap_stats(s.r).reads_out, 0);
	cr_expect_eq(ddps_rdmap_stats(s.r).reads_in, 0);
}

/* A stream that is freed lets go of the windows that it would have bound. */
Test(rdmap_exact, a_window_is_not_held_by_what_is_gone)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_BIND, .flags = DDPS_WR_FENCE };
	uint8_t out[128];
	struct ddps_mr *mw;
	struct side t;

	side_init(&t, 8, 8, 4);
	side_start(&t, 4, 4);
	cr_assert_eq(ddps_stag_add_window(&t.pd, true, &mw), 0);
	wr.stag = mw->stag;
	wr.bind = (struct ddps_bind){ .window = mw };
	post_rdmap(&t, DDPS_OP_READ, 1, 0, 0, 4);
	cr_expect_gt(pull(&t, 1500, out), 0);
	cr_assert_eq(ddps_rdmap_post_send(t.r, &wr), 0);
	cr_assert_eq(ddps_rdmap_post_send(t.r, &wr), 0);
	cr_expect_eq(mw->pending, 2);
	ddps_rdmap_free(t.r);
	cr_expect_eq(mw->pending, 0);
	ddps_stag_table_free(t.table);
}
