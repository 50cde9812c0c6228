/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5044 section 7: the target is an initiator; its Request, and Replies of all kinds. */
#include "conform/peer/inside.h"
#include <string.h>

/* The Reply that its Request asks for. */
static struct cf_mpa reply_to(const struct cf_mpa *q, uint8_t flags)
{
	struct cf_mpa f = { .reply = true, .rev = q->rev, .flags = flags };

	if (q->flags & CF_MPA_S && q->rev > 1) {
		f.flags |= CF_MPA_S;
		f.pd_len = 4;
		cf_put32(f.pd, 0x00100010);
	}
	return f;
}

static struct cf_mpa read_request_for_reply(struct cf *cf, uint8_t flags)
{
	cf_open(cf);
	cf_mpa_read(cf, &cf->mpa);
	return reply_to(&cf->mpa, flags);
}

static void accept_with_reply(struct cf *cf, const struct cf_mpa *f)
{
	cf_mpa_session(cf, f);
	cf_ping(cf);
}

/* The target closes without an FPDU, and its application learns of a failure. */
static void expect_reply_refused(struct cf *cf, const void *b, size_t n, int code)
{
	cf_tcp_write(cf, b, n);
	cf_expect_end(cf, false);
	if (cf->self) {
		struct ddps_event ev = cf_app_event(cf, DDPS_EV_FAILED);

		CF_CHECK(cf, ev.error.code == code, "the application gets '%s' (%s)",
			 ddps_strerror(ev.error.code), ev.error.text);
	}
}

static void expect_reply_frame_refused(struct cf *cf, const struct cf_mpa *f, int code)
{
	uint8_t b[CF_MPA_MAX];

	expect_reply_refused(cf, b, cf_mpa_octets(f, b), code);
}

static void request_form(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);
	const struct cf_mpa *q = &cf->mpa;
	bool s = q->flags & CF_MPA_S;

	CF_CHECK(cf, q->rev == 1 || q->rev == 2, "Rev %u", q->rev);
	CF_CHECK(cf, !(q->flags & (q->rev == 1 ? 0x1f : 0x0f)), "reserved bits: flags %02x",
		 q->flags);
	CF_CHECK(cf, !(q->flags & CF_MPA_R), "R in a Request");
	CF_CHECK(cf, q->flags & CF_MPA_C || cf->run->secured || cf->run->shared,
		 "C is 0 without anyone's request for that");
	CF_CHECK(cf, !s || q->pd_len >= 4, "S with %u octets of private data", q->pd_len);
	accept_with_reply(cf, &f);
}

static void request_pd(struct cf *cf, bool plain, uint16_t len)
{
	uint16_t word = plain ? 0 : 4;
	struct cf_mpa f;
	uint8_t pd[512];

	cf_fill(pd, len, 5);
	cf->app.param.plain = plain;
	cf->app.param.private_data = pd;
	cf->app.param.private_data_len = len;
	f = read_request_for_reply(cf, CF_MPA_C);
	CF_CHECK(cf, cf->mpa.rev == (plain ? 1 : 2), "Rev %u", cf->mpa.rev);
	CF_CHECK(cf, !(cf->mpa.flags & CF_MPA_S) == plain, "flags %02x", cf->mpa.flags);
	CF_CHECK(cf, cf->mpa.pd_len == word + len && !memcmp(cf->mpa.pd + word, pd, len),
		 "private data of %u octets: %s", cf->mpa.pd_len,
		 cf_hex(cf->mpa.pd, cf->mpa.pd_len));
	accept_with_reply(cf, &f);
}

CF_CALL(request_plain, request_pd(cf, true, 512));
CF_CALL(request_enhanced, request_pd(cf, false, 508));

static void reply_res(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C | 0x0f);

	accept_with_reply(cf, &f);
}

static void reply_split(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	for (size_t i = 0; i < n; i++)
		cf_tcp_write(cf, b + i, 1);
	cf_mpa_rest(cf, &f);
	cf_ping(cf);
}

/* A hasty responder's FPDU is kept until the initiator is ready for it. */
static void reply_and_fpdu(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);
	uint8_t b[CF_MAX];
	size_t n = cf_mpa_octets(&f, b);

	cf_mpa_agree(cf, &f);
	cf_read_req(cf, cf_msn(cf, 1), 1, 0, 0, 1, 0);
	n += cf_fpdu_build(cf, NULL, b + n);
	cf_tcp_write(cf, b, n);
	cf_recv_op(cf, CF_READ_RESP);
	CF_CHECK(cf, cf_in_op(cf) == CF_READ_RESP, "no Read Response: %s",
		 cf_hex(cf->in.b, cf->in.len));
	cf_ping(cf);
}

static void reply_key(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	b[15] ^= 0x20;
	expect_reply_refused(cf, b, n, DDPS_E_KEY);
}

static void both_initiators(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);

	f.reply = false;
	expect_reply_frame_refused(cf, &f, DDPS_E_KEY);
}

static void reply_rev_0(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C | CF_MPA_M);

	f.rev = 0;
	expect_reply_frame_refused(cf, &f, DDPS_E_REVISION);
}

static void reply_rev_3(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);

	f.rev = 3;
	expect_reply_frame_refused(cf, &f, DDPS_E_REVISION);
}

static void reply_pd_513(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);

	f.pd_len = 513;
	expect_reply_frame_refused(cf, &f, DDPS_E_PROTOCOL);
}

static void reply_pd_512(struct cf *cf)
{
	struct cf_mpa f;

	cf->app.param.plain = true;
	f = read_request_for_reply(cf, CF_MPA_C);
	f.pd_len = 512;
	cf_fill(f.pd, f.pd_len, 9);
	accept_with_reply(cf, &f);
	CF_CHECK(cf, cf->app.established.private_data_len == 512, "%zu octets instead of 512",
		 cf->app.established.private_data_len);
	CF_CHECK(cf, !memcmp(cf->app.established.private_data, f.pd, 512), "changed on the way");
}

static void reply_truncated(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	cf_tcp_write(cf, b, n - 1);
	cf_tcp_fin(cf);
	cf_expect_end(cf, false);
	if (cf->self)
		cf_app_event(cf, DDPS_EV_FAILED);
}

static void reply_without_s(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);

	if (!(cf->mpa.flags & CF_MPA_S))
		cf_skip(cf, "the target's Request is not enhanced");
	f.flags &= (uint8_t)~CF_MPA_S;
	expect_reply_frame_refused(cf, &f, DDPS_E_PROTOCOL);
}

static void reply_short_word(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);

	if (!(cf->mpa.flags & CF_MPA_S))
		cf_skip(cf, "the target's Request is not enhanced");
	f.pd_len = 3;
	expect_reply_frame_refused(cf, &f, DDPS_E_PROTOCOL);
}

static void check_reply_rejected(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C | CF_MPA_R);
	struct ddps_event ev;

	memcpy(f.pd + 4, "busy", 4);
	f.pd_len = 8;
	cf_mpa_write(cf, &f);
	ev = cf_app_event(cf, DDPS_EV_REJECTED);
	CF_CHECK(cf, ev.private_data_len == 4 && !memcmp(ev.private_data, "busy", 4),
		 "private data %s", cf_hex(ev.private_data, ev.private_data_len));
	cf_expect_end(cf, true); /* an FPDU before that would fail it */
}

static void reply_timeout(struct cf *cf)
{
	cf->app.param.setup_ms = 200;
	read_request_for_reply(cf, 0);
	cf_expect_end(cf, false);
	cf_app_event(cf, DDPS_EV_FAILED);
}

/* A second connection set up meanwhile shows that the target had time. */
static void waits_for_reply(struct cf *cf)
{
	struct cf_mpa f = read_request_for_reply(cf, CF_MPA_C);

	cf->app.ep = NULL;
	cf_open(cf);
	cf_session(cf, NULL);
	cf_ping(cf);
	cf_use(cf, 0);
	CF_CHECK(cf, cf_tcp_quiet(cf), "the target did not wait for the Reply");
	cf_mpa_session(cf, &f);
	cf_ping(cf);
}

static void first_fpdu_bad(struct cf *cf)
{
	const struct cf_fault w = { .crc_xor = 1 };

	cf_session(cf, NULL);
	cf_read_req(cf, 1, 1, 0, 0, 1, 0);
	cf_fpdu_write(cf, &w);
	cf_expect_term(cf, 0x2002, CF_BARE);
}

/* C in one of the frames only: CRCs are used anyway. */
static void check_initiator_crc_one_sided(struct cf *cf, bool target)
{
	const struct cf_fault w = { .crc_xor = 1 };
	struct cf_mpa f;

	cf->app.param.crc = target;
	f = read_request_for_reply(cf, target ? 0 : CF_MPA_C);
	CF_CHECK(cf, !(cf->mpa.flags & CF_MPA_C) != target, "flags %02x", cf->mpa.flags);
	accept_with_reply(cf, &f);
	cf_read_req(cf, cf_msn(cf, 1), 1, 0, 0, 1, 0);
	cf_fpdu_write(cf, &w);
	cf_expect_term(cf, 0x2002, CF_BARE);
}

CF_CALL(crc_ours, check_initiator_crc_one_sided(cf, false));
CF_CALL(crc_theirs, check_initiator_crc_one_sided(cf, true));

const struct cf_case cf_cases_mpa_init[] = {
	{ "mpa-i-request",
	  "5044-7.1.1-1 5044-7.1.1-12 5044-7.1.1-14 5044-7.1.1-d1 5044-7.1.2-1 5044-7.1.2-14 "
	  "5044-4.4-4 5044-4.4-5 5044-1.2-3 6581-6-1 6581-6-6",
	  "the Request's form; a good Reply leads to Full Operation", CF_TCP, CF_INITIATOR, false,
	  request_form },
	{ "mpa-i-request-plain",
	  "5044-7.1.1-17 5044-7.1.1-19 5044-7.1.2-2 5044u-6-2 5044u-10-1 6581-6-4 6581-10-3 "
	  "6581-6-d2",
	  "no enhanced feature wanted: Rev 1, no S, 512 octets of private data", CF_TCP,
	  CF_INITIATOR, true, request_plain },
	{ "mpa-i-request-enhanced",
	  "6581-6-3 6581-6-6 6581-6-d1 6581-6-d3 6581-9-d1 5044-7.1.1-17 5044u-6-1 5044u-6-4 "
	  "5044u-9-d1",
	  "enhanced: Rev 2, S, the word and 508 octets", CF_TCP, CF_INITIATOR, true,
	  request_enhanced },
	{ "mpa-i-reply-res", "5044-7.1.1-13 6581-6-2", "reserved bits of a Reply are ignored",
	  CF_TCP, CF_INITIATOR, false, reply_res },
	{ "mpa-i-reply-split", "5044-7.1.2-11", "a Reply in single octets", CF_TCP, CF_INITIATOR,
	  false, reply_split },
	{ "mpa-i-reply-fpdu", "5044-7.1.2-14", "an FPDU right behind the Reply is not lost", CF_TCP,
	  CF_INITIATOR, false, reply_and_fpdu },
	{ "mpa-i-key", "5044-7.1.1-4 5044-7.1.2-11 5044-7.1.2-12 5044-7.1.2-16 5044-8-6",
	  "a wrong key: closed, and reported", CF_TCP, CF_INITIATOR, false, reply_key },
	{ "mpa-i-both", "5044-7.1.1-4 5044-7.1.2-16 5044-7.1.2-19 5044-8-6",
	  "a Request for an answer: closed, and reported", CF_TCP, CF_INITIATOR, false,
	  both_initiators },
	{ "mpa-i-reply-rev-0", "5044-7.1.1-15 5044-7.1.1-16 5044-C.1-1",
	  "Rev 0 to a peer of the IETF's: closed", CF_TCP, CF_INITIATOR, true, reply_rev_0 },
	{ "mpa-i-reply-rev-3", "5044-7.1.1-15 5044-7.1.1-16 5044-8-6", "Rev 3: closed", CF_TCP,
	  CF_INITIATOR, false, reply_rev_3 },
	{ "mpa-i-reply-pd-513",
	  "5044-7.1.1-18 5044-7.1.2-12 5044-7.1.2-21 5044-7.1.2-23 5044-7.1.2-24 5044-8-6",
	  "513 octets of private data: closed", CF_TCP, CF_INITIATOR, false, reply_pd_513 },
	{ "mpa-i-reply-pd-512", "5044-7.1.1-19 5044-7.1.2-22 5044-7.1.1-d4",
	  "512 octets of private data arrive whole", CF_TCP, CF_INITIATOR, true, reply_pd_512 },
	{ "mpa-i-reply-truncated", "5044-7.1.2-11 5044-8-1", "a FIN inside the Reply: closed",
	  CF_TCP, CF_INITIATOR, false, reply_truncated },
	{ "mpa-i-reply-no-s", "5044-7.1.2-12 6581-6-d1", "S answered without S: closed", CF_TCP,
	  CF_INITIATOR, false, reply_without_s },
	{ "mpa-i-reply-s-pd-3", "5044-7.1.2-12 6581-6-6 5044u-6-4",
	  "S with three octets of private data: closed", CF_TCP, CF_INITIATOR, false,
	  reply_short_word },
	{ "mpa-i-rejected", "5044-7.1.2-13 5044-7.1.1-d2",
	  "R: it is reported to the application, no FPDU", CF_TCP, CF_INITIATOR, true,
	  check_reply_rejected },
	{ "mpa-i-timeout", "5044-7.1.2-25", "a Reply is not waited for forever", CF_TCP,
	  CF_INITIATOR, true, reply_timeout },
	{ "mpa-i-waits", "5044-7.1.2-d2 5044-7.1.2-11", "nothing is sent before the Reply", CF_TCP,
	  CF_INITIATOR, true, waits_for_reply },
	{ "mpa-i-first-fpdu-crc", "5044-4.4-18 5044-4.4-19 5044-8-1 5044-8-9",
	  "an initiator may say that the first FPDU was bad", CF_TCP, CF_INITIATOR, false,
	  first_fpdu_bad },
	{ "mpa-i-crc-reply", "5044-4.4-6 5044-4.4-9 5044-7.1.1-10 5044-4.4-2",
	  "C only in the Reply: CRCs are used", CF_TCP, CF_INITIATOR, true, crc_ours },
	{ "mpa-i-crc-request", "5044-4.4-6 5044-7.1.1-10 5044-4.4-2",
	  "C only in the Request: CRCs are used", CF_TCP | CF_CLEAR, CF_INITIATOR, true,
	  crc_theirs },
	{ 0 },
};
