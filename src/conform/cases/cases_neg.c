/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 6581, the target answers: enhanced or not, IRD and ORD, private data, rejections. */
#include "conform/cases/cases_neg.h"
#include <string.h>

static void begin_with_ird_ord(struct cf *cf, uint16_t ird, uint16_t ord)
{
	const struct cf_opts o = { .ird_w = ird, .ord_w = ord };

	cf_session(cf, &o);
}

static void check_enhanced_answer(struct cf *cf)
{
	struct word w;

	begin_with_ird_ord(cf, 16, 16);
	w = cf_word(cf);
	CF_CHECK(cf, !w.a && !w.b && !w.c && !w.d, "flags for a client-server request");
	cf_ping(cf);
}

static void check_plain_answer(struct cf *cf)
{
	const struct cf_opts o = { .plain = true, .pd = "hello", .pd_len = 5 };
	size_t len;

	cf_session(cf, &o);
	if (cf->wire == CF_TCP)
		CF_CHECK(cf, cf->mpa.rev == 1 && !(cf->mpa.flags & CF_MPA_S), "Rev %u, flags %02x",
			 cf->mpa.rev, cf->mpa.flags);
	cf_ping(cf);
	if (!cf->self)
		return;
	cf_word_pd(cf, &len);
	CF_CHECK(cf, !len, "%zu octets of private data from nobody", len);
	CF_CHECK(cf,
		 cf->app.request.private_data_len == 5 &&
			 !memcmp(cf->app.request.private_data, "hello", 5),
		 "the application got other private data");
}

/* The answer's ORD is within our IRD; exactly what the defaults give where they are known. */
static void ord_within(struct cf *cf, uint16_t ird)
{
	struct word w;

	begin_with_ird_ord(cf, ird, 16);
	w = cf_word(cf);
	CF_CHECK(cf, w.ord == ULP || w.ord <= ird, "ORD %u to our IRD %u", w.ord, ird);
	if (!cf->self)
		return;
	CF_CHECK(cf, w.ord == (ird < 16 ? ird : 16), "ORD %u to our IRD %u", w.ord, ird);
	CF_CHECK(cf, cf->app.established.info.ord == w.ord, "%u is in force, %u was said",
		 cf->app.established.info.ord, w.ord);
}

CF_CALL(ird_0, ord_within(cf, 0));
CF_CALL(ird_1, ord_within(cf, 1));
CF_CALL(ird_15, ord_within(cf, 15));
CF_CALL(ird_17, ord_within(cf, 17));
CF_CALL(ird_max, ord_within(cf, 0x3ffe));

/* The IRD in the answer is real: as many Reads at a time are answered. */
static void ird_holds(struct cf *cf)
{
	struct word w;

	begin_with_ird_ord(cf, 16, 40);
	w = cf_word(cf);
	if (cf->self) {
		CF_CHECK(cf, w.ird == 40, "IRD %u, though 40 was asked for and allowed", w.ird);
		CF_CHECK(cf, cf->app.established.info.ird == 40, "%u is in force",
			 cf->app.established.info.ird);
	}
	if (w.ird == ULP)
		cf_skip(cf, "the target leaves its IRD to the applications");
	for (unsigned i = 0; i < w.ird && i < 40; i++) {
		cf_read_req(cf, cf_msn(cf, 1), 1, 0, 0, 1, 0);
		cf_send(cf);
	}
	for (unsigned i = 0; i < w.ird && i < 40; i++) {
		cf_recv_op(cf, CF_READ_RESP);
		CF_CHECK(cf, cf_in_op(cf) == CF_READ_RESP, "no Read Response: %s",
			 cf_hex(cf->in.b, cf->in.len));
	}
}

static void ird_is_hard(struct cf *cf)
{
	struct word w;

	cf->app.param.ird = 3;
	cf->app.param.ird_hard = true;
	begin_with_ird_ord(cf, 16, 40);
	w = cf_word(cf);
	CF_CHECK(cf, w.ird == 3, "IRD %u", w.ird);
}

static void check_answer_ord_ulp(struct cf *cf)
{
	struct word w;

	begin_with_ird_ord(cf, 16, ULP);
	w = cf_word(cf);
	CF_CHECK(cf, w.ird == ULP, "IRD %04x to our ORD 3fff", w.ird);
	if (cf->self)
		CF_CHECK(cf, cf->app.established.info.ird == cf->app.param.ird, "IRD became %u",
			 cf->app.established.info.ird);
	cf_ping(cf);
}

static void check_answer_ird_ulp(struct cf *cf)
{
	struct word w;

	begin_with_ird_ord(cf, ULP, 16);
	w = cf_word(cf);
	CF_CHECK(cf, w.ord == ULP, "ORD %04x to our IRD 3fff", w.ord);
	if (cf->self)
		CF_CHECK(cf, cf->app.established.info.ord == cf->app.param.ord, "ORD became %u",
			 cf->app.established.info.ord);
	cf_ping(cf);
}

static void both_ulp(struct cf *cf)
{
	struct word w;

	begin_with_ird_ord(cf, ULP, ULP);
	w = cf_word(cf);
	CF_CHECK(cf, w.ird == ULP && w.ord == ULP, "IRD %04x, ORD %04x", w.ird, w.ord);
	cf_ping(cf);
}

static void request_values(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 7, .ord_w = ULP, .pd = "hello", .pd_len = 5 };
	const struct ddps_event *ev = &cf->app.request;

	cf_session(cf, &o);
	CF_CHECK(cf, ev->info.enhanced && ev->info.peer_ird == 7 && ev->info.peer_ord == ULP,
		 "the application gets IRD %u, ORD %u", ev->info.peer_ird, ev->info.peer_ord);
	CF_CHECK(cf, ev->private_data_len == 5 && !memcmp(ev->private_data, "hello", 5),
		 "the application got %s", cf_hex(ev->private_data, ev->private_data_len));
}

/* The word first, then the private data. */
static void check_pd(struct cf *cf, const char *want, size_t want_len)
{
	size_t len;
	const uint8_t *p = cf_word_pd(cf, &len);

	CF_CHECK(cf, len == want_len && !memcmp(p, want, len), "private data %s", cf_hex(p, len));
}

static void accept_pd(struct cf *cf)
{
	char pd[508];

	cf_fill(pd, sizeof pd, 4);
	cf->app.param.private_data = pd;
	cf->app.param.private_data_len = sizeof pd;
	begin_with_ird_ord(cf, 5, 6);
	CF_CHECK(cf, cf_word(cf).ord == 5, "ORD %u in the word", cf_word(cf).ord);
	check_pd(cf, pd, sizeof pd);
	cf_ping(cf);
}

static void check_enhanced_reject(struct cf *cf)
{
	cf_neg_ask(cf, 5, 6, "hello", 5);
	cf->app.request = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	CF_CHECK(cf, !ddps_reject(cf->app.request.request, "busy", 4), "ddps_reject");
	cf_neg_hear(cf);
	CF_CHECK(cf, cf_neg_rejected(cf), "no rejection");
	CF_CHECK(cf, !cf_word(cf).a, "A in answer to a request without");
	check_pd(cf, "busy", 4);
}

static void reject_plain(struct cf *cf)
{
	cf_neg_ask_plain(cf, "hello", 5);
	cf->app.request = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	CF_CHECK(cf, !ddps_reject(cf->app.request.request, "busy", 4), "ddps_reject");
	cf_neg_hear(cf);
	CF_CHECK(cf, cf_neg_rejected(cf), "no rejection");
	if (cf->wire == CF_TCP)
		CF_CHECK(cf, cf->mpa.rev == 1 && !(cf->mpa.flags & CF_MPA_S), "Rev %u, flags %02x",
			 cf->mpa.rev, cf->mpa.flags);
	else
		CF_CHECK(cf, cf->ctrl.code == CF_REJECT, "function code %u", cf->ctrl.code);
	check_pd(cf, "busy", 4);
}

static void need_ord(struct cf *cf)
{
	struct word w;

	cf->app.param.need_ord = 32;
	cf->app.param.ord = 32;
	cf_neg_ask(cf, 31, 6, NULL, 0);
	CF_CHECK(cf, cf_neg_app_accept(cf) == DDPS_E_IRD, "ddps_accept");
	cf_neg_hear(cf);
	CF_CHECK(cf, cf_neg_rejected(cf), "no rejection");
	w = cf_word(cf);
	CF_CHECK(cf, w.ord == 32, "ORD %u instead of the 32 that are needed", w.ord);
}

static void need_ord_met(struct cf *cf)
{
	cf->app.param.need_ord = 32;
	cf->app.param.ord = 32;
	begin_with_ird_ord(cf, 32, 6);
	CF_CHECK(cf, cf_word(cf).ord == 32, "ORD %u", cf_word(cf).ord);
}

static void ord_kept(struct cf *cf)
{
	begin_with_ird_ord(cf, 2, 16);
	cf_neg_two_reads(cf);
}

const struct cf_case cf_cases_neg[] = {
	{ "neg-enhanced",
	  "6581-10-1 6581-10-5 6581-6-3 6581-6-6 6581-9-1 6581-9.2-13 6581-9.2-14 6581-7-d1 "
	  "6581-7-d3 6581-7-d4 6581-9.3-d2 5044u-6-1 5044u-6-4 5044u-9-1 5044u-9.2-1 5044u-9.2-3 "
	  "5044u-10-2",
	  "an enhanced request has an enhanced answer", CF_BOTH, CF_RESPONDER, false,
	  check_enhanced_answer },
	{ "neg-plain",
	  "6581-10-2 6581-10-4 6581-10-6 6581-6-5 6581-6-d2 6581-7-d2 5044u-6-3 5044u-10-3",
	  "a request of the old kind has an answer of the old kind", CF_BOTH, CF_RESPONDER, false,
	  check_plain_answer },
	{ "neg-ird-0", "6581-9.1-2 6581-9.1-4 6581-3-d1 6581-9.1-d2", "no IRD: no ORD", CF_BOTH,
	  CF_RESPONDER, false, ird_0 },
	{ "neg-ird-1", "6581-9.1-2 6581-9.1-4 6581-3-d1 6581-9.1-d1", "IRD 1: ORD at most 1",
	  CF_BOTH, CF_RESPONDER, false, ird_1 },
	{ "neg-ird-15", "6581-9.1-2 6581-9.1-4 6581-3-d1 6581-9.1-d1", "IRD 15: ORD at most 15",
	  CF_BOTH, CF_RESPONDER, false, ird_15 },
	{ "neg-ird-17", "6581-9.1-2 6581-9.1-4 6581-9.1-d1", "IRD 17: ORD at most 17", CF_BOTH,
	  CF_RESPONDER, false, ird_17 },
	{ "neg-ird-max", "6581-9.1-4 6581-9-1 6581-12-d1", "IRD 0x3ffe is a number", CF_BOTH,
	  CF_RESPONDER, false, ird_max },
	{ "neg-ird-holds", "6581-9.1-d1 6581-9.1-d2 6581-9-1 6581-9.3-d2",
	  "the answer's IRD is the one in force", CF_BOTH, CF_RESPONDER, false, ird_holds },
	{ "neg-ird-hard", "6581-9.1-d1", "an IRD that must not grow is reported as it is", CF_BOTH,
	  CF_RESPONDER, true, ird_is_hard },
	{ "neg-ord-kept", "6581-9.1-4 6581-9.1-d2 6581-3-d1",
	  "with our IRD of 2 a third Read waits", CF_BOTH, CF_RESPONDER, true, ord_kept },
	{ "neg-ord-ulp", "6581-9.1-12 6581-9.1-d4", "ORD 0x3fff: IRD unchanged, 0x3fff said",
	  CF_BOTH, CF_RESPONDER, false, check_answer_ord_ulp },
	{ "neg-ird-ulp", "6581-9.1-14 6581-9.1-d4", "IRD 0x3fff: ORD unchanged, 0x3fff said",
	  CF_BOTH, CF_RESPONDER, false, check_answer_ird_ulp },
	{ "neg-both-ulp", "6581-9.1-12 6581-9.1-14", "both", CF_BOTH, CF_RESPONDER, false,
	  both_ulp },
	{ "neg-told", "6581-9.1-1 6581-7-2 6581-7-3 6581-7-6 6581-7-7",
	  "IRD, ORD and private data reach the application as they came", CF_BOTH, CF_RESPONDER,
	  true, request_values },
	{ "neg-accept-pd", "6581-7-2 6581-7-3 6581-7-4 6581-9-d1 5044u-9-d1",
	  "508 octets of private data follow the word", CF_BOTH, CF_RESPONDER, true, accept_pd },
	{ "neg-reject", "6581-7-1 6581-7-2 6581-7-d1 6581-7-d3 6581-10-1 6581-10-5",
	  "an enhanced rejection: the word, then private data", CF_BOTH, CF_RESPONDER, true,
	  check_enhanced_reject },
	{ "neg-reject-plain", "6581-10-2 6581-10-6 5044u-10-3", "a plain one: no word", CF_BOTH,
	  CF_RESPONDER, true, reject_plain },
	{ "neg-need-ord", "6581-9.1-5 6581-7-1",
	  "an IRD below what the application needs is rejected, with the need", CF_BOTH,
	  CF_RESPONDER, true, need_ord },
	{ "neg-need-ord-met", "6581-9.1-5 6581-9.1-4", "one that is just enough is not", CF_BOTH,
	  CF_RESPONDER, true, need_ord_met },
	{ 0 },
};
