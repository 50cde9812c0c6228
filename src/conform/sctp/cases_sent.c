/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 sections 6.1, 6.3 and 7.2: DATA that the target sends, and what SACKs do to it. */
#include "conform/sctp/raw.h"
#include <string.h>

/*
 * The target has one chunk more outstanding, a packet of its own, that is not acknowledged.  Its
 * TSN.
 */
static uint32_t ask_unacked(struct cf_raw *r, uint16_t sid)
{
	r->mute = true;
	cf_raw_ask(r, sid);
	cf_raw_want_answer(r, sid);
	return r->tsn;
}

/* Four of them; the lowest. */
static uint32_t four(struct cf_raw *r)
{
	uint32_t tsn = ask_unacked(r, 1), next;

	for (uint16_t i = 1; i < 4; i++) {
		do { /* the ones before may be sent again meanwhile */
			cf_raw_ask(r, (uint16_t)(i + 1));
			do
				cf_raw_want_data(r);
			while (cf_tsn_before(r->tsn, tsn + i));
		} while (r->tsn != tsn + i);
		next = r->tsn;
		CF_CHECK(r->cf, next == tsn + i, "TSN %u, it was to be %u", next, tsn + i);
	}
	return tsn;
}

static void acknowledge_all(struct cf_raw *r)
{
	r->mute = false;
	cf_raw_sack(r, r->l->cum, CF_RWND);
	cf_raw_quiet(r);
}

static void format(struct cf *cf)
{
	struct cf_raw_chunk c, again;
	uint8_t old[64];
	uint32_t tsn;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	tsn = r.l->cum + 1;
	r.mute = true;
	cf_raw_ask(&r, 5);
	do /* what came before may come once more */
		c = cf_raw_want_data(&r);
	while (cf_tsn_before(r.tsn, tsn));
	CF_CHECK(cf, (c.flags & ~RAW_I) == (RAW_WHOLE | RAW_U), "DATA with flags %02x", c.flags);
	CF_CHECK(cf, r.tsn == tsn, "TSN %u, it was to be %u", r.tsn, tsn);
	CF_CHECK(cf, cf_get16(c.v + 4) == 5 && cf_get32(c.v + 8) == PPID_CONTROL,
		 "stream %u, PPID %u", cf_get16(c.v + 4), cf_get32(c.v + 8));
	CF_CHECK(cf, c.len <= sizeof old, "%zu octets", c.len);
	memcpy(old, c.v, c.len);
	again = cf_raw_want_data(&r); /* T3, or a probe for its tail */
	CF_CHECK(cf, again.len == c.len && !memcmp(again.v, old, c.len),
		 "another chunk instead of the one that was not acknowledged: %s",
		 cf_hex(again.v, again.len));
	acknowledge_all(&r);
	cf_raw_ask(&r, 6);
	cf_raw_want_answer(&r, 6);
	CF_CHECK(cf, r.tsn == tsn + 1, "TSN %u behind %u", r.tsn, tsn);
}

/* What is acknowledged is not sent again, whatever time goes by. */
static void check_sent_acknowledged(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	ask_unacked(&r, 1);
	acknowledge_all(&r);
	while (cf_raw_next(&r, 1500, &c))
		CF_CHECK(cf, c.type != CF_C_DATA, "DATA that was acknowledged is sent again");
}

/*
 * Unanswered, it is sent again and again, with more time between each time.  The first may be a probe of
 * the tail; T3 doubles from then on.  A target that a busy machine lets wait is asked once more.  Its
 * HEARTBEATs are not answered: a new RTT would end the doubling.
 */
static void check_sent_backs_off(struct cf *cf)
{
	uint64_t at, ms = 0, last = 0;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	ask_unacked(&r, 1);
	r.deaf = true;
	cf_raw_want_data(&r);
	for (unsigned i = 0; i < 3 && (i < 2 || last < 200 || ms < last * 3 / 2); i++) {
		last = ms;
		at = r.in_at;
		cf_raw_want_data(&r);
		ms = (r.in_at - at) / 1000000;
	}
	CF_CHECK(cf, last >= 200 && ms >= last * 3 / 2, "sent again after %u and %u ms",
		 (unsigned)last, (unsigned)ms);
	r.deaf = false;
	acknowledge_all(&r);
	cf_raw_alive(&r);
}

/* Three SACKs that miss it bring it again; what they have is not sent again. */
static void fast(struct cf *cf)
{
	uint16_t gap[1][2] = { { 2, 2 } };
	uint32_t tsn;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	tsn = four(&r);
	for (uint16_t last = 2; last <= 4; last++) {
		gap[0][1] = last;
		cf_raw_sack_gaps(&r, tsn - 1, CF_RWND, gap, 1);
	}
	r.tsn = 0;
	do {
		cf_raw_want_data(&r);
		CF_CHECK(cf, r.tsn == tsn, "TSN %u is sent again, %u is missing", r.tsn, tsn);
	} while (r.tsn != tsn);
	acknowledge_all(&r);
	cf_raw_alive(&r);
}

/* Two holes: both come, in order, before anything new. */
static void check_sent_holes(struct cf *cf)
{
	static const uint16_t gap[][2] = { { 2, 2 }, { 4, 4 } };
	bool first = false, third = false;
	uint32_t tsn;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	tsn = four(&r);
	for (unsigned i = 0; i < 4; i++)
		cf_raw_sack_gaps(&r, tsn - 1, CF_RWND, gap, 2);
	while (!first || !third) {
		cf_raw_want_data(&r);
		CF_CHECK(cf, r.tsn == tsn || r.tsn == tsn + 2, "TSN %u is sent again", r.tsn);
		CF_CHECK(cf, r.tsn == tsn || first, "the second hole is filled first");
		first |= r.tsn == tsn;
		third |= r.tsn == tsn + 2;
	}
	acknowledge_all(&r);
	cf_raw_alive(&r);
}

/* A gap acknowledgement that is taken back: the chunk is outstanding again. */
static void taken_back(struct cf *cf)
{
	static const uint16_t gap[][2] = { { 2, 4 } };
	uint32_t tsn;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	tsn = four(&r);
	cf_raw_sack_gaps(&r, tsn - 1, CF_RWND, gap, 1);
	cf_raw_quiet(&r);
	cf_raw_sack(&r, tsn, CF_RWND); /* the first has come, the others are gone */
	for (unsigned seen = 0; seen != 7;) {
		cf_raw_want_data(&r);
		CF_CHECK(cf, r.tsn - tsn <= 3, "TSN %u", r.tsn);
		if (r.tsn != tsn)
			seen |= 1u << (r.tsn - tsn - 1);
		if (r.tsn != tsn && seen != 7)
			cf_raw_sack(&r, tsn, CF_RWND);
	}
	acknowledge_all(&r);
	cf_raw_alive(&r);
}

/* A SACK that was overtaken: neither its acknowledgement nor its window counts. */
static void check_sent_stale_sack(struct cf *cf)
{
	uint32_t tsn;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	tsn = ask_unacked(&r, 1);
	acknowledge_all(&r);
	cf_raw_sack(&r, tsn - 1, 0);
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
	cf_raw_sack(&r, tsn - 100000, 0);
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

static void optimistic(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_sack(&r, r.l->cum + 1, CF_RWND);
	c = cf_raw_want(&r, CF_C_ABORT);
	CF_CHECK(cf, c.tag == r.l->tag && !c.flags, "ABORT under tag %08x, flags %u", c.tag,
		 c.flags);
	cf_raw_dead(&r);
}

/* SACKs whose counts and blocks lie do no harm. */
static void nonsense(struct cf *cf)
{
	static const uint16_t back[][2] = { { 3, 2 }, { 0, 0 } }, one[][2] = { { 1, 1 } };
	struct cf_raw r;
	uint32_t tsn;

	cf_raw_up(cf, &r);
	for (unsigned n = 1; n < 70; n += 17) {
		cf_raw_begin(&r);
		cf_raw_put(&r, CF_C_SACK, 0, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
		cf_put32(r.out.b + RAW_HEADER + 4, r.l->cum);
		cf_put32(r.out.b + RAW_HEADER + 8, CF_RWND);
		cf_put16(r.out.b + RAW_HEADER + 12, (uint16_t)(n & 1 ? n : 0));
		cf_put16(r.out.b + RAW_HEADER + 14, (uint16_t)(n & 1 ? 0 : n));
		r.wrong = true;
		cf_raw_send(&r);
	}
	r.wrong = true;
	cf_raw_say(&r, CF_C_SACK, 0, "\0\0\0\0", 4);
	cf_raw_quiet(&r);
	tsn = four(&r);
	cf_raw_sack_gaps(&r, tsn - 1, CF_RWND, back, 2);
	cf_raw_sack_gaps(&r, tsn - 1, CF_RWND, one, 1); /* what the cumulative TSN could say */
	cf_raw_quiet(&r);
	acknowledge_all(&r);
	cf_raw_alive(&r);
}

/* ---- the window ---- */

/* Into a window of 0 goes one chunk at a time, a probe; into an open one all that waits. */
static void closed_window(struct cf *cf)
{
	uint32_t first;
	struct cf_raw r;
	unsigned n;

	cf_raw_up(cf, &r);
	cf_raw_sack(&r, r.l->cum, 0);
	cf_raw_quiet(&r);
	r.mute = true;
	n = r.ndata;
	first = r.l->cum + 1;
	for (uint16_t i = 1; i <= 6; i++)
		cf_raw_ask(&r, i);
	cf_raw_quiet(&r);
	while (r.ndata == n) /* it probes, if not now then soon */
		cf_raw_want_data(&r);
	cf_raw_sack(&r, first - 1, 0); /* there is no room for it */
	cf_raw_quiet(&r);
	CF_CHECK(cf, r.tsn == first, "TSN %u goes into a window of 0 behind the probe", r.tsn);
	cf_raw_want_data(&r);
	CF_CHECK(cf, r.tsn == first, "TSN %u goes into a window of 0 behind the probe", r.tsn);
	r.mute = false;
	cf_raw_sack(&r, r.l->cum, CF_RWND);
	while (cf_tsn_before(r.l->cum, first + 5))
		cf_raw_want_data(&r);
	cf_raw_alive(&r);
}

/* A probe is acknowledged, but the window stays shut: a second one, and so on; nobody gives up. */
static void probes(struct cf *cf)
{
	uint32_t first;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_sack(&r, r.l->cum, 0);
	cf_raw_quiet(&r);
	r.mute = true;
	first = r.l->cum + 1;
	for (uint16_t i = 1; i <= 3; i++)
		cf_raw_ask(&r, i);
	for (uint32_t i = 0; i < 2; i++) {
		do {
			cf_raw_want_data(&r);
			CF_CHECK(cf, !cf_tsn_before(first + i, r.tsn),
				 "TSN %u goes into a window of 0", r.tsn);
		} while (r.tsn != first + i);
		cf_raw_sack(&r, first + i, 0);
	}
	r.mute = false;
	cf_raw_sack(&r, r.l->cum, CF_RWND);
	while (cf_tsn_before(r.l->cum, first + 2))
		cf_raw_want_data(&r);
	cf_raw_alive(&r);
}

/* ---- heartbeats ---- */

static void check_heartbeat_echo(struct cf *cf)
{
	static const size_t sizes[] = { 4, 5, 7, 8, 64, 1000, 1400, 3500, 9000 };
	uint8_t info[9000];
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		cf_fill(info, sizes[i], (uint32_t)i);
		cf_put16(info, 1);
		cf_put16(info + 2, (uint16_t)sizes[i]);
		cf_raw_say(&r, CF_C_HEARTBEAT, 0, info, sizes[i]);
		c = cf_raw_want(&r, CF_C_HEARTBEAT_ACK);
		CF_CHECK(cf, c.len == sizes[i] && !memcmp(c.v, info, c.len),
			 "the answer to %zu octets has %zu", sizes[i], c.len);
	}
}

/* Answers to heartbeats that it never sent do nothing; nor do those that are no parameter. */
static void check_heartbeat_forged(struct cf *cf)
{
	uint8_t info[40] = { 0, 1, 0, 36 };
	struct cf_raw r;

	cf_raw_up(cf, &r);
	for (unsigned i = 0; i < 16; i++) {
		cf_fill(info + 4, 32, i);
		cf_raw_say(&r, CF_C_HEARTBEAT_ACK, 0, info, 36);
		r.wrong = true;
		cf_raw_say(&r, CF_C_HEARTBEAT_ACK, 0, info, i);
	}
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

const struct cf_case cf_cases_assoc_sent[] = {
	BOTH("sent", format,
	     "9260-3.3.1-1 9260-3.3.1-5 9260-3.3.1-8 9260-3.3.1-10 9260-3.3.1-d1 9260-6.1-18 "
	     "9260-6.2-28 9260-6.5-1 9260-6.3.2-d1 9260-6-9 9260-6.10-4 9260-6.1-24 etsi-d-8-1 "
	     "etsi-d-8-4 etsi-d-8-5",
	     "DATA has the next TSN, and is sent again as it was until it is acknowledged"),
	BOTH("sent-acked", check_sent_acknowledged, "9260-6.7-2 9260-6.3.2-d1 9260-6-4",
	     "what is acknowledged is not sent again"),
	BOTH("back-off", check_sent_backs_off, "9260-6.3.3-d1 9260-6.1-18 9260-6.1-19 etsi-rt-11-1",
	     "T3 doubles as long as nothing is acknowledged"),
	BOTH("missed", fast, "9260-7.2.4-2 9260-6.7-3 9260-6.7-4 9260-7.2.4-d1 etsi-d-8-9",
	     "what three SACKs miss is sent again, the rest is not"),
	BOTH("holes", check_sent_holes, "9260-6.7-3 9260-6.1-12 9260-6.10-3",
	     "holes are filled from the lowest on"),
	BOTH("taken-back", taken_back, "9260-6.2.1-d3 etsi-d-8-12",
	     "a gap acknowledgement that is taken back leaves the chunk outstanding"),
	BOTH("sack-old", check_sent_stale_sack, "9260-6.2.1-d1",
	     "a SACK older than the last does nothing"),
	BOTH("sack-lies", optimistic, "9260-12.4-3 9260-8.5.1-3",
	     "an acknowledgement of what was never sent is the end"),
	BOTH("sack-nonsense", nonsense, "9260-3.3.4-1 9260-6.10-6",
	     "SACKs whose counts or blocks lie do no harm"),
	BOTH("window", closed_window, "9260-6.1-1 9260-6.1-3 9260-6.1-4 9260-6.1-17 etsi-d-8-7",
	     "a window of 0 takes a probe, one chunk at a time"),
	BOTH("probes", probes, "9260-6.1-4 9260-6.1-5 9260-6.1-6 etsi-d-8-8",
	     "a window that stays shut is probed on"),
	BOTH("heartbeat", check_heartbeat_echo,
	     "9260-3.3.6-1 9260-3.3.6-2 9260-8.3-5 9260-3.3.6-d1 etsi-fh-5-2",
	     "a HEARTBEAT of any size comes back as it was"),
	BOTH("heartbeat-forged", check_heartbeat_forged, "9260-5.4-d2",
	     "answers to HEARTBEATs that were never sent do nothing"),
	{ 0 },
};
