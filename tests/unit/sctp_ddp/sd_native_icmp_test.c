/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer whose UDP port is gone: its host says so by ICMP. */
#include "sd_native_fixture.h"
#include <fcntl.h>
#include <sys/epoll.h>

/* As if its process were killed: the socket is closed, and nobody says anything. */
static void vanish(struct ddps_sd_assoc *a)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	cr_assert_geq(dup2(null, a->sock->io.fd), 0);
	close(null);
}

static void expect_gone(struct side *s)
{
	cr_expect_eq(s->gone, 1);
	cr_expect_eq(s->end.code, DDPS_E_RESET);
	cr_expect(strstr(s->end.text, "gone"), "%s", s->end.text);
}

static void server_vanishes(int family)
{
	set_sd_pair_up(family);
	vanish(srv.peers[0].a);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(cli.gone, &cn);
	expect_gone(&cli);
	stop_sd_pair();
}

Test(sd_native_icmp, a_client_that_sends_learns_that_its_server_is_gone)
{
	server_vanishes(AF_INET);
}

Test(sd_native_icmp, a_client_learns_it_over_ipv6)
{
	server_vanishes(AF_INET6);
}

static void client_vanishes(int family)
{
	struct side *s = &srv.peers[0];

	set_sd_pair_up(family);
	vanish(cli.a);
	cr_assert_eq(send_one_sd_pair(s, 0, SEGMENT, 100), 0);
	WAIT_FOR(s->gone, &sn);
	expect_gone(s);
	stop_sd_pair();
}

Test(sd_native_icmp, a_server_that_sends_learns_that_its_client_is_gone)
{
	client_vanishes(AF_INET);
}

Test(sd_native_icmp, a_server_learns_it_over_ipv6)
{
	client_vanishes(AF_INET6);
}

Test(sd_native_icmp, a_paused_reader_learns_it)
{
	set_sd_pair_up(AF_INET);
	B->pause(cli.a, true);
	vanish(srv.peers[0].a);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(cli.gone, &cn);
	expect_gone(&cli);
	stop_sd_pair();
}

/* The others of the same listener go on, though its socket saw the error. */
Test(sd_native_icmp, one_client_is_gone_and_the_other_is_not)
{
	struct side other = { 0 }, *gone = &srv.peers[0], *there = &srv.peers[1];
	struct node on;

	set_sd_pair_up(AF_INET);
	node_init(&on);
	cr_assert_eq(try_connect(&other, &on, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(other.up && srv.accepted == 2, &on, &sn);
	vanish(cli.a);
	cr_assert_eq(send_one_sd_pair(gone, 0, SEGMENT, 100), 0);
	cr_assert_eq(send_one_sd_pair(there, 0, SEGMENT, 100), 0);
	WAIT_FOR(gone->gone && other.messages, &on, &sn);
	expect_gone(gone);
	cr_assert_eq(send_one_sd_pair(there, 0, SEGMENT, 100), 0);
	cr_assert_eq(send_one_sd_pair(&other, 0, SEGMENT, 100), 0);
	WAIT_FOR(other.messages == 2 && there->messages == 1, &on, &sn);
	cr_expect_eq(there->gone, 0);
	node_fini(&on, B);
	stop_sd_pair();
}

/* A program that is killed leaves all that it had.  One of them says so: the others wait for no heartbeat of
 * their own, which comes once in ten seconds. */
Test(sd_native_icmp, contact_07_all_that_a_killed_program_had_end_together)
{
	struct side other = { 0 }, third = { 0 };
	struct node on;
	uint64_t before;

	set_sd_pair_up(AF_INET);
	node_init(&on);
	cr_assert_eq(try_connect(&other, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(other.up && srv.accepted == 2, &cn, &sn);
	cr_assert_eq(try_connect(&third, &on, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(third.up && srv.accepted == 3, &on, &sn);
	cr_assert_eq(other.a->sock, cli.a->sock, "one UDP port");
	vanish(cli.a);
	before = ddps_now();
	cr_assert_eq(send_one_sd_pair(&srv.peers[0], 0, SEGMENT, 100), 0);
	WAIT_FOR(srv.peers[0].gone && srv.peers[1].gone, &sn, &on);
	cr_expect_lt(ddps_now() - before, 5000000000ull);
	expect_gone(&srv.peers[1]);
	cr_assert_eq(send_one_sd_pair(&third, 0, SEGMENT, 100), 0);
	WAIT_FOR(srv.peers[2].messages, &sn, &on);
	cr_expect_eq(srv.peers[2].gone, 0, "the same host, and another program");
	node_fini(&on, B);
	stop_sd_pair();
}

/* What came before is delivered first. */
static void expect_nothing_yet(struct side *s)
{
	cr_expect_eq(s->gone, 0);
}

Test(sd_native_icmp, what_the_peer_had_sent_is_delivered)
{
	struct side *s = &srv.peers[0];

	set_sd_pair_up(AF_INET);
	cli.on_message = expect_nothing_yet;
	for (int i = 0; i < 100 && send_one_sd_pair(s, 0, SEGMENT, 1000) == 0; i++)
		;
	cr_assert_geq(ddps_loop_run(sn.env.loop), 0); /* as much as a first window takes leaves */
	vanish(s->a);
	WAIT_FOR(cli.gone, &cn); /* its acknowledgement meets nobody */
	cr_expect_gt(cli.messages, 0);
	expect_gone(&cli);
	stop_sd_pair();
}

/* ---- a program that polls without a pause: the socket is read, and epoll says nothing of errors ---- */

static void poll_until_gone(void)
{
	for (int i = 0; i < 100 && !cli.gone; i++)
		ddps_sn_readable(cli.a->sock, EPOLLIN);
	expect_gone(&cli);
}

/* The call that reads fails for the ICMP error, once. */
Test(sd_native_icmp, a_read_that_fails_reports_errors)
{
	set_sd_pair_up(AF_INET);
	vanish(srv.peers[0].a);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	poll_until_gone();
	stop_sd_pair();
}

/* So does the one that sends next, and then nobody else is informed. */
Test(sd_native_icmp, a_send_that_fails_reports_errors)
{
	int err = 0;
	socklen_t len = sizeof err;

	set_sd_pair_up(AF_INET);
	vanish(srv.peers[0].a);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	cr_expect(cli.a->sock->errors);
	cr_assert_eq(getsockopt(cli.a->sock->io.fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	poll_until_gone();
	stop_sd_pair();
}
