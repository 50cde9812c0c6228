/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5041: untagged messages: queues, message numbers, offsets, Delivery. */
#include "conform/peer/peer.h"
#include <string.h>

static const char text[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";

static void open_with_receives(struct cf *cf, unsigned receives, size_t len)
{
	if (receives)
		cf_app_recv(cf, receives, len);
	cf_session(cf, NULL);
}

static void put_send(struct cf *cf, uint8_t ctl, uint32_t msn, uint32_t mo, size_t len)
{
	cf_untagged(cf, ctl, CF_SEND, 0, 0, msn, mo, text, len);
	cf_send(cf);
}

/* The next completion is that of a receive. */
static struct ddps_wc expect_app_recv(struct cf *cf, uint32_t len)
{
	struct ddps_wc wc = cf_app_wc(cf);

	CF_CHECK(cf, wc.op == DDPS_OP_RECV && !wc.status, "completion: %s of a %s",
		 ddps_wc_status_name(wc.status), ddps_op_name(wc.op));
	CF_CHECK(cf, wc.len == len, "a message of %u octets instead of %u", wc.len, len);
	return wc;
}

/* ---- untagged: queues and message numbers ---- */

static void queue_number(struct cf *cf, uint32_t qn)
{
	cf_session(cf, NULL);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, qn, 1, 0, text, 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1201, CF_DDP);
}

CF_CALL(check_queue_4, queue_number(cf, 4));
CF_CALL(queue_max, queue_number(cf, UINT32_MAX));

/* "No buffer" and "out of range" overlap in the RFC: both from others, one from us. */
static void expect_msn(struct cf *cf)
{
	static const uint16_t either[] = { 0x1203, 0x1202, 0 };

	if (cf->self)
		cf_expect_term(cf, 0x1203, CF_DDP);
	else
		cf_expect_term_of(cf, either, CF_DDP);
}

/* A Read Request after one good one. */
static void read_msn(struct cf *cf, uint32_t msn)
{
	cf_session(cf, NULL);
	cf_ping(cf);
	cf_read_req(cf, msn, 1, 1, 0, 0, 0);
	cf_send(cf);
	expect_msn(cf);
}

static void msn_zero(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_read_req(cf, 0, 1, 1, 0, 0, 0);
	cf_send(cf);
	expect_msn(cf);
}

CF_CALL(msn_repeated, read_msn(cf, 1));
CF_CALL(msn_gap, read_msn(cf, 3));
CF_CALL(msn_far, read_msn(cf, 0x80000002));

static void send_msn_gap(struct cf *cf)
{
	open_with_receives(cf, 4, 64);
	put_send(cf, CF_UNTAGGED_L, 2, 0, 8);
	expect_msn(cf);
}

static void send_msn_repeated(struct cf *cf)
{
	open_with_receives(cf, 4, 64);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 8);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 8);
	expect_msn(cf);
	expect_app_recv(cf, 8); /* once */
	CF_CHECK(cf, cf_app_wc(cf).status == DDPS_WC_FLUSHED, "the message was delivered twice");
}

static void msn_changes_in_message(struct cf *cf)
{
	open_with_receives(cf, 4, 64);
	put_send(cf, CF_UNTAGGED, 1, 0, 8);
	put_send(cf, CF_UNTAGGED_L, 2, 8, 8);
	expect_msn(cf);
}

/* Each queue counts for itself. */
static void msn_of_queues(struct cf *cf)
{
	open_with_receives(cf, 2, 64);
	cf_ping(cf);
	cf_ping(cf);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 8);
	cf_ping(cf);
	put_send(cf, CF_UNTAGGED_L, 2, 0, 8);
	cf_ping(cf);
	expect_app_recv(cf, 8);
	expect_app_recv(cf, 8);
}

static void no_buffer(struct cf *cf)
{
	cf_session(cf, NULL);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 8);
	cf_expect_term(cf, 0x1202, CF_DDP);
}

static void no_second_buffer(struct cf *cf)
{
	open_with_receives(cf, 1, 64);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 8);
	put_send(cf, CF_UNTAGGED_L, 2, 0, 0);
	cf_expect_term(cf, 0x1202, CF_DDP);
	expect_app_recv(cf, 8);
}

/* ---- untagged: offsets and lengths ---- */

/* A first segment of 8 octets into a buffer of 32, then one at @mo. */
static void second_at(struct cf *cf, uint32_t mo, size_t len, uint16_t code)
{
	open_with_receives(cf, 1, 32);
	put_send(cf, CF_UNTAGGED, 1, 0, 8);
	put_send(cf, CF_UNTAGGED_L, 1, mo, len);
	if (code) {
		cf_expect_term(cf, code, CF_DDP);
		CF_CHECK(cf, cf_app_wc(cf).status, "the message was delivered");
	} else {
		expect_app_recv(cf, (uint32_t)(8 + len));
	}
}

CF_CALL(mo_fills_buffer, second_at(cf, 8, 24, 0));
CF_CALL(mo_too_long, second_at(cf, 8, 25, 0x1205));
CF_CALL(mo_beyond, second_at(cf, 33, 1, 0x1204));
CF_CALL(mo_max, second_at(cf, UINT32_MAX - 7, 16, 0x1204));
CF_CALL(mo_hole, second_at(cf, 9, 8, 0x1204));
CF_CALL(mo_again, second_at(cf, 0, 16, 0x1204));

static void mo_first(struct cf *cf)
{
	open_with_receives(cf, 1, 32);
	put_send(cf, CF_UNTAGGED_L, 1, 8, 8);
	cf_expect_term(cf, 0x1204, CF_DDP);
}

static void send_too_long(struct cf *cf)
{
	open_with_receives(cf, 1, 31);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 32);
	cf_expect_term(cf, 0x1205, CF_DDP);
}

static void send_partly_fills(struct cf *cf)
{
	struct ddps_wc wc;

	open_with_receives(cf, 1, 64);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 32);
	wc = expect_app_recv(cf, 32);
	CF_CHECK(cf, !memcmp(cf_app_recv_data(cf, &wc), text, 32), "not the octets sent");
}

/* ---- delivery ---- */

static void delivered_in_order(struct cf *cf)
{
	open_with_receives(cf, 3, 64);
	for (uint32_t i = 0; i < 3; i++)
		put_send(cf, CF_UNTAGGED_L, i + 1, 0, 3 - i);
	for (uint32_t i = 0; i < 3; i++)
		expect_app_recv(cf, 3 - i);
	cf_ping(cf);
	cf_app_no_wc(cf);
}

/* Not before its last segment, and with the length of all. */
static void delivered_at_last(struct cf *cf)
{
	struct ddps_wc wc;

	open_with_receives(cf, 1, 64);
	for (uint32_t i = 0; i < 4; i++) {
		cf_untagged(cf, i == 3 ? CF_UNTAGGED_L : CF_UNTAGGED, CF_SEND, 0, 0, 1, 8 * i,
			    text + 8 * i, 8);
		cf_send(cf);
	}
	wc = expect_app_recv(cf, 32);
	CF_CHECK(cf, !memcmp(cf_app_recv_data(cf, &wc), text, 32), "not the octets sent");
}

static void delivered_after_write(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);

	open_with_receives(cf, 1, 64);
	cf_tagged(cf, CF_TAGGED, CF_WRITE, m.stag, m.to, text, 16);
	cf_send(cf);
	put_send(cf, CF_UNTAGGED_L, 1, 0, 8);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to + 16, text + 16, 16);
	cf_send(cf);
	expect_app_recv(cf, 8);
	CF_CHECK(cf, !memcmp(m.mem, text, 32), "a Send overtook the Write before it");
}

#define CASE(name, app, run, ids, rule)                                                            \
	{                                                                                          \
		name, ids, rule, CF_BOTH, CF_RESPONDER, app, run                                   \
	}

const struct cf_case cf_cases_ddp_queue[] = {
	CF_ROLES("ddp-", "queue-4", false, check_queue_4, "5041-7.1-1 5041-7.1-2 5041-7.2-1",
		 "a segment for queue 4 is 1/2/01"),
	CASE("ddp-queue-max", false, queue_max, "5041-7.1-2",
	     "a segment for queue 2^32 - 1 is 1/2/01"),
	CASE("ddp-msn-zero", false, msn_zero, "5041-7.1-10",
	     "the first message with MSN 0 is 1/2/03"),
	CF_ROLES("ddp-", "msn-repeated", false, msn_repeated, "5041-7.1-10 5041-7.2-1 5041-5.3-6",
		 "an MSN used before is 1/2/03"),
	CF_ROLES("ddp-", "msn-gap", false, msn_gap, "5041-7.1-10", "a gap in the MSNs is 1/2/03"),
	CASE("ddp-msn-far", false, msn_far, "5041-7.1-10",
	     "an MSN half the number space away is 1/2/03"),
	CASE("ddp-send-msn-gap", true, send_msn_gap, "5041-7.1-10 5040-7.2-1",
	     "a gap in the MSNs of Sends is 1/2/03"),
	CASE("ddp-send-msn-repeated", true, send_msn_repeated, "5041-5.3-6 5041-7.1-10",
	     "a Send sent twice is delivered once, then 1/2/03"),
	CASE("ddp-msn-changes-in-message", true, msn_changes_in_message, "5041-7.1-10",
	     "another MSN inside one message is 1/2/03"),
	CASE("ddp-msn-of-queues", true, msn_of_queues, "5041-7.1-10",
	     "each queue has message numbers of its own"),
	CF_ROLES("ddp-", "send-no-buffer", true, no_buffer,
		 "5041-7.1-3 5041-7.1-7 5041-7.2-1 5040-5.3-9 5040-3.2-3",
		 "a Send without a posted receive is 1/2/02"),
	CASE("ddp-send-no-second-buffer", true, no_second_buffer, "5041-7.1-3 5040-5.3-3",
	     "each Send takes one receive, a zero-length one too"),
	CASE("ddp-mo-fills-buffer", true, mo_fills_buffer, "5041-7.1-9 5041-5.4-3",
	     "a message may fill its buffer to the last octet"),
	CF_ROLES("ddp-", "mo-too-long", true, mo_too_long, "5041-7.1-9 5041-7.2-1 5041-1.2-1",
		 "a later segment one octet beyond the buffer is 1/2/05"),
	CASE("ddp-mo-beyond", true, mo_beyond, "5041-7.1-8 5041-7.2-1",
	     "an MO outside the buffer is 1/2/04"),
	CASE("ddp-mo-max", true, mo_max, "5041-7.1-8",
	     "an MO near 2^32 is 1/2/04: no sum of 32 bits"),
	CF_ROLES("ddp-", "mo-hole", true, mo_hole, "5041-5.4-2", "octets left out are 1/2/04"),
	CASE("ddp-mo-again", true, mo_again, "5041-5.4-2",
	     "octets sent again in an open message are 1/2/04"),
	CASE("ddp-mo-first", true, mo_first, "5041-1.2-2",
	     "an untagged message that does not start at offset 0 is 1/2/04"),
	CF_ROLES("ddp-", "send-too-long", true, send_too_long, "5041-7.1-9 5041-1.2-1 5040-5.3-6",
		 "a Send one octet longer than the receive is 1/2/05"),
	CASE("ddp-send-partly-fills", true, send_partly_fills,
	     "5041-1.2-1 5041-5.4-3 5041-4.1-2 5040-5.3-5 5040-5.3-4",
	     "a shorter Send is delivered with its length"),
	CF_ROLES("ddp-", "delivered-in-order", true, delivered_in_order,
		 "5041-5.3-1 5041-5.3-7 5041-5.4-2 5041-4.1-8 5040-5.3-7 5040-5.5-9",
		 "Sends are delivered once each, in the order sent"),
	CF_ROLES("ddp-", "delivered-at-last", true, delivered_at_last,
		 "5041-5.4-2 5041-5.4-3 5041-5.2-5", "a Send of four segments is delivered whole"),
	CASE("ddp-delivered-after-write", true, delivered_after_write,
	     "5041-4.1-7 5041-5.3-7 5041-5.4-2",
	     "a Send is not delivered before the Write begun earlier is placed"),
	{ 0 },
};
