/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5044 section 7: the target is a responder, and gets Requests of all kinds. */
#include "conform/peer/inside.h"
#include <string.h>

#define HELLO_LEN 5

/* Any private data will do as long as it is recognised. */
static struct cf_mpa make_mpa_request(uint8_t flags, uint8_t rev, uint16_t pd_len)
{
	struct cf_mpa f = { .flags = flags, .rev = rev, .pd_len = pd_len };

	cf_fill(f.pd, pd_len, 3);
	return f;
}

static struct cf_mpa make_enhanced_request(uint8_t flags)
{
	struct cf_mpa f = { .flags = flags | CF_MPA_S | CF_MPA_C, .rev = 2, .pd_len = 4 };

	cf_put32(f.pd, 0x00100010);
	return f;
}

/* A Reply whose form is right, and a session that works behind it. */
static void expect_mpa_accept(struct cf *cf, const struct cf_mpa *f)
{
	bool s = f->rev > 1 && f->flags & CF_MPA_S;

	cf_mpa_session(cf, f);
	CF_CHECK(cf, cf->mpa.rev == f->rev, "Reply with Rev %u to Rev %u", cf->mpa.rev, f->rev);
	/* S is one of them in Rev 1 (RFC 5044 7.1.1, RFC 6581 6) */
	CF_CHECK(cf, !(cf->mpa.flags & (f->rev == 1 ? 0x1f : 0x0f)),
		 "reserved bits in the Reply: flags %02x", cf->mpa.flags);
	CF_CHECK(cf, !(cf->mpa.flags & CF_MPA_S) == !s, "S differs from the Request's: flags %02x",
		 cf->mpa.flags);
	cf_ping(cf); /* PD_Length was what came, or this would not be in step */
}

static void check_plain_request(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, HELLO_LEN);

	expect_mpa_accept(cf, &f);
}

static void res_bits(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C | 0x1f, 1, HELLO_LEN);

	expect_mpa_accept(cf, &f);
}

static void res_bits_rev2(struct cf *cf)
{
	struct cf_mpa f = make_enhanced_request(0x0f);

	expect_mpa_accept(cf, &f);
}

static void r_bit(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C | CF_MPA_R, 1, HELLO_LEN);

	expect_mpa_accept(cf, &f);
}

/* What the application got, where it can be asked. */
static void check_request_private_data(struct cf *cf, uint16_t len)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, len);

	expect_mpa_accept(cf, &f);
	if (!cf->self)
		return;
	CF_CHECK(cf, cf->app.request.private_data_len == len, "%zu octets instead of %u",
		 cf->app.request.private_data_len, len);
	CF_CHECK(cf, !memcmp(cf->app.request.private_data, f.pd, len), "changed on the way");
	CF_CHECK(cf, cf->app.request.info.mpa.rev == 1, "Rev %u is what the application gets",
		 cf->app.request.info.mpa.rev);
}

CF_CALL(pd_0, check_request_private_data(cf, 0));
CF_CALL(pd_512, check_request_private_data(cf, 512));

static void check_split_request(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, HELLO_LEN);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	cf_open(cf);
	for (size_t i = 0; i < n; i++)
		cf_tcp_write(cf, b + i, 1);
	cf_mpa_rest(cf, &f);
	cf_ping(cf);
}

static void reply_has_pd(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, 0);

	cf->app.param.private_data = "welcome";
	cf->app.param.private_data_len = 7;
	expect_mpa_accept(cf, &f);
	CF_CHECK(cf, cf->mpa.pd_len == 7 && !memcmp(cf->mpa.pd, "welcome", 7), "private data %s",
		 cf_hex(cf->mpa.pd, cf->mpa.pd_len));
}

static void crc_default(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(0, 1, 0);

	cf_mpa_session(cf, &f);
	CF_CHECK(cf, cf->mpa.flags & CF_MPA_C, "C is 0 without anyone's request for that");
	cf_ping(cf);
}

/* ---- what must not be answered ---- */

/* @n octets that are no Request: the end comes, and no Reply. */
static void expect_request_refused(struct cf *cf, const void *b, size_t n)
{
	cf_open(cf);
	cf_tcp_write(cf, b, n);
	cf_expect_end(cf, false);
}

static void expect_frame_refused(struct cf *cf, const struct cf_mpa *f)
{
	uint8_t b[CF_MPA_MAX];

	expect_request_refused(cf, b, cf_mpa_octets(f, b));
}

static void bad_key(struct cf *cf, size_t at)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, HELLO_LEN);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	b[at] ^= 0x20;
	expect_request_refused(cf, b, n);
}

CF_CALL(key_first, bad_key(cf, 0));
CF_CALL(key_last, bad_key(cf, 15));

static void key_of_reply(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, 0);

	f.reply = true;
	expect_frame_refused(cf, &f);
}

static void pd_513(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, 513);

	expect_frame_refused(cf, &f);
}

static void pd_65535(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, 0);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	cf_put16(b + 18, 0xffff);
	expect_request_refused(cf, b, n);
}

static void rev_3(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 3, 0);

	expect_frame_refused(cf, &f);
}

static void rev_255(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 255, 0);

	expect_frame_refused(cf, &f);
}

/* Appendix C: close, or say which revision it would be and close, or be an RDMAC peer. */
static void rev_0(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C | CF_MPA_M, 0, 0);
	uint8_t b[20];

	if (cf->self) {
		expect_frame_refused(cf, &f);
		return;
	}
	cf_open(cf);
	cf_mpa_write(cf, &f);
	if (cf_tcp_ended(cf))
		return;
	cf_tcp_read(cf, b, sizeof b);
	CF_CHECK(cf, b[17] < 2, "Reply with Rev %u to Rev 0", b[17]);
	if (b[17] == 0)
		CF_CHECK(cf, (b[16] & 0xc0) == 0xc0, "Rev 0 without markers and CRC");
	else
		cf_expect_end(cf, false);
}

static void check_request_surplus(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, HELLO_LEN);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	memset(b + n, 0, 4);
	expect_request_refused(cf, b, n + 4);
}

static void check_request_truncated(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, HELLO_LEN);
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	cf_open(cf);
	cf_tcp_write(cf, b, n - 1);
	cf_tcp_fin(cf);
	cf_expect_end(cf, false);
}

/* ---- S ---- */

static void rev2_without_s(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 2, HELLO_LEN);

	expect_mpa_accept(cf, &f);
}

static void enhanced_reply(struct cf *cf)
{
	struct cf_mpa f = make_enhanced_request(0);

	expect_mpa_accept(cf, &f);
	CF_CHECK(cf, cf->mpa.pd_len >= 4, "S with %u octets of private data", cf->mpa.pd_len);
}

/* Rev 1 has no S: all of the private data is the application's. */
static void rev1_with_s(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C | CF_MPA_S, 1, HELLO_LEN);

	expect_mpa_accept(cf, &f);
	if (cf->self)
		CF_CHECK(cf, cf->app.request.private_data_len == HELLO_LEN, "%zu octets of it",
			 cf->app.request.private_data_len);
}

static void short_word(struct cf *cf, uint16_t len)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C | CF_MPA_S, 2, len);

	expect_frame_refused(cf, &f);
}

CF_CALL(word_0, short_word(cf, 0));
CF_CALL(word_3, short_word(cf, 3));

/* ---- rejection, deadlines ---- */

static void check_app_rejects(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, HELLO_LEN);
	struct ddps_event ev;

	cf_open(cf);
	cf_mpa_write(cf, &f);
	ev = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	CF_CHECK(cf, !ddps_reject(ev.request, "busy", 4), "ddps_reject");
	cf_mpa_read(cf, &cf->mpa);
	CF_CHECK(cf, (cf->mpa.flags & 0x3f) == CF_MPA_R && cf->mpa.rev == 1, "flags %02x, Rev %u",
		 cf->mpa.flags, cf->mpa.rev);
	CF_CHECK(cf, cf->mpa.pd_len == 4 && !memcmp(cf->mpa.pd, "busy", 4), "private data %s",
		 cf_hex(cf->mpa.pd, cf->mpa.pd_len));
	/* Time for a whole session: nobody has closed the first by then. */
	cf_open(cf);
	cf_session(cf, NULL);
	cf_use(cf, 0);
	CF_CHECK(cf, cf_tcp_quiet(cf), "TCP was closed with the rejection");
	cf_tcp_fin(cf);
	cf_expect_end(cf, true);
}

static void check_silent_initiator(struct cf *cf)
{
	struct cf_mpa f = make_mpa_request(CF_MPA_C, 1, HELLO_LEN);
	struct ddps_listen_param lp;
	uint8_t b[CF_MPA_MAX];
	size_t n = cf_mpa_octets(&f, b);

	ddps_listen_param_init(&lp);
	lp.setup_ms = 200;
	CF_CHECK(cf, !ddps_listen(cf->app.ctx, cf_self_uri(cf), &lp, &cf->app.listener),
		 "listening");
	expect_request_refused(cf, b, n - 1);
}

static void no_first_fpdu(struct cf *cf)
{
	cf->app.param.first_fpdu_ms = 200;
	cf_session(cf, NULL);
	cf_expect_end(cf, false);
}

const struct cf_case cf_cases_mpa[] = {
	{ "mpa-request-plain",
	  "5044-7.1.1-3 5044-7.1.1-12 5044-7.1.1-14 5044-7.1.1-17 5044-7.1.1-d2 5044-7.1.2-8 "
	  "5044-7.1.2-10 5044-7.1-d2 5044u-6-3 5044u-10-3",
	  "a good Request of Rev 1 is answered by a good Reply of Rev 1", CF_TCP, CF_RESPONDER,
	  false, check_plain_request },
	{ "mpa-request-res", "5044-7.1.1-12 5044-7.1.1-13", "reserved bits: ignored, not echoed",
	  CF_TCP, CF_RESPONDER, false, res_bits },
	{ "mpa-request-res-rev2", "5044-7.1.1-12 5044-7.1.1-13 6581-6-1 6581-6-2",
	  "the four reserved bits of Rev 2: ignored, not echoed", CF_TCP, CF_RESPONDER, false,
	  res_bits_rev2 },
	{ "mpa-request-r", "5044-7.1.1-d1", "R in a Request means nothing", CF_TCP, CF_RESPONDER,
	  false, r_bit },
	{ "mpa-request-pd-0", "5044-7.1.1-19 5044-7.1.1-d3", "no private data", CF_TCP,
	  CF_RESPONDER, false, pd_0 },
	{ "mpa-request-pd-512", "5044-7.1.1-19 5044-7.1.2-22 5044-7.1.1-d4",
	  "512 octets of private data arrive whole", CF_TCP, CF_RESPONDER, false, pd_512 },
	{ "mpa-request-split", "5044-7.1.2-3", "a Request in single octets", CF_TCP, CF_RESPONDER,
	  false, check_split_request },
	{ "mpa-reply-pd", "5044-7.1.1-17 5044-7.1.2-9 5044-7.1.1-3",
	  "the accepting application's private data is in the Reply", CF_TCP, CF_RESPONDER, true,
	  reply_has_pd },
	{ "mpa-reply-crc", "5044-4.4-4 5044-4.4-5 5044-1.2-3",
	  "C in the Reply, though the Request has none", CF_TCP | CF_CLEAR, CF_RESPONDER, false,
	  crc_default },
	{ "mpa-key-first", "5044-7.1.1-2 5044-7.1.2-4 5044-7.1.2-16 5044-8-6 5044-7.1.3-d1",
	  "first octet of the key is wrong: closed", CF_TCP, CF_RESPONDER, false, key_first },
	{ "mpa-key-last", "5044-7.1.1-2 5044-7.1.2-4 5044-7.1.2-16 5044-8-6",
	  "last octet of the key is wrong: closed", CF_TCP, CF_RESPONDER, false, key_last },
	{ "mpa-key-of-reply", "5044-7.1.1-2 5044-7.1.2-19 5044-8-6",
	  "a Reply to a responder: closed", CF_TCP, CF_RESPONDER, false, key_of_reply },
	{ "mpa-request-pd-513", "5044-7.1.1-18 5044-7.1.2-21 5044-7.1.2-23 5044-7.1.2-24 5044-8-6",
	  "513 octets of private data: closed", CF_TCP, CF_RESPONDER, false, pd_513 },
	{ "mpa-request-pd-65535", "5044-7.1.1-18 5044-7.1.2-21 5044-7.1.2-23 5044-7.1.2-24",
	  "65535 octets announced: closed before they come", CF_TCP, CF_RESPONDER, false,
	  pd_65535 },
	{ "mpa-request-rev-3", "5044-7.1.1-15 5044-7.1.1-16 5044-8-6", "Rev 3: closed", CF_TCP,
	  CF_RESPONDER, false, rev_3 },
	{ "mpa-request-rev-255", "5044-7.1.1-15 5044-7.1.1-16", "Rev 255: closed", CF_TCP,
	  CF_RESPONDER, false, rev_255 },
	{ "mpa-request-rev-0", "5044-7.1.1-15 5044-7.1.1-16 5044-C.1-1",
	  "Rev 0: closed, or what Appendix C has", CF_TCP, CF_RESPONDER, false, rev_0 },
	{ "mpa-request-surplus", "5044-7.1.1-18 5044-7.1.2-21 5044-7.1.2-24 5044-7.1.2-4",
	  "octets behind the Request before the Reply: closed", CF_TCP, CF_RESPONDER, false,
	  check_request_surplus },
	{ "mpa-request-truncated", "5044-7.1.2-3 5044-8-1", "a FIN inside the Request: closed",
	  CF_TCP, CF_RESPONDER, false, check_request_truncated },
	{ "mpa-request-rev2-s0", "6581-10-6 6581-10-2 6581-6-d2 5044u-10-3",
	  "Rev 2 without S: a Reply of Rev 2 without S", CF_TCP, CF_RESPONDER, false,
	  rev2_without_s },
	{ "mpa-request-s",
	  "6581-6-3 6581-6-6 6581-10-1 6581-10-5 6581-6-d3 5044u-6-1 5044u-6-4 "
	  "5044u-10-2",
	  "S is answered by S, Rev 2 and a word", CF_TCP, CF_RESPONDER, false, enhanced_reply },
	{ "mpa-request-rev1-s", "6581-6-5 6581-10-4 5044-7.1.1-13 5044u-6-3",
	  "0x10 is a reserved bit in Rev 1", CF_TCP, CF_RESPONDER, false, rev1_with_s },
	{ "mpa-request-s-pd-0", "6581-6-6 6581-6-d1 5044u-6-4 5044-7.1.2-4",
	  "S without private data: closed", CF_TCP, CF_RESPONDER, false, word_0 },
	{ "mpa-request-s-pd-3", "6581-6-6 6581-6-d1 5044u-6-4 5044-7.1.2-4",
	  "S with three octets of private data: closed", CF_TCP, CF_RESPONDER, false, word_3 },
	{ "mpa-reject", "5044-7.1.2-5 5044-7.1.2-6 5044-7.1.2-7 5044-7.1.2-18 5044-7.1.1-d2",
	  "the application's no is a Reply with R; TCP stays", CF_TCP, CF_RESPONDER, true,
	  check_app_rejects },
	{ "mpa-request-timeout", "5044-7.1.2-20 5044-7.1.2-25",
	  "a Request that does not become whole is not waited for forever", CF_TCP, CF_RESPONDER,
	  true, check_silent_initiator },
	{ "mpa-first-fpdu-timeout", "5044-7.1.2-26", "nor is the first FPDU", CF_TCP, CF_RESPONDER,
	  true, no_first_fpdu },
	{ 0 },
};
