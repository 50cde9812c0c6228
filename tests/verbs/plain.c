/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of plain TCP sockets that knows nothing of RDMA: librspreload makes rsockets of them.
 * usage: plain PORT (echoes one connection) | plain PORT ADDRESS (sends, compares the echo)
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOTAL (1 << 20)
#define PIECE 10000

static int fail_plain(const char *what)
{
	perror(what);
	return 1;
}

static int all_sent(int fd, const char *buf, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, buf + at, len - at, 0);

		if (n <= 0)
			return fail_plain("send");
		at += (size_t)n;
	}
	return 0;
}

static int serve_plain(struct sockaddr_in *a)
{
	int l = socket(AF_INET, SOCK_STREAM, 0), fd;
	char buf[PIECE];
	ssize_t n;

	if (l < 0 || bind(l, (struct sockaddr *)a, sizeof *a) || listen(l, 1))
		return fail_plain("listen");
	fd = accept(l, NULL, NULL);
	if (fd < 0)
		return fail_plain("accept");
	while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
		if (all_sent(fd, buf, (size_t)n))
			return 1;
	if (n < 0)
		return fail_plain("recv");
	close(fd);
	close(l);
	return 0;
}

static int ask_plain(struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char out[PIECE], in[PIECE];

	if (fd < 0 || connect(fd, (struct sockaddr *)a, sizeof *a))
		return fail_plain("connect");
	for (int done = 0; done < TOTAL; done += PIECE) {
		for (size_t i = 0; i < PIECE; i++)
			out[i] = (char)((size_t)done / PIECE + i * 7);
		if (all_sent(fd, out, PIECE))
			return 1;
		for (size_t at = 0; at < PIECE;) {
			ssize_t n = recv(fd, in + at, PIECE - at, 0);

			if (n <= 0)
				return fail_plain("recv");
			at += (size_t)n;
		}
		if (memcmp(in, out, PIECE)) {
			fprintf(stderr, "octet %d and on came back different\n", done);
			return 1;
		}
	}
	shutdown(fd, SHUT_RDWR);
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	if (argc < 2)
		return 2;
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	if (argc < 3)
		return serve_plain(&a);
	if (inet_pton(AF_INET, argv[2], &a.sin_addr) != 1)
		return 2;
	return ask_plain(&a);
}
