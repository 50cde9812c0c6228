/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5043 with the target's application in hand: what it learns, what it makes the stack send. */
#include "conform/cases/cases_sctp.h"
#include "conform/cases/cases_neg.h"
#include <string.h>

#define PD_MAX 508u

/* ---- responder: set-up ---- */

static void request_shown(struct cf *cf)
{
	uint8_t pd[4 + PD_MAX] = { 0, 16, 0, 16 };
	struct ddps_event ev;

	cf_fill(pd + 4, PD_MAX, 1);
	cf_open(cf);
	cf_chunk(cf, 0, 0, CF_ENH_INITIATE, pd, sizeof pd);
	ev = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	CF_CHECK(cf, ev.private_data_len == PD_MAX && !memcmp(ev.private_data, pd + 4, PD_MAX),
		 "the application sees %zu octets of private data", ev.private_data_len);
	cf_app_recv(cf, 0, 0);
	cf->app.param.private_data = pd + 4;
	cf->app.param.private_data_len = PD_MAX;
	CF_CHECK(cf, !ddps_accept(ev.request, cf->app.ep, &cf->app.param), "accepting");
	cf_expect_ctrl(cf, 0, 0, CF_ENH_ACCEPT);
	CF_CHECK(cf, cf->ctrl.pd_len == 4 + PD_MAX && !memcmp(cf->ctrl.pd + 4, pd + 4, PD_MAX),
		 "the Accept has %u octets of private data", cf->ctrl.pd_len);
}

static void check_session_rejected(struct cf *cf)
{
	struct ddps_event ev;

	cf_open(cf);
	cf_initiate(cf, 0);
	ev = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	CF_CHECK(cf, !ddps_reject(ev.request, "busy", 4), "rejecting");
	cf_expect_ctrl(cf, 0, 0, CF_ENH_REJECT);
	CF_CHECK(cf, cf->ctrl.pd_len == 8 && !memcmp(cf->ctrl.pd + 4, "busy", 4),
		 "private data: %s", cf_hex(cf->ctrl.pd, cf->ctrl.pd_len));
	cf_settle(cf, 2, UINT16_MAX); /* nothing follows the Reject */
	cf_session_on(cf, 0);	      /* and the stream is free */
	cf_ping(cf);
}

/* Nothing is answered before the application has decided. */
static void waits_for_application(struct cf *cf)
{
	struct ddps_event ev;

	cf_open(cf);
	cf_initiate(cf, 0);
	ev = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	cf_settle(cf, 2, UINT16_MAX);
	cf->app.ep = NULL;
	cf_app_recv(cf, 0, 0);
	CF_CHECK(cf, !ddps_accept(ev.request, cf->app.ep, &cf->app.param), "accepting");
	cf_expect_ctrl(cf, 0, 0, CF_ENH_ACCEPT);
}

static void too_many_requests(struct cf *cf)
{
	struct ddps_listen_param p;

	ddps_listen_param_init(&p);
	p.max_half_open = 2;
	cf_neg_listen(cf, &p);
	cf_open(cf);
	cf_initiate(cf, 0);
	cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	cf_initiate(cf, 2);
	cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	cf_initiate(cf, 4);
	cf_expect_ctrl(cf, 4, 0, CF_TERMINATE);
}

static void cancelled(struct cf *cf)
{
	cf_open(cf);
	cf_initiate(cf, 0);
	cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	cf_chunk(cf, 0, 1, CF_TERMINATE, NULL, 0);
	cf_expect_ctrl(cf, 0, 0, CF_TERMINATE);
	cf_app_event(cf, DDPS_EV_REQUEST_GONE);
	cf_session_on(cf, 0);
}

static void segment_before_accept(struct cf *cf)
{
	cf_open(cf);
	cf_initiate(cf, 0);
	cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	cf_send_as(cf, 1);
	cf_expect_ctrl(cf, 0, 0, CF_TERMINATE);
	cf_app_event(cf, DDPS_EV_REQUEST_GONE);
}

/* ---- what is sent ---- */

static void check_app_sends(struct cf *cf)
{
	cf_session(cf, NULL);
	for (unsigned i = 0; i < 40; i++)
		cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	for (unsigned i = 1; i <= 40; i++) {
		const struct cf_msg *m = cf_sctp_read(cf);

		CF_CHECK(cf, m->ppid == PPID_SEGMENT && m->unordered && m->stream == 0,
			 "PPID %u, stream %u", m->ppid, m->stream);
		CF_CHECK(cf, m->len == 20 && cf_get16(m->b) == i && cf_get32(m->b + 12) == i,
			 "message %u: %s", i, cf_hex(m->b, m->len));
	}
}

/* No message is longer than what the path carries whole, and 516 always fit. */
static void cut_to_size(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 300000, 0);
	struct ddps_conn_info info;
	size_t got = 0;

	cf_session(cf, NULL);
	CF_CHECK(cf, !ddps_ep_info(cf->app.ep, &info), "no information");
	CF_CHECK(cf, info.mulpdu >= 516, "MULPDU %u", info.mulpdu);
	cf_app_post(cf, DDPS_OP_SEND, 0, &m, 300000, 0, 0);
	while (got < m.len) {
		size_t len;

		cf_recv(cf);
		/* It may grow by a search for the path's MTU. */
		if (cf->in.len > info.mulpdu)
			CF_CHECK(cf, !ddps_ep_info(cf->app.ep, &info), "no information");
		CF_CHECK(cf, cf->in.len <= info.mulpdu, "segment of %zu octets, MULPDU %u",
			 cf->in.len, info.mulpdu);
		CF_CHECK(cf, !memcmp(cf_in_payload(cf, &len), m.mem + got, 1), "wrong payload");
		got += len;
	}
	CF_CHECK(cf, cf_in_last(cf) && got == m.len, "%zu octets", got);
}

static void disconnects(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	CF_CHECK(cf, !ddps_disconnect(cf->app.ep), "disconnecting");
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == CF_SEND, "not the Send: %s", cf_hex(cf->in.b, cf->in.len));
	cf_expect_session_end(cf);
	cf_chunk(cf, 0, 1, CF_TERMINATE, NULL, 0);
	cf_hear(cf, DDPS_EV_CLOSED);
	cf_session_on(cf, 0);
}

static void rdmap_terminate_first(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 0, "x", 1);
	cf_send(cf);
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == CF_TERM, "not a Terminate: %s", cf_hex(cf->in.b, cf->in.len));
	cf_expect_session_end(cf);
}

/* ---- the association ends ---- */

static void two_lose(struct cf *cf, bool in_order)
{
	cf_open(cf);
	cf_session_on(cf, 0);
	cf_session_on(cf, 2);
	if (in_order) {
		cf_sctp_shutdown(cf);
		cf_expect_gone(cf); /* it has acknowledged what was sent before */
	} else {
		cf_sctp_abort(cf);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_event ev = cf_hear(cf, DDPS_EV_CLOSED);

		CF_CHECK(cf, ev.error.code && !ev.error.has_triple, "reported '%s' with code %d",
			 ev.error.text, ev.error.code);
	}
}

CF_CALL(association_aborted, two_lose(cf, false));
CF_CALL(association_shut_down, two_lose(cf, true));

/* ---- initiator ---- */

static void initiates(struct cf *cf)
{
	cf_open(cf);
	cf_ctrl_read(cf, &cf->ctrl);
	CF_CHECK(cf, cf->ctrl.code == CF_ENH_INITIATE && !cf->ctrl.ssn && cf->ctrl.pd_len == 4,
		 "function code %u, DDP-SSN %u, %u octets", cf->ctrl.code, cf->ctrl.ssn,
		 cf->ctrl.pd_len);
	cf_initiate(cf, (uint16_t)(cf->ctrl.stream + 1)); /* not legal, but no answer to it */
	cf_ctrl_read(cf, &cf->ctrl);
	CF_CHECK(cf, cf->ctrl.code == CF_TERMINATE, "a session where nothing listens");
}

static void answer_initiate(struct cf *cf, uint16_t code, const void *pd, size_t len)
{
	cf_open(cf);
	cf_ctrl_read(cf, &cf->ctrl);
	cf_chunk(cf, cf->ctrl.stream, 0, code, pd, len);
}

static void is_rejected(struct cf *cf)
{
	struct ddps_event ev;

	answer_initiate(cf, CF_ENH_REJECT, "\0\20\0\20busy", 8);
	ev = cf_app_event(cf, DDPS_EV_REJECTED);
	CF_CHECK(cf, ev.private_data_len == 4 && !memcmp(ev.private_data, "busy", 4),
		 "private data of %zu octets", ev.private_data_len);
}

static void check_initiate_refused(struct cf *cf)
{
	struct ddps_event ev;

	answer_initiate(cf, CF_TERMINATE, NULL, 0);
	ev = cf_app_event(cf, DDPS_EV_FAILED);
	CF_CHECK(cf, ev.error.code == DDPS_E_REFUSED, "code %d", ev.error.code);
}

static void wrong_accept(struct cf *cf)
{
	answer_initiate(cf, CF_ACCEPT, NULL, 0);
	cf_expect_ctrl(cf, cf->ctrl.stream, 1, CF_TERMINATE);
}

static void accept_pd_513(struct cf *cf)
{
	uint8_t pd[513] = { 0, 16, 0, 16 };

	answer_initiate(cf, CF_ENH_ACCEPT, pd, sizeof pd);
	cf_expect_ctrl(cf, cf->ctrl.stream, 1, CF_TERMINATE);
}

/* A segment overtakes the Accept: it is not illegal for that, and comes after it. */
static void overtaken_accept(struct cf *cf)
{
	struct ddps_wc wc;

	cf_app_recv(cf, 1, 16);
	cf_open(cf);
	cf_ctrl_read(cf, &cf->ctrl);
	cf_at_stream(cf, cf->ctrl.stream);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, 1, 0, "early", 5);
	cf_send_as(cf, 1);
	cf_chunk(cf, cf->ctrl.stream, 0, CF_ENH_ACCEPT, "\0\20\0\20", 4);
	cf_app_event(cf, DDPS_EV_ESTABLISHED);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, wc.op == DDPS_OP_RECV && wc.status == DDPS_WC_SUCCESS && wc.len == 5,
		 "completion: %s of %u octets", ddps_wc_status_name(wc.status), wc.len);
}

const struct cf_case cf_cases_sctp_app[] = {
	{ "sctp-private-data",
	  "5043-5.2.3-1 5043-5.2.3-2 5043-5.2.3-3 5043-5.2.3-5 5043-5.2.3-6 5043-9-d2 5043-6.4-2",
	  "the application sees and gives private data up to the limit", CF_SCTP, CF_RESPONDER,
	  true, request_shown },
	{ "sctp-reject", "5043-6.3-2 5043-6.3-3 5043-6.3-d2 5043-6.4-1 5043-6.6-4",
	  "Initiate, Reject, nothing else, and the stream is free", CF_SCTP, CF_RESPONDER, true,
	  check_session_rejected },
	{ "sctp-application-decides", "5043-6.4-1 5043-6.3-3 5043-6.3-d1",
	  "no answer before the application has decided", CF_SCTP, CF_RESPONDER, true,
	  waits_for_application },
	{ "sctp-too-many", "5043-5.2.3-7 5043-5.2.3-8 5043-6.4-3 5043-6.4-4",
	  "one Initiate too many is answered with Terminate", CF_SCTP, CF_RESPONDER, true,
	  too_many_requests },
	{ "sctp-cancelled", "5043-6.1-1", "a request that its sender ends is withdrawn", CF_SCTP,
	  CF_RESPONDER, true, cancelled },
	{ "sctp-early-segment", "5043-6.1-2 5043-6.3-d1 5043-2-d1", "no segment before the Accept",
	  CF_SCTP, CF_RESPONDER, true, segment_before_accept },
	{ "sctp-sends",
	  "5043-5.2.1-1 5043-5.2.1-d1 5043-6-1 5043-2-d2 5043-10-1 5043-4-d2 5043-8-d3",
	  "segments count up from DDP-SSN 1, unordered, PPID 16", CF_SCTP, CF_RESPONDER, true,
	  check_app_sends },
	{ "sctp-mulpdu", "5043-9-1 5043-9-2 5043-9-4 5043-9-d1",
	  "no segment is longer than the MULPDU", CF_SCTP, CF_RESPONDER, true, cut_to_size },
	{ "sctp-disconnect", "5043-6.2-1 5043-6.2-2 5043-5.2.3-4 5043-6.6-4",
	  "what was posted leaves, then Terminate", CF_SCTP, CF_RESPONDER, true, disconnects },
	{ "sctp-rdmap-terminate", "5043-6.2-d2 5043-11.3-3",
	  "an RDMAP Terminate is a segment before the session's", CF_SCTP, CF_RESPONDER, true,
	  rdmap_terminate_first },
	{ "sctp-aborted", "5043-11.3-1 5043-11.3-2 5043-11.3-d1",
	  "every session of an aborted association is informed", CF_SCTP, CF_RESPONDER, true,
	  association_aborted },
	{ "sctp-shut-down", "5043-11.3-1 5043-11.3-2",
	  "every session of an association that is shut down is informed", CF_SCTP, CF_RESPONDER,
	  true, association_shut_down },
	{ "sctp-i-initiate", "5043-6.6-2 5043-6.1-d1 5043-6.3-d1 5043-10-1 5043-5.2-d1",
	  "an Initiate comes first, alone, with DDP-SSN 0", CF_SCTP, CF_INITIATOR, true,
	  initiates },
	{ "sctp-i-rejected", "5043-6.3-d2 5043-5.2.3-5 5043-5.2.3-6",
	  "a Reject reaches the application with its private data", CF_SCTP, CF_INITIATOR, true,
	  is_rejected },
	{ "sctp-i-refused", "5043-5.2.3-8 5043-5.2.3-5", "a Terminate in answer is a refusal",
	  CF_SCTP, CF_INITIATOR, true, check_initiate_refused },
	{ "sctp-i-wrong-accept", "5043-6.1-2", "0x0005 is not answered with 0x0002", CF_SCTP,
	  CF_INITIATOR, true, wrong_accept },
	{ "sctp-i-accept-513", "5043-5.2.3-3", "an Accept has at most 512 octets", CF_SCTP,
	  CF_INITIATOR, true, accept_pd_513 },
	{ "sctp-i-overtaken", "5043-6.1-d2 5043-10-2",
	  "a segment that overtakes the Accept waits for it", CF_SCTP, CF_INITIATOR, true,
	  overtaken_accept },
	{ 0 },
};
