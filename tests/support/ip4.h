/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUPPORT_IP4_H
#define SUPPORT_IP4_H
/* IP packets for tests of what carries them, and an address of this machine. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

/* 127.0.0.1 and a port. */
static inline struct sockaddr_in get_loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

#define IP4_WHOLE 0x40 /* it must not come in parts */

/* A header of 20 octets in front of @len - 20 octets of UDP. */
static inline void ip4_header(uint8_t *p, size_t len, uint8_t flags, const uint8_t from[4],
			      const uint8_t to[4])
{
	uint32_t sum = 0;

	memset(p, 0, 20);
	p[0] = 0x45;
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	p[6] = flags;
	p[8] = 64;
	p[9] = 17;
	memcpy(p + 12, from, 4);
	memcpy(p + 16, to, 4);
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	p[10] = (uint8_t)(~sum >> 8);
	p[11] = (uint8_t)~sum;
}

/* Between hosts of 10.0.0.0/24, the first of which is number 0. */
static inline void ip4_between(uint8_t *p, size_t len, uint8_t flags, unsigned from, unsigned to)
{
	ip4_header(p, len, flags, (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + from) },
		   (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + to) });
}

#endif
