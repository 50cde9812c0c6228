/* SPDX-License-Identifier: BSD-2-Clause */
/* The usrsctp backend, two ends in one process over UDP on loopback. */
#include "sctp_ddp/sd_usrsctp.h"
#include "sd_backend_fixture.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define B	(&ddps_sd_usrsctp)
#define SEGMENT 16u
#define CONTROL 17u

static struct node cn, sn; /* client's and server's contexts */
static struct server srv;
static struct side cli;

static void start(int family)
{
	node_init(&cn);
	node_init(&sn);
	cli = (struct side){ 0 };
	cr_assert_eq(try_listen(&srv, &sn, B, family, 0, 0), 0, "errno %d", errno);
}

static void connect_up(void)
{
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up + cli.gone && srv.accepted, &cn, &sn);
	cr_assert_eq(cli.gone, 0, "%s", cli.end.text);
}

static void set_up(int family)
{
	start(family);
	connect_up();
}

static void stop(void)
{
	node_fini(&cn, B);
	node_fini(&sn, B);
	free(cli.last);
	for (int i = 0; i < MAX_PEERS; i++)
		free(srv.peers[i].last);
}

static int send_one(struct side *s, uint16_t stream, uint32_t ppid, size_t len)
{
	uint8_t *p = malloc(len);
	struct iovec iov[3] = { { p, len / 3 },
				{ p + len / 3, 0 },
				{ p + len / 3, len - len / 3 } };
	int err;

	fill(p, len, stream);
	err = B->send(s->a, stream, ppid, iov, 3);
	free(p);
	return err;
}

static struct sctpstat stats(void)
{
	struct sctpstat st;

	usrsctp_get_stat(&st);
	return st;
}

/* ---- set-up ---- */

static void check_both_ends(const char *host)
{
	const struct ddps_sd_assoc_info *c = &cli.info, *s = &srv.peers[0].info;
	char want[80];

	cr_expect(c->has_adaptation && s->has_adaptation);
	cr_expect_eq(c->adaptation, 1);
	cr_expect_eq(s->adaptation, 1);
	cr_expect_eq(c->in_streams, 4096);
	cr_expect_eq(c->out_streams, 4096);
	cr_expect_eq(s->in_streams, 4096);
	cr_expect_eq(s->out_streams, 4096);
	cr_expect(c->by_us && !s->by_us);
	cr_expect_eq(c->encap, srv.encap);
	cr_expect_neq(s->encap, 0);
	cr_expect_str_eq(c->local, s->peer);
	cr_expect_str_eq(c->peer, s->local);
	ddps_addr_text((struct sockaddr *)&srv.sa, want, sizeof want);
	cr_expect_str_eq(c->peer, want);
	cr_expect(strstr(c->local, host) == c->local, "%s", c->local);
	cr_expect_geq(c->max_user_data, 64000);
	cr_expect_eq(c->max_user_data % 4, 0);
	cr_expect_eq(c->max_user_data, s->max_user_data);
}

Test(sd_usrsctp, indication_and_streams_seen_on_both_ends,
     .description = "5043-5.1-1 5043-5.1-d1 5043-7.1-1 5043-8-1 5043-8-d2 5043-11.1-1")
{
	set_up(AF_INET);
	check_both_ends("127.0.0.1:");
	cr_expect_eq(cli.info.max_user_data, 65476); /* 65535 - 20 - 8 - 12 - 16, whole words */
	stop();
}

Test(sd_usrsctp, works_over_ipv6)
{
	set_up(AF_INET6);
	check_both_ends("[::1]:");
	cr_assert_eq(send_one(&cli, 1, SEGMENT, 64000), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect(!srv.peers[0].bad);
	stop();
}

Test(sd_usrsctp, four_clients_on_one_listener)
{
	struct side c[4] = { 0 };

	start(AF_INET);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(try_connect(&c[i], &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(srv.accepted == 4 && c[0].up && c[1].up && c[2].up && c[3].up, &cn, &sn);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(send_one(&c[i], (uint16_t)i, SEGMENT, 100 + (size_t)i), 0);
	for (int i = 0; i < 4; i++)
		WAIT_FOR(srv.peers[i].messages == 1, &cn, &sn);
	for (int i = 0; i < 4; i++) {
		struct side *s = &srv.peers[i];

		cr_expect_eq(s->octets, 100u + s->stream);
		cr_expect(!s->bad);
		cr_assert_eq(send_one(s, s->stream, SEGMENT, 50), 0);
	}
	WAIT_FOR(c[0].messages && c[1].messages && c[2].messages && c[3].messages, &cn, &sn);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(c[i].stream, i);
	stop();
}

Test(sd_usrsctp, endpoints_of_a_context_share_a_udp_port)
{
	struct server two;

	start(AF_INET);
	cr_assert_eq(try_listen(&two, &sn, B, AF_INET, 0, srv.encap), 0);
	cr_expect_eq(two.encap, srv.encap);
	cr_assert_eq(try_connect(&cli, &cn, B, &two.sa, two.sa_len, two.encap, 5000), 0);
	WAIT_FOR(cli.up, &cn, &sn);
	cr_expect_eq(two.accepted, 1);
	cr_expect_eq(srv.accepted, 0);
	stop();
}

Test(sd_usrsctp, a_port_in_use_is_refused)
{
	struct server two;
	uint16_t port;

	start(AF_INET);
	port = ntohs(((struct sockaddr_in *)&srv.sa)->sin_port);
	errno = 0;
	cr_expect_eq(try_listen(&two, &sn, B, AF_INET, port, srv.encap), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	/* also by another context, on another UDP port: SCTP ports are the process's */
	errno = 0;
	cr_expect_eq(try_listen(&two, &cn, B, AF_INET, port, 0), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	/* a UDP port that somebody else has */
	errno = 0;
	cr_expect_eq(try_listen(&two, &cn, B, AF_INET, 0, srv.encap), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	stop();
}

Test(sd_usrsctp, a_port_can_be_listened_on_again)
{
	uint16_t port;

	start(AF_INET);
	port = ntohs(((struct sockaddr_in *)&srv.sa)->sin_port);
	B->endpoint_free(srv.ep);
	cr_assert_eq(try_listen(&srv, &sn, B, AF_INET, port, 0), 0);
	connect_up();
	cr_expect_eq(cli.up, 1);
	stop();
}

Test(sd_usrsctp, an_endpoint_is_reached_through_its_own_udp_port_only)
{
	struct server other;

	start(AF_INET);
	cr_assert_eq(try_listen(&other, &cn, B, AF_INET, 0, 0), 0);
	/* srv's SCTP port at the other's UDP port */
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, other.encap, 300), 0);
	WAIT_FOR(cli.up || cli.gone, &cn, &sn);
	cr_expect_eq(cli.up, 0);
	cr_expect_eq(srv.accepted + other.accepted, 0);
	stop();
}

Test(sd_usrsctp, addresses_that_cannot_be_are_refused)
{
	struct sockaddr_storage sa;
	socklen_t len = loopback(&sa, AF_INET, 0);

	start(AF_INET);
	cr_expect_eq(try_connect(&cli, &cn, B, &sa, len, 9899, 100), DDPS_E_ADDRESS);
	cr_expect_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, 0, 100), DDPS_E_ADDRESS);
	stop();
}

/* ---- failing set-ups ---- */

static uint16_t silent_socket(int *fd)
{
	struct sockaddr_storage sa;
	socklen_t len = loopback(&sa, AF_INET, 0);

	*fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(*fd, (struct sockaddr *)&sa, len), 0);
	getsockname(*fd, (struct sockaddr *)&sa, &len);
	return ntohs(((struct sockaddr_in *)&sa)->sin_port);
}

Test(sd_usrsctp, nobody_at_the_udp_port_is_a_refusal)
{
	struct sockaddr_storage sa;
	socklen_t len = loopback(&sa, AF_INET, 7174);
	uint16_t port;
	int fd;

	node_init(&cn);
	port = silent_socket(&fd);
	close(fd);
	cr_assert_eq(try_connect(&cli, &cn, B, &sa, len, port, 10000), 0);
	WAIT_FOR(cli.gone, &cn);
	cr_expect_eq(cli.end.code, DDPS_E_REFUSED, "%s", cli.end.text);
	cr_expect_str_eq(cli.end.peer, "127.0.0.1:7174");
	cr_expect_eq(cli.up, 0);
	node_fini(&cn, B);
}

Test(sd_usrsctp, nobody_at_the_sctp_port_is_a_refusal)
{
	struct sockaddr_storage sa;
	socklen_t len = loopback(&sa, AF_INET, 7174);

	start(AF_INET);
	cr_assert_eq(try_connect(&cli, &cn, B, &sa, len, srv.encap, 10000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_REFUSED, "%s", cli.end.text);
	cr_expect_eq(srv.accepted, 0);
	stop();
}

Test(sd_usrsctp, silence_ends_at_the_deadline)
{
	struct sockaddr_storage sa;
	socklen_t len = loopback(&sa, AF_INET, 7174);
	uint64_t t0 = ddps_now();
	int fd;

	node_init(&cn);
	cr_assert_eq(try_connect(&cli, &cn, B, &sa, len, silent_socket(&fd), 100), 0);
	WAIT_FOR(cli.gone, &cn);
	cr_expect_eq(cli.end.code, DDPS_E_TIMEDOUT);
	cr_expect_geq(ddps_now() - t0, 100000000u);
	cr_expect_lt(ddps_now() - t0, 5000000000u);
	close(fd);
	node_fini(&cn, B);
}

Test(sd_usrsctp, an_association_nobody_wants_is_aborted)
{
	start(AF_INET);
	srv.leave = true;
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect(cli.end.code == DDPS_E_RESET || cli.end.code == DDPS_E_REFUSED);
	cr_expect_eq(srv.accepted, 1);
	stop();
}

/* ---- messages ---- */

Test(sd_usrsctp, sizes_streams_and_ppids_arrive_as_sent,
     .description = "5043-5.2-d1 5043-8-d3 5043-10-1 5043-9-2")
{
	static const size_t sizes[] = { 1, 2, 3, 4, 5, 16, 516, 1452, 1453, 9000, 63999, 64000 };
	const size_t n = sizeof sizes / sizeof sizes[0];
	struct side *s = &srv.peers[0];
	uint32_t fragmented;

	set_up(AF_INET);
	fragmented = stats().sctps_fragusrmsgs;
	for (size_t i = 0; i < n; i++) {
		uint16_t stream = (uint16_t)(i * 372); /* up to 4092 */
		uint32_t ppid = i & 1 ? SEGMENT : CONTROL;
		unsigned before = s->messages;

		cr_assert_eq(send_one(&cli, stream, ppid, sizes[i]), 0);
		WAIT_FOR(s->messages > before, &cn, &sn);
		cr_expect_eq(s->last_len, sizes[i]);
		cr_expect_eq(s->stream, stream);
		cr_expect_eq(s->ppid, ppid);
	}
	cr_assert_eq(send_one(&cli, 4095, SEGMENT, cli.info.max_user_data), 0);
	WAIT_FOR(s->messages == n + 1, &cn, &sn);
	cr_expect_eq(s->stream, 4095);
	cr_expect(!s->bad);
	cr_expect_eq(s->ordered, 0);
	cr_expect_eq(stats().sctps_fragusrmsgs, fragmented);
	stop();
}

Test(sd_usrsctp, one_octet_above_the_path_is_fragmented_and_arrives, .description = "5043-9-2")
{
	uint32_t fragmented;

	set_up(AF_INET);
	fragmented = stats().sctps_fragusrmsgs;
	cr_assert_eq(send_one(&cli, 0, SEGMENT, cli.info.max_user_data + 1), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect_eq(srv.peers[0].octets, cli.info.max_user_data + 1);
	cr_expect(!srv.peers[0].bad);
	cr_expect_eq(stats().sctps_fragusrmsgs, fragmented + 1);
	stop();
}

Test(sd_usrsctp, lengths_at_the_limits)
{
	struct iovec none = { NULL, 0 };

	set_up(AF_INET);
	cr_expect_eq(B->send(cli.a, 0, SEGMENT, &none, 1), DDPS_E_INVAL);
	cr_expect_eq(send_one(&cli, 0, SEGMENT, DDPS_SD_MSG_MAX + 1), DDPS_E_TOO_LONG);
	cr_expect_eq(send_one(&cli, 4096, SEGMENT, 10), DDPS_E_INVAL); /* no such stream */
	/* one below the reader's buffer arrives, one that fills it ends the association */
	cr_expect_eq(send_one(&cli, 0, SEGMENT, DDPS_SD_MSG_MAX - 1), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect_eq(srv.peers[0].octets, DDPS_SD_MSG_MAX - 1);
	cr_expect_eq(send_one(&cli, 0, SEGMENT, DDPS_SD_MSG_MAX), 0);
	WAIT_FOR(srv.peers[0].messages == 2, &cn, &sn);
	cr_expect_eq(srv.peers[0].last_len, DDPS_SD_MSG_MAX);
	cr_expect_eq(srv.peers[0].gone, 0);
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

/* ---- flow ---- */

#define FLOOD_LEN   64000u
#define FLOOD_COUNT 1049u /* 64 MiB */

static unsigned flood_sent;

static void flood_more(struct side *s)
{
	int err = 0;

	while (!err && flood_sent < FLOOD_COUNT) {
		err = send_one(s, (uint16_t)(flood_sent % 5), SEGMENT, FLOOD_LEN);
		flood_sent += !err;
	}
	cr_assert(!err || err == DDPS_E_AGAIN, "%s", ddps_strerror(err));
}

static void pause_it(struct side *s)
{
	B->pause(s->a, true);
}

Test(sd_usrsctp, a_reader_that_pauses_stops_the_writer, .timeout = 60)
{
	struct side *s = &srv.peers[0];
	unsigned stuck;
	uint64_t until;

	start(AF_INET);
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
	B->pause(s->a, false);
	WAIT_FOR(s->messages == FLOOD_COUNT, &cn, &sn);
	cr_expect_eq(s->octets, (uint64_t)FLOOD_LEN * FLOOD_COUNT);
	cr_expect(!s->bad);
	cr_expect_gt(cli.writable, 0);
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

/* ---- the end ---- */

Test(sd_usrsctp, shutdown_delivers_what_was_sent_and_ends_in_order)
{
	struct side *s = &srv.peers[0];

	set_up(AF_INET);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(send_one(&cli, 1, SEGMENT, 30000), 0);
	B->shutdown(cli.a);
	cr_expect_eq(send_one(&cli, 1, SEGMENT, 10), DDPS_E_STATE);
	WAIT_FOR(cli.gone && s->gone, &cn, &sn);
	cr_expect_eq(s->messages, 100);
	cr_expect_eq(s->peer_shutdown, 1);
	cr_expect_eq(cli.end.code, 0, "%s", cli.end.text);
	cr_expect_eq(s->end.code, 0, "%s", s->end.text);
	cr_expect_eq(cli.gone, 1);
	cr_expect_eq(send_one(&cli, 1, SEGMENT, 10), DDPS_E_CLOSED);
	B->free(cli.a);
	B->free(s->a);
	stop();
}

Test(sd_usrsctp, shutdown_from_both_sides_at_once)
{
	set_up(AF_INET);
	B->shutdown(cli.a);
	B->shutdown(srv.peers[0].a);
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, 0);
	cr_expect_eq(srv.peers[0].end.code, 0);
	stop();
}

Test(sd_usrsctp, abort_ends_both_sides)
{
	set_up(AF_INET);
	B->abort(cli.a);
	cr_expect_eq(cli.gone, 0); /* never from inside a call */
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_CLOSED);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(srv.peers[0].gone, 1);
	stop();
}

Test(sd_usrsctp, free_aborts)
{
	set_up(AF_INET);
	B->free(cli.a);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(cli.gone, 0);
	stop();
}

Test(sd_usrsctp, a_paused_reader_learns_of_an_abort)
{
	start(AF_INET);
	srv.on_accept = pause_it;
	connect_up();
	cr_assert_eq(send_one(&cli, 1, SEGMENT, 1000), 0);
	B->ask_dry(cli.a);
	WAIT_FOR(cli.dry, &cn, &sn);
	B->abort(cli.a);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(srv.peers[0].messages, 0);
	stop();
}

Test(sd_usrsctp, a_paused_reader_loses_nothing_to_a_shutdown)
{
	start(AF_INET);
	srv.on_accept = pause_it;
	connect_up();
	cr_assert_eq(send_one(&cli, 1, SEGMENT, 1000), 0);
	B->shutdown(cli.a);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, 0);
	cr_expect_eq(srv.peers[0].gone, 0);
	B->pause(srv.peers[0].a, false);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, 1);
	cr_expect_eq(srv.peers[0].end.code, 0);
	stop();
}

static void free_it(struct side *s)
{
	B->free(s->a);
	s->a = NULL;
}

Test(sd_usrsctp, free_is_allowed_inside_every_upcall)
{
	struct side *s = &srv.peers[0];

	set_up(AF_INET);
	s->on_message = free_it;
	cli.on_gone = free_it;
	for (int i = 0; i < 10; i++)
		cr_assert_eq(send_one(&cli, 1, SEGMENT, 100), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(s->messages, 1);
	cr_expect_eq(s->gone, 0);
	cr_expect_eq(cli.end.code, DDPS_E_RESET);
	stop();
}

Test(sd_usrsctp, free_inside_accepted)
{
	start(AF_INET);
	srv.on_accept = free_it;
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].gone, 0);
	stop();
}

Test(sd_usrsctp, accepted_associations_outlive_their_endpoint)
{
	set_up(AF_INET);
	B->endpoint_free(srv.ep);
	cr_assert_eq(send_one(&cli, 7, SEGMENT, 5000), 0);
	cr_assert_eq(send_one(&srv.peers[0], 8, SEGMENT, 5000), 0);
	WAIT_FOR(cli.messages && srv.peers[0].messages, &cn, &sn);
	cr_expect_eq(cli.stream, 8);
	stop();
}

Test(sd_usrsctp, everything_open_goes_with_its_context)
{
	set_up(AF_INET);
	cr_assert_eq(send_one(&cli, 7, SEGMENT, 60000), 0);
	node_fini(&cn, B); /* the client's ABORT is on its way */
	WAIT_FOR(srv.peers[0].gone, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	node_fini(&sn, B);
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

Test(sd_usrsctp, many_associations_one_after_another)
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
	cr_expect(TAILQ_EMPTY(&srv.ep->ue->assocs));
	stop();
}

/* ---- two contexts in two threads ---- */

#define PINGS 2000

static atomic_bool echo_stop;

static void echo(struct side *s)
{
	struct iovec iov = { s->last, s->last_len };

	cr_assert_eq(B->send(s->a, s->stream, s->ppid, &iov, 1), 0);
}

static void echo_setup(struct side *s)
{
	s->keep = true;
	s->on_message = echo;
}

static void *echo_thread(void *arg)
{
	struct node *n = arg;
	struct node *nodes[] = { n };

	while (!atomic_load(&echo_stop))
		spin(nodes, 1);
	return NULL;
}

Test(sd_usrsctp, contexts_in_two_threads, .timeout = 60)
{
	pthread_t t;
	int pinged = 0;

	start(AF_INET);
	srv.on_accept = echo_setup;
	atomic_store(&echo_stop, false);
	cr_assert_eq(pthread_create(&t, NULL, echo_thread, &sn), 0);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up, &cn);
	for (; pinged < PINGS; pinged++) {
		size_t len = 1 + (size_t)(pinged * 31) % 60000;

		cr_assert_eq(send_one(&cli, (uint16_t)(pinged % 9), SEGMENT, len), 0);
		WAIT_FOR(cli.messages == (unsigned)pinged + 1, &cn);
		cr_assert_eq(cli.last_len, len);
	}
	cr_expect(!cli.bad);
	atomic_store(&echo_stop, true);
	pthread_join(t, NULL);
	stop();
}

/* ---- raw IP ---- */

Test(sd_usrsctp, raw_ip_needs_the_privilege)
{
	struct server raw;

	if (geteuid() == 0)
		cr_assert_eq(setuid(65534), 0);
	node_init(&sn);
	errno = 0;
	cr_expect_eq(try_listen(&raw, &sn, B, AF_INET, 0, DDPS_URI_ENCAP_OFF), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EPERM);
	node_fini(&sn, B);
}

static void raw_round(int family)
{
	node_init(&cn);
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, B, family, 0, DDPS_URI_ENCAP_OFF), 0);
	cr_expect_eq(srv.encap, 0);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, DDPS_URI_ENCAP_OFF, 5000), 0);
	WAIT_FOR(cli.up, &cn, &sn);
	cr_expect_eq(cli.info.encap, 0);
	cr_expect_eq(srv.peers[0].info.encap, 0);
	cr_assert_eq(send_one(&cli, 5, SEGMENT, 64000), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_assert_eq(send_one(&srv.peers[0], 6, SEGMENT, 64000), 0);
	WAIT_FOR(cli.messages == 1, &cn, &sn);
	cr_expect(!srv.peers[0].bad && !cli.bad);
	B->shutdown(cli.a);
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, 0);
	stop();
}

Test(sd_usrsctp, raw_ipv4)
{
	if (geteuid())
		cr_skip_test("raw sockets need the privilege");
	raw_round(AF_INET);
}

Test(sd_usrsctp, raw_ipv6)
{
	if (geteuid())
		cr_skip_test("raw sockets need the privilege");
	raw_round(AF_INET6);
}
