/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of sessions: a Terminate with all it must say (RFC 5040 4.8), and the close. */
#include "conform/peer/inside.h"
#include <stdio.h>
#include <string.h>

#define HDR 18u /* of the Terminate itself */
#define M   0x80u
#define D   0x40u
#define R   0x20u

/* Whether what comes next is the end and not a segment. */
static bool is_session_ended(struct cf *cf)
{
	return cf->wire == CF_TCP ? cf_tcp_ended(cf) : cf_sctp_ended(cf);
}

void cf_expect_end(struct cf *cf, bool in_order)
{
	bool mine = cf_want(cf, "the end of the session");

	cf->must_end = true;
	/* An application from outside may have said something before it was informed. */
	while (!cf->self && !in_order && cf->conn->session && !is_session_ended(cf)) {
		cf_recv(cf);
		CF_CHECK(cf, cf_in_op(cf) != CF_TERM, "a Terminate where none is due: %s",
			 cf_hex(cf->in.b, cf->in.len));
	}
	if (cf->wire == CF_TCP)
		cf_tcp_expect_end(cf, in_order);
	else
		cf_sctp_expect_end(cf);
	cf_wanted(cf, mine);
}

static void check_fixed(struct cf *cf)
{
	const uint8_t *b = cf->in.b;

	cf->must_end = true;
	cf->ended |= cf_in_op(cf) == CF_TERM; /* whatever else is wrong with it */
	CF_CHECK(cf, !cf_in_tagged(cf) && cf_in_last(cf) && cf_in_op(cf) == CF_TERM,
		 "expected a Terminate, got %s", cf_hex(b, cf->in.len));
	CF_CHECK(cf, !cf_in_stag(cf), "Terminate with Invalidate STag %08x", cf_in_stag(cf));
	CF_CHECK(cf, cf_in_qn(cf) == 2 && cf_in_msn(cf) == 1 && !cf_in_mo(cf),
		 "Terminate on queue %u, MSN %u, MO %u", cf_in_qn(cf), cf_in_msn(cf), cf_in_mo(cf));
	CF_CHECK(cf, cf->in.len >= HDR + 4, "Terminate of %zu octets", cf->in.len);
	CF_CHECK(cf, !(b[HDR + 2] & 0x1f) && !b[HDR + 3], "reserved bits in a Terminate: %s",
		 cf_hex(b + HDR, cf->in.len - HDR));
}

/* The flags and the headers that they announce, compared with the segment sent last. */
static void check_contents(struct cf *cf, enum cf_carries carries)
{
	static const uint8_t flags_of[] = {
		[CF_BARE] = 0, [CF_DDP] = M | D, [CF_RDMAP] = M | D | R
	};
	const uint8_t *t = cf->in.b + HDR;
	size_t len = cf->in.len - HDR, ddp = cf->out.b[0] & 0x80 ? 14 : 18, want = 4;
	uint8_t flags = t[2];

	CF_CHECK(cf, carries == CF_ANY || flags == flags_of[carries],
		 "M, D, R are %02x instead of %02x: %s", flags, flags_of[carries], cf_hex(t, len));
	CF_CHECK(cf, !(flags & R) || flags & D, "R without D: %s", cf_hex(t, len));
	want += flags & D ? 2 + ddp : 0;
	want += flags & R ? 28 : 0;
	CF_CHECK(cf, len == want, "Terminate header of %zu octets instead of %zu: %s", len, want,
		 cf_hex(t, len));
	if (!(flags & D))
		return;
	CF_CHECK(cf, !(flags & M) || cf_get16(t + 4) == cf->out.len,
		 "DDP Segment Length %u instead of %zu", cf_get16(t + 4), cf->out.len);
	CF_CHECK(cf, !memcmp(t + 6, cf->out.b, ddp), "DDP header %s instead of %s",
		 cf_hex(t + 6, ddp), cf_hex(cf->out.b, ddp));
	CF_CHECK(cf, !(flags & R) || !memcmp(t + 24, cf->out.b + 18, 28),
		 "Read Request header %s instead of %s", cf_hex(t + 24, 28),
		 cf_hex(cf->out.b + 18, 28));
}

/* It is in cf->in. */
static void check_term(struct cf *cf, const uint16_t *codes, enum cf_carries carries)
{
	uint16_t got;
	size_t i = 0;

	check_fixed(cf);
	got = cf_get16(cf->in.b + HDR);
	while (codes[i] != got) { /* the first may be 0/0/00 */
		i++;
		CF_CHECK(cf, codes[i], "Terminate %u/%u/%02x instead of %u/%u/%02x", got >> 12,
			 got >> 8 & 15, got & 255, codes[0] >> 12, codes[0] >> 8 & 15,
			 codes[0] & 255);
	}
	check_contents(cf, carries);
	cf_expect_end(cf, true);
}

static bool want_term(struct cf *cf, const uint16_t *codes)
{
	return cf_want(cf, "a Terminate %u/%u/%02x%s, then the end of the connection",
		       codes[0] >> 12, codes[0] >> 8 & 15, codes[0] & 255,
		       codes[0] && codes[1] ? " or another that fits" : "");
}

void cf_expect_term_of(struct cf *cf, const uint16_t *codes, enum cf_carries carries)
{
	bool mine = want_term(cf, codes);

	cf->must_end = true;
	cf_recv_op(cf, CF_TERM);
	check_term(cf, codes, carries);
	cf_wanted(cf, mine);
}

void cf_check_term(struct cf *cf, uint16_t code, enum cf_carries carries)
{
	const uint16_t codes[] = { code, 0 };

	check_term(cf, codes, carries);
}

void cf_expect_term_in(struct cf *cf, uint8_t op, uint16_t code, enum cf_carries carries)
{
	const uint16_t codes[] = { code, 0 };
	bool mine = want_term(cf, codes);

	cf->must_end = true;
	cf_recv(cf);
	while (cf_in_op(cf) == op) {
		CF_CHECK(cf, !cf_in_last(cf), "the message came to its end");
		cf_recv(cf);
	}
	cf_check_term(cf, code, carries);
	cf_wanted(cf, mine);
}

void cf_expect_term(struct cf *cf, uint16_t code, enum cf_carries carries)
{
	const uint16_t codes[] = { code, 0 };

	cf_expect_term_of(cf, codes, carries);
}

void cf_expect_dead(struct cf *cf)
{
	bool mine = cf_want(cf, "a Terminate, or the end of the connection");

	do {
		if (is_session_ended(cf)) {
			cf_wanted(cf, mine);
			return;
		}
		cf_recv(cf);
	} while (!cf->self && cf_in_op(cf) != CF_TERM);
	check_fixed(cf);
	check_contents(cf, CF_ANY);
	cf_expect_end(cf, false);
	cf_wanted(cf, mine);
}
