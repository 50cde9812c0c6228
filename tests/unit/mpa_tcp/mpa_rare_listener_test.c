/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and listeners of MPA where the system does what it seldom does. */
#include "support/mpa_world.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>

TestSuite(mpa_rare_listener, .timeout = 60);

/* ---- connecting ---- */

Test(mpa_rare_listener, an_address_that_is_not_ours)
{
	struct ddps_conn_info info = { 0 };
	struct sockaddr_in in = mpa_loopback(1);
	struct ddps_uri uri = { .scheme = "tcp" };
	struct sockaddr_in *from = (struct sockaddr_in *)&uri.from.at[0];
	struct ddps_setup setup = { 0 };
	struct mpa_world w;

	mpa_world_init(&w);
	uri.from.n = 1;
	from->sin_family = AF_INET;
	inet_pton(AF_INET, "192.0.2.1", &from->sin_addr);
	cr_assert_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.sys_errno, EADDRNOTAVAIL, "%s", w.a.end.text);
	mpa_world_fini(&w);

	mpa_world_init(&w); /* another is */
	mpa_world_listen(&w);
	in = mpa_loopback(w.port);
	inet_pton(AF_INET, "127.0.0.9", &from->sin_addr);
	cr_assert_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     0);
	ddps_llp_attach(w.a.llp, &mpa_data, &w.a);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	w.b[0].llp->ops->info(w.b[0].llp, &info);
	ddps_info_text(&info);
	cr_expect(!strncmp(info.peer, "127.0.0.9:", 10), "%s", info.peer);
	mpa_world_fini(&w);
}

/* As no TCP does on a socket that does not wait, today. */
static int connects_at_once(int fd, const struct sockaddr *a, socklen_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (sys_connect(fd, a, len) < 0 && errno != EINPROGRESS)
		return -1;
	if (poll(&p, 1, 10000) != 1)
		return -1;
	errno = ECONNREFUSED; /* of something before: it has not failed */
	return 0;
}

Test(mpa_rare_listener, a_connection_that_is_there_immediately)
{
	struct sockaddr_in in = mpa_loopback(0);
	const struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_setup setup = { 0 };
	struct mpa_world w;
	uint8_t frame[20];
	uint16_t port;
	int listener = mpa_bare_listen(&port, 1), fd;

	mpa_world_init(&w);
	in = mpa_loopback(port);
	sys_instead.connect = connects_at_once;
	cr_assert_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     0);
	fd = accept(listener, NULL, NULL);
	cr_expect_eq(recv(fd, frame, sizeof frame, MSG_WAITALL), sizeof frame,
		     "the request is on its way");
	cr_expect_eq(memcmp(frame, "MPA ID Req Frame", 16), 0);
	close(fd);
	close(listener);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	mpa_world_fini(&w);
}

/* ---- listening ---- */

/* The descriptor is another's: that cannot be repaired, and it is reported once. */
Test(mpa_rare_listener, a_listener_whose_descriptor_was_taken)
{
	for (unsigned closed = 0; closed < 2; closed++) {
		struct mpa_world w;
		int keep, fd, bare, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (mpa_under_valgrind())
			cr_skip_test("not what valgrind can watch");
		mpa_world_init(&w);
		mpa_world_listen(&w);
		fd = mpa_listening_fd();
		keep = dup(fd);
		bare = mpa_bare_connect(&w);
		if (closed)
			close(fd);
		else
			cr_assert_eq(dup2(null, fd), fd);
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
		close(keep);
		mpa_world_settle(&w);
		cr_expect_eq(w.listener_failed, 1);
		mpa_world_fini(&w);
		close(bare);
		close(null);
	}
}

Test(mpa_rare_listener, a_backlog_beyond_what_the_kernel_can_count)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	w.lp.backlog = UINT_MAX;
	fd = mpa_bare_initiator(&w);
	cr_expect_eq(w.requests, 1);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare_listener, any_address_of_a_kernel_without_ipv6)
{
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	const struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_llp_listener *l = NULL;
	struct mpa_world w;
	char text[100];

	mpa_world_init(&w);
	sys_fail("socket", 0, 1, EAFNOSUPPORT);
	cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, (const struct sockaddr *)&six,
					      sizeof six, &w.lp, &mpa_listen_up, &w, &l),
		     0);
	cr_expect_eq(sys_failed(), 1);
	ddps_mpa_provider.listener_uri(l, text, sizeof text);
	cr_expect(strstr(text, "tcp://0.0.0.0:"), "%s", text);
	ddps_mpa_provider.listener_free(l);
	mpa_world_fini(&w);
}

/* Where any address is meant and IPv6 cannot be had, IPv4 alone will do; a port in use is no such case. */
Test(mpa_rare_listener, any_address_without_ipv6)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct ddps_llp_listener *l[3] = { NULL };
	struct ddps_uri uri = { .scheme = "tcp" };
	const struct sockaddr *sa = (struct sockaddr *)&six;
	struct mpa_world w;
	char text[100];
	unsigned port;

	mpa_world_init(&w);
	cr_assert_eq(inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr), 1);
	strcpy(uri.host, "2001:db8::1"); /* one that is not here, but that one is meant */
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, sa, sizeof six, &w.lp, &mpa_listen_up,
					      &w, &l[0]),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRNOTAVAIL);
	uri.host[0] = '\0'; /* as the kernel answers when IPv6 is switched off */
	cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, sa, sizeof six, &w.lp, &mpa_listen_up,
					      &w, &l[1]),
		     0);
	ddps_mpa_provider.listener_uri(l[1], text, sizeof text);
	cr_assert_eq(sscanf(text, "tcp://0.0.0.0:%u", &port), 1, "%s", text);
	six.sin6_addr = in6addr_any;
	six.sin6_port = htons((uint16_t)port);
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, sa, sizeof six, &w.lp, &mpa_listen_up,
					      &w, &l[2]),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	ddps_mpa_provider.listener_free(l[1]);
	mpa_world_fini(&w);
}

static void drink(void *user, uint32_t events)
{
	uint64_t n;

	(void)events;
	cr_expect_eq(read(*(int *)user, &n, sizeof n), (ssize_t)sizeof n);
}

/* Others are busy, so it takes several in a turn: but not more than there are places. */
Test(mpa_rare_listener, no_more_are_taken_in_a_turn_than_there_are_places)
{
	int ev = eventfd(1, EFD_NONBLOCK), fd[3];
	struct ddps_io other = { .fd = ev, .fn = drink, .user = &ev };
	struct mpa_world w;
	uint8_t reply[20];

	mpa_world_init(&w);
	w.lp.max_half_open = 2;
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	fd[0] = mpa_bare_connect(&w);
	mpa_bare_send(fd[0], MPA_REQ "\x40\x01\0\0", 20);
	MPA_UNTIL(&w, w.requests == 1);
	for (unsigned i = 1; i < 3; i++) {
		fd[i] = mpa_bare_connect(&w);
		mpa_bare_send(fd[i], MPA_REQ "\x40\x01\0\0", 20);
	}
	cr_assert_eq(ddps_io_set(w.env.loop, &other, POLLIN), 0);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	cr_expect_eq(w.env.half_open_full, 1);
	cr_expect_eq(w.env.half_open_given_up, 0);
	cr_assert_eq(mpa_answer(&w.b[0], false), 0); /* its place is free */
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(mpa_bare_read(&w, fd[i], reply, 20), 20, "%u", i);
	ddps_io_del(w.env.loop, &other);
	mpa_world_fini(&w);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
	close(ev);
}

/* A connection from another network, as it were, that says nothing. */
static int connect_mpa_rare_listener_from(const struct mpa_world *w, unsigned net)
{
	struct sockaddr_in to = mpa_loopback(w->port), in = mpa_loopback(0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (net << 16));
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* Without memory a rejected peer has no place of its own: it counts no more. */
Test(mpa_rare_listener, a_rejection_without_memory)
{
	enum { NETS = 8 }; /* places for so many are there without more memory */
	struct mpa_world w;
	uint8_t reply[20];
	int fd, silent[NETS];

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, MPA_REQ "\x40\x01\0\0", 20);
	MPA_UNTIL(&w, w.requests);
	for (unsigned i = 0; i < NETS; i++)
		silent[i] = connect_mpa_rare_listener_from(&w, i + 1);
	mpa_world_settle(&w);
	mem_fail(1);
	cr_expect_eq(mpa_answer(&w.b[0], true), 0);
	cr_expect(mem_failed());
	cr_expect_null(((struct ddps_mpa_conn *)w.b[0].llp)->listener);
	cr_expect_eq(mpa_bare_read(&w, fd, reply, 20), 20);
	cr_expect_eq(reply[16], 0x60);
	mpa_world_fini(&w);
	close(fd);
	for (unsigned i = 0; i < NETS; i++)
		close(silent[i]);
}
