/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_DESCRIPTOR_H
#define DDPS_TEST_DESCRIPTOR_H
/* What a test wants to know of descriptors, and of the network that they lead to. */
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/filter.h>
#include <netinet/in.h>

/* The number that the next one gets. */
static inline int find_next_fd(void)
{
	int fd = dup(1);

	close(fd);
	return fd;
}

static inline int get_socket_option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	cr_assert_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* The network is cut: no socket of this process gets anything any more, and the system acknowledges nothing;
 * mend_network() ends that. */

static inline void filter_network(int how, const void *filter, socklen_t filter_len)
{
	struct sockaddr_storage ss;

	for (int fd = 0; fd < 1024; fd++) {
		socklen_t len = sizeof ss;

		if (!getsockname(fd, (struct sockaddr *)&ss, &len) &&
		    (ss.ss_family == AF_INET || ss.ss_family == AF_INET6))
			setsockopt(fd, SOL_SOCKET, how, filter, filter_len);
	}
}

static inline void cut_network(void)
{
	struct sock_filter drop[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog prog = { 1, drop };

	filter_network(SO_ATTACH_FILTER, &prog, sizeof prog);
}

static inline void mend_network(void)
{
	const int none = 0;

	filter_network(SO_DETACH_FILTER, &none, sizeof none);
}

#endif
