/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_PEER_UDP_H
#define BENCH_PEER_UDP_H
/* A UDP socket on loopback. */
#include "peer.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* @sa becomes its address; it has buffers of @buffer octets each way, or what the system grants. */
static inline int peer_udp(struct sockaddr_in *sa, int buffer)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof *sa;

	*sa = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)sa, len) ||
	    getsockname(fd, (struct sockaddr *)sa, &len))
		peer_die("socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
	return fd;
}

#endif
