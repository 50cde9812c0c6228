/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up of an association of the native SCTP: what the ways take, which addresses the peer is given, and
 * what is left of one that does not begin. */
#include "sd_native_addr_fixture.h"
#include "sctp/sctp_in.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>

TestSuite(sd_native_begin, .timeout = 60);

static int try_these(struct side *s, const struct ddps_uri *uri)
{
	const struct sockaddr_storage *first = &uri->hosts.at[0];

	*s = (struct side){ .b = B };
	return B->connect(&cn.env, &cn.ctx, uri, (const struct sockaddr *)first,
			  ddps_addr_len(first), &(struct ddps_llp_param){ .connect_ms = 60000 },
			  &fx_up, s, &s->a);
}

static unsigned paths_of(const struct side *s)
{
	struct ddps_sctp_info i;

	ddps_sctp_info(s->a->sa, &i);
	return i.npaths;
}

/* An endpoint of 127.0.0.1 and 127.0.0.2; @uri names it. */
static void listen_at_two(struct ddps_uri *uri)
{
	uint16_t port;

	srv = (struct server){ 0 };
	for (int i = 0; i < MAX_PEERS; i++)
		srv.peers[i].b = B;
	*uri = (struct ddps_uri){ 0 };
	put_sd_native_addr(&uri->hosts, "127.0.0.1", 0);
	put_sd_native_addr(&uri->hosts, "127.0.0.2", 0);
	cr_assert_eq(B->listen(&sn.env, &sn.ctx, uri, (struct sockaddr *)&uri->hosts.at[0],
			       sizeof(struct sockaddr_in), FX_BACKLOG, &fx_listen_up, &srv,
			       &srv.ep),
		     0);
	port = srv.ep->port;
	uri->encap = srv.ep->sock->port;
	ddps_sd_set_port(&uri->hosts.at[0], port);
	ddps_sd_set_port(&uri->hosts.at[1], port);
}

/* ---- what a way takes ---- */

/* As if there were a way to everywhere. */
static int there_is_a_way(int fd, const struct sockaddr *a, socklen_t len)
{
	(void)sys_connect(fd, a, len);
	return 0;
}

/* Nobody outside of this host learns of it. */
static ssize_t swallow(int fd, const struct msghdr *m, int flags)
{
	(void)fd;
	(void)flags;
	return (ssize_t)m->msg_iov->iov_len;
}

static uint32_t mtu_to(const char *to, uint32_t host_mtu)
{
	struct side s;
	uint32_t mtu;

	((struct ddps_sn_env *)cn.ctx)->host_mtu = host_mtu;
	to_these(&s, to, NULL, 9);
	mtu = s.a->sa->mtu;
	B->free(s.a);
	return mtu;
}

/* Within the host it is known what a way takes; the system is asked of others. */
Test(sd_native_begin, the_loopback_interface_is_all_of_a_way_within_the_host)
{
	static const struct {
		const char *to;
		bool within;
	} cases[] = {
		{ "127.0.0.1", true },	  { "127.0.0.2", true },  { "127.9.9.9", true },
		{ "::1", true },	  { "192.0.2.1", false }, { "7f00::1", false },
		{ "2001:db8::1", false },
	};
	struct side s;

	node_init(&cn);
	to_these(&s, "127.0.0.1", NULL, 9);
	sys_instead.connect = there_is_a_way;
	sys_instead.sendmsg = swallow;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		cr_expect_eq(mtu_to(cases[i].to, 1234) == 1234, cases[i].within, "%s", cases[i].to);
	node_fini(&cn, B);
}

Test(sd_native_begin, where_the_host_does_not_say_the_system_is_asked)
{
	struct ddps_uri_addrs to = { 0 };
	struct side s;

	node_init(&cn);
	to_these(&s, "127.0.0.1", NULL, 9);
	put_sd_native_addr(&to, "127.0.0.1", 0);
	cr_expect_gt(ddps_sd_sock_mtu(&to.at[0]), 576);
	cr_expect_eq(mtu_to("127.0.0.1", 0), ddps_sd_sock_mtu(&to.at[0]));
	node_fini(&cn, B);
}

Test(sd_native_begin, a_way_takes_576_octets_at_least)
{
	static const uint32_t cases[][2] = {
		{ 100, 576 }, { 575, 576 }, { 576, 576 }, { 577, 577 }
	};
	struct side s;

	node_init(&cn);
	to_these(&s, "127.0.0.1", NULL, 9);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		cr_expect_eq(mtu_to("127.0.0.1", cases[i][0]), cases[i][1], "%u", cases[i][0]);
	node_fini(&cn, B);
}

/* ---- which ways there are ---- */

static unsigned tried;

static int there_is_no_way(int fd, const struct sockaddr *a, socklen_t len)
{
	struct sockaddr_in to;

	(void)fd;
	(void)len;
	memcpy(&to, a, sizeof to);
	tried++;
	errno = to.sin_addr.s_addr == inet_addr("192.0.2.1") ? ENETUNREACH : EHOSTUNREACH;
	return -1;
}

Test(sd_native_begin, the_first_reason_is_reported_where_there_is_no_way)
{
	struct side s;

	node_init(&cn);
	sys_instead.connect = there_is_no_way;
	to_these(&s, "192.0.2.1", "192.0.2.2", 9);
	WAIT_FOR(s.gone, &cn);
	cr_expect_eq(tried, 4, "each: is it ours, and is there a way");
	cr_expect_eq(s.end.sys_errno, ENETUNREACH);
	node_fini(&cn, B);
}

/* As if the system went to 127.0.0.1 from there, and from 127.0.0.2 to all others. */
static int from_two(int fd, const struct sockaddr *a, socklen_t len)
{
	struct sockaddr_in to, own = { .sin_family = AF_INET };

	memcpy(&to, a, sizeof to);
	own.sin_addr.s_addr =
		htonl(INADDR_LOOPBACK + (ntohl(to.sin_addr.s_addr) != INADDR_LOOPBACK));
	return bind(fd, (struct sockaddr *)&own, sizeof own) ? -1 : sys_connect(fd, a, len);
}

Test(sd_native_begin, an_address_of_ours_is_named_once)
{
	struct ddps_uri uri = { .encap = 9 };
	struct ddps_sctp_addr one = addr("127.0.0.1"), two = addr("127.0.0.2");
	const struct ddps_sn_homes *h;
	struct side s;

	node_init(&cn);
	put_sd_native_addr(&uri.hosts, "127.0.0.1", PORT);
	put_sd_native_addr(&uri.hosts, "127.0.0.3", PORT);
	put_sd_native_addr(&uri.hosts, "127.0.0.4", PORT);
	sys_instead.connect = from_two;
	cr_assert_eq(try_these(&s, &uri), 0);
	h = s.a->sock->homes;
	cr_assert(h);
	cr_expect_eq(h->n, 2);
	cr_expect(ddps_sc_addr_eq(&h->at[0], &one) && ddps_sc_addr_eq(&h->at[1], &two));
	cr_expect_eq(paths_of(&s), 3);
	node_fini(&cn, B);
}

/* As many as a list has, and what is behind the last is not in it. */
Test(sd_native_begin, a_list_of_the_peers_addresses)
{
	struct ddps_uri uri = { .encap = 9 };
	struct side s;
	char text[32];

	node_init(&cn);
	for (unsigned i = 0; i < DDPS_URI_ADDRS_MAX; i++) {
		snprintf(text, sizeof text, "127.0.0.%u", i + 1);
		put_sd_native_addr(&uri.hosts, text, PORT);
	}
	cr_assert_eq(try_these(&s, &uri), 0);
	cr_expect_eq(paths_of(&s), DDPS_URI_ADDRS_MAX);
	uri.hosts.n = 3;
	ddps_sd_set_port(&uri.hosts.at[0], PORT + 1);
	cr_assert_eq(try_these(&s, &uri), 0);
	cr_expect_eq(paths_of(&s), 3);
	node_fini(&cn, B);
}

/* ---- what the peer is given ---- */

static void up_between(const struct ddps_uri *uri)
{
	cr_assert_eq(try_these(&cli, uri), 0);
	WAIT_FOR(cli.up && srv.accepted, &cn, &sn);
}

/* RFC 9260 5.1.2 */
Test(sd_native_begin, a_listener_announces_its_other_addresses)
{
	struct ddps_path_stats st = { 0 };
	struct ddps_uri uri;

	node_init(&sn);
	node_init(&cn);
	listen_at_two(&uri);
	uri.hosts.n = 1;
	up_between(&uri);
	cr_assert_eq(paths_of(&cli), 2);
	cr_assert_eq(B->path_stats(cli.a, 1, &st), 0);
	cr_expect_eq(strncmp(st.peer, "127.0.0.2:", 10), 0, "%s", st.peer);
	cr_expect_eq(paths_of(&srv.peers[0]), 1, "the client has one");
	stop_sd_pair();
}

Test(sd_native_begin, who_connects_announces_its_other_addresses)
{
	struct ddps_path_stats st = { 0 };
	struct ddps_uri uri;

	node_init(&sn);
	node_init(&cn);
	listen_at_two(&uri);
	put_sd_native_addr(&uri.from, "127.0.0.5", 0);
	put_sd_native_addr(&uri.from, "127.0.0.6", 0);
	up_between(&uri);
	cr_assert_eq(paths_of(&srv.peers[0]), 2);
	cr_assert_eq(B->path_stats(srv.peers[0].a, 1, &st), 0);
	cr_expect(!strncmp(st.peer, "127.0.0.5:", 10) || !strncmp(st.peer, "127.0.0.6:", 10), "%s",
		  st.peer);
	stop_sd_pair();
}

/* Which of several it is does not wait for the peer. */
Test(sd_native_begin, each_way_has_the_own_address_that_the_system_would_choose)
{
	struct ddps_path_stats st = { 0 };
	struct side s;

	node_init(&cn);
	to_these(&s, "127.0.0.1", "::1", 9);
	cr_assert_eq(B->path_stats(s.a, 0, &st), 0);
	cr_expect_eq(strncmp(st.local, "127.0.0.1:", 10), 0, "%s", st.local);
	cr_assert_eq(B->path_stats(s.a, 1, &st), 0);
	cr_expect_eq(strncmp(st.local, "[::1]:", 6), 0, "%s", st.local);
	node_fini(&cn, B);
}

/* ---- shares ---- */

Test(sd_native_begin, an_address_has_no_more_than_its_share_of_a_listener)
{
	struct ddps_uri uri = { .per_address = 1 };
	struct side other;

	node_init(&cn);
	node_init(&sn);
	srv = (struct server){ 0 };
	for (int i = 0; i < MAX_PEERS; i++)
		srv.peers[i].b = B;
	srv.sa_len = get_sd_backend_loopback(&srv.sa, AF_INET, PORT);
	cr_assert_eq(B->listen(&sn.env, &sn.ctx, &uri, (struct sockaddr *)&srv.sa, srv.sa_len,
			       FX_BACKLOG, &fx_listen_up, &srv, &srv.ep),
		     0);
	srv.encap = srv.ep->sock->port;
	connect_up();
	other = (struct side){ 0 };
	cr_assert_eq(try_connect(&other, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(other.up + other.gone, &cn, &sn);
	WAIT_FOR(other.gone, &cn, &sn);
	cr_expect_eq(srv.accepted, 1);
	cr_expect_eq(cli.gone, 0);
	stop_sd_pair();
}

/* ---- bounds of the engine ---- */

Test(sd_native_begin, what_the_engine_goes_by)
{
	const struct ddps_sctp_config *c;

	start_sd_pair(AF_INET);
	c = &srv.ep->ne->e->c;
	cr_expect_eq(c->hb_interval_ms, 10000, "an idle peer that vanished is found");
	cr_expect_eq(c->rto_max_ms, 10000);
	cr_expect_eq(c->sack_grace_us, 100, "an answer may take its SACK along");
	cr_expect_eq(c->icmp_grace, 0, "a killed peer's host says so");
	stop_sd_pair();
}

static size_t window_here(int *rcvbuf)
{
	struct ddps_assoc_stats st = { 0 };
	struct side s;

	node_init(&cn);
	to_these(&s, "127.0.0.1", NULL, 9);
	cr_assert_eq(B->assoc_stats(s.a, &st), 0);
	*rcvbuf = ddps_sd_sock_rcvbuf(s.a->sock->io.fd);
	node_fini(&cn, B);
	return st.rwnd;
}

Test(sd_native_begin, a_window_is_256_kib_at_least)
{
	int rcvbuf;

	sys_fail("setsockopt", 0, UINT_MAX, EPERM);
	cr_expect_eq(window_here(&rcvbuf), 256 << 10, "a socket of %d", rcvbuf);
	if (rcvbuf >= 256 << 10)
		cr_skip_test("sockets of this system hold more than that");
}

/* The sockets that are asked are those that are used, which need no privilege. */
Test(sd_native_begin, the_window_of_an_unprivileged_program)
{
	size_t window;
	int rcvbuf;
	bool root = !geteuid();

	if (root)
		cr_assert_eq(seteuid(65534), 0);
	window = window_here(&rcvbuf);
	if (root)
		cr_assert_eq(seteuid(0), 0);
	if (rcvbuf > 256 << 10)
		cr_expect_gt(window, 256 << 10, "of %d", rcvbuf);
}

/* Where the program has closed its standard input: the loop has its descriptors already. */
Test(sd_native_begin, a_socket_may_be_the_first_descriptor)
{
	struct ddps_assoc_stats st = { 0 };
	struct side s;
	int rcvbuf;

	node_init(&cn);
	close(0);
	to_these(&s, "127.0.0.1", NULL, 9);
	cr_expect_eq(s.a->sock->io.fd, 0);
	rcvbuf = ddps_sd_sock_rcvbuf(0);
	cr_assert_eq(B->assoc_stats(s.a, &st), 0);
	if (rcvbuf > 256 << 10)
		cr_expect_gt(st.rwnd, 256 << 10, "it was asked");
	node_fini(&cn, B);
}

static unsigned seen_out;

static void capture_sd_native_begin(void *user, const struct ddps_packet *p)
{
	(void)user;
	seen_out += p->sent;
}

Test(sd_native_begin, packets_are_shown_to_who_asked)
{
	struct side s;

	node_init(&cn);
	cn.env.capture = capture_sd_native_begin;
	to_these(&s, "127.0.0.1", NULL, 9);
	cr_expect_eq(seen_out, 1, "the INIT");
	node_fini(&cn, B);
}

/* ---- what does not begin ---- */

/* Whether there was an @n-th allocation to fail. */
static bool does_poor_sd_native_begin_fail(const struct ddps_uri *uri, unsigned n)
{
	unsigned fds = count_sd_native_addr_descriptors();
	long live = mem_live();
	struct side s;
	bool failed;
	int err;

	node_init(&cn);
	mem_fail(n);
	err = try_these(&s, uri);
	failed = mem_failed();
	mem_fail(0);
	cr_expect_eq(!err, s.a && s.a->sa, "allocation %u: %d", n, err);
	if (err) {
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u: %d", n, err);
		cr_expect(!cn.ctx || TAILQ_EMPTY(&((struct ddps_sn_env *)cn.ctx)->assocs),
			  "allocation %u", n);
	}
	node_fini(&cn, B);
	cr_expect_eq(mem_live(), live, "allocation %u", n);
	cr_expect_eq(count_sd_native_addr_descriptors(), fds, "allocation %u", n);
	return failed;
}

static void poor_to(const char *a, const char *b, const char *from, int encap)
{
	struct ddps_uri uri = { .encap = encap };
	unsigned n = 1;

	put_sd_native_addr(&uri.hosts, a, PORT);
	if (b)
		put_sd_native_addr(&uri.hosts, b, PORT);
	if (from)
		put_sd_native_addr(&uri.from, from, 0);
	while (does_poor_sd_native_begin_fail(&uri, n))
		n++;
	cr_expect_gt(n, 5, "%u", n);
}

Test(sd_native_begin, nothing_is_left_of_whoever_connects_without_memory)
{
	poor_to("127.0.0.1", NULL, NULL, 9);
	poor_to("127.0.0.1", "::1", NULL, 9);
	poor_to("127.0.0.1", NULL, "127.0.0.3", 9);
	if (!geteuid())
		poor_to("127.0.0.1", NULL, NULL, OFF);
}

/* The next one does not get the socket that could not be bound. */
Test(sd_native_begin, a_socket_that_cannot_be_bound_is_closed)
{
	struct ddps_uri uri = { .encap = 9 };
	struct side s, other;
	unsigned fds;

	node_init(&cn);
	put_sd_native_addr(&uri.hosts, "127.0.0.1", PORT);
	put_sd_native_addr(&uri.from, "127.0.0.3", 0);
	cr_assert_eq(try_these(&other, &uri), 0); /* what a context has */
	uri.from.n = 0;
	fds = count_sd_native_addr_descriptors();
	sys_fail("bind", 0, 1, EADDRINUSE);
	cr_expect_eq(try_these(&s, &uri), DDPS_E_SYSTEM);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(count_sd_native_addr_descriptors(), fds);
	cr_assert_eq(try_these(&s, &uri), 0);
	cr_expect_gt(s.a->sock->port, 0);
	node_fini(&cn, B);
}

static char line[300];

static void note_sd_native_begin(void *user, enum ddps_log_level level, const char *facility,
				 const char *message)
{
	(void)user;
	(void)facility;
	if (level == DDPS_LOG_DEBUG)
		snprintf(line, sizeof line, "%s", message);
}

/* There is nobody to say goodbye to. */
Test(sd_native_begin, a_shutdown_before_the_peer_has_answered)
{
	struct side s;

	node_init(&cn);
	cn.env.log = (struct ddps_log){ note_sd_native_begin, NULL };
	to_these(&s, "127.0.0.1", NULL, 9);
	cr_expect(ddps_timer_runs(&s.a->deadline));
	B->shutdown(s.a);
	WAIT_FOR(s.gone, &cn);
	cr_expect_eq(s.end.code, DDPS_E_CLOSED);
	cr_expect_str_eq(s.end.text, "aborted by this side");
	cr_expect_str_eq(s.end.peer, "127.0.0.1:7174");
	cr_expect_str_eq(line, "127.0.0.1:7174 gone: aborted by this side");
	cr_expect_not(ddps_timer_runs(&s.a->deadline), "it waits for nothing");
	node_fini(&cn, B);
}
