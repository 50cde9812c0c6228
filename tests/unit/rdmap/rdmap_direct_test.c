/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct placement: the LLP reads payload straight into its buffer. */
#include "rdmap_fixture.h"
#include "unit/mem_fixture.h"

static struct side s;

static void setup(void)
{
	open_rdmap_side(&s);
}

static void teardown(void)
{
	close_rdmap_side(&s);
}

TestSuite(rdmap_direct, .init = setup, .fini = teardown);

/* Offer @seg; place it @step octets at a time.  Return what rx_direct_end says. */
static int direct(const uint8_t *seg, size_t len, size_t step)
{
	size_t hdr = ddps_rdmap_rx_direct(s.r, seg, len < 18 ? len : 18, len);
	struct iovec iov[8];

	cr_assert_eq(hdr, seg[0] & 0x80 ? 14 : 18);
	for (size_t off = 0; off < len - hdr;) {
		int n = ddps_rdmap_rx_direct_iov(s.r, off, iov, 8);
		size_t left = step;

		cr_assert_gt(n, 0);
		for (int i = 0; i < n && left; i++) {
			size_t m = iov[i].iov_len < left ? iov[i].iov_len : left;

			memcpy(iov[i].iov_base, seg + hdr + off, m);
			off += m;
			left -= m;
		}
	}
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, len - hdr, iov, 8), DDPS_E_INVAL);
	return ddps_rdmap_rx_direct_end(s.r);
}

Test(rdmap_direct, write)
{
	uint8_t seg[64];

	cr_expect_eq(direct(seg, make_tagged_rdmap(seg, 0, s.mr->stag, 10, false, "abcdefgh"), 3),
		     0);
	cr_expect_eq(feed_write(&s, s.mr->stag, 18, false, "ij"), 0);
	cr_expect_eq(direct(seg, make_tagged_rdmap(seg, 0, s.mr->stag, 20, true, "k"), 1), 0);
	cr_expect_arr_eq(s.mem + 10, "abcdefghijk", 11);
	cr_expect_eq(ddps_rdmap_rx_direct_end(s.r), DDPS_E_INVAL, "once only");
}

Test(rdmap_direct, send_over_pieces)
{
	struct ddps_sge sge[3] = { get_rdmap_piece(&s, 0, 3), get_rdmap_piece(&s, 100, 2),
				   get_rdmap_piece(&s, 200, 10) };
	uint8_t seg[64];

	ddps_rdmap_post_recv(s.r, 1, sge, 3);
	cr_expect_eq(direct(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 0, false, "ab", 2), 9), 0);
	cr_expect_eq(direct(seg, make_untagged_rdmap(seg, 3, 0, 0, 1, 2, true, "cdefgh", 6), 9), 0);
	cr_expect_arr_eq(s.mem, "abc", 3);
	cr_expect_arr_eq(s.mem + 100, "de", 2);
	cr_expect_arr_eq(s.mem + 200, "fgh", 3);
	cr_assert_eq(s.nrq, 1);
	cr_expect_eq(s.rq[0].len, 8);
}

Test(rdmap_direct, read_response)
{
	uint8_t seg[64];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 100, 8);
	pull(&s, 128, seg);
	cr_expect_eq(direct(seg, make_tagged_rdmap(seg, 2, s.mr->stag, 100, false, "abc"), 2), 0);
	cr_expect_eq(direct(seg, make_tagged_rdmap(seg, 2, s.mr->stag, 103, true, "defgh"), 2), 0);
	cr_expect_eq(s.nsq, 1);
	cr_expect_arr_eq(s.mem + 100, "abcdefgh", 8);
}

Test(rdmap_direct, what_is_not_for_it_comes_whole)
{
	static const char *const seg[] = {
		"c1 40 00000000 0000000000000000",		      /* no payload */
		"41 43 00000000 00000000 00000001 00000000",	      /* no payload */
		"41 41 00000000 00000001 00000001 00000000 00000000", /* Read Request */
		TERM_HDR "00 00 00 00",				      /* Terminate */
		"c0 40 00000000 0000000000000000 00",		      /* version */
		"c1 00 00000000 0000000000000000 00",		      /* RDMAP version */
		"c1 4f 00000000 0000000000000000 00",		      /* opcode */
		"c1 40 00000000 0000000000000000 00",		      /* STag */
		"41 43 00000000 00000000 00000002 00000000 00",	      /* MSN */
		"41 43 00000000 00000000 00000001 00000000 00",	      /* no buffer */
		"c1 42 00000000 0000000000000000 00",		      /* no Read */
		"c1 40 00000000",				      /* short */
		"41",
	};
	uint8_t raw[100];

	for (size_t i = 0; i < sizeof seg / sizeof *seg; i++) {
		size_t n = unhex(seg[i], raw);
		uint8_t *copy = malloc(n);

		memcpy(copy, raw, n);
		cr_expect_eq(ddps_rdmap_rx_direct(s.r, copy, n, n), 0, "row %zu", i);
		free(copy);
	}
	cr_expect_eq(s.terms, 0, "acted on only when it comes whole");
	cr_expect_lt(feed_hex(&s, seg[7]), 0);
	cr_expect_eq(s.terms, 1);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, raw, 1, 1), 0);
}

Test(rdmap_direct, first_18_octets_are_enough)
{
	uint8_t seg[64], *head = malloc(18);
	size_t len = make_tagged_rdmap(seg, 0, s.mr->stag, 10, true, "abcdefgh");

	memcpy(head, seg, 18);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, head, 18, len), 14);
	len = make_tagged_rdmap(seg, 0, s.mr->stag, 4090, true, "abcdefgh");
	memcpy(head, seg, 18);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, head, 18, len), 0, "bounds use the whole length");
	free(head);
}

Test(rdmap_direct, without_memory_it_comes_whole)
{
	uint8_t seg[64];
	const size_t len = make_tagged_rdmap(seg, 0, s.mr->stag, 10, true, "abcdefgh");
	struct iovec iov;

	mem_fail(1);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 0);
	cr_assert(mem_failed());
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_rdmap_rx_direct_end(s.r), DDPS_E_INVAL);
	cr_expect_eq(ddps_rdmap_rx_segment(s.r, seg, len), 0);
	cr_expect_arr_eq(s.mem + 10, "abcdefgh", 8);
	cr_expect_eq(direct(seg, len, 3), 0, "the next one finds some");
}

Test(rdmap_direct, memory_revoked_between_two_reads, .description = "5040-8.1.1-6 5042-6.2.2-2")
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 10, RIGHTS | DDPS_ZERO_BASED);
	uint32_t stag = mr->stag;
	struct iovec iov;
	uint8_t seg[64];
	char want[200];
	size_t len = make_tagged_rdmap(seg, 0, stag, 0, true, "abcdefgh");

	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 14);
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), 1);
	ddps_stag_remove(mr);
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 4, &iov, 1), DDPS_E_ACCESS);
	cr_expect_lt(ddps_rdmap_rx_direct_iov(s.r, 4, &iov, 1), 0);
	cr_expect_lt(ddps_rdmap_rx_direct_end(s.r), 0);
	snprintf(want, sizeof want, TERM_HDR "11 00 c0 00 0016 c1 40 %08x 0000000000000000", stag);
	expect_pull(&s, want);
	cr_expect_eq(s.terms, 1);
}

Test(rdmap_direct, receive_revoked_between_two_reads)
{
	struct ddps_mr *mr = side_reg(&s, s.mem, 10, DDPS_LOCAL_WRITE);
	struct ddps_sge sge = { s.mem, 10, mr->stag };
	struct iovec iov;
	uint8_t seg[64];
	size_t len = make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "abcdefgh", 8);

	ddps_rdmap_post_recv(s.r, 1, &sge, 1);
	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 18);
	ddps_stag_remove(mr);
	cr_expect_eq(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), DDPS_E_ACCESS);
	expect_term(&s, "10 00 00 00");
	expect_wc(s.rq[0], 1, DDPS_OP_RECV, DDPS_WC_LOCAL_ACCESS);
}

Test(rdmap_direct, stream_ended_between_two_reads)
{
	struct iovec iov;
	uint8_t seg[64];
	size_t len = make_tagged_rdmap(seg, 0, s.mr->stag, 0, true, "abcdefgh");

	cr_expect_eq(ddps_rdmap_rx_direct(s.r, seg, 18, len), 14);
	ddps_rdmap_terminate(s.r, DDPS_E_LIMIT, (struct ddps_triple){ 0, 0, 0 }, "local");
	cr_expect_lt(ddps_rdmap_rx_direct_iov(s.r, 0, &iov, 1), 0);
	cr_expect_lt(ddps_rdmap_rx_direct_end(s.r), 0);
	expect_term(&s, "00 00 00 00");
}
