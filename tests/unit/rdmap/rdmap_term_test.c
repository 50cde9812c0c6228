/* SPDX-License-Identifier: BSD-2-Clause */
/* Terminates: when they leave, what a received one does. */
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

TestSuite(rdmap_term, .init = setup, .fini = teardown);

static void terminate_rdmap_term(uint8_t layer, uint8_t etype, uint8_t code)
{
	ddps_rdmap_terminate(s.r, DDPS_E_CRC, (struct ddps_triple){ layer, etype, code }, "why");
}

/* ---- sent ---- */

Test(rdmap_term, errors_of_other_layers_have_no_headers,
     .description = "5041-7-1 5040-4.8-11 5040-4.8-17 5040-5.4-1 5040-5.4-2 5040-5.4-3")
{
	static const uint8_t row[][3] = { { 2, 0, 2 }, { 2, 0, 3 }, { 2, 0, 5 },
					  { 2, 0, 6 }, { 2, 0, 7 }, { 0, 0, 0 } };

	for (size_t i = 0; i < 6; i++) {
		char want[100];

		s.want = 0;
		terminate_rdmap_term(row[i][0], row[i][1], row[i][2]);
		cr_expect_eq(s.want, 1);
		snprintf(want, sizeof want, TERM_HDR "%x%x %02x 00 00", row[i][0], row[i][1],
			 row[i][2]);
		expect_pull(&s, want);
		cr_expect_str_eq(s.term.text, "why");
		cr_expect_eq(s.term.code, DDPS_E_CRC);
		close_rdmap_side(&s);
		open_rdmap_side(&s);
	}
}

Test(rdmap_term, the_first_error_wins, .description = "5040-7.1-5")
{
	terminate_rdmap_term(2, 0, 2);
	terminate_rdmap_term(2, 0, 3);
	cr_expect_lt(feed_write(&s, 1, 0, true, "x"), 0);
	expect_term(&s, "20 02 00 00");
	terminate_rdmap_term(2, 0, 3);
	cr_expect_eq(pull(&s, 128, (uint8_t[128]){ 0 }), 0);
}

Test(rdmap_term, abandons_the_message_in_progress, .description = "5040-5.4-10 5040-7.1-2")
{
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 400);
	cr_expect_eq(pull(&s, 128, out), 128);
	terminate_rdmap_term(2, 0, 2);
	expect_term(&s, "20 02 00 00");
	expect_wc(s.sq[0], 1, DDPS_OP_SEND, DDPS_WC_FLUSHED);
}

Test(rdmap_term, drops_read_requests_not_answered)
{
	uint8_t out[256];

	feed_rreq(&s, 1, 400, s.mr->stag, 0);
	feed_rreq(&s, 2, 400, s.mr->stag, 0);
	cr_expect_eq(pull(&s, 128, out), 128);
	terminate_rdmap_term(2, 0, 2);
	expect_term(&s, "20 02 00 00");
}

Test(rdmap_term, goes_first_before_start, .description = "6581-9.2-10")
{
	struct side t;

	side_init(&t, 4, 4, 1);
	post_rdmap(&t, DDPS_OP_SEND, 1, 0, 0, 4);
	ddps_rdmap_terminate(t.r, DDPS_E_RTR, (struct ddps_triple){ 2, 0, 7 }, "no common RTR");
	expect_term(&t, "20 07 00 00");
	cr_expect_eq(t.nsq, 1);
	cr_expect_eq(ddps_rdmap_start(t.r, &(struct ddps_rdmap_start){ 0 }), DDPS_E_STATE);
	close_rdmap_side(&t);
}

Test(rdmap_term, goes_instead_of_the_rtr)
{
	struct side t;

	side_init(&t, 4, 4, 1);
	cr_assert_eq(ddps_rdmap_start(t.r, &(struct ddps_rdmap_start){ .send_rtr = 2 }), 0);
	ddps_rdmap_terminate(t.r, DDPS_E_IRD, (struct ddps_triple){ 2, 0, 6 }, "IRD");
	expect_term(&t, "20 06 00 00");
	close_rdmap_side(&t);
}

Test(rdmap_term, flushes_both_queues_in_order, .description = "5041-6.2.2-5 5040-6.2.1-2")
{
	uint8_t out[256];

	post_rdmap(&s, DDPS_OP_SEND, 0, DDPS_WR_SILENT, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_WRITE, 2, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 3, DDPS_WR_FENCE, 0, 4);
	for (uint64_t i = 0; i < 3; i++)
		post_rdmap_recv(&s, i, 0, 4);
	while (pull(&s, 128, out))
		;
	terminate_rdmap_term(0, 0, 0);
	cr_assert_eq(s.nsq, 3);
	cr_assert_eq(s.nrq, 3);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(s.sq[i].wr_id, i + 1);
		cr_expect_eq(s.sq[i].status, DDPS_WC_FLUSHED);
		cr_expect_eq(s.sq[i].len, 0);
		cr_expect_eq(s.rq[i].wr_id, i);
		cr_expect_eq(s.rq[i].status, DDPS_WC_FLUSHED);
	}
	cr_expect_eq(s.sq_at_term, 3);
	cr_expect_eq(s.rq_at_term, 3);
}

/* ---- received ---- */

static void expect_received(uint8_t layer, uint8_t etype, uint8_t code, int err)
{
	uint8_t out[128];

	cr_expect_eq(s.terms, 1);
	cr_expect(s.by_peer);
	cr_expect_eq(s.term.triple.layer, layer);
	cr_expect_eq(s.term.triple.etype, etype);
	cr_expect_eq(s.term.triple.code, code);
	cr_expect_eq(s.term.code, err);
	cr_expect_eq(pull(&s, 128, out), 0, "never answered");
	cr_expect_eq(post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 1), DDPS_E_STATE);
	cr_expect_lt(feed_hex(&s, TERM_HDR "00 00 00 00"), 0);
	cr_expect_eq(s.terms, 1, "a second one is dropped");
	terminate_rdmap_term(0, 0, 0);
	cr_expect_eq(pull(&s, 128, out), 0);
}

Test(rdmap_term, received,
     .description = "5040-3.2-4 5040-5.4-4 5040-5.4-5 5040-5.4-6 5040-5.4-7 5040-5.4-11 "
		    "5040-6.2.1-2 5040-6.2.1-3")
{
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	post_rdmap_recv(&s, 2, 0, 4);
	cr_expect_eq(feed_hex(&s, TERM_HDR "20 02 00 00"), DDPS_E_TERMINATED);
	expect_received(2, 0, 2, 0);
	expect_wc(s.sq[0], 1, DDPS_OP_SEND, DDPS_WC_FLUSHED);
	expect_wc(s.rq[0], 2, DDPS_OP_RECV, DDPS_WC_FLUSHED);
	cr_expect_eq(s.sq_at_term, 1);
}

Test(rdmap_term, received_dumps)
{
	static const struct {
		const char *hex;
		uint8_t t[3];
	} dump[] = {
		{ "00 00 00 00", { 0, 0, 0 } },
		{ "01 01 e0 00 002e 41 41 00000000 00000001 00000001 00000000 0000a501 "
		  "00007f0000001000 00002000 1a2b3c01 0000000000010000",
		  { 0, 1, 1 } },
		{ "11 01 c0 00 05dc 81 40 1a2b3c01 0000000000010000", { 1, 1, 1 } },
		{ "12 02 c0 00 0052 41 43 00000000 00000000 00000009 00000000", { 1, 2, 2 } },
		{ "20 02 00 00", { 2, 0, 2 } },
		{ "f7 33 00 00", { 15, 7, 0x33 } }, /* unknown: delivered as it is */
	};

	for (size_t i = 0; i < sizeof dump / sizeof *dump; i++) {
		char text[400];

		snprintf(text, sizeof text, TERM_HDR "%s", dump[i].hex);
		cr_expect_eq(feed_hex(&s, text), DDPS_E_TERMINATED);
		expect_received(dump[i].t[0], dump[i].t[1], dump[i].t[2], 0);
		cr_expect_str_empty(s.term.text);
		close_rdmap_side(&s);
		open_rdmap_side(&s);
	}
}

Test(rdmap_term, received_cut_at_every_length, .description = "5040-5.4-8")
{
	uint8_t full[128];
	size_t len = unhex(TERM_HDR "01 01 e0 00 002e 41 41 00000000 00000001 00000001 00000000 "
				    "0000a501 00007f0000001000 00002000 1a2b3c01 "
				    "0000000000010000",
			   full);

	for (size_t n = 18; n < len; n++) {
		cr_expect_eq(feed_rdmap(&s, full, n), DDPS_E_TERMINATED);
		expect_received(0, n > 18, n > 19, DDPS_E_TRUNCATED);
		cr_expect(s.term.text[0]);
		close_rdmap_side(&s);
		open_rdmap_side(&s);
	}
}

Test(rdmap_term, received_with_faults_is_not_answered)
{
	static const char *const seg[] = {
		"41 47 00000000 00000002 00000002 00000000 20 02 00 00", /* MSN 2 */
		"41 47 00000000 00000002 00000001 00000004 20 02 00 00", /* MO 4 */
		"01 47 00000000 00000002 00000001 00000000 20 02 00 00", /* not last */
	};
	uint8_t big[18 + 53];

	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(feed_hex(&s, seg[i]), DDPS_E_TERMINATED);
		expect_received(2, 0, 2, DDPS_E_PROTOCOL);
		close_rdmap_side(&s);
		open_rdmap_side(&s);
	}
	memset(big, 0, sizeof big);
	unhex(TERM_HDR "20 02 00 00", big);
	cr_expect_eq(feed_rdmap(&s, big, sizeof big), DDPS_E_TERMINATED);
	expect_received(2, 0, 2, DDPS_E_PROTOCOL);
}

Test(rdmap_term, received_inside_a_message)
{
	post_rdmap_recv(&s, 1, 0, 10);
	cr_expect_eq(feed_send(&s, 1, 0, false, "abc"), 0);
	cr_expect_eq(feed_hex(&s, TERM_HDR "00 00 00 00"), DDPS_E_TERMINATED);
	expect_received(0, 0, 0, 0);
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_FLUSHED);
}

Test(rdmap_term, soft_iwarps_form)
{
	cr_expect_lt(feed_hex(&s, TERM_HDR "11 00 03 00 0001 c1 40 00000001 0000000000000000"), 0);
	expect_received(1, 1, 0, 0);
	cr_expect(s.term.swapped);
	cr_expect_arr_eq(s.term.wire, "\x11\0\3\0", 4);
	cr_expect_str_eq(s.term.text, "bit-swapped");
}

/* Three Reads out and a Send before and after; the Terminate names one of them. */
static void with_work(const char *term)
{
	uint8_t out[128];
	char text[400];

	post_rdmap(&s, DDPS_OP_SEND, 0, 0, 0, 4);
	for (uint64_t i = 1; i <= 3; i++) {
		struct ddps_sge sge = get_rdmap_piece(&s, 0, 4);
		struct ddps_send_wr w = {
			.wr_id = i, .op = DDPS_OP_READ, .sge = &sge, .nsge = 1, .stag = 7, .to = i
		};

		ddps_rdmap_post_send(s.r, &w);
	}
	post_rdmap(&s, DDPS_OP_SEND, 4, 0, 0, 4);
	for (int i = 0; i < 5; i++)
		pull(&s, 128, out);
	snprintf(text, sizeof text, TERM_HDR "%s", term);
	cr_expect_lt(feed_hex(&s, text), 0);
	cr_assert_eq(s.nsq, 5);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(s.sq[i].wr_id, i);
}

static void expect_blamed(unsigned id)
{
	cr_expect_eq(s.sq[0].status, DDPS_WC_SUCCESS);
	for (unsigned i = 1; i < 5; i++)
		cr_expect_eq(s.sq[i].status, i == id ? DDPS_WC_REMOTE : DDPS_WC_FLUSHED);
}

Test(rdmap_term, names_a_read_by_its_msn)
{
	with_work("01 00 e0 00 002e 41 41 00000000 00000001 00000002 00000000 00000000 "
		  "0000000000000000 00000000 00000000 0000000000000000");
	expect_blamed(2);
}

Test(rdmap_term, names_a_read_without_its_header)
{
	with_work("12 02 c0 00 002e 41 41 00000000 00000001 00000003 00000000");
	expect_blamed(3);
}

Test(rdmap_term, names_a_send)
{
	with_work("12 05 c0 00 0016 41 43 00000000 00000000 00000002 00000000");
	expect_blamed(4);
}

Test(rdmap_term, names_a_send_that_has_completed)
{
	with_work("12 05 c0 00 0016 41 43 00000000 00000000 00000001 00000000");
	expect_blamed(99);
}

Test(rdmap_term, names_nothing_known)
{
	with_work("12 05 c0 00 0016 41 43 00000000 00000000 00000009 00000000");
	expect_blamed(99);
}

Test(rdmap_term, names_a_write_that_nobody_can_find)
{
	with_work("11 00 c0 00 0016 c1 40 00000002 0000000000000002");
	expect_blamed(99);
}

Test(rdmap_term, soft_iwarp_names_a_read_by_its_header)
{
	/* The MSN holds the size there; the Read Request is a true copy. */
	char text[300];

	snprintf(text, sizeof text,
		 "10 00 07 00 0000 41 41 00000000 00000001 00000004 00000000 %08x "
		 "0000000000000000 00000004 00000007 0000000000000003",
		 s.mr->stag);
	with_work(text);
	expect_blamed(3);
}

Test(rdmap_term, names_a_send_that_never_left)
{
	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	cr_expect_lt(feed_hex(&s, TERM_HDR "12 05 c0 00 0016 41 43 00000000 00000000 00000000 "
					   "00000000"),
		     0);
	expect_wc(s.sq[0], 1, DDPS_OP_SEND, DDPS_WC_FLUSHED);
}

Test(rdmap_term, names_a_read_that_was_answered)
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_SEND, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 2, 0, 0, 4);
	pull_only(&s, 128, out);
	pull_only(&s, 128, out);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_lt(feed_hex(&s, TERM_HDR "12 02 c0 00 002e 41 41 00000000 00000001 00000001 "
					   "00000000"),
		     0);
	ddps_rdmap_tx_done(s.r, 2);
	expect_wc(s.sq[1], 2, DDPS_OP_READ, DDPS_WC_FLUSHED);
}
