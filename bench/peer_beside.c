/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit of round trips while octets flow: plain TCP, two connections, one thread with epoll on
 * either side that serves both.  One connection carries round trips of 64 octets, the other one
 * SIZE octets with each call, one call a turn.  usage: peer_beside beside SIZE SECONDS
 */
#include "peer.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define PING_LEN 64u
#define WARM	 0.5 /* seconds; until the buffers are full */

enum { PING, BULK };

struct board {
	volatile uint64_t octets; /* of the large ones, where they arrive */
};

struct flows {
	int fd[2], epfd;
	uint8_t *mem;
	size_t size;
};

static void flows_init(struct flows *f, uint32_t bulk_events, size_t size)
{
	int one = 1;

	f->epfd = epoll_create1(0);
	if (f->epfd < 0)
		peer_die("epoll");
	for (uint32_t i = 0; i < 2; i++) {
		struct epoll_event ev = { .events = i == BULK ? bulk_events : EPOLLIN,
					  .data.u32 = i };

		if (setsockopt(f->fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
		    fcntl(f->fd[i], F_SETFL, O_NONBLOCK) ||
		    epoll_ctl(f->epfd, EPOLL_CTL_ADD, f->fd[i], &ev))
			peer_die("socket");
	}
	f->mem = peer_memory(size);
	f->size = size;
}

/* So short a message, alone on its connection, is taken and comes in one piece. */
static void send_tcp_ping(const struct flows *f)
{
	if (send(f->fd[PING], f->mem, PING_LEN, MSG_NOSIGNAL) != PING_LEN)
		peer_die("send");
}

static void ping_recv(const struct flows *f)
{
	if (recv(f->fd[PING], f->mem, PING_LEN, 0) != PING_LEN)
		peer_die("recv");
}

__attribute__((noreturn)) static void serve_beside(struct flows *f, struct board *b)
{
	struct epoll_event ev[2];

	for (;;) {
		int k = epoll_wait(f->epfd, ev, 2, 0);

		for (int i = 0; i < k; i++) {
			ssize_t n;

			if (ev[i].data.u32 == PING) {
				ping_recv(f);
				send_tcp_ping(f);
				continue;
			}
			n = recv(f->fd[BULK], f->mem, f->size, 0);
			if (n <= 0)
				peer_die("recv");
			b->octets += (uint64_t)n;
		}
	}
}

static void bulk_send(const struct flows *f)
{
	if (send(f->fd[BULK], f->mem, f->size, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		peer_die("send");
}

/* The octets a second are reported, too: they show what ran next to the round trips. */
static void measure_pings_in_flow(struct flows *f, const struct board *b, const struct peer_args *a)
{
	double warm = peer_now(), begin = 0, cpu = 0, sent, now;
	struct peer_median m = { 0 };
	struct epoll_event ev[2];
	uint64_t first = 0;

	sent = warm;
	send_tcp_ping(f);
	do {
		int k = epoll_wait(f->epfd, ev, 2, 0);

		for (int i = 0; i < k; i++) {
			if (ev[i].data.u32 == BULK) {
				bulk_send(f);
				continue;
			}
			ping_recv(f);
			now = peer_now();
			if (begin > 0)
				peer_median_add(&m, now - sent);
			sent = now;
			send_tcp_ping(f);
		}
		now = peer_now();
		if (begin == 0 && now - warm > WARM) {
			begin = now;
			cpu = peer_cpu();
			first = b->octets;
		}
	} while (begin == 0 || now - begin < a->seconds);
	peer_report_median_beside(a, &m, now - begin, peer_cpu() - cpu, b->octets - first);
}

static int connect_flow(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to))
		peer_die("connect");
	return fd;
}

static int accept_flow(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		peer_die("accept");
	return fd;
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "beside");
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct board *b =
		mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof sa;
	struct flows f;
	pid_t child;

	if (b == MAP_FAILED || listener < 0 || bind(listener, (struct sockaddr *)&sa, len) ||
	    listen(listener, 2) || getsockname(listener, (struct sockaddr *)&sa, &len))
		peer_die("socket");
	child = fork();
	if (child < 0)
		peer_die("fork");
	alarm((unsigned)a.seconds + 20);
	if (!child) {
		peer_pin(0);
		for (int i = 0; i < 2; i++) /* in the order of their requests */
			f.fd[i] = accept_flow(listener);
		flows_init(&f, EPOLLIN, a.size);
		serve_beside(&f, b);
	}
	peer_pin(1);
	for (int i = 0; i < 2; i++)
		f.fd[i] = connect_flow(&sa);
	flows_init(&f, EPOLLOUT, a.size);
	measure_pings_in_flow(&f, b, &a);
	fflush(stdout);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
