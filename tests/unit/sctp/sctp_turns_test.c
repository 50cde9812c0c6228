/* SPDX-License-Identifier: BSD-2-Clause */
/* A turn of the SCTP engine: time, limits, upcalls in their order, many packets or timers together. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_turns, .fini = fini);

static struct ddps_sctp_in make_sctp_turns_packet(void)
{
	struct ddps_sctp_in in = { .from = { .peer = r.net.node[1].addr[0],
					     .local = r.net.node[0].addr[0],
					     .encap = r.net.node[1].udp },
				   .data = r.buf,
				   .len = (size_t)(r.w.p - r.buf) };

	ddps_sc_crc_put(r.buf, in.len);
	return in;
}

/* A HEARTBEAT of nobody's, to be answered by ABORT. */
static void put_stray(void)
{
	raw_begin(&r, 77);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, NULL, 0);
}

/* ---- time, and limits ---- */

static void ignore_turns_assoc(void *user, struct ddps_sctp_assoc *a)
{
	(void)user, (void)a;
}

/* Whoever has just begun answers as many as a second allows. */
Test(sctp_turns, an_engine_answers_from_its_first_instant)
{
	const struct ddps_sctp_param p = { .port = RAW_PORT };
	struct ddps_sctp_config c;
	struct ddps_sctp_port *l;
	struct ddps_sctp_in in;
	struct ddps_sctp *e;

	raw_init(&r);
	sn_config(&r.net, &c);
	c.answers_per_s = c.starts_per_s = 3;
	cr_assert_eq(ddps_sctp_new(&c, 0, &e), 0);
	cr_assert_eq(ddps_sctp_listen(e, &p, ignore_turns_assoc, NULL, &l), 0);
	for (unsigned i = 1; i <= 4; i++) {
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, NULL, 0);
		in = make_sctp_turns_packet();
		ddps_sctp_input(e, &in, 1, 0);
		put_stray();
		in = make_sctp_turns_packet();
		ddps_sctp_input(e, &in, 1, 0);
		cr_expect_eq(e->nstray, i < 4 ? 2 * i : 6, "%u", i);
	}
	cr_expect_eq(e->st.inits_limited, 1);
	cr_expect_eq(e->st.answers_limited, 1);
	ddps_sctp_free(e);
}

Test(sctp_turns, time_does_not_go_back)
{
	const struct ddps_sctp_param p = { .port = RAW_PORT };
	struct ddps_sctp_config c;
	struct ddps_sctp_assoc *a;
	struct ddps_sctp *e;

	raw_init(&r);
	sn_config(&r.net, &c);
	cr_assert_eq(ddps_sctp_new(&c, 5000 * MS, &e), 0);
	cr_assert_eq(ddps_sctp_connect(e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899, &sn_deaf,
				       NULL, 1000 * MS, &a),
		     0);
	cr_expect_geq(a->ctl_at, 6000 * MS, "T1 runs from when the engine was made");
	ddps_sctp_free(e);
}

Test(sctp_turns, what_was_spent_comes_again_in_its_time)
{
	struct ddps_sc_bucket b = { 2, 0 };
	uint64_t limited = 0;

	raw_init(&r);
	b.at = r.e->now;
	cr_expect(ddps_sc_spend(r.e, &b, 2, &limited));
	cr_expect(ddps_sc_spend(r.e, &b, 2, &limited));
	cr_expect_not(ddps_sc_spend(r.e, &b, 2, &limited));
	r.e->now += 499 * MS;
	cr_expect_not(ddps_sc_spend(r.e, &b, 2, &limited));
	r.e->now += 2 * MS;
	cr_expect(ddps_sc_spend(r.e, &b, 2, &limited));
	cr_expect_not(ddps_sc_spend(r.e, &b, 2, &limited));
	cr_expect_eq(limited, 3);
	r.e->now += 60000 * MS;
	cr_expect(ddps_sc_spend(r.e, &b, 2, &limited));
	cr_expect(ddps_sc_spend(r.e, &b, 2, &limited));
	cr_expect_not(ddps_sc_spend(r.e, &b, 2, &limited), "no more than of one second");
}

/* What a timer has had done is not due once more, whether it could leave or not. */
Test(sctp_turns, a_timer_that_was_served_is_not_due)
{
	uint64_t at;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, 3, "x");
	raw_data(&r, RAW_TSN + 1, 0, 1, 3, "x");
	cr_assert_eq(r.n, 0);
	at = ddps_sctp_deadline(r.e);
	cr_assert_eq(at, r.a->sack_at);
	ddps_sctp_tick(r.e, at);
	cr_expect_gt(ddps_sctp_deadline(r.e), at);
	r.net.now = at;
	sn_flush(&r.net);
	cr_expect(raw_any(&r, SC_SACK, NULL));
}

/* 256 of them in one turn: what comes in waits no longer than for these. */
Test(sctp_turns, more_timers_than_a_tick_serves)
{
	const struct ddps_sctp_param p = { .port = RAW_PORT };
	struct ddps_sctp_assoc *a;
	unsigned served;

	raw_init(&r);
	for (unsigned i = 0; i < 300; i++)
		cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1,
					       (uint16_t)(RAW_PEER + i), 9899, &sn_deaf, NULL,
					       r.net.now, &a),
			     0);
	sn_flush(&r.net);
	r.net.now += 5000 * MS;
	for (unsigned k = 0; k < 2; k++) {
		ddps_sctp_tick(r.e, r.net.now);
		served = 0;
		TAILQ_FOREACH(a, &r.e->all, all_link)
			served += a->ctl_n;
		cr_expect_eq(served, k ? 300 : 256);
		cr_expect_eq(ddps_sctp_deadline(r.e) <= r.net.now, !k);
	}
}

/* ---- packets ---- */

Test(sctp_turns, packets_of_one_size_and_a_shorter_one)
{
	static const char *const text[3] = { "of one size", "of one size", "less" };
	uint8_t all[200];
	struct ddps_sctp_in in;
	size_t at = 0, size = 0;

	raw_up(&r);
	memset(all, 0, sizeof all);
	for (uint16_t i = 0; i < 3; i++) {
		raw_begin(&r, r.tag);
		raw_put_data(&r, RAW_TSN + i, 0, i, 3, text[i]);
		in = make_sctp_turns_packet();
		memcpy(all + at, r.buf, in.len);
		at += in.len;
		size = i ? size : in.len;
	}
	in.data = all;
	in.len = at;
	in.seg_size = size;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	cr_expect_eq(r.e->st.bad_crc, 0);
	cr_expect_eq(r.messages, 3);
	cr_expect_eq(r.last.len, 4);
}

static size_t tapped;

static void tap_sctp_turns(void *user, uint64_t now, bool sent, const struct ddps_sctp_route *to,
			   const struct iovec *iov, int niov)
{
	(void)user, (void)now, (void)to;
	for (int i = 0; sent && i < niov; i++)
		tapped += iov[i].iov_len;
}

/* Whatever was there before, the tap sees the octets of this packet. */
Test(sctp_turns, a_tap_sees_no_more_than_a_packet)
{
	static uint8_t head[4096], junk[100];
	struct iovec iov[16];
	struct ddps_sctp_out o = { .iov = iov,
				   .iov_max = 16,
				   .head = head,
				   .head_max = sizeof head,
				   .max_segs = 1,
				   .max_len = 1500 };

	raw_init(&r);
	r.e->c.tap = tap_sctp_turns;
	put_stray();
	raw_hand(&r);
	for (unsigned i = 0; i < 16; i++)
		iov[i] = (struct iovec){ junk, sizeof junk };
	tapped = 0;
	cr_assert_eq(ddps_sctp_output(r.e, &o, r.net.now), 1);
	cr_expect_eq(tapped, o.len);
	cr_expect_eq(o.len, 16);
}

/* It was asked for no more than that: no cause. */
Test(sctp_turns, an_abort_to_a_stranger_names_no_cause, .description = "9260-8.4-10 9260-8.4-11")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	put_stray();
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(c.flags, SC_FLAG_T);
	cr_expect_eq(c.vlen, 0);
	cr_expect_eq(raw_got_tag(&r, 0), 77);
}

/* ---- upcalls ---- */

static unsigned acked;
static char state[32];

static void take_sctp_turns_acked(void *user, uint64_t n)
{
	(void)user, (void)n;
	acked++;
	strncpy(state, raw_state(&r), sizeof state - 1);
}

static void up_and_watched(void)
{
	static struct ddps_sctp_up up;

	raw_up(&r);
	up = raw_upcalls;
	up.acked = take_sctp_turns_acked;
	acked = 0;
	ddps_sctp_assoc_set_up(r.a, &up, &r);
}

Test(sctp_turns, nobody_is_informed_of_acknowledgements_that_there_are_not)
{
	uint32_t cum;

	up_and_watched();
	raw_data(&r, RAW_TSN, 0, 0, 3, "x");
	cum = htobe32(r.tsn - 1);
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_expect_eq(r.shutdowns, 1);
	cr_expect_eq(acked, 0);
}

/* What follows of an acknowledgement is done when the user is informed of it. */
Test(sctp_turns, the_state_is_that_of_what_came)
{
	up_and_watched();
	cr_assert_eq(raw_user_send(&r, 0, 0, "last"), 0);
	ddps_sctp_shutdown(r.a, r.net.now);
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-PENDING");
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(acked, 1);
	cr_expect_str_eq(state, "SHUTDOWN-SENT");
}

/* ---- DATA ---- */

Test(sctp_turns, a_sack_for_each_packet_if_it_shall_be)
{
	raw_init(&r);
	r.port->param.delay_sack_never = true;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	for (uint16_t i = 0; i < 4; i++) {
		raw_data(&r, RAW_TSN + i, 0, i, 3, "x");
		cr_expect(raw_any(&r, SC_SACK, NULL), "%u", i);
	}
}
