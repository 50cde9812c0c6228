/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that complete when the peer has them, Sends with immediate data, what a peer may do. */
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

TestSuite(rdmap_placed, .init = setup, .fini = teardown);

#define READ_0	"41 41 00000000 00000001 000000%02x 00000000 " ZERO_28
#define ZERO_28 "00000000 0000000000000000 00000000 00000000 0000000000000000"

static void expect_confirming_read(unsigned msn)
{
	char hex[256];

	snprintf(hex, sizeof hex, READ_0, msn);
	expect_pull(&s, hex);
}

static int answer_rdmap_placed(void)
{
	return feed_rresp(&s, 0, 0, true, "");
}

/* The Read goes out behind the Write; the Write completes by its response, and not before. */
Test(rdmap_placed, write_waits_for_the_response, .description = "5040-5.5-15 5040-5.2.1-18")
{
	uint8_t out[128];

	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), 0);
	expect_pull(&s, "c1 40 1a2b3c01 0000000000010000 00010203");
	expect_confirming_read(1);
	cr_expect_eq(pull(&s, 1500, out), 0);
	cr_expect_eq(s.nsq, 0);
	cr_expect_eq(s.r->reads_out, 1);
	cr_expect_eq(answer_rdmap_placed(), 0);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_WRITE, DDPS_WC_SUCCESS);
	cr_expect_eq(s.sq[0].len, 0);
	cr_expect_eq(s.r->reads_out, 0);
}

/* The response is here, but the LLP has a segment of the Write yet: its memory is not free. */
Test(rdmap_placed, memory_is_the_llps_until_it_lets_go)
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	cr_expect_gt(pull_only(&s, 1500, out), 0);
	cr_expect_eq(answer_rdmap_placed(), 0);
	cr_expect_eq(s.nsq, 0);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(s.nsq, 0);
	ddps_rdmap_tx_done(s.r, 1);
	cr_expect_eq(s.nsq, 1);
}

/* Eight posted behind each other share one Read; the ninth is not in that row. */
Test(rdmap_placed, a_row_shares_one_read)
{
	uint8_t out[128];
	unsigned reads = 0, writes = 0;

	close_rdmap_side(&s);
	side_init(&s, 16, 1, 1);
	side_start(&s, 4, 4);
	for (uint64_t i = 0; i < 10; i++)
		cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, i, DDPS_WR_PLACED, 0, 4), 0);
	while (pull(&s, 1500, out)) {
		reads += out[1] == 0x41;
		writes += out[1] == 0x40;
	}
	cr_expect_eq(writes, 10);
	cr_expect_eq(reads, 2);
	cr_expect_eq(answer_rdmap_placed(), 0);
	cr_expect_eq(s.nsq, 8);
	cr_expect_eq(answer_rdmap_placed(), 0);
	cr_expect_eq(s.nsq, 10);
	for (unsigned i = 0; i < s.nsq; i++)
		expect_wc(s.sq[i], i, DDPS_OP_WRITE, DDPS_WC_SUCCESS);
}

/* A request without the flag behind it leaves it its own Read, and completes in order. */
Test(rdmap_placed, others_do_not_confirm, .description = "5040-5.5-16")
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 2, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_READ, 3, 0, 0, 4);
	expect_pull(&s, "c1 40 1a2b3c01 0000000000010000 00010203");
	expect_confirming_read(1);
	while (pull(&s, 1500, out))
		;
	cr_expect_eq(s.nsq, 0, "the Send waits behind the Write");
	cr_expect_eq(answer_rdmap_placed(), 0);
	cr_expect_eq(s.nsq, 2);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(s.nsq, 3);
}

Test(rdmap_placed, counts_for_ord, .description = "5040-6.1-7")
{
	uint8_t out[128];

	close_rdmap_side(&s);
	side_init(&s, 8, 1, 1);
	side_start(&s, 1, 1);
	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_WRITE, 2, DDPS_WR_PLACED, 0, 4);
	cr_expect_gt(pull(&s, 1500, out), 0);
	expect_pull(&s, "c1 40 1a2b3c01 0000000000010000 00010203");
	cr_expect_eq(pull(&s, 1500, out), 0, "no second Read");
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	expect_confirming_read(2);
	cr_expect_eq(answer_rdmap_placed(), 0);
	cr_expect_eq(s.nsq, 2);
}

Test(rdmap_placed, refused_without_ord_and_after_the_peers_close)
{
	close_rdmap_side(&s);
	side_init(&s, 8, 1, 1);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), DDPS_E_STATE);
	side_start(&s, 1, 0);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), DDPS_E_LIMIT);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_READ, 1, DDPS_WR_PLACED, 0, 4), DDPS_E_INVAL);
	close_rdmap_side(&s);
	open_rdmap_side(&s);
	ddps_rdmap_peer_closed(s.r);
	cr_expect_eq(post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4), DDPS_E_STATE);
}

/* All that waits is flushed, covered ones too; nothing hangs and nothing is reported twice. */
Test(rdmap_placed, the_peers_close_flushes)
{
	uint8_t out[128];

	for (uint64_t i = 0; i < 3; i++)
		post_rdmap(&s, DDPS_OP_WRITE, i, DDPS_WR_PLACED, 0, 4);
	for (int i = 0; i < 2; i++)
		cr_expect_gt(pull(&s, 1500, out), 0);
	ddps_rdmap_peer_closed(s.r);
	while (pull(&s, 1500, out))
		;
	cr_assert_eq(s.nsq, 3);
	for (unsigned i = 0; i < 3; i++)
		expect_wc(s.sq[i], i, DDPS_OP_WRITE, DDPS_WC_FLUSHED);
}

/* A Terminate for the Write names it, as one for a Send does; the others are flushed. */
Test(rdmap_placed, a_terminate_names_the_write, .description = "5040-4.8-5")
{
	uint8_t out[128], t[64];
	/* Tagged buffer error, base and bounds; segment length and DDP header are there. */
	size_t n = unhex("11 01 c0 00 0012 c1 40 1a2b3c01 0000000000010000", t);

	post_rdmap(&s, DDPS_OP_WRITE, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_WRITE, 2, DDPS_WR_PLACED, 0, 4);
	while (pull(&s, 1500, out))
		;
	cr_expect_eq(s.nsq, 1);
	cr_expect_lt(feed_untagged(&s, 7, 0, 2, 1, 0, true, t, n), 0);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[1], 2, DDPS_OP_WRITE, DDPS_WC_REMOTE);
	cr_expect_eq(s.sq[1].term.layer, 1);
	cr_expect_eq(s.sq[1].term.etype, 1);
	cr_expect_eq(s.sq[1].term.code, 1);
}

Test(rdmap_placed, a_terminate_without_a_name_is_for_the_oldest)
{
	uint8_t out[128], t[64];
	size_t n = unhex("10 00 00 00", t); /* DDP, local catastrophic error */

	post_rdmap(&s, DDPS_OP_WRITE, 1, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 2, DDPS_WR_PLACED, 0, 4);
	post_rdmap(&s, DDPS_OP_WRITE, 3, DDPS_WR_PLACED, 0, 4);
	while (pull(&s, 1500, out))
		;
	cr_expect_lt(feed_untagged(&s, 7, 0, 2, 1, 0, true, t, n), 0);
	cr_assert_eq(s.nsq, 3);
	expect_wc(s.sq[1], 2, DDPS_OP_SEND, DDPS_WC_REMOTE);
	expect_wc(s.sq[2], 3, DDPS_OP_WRITE, DDPS_WC_FLUSHED);
	cr_expect_eq(s.sq[1].term.layer, 1);
}

/* A response that nobody asked octets of may not bring any. */
Test(rdmap_placed, a_response_with_octets_is_a_fault, .description = "5040-5.2.2-9")
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_WRITE, 1, DDPS_WR_PLACED, 0, 4);
	while (pull(&s, 1500, out))
		;
	cr_expect_lt(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(s.terms, 1);
	cr_expect_eq(s.mem[0], 0);
}

/* ---- Send with immediate data ---- */

static int post_send_imm(uint64_t id, unsigned flags)
{
	struct ddps_sge sge = get_rdmap_piece(&s, 0, 4);
	struct ddps_send_wr wr = { .wr_id = id,
				   .op = DDPS_OP_SEND_IMM,
				   .flags = flags,
				   .sge = &sge,
				   .nsge = 1,
				   .imm = { 0x11, 0x22, 0x33, 0x44, 5, 6, 7, 8 } };

	return ddps_rdmap_post_send(s.r, &wr);
}

Test(rdmap_placed, send_with_immediate_goes_out_as_two)
{
	cr_expect_eq(post_send_imm(1, 0), DDPS_E_UNSUPPORTED);
	s.r->rfc7306 = true;
	cr_expect_eq(post_send_imm(1, 0), DDPS_E_UNSUPPORTED);
	s.r->send_imm = true;
	cr_expect_eq(post_send_imm(1, DDPS_WR_SOLICITED), 0);
	expect_pull(&s, "41 48 00000000 00000000 00000001 00000000 11223344 fefefefe");
	cr_expect_eq(s.nsq, 0);
	expect_pull(&s, "41 45 00000000 00000000 00000002 00000000 00010203");
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 1, DDPS_OP_SEND_IMM, DDPS_WC_SUCCESS);
}

#define AHEAD	"41 48 00000000 00000000 0000000%d 00000000 11223344 fefefefe"
#define NO_IMM4 "\xfe\xfe\xfe\xfe"

static int feed_ahead(int msn)
{
	char hex[128];

	snprintf(hex, sizeof hex, AHEAD, msn);
	return feed_hex(&s, hex);
}

Test(rdmap_placed, send_with_immediate_takes_one_receive)
{
	s.r->rfc7306 = s.r->send_imm = true;
	post_rdmap_recv(&s, 1, 0, 64);
	post_rdmap_recv(&s, 2, 64, 64);
	cr_expect_eq(feed_ahead(1), 0);
	cr_expect_eq(s.nrq, 0);
	cr_expect_eq(feed_send(&s, 2, 0, true, "hello"), 0);
	cr_assert_eq(s.nrq, 1);
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_SUCCESS);
	cr_expect(s.rq[0].has_imm);
	cr_expect_eq(s.rq[0].len, 5);
	cr_expect_arr_eq(s.rq[0].imm, "\x11\x22\x33\x44" NO_IMM4, 8);
	cr_expect_arr_eq(s.mem, "hello", 5);
	/* The next Send has none. */
	cr_expect_eq(feed_send(&s, 3, 0, true, "more"), 0);
	cr_expect(!s.rq[1].has_imm);
}

Test(rdmap_placed, twice_ahead_is_a_fault)
{
	s.r->rfc7306 = s.r->send_imm = true;
	post_rdmap_recv(&s, 1, 0, 64);
	cr_expect_eq(feed_ahead(1), 0);
	cr_expect_lt(feed_ahead(2), 0);
	cr_expect_eq(s.terms, 1);
}

/* Who has not agreed takes it for what the RFC says that it is. */
Test(rdmap_placed, without_agreement_it_is_immediate_data, .description = "7306-6.3-3")
{
	s.r->rfc7306 = true;
	post_rdmap_recv(&s, 1, 0, 64);
	cr_expect_eq(feed_ahead(1), 0);
	cr_assert_eq(s.nrq, 1);
	cr_expect(s.rq[0].has_imm);
	cr_expect_eq(s.rq[0].len, 0);
}

/* ---- ddps_ep_allow ---- */

Test(rdmap_placed, what_is_not_allowed_is_refused, .description = "5040-8.1.1-1")
{
	static const unsigned right[] = { DDPS_REMOTE_WRITE, DDPS_REMOTE_READ };

	for (int without = 0; without < 2; without++) {
		for (int k = 0; k < 2; k++) {
			close_rdmap_side(&s);
			open_rdmap_side(&s);
			if (without)
				ddps_rdmap_allow(s.r, RIGHTS & ~right[k] & ~DDPS_LOCAL_WRITE);
			cr_expect_eq(!!(k ? feed_rreq(&s, 1, 4, s.mr->stag, 0)
					  : feed_write(&s, s.mr->stag, 0, true, "abcd")),
				     without, "right %d", k);
			cr_expect_eq(s.terms, (unsigned)without);
		}
	}
	cr_expect_eq(s.mem[0], 0);
}

/* It goes out unconfirmed: the message behind it must not arrive without it. */
Test(rdmap_placed, what_has_not_left_does_not_get_lost, .description = "5040-5.5-15")
{
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 0, 0, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 1, DDPS_WR_FENCE, 0, 4);
	post_rdmap(&s, DDPS_OP_WRITE, 2, DDPS_WR_PLACED, 0, 4);
	post_rdmap(&s, DDPS_OP_SEND, 3, 0, 0, 4);
	cr_expect_gt(pull(&s, 1500, out), 0);
	cr_expect_eq(pull(&s, 1500, out), 0, "the fence");
	ddps_rdmap_peer_closed(s.r);
	cr_expect_gt(pull(&s, 1500, out), 0);
	cr_expect_eq(out[1], 0x43);
	expect_pull(&s, "c1 40 1a2b3c01 0000000000010000 00010203");
	cr_expect_gt(pull(&s, 1500, out), 0);
	cr_expect_eq(out[1], 0x43);
	cr_expect_eq(pull(&s, 1500, out), 0, "no Read to confirm it");
	cr_assert_eq(s.nsq, 4);
	expect_wc(s.sq[0], 0, DDPS_OP_READ, DDPS_WC_FLUSHED);
	expect_wc(s.sq[1], 1, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	expect_wc(s.sq[2], 2, DDPS_OP_WRITE, DDPS_WC_FLUSHED);
	expect_wc(s.sq[3], 3, DDPS_OP_SEND, DDPS_WC_SUCCESS);
}
