/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream where its parts meet: messages in pieces with others between them, requests that end while
 * others go on, who is informed of it, and what stays as it was. */
#include "rdmap_fixture.h"
#include "unit/mem_fixture.h"
#include <sys/mman.h>
#include <unistd.h>

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

TestSuite(rdmap_edge, .init = setup, .fini = teardown);

static void pull_all_rdmap_edge(void)
{
	while (pull(&s, 1500, out))
		;
}

static int post_rdmap_edge_add(uint64_t id)
{
	struct ddps_send_wr wr = { .wr_id = id, .op = DDPS_OP_FETCH_ADD, .stag = 1, .to = 8 };

	return ddps_rdmap_post_send(s.r, &wr);
}

/* ---- how a stream begins ---- */

Test(rdmap_edge, the_codes_are_those_of_the_layer_below)
{
	for (int mpa = 0; mpa < 2; mpa++) {
		struct side t;

		side_init(&t, 1, 1, 1);
		cr_assert_eq(ddps_rdmap_start(t.r,
					      &(struct ddps_rdmap_start){ .llp_mpa_codes = mpa }),
			     0);
		cr_expect_lt(feed_hex(&t, "c1 40 00"), 0);
		cr_expect_eq(t.term.triple.layer, mpa ? 2 : 1);
		cr_expect_eq(t.term.triple.code, mpa ? 3 : 0);
		close_rdmap_side(&t);
	}
}

/* The slot beyond IRD is for the Read that is the RTR. */
Test(rdmap_edge, the_slot_of_the_rtr_is_not_for_an_atomic, .description = "7306-5.2.2-5")
{
	struct ddps_rdmap_start st = { .ord = 4,
				       .expect_rtr = DDPS_RTR_READ,
				       .provider_read_slot = true };
	static uint64_t cell;
	uint8_t body[DDPS_AREQ_LEN];
	struct side t;

	side_init(&t, 1, 1, 1);
	t.r->rfc7306 = true;
	cr_assert_eq(ddps_rdmap_start(t.r, &st), 0);
	ddps_areq_encode(
		&(struct ddps_areq){ .stag = side_reg(&t, &cell, 8, RIGHTS | DDPS_ZERO_BASED)->stag,
				     .data = 1 },
		body);
	cr_expect_lt(feed_untagged(&t, 0xA, 0, 1, 1, 0, true, body, sizeof body), 0);
	cr_expect_eq(t.term.triple.layer, 1);
	cr_expect_eq(t.term.triple.code, 2, "no buffer");
	close_rdmap_side(&t);
}

Test(rdmap_edge, with_a_shared_queue_it_is_made_or_not)
{
	struct ddps_srq srq = { 0 };
	struct ddps_rdmap_cfg cfg = { .pd = &s.pd,
				      .sq_depth = 1,
				      .max_sge = 1,
				      .srq = &srq,
				      .srq_share = 1,
				      .up = &side_up,
				      .user = &s };
	struct ddps_rdmap *r = NULL;
	long live;

	cr_assert_eq(ddps_srq_init(&srq, &s.pd, 4, 2), 0);
	live = mem_live();
	for (unsigned n = 1; n <= 3; n++) {
		mem_fail(n);
		cr_assert_eq(ddps_rdmap_new(&r, &cfg), n < 3 ? DDPS_E_NOMEM : 0, "allocation %u",
			     n);
		mem_fail(0);
		cr_expect_eq(s.pd.streams, n < 3 ? 1 : 2);
		cr_expect_eq(srq.users, n == 3);
		if (n == 3)
			ddps_rdmap_free(r);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
	}
	ddps_srq_fini(&srq);
}

/* A large IRD costs what is used of it. */
Test(rdmap_edge, a_queue_of_reads_grows_as_they_come)
{
	struct side t;

	side_init(&t, 1, 1, 1);
	side_start(&t, 1000, 0);
	for (uint32_t n = 1; n <= 100; n++) {
		cr_assert_eq(feed_rreq(&t, n, 1, t.mr->stag, 0), 0);
		cr_expect_leq(t.r->irrq.cap, 2 * n);
	}
	close_rdmap_side(&t);
}

/* ---- queues that grow when their beginning is elsewhere ---- */

Test(rdmap_edge, a_queue_of_reads_keeps_its_order_when_it_grows, .description = "5040-5.2.2-8")
{
	struct side t;
	uint32_t msn = 1, answered = 1;

	side_init(&t, 1, 1, 1);
	side_start(&t, 100, 0);
	for (unsigned round = 0; round < 12; round++) { /* two more, one less */
		for (unsigned i = 0; i < 2; i++, msn++)
			cr_assert_eq(feed_rreq(&t, msn, 1, t.mr->stag, msn), 0);
		cr_assert_eq(pull(&t, 128, out), 15);
		cr_expect_eq(out[14], t.mem[answered++]);
	}
	while (pull(&t, 128, out))
		cr_expect_eq(out[14], t.mem[answered++]);
	cr_expect_eq(answered, msn);
	close_rdmap_side(&t);
}

Test(rdmap_edge, receives_keep_their_order_when_their_queue_grows, .description = "5041-5.3-1")
{
	uint64_t posted = 0, taken = 0;
	struct side t;

	side_init(&t, 1, 40, 1);
	side_start(&t, 0, 0);
	for (unsigned round = 0; round < 39; round++) {
		for (unsigned i = 0; i < 2; i++, posted++)
			cr_assert_eq(post_rdmap_recv(&t, posted, posted, 1), 0);
		cr_assert_eq(feed_send(&t, (uint32_t)taken + 1, 0, true, "x"), 0);
		cr_expect_eq(t.rq[taken].wr_id, taken);
		taken++;
	}
	cr_assert_eq(post_rdmap_recv(&t, posted++, 0, 1), 0);
	cr_expect_eq(post_rdmap_recv(&t, posted, 0, 1), DDPS_E_LIMIT, "40 at once");
	for (; taken < posted; taken++) {
		cr_assert_eq(feed_send(&t, (uint32_t)taken + 1, 0, true, "x"), 0);
		cr_expect_eq(t.rq[taken].wr_id, taken);
	}
	close_rdmap_side(&t);
}

/* The message in progress is another one's. */
Test(rdmap_edge, the_send_queue_grows_under_a_read_response)
{
	struct side t;

	side_init(&t, 100, 1, 1);
	side_start(&t, 1, 1);
	cr_expect_eq(feed_rreq(&t, 1, 200, t.mr->stag, 1000), 0);
	cr_assert_eq(pull(&t, 114, out), 114);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(post_rdmap(&t, DDPS_OP_SEND, i, 0, i, 50), 0);
	cr_assert_eq(pull(&t, 114, out), 114);
	cr_expect_eq(out[1], 0x42);
	cr_expect_arr_eq(out + 14, t.mem + 1100, 100);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(pull(&t, 114, out), 68);
		cr_expect_arr_eq(out + 18, t.mem + i, 50);
	}
	close_rdmap_side(&t);
}

/* ---- messages in pieces ---- */

Test(rdmap_edge, an_atomic_response_in_pieces, .description = "7306-6.3-8")
{
	uint8_t body[DDPS_ARESP_LEN];
	struct ddps_areq q;

	cr_assert_eq(post_rdmap_edge_add(1), 0);
	cr_assert_gt(pull(&s, 1500, out), 0);
	ddps_areq_decode(&q, out + 18);
	ddps_aresp_encode(&(struct ddps_aresp){ q.id, 0x1122334455667788 }, body);
	cr_expect_eq(feed_untagged(&s, 0xB, 0, 3, 1, 0, false, body, 7), 0);
	cr_expect_eq(s.nsq, 0);
	cr_expect_eq(feed_untagged(&s, 0xB, 0, 3, 1, 7, true, body + 7, 5), 0);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_FETCH_ADD, DDPS_WC_SUCCESS);
	cr_expect_eq(s.sq[0].original, 0x1122334455667788);
}

Test(rdmap_edge, immediate_data_in_pieces, .description = "7306-6.3-3")
{
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_eq(feed_untagged(&s, 8, 0, 0, 1, 0, false, "abc", 3), 0);
	cr_expect_eq(feed_untagged(&s, 8, 0, 0, 1, 3, true, "defgh", 5), 0);
	cr_assert_eq(s.nrq, 1);
	cr_expect(s.rq[0].has_imm);
	cr_expect_arr_eq(s.rq[0].imm, "abcdefgh", 8);
}

/* The third is whole first, and waits for the second when the first has ended. */
Test(rdmap_edge, three_messages_end_in_the_order_of_their_beginnings, .description = "5041-5.4-2")
{
	uint8_t body[DDPS_RREQ_LEN];

	ddps_rreq_encode(&(struct ddps_rreq){ 1, 2, 4, s.mr->stag, 0 }, body);
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 2, 0, 100, 4), 0);
	pull_all_rdmap_edge();
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	cr_expect_eq(feed_untagged(&s, 1, 0, 1, 1, 0, false, body, 20), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, true, "wxyz"), 0);
	cr_expect_eq(feed_send(&s, 1, 3, true, "def"), 0);
	cr_expect_eq(s.nrq, 1);
	cr_expect_eq(s.nsq, 0, "the Read Request is not whole");
	cr_expect_eq(feed_untagged(&s, 1, 0, 1, 1, 20, true, body + 20, 8), 0);
	cr_expect_eq(s.nsq, 1);
	cr_expect_eq(s.r->irrq.count, 1);
}

/* ---- where segments end ---- */

/* What is behind the end of the memory is not looked at. */
Test(rdmap_edge, a_segment_is_read_to_its_end)
{
	static const char text[] = "abcdefg";
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(at != MAP_FAILED);
	cr_assert_eq(mprotect(at + page, page, PROT_NONE), 0);
	for (size_t n = 0; n < 8; n++) {
		uint8_t seg[64];
		size_t len = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, text + 7 - n);

		memcpy(at + page - len, seg, len);
		cr_expect_eq(ddps_rdmap_rx_segment(s.r, at + page - len, len), 0);
		cr_expect_arr_eq(s.mem, text + 7 - n, n);
	}
	munmap(at, 2 * page);
}

/* Neither more of it than has come, nor what comes behind it. */
Test(rdmap_edge, a_header_that_is_not_there_is_not_read)
{
	uint8_t seg[64];
	size_t len = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, "abcdefgh");

	for (size_t have = 1; have < 14; have++)
		cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, have, len), 0, "%zu octets", have);
	for (size_t whole = 1; whole < 14; whole++)
		cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, whole), 0, "%zu octets", whole);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 14, len), 14);
}

Test(rdmap_edge, a_header_that_is_none_replaces_the_one_before)
{
	uint8_t seg[64];
	size_t len = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, "abcdefgh");
	struct iovec iov;

	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 14);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 5, 5), 0);
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_rdmap_rx_direct_end(s.r), DDPS_E_INVAL);
}

/* The buffers are longer. */
Test(rdmap_edge, the_place_of_a_segment_ends_with_it)
{
	uint8_t seg[64];
	size_t len = make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "abcdefgh", 8);
	struct iovec iov[4];

	post_rdmap_recv(&s, 1, 0, 100);
	cr_assert_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 18);
	cr_assert_eq(ddps_rdmap_rx_direct_iov(s.r, 3, iov, 4), 1);
	cr_expect_eq(iov[0].iov_base, s.mem + 3);
	cr_expect_eq(iov[0].iov_len, 5);

	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 200, 100), 0);
	pull_all_rdmap_edge();
	len = make_tagged_rdmap(seg, 2, s.mr->stag, 200, false, "abcdefgh");
	cr_assert_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 14);
	cr_assert_eq(ddps_rdmap_rx_direct_iov(s.r, 3, iov, 4), 1);
	cr_expect_eq(iov[0].iov_base, s.mem + 203);
	cr_expect_eq(iov[0].iov_len, 5);
}

/* ---- faults, and what is reported of them ---- */

Test(rdmap_edge, a_wrong_opcode_is_reported, .description = "5040-7.2-2")
{
	cr_expect_lt(feed_untagged(&s, 0xC, 0, 0, 1, 0, true, "x", 1), 0);
	cr_expect_str_eq(s.term.text, "opcode 0xc in an untagged segment");
	teardown();
	setup();
	cr_expect_lt(feed_tagged(&s, 3, 1, 0, true, "x"), 0);
	cr_expect_str_eq(s.term.text, "opcode 0x3 in a tagged segment");
}

/* It has 16 bits. */
Test(rdmap_edge, the_length_of_a_segment_in_a_terminate, .description = "5040-4.8-9")
{
	static uint8_t seg[65536];

	make_tagged_rdmap(seg, 0, 0x01020304, 5, true, "");
	cr_expect_lt(feed_rdmap(&s, seg, 65535), 0);
	expect_term(&s, "11 00 c0 00 ffff c1 40 01020304 0000000000000005");
	teardown();
	setup();
	cr_expect_lt(feed_rdmap(&s, seg, 65536), 0);
	expect_term(&s, "11 00 40 00 0000 c1 40 01020304 0000000000000005");
}

Test(rdmap_edge, a_terminate_has_the_header_of_an_atomic, .description = "5040-4.8-12")
{
	static uint64_t cell;
	struct ddps_mr *mr = side_reg(&s, &cell, sizeof cell, RIGHTS | DDPS_ZERO_BASED);
	uint8_t body[DDPS_AREQ_LEN];

	ddps_areq_encode(&(struct ddps_areq){ .stag = mr->stag, .data = 1 }, body);
	cr_expect_eq(feed_untagged(&s, 0xA, 0x12345678, 1, 1, 0, true, body, sizeof body), 0);
	ddps_stag_remove(mr);
	expect_term(&s, "01 00 c0 00 0046 41 4a 12345678 00000001 00000001 00000000");
	cr_expect_eq(cell, 0);
}

/* A limit is reached where there is no buffer, not by whatever else is wrong. */
Test(rdmap_edge, only_a_missing_buffer_is_counted)
{
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_lt(feed_send(&s, 2, 0, true, "abc"), 0);
	cr_expect_eq(s.term.triple.code, 3, "MSN");
	cr_expect_eq(ddps_rdmap_stats(s.r).no_buffer, 0);
	teardown();
	setup();
	cr_expect_lt(feed_untagged(&s, 1, 0, 1, 2, 0, true, out, DDPS_RREQ_LEN), 0);
	cr_expect_eq(s.term.triple.code, 3);
	cr_expect_eq(ddps_rdmap_stats(s.r).ird_overrun, 0);
}

/* As when a segment comes whole. */
Test(rdmap_edge, the_llp_is_informed_of_a_fault_during_direct_placement)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 10, RIGHTS | DDPS_ZERO_BASED);
	uint8_t seg[64];
	size_t len = make_tagged_rdmap(seg, 0, mr->stag, 0, true, "abcdefgh");
	unsigned want = s.want;
	struct iovec iov;

	cr_assert_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 14);
	ddps_stag_remove(mr);
	cr_expect_lt(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), 0);
	cr_expect_eq(s.want, want + 1);
}

Test(rdmap_edge, a_fault_at_the_end_of_direct_placement, .description = "5040-5.3-16")
{
	uint8_t seg[64];
	size_t len = make_untagged_rdmap(seg, 4, s.mr->stag ^ 0x100, 0, 1, 0, true, "abc", 3);

	post_rdmap_recv(&s, 1, 0, 8);
	cr_assert_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 18);
	cr_expect_eq(ddps_rdmap_rx_direct_end(s.r), DDPS_E_ACCESS);
	cr_expect_eq(s.terms, 1);
}

/* ---- what is carried out here ---- */

/* The LLP may not be free to ask for long. */
Test(rdmap_edge, what_is_done_here_does_not_wait_for_the_llp)
{
	struct ddps_mr *mw, *mr = side_reg(&s, s.mem, 100, RIGHTS | DDPS_BIND);
	struct ddps_sge sge = { s.mem, 8, mr->stag };
	struct ddps_send_wr wr = { .op = DDPS_OP_BIND, .sge = &sge, .nsge = 1 };

	cr_assert_eq(ddps_stag_add_window(&s.pd, false, &mw), 0);
	wr.stag = mw->stag;
	wr.bind = (struct ddps_bind){ .window = mw, .access = DDPS_REMOTE_READ };
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	cr_expect(mw->valid);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 0, DDPS_OP_BIND, DDPS_WC_SUCCESS);

	wr = (struct ddps_send_wr){ .op = DDPS_OP_LOCAL_INV, .stag = mr->stag ^ 0x100 };
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	cr_expect_eq(s.terms, 1, "nor does its refusal");
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[1], 0, DDPS_OP_LOCAL_INV, DDPS_WC_LOCAL_ACCESS);
}

/* ---- requests that end while others go on ---- */

/* The Immediate Data behind a Write has no octets of its memory. */
Test(rdmap_edge, immediate_data_does_not_need_the_memory_of_its_write)
{
	static uint8_t mine[8];
	struct ddps_mr *mr = side_reg(&s, mine, sizeof mine, 0);
	struct ddps_sge sge = { mine, 8, mr->stag };
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE_IMM, .sge = &sge, .nsge = 1 };

	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	cr_expect_eq(pull(&s, 1500, out), 14 + 8);
	ddps_stag_remove(mr);
	cr_expect_eq(pull(&s, 1500, out), 18 + 8);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 0, DDPS_OP_WRITE_IMM, DDPS_WC_SUCCESS);
}

/* It was answered, but what was in front of it had not left. */
Test(rdmap_edge, a_flushed_atomic_brings_nothing)
{
	uint8_t body[DDPS_ARESP_LEN];
	struct ddps_areq q;

	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4), 0);
	cr_expect_eq(post_rdmap_edge_add(2), 0);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	ddps_areq_decode(&q, out + 18);
	ddps_aresp_encode(&(struct ddps_aresp){ q.id, UINT64_MAX }, body);
	cr_expect_eq(feed_untagged(&s, 0xB, 0, 3, 1, 0, true, body, sizeof body), 0);
	ddps_rdmap_flush(s.r);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[1], 2, DDPS_OP_FETCH_ADD, DDPS_WC_FLUSHED);
	cr_expect_eq(s.sq[1].original, 0);
}

/* Its completion posts another one. */
static void post_on_completion(void *user, bool recv, struct ddps_wc *wc)
{
	take_rdmap_complete(user, recv, wc);
	if (wc->wr_id == 1)
		cr_expect_eq(post_rdmap(user, DDPS_OP_SEND, 9, 0, 9, 1), 0);
}

/* It is in the place of the Read immediately, and yet is not sent before those in front of it. */
Test(rdmap_edge, the_place_of_a_read_that_never_left)
{
	struct ddps_rdmap_up up = side_up;

	up.complete = post_on_completion;
	s.r->up = &up;
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), 0);
	for (uint64_t i = 2; i < 9; i++)
		cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, i, 0, i, 1), 0);
	ddps_rdmap_peer_closed(s.r);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_READ, DDPS_WC_FLUSHED);
	for (unsigned i = 2; i < 10; i++) {
		cr_assert_eq(pull(&s, 1500, out), 19);
		cr_expect_eq(out[18], s.mem[i]);
		cr_assert_eq(s.nsq, i);
		expect_wc(s.sq[i - 1], i, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	}
	s.r->up = &side_up;
}

/* All of it has left but the Read that would confirm it. */
Test(rdmap_edge, a_close_before_the_confirming_read)
{
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), 0);
	cr_expect_eq(pull_only(&s, 1500, out), 14 + 4);
	ddps_rdmap_peer_closed(s.r);
	cr_expect_eq(pull_only(&s, 1500, out), 0);
	cr_expect_eq(s.nsq, 0, "the LLP has it");
	ddps_rdmap_tx_done(s.r, 1);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_WRITE, DDPS_WC_FLUSHED);
}

/* Whoever asked for no octets gets none, in as many segments as the peer likes. */
Test(rdmap_edge, the_response_to_a_confirming_read_in_pieces, .description = "5040-5.2.2-9")
{
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), 0);
	pull_all_rdmap_edge();
	cr_expect_eq(feed_rresp(&s, 0, 0, false, ""), 0);
	cr_expect_eq(s.nsq, 0);
	cr_expect_eq(feed_rresp(&s, 0, 0, true, ""), 0);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_WRITE, DDPS_WC_SUCCESS);
}

/* The Read has ended while its response waited for a Send. */
Test(rdmap_edge, a_read_response_that_waited_finds_nobody)
{
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 7, 0, 100, 4), 0);
	pull_all_rdmap_edge();
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, true, "wxyz"), 0);
	ddps_rdmap_peer_closed(s.r);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 7, DDPS_OP_READ, DDPS_WC_FLUSHED);
	cr_expect_eq(feed_send(&s, 1, 3, true, "def"), 0);
	cr_expect_eq(s.nsq, 1);
	cr_expect_eq(s.nrq, 1);
	cr_expect_eq(s.r->reads_out, 0);
	cr_expect_eq(s.terms, 0);
}

/* An RTR that goes out behind the peer's close is not answered, and holds back nothing. */
Test(rdmap_edge, a_fence_behind_a_late_rtr, .description = "5040-5.5-13")
{
	struct ddps_rdmap_start st = { .ord = 1, .send_rtr = DDPS_RTR_READ };
	struct side t;

	side_init(&t, 4, 4, 1);
	cr_assert_eq(ddps_rdmap_start(t.r, &st), 0);
	ddps_rdmap_peer_closed(t.r);
	cr_expect_eq(post_rdmap(&t, DDPS_OP_SEND, 1, DDPS_WR_FENCE, 0, 4), 0);
	cr_expect_eq(pull(&t, 1500, out), 46);
	cr_expect_eq(t.r->reads_out, 0);
	cr_expect_eq(pull(&t, 1500, out), 18 + 4);
	cr_assert_eq(t.nsq, 1);
	expect_wc(t.sq[0], 1, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	close_rdmap_side(&t);
}

/* ---- who is asked to ask ---- */

/* Whoever has asked, and was given something, asks for the rest by himself. */
Test(rdmap_edge, whoever_has_asked_is_not_told)
{
	unsigned want;

	cr_expect_eq(feed_rreq(&s, 1, 4, s.mr->stag, 0), 0);
	cr_expect_eq(feed_rreq(&s, 2, 4, s.mr->stag, 0), 0);
	cr_expect_gt(pull(&s, 1500, out), 0);
	want = s.want;
	cr_expect_eq(feed_write(&s, s.mr->stag, 0, true, "x"), 0);
	cr_expect_eq(s.want, want);
}

/* A response in place lets the next Read go. */
Test(rdmap_edge, the_llp_is_informed_at_the_end_of_direct_placement, .description = "5040-6.1-7")
{
	uint8_t seg[64];
	size_t len = make_tagged_rdmap(seg, 2, s.mr->stag, 100, true, "abcd");
	unsigned want;

	for (uint64_t i = 0; i < 5; i++)
		cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, i, 0, 100, 4), 0);
	pull_all_rdmap_edge();
	want = s.want;
	cr_assert_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 14);
	cr_expect_eq(s.want, want);
	cr_expect_eq(ddps_rdmap_rx_direct_end(s.r), 0);
	cr_expect_eq(s.want, want + 1);
	cr_expect_eq(pull(&s, 1500, out), 46);
}

static void pull_on_completion(void *user, bool recv, struct ddps_wc *wc)
{
	take_rdmap_complete(user, recv, wc);
	pull_only(user, 1500, out);
}

Test(rdmap_edge, whoever_asks_when_a_read_completes_is_not_told)
{
	struct ddps_rdmap_up up = side_up;
	unsigned want;

	up.complete = pull_on_completion;
	s.r->up = &up;
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4), 0);
	pull_all_rdmap_edge();
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 2, DDPS_WR_FENCE, 0, 4), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 3, 0, 0, 4), 0);
	want = s.want;
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(s.nsq, 1);
	cr_expect_eq(s.r->tx_pulled, 2);
	cr_expect_eq(s.want, want);
	s.r->up = &side_up;
}

/* A hint for the LLP, which need not ask once more. */
Test(rdmap_edge, the_last_segment_is_known)
{
	struct ddps_seg seg;

	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 200), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 2, 0, 0, 4), 0);
	for (unsigned i = 1; i <= 3; i++) {
		cr_assert_eq(ddps_rdmap_tx_next(s.r, &seg, 128), 1);
		cr_expect_eq(seg.final, i == 3, "segment %u", i);
	}
	cr_expect_eq(feed_rreq(&s, 1, 200, s.mr->stag, 0), 0);
	for (unsigned i = 1; i <= 2; i++) {
		cr_assert_eq(ddps_rdmap_tx_next(s.r, &seg, 128), 1);
		cr_expect_eq(seg.final, i == 2, "segment %u", i);
	}
	ddps_rdmap_tx_done(s.r, 5);
}
