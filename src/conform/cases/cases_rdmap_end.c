/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5040 and RFC 5041: Terminates, and other ends. */
#include "conform/cases/work.h"
#include <string.h>

/* ---- Terminates ---- */

static struct ddps_event take_terminate(struct cf *cf, const void *t, size_t len)
{
	struct ddps_event ev;

	cf_untagged(cf, CF_UNTAGGED_L, CF_TERM, 0, 2, 1, 0, t, len);
	cf_send(cf);
	ev = cf_app_event(cf, DDPS_EV_TERMINATED);
	CF_CHECK(cf, ev.error.by_peer, "a Terminate of the peer is reported as our own");
	cf_expect_end(cf, false); /* never answered */
	return ev;
}

static void terminate_delivered(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct ddps_event ev;

	cf_begin(cf, NULL);
	cf_app_recv(cf, 1, 64);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 1, 2);
	cf_take_read(cf, 1, 1, 2, 8);
	ev = take_terminate(cf, "\x12\x02\x1f\xff", 4); /* reserved bits set */
	CF_CHECK(cf,
		 ev.error.has_triple && ev.error.triple.layer == 1 && ev.error.triple.etype == 2 &&
			 ev.error.triple.code == 2,
		 "reported as %u/%u/%02x", ev.error.triple.layer, ev.error.triple.etype,
		 ev.error.triple.code);
	for (unsigned i = 0; i < 2; i++)
		CF_CHECK(cf, cf_app_wc(cf).status == DDPS_WC_FLUSHED, "not flushed");
}

static void terminate_twice(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_untagged(cf, CF_UNTAGGED_L, CF_TERM, 0, 2, 1, 0, "\x12\x02\0", 4);
	cf_send(cf);
	cf_untagged(cf, CF_UNTAGGED_L, CF_TERM, 0, 2, 2, 0, "\x11\x00\0", 4);
	cf_send(cf);
	cf_expect_end(cf, false);
}

static void check_terminate_ends(struct cf *cf, const char *b, size_t len)
{
	cf_session(cf, NULL);
	cf_untagged(cf, CF_UNTAGGED_L, CF_TERM, 0, 2, 1, 0, b, len);
	cf_send(cf);
	cf_expect_end(cf, false);
}

CF_CALL(terminate_short, check_terminate_ends(cf, "\x12\x02\xe0", 3));
CF_CALL(terminate_flags_lie, check_terminate_ends(cf, "\x01\x01\xe0", 4));
CF_CALL(terminate_unknown, check_terminate_ends(cf, "\xff\xff\0", 4));

static void terminate_swapped(struct cf *cf)
{
	static const uint8_t t[24] = { 0x10, 0x01, 0x03, 0, 0, 0, 0xc1, 0x40 };
	struct ddps_event ev;

	cf_session(cf, NULL);
	ev = take_terminate(cf, t, 20);
	CF_CHECK(cf, strstr(ev.error.text, "bit-swapped"), "not recognised: %s", ev.error.text);
	CF_CHECK(cf, ev.error.triple.layer == 0 && ev.error.triple.etype == 1, "reported as %u/%u",
		 ev.error.triple.layer, ev.error.triple.etype);
}

/* What waits for ORD finds its memory gone: a Terminate instead of the request. */
static void check_read_local_error(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 1, .ord_w = 16 };
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_mr n = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_read_req q;

	cf_begin(cf, &o);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 1, 2);
	cf_app_post(cf, DDPS_OP_READ, 0, &n, 8, 1, 2);
	q = cf_take_read(cf, 1, 1, 2, 8);
	ddps_mr_dereg(n.mr);
	cf_respond(cf, &q);
	cf_expect_term(cf, 0x0000, CF_BARE);
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_LOCAL_ACCESS);
}

/* ---- ends ---- */

static void check_session_lost(struct cf *cf)
{
	struct ddps_error e;
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);

	cf_begin(cf, NULL);
	cf_app_recv(cf, 1, 64);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 1, 2);
	cf_take_read(cf, 1, 1, 2, 8);
	if (cf->wire == CF_TCP)
		cf_tcp_reset(cf);
	else
		cf_sctp_abort(cf);
	e = cf_app_event(cf, DDPS_EV_CLOSED).error;
	CF_CHECK(cf, e.code, "reported as an orderly end");
	if (cf->wire == CF_TCP) /* told locally, never on a wire */
		CF_CHECK(cf, e.has_triple && e.triple.layer == 2 && e.triple.code == 1,
			 "not reported as 2/0/01");
	for (unsigned i = 0; i < 2; i++)
		CF_CHECK(cf, cf_app_wc(cf).status == DDPS_WC_FLUSHED, "not flushed");
}

/* What was posted goes out, what comes is still taken, new work is refused. */
static void check_disconnect(struct cf *cf)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_read_req q;

	cf_app_recv(cf, 1, 64);
	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 1, 2);
	cf_app_post(cf, DDPS_OP_SEND, 0, &m, 8, 0, 0);
	CF_CHECK(cf, !ddps_disconnect(cf->app.ep), "application: disconnect");
	CF_CHECK(cf, ddps_post_send(cf->app.ep, &wr) == DDPS_E_STATE, "a Send after the close");
	q = cf_take_read(cf, 1, 1, 2, 8);
	cf_take_message(cf, CF_SEND, 0, 1, 0, &m, 8);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, 1, 0, cf_text, 8);
	cf_send(cf);
	cf_expect_wc(cf, DDPS_OP_RECV, DDPS_WC_SUCCESS);
	cf_respond(cf, &q);
	cf_expect_end(cf, true);
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cf_expect_wc(cf, DDPS_OP_SEND, DDPS_WC_SUCCESS);
}

/* TCP: the peer's FIN ends Reads and nothing else; our half closes when asked. */
static void check_read_half_close(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);

	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 1, 2);
	cf_take_read(cf, 1, 1, 2, 8);
	cf_tcp_fin(cf);
	cf_app_event(cf, DDPS_EV_PEER_CLOSED);
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_FLUSHED);
	cf_app_post(cf, DDPS_OP_SEND, 0, &m, 8, 0, 0);
	cf_take_message(cf, CF_SEND, 0, 1, 0, &m, 8);
	CF_CHECK(cf, !ddps_disconnect(cf->app.ep), "application: disconnect");
	cf_expect_end(cf, true);
	CF_CHECK(cf, !cf_app_event(cf, DDPS_EV_CLOSED).error.code, "not an orderly end");
}

/* TCP: a segment whose CRC is wrong is not acted on. */
static void check_crc_ignored_segment(struct cf *cf)
{
	static const uint8_t fpdu[20] = { 0, 14, CF_TAGGED_L, CF_WRITE };

	cf_begin(cf, NULL);
	cf_tcp_write(cf, fpdu, sizeof fpdu);
	cf_expect_term(cf, 0x2002, CF_BARE);
}

/* SCTP: a segment after the session's Terminate.  TCP has no octets after a FIN. */
static void data_after_end(struct cf *cf)
{
	const struct cf_ctrl end = { .ssn = 1, .code = CF_TERMINATE };
	uint8_t b[2 + 18 + 8] = { 0, 2, CF_UNTAGGED_L, CF_SEND };
	struct ddps_wc wc;

	b[15] = 1; /* MSN */
	cf_app_recv(cf, 1, 64);
	cf_session(cf, NULL);
	cf_ctrl_write(cf, &end);
	cf_sctp_write(cf, 0, 16, b, sizeof b);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, wc.status == DDPS_WC_FLUSHED, "data after the end was delivered");
}

#define CASE(name, app, run, ids, rule)                                                            \
	{                                                                                          \
		name, ids, rule, CF_BOTH, CF_RESPONDER, app, run                                   \
	}

const struct cf_case cf_cases_rdmap_end[] = {
	CF_ROLES("rdmap-", "terminate-delivered", true, terminate_delivered,
		 "5040-5.4-4 5040-5.4-6 5040-5.4-7 5040-4.8-8 5040-3.2-4 5040-6.2.1-2 5040-3.2-12 "
		 "5040-7-1",
		 "a Terminate is reported to the application, work is flushed, nothing answered"),
	CF_ROLES("rdmap-", "terminate-twice", false, terminate_twice, "5040-5.4-5 5040-5.4-4",
		 "a second Terminate is dropped, none is answered"),
	CASE("rdmap-terminate-short", false, terminate_short, "5040-5.4-8",
	     "a Terminate of 3 octets ends the stream unanswered"),
	CASE("rdmap-terminate-flags-lie", false, terminate_flags_lie, "5040-5.4-8",
	     "a Terminate without the headers it announces ends the stream unanswered"),
	CASE("rdmap-terminate-unknown", false, terminate_unknown, "5040-5.4-7",
	     "a Terminate of an unknown layer ends the stream unanswered"),
	CASE("rdmap-terminate-swapped", true, terminate_swapped, "5040-5.4-7",
	     "a Terminate with siw's bit order is read and named as such"),
	CF_ROLES("rdmap-", "local-error", true, check_read_local_error,
		 "5040-7.1-1 5040-7.1-2 5040-4.8-11 5040-6.2.1-1 5040-5.4-9",
		 "a local error sends 0/0/00 instead of the request"),
	CF_ROLES("rdmap-", "lost", true, check_session_lost,
		 "5041-6.2.2-1 5041-6.2.2-2 5041-6.2.2-5 5040-6.2-2 5041-3-4",
		 "a lost connection is reported and flushes all work"),
	CF_ROLES("rdmap-", "disconnect", true, check_disconnect,
		 "5041-6.2.1-2 5041-6.2.1-3 5041-6.2.1-9 5041-3-12",
		 "after a close posted work goes out and answers are taken"),
	{ "rdmap-half-close",
	  "5041-6.2.1-5 5041-6.2.1-6 5041-6.2.1-7 5041-6.2.1-8 5041-3-12 5041-3-13",
	  "the peer's FIN ends Reads; Sends go on until a close", CF_TCP, CF_RESPONDER, true,
	  check_read_half_close },
	{ "rdmap-digest", "5041-3-8", "a segment whose CRC32c is wrong ends the stream", CF_TCP,
	  CF_RESPONDER, false, check_crc_ignored_segment },
	{ "rdmap-data-after-end", "5041-6.2.1-4",
	  "a segment after the peer's orderly end is not delivered", CF_SCTP, CF_RESPONDER, true,
	  data_after_end },
	{ 0 },
};
