/* SPDX-License-Identifier: BSD-2-Clause */
/* What is taken of a peer and of a user, and what is not: DATA, SACKs, sends. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_taken, .fini = fini);

/* ---- fragments ---- */

/* A chunk, and then the one with the TSN before it. */
struct pair {
	uint8_t later, sooner; /* flags */
	uint16_t sid, ssn;     /* of the sooner one; the later has 1 and 0 */
	bool fits;
};

Test(sctp_taken, what_may_stand_before_a_fragment)
{
	enum { B = SC_DATA_B, E = SC_DATA_E, U = SC_DATA_U };
	static const struct pair row[] = {
		{ 0, B, 1, 0, true },	      { 0, 0, 1, 0, true },
		{ E, B, 1, 0, true },	      { E, 0, 1, 0, true },
		{ B, E, 1, 0, true },	      { B, B | E, 2, 0, true },
		{ B, B, 1, 0, false },	      { B, 0, 1, 0, false },
		{ 0, E, 1, 0, false },	      { E, E, 1, 0, false },
		{ 0, B | E, 2, 0, false },    { E, B | E, 2, 0, false },
		{ E, B, 2, 0, false },	      { E, B, 1, 1, false },
		{ E, B | U, 1, 0, false },    { E | U, B, 1, 0, false },
		{ E | U, B | U, 1, 1, true }, { E | U, B | U, 2, 0, false },
		{ B | E, B, 1, 0, false },    { B | E, 0, 1, 0, false },
		{ B | E, E, 1, 0, true },
	};

	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		if (i)
			fini();
		raw_up(&r);
		raw_data(&r, RAW_TSN + 5, 1, 0, row[i].later, "x");
		cr_expect_eq(r.gone, 0);
		raw_data(&r, RAW_TSN + 4, row[i].sid, row[i].ssn, row[i].sooner, "y");
		cr_expect_eq(r.gone, !row[i].fits, "%u", i);
		cr_expect_eq(r.e->st.violations, !row[i].fits, "%u", i);
		if (!row[i].fits)
			cr_expect_eq(r.e->st.held, 0);
	}
}

/* A message in fragments whose turn was before. */
Test(sctp_taken, a_sequence_number_that_was_there)
{
	raw_up(&r);
	raw_data(&r, RAW_TSN, 1, 0, 3, "first");
	raw_data(&r, RAW_TSN + 1, 1, 0, 2, "fi");
	cr_expect_eq(r.gone, 0);
	raw_data(&r, RAW_TSN + 2, 1, 0, 1, "rst");
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_PROTOCOL);
	cr_expect_eq(r.messages, 1);
}

/* The second of its stream comes first: whether it found no memory; then it is not acknowledged. */
static bool ahead(unsigned n)
{
	bool poor;

	raw_up(&r);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN, 1, 1, 3, "one");
	mem_fail(n);
	raw_hand(&r);
	poor = mem_failed();
	mem_fail(0);
	sn_flush(&r.net);
	cr_expect_eq(r.a->map.cum, poor ? RAW_TSN - 1 : RAW_TSN, "allocation %u", n);
	raw_data(&r, RAW_TSN, 1, 1, 3, "one");
	raw_data(&r, RAW_TSN + 1, 1, 0, 3, "zero");
	cr_expect_eq(r.messages, 2, "allocation %u", n);
	cr_expect_arr_eq(r.last_data, "one", 3);
	cr_expect_eq(r.e->st.held, 0);
	return poor;
}

Test(sctp_taken, a_message_ahead_of_its_turn_that_finds_no_memory)
{
	unsigned n = 1;

	for (; ahead(n); n++)
		fini();
	cr_expect_geq(n, 2);
}

/* The last of three fragments: where the whole finds no memory it is the end. */
static bool whole(unsigned n)
{
	bool poor;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 1, 1, 2, "o"); /* its turn comes later */
	raw_data(&r, RAW_TSN + 1, 1, 1, 0, "n");
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN + 2, 1, 1, 1, "e");
	mem_fail(n);
	raw_hand(&r);
	poor = mem_failed();
	mem_fail(0);
	sn_flush(&r.net);
	if (poor && r.gone) {
		cr_expect_eq(r.why.code, DDPS_E_NOMEM);
		cr_expect(raw_any(&r, SC_ABORT, NULL));
		cr_expect_geq(r.e->st.no_memory, 1);
		cr_expect_eq(r.e->st.held, 0);
		return true;
	}
	raw_data(&r, RAW_TSN + 2, 1, 1, 1, "e"); /* if it was dropped */
	raw_data(&r, RAW_TSN + 3, 1, 0, 3, "zero");
	cr_expect_eq(r.messages, 2, "allocation %u", n);
	cr_expect_arr_eq(r.last_data, "one", 3);
	cr_expect_eq(r.e->st.held, 0);
	return poor;
}

Test(sctp_taken, a_message_that_finds_no_memory_at_its_last_fragment)
{
	unsigned n = 1;

	for (; whole(n); n++)
		fini();
	cr_expect_geq(n, 4);
}

/* ---- DATA ---- */

Test(sctp_taken, data_that_is_too_short, .description = "9260-6.2-27")
{
	static const uint8_t none[12] = { 0, 0, 3, 0xe8 };

	raw_up(&r);
	raw_chunk(&r, r.tag, SC_DATA, 3, none, 11);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.e->st.violations, 1);
	fini();
	raw_up(&r);
	raw_chunk(&r, r.tag, SC_DATA, 3, none, 12); /* a header and nothing behind it */
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.e->st.violations, 1);
}

/* A SACK that may wait leaves with the timer, one that may not immediately. */
Test(sctp_taken, when_a_packet_is_acknowledged, .description = "9260-6.2-7")
{
	raw_up(&r);
	raw_data(&r, RAW_TSN, 1, 0, 3, "a"); /* the first is not delayed */
	cr_expect(raw_any(&r, SC_SACK, NULL));
	raw_data(&r, RAW_TSN + 1, 1, 1, 3, "b");
	cr_expect_not(raw_any(&r, SC_SACK, NULL));
	raw_wait(&r, 21);
	cr_expect(raw_any(&r, SC_SACK, NULL));
	raw_begin(&r, r.tag); /* a duplicate, but with something new */
	raw_put_data(&r, RAW_TSN + 1, 1, 1, 3, "b");
	raw_put_data(&r, RAW_TSN + 2, 1, 2, 3, "c");
	raw_send(&r);
	cr_expect_not(raw_any(&r, SC_SACK, NULL));
	raw_data(&r, RAW_TSN + 3, 1, 3, 3, "d"); /* the second packet */
	cr_expect(raw_any(&r, SC_SACK, NULL));
	raw_data(&r, RAW_TSN + 3, 1, 3, 3, "d"); /* nothing but a duplicate */
	cr_expect(raw_any(&r, SC_SACK, NULL));
	r.a->delay_sack_never = true;
	for (uint32_t i = 4; i < 7; i++) {
		raw_data(&r, RAW_TSN + i, 1, (uint16_t)i, 3, "e");
		cr_expect(raw_any(&r, SC_SACK, NULL));
	}
}

/* ---- SACKs ---- */

/* So many blocks and duplicates, each of them @gap. */
static void long_sack(uint32_t cum, uint16_t ngaps, uint16_t ndups, uint32_t gap, uint32_t last)
{
	static uint8_t big[16384];
	struct ddps_wbuf w = ddps_wbuf_init(big, sizeof big);
	uint8_t *at;

	ddps_sc_put_header(&w, RAW_PEER, RAW_PORT, r.tag);
	at = ddps_sc_begin_chunk(&w, SC_SACK, 0);
	ddps_wbuf_u32(&w, cum);
	ddps_wbuf_u32(&w, 100000);
	ddps_wbuf_u16(&w, ngaps);
	ddps_wbuf_u16(&w, ndups);
	for (unsigned i = 0; i < ngaps; i++)
		ddps_wbuf_u32(&w, i + 1 < ngaps ? gap : last);
	for (unsigned i = 0; i < ndups; i++)
		ddps_wbuf_u32(&w, cum);
	ddps_sc_end_chunk(&w, at, 0);
	cr_assert_not(w.failed);
	ddps_sc_crc_put(big, (size_t)(w.p - big));
	raw_send_as_is(&r, big, (size_t)(w.p - big));
}

/* Blocks that are out of order mean nothing; one that names what was never sent ends it all.  The
 * 1025th and those behind it are not looked at. */
Test(sctp_taken, the_blocks_of_a_sack_that_are_looked_at, .description = "9260-12.4-3")
{
	static const uint32_t one = 1 << 16 | 1, lie = 9 << 16 | 9;

	raw_up(&r);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	long_sack(r.tsn, 1025, 1025, one, lie);
	cr_expect_eq(r.gone, 0);
	cr_expect_eq(r.a->n_gaps, 1025);
	cr_expect_eq(r.a->tx.bad_blocks, 1);
	cr_expect_eq(r.acked, 1);
	long_sack(r.tsn + 1, 1024, 1024, one, lie);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_PROTOCOL);
}

/* Over what blocks have acknowledged before: that is an answer, too. */
Test(sctp_taken, a_cumulative_ack_that_brings_nothing_new, .description = "9260-8.1-5")
{
	const uint32_t gap = 2 << 16 | 3;
	uint32_t val[4], cum;

	raw_up(&r);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	val[0] = htobe32(r.tsn - 1);
	val[1] = htobe32(100000);
	val[2] = htobe32(1 << 16);
	val[3] = htobe32(gap);
	raw_chunk(&r, r.tag, SC_SACK, 0, val, sizeof val);
	cum = htobe32(r.tsn);
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-RECEIVED");
	cr_assert_eq(r.a->tx.cum, r.tsn);
	r.a->errors = 5;
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_expect_eq(r.a->errors, 5, "the same again");
	cum = htobe32(r.tsn + 2);
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_expect_eq(r.a->tx.cum, r.tsn + 2);
	cr_expect_eq(r.a->errors, 0);
}

/* ---- reports ---- */

static unsigned causes(const struct ddps_sc_chunk *c)
{
	struct ddps_rbuf b = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sc_tlv t;
	unsigned n = 0;

	while (ddps_sc_tlv_next(&b, &t) > 0)
		n++;
	return n;
}

static void send_unknown_sctp_taken(unsigned n)
{
	static const uint8_t octets[200];

	raw_begin(&r, r.tag);
	while (n--)
		ddps_sc_put_chunk(&r.w, 0xfe, 0, octets, sizeof octets);
}

Test(sctp_taken, as_much_as_one_report_takes, .description = "9260-12.4-2")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	for (unsigned n = 1; n < 6; n++) {
		send_unknown_sctp_taken(n);
		raw_send(&r);
		cr_assert_eq(r.n, 1);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ERROR);
		cr_expect_eq(causes(&c), n < 3 ? n : 3, "each with 128 octets");
	}
	send_unknown_sctp_taken(1);
	mem_fail(1);
	raw_hand(&r);
	cr_expect(mem_failed());
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.e->st.no_memory, 1);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* ---- the user ---- */

Test(sctp_taken, how_long_a_message_may_be)
{
	static uint8_t octet;
	struct iovec iov = { &octet, 1 };

	raw_up(&r);
	r.e->c.send_buffer = 2;
	iov.iov_len = 3;
	cr_expect_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), DDPS_E_TOO_LONG);
	iov.iov_len = 1;
	cr_expect_eq(ddps_sctp_send(r.a, 0, 17, 0, (struct iovec[]){ iov, iov }, 2, r.net.now), 0);
	r.e->c.send_buffer = SIZE_MAX;
	iov.iov_len = UINT32_MAX / 2 + 1ul;
	cr_expect_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), DDPS_E_TOO_LONG);
	cr_expect_eq(ddps_sctp_sent(r.a), 1);
}

Test(sctp_taken, when_an_acknowledgement_will_come)
{
	raw_up(&r);
	cr_expect_not(ddps_sctp_under_way(r.a));
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	cr_expect(ddps_sctp_under_way(r.a));
	ddps_sctp_shutdown(r.a, r.net.now);
	cr_expect_not(ddps_sctp_under_way(r.a), "it ends");
	fini();
	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	ddps_sent_path_lost(&r.a->tx, &r.a->path[0]->tx);
	cr_expect_not(ddps_sctp_under_way(r.a), "it is lost");
}

Test(sctp_taken, a_reason_of_any_length, .description = "9260-9.1-2")
{
	static const size_t len[] = { 1, 255, 256, 257, 1000 };
	char reason[1001];
	struct ddps_sc_chunk c;

	for (unsigned i = 0; i < sizeof len / sizeof *len; i++) {
		size_t want = len[i] < 256 ? len[i] : 256;

		if (i)
			fini();
		raw_up(&r);
		memset(reason, 'r', sizeof reason);
		reason[len[i]] = 0;
		ddps_sctp_abort(r.a, reason, r.net.now);
		cr_expect_eq(ddps_sctp_set_primary(r.a, &r.net.node[1].addr[0], r.net.now),
			     DDPS_E_INVAL, "it is over");
		r.n = 0;
		sn_flush(&r.net);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
		cr_expect_eq(c.vlen, 4 + want);
		cr_expect_eq(c.val[1], SC_CAUSE_USER);
		cr_expect_eq(c.val[2] << 8 | c.val[3], (int)(4 + want));
		cr_expect_eq(c.val[3 + want], 'r');
	}
}

/* ---- holds ---- */

Test(sctp_taken, a_hold_that_finds_no_memory)
{
	raw_up(&r);
	mem_fail(1);
	cr_expect_eq(ddps_sctp_hold_stream(r.a, 3, true, r.net.now), DDPS_E_NOMEM);
	mem_fail(0);
	raw_data(&r, RAW_TSN, 3, 0, 3, "not held");
	cr_expect_eq(r.messages, 1);
	cr_expect_eq(ddps_sctp_hold_stream(r.a, 3, true, r.net.now), 0);
	raw_data(&r, RAW_TSN + 1, 3, 1, 3, "held");
	cr_expect_eq(r.messages, 1);
}

/* What waited for the user when the hold began waits for its end, then. */
Test(sctp_taken, what_a_pause_kept_is_held)
{
	raw_up(&r);
	ddps_sctp_pause(r.a, true, r.net.now);
	raw_data(&r, RAW_TSN, 3, 0, 3, "held");
	raw_data(&r, RAW_TSN + 1, 4, 0, 3, "not");
	cr_expect_eq(ddps_sctp_hold_stream(r.a, 3, true, r.net.now), 0);
	ddps_sctp_pause(r.a, false, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(r.messages, 1);
	cr_expect_arr_eq(r.last_data, "not", 3);
	cr_expect_eq(ddps_sctp_hold_stream(r.a, 3, false, r.net.now), 0);
	raw_wait(&r, 1);
	cr_expect_eq(r.messages, 2);
	cr_expect_arr_eq(r.last_data, "held", 4);
	cr_expect_eq(r.e->st.held, 0);
}

/* What waits for the user goes before what comes now. */
Test(sctp_taken, after_a_pause_all_comes_in_order)
{
	raw_up(&r);
	ddps_sctp_pause(r.a, true, r.net.now);
	raw_data(&r, RAW_TSN, 1, 0, 3, "a");
	ddps_sctp_pause(r.a, false, r.net.now);
	cr_expect_eq(r.messages, 0);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN + 1, 2, 0, 3, "b"); /* of another stream */
	raw_hand(&r);
	cr_expect_eq(r.messages, 2);
	cr_expect_eq(r.last.stream, 2);
	cr_expect_eq(r.e->st.held, 0);
}
