/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5044 sections 4 to 8 without markers: FPDUs, CRC, the responder's wait, ends. */
#include "conform/peer/peer.h"
#include <string.h>

#define SINK 0x70696e67u

/* A Write whose FPDU has @pad octets of padding, refused for its STag by a target that gets it. */
static void padded_write(struct cf *cf, size_t pad)
{
	static const uint8_t data[4] = "PAD";

	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 0, data, 4 - pad);
}

/* ---- CRC ---- */

/* The first FPDU is good, the second one is not, the third would be answered. */
static void check_bad_crc(struct cf *cf, uint32_t xor)
{
	const struct cf_fault w = { .crc_xor = xor};
	uint8_t b[2 * 128];
	size_t n;

	cf_session(cf, NULL);
	cf_ping(cf);
	cf_question(cf);
	n = cf_fpdu_build(cf, &w, b);
	cf_question(cf);
	n += cf_fpdu_build(cf, NULL, b + n);
	cf_tcp_write(cf, b, n);
	cf_expect_term(cf, 0x2002, CF_BARE);
}

CF_CALL(crc_low_bit, check_bad_crc(cf, 1));
CF_CALL(crc_high_bit, check_bad_crc(cf, 0x80000000));

/* Bad in its CRC and in its DDP version: the CRC is what counts. */
static void crc_before_ddp(struct cf *cf)
{
	const struct cf_fault w = { .crc_xor = 1 };

	cf_session(cf, NULL);
	cf_ping(cf);
	cf_untagged(cf, 0x43, CF_SEND, 0, 7, 9, 0, NULL, 0);
	cf_fpdu_write(cf, &w);
	cf_expect_term(cf, 0x2002, CF_BARE);
}

static void crc_no_placement(struct cf *cf)
{
	const struct cf_fault w = { .crc_xor = 1 };
	struct cf_mr mr;
	uint8_t data[2000], want[2000];

	cf_session(cf, NULL);
	mr = cf_app_mr(cf, sizeof data, DDPS_REMOTE_WRITE | DDPS_LOCAL_WRITE);
	memcpy(want, mr.mem, sizeof want);
	memset(data, 0xee, sizeof data);
	cf_ping(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, mr.stag, mr.to, data, sizeof data);
	cf_fpdu_write(cf, &w);
	cf_expect_term(cf, 0x2002, CF_BARE);
	CF_CHECK(cf, !memcmp(mr.mem, want, sizeof want), "placed, though the CRC was bad");
}

static void pad_covered(struct cf *cf)
{
	const struct cf_fault w = { .pad_late = true };

	cf_session(cf, NULL);
	cf_ping(cf);
	padded_write(cf, 2);
	cf_fpdu_write(cf, &w);
	cf_expect_term(cf, 0x2002, CF_BARE);
}

static void pad_ignored(struct cf *cf)
{
	const struct cf_fault w = { .pad = 0xa5 };

	cf_session(cf, NULL);
	padded_write(cf, 3);
	cf_fpdu_write(cf, &w);
	cf_expect_term(cf, 0x1100, CF_DDP);
}

/* C = 0 on both sides. */
static void crc_off(struct cf *cf)
{
	const struct cf_opts o = { .no_crc = true };
	const struct cf_fault w = { .crc_xor = 0xdeadbeef };

	cf_session(cf, &o);
	if (cf->mpa.flags & CF_MPA_C)
		cf_skip(cf, "the target wants CRCs");
	for (unsigned i = 0; i < 3; i++) {
		cf_question(cf);
		cf_fpdu_write(cf, &w);
		cf_answer(cf);
	}
}

static void crc_off_data(struct cf *cf)
{
	const struct cf_opts o = { .no_crc = true };
	const struct cf_fault w = { .crc_xor = 0x01020304 };
	uint8_t data[3001];
	struct cf_mr mr;

	cf_session(cf, &o);
	mr = cf_app_mr(cf, sizeof data, DDPS_REMOTE_WRITE | DDPS_LOCAL_WRITE);
	cf_fill(data, sizeof data, 21);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, mr.stag, mr.to, data, sizeof data);
	cf_fpdu_write(cf, &w);
	cf_ping(cf);
	CF_CHECK(cf, !memcmp(mr.mem, data, sizeof data), "not what was written");
}

/* C in one of the frames only, and the other side does not want it: used, and for good. */
static void check_responder_crc_one_sided(struct cf *cf, bool target)
{
	const struct cf_fault w = { .crc_xor = 1 };
	struct cf_mpa f = { .rev = 1, .flags = target ? 0 : CF_MPA_C };

	cf->app.param.crc = target;
	cf_mpa_session(cf, &f);
	if (target && !(cf->mpa.flags & CF_MPA_C))
		cf_skip(cf, "the target wants no CRCs");
	for (unsigned i = 0; i < 20; i++)
		cf_ping(cf);
	cf_question(cf);
	cf_fpdu_write(cf, &w);
	cf_expect_term(cf, 0x2002, CF_BARE);
}

CF_CALL(crc_request, check_responder_crc_one_sided(cf, false));
CF_CALL(crc_reply, check_responder_crc_one_sided(cf, true));

/* ---- framing ---- */

static void check_split_fpdu(struct cf *cf)
{
	uint8_t b[CF_MAX];

	cf_session(cf, NULL);
	for (unsigned k = 0; k < 2; k++) {
		size_t n;

		cf_question(cf);
		n = cf_fpdu_build(cf, NULL, b);
		for (size_t i = 0; i < n; i++)
			cf_tcp_write(cf, b + i, 1);
		cf_answer(cf);
	}
}

/* Ten FPDUs in pieces of @piece octets. */
static void check_fpdu_pieces(struct cf *cf, size_t piece)
{
	uint8_t b[1000];
	size_t n = 0;

	cf_session(cf, NULL);
	for (unsigned i = 0; i < 10; i++) {
		cf_question(cf);
		n += cf_fpdu_build(cf, NULL, b + n);
	}
	for (size_t at = 0; at < n; at += piece)
		cf_tcp_write(cf, b + at, n - at < piece ? n - at : piece);
	for (unsigned i = 0; i < 10; i++)
		cf_answer(cf);
}

CF_CALL(packed, check_fpdu_pieces(cf, 1000));

static void across(struct cf *cf)
{
	check_fpdu_pieces(cf, 53); /* an FPDU has 52 */
}

static void length_zero(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_ping(cf);
	cf->out.len = 0;
	cf_send(cf);
	cf_expect_term(cf, 0x2003, CF_BARE);
}

/* The first one, so that the Terminate also shows that a valid FPDU ends the silence. */
static void long_write(struct cf *cf, size_t ulpdu)
{
	static const uint8_t zero[65535];

	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 0, zero, ulpdu - 14);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
}

CF_CALL(length_64768, long_write(cf, 64768));
CF_CALL(length_65535, long_write(cf, 65535));

/* Read Responses of all paddings: cf_recv() checks the frames. */
static void sent_frames(struct cf *cf)
{
	struct cf_mr mr;
	size_t len;

	cf_session(cf, NULL);
	mr = cf_app_mr(cf, 64, DDPS_REMOTE_READ);
	for (uint32_t n = 1; n <= 9; n++) {
		const uint8_t *p;

		cf_read_req(cf, cf_msn(cf, 1), SINK, 0, n, mr.stag, mr.to + n);
		cf_send(cf);
		cf_recv(cf);
		p = cf_in_payload(cf, &len);
		CF_CHECK(cf, len == n && !memcmp(p, mr.mem + n, n), "%zu octets instead of %u: %s",
			 len, n, cf_hex(p, len));
	}
}

static void received_frames(struct cf *cf)
{
	uint8_t data[9];
	struct cf_mr mr;

	cf_session(cf, NULL);
	mr = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE | DDPS_LOCAL_WRITE);
	for (unsigned n = 1; n <= 9; n++) {
		memset(mr.mem, 0, 64);
		cf_fill(data, n, n);
		cf_tagged(cf, CF_TAGGED_L, CF_WRITE, mr.stag, mr.to + n, data, n);
		cf_send(cf);
		cf_ping(cf);
		CF_CHECK(cf, !memcmp(mr.mem + n, data, n) && !mr.mem[n - 1] && !mr.mem[2 * n],
			 "%u octets became %s", n, cf_hex(mr.mem, 2 * n + 1));
	}
}

/* Every Send in an FPDU of its own, however many wait for the first one to come in. */
static void one_each(struct cf *cf)
{
	struct cf_mr mr;
	unsigned sends = 0;
	size_t len;

	cf_session(cf, NULL);
	mr = cf_app_mr(cf, 10, 0);
	for (unsigned i = 0; i < 5; i++)
		cf_app_post(cf, DDPS_OP_SEND, 0, &mr, 10, 0, 0);
	cf_question(cf);
	cf_send(cf);
	for (unsigned i = 0; i < 6; i++) {
		cf_recv(cf);
		cf_in_payload(cf, &len);
		sends += cf_in_op(cf) == CF_SEND && len == 10;
	}
	CF_CHECK(cf, sends == 5, "%u FPDUs with a Send of 10 octets instead of 5", sends);
}

/* ---- the responder's wait ---- */

static void wait_first(struct cf *cf, bool markers)
{
	struct cf_opts o = { .markers = markers };
	unsigned sends = 0, answers = 0;

	cf_session(cf, &o);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	/* A second session meanwhile: the target had time. */
	cf->app.ep = NULL;
	cf_open(cf);
	cf_session(cf, NULL);
	cf_ping(cf);
	cf_use(cf, 0);
	CF_CHECK(cf, cf_tcp_quiet(cf), "octets before the initiator's first FPDU");
	cf_question(cf);
	cf_send(cf);
	for (unsigned i = 0; i < 2; i++) {
		cf_recv(cf);
		sends += cf_in_op(cf) == CF_SEND;
		answers += cf_in_op(cf) == CF_READ_RESP;
	}
	CF_CHECK(cf, sends == 1 && answers == 1, "%u Sends, %u Read Responses", sends, answers);
}

CF_CALL(wait_plain, wait_first(cf, false));
CF_CALL(wait_markers, wait_first(cf, true));

/* It was not validated: nothing may be said, not even what was wrong. */
static void first_bad(struct cf *cf)
{
	const struct cf_fault w = { .crc_xor = 1 };

	cf_session(cf, NULL);
	cf_question(cf);
	cf_fpdu_write(cf, &w);
	cf_expect_end(cf, false);
}

/* ---- ends ---- */

static void fin_between(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_ping(cf);
	cf_tcp_fin(cf);
	cf_app_event(cf, DDPS_EV_PEER_CLOSED);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == CF_SEND, "expected a Send: %s", cf_hex(cf->in.b, cf->in.len));
	CF_CHECK(cf, !ddps_disconnect(cf->app.ep), "ddps_disconnect");
	cf_expect_end(cf, true);
	cf_app_event(cf, DDPS_EV_CLOSED);
}

static void half_an_fpdu(struct cf *cf)
{
	uint8_t b[CF_MAX];

	cf_session(cf, NULL);
	cf_ping(cf);
	cf_question(cf);
	cf_tcp_write(cf, b, cf_fpdu_build(cf, NULL, b) - 1);
}

static void fin_inside(struct cf *cf)
{
	half_an_fpdu(cf);
	cf_tcp_fin(cf);
	cf_expect_dead(cf);
}

static void expect_app_lost(struct cf *cf)
{
	struct ddps_event ev = cf_app_event(cf, DDPS_EV_CLOSED);

	CF_CHECK(cf, ev.error.code == DDPS_E_RESET, "the application gets '%s' (%s)",
		 ddps_strerror(ev.error.code), ev.error.text);
	CF_CHECK(cf,
		 ev.error.has_triple && ev.error.triple.layer == 2 && !ev.error.triple.etype &&
			 ev.error.triple.code == 1,
		 "the application gets %u/%u/%02x", ev.error.triple.layer, ev.error.triple.etype,
		 ev.error.triple.code);
}

static void fin_inside_told(struct cf *cf)
{
	half_an_fpdu(cf);
	cf_tcp_fin(cf);
	expect_app_lost(cf);
}

static void reset_told(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_ping(cf);
	cf_tcp_reset(cf);
	expect_app_lost(cf);
}

static void close_after_last(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_ping(cf);
	for (unsigned i = 0; i < 5; i++)
		cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	CF_CHECK(cf, !ddps_disconnect(cf->app.ep), "ddps_disconnect");
	for (unsigned i = 1; i <= 5; i++) {
		cf_recv(cf);
		CF_CHECK(cf, cf_in_op(cf) == CF_SEND && cf_in_msn(cf) == i, "Send %u: %s", i,
			 cf_hex(cf->in.b, cf->in.len));
	}
	cf_expect_end(cf, true);
}

#define CRC_BAD "5044-4.4-18 5044-4.4-19 5044-6-3 5044-8-1 5044-8-2 5044-8-8 5044-8-9 5044-8-d2"

const struct cf_case cf_cases_mpa_fpdu[] = {
	{ "mpa-crc-low-bit", CRC_BAD " 5044-4.4-13 5044-4.4-1",
	  "a CRC wrong in its first octet: 2/0/02, and nothing of what follows", CF_TCP,
	  CF_RESPONDER, false, crc_low_bit },
	{ "mpa-crc-high-bit", CRC_BAD " 5044-4.4-13 5044-4.4-17",
	  "a CRC wrong in its last octet: 2/0/02", CF_TCP, CF_RESPONDER, false, crc_high_bit },
	{ "mpa-crc-before-ddp", "5044-4.4-18 5044-6-1 5044-6-3",
	  "the CRC is checked before the DDP header", CF_TCP, CF_RESPONDER, false, crc_before_ddp },
	{ "mpa-crc-no-placement", "5044-4.4-18 5044-4.4-19 5044-6-1",
	  "nothing is placed from an FPDU with a bad CRC", CF_TCP, CF_RESPONDER, true,
	  crc_no_placement },
	{ "mpa-crc-pad", "5044-4.1-3 5044-4.4-14", "the CRC covers the pad", CF_TCP, CF_RESPONDER,
	  false, pad_covered },
	{ "mpa-pad-ignored", "5044-4.1-3", "pad octets may have any value", CF_TCP, CF_RESPONDER,
	  false, pad_ignored },
	{ "mpa-crc-off",
	  "5044-4.1-4 5044-4.1-d3 5044-4.4-10 5044-4.4-12 5044-7.1.1-9 5044-7.1.1-11 5044-4.4-2",
	  "C = 0 from both: the field is there, and ignored", CF_TCP, CF_RESPONDER, false,
	  crc_off },
	{ "mpa-crc-off-data", "5044-4.1-4 5044-4.4-10 5044-7.1.1-9 5044-7.1.1-11 5044-4.3-12",
	  "the same with data that is placed", CF_TCP, CF_RESPONDER, true, crc_off_data },
	{ "mpa-crc-request", "5044-4.4-6 5044-4.4-9 5044-7.1.1-10 5044-4.4-2",
	  "C only in the Request: CRCs until the end", CF_TCP, CF_RESPONDER, true, crc_request },
	{ "mpa-crc-reply", "5044-4.4-6 5044-4.4-9 5044-7.1.1-10 5044-4.4-2",
	  "C only in the Reply: CRCs until the end", CF_TCP, CF_RESPONDER, false, crc_reply },
	{ "mpa-split", "5044-5.1-5 5044-5.2-1 5044-6-5 5044-A.4-1", "FPDUs in single octets",
	  CF_TCP, CF_RESPONDER, false, check_split_fpdu },
	{ "mpa-packed", "5044-5.1-5 5044-5.2-1 5044-6-2 5044-4.3-11 5044-A.4-1",
	  "ten FPDUs in one write", CF_TCP, CF_RESPONDER, false, packed },
	{ "mpa-across", "5044-5.1-5 5044-5.2-1 5044-6-2 5044-6-4 5044-6-5 5044-A.4-1",
	  "ten FPDUs in pieces that are no FPDUs", CF_TCP, CF_RESPONDER, false, across },
	{ "mpa-length-0", "5044-8-3", "an empty ULPDU is none: 2/0/03", CF_TCP, CF_RESPONDER, false,
	  length_zero },
	{ "mpa-length-64768", "5044-3-8 5044-4.1-d1", "the longest ULPDU is taken", CF_TCP,
	  CF_RESPONDER, false, length_64768 },
	{ "mpa-length-65535", "5044-3-8 5044-4.1-d1",
	  "a longer one, too: the limit is the sender's", CF_TCP, CF_RESPONDER, false,
	  length_65535 },
	{ "mpa-tx-frames",
	  "5044-4.1-1 5044-4.1-2 5044-4.1-d1 5044-4.1-d2 5044-4.4-12 5044-4.4-13 5044-4.4-14 "
	  "5044-4.4-17 5044-4.4-1 5044-3-6",
	  "length, zero pad and CRC of what is sent, for every pad", CF_TCP, CF_RESPONDER, true,
	  sent_frames },
	{ "mpa-rx-frames", "5044-3-8 5044-4.3-11 5044-4.3-12 5044-4.1-d1 5044-4.1-d2",
	  "every pad received, and nothing but the ULPDU handed up", CF_TCP, CF_RESPONDER, true,
	  received_frames },
	{ "mpa-tx-one-each", "5044-3-1", "every segment in an FPDU of its own", CF_TCP,
	  CF_RESPONDER, true, one_each },
	{ "mpa-wait", "5044-7.1.2-15", "a responder sends nothing before the first FPDU came",
	  CF_TCP, CF_RESPONDER, true, wait_plain },
	{ "mpa-wait-markers", "5044-7.1.2-15 5044-7.1.2-d1", "no marker either", CF_TCP,
	  CF_RESPONDER, true, wait_markers },
	{ "mpa-wait-bad", "5044-7.1.2-15 5044-8-8",
	  "a first FPDU with a bad CRC does not end the silence", CF_TCP, CF_RESPONDER, false,
	  first_bad },
	{ "mpa-fin", "5044-7.2-1 5044-7.2-d1 5044-8-1",
	  "a FIN between FPDUs ends one direction only, and is reported", CF_TCP, CF_RESPONDER,
	  true, fin_between },
	{ "mpa-fin-inside", "5044-8-1", "a FIN inside an FPDU ends the session", CF_TCP,
	  CF_RESPONDER, false, fin_inside },
	{ "mpa-fin-inside-told", "5044-8-1 5044-8-2", "it is reported to the application: 2/0/01",
	  CF_TCP, CF_RESPONDER, true, fin_inside_told },
	{ "mpa-reset-told", "5044-8-1 5044-8-2", "a reset: 2/0/01", CF_TCP, CF_RESPONDER, true,
	  reset_told },
	{ "mpa-close", "5044-A.1-d1 5044-7.2-d1", "what was posted leaves before the FIN", CF_TCP,
	  CF_RESPONDER, true, close_after_last },
	{ 0 },
};
