/* SPDX-License-Identifier: BSD-2-Clause */
/* A path that comes and goes: how often it has to answer before it is used again. */
#include "sctp_paths_fixture.h"

/* The first address falls silent while data goes there. */
static void fail(void)
{
	cr_assert_eq(r.a->data_path, r.a->path[0]);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	for (unsigned i = 0; i < 1000 && r.a->data_path == r.a->path[0]; i++)
		raw_wait(&r, 20);
	cr_assert_eq(r.a->data_path, r.a->path[1]);
	raw_sack(&r, r.tsn++, 100000);
}

/* It is back: the heartbeats that it answers until data goes there again. */
static unsigned answers(void)
{
	struct ddps_sc_chunk c;
	unsigned n = 0;

	for (unsigned i = 0; i < 100000 && r.a->data_path != r.a->path[0]; i++) {
		raw_wait(&r, 5);
		if (sent_to(first(), SC_HEARTBEAT, &c)) {
			n++;
			answer_heartbeat(&c, false);
		} else if (sent_to(second(), SC_HEARTBEAT, &c)) {
			answer_heartbeat(&c, true);
		}
	}
	cr_assert_eq(r.a->data_path, r.a->path[0]);
	return n;
}

/* It works for so long, and is asked now and then. */
static void work(uint64_t s)
{
	struct ddps_sc_chunk c;

	for (uint64_t i = 0; i < s * 50; i++) {
		raw_wait(&r, 20);
		if (sent_to(first(), SC_HEARTBEAT, &c))
			answer_heartbeat(&c, false);
		if (sent_to(second(), SC_HEARTBEAT, &c))
			answer_heartbeat(&c, true);
	}
}

Test(sctp_flap, each_time_it_has_to_prove_more, .fini = fini)
{
	up();
	for (unsigned k = 0; k < 9; k++) {
		unsigned want = 3u << (k < 6 ? k : 6), n;

		fail();
		n = answers();
		cr_expect_eq(n, want, "failure %u: %u", k, n);
	}
}

Test(sctp_flap, whoever_was_steady_begins_anew, .fini = fini)
{
	up();
	fail();
	cr_expect_eq(answers(), 3);
	fail();
	cr_expect_eq(answers(), 6);
	work(61);
	fail();
	cr_expect_eq(answers(), 3);
	fail();
	cr_expect_eq(answers(), 6);
}

Test(sctp_flap, a_minute_is_not_yet_steady, .fini = fini)
{
	up();
	fail();
	answers();
	work(57);
	fail();
	cr_expect_eq(answers(), 6);
}
