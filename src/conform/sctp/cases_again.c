/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 sections 5.2.2 and 5.2.4: INITs and cookies that meet an association. */
#include "conform/sctp/raw.h"
#include <string.h>

/* The two ends of an association, as it was. */
struct ends {
	uint32_t tag, peer_tag, tsn, cum;
};

static struct ends get_link_ends(const struct cf_raw *r)
{
	return (struct ends){ r->l->tag, r->l->peer_tag, r->l->tsn, r->l->cum };
}

static void set_link_ends(struct cf_raw *r, struct ends e)
{
	r->l->tag = e.tag;
	r->l->peer_tag = e.peer_tag;
	r->l->tsn = e.tsn;
	r->l->cum = e.cum;
	r->sack_cum = e.tsn - 1;
}

/*
 * It begins anew [9260-5.2.4-4]: a COOKIE ACK, and then answers under the new tags.  An initiator has lost
 * its only session, and may end in order then.  Whether it goes on for sure.
 */
static bool is_begun_anew(struct cf_raw *r)
{
	bool may_end = r->cf->c->target == CF_INITIATOR && !r->cf->self;
	struct cf_raw_chunk c;

	do {
		CF_CHECK(r->cf, cf_raw_next(r, r->cf->run->limit_ms, &c), "no COOKIE ACK");
		CF_CHECK(r->cf, c.type != CF_C_ABORT,
			 "it ends what it had to begin anew: ABORT of cause %u", cf_raw_cause(&c));
	} while (c.type != CF_C_COOKIE_ACK);
	r->old_tag = 0;
	cf_raw_say(r, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	do {
		CF_CHECK(r->cf, cf_raw_next(r, r->cf->run->limit_ms, &c), "no answer");
		CF_CHECK(r->cf, c.type != CF_C_ABORT, "ABORT of cause %u, flags %u",
			 cf_raw_cause(&c), c.flags);
	} while (c.type != CF_C_HEARTBEAT_ACK && !(may_end && c.type == CF_C_SHUTDOWN));
	return !may_end;
}

/* We have forgotten it all, and begin anew under another tag. */
static struct ends invite_anew(struct cf_raw *r, uint32_t tsn)
{
	struct cf_raw_chunk c;

	r->l->tag ^= 0x3c3c3c3c;
	r->l->tsn = r->own_tsn = tsn;
	cf_raw_begin_tag(r, 0);
	cf_raw_put_own_init(r, CF_C_INIT, cf_raw_ddp, sizeof cf_raw_ddp);
	cf_raw_send(r);
	c = cf_raw_want(r, CF_C_INIT_ACK);
	cf_raw_take_init(r, &c);
	return get_link_ends(r);
}

/* The INIT of a restart alone changes nothing. */
static void init_alone(struct cf *cf)
{
	struct ends old, new;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	old = get_link_ends(&r);
	new = invite_anew(&r, 5000);
	CF_CHECK(cf, new.peer_tag != old.peer_tag &&new.peer_tag, "the tag is %08x again",
		 new.peer_tag);
	set_link_ends(&r, old);
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

static void check_init_restart(struct cf *cf)
{
	struct ends old, new;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_begin(&r); /* half a message, and one that waits: both are void then */
	cf_raw_put_data(&r, r.l->tsn + 1, 1, 1, RAW_WHOLE, 17, "\0\0\0\5\0\20\0", 7);
	cf_raw_put_data(&r, r.l->tsn + 3, 2, 0, RAW_FIRST, 17, "\0\0", 2);
	cf_raw_send(&r);
	cf_raw_quiet(&r);
	old = get_link_ends(&r);
	new = invite_anew(&r, 5000);
	cf_raw_echo(&r);
	if (!is_begun_anew(&r))
		return;
	cf_raw_watch(&r, 1);
	cf_raw_say_tag(&r, old.peer_tag, CF_C_ABORT, 0, NULL, 0); /* of the old one */
	cf_raw_quiet(&r);
	CF_CHECK(cf, !r.nwatched, "DATA of before");
	CF_CHECK(cf, get_link_ends(&r).peer_tag == new.peer_tag, "case: tags");
	cf_raw_alive(&r);
	CF_CHECK(cf, r.tsn == new.cum + 1, "first TSN %u, it was to be %u", r.tsn, new.cum + 1);
}

static void restart_elsewhere(struct cf *cf)
{
	struct cf_raw_chunk c;
	uint8_t more[8];
	struct ends old;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_new_address(&r, more);
	old = get_link_ends(&r);
	r.l->tag ^= 0x3c3c3c3c;
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, more, sizeof more);
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_ABORT);
	CF_CHECK(cf, c.tag == r.l->tag && !c.flags && cf_raw_cause(&c) == RAW_NEW_ADDRESSES,
		 "ABORT of cause %u under tag %08x, flags %u", cf_raw_cause(&c), c.tag, c.flags);
	CF_CHECK(cf, c.len == 4 + sizeof more && !memcmp(c.v + 4, more, sizeof more), "it lists %s",
		 cf_hex(c.v, c.len));
	set_link_ends(&r, old);
	cf_raw_alive(&r);
}

/* INITs that are refused leave it alone, as any others that are wrong. */
static void wrong_inits(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct ends old;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	old = get_link_ends(&r);
	r.l->tag ^= 0x3c3c3c3c;
	for (unsigned i = 0; i < 4; i++) {
		cf_raw_begin_tag(&r, 0);
		cf_raw_put_init(&r, CF_C_INIT, i ? r.l->tag : 0, i == 1 ? 1499 : CF_RWND,
				i == 2 ? 0 : 10, i == 3 ? 0 : 10, 1, NULL, 0);
		cf_raw_send(&r);
		if (i)
			c = cf_raw_want(&r, CF_C_ABORT);
		CF_CHECK(cf, !i || (c.tag == r.l->tag && !c.flags), "ABORT under another tag");
	}
	set_link_ends(&r, old);
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

/* While it waits for acknowledgements of what it owes. */
static void restart_in_shutdown(struct cf *cf)
{
	struct ends new;
	struct cf_raw r;
	uint8_t cum[4];

	cf_raw_up(cf, &r);
	r.mute = true;
	cf_raw_ask(&r, 1);
	cf_raw_want_answer(&r, 1);
	cf_put32(cum, r.tsn - 1);
	cf_raw_say(&r, CF_C_SHUTDOWN, 0, cum, sizeof cum);
	cf_raw_quiet(&r);
	r.in_off = r.in_len;
	new = invite_anew(&r, 5000);
	r.mute = false;
	cf_raw_echo(&r);
	if (!is_begun_anew(&r))
		return;
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
	CF_CHECK(cf, r.tsn == new.cum + 1, "first TSN %u, it was to be %u", r.tsn, new.cum + 1);
}

/* The cookie comes when SHUTDOWN ACK waits: the old association must end first. */
static void cookie_meets_shutdown(struct cf *cf)
{
	bool ack = false, error = false;
	struct ends old, new;
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	old = get_link_ends(&r);
	new = invite_anew(&r, 5000);
	set_link_ends(&r, old);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_say_tag(&r, new.peer_tag, CF_C_COOKIE_ECHO, 0, r.l->cookie, r.l->cookie_len);
	while (!ack || !error) {
		CF_CHECK(cf, cf_raw_next(&r, cf->run->limit_ms, &c), "no %s",
			 ack ? "ERROR" : "SHUTDOWN ACK");
		CF_CHECK(cf, c.type != CF_C_COOKIE_ACK, "a restart in SHUTDOWN-ACK-SENT");
		ack |= c.type == CF_C_SHUTDOWN_ACK;
		error |= c.type == CF_C_ERROR && cf_raw_cause(&c) == RAW_SHUTTING_DOWN;
	}
	cf_raw_say(&r, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cf_raw_dead(&r);
}

/* ---- cookies of earlier attempts ---- */

static void keep_cookie(const struct cf_raw *r, uint8_t *cookie, size_t *len)
{
	memcpy(cookie, r->l->cookie, r->l->cookie_len);
	*len = r->l->cookie_len;
}

/* The cookie of an attempt before the one that came up.  @other: in what our tag differed then. */
static void earlier_cookie(struct cf *cf, uint32_t other)
{
	uint8_t cookie[CF_COOKIE_MAX];
	uint32_t first;
	size_t len;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	r.l->tag ^= other;
	cf_raw_invite(&r);
	first = r.l->peer_tag;
	keep_cookie(&r, cookie, &len);
	r.l->tag ^= other;
	cf_raw_invite(&r);
	cf_raw_echo(&r);
	cf_raw_want(&r, CF_C_COOKIE_ACK);
	r.l->state = CF_L_UP;
	cf_raw_say_tag(&r, first, CF_C_COOKIE_ECHO, 0, cookie, len);
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

/* A cookie with our tag and an own one that was not used: table 12, C. */
CF_CALL(late_cookie, earlier_cookie(cf, 0));

/* A cookie of which neither tag is right, without Tie-Tags: no row of table 12. */
CF_CALL(foreign_cookie, earlier_cookie(cf, 0x3c3c3c3c));

const struct cf_case cf_cases_assoc_again[] = {
	BOTH("restart-init", init_alone,
	     "9260-5.2.2-1 9260-5.2.2-5 9260-5.2.2-6 9260-5.2.2-8 9260-5.2.2-9 9260-1.3-1 "
	     "etsi-as-1-9-1 etsi-dm-4-2-1",
	     "an INIT in mid-association is answered, and changes nothing"),
	BOTH("restart", check_init_restart,
	     "9260-5.2.2-4 9260-5.2.4-4 9260-5.2.4-5 9260-5.3.1-2 9260-5.2.2-7 9260-3.1-3",
	     "a restart begins afresh under the new tags"),
	CLEAR("restart-addresses", restart_elsewhere,
	      "9260-5.2.2-2 9260-5.2.2-3 9260-5.2.2-11 etsi-as-1-9-2",
	      "a restart with a new address is refused"),
	BOTH("restart-wrong", wrong_inits, "9260-3.3.2-12 9260-3.3.2-8 9260-3.3.2-10",
	     "an INIT that is wrong leaves the association alone"),
	BOTH("restart-owed", restart_in_shutdown, "9260-5.2.2-1 9260-5.2.4-4",
	     "a restart in SHUTDOWN-RECEIVED begins afresh"),
	BOTH("restart-shutdown", cookie_meets_shutdown, "9260-5.2.4-6",
	     "no restart while SHUTDOWN ACK waits"),
	R("cookie-late", late_cookie, "9260-5.2.4-9", "a late cookie changes nothing"),
	R("cookie-foreign", foreign_cookie, "9260-5.2.4-3 9260-5.2.2-10 9260-5.1.5-7",
	  "a cookie without a right tag changes nothing"),
	{ 0 },
};
