/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 7306: Immediate Data and atomics that the target sends, and answers to them. */
#include "conform/cases/cases_7306.h"
#include <string.h>

static void app_post_imm(struct cf *cf, unsigned flags)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_IMM, .flags = flags };

	memcpy(wr.imm, cf_text, sizeof wr.imm);
	CF_CHECK(cf, !ddps_post_send(cf->app.ep, &wr), "application: Immediate Data");
}

static void imm_sent(struct cf *cf)
{
	const uint8_t *p;
	size_t len;

	rfc7306_on(cf, 0);
	cf_ping(cf);
	app_post_imm(cf, 0);
	app_post_imm(cf, DDPS_WR_SOLICITED);
	for (uint32_t i = 0; i < 2; i++) {
		cf_recv(cf);
		p = cf_in_payload(cf, &len);
		CF_CHECK(cf,
			 cf_in_op(cf) == IMM + i && cf_in_last(cf) && !cf_in_stag(cf) &&
				 !cf_in_qn(cf) && cf_in_msn(cf) == i + 1 && !cf_in_mo(cf),
			 "header: %s", cf_hex(cf->in.b, cf->in.len));
		CF_CHECK(cf, len == 8 && !memcmp(p, cf_text, 8), "data: %s", cf_hex(p, len));
	}
}

static void app_post_atomic(struct cf *cf, enum ddps_op op, const struct cf_mr *sink)
{
	struct ddps_sge sge = { sink ? sink->mem : NULL, 8, sink ? sink->stag : 0 };
	struct ddps_send_wr wr = { .op = op, .sge = &sge, .nsge = sink ? 1 : 0, .stag = 0xa501 };

	wr.to = 0x10008;
	wr.atomic = (struct ddps_atomic){ 0x2a, ONES, 0x29, ONES };
	CF_CHECK(cf, !ddps_post_send(cf->app.ep, &wr), "application: an atomic");
}

/* Its request identifier. */
static uint32_t read_atomic_request(struct cf *cf, uint32_t msn, uint8_t aop)
{
	const uint8_t *p;
	size_t len;

	cf_recv(cf);
	p = cf_in_payload(cf, &len);
	CF_CHECK(cf,
		 !cf_in_tagged(cf) && cf_in_op(cf) == ATOMIC_REQ && cf_in_last(cf) &&
			 len == REQ_LEN,
		 "no Atomic Request: %s", cf_hex(cf->in.b, cf->in.len));
	CF_CHECK(cf, !cf_in_stag(cf) && cf_in_qn(cf) == 1 && cf_in_msn(cf) == msn && !cf_in_mo(cf),
		 "its header: %s", cf_hex(cf->in.b, 18));
	CF_CHECK(cf, cf_get32(p) == aop && cf_get32(p + 8) == 0xa501 && cf_get64(p + 12) == 0x10008,
		 "operation and target: %s", cf_hex(p, 20));
	CF_CHECK(cf,
		 cf_get64(p + 20) == 0x2a && cf_get64(p + 44) == ONES &&
			 cf_get64(p + 36) == (aop == CMP_SWAP ? 0x29u : 0),
		 "operands: %s", cf_hex(p + 20, 32));
	return cf_get32(p + 4);
}

static void answer_atomic(struct cf *cf, uint32_t msn, uint32_t id, uint64_t original, size_t len)
{
	uint8_t h[RESP_LEN + 1] = { 0 };

	cf_put32(h, id);
	cf_put64(h + 4, original);
	cf_untagged(cf, CF_UNTAGGED_L, ATOMIC_RESP, 0xdeadbeef, 3, msn, 0, h, len);
	cf_send(cf);
}

static void atomics_sent(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct ddps_wc wc;
	uint32_t id[2];

	rfc7306_on(cf, 0);
	cf_ping(cf);
	app_post_atomic(cf, DDPS_OP_FETCH_ADD, &m);
	app_post_atomic(cf, DDPS_OP_CMP_SWAP, NULL);
	id[0] = read_atomic_request(cf, 1, FETCH_ADD);
	id[1] = read_atomic_request(cf, 2, CMP_SWAP);
	cf_ping(cf);
	cf_app_no_wc(cf); /* not before the response */
	for (uint32_t i = 0; i < 2; i++) {
		answer_atomic(cf, i + 1, id[i], 0x30 + i, RESP_LEN);
		wc = cf_app_wc(cf);
		CF_CHECK(cf, !wc.status && wc.original == 0x30 + i, "atomic %u: %s, %llu", i,
			 ddps_wc_status_name(wc.status), (unsigned long long)wc.original);
	}
	CF_CHECK(cf, *cell(&m, 0) == 0x30, "the sink: %s", cf_hex(m.mem, 8));
}

static void bad_answer(struct cf *cf, uint32_t msn, uint32_t id, size_t len, uint16_t code)
{
	uint32_t right;

	rfc7306_on(cf, 0);
	cf_ping(cf);
	app_post_atomic(cf, DDPS_OP_FETCH_ADD, NULL);
	right = read_atomic_request(cf, 1, FETCH_ADD);
	answer_atomic(cf, msn, right + id, 1, len);
	cf_expect_term(cf, code, CF_DDP);
	cf_expect_wc(cf, DDPS_OP_FETCH_ADD, DDPS_WC_FLUSHED);
}

CF_CALL(answer_id, bad_answer(cf, 1, 1, RESP_LEN, 0x02ff));
CF_CALL(answer_msn, bad_answer(cf, 2, 0, RESP_LEN, 0x1203));
CF_CALL(answer_short, bad_answer(cf, 1, 0, RESP_LEN - 1, 0x02ff));
CF_CALL(answer_long, bad_answer(cf, 1, 0, RESP_LEN + 1, 0x02ff));

/* The memory for the answer is gone: told instead of going on; nothing is written. */
static void sink_revoked(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	uint32_t id;

	rfc7306_on(cf, 0);
	cf_ping(cf);
	app_post_atomic(cf, DDPS_OP_FETCH_ADD, &m);
	id = read_atomic_request(cf, 1, FETCH_ADD);
	memset(m.mem, 0, m.len);
	ddps_mr_dereg(m.mr);
	answer_atomic(cf, 1, id, ONES, RESP_LEN);
	cf_expect_term(cf, 0x0000, CF_BARE);
	cf_expect_wc(cf, DDPS_OP_FETCH_ADD, DDPS_WC_LOCAL_ACCESS);
	CF_CHECK(cf, !*cell(&m, 0), "revoked memory was written");
}

/* A Write with Immediate Data waits behind a Read; its source goes: no message, but 0/0/00. */
static void check_write_imm_local_error(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 1, .ord_w = 16 };
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct ddps_sge sge;
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE_IMM, .sge = &sge, .nsge = 1, .stag = 1 };
	struct cf_mr n = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_read_req q;

	sge = (struct ddps_sge){ n.mem, 8, n.stag };
	wr.flags = DDPS_WR_FENCE;
	cf->app.attr.rfc7306 = true;
	cf_begin(cf, &o);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 1, 2);
	CF_CHECK(cf, !ddps_post_send(cf->app.ep, &wr), "application: Write with Immediate Data");
	q = cf_take_read(cf, 1, 1, 2, 8);
	ddps_mr_dereg(n.mr);
	cf_respond(cf, &q);
	cf_expect_term(cf, 0x0000, CF_BARE);
}

/* TCP: no answer comes behind a FIN. */
static void check_atomic_half_close(struct cf *cf)
{
	rfc7306_on(cf, 0);
	cf_ping(cf);
	app_post_atomic(cf, DDPS_OP_CMP_SWAP, NULL);
	read_atomic_request(cf, 1, CMP_SWAP);
	cf_tcp_fin(cf);
	cf_app_event(cf, DDPS_EV_PEER_CLOSED);
	cf_expect_wc(cf, DDPS_OP_CMP_SWAP, DDPS_WC_FLUSHED);
	app_post_imm(cf, 0);
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == IMM, "our half is closed, too");
}

#define CASE(name, app, run, ids, rule)                                                            \
	{                                                                                          \
		"rfc7306-" name, ids, rule, CF_BOTH, CF_RESPONDER, app, run                        \
	}
#define BOTH(name, run, ids, rule) CF_ROLES("rfc7306-", name, true, run, ids, rule)

const struct cf_case cf_cases_7306_sent[] = {
	BOTH("source-imm", imm_sent,
	     "7306-4.1-1 7306-6.3-1 7306-6.3-2 7306-6.3-5 7306-6.3-6 7306-6.3-7",
	     "Immediate Data is sent as 8 octets on queue 0, in order"),
	BOTH("source-atomics", atomics_sent,
	     "7306-4.1-1 7306-5.2-1 7306-5.2.1-4 7306-5.2.1-5 7306-5.2.1-10 7306-5.2.1-11 "
	     "7306-5.2.1-12 7306-5.2.1-15 7306-5.2.2-1 7306-5.2.2-7 7306-5.4-1 7306-5.4-8",
	     "atomics are sent on queue 1, and completed by their responses"),
	CASE("answer-id", true, answer_id, "7306-5.2.2-8",
	     "a response to another request is 0/2/FF"),
	CASE("answer-msn", true, answer_msn, "7306-8.2-1", "a response with MSN 2 is 1/2/03"),
	CASE("answer-short", true, answer_short, "7306-5.2.2-8 7306-8.2-1",
	     "a response of 11 octets is 0/2/FF"),
	CASE("answer-long", true, answer_long, "7306-5.2.2-8 7306-8.2-1",
	     "a response of 13 octets is 0/2/FF"),
	CASE("sink-revoked", true, sink_revoked, "7306-8.2-1",
	     "an answer without memory to go to is 0/0/00, and not written"),
	CASE("local-error", true, check_write_imm_local_error, "7306-8.1-1",
	     "a local error sends 0/0/00 without headers instead of the message"),
	{ "rfc7306-half-close", "7306-5.2.2-7", "the peer's FIN ends atomics and nothing else",
	  CF_TCP, CF_RESPONDER, true, check_atomic_half_close },
	{ 0 },
};
