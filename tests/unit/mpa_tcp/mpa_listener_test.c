/* SPDX-License-Identifier: BSD-2-Clause */
/* A listener of TCP's: what socket it has, whom it accepts, and that nothing of it is left. */
#include "support/said.h"
#include "support/descriptor.h"
#include "support/mpa_world.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <fcntl.h>

TestSuite(mpa_listener, .timeout = 60);

#define REQ MPA_REQ "\0\1\0\0"

static int listen_on(struct mpa_world *w, const char *host, const struct sockaddr *sa,
		     socklen_t len)
{
	struct ddps_uri uri = { .scheme = "tcp" };

	strcpy(uri.host, host);
	return ddps_mpa_provider.listen(&w->env, &uri, sa, len, &w->lp, &mpa_listen_up, w,
					&w->listener);
}

static int listen_on_loopback(struct mpa_world *w)
{
	struct sockaddr_in in = mpa_loopback(0);

	return listen_on(w, "127.0.0.1", (struct sockaddr *)&in, sizeof in);
}

static struct ddps_mpa_conn *get_mpa_listener_conn(const struct mpa_side *s)
{
	return (struct ddps_mpa_conn *)s->llp;
}

static unsigned count_mpa_listener(const char *what)
{
	unsigned n = 0;

	for (const char *p = said; (p = strstr(p, what)); p++)
		n++;
	return n;
}

/* ---- the socket ---- */

/* Its port can be had again immediately, and so many peers may wait. */
Test(mpa_listener, options_of_its_socket)
{
	struct mpa_world w;
	struct tcp_info i = { 0 };
	socklen_t len = sizeof i;

	mpa_world_init(&w);
	w.lp.backlog = 7;
	cr_assert_eq(listen_on_loopback(&w), 0);
	cr_expect_eq(get_socket_option(mpa_listening_fd(), SOL_SOCKET, SO_REUSEADDR), 1);
	cr_assert_eq(getsockopt(mpa_listening_fd(), IPPROTO_TCP, TCP_INFO, &i, &len), 0);
	cr_expect_eq(i.tcpi_sacked, 7, "Linux tells the backlog there");
	mpa_world_fini(&w);
}

static unsigned keepalives; /* settings of it */

static int count_keepalives(int fd, int level, int name, const void *v, socklen_t len)
{
	keepalives += level == SOL_SOCKET ? name == SO_KEEPALIVE
					  : level == IPPROTO_TCP && name == TCP_KEEPIDLE;
	return sys_setsockopt(fd, level, name, v, len);
}

/* Where all peers are to be watched alike, it is said once; for any other it is said again, also where the system did
 * not take it from the listener. */
Test(mpa_listener, what_all_have_is_the_listener_s)
{
	static const struct {
		uint32_t wanted;
		unsigned fails, calls;
		int on, idle;
	} rows[] = { { 60000, 0, 0, 1, 30 },
		     { 20000, 0, 2, 1, 10 },
		     { 0, 0, 1, 0, 30 },
		     { 60000, 1, 2, 1, 30 } };

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct mpa_world w;
		uint8_t reply[20];
		int fd;

		mpa_world_init(&w);
		w.lp.keepalive_ms = 60000;
		w.answer_param.keepalive_ms = rows[i].wanted;
		/* REUSEADDR and NODELAY come first */
		sys_fail("setsockopt", 2, rows[i].fails, ENOMEM);
		mpa_world_listen(&w);
		cr_expect_eq(sys_failed(), rows[i].fails);
		keepalives = 0;
		sys_instead.setsockopt = count_keepalives;
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, REQ, 20);
		cr_assert_eq(mpa_bare_read(&w, fd, reply, 20), 20);
		sys_instead.setsockopt = NULL;
		cr_expect_eq(keepalives, rows[i].calls, "row %u: %u", i, keepalives);
		cr_expect_eq(get_socket_option(get_mpa_listener_conn(&w.b[0])->io.fd, SOL_SOCKET,
					       SO_KEEPALIVE),
			     rows[i].on);
		cr_expect_eq(get_socket_option(get_mpa_listener_conn(&w.b[0])->io.fd, IPPROTO_TCP,
					       TCP_KEEPIDLE),
			     rows[i].idle);
		mpa_world_fini(&w);
		close(fd);
	}
}

/* Nobody waits for the end of one that is freed. */
Test(mpa_listener, who_is_freed_wakes_nobody)
{
	struct mpa_world w;
	struct pollfd p;

	mpa_world_init(&w);
	mpa_world_pair(&w);
	mpa_world_settle(&w);
	p = (struct pollfd){ .fd = ddps_loop_fd(w.env.loop), .events = POLLIN };
	cr_assert_eq(poll(&p, 1, 0), 0);
	w.a.llp->ops->free(w.a.llp);
	w.a.llp = NULL;
	w.b[0].llp->ops->free(w.b[0].llp);
	w.b[0].llp = NULL;
	cr_expect_eq(poll(&p, 1, 0), 0);
	mpa_world_fini(&w);
}

/* [::] is IPv6 alone where it was written, and both where no host was. */
Test(mpa_listener, an_ipv6_address_is_ipv6_alone)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6 };

	for (int written = 0; written < 2; written++) {
		struct mpa_world w;

		mpa_world_init(&w);
		if (listen_on(&w, written ? "::" : "", (const struct sockaddr *)&any, sizeof any))
			cr_skip_test("no IPv6 here");
		if (get_socket_option(mpa_listening_fd(), SOL_SOCKET, SO_DOMAIN) == AF_INET6)
			cr_expect_eq(get_socket_option(mpa_listening_fd(), IPPROTO_IPV6,
						       IPV6_V6ONLY),
				     written);
		mpa_world_fini(&w);
	}
}

/* Descriptor 0 is one like any other: it is used, and closed if it cannot be. */
Test(mpa_listener, descriptor_0_is_as_good_as_any)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct mpa_world w;
	int other;

	if (mpa_under_valgrind())
		cr_skip_test("it hands out descriptors in its own way");
	mpa_world_init(&w);
	other = find_next_fd();
	close(0);
	sys_fail("getsockname", 0, 1, ENOBUFS);
	cr_expect_eq(listen_on_loopback(&w), DDPS_E_SYSTEM);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(errno, ENOBUFS);
	cr_expect_eq(fcntl(0, F_GETFD), -1, "it is closed");
	errno = EAFNOSUPPORT; /* of something before */
	if (listen_on(&w, "", (const struct sockaddr *)&any, sizeof any))
		cr_skip_test("no IPv6 here");
	cr_expect_eq(mpa_listening_fd(), 0);
	cr_expect_eq(find_next_fd(), other, "there is one socket, not two");
	mpa_world_fini(&w);
}

/* Whatever it fails at, nothing is left, and errno says why. */
Test(mpa_listener, what_cannot_listen_leaves_nothing)
{
	struct mpa_world w;
	long live;
	int other;

	if (mpa_under_valgrind())
		cr_skip_test("it hands out descriptors in its own way");
	mpa_world_init(&w);
	live = mem_live();
	other = find_next_fd();
	mem_fail(1);
	cr_expect_eq(listen_on_loopback(&w), DDPS_E_NOMEM);
	cr_expect_null(w.listener);
	sys_fail("getsockname", 0, 1, ENOBUFS);
	cr_expect_eq(listen_on_loopback(&w), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOBUFS);
	cr_expect_null(w.listener);
	cr_expect_eq(find_next_fd(), other);
	cr_expect_eq(mem_live(), live);
	mpa_world_fini(&w);
}

/* A close that fails, too, is not why. */
Test(mpa_listener, the_first_error_is_reported)
{
	struct mpa_world w, busy;
	struct sockaddr_in in;
	int epoll, keep, null;

	mpa_world_init(&w);
	mpa_world_init(&busy);
	mpa_world_listen(&busy);
	in = mpa_loopback(busy.port);
	sys_fail("close", 0, 1, EIO);
	cr_expect_eq(listen_on(&w, "127.0.0.1", (struct sockaddr *)&in, sizeof in), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	cr_expect_eq(sys_failed(), 1);

	if (mpa_under_valgrind())
		cr_skip_test("it minds what is done to descriptors");
	epoll = ddps_loop_fd(w.env.loop);
	keep = fcntl(epoll, F_DUPFD_CLOEXEC, 0);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(dup2(null, epoll), epoll); /* nothing can be waited for */
	sys_fail("close", 0, 1, EIO);
	cr_expect_eq(listen_on_loopback(&w), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(sys_failed(), 1);
	cr_assert_eq(dup2(keep, epoll), epoll);
	sys_fail(NULL, 0, 0, 0);
	close(keep);
	close(null);
	mpa_world_fini(&busy);
	mpa_world_fini(&w);
}

/* ---- accepting ---- */

/* Alone it takes one peer in a turn: to ask for another in vain would cost more. */
Test(mpa_listener, one_peer_in_a_turn)
{
	struct mpa_world w;
	uint64_t before;
	int fd[3];

	mpa_world_init(&w);
	mpa_world_listen(&w);
	w.env.log.fn = note_said;
	for (unsigned i = 0; i < 3; i++)
		fd[i] = mpa_bare_connect(&w);
	before = ddps_loop_turn(w.env.loop);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
		cr_expect_leq(count_mpa_listener("-RESPOND->"),
			      ddps_loop_turn(w.env.loop) - before);
	}
	mpa_world_settle(&w);
	cr_expect_eq(count_mpa_listener("-RESPOND->"), 3);
	mpa_world_fini(&w);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
}

/* It is counted when the last place is taken, not before. */
Test(mpa_listener, full_is_when_the_last_place_is_taken)
{
	struct mpa_world w;
	int fd[4];

	mpa_world_init(&w);
	w.lp.max_half_open = 4;
	mpa_world_listen(&w);
	for (unsigned i = 0; i < 4; i++) {
		fd[i] = mpa_bare_connect(&w);
		mpa_world_settle(&w);
		cr_expect_eq(w.env.half_open_full, i == 3, "%u", i);
	}
	mpa_world_fini(&w);
	for (unsigned i = 0; i < 4; i++)
		close(fd[i]);
}

/* A peer for whom there is no memory is closed, and nothing of it is left. */
Test(mpa_listener, no_memory_for_a_peer)
{
	struct mpa_world w;
	unsigned n = 1;

	if (mpa_under_valgrind())
		cr_skip_test("it hands out descriptors in its own way");
	mpa_world_init(&w);
	mpa_world_listen(&w);
	w.env.log.fn = note_said;
	for (;; n++) {
		long live = mem_live();
		uint8_t octet;
		int fd = mpa_bare_connect(&w), other = find_next_fd();

		said[0] = '\0';
		mem_fail(n);
		mpa_world_settle(&w);
		if (!mem_failed()) {
			close(fd);
			break;
		}
		cr_expect_eq(count_mpa_listener("accept: out of memory\n"), 1, "%u: %s", n, said);
		errno = 0;
		cr_expect_leq(recv(fd, &octet, 1, MSG_DONTWAIT), 0);
		cr_expect_neq(errno, EAGAIN, "it is not closed");
		cr_expect_eq(find_next_fd(), other);
		cr_expect_eq(mem_live(), live, "%u", n);
		close(fd);
	}
	mem_fail(0);
	cr_expect_geq(n, 4u, "a connection, its startup, its place");
	mpa_world_fini(&w);
}

/* A shortage passes, and is none of the listener's end; it says so. */
Test(mpa_listener, a_shortage_is_no_end)
{
	static const int errs[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };

	for (size_t i = 0; i < 4; i++) {
		struct mpa_world w;
		int fd;

		mpa_world_init(&w);
		mpa_world_listen(&w);
		w.env.log.fn = note_said;
		said[0] = '\0';
		fd = mpa_bare_connect(&w);
		sys_fail("accept4", 0, 1, errs[i]);
		mpa_world_settle(&w);
		cr_expect_eq(sys_failed(), 1);
		cr_expect_eq(w.listener_failed, 0);
		cr_expect(strstr(said, strerror(errs[i])), "%s", said);
		mpa_world_fini(&w);
		close(fd);
	}
}

/* It is said when it begins, not with each attempt. */
Test(mpa_listener, a_shortage_is_said_once)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	mpa_world_listen(&w);
	w.env.log.fn = note_said;
	for (unsigned i = 0; i < 2; i++) {
		said[0] = '\0';
		fd = mpa_bare_connect(&w);
		sys_fail("accept4", 0, 2, ENOMEM);
		MPA_UNTIL(&w, count_mpa_listener("-RESPOND->") == 1);
		cr_expect_eq(sys_failed(), 2);
		cr_expect_eq(count_mpa_listener(strerror(ENOMEM)), 1, "%s", said);
		close(fd);
	}
	mpa_world_fini(&w);
}

/* Where descriptors are short, silent peers' go to whoever comes, without a pause: none of them shuts others out. */
Test(mpa_listener, contact_16_descriptors_of_the_silent_go_to_others)
{
	struct mpa_world w;
	int fd[3];
	char octet;

	mpa_world_init(&w);
	mpa_world_listen(&w);
	w.env.log.fn = note_said;
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = mpa_bare_connect(&w);
		mpa_world_settle(&w);
	}
	said[0] = '\0';
	fd[2] = mpa_bare_connect(&w);
	sys_fail("accept4", 0, 1, EMFILE);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(w.env.half_open_given_up, 1);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	cr_expect_eq(count_mpa_listener("-RESPOND->"), 1, "the one that waited has not come: %s",
		     said);
	cr_expect_eq(recv(fd[1], &octet, 1, MSG_DONTWAIT), -1);
	cr_expect_eq(errno, EAGAIN, "one was enough");
	cr_expect_eq(recv(fd[0], &octet, 1, MSG_DONTWAIT), -1);
	cr_expect_eq(errno, ECONNRESET, "the oldest goes first");
	mpa_world_fini(&w);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
}

static struct ddps_error why;

static void note_said_failed(void *user, const struct ddps_error *e)
{
	(void)user;
	why = *e;
}

/* What cannot be repaired is reported with its reason. */
Test(mpa_listener, an_end_has_a_reason)
{
	static const struct ddps_llp_listen_up up = { .request = mpa_up_request,
						      .failed = note_said_failed };
	struct sockaddr_in in = mpa_loopback(0);
	struct ddps_uri uri = { .scheme = "tcp", .host = "127.0.0.1" };
	struct mpa_world w;

	mpa_world_init(&w);
	memset(&why, 0x5a, sizeof why);
	cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					      &w.lp, &up, &w, &w.listener),
		     0);
	cr_assert_eq(shutdown(mpa_listening_fd(), SHUT_RDWR), 0);
	mpa_world_settle(&w);
	cr_expect_eq(why.code, DDPS_E_SYSTEM);
	cr_expect_eq(why.sys_errno, EINVAL);
	cr_expect(!strncmp(why.text, "accept: ", 8), "%s", why.text);
	mpa_world_fini(&w);
}

/* ---- whose it is ---- */

/* An accepted one is in no list of the listener's any more, one that waits for its answer is. */
Test(mpa_listener, an_answer_takes_it_out_of_the_list)
{
	struct mpa_world w;
	uint8_t raw[20];
	int fd[2];

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = w.b[1].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = mpa_bare_connect(&w);
		mpa_bare_send(fd[i], REQ, 20);
		MPA_UNTIL(&w, w.requests == i + 1);
	}
	cr_expect(get_mpa_listener_conn(&w.b[0])->listed);
	cr_assert_eq(mpa_answer(&w.b[0], false), 0);
	cr_expect_not(get_mpa_listener_conn(&w.b[0])->listed);
	cr_expect_null(get_mpa_listener_conn(&w.b[0])->listener);
	ddps_mpa_provider.listener_free(w.listener);
	w.listener = NULL;
	cr_expect_not(get_mpa_listener_conn(&w.b[1])->listed);
	cr_assert_eq(mpa_answer(&w.b[1], false), 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(mpa_bare_read(&w, fd[i], raw, 20), 20);
		close(fd[i]);
	}
	mpa_world_fini(&w);
}

/* Nobody can connect any more, though somebody has a copy of the descriptor, and nothing is called. */
Test(mpa_listener, a_copy_of_its_descriptor_does_not_keep_it)
{
	struct mpa_world w;
	struct sockaddr_in in;
	int keep, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	mpa_world_init(&w);
	mpa_world_listen(&w);
	in = mpa_loopback(w.port);
	keep = fcntl(mpa_listening_fd(), F_DUPFD_CLOEXEC, 0);
	ddps_mpa_provider.listener_free(w.listener);
	w.listener = NULL;
	cr_expect_eq(ddps_loop_run(w.env.loop), 0);
	cr_expect_eq(connect(fd, (struct sockaddr *)&in, sizeof in), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(ddps_loop_run(w.env.loop), 0);
	close(fd);
	close(keep);
	mpa_world_fini(&w);
}

/* The pause after a shortage ends with the listener. */
Test(mpa_listener, freed_in_a_pause)
{
	struct mpa_world w;
	struct pollfd p = { .events = POLLIN };
	int fd;

	mpa_world_init(&w);
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	sys_fail("accept4", 0, 1, EMFILE);
	mpa_world_settle(&w);
	ddps_mpa_provider.listener_free(w.listener);
	w.listener = NULL;
	p.fd = ddps_loop_fd(w.env.loop);
	poll(&p, 1, 110); /* it would have ended by then */
	cr_expect_eq(ddps_loop_run(w.env.loop), 0);
	mpa_world_fini(&w);
	close(fd);
}
