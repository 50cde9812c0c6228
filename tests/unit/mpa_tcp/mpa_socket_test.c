/* SPDX-License-Identifier: BSD-2-Clause */
/* What MPA needs of TCP, each call by itself, on a connection over loopback. */
#include "common/own.h"
#include "support/descriptor.h"
#include "support/mpa_world.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <fcntl.h>
#include <sys/wait.h>

static struct mpa_world w;
static struct ddps_mpa_conn *c;
static int peer; /* the other end, which does not block for ever */

static struct {
	unsigned sent, received, port;
	size_t len;
} shown;

static void capture_mpa_socket(void *user, const struct ddps_packet *p)
{
	cr_expect_eq(user, &shown);
	cr_expect_eq(p->transport, DDPS_TRANSPORT_TCP);
	cr_expect_eq(p->peer, &c->peer.sa);
	cr_expect_gt(p->niov, 0);
	shown.sent += p->sent;
	shown.received += !p->sent;
	shown.len = p->len;
	shown.port = ntohs(((const struct sockaddr_in *)(const void *)p->local)->sin_port);
}

static void init(void)
{
	struct sockaddr_in in = mpa_loopback(0);
	struct timeval limit = { .tv_sec = 10 };
	socklen_t len = sizeof in;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

	mpa_world_init(&w);
	cr_assert_eq(bind(listener, (struct sockaddr *)&in, sizeof in), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	peer = accept(listener, NULL, NULL);
	cr_assert_geq(peer, 0);
	setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	close(listener);
	c = ddps_mpa_io_new(&w.env, fd, (struct sockaddr *)&in);
	cr_assert(c);
}

static void fini(void)
{
	if (c)
		ddps_mpa_conn_destroy(c);
	mpa_world_fini(&w);
	close(peer);
}

TestSuite(mpa_socket, .init = init, .fini = fini, .timeout = 60);

static void until_readable(void)
{
	struct pollfd p = { .fd = c->io.fd, .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 10000), 1);
}

/* @k pieces of "abcdef", in order. */
static void cut_mpa_socket(char *octets, int k, struct iovec *iov)
{
	for (int i = 0; i < k; i++)
		iov[i] = (struct iovec){ octets + 6 / k * i, 6 / (size_t)k };
}

Test(mpa_socket, all_pieces_leave_with_one_call)
{
	char got[6], octets[] = "abcdef";
	struct iovec iov[6];

	for (int k = 1; k <= 6; k++) {
		if (6 % k)
			continue;
		cut_mpa_socket(octets, k, iov);
		cr_expect_eq(c->tcp->send(c, iov, k), 6, "%d pieces", k);
		cr_assert_eq(recv(peer, got, 6, MSG_WAITALL), 6);
		cr_expect_arr_eq(got, octets, 6);
	}
}

Test(mpa_socket, all_pieces_are_filled_with_one_call)
{
	struct iovec iov[6];

	for (int k = 1; k <= 6; k++) {
		char got[7] = "";

		if (6 % k)
			continue;
		cr_assert_eq(send(peer, "abcdef", 6, 0), 6);
		until_readable();
		cut_mpa_socket(got, k, iov);
		cr_expect_eq(c->tcp->recv(c, iov, k), 6, "%d pieces", k);
		cr_expect_str_eq(got, "abcdef");
	}
}

/* Whoever polls asks a socket again that something has moved on. */
Test(mpa_socket, reports_what_has_moved)
{
	char octets[6];
	struct iovec iov = { octets, 6 };

	cr_expect_eq(c->tcp->recv(c, &iov, 1), -EAGAIN);
	cr_expect_not(c->io.moved);
	c->tcp->busy(c);
	cr_expect(c->io.moved);
	c->io.moved = false;
	send(peer, "abcdef", 6, 0);
	until_readable();
	cr_expect_eq(c->tcp->recv(c, &iov, 1), 6);
	cr_expect(c->io.moved);
	c->io.moved = false;
	shutdown(peer, SHUT_WR);
	until_readable();
	cr_expect_eq(c->tcp->recv(c, &iov, 1), 0);
	cr_expect(c->io.moved, "the end, too");
}

Test(mpa_socket, a_reset_is_moving_too)
{
	struct linger now = { .l_onoff = 1 };
	char octets[6] = "abcdef";
	struct iovec iov = { octets, 6 };

	setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(peer);
	until_readable();
	cr_expect_eq(c->tcp->error(c), ECONNRESET);
	cr_expect_eq(c->tcp->error(c), 0, "it is told once");
	cr_expect_eq(c->tcp->send(c, &iov, 1), -EPIPE, "and no signal");
	peer = -1;
}

/* What the kernel has no memory for is tried again: it ends no session. */
Test(mpa_socket, a_kernel_without_memory_is_no_end)
{
	static const struct {
		int err, is;
	} row[] = { { ENOBUFS, -EAGAIN }, { ENOMEM, -EAGAIN }, { EPERM, -EPERM } };
	char octets[6] = "abcdef";
	struct iovec iov[2];

	cut_mpa_socket(octets, 2, iov);
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		sys_fail("sendmsg", 0, 1, row[i].err);
		cr_expect_eq(c->tcp->send(c, iov, 2), row[i].is, "row %u", i);
	}
	sys_fail("send", 0, 1, ENOBUFS);
	cr_expect_eq(c->tcp->send(c, iov, 1), -EAGAIN);
}

/* The last error of something else is none of this call's. */
Test(mpa_socket, an_end_is_one_whatever_was_interrupted_before)
{
	char octets[6];
	struct iovec iov = { octets, 6 };

	shutdown(peer, SHUT_WR);
	until_readable();
	errno = EINTR;
	cr_expect_eq(c->tcp->recv(c, &iov, 1), 0);
}

/* What it moves counts for the turn, both ways. */
Test(mpa_socket, octets_that_move_are_counted)
{
	const struct ddps_load *load = (const struct ddps_load *)w.env.loop;
	char octets[6] = "abcdef";
	struct iovec iov = { octets, 6 };
	uint64_t before = load->spent;

	cr_assert_eq(c->tcp->send(c, &iov, 1), 6);
	cr_expect_eq(load->spent, before + 6);
	send(peer, "abc", 3, 0);
	until_readable();
	cr_assert_eq(c->tcp->recv(c, &iov, 1), 3);
	cr_expect_eq(load->spent, before + 9);
}

Test(mpa_socket, a_read_that_fails_has_moved)
{
	struct linger now = { .l_onoff = 1 };
	char octets[6];
	struct iovec iov = { octets, 6 };

	setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(peer);
	until_readable();
	cr_expect_eq(c->tcp->recv(c, &iov, 1), -ECONNRESET);
	cr_expect(c->io.moved);
	peer = -1;
}

Test(mpa_socket, what_goes_over_the_wire_is_shown)
{
	char octets[6] = "abcdef";
	struct iovec iov[2];
	struct sockaddr_in own;
	socklen_t len = sizeof own;

	cr_assert_eq(getsockname(c->io.fd, (struct sockaddr *)&own, &len), 0);
	w.env.capture = capture_mpa_socket;
	w.env.capture_user = &shown;
	cut_mpa_socket(octets, 2, iov);
	cr_expect_eq(c->tcp->recv(c, iov, 2), -EAGAIN);
	cr_expect_eq(shown.received, 0);
	c->tcp->send(c, iov, 2);
	cr_expect(shown.sent == 1 && shown.received == 0 && shown.len == 6);
	cr_expect_eq(shown.port, ntohs(own.sin_port), "though nobody has looked it up");
	c->tcp->local(c);
	cr_expect_eq(c->local.in.sin_port, own.sin_port);
	send(peer, "xyz", 3, 0);
	until_readable();
	c->tcp->recv(c, iov, 2);
	cr_expect(shown.sent == 1 && shown.received == 1 && shown.len == 3);
	cr_expect_eq(shown.port, ntohs(own.sin_port));
	shutdown(peer, SHUT_WR);
	until_readable();
	cr_expect_eq(c->tcp->recv(c, iov, 2), 0);
	cr_expect_eq(shown.received, 1, "an end has no octets");
}

Test(mpa_socket, ends_in_order_or_not)
{
	char octet;

	c->tcp->fin(c);
	cr_expect_eq(recv(peer, &octet, 1, 0), 0);
	cr_expect_eq(send(peer, "a", 1, 0), 1, "the other direction is open");
	c->tcp->reset(c);
	ddps_mpa_conn_destroy(c);
	c = NULL;
	cr_expect_eq(send(peer, "a", 1, MSG_NOSIGNAL), -1);
}

/* A child of fork may have a copy of the descriptor: the peer learns of the end nevertheless, in order or
 * by a reset. */
Test(mpa_socket, ends_though_there_is_a_copy_of_the_descriptor)
{
	for (unsigned i = 0; i < 3; i++) {
		bool reset = i == 1, unread = i == 2;
		ssize_t n;
		char octet;
		int copy;
		pid_t pid;

		if (i) {
			fini();
			init();
		}
		copy = fcntl(ddps_own(c->io.fd), F_DUPFD_CLOEXEC, 0);
		pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		cr_assert(ddps_own_forked(0));
		c->tcp->watch(c, DDPS_MPA_IN, true);
		if (reset)
			c->tcp->reset(c);
		if (unread) {
			send(peer, "a", 1, 0);
			until_readable();
		}
		ddps_mpa_conn_fail(c, DDPS_E_LIMIT, 0, "for a test");
		cr_expect_not(c->io.added, "nobody waits for it any more");
		n = recv(peer, &octet, 1, MSG_DONTWAIT);
		cr_expect_eq(n, reset || unread ? -1 : 0, "%u", i);
		if (n < 0)
			cr_expect_eq(errno, ECONNRESET);
		close(copy);
	}
}

/* Without a child a copy is the program's own, which may go on with it. */
Test(mpa_socket, a_copy_is_left_alone_where_nobody_has_forked)
{
	int copy = fcntl(ddps_own(c->io.fd), F_DUPFD_CLOEXEC, 0);
	char octet;

	cr_assert_not(ddps_own_forked(0));
	ddps_mpa_conn_fail(c, DDPS_E_LIMIT, 0, "for a test");
	cr_expect_eq(recv(peer, &octet, 1, MSG_DONTWAIT), -1);
	cr_expect_eq(errno, EAGAIN);
	close(copy);
	cr_expect_eq(recv(peer, &octet, 1, 0), 0);
}

/* Whether something has moved is asked anew each time. */
Test(mpa_socket, woken_for_nothing_it_has_not_moved)
{
	struct mpa_world pair;
	struct ddps_mpa_conn *a;

	mpa_world_init(&pair);
	mpa_world_pair(&pair);
	mpa_world_settle(&pair);
	a = (struct ddps_mpa_conn *)pair.a.llp;
	a->io.moved = true;
	a->io.fn(a->io.user, DDPS_MPA_OUT);
	cr_expect_not(a->io.moved);
	mpa_world_fini(&pair);
}

Test(mpa_socket, stats_are_those_of_the_kernel)
{
	struct ddps_llp_tcp st = { .unacked = 7, .retransmitted = 7 };
	struct tcp_info i = { 0 };
	socklen_t len = sizeof i;
	char octets[6] = "abcdef";
	struct iovec iov = { octets, 6 };
	int mss = 0;

	c->tcp->send(c, &iov, 1);
	cr_assert_eq(recv(peer, octets, 6, MSG_WAITALL), 6);
	do {
		cr_assert_eq(getsockopt(c->io.fd, IPPROTO_TCP, TCP_INFO, &i, &len), 0);
	} while (i.tcpi_unacked);
	cr_assert_eq(c->tcp->stats(c, &st), 0);
	cr_expect_eq(st.unacked, 0);
	cr_expect_eq(st.retransmitted, 0);
	cr_expect_eq(st.srtt_ns, 1000ull * i.tcpi_rtt);
	cr_expect_eq(st.cwnd, (uint64_t)i.tcpi_snd_cwnd * i.tcpi_snd_mss);
	cr_expect_geq(st.cwnd, i.tcpi_snd_mss);
	len = sizeof mss;
	cr_expect_eq(getsockopt(c->io.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len), 0);
	cr_expect_eq(c->tcp->emss(c), (uint32_t)mss);
}

/* The route has changed: after so many octets EMSS is looked at again. */
Test(mpa_socket, emss_is_looked_at_again)
{
	uint8_t *pattern = mpa_pattern(2000, 3);
	struct mpa_world pair;
	struct ddps_mpa_conn *a;

	mpa_world_init(&pair);
	mpa_world_pair(&pair);
	a = (struct ddps_mpa_conn *)pair.a.llp;
	a->emss = 1000; /* as it was before */
	ddps_mpa_conn_set_mulpdu(a);
	cr_assert_lt(a->mulpdu, 1000);
	mpa_send_segments(&pair.a, pattern, 900, 1100); /* less than 1 MiB */
	MPA_UNTIL(&pair, pair.b[0].segments == 1100);
	cr_expect_lt(a->mulpdu, 1000);
	mpa_send_segments(&pair.a, pattern, 900, 200);
	MPA_UNTIL(&pair, pair.b[0].segments == 1300);
	cr_expect_gt(a->mulpdu, 1000);
	cr_expect_lt(a->mulpdu_age, 200 * 1000);
	mpa_world_fini(&pair);
	free(pattern);
}

/* The Reply does not wait for the loop: the peer has waited long enough. */
Test(mpa_socket, a_reply_leaves_with_the_answer)
{
	struct sockaddr_in in;
	struct mpa_world own;
	char reply[100];
	int fd;

	mpa_world_init(&own);
	own.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&own);
	in = mpa_loopback(own.port);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	mpa_bare_send(fd, MPA_REQ "\x40\1\0\0", 20);
	MPA_UNTIL(&own, own.requests);
	cr_assert_eq(mpa_answer(&own.b[0], false), 0);
	cr_expect_eq(recv(fd, reply, sizeof reply, MSG_DONTWAIT), 20);
	mpa_world_fini(&own);
	close(fd);
}

/* In the middle of an FPDU, and with one that nobody above has taken. */
Test(mpa_socket, what_is_kept_goes_with_it)
{
	for (unsigned k = 0; k < 4; k++) {
		uint8_t *pattern = mpa_pattern(9000, 3);
		struct mpa_world pair;
		struct ddps_mpa_conn *b;
		long live = mem_live();

		mpa_world_init(&pair);
		pair.b[0].holding = k & 1;
		mpa_world_pair(&pair);
		b = (struct ddps_mpa_conn *)pair.b[0].llp;
		mpa_send_segments(&pair.a, pattern, 900, 2);
		MPA_UNTIL(&pair, k & 1 ? pair.b[0].holds : pair.b[0].segments == 2);
		if (k & 2) {
			uint8_t half[600] = { 9000 >> 8, 9000 & 255 };
			struct iovec iov = { half, sizeof half };

			((struct ddps_mpa_conn *)pair.a.llp)
				->tcp->send((struct ddps_mpa_conn *)pair.a.llp, &iov, 1);
			MPA_UNTIL(&pair, (k & 1) || ddps_mpa_rx_kept(&b->rx) == sizeof half);
		}
		mpa_world_fini(&pair);
		cr_expect_eq(mem_live(), live, "%u", k);
		free(pattern);
	}
}

/* A peer that has vanished is asked after half of the time, and given up when all of it is over: not later,
 * and earlier only by what whole seconds take off.  One second is the least that Linux has. */
Test(mpa_socket, keepalive_takes_the_time_that_was_asked_for)
{
	static const uint32_t seconds[] = { 4, 8, 10, 20, 60, 3600, 65534 };

	c->p.keepalive_ms = 0;
	c->tcp->options(c);
	cr_expect_eq(get_socket_option(c->io.fd, SOL_SOCKET, SO_KEEPALIVE), 0, "for ever");
	cr_expect_eq(get_socket_option(c->io.fd, IPPROTO_TCP, TCP_NODELAY), 0, "the listener's");
	c->initiator = true;
	c->tcp->options(c);
	cr_expect_eq(get_socket_option(c->io.fd, IPPROTO_TCP, TCP_NODELAY), 1);
	for (unsigned i = 0; i < sizeof seconds / sizeof *seconds; i++) {
		const int all = (int)seconds[i];
		int idle, probes;

		c->p.keepalive_ms = seconds[i] * 1000;
		c->tcp->options(c);
		idle = get_socket_option(c->io.fd, IPPROTO_TCP, TCP_KEEPIDLE);
		probes = get_socket_option(c->io.fd, IPPROTO_TCP, TCP_KEEPCNT);
		cr_expect_eq(get_socket_option(c->io.fd, SOL_SOCKET, SO_KEEPALIVE), 1);
		cr_expect_eq(idle, all / 2);
		cr_expect_geq(probes, 2, "several times: %d", probes);
		idle += probes * get_socket_option(c->io.fd, IPPROTO_TCP, TCP_KEEPINTVL);
		cr_expect(idle <= all && idle > all - probes, "%d s for %d s", idle, all);
	}
	c->p.keepalive_ms = 1;
	c->tcp->options(c);
	cr_expect_eq(get_socket_option(c->io.fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
	c->keepalive_ms = 1; /* of its listener's */
	c->p.keepalive_ms = 0;
	c->tcp->options(c);
	cr_expect_eq(get_socket_option(c->io.fd, SOL_SOCKET, SO_KEEPALIVE), 0, "for ever");
	for (int i = 0; i < 2; i++) {
		c->p.keepalive_ms = i ? UINT32_MAX : 65536000;
		c->tcp->options(c);
		cr_expect_eq(get_socket_option(c->io.fd, IPPROTO_TCP, TCP_KEEPIDLE), INT16_MAX,
			     "what Linux takes");
	}
}

/* It would be informed of the end later, if it were there yet. */
Test(mpa_socket, nothing_comes_up_from_one_that_is_gone)
{
	long live;

	ddps_mpa_conn_fail(c, DDPS_E_LIMIT, 0, "for a test");
	ddps_mpa_conn_destroy(c);
	c = NULL;
	live = mem_live();
	mpa_world_settle(&w);
	cr_expect_eq(mem_live(), live);
}
