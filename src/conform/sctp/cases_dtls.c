/* SPDX-License-Identifier: BSD-2-Clause */
/* What DTLS adds to SCTP: checksums that are zero (RFC 9653), and addresses that say nothing (RFC 8261). */
#include "conform/sctp/raw.h"
#include <string.h>

#define P_IPV4	    5u
#define P_IPV6	    6u
#define P_ADDRESSES 12u /* Supported Address Types */
#define P_ZERO	    0x8001u
#define STREAM	    3

/* RFC 9653 section 4, with DTLS as the method. */
static const uint8_t zero_param[8] = { 0x80, 1, 0, 8, 0, 0, 0, 1 };

/* All that an INIT has to say before the association is there: of the target's INIT, or INIT ACK. */
static void meet_inside(struct cf *cf, struct cf_raw *r)
{
	cf_raw_bare(cf, r);
	if (cf->c->target == CF_RESPONDER)
		cf_raw_invite(r);
}

/* The rest of a set-up in which we say that zero is right for us. */
static void up_with_zero(struct cf *cf, struct cf_raw *r)
{
	struct cf_raw_chunk c;
	uint8_t params[16];

	cf_raw_bare(cf, r);
	r->takes_zero = true;
	if (cf->c->target == CF_INITIATOR) {
		cf_raw_answer_init(r, zero_param, sizeof zero_param);
		cf_raw_want_echo(r);
		cf_raw_say(r, CF_C_COOKIE_ACK, 0, NULL, 0);
		r->l->state = CF_L_UP;
		cf_raw_want_data(r); /* its Initiate */
		return;
	}
	memcpy(params, cf_raw_ddp, 8);
	memcpy(params + 8, zero_param, 8);
	cf_raw_begin_tag(r, 0);
	cf_raw_put_own_init(r, CF_C_INIT, params, sizeof params);
	cf_raw_send(r);
	c = cf_raw_want(r, CF_C_INIT_ACK);
	cf_raw_take_init(r, &c);
	cf_raw_echo(r);
	cf_raw_want(r, CF_C_COOKIE_ACK);
	r->l->state = CF_L_UP;
}

static void zero_said(struct cf *cf)
{
	struct cf_raw r;
	const uint8_t *v;
	size_t len = 0;

	meet_inside(cf, &r);
	v = cf_raw_param(r.peer.params, r.peer.params_len, P_ZERO, &len);
	CF_CHECK(cf, v, "no Zero Checksum Acceptable parameter, though it is inside DTLS");
	CF_CHECK(cf, len == 4 && cf_get32(v) == 1, "%zu octets of value, method %u", len,
		 len == 4 ? cf_get32(v) : 0);
	v += len;
	CF_CHECK(cf,
		 !cf_raw_param(v, r.peer.params_len - (size_t)(v - r.peer.params), P_ZERO, &len),
		 "the parameter is there twice");
}

static void zero_taken(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	for (unsigned i = 0; i < 4; i++) {
		cf_raw_begin(&r);
		cf_raw_put_question(&r, (uint16_t)(STREAM + i));
		cf_pkt_send_as_is(&r.out, r.l);
		cf_raw_want_answer(&r, (uint16_t)(STREAM + i));
	}
}

static void other_sum(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_watch(&r, STREAM);
	cf_raw_begin(&r);
	cf_raw_put_question(&r, STREAM);
	cf_raw_send_bad_sum(&r);
	cf_raw_quiet(&r);
	CF_CHECK(cf, !r.nwatched, "a packet with a wrong checksum was taken");
	r.l->tsn--; /* its TSN is free */
	cf_raw_alive(&r);
}

/* Every packet is looked at: whom nobody has told gets checksums. */
static void zero_not_sent(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_alive(&r);
	cf_raw_quiet(&r);
}

static void zero_sent(struct cf *cf)
{
	struct cf_raw r;

	up_with_zero(cf, &r);
	r.nzero = r.npackets = 0;
	cf_raw_alive(&r);
	cf_raw_quiet(&r);
	CF_CHECK(cf, r.nzero == r.npackets,
		 "%u of %u packets have a checksum, though zero would do", r.npackets - r.nzero,
		 r.npackets);
}

static void lists_no_address(struct cf *cf)
{
	static const uint16_t not [] = { P_IPV4, P_IPV6, P_ADDRESSES };
	struct cf_raw r;
	size_t len;

	meet_inside(cf, &r);
	for (unsigned i = 0; i < sizeof not / sizeof *not ; i++)
		CF_CHECK(cf, !cf_raw_param(r.peer.params, r.peer.params_len, not [i], &len),
			 "a parameter of type %u, inside DTLS", not [i]);
}

/* An address that nobody has is no path: nothing waits for it. */
static void addresses_passed_over(struct cf *cf)
{
	static const uint8_t param[8] = { 0, P_IPV4, 0, 8, 192, 0, 2, 99 };
	struct cf_raw_chunk c;
	uint8_t params[16];
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	memcpy(params, cf_raw_ddp, 8);
	memcpy(params + 8, param, 8);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, params, sizeof params);
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_INIT_ACK);
	cf_raw_take_init(&r, &c);
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

#define ROLES(point, run, ids, rule)                                                               \
	{ "dtls-" point, ids, rule, CF_DTLS, CF_RESPONDER, false, run },                           \
	{                                                                                          \
		"dtls-initiator-" point, ids, rule, CF_DTLS, CF_INITIATOR, false, run              \
	}

const struct cf_case cf_cases_dtls[] = {
	ROLES("zero-said", zero_said, "9653-5.1-1 9653-4-1 9653-4-2",
	      "INIT and INIT ACK say, once, that a checksum may be zero"),
	ROLES("zero-taken", zero_taken, "9653-5.3-1", "a packet whose checksum is zero is taken"),
	ROLES("other-sum", other_sum, "9653-5.3-1", "one with a wrong checksum is not"),
	ROLES("zero-not-sent", zero_not_sent, "9653-5.2-1",
	      "whom nobody has told that zero is right gets checksums"),
	ROLES("zero-sent", zero_sent, "9653-5.2-8 9653-5.2-2 9653-5.2-3",
	      "who says so gets zeros, but in INIT and COOKIE ECHO"),
	ROLES("no-addresses", lists_no_address, "8261-6.1-5 8261-6.1-6",
	      "neither INIT nor INIT ACK lists addresses"),
	{ "dtls-addresses", "8261-6.1-5 8261-6.1-3", "addresses that an INIT lists are passed over",
	  CF_DTLS, CF_RESPONDER, false, addresses_passed_over },
	{ 0 },
};
