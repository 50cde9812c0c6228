/* SPDX-License-Identifier: BSD-2-Clause */
/* A path that comes and goes: how often it has to answer before it is used again. */
#include "sctp_paths_fixture.h"

/* The first address falls silent while data goes there, and only that one. */
static void fail_sctp_flap(void)
{
	struct ddps_sc_chunk c;

	cr_assert_eq(r.a->data_path, r.a->path[0]);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	for (unsigned i = 0; i < 1000 && r.a->data_path == r.a->path[0]; i++) {
		raw_wait(&r, 20);
		if (sent_to(get_second_address(), SC_HEARTBEAT, &c))
			answer_sctp_paths_heartbeat(&c, true);
	}
	cr_assert_eq(r.a->data_path, r.a->path[1]);
	raw_sack(&r, r.tsn++, 100000);
}

/* It is back: the heartbeats that it answers until data goes there again. */
static unsigned count_sctp_flap_answers(void)
{
	struct ddps_sc_chunk c;
	unsigned n = 0;

	for (unsigned i = 0; i < 100000 && r.a->data_path != r.a->path[0]; i++) {
		raw_wait(&r, 5);
		if (sent_to(get_first_address(), SC_HEARTBEAT, &c)) {
			n++;
			answer_sctp_paths_heartbeat(&c, false);
		} else if (sent_to(get_second_address(), SC_HEARTBEAT, &c)) {
			answer_sctp_paths_heartbeat(&c, true);
		}
	}
	cr_assert_eq(r.a->data_path, r.a->path[0]);
	return n;
}

/* It works for so long, and is asked now and then. */
static void work_on_sctp_flap(uint64_t s)
{
	struct ddps_sc_chunk c;

	for (uint64_t i = 0; i < s * 50; i++) {
		raw_wait(&r, 20);
		if (sent_to(get_first_address(), SC_HEARTBEAT, &c))
			answer_sctp_paths_heartbeat(&c, false);
		if (sent_to(get_second_address(), SC_HEARTBEAT, &c))
			answer_sctp_paths_heartbeat(&c, true);
	}
}

Test(sctp_flap, each_time_it_has_to_prove_more, .fini = fini)
{
	open_both_paths();
	for (unsigned k = 0; k < 9; k++) {
		unsigned want = 3u << (k < 6 ? k : 6), n;

		fail_sctp_flap();
		n = count_sctp_flap_answers();
		cr_expect_eq(n, want, "failure %u: %u", k, n);
	}
}

Test(sctp_flap, whoever_was_steady_begins_anew, .fini = fini)
{
	open_both_paths();
	fail_sctp_flap();
	cr_expect_eq(count_sctp_flap_answers(), 3);
	fail_sctp_flap();
	cr_expect_eq(count_sctp_flap_answers(), 6);
	work_on_sctp_flap(61);
	fail_sctp_flap();
	cr_expect_eq(count_sctp_flap_answers(), 3);
	fail_sctp_flap();
	cr_expect_eq(count_sctp_flap_answers(), 6);
}

Test(sctp_flap, a_minute_is_not_yet_steady, .fini = fini)
{
	open_both_paths();
	fail_sctp_flap();
	count_sctp_flap_answers();
	work_on_sctp_flap(57);
	fail_sctp_flap();
	cr_expect_eq(count_sctp_flap_answers(), 6);
}

/* It was asked out of turn while it was in doubt, and works again: what is sent there is enough. */
Test(sctp_flap, a_path_in_use_is_not_asked, .fini = fini, .description = "9260-8.3-1")
{
	unsigned n = 0;

	open_both_paths();
	fail_sctp_flap();
	count_sctp_flap_answers();
	for (unsigned i = 0; i < 20; i++) {
		struct ddps_sc_chunk c;

		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
		cr_assert_eq(sent_to(get_first_address(), SC_DATA, NULL), 1);
		raw_sack(&r, r.tsn++, 100000);
		for (unsigned k = 0; k < 50; k++) {
			raw_wait(&r, 100);
			n += sent_to(get_first_address(), SC_HEARTBEAT, NULL);
			if (sent_to(get_second_address(), SC_HEARTBEAT, &c))
				answer_sctp_paths_heartbeat(&c, true);
		}
	}
	cr_expect_eq(n, 0);
}

/* While it proves itself the next question leaves an RTO behind the answer. */
Test(sctp_flap, how_soon_it_is_asked_once_more, .fini = fini)
{
	struct ddps_sc_chunk c;
	struct ddps_sc_path *p;

	open_both_paths();
	fail_sctp_flap();
	p = r.a->path[0];
	r.n = 0;
	while (!sent_to(get_first_address(), SC_HEARTBEAT, &c))
		cr_assert(sn_step(&r.net, UINT64_MAX));
	sn_run(&r.net, 200 * MS);
	answer_sctp_paths_heartbeat(&c, false);
	cr_assert_neq(r.a->data_path, p);
	cr_expect_eq(p->hb_at, r.net.now + ddps_sent_late(&p->tx, ddps_sent_rto(&r.a->tx, &p->tx)));
}
