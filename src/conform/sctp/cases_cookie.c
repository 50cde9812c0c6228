/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 section 5.1.5, the target as responder: cookies, good and bad. */
#include "conform/sctp/raw.h"
#include <string.h>

static void check_cookie_echo(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_echo(&r); /* our COOKIE ACK was lost */
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	cf_raw_alive(&r);
}

static void cookie_and_data(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_invite(&r);
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_COOKIE_ECHO, 0, r.l->cookie, r.l->cookie_len);
	cf_raw_put_question(&r, 9);
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	CF_CHECK(cf, !c.index, "COOKIE ACK does not lead its packet");
	cf_raw_want_sack(&r, r.own_tsn);
	if (!r.ndata)
		cf_raw_want_answer(&r, 9);
	CF_CHECK(cf, r.tsn == r.peer.tsn, "first TSN %u, it was to be %u", r.tsn, r.peer.tsn);
}

static void cookie_octets(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_invite(&r);
	for (size_t i = 0; i < r.l->cookie_len; i++) {
		r.l->cookie[i] ^= (uint8_t)(1u << i % 8);
		cf_raw_begin(&r);
		cf_raw_put(&r, CF_C_COOKIE_ECHO, 0, r.l->cookie, r.l->cookie_len);
		cf_raw_put_question_at(&r, r.own_tsn, 9, RAW_WHOLE | RAW_U);
		cf_raw_send(&r);
		r.l->cookie[i] ^= (uint8_t)(1u << i % 8);
	}
	for (size_t n = 0; n < r.l->cookie_len; n += 7)
		cf_raw_say(&r, CF_C_COOKIE_ECHO, 0, r.l->cookie, n);
	cf_raw_quiet_oob(&r);
	CF_CHECK(cf, !r.ndata && !r.nsack, "DATA behind a bad cookie is taken");
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

static void cookie_elsewhere(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_invite(&r);
	cf_raw_say_tag(&r, r.l->peer_tag ^ 1, CF_C_COOKIE_ECHO, 0, r.l->cookie, r.l->cookie_len);
	cf_raw_say_tag(&r, r.l->tag, CF_C_COOKIE_ECHO, 0, r.l->cookie, r.l->cookie_len);
	cf_raw_begin(&r); /* from another port */
	cf_raw_put(&r, CF_C_COOKIE_ECHO, 0, r.l->cookie, r.l->cookie_len);
	r.out.b[1] ^= 1;
	cf_raw_send(&r);
	cf_raw_quiet_oob(&r);
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
}

/* A cookie for one of our attempts is useless for another. */
static void cookie_of_another(struct cf *cf)
{
	uint8_t old[CF_COOKIE_MAX];
	size_t len;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_invite(&r);
	len = r.l->cookie_len;
	memcpy(old, r.l->cookie, len);
	r.l->tag ^= 0x5a5a5a5a;
	cf_raw_invite(&r);
	cf_raw_say(&r, CF_C_COOKIE_ECHO, 0, old, len);
	cf_raw_quiet_oob(&r);
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
}

/*
 * SCTP does not look at the indication of the INIT: it sets up the association, and the user has
 * no use for one that is not DDP's.
 */
static void check_init_adaptation(struct cf *cf, const uint8_t *params, size_t len)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, params, len);
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_INIT_ACK);
	cf_raw_take_init(&r, &c);
	cf_raw_echo(&r);
	do
		CF_CHECK(cf, cf_raw_next(&r, cf->run->limit_ms, &c), "no ABORT");
	while (c.type == CF_C_COOKIE_ACK || c.type == CF_C_HEARTBEAT);
	CF_CHECK(cf, c.type == CF_C_ABORT && cf_raw_cause(&c) == RAW_USER_ABORT,
		 "a chunk of type %u", c.type);
}

CF_CALL(check_init_no_adaptation, check_init_adaptation(cf, NULL, 0));

static void check_init_other_adaptation(struct cf *cf)
{
	check_init_adaptation(cf, (const uint8_t[]){ 0xc0, 6, 0, 8, 0, 0, 0, 2 }, 8);
}

const struct cf_case cf_cases_assoc_cookie[] = {
	R("cookie", check_cookie_echo,
	  "9260-3.3.12-1 9260-5.1-11 9260-5.1.5-6 9260-5.2.4-10 pkdr-dup-cookie",
	  "a COOKIE ECHO that comes once more is answered once more, and changes nothing"),
	R("cookie-data", cookie_and_data,
	  "9260-5.1-7 9260-5.1-10 9260-5.1-18 9260-5.1.5-d1 9260-3.3.12-1 9260-5.1.5-6 "
	  "etsi-as-1-1-2 etsi-bdc-7-4 pkdr-simple-passive",
	  "DATA behind the cookie is acknowledged behind the COOKIE ACK"),
	R("cookie-bad", cookie_octets, "9260-4-1 9260-5.1.5-2 9260-5.1.3-1 etsi-imh-3-5",
	  "a cookie with any octet changed, or cut short, vanishes with its DATA"),
	R("cookie-elsewhere", cookie_elsewhere, "9260-5.1.5-3 etsi-imh-3-3",
	  "a cookie under another tag, or from another port, vanishes"),
	R("cookie-mixed", cookie_of_another, "9260-5.1.5-3",
	  "a cookie goes with its INIT ACK's tag alone"),
	R("no-adaptation", check_init_no_adaptation, "5061-4.2.6-2 5061-4.2.6-3 5043-5.1-1",
	  "without an adaptation indication there is an association, but not for DDP"),
	R("adaptation-2", check_init_other_adaptation, "5061-4.2.6-2 5061-4.2.6-3 5043-5.1-1",
	  "the adaptation indication's value is the user's matter"),
	{ 0 },
};
