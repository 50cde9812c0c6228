/* SPDX-License-Identifier: BSD-2-Clause */
/* The passive side of a session against a peer that sends single messages. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct sd_world w;

static void init(void)
{
	sd_world_init(&w);
}

static void fini(void)
{
	sd_world_fini(&w);
}

TestSuite(sd_passive, .init = init, .fini = fini, .timeout = 30);

/* ---- legal sequences ---- */

Test(sd_passive, accept_segments_terminate,
     .description = "5043-6.2-1 5043-6.2-d1 5043-5.2.3-1 5043-5.2.3-5 5043-5.2.3-6 5043-6.1-d1")
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 3, "0000 0001 6869");
	cr_assert_eq(w.nreq, 1);
	cr_expect_not(w.req[0].enhanced);
	cr_expect_eq(w.req[0].pd_len, 2);
	cr_expect_arr_eq(w.req[0].pd, "hi", 2);
	sd_expect_silence(raw);
	cr_assert_eq(sd_answer(&w.req[0], false, "ok", 2), 0);
	sd_run(&w);
	sd_expect(raw, 3, "0000 0002 6f6b");
	for (uint16_t i = 0; i < 5; i++)
		sd_send_segment(&w, raw, 3, (uint16_t)(i + 1), i);
	cr_expect_eq(w.req[0].segments, 5);
	cr_expect_eq(w.req[0].last_len, SD_SEG_HDR);
	cr_expect_not(w.req[0].out_of_order);
	sd_send(&w, raw, 3, "0006 0004");
	cr_expect_eq(w.req[0].peer_closes, 1);
	sd_expect(raw, 3, "0001 0004");
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, 0);
	cr_expect_eq(sd_state(&w, 0, 3), DDPS_SD_IDLE);
	sd_expect_silence(raw);
}

Test(sd_passive, this_side_terminates_first, .description = "5043-6.2-1 5043-6.6-1")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	u->to_send = 2;
	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	for (int i = 0; i < 2; i++)
		free(fake_sctp_raw_take(raw));
	sd_expect(raw, 0, "0003 0004");
	cr_expect_eq(u->done, 2);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
	cr_expect_eq(u->closes, 0);
	sd_send_segment(&w, raw, 0, 1, 0); /* still belongs to the session */
	cr_expect_eq(u->segments, 1);
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, 0);
	cr_expect_eq(u->peer_closes, 0);
	sd_expect_silence(raw);
}

Test(sd_passive, rejects, .description = "5043-6.3-2 5043-6.3-d2 5043-6.4-1 5043-5.2.3-1")
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	raw->peer->hold_dry = true;
	sd_send(&w, raw, 1, "0000 0001");
	cr_assert_eq(sd_answer(&w.req[0], true, "no", 2), 0);
	sd_run(&w);
	sd_expect(raw, 1, "0000 0003 6e6f");
	cr_expect_eq(w.req[0].closes, 0); /* not before it has arrived */
	raw->peer->hold_dry = false;
	fake_sctp_poke(raw->peer);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, 0);
	cr_expect_eq(sd_state(&w, 0, 1), DDPS_SD_IDLE);
	sd_expect_silence(raw); /* no Terminate */
}

Test(sd_passive, enhanced_is_answered_enhanced,
     .description = "6581-7-2 6581-7-3 6581-7-6 6581-7-7 6581-7-9 6581-7-d2 6581-7-d4")
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0005 8010c008 68656c6c6f");
	cr_assert_eq(w.nreq, 1);
	cr_expect(w.req[0].enhanced);
	cr_expect_eq(w.req[0].pd_len, 9);
	cr_expect_arr_eq(w.req[0].pd, "\x80\x10\xc0\x08hello", 9);
	cr_expect_eq(sd_answer(&w.req[0], false, "abc", 3),
		     DDPS_E_INVAL); /* no room for the word */
	cr_assert_eq(sd_answer(&w.req[0], false, "\x80\x08\x80\x10", 4), 0);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0006 80088010");
	sd_send(&w, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");

	sd_send(&w, raw, 2, "0000 0005 8010c008");
	cr_assert_eq(w.nreq, 2);
	cr_assert_eq(sd_answer(&w.req[1], true, "\x80\x10\x80\x20", 4), 0);
	sd_run(&w);
	sd_expect(raw, 2, "0000 0007 80108020");
}

Test(sd_passive, answer_limits, .description = "5043-5.2.3-3")
{
	static uint8_t pd[513];
	struct ddps_setup s = { .enhanced = true, .pd = pd, .pd_len = 4 };
	struct ddps_sd_assoc *raw;
	struct fake_sctp_msg *m;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(sd_answer(&w.req[0], false, pd, 513), DDPS_E_TOO_LONG);
	/* an unenhanced request is not answered enhanced */
	cr_expect_eq(w.req[0].llp->ops->answer(w.req[0].llp, &s, &w.param), DDPS_E_INVAL);
	cr_expect_eq(sd_answer(&w.req[0], false, pd, 512), 0);
	cr_expect_eq(sd_answer(&w.req[0], false, pd, 0), DDPS_E_STATE);
	sd_run(&w);
	m = fake_sctp_raw_take(raw);
	cr_assert(m);
	cr_expect_eq(m->len, 516);
	free(m);
}

Test(sd_passive, unanswered_requests_end_with_terminate, .description = "5043-6.3-3 5043-6.4-1")
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	sd_send(&w, raw, 1, "0000 0005 00000000");
	w.req[0].llp->ops->abort(w.req[0].llp);
	sd_free(&w.req[1]);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0004");
	sd_expect(raw, 1, "0000 0004");
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_CLOSED);
	cr_expect_eq(w.req[1].closes, 0);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	/* and the pairs can be used again */
	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(w.nreq, 3);
}

Test(sd_passive, peer_withdraws_its_request)
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	sd_send(&w, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0000 0004");
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_CLOSED);
	cr_expect_eq(sd_answer(&w.req[0], false, NULL, 0), DDPS_E_CLOSED);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	sd_expect_silence(raw);
}

Test(sd_passive, withdrawal_crossing_the_accept)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send(&w, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(w.req[0].peer_closes, 1);
	cr_expect_eq(w.req[0].closes, 1);
}

/* ---- limits ---- */

Test(sd_passive, pending_requests_per_association,
     .description = "5043-5.2.3-7 5043-5.2.3-8 5043-6.4-3 5043-6.4-4")
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	for (uint16_t i = 0; i < DDPS_SD_PENDING_MAX; i++)
		sd_send(&w, raw, i, "0000 0001");
	cr_expect_eq(w.nreq, DDPS_SD_PENDING_MAX);
	sd_expect_silence(raw);
	sd_send(&w, raw, 100, "0000 0001");
	cr_expect_eq(w.nreq, DDPS_SD_PENDING_MAX);
	sd_expect(raw, 100, "0000 0004");
	cr_assert_eq(sd_answer(&w.req[0], false, NULL, 0), 0);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0002");
	sd_send(&w, raw, 100, "0000 0001");
	cr_expect_eq(w.nreq, DDPS_SD_PENDING_MAX + 1);
}

Test(sd_passive, pending_requests_per_listener, .description = "5043-6.4-3 5043-6.4-4")
{
	struct ddps_sd_assoc *raw[4];
	struct ddps_sd_listener *l;
	uint64_t full;

	w.accept = false;
	w.lparam.max_half_open = 3;
	for (int i = 0; i < 3; i++)
		raw[i] = sd_raw_to_listener(&w);
	l = (struct ddps_sd_listener *)w.listener;
	cr_expect_eq(l->half_open, 3);
	for (int i = 0; i < 3; i++)
		sd_send(&w, raw[i], 0, "0000 0001");
	cr_expect_eq(w.nreq, 3);
	cr_expect_eq(l->half_open, 3);
	raw[3] = sd_raw_to_listener(&w); /* one association too many */
	cr_expect_null(raw[3]->peer);
	cr_expect_eq(w.env.half_open_given_up, 0, "what was asked is not given up for it");
	full = w.env.half_open_full;
	sd_send(&w, raw[0], 1, "0000 0001");
	sd_expect(raw[0], 1, "0000 0004");
	cr_expect_eq(w.env.half_open_full, full + 1);
	cr_assert_eq(sd_answer(&w.req[1], true, NULL, 0), 0);
	sd_free(&w.req[2]);
	sd_run(&w);
	cr_expect_eq(l->half_open, 1);
	sd_send(&w, raw[0], 1, "0000 0001");
	cr_expect_eq(w.nreq, 4);
	fake_sctp_lose(raw[0], DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(l->half_open, 0);
}

/* Associations that ask for nothing: the oldest of the address that has most goes for another. */
Test(sd_passive, attack_17_half_open_associations_leave_others_alone, .description = "5043-6.4-3")
{
	struct ddps_sd_assoc *flood[8], *slow, *raw;
	struct ddps_sd_listener *l;

	w.lparam.max_half_open = 8;
	fake_sctp_net.from = "198.51.100.7:9";
	slow = sd_raw_to_listener(&w);
	fake_sctp_net.from = "192.0.2.1:2";
	for (int i = 0; i < 7; i++)
		flood[i] = sd_raw_to_listener(&w);
	l = (struct ddps_sd_listener *)w.listener;
	cr_expect_eq(l->half_open, 8);
	cr_expect_eq(w.env.half_open_given_up, 0);
	fake_sctp_net.from = "[2001:db8::1]:2";
	raw = sd_raw_open(&w, 0);
	cr_expect_null(flood[0]->peer);
	cr_expect_not_null(flood[1]->peer);
	cr_expect_eq(w.env.half_open_given_up, 1);
	cr_expect_eq(l->half_open, 7);
	fake_sctp_net.from = "192.0.2.1:3";
	for (int i = 0; i < 20; i++)
		sd_raw_to_listener(&w);
	cr_expect_eq(w.env.half_open_given_up, 20);
	cr_expect_eq(l->half_open, 8);
	cr_expect_not_null(raw->peer);
	sd_send(&w, slow, 0, "0000 0001");
	sd_expect(slow, 0, "0000 0002");
}

Test(sd_passive, no_listener_any_more, .description = "5043-6.4-4")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	ddps_sctp_provider.listener_free(w.listener);
	w.listener = NULL;
	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0004");
	/* what was accepted lives on */
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[0].segments, 1);
}

/* ---- no session ---- */

Test(sd_passive, idle_drops, .description = "5043-6.6-2")
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	sd_send(&w, raw, 0, "0000 0004"); /* Terminate */
	sd_send(&w, raw, 0, "0000 0004");
	sd_send(&w, raw, 0, "0001 0001"); /* DDP-SSN is not 0 */
	sd_send(&w, raw, 0, "0001 0004");
	sd_send_segment(&w, raw, 0, 1, 0);
	sd_send(&w, raw, 0, "0000");
	cr_expect_eq(c->stats.dropped, 6);
	cr_expect_eq(c->npairs, 0);
	sd_expect_silence(raw);
	cr_expect_eq(w.nreq, 0);
}

Test(sd_passive, idle_answers_one_stray)
{
	static const char *const strays[] = { "0000 0002", "0000 0003", "0000 0008",
					      "0000 0005 0000", "0000 0004 00" };
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);

	for (uint16_t i = 0; i < 5; i++) {
		sd_send(&w, raw, i, strays[i]);
		sd_expect(raw, i, "0000 0004");
		cr_expect_eq(sd_state(&w, 0, i), DDPS_SD_IDLE);
		sd_send(&w, raw, i, strays[i]);
		sd_send_segment(&w, raw, i, 0, 0);
		sd_expect_silence(raw);
	}
	sd_send_segment(&w, raw, 9, 0, 0);
	sd_expect(raw, 9, "0000 0004");
	sd_send(&w, raw, 9, "0000 0001"); /* an Initiate is welcome, and renews the answer */
	sd_expect(raw, 9, "0000 0002");
	sd_send(&w, raw, 9, "0001 0004");
	sd_expect(raw, 9, "0001 0004");
	sd_send(&w, raw, 9, "0000 0002");
	sd_expect(raw, 9, "0000 0004");
}

Test(sd_passive, streams_without_partner, .description = "5043-8-d1 5043-4-d1")
{
	struct ddps_sd_assoc *raw;

	fake_sctp_net.out_streams = 10;
	raw = sd_raw_to_listener(&w);
	cr_expect_eq(sd_carrier_of(&w, 0)->usable, 10);
	sd_send(&w, raw, 10, "0000 0001");
	sd_send(&w, raw, 65535, "0000 0001");
	cr_expect_eq(w.nreq, 0);
	cr_expect_eq(sd_carrier_of(&w, 0)->stats.dropped, 2);
	sd_expect_silence(raw);
	sd_send(&w, raw, 9, "0000 0001");
	cr_expect_eq(w.nreq, 1);
}

/* ---- illegal input ---- */

/* @hex in state P1 kills the request, and only that. */
static void kills_request(const char *hex, const char *name)
{
	struct ddps_sd_assoc *raw;
	unsigned n = w.nreq;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	sd_send(&w, raw, 1, "0000 0001");
	sd_send(&w, raw, 0, hex);
	cr_expect_eq(w.req[n].closes, 1, "%s", name);
	cr_expect_eq(w.req[n + 1].closes, 0, "%s", name);
	sd_expect(raw, 0, "0000 0004");
	cr_expect_eq(sd_state(&w, n / 2, 0), DDPS_SD_LT, "%s", name);
	sd_expect_silence(raw);
}

Test(sd_passive, illegal_while_the_ulp_decides, .description = "5043-6.1-2 5043-6.1-1")
{
	kills_request("0001 0001", "Initiate again");
	kills_request("0001 0002", "Accept");
	kills_request("0001 0003", "Reject");
	kills_request("0001 0006 00000000", "Enhanced Accept");
	kills_request("0001 0007", "Enhanced Reject");
	kills_request("0001 0000", "code 0");
	kills_request("0001 ffff", "experimental code");
	kills_request("0001 0004 00", "Terminate with private data");
	kills_request("0000 0001", "the same DDP-SSN");
	kills_request("8001 0004", "DDP-SSN out of the window");
	kills_request("000100", "too short");
	cr_expect_eq(w.req[0].error.code, DDPS_E_PROTOCOL);
}

Test(sd_passive, segment_ahead_of_the_accept, .description = "5043-6.1-2")
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_PROTOCOL);
	sd_expect(raw, 0, "0000 0004");
	/* such a peer gives its side up without a Terminate; it may start over */
	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(w.nreq, 2);
}

/* @hex (or a segment) in state OPEN kills the session: one Terminate, then it can end. */
static void kills_open(const char *hex, uint32_t ppid)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[w.nreq - 1];
	bool placed = !strncmp(hex, "0001", 4); /* it had its turn */
	unsigned carrier = w.nreq - 1;

	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	if (ppid == DDPS_SD_PPID_CONTROL) {
		sd_send(&w, raw, 0, hex);
	} else {
		fake_sctp_raw_send(raw, 0, ppid, "\0\1\0\0", 4);
		sd_run(&w);
	}
	cr_expect_eq(u->closes, 1, "%s", hex);
	cr_expect_eq(u->error.code, DDPS_E_PROTOCOL, "%s: %s", hex, u->error.text);
	sd_expect(raw, 0, "0001 0004");
	sd_expect_silence(raw);
	cr_expect_eq(sd_state(&w, carrier, 0), DDPS_SD_LT);
	cr_expect_eq(sd_state(&w, carrier, 1), DDPS_SD_OPEN);
	/* what still comes for it is dropped, its Terminate completes it */
	sd_send_segment(&w, raw, 0, placed ? 2 : 1, 0);
	sd_send(&w, raw, 0, placed ? "0003 0004" : "0002 0004");
	cr_expect_eq(sd_state(&w, carrier, 0), DDPS_SD_IDLE, "%s", hex);
	cr_expect_eq(u->segments, 0);
	sd_expect_silence(raw);
	/* end of the association, so that the next starts from nothing */
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	w.nreq = carrier;
	sd_free(u);
	sd_free(u + 1);
}

Test(sd_passive, illegal_in_open, .description = "5043-6.1-2")
{
	static const char *const hex[] = {
		"0001 0001",	"0001 0005 00000000", "0001 0002",
		"0001 0003",	"0001 0006 00000000", "0001 0007 00000000",
		"0001 0000",	"0001 0008",	      "0001 ffff",
		"0001 0004 61", "0001 0005 0000",     "0000 0004", /* DDP-SSN was there already */
		"8001 0004",					   /* 32768 ahead */
	};

	for (size_t i = 0; i < sizeof(hex) / sizeof(hex[0]); i++)
		kills_open(hex[i], DDPS_SD_PPID_CONTROL);
}

Test(sd_passive, foreign_ppids_kill_the_session_not_the_association)
{
	kills_open("----", 0);
	kills_open("----", 18);
	cr_expect_null(strstr(w.log, "wrong order"));
	kills_open("----", 0x10000000);
	cr_expect(strstr(w.log, "PPID 0x10000000 is neither 16 nor 17: its octets are in the wrong "
				"order"),
		  "%s", w.log);
}

Test(sd_passive, many_foreign_ppids_end_the_association)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	for (int i = 0; i < 64; i++)
		fake_sctp_raw_send(raw, 5, 99, "x", 1);
	sd_run(&w);
	cr_expect_eq(raw->peer->aborts, 0);
	cr_expect_eq(w.req[0].closes, 0);
	fake_sctp_raw_send(raw, 5, 99, "x", 1);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_null(raw->peer);
}

Test(sd_passive, too_short_segment_message)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	fake_sctp_raw_send(raw, 0, DDPS_SD_PPID_SEGMENT, "\0", 1);
	sd_run(&w);
	cr_expect_eq(w.req[0].error.code, DDPS_E_TRUNCATED);
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_passive, segment_shorter_than_its_header_is_ddps_business)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	fake_sctp_raw_send(raw, 0, DDPS_SD_PPID_SEGMENT, "\0\1", 2);
	sd_run(&w);
	cr_expect_eq(w.req[0].segments, 1);
	cr_expect_eq(w.req[0].last_len, 0);
	cr_expect_eq(w.req[0].closes, 0);
}

Test(sd_passive, ordered_messages_are_taken, .description = "5043-8-d3")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	fake_sctp_ordered(raw, 0, DDPS_SD_PPID_SEGMENT, "\0\1\0\0\0\0", 6);
	sd_run(&w);
	cr_expect_eq(w.req[0].segments, 1);
	cr_expect_eq(sd_carrier_of(&w, 0)->stats.ordered, 1);
}

Test(sd_passive, message_after_terminate, .description = "5041-6.2.1-4")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	raw->peer->hold_dry = true; /* our Terminate has to wait for the Accept */
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_PEER_DONE);
	sd_send_segment(&w, raw, 0, 2, 0);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_PROTOCOL);
	cr_expect_eq(w.req[0].segments, 0);
	raw->peer->hold_dry = false;
	fake_sctp_poke(raw->peer);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

Test(sd_passive, message_beyond_terminate_that_came_earlier)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send_segment(&w, raw, 0, 2, 0);
	cr_expect_eq(w.req[0].segments, 0);
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(w.req[0].error.code, DDPS_E_PROTOCOL);
	cr_expect_eq(w.req[0].segments, 0);
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_passive, late_traffic_in_drain_is_dropped)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send(&w, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");
	raw->peer->hold_dry = true;
	sd_send(&w, raw, 0, "0000 0001"); /* a new session, ended immediately */
	sd_expect(raw, 0, "0000 0002");
	raw->peer->hold_dry = false;
	fake_sctp_poke(raw->peer);
	sd_run(&w);
	raw->hold = true; /* nothing is acknowledged now */
	sd_send(&w, raw, 0, "0001 0004");
	cr_assert_eq(sd_state(&w, 0, 0), DDPS_SD_DRAIN);
	sd_send(&w, raw, 0, "0002 0004");
	sd_send(&w, raw, 0, "0003 0001");
	sd_send_segment(&w, raw, 0, 7, 0);
	cr_expect_eq(sd_carrier_of(&w, 0)->stats.dropped, 3);
	sd_send(&w, raw, 0, "0000 0001"); /* but the peer may start over */
	cr_expect_eq(w.nreq, 3);
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	sd_expect(raw, 0, "0000 0002");
}

Test(sd_passive, peer_starts_over_without_its_terminate)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	sd_send_segment(&w, raw, 0, 1, 0);
	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	cr_assert_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, 0);
	cr_expect_eq(w.nreq, 2);
	sd_expect(raw, 0, "0000 0002");
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[1].segments, 1);
}

Test(sd_passive, peer_cannot_start_over_across_a_gap)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	sd_send_segment(&w, raw, 0, 2, 0); /* 1 is missing */
	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(w.nreq, 1);
	cr_expect_eq(u->error.code, DDPS_E_PROTOCOL);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
}
