/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose turn it is to send on an association. */
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

enum { TURN = 9 }; /* segments of 1018 octets that are just above 8 KiB */

TestSuite(sd_turn, .init = init, .fini = fini, .timeout = 30);

/* Four open sessions whose segments wait for room. */
static struct ddps_sd_assoc *four_wait(unsigned each, size_t pay_len)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	for (uint16_t s = 1; s < 4; s++) {
		sd_send(&w, raw, s, "0000 0001");
		sd_expect(raw, s, "0000 0002");
	}
	raw->peer->room = 1;
	for (unsigned i = 0; i < 4; i++) {
		w.req[i].pay_len = pay_len;
		w.req[i].to_send = each;
		w.req[i].llp->ops->kick(w.req[i].llp);
	}
	sd_run(&w);
	return raw;
}

Test(sd_turn, sessions_take_turns)
{
	struct ddps_sd_assoc *raw = four_wait(100, 1000);
	unsigned sent[4] = { 0 };

	for (unsigned n = 0; n < 400; n++) {
		struct fake_sctp_msg *m = fake_sctp_raw_take(raw);

		cr_assert(m);
		sent[m->stream]++;
		for (unsigned s = 0; s < 4; s++) /* the first had a start of one turn */
			cr_expect_leq(sent[m->stream], sent[s] + 2 * TURN);
		free(m);
	}
	sd_expect_silence(raw);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(w.req[i].done, 100);
}

/* So that whoever posted them together has them complete together. */
Test(sd_turn, small_segments_of_a_session_leave_together)
{
	struct ddps_sd_assoc *raw = four_wait(8, 0);
	uint16_t last = 0;
	unsigned changes = 0;

	for (unsigned n = 0; n < 32; n++) {
		struct fake_sctp_msg *m = fake_sctp_raw_take(raw);

		cr_assert(m);
		changes += m->stream != last;
		last = m->stream;
		free(m);
	}
	cr_expect_eq(changes, 3);
}

/* Take one message from the way to @raw, so that there is room for one more.  Whose it is. */
static uint16_t next_stream(struct ddps_sd_assoc *raw)
{
	struct fake_sctp_msg *m = TAILQ_FIRST(&raw->in);
	uint16_t stream;

	cr_assert(m);
	stream = m->stream;
	TAILQ_REMOVE(&raw->in, m, link);
	raw->nin--;
	free(m);
	fake_sctp_poke(raw->peer);
	sd_run(&w);
	return stream;
}

/* Three sessions have much to send, and the way takes one message at a time. */
static struct ddps_sd_assoc *bulk(void)
{
	struct ddps_sd_assoc *raw = four_wait(0, 1000);

	raw->hold = true;
	for (unsigned i = 0; i < 3; i++) {
		w.req[i].to_send = 400;
		w.req[i].llp->ops->kick(w.req[i].llp);
	}
	w.req[3].pay_len = 0;
	sd_run(&w);
	return raw;
}

static void post_sd_turn(unsigned i)
{
	w.req[i].to_send++;
	w.req[i].llp->ops->kick(w.req[i].llp);
}

/* Three sessions always have something to send; the last one now and then. */
Test(sd_turn, a_message_now_and_then_goes_before_bulk)
{
	struct ddps_sd_assoc *raw = bulk();

	for (unsigned n = 0; n < 20; n++) {
		unsigned before = 0;

		post_sd_turn(3);
		while (next_stream(raw) != 3)
			before++;
		cr_expect_leq(before, TURN + 1, "%u: the turn of one, and what is on its way",
			      before);
		for (unsigned i = 0; i < 12; i++) /* a turn of theirs */
			next_stream(raw);
	}
}

/* ... but not before all of it: who posts again and again has the others' turns between. */
Test(sd_turn, who_always_comes_anew_leaves_the_others_their_turns)
{
	struct ddps_sd_assoc *raw = bulk();
	unsigned others = 0;

	post_sd_turn(3);
	for (unsigned n = 0; n < 100; n++) {
		if (next_stream(raw) == 3)
			post_sd_turn(3);
		else
			others++;
	}
	cr_expect_geq(others, 80);
}
