/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue: what is refused, what goes out, what completes when. */
#include "rdmap_fixture.h"

static struct side s;

static void setup(void)
{
	open_rdmap_side(&s);
	memcpy(s.mem, "ABCDEFGH", 8);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_send, .init = setup, .fini = teardown);

/* ---- octets ---- */

Test(rdmap_send, the_dumps_of_every_message,
     .description = "5040-4.1-3 5040-4.1-4 5040-4.1-5 5040-4.1-6 5040-4.1-7 5040-4.1-11 "
		    "5040-4.2-1 5040-5.1-1 5040-5.1-2 5040-5.2.1-1 5040-5.2.1-2 5040-5.2.1-7 "
		    "5040-5.2.1-8 5040-5.3-1 5040-5.3-2 5040-5.3-10 5040-5.3-12 5040-5.3-14 "
		    "5040-5.3-15 5041-4.3-10 5041-4.3-11 5040-3.1-2")
{
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 8);
	struct ddps_send_wr w = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, 0, 0, 8), 0);
	expect_pull(&s, "c1 40 1a2b3c01 0000000000010000 41424344 45464748");
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	expect_pull(&s, "41 43 00000000 00000000 00000001 00000000 41424344 45464748");
	w.flags = DDPS_WR_INVALIDATE;
	w.stag = 0xa501;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	expect_pull(&s, "41 44 0000a501 00000000 00000002 00000000 41424344 45464748");
	w.flags = DDPS_WR_SOLICITED;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	expect_pull(&s, "41 45 00000000 00000000 00000003 00000000 41424344 45464748");
	w.flags = DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE;
	w.stag = 0x1a2b3c01;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	expect_pull(&s, "41 46 1a2b3c01 00000000 00000004 00000000 41424344 45464748");
	w = (struct ddps_send_wr){ .op = DDPS_OP_SEND };
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	expect_pull(&s, "41 43 00000000 00000000 00000005 00000000");
	w.op = DDPS_OP_WRITE;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	expect_pull(&s, "c1 40 00000000 0000000000000000");
	cr_expect_eq(s.nsq, 7);
}

Test(rdmap_send, read_request_dump, .description = "5040-4.4-1 5040-4.4-4 5040-4.4-5")
{
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 0x1000);
	struct ddps_send_wr w = {
		.op = DDPS_OP_READ, .sge = &sge, .nsge = 1, .stag = 0x1a2b3c01, .to = 0x10000
	};
	char want[256];

	s.mr->base = 0x7f0000001000;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	snprintf(want, sizeof want,
		 "41 41 00000000 00000001 00000001 00000000 %08x 00007f0000001000 00001000 "
		 "1a2b3c01 0000000000010000",
		 s.mr->stag);
	expect_pull(&s, want);
	w = (struct ddps_send_wr){ .op = DDPS_OP_READ, .stag = 7, .to = 9 };
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	expect_pull(&s, "41 41 00000000 00000001 00000002 00000000 00000000 0000000000000000 "
			"00000000 00000007 0000000000000009");
}

Test(rdmap_send, msn_wraps_through_zero, .description = "5041-4.3-12")
{
	s.r->tx_msn[DDPS_QN_SEND] = UINT32_MAX;
	s.r->tx_msn[DDPS_QN_READ] = UINT32_MAX;
	for (int i = 0; i < 2; i++)
		cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 0), 0);
	expect_pull(&s, "41 43 00000000 00000000 ffffffff 00000000");
	expect_pull(&s, "41 43 00000000 00000000 00000000 00000000");
	for (int i = 0; i < 2; i++) {
		uint8_t out[128];

		cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 0), 0);
		cr_expect_eq(pull(&s, 128, out), 46);
		cr_expect_arr_eq(out + 10, i ? "\0\0\0\0" : "\xff\xff\xff\xff", 4);
	}
}

/* ---- what is refused ---- */

Test(rdmap_send, pieces_at_the_limit)
{
	struct ddps_sge sge[5];
	struct ddps_send_wr w = { .op = DDPS_OP_SEND, .sge = sge };

	for (int i = 0; i < 5; i++)
		sge[i] = get_rdmap_piece(&s, (size_t)i, 1);
	for (w.nsge = 3; w.nsge <= 5; w.nsge++)
		cr_expect_eq(ddps_rdmap_post_send(s.r, &w), w.nsge > 4 ? DDPS_E_INVAL : 0);
	w.op = DDPS_OP_READ;
	for (w.nsge = 0; w.nsge <= 2; w.nsge++)
		cr_expect_eq(ddps_rdmap_post_send(s.r, &w), w.nsge > 1 ? DDPS_E_INVAL : 0);
	for (uint32_t n = 3; n <= 5; n++)
		cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, sge, n), n > 4 ? DDPS_E_INVAL : 0);
	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, NULL, 1), DDPS_E_INVAL);
	w = (struct ddps_send_wr){ .op = DDPS_OP_SEND, .nsge = 1 };
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), DDPS_E_INVAL);
}

Test(rdmap_send, unknown_ops_and_flags)
{
	cr_expect_eq(post_rdmap(&s, DDPS_OP_RECV, 1, 0, 0, 1), DDPS_E_INVAL);
	cr_expect_eq(post_rdmap(&s, (enum ddps_op)9, 1, 0, 0, 1), DDPS_E_INVAL);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0x40, 0, 1), DDPS_E_INVAL);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_SOLICITED, 0, 1), DDPS_E_INVAL);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, DDPS_WR_INVALIDATE, 0, 1), DDPS_E_INVAL);
	cr_expect_eq(s.nsq, 0);
}

Test(rdmap_send, queues_at_their_depth)
{
	uint8_t out[128];

	for (int i = 0; i < 8; i++) {
		cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), 0);
		cr_expect_eq(post_rdmap_recv(&s, 1, 0, 1), 0);
	}
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), DDPS_E_LIMIT);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 1), DDPS_E_LIMIT);
	cr_expect_eq(pull(&s, 128, out), 19);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), 0);
	cr_expect_eq(feed_send(&s, 1, 0, true, "x"), 0);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 1), 0);
}

Test(rdmap_send, local_memory_is_checked, .description = "5042-7.3-1")
{
	struct ddps_mr *ro = side_reg(&s, s.mem, 10, 0);
	struct ddps_sge sge = { s.mem, 10, ro->stag };
	struct ddps_send_wr w = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };
	struct ddps_pd other = { .table = s.table };
	struct ddps_mr *foreign;

	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	sge.len = 9;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	sge.len = 11;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), DDPS_E_ACCESS);
	sge.len = 10;
	w.op = DDPS_OP_READ;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), DDPS_E_ACCESS);
	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, &sge, 1), DDPS_E_ACCESS);
	w.op = DDPS_OP_WRITE;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	cr_assert_eq(ddps_stag_add(&other, s.mem, 10, RIGHTS, 0, &foreign), 0);
	sge.lkey = foreign->stag;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), DDPS_E_ACCESS);
	sge.lkey = 0;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), DDPS_E_ACCESS);
	cr_expect_eq(s.terms, 0);
	ddps_stag_remove(foreign); /* its PD goes before the table */
}

#if SIZE_MAX > UINT32_MAX /* else no region is that large */
Test(rdmap_send, length_at_2_to_the_32, .description = "5041-5.2-3")
{
	/* Addresses are only compared: nothing is touched until a segment is sent. */
	struct ddps_mr *big = side_reg(&s, s.mem, 1ull << 33, RIGHTS);
	struct ddps_sge sge[2] = { { s.mem, UINT32_MAX, big->stag }, { s.mem, 0, big->stag } };
	struct ddps_send_wr w = { .op = DDPS_OP_SEND, .sge = sge, .nsge = 2 };

	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	sge[1].len = 1;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), DDPS_E_TOO_LONG);
	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, sge, 2), DDPS_E_TOO_LONG);
}
#endif

Test(rdmap_send, so_many_pieces_as_the_operation_has)
{
	static const struct {
		enum ddps_op op;
		uint32_t most;
	} row[] = { { DDPS_OP_SEND, 4 },
		    { DDPS_OP_WRITE, 4 },
		    { DDPS_OP_READ, 1 },
		    { DDPS_OP_LOCAL_INV, 0 },
		    { DDPS_OP_BIND, 1 } };
	struct ddps_sge sge[5];

	for (unsigned i = 0; i < 5; i++)
		sge[i] = (struct ddps_sge){ s.mem, 8, s.mr->stag };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ddps_send_wr w = { .op = row[i].op, .sge = sge, .nsge = row[i].most + 1 };

		cr_expect_eq(ddps_rdmap_post_send(s.r, &w), DDPS_E_INVAL, "%zu", i);
	}
}

Test(rdmap_send, a_sink_that_wraps_is_refused)
{
	s.mr->base = UINT64_MAX - 9;
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 9), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 10), DDPS_E_ACCESS);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 11), DDPS_E_ACCESS);
	cr_expect_eq(s.terms, 0);
}

/* ---- order and completion ---- */

Test(rdmap_send, completes_when_the_last_segment_is_counted,
     .description = "5040-5.5-15 5041-5.4-1 5041-3-4")
{
	uint8_t out[256];

	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 7, 0, 0, 300), 0);
	cr_expect_eq(pull_only(&s, 128, out), 128);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(pull_only(&s, 128, out), 128);
	cr_expect_eq(pull_only(&s, 128, out), 18 + 80);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(s.nsq, 0);
	ddps_rdmap_tx_done(s.r, 1);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 7, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	ddps_rdmap_tx_done(s.r, 5); /* more than there are */
	cr_expect_eq(s.r->tx_acked, 3);
}

Test(rdmap_send, messages_go_out_in_order_and_never_interleave,
     .description = "5040-5.5-14 5041-5.3-2 5040-5.1-7 5040-5.3-11 5040-5.2.1-9")
{
	static const uint8_t ops[] = { 0x43, 0x43, 0x43, 0x40, 0x40, 0x40, 0x41, 0x43 };
	uint8_t out[256];

	cr_expect_eq(feed_rreq(&s, 1, 8, s.mr->stag, 0), 0);
	cr_expect_eq(pull(&s, 128, out), 22); /* nothing else to do: answered immediately */
	cr_expect_eq(out[1], 0x42);
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 300);
	post_rdmap(&s, DDPS_OP_WRITE, 2, 0, 0, 300);
	post_rdmap(&s, DDPS_OP_READ, 3, 0, 0, 8);
	post_rdmap(&s, DDPS_OP_SEND, 4, 0, 0, 0);
	for (size_t i = 0; i < sizeof ops; i++) {
		cr_assert_gt(pull(&s, 128, out), 0);
		cr_expect_eq(out[1], ops[i], "segment %zu", i);
	}
	cr_expect_eq(pull(&s, 128, out), 0);
}

Test(rdmap_send, a_read_holds_back_later_completions,
     .description = "5040-5.5-16 5040-5.5-20 5040-5.5-23 5040-5.5-10")
{
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 8);
	post_rdmap(&s, DDPS_OP_WRITE, 3, 0, 0, 4);
	while (pull(&s, 128, out))
		;
	cr_expect_eq(s.nsq, 1);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "12345678"), 0);
	cr_assert_eq(s.nsq, 3);
	expect_wc(s.sq[0], 1, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	expect_wc(s.sq[1], 2, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cr_expect_eq(s.sq[1].len, 8);
	expect_wc(s.sq[2], 3, DDPS_OP_WRITE, DDPS_WC_SUCCESS);
	cr_expect_arr_eq(s.mem, "12345678", 8);
}

Test(rdmap_send, a_read_waits_for_an_earlier_send_to_complete, .description = "5040-5.5-16")
{
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 8);
	pull_only(&s, 128, out);
	pull_only(&s, 128, out);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "12345678"), 0);
	cr_expect_eq(s.nsq, 0);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(s.nsq, 2);
	cr_expect_eq(s.sq[1].wr_id, 2);
}

Test(rdmap_send, fence_waits_for_earlier_reads, .description = "5040-5.5-13")
{
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 2, 0, 4, 4);
	post_rdmap(&s, DDPS_OP_SEND, 3, DDPS_WR_FENCE, 0, 4);
	cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "1234"), 0);
	cr_expect_eq(pull(&s, 128, out), 0);
	s.want = 0;
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 4, true, "1234"), 0);
	cr_expect_eq(s.want, 1);
	cr_expect_eq(pull(&s, 128, out), 22);
}

Test(rdmap_send, silent_ones_complete_without_a_word)
{
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_SEND, 1, DDPS_WR_SILENT, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 2, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 3, DDPS_WR_SILENT, 0, 4);
	pull(&s, 128, out);
	pull(&s, 128, out);
	ddps_rdmap_flush(s.r); /* an error is never silent */
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[0], 2, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	expect_wc(s.sq[1], 3, DDPS_OP_SEND, DDPS_WC_FLUSHED);
}

Test(rdmap_send, posted_before_start_waits)
{
	struct side t;
	uint8_t out[128];

	side_init(&t, 4, 4, 1);
	cr_expect_eq(post_rdmap(&t, DDPS_OP_SEND, 1, 0, 0, 4), 0);
	cr_expect_eq(post_rdmap(&t, DDPS_OP_READ, 1, 0, 0, 4), DDPS_E_STATE);
	cr_expect_eq(t.want, 0);
	cr_expect_eq(pull(&t, 128, out), 0);
	cr_expect_eq(feed_hex(&t, "c1 40 00000000 0000000000000000"), DDPS_E_STATE);
	side_start(&t, 0, 0);
	cr_expect_eq(t.want, 1);
	cr_expect_eq(pull(&t, 128, out), 22);
	close_rdmap_side(&t);
}

Test(rdmap_send, a_mulpdu_too_small_for_any_control_message_gives_nothing)
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 100);
	cr_expect_eq(pull(&s, 69, out), 0);
	cr_expect_eq(pull(&s, 70, out), 70);
}

/* ---- memory that goes ---- */

static void dereg_after(unsigned segments)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 300, 0);
	struct ddps_sge sge = { s.mem, 300, mr->stag };
	struct ddps_send_wr w = { .wr_id = 2, .op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1 };
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	cr_assert_eq(ddps_rdmap_post_send(s.r, &w), 0);
	post_rdmap(&s, DDPS_OP_SEND, 3, 0, 0, 4);
	post_rdmap_recv(&s, 4, 0, 4);
	pull(&s, 128, out);
	for (unsigned i = 0; i < segments; i++)
		cr_expect_eq(pull(&s, 128, out), 128);
	ddps_stag_remove(mr);
}

Test(rdmap_send, deregistered_before_and_between_segments,
     .description = "5040-7.1-1 5040-7.1-2 5040-4.8-11 5040-6.2.1-1 5040-6.2.1-2 5040-5.4-9")
{
	for (unsigned n = 0; n < 3; n++) {
		if (n) {
			close_rdmap_side(&s);
			open_rdmap_side(&s);
		}
		dereg_after(n);
		expect_term(&s, "00 00 00 00");
		cr_expect_eq(s.term.code, DDPS_E_ACCESS);
		cr_assert_eq(s.nsq, 3);
		expect_wc(s.sq[0], 1, DDPS_OP_READ, DDPS_WC_FLUSHED);
		expect_wc(s.sq[1], 2, DDPS_OP_WRITE, DDPS_WC_LOCAL_ACCESS);
		expect_wc(s.sq[2], 3, DDPS_OP_SEND, DDPS_WC_FLUSHED);
		expect_wc(s.rq[0], 4, DDPS_OP_RECV, DDPS_WC_FLUSHED);
		cr_expect_eq(s.sq_at_term, 3);
	}
}

Test(rdmap_send, deregistered_sink_of_a_read)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 300, DDPS_LOCAL_WRITE);
	struct ddps_sge sge = { s.mem, 300, mr->stag };
	struct ddps_send_wr w = { .wr_id = 2, .op = DDPS_OP_READ, .sge = &sge, .nsge = 1 };

	cr_assert_eq(ddps_rdmap_post_send(s.r, &w), 0);
	ddps_stag_remove(mr);
	expect_term(&s, "00 00 00 00");
	expect_wc(s.sq[0], 2, DDPS_OP_READ, DDPS_WC_LOCAL_ACCESS);
}

Test(rdmap_send, only_pieces_still_to_send_matter)
{
	struct ddps_mr *a = side_reg(&s, s.mem, 110, 0), *b = side_reg(&s, s.mem + 110, 110, 0);
	struct ddps_sge sge[3] = { { s.mem, 110, a->stag },
				   { NULL, 0, 5 },
				   { s.mem + 110, 110, b->stag } };
	struct ddps_send_wr w = { .op = DDPS_OP_SEND, .sge = sge, .nsge = 3 };
	uint8_t out[256];

	cr_assert_eq(ddps_rdmap_post_send(s.r, &w), 0);
	cr_expect_eq(pull(&s, 128, out), 128); /* the first piece exactly */
	ddps_stag_remove(a);
	cr_expect_eq(pull(&s, 128, out), 128);
	cr_expect_eq(s.nsq, 1);
	cr_expect_eq(s.terms, 0);
}

Test(rdmap_send, memory_that_the_llp_holds_is_not_given_back)
{
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 2, 0, 0, 300);
	post_rdmap(&s, DDPS_OP_SEND, 3, 0, 0, 4);
	pull_only(&s, 128, out);
	pull_only(&s, 128, out);
	ddps_rdmap_terminate(s.r, DDPS_E_LIMIT, (struct ddps_triple){ 0, 0, 0 }, "test");
	cr_expect_eq(s.terms, 1);
	cr_expect_eq(s.nsq, 0);
	cr_expect_eq(pull_only(&s, 128, out), 22);
	ddps_rdmap_tx_done(s.r, 1);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_SEND, DDPS_WC_FLUSHED);
	ddps_rdmap_tx_done(s.r, 1);
	cr_assert_eq(s.nsq, 3);
}

/* ---- the queue's memory ---- */

/* It moves while a message of two pieces is half out: nothing gets lost or mixed up. */
Test(rdmap_send, the_queue_grows_under_a_message_in_progress)
{
	static struct side d;
	uint8_t out[256];
	size_t half;

	side_init(&d, 40, 40, 4);
	side_start(&d, 4, 4);
	for (size_t i = 0; i < sizeof d.mem; i++)
		d.mem[i] = (uint8_t)(i / 64);
	for (size_t i = 0; i < 8; i++)
		cr_assert_eq(post_rdmap(&d, DDPS_OP_SEND, i, 0, 64 * i, i == 3 ? 192 : 64), 0);
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(pull(&d, 256, out), 82);
	half = pull(&d, 128, out); /* of the fourth */
	cr_assert(half > 18 && half <= 128);
	for (size_t i = 8; i < 43; i++) /* three have completed */
		cr_assert_eq(post_rdmap(&d, DDPS_OP_SEND, i, 0, 64 * i, 64), 0);
	cr_expect_eq(post_rdmap(&d, DDPS_OP_SEND, 43, 0, 0, 64), DDPS_E_LIMIT);
	cr_assert_eq(pull(&d, 256, out), 18 + 18 + 192 - half);
	cr_expect_eq(out[18 + 18 + 192 - half - 1], 5);
	for (size_t i = 4; i < 43; i++) {
		cr_assert_eq(pull(&d, 256, out), 82);
		cr_expect_eq(out[18], i);
		cr_expect_eq(out[81], i);
	}
	cr_assert_eq(d.nsq, 43);
	for (unsigned i = 0; i < 43; i++)
		cr_expect_eq(d.sq[i].wr_id, i);
	close_rdmap_side(&d);
}
