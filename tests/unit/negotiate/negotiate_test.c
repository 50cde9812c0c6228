/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 6581: the word, each branch of the algorithm, and every pairing of edge values. */
#include "common/term_codes.h"
#include "negotiate/negotiate.h"
#include <criterion/criterion.h>
#include <string.h>

#define ULP	DDPS_RD_ULP
#define MAX	DDPS_RD_MAX
#define BCD	DDPS_RTR_ALL
#define B	DDPS_RTR_SEND
#define C	DDPS_RTR_WRITE
#define D	DDPS_RTR_READ
#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct ddps_nego_local side(uint16_t ird, uint16_t ord)
{
	return (struct ddps_nego_local){ .max_ird = MAX,
					 .max_ord = MAX,
					 .ird = ird,
					 .ord = ord,
					 .ulp_ird = 5,
					 .ulp_ord = 6,
					 .rtr = BCD };
}

/* ---- the word ---- */

Test(negotiate, word_has_the_layout_of_the_rfc, .description = "6581-9-1 6581-7-d4")
{
	static const struct {
		uint8_t hex[4];
		struct ddps_word w;
	} rows[] = {
		{ { 0x80, 0x10, 0xc0, 0x08 }, { true, C | D, 16, 8 } },
		{ { 0x00, 0x10, 0x00, 0x08 }, { false, 0, 16, 8 } },
		{ { 0xc0, 0x08, 0x80, 0x10 }, { true, B | C, 8, 16 } },
		{ { 0x3f, 0xff, 0x3f, 0xff }, { false, 0, ULP, ULP } },
		{ { 0x80, 0x00, 0x40, 0x01 }, { true, D, 0, 1 } },
		{ { 0xff, 0xff, 0xff, 0xff }, { true, BCD, ULP, ULP } },
	};

	for (size_t i = 0; i < SIZE(rows); i++) {
		struct ddps_word w;
		uint8_t out[4];

		ddps_word_encode(&rows[i].w, out);
		cr_expect_arr_eq(out, rows[i].hex, 4);
		ddps_word_decode(&w, rows[i].hex);
		cr_expect_eq(w.p2p, rows[i].w.p2p);
		cr_expect_eq(w.rtr, rows[i].w.rtr);
		cr_expect_eq(w.ird, rows[i].w.ird);
		cr_expect_eq(w.ord, rows[i].w.ord);
	}
}

Test(negotiate, flags_mean_nothing_without_a,
     .description = "6581-9.2-14 6581-9.2-15 5044u-9.2-1 5044u-9.2-2")
{
	static const uint8_t in[4] = { 0x40, 0x01, 0xc0, 0x01 }, want[4] = { 0, 1, 0, 1 };
	struct ddps_word w;
	uint8_t out[4];

	ddps_word_decode(&w, in);
	cr_expect_not(w.p2p);
	cr_expect_eq(w.rtr, 0);
	w.rtr = BCD;
	ddps_word_encode(&w, out);
	cr_expect_arr_eq(out, want, 4);
}

/* ---- initiator's request ---- */

Test(negotiate, request_carries_what_is_wanted,
     .description = "6581-9.2-1 6581-9.2-2 6581-9.2-12 6581-9.1-d4")
{
	struct ddps_nego_local l = side(16, 8);
	struct ddps_word w;

	cr_assert_eq(ddps_nego_request(&l, &w), 0);
	cr_expect(!w.p2p && !w.rtr && w.ird == 16 && w.ord == 8);
	l.p2p = true;
	cr_assert_eq(ddps_nego_request(&l, &w), 0);
	cr_expect(w.p2p && w.rtr == BCD);
	l.ird = l.ord = ULP; /* never clamped: it is no count */
	l.max_ird = l.max_ord = 10;
	cr_assert_eq(ddps_nego_request(&l, &w), 0);
	cr_expect(w.ird == ULP && w.ord == ULP);
	l.ird = l.ord = 11;
	cr_assert_eq(ddps_nego_request(&l, &w), 0);
	cr_expect(w.ird == 10 && w.ord == 10);
	l.rtr = 0;
	cr_expect_eq(ddps_nego_request(&l, &w), DDPS_E_INVAL);
}

Test(negotiate, a_read_rtr_alone_asks_for_ord_1)
{
	struct ddps_nego_local l = side(0, 0);
	struct ddps_word w;

	l.p2p = true;
	l.rtr = D;
	cr_assert_eq(ddps_nego_request(&l, &w), 0);
	cr_expect_eq(w.ord, 1);
	l.rtr = D | C;
	cr_assert_eq(ddps_nego_request(&l, &w), 0);
	cr_expect_eq(w.ord, 0);
	l.rtr = D;
	l.max_ord = 0; /* never more than the device has */
	cr_assert_eq(ddps_nego_request(&l, &w), 0);
	cr_expect_eq(w.ord, 0);
}

/* ---- responder ---- */

static struct ddps_word make_asked_word(bool p2p, unsigned rtr, uint16_t ird, uint16_t ord)
{
	return (struct ddps_word){ p2p, rtr, ird, ord };
}

Test(negotiate, responder_fits_its_ord_and_raises_its_ird,
     .description = "6581-9.1-2 6581-9.1-4 6581-9.1-d1")
{
	struct ddps_word q = make_asked_word(false, 0, 4, 20), r;
	struct ddps_nego_local l = side(10, 10);
	struct ddps_nego_result res;

	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_ACCEPT);
	cr_expect(r.ord == 4 && res.ord == 4);
	cr_expect(r.ird == 20 && res.ird == 20);
	l.ird_hard = true;
	ddps_nego_respond(&l, &q, false, false, &r, &res);
	cr_expect(r.ird == 10 && res.ird == 10);
	l.ird_hard = false;
	l.max_ird = 15;
	ddps_nego_respond(&l, &q, false, false, &r, &res);
	cr_expect(r.ird == 15 && res.ird == 15);
}

Test(negotiate, responder_mirrors_0x3fff_per_direction, .description = "6581-9.1-12 6581-9.1-14")
{
	struct ddps_word q = make_asked_word(false, 0, ULP, 3), r;
	struct ddps_nego_local l = side(10, 12);
	struct ddps_nego_result res;

	ddps_nego_respond(&l, &q, false, false, &r, &res);
	cr_expect(r.ord == ULP && res.ord == 12);
	cr_expect(r.ird == 10 && res.ird == 10);
	q = make_asked_word(false, 0, 3, ULP);
	ddps_nego_respond(&l, &q, false, false, &r, &res);
	cr_expect(r.ird == ULP && res.ird == 10);
	cr_expect(r.ord == 3 && res.ord == 3);
	/* Ours alone: the ORD still keeps within the offer. */
	l.ird = l.ord = ULP;
	q = make_asked_word(false, 0, 3, 30);
	ddps_nego_respond(&l, &q, false, false, &r, &res);
	cr_expect(r.ord == ULP && res.ord == 3);
	cr_expect(r.ird == ULP && res.ird == 5);
}

Test(negotiate, responder_rejects_an_ird_below_its_need, .description = "6581-9.1-5")
{
	struct ddps_word q = make_asked_word(false, 0, 7, 1), r;
	struct ddps_nego_local l = side(10, 10);
	struct ddps_nego_result res;

	l.need_ord = 7;
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_ACCEPT);
	l.need_ord = 8;
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_REJECT_ORD);
	cr_expect_eq(r.ord, 8);
	cr_expect_eq(ddps_nego_respond(&l, &q, true, false, &r, &res), DDPS_NEGO_REJECT);
}

Test(negotiate, responder_flags_what_both_know,
     .description = "6581-9.2-4 6581-9.2-5 6581-9.2-6 6581-9.2-8 6581-9.2-13")
{
	struct ddps_nego_local l = side(10, 10);
	struct ddps_nego_result res;
	struct ddps_word q, r;

	for (unsigned a = 1; a <= BCD; a++)
		for (unsigned b = 1; b <= BCD; b++) {
			q = make_asked_word(true, a, 4, 4);
			l.rtr = b;
			cr_expect_eq(ddps_nego_rtr_mismatch(&q, b), !(a & b));
			cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res),
				     a & b ? DDPS_NEGO_ACCEPT : DDPS_NEGO_NO_RTR);
			cr_expect(r.p2p);
			cr_expect_eq(r.rtr, a & b ? a & b : b);
			cr_expect_eq(ddps_nego_respond(&l, &q, false, true, &r, &res),
				     DDPS_NEGO_ACCEPT);
		}
	q = make_asked_word(false, 0, 4, 4);
	cr_expect_not(ddps_nego_rtr_mismatch(&q, 0));
	ddps_nego_respond(&l, &q, false, false, &r, &res);
	cr_expect(!r.p2p && !r.rtr);
}

Test(negotiate, a_read_rtr_finds_a_slot_or_is_not_flagged, .description = "6581-9.1-3")
{
	struct ddps_nego_local l = side(0, 0);
	struct ddps_word q = make_asked_word(true, D, 0, 0), r;
	struct ddps_nego_result res;

	/* The RFC's own example: initiator ORD 0, responder raises its IRD to 1. */
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_ACCEPT);
	cr_expect(r.ird == 1 && res.ird == 1 && r.rtr == D);
	l.ird_hard = true;
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_NO_RTR);
	q.rtr = C | D;
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_ACCEPT);
	cr_expect_eq(r.rtr, C);
	l.ird_hard = false;
	l.max_ird = 0; /* nothing to raise it from */
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_ACCEPT);
	cr_expect(r.rtr == C && r.ird == 0 && res.ird == 0);
	q.rtr = D;
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_NO_RTR);
	cr_expect(r.rtr == D && r.ird == 0);
	q = make_asked_word(true, D, 0, ULP);
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_ACCEPT);
	cr_expect(r.rtr == D && r.ird == ULP && res.ird == 0 && res.provider_read_slot);
}

/* Each field is set, whatever was there; without a Read among the types nothing is raised for it. */
Test(negotiate, nothing_is_left_from_before)
{
	struct ddps_nego_local l = side(0, 0);
	struct ddps_word q = make_asked_word(true, C, 0, 0), r;
	struct ddps_nego_result res;

	memset(&res, 0xff, sizeof res);
	memset(&r, 0xff, sizeof r);
	cr_expect_eq(ddps_nego_respond(&l, &q, false, false, &r, &res), DDPS_NEGO_ACCEPT);
	cr_expect(res.ird == 0 && res.ord == 0 && res.rtr == C);
	cr_expect(!res.rtr_needs_ord && !res.provider_read_slot && !res.ird_warning);
	cr_expect(r.p2p && r.rtr == C && r.ird == 0 && r.ord == 0);
}

/* ---- initiator on the answer ---- */

static int accept_with(struct ddps_nego_local *l, struct ddps_word *r, struct ddps_nego_result *res)
{
	struct ddps_word w;

	cr_assert_eq(ddps_nego_request(l, &w), 0);
	return ddps_nego_accept(l, &w, r, res);
}

Test(negotiate, initiator_comes_down_with_its_ord, .description = "6581-9.1-8 6581-9.1-13")
{
	struct ddps_nego_local l = side(10, 10);
	struct ddps_word r = make_asked_word(false, 0, 4, 0);
	struct ddps_nego_result res;

	cr_expect_eq(accept_with(&l, &r, &res), 0);
	cr_expect(res.ord == 4 && res.ird == 10);
	r.ird = ULP;
	cr_expect_eq(accept_with(&l, &r, &res), 0);
	cr_expect_eq(res.ord, 10);
	l.ord = ULP; /* a number in answer to 0x3FFF counts nevertheless */
	r.ird = 2;
	cr_expect_eq(accept_with(&l, &r, &res), 0);
	cr_expect_eq(res.ord, 2);
}

Test(negotiate, initiator_covers_the_responders_ord_or_terminates,
     .description = "6581-9.1-7 6581-9.1-9 6581-9.1-10 6581-9.1-15")
{
	struct ddps_nego_local l = side(10, 10);
	struct ddps_word r = make_asked_word(false, 0, 10, 11);
	struct ddps_nego_result res;

	cr_expect_eq(accept_with(&l, &r, &res), 0);
	cr_expect_eq(res.ird, 11);
	l.ird_hard = true;
	cr_expect_eq(accept_with(&l, &r, &res), DDPS_TERM_MPA_IRD);
	l.ird_hard = false;
	l.max_ird = 10;
	cr_expect_eq(accept_with(&l, &r, &res), DDPS_TERM_MPA_IRD);
	r.ord = ULP;
	cr_expect_eq(accept_with(&l, &r, &res), 0);
	cr_expect_eq(res.ird, 10);
	l.ird = ULP; /* the application owns it: warned, no Terminate */
	r.ord = 11;
	cr_expect_eq(accept_with(&l, &r, &res), 0);
	cr_expect(res.ird == 5 && res.ird_warning);
}

Test(negotiate, initiator_picks_one_rtr_or_terminates,
     .description = "6581-9.2-9 6581-9.2-10 6581-9.2-11 6581-1.1-d2")
{
	struct ddps_nego_local l = side(10, 10);
	struct ddps_nego_result res;
	struct ddps_word r;

	l.p2p = true;
	for (unsigned flags = 0; flags <= BCD; flags++) {
		r = make_asked_word(true, flags, 4, 4);
		cr_expect_eq(accept_with(&l, &r, &res), flags ? 0 : DDPS_TERM_MPA_RTR);
		cr_expect_eq(res.rtr, flags & C ? C : flags & D ? D : flags & B);
	}
	r = make_asked_word(true, D, 0, 4); /* no credit at the responder for a Read */
	cr_expect_eq(accept_with(&l, &r, &res), DDPS_TERM_MPA_RTR);
	r = make_asked_word(false, 0, 4, 4); /* another model than asked for */
	cr_expect_eq(accept_with(&l, &r, &res), DDPS_TERM_MPA_RTR);
	l.p2p = false;
	r = make_asked_word(true, BCD, 4, 4);
	cr_expect_eq(accept_with(&l, &r, &res), DDPS_TERM_MPA_RTR);
	r.ord = MAX; /* IRD is checked before the model */
	l.max_ird = 10;
	cr_expect_eq(accept_with(&l, &r, &res), DDPS_TERM_MPA_IRD);
}

Test(negotiate, a_read_rtr_borrows_ord_when_there_is_none)
{
	struct ddps_nego_local l = side(10, 0);
	struct ddps_word r = make_asked_word(true, D, 1, 0);
	struct ddps_nego_result res;

	l.p2p = true;
	l.rtr = D;
	cr_expect_eq(accept_with(&l, &r, &res), 0);
	cr_expect(res.rtr == D && res.rtr_needs_ord && res.ord == 0);
}

Test(negotiate, plain_set_up_keeps_own_values_within_the_device)
{
	struct ddps_nego_local l = side(100, ULP);
	struct ddps_nego_result res;

	l.max_ird = 50;
	ddps_nego_plain(&l, &res);
	cr_expect(res.ird == 50 && res.ord == 6 && !res.rtr);
}

/* ---- every pairing ---- */

/* What is in force on a side that gets none of the other's numbers. */
static uint16_t get_own_in_force(uint16_t wanted, uint16_t ulp)
{
	return wanted == ULP ? ulp : wanted;
}

static bool reply_is_right(const struct ddps_nego_local *b, const struct ddps_word *w,
			   const struct ddps_word *r, const struct ddps_nego_result *rb)
{
	uint16_t ird = get_own_in_force(b->ird, b->ulp_ird),
		 ord = get_own_in_force(b->ord, b->ulp_ord);
	bool ird_is_ulps = w->ord == ULP || b->ird == ULP;
	bool ord_is_ulps = w->ird == ULP || b->ord == ULP;

	if (r->p2p != w->p2p || !r->rtr != !r->p2p || rb->rtr != r->rtr)
		return false;
	if (r->ird != (ird_is_ulps ? ULP : rb->ird) || r->ord != (ord_is_ulps ? ULP : rb->ord))
		return false;
	if (ird_is_ulps && rb->ird != ird)
		return false;
	if (b->ird_hard ? rb->ird != ird : !ird_is_ulps && rb->ird < w->ord)
		return false;
	if (w->ird == ULP ? rb->ord != ord : rb->ord > w->ird || rb->ord > ord)
		return false;
	return !(r->rtr & D) || rb->ird || rb->provider_read_slot;
}

static bool refusal_is_right(const struct ddps_nego_local *b, enum ddps_nego_verdict v,
			     const struct ddps_word *w, const struct ddps_word *r)
{
	if (r->p2p != w->p2p || !r->rtr != !r->p2p)
		return false;
	if (v == DDPS_NEGO_REJECT_ORD)
		return w->ird != ULP && b->ord != ULP && r->ord == b->need_ord && r->ord > w->ird;
	if (v != DDPS_NEGO_NO_RTR || !w->p2p)
		return false;
	/* Nothing in common, or a Read that would find no slot. */
	return (w->rtr & b->rtr) ? (w->rtr & b->rtr) == D && r->rtr == D && !r->ird
				 : r->rtr == b->rtr;
}

static bool outcome_is_right(const struct ddps_nego_local *a, const struct ddps_word *w,
			     const struct ddps_word *r, const struct ddps_nego_result *ra)
{
	unsigned can = r->ird ? w->rtr & r->rtr : w->rtr & r->rtr & ~D;
	uint16_t ord = get_own_in_force(a->ord, a->ulp_ord),
		 ird = get_own_in_force(a->ird, a->ulp_ird);

	if (ra->rtr != (can & C ? C : can & D ? D : can & B) || !ra->rtr != !w->p2p)
		return false;
	if (ra->rtr_needs_ord != (ra->rtr == D && !ra->ord))
		return false;
	if (r->ird == ULP ? ra->ord != ord : ra->ord != (ord < r->ird ? ord : r->ird))
		return false;
	if (ra->ird_warning)
		return w->ird == ULP && r->ord != ULP && r->ord > ird && ra->ird == ird;
	return r->ord == ULP ? ra->ird == ird : ra->ird >= ird && ra->ird >= r->ord;
}

static void check_agreement(const struct ddps_nego_local *a, const struct ddps_nego_local *b)
{
	struct ddps_nego_result ra, rb;
	enum ddps_nego_verdict v;
	struct ddps_word w, r;

	cr_assert_eq(ddps_nego_request(a, &w), 0);
	v = ddps_nego_respond(b, &w, false, false, &r, &rb);
	if (v != DDPS_NEGO_ACCEPT) {
		cr_assert(refusal_is_right(b, v, &w, &r));
		return;
	}
	cr_assert(reply_is_right(b, &w, &r, &rb));
	/* Two sides of ours always agree. */
	cr_assert_eq(ddps_nego_accept(a, &w, &r, &ra), 0);
	cr_assert(outcome_is_right(a, &w, &r, &ra));
	/* The promise of section 9.1, on what is in force and not on what was said. */
	cr_assert(r.ird == ULP || ra.ord <= rb.ird);
	cr_assert(w.ird == ULP || rb.ord <= ra.ird);
}

static const uint16_t edge[] = { 0, 1, 2, 15, 16, 17, 16381, MAX, ULP };

Test(negotiate, every_pairing_agrees,
     .description = "6581-9.1-d2 6581-3-d1 6581-9.2-4 6581-9.2-5 6581-9.2-6 6581-9.2-8 "
		    "6581-9.2-14 6581-9.1-4 6581-9.1-5 6581-9.1-8 6581-9.1-12 6581-9.1-13 "
		    "6581-9.1-14 6581-9.1-15",
     .timeout = 60)
{
	const size_t n = SIZE(edge);
	unsigned long pairs = 0;

	for (size_t i = 0; i < n * n * n * n; i++)
		for (unsigned rtr = 8; rtr < 64; rtr++) {
			struct ddps_nego_local a = side(edge[i % n], edge[i / n % n]);
			struct ddps_nego_local b = side(edge[i / n / n % n], edge[i / n / n / n]);

			/* Masks of both sides; 0 stands for an initiator that is client-server. */
			a.p2p = rtr % 8;
			a.rtr = a.p2p ? rtr % 8 : BCD;
			b.rtr = rtr / 8;
			for (unsigned k = 0; k < 8; k++) {
				a.ird_hard = k & 1;
				b.ird_hard = k & 2;
				b.need_ord = k & 4 ? 16 : 0;
				check_agreement(&a, &b);
				pairs++;
			}
		}
	cr_expect_eq(pairs, 6561ul * 56 * 8);
}

/* A stranger's reply: refused if our IRD cannot cover it, or for its RTR; else the numbers hold. */
static void check_reply(const struct ddps_nego_local *a, const struct ddps_word *r)
{
	struct ddps_nego_result ra;
	struct ddps_word w;
	unsigned can;
	int want = 0;

	cr_assert_eq(ddps_nego_request(a, &w), 0);
	can = r->ird ? r->rtr & w.rtr : r->rtr & w.rtr & ~D;
	if (r->p2p != w.p2p || (r->p2p && !can))
		want = DDPS_TERM_MPA_RTR;
	if (r->ord != ULP && r->ord > w.ird && (a->ird_hard || r->ord > a->max_ird))
		want = DDPS_TERM_MPA_IRD; /* w.ird is no number if the ULP owns it, and then never below */
	cr_assert_eq(ddps_nego_accept(a, &w, r, &ra), want);
	if (!want)
		cr_assert(outcome_is_right(a, &w, r, &ra));
}

Test(negotiate, every_reply_is_judged,
     .description = "6581-9.1-7 6581-9.1-8 6581-9.1-9 6581-9.1-10 6581-9.2-9 6581-9.2-10 "
		    "6581-9.2-11",
     .timeout = 60)
{
	const size_t n = SIZE(edge);

	for (size_t i = 0; i < n * n * n * n; i++)
		for (unsigned k = 0; k < 64; k++) {
			struct ddps_nego_local a = side(edge[i % n], edge[i / n % n]);
			struct ddps_word r = make_asked_word(
				k & 8, k & 8 ? k % 8 : 0, edge[i / n / n % n], edge[i / n / n / n]);

			a.p2p = k & 16;
			a.rtr = a.p2p ? C | D : BCD;
			a.ird_hard = k & 32;
			a.max_ird = a.ird == ULP || a.ird < 17 ? 17 : MAX;
			check_reply(&a, &r);
		}
}

Test(negotiate, every_word_survives_the_wire, .description = "6581-9-1")
{
	for (unsigned half = 0; half <= 0xFFFF; half++) {
		uint8_t in[2][4] = { { (uint8_t)(half >> 8 | 0x80), (uint8_t)half, 0, 0 },
				     { 0x80, 0, (uint8_t)(half >> 8), (uint8_t)half } };

		for (size_t i = 0; i < 2; i++) {
			struct ddps_word w;
			uint8_t out[4];

			ddps_word_decode(&w, in[i]);
			ddps_word_encode(&w, out);
			cr_assert(!memcmp(in[i], out, 4), "half %zu %04x", i, half);
		}
	}
}
