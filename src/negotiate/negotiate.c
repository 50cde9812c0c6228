/* SPDX-License-Identifier: BSD-2-Clause */
/* The negotiation of RFC 6581 as pure functions; the names follow section 9 of the RFC. */
#include "negotiate/negotiate.h"
#include "common/bytes.h"
#include "common/system/assert.h"
#include "common/term_codes.h"

#define WORD_A	  0x8000u
#define WORD_B	  0x4000u
#define WORD_C	  0x8000u
#define WORD_D	  0x4000u
#define WORD_MASK 0x3FFFu

static uint16_t min16(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

static uint16_t max16(uint16_t a, uint16_t b)
{
	return a > b ? a : b;
}

void ddps_word_encode(const struct ddps_word *w, uint8_t out[DDPS_WORD_LEN])
{
	struct ddps_wbuf b = ddps_wbuf_init(out, DDPS_WORD_LEN);
	unsigned rtr = w->p2p ? w->rtr : 0; /* [6581-9.2-14] */

	ddps_wbuf_u16(&b, (uint16_t)((w->p2p ? WORD_A : 0) | (rtr & DDPS_RTR_SEND ? WORD_B : 0) |
				     (w->ird & WORD_MASK)));
	ddps_wbuf_u16(&b, (uint16_t)((rtr & DDPS_RTR_WRITE ? WORD_C : 0) |
				     (rtr & DDPS_RTR_READ ? WORD_D : 0) | (w->ord & WORD_MASK)));
}

void ddps_word_decode(struct ddps_word *w, const uint8_t in[DDPS_WORD_LEN])
{
	struct ddps_rbuf b = ddps_rbuf_init(in, DDPS_WORD_LEN);
	uint16_t first = ddps_rbuf_u16(&b), second = ddps_rbuf_u16(&b);

	*w = (struct ddps_word){
		.p2p = first & WORD_A,
		.ird = first & WORD_MASK,
		.ord = second & WORD_MASK,
	};
	if (!w->p2p) /* [6581-9.2-15] */
		return;
	w->rtr = (first & WORD_B ? DDPS_RTR_SEND : 0) | (second & WORD_C ? DDPS_RTR_WRITE : 0) |
		 (second & WORD_D ? DDPS_RTR_READ : 0);
}

/* What is in force here before the peer has spoken. */
static uint16_t own_ird(const struct ddps_nego_local *l)
{
	return min16(l->ird == DDPS_RD_ULP ? l->ulp_ird : l->ird, l->max_ird);
}

static uint16_t own_ord(const struct ddps_nego_local *l)
{
	return min16(l->ord == DDPS_RD_ULP ? l->ulp_ord : l->ord, l->max_ord);
}

int ddps_nego_request(const struct ddps_nego_local *l, struct ddps_word *w)
{
	if (l->p2p && !(l->rtr & DDPS_RTR_ALL))
		return DDPS_E_INVAL;
	*w = (struct ddps_word){
		.p2p = l->p2p,				   /* [6581-9.2-1] [6581-9.2-12] */
		.rtr = l->p2p ? l->rtr & DDPS_RTR_ALL : 0, /* [6581-9.2-2] */
		.ird = l->ird == DDPS_RD_ULP ? DDPS_RD_ULP : own_ird(l),
		.ord = l->ord == DDPS_RD_ULP ? DDPS_RD_ULP : own_ord(l),
	};
	/* Not to depend on the responder's MAY to raise its IRD. */
	if (w->rtr == DDPS_RTR_READ && !w->ord && l->max_ord)
		w->ord = 1;
	return 0;
}

bool ddps_nego_rtr_mismatch(const struct ddps_word *request, unsigned rtr)
{
	return request->p2p && !(request->rtr & rtr);
}

/* The responder's ORD must fit the initiator's IRD. */
static bool respond_ord(const struct ddps_nego_local *l, const struct ddps_word *q,
			struct ddps_word *r, struct ddps_nego_result *res)
{
	res->ord = own_ord(l);
	if (q->ird == DDPS_RD_ULP) { /* [6581-9.1-14] */
		r->ord = DDPS_RD_ULP;
		return true;
	}
	res->ord = min16(res->ord, q->ird); /* [6581-9.1-4], for 0x3FFF of ours too */
	if (l->ord == DDPS_RD_ULP) {
		r->ord = DDPS_RD_ULP;
		return true;
	}
	r->ord = res->ord;
	if (l->need_ord <= q->ird)
		return true;
	r->ord = l->need_ord; /* [6581-9.1-5] */
	return false;
}

/* The responder's IRD should cover the initiator's ORD; it comes down otherwise. */
static void respond_ird(const struct ddps_nego_local *l, const struct ddps_word *q,
			struct ddps_nego_result *res)
{
	res->ird = own_ird(l);
	if (q->ord == DDPS_RD_ULP || l->ird == DDPS_RD_ULP || l->ird_hard)
		return;
	res->ird = min16(max16(res->ird, q->ord), l->max_ird);
}

/* A Read RTR needs a slot at the responder.  false: Read was the only type and has none. */
static bool read_slot(const struct ddps_nego_local *l, const struct ddps_word *q,
		      struct ddps_word *r, struct ddps_nego_result *res)
{
	bool numeric = q->ord != DDPS_RD_ULP && l->ird != DDPS_RD_ULP;

	if (!(r->rtr & DDPS_RTR_READ) || res->ird)
		return true;
	if (numeric && !l->ird_hard && l->max_ird) {
		res->ird = 1; /* [6581-9.1-3] */
		return true;
	}
	if (r->rtr != DDPS_RTR_READ) {
		r->rtr &= ~DDPS_RTR_READ;
		return true;
	}
	if (numeric)
		return false;
	res->provider_read_slot = true; /* 0x3FFF must stay unchanged */
	return true;
}

enum ddps_nego_verdict ddps_nego_respond(const struct ddps_nego_local *l, const struct ddps_word *q,
					 bool ulp_rejects, bool no_rtr_accept, struct ddps_word *r,
					 struct ddps_nego_result *res)
{
	unsigned own = l->rtr & DDPS_RTR_ALL;
	bool ord_ok, rtr_ok = true;

	*r = (struct ddps_word){ .p2p = q->p2p }; /* [6581-9.2-4] [6581-9.2-13] */
	*res = (struct ddps_nego_result){ 0 };
	ord_ok = respond_ord(l, q, r, res);
	respond_ird(l, q, res);
	if (q->p2p) {
		r->rtr = q->rtr & own; /* [6581-9.2-5] [6581-9.2-6] */
		if (!r->rtr) {
			r->rtr = own; /* [6581-9.2-8] */
			rtr_ok = false;
		} else {
			rtr_ok = read_slot(l, q, r, res);
		}
	}
	ddps_assert(res->ird <= l->max_ird && res->ord <= l->max_ord);
	ddps_assert(!rtr_ok || !(r->rtr & ~own));
	res->rtr = r->rtr;
	r->ird = q->ord == DDPS_RD_ULP || l->ird == DDPS_RD_ULP ? DDPS_RD_ULP : res->ird;
	if (ulp_rejects)
		return DDPS_NEGO_REJECT;
	if (!rtr_ok && !no_rtr_accept)
		return DDPS_NEGO_NO_RTR;
	return ord_ok ? DDPS_NEGO_ACCEPT : DDPS_NEGO_REJECT_ORD;
}

/* Our IRD must cover the responder's ORD [6581-9.1-7].  0 or a Terminate code. */
static int accept_ird(const struct ddps_nego_local *l, const struct ddps_word *w,
		      const struct ddps_word *r, struct ddps_nego_result *res)
{
	if (r->ord == DDPS_RD_ULP || r->ord <= res->ird) /* [6581-9.1-15] */
		return 0;
	if (r->ord <= l->max_ird && !l->ird_hard) {
		res->ird = r->ord;
		return 0;
	}
	if (w->ird != DDPS_RD_ULP)
		return DDPS_TERM_MPA_IRD; /* [6581-9.1-9] [6581-9.1-10] */
	res->ird_warning = true;
	return 0;
}

/* The initiator alone chooses [6581-1.1-d2]: the one that costs the least comes first. */
static unsigned choose_rtr(unsigned candidates)
{
	if (candidates & DDPS_RTR_WRITE)
		return DDPS_RTR_WRITE;
	if (candidates & DDPS_RTR_READ)
		return DDPS_RTR_READ;
	return candidates & DDPS_RTR_SEND;
}

int ddps_nego_accept(const struct ddps_nego_local *l, const struct ddps_word *w,
		     const struct ddps_word *r, struct ddps_nego_result *res)
{
	unsigned candidates = r->rtr & l->rtr;
	int code;

	/* own_ord, not w->ord: that may be raised to 1 for the RTR alone. */
	*res = (struct ddps_nego_result){ .ird = own_ird(l), .ord = own_ord(l) };
	code = accept_ird(l, w, r, res);
	if (code)
		return code;
	if (r->ird != DDPS_RD_ULP)
		res->ord = min16(res->ord, r->ird); /* [6581-9.1-8] */
	if (r->p2p != w->p2p)
		return DDPS_TERM_MPA_RTR; /* another model than was asked for */
	if (!r->p2p)
		return 0;
	if (!r->ird)
		candidates &= ~DDPS_RTR_READ;
	res->rtr = choose_rtr(candidates);
	if (!res->rtr)
		return DDPS_TERM_MPA_RTR; /* [6581-9.2-10] [6581-9.2-11] */
	res->rtr_needs_ord = res->rtr == DDPS_RTR_READ && !res->ord;
	ddps_assert(res->ird <= l->max_ird && res->ord <= l->max_ord);
	ddps_assert(!(res->rtr & (res->rtr - 1)) && res->rtr & l->rtr);
	return 0;
}

void ddps_nego_plain(const struct ddps_nego_local *l, struct ddps_nego_result *res)
{
	*res = (struct ddps_nego_result){ .ird = own_ird(l), .ord = own_ord(l) };
}
