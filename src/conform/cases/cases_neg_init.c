/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 6581, the target asks: its request, and what it makes of the answer. */
#include "conform/cases/cases_neg.h"
#include <string.h>

static void check_enhanced_request(struct cf *cf)
{
	struct word w;

	cf_open(cf);
	cf_neg_hear(cf);
	if (cf->wire == CF_TCP ? !(cf->mpa.flags & CF_MPA_S) : cf->ctrl.code != CF_ENH_INITIATE)
		cf_skip(cf, "the target's request is not enhanced");
	CF_CHECK(cf, cf->wire == CF_SCTP || cf->mpa.rev >= 2, "S with Rev %u", cf->mpa.rev);
	w = cf_word(cf);
	CF_CHECK(cf, w.a || (!w.b && !w.c && !w.d), "flags without A");
	if (!cf->self)
		return;
	CF_CHECK(cf, !w.a, "A, though the application did not ask for it");
	CF_CHECK(cf, w.ird == cf->app.param.ird && w.ord == cf->app.param.ord, "IRD %u, ORD %u",
		 w.ird, w.ord);
}

static void values(struct cf *cf)
{
	struct word w;

	cf->app.param.ird = 0x3ffe;
	cf->app.param.ord = 0x2aaa;
	cf_open(cf);
	cf_neg_hear(cf);
	w = cf_word(cf);
	CF_CHECK(cf, w.ird == 0x3ffe && w.ord == 0x2aaa, "IRD %04x, ORD %04x", w.ird, w.ord);
}

static void values_ulp(struct cf *cf)
{
	struct word w;

	cf->app.param.ird = cf->app.param.ord = DDPS_RD_ULP;
	cf_open(cf);
	cf_neg_hear(cf);
	w = cf_word(cf);
	CF_CHECK(cf, w.ird == ULP && w.ord == ULP, "IRD %04x, ORD %04x", w.ird, w.ord);
}

static void check_plain_asker(struct cf *cf)
{
	size_t len;
	const uint8_t *p;

	cf->app.param.plain = true;
	cf->app.param.private_data = "hello";
	cf->app.param.private_data_len = 5;
	cf_session(cf, NULL);
	if (cf->wire == CF_TCP)
		CF_CHECK(cf, cf->mpa.rev == 1 && !(cf->mpa.flags & CF_MPA_S), "Rev %u, flags %02x",
			 cf->mpa.rev, cf->mpa.flags);
	else
		CF_CHECK(cf, cf->ctrl.code == CF_INITIATE, "function code %u", cf->ctrl.code);
	p = cf_word_pd(cf, &len);
	CF_CHECK(cf, len == 5 && !memcmp(p, "hello", 5), "private data %s", cf_hex(p, len));
	cf_ping(cf);
}

static struct ddps_conn_info begin_accepted(struct cf *cf, uint16_t ird, uint16_t ord)
{
	const struct cf_opts o = { .ird_w = ird, .ord_w = ord };

	cf_session(cf, &o);
	return cf->app.established.info;
}

static void ord_lowered(struct cf *cf)
{
	struct ddps_conn_info i = begin_accepted(cf, 2, 16);

	CF_CHECK(cf, i.ord == 2, "ORD %u, the responder's IRD is 2", i.ord);
	cf_neg_two_reads(cf);
}

static void ird_raised(struct cf *cf)
{
	struct ddps_conn_info i = begin_accepted(cf, 16, 40);

	CF_CHECK(cf, i.ird >= 40, "IRD %u, the responder's ORD is 40", i.ird);
	for (unsigned k = 0; k < 40; k++) {
		cf_read_req(cf, cf_msn(cf, 1), 1, 0, 0, 1, 0);
		cf_send(cf);
	}
	for (unsigned k = 0; k < 40; k++) {
		cf_recv(cf);
		CF_CHECK(cf, cf_in_op(cf) == CF_READ_RESP, "no Read Response");
	}
}

static void ird_short(struct cf *cf)
{
	cf->app.param.ird_hard = true;
	cf_neg_accept(cf, 16, 17);
	cf_expect_term(cf, 0x2006, CF_BARE);
	cf_neg_failed(cf, 0x2006);
}

static void ird_enough(struct cf *cf)
{
	cf->app.param.ird_hard = true;
	begin_accepted(cf, 16, 16);
	cf_ping(cf);
}

static void check_request_ird_ulp(struct cf *cf)
{
	struct ddps_conn_info i = begin_accepted(cf, ULP, 16);

	CF_CHECK(cf, i.ord == cf->app.param.ord, "ORD became %u", i.ord);
}

static void check_request_ord_ulp(struct cf *cf)
{
	struct ddps_conn_info i;

	cf->app.param.ird_hard = true; /* taken for a number it would end in 2/0/06 */
	i = begin_accepted(cf, 16, ULP);
	CF_CHECK(cf, i.ird == cf->app.param.ird, "IRD became %u", i.ird);
	cf_ping(cf);
}

static void check_asker_informed(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 9, .ord_w = 8, .pd = "welcome", .pd_len = 7 };
	const struct ddps_event *ev = &cf->app.established;

	cf_session(cf, &o);
	CF_CHECK(cf, ev->info.peer_ird == 9 && ev->info.peer_ord == 8, "IRD %u, ORD %u",
		 ev->info.peer_ird, ev->info.peer_ord);
	CF_CHECK(cf, ev->private_data_len == 7 && !memcmp(ev->private_data, "welcome", 7),
		 "private data %s", cf_hex(ev->private_data, ev->private_data_len));
}

static void told_rejected(struct cf *cf)
{
	struct ddps_event ev;

	cf_open(cf);
	cf_neg_hear(cf);
	cf_neg_answer(cf, true, 9, 32, "busy", 4);
	ev = cf_app_event(cf, DDPS_EV_REJECTED);
	CF_CHECK(cf, ev.info.peer_ird == 9 && ev.info.peer_ord == 32, "IRD %u, ORD %u",
		 ev.info.peer_ird, ev.info.peer_ord);
	CF_CHECK(cf, ev.private_data_len == 4 && !memcmp(ev.private_data, "busy", 4),
		 "private data %s", cf_hex(ev.private_data, ev.private_data_len));
}

/* Its first request is refused as a peer of the old kind does; the second one is plain. */
static void legacy(struct cf *cf)
{
	size_t len;

	cf->app.param.legacy_retry = true;
	cf_open(cf);
	cf_neg_hear(cf);
	cf_word(cf);
	cf_tcp_fin(cf);
	cf_tcp_again(cf);
	cf_neg_hear(cf);
	CF_CHECK(cf, cf->mpa.rev == 1 && !(cf->mpa.flags & CF_MPA_S), "Rev %u, flags %02x",
		 cf->mpa.rev, cf->mpa.flags);
	cf_word_pd(cf, &len);
	CF_CHECK(cf, !len, "private data of nobody");
}

const struct cf_case cf_cases_neg_init[] = {
	{ "neg-i-request", "6581-6-3 6581-6-6 6581-9-1 6581-9.2-12 6581-9.2-14 5044u-9.2-1",
	  "the word of a request", CF_BOTH, CF_INITIATOR, false, check_enhanced_request },
	{ "neg-i-values", "6581-9-1 6581-7-d4 5044u-9-1", "14 bits of IRD and ORD", CF_BOTH,
	  CF_INITIATOR, true, values },
	{ "neg-i-values-ulp", "6581-9.1-d4", "both left to the applications", CF_BOTH, CF_INITIATOR,
	  true, values_ulp },
	{ "neg-i-plain", "6581-10-3 6581-6-4 5044u-10-1 5044u-6-2",
	  "nothing enhanced wanted: nothing enhanced asked", CF_BOTH, CF_INITIATOR, true,
	  check_plain_asker },
	{ "neg-i-ord-lowered", "6581-9.1-8 6581-9.1-d2 6581-3-d1",
	  "an answer with IRD 2: a third Read waits", CF_BOTH, CF_INITIATOR, true, ord_lowered },
	{ "neg-i-ird-raised", "6581-9.1-7 6581-9.1-d2", "an answer with ORD 40: as many are taken",
	  CF_BOTH, CF_INITIATOR, true, ird_raised },
	{ "neg-i-ird-short", "6581-9.1-9 6581-9.1-10 6581-8-d1 6581-8-d2",
	  "an ORD that it cannot take: 2/0/06", CF_BOTH, CF_INITIATOR, true, ird_short },
	{ "neg-i-ird-enough", "6581-9.1-7", "one that it just can", CF_BOTH, CF_INITIATOR, true,
	  ird_enough },
	{ "neg-i-ird-ulp", "6581-9.1-13", "an answer with IRD 0x3fff leaves ORD", CF_BOTH,
	  CF_INITIATOR, true, check_request_ird_ulp },
	{ "neg-i-ord-ulp", "6581-9.1-15", "an answer with ORD 0x3fff leaves IRD", CF_BOTH,
	  CF_INITIATOR, true, check_request_ord_ulp },
	{ "neg-i-told", "6581-9.1-1 6581-9.1-11 6581-7-2 6581-7-6 6581-7-7",
	  "an Accept's IRD, ORD and private data reach the application", CF_BOTH, CF_INITIATOR,
	  true, check_asker_informed },
	{ "neg-i-told-rejected", "6581-9.1-11 6581-7-6 6581-7-7", "a rejection's, too", CF_BOTH,
	  CF_INITIATOR, true, told_rejected },
	{ "neg-i-legacy", "6581-10-8 6581-10-d1 5044u-10-5",
	  "closed on an enhanced request: plain, if the application can do with that", CF_TCP,
	  CF_INITIATOR, true, legacy },
	{ 0 },
};
