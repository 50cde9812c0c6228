/* SPDX-License-Identifier: BSD-2-Clause */
/* When packets of the native SCTP leave, and how many of them in a turn of the loop. */
#include "sd_sends_fixture.h"

#define ROUND	(16 * DDPS_SN_OUTS) /* packets to as many peers, before others have their turn */
#define SHARE	(16u * 256)	    /* messages that a turn reports by itself */
#define RING	4u		    /* peers */
#define SMALL	4u
#define AT_ONCE 1000u

TestSuite(sd_native_turns, .timeout = 60);

static struct ddps_task first, next;
static unsigned seen;

static void post_to_all(void *user)
{
	(void)user;
	for (unsigned i = 0; i < n_peers; i++)
		post_sd_sends(i, 40);
	ddps_sn_poke(env());
	cr_expect_eq(calls, 0, "it waits for the rest of the round");
	ddps_task_post(sn.env.loop, &next);
}

static void note_taken_so_far(void *user)
{
	(void)user;
	seen = n_taken;
}

static void run_loop(void)
{
	first = (struct ddps_task){ .fn = post_to_all };
	next = (struct ddps_task){ .fn = note_taken_so_far };
	ddps_task_post(sn.env.loop, &first);
	cr_assert_geq(ddps_loop_run(sn.env.loop), 0);
}

static void all_have_one(void)
{
	for (unsigned i = 0; i < n_peers; i++)
		cr_expect_eq(got(i), 1, "%u", i);
}

Test(sd_native_turns, others_have_their_turn_while_many_packets_leave)
{
	begin_with(ROUND + 5);
	run_loop();
	cr_expect_eq(seen, ROUND, "%u", seen);
	all_have_one();
	end_sd_sends();
}

/* Outside the loop nobody else waits. */
Test(sd_native_turns, all_leave_in_one_call_from_outside)
{
	begin_with(ROUND + 5);
	for (unsigned i = 0; i < n_peers; i++)
		post_sd_sends(i, 40);
	ddps_sn_poke(env());
	all_have_one();
	cr_expect_null(sn.env.loop->tasks);
	end_sd_sends();
}

/* A socket without room says when it has some; until then there is nothing to do. */
Test(sd_native_turns, nothing_is_to_be_done_while_a_socket_is_full)
{
	begin_with(2 * DDPS_SN_OUTS);
	refuse_sd_sends(0, EVER, EAGAIN);
	run_loop();
	cr_expect(srv.ep->sock->full);
	cr_expect_eq(calls, 2);
	cr_expect_null(sn.env.loop->tasks);
	make_room(srv.ep->sock);
	all_have_one();
	end_sd_sends();
}

/* ---- what comes up ---- */

static unsigned told;

/* One has its say, and then it is another's turn. */
static void pass_on(struct side *s)
{
	const unsigned i = (unsigned)(s - srv.peers);

	told++;
	ddps_sctp_pause(assocs[i]->sa, true, ddps_sn_now(env()));
	ddps_sctp_pause(assocs[(i + 1) % RING]->sa, false, ddps_sn_now(env()));
}

static void hold_messages(unsigned i, unsigned n)
{
	struct wire *x = wires[i];
	uint8_t msg[SMALL];

	ddps_sctp_pause(assocs[i]->sa, true, ddps_sn_now(env()));
	fill_sd_backend(msg, SMALL, 0);
	while (n) {
		begin_sd_hand(x, x->peer_tag);
		for (unsigned k = 0; k < AT_ONCE && n; k++, n--)
			send_sd_hand_data_chunk(x, F_UNORDERED | F_FIRST | F_LAST, 0, 16, msg,
						SMALL);
		finish_sd_hand(x);
		run_hand_node();
	}
}

/* Upcalls that cause others without end: a turn takes a share of them. */
Test(sd_native_turns, a_turn_ends_though_there_is_always_more_to_tell)
{
	begin_with(RING);
	for (unsigned i = 0; i < RING; i++) {
		srv.peers[i].on_message = pass_on;
		hold_messages(i, SHARE / RING + 256);
	}
	be_quiet();
	cr_assert_eq(told, 0);
	ddps_sctp_pause(assocs[0]->sa, false, ddps_sn_now(env()));
	ddps_sn_turn(env());
	cr_expect_eq(told, SHARE, "%u", told);
	cr_expect(ddps_timer_runs(&env()->timer), "the next turn comes");
	end_sd_sends();
}
