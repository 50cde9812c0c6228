/* SPDX-License-Identifier: BSD-2-Clause */
/* Every error a peer can cause: octets in, exact Terminate out, what becomes of the work. */
#include "rdmap_fixture.h"

static struct side s;
static const uint8_t zero[28];

static void setup(void)
{
	open_rdmap_side(&s);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_error, .init = setup, .fini = teardown);

/* Feed one segment; the Terminate is @term, where "%H" stands for length and header of what
 * was fed and "%Q" for the Read Request header behind it. */
static void expect_answer(const uint8_t *seg, size_t len, const char *term)
{
	char want[512] = TERM_HDR;
	size_t hdr = *seg & 0x80 ? 14 : 18, n = strlen(want);

	for (; *term; term++) {
		if (term[0] != '%') {
			n += (size_t)snprintf(want + n, sizeof want - n, "%c", *term);
			continue;
		}
		term++;
		if (*term == 'H') {
			n += (size_t)snprintf(want + n, sizeof want - n, " %04zx ", len);
			for (size_t i = 0; i < hdr; i++)
				n += (size_t)snprintf(want + n, sizeof want - n, "%02x", seg[i]);
		} else {
			for (size_t i = hdr; i < hdr + 28; i++)
				n += (size_t)snprintf(want + n, sizeof want - n, "%02x", seg[i]);
		}
	}
	cr_expect_lt(feed_rdmap(&s, seg, len), 0);
	expect_pull(&s, want);
	cr_expect_eq(s.terms, 1);
	cr_expect_not(s.by_peer);
	cr_expect(s.term.text[0]);
	/* All that follows is dropped silently [5041-7.1-20], and nothing more is sent. */
	cr_expect_lt(feed_hex(&s, "41 47 00000000 00000002 00000001 00000000 00000000"), 0);
	cr_expect_eq(s.terms, 1);
	cr_expect_eq(pull(&s, 1500, (uint8_t[1500]){ 0 }), 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), DDPS_E_STATE);
	cr_expect_eq(post_rdmap_recv(&s, 1, 0, 1), DDPS_E_STATE);
}

/* Start anew, for the next row of a loop. */
static void reopen_error_side(void)
{
	close_rdmap_side(&s);
	open_rdmap_side(&s);
}

/* ---- DDP, tagged: 1/1 ---- */

static void bad_write(uint32_t stag, uint64_t to, const char *text, const char *term)
{
	uint8_t seg[256];
	size_t len = make_tagged_rdmap(seg, 0, stag, to, true, text);
	uint8_t before[sizeof s.mem];

	memcpy(before, s.mem, sizeof before);
	expect_answer(seg, len, term);
	cr_expect_arr_eq(s.mem, before, sizeof before, "nothing was placed");
	reopen_error_side();
}

Test(rdmap_error, tagged_buffer,
     .description = "5041-7.1-11 5041-7.1-12 5041-7.1-13 5041-7.1-14 5041-7.1-15 5041-7.1-16 "
		    "5041-7.1-17 5041-7.1-18 5041-7.1-19 5041-7.1-20 5041-7.1-21 5041-7.2-1 "
		    "5041-8.2-1 5041-8.2-2 5041-8.3-5 5041-6.2.2-3 5041-6.2.2-4 5040-7.1-3 "
		    "5040-3.2-7 5040-5.1-4 5040-4.8-4 5040-4.8-5 5040-4.8-6 5040-4.8-13")
{
	struct ddps_pd other = { .table = s.table };
	struct ddps_mr *mr;

	bad_write(~s.mr->stag, 0, "x", "11 00 c0 00 %H");
	bad_write(0, 0, "x", "11 00 c0 00 %H");
	mr = side_reg(&s, s.mem, 10, DDPS_LOCAL_WRITE | DDPS_REMOTE_READ | DDPS_ZERO_BASED);
	bad_write(mr->stag, 0, "x", "11 00 c0 00 %H"); /* no write right */
	mr = side_reg(&s, s.mem, 10, RIGHTS | DDPS_ZERO_BASED);
	mr->valid = false;
	bad_write(mr->stag, 0, "x", "11 00 c0 00 %H");
	bad_write(s.mr->stag, 4095, "xy", "11 01 c0 00 %H");
	bad_write(s.mr->stag, 4096, "x", "11 01 c0 00 %H");
	mr = side_reg(&s, s.mem + 5, 10, RIGHTS);
	bad_write(mr->stag, mr->base - 1, "x", "11 01 c0 00 %H"); /* below the base */
	other.table = s.table;
	cr_assert_eq(ddps_stag_add(&other, s.mem, 10, RIGHTS | DDPS_ZERO_BASED, 0, &mr), 0);
	bad_write(mr->stag, 0, "x", "11 02 c0 00 %H");
	cr_assert_eq(ddps_stag_add(&s.pd, s.mem, 10, RIGHTS | DDPS_ZERO_BASED, (uintptr_t)&other,
				   &mr),
		     0);
	bad_write(mr->stag, 0, "x", "11 02 c0 00 %H"); /* bound to another stream */
	bad_write(s.mr->stag, UINT64_MAX, "x", "11 03 c0 00 %H");
	bad_write(s.mr->stag, UINT64_MAX, "xy", "11 03 c0 00 %H");
	bad_write(s.mr->stag, UINT64_MAX - 1, "x", "11 01 c0 00 %H");
}

Test(rdmap_error, terminate_dump_for_a_write)
{
	uint8_t seg[1500] = { 0x81, 0x40, 0x1a, 0x2b, 0x3c, 1, 0, 0, 0, 0, 0, 1 };

	s.mr->access &= ~DDPS_REMOTE_WRITE;
	cr_expect_lt(feed_rdmap(&s, seg, sizeof seg), 0);
	expect_term(&s, "11 00 c0 00 05dc 81 40 1a2b3c01 0000000000010000");
}

Test(rdmap_error, stag_revoked_between_two_segments, .description = "5042-6.2.2-2 5040-8.1.1-6")
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 10, RIGHTS | DDPS_ZERO_BASED);
	uint32_t stag = mr->stag;
	uint8_t seg[64];

	cr_expect_eq(feed_write(&s, stag, 0, false, "abc"), 0);
	cr_expect_arr_eq(s.mem, "abc", 3);
	ddps_stag_remove(mr);
	expect_answer(seg, make_tagged_rdmap(seg, 0, stag, 3, true, "def"), "11 00 c0 00 %H");
	cr_expect_arr_eq(s.mem + 3, "\3\4\5", 3);
}

Test(rdmap_error, stag_changes_within_a_message)
{
	uint8_t seg[64];

	cr_expect_eq(feed_write(&s, s.mr->stag, 0, false, "abc"), 0);
	expect_answer(seg, make_tagged_rdmap(seg, 0, s.mr->stag + 1, 3, true, "d"),
		      "11 00 c0 00 %H");
	reopen_error_side();
	cr_expect_eq(feed_write(&s, s.mr->stag, 0, false, "abc"), 0);
	expect_answer(seg, make_tagged_rdmap(seg, 0, s.mr->stag + 1, 3, true, ""),
		      "11 00 c0 00 %H");
}

/* ---- versions and lengths ---- */

Test(rdmap_error, ddp_version, .description = "5041-4.1-12")
{
	static const uint8_t dv[] = { 0, 2, 3 };

	for (int i = 0; i < 3; i++) {
		uint8_t seg[64];
		size_t len = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, "x");

		seg[0] = (uint8_t)(0xc0 | dv[i]);
		expect_answer(seg, len, "11 04 c0 00 %H");
		reopen_error_side();
		expect_answer(seg, 13, "11 04 00 00"); /* no whole header to return */
		reopen_error_side();
		len = make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "x", 1);
		seg[0] = (uint8_t)(0x40 | dv[i]);
		expect_answer(seg, len, "12 06 c0 00 %H");
		reopen_error_side();
		expect_answer(seg, 17, "12 06 00 00");
		reopen_error_side();
	}
}

Test(rdmap_error, shorter_than_its_header)
{
	for (int mpa = 0; mpa < 2; mpa++)
		for (size_t n = 0; n < 18; n++) {
			uint8_t seg[18] = { n < 14 && n & 1 ? 0xc1 : 0x41, 0x40 };

			s.r->llp_mpa_codes = mpa;
			expect_answer(seg, n, mpa ? "20 03 00 00" : "10 00 00 00");
			reopen_error_side();
		}
}

Test(rdmap_error, rdmap_version, .description = "5040-7.2-3 5040-7.2-8 5040-3.2-3")
{
	for (unsigned rv = 0; rv < 4; rv++) {
		uint8_t seg[64];
		size_t len = make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "x", 1);

		if (rv == 1)
			continue;
		seg[1] = (uint8_t)(rv << 6 | 3);
		expect_answer(seg, len, "02 05 c0 00 %H");
		reopen_error_side();
		len = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, "x");
		seg[1] = (uint8_t)(rv << 6);
		expect_answer(seg, len, "02 05 c0 00 %H");
		reopen_error_side();
	}
}

/* ---- opcodes ---- */

Test(rdmap_error, every_opcode_against_t_and_queue,
     .description = "5040-7.2-2 5040-7.2-7 5041-7.1-2")
{
	static const int queue[16] = { -1, 1, -1, 0, 0, 0, 0, 2, -2, -2, -2, -2, -2, -2, -2, -2 };

	for (unsigned op = 0; op < 16; op++) {
		uint8_t seg[64];
		size_t len;

		if (queue[op] != -1) {
			len = make_tagged_rdmap(seg, op, s.mr->stag, 0, true, "x");
			expect_answer(seg, len, "02 06 c0 00 %H");
			reopen_error_side();
		}
		for (uint32_t qn = 0; qn < 5; qn++) {
			if (queue[op] == (int)qn)
				continue;
			post_rdmap_recv(&s, 1, 0, 10);
			len = make_untagged_rdmap(seg, op, 0, qn, 1, 0, true, "x", 1);
			expect_answer(seg, len,
				      queue[op] < 0 || qn < 3 ? "02 06 c0 00 %H"
							      : "12 01 c0 00 %H");
			reopen_error_side();
		}
	}
}

Test(rdmap_error, opcode_changes_within_a_message)
{
	uint8_t seg[64];

	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	expect_answer(seg, make_untagged_rdmap(seg, 5, 0, 0, 1, 3, true, "d", 1), "02 06 c0 00 %H");
	reopen_error_side();
	cr_expect_eq(feed_write(&s, s.mr->stag, 0, false, "abc"), 0);
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	pull(&s, 128, seg);
	expect_answer(seg, make_tagged_rdmap(seg, 2, s.mr->stag, 0, true, "abcd"),
		      "02 06 c0 00 %H");
}

/* ---- DDP, untagged: 1/2 ---- */

Test(rdmap_error, send_without_a_buffer,
     .description = "5041-7.1-3 5041-7.1-7 5040-5.3-9 5040-7.2-1 5041-6.2.2-5 5041-6.2.2-6 "
		    "5041-6.2.2-7")
{
	uint8_t seg[128];

	post_rdmap(&s, DDPS_OP_SEND, 5, 0, 0, 1);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "x", 1), "12 02 c0 00 %H");
	expect_wc(s.sq[0], 5, DDPS_OP_SEND, DDPS_WC_FLUSHED);
	reopen_error_side();
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "", 0), "12 02 c0 00 %H");
	reopen_error_side();
	s.r->rxq[0].msn = 9; /* MSN 9, 82 octets */
	memset(seg, 0, sizeof seg);
	make_untagged_rdmap(seg, 3, 0, 0, 9, 0, true, "", 0);
	cr_expect_lt(feed_rdmap(&s, seg, 82), 0);
	expect_term(&s, "12 02 c0 00 0052 41 43 00000000 00000000 00000009 00000000");
}

Test(rdmap_error, msn_out_of_the_window, .description = "5041-7.1-10")
{
	static const uint32_t bad[] = { 0, 2, 9, UINT32_MAX };
	uint8_t seg[64];

	for (size_t i = 0; i < 4; i++) {
		post_rdmap_recv(&s, 1, 0, 10);
		expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, bad[i], 0, true, "x", 1),
			      "12 03 c0 00 %H");
		expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_FLUSHED);
		reopen_error_side();
		expect_answer(seg, make_untagged_rdmap(seg, 1, 0, 1, bad[i], 0, true, "x", 1),
			      "12 03 c0 00 %H");
		reopen_error_side();
	}
	post_rdmap_recv(&s, 1, 0, 10);
	post_rdmap_recv(&s, 2, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, true, "x"), 0);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "x", 1), "12 03 c0 00 %H");
}

Test(rdmap_error, msn_changes_before_the_end)
{
	uint8_t seg[64];

	post_rdmap_recv(&s, 1, 0, 10);
	post_rdmap_recv(&s, 2, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 2, 0, true, "x", 1), "12 03 c0 00 %H");
	cr_expect_eq(s.nrq, 2);
}

Test(rdmap_error, message_offset, .description = "5041-7.1-8")
{
	static const uint32_t bad[] = { 2, 4, 10, 11, UINT32_MAX };
	uint8_t seg[64];

	post_rdmap_recv(&s, 1, 0, 10);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 1, true, "x", 1), "12 04 c0 00 %H");
	reopen_error_side();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		post_rdmap_recv(&s, 1, 0, 10);
		cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
		expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, bad[i], true, "x", 1),
			      "12 04 c0 00 %H");
		expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_FLUSHED);
		reopen_error_side();
	}
}

Test(rdmap_error, message_too_long, .description = "5041-7.1-9 5041-1.2-1 5040-5.3-6")
{
	uint8_t seg[64];

	post_rdmap_recv(&s, 1, 0, 3);
	post_rdmap_recv(&s, 2, 0, 3);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "abcd", 4),
		      "12 05 c0 00 %H");
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_LENGTH);
	expect_wc(s.rq[1], 2, DDPS_OP_RECV, DDPS_WC_FLUSHED);
	reopen_error_side();
	post_rdmap_recv(&s, 1, 0, 3);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 3, true, "d", 1), "12 05 c0 00 %H");
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_LENGTH);
	reopen_error_side();
	cr_expect_eq(ddps_rdmap_post_recv(s.r, 3, NULL, 0), 0);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "x", 1), "12 05 c0 00 %H");
}

Test(rdmap_error, receive_buffer_deregistered)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 10, DDPS_LOCAL_WRITE);
	struct ddps_sge sge = { s.mem, 10, mr->stag };
	uint8_t seg[64];

	cr_assert_eq(ddps_rdmap_post_recv(s.r, 1, &sge, 1), 0);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	ddps_stag_remove(mr);
	expect_answer(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 3, true, "def", 3), "10 00 00 00");
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_LOCAL_ACCESS);
	cr_expect_arr_eq(s.mem + 3, "\3\4\5", 3);
}

/* ---- Read Requests: 0/1, and the queue's limits ---- */

static void bad_rreq(uint32_t size, uint32_t stag, uint64_t to, const char *term)
{
	struct ddps_rreq q = { 0xa501, 0x7f0000001000, size, stag, to };
	uint8_t seg[64], body[28];

	ddps_rreq_encode(&q, body);
	expect_answer(seg, make_untagged_rdmap(seg, 1, 0, 1, 1, 0, true, body, 28), term);
	reopen_error_side();
}

Test(rdmap_error, read_request_source,
     .description = "5040-5.2.1-16 5040-7.2-9 5040-7.2-10 5040-7.2-11 5040-7.2-12 5040-7.2-13 "
		    "5040-7.1-4 5040-4.8-13 5040-4.8-15 5040-3.2-10 5040-5.2.1-6")
{
	struct ddps_pd other = { 0 };
	struct ddps_mr *mr;

	bad_rreq(1, ~s.mr->stag, 0, "01 00 e0 00 %H %Q");
	bad_rreq(2, s.mr->stag, 4095, "01 01 e0 00 %H %Q");
	bad_rreq(1, s.mr->stag, 4096, "01 01 e0 00 %H %Q");
	bad_rreq(UINT32_MAX, s.mr->stag, 0, "01 01 e0 00 %H %Q");
	mr = side_reg(&s, s.mem, 10, DDPS_REMOTE_WRITE | DDPS_LOCAL_WRITE | DDPS_ZERO_BASED);
	bad_rreq(1, mr->stag, 0, "01 02 e0 00 %H %Q");
	other.table = s.table;
	cr_assert_eq(ddps_stag_add(&other, s.mem, 10, RIGHTS | DDPS_ZERO_BASED, 0, &mr), 0);
	bad_rreq(1, mr->stag, 0, "01 03 e0 00 %H %Q");
	cr_assert_eq(ddps_stag_add(&s.pd, s.mem, 10, RIGHTS | DDPS_ZERO_BASED, (uintptr_t)&other,
				   &mr),
		     0);
	bad_rreq(1, mr->stag, 0, "01 03 e0 00 %H %Q");
	bad_rreq(1, s.mr->stag, UINT64_MAX, "01 04 e0 00 %H %Q");
	bad_rreq(UINT32_MAX, s.mr->stag, UINT64_MAX - 5, "01 04 e0 00 %H %Q");
}

Test(rdmap_error, terminate_dump_for_a_read_request)
{
	s.mr->base = 0x10001; /* SrcTO is one below */
	s.mr->stag = 0;
	cr_expect_lt(feed_hex(&s, "41 41 00000000 00000001 00000001 00000000 0000a501 "
				  "00007f0000001000 00002000 1a2b3c01 0000000000010000"),
		     0);
	expect_term(&s, "01 00 e0 00 002e 41 41 00000000 00000001 00000001 00000000 0000a501 "
			"00007f0000001000 00002000 1a2b3c01 0000000000010000");
}

Test(rdmap_error, read_request_length, .description = "5040-7.2-6")
{
	struct ddps_rreq q = { .size = 0 };
	uint8_t seg[64], body[40] = { 0 };

	ddps_rreq_encode(&q, body);
	for (size_t n = 0; n <= 30; n++) {
		if (n == 28)
			continue;
		expect_answer(seg, make_untagged_rdmap(seg, 1, 0, 1, 1, 0, true, body, n),
			      n < 28 ? "02 ff c0 00 %H" : "12 05 c0 00 %H");
		reopen_error_side();
	}
}

Test(rdmap_error, read_request_in_two_segments, .description = "5040-5.5-11")
{
	struct ddps_rreq q = { 1, 2, 4, s.mr->stag, 0 };
	uint8_t body[28], out[128];

	ddps_rreq_encode(&q, body);
	cr_expect_eq(feed_untagged(&s, 1, 0, 1, 1, 0, false, body, 13), 0);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(feed_untagged(&s, 1, 0, 1, 1, 13, true, body + 13, 15), 0);
	cr_expect_eq(pull(&s, 128, out), 18);
}

Test(rdmap_error, reads_beyond_ird,
     .description = "5040-6.1-4 5040-6.1-8 5040-5.2.2-4 5042-6.4.3.3-1 5042-6.4.3.3-2")
{
	uint8_t seg[64];

	for (uint32_t msn = 1; msn <= 4; msn++)
		cr_expect_eq(feed_rreq(&s, msn, 8, s.mr->stag, 0), 0);
	cr_expect_eq(pull(&s, 128, seg), 22); /* its slot is free immediately */
	cr_expect_eq(feed_rreq(&s, 5, 8, s.mr->stag, 0), 0);
	expect_answer(seg, make_untagged_rdmap(seg, 1, 0, 1, 6, 0, true, zero, 28),
		      "12 02 c0 00 %H");
}

Test(rdmap_error, ird_0_refuses_every_read)
{
	uint8_t seg[64];

	s.r->irrq.ird = 0;
	expect_answer(seg, make_untagged_rdmap(seg, 1, 0, 1, 1, 0, true, zero, 28),
		      "12 02 c0 00 %H");
}

/* ---- Read Responses ---- */

static void bad_rresp(uint32_t stag, uint64_t to, bool last, const char *text, const char *term)
{
	uint8_t seg[64];

	post_rdmap(&s, DDPS_OP_READ, 9, 0, 100, 4);
	cr_assert_eq(pull(&s, 128, seg), 46);
	expect_answer(seg, make_tagged_rdmap(seg, 2, stag, to, last, text), term);
	expect_wc(s.sq[0], 9, DDPS_OP_READ, DDPS_WC_FLUSHED);
	reopen_error_side();
}

Test(rdmap_error, read_response, .description = "5040-5.2.2-6 5040-5.2.2-9")
{
	uint8_t seg[64];

	expect_answer(seg, make_tagged_rdmap(seg, 2, s.mr->stag, 0, true, "abcd"),
		      "02 06 c0 00 %H");
	reopen_error_side();
	expect_answer(seg, make_tagged_rdmap(seg, 2, 0, 0, true, ""), "02 06 c0 00 %H");
	reopen_error_side();
	bad_rresp(s.mr->stag + 1, 100, true, "abcd", "11 00 c0 00 %H");
	bad_rresp(s.mr->stag, 101, true, "abcd", "11 01 c0 00 %H");
	bad_rresp(s.mr->stag, 99, true, "abcd", "11 01 c0 00 %H");
	bad_rresp(s.mr->stag, 100, true, "abc", "11 01 c0 00 %H");
	bad_rresp(s.mr->stag, 100, true, "abcde", "11 01 c0 00 %H");
	bad_rresp(s.mr->stag, 100, false, "abcde", "11 01 c0 00 %H");
	bad_rresp(0, 0, true, "", "11 01 c0 00 %H");
}

Test(rdmap_error, read_response_with_a_gap)
{
	uint8_t seg[64];

	post_rdmap(&s, DDPS_OP_READ, 9, 0, 100, 8);
	pull(&s, 128, seg);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, false, "abc"), 0);
	expect_answer(seg, make_tagged_rdmap(seg, 2, s.mr->stag, 104, true, "efgh"),
		      "11 01 c0 00 %H");
}

Test(rdmap_error, read_response_with_an_empty_segment_elsewhere)
{
	uint8_t seg[64];

	post_rdmap(&s, DDPS_OP_READ, 9, 0, 100, 3);
	pull(&s, 128, seg);
	expect_answer(seg, make_tagged_rdmap(seg, 2, s.mr->stag + 1, 100, false, ""),
		      "11 00 c0 00 %H");
	reopen_error_side();
	post_rdmap(&s, DDPS_OP_READ, 9, 0, 100, 3);
	pull(&s, 128, seg);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 100, false, "abc"), 0);
	expect_answer(seg, make_tagged_rdmap(seg, 2, s.mr->stag, 104, true, ""), "11 01 c0 00 %H");
}

Test(rdmap_error, sink_of_a_read_deregistered)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 8, DDPS_LOCAL_WRITE | DDPS_ZERO_BASED);
	uint32_t stag = mr->stag;
	struct ddps_sge sge = { s.mem, 8, stag };
	struct ddps_send_wr w = { .wr_id = 2, .op = DDPS_OP_READ, .sge = &sge, .nsge = 1 };
	uint8_t seg[64];

	cr_assert_eq(ddps_rdmap_post_send(s.r, &w), 0);
	pull(&s, 128, seg);
	cr_expect_eq(feed_rresp(&s, stag, 0, false, "abc"), 0);
	ddps_stag_remove(mr);
	expect_answer(seg, make_tagged_rdmap(seg, 2, stag, 3, true, "defgh"), "11 00 c0 00 %H");
	expect_wc(s.sq[0], 2, DDPS_OP_READ, DDPS_WC_LOCAL_ACCESS);
	cr_expect_arr_eq(s.mem + 3, "\3\4\5", 3);
}

Test(rdmap_error, a_write_may_not_use_the_sink_of_a_read)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 8, DDPS_LOCAL_WRITE | DDPS_ZERO_BASED);
	struct ddps_sge sge = { s.mem, 8, mr->stag };
	struct ddps_send_wr w = { .wr_id = 2, .op = DDPS_OP_READ, .sge = &sge, .nsge = 1 };
	uint8_t seg[64];

	cr_assert_eq(ddps_rdmap_post_send(s.r, &w), 0);
	pull(&s, 128, seg);
	expect_answer(seg, make_tagged_rdmap(seg, 0, mr->stag, 0, true, "abc"), "11 00 c0 00 %H");
}

/* ---- Send with Invalidate ---- */

enum refused { UNKNOWN, GONE_ALREADY, OTHER_PD, OTHER_STREAM, SHARED, NREFUSED };

static uint32_t refused_stag(enum refused why)
{
	static struct ddps_pd other;
	struct ddps_mr *mr = s.mr;

	switch (why) {
	case UNKNOWN:
		return ~s.mr->stag;
	case GONE_ALREADY:
		mr = side_reg(&s, s.mem, 1, RIGHTS);
		mr->valid = false;
		break;
	case OTHER_PD:
		other = (struct ddps_pd){ .table = s.table };
		cr_assert_eq(ddps_stag_add(&other, s.mem, 1, RIGHTS, 0, &mr), 0);
		break;
	case OTHER_STREAM:
		cr_assert_eq(ddps_stag_add(&s.pd, s.mem, 1, RIGHTS, (uintptr_t)&other, &mr), 0);
		break;
	default: /* bound to no stream, and the PD has two */
		s.pd.streams = 2;
		break;
	}
	return mr->stag;
}

Test(rdmap_error, stag_that_cannot_be_invalidated,
     .description = "5040-5.3-16 5040-5.3-17 5040-7.2-4 5040-7.2-5 5040-8.1.1-7")
{
	for (unsigned op = 4; op <= 6; op += 2)
		for (int why = 0; why < NREFUSED; why++) {
			uint32_t stag = refused_stag((enum refused)why);
			uint8_t seg[64];

			post_rdmap_recv(&s, 1, 0, 10);
			expect_answer(seg,
				      make_untagged_rdmap(seg, op, stag, 0, 1, 0, true, "x", 1),
				      "01 09 c0 00 %H");
			cr_assert_eq(s.nrq, 1);
			expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_FLUSHED);
			cr_expect(s.mr->valid);
			s.pd.streams = 1;
			reopen_error_side();
		}
}

/* ---- source revoked while the response goes out ---- */

Test(rdmap_error, source_revoked_during_the_response, .description = "5040-4.8-16 5040-8.1.1-6")
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 1000, RIGHTS | DDPS_ZERO_BASED);
	uint32_t stag = mr->stag;
	char want[512];
	uint8_t out[128];

	cr_expect_eq(feed_rreq(&s, 1, 1000, stag, 0), 0);
	cr_expect_eq(pull(&s, 128, out), 128);
	cr_expect_eq(pull(&s, 128, out), 128);
	ddps_stag_remove(mr);
	/* 228 = 0xe4 octets are out, 772 = 0x304 are left */
	snprintf(want, sizeof want,
		 TERM_HDR "01 00 e0 00 002e 41 41 00000000 00000001 00000001 00000000 0000a501 "
			  "00007f00000010e4 00000304 %08x 00000000000000e4",
		 stag);
	expect_pull(&s, want);
	cr_expect_eq(pull(&s, 128, out), 0);
	cr_expect_eq(s.terms, 1);
}

Test(rdmap_error, source_revoked_before_the_response, .description = "5040-4.8-15")
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 1000, RIGHTS | DDPS_ZERO_BASED);
	uint32_t stag = mr->stag;
	char want[512];

	cr_expect_eq(feed_rreq(&s, 1, 1000, stag, 0), 0);
	ddps_stag_remove(mr);
	snprintf(want, sizeof want,
		 TERM_HDR "01 00 e0 00 002e 41 41 00000000 00000001 00000001 00000000 0000a501 "
			  "00007f0000001000 000003e8 %08x 0000000000000000",
		 stag);
	expect_pull(&s, want);
}

/* ---- not errors ---- */

Test(rdmap_error, zero_length_with_bad_fields_is_no_error,
     .description = "5041-5.2-11 5040-5.2.1-17 5040-5.2.1-18 5040-5.1-10 5042-6.3.5-2")
{
	uint8_t out[128];

	cr_expect_eq(feed_hex(&s, "c1 40 00000000 0000000000000000"), 0);
	cr_expect_eq(feed_hex(&s, "c1 40 ffffffff ffffffffffffffff"), 0);
	cr_expect_eq(feed_rreq(&s, 1, 0, 1, 0), 0);
	expect_pull(&s, "c1 42 0000a501 00007f0000001000");
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 0);
	pull(&s, 128, out);
	cr_expect_eq(feed_hex(&s, "c1 42 ffffffff ffffffffffffffff"), 0);
	expect_wc(s.sq[0], 1, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cr_expect_eq(s.terms, 0);
}

Test(rdmap_error, reserved_bits_are_no_error, .description = "5041-4.1-10 5040-4.1-10 5040-4.1-12")
{
	uint8_t seg[64];
	size_t len = make_untagged_rdmap(seg, 3, 0xdeadbeef, 0, 1, 0, true, "x", 1);

	post_rdmap_recv(&s, 1, 0, 10);
	seg[0] |= 0x3c;
	seg[1] |= 0x30;
	cr_expect_eq(feed_rdmap(&s, seg, len), 0);
	cr_assert_eq(s.nrq, 1);
	cr_expect_not(s.rq[0].invalidated);
}
