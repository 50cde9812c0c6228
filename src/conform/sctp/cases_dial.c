/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 sections 5.1 and 5.2, the target as initiator: INIT ACKs and what crosses them. */
#include "conform/sctp/raw.h"
#include <string.h>

#define P_COOKIE 7u
#define MS	 UINT64_C(1000000)

static const uint8_t biscuit[] = { 0, P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };

static void send_init_ack(struct cf_raw *r, uint32_t tag, uint32_t rwnd, uint16_t os, uint16_t mis,
			  const void *params, size_t len)
{
	cf_raw_begin(r);
	cf_raw_put_init(r, CF_C_INIT_ACK, tag, rwnd, os, mis, r->own_tsn, params, len);
	cf_raw_send(r);
}

/* The attempt is over: an ABORT under @tag, and the application learns of it. */
static void expect_dial_given_up(struct cf_raw *r, uint32_t tag, uint8_t flags, unsigned cause)
{
	struct cf_raw_chunk c = cf_raw_want(r, CF_C_ABORT);

	CF_CHECK(r->cf, c.tag == tag && c.flags == flags, "ABORT under tag %08x, flags %u", c.tag,
		 c.flags);
	CF_CHECK(r->cf, !cause || cf_raw_cause(&c) == cause, "cause %u", cf_raw_cause(&c));
	if (r->cf->self)
		cf_app_event(r->cf, DDPS_EV_FAILED);
	r->l->state = CF_L_OVER;
}

static void ack_tag_0(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	send_init_ack(&r, 0, CF_RWND, 10, 10, biscuit, sizeof biscuit);
	expect_dial_given_up(&r, r.peer.tag, RAW_T, 0);
}

static void ack_os_0(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	send_init_ack(&r, r.l->tag, CF_RWND, 0, 10, biscuit, sizeof biscuit);
	expect_dial_given_up(&r, r.l->tag, 0, RAW_INVALID_PARAMETER);
}

static void ack_mis_0(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	send_init_ack(&r, r.l->tag, CF_RWND, 10, 0, biscuit, sizeof biscuit);
	expect_dial_given_up(&r, r.l->tag, 0, RAW_INVALID_PARAMETER);
}

static void ack_window_1499(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	send_init_ack(&r, r.l->tag, 1499, 10, 10, biscuit, sizeof biscuit);
	expect_dial_given_up(&r, r.l->tag, 0, RAW_INVALID_PARAMETER);
}

static void ack_host_name(struct cf *cf)
{
	static const uint8_t p[] = {
		0, 11, 0, 8, 'h', 'o', 's', 't', 0, 7, 0, 8, 'c', 'o', 'o', 'k'
	};
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	send_init_ack(&r, r.l->tag, CF_RWND, 10, 10, p, sizeof p);
	expect_dial_given_up(&r, r.l->tag, 0, 0);
}

static void ack_without_cookie(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	send_init_ack(&r, r.l->tag, CF_RWND, 10, 10, cf_raw_ddp, sizeof cf_raw_ddp);
	expect_dial_given_up(&r, r.l->tag, 0, RAW_MISSING_PARAMETER);
}

/* Unknown parameters: the set-up goes on, and an ERROR names those that ask for it. */
static void ack_unknown(struct cf *cf)
{
	static const uint8_t p[] = { 0x80, 0xf0, 0,    4,    0xc0, 0xf1, 0,    7,    'a', 'b',
				     'c',  0xee, 0x7f, 0xf2, 0,	   4,	 0xff, 0xf3, 0,	  4 };
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_answer_init(&r, p, sizeof p);
	c = cf_raw_want_echo(&r);
	CF_CHECK(cf, !r.ndata || c.last, "DATA and more behind the COOKIE ECHO");
	c = cf_raw_want(&r, CF_C_ERROR);
	CF_CHECK(cf, cf_raw_cause(&c) == RAW_UNKNOWN_PARAMETERS && c.len == 4 + 8 + 4,
		 "ERROR of cause %u: %s", cf_raw_cause(&c), cf_hex(c.v, c.len));
	CF_CHECK(cf, !memcmp(c.v + 4, p + 4, 7) && !memcmp(c.v + 12, p + 12, 4), "it says %s",
		 cf_hex(c.v, c.len));
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

/* More than 1500 octets, most of them a parameter that is passed over; flags; a list. */
static void ack_large(struct cf *cf)
{
	uint8_t p[3000] = { 0x80, 0xf0 };
	struct cf_raw r;

	cf_put16(p + 2, sizeof p);
	cf_raw_bare(cf, &r);
	cf_raw_answer_init(&r, p, sizeof p);
	cf_raw_want_echo(&r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

static void ack_flags(struct cf *cf)
{
	uint8_t p[sizeof cf_raw_ddp + sizeof biscuit];
	struct cf_raw r;

	memcpy(p, cf_raw_ddp, sizeof cf_raw_ddp);
	memcpy(p + sizeof cf_raw_ddp, biscuit, sizeof biscuit);
	cf_raw_bare(cf, &r);
	cf_raw_begin(&r);
	cf_raw_put_own_init(&r, CF_C_INIT_ACK, p, sizeof p);
	r.out.b[RAW_HEADER + 1] = 0xff;
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_COOKIE_ECHO);
	CF_CHECK(cf, cf_get32(r.in + 4) == r.l->tag, "COOKIE ECHO under another tag");
}

/* Once a cookie is on its way, no other INIT ACK counts, however wrong it is. */
static void ack_twice(struct cf *cf)
{
	struct cf_raw r;
	uint32_t tag;

	cf_raw_bare(cf, &r);
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	tag = r.l->tag;
	send_init_ack(&r, tag ^ 0x77777777, CF_RWND, 10, 10, biscuit, sizeof biscuit);
	send_init_ack(&r, tag, CF_RWND, 0, 0, biscuit, sizeof biscuit);
	send_init_ack(&r, 0, 0, 0, 0, NULL, 0);
	cf_raw_quiet(&r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	send_init_ack(&r, tag ^ 0x77777777, CF_RWND, 10, 10, biscuit, sizeof biscuit);
	send_init_ack(&r, tag, CF_RWND, 0, 0, NULL, 0);
	cf_raw_alive(&r);
}

static void ack_wrong_tag(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin_tag(&r, r.peer.tag ^ 1);
	cf_raw_put_own_init(&r, CF_C_INIT_ACK, biscuit, sizeof biscuit);
	cf_raw_send(&r);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT_ACK, biscuit, sizeof biscuit);
	cf_raw_send(&r);
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
}

/* What may not end an attempt: none of it has a tag that is known, or a meaning yet. */
static void check_dial_early(struct cf *cf)
{
	uint8_t cum[4] = { 0 };
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	cf_raw_say(&r, CF_C_SHUTDOWN, 0, cum, sizeof cum);
	cf_raw_say(&r, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cf_raw_say_tag(&r, 0, CF_C_ABORT, RAW_T, NULL, 0);
	cf_raw_say(&r, CF_C_ABORT, RAW_T, NULL, 0);
	cf_raw_ask_at(&r, r.own_tsn, 0, RAW_WHOLE | RAW_U);
	cf_raw_say_tag(&r, 0x01020304, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	c = cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	CF_CHECK(cf, c.flags == RAW_T && c.tag == 0x01020304, "SHUTDOWN COMPLETE under tag %08x",
		 c.tag);
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	cf_raw_say(&r, CF_C_SHUTDOWN, 0, cum, sizeof cum);
	cf_raw_ask_at(&r, r.own_tsn, 0, RAW_WHOLE | RAW_U);
	cf_raw_say_tag(&r, r.peer.tag, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	c = cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	CF_CHECK(cf, c.flags == RAW_T && c.tag == r.peer.tag, "SHUTDOWN COMPLETE under tag %08x",
		 c.tag);
	cf_raw_quiet(&r); /* HEARTBEATs are answered in COOKIE-ECHOED */
	CF_CHECK(cf, !r.nsack, "DATA before the association is acknowledged");
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	r.l->tsn++;
	cf_raw_ask_at(&r, r.own_tsn, 0, RAW_WHOLE | RAW_U);
	cf_raw_quiet(&r);
}

static void aborted(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_say(&r, CF_C_ABORT, 0, NULL, 0);
	if (cf->self)
		cf_app_event(cf, DDPS_EV_FAILED);
	cf_raw_dead(&r);
}

/* Nothing of the user's leaves before COOKIE ACK but behind the COOKIE ECHO. */
static void nothing_before(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	CF_CHECK(cf, !r.ndata, "DATA with an INIT");
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	cf_raw_quiet(&r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	while (!r.ndata)
		cf_raw_want_data(&r);
	CF_CHECK(cf, r.tsn == r.peer.tsn, "first TSN %u, it was to be %u", r.tsn, r.peer.tsn);
}

/* ---- attempts that are repeated ---- */

static void expect_repeat(struct cf_raw *r, int type, unsigned least_ms, unsigned most_ms)
{
	uint64_t before = r->in_at, ms;

	cf_raw_want(r, type);
	ms = (r->in_at - before) / MS;
	CF_CHECK(r->cf, ms >= least_ms && ms <= most_ms, "chunk %d again after %u ms", type,
		 (unsigned)ms);
}

/* The same INIT after an RTO, and later each time; so the cookie. */
static void check_dial_again(struct cf *cf)
{
	uint8_t first[64];
	size_t len;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	len = r.in_len < sizeof first ? r.in_len : sizeof first;
	memcpy(first, r.in, len);
	expect_repeat(&r, CF_C_INIT, 900, 1600);
	CF_CHECK(cf, r.in_len >= len && !memcmp(first, r.in, len), "another INIT: %s",
		 cf_hex(r.in, r.in_len));
	expect_repeat(&r, CF_C_INIT, 1800, 3200);
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	expect_repeat(&r, CF_C_COOKIE_ECHO, 300, 3200);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

/* A stale cookie: it asks for another. */
static void check_dial_stale(struct cf *cf)
{
	static const uint8_t cause[] = { 0, RAW_STALE_COOKIE, 0, 8, 0, 0, 1, 0 };
	uint32_t tsn;
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_say(&r, CF_C_ERROR, 0, cause, sizeof cause); /* there is no cookie yet */
	tsn = r.peer.tsn;
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	cf_raw_say(&r, CF_C_ERROR, 0, cause, sizeof cause);
	c = cf_raw_want(&r, CF_C_INIT);
	cf_raw_take_init(&r, &c);
	CF_CHECK(cf, r.peer.tsn == tsn || r.peer.tag, "an INIT without tag");
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	cf_raw_say(&r, CF_C_ERROR, 0, cause, sizeof cause); /* nor is there one now */
	cf_raw_alive(&r);
}

/* DATA may come with the cookie, and with the cookie again; what was acknowledged comes no more. */
static void data_with_cookie(struct cf *cf)
{
	struct cf_raw_chunk c;
	uint8_t sack[12] = { 0 };
	struct cf_raw r;
	uint32_t first;
	unsigned n;

	cf_raw_bare(cf, &r);
	first = r.peer.tsn;
	cf_raw_answer_init(&r, NULL, 0);
	for (unsigned i = 0; i < 2; i++) {
		c = cf_raw_want_echo(&r);
		for (n = 0; !c.last && cf_raw_next(&r, 0, &c); n += c.type == CF_C_DATA)
			CF_CHECK(cf, c.type != CF_C_DATA || r.tsn == first + n,
				 "TSN %08x with the cookie, the INIT said %08x", r.tsn, first);
	}
	cf_put32(sack, first - 1 + n);
	cf_put32(sack + 4, 1u << 20);
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	cf_raw_put(&r, CF_C_SACK, 0, sack, sizeof sack);
	cf_raw_send(&r);
	r.l->state = CF_L_UP;
	r.ndata = 0;
	cf_raw_alive(&r);
	CF_CHECK(cf, !n || r.ndata == 1, "%u chunks of DATA, one answer was due", r.ndata);
}

/*
 * SCTP does not look at the indication of the INIT ACK: it sets up the association, and the user
 * has no use for one that is not DDP's.
 */
static void check_init_ack_adaptation(struct cf *cf, const uint8_t *params, size_t len)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin(&r);
	cf_raw_put_own_init(&r, CF_C_INIT_ACK, params, len);
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_COOKIE_ECHO);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	c = cf_raw_want(&r, CF_C_ABORT);
	CF_CHECK(cf, cf_raw_cause(&c) == RAW_USER_ABORT, "ABORT of cause %u", cf_raw_cause(&c));
	CF_CHECK(cf, !r.ndata, "DATA where the peer is not DDP");
}

CF_CALL(check_init_ack_no_adaptation, check_init_ack_adaptation(cf, biscuit, sizeof biscuit));

static void check_init_ack_other_adaptation(struct cf *cf)
{
	static const uint8_t p[] = { 0,	   P_COOKIE, 0, 8, 'c', 'o', 'o', 'k',
				     0xc0, 6,	     0, 8, 0,	0,   0,	  2 };

	check_init_ack_adaptation(cf, p, sizeof p);
}

const struct cf_case cf_cases_assoc_dial[] = {
	I("ack-tag-0", ack_tag_0,
	  "9260-3.3.3-6 9260-3.3.3-7 9260-3.1-6 9260-3.3.7-6 etsi-as-1-14-2",
	  "an INIT ACK that offers tag 0 ends the attempt; the ABORT reflects"),
	I("ack-os-0", ack_os_0, "9260-3.3.3-6 9260-3.3.3-7 9260-5.1-15 9260-5.1-17 etsi-as-1-7-4",
	  "an INIT ACK without outbound streams ends the attempt"),
	I("ack-mis-0", ack_mis_0, "9260-3.3.3-6 9260-3.3.3-7 9260-5.1-16",
	  "an INIT ACK without inbound streams ends the attempt"),
	I("ack-window", ack_window_1499, "9260-3.3.3-9 9260-3.3.3-10",
	  "an INIT ACK with a window of 1499 ends the attempt"),
	I("ack-host-name", ack_host_name, "9260-3.3.3-2 9260-5.1.2-9 etsi-as-1-12-2",
	  "an INIT ACK with a host name ends the attempt"),
	I("ack-no-cookie", ack_without_cookie, "9260-5.1-5 9260-5.1-16 etsi-e-6-4",
	  "an INIT ACK without a cookie ends the attempt; the ABORT says what is missing"),
	I("ack-unknown", ack_unknown,
	  "9260-3.2.2-2 9260-3.2.1-d1 9260-3.2.1-d2 9260-3.2.1-1 9260-3.2.1-2 9260-3.2.1-3 "
	  "9260-3.2.2-4 9260-3.3.3-13 etsi-e-6-5",
	  "unknown parameters of an INIT ACK are named behind the COOKIE ECHO"),
	I("ack-large", ack_large, "9260-3.3.3-12 9260-3.3.3-14",
	  "an INIT ACK of more than 1500 octets is read"),
	I("ack-flags", ack_flags,
	  "9260-3.3.3-3 9260-3.2-d5 9260-3.3.3-4 9260-8.5.1-10 etsi-as-1-10-2",
	  "flags of an INIT ACK are ignored; the COOKIE ECHO bears its tag"),
	I("ack-twice", ack_twice, "9260-3.3.3-8 9260-5.2.3-1 etsi-dm-4-3",
	  "an INIT ACK out of turn is thrown away"),
	I("ack-tag", ack_wrong_tag, "9260-8.5-2 9260-8.5.1-2 9260-5.1.4-1",
	  "an INIT ACK under another tag vanishes"),
	I("early", check_dial_early,
	  "9260-5.2.5-1 9260-9.2-19 9260-9.2-20 9260-8.5.1-11 9260-8.5.1-6 9260-8.5.1-7 "
	  "9260-3.1-5 9260-3.3.13-2 9260-8.3-2 9260-6-2 9260-6-3 9260-8.5.1-9 etsi-dm-4-6-1 "
	  "etsi-dm-4-7-1 etsi-dm-4-9",
	  "during set-up SHUTDOWN, DATA and the like vanish; SHUTDOWN ACK is answered as stray"),
	I("aborted", aborted, "9260-9.1-4 9260-9.1-5 9260-3.3.7-5",
	  "an ABORT under its tag ends the attempt"),
	I("set-up-order", nothing_before,
	  "9260-5-1 9260-5.1-9 9260-5.1-8 9260-3.3.11-1 9260-6-1 9260-5.1-19 etsi-as-1-1-1 "
	  "pkdr-simple-active",
	  "nothing but the COOKIE ECHO before COOKIE ACK; then DATA from the first TSN on"),
	I("again", check_dial_again,
	  "9260-4-3 9260-4-4 9260-5.1.4-2 9260-5.1.6-d1 9260-5.1.6-1 9260-5.1-12 9260-3.3.11-2 "
	  "etsi-as-1-2-1 etsi-as-1-2-2 pkdr-init-rtx",
	  "INIT, then COOKIE ECHO are repeated as they were, later each time"),
	I("stale", check_dial_stale, "9260-5.2.6-1 9260-5.2.6-2 etsi-e-6-1 etsi-e-6-2",
	  "Stale Cookie asks for a new INIT, and out of turn for nothing"),
	I("data-with-cookie", data_with_cookie, "9260-5.1-7 9260-5.1-8 9260-3.3.11-1 9260-4-4",
	  "DATA that comes with COOKIE ECHO has the first TSNs, each time the same, and counts"),
	I("no-adaptation", check_init_ack_no_adaptation,
	  "5061-4.2.6-2 5061-4.2.6-3 5043-5.1-1 pkdr-generic",
	  "without an adaptation indication there is an association, but not for DDP"),
	I("adaptation-2", check_init_ack_other_adaptation, "5061-4.2.6-2 5061-4.2.6-3 5043-5.1-1",
	  "the adaptation indication's value is the user's matter"),
	{ 0 },
};
