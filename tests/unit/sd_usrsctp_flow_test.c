/* SPDX-License-Identifier: BSD-2-Clause */
/* The usrsctp backend from inside: fragmentation, the path, acknowledgements, what is left behind. */
#include "sd_usrsctp_fixture.h"

/* SCTP does not fragment what fits [5043-9-2]. */
Test(sd_usrsctp, only_what_does_not_fit_is_fragmented, .description = "5043-9-2")
{
	uint32_t fragmented;

	set_up(AF_INET);
	cr_expect_eq(cli.info.max_user_data, 65476); /* 65535 - 20 - 8 - 12 - 16, whole words */
	fragmented = stats().sctps_fragusrmsgs;
	cr_assert_eq(send_one(&cli, 0, SEGMENT, cli.info.max_user_data), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect_eq(stats().sctps_fragusrmsgs, fragmented);
	cr_assert_eq(send_one(&cli, 0, SEGMENT, cli.info.max_user_data + 1), 0);
	WAIT_FOR(srv.peers[0].messages == 2, &cn, &sn);
	cr_expect_eq(stats().sctps_fragusrmsgs, fragmented + 1);
	stop();
}

/* SCTP ports are the process's, whatever the context and the UDP port. */
Test(sd_usrsctp, a_port_of_another_context_is_refused)
{
	struct server two;
	uint16_t port;

	start(AF_INET);
	port = ntohs(((struct sockaddr_in *)&srv.sa)->sin_port);
	errno = 0;
	cr_expect_eq(try_listen(&two, &cn, B, AF_INET, port, 0), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	stop();
}

Test(sd_usrsctp, a_shrunk_path_is_respected, .description = "5043-9-1 5043-9-2")
{
	struct ddps_sd_assoc_info i;
	uint32_t fragmented;

	set_up(AF_INET);
	ddps_us_lock(cli.a->ue);
	cli.a->h->payload = 1472; /* Ethernet */
	ddps_us_assoc_payload(cli.a, 1472);
	ddps_us_unlock();
	B->info(cli.a, &i);
	cr_expect_eq(i.max_user_data, 1444);
	fragmented = stats().sctps_fragusrmsgs;
	cr_assert_eq(send_one(&cli, 0, SEGMENT, 1444), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect_eq(stats().sctps_fragusrmsgs, fragmented);
	cr_assert_eq(send_one(&cli, 0, SEGMENT, 64000), 0);
	WAIT_FOR(srv.peers[0].messages == 2, &cn, &sn);
	cr_expect_eq(stats().sctps_fragusrmsgs, fragmented + 1);
	cr_expect(!srv.peers[0].bad);
	stop();
}

Test(sd_usrsctp, dry_comes_once_for_each_question, .description = "5043-6.6-3")
{
	set_up(AF_INET);
	B->ask_dry(cli.a); /* nothing was sent: at once, but not from inside */
	cr_expect_eq(cli.dry, 0);
	WAIT_FOR(cli.dry == 1, &cn, &sn);
	for (int i = 0; i < 50; i++)
		cr_assert_eq(send_one(&cli, 3, SEGMENT, 20000), 0);
	B->ask_dry(cli.a);
	B->ask_dry(cli.a);
	WAIT_FOR(cli.dry == 2, &cn, &sn);
	cr_expect_eq(stats().sctps_sendretransdata, 0);
	WAIT_FOR(srv.peers[0].messages == 50, &cn, &sn);
	/* nobody asked: nothing is told */
	cr_assert_eq(send_one(&cli, 3, CONTROL, 10), 0);
	cr_assert_eq(send_one(&srv.peers[0], 3, CONTROL, 10), 0);
	WAIT_FOR(cli.messages == 1 && srv.peers[0].messages == 51, &cn, &sn);
	B->ask_dry(srv.peers[0].a);
	WAIT_FOR(srv.peers[0].dry == 1, &cn, &sn);
	cr_expect_eq(cli.dry, 2);
	stop();
}

static void not_dry_while_unacknowledged(struct side *s)
{
	(void)s;
	cr_expect_eq(cli.dry, 0);
}

Test(sd_usrsctp, dry_means_acknowledged, .description = "5043-6.6-4")
{
	set_up(AF_INET);
	srv.peers[0].on_message = not_dry_while_unacknowledged;
	cr_assert_eq(send_one(&cli, 0, CONTROL, 100), 0);
	B->ask_dry(cli.a);
	/* the peer's loop does not run: no acknowledgement can come */
	for (int i = 0; i < 20; i++)
		ddps_loop_run(cn.env.loop);
	cr_expect_eq(cli.dry, 0);
	WAIT_FOR(cli.dry, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, 1);
	stop();
}

Test(sd_usrsctp, the_library_comes_and_goes)
{
	for (int i = 0; i < 5; i++) {
		set_up(AF_INET);
		cr_assert_eq(send_one(&cli, 1, SEGMENT, 100), 0);
		WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
		stop();
		/* usrsctp_finish() worked: without the library nothing is bound any more */
		cr_expect_eq(stats().sctps_currestab, 0);
	}
}

Test(sd_usrsctp, many_associations_leave_nothing)
{
	start(AF_INET);
	for (int i = 0; i < 40; i++) {
		unsigned n = srv.accepted;

		cli = (struct side){ 0 };
		cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
		WAIT_FOR(cli.up && srv.accepted > n, &cn, &sn);
		if (i & 1)
			B->shutdown(cli.a);
		else
			B->abort(cli.a);
		WAIT_FOR(cli.gone && srv.peers[n % MAX_PEERS].gone, &cn, &sn);
		B->free(cli.a);
		B->free(srv.peers[n % MAX_PEERS].a);
		srv.peers[n % MAX_PEERS] = (struct side){ .b = B };
	}
	cr_expect_eq(srv.ep->port->carrier->refs, 1);
	cr_expect_eq(srv.ep->port->refs, 1);
	cr_expect_null(srv.ep->ue->assocs);
	stop();
}
