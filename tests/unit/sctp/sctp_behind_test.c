/* SPDX-License-Identifier: BSD-2-Clause */
/* What stands behind a COOKIE ECHO is taken, whatever the cookie was for [9260-5.1-7]. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_behind, .fini = fini);

/* The cookie, and a message behind it; it is answered with one packet. */
static void echo_and_data(uint32_t tsn)
{
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	raw_put_data(&r, tsn, 0, 0, 7, "behind");
	raw_send(&r);
	cr_expect(raw_any(&r, SC_COOKIE_ACK, NULL));
	cr_expect(raw_any(&r, SC_SACK, NULL));
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(r.last.len, 6);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

Test(sctp_behind, a_new_one)
{
	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	echo_and_data(RAW_TSN);
	cr_expect_eq(r.accepted, 1);
}

/* COOKIE ACK was lost: the peer repeats all of it. */
Test(sctp_behind, one_that_is_there, .description = "9260-5.2.4-3")
{
	raw_up(&r);
	echo_and_data(RAW_TSN);
	cr_expect_eq(r.accepted, 1);
	cr_expect_eq(r.restarted, 0);
}

Test(sctp_behind, a_restart, .description = "9260-5.2.4-3")
{
	raw_up(&r);
	raw_init_chunk(&r, RAW_TAG + 1, 5000);
	cr_assert(raw_take_init_ack(&r));
	echo_and_data(5000);
	cr_expect_eq(r.restarted, 1);
}

Test(sctp_behind, both_opened, .description = "9260-5.2.4-3")
{
	raw_init(&r);
	raw_connect(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	echo_and_data(RAW_TSN);
	cr_expect_eq(r.ups, 1);
}

Test(sctp_behind, both_opened_and_know_each_other, .description = "9260-5.2.4-3")
{
	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	echo_and_data(RAW_TSN);
	cr_expect_eq(r.ups, 1);
}

/* A cookie that is for nothing takes what is behind it along: both opened, and the peer has asked
 * with two TSNs. */
Test(sctp_behind, a_cookie_that_does_nothing, .description = "9260-5.2.4-3")
{
	uint8_t was[512];
	size_t len;

	raw_init(&r);
	raw_connect(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	memcpy(was, r.cookie, len = r.cookie_len);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN + 1000);
	cr_assert(raw_take_init_ack(&r));
	raw_chunk(&r, r.tag, SC_COOKIE_ECHO, 0, was, len);
	cr_assert_eq(r.ups, 1);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	raw_put_data(&r, RAW_TSN, 0, 0, 7, "behind");
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.messages, 0);
}

/* Both opened, and the peer's cookie comes when we are up: it counts as long as nothing was sent
 * or received. */
Test(sctp_behind, a_cookie_of_another_attempt_of_the_peer, .description = "9260-5.2.4-3")
{
	for (unsigned used = 0; used < 3; used++) {
		if (used)
			raw_fini(&r);
		raw_init(&r);
		raw_connect(&r);
		raw_answer_init(&r);
		raw_init_chunk(&r, RAW_TAG, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
		cr_assert_eq(r.ups, 1);
		if (used == 1)
			raw_data(&r, RAW_TSN, 0, 0, 7, "received");
		if (used == 2)
			cr_assert_eq(raw_user_send(&r, 0, 0, "sent"), 0);
		r.a->peer_tag++; /* what the peer goes by is another attempt of its own */
		raw_echo(&r);
		cr_expect_eq(raw_any(&r, SC_COOKIE_ACK, NULL), !used, "%u", used);
		cr_expect_eq(r.a->peer_tag, RAW_TAG + (used != 0));
		cr_expect_eq(r.ups, 1, "it was up before");
		cr_expect_eq(r.restarted, 0);
	}
}

/* ---- what the host's own rest is ---- */

/* A timer that is served up to a millisecond late is one that was served. */
Test(sctp_behind, how_late_a_timer_may_be)
{
	static const struct {
		uint64_t late;
		bool rest;
	} is[] = {
		{ 0, false }, { 1, false }, { MS, false }, { MS + 1, true }, { 900 * MS, true }
	};

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++)
		for (unsigned how = 0; how < 2; how++) {
			uint64_t due, now;

			raw_up(&r);
			due = ddps_sctp_deadline(r.e);
			cr_assert_gt(due, r.net.now + 2 * MS);
			now = r.net.now = due + is[i].late;
			if (how)
				ddps_sctp_tick(r.e, now);
			else
				ddps_sctp_input(r.e, NULL, 0, now);
			cr_expect_eq(r.e->sent.rest_from, is[i].rest ? due : 0, "%u", i);
			cr_expect_eq(r.e->sent.rest_to, is[i].rest ? now : 0, "%u", i);
			raw_fini(&r);
		}
	raw_up(&r);
}

/* ---- heartbeats ---- */

/* How long an answer is waited for: RTO, doubled with each error, six times and up to RTO.Max. */
Test(sctp_behind, how_long_a_heartbeat_is_waited_for, .description = "9260-8.3-7")
{
	static const struct {
		unsigned srtt, errors, ms;
	} is[] = { { 500, 0, 500 },   { 500, 1, 1000 },	  { 500, 2, 2000 },    { 500, 5, 16000 },
		   { 500, 6, 32000 }, { 500, 7, 32000 },  { 500, 40, 32000 },  { 937, 6, 59968 },
		   { 938, 6, 60000 }, { 1000, 6, 60000 }, { 60000, 0, 60000 }, { 100, 0, 400 } };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_sc_path *p;
		uint64_t ns = is[i].ms * MS;

		if (i)
			raw_fini(&r);
		raw_up(&r);
		p = r.a->path[0];
		p->tx.srtt = is[i].srtt * MS;
		p->tx.rttvar = 0;
		p->tx.late = 0;
		p->state = DDPS_SCTP_DOUBTFUL;
		p->errors = is[i].errors;
		p->hb_at = r.net.now;
		ddps_sc_touch(r.a);
		raw_wait(&r, 1);
		cr_assert(raw_any(&r, SC_HEARTBEAT, NULL), "%u", i);
		cr_expect(p->hb_out);
		cr_expect_eq(p->hb_at - p->hb_sent, ns, "%u: %llu", i,
			     (unsigned long long)(p->hb_at - p->hb_sent));
		cr_expect_eq(p->used, p->hb_sent);
	}
}

/* RTO + interval, and up to half an RTO more or less: drawn, and the whole of that is used. */
Test(sctp_behind, when_the_next_heartbeat_leaves, .description = "9260-8.3-7")
{
	uint64_t least = UINT64_MAX, most = 0, base;

	raw_up(&r);
	base = r.e->c.hb_interval_ms * MS;
	for (unsigned i = 0; i < 400; i++) {
		struct ddps_sc_path *p = r.a->path[0];
		uint64_t after;

		p->tx.srtt = 8000 * MS;
		p->tx.rttvar = 0;
		ddps_sc_path_start(p);
		cr_assert_eq(p->state, DDPS_SCTP_ACTIVE);
		after = p->hb_at - r.e->now - base;
		least = after < least ? after : least;
		most = after > most ? after : most;
	}
	cr_expect(least >= 4000 * MS && least < 4200 * MS, "%llu",
		  (unsigned long long)(least / MS));
	cr_expect(most < 12000 * MS && most > 11800 * MS, "%llu", (unsigned long long)(most / MS));
}
