/* SPDX-License-Identifier: BSD-2-Clause */
/* What seldom happens on a stream: messages in unusual orders, answers to other questions, and
 * Terminates that name each kind of request. */
#include "ddp/ddp_seg.h"
#include "rdmap_fixture.h"

static struct side s;
static uint8_t out[1600];

static void setup(void)
{
	open_rdmap_side(&s);
	s.r->rfc7306 = true;
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

static void reopen_rare_side(void)
{
	teardown();
	setup();
}

TestSuite(rdmap_rare, .init = setup, .fini = teardown);

static void pull_all_rdmap_rare(void)
{
	while (pull(&s, 1500, out))
		;
}

static int post_rdmap_rare_add(uint64_t id, uint32_t sink)
{
	struct ddps_sge sge = get_rdmap_piece(&s, 8, sink);
	struct ddps_send_wr wr = { .wr_id = id,
				   .op = DDPS_OP_FETCH_ADD,
				   .sge = &sge,
				   .nsge = !!sink,
				   .stag = 1,
				   .to = 8 };

	return ddps_rdmap_post_send(s.r, &wr);
}

static int feed_rdmap_rare_aresp(uint32_t msn, uint32_t id)
{
	uint8_t body[DDPS_ARESP_LEN];

	ddps_aresp_encode(&(struct ddps_aresp){ id, UINT64_MAX }, body);
	return feed_untagged(&s, 0xB, 0, 3, msn, 0, true, body, sizeof body);
}

/* ---- answers to other questions ---- */

/* It would be written over the source, and beyond its end. */
Test(rdmap_rare, an_atomic_response_does_not_answer_a_confirming_read,
     .description = "7306-5.2.2-8")
{
	uint8_t before[sizeof s.mem];

	memcpy(before, s.mem, sizeof before);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, sizeof s.mem - 1, 1), 0);
	pull_all_rdmap_rare();
	cr_expect_eq(s.r->reads_out, 1);
	cr_expect_lt(feed_rdmap_rare_aresp(1, 0), 0);
	cr_expect_eq(s.terms, 1);
	cr_expect_eq(s.term.triple.layer, 1, "no buffer for it");
	cr_expect_eq(s.term.triple.code, 2);
	cr_expect_arr_eq(s.mem, before, sizeof before);
	expect_wc(s.sq[0], 1, DDPS_OP_WRITE, DDPS_WC_FLUSHED);
}

Test(rdmap_rare, a_read_response_does_not_answer_an_atomic, .description = "5040-5.2.2-9")
{
	cr_expect_eq(post_rdmap_rare_add(1, 8), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 4), 0);
	pull_all_rdmap_rare();
	cr_expect_lt(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(s.term.triple.layer, 0);
	cr_expect_eq(s.term.triple.code, 6);
	expect_wc(s.sq[0], 1, DDPS_OP_FETCH_ADD, DDPS_WC_FLUSHED);
}

Test(rdmap_rare, the_sink_of_an_atomic_has_8_octets)
{
	cr_expect_eq(post_rdmap_rare_add(1, 7), DDPS_E_INVAL);
	cr_expect_eq(post_rdmap_rare_add(1, 9), DDPS_E_INVAL);
	cr_expect_eq(post_rdmap_rare_add(1, 8), 0);
	cr_expect_eq(post_rdmap_rare_add(1, 0), 0, "or there is none");
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 7), 0);
	cr_expect_eq(post_rdmap(&s, (enum ddps_op)999, 1, 0, 0, 7), DDPS_E_INVAL);
}

/* In two segments, then with one octet too many that is not even the last. */
Test(rdmap_rare, an_atomic_request_in_pieces, .description = "7306-6.3-8")
{
	uint64_t cell[2] = { 5, 0 };
	struct ddps_mr *mr = side_reg(&s, cell, sizeof cell, RIGHTS | DDPS_ZERO_BASED);
	struct ddps_areq q = { .stag = mr->stag, .to = 0, .data = 1 };
	uint8_t body[DDPS_AREQ_LEN + 1] = { 0 };

	ddps_areq_encode(&q, body);
	cr_expect_eq(feed_untagged(&s, 0xA, 0, 1, 1, 0, false, body, 20), 0);
	cr_expect_eq(feed_untagged(&s, 0xA, 0, 1, 1, 20, true, body + 20, DDPS_AREQ_LEN - 20), 0);
	pull_all_rdmap_rare();
	cr_expect_eq(cell[0], 6);
	cr_expect_lt(feed_untagged(&s, 0xA, 0, 1, 2, 0, false, body, sizeof body), 0);
	cr_expect(strstr(s.term.text, "53 octets or more"), "%s", s.term.text);
	pull_all_rdmap_rare();
	cr_expect_eq(cell[0], 6);
}

Test(rdmap_rare, immediate_data_out_of_turn)
{
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_lt(feed_untagged(&s, 8, 0, 0, 2, 0, true, "abcdefgh", 8), 0);
	cr_expect_eq(s.term.triple.layer, 1);
	cr_expect_eq(s.term.triple.code, 3);
}

/* ---- messages that end out of order ---- */

/* It waited for the Send before it, and is refused when that has come. */
Test(rdmap_rare, a_request_that_waited_is_refused_in_its_turn, .description = "5041-5.4-2")
{
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	cr_expect_eq(feed_rreq(&s, 1, 4, s.mr->stag ^ 0x100, 0), 0);
	cr_expect_eq(s.terms, 0);
	cr_expect_lt(feed_send(&s, 1, 3, true, "def"), 0);
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_SUCCESS);
	cr_expect_eq(s.terms, 1);
	cr_expect_eq(s.term.triple.layer, 0);
	cr_expect_eq(s.term.triple.code, 0, "STag");
}

/* The request that it answers has ended while it waited for a Send. */
Test(rdmap_rare, a_response_that_waited_finds_nobody)
{
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_eq(post_rdmap_rare_add(7, 8), 0);
	pull_all_rdmap_rare();
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	cr_expect_eq(feed_rdmap_rare_aresp(1, 0), 0);
	ddps_rdmap_peer_closed(s.r);
	expect_wc(s.sq[0], 7, DDPS_OP_FETCH_ADD, DDPS_WC_FLUSHED);
	cr_expect_eq(feed_send(&s, 1, 3, true, "def"), 0);
	cr_expect_eq(s.nsq, 1);
	cr_expect_eq(s.nrq, 1);
	cr_expect_eq(s.terms, 0);
}

/* ---- direct placement ---- */

Test(rdmap_rare, nothing_is_placed_behind_the_end_of_a_segment)
{
	uint8_t seg[64];
	struct iovec iov;
	size_t n = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, "abcd");

	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), DDPS_E_INVAL, "no segment yet");
	cr_expect_eq(ddps_rdmap_rx_direct_end(s.r), DDPS_E_INVAL);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 14, n), 14);
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 4, &iov, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 1, &iov, 1), 1);
	cr_expect_eq(iov.iov_base, s.mem + 1);
	cr_expect_eq(iov.iov_len, 3);
	cr_expect_eq(ddps_rdmap_rx_direct_end(s.r), 0);
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), DDPS_E_INVAL);
}

Test(rdmap_rare, pieces_of_what_is_longer_than_the_memory)
{
	struct ddps_sge sge = { s.mem, 8, 0 };
	struct iovec iov[2];

	cr_expect_eq(ddps_sge_iov(&sge, 1, 6, 4, iov, 2), 1);
	cr_expect_eq(iov[0].iov_base, s.mem + 6);
	cr_expect_eq(iov[0].iov_len, 2, "as much as there is");
	cr_expect_eq(ddps_sge_iov(&sge, 1, 8, 1, iov, 2), 0);
	cr_expect_eq(ddps_sge_iov(&sge, 1, 0, 4, iov, 0), 0);
	cr_expect_eq(ddps_sge_iov(&sge, 0, 0, 4, iov, 2), 0, "no piece");
}

/* Only the pieces of a receive that a segment touches have to be there. */
Test(rdmap_rare, a_piece_behind_the_segment_may_be_gone)
{
	static uint8_t more[8];
	struct ddps_mr *mr = side_reg(&s, more, sizeof more, DDPS_LOCAL_WRITE);
	struct ddps_sge sge[] = { get_rdmap_piece(&s, 0, 4), { more, 8, mr->stag } };

	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, sge, 2), 0);
	cr_expect_eq(ddps_stag_revoke(&s.pd, (uintptr_t)&s, mr->stag), DDPS_STAG_OK);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abcd"), 0);
	cr_expect_arr_eq(s.mem, "abcd", 4);
	cr_expect_lt(feed_send(&s, 1, 4, true, "e"), 0);
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_LOCAL_ACCESS);
}

/* ---- local requests ---- */

static int invalidate_rdmap_rare(unsigned flags, uint32_t stag)
{
	return ddps_rdmap_post_send(s.r, &(struct ddps_send_wr){ .op = DDPS_OP_LOCAL_INV,
								 .flags = flags,
								 .stag = stag });
}

/* All in front of it has left, but the Read is not answered. */
Test(rdmap_rare, a_fence_holds_back_what_is_done_here)
{
	struct ddps_mr *a = side_reg(&s, s.mem, 8, RIGHTS), *b = side_reg(&s, s.mem, 8, RIGHTS);

	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), 0);
	pull_all_rdmap_rare();
	cr_expect_eq(invalidate_rdmap_rare(0, a->stag), 0);
	cr_expect_not(a->valid, "no fence");
	cr_expect_eq(invalidate_rdmap_rare(DDPS_WR_FENCE, b->stag), 0);
	cr_expect(b->valid);
	pull_all_rdmap_rare();
	cr_expect(b->valid);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	pull_all_rdmap_rare();
	cr_expect_not(b->valid);
	cr_expect_eq(s.nsq, 3);
	a = side_reg(&s, s.mem, 8, RIGHTS);
	cr_expect_eq(invalidate_rdmap_rare(DDPS_WR_FENCE, a->stag), 0);
	cr_expect_not(a->valid, "nothing to wait for");
}

Test(rdmap_rare, what_is_done_here_waits_for_the_start)
{
	struct side t;
	uint8_t seg[64];

	side_init(&t, 4, 4, 1);
	cr_expect_eq(ddps_rdmap_post_send(t.r, &(struct ddps_send_wr){ .op = DDPS_OP_LOCAL_INV,
								       .stag = t.mr->stag }),
		     0);
	cr_expect(t.mr->valid);
	cr_expect_not(ddps_rdmap_tx_ready(t.r));
	cr_expect_eq(pull(&t, 128, seg), 0);
	side_start(&t, 1, 1);
	cr_expect_eq(pull(&t, 128, seg), 0);
	cr_expect_not(t.mr->valid);
	cr_expect_eq(t.nsq, 1);
	close_rdmap_side(&t);
}

/* What is refused here ends the session, wherever it stood in the queue. */
Test(rdmap_rare, what_is_refused_here_behind_other_work)
{
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4), 0);
	cr_expect_eq(invalidate_rdmap_rare(0, s.mr->stag ^ 1), 0);
	cr_expect_eq(s.terms, 0);
	pull_all_rdmap_rare();
	cr_expect_eq(s.terms, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	expect_wc(s.sq[1], 0, DDPS_OP_LOCAL_INV, DDPS_WC_LOCAL_ACCESS);
}

/* ---- by the rules of verbs, a wrong key is reported when its turn comes ---- */

Test(rdmap_rare, memory_that_was_not_ones_own_when_posted)
{
	static uint8_t mine[8];
	struct ddps_mr *mr = side_reg(&s, mine, sizeof mine, DDPS_REMOTE_READ);
	struct ddps_mr_change to = { .access = DDPS_LOCAL_WRITE };
	struct ddps_send_wr wr = { .op = DDPS_OP_READ, .nsge = 1, .stag = 1 };

	wr.sge = &(struct ddps_sge){ mine, 8, mr->stag };
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), DDPS_E_ACCESS);
	s.pd.verbs_rules = true;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	pull_all_rdmap_rare();
	cr_expect_eq(s.terms, 1);
	cr_expect(strstr(s.term.text, "when posted"), "%s", s.term.text);
	cr_expect_eq(s.sq[0].status, DDPS_WC_LOCAL_ACCESS);
}

/* ---- the peer closes its half ---- */

/* The Read that would confirm a Write half of which is out is not sent any more; nor is one that is
 * already answered touched. */
Test(rdmap_rare, a_confirmed_write_that_the_close_cuts_short)
{
	unsigned writes = 0, reads = 0;

	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), 0);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 2, 0, 0, 4), 0);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 3, 0, 0, 4), 0);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 4, DDPS_WR_PLACED, 0, 400), 0);
	cr_expect_gt(pull_only(&s, 128, out), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	ddps_rdmap_peer_closed(s.r);
	cr_expect_eq(s.nsq, 1);
	for (size_t n; (n = pull_only(&s, 128, out));) {
		writes += out[1] == 0x40;
		reads += out[1] == 0x41;
	}
	cr_expect_eq(writes, 3);
	cr_expect_eq(reads, 0);
	ddps_rdmap_tx_done(s.r, 10);
	cr_assert_eq(s.nsq, 4);
	expect_wc(s.sq[1], 2, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	expect_wc(s.sq[2], 3, DDPS_OP_READ, DDPS_WC_FLUSHED);
	expect_wc(s.sq[3], 4, DDPS_OP_WRITE, DDPS_WC_FLUSHED);
}

/* All of it is done, but the LLP has what is in front of it. */
static void answered_behind_a_send(enum ddps_op op, unsigned flags)
{
	reopen_rare_side();
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4), 0);
	cr_expect_eq(post_rdmap(&s, op, 2, flags, 0, 4), 0);
	while (pull_only(&s, 1500, out))
		;
	cr_expect_eq(feed_rresp(&s, op == DDPS_OP_READ ? s.mr->stag : 0, 0, true,
				op == DDPS_OP_READ ? "abcd" : ""),
		     0);
	cr_expect_eq(s.nsq, 0);
}

/* What was answered has succeeded, whatever the peer does then. */
Test(rdmap_rare, what_was_answered_is_not_undone)
{
	static const char *const terminate[] = {
		TERM_HDR "20 02 00 00",
		TERM_HDR "11 01 c0 00 0016 c1 40 1a2b3c01 0000000000010000",
	};

	answered_behind_a_send(DDPS_OP_READ, 0);
	ddps_rdmap_peer_closed(s.r);
	ddps_rdmap_tx_done(s.r, 10);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[1], 2, DDPS_OP_READ, DDPS_WC_SUCCESS);
	for (size_t i = 0; i < 2; i++) {
		answered_behind_a_send(DDPS_OP_WRITE, DDPS_WR_PLACED);
		cr_expect_eq(feed_hex(&s, terminate[i]), DDPS_E_TERMINATED);
		ddps_rdmap_tx_done(s.r, 10);
		cr_assert_eq(s.nsq, 2);
		cr_expect_neq(s.sq[1].status, DDPS_WC_REMOTE, "terminate %zu", i);
	}
}

/* Nothing of it has left: the Terminate is about something else. */
Test(rdmap_rare, what_has_not_left_is_not_blamed)
{
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), 0);
	cr_expect_eq(feed_hex(&s, TERM_HDR "20 02 00 00"), DDPS_E_TERMINATED);
	expect_wc(s.sq[0], 1, DDPS_OP_WRITE, DDPS_WC_FLUSHED);
}

/* A fence is passed before the Read that confirms what it stands in front of. */
Test(rdmap_rare, a_fence_on_a_confirmed_write)
{
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), 0);
	pull_all_rdmap_rare();
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 2, DDPS_WR_PLACED | DDPS_WR_FENCE, 0, 4), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 3, 0, 0, 4), 0);
	cr_expect_eq(pull(&s, 1500, out), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(pull(&s, 1500, out), 14 + 4);
	cr_expect_eq(pull(&s, 1500, out), 46);
	cr_expect_eq(pull(&s, 1500, out), 46);
	cr_expect_eq(s.r->reads_out, 2);
}

/* ---- Terminates that name requests ---- */

static void check_rdmap_rare_with(enum ddps_op op, unsigned flags, const char *terminate,
				  bool blamed)
{
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 8);
	struct ddps_send_wr wr = { .wr_id = 5,
				   .op = op,
				   .flags = flags,
				   .sge = &sge,
				   .nsge = op == DDPS_OP_IMM || op == DDPS_OP_SEND_IMM ? 0 : 1,
				   .stag = 0x11223344,
				   .to = 0x100 };
	char text[300];

	s.r->send_imm = true;
	cr_assert_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	while (pull_only(&s, 1500, out))
		;
	snprintf(text, sizeof text, TERM_HDR "%s", terminate);
	cr_expect_eq(feed_hex(&s, text), DDPS_E_TERMINATED);
	ddps_rdmap_tx_done(s.r, 10);
	cr_assert_eq(s.nsq, 1);
	cr_expect_eq(s.sq[0].status, blamed ? DDPS_WC_REMOTE : DDPS_WC_FLUSHED, "%s", terminate);
	reopen_rare_side();
}

#define WRITE_AT(stag, to) "11 01 c0 00 0016 c1 40 " stag " " to
#define SEND_IS(msn)	   "12 05 c0 00 0016 41 48 00000000 00000000 " msn " 00000000"
#define READ_IS(src, to, sink)                                                                     \
	"10 00 07 00 0000 41 41 00000000 00000001 00000004 00000000 00000000 " sink                \
	" 00000008 " src " " to

Test(rdmap_rare, terminates_name_writes, .description = "5040-4.8-13")
{
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED,
			      WRITE_AT("11223344", "0000000000000100"), true);
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED,
			      WRITE_AT("11223344", "0000000000000107"), true);
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED,
			      WRITE_AT("11223344", "0000000000000108"), false);
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED,
			      WRITE_AT("11223344", "00000000000000ff"), false);
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED,
			      WRITE_AT("11223345", "0000000000000100"), false);
	/* without the segment's length */
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED,
			      "11 01 40 00 0000 c1 40 11223344 0000000000000100", true);
	check_rdmap_rare_with(DDPS_OP_READ, 0, WRITE_AT("11223344", "0000000000000100"), false);
}

Test(rdmap_rare, terminates_name_immediate_data)
{
	check_rdmap_rare_with(DDPS_OP_IMM, 0, SEND_IS("00000001"), true);
	check_rdmap_rare_with(DDPS_OP_IMM, 0, SEND_IS("00000002"), false);
	check_rdmap_rare_with(DDPS_OP_SEND_IMM, 0, SEND_IS("00000002"), true);
	check_rdmap_rare_with(DDPS_OP_WRITE_IMM, 0, SEND_IS("00000001"), true);
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED, SEND_IS("00000000"), false);
}

/* soft-iWARP has the Read Request for a name. */
Test(rdmap_rare, terminates_name_reads_by_their_header)
{
	check_rdmap_rare_with(DDPS_OP_READ, 0,
			      READ_IS("11223345", "0000000000000100", "0000000000000000"), false);
	check_rdmap_rare_with(DDPS_OP_READ, 0,
			      READ_IS("11223344", "0000000000000101", "0000000000000000"), false);
	check_rdmap_rare_with(DDPS_OP_READ, 0,
			      READ_IS("11223344", "0000000000000100", "0000000000000001"), false);
	check_rdmap_rare_with(DDPS_OP_READ, 0,
			      READ_IS("11223344", "0000000000000100", "0000000000000000"), true);
	check_rdmap_rare_with(DDPS_OP_FETCH_ADD, 0,
			      READ_IS("11223344", "0000000000000100", "0000000000000000"), false);
	check_rdmap_rare_with(DDPS_OP_READ, 0,
			      "10 00 03 00 0000 41 41 00000000 00000001 00000001 00000000", false);
	check_rdmap_rare_with(DDPS_OP_READ, 0,
			      "12 02 c0 00 002e 41 41 00000000 00000002 00000001 00000000", false);
}

/* It names none, or has a header that nobody can read. */
Test(rdmap_rare, terminates_that_name_nothing)
{
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED, "20 02 00 00", true);
	check_rdmap_rare_with(DDPS_OP_WRITE, 0, "20 02 00 00", false);
	check_rdmap_rare_with(DDPS_OP_READ, 0, "20 02 00 00", false);
	/* of another version of DDP: the rest is where it was */
	check_rdmap_rare_with(DDPS_OP_WRITE, DDPS_WR_PLACED,
			      "11 05 c0 00 0016 c2 40 11223344 0000000000000100", true);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 2, DDPS_WR_PLACED, 0, 4), 0);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	cr_expect_eq(feed_hex(&s, TERM_HDR "20 02 00 00"), DDPS_E_TERMINATED);
	ddps_rdmap_tx_done(s.r, 10);
	cr_assert_eq(s.nsq, 2);
	cr_expect_eq(s.sq[0].status, DDPS_WC_REMOTE);
	cr_expect_eq(s.sq[1].status, DDPS_WC_FLUSHED, "it had not left");
}

/* Both things that are odd about it are reported. */
Test(rdmap_rare, a_terminate_that_is_cut_and_swapped)
{
	cr_expect_lt(feed_hex(&s, "41 47 00000000 00000002 00000002 00000000 "
				  "11 00 03 00 0001 c1 40 00000001 0000000000000000"),
		     0);
	cr_expect(s.term.swapped);
	cr_expect(strstr(s.term.text, "bit-swapped, not one segment"), "%s", s.term.text);
}

/* ---- RTR ---- */

#define RTR_READ(msn)                                                                              \
	"41 41 00000000 00000001 0000000" msn " 00000000 00000000 0000000000000000 "               \
	"00000000 00000000 0000000000000000"

/* The provider's slot is for one, and there is none if the session has slots of its own. */
Test(rdmap_rare, the_slot_of_the_rtr_is_one)
{
	struct ddps_rdmap_start st = { .ord = 4,
				       .expect_rtr = DDPS_RTR_READ,
				       .provider_read_slot = true,
				       .llp_mpa_codes = true };
	struct side t;

	side_init(&t, 4, 4, 1);
	cr_assert_eq(ddps_rdmap_start(t.r, &st), 0);
	cr_expect_eq(feed_hex(&t, RTR_READ("1")), 0);
	cr_expect_lt(feed_hex(&t, RTR_READ("2")), 0);
	cr_expect_eq(t.term.triple.code, 2, "no buffer");
	close_rdmap_side(&t);
	st.ird = 1;
	side_init(&t, 4, 4, 1);
	cr_assert_eq(ddps_rdmap_start(t.r, &st), 0);
	cr_expect_not(t.r->irrq.rtr_slot);
	cr_expect_eq(feed_hex(&t, RTR_READ("1")), 0);
	cr_expect_lt(feed_hex(&t, RTR_READ("2")), 0);
	close_rdmap_side(&t);
}

/* A Read Request that is cut short is none, whatever was expected. */
Test(rdmap_rare, an_rtr_read_that_is_cut_short)
{
	struct ddps_rdmap_start st = { .ird = 1,
				       .ord = 4,
				       .expect_rtr = DDPS_RTR_READ,
				       .rtr_strict = true,
				       .llp_mpa_codes = true };
	struct side t;

	side_init(&t, 4, 4, 1);
	cr_assert_eq(ddps_rdmap_start(t.r, &st), 0);
	cr_expect_eq(feed_hex(&t, "41 41 00000000 00000001 00000001 00000000 00000000"),
		     DDPS_E_RTR);
	cr_expect_eq(t.rtr, 0);
	close_rdmap_side(&t);
}

/* ---- the rest ---- */

Test(rdmap_rare, what_waits_for_a_receive_was_heard)
{
	cr_expect_not(ddps_rdmap_heard(s.r));
	s.r->no_recv = DDPS_NO_RECV_STALL;
	cr_expect_eq(feed_send(&s, 1, 0, true, "abc"), DDPS_LLP_HOLD);
	cr_expect(ddps_rdmap_heard(s.r));
}

Test(rdmap_rare, one_nudge_is_enough)
{
	ddps_rdmap_nudge(s.r);
	ddps_rdmap_nudge(s.r);
	cr_expect_eq(s.want, 1);
	expect_pull(&s, "c1 40 00000000 0000000000000000");
	cr_expect_eq(pull(&s, 1500, out), 0);
}
