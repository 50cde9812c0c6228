/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit: plain TCP with the socket options of the stack (TCP_NODELAY), and nothing else.
 * bw: writes of a size, read into a buffer of that size; both sides block, wait by epoll (bw-epoll)
 * or try without a pause (bw-polled).  ping: polled round trips; ping-waiting: both sides block; setup: connect, accept and one
 * round trip, again and again.  ping-unix-waiting: as ping-waiting, over a pair of unix sockets.
 */
#include "peer.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void nodelay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		peer_die("TCP_NODELAY");
}

static void write_tcp_octets(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k < 0)
			peer_die("send");
		p += k;
		n -= (size_t)k;
	}
}

static int reading = MSG_DONTWAIT; /* flags of recv: polls, unless told otherwise */

/* Return: whether @n octets came before the end. */
static int read_tcp_octets(int fd, uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = recv(fd, p, n, reading);

		if (k == 0)
			return 0;
		if (k < 0 && errno != EAGAIN)
			peer_die("recv");
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
	}
	return 1;
}

/* An end immediately, with nothing left behind. */
static void reset_tcp_socket(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}

__attribute__((noreturn)) static void serve_setups(int listener, const struct peer_args *a)
{
	uint8_t *mem = peer_memory(a->size);

	fcntl(listener, F_SETFL, O_NONBLOCK);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			continue;
		nodelay(fd);
		if (read_tcp_octets(fd, mem, a->size))
			write_tcp_octets(fd, mem, a->size);
		close(fd);
	}
}

static void measure_setups(const struct sockaddr_in *to, const struct peer_args *a)
{
	uint8_t *mem = peer_memory(a->size);
	double begin = peer_now(), cpu = peer_cpu();
	struct peer_median m = { 0 };

	while (peer_now() - begin < a->seconds) {
		double t = peer_now();
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to))
			peer_die("connect");
		nodelay(fd);
		write_tcp_octets(fd, mem, a->size);
		if (!read_tcp_octets(fd, mem, a->size))
			peer_die("peer has gone");
		peer_median_add(&m, peer_now() - t);
		reset_tcp_socket(fd);
	}
	peer_report_median(a, &m, peer_now() - begin, peer_cpu() - cpu);
}

/* ---- bandwidth, in one of three ways ---- */

struct way {
	int fd, epfd; /* epfd -1: no epoll */
	int flags;    /* of recv and send */
};

static struct way way_of(const struct peer_args *a, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	struct way w = { .fd = fd, .epfd = -1 };

	if (strcmp(a->mode, "bw"))
		w.flags = MSG_DONTWAIT;
	if (!strcmp(a->mode, "bw-epoll")) {
		w.epfd = epoll_create1(0);
		if (w.epfd < 0 || epoll_ctl(w.epfd, EPOLL_CTL_ADD, fd, &ev))
			peer_die("epoll");
	}
	return w;
}

/* After a call that failed: whether it is to be made again, which may be later. */
static int may_call_again(const struct way *w)
{
	struct epoll_event ev;

	if (errno != EAGAIN)
		return 0;
	return w->epfd < 0 || epoll_wait(w->epfd, &ev, 1, -1) == 1;
}

static void write_by(const struct way *w, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = send(w->fd, p, n, MSG_NOSIGNAL | w->flags);

		if (k < 0 && !may_call_again(w))
			peer_die("send");
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
	}
}

static void read_to_end(const struct way *w, uint8_t *mem, size_t n)
{
	ssize_t k;

	do
		k = recv(w->fd, mem, n, w->flags);
	while (k > 0 || (k < 0 && may_call_again(w)));
	if (k < 0)
		peer_die("recv");
}

static void answer_pings(int fd, const struct peer_args *a)
{
	uint8_t *mem = peer_memory(a->size);

	while (read_tcp_octets(fd, mem, a->size))
		write_tcp_octets(fd, mem, a->size);
}

static void serve_tcp_bench(int listener, const struct peer_args *a)
{
	int fd = accept(listener, NULL, NULL);
	uint8_t *mem = peer_memory(a->size);
	struct way w;

	if (fd < 0)
		peer_die("accept");
	nodelay(fd);
	if (!strncmp(a->mode, "ping", 4)) {
		answer_pings(fd, a);
		return;
	}
	w = way_of(a, fd, EPOLLIN);
	read_to_end(&w, mem, a->size);
	write_tcp_octets(fd, mem, 1); /* everything has come */
}

static void measure_tcp_pings(int fd, const struct peer_args *a)
{
	uint8_t *mem = peer_memory(a->size);
	double begin = peer_now(), cpu = peer_cpu();
	struct peer_median m = { 0 };

	while (peer_now() - begin < a->seconds) {
		double t = peer_now();

		write_tcp_octets(fd, mem, a->size);
		if (!read_tcp_octets(fd, mem, a->size))
			peer_die("peer has gone");
		peer_median_add(&m, peer_now() - t);
	}
	shutdown(fd, SHUT_WR);
	peer_report_median(a, &m, peer_now() - begin, peer_cpu() - cpu);
}

static void measure_tcp(int fd, const struct peer_args *a, pid_t child)
{
	const struct way w = way_of(a, fd, EPOLLOUT);
	uint8_t *mem = peer_memory(a->size);
	double begin = peer_now(), end;
	uint64_t ops = 0;

	do {
		write_by(&w, mem, a->size);
		ops++;
	} while (peer_now() - begin < a->seconds);
	shutdown(fd, SHUT_WR);
	if (recv(fd, mem, 1, 0) != 1)
		peer_die("last answer");
	end = peer_now();
	peer_report_both(a, ops, end - begin, child);
}

/* Listens here, or in the network namespace that BENCH_SERVE_NS names, at BENCH_HOST. */
static int new_listener(struct sockaddr_in *sa)
{
	const char *there = getenv("BENCH_SERVE_NS");
	socklen_t len = sizeof *sa;
	int fd;

	*sa = (struct sockaddr_in){ .sin_family = AF_INET };
	if (inet_pton(AF_INET, peer_host(), &sa->sin_addr) != 1)
		peer_die("BENCH_HOST");
	if (there) /* the socket stays where it was made */
		peer_enter(there);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)sa, len) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)sa, &len))
		peer_die("listen");
	return fd;
}

static int connect_tcp_bench(const struct sockaddr_in *sa)
{
	const char *cc = getenv("BENCH_CC");
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 ||
	    (cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc))) ||
	    connect(fd, (const struct sockaddr *)sa, sizeof *sa))
		peer_die("connect");
	nodelay(fd);
	return fd;
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(
		argc, argv, "bw|bw-epoll|bw-polled|ping|ping-waiting|ping-unix-waiting|setup");
	struct sockaddr_in sa;
	int home = open("/proc/self/ns/net", O_RDONLY), listener = new_listener(&sa), fd;
	const int by_unix = !strcmp(a.mode, "ping-unix-waiting");
	int pair[2] = { -1, -1 };
	pid_t child;

	if (by_unix && socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		peer_die("socketpair");
	child = fork();
	if (by_unix || !strcmp(a.mode, "ping-waiting"))
		reading = 0;
	if (child < 0 || home < 0)
		peer_die("fork");
	if (!child) {
		peer_pin(0);
		alarm((unsigned)a.seconds + 20);
		if (!strcmp(a.mode, "setup"))
			serve_setups(listener, &a);
		if (by_unix) {
			close(pair[0]);
			answer_pings(pair[1], &a);
			return 0;
		}
		serve_tcp_bench(listener, &a);
		return 0;
	}
	if (getenv("BENCH_SERVE_NS") && setns(home, CLONE_NEWNET))
		peer_die("back");
	close(home);
	peer_pin(1);
	if (!strcmp(a.mode, "setup")) {
		measure_setups(&sa, &a);
		kill(child, SIGKILL);
		return waitpid(child, NULL, 0) != child;
	}
	fd = by_unix ? pair[0] : connect_tcp_bench(&sa);
	close(pair[1]);
	if (strncmp(a.mode, "ping", 4)) {
		measure_tcp(fd, &a, child);
		return 0;
	}
	measure_tcp_pings(fd, &a);
	return waitpid(child, NULL, 0) != child;
}
