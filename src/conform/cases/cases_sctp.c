/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5043: what a responder makes of sessions, legal and not; no application is needed. */
#include "conform/cases/cases_sctp.h"
#include "conform/peer/inside.h"
#include <string.h>

#define NONE UINT16_MAX

static const uint8_t word[] = { 0, 16, 0, 16 };

/* ---- legal sequences ---- */

static void check_session_accepted(struct cf *cf)
{
	cf_open(cf);
	cf_session_on(cf, 0);
	cf_ping(cf);
}

static void any_stream(struct cf *cf)
{
	cf_open(cf);
	cf_session_on(cf, 7);
	cf_ping(cf);
	cf_session_on(cf, 0);
	cf_ping(cf);
}

static void plain_accepted(struct cf *cf)
{
	const struct cf_opts o = { .plain = true, .stream = 2 };

	cf_session(cf, &o);
	CF_CHECK(cf, cf->ctrl.code == CF_ACCEPT, "function code %u", cf->ctrl.code);
	cf_ping(cf);
}

/* Messages of both go their own ways: DDP-SSNs and MSNs of one do not touch the other's. */
static void check_two_sessions(struct cf *cf)
{
	struct cf_conn one;

	cf_open(cf);
	cf_session_on(cf, 0);
	cf_ping(cf);
	cf_ping(cf);
	one = *cf->conn;
	cf_session_on(cf, 2);
	cf_ping(cf);
	cf->conn->stream = one.stream;
	cf->conn->tx_ssn = one.tx_ssn;
	cf->conn->rx_ssn = one.rx_ssn;
	memcpy(cf->conn->msn, one.msn, sizeof one.msn);
	cf_ping(cf);
}

static void terminate_session(struct cf *cf)
{
	cf_chunk(cf, cf->conn->stream, cf->conn->tx_ssn++, CF_TERMINATE, NULL, 0);
	cf_expect_session_end(cf);
}

static void check_session_terminated(struct cf *cf)
{
	cf_open(cf);
	cf_session_on(cf, 0);
	cf_ping(cf);
	terminate_session(cf);
	cf_settle(cf, 2, NONE);
	cf_ping(cf);
}

static void used_again(struct cf *cf)
{
	cf_open(cf);
	for (unsigned i = 0; i < 5; i++) {
		cf_session_on(cf, 4);
		cf_ping(cf);
		terminate_session(cf);
	}
}

/* Every message of a long session in its place; DDP-SSN 65535 is followed by 0. */
static void check_ssn_wraps(struct cf *cf)
{
	cf_open(cf);
	cf_session_on(cf, 0);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	while (cf->conn->tx_ssn)
		for (unsigned i = 0; i < 1024 && cf->conn->tx_ssn; i++)
			cf_send(cf);
	cf_ping(cf);
}

/* ---- order ---- */

/* A Read that came early is answered when what belongs before it has come, not sooner. */
static void order_by_ssn(struct cf *cf)
{
	struct cf_conn held;

	cf_open(cf);
	cf_session_on(cf, 0);
	cf_read_req(cf, cf_msn(cf, 1), 5, 0, 0, 0, 0);
	cf_send_as(cf, 2);
	held = *cf->conn;
	cf_settle(cf, 2, NONE); /* nothing came on stream 0 */
	cf_ping(cf);
	cf->conn->stream = 0;
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	cf_send_as(cf, 1);
	cf->conn->rx_ssn = held.rx_ssn;
	cf_recv_op(cf, CF_READ_RESP);
	CF_CHECK(cf, cf_in_op(cf) == CF_READ_RESP && cf_in_stag(cf) == 5, "no Read Response: %s",
		 cf_hex(cf->in.b, cf->in.len));
}

/* The last message comes first; it ends the session in its turn. */
static void terminate_in_turn(struct cf *cf)
{
	cf_open(cf);
	cf_session_on(cf, 0);
	cf_chunk(cf, 0, 2, CF_TERMINATE, NULL, 0);
	cf_read_req(cf, cf_msn(cf, 1), 5, 0, 0, 0, 0);
	cf_send_as(cf, 1);
	cf_recv_op(cf, CF_READ_RESP);
	CF_CHECK(cf, cf_in_op(cf) == CF_READ_RESP, "no Read Response: %s",
		 cf_hex(cf->in.b, cf->in.len));
	cf_expect_session_end(cf);
}

/* ---- illegal in a session: the session ends, the association stays ---- */

static void ends_session(struct cf *cf)
{
	cf_expect_session_end(cf);
	cf_settle(cf, 2, NONE);
	cf_ping(cf);
}

static void open_and_ping(struct cf *cf)
{
	cf_open(cf);
	cf_session_on(cf, 0);
	cf_ping(cf);
}

static void illegal_chunk(struct cf *cf, uint16_t code, const void *pd, size_t len)
{
	open_and_ping(cf);
	cf_chunk(cf, 0, cf->conn->tx_ssn, code, pd, len);
	ends_session(cf);
}

CF_CALL(second_initiate, illegal_chunk(cf, CF_ENH_INITIATE, word, sizeof word));
CF_CALL(stray_accept, illegal_chunk(cf, CF_ENH_ACCEPT, word, sizeof word));
CF_CALL(stray_reject, illegal_chunk(cf, CF_REJECT, NULL, 0));
CF_CALL(unknown_code, illegal_chunk(cf, 8, NULL, 0));
CF_CALL(code_zero, illegal_chunk(cf, 0, NULL, 0));
CF_CALL(terminate_with_data, illegal_chunk(cf, CF_TERMINATE, "x", 1));

static void raw_in_session(struct cf *cf, uint32_t ppid, const void *p, size_t len)
{
	open_and_ping(cf);
	cf_sctp_write(cf, 0, ppid, p, len);
	ends_session(cf);
}

CF_CALL(check_short_segment, raw_in_session(cf, PPID_SEGMENT, "\0", 1));
CF_CALL(check_short_control, raw_in_session(cf, PPID_CONTROL, "\0\2\0", 3));
CF_CALL(foreign_ppid, raw_in_session(cf, 18, "\0\2\0\4", 4));
CF_CALL(swapped_ppid, raw_in_session(cf, 0x10000000, "\0\2\0\4", 4));

static void ssn_twice(struct cf *cf)
{
	open_and_ping(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	cf_send_as(cf, 1);
	ends_session(cf);
}

static void ssn_too_far(struct cf *cf)
{
	open_and_ping(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	cf_send_as(cf, (uint16_t)(2 + 32768));
	ends_session(cf);
}

/* ---- set-up that is none ---- */

static void expect_chunk_refused(struct cf *cf, uint16_t code, const void *pd, size_t len)
{
	cf_open(cf);
	cf_chunk(cf, 0, 0, code, pd, len);
	cf_expect_ctrl(cf, 0, 0, CF_TERMINATE);
	cf_settle(cf, 2, NONE);
	cf_ping(cf);
}

static void initiate_pd_513(struct cf *cf)
{
	uint8_t pd[513] = { 0, 16, 0, 16 };

	expect_chunk_refused(cf, CF_ENH_INITIATE, pd, sizeof pd);
}

CF_CALL(initiate_pd_3, expect_chunk_refused(cf, CF_ENH_INITIATE, word, 3));

/* What finds no session: dropped, answered with one Terminate at most, a Terminate never. */
static void expect_chunk_dropped(struct cf *cf, uint16_t maybe)
{
	cf_settle(cf, 2, maybe);
	cf_ping(cf);
}

static void idle_segment(struct cf *cf)
{
	cf_open(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	cf_send_as(cf, 0);
	expect_chunk_dropped(cf, 0);
}

static void idle_terminate(struct cf *cf)
{
	cf_open(cf);
	cf_chunk(cf, 0, 0, CF_TERMINATE, NULL, 0);
	expect_chunk_dropped(cf, NONE);
}

static void idle_accept(struct cf *cf)
{
	cf_open(cf);
	cf_chunk(cf, 0, 0, CF_ENH_ACCEPT, word, sizeof word);
	expect_chunk_dropped(cf, 0);
}

static void idle_unknown(struct cf *cf)
{
	cf_open(cf);
	cf_chunk(cf, 0, 0, 77, NULL, 0);
	expect_chunk_dropped(cf, 0);
}

static void idle_initiate_ssn_1(struct cf *cf)
{
	cf_open(cf);
	cf_chunk(cf, 0, 1, CF_ENH_INITIATE, word, sizeof word);
	expect_chunk_dropped(cf, NONE);
}

/* Late traffic of a session that both sides ended. */
static void after_the_end(struct cf *cf)
{
	open_and_ping(cf);
	terminate_session(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	cf_send(cf);
	expect_chunk_dropped(cf, NONE);
}

const struct cf_case cf_cases_sctp[] = {
	{ "sctp-accept",
	  "5043-4-d1 5043-4-d2 5043-5.2-d1 5043-5.2.3-d1 5043-5.2.1-d1 5043-6.1-1 5043-6.1-d1 "
	  "5043-6.2-d1 5043-10-1 5043-8-d3 5043-11.1-d1",
	  "Initiate, Accept, segments: on one stream, unordered, DDP-SSNs from 0", CF_SCTP,
	  CF_RESPONDER, false, check_session_accepted },
	{ "sctp-any-stream", "5043-8-d1 5043-4-d1", "any stream carries a session", CF_SCTP,
	  CF_RESPONDER, false, any_stream },
	{ "sctp-plain", "5043-5.2.3-d1 5043-6.1-1", "0x0001 is answered with 0x0002", CF_SCTP,
	  CF_RESPONDER, false, plain_accepted },
	{ "sctp-two-sessions", "5043-5.2.1-1 5043-6-d1", "sessions of an association count apart",
	  CF_SCTP, CF_RESPONDER, false, check_two_sessions },
	{ "sctp-terminate", "5043-6.2-1 5043-6.2-2 5043-5.2.3-4 5043-11.3-d2",
	  "Terminate ends the session, is answered, and the association stays", CF_SCTP,
	  CF_RESPONDER, false, check_session_terminated },
	{ "sctp-reuse", "5043-6.6-4 5043-6.1-d1 5043-6-d1 5043-6-2",
	  "a stream takes session after session, each from DDP-SSN 0", CF_SCTP, CF_RESPONDER, false,
	  used_again },
	{ "sctp-ssn-wraps", "5043-6-1 5043-5.2.1-1", "DDP-SSN 65535 is followed by 0", CF_SCTP,
	  CF_RESPONDER, false, check_ssn_wraps },
	{ "sctp-order", "5043-6.1-d2 5043-10-2 5043-2-d2", "delivery follows DDP-SSNs", CF_SCTP,
	  CF_RESPONDER, false, order_by_ssn },
	{ "sctp-terminate-in-turn", "5043-6.1-d2", "an early Terminate waits for its turn", CF_SCTP,
	  CF_RESPONDER, false, terminate_in_turn },
	{ "sctp-second-initiate", "5043-6.1-2", "a second Initiate ends the session", CF_SCTP,
	  CF_RESPONDER, false, second_initiate },
	{ "sctp-stray-accept", "5043-6.1-2", "an Accept from the initiator ends the session",
	  CF_SCTP, CF_RESPONDER, false, stray_accept },
	{ "sctp-stray-reject", "5043-6.1-2", "a Reject from the initiator ends the session",
	  CF_SCTP, CF_RESPONDER, false, stray_reject },
	{ "sctp-unknown-code", "5043-6.1-2", "an unknown function code ends the session", CF_SCTP,
	  CF_RESPONDER, false, unknown_code },
	{ "sctp-code-0", "5043-6.1-2", "function code 0 ends the session", CF_SCTP, CF_RESPONDER,
	  false, code_zero },
	{ "sctp-terminate-data", "5043-5.2.3-4 5043-6.1-2",
	  "a Terminate with private data is illegal", CF_SCTP, CF_RESPONDER, false,
	  terminate_with_data },
	{ "sctp-short-segment", "5043-6.1-2 5043-5.2.1-d1", "no room for a DDP-SSN", CF_SCTP,
	  CF_RESPONDER, false, check_short_segment },
	{ "sctp-short-control", "5043-6.1-2", "no room for a function code", CF_SCTP, CF_RESPONDER,
	  false, check_short_control },
	{ "sctp-ppid", "5043-5.1-d2", "another PPID ends the session", CF_SCTP, CF_RESPONDER, true,
	  foreign_ppid },
	{ "sctp-ppid-swapped", "5043-5.1-d2 5043-5.2-d1", "a PPID in the wrong byte order is none",
	  CF_SCTP, CF_RESPONDER, true, swapped_ppid },
	{ "sctp-ssn-twice", "5043-10-4 5043-10-6", "a DDP-SSN comes once", CF_SCTP, CF_RESPONDER,
	  true, ssn_twice },
	{ "sctp-ssn-far", "5043-10-4 5043-10-6", "a DDP-SSN 32768 ahead is none", CF_SCTP,
	  CF_RESPONDER, true, ssn_too_far },
	{ "sctp-initiate-513", "5043-5.2.3-3", "private data has at most 512 octets", CF_SCTP,
	  CF_RESPONDER, false, initiate_pd_513 },
	{ "sctp-initiate-3", "6581-6-6", "an enhanced Initiate has its word", CF_SCTP, CF_RESPONDER,
	  false, initiate_pd_3 },
	{ "sctp-idle-segment", "5043-6.6-2 5043-2-d1", "no segment before Initiate", CF_SCTP,
	  CF_RESPONDER, false, idle_segment },
	{ "sctp-idle-terminate", "5043-6.1-1", "a Terminate of no session is not answered", CF_SCTP,
	  CF_RESPONDER, false, idle_terminate },
	{ "sctp-idle-accept", "5043-6.1-2", "an Accept of no session begins none", CF_SCTP,
	  CF_RESPONDER, false, idle_accept },
	{ "sctp-idle-unknown", "5043-6.1-2", "an unknown code begins no session", CF_SCTP,
	  CF_RESPONDER, false, idle_unknown },
	{ "sctp-initiate-ssn-1", "5043-6.1-d1", "an Initiate has DDP-SSN 0", CF_SCTP, CF_RESPONDER,
	  true, idle_initiate_ssn_1 },
	{ "sctp-late", "5043-6.6-4", "what comes after the end is dropped", CF_SCTP, CF_RESPONDER,
	  false, after_the_end },
	{ 0 },
};
