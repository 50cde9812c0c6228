/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_LOOPBACK_H
#define DDPS_TEST_LOOPBACK_H
/* 127.0.0.1 and a port. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>

static inline struct sockaddr_in get_loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

#endif
