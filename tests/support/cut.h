/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_CUT_H
#define DDPS_TEST_CUT_H
/* The network is cut: no socket of this process gets anything any more, and the system acknowledges nothing;
 * mend_network() ends that. */
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

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
