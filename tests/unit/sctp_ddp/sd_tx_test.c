/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: turns, back-pressure, the limit of unacknowledged messages, late Terminates. */
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

TestSuite(sd_tx, .init = init, .fini = fini, .timeout = 30);

static void let_sd_tx_dry(struct ddps_sd_assoc *a, bool on)
{
	a->hold_dry = !on;
	fake_sctp_poke(a);
	sd_run(&w);
}

/* The next message is the segment with this DDP-SSN and number. */
static void expect_segment(struct ddps_sd_assoc *raw, uint16_t stream, uint16_t ssn,
			   uint32_t number)
{
	struct fake_sctp_msg *m = fake_sctp_raw_take(raw);

	cr_assert(m, "no segment %u", number);
	cr_assert_eq(m->ppid, DDPS_SD_PPID_SEGMENT);
	cr_assert_eq(m->stream, stream);
	cr_assert_eq(m->data[0] << 8 | m->data[1], ssn);
	cr_assert_eq((uint32_t)(m->data[2] << 24 | m->data[3] << 16 | m->data[4] << 8 | m->data[5]),
		     number);
	free(m);
}

/* What is put together leaves when all of a turn is there, and nothing else asks for it. */
Test(sd_tx, each_turn_that_sends_is_flushed)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 7);
	struct sd_ulp *u = &w.req[0];
	unsigned before = raw->peer->flushes;

	cr_expect_eq(before, 1, "the Accept");
	u->to_send = 3;
	u->llp->ops->kick(u->llp);
	cr_expect_eq(u->done, 3);
	cr_expect_eq(raw->peer->flushes, before + 1);
	u->llp->ops->kick(u->llp);
	sd_run(&w);
	cr_expect_eq(raw->peer->flushes, before + 1);
}

/* Whoever posts when one is sent does not get deeper and deeper. */
Test(sd_tx, a_kick_inside_goes_on_behind)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 7);
	struct sd_ulp *u = &w.req[0];

	u->to_send = 20;
	u->kick_on_done = true;
	u->llp->ops->kick(u->llp);
	cr_expect_eq(u->done, 20);
	sd_run(&w);
	for (unsigned i = 0; i < 20; i++)
		expect_segment(raw, 7, (uint16_t)(i + 1), i);
	sd_expect_silence(raw);
}

Test(sd_tx, segment_is_one_unordered_message, .description = "5043-4-d2 5043-10-1 5043-5.2.1-d1")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 7);
	struct sd_ulp *u = &w.req[0];
	struct fake_sctp_msg *m;

	u->to_send = 1;
	u->pay_len = 1000;
	u->llp->ops->kick(u->llp);
	cr_expect_eq(u->done, 1); /* taken over inside the call */
	sd_run(&w);
	m = fake_sctp_raw_take(raw);
	cr_assert(m);
	cr_expect(m->unordered);
	cr_expect_eq(m->stream, 7);
	cr_expect_eq(m->len, 2 + SD_SEG_HDR + 1000);
	free(m);
	sd_expect_silence(raw);
}

Test(sd_tx, kick_before_the_accept_has_left)
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	w.req[0].to_send = 1;
	cr_assert_eq(sd_answer(&w.req[0], false, NULL, 0), 0);
	w.req[0].llp->ops->kick(w.req[0].llp);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0002");
	expect_segment(raw, 0, 1, 0);
}

Test(sd_tx, blocked_segment_is_kept)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	raw->hold = true;
	raw->peer->room = 3;
	u->to_send = 5;
	u->llp->ops->kick(u->llp);
	cr_expect_eq(u->done, 3);
	cr_expect_eq(u->pulled, 4); /* one is pulled and waits */
	u->llp->ops->kick(u->llp);
	cr_expect_eq(u->pulled, 4);
	cr_expect_eq(raw->peer->agains, 1); /* SCTP is not asked again before it says so */
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	for (uint16_t i = 0; i < 5; i++)
		expect_segment(raw, 0, (uint16_t)(i + 1), i);
	cr_expect_eq(u->done, 5);
}

Test(sd_tx, blocked_segment_of_an_aborted_session_is_not_sent)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	raw->hold = true;
	raw->peer->room = 1;
	u->to_send = 5;
	u->llp->ops->kick(u->llp);
	cr_expect_eq(u->pulled, 2);
	cr_expect_not_null(sd_carrier_of(&w, 0)->tx_seg);
	sd_free(u); /* its memory is gone */
	cr_expect_null(sd_carrier_of(&w, 0)->tx_seg, "and the room for it is another's");
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	expect_segment(raw, 0, 1, 0);
	sd_expect(raw, 0, "0002 0004"); /* no gap */
	sd_expect_silence(raw);
}

Test(sd_tx, control_messages_pass_back_pressure_in_order)
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);

	raw->hold = true;
	raw->peer->room = 1;
	for (uint16_t s = 0; s < 10; s++)
		sd_send(&w, raw, s, "0000 0001");
	cr_expect_eq(w.nreq, 10);
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	for (uint16_t s = 0; s < 10; s++)
		sd_expect(raw, s, "0000 0002");
}

/* The peer has begun anew before it left: it is of no session any more. */
Test(sd_tx, control_message_of_a_session_that_was_is_not_sent)
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	raw->hold = true;
	raw->peer->room = 1;
	sd_send(&w, raw, 1, "0000 0001");
	cr_assert_eq(sd_answer(&w.req[0], false, NULL, 0), 0); /* takes the room */
	sd_run(&w);
	sd_send(&w, raw, 0, "0000 0001");
	cr_assert_eq(sd_answer(&w.req[1], true, "no", 2), 0);
	sd_run(&w);
	cr_expect_eq(raw->peer->agains, 1);
	sd_send(&w, raw, 0, "0000 0001");
	cr_assert_eq(w.nreq, 3);
	cr_expect_eq(w.req[1].closes, 1);
	cr_expect_eq(w.req[1].error.code, 0);
	cr_expect_str_eq(w.req[1].error.text, "session closed");
	sd_free(&w.req[2]);
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	sd_expect(raw, 1, "0000 0002");
	sd_expect(raw, 0, "0000 0004");
	sd_expect_silence(raw);
}

Test(sd_tx, segment_above_the_limit_is_refused, .description = "5043-9-4")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	cr_expect_eq(u->llp->ops->mulpdu(u->llp), 1430);
	u->to_send = 1;
	u->pay_len = 1431;
	u->llp->ops->kick(u->llp);
	sd_run(&w);
	cr_expect_eq(u->done, 0);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_TOO_LONG);
	sd_expect(raw, 0, "0001 0004");
}

/* Behind the end of a long message, as long as there is room for what must be whole; not behind small ones. */
Test(sd_tx, a_segment_fills_the_packet_that_another_one_began, .description = "5043-9-1")
{
	static const struct {
		size_t first, room, asked;
	} row[] = { { 1430, 1400, 1378 }, { 1430, 201, 178 },  { 1430, 152, 130 },
		    { 1430, 148, 1430 },  { 1430, 0, 1430 },   { 1430, 1452, 1430 },
		    { 1430, 2000, 1430 }, { 1400, 1400, 1430 } };
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		raw->peer->packet_room = row[i].room;
		u->pay_len = row[i].first - SD_SEG_HDR;
		u->to_send += 2;
		u->llp->ops->kick(u->llp);
		sd_run(&w);
		cr_expect_eq(u->done, u->to_send);
		cr_expect_eq(u->asked, row[i].asked, "%zu: %zu", i, u->asked);
		cr_expect_eq(u->llp->ops->mulpdu(u->llp), 1430);
	}
}

Test(sd_tx, mulpdu_follows_the_path_and_the_parameter, .description = "5043-9-1")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];
	struct ddps_conn_info info = { 0 };

	u->llp->ops->info(u->llp, &info);
	ddps_info_text(&info);
	cr_expect_eq(info.mulpdu, 1430);
	cr_expect_eq(info.transport, DDPS_TRANSPORT_SCTP);
	cr_expect_str_eq(info.sctp.backend, "fake");
	cr_expect_eq(info.sctp.stream, 0);
	cr_expect_not(info.initiator);
	cr_expect_str_eq(info.peer, "127.0.0.1:2");
	raw->peer->info.max_user_data = 8952;
	w.param.max_mulpdu = 4000;
	sd_send(&w, raw, 1, "0000 0001");
	cr_expect_eq(w.req[1].llp->ops->mulpdu(w.req[1].llp), 4000);
	cr_expect_eq(u->llp->ops->mulpdu(u->llp), 8930);
}

Test(sd_tx, send_error_ends_with_the_association)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	u->to_send = 3;
	fake_sctp_lose(raw, DDPS_E_RESET);
	u->llp->ops->kick(u->llp);
	u->llp->ops->kick(u->llp);
	cr_expect_eq(u->pulled, 1); /* once refused, no more is asked for */
	cr_expect_eq(u->done, 0);
	cr_expect_eq(u->closes, 0);
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_RESET);
}

/* ---- acknowledgements ---- */

Test(sd_tx, terminate_waits_for_the_accept, .description = "5043-6.6-1")
{
	struct ddps_sd_assoc *raw;
	struct sd_ulp *u = &w.req[0];

	fake_sctp_net.hold_dry = true;
	raw = sd_raw_open(&w, 0);
	u->to_send = 1;
	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	expect_segment(raw, 0, 1, 0);
	sd_expect_silence(raw);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_OPEN);
	cr_expect_eq(raw->peer->asks, 1);
	/* segments of the peer prove nothing, and are still taken */
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(u->segments, 1);
	sd_expect_silence(raw);
	let_sd_tx_dry(raw->peer, true);
	sd_expect(raw, 0, "0002 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_LT);
}

Test(sd_tx, answering_terminate_waits_for_the_accept, .description = "5043-6.6-1")
{
	struct ddps_sd_assoc *raw;

	fake_sctp_net.hold_dry = true;
	raw = sd_raw_open(&w, 0);
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(w.req[0].peer_closes, 1);
	sd_expect_silence(raw);
	cr_expect_eq(w.req[0].closes, 0);
	let_sd_tx_dry(raw->peer, true);
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, 0);
}

Test(sd_tx, no_segments_while_a_terminate_waits)
{
	struct ddps_sd_assoc *raw;

	fake_sctp_net.hold_dry = true;
	raw = sd_raw_open(&w, 0);
	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	w.req[0].llp->ops->shutdown(w.req[0].llp);
	sd_run(&w);
	w.req[1].to_send = 3;
	w.req[1].llp->ops->kick(w.req[1].llp);
	cr_expect_eq(w.req[1].done, 0); /* or the acknowledgement might never come */
	let_sd_tx_dry(raw->peer, true);
	sd_expect(raw, 0, "0001 0004");
	for (uint16_t i = 0; i < 3; i++)
		expect_segment(raw, 1, (uint16_t)(i + 1), i);
}

Test(sd_tx, a_pair_in_drain_gets_its_acknowledgement_from_a_busy_association)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_carrier *c;

	raw = sd_raw_open(&w, 0);
	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	c = sd_carrier_of(&w, 0);
	raw->peer->hold_dry = true;
	sd_send(&w, raw, 2, "0000 0002"); /* a stray: answered, then DRAIN */
	sd_expect(raw, 2, "0000 0004");
	cr_assert_eq(sd_state(&w, 0, 2), DDPS_SD_DRAIN);
	w.req[1].to_send = 1;
	w.req[1].llp->ops->kick(w.req[1].llp);
	cr_expect_eq(w.req[1].done, 1); /* patience first */
	cr_assert(ddps_timer_runs(c->quiet_timer));
	ddps_timer_start(w.env.loop, c->quiet_timer, 0); /* the time is up */
	sd_run(&w);
	cr_assert(c->quiet);
	w.req[1].to_send = 2;
	w.req[1].llp->ops->kick(w.req[1].llp);
	cr_expect_eq(w.req[1].done, 1);
	let_sd_tx_dry(raw->peer, true);
	cr_expect_eq(w.req[1].done, 2);
	cr_expect_eq(sd_state(&w, 0, 2), DDPS_SD_IDLE);
	cr_expect_not(c->quiet);
}

/* A backend that reports acknowledgements by itself has reported the last one before. */
Test(sd_tx, a_pair_whose_messages_have_arrived_drains_immediately, .description = "5043-6.6-4")
{
	static struct ddps_sd_backend tells;
	static struct sd_ulp u;
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	tells = *c->b;
	tells.acks = true;
	c->b = &tells;
	ddps_sd_tx_acked(c, c->sent);
	sd_send(&w, raw, 0, "0000 0003");
	cr_expect(u.rejected);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	sd_free(&u);
}

Test(sd_tx, in_flight_limit, .description = "5043-10-d1 5043-10-3")
{
	struct ddps_sd_assoc *raw;
	struct sd_ulp *u = &w.req[0];

	fake_sctp_net.hold_dry = true;
	raw = sd_raw_open(&w, 0);
	u->to_send = 100000;
	u->llp->ops->kick(u->llp);
	sd_run(&w);
	cr_expect_eq(u->done, DDPS_SD_IN_FLIGHT_MAX - 1); /* and the Accept */
	cr_expect_eq(raw->peer->asks, 1);
	let_sd_tx_dry(raw->peer, true);
	cr_expect_eq(u->done, 100000);
	for (uint32_t i = 0; i < 100000; i++)
		expect_segment(raw, 0, (uint16_t)(i + 1), i);
	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	sd_expect(raw, 0, "86a1 0004"); /* 100001 modulo 65536 */
}

/* A backend that reports each acknowledgement: as long as fewer are under way than the limit, nothing
 * waits, also where DDP-SSNs begin anew. */
Test(sd_tx, no_pause_at_32767, .description = "5043-10-d1")
{
	static struct ddps_sd_backend tells;
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	struct sd_ulp *u = &w.req[0];
	uint32_t taken = 0;

	tells = *c->b;
	tells.acks = true;
	c->b = &tells;
	for (uint32_t i = 0; i < 150000; i++) {
		u->to_send = i + 1;
		u->llp->ops->kick(u->llp);
		cr_assert_eq(u->done, i + 1, "message %u waits", i);
		if (c->sent > 128)
			ddps_sd_tx_acked(c, c->sent - 128);
		if (i % 128 == 127) {
			sd_run(&w);
			for (; taken <= i; taken++)
				expect_segment(raw, 0, (uint16_t)(taken + 1), taken);
		}
	}
	cr_expect_eq(raw->peer->asks, 0, "nobody asks whether all has arrived");
	cr_expect_not(c->quiet);
}

Test(sd_tx, terminate_counts_for_the_limit, .description = "5043-10-d1")
{
	struct ddps_sd_assoc *raw;
	struct sd_ulp *u = &w.req[0];

	raw = sd_raw_open(&w, 0);
	u->llp->ops->kick(u->llp);
	/* the Accept known to be there */
	sd_send(&w, raw, 1, "0000 0002");
	sd_expect(raw, 1, "0000 0004");
	cr_assert_eq(sd_carrier_of(&w, 0)->acked, sd_carrier_of(&w, 0)->sent);
	let_sd_tx_dry(raw->peer, false);
	u->to_send = DDPS_SD_IN_FLIGHT_MAX;
	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	cr_expect_eq(u->done, DDPS_SD_IN_FLIGHT_MAX);
	for (uint32_t i = 0; i < DDPS_SD_IN_FLIGHT_MAX; i++)
		expect_segment(raw, 0, (uint16_t)(i + 1), i);
	sd_expect_silence(raw);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_OPEN);
	let_sd_tx_dry(raw->peer, true);
	sd_expect(raw, 0, "8000 0004");
}

/* An abort asks for a Terminate where the limit is reached: it waits, and does not overtake. */
Test(sd_tx, a_terminate_for_an_abort_counts_for_the_limit, .description = "5043-10-d1")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);
	struct sd_ulp *u = &w.req[0];

	sd_send(&w, raw, 1, "0000 0002"); /* the Accept known to be there */
	sd_expect(raw, 1, "0000 0004");
	sd_send(&w, raw, 2, "0000 0001"); /* a session that keeps the association */
	sd_expect(raw, 2, "0000 0002");
	let_sd_tx_dry(raw->peer, false);
	u->to_send = DDPS_SD_IN_FLIGHT_MAX;
	u->llp->ops->kick(u->llp);
	sd_run(&w);
	cr_assert_eq(u->done, DDPS_SD_IN_FLIGHT_MAX);
	cr_assert_leq(sd_pair_of(u)->ctl_seq, c->acked);
	u->llp->ops->abort(u->llp);
	sd_run(&w);
	cr_expect_eq(u->closes, 1);
	for (uint32_t i = 0; i < DDPS_SD_IN_FLIGHT_MAX; i++)
		expect_segment(raw, 0, (uint16_t)(i + 1), i);
	sd_expect_silence(raw);
	let_sd_tx_dry(raw->peer, true);
	sd_expect(raw, 0, "8000 0004");
}

Test(sd_tx, what_was_sent_since_the_question_is_acknowledged_too, .description = "5043-6.6-4")
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	raw->hold = true;
	sd_send(&w, raw, 0, "0000 0002"); /* stray: Terminate and DRAIN */
	cr_assert(c->asked);
	sd_send(&w, raw, 1, "0000 0002");
	cr_expect_eq(raw->peer->asks, 1);
	raw->hold = false;
	fake_sctp_poke(raw);
	sd_run(&w);
	cr_expect_eq(raw->peer->asks, 1);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	cr_expect_eq(sd_state(&w, 0, 1), DDPS_SD_IDLE);
}
