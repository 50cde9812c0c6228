/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting by TCP: from which address and port, and without memory. */
#include "support/descriptor.h"
#include "support/mpa_world.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <fcntl.h>

TestSuite(mpa_connect, .timeout = 60);

static int connect_by(struct mpa_world *w, const struct ddps_uri *uri, const void *sa,
		      socklen_t len)
{
	const struct ddps_setup setup = { 0 };

	return ddps_mpa_provider.connect(&w->env, uri, sa, len, &setup, &w->a.p, &mpa_up, &w->a,
					 &w->a.llp);
}

static int fd_of(const struct mpa_world *w)
{
	return ((const struct ddps_mpa_conn *)w->a.llp)->io.fd;
}

/* A port that nobody uses. */
static uint16_t find_free_mpa_connect_port(void)
{
	uint16_t port;

	close(mpa_bare_listen(&port, 1));
	return port;
}

/* A port that was given may be somebody's who waits; any other is chosen by connect, which has more to
 * choose from. */
Test(mpa_connect, from_a_port_or_from_any)
{
	for (int given = 0; given < 2; given++) {
		struct ddps_uri uri = { .scheme = "tcp", .from.n = 1 };
		struct sockaddr_in from = mpa_loopback(given ? find_free_mpa_connect_port() : 0),
				   to, own;
		socklen_t len = sizeof own;
		struct mpa_world w;

		mpa_world_init(&w);
		mpa_world_listen(&w);
		memcpy(&uri.from.at[0], &from, sizeof from);
		to = mpa_loopback(w.port);
		cr_assert_eq(connect_by(&w, &uri, &to, sizeof to), 0);
		cr_assert_eq(getsockname(fd_of(&w), (struct sockaddr *)&own, &len), 0);
		if (given)
			cr_expect_eq(own.sin_port, from.sin_port);
		cr_expect_eq(get_socket_option(fd_of(&w), SOL_SOCKET, SO_REUSEADDR), given);
		cr_expect_eq(get_socket_option(fd_of(&w), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
			     !given);
		mpa_world_fini(&w);
	}
}

Test(mpa_connect, from_an_ipv6_address)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ddps_uri uri = { .scheme = "tcp", .from.n = 1 };
	socklen_t len = sizeof six;
	struct ddps_conn_info info = { 0 };
	struct mpa_world w;

	if (listener < 0 || bind(listener, (struct sockaddr *)&six, sizeof six) < 0)
		cr_skip_test("no IPv6 here");
	mpa_world_init(&w);
	cr_assert_eq(listen(listener, 1), 0);
	memcpy(&uri.from.at[0], &six, sizeof six);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&six, &len), 0);
	cr_assert_eq(connect_by(&w, &uri, &six, sizeof six), 0);
	cr_expect(((struct ddps_mpa_conn *)w.a.llp)->open);
	w.a.llp->ops->info(w.a.llp, &info);
	ddps_info_text(&info);
	cr_expect(!strncmp(info.local, "[::1]:", 6), "%s", info.local);
	cr_expect_eq(get_socket_option(fd_of(&w), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), 1);
	mpa_world_fini(&w);
	close(listener);
}

/* Nothing was begun: neither a descriptor nor memory is left. */
Test(mpa_connect, without_memory_nothing_is_begun)
{
	const struct sockaddr_in to = mpa_loopback(1);
	const struct ddps_uri uri = { .scheme = "tcp" };
	struct mpa_world w;

	if (mpa_under_valgrind())
		cr_skip_test("it hands out descriptors in its own way");
	mpa_world_init(&w);
	for (unsigned n = 1; n <= 2; n++) {
		long live = mem_live();
		int other = find_next_fd();

		mem_fail(n);
		cr_expect_eq(connect_by(&w, &uri, &to, sizeof to), DDPS_E_NOMEM);
		cr_expect_null(w.a.llp);
		cr_expect_eq(mem_live(), live);
		cr_expect_eq(find_next_fd(), other);
	}
	mpa_world_fini(&w);
}

static unsigned tries;
static int said;

static int not_yet(struct pollfd *p, nfds_t n, int ms)
{
	tries++;
	cr_expect_eq(n, 1);
	cr_expect_eq(ms, 0, "nothing waits in there");
	p->revents = 0;
	return 0;
}

/* What TCP says of the first octets, once. */
static ssize_t take_first_octets(int fd, const void *b, size_t len, int flags)
{
	(void)flags;
	sys_instead.send = NULL;
	tries++;
	if (said > 0)
		return sys_send(fd, b, len < (size_t)said ? len : (size_t)said, MSG_NOSIGNAL);
	errno = -said;
	return -1;
}

/* Whoever connects is not kept: what is not there immediately comes from the loop.  With shared memory there may be
 * something to do before the Request. */
Test(mpa_connect, it_does_not_wait)
{
	static const int ways[] = { -EAGAIN, -EINTR, -ENOBUFS, 7, 1000 };
	const struct ddps_uri uri = { .scheme = "tcp" };
	struct sockaddr_in to;
	struct mpa_world w;

	for (unsigned i = 0; i < 2 * (sizeof ways / sizeof *ways); i++) {
		mpa_world_init(&w);
		mpa_world_listen(&w);
		to = mpa_loopback(w.port);
		w.a.p.shm = i & 1;
		tries = 0;
		said = ways[i / 2];
		sys_instead.poll = i & 1 ? not_yet : NULL;
		sys_instead.send = i & 1 ? NULL : take_first_octets;
		cr_assert_eq(connect_by(&w, &uri, &to, sizeof to), 0);
		sys_instead.poll = NULL;
		cr_expect_eq(tries, 1, "%u", i);
		ddps_llp_attach(w.a.llp, &mpa_data, &w.a);
		MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
		mpa_world_fini(&w);
	}
}

/* What TCP could not do it says of the first octets; what was connected and is gone has refused our Request. */
Test(mpa_connect, what_the_first_octets_say)
{
	static const struct {
		int err, code;
		const char *text;
	} cases[] = {
		{ ECONNREFUSED, DDPS_E_REFUSED, "connect: Connection refused" },
		{ ETIMEDOUT, DDPS_E_TIMEDOUT, "connect: Connection timed out" },
		{ EHOSTUNREACH, DDPS_E_SYSTEM, "connect: No route to host" },
		{ ECONNRESET, DDPS_E_RESET, "peer reset the connection before its MPA Reply" },
		{ EPIPE, DDPS_E_RESET, "peer reset the connection before its MPA Reply" },
	};
	const struct ddps_uri uri = { .scheme = "tcp" };
	struct sockaddr_in to;
	struct mpa_world w;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		mpa_world_init(&w);
		mpa_world_listen(&w);
		to = mpa_loopback(w.port);
		sys_fail("send", 0, 2, cases[i].err);
		cr_assert_eq(connect_by(&w, &uri, &to, sizeof to), 0);
		sys_fail(NULL, 0, 0, 0);
		MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
		cr_expect_eq(w.a.end.code, cases[i].code, "%d", w.a.end.code);
		cr_expect_str_eq(w.a.end.text, cases[i].text);
		mpa_world_fini(&w);
	}
}
