/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the published suites for SCTP ask beyond the rules one by one: parameters that may come along,
 * chunks that share a packet, what is odd in mid-set-up and in mid-end.  The ids etsi-... are test
 * purposes of ETSI TS 102 369, pkdr-... are packetdrill scripts: docs/conformance.md.
 */
#include "conform/sctp/raw.h"
#include <string.h>

#define P_COOKIE 7u

static const uint8_t crumb[] = { 0, P_COOKIE, 0, 8, 'c', 'r', 'u', 'm' };

static void open_with_params(struct cf_raw *r, uint16_t os, uint16_t mis, const void *params,
			     size_t len)
{
	struct cf_raw_chunk c;

	cf_raw_begin_tag(r, 0);
	cf_raw_put_init(r, CF_C_INIT, r->l->tag, CF_RWND, os, mis, r->own_tsn, params, len);
	cf_raw_send(r);
	c = cf_raw_want(r, CF_C_INIT_ACK);
	cf_raw_take_init(r, &c);
	cf_raw_echo(r);
	cf_raw_want(r, CF_C_COOKIE_ACK);
	r->l->state = CF_L_UP;
}

static void put_cookie_ack(struct cf_raw *r)
{
	cf_raw_put(r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r->l->state = CF_L_UP;
}

static void put_sack(struct cf_raw *r)
{
	uint8_t v[12] = { 0 };

	cf_put32(v, r->l->cum);
	cf_put32(v + 4, CF_RWND);
	cf_raw_put(r, CF_C_SACK, 0, v, sizeof v);
}

/* ---- INIT ---- */

/* Cookie Preservative, Supported Address Types, Supported Extensions, Padding. */
static void init_parameters(struct cf *cf)
{
	static const uint8_t p[] = { 0xc0, 6,	 0,    8,  0,	0, 0, 1, 0,   9,   0,	8,   0,	 0,
				     1,	   0,	 0,    12, 0,	8, 0, 5, 0,   6,   128, 8,   0,	 7,
				     0xc0, 0x82, 0x80, 0,  128, 5, 0, 9, 'p', 'a', 'd', 'd', 'y' };
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	open_with_params(&r, CF_SCTP_STREAMS, CF_SCTP_STREAMS, p, sizeof p);
	cf_raw_alive(&r);
}

/* IPv4's peer says that it has IPv6 only, IPv6's peer the reverse: its source says otherwise. */
static void other_family(struct cf *cf)
{
	uint8_t p[] = { 0, 12, 0, 6, 0, 6, 0, 0, 0xc0, 6, 0, 8, 0, 0, 0, 1 };
	struct cf_raw r;

	for (uint8_t family = 5; family <= 6; family++) {
		cf_raw_bare(cf, &r);
		p[5] = family;
		open_with_params(&r, CF_SCTP_STREAMS, CF_SCTP_STREAMS, p, sizeof p);
		cf_raw_alive(&r);
		if (family == 5)
			cf_raw_say(&r, CF_C_ABORT, 0, NULL, 0);
	}
}

static void two_streams(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	open_with_params(&r, 2, 2, cf_raw_ddp, sizeof cf_raw_ddp);
	CF_CHECK(cf, r.peer.os == 2 && r.peer.mis >= 2, "%u streams out, %u in, 2 were asked for",
		 r.peer.os, r.peer.mis);
	cf_raw_ask(&r, 1);
	cf_raw_want_answer(&r, 1);
}

/* ---- INIT ACK ---- */

static void ack_parameters(struct cf *cf)
{
	static const uint8_t p[] = { 128, 8, 0, 5, 128, 0, 0, 0, 128, 5, 0, 8, 'p', 'a', 'd', 's' };
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_answer_init(&r, p, sizeof p);
	cf_raw_want_echo(&r);
	cf_raw_begin(&r);
	put_cookie_ack(&r);
	cf_raw_send(&r);
	cf_raw_alive(&r);
}

static void ack_one_stream(struct cf *cf)
{
	uint8_t p[sizeof cf_raw_ddp + sizeof crumb];
	struct cf_raw r;

	memcpy(p, cf_raw_ddp, sizeof cf_raw_ddp);
	memcpy(p + sizeof cf_raw_ddp, crumb, sizeof crumb);
	cf_raw_bare(cf, &r);
	cf_raw_begin(&r);
	cf_raw_put_init(&r, CF_C_INIT_ACK, r.l->tag, CF_RWND, 1, 1, r.own_tsn, p, sizeof p);
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_COOKIE_ECHO);
	cf_raw_begin(&r);
	put_cookie_ack(&r);
	cf_raw_send(&r);
	if (!r.ndata)
		cf_raw_want_data(&r);
	CF_CHECK(cf, r.sid == 0, "DATA on stream %u, there is one", r.sid);
}

/* After an INIT ACK that is none: it goes on with a good one, or has given up. */
static void expect_dial_goes_on(struct cf_raw *r)
{
	struct cf_raw_chunk c;

	cf_raw_answer_init(r, NULL, 0);
	do
		CF_CHECK(r->cf, cf_raw_next(r, r->cf->run->limit_ms, &c),
			 "neither goes on nor ends");
	while (c.type == CF_C_INIT);
	if (c.type == CF_C_ABORT)
		return;
	CF_CHECK(r->cf,
		 c.type == CF_C_COOKIE_ECHO && c.len == r->l->cookie_len &&
			 !memcmp(c.v, r->l->cookie, c.len),
		 "chunk %u, a COOKIE ECHO was due", c.type);
}

static void ack_cut(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	r.wrong = true;
	cf_raw_say(&r, CF_C_INIT_ACK, 0, "\0\0\0\1", 4);
	expect_dial_goes_on(&r);
}

static void ack_bundled(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin(&r);
	cf_raw_put_own_init(&r, CF_C_INIT_ACK, crumb, sizeof crumb);
	cf_raw_put_question_at(&r, r.own_tsn, 2, RAW_WHOLE | RAW_U);
	r.wrong = true;
	cf_raw_send(&r);
	expect_dial_goes_on(&r);
}

static void cookie_ack_again(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

static void cookie_ack_data(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	cf_raw_begin(&r);
	put_cookie_ack(&r);
	cf_raw_put_question(&r, 2);
	cf_raw_send(&r);
	cf_raw_want_answer(&r, 2);
	cf_raw_want_sack(&r, r.own_tsn);
}

/* ---- cookies ---- */

static void cookie_error(struct cf *cf)
{
	static const uint8_t cause[] = { 0, RAW_UNKNOWN_PARAMETERS, 0, 8, 0xc0, 0, 0, 4 };
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_invite(&r);
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_COOKIE_ECHO, 0, r.l->cookie, r.l->cookie_len);
	cf_raw_put(&r, CF_C_ERROR, 0, cause, sizeof cause);
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

static void cookie_forged(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	r.l->cookie[r.l->cookie_len / 2] ^= 1;
	cf_raw_echo(&r);
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

/* ---- what shares a packet ---- */

static void sack_data(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_begin(&r);
	put_sack(&r);
	cf_raw_put_question(&r, 2);
	cf_raw_send(&r);
	cf_raw_want_answer(&r, 2);
}

static void shutdown_sack(struct cf *cf)
{
	uint8_t cum[4];
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_put32(cum, r.l->cum);
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_SHUTDOWN, 0, cum, sizeof cum);
	put_sack(&r);
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_say(&r, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cf_raw_dead(&r);
}

/* ---- the end ---- */

/* Its only session is refused, so that it has no use for the association. */
static void come_to_shutdown(struct cf *cf, struct cf_raw *r)
{
	static const uint8_t no[8] = { 0, 0, 0, CF_ENH_REJECT, 0, 16, 0, 16 };

	cf_raw_up(cf, r);
	cf_raw_begin(r);
	cf_raw_put_data(r, r->l->tsn++, r->sid, 0, RAW_WHOLE | RAW_U, PPID_CONTROL, no, sizeof no);
	cf_raw_send(r);
	cf_raw_want(r, CF_C_SHUTDOWN);
}

static void close_down(struct cf_raw *r)
{
	cf_raw_say(r, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	cf_raw_want(r, CF_C_SHUTDOWN_COMPLETE);
	cf_raw_dead(r);
}

static void shutdown_ack_tag(struct cf *cf)
{
	struct cf_raw r;

	come_to_shutdown(cf, &r);
	cf_raw_say_tag(&r, r.l->peer_tag ^ 1, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	cf_raw_want(&r, CF_C_SHUTDOWN); /* T2 */
	close_down(&r);
}

static void crossing_again(struct cf *cf)
{
	uint64_t at;
	struct cf_raw r;

	come_to_shutdown(cf, &r);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	at = r.in_at;
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK); /* T2, begun anew: no SHUTDOWN between */
	CF_CHECK(cf, r.in_at - at > 100000000u, "SHUTDOWN ACK again after %u ms",
		 (unsigned)((r.in_at - at) / 1000000));
	close_down(&r);
}

/* ---- ERROR ---- */

/* Each cause there is, alone; one that is not known; two; none. */
static void error_causes(struct cf *cf)
{
	static const struct {
		uint8_t len, v[20];
	} row[] = {
		{ 8, { 0, RAW_INVALID_STREAM, 0, 8, 0xff, 0xff } },
		{ 12, { 0, RAW_MISSING_PARAMETER, 0, 12, 0, 0, 0, 2, 0, 123, 0, 234 } },
		{ 8, { 0, RAW_STALE_COOKIE, 0, 8, 0, 188, 97, 78 } },
		{ 4, { 0, RAW_OUT_OF_RESOURCE, 0, 4 } },
		{ 12, { 0, RAW_BAD_ADDRESS, 0, 12, 0, 11, 0, 8, 'h', '.', 'i', 0 } },
		{ 11, { 0, RAW_UNKNOWN_CHUNK, 0, 11, 0xcf, 0, 0, 7, 1, 2, 3 } },
		{ 4, { 0, RAW_INVALID_PARAMETER, 0, 4 } },
		{ 8, { 0, RAW_UNKNOWN_PARAMETERS, 0, 8, 0x12, 0x34, 0, 4 } },
		{ 8, { 0, RAW_NO_USER_DATA, 0, 8, 0, 188, 97, 78 } },
		{ 4, { 0, RAW_SHUTTING_DOWN, 0, 4 } },
		{ 12, { 0, RAW_NEW_ADDRESSES, 0, 12, 0, 5, 0, 8, 192, 0, 2, 7 } },
		{ 9, { 0, RAW_USER_ABORT, 0, 9, 'h', 'e', 'l', 'l', 'o' } },
		{ 9, { 0, RAW_VIOLATION, 0, 9, 'h', 'e', 'l', 'l', 'o' } },
		{ 4, { 0xff, 0xfe, 0, 4 } },
		{ 16,
		  { 0, RAW_INVALID_STREAM, 0, 8, 0, 1, 0, 0, 0, RAW_INVALID_STREAM, 0, 8, 0, 2 } },
		{ 0, "" },
	};
	struct cf_raw r;

	cf_raw_up(cf, &r);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		cf_raw_say(&r, CF_C_ERROR, 0, row[i].v, row[i].len);
		cf_raw_quiet(&r);
	}
	cf_raw_alive(&r);
}

#define WITH_APP(point, run, ids, rule)                                                            \
	{                                                                                          \
		"assoc-i-" point, ids, rule, CF_SCTP, CF_INITIATOR, true, run                      \
	}

const struct cf_case cf_cases_assoc_more[] = {
	R("init-parameters", init_parameters, "etsi-as-1-6-1 9260-3.3.2.1-5",
	  "an INIT with optional parameters is taken"),
	R("init-other-family", other_family, "etsi-as-1-13-2 9260-3.3.2.1-7",
	  "an INIT whose source is not of the families that it names is taken"),
	R("two-streams", two_streams, "etsi-as-1-7-5 9260-5.1.1-1",
	  "two streams each way are there"),
	I("ack-parameters", ack_parameters, "etsi-as-1-6-2",
	  "an INIT ACK with optional parameters is taken"),
	I("ack-one-stream", ack_one_stream, "etsi-as-1-7-3 9260-5.1.1-1 9260-6.5-1",
	  "where the INIT ACK has one stream, no other is used"),
	I("ack-cut", ack_cut, "etsi-imh-3-2 9260-6.10-6",
	  "an INIT ACK that is too short is dropped, or ends the attempt"),
	I("ack-bundled", ack_bundled, "etsi-bdc-7-2 9260-3-1",
	  "an INIT ACK in company is dropped, or ends the attempt"),
	I("cookie-ack-again", cookie_ack_again, "etsi-dm-4-4 9260-5.2.5-1",
	  "a COOKIE ACK out of turn vanishes"),
	I("cookie-ack-data", cookie_ack_data, "etsi-bdc-7-5 9260-6-2 9260-3-2",
	  "DATA behind a COOKIE ACK is taken"),
	R("cookie-error", cookie_error, "etsi-e-6-6",
	  "an ERROR behind the COOKIE ECHO hinders nothing"),
	R("cookie-forged", cookie_forged, "etsi-dm-4-8 9260-5.1.5-2",
	  "a forged cookie that meets an association vanishes"),
	BOTH("sack-data", sack_data, "etsi-bdc-7-7 9260-3-2",
	     "SACK and DATA of one packet are taken"),
	BOTH("shutdown-sack", shutdown_sack, "etsi-bdc-7-6 9260-3-2",
	     "SHUTDOWN and SACK of one packet are taken"),
	WITH_APP("shuts-down-tag", shutdown_ack_tag, "etsi-imh-3-9 9260-8.5-2",
		 "a SHUTDOWN ACK under a wrong tag ends nothing"),
	WITH_APP("shuts-down-crossing-again", crossing_again, "etsi-dm-4-6-3 9260-9.2-21",
		 "after crossing SHUTDOWNs T2 repeats SHUTDOWN ACK"),
	BOTH("error-causes", error_causes, "pkdr-error-causes 9260-3.3.10-d1",
	     "an ERROR ends nothing, whatever its cause"),
	{ 0 },
};
