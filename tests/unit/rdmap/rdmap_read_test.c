/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA Read, both sides. */
#include "rdmap_fixture.h"

static struct side s;

static void setup(void)
{
	open_rdmap_side(&s);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_read, .init = setup, .fini = teardown);

Test(rdmap_read, response_dumps,
     .description = "5040-4.4-2 5040-4.4-3 5040-5.2-1 5040-5.2.1-3 5040-5.2.1-4 5040-5.2.1-5 "
		    "5040-5.2.1-14 5040-5.2.2-2 5040-5.2.2-3 5040-3.2-9 5040-5.2.2-7")
{
	char req[300];

	s.mr->base = 0x10000;
	memcpy(s.mem, "ABCDEFGH", 8);
	snprintf(req, sizeof req,
		 "41 41 00000000 00000001 00000001 00000000 0000a501 00007f0000001000 00000008 "
		 "%08x 0000000000010000",
		 s.mr->stag);
	cr_expect_eq(feed_hex(&s, req), 0);
	cr_expect_eq(s.want, 1);
	expect_pull(&s, "c1 42 0000a501 00007f0000001000 41424344 45464748");
	cr_expect_eq(s.nrq + s.nsq, 0, "nothing for the application");
}

Test(rdmap_read, responses_in_order_and_segmented,
     .description = "5040-5.2.1-10 5040-5.2.2-8 5040-5.5-18 5040-5.5-21 5040-5.2.2-10")
{
	uint8_t out[256];

	cr_expect_eq(feed_rreq(&s, 1, 200, s.mr->stag, 0), 0);
	cr_expect_eq(feed_rreq(&s, 2, 0, 0, 0), 0);
	cr_expect_eq(feed_rreq(&s, 3, 114, s.mr->stag, 300), 0);
	cr_expect_eq(pull(&s, 128, out), 128);
	cr_expect_eq(out[0], 0x81);
	cr_expect_arr_eq(out + 14, s.mem, 114);
	cr_expect_eq(pull(&s, 128, out), 14 + 86);
	cr_expect_eq(out[0], 0xc1);
	cr_expect_arr_eq(out + 6, "\0\0\x7f\0\0\0\x10\x72", 8);
	cr_expect_arr_eq(out + 14, s.mem + 114, 86);
	cr_expect_eq(pull(&s, 128, out), 14);
	cr_expect_eq(pull(&s, 128, out), 128);
	cr_expect_eq(out[0], 0xc1);
	cr_expect_arr_eq(out + 14, s.mem + 300, 114);
	cr_expect_eq(pull(&s, 128, out), 0);
}

Test(rdmap_read, sink_to_may_wrap_on_the_wire)
{
	struct ddps_rreq q = { 1, UINT64_MAX - 99, 200, s.mr->stag, 0 };
	uint8_t body[28], out[256];

	ddps_rreq_encode(&q, body);
	cr_expect_eq(feed_untagged(&s, 1, 0, 1, 1, 0, true, body, 28), 0);
	pull(&s, 128, out);
	cr_expect_eq(pull(&s, 128, out), 100);
	cr_expect_arr_eq(out + 6, "\0\0\0\0\0\0\0\x0e", 8);
}

Test(rdmap_read, queue_grows_to_ird_and_wraps, .description = "5040-6.1-4")
{
	struct side t;
	uint8_t out[128];
	uint32_t msn = 1;

	side_init(&t, 1, 1, 1);
	side_start(&t, 100, 0);
	for (uint32_t i = 0; i < 10; i++) { /* off the ring's beginning */
		cr_expect_eq(feed_rreq(&t, msn++, 1, t.mr->stag, i), 0);
		cr_expect_eq(pull(&t, 128, out), 15);
	}
	for (uint32_t i = 0; i < 100; i++)
		cr_expect_eq(feed_rreq(&t, msn++, 1, t.mr->stag, i + 1), 0);
	cr_expect_eq(t.r->irrq.cap, 100);
	for (uint32_t i = 0; i < 100; i++) {
		cr_expect_eq(pull(&t, 128, out), 15);
		cr_expect_eq(out[14], t.mem[i + 1]);
	}
	cr_expect_eq(pull(&t, 128, out), 0);
	close_rdmap_side(&t);
}

Test(rdmap_read, own_work_and_responses_take_turns)
{
	static const uint8_t want[] = { 0x42, 0x43, 0x42, 0x43, 0x42, 0x43 };
	uint8_t out[128], first;

	for (uint32_t i = 1; i <= 3; i++) {
		cr_expect_eq(feed_rreq(&s, i, 1, s.mr->stag, 0), 0);
		cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, i, 0, 0, 1), 0);
	}
	pull(&s, 128, out);
	first = out[1] == 0x43;
	for (size_t i = 1; i < 6; i++) {
		cr_expect_gt(pull(&s, 128, out), 0);
		cr_expect_eq(out[1], want[(i + first) % 6]);
	}
}

Test(rdmap_read, ord_limits_what_is_outstanding, .description = "5040-6.1-5 5040-6.1-7")
{
	uint8_t out[128];

	for (uint64_t i = 0; i < 6; i++)
		cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, i, 0, i * 4, 4), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 6, 0, 0, 1), 0);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 0, "the Send waits behind the fifth Read");
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 4, true, "abcd"), 0);
	cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 19);
	for (uint64_t to = 8; to < 24; to += 4)
		cr_expect_eq(feed_rresp(&s, s.mr->stag, to, true, "abcd"), 0);
	cr_assert_eq(s.nsq, 7);
	for (uint64_t i = 0; i < 7; i++)
		cr_expect_eq(s.sq[i].wr_id, i);
}

/* ORD is 4; a higher limit changes nothing. */
Test(rdmap_read, a_limit_of_its_own_counts_besides_ord)
{
	uint8_t out[128];

	ddps_rdmap_reads_max(s.r, 2);
	for (uint64_t i = 0; i < 6; i++)
		cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, i, 0, i * 4, 4), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 0);
	ddps_rdmap_reads_max(s.r, 100);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(pull(&s, 128, out), 46);
	cr_expect_eq(pull(&s, 128, out), 0);
}

Test(rdmap_read, ord_0_refuses)
{
	struct side t;

	side_init(&t, 1, 1, 1);
	side_start(&t, 0, 0);
	cr_expect_eq(post_rdmap(&t, DDPS_OP_READ, 1, 0, 0, 4), DDPS_E_LIMIT);
	cr_expect_eq(t.terms, 0);
	close_rdmap_side(&t);
}

Test(rdmap_read, response_in_pieces, .description = "5040-5.2.2-5 5040-5.2.2-9 5040-3.2-8")
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 100, 8);
	pull(&s, 128, out);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, false, "abc"), 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 103, false, "defgh"), 0);
	cr_expect_eq(s.nsq, 0);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 108, true, ""), 0);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cr_expect_eq(s.sq[0].len, 8);
	cr_expect_arr_eq(s.mem + 100, "abcdefgh", 8);
}

Test(rdmap_read, sink_needs_only_the_local_right)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 8, DDPS_LOCAL_WRITE);
	struct ddps_sge sge = { s.mem, 8, mr->stag };
	struct ddps_send_wr w = { .op = DDPS_OP_READ, .sge = &sge, .nsge = 1 };
	uint8_t out[128];

	cr_expect_eq(ddps_rdmap_post_send(s.r, &w), 0);
	pull(&s, 128, out);
	cr_expect_eq(feed_rresp(&s, mr->stag, mr->base, true, "abcdefgh"), 0);
	cr_expect_eq(s.nsq, 1);
	cr_expect_eq(s.terms, 0);
}

Test(rdmap_read, many_reads_among_other_work)
{
	uint8_t out[256];
	uint64_t id = 0;

	for (int round = 0; round < 20; round++) {
		unsigned before = s.nsq;

		for (int i = 0; i < 8; i++, id++)
			cr_assert_eq(post_rdmap(&s,
						(id + id / 8) % 3 ? DDPS_OP_READ : DDPS_OP_WRITE,
						id, 0, 0, 4),
				     0);
		while (s.nsq < before + 8) {
			while (pull(&s, 128, out))
				;
			if (s.r->reads_out)
				cr_assert_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
		}
	}
	for (unsigned i = 0; i < s.nsq; i++)
		cr_expect_eq(s.sq[i].wr_id, i);
	cr_expect_eq(s.r->reads_out, 0);
}

Test(rdmap_read, a_full_queue_is_no_other_streams,
     .description = "5040-8.1.2-7 5042-6.4.3.3-1 5040-6.1-2")
{
	static struct side t;

	cr_assert_eq(ddps_rdmap_new(&t.r, &(struct ddps_rdmap_cfg){ .pd = &s.pd,
								    .stream = (uintptr_t)&t,
								    .sq_depth = 1,
								    .rq_depth = 1,
								    .max_sge = 1,
								    .up = &side_up,
								    .user = &t }),
		     0);
	side_start(&t, 2, 2);
	for (uint32_t i = 1; i <= 4; i++)
		cr_expect_eq(feed_rreq(&s, i, 8, s.mr->stag, 0), 0);
	for (uint32_t i = 1; i <= 2; i++)
		cr_expect_eq(feed_rreq(&t, i, 8, s.mr->stag, 0), 0);
	cr_expect_lt(feed_rreq(&s, 5, 8, s.mr->stag, 0), 0);
	cr_expect_eq(t.terms, 0);
	cr_expect_eq(t.r->irrq.count, 2);
	cr_expect_lt(feed_rreq(&t, 3, 8, s.mr->stag, 0), 0);
	ddps_rdmap_free(t.r);
}

/* ---- atomic Writes and Flushes, both sides ---- */

#define ONES UINT64_MAX

static struct ddps_rdmap_up up;
static uint64_t cells[8];
static struct ddps_mr *cells_mr;
static uint8_t *kept_at;
static size_t kept;
static unsigned keeps;
static int keep_err;

static int take_persist(void *user, uint8_t *at, size_t len)
{
	cr_assert_eq(user, &s);
	kept_at = at;
	kept = len;
	keeps++;
	return keep_err;
}

static void setup_flush(void)
{
	open_rdmap_side(&s);
	up = side_up;
	up.persist = take_persist;
	s.r->up = &up;
	s.r->rfc7306 = s.r->flush = true;
	memset(cells, 0, sizeof cells);
	cells_mr = side_reg(&s, cells, sizeof cells,
			    DDPS_REMOTE_WRITE | DDPS_FLUSHABLE | DDPS_PERSISTENT | DDPS_ZERO_BASED);
	keeps = 0;
	keep_err = 0;
}

TestSuite(rdmap_flush, .init = setup_flush, .fini = teardown);

static int post_flush(enum ddps_op op, uint64_t id, uint64_t mask)
{
	struct ddps_send_wr wr = { .wr_id = id,
				   .op = op,
				   .stag = 0x1a2b3c01,
				   .to = 0x10008,
				   .imm = { 1, 2, 3, 4, 5, 6, 7, 8 },
				   .atomic = { .data = 0x30, .mask = mask } };

	return ddps_rdmap_post_send(s.r, &wr);
}

static int feed_flush(uint8_t aop, uint64_t to, uint64_t data, uint64_t mask)
{
	struct ddps_areq q = { aop, 7, cells_mr->stag, to, data, mask, 0, ONES };
	uint8_t body[52];

	ddps_areq_encode(&q, body);
	return feed_untagged(&s, 0xA, 0, 1, s.r->rxq[1].msn, 0, true, body, sizeof body);
}

Test(rdmap_flush, requests_and_their_ends)
{
	s.r->sq.head = s.r->sq.next = s.r->sq.tail = 0x51;
	cr_expect_eq(post_flush(DDPS_OP_FLUSH, 1, DDPS_FLUSH_VISIBLE | DDPS_FLUSH_REGION), 0);
	cr_expect_eq(post_flush(DDPS_OP_ATOMIC_WRITE, 2, 0), 0);
	expect_pull(&s, "41 4a 00000000 00000001 00000001 00000000 0000000f 00000051 1a2b3c01 "
			"0000000000010008 0000000000000030 0000000000000005 0000000000000000 "
			"ffffffffffffffff");
	expect_pull(&s, "41 4a 00000000 00000001 00000002 00000000 0000000e 00000052 1a2b3c01 "
			"0000000000010008 0102030405060708 ffffffffffffffff 0000000000000000 "
			"ffffffffffffffff");
	cr_expect_eq(s.nsq, 0, "they wait for their responses");
	cr_expect_eq(feed_hex(&s, "41 4b 00000000 00000003 00000001 00000000 00000051 "
				  "0000000000000000"),
		     0);
	cr_expect_eq(feed_hex(&s, "41 4b 00000000 00000003 00000002 00000000 00000052 "
				  "0000000000000000"),
		     0);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[0], 1, DDPS_OP_FLUSH, DDPS_WC_SUCCESS);
	expect_wc(s.sq[1], 2, DDPS_OP_ATOMIC_WRITE, DDPS_WC_SUCCESS);
}

Test(rdmap_flush, requests_that_say_nothing_known)
{
	cr_expect_eq(post_flush(DDPS_OP_FLUSH, 1, 0), DDPS_E_INVAL);
	cr_expect_eq(post_flush(DDPS_OP_FLUSH, 1, DDPS_FLUSH_REGION), DDPS_E_INVAL);
	cr_expect_eq(post_flush(DDPS_OP_FLUSH, 1, DDPS_FLUSH_VISIBLE | 8), DDPS_E_INVAL);
	s.r->flush = false;
	cr_expect_eq(post_flush(DDPS_OP_FLUSH, 1, 1), DDPS_E_UNSUPPORTED);
	cr_expect_eq(post_flush(DDPS_OP_ATOMIC_WRITE, 1, 0), DDPS_E_UNSUPPORTED);
}

Test(rdmap_flush, an_atomic_write_places_its_octets)
{
	uint8_t out[128];

	cr_expect_eq(feed_flush(14, 8, UINT64_C(0x0102030405060708), ONES), 0);
	cr_expect_eq(cells[1], 0, "it is carried out in its turn");
	cr_expect_eq(pull(&s, 128, out), 30);
	expect_octets((uint8_t *)&cells[1], 8, "01 02 03 04 05 06 07 08");
	expect_octets(out, 30,
		      "41 4b 00000000 00000003 00000001 00000000 00000007 "
		      "0000000000000000");
}

/* Behind the responses to earlier Reads, and behind each other. */
Test(rdmap_flush, they_take_their_turns)
{
	uint8_t out[128];

	cells_mr->access |= DDPS_REMOTE_READ;
	cr_expect_eq(feed_rreq(&s, 1, 8, cells_mr->stag, 8), 0);
	cr_expect_eq(feed_flush(15, 0, 64, DDPS_FLUSH_PERSISTENT), 0);
	cr_expect_eq(feed_flush(14, 8, 1, ONES), 0);
	cr_expect_eq(pull(&s, 128, out), 22);
	cr_expect_eq(keeps, 0);
	cr_expect_eq(pull(&s, 128, out), 30);
	cr_expect_eq(keeps, 1);
	cr_expect_eq(cells[1], 0);
	cr_expect_eq(pull(&s, 128, out), 30);
	cr_expect_neq(cells[1], 0);
}

Test(rdmap_flush, what_is_made_persistent)
{
	static const struct {
		uint64_t to, data, mask;
		size_t at, len;
		unsigned keeps;
	} t[] = {
		{ 16, 24, 2, 16, 24, 1 },	 { 0, 64, 3, 0, 64, 1 }, { 5, 1, 2, 5, 1, 1 },
		{ 1000, 1000, 2 | 4, 0, 64, 1 }, /* the region, whatever else is said */
		{ 16, 24, 1, 0, 0, 0 },		 { 64, 0, 2, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		uint8_t out[128];

		keeps = 0;
		cr_expect_eq(feed_flush(15, t[i].to, t[i].data, t[i].mask), 0, "row %zu", i);
		cr_expect_eq(pull(&s, 128, out), 30, "row %zu", i);
		cr_expect_eq(keeps, t[i].keeps, "row %zu", i);
		if (!keeps)
			continue;
		cr_expect_eq(kept_at, (uint8_t *)cells + t[i].at, "row %zu", i);
		cr_expect_eq(kept, t[i].len, "row %zu", i);
	}
}

Test(rdmap_flush, refused)
{
	static const struct {
		uint8_t aop;
		unsigned access; /* 0: another STag */
		uint64_t to, data, mask;
		uint8_t layer_etype, code;
	} t[] = {
		{ 15, DDPS_PERSISTENT, 0, 8, 1, 0x01, 0x02 },
		{ 15, DDPS_FLUSHABLE, 0, 8, 2, 0x01, 0x02 },
		{ 15, DDPS_FLUSHABLE, 0, 8, 3, 0x01, 0x02 },
		{ 15, DDPS_FLUSHABLE, 0, 8, 2 | 4, 0x01, 0x02 },
		{ 15, DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC, 0, 8, 1, 0x01,
		  0x02 },
		{ 15, DDPS_FLUSHABLE, 0, 65, 1, 0x01, 0x01 },
		{ 15, DDPS_FLUSHABLE, 65, 0, 1, 0x01, 0x01 },
		{ 15, DDPS_FLUSHABLE, 8, UINT64_MAX, 1, 0x01, 0x04 },
		{ 15, DDPS_FLUSHABLE, 0, 8, 0, 0x02, 0x06 },
		{ 15, DDPS_FLUSHABLE, 0, 8, 1 | 8, 0x02, 0x06 },
		{ 15, 0, 0, 8, 1, 0x01, 0x00 },
		{ 15, 0, 0, 8, 1 | 4, 0x01, 0x00 },
		{ 14, DDPS_REMOTE_ATOMIC | DDPS_REMOTE_READ, 8, 1, ONES, 0x01, 0x02 },
		{ 14, DDPS_REMOTE_WRITE, 4, 1, ONES, 0x02, 0x07 },
		{ 14, DDPS_REMOTE_WRITE, 60, 1, ONES, 0x01, 0x01 },
		{ 13, DDPS_REMOTE_WRITE, 8, 1, ONES, 0x02, 0x06 },
	};

	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		uint8_t out[128];

		cells_mr->access = t[i].access | DDPS_ZERO_BASED;
		if (!t[i].access)
			cells_mr->valid = false;
		cr_expect_lt(feed_flush(t[i].aop, t[i].to, t[i].data, t[i].mask), 0, "row %zu", i);
		cr_assert_eq(pull(&s, 128, out), 42, "row %zu", i);
		cr_expect_eq(out[18], t[i].layer_etype, "row %zu: %02x", i, out[18]);
		cr_expect_eq(out[19], t[i].code, "row %zu: %02x", i, out[19]);
		cr_expect_eq(keeps, 0);
		cr_expect_eq(cells[1], 0);
		teardown();
		setup_flush();
	}
}

/* The region, or the right to write, goes between its arrival and its turn. */
Test(rdmap_flush, revoked_meanwhile)
{
	uint8_t out[128];

	cr_expect_eq(feed_flush(15, 0, 8, DDPS_FLUSH_PERSISTENT), 0);
	cells_mr->valid = false;
	cr_expect_eq(pull(&s, 128, out), 42);
	cr_expect_eq(keeps, 0);
	teardown();
	setup_flush();
	cr_expect_eq(feed_flush(14, 8, 1, ONES), 0);
	ddps_rdmap_allow(s.r, DDPS_REMOTE_READ);
	cr_expect_eq(pull(&s, 128, out), 42);
	cr_expect_eq(cells[1], 0);
}

Test(rdmap_flush, what_the_system_cannot_do_is_no_success)
{
	keep_err = DDPS_E_SYSTEM;
	cr_expect_eq(feed_flush(15, 0, 8, DDPS_FLUSH_PERSISTENT), 0);
	expect_term(&s, "10 00 00 00"); /* DDP, local catastrophic error */
}

/* Its Terminate names no request: it can only be the oldest Flush. */
Test(rdmap_flush, and_the_requester_learns_of_it)
{
	uint8_t out[128];

	cr_expect_eq(post_flush(DDPS_OP_ATOMIC_WRITE, 1, 0), 0);
	cr_expect_eq(post_flush(DDPS_OP_FLUSH, 2, DDPS_FLUSH_PERSISTENT), 0);
	cr_expect_gt(pull(&s, 128, out), 0);
	cr_expect_gt(pull(&s, 128, out), 0);
	cr_expect_eq(feed_hex(&s, TERM_HDR "10 00 00 00"), DDPS_E_TERMINATED);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[0], 1, DDPS_OP_ATOMIC_WRITE, DDPS_WC_FLUSHED);
	expect_wc(s.sq[1], 2, DDPS_OP_FLUSH, DDPS_WC_REMOTE);
	cr_expect_eq(s.sq[1].term.layer, 1);
}
