/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LINGER_FIXTURE_H
#define LINGER_FIXTURE_H
/* A TCP socket whose last close blocks, as a peer may pass one. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_S 20

/* It has octets that @far does not read; closing that ends it immediately. */
static inline int make_lingering(int *far)
{
	const struct linger linger = { 1, LINGER_S };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const char octets[65536];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof to;

	cr_assert_eq(bind(listener, (struct sockaddr *)&to, sizeof to), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&to, &len), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, len), 0);
	*far = accept(listener, NULL, NULL);
	cr_assert_geq(*far, 0);
	close(listener);
	while (send(fd, octets, sizeof octets, MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
	return fd;
}

/* What threads close is closed a while later: @count comes to @n. */
static inline bool await_count(unsigned (*count)(void), unsigned n)
{
	for (int i = 0; i < 10000 && count() != n; i++)
		poll(NULL, 0, 1);
	return count() == n;
}

static inline void pass_flags(int sock, const char *octets, size_t n, const int *fds, int nfds,
			      int flags)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(8 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)octets, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (nfds) {
		m.msg_control = room;
		m.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&m);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, (size_t)nfds * sizeof(int));
	}
	cr_assert_eq(sendmsg(sock, &m, MSG_NOSIGNAL | flags), (ssize_t)n);
}

/* With @octets such a socket goes, of which only the receiver has one then.  Its far end. */
static inline int pass_lingering(int sock, const char *octets, size_t n, int flags)
{
	int far, fd = make_lingering(&far);

	pass_flags(sock, octets, n, &fd, 1, flags);
	close(fd);
	return far;
}

#endif
