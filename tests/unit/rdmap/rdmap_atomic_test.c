/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 7306: Immediate Data and atomics, both sides. */
#include "rdmap_fixture.h"

#define FETCH_ADD_1                                                                                \
	"00000000 00000051 %08x 0000000000010008 0000000000000001 "                                \
	"0000000000000000 0000000000000000 ffffffffffffffff"
#define ONES UINT64_MAX

static struct side s;
static uint64_t cells[8];
static struct ddps_mr *cells_mr;

static void setup(void)
{
	open_rdmap_side(&s);
	s.r->rfc7306 = true;
	memset(cells, 0, sizeof cells);
	cells_mr = side_reg(&s, cells, sizeof cells, RIGHTS | DDPS_ZERO_BASED);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_atomic, .init = setup, .fini = teardown);

static int post_rdmap_atomic_atomic(enum ddps_op op, uint64_t id, bool sink)
{
	struct ddps_sge sge = get_rdmap_piece(&s, 8, 8);
	struct ddps_send_wr wr = {
		.wr_id = id,
		.op = op,
		.sge = &sge,
		.nsge = sink,
		.stag = 0x1a2b3c01,
		.to = 0x10008,
		.atomic = { .data = 1 },
	};

	if (op == DDPS_OP_CMP_SWAP)
		wr.atomic = (struct ddps_atomic){ 0x2a, ONES, 0x29, ONES };
	return ddps_rdmap_post_send(s.r, &wr);
}

static int feed_areq(uint32_t msn, const struct ddps_areq *q)
{
	uint8_t body[52];

	ddps_areq_encode(q, body);
	return feed_untagged(&s, 0xA, 0x12345678, 1, msn, 0, true, body, sizeof body);
}

static int feed_rdmap_atomic_aresp(uint32_t msn, uint32_t id, uint64_t original)
{
	struct ddps_aresp a = { id, original };
	uint8_t body[12];

	ddps_aresp_encode(&a, body);
	return feed_untagged(&s, 0xB, 0, 3, msn, 0, true, body, sizeof body);
}

/* Run one on cells[1]; what comes back. */
static uint64_t run_rdmap_atomic(uint8_t aop, uint64_t data, uint64_t mask, uint64_t cmp,
				 uint64_t cmask)
{
	struct ddps_areq q = { aop, 7, cells_mr->stag, 8, data, mask, cmp, cmask };
	struct ddps_aresp a;
	uint8_t out[128];

	cr_assert_eq(feed_areq(s.r->rxq[1].msn, &q), 0);
	cr_assert_eq(pull(&s, 128, out), 30);
	ddps_aresp_decode(&a, out + 18);
	cr_expect_eq(a.id, 7);
	return a.original;
}

Test(rdmap_atomic, request_dumps,
     .description = "7306-4.1-1 7306-5.2-1 7306-5.2.1-4 7306-5.2.1-5 7306-5.2.1-10 7306-5.2.1-11 "
		    "7306-5.2.1-12 7306-5.2.1-15")
{
	s.r->sq.head = s.r->sq.next = s.r->sq.tail = 0x51;
	s.r->tx_msn[1] = 2;
	cr_expect_eq(post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 1, true), 0);
	cr_expect_eq(post_rdmap_atomic_atomic(DDPS_OP_CMP_SWAP, 2, false), 0);
	expect_pull(&s, "41 4a 00000000 00000001 00000002 00000000 00000000 00000051 1a2b3c01 "
			"0000000000010008 0000000000000001 0000000000000000 0000000000000000 "
			"ffffffffffffffff");
	expect_pull(&s, "41 4a 00000000 00000001 00000003 00000000 00000002 00000052 1a2b3c01 "
			"0000000000010008 000000000000002a ffffffffffffffff 0000000000000029 "
			"ffffffffffffffff");
	cr_expect_eq(s.nsq, 0);
	cr_expect_eq(feed_hex(&s, "41 4b 00000000 00000003 00000001 00000000 00000051 "
				  "0000000000000029"),
		     0);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_FETCH_ADD, DDPS_WC_SUCCESS);
	cr_expect_eq(s.sq[0].original, 0x29);
	cr_expect_eq(s.sq[0].len, 8);
	cr_expect_eq(*(uint64_t *)(void *)(s.mem + 8), 0x29);
	cr_expect_eq(feed_rdmap_atomic_aresp(2, 0x52, 0x30), 0);
	cr_assert_eq(s.nsq, 2);
	cr_expect_eq(s.sq[1].original, 0x30);
	cr_expect_eq(s.sq[1].len, 0);
}

Test(rdmap_atomic, response_dump,
     .description = "7306-4.1-2 7306-5-3 7306-5-5 7306-5.2-2 7306-5.2.1-1 7306-5.2.1-7 "
		    "7306-5.2.1-8 7306-5.2.1-14 7306-5.2.2-2 7306-5.2.2-3 7306-5.2.2-4 "
		    "7306-5.2.2-10")
{
	char req[300];

	cells_mr->base = 0x10000;
	cells[1] = 0x29;
	snprintf(req, sizeof req, "41 4a 00000000 00000001 00000001 00000000 " FETCH_ADD_1,
		 cells_mr->stag);
	cr_expect_eq(feed_hex(&s, req), 0);
	expect_pull(&s, "41 4b 00000000 00000003 00000001 00000000 00000051 0000000000000029");
	cr_expect_eq(cells[1], 0x2a);
	cr_expect_eq(s.nrq + s.nsq, 0);
}

Test(rdmap_atomic, fetch_add_fields)
{
	cells[1] = ONES;
	cr_expect_eq(run_rdmap_atomic(0, 1, 0, 0, 0), ONES);
	cr_expect_eq(cells[1], 0);
	cells[1] = UINT64_C(0xffffffffffffffff);
	run_rdmap_atomic(0, UINT64_C(0x0000000100000001), UINT64_C(0x8000000080000000), 0, 0);
	cr_expect_eq(cells[1], 0, "two fields of 32 bits");
	cells[1] = UINT64_C(0x00000000ffffffff);
	run_rdmap_atomic(0, 1, 0, 0, 0);
	cr_expect_eq(cells[1], UINT64_C(0x100000000));
	cells[1] = 0xff;
	run_rdmap_atomic(0, 0x101, 0x80, 0, 0);
	cr_expect_eq(cells[1], 0x100, "the carry out of bit 7 is dropped");
	cells[1] = 0x5;
	run_rdmap_atomic(0, 0x3, ONES, 0, 0);
	cr_expect_eq(cells[1], 0x6, "fields of one bit: xor");
}

Test(rdmap_atomic, cmp_swap, .description = "7306-5.1.2-1")
{
	cells[1] = 0x29;
	cr_expect_eq(run_rdmap_atomic(2, 0x2a, ONES, 0x28, ONES), 0x29);
	cr_expect_eq(cells[1], 0x29);
	cr_expect_eq(run_rdmap_atomic(2, 0x2a, ONES, 0x29, ONES), 0x29);
	cr_expect_eq(cells[1], 0x2a);
	cr_expect_eq(run_rdmap_atomic(2, 0xffff, 0xf00, 0x1a, 0x0f), 0x2a);
	cr_expect_eq(cells[1], 0xf2a, "masked");
	cr_expect_eq(run_rdmap_atomic(2, 7, ONES, 1, 0), 0xf2a);
	cr_expect_eq(cells[1], 7, "a plain swap");
}

Test(rdmap_atomic, order_with_reads,
     .description = "7306-5.2.1-6 7306-5.2.1-13 7306-5.2.2-5 7306-5.2.2-9 7306-5.4-4 7306-5.4-6 "
		    "7306-5.4-9 7306-5.4-10")
{
	struct ddps_areq q = { .id = 1, .stag = cells_mr->stag, .to = 8, .data = 1 };
	uint8_t out[128];

	cr_expect_eq(feed_rreq(&s, 1, 8, cells_mr->stag, 8), 0);
	cr_expect_eq(feed_areq(2, &q), 0);
	cr_expect_eq(feed_rreq(&s, 3, 8, cells_mr->stag, 8), 0);
	cr_expect_eq(feed_areq(4, &q), 0);
	cr_expect_eq(feed_areq(5, &q), DDPS_E_PROTOCOL, "one more than IRD");
	cr_expect_eq(s.term.triple.code, 0x02);
	teardown();
	setup();
	q.stag = cells_mr->stag;
	feed_rreq(&s, 1, 8, cells_mr->stag, 8);
	feed_areq(2, &q);
	feed_rreq(&s, 3, 8, cells_mr->stag, 8);
	cr_expect_eq(pull_only(&s, 128, out), 22);
	cr_expect_eq(pull_only(&s, 128, out), 0, "the Read's octets have not left");
	cr_expect_eq(cells[1], 0);
	s.want = 0;
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(s.want, 1);
	cr_expect_eq(pull(&s, 128, out), 30);
	cr_expect_eq(cells[1], 1);
	cr_expect_eq(pull(&s, 128, out), 22);
	cr_expect_arr_eq(out + 14, &cells[1], 8);
}

Test(rdmap_atomic, completions_in_order_and_one_budget,
     .description = "7306-5.2.2-1 7306-5.2.2-6 7306-5.2.2-7 7306-5.4-1 7306-5.4-8")
{
	uint8_t out[128];

	s.r->tx_msn[1] = s.r->tx_msn[3] = s.r->rxq[3].msn = UINT32_MAX;
	post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 0, false);
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 16, 4);
	post_rdmap_atomic_atomic(DDPS_OP_CMP_SWAP, 2, false);
	post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 3, false);
	post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 4, false);
	post_rdmap(&s, DDPS_OP_SEND, 5, DDPS_WR_FENCE, 0, 1);
	for (int i = 0; i < 4; i++)
		cr_expect_gt(pull(&s, 128, out), 0);
	cr_expect_eq(pull(&s, 128, out), 0, "ORD is 4");
	cr_expect_eq(feed_rdmap_atomic_aresp(UINT32_MAX, 0, 10), 0);
	cr_expect_eq(pull(&s, 128, out), 70);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 16, true, "abcd"), 0);
	cr_expect_eq(feed_rdmap_atomic_aresp(0, 2, 12), 0);
	cr_expect_eq(feed_rdmap_atomic_aresp(1, 3, 13), 0);
	cr_expect_eq(pull(&s, 128, out), 0, "the fence");
	cr_expect_eq(feed_rdmap_atomic_aresp(2, 4, 14), 0);
	cr_expect_eq(pull(&s, 128, out), 19);
	cr_assert_eq(s.nsq, 6);
	for (unsigned i = 0; i < 6; i++)
		cr_expect_eq(s.sq[i].wr_id, i);
	cr_expect_eq(s.sq[4].original, 14);
}

/* RFC 7306 section 8, the requests. */
Test(rdmap_atomic, request_errors,
     .description = "7306-5.1.1-2 7306-5.1.1-3 7306-5.1.1-4 7306-5.1.1-5 7306-5.1.2-3 7306-5.1.2-4 "
		    "7306-5.1.2-5 7306-5.1.2-6 7306-5.2.1-9 7306-8.1-2 7306-8.2-4 7306-8.2-5")
{
	static const struct {
		uint8_t aop;
		unsigned access;
		uint64_t to;
		uint8_t layer_etype, code;
	} t[] = {
		{ 0, RIGHTS, 9, 0x02, 0x07 },
		{ 2, RIGHTS, 12, 0x02, 0x07 },
		{ 1, RIGHTS, 8, 0x02, 0x06 },
		{ 3, RIGHTS, 8, 0x02, 0x06 },
		{ 15, RIGHTS, 8, 0x02, 0x06 },
		{ 0, DDPS_REMOTE_READ, 8, 0x01, 0x02 },
		{ 2, DDPS_REMOTE_WRITE, 8, 0x01, 0x02 },
		{ 0, RIGHTS, 57, 0x01, 0x01 },
		{ 0, RIGHTS, UINT64_MAX - 3, 0x01, 0x04 },
		{ 0, 0, 8, 0x01, 0x00 },
	};

	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct ddps_areq q = { .aop = t[i].aop, .to = t[i].to, .data = 1, .mask = ONES };
		uint8_t out[128];

		cells_mr->access = t[i].access | DDPS_ZERO_BASED;
		q.stag = cells_mr->stag + !t[i].access;
		cr_expect_lt(feed_areq(1, &q), 0, "row %zu", i);
		cr_assert_eq(pull(&s, 128, out), 42, "row %zu: no RDMA header", i);
		cr_expect_eq(out[18], t[i].layer_etype, "row %zu", i);
		cr_expect_eq(out[19], t[i].code, "row %zu", i);
		cr_expect_eq(out[20], 0xc0);
		for (int c = 0; c < 8; c++)
			cr_expect_eq(cells[c], 0);
		teardown();
		setup();
	}
}

Test(rdmap_atomic, alignment_is_of_the_address, .description = "7306-5.2.1-2")
{
	struct ddps_mr *mr = side_reg(&s, (uint8_t *)cells + 4, 32, RIGHTS | DDPS_ZERO_BASED);
	struct ddps_areq q = { .stag = mr->stag, .to = 4, .data = 5 };
	uint8_t out[128];

	cr_expect_eq(feed_areq(1, &q), 0);
	cr_expect_eq(pull(&s, 128, out), 30);
	cr_expect_eq(cells[1], 5);
	q.to = 8;
	cr_expect_lt(feed_areq(2, &q), 0);
}

Test(rdmap_atomic, revoked_before_it_is_done)
{
	struct ddps_areq q = { .stag = cells_mr->stag, .to = 8, .data = 5 };
	uint8_t out[128];

	cr_expect_eq(feed_areq(1, &q), 0);
	cells_mr->valid = false;
	cr_expect_eq(pull(&s, 128, out), 42);
	cr_expect_eq(cells[1], 0);
}

/* Lengths n - 1 and n + 1; off, nothing of it is known. */
Test(rdmap_atomic, lengths_and_off_by_default,
     .description = "7306-1.1-1 7306-6.3-8 7306-8.2-2 7306-5.2.2-8")
{
	static const struct {
		unsigned op, qn;
		size_t len;
	} t[] = { { 8, 0, 8 }, { 9, 0, 8 }, { 0xA, 1, 52 }, { 0xB, 3, 12 } };
	static const uint8_t zero[64];
	uint8_t out[128];

	for (size_t i = 0; i < 4; i++)
		for (int d = -1; d <= 2; d++) {
			bool off = d == 2;

			post_rdmap_recv(&s, 1, 0, 64);
			post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 1, false);
			pull(&s, 128, out);
			s.r->rfc7306 = !off;
			if (!d)
				continue;
			cr_expect_lt(feed_untagged(&s, t[i].op, 0, t[i].qn, 1, 0, true, zero,
						   t[i].len + (size_t)(off ? 0 : d)),
				     0);
			cr_expect_eq(s.term.triple.layer, 0);
			cr_expect_eq(s.term.triple.etype, 2);
			cr_expect_eq(s.term.triple.code, off ? 0x06 : 0xFF);
			teardown();
			setup();
		}
	s.r->rfc7306 = false;
	cr_expect_eq(post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 1, false), DDPS_E_UNSUPPORTED);
	cr_expect_eq(feed_untagged(&s, 3, 0, 3, 1, 0, true, zero, 8), DDPS_E_PROTOCOL);
	cr_expect_eq(s.term.triple.layer, 1);
	cr_expect_eq(s.term.triple.code, 0x01, "queue 3 is invalid");
}

Test(rdmap_atomic, response_errors, .description = "7306-8.2-1")
{
	uint8_t out[128];

	for (int i = 0; i < 4; i++) {
		static const uint8_t code[] = { 0x02, 0x02, 0x03, 0xFF };

		if (i == 1)
			post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
		if (i)
			post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 2, false);
		while (pull(&s, 128, out))
			;
		cr_expect_lt(feed_rdmap_atomic_aresp(i == 2 ? 2 : 1, i == 3, 0), 0);
		cr_expect_eq(s.term.triple.code, code[i], "row %d", i);
		cr_expect_eq(s.term.triple.layer, i < 3);
		teardown();
		setup();
	}
}

Test(rdmap_atomic, immediate_data,
     .description = "7306-6.3-1 7306-6.3-2 7306-6.3-3 7306-6.3-4 7306-6.3-5 7306-6.3-6 7306-6.3-7")
{
	struct ddps_send_wr wr = { .wr_id = 1,
				   .op = DDPS_OP_IMM,
				   .imm = { 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77 } };
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 4);

	s.r->tx_msn[0] = 6;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	expect_pull(&s, "41 48 00000000 00000000 00000006 00000000 00112233 44556677");
	wr.op = DDPS_OP_WRITE_IMM;
	wr.flags = DDPS_WR_SOLICITED;
	wr.sge = &sge;
	wr.nsge = 1;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	expect_pull(&s, "c1 40 00000000 0000000000000000 00 01 02 03");
	cr_expect_eq(s.nsq, 1);
	expect_pull(&s, "41 49 00000000 00000000 00000007 00000000 00112233 44556677");
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[1], 1, DDPS_OP_WRITE_IMM, DDPS_WC_SUCCESS);
	cr_expect_eq(ddps_rdmap_post_recv(s.r, 1, NULL, 0), 0);
	cr_expect_eq(post_rdmap_recv(&s, 2, 0, 64), 0);
	cr_expect_eq(feed_hex(&s, "41 48 00000000 00000000 00000001 00000000 0011223344556677"), 0);
	cr_expect_eq(feed_hex(&s, "41 49 00000000 00000000 00000002 00000000 8899aabbccddeeff"), 0);
	cr_assert_eq(s.nrq, 2);
	expect_wc(s.rq[1], 2, DDPS_OP_RECV, DDPS_WC_SUCCESS);
	cr_expect(s.rq[0].has_imm && s.rq[1].has_imm);
	cr_expect(!s.rq[0].solicited && s.rq[1].solicited);
	cr_expect_arr_eq(s.rq[1].imm, "\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 8);
	cr_expect_lt(feed_hex(&s, "41 48 00000000 00000000 00000003 00000000 0011223344556677"), 0);
	cr_expect_eq(s.term.triple.code, 0x02, "no receive");
}

/* A request and a response of every other length, each in memory of just its size. */
Test(rdmap_atomic, truncated_at_every_octet, .description = "7306-8.2-1 7306-5.2.2-8")
{
	static const struct {
		unsigned op, qn;
		size_t len;
	} t[] = { { 0xA, 1, 52 }, { 0xB, 3, 12 } };
	uint8_t out[128];

	for (size_t i = 0; i < 2; i++)
		for (size_t n = 0; n < t[i].len; n++) {
			uint8_t *seg = calloc(1, 18 + n);

			post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 1, false);
			pull(&s, 128, out);
			cr_assert(seg);
			seg[0] = 0x41;
			seg[1] = (uint8_t)(0x40 | t[i].op);
			seg[9] = (uint8_t)t[i].qn;
			seg[13] = 1;
			cr_expect_lt(feed_rdmap(&s, seg, 18 + n), 0, "opcode %x, %zu octets",
				     t[i].op, n);
			cr_expect_eq(s.term.triple.etype, 2);
			cr_expect_eq(s.term.triple.code, 0xFF);
			free(seg);
			teardown();
			setup();
		}
}

/* No answer comes any more: flushed, and what waited behind a fence goes on. */
Test(rdmap_atomic, half_close_with_one_outstanding, .description = "7306-5.2.2-7")
{
	uint8_t out[128];

	post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 1, true);
	post_rdmap(&s, DDPS_OP_SEND, 2, DDPS_WR_FENCE, 0, 1);
	cr_expect_eq(pull(&s, 128, out), 70);
	cr_expect_eq(pull(&s, 128, out), 0, "the fence");
	ddps_rdmap_peer_closed(s.r);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_FETCH_ADD, DDPS_WC_FLUSHED);
	cr_expect_eq(pull(&s, 128, out), 19);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[1], 2, DDPS_OP_SEND, DDPS_WC_SUCCESS);
}

Test(rdmap_atomic, sink_revoked_before_the_response)
{
	uint8_t out[128], before[8];

	post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 1, true);
	pull(&s, 128, out);
	memcpy(before, s.mem + 8, sizeof before);
	s.mr->valid = false;
	cr_expect_lt(feed_rdmap_atomic_aresp(1, 0, ONES), 0);
	cr_expect_eq(s.term.triple.layer << 8 | s.term.triple.etype << 4, 0);
	cr_expect_arr_eq(s.mem + 8, before, sizeof before);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_FETCH_ADD, DDPS_WC_LOCAL_ACCESS);
}

Test(rdmap_atomic, versions, .description = "7306-8.2-3")
{
	static const char *const bad[] = {
		"41 08 00000000 00000000 00000001 00000000 0011223344556677",
		"41 89 00000000 00000000 00000001 00000000 0011223344556677",
		"41 ca 00000000 00000001 00000001 00000000",
		"41 0b 00000000 00000003 00000001 00000000",
	};

	for (size_t i = 0; i < 4; i++) {
		cr_expect_lt(feed_hex(&s, bad[i]), 0);
		cr_expect_eq(s.term.triple.layer, 0);
		cr_expect_eq(s.term.triple.etype, 2);
		cr_expect_eq(s.term.triple.code, 0x05, "row %zu", i);
		teardown();
		setup();
	}
}

/* The source goes while the Write waits behind a fence: nothing of it is sent. */
Test(rdmap_atomic, local_error_instead_of_the_message, .description = "7306-8.1-1")
{
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 4);
	struct ddps_send_wr wr = {
		.wr_id = 2, .op = DDPS_OP_WRITE_IMM, .flags = DDPS_WR_FENCE, .sge = &sge, .nsge = 1
	};
	uint8_t out[128];

	post_rdmap_atomic_atomic(DDPS_OP_FETCH_ADD, 1, false);
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	cr_expect_eq(pull(&s, 128, out), 70);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(ddps_stag_invalidate(&s.pd, 0, s.mr->stag), DDPS_STAG_OK);
	cr_expect_eq(feed_rdmap_atomic_aresp(1, 0, 1), 0);
	cr_assert_eq(pull(&s, 128, out), 22, "a Terminate without headers");
	cr_expect_arr_eq(out + 18, "\0\0\0", 4);
}
