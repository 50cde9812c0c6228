/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit: plain TCP with the socket options of the stack (TCP_NODELAY), and nothing else.
 * bw: blocking writes of a size, read into a buffer of that size; ping: polled round trips.
 */
#include "peer.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void nodelay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		peer_die("TCP_NODELAY");
}

static void write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k < 0)
			peer_die("send");
		p += k;
		n -= (size_t)k;
	}
}

/* Polls.  Return: whether @n octets came before the end. */
static int read_all(int fd, uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = recv(fd, p, n, MSG_DONTWAIT);

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

static void serve(int listener, const struct peer_args *a)
{
	int fd = accept(listener, NULL, NULL);
	uint8_t *mem = peer_memory(a->size);
	ssize_t n;

	if (fd < 0)
		peer_die("accept");
	nodelay(fd);
	if (!strcmp(a->mode, "ping")) {
		while (read_all(fd, mem, a->size))
			write_all(fd, mem, a->size);
		return;
	}
	while ((n = recv(fd, mem, a->size, 0)) > 0)
		;
	if (n < 0)
		peer_die("recv");
	write_all(fd, mem, 1); /* everything has come */
}

static void measure(int fd, const struct peer_args *a)
{
	uint8_t *mem = peer_memory(a->size);
	double begin = peer_now(), cpu = peer_cpu();
	uint64_t ops = 0;

	do {
		write_all(fd, mem, a->size);
		if (!strcmp(a->mode, "ping") && !read_all(fd, mem, a->size))
			peer_die("peer has gone");
		ops++;
	} while (peer_now() - begin < a->seconds);
	shutdown(fd, SHUT_WR);
	if (!strcmp(a->mode, "bw") && recv(fd, mem, 1, 0) != 1)
		peer_die("last answer");
	peer_report(a, ops, peer_now() - begin, peer_cpu() - cpu);
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "bw|ping");
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	pid_t child;

	if (listener < 0 || fd < 0 || bind(listener, (struct sockaddr *)&sa, len) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&sa, &len))
		peer_die("socket");
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		peer_pin(0);
		close(fd);
		serve(listener, &a);
		return 0;
	}
	peer_pin(1);
	if (connect(fd, (struct sockaddr *)&sa, len))
		peer_die("connect");
	nodelay(fd);
	measure(fd, &a);
	return waitpid(child, NULL, 0) != child;
}
