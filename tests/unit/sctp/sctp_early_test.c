/* SPDX-License-Identifier: BSD-2-Clause */
/* DATA that leaves with COOKIE ECHO (RFC 9260 5.1). */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_early, .fini = fini);

/* The peer has answered, and the user has sent @n messages of @text when it learned of that. */
static void note_sctp_early_answered(const char *text, unsigned n)
{
	raw_init(&r);
	r.early = text;
	r.nearly = n;
	raw_connect(&r);
	raw_answer_init(&r);
	cr_assert_eq(r.answered, 1);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	cr_assert_eq(r.ups, 0);
}

static uint32_t get_sctp_early_tsn(const struct ddps_sc_chunk *c)
{
	struct ddps_sc_data d;

	cr_assert_eq(ddps_sc_decode_data(&d, c), 0);
	return d.tsn;
}

/* The packets that came back have the DATA chunks from @tsn on, @n of them. */
static void expect_data(uint32_t tsn, unsigned n)
{
	struct ddps_sc_chunk c;
	unsigned found = 0;
	int type;

	for (unsigned k = 0; k < r.n; k++) {
		for (unsigned i = 0; (type = raw_got(&r, k, i, &c)) >= 0; i++) {
			if (type == SC_DATA)
				cr_expect_eq(get_sctp_early_tsn(&c), tsn + found++);
		}
	}
	cr_expect_eq(found, n, "%u chunks, not %u", found, n);
}

/* COOKIE ACK, and with it a SACK of all below @next; 0: none. */
static void finish_sctp_early(uint32_t next)
{
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	if (next) {
		uint32_t sack[3] = { htobe32(next - 1), htobe32(100000), 0 };

		ddps_sc_put_chunk(&r.w, SC_SACK, 0, sack, sizeof sack);
	}
	raw_send(&r);
	cr_expect_eq(r.ups, 1);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* Nothing but heartbeats leaves for a long time. */
static void expect_calm(void)
{
	for (unsigned i = 0; i < 100; i++) {
		raw_wait(&r, 100);
		cr_expect(!raw_any(&r, SC_DATA, NULL));
	}
}

Test(sctp_early, data_goes_with_the_cookie_and_with_its_repetition,
     .description = "9260-5.1-7 9260-5.1-8 9260-5.1-9 9260-3.3.11-1 9260-4-4")
{
	struct ddps_sc_chunk c;

	note_sctp_early_answered("hello", 1);
	expect_data(r.tsn, 1);
	cr_assert_eq(raw_got(&r, 0, 1, &c), SC_DATA);
	cr_expect_eq(c.flags & 8, 8, "I bit");
	raw_wait(&r, 390); /* no timer of DATA's runs */
	cr_expect_eq(r.n, 0);
	raw_wait(&r, 60);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_COOKIE_ECHO);
	expect_data(r.tsn, 1);
	finish_sctp_early(r.tsn + 1);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.acked, 1);
	expect_calm();
	cr_expect_eq(raw_user_send(&r, 0, 0, "next"), 0);
	expect_data(r.tsn + 1, 1);
}

/* It was lost, or dropped by a peer that does not take it: it comes again, as it was. */
Test(sctp_early, what_is_not_acknowledged_comes_again, .description = "9260-5.1-7 9260-6.3.3-2")
{
	unsigned n = 0;

	note_sctp_early_answered("hello", 2);
	expect_data(r.tsn, 2);
	finish_sctp_early(0);
	cr_expect_eq(r.n, 0, "it may be on its way");
	for (; n < 20 && !raw_any(&r, SC_DATA, NULL); n++)
		raw_wait(&r, 100);
	cr_assert_lt(n, 20);
	raw_sack(&r, r.tsn + 1, 100000);
	cr_expect_eq(r.acked, 2);
	expect_calm();
}

/* Which of them arrived? */
Test(sctp_early, after_a_repetition_it_comes_again_immediately, .description = "9260-5.1-7")
{
	note_sctp_early_answered("hello", 1);
	raw_wait(&r, 1600);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	finish_sctp_early(0);
	expect_data(r.tsn, 1);
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(r.acked, 1);
	expect_calm();
}

/* A packet of that size may never arrive: the cookie does not wait for it. */
Test(sctp_early, what_is_large_goes_with_the_first_attempt_only, .description = "9260-4-4")
{
	static char large[1201];

	memset(large, 'x', sizeof large - 1);
	note_sctp_early_answered(large, 1);
	expect_data(r.tsn, 1);
	raw_wait(&r, 450);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	expect_data(0, 0);
	finish_sctp_early(0);
	expect_data(r.tsn, 1);
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(r.acked, 1);
}

/* Only what INIT ACK may least of all have room for; the rest follows, in its order. */
Test(sctp_early, what_does_not_fit_follows, .description = "9260-5.1-7 9260-5.1-9")
{
	static char text[201];

	memset(text, 'x', sizeof text - 1);
	note_sctp_early_answered(text, 20);
	expect_data(r.tsn, 6);
	cr_expect_leq(r.log[0].len, 1472);
	finish_sctp_early(r.tsn + 6);
	expect_data(r.tsn + 6, 14);
	raw_sack(&r, r.tsn + 19, 100000);
	cr_expect_eq(r.acked, 20);
	expect_calm();
}

/* ---- a stale cookie ---- */

static void stale(void)
{
	static const uint8_t cause[8] = { 0, SC_CAUSE_STALE, 0, 8, 0, 0, 1, 0 };

	raw_chunk(&r, r.tag, SC_ERROR, 0, cause, sizeof cause);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_INIT);
}

Test(sctp_early, a_stale_cookie_loses_nothing, .description = "9260-5.2.6-1 9260-5.1-7")
{
	note_sctp_early_answered("hello", 1);
	stale();
	cr_expect_eq(raw_user_send(&r, 4, 0, "more"), 0);
	cr_expect_eq(r.n, 0);
	raw_wait(&r, 1600); /* T1: the INIT once more */
	raw_answer_init(&r);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	expect_data(r.tsn, 2);
	finish_sctp_early(r.tsn + 2);
	cr_expect_eq(r.acked, 2);
	expect_calm();
}

/* One with more streams than there were numbers for; ASan sees what is written next to them. */
Test(sctp_early, a_second_answer_with_more_streams, .description = "9260-5.2.6-1")
{
	static const uint8_t cookie[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };
	struct ddps_sc_chunk c;
	struct ddps_sc_data d;

	note_sctp_early_answered("hello", 1); /* on stream 4 of 5 */
	stale();
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 10, 10, RAW_TSN, cookie, sizeof cookie);
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
	finish_sctp_early(r.tsn + 1);
	for (uint16_t sid = 4; sid < 10; sid++) {
		cr_expect_eq(raw_user_send(&r, sid, 0, "more"), 0);
		cr_assert(raw_any(&r, SC_DATA, &c));
		cr_assert_eq(ddps_sc_decode_data(&d, &c), 0);
		cr_expect_eq(d.sid, sid);
		cr_expect_eq(d.ssn, sid == 4, "stream 4 goes on, the others begin");
	}
}

/* It could go on for ever otherwise, since each INIT is answered. */
Test(sctp_early, a_peer_that_calls_each_cookie_stale_is_given_up, .description = "9260-5.2.6-1")
{
	unsigned n = 1;

	note_sctp_early_answered("hello", 1);
	for (; n < 100 && raw_any(&r, SC_COOKIE_ECHO, NULL); n++) {
		static const uint8_t cause[8] = { 0, SC_CAUSE_STALE, 0, 8, 0, 0, 1, 0 };

		raw_chunk(&r, r.tag, SC_ERROR, 0, cause, sizeof cause);
		if (raw_got(&r, 0, 0, NULL) == SC_INIT)
			raw_answer_init(&r);
	}
	cr_expect_eq(n, r.e->c.init_max_retrans + 2);
	raw_wait(&r, 1);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
}

Test(sctp_early, a_second_answer_with_fewer_streams_is_the_end, .description = "9260-6.5-1")
{
	static const uint8_t cookie[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };
	struct ddps_sc_chunk c;

	note_sctp_early_answered("hello", 1); /* on stream 4 */
	stale();
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 4, 4, RAW_TSN, cookie, sizeof cookie);
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	expect_data(0, 0);
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	cr_expect(raw_any(&r, SC_ABORT, &c));
	raw_wait(&r, 1);
	cr_expect_eq(r.ups, 0);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_PROTOCOL);
}

/* ---- both open; the end ---- */

Test(sctp_early, both_open, .description = "9260-5.2.1-2 9260-5.2.4-3 9260-5.1-7")
{
	for (unsigned k = 0; k < 2; k++) {
		note_sctp_early_answered("hello", 1);
		/* the peer's own INIT, of the same instance (row D) or of another (row B) */
		raw_init_chunk(&r, k ? RAW_TAG + 1 : RAW_TAG, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		raw_echo(&r);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
		cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
		cr_expect_eq(r.ups, 1);
		for (unsigned i = 0; i < 20 && !raw_any(&r, SC_DATA, NULL); i++)
			raw_wait(&r, 100);
		expect_data(r.tsn, 1);
		raw_sack(&r, r.tsn, 100000);
		cr_expect_eq(r.acked, 1);
		expect_calm();
		raw_fini(&r);
	}
	raw_init(&r);
}

Test(sctp_early, nothing_is_left_of_an_attempt_that_fails, .description = "9260-4-4")
{
	note_sctp_early_answered("hello", 3);
	for (unsigned i = 0; i < 600 && !r.gone; i++)
		raw_wait(&r, 1000);
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
	cr_expect_eq(r.ups, 0);
	cr_expect_eq(r.acked, 0);
	cr_expect_eq(r.e->st.assocs, 0);
}
