/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5040: errors of the peer and their codes, and what is no error. */
#include "conform/peer/peer.h"
#include <string.h>

#define FILL 7 /* of memory from cf_app_mr */

static const char text[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";

/* ---- version and opcode ---- */

static void bad_octet(struct cf *cf, bool tagged, uint8_t op, uint32_t qn, uint16_t code)
{
	cf_session(cf, NULL);
	if (tagged)
		cf_tagged(cf, CF_TAGGED_L, op, 0, 0, NULL, 0);
	else
		cf_untagged(cf, CF_UNTAGGED_L, op, 0, qn, 1, 0, text, 28);
	cf_send(cf);
	cf_expect_term(cf, code, code == 0x0205 ? CF_ANY : CF_DDP);
}

#define OCTET(name, tagged, op, qn, code)                                                          \
	static void name(struct cf *cf)                                                            \
	{                                                                                          \
		bad_octet(cf, tagged, op, qn, code);                                               \
	}

OCTET(write_rv_0, true, 0x00, 0, 0x0205)
OCTET(write_rv_2, true, 0x80, 0, 0x0205)
OCTET(read_rv_0, false, 0x01, 1, 0x0205)
OCTET(read_rv_3, false, 0xc1, 1, 0x0205)
OCTET(send_rv_2, false, 0x83, 0, 0x0205)
OCTET(opcode_12, false, 0x4c, 0, 0x0206)
OCTET(opcode_13, false, 0x4d, 0, 0x0206)
OCTET(opcode_14, false, 0x4e, 0, 0x0206)
OCTET(opcode_15, false, 0x4f, 0, 0x0206)
OCTET(opcode_15_tagged, true, 0x4f, 0, 0x0206)
OCTET(write_untagged, false, CF_WRITE, 0, 0x0206)
OCTET(response_untagged, false, CF_READ_RESP, 0, 0x0206)
OCTET(read_tagged, true, CF_READ_REQ, 0, 0x0206)
OCTET(send_tagged, true, CF_SEND, 0, 0x0206)
OCTET(send_inv_tagged, true, CF_SEND_INV, 0, 0x0206)
OCTET(send_se_tagged, true, CF_SEND_SE, 0, 0x0206)
OCTET(send_se_inv_tagged, true, CF_SEND_SE_INV, 0, 0x0206)
OCTET(terminate_tagged, true, CF_TERM, 0, 0x0206)
OCTET(read_on_queue_0, false, CF_READ_REQ, 0, 0x0206)
OCTET(read_on_queue_2, false, CF_READ_REQ, 2, 0x0206)
OCTET(send_on_queue_1, false, CF_SEND, 1, 0x0206)
OCTET(send_on_queue_2, false, CF_SEND, 2, 0x0206)
OCTET(terminate_on_queue_0, false, CF_TERM, 0, 0x0206)
OCTET(response_unasked, true, CF_READ_RESP, 0, 0x0206)

static void reserved_bits(struct cf *cf)
{
	size_t len;

	cf_session(cf, NULL);
	cf_read_req(cf, cf_msn(cf, 1), 5, 6, 0, 0, 0);
	cf->out.b[0] |= 0x3c;
	cf->out.b[1] |= 0x30;
	cf_put32(cf->out.b + 2, 0xdeadbeef); /* Invalidate STag: means nothing here */
	cf_send(cf);
	cf_recv_op(cf, CF_READ_RESP);
	cf_in_payload(cf, &len);
	CF_CHECK(cf, cf_in_op(cf) == CF_READ_RESP && !len, "no answer to a Read, but %s",
		 cf_hex(cf->in.b, cf->in.len));
}

/* ---- Read Requests ---- */

static void read_zero(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_ping(cf); /* source STag and TO make no sense, the sink's come back */
	cf_ping(cf);
}

static void read_length(struct cf *cf, size_t len, uint16_t code)
{
	uint8_t h[64] = { 0 };

	cf_session(cf, NULL);
	cf_untagged(cf, CF_UNTAGGED_L, CF_READ_REQ, 0, 1, 1, 0, h, len);
	cf_send(cf);
	if (cf->self)
		cf_expect_term(cf, code, CF_DDP);
	else
		cf_expect_dead(cf); /* the RFC names no code */
}

CF_CALL(read_of_0, read_length(cf, 0, 0x02ff));
CF_CALL(read_of_27, read_length(cf, 27, 0x02ff));
CF_CALL(read_of_29, read_length(cf, 29, 0x1205));

static void read_offset(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_read_req(cf, 1, 1, 1, 0, 0, 0);
	cf_put32(cf->out.b + 14, 1);
	cf_send(cf);
	cf_expect_term(cf, 0x1204, CF_DDP);
}

static void read_unknown_stag(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_read_req(cf, 1, 0xa501, 0x7f0000001000, 8, 0x00000001, 0x10000);
	cf_send(cf);
	cf_expect_term(cf, 0x0100, CF_RDMAP);
}

/* @size octets at @off octets from the start of a region of 64. */
static void read_at(struct cf *cf, unsigned access, int64_t off, uint32_t size, uint16_t code)
{
	struct cf_mr m = cf_app_mr(cf, 64, access);
	const uint8_t *p;
	size_t len;

	cf_session(cf, NULL);
	cf_read_req(cf, cf_msn(cf, 1), 0xa501, UINT64_MAX - 9, size, m.stag, m.to + (uint64_t)off);
	cf_send(cf);
	if (code) {
		cf_expect_term(cf, code, CF_RDMAP);
		return;
	}
	cf_recv(cf);
	p = cf_in_payload(cf, &len);
	CF_CHECK(cf, cf_in_tagged(cf) && cf_in_op(cf) == CF_READ_RESP && cf_in_last(cf),
		 "no Read Response: %s", cf_hex(cf->in.b, cf->in.len));
	CF_CHECK(cf, cf_in_stag(cf) == 0xa501 && cf_in_to(cf) == UINT64_MAX - 9,
		 "sink STag or TO not copied: %s", cf_hex(cf->in.b, 14));
	CF_CHECK(cf, len == size && !memcmp(p, m.mem + off, len), "not the octets asked for");
	cf_ping(cf);
	cf_app_no_wc(cf); /* the responder's application sees nothing of it */
}

#define READ(name, access, off, size, code)                                                        \
	static void name(struct cf *cf)                                                            \
	{                                                                                          \
		read_at(cf, access, off, size, code);                                              \
	}

READ(read_last_octets, DDPS_REMOTE_READ, 56, 8, 0)
READ(read_past_end, DDPS_REMOTE_READ, 57, 8, 0x0101)
READ(read_below_base, DDPS_REMOTE_READ, -1, 2, 0x0101)
READ(read_max_size, DDPS_REMOTE_READ, 0, UINT32_MAX, 0x0101)
READ(read_without_right, DDPS_REMOTE_WRITE | DDPS_LOCAL_WRITE, 0, 8, 0x0102)
READ(read_wrap, DDPS_REMOTE_READ | DDPS_ZERO_BASED, -4, 8, 0x0104)
READ(read_wrap_to_zero, DDPS_REMOTE_READ | DDPS_ZERO_BASED, -8, 8, 0x0104)
READ(read_before_wrap, DDPS_REMOTE_READ | DDPS_ZERO_BASED, -9, 8, 0x0101)

/* A region that this session must not reach: another domain's, or another endpoint's. */
static struct cf_mr foreign(struct cf *cf, bool domain)
{
	struct ddps_pd *own = cf->app.pd;
	struct cf_mr m;
	struct ddps_ep *other;

	if (domain) {
		CF_CHECK(cf, !ddps_pd_new(cf->app.ctx, &cf->app.pd), "application: no domain");
		m = cf_app_mr(cf, 64, DDPS_REMOTE_READ | DDPS_REMOTE_WRITE);
		cf->app.pd = own;
		return m;
	}
	m = cf_app_mr(cf, 64, 0);
	CF_CHECK(cf, !ddps_ep_new(cf->app.ctx, &cf->app.attr, &other), "application: endpoint");
	CF_CHECK(cf,
		 !ddps_mr_reg(own, m.mem, m.len, DDPS_REMOTE_READ | DDPS_REMOTE_WRITE, other,
			      &m.mr),
		 "application: a region of one endpoint");
	m.stag = ddps_mr_stag(m.mr);
	m.to = ddps_mr_to(m.mr);
	return m;
}

static void read_foreign(struct cf *cf, bool domain)
{
	struct cf_mr m = foreign(cf, domain);

	cf_session(cf, NULL);
	cf_read_req(cf, 1, 1, 1, 8, m.stag, m.to);
	cf_send(cf);
	cf_expect_term(cf, 0x0103, CF_RDMAP);
}

CF_CALL(read_other_domain, read_foreign(cf, true));
CF_CALL(read_other_stream, read_foreign(cf, false));

static void read_no_ird(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 16 };

	cf->app.param.ird = 0;
	cf->app.param.ird_hard = true;
	cf_session(cf, &o);
	cf_read_req(cf, 1, 1, 1, 0, 0, 0);
	cf_send(cf);
	cf_expect_term(cf, 0x1202, CF_DDP);
}

/* The first error is reported, whatever follows. */
static void first_error(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_SEND, 0, 0, NULL, 0);
	cf_send(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 1, text, 8);
	cf_send(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_SEND, 0, 0, NULL, 0);
	cf_expect_term(cf, 0x0206, CF_DDP);
}

/* ---- Invalidate ---- */

static void put_inv(struct cf *cf, uint8_t op, uint32_t stag)
{
	cf_untagged(cf, CF_UNTAGGED_L, op, stag, 0, cf_msn(cf, 0), 0, text, 8);
	cf_send(cf);
}

static void invalidates(struct cf *cf, uint8_t op)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);
	struct ddps_wc wc;

	cf_app_recv(cf, 1, 64);
	cf_session(cf, NULL);
	put_inv(cf, op, m.stag);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, !wc.status && wc.invalidated && wc.inv_stag == m.stag,
		 "STag %08x is not reported to the application", m.stag);
	CF_CHECK(cf, wc.solicited == (op == CF_SEND_SE_INV), "solicited: %d", wc.solicited);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to, text, 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
}

CF_CALL(inv_works, invalidates(cf, CF_SEND_INV));
CF_CALL(inv_se_works, invalidates(cf, CF_SEND_SE_INV));

static void inv_refused(struct cf *cf, uint8_t op, uint32_t stag)
{
	cf_app_recv(cf, 1, 64);
	cf_session(cf, NULL);
	put_inv(cf, op, stag);
	cf_expect_term(cf, 0x0109, CF_DDP);
	CF_CHECK(cf, cf_app_wc(cf).status, "the Send was delivered");
}

CF_CALL(inv_unknown, inv_refused(cf, CF_SEND_INV, 1));
CF_CALL(inv_se_unknown, inv_refused(cf, CF_SEND_SE_INV, 0));
CF_CALL(inv_other_domain, inv_refused(cf, CF_SEND_INV, foreign(cf, true).stag));
CF_CALL(inv_other_stream, inv_refused(cf, CF_SEND_INV, foreign(cf, false).stag));

static void inv_twice(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);

	cf_app_recv(cf, 2, 64);
	cf_session(cf, NULL);
	put_inv(cf, CF_SEND_INV, m.stag);
	put_inv(cf, CF_SEND_INV, m.stag);
	cf_expect_term(cf, 0x0109, CF_DDP);
}

/* Two endpoints of the domain could use it. */
static void inv_shared(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);
	struct ddps_ep *other;

	CF_CHECK(cf, !ddps_ep_new(cf->app.ctx, &cf->app.attr, &other), "application: endpoint");
	inv_refused(cf, CF_SEND_INV, m.stag);
}

static void plain_send_ignores_stag(struct cf *cf)
{
	struct ddps_wc wc;

	cf_app_recv(cf, 2, 64);
	cf_session(cf, NULL);
	put_inv(cf, CF_SEND | 0x30, 0xdeadbeef);
	put_inv(cf, CF_SEND_SE | 0x30, 0xdeadbeef);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, !wc.status && !wc.invalidated && !wc.solicited, "Send: %d %d", wc.status,
		 wc.solicited);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, !wc.status && !wc.invalidated && wc.solicited, "Send with SE: %d %d",
		 wc.status, wc.solicited);
}

#define CASE(name, app, run, ids, rule)                                                            \
	{                                                                                          \
		name, ids, rule, CF_BOTH, CF_RESPONDER, app, run                                   \
	}

const struct cf_case cf_cases_rdmap[] = {
	CF_ROLES("rdmap-", "write-version-0", false, write_rv_0, "5040-7.2-3",
		 "an RDMA Write with RV 0 is 0/2/05"),
	CASE("rdmap-write-version-2", false, write_rv_2, "5040-7.2-3",
	     "an RDMA Write with RV 2 is 0/2/05"),
	CASE("rdmap-read-version-0", false, read_rv_0, "5040-7.2-8",
	     "a Read Request with RV 0 is 0/2/05"),
	CASE("rdmap-read-version-3", false, read_rv_3, "5040-7.2-8",
	     "a Read Request with RV 3 is 0/2/05"),
	CASE("rdmap-send-version-2", false, send_rv_2, "5040-7.2-3", "a Send with RV 2 is 0/2/05"),
	CF_ROLES("rdmap-", "opcode-12", false, opcode_12, "5040-7.2-2", "opcode 12 is 0/2/06"),
	CASE("rdmap-opcode-13", false, opcode_13, "5040-7.2-2", "opcode 13 is 0/2/06"),
	CASE("rdmap-opcode-14", false, opcode_14, "5040-7.2-2", "opcode 14 is 0/2/06"),
	CASE("rdmap-opcode-15", false, opcode_15, "5040-7.2-2 5040-7.1-3", "opcode 15 is 0/2/06"),
	CASE("rdmap-opcode-15-tagged", false, opcode_15_tagged, "5040-7.2-2 5040-7.1-3",
	     "opcode 15 in a tagged segment is 0/2/06"),
	CASE("rdmap-write-untagged", false, write_untagged, "5040-7.2-2",
	     "an untagged RDMA Write is 0/2/06"),
	CASE("rdmap-response-untagged", false, response_untagged, "5040-7.2-2",
	     "an untagged Read Response is 0/2/06"),
	CF_ROLES("rdmap-", "read-tagged", false, read_tagged, "5040-7.2-7",
		 "a tagged Read Request is 0/2/06"),
	CASE("rdmap-send-tagged", false, send_tagged, "5040-7.2-2", "a tagged Send is 0/2/06"),
	CASE("rdmap-send-inv-tagged", false, send_inv_tagged, "5040-7.2-2",
	     "a tagged Send with Invalidate is 0/2/06"),
	CASE("rdmap-send-se-tagged", false, send_se_tagged, "5040-7.2-2",
	     "a tagged Send with SE is 0/2/06"),
	CASE("rdmap-send-se-inv-tagged", false, send_se_inv_tagged, "5040-7.2-2",
	     "a tagged Send with SE and Invalidate is 0/2/06"),
	CASE("rdmap-terminate-tagged", false, terminate_tagged, "5040-7.2-2",
	     "a tagged Terminate is 0/2/06"),
	CASE("rdmap-read-on-queue-0", false, read_on_queue_0, "5040-7.2-7 5040-3.1-2",
	     "a Read Request on queue 0 is 0/2/06"),
	CASE("rdmap-read-on-queue-2", false, read_on_queue_2, "5040-7.2-7 5040-3.1-2",
	     "a Read Request on queue 2 is 0/2/06"),
	CASE("rdmap-send-on-queue-1", false, send_on_queue_1, "5040-7.2-2 5040-3.1-2",
	     "a Send on queue 1 is 0/2/06"),
	CASE("rdmap-send-on-queue-2", false, send_on_queue_2, "5040-7.2-2 5040-3.1-2",
	     "a Send on queue 2 is 0/2/06"),
	CASE("rdmap-terminate-on-queue-0", false, terminate_on_queue_0, "5040-7.2-2 5040-3.1-2",
	     "a Terminate on queue 0 is 0/2/06"),
	CF_ROLES("rdmap-", "response-unasked", false, response_unasked, "5040-5.2.2-6 5040-7.2-2",
		 "a Read Response that nobody asked for is 0/2/06"),
	CF_ROLES("rdmap-", "reserved-bits", false, reserved_bits,
		 "5040-4.1-10 5040-4.1-12 5041-4.1-10",
		 "reserved bits and an Invalidate STag of a Read Request are ignored"),
	CF_ROLES("rdmap-", "read-zero", false, read_zero,
		 "5040-5.2.1-17 5040-5.2.1-18 5040-4.4-2 5042-6.3.5-2",
		 "a zero-length Read with senseless source is answered"),
	CASE("rdmap-read-of-0-octets", false, read_of_0, "5040-5.2.1-6 5040-7.2-6",
	     "a Read Request without a header ends the stream"),
	CF_ROLES("rdmap-", "read-of-27-octets", false, read_of_27, "5040-5.2.1-6 5040-7.2-6",
		 "a Read Request one octet short ends the stream"),
	CASE("rdmap-read-of-29-octets", false, read_of_29, "5040-5.2.1-6 5040-7.2-6",
	     "a Read Request one octet long ends the stream"),
	CASE("rdmap-read-offset", false, read_offset, "5040-7.2-6",
	     "a Read Request that starts at MO 1 is 1/2/04"),
	CF_ROLES("rdmap-", "read-unknown-stag", false, read_unknown_stag,
		 "5040-7.2-9 5040-5.2.1-16 5040-7.1-4 5040-4.8-4 5040-4.8-5 5040-4.8-6 5040-4.8-13 "
		 "5040-4.8-14 5040-4.8-15",
		 "a Read of an unknown STag is 0/1/00 and comes back whole"),
	CF_ROLES("rdmap-", "read-last-octets", true, read_last_octets,
		 "5040-5.2.1-5 5040-5.2.1-14 5040-4.4-2 5040-4.4-3 5040-5.2.2-2",
		 "the last octets of a region can be read; sink STag and TO are copied"),
	CF_ROLES("rdmap-", "read-past-end", true, read_past_end, "5040-7.2-12",
		 "a Read one octet past the end is 0/1/01"),
	CASE("rdmap-read-below-base", true, read_below_base, "5040-7.2-11",
	     "a Read that begins before the region is 0/1/01"),
	CASE("rdmap-read-max-size", true, read_max_size, "5040-7.2-12",
	     "a Read of 2^32 - 1 octets from a small region is 0/1/01"),
	CASE("rdmap-read-without-right", true, read_without_right,
	     "5040-3.2-11 5040-7.1-4 5041-8.3.1-6 5040-8.1.1-5",
	     "a Read without the right is 0/1/02"),
	CASE("rdmap-read-wrap", true, read_wrap, "5040-7.2-13",
	     "source TO + size beyond 2^64 is 0/1/04"),
	CASE("rdmap-read-wrap-to-zero", true, read_wrap_to_zero, "5040-7.2-13",
	     "source TO + size of just 2^64 is 0/1/04"),
	CASE("rdmap-read-before-wrap", true, read_before_wrap, "5040-7.2-11",
	     "source TO + size of 2^64 - 1 does not wrap: 0/1/01"),
	CASE("rdmap-read-other-domain", true, read_other_domain,
	     "5040-7.2-10 5040-8.1.1-1 5041-8.3.1-2",
	     "a Read of another protection domain is 0/1/03"),
	CASE("rdmap-read-other-stream", true, read_other_stream,
	     "5040-7.2-10 5040-8.1.1-2 5041-8.3.1-3",
	     "a Read of a region bound to another stream is 0/1/03"),
	CASE("rdmap-read-no-ird", true, read_no_ird, "5040-6.1-8 5040-8.1.1-12",
	     "with an IRD of 0 any Read is 1/2/02"),
	CASE("rdmap-first-error", false, first_error, "5040-7.1-5 5041-7.1-20",
	     "of several errors the first one is reported"),
	CASE("rdmap-invalidate", true, inv_works, "5040-5.3-17 5040-3.2-2",
	     "Send with Invalidate disables the STag before it is delivered"),
	CASE("rdmap-invalidate-se", true, inv_se_works, "5040-5.3-17 5040-3.2-2",
	     "Send with SE and Invalidate does both"),
	CASE("rdmap-invalidate-unknown", true, inv_unknown, "5040-7.2-4 5040-5.3-17",
	     "an unknown STag to invalidate is 0/1/09"),
	CASE("rdmap-invalidate-se-unknown", true, inv_se_unknown, "5040-7.2-4 5040-5.3-17",
	     "STag 0 to invalidate is 0/1/09"),
	CASE("rdmap-invalidate-other-domain", true, inv_other_domain,
	     "5040-7.2-5 5040-5.3-16 5040-5.3-17",
	     "an STag of another domain to invalidate is 0/1/09"),
	CASE("rdmap-invalidate-other-stream", true, inv_other_stream,
	     "5040-7.2-5 5040-5.3-16 5040-5.3-17",
	     "an STag of another stream to invalidate is 0/1/09"),
	CASE("rdmap-invalidate-twice", true, inv_twice, "5040-7.2-4",
	     "an STag cannot be invalidated twice: 0/1/09"),
	CASE("rdmap-invalidate-shared", true, inv_shared, "5040-8.1.1-7",
	     "an STag that several streams share cannot be invalidated: 0/1/09"),
	CASE("rdmap-send-ignores-stag", true, plain_send_ignores_stag,
	     "5040-4.1-10 5040-4.1-12 5040-5.3-8 5040-3.1-7",
	     "Send and Send with SE ignore Invalidate STag and reserved bits"),
	{ 0 },
};
