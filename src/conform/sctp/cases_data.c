/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 sections 6.2, 6.5, 6.6, 6.7 and 6.9: DATA that the target receives. */
#include "conform/sctp/raw.h"
#include <string.h>

#define PLAIN (RAW_WHOLE | RAW_U)

static const uint8_t question[7] = { 0, 0, 0, CF_ENH_INITIATE, 0, 16, 0 };

/* Our TSNs from a number on. */
static void up_from(struct cf *cf, struct cf_raw *r, uint32_t tsn)
{
	cf_raw_bare(cf, r);
	r->l->tsn = r->own_tsn = tsn;
	r->sack_cum = tsn - 1;
	cf_raw_finish(r);
}

/* A SACK came before the answer to a HEARTBEAT that was sent behind the DATA: without delay. */
static void told_now(struct cf_raw *r, unsigned before, uint32_t cum)
{
	cf_raw_quiet(r);
	CF_CHECK(r->cf, r->nsack > before && r->sack_cum == cum, "no SACK of TSN %u immediately",
		 cum);
}

/* Sends a question that is not to wait for. */
static void send_question(struct cf_raw *r, uint32_t tsn, uint8_t flags)
{
	cf_raw_ask_at(r, tsn, 2, flags);
}

static void check_data_first(struct cf *cf)
{
	struct cf_raw r;
	unsigned n;

	cf_raw_up(cf, &r);
	n = r.nsack;
	cf_raw_ask(&r, 2);
	told_now(&r, n, r.own_tsn);
	CF_CHECK(cf, !r.ngaps && !r.ndups, "gaps or duplicates where there are none");
}

/* Not each packet has its SACK, but each second one has; a lone one has it in the end. */
static void delayed(struct cf *cf)
{
	struct cf_raw r;
	unsigned n;

	cf_raw_up(cf, &r);
	cf_raw_ask(&r, 2);
	cf_raw_want_sack(&r, r.l->tsn - 1);
	n = r.nsack;
	for (unsigned i = 0; i < 40; i++) {
		cf_raw_begin(&r); /* three chunks are one packet */
		for (unsigned k = 0; k < 3; k++)
			cf_raw_put_question(&r, 2);
		cf_raw_send(&r);
	}
	cf_raw_want_sack(&r, r.l->tsn - 1);
	CF_CHECK(cf, r.nsack - n <= 40, "%u SACKs of 40 packets", r.nsack - n);
	cf_raw_ask(&r, 2);
	cf_raw_want_sack(&r, r.l->tsn - 1);
	n = r.nsack;
	cf_raw_begin(&r);
	cf_raw_put_question(&r, 2);
	cf_raw_send(&r);
	cf_raw_begin(&r);
	cf_raw_put_question(&r, 2);
	cf_raw_send(&r);
	told_now(&r, n, r.l->tsn - 1);
}

/* How long the fastest SACK of several lone chunks takes, in ns.  Nobody answers these. */
static uint64_t fastest(struct cf_raw *r, uint8_t flags)
{
	uint64_t least = UINT64_MAX, at;

	for (unsigned i = 0; i < 6; i++) {
		send_question(r, r->l->tsn++, flags);
		at = cf_now();
		cf_raw_want_sack(r, r->l->tsn - 1);
		at = cf_now() - at;
		least = at < least ? at : least;
	}
	return least;
}

static void i_bit(struct cf *cf)
{
	uint64_t asked, other;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_ask(&r, 2);
	cf_raw_want_sack(&r, r.l->tsn - 1);
	cf_raw_quiet(&r);
	asked = fastest(&r, PLAIN | RAW_I);
	other = fastest(&r, PLAIN);
	CF_CHECK(cf, asked < other / 2 || other < 1000000,
		 "the fastest SACK took %u us with the I bit, %u us without",
		 (unsigned)(asked / 1000), (unsigned)(other / 1000));
}

static void check_gaps(struct cf_raw *r, uint32_t cum, const uint16_t (*gap)[2], unsigned n)
{
	CF_CHECK(r->cf, r->sack_cum == cum && r->ngaps == n, "SACK of TSN %u with %u gap blocks",
		 r->sack_cum, r->ngaps);
	for (unsigned i = 0; i < n; i++)
		CF_CHECK(r->cf, r->gap[i][0] == gap[i][0] && r->gap[i][1] == gap[i][1],
			 "gap block %u is %u to %u", i, r->gap[i][0], r->gap[i][1]);
}

/* Holes, what is behind them, what comes twice; then the holes are filled. */
static void gaps_from(struct cf *cf, uint32_t tsn)
{
	static const uint16_t one[][2] = { { 2, 2 } }, two[][2] = { { 2, 3 }, { 6, 6 } };
	static const uint16_t rest[][2] = { { 3, 3 } };
	struct cf_raw r;
	unsigned n;

	up_from(cf, &r, tsn);
	n = r.nsack;
	send_question(&r, tsn + 1, PLAIN); /* the first of all is missing */
	told_now(&r, n, tsn - 1);
	check_gaps(&r, tsn - 1, one, 1);
	send_question(&r, tsn + 2, PLAIN);
	send_question(&r, tsn + 5, PLAIN);
	n = r.nsack;
	send_question(&r, tsn + 2, PLAIN); /* once more: told immediately, and once */
	told_now(&r, n, tsn - 1);
	check_gaps(&r, tsn - 1, two, 2);
	CF_CHECK(cf, r.ndups == 1 && r.dup[0] == tsn + 2, "%u duplicates, the first %u", r.ndups,
		 r.dup[0]);
	send_question(&r, tsn, PLAIN);
	told_now(&r, r.nsack, tsn + 2);
	check_gaps(&r, tsn + 2, rest, 1);
	CF_CHECK(cf, !r.ndups, "a duplicate is reported twice");
	send_question(&r, tsn + 4, PLAIN);
	send_question(&r, tsn + 3, PLAIN);
	cf_raw_want_sack(&r, tsn + 5);
	n = r.nsack;
	send_question(&r, tsn, PLAIN);
	told_now(&r, n, tsn + 5);
	CF_CHECK(cf, r.ndups == 1 && r.dup[0] == tsn, "%u duplicates", r.ndups);
	r.l->tsn = tsn + 6;
	cf_raw_alive(&r);
}

CF_CALL(gaps, gaps_from(cf, 1000));
CF_CALL(gaps_wrap, gaps_from(cf, UINT32_MAX - 2));

/* More holes than a SACK has room for: the lowest are reported. */
static void many_gaps(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	for (unsigned i = 0; i < 500; i++) {
		send_question(&r, r.own_tsn + 1 + 2 * i, PLAIN);
		if (i % 50 == 49) /* no more than a socket holds */
			cf_raw_quiet(&r);
	}
	cf_raw_quiet(&r);
	CF_CHECK(cf, r.ngaps >= 250 && r.sack_cum == r.own_tsn - 1, "%u gap blocks", r.ngaps);
	for (unsigned i = 0; i < 16; i++)
		CF_CHECK(cf, r.gap[i][0] == 2 + 2 * i && r.gap[i][1] == r.gap[i][0],
			 "gap block %u is %u to %u", i, r.gap[i][0], r.gap[i][1]);
}

/* ---- streams and order ---- */

static void bad_stream(struct cf *cf)
{
	struct cf_raw_chunk c;
	uint16_t sid;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	sid = (uint16_t)(cf_raw_last_stream(&r) + 1);
	cf_raw_ask(&r, sid);
	c = cf_raw_want(&r, CF_C_ERROR);
	CF_CHECK(cf, cf_raw_cause(&c) == RAW_INVALID_STREAM && cf_get16(c.v + 4) == sid,
		 "ERROR of cause %u: %s", cf_raw_cause(&c), cf_hex(c.v, c.len));
	cf_raw_want_sack(&r, r.l->tsn - 1);
	cf_raw_alive(&r);
}

static void no_data(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_begin(&r);
	cf_raw_put_data(&r, r.l->tsn, 0, 0, PLAIN, 17, NULL, 0);
	r.wrong = true;
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_ABORT);
	CF_CHECK(cf, cf_raw_cause(&c) == RAW_NO_USER_DATA && cf_get32(c.v + 4) == r.l->tsn,
		 "ABORT of cause %u: %s", cf_raw_cause(&c), cf_hex(c.v, c.len));
	CF_CHECK(cf, c.tag == r.l->tag && !c.flags, "ABORT under tag %08x, flags %u", c.tag,
		 c.flags);
	cf_raw_dead(&r);
}

static void say_part(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn, uint8_t flags,
		     size_t from, size_t len)
{
	cf_raw_begin(r);
	cf_raw_put_data(r, tsn, sid, ssn, flags, 17, question + from, len);
	cf_raw_send(r);
}

/* A message that no session is there for: nobody answers it. */
static void say_nothing(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn)
{
	static const uint8_t end[4] = { 0, 0, 0, CF_TERMINATE };

	cf_raw_begin(r);
	cf_raw_put_data(r, tsn, sid, ssn, RAW_WHOLE, 17, end, sizeof end);
	cf_raw_send(r);
}

/* The second message of a stream waits for the first; what has no order does not. */
static void check_data_order(struct cf *cf)
{
	struct cf_raw r;
	uint32_t tsn;

	cf_raw_up(cf, &r);
	tsn = r.l->tsn;
	cf_raw_watch(&r, 1);
	say_part(&r, tsn + 1, 1, 1, RAW_WHOLE, 0, 7);
	cf_raw_quiet(&r);
	CF_CHECK(cf, !r.nwatched, "it is delivered before the one that belongs before it");
	say_part(&r, tsn + 2, 2, 0, RAW_WHOLE, 0, 7);
	cf_raw_want_answer(&r, 2); /* another stream */
	say_part(&r, tsn + 3, 3, 0xbeef, PLAIN, 0, 7);
	cf_raw_want_answer(&r, 3); /* no order */
	say_nothing(&r, tsn, 1, 0);
	cf_raw_want_answer(&r, 1);
	r.l->tsn = tsn + 4;
	cf_raw_alive(&r);
}

/* ---- fragments ---- */

static void say_fragment(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint8_t u, unsigned i)
{
	static const uint8_t at[] = { 0, 1, 4, 6, 7 }; /* 1, 3, 2 and 1 octets */

	say_part(r, tsn + i, sid, 0,
		 (uint8_t)(u | (i == 0 ? RAW_FIRST : 0) | (i == 3 ? RAW_LAST : 0)), at[i],
		 (size_t)at[i + 1] - at[i]);
}

static void check_data_fragments(struct cf *cf, uint8_t u)
{
	static const uint8_t way[][4] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 }
	};
	struct cf_raw r;

	cf_raw_up(cf, &r);
	for (unsigned k = 0; k < 4; k++) {
		cf_raw_watch(&r, (uint16_t)(k + 1));
		for (unsigned i = 0; i < 4; i++) {
			cf_raw_quiet(&r);
			CF_CHECK(cf, !r.nwatched, "a message is delivered in parts");
			say_fragment(&r, r.l->tsn, (uint16_t)(k + 1), u, way[k][i]);
		}
		cf_raw_want_answer(&r, (uint16_t)(k + 1));
		r.l->tsn += 4;
		cf_raw_want_sack(&r, r.l->tsn - 1);
	}
	cf_raw_alive(&r);
}

CF_CALL(fragments_ordered, check_data_fragments(cf, 0));
CF_CALL(fragments_unordered, check_data_fragments(cf, RAW_U));

/* Parts, and whole ones, behind one another in a packet. */
static void bundle(struct cf *cf)
{
	struct cf_raw r;
	uint32_t tsn;

	cf_raw_up(cf, &r);
	tsn = r.l->tsn;
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
	cf_raw_put_question_at(&r, tsn, 1, PLAIN);
	cf_raw_put_data(&r, tsn + 1, 2, 0, RAW_FIRST, 17, question, 3);
	cf_raw_put_data(&r, tsn + 2, 2, 0, RAW_LAST, 17, question + 3, 4);
	cf_raw_put_question_at(&r, tsn + 3, 3, PLAIN | 0xf0); /* flags that nobody has */
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_HEARTBEAT_ACK);
	for (unsigned i = 0; i < 2; i++)
		while (!r.ndata || r.sid != 3)
			cf_raw_want_data(&r);
	cf_raw_want_sack(&r, tsn + 3);
	r.l->tsn = tsn + 4;
	cf_raw_alive(&r);
}

/* DATA that counts as received may not be taken back: it is in each SACK until the hole closes. */
static void check_data_kept(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	send_question(&r, r.own_tsn + 3, PLAIN);
	cf_raw_quiet(&r);
	for (unsigned i = 0; i < 10; i++) {
		send_question(&r, r.own_tsn + 10 + i, PLAIN);
		cf_raw_quiet(&r);
		CF_CHECK(cf, r.ngaps == 2 && r.gap[0][0] == 4 && r.gap[0][1] == 4,
			 "a gap block is taken back");
		CF_CHECK(cf, r.sack_rwnd <= r.peer.rwnd, "a window of %u, %u was offered",
			 r.sack_rwnd, r.peer.rwnd);
	}
}

const struct cf_case cf_cases_assoc_data[] = {
	BOTH("first-data", check_data_first,
	     "9260-5.1-18 9260-6.2-1 9260-6-2 9260-6.2-13 9260-6.2-29 etsi-a-9-1",
	     "the first DATA is acknowledged immediately"),
	BOTH("sack-delay", delayed, "9260-6.2-7 9260-6.2-8 9260-6.2-9 9260-6.2-13 etsi-a-9-2",
	     "each second packet of DATA, and a lone one in the end, is acknowledged, by one SACK"),
	BOTH("sack-i", i_bit, "9260-6.2-16", "DATA with the I bit is acknowledged immediately"),
	BOTH("gaps", gaps,
	     "9260-3.3.4-1 9260-3.3.4-2 9260-3.3.4-d1 9260-3.3.4-d2 9260-3.3.4-d3 9260-6.2-13 "
	     "9260-6.2-17 9260-6.2-19 9260-6.7-1 9260-7.2.4-1 9260-6.2-18 etsi-d-8-6 etsi-a-9-3",
	     "holes and duplicates are reported immediately, until they are no more"),
	BOTH("gaps-wrap", gaps_wrap, "9260-1.6-1 9260-1.6-2 9260-1.6-4",
	     "the same where TSNs wrap"),
	BOTH("gaps-many", many_gaps, "9260-6.2-14 9260-6.7-5",
	     "of too many holes a SACK reports the lowest"),
	BOTH("gaps-kept", check_data_kept,
	     "9260-6.2-26 9260-6.2-24 9260-6.2-22 9260-6.2-30 9260-3.3.2-13",
	     "what was acknowledged in a gap block stays so"),
	BOTH("stream", bad_stream, "9260-6.5-2 9260-6.5-3 9260-5.1.1-3 etsi-e-6-3",
	     "DATA on a stream that there is not: acknowledged, and an ERROR"),
	BOTH("no-data", no_data, "9260-6.2-27 9260-8.5.1-3 9260-9.1-1 9260-3.3.7-1 etsi-d-8-11",
	     "DATA without an octet is the end"),
	BOTH("order", check_data_order,
	     "9260-6.6-1 9260-6.6-d1 9260-3.3.1-2 9260-3.3.1-3 9260-1.6-5 etsi-d-8-10",
	     "messages keep their order in their stream, and only there"),
	BOTH("fragments", fragments_ordered,
	     "9260-6.9-1 9260-6.9-8 9260-6-10 9260-3.3.1-9 etsi-d-8-3",
	     "ordered fragments of odd sizes are joined, whatever their order of arrival"),
	BOTH("fragments-u", fragments_unordered, "9260-6.9-1 9260-6.9-8 9260-6-10 9260-3.3.1-9",
	     "unordered fragments of odd sizes are joined, whatever their order of arrival"),
	BOTH("bundle", bundle, "9260-6-10 9260-6.10-5 9260-3-2 9260-3.2-d5 etsi-bdc-7-8",
	     "chunks of one packet are read front to back"),
	{ 0 },
};
