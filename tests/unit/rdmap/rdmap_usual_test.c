/* SPDX-License-Identifier: BSD-2-Clause */
/* What takes the straight ways of rdmap_straight.c, and what does not. */
#include "rdmap_fixture.h"
#include "unit/mem_fixture.h"

/* The queues have memory only when something was posted; regions are found when they were used. */
static void open_warm_side(struct side *s)
{
	uint8_t out[256];

	open_rdmap_side(s);
	cr_assert_eq(post_rdmap(s, DDPS_OP_SEND, 1, 0, 0, 8), 0);
	cr_assert_eq(pull(s, 1500, out), 18 + 8);
	cr_assert_eq(post_rdmap_recv(s, 2, 0, 64), 0);
	cr_assert_eq(feed_send(s, 1, 0, true, "warm"), 0);
}

static bool posts_straight(struct side *s, const struct ddps_send_wr *wr)
{
	int err;

	s->r->straight_only = true;
	err = ddps_rdmap_post_send(s->r, wr);
	s->r->straight_only = false;
	return !err;
}

static bool posts_recv_straight(struct side *s, uint64_t wr_id, const struct ddps_sge *sge)
{
	int err;

	s->r->straight_only = true;
	err = ddps_rdmap_post_recv(s->r, wr_id, sge, 1);
	s->r->straight_only = false;
	return !err;
}

static bool pulls_straight(struct side *s, struct ddps_seg *seg, size_t mulpdu)
{
	int n;

	s->r->straight_only = true;
	n = ddps_rdmap_tx_next(s->r, seg, mulpdu);
	s->r->straight_only = false;
	return n > 0;
}

static bool takes_straight(struct side *s, const uint8_t *seg, size_t len)
{
	int err;

	s->r->straight_only = true;
	err = ddps_rdmap_rx_segment(s->r, seg, len);
	s->r->straight_only = false;
	return !err;
}

Test(rdmap_straight, the_usual_way_out)
{
	static struct side s;
	struct ddps_seg seg;
	struct ddps_sge sge, two[2];
	struct ddps_send_wr usual = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 }, wr;
	struct ddps_rreq q = { .size = 8, .src_to = 100 };
	uint8_t in[256], body[DDPS_RREQ_LEN];
	size_t len;

	open_warm_side(&s);
	q.src_stag = s.mr->stag;
	sge = get_rdmap_piece(&s, 0, 40);
	two[0] = two[1] = sge;
	wr = usual;
	wr.nsge = 2;
	wr.sge = two;
	cr_expect_not(posts_straight(&s, &wr), "two pieces");
	wr = usual;
	wr.flags = DDPS_WR_FENCE;
	cr_expect_not(posts_straight(&s, &wr), "a fence");
	s.r->draining = true;
	cr_expect_not(posts_straight(&s, &usual), "no more is taken");
	s.r->draining = false;
	sge.lkey ^= 1;
	cr_expect_not(posts_straight(&s, &usual), "no such key");
	sge.lkey ^= 1;
	for (unsigned i = 0; i < 8; i++) {
		wr = usual;
		wr.op = i & 1 ? DDPS_OP_WRITE : DDPS_OP_SEND;
		if (s.r->sq.tail - s.r->sq.head == s.r->sq.mem.size)
			break;
		cr_expect(posts_straight(&s, &wr), "%u", i);
	}
	cr_assert_gt(s.r->sq.tail - s.r->sq.head, 1);
	cr_expect_not(posts_straight(&s, &usual), "no room");
	cr_expect_not(pulls_straight(&s, &seg, DDPS_SEG_HDR_MAX - 1), "too narrow for RDMAP");
	ddps_rreq_encode(&q, body);
	len = make_untagged_rdmap(in, DDPS_OP_WIRE_READ_REQ, 0, DDPS_QN_READ, 1, 0, true, body,
				  sizeof body);
	cr_assert_eq(feed_rdmap(&s, in, len), 0);
	cr_expect_not(pulls_straight(&s, &seg, 1500), "a response takes its turn");
	cr_expect_eq(pull(&s, 1500, in), DDPS_DDP_TAGGED_LEN + q.size);
	cr_expect(pulls_straight(&s, &seg, 1500));
	cr_expect(pulls_straight(&s, &seg, 1500));
	close_rdmap_side(&s);
}

Test(rdmap_straight, the_usual_way_in)
{
	static struct side s;
	struct ddps_sge sge;
	uint8_t seg[256];
	size_t len;

	open_warm_side(&s);
	sge = get_rdmap_piece(&s, 0, 40);
	len = make_untagged_rdmap(seg, DDPS_OP_WIRE_SEND, 0, 0, 2, 0, true, "hello", 5);
	cr_expect_not(takes_straight(&s, seg, len), "no receive");
	cr_expect(posts_recv_straight(&s, 3, &sge));
	s.r->expect_rtr = DDPS_RTR_SEND;
	cr_expect_not(takes_straight(&s, seg, len), "the first message is looked at");
	s.r->expect_rtr = 0;
	for (size_t n = 0; n <= DDPS_DDP_UNTAGGED_LEN; n++) {
		uint8_t *cut = malloc(n + !n);

		memcpy(cut, seg, n);
		cr_expect_not(takes_straight(&s, cut, n), "cut to %zu octets", n);
		free(cut);
	}
	cr_expect(takes_straight(&s, seg, len));
	cr_expect_arr_eq(s.mem, "hello", 5);
	cr_expect_eq(s.rq[s.nrq - 1].wr_id, 3);
	cr_expect_not(takes_straight(&s, seg, len), "it is not the next one any more");
	len = make_tagged_rdmap(seg, DDPS_OP_WIRE_WRITE, s.mr->stag, 100, true, "there");
	cr_expect(takes_straight(&s, seg, len));
	cr_expect_arr_eq(s.mem + 100, "there", 5);
	len = make_tagged_rdmap(seg, DDPS_OP_WIRE_WRITE, s.mr->stag, 100, false, "there");
	cr_expect_not(takes_straight(&s, seg, len), "nothing keeps messages in parts yet");
	close_rdmap_side(&s);
}

/* As long as the stream is one among others, and the oldest buffer takes the message. */
Test(rdmap_straight, into_a_shared_queue)
{
	static struct side s;
	struct ddps_srq srq = { 0 };
	struct ddps_sge sge[2];
	struct ddps_rdmap_cfg cfg = {
		.pd = &s.pd,
		.sq_depth = 4,
		.max_sge = 1,
		.srq = &srq,
		.srq_share = 2,
		.up = &side_up,
		.user = &s,
	};
	uint8_t seg[256];
	size_t len;

	side_init(&s, 4, 4, 4);
	cr_assert_eq(ddps_srq_init(&srq, &s.pd, 2, 2), 0);
	ddps_rdmap_free(s.r);
	cr_assert_eq(ddps_rdmap_new(&s.r, &cfg), 0);
	side_start(&s, 4, 4);
	len = make_untagged_rdmap(seg, DDPS_OP_WIRE_SEND, 0, 0, 1, 0, true, "hello", 5);
	cr_expect_not(takes_straight(&s, seg, len), "no buffer");
	for (uint32_t i = 0; i < 3; i++) {
		sge[0] = get_rdmap_piece(&s, 8 * (uint64_t)i, 8);
		cr_assert_eq(ddps_srq_post(&srq, i, sge, 1), i < 2 ? 0 : DDPS_E_LIMIT);
	}
	for (uint32_t i = 0; i < 2; i++) {
		len = make_untagged_rdmap(seg, DDPS_OP_WIRE_SEND, 0, 0, 1 + i, 0, true, "hello", 5);
		cr_expect(takes_straight(&s, seg, len), "%u", i);
		expect_wc(s.rq[i], i, DDPS_OP_RECV, DDPS_WC_SUCCESS);
		cr_expect_arr_eq(s.mem + 8 * i, "hello", 5);
	}
	cr_expect_eq(srq.count, 0);
	sge[0] = sge[1] = get_rdmap_piece(&s, 100, 4);
	cr_assert_eq(ddps_srq_post(&srq, 2, sge, 1), 0);
	len = make_untagged_rdmap(seg, DDPS_OP_WIRE_SEND, 0, 0, 3, 0, true, "four", 4);
	cr_expect_not(takes_straight(&s, seg, len), "it has its share");
	ddps_rdmap_recv_fetched(s.r);
	cr_expect(takes_straight(&s, seg, len));
	ddps_rdmap_recv_fetched(s.r);
	cr_assert_eq(ddps_srq_post(&srq, 3, sge, 2), 0);
	len = make_untagged_rdmap(seg, DDPS_OP_WIRE_SEND, 0, 0, 4, 0, true, "four", 4);
	cr_expect_not(takes_straight(&s, seg, len), "two pieces");
	cr_expect_eq(feed_rdmap(&s, seg, len), 0);
	ddps_rdmap_recv_fetched(s.r);
	cr_assert_eq(ddps_srq_post(&srq, 4, sge, 1), 0);
	len = make_untagged_rdmap(seg, DDPS_OP_WIRE_SEND, 0, 0, 5, 0, true, "five!", 5);
	cr_expect_not(takes_straight(&s, seg, len), "longer than the buffer");
	ddps_rdmap_free(s.r);
	s.r = NULL;
	ddps_srq_fini(&srq);
	close_rdmap_side(&s);
}

Test(rdmap_straight, a_read_out_and_in)
{
	static struct side s;
	struct ddps_sge sge;
	struct ddps_send_wr wr = { .op = DDPS_OP_READ, .sge = &sge, .nsge = 1, .stag = 7, .to = 9 };
	/* The queue of requests grows from one to two and to four places, which is IRD. */
	const bool has_place[] = { true, false, false, true, false };
	const size_t len = DDPS_DDP_UNTAGGED_LEN + DDPS_RREQ_LEN;
	struct ddps_rreq q;
	uint8_t in[256], body[DDPS_RREQ_LEN];
	struct ddps_seg seg;

	open_warm_side(&s);
	sge = get_rdmap_piece(&s, 0, 40);
	s.r->peer_closed = true;
	cr_expect_not(posts_straight(&s, &wr), "nobody answers");
	s.r->peer_closed = false;
	sge.len = 0;
	cr_expect_not(posts_straight(&s, &wr), "of nothing");
	sge.len = 40;
	for (int i = 0; i < 5; i++)
		cr_assert(posts_straight(&s, &wr));
	for (int i = 0; i < 4; i++) {
		cr_expect(pulls_straight(&s, &seg, 1500));
		cr_expect_eq(seg.hdr_len, len);
	}
	cr_expect_not(pulls_straight(&s, &seg, 1500), "more than ORD");
	q = (struct ddps_rreq){ .size = 40, .src_stag = s.mr->stag, .src_to = 100 };
	ddps_rreq_encode(&q, body);
	for (uint32_t i = 0; i < 5; i++) {
		make_untagged_rdmap(in, DDPS_OP_WIRE_READ_REQ, 0, DDPS_QN_READ, i + 1, 0, true,
				    body, sizeof body);
		cr_expect_not(takes_straight(&s, in, len - 1), "cut");
		cr_expect_eq(takes_straight(&s, in, len), has_place[i], "%u", i);
		cr_assert(has_place[i] || i == 4 || !feed_rdmap(&s, in, len));
	}
	close_rdmap_side(&s);
}

Test(rdmap_straight, a_message_in_parts_in)
{
	static struct side s;
	struct ddps_sge sge;
	uint8_t seg[256];
	size_t len;

	open_warm_side(&s);
	sge = get_rdmap_piece(&s, 0, 40);
	cr_assert(posts_recv_straight(&s, 3, &sge));
	for (int i = 0; i < 2; i++) { /* the first message in parts brings the memory for them */
		len = make_tagged_rdmap(seg, DDPS_OP_WIRE_WRITE, s.mr->stag, 100, false, "first");
		cr_expect_eq(takes_straight(&s, seg, len), i);
		cr_assert(i || !feed_rdmap(&s, seg, len));
		len = make_tagged_rdmap(seg, DDPS_OP_WIRE_WRITE, s.mr->stag ^ 1, 105, false,
					"other");
		cr_expect_not(takes_straight(&s, seg, len), "for another region");
		len = make_tagged_rdmap(seg, DDPS_OP_WIRE_READ_RESP, s.mr->stag, 105, false,
					"other");
		cr_expect_not(takes_straight(&s, seg, len), "of another kind");
		len = make_untagged_rdmap(seg, DDPS_OP_WIRE_SEND, 0, 0, 2, 0, true, "hello", 5);
		cr_expect_not(takes_straight(&s, seg, len), "it waits for the Write");
		len = make_tagged_rdmap(seg, DDPS_OP_WIRE_WRITE, s.mr->stag, 105, true, "there");
		cr_expect(takes_straight(&s, seg, len));
		cr_expect_arr_eq(s.mem + 100, "firstthere", 10);
	}
	close_rdmap_side(&s);
}

Test(rdmap_straight, a_message_in_parts_out)
{
	static struct side s;
	struct ddps_sge sge;
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1 };
	const size_t room = 100 - DDPS_DDP_TAGGED_LEN;
	struct ddps_seg seg;

	open_warm_side(&s);
	sge = get_rdmap_piece(&s, 0, 200);
	wr.stag = s.mr->stag;
	cr_assert(posts_straight(&s, &wr));
	for (size_t off = 0; off < sge.len; off += room) {
		size_t len = sge.len - off < room ? sge.len - off : room;

		cr_expect(pulls_straight(&s, &seg, 100), "octet %zu", off);
		cr_expect_eq(seg.pay_len, len);
		cr_expect_eq(seg.pay[0].iov_base, s.mem + off);
		cr_expect_eq(ddps_ddp_is_last(seg.hdr[0]), off + len == sge.len);
	}
	cr_expect_not(pulls_straight(&s, &seg, 100), "there is no more");
	wr.op = DDPS_OP_SEND;
	cr_assert(posts_straight(&s, &wr));
	cr_expect_not(pulls_straight(&s, &seg, 100), "a long Send");
	close_rdmap_side(&s);
}

/* ---- direct placement: the LLP reads payload straight into its buffer ---- */

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
