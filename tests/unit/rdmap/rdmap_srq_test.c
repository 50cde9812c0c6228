/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that share a receive queue. */
#include "rdmap_fixture.h"

#define N 8

static struct side home; /* has the memory */
static struct side s[N];
static struct ddps_srq srq;
static unsigned lows;

static void on_low(void *user)
{
	++*(unsigned *)user;
}

/* Stream @i, with a share of @share buffers. */
static void make_rdmap_srq_stream(unsigned i, uint32_t share, enum ddps_no_recv no_recv)
{
	struct ddps_rdmap_cfg cfg = { .pd = &home.pd,
				      .stream = (uintptr_t)&s[i],
				      .sq_depth = 4,
				      .max_sge = 1,
				      .no_recv = no_recv,
				      .srq = &srq,
				      .srq_share = share,
				      .up = &side_up,
				      .user = &s[i] };

	memset(&s[i], 0, sizeof s[i]);
	cr_assert_eq(ddps_rdmap_new(&s[i].r, &cfg), 0);
	side_start(&s[i], 4, 4);
}

static void begin_rdmap_srq(uint32_t depth, uint32_t share, enum ddps_no_recv no_recv)
{
	side_init(&home, 4, 4, 4);
	srq = (struct ddps_srq){ .low = on_low, .user = &lows };
	cr_assert_eq(ddps_srq_init(&srq, &home.pd, depth, 3), 0);
	for (unsigned i = 0; i < N; i++)
		make_rdmap_srq_stream(i, share, no_recv);
	cr_assert_eq(srq.users, N);
}

static void end_rdmap_srq(void)
{
	for (unsigned i = 0; i < N; i++)
		ddps_rdmap_free(s[i].r);
	cr_expect_eq(srq.users, 0);
	cr_expect_eq(srq.bound, 0);
	ddps_srq_fini(&srq);
	close_rdmap_side(&home);
}

/* 16 octets at 16 * @id. */
static int post_shared(uint64_t id)
{
	struct ddps_sge sge = get_rdmap_piece(&home, 16 * id, 16);

	return ddps_srq_post(&srq, id, &sge, 1);
}

static void expect_recv(unsigned i, unsigned nth, uint64_t id)
{
	cr_assert_gt(s[i].nrq, nth, "stream %u", i);
	expect_wc(s[i].rq[nth], id, DDPS_OP_RECV, DDPS_WC_SUCCESS);
}

Test(rdmap_srq, buffers_go_in_the_order_of_first_segments, .description = "5041-5.3-1")
{
	begin_rdmap_srq(8, 8, DDPS_NO_RECV_TERMINATE);
	for (uint64_t id = 0; id < 4; id++)
		cr_expect_eq(post_shared(id), 0);
	cr_expect_eq(feed_send(&s[2], 1, 0, false, "ab"), 0); /* takes 0 */
	cr_expect_eq(feed_send(&s[5], 1, 0, true, "cd"), 0);  /* 1, and is whole first */
	cr_expect_eq(feed_send(&s[0], 1, 0, true, ""), 0);    /* 2 */
	cr_expect_eq(feed_send(&s[2], 1, 2, true, "ef"), 0);
	cr_expect_eq(feed_send(&s[2], 2, 0, true, "g"), 0); /* 3 */
	expect_recv(5, 0, 1);
	expect_recv(0, 0, 2);
	expect_recv(2, 0, 0);
	expect_recv(2, 1, 3);
	cr_expect_arr_eq(home.mem, "abef", 4);
	cr_expect_arr_eq(home.mem + 16, "cd", 2);
	cr_expect_arr_eq(home.mem + 48, "g", 1);
	cr_expect_eq(srq.count, 0);
	cr_expect_lt(feed_send(&s[1], 1, 0, true, "h"), 0);
	cr_expect_eq(s[1].term.triple.code, 0x02);
	cr_expect_eq(s[2].terms, 0, "the others live on");
	end_rdmap_srq();
}

Test(rdmap_srq, direct_placement_binds_too)
{
	uint8_t seg[64];
	size_t n = make_untagged_rdmap(seg, 3, 0, 0, 1, 0, true, "abcdefgh", 8);
	struct iovec iov[4];

	begin_rdmap_srq(8, 8, DDPS_NO_RECV_TERMINATE);
	cr_expect_eq(post_shared(1), 0);
	cr_expect_eq(ddps_rdmap_rx_direct(s[0].r, seg, 18, n), 18);
	/* nobody else gets it meanwhile */
	cr_expect_lt(feed_send(&s[1], 1, 0, true, "x"), 0);
	cr_assert_eq(ddps_rdmap_rx_direct_iov(s[0].r, 0, iov, 4), 1);
	cr_expect_eq(iov[0].iov_base, home.mem + 16);
	cr_expect_eq(ddps_rdmap_rx_direct_end(s[0].r), 0);
	expect_recv(0, 0, 1);
	end_rdmap_srq();
}

/* One who takes receives out himself, as queue pairs for datagrams do. */
Test(rdmap_srq, receives_are_taken_out_in_order)
{
	struct ddps_sge sge[3] = { { NULL, 0, 0 } };
	uint32_t nsge = 9;
	uint64_t id = 9;

	begin_rdmap_srq(2, 8, DDPS_NO_RECV_TERMINATE);
	cr_expect_eq(ddps_srq_pop(&srq, &id, sge, &nsge), DDPS_E_AGAIN);
	cr_expect_eq(ddps_srq_post(&srq, 1, NULL, 0), 0);
	cr_expect_eq(post_shared(2), 0);
	cr_expect_eq(ddps_srq_pop(&srq, &id, sge, &nsge), 0);
	cr_expect_eq(id, 1);
	cr_expect_eq(nsge, 0, "one without memory");
	cr_expect_null(sge[0].addr);
	cr_expect_eq(ddps_srq_pop(&srq, &id, sge, &nsge), 0);
	cr_expect_eq(id, 2);
	cr_assert_eq(nsge, 1);
	cr_expect_eq(sge[0].addr, home.mem + 32);
	cr_expect_eq(ddps_srq_pop(&srq, &id, sge, &nsge), DDPS_E_AGAIN);
	end_rdmap_srq();
}

Test(rdmap_srq, what_may_be_posted)
{
	struct ddps_sge sge[4] = { { home.mem, 1, 0 } };
	struct ddps_mr *bound;
	uint8_t own[4];

	begin_rdmap_srq(3, 8, DDPS_NO_RECV_TERMINATE);
	for (int i = 0; i < 4; i++)
		sge[i] = get_rdmap_piece(&home, 0, 4);
	cr_expect_eq(ddps_rdmap_post_recv(s[0].r, 1, sge, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_post(&srq, 1, sge, 4), DDPS_E_INVAL);
	cr_expect_eq(ddps_srq_post(&srq, 1, NULL, 1), DDPS_E_INVAL);
	sge[1].lkey++;
	cr_expect_eq(ddps_srq_post(&srq, 1, sge, 2), DDPS_E_ACCESS);
	cr_assert_eq(ddps_stag_add(&home.pd, own, 4, DDPS_LOCAL_WRITE, (uintptr_t)&s[0], &bound),
		     0);
	sge[0] = (struct ddps_sge){ own, 4, bound->stag };
	cr_expect_eq(ddps_srq_post(&srq, 1, sge, 1), DDPS_E_ACCESS, "bound to one stream");
	cr_assert_eq(ddps_stag_add(&home.pd, own, 4, DDPS_LOCAL_WRITE, 1, &bound), 0);
	sge[0].lkey = bound->stag;
	cr_expect_eq(ddps_srq_post(&srq, 1, sge, 1), DDPS_E_ACCESS, "whichever that is");
	for (int i = 0; i < 3; i++)
		sge[i] = get_rdmap_piece(&home, 100u * (unsigned)i, 2);
	cr_expect_eq(ddps_srq_post(&srq, 1, sge, 3), 0);
	cr_expect_eq(ddps_srq_post(&srq, 2, NULL, 0), 0);
	cr_expect_eq(ddps_srq_post(&srq, 3, NULL, 0), 0);
	cr_expect_eq(ddps_srq_post(&srq, 4, NULL, 0), DDPS_E_LIMIT);
	cr_expect_eq(feed_send(&s[0], 1, 0, false, "abcde"), 0);
	cr_expect_eq(ddps_srq_post(&srq, 4, NULL, 0), DDPS_E_LIMIT, "still being filled");
	cr_expect_eq(feed_send(&s[0], 1, 5, true, "f"), 0);
	cr_expect_eq(ddps_srq_post(&srq, 4, NULL, 0), 0);
	cr_expect_arr_eq(home.mem + 100, "cd", 2);
	cr_expect_arr_eq(home.mem + 200, "ef", 2);
	end_rdmap_srq();
}

Test(rdmap_srq, those_that_wait_are_served_in_turn)
{
	static const unsigned order[N] = { 3, 1, 7, 0, 2, 6, 5, 4 };

	begin_rdmap_srq(8, 8, DDPS_NO_RECV_STALL);
	for (unsigned i = 0; i < N; i++)
		cr_expect_eq(feed_send(&s[order[i]], 1, 0, true, "abc"), DDPS_LLP_HOLD);
	for (uint64_t id = 0; id < N; id++) {
		unsigned i = order[id];

		cr_expect_eq(post_shared(id), 0);
		cr_expect_eq(s[i].ready, 1);
		/* it is kept for that one, whoever comes first */
		cr_expect_eq(feed_send(&s[order[(id + 1) % N]], 1 + (id == 7), 0, true, "abc"),
			     DDPS_LLP_HOLD);
		cr_expect_eq(feed_send(&s[i], 1, 0, true, "abc"), 0);
		expect_recv(i, 0, id);
	}
	for (unsigned i = 0; i < N; i++)
		cr_expect_eq(s[i].ready, 1);
	end_rdmap_srq();
}

Test(rdmap_srq, one_that_waits_and_ends_is_passed_over)
{
	begin_rdmap_srq(8, 8, DDPS_NO_RECV_STALL);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(feed_send(&s[i], 1, 0, true, "abc"), DDPS_LLP_HOLD);
	ddps_rdmap_flush(s[0].r);
	cr_expect_eq(s[0].nrq, 0, "it had taken nothing");
	ddps_rdmap_free(s[1].r);
	s[1].r = NULL;
	cr_expect_eq(post_shared(9), 0);
	cr_expect_eq(feed_send(&s[2], 1, 0, true, "abc"), 0);
	expect_recv(2, 0, 9);
	make_rdmap_srq_stream(1, 8, DDPS_NO_RECV_STALL);
	end_rdmap_srq();
}

Test(rdmap_srq, an_end_flushes_only_what_was_taken)
{
	begin_rdmap_srq(8, 8, DDPS_NO_RECV_STALL);
	for (uint64_t id = 0; id < 4; id++)
		cr_expect_eq(post_shared(id), 0);
	cr_expect_eq(feed_send(&s[0], 1, 0, false, "abc"), 0);
	cr_expect_eq(feed_send(&s[1], 1, 0, false, "abc"), 0);
	ddps_rdmap_flush(s[0].r);
	cr_assert_eq(s[0].nrq, 1);
	expect_wc(s[0].rq[0], 0, DDPS_OP_RECV, DDPS_WC_FLUSHED);
	cr_expect_eq(srq.count, 2);
	cr_expect_eq(feed_send(&s[1], 1, 3, true, "d"), 0);
	expect_recv(1, 0, 1);
	end_rdmap_srq();
}

Test(rdmap_srq, what_a_freed_stream_had_bound_is_the_next_ones)
{
	begin_rdmap_srq(2, 2, DDPS_NO_RECV_STALL);
	cr_expect_eq(post_shared(1), 0);
	cr_expect_eq(post_shared(2), 0);
	cr_expect_eq(feed_send(&s[0], 1, 0, false, "abc"), 0);
	ddps_rdmap_free(s[0].r);
	cr_expect_eq(srq.count, 2);
	make_rdmap_srq_stream(0, 8, DDPS_NO_RECV_STALL);
	cr_expect_eq(feed_send(&s[0], 1, 0, false, "abc"), 0);
	cr_expect_eq(feed_send(&s[1], 1, 0, true, "abc"), 0);
	expect_recv(1, 0, 2);
	cr_expect_eq(feed_send(&s[2], 1, 0, true, "abc"), DDPS_LLP_HOLD);
	ddps_rdmap_free(s[0].r); /* its buffer goes to the one that waits */
	cr_expect_eq(s[2].ready, 1);
	cr_expect_eq(feed_send(&s[2], 1, 0, true, "abc"), 0);
	expect_recv(2, 0, 1);
	make_rdmap_srq_stream(0, 8, DDPS_NO_RECV_STALL);
	end_rdmap_srq();
}

/* At its place in the ring, wherever that begins. */
Test(rdmap_srq, what_a_freed_stream_had_bound_is_the_oldest)
{
	begin_rdmap_srq(5, 5, DDPS_NO_RECV_TERMINATE);
	for (uint64_t round = 0; round < 5; round++) {
		for (uint64_t id = 0; id < 4; id++)
			cr_expect_eq(post_shared(id), 0);
		cr_expect_eq(feed_send(&s[0], 1, 0, false, "abc"), 0);
		ddps_rdmap_free(s[0].r);
		make_rdmap_srq_stream(0, 5, DDPS_NO_RECV_TERMINATE);
		for (uint32_t i = 0; i < 4; i++) {
			cr_expect_eq(feed_send(&s[1], 4 * (uint32_t)round + i + 1, 0, true, "x"),
				     0);
			expect_recv(1, 4 * (unsigned)round + i, i);
			ddps_rdmap_recv_fetched(s[1].r);
		}
		cr_expect_eq(srq.count, 0);
	}
	end_rdmap_srq();
}

Test(rdmap_srq, one_that_was_served_gets_in_line_again)
{
	begin_rdmap_srq(8, 8, DDPS_NO_RECV_STALL);
	for (uint32_t msn = 1; msn <= 3; msn++) {
		for (unsigned i = 0; i < 2; i++)
			cr_expect_eq(feed_send(&s[i], msn, 0, true, "abc"), DDPS_LLP_HOLD);
		for (unsigned i = 0; i < 2; i++) {
			cr_expect_eq(post_shared(i), 0);
			cr_expect_eq(srq.count, 0, "it is bound at once");
			cr_expect_eq(s[i].ready, msn);
		}
		for (unsigned i = 0; i < 2; i++) {
			cr_expect_eq(feed_send(&s[i], msn, 0, true, "abc"), 0);
			expect_recv(i, msn - 1, i);
		}
	}
	end_rdmap_srq();
}

Test(rdmap_srq, one_over_its_share_is_counted_once)
{
	begin_rdmap_srq(8, 1, DDPS_NO_RECV_STALL);
	cr_expect_eq(post_shared(1), 0);
	cr_expect_eq(post_shared(2), 0);
	for (uint32_t msn = 1; msn <= 2; msn++) {
		for (int i = 0; i < 3 && msn > 1; i++) {
			cr_expect_eq(feed_send(&s[0], msn, 0, true, "abc"), DDPS_LLP_HOLD);
			cr_expect_eq(ddps_rdmap_stats(s[0].r).over_share, 1);
			cr_expect_eq(ddps_rdmap_stats(s[0].r).stalls, 1);
		}
		if (msn > 1)
			ddps_rdmap_recv_fetched(s[0].r);
		cr_expect_eq(feed_send(&s[0], msn, 0, true, "abc"), 0);
	}
	ddps_rdmap_recv_fetched(s[0].r);
	cr_expect_eq(feed_send(&s[0], 3, 0, true, "abc"), DDPS_LLP_HOLD);
	cr_expect_eq(ddps_rdmap_stats(s[0].r).stalls, 2);
	cr_expect_eq(ddps_rdmap_stats(s[0].r).over_share, 1, "the queue itself is empty");
	end_rdmap_srq();
}

Test(rdmap_srq, a_peer_gets_its_share_and_waits_for_more,
     .description = "5042-6.4.3.1-1 5040-8.1.2-8 5041-8.3.2-7 5040-8.1.2-6 5041-8.3.2-6")
{
	begin_rdmap_srq(8, 3, DDPS_NO_RECV_TERMINATE);
	for (uint64_t id = 0; id < 8; id++)
		cr_expect_eq(post_shared(id), 0);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(feed_send(&s[0], 1 + i, 0, true, "abc"), 0);
	cr_expect_eq(feed_send(&s[0], 4, 0, true, "abc"), DDPS_LLP_HOLD, "whatever the mode");
	cr_expect_eq(srq.count, 5);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(feed_send(&s[1], 1 + i, 0, true, "abc"), 0,
			     "the others' is untouched");
	cr_expect_eq(post_shared(8), 0);
	cr_expect_eq(s[0].ready, 0, "new buffers do not help it");
	ddps_rdmap_recv_fetched(s[0].r);
	cr_expect_eq(s[0].ready, 1);
	cr_expect_eq(feed_send(&s[0], 4, 0, true, "abc"), 0);
	cr_expect_eq(feed_send(&s[0], 5, 0, true, "abc"), DDPS_LLP_HOLD);
	cr_expect_eq(s[0].terms, 0);
	end_rdmap_srq();
}

Test(rdmap_srq, one_that_drains_waits_for_nothing)
{
	begin_rdmap_srq(8, 1, DDPS_NO_RECV_STALL);
	cr_expect_eq(post_shared(1), 0);
	cr_expect_eq(post_shared(2), 0);
	cr_expect_eq(feed_send(&s[0], 1, 0, true, "abc"), 0);
	cr_expect_eq(feed_send(&s[0], 2, 0, true, "abc"), DDPS_LLP_HOLD);
	ddps_rdmap_drain(s[0].r);
	cr_expect_eq(s[0].ready, 1);
	cr_expect_eq(feed_send(&s[0], 2, 0, true, "abc"), 0, "more than its share");
	cr_expect_lt(feed_send(&s[0], 3, 0, true, "abc"), 0);
	cr_expect_eq(s[0].term.triple.code, 0x02);
	end_rdmap_srq();
}

Test(rdmap_srq, low_water)
{
	begin_rdmap_srq(8, 8, DDPS_NO_RECV_TERMINATE);
	lows = 0;
	for (uint64_t id = 0; id < 4; id++)
		cr_expect_eq(post_shared(id), 0);
	ddps_srq_watch(&srq, 3);
	cr_expect_eq(feed_send(&s[0], 1, 0, true, ""), 0);
	cr_expect_eq(lows, 0, "3 are not fewer than 3");
	cr_expect_eq(feed_send(&s[0], 2, 0, true, ""), 0);
	cr_expect_eq(lows, 1);
	cr_expect_eq(feed_send(&s[0], 3, 0, true, ""), 0);
	cr_expect_eq(lows, 1, "once");
	ddps_srq_watch(&srq, 2);
	cr_expect_eq(lows, 2, "it is low already");
	ddps_srq_watch(&srq, 1);
	ddps_srq_watch(&srq, 0);
	cr_expect_eq(feed_send(&s[0], 4, 0, true, ""), 0);
	cr_expect_eq(lows, 2, "taken back");
	end_rdmap_srq();
}

Test(rdmap_srq, a_wrong_msn_takes_nothing)
{
	begin_rdmap_srq(8, 8, DDPS_NO_RECV_STALL);
	cr_expect_eq(post_shared(1), 0);
	cr_expect_lt(feed_send(&s[0], 2, 0, true, "abc"), 0);
	cr_expect_eq(s[0].term.triple.code, 0x03);
	cr_expect_eq(srq.count, 1);
	cr_expect_eq(s[0].nrq, 0);
	/* one that is too long has taken it */
	cr_expect_lt(feed_send(&s[1], 1, 0, true, "abcdefghijklmnopq"), 0);
	cr_assert_eq(s[1].nrq, 1);
	expect_wc(s[1].rq[0], 1, DDPS_OP_RECV, DDPS_WC_LENGTH);
	end_rdmap_srq();
}
