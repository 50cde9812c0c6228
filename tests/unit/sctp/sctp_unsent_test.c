/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that the system has no room for: they are had again, and are no loss. */
#include "sctp_raw_fixture.h"

static struct raw r;
static struct ddps_sctp_out out;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_unsent, .fini = fini);

static void take_sctp_unsent_out(void)
{
	static struct iovec iov[64];
	static uint8_t head[4096];

	out = (struct ddps_sctp_out){ .iov = iov,
				      .iov_max = 64,
				      .head = head,
				      .head_max = sizeof head,
				      .max_segs = 1,
				      .max_len = 1500 };
	cr_assert_eq(ddps_sctp_output(r.e, &out, r.net.now), 1);
}

/* The next packet, which the system does not take. */
static void turn_away(void)
{
	take_sctp_unsent_out();
	ddps_sctp_unsent(r.e, &out, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
}

/* What went out last did not go. */
static void take_back(void)
{
	ddps_sctp_unsent(r.e, &out, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
}

static void begin_sctp_unsent(void)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	turn_away();
	cr_assert_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_INIT);
	raw_answer_init(&r);
}

static void finish_sctp_unsent(void)
{
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	raw_send(&r);
	cr_assert_str_eq(raw_state(&r), "ESTABLISHED");
}

Test(sctp_unsent, the_set_up_does_not_wait_for_t1)
{
	begin_sctp_unsent();
	take_back();
	cr_assert_eq(r.n, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	take_back();
	cr_expect_eq(r.n, 1);
	finish_sctp_unsent();
}

Test(sctp_unsent, data_goes_again_immediately_and_the_window_is_as_before)
{
	struct iovec iov = { (void *)(uintptr_t) "text", 4 };
	struct ddps_sctp_path_info before, after;
	struct ddps_sc_chunk c;
	struct ddps_sc_data d;

	begin_sctp_unsent();
	finish_sctp_unsent();
	cr_assert_eq(ddps_sctp_path_info(r.a, 0, &before), 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(ddps_sctp_send(r.a, 0, 7, DDPS_SCTP_UNORDERED, &iov, 1, r.net.now), 0);
	turn_away();
	cr_assert(raw_any(&r, SC_DATA, &c));
	cr_assert_eq(ddps_sc_decode_data(&d, &c), 0);
	cr_expect_eq(d.tsn, r.tsn);
	cr_assert_eq(ddps_sctp_path_info(r.a, 0, &after), 0);
	cr_expect_eq(after.cwnd, before.cwnd);
	cr_expect_eq(after.ssthresh, before.ssthresh);
	cr_expect_gt(after.flight, 0);
}

static unsigned sacks(void)
{
	struct ddps_sc_chunk c;

	return raw_any(&r, SC_SACK, &c) ? 1 : 0;
}

/* One DATA from the peer, which leaves time to acknowledge it, and one of ours in which the SACK rides.
 * The peer may have no window left until it comes: nothing else would bring one before its T3. */
static void ride(void)
{
	struct iovec iov = { (void *)(uintptr_t) "text", 4 };

	begin_sctp_unsent();
	finish_sctp_unsent();
	raw_data(&r, RAW_TSN, 0, 0, SC_DATA_U | SC_DATA_B | SC_DATA_E, "hello");
	raw_wait(&r, 1000);
	raw_data(&r, RAW_TSN + 1, 0, 0, SC_DATA_U | SC_DATA_B | SC_DATA_E, "again");
	cr_assert_eq(sacks(), 0);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 7, DDPS_SCTP_UNORDERED, &iov, 1, r.net.now), 0);
}

Test(sctp_unsent, a_sack_next_to_the_data_is_sent_again)
{
	struct ddps_sc_chunk c;

	ride();
	turn_away();
	cr_expect_eq(sacks(), 1);
	cr_expect(raw_any(&r, SC_DATA, &c));
}

/* The same if the packet is larger than what the system sends: EMSGSIZE. */
Test(sctp_unsent, a_sack_next_to_data_that_is_refused_is_sent_again)
{
	struct ddps_sc_chunk c;

	ride();
	take_sctp_unsent_out();
	ddps_sctp_refused(r.e, &out, 1400, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(sacks(), 1);
	cr_expect(raw_any(&r, SC_DATA, &c));
}

Test(sctp_unsent, shutdown_does_not_wait_for_t2)
{
	begin_sctp_unsent();
	finish_sctp_unsent();
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	take_back();
	cr_assert_eq(r.n, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN);
}

/* SHUTDOWN reports no gaps: the SACK that left next to it is reported again. */
Test(sctp_unsent, a_sack_next_to_shutdown_is_sent_again)
{
	begin_sctp_unsent();
	finish_sctp_unsent();
	ddps_sctp_shutdown(r.a, r.net.now);
	sn_flush(&r.net);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN + 1, 0, 0, 7, "behind a gap");
	raw_hand(&r);
	turn_away();
	cr_expect_eq(sacks(), 1);
}

static void flush_on_sctp_unsent(void *user, const struct ddps_sctp_msg *m)
{
	(void)user;
	(void)m;
	sn_flush(&r.net);
}

/* An upcall that asks for output comes before it is known that a SACK is due: it leaves nevertheless. */
Test(sctp_unsent, output_that_an_upcall_asks_for_is_not_all)
{
	struct ddps_sctp_up up = raw_upcalls;

	begin_sctp_unsent();
	finish_sctp_unsent();
	up.message = flush_on_sctp_unsent;
	ddps_sctp_assoc_set_up(r.a, &up, &r);
	raw_data(&r, RAW_TSN, 0, 0, 7, "the first is acknowledged immediately");
	cr_expect_eq(sacks(), 1);
}

/* A path MTU probe is nobody's loss, and what is gone wants nothing. */
Test(sctp_unsent, others_are_let_go)
{
	begin_sctp_unsent();
	finish_sctp_unsent();
	out.probe = true;
	take_back();
	cr_expect_eq(r.n, 0);
	out.probe = false;
	out.port = 1;
	take_back();
	cr_expect_eq(r.n, 0);
}

/* A message of @n octets leaves while a SACK with a gap is due: packets in the longest run. */
static unsigned run_with_sack(size_t n)
{
	uint8_t text[1000] = { 0 };
	const struct iovec iov = { text, n };

	raw_up(&r);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN + 1, 0, 0, 7, "behind a gap");
	raw_hand(&r);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	r.n = r.net.segs_max_seen = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.n, 2);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_DATA);
	cr_expect_eq(raw_got(&r, 1, 0, NULL), SC_SACK);
	return r.net.segs_max_seen;
}

/* Only the last packet of a run may be shorter: a SACK ends it, unless it could be longer. */
Test(sctp_unsent, a_sack_is_the_end_of_a_run)
{
	cr_expect_eq(run_with_sack(200 - 28 - 4), 1);
	raw_fini(&r);
	cr_expect_eq(run_with_sack(200 - 28), 2);
	raw_fini(&r);
	cr_expect_eq(run_with_sack(1000), 2);
}
