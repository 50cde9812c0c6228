/* SPDX-License-Identifier: BSD-2-Clause */
/* Which messages wait for others before they leave: only those of whoever polls without a pause. */
#include "sd_native_fixture.h"

#define FIRST 100u
#define LARGE 16000u

static struct ddps_sn_env *ne;

static uint64_t send_sd_native_wait_packets(void)
{
	struct ddps_sctp_stats st;

	ddps_sctp_stats(ne->e, &st);
	return st.packets_out;
}

static void echo_sd_native_wait(struct side *s)
{
	cr_assert_eq(send_one_sd_pair(s, 2, SEGMENT, FIRST), 0);
}

/* The answer has to be waited for, or it does not pay to poll; not always as long, or each may come
 * just when epoll is asked again, which shows nothing. */
static void make_sd_native_wait_round_trip(int wait)
{
	const unsigned had = cli.messages;

	cr_assert_eq(send_one_sd_pair(&cli, 1, SEGMENT, FIRST), 0);
	for (int i = 0; cli.messages == had; i++) {
		cr_assert_geq(ddps_loop_spin(cn.env.loop), 0);
		if (i >= wait)
			cr_assert_geq(ddps_loop_run(sn.env.loop), 0);
	}
}

/* Round trips, until the client's loop knows that somebody polls it; all is acknowledged then. */
static void poll_for_long(void)
{
	const uint64_t until = ddps_now() + WAIT_NS;

	srv.peers[0].on_message = echo_sd_native_wait;
	for (int n = 0; !ddps_loop_polled(cn.env.loop); n++) {
		cr_assert(ddps_now() < until);
		make_sd_native_wait_round_trip(n % 4);
	}
	while (cli.acked != cli.handed) {
		cr_assert_geq(ddps_loop_spin(cn.env.loop), 0);
		cr_assert_geq(ddps_loop_run(sn.env.loop), 0);
	}
	srv.peers[0].on_message = NULL;
}

static void begin_sd_native_wait(bool polled)
{
	set_sd_pair_up(AF_INET);
	ne = cn.ctx;
	WAIT_FOR(widened(), &cn, &sn);
	if (polled)
		poll_for_long();
}

/* Whether it left in this very call. */
static bool does_sd_native_wait_leave(size_t len)
{
	uint64_t before = send_sd_native_wait_packets();

	cr_assert_eq(send_one_sd_pair(&cli, 1, SEGMENT, len), 0);
	return send_sd_native_wait_packets() != before;
}

Test(sd_native_wait, a_lone_one_leaves_and_those_behind_it_with_the_next_poll)
{
	unsigned had;

	begin_sd_native_wait(true);
	had = srv.peers[0].messages;
	cr_expect(does_sd_native_wait_leave(FIRST), "nothing is under way");
	cr_expect_not(does_sd_native_wait_leave(FIRST));
	cr_expect_not(does_sd_native_wait_leave(FIRST));
	ddps_loop_spin(cn.env.loop);
	cr_expect_eq(ne->held_at, 0, "one poll lets them go");
	WAIT_FOR(srv.peers[0].messages == had + 3, &sn);
	stop_sd_pair();
}

/* Then one call sends them all. */
Test(sd_native_wait, those_of_other_associations_wait_behind_a_lone_one)
{
	static struct side other;
	uint64_t before;

	begin_sd_native_wait(false);
	other = (struct side){ 0 };
	cr_assert_eq(try_connect(&other, &cn, CB, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(other.up && srv.accepted == 2, &cn, &sn);
	poll_for_long();
	cr_expect(does_sd_native_wait_leave(FIRST));
	before = send_sd_native_wait_packets();
	cr_assert_eq(send_one_sd_pair(&other, 1, SEGMENT, FIRST), 0);
	cr_expect_not(ddps_sctp_under_way(other.a->sa));
	cr_expect_eq(send_sd_native_wait_packets(), before);
	ddps_loop_spin(cn.env.loop);
	cr_expect_eq(send_sd_native_wait_packets(), before + 1);
	WAIT_FOR(srv.peers[1].messages == 1, &sn);
	stop_sd_pair();
}

Test(sd_native_wait, what_fills_a_send_does_not_wait)
{
	unsigned n = 0;

	begin_sd_native_wait(true);
	cr_expect(does_sd_native_wait_leave(FIRST));
	while (!does_sd_native_wait_leave(LARGE))
		cr_assert_lt(++n, 10u);
	cr_expect_eq(n, DDPS_SN_OCTETS / LARGE, "after %u", n);
	ne->wary = 0; /* a slow machine took too long to fill it, which the next test is about */
	cr_expect_not(does_sd_native_wait_leave(FIRST), "it counts anew");
	stop_sd_pair();
}

Test(sd_native_wait, who_does_not_poll_in_time_is_not_made_to_wait_again)
{
	begin_sd_native_wait(true);
	cr_expect(does_sd_native_wait_leave(FIRST));
	cr_expect_not(does_sd_native_wait_leave(FIRST));
	ne->held_at = 1; /* long ago */
	ddps_loop_spin(cn.env.loop);
	for (int i = 0; i < 10; i++)
		cr_expect(does_sd_native_wait_leave(FIRST), "%d", i);
	stop_sd_pair();
}

Test(sd_native_wait, nothing_waits_where_nobody_polls)
{
	begin_sd_native_wait(false);
	for (int i = 0; i < 10; i++)
		cr_expect(does_sd_native_wait_leave(FIRST), "%d", i);
	stop_sd_pair();
	begin_sd_native_wait(true);
	cr_expect(does_sd_native_wait_leave(FIRST));
	cr_expect_not(does_sd_native_wait_leave(FIRST));
	ddps_loop_fd(cn.env.loop); /* he goes to sleep */
	cr_expect(does_sd_native_wait_leave(FIRST));
	stop_sd_pair();
}

/* ---- exactly ---- */

/* Messages of together @all octets behind one that is under way; whether the last of them leaves, and no other. */
static bool only_the_last_leaves(size_t all)
{
	bool last = false;

	begin_sd_native_wait(true);
	cr_expect(does_sd_native_wait_leave(FIRST));
	cr_expect_eq(ne->fresh, 0);
	while (all) {
		size_t len = all > LARGE ? LARGE : all;

		cr_expect_not(last);
		last = does_sd_native_wait_leave(len);
		all -= len;
	}
	stop_sd_pair();
	return last;
}

Test(sd_native_wait, how_much_fills_a_send)
{
	cr_expect_not(only_the_last_leaves(DDPS_SN_OCTETS - 1));
	cr_expect(only_the_last_leaves(DDPS_SN_OCTETS));
}

/* Who did not poll in time is trusted again after a while. */
Test(sd_native_wait, so_many_posts_do_not_wait_and_the_next_one_does)
{
	begin_sd_native_wait(true);
	cr_expect(does_sd_native_wait_leave(FIRST));
	ne->wary = 3;
	for (int i = 0; i < 3; i++)
		cr_expect(does_sd_native_wait_leave(FIRST), "%d", i);
	cr_expect_not(does_sd_native_wait_leave(FIRST));
	stop_sd_pair();
}

/* It is the first one whose time counts. */
Test(sd_native_wait, since_when_a_post_waits)
{
	uint64_t before, since;

	begin_sd_native_wait(true);
	cr_expect(does_sd_native_wait_leave(FIRST));
	cr_expect_eq(ne->held_at, 0);
	before = ddps_now();
	cr_expect_not(does_sd_native_wait_leave(FIRST));
	since = ne->held_at;
	cr_expect_geq(since, before);
	cr_expect_leq(since, ddps_now());
	cr_expect_not(does_sd_native_wait_leave(FIRST));
	cr_expect_eq(ne->held_at, since);
	stop_sd_pair();
}

/* A program that was held up may take longer: not each time. */
Test(sd_native_wait, who_polls_in_time_is_made_to_wait_again)
{
	unsigned i;

	begin_sd_native_wait(true);
	cr_expect(does_sd_native_wait_leave(FIRST));
	for (i = 0; i < 100; i++) {
		cr_expect_not(does_sd_native_wait_leave(FIRST));
		ddps_sn_flush(ne);
		if (!ne->wary)
			break;
		ne->wary = 0;
	}
	cr_expect_lt(i, 100);
	stop_sd_pair();
}
