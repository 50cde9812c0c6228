/* SPDX-License-Identifier: BSD-2-Clause */
/* The native backend, two ends in one process on loopback, or one and a stranger. */
#include "sd_pair_fixture.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- set-up ---- */

static void check_both_ends(const char *host)
{
	const struct ddps_sd_assoc_info *c = &cli.info, *s = &srv.peers[0].info;
	char want[80];

	cr_expect(c->has_adaptation && s->has_adaptation);
	cr_expect_eq(c->adaptation, 1);
	cr_expect_eq(s->adaptation, 1);
	cr_expect_eq(c->in_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq(c->out_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq(s->in_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq(s->out_streams, DDPS_SCTP_STREAMS);
	cr_expect(c->by_us && !s->by_us);
	cr_expect_eq(c->encap, srv.encap);
	cr_expect_neq(s->encap, 0);
	cr_expect_str_eq(c->local, s->peer);
	cr_expect_str_eq(c->peer, s->local);
	ddps_addr_text((struct sockaddr *)&srv.sa, want, sizeof want);
	cr_expect_str_eq(c->peer, want);
	cr_expect(strstr(c->local, host) == c->local, "%s", c->local);
	if (CB != SB)
		return; /* usrsctp does not look for the path's size */
	WAIT_FOR(widened(), &cn, &sn);
	cr_expect_eq(c->max_user_data, s->max_user_data);
}

ON_ALL(indication_and_streams_seen_on_both_ends,
       .description = "5043-5.1-1 5043-5.1-d1 5043-7.1-1 5043-8-1 5043-8-d2 5043-11.1-1")
{
	set_sd_pair_up(AF_INET);
	check_both_ends("127.0.0.1:");
	if (CB == SB) /* 65535 - 20 - 8 - 12 - 16, whole words */
		cr_expect_eq(cli.info.max_user_data, 65476);
	stop_sd_pair();
}

ON_ALL(works_over_ipv6)
{
	set_sd_pair_up(AF_INET6);
	check_both_ends("[::1]:");
	cr_assert_eq(send_one_sd_pair(&cli, 1, SEGMENT, 64000), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_expect(!srv.peers[0].bad);
	stop_sd_pair();
}

ON_ALL(four_clients_on_one_listener)
{
	struct side c[4] = { 0 };

	start_sd_pair(AF_INET);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(try_connect(&c[i], &cn, CB, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(srv.accepted == 4 && c[0].up && c[1].up && c[2].up && c[3].up, &cn, &sn);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(send_one_sd_pair(&c[i], (uint16_t)i, SEGMENT, 100 + (size_t)i), 0);
	for (int i = 0; i < 4; i++)
		WAIT_FOR(srv.peers[i].messages == 1, &cn, &sn);
	for (int i = 0; i < 4; i++) {
		struct side *s = &srv.peers[i];

		cr_expect_eq(s->octets, 100u + s->stream);
		cr_expect(!s->bad);
		cr_assert_eq(send_one_sd_pair(s, s->stream, SEGMENT, 50), 0);
	}
	WAIT_FOR(c[0].messages && c[1].messages && c[2].messages && c[3].messages, &cn, &sn);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(c[i].stream, i);
	stop_sd_pair();
}

ON_NATIVE(endpoints_of_a_context_share_a_udp_port)
{
	struct server two;

	start_sd_pair(AF_INET);
	cr_assert_eq(try_listen(&two, &sn, SB, AF_INET, 0, srv.encap), 0);
	cr_expect_eq(two.encap, srv.encap);
	cr_assert_eq(try_connect(&cli, &cn, CB, &two.sa, two.sa_len, two.encap, 5000), 0);
	WAIT_FOR(cli.up, &cn, &sn);
	cr_expect_eq(two.accepted, 1);
	cr_expect_eq(srv.accepted, 0);
	stop_sd_pair();
}

ON_NATIVE(a_port_in_use_is_refused)
{
	struct server two;
	uint16_t port;

	start_sd_pair(AF_INET);
	port = ntohs(((struct sockaddr_in *)&srv.sa)->sin_port);
	errno = 0;
	cr_expect_eq(try_listen(&two, &sn, SB, AF_INET, port, srv.encap), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	/* a UDP port that somebody else has */
	errno = 0;
	cr_expect_eq(try_listen(&two, &cn, CB, AF_INET, 0, srv.encap), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	stop_sd_pair();
}

ON_NATIVE(a_port_can_be_listened_on_again)
{
	uint16_t port;

	start_sd_pair(AF_INET);
	port = ntohs(((struct sockaddr_in *)&srv.sa)->sin_port);
	SB->endpoint_free(srv.ep);
	cr_assert_eq(try_listen(&srv, &sn, SB, AF_INET, port, 0), 0);
	connect_up();
	cr_expect_eq(cli.up, 1);
	stop_sd_pair();
}

ON_NATIVE(an_endpoint_is_reached_through_its_own_udp_port_only)
{
	struct server other;

	start_sd_pair(AF_INET);
	cr_assert_eq(try_listen(&other, &cn, CB, AF_INET, 0, 0), 0);
	/* srv's SCTP port at the other's UDP port */
	cr_assert_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, other.encap, 300), 0);
	WAIT_FOR(cli.up || cli.gone, &cn, &sn);
	cr_expect_eq(cli.up, 0);
	cr_expect_eq(srv.accepted + other.accepted, 0);
	stop_sd_pair();
}

ON_NATIVE(addresses_that_cannot_be_are_refused)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, 0);

	start_sd_pair(AF_INET);
	cr_expect_eq(try_connect(&cli, &cn, CB, &sa, len, 9899, 100), DDPS_E_ADDRESS);
	cr_expect_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, 0, 100), DDPS_E_ADDRESS);
	stop_sd_pair();
}

static void any_address(struct sockaddr_storage *ss, int family)
{
	get_sd_backend_loopback(ss, family, 0);
	if (family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_addr = in6addr_any;
	else
		((struct sockaddr_in *)ss)->sin_addr.s_addr = htonl(INADDR_ANY);
}

/* Listen on the wildcard address of @family and be reached at IPv4 address @host. */
static void reach_wildcard(int family, uint32_t host)
{
	struct ddps_uri uri = { .encap = 0 };
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, family, 0);
	char text[80];

	node_init(&cn);
	node_init(&sn);
	srv.peers[0].b = SB;
	any_address(&sa, family);
	cr_assert_eq(SB->listen(&sn.env, &sn.ctx, &uri, (struct sockaddr *)&sa, len, 4,
				&fx_listen_up, &srv, &srv.ep),
		     0);
	SB->endpoint_addr(srv.ep, text, sizeof text, &srv.encap);
	len = get_sd_backend_loopback(&sa, AF_INET, (uint16_t)atoi(strrchr(text, ':') + 1));
	((struct sockaddr_in *)&sa)->sin_addr.s_addr = htonl(host);
	cr_assert_eq(try_connect(&cli, &cn, CB, &sa, len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up || cli.gone, &cn, &sn);
	cr_assert_eq(cli.up, 1, "%s", cli.end.text);
	cr_expect_str_eq(cli.info.peer, srv.peers[0].info.local);
	cr_expect_str_eq(cli.info.local, srv.peers[0].info.peer);
	cr_assert_eq(send_one_sd_pair(&srv.peers[0], 1, SEGMENT, 64000), 0);
	WAIT_FOR(cli.messages == 1, &cn, &sn);
	stop_sd_pair();
}

ON_NATIVE(answers_come_from_the_address_that_was_asked)
{
	reach_wildcard(AF_INET, 0x7f000002); /* 127.0.0.2; the default would be 127.0.0.1 */
}

ON_NATIVE(an_ipv6_wildcard_serves_ipv4)
{
	reach_wildcard(AF_INET6, 0x7f000003);
}

ON_NATIVE(it_comes_from_the_address_it_was_told)
{
	struct ddps_uri uri = { 0 };

	start_sd_pair(AF_INET);
	uri.encap = srv.encap;
	uri.from.n = 1;
	get_sd_backend_loopback(&uri.from.at[0], AF_INET, 0);
	((struct sockaddr_in *)&uri.from.at[0])->sin_addr.s_addr = htonl(0x7f000002);
	cli.b = CB;
	cr_assert_eq(CB->connect(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&srv.sa, srv.sa_len,
				 &(struct ddps_llp_param){ .connect_ms = 5000 }, &fx_up, &cli,
				 &cli.a),
		     0);
	WAIT_FOR(cli.up + cli.gone && srv.accepted, &cn, &sn);
	cr_assert_eq(cli.gone, 0, "%s", cli.end.text);
	cr_expect(strstr(srv.peers[0].info.peer, "127.0.0.2:") == srv.peers[0].info.peer, "%s",
		  srv.peers[0].info.peer);
	cr_expect_str_eq(cli.info.local, srv.peers[0].info.peer);
	stop_sd_pair();
}

/* ---- failing set-ups ---- */

static uint16_t silent_socket(int *fd)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, 0);

	*fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(*fd, (struct sockaddr *)&sa, len), 0);
	getsockname(*fd, (struct sockaddr *)&sa, &len);
	return ntohs(((struct sockaddr_in *)&sa)->sin_port);
}

ON_NATIVE(nobody_at_the_udp_port_is_a_refusal)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, 7174);
	uint16_t port;
	int fd;

	node_init(&cn);
	port = silent_socket(&fd);
	close(fd);
	cr_assert_eq(try_connect(&cli, &cn, CB, &sa, len, port, 10000), 0);
	WAIT_FOR(cli.gone, &cn);
	cr_expect_eq(cli.end.code, DDPS_E_REFUSED, "%s", cli.end.text);
	cr_expect_str_eq(cli.end.peer, "127.0.0.1:7174");
	cr_expect_eq(cli.up, 0);
	node_fini(&cn, CB);
}

ON_ALL(nobody_at_the_sctp_port_is_a_refusal)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, 7174);

	start_sd_pair(AF_INET);
	cr_assert_eq(try_connect(&cli, &cn, CB, &sa, len, srv.encap, 10000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_REFUSED, "%s", cli.end.text);
	cr_expect_eq(srv.accepted, 0);
	stop_sd_pair();
}

ON_NATIVE(silence_ends_at_the_deadline)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, 7174);
	uint64_t t0 = ddps_now();
	int fd;

	node_init(&cn);
	cr_assert_eq(try_connect(&cli, &cn, CB, &sa, len, silent_socket(&fd), 100), 0);
	WAIT_FOR(cli.gone, &cn);
	cr_expect_eq(cli.end.code, DDPS_E_TIMEDOUT);
	cr_expect_geq(ddps_now() - t0, 100000000u);
	cr_expect_lt(ddps_now() - t0, 5000000000u);
	close(fd);
	node_fini(&cn, CB);
}

ON_ALL(an_association_nobody_wants_is_aborted)
{
	start_sd_pair(AF_INET);
	srv.leave = true;
	cr_assert_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect(cli.end.code == DDPS_E_RESET || cli.end.code == DDPS_E_REFUSED);
	cr_expect_eq(srv.accepted, 1);
	stop_sd_pair();
}

/* ---- two contexts in two threads ---- */

#define PINGS 2000

static atomic_bool echo_stop;

static void echo_sd_link(struct side *s)
{
	struct iovec iov = { s->last, s->last_len };

	cr_assert_eq(s->b->send(s->a, s->stream, s->ppid, &iov, 1), 0);
	if (s->b->flush)
		s->b->flush(s->a);
}

static void echo_setup(struct side *s)
{
	s->keep = true;
	s->on_message = echo_sd_link;
}

static void *echo_thread(void *arg)
{
	struct node *n = arg;
	struct node *nodes[] = { n };

	while (!atomic_load(&echo_stop))
		spin(nodes, 1);
	return NULL;
}

ON_ALL(contexts_in_two_threads, .timeout = 60)
{
	pthread_t t;
	int pinged = 0;

	start_sd_pair(AF_INET);
	srv.on_accept = echo_setup;
	atomic_store(&echo_stop, false);
	cr_assert_eq(pthread_create(&t, NULL, echo_thread, &sn), 0);
	cr_assert_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up, &cn);
	for (; pinged < PINGS; pinged++) {
		size_t len = 1 + (size_t)(pinged * 31) % 60000;

		cr_assert_eq(send_one_sd_pair(&cli, (uint16_t)(pinged % 9), SEGMENT, len), 0);
		WAIT_FOR(cli.messages == (unsigned)pinged + 1, &cn);
		cr_assert_eq(cli.last_len, len);
	}
	cr_expect(!cli.bad);
	atomic_store(&echo_stop, true);
	pthread_join(t, NULL);
	stop_sd_pair();
}

/* ---- raw IP ---- */

ON_NATIVE(raw_ip_needs_the_privilege)
{
	struct server raw;

	if (geteuid() == 0)
		cr_assert_eq(setuid(65534), 0);
	node_init(&sn);
	errno = 0;
	cr_expect_eq(try_listen(&raw, &sn, SB, AF_INET, 0, DDPS_URI_ENCAP_OFF), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EPERM);
	node_fini(&sn, SB);
}

static void raw_round(int family)
{
	node_init(&cn);
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, SB, family, 0, DDPS_URI_ENCAP_OFF), 0);
	cr_expect_eq(srv.encap, 0);
	cr_assert_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, DDPS_URI_ENCAP_OFF, 5000), 0);
	WAIT_FOR(cli.up, &cn, &sn);
	cr_expect_eq(cli.info.encap, 0);
	cr_expect_eq(srv.peers[0].info.encap, 0);
	cr_assert_eq(send_one_sd_pair(&cli, 5, SEGMENT, 64000), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &cn, &sn);
	cr_assert_eq(send_one_sd_pair(&srv.peers[0], 6, SEGMENT, 64000), 0);
	WAIT_FOR(cli.messages == 1, &cn, &sn);
	cr_expect(!srv.peers[0].bad && !cli.bad);
	CB->shutdown(cli.a);
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, 0);
	stop_sd_pair();
}

ON_NATIVE(raw_ipv4)
{
	if (geteuid())
		cr_skip_test("raw sockets need the privilege");
	raw_round(AF_INET);
}

ON_NATIVE(raw_ipv6)
{
	if (geteuid())
		cr_skip_test("raw sockets need the privilege");
	raw_round(AF_INET6);
}
