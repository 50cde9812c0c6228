/* SPDX-License-Identifier: BSD-2-Clause */
/* Which socket an endpoint of the native SCTP has: shared or its own, of several addresses, directly on IP. */
#include "sd_native_addr_fixture.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <limits.h>
#include <stdio.h>

static void init(void)
{
	node_init(&sn);
	node_init(&cn);
	for (int i = 0; i < MAX_PEERS; i++)
		srv.peers[i].b = B;
}

static void fini(void)
{
	stop_sd_pair();
}

TestSuite(sd_native_socks, .init = init, .fini = fini, .timeout = 60);

static void need_raw(void)
{
	if (geteuid())
		cr_skip_test("raw sockets need the privilege");
}

/* "127.0.0.1,::1" */
static struct ddps_uri_addrs addrs(const char *text, uint16_t port)
{
	struct ddps_uri_addrs list = { 0 };
	char copy[200], *at = copy, *one;

	snprintf(copy, sizeof copy, "%s", text);
	while ((one = strsep(&at, ","))) {
		struct sockaddr_storage *ss = &list.at[list.n++];

		get_sd_backend_loopback(ss, strchr(one, ':') ? AF_INET6 : AF_INET, port);
		if (ss->ss_family == AF_INET6)
			inet_pton(AF_INET6, one, &((struct sockaddr_in6 *)ss)->sin6_addr);
		else
			inet_pton(AF_INET, one, &((struct sockaddr_in *)ss)->sin_addr);
	}
	return list;
}

/* An endpoint at @at: an address or several; "": any of IPv6; @host: the URI named one. */
static int listen_sd_native_socks_at(const char *at, bool host, int encap,
				     struct ddps_sd_endpoint **ep)
{
	const struct ddps_uri_addrs list = addrs(*at ? at : "::", 0);
	struct ddps_uri uri = { .encap = encap };

	if (list.n > 1)
		uri.hosts = list;
	if (host)
		uri.host[0] = 'h';
	*ep = NULL;
	return B->listen(&sn.env, &sn.ctx, &uri, (const struct sockaddr *)&list.at[0],
			 ddps_addr_len(&list.at[0]), FX_BACKLOG, &fx_listen_up, &srv, ep);
}

static struct ddps_sn_sock *sock_at(const char *at, bool host, int encap)
{
	struct ddps_sd_endpoint *ep;

	cr_assert_eq(listen_sd_native_socks_at(at, host, encap, &ep), 0, "%s: errno %d", at, errno);
	return ep->sock;
}

/* ---- several addresses ---- */

#define TWO "127.0.0.1,127.0.0.2"

Test(sd_native_socks, endpoints_of_the_same_addresses_share_a_socket)
{
	struct ddps_sd_endpoint *ep;
	struct ddps_sn_sock *s = sock_at(TWO, true, 0), *other = sock_at(TWO, true, 0);

	cr_expect_neq(s, other, "the system has chosen a port for each");
	cr_expect_eq(sock_at(TWO, true, s->port), s);
	cr_expect_eq(sock_at(TWO, true, other->port), other);
	cr_expect_eq(s->refs, 2);
	/* these would take what is for others */
	cr_expect_eq(listen_sd_native_socks_at("127.0.0.1,127.0.0.3", true, s->port, &ep),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	cr_expect_eq(listen_sd_native_socks_at("127.0.0.1,127.0.0.2,127.0.0.3", true, s->port, &ep),
		     DDPS_E_SYSTEM);
	cr_expect_eq(listen_sd_native_socks_at("127.0.0.1", true, s->port, &ep), DDPS_E_SYSTEM);
	cr_expect_eq(listen_sd_native_socks_at("127.0.0.3,127.0.0.2", true, s->port, &ep),
		     DDPS_E_SYSTEM);
	cr_expect_eq(listen_sd_native_socks_at("0.0.0.0", true, s->port, &ep), DDPS_E_SYSTEM);
	cr_expect_eq(s->refs, 2);
}

#define EIGHT "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5,127.0.0.6,127.0.0.7,127.0.0.8"

Test(sd_native_socks, endpoints_of_as_many_addresses_as_there_can_be)
{
	struct ddps_sn_sock *s = sock_at(EIGHT, true, 0);

	cr_expect_eq(s->homes->n, DDPS_URI_ADDRS_MAX);
	cr_expect_eq(sock_at(EIGHT, true, s->port), s);
}

/* IPv4 is taken where an address of it is in the list. */
Test(sd_native_socks, addresses_of_ipv6_alone_directly_on_ip)
{
	struct ddps_uri_addrs list = addrs("::1,2001:db8::1,127.0.0.1", 0);
	struct ddps_sn_env *ne = sock_at("127.0.0.1", true, 0)->ne;
	struct ddps_sn_sock *s;

	need_raw();
	list.n = 2;
	cr_assert_eq(ddps_sn_homes_sock(ne, &list, AF_INET6, OFF, 0, &s), 0);
	cr_expect_null(s->twin);
	ddps_sn_sock_put(s);
}

Test(sd_native_socks, who_shares_a_socket_takes_no_memory_for_it)
{
	const struct ddps_uri_addrs list = addrs(TWO, 0);
	struct ddps_sn_sock *s = sock_at(TWO, true, 0), *same;
	const long live = mem_live();

	cr_assert_eq(ddps_sn_homes_sock(s->ne, &list, AF_INET, s->port, 0, &same), 0);
	cr_expect_eq(same, s);
	cr_expect_eq(mem_live(), live);
	ddps_sn_sock_put(same);
}

static struct ddps_sd_endpoint *again;

static void close_and_open(void *user)
{
	struct ddps_sd_endpoint *ep = user;
	const uint16_t port = ep->sock->port;

	B->endpoint_free(ep);
	cr_expect_eq(listen_sd_native_socks_at(TWO, true, port, &again), 0, "errno %d", errno);
}

/* From an upcall, when its socket is not closed yet. */
Test(sd_native_socks, an_endpoint_is_opened_again_immediately)
{
	struct ddps_sd_endpoint *ep;
	struct ddps_task t = { .fn = close_and_open };
	uint16_t port;

	cr_assert_eq(listen_sd_native_socks_at(TWO, true, 0, &ep), 0);
	port = ep->sock->port;
	t.user = ep;
	ddps_task_post(sn.env.loop, &t);
	cr_assert_geq(ddps_loop_run(sn.env.loop), 0);
	cr_assert(again);
	cr_expect_eq(again->sock->port, port);
	cr_expect_eq(again->sock->refs, 1);
	cr_expect_not(again->ne->unused);
}

Test(sd_native_socks, several_addresses_directly_on_ip)
{
	struct ddps_sn_sock *s, *mixed;

	need_raw();
	s = sock_at(TWO, true, OFF);
	cr_expect(s->raw);
	cr_expect_eq(sock_at(TWO, true, OFF), s);
	cr_expect_neq(sock_at("127.0.0.1,127.0.0.3", true, OFF), s);
	cr_expect_neq(sock_at(TWO, true, 0), s);
	mixed = sock_at("127.0.0.1,::1", true, OFF);
	cr_expect_eq(mixed->family, AF_INET6);
	cr_expect_eq(mixed->twin->family, AF_INET);
	cr_expect_eq(mixed->twin->homes, mixed->homes);
}

Test(sd_native_socks, where_a_packet_leaves_from)
{
	const struct ddps_sctp_addr own[] = { addr("::1"), addr("192.0.2.1"), addr("127.0.0.1") };
	const struct ddps_sctp_addr near = addr("127.0.0.1"), other = addr("127.0.0.2");

	cr_expect_eq(ddps_sn_homes_source(NULL, &near, own, 3), 2, "as the system would");
	cr_expect_eq(ddps_sn_homes_source(NULL, &near, own, 2), 1, "the first of IPv4");
	cr_expect_eq(ddps_sn_homes_source(NULL, &other, own, 1), 1, "there is none of IPv4");
	sys_fail("connect", 0, 1, ENETUNREACH);
	cr_expect_eq(ddps_sn_homes_source(NULL, &near, own, 3), 1, "the system knows no way");
	cr_expect_eq(sys_failed(), 1);
}

/* ---- one address ---- */

Test(sd_native_socks, endpoints_of_one_address_share_a_udp_port)
{
	struct ddps_sn_sock *s = sock_at("127.0.0.1", true, 0), *any;
	struct ddps_sd_endpoint *ep;

	cr_expect_eq(sock_at("127.0.0.1", true, s->port), s);
	any = sock_at("", false, 0);
	cr_expect_eq(sock_at("", false, any->port), any);
	/* one that takes no IPv4 is another one, and the port is taken */
	cr_expect_eq(listen_sd_native_socks_at("", true, any->port, &ep), DDPS_E_SYSTEM);
	cr_expect_eq(any->refs, 2);
	sys_fail("getsockname", 0, 1, ENOBUFS);
	cr_expect_eq(listen_sd_native_socks_at("127.0.0.1", true, s->port, &ep), DDPS_E_SYSTEM,
		     "where it is bound to is not known, so it is not shared");
	cr_expect_eq(sys_failed(), 1);
}

static int takes_ipv6_only(const struct ddps_sn_sock *s)
{
	int only = -1;
	socklen_t len = sizeof only;

	cr_assert_eq(getsockopt(s->io.fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len), 0);
	return only;
}

Test(sd_native_socks, an_endpoint_that_names_an_ipv6_address_takes_no_ipv4)
{
	struct ddps_sn_sock *only = sock_at("", true, 0), *both = sock_at("", false, 0);

	cr_expect_eq(takes_ipv6_only(only), 1);
	cr_expect_eq(takes_ipv6_only(both), 0);
	cr_expect_eq(sock_at("", true, only->port), only, "it is shared as others are");
	cr_expect(sock_at("0.0.0.0", true, only->port), "the port is free in IPv4");
}

/* One that is bound to any address since it is for certain ones is another matter. */
Test(sd_native_socks, a_socket_to_connect_from_is_none_to_listen_on)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct ddps_sn_env *ne = sock_at("127.0.0.1", true, 0)->ne;
	struct ddps_sn_sock *mine, *other;

	cr_assert_eq(ddps_sn_sock_client(ne, AF_INET, false, 0, &mine), 0);
	cr_expect_eq(ddps_sn_sock_bind(ne, (struct sockaddr *)&any, sizeof any, mine->port, 0, 0,
				       &other),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	cr_expect_eq(mine->refs, 1);
	ddps_sn_sock_put(mine);
}

Test(sd_native_socks, endpoints_directly_on_ip_share_a_socket)
{
	struct ddps_sn_sock *s, *both;

	need_raw();
	s = sock_at("127.0.0.1", true, OFF);
	cr_expect_eq(sock_at("127.0.0.1", true, OFF), s);
	cr_expect_neq(sock_at("127.0.0.2", true, OFF), s);
	cr_expect_neq(sock_at("127.0.0.1", true, 0), s);
	both = sock_at("", false, OFF);
	cr_expect(both->twin);
	cr_expect_eq(sock_at("", false, OFF), both);
	cr_expect_neq(sock_at("", true, OFF), both, "that takes IPv6 only");
	/* one that is not of several addresses, though it is bound to any */
	cr_expect_neq(sock_at("127.0.0.1,::1", true, OFF), both);
	cr_expect_eq(both->refs, 2);
}

Test(sd_native_socks, one_of_both_ips_is_not_shared_with_one_of_one)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	const struct sockaddr *sa = (const struct sockaddr *)&any;
	struct ddps_sn_sock *both, *one;

	need_raw();
	both = sock_at("", false, OFF);
	cr_assert_eq(ddps_sn_sock_bind(both->ne, sa, sizeof any, OFF, 0, 0, &one), 0);
	cr_expect_neq(one, both);
	cr_expect_null(one->twin);
	ddps_sn_sock_put(one);
}

/* IPv4 next to IPv6 directly on IP: the twin is waited for when it is full. */
Test(sd_native_socks, a_full_twin_is_waited_for)
{
	struct side *s = &srv.peers[0];
	struct ddps_sd_endpoint *ep;
	struct ddps_sn_sock *t;
	unsigned tried;

	need_raw();
	cr_assert_eq(listen_sd_native_socks_at("", false, OFF, &ep), 0);
	t = ep->sock->twin;
	get_sd_backend_loopback(&srv.sa, AF_INET, ep->port);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, sizeof(struct sockaddr_in), OFF, 5000), 0);
	WAIT_FOR(cli.up && s->up, &cn, &sn);
	sys_fail("sendmsg", 0, 1000, EAGAIN);
	cr_assert_eq(send_one_sd_pair(s, 0, SEGMENT, 100), 0);
	tried = sys_failed();
	cr_expect(t->full && !ep->sock->full);
	cr_assert_eq(send_one_sd_pair(s, 0, SEGMENT, 100), 0);
	cr_expect_eq(sys_failed(), tried, "nothing is tried while there is no room");
	sys_fail(NULL, 0, 0, 0);
	WAIT_FOR(cli.messages == 2, &cn, &sn);
	cr_expect_not(t->full);
}

static struct ddps_sd_endpoint *of_both;
static unsigned users;

static void count_users(struct side *s)
{
	(void)s;
	users = of_both->sock->refs;
}

/* What comes to the twin comes to the endpoint, which stays there while it is read. */
Test(sd_native_socks, a_twin_is_the_same_endpoint)
{
	struct side *s = &srv.peers[0];

	need_raw();
	sock_at("127.0.0.9", true, 0);
	cr_assert_eq(listen_sd_native_socks_at("", false, OFF, &of_both), 0);
	cr_expect_gt(of_both->sock->via, 0);
	get_sd_backend_loopback(&srv.sa, AF_INET, of_both->port);
	s->on_message = count_users;
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, sizeof(struct sockaddr_in), OFF, 5000), 0);
	WAIT_FOR((cli.up && s->up) || cli.gone, &cn, &sn);
	cr_assert(cli.up);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(s->messages, &cn, &sn);
	cr_expect_eq(users, 3, "endpoint, association and reader");
}

Test(sd_native_socks, a_socket_and_its_twin_leave_the_loop)
{
	struct ddps_sd_endpoint *ep;

	need_raw();
	cr_assert_eq(listen_sd_native_socks_at("", false, OFF, &ep), 0);
	sys_fail("epoll_ctl", 0, UINT_MAX, EBADF);
	B->endpoint_free(ep);
	cr_expect_eq(sys_failed(), 2, "each tells it");
	sys_fail(NULL, 0, 0, 0);
}

/* A raw socket sees all packets of the host: those to a port of ours are looked at. */
Test(sd_native_socks, a_port_directly_on_ip_is_looked_at_while_it_is_used)
{
	struct ddps_sd_endpoint *ep, *other;
	struct side *s = &srv.peers[0], second = { 0 };
	const uint16_t *ours, *theirs;
	uint16_t port, mine;

	need_raw();
	cr_assert_eq(listen_sd_native_socks_at("127.0.0.1", true, OFF, &ep), 0);
	cr_assert_eq(listen_sd_native_socks_at("127.0.0.1", true, OFF, &other), 0);
	ours = ep->sock->ours;
	port = ep->port;
	cr_expect_eq(ours[port], 1);
	get_sd_backend_loopback(&srv.sa, AF_INET, port);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, sizeof(struct sockaddr_in), OFF, 5000), 0);
	cr_assert_eq(try_connect(&second, &cn, B, &srv.sa, sizeof(struct sockaddr_in), OFF, 5000),
		     0);
	WAIT_FOR(cli.up && second.up && srv.accepted == 2, &cn, &sn);
	cr_expect_eq(ours[port], 3);
	B->endpoint_free(ep);
	cr_expect_eq(ours[port], 2, "what it has accepted lives on");
	B->free(s->a);
	cr_expect_eq(ours[port], 1);
	B->free(srv.peers[1].a);
	cr_expect_eq(ours[port], 0);
	cr_expect_eq(ours[other->port], 1);
	theirs = cli.a->sock->ours;
	mine = cli.a->port;
	cr_expect_eq(theirs[mine], 1);
	B->free(cli.a);
	cr_expect_eq(theirs[mine], 0);
	cr_expect_eq(theirs[second.a->port], 1);
}

/* ---- a context's sockets ---- */

static int connect_sd_native_socks_from(struct side *s, const char *from, const char *to, int encap)
{
	struct ddps_uri uri = { .encap = encap };
	const struct ddps_uri_addrs at = addrs(to, 7174);

	*s = (struct side){ .b = B };
	if (at.n > 1)
		uri.hosts = at;
	if (from)
		uri.from = addrs(from, 0);
	return B->connect(&cn.env, &cn.ctx, &uri, (const struct sockaddr *)&at.at[0],
			  ddps_addr_len(&at.at[0]), &(struct ddps_llp_param){ .connect_ms = 5000 },
			  &fx_up, s, &s->a);
}

Test(sd_native_socks, who_connects_shares_one_of_each_kind)
{
	struct side s[5];

	cr_assert_eq(connect_sd_native_socks_from(&s[0], NULL, "127.0.0.1", 9), 0);
	cr_assert_eq(connect_sd_native_socks_from(&s[1], NULL, "127.0.0.2", 9), 0);
	cr_assert_eq(connect_sd_native_socks_from(&s[2], NULL, "::1", 9), 0);
	cr_assert_eq(connect_sd_native_socks_from(&s[4], NULL, "::1", 10), 0);
	cr_expect_eq(s[4].a->sock, s[2].a->sock);
	cr_expect_eq(s[1].a->sock, s[0].a->sock);
	cr_expect_eq(s[1].a->sock->refs, 2);
	cr_expect_neq(s[2].a->sock, s[0].a->sock);
	if (!geteuid()) {
		cr_assert_eq(connect_sd_native_socks_from(&s[3], NULL, "127.0.0.1", OFF), 0);
		cr_expect_neq(s[3].a->sock, s[0].a->sock);
		cr_expect(s[3].a->sock->raw);
	}
}

Test(sd_native_socks, who_connects_from_certain_addresses_has_its_own)
{
	struct side s[6];

	cr_assert_eq(connect_sd_native_socks_from(&s[0], NULL, "127.0.0.1", 9), 0);
	cr_assert_eq(connect_sd_native_socks_from(&s[1], "127.0.0.1", "127.0.0.1", 9), 0);
	cr_expect_neq(s[1].a->sock, s[0].a->sock);
	cr_expect_geq(s[1].a->sock->port, 1024, "as the system chooses");
	/* the one of IPv4 that the peer's first address needs, of a socket for both */
	cr_assert_eq(connect_sd_native_socks_from(&s[2], "127.0.0.1,::1", "127.0.0.1,::1", 9), 0);
	cr_expect_eq(s[2].a->sock->family, AF_INET6);
	cr_expect_eq(s[2].a->sock->homes->n, 2);
	cr_expect_geq(s[2].a->sock->port, 1024);
	cr_expect_eq(connect_sd_native_socks_from(&s[3], "127.0.0.1", "127.0.0.1,::1", 9),
		     DDPS_E_ADDRESS, "no address of ours reaches the second");
	cr_expect_eq(connect_sd_native_socks_from(&s[3], "127.0.0.1", "::1", 9), DDPS_E_ADDRESS);
	if (!geteuid()) {
		cr_assert_eq(connect_sd_native_socks_from(&s[3], TWO, "127.0.0.1", OFF), 0);
		cr_expect(s[3].a->sock->raw && s[3].a->sock->homes);
		cr_assert_eq(connect_sd_native_socks_from(&s[4], "127.0.0.1", "127.0.0.2", OFF), 0);
		cr_expect(s[4].a->sock->raw && !s[4].a->sock->homes);
		cr_assert_eq(connect_sd_native_socks_from(&s[5], "127.0.0.1", "127.0.0.3", OFF), 0);
		cr_expect_eq(s[5].a->sock, s[4].a->sock, "one suffices for an address");
	}
}

Test(sd_native_socks, the_own_address_is_not_known_before_the_peer_answers)
{
	struct ddps_path_stats path = { 0 };
	struct side s;

	cr_assert_eq(connect_sd_native_socks_from(&s, NULL, "127.0.0.1", 9), 0);
	cr_assert_eq(B->path_stats(s.a, 0, &path), 0);
	cr_expect_str_eq(path.peer, "127.0.0.1:7174");
	cr_expect_str_eq(path.local, "");
}

/* ---- no way ---- */

/* An association that the engine knows nothing of: its end is reported, and all else is refused. */
Test(sd_native_socks, a_peer_that_cannot_be_reached)
{
	struct ddps_assoc_stats st = { 0 };
	struct ddps_path_stats path = { 0 };
	struct ddps_sd_assoc_info info;
	struct iovec iov = { (void *)(uintptr_t) "x", 1 };
	struct side s;

	sys_fail("connect", 0, 2, ENETUNREACH);
	cr_assert_eq(connect_sd_native_socks_from(&s, NULL, TWO, 9), 0);
	cr_expect_eq(sys_failed(), 2);
	cr_expect_eq(s.gone, 0, "not from inside the call");
	B->info(s.a, &info);
	cr_expect_str_eq(info.peer, "");
	cr_expect_eq(B->assoc_stats(s.a, &st), DDPS_E_STATE);
	cr_expect_eq(B->path_stats(s.a, 0, &path), DDPS_E_STATE);
	cr_expect_eq(B->set_primary(s.a, 0), DDPS_E_STATE);
	cr_expect_eq(B->send(s.a, 0, SEGMENT, &iov, 1), DDPS_E_CLOSED);
	B->flush(s.a);
	WAIT_FOR(s.gone, &cn);
	cr_expect_eq(s.end.code, DDPS_E_SYSTEM);
	cr_expect_eq(s.end.sys_errno, ENETUNREACH);
	cr_expect_str_eq(s.end.text, "cannot send to the peer");
}

Test(sd_native_socks, an_own_address_that_this_host_has_not)
{
	struct side s;

	/* a socket is bound to it in any case, and that says so */
	cr_expect_eq(connect_sd_native_socks_from(&s, "192.0.2.1", "127.0.0.1", 9), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRNOTAVAIL);
	sys_fail("bind", 0, 1, EADDRNOTAVAIL); /* as if it came meanwhile */
	cr_assert_eq(connect_sd_native_socks_from(&s, "127.0.0.1", "127.0.0.1", 9), 0);
	WAIT_FOR(s.gone, &cn);
	cr_expect_eq(s.end.code, DDPS_E_SYSTEM);
	cr_expect_eq(s.end.sys_errno, EADDRNOTAVAIL);
}

/* ---- limits ---- */

static uint8_t dice[2];
static unsigned rolls;

static ssize_t loaded(void *buf, size_t len, unsigned flags)
{
	(void)flags;
	rolls += len == 2;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = dice[i % 2];
	return (ssize_t)len;
}

/* Ports that are drawn are free, or drawn again, but not for ever. */
Test(sd_native_socks, no_free_port_is_found)
{
	struct ddps_sd_endpoint *ep, *other;

	cr_assert_eq(listen_sd_native_socks_at("127.0.0.1", true, 0, &ep), 0);
	dice[0] = 7;
	sys_instead.getrandom = loaded;
	cr_assert_eq(listen_sd_native_socks_at("127.0.0.1", true, ep->sock->port, &other), 0);
	cr_expect_eq(other->port, 49152 + (7 | 0 << 8));
	rolls = 0;
	cr_expect_eq(listen_sd_native_socks_at("127.0.0.1", true, ep->sock->port, &ep),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	cr_expect_eq(rolls, 1000);
	sys_instead.getrandom = NULL;
	cr_expect_eq(listen_sd_native_socks_at("127.0.0.1", true, other->sock->port, &ep), 0);
}

static ssize_t twice_each(void *buf, size_t len, unsigned flags)
{
	cr_expect_eq(flags, 0);
	cr_assert_eq(len, 2);
	memcpy(buf, (uint8_t[]){ (uint8_t)(rolls++ / 2), 0 }, 2);
	return 2;
}

Test(sd_native_socks, a_port_that_is_not_free_is_drawn_again)
{
	struct ddps_sd_endpoint *ep[3];

	cr_assert_eq(listen_sd_native_socks_at("127.0.0.1", true, 0, &ep[0]), 0);
	rolls = 0;
	sys_instead.getrandom = twice_each;
	for (unsigned i = 1; i < 3; i++) {
		cr_assert_eq(
			listen_sd_native_socks_at("127.0.0.1", true, ep[0]->sock->port, &ep[i]), 0);
		cr_expect_eq(ep[i]->port, 49152 + i - 1);
	}
	cr_expect_eq(rolls, 3);
	sys_instead.getrandom = NULL;
}

/* One that was named is tried once. */
Test(sd_native_socks, a_port_that_is_taken)
{
	struct server again_there;

	cr_assert_eq(try_listen(&srv, &sn, B, AF_INET, 7174, 0), 0);
	cr_expect_eq(try_listen(&again_there, &sn, B, AF_INET, 7174, srv.encap), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
}

Test(sd_native_socks, there_are_no_more_numbers_for_sockets)
{
	struct ddps_sn_sock *s = sock_at("127.0.0.1", true, 0), *other;
	struct ddps_sn_env *ne = s->ne;
	struct ddps_sn_sock **had = ne->socks;
	unsigned n = ne->nsocks;

	ne->nsocks = UINT16_MAX + 1;
	ne->socks = malloc(ne->nsocks * sizeof(struct ddps_sn_sock *));
	cr_assert(ne->socks);
	for (unsigned i = 0; i < ne->nsocks; i++)
		ne->socks[i] = s;
	cr_expect_eq(ddps_sn_sock_client(ne, AF_INET, false, 0, &other), DDPS_E_LIMIT);
	free(ne->socks);
	ne->socks = had;
	ne->nsocks = n;
}

Test(sd_native_socks, the_last_number_for_a_socket)
{
	struct ddps_sn_sock *s = sock_at("127.0.0.1", true, 0), *last;
	struct ddps_sn_env *ne = s->ne;
	struct ddps_sn_sock **had = ne->socks;
	unsigned n = ne->nsocks;

	ne->nsocks = UINT16_MAX;
	ne->socks = malloc(ne->nsocks * sizeof(struct ddps_sn_sock *));
	cr_assert(ne->socks);
	for (unsigned i = 0; i < ne->nsocks; i++)
		ne->socks[i] = s;
	cr_assert_eq(ddps_sn_sock_client(ne, AF_INET, false, 0, &last), 0);
	cr_expect_eq(last->via, UINT16_MAX);
	ddps_sn_sock_put(last);
	ddps_sn_close_unused(ne);
	free(ne->socks);
	ne->socks = had;
	ne->nsocks = n;
}

/* Random octets come in stocks; what is more than a stock, or was interrupted, is asked for. */
Test(sd_native_socks, random_octets)
{
	struct ddps_sn_env *ne = sock_at("127.0.0.1", true, 0)->ne;
	uint8_t many[sizeof ne->noise + 1] = { 0 }, few[32] = { 0 };
	const uint8_t none[32] = { 0 };

	ddps_sn_random(ne, many, sizeof many);
	cr_expect(memcmp(many, none, sizeof none));
	cr_expect(memcmp(many + sizeof many - sizeof none, none, sizeof none));
	ne->noise_left = 0;
	sys_fail("getrandom", 0, 1, EINTR);
	ddps_sn_random(ne, few, sizeof few);
	cr_expect_eq(sys_failed(), 1);
	cr_expect(memcmp(few, none, sizeof none));
	cr_expect_eq(ne->noise_left, sizeof ne->noise - sizeof few);
}

/* ---- no memory, no descriptor ---- */

/* Whether there was an @n-th allocation to fail. */
static bool does_poor_sd_native_socks_fail(const char *at, int encap, unsigned n)
{
	struct ddps_sd_endpoint *ep;
	unsigned fds = count_sd_native_addr_descriptors();
	int err;
	bool failed;

	mem_fail(n);
	err = listen_sd_native_socks_at(at, false, encap, &ep);
	failed = mem_failed();
	mem_fail(0);
	cr_expect_eq(err, failed ? DDPS_E_NOMEM : 0, "%s, allocation %u: %d", at, n, err);
	if (!err)
		B->endpoint_free(ep);
	cr_expect_eq(count_sd_native_addr_descriptors(), fds,
		     "%s, allocation %u: what it had is closed", at, n);
	return failed;
}

static void poor_at(const char *at, int encap, unsigned least)
{
	unsigned n = 1;

	while (does_poor_sd_native_socks_fail(at, encap, n))
		n++;
	cr_expect_geq(n, least, "%s: %u", at, n);
}

Test(sd_native_socks, a_listener_without_memory_is_reported)
{
	poor_at("127.0.0.1", 0, 4);
	poor_at(TWO, 0, 4);
	need_raw();
	poor_at("", OFF, 5);
	poor_at("127.0.0.1,::1", OFF, 5);
}

Test(sd_native_socks, a_listener_without_a_descriptor_is_reported)
{
	struct ddps_sd_endpoint *ep;
	long live;

	sock_at("127.0.0.1", true, 0); /* what a context has */
	live = mem_live();
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(listen_sd_native_socks_at(TWO, true, 0, &ep), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EMFILE);
	need_raw();
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(listen_sd_native_socks_at("", false, OFF, &ep), DDPS_E_SYSTEM);
	sys_fail("socket", 1, 1, EMFILE);
	cr_expect_eq(listen_sd_native_socks_at("", false, OFF, &ep), DDPS_E_SYSTEM, "the twin's");
	cr_expect_eq(sys_failed(), 1);
	sys_fail(NULL, 0, 0, 0);
	cr_expect_eq(mem_live(), live, "nothing is left of those");
	cr_expect(sock_at("", false, OFF)->twin);
}
