/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP's DATA and SACK, packet by packet. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

static struct ddps_sc_sack send_sctp_data_sack(void)
{
	struct ddps_sc_chunk c;
	struct ddps_sc_sack s = { .cum = 0 };

	cr_assert(raw_any(&r, SC_SACK, &c));
	cr_assert_eq(ddps_sc_decode_sack(&s, &c), 0);
	return s;
}

static unsigned get_sctp_data_be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* ---- when and what is acknowledged ---- */

Test(sctp_data, sacks_come_when_they_must, .fini = fini,
     .description = "9260-5.1-18 9260-6.2-7 9260-6.2-16 9260-6.2-13 9260-6.2-8")
{
	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, 7, "first");
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN);
	raw_data(&r, RAW_TSN + 1, 0, 0, 7, "a");
	cr_expect_eq(r.n, 0);
	raw_data(&r, RAW_TSN + 2, 0, 0, 7, "b");
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN + 2);
	raw_data(&r, RAW_TSN + 3, 0, 0, 7, "c");
	cr_expect_eq(r.n, 0);
	raw_wait(&r, 200);
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN + 3);
	raw_data(&r, RAW_TSN + 4, 0, 0, 7 | SC_DATA_I, "d");
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN + 4);
}

Test(sctp_data, gaps_and_duplicates_are_reported, .fini = fini,
     .description = "9260-6.7-1 9260-3.3.4-2 9260-6.2-17 9260-6.2-19 9260-3.3.4-d3 9260-7.2.4-1")
{
	struct ddps_sc_sack s;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, 7, "x");
	raw_data(&r, RAW_TSN + 2, 0, 0, 7, "x");
	s = send_sctp_data_sack();
	cr_assert_eq(s.ngaps, 1);
	cr_expect(s.cum == RAW_TSN && get_sctp_data_be16(s.gaps) == 2 &&
		  get_sctp_data_be16(s.gaps + 2) == 2);
	raw_data(&r, RAW_TSN + 3, 0, 0, 7, "x");
	raw_data(&r, RAW_TSN + 6, 0, 0, 7, "x");
	s = send_sctp_data_sack();
	cr_assert_eq(s.ngaps, 2);
	cr_expect(get_sctp_data_be16(s.gaps) == 2 && get_sctp_data_be16(s.gaps + 2) == 3 &&
		  get_sctp_data_be16(s.gaps + 4) == 6);
	raw_data(&r, RAW_TSN + 3, 0, 0, 7, "x");
	s = send_sctp_data_sack();
	cr_assert_eq(s.ndups, 1);
	cr_expect_eq(get_sctp_data_be16(s.dups + 2), RAW_TSN + 3);
	raw_data(&r, RAW_TSN + 1, 0, 0, 7, "x");
	s = send_sctp_data_sack();
	cr_expect(s.cum == RAW_TSN + 3 && s.ngaps == 1 && !s.ndups);
	cr_expect_eq(r.messages, 5);
}

Test(sctp_data, what_is_far_ahead_is_dropped_without_trace, .fini = fini)
{
	raw_up(&r);
	raw_data(&r, RAW_TSN + 40000, 0, 0, 7, "x");
	cr_expect(send_sctp_data_sack().cum == RAW_TSN - 1 && !send_sctp_data_sack().ngaps);
	raw_data(&r, RAW_TSN + 0x7fffffff, 0, 0, 7, "x");
	cr_expect_eq(r.messages, 0);
}

Test(sctp_data, order_is_kept_in_a_stream_and_only_there, .fini = fini,
     .description = "9260-6.6-1 9260-6.6-d1 9260-3.3.1-3 9260-3.3.1-2")
{
	raw_up(&r);
	raw_data(&r, RAW_TSN + 1, 1, 1, 3, "second");
	cr_expect_eq(r.messages, 0);
	raw_data(&r, RAW_TSN + 2, 2, 0, 3, "other stream");
	cr_expect_eq(r.messages, 1);
	raw_data(&r, RAW_TSN + 3, 1, 9, 7, "unordered");
	cr_expect_eq(r.messages, 2);
	raw_data(&r, RAW_TSN, 1, 0, 3, "first");
	cr_expect_eq(r.messages, 4);
	cr_expect(!memcmp(r.last.data, "second", 6));
}

Test(sctp_data, invalid_streams_are_acknowledged_and_named, .fini = fini,
     .description = "9260-6.5-2 9260-6.5-3")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 5, 0, 7, "x");
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN);
	cr_assert(raw_any(&r, SC_ERROR, &c));
	cr_expect(c.val[1] == SC_CAUSE_STREAM && get_sctp_data_be16(c.val + 4) == 5);
	cr_expect_eq(r.messages, 0);
}

Test(sctp_data, data_without_data_is_the_end, .fini = fini, .description = "9260-6.2-27")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 0, 0, 7, "");
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(c.val[1], SC_CAUSE_NO_DATA);
	cr_expect_eq(r.gone, 1);
}

/* ---- fragments ---- */

Test(sctp_data, fragments_are_joined_in_any_order, .fini = fini,
     .description = "9260-6.9-1 9260-6.9-8 9260-3.3.1-9")
{
	static const char *const text[] = { "ab", "cde", "f", "ghij" };
	static const uint8_t order[][4] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 }, { 0, 2, 1, 3 }
	};
	uint32_t tsn = RAW_TSN;

	raw_up(&r);
	for (unsigned k = 0; k < 5; k++, tsn += 4) {
		for (unsigned i = 0; i < 4; i++) {
			unsigned f = order[k][i];

			cr_expect_eq(r.messages, k);
			raw_data(&r, tsn + f, 0, (uint16_t)k,
				 (uint8_t)((k & 1 ? 4 : 0) | (f == 0 ? 2 : 0) | (f == 3 ? 1 : 0)),
				 text[f]);
			if (k & 1) /* unordered ones take no SSN */
				continue;
		}
		cr_assert_eq(r.messages, k + 1);
		cr_expect(r.last.len == 10 && !memcmp(r.last.data, "abcdefghij", 10));
		if (k == 0)
			r.a->streams->next = 2; /* the SSNs of this test step by two */
		else if (!(k & 1))
			r.a->streams->next = (uint16_t)(k + 2);
	}
	cr_expect_eq(r.e->st.held, 0);
}

Test(sctp_data, fragments_that_make_no_sense_are_the_end)
{
	static const struct {
		uint16_t sid[2], ssn[2];
		uint8_t flags[2], off[2];
	} row[] = {
		{ { 0, 0 }, { 0, 0 }, { 2, 2 }, { 0, 1 } }, /* B B */
		{ { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 1 } }, /* no B at the beginning */
		{ { 0, 0 }, { 0, 0 }, { 3, 0 }, { 0, 1 } }, /* middle behind a whole one */
		{ { 0, 0 }, { 0, 0 }, { 3, 1 }, { 0, 1 } }, /* E behind a whole one */
		{ { 0, 1 }, { 0, 0 }, { 2, 0 }, { 0, 1 } }, /* another stream */
		{ { 0, 0 }, { 0, 1 }, { 2, 0 }, { 0, 1 } }, /* another SSN */
		{ { 0, 0 }, { 0, 0 }, { 2, 4 }, { 0, 1 } }, /* another U */
		{ { 0, 0 }, { 0, 0 }, { 2, 3 }, { 0, 1 } }, /* a whole one inside */
		{ { 0, 0 }, { 0, 0 }, { 7, 2 }, { 1, 0 } }, /* the same, the other way round */
		{ { 0, 0 }, { 0, 0 }, { 0, 1 }, { 1, 0 } }, /* E before middle */
	};

	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		struct ddps_sc_chunk c = { .val = NULL };

		raw_up(&r);
		for (unsigned i = 0; i < 2 && !r.gone; i++)
			raw_data(&r, RAW_TSN + row[k].off[i], row[k].sid[i], row[k].ssn[i],
				 row[k].flags[i], "x");
		cr_assert(raw_any(&r, SC_ABORT, &c), "row %zu", k);
		cr_expect_eq(c.val[1], SC_CAUSE_VIOLATION);
		cr_expect_eq(r.gone, 1);
		raw_fini(&r);
	}
}

Test(sctp_data, too_long_a_message_is_the_end, .fini = fini)
{
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = 0;
	raw_up(&r);
	r.e->c.max_message = 5000;
	for (unsigned i = 0; i < 5; i++)
		raw_data(&r, RAW_TSN + i, 0, 0, i ? 0 : 2, text);
	cr_expect_eq(r.gone, 0);
	raw_data(&r, RAW_TSN + 5, 0, 0, 0, text);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_LIMIT);
}

/* The @i-th of many fragments, in the order that it comes: where it stands among them. */
static unsigned behind(unsigned i)
{
	return 1000 + i;
}

static unsigned count_before_data(unsigned i)
{
	return 1000 - i;
}

/* Pairs that the fragment between them joins to what is there. */
static unsigned check_between_sctp_data(unsigned i)
{
	return 1000 + 2 * (i / 2) + !(i & 1);
}

/* Each costs memory besides its octets: what cannot fit into the window cannot become whole. */
Test(sctp_data, too_many_fragments_of_a_message_are_the_end)
{
	static unsigned (*const order[])(unsigned) = { behind, count_before_data,
						       check_between_sctp_data };
	const unsigned most = (20000 - 3000) / (1 + DDPS_SC_ITEM);

	for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
		unsigned n = 0;

		raw_up(&r);
		r.e->c.rwnd = 20000;
		while (!r.gone && n < 2 * most)
			raw_data(&r, RAW_TSN + order[k](n++), 0, 0, 0, "x");
		cr_expect(n == most + 1 || (n == most + 2 && order[k] == check_between_sctp_data),
			  "%zu: %u", k, n);
		cr_expect_eq(r.why.code, DDPS_E_LIMIT);
		cr_expect_eq(r.e->st.held, 0);
		raw_fini(&r);
	}
}

/* ---- the window ---- */

Test(sctp_data, a_paused_user_closes_the_window, .fini = fini,
     .description = "9260-6.2-2 9260-6.2-4 9260-6.2-5 9260-6.2-10 9260-6.2-22")
{
	char text[1001];
	uint32_t tsn = RAW_TSN, last;

	memset(text, 'x', 1000);
	text[1000] = 0;
	raw_up(&r);
	r.e->c.rwnd = 20000;
	ddps_sctp_pause(r.a, true, r.net.now);
	do {
		raw_data(&r, tsn++, 0, 0, 7 | SC_DATA_I, text);
		last = send_sctp_data_sack().rwnd;
	} while (last && tsn < RAW_TSN + 100);
	cr_expect_eq(last, 0);
	cr_expect_eq(r.messages, 0);
	raw_data(&r, tsn, 0, 0, 7, text);
	cr_expect_eq(send_sctp_data_sack().cum, tsn - 1);
	cr_expect_leq(r.e->st.held, 20000);
	ddps_sctp_pause(r.a, false, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.messages, tsn - RAW_TSN);
	cr_expect_eq(send_sctp_data_sack().rwnd, 20000);
	cr_expect_eq(r.e->st.held, 0);
}

/* What is reported fits, in one chunk. */
Test(sctp_data, a_chunk_of_all_that_was_announced_is_taken, .fini = fini,
     .description = "9260-6.2-6")
{
	static char text[1600];

	raw_up(&r);
	ddps_sctp_pause(r.a, true, r.net.now);
	r.e->c.rwnd = 1600 + DDPS_SC_ITEM + 1 + DDPS_SC_ITEM;
	raw_data(&r, RAW_TSN, 0, 0, 3, "x");
	cr_assert_eq(send_sctp_data_sack().rwnd, 1600);
	memset(text, 'x', 1599);
	raw_data(&r, RAW_TSN + 1, 0, 1, 3, text);
	raw_wait(&r, 300);
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN + 1);
	cr_expect_eq(r.e->st.window_drops, 0);
}

/* Less than a packet is not worth telling. */
Test(sctp_data, a_window_of_less_than_a_packet_is_none, .fini = fini, .description = "9260-6.2-6")
{
	raw_up(&r);
	r.e->c.rwnd = 20000;
	ddps_sctp_keep(r.a, 20000 - 1500 - DDPS_SC_ITEM, r.net.now);
	cr_expect_eq(ddps_sc_rwnd(r.a), 1500);
	ddps_sctp_keep(r.a, 1, r.net.now);
	cr_expect_eq(ddps_sc_rwnd(r.a), 0);
}

/* What all associations hold has a bound, and what fills a gap passes it. */
Test(sctp_data, attack_7_out_of_order_data_has_a_bound, .fini = fini)
{
	const unsigned n = 10000 / (1000 + DDPS_SC_ITEM);
	struct ddps_sctp_stats st;
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = 0;
	raw_up(&r);
	r.e->c.max_held = 10000;
	for (unsigned i = 1; i <= 20; i++)
		raw_data(&r, RAW_TSN + i, 1, (uint16_t)i, 3, text); /* the first is missing */
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.held, n * (1000 + DDPS_SC_ITEM));
	cr_expect_eq(st.held_full, 20 - n);
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN - 1);
	raw_data(&r, RAW_TSN, 2, 0, 7, "the gap");
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(send_sctp_data_sack().cum, RAW_TSN + n);
}

/* A peer that leaves a gap, and fills it with what waits for something else, has no more. */
Test(sctp_data, attack_7_what_fills_a_gap_has_a_bound_too, .fini = fini)
{
	const unsigned n = (20000 - 4 - DDPS_SC_ITEM) / (1000 + DDPS_SC_ITEM);
	struct ddps_sctp_stats st;
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = 0;
	raw_up(&r);
	r.e->c.max_held = 10000;
	raw_data(&r, RAW_TSN + 100, 1, 100, 3, "high"); /* the first of the stream is missing */
	for (unsigned i = 1; i <= 40; i++)
		raw_data(&r, RAW_TSN + i, 1, (uint16_t)i, 3, text);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.held, 4 + DDPS_SC_ITEM + n * (1000 + DDPS_SC_ITEM));
	cr_expect_eq(st.held_full, 40 - n);
	raw_data(&r, RAW_TSN, 2, 0, 7, "not held");
	cr_expect_eq(r.messages, 1);
}

static unsigned overruns;

static void take_sctp_data_overrun(void *user, uint16_t stream)
{
	(void)user;
	cr_expect_eq(stream, 1);
	overruns++;
}

Test(sctp_data, a_held_stream_has_its_share_and_no_more, .fini = fini)
{
	struct ddps_sctp_up up = raw_upcalls;
	char text[1001];
	uint32_t tsn = RAW_TSN;

	memset(text, 'x', 1000);
	text[1000] = 0;
	up.overrun = take_sctp_data_overrun;
	raw_up(&r);
	ddps_sctp_assoc_set_up(r.a, &up, &r);
	cr_assert_eq(ddps_sctp_hold_stream(r.a, 1, true, r.net.now), 0);
	for (unsigned i = 0; i < 20; i++)
		raw_data(&r, tsn++, 1, 0, 7, text);
	raw_data(&r, tsn++, 2, 0, 7, "other");
	cr_expect_eq(r.messages, 1);
	ddps_sctp_hold_stream(r.a, 1, false, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.messages, 21);
	ddps_sctp_hold_stream(r.a, 1, true, r.net.now);
	for (unsigned i = 0; i < 600; i++)
		raw_data(&r, tsn++, 1, 0, 7, text);
	cr_expect_eq(overruns, 1);
	cr_expect_eq(r.e->st.held, 0);
	raw_data(&r, tsn++, 2, 0, 7, "other");
	cr_expect_eq(r.messages, 22);
	ddps_sctp_hold_stream(r.a, 1, false, r.net.now);
	raw_data(&r, tsn++, 1, 0, 7, "anew");
	cr_expect_eq(r.messages, 23);
}

/* ---- sending ---- */

Test(sctp_data, sends_number_and_bundle, .fini = fini,
     .description = "9260-6.5-4 9260-6.5-5 9260-6.5-6 9260-3.3.1-8 9260-3.3.1-10 9260-6.10-3")
{
	struct iovec iov = { (void *)(uintptr_t) "hello", 5 };
	struct ddps_sc_chunk c;
	struct ddps_sc_data d;

	raw_up(&r);
	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(ddps_sctp_send(r.a, 2, 9, i == 2 ? DDPS_SCTP_UNORDERED : 0, &iov, 1,
					    r.net.now),
			     0);
	r.n = 0;
	sn_flush(&r.net);
	cr_assert_eq(r.n, 1); /* all in one packet */
	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(raw_got(&r, 0, i, &c), SC_DATA);
		ddps_sc_decode_data(&d, &c);
		cr_expect(d.tsn == r.tsn + i && d.sid == 2 && d.ppid == 9 && d.len == 5);
		cr_expect_eq(d.flags & 7, i == 2 ? 7 : 3);
		if (i != 2)
			cr_expect_eq(d.ssn, i - (i > 2));
	}
	raw_sack(&r, r.tsn + 5, 100000);
	raw_wait(&r, 1);
	cr_expect_eq(r.acked, 6);
	cr_expect_eq(ddps_sctp_acked(r.a), 6);
	cr_expect_eq(raw_user_send(&r, 5, 0, "x"), DDPS_E_INVAL);
	cr_expect_eq(raw_user_send(&r, 0, 0, ""), DDPS_E_INVAL);
}

/* Packets that leave in one run are cut where the first one ends: a SACK may not follow a packet that
 * is shorter. */
Test(sctp_data, a_run_has_one_short_packet_and_that_is_its_last, .fini = fini,
     .description = "9260-6.10-3")
{
	static uint8_t long_one[3000];
	struct iovec iov = { long_one, sizeof long_one };
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_sack(&r, r.tsn - 1, 100000);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 9, 0, &iov, 1, r.net.now), 0);
	raw_data(&r, RAW_TSN + 1, 0, 0, 7, "a gap, so that the SACK does not ride in front");
	cr_assert_eq(r.n, 4);
	for (unsigned i = 0; i < r.n; i++)
		cr_expect(ddps_sc_crc_ok(r.log[i].data, r.log[i].len), "packet %u", i);
	cr_expect_gt(r.log[0].len, r.log[2].len);
	cr_expect_eq(raw_got(&r, 2, 0, &c), SC_DATA);
	cr_expect_eq(raw_got(&r, 2, 1, &c), -1);
	cr_expect_eq(raw_got(&r, 3, 0, &c), SC_SACK);
}

Test(sctp_data, acknowledging_what_was_never_sent_is_the_end, .fini = fini,
     .description = "9260-12.4-3")
{
	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	raw_sack(&r, r.tsn + 1, 100000);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_eq(r.gone, 1);
}

Test(sctp_data, a_lost_message_is_sent_again_and_the_peer_given_up, .fini = fini,
     .description = "9260-8.1-1 9260-8.1-3 9260-8.1-4 9260-6.3.3-d1 etsi-fh-5-1-1")
{
	unsigned n = 0;

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	for (unsigned i = 0; i < 1000 && !r.gone; i++) {
		raw_wait(&r, 1000);
		n += raw_any(&r, SC_DATA, NULL);
	}
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_RESET);
	cr_expect_geq(n, 10);
}
