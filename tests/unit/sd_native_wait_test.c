/* SPDX-License-Identifier: BSD-2-Clause */
/* Which messages wait for others before they leave: only those of who polls without a pause. */
#include "sd_native_fixture.h"

#define FIRST 100u
#define LARGE 16000u

static struct ddps_sn_env *ne;

static uint64_t packets(void)
{
	struct ddps_sctp_stats st;

	ddps_sctp_stats(ne->e, &st);
	return st.packets_out;
}

static void echo(struct side *s)
{
	cr_assert_eq(send_one(s, 2, SEGMENT, FIRST), 0);
}

/* The answer has to be waited for, or it does not pay to poll; not always as long, or each may come
 * just when epoll is asked again, which shows nothing. */
static void round_trip(int wait)
{
	const unsigned had = cli.messages;

	cr_assert_eq(send_one(&cli, 1, SEGMENT, FIRST), 0);
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

	srv.peers[0].on_message = echo;
	for (int n = 0; !ddps_loop_polled(cn.env.loop); n++) {
		cr_assert(ddps_now() < until);
		round_trip(n % 4);
	}
	while (cli.acked != cli.handed) {
		cr_assert_geq(ddps_loop_spin(cn.env.loop), 0);
		cr_assert_geq(ddps_loop_run(sn.env.loop), 0);
	}
	srv.peers[0].on_message = NULL;
}

static void begin(bool polled)
{
	set_up(AF_INET);
	ne = cn.ctx;
	WAIT_FOR(widened(), &cn, &sn);
	if (polled)
		poll_for_long();
}

/* Whether it left in this very call. */
static bool leaves(size_t len)
{
	uint64_t before = packets();

	cr_assert_eq(send_one(&cli, 1, SEGMENT, len), 0);
	return packets() != before;
}

Test(sd_native_wait, a_lone_one_leaves_and_those_behind_it_with_the_next_poll)
{
	unsigned had;

	begin(true);
	had = srv.peers[0].messages;
	cr_expect(leaves(FIRST), "nothing is under way");
	cr_expect_not(leaves(FIRST));
	cr_expect_not(leaves(FIRST));
	ddps_loop_spin(cn.env.loop);
	cr_expect_eq(ne->held_at, 0, "one poll lets them go");
	WAIT_FOR(srv.peers[0].messages == had + 3, &sn);
	stop();
}

Test(sd_native_wait, what_fills_a_send_does_not_wait)
{
	unsigned n = 0;

	begin(true);
	cr_expect(leaves(FIRST));
	while (!leaves(LARGE))
		cr_assert_lt(++n, 10u);
	cr_expect_eq(n, DDPS_SN_OCTETS / LARGE, "after %u", n);
	ne->wary = 0; /* a slow machine took too long to fill it, which the next test is about */
	cr_expect_not(leaves(FIRST), "it counts anew");
	stop();
}

Test(sd_native_wait, who_does_not_poll_in_time_is_not_made_to_wait_again)
{
	begin(true);
	cr_expect(leaves(FIRST));
	cr_expect_not(leaves(FIRST));
	ne->held_at = 1; /* long ago */
	ddps_loop_spin(cn.env.loop);
	for (int i = 0; i < 10; i++)
		cr_expect(leaves(FIRST), "%d", i);
	stop();
}

Test(sd_native_wait, nothing_waits_where_nobody_polls)
{
	begin(false);
	for (int i = 0; i < 10; i++)
		cr_expect(leaves(FIRST), "%d", i);
	stop();
	begin(true);
	cr_expect(leaves(FIRST));
	cr_expect_not(leaves(FIRST));
	ddps_loop_fd(cn.env.loop); /* he goes to sleep */
	cr_expect(leaves(FIRST));
	stop();
}

/* ---- exactly ---- */

/* Messages of together @all octets behind one that is under way; whether the last of them leaves, and no other. */
static bool only_the_last_leaves(size_t all)
{
	bool last = false;

	begin(true);
	cr_expect(leaves(FIRST));
	cr_expect_eq(ne->fresh, 0);
	while (all) {
		size_t len = all > LARGE ? LARGE : all;

		cr_expect_not(last);
		last = leaves(len);
		all -= len;
	}
	stop();
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
	begin(true);
	cr_expect(leaves(FIRST));
	ne->wary = 3;
	for (int i = 0; i < 3; i++)
		cr_expect(leaves(FIRST), "%d", i);
	cr_expect_not(leaves(FIRST));
	stop();
}

/* It is the first one whose time counts. */
Test(sd_native_wait, since_when_a_post_waits)
{
	uint64_t before, since;

	begin(true);
	cr_expect(leaves(FIRST));
	cr_expect_eq(ne->held_at, 0);
	before = ddps_now();
	cr_expect_not(leaves(FIRST));
	since = ne->held_at;
	cr_expect_geq(since, before);
	cr_expect_leq(since, ddps_now());
	cr_expect_not(leaves(FIRST));
	cr_expect_eq(ne->held_at, since);
	stop();
}

/* A program that was held up may take longer: not each time. */
Test(sd_native_wait, who_polls_in_time_is_made_to_wait_again)
{
	unsigned i;

	begin(true);
	cr_expect(leaves(FIRST));
	for (i = 0; i < 100; i++) {
		cr_expect_not(leaves(FIRST));
		ddps_sn_flush(ne);
		if (!ne->wary)
			break;
		ne->wary = 0;
	}
	cr_expect_lt(i, 100);
	stop();
}
