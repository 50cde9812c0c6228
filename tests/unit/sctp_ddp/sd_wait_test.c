/* SPDX-License-Identifier: BSD-2-Clause */
/* What waits for acknowledgements or for its turn, where one by one is counted. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct sd_world w;
static struct sd_ulp u;
static struct ddps_sd_assoc *raw;
static struct ddps_sd_carrier *c;

/* Session 0 is open, and its Accept has left. */
static void init(void)
{
	sd_world_init(&w);
	raw = sd_raw_open(&w, 0);
	c = sd_carrier_of(&w, 0);
}

static void fini(void)
{
	sd_free(&u);
	sd_world_fini(&w);
}

TestSuite(sd_wait, .init = init, .fini = fini, .timeout = 30);

static const struct ddps_sd_assoc_up *const tell = &ddps_sd_carrier_up;

/* Acknowledgements are reported one by one, by ddps_sd_tx_acked(). */
static void tells_each(void)
{
	static struct ddps_sd_backend tells;

	tells = *c->b;
	tells.acks = true;
	c->b = &tells;
}

static void let_sd_wait_dry(bool on)
{
	raw->peer->hold_dry = !on;
	fake_sctp_poke(raw->peer);
	sd_run(&w);
}

static void post_sd_wait(struct sd_ulp *s, unsigned n)
{
	s->to_send += n;
	s->llp->ops->kick(s->llp);
}

/* One more session. */
static struct sd_ulp *open_on_sd_wait(uint16_t stream)
{
	sd_send(&w, raw, stream, "0000 0001");
	sd_expect(raw, stream, "0000 0002");
	return &w.req[w.nreq - 1];
}

/* Where the next message came, and that it is a segment. */
static uint16_t segment(void)
{
	struct fake_sctp_msg *m = fake_sctp_raw_take(raw);
	uint16_t stream;

	cr_assert(m);
	cr_assert_eq(m->ppid, DDPS_SD_PPID_SEGMENT);
	stream = m->stream;
	free(m);
	return stream;
}

static void room_for(unsigned n)
{
	raw->hold = n != 0;
	raw->peer->room = n;
	fake_sctp_poke(raw);
	sd_run(&w);
}

/* ---- what is acknowledged ---- */

/* Each looks at its own message: the first in the line may have to wait for longer. */
Test(sd_wait, each_waits_for_its_own_message, .description = "5043-6.6-1 5043-6.6-4")
{
	struct sd_ulp *s = &w.req[0];

	tells_each();
	sd_send(&w, raw, 5, "0000 0002"); /* a stray: the second message, then DRAIN */
	sd_expect(raw, 5, "0000 0004");
	cr_assert_eq(sd_state(&w, 0, 5), DDPS_SD_DRAIN);
	s->llp->ops->shutdown(s->llp); /* its Terminate waits for the first, the Accept */
	sd_run(&w);
	sd_expect_silence(raw);
	cr_expect_eq(c->ndry, 2);
	tell->acked(c, 1);
	sd_run(&w);
	cr_expect_eq(sd_state(&w, 0, 5), DDPS_SD_DRAIN);
	sd_expect(raw, 0, "0001 0004");
	cr_expect_eq(c->ndry, 1, "the stray's");
	tell->acked(c, 2);
	cr_expect_eq(sd_state(&w, 0, 5), DDPS_SD_IDLE);
	cr_expect_eq(c->ndry, 0);
}

/* A rejected request drains from now on, although nothing leaves. */
Test(sd_wait, a_rejected_request_asks_whether_all_has_arrived, .description = "5043-6.6-4")
{
	struct ddps_sd_assoc *other = sd_raw_initiated(&w, &u, false);
	struct ddps_sd_carrier *d = sd_carrier_of(&w, 1);

	other->peer->hold_dry = true;
	d->blocked = true;
	sd_send(&w, other, 0, "0000 0003");
	cr_expect_eq(sd_state(&w, 1, 0), DDPS_SD_DRAIN);
	cr_expect_eq(d->ndry, 1);
	cr_expect(d->asked);
}

/* The Terminate of a session that was given up stays behind the Accept's acknowledgement. */
Test(sd_wait, a_terminate_does_not_leave_right_behind_its_accept, .description = "5043-6.6-1")
{
	w.accept = false;
	sd_send(&w, raw, 1, "0000 0001");
	raw->peer->hold_dry = true;
	c->blocked = true;
	cr_assert_eq(sd_answer(&w.req[1], false, NULL, 0), 0);
	sd_free(&w.req[1]);
	sd_run(&w);
	sd_expect_silence(raw);
	tell->writable(c);
	sd_run(&w);
	sd_expect(raw, 1, "0000 0002");
	sd_expect_silence(raw);
	let_sd_wait_dry(true);
	sd_expect(raw, 1, "0001 0004");
}

/* One Terminate, and nothing that would not be legal behind it. */
Test(sd_wait, a_session_that_ends_in_order_says_so_once, .description = "5043-6.2-2")
{
	let_sd_wait_dry(true);
	w.req[0].llp->ops->shutdown(w.req[0].llp);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	sd_expect_silence(raw);
	sd_send(&w, raw, 0, "0001 0004");
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, 0);
	cr_expect_str_eq(w.log, "");
}

/* ---- the limit ---- */

/* What is acknowledged to the last one leaves room for all of the limit. */
Test(sd_wait, all_of_the_limit_is_there_again, .description = "5043-10-d1")
{
	const unsigned more = DDPS_SD_IN_FLIGHT_MAX - DDPS_SD_IN_FLIGHT_MAX / 2;
	struct sd_ulp *s = &w.req[0];
	struct ddps_sd_pair *p = sd_pair_of(s);

	tells_each();
	post_sd_wait(s, 10);
	cr_assert_eq(s->done, 10);
	ddps_sd_tx_acked(c, c->sent);
	post_sd_wait(s, 2 * DDPS_SD_IN_FLIGHT_MAX);
	cr_expect_eq(s->done, 10 + DDPS_SD_IN_FLIGHT_MAX);
	/* up to the one that was asked for, which was at half of that */
	cr_assert_neq(p->probe_seq, 0);
	ddps_sd_tx_acked(c, p->probe_seq - 1);
	cr_expect_eq(s->done, 10 + DDPS_SD_IN_FLIGHT_MAX);
	ddps_sd_tx_acked(c, p->probe_seq);
	cr_expect_eq(s->done, 10 + DDPS_SD_IN_FLIGHT_MAX + more - 1);
}

/* It is asked at half of the limit, which costs nobody anything; at the limit all are silent. */
Test(sd_wait, the_limit_is_seen_in_time, .description = "5043-10-d1")
{
	struct sd_ulp *s = &w.req[0], *other = open_on_sd_wait(1);

	let_sd_wait_dry(false);
	raw->peer->asks = 0;
	post_sd_wait(s, DDPS_SD_IN_FLIGHT_MAX / 2 - 2); /* and the Accept; one more could follow */
	cr_expect_eq(raw->peer->asks, 0);
	post_sd_wait(s, 1);
	cr_expect_eq(raw->peer->asks, 1);
	post_sd_wait(other, 1);
	cr_expect_eq(other->done, 1);
	cr_expect_not(c->quiet);
	post_sd_wait(s, DDPS_SD_IN_FLIGHT_MAX);
	cr_expect_eq(s->done, DDPS_SD_IN_FLIGHT_MAX - 1);
	cr_expect(c->quiet);
	post_sd_wait(other, 1);
	cr_expect_eq(other->done, 1, "or the acknowledgement might never come");
	let_sd_wait_dry(true);
	cr_expect_eq(other->done, 2);
	cr_expect_eq(s->done, s->to_send);
}

/* Whoever stands at the limit is woken by what it waits for, and by nothing else. */
Test(sd_wait, at_the_limit_nothing_goes_on_by_itself, .description = "5043-10-d1")
{
	struct sd_ulp *s = &w.req[0];

	tells_each();
	post_sd_wait(s, 2 * DDPS_SD_IN_FLIGHT_MAX);
	cr_assert_eq(s->done, DDPS_SD_IN_FLIGHT_MAX - 1);
	sd_send(&w, raw, 1, "0000 0001");
	cr_expect_eq(s->done, DDPS_SD_IN_FLIGHT_MAX - 1);
}

/* ---- before it is open ---- */

Test(sd_wait, nothing_is_sent_before_open)
{
	struct ddps_sd_assoc *other;

	u.no_open = true;
	other = sd_raw_initiated(&w, &u, false);
	sd_send(&w, other, 0, "0000 0002");
	cr_assert_eq(u.answers, 1);
	post_sd_wait(&u, 1);
	sd_run(&w);
	cr_expect_eq(u.pulled, 0);
	sd_expect_silence(other);
	u.llp->ops->open(u.llp);
	sd_run(&w);
	cr_expect_eq(u.done, 1);
}

Test(sd_wait, nothing_is_sent_before_the_answer, .description = "5043-6.1-1")
{
	w.accept = false;
	sd_send(&w, raw, 1, "0000 0001");
	post_sd_wait(&w.req[1], 1);
	sd_run(&w);
	cr_expect_eq(w.req[1].pulled, 0);
	sd_expect_silence(raw);
	cr_assert_eq(sd_answer(&w.req[1], false, NULL, 0), 0);
	sd_run(&w);
	sd_expect(raw, 1, "0000 0002");
	cr_expect_eq(segment(), 1);
}

/* ---- memory ---- */

/* User memory is referred to as long as SCTP has not taken it. */
Test(sd_wait, memory_is_lent_until_it_has_left)
{
	struct sd_ulp *s = &w.req[0];

	s->pay_len = 100;
	room_for(1);
	post_sd_wait(s, 2);
	cr_assert_eq(s->done, 1);
	cr_expect_eq(w.env.lenders, s->llp);
	room_for(0);
	cr_assert_eq(s->done, 2);
	cr_expect_null(w.env.lenders);
	room_for(1);
	post_sd_wait(s, 2);
	cr_expect_eq(w.env.lenders, s->llp);
	s->llp->ops->abort(s->llp);
	cr_expect_null(w.env.lenders);
}

/* The room for a segment stays for the next one, and there is one, whoever had it. */
Test(sd_wait, the_room_for_a_segment_is_kept)
{
	struct ddps_sd_provider *prov = w.env.sctp;
	struct ddps_sd_assoc *other = sd_raw_open(&w, 0);
	struct ddps_seg *room;

	post_sd_wait(&w.req[0], 1);
	cr_expect_null(c->tx_seg);
	room = prov->seg;
	cr_assert_not_null(room);
	raw->hold = other->hold = true;
	raw->peer->room = other->peer->room = 1;
	post_sd_wait(&w.req[0], 2);
	post_sd_wait(&w.req[1], 2);
	cr_expect_eq(c->tx_seg, room);
	cr_expect_null(prov->seg);
	cr_expect_not_null(sd_carrier_of(&w, 1)->tx_seg);
	raw->hold = other->hold = false;
	fake_sctp_poke(raw);
	fake_sctp_poke(other);
	sd_run(&w);
	cr_expect_eq(w.req[0].done + w.req[1].done, 5);
	cr_expect_not_null(prov->seg);
	cr_expect_null(c->tx_seg);
	cr_expect_null(sd_carrier_of(&w, 1)->tx_seg);
}

/* As many pieces as there may be, each in its place. */
Test(sd_wait, a_segment_of_many_pieces)
{
	static uint8_t data[3 * DDPS_SEG_IOV_MAX];
	struct sd_ulp *s = &w.req[0];
	struct fake_sctp_msg *m;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i + 1);
	s->pay_len = sizeof data;
	room_for(1);
	post_sd_wait(s, 2);
	cr_assert_not_null(c->tx_pair);
	for (int i = 0; i < DDPS_SEG_IOV_MAX; i++)
		c->tx_seg->pay[i] = (struct iovec){ data + 3 * i, 3 };
	c->tx_seg->npay = DDPS_SEG_IOV_MAX;
	room_for(0);
	cr_expect_eq(segment(), 0);
	m = fake_sctp_raw_take(raw);
	cr_assert(m);
	cr_assert_eq(m->len, DDPS_SD_SSN_LEN + SD_SEG_HDR + sizeof data);
	cr_expect_arr_eq(m->data + DDPS_SD_SSN_LEN + SD_SEG_HDR, data, sizeof data);
	free(m);
}

/* ---- turns ---- */

enum { EIGHTH = 1024 - SD_SEG_HDR }; /* of payload, of a turn */

/* Those that are posted now have their turns when all are there. */
static void gather_sd_wait(bool on)
{
	c->quiet = on;
	if (!on)
		ddps_sd_tx_run(c);
	sd_run(&w);
}

Test(sd_wait, a_turn_counts_the_octets_of_its_segments)
{
	w.req[0].pay_len = 1000;
	post_sd_wait(&w.req[0], 1);
	cr_expect_eq(c->turn, SD_SEG_HDR + 1000);
	post_sd_wait(&w.req[0], 2);
	cr_expect_eq(c->turn, 2 * (SD_SEG_HDR + 1000), "a turn of its own");
}

Test(sd_wait, a_turn_ends_with_the_segment_that_fills_it)
{
	struct sd_ulp *s = &w.req[0], *other = open_on_sd_wait(1);

	s->pay_len = EIGHTH;
	gather_sd_wait(true);
	post_sd_wait(other, 1);
	post_sd_wait(s, 9);
	gather_sd_wait(false);
	for (unsigned i = 0; i < 10; i++)
		cr_expect_eq(segment(), i == 8, "segment %u", i);
}

/* Who had the last turn is not first again, as long as nobody used up one. */
Test(sd_wait, one_message_is_a_turn_too)
{
	struct sd_ulp *s = &w.req[0], *other = open_on_sd_wait(1);

	post_sd_wait(s, 1);
	post_sd_wait(other, 1);
	sd_run(&w);
	cr_expect_eq(segment(), 0);
	cr_expect_eq(segment(), 1);
	for (unsigned i = 0; i < 3; i++) {
		gather_sd_wait(true);
		post_sd_wait(s, 1);
		post_sd_wait(other, 1);
		gather_sd_wait(false);
		cr_expect_eq(segment(), 0);
		cr_expect_eq(segment(), 1);
	}
}

/* However many turns of others went by before. */
Test(sd_wait, who_has_sent_nothing_yet_goes_first)
{
	struct sd_ulp *s = &w.req[0];

	s->pay_len = EIGHTH;
	for (unsigned turns = 0; turns < 4; turns++) {
		uint16_t stream = (uint16_t)(turns + 1);
		struct sd_ulp *late = open_on_sd_wait(stream);

		post_sd_wait(s, 8 * turns);
		sd_run(&w);
		for (unsigned i = 0; i < 8 * turns; i++)
			cr_assert_eq(segment(), 0);
		gather_sd_wait(true);
		post_sd_wait(s, 1);
		post_sd_wait(late, 1);
		gather_sd_wait(false);
		cr_expect_eq(segment(), stream, "after %u turns", turns);
		cr_expect_eq(segment(), 0);
	}
}

/* Whoever waits for a turn and is lost, has none any more. */
Test(sd_wait, a_session_that_is_lost_is_in_no_line)
{
	gather_sd_wait(true);
	post_sd_wait(&w.req[0], 1);
	cr_assert_not(TAILQ_EMPTY(&c->seg));
	tell->restarted(c);
	cr_expect(TAILQ_EMPTY(&c->seg));
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	post_sd_wait(open_on_sd_wait(0), 1);
	sd_run(&w);
	cr_expect_eq(segment(), 0);
}

/* What is said may still be lost: it has not left before the peer has acknowledged it. */
Test(sd_wait, contact_01_a_session_has_not_left_before_its_terminate_is_acknowledged)
{
	struct sd_ulp *s = &w.req[0];

	tells_each();
	ddps_sd_tx_acked(c, c->sent);
	s->llp->ops->shutdown(s->llp);
	sd_run(&w);
	sd_expect(raw, 0, "0001 0004");
	cr_expect(s->llp->ops->leaving(s->llp), "it is under way");
	ddps_sd_tx_acked(c, c->sent);
	cr_expect_not(s->llp->ops->leaving(s->llp));
}
