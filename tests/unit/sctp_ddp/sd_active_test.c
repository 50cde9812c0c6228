/* SPDX-License-Identifier: BSD-2-Clause */
/* The active side of a session against a peer that sends single messages. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct sd_world w;
static struct sd_ulp u;

static void init(void)
{
	sd_world_init(&w);
	u = (struct sd_ulp){ 0 };
}

static void fini(void)
{
	sd_free(&u);
	sd_world_fini(&w);
}

TestSuite(sd_active, .init = init, .fini = fini, .timeout = 30);

/* ---- legal sequences ---- */

Test(sd_active, accept_segments_terminate,
     .description = "5043-6.2-d1 5043-6.2-1 5043-6.1-d1 5043-10-1 5043-6.6-2")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	struct fake_sctp_msg *m;

	u.to_send = 2;
	u.llp->ops->kick(u.llp);
	sd_run(&w);
	sd_expect_silence(raw); /* nothing before the Accept is here */
	sd_send(&w, raw, 0, "0000 0002 6f6b");
	cr_expect_eq(u.answers, 1);
	cr_expect_not(u.rejected);
	cr_expect_not(u.enhanced);
	cr_expect_eq(u.pd_len, 2);
	cr_expect_arr_eq(u.pd, "ok", 2);
	for (uint8_t i = 0; i < 2; i++) {
		m = fake_sctp_raw_take(raw);
		cr_assert(m);
		cr_expect_eq(m->ppid, DDPS_SD_PPID_SEGMENT);
		cr_expect(m->unordered);
		cr_expect_eq(m->len, 2 + SD_SEG_HDR);
		cr_expect_eq(m->data[0], 0);
		cr_expect_eq(m->data[1], i + 1);
		cr_expect_eq(m->data[5], i);
		free(m);
	}
	cr_expect_eq(u.done, 2);
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(u.segments, 1);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	sd_expect(raw, 0, "0003 0004");
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, 0);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	sd_expect_silence(raw);
}

Test(sd_active, rejected, .description = "5043-6.3-d2 5043-5.2.3-6")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send(&w, raw, 0, "0000 0003 6e6f");
	cr_expect_eq(u.answers, 1);
	cr_expect(u.rejected);
	cr_expect_eq(u.pd_len, 2);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_REJECTED);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	sd_expect_silence(raw);
}

Test(sd_active, refused)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send(&w, raw, 0, "0000 0004");
	cr_expect_eq(u.answers, 0);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_REFUSED);
	cr_expect_eq(u.error.sys_errno, 0);
	cr_expect_null(strstr(u.error.text, "RFC 6581"));
	cr_expect_str_eq(u.error.peer, "127.0.0.1:2");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	sd_expect_silence(raw);
}

Test(sd_active, enhanced_answers, .description = "6581-7-d1 6581-7-d3 6581-7-9 6581-7-7")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, true);

	sd_send(&w, raw, 0, "0000 0006 80088010");
	cr_expect_eq(u.answers, 1);
	cr_expect(u.enhanced);
	cr_expect_eq(u.pd_len, 4);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_active, enhanced_reject_with_and_without_word)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, true);

	sd_send(&w, raw, 0, "0000 0007 80108020");
	cr_expect(u.rejected);
	cr_expect(u.enhanced);
	cr_expect_eq(u.pd_len, 4);
	sd_free(&u);
	u = (struct sd_ulp){ 0 };
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, true, "wordx", 5), 0);
	sd_run(&w);
	sd_expect(raw, 2, "0000 0005 776f7264 78");
	sd_send(&w, raw, 2, "0000 0007");
	cr_expect(u.rejected);
	cr_expect(u.enhanced);
	cr_expect_eq(u.pd_len, 0);
}

Test(sd_active, plain_reject_of_an_enhanced_request)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, true);

	sd_send(&w, raw, 0, "0000 0003");
	cr_expect(u.rejected);
	cr_expect_not(u.enhanced);
	cr_expect_eq(u.error.code, DDPS_E_REJECTED);
}

Test(sd_active, peer_without_rfc6581_and_plain_retry_on_the_same_association)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, true);

	sd_send(&w, raw, 0, "0000 0004");
	cr_expect_eq(u.error.code, DDPS_E_REFUSED);
	cr_expect(strstr(u.error.text, "RFC 6581"));
	sd_free(&u);
	u = (struct sd_ulp){ 0 };
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect_eq(fake_sctp_net.connects, 1);
	sd_expect(raw, 2, "0000 0001");
}

Test(sd_active, both_terminate_simultaneously)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send(&w, raw, 0, "0000 0002");
	u.llp->ops->shutdown(u.llp);
	sd_send(&w, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, 0);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

/* ---- illegal input ---- */

static void kills_initiate(const char *hex, bool enhanced)
{
	struct ddps_sd_assoc *raw;
	bool placed = !strncmp(hex, "0000", 4);
	unsigned before = fake_sctp_net.connects;

	u = (struct sd_ulp){ 0 };
	raw = sd_raw_initiated(&w, &u, enhanced);
	sd_send(&w, raw, 0, hex);
	cr_expect_eq(u.answers, 0, "%s", hex);
	cr_expect_eq(u.closes, 1, "%s", hex);
	cr_expect_eq(u.error.code, DDPS_E_PROTOCOL, "%s: %s", hex, u.error.text);
	sd_expect(raw, 0, "0001 0004");
	sd_expect_silence(raw);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
	sd_send(&w, raw, 0, placed ? "0001 0004" : "0000 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE, "%s", hex);
	sd_expect_silence(raw);
	sd_free(&u);
	fake_sctp_lose(raw, DDPS_E_RESET);
	sd_run(&w);
	cr_expect_eq(fake_sctp_net.connects, before + 1);
}

Test(sd_active, illegal_answers, .description = "5043-6.1-2 6581-7-d3")
{
	kills_initiate("0000 0006 00000000", false);
	kills_initiate("0000 0007 00000000", false);
	kills_initiate("0000 0002", true);
	kills_initiate("0000 0006 0000", true);
	kills_initiate("0000 0001", false); /* crossing */
	kills_initiate("0000 0005 00000000", true);
	kills_initiate("0000 0000", false);
	kills_initiate("0000 0008", false);
	kills_initiate("0000 ffff", false);
	kills_initiate("0000 0004 00", false);
	kills_initiate("8000 0002", false); /* out of the window */
}

Test(sd_active, segment_instead_of_an_answer)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send_segment(&w, raw, 0, 0, 0);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_PROTOCOL);
	cr_expect_eq(u.segments, 0);
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_active, error_terminate_waits_for_the_initiate, .description = "5043-6.6-1 5043-6.6-3")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	raw->peer->hold_dry = true;
	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(u.closes, 1);
	sd_expect_silence(raw);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_ERR);
	sd_send(&w, raw, 0, "0001 0004"); /* the peer found the same */
	sd_expect_silence(raw);
	raw->peer->hold_dry = false;
	fake_sctp_poke(raw->peer);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

Test(sd_active, second_answer)
{
	static const char *const second[] = { "0001 0002", "0001 0003", "0001 0001", "0001 0006",
					      "0001 0004 00" };

	for (size_t i = 0; i < 5; i++) {
		struct ddps_sd_assoc *raw;

		u = (struct sd_ulp){ 0 };
		raw = sd_raw_initiated(&w, &u, false);
		sd_send(&w, raw, 0, "0000 0002");
		sd_send(&w, raw, 0, second[i]);
		cr_expect_eq(u.answers, 1);
		cr_expect_eq(u.closes, 1);
		cr_expect_eq(u.error.code, DDPS_E_PROTOCOL);
		sd_expect(raw, 0, "0001 0004");
		sd_free(&u);
		fake_sctp_lose(raw, DDPS_E_RESET);
		sd_run(&w);
	}
}

/* ---- ahead of the Accept ---- */

Test(sd_active, messages_that_overtake_the_accept, .description = "5043-6.1-d2 5043-6.1-2")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	for (uint16_t i = 5; i > 0; i--)
		sd_send_segment(&w, raw, 0, i, (uint32_t)i - 1);
	sd_send(&w, raw, 0, "0006 0004");
	cr_expect_eq(u.segments, 0);
	sd_send(&w, raw, 0, "0000 0002");
	cr_expect_eq(u.segments, 5);
	cr_expect_not(u.out_of_order);
	cr_expect_eq(u.peer_closes, 1);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, 0);
}

Test(sd_active, nothing_is_delivered_before_open)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.no_open = true;
	sd_send_segment(&w, raw, 0, 1, 0);
	sd_send(&w, raw, 0, "0000 0002");
	sd_send_segment(&w, raw, 0, 2, 1);
	sd_send_segment(&w, raw, 0, 3, 2);
	cr_expect_eq(u.answers, 1);
	cr_expect_eq(u.segments, 0);
	u.to_send = 1;
	u.llp->ops->kick(u.llp);
	sd_expect_silence(raw);
	u.llp->ops->open(u.llp);
	cr_expect_eq(u.segments, 0); /* never inside a call */
	sd_run(&w);
	cr_expect_eq(u.segments, 3);
	cr_expect_not(u.out_of_order);
	cr_expect_eq(u.done, 1);
}

Test(sd_active, late_open_with_nothing_held_before)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.no_open = true;
	sd_send(&w, raw, 0, "0000 0002");
	sd_send_segment(&w, raw, 0, 1, 0);
	sd_send_segment(&w, raw, 0, 2, 1);
	cr_expect_eq(u.segments, 0);
	u.llp->ops->open(u.llp);
	u.llp->ops->open(u.llp);
	sd_run(&w);
	cr_expect_eq(u.segments, 2);
	cr_expect_not(u.out_of_order);
}

/* A responder need not wait for anything once it has accepted, and the Accept may be lost once. */
Test(sd_active, much_may_overtake_the_accept)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	uint16_t n = 2 * DDPS_SD_EARLY_MAX;

	for (uint16_t i = 1; i < n; i++)
		sd_send_segment(&w, raw, 0, i, i - 1u);
	for (uint16_t i = 0; i < 4; i++)
		sd_push_segment(raw, 0, n + i, n + i - 1u, 60000);
	sd_run(&w);
	cr_expect_eq(u.closes, 0);
	cr_expect_eq(u.segments, 0);
	cr_expect_gt(sd_carrier_of(&w, 0)->held, DDPS_SD_EARLY_OCTETS);
	sd_send(&w, raw, 0, "0000 0002");
	cr_expect_eq(u.segments, n + 3u);
	cr_expect_not(u.out_of_order);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, 0);
}

Test(sd_active, what_overtakes_the_accept_has_the_bound_of_a_session)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	size_t n = DDPS_SD_HELD_SESSION / ddps_sd_order_cost(60002);

	for (uint16_t i = 1; i <= n; i++)
		sd_push_segment(raw, 0, i, i, 60000);
	sd_run(&w);
	cr_expect_eq(u.closes, 0);
	sd_push_segment(raw, 0, (uint16_t)(n + 1), 0, 60000);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_LIMIT);
}

Test(sd_active, early_messages_are_counted_when_given_up)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.llp->ops->abort(u.llp);
	sd_run(&w);
	for (uint16_t i = 1; i <= DDPS_SD_EARLY_MAX; i++)
		sd_send_segment(&w, raw, 0, i, 0);
	sd_expect_silence(raw);
	sd_send_segment(&w, raw, 0, DDPS_SD_EARLY_MAX + 1, 0);
	sd_expect(raw, 0, "0001 0004");
}

/* ---- giving up ---- */

Test(sd_active, given_up_then_accepted)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.llp->ops->abort(u.llp);
	cr_expect_eq(u.closes, 0); /* told from the loop */
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_CLOSED);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_A1C);
	sd_expect_silence(raw); /* an answer is waited for */
	sd_send_segment(&w, raw, 0, 1, 0);
	sd_send(&w, raw, 0, "0000 0002");
	cr_expect_eq(u.answers, 0);
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	cr_expect_eq(u.segments, 0);
}

Test(sd_active, given_up_then_rejected_or_refused)
{
	static const char *const answer[] = { "0000 0003", "0000 0004" };
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	for (unsigned i = 0; i < 2; i++) {
		sd_free(&u);
		sd_run(&w);
		sd_send(&w, raw, (uint16_t)(2 * i), answer[i]);
		cr_expect_eq(sd_state(&w, 0, (uint16_t)(2 * i)), DDPS_SD_IDLE);
		sd_expect_silence(raw);
		u = (struct sd_ulp){ 0 };
		cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
		sd_run(&w);
		sd_expect(raw, (uint16_t)(2 * i + 2), "0000 0001");
	}
}

Test(sd_active, given_up_then_illegal)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_free(&u);
	sd_send(&w, raw, 0, "0000 0001");
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
}

Test(sd_active, no_answer_in_time)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_pair *p;

	w.param.setup_ms = 10;
	raw = sd_raw_initiated(&w, &u, false);
	p = sd_pair_of(&u);
	sd_run_until(&w, &u.closes);
	cr_expect_eq(u.error.code, DDPS_E_TIMEDOUT);
	/* a second period, then a Terminate anyway */
	cr_expect_eq(p->sm.state, DDPS_SD_A1C);
	sd_run_until(&w, &raw->narrived);
	cr_expect_eq(p->sm.state, DDPS_SD_A1T);
	sd_expect(raw, 0, "0001 0004");
	sd_send(&w, raw, 0, "0000 0002");
	cr_expect_eq(p->sm.state, DDPS_SD_LT);
	sd_expect_silence(raw);
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

Test(sd_active, an_initiate_that_never_left_leaves_nothing)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	struct sd_ulp v = { 0 };

	raw->hold = true;
	raw->peer->room = 1;
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	sd_free(&v);
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, "b", 1), 0);
	sd_run(&w); /* blocked */
	cr_expect_eq(raw->peer->agains, 1);
	sd_free(&v);
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	sd_expect(raw, 2, "0000 0001");
	sd_expect_silence(raw);
	cr_expect_eq(sd_state(&w, 0, 4), DDPS_SD_IDLE);
}

Test(sd_active, freed_in_the_answer)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.free_on_answer = true;
	sd_send_segment(&w, raw, 0, 1, 0);
	sd_send(&w, raw, 0, "0000 0002");
	cr_expect_eq(u.answers, 1);
	cr_expect_eq(u.segments, 0);
	cr_expect_eq(u.closes, 0);
	sd_expect(raw, 0, "0001 0004");
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

Test(sd_active, freed_in_a_rejecting_answer)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.free_on_answer = true;
	sd_send(&w, raw, 0, "0000 0003");
	cr_expect_eq(u.answers, 1);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	sd_expect_silence(raw);
}

Test(sd_active, peer_never_closes)
{
	struct ddps_sd_assoc *raw;
	struct sd_ulp other = { 0 };

	w.param.close_ms = 10;
	raw = sd_raw_initiated(&w, &u, false);
	sd_send(&w, raw, 0, "0000 0002");
	cr_assert_eq(sd_connect(&w, &other, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	sd_expect(raw, 2, "0000 0001");
	u.llp->ops->shutdown(u.llp);
	sd_run_until(&w, &u.closes);
	cr_expect_eq(u.error.code, DDPS_E_TIMEDOUT);
	sd_expect(raw, 0, "0001 0004");
	sd_expect_silence(raw);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
	/* its end mark completes the pair even now */
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	cr_expect_eq(raw->peer->aborts, 0);
	sd_free(&other);
}

Test(sd_active, peer_never_closes_the_only_session)
{
	struct ddps_sd_assoc *raw;

	w.param.close_ms = 10;
	raw = sd_raw_initiated(&w, &u, false);
	sd_send(&w, raw, 0, "0000 0002");
	u.llp->ops->shutdown(u.llp);
	sd_run_until(&w, &u.closes);
	cr_expect_eq(u.error.code, DDPS_E_TIMEDOUT);
	cr_expect_null(sd_carrier_of(&w, 0), "its association is aborted");
}

/* The layer above gives up while a segment is shown to it, and SCTP takes no more: the association
 * goes, but not below that segment. */
Test(sd_active, gives_up_stuck_from_inside_a_segment)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	u.abort_on_segment = true;
	sd_send(&w, raw, 0, "0000 0002");
	sd_carrier_of(&w, 0)->blocked = true;
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(u.segments, 1);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_CLOSED);
	cr_expect_null(sd_carrier_of(&w, 0), "its association is aborted");
}

/* ---- both sides send an Initiate on one id ---- */

Test(sd_active, crossing_initiates, .description = "5043-6.1-2")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, true);

	sd_send(&w, raw, 0, "0000 0001");
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_PROTOCOL);
	sd_expect(raw, 0, "0001 0004");
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	sd_expect_silence(raw);
	cr_expect_eq(raw->peer->aborts, 0);
}
