/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA over real TCP sockets on loopback: responders and their listeners. */
#include "support/mpa_world.h"
#include "unit/sys_fixture.h"
#include <netinet/tcp.h>
#include <sys/resource.h>

#define REQ MPA_REQ
#define REP MPA_REP

Test(mpa_io_listen, bad_requests_are_dropped_and_the_listener_lives,
     .description = "5044-7.1.1-2 5044-7.1.1-16 5044-7.1.1-18 5044-7.1.2-4 5044-7.1.2-21 5044-8-6 "
		    "5044-7.1.3-d1 6581-6-6")
{
	static const struct {
		const char *raw;
		size_t len;
	} bad[] = {
		{ "G", 1 },
		{ REP "\0\1\0\0", 11 },
		{ REQ "\0\0\0\0", 20 },
		{ REQ "\0\3\0\0", 20 },
		{ REQ "\0\1\2\1", 20 },
		{ REQ "\x10\2\0\3abc", 23 },
		{ REQ "\0\1\0\0x", 21 },
		{ REQ "\0\1\0\1xy", 22 },
	};
	struct mpa_world w;
	uint8_t raw[20];
	int fd;

	mpa_world_init(&w);
	mpa_world_listen(&w);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, bad[i].raw, bad[i].len);
		cr_expect_leq(mpa_bare_read(&w, fd, raw, 1), 0, "row %zu: no Reply", i);
		close(fd);
	}
	mpa_world_settle(&w);
	cr_expect_eq(w.requests, 0);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, REQ "\0\1\0\0", 20);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 20), 20);
	cr_expect_eq(w.requests, 1);
	cr_expect_eq(w.listener_failed, 0);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_listen, octets_while_the_application_decides, .description = "5044-7.1.1-18")
{
	for (unsigned how = 0; how < 3; how++) {
		struct mpa_world w;
		int fd;

		mpa_world_init(&w);
		w.b[0].react[UP_REQUEST] = DO_NOTHING;
		mpa_world_listen(&w);
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, REQ "\0\1\0\0", 20);
		MPA_UNTIL(&w, w.requests);
		cr_expect_eq(w.b[0].called[UP_CLOSED], 0);
		if (how == 0)
			mpa_bare_send(fd, "x", 1);
		else if (how == 1)
			shutdown(fd, SHUT_WR);
		else
			mpa_bare_reset(fd);
		MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
		cr_expect_eq(w.b[0].end.code, how ? DDPS_E_RESET : DDPS_E_PROTOCOL);
		cr_expect_eq(mpa_answer(&w.b[0], false), DDPS_E_STATE);
		mpa_world_fini(&w);
		if (how < 2)
			close(fd);
	}
}

Test(mpa_io_listen, answers_that_cannot_be, .description = "5044u-9-d1 6581-10-5")
{
	struct mpa_world w;
	struct ddps_setup s = { .enhanced = true, .pd = (const uint8_t *)"abcd", .pd_len = 513 };
	int fd;

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, REQ "\x10\2\0\4\0\1\0\1", 24);
	MPA_UNTIL(&w, w.requests);
	cr_expect_eq(w.b[0].llp->ops->answer(w.b[0].llp, &s, &w.answer_param), DDPS_E_TOO_LONG);
	s.pd_len = 3;
	cr_expect_eq(w.b[0].llp->ops->answer(w.b[0].llp, &s, &w.answer_param), DDPS_E_INVAL);
	s.pd_len = 4;
	s.enhanced = false;
	cr_expect_eq(w.b[0].llp->ops->answer(w.b[0].llp, &s, &w.answer_param), DDPS_E_INVAL);
	s.enhanced = true;
	cr_expect_eq(w.b[0].llp->ops->answer(w.b[0].llp, &s, &w.answer_param), 0);
	cr_expect_eq(w.b[0].llp->ops->answer(w.b[0].llp, &s, &w.answer_param), DDPS_E_STATE);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_listen, request_deadline_is_absolute, .description = "5044-7.1.2-20 5044-7.1.2-25")
{
	struct mpa_world w;
	uint8_t octet;
	uint64_t start;
	ssize_t n;
	int fd;

	mpa_world_init(&w);
	w.lp.setup_ms = 80;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	start = ddps_now();
	for (unsigned i = 0;; i++) {
		if (i < 19)
			send(fd, &(REQ "\0\1\0\0")[i], 1, MSG_NOSIGNAL);
		mpa_world_turn(&w, -1);
		n = recv(fd, &octet, 1, MSG_DONTWAIT);
		if (n >= 0 || errno != EAGAIN)
			break;
	}
	cr_expect_leq(n, 0);
	cr_expect_lt(ddps_now() - start, 2000000000u);
	cr_expect_eq(w.requests, 0);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_listen, first_fpdu_deadline, .description = "5044-7.1.2-26")
{
	struct mpa_world w;

	mpa_world_init(&w);
	w.answer_param.first_fpdu_ms = 50;
	mpa_world_pair(&w);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_TIMEDOUT);
	cr_expect(strstr(w.b[0].end.text, "first FPDU"));
	mpa_world_fini(&w);
}

Test(mpa_io_listen, half_open_cap)
{
	struct mpa_world w;
	int fd[4];

	mpa_world_init(&w);
	w.lp.max_half_open = 2;
	for (int i = 0; i < 4; i++)
		w.b[i].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	for (int i = 0; i < 4; i++) {
		fd[i] = mpa_bare_connect(&w);
		mpa_bare_send(fd[i], REQ "\0\1\0\0", 20);
	}
	mpa_world_settle(&w);
	cr_expect_eq(w.requests, 2);
	/* an answer makes room */
	cr_assert_eq(mpa_answer(&w.b[0], false), 0);
	mpa_world_settle(&w);
	cr_expect_eq(w.requests, 3);
	/* so does a request whose peer goes away */
	mpa_bare_reset(fd[1]);
	mpa_world_settle(&w);
	cr_expect_eq(w.requests, 4);
	mpa_world_fini(&w);
	close(fd[0]);
	close(fd[2]);
	close(fd[3]);
}

Test(mpa_io_listen, silent_peers_free_their_slot)
{
	struct mpa_world w;
	int fd[3];

	mpa_world_init(&w);
	w.lp.max_half_open = 2;
	w.lp.setup_ms = 150;
	w.b[0].react[UP_REQUEST] = DO_NOTHING; /* keeps its place */
	mpa_world_listen(&w);
	fd[0] = mpa_bare_connect(&w);
	mpa_bare_send(fd[0], REQ "\0\1\0\0", 20);
	MPA_UNTIL(&w, w.requests);
	fd[1] = mpa_bare_connect(&w);
	fd[2] = mpa_bare_connect(&w);
	mpa_bare_send(fd[2], REQ "\0\1\0\0", 20);
	mpa_world_settle(&w);
	cr_expect_eq(w.requests, 1);
	MPA_UNTIL(&w, w.requests == 2);
	mpa_world_fini(&w);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

Test(mpa_io_listen, requests_survive_their_listener)
{
	struct mpa_world w;
	uint8_t raw[20];
	int fd[2];

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	fd[0] = mpa_bare_connect(&w);
	fd[1] = mpa_bare_connect(&w);
	mpa_bare_send(fd[0], REQ "\0\1\0\0", 20);
	mpa_bare_send(fd[1], REQ, 16);
	MPA_UNTIL(&w, w.requests);
	mpa_world_settle(&w);
	ddps_mpa_provider.listener_free(w.listener);
	w.listener = NULL;
	cr_expect_leq(recv(fd[1], raw, 1, 0), 0, "set-ups under way are dropped");
	cr_assert_eq(mpa_answer(&w.b[0], false), 0);
	cr_expect_eq(mpa_bare_read(&w, fd[0], raw, 20), 20);
	mpa_world_fini(&w);
	close(fd[0]);
	close(fd[1]);
}

Test(mpa_io_listen, out_of_descriptors_is_waited_out)
{
	struct mpa_world w;
	struct rlimit keep, tight;
	uint8_t raw[20];
	unsigned rounds = 0;
	int fd;

	if (mpa_under_valgrind())
		cr_skip_test("not what valgrind can watch");
	mpa_world_init(&w);
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, REQ "\0\1\0\0", 20);
	getrlimit(RLIMIT_NOFILE, &keep);
	tight = keep;
	tight.rlim_cur = (rlim_t)fd + 1;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	for (struct pollfd p = { .fd = ddps_loop_fd(w.env.loop), .events = POLLIN };
	     poll(&p, 1, 20) > 0; rounds++)
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	cr_expect_lt(rounds, 5, "it does not spin");
	cr_expect_eq(w.requests, 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &keep), 0);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 20), 20);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_listen, listener_that_breaks_says_so)
{
	struct mpa_world w;
	int on = 0, fd;
	socklen_t len = sizeof on;

	mpa_world_init(&w);
	mpa_world_listen(&w);
	for (fd = 3; fd < 100; fd++)
		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) && on)
			break;
	cr_assert_eq(shutdown(fd, SHUT_RDWR), 0);
	MPA_UNTIL(&w, w.listener_failed);
	mpa_world_settle(&w);
	cr_expect_eq(w.listener_failed, 1);
	mpa_world_fini(&w);
}

Test(mpa_io_listen, bound_uris)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_conn_info info = { 0 };
	struct mpa_world w;
	char text[100], small[8];
	unsigned port;
	int fd;

	mpa_world_init(&w);
	/* any address: both families on one socket; peers are shown as what they are */
	cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&six, sizeof six,
					      &w.lp, &mpa_listen_up, &w, &w.listener),
		     0);
	ddps_mpa_provider.listener_uri(w.listener, text, sizeof text);
	cr_assert_eq(sscanf(text, "tcp://[::]:%u", &port), 1, "%s", text);
	cr_expect_eq(ddps_mpa_provider.listener_uri(w.listener, small, sizeof small),
		     (int)strlen(text));
	w.port = (uint16_t)port;
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, REQ "\0\1\0\0", 20);
	MPA_UNTIL(&w, w.requests);
	w.b[0].llp->ops->info(w.b[0].llp, &info);
	ddps_info_text(&info);
	cr_expect_eq(strncmp(info.peer, "127.0.0.1:", 10), 0, "%s", info.peer);
	ddps_mpa_provider.listener_free(w.listener);
	close(fd);

	strcpy(uri.host, "::1");
	six.sin6_addr = in6addr_loopback;
	w.listener = NULL;
	cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&six, sizeof six,
					      &w.lp, &mpa_listen_up, &w, &w.listener),
		     0);
	ddps_mpa_provider.listener_uri(w.listener, text, sizeof text);
	cr_expect_eq(strncmp(text, "tcp://[::1]:", 12), 0, "%s", text);
	mpa_world_fini(&w);
}

/* A connection is asked for its own address only where there are several, and waits for no more octets; a Request
 * that is there already is taken with it. */
Test(mpa_io_listen, what_is_there_when_it_is_accepted)
{
	for (unsigned any = 0; any < 2; any++) {
		struct sockaddr_in in = mpa_loopback(0);
		struct ddps_uri uri = { .scheme = "tcp", .host = "127.0.0.1" };
		struct ddps_conn_info info = { 0 };
		struct mpa_world w;
		socklen_t len = sizeof in;
		char text[100], here[100];
		int fd, nodelay = 0;

		mpa_world_init(&w);
		if (any) {
			uri.host[0] = 0;
			in.sin_addr.s_addr = htonl(INADDR_ANY);
		}
		cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&in,
						      sizeof in, &w.lp, &mpa_listen_up, &w,
						      &w.listener),
			     0);
		ddps_mpa_provider.listener_uri(w.listener, text, sizeof text);
		w.port = (uint16_t)atoi(strrchr(text, ':') + 1);
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, REQ "\0\1\0\0", 20);
		sys_fail("getsockname", 0, 10, ENOBUFS);
		mpa_world_turn(&w, -1);
		cr_expect_eq(sys_failed(), any);
		sys_fail(NULL, 0, 0, 0);
		cr_assert_eq(w.requests, 1, "in one turn of the loop");
		w.b[0].llp->ops->info(w.b[0].llp, &info);
		ddps_info_text(&info);
		snprintf(here, sizeof here, "127.0.0.1:%u", w.port);
		cr_expect_str_eq(info.local, any ? "" : here);
		len = sizeof nodelay;
		cr_assert_eq(getsockopt(((struct ddps_mpa_conn *)w.b[0].llp)->io.fd, IPPROTO_TCP,
					TCP_NODELAY, &nodelay, &len),
			     0);
		cr_expect(nodelay);
		mpa_world_fini(&w);
		close(fd);
	}
}

Test(mpa_io_listen, address_in_use_is_reported)
{
	struct mpa_world w;
	struct ddps_uri uri = { .scheme = "tcp" };
	struct sockaddr_in in;
	struct ddps_llp_listener *l = NULL;

	mpa_world_init(&w);
	mpa_world_listen(&w);
	in = mpa_loopback(w.port);
	errno = 0;
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					      &w.lp, &mpa_listen_up, &w, &l),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	mpa_world_fini(&w);
}
