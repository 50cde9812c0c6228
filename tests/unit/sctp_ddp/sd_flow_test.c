/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages, flow control and the end of associations: two of ours, and one with a stranger. */
#include "sd_pair_fixture.h"

/* ---- messages ---- */

ON_ALL(sizes_streams_and_ppids_arrive_as_sent,
       .description = "5043-5.2-d1 5043-8-d3 5043-10-1 5043-9-2")
{
	static const size_t sizes[] = { 1, 2, 3, 4, 5, 16, 516, 1452, 1453, 9000, 63999, 64000 };
	const size_t n = sizeof sizes / sizeof sizes[0];
	struct side *s = &srv.peers[0];

	set_sd_pair_up(AF_INET);
	for (size_t i = 0; i < n; i++) {
		uint16_t stream = (uint16_t)(i * (DDPS_SCTP_STREAMS / n));
		uint32_t ppid = i & 1 ? SEGMENT : CONTROL;
		unsigned before = s->messages;

		cr_assert_eq(send_one_sd_pair(&cli, stream, ppid, sizes[i]), 0);
		WAIT_FOR(s->messages > before, &cn, &sn);
		cr_expect_eq(s->last_len, sizes[i]);
		cr_expect_eq(s->stream, stream);
		cr_expect_eq(s->ppid, ppid);
	}
	cr_assert_eq(send_one_sd_pair(&cli, DDPS_SCTP_STREAMS - 1, SEGMENT, cli.info.max_user_data),
		     0);
	WAIT_FOR(s->messages == n + 1, &cn, &sn);
	cr_expect_eq(s->stream, DDPS_SCTP_STREAMS - 1);
	cr_expect(!s->bad);
	cr_expect_eq(s->ordered, 0);
	stop_sd_pair();
}

ON_ALL(one_octet_above_the_path_is_fragmented_and_arrives, .description = "5043-9-2")
{

	set_sd_pair_up(AF_INET);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, cli.info.max_user_data + 1), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect_eq(srv.peers[0].octets, cli.info.max_user_data + 1);
	cr_expect(!srv.peers[0].bad);
	stop_sd_pair();
}

ON_ALL(lengths_at_the_limits)
{
	struct iovec none = { NULL, 0 };

	set_sd_pair_up(AF_INET);
	cr_expect_eq(CB->send(cli.a, 0, SEGMENT, &none, 1), DDPS_E_INVAL);
	cr_expect_eq(send_one_sd_pair(&cli, 0, SEGMENT, DDPS_SD_MSG_MAX + 1), DDPS_E_TOO_LONG);
	cr_expect_eq(send_one_sd_pair(&cli, DDPS_SCTP_STREAMS, SEGMENT, 10),
		     DDPS_E_INVAL); /* no such stream */
	/* one below the reader's buffer arrives, one that fills it ends the association */
	cr_expect_eq(send_one_sd_pair(&cli, 0, SEGMENT, DDPS_SD_MSG_MAX - 1), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect_eq(srv.peers[0].octets, DDPS_SD_MSG_MAX - 1);
	cr_expect_eq(send_one_sd_pair(&cli, 0, SEGMENT, DDPS_SD_MSG_MAX), 0);
	WAIT_FOR(srv.peers[0].messages == 2, &cn, &sn);
	cr_expect_eq(srv.peers[0].last_len, DDPS_SD_MSG_MAX);
	cr_expect_eq(srv.peers[0].gone, 0);
	stop_sd_pair();
}

/* ---- flow ---- */

#define FLOOD_LEN   64000u
#define FLOOD_COUNT 525u /* 32 MiB */

static unsigned flood_sent;

static void flood_more(struct side *s)
{
	int err = 0;

	while (!err && flood_sent < FLOOD_COUNT) {
		err = send_one_sd_pair(s, (uint16_t)(flood_sent % 5), SEGMENT, FLOOD_LEN);
		flood_sent += !err;
	}
	cr_assert(!err || err == DDPS_E_AGAIN, "%s", ddps_strerror(err));
}

static void pause_it(struct side *s)
{
	s->b->pause(s->a, true);
}

ON_ALL(a_reader_that_pauses_stops_the_writer, .timeout = 240)
{
	struct side *s = &srv.peers[0];
	unsigned stuck, before;
	uint64_t until;

	start_sd_pair(AF_INET);
	srv.on_accept = pause_it;
	connect_up();
	flood_sent = 0;
	cli.on_writable = flood_more;
	flood_more(&cli);
	/* until nothing moves any more */
	do {
		stuck = flood_sent;
		until = ddps_now() + 300000000u;
		WAIT_FOR(ddps_now() > until, &cn, &sn);
	} while (flood_sent != stuck);
	cr_expect_lt(flood_sent * FLOOD_LEN, 12u << 20); /* send buffer and window, no more */
	cr_expect_eq(s->messages, 0);
	s->b->pause(s->a, false);
	/* a stranger that lost packets of its bursts may need a while: something has to come */
	while ((before = s->messages) < FLOOD_COUNT)
		WAIT_FOR(s->messages > before, &cn, &sn);
	cr_expect_eq(s->octets, (uint64_t)FLOOD_LEN * FLOOD_COUNT);
	cr_expect(!s->bad);
	cr_expect_gt(cli.writable, 0);
	stop_sd_pair();
}

/* ---- the end ---- */

ON_ALL(shutdown_delivers_what_was_sent_and_ends_in_order)
{
	struct side *s = &srv.peers[0];

	set_sd_pair_up(AF_INET);
	for (int i = 0; i < 100 && send_one_sd_pair(&cli, 1, SEGMENT, 3000) == 0; i++)
		;
	cr_assert_gt(cli.handed, 1);
	CB->shutdown(cli.a);
	cr_expect_eq(send_one_sd_pair(&cli, 1, SEGMENT, 10), DDPS_E_STATE);
	WAIT_FOR(cli.gone && s->gone, &cn, &sn);
	cr_expect_eq(s->messages, cli.handed);
	cr_expect_eq(s->peer_shutdown, 1);
	cr_expect_eq(cli.end.code, 0, "%s", cli.end.text);
	cr_expect_eq(s->end.code, 0, "%s", s->end.text);
	cr_expect_eq(cli.gone, 1);
	cr_expect_eq(send_one_sd_pair(&cli, 1, SEGMENT, 10), DDPS_E_CLOSED);
	CB->free(cli.a);
	s->b->free(s->a);
	stop_sd_pair();
}

ON_ALL(shutdown_from_both_sides_at_once)
{
	set_sd_pair_up(AF_INET);
	CB->shutdown(cli.a);
	SB->shutdown(srv.peers[0].a);
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, 0);
	cr_expect_eq(srv.peers[0].end.code, 0);
	stop_sd_pair();
}

ON_ALL(abort_ends_both_sides)
{
	set_sd_pair_up(AF_INET);
	CB->abort(cli.a);
	cr_expect_eq(cli.gone, 0); /* never from inside a call */
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_CLOSED);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(srv.peers[0].gone, 1);
	stop_sd_pair();
}

ON_ALL(free_aborts)
{
	set_sd_pair_up(AF_INET);
	CB->free(cli.a);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(cli.gone, 0);
	stop_sd_pair();
}

ON_ALL(a_paused_reader_learns_of_an_abort)
{
	start_sd_pair(AF_INET);
	srv.on_accept = pause_it;
	connect_up();
	cr_assert_eq(send_one_sd_pair(&cli, 1, SEGMENT, 1000), 0);
	ask_sd_pair(&cli);
	WAIT_FOR(is_sd_pair_acknowledged(&cli), &cn, &sn);
	CB->abort(cli.a);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(srv.peers[0].messages, 0);
	stop_sd_pair();
}

ON_ALL(a_paused_reader_loses_nothing_to_a_shutdown)
{
	start_sd_pair(AF_INET);
	srv.on_accept = pause_it;
	connect_up();
	cr_assert_eq(send_one_sd_pair(&cli, 1, SEGMENT, 1000), 0);
	CB->shutdown(cli.a);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, 0);
	cr_expect_eq(srv.peers[0].gone, 0);
	SB->pause(srv.peers[0].a, false);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, 1);
	cr_expect_eq(srv.peers[0].end.code, 0);
	stop_sd_pair();
}

static void free_sd_flow(struct side *s)
{
	s->b->free(s->a);
	s->a = NULL;
}

ON_ALL(free_is_allowed_inside_every_upcall)
{
	struct side *s = &srv.peers[0];

	set_sd_pair_up(AF_INET);
	s->on_message = free_sd_flow;
	cli.on_gone = free_sd_flow;
	for (int i = 0; i < 10; i++)
		cr_assert_eq(send_one_sd_pair(&cli, 1, SEGMENT, 100), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(s->messages, 1);
	cr_expect_eq(s->gone, 0);
	cr_expect_eq(cli.end.code, DDPS_E_RESET);
	stop_sd_pair();
}

ON_ALL(free_inside_accepted)
{
	start_sd_pair(AF_INET);
	srv.on_accept = free_sd_flow;
	cr_assert_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].gone, 0);
	stop_sd_pair();
}

ON_ALL(accepted_associations_outlive_their_endpoint)
{
	set_sd_pair_up(AF_INET);
	SB->endpoint_free(srv.ep);
	cr_assert_eq(send_one_sd_pair(&cli, 7, SEGMENT, 5000), 0);
	cr_assert_eq(send_one_sd_pair(&srv.peers[0], 8, SEGMENT, 5000), 0);
	WAIT_FOR(cli.messages && srv.peers[0].messages, &cn, &sn);
	cr_expect_eq(cli.stream, 8);
	stop_sd_pair();
}

ON_ALL(everything_open_goes_with_its_context)
{
	set_sd_pair_up(AF_INET);
	cr_assert_eq(send_one_sd_pair(&cli, 7, SEGMENT, 60000), 0);
	node_fini(&cn, CB); /* the client's ABORT is on its way */
	WAIT_FOR(srv.peers[0].gone, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	node_fini(&sn, SB);
}

ON_ALL(many_associations_one_after_another)
{
	start_sd_pair(AF_INET);
	for (int i = 0; i < 40; i++) {
		unsigned n = srv.accepted;

		cli = (struct side){ 0 };
		cr_assert_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
		WAIT_FOR(cli.up && srv.accepted > n, &cn, &sn);
		if (i & 1)
			CB->shutdown(cli.a);
		else
			CB->abort(cli.a);
		WAIT_FOR(cli.gone && srv.peers[n % MAX_PEERS].gone, &cn, &sn);
		CB->free(cli.a);
		SB->free(srv.peers[n % MAX_PEERS].a);
		srv.peers[n % MAX_PEERS] = (struct side){ .b = SB };
	}
	stop_sd_pair();
}
