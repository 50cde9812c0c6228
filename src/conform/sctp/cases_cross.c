/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 section 5.2.1, the target as initiator: our INIT crosses its own. */
#include "conform/sctp/raw.h"
#include <string.h>

static void send_crossing_init(struct cf_raw *r, const void *params, size_t len)
{
	cf_raw_begin_tag(r, 0);
	cf_raw_put_own_init(r, CF_C_INIT, params, len);
	cf_raw_send(r);
}

/* Our INIT meets its: one association of both. */
static void crossing(struct cf *cf)
{
	struct cf_raw_init its;
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	its = r.peer;
	send_crossing_init(&r, cf_raw_ddp, sizeof cf_raw_ddp);
	c = cf_raw_want(&r, CF_C_INIT_ACK);
	cf_raw_take_init(&r, &c);
	CF_CHECK(cf, r.peer.tag == its.tag && r.peer.tsn == its.tsn && r.peer.os == its.os,
		 "another tag, TSN or number of streams than in its INIT");
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0); /* late: nothing waits for it */
	cf_raw_want_data(&r);
	cf_raw_alive(&r);
}

/* Nothing has changed by it: its own INIT comes again, and can be answered. */
static void crossing_unfinished(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	send_crossing_init(&r, cf_raw_ddp, sizeof cf_raw_ddp);
	cf_raw_want(&r, CF_C_INIT_ACK);
	c = cf_raw_want(&r, CF_C_INIT);
	CF_CHECK(cf, cf_get32(c.v) == r.peer.tag, "INIT with another tag");
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

/* It has a cookie of ours already when our INIT comes. */
static void crossing_late(struct cf *cf)
{
	struct cf_raw_init its;
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	its = r.peer;
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	send_crossing_init(&r, cf_raw_ddp, sizeof cf_raw_ddp);
	c = cf_raw_want(&r, CF_C_INIT_ACK);
	cf_raw_take_init(&r, &c);
	CF_CHECK(cf, r.peer.tag == its.tag && r.peer.tsn == its.tsn,
		 "another tag or TSN than in its INIT");
	cf_raw_echo(&r); /* both tags are right: it is as good as a COOKIE ACK */
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

static void crossing_elsewhere(struct cf *cf)
{
	struct cf_raw_chunk c;
	uint8_t more[8];
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_new_address(&r, more);
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	send_crossing_init(&r, more, sizeof more);
	c = cf_raw_want(&r, CF_C_ABORT);
	CF_CHECK(cf, c.tag == r.l->tag && !c.flags && cf_raw_cause(&c) == RAW_NEW_ADDRESSES,
		 "ABORT of cause %u, flags %u", cf_raw_cause(&c), c.flags);
	CF_CHECK(cf, c.len == 4 + sizeof more && !memcmp(c.v + 4, more, sizeof more), "it lists %s",
		 cf_hex(c.v, c.len));
	cf_raw_quiet(&r);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

/* A second INIT ACK's tag for its first INIT, then our INIT with another: table 12, B. */
static void crossing_tags(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_answer_init(&r, NULL, 0);
	cf_raw_want_echo(&r);
	r.l->tag ^= 0x3c3c3c3c; /* our INIT is of another attempt */
	send_crossing_init(&r, cf_raw_ddp, sizeof cf_raw_ddp);
	c = cf_raw_want(&r, CF_C_INIT_ACK);
	cf_raw_take_init(&r, &c);
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_alive(&r);
}

const struct cf_case cf_cases_assoc_cross[] = {
	I("crossing", crossing,
	  "9260-5.2.1-1 9260-5.2.1-2 9260-5.2.1-3 9260-5.2.1-9 9260-5.2.4-7 9260-5.2.4-8 "
	  "9260-5.2.5-1",
	  "crossing INITs make one association, with the tag of its INIT"),
	I("crossing-unfinished", crossing_unfinished, "9260-5.2.1-10 9260-5.2.1-11 etsi-dm-4-1",
	  "a crossing INIT changes nothing: its own is repeated"),
	I("crossing-late", crossing_late, "9260-5.2.1-4 9260-5.2.1-12 9260-5.2.4-10",
	  "an INIT that meets a COOKIE ECHO gets the same tag"),
	{ "assoc-i-crossing-addresses", "9260-5.2.1-5 9260-5.2.1-6 9260-5.2.1-7 9260-5.2.1-8",
	  "an INIT with a new address that meets a COOKIE ECHO is refused", CF_SCTP | CF_CLEAR,
	  CF_INITIATOR, false, crossing_elsewhere },
	I("crossing-tags", crossing_tags, "9260-5.2.4-7 9260-5.2.4-8",
	  "a cookie that gives us another tag is followed"),
	{ 0 },
};
