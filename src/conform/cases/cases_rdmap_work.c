/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5040 and RFC 5041: what a source sends, Reads in progress. */
#include "conform/cases/work.h"
#include <string.h>

#define BIG 100000u

/* ---- what is sent ---- */

static void sends_of_every_kind(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, 0);

	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_SEND, 0, &m, 8, 0x77, 0);
	cf_app_post(cf, DDPS_OP_SEND, DDPS_WR_INVALIDATE, &m, 8, 0xa501, 0);
	cf_app_post(cf, DDPS_OP_SEND, DDPS_WR_SOLICITED, &m, 8, 0x77, 0);
	cf_app_post(cf, DDPS_OP_SEND, DDPS_WR_SOLICITED | DDPS_WR_INVALIDATE, &m, 8, 0x1a2b3c01, 0);
	cf_take_message(cf, CF_SEND, 0, 1, 0, &m, 8);
	cf_take_message(cf, CF_SEND_INV, 0xa501, 2, 0, &m, 8);
	cf_take_message(cf, CF_SEND_SE, 0, 3, 0, &m, 8);
	cf_take_message(cf, CF_SEND_SE_INV, 0x1a2b3c01, 4, 0, &m, 8);
}

static void empty_messages(struct cf *cf)
{
	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	cf_app_post(cf, DDPS_OP_WRITE, 0, NULL, 0, 5, 6);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	cf_take_message(cf, CF_SEND, 0, 1, 0, NULL, 0);
	cf_take_message(cf, CF_WRITE, 5, 0, 6, NULL, 0);
	cf_take_message(cf, CF_SEND, 0, 2, 0, NULL, 0);
}

/* One message after the other, whole, in the order posted. */
static void big_messages(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, BIG, 0);

	cf->app.param.max_mulpdu = 1000;
	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_WRITE, 0, &m, BIG, 0x1a2b3c01, 0x12345);
	cf_app_post(cf, DDPS_OP_SEND, DDPS_WR_INVALIDATE, &m, BIG, 0xa501, 0);
	cf_app_post(cf, DDPS_OP_WRITE, 0, &m, BIG, 0x1a2b3c02, UINT64_MAX - BIG);
	cf_app_post(cf, DDPS_OP_SEND, 0, &m, 1, 0, 0);
	cf_take_message(cf, CF_WRITE, 0x1a2b3c01, 0, 0x12345, &m, BIG);
	cf_take_message(cf, CF_SEND_INV, 0xa501, 1, 0, &m, BIG);
	cf_take_message(cf, CF_WRITE, 0x1a2b3c02, 0, UINT64_MAX - BIG, &m, BIG);
	cf_take_message(cf, CF_SEND, 0, 2, 0, &m, 1);
}

/* ---- Reads of the target ---- */

static void read_holds_back_send(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE), s = cf_app_mr(cf, 64, 0);
	struct cf_read_req q;

	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 32, 0x1a2b3c01, 0x10000);
	cf_app_post(cf, DDPS_OP_SEND, 0, &s, 8, 0, 0);
	q = cf_take_read(cf, 1, 0x1a2b3c01, 0x10000, 32);
	cf_take_message(cf, CF_SEND, 0, 1, 0, &s, 8);
	cf_ping(cf);
	cf_app_no_wc(cf);
	cf_respond(cf, &q);
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cf_expect_wc(cf, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	CF_CHECK(cf, !memcmp(m.mem, cf_text, 32), "the response is not in place");
}

static void read_respects_ord(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 2, .ord_w = 16 };
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_read_req q[4];

	cf_begin(cf, &o);
	for (uint32_t i = 0; i < 4; i++)
		cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, i, i);
	q[0] = cf_take_read(cf, 1, 0, 0, 8);
	q[1] = cf_take_read(cf, 2, 1, 1, 8);
	cf_ping(cf); /* no third one */
	for (uint32_t i = 0; i < 4; i++) {
		cf_respond(cf, &q[i]);
		cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_SUCCESS);
		if (i < 2)
			q[i + 2] = cf_take_read(cf, i + 3, i + 2, i + 2, 8);
	}
}

/* A response that differs from its request in one thing. */
static void bad_response(struct cf *cf, uint32_t stag, uint64_t to, size_t len, uint8_t ctl,
			 uint16_t code)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_read_req q;

	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 16, 1, 2);
	q = cf_take_read(cf, 1, 1, 2, 16);
	cf_tagged(cf, ctl, CF_READ_RESP, q.stag + stag, q.to + to, cf_text, len);
	cf_send(cf);
	cf_expect_term(cf, code, CF_DDP);
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_FLUSHED);
}

CF_CALL(response_stag, bad_response(cf, 1, 0, 16, CF_TAGGED_L, 0x1100));
CF_CALL(response_to, bad_response(cf, 0, 1, 16, CF_TAGGED_L, 0x1101));
CF_CALL(response_long, bad_response(cf, 0, 0, 17, CF_TAGGED_L, 0x1101));
CF_CALL(response_short, bad_response(cf, 0, 0, 15, CF_TAGGED_L, 0x1101));

static void response_write(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_read_req q;

	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 16, 1, 2);
	q = cf_take_read(cf, 1, 1, 2, 16);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, q.stag, q.to, cf_text, 16);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
}

/* ---- Reads of the peer ---- */

/* Responses: in order, each whole, on its sink. */
static void responses_in_order(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, BIG, DDPS_REMOTE_READ);

	cf->app.param.max_mulpdu = 1000;
	cf_session(cf, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		cf_read_req(cf, cf_msn(cf, 1), i, i, BIG - i, m.stag, m.to + i);
		cf_send(cf);
	}
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t got = 0; got < BIG - i;) {
			const uint8_t *p;
			size_t len;

			cf_recv(cf);
			CF_CHECK(cf,
				 cf_in_op(cf) == CF_READ_RESP && cf_in_stag(cf) == i &&
					 cf_in_to(cf) == i + got,
				 "response %u at %u: %s", i, got, cf_hex(cf->in.b, 14));
			p = cf_in_payload(cf, &len);
			CF_CHECK(cf, got + len <= BIG - i && !memcmp(p, m.mem + i + got, len),
				 "other octets than those of the source");
			got += (uint32_t)len;
			CF_CHECK(cf, cf_in_last(cf) == (got == BIG - i), "L at octet %u", got);
		}
}

static void write_then_read(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_READ | DDPS_REMOTE_WRITE);
	size_t len;

	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to, cf_text, 32);
	cf_send(cf);
	cf_read_req(cf, cf_msn(cf, 1), 1, 1, 32, m.stag, m.to);
	cf_send(cf);
	cf_recv(cf);
	CF_CHECK(cf, !memcmp(cf_in_payload(cf, &len), cf_text, 32) && len == 32,
		 "a Read does not see the Write before it: %s", cf_hex(cf->in.b, cf->in.len));
}

/* A slot is free when the last segment of its response is on its way. */
static void ird_of_one(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 16, .ord_w = 1 };

	cf->app.param.ird = 1;
	cf->app.param.ird_hard = true;
	cf_session(cf, &o);
	for (unsigned i = 0; i < 20; i++)
		cf_ping(cf);
}

#define CASE(name, app, run, ids, rule)                                                            \
	{                                                                                          \
		name, ids, rule, CF_BOTH, CF_RESPONDER, app, run                                   \
	}

const struct cf_case cf_cases_rdmap_work[] = {
	CF_ROLES(
		"rdmap-", "source-sends", true, sends_of_every_kind,
		"5040-4.1-3 5040-4.1-5 5040-4.1-6 5040-4.1-7 5040-4.1-9 5040-4.1-11 5040-5.3-10 "
		"5040-5.3-11 5040-5.3-14 5040-5.3-15 5041-4.3-1 5041-4.3-2 5041-4.3-10 5041-4.3-11 "
		"5041-4.1-9 5041-4.1-11",
		"the four Sends have their opcodes, queue 0, and MSN 1, 2, 3, 4"),
	CASE("rdmap-source-empty", true, empty_messages,
	     "5041-5.2-9 5041-5.2-10 5041-4.4-2 5041-4.3-15 5040-5.1-10 5040-5.3-12",
	     "an empty message is one segment with L"),
	CF_ROLES(
		"rdmap-", "source-big", true, big_messages,
		"5041-3-2 5041-3-5 5041-3-9 5041-4.1-3 5041-4.1-4 5041-4.1-5 5041-4.1-6 5041-4.2-1 "
		"5041-4.2-2 5041-4.2-5 5041-4.2-6 5041-4.2-8 5041-4.2-10 5041-4.2-11 5041-4.2-12 "
		"5041-4.3-4 5041-4.3-7 5041-4.3-9 5041-4.3-13 5041-4.3-14 5041-5.2-1 5041-5.2-2 "
		"5041-5.2-4 5041-5.2-6 5041-5.2-8 5041-5.3-2 5041-5.3-3 5040-3.1-3 5040-3.1-4 "
		"5040-3.1-6 5040-3.1-8 5040-3.2-1 5040-3.2-5 5040-5.1-7 5040-5.5-14 5040-6.1-1",
		"messages are cut to the MULPDU and leave one after the other"),
	CF_ROLES("rdmap-", "source-read-then-send", true, read_holds_back_send,
		 "5040-5.2-1 5040-4.4-1 5040-5.2.1-8 5040-5.2.2-5 5040-5.5-16 5040-5.5-20 "
		 "5040-5.5-23 "
		 "5040-5.2.2-1 5040-4.4-6 5040-5.2.1-13 5040-B-1",
		 "a Send after a Read is not completed before it"),
	CF_ROLES("rdmap-", "source-ord", true, read_respects_ord,
		 "5040-6.1-2 5040-6.1-3 5040-6.1-5 5040-6.1-7 5040-5.2.1-9",
		 "no more Reads are outstanding than the peer's IRD allows"),
	CF_ROLES("rdmap-", "response-stag", true, response_stag, "5040-5.2.2-6 5040-5.2.2-9",
		 "a Read Response to another STag is 1/1/00"),
	CASE("rdmap-response-to", true, response_to, "5040-5.2.2-6 5040-5.2.2-9",
	     "a Read Response to another TO is 1/1/01"),
	CASE("rdmap-response-long", true, response_long, "5040-5.2.2-6 5040-5.2.2-9",
	     "a Read Response one octet long is 1/1/01"),
	CASE("rdmap-response-short", true, response_short, "5040-5.2.2-6 5040-5.2.2-9",
	     "a Read Response one octet short is 1/1/01"),
	CASE("rdmap-write-to-read-sink", true, response_write, "5041-8.3.1-6 5040-8.1.1-5",
	     "a Write to the sink of a Read is 1/1/00"),
	CF_ROLES("rdmap-", "responses-in-order", true, responses_in_order,
		 "5040-5.2.1-10 5040-5.2.1-14 5040-5.2.2-2 5040-5.2.2-8 5040-5.2.2-10 5040-5.5-21 "
		 "5040-4.4-2 5040-4.4-3",
		 "Reads are answered in order, each response whole"),
	CASE("rdmap-write-then-read", true, write_then_read,
	     "5040-5.5-11 5040-5.5-18 5040-3.1-11 5040-B-1",
	     "a Read sees what a Write before it wrote"),
	CASE("rdmap-ird-of-one", true, ird_of_one,
	     "5040-6.1-4 5040-5.2.2-4 5040-5.2.1-15 5040-5.2.1-3",
	     "with an IRD of 1 the next Read may come with the last segment"),
	{ 0 },
};
