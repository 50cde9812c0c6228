/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 7306: Immediate Data and atomics, asked for by the application, and not: what the peer sends. */
#include "conform/cases/cases_7306.h"
#include <string.h>

#define RIGHTS (DDPS_REMOTE_READ | DDPS_REMOTE_WRITE | DDPS_REMOTE_ATOMIC)

struct areq {
	uint8_t aop;
	uint64_t data, mask, compare, compare_mask;
};

/* An Atomic Request with request identifier @id; @len octets of it. */
static void put_request(struct cf *cf, uint32_t id, const struct cf_mr *m, uint64_t off,
			const struct areq *q, size_t len)
{
	uint8_t h[REQ_LEN + 1] = { 0 };

	cf_put32(h, 0xfffffff0u | q->aop); /* reserved bits are ignored */
	cf_put32(h + 4, id);
	cf_put32(h + 8, m->stag);
	cf_put64(h + 12, m->to + off);
	cf_put64(h + 20, q->data);
	cf_put64(h + 28, q->mask);
	cf_put64(h + 36, q->compare);
	cf_put64(h + 44, q->compare_mask);
	cf_untagged(cf, CF_UNTAGGED_L, ATOMIC_REQ, 0xdeadbeef, 1, cf_msn(cf, 1), 0, h, len);
	cf_send(cf);
}

static void take_response(struct cf *cf, uint32_t msn, uint32_t id, uint64_t original)
{
	const uint8_t *p;
	size_t len;

	cf_recv(cf);
	p = cf_in_payload(cf, &len);
	CF_CHECK(cf, !cf_in_tagged(cf) && cf_in_op(cf) == ATOMIC_RESP && cf_in_last(cf),
		 "no Atomic Response: %s", cf_hex(cf->in.b, cf->in.len));
	CF_CHECK(cf, !cf_in_stag(cf) && cf_in_qn(cf) == 3 && cf_in_msn(cf) == msn && !cf_in_mo(cf),
		 "its header: %s", cf_hex(cf->in.b, 18));
	CF_CHECK(cf, len == RESP_LEN && cf_get32(p) == id && cf_get64(p + 4) == original,
		 "its identifier or value: %s", cf_hex(p, len));
}

static struct cf_mr cells(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, RIGHTS);

	memset(m.mem, 0, m.len);
	return m;
}

/* ---- atomics of the peer ---- */

static void fetch_add(struct cf *cf)
{
	const struct areq one = { .data = 1, .compare = 5 },
			  fields = { .data = 0x101, .mask = 0x80 };
	struct cf_mr m = cells(cf);

	rfc7306_on(cf, 0);
	put_request(cf, 0x51, &m, 8, &one, REQ_LEN);
	take_response(cf, 1, 0x51, 0);
	put_request(cf, 0x51, &m, 8, &one, REQ_LEN);
	take_response(cf, 2, 0x51, 1);
	*cell(&m, 2) = 0xff;
	put_request(cf, 7, &m, 16, &fields, REQ_LEN);
	take_response(cf, 3, 7, 0xff);
	CF_CHECK(cf, *cell(&m, 1) == 2 && *cell(&m, 2) == 0x100, "memory: %s",
		 cf_hex(m.mem, m.len));
	cf_ping(cf);
	cf_app_no_wc(cf); /* a request is not delivered */
}

static void cmp_swap(struct cf *cf)
{
	struct areq q = { CMP_SWAP, 0x2a, ONES, 0x28, ONES };
	struct cf_mr m = cells(cf);

	*cell(&m, 1) = 0x29;
	rfc7306_on(cf, 0);
	put_request(cf, 1, &m, 8, &q, REQ_LEN);
	take_response(cf, 1, 1, 0x29);
	CF_CHECK(cf, *cell(&m, 1) == 0x29, "swapped without a match");
	q.compare = 0x29;
	put_request(cf, 2, &m, 8, &q, REQ_LEN);
	take_response(cf, 2, 2, 0x29);
	CF_CHECK(cf, *cell(&m, 1) == 0x2a, "not swapped");
	q = (struct areq){ CMP_SWAP, 0xffff, 0xf00, 0x1a, 0x0f };
	put_request(cf, 3, &m, 8, &q, REQ_LEN);
	take_response(cf, 3, 3, 0x2a);
	CF_CHECK(cf, *cell(&m, 1) == 0xf2a, "the masks: %016llx", (unsigned long long)*cell(&m, 1));
}

/* Reads and atomics share queue 1: one order of requests and of answers. */
static void check_queue1_order(struct cf *cf)
{
	const struct areq one = { .data = 1 };
	struct cf_mr m = cells(cf);
	uint64_t seen;
	size_t len;

	rfc7306_on(cf, 0);
	for (uint32_t i = 0; i < 3; i++) {
		cf_read_req(cf, cf_msn(cf, 1), i, i, 8, m.stag, m.to + 8);
		cf_send(cf);
		put_request(cf, i, &m, 8, &one, REQ_LEN);
	}
	for (uint32_t i = 0; i < 3; i++) {
		cf_recv(cf);
		CF_CHECK(cf, cf_in_op(cf) == CF_READ_RESP && cf_in_stag(cf) == i,
			 "no answer %u: %s", i, cf_hex(cf->in.b, cf->in.len));
		memcpy(&seen, cf_in_payload(cf, &len), sizeof seen);
		CF_CHECK(cf, len == 8 && seen == i,
			 "a Read does not see the %u atomics before it, or those behind", i);
		take_response(cf, i + 1, i, i);
	}
}

/* One request that is refused; nothing is changed. */
static void check_atomic_refused(struct cf *cf, unsigned access, const struct areq *q, uint64_t off,
				 size_t len, uint16_t code)
{
	struct cf_mr m = cf_app_mr(cf, 64, access);

	memset(m.mem, 0, m.len);
	rfc7306_on(cf, 0);
	put_request(cf, 1, &m, off, q, len);
	cf_expect_term(cf, code, CF_DDP);
	for (size_t i = 0; i < m.len; i++)
		CF_CHECK(cf, !m.mem[i], "memory was changed");
}

#define REFUSED(name, access, aop, off, len, code)                                                 \
	static void name(struct cf *cf)                                                            \
	{                                                                                          \
		check_atomic_refused(cf, access, &(const struct areq){ aop, 1, ONES, 0, ONES },    \
				     off, len, code);                                              \
	}

REFUSED(unaligned_add, RIGHTS, FETCH_ADD, 9, REQ_LEN, 0x0207)
REFUSED(unaligned_swap, RIGHTS, CMP_SWAP, 12, REQ_LEN, 0x0207)
REFUSED(aop_1, RIGHTS, 1, 8, REQ_LEN, 0x0206)
REFUSED(aop_15, RIGHTS, 15, 8, REQ_LEN, 0x0206)
REFUSED(request_short, RIGHTS, FETCH_ADD, 8, REQ_LEN - 1, 0x02ff)
REFUSED(request_long, RIGHTS, FETCH_ADD, 8, REQ_LEN + 1, 0x02ff)
REFUSED(no_write_right, DDPS_REMOTE_READ, FETCH_ADD, 8, REQ_LEN, 0x0102)
REFUSED(no_read_right, DDPS_REMOTE_WRITE, CMP_SWAP, 8, REQ_LEN, 0x0102)
REFUSED(past_end, RIGHTS, FETCH_ADD, 64, REQ_LEN, 0x0101)

/* ---- versions and opcodes ---- */

static void send_short_request(struct cf *cf, uint8_t op, uint32_t qn, size_t len, uint16_t code)
{
	static const uint8_t zero[REQ_LEN];

	cf_untagged(cf, CF_UNTAGGED_L, op, 0, qn, 1, 0, zero, len);
	cf_send(cf);
	cf_expect_term(cf, code, code == 0x0205 ? CF_ANY : CF_DDP);
}

#define OCTET(name, start, op, qn, len, code)                                                      \
	static void name(struct cf *cf)                                                            \
	{                                                                                          \
		start;                                                                             \
		send_short_request(cf, op, qn, len, code);                                         \
	}

OCTET(imm_version, rfc7306_on(cf, 0), 0x88, 0, 8, 0x0205)
OCTET(atomic_version, rfc7306_on(cf, 0), 0x0a, 1, REQ_LEN, 0x0205)
OCTET(imm_on_queue_1, rfc7306_on(cf, 0), IMM, 1, 8, 0x0206)
OCTET(atomic_on_queue_0, rfc7306_on(cf, 0), ATOMIC_REQ, 0, REQ_LEN, 0x0206)
OCTET(imm_no_buffer, rfc7306_on(cf, 0), IMM, 0, 8, 0x1202)
OCTET(response_unasked, rfc7306_on(cf, 0), ATOMIC_RESP, 3, RESP_LEN, 0x1202)
OCTET(imm_off, cf_session(cf, NULL), IMM, 0, 8, 0x0206)
OCTET(imm_se_off, cf_session(cf, NULL), IMM_SE, 0, 8, 0x0206)
OCTET(atomic_off, cf_session(cf, NULL), ATOMIC_REQ, 1, REQ_LEN, 0x0206)
OCTET(response_off, cf_session(cf, NULL), ATOMIC_RESP, 0, RESP_LEN, 0x0206)
OCTET(queue_3_off, cf_session(cf, NULL), CF_SEND, 3, 8, 0x1201)

/* ---- Immediate Data of the peer ---- */

static void put_imm(struct cf *cf, uint8_t op, size_t len)
{
	cf_untagged(cf, CF_UNTAGGED_L, op, 0xdeadbeef, 0, cf_msn(cf, 0), 0, cf_text, len);
	cf_send(cf);
}

static void imm_delivered(struct cf *cf)
{
	struct ddps_wc wc;

	rfc7306_on(cf, 2);
	put_imm(cf, IMM, 8);
	put_imm(cf, IMM_SE, 8);
	for (unsigned i = 0; i < 2; i++) {
		wc = cf_app_wc(cf);
		CF_CHECK(cf, wc.op == DDPS_OP_RECV && !wc.status && wc.has_imm, "not delivered");
		CF_CHECK(cf, !memcmp(wc.imm, cf_text, 8), "other octets: %s", cf_hex(wc.imm, 8));
		CF_CHECK(cf, wc.solicited == i && !wc.invalidated, "solicited: %d", wc.solicited);
	}
	put_imm(cf, IMM, 8); /* each took one receive */
	cf_expect_term(cf, 0x1202, CF_DDP);
}

static void imm_length(struct cf *cf, size_t len)
{
	rfc7306_on(cf, 1);
	put_imm(cf, IMM, len);
	cf_expect_term(cf, 0x02ff, CF_DDP);
	CF_CHECK(cf, cf_app_wc(cf).status, "it was delivered");
}

CF_CALL(imm_of_7, imm_length(cf, 7));
CF_CALL(imm_of_9, imm_length(cf, 9));

#define CASE(name, app, run, ids, rule)                                                            \
	{                                                                                          \
		"rfc7306-" name, ids, rule, CF_BOTH, CF_RESPONDER, app, run                        \
	}
#define BOTH(name, run, ids, rule) CF_ROLES("rfc7306-", name, true, run, ids, rule)

const struct cf_case cf_cases_7306[] = {
	CASE("off-imm", false, imm_off, "7306-1.1-1 7306-8.2-2", "off, Immediate Data is 0/2/06"),
	CASE("off-imm-se", false, imm_se_off, "7306-1.1-1 7306-8.2-2",
	     "off, Immediate Data with SE is 0/2/06"),
	CASE("off-atomic", false, atomic_off, "7306-1.1-1 7306-8.2-2",
	     "off, an Atomic Request is 0/2/06"),
	CASE("off-response", false, response_off, "7306-1.1-1 7306-8.2-2",
	     "off, an Atomic Response is 0/2/06"),
	CASE("off-queue-3", false, queue_3_off, "7306-1.1-1",
	     "off, queue 3 does not exist: 1/2/01"),
	BOTH("fetch-add", fetch_add,
	     "7306-4.1-1 7306-4.1-2 7306-5-3 7306-5-5 7306-5.2-2 7306-5.2.1-1 7306-5.2.1-7 "
	     "7306-5.2.1-8 7306-5.2.1-14 7306-5.2.1-15 7306-5.2.2-2 7306-5.2.2-3 7306-5.2.2-4 "
	     "7306-5.2.2-10",
	     "FetchAdd changes memory and returns what was there, on queue 3"),
	BOTH("cmp-swap", cmp_swap, "7306-5-3 7306-5.1.2-1 7306-5.2.1-1",
	     "CmpSwap swaps what matches, both masked, and returns what was there"),
	CASE("order", true, check_queue1_order,
	     "7306-5.2.1-6 7306-5.2.1-13 7306-5.2.2-9 7306-5.4-9 7306-5.4-10",
	     "Reads and atomics are carried out and answered in one order"),
	CASE("unaligned-add", true, unaligned_add,
	     "7306-5.1.1-2 7306-5.1.1-3 7306-5.1.1-4 7306-5.1.1-5 7306-8.1-2 7306-8.2-4 "
	     "7306-8.2-5",
	     "FetchAdd at an address that is no multiple of 8 is 0/2/07"),
	CASE("unaligned-swap", true, unaligned_swap,
	     "7306-5.1.2-3 7306-5.1.2-4 7306-5.1.2-5 7306-5.1.2-6 7306-8.2-4 7306-8.2-5",
	     "CmpSwap at an address that is no multiple of 8 is 0/2/07"),
	CASE("opcode-1", true, aop_1, "7306-5.2.1-9", "AOpCode 1 is 0/2/06"),
	CASE("opcode-15", true, aop_15, "7306-5.2.1-9", "AOpCode 15 is 0/2/06"),
	CASE("request-short", true, request_short, "7306-8.2-1",
	     "an Atomic Request of 51 octets is 0/2/FF"),
	CASE("request-long", true, request_long, "7306-8.2-1",
	     "an Atomic Request of 53 octets is 0/2/FF"),
	CASE("no-write-right", true, no_write_right, "7306-8.2-1",
	     "an atomic needs the right to write: 0/1/02"),
	CASE("no-read-right", true, no_read_right, "7306-8.2-1",
	     "an atomic needs the right to read: 0/1/02"),
	CASE("past-end", true, past_end, "7306-8.2-1", "an atomic behind the region is 0/1/01"),
	CASE("imm-version", true, imm_version, "7306-8.2-3", "Immediate Data with RV 2 is 0/2/05"),
	CASE("atomic-version", true, atomic_version, "7306-8.2-3",
	     "an Atomic Request with RV 0 is 0/2/05"),
	CASE("imm-on-queue-1", true, imm_on_queue_1, "7306-8.2-2",
	     "Immediate Data on queue 1 is 0/2/06"),
	CASE("atomic-on-queue-0", true, atomic_on_queue_0, "7306-8.2-2",
	     "an Atomic Request on queue 0 is 0/2/06"),
	CASE("imm-no-buffer", true, imm_no_buffer, "7306-6.3-3",
	     "Immediate Data without a posted receive is 1/2/02"),
	CASE("response-unasked", true, response_unasked, "7306-5.2.2-6",
	     "an Atomic Response that nobody asked for is 1/2/02"),
	BOTH("imm", imm_delivered, "7306-4.1-2 7306-6.3-3 7306-6.3-4 7306-6.4-1",
	     "Immediate Data takes a receive and is delivered like a Send"),
	CASE("imm-of-7", true, imm_of_7, "7306-6.3-8", "Immediate Data of 7 octets is 0/2/FF"),
	CASE("imm-of-9", true, imm_of_9, "7306-6.3-8", "Immediate Data of 9 octets is 0/2/FF"),
	{ 0 },
};
